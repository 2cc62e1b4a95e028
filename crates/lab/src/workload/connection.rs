//! A TCP connection between the two hosts; every wait ends when the run is stopped.

use super::{Context, Terms};
use crate::error::LabError;
use crate::stop::Stop;
use crate::tuning::Options;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::socket::{
    TcpInfo, congestion_control, set_congestion_control, set_user_timeout,
};
use outlast_linux::ticks::TickCounter;
use outlast_linux::timer::Timer;
use outlast_scenario::Stack;
use outlast_world::Side;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use socket2::{SockAddr, Socket};
use std::io::{self, Read, Write};
use std::sync::PoisonError;

/// Why an operation on a connection did not come to its end.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// The run is stopped.
    Stopped,
    /// The connection is gone.
    Failed(io::Error),
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Connection<'a> {
    socket: Socket,
    stop: &'a Stop,
}

/// Both ends of a connection that the mobile has opened to the fixed host.
#[derive(Debug)]
pub(super) struct Ends<'a> {
    pub(super) mobile: Connection<'a>,
    pub(super) fixed: Connection<'a>,
}

impl Interrupted {
    /// Whether a host gave the connection up, unanswered for too long.
    pub(super) fn is_timeout(&self) -> bool {
        matches!(self, Self::Failed(error) if error.kind() == io::ErrorKind::TimedOut)
    }

    /// What went wrong, in words; nothing did when the run was stopped.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Stopped => None,
            Self::Failed(error) => Some(error.to_string()),
        }
    }
}

impl From<io::Error> for Interrupted {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// What a connection is opened with, ready before its time comes.
#[derive(Debug)]
pub(super) struct Sockets {
    client: Socket,
    listener: Socket,
    /// Where it listens.
    address: SockAddr,
}

impl Sockets {
    /// The sockets of the connection of `cx`.
    pub(super) fn new(cx: &Context<'_>) -> Result<Self, LabError> {
        let listener = cx.fixed.tcp_socket(cx.address(Side::Fixed))?;
        let client = cx.mobile.tcp_socket(cx.address(Side::Fixed))?;
        for socket in [&listener, &client] {
            set_congestion_control(socket, cx.congestion())?;
            if let Some(timeout) = cx.user_timeout {
                set_user_timeout(socket, timeout)?;
            }
        }
        let listen = || {
            listener.bind(&cx.server_address().into())?;
            listener.listen(1)?;
            listener.local_addr()
        };
        let address = listen().map_err(|source| LabError::Socket {
            action: "listen",
            source,
        })?;
        Ok(Self {
            client,
            listener,
            address,
        })
    }
}

/// Opens a connection from the mobile to the fixed host, when its time has come.
///
/// The outer error is the lab's, the inner one the connection's.
pub(super) fn open<'a>(
    cx: &Context<'a>,
    sockets: Sockets,
) -> Result<Result<Ends<'a>, Interrupted>, LabError> {
    let turn = match cx.number {
        0 => wait_for_phase(cx)?,
        _ => wait_to_begin(cx)?,
    };
    match turn {
        Ok(()) => establish(cx, sockets),
        Err(interrupted) => Ok(Err(interrupted)),
    }
}

/// Waits until the kernel's timer wheel stands where the scenario wants it, the handshake
/// considered.
fn wait_for_phase(cx: &Context<'_>) -> Result<Result<(), Interrupted>, LabError> {
    // A workload begins when both ends are there, the accepted one last.
    let Some(phase) = cx.scenario.timer_phase_before(cx.scenario.acceptance()) else {
        return Ok(Ok(()));
    };
    let counter = TickCounter::read().map_err(LabError::Ticks)?;
    let opening = counter.next_from_now(Stack::TIMER_TURN, phase);
    wait_until(cx, opening, "wait for the timer wheel")
}

/// Waits until one of `[[flows]]` is to be opened.
fn wait_to_begin(cx: &Context<'_>) -> Result<Result<(), Interrupted>, LabError> {
    if let Err(interrupted) = wait(cx.stop, &[(cx.opening.as_fd(), PollFlags::IN)]) {
        return Ok(Err(interrupted));
    }
    match cx.opening.at() {
        Some(opening) => wait_until(cx, opening + cx.begin, "wait until a connection begins"),
        None => Ok(Err(Interrupted::Stopped)),
    }
}

fn wait_until(
    cx: &Context<'_>,
    at: Instant,
    action: &'static str,
) -> Result<Result<(), Interrupted>, LabError> {
    if at <= clock::now() {
        return Ok(Ok(()));
    }
    let failed = |source| LabError::Socket { action, source };
    let mut timer = Timer::new().map_err(failed)?;
    timer.set(Some(at)).map_err(failed)?;
    Ok(wait_for_timer(cx.stop, &mut timer))
}

fn establish<'a>(
    cx: &Context<'a>,
    sockets: Sockets,
) -> Result<Result<Ends<'a>, Interrupted>, LabError> {
    let Sockets {
        client,
        listener,
        address,
    } = sockets;
    let connecting = connect(cx, &client, &address)?;
    let accepted = connecting
        .map_err(Interrupted::from)
        .and_then(|()| accept(cx.stop, &client, &listener));
    let server = match accepted {
        Ok(server) => server,
        Err(interrupted) => return Ok(Err(interrupted)),
    };
    // The route's own, which a connection has at first, is that of `[workload]`.
    for socket in [&client, &server] {
        set_congestion_control(socket, cx.congestion())?;
    }
    let info = TcpInfo::of(&client)?;
    cx.note_terms(Terms {
        server_port: address.as_socket().map_or(0, |address| address.port()),
        congestion: congestion_control(&client)?,
        options: Options {
            sack: info.has_sack(),
            timestamps: info.has_timestamps(),
        },
    });
    let end = |socket| Connection {
        socket,
        stop: cx.stop,
    };
    Ok(Ok(Ends {
        mobile: end(client),
        fixed: end(server),
    }))
}

