//! Raw samples and their file: one row a sample, in Parquet, the discarded ones too with their
//! cause.
//!
//! What a sample is: 000 §3, Fig. 1. Times are integer nanoseconds; sizes are bytes.

use crate::columns::{self, Columns, cause, saturate, text};
use model::{Bytes, CpuId, Delay, Duration, Error, Load, Result, Resumption};
use parquet::data_type::{ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;

/// Why a sample does not count. In the order in which the causes are looked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discard {
    /// The thread ran on another processor than the one it was put on.
    Processor,
    /// Something took the processor from the measuring thread.
    Switched,
    /// The thread came back more than 5 ms late: throttled, or the virtual machine stood still.
    Late,
    /// A gap of more than 5 ms within a walk: throttled, or the virtual machine stood still.
    Stalled,
    /// An interrupt took a part of a walk that matters.
    Interrupted,
    /// A block of lines took longer than memory can explain: the hypervisor or firmware took the
    /// processor.
    Gap,
    /// The virtual machine moved while the block of samples was taken: the line transfer time
    /// changed.
    Moved,
    /// The virtual machine was placed otherwise than for most blocks of samples.
    Apart,
}

impl Discard {
    /// Every cause.
    pub const ALL: [Discard; 8] = [
        Discard::Processor,
        Discard::Switched,
        Discard::Late,
        Discard::Stalled,
        Discard::Interrupted,
        Discard::Gap,
        Discard::Moved,
        Discard::Apart,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Discard::Processor => "processor",
            Discard::Switched => "switched",
            Discard::Late => "late",
            Discard::Stalled => "stalled",
            Discard::Interrupted => "interrupted",
            Discard::Gap => "gap",
            Discard::Moved => "moved",
            Discard::Apart => "apart",
        }
    }

    /// The cause as the end of a sentence, "n samples were discarded because …".
    pub fn because(self) -> &'static str {
        match self {
            Discard::Processor => "the thread ran on another processor than it was put on",
            Discard::Switched => "another thread took the processor during a walk",
            Discard::Late => "the thread came back more than 5 ms late",
            Discard::Stalled => "a walk stood still for more than 5 ms",
            Discard::Interrupted => "an interrupt took more than a hundredth of a walk",
            Discard::Gap => "a part of a walk took longer than memory can explain",
            Discard::Moved => "the virtual machine moved while they were taken",
            Discard::Apart => "the virtual machine was placed otherwise than for most samples",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Discard {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Discard::ALL
            .into_iter()
            .find(|d| d.name() == text)
            .ok_or_else(|| {
                Error::new(format!("`{text}` is no cause to discard a sample"))
                    .remedy("the file was written by another version: measure again")
            })
    }
}

/// One preemption or migration of the measuring thread.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the block of samples that it was taken in.
    pub block: u32,
    /// What else ran.
    pub load: Load,
    /// Working set size.
    pub wss: Bytes,
    /// Part of the words that are written.
    pub write_ratio: f64,
    /// The processor that the thread left.
    pub from: CpuId,
    /// The processor that it resumed on.
    pub to: CpuId,
    /// How it resumed.
    pub resumption: Resumption,
    /// The preemption length that was drawn.
    pub asked: Duration,
    /// The preemption length as it was: t4 − t3.
    pub preempted: Duration,
    /// First walk, t1 − t0: cache-cold.
    pub cold: Duration,
    /// Second walk, t2 − t1: cache-warm.
    pub warm: Duration,
    /// Walk after resuming, t5 − t4.
    pub post: Duration,
    /// (t5 − t4) − (t2 − t1); negative where the warm walk was the slower one.
    pub delay: Delay,
    /// Why it does not count; `None`: it does.
    pub discarded: Option<Discard>,
    /// Cache line transfer time between the processors, before the block; zero where there is only
    /// one processor.
    pub line_before: Duration,
    /// The same after the block.
    pub line_after: Duration,
}

const SCHEMA: &str = "message cpmd_samples {
    REQUIRED INT32 block;
    REQUIRED BYTE_ARRAY load (UTF8);
    REQUIRED INT64 wss_bytes;
    REQUIRED DOUBLE write_ratio;
    REQUIRED INT32 from_cpu;
    REQUIRED INT32 to_cpu;
    REQUIRED BYTE_ARRAY resumption (UTF8);
    REQUIRED INT64 asked_ns;
    REQUIRED INT64 preempted_ns;
    REQUIRED INT64 cold_ns;
    REQUIRED INT64 warm_ns;
    REQUIRED INT64 post_ns;
    REQUIRED INT64 delay_ns;
    REQUIRED BYTE_ARRAY discarded (UTF8);
    REQUIRED INT64 line_before_ns;
    REQUIRED INT64 line_after_ns;
}";

