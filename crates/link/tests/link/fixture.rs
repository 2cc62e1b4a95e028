//! Drives a link in virtual time and writes down what it does.

use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::trace::{DeliveryTrace, Trace};
use outlast_link::{
    DropReason, Frame, InFlight, Link, LinkConfig, LinkEvent, OutageProcess, PipeConfig,
    RateChange, Reason, Way, WhileDown,
};
use proptest::prelude::*;
use std::sync::Arc;

/// A frame that can be told from the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Numbered {
    pub(crate) id: usize,
    pub(crate) len: u64,
}

impl Frame for Numbered {
    fn wire_len(&self) -> ByteCount {
        ByteCount(self.len)
    }
}

/// What a link did, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Record {
    Out {
        at: Duration,
        way: Way,
        id: usize,
    },
    Dropped {
        at: Duration,
        way: Way,
        id: usize,
        reason: DropReason,
    },
    Up {
        at: Duration,
    },
    Down {
        at: Duration,
    },
}

/// A frame to hand in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Duration,
    pub(crate) way: Way,
    pub(crate) len: u64,
}

/// A link and its diary. Its time is zero when it is made.
pub(crate) struct Driven {
    pub(crate) link: Link<Numbered>,
    pub(crate) records: Vec<Record>,
    now: Instant,
    frames: usize,
}

impl Driven {
    pub(crate) fn new(config: LinkConfig) -> Self {
        let link = Link::new(config);
        Self {
            link,
            records: Vec::new(),
            now: Instant::ZERO,
            frames: 0,
        }
    }

    /// A link whose outage process runs from zero on.
    pub(crate) fn started(config: LinkConfig) -> Self {
        let mut driven = Self::new(config);
        driven.link.start(Instant::ZERO);
        driven.drain();
        driven
    }

    /// Serves every timer on time until `at`.
    pub(crate) fn run_until(&mut self, at: Duration) {
        let until = Instant::ZERO + at;
        while let Some((due, _)) = self.link.poll_timeout().filter(|&(due, _)| due <= until) {
            assert!(due >= self.now, "a timer lies in the past");
            self.now = due;
            self.link.handle_timeout(due);
            self.drain();
            let next = self.link.poll_timeout();
            assert!(
                next.is_none_or(|(next, _)| next > due),
                "a timer fires twice: {next:?}"
            );
        }
        self.now = until;
        self.link.handle_timeout(until);
        self.drain();
    }

    /// Hands in a frame, after serving every timer on time; tells its number.
    pub(crate) fn send(&mut self, at: Duration, way: Way, len: u64) -> usize {
        self.run_until(at);
        self.send_late(at, way, len)
    }

    /// Hands in a frame without having served the timers before it.
    pub(crate) fn send_late(&mut self, at: Duration, way: Way, len: u64) -> usize {
        self.now = Instant::ZERO + at;
        let id = self.frames;
        self.frames += 1;
        self.link.handle_packet(self.now, way, Numbered { id, len });
        self.drain();
        id
    }

    /// Frames that wait in the queues of a link that is down, or that sends too slowly to have sent
    /// them between its outages; the one being sent is among them.
    pub(crate) fn waiting(&mut self) -> usize {
        if self.link.config().while_down == WhileDown::Dropped {
            return 0;
        }
        // Until the link goes down the frame being sent is not in its queue. What was on its way then, or held back to be
        // overtaken, still comes out.
        for _ in 0..100_000 {
            let Some((at, reason)) = self.link.poll_timeout() else {
                break;
            };
            if reason == Reason::Up {
                break;
            }
            self.run_until(at.since(Instant::ZERO));
        }
        let queued = Way::BOTH.map(|way| self.link.queued(self.now, way));
        queued.into_iter().sum()
    }

    /// When frame `id` came out.
    #[track_caller]
    pub(crate) fn came_out(&self, id: usize) -> Duration {
        let at = self.records.iter().find_map(|record| match *record {
            Record::Out { at, id: out, .. } if out == id => Some(at),
            _ => None,
        });
        at.unwrap_or_else(|| panic!("frame {id} did not come out: {:?}", self.fate(id)))
    }

