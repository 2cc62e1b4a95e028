//! How much the application may write ahead.
//!
//! Most stacks have a buffer of a fixed size. Linux lets it follow the congestion window
//! (`tcp_sndbuf_expand`), counts the memory of its buffers and not the payload, and wakes an
//! application that found it full when a third is free (`sk_stream_min_wspace`). What a sender
//! without SACK may have outstanding while one segment is missing is limited by that, and with it
//! how far the window leaps when the segment is there at last.

use crate::endpoint::{Endpoint, Event};
use crate::profile::SendBuffer;

/// Most that Linux puts into one of its buffers (`sk_gso_max_size`, less the headers).
const LARGEST_CHUNK: u32 = 65_535 - 320;

impl Endpoint {
    /// Of `bytes` that the application has, as many as there is room for.
    pub(crate) fn room_for(&mut self, bytes: u64) -> u64 {
        let held = self.snd.written - self.snd.acknowledged;
        let limit = match (self.config.send_buffer, *self.profile.send_buffer) {
            (Some(limit), _) | (None, SendBuffer::Fixed(limit)) => limit,
            (None, SendBuffer::FollowsWindow { segment, overhead }) => {
                self.fit_send_buffer(segment);
                return self.fill(bytes, held + self.overhead(overhead), overhead);
            }
        };
        let accepted = bytes.min(limit.saturating_sub(held));
        self.wants_room |= accepted < bytes;
        accepted
    }

    /// Whole chunks, as long as not all memory is in use.
    fn fill(&mut self, bytes: u64, mut used: u64, overhead: u32) -> u64 {
        let mss = self.snd.mss.max(1);
        let most = LARGEST_CHUNK.min((self.snd.max_window / 2).max(mss));
        let chunk = u64::from((most / mss).max(1) * mss);
        let mut accepted = 0;
        while accepted < bytes && used < self.snd.buffer {
            accepted += chunk;
            used += chunk + u64::from(overhead);
        }
        self.wants_room |= accepted < bytes;
        accepted.min(bytes)
    }

    /// Memory of what was sent, beside its payload: two segments share a buffer on the average.
    fn overhead(&self, overhead: u32) -> u64 {
        u64::from(self.snd.queue.len()) * u64::from(overhead) / 2
    }

    /// The buffer takes two congestion windows; it never shrinks.
    fn fit_send_buffer(&mut self, segment: u32) {
        let segments = self.snd.window.cwnd.max(*self.profile.initial_window);
        let wanted = 2 * u64::from(segments) * u64::from(segment);
        self.snd.buffer = self.snd.buffer.max(wanted);
    }

    /// Tells the application of room, if it asked and there is enough of it.
    pub(crate) fn offer_room(&mut self) {
        if !self.wants_room {
            return;
        }
        if self.config.send_buffer.is_none()
            && let SendBuffer::FollowsWindow { segment, overhead } = *self.profile.send_buffer
        {
            if self.snd.queue.in_flight() < self.snd.window.cwnd {
                // It is the buffer that holds the window back.
                self.fit_send_buffer(segment);
            }
            let used = self.snd.written - self.snd.acknowledged + self.overhead(overhead);
            if used * 3 > self.snd.buffer * 2 {
                return;
            }
        }
        self.wants_room = false;
        self.emit(Event::Writable);
    }
}