/// Writes the samples aside and renames: the file is there complete, or not at all.
///
/// `about` is kept in the file as key-value metadata (command, seed, kernel, …).
///
/// # Errors
/// The directory is not writable, or the disk is full.
pub fn write(path: &Path, samples: &[Sample], about: &[(String, String)]) -> Result<()> {
    columns::write(path, samples, about)
}

impl columns::Record for Sample {
    const SCHEMA: &'static str = SCHEMA;

    fn write(all: &mut Columns<'_, '_, '_, Self>) -> Result<(), ParquetError> {
        all.column::<Int32Type>(|s| s.block as i32)?;
        all.column::<ByteArrayType>(|s| text(&s.load))?;
        all.column::<Int64Type>(|s| saturate(s.wss.get()))?;
        all.column::<DoubleType>(|s| s.write_ratio)?;
        all.column::<Int32Type>(|s| s.from.0 as i32)?;
        all.column::<Int32Type>(|s| s.to.0 as i32)?;
        all.column::<ByteArrayType>(|s| text(&s.resumption))?;
        all.column::<Int64Type>(|s| saturate(s.asked.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.preempted.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.cold.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.warm.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.post.nanos()))?;
        all.column::<Int64Type>(|s| s.delay.nanos())?;
        all.column::<ByteArrayType>(|s| s.discarded.map_or_else(|| text(&""), |d| text(&d)))?;
        all.column::<Int64Type>(|s| saturate(s.line_before.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.line_after.nanos()))
    }
}

/// Reads the samples back, in the order in which they were taken.
///
/// # Errors
/// Not there, not a Parquet file, other columns, or values that cannot be.
pub fn read(path: &Path) -> Result<Vec<Sample>> {
    let failed = |e: ParquetError| {
        Error::new(format!(
            "these are no samples of `warmset measure cpmd`: {}",
            cause(&e)
        ))
        .at(path.display())
        .remedy("give the samples.parquet that it wrote")
    };
    let file = File::open(path).map_err(|e| Error::io(path, "read the samples", &e))?;
    let reader = SerializedFileReader::new(file).map_err(failed)?;
    let expected = parse_message_type(SCHEMA).map_err(failed)?;
    let names = |fields: &[parquet::schema::types::TypePtr]| -> Vec<(String, String)> {
        fields
            .iter()
            .map(|f| {
                let physical = if f.is_primitive() {
                    f.get_physical_type().to_string()
                } else {
                    "group".to_owned()
                };
                (f.name().to_owned(), physical)
            })
            .collect()
    };
    let found = reader.metadata().file_metadata().schema();
    if !found.is_group() || names(found.get_fields()) != names(expected.get_fields()) {
        return Err(failed(ParquetError::General("other columns".to_owned())));
    }
    let count = reader.metadata().file_metadata().num_rows();
    check_count(count).map_err(|e| e.at(path.display()))?;
    let rows = reader.get_row_iter(None).map_err(failed)?;
    rows.enumerate()
        .map(|(number, row)| {
            // The count in the file may be wrong: rows that repeat take next to no room in it.
            check_count(number as i64 + 1).map_err(|e| e.at(path.display()))?;
            let row = row.map_err(failed)?;
            sample_of(&row)
                .map_err(failed)?
                .map_err(|e| e.at(format!("row {}", number + 1)).at(path.display()))
        })
        .collect()
}

/// As many rows are read: all are kept in memory. A measurement of a day has a hundredth of it.
const MOST_ROWS: i64 = 20_000_000;

fn check_count(rows: i64) -> Result<()> {
    if (0..=MOST_ROWS).contains(&rows) {
        return Ok(());
    }
    let cause = format!("a file of {rows} samples is not read");
    Err(Error::new(cause).remedy(format!("measure fewer at once: at most {MOST_ROWS}")))
}

