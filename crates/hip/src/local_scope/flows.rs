//! Which conversations with peers this host's applications hold in IPv4.
//!
//! What this host sends shows it. Where the peer speaks first, the driver is asked who listens: at the first segment of a
//! TCP connection, at a segment or datagram of a conversation that is not known, and again after a while
//! of datagrams, because their receiver may have changed.

use super::Family;
use crate::beet::Inner;
use crate::recent::TCP;
use alloc::collections::{BTreeMap, VecDeque};
use core::mem;
use outlast_base::time::{Duration, Instant};
use outlast_wire::TcpFlags;
use outlast_wire::hip::Hit;

const UDP: u8 = 17;
const FRAGMENT: u8 = 44;
const ICMPV6: u8 = 58;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// ICMPv6 types up to this one are errors (RFC 4443, section 2.1), and have so long a header.
const LAST_ERROR: u8 = 127;
const ERROR_HEADER: usize = 8;

/// Conversations of a generation. Those of two generations are known; of older ones those that were used since.
const GENERATION: usize = 8192;

/// Fragmented packets whose later fragments are expected; the oldest makes room.
const MOST_FRAGMENTED: usize = 64;

/// How long the driver's answer holds for datagrams.
const ANSWER_HOLDS: Duration = Duration::from_secs(10);

/// A conversation with a peer. An ICMP echo has its number as the own port.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
    peer: Hit,
    pub(crate) protocol: u8,
    pub(crate) own_port: u16,
    pub(crate) peer_port: u16,
}

/// The family of a conversation, and how it is known.
#[derive(Clone, Copy, Debug)]
struct Known {
    family: Family,
    /// When the driver said so; `None`: this host has sent in it.
    said_at: Option<Instant>,
}

/// What a packet of the peer belongs to.
#[derive(Debug, Eq, PartialEq)]
enum Belonging {
    /// A conversation, which begins with this packet or not; with the number of the packet that this is a fragment of.
    Conversation(Key, bool, Option<u32>),
    /// What this host has sent, perhaps.
    Answer(Key),
    /// A packet whose first fragment came before.
    Later(u32),
    /// Nothing that there is in IPv4.
    Other,
}

/// What is known of conversations.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    young: BTreeMap<Key, Known>,
    old: BTreeMap<Key, Known>,
    fragmented: VecDeque<(Hit, u32, Family)>,
}

/// What a packet between tags carries.
struct Upper<'a> {
    protocol: u8,
    payload: &'a [u8],
    /// The number of the packet that this is a fragment of, and the fragment's offset in it.
    fragment: Option<(u32, u16)>,
}

impl<'a> Upper<'a> {
    /// Looks behind a fragment header, if there is one.
    fn of(next: u8, payload: &'a [u8]) -> Option<Self> {
        if next != FRAGMENT {
            return Some(Self {
                protocol: next,
                payload,
                fragment: None,
            });
        }
        let (&[protocol, _, o0, o1, id @ ..], payload) = payload.split_first_chunk::<8>()?;
        let offset = u16::from_be_bytes([o0, o1]) >> 3;
        Some(Self {
            protocol,
            payload,
            fragment: Some((u32::from_be_bytes(id), offset)),
        })
    }
}

/// The first two words of an upper protocol: ports.
fn ports(payload: &[u8]) -> Option<[u16; 2]> {
    let &[a, b, c, d] = payload.first_chunk()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// The conversation of a packet that this host sends to the peer.
fn key_of_sent(peer: Hit, next: u8, payload: &[u8]) -> Option<Key> {
    let Upper {
        protocol,
        payload,
        fragment,
    } = Upper::of(next, payload)?;
    if fragment.is_some_and(|(_, offset)| offset > 0) {
        return None;
    }
    let [own_port, peer_port] = match protocol {
        TCP | UDP => ports(payload)?,
        ICMPV6 if payload.first() == Some(&ECHO_REQUEST) => [ports(payload.get(4..)?)?[0], 0],
        _ => return None,
    };
    Some(Key {
        peer,
        protocol,
        own_port,
        peer_port,
    })
}

fn belonging(inner: &Inner<'_>) -> Option<Belonging> {
    let peer = inner.source;
    let Upper {
        protocol,
        payload,
        fragment,
    } = Upper::of(inner.next, inner.payload)?;
    if let Some((id, 1..)) = fragment {
        return Some(Belonging::Later(id));
    }
    let key = |[own_port, peer_port]: [u16; 2]| Key {
        peer,
        protocol,
        own_port,
        peer_port,
    };
    Some(match (protocol, payload.first()?) {
        (TCP | UDP, _) => {
            let [peer_port, own_port] = ports(payload)?;
            let flags = TcpFlags(*payload.get(13).unwrap_or(&0));
            let begins =
                protocol == TCP && flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK);
            let id = fragment.map(|(id, _)| id);
            Belonging::Conversation(key([own_port, peer_port]), begins, id)
        }
        (ICMPV6, &ECHO_REPLY) => Belonging::Answer(key([ports(payload.get(4..)?)?[0], 0])),
        (ICMPV6, 0..=LAST_ERROR) => {
            let quoted = payload.get(ERROR_HEADER..)?;
            let (header, rest) = quoted.split_first_chunk::<{ crate::beet::HEADER_LEN }>()?;
            Belonging::Answer(key_of_sent(peer, header[6], rest)?)
        }
        _ => Belonging::Other,
    })
}

