//! Floods of I2 packets whose puzzle is solved (RFC 7401, sections 4.1.1 and 6.9): what they cost is counted in
//! Diffie-Hellman agreements, and an honest host gets in.

use crate::common::{Network, address, identity};
use chacha20::ChaCha20Rng;
use outlast_base::time::{Duration, Instant};
use outlast_hip::group::{Group, KeyPair};
use outlast_hip::puzzle::{Hosts, Solver};
use outlast_hip::rhash::Rhash;
use outlast_hip::{Admission, Config, Peer, Protocol, Refusal, StateName, Transmit};
use outlast_wire::hip::{
    Builder, DiffieHellman, EspInfo, Hit, Message, PacketType, Puzzle, Solution, kind,
};
use rand_core::{Rng, SeedableRng};
use std::net::IpAddr;

/// I2 packets of the flood in a second.
const FLOOD: u32 = 3_000;

/// Agreements in a second that a flood may cost. In the slowest group (3,072 bits) each takes some 3 ms: 8 % of a
/// processor.
const AGREEMENTS: u64 = 25;

/// Agreements that a flood of easy solutions may cost at once, and one of any solutions.
const AT_ONCE: u64 = 32;
const ALL: u64 = 64;

/// A puzzle that an attacker was posed, under a tag that the victim admits.
struct Posed {
    hosts: Hosts,
    path: (IpAddr, IpAddr),
    difficulty: u8,
    opaque: [u8; 2],
    i: Vec<u8>,
    counter: Vec<u8>,
}

struct Attacker {
    random: ChaCha20Rng,
    value: Vec<u8>,
    address: IpAddr,
}

impl Attacker {
    fn new() -> Self {
        let mut random = ChaCha20Rng::from_seed([66; 32]);
        let value = KeyPair::new(Group::Modp3072, &mut random).public().to_vec();
        Self {
            random,
            value,
            address: address("203.0.113.66"),
        }
    }

