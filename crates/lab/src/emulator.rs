//! The thread that is the link: it reads what each host sends, lets it cross the path in real
//! time, and hands it to the other host.

use crate::opening::Opening;
use crate::path::{Between, HostPath};
use crate::stop::{Stop, StopReason};
use bytes::Bytes;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::priority::{Priority, raise_current_thread};
use outlast_linux::timer::Timer;
use outlast_linux::tun::{MAX_PACKET, Tun, Written};
use outlast_linux::waker::Waker;
use outlast_world::Side;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Packets taken from one host before the other one has its turn.
const BURST: usize = 64;

const TIMER: Token = Token(2);
const END: Token = Token(3);

/// A running emulator. Dropped, it stops.
#[derive(Debug)]
pub(crate) struct Emulator {
    end: Arc<Waker>,
    thread: Option<JoinHandle<io::Result<Emulated>>>,
}

/// What the emulator is to do.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) between: Between,
    /// The hosts' TUN devices, by [`Side::index`].
    pub(crate) tuns: [Tun; 2],
    /// When `stop` is pulled, counted from the workload's first byte, or from the beginning as
    /// long as there is none.
    pub(crate) deadline: Duration,
    pub(crate) stop: Arc<Stop>,
    /// Told when the mobile opens its first connection.
    pub(crate) opening: Arc<Opening>,
}

/// What is left of an emulator that has ended.
#[derive(Debug)]
pub(crate) struct Emulated {
    pub(crate) path: HostPath,
    pub(crate) effort: Effort,
    /// The hosts' interfaces, whose statistics go with them.
    pub(crate) tuns: [Tun; 2],
}

/// What the emulation cost, and how punctual it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Effort {
    /// Processor time of the emulator's thread, the kernel's work for it included.
    pub cpu: Duration,
    /// From beginning to end.
    pub elapsed: Duration,
    /// By how much the latest timer was late at worst.
    pub worst_delay: Duration,
    /// How the scheduler treated the thread.
    pub priority: Priority,
}

impl Emulator {
    /// Begins.
    pub(crate) fn start(assignment: Assignment) -> io::Result<Self> {
        let end = Arc::new(Waker::new()?);
        let run = Loop::new(assignment, Arc::clone(&end))?;
        let thread = thread::Builder::new()
            .name("link".into())
            .spawn(move || run.run())?;
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }

    /// Ends, and hands out what was observed.
    pub(crate) fn finish(mut self) -> io::Result<Emulated> {
        self.end.wake();
        let thread = self
            .thread
            .take()
            .expect("only `finish` and `drop` take it, each once");
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.end.wake();
            // Nobody is left to hear of it.
            let _ = thread.join();
        }
    }
}

/// The loop: descriptors, clock and timer around the pure path.
#[derive(Debug)]
struct Loop {
    path: HostPath,
    tuns: [Tun; 2],
    poller: Poller,
    timer: Timer,
    end: Arc<Waker>,
    stop: Arc<Stop>,
    opening: Arc<Opening>,
    is_opening_told: bool,
    allowed: Duration,
    began: Instant,
    worst_delay: Duration,
    buffer: Box<[u8]>,
}

impl Loop {
    fn new(assignment: Assignment, end: Arc<Waker>) -> io::Result<Self> {
        let Assignment {
            between,
            tuns,
            deadline,
            stop,
            opening,
        } = assignment;
        let poller = Poller::new()?;
        let timer = Timer::new()?;
        for side in Side::BOTH {
            poller.add(&tuns[side.index()], token(side), Interest::Readable)?;
        }
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&*end, END, Interest::Readable)?;
        let began = clock::now();
        Ok(Self {
            path: HostPath::new(began, between),
            tuns,
            poller,
            timer,
            end,
            stop,
            opening,
            is_opening_told: false,
            allowed: deadline,
            began,
            worst_delay: Duration::ZERO,
            buffer: vec![0; MAX_PACKET].into(),
        })
    }

    fn run(mut self) -> io::Result<Emulated> {
        // Nobody else watches the deadline: whatever ends this thread ends the workload.
        let _end = PullAtEnd(Arc::clone(&self.stop));
        let priority = raise_current_thread();
        self.cross_until_the_end()?;
        self.path.dismiss_agents();
        let effort = Effort {
            cpu: clock::thread_cpu_time(),
            elapsed: clock::now().since(self.began),
            worst_delay: self.worst_delay,
            priority,
        };
        Ok(Emulated {
            path: self.path,
            effort,
            tuns: self.tuns,
        })
    }

    fn cross_until_the_end(&mut self) -> io::Result<()> {
        loop {
            self.catch_up(clock::now())?;
            self.timer.set(self.next_timeout())?;
            let (mut fired, mut ended, mut readable) = (false, false, [false; 2]);
            for ready in self.poller.wait()? {
                match ready.token {
                    TIMER => fired = true,
                    END => ended = true,
                    Token(index) => readable[usize::from(index == 1)] = true,
                }
            }
            if ended && self.end.reset()? {
                return Ok(());
            }
            if fired {
                self.timer.note_expiry();
            }
            for side in Side::BOTH {
                if readable[side.index()] {
                    self.take_burst(side)?;
                }
            }
        }
    }

    /// Takes what the host of `side` has sent, up to [`BURST`] packets.
    fn take_burst(&mut self, side: Side) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(packet) = self.tuns[side.index()].read(&mut self.buffer)? else {
                return Ok(());
            };
            let bytes = Bytes::copy_from_slice(packet);
            let now = clock::now();
            self.catch_up(now)?;
            self.path.handle_packet(now, side, bytes);
            self.tell_of_opening();
            self.deliver()?;
        }
        Ok(())
    }

    fn tell_of_opening(&mut self) {
        if self.is_opening_told {
            return;
        }
        if let Some(at) = self.path.opened() {
            self.opening.note(at);
            self.is_opening_told = true;
        }
    }

    /// Lets everything happen that is due by `now`.
    fn catch_up(&mut self, now: Instant) -> io::Result<()> {
        // Once: what becomes due at `now` itself fires the timer again, after the hosts' turn.
        if let Some(due) = self.path.poll_timeout().filter(|&due| due <= now) {
            self.worst_delay = self.worst_delay.max(now.since(due));
            self.path.handle_timeout(now);
            self.deliver()?;
        }
        if self.deadline() <= now {
            self.stop.pull(StopReason::Deadline);
        }
        Ok(())
    }

    fn deliver(&mut self) -> io::Result<()> {
        while let Some((side, packet)) = self.path.poll_transmit() {
            match self.tuns[side.index()].write(&packet) {
                Ok(Written::Delivered) => {}
                // As a host that is too busy to take a packet from its network card.
                Ok(Written::NoRoom | Written::Down) => self.path.refused(),
                // The bytes came from the other host's kernel; this one's does not take them.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.path.refused();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn deadline(&self) -> Instant {
        self.path.started().unwrap_or(self.began) + self.allowed
    }

    fn next_timeout(&self) -> Option<Instant> {
        let deadline = (!self.stop.is_pulled()).then(|| self.deadline());
        self.path.poll_timeout().into_iter().chain(deadline).min()
    }
}

/// Pulls the cord when it is dropped, if nobody has before.
struct PullAtEnd(Arc<Stop>);

impl Drop for PullAtEnd {
    fn drop(&mut self) {
        self.0.pull(StopReason::Broken);
    }
}

fn token(side: Side) -> Token {
    Token(side.index() as u64)
}
