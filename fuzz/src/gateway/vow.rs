//! What a gateway may send and keep, whatever it was shown.

use super::{INTERFACES, LINKS, World, is_lone, link, supervises};
use outlast_gateway::gateway::{Event, Transmit};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::links::{LinkId, LinkState};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};
use outlast_gateway::tracking::{FlowKey, Phase};
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader, Transport};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// What the gateway was shown.
#[derive(Default)]
pub(crate) struct Shown {
    to_link: Vec<(LinkId, Packet)>,
    from_link: Vec<(LinkId, Packet)>,
    flows_to_link: BTreeSet<FlowKey>,
    flows_from_link: BTreeSet<FlowKey>,
}

/// Caps as they bind now: what was taken above a lower one stays until it is given back.
pub(crate) struct Bounds {
    held: u64,
    held_other: u64,
    flows: usize,
}

impl Bounds {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            held: limits.held_in_all.as_u64(),
            // One-sided connections have the sixteenth part of what is kept for all.
            held_other: (limits.other_bytes.as_u64() + limits.held_in_all.as_u64() / 16)
                * u64::from(INTERFACES),
            flows: limits.flows,
        }
    }

    /// Other caps, with so much taken.
    pub(crate) fn move_to(&mut self, limits: &Limits) {
        let new = Self::of(limits);
        self.held = self.held.max(new.held);
        self.held_other = self.held_other.max(new.held_other);
        self.flows = self.flows.max(new.flows);
    }

    /// What is used now is all that may be above a cap from now on.
    fn shrink_to(&mut self, used: &Self, limits: &Limits) {
        let caps = Self::of(limits);
        self.held = self.held.min(used.held).max(caps.held);
        // Each interface has its own cap: one that is above it stays there, whatever others take.
        self.held_other = self.held_other.min(used.held_other + caps.held_other);
        self.flows = self.flows.min(used.flows).max(caps.flows);
    }
}

impl World {
    /// What must hold at all times.
    pub(crate) fn check(&mut self) {
        while let Some(transmit) = self.gateway.poll_transmit() {
            self.transmitted += 1;
            self.check_transmit(&transmit);
            if let Some(owed) = &mut self.owed {
                self.brought.push(transmit.packet.clone());
                let brought = || self.brought.iter().rev();
                owed.retain(|owed| !brings(&transmit.packet, owed) && !is_joined(brought(), owed));
            }
            if transmit.direction == ToLink {
                if transmit.reason == SendReason::Reset {
                    self.shown.reset(transmit.link, &transmit.packet);
                }
                self.put_on_link(transmit.link, transmit.packet);
            }
        }
        while let Some(event) = self.gateway.poll_event() {
            match event {
                Event::Frozen { flow } => assert!(self.frozen.insert(flow), "{flow:?} again"),
                Event::Thawed { flow, .. } => {
                    assert!(self.frozen.remove(&flow), "{flow:?} was not")
                }
                Event::Link(_) | Event::Silent { .. } | Event::Resumed { .. } => {}
            }
        }
        assert!(self.frozen.is_empty() || self.may_acknowledge_ahead());
        let gateway = &self.gateway;
        let lost = gateway.counters().flows_displaced + gateway.counters().flows_refused;
        self.sees_all &= lost == 0;
        let used = Bounds {
            held: gateway.held().as_u64(),
            held_other: gateway.held_other().as_u64(),
            flows: gateway.flows(),
        };
        assert!(used.held <= self.bounds.held, "{} held", used.held);
        let (others, most) = (used.held_other, self.bounds.held_other);
        assert!(others <= most, "{others} of others held, {most} at most");
        assert!(used.flows <= self.bounds.flows);
        self.bounds.shrink_to(&used, &self.limits);
        if !self.may_acknowledge_ahead() {
            assert_eq!(gateway.counters().freezes, 0);
        }
    }

    /// The whole table, once at the end of a sequence: it is long.
    pub(crate) fn check_reports(&self) {
        let mut held = 0;
        for report in self.gateway.flow_reports() {
            held += report.held.as_u64();
            let ahead = report.account.acknowledged_ahead;
            assert!(!ahead || self.may_acknowledge_ahead(), "{report:?}");
            assert!(!ahead || report.held.as_u64() > 0, "{report:?}");
            assert!(self.gateway.is_tracked(&report.key));
        }
        assert_eq!(
            held,
            self.gateway.held().as_u64(),
            "what flows hold, is held"
        );
        for number in 0..LINKS {
            let link = link(number);
            let state = self.gateway.link_state(link).map(|link| link.state);
            let is_down = state == Some(LinkState::Down) && self.gateway.has_flows(link);
            assert!(!(is_down && self.gateway.is_at_rest(link)), "{link:?}");
        }
    }

