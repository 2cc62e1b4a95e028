//! Parquet: typed columns, every value optional, compressed with Snappy.

use crate::datum::{Column, Datum, Kind};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Rows that are kept in memory and then written together.
const ROW_GROUP: usize = 32_768;

pub(super) struct ParquetFile {
    writer: SerializedFileWriter<File>,
    columns: Vec<Buffer>,
    rows: usize,
}

/// The values of one column in the row group at hand.
struct Buffer {
    values: Values,
    /// 1 where there is a value, 0 where there is none.
    levels: Vec<i16>,
}

enum Values {
    Flags(Vec<bool>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl ParquetFile {
    pub(super) fn create(path: &Path, columns: &[Column]) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let schema = schema(columns).map_err(io::Error::other)?;
        let file = File::create(path)?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties));
        Ok(Self {
            writer: writer.map_err(io::Error::other)?,
            columns: columns
                .iter()
                .map(|column| Buffer::new(column.kind))
                .collect(),
            rows: 0,
        })
    }

    pub(super) fn push(&mut self, row: &[Datum]) -> io::Result<()> {
        for (column, datum) in self.columns.iter_mut().zip(row) {
            column.push(datum);
        }
        self.rows += 1;
        if self.rows == ROW_GROUP {
            self.write_group().map_err(io::Error::other)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(io::Error::other)?;
        }
        self.writer.close().map(drop).map_err(io::Error::other)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for buffer in &mut self.columns {
            if let Some(mut column) = group.next_column()? {
                buffer.write(&mut column)?;
                column.close()?;
            }
        }
        self.rows = 0;
        group.close().map(drop)
    }
}

impl Buffer {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Flag => Values::Flags(Vec::new()),
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Number => Values::Numbers(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
        };
        Self {
            values,
            levels: Vec::new(),
        }
    }

    fn push(&mut self, datum: &Datum) {
        match (&mut self.values, datum) {
            (Values::Flags(flags), Datum::Flag(flag)) => flags.push(*flag),
            // The schema says that the bits are those of a number without sign.
            (Values::Integers(numbers), Datum::Integer(number)) => {
                numbers.push(number.cast_signed());
            }
            (Values::Numbers(numbers), Datum::Number(number)) => numbers.push(*number),
            (Values::Texts(texts), Datum::Text(text)) => texts.push(text.as_str().into()),
            (_, datum) => {
                debug_assert_eq!(*datum, Datum::Missing, "a value of another kind");
                self.levels.push(0);
                return;
            }
        }
        self.levels.push(1);
    }

    /// Writes the values, and forgets them.
    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(&self.levels[..]);
        match &mut self.values {
            Values::Flags(flags) => {
                column
                    .typed::<BoolType>()
                    .write_batch(flags, levels, None)?;
                flags.clear();
            }
            Values::Integers(numbers) => {
                column
                    .typed::<Int64Type>()
                    .write_batch(numbers, levels, None)?;
                numbers.clear();
            }
            Values::Numbers(numbers) => {
                column
                    .typed::<DoubleType>()
                    .write_batch(numbers, levels, None)?;
                numbers.clear();
            }
            Values::Texts(texts) => {
                column
                    .typed::<ByteArrayType>()
                    .write_batch(texts, levels, None)?;
                texts.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<TypePtr>, _> = columns.iter().map(field).collect();
    let schema = Type::group_type_builder("sweep")
        .with_fields(fields?)
        .build()?;
    Ok(Arc::new(schema))
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Flag => (PhysicalType::BOOLEAN, None),
        Kind::Integer => {
            let unsigned = LogicalType::integer(64, false);
            (PhysicalType::INT64, Some(unsigned))
        }
        Kind::Number => (PhysicalType::DOUBLE, None),
        Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}
