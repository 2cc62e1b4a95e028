//! The event loop.

use crate::agenda::Agenda;
use crate::agent::{self, Agents, Flows};
use crate::capture::Captures;
use crate::flow::{Common, Flow};
use crate::outcome::{HopOutcome, Outcome};
use crate::path::{Gateways, Path};
use crate::progress::Progress;
use crate::roaming::{RoamingOutcome, RoamingSetup};
use crate::route::Route;
use crate::setup::{FlowSetup, HopSetup, Recording, Setup};
use crate::side::Side;
use crate::trace::{Cause, Trace, VariableRow};
use crate::traffic::{CrossTraffic, Datagram};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::LinkState;
use outlast_link::{HALF_SECOND, LinkConfig};
use outlast_tcp::Endpoint;
use outlast_wire::{IcmpError, Packet, TcpFlags, TcpHeader, Transport};

/// The machines' numbers in the agenda: the sources of cross traffic, the clock of the world itself,
/// the hosts' agents, and then for each flow its two ends and its applications. The route, whose deadline is another
/// after each packet, comes before them all.
const TRAFFIC: usize = 0;
const WORLD: usize = 1;
const FIRST_AGENT: usize = 2;
const FIRST_FLOW: usize = 4;
const MACHINES_OF_FLOW: usize = 3;
const APPLICATION: usize = 2;

/// Two hosts and the links between them, in virtual time.
///
/// A world is a plain value: worlds on several threads do not know of each other.
#[derive(Debug)]
pub struct World {
    now: Instant,
    route: Route<Captures>,
    traffic: CrossTraffic,
    agents: Agents,
    flows: Vec<Flow>,
    /// Flows that have not begun, by when they do, each with its place in the setup.
    to_come: VecDeque<(usize, FlowSetup)>,
    /// The place in `flows` of each flow of the setup that has begun.
    places: Vec<usize>,
    /// Payload bytes that all flows are to deliver.
    goal: Option<u64>,
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
        let mut gateways = setup.gateways();
        let Setup {
            mut link,
            agents,
            hops,
            roaming,
            hip,
            traffic,
            mut flows,
            ip,
            mtu,
            content,
            clock_phases,
            deadline,
            recording,
            ..
        } = setup;
        flows.truncate(Setup::MAX_FLOWS);
        let count = flows.len();
        let goal = flows.iter().map(|flow| flow.workload.goal()).sum();
        let (seed, half_second) = (link.seed, half_second(&link, &hops));
        let trace = recording.traced_packets.map(Trace::new);
        if let Some(roaming) = &roaming {
            link = roaming.first_link(link);
            gateways = roaming.gateways(gateways);
        }
        let agents = Agents::new(Instant::ZERO, agents, roaming.is_some());
        let first = hop("link", link, gateways, trace, recording);
        let mut route = Route::new(first, further(hops, gateways, recording));
        if let Some(roaming) = roaming {
            let cells = cells(&roaming, gateways, recording);
            let mobile = Side::Mobile.address(ip);
            route.roam(Instant::ZERO, &roaming, cells, mobile, seed);
        }
        if let Some(hip) = &hip {
            route.use_hip(Instant::ZERO, hip, seed);
        }
        let outer = hip.map_or(ip, |hip| hip.ip);
        let mut world = Self {
            now: Instant::ZERO,
            route,
            traffic: CrossTraffic::new(Instant::ZERO, &traffic, seed, outer),
            agents,
            flows: Vec::with_capacity(count),
            to_come: by_begin(flows),
            places: alloc::vec![usize::MAX; count],
            goal,
            running: count,
            is_given_up: false,
            common: Common::new(seed, (ip, mtu), content, clock_phases, half_second),
            agenda: Agenda::new(FIRST_FLOW + MACHINES_OF_FLOW * count),
            route_due: Instant::FAR_FUTURE,
            deadline,
            variables: recording.variables.then(Vec::new),
            events: 0,
        };
        world.set_alarm_of_traffic();
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
    #[inline]
    pub fn step(&mut self) {
        if self.is_over() {
            return;
        }
        loop {
            let earliest = self.agenda.earliest();
            let now = earliest.min(self.route_due).max(self.now);
            if self.route_due <= now {
                self.now = now;
                self.step_route();
                return;
            }
            let Some(machine) = self.agenda.first_due(now) else {
                return;
            };
            if !self.put_off(now, machine) {
                self.now = now;
                self.wake(machine);
                return;
            }
        }
    }

