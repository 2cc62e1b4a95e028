//! The last segment of each TCP connection, by which it moves again once a readdressing is complete.
//!
//! A sender whose retransmission timer has backed off sends nothing for a long time after the path
//! is back. The last segment that it sent is then the oldest that its peer lacks.
//!
//! - One that is old is quoted in ICMP errors to the host's own TCP, which take the back-off back (RFC
//!   6069): TCP sends it again itself, at once. Sent again from below, it would bear its old timestamp,
//!   and the answer would echo that: the sender would take the outage for a round trip, and wait as long
//!   for the next loss.
//! - One that is recent is sent again from below: no timer has backed off, and the answer makes the
//!   sender go on. So is a receiver's last segment: it repeats its acknowledgement, which may have
//!   been lost.
//!
//! Other protocols are left alone: their packets must not come twice.

use crate::beet::Inner;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::Hit;
use outlast_wire::{IcmpNotice, Packet};

/// The protocol number of TCP.
pub(crate) const TCP: u8 = 6;

/// Connections that are remembered for one peer; the one that was silent longest makes room.
const MOST_CONNECTIONS: usize = 256;

/// Whoever has sent a segment so long ago, and none since, waits for no first timeout (RFC 6298, section 2.1).
const OLD: Duration = Duration::from_secs(1);

/// Errors about one segment. Each takes one back-off back, and those that are too many do nothing: a
/// connection has no more back-offs than Linux repeats a segment (`tcp_retries2`).
pub(crate) const ERRORS: usize = 15;

/// A segment that a connection sent last.
#[derive(Debug)]
pub(crate) struct LastSegment {
    sent_at: Instant,
    pub(crate) bytes: Vec<u8>,
}

/// The last segments to one peer, by the ports.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    segments: BTreeMap<[u8; 4], LastSegment>,
}

impl Recent {
    /// Notes a packet that was sent.
    pub(crate) fn note(&mut self, now: Instant, next: u8, bytes: Vec<u8>) {
        let Some(&ports) = bytes.first_chunk::<4>().filter(|_| next == TCP) else {
            return;
        };
        if self.segments.len() >= MOST_CONNECTIONS && !self.segments.contains_key(&ports) {
            let oldest = self.segments.iter().min_by_key(|(_, last)| last.sent_at);
            if let Some(oldest) = oldest.map(|(ports, _)| *ports) {
                self.segments.remove(&oldest);
            }
        }
        let sent_at = now;
        self.segments.insert(ports, LastSegment { sent_at, bytes });
    }

    /// Takes all segments.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = LastSegment> + use<> {
        core::mem::take(&mut self.segments).into_values()
    }
}

impl LastSegment {
    /// The ICMP error about this segment of `own`'s that takes a back-off back; nothing if its timer has not
    /// backed off.
    pub(crate) fn wake(&self, now: Instant, [own, peer]: [Hit; 2]) -> Option<Vec<u8>> {
        if now.since(self.sent_at) < OLD {
            return None;
        }
        let inner = Inner {
            source: own,
            destination: peer,
            next: TCP,
            payload: &self.bytes,
        };
        let segment = Packet::parse(inner.emit()?.into()).ok()?;
        if segment.tcp().is_none() || segment.sequence_len() == 0 {
            return None;
        }
        let router = peer.address().into();
        let error = Packet::icmp_error(router, IcmpNotice::NetworkUnreachable, &segment).ok()?;
        Some(error.to_bytes().to_vec())
    }
}
