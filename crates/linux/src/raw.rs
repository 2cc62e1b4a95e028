//! Sending IP packets as they are, out of an interface or wherever their destination is.

use crate::ipsec::Escapes;
use crate::socket::{Buffer, set_buffer};
use outlast_base::time::Instant;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// `IPPROTO_RAW`: the packet brings its own header.
const RAW: i32 = 255;
/// Memory for packets that wait for the interface or for the neighbour's address, in bytes.
const SEND_BUFFER: usize = 8 << 20;

/// Sends whole IP packets of both versions. The kernel chooses the neighbour and finds its
/// address; sources need not be addresses of this host.
///
/// Packets with a mark go where the kernel would forward them, by their sources and ports, too, and are encrypted
/// where a policy of IPsec demands it. Those without one go, as those of any raw socket do, by their destination alone.
///
/// It recomputes IPv4's header checksum, and fills in an identification of zero.
#[derive(Debug)]
pub struct RawSender {
    v4: Socket,
    /// `None` where the kernel has no IPv6.
    v6: Option<Socket>,
    /// `None` without a mark.
    escapes: Option<RefCell<Escapes>>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sent {
    /// The kernel has it.
    Accepted,
    /// There is no room for it at the moment; it is lost.
    NoRoom,
    /// It is longer than the MTU of the path to its destination, and may not be fragmented.
    TooLong,
    /// There is no way to its destination, or one that packets are not to go, or the interface is
    /// down; it is lost.
    Unreachable,
    /// A rule of a firewall of this host has dropped it.
    Forbidden,
    /// It was not sent: a policy of IPsec may be meant for it that would not have been applied.
    Unprotected,
}

impl RawSender {
    /// A sender in the network namespace of the calling thread, whose packets bear `mark`. With
    /// `interface`, all of them leave by that one.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` and `CAP_NET_ADMIN`, or when there is no such interface.
    pub fn open(mark: u32, interface: Option<&str>) -> io::Result<Self> {
        let v4 = open(Domain::IPV4, mark, interface)?;
        let v6 = match open(Domain::IPV6, mark, interface) {
            Ok(socket) => Some(socket),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(error) => return Err(error),
        };
        let escapes = match mark {
            0 => None,
            mark => Some(RefCell::new(Escapes::watch(mark)?)),
        };
        Ok(Self { v4, v6, escapes })
    }

    /// Sets the priority of its packets (`SO_PRIORITY`).
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, for more than 6.
    pub fn set_priority(&self, priority: u32) -> io::Result<()> {
        let sockets = [Some(&self.v4), self.v6.as_ref()];
        let set = |socket: &Socket| socket.set_priority(priority);
        sockets.into_iter().flatten().try_for_each(set)
    }

    /// Sends IPv4 packets whatever the kernel believes of their paths: only an interface's MTU makes them
    /// [`Sent::TooLong`].
    ///
    /// # Errors
    /// An error if the kernel does not take the socket's option.
    pub fn ignore_path_mtu(&self) -> io::Result<()> {
        rustix::net::sockopt::set_ip_mtu_discover(
            &self.v4,
            rustix::net::sockopt::Ipv4PathMtuDiscovery::PROBE,
        )
        .map_err(Into::into)
    }

    /// The address of this host from which it would speak to `other`; `None` if there is no way.
    ///
    /// # Errors
    /// When the process is out of descriptors, or without `CAP_NET_ADMIN`.
    pub fn own_address(&self, other: IpAddr) -> io::Result<Option<IpAddr>> {
        /// Where nothing is sent to.
        const DISCARD: u16 = 9;
        let to = SocketAddr::new(other, DISCARD);
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, None)?;
        socket.set_mark(self.v4.mark()?)?;
        if socket.connect(&to.into()).is_err() {
            return Ok(None);
        }
        Ok(socket.local_addr()?.as_socket().map(|own| own.ip()))
    }

    /// True if packets from `source` to `destination` may be [`Sent::Unprotected`], as policies were up to a second ago.
    ///
    /// # Errors
    /// An error if the kernel does not tell of its policies of IPsec.
    pub fn may_lack_protection(
        &self,
        now: Instant,
        source: IpAddr,
        destination: IpAddr,
    ) -> io::Result<bool> {
        match &self.escapes {
            Some(escapes) => escapes.borrow_mut().may_have(now, source, destination),
            None => Ok(false),
        }
    }

    /// Sends `packet`, which begins with its IP header, to `destination`, without waiting.
    ///
    /// # Errors
    /// An error for what is no packet, and if the kernel does not tell of its policies of IPsec.
    pub fn send(&self, destination: IpAddr, packet: &[u8]) -> io::Result<Sent> {
        let socket = match destination {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => match &self.v6 {
                Some(socket) => socket,
                None => return Ok(Sent::Unreachable),
            },
        };
        if let Some(escapes) = &self.escapes
            && escapes.borrow_mut().has(packet)?
        {
            return Ok(Sent::Unprotected);
        }
        // The port is none: the kernel demands zero, or the protocol's number.
        let to = SockAddr::from(SocketAddr::new(destination, 0));
        match socket.send_to(packet, &to) {
            Ok(_) => Ok(Sent::Accepted),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => Ok(Sent::NoRoom),
                Some(Errno::MSGSIZE) => Ok(Sent::TooLong),
                Some(
                    Errno::NETUNREACH
                    | Errno::HOSTUNREACH
                    | Errno::NETDOWN
                    | Errno::NODEV
                    | Errno::NXIO
                    | Errno::ADDRNOTAVAIL
                    | Errno::HOSTDOWN
                    | Errno::ACCESS
                    // A policy of IPsec's, for which there are no keys.
                    | Errno::NOENT
                    | Errno::SRCH
                    | Errno::REMOTE,
                ) => Ok(Sent::Unreachable),
                Some(Errno::PERM) => Ok(Sent::Forbidden),
                // A route that is a black hole; it is also said of what has no header.
                Some(Errno::INVAL) if has_header(packet) => Ok(Sent::Unreachable),
                _ => Err(error),
            },
        }
    }
}

/// Whether the kernel finds a header to go by.
fn has_header(packet: &[u8]) -> bool {
    const V6_HEADER: usize = 40;
    match packet.first().map(|first| (first >> 4, first & 0xf)) {
        Some((4, words @ 5..)) => packet.len() >= 4 * usize::from(words),
        Some((6, _)) => packet.len() >= V6_HEADER,
        _ => false,
    }
}

fn open(domain: Domain, mark: u32, interface: Option<&str>) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(RAW)))?;
    socket.set_nonblocking(true)?;
    socket.set_mark(mark)?;
    if let Some(name) = interface {
        socket.bind_device(Some(name.as_bytes()))?;
    }
    set_buffer(&socket, Buffer::Send, SEND_BUFFER)?;
    // Nothing is read, and every packet of the protocol would be queued for it.
    socket.set_recv_buffer_size(0)?;
    Ok(socket)
}
