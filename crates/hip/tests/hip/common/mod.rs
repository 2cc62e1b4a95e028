//! Hosts that speak HIP over a network in virtual time.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]

use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_hip::identity::{Algorithm, Identity};
use outlast_hip::{Admission, Config, Event, Family, Host, Peer, Protocol, StateName, Transmit};
use outlast_wire::hip::Hit;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What the network does to packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub repetition: f64,
    /// Probability that a packet takes up to three times as long.
    pub reordering: f64,
    /// Probability that a byte of a packet is altered.
    pub alteration: f64,
}

/// A host and what came of it.
pub struct Node {
    pub host: Host,
    pub addresses: Vec<IpAddr>,
    pub events: Vec<(Instant, Event)>,
    pub delivered: Vec<(Instant, Vec<u8>)>,
}

/// A network between hosts.
pub struct Network {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub delay: Duration,
    pub faults: Faults,
    pub random: Stream,
    /// All packets that were sent, with the time and the sender.
    pub sent: Vec<(Instant, usize, Transmit)>,
    /// A packet that this refuses is lost.
    pub filter: Box<dyn FnMut(&Transmit) -> bool>,
    flight: BTreeMap<(Instant, u64), Transmit>,
    count: u64,
}

pub fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// An identity that is quick to make and to use.
pub fn identity(seed: u8) -> Identity {
    identity_of(Algorithm::EcdsaP256, seed)
}

pub fn identity_of(algorithm: Algorithm, seed: u8) -> Identity {
    let mut random = <chacha20::ChaCha20Rng as rand_core::SeedableRng>::from_seed([seed; 32]);
    match algorithm {
        // Making one takes long without optimization.
        Algorithm::Rsa2048 => {
            Identity::from_pem(include_str!("../keys/rsa-2048.pem")).expect("a key")
        }
        other => Identity::generate(other, &mut random).expect("what the test set up"),
    }
}

