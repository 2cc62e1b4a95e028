//! One flow of a run's trace: for the time-sequence diagram, and for what happened at each
//! reconnection.

use crate::record::{Again, Reconnection};
use outlast_base::time::Instant;
use outlast_report::plot::{Acknowledgement, DataSegment, Fate as Drawn, Outage, TimeSequence};
use outlast_scenario::result::OutageResult;
use outlast_sim::trace::{Fate, Trace, TracedPacket, TracedSegment};
use outlast_wire::TcpFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The flow with the most payload of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FlowTrace {
    /// Segments with payload of the flow's sender.
    pub data: Vec<Segment>,
    /// What acknowledges them.
    pub acknowledgements: Vec<Segment>,
    /// When the link went down and came back, in seconds from the workload's first byte.
    pub outages: Vec<(f64, Option<f64>)>,
    /// Packets that the trace had no room for.
    pub omitted: u64,
}

/// A segment of a flow: `[time_s, number, payload bytes, bytes on the wire, arrival_s, kind]`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "Row", into = "Row")]
pub struct Segment {
    /// When it came to the link, in seconds from the workload's first byte.
    pub time_s: f64,
    /// The first byte of its payload, or the byte that it acknowledges up to, from the start of the
    /// stream.
    pub number: u64,
    /// Its payload.
    pub payload_len: u32,
    /// The whole packet.
    pub wire_len: u32,
    /// When it arrived; `None` if it never did.
    pub arrival_s: Option<f64>,
    /// Who put it there, and who took it away.
    pub part: Part,
}

/// What Outlast had to do with a packet.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Nothing.
    #[default]
    None,
    /// It put the packet on the path.
    Injected,
    /// It took the packet before the link could, to send it later.
    Taken,
}

type Row = (f64, u64, u32, u32, Option<f64>, Part);

impl From<Row> for Segment {
    fn from((time_s, number, payload_len, wire_len, arrival_s, part): Row) -> Self {
        Self {
            time_s,
            number,
            payload_len,
            wire_len,
            arrival_s,
            part,
        }
    }
}

impl From<Segment> for Row {
    fn from(s: Segment) -> Self {
        (
            s.time_s,
            s.number,
            s.payload_len,
            s.wire_len,
            s.arrival_s,
            s.part,
        )
    }
}

/// The two ends of a connection, whoever sends.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Ends([SocketAddr; 2]);

impl Ends {
    /// The connections with payload in `trace`, in the order in which they were opened.
    #[must_use]
    pub fn in_trace(trace: &Trace) -> Vec<Self> {
        let mut payloads: BTreeMap<Self, (usize, u64)> = BTreeMap::new();
        let segments = trace.packets().iter().filter_map(|packet| packet.segment);
        for segment in segments {
            let place = payloads.len();
            let (_, bytes) = payloads.entry(Self::of(&segment)).or_insert((place, 0));
            *bytes += u64::from(segment.payload_len);
        }
        let with_payload = payloads.into_iter().filter(|(_, (_, bytes))| *bytes > 0);
        let mut found: Vec<_> = with_payload
            .map(|(ends, (place, _))| (place, ends))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, ends)| ends).collect()
    }

    fn of(segment: &TracedSegment) -> Self {
        let mut ends = [segment.source, segment.destination];
        ends.sort_unstable();
        Self(ends)
    }

    /// Whether one of them has this port.
    #[must_use]
    pub fn have_port(&self, port: u16) -> bool {
        self.0.iter().any(|end| end.port() == port)
    }
}

impl FlowTrace {
    /// The flow with the most payload in `trace`, with times counted from `started`; `None` if no
    /// packet has payload.
    #[must_use]
    pub fn of(trace: &Trace, started: Instant) -> Option<Self> {
        Self::among(trace, started, |_| true)
    }

    /// The diagram of the connection between `ends`.
    #[must_use]
    pub fn between(trace: &Trace, started: Instant, ends: Ends) -> Option<Self> {
        Self::among(trace, started, |segment| Ends::of(segment) == ends)
    }

