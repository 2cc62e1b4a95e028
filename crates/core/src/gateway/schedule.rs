//! Whose turn it is on one interface: small urgent packets first, then data, flow by flow.

use crate::flow::{FlowIndex, LinkRtt};
use crate::handshakes::Handshakes;
use crate::link::{Indicator, InterfaceId, LinkId};
use crate::mechanisms::path::Waiting;
use crate::others::OtherTraffic;
use crate::pace::Pacer;
use crate::time::{Duration, Instant};
use crate::units::BitRate;
use alloc::collections::{BTreeSet, VecDeque};

/// Who may send next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    Flow(FlowIndex, Waiting),
    Handshakes,
    Others,
}

/// What waits for one interface.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) interface: InterfaceId,
    pub(super) pacer: Pacer,
    pub(super) others: OtherTraffic,
    pub(super) handshakes: Handshakes,
    urgent: VecDeque<Turn>,
    data: VecDeque<Turn>,
    /// The flows in these queues: each is there once, whatever becomes of it meanwhile.
    queued: BTreeSet<FlowIndex>,
    others_have_turn: bool,
    handshakes_have_turn: bool,
    /// Turns of those whose link was away, and of those who stand behind them in line.
    kept: usize,
    in_line: usize,
    /// When the link came back of the first of those who were away.
    back_since: Instant,
    /// Once nothing of them waits, nobody gets into the line from then on.
    line_ends: Instant,
    /// By then what went out first has been answered, and the senders have gone on.
    first_answers_by: Instant,
}

/// The line outlasts what was kept by as long as that took, but no longer than this. What hosts have
/// held back meanwhile, each its own, would overflow the link's queue at once; for good, it is the link
/// that is to say when it is too much.
const LONGEST_TAIL: Duration = Duration::from_secs(2);

impl Schedule {
    pub(super) fn new(interface: InterfaceId, rate: Option<BitRate>) -> Self {
        Self {
            interface,
            pacer: Pacer::new(rate),
            others: OtherTraffic::default(),
            handshakes: Handshakes::default(),
            urgent: VecDeque::new(),
            data: VecDeque::new(),
            queued: BTreeSet::new(),
            others_have_turn: false,
            handshakes_have_turn: false,
            kept: 0,
            in_line: 0,
            back_since: Instant::ZERO,
            line_ends: Instant::ZERO,
            first_answers_by: Instant::ZERO,
        }
    }

    /// A flow takes part in the round, if it does not yet.
    pub(super) fn give_flow_a_turn(&mut self, index: FlowIndex, waiting: Waiting) {
        if self.queued.insert(index) {
            match waiting {
                Waiting::Urgent => self.urgent.push_back(Turn::Flow(index, waiting)),
                Waiting::Data | Waiting::InLine => {
                    self.kept += usize::from(waiting == Waiting::Data);
                    self.in_line += usize::from(waiting == Waiting::InLine);
                    self.data.push_back(Turn::Flow(index, waiting));
                }
            }
        }
    }

    /// `link`, of this interface, came back.
    pub(super) fn welcome(&mut self, now: Instant, link: LinkId, by: Indicator) {
        match link.peer {
            None => {
                self.pacer.restart(now);
                if by != Indicator::FirstPacket {
                    self.pacer.await_sign(now);
                }
            }
            Some(_) => self.pacer.welcome_peer(now),
        }
        if self.kept == 0 {
            self.back_since = now;
        }
    }

    /// Whether nothing that was kept waits, nor has done for as long as the line outlasts that: who is
    /// still in line waits only for what was before it of its own.
    pub(super) fn line_is_over(&self, now: Instant) -> bool {
        self.kept == 0 && now >= self.line_ends + LONGEST_TAIL
    }

    /// Whether what a flow sends, whose link is up `since` then, is to wait behind others' that was kept,
    /// and whether new data of it goes no faster than that: the first answer opens a whole window to its
    /// sender at once.
    pub(super) fn line(&self, now: Instant, since: Instant) -> (bool, bool) {
        let is_open = self.kept > 0 || self.in_line > 0 && now < self.line_ends;
        let is_paced = now < self.first_answers_by;
        let was_away = since >= self.back_since;
        (is_open && was_away, is_paced && was_away)
    }

    /// When a handshake is due again.
    pub(super) fn next_handshake(&self) -> Option<Instant> {
        self.handshakes.deadline()
    }

    /// An answer to what goes out now is there by `longest`, as far as anybody knows.
    pub(super) fn learn_round_trip(&mut self, now: Instant, longest: Option<Duration>) {
        self.handshakes.learn_round_trip(longest);
        let answered_in = longest.unwrap_or(LinkRtt::INITIAL).min(LONGEST_TAIL);
        self.first_answers_by = self.first_answers_by.max(now + answered_in);
    }

    /// Other traffic takes part in the round, as one flow.
    pub(super) fn give_others_a_turn(&mut self) {
        if !self.others_have_turn {
            self.others_have_turn = true;
            self.data.push_back(Turn::Others);
        }
    }

    /// Handshakes that are due take part in the round, all of them as one flow.
    pub(super) fn give_handshakes_a_turn(&mut self) {
        if self.handshakes.has_waiting() && !self.handshakes_have_turn {
            self.handshakes_have_turn = true;
            self.data.push_back(Turn::Handshakes);
        }
    }

    pub(super) fn next_turn(&mut self, now: Instant) -> Option<Turn> {
        let turn = self.urgent.pop_front().or_else(|| self.data.pop_front())?;
        match &turn {
            Turn::Others => self.others_have_turn = false,
            Turn::Handshakes => self.handshakes_have_turn = false,
            Turn::Flow(index, waiting) => {
                self.queued.remove(index);
                self.in_line -= usize::from(*waiting == Waiting::InLine);
                if *waiting == Waiting::Data {
                    self.kept -= 1;
                    self.line_ends = now + now.since(self.back_since).min(LONGEST_TAIL);
                }
            }
        }
        Some(turn)
    }

    /// When the next turn may be taken; `None` if nothing waits.
    pub(super) fn next_chance(&self) -> Option<Instant> {
        let waits = !self.urgent.is_empty() || !self.data.is_empty();
        waits.then(|| self.pacer.next_chance())
    }
}
