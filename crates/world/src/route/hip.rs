//! HIP between the two hosts of the route: base exchange, ESP, readdressing.
//!
//! The hosts are those of `outlast run --role hip`. Their packets, with all that ESP adds, cross the links of
//! the route like any other. Each link's end has a network of its own: the mobile host gets an address
//! there whenever it comes, another each time, and loses it when it goes. A packet for an address that it
//! has no more ends at the router before its link.
//!
//! ESP carries as many bytes as the segment has. They are sealed and opened as on a real host, but
//! stand for the segment: eight of them are its number, by which the far end finds it again.

use super::Route;
use crate::hip::{HipOutcome, HipSetup};
use crate::path::{Load, Watch};
use crate::side::{IpVersion, Side};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::LinkState;
use outlast_hip::identity::{Algorithm, Identity};
use outlast_hip::{Config, Event, Host, Peer, Protocol, Transmit};
use outlast_wire::hip::{Hit, REPLAY_WINDOW};
use outlast_wire::{IpHeader, Packet, Transport};

/// The protocol numbers of HIP and ESP, by [`Protocol`].
const HIP: u8 = 139;
const ESP: u8 = 50;
const TCP: u8 = 6;
const IPV6_HEADER: usize = 40;
/// Bytes of a segment's number.
const NUMBER: usize = 8;
/// Segments on their way that are remembered for each direction. Beyond, the oldest are lost.
const MOST_ON_THE_WAY: usize = 1 << 16;
/// How far a segment may come after one that was sent later: what is older, ESP takes for repeated.
/// Segments that had to wait and were dropped have numbers, too.
const LATEST: u64 = 4 * REPLAY_WINDOW;

/// Both hosts, and what is on its way between them.
#[derive(Debug)]
pub(super) struct Hip<L> {
    /// By [`Side::index`].
    ends: [End<L>; 2],
    ip: IpVersion,
    address_delay: Duration,
    /// At which gateway the mobile host is, since when, and whether it has its address; `None` on its way.
    place: Option<Place>,
    /// How often it came somewhere.
    visits: u16,
    readdressings: Vec<Duration>,
    strayed: u64,
    actions: VecDeque<Action<L>>,
    indicators: VecDeque<Side>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    gateway: usize,
    address: IpAddr,
    /// When it has the address.
    from: Instant,
    is_configured: bool,
    is_told: bool,
}

/// One host, and the segments that it has sent.
#[derive(Debug)]
struct End<L> {
    host: Host,
    hit: Hit,
    /// Those from `first` on; `None` has arrived.
    on_the_way: VecDeque<Option<L>>,
    first: u64,
}

/// What the route has to do.
#[derive(Debug)]
pub(super) enum Action<L> {
    /// Put a packet on the way at the host of a side.
    Send(Side, L),
    /// Give a segment to the host of a side.
    Deliver(Side, L),
}

impl<L: Load> End<L> {
    /// Remembers a segment, and gives its number.
    fn remember(&mut self, load: L) -> u64 {
        if self.on_the_way.len() >= MOST_ON_THE_WAY {
            self.on_the_way.pop_front();
            self.first += 1;
        }
        self.on_the_way.push_back(Some(load));
        self.first + self.on_the_way.len() as u64 - 1
    }

    /// The segment of this number, which has arrived.
    fn recall(&mut self, number: u64) -> Option<L> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let load = self.on_the_way.get_mut(at)?.take();
        while let Some(oldest) = self.on_the_way.front()
            && (oldest.is_none() || self.first + LATEST < number)
        {
            self.on_the_way.pop_front();
            self.first += 1;
        }
        load
    }
}

/// The mobile host's address at a gateway, another for each of its visits.
fn address_at(ip: IpVersion, gateway: usize, visit: u16) -> IpAddr {
    // At most 32 gateways.
    let gateway = gateway as u8;
    let [high, low] = visit.to_be_bytes();
    match ip {
        IpVersion::V4 => Ipv4Addr::new(10, gateway, high, low).into(),
        IpVersion::V6 => {
            Ipv6Addr::new(0x2001, 0xdb8, u16::from(gateway) + 1, visit, 0, 0, 0, 2).into()
        }
    }
}

