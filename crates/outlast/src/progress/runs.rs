//! How many of many runs are done: a bar in a terminal; elsewhere a line at the beginning, and one
//! for each tenth.

use crate::terminal::{self, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// What stands beside the bar: "12345 of 100000 runs  estimating the time left" and the spaces.
const NOTES: usize = 50;

/// Shows how many runs are done.
pub(crate) struct RunBar {
    bar: ProgressBar,
    /// Tenths that were done at the beginning, or when last a line was written.
    tenths: Option<u64>,
    /// Whether there was a line.
    is_begun: bool,
}

impl RunBar {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(4));
        // The last column stays free: some terminals wrap when it is written to.
        let columns = terminal::width().saturating_sub(NOTES + 1).clamp(5, 40);
        let template = format!("  {{bar:{columns}.green/dim}} {{pos}} of {{len}} runs  {{msg}}");
        let style = ProgressStyle::with_template(&template).expect("the template is one of ours");
        bar.set_style(style.progress_chars("━╸─"));
        Self {
            bar,
            tenths: None,
            is_begun: false,
        }
    }

    /// `done` of `total` runs are done, the others take about `left`, if that can be told yet;
    /// `notes` is what else there is to say, with a comma behind it.
    pub(crate) fn update(&mut self, done: u64, total: u64, notes: &str, left: Option<Duration>) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        let message = message(done, total, notes, left);
        let tenths = (done * 10).checked_div(total).unwrap_or(0);
        let is_news = tenths > *self.tenths.get_or_insert(tenths);
        let is_first = !self.is_begun && left.is_some();
        if terminal::style() == Style::Lines && (is_news || is_first) {
            self.tenths = Some(tenths);
            self.is_begun = true;
            let separator = if message.is_empty() { "" } else { ", " };
            terminal::say(&format!("{done} of {total} runs done{separator}{message}"));
        }
        self.bar.set_message(message);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What stands beside the number of runs that are done.
fn message(done: u64, total: u64, notes: &str, left: Option<Duration>) -> String {
    match left {
        _ if done >= total => notes.trim_end_matches(", ").to_owned(),
        None => format!("{notes}estimating the time left"),
        Some(left) => format!("{notes}about {} left", minutes(left)),
    }
}

fn minutes(time: Duration) -> String {
    const HOUR: u128 = 3_600;
    // Only when nothing is left is no time left.
    match time.as_millis().div_ceil(1_000).max(1) {
        seconds @ 1..=89 => format!("{seconds} s"),
        seconds @ 90..=5_399 => format!("{} min", seconds.div_ceil(60)),
        seconds => {
            let minutes = seconds % HOUR / 60;
            format!("{} h {minutes:02} min", seconds / HOUR)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_run_is_left_no_time_is() {
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(message(360, 360, "", seconds(0)), "");
        assert_eq!(message(360, 360, "2 failed, ", None), "2 failed");
        assert_eq!(message(359, 360, "", seconds(0)), "about 1 s left");
        assert_eq!(message(0, 360, "", None), "estimating the time left");
    }
}
