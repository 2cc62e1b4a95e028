//! Frozen connections that one gateway hands to another.

use crate::path::{LINK, MSS, Path, Sent};
use outlast_base::units::ByteCount;
use outlast_gateway::gateway::{Event, ImportError, Imported};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::{Direction, LinkId};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};
use outlast_gateway::tracking::{FlowKey, FrozenFlow, Half, Implausible};
use outlast_wire::{ModelledPayload, Packet, TcpFlags, TcpHeader};

fn path() -> Path {
    Path::established(PathMechanismKind::ZeroWindowAck)
}

/// A gateway that has not seen the connection.
fn elsewhere() -> Path {
    Path::new(PathMechanismKind::ZeroWindowAck)
}

fn flow(path: &Path) -> FlowKey {
    FlowKey::of_tcp(path.data_packet(0, MSS).header(), Direction::ToLink).expect("a segment")
}

/// Nine segments were lost, the oldest of which is kept and acknowledged.
fn frozen() -> Path {
    let mut path = path();
    for n in 0..9 {
        path.data(n * MSS, MSS);
    }
    path.down();
    path.after_ms(2_000);
    assert_eq!(path.sent(), [Sent::Rereceived(MSS)]);
    path
}

fn standings(path: &mut Path) -> Vec<Event> {
    let events = std::iter::from_fn(|| path.gateway.poll_event());
    events
        .filter(|event| matches!(event, Event::Frozen { .. } | Event::Thawed { .. }))
        .collect()
}

fn export(path: &mut Path) -> FrozenFlow {
    let flow = flow(path);
    path.gateway.export_frozen(flow).expect("it is frozen")
}

fn import(path: &mut Path, frozen: &FrozenFlow) -> Result<Imported, ImportError> {
    path.gateway.import_frozen(path.now(), LINK, frozen, true)
}

/// What the gateway has sent, and whether each was a reset.
fn resets(path: &mut Path) -> Vec<(Direction, u32)> {
    let sent: Vec<_> = std::iter::from_fn(|| path.gateway.poll_transmit()).collect();
    let resets = sent.into_iter().filter(|t| t.reason == SendReason::Reset);
    resets
        .map(|transmit| {
            let tcp = transmit.packet.tcp().expect("a segment");
            assert!(tcp.flags.contains(TcpFlags::RST));
            assert!(transmit.packet.checksums_ok());
            (transmit.direction, tcp.seq.0)
        })
        .collect()
}

fn both(path: &Path) -> [(Direction, u32); 2] {
    [
        (Direction::FromLink, path.far_number(0).0),
        (Direction::ToLink, path.near_number(0).0),
    ]
}

#[test]
fn who_is_told_knows_of_a_freeze_before_the_near_host_does() {
    let mut path = path();
    path.data(0, MSS);
    path.down();
    let flow = flow(&path);
    path.after_ms(39);
    assert_eq!(standings(&mut path), []);
    path.after_ms(1);
    assert_eq!(standings(&mut path), [Event::Frozen { flow }]);
    assert_eq!(path.gateway.frozen_behind(LINK), [flow]);
    assert_eq!(path.sent(), [Sent::Rereceived(MSS)]);
    path.up();
    path.far_ack(MSS);
    let is_reset = false;
    assert_eq!(standings(&mut path), [Event::Thawed { flow, is_reset }]);
    assert_eq!(path.gateway.frozen_behind(LINK), []);
}

#[test]
fn a_gateway_that_never_saw_the_connection_delivers_its_segment_until_it_is_acknowledged() {
    let mut old = frozen();
    let frozen = export(&mut old);
    let mut new = elsewhere();
    let flow = flow(&new);
    assert_eq!(import(&mut new, &frozen), Ok(Imported::Frozen));
    assert_eq!(standings(&mut new), [Event::Frozen { flow }]);
    assert_eq!(new.sent(), [Sent::Data(0, MSS, 0)]);
    new.after_ms(200);
    assert_eq!(new.sent(), [Sent::Data(0, MSS, 0)]);
    new.far_ack(MSS);
    let is_reset = false;
    assert_eq!(standings(&mut new), [Event::Thawed { flow, is_reset }]);
    assert_eq!(new.gateway.held(), ByteCount(0));
    new.after_ms(60_000);
    assert_eq!(new.sent(), []);
}

