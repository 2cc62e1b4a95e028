//! A tunnel as the link: an interface that carries bare packets of IP, without Ethernet, carrier of
//! its own or neighbours, as WireGuard's, PPP's and modems' do.

use super::copier::{Carrier, Copier};
use super::wiring::inside;
use super::{LINK, MOBILE, OUTER, Path, equip, skip};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::tun::{MAX_PACKET, Tun};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Packets go through it while it lives.
pub(crate) struct Tunnel {
    shared: Arc<Shared>,
    _copier: Copier,
}

struct Shared {
    ends: [Tun; 2],
    /// What goes in does not come out.
    is_hole: AtomicBool,
}

impl Path {
    /// Puts a tunnel in the place of the link; `None`, with the reason, where this machine does not
    /// allow it.
    pub(crate) fn dig(&mut self) -> Option<Tunnel> {
        self.remove_link();
        let make = |namespace: &Namespace| {
            let made = namespace.run(|| Tun::create(LINK)).expect("enter");
            made.inspect_err(|error| skip(error)).ok()
        };
        let ends = [make(&self.gateway)?, make(&self.mobile)?];
        inside(&self.gateway, |route| equip(route, LINK, OUTER, None));
        inside(&self.mobile, |route| {
            equip(route, LINK, MOBILE, Some(OUTER));
        });
        let shared = Arc::new(Shared {
            ends,
            is_hole: AtomicBool::default(),
        });
        let _copier = Copier::start(shared.clone());
        Some(Tunnel { shared, _copier })
    }
}

impl Tunnel {
    /// Nothing comes through any more, and nobody is told.
    pub(crate) fn lose_all(&self) {
        self.shared.is_hole.store(true, Ordering::Release);
    }

    /// Everything does again that goes in from now on; since when.
    pub(crate) fn lose_nothing(&self) -> outlast_base::time::Instant {
        // What a sender has just repeated may wait for the copier still, and would come through.
        let mut lost = vec![0; MAX_PACKET];
        for end in &self.shared.ends {
            while end.read(&mut lost).expect("its end").is_some() {}
        }
        self.shared.is_hole.store(false, Ordering::Release);
        clock::now()
    }
}

impl Carrier for Shared {
    fn ends(&self) -> &[Tun; 2] {
        &self.ends
    }

    fn carry(&self, from: usize, packet: &[u8]) -> io::Result<()> {
        if !self.is_hole.load(Ordering::Acquire) {
            // Where there is no room it is lost, as in any tunnel.
            let _ = self.ends[1 - from].write(packet)?;
        }
        Ok(())
    }
}
