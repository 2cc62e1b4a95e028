//! Somebody who knows a connection's addresses and ports, and no sequence number: what he cannot end,
//! starve or have given up, in either host's name or in both.
//!
//! Each test has its control beside it: the same without him.

use crate::path::{MSS, Path, Sent};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_gateway::gateway::{GatewayConfig, SilenceConfig};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use outlast_gateway::tracking::PATIENCE;
use outlast_wire::{ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};

const ACK: TcpFlags = TcpFlags::ACK;
const SYN_ACK: TcpFlags = TcpFlags(0x12);
const RST_ACK: TcpFlags = TcpFlags(0x14);
const TAKEN: Option<TakeReason> = Some(TakeReason::LinkDown);
const KEEPING: [PathMechanismKind; 3] = [
    PathMechanismKind::Hold,
    PathMechanismKind::Auto,
    PathMechanismKind::AcknowledgeAhead,
];

/// A made-up segment with the connection's addresses and ports.
fn made_up(
    path: &Path,
    direction: Direction,
    flags: TcpFlags,
    (seq, ack): (u32, u32),
    len: u32,
) -> Packet {
    let like = match direction {
        ToLink => path.data_packet(0, 0),
        FromLink => path.far_packet_acking(0, &[]),
    };
    let mut tcp: TcpHeader = like.tcp().expect("a segment").clone();
    (tcp.flags, tcp.seq, tcp.ack) = (flags, SeqNumber(seq), SeqNumber(ack));
    tcp.window = u16::MAX;
    tcp.options = outlast_wire::tcp::TcpOptions::default();
    Packet::modelled_tcp(like.header().ip, tcp, ModelledPayload::default(), len)
}

fn say(path: &mut Path, direction: Direction, flags: TcpFlags, numbers: (u32, u32), len: u32) {
    let packet = made_up(path, direction, flags, numbers, len);
    match direction {
        ToLink => {
            path.near_sends(&packet);
        }
        FromLink => path.far_sends(&packet),
    }
}

const fn other(direction: Direction) -> Direction {
    match direction {
        ToLink => FromLink,
        FromLink => ToLink,
    }
}

/// What ends a connection for who believes it: a SYN, and its answer in the other host's name; and what
/// the two say after it.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    client: Direction,
    answer: TcpFlags,
    goes_on: bool,
}

impl Handshake {
    fn all() -> impl Iterator<Item = Option<Self>> {
        let of = |client| {
            let one = move |answer, goes_on| Self {
                client,
                answer,
                goes_on,
            };
            [one(RST_ACK, false), one(SYN_ACK, false), one(SYN_ACK, true)]
        };
        let forged = [ToLink, FromLink].into_iter().flat_map(of).map(Some);
        // Nobody says anything: the control.
        std::iter::once(None).chain(forged)
    }

    fn say(self, path: &mut Path) {
        let (client, server) = (self.client, other(self.client));
        say(path, client, TcpFlags::SYN, (2_000_000_000, 0), 0);
        let answer = (3_000_000_000, 2_000_000_001);
        say(path, server, self.answer, answer, 0);
        for n in 0..if self.goes_on { 10 } else { 0 } {
            let at = (2_000_000_001 + n, 3_000_000_001);
            say(path, client, ACK, at, 1);
            say(path, server, ACK, (3_000_000_001, at.0 + 1), 0);
        }
    }
}

/// The data of the segments that the gateway has sent towards the link, by first byte.
fn data_sent(path: &mut Path) -> Vec<u32> {
    let sent = path.sent().into_iter();
    let mut first: Vec<u32> = sent
        .filter_map(|sent| match sent {
            Sent::Data(first, ..) => Some(first),
            _ => None,
        })
        .collect();
    first.sort_unstable();
    first.dedup();
    first
}

