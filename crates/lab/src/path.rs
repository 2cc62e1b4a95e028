//! The way between the two hosts: what hosts send becomes a load, and what is due of cross traffic
//! is put on its link.
//!
//! After each call of a `handle_*` method the emulator drains [`HostPath::poll_transmit`] and arms
//! a timer for [`HostPath::poll_timeout`].

use crate::agent::Teller;
use crate::frame::Content;
use crate::observer::{Counts, Observer};
use crate::status::Status;
use crate::traffic::BothWays;
use bytes::Bytes;
use outlast_base::time::Instant;
use outlast_link::LinkConfig;
use outlast_wire::{Packet, TcpFlags};
use outlast_world::path::{Gateways, Load, Path, PathOutcome};
use outlast_world::route::{Links, Route, has_payload};
use outlast_world::trace::Trace;
use outlast_world::{
    CrossTraffic, Datagram, HipOutcome, HipSetup, HopOutcome, IpVersion, RoamingOutcome,
    RoamingSetup, Side, TrafficOutcome, TrafficSetup, is_cross_traffic,
};
use std::sync::Arc;

/// The route of bytes from and for hosts.
#[derive(Debug)]
pub(crate) struct HostPath {
    route: Route<Observer>,
    /// The mobile host goes from gateway to gateway.
    is_roaming: bool,
    strangers: Strangers,
    status: Arc<Status>,
    /// By [`Side::index`].
    agents: [Option<Teller>; 2],
    /// What the hosts' packets tell of their connections.
    tally: BothWays,
    /// Packets from hosts that are no whole IP packets.
    opaque: u64,
    /// Packets that a host's kernel had no room for.
    refused: u64,
    /// What was done last.
    now: Instant,
    /// When the mobile opened its first connection.
    opened: Option<Instant>,
}

/// What lies between the two hosts.
#[derive(Debug)]
pub(crate) struct Between {
    /// The mobile's link first, that of the fixed host last; never none.
    pub(crate) links: Vec<EmulatedLink>,
    /// Where else the mobile host may be.
    pub(crate) roaming: Option<Roaming>,
    /// Where what happens to packets on the mobile's link is kept.
    pub(crate) trace: Option<Trace>,
    pub(crate) cross_traffic: Vec<TrafficSetup>,
    pub(crate) ip: IpVersion,
    /// Of the cross traffic and of the home agent; links have their own.
    pub(crate) seed: u64,
    pub(crate) status: Arc<Status>,
    /// HIP between the hosts.
    pub(crate) hip: Option<HipSetup>,
    /// Who hears of the mobile's link, by [`Side::index`].
    pub(crate) agents: [Option<Teller>; 2],
}

/// Where else than at the first gateway the mobile host may be.
#[derive(Debug)]
pub(crate) struct Roaming {
    pub(crate) setup: RoamingSetup,
    /// The links of the further gateways.
    pub(crate) cells: Vec<EmulatedLink>,
}

/// A link, the gateways at its ends, and who watches.
#[derive(Debug)]
pub(crate) struct EmulatedLink {
    pub(crate) config: LinkConfig,
    pub(crate) gateways: Gateways,
    pub(crate) observer: Observer,
}

/// What is left when nothing more is to come.
#[derive(Debug)]
pub(crate) struct Crossed {
    /// When the workload's first byte came to a link.
    pub(crate) started: Option<Instant>,
    /// The mobile's link.
    pub(crate) first: PathOutcome<Observer>,
    /// The links behind it.
    pub(crate) further: Vec<PathOutcome<Observer>>,
    /// What came of further gateways; their captures are with those who watched.
    pub(crate) roaming: Option<RoamingOutcome>,
    pub(crate) cells: Vec<Observer>,
    /// What came of HIP.
    pub(crate) hip: Option<HipOutcome>,
    /// At the mobile's link, and of the hosts.
    pub(crate) counts: Counts,
    pub(crate) tally: BothWays,
    pub(crate) cross_traffic: Vec<TrafficOutcome>,
}

