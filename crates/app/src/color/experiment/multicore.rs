//! The experiment of 004 §IV on this machine, group by group, which goes on where it was
//! interrupted.

use super::bench::LiveBench;
use super::{Shown, give, multicore_show as show, origin, value};
use crate::Choice;
use crate::color::find::keep_pages;
use crate::scheduling::assignment_for;
use crate::simulate::part_of;
use ::experiment::multicore::sets::{self, Drawn, Scheduler};
use ::experiment::multicore::{
    BEST_EFFORT, Bench, Group, SIZES, Scenario, Setup, Sizes, group, judge,
};
use analyze::partition::Fit;
use execute::preflight::{self, Intent, Level};
use machine::{Machine, Tree};
use model::watch::Watch;
use model::{Bytes, Duration, Enforcement, Error, Provenance, Ratio, Result, files};
use partition::plan::SUPERS_BESIDES;
use policy::Spec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use trace::Stage;

/// How the experiment is made. By default as in the paper, once.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many task sets for each scheduler. Default: 10.
    pub sets: u32,
    /// Jobs of each task in a run. Default: 200.
    pub jobs: u64,
    /// How often a set is run in each scenario. Default: 1.
    pub repetitions: u32,
    /// Divide periods and WCETs by this. Default: 1.
    pub hasten: u64,
    /// The part of its WCET that a job is calibrated to execute. Default: `0.9`.
    pub execution: Choice<Ratio>,
    /// Seed of all random choices. Default: 1.
    pub seed: u64,
    /// Keep what is measured in this directory, and write its files there.
    pub output: Option<PathBuf>,
    /// The level of the cache; `None`: the first one that has colors.
    pub level: Option<u8>,
    /// The command that makes it again, for provenance.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            sets: 10,
            jobs: 200,
            repetitions: 1,
            hasten: 1,
            execution: Choice::Named("0.9".to_owned()),
            seed: 1,
            output: None,
            level: None,
            command: String::new(),
        }
    }
}

impl Options {
    /// One set for each scheduler, ten jobs of each task, times a tenth of the paper's.
    #[must_use]
    pub fn quick(self) -> Self {
        Options {
            sets: 1,
            jobs: 10,
            hasten: 10,
            ..self
        }
    }
}

/// What a directory of results was begun with: all of it has to agree to go on there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// What is run.
    pub setup: Setup,
    /// The cache whose colors they are.
    pub cache: String,
    /// Its size.
    pub size: Bytes,
    /// How many colors it has.
    pub colors: u16,
    /// How many of the processors share it.
    pub sharers: u32,
    /// Super colors besides those of tasks; 1 where nothing is said, as it once was.
    #[serde(default = "one")]
    pub supers_besides: usize,
}

/// Results of before memory without color had a super color of its own.
const fn one() -> usize {
    1
}

/// Makes the experiment. `None`: it was stopped before anything was measured, or there was nothing
/// to measure.
///
/// # Errors
/// The directory cannot be written, or holds another experiment; the sets cannot be run here;
/// colors cannot be found for sure; the user stopped it before anything was measured.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Option<Shown>> {
    let part = match &options.execution {
        Choice::Named(text) => part_of(text).map_err(|e| e.at("--execution"))?,
        Choice::Value(part) => *part,
    };
    let machine = machine::this_machine()?;
    if let Some(dir) = &options.output {
        files::make_dir(dir)?;
    }
    let setup = Setup {
        processors: machine.platform.usable().len() as u32,
        seed: options.seed,
        jobs: options.jobs,
        repetitions: options.repetitions as usize,
        hasten: options.hasten,
        part: 1000 * part.num() / part.den(),
    };
    let mut drawn = Vec::new();
    for scheduler in Scheduler::ALL {
        drawn.push(sets::draw(
            scheduler,
            setup.processors,
            setup.seed,
            options.sets as usize,
            options.hasten,
        )?);
    }
    let early = permit(&machine, &drawn, part, watch)?;
    let settings = keep_pages(watch);
    let mut bench = LiveBench::new(&machine.platform, options.level, watch)?;
    let head = Head {
        setup,
        cache: bench.palette.cache.name(),
        size: bench.palette.cache.size,
        colors: bench.palette.cache.colors,
        sharers: bench.cache().1,
        supers_besides: SUPERS_BESIDES,
    };
    let mut kept = Kept::open(options.output.as_deref(), head)?;
    let mut provenance = Provenance {
        seed: Some(options.seed),
        ..origin(&machine, &options.command)
    };
    let stopped = measure(&mut kept, &drawn, &mut bench, early, watch);
    let checked = bench.check()?;
    watch.finish();
    drop(settings);
    if !checked.broken.is_empty() {
        provenance.warnings.push(format!(
            "{} of {} colors do not drive out their own any more: what was measured last is not in them",
            checked.broken.len(),
            checked.asked
        ));
    }
    if kept.groups.is_empty() {
        return stopped.map(|()| None);
    }
    // Also of an experiment that was interrupted: what there is.
    let shown = shown(&kept, provenance, stopped.err())?;
    give(&shown, options.output.as_deref(), watch)?;
    Ok(Some(shown))
}

