//! A router with two uplinks, and a tunnel of WireGuard's through whichever there is.
//!
//! ```text
//! near host --- near router === provider --- far router --- far host
//! ```

use super::bed::{NETWORKS, batch, ip, join, namespace, settle};
use super::tunnels::KEYS;
use super::{STALL, Stalls, Transfers, Way};
use crate::path::wiring::{inside, switch};
use crate::path::{Daemon, LINK, Over};
use crate::support::{Place, report};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;

/// The far router's address at its provider.
const SERVER: &str = "10.3.1.2";
/// Both ends' addresses in the tunnel.
const INNER: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
/// Delay and rate of each uplink.
const UPLINKS: [&str; 2] = [
    "delay 20ms rate 20mbit limit 200",
    "delay 60ms rate 8mbit limit 200",
];

/// A way for the first uplink to go.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// It is switched off.
    Off,
    /// It loses everything, and nobody is told.
    Hole,
}

/// Both hosts and routers, and the provider between them.
struct Site {
    near_host: Namespace,
    near_router: Namespace,
    provider: Namespace,
    far_router: Namespace,
    far_host: Namespace,
}

impl Site {
    fn new() -> Option<Self> {
        let site = Self {
            near_host: namespace()?,
            near_router: namespace()?,
            provider: namespace()?,
            far_router: namespace()?,
            far_host: namespace()?,
        };
        join(&site.near_router, "lan0", &site.near_host, "eth0");
        join(&site.far_router, "lan0", &site.far_host, "eth0");
        join(&site.far_router, "wan0", &site.provider, "far");
        for (uplink, quality) in UPLINKS.iter().enumerate() {
            let [own, its] = [format!("up{uplink}"), format!("near{uplink}")];
            join(&site.near_router, &own, &site.provider, &its);
            for (end, interface, last) in [(&site.near_router, own, 1), (&site.provider, its, 2)] {
                let queue = format!("qdisc add dev {interface} root netem {quality}\n");
                batch(end, "tc", &queue)?;
                ip(
                    end,
                    &settle(&interface, &format!("10.2.{uplink}.{last}/24")),
                )?;
            }
        }
        ip(&site.provider, &settle("far", "10.3.1.1/24"))?;
        let outer = settle("wan0", &format!("{SERVER}/24"));
        ip(
            &site.far_router,
            &format!("{outer}route add 10.2.0.0/16 via 10.3.1.1\n"),
        )?;
        site.settle_ends()?;
        site.use_uplink(0)?;
        site.dig()?;
        Some(site)
    }

    fn settle_ends(&self) -> Option<()> {
        let ends = [
            (&self.near_host, &self.near_router),
            (&self.far_host, &self.far_router),
        ];
        for ((host, router), network) in ends.into_iter().zip(NETWORKS) {
            let settled = settle("eth0", &format!("{network}.2/24"));
            ip(
                host,
                &format!("{settled}route add default via {network}.1\n"),
            )?;
            ip(router, &settle("lan0", &format!("{network}.1/24")))?;
        }
        Some(())
    }

    /// Makes the tunnel, and has the hosts' networks reached through it.
    fn dig(&self) -> Option<()> {
        let [near, far] = KEYS;
        let server = format!("Endpoint = {SERVER}:51820\nPersistentKeepalive = 1\n");
        for (end, router, key, peer, rest) in [
            (0, &self.near_router, near, far, server.as_str()),
            (1, &self.far_router, far, near, ""),
        ] {
            ip(router, &format!("link add {LINK} type wireguard\n"))?;
            key.join(router, LINK, peer, rest)?;
            let route = format!("route add {}.0/24 dev {LINK}\n", NETWORKS[1 - end]);
            ip(
                router,
                &(settle(LINK, &format!("{}/24", INNER[end])) + &route),
            )?;
        }
        Some(())
    }

    /// Has the near router reach the far one by an uplink.
    fn use_uplink(&self, uplink: usize) -> Option<()> {
        let route = format!("route replace {SERVER}/32 via 10.2.{uplink}.2\n");
        ip(&self.near_router, &route)
    }

    fn lose(&self, how: Loss) -> Option<()> {
        match how {
            Loss::Off => {
                inside(&self.near_router, |route| switch(route, "up0", false));
                Some(())
            }
            Loss::Hole => {
                for (end, interface) in [(&self.near_router, "up0"), (&self.provider, "near0")] {
                    let hole = format!("qdisc change dev {interface} root netem loss 100%\n");
                    batch(end, "tc", &hole)?;
                }
                Some(())
            }
        }
    }
}

/// Transfers while the near router goes over to its second uplink.
fn moved(how: Loss, is_helped: bool) -> Option<Stalls> {
    let site = Site::new()?;
    let place = Place::new();
    let mut daemons = Vec::new();
    if is_helped {
        daemons.push(Daemon::start(&place, &site.near_router, "hold")?);
        daemons.push(Daemon::start_over(
            Over::Nfqueue,
            &place,
            &site.far_router,
            "hold",
        )?);
    }
    let transfers = Transfers::start([&site.near_host, &site.far_host], &Way::BOTH);
    site.lose(how)?;
    let by_themselves = transfers.wait_out();
    site.use_uplink(1)?;
    let stalls = transfers.resume(clock::now(), by_themselves);
    daemons.into_iter().for_each(|daemon| drop(daemon.stop()));
    Some(stalls)
}

/// The download goes on far earlier than by itself, and the upload no later.
#[track_caller]
fn is_helped(how: Loss) {
    let [Some(control), Some(helped)] = [false, true].map(|is_helped| moved(how, is_helped)) else {
        return;
    };
    report(&format!("{how:?}: {helped:?}; the control: {control:?}"));
    control.assert_stalled(STALL);
    helped.assert_none_the_worse_than(&control);
    let [helped, control] = [helped, control].map(|stalls| stalls.of(Way::Download).lasted);
    assert!(helped * 2 < control, "{helped:?}; the control: {control:?}");
}

#[test]
fn an_uplink_that_loses_everything_is_replaced() {
    is_helped(Loss::Hole);
}

#[test]
fn an_uplink_that_is_switched_off_is_replaced() {
    is_helped(Loss::Off);
}
