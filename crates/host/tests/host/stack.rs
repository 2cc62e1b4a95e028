//! A stack whose connections wait for ever, and which notes what is done to them.

use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::InterfaceId;
use outlast_host::control::{
    Action, Connection, ConnectionId, ControlError, EndpointControl, Needless, Outcome,
    Outstanding, Stage, Via,
};
use outlast_wire::SeqNumber;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A stack of connections, and the log of the actions on it.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    pub(crate) connections: Vec<Connection>,
    pub(crate) log: Vec<(Instant, ConnectionId, Action)>,
    pub(crate) lists: u32,
    /// How often it still fails to list its connections.
    pub(crate) fails_to_list: u32,
    /// Whether it can be frozen from outside.
    pub(crate) freezes: bool,
    /// Whether nothing is retransmitted early, as no timer has backed off.
    pub(crate) has_not_backed_off: bool,
    /// What became of what was outstanding in those that thawed.
    pub(crate) thawed: Vec<(ConnectionId, Outstanding)>,
}

/// The address of the router behind every interface.
pub(crate) const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254));

/// Connection `number` over `interface`, which waits for its first acknowledgement after timeouts.
pub(crate) fn connection(number: u16, interface: u32) -> Connection {
    let at = |host, port| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, host)), port);
    Connection {
        id: ConnectionId {
            local: at(1, number),
            remote: at(2, 443),
        },
        via: Some(Via {
            interface: InterfaceId(interface),
            next_hop: Some(ROUTER),
        }),
        stage: Stage::Open,
        snd_una: SeqNumber(1_000),
        snd_nxt: SeqNumber(2_000),
        rcv_nxt: SeqNumber(1),
        timeouts: 3,
        min_rtt: Duration::from_millis(40),
        heard_at: Instant::ZERO,
        sent_at: Instant::ZERO,
        received_at: Instant::ZERO,
        user_timeout: None,
        is_frozen: false,
    }
}

impl Stack {
    /// So many connections over interface 0.
    pub(crate) fn of(count: u16) -> Self {
        Self {
            connections: (0..count).map(|number| connection(number, 0)).collect(),
            ..Self::default()
        }
    }

    /// The actions of one kind.
    pub(crate) fn count(&self, action: Action) -> usize {
        self.log.iter().filter(|entry| entry.2 == action).count()
    }

    fn set_frozen(&mut self, id: ConnectionId, is_frozen: bool) {
        for connection in &mut self.connections {
            if connection.id == id {
                connection.is_frozen = is_frozen;
            }
        }
    }

    fn note(
        &mut self,
        now: Instant,
        id: ConnectionId,
        action: Action,
    ) -> Result<Outcome, ControlError> {
        let known = self
            .connections
            .iter()
            .any(|connection| connection.id == id);
        if !known {
            return Err(ControlError::Unknown(id));
        }
        self.log.push((now, id, action));
        Ok(Outcome::Done)
    }
}

impl EndpointControl for Stack {
    fn connections(&mut self, found: &mut Vec<Connection>) -> Result<(), ControlError> {
        self.lists += 1;
        if self.fails_to_list > 0 {
            self.fails_to_list -= 1;
            return Err(ControlError::Refused {
                action: Action::Freeze,
                code: 105,
            });
        }
        found.extend(&self.connections);
        Ok(())
    }

    fn retransmit_now(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        let outcome = self.note(now, id, Action::Retransmit)?;
        Ok(match self.has_not_backed_off {
            true => Outcome::Needless(Needless::NotBackedOff),
            false => outcome,
        })
    }

    fn fast_retransmit(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.note(now, id, Action::FastRetransmit)
    }

    fn send_duplicate_acks(
        &mut self,
        now: Instant,
        id: ConnectionId,
        _count: u8,
    ) -> Result<Outcome, ControlError> {
        self.note(now, id, Action::DuplicateAcks)
    }

    fn send_marked_ack(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.note(now, id, Action::MarkedAck)
    }

    fn slow_start(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.note(now, id, Action::SlowStart)
    }

    fn set_user_timeout(
        &mut self,
        _now: Instant,
        _id: ConnectionId,
        _timeout: Option<Duration>,
    ) -> Result<Outcome, ControlError> {
        Ok(Outcome::Needless(Needless::Already))
    }

    fn freeze(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        if !self.freezes {
            return Err(ControlError::NotSupported(Action::Freeze));
        }
        self.set_frozen(id, true);
        self.note(now, id, Action::Freeze)
    }

    fn thaw(
        &mut self,
        now: Instant,
        id: ConnectionId,
        outstanding: Outstanding,
    ) -> Result<Outcome, ControlError> {
        self.set_frozen(id, false);
        self.thawed.push((id, outstanding));
        self.note(now, id, Action::Thaw)
    }
}