#[test]
fn what_is_kept_stays_so_whatever_handshake_is_made_up_during_the_outage() {
    for mechanism in KEEPING {
        for handshake in Handshake::all() {
            let mut path = Path::established(mechanism);
            path.down();
            for n in 0..5 {
                assert_eq!(path.data(n * MSS, MSS), TAKEN);
            }
            // Again and again, for longer than anybody is silent.
            for _ in 0..12 {
                if let Some(handshake) = handshake {
                    handshake.say(&mut path);
                }
                path.after_ms(10_000);
            }
            path.sent();
            path.up();
            path.after_ms(500);
            let first = data_sent(&mut path);
            assert!(
                first.starts_with(&[0]),
                "{mechanism}, {handshake:?}: {first:?}"
            );
            path.far_ack(MSS);
            path.after_ms(500);
            path.far_ack(2 * MSS);
            path.after_ms(500);
            let rest = data_sent(&mut path);
            let all = [0, 1, 2, 3, 4].map(|n| n * MSS);
            let lacking = all
                .iter()
                .filter(|n| !first.contains(n) && !rest.contains(n));
            assert_eq!(
                lacking.count(),
                0,
                "{mechanism}, {handshake:?}: {first:?}, {rest:?}"
            );
        }
    }
}

#[test]
fn what_was_acknowledged_ahead_is_given_up_when_the_far_host_has_it() {
    for handshake in Handshake::all() {
        let mut path = Path::established(PathMechanismKind::AcknowledgeAhead);
        path.down();
        path.data(0, MSS);
        path.data(MSS, MSS);
        let acknowledged = path.sent();
        assert!(acknowledged.contains(&Sent::Rereceived(2 * MSS)));
        for _ in 0..8 {
            if let Some(handshake) = handshake {
                handshake.say(&mut path);
            }
            path.after_ms(10_000);
        }
        path.up();
        path.after_ms(500);
        path.far_ack(MSS);
        path.after_ms(500);
        let sent = path.sent();
        let last = |one: &Sent| matches!(one, Sent::Data(at, ..) if *at == MSS);
        assert!(sent.iter().any(last), "{handshake:?}: {sent:?}");
        assert_eq!(path.gateway.counters().resets, 0);
        path.far_ack(2 * MSS);
        path.after_ms(500);
        let reports: Vec<_> = path.gateway.flow_reports().collect();
        assert!(!reports[0].account.acknowledged_ahead, "{handshake:?}");
    }
}

/// Whoever ends it: a host, the clock, or another connection on its ports.
#[test]
fn what_was_acknowledged_ahead_ends_otherwise_with_a_reset_to_both_hosts() {
    let frozen = || {
        let mut path = Path::established(PathMechanismKind::AcknowledgeAhead);
        path.down();
        path.data(0, MSS);
        assert!(path.sent().contains(&Sent::Rereceived(MSS)));
        path
    };
    let reset_of = |path: &mut Path| -> Vec<(Direction, SeqNumber)> {
        let sent = std::iter::from_fn(|| path.gateway.poll_transmit());
        sent.filter_map(|sent| {
            let tcp = sent.packet.tcp()?;
            let is_reset = tcp.has(TcpFlags::RST);
            is_reset.then_some((sent.direction, tcp.seq))
        })
        .collect()
    };
    // The number that each host expects next.
    let near = (FromLink, frozen().far_number(0));
    let far = (ToLink, frozen().near_number(0));

    let mut path = frozen();
    path.rst(MSS);
    assert_eq!(reset_of(&mut path), [near]);
    path.up();
    path.after_ms(100);
    // The host's own one is not what the far host expects: it has not got the data.
    let own = (ToLink, path.near_number(MSS));
    assert_eq!(reset_of(&mut path), [far, own]);

    let mut path = frozen();
    path.far_rst();
    path.up();
    path.after_ms(100);
    assert_eq!(reset_of(&mut path), [near, far]);

    let mut path = frozen();
    path.after(Limits::default().established_timeout + Duration::from_secs(1));
    path.up();
    path.after_ms(100);
    assert_eq!(reset_of(&mut path), [near, far]);

    // Another connection, and the far host answers nothing else.
    let mut path = frozen();
    let handshake = Handshake {
        client: ToLink,
        answer: SYN_ACK,
        goes_on: true,
    };
    path.up();
    path.after_ms(100);
    for _ in 0..10 {
        handshake.say(&mut path);
        path.after_ms(10_000);
    }
    assert_eq!(reset_of(&mut path), [near, far]);
    assert_eq!(path.gateway.counters().resets, 1);
}

