//! Progress in a pipe or a dumb terminal: a line every few seconds, and one when a run ends.

use super::{amount, at_the_end, verdict};
use crate::terminal::say;
use outlast_base::time::Duration;
use outlast_lab::Progress;
use outlast_scenario::result::RunResult;

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Lines {
    names: Vec<String>,
    latest: Vec<Option<Progress>>,
    next: Duration,
}

impl Lines {
    pub(super) fn new(names: &[&str]) -> Self {
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            latest: vec![None; names.len()],
            next: PAUSE,
        }
    }

    pub(super) fn update(&mut self, lane: usize, progress: &Progress) {
        if let Some(latest) = self.latest.get_mut(lane) {
            *latest = Some(*progress);
        }
        if progress.elapsed >= self.next {
            self.next = progress.elapsed + PAUSE;
            self.write(progress);
        }
    }

    pub(super) fn finish(&mut self, lane: usize, run: &RunResult) {
        if let (Some(name), Some(Some(latest))) = (self.names.get(lane), self.latest.get_mut(lane))
        {
            let progress = at_the_end(*latest, run);
            *latest = progress;
            say(&format!("{name}: {}, {}", verdict(run), amount(&progress)));
        }
    }

    fn write(&self, now: &Progress) {
        let link = if now.link_up { "up" } else { "down" };
        let mut line = format!("{:5.1} s  link {link:4}", now.elapsed.as_secs_f64());
        for (name, latest) in self.names.iter().zip(&self.latest) {
            if let Some(progress) = latest {
                line.push_str(&format!("  {name}: {}", amount(progress)));
            }
        }
        say(&line);
    }
}
