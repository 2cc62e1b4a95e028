//! The event loop.

use crate::agenda::Agenda;
use crate::capture::Capture;
use crate::flow::{Common, Flow};
use crate::observer::Observer;
use crate::outcome::{HopOutcome, Outcome};
use crate::path::Path;
use crate::route::{Outcoming, Route};
use crate::setup::{FlowSetup, HopSetup, Recording, Setup};
use crate::side::{IpVersion, Side};
use crate::trace::{Cause, Trace, VariableRow};
use crate::traffic::{Source, TrafficSetup};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use outlast_core::link::LinkState;
use outlast_core::time::{Duration, Instant};
use outlast_wire::{Packet, TcpFlags};

/// The machines' numbers in the agenda: the sources of cross traffic, the clock of the world itself,
/// and then for each flow its two ends and its applications. The route, whose deadline is another
/// after each packet, comes before them all.
const TRAFFIC: usize = 0;
const WORLD: usize = 1;
const FIRST_FLOW: usize = 2;
const MACHINES_OF_FLOW: usize = 3;
const APPLICATION: usize = 2;

/// Two hosts and the links between them, in virtual time.
///
/// A world is a plain value: worlds on several threads do not know of each other.
#[derive(Debug)]
pub struct World {
    now: Instant,
    route: Route,
    sources: Vec<Source>,
    /// When which source sends.
    sources_agenda: Agenda,
    flows: Vec<Flow>,
    /// Flows that have not begun, by when they do, each with its place in the setup.
    to_come: VecDeque<(usize, FlowSetup)>,
    /// The place in `flows` of each flow of the setup that has begun.
    places: Vec<usize>,
    running: usize,
    is_given_up: bool,
    common: Common,
    agenda: Agenda,
    /// When the path wants to be called.
    route_due: Instant,
    deadline: Duration,
    variables: Option<Vec<VariableRow>>,
    events: u64,
}

