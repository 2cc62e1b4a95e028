//! TCP options of sockets that std does not know, and the kernel's account of a connection.

use crate::sys::tcp_info::{self, RawTcpInfo};
use crate::sysctl;
use outlast_base::time::Duration;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::fs;
use std::io;
use std::mem::offset_of;

/// Why a socket does not take an option.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The kernel does not have the congestion control.
    #[error(
        "this kernel has no congestion control \"{name}\" (it has: {available}): \
         `sudo modprobe tcp_{name}` loads it if it was built as a module"
    )]
    NoSuchCongestionControl {
        /// As in `cubic`.
        name: String,
        /// Congestion controls that would work, separated by blanks.
        available: String,
    },
    /// The congestion control is for root only.
    #[error(
        "ordinary users may not choose the congestion control \"{name}\": run as root, or add it \
         to net.ipv4.tcp_allowed_congestion_control"
    )]
    CongestionControlNotAllowed {
        /// As in `bbr`.
        name: String,
    },
    /// The kernel refused.
    #[error("cannot {action}")]
    Refused {
        /// What was to be done.
        action: &'static str,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

/// Which memory of a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Buffer {
    /// For what nobody has read yet.
    Receive,
    /// For what has not left yet.
    Send,
}

/// Gives a socket `bytes` of memory, which the kernel doubles for its own needs (socket(7)).
///
/// The sysctls `net.core.rmem_max` and `net.core.wmem_max` bound only processes without `CAP_NET_ADMIN` in the first
/// user namespace: they get as much as everybody may have.
///
/// # Errors
/// When the descriptor is no socket.
pub fn set_buffer(socket: impl AsFd, buffer: Buffer, bytes: usize) -> io::Result<()> {
    let forced = match buffer {
        Buffer::Receive => sockopt::set_socket_recv_buffer_size_force(&socket, bytes),
        Buffer::Send => sockopt::set_socket_send_buffer_size_force(&socket, bytes),
    };
    let set = match (forced, buffer) {
        (Err(Errno::PERM), Buffer::Receive) => sockopt::set_socket_recv_buffer_size(&socket, bytes),
        (Err(Errno::PERM), Buffer::Send) => sockopt::set_socket_send_buffer_size(&socket, bytes),
        (forced, _) => forced,
    };
    Ok(set?)
}

/// Sets the congestion control of `socket` (`TCP_CONGESTION`). Connections accepted from a
/// listening socket inherit it.
///
/// # Errors
/// When the kernel has none of that name, or reserves it for root.
pub fn set_congestion_control(socket: impl AsFd, name: &str) -> Result<(), SocketError> {
    sockopt::set_tcp_congestion(socket, name).map_err(|errno| match errno {
        Errno::NOENT => SocketError::NoSuchCongestionControl {
            name: name.into(),
            available: sysctl::read("net.ipv4.tcp_available_congestion_control")
                .unwrap_or_else(|_| "unknown".into()),
        },
        Errno::PERM => SocketError::CongestionControlNotAllowed { name: name.into() },
        errno => SocketError::Refused {
            action: "set the congestion control",
            source: errno.into(),
        },
    })
}

/// The congestion control of `socket`.
///
/// # Errors
/// When it is no TCP socket.
pub fn congestion_control(socket: impl AsFd) -> Result<String, SocketError> {
    sockopt::tcp_congestion(socket).map_err(|errno| SocketError::Refused {
        action: "read the congestion control",
        source: errno.into(),
    })
}

/// Sets how long sent data may stay unacknowledged before the connection is given up
/// (`TCP_USER_TIMEOUT`, RFC 5482), in milliseconds; zero means the system's default.
///
/// # Errors
/// When it is no TCP socket, or the timeout exceeds 2^31 milliseconds.
pub fn set_user_timeout(socket: impl AsFd, timeout: Duration) -> Result<(), SocketError> {
    let refused = |errno: Errno| SocketError::Refused {
        action: "set the user timeout",
        source: errno.into(),
    };
    let millis = u32::try_from(timeout.as_millis()).map_err(|_| refused(Errno::INVAL))?;
    sockopt::set_tcp_user_timeout(socket, millis).map_err(refused)
}

