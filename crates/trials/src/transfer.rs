//! A transfer between the mobile host and the fixed host over the kernel's TCP, and when what of it was read.

use crate::gateway_matrix::trial::TrialError;
use outlast_base::time::{Duration, Instant};
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::socket;
use outlast_scenario::{Congestion, Direction};
use rustix::net::{self, AddressFamily, Protocol, SocketFlags, SocketType, ipproto, socket_with};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// How long a read or a write waits before it looks whether it is given up.
const LOOK: Duration = Duration::from_millis(200);

/// Connections that wait to be accepted: there is one.
const BACKLOG: i32 = 1;

/// Which of the kernel's transports carries a transfer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transport {
    /// TCP.
    Tcp,
    /// Multipath TCP (RFC 8684).
    MultipathTcp,
}

impl Transport {
    const fn protocol(self) -> Protocol {
        match self {
            Self::Tcp => ipproto::TCP,
            Self::MultipathTcp => ipproto::MPTCP,
        }
    }

    fn socket(self, at: SocketAddr) -> io::Result<OwnedFd> {
        let family = match at {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC;
        let protocol = Some(self.protocol());
        Ok(socket_with(family, SocketType::STREAM, flags, protocol)?)
    }

    fn listen(self, at: SocketAddr) -> io::Result<TcpListener> {
        let socket = self.socket(at)?;
        net::bind(&socket, &at)?;
        net::listen(&socket, BACKLOG)?;
        Ok(socket.into())
    }

    fn connect(self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = self.socket(to)?;
        net::connect(&socket, &to)?;
        Ok(socket.into())
    }
}

/// What the receiver has seen.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// When the application read how many bytes.
    pub(crate) reads: Vec<(Instant, usize)>,
    /// The hash of all of them.
    pub(crate) hash: Option<blake3::Hash>,
    /// The sender has said that this is all.
    pub(crate) is_complete: bool,
}

/// A transfer that is going on.
pub(crate) struct Transfer {
    receiver: JoinHandle<io::Result<Received>>,
    sender: JoinHandle<io::Result<()>>,
    /// The sender's socket, for its kernel's word.
    socket: TcpStream,
    /// Bytes that the receiver has read.
    read: Arc<AtomicU64>,
    is_given_up: Arc<AtomicBool>,
    /// The mobile host's address of the connection.
    pub(crate) own: IpAddr,
    /// The congestion control that the kernel says that the sender has.
    pub(crate) congestion: String,
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "transfer",
        source,
    }
}

fn inside<T: Send>(
    place: &Namespace,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, TrialError> {
    place.run(work).map_err(LabError::from)?.map_err(io_error)
}

impl Transfer {
    /// Connects from the mobile host to the fixed one, and begins.
    pub(crate) fn begin(
        (fixed, fixed_address): (&Namespace, IpAddr),
        mobile: &Namespace,
        direction: Direction,
        (transport, congestion): (Transport, Congestion),
        payload: Vec<u8>,
    ) -> Result<Self, TrialError> {
        let at = SocketAddr::new(fixed_address, 0);
        let listener = inside(fixed, || transport.listen(at))?;
        let at = listener.local_addr().map_err(io_error)?;
        let near = inside(mobile, || transport.connect(at))?;
        // The handshake is over: it is there.
        let (far, _) = listener.accept().map_err(io_error)?;
        let own = near.local_addr().map_err(io_error)?.ip();
        let (out, into) = match direction {
            Direction::Download => (far, near),
            Direction::Upload => (near, far),
        };
        let set = socket::set_congestion_control(&out, congestion.name());
        set.map_err(|error| io_error(io::Error::other(error)))?;
        let in_force = socket::congestion_control(&out);
        let in_force = in_force.map_err(|error| io_error(io::Error::other(error)))?;
        for stream in [&out, &into] {
            stream.set_read_timeout(Some(LOOK)).map_err(io_error)?;
            stream.set_write_timeout(Some(LOOK)).map_err(io_error)?;
        }
        let socket = out.try_clone().map_err(io_error)?;
        let (read, is_given_up) = <(Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        let (count, over) = (Arc::clone(&read), Arc::clone(&is_given_up));
        let receiver = thread::spawn(move || receive(into, &count, &over));
        let over = Arc::clone(&is_given_up);
        let sender = thread::spawn(move || send(out, &payload, &over));
        Ok(Self {
            receiver,
            sender,
            socket,
            read,
            is_given_up,
            own,
            congestion: in_force,
        })
    }

    /// Bytes that the receiver has read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Waits for the end, but no longer than until `deadline`.
    pub(crate) fn end(
        self,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<(Received, Option<u16>), TrialError> {
        let mut result = Ok(());
        while !self.receiver.is_finished() && clock::now() < deadline && result.is_ok() {
            result = crate::gateway_matrix::wait(cancel, None, LOOK).map(drop);
        }
        self.is_given_up.store(true, Ordering::Relaxed);
        let received = joined(self.receiver);
        let timeouts = socket::TcpInfo::of(&self.socket).ok();
        let sent = joined(self.sender);
        result?;
        sent.map_err(io_error)?;
        let timeouts = timeouts.and_then(|info| info.timeouts());
        Ok((received.map_err(io_error)?, timeouts))
    }
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    let panicked = |panic| std::panic::resume_unwind(panic);
    thread.join().unwrap_or_else(panicked)
}

/// Whether an error says no more than that it is time to look.
fn is_only_time(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn receive(mut stream: TcpStream, count: &AtomicU64, over: &AtomicBool) -> io::Result<Received> {
    let mut received = Received::default();
    let mut hash = blake3::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => {
                received.is_complete = true;
                break;
            }
            Ok(length) => {
                received.reads.push((clock::now(), length));
                count.fetch_add(length as u64, Ordering::Relaxed);
                hash.update(&buffer[..length]);
            }
            Err(error) if is_only_time(&error) => {}
            Err(error) => return Err(error),
        }
    }
    received.hash = Some(hash.finalize());
    Ok(received)
}

fn send(mut stream: TcpStream, payload: &[u8], over: &AtomicBool) -> io::Result<()> {
    let mut at = 0;
    while at < payload.len() && !over.load(Ordering::Relaxed) {
        match stream.write(&payload[at..]) {
            Ok(length) => at += length,
            Err(error) if is_only_time(&error) => {}
            // A receiver that has given up resets the connection: it has not read all.
            Err(_) if over.load(Ordering::Relaxed) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    match stream.shutdown(Shutdown::Write) {
        Err(_) if over.load(Ordering::Relaxed) => Ok(()),
        outcome => outcome,
    }
}