    #[inline]
    fn step_route(&mut self) {
        self.events += 1;
        match self.route.take_lone_arrival(self.now) {
            Some(arrival) => self.take_arrival(arrival),
            None => self.route.handle_timeout(self.now),
        }
        self.settle();
    }

    /// Whether `machine` is an endpoint whose timer was put off after its deadline was noted, or
    /// fires a little later: then the deadline is noted that it has now.
    #[inline(never)]
    fn put_off(&mut self, now: Instant, machine: usize) -> bool {
        let Some(of_flow) = machine.checked_sub(FIRST_FLOW) else {
            return false;
        };
        let (place, part) = (of_flow / MACHINES_OF_FLOW, of_flow % MACHINES_OF_FLOW);
        if part == APPLICATION {
            return false;
        }
        let timeout = self.flows[place].endpoint(Side::BOTH[part]).poll_timeout();
        let timeout = timeout.map(|(at, _)| at);
        let is_due = timeout.is_some_and(|at| at <= now);
        if !is_due {
            self.agenda.set(machine, timeout);
        }
        !is_due
    }

    #[inline(never)]
    fn wake(&mut self, machine: usize) {
        self.events += 1;
        match machine {
            TRAFFIC => self.send_cross_traffic(),
            WORLD => self.look_at_the_clock(),
            FIRST_AGENT..FIRST_FLOW => self.wake_agent(Side::BOTH[machine - FIRST_AGENT]),
            _ => self.wake_flow(machine - FIRST_FLOW),
        }
    }

