//! Honest transfers across the gateway, and what became of each.
//!
//! A host sends a payload and says that it was all; its peer reads until then, compares what it read, and
//! closes, which the sender waits for. So both ends know that the transfer was whole, or have an error.

use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_scenario::{Direction, IpVersion};
use outlast_testbed::site::{Place, Site};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What became of a transfer.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The receiver has what was sent, and both ends know it.
    Intact,
    /// Both ends were told by an error.
    Broken,
    /// One end was told by an error, and the other one believes that all is well.
    HalfBroken,
    /// An end heard nothing for [`STALLED`], or the receiver had not all of it after [`LONGEST`].
    Hung,
    /// The receiver has something else than was sent.
    Damaged,
}

/// A transfer that has ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Transferred {
    /// Which way its payload goes.
    pub direction: Direction,
    /// What became of it.
    pub outcome: Outcome,
    /// From the round's begin until its receiver had all of it, or until both ends had ended, in seconds.
    pub elapsed_s: f64,
}

/// An end that nothing comes to or leaves for so long is given up: several times the longest timeout
/// that an outage of seconds brings about.
pub const STALLED: Duration = Duration::from_secs(60);
/// A transfer that goes on for longer is given up: a hundred times what it takes of the link.
pub const LONGEST: Duration = Duration::from_secs(120);
/// How long a connection may take to open.
const PATIENCE: Duration = Duration::from_secs(20);

/// A kind of transfer.
#[derive(Clone, Copy, Debug)]
struct Kind {
    direction: Direction,
    version: IpVersion,
    /// The mobile host opens the connection.
    is_of_mobile: bool,
}

/// Both directions, both versions of IP, opened by either host.
const KINDS: [Kind; 4] = [
    Kind {
        direction: Direction::Download,
        version: IpVersion::V4,
        is_of_mobile: true,
    },
    Kind {
        direction: Direction::Upload,
        version: IpVersion::V4,
        is_of_mobile: false,
    },
    Kind {
        direction: Direction::Download,
        version: IpVersion::V6,
        is_of_mobile: false,
    },
    Kind {
        direction: Direction::Upload,
        version: IpVersion::V6,
        is_of_mobile: true,
    },
];

/// Two hosts' ends of a connection, seen from the gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// The fixed host's.
    pub(super) fixed: SocketAddr,
    /// The mobile host's.
    pub(super) mobile: SocketAddr,
}

/// A connection that is open and has carried nothing.
#[derive(Debug)]
pub(super) struct Open {
    kind: Kind,
    sender: TcpStream,
    receiver: TcpStream,
    /// Its addresses and ports.
    pub(super) ends: Ends,
}

/// Opens a connection of each kind.
pub(super) fn open(site: &Site) -> io::Result<Vec<Open>> {
    KINDS.iter().map(|&kind| Open::new(site, kind)).collect()
}

impl Open {
    fn new(site: &Site, kind: Kind) -> io::Result<Self> {
        let (client, server, at) = match kind.is_of_mobile {
            true => (&site.mobile, &site.fixed, Place::Fixed),
            false => (&site.fixed, &site.mobile, Place::Mobile),
        };
        let at = SocketAddr::new(at.address(kind.version), 0);
        let listener = inside(server, || TcpListener::bind(at))?;
        let at = listener.local_addr()?;
        let near = inside(client, || connect(at))?;
        let (far, _) = listener.accept()?;
        let (mobile, fixed) = if kind.is_of_mobile {
            (near, far)
        } else {
            (far, near)
        };
        let ends = Ends {
            fixed: fixed.local_addr()?,
            mobile: mobile.local_addr()?,
        };
        let (sender, receiver) = match kind.direction {
            Direction::Download => (fixed, mobile),
            Direction::Upload => (mobile, fixed),
        };
        for end in [&sender, &receiver] {
            end.set_read_timeout(Some(STALLED))?;
            end.set_write_timeout(Some(STALLED))?;
        }
        Ok(Self {
            kind,
            sender,
            receiver,
            ends,
        })
    }

    /// Its two sockets, to [end](end) it by.
    pub(super) fn sockets(&self) -> io::Result<[TcpStream; 2]> {
        Ok([self.sender.try_clone()?, self.receiver.try_clone()?])
    }

