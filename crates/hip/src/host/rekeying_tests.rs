//! What a peer with the right keys and wrong intentions can do with offers of new keys.

use super::Host;
use crate::addresses::AddressState;
use crate::config::{Config, Peer, Rekeying};
use crate::event::{Protocol, Refusal, Transmit};
use crate::group::{Group, KeyPair};
use crate::identity::{Algorithm, Identity};
use alloc::vec::Vec;
use chacha20::ChaCha20Rng;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::{
    Builder, DiffieHellman, EspInfo, Locator, LocatorSet, Message, PacketType, Traffic, kind,
};
use rand_core::SeedableRng;

pub(super) fn address(host: usize) -> IpAddr {
    [192, 0, 2, host as u8 + 1].into()
}

pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) hosts: [Host; 2],
    next_id: u32,
}

impl Pair {
    /// Two hosts with an association.
    pub(super) fn new() -> Self {
        Self::of(true)
    }

    /// Two hosts with an association that offer a new secret each time, or only when the material has run out.
    fn of(has_new_secret: bool) -> Self {
        let config = Config {
            rekeying: Rekeying {
                has_new_secret,
                ..Rekeying::default()
            },
            ..Config::default()
        };
        let now = Instant::from_millis(1_000);
        let host = |at: usize| {
            let mut random = ChaCha20Rng::from_seed([at as u8 + 1; 32]);
            let identity = Identity::generate(Algorithm::EcdsaP256, &mut random).expect("a key");
            let mut host = Host::new(now, config.clone(), identity, [at as u8; 32]);
            host.handle_addresses(now, &[address(at)]);
            host
        };
        let mut pair = Self {
            now,
            hosts: [host(0), host(1)],
            next_id: 100,
        };
        for at in 0..2 {
            let peer = Peer {
                addresses: alloc::vec![address(1 - at)],
                ..Peer::default()
            };
            let hit = pair.hosts[1 - at].hit();
            pair.hosts[at].set_peers([(hit, peer)]);
        }
        let hit = pair.hosts[1].hit();
        pair.hosts[0].connect(now, hit);
        for _ in 0..20 {
            pair.pass();
        }
        assert!(pair.spis(0) == pair.spis(1).map(|(inbound, outbound)| (outbound, inbound)));
        pair
    }

    fn spis(&self, host: usize) -> Option<(u32, u32)> {
        self.hosts[host].views().next().and_then(|view| view.spis)
    }

    /// Delivers what both hosts have sent, and what is due.
    pub(super) fn pass(&mut self) {
        for at in 0..2 {
            self.hosts[at].handle_timeout(self.now);
            while let Some(packet) = self.hosts[at].poll_transmit() {
                self.deliver(1 - at, &packet);
            }
        }
        self.now += Duration::from_millis(1);
    }

    pub(super) fn deliver(&mut self, to: usize, packet: &Transmit) {
        let path = (packet.source, packet.destination);
        self.hosts[to].handle_packet(self.now, path, packet.protocol, &packet.payload);
    }

    /// An authentic offer of the second host, with this index, SPI and Diffie-Hellman value.
    fn offer(&mut self, index: u16, new_spi: u32, value: Option<(u8, &[u8])>) -> Transmit {
        self.offer_after(None, (index, new_spi), value)
    }

    /// One that acknowledges an answer to the offer of the SPI before, if there was one.
    fn offer_after(
        &mut self,
        before: Option<(u32, &[u8])>,
        keys: (u16, u32),
        value: Option<(u8, &[u8])>,
    ) -> Transmit {
        self.offer_from(None, before, keys, value)
    }

