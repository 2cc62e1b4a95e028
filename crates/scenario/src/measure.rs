//! What a scenario asks of its link, and what a run made of it.

use crate::hip::Hip;
use crate::scenario::{Direction, IpVersion, LinkSettings, Scenario, Stack, Workload};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_link::{FIRST_SECONDS, HALF_SECOND};
use outlast_link::{Ideal, LinkConfig, OutageProcess, Way};

/// How far beyond the deadline the ideal time is looked for, as a multiple of it.
const IDEAL_LIMIT: u32 = 10;

/// TCP header without options, in bytes (RFC 9293).
const TCP_HEADER: u64 = 20;
/// Timestamps option with its padding, in bytes (RFC 7323, appendix A).
const TIMESTAMPS: u64 = 12;

/// What each segment carries besides payload, which decides how much wire a payload needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Framing {
    /// Largest IP packet; at least 576.
    pub mtu: u32,
    /// Network protocol.
    pub ip: IpVersion,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// Bytes that each segment is longer on a link, as where HIP puts it into ESP.
    pub added: u32,
}

impl Framing {
    /// Bytes of IP and TCP headers in a full segment.
    #[must_use]
    pub const fn headers(&self) -> u64 {
        let ip = match self.ip {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        };
        ip + TCP_HEADER + if self.timestamps { TIMESTAMPS } else { 0 }
    }

    /// Bytes on the wire for `payload`, cut into as few segments as can be.
    #[must_use]
    pub const fn wire_bytes(&self, payload: ByteCount) -> ByteCount {
        let segment = (self.mtu as u64).saturating_sub(self.headers());
        let segment = if segment == 0 { 1 } else { segment };
        let segments = payload.0.div_ceil(segment);
        let added = self.headers() + self.added as u64;
        ByteCount(payload.0.saturating_add(segments.saturating_mul(added)))
    }
}

impl LinkSettings {
    /// The link, with everything random about it from `seed`.
    #[must_use]
    pub fn config(&self, seed: u64) -> LinkConfig {
        LinkConfig {
            to_mobile: self.downlink,
            to_fixed: self.uplink,
            outages: self.outages.clone(),
            in_flight: self.in_flight,
            while_down: self.while_down,
            rate_changes: self.rate_changes.clone(),
            seed,
        }
    }
}

impl Scenario {
    /// From the mobile's first segment to the first byte of payload, if nothing is lost: whoever
    /// opens writes at once, whoever is opened to writes when the handshake is over.
    #[must_use]
    pub fn handshake(&self) -> Duration {
        match self.workload {
            Workload::Bulk {
                direction: Direction::Download,
                ..
            } => self.acceptance(),
            _ => self.base_exchange() + self.delays().into_iter().sum(),
        }
    }

    /// From the mobile's first segment until the fixed host has accepted the connection, if nothing
    /// is lost.
    #[must_use]
    pub fn acceptance(&self) -> Duration {
        let [down, up] = self.delays();
        self.base_exchange() + up + down + up
    }

    /// How long a packet takes through all links, to the mobile and to the fixed host, if it takes no
    /// time to send and never waits.
    pub(crate) fn delays(&self) -> [Duration; 2] {
        let further = self.hops.iter().map(|hop| &hop.link);
        let links = || std::iter::once(&self.link).chain(further.clone());
        [
            links().map(|link| link.downlink.delay).sum(),
            links().map(|link| link.uplink.delay).sum(),
        ]
    }

    /// Where the hosts' timer wheels are to stand `before` the first byte of payload is sent;
    /// `None` if that is left to chance.
    #[must_use]
    pub fn timer_phase_before(&self, before: Duration) -> Option<Duration> {
        let turn = Stack::TIMER_TURN.as_nanos();
        let phase = self.stack.timer_phase?.as_nanos() % turn;
        let phase = (phase + turn - before.as_nanos() % turn) % turn;
        Some(Duration::from_nanos(u64::try_from(phase).unwrap_or(0)))
    }

    /// The link of run `index`, counted from zero.
    #[must_use]
    pub fn link_config(&self, index: u32) -> LinkConfig {
        self.link.config(self.run.seed_of(index))
    }

    /// The chain of links of run `index` as if it were one: with the lowest rate and the whole delay,
    /// and the outages of `[link]`. `None` if one of `[[hops]]` goes away itself.
    #[must_use]
    pub fn path_config(&self, index: u32) -> Option<LinkConfig> {
        let mut whole = self.link_config(index);
        for hop in &self.hops {
            if hop.link.outages != OutageProcess::AlwaysUp {
                return None;
            }
            for (pipe, further) in [
                (&mut whole.to_mobile, &hop.link.downlink),
                (&mut whole.to_fixed, &hop.link.uplink),
            ] {
                pipe.rate = pipe.rate.into_iter().chain(further.rate).min();
                pipe.delay += further.delay;
            }
        }
        Some(whole)
    }

    /// The framing of the lab's segments: timestamps unless switched off.
    #[must_use]
    pub fn framing(&self) -> Framing {
        let timestamps = self.stack.timestamps.unwrap_or(true);
        Framing {
            mtu: self.mtu_inside(),
            ip: self.ip_inside(),
            timestamps,
            added: match self.hip {
                Some(_) => Hip::added(self.mtu_inside(), self.stack.ip),
                None => 0,
            },
        }
    }

