//! What the near host has, told first by an acknowledgement without timestamps, where the near host still echoes one from
//! before the outage.
//!
//! The far host has timed out meanwhile. An acknowledgement of something new that echoes an older timestamp makes it take
//! its timeouts for spurious, and so what it has lost for under way (RFC 4015, section 3.2), and time the outage as a round trip
//! (RFC 7323, section 4.1): it then looks for what was lost after twice that (RFC 8985, section 7.2), or after a timeout made of
//! it. Without SACK, Linux does not even count duplicates from then on. The near host goes on echoing such a timestamp until the next
//! segment that it lacks has arrived.
//!
//! Linux takes an acknowledgement without timestamps, and what it can tell from that is right: what of its data had arrived.
//! Others drop it, as RFC 7323, section 3.2, asks. So the acknowledgement itself follows, which then says nothing new to Linux.
//!
//! Whatever else goes to the far host, as data that has waited, has the same echo. It is replaced by the first timestamp that
//! the far host has shown since the return, or by none as long as it has shown none.

use super::super::{Context, SendReason};
use super::lately_told::{Doubt, LatelyTold};
use super::rules::HoldRule;
use super::sleepers::back_offs;
use super::stamp::Stamp;
use crate::tracking::TcpFlow;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};

/// After a shorter outage a sender has hardly timed out.
const SHORTEST_OUTAGE: Duration = Duration::from_secs(1);

/// Whether the near host's echoes are from before an outage.
#[derive(Debug, Default)]
pub(super) struct StaleEcho {
    stale: Stale,
    /// The outage was long enough for the far host to time out.
    is_long: bool,
    /// The newest number that the near host was heard to acknowledge. What the tracker has is a guess until both hosts
    /// were seen to fit each other.
    acked: Option<SeqNumber>,
    /// What the far host was told that the near host has.
    told: LatelyTold,
    /// Whether the newest of that may be lost.
    doubt: Doubt,
    /// The time at which the far host was heard last.
    heard_at: Option<Instant>,
}

/// Which echoes are stale.
#[derive(Debug, Default)]
enum Stale {
    /// None, as far as is known.
    #[default]
    None,
    /// All: the far host was not heard since the return.
    All,
    /// Those before this one: the first timestamp (TSval) that the far host has shown since the return.
    Before(Stamp),
}

impl StaleEcho {
    /// The near host has sent this.
    pub(super) fn hear_near(&mut self, tcp: &TcpHeader) {
        if let (Stale::Before(first), Some(echo)) = (&self.stale, Stamp::echo_of(tcp))
            && !echo.is_before(*first)
        {
            self.stale = Stale::None;
        }
        let is_newer = self.acked.is_none_or(|acked| acked.before(tcp.ack));
        if tcp.has(TcpFlags::ACK) && is_newer {
            self.acked = Some(tcp.ack);
        }
    }

    /// This of the near host's goes onto the link, which is up.
    pub(super) fn note_passed(&mut self, now: Instant, tcp: &TcpHeader) {
        if tcp.has(TcpFlags::ACK) {
            self.told.note(now, tcp.ack, tcp.seq);
        }
    }

    /// The link has gone away, which was noticed at `since`. What was told shortly before may be lost.
    pub(super) fn suspend(&mut self, since: Instant, round_trip: Duration) {
        let heard_at = self.heard_at.unwrap_or(since);
        let doubt = self.told.suspend(since, heard_at, round_trip);
        self.doubt = self.doubt.max(doubt);
    }

    /// Whether all that the near host has sent since it acknowledged what was new is one small answer.
    pub(super) fn has_answered(&self, flow: &TcpFlow) -> bool {
        self.told.has_answered(flow.near.next)
    }

    /// The link is back, after so long.
    pub(super) fn begin(&mut self, away: Duration) {
        self.is_long = away >= SHORTEST_OUTAGE;
        self.stale = Stale::All;
        self.told
            .begin(if self.is_long { back_offs(away) } else { 0 });
    }

