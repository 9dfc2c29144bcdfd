//! Raw samples of overheads and their file: one row a sample, in Parquet; docs/measuring-overheads.md
//! has its columns. Nothing is lost without a count: what is not in a row (samples beyond
//! [`KEPT`](super::results::KEPT) of a cost and a run, disturbed ones, whole runs) is counted in the
//! metadata, by run.

use super::probe::Probe;
use super::results::{Origin, Record, Taken, Utilization};
use super::tiles::{Cost, Disturbance};
use crate::columns::{self, Columns, ROW_GROUP, cause, saturate, text};
use model::{CpuId, Error, Result};
use parquet::data_type::{BoolType, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// A run and its samples.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Under which policy, and of which sets.
    pub of: Origin,
    /// Which set of this kind.
    pub set: u32,
    /// Its samples.
    pub record: Record,
}

/// The samples of a measurement.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Raw {
    /// Its runs, in the order in which they were.
    pub runs: Vec<Run>,
    /// Was nothing seen of the kernel? Then samples are the engine's own part.
    pub blind: bool,
    /// How long an event takes that the kernel records, if it is known.
    pub probe: Option<Probe>,
}

impl Raw {
    /// How many samples are in no row, though nothing disturbed them.
    pub fn left_out(&self) -> u64 {
        let costs = self.runs.iter().flat_map(|run| &run.record.costs);
        costs
            .map(|(_, taken)| taken.seen - taken.whole.len() as u64)
            .sum()
    }
}

/// What the metadata says of a run.
#[derive(Serialize, Deserialize)]
struct About {
    run: u32,
    policy: String,
    utilization: Utilization,
    scaled: bool,
    tasks: u32,
    set: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    apart: Option<String>,
    discarded: Vec<(Disturbance, u64)>,
    unseen: u64,
    cut: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tick_period_ns: Option<u64>,
    costs: Vec<AboutCost>,
}

/// What it says of a cost of a run.
#[derive(Serialize, Deserialize)]
struct AboutCost {
    cost: Cost,
    /// How many samples there were.
    seen: u64,
    /// How many of them are rows.
    kept: u64,
    /// The largest of all.
    largest_ns: u32,
}

/// The keys of the metadata that are read again.
const RUNS: &str = "runs";
const BLIND: &str = "blind";
const PROBE: &str = "probe";

const SCHEMA: &str = "message overheads {
    REQUIRED INT32 run;
    REQUIRED BYTE_ARRAY policy (UTF8);
    REQUIRED BYTE_ARRAY utilization (UTF8);
    REQUIRED BOOLEAN scaled;
    REQUIRED INT32 tasks;
    REQUIRED INT32 set;
    REQUIRED BYTE_ARRAY cost (UTF8);
    OPTIONAL INT32 cpu;
    OPTIONAL INT64 begun_ns;
    REQUIRED INT64 whole_ns;
    OPTIONAL INT64 own_ns;
    OPTIONAL INT32 events;
}";

/// As many rows are read: all are kept in memory.
const MOST_ROWS: i64 = 100_000_000;

/// A row.
struct Row<'a> {
    run: &'a Run,
    cost: &'a str,
    cpu: Option<u32>,
    begun: Option<u64>,
    whole: u32,
    own: Option<u32>,
    events: Option<u32>,
}

/// Writes the samples; the file is there complete, or not at all. `about` is kept in it by name.
///
/// # Errors
/// The directory is not writable, or the disk is full.
pub fn write(path: &Path, raw: &Raw, about: &[(String, String)]) -> Result<()> {
    let mut known = vec![
        (RUNS.to_owned(), json(&runs(raw))?),
        (BLIND.to_owned(), json(&raw.blind)?),
        (PROBE.to_owned(), json(&raw.probe)?),
        ("left_out".to_owned(), json(&raw.left_out())?),
    ];
    known.extend_from_slice(about);
    let names = names(raw)?;
    let mut runs = raw.runs.iter();
    let groups = std::iter::from_fn(|| {
        let mut rows: Vec<Row<'_>> = Vec::new();
        while rows.len() < ROW_GROUP
            && let Some(run) = runs.next()
        {
            for (cost, taken) in &run.record.costs {
                rows.extend(rows_of(run, &names[cost], taken));
            }
        }
        (!rows.is_empty()).then_some(rows)
    });
    columns::write_groups(path, groups, &known)
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::new(format!("cannot write JSON: {e}")))
}

