//! JSON: one object with the columns' meaning and a row object per row.

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::{Cell, Column, Format, Table, Value};
use crate::unit::Unit;

impl Table {
    /// The table as one JSON document:
    /// `{"title", "columns": [{"key", "heading", "unit"}], "rows": [{KEY: VALUE}], "notes"}`.
    /// Missing values and numbers that are not finite are `null`.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a table has string keys and no failing writer")
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|cells| Row(&self.columns, cells))
            .collect();
        let mut table = serializer.serialize_struct("Table", 4)?;
        table.serialize_field("title", &self.title)?;
        table.serialize_field("columns", &self.columns)?;
        table.serialize_field("rows", &rows)?;
        table.serialize_field("notes", &self.notes)?;
        table.end()
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unit = match self.format {
            Format::Quantity(unit) => unit.symbol(),
            Format::Text | Format::Fixed { .. } => Unit::Number.symbol(),
        };
        let mut column = serializer.serialize_struct("Column", 3)?;
        column.serialize_field("key", &self.key)?;
        column.serialize_field("heading", &self.heading)?;
        column.serialize_field("unit", unit)?;
        column.end()
    }
}

/// A row as an object whose members stand in the order of the columns.
struct Row<'a>(&'a [Column], &'a [Cell]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(Some(self.1.len()))?;
        for (column, cell) in self.0.iter().zip(self.1) {
            row.serialize_entry(&column.key, &cell.value)?;
        }
        row.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => serializer.serialize_none(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Integer(number) => serializer.serialize_u64(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
        }
    }
}
