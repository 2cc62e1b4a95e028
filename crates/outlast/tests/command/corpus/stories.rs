//! Stories of connections: outages with each cause, and traps that only look like one.
//!
//! Times in truths are in seconds from the first packet.

use super::tape::{ACK, Connection, FIN, Host, PUSH, RST, SEGMENT, SYN, Segment, TRIP, Tape};

/// Truth of a story.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Truth {
    Outage(Outage),
    Calm(Calm),
}

/// An outage, and what it did to its first connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outage {
    /// Time of its beginning.
    pub(crate) start: f64,
    /// The first sign of its end; `None` if the capture ends before.
    pub(crate) end: Option<f64>,
    /// Time at which the connection went on.
    pub(crate) noticed: Option<f64>,
    pub(crate) cause: &'static str,
    /// True if time can have been saved.
    pub(crate) saves: bool,
    /// Connections that stood still.
    pub(crate) connections: usize,
}

/// Further finding of a capture without an outage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calm {
    pub(crate) stalled_alone: u64,
    pub(crate) has_hole: bool,
    pub(crate) one_direction: u64,
}

/// A story, told in either version of IP.
#[derive(Clone, Copy)]
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) tell: fn(&mut Tape) -> Truth,
}

const fn story(name: &'static str, tell: fn(&mut Tape) -> Truth) -> Story {
    Story { name, tell }
}

const CALM: Truth = Truth::Calm(Calm {
    stalled_alone: 0,
    has_hole: false,
    one_direction: 0,
});
const SECOND: u64 = 1_000_000;
/// Times at which a sender repeats itself, in milliseconds after the first.
const BACK_OFF: [u64; 6] = [200, 600, 1_400, 3_000, 6_200, 12_600];

/// Stories with an outage.
pub(crate) const OUTAGES: [Story; 21] = [
    story("an upload backs off", upload_backs_off),
    story("without timestamps", |tape| upload(tape, false)),
    story(
        "a download backs off beyond the capture",
        download_backs_off,
    ),
    story("a request is repeated", request_is_repeated),
    story("a connection opens amid it", handshake),
    story("a window is closed", closed_window),
    story("a probe of the tail", loss_timer),
    story("a timeout that is taken for spurious", spurious_timeout),
    story("a stream that never stops", never_stops),
    story("an opening is repeated", opening_is_repeated),
    story("an application writes again", application_writes_again),
    story("an application writes again and gives up", gives_up),
    story("a download goes on behind a hole", goes_on_behind_hole),
    story("copies with old timestamps", old_timestamps),
    story("never back", never_back),
    story("two connections", two_connections),
    story("idle after its repair", idle_after_repair),
    story("after a flood of openings", |tape| {
        flood(tape, 60_000);
        upload(tape, true)
    }),
    story("after many connections that nobody closes", |tape| {
        short_connections(tape, 0, 50_000, false);
        upload(tape, true)
    }),
    story("after many connections that one host closes", |tape| {
        short_connections(tape, 0, 50_000, true);
        upload(tape, true)
    }),
    story("amid many connections that nobody closes", amid_others),
];

/// Stories without one.
pub(crate) const TRAPS: [Story; 29] = [
    story("idle", |tape| idle(tape, 0, 5)),
    story("idle, identifications shared", |tape| idle(tape, 20, 5)),
    story("idle for long, identifications shared", |tape| {
        idle(tape, 900, 60)
    }),
    story("a download pauses, identifications shared", paused_download),
    story("the capture lost packets of an upload", |tape| {
        hole(tape, Host::A)
    }),
    story("the capture lost packets of a download", |tape| {
        hole(tape, Host::B)
    }),
    story("one direction of an upload", |tape| {
        one_direction(tape, Host::A, Host::A)
    }),
    story("one direction of a download", |tape| {
        one_direction(tape, Host::B, Host::B)
    }),
    story("one direction, from the middle on", |tape| {
        let truth = one_direction(tape, Host::A, Host::A);
        tape.packets.drain(..20);
        truth
    }),
    story("acknowledgements alone", |tape| {
        one_direction(tape, Host::B, Host::A)
    }),
    story("a connection that its peer forgot", forgotten),
    story("a young connection backs off", young),
    story("nobody answers an opening", unanswered_opening),
    story("an opening is repeated once", repeated_opening),
    story("a flood of openings", |tape| {
        flood(tape, 60_000);
        idle(tape, 0, 5)
    }),
    story("a flood of handshakes", |tape| {
        handshakes(tape, 20_000);
        idle(tape, 0, 5)
    }),
    story("one lost segment", one_loss),
    story("a lost flight is repeated fast", fast_repetition),
    story("answers are late", late_answers),
    story("a closed window whose probes are answered", answered_probes),
    story("kept alive", kept_alive),
    story("kept alive by its peer after a repair", kept_alive_by_peer),
    story("requests now and then", requests),
    story("closed and opened again", opened_again),
    story("every packet is captured twice", captured_twice),
    story("captured out of order", out_of_order),
    story("from the middle on", from_the_middle),
    story("an abrupt end", abrupt_end),
    story("datagrams alone", datagrams),
];

