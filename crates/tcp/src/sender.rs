//! The sending half: what is outstanding, what is known of it, and what may be sent.
//!
//! RFC 9293, sections 3.3.1 (variables) and 3.8 (data communication). The files below it each
//! hold one step of handling an acknowledgement or of sending.

pub(crate) mod acknowledge;
mod alert;
mod buffer;
mod burst;
mod classic;
mod limits;
mod loss;
mod marked;
mod marks;
pub(crate) mod queue;
mod rack;
mod reduction;
mod sack;
mod segmentation;
mod tail_loss;
mod transmit;
mod undo;
mod writes;

use crate::config::Config;
use crate::congestion::{Algorithm, Window};
use crate::rto::Rto;
use outlast_base::time::Instant;
use outlast_wire::SeqNumber;
use queue::Queue;
pub use writes::WriteFlags;
use writes::Writes;

/// State of congestion control, in the words of Linux.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    /// Nothing in doubt.
    Open,
    /// Something has come out of order.
    Disorder,
    /// The window comes down without a loss in hand.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Loss,
}

/// RACK (RFC 8985, section 5.3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// RACK.xmit_ts.
    pub(crate) sent_at: Instant,
    /// RACK.end_seq.
    pub(crate) end: SeqNumber,
    /// RACK.rtt, in ns.
    pub(crate) rtt: u64,
    pub(crate) advanced: bool,
    /// RACK.reo_wnd_mult.
    pub(crate) steps: u32,
    /// RACK.reo_wnd_persist.
    pub(crate) persist: u32,
    pub(crate) dsack_seen: bool,
    /// RACK.dsack_round, in delivered segments.
    pub(crate) last_delivered: u32,
}

/// The least of a window of time, with runners-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Least {
    samples: [(Instant, u32); 3],
}

/// How long a least round trip is believed, in ns.
const MIN_RTT_LIFE: u64 = 300 * 1_000_000_000;

impl Least {
    /// In us.
    pub(crate) fn value(&self) -> Option<u32> {
        (self.samples[0].1 != 0).then_some(self.samples[0].1)
    }

    #[inline]
    pub(crate) fn update(&mut self, now: Instant, value: u32) {
        let [first, _, third] = &self.samples;
        // The first is the oldest, the third the largest.
        let is_of_use =
            first.1 == 0 || value <= third.1 || now.nanos_since(first.0) > MIN_RTT_LIFE / 4;
        if is_of_use {
            self.take(now, value);
        }
    }

    fn take(&mut self, now: Instant, value: u32) {
        let sample = (now, value.max(1));
        let [first, second, third] = self.samples;
        if first.1 == 0 || sample.1 <= first.1 || now.nanos_since(third.0) > MIN_RTT_LIFE {
            self.samples = [sample; 3];
            return;
        }
        if sample.1 <= second.1 {
            self.samples = [first, sample, sample];
        } else if sample.1 <= third.1 {
            self.samples[2] = sample;
        }
        let age = now.nanos_since(first.0);
        if age > MIN_RTT_LIFE {
            self.samples = [self.samples[1], self.samples[2], sample];
        } else if second.0 == first.0 && age > MIN_RTT_LIFE / 4 {
            self.samples = [first, sample, sample];
        } else if third.0 == second.0 && age > MIN_RTT_LIFE / 2 {
            self.samples[2] = sample;
        }
    }
}

