//! Something to interrupt.

use super::{seen, until, wait};
use crate::support::again;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::socket::TcpInfo;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

/// Where a sender waits while it is closed.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    door: Mutex<Door>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct Door {
    is_closed: bool,
    somebody_waits: bool,
}

impl Gate {
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while it is closed.
    pub(crate) fn pass(&self) {
        let mut door = self.door();
        door.somebody_waits = door.is_closed;
        drop(
            self.opened
                .wait_while(door, |door| door.is_closed)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Closes it, and waits for the sender to come.
    #[track_caller]
    pub(crate) fn stop(&self) {
        *self.door() = Door {
            is_closed: true,
            somebody_waits: false,
        };
        until("the sender at the gate", || self.door().somebody_waits);
    }

    pub(crate) fn open(&self) {
        self.door().is_closed = false;
        self.opened.notify_all();
    }
}

/// Whether everything that was written to a socket has been acknowledged.
pub(crate) fn is_acknowledged(out: &TcpStream) -> bool {
    let info = TcpInfo::of(out).expect("a TCP socket");
    info.unacknowledged_segments() == 0 && info.unsent_bytes().expect("Linux 4.6") == 0
}

/// Bytes that a sender believes to have arrived, with its SYN.
pub(crate) fn acknowledged(out: &TcpStream) -> u64 {
    let info = TcpInfo::of(out).expect("a TCP socket");
    info.acknowledged_bytes().expect("Linux 4.1")
}

/// A paced transfer between two hosts, which goes on until its end is waited for.
pub(crate) struct Transfer {
    reads: mpsc::Receiver<Arrival>,
    /// The sending socket.
    out: TcpStream,
    /// What both ends and the test know of it.
    shared: Arc<Shared>,
    sender: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<io::Result<()>>,
    got: usize,
}

#[derive(Debug, Default)]
struct Shared {
    gate: Gate,
    /// Once everything has been written, it may end.
    is_enough: AtomicBool,
    written: AtomicUsize,
    read: AtomicUsize,
}

/// Bytes that the receiving application got.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    bytes: usize,
}

/// Bytes that the sending application writes at a time, and how often.
const CHUNK: usize = 32 << 10;
const PACE: Duration = Duration::from_millis(10);
/// An end of a transfer that nothing comes to, or leaves, for so long is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// A sender that does not try for so long has nothing to do with what happens at once, however much
/// else the machine does.
const LONG: Duration = Duration::from_secs(5);
/// The kernel's timers count in ticks, and tell whole milliseconds.
const TICK: Duration = Duration::from_millis(25);

/// After so many bytes the content begins anew.
const PERIOD: usize = 251 * 256;

/// The content, twice.
fn content() -> Vec<u8> {
    (0..2 * PERIOD).map(|n| (n / 251 + n) as u8).collect()
}

/// Whether `bytes` are the content from `at` on.
fn is_content(content: &[u8], at: usize, bytes: &[u8]) -> bool {
    let mut at = at % PERIOD;
    bytes.chunks(PERIOD).all(|piece| {
        let is_it = content[at..].starts_with(piece);
        at = (at + piece.len()) % PERIOD;
        is_it
    })
}

impl Shared {
    fn send(&self, out: &mut TcpStream, length: usize) -> io::Result<()> {
        let content = content();
        let mut written = 0;
        while written < length || !self.is_enough.load(Ordering::Acquire) {
            self.gate.pass();
            out.write_all(&content[written % PERIOD..][..CHUNK])?;
            written += CHUNK;
            self.written.store(written, Ordering::Release);
            wait(PACE);
        }
        // A socket that was reset is not connected; what it was told is another error.
        let told = |error| out.take_error().ok().flatten().unwrap_or(error);
        out.shutdown(Shutdown::Write).map_err(told)
    }

