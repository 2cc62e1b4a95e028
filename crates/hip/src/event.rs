//! What a host tells its driver: packets, events, reasons, counts.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::Duration;
use outlast_wire::hip::Hit;

/// The protocol of an outer packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// Protocol 139.
    Hip,
    /// Protocol 50.
    Esp,
}

/// A packet to send.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// The outer source, one of this host's addresses.
    pub source: IpAddr,
    /// The outer destination.
    pub destination: IpAddr,
    /// What the IP header announces.
    pub protocol: Protocol,
    /// What follows the IP header.
    pub payload: Vec<u8>,
}

/// Why an exchange failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Failure {
    /// Nobody answered.
    #[error("no answer")]
    NoAnswer,
    /// No address of the peer is known, or none of a family that this host has.
    #[error("no address")]
    NoAddress,
    /// The puzzle is harder than this host solves.
    #[error("the puzzle is too hard")]
    Puzzle,
    /// The hosts have no group, cipher or suite in common.
    #[error("no common choice of {0}")]
    NoCommonChoice(&'static str),
    /// The peer answered with a signed notification.
    #[error("the peer refuses: notification {0}")]
    Notified(u16),
}

/// Something that a log, a status page or a retransmission trigger wants to know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// An association is up; data can flow.
    Established {
        /// The peer.
        peer: Hit,
    },
    /// An exchange failed.
    Failed {
        /// The peer.
        peer: Hit,
        /// Why.
        failure: Failure,
    },
    /// A readdressing is complete: a symmetric connectivity indicator for this peer's connections.
    Readdressed {
        /// The peer.
        peer: Hit,
        /// Where the peer is reached now.
        address: IpAddr,
        /// Since its first packet was sent or received.
        took: Duration,
    },
    /// The keys for data were replaced.
    Rekeyed {
        /// The peer.
        peer: Hit,
    },
    /// The peer has not answered an offer of new keys, or not acknowledged an answer, for two minutes; the old
    /// ones stay.
    RekeyingFailed {
        /// The peer.
        peer: Hit,
    },
    /// An association is over.
    Closed {
        /// The peer.
        peer: Hit,
    },
    /// A rendezvous server has accepted this host.
    Registered {
        /// The server.
        server: Hit,
    },
}

/// Why a host wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Reason {
    /// A puzzle is being solved.
    Puzzle,
    /// A packet is sent again.
    Retransmission,
    /// A registration is renewed.
    Registration,
    /// A state or an unused association ends.
    Lifetime,
    /// TCP was told that its back-off was in vain, and may have sent nothing.
    Silence,
    /// Segments have waited for long enough for those that other connections lack.
    FirstFlight,
    /// A peer that has left data unanswered is asked for a sign of life.
    Liveness,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(usize)]
pub enum Refusal {
    /// No HIP packet, or a malformed parameter.
    Malformed,
    /// The checksum is wrong.
    Checksum,
    /// For another host.
    NotForUs,
    /// A critical parameter is not known, or one is missing.
    Parameter,
    /// Not expected in this state.
    State,
    /// The policy refuses the peer.
    Policy,
    /// The puzzle is not ours, or not solved.
    Puzzle,
    /// An I2 that was answered before, or an old UPDATE.
    Replay,
    /// The public value or a choice is not one that was offered.
    Choice,
    /// The host identity does not fit the tag.
    Identity,
    /// The MAC is wrong.
    Mac,
    /// The signature is wrong.
    Signature,
    /// A cap is reached.
    Limit,
    /// ESP of an unknown SPI.
    UnknownSpi,
    /// ESP that repeats a number or lies below the window.
    Repeated,
    /// ESP that is not authentic.
    Forged,
    /// Data to a host that is not known or not reached.
    NoPath,
    /// Data beyond the credit, or beyond what waits.
    Overflow,
    /// An application's packet of IPv4 is longer than it may be between LSIs.
    TooBig,
    /// An application's packet of IPv4 has no form in IPv6.
    Untranslated,
}

impl Refusal {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 20] = [
        Self::Malformed,
        Self::Checksum,
        Self::NotForUs,
        Self::Parameter,
        Self::State,
        Self::Policy,
        Self::Puzzle,
        Self::Replay,
        Self::Choice,
        Self::Identity,
        Self::Mac,
        Self::Signature,
        Self::Limit,
        Self::UnknownSpi,
        Self::Repeated,
        Self::Forged,
        Self::NoPath,
        Self::Overflow,
        Self::TooBig,
        Self::Untranslated,
    ];

    /// The name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Checksum => "checksum",
            Self::NotForUs => "not_for_us",
            Self::Parameter => "parameter",
            Self::State => "state",
            Self::Policy => "policy",
            Self::Puzzle => "puzzle",
            Self::Replay => "replay",
            Self::Choice => "choice",
            Self::Identity => "identity",
            Self::Mac => "mac",
            Self::Signature => "signature",
            Self::Limit => "limit",
            Self::UnknownSpi => "unknown_spi",
            Self::Repeated => "repeated",
            Self::Forged => "forged",
            Self::NoPath => "no_path",
            Self::Overflow => "overflow",
            Self::TooBig => "too_big",
            Self::Untranslated => "untranslated",
        }
    }
}

/// Counts since the host began; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Packets dropped, by [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// R1 packets sent.
    pub r1_sent: u64,
    /// Diffie-Hellman agreements computed for I2 packets.
    pub agreements: u64,
    /// Packets forwarded to registered hosts.
    pub forwarded: u64,
    /// Packets of applications sealed.
    pub sealed: u64,
    /// Packets delivered to applications.
    pub opened: u64,
}

impl Counters {
    /// Packets dropped for this reason.
    #[must_use]
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused.get(refusal as usize).copied().unwrap_or(0)
    }
}

/// What waits for the driver.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) deliveries: VecDeque<Vec<u8>>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
}

impl Outbox {
    /// Counts a dropped packet.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        if let Some(count) = self.counters.refused.get_mut(refusal as usize) {
            *count += 1;
        }
    }

    /// Sends a HIP packet, whose checksum is set for these addresses.
    pub(crate) fn hip(&mut self, (source, destination): (IpAddr, IpAddr), packet: &[u8]) {
        let mut payload = packet.to_vec();
        outlast_wire::hip::Builder::set_checksum(&mut payload, source, destination);
        self.transmits.push_back(Transmit {
            source,
            destination,
            protocol: Protocol::Hip,
            payload,
        });
    }
}
