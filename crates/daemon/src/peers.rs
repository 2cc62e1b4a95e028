//! Asking for the peers on the link, so that they answer as soon as they can.
//!
//! A peer that is down is asked for until it answers. The kernel is told to ask, too, since it
//! heeds an answer only from a neighbour that it knows. The kernel asks once a second, and the
//! event loop never waits for it ([`kernel`]).
//!
//! When the link is back, the kernel's first question may be lost, if the other end has its carrier a
//! moment later. So who is awaited is asked for a few times more, until it answers.
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

mod kernel;
mod questions;

use super::Daemon;
use super::indicators::INTERFACE;
pub(crate) use kernel::KernelAsker;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{LinkId, LinkState, Neighbour};
use outlast_linux::monitor::{Change, Standing};
pub(crate) use questions::Questions;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// Peers that are greeted when the link is back, at most: all others ask for themselves.
const MOST_GREETED: usize = 64;
/// When those who have not answered yet are asked for again, after the link was back.
const GREETED_AGAIN_AFTER: [Duration; 6] = [
    Duration::from_millis(40),
    Duration::from_millis(120),
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_millis(1_500),
    Duration::from_millis(3_000),
];
/// Who answers the kernel within this time is greeted once more: the greeting may have been lost.
const GREETED_AGAIN_WITHIN: Duration = Duration::from_secs(5);
/// Between two such greetings: a link that flaps is not greeted each time.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two reminders of one peer that is silent. The fastest probes go every 20 ms, so that every
/// other one is accompanied; where the round trip is so short that they go more seldom, the peer's
/// own question takes hardly any time.
const REMINDED_AGAIN_AFTER: Duration = Duration::from_millis(30);

/// Asks for peers on the link, by itself and by the kernel.
#[derive(Debug)]
pub(super) struct Asker {
    questions: Questions,
    kernel: KernelAsker,
    greeting: Greeting,
    /// The peer that was reminded last, and when.
    reminded: Option<(IpAddr, Instant)>,
}

/// The last greeting after the link was back.
#[derive(Debug, Default)]
struct Greeting {
    at: Option<Instant>,
    /// Peers that have not answered since.
    awaited: BTreeSet<IpAddr>,
    /// How often they were asked for again.
    repeated: usize,
}

impl Asker {
    pub(super) fn open(mark: u32) -> io::Result<Self> {
        Ok(Self {
            questions: Questions::open(mark)?,
            kernel: KernelAsker::default(),
            greeting: Greeting::default(),
            reminded: None,
        })
    }

    /// When those who are awaited are to be asked for again.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.greeting.poll_timeout()
    }
}

impl Greeting {
    fn poll_timeout(&self) -> Option<Instant> {
        let after = *GREETED_AGAIN_AFTER.get(self.repeated)?;
        self.at
            .filter(|_| !self.awaited.is_empty())
            .map(|at| at + after)
    }
}

impl Daemon {
    /// Asks for peers that do not answer.
    pub(super) fn ask_for_peers(&mut self, now: Instant) -> io::Result<()> {
        let questions = self.indicators.poll_timeout();
        let next = [questions, self.asker.poll_timeout()];
        if next.into_iter().flatten().min().is_none_or(|at| at > now) {
            return Ok(());
        }
        // Who has answered meanwhile is not asked again.
        self.hear_changes(now)?;
        self.repeat_greeting(now);
        loop {
            let is_missed = |link| self.gateway.has_flows(link);
            let peer = self.indicators.poll_question(now, is_missed);
            let (Some(peer), Some(index)) = (peer, self.indicators.index()) else {
                return Ok(());
            };
            self.asker.kernel.ask(index, peer);
            self.ask_for(peer);
        }
    }

