//! Many task sets as columns: one row a set, its tasks in lists. What `generate` returns is of this
//! form.
//!
//! | column | values |
//! |---|---|
//! | `wcet_ns`, `period_ns` | lists of integers, nanoseconds, one entry a task |
//! | `deadline_ns` | the same; left out: the periods |
//! | `m` | number of processors; left out: one number for all is given |
//! | `id` | anything; handed through |

use crate::arrow::{cannot, stream_in};
use crate::columns::{self, Columns};
use crate::error::raise;
use crate::work::work;
use app::check::batch::{Judge, Options};
use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use model::taskfile::{BatchSet, MAX_PROCESSORS};
use model::watch::Watch;
use model::{Duration, Error, Result, TaskSet, Timing};
use pyo3::prelude::*;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Sets are judged so many at a time; in between the user may stop it.
const CHUNK: usize = 8192;

/// Judges every set by tests. One column a test: whether its guarantee is shown, and no value where
/// the test does not apply; before them `id`, where there is one.
#[pyfunction]
#[pyo3(signature = (data, m=None, tests=None, grid_ns=None, progress=None))]
pub(crate) fn check_batch(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    m: Option<u32>,
    tests: Option<String>,
    grid_ns: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Columns> {
    let grid = grid_ns.map(Duration::from_nanos);
    let judge = Judge::new(&Options { tests, grid }).map_err(raise)?;
    let reader = stream_in(data)?;
    work(py, progress, |watch| {
        app::workers()?;
        let mut out = Vec::new();
        let mut first = 0;
        for_all(reader, |batch| {
            let sets = Sets::of(batch, m)?;
            watch.begin("judging task sets", (first + sets.len()) as u64);
            watch.advance(first as u64);
            let answers = answers(&sets, &judge, first, watch)?;
            first += sets.len();
            out.push(answered(&sets, answers)?);
            Ok(())
        })?;
        let Some(last) = out.last() else {
            return Err(Error::new("there are no task sets").remedy("give at least one row"));
        };
        Ok(Columns::of(last.schema(), out))
    })
}

/// The sets with all columns in their plain form: `id` where there is one, `m`, and lists of 64-bit
/// integers.
#[pyfunction]
#[pyo3(signature = (data, m=None))]
pub(crate) fn set_rows(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    m: Option<u32>,
) -> PyResult<Columns> {
    let reader = stream_in(data)?;
    work(py, None, |_| {
        let mut out = Vec::new();
        for_all(reader, |batch| {
            let sets = Sets::of(batch, m)?;
            let mut rows = Rows::default();
            for row in 0..sets.len() {
                let set = sets.set(row)?;
                rows.push(set.m, set.set.timings());
            }
            let mut all: Vec<(&str, ArrayRef)> = Vec::new();
            all.extend(sets.id.clone().map(|id| ("id", id)));
            all.extend(rows.columns());
            out.push(columns::batch(all)?);
            Ok(())
        })?;
        let Some(last) = out.last() else {
            return Err(Error::new("there are no task sets").remedy("give at least one row"));
        };
        Ok(Columns::of(last.schema(), out))
    })
}

fn for_all(
    reader: Box<dyn RecordBatchReader + Send>,
    mut with: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    for batch in reader {
        let batch = batch.map_err(|e| cannot(&e))?;
        if batch.num_rows() > 0 {
            with(&batch)?;
        }
    }
    Ok(())
}

/// What the tests say of a set, each with its name.
type Answer = Vec<(&'static str, Option<bool>)>;

fn answers(sets: &Sets, judge: &Judge, first: usize, watch: &dyn Watch) -> Result<Vec<Answer>> {
    let mut all = Vec::with_capacity(sets.len());
    for start in (0..sets.len()).step_by(CHUNK) {
        let rows = start..sets.len().min(start + CHUNK);
        let chunk: Result<Vec<Answer>> = rows
            .clone()
            .into_par_iter()
            .with_min_len(16)
            .map(|row| {
                let set = sets.set(row).map_err(|e| at_row(e, first + row))?;
                let verdicts = judge.verdicts(&set);
                Ok(verdicts.map_err(|e| at_row(e, first + row))?.verdicts)
            })
            .collect();
        all.extend(chunk?);
        watch.advance(rows.len() as u64);
        if watch.stopped() {
            return Err(Error::new(format!("stopped after {} task sets", all.len())));
        }
    }
    Ok(all)
}

fn at_row(error: Error, row: usize) -> Error {
    error.at(format!("row {row}"))
}

/// The identifiers of the sets beside a column a test.
fn answered(sets: &Sets, answers: Vec<Answer>) -> Result<RecordBatch> {
    let names: Vec<&'static str> = answers
        .first()
        .map_or_else(Vec::new, |a| a.iter().map(|(name, _)| *name).collect());
    let mut all: Vec<(&str, ArrayRef)> = Vec::new();
    all.extend(sets.id.clone().map(|id| ("id", id)));
    for (at, name) in names.into_iter().enumerate() {
        let verdicts: BooleanArray = answers.iter().map(|a| a[at].1).collect();
        all.push((name, Arc::new(verdicts)));
    }
    columns::batch(all)
}

/// The sets of a batch of rows.
pub(crate) struct Sets {
    id: Option<ArrayRef>,
    m: Processors,
    wcet: Lists,
    period: Lists,
    deadline: Option<Lists>,
    rows: usize,
}

enum Processors {
    All(u32),
    Each(Numbers),
}

impl Sets {
    /// # Errors
    /// A column is missing, or holds no integers; nothing says how many processors there are.
    pub(crate) fn of(batch: &RecordBatch, m: Option<u32>) -> Result<Self> {
        let column = |name: &str| batch.column_by_name(name);
        let lists = |name: &'static str| {
            column(name)
                .map(|array| Lists::of(array).map_err(|e| e.at(format!("column `{name}`"))))
                .transpose()
        };
        let need = |name: &'static str| lists(name)?.ok_or_else(|| missing(name, batch.schema()));
        let m = match (m, column("m")) {
            (Some(m), _) => Processors::All(m),
            (None, Some(array)) => {
                Processors::Each(Numbers::of(array).map_err(|e| e.at("column `m`"))?)
            }
            (None, None) => {
                return Err(Error::new("nothing says how many processors there are")
                    .at("m")
                    .remedy("give `m`, or a column of this name"));
            }
        };
        Ok(Sets {
            id: column("id").cloned(),
            m,
            wcet: need("wcet_ns")?,
            period: need("period_ns")?,
            deadline: lists("deadline_ns")?,
            rows: batch.num_rows(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// The set of a row.
    ///
    /// # Errors
    /// Missing or negative values, lists of different lengths, no processors.
    pub(crate) fn set(&self, row: usize) -> Result<BatchSet> {
        let m = match &self.m {
            Processors::All(m) => u64::from(*m),
            Processors::Each(numbers) => numbers.get(row).map_err(|e| e.at("column `m`"))?,
        };
        if m == 0 || m > u64::from(MAX_PROCESSORS) {
            let cause = format!("{m} processors");
            let remedy = format!("give a number from 1 to {MAX_PROCESSORS}");
            return Err(Error::new(cause).at("m").remedy(remedy));
        }
        let (wcet, period) = (self.wcet.row(row)?, self.period.row(row)?);
        let deadline = self.deadline.as_ref().map(|d| d.row(row)).transpose()?;
        let lengths = [Some(wcet.len()), Some(period.len())];
        if lengths.iter().any(|l| *l != Some(wcet.len()))
            || deadline.as_ref().is_some_and(|d| d.len() != wcet.len())
        {
            return Err(
                Error::new("the lists of a set have different lengths").remedy(
                    "give one entry a task in `wcet_ns`, in `period_ns` and in `deadline_ns`",
                ),
            );
        }
        let mut timings = Vec::with_capacity(wcet.len());
        for task in 0..wcet.len() {
            let time = |lists: &Lists, at: &Range<usize>| {
                let ns = lists.values.get(at.start + task)?;
                Ok(Duration::from_nanos(ns))
            };
            let of =
                |lists, at| time(lists, at).map_err(|e: Error| e.at(format!("task {}", task + 1)));
            let period_of = of(&self.period, &period)?;
            timings.push(Timing {
                wcet: of(&self.wcet, &wcet)?,
                period: period_of,
                deadline: match (&self.deadline, &deadline) {
                    (Some(lists), Some(at)) => of(lists, at)?,
                    _ => period_of,
                },
            });
        }
        Ok(BatchSet {
            id: serde_json::Value::Null,
            // At most MAX_PROCESSORS.
            m: m as u32,
            set: TaskSet::to_judge(timings)?,
            horizon: None,
            assign: None,
        })
    }
}

fn missing(name: &str, schema: SchemaRef) -> Error {
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    Error::new(format!(
        "there is no column `{name}` among {}",
        names.join(", ")
    ))
    .remedy("sets are rows with lists of nanoseconds in `wcet_ns`, `period_ns` and `deadline_ns`")
}

/// A column of lists of integers, of any kind of list.
struct Lists {
    offsets: Offsets,
    nulls: Option<arrow_buffer::NullBuffer>,
    values: Numbers,
}

enum Offsets {
    Short(arrow_buffer::OffsetBuffer<i32>),
    Long(arrow_buffer::OffsetBuffer<i64>),
    Fixed(usize),
}

impl Lists {
    fn of(array: &ArrayRef) -> Result<Self> {
        let (offsets, values) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                (Offsets::Short(list.offsets().clone()), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                (Offsets::Long(list.offsets().clone()), list.values())
            }
            DataType::FixedSizeList(_, length) => {
                let list = array.as_fixed_size_list();
                (Offsets::Fixed((*length).max(0) as usize), list.values())
            }
            other => {
                return Err(Error::new(format!("{other} is no list"))
                    .remedy("give a list of integers of nanoseconds for each set"));
            }
        };
        Ok(Lists {
            offsets,
            nulls: array.nulls().cloned(),
            values: Numbers::of(values)?,
        })
    }

    /// The places of the values of a row.
    fn row(&self, row: usize) -> Result<Range<usize>> {
        if self.nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            return Err(no_value());
        }
        // Offsets are never negative.
        Ok(match &self.offsets {
            Offsets::Short(at) => at[row] as usize..at[row + 1] as usize,
            Offsets::Long(at) => at[row] as usize..at[row + 1] as usize,
            Offsets::Fixed(length) => row * length..(row + 1) * length,
        })
    }
}

/// Integers of any width.
struct Numbers {
    array: ArrayRef,
    kind: Kind,
}

enum Kind {
    I64,
    U64,
    I32,
    U32,
}

impl Numbers {
    fn of(array: &ArrayRef) -> Result<Self> {
        let nanoseconds = DataType::Duration(TimeUnit::Nanosecond);
        let (array, kind) = match array.data_type() {
            DataType::Int64 => (array.clone(), Kind::I64),
            DataType::UInt64 => (array.clone(), Kind::U64),
            DataType::Int32 => (array.clone(), Kind::I32),
            DataType::UInt32 => (array.clone(), Kind::U32),
            kind if *kind == nanoseconds => {
                let array = array.as_primitive::<arrow_array::types::DurationNanosecondType>();
                let array: ArrayRef = Arc::new(array.reinterpret_cast::<Int64Type>());
                (array, Kind::I64)
            }
            other => {
                return Err(Error::new(format!("{other} are no integers"))
                    .remedy("give integers of nanoseconds: a float has no unit"));
            }
        };
        Ok(Numbers { array, kind })
    }

    fn get(&self, at: usize) -> Result<u64> {
        if self.array.is_null(at) {
            return Err(no_value());
        }
        let negative = |v: i64| {
            u64::try_from(v).map_err(|_| {
                Error::new(format!("{v} is negative")).remedy("give numbers of at least zero")
            })
        };
        match self.kind {
            Kind::I64 => negative(self.array.as_primitive::<Int64Type>().value(at)),
            Kind::U64 => Ok(self.array.as_primitive::<UInt64Type>().value(at)),
            Kind::I32 => negative(self.array.as_primitive::<Int32Type>().value(at).into()),
            Kind::U32 => Ok(self.array.as_primitive::<UInt32Type>().value(at).into()),
        }
    }
}

fn no_value() -> Error {
    Error::new("a value is missing").remedy("leave out such rows")
}

/// Sets as they become columns.
#[derive(Default)]
pub(crate) struct Rows {
    m: Vec<u64>,
    wcet: ListBuilder<Int64Builder>,
    period: ListBuilder<Int64Builder>,
    deadline: ListBuilder<Int64Builder>,
}

impl Rows {
    pub(crate) fn push(&mut self, m: u32, timings: &[Timing]) {
        self.m.push(m.into());
        let lists = [
            (&mut self.wcet, (|t| t.wcet) as fn(&Timing) -> Duration),
            (&mut self.period, |t| t.period),
            (&mut self.deadline, |t| t.deadline),
        ];
        for (list, of) in lists {
            for timing in timings {
                let ns = i64::try_from(of(timing).nanos()).unwrap_or(i64::MAX);
                list.values().append_value(ns);
            }
            list.append(true);
        }
    }

    pub(crate) fn columns(mut self) -> [(&'static str, ArrayRef); 4] {
        [
            ("m", columns::integers(self.m)),
            ("wcet_ns", Arc::new(self.wcet.finish())),
            ("period_ns", Arc::new(self.period.finish())),
            ("deadline_ns", Arc::new(self.deadline.finish())),
        ]
    }
}
