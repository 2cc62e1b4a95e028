//! Many mobile nodes with addresses of their own, which all move at once.

use outlast_base::time::Instant;
use outlast_mobility::{
    Algorithm, Arrival, CoLocation, Detection, InvalidSpi, LinkAddress, LinkId, MobileNode,
    MobileNodeConfig, NodeEvent, NtpClock, SecurityAssociation, Transmit,
};
use outlast_wire::Packet;
use outlast_wire::mobile_ip::Lifetime;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

pub(super) const SPI: u32 = 4096;
/// The key of all, for HMAC-MD5.
pub(super) const KEY: [u8; 16] = *b"a key for crowds";
const ARRIVAL: Arrival = Arrival {
    link: LinkId(0),
    from: LinkAddress([2, 0, 0, 0, 0, 1]),
};

/// The security association of all.
pub(super) fn association() -> Result<SecurityAssociation, InvalidSpi> {
    SecurityAssociation::new(SPI, Algorithm::HmacMd5, &KEY)
}

/// The mobile nodes, and who of them is registered where it is.
pub(super) struct Crowd {
    nodes: Vec<MobileNode>,
    numbers: BTreeMap<Ipv4Addr, usize>,
    is_registered: Vec<bool>,
    registered: usize,
    dues: Vec<Option<Instant>>,
    agenda: BTreeSet<(Instant, usize)>,
    outbox: Vec<Packet>,
}

fn address(network: u8, number: usize) -> Ipv4Addr {
    let [.., high, low] = (number + 1).to_be_bytes();
    Ipv4Addr::new(10, network, high, low)
}

/// The home address of the mobile node `number`, from 0.
pub(super) fn home_address(number: usize) -> Ipv4Addr {
    address(50, number)
}

/// Its address in the network `network`, from 0 to 3.
pub(super) fn care_of_address(network: u8, number: usize) -> Ipv4Addr {
    address(100 + network, number)
}

impl Crowd {
    /// `size` of them, at most 65,000, which are nowhere yet.
    pub(super) fn new(
        now: Instant,
        size: usize,
        home_agent: Ipv4Addr,
        clock: NtpClock,
    ) -> Result<Self, InvalidSpi> {
        let home = association()?;
        let node = |number| {
            let config = MobileNodeConfig {
                home_address: home_address(number),
                home_agent,
                home: home.clone(),
                foreign: None,
                detection: Detection::Link,
                lifetime: Lifetime(600),
                reverse_tunnel: true,
                simultaneous_bindings: false,
                udp_tunnel: false,
                clock,
                seed: number as u64,
            };
            MobileNode::new(now, config)
        };
        Ok(Self {
            nodes: (0..size).map(node).collect(),
            numbers: BTreeMap::new(),
            is_registered: vec![false; size],
            registered: 0,
            dues: vec![None; size],
            agenda: BTreeSet::new(),
            outbox: Vec::new(),
        })
    }

    /// All come to another network at once.
    pub(super) fn move_to(&mut self, now: Instant, network: u8) {
        self.numbers.clear();
        self.is_registered.fill(false);
        self.registered = 0;
        for number in 0..self.nodes.len() {
            let address = care_of_address(network, number);
            self.numbers.insert(address, number);
            let link = LinkId(0);
            let at = Some(CoLocation { address, link });
            self.nodes[number].handle_care_of_address(now, at);
            self.drain(number);
        }
    }

    /// A packet comes to one of them.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let IpAddr::V4(to) = packet.header().ip.destination else {
            return;
        };
        if let Some(&number) = self.numbers.get(&to) {
            // What is no reply is for nobody.
            let _ = self.nodes[number].handle_packet(now, ARRIVAL, packet);
            self.drain(number);
        }
    }

    /// Time has come to `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, number)) = self.agenda.first()
            && at <= now
        {
            self.agenda.remove(&(at, number));
            self.dues[number] = None;
            self.nodes[number].handle_timeout(now);
            self.drain(number);
        }
    }

    /// What they send next.
    pub(super) fn poll_transmit(&mut self) -> Option<Packet> {
        self.outbox.pop()
    }

    /// When to call [`Self::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// How many are registered where they are.
    pub(super) const fn registered(&self) -> usize {
        self.registered
    }

    /// Requests that were sent so far.
    pub(super) fn requests(&self) -> u64 {
        self.nodes.iter().map(|node| node.counters().requests).sum()
    }

    fn drain(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        while let Some(transmit) = node.poll_transmit() {
            // There is no ARP with addresses of one's own on point-to-point links.
            if let Transmit::Packet { packet, .. } = transmit {
                self.outbox.push(packet);
            }
        }
        while let Some(event) = node.poll_event() {
            if let NodeEvent::Registered { .. } = event
                && !self.is_registered[number]
            {
                self.is_registered[number] = true;
                self.registered += 1;
            }
        }
        let due = node.poll_timeout().map(|(at, _)| at);
        if let Some(old) = std::mem::replace(&mut self.dues[number], due) {
            self.agenda.remove(&(old, number));
        }
        if let Some(at) = due {
            self.agenda.insert((at, number));
        }
    }
}
