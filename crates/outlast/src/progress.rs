//! Showing runs while they go on: bars in an ordinary terminal, a line now and then elsewhere.

mod bars;
mod lines;
mod runs;
mod spinner;

pub(crate) use runs::RunBar;
pub(crate) use spinner::Spinner;

use crate::terminal::{self, Style};
use outlast_base::time::Duration;
use outlast_lab::Progress;
use outlast_report::unit::Unit;
use outlast_scenario::result::RunResult;
use std::sync::Mutex;

/// What shows the runs; shared by the threads that carry them out.
#[derive(Debug)]
pub(crate) struct Display(Mutex<Kind>);

#[derive(Debug)]
enum Kind {
    Bars(bars::Bars),
    Lines(lines::Lines),
    Silent,
}

impl Display {
    /// One lane for each name.
    pub(crate) fn new(lanes: &[&str]) -> Self {
        Self(Mutex::new(match terminal::style() {
            Style::Live => Kind::Bars(bars::Bars::new(lanes)),
            Style::Lines => Kind::Lines(lines::Lines::new(lanes)),
        }))
    }

    /// Shows nothing: nobody sees it before all is over.
    pub(crate) fn silent() -> Self {
        Self(Mutex::new(Kind::Silent))
    }

    /// The run of `lane` is getting on.
    pub(crate) fn update(&self, lane: usize, progress: &Progress) {
        match &mut *self.lock() {
            Kind::Bars(bars) => bars.update(lane, progress),
            Kind::Lines(lines) => lines.update(lane, progress),
            Kind::Silent => {}
        }
    }

    /// The run of `lane` has ended.
    pub(crate) fn finish(&self, lane: usize, run: &RunResult) {
        match &mut *self.lock() {
            Kind::Bars(bars) => bars.finish(lane, run),
            Kind::Lines(lines) => lines.finish(lane, run),
            Kind::Silent => {}
        }
    }

    /// Nothing more is to come: what was drawn in place goes away.
    pub(crate) fn clear(&self) {
        if let Kind::Bars(bars) = &*self.lock() {
            bars.clear();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kind> {
        // What a panicking thread left behind is drawn over.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// "3.1 of 7.0 MB", or what there is to say of a run whose end nobody knows.
fn amount(progress: &Progress) -> String {
    match progress.goal {
        Some(goal) => {
            let (divisor, unit, decimals) = scale(goal);
            let scaled = |amount: f64| format!("{amount:.decimals$}");
            // Rounded down: all of it is there only when it is.
            let steps = 10_f64.powi(i32::try_from(decimals).unwrap_or(0));
            let received = (progress.received as f64 / divisor * steps).floor() / steps;
            let goal = scaled(goal as f64 / divisor);
            format!("{} of {goal} {unit}", scaled(received))
        }
        None if progress.updates > 0 => format!("{} updates", progress.updates),
        None => {
            let (divisor, unit, decimals) = scale(progress.received);
            format!("{:.decimals$} {unit}", progress.received as f64 / divisor)
        }
    }
}

/// What there is to say of a run that has got nothing for `silent`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NoProgress {
    /// All has come: only the end of the connections is missing.
    Ending,
    /// The link is up, and nothing comes.
    Stalled,
    /// The link is down.
    Waiting,
}

impl NoProgress {
    /// A run that gets nothing for so long stands still.
    const AFTER: Duration = Duration::from_millis(1_500);

    fn of(progress: &Progress, silent: Duration) -> Option<Self> {
        let is_all_there = progress.goal.is_some_and(|goal| progress.received >= goal);
        (silent > Self::AFTER).then_some(match (is_all_there, progress.link_up) {
            (true, _) => Self::Ending,
            (false, true) => Self::Stalled,
            (false, false) => Self::Waiting,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ending => "ending",
            Self::Stalled => "stalled",
            Self::Waiting => "waiting",
        }
    }
}

/// By what to divide numbers of bytes up to `greatest`, the unit then, and the decimals to show.
fn scale(greatest: u64) -> (f64, &'static str, usize) {
    match greatest {
        0..1_000 => (1.0, "B", 0),
        1_000..1_000_000 => (1e3, "kB", 1),
        1_000_000..1_000_000_000 => (1e6, "MB", 1),
        _ => (1e9, "GB", 2),
    }
}

/// The last progress of a run, put right by its result: it may be a moment old.
fn at_the_end(latest: Progress, run: &RunResult) -> Progress {
    Progress {
        received: run.received_in_all().unwrap_or(latest.received),
        updates: run.updates.map_or(latest.updates, u64::from),
        ..latest
    }
}

/// How a run ended.
fn verdict(run: &RunResult) -> String {
    if run.is_complete() {
        format!("done in {}", Unit::Seconds.show(run.ended_s()))
    } else if run.error.is_some() {
        "failed".to_owned()
    } else if run.received_in_all() == Some(0) {
        "nothing arrived in time".to_owned()
    } else {
        "not done in time".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(received: u64, link_up: bool) -> Progress {
        Progress {
            elapsed: Duration::from_secs(60),
            link_up,
            outages: 1,
            received,
            goal: Some(20_000_000),
            updates: 0,
            injected: 0,
        }
    }

    #[test]
    fn all_of_it_is_there_only_when_it_is() {
        assert_eq!(amount(&progress(19_999_999, true)), "19.9 of 20.0 MB");
        assert_eq!(amount(&progress(20_000_000, true)), "20.0 of 20.0 MB");
        assert_eq!(amount(&progress(300_000, true)), "0.3 of 20.0 MB");
    }

    #[test]
    fn what_has_all_is_not_stalled() {
        let of = |received, link_up, seconds| {
            let silent = Duration::from_secs(seconds);
            NoProgress::of(&progress(received, link_up), silent)
        };
        assert_eq!(of(20_000_000, true, 46), Some(NoProgress::Ending));
        assert_eq!(of(19_999_999, true, 46), Some(NoProgress::Stalled));
        assert_eq!(of(19_999_999, false, 46), Some(NoProgress::Waiting));
        assert_eq!(of(5, true, 1), None);
    }
}