fn outage(start: u64, end: u64, noticed: u64, cause: &'static str) -> Outage {
    let seconds = |at: u64| at as f64 / SECOND as f64;
    Outage {
        start: seconds(start),
        end: Some(seconds(end)),
        noticed: Some(seconds(noticed)),
        cause,
        saves: true,
        connections: 1,
    }
}

/// A transfer from `from`, then a segment that is lost. Returns when that was sent.
fn until_lost(tape: &mut Tape, has_stamps: bool, from: Host) -> (u64, Connection) {
    let begin = if tape.packets.is_empty() { 0 } else { SECOND };
    let mut connection = tape.open(begin, 40_000, has_stamps);
    let at = tape.transfer(begin + 50_000, &mut connection, from, 60);
    tape.send(at, &mut connection, from);
    (at, connection)
}

fn upload(tape: &mut Tape, has_stamps: bool) -> Truth {
    let (at, mut connection) = until_lost(tape, has_stamps, Host::A);
    let noticed = tape.repeat(at, &connection, Host::A, &BACK_OFF);
    tape.answer(noticed + TRIP, &connection, Host::A);
    tape.transfer(noticed + 2 * TRIP, &mut connection, Host::A, 20);
    Truth::Outage(outage(at, noticed + TRIP / 2, noticed, "back-off"))
}

pub(crate) fn upload_backs_off(tape: &mut Tape) -> Truth {
    upload(tape, true)
}

/// Beside the receiver nothing is seen of an outage but its end: old data, and the echo of old answers.
fn download_backs_off(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::B, 60);
    // Those arrive, but their answers do not.
    for number in 0..12 {
        let at = at + number * 1_000;
        tape.send(at, &mut connection, Host::B);
        tape.answer(at + 100, &connection, Host::B);
    }
    let last = at + 11_000;
    let noticed = last + 6 * SECOND;
    let old = (at / 1_000) as u32 + 10_000;
    let segment = connection.segment(noticed, Host::B, SEGMENT);
    let again = Segment {
        seq: segment.seq - 12 * SEGMENT,
        flags: PUSH,
        stamps: segment.stamps.map(|(value, _)| (value, old - 40)),
        ..segment
    };
    tape.pass(noticed, &connection, &again);
    tape.answer(noticed + 100, &connection, Host::B);
    tape.transfer(noticed + TRIP, &mut connection, Host::B, 20);
    Truth::Outage(outage(last, noticed, noticed, "back-off"))
}

/// A receiver that asks for more, and is not heard.
fn request_is_repeated(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::B, 60);
    tape.send(at, &mut connection, Host::A);
    let noticed = tape.repeat(at, &connection, Host::A, &BACK_OFF[..5]);
    tape.answer(noticed + TRIP, &connection, Host::A);
    tape.transfer(noticed + 2 * TRIP, &mut connection, Host::B, 20);
    Truth::Outage(outage(at, noticed + TRIP / 2, noticed, "back-off"))
}

/// A connection that is opened while another is silent.
fn handshake(tape: &mut Tape) -> Truth {
    let (at, mut first) = until_lost(tape, true, Host::A);
    let mut second = Connection {
        port: 41_000,
        ..first
    };
    second.next = [100, 900];
    let mut times: Vec<(u64, Option<u64>)> = BACK_OFF[..4]
        .iter()
        .map(|after| (at + after * 1_000, None))
        .collect();
    times.extend([0, 1, 3].map(|after| {
        let at = at + 100_000 + after * SECOND;
        (at, Some(at))
    }));
    times.sort_unstable();
    for (at, opening) in times {
        let segment = match opening {
            None => first.again(at, Host::A),
            Some(_) => Segment {
                flags: SYN,
                ack: 0,
                ..second.segment(at, Host::A, 0)
            },
        };
        let connection = if opening.is_some() { &second } else { &first };
        tape.pass(at, connection, &segment);
    }
    // The opening crosses at 3.1 s, the other's repetition at 6.2 s.
    let opened = at + 3_100_000;
    second.next[0] += 1;
    let answer = Segment {
        flags: SYN | ACK,
        ..second.segment(opened + TRIP, Host::B, 0)
    };
    tape.pass(opened + TRIP, &second, &answer);
    second.next[1] += 1;
    tape.transfer(opened + 2 * TRIP, &mut second, Host::A, 20);
    let noticed = tape.repeat(at, &first, Host::A, &[6_200]);
    tape.answer(noticed + TRIP, &first, Host::A);
    tape.transfer(noticed + 2 * TRIP, &mut first, Host::A, 20);
    Truth::Outage(Outage {
        connections: 2,
        ..outage(at, opened + TRIP / 2, noticed, "back-off")
    })
}

