//! CSV (RFC 4180, but with plain line feeds): a line of names, then a line for each row.

use crate::datum::{Column, Datum};
use std::fs::File;
use std::io;
use std::path::Path;

pub(super) struct CsvFile {
    writer: csv::Writer<File>,
}

impl CsvFile {
    pub(super) fn create(path: &Path, columns: &[Column]) -> io::Result<Self> {
        // The writer has a buffer of its own.
        let mut writer = csv::Writer::from_writer(File::create(path)?);
        writer.write_record(columns.iter().map(|column| &column.name))?;
        Ok(Self { writer })
    }

    pub(super) fn push(&mut self, row: &[Datum]) -> io::Result<()> {
        Ok(self.writer.write_record(row.iter().map(Datum::to_csv))?)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
