//! Links whose other end is replaced during an outage: a modem that was unplugged and comes back as a new interface of
//! the old name, and a router that takes the address of one that has failed.

use super::bed::{Bed, Kind, NETWORKS, PORTS, ROUTERS, ip, join, namespace, settle};
use super::{AT_ONCE, At, LATER, STALL, Stalls, Transfers, Way, at_each};
use crate::path::wiring::{inside, switch};
use crate::path::{Daemon, LINK, Over};
use crate::support::{Place, report};
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;

/// Transfers while the near router's modem is unplugged. Where no route leads on, packets vanish.
fn unplugged(bed: &Bed) -> Option<Stalls> {
    let transfers = Transfers::start(bed.hosts(), &Way::BOTH);
    bed.unplug();
    let by_themselves = transfers.wait_out();
    let up = bed.plug_in_again()?;
    Some(transfers.resume(up, by_themselves))
}

#[test]
fn a_modem_that_was_unplugged_and_is_back_is_outlasted() {
    let Some(bed) = Bed::new(Kind::cable()) else {
        return;
    };
    let nowhere = format!("route add blackhole {}.0/24 metric 4000\n", NETWORKS[1]);
    if ip(&bed.near_router, &nowhere).is_none() {
        return;
    }
    at_each(&bed, Over::Ebpf, |at| {
        let Some(stalls) = unplugged(&bed) else {
            return;
        };
        report(&format!("{at:?}: {stalls:?}"));
        match at {
            At::Neither => stalls.assert_stalled(STALL),
            At::NearEnd => stalls.assert_within(LATER),
            // To the far end's gateway it was silence.
            At::BothEnds => {
                let download = stalls.of(Way::Download).lasted;
                assert!(download <= AT_ONCE, "{stalls:?}");
            }
        }
    });
}

/// The second one waits at least so long for the first, as VRRP does with its defaults.
const FAILOVER: Duration = Duration::from_secs(3);

/// A second far router, which waits for the first one to fail.
struct Spare(Namespace);

impl Spare {
    /// The cable to the far host, and its addresses.
    const CABLE: [&str; 2] = ["10.5.1.1", "10.5.1.2"];

    fn new(bed: &Bed) -> Option<Self> {
        let router = namespace()?;
        let [own, host] = Self::CABLE;
        join(&router, "lan0", &bed.far_host, "eth1");
        bed.plug_in(&router, "spare", LINK)?;
        let far = format!("{}.2", NETWORKS[1]);
        ip(&bed.far_host, &settle("eth1", &format!("{host}/24")))?;
        let route = format!("route add {far}/32 via {host} dev lan0\n");
        ip(&router, &(settle("lan0", &format!("{own}/24")) + &route))?;
        inside(&router, |route| {
            switch(route, LINK, true);
            let name = "net.ipv4.conf.link0.arp_notify";
            outlast_linux::sysctl::write(name, "1").expect("sysctl");
        });
        Some(Self(router))
    }

    /// Takes the place of the first one, with an Ethernet address that nobody has seen: of that the kernel tells all
    /// neighbours.
    fn take_over(&self, bed: &Bed) -> Option<()> {
        let way = format!("route replace default via {}\n", Self::CABLE[0]);
        ip(&bed.far_host, &way)?;
        let back = format!(
            "route add {}.0/24 via {} dev {LINK}\n",
            NETWORKS[0], ROUTERS[0]
        );
        let address = settle(LINK, &format!("{}/24", ROUTERS[1]));
        let told = format!("link set {LINK} address 02:00:00:00:00:03\n");
        ip(&self.0, &(address + &told + &back))
    }
}

/// Transfers while the far router fails, and another one takes its address over.
fn taken_over(at: At) -> Option<Stalls> {
    let bed = Bed::new(Kind::cable().among_strangers())?;
    let spare = Spare::new(&bed)?;
    let place = Place::new();
    let daemon = match at {
        At::Neither => None,
        _ => Some(Daemon::start(&place, &bed.near_router, "hold")?),
    };
    let transfers = Transfers::start(bed.hosts(), &Way::BOTH);
    inside(&bed.air, |route| switch(route, PORTS[1], false));
    let by_themselves = transfers.wait_for(FAILOVER, |transfer| transfer.timeout_after(STALL));
    spare.take_over(&bed)?;
    let stalls = transfers.resume(clock::now(), by_themselves);
    daemon.map(Daemon::stop);
    Some(stalls)
}

/// The far end's own gateway has failed with its router. The control is not told by anybody either when to send again.
#[test]
fn a_router_that_takes_the_address_of_one_that_failed_is_told_of_at_once() {
    let [Some(control), Some(helped)] = [At::Neither, At::NearEnd].map(taken_over) else {
        return;
    };
    report(&format!("{helped:?}; the control: {control:?}"));
    helped.assert_within(AT_ONCE);
    control.assert_stalled(LATER);
}