    /// The whole link is back, and nothing was sent yet: those who have something to expect learn
    /// where their answers go.
    pub(super) fn greet_peers(&mut self, now: Instant) {
        let greeting = &self.asker.greeting;
        if greeting.at.is_some_and(|at| now.since(at) < PAUSE) {
            return;
        }
        let at_work = self.gateway.links_at_work(INTERFACE);
        let peers = at_work.into_iter().filter_map(|LinkId { peer, .. }| peer);
        let awaited: BTreeSet<IpAddr> = peers.take(MOST_GREETED).collect();
        // For those of IPv4 the kernel asks as well, with the first packet.
        for peer in awaited.iter().filter(|peer| peer.is_ipv6()) {
            self.ask_for(*peer);
        }
        self.asker.greeting = Greeting {
            at: Some(now),
            awaited,
            repeated: 0,
        };
    }

    /// `link` is back, and nothing was sent yet: what is kept for peers whom the kernel has forgotten waits until somebody
    /// answers for their addresses.
    pub(super) fn doubt_neighbours(&mut self, now: Instant, link: LinkId) {
        let at_work = self.gateway.links_at_work(INTERFACE);
        let stations = self.indicators.stations();
        let lost: Vec<(LinkId, IpAddr)> = at_work
            .into_iter()
            .filter(|other| link.peer.is_none() || *other == link)
            .filter_map(|other| Some((other, other.peer?)))
            .filter(|(_, peer)| stations.is_lost(*peer))
            .collect();
        let Some(index) = self.indicators.index() else {
            return;
        };
        for (place, (link, peer)) in lost.into_iter().enumerate() {
            self.gateway
                .handle_neighbour(now, link, Neighbour::Unconfirmed);
            // The kernel asks for the others with the first packet.
            if place < MOST_GREETED {
                self.asker.kernel.ask(index, peer);
                self.ask_for(peer);
            }
        }
    }

    fn repeat_greeting(&mut self, now: Instant) {
        let greeting = &mut self.asker.greeting;
        if greeting.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        greeting.repeated += 1;
        if self.indicators.state() == LinkState::Down {
            return greeting.awaited.clear();
        }
        let (awaited, stations) = (&self.asker.greeting.awaited, self.indicators.stations());
        for peer in awaited.iter().filter(|peer| stations.of(**peer).is_none()) {
            self.ask_for(*peer);
        }
    }

    /// Greets an awaited peer once more after the kernel has found it.
    pub(super) fn greet_again(&mut self, now: Instant, change: &Change) {
        let Change::Neighbour {
            address,
            standing: Standing::Present,
            ..
        } = change
        else {
            return;
        };
        let Greeting { at, awaited, .. } = &mut self.asker.greeting;
        let is_recent = at.is_some_and(|at| now.since(at) < GREETED_AGAIN_WITHIN);
        if awaited.remove(address) && is_recent && address.is_ipv6() {
            self.ask_for(*address);
        }
    }

    /// A probe is about to be sent to somebody behind `link`, which is silent.
    pub(super) fn remind_with_probe(&mut self, now: Instant, link: LinkId) {
        let is_soon = |(peer, at)| Some(peer) == link.peer && now.since(at) < REMINDED_AGAIN_AFTER;
        if !self.asker.reminded.is_some_and(is_soon) {
            self.remind(now, link);
        }
    }

    /// The peer of `link` is back, and nothing was re-sent yet.
    pub(super) fn remind(&mut self, now: Instant, link: LinkId) {
        let Some(peer) = link.peer else { return };
        if !self.gateway.has_flows(link) {
            return;
        }
        self.asker.reminded = Some((peer, now));
        // Where the kernel knows it; else the kernel asks for it, or is not allowed to.
        if let Some(hardware) = self.indicators.stations().of(peer) {
            self.ask_at(peer, Some(hardware));
        }
    }

    /// Asks everybody for `peer`.
    fn ask_for(&self, peer: IpAddr) {
        self.ask_at(peer, None);
    }

    /// Asks for `peer`: there and nowhere else, if it is said where, and else everybody.
    fn ask_at(&self, peer: IpAddr, place: Option<[u8; 6]>) {
        let name = &self.settings.interface;
        self.asker
            .questions
            .ask(name, &self.indicators, peer, place);
    }
}