    fn among(
        trace: &Trace,
        started: Instant,
        is_wanted: impl Fn(&TracedSegment) -> bool,
    ) -> Option<Self> {
        let segments = || {
            let all = trace.packets().iter();
            all.filter_map(|p| Some((p, p.segment.filter(&is_wanted)?)))
        };
        let (source, destination) = most_payload(segments().map(|(_, segment)| segment))?;
        let of_sender = |s: &TracedSegment| (s.source, s.destination) == (source, destination);
        let of_receiver = |s: &TracedSegment| (s.destination, s.source) == (source, destination);
        // The stream begins behind the SYN; a trace always sees it.
        let syn = segments().find(|(_, s)| of_sender(s) && s.flags.contains(TcpFlags::SYN));
        let first = syn.map(|(_, syn)| syn.seq + 1).or_else(|| {
            segments()
                .find(|(_, s)| of_sender(s) && s.payload_len > 0)
                .map(|(_, s)| s.seq)
        })?;
        let from_first = |seq: outlast_wire::SeqNumber| u64::from(seq.0.wrapping_sub(first.0));
        let data = segments()
            .filter(|(_, s)| of_sender(s) && s.payload_len > 0)
            .map(|(packet, s)| Segment::new(packet, from_first(s.seq), s.payload_len, started));
        let acknowledgements = segments()
            .filter(|(_, s)| of_receiver(s) && s.flags.contains(TcpFlags::ACK))
            .map(|(packet, s)| Segment::new(packet, from_first(s.ack), s.payload_len, started));
        Some(Self {
            data: data.collect(),
            acknowledgements: acknowledgements.collect(),
            outages: outages(trace, started),
            omitted: trace.omitted(),
        })
    }

    /// How much of the stream had crossed the link without a gap, and when: each change.
    #[must_use]
    pub fn deliveries(&self) -> Vec<(f64, u64)> {
        let arrived = |segment: &Segment| Some((segment.arrival_s?, *segment));
        let mut arrivals: Vec<_> = self.data.iter().filter_map(arrived).collect();
        arrivals.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (mut in_order, mut deliveries) = (0, Vec::new());
        // Behind a gap: first byte to the byte behind the last.
        let mut ahead: BTreeMap<u64, u64> = BTreeMap::new();
        for (time, segment) in arrivals {
            let before = in_order;
            let end = segment.number + u64::from(segment.payload_len);
            let known = ahead.entry(segment.number).or_insert(end);
            *known = end.max(*known);
            while let Some(next) = ahead.first_entry().filter(|next| *next.key() <= in_order) {
                in_order = next.remove().max(in_order);
            }
            if in_order > before {
                deliveries.push((time, in_order));
            }
        }
        deliveries
    }

    /// The diagram of the time from `from_s` to `to_s`, with numbers counted from the lowest that
    /// the sender itself sends in that time. Older segments that Outlast repeats lie at the bottom.
    #[must_use]
    pub fn diagram(&self, from_s: f64, to_s: f64) -> TimeSequence {
        let within = |segment: &&Segment| (from_s..=to_s).contains(&segment.time_s);
        let data = || self.data.iter().filter(within);
        let own = data().filter(|segment| segment.part != Part::Injected);
        let lowest = own.map(|segment| segment.number).min().unwrap_or(0);
        let data = data().map(|segment| DataSegment {
            time_s: segment.time_s,
            sequence: segment.number.saturating_sub(lowest),
            length: segment.payload_len,
            fate: segment.drawn(),
        });
        let acknowledgements = self.acknowledgements.iter().filter(within);
        let acknowledgements = acknowledgements.map(|segment| Acknowledgement {
            time_s: segment.time_s,
            number: segment.number.saturating_sub(lowest),
            fate: segment.drawn(),
        });
        let outages = self
            .outages
            .iter()
            .map(|&(start_s, end_s)| Outage { start_s, end_s });
        TimeSequence {
            data: data.collect(),
            acknowledgements: acknowledgements.collect(),
            outages: outages.collect(),
            window_s: Some((from_s, to_s)),
        }
    }
}

/// What followed each of `outages` on a link of this rate and one-way delay.
#[must_use]
pub fn reconnections(
    trace: &FlowTrace,
    outages: &[OutageResult],
    bits_per_s: Option<u64>,
    delay_s: f64,
) -> Vec<Reconnection> {
    let first_sent = first_sent(trace);
    let next_start = |index: usize| outages.get(index + 1).map_or(f64::INFINITY, |o| o.start_s);
    let following = |(index, outage): (usize, &OutageResult)| {
        let Some(length) = outage.length_s else {
            return Reconnection::default();
        };
        let back = outage.start_s + length;
        let since = || {
            trace
                .data
                .iter()
                .filter(move |segment| segment.time_s >= back)
        };
        let restart = since()
            .filter(|segment| segment.part != Part::Injected && segment.arrival_s.is_some())
            .map(|segment| segment.time_s)
            .min_by(f64::total_cmp)
            .filter(|&time| time < next_start(index));
        let busy = outage.resume_s.zip(bits_per_s).map(|(resume, rate)| {
            let by = |segment: &&Segment| segment.arrival_s.is_some_and(|at| at <= back + resume);
            let bytes: u64 = since()
                .filter(by)
                .map(|segment| u64::from(segment.wire_len))
                .sum();
            let sending = bytes as f64 * 8.0 / rate as f64;
            (sending / (resume - delay_s).max(f64::EPSILON)).clamp(0.0, 1.0)
        });
        Reconnection {
            restart_s: restart.map(|time| time - back),
            busy,
            again: again(
                trace,
                &first_sent,
                (outage.start_s, back),
                next_start(index),
            ),
        }
    };
    outages.iter().enumerate().map(following).collect()
}

