//! The results of a study as a Parquet file: one row for each policy, cap and point of the axis.
//!
//! Columns, none of them ever null; a text that there is none of is empty:
//!
//! - `study`, `scenario`: the name of the study, and what tells it from others, in words.
//! - `guarantee`, `utilizations`, `periods`, `deadlines`, `platform`: the scenario by its parts.
//! - `policy`, `test`: as in figures, and which test decided.
//! - `cap`: U; a share of the processors where their number is swept.
//! - `axis`, `value`, `unit`: what is swept, and where; units are `ns`, `B` or empty.
//! - `processors`: at this point.
//! - `sets`, `accepted`, `share`, `low`, `high`: counts, S, and the ends of its 95 % interval.
//! - `cost_ns`: the longest cache delay of a job at this point: D, or what the profile says for the
//!   working set under the load of this policy.
//! - `accounting`, `profile`, `statistic`, `load`: what is charged, and how.

use crate::definition::Study;
use crate::judge::Candidate;
use crate::prepared::Prepared;
use crate::results::{Results, wilson};
use model::{Error, Load, Result, files};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = "message points {
    REQUIRED BYTE_ARRAY study (UTF8);
    REQUIRED BYTE_ARRAY scenario (UTF8);
    REQUIRED BYTE_ARRAY guarantee (UTF8);
    REQUIRED BYTE_ARRAY utilizations (UTF8);
    REQUIRED BYTE_ARRAY periods (UTF8);
    REQUIRED BYTE_ARRAY deadlines (UTF8);
    REQUIRED BYTE_ARRAY platform (UTF8);
    REQUIRED BYTE_ARRAY policy (UTF8);
    REQUIRED BYTE_ARRAY test (UTF8);
    REQUIRED DOUBLE cap;
    REQUIRED BYTE_ARRAY axis (UTF8);
    REQUIRED DOUBLE value;
    REQUIRED BYTE_ARRAY unit (UTF8);
    REQUIRED INT32 processors;
    REQUIRED INT64 sets;
    REQUIRED INT64 accepted;
    REQUIRED DOUBLE share;
    REQUIRED DOUBLE low;
    REQUIRED DOUBLE high;
    REQUIRED INT64 cost_ns;
    REQUIRED BYTE_ARRAY accounting (UTF8);
    REQUIRED BYTE_ARRAY profile (UTF8);
    REQUIRED BYTE_ARRAY statistic (UTF8);
    REQUIRED BYTE_ARRAY load (UTF8);
}";

/// Rows that are held at once.
const GROUP: usize = 100_000;

/// Places in the results.
#[derive(Clone, Copy)]
struct Row {
    policy: usize,
    cap: usize,
    point: usize,
}

/// What rows are made of.
struct Source<'a> {
    study: &'a Study,
    results: &'a Results,
    scenario: String,
    /// By policy.
    tests: Vec<String>,
    /// By policy: the load under which its cache delays were measured, if any were read.
    loads: Vec<Option<Load>>,
    /// By point of the axis: processors, and the longest cache delay.
    points: Vec<(u32, u64)>,
    /// By load that policies name: the longest cache delay by point.
    costs: Vec<(Load, Vec<u64>)>,
}

impl Source<'_> {
    fn accepted(&self, row: Row) -> u32 {
        self.results.shards[row.cap].accepted[row.policy][row.point]
    }
    fn sets(&self, row: Row) -> u32 {
        self.results.shards[row.cap].sets
    }
    fn cost(&self, row: Row) -> u64 {
        let named = self
            .costs
            .iter()
            .find(|(load, _)| Some(*load) == self.loads[row.policy]);
        named.map_or(self.points[row.point].1, |(_, costs)| costs[row.point])
    }
    fn interval(&self, row: Row) -> (f64, f64) {
        wilson(self.accepted(row), self.sets(row))
    }
}