/// State of the sending half.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) iss: SeqNumber,
    pub(crate) snd_una: SeqNumber,
    pub(crate) snd_nxt: SeqNumber,
    /// Stream offset of the byte at `snd_nxt`.
    pub(crate) next_offset: u64,
    /// Bytes that the application has written.
    pub(crate) written: u64,
    /// What the application has said of its writes.
    pub(crate) writes: Writes,
    /// Bytes of memory in the send buffer, where it follows the window.
    pub(crate) buffer: u64,
    /// What takes that memory.
    pub(crate) buffers: buffer::Buffers,
    pub(crate) fin_wanted: bool,
    pub(crate) fin_sent: bool,
    /// SND.WND, SND.WL1.
    pub(crate) snd_wnd: u32,
    pub(crate) snd_wl1: SeqNumber,
    pub(crate) max_window: u32,
    /// Payload of a full segment.
    pub(crate) mss: u32,
    pub(crate) queue: Queue,
    pub(crate) window: Window,
    pub(crate) algorithm: Algorithm,
    pub(crate) rto: Rto,
    pub(crate) min_rtt: Least,
    pub(crate) phase: Phase,
    /// Recovery ends when all below it is acknowledged.
    pub(crate) high_seq: SeqNumber,
    /// Where undoing begins, if it is possible.
    pub(crate) undo_marker: Option<SeqNumber>,
    /// Retransmissions that were not yet shown to be needless; none sent yet.
    pub(crate) undo_retransmissions: Option<u32>,
    pub(crate) prior_ssthresh: u32,
    pub(crate) prior_cwnd: u32,
    /// Timestamp clock at the first retransmission of the episode.
    pub(crate) retransmit_stamp: Option<u32>,
    /// When the first retransmission of the episode was sent, for giving up.
    pub(crate) retransmitting_since: Option<Instant>,
    pub(crate) reordering: u32,
    pub(crate) reordering_seen: bool,
    pub(crate) highest_sack: SeqNumber,
    pub(crate) frto: bool,
    pub(crate) tlp_high_seq: Option<SeqNumber>,
    pub(crate) tlp_retransmitted: bool,
    pub(crate) rack: Rack,
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
    /// Where the walk over lost segments goes on.
    pub(crate) retransmit_hint: Option<queue::SegmentId>,
    /// Segments delivered so far.
    pub(crate) delivered: u32,
    pub(crate) delivered_at: Instant,
    pub(crate) first_sent_at: Instant,
    /// Segments found lost so far.
    pub(crate) lost: u32,
    /// `delivered` up to which the application held back.
    pub(crate) application_limited: Option<u32>,
    pub(crate) dsacks: u32,
    pub(crate) retransmissions: u32,
    /// Timeouts in a row.
    pub(crate) timeouts: u32,
    pub(crate) is_reneging: bool,
    /// Congestion-window validation.
    pub(crate) usage_end: SeqNumber,
    pub(crate) used: u32,
    pub(crate) validated_at: Instant,
    pub(crate) last_sent: Instant,
    /// Bytes acknowledged so far.
    pub(crate) acknowledged: u64,
    /// The last small segment sent (Minshall's rule).
    pub(crate) small_end: SeqNumber,
    /// Pacing.
    pub(crate) next_departure: Instant,
    /// Duplicates in a row (stacks without scoreboard).
    pub(crate) duplicates: u32,
    /// In fast recovery (stacks without scoreboard).
    pub(crate) recover: Option<SeqNumber>,
    /// The segment that is timed (stacks without timestamps).
    pub(crate) timed: Option<(SeqNumber, Instant)>,
}

impl Sender {
    pub(crate) fn new(config: &Config) -> Self {
        let profile = config.profile;
        Self {
            iss: config.iss,
            snd_una: config.iss,
            snd_nxt: config.iss,
            next_offset: 0,
            written: 0,
            writes: Writes::new(config.nagle),
            buffer: 0,
            buffers: buffer::Buffers::default(),
            fin_wanted: false,
            fin_sent: false,
            snd_wnd: 0,
            snd_wl1: SeqNumber(0),
            max_window: 0,
            mss: 536,
            queue: Queue::default(),
            window: Window::new(*profile.initial_window, *profile.growth),
            algorithm: Algorithm::new(config.congestion()),
            rto: Rto::new(profile, config.rto_bounds),
            min_rtt: Least::default(),
            phase: Phase::Open,
            high_seq: config.iss,
            undo_marker: None,
            undo_retransmissions: None,
            prior_ssthresh: 0,
            prior_cwnd: 0,
            retransmit_stamp: None,
            retransmitting_since: None,
            reordering: 3,
            reordering_seen: false,
            highest_sack: config.iss,
            frto: false,
            tlp_high_seq: None,
            tlp_retransmitted: false,
            rack: Rack {
                sent_at: Instant::ZERO,
                end: config.iss,
                rtt: 0,
                advanced: false,
                steps: 1,
                persist: 0,
                dsack_seen: false,
                last_delivered: 0,
            },
            prr_delivered: 0,
            prr_out: 0,
            retransmit_hint: None,
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            lost: 0,
            application_limited: None,
            dsacks: 0,
            retransmissions: 0,
            timeouts: 0,
            is_reneging: false,
            usage_end: config.iss,
            used: 0,
            validated_at: Instant::ZERO,
            last_sent: Instant::ZERO,
            acknowledged: 0,
            small_end: config.iss,
            next_departure: Instant::ZERO,
            duplicates: 0,
            recover: None,
            timed: None,
        }
    }

    /// Bytes written and not yet sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.written - self.next_offset
    }

    /// Unsent bytes that may share a segment: up to the end of the record.
    #[inline]
    pub(crate) fn unsent_of_record(&self) -> u64 {
        self.written.min(self.writes.record_end) - self.next_offset
    }

    /// Whether bytes or a FIN wait to be sent for the first time.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent() > 0 || (self.fin_wanted && !self.fin_sent)
    }

    /// Right edge of the peer's window.
    pub(crate) fn window_end(&self) -> SeqNumber {
        self.snd_una + self.snd_wnd
    }

    /// The window comes down to `ssthresh` step by step.
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// The threshold to go back to if all turns out well.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        if self.is_reducing() {
            self.window.ssthresh
        } else {
            let cwnd = self.window.cwnd;
            self.window.ssthresh.max((cwnd >> 1) + (cwnd >> 2))
        }
    }

    /// Stream offset of `seq`, which has been sent.
    pub(crate) fn offset_of(&self, seq: SeqNumber) -> u64 {
        let fin = u32::from(self.fin_sent);
        let behind = (self.snd_nxt - fin).distance_from(seq);
        self.next_offset.saturating_add_signed(-i64::from(behind))
    }
}
