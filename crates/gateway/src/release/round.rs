//! Whose turn it is: deficit round robin by far host, then by connection.
//!
//! Each party of the round - a far host with its connections, all handshakes, all other traffic - may send
//! as many bytes as any other, and so may each connection of a far host (Shreedhar and Varghese, "Efficient
//! Fair Queuing using Deficit Round Robin", 1996). A turn may overdraw its account by one packet, so
//! that nobody needs to know a packet's length before it is taken. A far host that does not answer is
//! [set aside](Round::set_aside): its backlog delays nobody else.

use crate::mechanisms::path::Waiting;
use crate::tracking::FlowIndex;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::net::IpAddr;

/// What a party, or a connection within it, may send in one turn, in bytes: no less than a packet has
/// as a rule, so that a visit always allows one.
const QUANTUM: i64 = 1_514;
/// What somebody new may send: one packet.
const FIRST_TURN: i64 = 1;

/// One of those among whom the link is shared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Party {
    /// The connections with one far host.
    FarHost(IpAddr),
    /// Handshakes that are due.
    Handshakes,
    /// UDP and everything else.
    Others,
}

/// Who may send next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    Flow(FlowIndex, Waiting),
    Handshakes,
    Others,
}

#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Parties that take part, each with something in its queue.
    ring: VecDeque<Party>,
    queues: BTreeMap<Party, Queue>,
    /// The connections in all queues: each is there once.
    flows: BTreeSet<FlowIndex>,
    /// Turns, by [`Waiting`], of those that take part.
    kept: usize,
    in_line: usize,
}

#[derive(Debug)]
struct Queue {
    entries: VecDeque<Entry>,
    deficit: i64,
    is_aside: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    turn: Turn,
    deficit: i64,
}

/// A turn that was taken, until what it has sent [is charged](Round::charge).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) turn: Turn,
    pub(crate) party: Party,
    deficit: i64,
}

impl Queue {
    fn count(&self, wanted: Waiting) -> usize {
        let is_wanted =
            |entry: &&Entry| matches!(entry.turn, Turn::Flow(_, waiting) if waiting == wanted);
        self.entries.iter().filter(is_wanted).count()
    }
}

impl Round {
    /// `turn` waits from now on, unless it does already.
    pub(crate) fn enter(&mut self, party: Party, turn: Turn) {
        let is_new = match turn {
            Turn::Flow(index, _) => self.flows.insert(index),
            Turn::Handshakes | Turn::Others => !self.waits_for(party),
        };
        if !is_new {
            return;
        }
        let queue = self.queues.entry(party).or_insert_with(|| Queue {
            entries: VecDeque::new(),
            deficit: FIRST_TURN,
            is_aside: false,
        });
        if queue.entries.is_empty() && !queue.is_aside {
            self.ring.push_back(party);
        }
        queue.entries.push_back(Entry {
            turn,
            deficit: FIRST_TURN,
        });
        if !queue.is_aside {
            self.count(turn, 1);
        }
    }

    /// The party whose turn it is.
    pub(crate) fn head(&mut self) -> Option<Party> {
        loop {
            let party = *self.ring.front()?;
            match self.queues.get_mut(&party) {
                Some(queue) if queue.deficit > 0 => return Some(party),
                Some(queue) => {
                    queue.deficit += QUANTUM;
                    self.ring.rotate_left(1);
                }
                None => {
                    self.ring.pop_front();
                }
            }
        }
    }

    /// Takes the next turn of `party`.
    pub(crate) fn take(&mut self, party: Party) -> Option<Taken> {
        let queue = self.queues.get_mut(&party)?;
        while let Some(front) = queue.entries.front_mut()
            && front.deficit <= 0
        {
            front.deficit += QUANTUM;
            queue.entries.rotate_left(1);
        }
        let Entry { turn, deficit } = queue.entries.pop_front()?;
        if !queue.is_aside {
            let is_last = queue.entries.is_empty();
            if is_last && self.ring.front() == Some(&party) {
                self.ring.pop_front();
            } else if is_last {
                self.ring.retain(|other| *other != party);
            }
            self.count(turn, -1);
        }
        if let Turn::Flow(index, _) = turn {
            self.flows.remove(&index);
        }
        Some(Taken {
            turn,
            party,
            deficit,
        })
    }