/// A receiver without room, whose sender probes it.
fn closed_window(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    tape.send(at, &mut connection, Host::A);
    let closed = |at: u64, connection: &Connection| Segment {
        window: 0,
        ..connection.segment(at, Host::B, 0)
    };
    let full = closed(at + TRIP, &connection);
    tape.pass(at + TRIP, &connection, &full);
    let probe = |at: u64, connection: &Connection| Segment {
        seq: connection.next[0] - 1,
        ..connection.segment(at, Host::A, 0)
    };
    let mut answered = at + TRIP;
    for after in [200, 400] {
        answered += after * 1_000;
        tape.pass(answered, &connection, &probe(answered, &connection));
        let answer = closed(answered + TRIP, &connection);
        tape.pass(answered + TRIP, &connection, &answer);
    }
    let start = answered + 800_000;
    for after in [0, 1_600, 4_800, 11_200, 24_000] {
        let at = start + after * 1_000;
        tape.pass(at, &connection, &probe(at, &connection));
    }
    let noticed = start + 24_000_000;
    tape.answer(noticed + TRIP, &connection, Host::A);
    tape.transfer(noticed + 2 * TRIP, &mut connection, Host::A, 20);
    Truth::Outage(outage(start, noticed + TRIP / 2, noticed, "closed-window"))
}

/// A sender that sends many segments at once.
fn burst(tape: &mut Tape, at: u64, connection: &mut Connection, count: u64, apart: u64) -> u64 {
    for number in 0..count {
        tape.send(at + number * apart, connection, Host::A);
    }
    at + (count - 1) * apart
}

/// A flight is lost, and its last segment is repeated first.
fn loss_timer(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    let first = connection.next[0];
    let last = burst(tape, at, &mut connection, 12, 2_000);
    let noticed = last + 150_000;
    let probe = connection.again(noticed, Host::A);
    tape.pass(noticed, &connection, &probe);
    let lacking = Segment {
        ack: first,
        ..connection.segment(noticed + TRIP, Host::B, 0)
    };
    tape.pass(noticed + TRIP, &connection, &lacking);
    for number in 0..12 {
        let at = noticed + TRIP + 100 + u64::from(number);
        let again = Segment {
            seq: first + number * SEGMENT,
            flags: PUSH,
            ..connection.segment(at, Host::A, SEGMENT)
        };
        tape.pass(at, &connection, &again);
    }
    tape.answer(noticed + 2 * TRIP + 200, &connection, Host::A);
    tape.transfer(noticed + 3 * TRIP, &mut connection, Host::A, 20);
    Truth::Outage(outage(at, noticed + TRIP / 2, noticed, "loss-timer"))
}

/// The first timeout's repetition is answered as if the original had come; the sender goes on with new data.
fn spurious_timeout(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    let first = connection.next[0];
    let last = burst(tape, at, &mut connection, 12, 2_000);
    for after in [200, 600, 1_400, 3_000] {
        let at = last + after * 1_000;
        let oldest = Segment {
            seq: first,
            flags: PUSH,
            ..connection.segment(at, Host::A, SEGMENT)
        };
        tape.pass(at, &connection, &oldest);
    }
    let back = last + 3_000_000;
    let received = |at: u64, connection: &Connection| Segment {
        ack: first + SEGMENT,
        ..connection.segment(at, Host::B, 0)
    };
    tape.pass(
        back + TRIP,
        &connection,
        &received(back + TRIP, &connection),
    );
    let went_on = back + TRIP + 100;
    tape.send(went_on, &mut connection, Host::A);
    tape.send(went_on + 100, &mut connection, Host::A);
    for after in [0, 100] {
        let at = went_on + TRIP + after;
        tape.pass(at, &connection, &received(at, &connection));
    }
    let noticed = went_on + 6_000_000;
    let lacking = Segment {
        seq: first + SEGMENT,
        flags: PUSH,
        ..connection.segment(noticed, Host::A, SEGMENT)
    };
    tape.pass(noticed, &connection, &lacking);
    let next = Segment {
        ack: first + 2 * SEGMENT,
        ..connection.segment(noticed + TRIP, Host::B, 0)
    };
    tape.pass(noticed + TRIP, &connection, &next);
    Truth::Outage(outage(at, back + TRIP / 2, noticed, "spurious-timeout"))
}

