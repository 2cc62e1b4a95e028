//! What an earlier process has left in its journal and cannot be kept any more.

use outlast_agents::{Agents, Config, Entry, FreezeId, Kept, Left, Limits, Site};
use outlast_base::time::Instant;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{InterfaceId, LinkConfig, LinkId};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_gateway::tracking::{Acquaintance, FrozenFlow, Half};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, Ipv4Addr};

const INTERFACE: InterfaceId = InterfaceId(1);
const ID: FreezeId = FreezeId {
    instance: 7,
    number: 3,
};

/// Entries of a freeze that is over, of which nobody is to hear.
const GONE: [Entry; 2] = [Entry::Removed(ID), Entry::Removed(ID)];

fn link_to(far: IpAddr) -> LinkId {
    LinkId {
        interface: INTERFACE,
        peer: Some(far),
    }
}

/// A connection that is frozen at its first bytes, of which the mobile host has acknowledged none, or
/// too many.
fn kept(is_plausible: bool) -> Kept {
    let (seq, far) = (SeqNumber(1_000), SeqNumber(7_000));
    let ip = IpHeader {
        source: Ipv4Addr::new(192, 0, 2, 1).into(),
        destination: Ipv4Addr::new(198, 51, 100, 1).into(),
        hop_limit: 64,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: 5_000,
        destination_port: 80,
        seq,
        ack: far,
        flags: TcpFlags::ACK,
        window: 60_000,
        ..TcpHeader::default()
    };
    let half = |next: SeqNumber, acked: SeqNumber| Half {
        next,
        acked,
        allowed: Some(acked + 60_000),
        largest_window: 60_000,
        window_scale: Some(0),
        permits_sack: None,
        acquaintance: Acquaintance::Seen,
        fin: None,
    };
    let acked = if is_plausible { seq } else { seq + 5_000 };
    Kept {
        id: ID,
        from: None,
        flow: FrozenFlow {
            near: half(seq + 500, acked),
            far: half(far, far),
            clock: None,
            segment: Packet::tcp_segment(ip, header, &[7; 500]),
        },
    }
}

/// What is written down once `left` was restored at a gateway with `mechanism`: records, removals, and
/// how many packets are sent.
fn written(mechanism: PathMechanismKind, left: Kept) -> (usize, Vec<Entry>, usize) {
    let mut gateway = Gateway::new(GatewayConfig {
        mechanism,
        ..GatewayConfig::default()
    });
    gateway.add_link(Instant::ZERO, INTERFACE, LinkConfig::default());
    let mut agents = Agents::new(Config {
        instance: 8,
        neighbours: vec![],
        mobiles: vec![],
        lost_after: Config::LOST_AFTER,
        limits: Limits::default(),
    });
    let mut site = Site {
        now: Instant::ZERO,
        gateway: &mut gateway,
        link_to: &link_to,
    };
    let left = Left {
        kept: [(left.id, left)].into(),
        ..Left::default()
    };
    agents.restore(&mut site, left);
    let records = std::iter::from_fn(|| agents.poll_record()).count();
    let removals = std::iter::from_fn(|| agents.poll_removal()).collect();
    let packets = std::iter::from_fn(|| agents.poll_packet()).count();
    (records, removals, packets)
}

#[test]
fn what_is_kept_is_written_down_anew() {
    let outcome = written(PathMechanismKind::ZeroWindowAck, kept(true));
    assert_eq!(outcome, (1, vec![], 0));
}

#[test]
fn what_is_reset_because_of_another_mechanism_is_not_found_at_the_next_start() {
    let outcome = written(PathMechanismKind::Hold, kept(true));
    assert_eq!(outcome, (0, GONE.to_vec(), 2));
}

#[test]
fn what_makes_no_sense_is_not_found_at_the_next_start_either() {
    let outcome = written(PathMechanismKind::ZeroWindowAck, kept(false));
    assert_eq!(outcome, (0, GONE.to_vec(), 0));
}
