//! A mobile host with an address of its own, and two gateways that it can be reached by.

use crate::path::wiring::{inside, switch};
use crate::path::{
    Daemon, Gate, LINK, acknowledged, connected, is_acknowledged, skip, until, wait,
};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{Prefix, Route, RouteSocket};
use outlast_linux::sysctl;
use rustix::fd::AsFd;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Where the agents of the two gateways listen.
pub(crate) const OLD: &str = "10.0.1.2:7348";
pub(crate) const NEW: &str = "10.0.2.2:7348";
pub(crate) const MOBILE: &str = "203.0.113.7";
const LENGTH: usize = 4_000_000;

/// The six hosts' namespaces. They are gone when it is dropped.
pub(crate) struct Roaming {
    fixed: Namespace,
    core: Namespace,
    old: Namespace,
    new: Namespace,
    mobile: Namespace,
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("literal")
}

fn equip(route: &mut RouteSocket, name: &str, own: &str, length: u8) {
    let interface = route.interface(name).expect("made");
    let prefix = Prefix {
        address: address(own),
        length,
    };
    route.add_address(interface, prefix).expect("address");
    switch(route, name, true);
}

fn way(route: &mut RouteSocket, to: &str, length: u8, name: &str, gateway: Option<&str>) {
    let interface = route.interface(name).expect("made");
    let way = Route {
        destination: Prefix {
            address: address(to),
            length,
        },
        interface,
        gateway: gateway.map(address),
        congestion_control: None,
    };
    route.add_route(&way).expect("route");
}

fn be_lenient(forwards: bool) {
    let forwarding = if forwards { "1" } else { "0" };
    for (name, value) in [
        ("net.ipv4.ip_forward", forwarding),
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
    ] {
        sysctl::write(name, value).expect("sysctl");
    }
}

impl Roaming {
    /// All links up, and the mobile host at the old gateway; `None`, with the reason, where this
    /// machine does not allow it.
    pub(crate) fn new() -> Option<Self> {
        let namespace = || Namespace::new().inspect_err(|error| skip(error));
        let all = Self {
            fixed: namespace().ok()?,
            core: namespace().ok()?,
            old: namespace().ok()?,
            new: namespace().ok()?,
            mobile: namespace().ok()?,
        };
        for (host, forwards) in [
            (&all.fixed, false),
            (&all.core, true),
            (&all.old, true),
            (&all.new, true),
            (&all.mobile, false),
        ] {
            inside(host, |_| be_lenient(forwards));
        }
        inside(&all.core, |route| {
            for (name, peer, other) in [
                ("fixed0", "core0", &all.fixed),
                ("old0", "core0", &all.old),
                ("new0", "core0", &all.new),
            ] {
                route
                    .add_veth(name, peer, Some(other.as_fd()))
                    .expect("veth");
            }
            equip(route, "fixed0", "10.0.0.1", 24);
            equip(route, "old0", "10.0.1.1", 24);
            equip(route, "new0", "10.0.2.1", 24);
        });
        for (gateway, at_mobile, link, core) in [
            (&all.old, "old0", "10.1.0", "10.0.1"),
            (&all.new, "new0", "10.2.0", "10.0.2"),
        ] {
            inside(gateway, |route| {
                route
                    .add_veth(LINK, at_mobile, Some(all.mobile.as_fd()))
                    .expect("veth");
                equip(route, "core0", &format!("{core}.2"), 24);
                equip(route, LINK, &format!("{link}.1"), 24);
                way(route, "0.0.0.0", 0, "core0", Some(&format!("{core}.1")));
                way(route, MOBILE, 32, LINK, None);
            });
            inside(&all.mobile, |route| {
                equip(route, at_mobile, &format!("{link}.2"), 24);
            });
        }
        inside(&all.fixed, |route| {
            equip(route, "core0", "10.0.0.2", 24);
            way(route, "0.0.0.0", 0, "core0", Some("10.0.0.1"));
        });
        inside(&all.core, |route| {
            way(route, "203.0.113.0", 24, "old0", Some("10.0.1.2"));
        });
        inside(&all.mobile, |route| {
            equip(route, "lo", MOBILE, 32);
            way(route, "0.0.0.0", 0, "old0", Some("10.1.0.1"));
        });
        Some(all)
    }

    /// The mobile host is out of the old gateway's reach.
    pub(crate) fn leave(&self) {
        inside(&self.mobile, |route| switch(route, "old0", false));
    }

    /// The mobile host is at the new gateway, and the core sends its packets there.
    pub(crate) fn arrive(&self) {
        inside(&self.mobile, |route| {
            way(route, "0.0.0.0", 0, "new0", Some("10.2.0.1"));
        });
        inside(&self.core, |route| {
            way(route, MOBILE, 32, "new0", Some("10.0.2.2"));
        });
    }