    /// One that names another address of the second host, too.
    fn offer_from(
        &mut self,
        elsewhere: Option<IpAddr>,
        before: Option<(u32, &[u8])>,
        (index, new_spi): (u16, u32),
        value: Option<(u8, &[u8])>,
    ) -> Transmit {
        let peer = self.hosts[0].hit();
        let own = self.hosts[1].hit();
        self.next_id += 1;
        let id = self.next_id;
        let (association, mut context) =
            self.hosts[1].lend(self.now, peer).expect("an association");
        let session = association.session().expect("a session");
        let mut builder = Builder::new(PacketType::Update, own, peer);
        let info = EspInfo {
            keymat_index: index,
            old_spi: before.map_or(session.inbound.spi, |(spi, _)| spi),
            new_spi,
        };
        builder.push_with(kind::ESP_INFO, |out| info.write(out));
        if let Some(address) = elsewhere {
            let locator = Locator {
                traffic: Traffic::Both,
                is_preferred: true,
                lifetime: u32::MAX,
                spi: Some(new_spi),
                address,
            };
            let set = LocatorSet(alloc::vec![locator]);
            builder.push_with(kind::LOCATOR_SET, |out| set.write(out));
        }
        builder.push(kind::SEQ, &id.to_be_bytes());
        if let Some((_, answer)) = before {
            builder.push(kind::ACK, answer);
        }
        if let Some((group, value)) = value {
            let value = DiffieHellman { group, value };
            builder.push_with(kind::DIFFIE_HELLMAN, |out| value.write(out));
        }
        let (rhash, keys) = (session.keying.rhash, &session.keying.keys.own);
        let mut payload = context
            .authenticate(builder, rhash, keys)
            .expect("a packet");
        Builder::set_checksum(&mut payload, address(1), address(0));
        Transmit {
            source: address(1),
            destination: address(0),
            protocol: Protocol::Hip,
            payload,
        }
    }

    /// An authentic answer of the second host to the test with this number.
    fn echo(&mut self, id: &[u8], nonce: &[u8]) -> Transmit {
        let peer = self.hosts[0].hit();
        let own = self.hosts[1].hit();
        let (association, mut context) = self.hosts[1].lend(self.now, peer).expect("one");
        let session = association.session().expect("a session");
        let mut builder = Builder::new(PacketType::Update, own, peer);
        builder.push(kind::ACK, id);
        builder.push(kind::ECHO_RESPONSE_SIGNED, nonce);
        let (rhash, keys) = (session.keying.rhash, &session.keying.keys.own);
        let packet = context.authenticate(builder, rhash, keys);
        let mut payload = packet.expect("a packet");
        Builder::set_checksum(&mut payload, address(1), address(0));
        Transmit {
            source: address(1),
            destination: address(0),
            protocol: Protocol::Hip,
            payload,
        }
    }

    /// The first host begins to rekey; gives its offer.
    fn rekey(&mut self) -> Transmit {
        let peer = self.hosts[1].hit();
        let (association, mut context) = self.hosts[0].lend(self.now, peer).expect("one");
        association
            .session()
            .expect("a session")
            .rekey(&mut context);
        self.hosts[0].poll_transmit().expect("an offer")
    }

    /// Whether a host could agree on its present secret once more.
    fn has_pair(&mut self, host: usize) -> bool {
        let peer = self.hosts[1 - host].hit();
        let (association, _) = self.hosts[host].lend(self.now, peer).expect("one");
        let session = association.session().expect("a session");
        session.keying.agreed.own.is_some()
    }

    fn refused(&self) -> u64 {
        self.hosts[0].counters().refused(Refusal::Choice)
    }

    /// A packet of the first host reaches the second one.
    fn assert_data_flows(&mut self) {
        let hits = [self.hosts[0].hit(), self.hosts[1].hit()];
        let mut packet = alloc::vec![0x60, 0, 0, 0, 0, 4, 17, 64];
        packet.extend(hits.iter().flat_map(|hit| hit.0));
        packet.extend_from_slice(b"data");
        let now = self.now;
        self.hosts[0].handle_data(now, &packet);
        self.pass();
        assert_eq!(self.hosts[1].poll_delivery(), Some(packet));
    }
}

fn fresh(group: Group, seed: u8) -> Vec<u8> {
    let mut random = ChaCha20Rng::from_seed([seed; 32]);
    KeyPair::new(group, &mut random).public().to_vec()
}

/// An index, an SPI, and a group with a value.
type Offered<'a> = (u16, u32, Option<(u8, &'a [u8])>);

