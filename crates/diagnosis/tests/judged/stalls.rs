//! Connections that stand still while their path is there: flights that a full queue loses, and hosts that are late.
//!
//! The courses are those of captures that the lab wrote on a busy machine, cut down to what they show. Each stands
//! beside one that differs in the one thing that shows an outage.

use outlast_base::time::Instant;
use outlast_diagnosis::{Diagnosis, Findings};
use outlast_wire::outline::{Outline, OutlinedTransport};
use outlast_wire::pcapng::Direction;
use outlast_wire::tcp::Timestamps;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

/// Who sends the payload, and who receives it.
const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Others, whose datagrams pass the same point.
const STRANGERS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9)),
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9)),
];
const SEGMENT: u32 = 1_448;
/// There and back, in milliseconds.
const TRIP: u32 = 100;

/// A capture at one point. Times are in milliseconds; a timestamp is when its host sent it.
struct Tape {
    diagnosis: Diagnosis,
    /// Which way the sender's packets pass.
    direction: Direction,
}

/// A segment of the sender's: which one, what is its identification, when it was sent, and what it echoes.
struct Data {
    number: u32,
    identification: u16,
    stamp: u32,
    echo: u32,
}

/// An acknowledgement of all segments before one.
struct Answer {
    before: u32,
    stamp: u32,
    echo: u32,
}

impl Tape {
    fn new(direction: Direction) -> Self {
        Self {
            diagnosis: Diagnosis::default(),
            direction,
        }
    }

    fn data(&mut self, at: u32, data: &Data) {
        let header = TcpHeader {
            seq: SeqNumber(1 + data.number * SEGMENT),
            ..header(data.stamp, data.echo)
        };
        let header = TcpHeader {
            source_port: 40_000,
            destination_port: 5_001,
            ..header
        };
        let outline = Outline {
            source: SENDER,
            destination: RECEIVER,
            identification: data.identification,
            transport: OutlinedTransport::Tcp {
                header,
                payload_len: SEGMENT,
            },
        };
        self.pass(at, self.direction, &outline);
    }

    fn answer(&mut self, at: u32, answer: &Answer) {
        let header = TcpHeader {
            source_port: 5_001,
            destination_port: 40_000,
            ack: SeqNumber(1 + answer.before * SEGMENT),
            ..header(answer.stamp, answer.echo)
        };
        let outline = Outline {
            source: RECEIVER,
            destination: SENDER,
            identification: 0,
            transport: OutlinedTransport::Tcp {
                header,
                payload_len: 0,
            },
        };
        let direction = match self.direction {
            Direction::Inbound => Direction::Outbound,
            _ => Direction::Inbound,
        };
        self.pass(at, direction, &outline);
    }

    /// A datagram of others that passes as the sender's packets do.
    fn stranger(&mut self, at: u32) {
        self.other(at, STRANGERS);
    }

    /// A datagram of the sender's.
    fn datagram(&mut self, at: u32) {
        self.other(at, [SENDER, RECEIVER]);
    }

    fn other(&mut self, at: u32, [source, destination]: [IpAddr; 2]) {
        let outline = Outline {
            source,
            destination,
            identification: 0,
            transport: OutlinedTransport::Other,
        };
        self.pass(at, self.direction, &outline);
    }

    fn pass(&mut self, at: u32, direction: Direction, outline: &Outline) {
        let at = Instant::from_millis(at.into());
        self.diagnosis.handle_packet(at, 0, direction, outline);
    }

    fn finish(self) -> Findings {
        self.diagnosis.finish()
    }
}

fn header(stamp: u32, echo: u32) -> TcpHeader {
    let mut header = TcpHeader {
        seq: SeqNumber(1),
        ack: SeqNumber(1),
        flags: TcpFlags::ACK,
        window: 60_000,
        ..TcpHeader::default()
    };
    header.options.timestamps = Some(Timestamps { value: stamp, echo });
    header
}