#[test]
fn a_gateway_that_saw_only_the_probe_loop_takes_the_connection_over() {
    let mut old = frozen();
    let frozen = export(&mut old);
    let mut new = elsewhere();
    // Probes, and the mobile's answers, which are older than what the near host expects.
    for _ in 0..3 {
        new.data(9 * MSS, 1);
        new.after_ms(10);
        new.far_ack(0);
    }
    assert_eq!(import(&mut new, &frozen), Ok(Imported::Frozen));
    assert_eq!(new.sent(), [Sent::Data(0, MSS, 0)]);
    new.far_ack(9 * MSS);
    assert_eq!(new.gateway.counters().odd_segments, 0);
    assert_eq!(new.gateway.counters().resumes, 1);
}

#[test]
fn a_gateway_that_saw_only_the_probe_loop_does_not_freeze_the_connection_itself() {
    let mut new = elsewhere();
    for _ in 0..5 {
        new.data(9 * MSS, 1);
        new.after_ms(10);
        new.far_ack(0);
        new.after_ms(5_000);
    }
    assert_eq!(standings(&mut new), []);
    assert_eq!(new.sent(), []);
    // What the far host has acknowledged here itself is no guess.
    new.far_ack(9 * MSS + 1);
    new.data(9 * MSS + 1, MSS);
    new.after_ms(5_000);
    let flow = flow(&new);
    assert_eq!(standings(&mut new), [Event::Frozen { flow }]);
}

#[test]
fn what_the_far_host_has_is_what_it_says_and_not_where_the_near_host_goes_on() {
    let mut new = elsewhere();
    // What was first seen is no segment, but the number of the next one.
    new.data(9 * MSS, 0);
    new.after_ms(10);
    new.far_ack(0);
    // Not the oldest.
    new.data(MSS, MSS);
    new.down();
    new.after_ms(5_000);
    assert_eq!((standings(&mut new), new.sent()), (vec![], vec![]));
    new.data(0, MSS);
    new.after_ms(5_000);
    let flow = flow(&new);
    assert_eq!(standings(&mut new), [Event::Frozen { flow }]);
}