    /// A connection waits no longer.
    pub(crate) fn leave(&mut self, party: Party, index: FlowIndex) {
        if !self.flows.remove(&index) {
            return;
        }
        let Some(queue) = self.queues.get_mut(&party) else {
            return;
        };
        let is_it = |entry: &Entry| matches!(entry.turn, Turn::Flow(other, _) if other == index);
        let entry = queue.entries.iter().position(is_it);
        let entry = entry.and_then(|place| queue.entries.remove(place));
        if queue.entries.is_empty() {
            self.ring.retain(|other| *other != party);
        }
        if let Some(entry) = entry.filter(|_| !queue.is_aside) {
            self.count(entry.turn, -1);
        }
    }

    /// What was taken has sent `len` bytes, and has [entered](Self::enter) again if it has more. Who has
    /// something left of his turn goes on with it.
    pub(crate) fn charge(&mut self, taken: Taken, len: u32) {
        let Some(queue) = self.queues.get_mut(&taken.party) else {
            return;
        };
        if queue.entries.is_empty() {
            self.queues.remove(&taken.party);
            return;
        }
        queue.deficit -= i64::from(len);
        let is_same = |turn: Turn| match (turn, taken.turn) {
            (Turn::Flow(one, _), Turn::Flow(other, _)) => one == other,
            _ => turn == taken.turn,
        };
        let again = queue.entries.back_mut().filter(|back| is_same(back.turn));
        if let Some(again) = again {
            again.deficit = taken.deficit - i64::from(len);
            if again.deficit > 0 {
                queue.entries.rotate_right(1);
            }
        }
        // Whoever was alone in the queue has left the ring and come back to its end. Its place is the front: if its
        // turn is over, it gets what the next one is worth there, as any other, and not only a round later.
        if !queue.is_aside
            && self.ring.back() == Some(&taken.party)
            && self.ring.front() != Some(&taken.party)
        {
            self.ring.rotate_right(1);
        }
    }

    /// `party` takes no part until it is [called back](Self::call_back); what waits for it stays.
    pub(crate) fn set_aside(&mut self, party: Party) {
        let Some(queue) = self.queues.get_mut(&party).filter(|queue| !queue.is_aside) else {
            return;
        };
        queue.is_aside = true;
        self.kept -= queue.count(Waiting::Data);
        self.in_line -= queue.count(Waiting::InLine);
        self.ring.retain(|other| *other != party);
    }

    /// `party` takes part again.
    pub(crate) fn call_back(&mut self, party: Party) {
        let Some(queue) = self.queues.get_mut(&party).filter(|queue| queue.is_aside) else {
            return;
        };
        queue.is_aside = false;
        queue.deficit = FIRST_TURN;
        self.kept += queue.count(Waiting::Data);
        self.in_line += queue.count(Waiting::InLine);
        if queue.entries.is_empty() {
            self.queues.remove(&party);
        } else {
            self.ring.push_back(party);
        }
    }

    /// Whether something waits for `party`.
    pub(crate) fn waits_for(&self, party: Party) -> bool {
        self.queues
            .get(&party)
            .is_some_and(|queue| !queue.entries.is_empty())
    }

    /// Whether nobody who takes part waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Turns of connections whose link was away, of those who take part.
    pub(crate) const fn kept(&self) -> usize {
        self.kept
    }

    /// Turns of connections that only stand in line behind these.
    pub(crate) const fn in_line(&self) -> usize {
        self.in_line
    }

    /// Whether the connection waits for its turn.
    pub(crate) fn has(&self, index: FlowIndex) -> bool {
        self.flows.contains(&index)
    }

    fn count(&mut self, turn: Turn, by: isize) {
        match turn {
            Turn::Flow(_, Waiting::Data) => self.kept = self.kept.saturating_add_signed(by),
            Turn::Flow(_, Waiting::InLine) => self.in_line = self.in_line.saturating_add_signed(by),
            _ => {}
        }
    }
}