/// New data all the time: what is lost is repeated once the receiver says so.
fn never_stops(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    let first = connection.next[0];
    let last = burst(tape, at, &mut connection, 40, 10_000);
    // The last two cross.
    for number in 0..3 {
        let at = last + TRIP - 10_000 + number * 5_000;
        let lacking = Segment {
            ack: first,
            ..connection.segment(at, Host::B, 0)
        };
        tape.pass(at, &connection, &lacking);
    }
    let repaired = last + 2 * TRIP;
    for number in 0..38 {
        let at = repaired + u64::from(number) * 100;
        let again = Segment {
            seq: first + number * SEGMENT,
            flags: PUSH,
            ..connection.segment(at, Host::A, SEGMENT)
        };
        tape.pass(at, &connection, &again);
    }
    tape.answer(repaired + TRIP + 4_000, &connection, Host::A);
    tape.transfer(repaired + 2 * TRIP + 4_000, &mut connection, Host::A, 20);
    let back = last - 10_000;
    Truth::Outage(Outage {
        saves: false,
        ..outage(at, back + TRIP / 2, back, "path")
    })
}

/// A connection that is opened amid it, to a host that was heard before.
fn opening_is_repeated(tape: &mut Tape) -> Truth {
    let mut first = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut first, Host::A, 60) + SECOND;
    let mut second = Connection {
        port: 41_000,
        next: [100, 900],
        ..first
    };
    for after in [0, 1, 3, 7, 15, 31] {
        let at = at + after * SECOND;
        let opening = Segment {
            flags: SYN,
            ack: 0,
            ..second.segment(at, Host::A, 0)
        };
        tape.pass(at, &second, &opening);
    }
    let noticed = at + 31 * SECOND;
    second.next[0] += 1;
    let answer = Segment {
        flags: SYN | ACK,
        ..second.segment(noticed + TRIP, Host::B, 0)
    };
    tape.pass(noticed + TRIP, &second, &answer);
    second.next[1] += 1;
    tape.transfer(noticed + 2 * TRIP, &mut second, Host::A, 20);
    Truth::Outage(outage(at, noticed + TRIP / 2, noticed, "handshake"))
}

/// The payload of a short write, in bytes.
const SHORT: u32 = 100;

/// Short writes are lost, then the application pauses: its next write crosses before any timer runs out, and is answered.
///
/// Returns the times of the first write and of the one that crosses, and the first sequence number that was lost.
fn until_written_again(tape: &mut Tape) -> (u64, u64, u32, Connection) {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    let first = connection.next[0];
    let write = |tape: &mut Tape, connection: &mut Connection, at: u64| {
        let short = Segment {
            flags: PUSH,
            ..connection.segment(at, Host::A, SHORT)
        };
        tape.pass(at, connection, &short);
        connection.next[0] += SHORT;
    };
    for number in 0..10 {
        write(tape, &mut connection, at + number * 10_000);
    }
    let noticed = at + 190_000;
    write(tape, &mut connection, noticed);
    let lacking = Segment {
        ack: first,
        ..connection.segment(noticed + TRIP, Host::B, 0)
    };
    tape.pass(noticed + TRIP, &connection, &lacking);
    (at, noticed, first, connection)
}

fn application_writes_again(tape: &mut Tape) -> Truth {
    let (at, noticed, first, mut connection) = until_written_again(tape);
    let repaired = noticed + TRIP + 100;
    for number in 0..10 {
        let at = repaired + u64::from(number);
        let again = Segment {
            seq: first + number * SHORT,
            flags: PUSH,
            ..connection.segment(at, Host::A, SHORT)
        };
        tape.pass(at, &connection, &again);
    }
    tape.answer(repaired + TRIP + 10, &connection, Host::A);
    tape.transfer(repaired + 2 * TRIP, &mut connection, Host::A, 20);
    Truth::Outage(outage(at, noticed + TRIP / 2, noticed, "application-idle"))
}

/// The application resets the connection in place of a repetition: nobody knows how long it would have waited.
fn gives_up(tape: &mut Tape) -> Truth {
    let (at, noticed, _, connection) = until_written_again(tape);
    let reset = Segment {
        flags: RST | ACK,
        ..connection.segment(noticed + TRIP + 100, Host::A, 0)
    };
    tape.pass(noticed + TRIP + 100, &connection, &reset);
    Truth::Outage(Outage {
        saves: false,
        ..outage(at, noticed + TRIP / 2, noticed, "application-idle")
    })
}

