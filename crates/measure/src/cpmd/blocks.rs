//! What is kept of finished blocks of samples, in the journal of a measurement.

use crate::journal::{Head, Journal};
use crate::line::Transfer;
use crate::plan::{Block, Plan};
use crate::samples::{Discard, Sample};
use model::{CpuId, Delay, Duration, Platform, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The name of the journal within the directory of the results.
pub const NAME: &str = "measurement.part";

/// A finished block.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Its number in the plan.
    pub number: u32,
    /// Line transfer times before.
    pub before: Vec<Transfer>,
    /// Line transfer times after.
    pub after: Vec<Transfer>,
    /// Wall-clock time that it took, with everything around it.
    pub spent: Duration,
    /// Part of the processors' time that other programs had, in [0, 1].
    pub foreign: f64,
    /// Part of the processors' time that the hypervisor took, in [0, 1].
    pub steal: f64,
    /// Its samples.
    pub samples: Vec<Row>,
}

/// A sample without what its block says already.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Row(
    /// From.
    pub CpuId,
    /// To.
    pub CpuId,
    /// Asked, preempted, cold, warm, post: nanoseconds.
    pub [u64; 5],
    /// Why it does not count.
    pub Option<Discard>,
);

impl BlockRecord {
    /// The samples in full, as the file of samples has them.
    pub fn expand(&self, block: &Block, platform: &Platform) -> impl Iterator<Item = Sample> + '_ {
        let mean = |transfers: &[Transfer]| {
            let sum: u64 = transfers.iter().map(|t| t.time.nanos()).sum();
            Duration::from_nanos(sum / transfers.len().max(1) as u64)
        };
        let (line_before, line_after) = (mean(&self.before), mean(&self.after));
        let (block, platform) = (*block, platform.clone());
        self.samples
            .iter()
            .map(move |Row(from, to, times, discarded)| {
                let [asked, preempted, cold, warm, post] = times.map(Duration::from_nanos);
                Sample {
                    block: block.number,
                    load: block.load,
                    wss: block.wss,
                    write_ratio: block.write_ratio.as_f64(),
                    from: *from,
                    to: *to,
                    resumption: platform.resumption(*from, *to),
                    asked,
                    preempted,
                    cold,
                    warm,
                    post,
                    delay: Delay::from_nanos(
                        i64::try_from(i128::from(post.nanos()) - i128::from(warm.nanos()))
                            .unwrap_or(i64::MAX),
                    ),
                    discarded: *discarded,
                    line_before,
                    line_after,
                }
            })
    }
}

/// What a journal begins with: blocks fit together only if all of this is the same.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    plan: Plan,
    platform: String,
    kernel: String,
}

/// Starts the journal of a plan, or goes on with one if the plan says so; with the blocks that it
/// already has.
///
/// # Errors
/// As [`Journal::open`]; a journal of another plan, machine or kernel.
pub fn open(plan: &Plan, platform: &Platform, kernel: &str) -> Result<(Journal, Vec<BlockRecord>)> {
    let header = Header {
        version: 1,
        // Where the results go and how they were asked for may differ.
        plan: Plan {
            out: PathBuf::new(),
            command: String::new(),
            about: Default::default(),
            resume: false,
            ..plan.clone()
        },
        platform: format!("{}: {}", platform.name, platform.description),
        kernel: kernel.to_owned(),
    };
    Journal::open(&plan.out, NAME, &header, plan.resume)
}

