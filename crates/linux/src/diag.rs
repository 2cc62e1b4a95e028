//! Every TCP connection of a network namespace, whoever it belongs to, as `ss` shows it
//! (`sock_diag(7)`).

use netlink_sys::{Socket, SocketAddr as KernelAddress, protocols::NETLINK_SOCK_DIAG};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A conversation with the kernel about the TCP connections of one network namespace: that of the
/// thread that opened it.
#[derive(Debug)]
pub struct TcpDiag {
    socket: Socket,
    sequence: u32,
}

/// What the kernel says of one end of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TcpConnection {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Payload bytes that came in order, since the connection began.
    pub bytes_received: u64,
    /// Received payload bytes that the application has not read yet.
    pub bytes_unread: u32,
    /// Payload bytes that the other end has acknowledged.
    pub bytes_acknowledged: u64,
    /// Payload bytes that were sent more than once; `None` before Linux 4.19.
    pub bytes_retransmitted: Option<u64>,
    /// Retransmission timeouts; `None` before Linux 6.7.
    pub timeouts: Option<u16>,
    /// Its congestion control.
    pub congestion: String,
}

/// `SOCK_DIAG_BY_FAMILY`.
pub(crate) const BY_FAMILY: u16 = 20;
pub(crate) const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
pub(crate) const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `TCP_ESTABLISHED` and the states in which one end has ended its own direction: FIN-WAIT-1,
/// FIN-WAIT-2 and CLOSE-WAIT.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8;
/// Attributes of an answer.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// Lengths of `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg`.
pub(crate) const HEADER: usize = 16;
pub(crate) const REQUEST: usize = 56;
const MESSAGE: usize = 72;

/// A socket to ask the kernel about sockets of the calling thread's namespace.
pub(crate) fn connect() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&KernelAddress::new(0, 0))?;
    Ok(socket)
}

impl TcpDiag {
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

    /// Every connection over which something may still come.
    ///
    /// # Errors
    /// When the kernel has no `tcp_diag`, or its answer cannot be understood.
    pub fn connections(&mut self) -> io::Result<Vec<TcpConnection>> {
        let mut all = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.dump(family as u8, &mut all)?;
        }
        Ok(all)
    }

    fn dump(&mut self, family: u8, all: &mut Vec<TcpConnection>) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&request(family, self.sequence), 0)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let mut rest = answer.as_slice();
            while let Some((kind, sequence, body, next)) = message(rest) {
                rest = next;
                if sequence != self.sequence {
                    continue;
                }
                match kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return Err(refusal(body)),
                    BY_FAMILY => all.push(connection(body).ok_or_else(malformed)?),
                    _ => {}
                }
            }
        }
    }
}

impl TcpConnection {
    /// Payload bytes that the application has read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_received
            .saturating_sub(u64::from(self.bytes_unread))
    }
}

fn request(family: u8, sequence: u32) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    let body = &mut bytes[HEADER..];
    body[0] = family;
    body[1] = libc::IPPROTO_TCP as u8;
    body[2] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    body[4..8].copy_from_slice(&STATES.to_ne_bytes());
    bytes
}

/// The first netlink message of `bytes`: kind, sequence number, content; and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, u32, &[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(HEADER..length)?;
    let next = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    Some((u16_at(bytes, 4)?, u32_at(bytes, 8)?, body, next))
}

fn refusal(body: &[u8]) -> io::Error {
    u32_at(body, 0).map_or_else(malformed, |code| {
        io::Error::from_raw_os_error(-code.cast_signed())
    })
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel's list of connections cannot be understood",
    )
}

fn connection(body: &[u8]) -> Option<TcpConnection> {
    let family = i32::from(*body.first()?);
    let port = |at| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = body.get(at..at + 16)?.try_into().ok()?;
        match family {
            libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..4]).ok()?).into()),
            libc::AF_INET6 => Some(Ipv6Addr::from(bytes).to_canonical()),
            _ => None,
        }
    };
    let local = SocketAddr::new(address(8)?, port(4)?);
    let remote = SocketAddr::new(address(24)?, port(6)?);
    let attributes = body.get(MESSAGE..)?;
    // A connection that ends at this moment has no details any more.
    let info = attribute(attributes, INET_DIAG_INFO).unwrap_or(&[]);
    let name = attribute(attributes, INET_DIAG_CONG).unwrap_or(&[]);
    let name = name.split(|&byte| byte == 0).next().unwrap_or(&[]);
    Some(TcpConnection {
        local,
        remote,
        bytes_unread: u32_at(body, 56)?,
        // Offsets within `struct tcp_info`, see `sys::tcp_info`.
        bytes_acknowledged: u64_at(info, 120).unwrap_or(0),
        bytes_received: u64_at(info, 128).unwrap_or(0),
        bytes_retransmitted: u64_at(info, 208),
        timeouts: u16_at(info, 240),
        congestion: String::from_utf8_lossy(name).into_owned(),
    })
}

/// The content of the first attribute of this kind.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)?;
        let content = bytes.get(4..length)?;
        if kind == wanted {
            return Some(content);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{InterfaceSettings, RouteSocket};
    use crate::testing::fresh_namespace;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[track_caller]
    fn end(all: &[TcpConnection], local: SocketAddr) -> &TcpConnection {
        all.iter()
            .find(|connection| connection.local == local)
            .expect("it is established")
    }

    #[test]
    fn what_came_and_what_was_read_of_it_is_told_for_both_protocols() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            let loopback = route.interface("lo").expect("every namespace has one");
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            route.configure(loopback, &up).expect("configure");
            let mut diag = TcpDiag::open().expect("sock_diag");
            for address in ["127.0.0.1:0", "[::1]:0"] {
                let listener = TcpListener::bind(address).expect("bind");
                let server = listener.local_addr().expect("bound");
                let mut out = TcpStream::connect(server).expect("connect");
                let (mut input, peer) = listener.accept().expect("accept");
                out.write_all(&[7; 1_000]).expect("write");
                input.read_exact(&mut [0; 400]).expect("read");
                let all = diag.connections().expect("a list");
                let here = end(&all, server);
                assert_eq!(here.remote, peer);
                assert_eq!((here.bytes_received, here.bytes_unread), (1_000, 600));
                assert_eq!(here.bytes_read(), 400);
                assert!(!here.congestion.is_empty());
                assert_eq!(end(&all, peer).bytes_received, 0);
                drop((out, input));
            }
        };
        namespace.run(work).expect("enter");
    }

    #[test]
    fn what_is_cut_short_is_no_connection() {
        assert_eq!(message(&[20, 0, 0, 0]), None);
        assert!(connection(&[2; 60]).is_none());
        assert_eq!(attribute(&[3, 0, 2, 0], INET_DIAG_INFO), None);
        assert_eq!(refusal(&[]).kind(), io::ErrorKind::InvalidData);
    }
}