    /// When run `index` would be complete if every connected moment were used at the link's rate:
    /// the result's `ideal_s`, counted like `elapsed_s` from the workload's first byte.
    ///
    /// - bulk: from one round trip on, until the payload with its headers is through.
    /// - request-response: the same, one message after the other, each with its way to the far end.
    /// - interactive: its `duration`.
    ///
    /// `None` for commands, of which nothing is known, if one of `[[hops]]` goes away itself, and if
    /// it takes more than ten times the deadline.
    #[must_use]
    pub fn ideal_time(&self, index: u32, framing: Framing) -> Option<Duration> {
        let config = self.path_config(index)?;
        let limit = self.run.deadline * IDEAL_LIMIT;
        match self.workload {
            Workload::Bulk { bytes, direction } => {
                config.ideal_time(direction.way(), framing.wire_bytes(bytes), limit)
            }
            Workload::Interactive { duration, .. } => Some(duration),
            Workload::RequestResponse {
                requests,
                request,
                response,
                think,
            } => {
                let mut ideal = Ideal::new(&config, limit);
                let mut now = config.round_trip();
                for exchange in 0..requests {
                    if exchange > 0 {
                        now = now.checked_add(think)?;
                    }
                    now = deliver(&mut ideal, &config, Way::ToFixed, now, framing, request)?;
                    now = deliver(&mut ideal, &config, Way::ToMobile, now, framing, response)?;
                }
                Some(now)
            }
            Workload::Command(_) => None,
        }
    }

    /// How many updates the interactive workload of run `index` would show if every message went
    /// as soon as the link is up: the yardstick for the result's `updates`. `None` for others.
    #[must_use]
    pub fn ideal_updates(&self, index: u32, framing: Framing) -> Option<u32> {
        let Workload::Interactive {
            interval,
            update,
            request,
            duration,
        } = self.workload
        else {
            return None;
        };
        let config = self.path_config(index)?;
        let mut ideal = Ideal::new(&config, duration);
        let (mut now, mut shown) = (Duration::ZERO, 0_u64);
        let mut next_update = || -> Option<()> {
            let asked = deliver(&mut ideal, &config, Way::ToFixed, now, framing, request)?;
            // What is new since the last update goes at once, else the next change is awaited.
            let next_change = interval.checked_mul(u32::try_from(shown + 1).ok()?)?;
            let answered = asked.max(next_change);
            shown = whole_intervals(answered, interval);
            now = deliver(
                &mut ideal,
                &config,
                Way::ToMobile,
                answered,
                framing,
                update,
            )?;
            (now <= duration).then_some(())
        };
        let mut updates = 0;
        while next_update().is_some() {
            updates += 1;
        }
        Some(updates)
    }

    /// How much of what run `index`'s link could carry in `elapsed` went into `payload`: the
    /// result's `utilisation`.
    ///
    /// The payload's time on the wire, headers included, over the connected time from the
    /// workload's first byte to completion (or to the deadline; `payload` is then what arrived).
    /// `None` for workloads other than bulk, at an unlimited rate, and if nothing could be carried.
    #[must_use]
    pub fn utilisation(
        &self,
        index: u32,
        framing: Framing,
        payload: ByteCount,
        elapsed: Duration,
    ) -> Option<f64> {
        let Workload::Bulk { direction, .. } = self.workload else {
            return None;
        };
        let capacity = self.path_config(index)?;
        let capacity = capacity.capacity(direction.way(), elapsed)?;
        ratio(framing.wire_bytes(payload), capacity)
    }

    /// How many payload bytes the chain of links carries `way` in half a second of run `index`: the
    /// yardstick for an outage's `half_second_s`. `None` at an unlimited rate, and if one of `[[hops]]`
    /// goes away itself.
    #[must_use]
    pub fn half_second(&self, index: u32, way: Way) -> Option<ByteCount> {
        Some(
            self.path_config(index)?
                .pipe(way)
                .rate?
                .bytes_in(HALF_SECOND),
        )
    }

    /// How much of what run `index`'s link could bring `way` from `back` until five seconds later went
    /// into `payload`: the result's `first_five_seconds_share`. All times count from the workload's first
    /// byte; a run that ended sooner counts to its end.
    ///
    /// What is to arrive by the end has left the link a propagation delay before. `None` at an
    /// unlimited rate, and if nothing could be brought.
    #[must_use]
    pub fn share_after(
        &self,
        index: u32,
        framing: Framing,
        way: Way,
        back: Duration,
        ended: Duration,
        payload: ByteCount,
    ) -> Option<f64> {
        let path = self.path_config(index)?;
        let until = ended.min(back + FIRST_SECONDS);
        let last = until.saturating_sub(path.pipe(way).delay).max(back);
        let capacity = path.capacity(way, last)?.as_u64() - path.capacity(way, back)?.as_u64();
        ratio(framing.wire_bytes(payload), ByteCount(capacity))
    }
}

/// The share of `whole` that `part` is; `None` if there is no whole.
fn ratio(part: ByteCount, whole: ByteCount) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a ratio of sizes below 2^53 bytes"
    )]
    let ratio = part.as_u64() as f64 / whole.as_u64() as f64;
    ratio.is_finite().then_some(ratio)
}

/// When `payload`, sent `way` at `now`, has come to the far end at best.
fn deliver(
    ideal: &mut Ideal<'_>,
    config: &LinkConfig,
    way: Way,
    now: Duration,
    framing: Framing,
    payload: ByteCount,
) -> Option<Duration> {
    let sent = ideal.transmit(way, now, framing.wire_bytes(payload))?;
    sent.checked_add(config.pipe(way).delay)
}

/// How often `interval` fits into `time`.
fn whole_intervals(time: Duration, interval: Duration) -> u64 {
    u64::try_from(time.as_nanos() / interval.as_nanos()).unwrap_or(u64::MAX)
}
