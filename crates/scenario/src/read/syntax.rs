//! What the TOML parser complains about, in this crate's words.

use crate::problem::{Problem, Source};
use std::ops::Range;
use std::sync::Arc;

/// The problems of a file of some `kind`, such as "scenario file", that is not TOML.
///
/// Of the `others`, found in what could be read, those that may be the fault's own doing are left
/// out: what else is wrong in a faulty line, and what is missing in its table.
pub(super) fn explain(
    kind: &str,
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
            kind,
            error.message(),
            span,
            &source.text[line.clone()],
            source,
        ));
        faulty_lines.push(line);
    }
    let text = &source.text;
    let independent = others.into_iter().filter(|other| {
        let Some((place, _)) = &other.label else {
            return true;
        };
        !faulty_lines.iter().any(|line| {
            // A value that is missing is missed at the line's end.
            (line.start..=line.end).contains(&place.start)
                || other.is_absence && same_table(text, place, line)
        })
    });
    problems.extend(independent);
    problems
}

/// Whether a faulty line stands in the table whose header is at `header`. The top of the file,
/// where whole tables are missing, has every line.
fn same_table(text: &str, header: &Range<usize>, line: &Range<usize>) -> bool {
    let between = text.get(header.end..line.start);
    header.is_empty()
        || between.is_some_and(|between| {
            !between
                .lines()
                .skip(1)
                .any(|line| line.trim_start().starts_with('['))
        })
}

fn problem(
    kind: &str,
    message: &str,
    span: Range<usize>,
    line: &str,
    source: &Arc<Source>,
) -> Problem {
    let (message, label, remedy) = if message.contains("duplicate key") {
        let key = source.text.get(span.clone()).unwrap_or_default();
        (
            format!("`{key}` stands here twice"),
            "the second",
            "keep one of them".to_owned(),
        )
    } else {
        (
            format!("not a {kind}: {message}"),
            "here",
            remedy(message, line),
        )
    };
    Problem {
        message,
        label: Some((span, label.to_owned())),
        remedy,
        source: source.clone(),
        is_absence: false,
    }
}

fn remedy(message: &str, line: &str) -> String {
    if message.contains("invalid basic string") || message.contains("invalid literal") {
        "end the text with the same quote with which it begins, on the same line".to_owned()
    } else if let Some((key, value)) = unquoted(line) {
        format!("put the value in quotes: `{key} = \"{value}\"`")
    } else if let Some((key, value)) = line.split_once(':').filter(|_| !line.contains('=')) {
        format!("write `{} = {}`", key.trim(), value.trim())
    } else {
        "write `key = value` lines under `[table]` lines; texts and quantities stand in quotes"
            .to_owned()
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