impl Flows {
    fn get(&mut self, key: &Key) -> Option<Known> {
        if let Some(known) = self.young.get(key) {
            return Some(*known);
        }
        let known = *self.old.get(key)?;
        self.put(*key, known);
        Some(known)
    }

    fn put(&mut self, key: Key, known: Known) {
        if self.young.len() >= GENERATION && !self.young.contains_key(&key) {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, known);
    }

    /// Notes a packet of this host's applications, between tags, and the family in which it came.
    pub(crate) fn note_sent(&mut self, inner: &Inner<'_>, family: Family) {
        if let Some(key) = key_of_sent(inner.destination, inner.next, inner.payload) {
            let is_known = |known: Known| known.family == family && known.said_at.is_none();
            if !self.get(&key).is_some_and(is_known) {
                let said_at = None;
                self.put(key, Known { family, said_at });
            }
        }
    }

    /// The family in which this host's applications take a packet of the peer; `ask` is the driver.
    pub(crate) fn family_of(
        &mut self,
        now: Instant,
        inner: &Inner<'_>,
        ask: impl FnOnce(&Key) -> Family,
    ) -> Family {
        let peer = inner.source;
        match belonging(inner).unwrap_or(Belonging::Other) {
            Belonging::Other => Family::V6,
            Belonging::Answer(key) => self.get(&key).map_or(Family::V6, |known| known.family),
            Belonging::Later(id) => {
                let mut all = self.fragmented.iter().rev();
                let first = all.find(|(host, number, _)| (*host, *number) == (peer, id));
                first.map_or(Family::V6, |(_, _, family)| *family)
            }
            Belonging::Conversation(key, begins, id) => {
                let known = self.get(&key).filter(|known| {
                    let is_due = |at: Instant| key.protocol != TCP && now.since(at) > ANSWER_HOLDS;
                    !begins && !known.said_at.is_some_and(is_due)
                });
                let family = known.map_or_else(
                    || {
                        let family = ask(&key);
                        let said_at = Some(now);
                        self.put(key, Known { family, said_at });
                        family
                    },
                    |known| known.family,
                );
                if let Some(id) = id {
                    self.fragmented.push_back((peer, id, family));
                    if self.fragmented.len() > MOST_FRAGMENTED {
                        self.fragmented.pop_front();
                    }
                }
                family
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Hit = Hit([1; 16]);
    const PEER: Hit = Hit([2; 16]);

    fn inner(next: u8, payload: &[u8]) -> Inner<'_> {
        Inner {
            source: PEER,
            destination: OWN,
            next,
            payload,
        }
    }

    fn datagram(number: u16) -> [u8; 8] {
        let [high, low] = number.to_be_bytes();
        [high, low, 0, 53, 0, 8, 0, 0]
    }

    #[test]
    fn the_oldest_conversations_are_forgotten() {
        let mut flows = Flows::default();
        let now = Instant::from_millis(0);
        for number in 0..=u16::MAX {
            flows.family_of(now, &inner(UDP, &datagram(number)), |_| Family::V4);
            // One that is in use stays.
            flows.family_of(now, &inner(UDP, &datagram(7)), |_| Family::V4);
        }
        assert!(flows.young.len() <= GENERATION && flows.old.len() <= GENERATION);
        let known = |flows: &mut Flows, number| {
            let mut is_known = true;
            flows.family_of(now, &inner(UDP, &datagram(number)), |_| {
                is_known = false;
                Family::V4
            });
            is_known
        };
        assert!(known(&mut flows, 7) && known(&mut flows, u16::MAX));
        assert!(!known(&mut flows, 8));
    }

    #[test]
    fn what_is_cut_short_belongs_to_nothing() {
        let mut flows = Flows::default();
        let now = Instant::from_millis(0);
        for next in [TCP, UDP, FRAGMENT, ICMPV6, 0] {
            for length in 0..60 {
                for first in [0, 1, 6, 17, 44, 58, 128, 129] {
                    let payload = [first; 60];
                    flows.family_of(now, &inner(next, &payload[..length]), |_| Family::V4);
                    flows.note_sent(&inner(next, &payload[..length]), Family::V4);
                }
            }
        }
    }
}
