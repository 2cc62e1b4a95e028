//! CUBIC (RFC 9438) with HyStart, in the arithmetic of Linux (`tcp_cubic.c`): the window's
//! target is computed in 1/1024 s for a round trip of 100 ms, whatever the real one is.
//!
//! Departures of Linux from the RFC that are kept: the target is not limited to 1.5 windows,
//! growth is at most one segment for two acknowledged; HyStart ends slow start for good, without
//! the conservative phase of RFC 9406.

use super::{Context, Window, reno};

/// Multiplicative decrease, in 1/1024.
//= RFC 9438, section 4.6
const BETA: u32 = 717;
const SCALE: u32 = 1024;
/// C, in 1/1024.
//= RFC 9438, section 5.1
const C: u64 = 41;
/// 1024 * C / RTT, for the round trip of 100 ms.
const C_PER_RTT: u64 = C * 10;
/// K^3 for one segment, in (1/1024 s)^3.
const CUBE_FACTOR: u64 = (1 << 40) / C_PER_RTT;
/// Acknowledged segments for one of Reno's, in 1/8.
//= RFC 9438, section 4.3
const RENO_SCALE: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);

/// HyStart does nothing below this window.
const HYSTART_LOW_WINDOW: u32 = 16;
/// Acknowledgements closer than this make a train, in us.
const HYSTART_TRAIN_GAP: u32 = 2_000;
/// Samples before the delay is judged.
const HYSTART_SAMPLES: u8 = 8;
/// What aggregation may add, in us: Linux computes it from the pacing rate and caps it here,
/// where it stands for every rate below 2 Gbit/s.
const HYSTART_AGGREGATION: u32 = 1_000;

/// State of CUBIC.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// Segments to acknowledge for one more.
    pace: u32,
    /// W_max.
    last_max: u32,
    last_cwnd: u32,
    last_tick: u64,
    origin: u32,
    /// K, in 1/1024 s.
    k: u64,
    /// Least round trip in us, zero before the first.
    min_rtt: u32,
    epoch_start: Option<u64>,
    acked: u32,
    reno_cwnd: u32,
    hystart: HyStart,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    started: bool,
    found: bool,
    samples: u8,
    round_start: u32,
    round_end: outlast_wire::SeqNumber,
    last_ack: u32,
    least_rtt: u32,
}

impl Cubic {
    pub(super) fn threshold_after_loss(&mut self, window: &Window) -> u32 {
        self.epoch_start = None;
        //= RFC 9438, section 4.7 (fast convergence)
        self.last_max = if window.cwnd < self.last_max {
            window.cwnd * (SCALE + BETA) / (2 * SCALE)
        } else {
            window.cwnd
        };
        (window.cwnd * BETA / SCALE).max(2)
    }

    pub(super) fn timed_out(&mut self, context: &Context) {
        *self = Self::default();
        self.start_round(context);
    }

    /// The application was idle: the curve goes on from where it stood.
    //= RFC 9438, section 5.8
    pub(super) fn restarted(&mut self, last_sent: outlast_base::time::Instant, context: &Context) {
        let idle = (context.now - last_sent).as_nanos() as u64 / context.tick.max(1);
        if let Some(start) = &mut self.epoch_start
            && idle > 0
        {
            *start = (*start + idle).min(context.ticks);
        }
    }

    pub(super) fn grow(&mut self, window: &mut Window, acked: u32, context: &Context) {
        if !window.is_limiting() {
            return;
        }
        let mut acked = acked;
        if window.in_slow_start() {
            acked = reno::slow_start(window, acked);
            if acked == 0 {
                return;
            }
        }
        self.update(window.cwnd, acked, context);
        reno::avoid(window, self.pace, acked);
    }

    fn update(&mut self, cwnd: u32, acked: u32, context: &Context) {
        self.acked += acked;
        let since = context.ticks.saturating_sub(self.last_tick);
        if self.last_cwnd == cwnd && since <= context.per_second / 32 {
            return;
        }
        // At most one computation a tick, unless a new epoch begins.
        if self.epoch_start.is_none() || since > 0 {
            self.last_cwnd = cwnd;
            self.last_tick = context.ticks;
            self.follow_curve(cwnd, acked, context);
        }
        self.follow_reno(cwnd);
        self.pace = self.pace.max(2);
    }

