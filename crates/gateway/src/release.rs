//! What waits for one interface, and when it goes out: small urgent packets first, then data, peer by
//! peer and connection by connection, at the link's pace.
//!
//! Bound: a packet that arrives while its link is up waits for what its own connection has kept, and for
//! no more than one turn of each other peer that answers, per turn of its own peer ([`Round`]); a peer
//! that does not answer takes an eighth of the pace at most, whatever is kept for it ([`Answers`]). A
//! packet that is no segment of a tracked connection does not wait at all.

mod answers;
mod bandwidth;
mod handshakes;
mod lifetime;
mod others;
mod pace;
mod round;

use crate::links::{Indicator, InterfaceId, LinkId};
use crate::mechanisms::path::Waiting;
use crate::tracking::{FlowIndex, LinkRtt};
use answers::Answers;
pub(crate) use bandwidth::{Departure, Seen, seen_before};
use core::net::IpAddr;
use handshakes::Handshakes;
pub(crate) use others::OtherTraffic;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
pub(crate) use pace::{INITIAL_BURST, Pacer};
use round::{Party, Round};
pub(crate) use round::{Taken, Turn};

/// The line outlasts what was kept by as long as that took, but no longer than this. What hosts have
/// held back meanwhile, each its own, would overflow the link's queue at once; for good, it is the link
/// that is to say when it is too much.
const LONGEST_TAIL: Duration = Duration::from_secs(2);
/// Silent peers get one part in so many of the pace, all together.
const PROBE_SHARE: u32 = 8;
/// Above so many awaited peers, those for which nothing waits are forgotten.
const MANY_PEERS: usize = 1_024;

/// What waits for one interface.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) interface: InterfaceId,
    pub(crate) pacer: Pacer,
    pub(crate) others: OtherTraffic,
    pub(crate) handshakes: Handshakes,
    urgent: Round,
    data: Round,
    answers: Answers,
    /// Silent peers may be probed again from then on.
    probe_at: Instant,
    /// When the link came back of the first of those who were away.
    back_since: Instant,
    /// Once nothing of them waits, nobody gets into the line from then on.
    line_ends: Instant,
    /// By then what went out first has been answered, and the senders have gone on.
    first_answers_by: Instant,
}

impl Release {
    pub(crate) fn new(interface: InterfaceId, rate: Option<BitRate>) -> Self {
        Self {
            interface,
            pacer: Pacer::new(rate),
            others: OtherTraffic::default(),
            handshakes: Handshakes::default(),
            urgent: Round::default(),
            data: Round::default(),
            answers: Answers::default(),
            probe_at: Instant::ZERO,
            back_since: Instant::ZERO,
            line_ends: Instant::ZERO,
            first_answers_by: Instant::ZERO,
        }
    }

    /// A connection with `peer` takes part in the round, if it does not yet.
    pub(crate) fn give_flow_a_turn(&mut self, index: FlowIndex, peer: IpAddr, waiting: Waiting) {
        if self.urgent.has(index) || self.data.has(index) {
            return;
        }
        let round = match waiting {
            Waiting::Urgent => &mut self.urgent,
            Waiting::Data | Waiting::InLine => &mut self.data,
        };
        round.enter(Party::Peer(peer), Turn::Flow(index, waiting));
    }

    /// `link`, of this interface, came back; its connections have been `seen` to work before, and
    /// to take no longer than `longest` for a round trip.
    pub(crate) fn welcome(
        &mut self,
        now: Instant,
        link: LinkId,
        by: Indicator,
        seen: Seen,
        longest: Option<Duration>,
    ) {
        let answered_in = longest.unwrap_or(LinkRtt::INITIAL).min(LONGEST_TAIL);
        match link.peer {
            None => {
                self.pacer.restart(now, seen, answered_in);
                if by != Indicator::FirstPacket {
                    self.pacer.await_sign(now);
                }
            }
            Some(_) => self.pacer.welcome_peer(now, seen, answered_in),
        }
        if self.data.kept() == 0 {
            self.back_since = now;
        }
        self.handshakes.learn_round_trip(longest);
        self.first_answers_by = self.first_answers_by.max(now + answered_in);
        if self.answers.len() > MANY_PEERS {
            let (urgent, data) = (&self.urgent, &self.data);
            let waits =
                |peer| urgent.waits_for(Party::Peer(peer)) || data.waits_for(Party::Peer(peer));
            self.answers.retain(waits);
        }
    }

    /// The link of a connection with `peer` came back: whether the peer is there is to be seen.
    pub(crate) fn expect(&mut self, peer: IpAddr) {
        self.answers.expect(peer);
        self.data.call_back(Party::Peer(peer));
    }