impl Head for Header {
    fn difference(&self, interrupted: &Self) -> &'static str {
        let (a, b) = (&interrupted.plan, &self.plan);
        [
            (
                interrupted.version != self.version,
                "version of this program",
            ),
            (interrupted.platform != self.platform, "machine"),
            (interrupted.kernel != self.kernel, "kernel"),
            (a.seed != b.seed, "seed"),
            (a.wss != b.wss, "list of working sets (`--wss`, `--quick`)"),
            (a.write_ratios != b.write_ratios, "list of write ratios"),
            (a.loads != b.loads, "load"),
            (a.cpus != b.cpus, "list of processors"),
            (
                a.prefetchers != b.prefetchers,
                "state of the prefetchers (`--prefetchers`)",
            ),
            (a.max_preemption != b.max_preemption, "longest preemption"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
        .unwrap_or("number of samples")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Options;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::Path;

    fn platform() -> Platform {
        Platform::builtin("xeon-l7455").unwrap()
    }

    fn plan(dir: &Path, resume: bool, seed: u64) -> Plan {
        let options = Options {
            out: dir.to_owned(),
            samples: Some(10),
            resume,
            seed,
            ..Options::default()
        };
        Plan::of(&options, &platform()).unwrap()
    }

    fn record(number: u32) -> BlockRecord {
        let transfer = Transfer {
            a: CpuId(0),
            b: CpuId(1),
            time: Duration::from_nanos(70),
        };
        BlockRecord {
            number,
            before: vec![transfer],
            after: vec![transfer, transfer],
            spent: Duration::from_millis(12),
            foreign: 0.25,
            steal: 0.0,
            samples: vec![
                Row(CpuId(0), CpuId(0), [1000, 2000, 30, 20, 25], None),
                Row(
                    CpuId(0),
                    CpuId(3),
                    [1000, 2000, 30, 20, 15],
                    Some(Discard::Gap),
                ),
            ],
        }
    }

    /// Somebody else may have planted it, and what it leads to would be locked and cut.
    #[test]
    fn a_link_is_no_journal() {
        let dir = tempfile::tempdir().unwrap();
        let (elsewhere, out) = (dir.path().join("elsewhere"), dir.path().join("out"));
        let (journal, _) = open(&plan(&elsewhere, false, 1), &platform(), "6.18").unwrap();
        drop(journal);
        std::fs::create_dir(&out).unwrap();
        std::os::unix::fs::symlink(elsewhere.join(NAME), out.join(NAME)).unwrap();
        for resume in [true, false] {
            let e = open(&plan(&out, resume, 1), &platform(), "6.18")
                .unwrap_err()
                .to_string();
            assert!(e.contains("cannot read the journal"), "{e}");
        }
        std::fs::remove_file(elsewhere.join(NAME)).unwrap();
        assert!(open(&plan(&out, false, 1), &platform(), "6.18").is_err());
        assert!(!elsewhere.join(NAME).exists());
    }

    #[test]
    fn a_journal_goes_on_where_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, before) = open(&plan(dir.path(), false, 1), &platform(), "6.18").unwrap();
        assert!(before.is_empty());
        journal.add(&record(0)).unwrap();
        journal.add(&record(1)).unwrap();
        drop(journal);
        // Killed while writing the third.
        let path = dir.path().join(NAME);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"number\":2,\"bef").unwrap();
        let (mut journal, before) = open(&plan(dir.path(), true, 1), &platform(), "6.18").unwrap();
        assert_eq!(before, [record(0), record(1)]);
        journal.add(&record(2)).unwrap();
        drop(journal);
        let (journal, before) = open(&plan(dir.path(), true, 1), &platform(), "6.18").unwrap();
        assert_eq!(before.len(), 3);
        journal.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open_as = |resume, seed, kernel: &str| {
            open(&plan(dir.path(), resume, seed), &platform(), kernel).map(|_| ())
        };
        let refused = |result: Result<()>| result.unwrap_err().to_string();
        assert!(refused(open_as(true, 1, "6.18")).contains("no interrupted measurement"));
        open_as(false, 1, "6.18").unwrap();
        assert!(
            refused(open_as(false, 1, "6.18"))
                .contains("an interrupted measurement is in this directory")
        );
        assert!(refused(open_as(true, 2, "6.18")).contains("another seed"));
        assert!(refused(open_as(true, 1, "6.19")).contains("another kernel"));
        open_as(true, 1, "6.18").unwrap();
        let (held, _) = open(&plan(dir.path(), true, 1), &platform(), "6.18").unwrap();
        assert!(refused(open_as(true, 1, "6.18")).contains("another measurement writes"));
        drop(held);
        std::fs::write(dir.path().join(NAME), "not json\n").unwrap();
        let e = refused(open_as(true, 1, "6.18"));
        assert!(e.contains("line 1") && e.contains("no journal"), "{e}");
        std::fs::write(dir.path().join(NAME), "").unwrap();
        assert!(refused(open_as(true, 1, "6.18")).contains("is empty"));
    }

    #[test]
    fn rows_expand_to_samples() {
        let dir = tempfile::tempdir().unwrap();
        let block = plan(dir.path(), false, 1).blocks()[0];
        let samples: Vec<Sample> = record(0).expand(&block, &platform()).collect();
        assert_eq!(samples[0].delay.nanos(), 5);
        assert_eq!(samples[1].delay.nanos(), -5);
        assert_eq!(samples[1].discarded, Some(Discard::Gap));
        assert_eq!(
            samples[1].resumption,
            platform().resumption(CpuId(0), CpuId(3))
        );
        assert_eq!(samples[0].line_before.nanos(), 70);
        assert_eq!(samples[0].wss, block.wss);
    }
}
