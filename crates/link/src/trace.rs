//! Recorded links: connectivity logs and mahimahi's packet-delivery traces.
//!
//! Both are text, one record per line; blank lines and what follows a `#` are ignored.
//!
//! - A connectivity log has lines of a time in seconds and `up` or `down`. Times rise. The link is
//!   up until the first line, and stays in the last line's state for ever.
//! - A packet-delivery trace (the format of mahimahi's `mm-link`) has one whole number per line:
//!   a time in milliseconds at which 1504 bytes can be delivered. Times do not fall; a time that
//!   occurs n times carries n opportunities. After the last, the trace begins anew, with that
//!   moment as its zero.

use crate::outage::Outage;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use outlast_base::time::{Duration, saturating_nanos};
use outlast_base::units::{BitRate, ByteCount};

/// How much passes at one delivery opportunity.
pub const OPPORTUNITY: ByteCount = ByteCount(1_504);

/// The most lines that a trace may have.
pub const MAX_LINES: usize = 10_000_000;

/// The last moment that a trace may name: 2^32 milliseconds, some 49 days.
const LAST: Duration = Duration::from_millis(u32::MAX as u64);

/// A recorded link.
#[derive(Clone, Debug, PartialEq)]
pub enum Trace {
    /// A connectivity log.
    States(Arc<StateTrace>),
    /// A packet-delivery trace.
    Deliveries(Arc<DeliveryTrace>),
}

impl Trace {
    /// Reads either kind of trace; the first line with content decides which it is.
    ///
    /// # Errors
    ///
    /// The first [`TraceError`] of the text.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut records = records(text).peekable();
        let first = records.peek().ok_or(TraceError {
            line: 1,
            span: 0..0,
            problem: TraceProblem::Empty,
        })?;
        if first.text.split_whitespace().count() == 1 {
            Ok(Self::Deliveries(Arc::new(DeliveryTrace::read(records)?)))
        } else {
            Ok(Self::States(Arc::new(StateTrace::read(records)?)))
        }
    }
}

/// Where and why a trace cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// Line, from 1.
    pub line: usize,
    /// Bytes of the text that are at fault.
    pub span: Range<usize>,
    /// What is wrong with them.
    pub problem: TraceProblem,
}

/// What can be wrong with a trace.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TraceProblem {
    /// No record in it.
    #[error("the trace has no records")]
    Empty,
    /// More than [`MAX_LINES`].
    #[error("the trace has more than {MAX_LINES} records")]
    TooLong,
    /// Not a record of a connectivity log.
    #[error("`{0}` is not a time in seconds and `up` or `down`")]
    NotAState(String),
    /// Not a record of a packet-delivery trace.
    #[error("`{0}` is not a time in whole milliseconds")]
    NotAnOpportunity(String),
    /// A time that is negative or beyond 49 days.
    #[error("`{0}` lies outside 0 to 4294967.295 seconds")]
    OutOfRange(String),
    /// In a connectivity log times must rise.
    #[error("`{0}` is not later than the record before it")]
    NotLater(String),
    /// In a packet-delivery trace times must not fall.
    #[error("`{0}` is earlier than the record before it")]
    Earlier(String),
    /// A packet-delivery trace that ends at zero.
    #[error("the trace ends at 0 ms, so it would deliver without end in no time")]
    NoDuration,
}

/// A connectivity log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StateTrace {
    outages: Box<[Outage]>,
}

impl StateTrace {
    /// A log of these outages; `None` unless each begins after the one before it has ended, and
    /// ends after it has begun.
    #[must_use]
    pub fn of(outages: Vec<Outage>) -> Option<Self> {
        let mut free_from = None;
        for (index, outage) in outages.iter().enumerate() {
            let is_last = index + 1 == outages.len();
            let ends_well = outage.end.map_or(is_last, |end| end > outage.start);
            if !ends_well || free_from.is_some_and(|free| outage.start <= free) {
                return None;
            }
            free_from = outage.end;
        }
        Some(Self {
            outages: outages.into_boxed_slice(),
        })
    }

    /// The outages that it records; only the last may have no end.
    #[must_use]
    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    fn read<'a>(records: impl Iterator<Item = Record<'a>>) -> Result<Self, TraceError> {
        let mut outages: Vec<Outage> = Vec::new();
        let mut latest = None;
        for (count, record) in records.enumerate() {
            let not_a_state = || record.error(TraceProblem::NotAState(record.text.to_string()));
            let mut words = record.text.split_whitespace();
            let (Some(time), Some(state), None) = (words.next(), words.next(), words.next()) else {
                return Err(not_a_state());
            };
            let seconds: f64 = time.parse().map_err(|_| not_a_state())?;
            if !(0.0..=LAST.as_secs_f64()).contains(&seconds) {
                return Err(record.error(TraceProblem::OutOfRange(time.to_string())));
            }
            let now = Duration::from_secs_f64(seconds);
            if latest.is_some_and(|latest| now <= latest) {
                return Err(record.error(TraceProblem::NotLater(record.text.to_string())));
            }
            if count >= MAX_LINES {
                return Err(record.error(TraceProblem::TooLong));
            }
            latest = Some(now);
            let open = outages.last_mut().filter(|outage| outage.end.is_none());
            match (state, open) {
                ("up", Some(outage)) => outage.end = Some(now),
                ("down", None) => outages.push(Outage {
                    start: now,
                    end: None,
                }),
                // A log may repeat a state.
                ("up", None) | ("down", Some(_)) => {}
                _ => return Err(not_a_state()),
            }
        }
        Ok(Self {
            outages: outages.into_boxed_slice(),
        })
    }
}

