//! Tables in Arrow's format, which other libraries take over without copying them.

use arrow_array::builder::UInt64Builder;
use arrow_array::builder::{ArrayBuilder, BooleanBuilder, Float64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use outlast_sweep::{Column, Datum, Kind};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::sync::Arc;

/// Rows of a batch.
const BATCH: usize = 65_536;

/// A table whose columns have types and names.
#[pyclass(frozen, module = "outlast._native")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// The schema, by Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref());
        PyCapsule::new_with_value(py, schema.map_err(failed)?, c"arrow_schema")
    }

    /// The rows, by Arrow's C stream interface. Their memory is shared with the taker.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer answer with what it has.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok::<_, ArrowError>);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    /// A list of Python values for each column.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (index, name) in self.column_names().into_iter().enumerate() {
            let values = PyList::empty(py);
            for batch in &self.batches {
                let column = batch.column(index);
                for row in 0..column.len() {
                    values.append(value(py, column, row)?)?;
                }
            }
            columns.set_item(name, values)?;
        }
        Ok(columns)
    }
}

/// The value of a column in a row.
fn value<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into_bound_py_any(py),
        DataType::UInt64 => {
            let numbers = column.as_primitive::<UInt64Type>();
            numbers.value(row).into_bound_py_any(py)
        }
        DataType::Float64 => {
            let numbers = column.as_primitive::<Float64Type>();
            numbers.value(row).into_bound_py_any(py)
        }
        _ => column.as_string::<i32>().value(row).into_bound_py_any(py),
    }
}

/// Makes a table, row by row.
pub(crate) struct Builder {
    schema: SchemaRef,
    columns: Vec<Values>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

/// The values of one column in the batch at hand.
enum Values {
    Flags(BooleanBuilder),
    Integers(UInt64Builder),
    Numbers(Float64Builder),
    Texts(StringBuilder),
}

impl Builder {
    /// An empty table.
    pub(crate) fn new(columns: &[Column]) -> Self {
        let fields = columns.iter().map(|column| {
            let kind = match column.kind {
                Kind::Flag => DataType::Boolean,
                Kind::Integer => DataType::UInt64,
                Kind::Number => DataType::Float64,
                Kind::Text => DataType::Utf8,
            };
            Field::new(&column.name, kind, true)
        });
        Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns: columns
                .iter()
                .map(|column| Values::new(column.kind))
                .collect(),
            rows: 0,
            batches: Vec::new(),
        }
    }

    /// Appends a row, whose values are in the order of the columns.
    pub(crate) fn push(&mut self, row: &[Datum]) -> PyResult<()> {
        for (column, datum) in self.columns.iter_mut().zip(row) {
            column.push(datum);
        }
        self.rows += 1;
        match self.rows {
            BATCH => self.close_batch(),
            _ => Ok(()),
        }
    }

    /// The table.
    pub(crate) fn finish(mut self) -> PyResult<Table> {
        if self.rows > 0 {
            self.close_batch()?;
        }
        Ok(Table {
            schema: self.schema,
            batches: self.batches,
        })
    }

    fn close_batch(&mut self) -> PyResult<()> {
        self.rows = 0;
        let columns = self.columns.iter_mut().map(Values::take).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(failed)?;
        self.batches.push(batch);
        Ok(())
    }
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Flag => Self::Flags(BooleanBuilder::new()),
            Kind::Integer => Self::Integers(UInt64Builder::new()),
            Kind::Number => Self::Numbers(Float64Builder::new()),
            Kind::Text => Self::Texts(StringBuilder::new()),
        }
    }

    fn push(&mut self, datum: &Datum) {
        match (self, datum) {
            (Self::Flags(flags), Datum::Flag(flag)) => flags.append_value(*flag),
            (Self::Integers(numbers), Datum::Integer(number)) => numbers.append_value(*number),
            (Self::Numbers(numbers), Datum::Number(number)) => numbers.append_value(*number),
            (Self::Texts(texts), Datum::Text(text)) => texts.append_value(text),
            (values, datum) => {
                debug_assert_eq!(*datum, Datum::Missing, "a value of another kind");
                match values {
                    Self::Flags(flags) => flags.append_null(),
                    Self::Integers(numbers) => numbers.append_null(),
                    Self::Numbers(numbers) => numbers.append_null(),
                    Self::Texts(texts) => texts.append_null(),
                }
            }
        }
    }

    /// The values so far.
    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Flags(flags) => ArrayBuilder::finish(flags),
            Self::Integers(numbers) => ArrayBuilder::finish(numbers),
            Self::Numbers(numbers) => ArrayBuilder::finish(numbers),
            Self::Texts(texts) => ArrayBuilder::finish(texts),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
