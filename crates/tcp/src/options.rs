//! What the handshake agreed on, and timestamps with PAWS.
//!
//! RFC 7323: sections 2 (window scale), 3 (timestamps) and 5 (PAWS); RFC 2018, section 2 (SACK
//! permitted); RFC 9293, section 3.7.1 (MSS).

use crate::config::Config;
use crate::timer::Divisor;
use outlast_base::time::{Duration, Instant, saturating_nanos};
use outlast_wire::TcpHeader;
use outlast_wire::tcp::TcpOptions;

/// Largest shift.
//= RFC 7323, section 2.3
const MAX_SHIFT: u8 = 14;
/// A connection that was idle for longer, in ns, may have seen the peer's clock wrap.
//= RFC 7323, section 5.5
const PAWS_LIFE: u64 = 24 * 24 * 3_600 * 1_000_000_000;
/// MSS of a peer that announces none.
//= RFC 9293, section 3.7.1
const DEFAULT_MSS: u16 = 536;

/// Options of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    /// Of windows that are received.
    pub(crate) send_shift: u8,
    /// Of windows that are sent.
    pub(crate) receive_shift: u8,
    scaled: bool,
    /// Payload of a full segment, without the options that every segment has.
    pub(crate) peer_mss: u16,
    offset: u32,
    /// Length of a tick of the timestamp clock, in ns.
    tick: Divisor,
    phase: u64,
    /// TS.Recent, and when it was taken.
    pub(crate) recent: u32,
    recent_at: Instant,
}

impl Negotiated {
    /// What is offered.
    pub(crate) fn offer(config: &Config, buffer: u32) -> Self {
        let offers = *config.profile.offers;
        let scaled = config.window_scale.unwrap_or(offers.window_scale);
        let sack = config.sack.unwrap_or(offers.sack);
        Self {
            timestamps: config.timestamps.unwrap_or(offers.timestamps),
            sack,
            send_shift: 0,
            receive_shift: if scaled { shift_for(buffer) } else { 0 },
            scaled,
            peer_mss: DEFAULT_MSS,
            offset: config.timestamp_offset,
            tick: Divisor::new(saturating_nanos(*config.profile.timestamp_clock).max(1)),
            phase: saturating_nanos(config.clock_phase),
            recent: 0,
            recent_at: Instant::ZERO,
        }
    }

    /// The options of a SYN or SYN-ACK.
    pub(crate) fn syn_options(&self, config: &Config, now: Instant, echo: bool) -> TcpOptions {
        TcpOptions {
            mss: Some(config.announced_mss()),
            window_scale: self.scaled.then_some(self.receive_shift),
            sack_permitted: self.sack,
            timestamps: self.timestamps.then(|| self.stamps(now, echo)),
            ..TcpOptions::default()
        }
    }

    /// TSval and TSecr.
    pub(crate) fn stamps(&self, now: Instant, echo: bool) -> outlast_wire::tcp::Timestamps {
        outlast_wire::tcp::Timestamps {
            value: self.clock(now).wrapping_add(self.offset),
            echo: if echo { self.recent } else { 0 },
        }
    }

    /// The timestamp clock, without the offset.
    pub(crate) fn clock(&self, now: Instant) -> u32 {
        // It wraps (RFC 7323, section 5.4).
        self.tick
            .divide(now.as_nanos().saturating_add(self.phase))
            .0 as u32
    }

    /// What a SYN or SYN-ACK agrees to.
    pub(crate) fn settle(&mut self, now: Instant, header: &TcpHeader) {
        let options = &header.options;
        self.peer_mss = options.mss.unwrap_or(DEFAULT_MSS).max(88);
        //= RFC 7323, section 2.2
        match options.window_scale.filter(|_| self.scaled) {
            Some(shift) => self.send_shift = shift.min(MAX_SHIFT),
            None => {
                self.scaled = false;
                self.send_shift = 0;
                self.receive_shift = 0;
            }
        }
        //= RFC 2018, section 2
        self.sack &= options.sack_permitted;
        //= RFC 7323, section 3.2
        self.timestamps &= options.timestamps.is_some();
        if let Some(stamps) = options.timestamps.filter(|_| self.timestamps) {
            self.recent = stamps.value;
            self.recent_at = now;
        }
    }

    /// The peer's echo of our clock, if the segment carries one.
    pub(crate) fn echo(&self, header: &TcpHeader) -> Option<u32> {
        let stamps = header.options.timestamps.filter(|_| self.timestamps)?;
        (stamps.echo != 0).then(|| stamps.echo.wrapping_sub(self.offset))
    }

    /// Whether the segment is older than the newest seen.
    //= RFC 7323, section 5.3, R1
    pub(crate) fn is_old(&self, now: Instant, header: &TcpHeader, slack: i32) -> bool {
        let Some(stamps) = header.options.timestamps.filter(|_| self.timestamps) else {
            return false;
        };
        let age = self.recent.wrapping_sub(stamps.value).cast_signed();
        //= RFC 7323, section 5.5
        age > slack && now.nanos_since(self.recent_at) < PAWS_LIFE
    }

    /// How far the segment's clock lies behind TS.Recent, in ticks of the peer.
    pub(crate) fn age(&self, header: &TcpHeader) -> i32 {
        header.options.timestamps.map_or(0, |stamps| {
            self.recent.wrapping_sub(stamps.value).cast_signed()
        })
    }

    /// Remembers the segment's timestamp.
    //= RFC 7323, section 4.3
    pub(crate) fn remember(&mut self, now: Instant, header: &TcpHeader) {
        if let Some(stamps) = header.options.timestamps.filter(|_| self.timestamps)
            && self.recent.wrapping_sub(stamps.value).cast_signed() <= 0
        {
            self.recent = stamps.value;
            self.recent_at = now;
        }
    }

    /// Round trip by an echo in ns, at least a tick.
    //= RFC 7323, section 4.1
    pub(crate) fn rtt(&self, now: Instant, echo: u32) -> Option<u64> {
        let ticks = self.clock(now).wrapping_sub(echo);
        // An echo of what was never sent.
        (ticks < u32::MAX / 2).then(|| u64::from(ticks.max(1)) * self.tick.get())
    }

    /// Bytes of options in every segment.
    pub(crate) fn header_overhead(&self) -> u32 {
        if self.timestamps { 12 } else { 0 }
    }
}

/// The shift that lets `buffer` bytes be offered (`tcp_select_initial_window`: the binary logarithm
/// less 15; the loops of BSD and of Linux before 5.0 come to the same).
fn shift_for(buffer: u32) -> u8 {
    let bits = 32 - buffer.leading_zeros();
    // At most 16, then 14.
    (bits.saturating_sub(16) as u8).min(MAX_SHIFT)
}

/// Ticks that a clock may run back by in acknowledgements that came out of order.
pub(crate) fn replay_slack(rto: Duration) -> i32 {
    // A peer's clock ticks 1200 times a second at most.
    let ticks = rto.as_millis().saturating_mul(12) / 10;
    i32::try_from(ticks).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_for_buffers() {
        //= RFC 7323, section 2.3
        assert_eq!(shift_for(65_535), 0);
        assert_eq!(shift_for(65_536), 1);
        assert_eq!(shift_for(16_777_216), 9);
        assert_eq!(shift_for(33_554_432), 10);
        assert_eq!(shift_for(u32::MAX), 14);
    }
}