    /// The far host has sent this while the link is up.
    pub(super) fn hear_far(&mut self, now: Instant, tcp: &TcpHeader) {
        self.heard_at = Some(now);
        if let Stale::All = self.stale {
            self.stale = Stamp::in_header(tcp).map_or(Stale::None, Stale::Before);
        }
    }

    /// `packet` towards the far host, with another echo if its own is from before the return: the first timestamp that the far
    /// host has shown since, or none as long as it has shown none.
    pub(super) fn freshen(&self, packet: &Packet) -> Option<Packet> {
        let fresh = match self.stale {
            Stale::None => return None,
            Stale::All => Stamp::NONE,
            Stale::Before(first) => first,
        };
        let tcp = packet.tcp()?;
        let echo = Stamp::echo_of(tcp)?;
        // An acknowledgement of nothing new is no round trip.
        let told = self.told.newest().filter(|_| self.doubt == Doubt::None);
        let is_news = told.is_none_or(|told| tcp.ack.after(told));
        (is_news && (fresh == Stamp::NONE || echo.is_before(fresh))).then(|| fresh.echo_in(packet))
    }

    /// What goes before all else to a far host that has something [untold](Self::untold): errors about what it may still
    /// repeat, then all that the near host has acknowledged.
    pub(super) fn next(&mut self, cx: &Context<'_>, least: Doubt) -> Option<(Packet, SendReason)> {
        let acked = self.untold(cx, least)?;
        let wakes = cx.rules.has(HoldRule::WakeThinSender);
        if wakes && let Some(error) = self.told.next_error(cx, acked) {
            return Some((error, SendReason::Unreachable));
        }
        let packet = cx.near_host_proxy.acknowledge_untimed(cx.key, cx.flow)?;
        self.doubt = Doubt::None;
        self.told.begin(0);
        self.told.note(cx.now, acked, cx.flow.near.next);
        self.told.tell_again(cx.now);
        Some((packet, SendReason::Untimed))
    }

    /// What the near host has acknowledged and the far host may not know, by so much doubt at `least`: as long as the near
    /// host's echo is stale, or no timestamps are used.
    pub(super) fn untold(&mut self, cx: &Context<'_>, least: Doubt) -> Option<SeqNumber> {
        let is_doubtful = self.doubt >= least;
        let echo = cx.near_host_proxy.stamps().map(Stamp::echo_in_stamps);
        let is_stale = match (&self.stale, echo) {
            _ if !self.is_long => false,
            (Stale::None, _) => false,
            (_, None) => is_doubtful,
            (Stale::All, Some(_)) => true,
            (Stale::Before(first), Some(echo)) => echo.is_before(*first),
        };
        if !is_stale {
            return None;
        }
        let known = cx.flow.acknowledged_by_near()?;
        let acked = self.acked.filter(|acked| *acked == known)?;
        let told = self.told.newest().filter(|_| !is_doubtful);
        let is_untold = told.is_none_or(|told| told.before(acked));
        is_untold.then_some(acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modulo 2^32 that would be newer than half of all numbers.
    #[test]
    fn the_acknowledgement_field_of_a_syn_says_nothing() {
        let segment = |flags, ack| TcpHeader {
            flags,
            ack: SeqNumber(ack),
            ..TcpHeader::default()
        };
        let mut echo = StaleEcho::default();
        let syn = segment(TcpFlags::SYN, 0);
        echo.hear_near(&syn);
        echo.note_passed(Instant::ZERO, &syn);
        assert_eq!((echo.acked, echo.told.newest()), (None, None));
        let ack = segment(TcpFlags::ACK, 1 << 31);
        echo.hear_near(&ack);
        echo.note_passed(Instant::ZERO, &ack);
        let expected = Some(SeqNumber(1 << 31));
        assert_eq!((echo.acked, echo.told.newest()), (expected, expected));
    }
}