    /// The mobile host is out of the new gateway's reach.
    pub(crate) fn leave_new(&self) {
        inside(&self.mobile, |route| switch(route, "new0", false));
    }

    /// The mobile host is at the old gateway again, and the core sends its packets there.
    pub(crate) fn come_back(&self) {
        inside(&self.mobile, |route| {
            switch(route, "old0", true);
            way(route, "0.0.0.0", 0, "old0", Some("10.1.0.1"));
        });
        inside(&self.core, |route| {
            let interface = route.interface("new0").expect("made");
            let gone = Route {
                destination: Prefix {
                    address: address(MOBILE),
                    length: 32,
                },
                interface,
                gateway: Some(address("10.0.2.2")),
                congestion_control: None,
            };
            route.remove_route(&gone).expect("route");
        });
    }

    /// A connection between the fixed host and the mobile one: the socket of each.
    pub(crate) fn connected(&self) -> [TcpStream; 2] {
        connected(&self.fixed, &self.mobile, address(MOBILE)).into()
    }
}

/// Makes a key in the test's own directory.
pub(crate) fn make_key(place: &Place, name: &str) {
    let said = place.run(["agents", "key", name]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
}

/// Whether gateways speak to each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Neighbours {
    None,
    /// Gateways speak to each other; one that stays away for so long is lost.
    LostAfter(Duration),
}

impl Neighbours {
    /// Nobody is lost in a test that is not about that, however busy the machine is.
    pub(crate) const PATIENT: Self = Self::LostAfter(Duration::from_secs(300));
}

/// The configuration file of the gateway that listens at `own`.
pub(crate) fn configuration(
    place: &Place,
    mechanism: &str,
    neighbours: Neighbours,
    (own, other): (&str, &str),
    key: &str,
) -> String {
    let mut text = format!("interface = \"{LINK}\"\nmechanism = \"{mechanism}\"\n");
    if let Neighbours::LostAfter(time) = neighbours {
        let seconds = time.as_secs();
        let journal = format!("{}.frozen", own.replace(':', "-"));
        text.push_str(&format!(
            "[agents]\nlisten = \"{own}\"\nneighbours = [\"{other}\"]\nkey = \"{}\"\n\
             mobiles = [\"203.0.113.0/24\"]\nlost_after = \"{seconds} s\"\njournal = \"{}\"\n",
            place.path().join(key).display(),
            place.path().join(journal).display(),
        ));
    }
    text
}

/// The daemons of the two gateways.
pub(crate) struct Agents {
    old: Option<Daemon>,
    new: Option<Daemon>,
    pub(crate) neighbours: Neighbours,
    mechanism: &'static str,
}

impl Agents {
    /// Starts both, with `zero-window-ack`.
    pub(crate) fn start(place: &Place, roaming: &Roaming, neighbours: Neighbours) -> Option<Self> {
        Self::start_with(place, roaming, neighbours, "zero-window-ack")
    }

    /// Starts both, with `mechanism`.
    pub(crate) fn start_with(
        place: &Place,
        roaming: &Roaming,
        neighbours: Neighbours,
        mechanism: &'static str,
    ) -> Option<Self> {
        make_key(place, "agents.key");
        let text = configuration(place, mechanism, neighbours, (NEW, OLD), "agents.key");
        let new = start(place, &roaming.new, "new.toml", &text)?;
        let mut agents = Self {
            old: None,
            new: Some(new),
            neighbours,
            mechanism,
        };
        agents.start_old_with_key(place, roaming, "agents.key");
        Some(agents)
    }

    pub(crate) fn older(&self) -> &Daemon {
        self.old.as_ref().expect("it runs")
    }

    /// Whether either has said so.
    pub(crate) fn have_said(&mut self, what: &str) -> bool {
        let old = self.old.as_mut().is_some_and(|old| old.has_said(what));
        self.new.as_mut().is_some_and(|new| new.has_said(what)) || old
    }

    pub(crate) fn newer(&self) -> &Daemon {
        self.new.as_ref().expect("it runs")
    }

    /// Ends the new gateway's daemon as the kernel ends what runs amok.
    pub(crate) fn kill_new(&mut self) {
        self.new.take().expect("it runs").kill();
    }

    /// Ends the old gateway's daemon as the kernel ends what runs amok.
    pub(crate) fn kill_old(&mut self) {
        self.old.take().expect("it runs").kill();
    }

    pub(crate) fn start_old(&mut self, place: &Place, roaming: &Roaming) {
        self.start_old_with_key(place, roaming, "agents.key");
    }

