//! How much the application may write ahead.
//!
//! Most stacks have a buffer of a fixed size. Linux lets it follow the congestion window
//! (`tcp_sndbuf_expand`), counts the memory of its buffers and not the payload, and wakes an
//! application that found it full when a third is free (`sk_stream_min_wspace`). What a sender
//! without SACK may have outstanding while one segment is missing is limited by that, and with it
//! how far the window leaps when the segment is there at last. As each wake-up brings up to 200
//! segments, one buffer more or less decides about a good part of a window.

use crate::endpoint::{Endpoint, Event};
use crate::profile::{Segmentation, SendBuffer};
use alloc::collections::VecDeque;
use outlast_base::time::Instant;

/// The buffers that hold the stream from the first byte that is not acknowledged on: where each
/// ends, as offset in the stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    /// Buffers that were sent.
    sent: VecDeque<u64>,
    /// Buffers that wait; the first one may have been sent in part.
    waiting: VecDeque<u64>,
}

impl Buffers {
    fn count(&self) -> u64 {
        (self.sent.len() + self.waiting.len()) as u64
    }

    /// None is counted.
    pub(crate) fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty()
    }

    /// What is sent next, up to `end`, leaves as one buffer; all before `acknowledged` are gone.
    pub(crate) fn cut(&mut self, end: u64, acknowledged: u64) {
        self.forget(acknowledged);
        while self.waiting.front().is_some_and(|&other| other <= end) {
            self.waiting.pop_front();
        }
        if self.sent.back().is_none_or(|&last| last < end) {
            self.sent.push_back(end);
        }
    }

    fn forget(&mut self, acknowledged: u64) {
        while self.sent.front().is_some_and(|&end| end <= acknowledged) {
            self.sent.pop_front();
        }
    }

    /// A segment that ends at `end` was sent again, for itself.
    pub(crate) fn split(&mut self, end: u64) {
        if let Err(index) = self.sent.binary_search(&end)
            && index < self.sent.len()
        {
            self.sent.insert(index, end);
        }
    }

    /// Whether another buffer waits behind the next one, and that has at most `limit` bytes left
    /// from `next` on.
    pub(crate) fn holds_more_than_next(&self, next: u64, limit: u32) -> bool {
        self.waiting.len() > 1
            && self
                .waiting
                .front()
                .is_some_and(|&end| end.saturating_sub(next) <= u64::from(limit))
    }

    /// Bytes that the last buffer, of `chunk` at most, has room for.
    fn room_in_last(&self, next: u64, chunk: u64) -> u64 {
        let mut from_last = self.waiting.iter().rev();
        let Some(&end) = from_last.next() else {
            return 0;
        };
        let begin = from_last.next().map_or(next, |&end| end.max(next));
        chunk.saturating_sub(end.saturating_sub(begin))
    }
}

impl Endpoint {
    /// Takes of `bytes` that the application has as many as there is room for; returns how many.
    pub(crate) fn accept(&mut self, now: Instant, bytes: u64) -> u64 {
        if let (
            None,
            SendBuffer::FollowsWindow {
                segment, overhead, ..
            },
        ) = (self.config.send_buffer, *self.profile.send_buffer)
        {
            if self.snd.buffer == 0 {
                self.fit_send_buffer(segment);
            }
            return self.fill(now, bytes, overhead);
        }
        let limit = match (self.config.send_buffer, *self.profile.send_buffer) {
            (Some(limit), _) | (None, SendBuffer::Fixed(limit)) => limit,
            (None, SendBuffer::FollowsWindow { .. }) => u64::MAX,
        };
        let held = self.snd.written - self.snd.acknowledged;
        let accepted = bytes.min(limit.saturating_sub(held));
        self.wants_room |= accepted < bytes;
        self.snd.written = self.snd.written.saturating_add(accepted);
        accepted
    }