    fn receive(&self, input: &mut TcpStream, arrivals: &mpsc::Sender<Arrival>) -> io::Result<()> {
        let content = content();
        let mut buffer = vec![0; 1 << 20];
        let mut read = 0;
        loop {
            let bytes = again(|| input.read(&mut buffer))?;
            let at = clock::now();
            if !is_content(&content, read, &buffer[..bytes]) {
                return Err(io::Error::other("what arrived is not what was sent"));
            }
            read += bytes;
            self.read.store(read, Ordering::Release);
            // Nobody counts any more once the test waits for the end.
            let _ = arrivals.send(Arrival { at, bytes });
            if bytes == 0 {
                return Ok(());
            }
        }
    }
}

/// Both ends of a connection that a program at `from` has opened to one at `to`. On a busy machine the links of a new path are
/// not up at once: until then there is no way.
pub(crate) fn connected(
    from: &Namespace,
    to: &Namespace,
    address: IpAddr,
) -> (TcpStream, TcpStream) {
    connected_at(from, to, SocketAddr::new(address, 0))
}

/// Both ends of a connection to a port of a program's choice, or, where it is zero, of the kernel's.
pub(crate) fn connected_at(
    from: &Namespace,
    to: &Namespace,
    address: SocketAddr,
) -> (TcpStream, TcpStream) {
    let listen = || TcpListener::bind(address).expect("bind");
    let listener = to.run(listen).expect("enter");
    let server = listener.local_addr().expect("bound");
    let deadline = clock::now() + PATIENCE;
    let connect = || loop {
        match TcpStream::connect(server) {
            // The kernel has asked for its neighbour for three seconds.
            Err(error)
                if error.kind() == io::ErrorKind::HostUnreachable && clock::now() < deadline => {}
            connected => break connected.expect("connect"),
        }
    };
    let near = from.run(connect).expect("enter");
    let (far, _) = listener.accept().expect("accept");
    (near, far)
}

impl Transfer {
    /// From `from` to `to`, at least `length` bytes at about 3 MB/s.
    pub(crate) fn start(from: &Namespace, to: &Namespace, address: IpAddr, length: usize) -> Self {
        let (out, input) = connected(from, to, address);
        Self::over(out, input, length)
    }

    /// Sends at least `length` bytes over an open connection, from `out` to `input`.
    pub(crate) fn over(out: TcpStream, mut input: TcpStream, length: usize) -> Self {
        let mut writer = out.try_clone().expect("descriptor");
        for end in [&out, &input] {
            end.set_read_timeout(Some(PATIENCE)).expect("not zero");
            end.set_write_timeout(Some(PATIENCE)).expect("not zero");
        }
        let shared = Arc::new(Shared::default());
        let ours = shared.clone();
        let sender = std::thread::spawn(move || ours.send(&mut writer, length));
        let (arrivals, reads) = mpsc::channel();
        let ours = shared.clone();
        let receiver = std::thread::spawn(move || ours.receive(&mut input, &arrivals));
        Self {
            reads,
            out,
            shared,
            sender,
            receiver,
            got: 0,
        }
    }

    /// Waits until the receiver has `bytes`.
    pub(crate) fn wait_for(&mut self, bytes: usize) {
        while self.got < bytes {
            let arrival = self.reads.recv().expect("it goes on");
            assert!(arrival.bytes > 0, "it ended with {} bytes", self.got);
            self.got += arrival.bytes;
        }
    }

    /// Stops the sender, and waits until the receiver has everything and nothing is on its way.
    #[track_caller]
    pub(crate) fn pause(&self) {
        let Shared {
            gate,
            written,
            read,
            ..
        } = &*self.shared;
        gate.stop();
        until("everything that was sent", || {
            read.load(Ordering::Acquire) == written.load(Ordering::Acquire)
                && is_acknowledged(&self.out)
        });
    }

    /// Lets the sender go on.
    pub(crate) fn go_on(&self) {
        self.shared.gate.open();
    }

