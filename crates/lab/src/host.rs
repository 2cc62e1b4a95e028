//! One host: a network namespace with one interface, whose other end the emulator holds.

use crate::error::LabError;
use crate::tuning::Tuning;
use outlast_linux::counters::TcpCounters;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{
    InterfaceIndex, InterfaceSettings, InterfaceStatistics, Prefix, Route, RouteSocket,
};
use outlast_linux::sysctl;
use outlast_linux::tun::Tun;
use outlast_world::Side;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The interface towards the link, as both hosts call it.
pub(crate) const INTERFACE: &str = "link0";

/// Packets that wait in the interface until the emulator takes them. It takes them at once, so
/// that only the emulated queue ever drops; a wait this long is a fault that statistics show.
const DEVICE_QUEUE: u32 = 10_000;

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) side: Side,
    namespace: Namespace,
    interface: InterfaceIndex,
    /// Kernel settings as they are in force, by name.
    pub(crate) settings: Vec<(String, String)>,
}

impl Host {
    /// Makes the host of `side`, and hands out the emulator's end of its interface.
    pub(crate) fn new(side: Side, mtu: u32, tuning: &Tuning) -> Result<(Self, Tun), LabError> {
        let namespace = Namespace::new()?;
        let (tun, interface, settings) = namespace.run(|| {
            let tun = Tun::create(INTERFACE)?;
            let settings = tuning.apply(side)?;
            let interface = set_up(side, mtu, tuning.congestion())?;
            Ok::<_, LabError>((tun, interface, settings))
        })??;
        Ok((
            Self {
                side,
                namespace,
                interface,
                settings,
            },
            tun,
        ))
    }

    /// Runs `work` inside the host.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        Ok(self.namespace.run(work)?)
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// A TCP socket of this host's that does not block.
    pub(crate) fn tcp_socket(&self, address: IpAddr) -> Result<Socket, LabError> {
        let domain = Domain::for_address(SocketAddr::new(address, 0));
        let make = || {
            let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
            socket.set_tcp_nodelay(true)?;
            Ok::<_, io::Error>(socket)
        };
        self.run(make)?.map_err(|source| LabError::Socket {
            action: "open a socket",
            source,
        })
    }

    /// What the interface has carried.
    pub(crate) fn statistics(&self) -> Result<InterfaceStatistics, LabError> {
        let read = || RouteSocket::open()?.statistics(self.interface);
        Ok(self.run(read)??)
    }

    /// What the host's TCP has counted.
    pub(crate) fn tcp_counters(&self) -> Result<TcpCounters, LabError> {
        let action = "read the TCP counters";
        self.run(TcpCounters::read)?
            .map_err(|source| LabError::Socket { action, source })
    }
}

/// Loopback and link up, with the addresses of `side`; connections to the other host have the
/// congestion control `congestion` unless they choose another.
fn set_up(side: Side, mtu: u32, congestion: &str) -> Result<InterfaceIndex, LabError> {
    let has_ipv6 = Path::new("/proc/sys/net/ipv6").exists();
    if has_ipv6 {
        // No link-local address, hence no router solicitation: the link carries the workload only.
        sysctl::write(&format!("net.ipv6.conf.{INTERFACE}.addr_gen_mode"), "1")?;
    }
    let mut route = RouteSocket::open()?;
    let loopback = route.interface("lo")?;
    let up = InterfaceSettings {
        up: Some(true),
        ..InterfaceSettings::default()
    };
    route.configure(loopback, &up)?;
    let interface = route.interface(INTERFACE)?;
    let settings = InterfaceSettings {
        multicast: Some(false),
        mtu: Some(mtu),
        queue_len: Some(DEVICE_QUEUE),
        ..up
    };
    route.configure(interface, &settings)?;
    for ((address, length), (peer, _)) in addresses(side).into_iter().zip(addresses(side.peer())) {
        // Below 1280 bytes the kernel has no IPv6 on an interface (RFC 8200, section 5).
        if address.is_ipv6() && !(has_ipv6 && mtu >= 1280) {
            continue;
        }
        route.add_address(interface, Prefix { address, length })?;
        // What comes before is lost, and the first SYN with it for a second.
        route.await_address(address)?;
        // Not by sysctl: a namespace may not have a default that is reserved for root.
        route.add_route(&Route {
            destination: Prefix::of_host(peer),
            interface,
            gateway: None,
            congestion_control: Some(congestion),
        })?;
    }
    Ok(interface)
}

/// Both addresses of a host with the lengths of their prefixes.
fn addresses(side: Side) -> [(IpAddr, u8); 2] {
    [(side.ipv4().into(), 24), (side.ipv6().into(), 64)]
}