/// When each of the sender's segments was sent first, by its number.
fn first_sent(trace: &FlowTrace) -> BTreeMap<u64, f64> {
    let mut first_sent = BTreeMap::new();
    for segment in trace.data.iter().filter(|s| s.part != Part::Injected) {
        first_sent.entry(segment.number).or_insert(segment.time_s);
    }
    first_sent
}

/// What the sender sent again from link-down to the next outage.
fn again(
    trace: &FlowTrace,
    first_sent: &BTreeMap<u64, f64>,
    (down, back): (f64, f64),
    end: f64,
) -> Again {
    let retransmissions = || {
        trace
            .data
            .iter()
            .filter(|segment| segment.part != Part::Injected)
            .filter(|segment| segment.time_s >= down && segment.time_s < end)
            .filter(|segment| first_sent[&segment.number] < segment.time_s)
    };
    let Some(first) = retransmissions().next() else {
        return Again::default();
    };
    let second = retransmissions().skip(1).find(|s| s.number == first.number);
    let through = retransmissions().find(|s| s.time_s >= back && s.arrival_s.is_some());
    Again {
        first_wait_s: Some(rounded(first.time_s - first_sent[&first.number])),
        second_wait_s: second.map(|second| rounded(second.time_s - first.time_s)),
        through_s: through.map(|through| rounded(through.time_s - back)),
    }
}

impl Segment {
    fn new(packet: &TracedPacket, number: u64, payload_len: u32, started: Instant) -> Self {
        let arrival_s = match packet.fate {
            Fate::Arrived(at) => Some(seconds_from(started, at)),
            Fate::OnTheWay | Fate::Dropped(..) | Fate::Taken(_) => None,
        };
        Self {
            time_s: seconds_from(started, packet.at),
            number,
            payload_len,
            wire_len: packet.length,
            arrival_s,
            part: match packet.fate {
                _ if packet.origin.is_injected() => Part::Injected,
                Fate::Taken(_) => Part::Taken,
                _ => Part::None,
            },
        }
    }

    const fn drawn(self) -> Drawn {
        match (self.part, self.arrival_s) {
            (Part::Injected, _) => Drawn::FromOutlast,
            (Part::Taken, _) => Drawn::Taken,
            (Part::None, Some(_)) => Drawn::Passed,
            (Part::None, None) => Drawn::Dropped,
        }
    }
}

/// Source and destination of the flow with the most payload; `None` if no segment has any.
fn most_payload(segments: impl Iterator<Item = TracedSegment>) -> Option<(SocketAddr, SocketAddr)> {
    let mut payloads: BTreeMap<(SocketAddr, SocketAddr), u64> = BTreeMap::new();
    for segment in segments.filter(|segment| segment.payload_len > 0) {
        let flow = (segment.source, segment.destination);
        *payloads.entry(flow).or_default() += u64::from(segment.payload_len);
    }
    let largest = payloads.into_iter().max_by_key(|(_, bytes)| *bytes);
    largest.map(|(flow, _)| flow)
}

fn outages(trace: &Trace, started: Instant) -> Vec<(f64, Option<f64>)> {
    let mut outages: Vec<(f64, Option<f64>)> = Vec::new();
    for change in trace.carrier() {
        let at = seconds_from(started, change.at);
        match outages.last_mut() {
            Some((_, end @ None)) if change.up => *end = Some(at),
            _ if !change.up => outages.push((at, None)),
            _ => {}
        }
    }
    outages
}

/// Seconds from `origin` to `at`; negative if it is earlier. To the microsecond.
fn seconds_from(origin: Instant, at: Instant) -> f64 {
    let seconds = if at >= origin {
        at.since(origin).as_secs_f64()
    } else {
        -origin.since(at).as_secs_f64()
    };
    rounded(seconds)
}