/// Costs as they are written.
fn names(raw: &Raw) -> Result<BTreeMap<Cost, String>> {
    let costs = raw.runs.iter().flat_map(|run| &run.record.costs);
    costs
        .map(|(cost, _)| Ok((*cost, json(cost)?.trim_matches('"').to_owned())))
        .collect()
}

fn runs(raw: &Raw) -> Vec<About> {
    let about = |run: &Run| About {
        run: run.record.number,
        policy: run.of.policy.clone(),
        utilization: run.of.utilization,
        scaled: run.of.scaled,
        tasks: run.of.tasks,
        set: run.set,
        apart: run.record.apart.clone(),
        discarded: run.record.discards.clone(),
        unseen: run.record.unseen,
        cut: run.record.cut,
        tick_period_ns: run.record.tick_period,
        costs: run
            .record
            .costs
            .iter()
            .map(|(cost, taken)| AboutCost {
                cost: *cost,
                seen: taken.seen,
                kept: taken.whole.len() as u64,
                largest_ns: taken.largest,
            })
            .collect(),
    };
    raw.runs.iter().map(about).collect()
}

fn rows_of<'a>(run: &'a Run, cost: &'a str, taken: &'a Taken) -> impl Iterator<Item = Row<'a>> {
    let mut begun = taken.begun.iter().scan(0, |at, after| {
        *at += after;
        Some(*at)
    });
    taken
        .whole
        .iter()
        .enumerate()
        .map(move |(place, whole)| Row {
            run,
            cost,
            cpu: taken.cpus.get(place).copied(),
            begun: begun.next(),
            whole: *whole,
            own: taken.own.get(place).copied(),
            events: taken.events.get(place).copied(),
        })
}

impl columns::Record for Row<'_> {
    const SCHEMA: &'static str = SCHEMA;

    fn write(all: &mut Columns<'_, '_, '_, Self>) -> Result<(), ParquetError> {
        all.column::<Int32Type>(|r| r.run.record.number as i32)?;
        all.column::<ByteArrayType>(|r| text(&r.run.of.policy))?;
        all.column::<ByteArrayType>(|r| text(r.run.of.utilization.name()))?;
        all.column::<BoolType>(|r| r.run.of.scaled)?;
        all.column::<Int32Type>(|r| r.run.of.tasks as i32)?;
        all.column::<Int32Type>(|r| r.run.set as i32)?;
        all.column::<ByteArrayType>(|r| text(r.cost))?;
        all.optional::<Int32Type>(|r| r.cpu.map(|cpu| cpu as i32))?;
        all.optional::<Int64Type>(|r| r.begun.map(saturate))?;
        all.column::<Int64Type>(|r| i64::from(r.whole))?;
        all.optional::<Int64Type>(|r| r.own.map(i64::from))?;
        all.optional::<Int32Type>(|r| r.events.map(|events| events as i32))
    }
}