#[test]
fn wrong_values_groups_and_indices_are_refused_and_the_old_keys_stay() {
    let mut pair = Pair::new();
    let before = pair.spis(0);
    let right = fresh(Group::P256, 9);
    let mut off_curve = right.clone();
    off_curve[63] ^= 1;
    let other = fresh(Group::P384, 9);
    let zeros = [0; 64];
    let ones = [0xff; 64];
    let wrong: [Offered<'_>; 9] = [
        (0, 1_000, Some((7, &off_curve))),
        (0, 1_000, Some((7, &zeros))),
        (0, 1_000, Some((7, &ones))),
        (0, 1_000, Some((7, &right[..63]))),
        (0, 1_000, Some((7, &[]))),
        // Another group, and one that nobody knows.
        (0, 1_000, Some((8, &other))),
        (0, 1_000, Some((200, &right))),
        // With a new secret the index is zero; without one it is not.
        (168, 1_000, Some((7, &right))),
        (0, 1_000, None),
    ];
    for (number, (index, spi, value)) in wrong.into_iter().enumerate() {
        let packet = pair.offer(index, spi, value);
        let refused = pair.refused();
        pair.deliver(0, &packet);
        assert_eq!(pair.refused(), refused + 1, "offer {number}");
        assert_eq!(pair.spis(0), before, "offer {number}");
        let answer = pair.hosts[0].poll_transmit();
        assert!(answer.is_none(), "offer {number} was answered");
    }
    pair.assert_data_flows();
    let packet = pair.offer(0, 1_000, Some((7, &right)));
    pair.deliver(0, &packet);
    assert_ne!(pair.spis(0), before, "a right one counts");
}

#[test]
fn of_a_flood_of_offers_one_is_computed_until_it_is_used() {
    let mut pair = Pair::new();
    let value = fresh(Group::P256, 9);
    let packets: Vec<_> = (0..20)
        .map(|number| pair.offer(0, 1_000 + number, Some((7, &value))))
        .collect();
    for packet in &packets {
        pair.deliver(0, packet);
    }
    assert_eq!(pair.refused(), 19);
    let mut answers = 0;
    while pair.hosts[0].poll_transmit().is_some() {
        answers += 1;
    }
    assert_eq!(answers, 1);
}

/// The peer need not compute anything to acknowledge each answer inside its next offer.
#[test]
fn of_a_flood_of_acknowledged_offers_one_in_ten_seconds_is_computed() {
    let mut pair = Pair::new();
    let value = fresh(Group::P256, 9);
    let mut before: Option<(u32, Vec<u8>)> = None;
    let mut answers = 0;
    // Two hundred offers in 40 s.
    for number in 0..200_u32 {
        let spi = 1_000 + number;
        let told = before.as_ref().map(|(spi, id)| (*spi, id.as_slice()));
        let packet = pair.offer_after(told, (0, spi), Some((7, &value)));
        pair.deliver(0, &packet);
        while let Some(sent) = pair.hosts[0].poll_transmit() {
            let message = Message::parse(&sent.payload).expect("HIP");
            if let (Some(_), Some(id)) = (message.find(kind::ACK), message.find(kind::SEQ)) {
                before = Some((spi, id.contents.to_vec()));
                answers += 1;
            }
        }
        pair.now += Duration::from_millis(200);
    }
    assert_eq!(answers, 4);
    let refused = pair.hosts[0].counters().refused(Refusal::Limit);
    assert_eq!(refused, 196, "for now");
}

