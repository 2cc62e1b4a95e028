//! One end of the link: what goes compressed, what is restored, and how the ends agree.
//!
//! The end that offers asks, for each pair of a near and a far address, whether the other end restores: with an offer
//! from the near to the far address, at the pair's first segment. The end that accepts answers it. A host that
//! knows nothing of the protocol does not, or sends an ICMP error. The answer tells a tag, which every compressed
//! segment shows, in both directions: nothing else is restored. The end that accepts chooses it by its secret and the two
//! addresses, and answers only hosts that it sends segments to, twice a second each at most. It believes that the other end restores once that has shown the tag, with a confirmation or a segment: so
//! whoever writes a false source address, and does not hear the answer, changes nothing.
//!
//! Compressing ends by itself: at an ICMP error about the protocol, and when compressed segments are repeated for
//! three seconds without an acknowledgement of one that went compressed only. Then segments go as they are, and
//! there is an offer again.

use crate::codec::{Codec, RestoreError};
use crate::flow::Flow;
use crate::gain::Gain;
use crate::pair::Pair;
use crate::secret::Secret;
use crate::spoken::Spoken;
use crate::table::Table;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use outlast_base::time::Instant;
use outlast_base::units::BitRate;
use outlast_wire::compressed::{CompressionError, CompressionMessage, PROTOCOL, Tag};
use outlast_wire::{IcmpError, IpHeader, Packet, TcpFlags, TcpHeader, Transport};

/// Shorter payloads go as they are, in bytes: DEFLATE saves less than a message costs.
const SHORTEST: u32 = 64;
/// Offers and answers that wait to be sent, at most.
const WAITING: usize = 64;

/// IPv4, and type and code of the error of a host that does not know a protocol (RFC 792).
const PROTOCOL_UNREACHABLE: (bool, u8, u8) = (true, 3, 2);
/// IPv6, and type and code of such an error (RFC 4443, section 3.4).
const UNRECOGNIZED_NEXT_HEADER: (bool, u8, u8) = (false, 4, 1);

/// Who asks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Part {
    /// This end makes offers: the supervisor host's.
    #[default]
    Offers,
    /// This end answers offers: the mobile's.
    Accepts,
}

/// How hard DEFLATE tries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    /// From 1 (fast) to 9 (small).
    Fixed(u8),
    /// Nothing is compressed, but what comes compressed is restored.
    Never,
}

impl Default for Level {
    /// 3, which the paper has chosen (section 6.3).
    fn default() -> Self {
        Self::Fixed(3)
    }
}

impl Level {
    /// The level for a link of `rate`, which may not be known.
    ///
    /// A slow link pays for more work. Above 100 Mbit/s it would be slower than the link.
    #[must_use]
    pub const fn of_rate(rate: Option<BitRate>) -> Self {
        let Some(rate) = rate else {
            return Self::Fixed(3);
        };
        match rate.bits_per_second() {
            0..=1_000_000 => Self::Fixed(6),
            1_000_001..=10_000_000 => Self::Fixed(3),
            10_000_001..=100_000_000 => Self::Fixed(1),
            _ => Self::Never,
        }
    }

    const fn number(self) -> Option<u8> {
        match self {
            Self::Fixed(level) => Some(level),
            Self::Never => None,
        }
    }
}

/// What an end is made with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Config {
    /// Who asks.
    pub part: Part,
    /// How hard DEFLATE tries.
    pub level: Level,
    /// The link's rate towards the other end, if it is known; see [`Compression::poll_rate`].
    pub rate: Option<BitRate>,
    /// Connections of which something is known, at most; of others nothing is compressed.
    pub flows: usize,
    /// Pairs of addresses of which something is known, at most; of others nothing is compressed.
    pub pairs: usize,
    /// The longest packet that crosses the link, in bytes: no longer one is compressed or restored.
    pub longest: u32,
    /// Key of nonces and tags; a live driver draws it at random, so that only who hears them knows them.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            part: Part::default(),
            level: Level::default(),
            rate: None,
            flows: 65_536,
            pairs: 16_384,
            longest: 1_500,
            seed: 0,
        }
    }
}

/// What becomes of a packet that came from the link.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a packet moves on at once, and nothing is allocated for it"
)]
pub enum Arrival {
    /// It goes on as it is.
    Unchanged,
    /// This goes on in its stead.
    Restored(Packet),
    /// It was for this end, or cannot be restored: nothing goes on.
    Consumed,
}

