//! Netfilter: packets handed to this process (NFQUEUE), and the rules that hand them over
//! (nftables), without the `nft` or `iptables` programs.
//!
//! Everything here belongs to the network namespace of the thread that opened it, and ends with
//! the process: the rules are owned by a socket, so that the kernel removes them when it closes.

mod message;
pub mod queue;
pub mod rules;
pub mod tracking;

use crate::socket::{Buffer, set_buffer};
use message::{Message, Received};
use netlink_packet_core::NLMSG_ERROR;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::thread::{CapabilitySet, capabilities};
use std::io;

/// Why netfilter does not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum NetfilterError {
    /// The socket does not work.
    #[error("netfilter does not answer")]
    Socket(#[source] io::Error),
    /// An answer cannot be understood.
    #[error("netfilter's answer cannot be understood: {0}")]
    Malformed(&'static str),
    /// The process lacks a capability.
    #[error("not allowed to {request}: run as root, or with {capability}")]
    NotPermitted {
        /// What was asked for.
        request: &'static str,
        /// What it takes.
        capability: &'static str,
    },
    /// Somebody else has the queue.
    #[error("queue {number} is taken by another program")]
    QueueTaken {
        /// Which one.
        number: u16,
    },
    /// Somebody else has such a table.
    #[error("the nftables table \"{name}\" belongs to another program")]
    TableTaken {
        /// Its name.
        name: String,
    },
    /// The kernel refused.
    #[error("cannot {request}")]
    Refused {
        /// What was asked for.
        request: &'static str,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

/// Room for the answer to a request.
const ANSWER: usize = 8192;
/// The sequence number of requests whose answers are waited for; others have none.
const ASKED: u32 = 1;
/// Requests that take effect together are at most so long, in bytes.
const LONGEST_REQUEST: usize = 1 << 20;

/// A netlink conversation with netfilter.
#[derive(Debug)]
struct Conversation {
    socket: Socket,
}

impl Conversation {
    fn open() -> Result<Self, NetfilterError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_NETFILTER)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(Self { socket })
        };
        open().map_err(NetfilterError::Socket)
    }

    /// The number of this end, which no other conversation in the namespace has.
    fn number(&self) -> Result<u32, NetfilterError> {
        let mut own = SocketAddr::new(0, 0);
        let asked = self.socket.get_address(&mut own);
        asked.map_err(NetfilterError::Socket)?;
        Ok(own.port_number())
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.socket, bytes, SendFlags::empty())?;
        Ok(())
    }

    /// What has arrived, without waiting; `None` if nothing has.
    fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(&buffer[..length])),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes room for long requests, as far as the process may.
    fn enlarge(&self) -> io::Result<()> {
        set_buffer(&self.socket, Buffer::Send, LONGEST_REQUEST)
    }

    /// Sends requests, each of which the kernel acknowledges or refuses, and waits for as many
    /// answers as `acknowledged` of them ask for.
    fn ask(
        &self,
        bytes: &[u8],
        acknowledged: usize,
        request: &'static str,
    ) -> Result<(), NetfilterError> {
        let mut buffer = vec![0; ANSWER];
        let outcome = self.ask_among(&mut buffer, bytes, acknowledged, request, |_| Ok(()));
        outcome?.ok_or(NetfilterError::Malformed("it is missing"))
    }

    /// Sends requests and waits for their answers amid other messages.
    ///
    /// `other` sees messages that are no answers. `buffer` has room for the longest one. `None`:
    /// there was no room for the answers.
    fn ask_among(
        &self,
        buffer: &mut [u8],
        bytes: &[u8],
        acknowledged: usize,
        request: &'static str,
        mut other: impl FnMut(&Received<'_>) -> io::Result<()>,
    ) -> Result<Option<()>, NetfilterError> {
        self.send(bytes).map_err(NetfilterError::Socket)?;
        let mut missing = acknowledged;
        while missing > 0 {
            // The kernel answers before sending returns: what is not there does not come.
            let received = rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT);
            let length = match received {
                Ok((length, _)) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(NetfilterError::Socket(errno.into())),
            };
            for answer in message::received(&buffer[..length]) {
                if answer.kind != NLMSG_ERROR {
                    other(&answer).map_err(NetfilterError::Socket)?;
                    continue;
                }
                if answer.sequence != ASKED {
                    // Something that nobody waits for was refused.
                    continue;
                }
                let errno = answer
                    .error()
                    .ok_or(NetfilterError::Malformed("an error without number"))?;
                match errno {
                    0 => missing = missing.saturating_sub(1),
                    errno => return Err(refusal(errno, request)),
                }
            }
        }
        Ok(Some(()))
    }
}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the process has `CAP_NET_ADMIN`; the kernel says "not permitted" of what is another's,
/// too.
fn may_administer() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN))
}

fn refusal(errno: i32, request: &'static str) -> NetfilterError {
    match errno {
        libc::EPERM => NetfilterError::NotPermitted {
            request,
            capability: "CAP_NET_ADMIN",
        },
        errno => NetfilterError::Refused {
            request,
            source: io::Error::from_raw_os_error(errno),
        },
    }
}
