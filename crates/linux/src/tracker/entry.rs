//! The form of the table's values: `struct entry` of `bpf/tracker.bpf.c`.

use super::key::{HOSTS, KEY};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::tracking::{Acquaintance, Delivery, Half, LinkRtt, Phase, TcpFlow, Timed};
use outlast_wire::SeqNumber;
use std::num::NonZeroU64;

/// `struct half`.
const HALF: usize = 24;
/// `struct flow`: both halves, what is timed, the phase.
const TIMED_AT: usize = 2 * HALF;
const FLOW: usize = TIMED_AT + 16;
const LONGEST_ACK: usize = 100;
/// `struct entry`.
const FLOW_AT: usize = 8;
const HEARD_AT: usize = FLOW_AT + FLOW;
const OWED_SINCE: usize = HEARD_AT + 8;
const OPENED_AT: usize = OWED_SINCE + 8;
const IS_PROVEN_AT: usize = OPENED_AT + 9;
const VERSION_AT: usize = OPENED_AT + 10;
pub(super) const BEGUN_AT: usize = OPENED_AT + 12;
const KEY_AT: usize = BEGUN_AT + 4;
const HOSTS_AT: usize = KEY_AT + KEY + 4;
/// `struct details`, behind when the connection was suspected: lengths, times, and bytes of both
/// acknowledgements.
const DETAILS_AT: usize = HOSTS_AT + HOSTS;
const TO_LINK: AckPlaces = AckPlaces {
    length: DETAILS_AT + 4,
    at: RTT_AT + 16,
    bytes: (RTT_AT + 32 + LONGEST_ACK).next_multiple_of(64),
};
const FROM_LINK: AckPlaces = AckPlaces {
    length: TO_LINK.length + 2,
    at: TO_LINK.at + 8,
    bytes: RTT_AT + 32,
};
const RTT_AT: usize = DETAILS_AT + 8;
/// Behind the acknowledgement from the link, counted from `struct rtt`: what goes with its round trips.
const TIMED_ACKED: usize = 32 + LONGEST_ACK;
const DELIVERY_RATE: usize = TIMED_ACKED + 4;
/// Whole cache lines.
pub(super) const ENTRY: usize = (TO_LINK.bytes + LONGEST_ACK).next_multiple_of(64);

/// Where in an entry a segment without payload is.
struct AckPlaces {
    length: usize,
    at: usize,
    bytes: usize,
}

/// Bits of `has` in `struct half`.
const HAS_ALLOWED: u8 = 1;
const HAS_WINDOW_SCALE: u8 = 2;
const HAS_FIN: u8 = 4;
const PERMITS_SACK: u8 = 8;

/// The longest time between two of the kernel's ticks, by which some of its times are too early.
pub const RESOLUTION: Duration = Duration::from_millis(10);

/// What the kernel knows of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrackedFlow {
    /// The connection as tracked.
    pub tcp: TcpFlow,
    /// When it began, or was seen first.
    pub opened_at: Instant,
    /// When its far host was heard last, if ever; up to [`RESOLUTION`] before it was.
    pub heard_at: Option<Instant>,
    /// When data went towards the far host, which has not been heard since; `None`: it has. Up to
    /// [`RESOLUTION`] before it did.
    pub owed_since: Option<Instant>,
    /// Whether the handshake was seen to be completed, as the gateway understands it.
    pub is_proven: bool,
    /// The newest segment without payload that went towards the link, of this connection.
    pub newest_to_link: Option<Acknowledgement>,
    /// The newest pure acknowledgement that came from it, likewise.
    pub newest_from_link: Option<Acknowledgement>,
}

/// A segment without payload.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Acknowledgement {
    /// When it passed, or up to [`RESOLUTION`] before; never before recorded data that it follows
    /// and that is not acknowledged.
    pub at: Instant,
    bytes: [u8; LONGEST_ACK],
    length: usize,
}

impl Acknowledgement {
    /// The packet, from its IP header on; its checksum may still be to be filled in.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl std::fmt::Debug for Acknowledgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acknowledgement")
            .field("at", &self.at)
            .field("bytes", &self.bytes())
            .finish()
    }
}

/// The `struct hosts` of a `struct entry`.
pub(super) fn hosts(entry: &[u8; ENTRY]) -> &[u8; HOSTS] {
    entry[HOSTS_AT..].first_chunk().expect("within it")
}

/// Its `struct key`.
pub(super) fn key(entry: &[u8; ENTRY]) -> &[u8; KEY] {
    entry[KEY_AT..].first_chunk().expect("within it")
}