/// Counts since the end began; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Segments that went compressed.
    pub compressed: u64,
    /// Bytes of these packets before, with headers.
    pub original_bytes: u64,
    /// Bytes of these packets as they went, with headers.
    pub compressed_bytes: u64,
    /// Segments that did not become smaller, and went as they are.
    pub incompressible: u64,
    /// Times that a flow was given up for a while.
    pub given_up: u64,
    /// Segments restored.
    pub restored: u64,
    /// Messages dropped because nothing could be restored from them.
    pub damaged: u64,
    /// Offers made.
    pub offers: u64,
    /// Agreements: answers heard to offers, and far hosts that have shown the tag of an answer.
    pub agreements: u64,
    /// Times that the other end was found not to restore: by an ICMP error, or for want of a proof.
    pub refusals: u64,
    /// Connections or pairs of which nothing is known for want of room.
    pub no_room: u64,
}

type Addresses = (IpAddr, IpAddr);
type Sockets = (SocketAddr, SocketAddr);

/// One end of a link between the ends of which payload is compressed.
///
/// It has no deadlines: everything happens when a packet crosses. After each call the driver drains
/// [`Compression::poll_transmit`].
#[derive(Debug)]
pub struct Compression {
    part: Part,
    level: Level,
    codec: Codec,
    /// By near and far address.
    pairs: Table<Addresses, Pair>,
    /// By near and far socket.
    flows: Table<Sockets, Flow>,
    secret: Secret,
    /// Hosts whose offers the end that accepts answers.
    spoken: Spoken,
    waiting: VecDeque<Packet>,
    message: Vec<u8>,
    gain: Gain,
    counters: Counters,
}

impl Compression {
    /// An end that knows nothing of the other one.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let secret = Secret::new(config.seed);
        Self {
            part: config.part,
            level: config.level,
            codec: Codec::new(config.longest),
            pairs: Table::new(config.pairs),
            flows: Table::new(config.flows),
            spoken: Spoken::new(secret.places()),
            secret,
            waiting: VecDeque::new(),
            message: Vec::new(),
            gain: Gain::new(config.rate),
            counters: Counters::default(),
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sets the link's rate, and how hard DEFLATE tries from now on.
    pub const fn set_rate(&mut self, rate: Option<BitRate>, level: Level) {
        self.gain = Gain::new(rate);
        self.level = level;
    }

    /// Sets the length in bytes of the longest packet that crosses the link.
    pub const fn set_longest(&mut self, longest: u32) {
        self.codec.set_longest(longest);
    }

    /// The rate at which the link carries what is shown to this end, if it has changed by a sixteenth.
    ///
    /// A link that carries half of the bytes in their stead carries twice as many. Never slower than the link is.
    #[must_use]
    pub fn poll_rate(&mut self) -> Option<BitRate> {
        self.gain.poll_rate()
    }

    /// Takes the next offer or answer to send towards the link.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.waiting.pop_front()
    }

    /// Shows a packet that goes towards the link; returns what goes in its stead, if anything does.
    ///
    /// What is returned is smaller than `packet`.
    #[must_use]
    pub fn handle_to_link(&mut self, now: Instant, packet: &Packet) -> Option<Packet> {
        let smaller = self.smaller(now, packet);
        let crosses = smaller.as_ref().unwrap_or(packet);
        self.gain.note(packet.total_len(), crosses.total_len());
        smaller
    }

    fn smaller(&mut self, now: Instant, packet: &Packet) -> Option<Packet> {
        let tcp = packet.tcp()?;
        let ip = packet.header().ip;
        if tcp.has(TcpFlags::RST) || ip.source.is_ipv4() != ip.destination.is_ipv4() {
            return None;
        }
        match self.part {
            Part::Offers => self.offer(now, &ip),
            Part::Accepts => {
                let addresses = (ip.source, ip.destination);
                if let Some(nonce) = self.spoken.note_sent(now, addresses) {
                    self.accept(addresses, nonce);
                }
            }
        }
        let payload_len = packet.header().payload_len;
        if payload_len == 0 {
            return None;
        }
        let pair = self.pairs.find(now, &(ip.source, ip.destination))?;
        let Some(tag) = pair.restores() else {
            self.note_plain(now, &ip, tcp, payload_len);
            return None;
        };
        let sockets = sockets(&ip, tcp);
        let Some(flow) = self.flows.entry(now, sockets) else {
            self.counters.no_room += 1;
            return None;
        };
        let end = tcp.seq + payload_len;
        if flow.note_sent(end) && flow.unproven.is_some() && pair.note_repetition(now) {
            self.counters.refusals += 1;
            flow.note_form(end, false);
            self.offer(now, &ip);
            return None;
        }
        let smaller = self.try_compress(now, sockets, packet, tag);
        if let Some(flow) = self.flows.find(now, &sockets) {
            flow.note_form(end, smaller.is_some());
        }
        smaller
    }

