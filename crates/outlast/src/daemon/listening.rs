//! Listening at addresses of this host, also before it has them: when a machine starts, the daemon
//! may be there before its addresses are. And what becomes of who connects when there are no
//! descriptors left.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Clients that may wait.
const BACKLOG: i32 = 128;

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

/// A descriptor for when there is no other. Who waits and cannot be accepted is announced again and
/// again; with this it is sent away instead.
#[derive(Debug)]
pub(super) struct Spare(Option<OwnedFd>);

impl Spare {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Some(eventfd(0, EventfdFlags::CLOEXEC)?)))
    }

    /// After `error`, with which somebody was not accepted: where descriptors are lacking, `accept`
    /// takes whoever waits, to close the connection.
    pub(super) fn send_away<T>(
        &mut self,
        error: &io::Error,
        accept: impl FnOnce() -> io::Result<T>,
    ) {
        let errno = Errno::from_io_error(error);
        if !matches!(errno, Some(Errno::MFILE | Errno::NFILE)) {
            return;
        }
        self.0 = None;
        // Who has gone meanwhile needs not be sent away.
        drop(accept());
        // Where somebody else was faster there is none, and may be the next time.
        self.0 = eventfd(0, EventfdFlags::CLOEXEC).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