/// What the receiver's end shows of a flight that is lost: data every 2 ms, one segment of which is missing near the
/// end, then nothing, then the missing one once more.
#[derive(Clone, Copy, Debug)]
struct LostFlight {
    /// Segments that arrive before the silence.
    arrived: u32,
    /// How many of them came after the missing one, if one is missing; each is a duplicate acknowledgement.
    behind_gap: u32,
    /// Packets that the sender's identifications show to be lost in the silence.
    lost: u16,
    /// How long it takes.
    pause: u32,
    /// How many of the last acknowledgements did not come to the sender.
    answers_lost: u32,
    /// How many of the last segments were sent at one moment.
    burst: u32,
    /// Whether datagrams of others pass every 20 ms, but for the silence.
    has_silent_strangers: bool,
    /// When the sender's own datagrams, which come every 20 ms until then, stop until the end: that long after the
    /// silence began.
    stream_stops_after: Option<u32>,
}

/// A flight of 65 packets, of which the lab's queue had no room for one, and a timer that had backed off.
const LOST_FLIGHT: LostFlight = LostFlight {
    arrived: 300,
    behind_gap: 60,
    lost: 65,
    pause: 5_500,
    answers_lost: 0,
    burst: 1,
    has_silent_strangers: false,
    stream_stops_after: None,
};

impl LostFlight {
    fn findings(&self) -> Findings {
        let mut tape = Tape::new(Direction::Inbound);
        let gap = (self.behind_gap > 0).then(|| self.arrived - self.behind_gap);
        // The first one tells the round trip: it echoes what was sent a round trip before.
        let sent_at = |number: u32| 1_000 + 2 * number;
        let stamp = |number: u32| sent_at(number.min(self.arrived + 1 - self.burst));
        let mut before = 0;
        let mut last = (0, 0);
        for number in (0..=self.arrived).filter(|number| Some(*number) != gap) {
            let at = sent_at(number) + TRIP / 2;
            if number.is_multiple_of(10) && self.has_silent_strangers {
                tape.stranger(at);
            }
            if number.is_multiple_of(10) && self.stream_stops_after.is_some() {
                tape.datagram(at);
            }
            let data = Data {
                number,
                identification: id(number),
                stamp: stamp(number),
                echo: stamp(number) - TRIP / 2,
            };
            tape.data(at, &data);
            if gap.is_none_or(|gap| number < gap) {
                before = number + 1;
            }
            let echo = stamp(before - 1);
            let answer = Answer {
                before,
                stamp: at,
                echo,
            };
            tape.answer(at, &answer);
            last = (at, number);
        }
        let (quiet_since, newest) = last;
        let back = quiet_since + self.pause;
        if self.has_silent_strangers {
            tape.stranger(back - TRIP);
        }
        if let Some(after) = self.stream_stops_after {
            for at in (20..after).step_by(20) {
                tape.datagram(quiet_since + at);
            }
            tape.datagram(back - TRIP);
        }
        let again = Data {
            number: gap.unwrap_or(newest + 1),
            identification: id(newest).wrapping_add(self.lost + 1),
            stamp: back - TRIP / 2,
            echo: quiet_since - 2 * self.answers_lost,
        };
        tape.data(back, &again);
        let answer = Answer {
            before: newest + 1,
            stamp: back,
            echo: again.stamp,
        };
        tape.answer(back, &answer);
        tape.finish()
    }
}

fn id(number: u32) -> u16 {
    (number % 65_536) as u16
}

/// The lab, an upload of CUBIC without SACK, at the receiver's end.
#[test]
fn a_flight_that_a_full_queue_lost_is_no_outage() {
    let found = LOST_FLIGHT.findings();
    assert_eq!(found.outages, []);
    assert_eq!(found.counters.stalled_alone, 1);

    let answers_lost = LostFlight {
        answers_lost: 20,
        ..LOST_FLIGHT
    };
    assert_eq!(answers_lost.findings().outages.len(), 1);
    // Others were silent as long, and were back before it.
    let all_silent = LostFlight {
        has_silent_strangers: true,
        ..LOST_FLIGHT
    };
    assert_eq!(all_silent.findings().outages.len(), 1);
}

