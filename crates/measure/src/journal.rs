//! The journal of a measurement: one line for every finished block, so that an interrupted one can
//! go on.
//!
//! JSON lines in `measurement.part` beside the results. The first line is the plan with the
//! machine; a journal of another plan is refused. A line that was cut off by a crash is dropped,
//! its block is measured again.

use crate::line::Transfer;
use crate::plan::{Block, Plan};
use crate::samples::{Discard, Sample};
use model::{CpuId, Delay, Duration, Error, Platform, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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

/// What the first line says: blocks fit together only if all of this is the same.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    plan: Plan,
    platform: String,
    kernel: String,
}

/// A journal that is open for more blocks.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Up to where the file is whole.
    good: u64,
}

impl Journal {
    /// Starts a journal, or goes on with one if the plan says so; with the blocks that it already
    /// has.
    ///
    /// # Errors
    /// The directory is not writable; there is an interrupted measurement and the plan does not
    /// resume; there is none and it does; it is of another plan, machine or kernel; another process
    /// measures there.
    pub fn open(
        plan: &Plan,
        platform: &Platform,
        kernel: &str,
    ) -> Result<(Self, Vec<BlockRecord>)> {
        let path = plan.out.join(NAME);
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
        model::files::make_dir(&plan.out)?;
        match (path.symlink_metadata().is_ok(), plan.resume) {
            (false, true) => Err(
                Error::new("there is no interrupted measurement to go on with")
                    .at(plan.out.display())
                    .remedy("leave out `--resume` to begin one"),
            ),
            (true, false) if lock(&open(&path)?).is_ok() => Err(Error::new(
                "an interrupted measurement is in this directory",
            )
            .at(path.display())
            .remedy("go on with it with `--resume`, or remove the file to begin anew")),
            (true, _) => Journal::resume(path, &header),
            (false, false) => Journal::begin(path, &header).map(|journal| (journal, Vec::new())),
        }
    }

    fn begin(path: PathBuf, header: &Header) -> Result<Self> {
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|e| Error::io(&path, "write the journal of the measurement", &e))?;
        let mut journal = Journal {
            path,
            file,
            good: 0,
        };
        journal.lock()?;
        if let Err(e) = journal.append(header) {
            // An empty journal is of no use to anyone; if it cannot be removed, the error to tell
            // is the first.
            let _ = std::fs::remove_file(&journal.path);
            return Err(e);
        }
        Ok(journal)
    }

    fn resume(path: PathBuf, header: &Header) -> Result<(Self, Vec<BlockRecord>)> {
        let mut journal = Journal {
            file: open(&path)?,
            path,
            good: 0,
        };
        journal.lock()?;
        let io = |e: &std::io::Error| Error::io(&journal.path, "read the journal", e);
        let mut reader = BufReader::new(&journal.file);
        let mut line = String::new();
        let (mut good, mut number, mut blocks) = (0u64, 0, Vec::new());
        loop {
            line.clear();
            let length = reader
                .by_ref()
                .take(model::files::MAX_FILE)
                .read_line(&mut line)
                .map_err(|e| io(&e))?;
            // A line without its end was cut off.
            if length == 0 || !line.ends_with('\n') {
                break;
            }
            number += 1;
            let bad = |e: serde_json::Error| {
                Error::new(format!("this is no journal of a measurement: {e}"))
                    .at(format!("line {number}"))
                    .at(journal.path.display())
                    .remedy("remove the file to begin anew")
            };
            if number == 1 {
                let theirs: Header = serde_json::from_str(&line).map_err(bad)?;
                if theirs != *header {
                    return Err(Error::new(format!(
                        "the interrupted measurement has another {}",
                        difference(&theirs, header)
                    ))
                    .at(journal.path.display())
                    .remedy(
                        "give the same options to go on with it, or remove the file to begin anew",
                    ));
                }
            } else {
                blocks.push(serde_json::from_str(&line).map_err(bad)?);
            }
            good += length as u64;
        }
        if number == 0 {
            return Err(Error::new("the journal of the measurement is empty")
                .at(journal.path.display())
                .remedy("remove the file to begin anew"));
        }
        journal.good = good;
        journal.cut()?;
        Ok((journal, blocks))
    }

    fn lock(&self) -> Result<()> {
        lock(&self.file).map_err(|_| {
            Error::new("another measurement writes to this directory")
                .at(self.path.display())
                .remedy("wait for it, or choose another directory")
        })
    }

    /// Drops what is behind the last whole line.
    fn cut(&mut self) -> Result<()> {
        self.file
            .set_len(self.good)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.good)))
            .map(|_| ())
            .map_err(|e| Error::io(&self.path, "write the journal of the measurement", &e))
    }

    fn append(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(value)
            .map_err(|e| Error::new(format!("the journal cannot be written: {e}")))?;
        line.push(b'\n');
        if let Err(e) = self.file.write_all(&line) {
            // What was whole stays whole.
            self.cut()?;
            return Err(Error::io(
                &self.path,
                "write the journal of the measurement",
                &e,
            ));
        }
        self.good += line.len() as u64;
        Ok(())
    }

    /// Adds a finished block.
    ///
    /// # Errors
    /// The disk is full or failed; the blocks before stay, and the measurement can be resumed.
    pub fn add(&mut self, block: &BlockRecord) -> Result<()> {
        self.append(block).map_err(|e| {
            e.remedy("free space, then go on with `--resume`: what was measured is kept")
        })
    }

    /// Removes it: the results are complete.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path)
            .map_err(|e| Error::io(&self.path, "remove the journal", &e))
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        // A link is not ours: a journal is begun as a new file.
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .map_err(|e| Error::io(path, "read the journal", &e))
}

