//! The host agents beside the endpoints, and the stack that they act on.
//!
//! The agent of the mobile hears of the mobile's link: carrier where there is one link, another
//! route where the mobile goes from gateway to gateway. The agent of the fixed host hears nothing but
//! the packets of the mobile. With HIP, both hear of each readdressing, and of nothing else. The mobile's link is the only disconnecting link that either knows.

use crate::flow::Flow;
use crate::path::LINK;
use crate::side::Side;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, LinkEvent, LinkState};
use outlast_host::control::{
    Connection, ConnectionId, ControlError, EndpointControl, Outcome, Outstanding, Via,
};
use outlast_host::{Counters, Host, HostConfig, Mechanism};
use outlast_tcp::Endpoint;

/// The agents of both hosts, by [`Side::index`].
#[derive(Debug)]
pub(crate) struct Agents {
    hosts: [Option<Host>; 2],
    /// Who tells the mobile that its link went or came.
    indicator: Indicator,
    /// Connections that were acted on, by their place.
    touched: Vec<usize>,
}

impl Agents {
    pub(crate) fn new(now: Instant, mechanisms: [Option<Mechanism>; 2], is_roaming: bool) -> Self {
        Self {
            hosts: mechanisms.map(|mechanism| Some(Host::new(now, HostConfig::new(mechanism?)))),
            indicator: if is_roaming {
                Indicator::Route
            } else {
                Indicator::Carrier
            },
            touched: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn has(&self, side: Side) -> bool {
        self.hosts[side.index()].is_some()
    }

    pub(crate) fn counters(&self) -> [Option<Counters>; 2] {
        let counters = |host: &Option<Host>| host.as_ref().map(|host| *host.counters());
        self.hosts.each_ref().map(counters)
    }

    pub(crate) fn poll_timeout(&self, side: Side) -> Option<Instant> {
        let host = self.hosts[side.index()].as_ref()?;
        host.poll_timeout().map(|(at, _)| at)
    }

    /// The mobile's link has changed. The caller drains the connections of
    /// [`poll_touched`](Self::poll_touched) after this and each of the following.
    pub(crate) fn handle_carrier(&mut self, now: Instant, state: LinkState, flows: Flows<'_>) {
        let event = LinkEvent {
            link: LINK,
            state,
            indicator: self.indicator,
        };
        self.act(flows, Side::Mobile, |host, stack| {
            host.handle_link(now, event, stack);
        });
    }

    /// The host of `side` knows by a readdressing that packets pass again, and so does the other.
    pub(crate) fn handle_update(&mut self, now: Instant, side: Side, flows: Flows<'_>) {
        let event = LinkEvent {
            link: LINK,
            state: LinkState::Up,
            indicator: Indicator::MobilityUpdate,
        };
        self.act(flows, side, |host, stack| {
            host.handle_link(now, event, stack);
        });
    }

    /// The endpoint at `side` of the flow at `place` has taken a packet, before which it was as
    /// `before`.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        side: Side,
        place: usize,
        before: &Connection,
        flows: Flows<'_>,
    ) {
        if let Some(after) = connection(flows.flows[place].endpoint_mut(side)) {
            self.act(flows, side, |host, stack| {
                host.handle_packet(now, before, &after, stack);
            });
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, side: Side, flows: Flows<'_>) {
        self.act(flows, side, |host, stack| host.handle_timeout(now, stack));
    }

    /// A connection that was acted on.
    pub(crate) fn poll_touched(&mut self) -> Option<usize> {
        self.touched.pop()
    }

    fn act(&mut self, flows: Flows<'_>, side: Side, act: impl FnOnce(&mut Host, &mut Stack<'_>)) {
        let Some(host) = &mut self.hosts[side.index()] else {
            return;
        };
        let mut stack = Stack {
            flows,
            side,
            touched: &mut self.touched,
        };
        act(host, &mut stack);
        while host.poll_event().is_some() {}
    }
}

/// The connections of the world.
#[derive(Debug)]
pub(crate) struct Flows<'a> {
    pub(crate) flows: &'a mut [Flow],
    /// The place of each flow of the setup in `flows`.
    pub(crate) places: &'a [usize],
}

/// The stack of one host.
#[derive(Debug)]
struct Stack<'a> {
    flows: Flows<'a>,
    side: Side,
    touched: &'a mut Vec<usize>,
}

impl Stack<'_> {
    fn endpoint(&mut self, id: ConnectionId) -> Result<&mut Endpoint, ControlError> {
        let number = Flow::number_of((id.local.port(), id.remote.port()));
        let place = self.flows.places.get(number).copied();
        let found = place.and_then(|place| Some((place, self.flows.flows.get_mut(place)?)));
        let (place, flow) = found.ok_or(ControlError::Unknown(id))?;
        self.touched.push(place);
        Ok(flow.endpoint_mut(self.side))
    }
}

/// The connection of `endpoint`, if it has data outstanding or is frozen.
pub(crate) fn waiting(endpoint: &mut Endpoint) -> Option<Connection> {
    connection(endpoint).filter(|one| one.is_outstanding() || one.is_frozen)
}

/// The connection of `endpoint`, if it may be acted on.
fn connection(endpoint: &mut Endpoint) -> Option<Connection> {
    let mut found = Vec::new();
    endpoint.connections(&mut found).ok()?;
    found.pop().map(with_way)
}

/// Every connection leaves by the one link that there is.
fn with_way(connection: Connection) -> Connection {
    Connection {
        via: Some(Via {
            interface: LINK.interface,
            next_hop: None,
        }),
        ..connection
    }
}

impl EndpointControl for Stack<'_> {
    fn connections(&mut self, found: &mut Vec<Connection>) -> Result<(), ControlError> {
        let before = found.len();
        for flow in &mut *self.flows.flows {
            flow.endpoint_mut(self.side).connections(found)?;
        }
        for connection in &mut found[before..] {
            *connection = with_way(*connection);
        }
        Ok(())
    }

    fn retransmit_now(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        EndpointControl::retransmit_now(self.endpoint(id)?, now, id)
    }

    fn fast_retransmit(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.endpoint(id)?.fast_retransmit(now, id)
    }

    fn send_duplicate_acks(
        &mut self,
        now: Instant,
        id: ConnectionId,
        count: u8,
    ) -> Result<Outcome, ControlError> {
        EndpointControl::send_duplicate_acks(self.endpoint(id)?, now, id, count)
    }

    fn send_marked_ack(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        EndpointControl::send_marked_ack(self.endpoint(id)?, now, id)
    }

    fn slow_start(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        EndpointControl::slow_start(self.endpoint(id)?, now, id)
    }

    fn set_user_timeout(
        &mut self,
        now: Instant,
        id: ConnectionId,
        timeout: Option<Duration>,
    ) -> Result<Outcome, ControlError> {
        EndpointControl::set_user_timeout(self.endpoint(id)?, now, id, timeout)
    }

    fn freeze(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        EndpointControl::freeze(self.endpoint(id)?, now, id)
    }

    fn thaw(
        &mut self,
        now: Instant,
        id: ConnectionId,
        outstanding: Outstanding,
    ) -> Result<Outcome, ControlError> {
        EndpointControl::thaw(self.endpoint(id)?, now, id, outstanding)
    }
}