    //= RFC 9438, section 4.2
    fn follow_curve(&mut self, cwnd: u32, acked: u32, context: &Context) {
        let start = match self.epoch_start {
            Some(start) => start,
            None => self.begin_epoch(cwnd, acked, context.ticks),
        };
        let tick = context.tick.max(1);
        let min_rtt = (u64::from(self.min_rtt) * 1_000).div_ceil(tick);
        let elapsed = context.ticks.saturating_sub(start) + min_rtt;
        let t = (elapsed << 10) / context.per_second.max(1);
        let offset = t.abs_diff(self.k).min(1 << 17);
        let delta = (C_PER_RTT * offset * offset * offset) >> 40;
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        let target = if t < self.k {
            //= RFC 9438, section 4.4
            self.origin.saturating_sub(delta)
        } else {
            //= RFC 9438, section 4.5
            self.origin.saturating_add(delta)
        };
        self.pace = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            cwnd.saturating_mul(100)
        };
        if self.last_max == 0 {
            // Nothing is known of the path yet: 5 % a round trip.
            self.pace = self.pace.min(20);
        }
    }

    fn begin_epoch(&mut self, cwnd: u32, acked: u32, ticks: u64) -> u64 {
        self.epoch_start = Some(ticks);
        self.acked = acked;
        self.reno_cwnd = cwnd;
        if self.last_max <= cwnd {
            self.k = 0;
            self.origin = cwnd;
        } else {
            self.k = cube_root(CUBE_FACTOR * u64::from(self.last_max - cwnd));
            self.origin = self.last_max;
        }
        ticks
    }

    //= RFC 9438, section 4.3
    fn follow_reno(&mut self, cwnd: u32) {
        let per_segment = ((cwnd * RENO_SCALE) >> 3).max(1);
        if self.acked > per_segment {
            let steps = (self.acked - 1) / per_segment;
            self.acked -= steps * per_segment;
            self.reno_cwnd += steps;
        }
        if self.reno_cwnd > cwnd {
            self.pace = self.pace.min(cwnd / (self.reno_cwnd - cwnd));
        }
    }

    fn start_round(&mut self, context: &Context) {
        let now = context.clock_us();
        self.hystart.started = true;
        self.hystart.round_start = now;
        self.hystart.last_ack = now;
        self.hystart.round_end = context.snd_nxt;
        self.hystart.least_rtt = u32::MAX;
        self.hystart.samples = 0;
    }

    pub(super) fn sample(&mut self, window: &mut Window, rtt_us: u32, context: &Context) {
        // Right after recovery delays say nothing.
        if let Some(start) = self.epoch_start
            && context.ticks.saturating_sub(start) < context.per_second
        {
            return;
        }
        let rtt = rtt_us.max(1);
        if self.min_rtt == 0 || self.min_rtt > rtt {
            self.min_rtt = rtt;
        }
        if !self.hystart.found && window.in_slow_start() {
            self.judge_slow_start(window, rtt, context);
        }
    }

    fn judge_slow_start(&mut self, window: &mut Window, rtt: u32, context: &Context) {
        if !self.hystart.started || context.snd_una.after(self.hystart.round_end) {
            self.start_round(context);
        }
        if window.cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        let now = context.clock_us();
        if now.wrapping_sub(self.hystart.last_ack).cast_signed() <= HYSTART_TRAIN_GAP.cast_signed()
        {
            self.hystart.last_ack = now;
            let threshold = (self.min_rtt + HYSTART_AGGREGATION) / 2;
            if now.wrapping_sub(self.hystart.round_start) > threshold {
                self.leave_slow_start(window);
            }
        }
        self.hystart.least_rtt = self.hystart.least_rtt.min(rtt);
        if self.hystart.samples < HYSTART_SAMPLES {
            self.hystart.samples += 1;
            return;
        }
        let tolerance = (self.min_rtt / 8).clamp(4_000, 16_000);
        if self.hystart.least_rtt > self.min_rtt + tolerance {
            self.leave_slow_start(window);
        }
    }

    fn leave_slow_start(&mut self, window: &mut Window) {
        self.hystart.found = true;
        window.ssthresh = window.cwnd;
    }
}

/// The cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    // 2^22 cubed is beyond 64 bits.
    let mut root = 0_u64;
    for bit in (0..21).rev() {
        let candidate = root | 1 << bit;
        if candidate.pow(3) <= value {
            root = candidate;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Growth;
    use outlast_base::time::Instant;
    use outlast_wire::SeqNumber;

    fn context(ms: u64) -> Context {
        Context {
            now: Instant::from_millis(ms),
            ticks: ms / 4,
            tick: 4_000_000,
            per_second: 250,
            snd_una: SeqNumber(0),
            snd_nxt: SeqNumber(1),
        }
    }

    #[test]
    fn cube_roots() {
        for root in [0_u64, 1, 2, 3, 100, 12_345, 2_000_000] {
            assert_eq!(cube_root(root.pow(3)), root);
            assert_eq!(cube_root(root.pow(3) + root), root);
        }
    }

    #[test]
    fn decreases_by_three_tenths_and_converges_fast() {
        //= RFC 9438, section 4.6
        //= RFC 9438, section 4.7
        let mut cubic = Cubic::default();
        let mut window = Window::new(100, Growth::PerSegment);
        assert_eq!(cubic.threshold_after_loss(&window), 70);
        assert_eq!(cubic.last_max, 100);
        window.cwnd = 80;
        assert_eq!(cubic.threshold_after_loss(&window), 56);
        assert_eq!(cubic.last_max, 68);
    }

    #[test]
    fn returns_to_the_old_maximum_in_k_seconds() {
        //= RFC 9438, section 4.2
        let mut cubic = Cubic::default();
        let mut window = Window::new(1_000, Growth::PerSegment);
        window.ssthresh = cubic.threshold_after_loss(&window);
        window.cwnd = window.ssthresh;
        window.is_limiting = true;
        // K is the cube root of W_max (1 - beta) / C: about 9.1 s; the curve is flat there.
        let mut back_at = None;
        for ms in (0..20_000).step_by(100) {
            let cwnd = window.cwnd;
            cubic.grow(&mut window, cwnd, &context(ms));
            if window.cwnd >= 1_000 && back_at.is_none() {
                back_at = Some(ms);
            }
        }
        let back_at = back_at.expect("it grows back");
        assert!((7_000..10_500).contains(&back_at), "{back_at} ms");
    }

    #[test]
    fn hystart_leaves_slow_start_when_the_delay_grows() {
        let mut cubic = Cubic::default();
        let mut window = Window::new(100, Growth::PerSegment);
        cubic.sample(&mut window, 40_000, &context(0));
        for n in 0..8 {
            cubic.sample(&mut window, 60_000, &context(10 * n));
        }
        assert!(
            window.in_slow_start(),
            "one small sample keeps the round's least small"
        );
        let mut next_round = context(100);
        next_round.snd_una = SeqNumber(2);
        next_round.snd_nxt = SeqNumber(100);
        for n in 0..9 {
            next_round.now = Instant::from_millis(100 + 10 * n);
            cubic.sample(&mut window, 60_000, &next_round);
        }
        assert_eq!(window.ssthresh, 100);
    }
}