    fn try_compress(
        &mut self,
        now: Instant,
        key: Sockets,
        packet: &Packet,
        tag: Tag,
    ) -> Option<Packet> {
        let level = self.level.number()?;
        let flow = self.flows.find(now, &key)?;
        if packet.header().payload_len < SHORTEST || !flow.may_compress() {
            return None;
        }
        let smaller = match packet.bytes() {
            Some(_) => self.codec.compress(packet, level, tag),
            // The simulator's packets have bytes only where somebody looks at them.
            None => {
                let bytes = Packet::parse(packet.to_bytes()).ok()?;
                self.codec.compress(&bytes, level, tag)
            }
        };
        let length = packet.total_len();
        let saved = smaller
            .as_ref()
            .map_or(0, |smaller| length.saturating_sub(smaller.total_len()));
        self.counters.given_up += u64::from(flow.note_try(length, saved));
        match &smaller {
            Some(smaller) => {
                self.counters.compressed += 1;
                self.counters.original_bytes += u64::from(length);
                self.counters.compressed_bytes += u64::from(smaller.total_len());
            }
            None => self.counters.incompressible += 1,
        }
        smaller
    }

    /// A segment goes as it is: its acknowledgement proves nothing.
    fn note_plain(&mut self, now: Instant, ip: &IpHeader, tcp: &TcpHeader, payload_len: u32) {
        if let Some(flow) = self.flows.find(now, &sockets(ip, tcp)) {
            let end = tcp.seq + payload_len;
            let _ = flow.note_sent(end);
            flow.note_form(end, false);
        }
    }

    /// Makes an offer, if it is time for one.
    fn offer(&mut self, now: Instant, ip: &IpHeader) {
        if self.part != Part::Offers {
            return;
        }
        let Some(pair) = self.pairs.entry(now, (ip.source, ip.destination)) else {
            self.counters.no_room += 1;
            return;
        };
        if !pair.wants_offer(now) || self.waiting.len() >= WAITING {
            return;
        }
        let nonce = self.secret.next_nonce();
        pair.note_offer(now, nonce);
        self.counters.offers += 1;
        let addresses = (ip.source, ip.destination);
        self.send(addresses, CompressionMessage::Offer { nonce });
    }

    fn accept(&mut self, addresses: Addresses, nonce: u64) {
        let tag = self.secret.tag(addresses);
        self.send(addresses, CompressionMessage::Acceptance { nonce, tag });
    }

    fn send(&mut self, (near, far): Addresses, message: CompressionMessage<'_>) {
        if self.waiting.len() >= WAITING {
            return;
        }
        self.message.clear();
        message.write(&mut self.message);
        self.waiting.push_back(Packet::of_protocol(
            IpHeader::new(near, far),
            PROTOCOL,
            &self.message,
        ));
    }

    /// Shows a packet that came from the link.
    #[must_use]
    pub fn handle_from_link(&mut self, now: Instant, packet: &Packet) -> Arrival {
        match &packet.header().transport {
            Transport::Tcp(tcp) => {
                let ip = &packet.header().ip;
                self.hear(now, ip, tcp);
                if packet.header().payload_len >= SHORTEST {
                    self.confirm(now, (ip.destination, ip.source));
                }
                Arrival::Unchanged
            }
            Transport::Other {
                protocol: PROTOCOL,
                fragment: false,
            } => self.handle_message(now, packet),
            Transport::IcmpError(error) if self.is_refusal(now, packet, error) => Arrival::Consumed,
            _ => Arrival::Unchanged,
        }
    }

    /// Looks at the acknowledgement of a segment from the link.
    fn hear(&mut self, now: Instant, ip: &IpHeader, tcp: &TcpHeader) {
        let near = SocketAddr::new(ip.destination, tcp.destination_port);
        let far = SocketAddr::new(ip.source, tcp.source_port);
        if tcp.has(TcpFlags::ACK)
            && let Some(flow) = self.flows.find(now, &(near, far))
            && flow.note_ack(tcp.ack)
            && let Some(pair) = self.pairs.find(now, &(near.ip(), far.ip()))
        {
            pair.note_proof();
        }
    }