/// Whether it is that of a connection.
pub(super) const fn is_one(entry: &[u8; ENTRY]) -> bool {
    entry[VERSION_AT] != 0
}

/// Its field `begun`.
pub(super) fn begun(entry: &[u8; ENTRY]) -> u32 {
    word(entry, BEGUN_AT).expect("within it")
}

/// Whether nobody wrote when its beginning was read; who began afterwards has changed [`begun`].
pub(super) fn is_settled(entry: &[u8; ENTRY]) -> bool {
    word(entry, 0) == word(entry, BEGUN_AT)
}

/// Reads a `struct entry`; `None` if it is none that the programs write.
pub(super) fn tracked(entry: &[u8; ENTRY]) -> Option<TrackedFlow> {
    let at = |place| long(entry, place).map(Instant::from_nanos);
    Some(TrackedFlow {
        tcp: flow(entry.get(FLOW_AT..FLOW_AT + FLOW)?, entry.get(RTT_AT..)?)?,
        opened_at: at(OPENED_AT)?,
        heard_at: at(HEARD_AT).filter(|at| *at != Instant::ZERO),
        owed_since: at(OWED_SINCE).filter(|at| *at != Instant::ZERO),
        is_proven: *entry.get(IS_PROVEN_AT)? != 0,
        newest_to_link: acknowledgement(entry, &TO_LINK),
        newest_from_link: acknowledgement(entry, &FROM_LINK),
    })
}

/// Reads a `struct flow`, and what `struct details` has of its round trips, from `struct rtt` on.
fn flow(bytes: &[u8], rtt: &[u8]) -> Option<TcpFlow> {
    let (near, far) = bytes.get(..2 * HALF)?.split_at(HALF);
    let timed = bytes.get(TIMED_AT..)?;
    let (sent_at, end) = (Instant::from_nanos(long(timed, 0)?), word(timed, 8)?);
    let &[is_timed, has_rtt, phase] = timed.get(12..15)? else {
        return None;
    };
    let nanos = |at| long(rtt, at).map(Duration::from_nanos);
    let rate = NonZeroU64::new(long(rtt, DELIVERY_RATE)?).filter(|_| has_rtt != 0);
    let at = Instant::from_nanos(long(rtt, DELIVERY_RATE + 8)?);
    let delivery = rate.map(|bytes_per_second| Delivery {
        bytes_per_second,
        at,
    });
    Some(TcpFlow {
        near: half(near)?,
        far: half(far)?,
        rtt: LinkRtt::of_measurements(
            (is_timed != 0).then_some(Timed {
                end: SeqNumber(end),
                sent_at,
                acked: SeqNumber(word(rtt, TIMED_ACKED)?),
            }),
            nanos(0).filter(|_| has_rtt != 0),
            nanos(8).filter(|_| has_rtt != 0).unwrap_or_default(),
            delivery,
        ),
        phase: match phase {
            0 => Phase::Opening,
            1 => Phase::Established,
            2 => Phase::Closed,
            _ => return None,
        },
    })
}

fn half(bytes: &[u8]) -> Option<Half> {
    let number = |at| word(bytes, at).map(SeqNumber);
    let &[window_scale, acquaintance, has, _] = bytes.get(20..24)? else {
        return None;
    };
    Some(Half {
        next: number(0)?,
        acked: number(4)?,
        allowed: number(8).filter(|_| has & HAS_ALLOWED != 0),
        largest_window: word(bytes, 12)?,
        fin: number(16).filter(|_| has & HAS_FIN != 0),
        window_scale: (has & HAS_WINDOW_SCALE != 0).then_some(window_scale),
        permits_sack: (has & HAS_WINDOW_SCALE != 0).then_some(has & PERMITS_SACK != 0),
        acquaintance: match acquaintance {
            0 => Acquaintance::None,
            1 => Acquaintance::ByPeer,
            2 => Acquaintance::Seen,
            _ => return None,
        },
    })
}

/// Reads a segment without payload; `None` if there was none.
fn acknowledgement(entry: &[u8; ENTRY], places: &AckPlaces) -> Option<Acknowledgement> {
    let length = entry.get(places.length..)?.first_chunk()?;
    let length = usize::from(u16::from_ne_bytes(*length));
    let bytes_are_there = (1..=LONGEST_ACK).contains(&length);
    bytes_are_there.then_some(Acknowledgement {
        at: Instant::from_nanos(long(entry, places.at)?),
        bytes: *entry.get(places.bytes..)?.first_chunk()?,
        length,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*bytes))
}
