//! What a diagnosis tells.

use crate::FlowId;
use crate::diagnosis::Counters;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// What was found in a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The time of the first packet.
    pub began: Instant,
    /// The time of the last packet.
    pub ended: Instant,
    /// The outages, in the order of their starts.
    pub outages: Vec<Outage>,
    /// What was counted.
    pub counters: Counters,
}

/// A time without a path between hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Outage {
    /// When the path went silent: the best estimate.
    pub start: Instant,
    /// The path was certainly there until then.
    pub start_earliest: Instant,
    /// The path was certainly gone from then on.
    pub start_latest: Instant,
    /// When the path was certainly back: the first sign from any connection, less the time that it
    /// took to the point of the capture. `None` if there is none.
    pub end: Option<Instant>,
    /// The path was certainly gone until then.
    pub end_earliest: Instant,
    /// Whose silence shows the outage.
    pub scope: Scope,
    /// The connections that stood still, those that wasted most first.
    pub flows: Vec<Affected>,
}

/// Whose silence shows an outage, and whose sign its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// The path between two hosts.
    Hosts(IpAddr, IpAddr),
    /// The path to the neighbourhood of a host: its /24 or /64.
    Subnet(IpAddr),
    /// Every path of a host.
    Host(IpAddr),
    /// Everything that comes from the same side of a point of the capture.
    Interface(u32),
}

/// A connection that stood still.
#[derive(Clone, Debug, PartialEq)]
pub struct Affected {
    /// Which.
    pub flow: FlowId,
    /// The point of the capture that shows it best.
    pub point: u32,
    /// When it sent the first packet that crossed the path again and got it going; `None` if none
    /// did.
    pub noticed: Option<Instant>,
    /// How long it waited although the path was back.
    pub wasted: Wasted,
    /// True if its sender was seen to repeat something: what would have been saved is not known without.
    pub is_repeated: bool,
    /// What it waited for.
    pub cause: Cause,
    /// Its least round trip from the point of the capture, if one was seen.
    pub round_trip: Option<Duration>,
    /// Packets that were seen to remain unanswered, as far as they are counted.
    pub unanswered: u32,
}

impl Affected {
    /// Part of the waste that is saved by a gateway which lets the connection resume within a round trip.
    ///
    /// Nothing, where the sender was not seen to repeat anything.
    #[must_use]
    pub fn saved(&self) -> Wasted {
        match self.is_repeated {
            true => self.wasted.saved(self.round_trip),
            false => Wasted::default(),
        }
    }
}

/// The bounds of a waste of time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wasted {
    /// At least: since the path was certainly back.
    pub least: Duration,
    /// At most: since the path was certainly gone.
    pub most: Duration,
}

impl Wasted {
    /// What of it a gateway saves that lets the connection resume within a round trip.
    #[must_use]
    pub fn saved(self, round_trip: Option<Duration>) -> Self {
        let trip = round_trip.unwrap_or_default();
        Self {
            least: self.least.saturating_sub(trip),
            most: self.most.saturating_sub(trip),
        }
    }
}

/// Why a connection did not go on as soon as its path was back.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// Its retransmission timer had backed off.
    BackOff,
    /// It took a timeout for spurious, undid it, and did not repeat what was lost after all.
    SpuriousTimeout,
    /// The receiver's window was closed; the sender waited to probe it.
    ClosedWindow,
    /// Its segments had timestamps from before those that the receiver had seen (PAWS).
    OldTimestamps,
    /// Its tail-loss probe or RACK timer came before the retransmission timeout.
    LossTimer,
    /// The application had nothing to send.
    ApplicationIdle,
    /// Its SYN or SYN-ACK had been lost; it waited to repeat it.
    Handshake,
    /// Nothing was wasted: it went on as soon as the path was back.
    Path,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 8] = [
        Self::BackOff,
        Self::SpuriousTimeout,
        Self::ClosedWindow,
        Self::OldTimestamps,
        Self::LossTimer,
        Self::ApplicationIdle,
        Self::Handshake,
        Self::Path,
    ];

    /// The name in JSON and CSV.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BackOff => "back-off",
            Self::SpuriousTimeout => "spurious-timeout",
            Self::ClosedWindow => "closed-window",
            Self::OldTimestamps => "paws",
            Self::LossTimer => "loss-timer",
            Self::ApplicationIdle => "application-idle",
            Self::Handshake => "handshake",
            Self::Path => "path",
        }
    }

    /// What the connection waited for, as a sentence without its full stop.
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::BackOff => "the sender waited for its retransmission timer, which had backed off",
            Self::SpuriousTimeout => {
                "the sender took its timeout for spurious and did not repeat what was lost"
            }
            Self::ClosedWindow => "the sender waited to probe a closed window",
            Self::OldTimestamps => "the receiver dropped segments with old timestamps (PAWS)",
            Self::LossTimer => "the sender waited for its tail-loss probe or RACK timer",
            Self::ApplicationIdle => "the application had nothing to send",
            Self::Handshake => "the SYN or SYN-ACK was lost and had to be repeated",
            Self::Path => "the connection went on as soon as the path was back",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