/// Where the peer is does not wait until its next keys may be computed.
#[test]
fn new_addresses_count_though_the_new_keys_beside_them_come_too_soon() {
    let mut pair = Pair::new();
    let value = fresh(Group::P256, 9);
    let packet = pair.offer(0, 1_000, Some((7, &value)));
    pair.deliver(0, &packet);
    let answer = pair.hosts[0].poll_transmit().expect("an answer");
    let message = Message::parse(&answer.payload).expect("HIP");
    let id = message.find(kind::SEQ).expect("SEQ").contents.to_vec();
    let elsewhere = IpAddr::from([192, 0, 2, 77]);
    let before = Some((1_000, id.as_slice()));
    let packet = pair.offer_from(Some(elsewhere), before, (0, 2_000), Some((7, &value)));
    pair.now += Duration::from_secs(1);
    pair.deliver(0, &packet);
    let keys = pair.spis(0);
    let test = pair.hosts[0].poll_transmit().expect("a test");
    assert_eq!(test.destination, elsewhere);
    let message = Message::parse(&test.payload).expect("HIP");
    let nonce = message.find(kind::ECHO_REQUEST_SIGNED);
    let nonce = nonce.expect("a nonce").contents.to_vec();
    let test_id = message.find(kind::SEQ).expect("SEQ").contents.to_vec();
    let acknowledged = message.find(kind::ACK).expect("ACK").contents;
    assert_eq!(acknowledged, 101_u32.to_be_bytes(), "the former offer only");
    assert_eq!(pair.hosts[0].counters().refused(Refusal::Limit), 1);
    let echo = pair.echo(&test_id, &nonce);
    pair.deliver(0, &echo);
    let addresses = |pair: &Pair| pair.hosts[0].views().next().expect("one").addresses;
    let active = (elsewhere, AddressState::Active);
    let first = addresses(&pair)[0];
    assert_eq!((first.address, first.state), active);
    // The peer repeats it, and nothing more comes of it until the keys are old enough.
    for seconds in [2, 10] {
        pair.now += Duration::from_secs(seconds);
        pair.deliver(0, &packet);
        assert_eq!(pair.spis(0) != keys, seconds == 10, "after {seconds} s");
        let view = pair.hosts[0].views().next().expect("one");
        assert_eq!(view.readdressings, 1);
    }
}

#[test]
fn a_new_secret_is_offered_when_the_material_has_run_out() {
    for (index, is_expected) in [(1_000, false), (12_200, true)] {
        let mut pair = Pair::of(false);
        let peer = pair.hosts[1].hit();
        for (host, peer) in [(0, peer), (1, pair.hosts[0].hit())] {
            let (association, _) = pair.hosts[host].lend(pair.now, peer).expect("one");
            let session = association.session().expect("a session");
            session.keying.esp_index = index;
        }
        let sent = pair.rekey();
        let message = Message::parse(&sent.payload).expect("HIP");
        let value = message.find(kind::DIFFIE_HELLMAN);
        assert_eq!(value.is_some(), is_expected, "index {index}");
        pair.deliver(1, &sent);
        pair.pass();
        pair.pass();
        pair.assert_data_flows();
        assert!(pair.hosts[0].views().all(|view| view.rekeyings == 1));
    }
}

#[test]
fn no_key_pair_outlives_its_secret_unless_it_is_for_use_again() {
    for has_new_secret in [true, false] {
        let mut pair = Pair::of(has_new_secret);
        assert_eq!([0, 1].map(|host| pair.has_pair(host)), [!has_new_secret; 2]);
        let packet = pair.rekey();
        pair.deliver(1, &packet);
        for _ in 0..3 {
            pair.pass();
        }
        assert!(pair.hosts[0].views().all(|view| view.rekeyings == 1));
        assert_eq!([0, 1].map(|host| pair.has_pair(host)), [!has_new_secret; 2]);
    }
}

/// With both values as they are the secret would be the same, and so would be its first keys.
#[test]
fn a_value_that_is_no_new_one_is_refused_where_this_host_offers_none() {
    let mut pair = Pair::of(false);
    let peer = pair.hosts[1].hit();
    let (association, _) = pair.hosts[0].lend(pair.now, peer).expect("one");
    let session = association.session().expect("a session");
    let present = session.keying.agreed.peer.clone();
    drop(pair.rekey());
    let before = pair.spis(0);
    let packet = pair.offer(0, 1_000, Some((7, &present)));
    pair.deliver(0, &packet);
    assert_eq!((pair.refused(), pair.spis(0)), (1, before));
    let packet = pair.offer(0, 1_001, Some((7, &fresh(Group::P256, 9))));
    pair.deliver(0, &packet);
    assert_eq!(pair.refused(), 1);
    assert_ne!(pair.spis(0), before, "a new one counts");
}
