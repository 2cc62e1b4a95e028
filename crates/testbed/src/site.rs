//! A fixed host, a gateway and a mobile host in network namespaces of their own, for programs and
//! for the daemon as they are: nothing of Outlast is on the path unless somebody starts it there.
//!
//! Fixed host and gateway are joined by a cable (veth). Gateway and mobile host are joined by an
//! Ethernet that is emulated in user space: with a rate, a delay, a queue, and several ways to go
//! away ([`Cut`]).

mod air;
mod sight;

pub use air::{Air, Cut, Offered, Since, WINDOW};
pub use sight::Heard;

use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_lab::LabError;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, Prefix, Route, RouteSocket};
use outlast_linux::sysctl::{self, SysctlError};
use outlast_linux::tun::Tun;
use outlast_scenario::IpVersion;
use rustix::fd::AsFd;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The interface towards the link, at the gateway and at the mobile host.
pub const LINK: &str = "link0";
/// Of the cable, at the gateway.
const INNER: &str = "fixed0";
/// Of the cable, at the fixed host.
const ETH: &str = "eth0";

/// The three places. They are gone when it is dropped.
#[derive(Debug)]
pub struct Site {
    /// The fixed host.
    pub fixed: Namespace,
    /// The router in front of the link.
    pub gateway: Namespace,
    /// The mobile host.
    pub mobile: Namespace,
    /// The link.
    pub air: Air,
}

/// What a site is like.
#[derive(Clone, Copy, Debug)]
pub struct SiteConfig<'a> {
    /// Of the link, each way.
    pub rate: BitRate,
    /// Of the link, one way.
    pub delay: Duration,
    /// Frames that may wait for the link, each way.
    pub queue: usize,
    /// The hosts' congestion control.
    pub congestion: &'a str,
    /// The hosts' selective acknowledgements.
    pub sack: bool,
    /// How both ends of the link ask for silent neighbours.
    pub neighbours: Neighbours,
}

/// How soon the kernel doubts a neighbour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Neighbours {
    /// The kernel's own timing: trusted for half a minute, doubted for five seconds, then asked
    /// three times in three seconds.
    AsUsual,
    /// [`SOON`].
    Soon,
    /// Each end knows the other for good, as on a link without Ethernet addresses: nobody asks.
    Known,
}

/// What [`Neighbours::Soon`] sets of `net.ipv4.neigh.link0` and `net.ipv6.neigh.link0`: trusted for half to one and a half
/// seconds, doubted for one, then asked three times in three quarters of a second.
pub const SOON: [(&str, &str); 3] = [
    ("base_reachable_time_ms", "1000"),
    ("delay_first_probe_time", "1"),
    ("retrans_time_ms", "250"),
];

/// A host on the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// The fixed host.
    Fixed,
    /// The gateway, seen from the fixed host.
    Inner,
    /// The gateway, seen from the link.
    Outer,
    /// The mobile host.
    Mobile,
}

impl Place {
    /// Its address of this version.
    #[must_use]
    pub fn address(self, version: IpVersion) -> IpAddr {
        match version {
            IpVersion::V4 => self.ipv4().into(),
            IpVersion::V6 => self.ipv6().into(),
        }
    }

    /// Its address (RFC 5737).
    #[must_use]
    pub const fn ipv4(self) -> Ipv4Addr {
        match self {
            Self::Fixed => Ipv4Addr::new(192, 0, 2, 2),
            Self::Inner => Ipv4Addr::new(192, 0, 2, 1),
            Self::Outer => Ipv4Addr::new(198, 51, 100, 1),
            Self::Mobile => Ipv4Addr::new(198, 51, 100, 2),
        }
    }

    /// Its address (RFC 3849).
    #[must_use]
    pub const fn ipv6(self) -> Ipv6Addr {
        let (net, host) = match self {
            Self::Fixed => (1, 2),
            Self::Inner => (1, 1),
            Self::Outer => (2, 1),
            Self::Mobile => (2, 2),
        };
        Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host)
    }
}

impl Site {
    /// All three, and the link up.
    ///
    /// # Errors
    /// When this machine does not allow namespaces or TAP devices, or lacks the congestion
    /// control.
    pub fn new(config: &SiteConfig<'_>) -> Result<Self, LabError> {
        let (fixed, gateway, mobile) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        let at_gateway = || -> Result<Tun, LabError> {
            sysctl::write("net.ipv4.ip_forward", "1")?;
            if has_ipv6() {
                sysctl::write("net.ipv6.conf.all.forwarding", "1")?;
            }
            RouteSocket::open()?.add_veth(INNER, ETH, Some(fixed.as_fd()))?;
            equip(INNER, Place::Inner, None)?;
            link(config, Place::Outer, None)
        };
        let outer = gateway.run(at_gateway)??;
        for host in [&fixed, &mobile] {
            let flag = if config.sack { "1" } else { "0" };
            host.run(|| sysctl::write("net.ipv4.tcp_sack", flag))??;
        }
        let way = |router| Some((router, config.congestion));
        fixed.run(|| equip(ETH, Place::Fixed, way(Place::Inner)))??;
        let near = mobile.run(|| link(config, Place::Mobile, way(Place::Outer)))??;
        if config.neighbours == Neighbours::Known {
            introduce((&gateway, Place::Outer), (&mobile, Place::Mobile))?;
        }
        let air = Air::between([outer, near], config.rate, config.delay, config.queue);
        Ok(Self {
            fixed,
            gateway,
            mobile,
            air: air.map_err(LabError::Emulator)?,
        })
    }

