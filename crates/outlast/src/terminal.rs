//! Where output goes: a terminal that can move its cursor, one that cannot, or a pipe.

use console::{Style as Colour, Term};
use outlast_report::table::{Charset, Table, TextStyle, Tone};
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

/// Logs go to standard error, so that standard output carries results alone.
pub(crate) fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_target(false)
        .init();
}

/// Writes a result to standard output. A reader that has gone away is no error of ours.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a table to standard output: coloured and fitted to a terminal, plain in a pipe, ASCII
/// where the terminal is dumb.
pub(crate) fn print_table(table: &Table) -> std::io::Result<()> {
    let out = Term::stdout();
    let is_terminal = out.features().is_attended();
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let paint = |tone: Tone, text: &str| {
        let colour = match tone {
            Tone::Good => Colour::new().green(),
            Tone::Bad => Colour::new().red(),
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
        width: is_terminal.then(|| usize::from(out.size().1).max(80)),
        paint: &paint,
    };
    print(&table.to_text(&style))
}
