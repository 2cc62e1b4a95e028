//! CSV (RFC 4180, but with plain line feeds): keys, base units, full precision.

use super::{Table, Value};

impl Table {
    /// The table as CSV: a line of keys, then a line per row, without title and notes. Flags are
    /// `true` and `false`, missing values are empty, numbers are in base units with as many
    /// digits as they need.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut csv = line(self.columns.iter().map(|column| field(&column.key)));
        for row in self.rows() {
            csv.push_str(&line(row.map(|(_, cell)| match &cell.value {
                Value::Missing => String::new(),
                Value::Text(text) => field(text),
                Value::Flag(flag) => flag.to_string(),
                Value::Integer(number) => number.to_string(),
                Value::Number(number) => number.to_string(),
            })));
        }
        csv
    }
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let mut line = fields.collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

/// Quotes what would otherwise be read as something else.
fn field(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']) && text.trim() == text;
    if plain {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('"', "\"\""))
    }
}
