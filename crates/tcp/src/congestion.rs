//! Congestion control: how the window grows and what is left of it after a loss.
//!
//! One enum, no dynamic dispatch. The window itself, `ssthresh` and what they are measured
//! against live in [`Window`]; all of them count segments, as Linux does.

mod bbr;
mod cubic;
mod reno;

pub(crate) use bbr::{Bbr, RateSample, Standing};
pub(crate) use cubic::Cubic;

use crate::profile::{Congestion, Growth};
use outlast_base::time::Instant;
use outlast_wire::SeqNumber;

/// No threshold yet.
pub(crate) const INFINITE: u32 = 0x7fff_ffff;

/// The congestion window, in segments.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// What counts towards the next segment, in the growth's own unit.
    pub(crate) credit: u32,
    pub(crate) growth: Growth,
    /// The latest flight filled the window.
    pub(crate) is_limiting: bool,
    /// Most segments outstanding in the latest window.
    pub(crate) most_outstanding: u32,
}

impl Window {
    pub(crate) fn new(initial: u32, growth: Growth) -> Self {
        Self {
            cwnd: initial,
            ssthresh: INFINITE,
            credit: 0,
            growth,
            is_limiting: false,
            most_outstanding: 0,
        }
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether it is the window that holds the sender back; one that does not may not grow.
    //= RFC 7661, section 4.4
    pub(crate) fn is_limiting(&self) -> bool {
        self.is_limiting || (self.in_slow_start() && self.cwnd < 2 * self.most_outstanding)
    }

    pub(crate) fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }
}

/// What an algorithm is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) now: Instant,
    /// Ticks of the host's clock since its start.
    pub(crate) ticks: u64,
    /// Length of a tick in ns.
    pub(crate) tick: u64,
    /// Whole ticks in a second.
    pub(crate) per_second: u64,
    pub(crate) snd_una: SeqNumber,
    pub(crate) snd_nxt: SeqNumber,
}

impl Context {
    /// Microseconds on the driver's clock, modulo 2^32.
    pub(crate) fn clock_us(&self) -> u32 {
        (self.now.as_nanos() / 1_000) as u32
    }
}

/// The algorithm in use.
#[derive(Clone, Debug)]
pub(crate) enum Algorithm {
    Reno,
    Cubic(Cubic),
    Bbr(Bbr),
}

impl Algorithm {
    pub(crate) fn new(congestion: Congestion) -> Self {
        match congestion {
            Congestion::Reno => Self::Reno,
            Congestion::Cubic => Self::Cubic(Cubic::default()),
            Congestion::Bbr => Self::Bbr(Bbr::default()),
        }
    }

    /// Forgets what was learned about the path.
    pub(crate) fn forget(&mut self) {
        *self = match self {
            Self::Reno => Self::Reno,
            Self::Cubic(_) => Self::Cubic(Cubic::default()),
            Self::Bbr(_) => Self::Bbr(Bbr::default()),
        };
    }

    /// Whether it sets the window itself, in every state.
    pub(crate) fn rules_alone(&self) -> bool {
        matches!(self, Self::Bbr(_))
    }

    /// The threshold after a loss.
    pub(crate) fn threshold_after_loss(&mut self, window: &Window, recovering: bool) -> u32 {
        match self {
            Self::Reno => reno::threshold_after_loss(window),
            Self::Cubic(cubic) => cubic.threshold_after_loss(window),
            Self::Bbr(bbr) => {
                bbr.save_window(window, recovering);
                window.ssthresh
            }
        }
    }

    /// The window after a loss turned out to be none.
    pub(crate) fn window_after_undo(&mut self, window: &Window, prior: u32) -> u32 {
        match self {
            Self::Reno | Self::Cubic(_) => window.cwnd.max(prior),
            Self::Bbr(bbr) => bbr.window_after_undo(window),
        }
    }

    /// `acked` segments more have arrived, in no particular trouble.
    pub(crate) fn grow(&mut self, window: &mut Window, acked: u32, context: &Context) {
        match self {
            Self::Reno => reno::grow(window, acked),
            Self::Cubic(cubic) => cubic.grow(window, acked, context),
            Self::Bbr(_) => {}
        }
    }

    /// The latest round trip, in microseconds.
    pub(crate) fn sample(&mut self, window: &mut Window, rtt_us: u32, context: &Context) {
        if let Self::Cubic(cubic) = self {
            cubic.sample(window, rtt_us, context);
        }
    }

    /// A timeout has happened.
    pub(crate) fn timed_out(&mut self, context: &Context) {
        match self {
            Self::Reno => {}
            Self::Cubic(cubic) => cubic.timed_out(context),
            Self::Bbr(bbr) => bbr.timed_out(),
        }
    }

    /// Data is sent and nothing was in flight.
    pub(crate) fn restarted(&mut self, last_sent: Instant, context: &Context) {
        match self {
            Self::Reno => {}
            Self::Cubic(cubic) => cubic.restarted(last_sent, context),
            Self::Bbr(bbr) => bbr.restarted(),
        }
    }

    /// Bytes a second that may be sent, if they are paced.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        match self {
            Self::Bbr(bbr) => Some(bbr.pacing_rate()),
            Self::Reno | Self::Cubic(_) => None,
        }
    }
}
