//! CUBIC (RFC 9438), segment by segment: the window after a loss, and round trip by round trip.

use crate::common::script::{Script, ack, script_config};
use outlast_tcp::profile::LINUX_6;

/// Payload of a segment: small, so that a window of 60000 bytes holds 111.
const SEGMENT: i64 = 536;

/// A transfer over a path of `rtt` ms on which each round trip's segments are acknowledged.
struct Rounds {
    s: Script,
    rtt: u64,
    ms: u64,
    acked: i64,
}

impl Rounds {
    fn new(rtt: u64) -> Self {
        let mut config = script_config(&LINUX_6);
        config.mtu = 576;
        let mut s = Script::connected(config, rtt);
        s.write(1_000, 1 << 40);
        let mut rounds = Self {
            s,
            rtt,
            ms: 1_000,
            acked: 0,
        };
        rounds.drop_sent();
        rounds
    }

    fn drop_sent(&mut self) {
        while self.s.next(self.ms).is_some() {}
    }

    fn high(&self) -> i64 {
        i64::from(self.s.end.trace().snd_nxt.0.wrapping_sub(1))
    }

    /// Everything that is outstanding arrives; the window is told to be large.
    fn round(&mut self) -> u32 {
        let high = self.high();
        self.ms += self.rtt;
        while self.acked < high {
            self.acked = (self.acked + 2 * SEGMENT).min(high);
            send!(self.s, self.ms, ack(self.acked).window(60_000));
        }
        self.drop_sent();
        self.s.end.trace().cwnd
    }

    /// The first segment of a window is lost and sent again.
    fn lose(&mut self) -> u32 {
        let before = self.s.end.trace().cwnd;
        let (lost, high) = (self.acked, self.high());
        self.ms += self.rtt;
        send!(
            self.s,
            self.ms,
            ack(lost).sack(&[(lost + SEGMENT, high)]).window(60_000)
        );
        self.drop_sent();
        assert!(self.s.end.is_recovering());
        let high = self.high();
        self.ms += self.rtt;
        self.acked = high;
        send!(self.s, self.ms, ack(high).window(60_000));
        self.drop_sent();
        assert!(!self.s.end.is_recovering());
        before
    }
}

#[test]
fn a_loss_takes_three_tenths() {
    //= RFC 9438, section 4.6
    let mut rounds = Rounds::new(40);
    while rounds.round() < 40 {}
    let before = rounds.lose();
    let after = rounds.s.end.trace();
    assert_eq!(after.ssthresh, Some(before * 717 / 1_024));
    // The last acknowledgement has begun to grow it again.
    assert!(after.cwnd - before * 717 / 1_024 <= 1);
}

#[test]
fn the_window_comes_back_to_where_it_was_and_stays_near_it() {
    //= RFC 9438, section 4.2
    //= RFC 9438, section 4.4
    //= RFC 9438, section 5.1
    let mut rounds = Rounds::new(400);
    while rounds.round() < 50 {}
    let before = rounds.lose();
    // K is the cube root of 0.3 W_max / 0.4, in seconds.
    let k = (f64::from(before) * 0.3 / 0.4).cbrt();
    let start = rounds.ms;
    let mut steps = Vec::new();
    let mut last = rounds.s.end.trace().cwnd;
    while ((rounds.ms - start) as f64) < k * 1_000.0 {
        let cwnd = rounds.round();
        steps.push(cwnd - last);
        last = cwnd;
        assert!(cwnd <= before + 1, "{cwnd} of {before}");
    }
    assert!(last + 2 >= before, "{last} of {before} after {k} s");
    // Concave: fast at first, then slower and slower.
    let half = steps.len() / 2;
    let [first, second] = [&steps[..half], &steps[half..]].map(|steps| steps.iter().sum::<u32>());
    assert!(first > 2 * second, "{steps:?}");
}

#[test]
fn beyond_the_old_window_it_probes_faster_and_faster() {
    //= RFC 9438, section 4.2
    //= RFC 9438, section 4.5
    let mut rounds = Rounds::new(400);
    while rounds.round() < 40 {}
    let before = rounds.lose();
    let k = (f64::from(before) * 0.3 / 0.4).cbrt();
    let start = rounds.ms;
    let at = |rounds: &mut Rounds, seconds: f64| {
        while ((rounds.ms - start) as f64) < seconds * 1e3 {
            rounds.round();
        }
        rounds.s.end.trace().cwnd
    };
    let [one, two, three] = [0.5, 2.0, 3.5].map(|more| at(&mut rounds, k + more));
    assert!(one + 1 >= before, "{one} of {before}");
    assert!(three - two > two - one, "{before}: {one} {two} {three}");
}