/// The sender's datagrams tell: they come on while a flight is lost in a queue, and stop with the path.
#[test]
fn a_stream_that_stops_shows_an_outage_amid_a_stall() {
    let comes_on = LostFlight {
        stream_stops_after: Some(LOST_FLIGHT.pause - TRIP),
        ..LOST_FLIGHT
    };
    assert_eq!(comes_on.findings().outages, []);
    for after in [0, 1_000] {
        let stops = LostFlight {
            stream_stops_after: Some(after),
            ..LOST_FLIGHT
        };
        let found = stops.findings();
        let [outage] = &found.outages[..] else {
            panic!("{after} ms: {:?}", found.outages);
        };
        let quiet_since = 1_000 + 2 * LOST_FLIGHT.arrived + TRIP / 2;
        let began = (quiet_since + after) as f64 / 1_000.0;
        let start = outage.start.as_secs_f64();
        assert!((start - began).abs() < 0.1, "{start} instead of {began}");
    }
}

/// The end of a flight is lost, so that nobody says that something is missing.
#[test]
fn one_timeout_after_the_end_of_a_flight_was_lost_is_no_outage() {
    let tail = LostFlight {
        behind_gap: 0,
        lost: 15,
        pause: 550,
        ..LOST_FLIGHT
    };
    assert_eq!(tail.findings().outages, []);
    // However long: nothing is seen to be repeated, and the identifications may be other connections'.
    let longer = LostFlight {
        pause: 3_000,
        ..tail
    };
    assert_eq!(longer.findings().outages, []);
    let answers_lost = LostFlight {
        answers_lost: 20,
        ..longer
    };
    assert_eq!(answers_lost.findings().outages.len(), 1);
    // The beginning of that flight came out of the queue that had no room for its end.
    let burst = LostFlight {
        burst: 22,
        ..longer
    };
    assert_eq!(burst.findings().outages, []);
    let outage = LostFlight {
        answers_lost: 20,
        ..burst
    };
    assert_eq!(outage.findings().outages.len(), 1);
}

proptest! {
    /// Whatever the numbers: as long as all answers came and told of the loss, the path was there; and if a good part of
    /// them did not, it was not.
    #[test]
    fn a_lost_flight_is_told_by_the_answers_that_came(
        arrived in 100_u32..400,
        behind_gap in 4_u32..60,
        lost in 8_u16..200,
        pause in 400_u32..8_000,
    ) {
        let flight = LostFlight { arrived, behind_gap, lost, pause, ..LOST_FLIGHT };
        prop_assert_eq!(flight.findings().outages, []);
        let outage = LostFlight { answers_lost: 16, ..flight };
        prop_assert_eq!(outage.findings().outages.len(), 1);
    }
}

/// What the sender's own end shows when its host stands still: it sends nothing although acknowledgements come, and
/// then answers them one after the other; or, in an outage, knows none of them.
fn late_sender(answers_came: bool) -> Findings {
    const SILENT_FROM: u32 = 200;
    let mut tape = Tape::new(Direction::Outbound);
    let sent_at = |number: u32| 1_000 + 2 * number;
    for number in 0..SILENT_FROM {
        let at = sent_at(number);
        if let Some(before) = number.checked_sub(TRIP / 2) {
            let answer = Answer {
                before: before + 1,
                stamp: at - TRIP / 2,
                echo: sent_at(before),
            };
            tape.answer(at, &answer);
        }
        let data = Data {
            number,
            identification: id(number),
            stamp: at,
            echo: at - TRIP / 2,
        };
        tape.data(at, &data);
    }
    let stood_still = sent_at(SILENT_FROM);
    for late in 0..24 {
        let at = stood_still + 2 * late;
        let before = SILENT_FROM - TRIP / 2 + late;
        let answer = Answer {
            before: before + 1,
            stamp: at - TRIP / 2,
            echo: sent_at(before),
        };
        tape.answer(at, &answer);
    }
    let awake = stood_still + 270;
    for late in 0..24 {
        let (at, echo) = match answers_came {
            true => (awake, stood_still + 2 * late - TRIP / 2),
            // The first is repeated by a timer, the others once that is answered.
            false if late == 0 => (awake, stood_still - TRIP / 2 - 2),
            false => (awake + TRIP, awake + TRIP / 2),
        };
        if !answers_came && late == 1 {
            let answer = Answer {
                before: SILENT_FROM,
                stamp: awake + TRIP / 2,
                echo: awake,
            };
            tape.answer(at, &answer);
        }
        let data = Data {
            number: SILENT_FROM + late,
            identification: id(SILENT_FROM + late),
            stamp: at,
            echo,
        };
        tape.data(at, &data);
    }
    tape.finish()
}

