//! Serving connections: each has its mechanism, which is called here with all that it may see.
//!
//! This part owns the choice of the mechanism and its rules, the memory that all mechanisms share, and their
//! deadlines. A call leaves packets and events in the outbox, and returns the [`Wishes`] that other parts
//! fulfil.

use crate::connections::{Connection, Connections, Entry};
use crate::event::{Event, Outbox, Transmit};
use crate::limits::{Limits, Memory};
use crate::links::{LinkState, StateSince};
use crate::mechanisms::path::{
    Context, HoldRule, HoldRules, PathMechanism, PathMechanismKind, Retention, Standing, Waiting,
};
use crate::release::{Allotment, INITIAL_BURST};
use crate::timers::Timers;
use crate::tracking::{FlowIndex, FlowKey};
use outlast_base::time::Instant;
use outlast_base::units::ByteCount;

/// What serves connections.
#[derive(Debug)]
pub(crate) struct Service {
    kind: PathMechanismKind,
    rules: HoldRules,
    memory: Memory,
    timers: Timers,
    /// What is left of the bytes that go out after a return to hosts of which it is not known that they wait.
    unasked: u64,
}

/// What a mechanism sees of its link when it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    pub(crate) now: Instant,
    pub(crate) link: StateSince,
    /// The link is suspected to be down because it leaves data unanswered.
    pub(crate) is_suspected: bool,
    /// New data goes no faster than what was kept.
    pub(crate) is_paced: bool,
    /// What of the link's rate the connection gets, if that is shared out.
    pub(crate) allotment: Option<Allotment>,
}

/// What a mechanism wants after a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    /// A turn to send this.
    pub(crate) turn: Option<Waiting>,
    /// Whether its place among those that the table evicts changes: something acknowledged ahead is kept from now on, or no
    /// longer.
    pub(crate) changes_shelf: bool,
}

impl Service {
    /// Serves each connection with a mechanism of `kind`; mechanisms share `cap` bytes of memory.
    pub(crate) fn new(kind: PathMechanismKind, cap: ByteCount) -> Self {
        Self {
            kind,
            rules: HoldRules::default(),
            memory: Memory::new(cap),
            timers: Timers::default(),
            unasked: 0,
        }
    }

    /// The mechanism of connections that begin now.
    pub(crate) const fn kind(&self) -> PathMechanismKind {
        self.kind
    }

    /// Whether this is a supervisor host of M-TCP.
    pub(crate) const fn supervises(&self) -> bool {
        matches!(
            self.kind,
            PathMechanismKind::MTcp | PathMechanismKind::MTcpAdaptive
        )
    }

    /// Another mechanism for connections that begin from now on.
    pub(crate) const fn set_kind(&mut self, kind: PathMechanismKind) {
        self.kind = kind;
    }

    /// Other rules of `hold` from now on.
    pub(crate) const fn set_rules(&mut self, rules: HoldRules) {
        self.rules = rules;
    }

    /// Whether a mechanism of this kind asks far hosts after an outage whether they wait.
    pub(crate) fn asks_the_idle(&self) -> bool {
        self.kind.asks() && self.obeys(HoldRule::AskFar)
    }

    /// A link is back. As much as may go out where nothing is known of a link (RFC 6928) is for hosts of which it is not
    /// known that they wait.
    pub(crate) const fn welcome(&mut self) {
        self.unasked = INITIAL_BURST;
    }

    /// Whether `rule` is obeyed.
    pub(crate) fn obeys(&self, rule: HoldRule) -> bool {
        self.rules.has(rule)
    }

    /// Another cap of the memory from now on.
    pub(crate) const fn set_cap(&mut self, cap: ByteCount) {
        self.memory.set_cap(cap);
    }

    /// Bytes kept for all connections.
    pub(crate) const fn held(&self) -> ByteCount {
        self.memory.budget.used()
    }