    pub(crate) fn start_old_with_key(&mut self, place: &Place, roaming: &Roaming, key: &str) {
        let text = configuration(place, self.mechanism, self.neighbours, (OLD, NEW), key);
        self.old = start(place, &roaming.old, "old.toml", &text);
        assert!(self.old.is_some(), "one could be started");
    }

    /// Ends both; what they have said.
    pub(crate) fn stop(self) -> String {
        let old = self.old.map(Daemon::stop).unwrap_or_default();
        old + &self.new.map(Daemon::stop).unwrap_or_default()
    }
}

fn start(place: &Place, namespace: &Namespace, name: &str, text: &str) -> Option<Daemon> {
    let file = place.file(name, text);
    let file = file.to_str().expect("text");
    Daemon::start_with(place, namespace, &["--config", file])
}

/// A paced download, either end of which may fail.
pub(crate) struct Stream {
    counts: Arc<Counts>,
    sender: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<io::Result<Vec<u8>>>,
    /// The sockets of the fixed host and of the mobile one.
    ends: [TcpStream; 2],
}

#[derive(Default)]
struct Counts {
    gate: Gate,
    written: AtomicU64,
    received: AtomicU64,
}

fn content() -> Vec<u8> {
    (0..LENGTH).map(|n| (n / 241 + n) as u8).collect()
}

impl Counts {
    fn send(&self, out: &mut TcpStream) -> io::Result<()> {
        for chunk in content().chunks(16 << 10) {
            self.gate.pass();
            out.write_all(chunk)?;
            self.written
                .fetch_add(chunk.len() as u64, Ordering::Release);
            wait(Duration::from_millis(15));
        }
        out.shutdown(Shutdown::Write)?;
        // A reset after the last byte is one, too.
        out.read(&mut [0]).map(drop)
    }

    fn receive(&self, input: &mut TcpStream) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let length = input.read(&mut buffer)?;
            all.extend_from_slice(&buffer[..length]);
            self.received.store(all.len() as u64, Ordering::Release);
            if length == 0 {
                return Ok(all);
            }
        }
    }
}

impl Stream {
    /// From the fixed host to the mobile one, at about 1 MB/s.
    pub(crate) fn start(roaming: &Roaming) -> Self {
        let to = address(MOBILE);
        let (mut out, mut input) = connected(&roaming.fixed, &roaming.mobile, to);
        let ends = [&out, &input].map(|end| end.try_clone().expect("descriptor"));
        let counts = Arc::new(Counts::default());
        let ours = counts.clone();
        let sender = std::thread::spawn(move || ours.send(&mut out));
        let ours = counts.clone();
        let receiver = std::thread::spawn(move || ours.receive(&mut input));
        Self {
            counts,
            sender,
            receiver,
            ends,
        }
    }

    /// Bytes that have arrived.
    pub(crate) fn received(&self) -> u64 {
        self.counts.received.load(Ordering::Acquire)
    }

    /// Stops the sender, and waits until the mobile host has everything and nothing is on its way.
    #[track_caller]
    pub(crate) fn pause(&self) {
        self.counts.gate.stop();
        until("everything that was sent", || {
            self.received() == self.counts.written.load(Ordering::Acquire)
                && is_acknowledged(&self.ends[0])
        });
    }

    /// Lets the sender go on where nothing gets to the mobile host, and waits until it believes that
    /// something has.
    #[track_caller]
    pub(crate) fn go_on_in_vain(&self) {
        let out = &self.ends[0];
        let before = acknowledged(out);
        self.counts.gate.open();
        let is_told = || acknowledged(out) > before;
        until("an acknowledgement that is not the mobile host's", is_told);
    }

    /// Waits for its end; everything must have arrived as it was sent.
    pub(crate) fn finish(self) {
        let all = self.receiver.join().expect("no panic");
        let all = all.expect("the mobile host's end is whole");
        assert!(all == content(), "what arrived is not what was sent");
        drop(self.ends);
        let sent = self.sender.join().expect("no panic");
        sent.expect("the fixed host's end is whole");
    }

    pub(crate) fn is_ended_anywhere(&self) -> bool {
        self.sender.is_finished() || self.receiver.is_finished()
    }

    /// Whether both ends have failed, and by a reset.
    pub(crate) fn is_reset_at_both_ends(&self) -> bool {
        if !(self.sender.is_finished() && self.receiver.is_finished()) {
            return false;
        }
        assert!(self.received() < LENGTH as u64, "it was completed");
        true
    }

    /// Ends what would not end.
    pub(crate) fn abandon(self) {
        for end in &self.ends {
            // One that has failed is shut down already.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}
