//! Which socket of a network namespace would take a packet (`sock_diag(7)`).

use crate::diag::{BY_FAMILY, HEADER, NLM_F_REQUEST, NLMSG_ERROR, REQUEST, connect};
use netlink_sys::Socket;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Asks the kernel for sockets, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct SocketLookup {
    socket: Socket,
    sequence: u32,
}

/// A protocol whose sockets are looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SocketKind {
    /// TCP: connections and listeners.
    Tcp,
    /// UDP.
    Udp,
}

impl SocketLookup {
    /// Opens a conversation about the namespace of the calling thread.
    ///
    /// # Errors
    /// When the process is out of file descriptors or memory.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            socket: connect()?,
            sequence: 0,
        })
    }

    /// Whether the kernel finds sockets of UDP: one that is made for this is found.
    ///
    /// # Errors
    /// When no socket can be made, or the kernel's answer cannot be understood.
    pub fn can_look_up_udp(&mut self) -> io::Result<bool> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        let local = socket.local_addr()?;
        self.has_socket_for(SocketKind::Udp, local, local)
    }

    /// Whether a socket would take a packet that comes to `local` from `remote`: one that is connected to it, or
    /// one that listens. Both addresses are of one family; a socket of IPv6 that takes
    /// IPv4, too, is found for both.
    ///
    /// # Errors
    /// When the kernel's answer cannot be understood.
    pub fn has_socket_for(
        &mut self,
        kind: SocketKind,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<bool> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(kind, local, remote, self.sequence);
        self.socket.send(&request, 0)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let Some((what, sequence, error)) = read(&answer) else {
                return Err(malformed());
            };
            if sequence != self.sequence {
                continue;
            }
            return match (what, error) {
                (BY_FAMILY, _) => Ok(true),
                (NLMSG_ERROR, Some(code)) if code == -libc::ENOENT => Ok(false),
                (NLMSG_ERROR, Some(code)) => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
                _ => Err(malformed()),
            };
        }
    }
}

fn malformed() -> io::Error {
    let what = "the kernel's answer about a socket cannot be understood";
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Kind and sequence number of an answer, and the code of the error if it is one.
fn read(answer: &[u8]) -> Option<(u16, u32, Option<i32>)> {
    let (header, body) = answer.split_first_chunk::<HEADER>()?;
    let [_, _, _, _, k0, k1, _, _, s0, s1, s2, s3, ..] = *header;
    let error = body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
    let kind = u16::from_ne_bytes([k0, k1]);
    Some((kind, u32::from_ne_bytes([s0, s1, s2, s3]), error))
}

/// Asks for one socket: without `NLM_F_DUMP` the kernel looks it up as for a packet.
fn request(
    kind: SocketKind,
    local: SocketAddr,
    remote: SocketAddr,
    sequence: u32,
) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    let body = &mut bytes[HEADER..];
    let family = if local.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let protocol = match kind {
        SocketKind::Tcp => libc::IPPROTO_TCP,
        SocketKind::Udp => libc::IPPROTO_UDP,
    };
    body[0] = family as u8;
    body[1] = protocol as u8;
    body[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
    // `udp_dump_one` has source and destination of the packet, `inet_diag_find_one_icsk` those of the socket.
    let (first, second) = match kind {
        SocketKind::Tcp => (local, remote),
        SocketKind::Udp => (remote, local),
    };
    body[8..10].copy_from_slice(&first.port().to_be_bytes());
    body[10..12].copy_from_slice(&second.port().to_be_bytes());
    for (at, address) in [(12, first.ip()), (28, second.ip())] {
        match address {
            IpAddr::V4(address) => body[at..at + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => body[at..at + 16].copy_from_slice(&address.octets()),
        }
    }
    // INET_DIAG_NOCOOKIE: whichever socket it is.
    body[48..].fill(0xff);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{InterfaceSettings, RouteSocket};
    use crate::testing::fresh_namespace;
    use std::net::{TcpListener, TcpStream};

    fn loopback() {
        let mut route = RouteSocket::open().expect("netlink");
        let loopback = route.interface("lo").expect("every namespace has one");
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        route.configure(loopback, &up).expect("configure");
    }

    fn at(text: &str, port: u16) -> SocketAddr {
        SocketAddr::new(text.parse().expect("an address"), port)
    }

    #[test]
    fn a_socket_is_found_for_the_families_that_it_takes() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            loopback();
            let mut lookup = SocketLookup::open().expect("sock_diag");
            // Where it listens, and whether IPv4 and IPv6 find it.
            let cases = [
                ("0.0.0.0:0", [true, false]),
                ("[::]:0", [true, true]),
                ("[::1]:0", [false, true]),
            ];
            for (listens, expected) in cases {
                let tcp = TcpListener::bind(listens).expect("bind");
                let udp = UdpSocket::bind(listens).expect("bind");
                let tcp_port = tcp.local_addr().expect("bound").port();
                let udp_port = udp.local_addr().expect("bound").port();
                for (address, is_there) in ["127.0.0.1", "::1"].into_iter().zip(expected) {
                    let mut found = |kind, port| {
                        let (local, remote) = (at(address, port), at(address, 9));
                        lookup
                            .has_socket_for(kind, local, remote)
                            .expect("an answer")
                    };
                    let what = format!("{listens}, {address}");
                    assert_eq!(found(SocketKind::Tcp, tcp_port), is_there, "{what}");
                    assert_eq!(found(SocketKind::Udp, udp_port), is_there, "{what}");
                }
            }
            assert!(lookup.can_look_up_udp().expect("an answer"));
        };
        namespace.run(work).expect("enter");
    }

    #[test]
    fn a_connection_is_found_without_its_listener() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            loopback();
            let mut lookup = SocketLookup::open().expect("sock_diag");
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let server = listener.local_addr().expect("bound");
            let client = TcpStream::connect(server).expect("connect");
            let (accepted, peer) = listener.accept().expect("accept");
            drop(listener);
            let mut found = |remote| {
                let taken = lookup.has_socket_for(SocketKind::Tcp, server, remote);
                taken.expect("an answer")
            };
            assert!(found(peer));
            assert!(!found(at("127.0.0.1", 9)));
            drop((client, accepted));
        };
        namespace.run(work).expect("enter");
    }

    #[test]
    fn what_is_cut_short_is_no_answer() {
        assert_eq!(read(&[20, 0, 0, 0]), None);
        assert_eq!(read(&[0; HEADER]), Some((0, 0, None)));
    }
}