#[test]
fn what_has_gone_on_elsewhere_is_let_go_when_the_far_host_shows_it() {
    let mut path = frozen();
    let flow = flow(&path);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
    let _ = standings(&mut path);
    // Not by one who guesses the far host's next number.
    let mut guess = path.far_packet_acking(900 * MSS, &[]).edit();
    let _ = guess.set_seq(path.far_number(1));
    path.far_sends(&guess.finish());
    assert_eq!(standings(&mut path), []);
    // It is given the segment again, and says the same each time.
    let (mut deliveries, mut told) = (0, vec![]);
    while told.is_empty() && deliveries < 10 {
        path.far_ack(900 * MSS);
        told = standings(&mut path);
        path.after_ms(50);
        deliveries += path.sent().len();
    }
    let is_reset = false;
    assert_eq!(told, [Event::Thawed { flow, is_reset }]);
    assert_eq!(deliveries, 3);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.after_ms(600_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn who_knows_the_far_hosts_numbers_cannot_have_the_only_copy_dropped() {
    let mut path = frozen();
    let flow = flow(&path);
    let _ = standings(&mut path);
    // While the mobile is away nobody can be asked.
    for _ in 0..20 {
        path.far_ack(900 * MSS);
        path.after_ms(500);
    }
    assert_eq!(standings(&mut path), []);
    assert!(path.gateway.held() > ByteCount(u64::from(MSS)));
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
    // That is lost, and so is the next one. Saying it again and again neither has the segment dropped
    // nor draws more than is sent anyway.
    let mut deliveries = 0;
    for _ in 0..25 {
        path.far_ack(900 * MSS);
        path.after_ms(10);
        deliveries += path.sent().len();
    }
    assert_eq!((standings(&mut path), deliveries), (vec![], 1));
    // The mobile has it now.
    path.far_ack(MSS);
    let is_reset = false;
    assert_eq!(standings(&mut path), [Event::Thawed { flow, is_reset }]);
    assert_eq!(path.gateway.counters().resumes, 1);
}

#[test]
fn an_honest_word_of_the_far_hosts_ends_the_doubt() {
    let mut path = frozen();
    path.up();
    path.far_ack(900 * MSS);
    path.after_ms(5_000);
    // It answers a probe: it is where it was.
    path.far_ack(0);
    let _ = standings(&mut path);
    path.far_ack(900 * MSS);
    assert_eq!(standings(&mut path), [], "otherwise that would be believed");
}

#[test]
fn while_its_link_is_down_the_new_gateway_answers_probes_and_waits() {
    let mut old = frozen();
    let frozen = export(&mut old);
    let mut new = elsewhere();
    new.down();
    assert_eq!(import(&mut new, &frozen), Ok(Imported::Frozen));
    new.after_ms(60_000);
    assert_eq!(new.sent(), []);
    new.data(9 * MSS, 1);
    assert_eq!(new.sent(), [Sent::Rereceived(MSS)]);
    new.up();
    assert_eq!(new.sent(), [Sent::Data(0, MSS, 0)]);
}

#[test]
fn what_is_lent_is_kept_but_not_delivered_and_its_probes_are_answered() {
    let mut path = frozen();
    let (flow, now) = (flow(&path), path.now());
    path.gateway.lend_frozen(now, flow, true);
    path.up();
    path.after_ms(1_000_000);
    assert_eq!(path.sent(), []);
    path.data(9 * MSS, 1);
    assert_eq!(path.sent(), [Sent::Rereceived(MSS)]);
    assert!(path.gateway.held() > ByteCount(u64::from(MSS)));
    // The mobile is back here after all.
    path.gateway.lend_frozen(path.now(), flow, false);
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
}

#[test]
fn what_the_far_host_has_acknowledged_elsewhere_is_let_go() {
    let mut path = frozen();
    let (flow, now) = (flow(&path), path.now());
    path.gateway.release_frozen(now, flow);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    let is_reset = false;
    let told = standings(&mut path);
    assert_eq!(told.last(), Some(&Event::Thawed { flow, is_reset }));
}

#[test]
fn what_is_given_up_is_reset_at_both_ends() {
    let mut path = frozen();
    let (flow, now) = (flow(&path), path.now());
    let [near, far] = path.gateway.reset_frozen(now, flow).expect("it is frozen");
    let seq = |packet: &Packet| packet.tcp().expect("a segment").seq;
    assert_eq!(seq(&near), path.far_number(0));
    assert_eq!(seq(&far), path.near_number(0));
    assert_eq!(path.gateway.held(), ByteCount(0));
    assert_eq!(path.gateway.reset_frozen(now, flow), None);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn who_has_the_numbers_alone_can_reset_the_connection() {
    let mut path = frozen();
    let numbers = export(&mut path).numbers().expect("plausible");
    let seq = |packet: Packet| {
        assert!(packet.checksums_ok());
        packet.tcp().expect("a segment").seq
    };
    assert_eq!(seq(numbers.reset_near()), path.far_number(0));
    assert_eq!(seq(numbers.reset_far()), path.near_number(0));
    assert_eq!(numbers.until, path.near_number(MSS));
}

#[test]
fn a_frozen_connection_that_leaves_the_table_is_reset() {
    let mut path = frozen();
    // Nothing of it for longer than an idle connection is remembered.
    path.after_ms(8_000_000);
    assert_eq!(resets(&mut path), both(&path));
    assert_eq!(path.gateway.counters().resets, 1);
}

#[test]
fn a_frozen_connection_gives_way_to_nobody() {
    let limits = Limits {
        flows: 1,
        ..Limits::default()
    };
    let mut small = Path::with_limits(PathMechanismKind::ZeroWindowAck, limits);
    small.open();
    small.data(0, MSS);
    small.down();
    small.after_ms(2_000);
    assert_eq!(small.sent(), [Sent::Rereceived(MSS)]);
    small.use_port(6_000);
    small.syn();
    assert_eq!(resets(&mut small), []);
    assert_eq!(small.gateway.counters().flows_refused, 1);
}

#[test]
fn deliveries_count_from_the_mobiles_first_sign_of_life_where_it_was_not_heard_yet() {
    let mut old = frozen();
    let frozen = export(&mut old);
    let mut new = elsewhere();
    let imported = new.gateway.import_frozen(new.now(), LINK, &frozen, false);
    assert_eq!(imported, Ok(Imported::Frozen));
    new.after_ms(3_600_000);
    assert_eq!(resets(&mut new), []);
    new.far_ack(0);
    new.after_ms(400_000);
    assert_eq!(resets(&mut new), both(&new));
}

#[test]
fn a_connection_that_is_over_is_not_taken_over() {
    let mut old = frozen();
    let frozen = export(&mut old);
    let mut new = path();
    new.data(0, MSS);
    new.far_ack(MSS);
    assert_eq!(import(&mut new, &frozen), Ok(Imported::Over));
    let mut ended = path();
    ended.rst(0);
    assert_eq!(import(&mut ended, &frozen), Ok(Imported::Over));
    assert_eq!((new.sent(), ended.sent()), (vec![], vec![]));
}

#[test]
fn what_contradicts_itself_or_what_was_seen_is_refused() {
    let mut old = frozen();
    let frozen = export(&mut old);
    let refused = |frozen: &FrozenFlow| match import(&mut elsewhere(), frozen) {
        Err(ImportError::Implausible(why)) => why,
        other => panic!("{other:?}"),
    };
    let with_near = |near: Half| FrozenFlow {
        near,
        ..frozen.clone()
    };
    let near = frozen.near;
    let later = with_near(Half {
        acked: near.acked + MSS,
        ..near
    });
    assert_eq!(refused(&later), Implausible::NotOldest);
    let earlier = with_near(Half {
        acked: near.acked - 1,
        ..near
    });
    assert_eq!(refused(&earlier), Implausible::NotOldest);
    let unsent = with_near(Half {
        next: near.acked + 1,
        ..near
    });
    assert_eq!(refused(&unsent), Implausible::Unsent);
    let unseen = with_near(Half::default());
    assert_eq!(refused(&unseen), Implausible::Unseen);
    let empty = FrozenFlow {
        segment: old.near_ack_packet(0),
        ..frozen.clone()
    };
    assert_eq!(refused(&empty), Implausible::NoDataSegment);
    let datagram = FrozenFlow {
        segment: old.datagram_packet(100),
        ..frozen.clone()
    };
    assert_eq!(refused(&datagram), Implausible::NoDataSegment);

    let far_off = with_near(Half {
        acked: near.acked + (1 << 31),
        next: near.next + (1 << 31),
        ..near
    });
    let seq = frozen.segment.tcp().expect("a segment").seq;
    let mut edit = frozen.segment.edit();
    let _ = edit.set_seq(seq + (1 << 31));
    let far_off = FrozenFlow {
        segment: edit.finish(),
        ..far_off
    };
    assert_eq!(
        import(&mut path(), &far_off),
        Err(ImportError::Contradiction)
    );
}

#[test]
fn where_there_is_no_room_nobody_gives_way() {
    let mut old = frozen();
    let frozen = export(&mut old);
    let limits = Limits {
        flows: 1,
        ..Limits::default()
    };
    let mut full = Path::with_limits(PathMechanismKind::ZeroWindowAck, limits);
    full.use_port(6_000);
    full.open();
    assert_eq!(import(&mut full, &frozen), Err(ImportError::NoRoom));
    assert_eq!(full.gateway.flows(), 1);

    let limits = Limits {
        held_in_all: ByteCount(500),
        ..Limits::default()
    };
    let mut poor = Path::with_limits(PathMechanismKind::ZeroWindowAck, limits);
    assert_eq!(import(&mut poor, &frozen), Err(ImportError::NoRoom));
    assert_eq!(poor.sent(), []);

    let mut other = Path::new(PathMechanismKind::Hold);
    assert_eq!(
        import(&mut other, &frozen),
        Err(ImportError::WrongMechanism)
    );
    let nowhere = LinkId::of_interface(outlast_gateway::links::InterfaceId(99));
    let mut new = elsewhere();
    let refused = new.gateway.import_frozen(new.now(), nowhere, &frozen, true);
    assert_eq!(refused, Err(ImportError::UnknownLink));
}

/// Nobody else has what the gateway has acknowledged, and whoever knows addresses and ports can make up
/// a handshake.
#[test]
fn a_frozen_connection_is_not_given_up_for_another_on_its_ports() {
    let mut path = frozen();
    let flow = flow(&path);
    assert_eq!(standings(&mut path), [Event::Frozen { flow }]);
    let mut syn = path.data_packet(0, 0).tcp().expect("a segment").clone();
    syn.flags = TcpFlags::SYN;
    syn.seq += 2_000_000_000;
    let isn = syn.seq;
    path.near_sends(&like(&path.data_packet(0, 0), syn));
    assert_eq!(standings(&mut path), [], "it may be forged");
    path.up();
    let mut answer = path.far_data_packet(0, 0).tcp().expect("a segment").clone();
    answer.flags = TcpFlags::SYN | TcpFlags::ACK;
    answer.seq += 1_000_000_000;
    answer.ack = isn + 1;
    path.far_sends(&like(&path.far_data_packet(0, 0), answer));
    path.after_ms(60_000);
    assert_eq!(standings(&mut path), []);
    assert!(path.sent().contains(&Sent::Data(0, MSS, 0)));
    path.far_ack(MSS);
    let is_reset = false;
    assert_eq!(standings(&mut path), [Event::Thawed { flow, is_reset }]);
    assert_eq!(path.gateway.held(), ByteCount(0));
}

/// A segment without payload between the same hosts.
fn like(packet: &Packet, header: TcpHeader) -> Packet {
    Packet::modelled_tcp(packet.header().ip, header, ModelledPayload::default(), 0)
}
