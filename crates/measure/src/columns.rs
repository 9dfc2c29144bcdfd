//! Samples in Parquet files: one row each, columns by a schema, what they come from as metadata.

use model::files::Aside;
use model::{Error, Result};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::path::Path;
use std::sync::Arc;

/// How many samples go into one row group.
pub(crate) const ROW_GROUP: usize = 65_536;

/// A sample as a row.
pub(crate) trait Record: Sized {
    /// The names and types of its columns.
    const SCHEMA: &'static str;

    /// Writes the columns of some samples, in the order of the schema.
    fn write(columns: &mut Columns<'_, '_, '_, Self>) -> Result<(), ParquetError>;
}

/// Writes the samples aside and renames: the file is there complete, or not at all. `about` is kept
/// in it as key-value metadata (command, seed, kernel, …).
pub(crate) fn write<T: Record>(
    path: &Path,
    samples: &[T],
    about: &[(String, String)],
) -> Result<()> {
    write_groups(path, samples.chunks(ROW_GROUP), about)
}

/// The same for samples that come in row groups.
pub(crate) fn write_groups<T: Record, G: AsRef<[T]>>(
    path: &Path,
    groups: impl Iterator<Item = G>,
    about: &[(String, String)],
) -> Result<()> {
    let failed = |e: ParquetError| {
        Error::new(format!("cannot write the samples: {}", cause(&e)))
            .at(path.display())
            .remedy("check the free space and the right to write there")
    };
    let schema = Arc::new(parse_message_type(T::SCHEMA).map_err(failed)?);
    let about = about
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("warmset {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(about))
        .build();
    let mut aside = Aside::create(path)?;
    let mut file =
        SerializedFileWriter::new(&mut aside, schema, Arc::new(properties)).map_err(failed)?;
    for samples in groups {
        let mut rows = file.next_row_group().map_err(failed)?;
        let mut columns = Columns {
            rows: &mut rows,
            samples: samples.as_ref(),
        };
        T::write(&mut columns).map_err(failed)?;
        rows.close().map_err(failed)?;
    }
    file.close().map_err(failed)?;
    aside.finish()
}

/// The columns of one row group.
pub(crate) struct Columns<'a, 'b, 'f, T> {
    rows: &'a mut SerializedRowGroupWriter<'b, &'f mut Aside>,
    samples: &'a [T],
}

impl<T> Columns<'_, '_, '_, T> {
    /// Writes the next one.
    pub(crate) fn column<D: DataType>(
        &mut self,
        value: impl Fn(&T) -> D::T,
    ) -> Result<(), ParquetError> {
        let values: Vec<D::T> = self.samples.iter().map(value).collect();
        self.batch::<D>(&values, None)
    }

    /// The same where a sample may have none.
    pub(crate) fn optional<D: DataType>(
        &mut self,
        value: impl Fn(&T) -> Option<D::T>,
    ) -> Result<(), ParquetError> {
        let values: Vec<Option<D::T>> = self.samples.iter().map(value).collect();
        let there: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
        let values: Vec<D::T> = values.into_iter().flatten().collect();
        self.batch::<D>(&values, Some(&there))
    }

    fn batch<D: DataType>(
        &mut self,
        values: &[D::T],
        there: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let mut column = self
            .rows
            .next_column()?
            .ok_or_else(|| ParquetError::General("the schema has too few columns".to_owned()))?;
        column.typed::<D>().write_batch(values, there, None)?;
        column.close()
    }
}

pub(crate) fn text(value: &(impl std::fmt::Display + ?Sized)) -> ByteArray {
    ByteArray::from(value.to_string().into_bytes())
}

/// The largest number of a file where it is larger.
pub(crate) fn saturate(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The message of a Parquet error without the crate's prefix.
pub(crate) fn cause(e: &ParquetError) -> String {
    match e {
        ParquetError::General(text) | ParquetError::EOF(text) => text.clone(),
        other => other.to_string(),
    }
}
