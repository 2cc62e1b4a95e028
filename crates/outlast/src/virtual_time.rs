//! What `demo` and `sim` share: carrying simulations out under the user's eyes.

use crate::terminal::{self, Style};
use indicatif::{ProgressBar, ProgressStyle};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_sim::{Progress, RunReport, Simulation};

/// Steps between two looks at the clock: about a millisecond.
const STEPS: u64 = 10_000;
/// Nobody wants to see how runs are getting on that are over by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows how a number of runs is getting on, if they take their time.
#[derive(Debug)]
pub(crate) struct Watch {
    runs: u32,
    done: u32,
    /// When there is next something to show.
    next: Instant,
    /// `None` where whole lines are written, and before anything is shown.
    bar: Option<ProgressBar>,
}

impl Watch {
    /// Before the first of `runs`.
    pub(crate) fn new(runs: u32) -> Self {
        Self {
            runs,
            done: 0,
            next: clock::now() + PATIENCE,
            bar: None,
        }
    }

    /// Carries one run out.
    pub(crate) fn run(&mut self, simulation: Simulation<'_>) -> RunReport {
        let mut running = simulation.begin();
        while !running.advance(STEPS) {
            let now = clock::now();
            if now >= self.next {
                self.show(now, &running.progress());
            }
        }
        self.done += 1;
        running.finish()
    }

    /// Nothing more is to come: what was drawn in place goes away.
    pub(crate) fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        terminal::leave_bars();
    }

    fn show(&mut self, now: Instant, progress: &Progress) {
        let line = self.line(progress);
        match terminal::style() {
            Style::Lines => {
                self.next = now + Duration::from_secs(5);
                terminal::say(&line);
            }
            Style::Live => {
                self.next = now + Duration::from_millis(100);
                let runs = self.runs;
                let bar = self.bar.get_or_insert_with(|| bar(runs));
                bar.set_position(self.done.into());
                bar.set_message(line);
            }
        }
    }

    /// "run 3 of 10: 45.2 s simulated, 31 % of the payload"
    fn line(&self, progress: &Progress) -> String {
        let (run, runs) = (self.done + 1, self.runs);
        let seconds = progress.elapsed.as_secs_f64();
        let share = progress.goal.map_or_else(String::new, |goal| {
            let percent = u128::from(progress.received) * 100 / u128::from(goal.max(1));
            format!(", {percent} % of the payload")
        });
        format!("run {run} of {runs}: {seconds:.1} s simulated{share}")
    }
}

fn bar(runs: u32) -> ProgressBar {
    let style = ProgressStyle::with_template("  {bar:24.green/dim} {msg}");
    let style = style.expect("the template is sound").progress_chars("━╸─");
    let bar = ProgressBar::new(runs.into()).with_style(style);
    terminal::bars().add(bar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_run_it_is_and_how_far() {
        let watch = Watch {
            done: 2,
            ..Watch::new(10)
        };
        let mut progress = Progress {
            elapsed: Duration::from_millis(45_230),
            link_up: true,
            outages: 3,
            received: 31_999,
            goal: Some(100_000),
            updates: 0,
            injected: 0,
        };
        let line = watch.line(&progress);
        assert_eq!(line, "run 3 of 10: 45.2 s simulated, 31 % of the payload");
        progress.goal = None;
        assert_eq!(watch.line(&progress), "run 3 of 10: 45.2 s simulated");
    }
}