    /// Lets the sender go on where nothing gets to the receiver, and waits until it believes that
    /// something has.
    #[track_caller]
    pub(crate) fn go_on_in_vain(&self) {
        let before = acknowledged(&self.out);
        self.go_on();
        let is_told = || acknowledged(&self.out) > before;
        until("an acknowledgement that is not the receiver's", is_told);
    }

    /// Whether the sender was told of an error.
    pub(crate) fn is_broken(&self) -> bool {
        self.sender.is_finished()
    }

    /// Bytes that the sender knows to have arrived.
    pub(crate) fn acknowledged(&self) -> u64 {
        acknowledged(&self.out)
    }

    /// Waits until the sender has tried `times` in vain.
    #[track_caller]
    pub(crate) fn wait_for_backoff(&self, times: u8) {
        until("timeouts in vain", || {
            let info = TcpInfo::of(&self.out).expect("a TCP socket");
            info.backoff() >= times
        });
    }

    /// Waits until the sender has tried in vain so often that it does not try again by itself for
    /// long; when it will.
    #[track_caller]
    pub(crate) fn wait_for_long_timeout(&self) -> Instant {
        seen("a long timeout", || self.long_timeout())
    }

    /// When the sender will try again by itself, if that is not for long.
    pub(crate) fn long_timeout(&self) -> Option<Instant> {
        self.timeout_after(LONG)
    }

    /// The sender's own next retransmission; `None` if that is due before `shortest`.
    pub(crate) fn timeout_after(&self, shortest: Duration) -> Option<Instant> {
        let now = clock::now();
        let info = TcpInfo::of(&self.out).expect("a TCP socket");
        let rest = info.until_next_timeout()?;
        (rest >= shortest).then(|| now + rest)
    }

    /// When the receiver got something new for the first time after `up`.
    pub(crate) fn resumed(&mut self, up: Instant) -> Instant {
        loop {
            let arrival = self.reads.recv().expect("it goes on");
            self.got += arrival.bytes;
            if arrival.at >= up && arrival.bytes > 0 {
                return arrival.at;
            }
        }
    }

    /// Checks that somebody else has made the transfer go on after `up`: long before the sender tries
    /// again by itself, `by_itself`.
    #[track_caller]
    pub(crate) fn assert_resumes_before(&mut self, by_itself: Instant, up: Instant) {
        let resumed = self.resumed(up);
        assert!(
            resumed + TICK < by_itself,
            "{:?} after the link's return; {:?} after it the sender tries by itself",
            resumed.since(up),
            by_itself.since(up)
        );
    }

    /// Checks that nobody else has.
    #[track_caller]
    pub(crate) fn assert_stalls_until(&mut self, by_itself: Instant, up: Instant) {
        let resumed = self.resumed(up);
        assert!(
            resumed + TICK >= by_itself,
            "the control resumed {:?} after the link's return; its sender tries {:?} after it",
            resumed.since(up),
            by_itself.since(up)
        );
    }

    /// Lets it come to its end, and waits for that: what the sender and the receiver are told, who both
    /// get an error or none. Whoever gets none has sent or received everything.
    #[track_caller]
    pub(crate) fn outcome(self) -> [Result<(), io::ErrorKind>; 2] {
        self.shared.is_enough.store(true, Ordering::Release);
        self.go_on();
        let ends = [self.sender, self.receiver];
        ends.map(|end| {
            let outcome = end.join().expect("no panic");
            outcome.map_err(|error| error.kind())
        })
    }

    /// Lets it come to its end, and waits for that; everything must have arrived as it was sent.
    pub(crate) fn finish(self) {
        self.shared.is_enough.store(true, Ordering::Release);
        self.go_on();
        let sent = self.sender.join().expect("no panic");
        sent.expect("everything was written");
        let all = self.receiver.join().expect("no panic");
        all.expect("everything was read");
        let counts = [&self.shared.read, &self.shared.written];
        let [read, written] = counts.map(|count| count.load(Ordering::Acquire));
        assert_eq!(read, written);
    }
}
