//! Three hosts in a row, with several lanes side by side from the first to the last.

use super::bench::{BenchError, Load};
use crate::streams::Connection;
use outlast_base::time::Duration;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceIndex, InterfaceSettings, Prefix, Route, RouteSocket};
use outlast_linux::{offload, socket, sysctl};
use outlast_scenario::Congestion;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};

/// The connections' congestion control.
pub(crate) const CONGESTION: Congestion = Congestion::Cubic;

/// The gateway's interface towards the fixed host.
const INNER: &str = "fixed0";
/// The fixed host's only interface.
const ETH: &str = "eth0";
const FIXED_ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// How long a connection may carry nothing that it is given before it is held for broken.
const STALLED: Duration = Duration::from_secs(10);

/// A way from the fixed host to the mobile host: with interfaces of its own on the gateway and the
/// mobile host, and with addresses of its own, by which answers go back the same way.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Lane(u8);

/// The three hosts. They are gone when it is dropped.
pub(crate) struct Row {
    fixed: Namespace,
    gateway: Namespace,
    mobile: Namespace,
}

/// Where datagrams come from and go to.
pub(crate) struct DatagramSockets {
    /// The fixed host's end.
    pub(crate) fixed: UdpSocket,
    /// The mobile host's end.
    pub(crate) mobile: UdpSocket,
}

impl Lane {
    /// How many there are.
    pub(crate) const COUNT: usize = 3;
    /// All that there are.
    pub(crate) const ALL: [Self; Self::COUNT] = [Self(0), Self(1), Self(2)];

    /// Its place in [`Self::ALL`].
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The gateway's interface towards the mobile host.
    pub(crate) fn link(self) -> String {
        format!("link{}", self.0)
    }

    /// The mobile host's interface.
    fn eth(self) -> String {
        format!("eth{}", self.0)
    }

    const fn fixed(self) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, 10 + self.0)
    }

    const fn router(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 51, 100 + self.0, 1)
    }

    const fn mobile(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 51, 100 + self.0, 2)
    }
}

impl Row {
    /// The hosts, joined and ready for `load`.
    pub(crate) fn new(load: Load) -> Result<Self, BenchError> {
        let row = Self {
            fixed: Namespace::new()?,
            gateway: Namespace::new()?,
            mobile: Namespace::new()?,
        };
        row.gateway.run(|| row.join(load))??;
        row.fixed.run(|| set_up_fixed(load))??;
        row.mobile.run(|| set_up_mobile(load))??;
        Ok(row)
    }

    /// Joins the hosts, from within the gateway.
    fn join(&self, load: Load) -> Result<(), BenchError> {
        let mut route = RouteSocket::open()?;
        route.add_veth(INNER, ETH, Some(self.fixed.as_fd()))?;
        sysctl::write("net.ipv4.ip_forward", "1")?;
        equip(&mut route, INNER, &[FIXED_ROUTER], load)?;
        for lane in Lane::ALL {
            let link = lane.link();
            route.add_veth(&link, &lane.eth(), Some(self.mobile.as_fd()))?;
            equip(&mut route, &link, &[lane.router()], load)?;
        }
        Ok(())
    }

    /// The host that sends.
    pub(crate) const fn fixed(&self) -> &Namespace {
        &self.fixed
    }

    /// The host that receives.
    pub(crate) const fn mobile(&self) -> &Namespace {
        &self.mobile
    }

    /// The host in the middle.
    pub(crate) const fn gateway(&self) -> &Namespace {
        &self.gateway
    }

    /// The congestion control that connections of the fixed host have, by its kernel.
    pub(crate) fn congestion(&self) -> Result<String, BenchError> {
        let connection = self.connect(Lane::ALL[0])?;
        Ok(socket::congestion_control(&connection.fixed)?)
    }

    /// A new TCP connection over `lane`, either end of which fails when it has stalled.
    pub(crate) fn connect(&self, lane: Lane) -> Result<Connection, BenchError> {
        let listener = self.listen(lane)?;
        let to = listener.local_addr()?;
        self.connect_to(lane, to, &listener)
    }

    /// The gateway's address on the fixed host's side.
    pub(crate) const fn router() -> Ipv4Addr {
        FIXED_ROUTER
    }

