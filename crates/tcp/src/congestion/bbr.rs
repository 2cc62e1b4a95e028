//! BBR, first version (draft-cardwell-iccrg-bbr-congestion-control-00), in the arithmetic of
//! Linux (`tcp_bbr.c`), as far as outages need it.
//!
//! Left out: the detection of policers ("long-term" bandwidth), which needs seconds of steady
//! loss. The random start of the gain cycle comes from a generator of its own.

use super::Window;
use outlast_base::time::{Duration, Instant};
use outlast_wire::SeqNumber;

/// Segments a microsecond are counted in this fraction.
const BW_UNIT: u64 = 1 << 24;
/// Gains are counted in 1/256.
const UNIT: u64 = 256;
/// 2 / ln 2.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = UNIT * 2;
const PACING_GAINS: [u64; 8] = [
    UNIT * 5 / 4,
    UNIT * 3 / 4,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
];
/// Rounds that the largest bandwidth is remembered for.
const BW_ROUNDS: u32 = 10;
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
const LEAST_CWND: u32 = 4;
const INITIAL_CWND: u32 = 10;
/// Rounds that the largest aggregation is remembered for, twice.
const AGGREGATION_ROUNDS: u8 = 5;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

/// How fast data was delivered (draft-cheng-iccrg-delivery-rate-estimation), told with each
/// acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    /// Segments delivered when the segment that is judged by was sent; none if there is none.
    pub(crate) prior_delivered: Option<u32>,
    pub(crate) prior_delivered_at: Instant,
    /// Segments delivered over the interval.
    pub(crate) delivered: u32,
    /// Length of the interval in us; zero if there is none to go by.
    pub(crate) interval_us: u64,
    pub(crate) last_end: SeqNumber,
    pub(crate) is_application_limited: bool,
    /// Segments in flight before this acknowledgement.
    pub(crate) prior_in_flight: u32,
    /// Segments that this acknowledgement delivered.
    pub(crate) newly_delivered: u32,
    /// Segments that were found lost by it.
    pub(crate) newly_lost: u32,
    pub(crate) rtt_us: Option<u32>,
    pub(crate) may_be_delayed: bool,
}

/// Where the sender stands after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) now: Instant,
    pub(crate) delivered: u32,
    pub(crate) delivered_at: Instant,
    pub(crate) in_flight: u32,
    pub(crate) mss: u32,
    pub(crate) srtt_us: u64,
    /// In fast recovery.
    pub(crate) in_recovery: bool,
    /// Recovering from a timeout.
    pub(crate) in_loss: bool,
}

/// The largest of a sliding number of rounds, with runners-up.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    samples: [(u32, u64); 3],
}

impl Largest {
    fn value(&self) -> u64 {
        self.samples[0].1
    }

    fn update(&mut self, round: u32, value: u64) {
        let sample = (round, value);
        if value >= self.samples[0].1 || round.wrapping_sub(self.samples[2].0) > BW_ROUNDS {
            self.samples = [sample; 3];
            return;
        }
        if value >= self.samples[1].1 {
            self.samples[1] = sample;
            self.samples[2] = sample;
        } else if value >= self.samples[2].1 {
            self.samples[2] = sample;
        }
        let age = round.wrapping_sub(self.samples[0].0);
        if age > BW_ROUNDS {
            self.samples = [self.samples[1], self.samples[2], sample];
            if round.wrapping_sub(self.samples[0].0) > BW_ROUNDS {
                self.samples = [self.samples[1], self.samples[2], sample];
            }
        } else if self.samples[1].0 == self.samples[0].0 && age > BW_ROUNDS / 4 {
            self.samples[1] = sample;
            self.samples[2] = sample;
        } else if self.samples[2].0 == self.samples[1].0 && age > BW_ROUNDS / 2 {
            self.samples[2] = sample;
        }
    }
}

