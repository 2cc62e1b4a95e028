//! One connection: an endpoint on either host, and their applications.

use crate::outcome::{FlowOutcome, Lost};
use crate::recovery::Returns;
use crate::setup::{FlowSetup, Stack};
use crate::side::{IpVersion, Side};
use crate::workload::Application;
use alloc::format;
use core::net::SocketAddr;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_tcp::{Config, Endpoint, Error, Event, UserTimeoutOption};
use outlast_wire::SeqNumber;
use outlast_wire::pattern::Content;

/// The port of all servers.
const SERVER_PORT: u16 = 5_001;
/// The client's port of the first flow; those of others follow.
const FIRST_CLIENT_PORT: u16 = 40_000;
/// Where a host's tick counter may stand when the simulation begins: more than the period of the
/// slowest heartbeat, and of a timer wheel's level for the longest timeouts.
const CLOCK_PHASES: u64 = 1 << 36;

/// What all flows of a world have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) seed: u64,
    pub(crate) ip: IpVersion,
    pub(crate) mtu: u16,
    /// What applications send.
    pub(crate) content: Content,
    /// By [`Side::index`].
    pub(crate) clock_phases: [Duration; 2],
    /// Bytes that the links carry in half a second to each [`Side`]; `None` without a rate.
    pub(crate) half_second: [Option<u64>; 2],
}