/// Beside the receiver a flight is missing; new data comes behind the hole, and the capture ends before that is filled.
fn goes_on_behind_hole(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let last = tape.transfer(50_000, &mut connection, Host::B, 60) - TRIP - 1_000;
    let lacked = connection.next[1];
    connection.next[1] += 30 * SEGMENT;
    let noticed = last + 4 * SECOND;
    for number in 0..10 {
        let at = noticed + number * 200;
        tape.send(at, &mut connection, Host::B);
        let lacking = Segment {
            ack: lacked,
            ..connection.segment(at + 100, Host::A, 0)
        };
        tape.pass(at + 100, &connection, &lacking);
    }
    Truth::Outage(Outage {
        saves: false,
        ..outage(last, noticed, noticed, "loss-timer")
    })
}

/// Beside the receiver. The last segment before the outage has overtaken others, and copies of these come behind it,
/// as a gateway kept them: with timestamps that are older than that of the last.
fn old_timestamps(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::B, 60);
    for number in 0..9 {
        let at = at + number * 1_000;
        tape.send(at, &mut connection, Host::B);
        tape.answer(at + 100, &connection, Host::B);
    }
    let lacked = connection.next[1];
    connection.next[1] += 2 * SEGMENT;
    let last = at + 11_000;
    tape.send(last, &mut connection, Host::B);
    let lacking = |at: u64| Segment {
        ack: lacked,
        ..connection.segment(at, Host::A, 0)
    };
    tape.pass(last + 100, &connection, &lacking(last + 100));
    let stamp = |at: u64| (at / 1_000) as u32 + 10_000;
    let copy = |at: u64, stamps: (u64, u64), number: u32| Segment {
        seq: lacked + number * SEGMENT,
        flags: PUSH,
        stamps: Some((stamp(stamps.0), stamp(stamps.1))),
        ..connection.segment(at, Host::B, SEGMENT)
    };
    let back = last + 3 * SECOND;
    for number in 0..2 {
        let at = back + u64::from(number) * 200;
        let kept = copy(at, (last - 2_000, last - 2 * TRIP), number);
        tape.pass(at, &connection, &kept);
        tape.pass(at + 100, &connection, &lacking(at + 100));
    }
    let noticed = last + 6 * SECOND;
    for number in 0..2 {
        let at = noticed + u64::from(number) * 200;
        let again = copy(at, (at - TRIP / 2, back + 300), number);
        tape.pass(at, &connection, &again);
    }
    tape.answer(noticed + 300, &connection, Host::B);
    tape.transfer(noticed + TRIP, &mut connection, Host::B, 20);
    Truth::Outage(outage(last, back, noticed, "paws"))
}

fn never_back(tape: &mut Tape) -> Truth {
    let (at, connection) = until_lost(tape, true, Host::A);
    tape.repeat(at, &connection, Host::A, &BACK_OFF);
    Truth::Outage(Outage {
        end: None,
        noticed: None,
        saves: false,
        ..outage(at, at, at, "back-off")
    })
}

fn two_connections(tape: &mut Tape) -> Truth {
    let mut first = tape.open(0, 40_000, true);
    let mut second = tape.open(1_000, 41_000, true);
    tape.transfer(50_000, &mut first, Host::A, 60);
    let at = tape.transfer(50_500, &mut second, Host::A, 60);
    tape.packets.sort_by_key(|packet| packet.at);
    tape.send(at, &mut first, Host::A);
    tape.send(at + 1_000, &mut second, Host::A);
    for after in BACK_OFF {
        tape.repeat(at, &first, Host::A, &[after]);
        if after < 6_000 {
            tape.repeat(at + 1_000, &second, Host::A, &[after]);
        }
    }
    tape.packets.sort_by_key(|packet| packet.at);
    // The second crosses with its fourth repetition, which shows the path.
    let back = at + 1_000 + 3_000_000;
    tape.packets.retain(|packet| packet.at < back + 1);
    tape.answer(back + TRIP, &second, Host::A);
    tape.transfer(back + 2 * TRIP, &mut second, Host::A, 20);
    let noticed = tape.repeat(at, &first, Host::A, &[6_200]);
    tape.answer(noticed + TRIP, &first, Host::A);
    tape.transfer(noticed + 2 * TRIP, &mut first, Host::A, 20);
    Truth::Outage(Outage {
        connections: 2,
        ..outage(at, back + TRIP / 2, noticed, "back-off")
    })
}