    /// Takes the link away.
    ///
    /// # Errors
    /// When the emulator broke down.
    pub fn cut(&self, how: Cut) -> Result<Instant, LabError> {
        self.air.cut(how).map_err(LabError::Emulator)
    }

    /// Gives it back; when it had all of it.
    ///
    /// # Errors
    /// When the emulator broke down.
    pub fn mend(&self) -> Result<Instant, LabError> {
        self.air.mend().map_err(LabError::Emulator)
    }
}

/// Makes this end of the link.
fn link(
    config: &SiteConfig<'_>,
    own: Place,
    router: Option<(Place, &str)>,
) -> Result<Tun, LabError> {
    let tap = Tun::create_ethernet(LINK)?;
    set_up(config.neighbours)?;
    equip(LINK, own, router)?;
    Ok(tap)
}

/// Each end of the link learns for good where the other one is.
fn introduce(one: (&Namespace, Place), other: (&Namespace, Place)) -> Result<(), LabError> {
    for ((host, _), (peer, place)) in [(one, other), (other, one)] {
        let hardware = || RouteSocket::open()?.hardware_address(LINK);
        let Some(hardware) = peer.run(hardware)?? else {
            continue;
        };
        let pin = || -> Result<(), LabError> {
            let mut route = RouteSocket::open()?;
            let interface = route.interface(LINK)?;
            for version in versions() {
                route.pin_neighbour(interface, place.address(version), hardware)?;
            }
            Ok(())
        };
        host.run(pin)??;
    }
    Ok(())
}

fn set_up(neighbours: Neighbours) -> Result<(), SysctlError> {
    match neighbours {
        // For the latter both ends have to be there.
        Neighbours::AsUsual | Neighbours::Known => {}
        Neighbours::Soon => {
            for version in versions() {
                for (name, value) in SOON {
                    sysctl::write(&format!("net.{version}.neigh.{LINK}.{name}"), value)?;
                }
            }
        }
    }
    Ok(())
}

/// Gives an interface its addresses, switches it on, and sends all else to the router, with the
/// congestion control that is named.
fn equip(name: &str, own: Place, router: Option<(Place, &str)>) -> Result<(), LabError> {
    let mut route = RouteSocket::open()?;
    let up = InterfaceSettings {
        up: Some(true),
        ..InterfaceSettings::default()
    };
    for name in ["lo", name] {
        let interface = route.interface(name)?;
        route.configure(interface, &up)?;
    }
    let interface = route.interface(name)?;
    for (address, length, router_address, all) in [
        (
            IpAddr::from(own.ipv4()),
            24,
            router.map(|(router, _)| IpAddr::from(router.ipv4())),
            IpAddr::from(Ipv4Addr::UNSPECIFIED),
        ),
        (
            own.ipv6().into(),
            64,
            router.map(|(router, _)| router.ipv6().into()),
            Ipv6Addr::UNSPECIFIED.into(),
        ),
    ] {
        if address.is_ipv6() && !has_ipv6() {
            continue;
        }
        route.add_address(interface, Prefix { address, length })?;
        let Some(gateway) = router_address else {
            continue;
        };
        route.add_route(&Route {
            destination: Prefix {
                address: all,
                length: 0,
            },
            interface,
            gateway: Some(gateway),
            congestion_control: router.map(|(_, congestion)| congestion),
        })?;
    }
    Ok(())
}

/// The versions of IP that this kernel has.
fn versions() -> impl Iterator<Item = IpVersion> {
    [IpVersion::V4, IpVersion::V6]
        .into_iter()
        .filter(|&version| version == IpVersion::V4 || has_ipv6())
}

fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}

/// The neighbour timing of the calling thread's namespace, for the record.
///
/// # Errors
/// When it cannot be read.
pub fn neighbour_timing(version: IpVersion) -> Result<Vec<(String, String)>, SysctlError> {
    SOON.iter()
        .map(|(name, _)| {
            let value = sysctl::read(&format!("net.{version}.neigh.{LINK}.{name}"))?;
            Ok(((*name).to_owned(), value))
        })
        .collect()
}

impl From<AirBroken> for io::Error {
    fn from(AirBroken: AirBroken) -> Self {
        Self::other("the thread that is the link has ended")
    }
}

/// The thread that is the link has ended.
#[derive(Clone, Copy, Debug)]
struct AirBroken;