/// Takes the file for this process alone, until it is closed.
fn lock(file: &File) -> std::io::Result<()> {
    file.try_lock().map_err(std::io::Error::from)
}

/// What differs between two headers, for people.
fn difference(theirs: &Header, ours: &Header) -> &'static str {
    let (a, b) = (&theirs.plan, &ours.plan);
    [
        (theirs.version != ours.version, "version of this program"),
        (theirs.platform != ours.platform, "machine"),
        (theirs.kernel != ours.kernel, "kernel"),
        (a.seed != b.seed, "seed"),
        (a.wss != b.wss, "list of working sets (`--wss`, `--quick`)"),
        (a.write_ratios != b.write_ratios, "list of write ratios"),
        (a.loads != b.loads, "load"),
        (a.cpus != b.cpus, "list of processors"),
        (a.max_preemption != b.max_preemption, "longest preemption"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
    .unwrap_or("number of samples")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Options;

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
        let (journal, _) = Journal::open(&plan(&elsewhere, false, 1), &platform(), "6.18").unwrap();
        drop(journal);
        std::fs::create_dir(&out).unwrap();
        std::os::unix::fs::symlink(elsewhere.join(NAME), out.join(NAME)).unwrap();
        for resume in [true, false] {
            let e = Journal::open(&plan(&out, resume, 1), &platform(), "6.18")
                .unwrap_err()
                .to_string();
            assert!(e.contains("cannot read the journal"), "{e}");
        }
        std::fs::remove_file(elsewhere.join(NAME)).unwrap();
        assert!(Journal::open(&plan(&out, false, 1), &platform(), "6.18").is_err());
        assert!(!elsewhere.join(NAME).exists());
    }

    #[test]
    fn a_journal_goes_on_where_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, before) =
            Journal::open(&plan(dir.path(), false, 1), &platform(), "6.18").unwrap();
        assert!(before.is_empty());
        journal.add(&record(0)).unwrap();
        journal.add(&record(1)).unwrap();
        drop(journal);
        // Killed while writing the third.
        let path = dir.path().join(NAME);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"number\":2,\"bef").unwrap();
        let (mut journal, before) =
            Journal::open(&plan(dir.path(), true, 1), &platform(), "6.18").unwrap();
        assert_eq!(before, [record(0), record(1)]);
        journal.add(&record(2)).unwrap();
        drop(journal);
        let (journal, before) =
            Journal::open(&plan(dir.path(), true, 1), &platform(), "6.18").unwrap();
        assert_eq!(before.len(), 3);
        journal.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = |resume, seed, kernel: &str| {
            Journal::open(&plan(dir.path(), resume, seed), &platform(), kernel).map(|_| ())
        };
        let refused = |result: Result<()>| result.unwrap_err().to_string();
        assert!(refused(open(true, 1, "6.18")).contains("no interrupted measurement"));
        open(false, 1, "6.18").unwrap();
        assert!(
            refused(open(false, 1, "6.18"))
                .contains("an interrupted measurement is in this directory")
        );
        assert!(refused(open(true, 2, "6.18")).contains("another seed"));
        assert!(refused(open(true, 1, "6.19")).contains("another kernel"));
        open(true, 1, "6.18").unwrap();
        let (held, _) = Journal::open(&plan(dir.path(), true, 1), &platform(), "6.18").unwrap();
        assert!(refused(open(true, 1, "6.18")).contains("another measurement writes"));
        drop(held);
        std::fs::write(dir.path().join(NAME), "not json\n").unwrap();
        let e = refused(open(true, 1, "6.18"));
        assert!(e.contains("line 1") && e.contains("no journal"), "{e}");
        std::fs::write(dir.path().join(NAME), "").unwrap();
        assert!(refused(open(true, 1, "6.18")).contains("is empty"));
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
