//! Showing runs while they go on: bars in an ordinary terminal, a line now and then elsewhere.

mod bars;
mod lines;
mod runs;

pub(crate) use runs::RunBar;

use crate::terminal::{self, Style};
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
}

impl Display {
    /// One lane for each name.
    pub(crate) fn new(lanes: &[&str]) -> Self {
        Self(Mutex::new(match terminal::style() {
            Style::Live => Kind::Bars(bars::Bars::new(lanes)),
            Style::Lines => Kind::Lines(lines::Lines::new(lanes)),
        }))
    }

    /// The run of `lane` is getting on.
    pub(crate) fn update(&self, lane: usize, progress: &Progress) {
        match &mut *self.lock() {
            Kind::Bars(bars) => bars.update(lane, progress),
            Kind::Lines(lines) => lines.update(lane, progress),
        }
    }

    /// The run of `lane` has ended.
    pub(crate) fn finish(&self, lane: usize, run: &RunResult) {
        match &mut *self.lock() {
            Kind::Bars(bars) => bars.finish(lane, run),
            Kind::Lines(lines) => lines.finish(lane, run),
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
            let scaled = |bytes: u64| format!("{:.decimals$}", bytes as f64 / divisor);
            format!("{} of {} {unit}", scaled(progress.received), scaled(goal))
        }
        None if progress.updates > 0 => format!("{} updates", progress.updates),
        None => {
            let (divisor, unit, decimals) = scale(progress.received);
            format!("{:.decimals$} {unit}", progress.received as f64 / divisor)
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