    pub(crate) fn may_acknowledge_ahead(&self) -> bool {
        self.mechanisms
            .iter()
            .any(|mechanism| mechanism.info().acknowledges_ahead)
    }

    /// Whether a hole may be filled for a sender that stands still, with a timestamp that its receiver takes.
    fn may_fill_holes(&self) -> bool {
        let fills = |one: &PathMechanismKind| {
            matches!(one, PathMechanismKind::Hold | PathMechanismKind::Auto)
        };
        self.mechanisms.iter().any(fills)
    }

    fn check_transmit(&self, transmit: &Transmit) {
        let packet = &transmit.packet;
        // Of one that is older than the gateway, what its near host has sent, and questions.
        let is_one_sided = transmit.direction == ToLink
            && matches!(transmit.reason, SendReason::Kept | SendReason::Probe);
        assert!(
            self.shown.may_be_sent(packet) || is_one_sided || transmit.reason == SendReason::Reset,
            "half a connection: {packet:?}"
        );
        match transmit.reason {
            SendReason::WindowClosed | SendReason::WindowOpened => self.check_ahead(transmit),
            SendReason::Supervised => self.check_supervised(transmit),
            SendReason::Reset => {
                assert!(self.may_acknowledge_ahead(), "{transmit:?}");
                assert!(packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::RST)));
                // To whom the connection has ended for, whatever the link does.
                return;
            }
            SendReason::Unreachable => self.check_unreachable(transmit, &[(3, 0), (1, 0)]),
            SendReason::TooBig => {
                assert_eq!(transmit.direction, FromLink, "{transmit:?}");
                self.check_unreachable(transmit, &[(3, 4), (2, 0)]);
            }
            SendReason::Untimed => self.check_untimed(transmit),
            SendReason::Probe | SendReason::Question | SendReason::Overdue => {
                let is_probe = transmit.reason == SendReason::Probe;
                assert!(self.may_probe || !is_probe, "{transmit:?}");
                let flags = packet.tcp().map(|tcp| tcp.flags);
                assert_eq!((flags, packet.sequence_len()), (Some(TcpFlags::ACK), 0));
                assert_eq!(transmit.direction, ToLink);
                self.check_acknowledged(packet);
            }
            _ => self.check_known(transmit),
        }
        if transmit.direction == ToLink {
            let state = self.gateway.link_state(transmit.link).map(|s| s.state);
            assert_eq!(state, Some(LinkState::Up), "{transmit:?}");
        }
    }

    fn check_known(&self, transmit: &Transmit) {
        let shown = match transmit.direction {
            ToLink => &self.shown.to_link,
            FromLink => &self.shown.from_link,
        };
        // What is acknowledged ahead, or kept by a supervisor host, may go out with a timestamp that the
        // receiver takes.
        let supervised = self.mechanisms.iter().any(|one| supervises(*one));
        let may_be_renewed = self.may_acknowledge_ahead() || supervised;
        // So may what a sender without SACK does not repeat after an outage, and nothing echoes a timestamp from before one.
        let is_hole = matches!(
            transmit.reason,
            SendReason::Kept
                | SendReason::Unacknowledged
                | SendReason::RepeatedKick
                | SendReason::NewestAck
                | SendReason::Gathered
                | SendReason::Fresh
        );
        let may_be_filled = may_be_renewed || is_hole && self.may_fill_holes();
        // A reset of the gateway's own waits for the link as a host's does.
        let packet = &transmit.packet;
        let is_reset = packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::RST));
        if is_reset && may_be_renewed && transmit.direction == ToLink {
            return;
        }
        let is_known = |one: &Packet| {
            *one == transmit.packet
                || (may_be_filled && is_same_data(one, &transmit.packet))
                || is_part(&transmit.packet, one)
        };
        if let Some(tcp) = packet.tcp()
            && transmit.direction == ToLink
            && packet.sequence_len() > 0
            && !is_lone(tcp.flags)
            // That its host sends now, and passes.
            && transmit.reason != SendReason::Fresh
            && let Some(key) = FlowKey::of_tcp(packet.header(), ToLink)
            && let Some(flow) = self.known.undisputed(&key).filter(|_| self.sees_all)
            // Before its hosts have met, nobody knows what is acknowledged.
            && flow.phase != Phase::Opening
        {
            let end = tcp.seq + packet.sequence_len();
            assert!(end.after(flow.near.acked), "{flow:?} has {packet:?}");
        }
        let segments = shown.iter().map(|(_, one)| one);
        let is_joined = supervised && is_joined(segments, packet);
        let is_shown = is_joined || shown.iter().rev().any(|(_, one)| is_known(one));
        if !is_shown && matches!(packet.header().transport, Transport::IcmpError(_)) {
            // The link dropped one of the gateway's own, which then waits like any other packet.
            return self.check_unreachable(transmit, &[(3, 0), (1, 0)]);
        }
        assert!(
            is_shown,
            "never shown, for {:?}: {packet:?}",
            transmit.reason
        );
    }

    /// It says what the near host has said, and nothing else.
    fn check_untimed(&self, transmit: &Transmit) {
        let tcp = transmit.packet.tcp().expect("an acknowledgement");
        let has_no_payload = transmit.packet.sequence_len() == 0;
        assert!(transmit.direction == ToLink && has_no_payload, "{tcp:?}");
        assert_eq!((tcp.flags, tcp.options.timestamps), (TcpFlags::ACK, None));
        self.check_acknowledged(&transmit.packet);
    }

    /// What the gateway acknowledges in a near host's name, that host has acknowledged itself; or else it is where the far
    /// host's numbers begin, which acknowledges nothing.
    fn check_acknowledged(&self, packet: &Packet) {
        let tcp = packet.tcp().expect("an acknowledgement");
        let key = FlowKey::of_tcp(packet.header(), ToLink);
        let any = |direction, says: &dyn Fn(&TcpHeader) -> bool| {
            let mut shown = self.shown.seen(direction).iter().rev();
            shown.any(|(_, one)| {
                FlowKey::of_tcp(one.header(), direction) == key && one.tcp().is_some_and(says)
            })
        };
        let is_said = any(ToLink, &|one| one.has(TcpFlags::ACK) && one.ack == tcp.ack);
        let is_first = any(FromLink, &|one| {
            one.has(TcpFlags::SYN) && one.seq == tcp.ack
        });
        assert!(is_said || is_first, "never acknowledged: {tcp:?}");
    }

    /// Only a host of a connection that was seen from both sides gets an error, about its own segment.
    fn check_unreachable(&self, transmit: &Transmit, kinds: &[(u8, u8)]) {
        let Transport::IcmpError(error) = &transmit.packet.header().transport else {
            panic!("{transmit:?} is no error");
        };
        let kind = (error.kind, error.code);
        assert!(kinds.contains(&kind), "{transmit:?}");
        let quoted = error.quoted.expect("it quotes what it is about");
        let (source_port, destination_port) = quoted.ports.expect("a segment");
        let [from, to] = [
            SocketAddr::new(quoted.source, source_port),
            SocketAddr::new(quoted.destination, destination_port),
        ];
        let (near, far) = match transmit.direction {
            FromLink => (from, to),
            ToLink => (to, from),
        };
        let key = FlowKey { near, far };
        let [to_link, from_link] = [&self.shown.flows_to_link, &self.shown.flows_from_link];
        assert!(
            to_link.contains(&key) && from_link.contains(&key),
            "{transmit:?}"
        );
    }

    /// A supervisor host tells the near host nothing that the far host has not acknowledged.
    fn check_supervised(&self, transmit: &Transmit) {
        let packet = &transmit.packet;
        assert_eq!(transmit.direction, FromLink, "{transmit:?}");
        assert!(self.mechanisms.iter().any(|one| supervises(*one)));
        let key = FlowKey::of_tcp(packet.header(), FromLink);
        let (Some(tcp), Some(key)) = (packet.tcp(), key) else {
            panic!("{transmit:?} is no acknowledgement");
        };
        assert!(
            !is_lone(tcp.flags) && tcp.has(TcpFlags::ACK),
            "{transmit:?}"
        );
        // What a tracker elsewhere has not seen sent, the far host may have acknowledged, and have been believed.
        let is_said = || {
            self.said_by_far(key)
                .any(|one| one.has(TcpFlags::ACK) && tcp.ack.at_or_before(one.ack))
        };
        if let Some(flow) = self.known.undisputed(&key).filter(|_| self.sees_all) {
            let is_acked = tcp.ack.at_or_before(flow.near.acked);
            assert!(is_acked || is_said(), "{flow:?}, {transmit:?}");
        }
    }

    /// Segments of a connection's far host, the newest first.
    fn said_by_far(&self, key: FlowKey) -> impl Iterator<Item = &TcpHeader> {
        let packets = self.shown.seen(FromLink).iter().rev();
        let own =
            packets.filter(move |(_, one)| FlowKey::of_tcp(one.header(), FromLink) == Some(key));
        own.filter_map(|(_, one)| one.tcp())
    }

    /// The near host is told nothing but what it has sent, and the gateway has it.
    fn check_ahead(&self, transmit: &Transmit) {
        assert!(self.may_acknowledge_ahead(), "{transmit:?}");
        let packet = &transmit.packet;
        assert_eq!(transmit.direction, FromLink);
        let (tcp, key) = (packet.tcp(), FlowKey::of_tcp(packet.header(), FromLink));
        let (Some(tcp), Some(key)) = (tcp, key) else {
            panic!("{transmit:?} is no acknowledgement");
        };
        assert_eq!((tcp.flags, packet.sequence_len()), (TcpFlags::ACK, 0));
        assert!(transmit.reason == SendReason::WindowOpened || tcp.window == 0);
        let ends_there = |one: &Packet| {
            let of_one = FlowKey::of_tcp(one.header(), ToLink) == Some(key);
            of_one && one.tcp().map(|t| t.seq + one.sequence_len()) == Some(tcp.ack)
        };
        let mut shown = self.shown.to_link.iter().rev();
        assert!(shown.any(|(_, one)| ends_there(one)), "{transmit:?}");
        let report = self.gateway.flow_reports().find(|report| report.key == key);
        let report = report.expect("what is acknowledged ahead is tracked");
        assert!(
            report.account.acknowledged_ahead,
            "{report:?}, {transmit:?}"
        );
        assert!(report.held.as_u64() > 0, "{report:?}, {transmit:?}");
        if let Some(flow) = self.known.undisputed(&key).filter(|_| self.sees_all) {
            assert!(tcp.ack.after(flow.near.acked), "{report:?}, {transmit:?}");
            // Nobody else has what the far host has not acknowledged itself. It may acknowledge what was not seen, which the
            // gateway believes and the tracker elsewhere does not.
            let said = self.shown.seen(FromLink).iter().filter_map(|(_, one)| {
                let of_one = FlowKey::of_tcp(one.header(), FromLink) == Some(key);
                let said = one.tcp().filter(|said| of_one && said.has(TcpFlags::ACK));
                said.map(|said| said.ack)
            });
            let acked = said
                .filter(|said| said.at_or_before(tcp.ack))
                .fold(flow.near.acked, SeqNumber::max);
            let ahead = u64::from(tcp.ack.distance_from(acked).unsigned_abs());
            assert!(report.held.as_u64() >= ahead, "{report:?}, {transmit:?}");
        }
    }
}