/// Reads the samples back.
///
/// # Errors
/// Not there, not a Parquet file, not of overheads, or values that cannot be.
pub fn read(path: &Path) -> Result<Raw> {
    let wrong = |why: &str| {
        Error::new(format!(
            "these are no samples of `warmset measure overheads`: {why}"
        ))
        .at(path.display())
        .remedy("give the overheads.parquet that it wrote")
    };
    let failed = |e: ParquetError| wrong(&cause(&e));
    let file = File::open(path).map_err(|e| Error::io(path, "read the samples", &e))?;
    let reader = SerializedFileReader::new(file).map_err(failed)?;
    let expected = parse_message_type(SCHEMA).map_err(failed)?;
    let meta = reader.metadata().file_metadata();
    if *meta.schema() != expected {
        return Err(wrong("other columns"));
    }
    if !(0..=MOST_ROWS).contains(&meta.num_rows()) {
        return Err(wrong(&format!(
            "it says that it has {} rows",
            meta.num_rows()
        )));
    }
    let told = |key: &str| {
        let all = meta.key_value_metadata().into_iter().flatten();
        let found = all.filter(|pair| pair.key == key);
        let value = found.filter_map(|pair| pair.value.as_deref()).next();
        value.ok_or_else(|| wrong(&format!("`{key}` is not among its metadata")))
    };
    let about: Vec<About> =
        serde_json::from_str(told(RUNS)?).map_err(|e| wrong(&format!("`{RUNS}`: {e}")))?;
    let blind =
        serde_json::from_str(told(BLIND)?).map_err(|e| wrong(&format!("`{BLIND}`: {e}")))?;
    let probe =
        serde_json::from_str(told(PROBE)?).map_err(|e| wrong(&format!("`{PROBE}`: {e}")))?;
    let mut runs = about.iter().map(of_about).collect::<Vec<Run>>();
    let places: BTreeMap<u32, usize> = (0..)
        .zip(&runs)
        .map(|(p, r)| (r.record.number, p))
        .collect();
    let mut last = BTreeMap::new();
    for (number, row) in (1_i64..).zip(reader.get_row_iter(None).map_err(failed)?) {
        if number > MOST_ROWS {
            return Err(wrong("too many rows"));
        }
        let fields = row.map_err(failed)?.into_columns();
        let added = add(&mut runs, &places, &mut last, &fields);
        added.ok_or_else(|| wrong(&format!("row {number} cannot be")))?;
    }
    for (run, about) in runs.iter().zip(&about) {
        for ((cost, taken), about) in run.record.costs.iter().zip(&about.costs) {
            if taken.whole.len() as u64 != about.kept {
                return Err(wrong(&format!(
                    "run {} has {} samples of {cost:?}, and should have {}",
                    run.record.number,
                    taken.whole.len(),
                    about.kept
                )));
            }
        }
    }
    Ok(Raw { runs, blind, probe })
}

fn of_about(about: &About) -> Run {
    let taken = |cost: &AboutCost| {
        let taken = Taken {
            seen: cost.seen,
            largest: cost.largest_ns,
            ..Taken::default()
        };
        (cost.cost, taken)
    };
    Run {
        of: Origin {
            policy: about.policy.clone(),
            utilization: about.utilization,
            scaled: about.scaled,
            tasks: about.tasks,
        },
        set: about.set,
        record: Record {
            number: about.run,
            apart: about.apart.clone(),
            costs: about.costs.iter().map(taken).collect(),
            discards: about.discarded.clone(),
            unseen: about.unseen,
            cut: about.cut,
            tick_period: about.tick_period_ns,
        },
    }
}

