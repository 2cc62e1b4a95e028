//! One end of a conversation: a machine without I/O, and the thread that gives it a socket and the time.

use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::namespace::{Namespace, NamespaceError};
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::timer::Timer;
use outlast_linux::waker::Waker;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// One end of a conversation, without I/O.
pub trait Machine {
    /// A datagram has come.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]);

    /// The time of [`Self::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Instant);

    /// The next datagram to be sent, and where to.
    fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)>;

    /// When the machine wants the time next.
    fn poll_timeout(&mut self) -> Option<Instant>;
}

/// A machine that runs on a thread of its own.
#[derive(Debug)]
pub(crate) struct Running<M> {
    end: Arc<Waker>,
    thread: Option<JoinHandle<io::Result<M>>>,
}

/// A datagram is no longer.
const LONGEST: usize = 65_535;
/// Datagrams taken before the machine may speak.
const BURST: usize = 64;

const TIMER: Token = Token(0);
const SOCKET: Token = Token(1);
const END: Token = Token(2);

/// A socket in `place`, bound to `at`.
pub(crate) fn bind(place: &Namespace, at: SocketAddr) -> io::Result<UdpSocket> {
    let bound = place.run(|| {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    bound.map_err(|error: NamespaceError| io::Error::other(error))?
}

impl<M: Machine + Send + 'static> Running<M> {
    /// Starts `machine` with that socket, which does not block.
    pub(crate) fn start(machine: M, socket: UdpSocket) -> io::Result<Self> {
        let end = Arc::new(Waker::new()?);
        let waker = Arc::clone(&end);
        let thread = thread::Builder::new().name("stranger".into());
        let thread = thread.spawn(move || run(machine, &socket, &waker))?;
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }

    /// Ends it; the machine as it is then.
    pub(crate) fn stop(mut self) -> io::Result<M> {
        self.end.wake();
        let thread = self.thread.take().expect("it is taken here alone");
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<M> Drop for Running<M> {
    fn drop(&mut self) {
        self.end.wake();
    }
}

fn run<M: Machine>(mut machine: M, socket: &UdpSocket, end: &Waker) -> io::Result<M> {
    let mut poller = Poller::new()?;
    let mut timer = Timer::new()?;
    poller.add(&timer, TIMER, Interest::Readable)?;
    poller.add(socket, SOCKET, Interest::Readable)?;
    poller.add(end, END, Interest::Readable)?;
    let mut buffer = vec![0; LONGEST];
    loop {
        let now = clock::now();
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        while let Some((to, datagram)) = machine.poll_transmit(now) {
            // What the kernel does not take is a lost packet: the link may have no carrier.
            let _lost = socket.send_to(&datagram, to);
        }
        timer.set(machine.poll_timeout())?;
        let ready: Vec<Token> = poller.wait()?.map(|ready| ready.token).collect();
        for token in ready {
            match token {
                TIMER => timer.note_expiry(),
                END => return Ok(machine),
                _ => hear(&mut machine, socket, &mut buffer)?,
            }
        }
    }
}

fn hear(machine: &mut impl Machine, socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<()> {
    for _ in 0..BURST {
        match socket.recv_from(buffer) {
            Ok((length, from)) => machine.handle_datagram(clock::now(), from, &buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // An ICMP error about something that was sent: that packet is lost.
            Err(error) if is_of_path(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_of_path(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
    )
}