/// Whether a TCP socket listens on `port` in the network namespace of the calling thread, on
/// whatever address. Nothing is sent: the server does not notice.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn is_listening(port: u16) -> io::Result<bool> {
    for table in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
        match fs::read_to_string(table) {
            Ok(sockets) if sockets.lines().any(|line| listens_on(line, port)) => return Ok(true),
            Ok(_) => {}
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound && table.ends_with('6') => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether a line of `/proc/net/tcp` is a socket that listens on `port`: number, local address
/// and port in hexadecimal, remote ones, state.
fn listens_on(line: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let mut columns = line.split_ascii_whitespace().skip(1);
    let local = columns.next().and_then(|local| local.rsplit(':').next());
    let state = columns.nth(1);
    local.and_then(|local| u16::from_str_radix(local, 16).ok()) == Some(port)
        && state == Some(LISTEN)
}

/// What the kernel says of one connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    raw: RawTcpInfo,
    /// How many bytes of `raw` this kernel knows.
    length: usize,
}

impl TcpInfo {
    /// Reads it from `socket`.
    ///
    /// # Errors
    /// When it is no TCP socket.
    pub fn of(socket: impl AsFd) -> Result<Self, SocketError> {
        let (raw, length) =
            tcp_info::read(socket.as_fd()).map_err(|source| SocketError::Refused {
                action: "read TCP_INFO",
                source,
            })?;
        Ok(Self { raw, length })
    }

    /// Whether both ends have agreed on selective acknowledgements (RFC 2018).
    #[must_use]
    pub fn has_sack(&self) -> bool {
        self.raw.options & tcp_info::OPTION_SACK != 0
    }

    /// Whether both ends have agreed on timestamps (RFC 7323).
    #[must_use]
    pub fn has_timestamps(&self) -> bool {
        self.raw.options & tcp_info::OPTION_TIMESTAMPS != 0
    }

    /// The retransmission timeout as it is now, backed off.
    #[must_use]
    pub fn rto(&self) -> Duration {
        Duration::from_micros(self.raw.rto.into())
    }