    /// How it is getting on: the payload is that of all flows, the updates are the first one's.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let started = self.route.started();
        let flow = self.places.first().and_then(|&place| self.flows.get(place));
        Progress {
            elapsed: started.map_or(Duration::ZERO, |started| self.now.since(started)),
            link_up: self.route.is_up(),
            outages: self.route.outages(),
            received: self.flows.iter().map(Flow::received).sum(),
            goal: self.goal,
            updates: flow.and_then(Flow::updates).unwrap_or(0).into(),
            injected: self.route.injected(),
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
        let links = self.route.into_links();
        let hops = links.further.into_iter().map(hop_outcome);
        let roaming = links.roaming.map(|(outcome, cells)| RoamingOutcome {
            cells: cells.into_iter().map(hop_outcome).collect(),
            ..outcome
        });
        let first = links.first.finish();
        Outcome {
            started,
            ended: now,
            flows,
            counts: first.counts,
            link: first.link,
            gateways: first.gateways,
            compression: first.compression,
            resumes: first.resumes,
            agents: self.agents.counters(),
            hops: hops.collect(),
            roaming,
            hip: links.hip,
            traffic: self.traffic.outcomes(),
            trace: first.trace,
            variables: self.variables,
            captures: first.watch.finish(),
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
            self.note_application(place);
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
                self.note_application(place);
            }
        } else {
            let side = Side::BOTH[part];
            self.agenda.set(FIRST_FLOW + machine, None);
            let endpoint = self.flows[place].endpoint_mut(side);
            let due = endpoint.poll_timeout().filter(|(at, _)| *at <= now);
            endpoint.handle_timeout(now);
            if let Some((_, reason)) = due {
                self.note_variables(place, side, Cause::Timeout(reason));
            }
            self.drain_end(place, side);
        }
        self.settle();
    }

    /// Lets everything happen that takes no time.
    #[inline(always)]
    fn settle(&mut self) {
        if self.route.has_news() {
            self.take_news();
        }
        self.route_due = self.route.poll_timeout();
    }

    #[inline(never)]
    fn take_news(&mut self) {
        while self.route.has_news() {
            while let Some(state) = self.route.poll_carrier() {
                if state == LinkState::Up {
                    for flow in &mut self.flows {
                        flow.link_up(self.now);
                    }
                }
                if self.agents.has(Side::Mobile) && !self.route.has_hip() {
                    let (now, flows) = (self.now, flows_of(&mut self.flows, &self.places));
                    self.agents.handle_carrier(now, state, flows);
                    self.drain_touched(Side::Mobile);
                }
            }
            if let Some(arrival) = self.route.poll_transmit() {
                self.take_arrival(arrival);
            }
            if let Some(side) = self.route.poll_indicator()
                && self.agents.has(side)
            {
                let (now, flows) = (self.now, flows_of(&mut self.flows, &self.places));
                self.agents.handle_update(now, side, flows);
                self.drain_touched(side);
            }
        }
    }

    #[inline(always)]
    fn take_arrival(&mut self, (side, packet): (Side, Box<Packet>)) {
        self.events += 1;
        match &packet.header().transport {
            Transport::Tcp(tcp) => self.deliver(side, &packet, tcp),
            Transport::IcmpError(error) => self.deliver_error(side, &packet, error),
            _ => self.traffic.note_arrival(&packet),
        }
        self.route.take_back(packet);
    }

    /// Lets the first source that is due send a packet.
    fn send_cross_traffic(&mut self) {
        let now = self.now;
        if let Some(datagram) = self.traffic.poll_transmit(now) {
            let Datagram { link, side, packet } = datagram;
            self.route
                .handle_cross_traffic(now, link, side, Box::new(packet));
        }
        self.set_alarm_of_traffic();
        self.settle();
    }

    fn set_alarm_of_traffic(&mut self) {
        self.agenda.set(TRAFFIC, Some(self.traffic.poll_timeout()));
    }

    #[inline]
    fn deliver(&mut self, side: Side, packet: &Packet, tcp: &TcpHeader) {
        let number = Flow::number_of((tcp.source_port, tcp.destination_port));
        let Some(place) = self.places.get(number).copied() else {
            return;
        };
        let flow = &mut self.flows[place];
        let may_wait = |end: &Endpoint| end.summary().timeouts > 0 || end.is_frozen();
        let waited = if self.agents.has(side) && may_wait(flow.endpoint(side)) {
            agent::waiting(flow.endpoint_mut(side))
        } else {
            None
        };
        flow.endpoint_mut(side).handle_packet(self.now, packet);
        if self.variables.is_some() && tcp.has(TcpFlags::ACK) {
            self.note_variables(place, side, Cause::Ack);
        }
        self.drain(place, side);
        if let Some(waited) = waited {
            let (now, flows) = (self.now, flows_of(&mut self.flows, &self.places));
            self.agents.handle_packet(now, side, place, &waited, flows);
            self.drain_touched(side);
        }
    }

    fn wake_agent(&mut self, side: Side) {
        let (now, flows) = (self.now, flows_of(&mut self.flows, &self.places));
        self.agents.handle_timeout(now, side, flows);
        self.drain_touched(side);
        self.settle();
    }

    /// Drains the connections that the agent at `side` has acted on.
    fn drain_touched(&mut self, side: Side) {
        while let Some(place) = self.agents.poll_touched() {
            self.drain_end(place, side);
        }
        let timeout = self.agents.poll_timeout(side);
        self.agenda.set(FIRST_AGENT + side.index(), timeout);
    }

    /// An ICMP error goes to the endpoint whose packet it quotes.
    #[inline(never)]
    fn deliver_error(&mut self, side: Side, packet: &Packet, error: &IcmpError) {
        let ports = error.quoted.as_ref().and_then(|quoted| quoted.ports);
        let Some(number) = ports.map(Flow::number_of) else {
            return;
        };
        if let Some(&place) = self.places.get(number)
            && let Some(flow) = self.flows.get_mut(place)
        {
            flow.endpoint_mut(side).handle_packet(self.now, packet);
            self.drain_end(place, side);
        }
    }

    /// Drains an endpoint, in the order that it asks for.
    #[inline(never)]
    fn drain_end(&mut self, place: usize, side: Side) {
        self.drain(place, side);
    }

    /// Drains an endpoint, in the order that it asks for; inlined, for each packet.
    #[inline(always)]
    fn drain(&mut self, place: usize, side: Side) {
        let now = self.now;
        let flow = &mut self.flows[place];
        send_all(now, side, flow.endpoint_mut(side), &mut self.route);
        let mut is_application_told = false;
        while let Some(event) = flow.endpoint_mut(side).poll_event() {
            is_application_told = true;
            flow.handle_event(now, side, event);
            send_all(now, side, flow.endpoint_mut(side), &mut self.route);
        }
        let machine = FIRST_FLOW + MACHINES_OF_FLOW * place + side.index();
        let until = flow.endpoint(side).quiet_until();
        self.agenda.bring_forward(machine, until);
        if is_application_told && note_application(place, flow, &mut self.agenda) {
            self.end(place);
        }
    }

    /// The application of the flow at `place` may have another deadline, or have come to its end.
    fn note_application(&mut self, place: usize) {
        if note_application(place, &mut self.flows[place], &mut self.agenda) {
            self.end(place);
        }
    }

    /// The flow at `place` has ended. Unless it was the last one, its connection is closed.
    #[inline(never)]
    fn end(&mut self, place: usize) {
        self.running -= 1;
        if self.running > 0 {
            self.flows[place].close(self.now);
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

fn flows_of<'a>(flows: &'a mut [Flow], places: &'a [usize]) -> Flows<'a> {
    Flows { flows, places }
}

/// Notes when the application of `flow`, at `place`, wants to be called; tells whether the flow has
/// ended just now.
#[inline]
fn note_application(place: usize, flow: &mut Flow, agenda: &mut Agenda) -> bool {
    let machine = FIRST_FLOW + MACHINES_OF_FLOW * place + APPLICATION;
    agenda.set(machine, flow.poll_application_timeout());
    flow.take_end()
}

/// Lets `endpoint`, at `side`, send all that it wants to send.
#[inline]
fn send_all(now: Instant, side: Side, endpoint: &mut Endpoint, route: &mut Route<Captures>) {
    while endpoint.has_transmit() {
        send_one(now, side, endpoint, route);
    }
}

fn send_one(now: Instant, side: Side, endpoint: &mut Endpoint, route: &mut Route<Captures>) {
    let mut packet = route.spare();
    if endpoint.poll_transmit_into(now, &mut packet) {
        route.handle_packet(now, side, packet);
    }
}

/// Flows with their numbers, in the order in which they begin.
fn by_begin(flows: Vec<FlowSetup>) -> VecDeque<(usize, FlowSetup)> {
    let mut flows: Vec<_> = flows.into_iter().enumerate().collect();
    flows.sort_by_key(|(_, flow)| flow.begin);
    flows.into()
}

/// Bytes that the chain of links carries in half a second to each side; `None` if no link has a rate.
fn half_second(link: &LinkConfig, hops: &[HopSetup]) -> [Option<u64>; 2] {
    Side::BOTH.map(|side| {
        let links = core::iter::once(link).chain(hops.iter().map(|hop| &hop.link));
        let way = side.peer().outward();
        let slowest = links.filter_map(|link| link.pipe(way).rate).min()?;
        Some(slowest.bytes_in(HALF_SECOND).as_u64())
    })
}

/// The links behind the mobile's. Their gateways know what `gateways` do of their own link.
fn further(hops: Vec<HopSetup>, gateways: Gateways, recording: Recording) -> Vec<Path<Captures>> {
    let hops = hops.into_iter().zip(1..);
    hops.map(|(setup, number)| {
        let HopSetup { link, mechanisms } = setup;
        let gateways = Gateways {
            mechanisms,
            ..gateways
        };
        hop(&format!("hop {number}"), link, gateways, None, recording)
    })
    .collect()
}

/// The links of the further gateways between which the mobile host goes.
fn cells(roaming: &RoamingSetup, gateways: Gateways, recording: Recording) -> Vec<Path<Captures>> {
    let cells = roaming.further_links().zip(2..);
    cells
        .map(|(link, number)| {
            let name = format!("gateway {number}");
            hop(&name, link, gateways, None, recording)
        })
        .collect()
}

fn hop_outcome(link: Path<Captures>) -> HopOutcome {
    let link = link.finish();
    HopOutcome {
        counts: link.counts,
        link: link.link,
        gateways: link.gateways,
        captures: link.watch.finish(),
    }
}

/// The link that captures call `name`.
fn hop(
    name: &str,
    link: LinkConfig,
    gateways: Gateways,
    trace: Option<Trace>,
    recording: Recording,
) -> Path<Captures> {
    let captures = Captures::new(name, recording.captures);
    let is_captured = recording.captures;
    Path::new(Instant::ZERO, link, gateways, trace, is_captured, captures)
}
