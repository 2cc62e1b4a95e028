//! The event loop.

use crate::agenda::Agenda;
use crate::capture::Capture;
use crate::flow::{Common, Flow};
use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::path::Path;
use crate::setup::{FlowSetup, Setup};
use crate::side::Side;
use crate::trace::{Cause, Trace, VariableRow};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use outlast_core::link::LinkState;
use outlast_core::time::{Duration, Instant};
use outlast_link::Way;
use outlast_wire::{Packet, TcpFlags};

/// The machines' numbers in the agenda: the clock of the world itself, and then for each flow its
/// two ends and its applications. The path, whose deadline is another after each packet, comes
/// before them all.
const WORLD: usize = 0;
const FIRST_FLOW: usize = 1;
const MACHINES_OF_FLOW: usize = 3;
const APPLICATION: usize = 2;

/// Two hosts and the link between them, in virtual time.
///
/// A world is a plain value: worlds on several threads do not know of each other.
#[derive(Debug)]
pub struct World {
    now: Instant,
    path: Path,
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
    path_due: Instant,
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
            mut flows,
            ip,
            mtu,
            deadline,
            recording,
        } = setup;
        flows.truncate(Setup::MAX_FLOWS);
        let count = flows.len();
        let mut to_come: Vec<_> = flows.into_iter().enumerate().collect();
        to_come.sort_by_key(|(_, flow)| flow.begin);
        let trace = recording.traced_packets.map(Trace::new);
        let capture = recording.captures.then(Capture::new);
        let common = Common::new(link.seed, ip, mtu);
        let observer = Observer::new(trace, capture);
        let mut world = Self {
            now: Instant::ZERO,
            path: Path::new(Instant::ZERO, link, mechanisms, observer),
            flows: Vec::with_capacity(count),
            to_come: to_come.into(),
            places: alloc::vec![usize::MAX; count],
            running: count,
            is_given_up: false,
            common,
            agenda: Agenda::new(FIRST_FLOW + MACHINES_OF_FLOW * count),
            path_due: Instant::FAR_FUTURE,
            deadline,
            variables: recording.variables.then(Vec::new),
            events: 0,
        };
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
        let now = earliest.min(self.path_due).max(self.now);
        self.now = now;
        if self.path_due <= now {
            self.events += 1;
            match self.path.take_lone_arrival(now) {
                Some(arrival) => self.take_arrival(arrival),
                None => self.path.handle_timeout(now),
            }
            self.settle();
            return;
        }
        let Some(machine) = self.agenda.first_due(now) else {
            return;
        };
        self.events += 1;
        match machine {
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
        let Self { now, path, .. } = self;
        let flows: Vec<_> = self
            .places
            .iter()
            .filter_map(|&place| Some(self.flows.get(place)?.outcome(now)))
            .collect();
        let link = Way::BOTH.map(|way| *path.link().counters(way));
        let gateways = Side::BOTH.map(|side| path.gateway(side).map(|gateway| *gateway.counters()));
        let observer = path.observer;
        Outcome {
            started: observer.started,
            ended: now,
            flows,
            counts: observer.counts,
            link,
            gateways,
            trace: observer.trace,
            variables: self.variables,
            captures: observer.capture.map(Capture::finish),
            events: self.events,
        }
    }

    fn deadline_at(&self) -> Instant {
        self.path.observer.started.unwrap_or(Instant::ZERO) + self.deadline
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
            while let Some(state) = self.path.poll_carrier() {
                if state == LinkState::Up {
                    for flow in &mut self.flows {
                        flow.link_up(self.now);
                    }
                }
            }
            let Some(arrival) = self.path.poll_transmit() else {
                break;
            };
            self.take_arrival(arrival);
        }
        self.path_due = self.path.poll_timeout();
    }

    #[inline]
    fn take_arrival(&mut self, (side, packet): (Side, Box<Packet>)) {
        self.events += 1;
        self.deliver(side, &packet);
        self.path.take_back(packet);
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
            let mut packet = self.path.spare();
            while flow.endpoint_mut(side).poll_transmit_into(now, &mut packet) {
                self.path.handle_packet(now, side, packet);
                packet = self.path.spare();
            }
            self.path.take_back(packet);
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