impl Shown {
    pub(crate) fn note(&mut self, link: LinkId, direction: Direction, packet: &Packet) {
        let (packets, flows) = match direction {
            ToLink => (&mut self.to_link, &mut self.flows_to_link),
            FromLink => (&mut self.from_link, &mut self.flows_from_link),
        };
        packets.push((link, packet.clone()));
        flows.extend(FlowKey::of_tcp(packet.header(), direction));
    }

    /// Another gateway has seen both hosts of this connection, and has this segment of it.
    pub(crate) fn believe(&mut self, link: LinkId, segment: &Packet) {
        self.note(link, ToLink, segment);
        self.flows_from_link
            .extend(FlowKey::of_tcp(segment.header(), ToLink));
    }

    /// The gateway has reset a connection: if the link drops that, it may come again.
    fn reset(&mut self, link: LinkId, packet: &Packet) {
        self.to_link.push((link, packet.clone()));
    }

    /// What has crossed in `direction`, and where.
    pub(crate) fn seen(&self, direction: Direction) -> &[(LinkId, Packet)] {
        match direction {
            ToLink => &self.to_link,
            FromLink => &self.from_link,
        }
    }

    /// Segments may be sent where both hosts were seen; a packet that stands for itself always.
    pub(crate) fn may_be_sent(&self, packet: &Packet) -> bool {
        packet.tcp().is_none_or(|tcp| is_lone(tcp.flags))
            || [ToLink, FromLink].into_iter().any(|direction| {
                FlowKey::of_tcp(packet.header(), direction).is_some_and(|key| {
                    self.flows_to_link.contains(&key) && self.flows_from_link.contains(&key)
                })
            })
    }
}