    /// A listener of the mobile host on `lane`.
    pub(crate) fn listen(&self, lane: Lane) -> Result<TcpListener, BenchError> {
        Ok(self
            .mobile
            .run(|| TcpListener::bind((lane.mobile(), 0)))??)
    }

    /// A new TCP connection from over `lane` to `to`: `listener`, or a proxy that goes on to it.
    pub(crate) fn connect_to(
        &self,
        lane: Lane,
        to: SocketAddr,
        listener: &TcpListener,
    ) -> Result<Connection, BenchError> {
        let fixed = TcpStream::from(self.fixed.run(|| connected(lane.fixed(), to))??);
        // Or the end of a turn waits for an acknowledgement.
        fixed.set_nodelay(true)?;
        let (mobile, _) = listener.accept()?;
        mobile.set_read_timeout(Some(STALLED))?;
        Ok(Connection { fixed, mobile })
    }

    /// New sockets for datagrams over `lane`.
    pub(crate) fn datagram_sockets(&self, lane: Lane) -> Result<DatagramSockets, BenchError> {
        let mobile = self.mobile.run(|| UdpSocket::bind((lane.mobile(), 0)))??;
        let to = mobile.local_addr()?;
        let fixed = self.fixed.run(|| {
            let fixed = UdpSocket::bind((lane.fixed(), 0))?;
            fixed.connect(to)?;
            Ok::<_, io::Error>(fixed)
        })??;
        Ok(DatagramSockets { fixed, mobile })
    }
}

/// The route sets the congestion control: a namespace may not have a default that the host reserves
/// for root.
fn set_up_fixed(load: Load) -> Result<(), BenchError> {
    let mut route = RouteSocket::open()?;
    let interface = equip(&mut route, ETH, &Lane::ALL.map(Lane::fixed), load)?;
    route.add_route(&Route {
        destination: Prefix {
            address: Ipv4Addr::UNSPECIFIED.into(),
            length: 0,
        },
        interface,
        gateway: Some(FIXED_ROUTER.into()),
        congestion_control: Some(CONGESTION.name()),
    })?;
    set_up_tcp()
}

fn set_up_mobile(load: Load) -> Result<(), BenchError> {
    let mut route = RouteSocket::open()?;
    for lane in Lane::ALL {
        let interface = equip(&mut route, &lane.eth(), &[lane.mobile()], load)?;
        route.add_route(&Route {
            destination: Prefix::of_host(lane.fixed().into()),
            interface,
            gateway: Some(lane.router().into()),
            congestion_control: Some(CONGESTION.name()),
        })?;
    }
    set_up_tcp()
}

/// Makes TCP go on after a pause as it was before it: between its turns, a connection has one.
fn set_up_tcp() -> Result<(), BenchError> {
    Ok(sysctl::write("net.ipv4.tcp_slow_start_after_idle", "0")?)
}

/// Gives an interface of the calling thread's host its addresses, and switches it on.
fn equip(
    route: &mut RouteSocket,
    name: &str,
    own: &[Ipv4Addr],
    load: Load,
) -> Result<InterfaceIndex, BenchError> {
    let interface = route.interface(name)?;
    for &address in own {
        let address = address.into();
        let length = 24;
        route.add_address(interface, Prefix { address, length })?;
    }
    offload::set_super_segments(name, load == Load::SuperSegments)?;
    let up = InterfaceSettings {
        up: Some(true),
        ..InterfaceSettings::default()
    };
    route.configure(interface, &up)?;
    Ok(interface)
}

/// A stream socket of the calling thread's host that is bound to `from` before it connects.
fn connected(from: Ipv4Addr, to: SocketAddr) -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(STALLED))?;
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    connect(&socket, &to)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_skip::skip;

    /// CUBIC need neither be the host's default nor be allowed to everybody.
    #[test]
    fn connections_over_every_lane_have_cubic() {
        let row = match Row::new(Load::Packets) {
            Err(BenchError::Namespace(error)) => return skip(error),
            row => row.expect("three hosts in a row"),
        };
        assert_eq!(row.congestion().expect("a connection"), "cubic");
        for lane in Lane::ALL {
            let connection = row.connect(lane).expect("a connection");
            for end in [&connection.fixed, &connection.mobile] {
                let congestion = socket::congestion_control(end).expect("a TCP socket");
                assert_eq!(congestion, CONGESTION.name(), "{lane:?}");
            }
        }
    }
}