/// Writes the file; it is there complete, or not at all. The same results are the same bytes.
///
/// # Errors
/// The directory is not writable, or the disk is full.
pub(crate) fn write(
    path: &Path,
    study: &Study,
    prepared: &Prepared,
    results: &Results,
) -> Result<()> {
    let failed = |e: ParquetError| {
        Error::new(format!("cannot write the points: {e}"))
            .at(path.display())
            .remedy("check the free space and the right to write there")
    };
    let scenes = prepared.scenes.iter();
    let mut costs: Vec<(Load, Vec<u64>)> = Vec::new();
    for load in prepared.policies().iter().filter_map(Candidate::load) {
        if costs.iter().all(|(known, _)| *known != load) {
            costs.push((load, study.costs_under(load)?));
        }
    }
    // Where one policy names its load, results have no load of their own, and the others that of
    // the study.
    let of_study = match study.names_loads() {
        true => Some(study.charged.load),
        false => results.charged.load,
    };
    let source = Source {
        study,
        results,
        scenario: format!(
            "{}, {}, {}, {}, {}",
            study.guarantee,
            study.utilizations,
            study.periods,
            study.deadlines,
            study.platform.name
        ),
        tests: prepared
            .policies()
            .iter()
            .map(|p| p.judge().tests())
            .collect(),
        loads: prepared
            .policies()
            .iter()
            .map(|p| p.load().or(of_study))
            .collect(),
        costs,
        points: scenes
            .flat_map(|scene| {
                let of = |point: &crate::prepared::Point| (scene.processors, point.delay.nanos());
                scene.points.iter().map(of)
            })
            .collect(),
    };
    let about = [
        ("source", results.provenance.source.clone()),
        ("command", results.provenance.command.clone()),
        ("title", results.title.clone()),
        ("notes", results.notes.join(" ")),
    ];
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("warmset {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(about.to_vec()))
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(failed)?);
    let mut aside = files::Aside::create(path)?;
    let mut file =
        SerializedFileWriter::new(&mut aside, schema, Arc::new(properties)).map_err(failed)?;
    let (caps, points) = (results.shards.len(), results.axis.len());
    let row = |at: usize| Row {
        policy: at / (caps * points),
        cap: at / points % caps,
        point: at % points,
    };
    let count = results.policies.len() * caps * points;
    for first in (0..count).step_by(GROUP) {
        let rows: Vec<Row> = (first..count.min(first + GROUP)).map(row).collect();
        let mut group = file.next_row_group().map_err(failed)?;
        columns(&mut Columns(&mut group, &rows), &source).map_err(failed)?;
        group.close().map_err(failed)?;
    }
    file.close().map_err(failed)?;
    aside.finish()
}

fn columns<W: Write + Send>(
    all: &mut Columns<'_, '_, W>,
    from: &Source<'_>,
) -> std::result::Result<(), ParquetError> {
    let (study, results) = (from.study, from.results);
    let quantity = results.axis.quantity;
    let optional = |value: Option<String>| text(&value.unwrap_or_default());
    all.column::<ByteArrayType>(|_| text(&study.name))?;
    all.column::<ByteArrayType>(|_| text(&from.scenario))?;
    all.column::<ByteArrayType>(|_| text(&study.guarantee))?;
    all.column::<ByteArrayType>(|_| text(&study.utilizations))?;
    all.column::<ByteArrayType>(|_| text(&study.periods))?;
    all.column::<ByteArrayType>(|_| text(&study.deadlines))?;
    all.column::<ByteArrayType>(|_| text(&study.platform.name))?;
    all.column::<ByteArrayType>(|row| text(&results.policies[row.policy]))?;
    all.column::<ByteArrayType>(|row| text(&from.tests[row.policy]))?;
    all.column::<DoubleType>(|row| results.shards[row.cap].cap.to_f64())?;
    all.column::<ByteArrayType>(|_| text(&quantity.name()))?;
    all.column::<DoubleType>(|row| results.axis.value(row.point))?;
    all.column::<ByteArrayType>(|_| text(&quantity.unit()))?;
    all.column::<Int32Type>(|row| from.points[row.point].0 as i32)?;
    all.column::<Int64Type>(|row| i64::from(from.sets(row)))?;
    all.column::<Int64Type>(|row| i64::from(from.accepted(row)))?;
    all.column::<DoubleType>(|row| {
        f64::from(from.accepted(row)) / f64::from(from.sets(row).max(1))
    })?;
    all.column::<DoubleType>(|row| from.interval(row).0)?;
    all.column::<DoubleType>(|row| from.interval(row).1)?;
    all.column::<Int64Type>(|row| i64::try_from(from.cost(row)).unwrap_or(i64::MAX))?;
    all.column::<ByteArrayType>(|_| text(&results.charged.accounting))?;
    all.column::<ByteArrayType>(|_| optional(results.charged.profile.clone()))?;
    all.column::<ByteArrayType>(|_| optional(results.charged.statistic.map(|s| s.to_string())))?;
    all.column::<ByteArrayType>(|row| optional(from.loads[row.policy].map(|l| l.to_string())))
}

/// Writes the columns of some rows, in the order of the schema.
struct Columns<'a, 'b, W: Write>(&'a mut SerializedRowGroupWriter<'b, W>, &'a [Row]);

impl<W: Write + Send> Columns<'_, '_, W> {
    fn column<T: DataType>(
        &mut self,
        value: impl Fn(Row) -> T::T,
    ) -> std::result::Result<(), ParquetError> {
        let values: Vec<T::T> = self.1.iter().map(|row| value(*row)).collect();
        let mut column = self
            .0
            .next_column()?
            .ok_or_else(|| ParquetError::General("the schema has too few columns".to_owned()))?;
        column.typed::<T>().write_batch(&values, None, None)?;
        column.close()
    }
}

fn text(value: &impl std::fmt::Display) -> ByteArray {
    ByteArray::from(value.to_string().into_bytes())
}
