//! Raw samples of the schedule-sensitive method on disk: one row a job that was preempted as in
//! Fig. 1 of 000, in Parquet, those that do not count too with their cause.
//!
//! Columns as those of the synthetic method, and method, policy, number of tasks and set. Times are
//! integer nanoseconds, sizes bytes; `told_ns` is the length that the engine told, `away_ns` what
//! the job's own clock says.

use crate::columns::{self, Columns, saturate, text};
use crate::samples::Sample;
use model::Result;
use parquet::data_type::{ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use std::path::Path;

/// A sample, and in which schedule it was taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Scheduled {
    /// The policy, as written.
    pub policy: String,
    /// How many tasks the set has.
    pub tasks: u32,
    /// Which set of this size.
    pub set: u32,
    /// The sample; its block is the run.
    pub sample: Sample,
}

/// The name of the method in the file.
pub const METHOD: &str = "schedule-sensitive";

const SCHEMA: &str = "message cpmd_scheduled {
    REQUIRED BYTE_ARRAY method (UTF8);
    REQUIRED BYTE_ARRAY policy (UTF8);
    REQUIRED INT32 tasks;
    REQUIRED INT32 set;
    REQUIRED INT32 run;
    REQUIRED BYTE_ARRAY load (UTF8);
    REQUIRED INT64 wss_bytes;
    REQUIRED DOUBLE write_ratio;
    REQUIRED INT32 from_cpu;
    REQUIRED INT32 to_cpu;
    REQUIRED BYTE_ARRAY resumption (UTF8);
    REQUIRED INT64 told_ns;
    REQUIRED INT64 away_ns;
    REQUIRED INT64 cold_ns;
    REQUIRED INT64 warm_ns;
    REQUIRED INT64 post_ns;
    REQUIRED INT64 delay_ns;
    REQUIRED BYTE_ARRAY discarded (UTF8);
}";

/// Writes the samples; the file is there complete, or not at all. `about` is kept in it by name.
///
/// # Errors
/// The directory is not writable, or the disk is full.
pub fn write(path: &Path, samples: &[Scheduled], about: &[(String, String)]) -> Result<()> {
    columns::write(path, samples, about)
}

impl columns::Record for Scheduled {
    const SCHEMA: &'static str = SCHEMA;

    fn write(all: &mut Columns<'_, '_, '_, Self>) -> Result<(), ParquetError> {
        all.column::<ByteArrayType>(|_| text(&METHOD))?;
        all.column::<ByteArrayType>(|s| text(&s.policy))?;
        all.column::<Int32Type>(|s| s.tasks as i32)?;
        all.column::<Int32Type>(|s| s.set as i32)?;
        all.column::<Int32Type>(|s| s.sample.block as i32)?;
        all.column::<ByteArrayType>(|s| text(&s.sample.load))?;
        all.column::<Int64Type>(|s| saturate(s.sample.wss.get()))?;
        all.column::<DoubleType>(|s| s.sample.write_ratio)?;
        all.column::<Int32Type>(|s| s.sample.from.0 as i32)?;
        all.column::<Int32Type>(|s| s.sample.to.0 as i32)?;
        all.column::<ByteArrayType>(|s| text(&s.sample.resumption))?;
        all.column::<Int64Type>(|s| saturate(s.sample.asked.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.sample.preempted.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.sample.cold.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.sample.warm.nanos()))?;
        all.column::<Int64Type>(|s| saturate(s.sample.post.nanos()))?;
        all.column::<Int64Type>(|s| s.sample.delay.nanos())?;
        all.column::<ByteArrayType>(|s| text(&s.sample.discarded.map_or("", |d| d.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::sample;
    use model::{Load, Resumption};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn every_row_says_method_policy_and_number_of_tasks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scheduled.parquet");
        let of = |delay| Scheduled {
            policy: "g-edf".to_owned(),
            tasks: 12,
            set: 3,
            sample: sample(Resumption::Memory, Load::Load, delay),
        };
        write(&path, &[of(7), of(9)], &[]).unwrap();
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = file
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), METHOD);
        assert_eq!(rows[0].get_string(1).unwrap(), "g-edf");
        assert_eq!(rows[1].get_int(2).unwrap(), 12);
        assert_eq!(rows[1].get_long(16).unwrap(), 9);
    }
}
