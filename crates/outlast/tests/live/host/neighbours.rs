//! The far end of a cable has its carrier a moment after the near one: the kernel's first question for
//! it is lost, and the agent asks again.

use super::{Agent, ip, pause, resume_between};
use crate::path::skip;
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use rustix::fd::AsFd;
use std::thread;

/// How much later the far end has its carrier.
const LATER: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(300),
];

/// Between two of the kernel's questions, in milliseconds. It is a second elsewhere: then it would be
/// chance how long the control waits for the next one.
const PAUSE_MS: &str = "3000";
const PAUSE: &str = "net.ipv4.neigh.link0.retrans_time_ms";

/// Questions of the agent are less than 0.1 s apart; the kernel's next one comes 1.4 s later.
const SOON: Duration = Duration::from_millis(400);

/// Two hosts at a switch.
struct Switched {
    mobile: Namespace,
    switch: Namespace,
    fixed: Namespace,
}

impl Switched {
    fn new() -> Option<Self> {
        let new = || {
            let namespace = Namespace::new();
            namespace.inspect_err(|error| skip(error)).ok()
        };
        let (mobile, switch, fixed) = (new()?, new()?, new()?);
        ip(&switch, "link add name bridge0 type bridge");
        for (port, host, address) in [("near0", &mobile, "10.1.0.7"), ("far0", &fixed, "10.1.0.1")]
        {
            let cable = || {
                let mut routes = RouteSocket::open().expect("netlink");
                let other = Some(host.as_fd());
                routes.add_veth(port, "link0", other).expect("a cable");
            };
            switch.run(cable).expect("enter");
            ip(host, "link set lo up");
            ip(host, &format!("address add {address}/24 dev link0"));
            ip(host, "link set link0 up");
            ip(&switch, &format!("link set {port} master bridge0 up"));
            let reno = || outlast_linux::sysctl::write("net.ipv4.tcp_congestion_control", "reno");
            host.run(reno).expect("enter").expect("reno is there");
            let rarely = || outlast_linux::sysctl::write(PAUSE, PAUSE_MS);
            host.run(rarely).expect("enter").expect("a sysctl");
        }
        ip(&switch, "link set bridge0 up");
        Some(Self {
            mobile,
            switch,
            fixed,
        })
    }

    fn port(&self, name: &str, state: &str) {
        ip(&self.switch, &format!("link set {name} {state}"));
    }

    /// From the far end's carrier until the fixed host has new bytes.
    fn resume(&self, later: Duration) -> Duration {
        let cut = || {
            self.port("near0", "down");
            self.port("far0", "down");
        };
        let mend = || {
            self.port("near0", "up");
            pause(later);
            self.port("far0", "up");
        };
        resume_between(&self.mobile, &self.fixed, cut, mend)
    }
}

#[test]
fn a_far_end_that_has_its_carrier_later_is_asked_for_again() {
    for later in LATER {
        let (Some(helped), Some(alone)) = (Switched::new(), Switched::new()) else {
            return;
        };
        let place = Place::new();
        let agent = Agent::start(&place, &helped.mobile, &[]);
        let [with, without] = thread::scope(|scope| {
            let both = [&helped, &alone].map(|hosts| scope.spawn(move || hosts.resume(later)));
            both.map(|resumed| resumed.join().expect("it is measured"))
        });
        assert!(with <= SOON, "{later:?}: {with:?}: {}", agent.said());
        // Otherwise this shows nothing.
        assert!(without > SOON, "{later:?}: {without:?} without the agent");
    }
}
