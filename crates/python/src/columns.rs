//! Rows as columns in Arrow's layout, and how they are made.

use crate::arrow;
use crate::error::raise;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_array::{Float64Array, ListArray, PrimitiveArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use model::{Error, Result};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// Columns of equal length. pandas, polars, pyarrow and DuckDB take them without a copy.
#[pyclass(frozen, module = "warmset._native")]
pub(crate) struct Columns {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Columns {
    /// All of these batches, which have one schema.
    pub(crate) fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Columns { schema, batches }
    }

    /// One batch of named columns.
    ///
    /// # Errors
    /// They are of different lengths.
    pub(crate) fn new(columns: Vec<(&str, ArrayRef)>) -> Result<Self> {
        let batch = batch(columns)?;
        Ok(Columns {
            schema: batch.schema(),
            batches: vec![batch],
        })
    }
}

/// A batch of named columns. Those without a missing value say so.
///
/// # Errors
/// They are of different lengths.
pub(crate) fn batch<S: Into<String>>(columns: Vec<(S, ArrayRef)>) -> Result<RecordBatch> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|e| Error::new(format!("the columns do not fit together: {e}")))
}

/// A column of integers; what is beyond 2^63 becomes the largest.
pub(crate) fn integers(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    Arc::new(Int64Array::from_iter_values(values.into_iter().map(signed)))
}

/// The same where some have no value.
pub(crate) fn some_integers(values: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
    let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    let values = values.into_iter().map(|v| v.map(signed));
    Arc::new(values.collect::<Int64Array>())
}

/// A column of integers with a sign, some without a value.
pub(crate) fn signed(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// A column of floating-point numbers.
pub(crate) fn numbers(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

/// A column of words.
pub(crate) fn words<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// A column of words, some without one.
pub(crate) fn some_words<S: AsRef<str>>(values: impl IntoIterator<Item = Option<S>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

/// A column of truths.
pub(crate) fn truths(values: impl IntoIterator<Item = bool>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(values.into_iter().map(Some)))
}

#[pymethods]
impl Columns {
    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .collect()
    }

    /// The types of the columns, by Arrow's names.
    #[getter]
    fn types(&self) -> Vec<String> {
        let types = self.schema.fields().iter().map(|f| f.data_type());
        types.map(ToString::to_string).collect()
    }

    /// How many rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The values of a column as a list of Python's values.
    #[pyo3(signature = (name) -> "list[Any]")]
    fn entries<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let at = self.schema.index_of(name).map_err(|_| {
            PyKeyError::new_err(format!(
                "there is no column `{name}`: the columns are {}",
                self.names().join(", ")
            ))
        })?;
        let list = PyList::empty(py);
        for batch in &self.batches {
            let array = batch.column(at);
            for row in 0..array.len() {
                list.append(value(py, array, row)?)?;
            }
        }
        Ok(list)
    }

    /// These columns alone, in this order.
    fn select(&self, names: Vec<String>) -> PyResult<Columns> {
        let places: Vec<usize> = names
            .iter()
            .map(|name| {
                self.schema
                    .index_of(name)
                    .map_err(|_| PyKeyError::new_err(format!("there is no column `{name}`")))
            })
            .collect::<PyResult<_>>()?;
        let project = |batch: &RecordBatch| batch.project(&places).map_err(arrow::failed);
        let schema = self.schema.project(&places).map_err(arrow::failed)?;
        Ok(Columns {
            schema: Arc::new(schema),
            batches: self.batches.iter().map(project).collect::<PyResult<_>>()?,
        })
    }

    /// The same with one more column of truths; no value stands for none.
    ///
    /// It has as many entries as there are rows.
    fn with_truths(&self, name: &str, values: Vec<Option<bool>>) -> PyResult<Columns> {
        if values.len() != self.__len__() {
            let cause = format!("{} values for {} rows", values.len(), self.__len__());
            return Err(raise(Error::new(cause).remedy("give one for each row")));
        }
        let mut fields = self.schema.fields().to_vec();
        fields.push(Arc::new(Field::new(name, DataType::Boolean, true)));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let mut first = 0;
        let mut with = |batch: &RecordBatch| {
            let values = &values[first..first + batch.num_rows()];
            first += batch.num_rows();
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(values.iter().copied().collect::<BooleanArray>()));
            RecordBatch::try_new(schema.clone(), columns).map_err(arrow::failed)
        };
        let batches = self
            .batches
            .iter()
            .map(&mut with)
            .collect::<PyResult<_>>()?;
        Ok(Columns { schema, batches })
    }

    /// Some rows from a first one on, without a copy.
    fn slice(&self, first: usize, rows: usize) -> Columns {
        let (mut skip, mut left) = (first, rows);
        let mut batches = Vec::new();
        for batch in &self.batches {
            let start = skip.min(batch.num_rows());
            let length = left.min(batch.num_rows() - start);
            skip -= start;
            left -= length;
            if length > 0 {
                batches.push(batch.slice(start, length));
            }
        }
        Columns {
            schema: self.schema.clone(),
            batches,
        }
    }

    /// Arrow's schema, as a capsule.
    #[pyo3(signature = () -> "object")]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema_out(py, &self.schema)
    }

    /// A stream of the rows in Arrow's layout, as a capsule. Another schema may be asked for, and
    /// is not given: values keep their types.
    #[pyo3(signature = (requested_schema=None) -> "object")]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream_out(py, self.schema.clone(), self.batches.clone())
    }
}

/// One value of an array, as Python has it.
fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Boolean => array
            .as_boolean()
            .value(row)
            .into_pyobject(py)?
            .to_owned()
            .into_any(),
        DataType::Int64 => plain::<Int64Type>(array, row).into_pyobject(py)?.into_any(),
        DataType::Float64 => plain::<Float64Type>(array, row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Utf8 => array
            .as_string::<i32>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::List(_) => {
            let array: &ListArray = array.as_list();
            let inner = array.value(row);
            let list = PyList::empty(py);
            for at in 0..inner.len() {
                list.append(value(py, &inner, at)?)?;
            }
            list.into_any()
        }
        other => {
            let cause = format!("a column of {other} has no values in Python here");
            let remedy = "hand the columns to pyarrow, pandas or polars";
            return Err(raise(Error::new(cause).remedy(remedy)));
        }
    })
}

fn plain<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> T::Native {
    let array: &PrimitiveArray<T> = array.as_primitive();
    array.value(row)
}
