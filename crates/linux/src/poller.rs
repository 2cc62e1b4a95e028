//! Waiting for file descriptors (`epoll`).

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;

/// What a descriptor is called in the answers of [`Poller::wait`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Token(pub u64);

/// What to wait for. Errors and hang-ups are always reported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interest {
    /// Something to read.
    Readable,
    /// Room to write.
    Writable,
    /// Either.
    Both,
}

/// One descriptor that is ready.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ready {
    /// Which one.
    pub token: Token,
    /// A read will not block: data, end of file, or an error to collect.
    pub readable: bool,
    /// A write will not block.
    pub writable: bool,
}

/// A set of descriptors to wait for; level-triggered.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    ready: Vec<Ready>,
}

/// Descriptors reported at a time; others are reported the next time.
const AT_ONCE: usize = 32;

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// When the process is out of file descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self {
            epoll,
            ready: Vec::with_capacity(AT_ONCE),
        })
    }

    /// Adds `source`; closing it removes it.
    ///
    /// # Errors
    /// When it is in the set already, or cannot be waited for.
    pub fn add(&self, source: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            source,
            EventData::new_u64(token.0),
            flags(interest),
        )?)
    }

    /// Changes what is waited for.
    ///
    /// # Errors
    /// When `source` is not in the set.
    pub fn modify(&self, source: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            source,
            EventData::new_u64(token.0),
            flags(interest),
        )?)
    }

    /// Removes `source`.
    ///
    /// # Errors
    /// When it is not in the set.
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits until a descriptor is ready. Deadlines come from a [`Timer`](crate::timer::Timer)
    /// in the set. An interruption by a signal yields nothing.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn wait(&mut self) -> io::Result<impl Iterator<Item = Ready> + '_> {
        let mut events = [const { MaybeUninit::uninit() }; AT_ONCE];
        let events = match epoll::wait(&self.epoll, &mut events, None) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &mut [],
            Err(errno) => return Err(errno.into()),
        };
        self.ready.clear();
        self.ready.extend(events.iter().map(ready));
        Ok(self.ready.iter().copied())
    }
}

fn ready(event: &epoll::Event) -> Ready {
    let (flags, data) = (event.flags, event.data);
    let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
    Ready {
        token: Token(data.u64()),
        readable: broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
        writable: broken || flags.contains(EventFlags::OUT),
    }
}

fn flags(interest: Interest) -> EventFlags {
    match interest {
        Interest::Readable => EventFlags::IN,
        Interest::Writable => EventFlags::OUT,
        Interest::Both => EventFlags::IN | EventFlags::OUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waker::Waker;

    #[test]
    fn reports_what_was_woken_under_its_token() {
        let mut poller = Poller::new().expect("epoll");
        let (quiet, woken) = (
            Waker::new().expect("eventfd"),
            Waker::new().expect("eventfd"),
        );
        poller
            .add(&quiet, Token(1), Interest::Readable)
            .expect("add");
        poller
            .add(&woken, Token(2), Interest::Readable)
            .expect("add");
        woken.wake();
        let ready: Vec<_> = poller.wait().expect("wait").collect();
        assert_eq!(
            ready,
            [Ready {
                token: Token(2),
                readable: true,
                writable: false
            }]
        );
        assert!(woken.reset().expect("reset"));
        assert!(!woken.reset().expect("reset"));
    }
}
