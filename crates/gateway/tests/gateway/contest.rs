//! Whose a connection's addresses and ports are: what made-up segments change of a tracked connection,
//! and when another one has its place.

use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::tracking::{Contest, Heard, Observation, Oddity, PATIENCE, Phase, TcpFlow};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

const ACK: TcpFlags = TcpFlags::ACK;
const SYN_ACK: TcpFlags = TcpFlags(0x12);
const RST_ACK: TcpFlags = TcpFlags(0x14);

/// A connection as a gateway tracks it that keeps nothing of it.
#[derive(Default)]
struct Watched {
    flow: TcpFlow,
    contest: Option<Box<Contest>>,
    now: Instant,
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Became {
    Honest(Observation),
    Odd(Oddity),
    /// Another connection has the place.
    Yielded,
}

impl Watched {
    fn sees(
        &mut self,
        direction: Direction,
        flags: TcpFlags,
        (seq, ack): (u32, u32),
        len: u32,
    ) -> Became {
        self.sees_offering(direction, flags, (seq, ack), len, u16::MAX)
    }

    fn sees_offering(
        &mut self,
        direction: Direction,
        flags: TcpFlags,
        (seq, ack): (u32, u32),
        len: u32,
        window: u16,
    ) -> Became {
        let tcp = TcpHeader {
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            window,
            options: TcpOptions {
                window_scale: flags.contains(TcpFlags::SYN).then_some(7),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        let (contest, flow) = (&mut self.contest, &mut self.flow);
        match Contest::observe(contest, flow, self.now, direction, &tcp, len) {
            Heard::Honest(observation) => Became::Honest(observation),
            Heard::Odd(oddity) => Became::Odd(oddity),
            Heard::OfRival(_) => {
                let rival = contest.as_mut().expect("it has one");
                rival.yield_to_rival(flow);
                Became::Yielded
            }
        }
    }

    /// Near ISN 1000, far ISN 9000.
    fn established() -> Self {
        let mut watched = Self::default();
        watched.sees(ToLink, TcpFlags::SYN, (1_000, 0), 0);
        watched.sees(FromLink, SYN_ACK, (9_000, 1_001), 0);
        watched.sees(ToLink, ACK, (1_001, 9_001), 0);
        assert_eq!(watched.flow.phase, Phase::Established);
        watched
    }

    fn after(&mut self, pause: Duration) {
        self.now += pause;
    }

    /// Whether both hosts' numbers are these.
    fn is_at(&self, near: u32, far: u32) -> bool {
        self.flow.phase == Phase::Established
            && (self.flow.near.next, self.flow.far.next) == (SeqNumber(near), SeqNumber(far))
    }
}

#[test]
fn two_packets_of_somebody_who_knows_no_number_change_nothing() {
    for (client, server) in [(ToLink, FromLink), (FromLink, ToLink)] {
        for answer in [SYN_ACK, RST_ACK] {
            let mut watched = Watched::established();
            let mine = watched.flow;
            watched.sees(client, TcpFlags::SYN, (2_000_000_000, 0), 0);
            watched.sees(server, answer, (3_000_000_000, 2_000_000_001), 0);
            assert_eq!(watched.flow, mine, "{answer:?}");
            // Nor do they once the connection was silent for long.
            watched.after(2 * PATIENCE);
            watched.sees(client, TcpFlags::SYN, (2_000_000_000, 0), 0);
            watched.sees(server, answer, (3_000_000_000, 2_000_000_001), 0);
            assert_eq!(watched.flow, mine, "{answer:?}");
        }
    }
}

/// A watched place that a rival connection has taken; the first one is silent.
fn taken_place() -> Watched {
    let mut watched = Watched::established();
    watched.sees(ToLink, TcpFlags::SYN, (2_000_000_000, 0), 0);
    watched.sees(FromLink, SYN_ACK, (3_000_000_000, 2_000_000_001), 0);
    watched.sees(ToLink, ACK, (2_000_000_001, 3_000_000_001), 0);
    for n in 0..60 {
        watched.after(Duration::from_secs(1));
        let seq = 2_000_000_001 + n * 100;
        let became = watched.sees(ToLink, ACK, (seq, 3_000_000_001), 100);
        let is_time = watched.now >= Instant::ZERO + PATIENCE;
        match became {
            Became::Yielded => {
                assert!(is_time);
                assert!(watched.is_at(seq + 100, 3_000_000_001));
                return watched;
            }
            other => assert!(!is_time, "{other:?}"),
        }
    }
    unreachable!("it never got the place");
}

#[test]
fn another_connection_has_the_place_once_nothing_of_the_first_was_seen_for_long() {
    let mut watched = taken_place();
    let next = watched.flow.near.next.0;
    let became = watched.sees(FromLink, ACK, (3_000_000_001, next), 0);
    assert!(matches!(became, Became::Honest(_)), "{became:?}");
    assert_eq!(watched.flow.near.window_scale, Some(7), "as its SYN said");
}

#[test]
fn one_segment_of_the_first_connection_gives_it_its_place_back() {
    let mut watched = taken_place();
    // A guess does not.
    let became = watched.sees(ToLink, ACK, (900_000_000, 9_001), 100);
    assert!(matches!(became, Became::Odd(_)), "{became:?}");
    // Nor does the end of the other, whose numbers are known to who has made it up.
    let next = watched.flow.near.next.0;
    watched.sees(ToLink, TcpFlags::RST, (next, 0), 0);
    watched.sees(ToLink, TcpFlags::SYN, (77, 0), 0);
    let became = watched.sees(ToLink, ACK, (1_001, 9_001), 100);
    assert!(
        matches!(became, Became::Honest(seen) if seen.begins_anew && seen.new_data),
        "{became:?}"
    );
    assert!(watched.is_at(1_101, 9_001));
}

#[test]
fn a_segment_of_the_connection_in_time_keeps_its_place() {
    let mut watched = Watched::established();
    watched.sees(ToLink, TcpFlags::SYN, (2_000_000_000, 0), 0);
    watched.sees(FromLink, SYN_ACK, (3_000_000_000, 2_000_000_001), 0);
    let mut sent = 0;
    for n in 0..300 {
        watched.after(Duration::from_secs(1));
        let seq = 2_000_000_001 + n * 100;
        let became = watched.sees(ToLink, ACK, (seq, 3_000_000_001), 100);
        assert!(matches!(became, Became::Odd(_)), "{became:?} after {n} s");
        if n % 20 == 19 {
            watched.sees(ToLink, ACK, (1_001 + sent, 9_001), 10);
            sent += 10;
        }
        assert!(watched.is_at(1_001 + sent, 9_001));
    }
}

/// A station that knows addresses and ports sweeps all numbers: a byte and an acknowledgement with the
/// largest window at each, and the reset that would follow on the byte.
#[test]
fn a_sweep_of_bytes_and_resets_neither_moves_nor_ends_an_older_connection() {
    const STEPS: u32 = 64;
    for (near_scaled, far_scaled) in [(false, false), (true, true)] {
        for direction in [ToLink, FromLink] {
            let mut watched = match near_scaled && far_scaled {
                true => Watched::established(),
                false => Watched::default(),
            };
            for (direction, numbers, len) in [
                (ToLink, (1_001, 9_001), 1_000),
                (FromLink, (9_001, 2_001), 1_000),
                (ToLink, (2_001, 10_001), 0),
            ] {
                let became = watched.sees_offering(direction, ACK, numbers, len, 501);
                assert!(matches!(became, Became::Honest(_)), "{became:?}");
            }
            let mine = watched.flow;
            // As far from each other as the largest window allowed once, and off what is right.
            for step in 0..STEPS {
                let seq = 700_000 + step * (u32::MAX / STEPS);
                for ack in 0..STEPS {
                    let ack = 900_000 + ack * (u32::MAX / STEPS);
                    watched.sees(direction, ACK, (seq, ack), 1);
                    watched.sees(direction, TcpFlags::RST, (seq + 1, 0), 0);
                    watched.sees(direction, RST_ACK, (seq + 1, ack), 0);
                    assert_eq!(watched.flow, mine, "{seq}, {ack}");
                }
            }
        }
    }
}

/// The acknowledgement of a host that lets much be in flight comes from far back.
#[test]
fn an_older_connection_with_much_in_flight_becomes_known_and_stays_so() {
    const IN_FLIGHT: u32 = 6_000_000;
    for first in [ToLink, FromLink] {
        let (data, back) = match first {
            ToLink => (ToLink, FromLink),
            FromLink => (FromLink, ToLink),
        };
        let mut watched = Watched::default();
        for n in 0..40_000u32 {
            let sent = n * 1_000;
            let became = watched.sees_offering(data, ACK, (sent, 7), 1_000, 500);
            assert!(matches!(became, Became::Honest(_)), "{became:?} at {sent}");
            if let Some(acked) = sent.checked_sub(IN_FLIGHT) {
                let became = watched.sees_offering(back, ACK, (7, acked), 0, 500);
                assert!(matches!(became, Became::Honest(_)), "{became:?} at {acked}");
                assert_eq!(watched.flow.phase, Phase::Established);
            }
            // What was lost is sent again.
            if n > 10_000 && n % 64 == 0 {
                let became = watched.sees_offering(data, ACK, (sent - IN_FLIGHT, 7), 1_000, 500);
                assert!(matches!(became, Became::Honest(_)), "{became:?}");
            }
        }
    }
}

/// What was said first, in one host's name or in both, and what is said all the time in one's.
#[test]
fn an_older_connection_becomes_known_whatever_was_said_first() {
    let (byte, forged) = (1, |n: u32| 1_000_000_000 + n);
    let say = |watched: &mut Watched, direction, flags| match direction {
        ToLink => watched.sees(ToLink, flags, (forged(0), forged(5)), byte),
        FromLink => watched.sees(FromLink, flags, (forged(5), forged(1)), byte),
    };
    let firsts: [&[(Direction, TcpFlags)]; 7] = [
        &[],
        &[(ToLink, ACK)],
        &[(FromLink, ACK)],
        &[(ToLink, ACK), (FromLink, ACK)],
        &[(ToLink, ACK), (FromLink, ACK), (ToLink, ACK)],
        &[(ToLink, TcpFlags::SYN)],
        &[(FromLink, TcpFlags::SYN), (ToLink, ACK)],
    ];
    for first in firsts {
        for all_the_time in [None, Some(ToLink), Some(FromLink)] {
            let mut watched = Watched::default();
            for &(direction, flags) in first {
                say(&mut watched, direction, flags);
            }
            let mut known_after = None;
            for n in 0..60 {
                watched.after(Duration::from_secs(1));
                if let Some(direction) = all_the_time {
                    say(&mut watched, direction, ACK);
                }
                let sent = 1_001 + n * 1_000;
                watched.sees(ToLink, ACK, (sent, 9_001), 1_000);
                watched.sees(FromLink, ACK, (9_001, sent + 1_000), 0);
                if watched.is_at(sent + 1_000, 9_001) {
                    known_after.get_or_insert(n);
                }
            }
            let says = |name| first.iter().any(|one| one.0 == name) || all_the_time == Some(name);
            let both = says(ToLink) && says(FromLink);
            // Who goes on in both hosts' names is not distinguished from them.
            if both && all_the_time.is_some() {
                continue;
            }
            let most = if both { 31 } else { 1 };
            assert!(
                known_after.is_some_and(|n| n <= most),
                "{first:?}, {all_the_time:?}: known after {known_after:?}"
            );
        }
    }
}

/// A SYN that is made up while a handshake is under way.
#[test]
fn a_connection_that_opens_becomes_known_whatever_is_said_meanwhile() {
    for forged in [
        (ToLink, TcpFlags::SYN, 0),
        (FromLink, TcpFlags::SYN, 0),
        (FromLink, SYN_ACK, 5),
        (ToLink, ACK, 5),
        (FromLink, TcpFlags::RST, 0),
        (ToLink, TcpFlags::RST, 0),
        (FromLink, RST_ACK, 5),
        (ToLink, RST_ACK, 5),
    ] {
        for at in 0..3 {
            let mut watched = Watched::default();
            let honest = [
                (ToLink, TcpFlags::SYN, (1_000, 0)),
                (FromLink, SYN_ACK, (9_000, 1_001)),
                (ToLink, ACK, (1_001, 9_001)),
            ];
            for (n, (direction, flags, numbers)) in honest.into_iter().enumerate() {
                if n == at {
                    let (direction, flags, ack) = forged;
                    watched.sees(direction, flags, (2_000_000_000, ack), 0);
                }
                watched.sees(direction, flags, numbers, 0);
            }
            watched.sees(FromLink, ACK, (9_001, 1_001), 500);
            assert!(watched.is_at(1_001, 9_501), "{forged:?} before {at}");
        }
    }
}
