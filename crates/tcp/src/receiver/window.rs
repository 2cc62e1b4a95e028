//! How much the peer may send.
//!
//! RFC 9293, section 3.8.6.2.2 (receiver's silly window avoidance) and 3.8.6 (the right edge does
//! not move back); the window that opens with what arrives and the self-tuning buffer of Linux
//! (`tcp_grow_window`, `tcp_rcv_space_adjust`). Overhead of buffers is not counted: sizes are of
//! payload.

use super::Receiver;
use crate::config::Config;
use crate::profile::DelayedAck;
use outlast_base::time::Instant;
use outlast_wire::SeqNumber;

/// State of the window.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    /// Bytes that the buffer holds now, and at most.
    space: u32,
    max: u32,
    is_linux: bool,
    /// Opens with what arrives.
    threshold: u32,
    /// It was chosen to be told with this shift, and nothing by which it is chosen has changed
    /// since.
    chosen_for: Option<u8>,
    /// The window that would be told with this shift, if it was worked out on the same grounds.
    considered: Option<(u8, u32)>,
    /// RCV.WND as told last, and RCV.NXT then.
    offered: u32,
    offered_at: SeqNumber,
    advertised_mss: u32,
    mss: u32,
    /// Round trip as the receiver sees it, in ns.
    rtt: Option<u64>,
    last_echo: u32,
    /// Bytes read in the last round trip, and since when and where the next is measured.
    per_rtt: u32,
    measured_at: Instant,
    measured_from: SeqNumber,
    /// Without timestamps: a window's worth of data is a round trip.
    round_end: SeqNumber,
    round_at: Instant,
}

impl ReceiveWindow {
    pub(super) fn new(config: &Config) -> Self {
        let buffer = *config.profile.receive_buffer;
        let (space, max) = match config.receive_buffer {
            Some(bytes) => (bytes, bytes),
            None => (buffer.initial, buffer.max),
        };
        let mss = u32::from(config.announced_mss());
        // A SYN cannot say more than 65535.
        let offered = match space {
            small if small < mss => small,
            space => space.min(65_535) / mss * mss,
        };
        Self {
            space,
            max,
            is_linux: matches!(*config.profile.delayed_ack, DelayedAck::Linux { .. }),
            threshold: offered,
            chosen_for: None,
            considered: None,
            offered,
            offered_at: SeqNumber(0),
            advertised_mss: mss,
            mss: 536,
            rtt: None,
            last_echo: 0,
            per_rtt: 0,
            measured_at: Instant::ZERO,
            measured_from: SeqNumber(0),
            round_end: SeqNumber(0),
            round_at: Instant::ZERO,
        }
    }

    /// What the window is chosen by is about to change.
    #[inline]
    pub(super) fn reconsider(&mut self) {
        self.chosen_for = None;
        self.considered = None;
    }

    pub(super) fn start(&mut self, now: Instant, first: SeqNumber) {
        self.offered_at = first;
        self.measured_from = first;
        self.measured_at = now;
        self.round_end = first;
        self.round_at = now;
    }

    pub(super) fn establish(&mut self, now: Instant, advertised: u32) {
        self.advertised_mss = advertised;
        self.measured_at = now;
        self.per_rtt = self.threshold.min(self.offered).min(10 * advertised).max(1);
    }

    pub(super) fn receive_mss(&self) -> u32 {
        self.mss.min(self.advertised_mss).min(self.offered / 2)
    }

    /// Segments of half the window, the limit of the quick mode.
    pub(super) fn quick_limit(&self) -> u32 {
        self.offered / (2 * self.mss.max(1))
    }

    /// In ns.
    pub(super) fn rtt(&self) -> Option<u64> {
        self.rtt
    }

    /// A segment of `bytes` came; `held` bytes are in the buffer. Tells whether the window may
    /// open for it.
    #[inline]
    pub(super) fn note_segment(&mut self, bytes: u32, held: u64) -> bool {
        if bytes >= self.mss {
            self.mss = bytes.min(self.advertised_mss);
        }
        if !self.is_linux || bytes < 128 {
            return false;
        }
        let free = u64::from(self.space).saturating_sub(held);
        let room = u32::try_from(free).unwrap_or(u32::MAX).min(self.space);
        let room = room.saturating_sub(self.threshold);
        self.threshold += room.min(2 * self.advertised_mss.max(bytes));
        room > 0
    }

    /// Without timestamps, measures the round trip by the window.
    #[inline]
    pub(super) fn note_in_order(&mut self, now: Instant, rcv_nxt: SeqNumber) {
        if self.last_echo != 0 || rcv_nxt.before(self.round_end) {
            return;
        }
        if self.round_end != self.measured_from || self.rtt.is_some() {
            let sample = now.nanos_since(self.round_at).max(1_000);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
        self.round_end = rcv_nxt + self.offered;
        self.round_at = now;
    }

    fn grow(&mut self, bytes: u32, ahead: u32) {
        let old = self.per_rtt.max(1);
        self.per_rtt = bytes;
        let twice = u64::from(bytes) * 2;
        let grow = twice * 2 * u64::from(bytes.saturating_sub(old)) / u64::from(old);
        let wanted = twice + grow + u64::from(ahead);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(self.max);
        self.space = self.space.max(wanted);
    }
}

/// `bytes`, rounded up to what a window field with `shift` can say.
fn round_up(bytes: u32, shift: u8) -> u32 {
    let below = (1 << shift) - 1;
    match bytes.checked_add(below) {
        Some(sum) => sum >> shift << shift,
        None => bytes.div_ceil(1 << shift) << shift,
    }
}

impl Receiver {
    /// RCV.WND as told last.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        let passed = self.rcv_nxt.distance_from(self.window.offered_at);
        let passed = u32::try_from(passed).unwrap_or(0);
        self.window.offered.saturating_sub(passed)
    }

