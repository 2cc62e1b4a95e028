//! Asking for the peers on the link, so that they answer as soon as they can.
//!
//! What is re-sent to a peer of IPv6 is answered only once the peer knows where the router of its
//! answer is. A kernel's own question does not tell it that, unless the router is the interface's
//! link-local address ([`solicitation`](outlast_linux::solicitation)); so each question is asked in
//! the name of the interface's other addresses as well, before anything is sent. By ARP nothing of
//! this is needed: its questions come from the address that the peers use.
//!
//! A peer may have given this host up meanwhile, although nobody here has noticed anything but its
//! silence. It then asks for it before it answers, a round trip more. So it is *reminded*: asked
//! where it is, there and nowhere else, with the probes and before anything is re-sent.

use super::Daemon;
use super::indicators::INTERFACE;
use outlast_core::link::LinkId;
use outlast_core::time::{Duration, Instant};
use outlast_linux::monitor::{Change, Standing};
use outlast_linux::netlink::InterfaceIndex;
use outlast_linux::solicitation::{ArpParty, ArpSolicitor, Solicitor};
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
/// Between two reminders of one peer that is silent. The fastest probes go every 20 ms, so that every
/// other one is accompanied; where the round trip is so short that they go more seldom, the peer's
/// own question takes hardly any time.
const REMINDED_AGAIN_AFTER: Duration = Duration::from_millis(30);
/// Addresses in whose name a peer is asked for, at most.
const MOST_NAMES: usize = 4;

/// The last greeting after the link was back.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    at: Option<Instant>,
    /// Those who have not answered since.
    awaited: BTreeSet<IpAddr>,
}

/// Who reminds peers.
#[derive(Debug)]
pub(super) struct Reminder {
    /// `None` where the kernel cannot: then peers of IPv4 ask for themselves.
    arp: Option<ArpSolicitor>,
    /// The peer that was reminded last, and when.
    last: Option<(IpAddr, Instant)>,
}

impl Reminder {
    pub(super) fn open(mark: u32) -> io::Result<Self> {
        Ok(Self {
            arp: ArpSolicitor::open(mark)?,
            last: None,
        })
    }
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

    /// A probe is about to be sent to somebody behind `link`, which is silent.
    pub(super) fn remind_with_probe(&mut self, now: Instant, link: LinkId) {
        let is_soon = |(peer, at)| Some(peer) == link.peer && now.since(at) < REMINDED_AGAIN_AFTER;
        if !self.reminder.last.is_some_and(is_soon) {
            self.remind(now, link);
        }
    }

    /// The peer of `link` is back, and nothing was re-sent yet.
    pub(super) fn remind(&mut self, now: Instant, link: LinkId) {
        let Some(peer) = link.peer else { return };
        if !self.gateway.has_flows(link) {
            return;
        }
        self.reminder.last = Some((peer, now));
        let Some((index, own_hardware)) = self.ethernet() else {
            return;
        };
        let Some(hardware) = self.hardware_of(peer) else {
            // The kernel asks for it, or is not allowed to.
            return;
        };
        let solicitor = self.solicitor(index, own_hardware);
        let own = self.indicators.addresses();
        let own = own.filter(|own| own.is_ipv4() == peer.is_ipv4());
        for own in own.take(MOST_NAMES) {
            let asked = match (own, peer) {
                (IpAddr::V4(own), IpAddr::V4(peer)) => {
                    let Some(arp) = &self.reminder.arp else {
                        return;
                    };
                    let party = |address, hardware| ArpParty { address, hardware };
                    let (own, peer) = (party(own, own_hardware), party(peer, hardware));
                    arp.remind(index, own, peer)
                }
                (IpAddr::V6(own), IpAddr::V6(peer)) => solicitor.remind(own, peer),
                _ => continue,
            };
            if let Err(error) = asked {
                tracing::debug!(%peer, %own, "cannot remind a neighbour: {error}");
            }
        }
    }

    /// Where the kernel reaches a peer, if it knows that.
    fn hardware_of(&mut self, peer: IpAddr) -> Option<[u8; 6]> {
        let index = self.indicators.index()?;
        let known = self.route.neighbour_hardware(index, peer);
        known.unwrap_or_else(|error| {
            tracing::debug!("{error}");
            None
        })
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
        let Some((index, hardware)) = self.ethernet() else {
            return;
        };
        let solicitor = self.solicitor(index, hardware);
        for peer in peers {
            for own in &names {
                if let Err(error) = solicitor.ask(*own, peer) {
                    tracing::debug!(%peer, %own, "cannot ask for a neighbour: {error}");
                }
            }
        }
    }

    /// The interface's number and Ethernet address; `None` where there is no Ethernet, on which nobody
    /// needs to be found.
    fn ethernet(&mut self) -> Option<(InterfaceIndex, [u8; 6])> {
        let hardware = match self.route.hardware_address(&self.settings.interface) {
            Ok(hardware) => hardware?,
            Err(error) => {
                // It is gone again, as its next change will tell.
                tracing::debug!("{error}");
                return None;
            }
        };
        Some((self.indicators.index()?, hardware))
    }

    fn solicitor(&self, index: InterfaceIndex, hardware: [u8; 6]) -> Solicitor {
        let name = &self.settings.interface;
        Solicitor::new(name, index, hardware, self.settings.mark)
    }
}

const fn as_ipv6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    }
}
