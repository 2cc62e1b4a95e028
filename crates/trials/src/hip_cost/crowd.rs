//! Many hosts at one server: the pure hosts of `hip`, driven by one thread, against `outlast run --role hip`.
//!
//! Each host has an IPv4 address of its own. The kernel of their namespace takes all addresses of a network for its
//! own by one route of the kind `local`, so that two raw sockets receive for all of them.

use super::pair::{ETH, LEFT, Pair, RIGHT};
use crate::gateway_matrix::trial::TrialError;
use crate::mobile_ip_matrix::place::ip;
use outlast_base::time::{Duration, Instant};
use outlast_hip::identity::{Algorithm, Identity};
use outlast_hip::{Config, Event, Host, Peer, Protocol};
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::protocol::{ProtocolReceiver, ip_packet};
use outlast_linux::raw::RawSender;
use outlast_linux::timer::Timer;
use outlast_wire::hip::{ESP_PROTOCOL, HIP_PROTOCOL, Hit};
use outlast_wire::{IpHeader, Packet, UdpHeader};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// The networks of the hosts, before they move and after: `10.NETWORK.0.0/16`.
const NETWORKS: [u8; 2] = [71, 72];
/// The first two bytes of an address of the crowd.
const FIRST: u8 = 10;

/// Where the server moves to.
const NEW_RIGHT: Ipv4Addr = Ipv4Addr::new(10, 70, 0, 3);

/// Base exchanges that go on at once.
const AT_ONCE: usize = 16;

/// The port at which the server's host answers, and the one that is asked from.
const ECHO: u16 = 7;
const FROM: u16 = 7_000;

/// How long an answer is waited for.
const AGAIN: Duration = Duration::from_millis(500);

/// How long each part may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The longest time between two looks at whether the user wants an end.
const LOOK: Duration = Duration::from_millis(50);

/// Packets taken from one socket before the others have their turn.
const BURST: usize = 64;

/// One host.
struct Member {
    host: Host,
    address: Ipv4Addr,
    /// When the driver's agenda has it.
    armed: Option<Instant>,
    /// When its exchange, or its readdressing, was complete.
    complete: Option<Instant>,
    /// When a datagram was last sent.
    asked: Option<Instant>,
    /// When the server's host answered a datagram that was sent meanwhile.
    answered: Option<Instant>,
}

impl Member {
    fn begin_step(&mut self) {
        (self.complete, self.asked, self.answered) = (None, None, None);
    }

    /// Whether the server's host is to be asked: a datagram may be lost, as in the queue of a TUN device when all
    /// are answered at once. Before a host knows where the server is, all it sends would be lost.
    fn is_to_ask(&self, now: Instant) -> bool {
        let is_due = self.asked.is_none_or(|at| now.since(at) >= AGAIN);
        self.complete.is_some() && self.answered.is_none() && is_due
    }
}

/// All hosts, and what they receive and send through.
pub(super) struct Crowd<'p> {
    pair: &'p Pair,
    server: Hit,
    members: Vec<Member>,
    agenda: BTreeSet<(Instant, usize)>,
    receivers: [(Protocol, ProtocolReceiver); 2],
    sender: RawSender,
    echo: UdpSocket,
    poller: Poller,
    timer: Timer,
    buffer: Vec<u8>,
}

/// How long each host took, in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// Until its exchange or its readdressing was complete.
    pub(super) complete_s: Vec<f64>,
    /// Until a datagram through the association was answered.
    pub(super) answered_s: Vec<f64>,
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "drive a crowd of hosts",
        source,
    }
}

/// The address of a host in a network.
fn address(network: u8, number: usize) -> Ipv4Addr {
    // No network has more hosts than fit.
    let [high, low] = (number as u16 + 1).to_be_bytes();
    Ipv4Addr::new(FIRST, network, high, low)
}

/// The host that has an address, and whether it is in one of the crowd's networks at all.
fn number_of(address: Ipv4Addr) -> Option<usize> {
    let [first, network, high, low] = address.octets();
    let is_ours = first == FIRST && NETWORKS.contains(&network);
    let number = usize::from(u16::from_be_bytes([high, low])).checked_sub(1);
    number.filter(|_| is_ours)
}

/// The server's routes to the networks of the hosts.
fn ways(verb: &str) -> [String; 2] {
    NETWORKS.map(|network| format!("route {verb} {FIRST}.{network}.0.0/16 via {LEFT}"))
}

