//! The receiving half: what has arrived, what is told of it, and how much more may come.
//!
//! RFC 9293, sections 3.3.1 and 3.8.6.3; the files below hold reassembly with SACK, the
//! acknowledgement policy and the window.

mod acks;
mod reassembly;
mod window;

pub(crate) use acks::Due;

use crate::config::Config;
use crate::profile::DuplicateReach;
use acks::AckPolicy;
use outlast_base::time::Instant;
use outlast_wire::SeqNumber;
use reassembly::Reassembly;
use window::ReceiveWindow;

/// What a segment brought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arrival {
    /// Nothing that changes the stream's end.
    Data,
    /// With it the stream is complete.
    Finished,
}

/// State of the receiving half.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) rcv_nxt: SeqNumber,
    /// Stream offset of the byte at `rcv_nxt`.
    offset: u64,
    /// Bytes that the application has read.
    read: u64,
    /// Where the stream ends, once known.
    fin: Option<SeqNumber>,
    finished: bool,
    sack: bool,
    dsack: bool,
    duplicate_reach: DuplicateReach,
    reassembly: Reassembly,
    acks: AckPolicy,
    window: ReceiveWindow,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        let profile = config.profile;
        Self {
            rcv_nxt: SeqNumber(0),
            offset: 0,
            read: 0,
            fin: None,
            finished: false,
            sack: false,
            dsack: profile.offers.dsack,
            duplicate_reach: *profile.duplicate_reach,
            reassembly: Reassembly::default(),
            acks: AckPolicy::new(*profile.delayed_ack),
            window: ReceiveWindow::new(config),
        }
    }

    /// The peer's first byte will have number `first`.
    pub(crate) fn start(&mut self, now: Instant, first: SeqNumber, sack: bool) {
        self.rcv_nxt = first;
        self.sack = sack;
        self.window.reconsider();
        self.acks.start(first);
        self.window.start(now, first);
    }

    /// The handshake is done; a full segment of ours takes `advertised` bytes.
    pub(crate) fn establish(&mut self, now: Instant, advertised: u32) {
        self.window.reconsider();
        self.window.establish(now, advertised);
        self.acks.establish(self.window.receive_mss());
    }

    /// Bytes that arrived in order.
    pub(crate) fn in_order(&self) -> u64 {
        self.offset
    }

    pub(crate) fn unread(&self) -> u64 {
        self.offset - self.read
    }

    /// The application takes at most `max` bytes.
    #[inline]
    pub(crate) fn read(&mut self, max: u64) -> u64 {
        let bytes = self.unread().min(max);
        self.read += bytes;
        self.window.reconsider();
        bytes
    }

    /// Where in the stream `seq` stands, if it is not absurdly far off.
    pub(crate) fn offset_of(&self, seq: SeqNumber) -> Option<u64> {
        let distance = i64::from(seq.distance_from(self.rcv_nxt));
        self.offset.checked_add_signed(distance)
    }

    /// Takes a segment that begins at `seq`; `rto` is in ns.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        payload: u32,
        fin: bool,
        rto: u64,
    ) -> Arrival {
        self.window.reconsider();
        let end = seq + payload;
        if fin {
            self.fin = self.fin.or(Some(end));
        }
        let segment_end = end + u32::from(fin);
        if segment_end.at_or_before(self.rcv_nxt) {
            //= RFC 2883, section 4.1.1
            self.note_duplicate(seq, segment_end);
            self.acks.out_of_window();
            return Arrival::Data;
        }
        let right = self.right_edge();
        if payload > 0 && seq.at_or_after(right) && seq != self.rcv_nxt {
            self.acks.out_of_window();
            return Arrival::Data;
        }
        if payload > 0 && right.at_or_before(self.rcv_nxt) {
            // A probe of a zero window.
            self.acks.out_of_window();
            return Arrival::Data;
        }
        // What lies beyond the window has no room.
        let end = if end.after(right) { right } else { end };
        if seq.after(self.rcv_nxt) {
            if payload > 0 {
                self.take_out_of_order(seq, end);
                self.acks.schedule();
            } else {
                self.acks.tell_now();
            }
            return Arrival::Data;
        }
        self.take_in_order(now, seq, end, rto)
    }

    /// Whether `payload` bytes (not none) at RCV.NXT would be in order, within the window, and not
    /// the last ones.
    #[inline]
    pub(crate) fn expects(&self, payload: u32) -> bool {
        self.reassembly.is_empty() && self.fin.is_none() && (1..=self.window()).contains(&payload)
    }

    /// Takes `payload` bytes at RCV.NXT that are [expected](Self::expects).
    #[inline]
    pub(crate) fn take_expected(&mut self, now: Instant, payload: u32, rto: u64) {
        self.window.reconsider();
        self.take_new(now, payload, rto);
        self.window.note_in_order(now, self.rcv_nxt);
    }

    #[inline]
    fn take_new(&mut self, now: Instant, bytes: u32, rto: u64) {
        self.advance(bytes);
        self.acks.data_arrived(now, bytes, rto, &self.window);
        let held = self.held();
        if self.window.note_segment(bytes, held) {
            self.acks.window_opens();
        }
    }

    fn take_out_of_order(&mut self, seq: SeqNumber, end: SeqNumber) {
        let overlap = self.reassembly.insert(seq, end, self.rcv_nxt);
        if let Some((left, right)) = overlap {
            //= RFC 2883, section 4.1.3
            self.note_duplicate(left, right);
        }
        if self.sack {
            // Without SACK a duplicate counts only with an unchanged window.
            let bytes = end.distance_from(seq).unsigned_abs();
            if self.window.note_segment(bytes, self.held()) {
                self.acks.window_opens();
            }
        }
        if self.reassembly.take_early() {
            self.acks.tell_now();
        }
    }

    fn take_in_order(&mut self, now: Instant, seq: SeqNumber, end: SeqNumber, rto: u64) -> Arrival {
        if seq.before(self.rcv_nxt) {
            self.note_duplicate(seq, self.rcv_nxt);
        }
        let new = end.distance_from(self.rcv_nxt).max(0).unsigned_abs();
        if new > 0 {
            self.take_new(now, new, rto);
        }
        if !self.reassembly.is_empty() {
            let before = self.rcv_nxt;
            let (joined, overlap) = self.reassembly.join(self.rcv_nxt, self.duplicate_reach);
            if let Some((left, right)) = overlap {
                //= RFC 2883, section 4.2
                self.extend_duplicate(left, right);
            }
            self.advance(joined.distance_from(before).max(0).unsigned_abs());
            if self.reassembly.is_empty() {
                //= RFC 5681, section 4.2
                self.acks.tell_now();
            }
        }
        self.window.note_in_order(now, self.rcv_nxt);
        if self.fin == Some(self.rcv_nxt) && !self.finished {
            self.finished = true;
            self.rcv_nxt += 1;
            self.reassembly.clear();
            return Arrival::Finished;
        }
        Arrival::Data
    }

    fn advance(&mut self, bytes: u32) {
        self.rcv_nxt += bytes;
        self.offset += u64::from(bytes);
    }

    /// Bytes that take room in the buffer.
    fn held(&self) -> u64 {
        self.unread() + u64::from(self.reassembly.bytes())
    }

    /// Remembers a duplicate, for the next acknowledgement.
    pub(crate) fn note_duplicate(&mut self, left: SeqNumber, right: SeqNumber) {
        if self.sack && self.dsack {
            self.reassembly.note_duplicate(left, right);
        }
    }

    /// Notes a duplicate that came along with another one, in the same segment.
    fn extend_duplicate(&mut self, left: SeqNumber, right: SeqNumber) {
        if self.sack && self.dsack {
            self.reassembly.extend_duplicate(left, right);
        }
    }
}
