//! A timer as a file descriptor: absolute deadlines with nanosecond precision.

use outlast_base::time::Instant;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;

/// A `timerfd` on the clock of [`clock::now`](crate::clock::now); readable once the deadline has
/// passed.
///
/// Unlike the timeout of `epoll_wait` it is not subject to the thread's timer slack.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
    deadline: Option<Instant>,
    /// Whether the deadline is known to have passed: the descriptor is readable until the next
    /// one is set.
    expired: bool,
}

impl Timer {
    /// A timer without deadline.
    ///
    /// # Errors
    /// When the process is out of file descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self {
            fd: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            deadline: None,
            expired: false,
        })
    }

    /// Sets the deadline, or takes it away. A deadline in the past fires at once.
    ///
    /// Does nothing, not even a system call, when the deadline is what it was.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn set(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        if deadline == self.deadline && !self.expired {
            return Ok(());
        }
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &expiry(deadline))?;
        self.deadline = deadline;
        self.expired = false;
        Ok(())
    }

    /// Notes that the descriptor was seen to be readable: the next [`set`](Self::set) makes it
    /// unreadable again, which spares a [`consume`](Self::consume).
    pub fn note_expiry(&mut self) {
        self.expired = true;
    }

    /// Takes the expiry back, so that the descriptor is no longer readable; whether it had
    /// expired.
    ///
    /// The deadline is gone afterwards if it had expired.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn consume(&mut self) -> io::Result<bool> {
        let mut expirations = [0; 8];
        match rustix::io::read(&self.fd, &mut expirations) {
            Ok(_) => {
                self.deadline = None;
                self.expired = false;
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Readable once the machine goes on after a suspension, or somebody has set its clock.
#[derive(Debug)]
pub struct Resumption {
    fd: OwnedFd,
}

impl Resumption {
    /// Waits for the next one.
    ///
    /// # Errors
    /// When the process is out of file descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Realtime, flags)?;
        let resumption = Self { fd };
        resumption.arm()?;
        Ok(resumption)
    }

    /// Waits for the next one; whether there was one.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn reset(&self) -> io::Result<bool> {
        let was = match rustix::io::read(&self.fd, &mut [0; 8]) {
            Ok(_) | Err(Errno::CANCELED) => true,
            Err(Errno::AGAIN) => false,
            Err(error) => return Err(error.into()),
        };
        self.arm()?;
        Ok(was)
    }

    /// The timer itself never expires: that the clock is set cancels it.
    fn arm(&self) -> io::Result<()> {
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let never = Some(Instant::from_nanos(u64::MAX));
        match timerfd_settime(&self.fd, flags, &expiry(never)) {
            // It was set just now, which the descriptor tells.
            Ok(_) | Err(Errno::CANCELED) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Resumption {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The deadline as `timerfd_settime` wants it: zero disarms, so the origin becomes 1 ns.
fn expiry(deadline: Option<Instant>) -> Itimerspec {
    let nanos = deadline.map_or(0, |deadline| deadline.as_nanos().max(1));
    // 2^63 ns are beyond any uptime; the kernel takes no more for a deadline.
    let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
    let it_value = Timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    };
    Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value,
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use outlast_base::time::Duration;
    use rustix::event::{PollFd, PollFlags, poll};

    fn wait_readable(timer: &Timer) {
        let mut fds = [PollFd::new(timer, PollFlags::IN)];
        assert_eq!(poll(&mut fds, None).expect("poll"), 1);
    }

    #[test]
    fn fires_no_earlier_than_its_deadline() {
        let mut timer = Timer::new().expect("timerfd");
        let deadline = clock::now() + Duration::from_millis(5);
        timer.set(Some(deadline)).expect("set");
        wait_readable(&timer);
        assert!(clock::now() >= deadline);
        assert!(timer.consume().expect("consume"));
        assert!(
            !timer.consume().expect("consume"),
            "an expiry is reported once"
        );
    }

    #[test]
    fn after_a_noted_expiry_the_same_deadline_fires_again_and_none_does_not() {
        let mut timer = Timer::new().expect("timerfd");
        for _ in 0..2 {
            timer.set(Some(Instant::ZERO)).expect("set");
            wait_readable(&timer);
            timer.note_expiry();
        }
        timer.set(None).expect("disarm");
        assert!(!timer.consume().expect("consume"));
    }

    #[test]
    fn nothing_is_told_of_a_machine_that_runs() {
        let resumption = Resumption::new().expect("timerfd");
        assert!(!resumption.reset().expect("read"));
        assert!(!resumption.reset().expect("read"));
    }

    #[test]
    fn a_deadline_in_the_past_fires_at_once_and_none_never() {
        let mut timer = Timer::new().expect("timerfd");
        timer.set(Some(Instant::ZERO)).expect("set");
        wait_readable(&timer);
        timer.set(None).expect("disarm");
        assert!(
            !timer.consume().expect("consume"),
            "disarming takes the expiry back"
        );
    }
}