    /// The smoothed round-trip time.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        Duration::from_micros(self.raw.rtt.into())
    }

    /// How often the timer for the oldest segment has been doubled.
    #[must_use]
    pub fn backoff(&self) -> u8 {
        self.raw.backoff
    }

    /// In how long the oldest segment is sent again unless its acknowledgement comes before, to a
    /// tick; `None` unless it has been sent again in vain already.
    #[must_use]
    pub fn until_next_timeout(&self) -> Option<Duration> {
        // Since then the timer runs: after a timeout that segment alone is sent.
        let sent = Duration::from_millis(self.raw.last_data_sent.into());
        let is_timed_out = self.raw.backoff > 0 && self.raw.unacked > 0;
        is_timed_out.then(|| self.rto().saturating_sub(sent))
    }

    /// Segments that were sent and that the peer has not acknowledged.
    #[must_use]
    pub fn unacknowledged_segments(&self) -> u32 {
        self.raw.unacked
    }

    /// Payload bytes that were written and not yet sent (Linux 4.6).
    #[must_use]
    pub fn unsent_bytes(&self) -> Option<u32> {
        let end = offset_of!(RawTcpInfo, notsent_bytes) + size_of::<u32>();
        self.knows(end).then_some(self.raw.notsent_bytes)
    }

    /// The congestion window in segments.
    #[must_use]
    pub fn congestion_window(&self) -> u32 {
        self.raw.snd_cwnd
    }

    /// The effective segment size in bytes.
    #[must_use]
    pub fn sender_mss(&self) -> u32 {
        self.raw.snd_mss
    }

    /// Segments sent again, over the connection's life.
    #[must_use]
    pub fn retransmitted_segments(&self) -> u32 {
        self.raw.total_retrans
    }

    /// Payload bytes sent again, over the connection's life (Linux 4.19).
    #[must_use]
    pub fn retransmitted_bytes(&self) -> Option<u64> {
        let end = offset_of!(RawTcpInfo, bytes_retrans) + size_of::<u64>();
        self.knows(end).then_some(self.raw.bytes_retrans)
    }

    /// Payload bytes that the peer has acknowledged (Linux 4.1).
    #[must_use]
    pub fn acknowledged_bytes(&self) -> Option<u64> {
        let end = offset_of!(RawTcpInfo, bytes_acked) + size_of::<u64>();
        self.knows(end).then_some(self.raw.bytes_acked)
    }

    /// Payload bytes that this end has received in order (Linux 4.1).
    #[must_use]
    pub fn received_bytes(&self) -> Option<u64> {
        let end = offset_of!(RawTcpInfo, bytes_received) + size_of::<u64>();
        self.knows(end).then_some(self.raw.bytes_received)
    }

    /// Retransmission timeouts over the connection's life, those of SYNs among them (Linux 6.7).
    #[must_use]
    pub fn timeouts(&self) -> Option<u16> {
        let end = offset_of!(RawTcpInfo, total_rto) + size_of::<u16>();
        self.knows(end).then_some(self.raw.total_rto)
    }

    /// How long the peer's window was what held the sender back (Linux 4.9).
    #[must_use]
    pub fn limited_by_peer_window(&self) -> Option<Duration> {
        let end = offset_of!(RawTcpInfo, rwnd_limited) + size_of::<u64>();
        self.knows(end)
            .then(|| Duration::from_micros(self.raw.rwnd_limited))
    }

    /// How long the send buffer was what held the sender back (Linux 4.9).
    #[must_use]
    pub fn limited_by_send_buffer(&self) -> Option<Duration> {
        let end = offset_of!(RawTcpInfo, sndbuf_limited) + size_of::<u64>();
        self.knows(end)
            .then(|| Duration::from_micros(self.raw.sndbuf_limited))
    }

    fn knows(&self, end: usize) -> bool {
        self.length >= end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{InterfaceSettings, RouteSocket};
    use crate::testing::fresh_namespace;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// A connection over the loopback device of a namespace.
    fn connection() -> Option<(TcpStream, TcpStream)> {
        fresh_namespace()?
            .run(|| {
                let mut route = RouteSocket::open().expect("netlink");
                let loopback = route.interface("lo").expect("lo");
                let up = InterfaceSettings {
                    up: Some(true),
                    ..InterfaceSettings::default()
                };
                route.configure(loopback, &up).expect("up");
                let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
                let address = listener.local_addr().expect("bound");
                let client = TcpStream::connect(address).expect("connect");
                Some((client, listener.accept().expect("accept").0))
            })
            .expect("enter")
    }

    #[test]
    fn the_kernel_accounts_for_a_transfer() {
        let Some((mut client, mut server)) = connection() else {
            return;
        };
        client.write_all(&[7; 5000]).expect("write");
        server.read_exact(&mut [0; 5000]).expect("read");
        server.write_all(b".").expect("write");
        client.read_exact(&mut [0]).expect("read");
        // The answer carried the acknowledgement.
        let info = TcpInfo::of(&client).expect("TCP_INFO");
        assert_eq!(info.acknowledged_bytes(), Some(5001), "data and SYN");
        assert_eq!(info.unacknowledged_segments(), 0);
        assert!(info.unsent_bytes().is_none_or(|bytes| bytes == 0));
        assert_eq!(info.until_next_timeout(), None);
        // None but on a machine so busy that an acknowledgement took longer than the timeout.
        if info.retransmitted_segments() == 0 {
            assert!(info.retransmitted_bytes().is_none_or(|bytes| bytes == 0));
            assert!(info.timeouts().is_none_or(|timeouts| timeouts == 0));
        }
        assert!(info.rto() >= Duration::from_millis(1) && info.sender_mss() > 500);
    }

    #[test]
    fn a_listening_port_is_seen_and_a_connected_one_is_not() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let seen = || {
            let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"));
            let listener = listener.expect("bind");
            let port = listener.local_addr().expect("bound").port();
            let while_open = is_listening(port).expect("readable");
            drop(listener);
            (while_open, is_listening(port).expect("readable"))
        };
        assert_eq!(namespace.run(seen).expect("enter"), (true, false));
        let established =
            "   1: 0100007F:1F90 0100007F:CD70 01 00000000:00000000 00:00000000 00000000";
        assert!(!listens_on(established, 8080));
        assert!(listens_on(&established.replace(" 01 ", " 0A "), 8080));
    }

    #[test]
    fn congestion_control_is_set_per_socket_and_a_missing_one_is_named() {
        let Some((client, server)) = connection() else {
            return;
        };
        set_congestion_control(&client, "reno").expect("every kernel has reno");
        assert_eq!(congestion_control(&client).expect("readable"), "reno");
        let error = set_congestion_control(&server, "nonesuch").expect_err("no such");
        assert!(error.to_string().contains("\"nonesuch\""), "{error}");
        assert!(error.to_string().contains("reno"), "{error}");
    }
}