/// The receiver's end: old data once more shows the outage; new data comes much later.
fn idle_after_repair(tape: &mut Tape) -> Truth {
    let truth = download_backs_off(tape);
    let last = tape.packets.last().expect("it was told").at;
    let mut connection = Connection {
        next: [101, 901 + 92 * SEGMENT],
        ..tape.clone().open(0, 40_000, true)
    };
    tape.transfer(last + 7 * SECOND, &mut connection, Host::B, 5);
    truth
}

/// So many openings that nobody answers, each of a host of its own, within half a second.
fn flood(tape: &mut Tape, count: u32) {
    for number in 0..count {
        let connection = Connection {
            port: 1_024 + (number % 60_000) as u16,
            ..tape.clone_empty().open(0, 1, false)
        };
        tape.peer = (number / 60_000) as u8;
        let at = u64::from(number) * 8;
        let opening = Segment {
            flags: SYN,
            ack: 0,
            seq: number,
            ..connection.segment(at, Host::A, 0)
        };
        tape.pass(at, &connection, &opening);
    }
    tape.peer = 20;
}

/// So many handshakes, and nothing after them.
fn handshakes(tape: &mut Tape, count: u16) {
    tape.peer = 21;
    for number in 0..count {
        tape.open(u64::from(number) * 20, 1_024 + number, false);
    }
    tape.peer = 20;
    tape.packets.sort_by_key(|packet| packet.at);
}

/// Short connections to another host, `count` of them from `begin` on, within a second. Each has one segment in both directions, and is
/// closed by host A alone or by nobody.
pub(crate) fn short_connections(tape: &mut Tape, begin: u64, count: u16, is_closed: bool) {
    tape.peer = 21;
    for number in 0..count {
        let at = begin + u64::from(number) * 15;
        let mut connection = tape.open(at, 1_024 + number, false);
        let at = at + TRIP + 200;
        for (from, after) in [(Host::A, 0), (Host::B, TRIP)] {
            let data = Segment {
                flags: PUSH,
                ..connection.segment(at + after, from, 8)
            };
            tape.pass(at + after, &connection, &data);
            connection.next[from as usize] += 8;
        }
        let last = at + TRIP + 100;
        let flags = if is_closed { FIN } else { ACK };
        let end = Segment {
            flags,
            ..connection.segment(last, Host::A, 0)
        };
        tape.pass(last, &connection, &end);
        if is_closed {
            connection.next[0] += 1;
            tape.answer(last + TRIP, &connection, Host::A);
        }
    }
    tape.peer = 20;
    tape.packets.sort_by_key(|packet| packet.at);
}

/// An upload backs off while the host opens other connections, with another host.
fn amid_others(tape: &mut Tape) -> Truth {
    let truth = upload(tape, true);
    short_connections(tape, 4 * SECOND, 50_001, false);
    truth
}

pub(crate) fn idle(tape: &mut Tape, others: u16, seconds: u64) -> Truth {
    let begin = tape.packets.last().map_or(0, |last| last.at + 100_000);
    let mut connection = tape.open(begin, 50_000, false);
    let at = tape.transfer(begin + 50_000, &mut connection, Host::A, 30);
    for host in [Host::A, Host::B] {
        tape.others_send(host, others);
    }
    tape.transfer(at + seconds * SECOND, &mut connection, Host::A, 5);
    CALM
}

/// A download whose sender's application pauses.
fn paused_download(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, false);
    let mut at = tape.transfer(50_000, &mut connection, Host::B, 300);
    for others in [12, 40, 300] {
        tape.others_send(Host::B, others);
        at = tape.transfer(at + 3 * SECOND, &mut connection, Host::B, 30);
    }
    CALM
}

/// The capturing program misses what passes for a second and a half.
fn hole(tape: &mut Tape, from: Host) -> Truth {
    let mut connection = tape.open(0, 40_000, false);
    tape.transfer(50_000, &mut connection, from, 200);
    let missed = 1_500_000..3_000_000;
    tape.packets.retain(|packet| !missed.contains(&packet.at));
    Truth::Calm(Calm {
        has_hole: true,
        ..Calm::default()
    })
}

/// Packets of one host, where `from` sends the payload.
fn one_direction(tape: &mut Tape, from: Host, seen: Host) -> Truth {
    let mut connection = tape.open(0, 40_000, false);
    let at = tape.transfer(50_000, &mut connection, from, 60);
    let at = tape.transfer(at + 3 * SECOND, &mut connection, from, 5);
    tape.transfer(at, &mut connection, from.other(), 5);
    tape.packets
        .retain(|packet| packet.is_sent == (seen == Host::A));
    Truth::Calm(Calm {
        one_direction: 1,
        ..Calm::default()
    })
}