impl<'p> Crowd<'p> {
    /// So many hosts on the left, each with an identity of this kind, for the server on the right.
    pub(super) fn new(
        pair: &'p Pair,
        (count, algorithm): (usize, Algorithm),
        server: Hit,
    ) -> Result<Self, TrialError> {
        let local =
            NETWORKS.map(|network| format!("route add local {FIRST}.{network}.0.0/16 dev lo"));
        ip(&pair.left, &local)?;
        ip(&pair.right, &ways("add"))?;
        let open = || {
            let any = Ipv4Addr::UNSPECIFIED.into();
            let receivers = [
                (Protocol::Hip, ProtocolReceiver::open(HIP_PROTOCOL, any)?),
                (Protocol::Esp, ProtocolReceiver::open(ESP_PROTOCOL, any)?),
            ];
            Ok((receivers, RawSender::open(0, None)?))
        };
        let opened = pair.left.run(open).map_err(LabError::from)?;
        let (receivers, sender) = opened.map_err(io_error)?;
        let listen = || UdpSocket::bind(("::", ECHO));
        let echo = pair.right.run(listen).map_err(LabError::from)?;
        let echo = echo.map_err(io_error)?;
        echo.set_nonblocking(true).map_err(io_error)?;
        let poller = Poller::new().map_err(io_error)?;
        let timer = Timer::new().map_err(io_error)?;
        let mut crowd = Self {
            pair,
            server,
            members: Vec::new(),
            agenda: BTreeSet::new(),
            receivers,
            sender,
            echo,
            poller,
            timer,
            buffer: vec![0; 65_535],
        };
        crowd.wait_for().map_err(io_error)?;
        for number in 0..count {
            crowd.members.push(member(number, algorithm, server)?);
        }
        Ok(crowd)
    }

    fn wait_for(&self) -> io::Result<()> {
        for (_, receiver) in &self.receivers {
            self.poller.add(receiver, Token(0), Interest::Readable)?;
        }
        self.poller.add(&self.echo, Token(0), Interest::Readable)?;
        self.poller.add(&self.timer, Token(0), Interest::Readable)
    }

    /// Has every host open its association, some at a time, and send a datagram; how long each took.
    pub(super) fn join(&mut self, cancel: &Cancel) -> Result<Times, TrialError> {
        let count = self.members.len();
        let mut began = Vec::new();
        let given_up = clock::now() + PATIENCE;
        loop {
            let complete = self.members.iter().filter(|it| it.complete.is_some());
            let open = began.len() - complete.count();
            let now = clock::now();
            for number in (began.len()..count).take(AT_ONCE.saturating_sub(open)) {
                began.push(now);
                self.ask(now, number)?;
            }
            if !self.go_on(given_up, cancel)? {
                return Ok(self.times(|number| began[number]));
            }
        }
    }