impl Common {
    pub(crate) fn new(
        seed: u64,
        (ip, mtu): (IpVersion, u16),
        content: Content,
        clock_phases: Option<[Duration; 2]>,
        half_second: [Option<u64>; 2],
    ) -> Self {
        let mut random = Stream::new(seed, "sim.clocks");
        let mut phase = || Duration::from_nanos(random.next_u64() % CLOCK_PHASES);
        let drawn = [phase(), phase()];
        let clock_phases = clock_phases.unwrap_or(drawn);
        Self {
            seed,
            ip,
            mtu,
            content,
            clock_phases,
            half_second,
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Flow {
    /// By [`Side::index`].
    ends: [End; 2],
    application: Application,
    receiver: Side,
    returns: Returns,
    began: Instant,
    ended: Option<Instant>,
    end_is_taken: bool,
    lost: Option<Lost>,
    /// By [`Side::index`].
    failures: [Option<Error>; 2],
    number: usize,
}

#[derive(Debug)]
struct End {
    endpoint: Endpoint,
    /// What the application has written and the send buffer had no room for.
    unsent: u64,
    received: u64,
}

impl Flow {
    /// Flow `number`: the fixed host listens, the mobile opens at `now`.
    pub(crate) fn open(now: Instant, number: usize, setup: &FlowSetup, common: &Common) -> Self {
        let mut random = Stream::new(common.seed, &format!("sim.flow.{number}"));
        let client = config(&mut random, number, Side::Mobile, setup, common);
        let mut server = config(&mut random, number, Side::Fixed, setup, common);
        (server.stream_out, server.stream_in) = (client.stream_in, client.stream_out);
        let end = |endpoint| End {
            endpoint,
            unsent: 0,
            received: 0,
        };
        Self {
            ends: [
                end(Endpoint::listen(server)),
                end(Endpoint::connect(now, client)),
            ],
            application: setup.workload.application(),
            receiver: setup.workload.receiver(),
            returns: Returns::new(common.half_second[setup.workload.receiver().index()]),
            began: now,
            ended: None,
            end_is_taken: false,
            lost: None,
            failures: [None; 2],
            number,
        }
    }

    /// The number of the flow to whose client or server port a packet belongs.
    #[inline]
    pub(crate) fn number_of(ports: (u16, u16)) -> usize {
        let (source, destination) = ports;
        let client = if source == SERVER_PORT {
            destination
        } else {
            source
        };
        usize::from(client.wrapping_sub(FIRST_CLIENT_PORT))
    }

    #[inline]
    pub(crate) fn endpoint(&self, side: Side) -> &Endpoint {
        &self.ends[side.index()].endpoint
    }

    #[inline]
    pub(crate) fn endpoint_mut(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side.index()].endpoint
    }

    /// Lets the application of `side` react to an event of its endpoint.
    pub(crate) fn handle_event(&mut self, now: Instant, side: Side, event: Event) {
        if let Event::Failed(error) = event {
            self.failures[side.index()].get_or_insert(error);
        }
        match event {
            Event::Connected => {
                let bytes = self.application.connected(now, side);
                self.write(now, side, bytes);
            }
            Event::Readable => self.read(now, side),
            Event::Writable => self.write(now, side, 0),
            Event::Failed(error) if self.ended.is_none() => {
                self.lost = Some(Lost { side, error });
                self.ended = Some(now);
            }
            Event::PeerClosed | Event::Closed | Event::Failed(_) => {}
        }
        self.note_completion(now);
    }

    pub(crate) fn handle_application_timeout(&mut self, now: Instant) {
        let writes = self.application.handle_timeout(now);
        for side in Side::BOTH {
            self.write(now, side, writes[side.index()]);
        }
        self.note_completion(now);
    }

    #[inline]
    pub(crate) fn poll_application_timeout(&self) -> Option<Instant> {
        match self.ended {
            Some(_) => None,
            None => self.application.poll_timeout(),
        }
    }

    /// Whether the workload or the connection has come to its end; true only once.
    #[inline]
    pub(crate) fn take_end(&mut self) -> bool {
        let is_news = self.ended.is_some() && !self.end_is_taken;
        self.end_is_taken |= is_news;
        is_news
    }

    /// Payload bytes that its receiver has.
    pub(crate) fn received(&self) -> u64 {
        self.ends[self.receiver.index()].received
    }

    /// Updates that the mobile saw; `None` unless interactive.
    pub(crate) fn updates(&self) -> Option<u32> {
        self.application.updates()
    }

    /// The flow's place in the setup.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Nothing more is to be done with the connection.
    pub(crate) fn close(&mut self, now: Instant) {
        for end in &mut self.ends {
            end.endpoint.close(now);
        }
    }

    pub(crate) fn link_up(&mut self, now: Instant) {
        // Other flows may go on.
        if self.ended.is_none() {
            self.returns.link_up(now);
        }
    }

    pub(crate) fn outcome(&self, now: Instant) -> FlowOutcome {
        let is_complete = self.ended.is_some() && self.lost.is_none();
        let recoveries = self.returns.recoveries();
        FlowOutcome {
            number: self.number,
            client_port: client_port(self.number),
            is_complete,
            began: self.began,
            ended: self.ended.unwrap_or(now),
            lost: self.lost,
            failures: self.failures,
            receiver: self.receiver,
            received: [0, 1].map(|side: usize| self.ends[side].received),
            resumed: recoveries.iter().map(|back| back.first).collect(),
            recoveries,
            endpoints: [0, 1].map(|side: usize| *self.ends[side].endpoint.counters()),
            updates: self.application.updates(),
        }
    }

    #[inline]
    fn read(&mut self, now: Instant, side: Side) {
        let end = &mut self.ends[side.index()];
        let bytes = end.endpoint.recv(now, u64::MAX);
        if bytes == 0 || self.ended.is_some() {
            return;
        }
        end.received += bytes;
        if side == self.receiver {
            self.returns.delivered(now, bytes);
        }
        let answer = self.application.received(now, side, bytes);
        self.write(now, side, answer);
    }

    #[inline]
    fn write(&mut self, now: Instant, side: Side, bytes: u64) {
        let end = &mut self.ends[side.index()];
        end.unsent += bytes;
        if end.unsent > 0 {
            end.unsent -= end.endpoint.send(now, end.unsent);
        }
    }

    #[inline]
    fn note_completion(&mut self, now: Instant) {
        if self.ended.is_none() && self.application.is_complete() {
            self.ended = Some(now);
        }
    }
}

/// The mobile's port of flow `number`.
fn client_port(number: usize) -> u16 {
    FIRST_CLIENT_PORT + u16::try_from(number).unwrap_or(0)
}

/// The endpoint of `side`, with numbers of its own from `random`.
fn config(
    random: &mut Stream,
    number: usize,
    side: Side,
    setup: &FlowSetup,
    common: &Common,
) -> Config {
    let address = |side: Side| {
        let port = match side {
            Side::Fixed => SERVER_PORT,
            Side::Mobile => client_port(number),
        };
        SocketAddr::new(side.address(common.ip), port)
    };
    let mut bits = || random.next_u64();
    let Stack {
        profile,
        congestion,
        sack,
        timestamps,
        retries,
        max_rto,
        receive_buffer,
        user_timeout,
    } = setup.stacks[side.index()];
    Config {
        profile,
        stream_out: common.content.stream(bits()),
        stream_in: common.content.stream(bits()),
        iss: SeqNumber((bits() >> 32) as u32),
        timestamp_offset: (bits() >> 32) as u32,
        mtu: common.mtu,
        congestion,
        sack,
        timestamps,
        retries,
        rto_bounds: max_rto.map(|longest| (*profile.min_rto, longest)),
        receive_buffer,
        user_timeout,
        // Who has one tells the peer (RFC 5482).
        user_timeout_option: user_timeout.map(|advertise| UserTimeoutOption {
            advertise,
            ..UserTimeoutOption::default()
        }),
        // The lab's sockets have TCP_NODELAY.
        nagle: false,
        clock_phase: common.clock_phases[side.index()],
        ..Config::new(address(side), address(side.peer()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_takes_less_than_ten_kilobytes_besides_its_buffers() {
        assert!(size_of::<Flow>() < 10_000, "{}", size_of::<Flow>());
    }
}