/// The end of a connection that its peer knows no more, beside another one that works.
fn forgotten(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, false);
    let at = tape.transfer(50_000, &mut connection, Host::A, 10);
    let mut neighbour = tape.open(at, 41_000, false);
    let begin = at + SECOND;
    for (number, after) in [0, 600, 1_800, 4_200, 9_000, 18_600, 37_800]
        .into_iter()
        .enumerate()
    {
        let at = begin + after * 1_000;
        let end = Segment {
            flags: FIN,
            ..connection.segment(at, Host::A, 0)
        };
        tape.pass(at, &connection, &end);
        if number > 0 {
            tape.transfer(at + 250_000, &mut neighbour, Host::A, 1);
        }
    }
    tape.transfer(begin + 600 * SECOND, &mut neighbour, Host::A, 2);
    Truth::Calm(Calm {
        stalled_alone: 1,
        ..Calm::default()
    })
}

/// A connection a few packets old whose segment does not cross while its peer is heard.
fn young(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, false);
    let at = tape.transfer(50_000, &mut connection, Host::A, 1);
    tape.send(at, &mut connection, Host::A);
    tape.repeat(at, &connection, Host::A, &[3_000, 9_000]);
    let heard = at + 9_200_000;
    let again = Segment {
        ack: connection.next[0] - SEGMENT,
        ..connection.segment(heard, Host::B, 0)
    };
    tape.pass(heard, &connection, &again);
    let noticed = tape.repeat(at, &connection, Host::A, &[21_000, 33_000, 45_000]);
    tape.answer(noticed + TRIP, &connection, Host::A);
    tape.transfer(noticed + 2 * TRIP, &mut connection, Host::A, 5);
    Truth::Calm(Calm {
        stalled_alone: 1,
        ..Calm::default()
    })
}

/// A host that was never heard is no path that was lost.
fn unanswered_opening(tape: &mut Tape) -> Truth {
    idle(tape, 0, 1);
    let begin = 3 * SECOND;
    tape.peer = 77;
    let connection = Connection {
        port: 42_000,
        ..tape.clone_empty().open(0, 1, false)
    };
    for after in [0, 1, 3, 7, 15, 31, 63] {
        let at = begin + after * SECOND;
        let opening = Segment {
            flags: SYN,
            ack: 0,
            seq: 100,
            ..connection.segment(at, Host::A, 0)
        };
        tape.pass(at, &connection, &opening);
    }
    Truth::Calm(Calm {
        stalled_alone: 1,
        ..Calm::default()
    })
}

fn repeated_opening(tape: &mut Tape) -> Truth {
    let connection = tape.clone_empty().open(0, 40_000, false);
    let opening = Segment {
        flags: SYN,
        ack: 0,
        seq: 100,
        ..connection.segment(0, Host::A, 0)
    };
    tape.pass(0, &connection, &opening);
    let mut connection = tape.open(SECOND, 40_000, false);
    tape.transfer(SECOND + 50_000, &mut connection, Host::A, 20);
    CALM
}

fn one_loss(tape: &mut Tape) -> Truth {
    let (at, mut connection) = until_lost(tape, true, Host::A);
    let again = tape.repeat(at, &connection, Host::A, &[220]);
    tape.answer(again + TRIP, &connection, Host::A);
    tape.transfer(again + 2 * TRIP, &mut connection, Host::A, 100);
    CALM
}

/// Three duplicate acknowledgements, and a round trip later all is well.
fn fast_repetition(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    let first = connection.next[0];
    burst(tape, at, &mut connection, 10, 100);
    for number in 0..9 {
        let at = at + TRIP + 100 * (number + 1);
        let lacking = Segment {
            ack: first,
            ..connection.segment(at, Host::B, 0)
        };
        tape.pass(at, &connection, &lacking);
    }
    let again = Segment {
        seq: first,
        flags: PUSH,
        ..connection.segment(at, Host::A, SEGMENT)
    };
    tape.pass(at + TRIP + 1_000, &connection, &again);
    tape.answer(at + 2 * TRIP + 1_000, &connection, Host::A);
    tape.transfer(at + 3 * TRIP, &mut connection, Host::A, 20);
    CALM
}

/// A stream is answered a second late, all of it: nothing was lost.
fn late_answers(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, false);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    let last = burst(tape, at, &mut connection, 30, 3_000);
    tape.answer(last + SECOND, &connection, Host::A);
    tape.transfer(last + 2 * SECOND, &mut connection, Host::A, 20);
    CALM
}