    /// Has every host move at once, and send a datagram; how long each took.
    pub(super) fn move_all(&mut self, cancel: &Cancel) -> Result<Times, TrialError> {
        let began = clock::now();
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            member.begin_step();
            member.address = address(NETWORKS[1], number);
            member
                .host
                .handle_addresses(began, &[member.address.into()]);
            self.ask(began, number)?;
        }
        let given_up = began + PATIENCE;
        while self.go_on(given_up, cancel)? {}
        Ok(self.times(|_| began))
    }

    /// Has the server move, which tells all hosts at once; how long each took to know, and to hear from it.
    pub(super) fn move_server(&mut self, cancel: &Cancel) -> Result<Times, TrialError> {
        for member in &mut self.members {
            member.begin_step();
        }
        // The routes go with the address.
        let mut lines = vec![
            format!("address del {RIGHT}/24 dev {ETH}"),
            format!("address add {NEW_RIGHT}/24 dev {ETH}"),
        ];
        lines.extend(ways("replace"));
        ip(&self.pair.right, &lines)?;
        let began = clock::now();
        let given_up = began + PATIENCE;
        while self.go_on(given_up, cancel)? {}
        Ok(self.times(|_| began))
    }

    /// Waits once, and does what is to be done; whether something is still missing.
    fn go_on(&mut self, given_up: Instant, cancel: &Cancel) -> Result<bool, TrialError> {
        let is_whole = |it: &Member| it.complete.is_some() && it.answered.is_some();
        if self.members.iter().all(is_whole) || clock::now() >= given_up {
            return Ok(false);
        }
        if cancel.is_cancelled() {
            return Err(LabError::Cancelled.into());
        }
        let next = self.agenda.first().map(|&(at, _)| at);
        let soon = clock::now() + LOOK;
        let next = next.map_or(soon, |at| at.min(soon));
        self.timer.set(Some(next)).map_err(io_error)?;
        let count = self.poller.wait().map_err(io_error)?.count();
        if count > 0 {
            self.timer.note_expiry();
        }
        self.receive().map_err(io_error)?;
        self.echo().map_err(io_error)?;
        let now = clock::now();
        for number in 0..self.members.len() {
            if self.members[number].is_to_ask(now) {
                self.ask(now, number)?;
            }
        }
        while let Some(&(at, number)) = self.agenda.first() {
            if at > now {
                break;
            }
            self.members[number].host.handle_timeout(now);
            self.drain(now, number).map_err(io_error)?;
        }
        Ok(true)
    }

    /// Sends a datagram of a host to the server's host.
    fn ask(&mut self, now: Instant, number: usize) -> Result<(), TrialError> {
        let member = &mut self.members[number];
        member.asked = Some(now);
        let host = &mut member.host;
        let header = IpHeader::new(host.hit().address().into(), self.server.address().into());
        let udp = UdpHeader {
            source_port: FROM,
            destination_port: ECHO,
        };
        let datagram = Packet::udp_datagram(header, udp, b"are you there?").to_bytes();
        host.handle_data(now, &datagram);
        self.drain(now, number).map_err(io_error)
    }

    fn receive(&mut self) -> io::Result<()> {
        for which in 0..self.receivers.len() {
            for _ in 0..BURST {
                let (protocol, receiver) = &self.receivers[which];
                let Some(packet) = receiver.receive_whole(&mut self.buffer)? else {
                    break;
                };
                let Some((source, destination, payload)) = take_apart(packet) else {
                    continue;
                };
                let known = number_of(destination).filter(|it| *it < self.members.len());
                let Some(number) = known else {
                    continue;
                };
                let now = clock::now();
                let path = (IpAddr::from(source), IpAddr::from(destination));
                let member = &mut self.members[number];
                // Nobody receives where it was before.
                if member.address == destination {
                    member.host.handle_packet(now, path, *protocol, payload);
                    self.drain(now, number)?;
                }
            }
        }
        Ok(())
    }

    /// Answers, as the server's host, the datagrams that have come to it through its TUN device.
    fn echo(&mut self) -> io::Result<()> {
        loop {
            match self.echo.recv_from(&mut self.buffer) {
                Ok((length, from)) => {
                    self.echo.send_to(&self.buffer[..length], from)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends what a host has, notes what it says, and arms its timer.
    fn drain(&mut self, now: Instant, number: usize) -> io::Result<()> {
        let member = &mut self.members[number];
        while let Some(packet) = member.host.poll_transmit() {
            let protocol = match packet.protocol {
                Protocol::Hip => HIP_PROTOCOL,
                Protocol::Esp => ESP_PROTOCOL,
            };
            let (source, destination) = (packet.source, packet.destination);
            if let Some(bytes) = ip_packet(source, destination, protocol, &packet.payload) {
                // What is not accepted is lost as on any link.
                let _ = self.sender.send(destination, &bytes)?;
            }
        }
        while member.host.poll_delivery().is_some() {
            // An answer may be late, to what was asked before this step.
            if member.asked.is_some() {
                member.answered.get_or_insert(now);
            }
        }
        while let Some(event) = member.host.poll_event() {
            if let Event::Established { .. } | Event::Readdressed { .. } = event {
                member.complete.get_or_insert(now);
            }
        }
        let next = member.host.poll_timeout().map(|(at, _)| at);
        if next != member.armed {
            if let Some(at) = member.armed {
                self.agenda.remove(&(at, number));
            }
            self.agenda.extend(next.map(|at| (at, number)));
            member.armed = next;
        }
        Ok(())
    }

    fn times(&self, began: impl Fn(usize) -> Instant) -> Times {
        let all = |of: fn(&Member) -> Option<Instant>| {
            let members = self.members.iter().enumerate();
            let times = members
                .filter_map(|(number, member)| Some(of(member)?.since(began(number))))
                .map(|time| time.as_secs_f64());
            times.collect()
        };
        Times {
            complete_s: all(|member| member.complete),
            answered_s: all(|member| member.answered),
        }
    }
}

/// A host that knows the server.
fn member(number: usize, algorithm: Algorithm, server: Hit) -> Result<Member, TrialError> {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&(number as u64).to_be_bytes());
    let identity = Identity::from_seed(algorithm, seed);
    let identity = identity.map_err(|error| TrialError::Daemon(error.to_string()))?;
    let now = clock::now();
    let mut host = Host::new(now, Config::default(), identity, seed);
    let peer = Peer {
        addresses: vec![RIGHT.into()],
        ..Peer::default()
    };
    host.set_peers([(server, peer)]);
    let address = address(NETWORKS[0], number);
    host.handle_addresses(now, &[address.into()]);
    Ok(Member {
        host,
        address,
        armed: None,
        complete: None,
        asked: None,
        answered: None,
    })
}

/// Source, destination and payload of an IPv4 packet.
fn take_apart(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr, &[u8])> {
    let length = usize::from(packet.first()? & 0xf) * 4;
    let at = |place: usize| packet.get(place..place + 4)?.first_chunk::<4>().copied();
    Some((at(12)?.into(), at(16)?.into(), packet.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_an_address_of_its_own() {
        for number in [0, 1, 254, 255, 256, 999] {
            for network in NETWORKS {
                assert_eq!(number_of(address(network, number)), Some(number));
            }
        }
        assert_eq!(number_of(LEFT), None);
    }
}