    /// Why and when frame `id` was dropped, if it was.
    pub(crate) fn fate(&self, id: usize) -> Option<(Duration, DropReason)> {
        self.records.iter().find_map(|record| match *record {
            Record::Dropped {
                at,
                id: dropped,
                reason,
                ..
            } if dropped == id => Some((at, reason)),
            _ => None,
        })
    }

    /// The frames that came out, in order.
    pub(crate) fn out(&self, way: Way) -> Vec<usize> {
        let out = self.records.iter().filter_map(|record| match *record {
            Record::Out { way: out, id, .. } if out == way => Some(id),
            _ => None,
        });
        out.collect()
    }

    pub(crate) fn drain(&mut self) {
        let at = self.now.since(Instant::ZERO);
        while let Some((way, frame)) = self.link.poll_transmit() {
            self.records.push(Record::Out {
                at,
                way,
                id: frame.id,
            });
        }
        while let Some(event) = self.link.poll_event() {
            self.records.push(match event {
                LinkEvent::Up => Record::Up { at },
                LinkEvent::Down => Record::Down { at },
                LinkEvent::Dropped { way, frame, reason } => Record::Dropped {
                    at,
                    way,
                    id: frame.id,
                    reason,
                },
            });
        }
    }
}

/// Sends all of `arrivals` on time, then waits until long after the last.
pub(crate) fn play(config: &LinkConfig, arrivals: &[Arrival]) -> Driven {
    let mut driven = Driven::started(config.clone());
    for arrival in arrivals {
        driven.send(arrival.at, arrival.way, arrival.len);
    }
    driven.run_until(arrivals.last().map_or(Duration::ZERO, |last| last.at) + LONG);
    driven
}

/// Longer than any generated link needs to get rid of its frames.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn mbit(megabits: u64) -> Option<BitRate> {
    BitRate::from_bits_per_second(megabits * 1_000_000)
}

/// A link with `pipe` both ways, always up.
pub(crate) fn plain(pipe: PipeConfig) -> LinkConfig {
    LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        ..LinkConfig::default()
    }
}

/// 12 Mbit/s, so that 1500 bytes take a millisecond, and 10 ms to the far end.
pub(crate) fn millisecond_pipe() -> PipeConfig {
    PipeConfig {
        rate: mbit(12),
        delay: ms(10),
        queue: 5,
        ..PipeConfig::default()
    }
}

/// A link that is down from `start` for `length`.
pub(crate) fn with_outage(start: Duration, length: Duration) -> LinkConfig {
    let outages = OutageProcess::Single { start, length };
    LinkConfig {
        outages,
        ..plain(millisecond_pipe())
    }
}

pub(crate) fn deliveries(text: &str) -> Arc<DeliveryTrace> {
    match Trace::parse(text) {
        Ok(Trace::Deliveries(trace)) => trace,
        other => panic!("not a packet-delivery trace: {other:?}"),
    }
}

pub(crate) fn any_way() -> impl Strategy<Value = Way> {
    prop::sample::select(&Way::BOTH[..])
}

/// Up to 200 frames within some seconds, in order of time, often several at once.
pub(crate) fn any_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let step = prop_oneof![3 => Just(0_u64), 3 => 1..2_000_000_u64, 1 => 0..200_000_000_u64];
    let arrival = (step, any_way(), prop_oneof![Just(1_500_u64), 20..3_000_u64]);
    prop::collection::vec(arrival, 1..200).prop_map(|arrivals| {
        let mut now = Duration::ZERO;
        let arrivals = arrivals.into_iter().map(|(step, way, len)| {
            now += Duration::from_nanos(step);
            Arrival { at: now, way, len }
        });
        arrivals.collect()
    })
}