/// Cross traffic, which begins with the mobile's first connection.
#[derive(Debug)]
enum Strangers {
    Waiting {
        setups: Vec<TrafficSetup>,
        ip: IpVersion,
        seed: u64,
    },
    Sending(CrossTraffic),
}

impl HostPath {
    /// What lies between the hosts, at `now`.
    pub(crate) fn new(now: Instant, between: Between) -> Self {
        let Between {
            links,
            roaming,
            mut trace,
            cross_traffic,
            ip,
            seed,
            status,
            hip,
            agents,
        } = between;
        // Only the first one takes it.
        let mut links = links.into_iter().map(|link| link.path(now, trace.take()));
        let first = links.next().expect("there is always the mobile's link");
        let mut route = Route::new(first, links.collect());
        let is_roaming = roaming.is_some();
        if let Some(Roaming { setup, cells }) = roaming {
            let cells = cells.into_iter().map(|cell| cell.path(now, None));
            let mobile = Side::Mobile.address(ip);
            route.roam(now, &setup, cells.collect(), mobile, seed);
        }
        if let Some(hip) = &hip {
            route.use_hip(now, hip, seed);
        }
        Self {
            route,
            is_roaming,
            status,
            agents,
            strangers: Strangers::Waiting {
                setups: cross_traffic,
                ip,
                seed,
            },
            tally: BothWays::default(),
            opaque: 0,
            refused: 0,
            now,
            opened: None,
        }
    }

    /// Tells the hosts' agents that nothing more is to come.
    pub(crate) fn dismiss_agents(&mut self) {
        self.agents = [None, None];
    }

    /// The host of `side` has sent a packet.
    pub(crate) fn handle_packet(&mut self, now: Instant, side: Side, bytes: Bytes) {
        self.now = now;
        let content = Content::of(bytes);
        if self.opened.is_none() && side == Side::Mobile && opens(&content) {
            self.open(now);
        }
        match content.packet() {
            Some(packet) => self.tally.way_mut(side.outward()).sent(packet),
            None => self.opaque += 1,
        }
        self.route.handle_packet(now, side, content);
        self.show();
    }

