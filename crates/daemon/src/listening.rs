//! Listening at addresses of this host, also before it has them: when a machine starts, the daemon
//! may be there before its addresses are. And what becomes of who connects when there are no
//! descriptors left.

use outlast_base::time::{Duration, Instant};
use outlast_linux::poller::{Interest, Poller, Token};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};

/// Clients that may wait.
const BACKLOG: i32 = 128;
/// So long nobody is listened for whom there are no descriptors to send away.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens at `own` for what `what` names; what goes to those who connect bears `mark`, if it is
/// not zero. Where this host lacks the address, it is told of, and listened at once it is there.
pub(super) fn listen(what: &str, own: SocketAddr, mark: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(own), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    if mark != 0 {
        socket.set_mark(mark)?;
    }
    socket.set_reuse_address(true)?;
    let address = SockAddr::from(own);
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            match own {
                SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
                SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
            }
            socket.bind(&address)?;
            tracing::warn!("{what} at {own}: this host has no such address yet; waiting for it");
        }
        outcome => outcome?,
    }
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// Where clients are listened for.
pub(super) trait Listener: AsFd {
    /// Who connects.
    type Client;

    /// The next client, without waiting.
    fn accept(&self) -> io::Result<Self::Client>;
}

impl Listener for TcpListener {
    type Client = (TcpStream, SocketAddr);

    fn accept(&self) -> io::Result<Self::Client> {
        Self::accept(self)
    }
}

impl Listener for UnixListener {
    type Client = UnixStream;

    fn accept(&self) -> io::Result<Self::Client> {
        Self::accept(self).map(|(stream, _)| stream)
    }
}

/// Who waits and cannot be accepted is announced again and again. Where descriptors are lacking he is
/// sent away instead, by one that is kept for that; where that does not help either, nobody is
/// listened for until a pause is over.
#[derive(Debug)]
pub(super) struct Door<L> {
    listener: L,
    token: Token,
    /// A descriptor for when there is no other.
    spare: Option<OwnedFd>,
    /// Until then it is shut.
    opens_at: Option<Instant>,
}

impl<L: Listener> Door<L> {
    /// Listens from now on; `token` is how `poller` calls that.
    pub(super) fn open(listener: L, token: Token, poller: &Poller) -> io::Result<Self> {
        poller.add(&listener, token, Interest::Readable)?;
        Ok(Self {
            listener,
            token,
            spare: Some(new_spare()?),
            opens_at: None,
        })
    }

    pub(super) const fn listener(&self) -> &L {
        &self.listener
    }

    /// The next one who connects, if there is one; the error with which he was not let in.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        poller: &Poller,
    ) -> io::Result<Option<L::Client>> {
        let error = match self.listener.accept() {
            Ok(client) => return Ok(Some(client)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => error,
        };
        if is_lack(&error) && !self.send_away() {
            poller.remove(&self.listener)?;
            self.opens_at = Some(now + PAUSE);
        }
        Err(error)
    }

    /// Closes the connection of whoever waits; whether that could be done, or he has gone himself.
    fn send_away(&mut self) -> bool {
        self.spare = None;
        let is_lacking = self.listener.accept().is_err_and(|error| is_lack(&error));
        // Where somebody else was faster there is none, and may be the next time.
        self.spare = new_spare().ok();
        !is_lacking
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.opens_at
    }

    /// Opens a door that was shut for long enough.
    pub(super) fn handle_timeout(&mut self, now: Instant, poller: &Poller) {
        if self.opens_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        if self.spare.is_none() {
            self.spare = new_spare().ok();
        }
        if let Err(error) = poller.add(&self.listener, self.token, Interest::Readable) {
            tracing::warn!(%error, "cannot listen for clients");
            self.opens_at = Some(now + PAUSE);
        }
    }
}

fn new_spare() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
}

/// Whether it is this process or the host that lacks something, and the client still waits.
fn is_lack(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_linux::waker::Waker;
    use std::cell::Cell;

    /// Somebody waits, and there is what it takes to let him in, or not.
    struct Waiting {
        listener: UnixListener,
        lack: Cell<Option<Errno>>,
    }

    impl AsFd for Waiting {
        fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
            self.listener.as_fd()
        }
    }

    impl Listener for Waiting {
        type Client = UnixStream;

        fn accept(&self) -> io::Result<UnixStream> {
            match self.lack.get() {
                Some(lack) => Err(lack.into()),
                None => Listener::accept(&self.listener),
            }
        }
    }

    #[test]
    fn who_can_be_neither_let_in_nor_sent_away_is_not_announced_for_a_while() {
        const DOOR: Token = Token(1);
        const OTHERS: Token = Token(2);
        let place = tempfile::tempdir().expect("a place");
        let path = place.path().join("door.sock");
        for lack in [Errno::NFILE, Errno::MFILE, Errno::NOBUFS, Errno::NOMEM] {
            let waiting = Waiting {
                listener: UnixListener::bind(&path).expect("ours"),
                lack: Cell::new(Some(lack)),
            };
            let _client = UnixStream::connect(&path).expect("it listens");
            let mut poller = Poller::new().expect("epoll");
            let others = Waker::new().expect("eventfd");
            poller
                .add(&others, OTHERS, Interest::Readable)
                .expect("add");
            others.wake();
            let mut door = Door::open(waiting, DOOR, &poller).expect("descriptors");
            let is_announced = |poller: &mut Poller| {
                let mut ready = poller.wait().expect("epoll");
                ready.any(|ready| ready.token == DOOR)
            };
            assert!(is_announced(&mut poller));
            let now = Instant::from_millis(5);
            assert!(door.accept(now, &poller).is_err());
            assert!(!is_announced(&mut poller), "{lack}");
            let opens = door.poll_timeout().expect("some time");
            door.handle_timeout(now, &poller);
            assert!(!is_announced(&mut poller), "{lack}: too early");
            door.handle_timeout(opens, &poller);
            assert!(is_announced(&mut poller), "{lack}");
            assert_eq!(door.poll_timeout(), None);
            door.listener().lack.set(None);
            let let_in = door.accept(opens, &poller).expect("nothing lacks");
            assert!(let_in.is_some());
            std::fs::remove_file(&path).expect("ours");
        }
    }

    #[test]
    fn an_address_may_come_later_and_a_port_is_one_s_own() {
        // For documentation: no host has these (RFC 5737, RFC 3849).
        for own in ["192.0.2.77:0", "[2001:db8::77]:0"] {
            let own: SocketAddr = own.parse().expect("literal");
            let listener = listen("a test", own, 0).expect("it may come");
            let taken = listener.local_addr().expect("bound");
            assert_eq!(taken.ip(), own.ip());
            let second = listen("another", taken, 0).expect_err("the port is taken");
            assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        }
    }
}