#[test]
fn it_is_never_slower_than_reno() {
    //= RFC 9438, section 4.3
    let mut rounds = Rounds::new(40);
    while rounds.round() < 12 {}
    let _ = rounds.lose();
    let start = rounds.s.end.trace().cwnd;
    // Alpha is 3 (1 - 0.7) / (1 + 0.7) segments a round trip: 0.53, or 21 in 40.
    for _ in 0..40 {
        rounds.round();
    }
    let grown = rounds.s.end.trace().cwnd - start;
    assert!((18..=45).contains(&grown), "{grown}");
}

#[test]
fn a_loss_before_the_old_window_lowers_what_it_aims_at() {
    //= RFC 9438, section 4.7
    let mut rounds = Rounds::new(400);
    while rounds.round() < 50 {}
    let first = rounds.lose();
    rounds.round();
    let second = rounds.lose();
    assert!(second < first);
    // Fast convergence: it comes to rest below where the second loss was.
    let start = rounds.ms;
    let aim = f64::from(second) * (1.0 + 0.7) / 2.0;
    let k = ((aim - f64::from(second) * 0.7) / 0.4).cbrt();
    let mut last = 0;
    while ((rounds.ms - start) as f64) < k * 1e3 {
        last = rounds.round();
    }
    assert!(last < second, "{last} of {second}");
    assert!(f64::from(last) >= aim - 3.0, "{last} of {aim}");
}

#[test]
fn a_timeout_takes_as_much_of_the_threshold_and_begins_slowly() {
    //= RFC 9438, section 4.8
    let mut rounds = Rounds::new(40);
    while rounds.round() < 40 {}
    let before = rounds.s.end.trace().cwnd;
    while rounds.s.end.counters().timeouts == 0 {
        let _ = rounds.s.next_sent().expect("a timeout");
    }
    let after = rounds.s.end.trace();
    assert_eq!(after.cwnd, 1);
    assert_eq!(after.ssthresh, Some(before * 717 / 1_024));
}

#[test]
fn time_without_data_does_not_move_the_curve() {
    //= RFC 9438, section 5.8
    let grown = |pause_ms: u64| {
        let mut rounds = Rounds::new(40);
        rounds.s.end.set_user_timeout(None);
        while rounds.round() < 16 {}
        let _ = rounds.lose();
        for _ in 0..10 {
            rounds.round();
        }
        // The peer closes its window for a while, and nothing is outstanding.
        let high = rounds.high();
        rounds.ms += rounds.rtt;
        rounds.acked = high;
        send!(rounds.s, rounds.ms, ack(high).window(0));
        rounds.drop_sent();
        let before = rounds.s.end.trace().cwnd;
        rounds.ms += pause_ms;
        rounds.drop_sent();
        send!(rounds.s, rounds.ms, ack(high).window(60_000));
        rounds.drop_sent();
        for _ in 0..5 {
            rounds.round();
        }
        rounds.s.end.trace().cwnd.abs_diff(before)
    };
    let (short, long) = (grown(100), grown(3_000));
    assert!(long <= short + 6, "{short} {long}");
}

#[test]
fn a_loss_that_was_none_gives_the_window_back() {
    //= RFC 9438, section 4.9
    let mut rounds = Rounds::new(40);
    while rounds.round() < 40 {}
    let before = rounds.s.end.trace();
    let (late, high) = (rounds.acked, rounds.high());
    rounds.ms += rounds.rtt;
    let missing = ack(late).sack(&[(late + SEGMENT, high)]).window(60_000);
    send!(rounds.s, rounds.ms, missing);
    rounds.drop_sent();
    let lowered = rounds.s.end.trace();
    assert_eq!(lowered.ssthresh, Some(before.cwnd * 717 / 1_024));
    // It was late only: both copies came, and the peer says so.
    send!(rounds.s, rounds.ms + 5, ack(high).window(60_000));
    rounds.ms += rounds.rtt;
    rounds.acked = high;
    let twice = ack(high).sack(&[(late, late + SEGMENT)]).window(60_000);
    send!(rounds.s, rounds.ms, twice);
    rounds.drop_sent();
    let after = rounds.s.end.trace();
    assert_eq!(rounds.s.end.counters().undone, 1);
    assert!(after.cwnd >= before.cwnd, "{before:?} {after:?}");
    assert_eq!(after.ssthresh, before.ssthresh);
    // And it goes on growing from there.
    assert!(rounds.round() >= after.cwnd);
}