/// The sample of a row. The outer error is of the format, the inner one of a value.
fn sample_of(row: &Row) -> Result<Result<Sample>, ParquetError> {
    let (load, resumption, discarded) =
        (row.get_string(1)?, row.get_string(6)?, row.get_string(13)?);
    let unsigned = |column: usize| -> Result<u64, ParquetError> {
        u64::try_from(row.get_long(column)?)
            .map_err(|_| ParquetError::General("a negative time".to_owned()))
    };
    let duration = |column: usize| unsigned(column).map(Duration::from_nanos);
    let number = |column: usize| -> Result<u32, ParquetError> {
        u32::try_from(row.get_int(column)?)
            .map_err(|_| ParquetError::General("a negative number".to_owned()))
    };
    let load: Load = match load.parse() {
        Ok(load) => load,
        Err(e) => return Ok(Err(e)),
    };
    let resumption = match resumption.parse() {
        Ok(resumption) => resumption,
        Err(e) => return Ok(Err(e)),
    };
    let discarded = match discarded.as_str() {
        "" => None,
        cause => match cause.parse() {
            Ok(cause) => Some(cause),
            Err(e) => return Ok(Err(e)),
        },
    };
    Ok(Ok(Sample {
        block: number(0)?,
        load,
        wss: Bytes::new(unsigned(2)?),
        write_ratio: row.get_double(3)?,
        from: CpuId(number(4)?),
        to: CpuId(number(5)?),
        resumption,
        asked: duration(7)?,
        preempted: duration(8)?,
        cold: duration(9)?,
        warm: duration(10)?,
        post: duration(11)?,
        delay: Delay::from_nanos(row.get_long(12)?),
        discarded,
        line_before: duration(14)?,
        line_after: duration(15)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_sample() -> impl Strategy<Value = Sample> {
        let time = 0u64..1 << 40;
        (
            (0u32..9999, any::<bool>(), 1u64..1 << 40, 0.0f64..=1.0),
            (0u32..512, 0u32..512, 0u8..4),
            (time.clone(), time.clone(), time.clone(), time.clone(), time),
            (
                any::<i32>(),
                0usize..=Discard::ALL.len(),
                0u64..1000,
                0u64..1000,
            ),
        )
            .prop_map(|(a, b, c, d)| Sample {
                block: a.0,
                load: if a.1 { Load::Idle } else { Load::Load },
                wss: Bytes::new(a.2),
                write_ratio: a.3,
                from: CpuId(b.0),
                to: CpuId(b.1),
                resumption: match b.2 {
                    0 => Resumption::Preemption,
                    1 => Resumption::Memory,
                    level => Resumption::Migration(level),
                },
                asked: Duration::from_nanos(c.0),
                preempted: Duration::from_nanos(c.1),
                cold: Duration::from_nanos(c.2),
                warm: Duration::from_nanos(c.3),
                post: Duration::from_nanos(c.4),
                delay: Delay::from_nanos(d.0.into()),
                discarded: Discard::ALL.get(d.1).copied(),
                line_before: Duration::from_nanos(d.2),
                line_after: Duration::from_nanos(d.3),
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_written_reads_back(samples in prop::collection::vec(any_sample(), 0..50)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("samples.parquet");
            write(&path, &samples, &[("seed".to_owned(), "7".to_owned())]).unwrap();
            prop_assert_eq!(read(&path).unwrap(), samples);
        }
    }

    #[test]
    fn other_files_are_refused_in_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.parquet");
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("check the path")
        );
        std::fs::write(&path, b"no parquet at all").unwrap();
        let e = read(&path).unwrap_err().to_string();
        assert!(e.contains("these are no samples"), "{e}");
        assert!(!e.contains('\n'));
        // Cut off in the middle.
        let sample = {
            use proptest::strategy::ValueTree;
            let mut runner = proptest::test_runner::TestRunner::deterministic();
            any_sample().new_tree(&mut runner).unwrap().current()
        };
        write(&path, &vec![sample; 100], &[]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn every_cause_has_a_name_that_reads_back() {
        for cause in Discard::ALL {
            assert_eq!(cause.name().parse::<Discard>().unwrap(), cause);
            assert!(!cause.because().ends_with('.'));
        }
        assert!("weather".parse::<Discard>().is_err());
    }

    /// Rows that repeat take next to no room in the file, and a hundred bytes each in memory.
    #[test]
    fn more_samples_than_anyone_has_are_refused() {
        assert!(check_count(0).is_ok() && check_count(MOST_ROWS).is_ok());
        for rows in [MOST_ROWS + 1, i64::MAX, -1] {
            let e = check_count(rows).unwrap_err().to_string();
            assert!(e.ends_with("at most 20000000"), "{e}");
        }
    }
}