/// Seconds to the microsecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;

    /// A segment of 1000 bytes on the wire, which take 8 ms at the rate of these tests.
    fn segment(time_s: f64, arrival_s: Option<f64>, injected: bool) -> Segment {
        let part = if injected { Part::Injected } else { Part::None };
        Segment {
            time_s,
            number: 0,
            payload_len: 948,
            wire_len: 1000,
            arrival_s,
            part,
        }
    }

    fn outage(start_s: f64, length_s: f64, resume_s: Option<f64>) -> OutageResult {
        OutageResult {
            start_s,
            length_s: Some(length_s),
            resume_s,
            half_second_s: None,
            first_five_seconds_share: None,
        }
    }

    fn after(data: Vec<Segment>, outages: &[OutageResult]) -> Vec<Reconnection> {
        let trace = FlowTrace {
            data,
            ..FlowTrace::default()
        };
        reconnections(&trace, outages, Some(RATE), 0.010)
    }

    #[test]
    fn a_sender_restarts_with_its_own_first_segment_that_arrives() {
        let data = vec![
            segment(1.5, None, false),
            segment(2.0, Some(2.018), true),
            segment(2.03, None, false),
            segment(2.04, Some(2.058), false),
        ];
        let found = after(data, &[outage(1.0, 1.0, Some(0.018))]);
        let restart = found[0].restart_s.expect("it restarted");
        assert!((restart - 0.04).abs() < 1e-9, "{restart}");
    }

    #[test]
    fn what_restarts_only_after_the_next_outage_has_not_restarted() {
        let data = vec![segment(4.5, Some(4.518), false)];
        let outages = [outage(1.0, 1.0, None), outage(3.0, 1.0, Some(0.518))];
        let found = after(data, &outages);
        assert_eq!(found[0], Reconnection::default());
        assert!(found[1].restart_s.is_some());
    }

    #[test]
    fn what_is_sent_again_is_timed_from_its_first_transmission() {
        let numbered = |time, arrival, number| Segment {
            number,
            ..segment(time, arrival, false)
        };
        let data = vec![
            numbered(0.5, Some(0.51), 0),
            numbered(0.9, None, 1_000),
            numbered(1.1, None, 2_000),
            numbered(1.5, None, 1_000),
            numbered(2.7, Some(2.71), 1_000),
            numbered(2.8, Some(2.81), 2_000),
        ];
        let again = after(data, &[outage(1.0, 1.0, Some(0.71))])[0].again;
        let near = |found: Option<f64>, wanted: f64| {
            assert!(
                found.is_some_and(|found| (found - wanted).abs() < 1e-9),
                "{again:?}"
            );
        };
        near(again.first_wait_s, 0.6);
        near(again.second_wait_s, 1.2);
        near(again.through_s, 0.7);
    }

    #[test]
    fn a_link_that_sends_all_the_time_is_busy_and_one_that_waits_is_not() {
        let all_the_time = (0..10).map(|n| {
            let time = 2.0 + 0.008 * f64::from(n);
            segment(time, Some(time + 0.018), true)
        });
        let busy = after(all_the_time.collect(), &[outage(1.0, 1.0, Some(0.090))]);
        assert!(busy[0].busy.is_some_and(|busy| busy > 0.99), "{busy:?}");
        let late = vec![segment(2.072, Some(2.090), true)];
        let idle = after(late, &[outage(1.0, 1.0, Some(0.090))]);
        assert!(
            idle[0].busy.is_some_and(|busy| (busy - 0.1).abs() < 1e-9),
            "{idle:?}"
        );
    }

    #[test]
    fn a_diagram_counts_from_the_lowest_number_that_the_sender_sends_in_it() {
        let at = |time, number, injected| Segment {
            number,
            ..segment(time, Some(time), injected)
        };
        let data = vec![
            at(0.5, 100, false),
            at(1.0, 5_000, false),
            at(1.5, 0, true),
            at(2.0, 6_000, false),
        ];
        let acknowledgements = vec![at(1.1, 5_500, false)];
        let trace = FlowTrace {
            data,
            acknowledgements,
            ..FlowTrace::default()
        };
        let diagram = trace.diagram(0.9, 2.5);
        let drawn: Vec<u64> = diagram
            .data
            .iter()
            .map(|segment| segment.sequence)
            .collect();
        assert_eq!(drawn, [0, 0, 1_000]);
        assert_eq!(diagram.acknowledgements[0].number, 500);
    }

    #[test]
    fn deliveries_are_what_has_no_gap_before_it() {
        let at = |arrival: Option<f64>, number| Segment {
            number,
            payload_len: 100,
            ..segment(0.0, arrival, false)
        };
        let trace = FlowTrace {
            data: vec![
                at(Some(1.0), 0),
                at(None, 100),
                at(Some(1.2), 200),
                at(Some(1.3), 300),
                at(Some(2.0), 100),
                at(Some(2.1), 0),
                at(Some(2.2), 400),
            ],
            ..FlowTrace::default()
        };
        assert_eq!(trace.deliveries(), [(1.0, 100), (2.0, 400), (2.2, 500)]);
    }

    #[test]
    fn a_segment_is_stored_as_a_row() {
        let stored = serde_json::to_string(&segment(1.25, None, true)).unwrap();
        assert_eq!(stored, "[1.25,0,948,1000,null,\"injected\"]");
        assert_eq!(
            serde_json::from_str::<Segment>(&stored).unwrap(),
            segment(1.25, None, true)
        );
    }
}