fn host(now: Instant, setup: &HipSetup, identity: Identity, random: &mut Stream) -> Host {
    let mut config = Config {
        has_credit: setup.has_credit,
        // That is the agents' to do.
        wakes_connections: false,
        ..Config::default()
    };
    config.limits.waiting = setup.waiting;
    Host::new(now, config, identity, seed(random))
}

fn seed(random: &mut Stream) -> [u8; 32] {
    let mut seed = [0; 32];
    for chunk in seed.chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    seed
}

impl<L: Load> Hip<L> {
    /// Two hosts without an association; the mobile one is at the first gateway.
    pub(super) fn new(now: Instant, setup: &HipSetup, run_seed: u64) -> Self {
        let mut random = Stream::new(run_seed, "hip");
        let mut identity = || {
            Identity::from_seed(Algorithm::EcdsaP256, seed(&mut random))
                .expect("any seed makes a key of P-256")
        };
        let identities = [identity(), identity()];
        let hits = identities.each_ref().map(Identity::hit);
        let mut hosts = identities.map(|identity| host(now, setup, identity, &mut random));
        let fixed = Side::Fixed.address(setup.ip);
        let mobile = address_at(setup.ip, 0, 1);
        let peers = [Vec::new(), vec![fixed]];
        let own = [fixed, mobile];
        for (side, addresses) in Side::BOTH.into_iter().zip(peers) {
            let peer = Peer {
                addresses,
                ..Peer::default()
            };
            let host = &mut hosts[side.index()];
            host.set_peers([(hits[side.peer().index()], peer)]);
            host.handle_addresses(now, &[own[side.index()]]);
        }
        let mut hits = hits.into_iter();
        let ends = hosts.map(|host| End {
            host,
            hit: hits.next().expect("one for each"),
            on_the_way: VecDeque::new(),
            first: 0,
        });
        Self {
            ends,
            ip: setup.ip,
            address_delay: setup.address_delay,
            place: Some(Place {
                gateway: 0,
                address: mobile,
                from: now,
                is_configured: true,
                is_told: true,
            }),
            visits: 1,
            readdressings: Vec::new(),
            strayed: 0,
            actions: VecDeque::new(),
            indicators: VecDeque::new(),
        }
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        let hosts = self.ends.iter().filter_map(|end| end.host.poll_timeout());
        let hosts = hosts.map(|(at, _)| at);
        let place = self.place.filter(|place| !place.is_configured);
        let place = place.map(|place| place.from);
        hosts.chain(place).fold(Instant::FAR_FUTURE, Instant::min)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.configure(now);
        for side in Side::BOTH {
            let host = &mut self.ends[side.index()].host;
            if host.poll_timeout().is_some_and(|(at, _)| at <= now) {
                host.handle_timeout(now);
            }
            self.drain(now, side);
        }
    }

    pub(super) fn poll_action(&mut self) -> Option<Action<L>> {
        self.actions.pop_front()
    }

    /// The host of a side has heard that packets pass again.
    pub(super) fn poll_indicator(&mut self) -> Option<Side> {
        self.indicators.pop_front()
    }

    pub(super) fn has_indicator(&self) -> bool {
        !self.indicators.is_empty()
    }

    /// The link of a gateway has changed.
    pub(super) fn handle_carrier(&mut self, now: Instant, gateway: usize, state: LinkState) {
        let is_at = self.place.is_some_and(|place| place.gateway == gateway);
        match state {
            LinkState::Down if is_at => {
                self.place = None;
                self.ends[Side::Mobile.index()]
                    .host
                    .handle_addresses(now, &[]);
                self.drain(now, Side::Mobile);
            }
            LinkState::Up if !is_at => {
                self.visits = self.visits.wrapping_add(1);
                self.place = Some(Place {
                    gateway,
                    address: address_at(self.ip, gateway, self.visits),
                    from: now + self.address_delay,
                    is_configured: false,
                    is_told: false,
                });
                self.configure(now);
            }
            _ => {}
        }
    }