impl World {
    /// A world at time zero, in which nothing has happened.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let Setup {
            link,
            mechanisms,
            hops,
            traffic,
            mut flows,
            ip,
            mtu,
            clock_phases,
            deadline,
            recording,
        } = setup;
        flows.truncate(Setup::MAX_FLOWS);
        let count = flows.len();
        let mut to_come: Vec<_> = flows.into_iter().enumerate().collect();
        to_come.sort_by_key(|(_, flow)| flow.begin);
        let seed = link.seed;
        let trace = recording.traced_packets.map(Trace::new);
        let observer = Observer::new(trace, capture(recording, "link"));
        let first = Path::new(Instant::ZERO, link, mechanisms, observer);
        let mut world = Self {
            now: Instant::ZERO,
            route: Route::new(first, further(hops, recording)),
            sources: sources(&traffic, seed, ip),
            sources_agenda: Agenda::new(traffic.len()),
            flows: Vec::with_capacity(count),
            to_come: to_come.into(),
            places: alloc::vec![usize::MAX; count],
            running: count,
            is_given_up: false,
            common: Common::new(seed, ip, mtu, clock_phases),
            agenda: Agenda::new(FIRST_FLOW + MACHINES_OF_FLOW * count),
            route_due: Instant::FAR_FUTURE,
            deadline,
            variables: recording.variables.then(Vec::new),
            events: 0,
        };
        for number in 0..world.sources.len() {
            world.set_alarm_of_source(number);
        }
        world.set_own_alarm();
        world
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Packets and deadlines that were handled so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Whether every flow has ended, or the deadline is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.running == 0 || self.is_given_up
    }

    /// Lets the next thing happen, and all that follows from it without delay. Does nothing once
    /// the world is over.
    pub fn step(&mut self) {
        if self.is_over() {
            return;
        }
        let earliest = self.agenda.earliest();
        let now = earliest.min(self.route_due).max(self.now);
        self.now = now;
        if self.route_due <= now {
            self.events += 1;
            match self.route.take_lone_arrival(now) {
                Some(arrival) => self.take_arrival(arrival),
                None => self.route.handle_timeout(now),
            }
            self.settle();
            return;
        }
        let Some(machine) = self.agenda.first_due(now) else {
            return;
        };
        self.events += 1;
        match machine {
            TRAFFIC => self.send_cross_traffic(),
            WORLD => self.look_at_the_clock(),
            _ => self.wake_flow(machine - FIRST_FLOW),
        }
    }

    /// Runs to the end.
    #[must_use]
    pub fn run(mut self) -> Outcome {
        while !self.is_over() {
            self.step();
        }
        self.finish()
    }

    /// What has come of the world so far.
    #[must_use]
    pub fn finish(self) -> Outcome {
        let now = self.now;
        let flows: Vec<_> = self
            .places
            .iter()
            .filter_map(|&place| Some(self.flows.get(place)?.outcome(now)))
            .collect();
        let started = self.route.started();
        let (first, further) = self.route.into_links();
        let hops = further.into_iter().map(|link| HopOutcome {
            counts: link.observer.counts,
            link: link.link_counters(),
            gateways: link.gateway_counters(),
            captures: link.observer.capture.map(Capture::finish),
        });
        Outcome {
            started,
            ended: now,
            flows,
            counts: first.observer.counts,
            link: first.link_counters(),
            gateways: first.gateway_counters(),
            hops: hops.collect(),
            traffic: self.sources.iter().map(|source| source.outcome).collect(),
            trace: first.observer.trace,
            variables: self.variables,
            captures: first.observer.capture.map(Capture::finish),
            events: self.events,
        }
    }

    fn deadline_at(&self) -> Instant {
        self.route.started().unwrap_or(Instant::ZERO) + self.deadline
    }

    /// The next flow to begin, or the deadline.
    fn set_own_alarm(&mut self) {
        let begin = self
            .to_come
            .front()
            .map(|(_, flow)| Instant::ZERO + flow.begin);
        let alarm = begin.into_iter().chain([self.deadline_at()]).min();
        self.agenda.set(WORLD, alarm);
    }

    /// Begins the flows that are due, and gives up when it is time.
    fn look_at_the_clock(&mut self) {
        let now = self.now;
        while self
            .to_come
            .front()
            .is_some_and(|(_, flow)| Instant::ZERO + flow.begin <= now)
        {
            let Some((number, setup)) = self.to_come.pop_front() else {
                break;
            };
            let place = self.flows.len();
            self.places[number] = place;
            self.flows
                .push(Flow::open(now, number, &setup, &self.common));
            self.drain_end(place, Side::Mobile);
        }
        self.settle();
        self.is_given_up = self.now >= self.deadline_at();
        self.set_own_alarm();
    }

    fn wake_flow(&mut self, machine: usize) {
        let (place, part) = (machine / MACHINES_OF_FLOW, machine % MACHINES_OF_FLOW);
        let now = self.now;
        if part == APPLICATION {
            self.flows[place].handle_application_timeout(now);
            for side in Side::BOTH {
                self.drain_end(place, side);
            }
        } else {
            let side = Side::BOTH[part];
            self.flows[place].endpoint_mut(side).handle_timeout(now);
            self.note_variables(place, side, Cause::Timeout);
            self.drain_end(place, side);
        }
        self.settle();
    }

    /// Lets everything happen that takes no time.
    fn settle(&mut self) {
        loop {
            while let Some(state) = self.route.poll_carrier() {
                if state == LinkState::Up {
                    for flow in &mut self.flows {
                        flow.link_up(self.now);
                    }
                }
            }
            let Some(outcoming) = self.route.poll_transmit() else {
                break;
            };
            self.take_arrival(outcoming);
        }
        self.route_due = self.route.poll_timeout();
    }

    #[inline]
    fn take_arrival(&mut self, arrival: Outcoming) {
        self.events += 1;
        let packet = match arrival {
            Outcoming::ToHost(side, packet) => {
                self.deliver(side, &packet);
                packet
            }
            Outcoming::Crossed(packet) => {
                self.count_cross_traffic(&packet);
                packet
            }
        };
        self.route.take_back(packet);
    }

    /// Lets the first source that is due send a packet.
    fn send_cross_traffic(&mut self) {
        let now = self.now;
        let Some(number) = self.sources_agenda.first_due(now) else {
            return;
        };
        let source = &mut self.sources[number];
        let (link, side) = source.entry();
        if let Some(packet) = source.poll_transmit(now) {
            self.route
                .handle_cross_traffic(now, link, side, Box::new(packet));
        }
        self.set_alarm_of_source(number);
        self.settle();
    }

    fn set_alarm_of_source(&mut self, number: usize) {
        let next = self.sources[number].poll_timeout();
        self.sources_agenda.set(number, next);
        self.agenda
            .set(TRAFFIC, Some(self.sources_agenda.earliest()));
    }

    fn count_cross_traffic(&mut self, packet: &Packet) {
        let number = Source::number_of(packet);
        if let Some(source) = number.and_then(|number| self.sources.get_mut(number)) {
            source.outcome.received += 1;
        }
    }

    #[inline]
    fn deliver(&mut self, side: Side, packet: &Packet) {
        let Some(tcp) = packet.tcp() else { return };
        let number = Flow::number_of((tcp.source_port, tcp.destination_port));
        let Some(place) = self.places.get(number).copied() else {
            return;
        };
        self.flows[place]
            .endpoint_mut(side)
            .handle_packet(self.now, packet);
        if self.variables.is_some() && tcp.has(TcpFlags::ACK) {
            self.note_variables(place, side, Cause::Ack);
        }
        self.drain_end(place, side);
    }

    /// Drains an endpoint, in the order that it asks for.
    #[inline]
    fn drain_end(&mut self, place: usize, side: Side) {
        let now = self.now;
        let flow = &mut self.flows[place];
        loop {
            let mut packet = self.route.spare();
            while flow.endpoint_mut(side).poll_transmit_into(now, &mut packet) {
                self.route.handle_packet(now, side, packet);
                packet = self.route.spare();
            }
            self.route.take_back(packet);
            let Some(event) = flow.endpoint_mut(side).poll_event() else {
                break;
            };
            flow.handle_event(now, side, event);
        }
        let machine = FIRST_FLOW + MACHINES_OF_FLOW * place;
        let timeout = flow.endpoint(side).poll_timeout().map(|(at, _)| at);
        self.agenda.set(machine + side.index(), timeout);
        self.agenda
            .set(machine + APPLICATION, flow.poll_application_timeout());
        self.note_end(place);
    }

    /// Takes note if the flow at `place` has ended just now. Unless it was the last one, its
    /// connection is closed.
    fn note_end(&mut self, place: usize) {
        let flow = &mut self.flows[place];
        if !flow.take_end() {
            return;
        }
        self.running -= 1;
        if self.running > 0 {
            flow.close(self.now);
            for side in Side::BOTH {
                self.drain_end(place, side);
            }
        }
    }

    fn note_variables(&mut self, place: usize, side: Side, cause: Cause) {
        let flow = &self.flows[place];
        let endpoint = flow.endpoint(side);
        if let Some(rows) = &mut self.variables
            && endpoint.written() > 0
        {
            rows.push(VariableRow {
                at: self.now,
                flow: flow.number(),
                side,
                cause,
                variables: endpoint.trace(),
            });
        }
    }
}

/// The links behind the mobile's.
fn further(hops: Vec<HopSetup>, recording: Recording) -> Vec<Path> {
    let hops = hops.into_iter().zip(1..);
    hops.map(|(hop, number)| {
        let HopSetup { link, mechanisms } = hop;
        let observer = Observer::new(None, capture(recording, &format!("hop {number}")));
        Path::new(Instant::ZERO, link, mechanisms, observer)
    })
    .collect()
}

fn sources(traffic: &[TrafficSetup], seed: u64, ip: IpVersion) -> Vec<Source> {
    let traffic = traffic.iter().take(Setup::MAX_SOURCES).enumerate();
    traffic
        .map(|(number, &setup)| Source::new(number, setup, seed, ip))
        .collect()
}

fn capture(recording: Recording, link: &str) -> Option<Capture> {
    recording.captures.then(|| Capture::new(link))
}