/// An idle connection is as silent as one that is no more.
#[test]
fn an_idle_connection_is_served_in_the_next_outage_whoever_had_its_place_meanwhile() {
    for mechanism in KEEPING {
        for handshake in Handshake::all() {
            let mut path = Path::established(mechanism);
            path.data(0, MSS);
            path.after_ms(40);
            path.far_ack(MSS);
            for _ in 0..20 {
                if let Some(handshake) = handshake {
                    handshake.say(&mut path);
                }
                path.after_ms(10_000);
            }
            path.down();
            path.sent();
            assert_eq!(path.data(MSS, MSS), TAKEN, "{mechanism}, {handshake:?}");
            if let Some(handshake) = handshake {
                handshake.say(&mut path);
            }
            assert_eq!(path.data(2 * MSS, MSS), TAKEN, "{mechanism}, {handshake:?}");
            path.up();
            path.after_ms(500);
            path.far_ack(2 * MSS);
            path.after_ms(500);
            assert!(
                data_sent(&mut path).contains(&(2 * MSS)),
                "{mechanism}, {handshake:?}"
            );
        }
    }
}

/// A connection of which the gateway has seen no SYN: what passes before, and a byte with the largest
/// window at every number that the largest window there is can be off by, then the reset behind it.
#[test]
fn a_sweep_ends_no_connection_that_is_older_than_the_gateway() {
    const SEQS: u32 = 16;
    const ACKS: u32 = 8;
    for mechanism in KEEPING {
        for sweeps in [None, Some(ToLink), Some(FromLink)] {
            let mut path = Path::new(mechanism);
            path.data(0, MSS);
            path.after_ms(40);
            path.far_ack(MSS);
            path.down();
            for n in 1..5 {
                assert_eq!(path.data(n * MSS, MSS), TAKEN);
            }
            path.sent();
            let held = path.gateway.held();
            for n in 0..SEQS * SEQS * ACKS {
                let Some(direction) = sweeps else { continue };
                let step = |n: u32, of: u32| n * (u32::MAX / of);
                let seq = 0x0123_4567_u32.wrapping_add(step(n / ACKS, SEQS * SEQS));
                let ack = 0x0765_4321_u32.wrapping_add(step(n % ACKS, ACKS));
                say(&mut path, direction, ACK, (seq, ack), 1);
                say(&mut path, direction, TcpFlags::RST, (seq + 1, 0), 0);
            }
            let others = path.gateway.held();
            assert_eq!(others, held, "{mechanism}, {sweeps:?}");
            path.up();
            path.after_ms(500);
            path.far_ack(2 * MSS);
            path.after_ms(500);
            let sent = data_sent(&mut path);
            let all = [1, 2, 3, 4].map(|n| n * MSS);
            assert!(
                all.iter().all(|n| sent.contains(n)),
                "{mechanism}, {sweeps:?}: {sent:?}"
            );
        }
    }
}