    /// The mobile host gets its address, if it is time.
    fn configure(&mut self, now: Instant) {
        let Some(place) = &mut self.place else {
            return;
        };
        if place.is_configured || place.from > now {
            return;
        }
        place.is_configured = true;
        let address = place.address;
        self.ends[Side::Mobile.index()]
            .host
            .handle_addresses(now, &[address]);
        self.drain(now, Side::Mobile);
    }

    /// The gateway at which the mobile host has this address.
    pub(super) fn gateway_of(&mut self, load: &L) -> Option<usize> {
        let destination = load.packet().map(|packet| packet.header().ip.destination);
        let place = self.place.filter(|place| place.is_configured);
        let found = place.filter(|place| Some(place.address) == destination);
        self.strayed += u64::from(found.is_none());
        found.map(|place| place.gateway)
    }

    /// The host of `side` has sent a packet to the other one.
    pub(super) fn seal(&mut self, now: Instant, side: Side, load: L) {
        let header = match load.packet().map(|packet| packet.header().ip.source) {
            Some(IpAddr::V4(_)) => 20,
            _ => IPV6_HEADER,
        };
        let protocol = match load.packet().map(|packet| &packet.header().transport) {
            Some(Transport::Udp(_)) => 17,
            Some(Transport::Other { protocol, .. }) => *protocol,
            _ => TCP,
        };
        let payload = (load.wire_len() as usize)
            .saturating_sub(header)
            .max(NUMBER);
        // Longer than any link's packet.
        let Ok(length) = u16::try_from(payload) else {
            self.strayed += 1;
            return;
        };
        let peer = self.ends[side.peer().index()].hit;
        let end = &mut self.ends[side.index()];
        let number = end.remember(load);
        let mut packet = Vec::with_capacity(IPV6_HEADER + payload);
        packet.extend_from_slice(&[0x60, 0, 0, 0]);
        packet.extend_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(&[protocol, 64]);
        packet.extend_from_slice(&end.hit.0);
        packet.extend_from_slice(&peer.0);
        packet.extend_from_slice(&number.to_be_bytes());
        packet.resize(IPV6_HEADER + payload, 0);
        end.host.handle_data(now, &packet);
        self.drain(now, side);
    }

    /// A packet has come to the host of `side`. Gives it back if it is none of HIP's.
    pub(super) fn open(&mut self, now: Instant, side: Side, load: L) -> Option<L> {
        let packet = load.packet();
        let protocol = match packet.map(|packet| &packet.header().transport) {
            Some(Transport::Other {
                protocol: HIP,
                fragment: false,
            }) => Protocol::Hip,
            Some(Transport::Other {
                protocol: ESP,
                fragment: false,
            }) => Protocol::Esp,
            _ => return Some(load),
        };
        // On the mobile's link since before it was down.
        if side == Side::Mobile && self.gateway_of(&load).is_none() {
            return None;
        }
        if let Some((packet, payload)) = packet.and_then(|packet| Some((packet, packet.payload()?)))
        {
            let ip = packet.header().ip;
            let path = (ip.source, ip.destination);
            let host = &mut self.ends[side.index()].host;
            host.handle_packet(now, path, protocol, payload);
        }
        self.drain(now, side);
        None
    }

    pub(super) fn finish(self) -> HipOutcome {
        HipOutcome {
            readdressings: self.readdressings,
            hosts: self.ends.map(|end| *end.host.counters()),
            strayed: self.strayed,
        }
    }

