//! Costs of a forged I2 to a Responder. The baseline is the Diffie-Hellman agreement that each would cost if
//! nothing cheaper were checked before.

use chacha20::ChaCha20Rng;
use divan::Bencher;
use outlast_base::time::Instant;
use outlast_hip::group::{Group, KeyPair};
use outlast_hip::identity::{Algorithm, Identity};
use outlast_hip::{Config, Host, Peer, Protocol};
use outlast_wire::hip::{
    Builder, DiffieHellman, EspInfo, Hit, Message, PacketType, Puzzle, Solution, kind,
};
use rand_core::SeedableRng;
use std::net::{IpAddr, Ipv4Addr};

/// The time does not pass: no token comes back.
const NOW: Instant = Instant::from_millis(1_000);

const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 66));

fn main() {
    divan::main();
}

fn identity(seed: u8) -> Identity {
    let mut random = ChaCha20Rng::from_seed([seed; 32]);
    Identity::generate(Algorithm::EcdsaP256, &mut random).expect("a key")
}

#[divan::bench(args = Group::ALL)]
fn agreement(bencher: Bencher<'_, '_>, group: Group) {
    let mut random = ChaCha20Rng::from_seed([1; 32]);
    let [own, peer] = [0, 1].map(|_| KeyPair::new(group, &mut random));
    bencher.bench_local(|| own.agree(peer.public()).expect("a public value"));
}

/// A Responder, and the attacker's tag.
fn responder() -> (Host, Hit) {
    let mut host = Host::new(NOW, Config::default(), identity(1), [1; 32]);
    host.handle_addresses(NOW, &[VICTIM]);
    let claimed = identity(2).hit();
    host.set_peers([(claimed, Peer::default())]);
    (host, claimed)
}

fn hand(host: &mut Host, packet: &[u8]) {
    host.handle_packet(NOW, (ATTACKER, VICTIM), Protocol::Hip, packet);
}

fn finish(builder: Builder) -> Vec<u8> {
    let mut packet = builder.finish().expect("it is short");
    Builder::set_checksum(&mut packet, ATTACKER, VICTIM);
    packet
}

/// Number, opaque and counter of the puzzle without bits that the host poses.
fn ask(host: &mut Host, claimed: Hit) -> (Vec<u8>, [u8; 2], Vec<u8>) {
    let mut builder = Builder::new(PacketType::I1, claimed, host.hit());
    builder.push(kind::DH_GROUP_LIST, &[Group::Modp3072.number()]);
    hand(host, &finish(builder));
    let r1 = host.poll_transmit().expect("an R1");
    let message = Message::parse(&r1.payload).expect("an R1");
    let found = |kind| message.find(kind).expect("an R1 has one").contents;
    let puzzle = Puzzle::parse(found(kind::PUZZLE)).expect("a puzzle");
    assert_eq!(puzzle.difficulty, 0);
    let counter = found(kind::R1_COUNTER).to_vec();
    (puzzle.i.to_vec(), puzzle.opaque, counter)
}

/// An I2 with this solution that is right up to its MAC.
fn i2(
    host: &Host,
    claimed: Hit,
    value: &[u8],
    (i, opaque, counter): &(Vec<u8>, [u8; 2], Vec<u8>),
    j: u8,
) -> Vec<u8> {
    let mut builder = Builder::new(PacketType::I2, claimed, host.hit());
    let info = EspInfo {
        keymat_index: 128,
        old_spi: 0,
        new_spi: 0x1234_5678,
    };
    builder.push_with(kind::ESP_INFO, |out| info.write(out));
    builder.push(kind::R1_COUNTER, counter);
    let solution = Solution {
        difficulty: 0,
        opaque: *opaque,
        i,
        j: &vec![j; i.len()],
    };
    builder.push_with(kind::SOLUTION, |out| solution.write(out));
    let group = Group::Modp3072.number();
    let value = DiffieHellman { group, value };
    builder.push_with(kind::DIFFIE_HELLMAN, |out| value.write(out));
    builder.push(kind::HIP_CIPHER, &[0, 2]);
    builder.push(kind::ENCRYPTED, &[0; 148]);
    builder.push(
        kind::TRANSPORT_FORMAT_LIST,
        &kind::ESP_TRANSFORM.to_be_bytes(),
    );
    builder.push(kind::ESP_TRANSFORM, &[0, 0, 0, 13]);
    builder.push(kind::HIP_MAC, &[j; 48]);
    builder.push(kind::HIP_SIGNATURE, &[j; 98]);
    finish(builder)
}

/// A fault of an I2 that is found before an agreement.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The number of the puzzle is none of the host's.
    Number,
    /// The solution has failed before.
    Failed,
    /// The puzzle is too easy by now.
    TooEasy,
}

#[divan::bench(args = [Fault::Number, Fault::Failed, Fault::TooEasy])]
fn forged(bencher: Bencher<'_, '_>, fault: Fault) {
    let (mut host, claimed) = responder();
    let mut random = ChaCha20Rng::from_seed([3; 32]);
    let value = KeyPair::new(Group::Modp3072, &mut random);
    let mut posed = ask(&mut host, claimed);
    if let Fault::Number = fault {
        posed.0[0] ^= 1;
    }
    let solutions = match fault {
        Fault::Number => 0..0,
        Fault::Failed => 0..1,
        Fault::TooEasy => 0..64,
    };
    for j in solutions {
        let forged = i2(&host, claimed, value.public(), &posed, j);
        (0..2).for_each(|_| hand(&mut host, &forged));
    }
    let j = match fault {
        Fault::Failed => 0,
        Fault::Number | Fault::TooEasy => 255,
    };
    let forged = i2(&host, claimed, value.public(), &posed, j);
    let before = host.counters().agreements;
    while host.poll_transmit().is_some() {}
    bencher.bench_local(|| hand(&mut host, &forged));
    assert_eq!(host.counters().agreements, before, "{fault:?}");
}