    /// Sends `payload` from `begin` on, and sees it come to its end.
    fn carry(mut self, payload: &[u8], begin: Instant) -> Transferred {
        let (sent, (received, read)) = thread::scope(|scope| {
            let receiver = &mut self.receiver;
            let receiving = scope.spawn(move || receive(receiver, begin + LONGEST));
            let sent = send(&mut self.sender, payload);
            let received = receiving
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (sent, received)
        });
        let is_same = blake3::hash(payload) == read.hash;
        Transferred {
            direction: self.kind.direction,
            outcome: Outcome::of(&sent, &received, is_same),
            elapsed_s: read.ended.since(begin).as_secs_f64(),
        }
    }
}

/// Opens a connection to `at`. On a busy machine the emulated link may carry the answer of the neighbour
/// discovery too late after a flood: then the kernel looks for the neighbour again with the next SYN.
fn connect(at: SocketAddr) -> io::Result<TcpStream> {
    let given_up = clock::now() + PATIENCE;
    loop {
        match TcpStream::connect_timeout(&at, PATIENCE) {
            Err(error) if error.kind() == ErrorKind::HostUnreachable && clock::now() < given_up => {
            }
            ended => return ended,
        }
    }
}

/// Carries `payload` over each connection at once.
pub(super) fn carry(all: Vec<Open>, payload: &[u8], begin: Instant) -> Vec<Transferred> {
    thread::scope(|scope| {
        let threads: Vec<_> = all
            .into_iter()
            .map(|open| scope.spawn(move || open.carry(payload, begin)))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    })
}

/// Ends transfers early, whose outcome nobody wants any more.
pub(super) fn end(sockets: &[[TcpStream; 2]]) {
    for socket in sockets.iter().flatten() {
        // It has ended by itself otherwise.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

/// What a receiver has read.
struct HashedRead {
    hash: blake3::Hash,
    ended: Instant,
}

fn send(stream: &mut TcpStream, payload: &[u8]) -> io::Result<()> {
    stream.write_all(payload)?;
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

fn receive(stream: &mut TcpStream, given_up: Instant) -> (io::Result<()>, HashedRead) {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    let result = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break stream.shutdown(Shutdown::Write),
            // As a read that has waited for too long.
            Ok(_) if clock::now() > given_up => break Err(ErrorKind::WouldBlock.into()),
            Ok(length) => {
                hasher.update(&buffer[..length]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    let read = HashedRead {
        hash: hasher.finalize(),
        ended: clock::now(),
    };
    (result, read)
}

impl Outcome {
    fn of(sent: &io::Result<()>, received: &io::Result<()>, is_same: bool) -> Self {
        // What a socket says whose timeout ran out; the kernel's own giving up is an error as any other.
        let is_stalled = |end: &io::Result<()>| {
            end.as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        match (sent, received) {
            _ if is_stalled(sent) || is_stalled(received) => Self::Hung,
            (_, Ok(())) if !is_same => Self::Damaged,
            (Ok(()), Ok(())) => Self::Intact,
            (Err(_), Err(_)) => Self::Broken,
            (Ok(()), Err(_)) | (Err(_), Ok(())) => Self::HalfBroken,
        }
    }
}

fn inside<T: Send>(
    place: &Namespace,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    place.run(work).map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_told_by_both_ends_and_by_what_came() {
        let ok = || Ok(());
        let reset = || Err(ErrorKind::ConnectionReset.into());
        let stalled = || Err(ErrorKind::WouldBlock.into());
        let of = |sent: io::Result<()>, received: io::Result<()>, is_same| {
            Outcome::of(&sent, &received, is_same)
        };
        assert_eq!(of(ok(), ok(), true), Outcome::Intact);
        assert_eq!(of(ok(), ok(), false), Outcome::Damaged);
        assert_eq!(of(reset(), ok(), false), Outcome::Damaged);
        assert_eq!(of(reset(), ok(), true), Outcome::HalfBroken);
        assert_eq!(of(reset(), reset(), false), Outcome::Broken);
        assert_eq!(of(stalled(), reset(), false), Outcome::Hung);
    }
}
