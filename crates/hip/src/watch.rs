//! Whether a TCP connection recovers what an outage took, after it was made to move again.
//!
//! Linux may forget that a segment is lost. RACK (RFC 8985) marks it, and takes it off the list of those that it looks at,
//! until it is sent again. If the timeout or the recovery turns out needless meanwhile (RFC 5682, RFC 3522, RFC 2883), the mark
//! goes, and the segment is not put back on the list (`tcp_undo_cwnd_reduction`, `tcp_rack_detect_loss`): TCP sends new data, and
//! the missing one after its next timeout. That may be as long as the outages that its round trips were measured over. Here it
//! was up to 32 s.
//!
//! So as long as something is not acknowledged that was sent before the path worked, each acknowledgement of new data allows the next
//! one a time of two round trips. If it does not come, and the oldest segment was not sent again meanwhile, the connection is overdue.
//! That its TCP has forgotten something is shown where the peer has answered meanwhile and acknowledged nothing new, or nothing new but
//! what was sent again from below. Where the peer is silent the path may be gone again.

use outlast_base::time::{Duration, Instant};
use outlast_wire::SeqNumber;

/// The least time that an acknowledgement may take.
const LEAST: Duration = Duration::from_millis(200);

/// Round trips that it may take.
const ROUND_TRIPS: u32 = 2;

/// How often a connection is overdue without an acknowledgement of new data, each time after twice as long.
const TIMES: u32 = 4;

/// A connection that was made to move again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    began: Instant,
    /// The end of what was sent before that.
    until: SeqNumber,
    /// How long the next acknowledgement may take; nothing before the first one, which shows the round trip.
    patience: Option<Duration>,
    /// Since when it is waited for.
    since: Instant,
    /// How often the connection was overdue since then.
    times: u32,
    /// Whether the peer answers, and lacks something.
    is_shown: bool,
}

/// A connection that has stopped again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Overdue {
    /// The peer is silent.
    Silent,
    /// The peer answers, and lacks something.
    Forgotten,
}

impl Watch {
    /// It is made to move again now, and has sent everything before `until`.
    pub(crate) const fn begin(now: Instant, until: SeqNumber) -> Self {
        Self {
            began: now,
            until,
            patience: None,
            since: now,
            times: 0,
            is_shown: false,
        }
    }

    /// The peer has acknowledged everything before `snd_una`, and something new by that. Returns whether anything is left
    /// to wait for.
    pub(crate) fn hear(&mut self, now: Instant, snd_una: SeqNumber, is_new: bool) -> bool {
        if self.patience.is_none() {
            let round_trip = now.since(self.began);
            self.patience = Some(LEAST.max(round_trip * ROUND_TRIPS));
            self.since = now;
        }
        if is_new {
            self.is_shown = self.times > 0;
            self.since = now;
            self.times = 0;
        } else {
            self.is_shown = true;
        }
        snd_una.before(self.until)
    }

    /// When it is to be looked at, if its oldest segment was sent last at `sent_at`.
    pub(crate) fn due(&self, sent_at: Instant) -> Option<Instant> {
        let patience = self.patience.filter(|_| self.times < TIMES)?;
        Some(self.since.max(sent_at) + patience * (1 << self.times))
    }

    /// Whether it is overdue; each time is told once.
    pub(crate) fn overdue(&mut self, now: Instant, sent_at: Instant) -> Option<Overdue> {
        self.due(sent_at).filter(|due| *due <= now)?;
        self.times += 1;
        // Once for each answer: the path may be gone again since then.
        Some(match core::mem::take(&mut self.is_shown) {
            true => Overdue::Forgotten,
            false => Overdue::Silent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn each_acknowledgement_has_two_round_trips_and_a_fifth_of_a_second_at_least() {
        let mut watch = Watch::begin(at(0), SeqNumber(100));
        assert_eq!(watch.due(at(0)), None, "the round trip is not known");
        assert!(watch.hear(at(300), SeqNumber(10), false));
        assert_eq!(watch.due(at(0)), Some(at(900)));
        assert!(watch.hear(at(700), SeqNumber(20), true));
        assert_eq!(watch.due(at(0)), Some(at(1_300)));
        // It has sent its oldest segment again meanwhile.
        assert_eq!(watch.due(at(1_000)), Some(at(1_600)));
        assert!(!watch.hear(at(1_100), SeqNumber(100), true));
        let mut watch = Watch::begin(at(0), SeqNumber(100));
        assert!(watch.hear(at(20), SeqNumber(10), true));
        assert_eq!(watch.due(at(0)), Some(at(220)));
    }

    #[test]
    fn it_is_overdue_four_times() {
        let mut watch = Watch::begin(at(0), SeqNumber(100));
        watch.hear(at(0), SeqNumber(10), true);
        let overdue = (0..10_000).filter(|&now| watch.overdue(at(now), at(0)).is_some());
        assert_eq!(Vec::from_iter(overdue), [200, 400, 800, 1_600]);
        assert!(watch.hear(at(20_000), SeqNumber(20), true));
        let again = watch.overdue(at(20_200), at(0));
        assert!(again.is_some(), "it counts anew");
    }

    #[test]
    fn who_has_answered_lacks_something_and_who_has_not_may_be_away() {
        let begun = || {
            let mut watch = Watch::begin(at(0), SeqNumber(100));
            watch.hear(at(0), SeqNumber(10), true);
            watch
        };
        let mut silent = begun();
        assert_eq!(silent.overdue(at(200), at(0)), Some(Overdue::Silent));
        let mut answers = begun();
        answers.hear(at(100), SeqNumber(10), false);
        assert_eq!(answers.overdue(at(200), at(0)), Some(Overdue::Forgotten));
        assert_eq!(answers.overdue(at(400), at(0)), Some(Overdue::Silent));
        // It goes on by what was sent from below.
        silent.hear(at(210), SeqNumber(20), true);
        assert_eq!(silent.overdue(at(410), at(200)), Some(Overdue::Forgotten));
    }
}
