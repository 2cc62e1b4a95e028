//! Progress in an ordinary terminal: a bar for each run, the link's last seconds above them.

use super::amount;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use outlast_core::time::Duration;
use outlast_lab::Progress;
use std::collections::VecDeque;

/// How much of the link's past a column of the timeline stands for.
const COLUMN: Duration = Duration::from_millis(500);
/// Columns of the timeline.
const COLUMNS: usize = 48;
/// A run that gets nothing for so long is said to be stalled.
const STALLED: Duration = Duration::from_millis(1_500);

#[derive(Debug)]
pub(super) struct Bars {
    all: MultiProgress,
    link: ProgressBar,
    timeline: Timeline,
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
    bar: ProgressBar,
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
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(12));
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
            .map(|name| {
                let bar = all.add(ProgressBar::new(1));
                bar.set_style(
                    style(&format!("  {name:width$}  {{bar:40.green/dim}} {{msg}}"))
                        .progress_chars("━╸─"),
                );
                Lane {
                    bar,
                    received: 0,
                    since: Duration::ZERO,
                }
            })
            .collect();
        Self {
            all,
            link,
            timeline: Timeline::default(),
            lanes,
        }
    }

    pub(super) fn update(&mut self, lane: usize, progress: &Progress) {
        if lane == 0 {
            self.timeline.note(progress);
            let state = if progress.link_up {
                console::style("up  ").green()
            } else {
                console::style("down").red()
            };
            let seconds = progress.elapsed.as_secs_f64();
            self.link
                .set_message(format!("{} {state} {seconds:5.1} s", self.timeline.draw()));
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
        let note = match (silent > STALLED, progress.link_up) {
            (true, true) => console::style(format!("stalled {:.1} s", silent.as_secs_f64())).red(),
            (true, false) => console::style(format!("waiting {:.1} s", silent.as_secs_f64())).dim(),
            (false, _) => console::style(String::new()),
        };
        lane.bar
            .set_message(format!("{:>14}  {note}", amount(progress)));
    }

    pub(super) fn finish(&mut self, lane: usize, completed: bool) {
        let Some(Lane { bar, since, .. }) = self.lanes.get(lane) else {
            return;
        };
        if completed {
            bar.set_position(bar.length().unwrap_or(1));
        }
        let note = if completed {
            console::style(format!("done in {:.1} s", since.as_secs_f64())).green()
        } else {
            console::style("not done in time".to_owned()).red()
        };
        bar.abandon_with_message(note.to_string());
    }

    pub(super) fn clear(&self) {
        self.link.finish_and_clear();
        let _ = self.all.println("");
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
    fn draw(&self) -> String {
        let mut text = String::new();
        for (up, all) in &self.columns {
            text.push(match (up * 4).checked_div(*all) {
                Some(0) | None => '▁',
                Some(1) => '▃',
                Some(2) => '▅',
                Some(3) => '▆',
                Some(_) => '█',
            });
        }
        format!("{text:COLUMNS$}")
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is one of ours")
}
