//! Configuration that serde reads: what it refuses, with place, suggestion and remedy.
//!
//! serde stops at the first mistake. What is wrong is taken out of the text then, and the rest is read, so that every
//! unknown key and every value of a wrong kind is told at once.

use crate::problem::{Problem, ScenarioError, Source, shown};
use crate::reader::{did_you_mean, nearest};
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::sync::Arc;

/// Mistakes that are told at once.
const MOST: usize = 16;

/// A line that is quoted in a message has no more bytes.
const LONGEST_LINE: usize = 80;

/// Reads `source` as TOML into a `T`.
///
/// # Errors
/// Every mistake that can be found, in the order of the file.
pub fn parse_as<T: DeserializeOwned>(source: Source) -> Result<T, ScenarioError> {
    let first = match toml::from_str(&source.text) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let source = Arc::new(source);
    let mut problems = vec![problem(&first, &source)];
    let mut text = source.text.clone();
    let mut place = first.span();
    // Where the file is no TOML, nothing else can be said of it.
    while let Some(span) = place.take().filter(|_| problems.len() < MOST)
        && is_toml(&text)
    {
        let line = line_of(&source.text, &span);
        // What stands below a header would be taken for the table's before.
        let is_header = source.text[line.clone()].trim_start().starts_with('[');
        blank(
            &mut text,
            if is_header {
                table_of(&source.text, &span)
            } else {
                line
            },
        );
        let mut next = toml::from_str::<T>(&text).err();
        if next
            .as_ref()
            .is_some_and(|error| error.message().starts_with(MISSING))
        {
            // What is needed was taken out, so the rest of its table goes, too.
            blank(&mut text, table_of(&source.text, &span));
            next = toml::from_str::<T>(&text).err();
        }
        let next = next.filter(|error| !error.message().starts_with(MISSING));
        if let Some(error) = next.filter(|_| is_toml(&text)) {
            problems.push(problem(&error, &source));
            place = error.span();
        }
    }
    Err(ScenarioError::new(problems))
}

fn is_toml(text: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok()
}

/// Puts spaces in place of what stands at `span`: all else stays where it is.
fn blank(text: &mut String, span: Range<usize>) {
    let spaces: String = text[span.clone()]
        .bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect();
    text.replace_range(span, &spaces);
}

/// The lines on which something stands.
fn line_of(text: &str, span: &Range<usize>) -> Range<usize> {
    // By bytes: a place may be amid a character, a line's end is not.
    let (before, after) = (&text.as_bytes()[..span.start], &text.as_bytes()[span.end..]);
    let start = before.iter().rposition(|&byte| byte == b'\n');
    let end = after.iter().position(|&byte| byte == b'\n');
    start.map_or(0, |newline| newline + 1)..end.map_or(text.len(), |end| span.end + end)
}

/// The table in which something stands, with its header, to the next header or the end.
fn table_of(text: &str, span: &Range<usize>) -> Range<usize> {
    let line = line_of(text, span);
    let is_header = |at: &usize| text[*at..].starts_with('[');
    let starts = core::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let headers: Vec<usize> = starts.filter(is_header).collect();
    let start = headers.iter().rfind(|&&at| at <= line.start);
    let end = headers.iter().find(|&&at| at > line.start);
    start.copied().unwrap_or(0)..end.copied().unwrap_or(text.len())
}

const UNKNOWN_KEY: &str = "unknown field `";
const UNKNOWN_WORD: &str = "unknown variant `";
const MISSING: &str = "missing field `";

fn problem(error: &toml::de::Error, source: &Arc<Source>) -> Problem {
    // A key in quotation marks may have any character.
    let message = &*shown(error.message()).unwrap_or_else(|| error.message().to_owned());
    let span = error.span().unwrap_or(0..0);
    let known = message
        .split_once("expected")
        .map_or("", |(_, known)| known);
    let names: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let quoted = |rest: &str| rest.split('`').next().unwrap_or_default().to_owned();
    if let Some(rest) = message.strip_prefix(UNKNOWN_KEY) {
        let written = quoted(rest);
        let label = did_you_mean(nearest(&written, &names));
        let remedy = match names.is_empty() {
            true => "nothing may stand here".to_owned(),
            false => format!("there may stand {}", names.join(", ")),
        };
        return Problem::new(
            source,
            span,
            format!("there is no key `{written}` here"),
            label,
            remedy,
        );
    }
    if let Some(rest) = message.strip_prefix(UNKNOWN_WORD) {
        let written = quoted(rest);
        let label = did_you_mean(nearest(&written, &names));
        let words: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        let remedy = format!("write one of {}", words.join(", "));
        return Problem::new(
            source,
            span,
            format!("`{written}` is not allowed here"),
            label,
            remedy,
        );
    }
    if let Some(rest) = message.strip_prefix(MISSING) {
        let missing = quoted(rest);
        let remedy = format!("add `{missing} = …` to it");
        let message = format!("a table has no key `{missing}`, which it needs");
        return Problem::new(source, span, message, "this table", remedy);
    }
    let (message, remedy) = match in_words(known.trim()) {
        Some(words) => (
            message.replace(known.trim(), words),
            format!("it takes {words}"),
        ),
        None => (
            message.to_owned(),
            "put it right as the message says".to_owned(),
        ),
    };
    // For a log, which shows no place.
    let line = &source.text[line_of(&source.text, &span)];
    let line = shown(line).unwrap_or_else(|| line.to_owned());
    let line = line.trim();
    let message = match line.len() {
        1..=LONGEST_LINE => format!("{line}: {message}"),
        _ => message,
    };
    Problem::new(source, span, message, "here", remedy)
}

