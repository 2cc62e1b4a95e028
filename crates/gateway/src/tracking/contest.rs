//! Whether the addresses and ports of a tracked connection have got another one.
//!
//! A client that has crashed may use its ports again, and so may one whose last FIN crossed elsewhere.
//! But two packets of somebody who knows no sequence number look the same: a SYN in one host's name,
//! and its answer in the other's. So nobody takes a connection's place by what he says. What does not
//! belong to the connection is noted beside it, as a rival whose segments fit each other. It takes the
//! place only when no segment of the connection was seen for [`PATIENCE`], and whoever keeps something
//! of the connection agrees.
//!
//! An idle connection is silent, too. So the first one whose place was taken is remembered, and one
//! segment within its bounds gives it the place back: nobody can send that who does not know its numbers.
//!
//! Left out: whoever can send in both hosts' names can have a made-up connection tracked in the place of
//! one that is older than the gateway, for as long as he goes on with it.

use super::half::{Half, advance, check_bounds};
use super::meeting::{Met, meet};
use super::tcp::{Observation, Oddity, Phase, TcpFlow, check_flags};
use crate::links::Direction;
use alloc::boxed::Box;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{TcpFlags, TcpHeader};

/// For so long no segment of a connection was seen that gives its place to another: longer than a
/// host that sends again what is not acknowledged pauses at first (RFC 6298, section 2.5, allows 60 s).
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What is known of a connection's rival, and of the connection whose place was taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contest {
    rival: Option<Rival>,
    /// The near and the far host of the first connection.
    first: Option<[Half; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Rival {
    near: Half,
    far: Half,
    /// Both hosts were seen, with numbers that fit.
    has_met: bool,
    /// No segment of the connection was seen since then.
    since: Instant,
    /// The rival's last segment passed then.
    heard_at: Instant,
}

/// Whose segment crosses with a connection's addresses and ports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Heard {
    /// It belongs to the connection; or, if it [begins anew](Observation::begins_anew), to the first
    /// one, which has its place again.
    Honest(Observation),
    /// It does not belong to the connection.
    Odd(Oddity),
    /// It belongs to a rival, which may [have the place](Contest::yield_to_rival) from now on, if whoever keeps
    /// something of the connection agrees.
    OfRival(Oddity),
}

impl Contest {
    /// A segment crosses with the addresses and ports of `flow`. Of what is none of its own, `contest`
    /// remembers what it must.
    #[inline]
    pub fn observe(
        contest: &mut Option<Box<Self>>,
        flow: &mut TcpFlow,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> Heard {
        if contest.is_none()
            && let Ok(observation) = flow.observe(now, direction, tcp, payload_len)
        {
            return Heard::Honest(observation);
        }
        Self::observe_contested(contest, flow, now, direction, tcp, payload_len)
    }

    /// A segment of a connection that is contested, or will be: it is odd.
    #[cold]
    fn observe_contested(
        contest: &mut Option<Box<Self>>,
        flow: &mut TcpFlow,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> Heard {
        // Of a connection that is not alive, more would be believed than of the first one.
        if let Some(known) = contest
            && flow.phase != Phase::Established
            && let Some(observation) = known.give_back(flow, now, direction, tcp, payload_len)
        {
            *contest = None;
            return Heard::Honest(observation);
        }
        let oddity = match flow.observe(now, direction, tcp, payload_len) {
            Ok(observation) => {
                if let Some(known) = contest {
                    known.rival = None;
                    if known.first.is_none() {
                        *contest = None;
                    }
                }
                return Heard::Honest(observation);
            }
            Err(Oddity::BadFlags) => return Heard::Odd(Oddity::BadFlags),
            Err(oddity) => oddity,
        };
        let known = contest.get_or_insert_default();
        if let Some(observation) = known.give_back(flow, now, direction, tcp, payload_len) {
            *contest = None;
            return Heard::Honest(observation);
        }
        match known.hear(flow, now, direction, tcp, payload_len) {
            true => Heard::OfRival(oddity),
            false => Heard::Odd(oddity),
        }
    }

    /// A segment crosses that does not belong to `flow`: whether it belongs to a rival that may have its place.
    fn hear(
        &mut self,
        flow: &TcpFlow,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> bool {
        let segment_len = payload_len + tcp.control_len();
        let is_stale = |rival: &Rival| now.since(rival.heard_at) >= PATIENCE;
        if self.rival.as_ref().is_some_and(is_stale) {
            self.rival = None;
        }
        if tcp.has(TcpFlags::RST) {
            // It ends nothing but what nobody relies on.
            self.rival = None;
            return false;
        }
        let rival = self.rival.get_or_insert_with(|| Rival::new(now));
        let is_heard = rival.hear(direction, tcp, segment_len);
        if !is_heard {
            return false;
        }
        rival.heard_at = now;
        let is_silent = flow.phase == Phase::Closed || now.since(rival.since) >= PATIENCE;
        rival.has_met && is_silent
    }

    /// The rival has the place of `flow` from now on.
    pub fn yield_to_rival(&mut self, flow: &mut TcpFlow) {
        let Some(rival) = self.rival.take_if(|rival| rival.has_met) else {
            return;
        };
        if flow.phase == Phase::Established {
            self.first.get_or_insert([flow.near, flow.far]);
        }
        (flow.near, flow.far) = (rival.near, rival.far);
        flow.phase = Phase::Established;
        flow.rtt.discard();
    }

    /// Gives the first connection its place back if the segment is of it.
    fn give_back(
        &mut self,
        flow: &mut TcpFlow,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> Option<Observation> {
        let [near, far] = self.first?;
        check_flags(tcp, payload_len).ok()?;
        let segment_len = payload_len + tcp.control_len();
        let stands_alone = tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        let (sender, receiver) = match direction {
            Direction::ToLink => (&near, &far),
            Direction::FromLink => (&far, &near),
        };
        if stands_alone || check_bounds(sender, receiver, tcp, segment_len).is_err() {
            return None;
        }
        (flow.near, flow.far) = (near, far);
        flow.phase = Phase::Established;
        flow.rtt.discard();
        let observation = flow.take_in(now, direction, tcp, segment_len);
        Some(Observation {
            begins_anew: true,
            ..observation
        })
    }
}

impl Rival {
    fn new(now: Instant) -> Self {
        Self {
            near: Half::default(),
            far: Half::default(),
            has_met: false,
            since: now,
            heard_at: now,
        }
    }

    /// Whether the segment is one of its own, or might be.
    fn hear(&mut self, direction: Direction, tcp: &TcpHeader, segment_len: u32) -> bool {
        let (sender, receiver) = match direction {
            Direction::ToLink => (&mut self.near, &mut self.far),
            Direction::FromLink => (&mut self.far, &mut self.near),
        };
        if !self.has_met {
            let met = meet(sender, receiver, tcp, segment_len);
            self.has_met = matches!(met, Ok(Met::Both(_)));
            return true;
        }
        let is_own =
            !tcp.has(TcpFlags::SYN) && check_bounds(sender, receiver, tcp, segment_len).is_ok();
        if is_own {
            advance(sender, receiver, tcp, segment_len);
        }
        is_own
    }
}