/// Whether one is the other but for its timestamps.
fn is_same_data(one: &Packet, other: &Packet) -> bool {
    let (Some(a), Some(b)) = (one.tcp(), other.tcp()) else {
        return false;
    };
    (a.seq, a.ack, a.flags, one.sequence_len()) == (b.seq, b.ack, b.flags, other.sequence_len())
        && FlowKey::of_tcp(one.header(), ToLink) == FlowKey::of_tcp(other.header(), ToLink)
}

/// True if `part` is some of what `whole` carries towards the link, whose path takes less.
fn is_part(part: &Packet, whole: &Packet) -> bool {
    let (Some(a), Some(b)) = (part.tcp(), whole.tcp()) else {
        return false;
    };
    let len = part.header().payload_len;
    let Ok(from) = u32::try_from(a.seq.distance_from(b.seq)) else {
        return false;
    };
    let is_of_one_flow =
        FlowKey::of_tcp(part.header(), ToLink) == FlowKey::of_tcp(whole.header(), ToLink);
    let is_shorter = part.total_len() < whole.total_len() && len > 0;
    is_of_one_flow && is_shorter && a.ack == b.ack && agree((whole, from), (part, 0), len)
}

/// Whether all payload of `packet` is, byte by byte, that of segments of its flow that were shown: a supervisor host joins
/// small ones.
fn is_joined<'a>(shown: impl Iterator<Item = &'a Packet> + Clone, packet: &Packet) -> bool {
    let Some(tcp) = packet.tcp() else {
        return false;
    };
    let flow = FlowKey::of_tcp(packet.header(), ToLink);
    let whole = packet.header().payload_len;
    let mut done = 0;
    while done < whole {
        let part = |one: &'a Packet| {
            let of = one.tcp()?;
            let passed = u32::try_from((tcp.seq + done).distance_from(of.seq)).ok()?;
            let len = one.header().payload_len.checked_sub(passed)?;
            let len = len.min(whole - done);
            let is_part = FlowKey::of_tcp(one.header(), ToLink) == flow
                && agree((one, passed), (packet, done), len);
            (is_part && len > 0).then_some(len)
        };
        let Some(len) = shown.clone().find_map(part) else {
            return false;
        };
        done += len;
    }
    whole > 0
}

