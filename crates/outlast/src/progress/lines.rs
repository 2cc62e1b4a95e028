//! Progress in a pipe or a dumb terminal: a line every few seconds, and one when a run ends.

use super::amount;
use console::Term;
use outlast_core::time::Duration;
use outlast_lab::Progress;

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

    pub(super) fn finish(&mut self, lane: usize, completed: bool) {
        let (Some(name), Some(Some(latest))) = (self.names.get(lane), self.latest.get_mut(lane))
        else {
            return;
        };
        let ended = if completed {
            latest.received = latest.goal.unwrap_or(latest.received);
            "done"
        } else {
            "not done in time"
        };
        let seconds = latest.elapsed.as_secs_f64();
        say(&format!(
            "{seconds:5.1} s  {name}: {ended}, {}",
            amount(latest)
        ));
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

/// A terminal that has gone away is no error of the run.
fn say(line: &str) {
    let _ = Term::stderr().write_line(line);
}
