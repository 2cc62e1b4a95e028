//! What an application says of its writes: where a record ends, that more follows, that small
//! segments shall wait or not, and how much it may write ahead.
//!
//! The options of sockets that decide it are those of Linux (`MSG_EOR`, `MSG_MORE`, `TCP_CORK`,
//! `TCP_NODELAY`, `SO_SNDBUF`), and may change while a connection runs. A stack that lacks one of them
//! passes it over.

use crate::endpoint::Endpoint;
use crate::profile::SendBuffer;
use alloc::collections::VecDeque;
use outlast_base::time::Instant;

/// What is said of one write.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriteFlags {
    /// More follows soon (`MSG_MORE`): a segment that is not full waits for it, until the next
    /// acknowledgement or write comes, or a timeout is over.
    pub more: bool,
    /// A record ends here (`MSG_EOR`): what is written next begins another segment, and does not keep
    /// this one waiting.
    pub end_of_record: bool,
}

/// What may hold a segment back that is not full.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Small {
    /// Another small segment that is not acknowledged (RFC 9293, section 3.7.4).
    Nagle,
    /// That it is not full.
    Corked,
    /// Nothing.
    Free,
}

/// The end of a record that was not sent to its end.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Offset in the stream.
    end: u64,
    is_pushed: bool,
}

/// What the application has said.
#[derive(Clone, Debug)]
pub(crate) struct Writes {
    no_delay: bool,
    corked: bool,
    /// What waits leaves whatever its size, until something is written behind it.
    pushes: bool,
    /// Offset of the end of the latest write; `u64::MAX` if another one follows soon.
    pushed_to: u64,
    /// Offset of the end of the latest record.
    record_at: u64,
    /// Of the records below, the first one's end; `u64::MAX` if there is none.
    pub(crate) record_end: u64,
    records: VecDeque<Record>,
    /// The application has chosen the size of the send buffer.
    pub(crate) buffer_is_set: bool,
}

impl Writes {
    pub(crate) fn new(nagle: bool) -> Self {
        Self {
            no_delay: !nagle,
            corked: false,
            pushes: false,
            pushed_to: 0,
            record_at: u64::MAX,
            record_end: u64::MAX,
            records: VecDeque::new(),
            buffer_is_set: false,
        }
    }

    /// What holds small segments back, unless a write says otherwise of itself.
    #[inline]
    pub(crate) fn small(&self) -> Small {
        match self {
            Self { pushes: true, .. } => Small::Free,
            Self { corked: true, .. } => Small::Corked,
            Self { no_delay: true, .. } => Small::Free,
            _ => Small::Nagle,
        }
    }

    /// Whether a segment that ends at `end` ends what was written, or a record.
    #[inline]
    pub(crate) fn is_pushed(&self, end: u64) -> bool {
        let ends_record = |record: &Record| record.end == end && record.is_pushed;
        end == self.pushed_to || self.records.front().is_some_and(ends_record)
    }

    /// Whether a record ends at `end`, so that nothing joins what is before.
    pub(crate) fn parts_at(&self, end: u64) -> bool {
        self.record_at == end
    }

    /// All up to `offset` was sent.
    #[inline]
    pub(crate) fn sent_to(&mut self, offset: u64) {
        if offset >= self.record_end {
            self.next_record(offset);
        }
    }

    fn next_record(&mut self, sent: u64) {
        while self
            .records
            .front()
            .is_some_and(|record| record.end <= sent)
        {
            self.records.pop_front();
        }
        self.record_end = self.records.front().map_or(u64::MAX, |record| record.end);
    }

    /// A write has ended at `end`, all of which was taken if `is_whole`.
    fn wrote(&mut self, end: u64, is_whole: bool, flags: WriteFlags) {
        self.pushed_to = match flags.more {
            true => u64::MAX,
            false => end,
        };
        if flags.end_of_record && is_whole {
            self.record_at = end;
            self.record_end = self.record_end.min(end);
            self.records.push_back(Record {
                end,
                is_pushed: !flags.more,
            });
        }
    }
}

impl Endpoint {
    /// The application writes `bytes` more bytes of its stream, and says what it has to say of them.
    /// Returns how many fit in the send buffer, as [`send`](Self::send) does.
    pub fn send_with(&mut self, now: Instant, bytes: u64, flags: WriteFlags) -> u64 {
        if !self.may_write() {
            return 0;
        }
        let control = *self.profile.write_control;
        let flags = WriteFlags {
            more: flags.more && control.more,
            end_of_record: flags.end_of_record && control.records,
        };
        if bytes > 0 && self.state.may_send() {
            self.restart_after_idle(now);
        }
        if self.snd.unsent() == 0 {
            self.snd.writes.pushes = false;
        }
        // What is written behind it takes the PSH of what waits.
        let pushed_to = core::mem::replace(&mut self.snd.writes.pushed_to, u64::MAX);
        let accepted = self.accept(now, bytes);
        if accepted == 0 {
            self.snd.writes.pushed_to = pushed_to;
        } else {
            let end = self.snd.written;
            self.snd.writes.wrote(end, accepted == bytes, flags);
            if self.state.may_send() {
                self.push_written(now, flags.more);
            }
        }
        accepted
    }

    /// Whether small segments leave at once (`TCP_NODELAY`), or wait while another one is not
    /// acknowledged. On Linux what waits leaves when this is switched on, corked or not.
    pub fn set_no_delay(&mut self, now: Instant, on: bool) {
        self.snd.writes.no_delay = on;
        if on && self.profile.write_control.no_delay_pushes {
            self.snd.writes.pushes = true;
            let _ = self.push(now);
        }
    }

    /// Whether segments that are not full wait (`TCP_CORK`), but for the end of the stream and what a
    /// timeout finds waiting. Uncorked, they wait only as others do.
    pub fn set_cork(&mut self, now: Instant, on: bool) {
        if !self.profile.write_control.cork {
            return;
        }
        let writes = &mut self.snd.writes;
        writes.corked = on;
        if !on {
            writes.pushes |= writes.no_delay;
            let _ = self.push(now);
        }
    }

    /// How much may wait to be sent or acknowledged (`SO_SNDBUF`): `bytes` of payload, or where the
    /// stack counts memory, twice as much of that. What waits already stays, and the buffer does not
    /// follow the window any more.
    pub fn set_send_buffer(&mut self, _now: Instant, bytes: u64) {
        match *self.profile.send_buffer {
            SendBuffer::FollowsWindow { least, most, .. } => {
                self.config.send_buffer = None;
                self.snd.buffer = (bytes.min(most) * 2).max(least);
                self.snd.writes.buffer_is_set = true;
            }
            SendBuffer::Fixed(_) => self.config.send_buffer = Some(bytes),
        }
        self.offer_room();
    }
}