    /// Time has come to `now`. What was due before happens in the order of time, with cross traffic
    /// at its very moment, however late the call is.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Strangers::Sending(traffic) = &mut self.strangers {
            while traffic.poll_timeout() <= now {
                let due = traffic.poll_timeout().max(self.now);
                wake(&mut self.route, self.is_roaming, self.now, due);
                self.now = due;
                if let Some(Datagram { link, side, packet }) = traffic.poll_transmit(due) {
                    self.route
                        .handle_cross_traffic(due, link, side, packet.into());
                }
            }
        }
        wake(&mut self.route, self.is_roaming, self.now, now);
        self.now = now;
        self.show();
    }

    /// A packet for the host of a side.
    #[must_use]
    pub(crate) fn poll_transmit(&mut self) -> Option<(Side, Bytes)> {
        loop {
            let (side, content) = self.route.poll_transmit()?;
            let packet = content.packet();
            match (&mut self.strangers, packet) {
                (Strangers::Sending(traffic), Some(packet))
                    if packet.tcp().is_none() && is_cross_traffic(packet) =>
                {
                    traffic.note_arrival(packet);
                }
                _ => {
                    if let Some(packet) = packet {
                        let way = side.peer().outward();
                        self.tally.way_mut(way).arrived(self.now, packet);
                        let bytes = self.tally.way(way).delivered().total();
                        self.status.set_delivered(way, bytes);
                    }
                    return Some((side, content.to_bytes()));
                }
            }
        }
    }

    /// When to call [`Self::handle_timeout`].
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = match &self.strangers {
            Strangers::Sending(traffic) => traffic.poll_timeout().min(self.route.poll_timeout()),
            Strangers::Waiting { .. } => self.route.poll_timeout(),
        };
        Some(due).filter(|&due| due < Instant::FAR_FUTURE)
    }

    /// When the mobile opened its first connection.
    #[must_use]
    pub(crate) fn opened(&self) -> Option<Instant> {
        self.opened
    }

    /// The kernel of a host had no room for a packet.
    pub(crate) fn refused(&mut self) {
        self.refused += 1;
    }

    /// When the workload's first byte came to a link.
    pub(crate) fn started(&self) -> Option<Instant> {
        self.route.started()
    }

    /// Nothing more is to come.
    pub(crate) fn finish(self) -> Crossed {
        let counts = self.counts();
        let started = self.route.started();
        let Links {
            first,
            further,
            roaming,
            hip,
        } = self.route.into_links();
        let (roaming, cells) = roaming.map(finish_cells).unzip();
        Crossed {
            started,
            first: first.finish(),
            further: further.into_iter().map(Path::finish).collect(),
            roaming,
            cells: cells.unwrap_or_default(),
            hip,
            counts,
            tally: self.tally,
            cross_traffic: match &self.strangers {
                Strangers::Sending(traffic) => traffic.outcomes(),
                Strangers::Waiting { setups, .. } => {
                    vec![TrafficOutcome::default(); setups.len()]
                }
            },
        }
    }

    fn counts(&self) -> Counts {
        Counts::new(self.route.first().counts(), self.opaque, self.refused)
    }

    fn open(&mut self, now: Instant) {
        self.opened = Some(now);
        if let Strangers::Waiting { setups, ip, seed } = &self.strangers {
            let traffic = CrossTraffic::new(now, setups, *seed, *ip);
            self.strangers = Strangers::Sending(traffic);
        }
    }

    /// Shows how things are.
    fn show(&mut self) {
        while let Some(state) = self.route.poll_carrier() {
            if let Some(agent) = &self.agents[Side::Mobile.index()]
                && !self.route.has_hip()
            {
                agent.tell(state);
            }
        }
        while let Some(side) = self.route.poll_indicator() {
            if let Some(agent) = &self.agents[side.index()] {
                agent.tell_update();
            }
        }
        if let Some(started) = self.route.started() {
            self.status.start(started);
        }
        self.status
            .set_link(self.route.is_up(), self.route.outages());
        self.status.set_injected(self.route.injected());
    }
}

/// Time has come from `before` to `now`. Where the mobile host goes from gateway to gateway, all
/// that was due happens at its very moment, however late the call is: a router must not hear where
/// the mobile host is before a gateway hears that it has left.
fn wake(route: &mut Route<Observer>, is_roaming: bool, before: Instant, now: Instant) {
    while is_roaming && route.poll_timeout() < now {
        let due = route.poll_timeout().max(before);
        route.handle_timeout(due);
    }
    if route.poll_timeout() <= now {
        route.handle_timeout(now);
    }
}

/// What came of further gateways, and who watched their links.
fn finish_cells(
    (outcome, cells): (RoamingOutcome, Vec<Path<Observer>>),
) -> (RoamingOutcome, Vec<Observer>) {
    let cells = cells.into_iter().map(|cell| {
        let cell = cell.finish();
        let outcome = HopOutcome {
            counts: cell.counts,
            link: cell.link,
            gateways: cell.gateways,
            captures: None,
        };
        (outcome, cell.watch)
    });
    let (cells, observers) = cells.unzip();
    (RoamingOutcome { cells, ..outcome }, observers)
}

impl EmulatedLink {
    fn path(self, now: Instant, trace: Option<Trace>) -> Path<Observer> {
        let is_captured = self.observer.capture.is_some();
        let Self {
            config,
            gateways,
            observer,
        } = self;
        Path::new(now, config, gateways, trace, is_captured, observer)
    }
}

/// Whether it opens a connection; the first datagram of a command does as well.
fn opens(content: &Content) -> bool {
    let syn = |packet: &Packet| packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN));
    content.packet().is_some_and(syn) || has_payload(content)
}

#[cfg(test)]
mod tests;
