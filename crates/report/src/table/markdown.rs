//! Markdown (GitHub's tables), aligned so that the source reads well too.

use unicode_width::UnicodeWidthStr as _;

use super::Table;

impl Table {
    /// The table in Markdown; the title becomes a bold paragraph, the notes a list.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let headings = self
            .columns
            .iter()
            .map(|column| escape(&column.heading))
            .collect();
        let mut lines: Vec<Vec<String>> = vec![headings];
        for row in self.rows() {
            lines.push(
                row.map(|(column, cell)| escape(&column.show(&cell.value)))
                    .collect(),
            );
        }
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                lines
                    .iter()
                    .map(|line| line[i].width())
                    .max()
                    .unwrap_or(0)
                    .max(3)
            })
            .collect();

        let mut markdown = String::new();
        if let Some(title) = &self.title {
            markdown.push_str(&format!("**{}**\n\n", escape(title)));
        }
        for (i, line) in lines.iter().enumerate() {
            markdown.push_str(&self.markdown_line(line, &widths));
            if i == 0 {
                markdown.push_str(&self.markdown_rule(&widths));
            }
        }
        if !self.notes.is_empty() {
            markdown.push('\n');
        }
        for note in &self.notes {
            markdown.push_str(&format!("- {}\n", escape(note)));
        }
        markdown
    }

    fn markdown_line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::from("|");
        for ((cell, width), column) in cells.iter().zip(widths).zip(&self.columns) {
            let fill = " ".repeat(width - cell.width());
            let (left, right) = if column.is_numeric() {
                (&*fill, "")
            } else {
                ("", &*fill)
            };
            line.push_str(&format!(" {left}{cell}{right} |"));
        }
        line.push('\n');
        line
    }

    fn markdown_rule(&self, widths: &[usize]) -> String {
        let mut rule = String::from("|");
        for (width, column) in widths.iter().zip(&self.columns) {
            let end = if column.is_numeric() { ":" } else { "-" };
            rule.push_str(&format!(" {}{end} |", "-".repeat(width - 1)));
        }
        rule.push('\n');
        rule
    }
}

/// Escapes what Markdown would take for markup. An underscore inside a word is none.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let inside_word =
            before.is_alphanumeric() && chars.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '\\' | '|' | '<' | '*' | '`' | '[' | ']' => escaped.extend(['\\', c]),
            '_' if !inside_word => escaped.extend(['\\', c]),
            '\n' => escaped.push_str("<br>"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
        before = c;
    }
    escaped
}
