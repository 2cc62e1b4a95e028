//! Asking for the peers on the link, so that they answer as soon as they can.
//!
//! What is re-sent to a peer of IPv6 is answered only once the peer knows where the router of its
//! answer is. A kernel's own question does not tell it that, unless the router is the interface's
//! link-local address ([`solicitation`](outlast_linux::solicitation)); so each question is asked in
//! the name of the interface's other addresses as well, before anything is sent. By ARP nothing of
//! this is needed: its questions come from the address that the peers use.

use super::Daemon;
use super::indicators::INTERFACE;
use outlast_core::link::LinkId;
use outlast_core::time::{Duration, Instant};
use outlast_linux::monitor::{Change, Standing};
use outlast_linux::solicitation::Solicitor;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// Peers that are greeted when the link is back, at most: all others ask for themselves.
const MOST_GREETED: usize = 64;
/// The greeting may be lost where the other end has its carrier a little later: who answers the
/// kernel within this time is greeted once more.
const GREETED_AGAIN_WITHIN: Duration = Duration::from_secs(5);
/// Between two such greetings: a link that flaps is not greeted each time.
const PAUSE: Duration = Duration::from_millis(500);
/// Addresses in whose name a peer is asked for, at most.
const MOST_NAMES: usize = 4;

/// The last greeting after the link was back.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    at: Option<Instant>,
    /// Those who have not answered since.
    awaited: BTreeSet<IpAddr>,
}

impl Daemon {
    /// Makes the kernel ask for peers that do not answer.
    pub(super) fn ask_for_peers(&mut self, now: Instant) -> io::Result<()> {
        if self.indicators.poll_timeout().is_none_or(|at| at > now) {
            return Ok(());
        }
        // Who has answered meanwhile is not asked again.
        self.hear_changes()?;
        loop {
            let is_missed = |link| self.gateway.has_flows(link);
            let peer = self.indicators.poll_question(now, is_missed);
            let (Some(peer), Some(index)) = (peer, self.indicators.index()) else {
                return Ok(());
            };
            if let Err(error) = self.route.probe_neighbour_now(index, peer) {
                tracing::debug!("{error}");
            }
            self.introduce_to(&[peer]);
        }
    }

    /// The whole link is back, and nothing was sent yet: those who have something to expect learn
    /// where their answers go.
    pub(super) fn greet_peers(&mut self, now: Instant) {
        if self.greeting.at.is_some_and(|at| now.since(at) < PAUSE) {
            return;
        }
        let at_work = self.gateway.links_at_work(INTERFACE);
        let peers = at_work.into_iter().filter_map(|LinkId { peer, .. }| peer);
        let peers: Vec<IpAddr> = peers.filter(IpAddr::is_ipv6).take(MOST_GREETED).collect();
        if !peers.is_empty() {
            self.introduce_to(&peers);
            self.greeting = Greeting {
                at: Some(now),
                awaited: peers.into_iter().collect(),
            };
        }
    }

    /// The kernel has heard of a neighbour.
    pub(super) fn greet_again(&mut self, now: Instant, change: &Change) {
        let Change::Neighbour {
            address,
            standing: Standing::Present,
            ..
        } = change
        else {
            return;
        };
        let Greeting { at, awaited } = &mut self.greeting;
        let is_recent = at.is_some_and(|at| now.since(at) < GREETED_AGAIN_WITHIN);
        if awaited.remove(address) && is_recent {
            self.introduce_to(&[*address]);
        }
    }

    /// Asks for `peers` in the name of each of the interface's addresses.
    fn introduce_to(&mut self, peers: &[IpAddr]) {
        let own = self.indicators.addresses();
        let own = own.filter_map(as_ipv6).take(MOST_NAMES);
        let names: Vec<Ipv6Addr> = own.collect();
        let mut peers = peers.iter().copied().filter_map(as_ipv6).peekable();
        if names.is_empty() || peers.peek().is_none() {
            return;
        }
        let name = &self.settings.interface;
        let hardware = match self.route.hardware_address(name) {
            Ok(Some(hardware)) => hardware,
            // Where there is no Ethernet nobody needs to be found.
            Ok(None) => return,
            Err(error) => {
                // It is gone again, as its next change will tell.
                tracing::debug!("{error}");
                return;
            }
        };
        let Some(index) = self.indicators.index() else {
            return;
        };
        let solicitor = Solicitor::new(name, index, hardware, self.settings.mark);
        for peer in peers {
            for own in &names {
                if let Err(error) = solicitor.ask(*own, peer) {
                    tracing::debug!(%peer, %own, "cannot ask for a neighbour: {error}");
                }
            }
        }
    }
}

const fn as_ipv6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    }
}