/// Sends the SYN, with the options that the connection is to have.
fn connect(
    cx: &Context<'_>,
    client: &Socket,
    address: &SockAddr,
) -> Result<io::Result<()>, LabError> {
    let (general, own) = (cx.tuning.offered(), Options::of(cx.stack));
    let connect = || {
        cx.note_beginning(clock::now());
        match client.connect(address) {
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => Ok(()),
            outcome => outcome,
        }
    };
    // What is offered is a setting of the host: nobody else may open a connection meanwhile.
    let _turn = cx.turn.lock().unwrap_or_else(PoisonError::into_inner);
    if general == own {
        return Ok(connect());
    }
    cx.mobile.run(|| {
        own.apply()?;
        let outcome = connect();
        general.apply()?;
        Ok(outcome)
    })?
}

/// Waits for the handshake, and hands out the fixed host's end.
fn accept(stop: &Stop, client: &Socket, listener: &Socket) -> Result<Socket, Interrupted> {
    wait(stop, &[(client.as_fd(), PollFlags::OUT)])?;
    if let Some(error) = client.take_error()? {
        return Err(error.into());
    }
    wait(stop, &[(listener.as_fd(), PollFlags::IN)])?;
    let (server, _) = listener.accept()?;
    server.set_nonblocking(true)?;
    server.set_tcp_nodelay(true)?;
    Ok(server)
}

impl Connection<'_> {
    /// Reads what there is, waiting for it; zero at the end of the stream.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Interrupted> {
        loop {
            // A stream that never runs dry would outlast the run, and end when its sender stops.
            if self.stop.is_pulled() {
                return Err(Interrupted::Stopped);
            }
            match self.socket.read(buffer) {
                Ok(0) if self.stop.is_pulled() => return Err(Interrupted::Stopped),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.stop, &[(self.socket.as_fd(), PollFlags::IN)])?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Writes all of `bytes`, waiting for room.
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Interrupted> {
        while !bytes.is_empty() {
            if self.stop.is_pulled() {
                return Err(Interrupted::Stopped);
            }
            match self.socket.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.stop, &[(self.socket.as_fd(), PollFlags::OUT)])?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until there is something to read, or the timer has expired; whether it has.
    pub(super) fn wait_or_timer(&self, timer: &Timer) -> Result<bool, Interrupted> {
        let fds = [
            (self.socket.as_fd(), PollFlags::IN),
            (timer.as_fd(), PollFlags::IN),
        ];
        Ok(wait(self.stop, &fds)? == 1)
    }

    /// Waits until the timer has expired, whatever the peer sends meanwhile.
    pub(super) fn wait_for_tick(&self, timer: &Timer) -> Result<(), Interrupted> {
        // Errors are always reported.
        let fds = [
            (self.socket.as_fd(), PollFlags::empty()),
            (timer.as_fd(), PollFlags::IN),
        ];
        match wait(self.stop, &fds)? {
            0 => Err(self.end()),
            _ => Ok(()),
        }
    }

    /// Waits until the run is stopped or the connection is gone; what else the peer may say is
    /// not waited for.
    pub(super) fn wait_for_end(&self) -> Interrupted {
        match wait(self.stop, &[(self.socket.as_fd(), PollFlags::empty())]) {
            Ok(_) => self.end(),
            Err(interrupted) => interrupted,
        }
    }

    /// How the connection ended.
    fn end(&self) -> Interrupted {
        match self.socket.take_error() {
            Ok(Some(error)) | Err(error) => Interrupted::Failed(error),
            // The peer has closed: it has all that it wants.
            Ok(None) => Interrupted::Stopped,
        }
    }

    /// The kernel's account.
    pub(super) fn info(&self) -> Result<TcpInfo, LabError> {
        Ok(TcpInfo::of(&self.socket)?)
    }
}

/// Waits for the first of `fds` that is ready, and answers which; no wait outlives the run.
pub(super) fn wait(stop: &Stop, fds: &[(BorrowedFd<'_>, PollFlags)]) -> Result<usize, Interrupted> {
    let mut all: Vec<_> = fds
        .iter()
        .map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
        .collect();
    all.extend(
        [Some(stop), stop.run()]
            .into_iter()
            .flatten()
            .map(|stop| PollFd::new(stop, PollFlags::IN)),
    );
    loop {
        match poll(&mut all, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(Interrupted::Failed(errno.into())),
        }
        if stop.is_pulled() {
            return Err(Interrupted::Stopped);
        }
        if let Some(ready) = all.iter().position(|fd| !fd.revents().is_empty()) {
            return Ok(ready);
        }
    }
}

/// Waits until `timer` has expired.
pub(super) fn wait_for_timer(stop: &Stop, timer: &mut Timer) -> Result<(), Interrupted> {
    wait(stop, &[(timer.as_fd(), PollFlags::IN)])?;
    timer.consume()?;
    Ok(())
}