/// State of BBR.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    bandwidth: Largest,
    rounds: u32,
    round_end: u32,
    round_start: bool,
    min_rtt_us: Option<u32>,
    min_rtt_at: Instant,
    probe_rtt_until: Option<Instant>,
    probe_rtt_round_done: bool,
    full_bandwidth: u64,
    full_count: u8,
    is_full: bool,
    cycle: u8,
    cycle_at: Instant,
    prior_cwnd: u32,
    was_recovering: bool,
    was_in_recovery: bool,
    conserving: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
    pacing_rate: u64,
    pacing_gain: u64,
    cwnd_gain: u64,
    aggregation: [u32; 2],
    aggregation_at: u8,
    aggregation_rounds: u8,
    epoch_at: Instant,
    epoch_acked: u32,
    random: u32,
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            mode: Mode::Startup,
            bandwidth: Largest::default(),
            rounds: 0,
            round_end: 0,
            round_start: false,
            min_rtt_us: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            full_bandwidth: 0,
            full_count: 0,
            is_full: false,
            cycle: 0,
            cycle_at: Instant::ZERO,
            prior_cwnd: 0,
            was_recovering: false,
            was_in_recovery: false,
            conserving: false,
            idle_restart: false,
            has_seen_rtt: false,
            pacing_rate: u64::MAX,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            aggregation: [0; 2],
            aggregation_at: 0,
            aggregation_rounds: 0,
            epoch_at: Instant::ZERO,
            epoch_acked: 0,
            random: 0x9e37_79b9,
        }
    }
}

impl Bbr {
    pub(super) fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    /// The application, not the network, ends the round-trip probe.
    pub(crate) fn holds_back(&self) -> bool {
        self.mode == Mode::ProbeRoundTrip
    }

    pub(super) fn save_window(&mut self, window: &Window, recovering: bool) {
        self.prior_cwnd = if !recovering && self.mode != Mode::ProbeRoundTrip {
            window.cwnd
        } else {
            self.prior_cwnd.max(window.cwnd)
        };
    }

    pub(super) fn window_after_undo(&mut self, window: &Window) -> u32 {
        self.full_bandwidth = 0;
        self.full_count = 0;
        window.cwnd
    }

    pub(super) fn timed_out(&mut self) {
        self.was_recovering = true;
        self.was_in_recovery = false;
        self.full_bandwidth = 0;
        self.round_start = true;
    }

    pub(super) fn restarted(&mut self) {
        self.idle_restart = true;
        self.epoch_acked = 0;
    }

    /// The initial pacing rate, from the first window and the round trip.
    pub(crate) fn start(&mut self, window: &Window, standing: &Standing) {
        let rtt = if standing.srtt_us > 0 {
            self.has_seen_rtt = true;
            standing.srtt_us
        } else {
            1_000
        };
        let bandwidth = u64::from(window.cwnd) * BW_UNIT / rtt;
        self.pacing_rate = Self::bytes_per_second(bandwidth, HIGH_GAIN, standing.mss);
        self.min_rtt_at = standing.now;
        self.round_end = standing.delivered;
    }

    pub(crate) fn acknowledged(&mut self, window: &mut Window, rate: &RateSample, s: &Standing) {
        self.update_bandwidth(rate, s);
        self.update_aggregation(window, rate, s);
        self.update_cycle(rate, s);
        self.judge_full(rate);
        self.judge_drain(window, s);
        self.update_min_rtt(window, rate, s);
        self.choose_gains();
        self.pace(window, s);
        self.set_window(window, rate, s);
    }

    fn update_bandwidth(&mut self, rate: &RateSample, s: &Standing) {
        self.round_start = false;
        let Some(prior) = rate.prior_delivered.filter(|_| rate.interval_us > 0) else {
            return;
        };
        if prior.wrapping_sub(self.round_end).cast_signed() >= 0 {
            self.round_end = s.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserving = false;
        }
        let bandwidth = u64::from(rate.delivered) * BW_UNIT / rate.interval_us;
        if !rate.is_application_limited || bandwidth >= self.bandwidth.value() {
            self.bandwidth.update(self.rounds, bandwidth);
        }
    }

    fn update_aggregation(&mut self, window: &Window, rate: &RateSample, s: &Standing) {
        if rate.newly_delivered == 0 || rate.interval_us == 0 {
            return;
        }
        if self.round_start {
            self.aggregation_rounds = (self.aggregation_rounds + 1).min(31);
            if self.aggregation_rounds >= AGGREGATION_ROUNDS {
                self.aggregation_rounds = 0;
                self.aggregation_at ^= 1;
                self.aggregation[usize::from(self.aggregation_at)] = 0;
            }
        }
        let epoch_us = s.delivered_at.since(self.epoch_at).as_micros() as u64;
        let expected = self.bandwidth.value().saturating_mul(epoch_us) / BW_UNIT;
        let mut expected = u32::try_from(expected).unwrap_or(u32::MAX);
        if self.epoch_acked <= expected || self.epoch_acked + rate.newly_delivered >= 1 << 20 {
            self.epoch_acked = 0;
            self.epoch_at = s.delivered_at;
            expected = 0;
        }
        self.epoch_acked += rate.newly_delivered;
        let extra = (self.epoch_acked - expected).min(window.cwnd);
        let largest = &mut self.aggregation[usize::from(self.aggregation_at)];
        *largest = (*largest).max(extra);
    }