    /// Something plausible came from `peer`.
    pub(crate) fn hear(&mut self, peer: IpAddr) {
        if self.answers.heard(peer) {
            self.data.call_back(Party::Peer(peer));
        }
    }

    /// Something was sent to `peer` that draws an answer within `patience`.
    pub(crate) fn ask(&mut self, now: Instant, peer: IpAddr, patience: Duration) {
        self.answers.sent(now, peer, patience);
    }

    /// Whether nothing that was kept waits, nor has done for as long as the line outlasts that: who is
    /// still in line waits only for what was before it of its own.
    pub(crate) fn line_is_over(&self, now: Instant) -> bool {
        self.data.kept() == 0 && now >= self.line_ends + LONGEST_TAIL
    }

    /// Whether what a flow sends, whose link is up `since` then, is to wait behind others' that was kept,
    /// and whether new data of it goes no faster than that: the first answer opens a whole window to its
    /// sender at once.
    pub(crate) fn line(&self, now: Instant, since: Instant) -> (bool, bool) {
        let is_open = self.data.kept() > 0 || self.data.in_line() > 0 && now < self.line_ends;
        let is_paced = now < self.first_answers_by;
        let was_away = since >= self.back_since;
        (is_open && was_away, is_paced && was_away)
    }

    /// When a handshake is due again.
    pub(crate) fn next_handshake(&self) -> Option<Instant> {
        self.handshakes.deadline()
    }

    /// Other traffic takes part in the round, as one peer.
    pub(crate) fn give_others_a_turn(&mut self) {
        self.data.enter(Party::Others, Turn::Others);
    }

    /// Handshakes that are due take part in the round, all of them as one peer.
    pub(crate) fn give_handshakes_a_turn(&mut self) {
        if self.handshakes.has_waiting() {
            self.data.enter(Party::Handshakes, Turn::Handshakes);
        }
    }

    /// Takes the next turn, if one may be taken now.
    pub(crate) fn next_turn(&mut self, now: Instant) -> Option<Taken> {
        if !self.pacer.allows(now) {
            return None;
        }
        let taken = self.probe(now).or_else(|| self.take_urgent());
        let taken = taken.or_else(|| self.take_data(now));
        // Whoever was found to be silent just now is probed at once.
        let taken = taken.or_else(|| self.probe(now));
        if taken.is_none() {
            self.pacer.ran_dry();
            if now >= self.line_ends + LONGEST_TAIL && now >= self.first_answers_by {
                self.pacer.stop_measuring();
            }
        }
        taken
    }

    fn take_urgent(&mut self) -> Option<Taken> {
        let party = self.urgent.head()?;
        self.urgent.take(party)
    }

    fn take_data(&mut self, now: Instant) -> Option<Taken> {
        while let Some(party) = self.data.head() {
            if let Party::Peer(peer) = party
                && self.answers.is_silent(now, peer)
            {
                self.data.set_aside(party);
                self.answers.probe(now, peer);
                continue;
            }
            let taken = self.data.take(party)?;
            if taken.turn.waiting() == Some(Waiting::Data) {
                let took = now.since(self.back_since).min(LONGEST_TAIL);
                self.line_ends = now + took;
            }
            return Some(taken);
        }
        None
    }

    /// A turn of a silent peer, if one is due.
    fn probe(&mut self, now: Instant) -> Option<Taken> {
        while let Some((at, peer)) = self.answers.next_probe()
            && at.max(self.probe_at) <= now
        {
            let party = Party::Peer(peer);
            if self.data.waits_for(party) {
                return self.data.take(party);
            }
            self.answers.rest(peer);
        }
        None
    }

    /// What was taken has sent `len` bytes.
    pub(crate) fn charge(&mut self, now: Instant, taken: Taken, len: u32) {
        if let Party::Peer(peer) = taken.party
            && !self.answers.has_answered(peer)
            && self.answers.is_silent(now, peer)
        {
            self.probe_at = now + self.pacer.time_for(len) * PROBE_SHARE;
        }
        match taken.turn.waiting() {
            Some(Waiting::Urgent) => self.urgent.charge(taken, len),
            _ => self.data.charge(taken, len),
        }
    }

    /// When the next turn may be taken; `None` if nothing waits.
    pub(crate) fn next_chance(&self) -> Option<Instant> {
        if !self.urgent.is_empty() || !self.data.is_empty() {
            return Some(self.pacer.next_chance());
        }
        let (at, _) = self.answers.next_probe()?;
        Some(self.pacer.next_chance().max(at).max(self.probe_at))
    }
}

impl Turn {
    const fn waiting(self) -> Option<Waiting> {
        match self {
            Self::Flow(_, waiting) => Some(waiting),
            Self::Handshakes | Self::Others => None,
        }
    }
}
