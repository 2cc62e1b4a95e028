//! Showing runs while they go on: bars in an ordinary terminal, a line now and then elsewhere.

mod bars;
mod lines;

use crate::terminal::{self, Style};
use outlast_lab::Progress;
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
    pub(crate) fn finish(&self, lane: usize, completed: bool) {
        match &mut *self.lock() {
            Kind::Bars(bars) => bars.finish(lane, completed),
            Kind::Lines(lines) => lines.finish(lane, completed),
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
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    match progress.goal {
        Some(goal) => {
            format!(
                "{:.1} of {:.1} MB",
                megabytes(progress.received),
                megabytes(goal)
            )
        }
        None if progress.updates > 0 => format!("{} updates", progress.updates),
        None => format!("{:.1} MB", megabytes(progress.received)),
    }
}