    fn handle_message(&mut self, now: Instant, packet: &Packet) -> Arrival {
        let ip = packet.header().ip;
        let addresses = (ip.destination, ip.source);
        let message = match CompressionMessage::parse(packet.payload().unwrap_or_default()) {
            Ok(message) => message,
            // It may be of another experiment.
            Err(CompressionError::Start | CompressionError::Kind(_)) => return Arrival::Unchanged,
            Err(_) => {
                self.counters.damaged += 1;
                return Arrival::Consumed;
            }
        };
        match message {
            CompressionMessage::Offer { nonce } if self.part == Part::Accepts => {
                if self.spoken.note_offer(now, addresses, nonce) {
                    self.accept(addresses, nonce);
                }
            }
            CompressionMessage::Acceptance { nonce, tag } => {
                let pair = self.pairs.find(now, &addresses);
                if pair.is_some_and(|pair| pair.note_acceptance(now, nonce, tag)) {
                    self.counters.agreements += 1;
                    self.confirm(now, addresses);
                }
            }
            CompressionMessage::Confirmation { tag } if self.shows(now, addresses, tag) => {
                self.learn(now, addresses, tag);
            }
            CompressionMessage::Offer { .. } | CompressionMessage::Confirmation { .. } => {}
            // Of another experiment, or of somebody with whom nothing was agreed.
            CompressionMessage::Segment(segment) if !self.shows(now, addresses, segment.tag) => {
                return Arrival::Unchanged;
            }
            CompressionMessage::Segment(segment) => {
                self.learn(now, addresses, segment.tag);
                match self.codec.restore(packet, &segment) {
                    Ok(restored) => {
                        self.counters.restored += 1;
                        if let Some(tcp) = restored.tcp() {
                            self.hear(now, &ip, tcp);
                        }
                        return Arrival::Restored(restored);
                    }
                    Err(
                        RestoreError::Payload
                        | RestoreError::Check
                        | RestoreError::Length
                        | RestoreError::Segment,
                    ) => {
                        self.counters.damaged += 1;
                    }
                }
            }
        }
        Arrival::Consumed
    }

    /// True if `tag` is that of the agreement on two addresses.
    fn shows(&mut self, now: Instant, addresses: Addresses, tag: Tag) -> bool {
        let agreed = self.pairs.find(now, &addresses).and_then(|pair| pair.tag());
        let own = || (self.part == Part::Accepts).then(|| self.secret.tag(addresses));
        agreed.or_else(own) == Some(tag)
    }

    /// The other end restores: it has shown the tag that it was told.
    fn learn(&mut self, now: Instant, addresses: Addresses, tag: Tag) {
        match self.pairs.entry(now, addresses) {
            Some(pair) => {
                pair.note_shown();
                if self.part == Part::Accepts && pair.restores().is_none() {
                    pair.agree(tag);
                    self.counters.agreements += 1;
                }
            }
            None => self.counters.no_room += 1,
        }
    }

    /// Shows the other end that this one has heard the tag, if it does not know that.
    fn confirm(&mut self, now: Instant, addresses: Addresses) {
        let pair = self.pairs.find(now, &addresses);
        if let Some(tag) = pair.and_then(|pair| pair.poll_confirmation(now)) {
            self.send(addresses, CompressionMessage::Confirmation { tag });
        }
    }

    /// True if an ICMP error says that the far host knows nothing of the protocol, and quotes what was sent to it.
    fn is_refusal(&mut self, now: Instant, packet: &Packet, error: &IcmpError) -> bool {
        let Some(quoted) = error.quoted.filter(|quoted| quoted.protocol == PROTOCOL) else {
            return false;
        };
        let is_v4 = packet.header().ip.source.is_ipv4();
        if (is_v4, error.kind, error.code) != PROTOCOL_UNREACHABLE
            && (is_v4, error.kind, error.code) != UNRECOGNIZED_NEXT_HEADER
        {
            return false;
        }
        let far = packet.header().ip.source;
        let Some(pair) = self
            .pairs
            .find(now, &(quoted.source, quoted.destination))
            .filter(|_| quoted.destination == far)
        else {
            return false;
        };
        if !quoted
            .beginning
            .is_some_and(|beginning| pair.is_quoted(beginning))
        {
            return false;
        }
        pair.note_refusal(now);
        self.counters.refusals += 1;
        true
    }
}

fn sockets(ip: &IpHeader, tcp: &TcpHeader) -> Sockets {
    (
        SocketAddr::new(ip.source, tcp.source_port),
        SocketAddr::new(ip.destination, tcp.destination_port),
    )
}
