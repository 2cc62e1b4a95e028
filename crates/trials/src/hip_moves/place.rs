//! The place: fixed host, router, and a mobile host behind a link, each with networks to move to.

use crate::gateway_matrix::trial::TrialError;
use crate::hip_moves::Who;
use crate::mobile_ip_matrix::place::ip;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_testbed::site::{LINK, Site, SiteConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The rendezvous server is on the router, under addresses that no move concerns.
pub(super) const RENDEZVOUS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 60, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd60, 0, 0, 0, 0, 0, 0, 1)),
];

/// An address with its prefix, and the router's there.
type Home = (&'static str, &'static str);

/// Where the mobile host goes, one after the other: an address of one family at a time.
const MOBILE: [Home; 5] = [
    ("10.61.1.7/24", "10.61.1.1"),
    ("10.61.2.7/24", "10.61.2.1"),
    ("fd61:2::7/64", "fd61:2::1"),
    ("fd61:3::7/64", "fd61:3::1"),
    ("10.61.3.7/24", "10.61.3.1"),
];

/// Where the fixed host goes when it moves: it has addresses of both families.
const FIXED: [[Home; 2]; 2] = [
    [("10.62.1.2/24", "10.62.1.1"), ("fd62:1::2/64", "fd62:1::1")],
    [("10.62.2.3/24", "10.62.2.1"), ("fd62:2::3/64", "fd62:2::1")],
];

/// The fixed host's interface, and the router's towards it.
const ETH: &str = "eth0";
const INNER: &str = "fixed0";

/// Everybody. They are gone when it is dropped.
pub(super) struct Roaming {
    pub(super) site: Site,
    congestion: &'static str,
    /// How often the mobile host has moved, and the fixed one.
    moves: [usize; 2],
}

impl Roaming {
    /// Both hosts are in their first networks.
    pub(super) fn new(config: &SiteConfig<'static>) -> Result<Self, TrialError> {
        let site = Site::new(config)?;
        let mut lines = vec![
            "address add 10.60.0.1/32 dev lo".to_owned(),
            "address add fd60::1/128 dev lo".to_owned(),
        ];
        for network in 1..=3 {
            lines.push(format!("address add 10.61.{network}.1/24 dev {LINK}"));
            lines.push(format!("address add fd61:{network}::1/64 dev {LINK} nodad"));
        }
        for network in 1..=2 {
            lines.push(format!("address add 10.62.{network}.1/24 dev {INNER}"));
            lines.push(format!(
                "address add fd62:{network}::1/64 dev {INNER} nodad"
            ));
        }
        ip(&site.gateway, &lines)?;
        let place = Self {
            site,
            congestion: config.congestion,
            moves: [0; 2],
        };
        for who in [Who::Mobile, Who::Fixed] {
            place.leave(who)?;
            place.arrive(who)?;
        }
        Ok(place)
    }

    /// Has connections to tags use the congestion control, which the device's own route does not name.
    pub(super) fn set_congestion(&self) -> Result<(), TrialError> {
        let way = format!(
            "-6 route add 2001:20::/28 dev hip0 metric 100 congctl {}",
            self.congestion
        );
        ip(&self.site.fixed, &[way])
    }

    /// The fixed host's addresses.
    pub(super) fn fixed_addresses(&self) -> [IpAddr; 2] {
        self.homes(Who::Fixed).as_chunks::<2>().0[0].map(|(address, _)| {
            let address = address.split('/').next().unwrap_or_default();
            address.parse().expect("a constant of this file")
        })
    }

    fn homes(&self, who: Who) -> &'static [Home] {
        let [mobile, fixed] = self.moves;
        match who {
            Who::Mobile => &MOBILE[mobile % MOBILE.len()..][..1],
            Who::Fixed => &FIXED[fixed % FIXED.len()],
            Who::Both => unreachable!("one host at a time"),
        }
    }

    fn host(&self, who: Who) -> (&Namespace, &'static str) {
        match who {
            Who::Fixed => (&self.site.fixed, ETH),
            Who::Mobile | Who::Both => (&self.site.mobile, LINK),
        }
    }

    /// Takes all addresses from a host.
    fn leave(&self, who: Who) -> Result<(), TrialError> {
        let (host, interface) = self.host(who);
        ip(
            host,
            &[format!("address flush dev {interface} scope global")],
        )
    }

    /// Gives a host its present addresses.
    fn arrive(&self, who: Who) -> Result<(), TrialError> {
        let (host, interface) = self.host(who);
        let lines = self.homes(who).iter().flat_map(|(address, router)| {
            let family = if address.contains(':') { "nodad" } else { "" };
            let add = format!("address add {address} dev {interface} {family}");
            let way = format!(
                "route replace default via {router} dev {interface} congctl {}",
                self.congestion
            );
            [add.trim().to_owned(), way]
        });
        ip(host, &lines.collect::<Vec<_>>())
    }

    /// Takes all addresses from whoever moves; since when they are gone.
    pub(super) fn cut(&mut self, who: Who) -> Result<Instant, TrialError> {
        for &who in who.each() {
            self.leave(who)?;
        }
        Ok(clock::now())
    }

    /// Gives whoever moves addresses of the next network; since when the last of them is there.
    pub(super) fn settle(&mut self, who: Who) -> Result<Instant, TrialError> {
        for &who in who.each() {
            self.moves[usize::from(who == Who::Fixed)] += 1;
            self.arrive(who)?;
        }
        Ok(clock::now())
    }
}