    fn update_cycle(&mut self, rate: &RateSample, s: &Standing) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let min_rtt = Duration::from_micros(u64::from(self.min_rtt_us.unwrap_or(0)));
        let is_long = s.delivered_at.since(self.cycle_at) > min_rtt;
        let is_over = match self.pacing_gain {
            UNIT => is_long,
            gain if gain > UNIT => {
                let target = self.in_flight_target(gain, s.mss);
                is_long && (rate.newly_lost > 0 || rate.prior_in_flight >= target)
            }
            _ => is_long || rate.prior_in_flight <= self.in_flight_target(UNIT, s.mss),
        };
        if is_over {
            self.next_phase(s);
        }
    }

    fn next_phase(&mut self, s: &Standing) {
        self.cycle = (self.cycle + 1) % 8;
        self.cycle_at = s.delivered_at;
    }

    fn judge_full(&mut self, rate: &RateSample) {
        if self.is_full || !self.round_start || rate.is_application_limited {
            return;
        }
        if self.bandwidth.value() >= self.full_bandwidth * 5 / 4 {
            self.full_bandwidth = self.bandwidth.value();
            self.full_count = 0;
            return;
        }
        self.full_count += 1;
        self.is_full = self.full_count >= 3;
    }

    fn judge_drain(&mut self, window: &mut Window, s: &Standing) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            window.ssthresh = self.in_flight_target(UNIT, s.mss);
        }
        if self.mode == Mode::Drain && s.in_flight <= self.in_flight_target(UNIT, s.mss) {
            self.probe_bandwidth(s);
        }
    }

    fn probe_bandwidth(&mut self, s: &Standing) {
        self.mode = Mode::ProbeBandwidth;
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        // Any phase but the draining one.
        self.cycle = 7 - (self.random >> 24) as u8 % 7;
        self.next_phase(s);
    }

    fn update_min_rtt(&mut self, window: &mut Window, rate: &RateSample, s: &Standing) {
        let expired = s.now > self.min_rtt_at + MIN_RTT_LIFE;
        if let Some(rtt) = rate.rtt_us {
            let lower = self.min_rtt_us.is_none_or(|least| rtt < least);
            if lower || (expired && !rate.may_be_delayed) {
                self.min_rtt_us = Some(rtt);
                self.min_rtt_at = s.now;
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRoundTrip {
            self.mode = Mode::ProbeRoundTrip;
            self.save_window(window, self.was_recovering);
            // Saving looks at the mode that was left.
            self.prior_cwnd = self.prior_cwnd.max(window.cwnd);
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.probe_rtt(window, s);
        }
        if rate.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, window: &mut Window, s: &Standing) {
        match self.probe_rtt_until {
            None if s.in_flight <= LEAST_CWND => {
                self.probe_rtt_until = Some(s.now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.round_end = s.delivered;
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && s.now > until {
                    self.min_rtt_at = s.now;
                    window.set(window.cwnd.max(self.prior_cwnd));
                    if self.is_full {
                        self.probe_bandwidth(s);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
        }
    }

    fn choose_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth => (PACING_GAINS[usize::from(self.cycle % 8)], CWND_GAIN),
            Mode::ProbeRoundTrip => (UNIT, UNIT),
        };
    }

    fn pace(&mut self, window: &Window, s: &Standing) {
        if !self.has_seen_rtt && s.srtt_us > 0 {
            self.start(window, s);
        }
        let rate = Self::bytes_per_second(self.bandwidth.value(), self.pacing_gain, s.mss);
        if self.is_full || rate > self.pacing_rate {
            self.pacing_rate = rate.max(1);
        }
    }

    /// Bytes a second, 1 % below the estimate.
    fn bytes_per_second(bandwidth: u64, gain: u64, mss: u32) -> u64 {
        let rate = u128::from(bandwidth) * u128::from(mss) * u128::from(gain) / u128::from(UNIT);
        let rate = rate * 990_000 / u128::from(BW_UNIT);
        u64::try_from(rate).unwrap_or(u64::MAX).max(1)
    }

    fn set_window(&mut self, window: &mut Window, rate: &RateSample, s: &Standing) {
        if rate.newly_delivered > 0 {
            let acked = rate.newly_delivered;
            let cwnd = match self.recover_or_restore(window, rate, s) {
                Ok(cwnd) => cwnd,
                Err(mut cwnd) => {
                    let target = self.budget(self.product(self.cwnd_gain) + self.surplus(), s.mss);
                    if self.is_full {
                        cwnd = (cwnd + acked).min(target);
                    } else if cwnd < target || s.delivered < INITIAL_CWND {
                        cwnd += acked;
                    }
                    cwnd.max(LEAST_CWND)
                }
            };
            window.set(cwnd);
        }
        if self.mode == Mode::ProbeRoundTrip {
            window.set(window.cwnd.min(LEAST_CWND));
        }
    }

    /// The window that recovery dictates, or else the one to go on from.
    fn recover_or_restore(
        &mut self,
        window: &Window,
        rate: &RateSample,
        s: &Standing,
    ) -> Result<u32, u32> {
        let acked = rate.newly_delivered;
        let mut cwnd = window.cwnd.saturating_sub(rate.newly_lost).max(1);
        let recovering = s.in_recovery || s.in_loss;
        if s.in_recovery && !self.was_in_recovery {
            // One round of packet conservation.
            self.conserving = true;
            self.round_end = s.delivered;
            cwnd = s.in_flight + acked;
        } else if self.was_recovering && !recovering {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        self.was_recovering = recovering;
        self.was_in_recovery = s.in_recovery;
        if self.conserving {
            return Ok(cwnd.max(s.in_flight + acked));
        }
        Err(cwnd)
    }

    /// Bandwidth-delay product in segments, with a gain.
    fn product(&self, gain: u64) -> u32 {
        let Some(min_rtt) = self.min_rtt_us else {
            return INITIAL_CWND;
        };
        let product = u128::from(self.bandwidth.value()) * u128::from(min_rtt);
        let product = (product * u128::from(gain) / u128::from(UNIT)).div_ceil(BW_UNIT.into());
        u32::try_from(product)
            .unwrap_or(u32::MAX / 4)
            .min(u32::MAX / 4)
    }

    /// What bursts of acknowledgements need on top.
    fn surplus(&self) -> u32 {
        if !self.is_full {
            return 0;
        }
        let most = self.bandwidth.value().saturating_mul(100_000) / BW_UNIT;
        let extra = self.aggregation[0].max(self.aggregation[1]);
        extra.min(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Room for bursts at both hosts on top of `segments`.
    fn budget(&self, segments: u32, mss: u32) -> u32 {
        let least = if self.pacing_rate < 150_000 { 1 } else { 2 };
        let burst = (self.pacing_rate >> 10).min(65_000) / u64::from(mss.max(1));
        let burst = (burst as u32).max(least).min(127);
        let even = (segments + 3 * burst).next_multiple_of(2);
        let probing = self.mode == Mode::ProbeBandwidth && self.cycle == 0;
        even + if probing { 2 } else { 0 }
    }

    fn in_flight_target(&self, gain: u64, mss: u32) -> u32 {
        self.budget(self.product(gain), mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Growth;

    #[test]
    fn the_largest_is_forgotten_after_ten_rounds() {
        let mut largest = Largest::default();
        largest.update(0, 100);
        for round in 1..=10 {
            largest.update(round, 50);
            assert_eq!(largest.value(), 100);
        }
        largest.update(11, 50);
        assert_eq!(largest.value(), 50);
    }

    #[test]
    fn leaves_startup_when_the_bandwidth_stops_growing() {
        let mut bbr = Bbr::default();
        let mut window = Window::new(10, Growth::PerSegment);
        let mut delivered = 0;
        for round in 1..20_u32 {
            let now = Instant::from_millis(40 * u64::from(round));
            let prior = delivered;
            delivered += 100;
            let standing = Standing {
                now,
                delivered,
                delivered_at: now,
                in_flight: 50,
                mss: 1_448,
                srtt_us: 40_000,
                in_recovery: false,
                in_loss: false,
            };
            let rate = RateSample {
                prior_delivered: Some(prior),
                delivered: 100,
                interval_us: 40_000,
                newly_delivered: 100,
                rtt_us: Some(40_000),
                ..RateSample::default()
            };
            bbr.acknowledged(&mut window, &rate, &standing);
        }
        assert_eq!(bbr.mode, Mode::ProbeBandwidth);
        // 100 segments of 1448 bytes in 40 ms.
        let rate = 100 * 1_448 * 25;
        assert!(bbr.pacing_rate <= rate * 5 / 4 && bbr.pacing_rate >= rate * 7 / 10);
        // Two products of 100 segments, and as much again for acknowledgements that come in one.
        assert!((180..330).contains(&window.cwnd), "{}", window.cwnd);
    }
}