impl Network {
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::from_millis(1_000),
            nodes: Vec::new(),
            delay: Duration::from_millis(50),
            faults: Faults::default(),
            random: Stream::new(seed, "network"),
            sent: Vec::new(),
            filter: Box::new(|_| true),
            flight: BTreeMap::new(),
            count: 0,
        }
    }

    /// Two hosts that know each other's addresses.
    pub fn pair(seed: u64) -> Self {
        Self::pair_of(
            seed,
            [identity(1), identity(2)],
            [Config::default(), Config::default()],
        )
    }

    /// Two hosts that make connections move again after a readdressing, or do not.
    pub fn pair_that_wakes(wakes_connections: bool) -> Self {
        let config = || Config {
            wakes_connections,
            ..Config::default()
        };
        Self::pair_of(1, [identity(1), identity(2)], [config(), config()])
    }

    pub fn pair_of(seed: u64, identities: [Identity; 2], configs: [Config; 2]) -> Self {
        let mut network = Self::new(seed);
        for ((at, identity), config) in identities.into_iter().enumerate().zip(configs) {
            let own = [address(&format!("192.0.2.{}", at + 1))];
            network.add(config, identity, &own);
        }
        for (at, other) in [(0, 1), (1, 0)] {
            let peer = Peer {
                addresses: network.nodes[other].addresses.clone(),
                ..Peer::default()
            };
            let hit = network.hit(other);
            network.nodes[at].host.set_peers([(hit, peer)]);
        }
        network
    }

    pub fn add(&mut self, config: Config, identity: Identity, addresses: &[IpAddr]) -> usize {
        let at = self.nodes.len();
        let mut seed = [at as u8; 32];
        seed[..8].copy_from_slice(&self.random.next_u64().to_be_bytes());
        let mut host = Host::new(self.now, config, identity, seed);
        host.handle_addresses(self.now, addresses);
        self.nodes.push(Node {
            host,
            addresses: addresses.to_vec(),
            events: Vec::new(),
            delivered: Vec::new(),
        });
        at
    }

    pub fn hit(&self, node: usize) -> Hit {
        self.nodes[node].host.hit()
    }

    /// A node's address changes.
    pub fn move_to(&mut self, node: usize, addresses: &[IpAddr]) {
        self.nodes[node].addresses = addresses.to_vec();
        self.nodes[node].host.handle_addresses(self.now, addresses);
        self.drain(node);
    }

    /// An application of one node sends to another.
    pub fn send(&mut self, from: usize, to: usize, payload: &[u8]) {
        let packet = inner(self.hit(from), self.hit(to), payload);
        self.nodes[from].host.handle_data(self.now, &packet);
        self.drain(from);
    }

    pub fn connect(&mut self, from: usize, to: usize) {
        let peer = self.hit(to);
        self.nodes[from].host.connect(self.now, peer);
        self.drain(from);
    }

    /// Hands a packet to whoever has its destination.
    pub fn deliver(&mut self, packet: &Transmit) {
        let found = self
            .nodes
            .iter()
            .position(|node| node.addresses.contains(&packet.destination));
        if let Some(node) = found {
            let path = (packet.source, packet.destination);
            let host = &mut self.nodes[node].host;
            host.handle_packet(self.now, path, packet.protocol, &packet.payload);
            self.drain(node);
        }
    }

    fn launch(&mut self, packet: Transmit) {
        let factor = if self.random.chance(self.faults.reordering) {
            1.0 + 2.0 * self.random.unit()
        } else {
            1.0
        };
        let at = self.now + self.delay.mul_f64(factor);
        self.count += 1;
        self.flight.insert((at, self.count), packet);
    }

    pub fn drain(&mut self, node: usize) {
        while let Some(event) = self.nodes[node].host.poll_event() {
            self.nodes[node].events.push((self.now, event));
        }
        let now = self.now;
        let Node {
            host, delivered, ..
        } = &mut self.nodes[node];
        while let Some(packet) = host.poll_delivery_for(now, |_| Family::V6) {
            delivered.push((now, packet));
        }
        while let Some(mut packet) = self.nodes[node].host.poll_transmit() {
            self.sent.push((self.now, node, packet.clone()));
            let is_spoofed = !self.nodes[node].addresses.contains(&packet.source);
            if is_spoofed || !(self.filter)(&packet) || self.random.chance(self.faults.loss) {
                continue;
            }
            if self.random.chance(self.faults.repetition) {
                self.launch(packet.clone());
            }
            if self.random.chance(self.faults.alteration) {
                let at = self.random.next_u64() as usize % packet.payload.len();
                packet.payload[at] ^= 1 << (self.random.next_u64() % 8);
                if packet.protocol == Protocol::Hip {
                    let (source, destination) = (packet.source, packet.destination);
                    let length = packet.payload[1];
                    outlast_wire::hip::Builder::set_checksum(
                        &mut packet.payload,
                        source,
                        destination,
                    );
                    // The builder repairs the length; an altered one stays altered.
                    packet.payload[1] = length;
                }
            }
            self.launch(packet);
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, length: Duration) {
        let end = self.now + length;
        loop {
            let arrival = self.flight.first_key_value().map(|(&(at, _), _)| at);
            let timeouts = self.nodes.iter().enumerate();
            let timeout = timeouts
                .filter_map(|(at, node)| Some((node.host.poll_timeout()?.0.max(self.now), at)))
                .min();
            match (arrival, timeout) {
                (Some(at), _) if at <= end && timeout.is_none_or(|(due, _)| at <= due) => {
                    self.now = at;
                    let (_, packet) = self.flight.pop_first().expect("a packet in flight");
                    self.deliver(&packet);
                }
                (_, Some((due, node))) if due <= end => {
                    self.now = due;
                    self.nodes[node].host.handle_timeout(due);
                    self.drain(node);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    pub fn state(&self, node: usize, peer: usize) -> Option<StateName> {
        let hit = self.hit(peer);
        let mut views = self.nodes[node].host.views();
        views.find(|view| view.peer == hit).map(|view| view.state)
    }

    /// How often such an event happened at a node.
    pub fn count(&self, node: usize, is_it: impl Fn(&Event) -> bool) -> usize {
        self.nodes[node]
            .events
            .iter()
            .filter(|(_, event)| is_it(event))
            .count()
    }

    /// Payloads that a node's applications got.
    pub fn received(&self, node: usize) -> Vec<Vec<u8>> {
        let delivered = self.nodes[node].delivered.iter();
        delivered.map(|(_, packet)| packet[40..].to_vec()).collect()
    }

    /// Opens an association and asserts that data flows.
    pub fn assert_data_flows_after_meeting(&mut self, a: usize, b: usize) {
        self.connect(a, b);
        self.run(Duration::from_secs(2));
        self.assert_data_flows(a, b);
    }

    /// Sends one packet each way and asserts that both arrive.
    pub fn assert_data_flows(&mut self, a: usize, b: usize) {
        let (before_a, before_b) = (self.nodes[a].delivered.len(), self.nodes[b].delivered.len());
        let mark = self.random.next_u64().to_be_bytes();
        self.send(a, b, &mark);
        self.send(b, a, &mark);
        self.run(Duration::from_secs(2));
        for (node, before) in [(a, before_a), (b, before_b)] {
            assert_eq!(
                self.received(node)[before..],
                [mark.to_vec()],
                "node {node}"
            );
        }
    }
}

/// A packet of an application.
pub fn inner(source: Hit, destination: Hit, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[17, 64]);
    packet.extend_from_slice(&source.0);
    packet.extend_from_slice(&destination.0);
    packet.extend_from_slice(payload);
    packet
}

pub fn is_readdressed(event: &Event) -> bool {
    matches!(event, Event::Readdressed { .. })
}

pub fn is_established(event: &Event) -> bool {
    matches!(event, Event::Established { .. })
}

/// Two mobile hosts and a rendezvous server at which both are registered.
pub fn with_server(seed: u64) -> Network {
    let mut network = Network::pair(seed);
    let server_config = Config {
        is_rendezvous_server: true,
        admission: Admission::Anyone,
        ..Config::default()
    };
    let server_address = [address("203.0.113.1")];
    let server = network.add(server_config, identity(3), &server_address);
    let server_hit = network.hit(server);
    for (at, other) in [(0, 1), (1, 0)] {
        let through = Peer {
            rendezvous: server_address.to_vec(),
            ..Peer::default()
        };
        let own_server = Peer {
            addresses: server_address.to_vec(),
            registers: true,
            ..Peer::default()
        };
        let hit = network.hit(other);
        network.nodes[at]
            .host
            .set_peers([(hit, through), (server_hit, own_server)]);
        network.connect(at, server);
    }
    network.run(Duration::from_secs(1));
    network
}
