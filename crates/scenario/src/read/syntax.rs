//! What the TOML parser complains about, in this crate's words.

use crate::problem::{Problem, Source};
use std::ops::Range;
use std::sync::Arc;

/// The problems of a file that is not TOML.
///
/// Of the `others`, found in what could be read, only those elsewhere are kept: what stands in a
/// faulty line, and what is missing, may be the fault's doing.
pub(super) fn explain(
    errors: &[toml::de::Error],
    source: &Arc<Source>,
    others: Vec<Problem>,
) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut faulty_lines: Vec<Range<usize>> = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line = line_around(&source.text, span.start);
        // The first complaint about a line says what is wrong, later ones are its echo.
        if faulty_lines.contains(&line) {
            continue;
        }
        problems.push(problem(
            error.message(),
            span,
            &source.text[line.clone()],
            source,
        ));
        faulty_lines.push(line);
    }
    let elsewhere = others.into_iter().filter(|other| {
        other.label.as_ref().is_some_and(|(span, _)| {
            span.start > 0 && !faulty_lines.iter().any(|line| line.contains(&span.start))
        })
    });
    problems.extend(elsewhere);
    problems
}

fn problem(message: &str, span: Range<usize>, line: &str, source: &Arc<Source>) -> Problem {
    let remedy = if message.contains("duplicate key") {
        "keep one of them".to_owned()
    } else if let Some((key, value)) = unquoted(line) {
        format!("put the value in quotes: `{key} = \"{value}\"`")
    } else {
        "write `key = value` lines under `[table]` lines; texts and quantities stand in quotes"
            .to_owned()
    };
    Problem {
        message: format!("not a scenario file: {message}"),
        label: Some((span, "here".to_owned())),
        remedy,
        source: source.clone(),
    }
}

/// Key and value of a line whose value lacks its quotes.
fn unquoted(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split('#').next()?.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let bare = value.starts_with(|c: char| c.is_ascii_alphanumeric()) && !value.contains('"');
    (bare && !key.is_empty()).then_some((key, value))
}

/// The line in which the byte at `offset` stands, without its end.
fn line_around(text: &str, offset: usize) -> Range<usize> {
    let offset = offset.min(text.len());
    let start = text.as_bytes()[..offset]
        .iter()
        .rposition(|&byte| byte == b'\n');
    let start = start.map_or(0, |newline| newline + 1);
    let end = text.as_bytes()[offset..]
        .iter()
        .position(|&byte| byte == b'\n');
    start..end.map_or(text.len(), |length| offset + length)
}