    /// Fills the last buffer, and then others as long as not all memory is in use. One that is
    /// full and the only one that waits leaves at once.
    fn fill(&mut self, now: Instant, bytes: u64, overhead: u32) -> u64 {
        let chunk = self.chunk();
        let mut accepted = 0;
        while accepted < bytes {
            let left = bytes - accepted;
            let next = self.snd.next_offset;
            let room = match self.snd.writes.parts_at(self.snd.written) {
                true => 0,
                false => self.snd.buffers.room_in_last(next, chunk).min(left),
            };
            let more = match room {
                0 if self.memory(overhead) >= self.snd.buffer => break,
                0 => chunk.min(left),
                _ => {
                    self.snd.buffers.waiting.pop_back();
                    room
                }
            };
            accepted += more;
            self.snd.written += more;
            self.snd.buffers.waiting.push_back(self.snd.written);
            let is_full = self.snd.buffers.room_in_last(next, chunk) == 0;
            if is_full && self.snd.buffers.waiting.len() == 1 {
                self.push_buffer(now);
            }
        }
        self.wants_room |= accepted < bytes;
        accepted
    }

    /// Payload of a full buffer.
    fn chunk(&self) -> u64 {
        let mss = self.snd.mss.max(1);
        let most = match *self.profile.segmentation {
            Segmentation::Buffers { most } => most,
            Segmentation::None => mss,
        };
        let most = most.min((self.snd.max_window / 2).max(mss));
        u64::from((most / mss).max(1) * mss)
    }

    /// Bytes of memory in use.
    fn memory(&mut self, overhead: u32) -> u64 {
        let acknowledged = self.snd.acknowledged;
        self.snd.buffers.forget(acknowledged);
        let payload = self.snd.written - acknowledged;
        payload + self.snd.buffers.count() * u64::from(overhead)
    }

    /// The buffer takes two congestion windows; it never shrinks.
    fn fit_send_buffer(&mut self, segment: u32) {
        if self.snd.writes.buffer_is_set {
            return;
        }
        let segments = self.snd.window.cwnd.max(*self.profile.initial_window);
        let wanted = 2 * u64::from(segments) * u64::from(segment);
        self.snd.buffer = self.snd.buffer.max(wanted);
    }

    /// Tells the application of room, if it asked and there is enough of it.
    #[inline]
    pub(crate) fn offer_room(&mut self) {
        if self.wants_room {
            self.offer_if_enough();
        }
    }

    fn offer_if_enough(&mut self) {
        if self.config.send_buffer.is_none()
            && let SendBuffer::FollowsWindow {
                segment, overhead, ..
            } = *self.profile.send_buffer
        {
            if self.snd.queue.in_flight() < self.snd.window.cwnd {
                // It is the buffer that holds the window back.
                self.fit_send_buffer(segment);
            }
            if self.memory(overhead) * 3 > self.snd.buffer * 2 {
                return;
            }
        }
        if let Some(limit) = self.config.send_buffer
            && self.snd.written - self.snd.acknowledged >= limit
        {
            return;
        }
        self.wants_room = false;
        self.emit(Event::Writable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_cut_filled_and_forgotten() {
        let mut buffers = Buffers::default();
        buffers.waiting.extend([45, 90]);
        assert_eq!(buffers.room_in_last(0, 45), 0);
        buffers.cut(2, 0);
        buffers.cut(4, 0);
        // Two were sent, of two that wait the first one is smaller by them.
        assert_eq!(buffers.count(), 4);
        assert!(!buffers.holds_more_than_next(4, 40));
        assert!(buffers.holds_more_than_next(4, 41));
        // One that takes the rest of the first and the beginning of the second.
        buffers.cut(47, 2);
        assert_eq!(buffers.count(), 3);
        assert_eq!(buffers.room_in_last(47, 45), 2);
        buffers.split(46);
        buffers.split(47);
        assert_eq!(buffers.sent, [4, 46, 47]);
        buffers.forget(47);
        assert_eq!(buffers.count(), 1);
    }
}