fn answered_probes(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let mut at = tape.transfer(50_000, &mut connection, Host::A, 60);
    for after in [200_000, 400_000, 800_000, 1_600_000, 3_200_000] {
        let closed = Segment {
            window: 0,
            ..connection.segment(at, Host::B, 0)
        };
        tape.pass(at, &connection, &closed);
        at += after;
        let probe = Segment {
            seq: connection.next[0] - 1,
            ..connection.segment(at, Host::A, 0)
        };
        tape.pass(at, &connection, &probe);
        at += TRIP;
    }
    tape.answer(at, &connection, Host::A);
    tape.transfer(at + TRIP, &mut connection, Host::A, 20);
    CALM
}

fn kept_alive(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, false);
    let mut at = tape.transfer(50_000, &mut connection, Host::A, 20);
    for _ in 0..5 {
        at += 30 * SECOND;
        let probe = Segment {
            seq: connection.next[0] - 1,
            ..connection.segment(at, Host::A, 0)
        };
        tape.pass(at, &connection, &probe);
        tape.answer(at + TRIP, &connection, Host::A);
    }
    tape.transfer(at + SECOND, &mut connection, Host::A, 5);
    CALM
}

/// A segment is lost and repeated; half a minute later its sender asks whether the receiver is there.
fn kept_alive_by_peer(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::B, 60);
    let lost = connection;
    connection.next[1] += SEGMENT;
    for number in 1..4 {
        let at = at + number * 200;
        tape.send(at, &mut connection, Host::B);
        tape.answer(at + 100, &lost, Host::B);
    }
    let repaired = at + TRIP + 1_000;
    let again = Segment {
        flags: PUSH,
        ..lost.segment(repaired, Host::B, SEGMENT)
    };
    tape.pass(repaired, &lost, &again);
    tape.answer(repaired + 100, &connection, Host::B);
    let probed = repaired + 30 * SECOND;
    let probe = Segment {
        seq: connection.next[1] - 1,
        ..connection.segment(probed, Host::B, 1)
    };
    tape.pass(probed, &connection, &probe);
    tape.answer(probed + 100, &connection, Host::B);
    CALM
}

fn requests(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let mut at = 50_000;
    for pause in [300, 2_000, 7_000, 15_000, 400] {
        at = tape.transfer(at, &mut connection, Host::A, 1);
        at = tape.transfer(at, &mut connection, Host::B, 8);
        tape.others_send(Host::B, 40);
        at += pause * 1_000;
    }
    CALM
}

fn opened_again(tape: &mut Tape) -> Truth {
    let mut at = 0;
    for _ in 0..3 {
        let mut connection = tape.open(at, 40_000, false);
        at = tape.transfer(at + 50_000, &mut connection, Host::A, 20);
        for host in [Host::A, Host::B] {
            let end = Segment {
                flags: FIN,
                ..connection.segment(at, host, 0)
            };
            tape.pass(at, &connection, &end);
            connection.next[host as usize] += 1;
            at += TRIP;
        }
        tape.answer(at, &connection, Host::B);
        at += 3 * SECOND;
    }
    CALM
}

fn captured_twice(tape: &mut Tape) -> Truth {
    idle(tape, 0, 5);
    let twice = tape.packets.iter().flat_map(|packet| {
        let mut again = packet.clone();
        again.at += 20;
        [packet.clone(), again]
    });
    tape.packets = twice.collect();
    CALM
}

/// Answers of the same moment stand before what they answer.
fn out_of_order(tape: &mut Tape) -> Truth {
    idle(tape, 0, 5);
    for pair in tape.packets.chunks_mut(7) {
        if let [first, second, ..] = pair {
            std::mem::swap(&mut first.ip, &mut second.ip);
            std::mem::swap(&mut first.is_sent, &mut second.is_sent);
        }
    }
    CALM
}

fn from_the_middle(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::B, 60);
    tape.packets.drain(..30);
    tape.transfer(at + 4 * SECOND, &mut connection, Host::B, 20);
    CALM
}

fn abrupt_end(tape: &mut Tape) -> Truth {
    let mut connection = tape.open(0, 40_000, true);
    let at = tape.transfer(50_000, &mut connection, Host::A, 60);
    tape.send(at, &mut connection, Host::A);
    let end = Segment {
        flags: RST,
        ..connection.segment(at + TRIP, Host::B, 0)
    };
    tape.pass(at + TRIP, &connection, &end);
    CALM
}

fn datagrams(tape: &mut Tape) -> Truth {
    for number in 0..50 {
        tape.datagram(number * 20_000, Host::B);
    }
    for number in 200..250 {
        tape.datagram(number * 20_000, Host::B);
    }
    CALM
}
