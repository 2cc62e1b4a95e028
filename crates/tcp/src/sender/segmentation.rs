//! How unsent data becomes segments, where they leave in buffers that are cut behind the stack
//! (generic segmentation offload of Linux).
//!
//! What a buffer holds shows on the wire in two ways: a part of a segment that the peer's window
//! has room for goes along with a full one (`tcp_mss_split_point`), and a sender that may send
//! only part of a buffer waits for the next acknowledgement (`tcp_tso_should_defer`). That the
//! segments of one buffer leave at once, back to back, is what the link's queue makes of them
//! anyway.

use super::Phase;
use crate::endpoint::Endpoint;
use crate::profile::Segmentation;
use outlast_base::time::Instant;

/// Who has sent nothing for so long does not wait, nor for an acknowledgement that is further away.
const RECENT: u64 = 1_000_000;
/// Share of a window that is worth sending at once (`tcp_tso_win_divisor`).
const WORTHWHILE: u32 = 3;

impl Endpoint {
    /// Payload of the next new segments that leave together; `None`: it is better to wait for the
    /// next acknowledgement, unless the sender is not `patient`.
    pub(crate) fn next_buffer(&self, now: Instant, patient: bool) -> Option<u32> {
        let first = self.next_len();
        let Segmentation::Buffers { most } = *self.profile.segmentation else {
            return Some(first);
        };
        let room = self.snd.window_end().distance_from(self.snd.snd_nxt);
        let room = u32::try_from(room).unwrap_or(0);
        let mss = self.snd.mss;
        if first < mss || room < first {
            return Some(first);
        }
        let cwnd = self.snd.window.cwnd;
        let free = cwnd.saturating_sub(self.snd.queue.in_flight());
        let segments = self.buffer_segments(most);
        let unsent = u32::try_from(self.snd.unsent_of_record()).unwrap_or(u32::MAX);
        let limit = room.min(free.saturating_mul(mss));
        if patient && limit < segments * mss && unsent > mss && self.is_worth_waiting(now, limit) {
            return None;
        }
        let most = segments.min((cwnd / 2).max(1)).min(free) * mss;
        Some(most.min(unsent).min(room))
    }

    /// Whether to wait with `limit` bytes that might be sent, less than a buffer.
    fn is_worth_waiting(&self, now: Instant, limit: u32) -> bool {
        let snd = &self.snd;
        if snd.phase >= Phase::Recovery
            || snd.algorithm.rules_alone()
            || now.nanos_since(snd.last_sent) > RECENT
            || snd.buffers.holds_more_than_next(snd.next_offset, limit)
        {
            return false;
        }
        let window = snd.snd_wnd.min(snd.window.cwnd.saturating_mul(snd.mss));
        if limit >= window / WORTHWHILE {
            return false;
        }
        let Some(head) = snd.queue.front() else {
            return false;
        };
        let srtt = snd.rto.srtt_us(&self.clock).saturating_mul(1_000);
        let due = head.sent_at.after_nanos(srtt).nanos_since(now);
        due <= RECENT.min(srtt / 2)
    }

    /// Segments that leave as one buffer of at most `most` bytes: what is sent in a millisecond,
    /// at least two (`tcp_tso_autosize`).
    fn buffer_segments(&self, most: u32) -> u32 {
        let snd = &self.snd;
        let mss = u64::from(snd.mss);
        let sent_per_millisecond = match snd.rto.srtt_us(&self.clock) {
            0 => u64::from(most),
            srtt => {
                // The kernel's pacing rate: twice the window in a round trip while it doubles.
                let percent = match snd.window.cwnd < snd.window.ssthresh / 2 {
                    true => 200,
                    false => 120,
                };
                let window = u64::from(snd.window.cwnd.max(snd.queue.len())) * mss;
                window * percent * 10_000 / srtt / 1_024
            }
        };
        // On short paths more.
        let shift = snd.min_rtt.value().map_or(u32::MAX, |rtt| rtt >> 9);
        let extra = u64::from(most.checked_shr(shift).unwrap_or(0));
        let bytes = (sent_per_millisecond + extra).min(u64::from(most));
        u32::try_from(bytes / mss).unwrap_or(u32::MAX).max(2)
    }
}
