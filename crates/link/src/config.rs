//! What a link is like.

use crate::outage::{OutageProcess, Schedule};
use alloc::vec::Vec;
use core::fmt;
use outlast_base::random::Stream;
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};

/// What travels over a link.
///
/// Cloning should be cheap: it happens once for each duplicated frame.
pub trait Frame: Clone {
    /// The length that occupies the transmitter.
    fn wire_len(&self) -> ByteCount;
}

/// The two directions of a link.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Way {
    /// From the fixed side to the mobile (downlink).
    ToMobile,
    /// From the mobile to the fixed side (uplink).
    ToFixed,
}

impl Way {
    /// Both ways, in the order in which they are served at one instant.
    pub const BOTH: [Self; 2] = [Self::ToMobile, Self::ToFixed];

    /// The other way.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::ToMobile => Self::ToFixed,
            Self::ToFixed => Self::ToMobile,
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::ToMobile => 0,
            Self::ToFixed => 1,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToMobile => "to mobile",
            Self::ToFixed => "to fixed",
        })
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PipeConfig {
    /// Serialisation rate; `None` is unlimited: frames take no time and never queue.
    pub rate: Option<BitRate>,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Frames that may wait, drop-tail; the frame being sent does not count. Zero counts as one.
    pub queue: usize,
    /// Probability that a frame is lost on the way. All probabilities are `0.0..=1.0`; what lies
    /// outside counts as the nearer end, and not-a-number as zero.
    pub loss: f64,
    /// Probability that a frame which is not lost arrives twice, the copy right behind it.
    pub duplicate: f64,
    /// Probability that a frame which is not lost is held back, see
    /// [`REORDER_DEPTH`](crate::REORDER_DEPTH).
    pub reorder: f64,
}

impl Default for PipeConfig {
    /// Unlimited, without delay or damage, with room for 75 frames.
    fn default() -> Self {
        Self {
            rate: None,
            delay: Duration::ZERO,
            queue: 75,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
        }
    }
}

impl PipeConfig {
    /// Whether every frame that is sent arrives, once and in order.
    pub(crate) fn is_faithful(&self) -> bool {
        // Not a number counts as zero.
        let never = |probability: f64| probability.is_nan() || probability <= 0.0;
        never(self.loss) && never(self.duplicate) && never(self.reorder)
    }
}

/// The fate of frames that have left the transmitter when the link goes down.
///
/// The fate of the queue and of the frame being sent is [`WhileDown`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum InFlight {
    /// They arrive: the break is at the near end, behind them.
    #[default]
    Delivered,
    /// They are lost: the break is at the far end, before them.
    Lost,
}

/// The fate of frames that wait, or are handed in, while the link is down.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum WhileDown {
    /// They are lost, as with an interface that loses its carrier.
    #[default]
    Dropped,
    /// They wait in the queue until the link is up, as in a modem that keeps its buffer.
    ///
    /// The frame being sent when the link goes down waits with them and is sent again whole.
    Queued,
}

/// A change of a link's rates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateChange {
    /// When, counted from the link's start.
    pub at: Duration,
    /// The downlink's rate from then on; `None` leaves it.
    pub to_mobile: Option<BitRate>,
    /// The uplink's rate from then on; `None` leaves it.
    pub to_fixed: Option<BitRate>,
}

impl RateChange {
    /// The new rate `way`; `None` if it stays.
    #[must_use]
    pub const fn rate(&self, way: Way) -> Option<BitRate> {
        match way {
            Way::ToMobile => self.to_mobile,
            Way::ToFixed => self.to_fixed,
        }
    }
}

/// A link: two pipes, when it is down, and the seed of everything random about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// The downlink.
    pub to_mobile: PipeConfig,
    /// The uplink.
    pub to_fixed: PipeConfig,
    /// When the link goes down and comes up; both directions share it.
    pub outages: OutageProcess,
    /// What becomes of frames on the way when it goes down.
    pub in_flight: InFlight,
    /// What becomes of frames that wait while it is down.
    pub while_down: WhileDown,
    /// Changes of its rates, in order of time. A link with a packet-delivery trace ignores them.
    pub rate_changes: Vec<RateChange>,
    /// Seed of all the link's random streams; see [`outlast_base::random`].
    pub seed: u64,
}

impl LinkConfig {
    /// The pipe that leads `way`.
    #[must_use]
    pub const fn pipe(&self, way: Way) -> &PipeConfig {
        match way {
            Way::ToMobile => &self.to_mobile,
            Way::ToFixed => &self.to_fixed,
        }
    }

    /// The outages of this link, in order, counted from its start. A running link has exactly
    /// these.
    ///
    /// The iterator may be endless.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        self.outages
            .schedule(Stream::new(self.seed, "link.outages"))
    }
}
