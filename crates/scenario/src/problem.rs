//! What is wrong with a scenario file, said so that it can be put right.

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A file as it was read, with the name by which the user knows it.
#[derive(Debug)]
pub struct Source {
    /// What messages call it.
    pub name: String,
    /// Its content.
    pub text: String,
    /// The content as a terminal may get it, byte for byte as long; `None` if it may get all of it.
    shown: Option<String>,
}

impl Source {
    /// A file whose content is `text`.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            name: name.into(),
            shown: shown(&text),
            text,
        }
    }

    /// Line and column of a byte, in characters and from 1.
    fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let text = self.shown.as_ref().unwrap_or(&self.text);
        let contents = text.read_span(span, lines_before, lines_after)?;
        // Columns are characters here, as editors count; the text's own count bytes.
        let column = match contents.span().offset() == span.offset() {
            true => self.position(span.offset()).1 - 1,
            false => contents.column(),
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            contents.data(),
            *contents.span(),
            contents.line(),
            column,
            contents.line_count(),
        )))
    }
}

/// `text` without what moves a terminal's cursor, changes its colours or turns the direction of writing: each such character
/// becomes a sign of as many bytes, so that places in the text stay where they are. `None` if nothing is to be replaced.
pub(crate) fn shown(text: &str) -> Option<String> {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_harmful = |c: char, next: Option<char>| match c {
        '\n' | '\t' => false,
        // It ends a line of Windows; elsewhere the cursor goes back to the beginning.
        '\r' => next != Some('\n'),
        c => turns(c) || c.is_control(),
    };
    let sign = |c: char| match c.len_utf8() {
        1 => '?',
        2 => '\u{bf}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    let mut shown = String::with_capacity(text.len());
    let mut has_harmful = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_harmful = is_harmful(c, chars.peek().copied());
        has_harmful |= is_harmful;
        shown.push(if is_harmful { sign(c) } else { c });
    }
    has_harmful.then_some(shown)
}

/// One thing that is wrong, where it stands, and what to do about it.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(crate) message: String,
    /// The place, and what to write under it; `None` if the file could not be read.
    pub(crate) label: Option<(Range<usize>, String)>,
    pub(crate) remedy: String,
    pub(crate) source: Arc<Source>,
    /// Whether something is not there, in the table at the place.
    pub(crate) is_absence: bool,
}

impl Problem {
    /// Something that is wrong with the text of `source` at `span`: what it is, what to write under
    /// the place, and what to do about it.
    #[must_use]
    pub fn new(
        source: &Arc<Source>,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
            label: Some((span, label.into())),
            remedy: remedy.into(),
            source: source.clone(),
            is_absence: false,
        }
    }

    /// Adds `note` to the remedy of the problem.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        self.remedy.push_str(note);
        self
    }

    /// `file:line:column`, or only the file if that could not be read.
    #[must_use]
    pub fn location(&self) -> String {
        match self.position() {
            Some((line, column)) => format!("{}:{line}:{column}", self.source.name),
            None => self.source.name.clone(),
        }
    }

    /// Line and column, in characters and from 1; `None` if the file could not be read.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        let (span, _) = self.label.as_ref()?;
        Some(self.source.position(span.start))
    }

    /// What messages call the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.source.name
    }

    /// What is written at the place; `None` if the file could not be read, or nothing is there.
    #[must_use]
    pub fn written(&self) -> Option<&str> {
        let (span, _) = self.label.as_ref()?;
        let text = self.source.text.get(span.clone());
        text.filter(|text| !text.is_empty())
    }

    /// What is said under the place, such as `allowed: 0 to 1`; `None` if the file could not be read.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_ref().map(|(_, label)| label.as_str())
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(shown(&self.message).as_ref().unwrap_or(&self.message))
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let remedy = shown(&self.remedy);
        Some(Box::new(remedy.unwrap_or_else(|| self.remedy.clone())))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.label
            .as_ref()
            .map(|_| &*self.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (span, text) = self.label.as_ref()?;
        let label = LabeledSpan::new_primary_with_span(
            Some(shown(text).unwrap_or_else(|| text.clone())),
            span.clone(),
        );
        Some(Box::new(std::iter::once(label)))
    }
}

/// A scenario file, or another one that is read in its manner, that cannot be used, with everything
/// that is wrong with it.
///
/// As a [`Diagnostic`] a single problem stands for itself, and several are the related ones of a
/// summary. [`render`](Self::render) writes it all in plain text.
#[derive(Clone, Debug)]
pub struct ScenarioError {
    /// In the order of the file; never empty.
    problems: Vec<Problem>,
}

impl ScenarioError {
    /// At least one problem must be given.
    #[must_use]
    pub fn new(mut problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty(), "an error without a problem");
        problems.sort_by_key(|problem| problem.label.as_ref().map(|(span, _)| span.start));
        Self { problems }
    }

    /// All that is wrong, in the order of the file; never empty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Shows every problem with its place, in plain text without colours, at most `width` columns
    /// wide: for pipes, logs and dumb terminals.
    #[must_use]
    pub fn render(&self, width: usize) -> String {
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none())
            .with_width(width)
            // A name that is broken at its hyphens cannot be copied.
            .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
            .with_links(false);
        let mut text = match self.single() {
            Some(_) => String::new(),
            None => format!("{self}\n\n"),
        };
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            let written = handler.render_report(&mut text, problem);
            written.expect("a string takes everything written to it");
        }
        text
    }

    fn single(&self) -> Option<&Problem> {
        match &self.problems[..] {
            [problem] => Some(problem),
            _ => None,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problems[..] {
            [problem] => problem.fmt(f),
            [first, ..] => write!(
                f,
                "{} has {} problems",
                first.source.name,
                self.problems.len()
            ),
            [] => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}

impl Diagnostic for ScenarioError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.single()?.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.single()?.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single()?.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.single().is_some() {
            return None;
        }
        Some(Box::new(
            self.problems
                .iter()
                .map(|problem| problem as &dyn Diagnostic),
        ))
    }
}