/// What the groups that are kept show.
fn shown(kept: &Kept, provenance: Provenance, stopped: Option<Error>) -> Result<Shown> {
    let rows = judge::rows(&kept.groups);
    Ok(Shown {
        name: "multicore",
        provenance,
        figures: value(&Figures {
            head: &kept.head,
            rows: &rows,
        })?,
        text: show::text(&kept.head, &rows),
        figure: show::picture(&kept.head, &rows)?,
        csv: show::csv(&kept.groups),
        holds: None,
        stopped,
    })
}

#[derive(Serialize)]
struct Figures<'a> {
    #[serde(flatten)]
    head: &'a Head,
    rows: &'a [judge::Row],
}

/// Looks whether the sets can be run; gives how early dispatchers are to be up.
fn permit(
    machine: &Machine,
    drawn: &[Vec<Drawn>],
    part: Ratio,
    watch: &dyn Watch,
) -> Result<Duration> {
    let platform = &machine.platform;
    let cpus = platform.in_cache_order();
    let mut early = Duration::MAX;
    let mut told = BTreeSet::new();
    for set in drawn.iter().flatten() {
        let tasks = set.with_working_sets(SIZES[0], BEST_EFFORT)?;
        let spec: Spec = set.scheduler.policy().parse()?;
        let stage = Stage {
            policy: spec.to_string(),
            assignment: assignment_for(&spec, &tasks, platform, Fit::Best)?.map_err(Error::new)?,
            quantum: None,
        };
        let intent = Intent {
            machine,
            tree: &Tree::new("/".as_ref()),
            cpus: &cpus,
            set: &tasks,
            stages: &[stage],
            part,
            enforcement: Enforcement::Off,
            quantum: Duration::from_millis(1),
            awake: false,
            boundary: None,
            takes: &[],
        };
        let findings = preflight::look(&intent);
        preflight::permit(&findings)?;
        for finding in findings.iter().filter(|f| f.level == Level::Warn) {
            if told.insert(finding.name) {
                watch.note(&format!(
                    "{}: {}; {}",
                    finding.name, finding.seen, finding.remedy
                ));
            }
        }
        early = early.min(preflight::early(&intent));
    }
    Ok(early)
}

