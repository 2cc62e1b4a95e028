//! Receiving the packets of one IP protocol that has no sockets of its own, such as HIP and ESP.

use crate::socket::{Buffer, set_buffer};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recvfrom};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Memory for packets that nobody has taken yet, in bytes.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Receives the packets of one IP protocol that are for one address of this host.
#[derive(Debug)]
pub struct ProtocolReceiver {
    socket: Socket,
    address: IpAddr,
}

/// A packet of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Received<'b> {
    /// Who has sent it.
    pub source: IpAddr,
    /// For which address of this host.
    pub destination: IpAddr,
    /// What follows the IP headers.
    pub payload: &'b [u8],
}

impl ProtocolReceiver {
    /// Receives packets of `protocol` for `address`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, or when no interface has the address (any more, or yet).
    pub fn open(protocol: u8, address: IpAddr) -> io::Result<Self> {
        let domain = Domain::for_address(SocketAddr::new(address, 0));
        let protocol = Protocol::from(i32::from(protocol));
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.set_nonblocking(true)?;
        set_buffer(&socket, Buffer::Receive, RECEIVE_BUFFER)?;
        socket.bind(&SocketAddr::new(address, 0).into())?;
        Ok(Self { socket, address })
    }

    /// The address whose packets it receives.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The next packet with its IP header, read into `buffer`; `None` if there is none at the
    /// moment. IPv6 has no headers here.
    ///
    /// # Errors
    /// When the kernel reports an error that belongs to the socket.
    pub fn receive_whole<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        loop {
            match recvfrom(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((length, ..)) => return Ok(Some(&buffer[..length])),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The next packet, read into `buffer`; `None` if there is none at the moment.
    ///
    /// # Errors
    /// When the kernel reports an error that belongs to the socket.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<Received<'b>>> {
        loop {
            let (length, source) = match recvfrom(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _, source)) => (length, source),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let source = source.and_then(|source| SocketAddr::try_from(source).ok());
            let Some(source) = source.map(|source| source.ip()) else {
                continue;
            };
            let payload_at = match self.address {
                IpAddr::V4(_) => header_len(&buffer[..length]),
                // IPv6 gives what follows the headers.
                IpAddr::V6(_) => Some(0),
            };
            let Some(payload_at) = payload_at else {
                continue;
            };
            return Ok(Some(Received {
                source,
                destination: self.address,
                payload: &buffer[payload_at..length],
            }));
        }
    }
}

/// The length of the IPv4 header that `packet` begins with.
fn header_len(packet: &[u8]) -> Option<usize> {
    let length = usize::from(packet.first()? & 0xf) * 4;
    (length <= packet.len()).then_some(length)
}

impl AsFd for ProtocolReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An IP packet of `protocol` between these addresses; `None` if they differ in family, or if it is
/// too long for any packet. The kernel writes IPv4's header checksum.
#[must_use]
pub fn ip_packet(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload: &[u8],
) -> Option<Vec<u8>> {
    const HOP_LIMIT: u8 = 64;
    let mut packet = Vec::with_capacity(payload.len() + 40);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let length = u16::try_from(payload.len() + 20).ok()?;
            packet.extend_from_slice(&[0x45, 0]);
            packet.extend_from_slice(&length.to_be_bytes());
            packet.extend_from_slice(&[0, 0, 0, 0, HOP_LIMIT, protocol, 0, 0]);
            packet.extend_from_slice(&Ipv4Addr::octets(&source));
            packet.extend_from_slice(&destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let length = u16::try_from(payload.len()).ok()?;
            packet.extend_from_slice(&[0x60, 0, 0, 0]);
            packet.extend_from_slice(&length.to_be_bytes());
            packet.extend_from_slice(&[protocol, HOP_LIMIT]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
        }
        _ => return None,
    }
    packet.extend_from_slice(payload);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{InterfaceSettings, RouteSocket};
    use crate::poller::{Interest, Poller, Token};
    use crate::raw::{RawSender, Sent};
    use crate::testing::fresh_namespace;
    use std::net::Ipv6Addr;

    #[test]
    fn what_is_sent_is_received_with_its_addresses() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        namespace
            .run(|| {
                let mut routes = RouteSocket::open().expect("netlink");
                let loopback = routes.interface("lo").expect("there is a loopback");
                let up = InterfaceSettings {
                    up: Some(true),
                    ..InterfaceSettings::default()
                };
                routes.configure(loopback, &up).expect("it comes up");
                let sender = RawSender::open(0, None).expect("raw sockets");
                for own in [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
                    let receiver = ProtocolReceiver::open(139, own).expect("raw sockets");
                    let packet = ip_packet(own, own, 139, b"payload").expect("one family");
                    assert_eq!(sender.send(own, &packet).expect("sent"), Sent::Accepted);
                    let mut poller = Poller::new().expect("epoll");
                    poller
                        .add(&receiver, Token(1), Interest::Readable)
                        .expect("epoll");
                    assert_eq!(poller.wait().expect("epoll").count(), 1);
                    let mut buffer = [0; 100];
                    let received = receiver.receive(&mut buffer).expect("no error");
                    let expected = Received {
                        source: own,
                        destination: own,
                        payload: b"payload",
                    };
                    assert_eq!(received, Some(expected));
                    assert_eq!(receiver.receive(&mut buffer).expect("no error"), None);
                }
            })
            .expect("a namespace");
    }
}
