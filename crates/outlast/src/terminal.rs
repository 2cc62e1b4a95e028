//! Where output goes: a terminal that can move its cursor, one that cannot, or a pipe.

use crate::failure::Failure;
use anyhow::Context;
use console::{Style as Colour, Term};
use indicatif::{MultiProgress, ProgressDrawTarget};
use outlast_report::table::{Charset, Table, TextStyle, Tone};
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing_subscriber::filter::LevelFilter;

/// How progress may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Style {
    /// Lines that are drawn again in place.
    Live,
    /// A line now and then.
    Lines,
}

/// What standard error can show. A dumb terminal gets whole lines, as a pipe does.
pub(crate) fn style() -> Style {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    if Term::stderr().features().is_attended() && !is_dumb {
        Style::Live
    } else {
        Style::Lines
    }
}

/// How wide standard error is; what is not a terminal counts as 80 columns.
pub(crate) fn width() -> usize {
    usize::from(Term::stderr().size().1)
}

/// Fills lines of prose to what standard error can show.
pub(crate) fn wrap(prose: &str) -> String {
    textwrap::fill(prose, width().clamp(40, 96))
}

/// The bars that are drawn in place at the moment. The process has one standard error: whoever
/// else writes there has to push them aside.
static BARS: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// A new set of bars; earlier ones stay as they are.
pub(crate) fn bars() -> MultiProgress {
    let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(12));
    *drawn() = Some(bars.clone());
    bars
}

fn drawn() -> MutexGuard<'static, Option<MultiProgress>> {
    // What a panicking thread left behind is drawn over.
    BARS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard error, above the bars.
#[derive(Clone, Copy, Debug)]
struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = || io::stderr().write(bytes);
        match &*drawn() {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// What is drawn now stays where it is; later lines come below it.
pub(crate) fn leave_bars() {
    *drawn() = None;
}

/// Logs go to standard error, so that standard output carries results alone.
pub(crate) fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let log = tracing_subscriber::fmt()
        .with_writer(|| AboveBars)
        .with_ansi(console::colors_enabled_stderr())
        .with_max_level(level)
        .with_target(false);
    if verbose == 0 {
        // A warning among the output of a command, not a log.
        log.without_time().init();
    } else {
        log.init();
    }
}

/// Writes a result to standard output. A reader that has gone away is no error of ours.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result.context("cannot write to standard output")?),
    }
}

/// Tells the user something beside the result, on standard error. A terminal that has gone away is
/// no error of the run.
pub(crate) fn say(line: &str) {
    let _ = Term::stderr().write_line(line);
}

/// How wide standard output is, in columns, if it is a terminal; tables are not made for less
/// than 80.
pub(crate) fn table_width() -> Option<usize> {
    let out = Term::stdout();
    let columns = usize::from(out.size().1).max(80);
    out.features().is_attended().then_some(columns)
}

/// Writes a table to standard output: coloured and fitted to a terminal, plain in a pipe, ASCII
/// where the terminal is dumb.
pub(crate) fn print_table(table: &Table) -> Result<(), Failure> {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let paint = |tone: Tone, text: &str| {
        let colour = match tone {
            Tone::Good => Colour::new().green(),
            Tone::Bad => Colour::new().red(),
            Tone::Warning => Colour::new().yellow(),
            _ => Colour::new(),
        };
        colour.apply_to(text).to_string()
    };
    let style = TextStyle {
        charset: if is_dumb {
            Charset::Ascii
        } else {
            Charset::Unicode
        },
        width: table_width(),
        paint: &paint,
    };
    print(&table.to_text(&style))
}
