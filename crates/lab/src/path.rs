//! The way between the two hosts: what hosts send becomes a load, and what is due of cross traffic
//! is put on its link.
//!
//! After each call of a `handle_*` method the emulator drains [`HostPath::poll_transmit`] and arms
//! a timer for [`HostPath::poll_timeout`].

use crate::frame::Content;
use crate::observer::{Counts, Observer};
use crate::traffic::BothWays;
use bytes::Bytes;
use outlast_core::time::Instant;
use outlast_link::LinkConfig;
use outlast_wire::{Packet, TcpFlags};
use outlast_world::path::{Gateways, Load, Path, PathOutcome};
use outlast_world::route::{Links, Route, has_payload};
use outlast_world::trace::Trace;
use outlast_world::{
    CrossTraffic, Datagram, IpVersion, Side, TrafficOutcome, TrafficSetup, is_cross_traffic,
};

/// The route of bytes from and for hosts.
#[derive(Debug)]
pub(crate) struct HostPath {
    route: Route<Observer>,
    strangers: Strangers,
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
    /// Where what happens to packets on the mobile's link is kept.
    pub(crate) trace: Option<Trace>,
    pub(crate) cross_traffic: Vec<TrafficSetup>,
    pub(crate) ip: IpVersion,
    /// Of the cross traffic; links have their own.
    pub(crate) seed: u64,
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
            trace,
            cross_traffic,
            ip,
            seed,
        } = between;
        let mut trace = trace;
        let mut links = links.into_iter().map(|link| {
            let is_captured = link.observer.capture.is_some();
            let EmulatedLink {
                config,
                gateways,
                observer,
            } = link;
            // Only the first one takes it.
            Path::new(now, config, gateways, trace.take(), is_captured, observer)
        });
        let first = links.next().expect("there is always the mobile's link");
        Self {
            route: Route::new(first, links.collect()),
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
        self.note_carrier();
    }

    /// Time has come to `now`. What was due before happens in the order of time, with cross traffic
    /// at its very moment, however late the call is.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Strangers::Sending(traffic) = &mut self.strangers {
            while traffic.poll_timeout() <= now {
                let due = traffic.poll_timeout().max(self.now);
                self.now = due;
                if self.route.poll_timeout() <= due {
                    self.route.handle_timeout(due);
                }
                if let Some(Datagram { link, side, packet }) = traffic.poll_transmit(due) {
                    self.route
                        .handle_cross_traffic(due, link, side, packet.into());
                }
            }
        }
        self.now = now;
        if self.route.poll_timeout() <= now {
            self.route.handle_timeout(now);
        }
        self.note_carrier();
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
                        self.show_delivered(way);
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
        let Links { first, further, .. } = self.route.into_links();
        Crossed {
            started,
            first: first.finish(),
            further: further.into_iter().map(Path::finish).collect(),
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

    fn show_delivered(&mut self, way: outlast_link::Way) {
        let bytes = self.tally.way(way).delivered().total();
        self.route.first().watch().show_delivered(way, bytes);
    }

    /// The observer has heard of it.
    fn note_carrier(&mut self) {
        while self.route.poll_carrier().is_some() {}
    }
}

/// Whether it opens a connection; the first datagram of a command does as well.
fn opens(content: &Content) -> bool {
    let syn = |packet: &Packet| packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN));
    content.packet().is_some_and(syn) || has_payload(content)
}

#[cfg(test)]
mod tests;