    /// RCV.NXT + RCV.WND.
    pub(crate) fn right_edge(&self) -> SeqNumber {
        self.rcv_nxt + self.window()
    }

    /// The window that would be told now.
    pub(super) fn window_would_be(&self, shift: u8) -> u32 {
        let ReceiveWindow {
            space,
            threshold,
            mss,
            is_linux,
            ..
        } = self.window;
        let free = u64::from(space).saturating_sub(self.held());
        let mut free = u32::try_from(free).unwrap_or(u32::MAX);
        if !is_linux {
            //= RFC 9293, section 3.8.6.2.2
            let enough = (space / 4).min(mss);
            return if free < enough { 0 } else { free };
        }
        let mss = mss.min(space);
        if free < space / 2 {
            free = free >> shift << shift;
            if free < space / 16 || free < mss {
                return 0;
            }
        }
        free = free.min(threshold.max(mss));
        if shift > 0 {
            return round_up(free, shift);
        }
        let told = self.window();
        if told.saturating_add(mss) <= free || told > free {
            free / mss.max(1) * mss
        } else {
            told
        }
    }

    /// The window that would be told now, worked out again only after a change.
    #[inline]
    pub(super) fn consider_window(&mut self, shift: u8) -> u32 {
        if let Some((known_for, window)) = self.window.considered
            && known_for == shift
        {
            return window;
        }
        let window = self.window_would_be(shift);
        // Without scaling it depends on what was told.
        self.window.considered = (shift > 0).then_some((shift, window));
        window
    }

    /// Chooses the window for an acknowledgement that leaves now.
    #[inline]
    pub(super) fn offer_window(&mut self, shift: u8) {
        // On the same grounds it is the same again.
        if self.window.chosen_for != Some(shift) {
            self.choose_window(shift);
            self.window.chosen_for = Some(shift);
        }
    }

    #[inline]
    fn choose_window(&mut self, shift: u8) {
        let told = self.window();
        let mut window = self.consider_window(shift);
        if window < told {
            //= RFC 9293, section 3.8.6: the right edge does not move back
            window = round_up(told, shift);
        }
        self.window.offered = window.min(0xffff << shift);
        self.window.offered_at = self.rcv_nxt;
    }

    /// After a read: whether the peer must hear of it.
    #[inline]
    pub(crate) fn wants_update(&self, shift: u8) -> bool {
        if self.read_should_acknowledge() {
            return true;
        }
        if self.finished {
            return false;
        }
        let told = self.window();
        if self.window.is_linux {
            if u64::from(told) * 2 > u64::from(self.window.space) {
                return false;
            }
            let new = self.window_would_be(shift);
            new > 0 && u64::from(new) >= 2 * u64::from(told)
        } else {
            // As BSD does: two segments more, or half the buffer.
            let more = self.window_would_be(shift).saturating_sub(told);
            more >= 2 * self.window.mss || more >= self.window.space / 2
        }
    }

    /// Lets the buffer follow what is read (dynamic right-sizing).
    #[inline]
    pub(crate) fn tune(&mut self, now: Instant) {
        let Some(rtt) = self.window.rtt else {
            return;
        };
        if self.window.space >= self.window.max || now.nanos_since(self.window.measured_at) < rtt {
            return;
        }
        self.measure(now);
    }

    fn measure(&mut self, now: Instant) {
        self.window.reconsider();
        // `unread` is beyond what has been read, and less than the sequence space.
        let read_to = self.rcv_nxt - self.unread() as u32;
        let read = read_to.distance_from(self.window.measured_from);
        let read = u32::try_from(read).unwrap_or(0);
        if read > self.window.per_rtt {
            let ahead = self.reassembly.highest();
            let ahead = ahead.map_or(0, |end| end.distance_from(self.rcv_nxt).max(0));
            self.window.grow(read, ahead.unsigned_abs());
        }
        self.window.measured_from = read_to;
        self.window.measured_at = now;
    }

    /// Whether a segment that echoes `echo` is of use as a sample: it is full, and the first such.
    #[inline]
    pub(crate) fn takes_rtt_sample(&self, echo: u32, payload: u32) -> bool {
        echo != self.window.last_echo && payload >= self.window.mss
    }

    /// A full segment echoed a timestamp of ours, `rtt` ns old.
    #[inline]
    pub(crate) fn sample_rtt(&mut self, echo: u32, rtt: u64) {
        self.window.last_echo = echo;
        self.window.rtt = Some(self.window.rtt.map_or(rtt, |known| {
            if rtt < known {
                // Down at once, up slowly.
                rtt
            } else {
                known + (rtt - known) / 8
            }
        }));
    }
}
