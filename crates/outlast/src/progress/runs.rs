//! How many of many runs are done: a bar in a terminal; elsewhere a line at the beginning, and one
//! for each tenth.

use crate::terminal::{self, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Shows how many runs are done.
pub(crate) struct RunBar {
    bar: ProgressBar,
    /// Tenths that were done when last a line was written.
    tenths: Option<u64>,
}

impl RunBar {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(4));
        let template = "  {bar:40.green/dim} {pos} of {len} runs  {msg}";
        let style = ProgressStyle::with_template(template).expect("the template is one of ours");
        bar.set_style(style.progress_chars("━╸─"));
        Self { bar, tenths: None }
    }

    /// `done` of `total` runs are done, the others take about `left`, if that can be told yet;
    /// `notes` is what else there is to say, with a comma behind it.
    pub(crate) fn update(&mut self, done: u64, total: u64, notes: &str, left: Option<Duration>) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        let left = left.map_or_else(
            || "estimating the time left".to_owned(),
            |left| format!("about {} left", minutes(left)),
        );
        let message = format!("{notes}{left}");
        let tenths = (done * 10).checked_div(total).unwrap_or(0);
        if terminal::style() == Style::Lines && self.tenths.is_none_or(|told| tenths > told) {
            self.tenths = Some(tenths);
            terminal::say(&format!("{done} of {total} runs done, {message}"));
        }
        self.bar.set_message(message);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn minutes(time: Duration) -> String {
    const HOUR: u64 = 3_600;
    match time.as_secs() {
        seconds @ 0..=89 => format!("{seconds} s"),
        seconds @ 90..=5_399 => format!("{} min", seconds.div_ceil(60)),
        seconds => {
            let minutes = seconds % HOUR / 60;
            format!("{} h {minutes:02} min", seconds / HOUR)
        }
    }
}