/// The made-up segment is the first that the gateway sees of a connection.
#[test]
fn a_connection_older_than_the_gateway_is_served_whatever_was_said_first() {
    for mechanism in KEEPING {
        for forged in [None, Some(ToLink), Some(FromLink)] {
            for flags in [ACK, TcpFlags::SYN, SYN_ACK] {
                let mut path = Path::new(mechanism);
                let forge = |path: &mut Path| {
                    if let Some(direction) = forged {
                        say(path, direction, flags, (2_000_000_000, 3_000_000_000), 1);
                    }
                };
                forge(&mut path);
                path.data(0, MSS);
                path.after_ms(40);
                path.far_ack(MSS);
                forge(&mut path);
                path.down();
                forge(&mut path);
                assert_eq!(
                    path.data(MSS, MSS),
                    TAKEN,
                    "{mechanism}, {forged:?}, {flags:?}"
                );
                path.up();
                path.after_ms(100);
                assert_eq!(
                    data_sent(&mut path),
                    [MSS],
                    "{mechanism}, {forged:?}, {flags:?}"
                );
            }
        }
    }
}

/// In both hosts' names: they have the connection's place no longer than they go on, and a while.
#[test]
fn made_up_connections_that_end_hinder_an_older_one_no_longer() {
    let mut path = Path::new(PathMechanismKind::Hold);
    for n in 0..5 {
        say(
            &mut path,
            ToLink,
            ACK,
            (2_000_000_000 + n, 3_000_000_000),
            1,
        );
        say(
            &mut path,
            FromLink,
            ACK,
            (3_000_000_000, 2_000_000_001 + n),
            0,
        );
    }
    let mut sent = 0;
    while path.now().since(outlast_base::time::Instant::ZERO) <= PATIENCE {
        path.data(sent, MSS);
        path.after_ms(500);
        sent += MSS;
        path.far_ack(sent);
        path.after_ms(500);
    }
    path.data(sent, MSS);
    path.far_ack(sent + MSS);
    path.down();
    assert_eq!(path.data(sent + MSS, MSS), TAKEN);
}

/// Nobody who is not known to be a host says that a silent link is back.
#[test]
fn made_up_segments_end_no_silence() {
    for forged in [None, Some(ToLink), Some(FromLink)] {
        let silence = SilenceConfig {
            probes_per_second: 0,
            ..SilenceConfig::default()
        };
        let mut path = Path::listening(PathMechanismKind::Hold, silence);
        path.data(0, MSS);
        path.after_ms(1_000);
        path.data(0, MSS);
        assert_eq!(path.gateway.silent_links().count(), 1);
        if let Some(direction) = forged {
            for flags in [ACK, TcpFlags::SYN, SYN_ACK, RST_ACK] {
                say(
                    &mut path,
                    direction,
                    flags,
                    (2_000_000_000, 3_000_000_000),
                    0,
                );
            }
        }
        assert_eq!(path.gateway.silent_links().count(), 1, "{forged:?}");
        assert_eq!(path.sent(), []);
    }
}

/// A SYN-ACK that waits for the link is not forgotten because somebody speaks from elsewhere in the
/// far host's name.
#[test]
fn a_handshake_stays_where_its_host_has_sent_it() {
    let elsewhere = outlast_gateway::links::LinkId {
        peer: Some(std::net::Ipv4Addr::new(10, 9, 9, 9).into()),
        ..crate::path::LINK
    };
    for forged in [None, Some(ACK), Some(TcpFlags::SYN), Some(SYN_ACK)] {
        let mut path = Path::with_config(
            GatewayConfig {
                mechanism: PathMechanismKind::Hold,
                ..GatewayConfig::default()
            },
            None,
        );
        path.down();
        assert_eq!(path.syn(), TAKEN);
        if let Some(flags) = forged {
            let here = std::mem::replace(&mut path.link, elsewhere);
            say(
                &mut path,
                FromLink,
                flags,
                (2_000_000_000, 3_000_000_000),
                0,
            );
            path.link = here;
        }
        assert!(path.gateway.held_other() > ByteCount(0));
        path.up();
        path.after_ms(100);
        assert_eq!(path.sent(), [Sent::Control(TcpFlags::SYN)], "{forged:?}");
    }
}