#[test]
fn a_sender_that_stood_still_and_knows_all_answers_was_reached() {
    let found = late_sender(true);
    assert_eq!(found.outages, []);
    assert_eq!(found.counters.stalled_alone, 1);
    assert_eq!(late_sender(false).outages.len(), 1);
}

/// What the receiver's own end shows when its host answers late by so many milliseconds, in the middle of a recovery:
/// all its acknowledgements say the same and echo the same.
fn late_receiver(late: u32) -> Findings {
    const GAP: u32 = 150;
    let mut tape = Tape::new(Direction::Inbound);
    // A late machine delivers several at a time.
    let arrives_at = |number: u32| 1_000 + number / 5 * 10;
    let mut answers = Vec::new();
    for number in (0..400).filter(|number| *number != GAP) {
        let at = arrives_at(number);
        let answered = match number {
            0..200 => at,
            _ => at.max(arrives_at(200) + late),
        };
        answers.push((
            answered,
            Answer {
                before: (number + 1).min(GAP),
                stamp: answered,
                echo: arrives_at(number.min(GAP - 1)) - TRIP / 2,
            },
        ));
    }
    let mut answers = answers.into_iter().peekable();
    for number in (0..400).filter(|number| *number != GAP) {
        let at = arrives_at(number);
        while let Some((answered, answer)) = answers.next_if(|(answered, _)| *answered < at) {
            tape.answer(answered, &answer);
        }
        let data = Data {
            number,
            identification: id(number),
            stamp: at - TRIP / 2,
            echo: at - TRIP,
        };
        tape.data(at, &data);
    }
    for (answered, answer) in answers {
        tape.answer(answered, &answer);
    }
    tape.finish()
}

#[test]
fn a_receiver_that_answers_a_stream_late_was_reached() {
    assert_eq!(late_receiver(150).outages, []);
}

/// A recovery without SACK: one segment in a round trip fills a gap, and is answered at once. Then four come, and the
/// receiver's host answers all of them 5 ms after the first.
#[test]
fn an_answer_that_is_late_by_milliseconds_is_no_outage() {
    const LATE: u32 = 5;
    let mut tape = Tape::new(Direction::Inbound);
    // Every second one of the last segments is lost.
    let is_lost = |number: u32| number >= 40 && number.is_multiple_of(2);
    let mut identification = 0;
    let mut data = |number: u32, at: u32| {
        identification += 1;
        Data {
            number,
            identification,
            stamp: at - TRIP / 2,
            echo: at - TRIP,
        }
    };
    let answer = |before: u32, at: u32| Answer {
        before,
        stamp: at,
        echo: at - TRIP / 2,
    };
    for number in (0..100).filter(|number| !is_lost(*number)) {
        let at = 1_000 + 2 * number;
        tape.data(at, &data(number, at));
        tape.answer(at, &answer(number.min(39) + 1, at));
    }
    let mut at = 1_200;
    for number in [40, 42, 44, 46] {
        at += TRIP;
        tape.data(at, &data(number, at));
        tape.answer(at, &answer(number + 2, at));
    }
    at += TRIP;
    tape.data(at, &data(48, at));
    for number in [50, 52, 54] {
        tape.data(at + LATE, &data(number, at));
    }
    for number in [48, 50, 52, 54] {
        tape.answer(at + LATE, &answer(number + 2, at + LATE));
    }
    assert_eq!(tape.finish().outages, []);
}