/// Adds a row to its run; `None`: it cannot be. `last`: when the sample before it began, by run and
/// cost.
fn add(
    runs: &mut [Run],
    places: &BTreeMap<u32, usize>,
    last: &mut BTreeMap<(u32, Cost), u64>,
    fields: &[(String, Field)],
) -> Option<()> {
    let values: Vec<&Field> = fields.iter().map(|(_, field)| field).collect();
    let [run, _, _, _, _, _, cost, cpu, begun, whole, own, events] = values[..] else {
        return None;
    };
    let long = |field: &Field| match field {
        Field::Null => Some(None),
        Field::Long(value) => u64::try_from(*value).ok().map(Some),
        Field::Int(value) => u64::try_from(*value).ok().map(Some),
        _ => None,
    };
    let short = |field: &Field| match long(field)? {
        Some(value) => u32::try_from(value).ok().map(Some),
        None => Some(None),
    };
    let number = short(run)??;
    let cost: Cost = match cost {
        Field::Str(name) => serde_json::from_value(name.as_str().into()).ok()?,
        _ => return None,
    };
    let run = runs.get_mut(*places.get(&number)?)?;
    let (_, taken) = run.record.costs.iter_mut().find(|(c, _)| *c == cost)?;
    taken.whole.push(short(whole)??);
    taken.own.extend(short(own)?);
    taken.events.extend(short(events)?);
    taken.cpus.extend(short(cpu)?.map(|cpu| CpuId(cpu).0));
    if let Some(at) = long(begun)? {
        let before = last.insert((number, cost), at).unwrap_or(0);
        taken.begun.push(at.checked_sub(before)?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::results::curves;
    use super::*;
    use model::OverheadKind;
    use proptest::prelude::*;

    /// Runs of one policy with these samples: (whole, own, after the one before).
    fn raw(samples: &[(u32, u32, u32)]) -> Raw {
        let taken = |has_own: bool| Taken {
            whole: samples.iter().map(|s| s.0).collect(),
            own: samples.iter().filter(|_| has_own).map(|s| s.1).collect(),
            cpus: samples
                .iter()
                .filter(|_| has_own)
                .map(|s| s.1 % 4)
                .collect(),
            begun: samples
                .iter()
                .filter(|_| has_own)
                .map(|s| s.2.into())
                .collect(),
            events: samples
                .iter()
                .filter(|_| has_own)
                .map(|s| s.1 % 9)
                .collect(),
            seen: samples.len() as u64 + 5,
            largest: u32::MAX,
        };
        let run = |number: u32| Run {
            of: Origin {
                policy: "c-edf:l2".to_owned(),
                utilization: Utilization::Light,
                scaled: number % 2 == 1,
                tasks: 10 + number,
            },
            set: number / 2,
            record: Record {
                number,
                costs: vec![
                    (Cost::Look, taken(false)),
                    (Cost::Overhead(OverheadKind::Release), taken(true)),
                ],
                discards: vec![(Disturbance::Standstill, 3)],
                unseen: 2,
                tick_period: Some(4_000_000),
                ..Record::default()
            },
        };
        let mut runs: Vec<Run> = (0..4).map(run).collect();
        runs[3].record = Record {
            number: 3,
            apart: Some("7 events were lost".to_owned()),
            ..Record::default()
        };
        Raw {
            runs,
            blind: false,
            probe: Probe::of(&[100.0, 101.5, 99.0, 98.0, 103.0, 100.0]),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn what_is_written_reads_back(
            samples in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 0..300)
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("overheads.parquet");
            let raw = raw(&samples);
            write(&path, &raw, &[("seed".to_owned(), "7".to_owned())]).unwrap();
            prop_assert_eq!(&read(&path).unwrap(), &raw);
            prop_assert_eq!(raw.left_out(), 30);
        }
    }

    #[test]
    fn curves_of_the_file_are_those_of_the_measurement() {
        let samples: Vec<(u32, u32, u32)> =
            (0..400).map(|n| (900 + n % 37, 500 + n % 11, n)).collect();
        let raw = raw(&samples);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("overheads.parquet");
        write(&path, &raw, &[]).unwrap();
        let of = |raw: &Raw| {
            let runs: Vec<_> = raw.runs.iter().map(|r| (r.of.clone(), &r.record)).collect();
            curves(&runs, raw.blind, raw.probe.as_ref())
        };
        let found = of(&raw);
        assert!(found.iter().any(|f| !f.curve.points.is_empty()));
        assert_eq!(of(&read(&path).unwrap()), found);
    }

    #[test]
    fn other_files_are_refused_in_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("overheads.parquet");
        std::fs::write(&path, b"no parquet at all").unwrap();
        let told = read(&path).unwrap_err().to_string();
        assert!(
            told.contains("no samples of") && !told.contains('\n'),
            "{told}"
        );
        crate::samples::write(&path, &[], &[]).unwrap();
        let told = read(&path).unwrap_err().to_string();
        assert!(told.contains("other columns"), "{told}");
        write(&path, &raw(&[(1, 2, 3); 50]), &[]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(read(&path).is_err());
    }
}