/// Whether two packets have the same `len` bytes of payload, each from a position on.
fn agree((one, at): (&Packet, u32), (other, there): (&Packet, u32), len: u32) -> bool {
    let bytes = |packet: &Packet, from: u32| {
        let end = from.checked_add(len)?;
        Some(packet.payload()?.get(from as usize..end as usize)?.to_vec())
    };
    let modelled = |packet: &Packet, from: u32| {
        let payload = packet.modelled()?;
        Some((payload.stream, payload.offset + u64::from(from)))
    };
    let bytes = [bytes(one, at), bytes(other, there)];
    let modelled = [modelled(one, at), modelled(other, there)];
    bytes[0].is_some() && bytes[0] == bytes[1]
        || modelled[0].is_some() && modelled[0] == modelled[1]
}

/// Whether who gets one has all that is in the other.
fn brings(one: &Packet, other: &Packet) -> bool {
    let (Some(a), Some(b)) = (one.tcp(), other.tcp()) else {
        return one == other;
    };
    let is_within = a.seq.at_or_before(b.seq)
        && (b.seq + other.sequence_len()).at_or_before(a.seq + one.sequence_len());
    let is_of_one_flow =
        FlowKey::of_tcp(one.header(), ToLink) == FlowKey::of_tcp(other.header(), ToLink);
    one == other || (is_of_one_flow && is_within && other.sequence_len() > 0)
}