    /// Takes what the host of `side` has to say.
    fn drain(&mut self, now: Instant, side: Side) {
        while let Some(transmit) = self.ends[side.index()].host.poll_transmit() {
            self.actions
                .push_back(Action::Send(side, datagram(&transmit)));
        }
        while let Some(packet) = self.ends[side.index()].host.poll_delivery() {
            let number = packet.get(IPV6_HEADER..IPV6_HEADER + NUMBER);
            let number = number.and_then(|number| number.first_chunk().copied());
            let sender = &mut self.ends[side.peer().index()];
            match number.and_then(|number| sender.recall(u64::from_be_bytes(number))) {
                Some(load) => self.actions.push_back(Action::Deliver(side, load)),
                None => self.strayed += 1,
            }
        }
        while let Some(event) = self.ends[side.index()].host.poll_event() {
            if let Event::Readdressed { .. } = event {
                self.indicators.push_back(side);
                self.note(now, side);
            }
        }
    }

    /// The host of `side` knows that the mobile host is where it is now.
    fn note(&mut self, now: Instant, side: Side) {
        if let Some(place) = &mut self.place
            && side == Side::Fixed
            && !core::mem::replace(&mut place.is_told, true)
        {
            self.readdressings.push(now.since(place.from));
        }
    }
}

/// The packet that a host sends.
fn datagram<L: Load>(transmit: &Transmit) -> L {
    let protocol = match transmit.protocol {
        Protocol::Hip => HIP,
        Protocol::Esp => ESP,
    };
    let ip = IpHeader::new(transmit.source, transmit.destination);
    Packet::of_protocol(ip, protocol, &transmit.payload).into()
}

impl<W: Watch> Route<W> {
    /// Both hosts speak HIP from `now` on.
    pub fn use_hip(&mut self, now: Instant, setup: &HipSetup, seed: u64) {
        self.hip = Some(Box::new(Hip::new(now, setup, seed)));
        self.is_lone = false;
    }

    /// The host of a side knows by a readdressing that packets pass again.
    #[must_use]
    pub fn poll_indicator(&mut self) -> Option<Side> {
        self.hip.as_mut()?.poll_indicator()
    }

    /// Whether HIP tells the hosts that packets pass again.
    #[must_use]
    pub fn has_hip(&self) -> bool {
        self.hip.is_some()
    }

    /// The host of `side` has sent a packet, which goes through HIP.
    pub(super) fn seal(&mut self, now: Instant, side: Side, load: W::Load) {
        if let Some(hip) = &mut self.hip {
            hip.seal(now, side, load);
        }
        self.act_for_hip(now);
    }

    /// A packet comes out of the route at `side`.
    pub(super) fn leave_route(&mut self, now: Instant, side: Side, load: W::Load) {
        let load = match &mut self.hip {
            Some(hip) => hip.open(now, side, load),
            None => Some(load),
        };
        self.outbox.extend(load.map(|load| (side, load)));
    }

    /// Does what HIP asks for. Whether that was anything.
    pub(super) fn act_for_hip(&mut self, now: Instant) -> bool {
        let mut is_any = false;
        while let Some(action) = self.hip.as_mut().and_then(|hip| hip.poll_action()) {
            is_any = true;
            match action {
                Action::Send(side, load) => self.enter_chain(now, side, load),
                Action::Deliver(side, load) => self.outbox.push_back((side, load)),
            }
        }
        is_any
    }

    /// Tells HIP of the links' changes, and keeps them for the driver.
    pub(super) fn note_carrier_for_hip(&mut self, now: Instant) {
        let is_roaming = self.roaming.is_some();
        let is_started = self.started.is_some();
        for gateway in 0..self.cells() {
            while let Some(state) = self
                .cell_mut(gateway)
                .and_then(crate::path::Path::poll_carrier)
            {
                if let Some(hip) = &mut self.hip {
                    hip.handle_carrier(now, gateway, state);
                }
                if !is_roaming || is_started && state == LinkState::Up {
                    self.carrier.push_back(state);
                }
            }
        }
    }
}
