//! Plain text for terminals, dumb terminals and pipes.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

use super::{Cell, Column, Table, Tone};

/// Between two columns.
const GAP: usize = 2;
/// A column of words is not made narrower than this to fit the terminal.
const NARROWEST: usize = 9;

/// The characters that a terminal is known to show.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Charset {
    /// Everything.
    #[default]
    Unicode,
    /// ASCII, for a dumb terminal: signs like `±` are spelt out, other foreign characters become
    /// a question mark.
    Ascii,
}

/// How a table is written as text.
#[derive(Clone, Copy)]
pub struct TextStyle<'a> {
    /// What the terminal can show.
    pub charset: Charset,
    /// The terminal's width in columns: words and headings are wrapped to fit, numbers never.
    /// `None` wraps nothing.
    pub width: Option<usize>,
    /// Puts a text into the colour of its tone. Colours are the caller's business; what this
    /// returns must take up as much room as what it got.
    pub paint: &'a dyn Fn(Tone, &str) -> String,
}

impl Default for TextStyle<'_> {
    /// Unicode, as wide as needed, no colours.
    fn default() -> Self {
        Self {
            charset: Charset::Unicode,
            width: None,
            paint: &|_, text| text.to_owned(),
        }
    }
}

impl Table {
    /// The table as text, its columns aligned; lines end without spaces.
    #[must_use]
    pub fn to_text(&self, style: &TextStyle<'_>) -> String {
        let clean = |text: &str| printable(text, style.charset);
        let headings: Vec<String> = self.columns.iter().map(|c| clean(&c.heading)).collect();
        let rows: Vec<Vec<String>> = self
            .rows()
            .map(|row| {
                row.map(|(column, cell)| clean(&column.show(&cell.value)))
                    .collect()
            })
            .collect();
        let widths = self.widths(&headings, &rows, style.width);

        let mut text = String::new();
        let mut add = |line: &str| {
            text.push_str(line.trim_end_matches(' '));
            text.push('\n');
        };
        let wrapped = |line: &str| wrap(line, style.width.unwrap_or(usize::MAX));
        for line in self.title.iter().flat_map(|title| wrapped(&clean(title))) {
            add(&(style.paint)(Tone::Heading, &line));
        }
        let tones = vec![Tone::Heading; self.columns.len()];
        for line in self.lines(&headings, &tones, &widths, Upright::Bottom, style) {
            add(&line);
        }
        add(&rule(&widths, style.charset));
        for (row, cells) in rows.iter().zip(&self.rows) {
            let tones: Vec<Tone> = cells.iter().map(|Cell { tone, .. }| *tone).collect();
            for line in self.lines(row, &tones, &widths, Upright::Top, style) {
                add(&line);
            }
        }
        for line in self.notes.iter().flat_map(|note| wrapped(&clean(note))) {
            add(&(style.paint)(Tone::Weak, &line));
        }
        text
    }

    /// The columns' widths: what their cells need, less what must be saved to fit.
    fn widths(
        &self,
        headings: &[String],
        rows: &[Vec<String>],
        limit: Option<usize>,
    ) -> Vec<usize> {
        let longest = |i: usize| {
            rows.iter()
                .map(|row| widest_line(&row[i]))
                .max()
                .unwrap_or(0)
        };
        let natural = |i: usize| longest(i).max(widest_line(&headings[i]));
        let mut widths: Vec<usize> = (0..self.columns.len()).map(natural).collect();
        let Some(limit) = limit else { return widths };

        let least = |i: usize, column: &Column| {
            let word = headings[i]
                .split_whitespace()
                .map(UnicodeWidthStr::width)
                .max()
                .unwrap_or(0);
            let cells = longest(i);
            word.max(if column.is_numeric() {
                cells
            } else {
                cells.min(NARROWEST)
            })
        };
        let least: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| least(i, c))
            .collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > limit {
            let spare = |&i: &usize| widths[i].saturating_sub(least[i]);
            // The column with most to spare gives; the last of equals, which is the least looked at.
            match (0..widths.len()).max_by_key(spare).filter(|i| spare(i) > 0) {
                Some(i) => widths[i] -= 1,
                None => break,
            }
        }
        widths
    }

    /// The lines of one row, its cells wrapped to `widths` and painted.
    fn lines(
        &self,
        cells: &[String],
        tones: &[Tone],
        widths: &[usize],
        upright: Upright,
        style: &TextStyle<'_>,
    ) -> Vec<String> {
        let cells: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(cell, &width)| wrap(cell, width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            let mut line = String::new();
            for (i, column) in self.columns.iter().enumerate() {
                let above = match upright {
                    Upright::Top => 0,
                    Upright::Bottom => height - cells[i].len(),
                };
                let part = at.checked_sub(above).and_then(|k| cells[i].get(k));
                let part = part.map_or("", String::as_str);
                let fill = " ".repeat(widths[i].saturating_sub(part.width()));
                let painted = if part.is_empty() {
                    String::new()
                } else {
                    (style.paint)(tones[i], part)
                };
                if i > 0 {
                    line.push_str(&" ".repeat(GAP));
                }
                let numeric = column.is_numeric();
                line.push_str(&if numeric {
                    fill + &painted
                } else {
                    painted + &fill
                });
            }
            line
        };
        (0..height).map(line).collect()
    }
}

/// Where a cell with fewer lines than its neighbours stands.
#[derive(Clone, Copy)]
enum Upright {
    Top,
    Bottom,
}

fn rule(widths: &[usize], charset: Charset) -> String {
    let stroke = match charset {
        Charset::Unicode => "─",
        Charset::Ascii => "-",
    };
    let strokes: Vec<String> = widths.iter().map(|&width| stroke.repeat(width)).collect();
    strokes.join(&" ".repeat(GAP))
}

fn widest_line(text: &str) -> usize {
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// `text` in lines of at most `width`, broken between words where possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let joined = line.width() + usize::from(!line.is_empty()) + word.width();
            if !line.is_empty() && joined > width {
                lines.push(std::mem::take(&mut line));
            } else if !line.is_empty() {
                line.push(' ');
            }
            for c in word.chars() {
                if !line.is_empty() && line.width() + c.width().unwrap_or(0) > width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
        lines.push(line);
    }
    lines
}

/// `text` as the terminal can show it: no control characters (which could move the cursor or
/// change colours) but line feeds, and only characters of `charset`.
fn printable(text: &str, charset: Charset) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match (c, charset) {
            ('\n', _) => printable.push(c),
            ('\t', _) => printable.push(' '),
            (c, _) if c.is_control() => printable.extend(c.escape_default()),
            (c, Charset::Ascii) if !c.is_ascii() => printable.push_str(spelt_out(c)),
            (c, _) => printable.push(c),
        }
    }
    printable
}

/// The signs that this crate itself writes, in ASCII.
fn spelt_out(c: char) -> &'static str {
    match c {
        '–' | '−' | '—' => "-",
        '×' => "x",
        '±' => "+-",
        '≤' => "<=",
        '≥' => ">=",
        'µ' => "u",
        '∞' => "inf",
        '…' => "...",
        '“' | '”' => "\"",
        '‘' | '’' => "'",
        '\u{a0}' | '\u{202f}' => " ",
        _ => "?",
    }
}
