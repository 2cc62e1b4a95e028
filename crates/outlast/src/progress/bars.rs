//! Progress in an ordinary terminal: a bar for each run, the link's last seconds above them.

use super::{NoProgress, amount, at_the_end, verdict};
use crate::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use outlast_base::time::Duration;
use outlast_lab::Progress;
use outlast_scenario::result::RunResult;
use std::collections::VecDeque;

/// How much of the link's past a column of the timeline stands for.
const COLUMN: Duration = Duration::from_millis(500);
/// Columns of the timeline and of each bar where there is room for them.
const COLUMNS: usize = 40;
/// What stands behind a bar: "960.3 of 1000.0 MB  waiting 12.3 s" and the spaces around it.
const NOTES: usize = 38;

#[derive(Debug)]
pub(super) struct Bars {
    link: ProgressBar,
    timeline: Timeline,
    lanes: Vec<Lane>,
    /// How wide the names are.
    names: usize,
    /// How wide the timeline and the bars are.
    columns: usize,
}

#[derive(Debug)]
struct Lane {
    name: String,
    bar: ProgressBar,
    latest: Option<Progress>,
    received: u64,
    since: Duration,
}

/// The share of each column's time for which the link was up.
#[derive(Debug, Default)]
struct Timeline {
    columns: VecDeque<(u32, u32)>,
    newest: u128,
}

impl Bars {
    pub(super) fn new(names: &[&str]) -> Self {
        let all = terminal::bars();
        let width = names
            .iter()
            .map(|name| name.len())
            .max()
            .unwrap_or(0)
            .max(4);
        let link = all.add(ProgressBar::new_spinner());
        link.set_style(style(&format!("  {:width$}  {{msg}}", "link")));
        let lanes = names
            .iter()
            .map(|name| Lane {
                name: (*name).to_owned(),
                bar: all.add(ProgressBar::new(1)),
                latest: None,
                received: 0,
                since: Duration::ZERO,
            })
            .collect();
        let mut bars = Self {
            link,
            timeline: Timeline::default(),
            lanes,
            names: width,
            columns: 0,
        };
        bars.fit();
        bars
    }

    /// Makes timeline and bars as wide as the terminal has room for now.
    fn fit(&mut self) {
        // The last column stays free: some terminals wrap when it is written to.
        let taken = "  ".len() + self.names + "  ".len() + NOTES + 1;
        let columns = terminal::width().saturating_sub(taken).clamp(8, COLUMNS);
        if columns == self.columns {
            return;
        }
        self.columns = columns;
        let width = self.names;
        for Lane { name, bar, .. } in &self.lanes {
            let template = format!("  {name:width$}  {{bar:{columns}.green/dim}} {{msg}}");
            bar.set_style(style(&template).progress_chars("━╸─"));
        }
    }

    pub(super) fn update(&mut self, lane: usize, progress: &Progress) {
        self.fit();
        if lane == 0 {
            self.timeline.note(progress);
            let state = if progress.link_up {
                console::style("up  ").green()
            } else {
                console::style("down").red()
            };
            let seconds = progress.elapsed.as_secs_f64();
            let timeline = self.timeline.draw(self.columns);
            self.link
                .set_message(format!("{timeline}  {state} {seconds:5.1} s"));
        }
        let Some(lane) = self.lanes.get_mut(lane) else {
            return;
        };
        if progress.received != lane.received {
            lane.received = progress.received;
            lane.since = progress.elapsed;
        }
        lane.bar.set_length(progress.goal.unwrap_or(1).max(1));
        lane.bar.set_position(progress.received);
        let silent = progress.elapsed.saturating_sub(lane.since);
        let note = NoProgress::of(progress, silent).map_or_else(String::new, |standstill| {
            let words = format!("{} {:.1} s", standstill.name(), silent.as_secs_f64());
            let words = console::style(words);
            match standstill {
                NoProgress::Stalled => words.red().to_string(),
                NoProgress::Ending | NoProgress::Waiting => words.dim().to_string(),
            }
        });
        lane.latest = Some(*progress);
        lane.bar
            .set_message(format!(" {:<14}  {note}", amount(progress)));
    }

    pub(super) fn finish(&mut self, lane: usize, run: &RunResult) {
        let Some(Lane {
            bar,
            latest: Some(latest),
            ..
        }) = self.lanes.get(lane)
        else {
            return;
        };
        let latest = at_the_end(*latest, run);
        bar.set_position(latest.received);
        let words = console::style(verdict(run));
        let words = if run.is_complete() {
            words.green()
        } else {
            words.red()
        };
        bar.abandon_with_message(format!(" {:<14}  {words}", amount(&latest)));
    }

    pub(super) fn clear(&self) {
        self.link.finish_and_clear();
        for lane in &self.lanes {
            // Of a run that was given up nothing is worth keeping.
            if !lane.bar.is_finished() {
                lane.bar.finish_and_clear();
            }
        }
        // The finished bars stay where they are.
        terminal::leave_bars();
        if self.lanes.iter().any(|lane| lane.latest.is_some()) {
            // The cursor still stands behind the last bar: end its line, and keep a distance.
            terminal::say("\n");
        }
    }
}

impl Timeline {
    fn note(&mut self, progress: &Progress) {
        let column = progress.elapsed.as_nanos() / COLUMN.as_nanos();
        while self.columns.is_empty() || self.newest < column {
            self.newest = if self.columns.is_empty() {
                column
            } else {
                self.newest + 1
            };
            self.columns.push_back((0, 0));
            if self.columns.len() > COLUMNS {
                self.columns.pop_front();
            }
        }
        if let Some((up, all)) = self.columns.back_mut() {
            *up += u32::from(progress.link_up);
            *all += 1;
        }
    }

    /// Full blocks where the link was up, a low line where it was down.
    fn draw(&self, columns: usize) -> String {
        let mut text = String::new();
        let hidden = self.columns.len().saturating_sub(columns);
        for (up, all) in self.columns.iter().skip(hidden) {
            text.push(match (up * 4).checked_div(*all) {
                Some(0) | None => '▁',
                Some(1) => '▃',
                Some(2) => '▅',
                Some(3) => '▆',
                Some(_) => '█',
            });
        }
        format!("{text:columns$}")
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is one of ours")
}