/// A pipe without damage.
pub(crate) fn any_clean_pipe() -> impl Strategy<Value = PipeConfig> {
    let rate = prop_oneof![
        1 => Just(None),
        4 => (100_000_u64..1_000_000_000).prop_map(BitRate::from_bits_per_second),
    ];
    let delay = prop_oneof![Just(0), 0..50_000_000_u64].prop_map(Duration::from_nanos);
    (rate, delay, 1..20_usize).prop_map(|(rate, delay, queue)| PipeConfig {
        rate,
        delay,
        queue,
        ..PipeConfig::default()
    })
}

pub(crate) fn any_pipe() -> impl Strategy<Value = PipeConfig> {
    let chance = || prop_oneof![Just(0.0), 0.0..0.5, Just(1.0)];
    (any_clean_pipe(), chance(), chance(), chance()).prop_map(|(pipe, loss, duplicate, reorder)| {
        PipeConfig {
            loss,
            duplicate,
            reorder,
            ..pipe
        }
    })
}

pub(crate) fn any_outages() -> impl Strategy<Value = OutageProcess> {
    let period = || (1_000_000..2_000_000_000_u64).prop_map(Duration::from_nanos);
    let traces = prop::collection::vec((0..40_u64, 1..4_usize), 1..40).prop_map(|steps| {
        let mut at = 0;
        let lines = steps.into_iter().flat_map(|(step, times)| {
            at += step * step;
            vec![format!("{at}\n"); times]
        });
        let lines: String = lines.collect();
        deliveries(&format!("{lines}{}\n", at + 1))
    });
    prop_oneof![
        Just(OutageProcess::AlwaysUp),
        (period(), period()).prop_map(|(start, length)| OutageProcess::Single { start, length }),
        (period(), period(), period()).prop_map(|(first, up, down)| OutageProcess::Periodic {
            first,
            up,
            down
        }),
        (period(), period()).prop_map(|(up, down)| OutageProcess::Uniform { up, down }),
        (period(), period()).prop_map(|(up, down)| OutageProcess::Normal { up, down }),
        (period(), period()).prop_map(|(up, down)| OutageProcess::Exponential { up, down }),
        traces.prop_map(|trace| OutageProcess::Deliveries {
            trace,
            gap: ms(200)
        }),
    ]
}

pub(crate) fn any_in_flight() -> impl Strategy<Value = InFlight> {
    prop_oneof![Just(InFlight::Delivered), Just(InFlight::Lost)]
}

fn any_while_down() -> impl Strategy<Value = WhileDown> {
    prop_oneof![Just(WhileDown::Dropped), Just(WhileDown::Queued)]
}

fn any_rate_changes() -> impl Strategy<Value = Vec<RateChange>> {
    let rate = || prop::option::of((100_000_u64..1_000_000_000).prop_map(bits));
    let change = (0..2_000_000_000_u64, rate(), rate());
    prop::collection::vec(change, 0..4).prop_map(|mut changes| {
        changes.sort_unstable_by_key(|&(at, ..)| at);
        let changes = changes.into_iter();
        changes
            .map(|(at, to_mobile, to_fixed)| RateChange {
                at: Duration::from_nanos(at),
                to_mobile,
                to_fixed,
            })
            .collect()
    })
}

fn bits(per_second: u64) -> BitRate {
    BitRate::from_bits_per_second(per_second).expect("not zero")
}

pub(crate) fn link_of(
    pipe: impl Strategy<Value = PipeConfig> + Clone,
) -> impl Strategy<Value = LinkConfig> {
    (
        pipe.clone(),
        pipe,
        any_outages(),
        any_in_flight(),
        any_while_down(),
        any_rate_changes(),
        any::<u64>(),
    )
        .prop_map(
            |(to_mobile, to_fixed, outages, in_flight, while_down, rate_changes, seed)| {
                LinkConfig {
                    to_mobile,
                    to_fixed,
                    outages,
                    in_flight,
                    while_down,
                    rate_changes,
                    seed,
                }
            },
        )
}
