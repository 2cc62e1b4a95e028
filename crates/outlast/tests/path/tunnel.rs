//! A tunnel as the link: an interface that carries bare packets of IP, without Ethernet, carrier of
//! its own or neighbours, as WireGuard's, PPP's and modems' do.

use super::wiring::inside;
use super::{LINK, MOBILE, OUTER, Path, equip, skip};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::tun::{MAX_PACKET, Tun};
use outlast_linux::waker::Waker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Packets go through it while it lives.
pub(crate) struct Tunnel {
    shared: Arc<Shared>,
    copier: Option<JoinHandle<io::Result<()>>>,
}

struct Shared {
    ends: [Tun; 2],
    /// What goes in does not come out.
    is_hole: AtomicBool,
    end: Waker,
}

impl Path {
    /// Puts a tunnel in the place of the link; `None`, with the reason, where this machine does not
    /// allow it.
    pub(crate) fn dig(&mut self) -> Option<Tunnel> {
        self.remove_link();
        let make = |namespace: &Namespace| {
            let made = namespace.run(|| Tun::create(LINK)).expect("enter");
            made.inspect_err(|error| skip(&error.to_string())).ok()
        };
        let ends = [make(&self.gateway)?, make(&self.mobile)?];
        inside(&self.gateway, |route| equip(route, LINK, OUTER, None));
        inside(&self.mobile, |route| {
            equip(route, LINK, MOBILE, Some(OUTER));
        });
        let shared = Arc::new(Shared {
            ends,
            is_hole: AtomicBool::default(),
            end: Waker::new().expect("descriptor"),
        });
        let ours = shared.clone();
        let copier = Some(std::thread::spawn(move || ours.copy()));
        Some(Tunnel { shared, copier })
    }
}

impl Tunnel {
    /// Nothing comes through any more, and nobody is told.
    pub(crate) fn lose_all(&self) {
        self.shared.is_hole.store(true, Ordering::Release);
    }

    /// Everything does again; since when.
    pub(crate) fn lose_nothing(&self) -> outlast_core::time::Instant {
        self.shared.is_hole.store(false, Ordering::Release);
        clock::now()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.shared.end.wake();
        let copied = self.copier.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            let copied = copied.expect("it was started").expect("no panic");
            copied.expect("both ends are there");
        }
    }
}

impl Shared {
    fn copy(&self) -> io::Result<()> {
        const END: Token = Token(2);
        let mut poller = Poller::new()?;
        for (token, end) in self.ends.iter().enumerate() {
            poller.add(end, Token(token as u64), Interest::Readable)?;
        }
        poller.add(&self.end, END, Interest::Readable)?;
        let mut buffer = vec![0; MAX_PACKET];
        loop {
            if poller.wait()?.any(|ready| ready.token == END) {
                return Ok(());
            }
            for (from, to) in [(0, 1), (1, 0)] {
                while let Some(packet) = self.ends[from].read(&mut buffer)? {
                    if !self.is_hole.load(Ordering::Acquire) {
                        // Where there is no room it is lost, as in any tunnel.
                        let _ = self.ends[to].write(packet)?;
                    }
                }
            }
        }
    }
}
