//! When a link is down.

use crate::trace::{DeliveryGaps, DeliveryTrace, StateTrace};
use alloc::sync::Arc;
use outlast_base::random::Stream;
use outlast_base::time::Duration;

/// The shortest period that is drawn: one shorter cannot be told from none, and a period of no
/// length would let an unbounded number of outages happen at one instant.
const SHORTEST: Duration = Duration::from_micros(1);

/// How outages come and go. All times count from [`Link::start`](crate::Link::start).
///
/// The processes with `up` and `down` begin with a connected period. If `down` is zero the link
/// never goes down; if `up` is zero it goes down at once, or after `first`, and stays down.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutageProcess {
    /// Never down.
    #[default]
    AlwaysUp,
    /// One outage.
    Single {
        /// When it begins.
        start: Duration,
        /// How long it lasts.
        length: Duration,
    },
    /// Connected for `first`, then disconnected for exactly `down`, connected for exactly `up`,
    /// and so on.
    Periodic {
        /// When the first outage begins.
        first: Duration,
        /// Connected time.
        up: Duration,
        /// Disconnected time.
        down: Duration,
    },
    /// Each period evenly spread between half and one and a half of its mean (Scott and Mapp,
    /// section 5.1).
    Uniform {
        /// Mean connected time.
        up: Duration,
        /// Mean disconnected time.
        down: Duration,
    },
    /// Each period normally distributed, see [`Stream::normal`].
    Normal {
        /// Mean connected time.
        up: Duration,
        /// Mean disconnected time.
        down: Duration,
    },
    /// Each period exponentially distributed.
    Exponential {
        /// Mean connected time.
        up: Duration,
        /// Mean disconnected time.
        down: Duration,
    },
    /// As recorded.
    States(Arc<StateTrace>),
    /// Recorded delivery opportunities drive both transmitters in place of their rate, from the
    /// start on; the trace wraps around. The link is down between two opportunities that are
    /// more than `gap` apart: from a millisecond after the first until the second.
    Deliveries {
        /// The opportunities.
        trace: Arc<DeliveryTrace>,
        /// The longest time without an opportunity that is not yet an outage.
        gap: Duration,
    },
}

impl OutageProcess {
    /// The outages of this process, in order, drawn from `stream`.
    pub(crate) fn schedule(&self, stream: Stream) -> Schedule {
        Schedule {
            now: Duration::ZERO,
            periods: self.periods(stream),
        }
    }

    fn periods(&self, stream: Stream) -> Periods {
        let (law, first, up, down) = match *self {
            Self::AlwaysUp => return Periods::Over,
            Self::Single { start, length } => {
                let end = start.saturating_add(length);
                return Periods::Single(Outage {
                    start,
                    end: Some(end),
                });
            }
            Self::States(ref trace) => {
                return Periods::States {
                    trace: trace.clone(),
                    next: 0,
                };
            }
            Self::Deliveries { ref trace, gap } => {
                return Periods::Gaps(DeliveryGaps::new(trace.clone(), gap));
            }
            Self::Periodic { first, up, down } => (Law::Exact, Some(first), up, down),
            Self::Uniform { up, down } => (Law::Uniform, None, up, down),
            Self::Normal { up, down } => (Law::Normal, None, up, down),
            Self::Exponential { up, down } => (Law::Exponential, None, up, down),
        };
        if down.is_zero() {
            Periods::Over
        } else if up.is_zero() {
            Periods::Single(Outage {
                start: first.unwrap_or_default(),
                end: None,
            })
        } else {
            Periods::Drawn {
                law,
                first,
                up,
                down,
                stream,
            }
        }
    }
}

/// One outage; times count from the start of the link's outage process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Outage {
    /// When the link goes down.
    pub start: Duration,
    /// When it is back up; `None` if never. Later than `start`.
    pub end: Option<Duration>,
}

impl Outage {
    /// How long it lasts; `None` if for ever.
    #[must_use]
    pub fn length(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub(self.start))
    }
}

/// The outages of a link, in order and apart from each other; see
/// [`LinkConfig::schedule`](crate::LinkConfig::schedule).
#[derive(Clone, Debug)]
pub struct Schedule {
    /// When the latest outage ended.
    now: Duration,
    periods: Periods,
}

#[derive(Clone, Debug)]
enum Periods {
    Over,
    Single(Outage),
    Drawn {
        law: Law,
        /// The first connected period, if it is given.
        first: Option<Duration>,
        up: Duration,
        down: Duration,
        stream: Stream,
    },
    States {
        trace: Arc<StateTrace>,
        next: usize,
    },
    Gaps(DeliveryGaps),
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Exact,
    Uniform,
    Normal,
    Exponential,
}

impl Law {
    fn draw(self, mean: Duration, stream: &mut Stream) -> Duration {
        let length = match self {
            Self::Exact => mean,
            Self::Uniform => stream.uniform(mean),
            Self::Normal => stream.normal(mean),
            Self::Exponential => stream.exponential(mean),
        };
        length.max(SHORTEST)
    }
}

impl Iterator for Schedule {
    type Item = Outage;

    fn next(&mut self) -> Option<Outage> {
        let outage = match &mut self.periods {
            Periods::Over => return None,
            Periods::Single(outage) => {
                let outage = *outage;
                self.periods = Periods::Over;
                (outage.end != Some(outage.start)).then_some(outage)?
            }
            Periods::Drawn {
                law,
                first,
                up,
                down,
                stream,
            } => {
                let connected = first.take().unwrap_or_else(|| law.draw(*up, stream));
                let start = self.now.checked_add(connected)?;
                Outage {
                    start,
                    end: start.checked_add(law.draw(*down, stream)),
                }
            }
            Periods::States { trace, next } => {
                let outage = *trace.outages().get(*next)?;
                *next += 1;
                outage
            }
            Periods::Gaps(gaps) => gaps.next()?,
        };
        match outage.end {
            Some(end) => self.now = end,
            None => self.periods = Periods::Over,
        }
        Some(outage)
    }
}