/// A packet-delivery trace: moments at which [`OPPORTUNITY`] bytes can pass, over and over.
///
/// Opportunities are numbered from zero, across all repetitions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeliveryTrace {
    /// Milliseconds; never empty, never falling, the last one not zero.
    millis: Box<[u32]>,
}

impl DeliveryTrace {
    /// How long the trace is before it begins anew.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_millis())
    }

    /// What it can deliver in one period, spread evenly.
    #[must_use]
    pub fn mean_rate(&self) -> BitRate {
        let bits = u128::from(self.count()) * u128::from(OPPORTUNITY.as_u64()) * 8;
        let rate = (bits * 1_000 / u128::from(self.period_millis())).max(1);
        BitRate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX))
            .expect("at least one bit per second")
    }

    /// When opportunity `number` is.
    #[must_use]
    pub fn time(&self, number: u64) -> Duration {
        let (pass, index) = (number / self.count(), number % self.count());
        let index = usize::try_from(index).expect("an index below the length of a slice");
        let millis = pass.saturating_mul(self.period_millis());
        Duration::from_millis(millis.saturating_add(u64::from(self.millis[index])))
    }

    /// How many opportunities there are up to and including `time`; also the number of the first
    /// one after it.
    #[must_use]
    pub fn until(&self, time: Duration) -> u64 {
        let millis = saturating_nanos(time) / 1_000_000;
        let (pass, rest) = (millis / self.period_millis(), millis % self.period_millis());
        let within = self.millis.partition_point(|&at| u64::from(at) <= rest);
        pass.saturating_mul(self.count())
            .saturating_add(within as u64)
    }

    fn count(&self) -> u64 {
        self.millis.len() as u64
    }

    fn period_millis(&self) -> u64 {
        u64::from(*self.millis.last().expect("a trace is never empty"))
    }

    fn read<'a>(records: impl Iterator<Item = Record<'a>>) -> Result<Self, TraceError> {
        let mut millis: Vec<u32> = Vec::new();
        let mut last = None;
        for record in records {
            let text = record.text;
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(record.error(TraceProblem::NotAnOpportunity(text.to_string())));
            }
            let Ok(at) = text.parse::<u32>() else {
                return Err(record.error(TraceProblem::OutOfRange(text.to_string())));
            };
            if millis.last().is_some_and(|&before| at < before) {
                return Err(record.error(TraceProblem::Earlier(text.to_string())));
            }
            if millis.len() >= MAX_LINES {
                return Err(record.error(TraceProblem::TooLong));
            }
            millis.push(at);
            last = Some(record);
        }
        match last {
            Some(record) if millis.last() == Some(&0) => {
                Err(record.error(TraceProblem::NoDuration))
            }
            _ => Ok(Self {
                millis: millis.into_boxed_slice(),
            }),
        }
    }
}

/// The outages that the gaps of a packet-delivery trace make.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryGaps {
    trace: Arc<DeliveryTrace>,
    /// Opportunities of one pass that have a gap before them.
    after_gap: Box<[u32]>,
    next: u64,
}

impl DeliveryGaps {
    pub(crate) fn new(trace: Arc<DeliveryTrace>, gap: Duration) -> Self {
        // An opportunity lasts its millisecond, so neighbours in time have no gap.
        let gap = (saturating_nanos(gap) / 1_000_000).max(1);
        let mut before = 0;
        let mut after_gap = Vec::new();
        for (index, &at) in (0..).zip(&trace.millis) {
            if u64::from(at - before) > gap {
                after_gap.push(index);
            }
            before = at;
        }
        Self {
            trace,
            after_gap: after_gap.into_boxed_slice(),
            next: 0,
        }
    }
}

impl Iterator for DeliveryGaps {
    type Item = Outage;

    fn next(&mut self) -> Option<Outage> {
        let per_pass = self.after_gap.len() as u64;
        let pass = self.next.checked_div(per_pass)?;
        let index = usize::try_from(self.next % per_pass).expect("below the length of a slice");
        self.next += 1;
        let number = pass.checked_mul(self.trace.count())? + u64::from(self.after_gap[index]);
        let start = match number.checked_sub(1) {
            Some(before) => self.trace.time(before) + Duration::from_millis(1),
            None => Duration::ZERO,
        };
        Some(Outage {
            start,
            end: Some(self.trace.time(number)),
        })
    }
}

/// A line with content.
#[derive(Clone, Copy)]
struct Record<'a> {
    line: usize,
    /// Byte offset of `text` in the whole.
    offset: usize,
    /// Without comment and surrounding blanks.
    text: &'a str,
}

impl Record<'_> {
    fn error(&self, problem: TraceProblem) -> TraceError {
        let span = self.offset..self.offset + self.text.len();
        TraceError {
            line: self.line,
            span,
            problem,
        }
    }
}

fn records(text: &str) -> impl Iterator<Item = Record<'_>> {
    let mut offset = 0;
    text.split_inclusive('\n')
        .zip(1..)
        .filter_map(move |(whole, line)| {
            let start = offset;
            offset += whole.len();
            let content = whole.split('#').next().unwrap_or_default();
            let text = content.trim();
            let indent = content.len() - content.trim_start().len();
            (!text.is_empty()).then_some(Record {
                line,
                offset: start + indent,
                text,
            })
        })
}