    /// The earliest deadline of a mechanism.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// A connection whose mechanism's deadline has come: it has none from now on.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<FlowIndex> {
        self.timers.take_due(now)
    }

    /// Gives the connection a mechanism, unless it has one: something comes that a mechanism must see. If the link is down
    /// it is told so, as those were that saw it go.
    pub(crate) fn wake(
        &mut self,
        entry: &mut Entry<'_>,
        surroundings: Surroundings,
        limits: &Limits,
        outbox: &mut Outbox,
    ) {
        let connection = &mut *entry.connection;
        if connection.mechanism.is_some() {
            return;
        }
        connection.mechanism = self.kind.for_flow();
        let link = connection.known_link_state;
        if link.state == LinkState::Down {
            let surroundings = Surroundings {
                link,
                ..surroundings
            };
            self.serve(entry, surroundings, limits, outbox, |mechanism, cx| {
                mechanism.handle_link(cx);
            });
        }
    }

    /// Prepares a call of [`Self::serve`]: while memory is scarce, what each of the `connections` keeps counts.
    #[inline]
    pub(crate) fn take_stock(&mut self, connections: &Connections) {
        self.memory.count_if_scarce(|| {
            let all = connections.iter();
            all.map(|(key, _, connection)| (key.far.ip(), connection.held.0))
        });
    }

    /// Calls a connection's mechanism; `None` if it has none.
    #[inline]
    pub(crate) fn serve<R>(
        &mut self,
        entry: &mut Entry<'_>,
        surroundings: Surroundings,
        limits: &Limits,
        outbox: &mut Outbox,
        call: impl FnOnce(&mut dyn PathMechanism, &mut Context<'_>) -> R,
    ) -> Option<(R, Wishes)> {
        let far_host = entry.far_host();
        self.memory.allot(far_host);
        let Entry {
            key, connection, ..
        } = entry;
        let sack = connection.tracked.sack();
        let mechanism = connection.mechanism.as_mut()?;
        let (mut resumed, mut arrived, mut instead) = (None, 0, None);
        let used = self.memory.budget.used();
        let Surroundings {
            now,
            link,
            is_suspected,
            is_paced,
            allotment,
        } = surroundings;
        let mut cx = Context {
            now,
            key,
            flow: &connection.tracked,
            link,
            is_suspected,
            is_paced,
            allotment,
            near_host_proxy: connection.silence.near_host,
            sack,
            rules: self.rules,
            retention: Retention::default(),
            limits,
            budget: &mut self.memory.budget,
            counters: &mut outbox.counters,
            unasked: &mut self.unasked,
            resumed: &mut resumed,
            arrived: &mut arrived,
            instead: &mut instead,
        };
        let result = call(mechanism.as_mut(), &mut cx);
        self.memory
            .note_served(far_host, &mut connection.held, used);
        if let Some(after) = resumed {
            outbox.tell(Event::Resumed {
                flow: *key,
                link: connection.link,
                after,
                round_trip: connection.tracked.rtt.measured(),
            });
        }
        if let Some((direction, packet, reason)) = instead {
            // In its place among what crosses, so that no turn is waited for.
            outbox.send(Transmit {
                link: connection.link,
                direction,
                packet,
                reason,
            });
        }
        Some((result, self.take_wishes(entry, outbox)?))
    }

    /// Takes note of when a mechanism wants to be called and of what it has made of its connection, and returns
    /// what else it wants.
    fn take_wishes(&mut self, entry: &mut Entry<'_>, outbox: &mut Outbox) -> Option<Wishes> {
        let Entry {
            index,
            key,
            connection,
        } = entry;
        let mechanism = connection.mechanism.as_ref()?;
        let wanted = mechanism.poll_timeout();
        self.timers.set(*index, &mut connection.deadline, wanted);
        let is_pledged = mechanism.account().acknowledged_ahead;
        let changes_shelf =
            core::mem::replace(&mut connection.is_pledged, is_pledged) != is_pledged;
        let standing = mechanism.standing();
        let was = core::mem::replace(&mut connection.standing, standing);
        if was != standing {
            outbox.tell_if(Event::of_standing(*key, was, standing));
        }
        Some(Wishes {
            turn: mechanism.waiting(),
            changes_shelf,
        })
    }

    /// Frees memory of a connection that is idle.
    ///
    /// The mechanism is dropped if a new one can replace it at the next packet; any other mechanism shrinks.
    pub(crate) fn rest(&mut self, now: Instant, entry: &mut Entry<'_>) {
        let far_host = entry.far_host();
        let connection = &mut *entry.connection;
        let is_up =
            connection.known_link_state.state == LinkState::Up && connection.deadline.is_none();
        let Some(mechanism) = connection.mechanism.as_mut().filter(|_| is_up) else {
            return;
        };
        let used = self.memory.budget.used();
        let rests = mechanism.may_rest(now, &connection.tracked);
        match rests {
            true => mechanism.release(&mut self.memory.budget),
            false => mechanism.rest(&mut self.memory.budget),
        }
        self.memory
            .note_served(far_host, &mut connection.held, used);
        if rests {
            connection.mechanism = None;
        }
    }

    /// The connection has left the table: its mechanism gives all memory back, and has no deadline.
    pub(crate) fn see_off(&mut self, index: FlowIndex, key: &FlowKey, connection: &mut Connection) {
        self.timers.set(index, &mut connection.deadline, None);
        if let Some(mechanism) = &mut connection.mechanism {
            mechanism.release(&mut self.memory.budget);
        }
        self.memory.note_gone(key.far.ip(), &mut connection.held);
    }

    /// Another connection has the addresses and ports: nothing that was made of the old one holds. Whoever
    /// follows what is frozen hears that it is not.
    pub(crate) fn begin_anew(&mut self, entry: &mut Entry<'_>, outbox: &mut Outbox) {
        let far_host = entry.far_host();
        let Entry {
            key, connection, ..
        } = entry;
        connection.is_proven = false;
        connection.is_pledged = false;
        let was = core::mem::take(&mut connection.standing);
        if let Some(mut old) = connection.mechanism.take() {
            old.release(&mut self.memory.budget);
            self.memory.note_gone(far_host, &mut connection.held);
        }
        outbox.tell_if(Event::of_standing(*key, was, Standing::Running));
    }
}
