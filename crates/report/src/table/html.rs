//! HTML: a `<table>` with scopes for screen readers and classes for the page's style sheet.

use super::{Table, Tone};
use crate::markup::literal;

/// Tables with as many columns are set small.
const WIDE: usize = 9;

impl Table {
    /// The table as an HTML fragment. Its classes are `number` for numeric cells and the tones
    /// `good`, `warning`, `bad` and `weak`; the whole is of class `scroll`, and `wide` with many
    /// columns. The notes follow as a list of class `notes`.
    #[must_use]
    pub fn to_html(&self) -> String {
        let class = match self.columns.len() {
            0..WIDE => "scroll",
            WIDE.. => "scroll wide",
        };
        let mut html = format!("<div class=\"{class}\"><table>\n");
        if let Some(title) = &self.title {
            html.push_str(&format!("<caption>{}</caption>\n", literal(title)));
        }
        html.push_str("<thead><tr>");
        for column in &self.columns {
            let class = class_attribute(column.is_numeric(), Tone::Plain);
            html.push_str(&format!(
                "<th scope=\"col\"{class}>{}</th>",
                literal(&column.heading)
            ));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in self.rows() {
            html.push_str("<tr>");
            for (i, (column, cell)) in row.enumerate() {
                let class = class_attribute(column.is_numeric(), cell.tone);
                let shown = literal(&column.show(&cell.value)).replace('\n', "<br/>");
                // The first column names the row.
                let tag = if i == 0 { "th" } else { "td" };
                let scope = if i == 0 { " scope=\"row\"" } else { "" };
                html.push_str(&format!("<{tag}{scope}{class}>{shown}</{tag}>"));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table></div>\n");
        if !self.notes.is_empty() {
            html.push_str("<ul class=\"notes\">\n");
            for note in &self.notes {
                html.push_str(&format!("<li>{}</li>\n", literal(note)));
            }
            html.push_str("</ul>\n");
        }
        html
    }
}

fn class_attribute(is_numeric: bool, tone: Tone) -> String {
    let tone = match tone {
        Tone::Plain | Tone::Heading => None,
        Tone::Good => Some("good"),
        Tone::Warning => Some("warning"),
        Tone::Bad => Some("bad"),
        Tone::Weak => Some("weak"),
    };
    let classes: Vec<&str> = is_numeric
        .then_some("number")
        .into_iter()
        .chain(tone)
        .collect();
    if classes.is_empty() {
        String::new()
    } else {
        format!(" class=\"{}\"", classes.join(" "))
    }
}