/// Measures what is not there yet; keeps each group.
fn measure(
    kept: &mut Kept,
    drawn: &[Vec<Drawn>],
    bench: &mut LiveBench<'_>,
    early: Duration,
    watch: &dyn Watch,
) -> Result<()> {
    let most = drawn.iter().map(Vec::len).max().unwrap_or(0);
    // Set by set, both schedulers: what is there when it is interrupted can be compared.
    let mut open = Vec::new();
    for place in 0..most {
        for set in drawn.iter().filter_map(|sets| sets.get(place)) {
            for sizes in Sizes::ALL {
                for wss in SIZES {
                    if !kept.has((set.scheduler, set.number, sizes, wss)) {
                        open.push((set, sizes, wss));
                    }
                }
            }
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    if !kept.groups.is_empty() {
        watch.note(&format!(
            "{} of {} groups are there already: going on",
            kept.groups.len(),
            kept.groups.len() + open.len()
        ));
    }
    bench.stock(&open)?;
    let setup = kept.head.setup.clone();
    let runs = setup.repetitions * Scenario::ALL.len();
    watch.begin("task sets in colors", (open.len() * runs) as u64);
    for (set, sizes, wss) in open {
        let stopped = || {
            Error::new("stopped before all sets were done").remedy(match kept.file {
                Some(_) => "the same command goes on where it was stopped",
                None => "with -o DIR, the same command would go on where it was stopped",
            })
        };
        if watch.stopped() {
            return Err(stopped());
        }
        match group(&setup, set, sizes, wss, bench, early, watch) {
            Ok(done) => kept.keep(done)?,
            Err(_) if watch.stopped() => return Err(stopped()),
            Err(e) => {
                return Err(e.at(format!(
                    "set {} of {}, {wss}",
                    set.number,
                    set.scheduler.name()
                )));
            }
        }
    }
    Ok(())
}

/// Groups that are done, and the file that has them.
struct Kept {
    file: Option<PathBuf>,
    head: Head,
    groups: Vec<Group>,
}

impl Kept {
    fn open(dir: Option<&Path>, head: Head) -> Result<Self> {
        let file = dir.map(|dir| dir.join("multicore.jsonl"));
        let mut groups = Vec::new();
        if let Some(path) = file.as_ref().filter(|path| path.exists()) {
            let text = files::read_text(path)?;
            let wrong = |line: usize, e: serde_json::Error| {
                Error::new(format!("this is no result of the experiment: {e}"))
                    .at(format!("{}:{line}", path.display()))
                    .remedy("give another directory")
            };
            let mut lines = text.lines().enumerate();
            let (_, first) = lines.next().unwrap_or((0, ""));
            let there: Head = serde_json::from_str(first).map_err(|e| wrong(1, e))?;
            if there != head {
                return Err(Error::new(
                    "what is there was measured with other options or another cache",
                )
                .at(path.display())
                .remedy("give the same options (--sets may be more), or another directory"));
            }
            for (number, line) in lines {
                groups.push(serde_json::from_str(line).map_err(|e| wrong(number + 1, e))?);
            }
        }
        Ok(Kept { file, head, groups })
    }

    fn has(&self, key: (Scheduler, u64, Sizes, Bytes)) -> bool {
        self.groups.iter().any(|g| g.key() == key)
    }

    fn keep(&mut self, group: Group) -> Result<()> {
        self.groups.push(group);
        let Some(path) = &self.file else {
            return Ok(());
        };
        let line = |value: serde_json::Result<String>| {
            value.map_err(|e| Error::new(format!("cannot write a result: {e}")).at(path.display()))
        };
        let mut text = line(serde_json::to_string(&self.head))? + "\n";
        for group in &self.groups {
            text += &(line(serde_json::to_string(group))? + "\n");
        }
        // Whole, and put in its place at once: an interruption leaves what was there before.
        files::write(path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::experiment::multicore::{Run, Task, cell};

    pub fn head() -> Head {
        Head {
            setup: Setup {
                processors: 2,
                seed: 1,
                jobs: 10,
                repetitions: 1,
                hasten: 1,
                part: 900,
            },
            cache: "L2".to_owned(),
            size: Bytes::from_mib(1),
            colors: 32,
            sharers: 1,
            supers_besides: SUPERS_BESIDES,
        }
    }

    fn group_of(scheduler: Scheduler, wss: Bytes) -> Group {
        let run = |scenario, us: u64, missed| Run {
            scenario,
            repetition: 0,
            seen: cell::Seen {
                tasks: vec![cell::Task {
                    jobs: 10,
                    worst: Duration::from_micros(us),
                    sum: Duration::from_micros(10 * us),
                    missed,
                }],
                total: Duration::from_millis(2000),
                finished: true,
            },
        };
        Group {
            scheduler,
            set: 4,
            sizes: Sizes::Paper,
            wss,
            tasks: vec![Task {
                period: Duration::from_millis(200),
                wcet: Duration::from_millis(50),
                wss,
                best_effort: false,
                accesses: 1000,
            }],
            runs: vec![
                run(Scenario::S1, 1000, 0),
                run(Scenario::S2, 1000, 0),
                run(Scenario::S3, 1500, 1),
                run(Scenario::Again, 1010, 0),
            ],
        }
    }

    #[test]
    fn what_is_kept_is_there_again_and_what_does_not_belong_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = Kept::open(Some(dir.path()), head()).unwrap();
        let one = group_of(Scheduler::GEdf, SIZES[0]);
        kept.keep(one.clone()).unwrap();
        kept.keep(group_of(Scheduler::PEdf, SIZES[0])).unwrap();
        let again = Kept::open(Some(dir.path()), head()).unwrap();
        assert_eq!(again.groups, kept.groups);
        assert!(again.has(one.key()));
        assert!(!again.has((Scheduler::GEdf, 4, Sizes::Scaled, SIZES[0])));

        let mut other = head();
        other.setup.jobs = 200;
        let e = Kept::open(Some(dir.path()), other)
            .err()
            .unwrap()
            .to_string();
        assert!(
            e.contains("other options") && e.contains("multicore.jsonl"),
            "{e}"
        );
        files::write(&dir.path().join("multicore.jsonl"), "{}\n").unwrap();
        let e = Kept::open(Some(dir.path()), head())
            .err()
            .unwrap()
            .to_string();
        assert!(
            e.contains("multicore.jsonl:1") && e.contains("no result"),
            "{e}"
        );
        assert!(Kept::open(None, head()).unwrap().groups.is_empty());
        // What was measured with a super color less does not go on.
        let text = serde_json::to_string(&head()).unwrap();
        let before = text.replace(",\"supers_besides\":2", "");
        assert_ne!(before, text);
        files::write(&dir.path().join("multicore.jsonl"), before + "\n").unwrap();
        let e = Kept::open(Some(dir.path()), head()).err().unwrap();
        assert!(e.to_string().contains("other options"), "{e}");
    }

    #[test]
    fn its_document_is_as_its_schema_says() {
        let mut kept = Kept::open(None, head()).unwrap();
        kept.keep(group_of(Scheduler::GEdf, SIZES[2])).unwrap();
        kept.keep(group_of(Scheduler::PEdf, SIZES[2])).unwrap();
        let shown = shown(&kept, Provenance::default(), None).unwrap();
        let document = super::super::tests::held(&shown);
        let row = &document["seen"]["rows"][0];
        assert_eq!(
            (&row["policy"], &row["wss"]),
            (&"g-edf".into(), &"128KiB".into())
        );
        assert_eq!(row["total_ns"][0], 2_000_000_000_u64);
        assert!(document.get("holds").is_none());
    }

    #[test]
    fn tables_and_samples_have_the_papers_figures_beside_ours() {
        let groups = [
            group_of(Scheduler::GEdf, SIZES[2]),
            group_of(Scheduler::PEdf, SIZES[2]),
        ];
        let rows = judge::rows(&groups);
        let text = show::text(&head(), &rows);
        let line = text.lines().find(|l| l.starts_with("G-EDF")).unwrap();
        for part in ["128KiB", "1.500", "1.010", "100.0", "18, 94"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(
            text.lines()
                .any(|l| l.starts_with("P-EDF") && l.contains("0, 75"))
        );
        let svg = show::picture(&head(), &rows).unwrap().unwrap().to_svg();
        assert!(svg.contains("P-EDF, S3") && svg.contains("Fig. 11"));
        let csv = show::csv(&groups);
        let columns = csv.lines().next().unwrap().split(',').count();
        assert_eq!(csv.lines().count(), 9);
        assert!(
            csv.lines().all(|l| l.split(',').count() == columns),
            "{csv}"
        );
        assert!(csv.contains(
            "g-edf,4,paper,128,S3,0,1,0,128,200000,50000,1000,10,1500.000,1500.000,1,2.000,1"
        ));
    }
}