/// The values that serde expects, in words; `None` if it is not known how to say that.
fn in_words(expected: &str) -> Option<&str> {
    Some(match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string or map" => "a text in quotation marks",
        "a sequence" => "a list in brackets",
        "IP address" => "an IP address in quotation marks",
        "IPv4 address" => "an IPv4 address in quotation marks",
        "IPv6 address" => "an IPv6 address in quotation marks",
        _ => return expected.starts_with("a ").then_some(expected),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        outer: Outer,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct Outer {
        interface: String,
        per_second: u32,
        detection: Option<Detection>,
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    enum Detection {
        Eager,
        Lazy,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        tag: u8,
    }

    /// Place, message, label and remedy of each problem.
    fn told(text: &str) -> Vec<(String, String, String, String)> {
        let error = parse_as::<File>(Source::new("f", text)).expect_err("something is wrong");
        let of = |problem: &Problem| {
            let label = problem.label.as_ref().map(|(_, label)| label.clone());
            let (place, remedy) = (problem.location(), problem.remedy().to_owned());
            (
                place,
                problem.to_string(),
                label.unwrap_or_default(),
                remedy,
            )
        };
        error.problems().iter().map(of).collect()
    }

    #[test]
    fn every_mistake_has_its_place_and_a_suggestion() {
        let text = "[outer]\ninterfac = \"eth0\"\nper_second = \"8\"\ndetection = \"eagre\"\n[[outer.inner]]\ntag = 300\n\
                    [[outer.inner]]\ntga = 1\n";
        let expected = [
            (
                "f:2:1",
                "there is no key `interfac` here",
                "did you mean `interface`?",
            ),
            (
                "f:3:14",
                "per_second = \"8\": invalid type: string \"8\", expected a whole number",
                "here",
            ),
            (
                "f:4:13",
                "`eagre` is not allowed here",
                "did you mean `eager`?",
            ),
            (
                "f:6:7",
                "tag = 300: invalid value: integer `300`, expected a whole number",
                "here",
            ),
            ("f:8:1", "there is no key `tga` here", "did you mean `tag`?"),
        ];
        let told = told(text);
        let shown: Vec<_> = told
            .iter()
            .map(|(at, message, label, _)| (&**at, &**message, &**label))
            .collect();
        assert_eq!(shown, expected);
        assert!(told[0].3.contains("per_second, detection"), "{told:?}");
        assert_eq!(told[1].3, "it takes a whole number");
        assert_eq!(told[2].3, "write one of \"eager\", \"lazy\"");
    }

    #[test]
    fn what_is_no_toml_is_told_once_and_what_is_missing_by_its_table() {
        assert_eq!(told("[outer]\ninterface = eth0\nper_sec = 1\n").len(), 1);
        let missing = told("[[outer.inner]]\n");
        assert_eq!(missing[0].1, "a table has no key `tag`, which it needs");
        assert_eq!(told("wrong = 1\n[outer]\nalso = 2\n").len(), 2);
        // Keys of a table that is not known are no mistakes of another one.
        assert_eq!(
            told("[outre]\nper_second = 1\ndetection = \"lazy\"\n").len(),
            1
        );
        assert_eq!(
            parse_as::<File>(Source::new("f", "")).expect("sound"),
            File {
                outer: Outer::default()
            }
        );
    }

    #[test]
    fn any_text_is_read_or_refused() {
        for text in [
            "=",
            "[",
            "[outer",
            "outer = 1",
            "[outer]\ninner = 1",
            "[outer]\n\u{fc}ber = \"\u{fc}\"",
            "\r\n[x]\r\n",
        ] {
            assert!(!told(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn no_message_steers_the_terminal() {
        let quoted = "[outer]\n\"\\u001b[2J\" = 1\ninterface = 7\n";
        for text in [
            quoted,
            "[outer]\ninterface = \u{1b}[2J\n",
            "[outer]\nper_second = \"\\u001b[2J\"\n",
        ] {
            let told = told(text);
            assert!(
                told.iter().all(|(_, message, label, remedy)| {
                    [message, label, remedy]
                        .iter()
                        .all(|text| !text.contains('\u{1b}'))
                }),
                "{told:?}"
            );
        }
    }
}