    /// Asks for a puzzle with an I1 that offers the slowest group alone, in the name of `initiator`.
    fn ask(&self, network: &mut Network, victim: usize, initiator: Hit) -> Posed {
        let responder = network.hit(victim);
        let mut builder = Builder::new(PacketType::I1, initiator, responder);
        builder.push(kind::DH_GROUP_LIST, &[Group::Modp3072.number()]);
        let path = (self.address, network.nodes[victim].addresses[0]);
        let before = network.sent.len();
        network.deliver(&packet(path, builder.finish().expect("an I1")));
        let sent = network.sent[before..].iter();
        let mut answers = sent.filter(|(_, _, sent)| sent.destination == self.address);
        let (_, _, r1) = answers.next().expect("an R1");
        let message = Message::parse(&r1.payload).expect("a host sends HIP");
        let found = |kind| message.find(kind).expect("an R1 has one").contents;
        let puzzle = Puzzle::parse(found(kind::PUZZLE)).expect("a puzzle");
        Posed {
            hosts: Hosts {
                initiator,
                responder,
            },
            path,
            difficulty: puzzle.difficulty,
            opaque: puzzle.opaque,
            i: puzzle.i.to_vec(),
            counter: found(kind::R1_COUNTER).to_vec(),
        }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    /// Solves a puzzle anew.
    fn solve(&mut self, posed: &Posed) -> Vec<u8> {
        let start = self.bytes(posed.i.len());
        let (rhash, i) = (Rhash::Sha384, posed.i.clone());
        let mut solver = Solver::new(rhash, posed.difficulty, i, posed.hosts, start);
        solver.solve(u32::MAX).expect("a solution")
    }

    /// An I2 that is right up to its MAC, which is random.
    fn i2(&mut self, posed: &Posed, solution: &[u8]) -> Transmit {
        let Hosts {
            initiator,
            responder,
        } = posed.hosts;
        let mut builder = Builder::new(PacketType::I2, initiator, responder);
        let info = EspInfo {
            keymat_index: 128,
            old_spi: 0,
            new_spi: 0x1234_5678,
        };
        builder.push_with(kind::ESP_INFO, |out| info.write(out));
        builder.push(kind::R1_COUNTER, &posed.counter);
        let solved = Solution {
            difficulty: posed.difficulty,
            opaque: posed.opaque,
            i: &posed.i,
            j: solution,
        };
        builder.push_with(kind::SOLUTION, |out| solved.write(out));
        let value = DiffieHellman {
            group: Group::Modp3072.number(),
            value: &self.value,
        };
        builder.push_with(kind::DIFFIE_HELLMAN, |out| value.write(out));
        builder.push(kind::HIP_CIPHER, &[0, 2]);
        builder.push(kind::ENCRYPTED, &[0; 4 + 16 + 128]);
        builder.push(
            kind::TRANSPORT_FORMAT_LIST,
            &kind::ESP_TRANSFORM.to_be_bytes(),
        );
        builder.push(kind::ESP_TRANSFORM, &[0, 0, 0, 13]);
        builder.push(kind::HIP_MAC, &self.bytes(48));
        builder.push(kind::HIP_SIGNATURE, &self.bytes(98));
        packet(posed.path, builder.finish().expect("an I2"))
    }
}

fn packet((source, destination): (IpAddr, IpAddr), mut payload: Vec<u8>) -> Transmit {
    Builder::set_checksum(&mut payload, source, destination);
    Transmit {
        source,
        destination,
        protocol: Protocol::Hip,
        payload,
    }
}

/// The victim, node 1, and an honest host that it knows, node 0; the attacker uses the tag of a third one.
fn besieged(admission: Admission) -> (Network, Hit) {
    let config = Config {
        admission,
        ..Config::default()
    };
    let configs = [Config::default(), config];
    let mut network = Network::pair_of(11, [identity(1), identity(2)], configs);
    network.delay = Duration::from_millis(20);
    let third = identity(3).hit();
    let known = [network.hit(0), third].map(|hit| (hit, Peer::default()));
    network.nodes[1].host.set_peers(known);
    (network, third)
}

fn agreements(network: &Network) -> u64 {
    network.nodes[1].host.counters().agreements
}

/// Floods the victim for so long with what `next` makes.
fn flood(network: &mut Network, length: Duration, mut next: impl FnMut(&mut Network) -> Transmit) {
    let end = network.now + length;
    while network.now < end {
        let forged = next(network);
        network.deliver(&forged);
        network.run(Duration::from_secs(1) / FLOOD);
    }
}

fn has_associated(network: &Network) -> bool {
    let states = [network.state(0, 1), network.state(1, 0)];
    let is_up = |state| matches!(state, Some(StateName::Established | StateName::R2Sent));
    states.into_iter().all(is_up)
}

/// Floods the victim for three seconds; the honest host comes after one, and has one.
fn assert_withstood(
    network: &mut Network,
    agreements_at_most: u64,
    mut next: impl FnMut(&mut Network) -> Transmit,
) {
    let second = Duration::from_secs(1);
    flood(network, second, &mut next);
    assert!(!has_associated(network));
    network.connect(0, 1);
    flood(network, second, &mut next);
    assert!(has_associated(network), "an honest host waits");
    flood(network, second, &mut next);
    let cost = agreements(network);
    assert!(cost >= 1, "the honest one");
    assert!(cost <= agreements_at_most + 1, "{cost} agreements");
    network.assert_data_flows(0, 1);
}

#[test]
fn one_solution_with_random_macs_costs_two_agreements() {
    let (mut network, third) = besieged(Admission::Peers);
    let mut attacker = Attacker::new();
    let posed = attacker.ask(&mut network, 1, third);
    assert_eq!(posed.difficulty, 0);
    let solution = attacker.solve(&posed);
    assert_withstood(&mut network, 2, |_| attacker.i2(&posed, &solution));
}

#[test]
fn new_solutions_of_an_easy_puzzle_cost_no_more_than_their_share() {
    let (mut network, third) = besieged(Admission::Anyone);
    let mut attacker = Attacker::new();
    let posed = attacker.ask(&mut network, 1, third);
    assert_withstood(&mut network, AT_ONCE + 3 * AGREEMENTS, |_| {
        let solution = attacker.bytes(48);
        attacker.i2(&posed, &solution)
    });
}

/// The puzzles of an attacker who solves what he is posed get as hard as those of anybody.
#[test]
fn a_solver_pays_for_each_agreement() {
    let (mut network, third) = besieged(Admission::Peers);
    let mut attacker = Attacker::new();
    let mut posed = attacker.ask(&mut network, 1, third);
    let (mut hashes, mut last) = (0_u64, Instant::ZERO);
    // He makes 100,000 hashes in a second.
    let budget = |now: Instant| 100 * now.since(Instant::from_millis(1_000)).as_millis() as u64;
    let mut spare = attacker.i2(&posed, &[0; 48]);
    assert_withstood(&mut network, ALL + 3 * AGREEMENTS, |network| {
        if network.now.since(last) > Duration::from_millis(200) {
            last = network.now;
            posed = attacker.ask(network, 1, third);
        }
        let cost = 1_u64 << posed.difficulty;
        if hashes + cost <= budget(network.now) {
            hashes += cost;
            let solution = attacker.solve(&posed);
            spare = attacker.i2(&posed, &solution);
        }
        spare.clone()
    });
}

/// Strangers cost no agreement, whatever they have solved.
#[test]
fn a_stranger_costs_no_agreement() {
    let (mut network, third) = besieged(Admission::Peers);
    let mut attacker = Attacker::new();
    let posed = attacker.ask(&mut network, 1, third);
    let honest = network.hit(0);
    network.nodes[1].host.set_peers([(honest, Peer::default())]);
    assert_withstood(&mut network, 0, |_| {
        let solution = attacker.bytes(48);
        attacker.i2(&posed, &solution)
    });
    assert!(network.nodes[1].host.counters().refused(Refusal::Policy) > u64::from(FLOOD));
}

/// An R1 that is older than the flood has a puzzle that is too easy by now: the I2 is answered with a harder one
/// (section 6.8).
#[test]
fn a_puzzle_that_has_become_too_easy_is_replaced() {
    let (mut network, third) = besieged(Admission::Peers);
    let mut attacker = Attacker::new();
    let posed = attacker.ask(&mut network, 1, third);
    network.connect(0, 1);
    // The honest host has the I1 answered, and the attacker is quicker than the I2.
    network.run(Duration::from_millis(41));
    for _ in 0..60 {
        let solution = attacker.bytes(48);
        let forged = attacker.i2(&posed, &solution);
        network.deliver(&forged);
    }
    assert!(agreements(&network) <= AT_ONCE);
    let began = network.now;
    while !has_associated(&network) {
        let solution = attacker.bytes(48);
        flood(&mut network, Duration::from_millis(10), |_| {
            attacker.i2(&posed, &solution)
        });
        assert!(network.now - began < Duration::from_secs(1), "it waits");
    }
    let r1 = network.sent.iter().filter(|(_, node, sent)| {
        let message = Message::parse(&sent.payload).expect("a host sends HIP");
        *node == 1 && message.kind() == PacketType::R1 && message.receiver() == network.hit(0)
    });
    assert_eq!(r1.count(), 2);
}

/// A hundred exchanges in a second: what they pay they get back, and puzzles are no harder than the load makes them.
#[test]
fn honest_hosts_are_not_rationed() {
    let (mut network, third) = besieged(Admission::Peers);
    network.delay = Duration::from_millis(1);
    for round in 0..100_u32 {
        network.connect(0, 1);
        network.run(Duration::from_millis(6));
        assert!(has_associated(&network), "round {round}");
        let (now, hit) = (network.now, network.hit(1));
        network.nodes[0].host.close(now, hit);
        network.drain(0);
        network.run(Duration::from_millis(4));
    }
    assert_eq!(agreements(&network), 100);
    let posed = Attacker::new().ask(&mut network, 1, third);
    assert!(posed.difficulty <= 11, "{} bits", posed.difficulty);
}
