//! What carries packets or frames between the two ends of something that a test has put in the way.

use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::tun::Tun;
use outlast_linux::waker::Waker;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What goes into either end, and what becomes of it.
pub(crate) trait Carrier: Send + Sync + 'static {
    /// Both ends.
    fn ends(&self) -> &[Tun; 2];

    /// Passes on what has come out of the end of this number. Where there is no room, or the other end
    /// is down, it may be lost.
    fn carry(&self, from: usize, bytes: &[u8]) -> io::Result<()>;
}

/// It carries while this lives.
pub(crate) struct Copier {
    end: Arc<Waker>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// The longest packet or frame.
const LONGEST: usize = 1 << 16;

impl Copier {
    pub(crate) fn start(carrier: Arc<impl Carrier>) -> Self {
        let end = Arc::new(Waker::new().expect("descriptor"));
        let ours = end.clone();
        Self {
            end,
            thread: Some(std::thread::spawn(move || copy(&*carrier, &ours))),
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.end.wake();
        let copied = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            let copied = copied.expect("it was started").expect("no panic");
            copied.expect("both ends are there");
        }
    }
}

fn copy(carrier: &impl Carrier, until: &Waker) -> io::Result<()> {
    const END: Token = Token(2);
    let mut poller = Poller::new()?;
    for (token, end) in carrier.ends().iter().enumerate() {
        poller.add(end, Token(token as u64), Interest::Readable)?;
    }
    poller.add(until, END, Interest::Readable)?;
    let mut buffer = vec![0; LONGEST];
    loop {
        if poller.wait()?.any(|ready| ready.token == END) {
            return Ok(());
        }
        for (from, end) in carrier.ends().iter().enumerate() {
            while let Some(bytes) = end.read(&mut buffer)? {
                carrier.carry(from, bytes)?;
            }
        }
    }
}
