//! What local-scope addresses cost for each packet. The baseline is the same packet between tags.
//!
//! One packet goes from an application through both hosts to the other application: it is sealed, opened and, where
//! applications use IPv4, translated twice.

use chacha20::ChaCha20Rng;
use divan::Bencher;
use divan::counter::ItemsCount;
use outlast_base::time::Instant;
use outlast_hip::identity::{Algorithm, Identity};
use outlast_hip::{Config, Family, Host, LocalScope, Peer};
use outlast_wire::hip::Hit;
use outlast_wire::translation::{DualAddress, to_v4};
use rand_core::SeedableRng;
use std::net::{IpAddr, Ipv4Addr};

/// Bytes of payload: of a datagram of a game or of speech, and as many as fit.
const PAYLOADS: [usize; 2] = [64, 1_340];

const NOW: Instant = Instant::from_millis(1_000);

fn main() {
    divan::main();
}

fn address(host: usize) -> IpAddr {
    [192, 0, 2, host as u8 + 1].into()
}

/// The local-scope address of a host at the other one.
fn lsi(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 0, host as u8 + 2)
}

fn scope() -> LocalScope {
    LocalScope {
        own: Ipv4Addr::new(198, 18, 0, 1),
        prefix_length: 29,
        mtu: 1_440,
    }
}

/// Two hosts with an association.
fn pair() -> [Host; 2] {
    let host = |at: usize| {
        let mut random = ChaCha20Rng::from_seed([at as u8 + 1; 32]);
        let identity = Identity::generate(Algorithm::EcdsaP256, &mut random).expect("a key");
        let config = Config {
            local_scope: Some(scope()),
            ..Config::default()
        };
        let mut host = Host::new(NOW, config, identity, [at as u8; 32]);
        host.handle_addresses(NOW, &[address(at)]);
        host
    };
    let mut hosts = [host(0), host(1)];
    let hits = [hosts[0].hit(), hosts[1].hit()];
    for at in 0..2 {
        let peer = Peer {
            addresses: vec![address(1 - at)],
            lsi: Some(lsi(1 - at)),
            ..Peer::default()
        };
        hosts[at].set_peers([(hits[1 - at], peer)]);
    }
    hosts[0].connect(NOW, hits[1]);
    for _ in 0..20 {
        for at in 0..2 {
            hosts[at].handle_timeout(NOW);
            pass(&mut hosts, at);
        }
    }
    hosts
}

/// Hands the other host what one has sent.
fn pass(hosts: &mut [Host; 2], from: usize) {
    while let Some(packet) = hosts[from].poll_transmit() {
        let path = (packet.source, packet.destination);
        hosts[1 - from].handle_packet(NOW, path, packet.protocol, &packet.payload);
    }
}

/// A datagram from the first host's application to the second one's, between tags.
fn datagram(hits: [Hit; 2], payload: usize) -> Vec<u8> {
    let length = (payload + 8) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(&[17, 64]);
    packet.extend(hits.iter().flat_map(|hit| hit.0));
    packet.extend_from_slice(&[0x13, 0x88, 0x13, 0x89]);
    packet.extend_from_slice(&length.to_be_bytes());
    // Nobody checks a checksum here; zero has no form in IPv6.
    packet.extend_from_slice(&[0x12, 0x34]);
    packet.resize(48 + payload, 0x5a);
    packet
}

fn run(bencher: Bencher<'_, '_>, payload: usize, family: Family) {
    let mut hosts = pair();
    let hits = [hosts[0].hit(), hosts[1].hit()];
    let between_tags = datagram(hits, payload);
    let own = DualAddress {
        v4: scope().own,
        v6: hits[0].address(),
    };
    let peer = DualAddress {
        v4: lsi(1),
        v6: hits[1].address(),
    };
    let packet = match family {
        Family::V6 => between_tags,
        Family::V4 => to_v4(&between_tags, [own, peer]).expect("a datagram has a form"),
    };
    bencher.counter(ItemsCount::new(1_u64)).bench_local(|| {
        hosts[0].handle_data(NOW, &packet);
        pass(&mut hosts, 0);
        let delivered = hosts[1].poll_delivery_for(NOW, |_| family);
        let delivered = delivered.expect("the packet arrives");
        assert_eq!(delivered.len(), packet.len(), "in the form of its family");
        delivered
    });
}

#[divan::bench(args = PAYLOADS)]
fn between_tags(bencher: Bencher<'_, '_>, payload: usize) {
    run(bencher, payload, Family::V6);
}

#[divan::bench(args = PAYLOADS)]
fn between_local_scope_addresses(bencher: Bencher<'_, '_>, payload: usize) {
    run(bencher, payload, Family::V4);
}
