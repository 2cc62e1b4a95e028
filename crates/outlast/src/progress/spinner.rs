//! Something of which nobody knows how far it is: a spinner and the time so far, in an ordinary terminal.

use crate::terminal::{self, Style};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Shows that something goes on, until it is dropped.
#[derive(Debug)]
pub(crate) struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// Shows `message`; where lines are written, nothing.
    pub(crate) fn new(message: String) -> Self {
        if terminal::style() == Style::Lines {
            return Self(None);
        }
        let bar = terminal::bars().add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("  {spinner:.green} {msg}  {elapsed:.dim}");
        bar.set_style(style.expect("the template is one of ours"));
        bar.set_message(message);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    /// Shows `message`; where lines are written, as one.
    pub(crate) fn told(message: String) -> Self {
        if terminal::style() == Style::Lines {
            terminal::say(&message);
        }
        Self::new(message)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
            terminal::leave_bars();
        }
    }
}
