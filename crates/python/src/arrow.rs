//! Columns to and from other packages of Python, by Arrow's PyCapsule interface: pointers to C
//! structures in capsules, each with the function that frees it.
//!
//! The only part with `unsafe`: what a capsule of the right name points to is what the interface
//! says, as everywhere where it is used.

#![allow(unsafe_code)]

use crate::error::raise;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use model::Error;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// An error of Arrow as `warmset.Error`.
pub(crate) fn failed(error: ArrowError) -> PyErr {
    raise(cannot(&error))
}

/// An error of Arrow as a sentence.
pub(crate) fn cannot(error: &ArrowError) -> Error {
    Error::new(format!("the columns cannot be read: {error}")).remedy(
        "give a table of pyarrow, a data frame of pandas or polars, or what `ws.generate` returns",
    )
}

/// A capsule with a schema, which its consumer moves out.
pub(crate) fn schema_out<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(failed)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// A capsule with a stream of batches, which its consumer moves out.
pub(crate) fn stream_out<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
}

/// The batches of what another package hands out: a stream, or an array of structs.
///
/// # Errors
/// It hands out neither, or one that is not of columns.
pub(crate) fn stream_in(data: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    if data.hasattr("__arrow_c_stream__")? {
        let capsule = data.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds a valid stream (PyCapsule interface), which is moved
        // out: what is left in the capsule is marked as released.
        let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr().cast()) };
        return Ok(Box::new(reader.map_err(failed)?));
    }
    if data.hasattr("__arrow_c_array__")? {
        let both = data.call_method0("__arrow_c_array__")?;
        let both = both.cast::<PyTuple>()?;
        let (schema, array) = (both.get_item(0)?, both.get_item(1)?);
        let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
        let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?;
        // SAFETY: as above; the array is moved out, the schema is only looked at while its capsule
        // is alive.
        let data = unsafe {
            let array = FFI_ArrowArray::from_raw(array.as_ptr().cast());
            from_ffi(array, &*schema.as_ptr().cast::<FFI_ArrowSchema>())
        };
        let batch = RecordBatch::from(StructArray::from(data.map_err(failed)?));
        let schema = batch.schema();
        return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    }
    let what = data.get_type().name()?;
    Err(raise(
        Error::new(format!("a `{what}` hands out no columns"))
            .remedy("give a table of pyarrow, a data frame of pandas or polars, or what `ws.generate` returns"),
    ))
}
