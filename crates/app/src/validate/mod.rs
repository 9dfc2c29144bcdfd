//! Holds verdicts against reality: sets that pass by little and sets that do not are run on this
//! machine, and what is seen is compared, task by task, with what analysis and simulation said. So
//! are plans: those that `advise` finds for random sets, or one that a file has.

mod compare;
mod kernel;
mod observe;
mod plan;
mod results;

pub use ::measure::kernel::window::{Did, Interrupted, Part, Window};
pub use compare::figure;
pub use kernel::Kernel;
pub use plan::Wanted;
pub use results::{Asked, Beyond, CellSeen, Source, Sums, TaskSeen, Validated};

use crate::run::{self, Until};
use crate::scheduling::Scheduling;
use crate::simulate;
use crate::{Charged, Choice, On, Tasks, own};
use ::measure::journal::{Head, Journal};
use ::measure::system::Usage;
use analyze::Guarantee;
use compare::compare;
use kernel::{Around, Recorder};
use model::watch::{Silent, Watch};
use model::{
    CpuId, Duration, Error, Platform, Profile, Ratio, Result, Statistic, document, files, taskfile,
};
use observe::Observed;
use plan::{Candidate, Cell, Drawer, Given};
use policy::Spec;
use results::{empty, not_modeled, sums};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The journal within the directory of the results.
pub const JOURNAL: &str = "validation.part";
/// The results, as a document, within that directory.
pub const RESULTS: &str = "validation.json";
/// The picture there.
pub const FIGURE: &str = "validation.svg";
/// The sets there, with the verdicts about them.
const SETS: &str = "sets";
/// So many sets are drawn for a cell until one can be run.
const ATTEMPTS: u32 = 12;

/// What is validated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the results.
    pub out: PathBuf,
    /// What this machine costs; `None`: the profile in use.
    pub profile: Option<Choice<Profile>>,
    /// Which sets are run.
    pub sets_of: Sets,
    /// The policies; empty: those of 002. A plan in a file has its own.
    pub policies: Vec<Spec>,
    /// What hard sets are charged of each overhead. Default: the largest that was seen.
    pub statistic: Statistic,
    /// How many sets; a plan in a file is for one.
    pub sets: u32,
    /// How long each of them runs.
    pub length: Duration,
    /// When a job has executed for its WCET.
    pub until: Until,
    /// Is it recorded what the kernel does meanwhile, for jobs that take longer than their bounds?
    /// Default: yes, where it can be.
    pub kernel_record: bool,
    /// Seed of all sets.
    pub seed: u64,
    /// Go on with an interrupted validation.
    pub resume: bool,
    /// The command line.
    pub command: String,
}

/// Which sets are run.
#[derive(Clone, Debug, Default)]
pub enum Sets {
    /// Random sets that analysis accepts by little, and sets that it refuses.
    #[default]
    Drawn,
    /// Random sets, each under a plan that `advise` finds for it.
    Advised,
    /// These tasks under the plan in this file.
    Given {
        /// The tasks.
        tasks: Tasks,
        /// The file, as `advise -o` writes it.
        plan: PathBuf,
    },
}

impl Sets {
    /// As results say.
    pub fn source(&self) -> Source {
        match self {
            Sets::Drawn => Source::Drawn,
            Sets::Advised => Source::Advised,
            Sets::Given { .. } => Source::Given,
        }
    }
}

impl Default for Options {
    /// 20 sets of 2 s.
    fn default() -> Self {
        Options {
            out: PathBuf::new(),
            profile: None,
            sets_of: Sets::Drawn,
            policies: Vec::new(),
            statistic: Statistic::Untrimmed,
            sets: 20,
            length: Duration::from_secs(2),
            until: Until::Clock,
            kernel_record: true,
            seed: 1,
            resume: false,
            command: String::new(),
        }
    }
}

/// What a journal begins with.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    source: Source,
    policies: Vec<String>,
    statistic: Statistic,
    sets: u32,
    length: Duration,
    by_clock: bool,
    seed: u64,
    profile: String,
}

impl Head for Header {
    fn difference(&self, interrupted: &Self) -> &'static str {
        let (a, b) = (interrupted, self);
        let different = [
            (a.version != b.version, "format of its journal"),
            (
                a.source != b.source,
                "kind of sets (--advised, or a plan of `--plan`)",
            ),
            (a.policies != b.policies, "list of policies (--policy)"),
            (
                a.statistic != b.statistic,
                "costs of hard sets (--statistic)",
            ),
            (a.sets != b.sets, "number of sets (--sets)"),
            (a.length != b.length, "length of runs (--for)"),
            (a.by_clock != b.by_clock, "end of jobs (--jobs-end)"),
            (a.seed != b.seed, "seed (--seed)"),
        ];
        let first = different.iter().find(|(is_different, _)| *is_different);
        first.map_or("profile (--profile)", |(_, what)| what)
    }
}

/// Runs as many sets as are asked for, and compares.
///
/// # Errors
/// No profile of this machine; a policy that it cannot run; no right to run in real time; files
/// that cannot be written; stopped before the first set was run.
pub fn validate(options: &Options, watch: &dyn Watch) -> Result<Validated> {
    let platform = machine::this_machine()?.platform;
    let profile = match &options.profile {
        Some(choice) => choice.profile()?,
        None => own::named()?,
    };
    ::measure::keep::fits(&profile, &platform).map_err(|e| e.at("--profile"))?;
    let policies = match (options.policies.is_empty(), &options.sets_of) {
        (true, Sets::Advised) => plan::hard_policies(&platform)?,
        (true, _) => plan::default_policies(&platform)?,
        (false, _) => options.policies.clone(),
    };
    let mut given = None;
    let cells = match &options.sets_of {
        Sets::Drawn => plan::cells(&policies, options.sets),
        Sets::Advised => plan::planned_cells(&policies, options.sets)?,
        Sets::Given { tasks, plan } => vec![given.insert(Given::read(tasks, plan)?).cell()],
    };
    let head = Header {
        version: 4,
        source: options.sets_of.source(),
        statistic: options.statistic,
        policies: policies.iter().map(ToString::to_string).collect(),
        sets: options.sets,
        length: options.length,
        by_clock: options.until == Until::Clock,
        seed: options.seed,
        profile: format!("{} {}", profile.provenance.time, profile.provenance.command),
    };
    spare_finished(options)?;
    let (journal, seen): (Journal, Vec<CellSeen>) =
        Journal::open(&options.out, JOURNAL, &head, options.resume)?;
    let session = Session {
        options,
        given: given.as_ref(),
        drawer: Drawer {
            platform: &platform,
            profile: &profile,
            statistic: options.statistic,
            seed: options.seed,
        },
        watch,
    };
    files::make_dir(&options.out.join(SETS))?;
    let (journal, seen) = journal.go_through(
        ("set", &cells),
        seen,
        |seen, cell| seen.number == cell.number,
        ("validating", watch),
        |cell| session.one(cell),
    )?;
    let is_done = seen.len() == cells.len();
    let validated = write(
        together(options, &platform, &profile, seen, cells.len()),
        options,
    )?;
    if is_done {
        journal.remove()?;
    }
    watch.finish();
    Ok(validated)
}

/// What a validation into this directory found so far; `None`: nothing was written there.
///
/// # Errors
/// The file is none, or of another version.
pub fn read(dir: &Path) -> Result<Option<Validated>> {
    let path = dir.join(RESULTS);
    if !path.exists() {
        return Ok(None);
    }
    let found = serde_json::from_str(&files::read_text(&path)?);
    found.map(Some).map_err(|e| {
        Error::new(format!("this is no result of `warmset validate`: {e}"))
            .at(path.display())
            .remedy("remove it, and validate again")
    })
}

/// Is it complete?
///
/// # Errors
/// The user stopped it: what was done is kept.
pub fn complete(validated: &Validated, dir: &Path) -> Result<()> {
    match validated.interrupted {
        None => Ok(()),
        Some((done, all)) => Err(Error::new(format!(
            "interrupted after {done} of {all} sets; what was seen is kept"
        ))
        .at(dir.display())
        .remedy("go on with the same command and `--resume`")),
    }
}

fn spare_finished(options: &Options) -> Result<()> {
    let there = |name: &str| options.out.join(name).exists();
    if !options.resume && there(RESULTS) && !there(JOURNAL) {
        return Err(Error::new("a finished validation is in this directory")
            .at(options.out.display())
            .remedy(format!(
                "choose another directory, or remove its {RESULTS} to begin anew"
            )));
    }
    Ok(())
}

struct Session<'a> {
    options: &'a Options,
    given: Option<&'a Given>,
    drawer: Drawer<'a>,
    watch: &'a dyn Watch,
}

impl Session<'_> {
    /// Runs a set of this cell; `None`: the user stopped it.
    fn one(&self, cell: &Cell) -> Result<Option<CellSeen>> {
        if let Some(given) = self.given {
            return match self.run(cell, &given.candidate(self.drawer)?)? {
                Ok(seen) => Ok(seen),
                Err(refused) => Err(Error::new(refused)
                    .at("--plan")
                    .remedy("`warmset run --plan FILE --preflight` says more")),
            };
        }
        let mut why = "no set that was drawn has an edge between yes and no".to_owned();
        for attempt in 0..ATTEMPTS {
            let candidates: Box<dyn Iterator<Item = _>> = match self.options.sets_of {
                Sets::Advised => Box::new(self.drawer.advised(cell, attempt)?),
                _ => Box::new(self.drawer.candidates(cell, attempt)?),
            };
            for candidate in candidates {
                if self.watch.stopped() {
                    return Ok(None);
                }
                match self.run(cell, &candidate?)? {
                    Ok(seen) => return Ok(seen),
                    Err(refused) => why = refused,
                }
            }
        }
        Ok(Some(CellSeen {
            not_run: Some(why),
            ..empty(cell)
        }))
    }

    /// Simulates and runs a set; inside, why it cannot be run. `None`: the user stopped it.
    fn run(
        &self,
        cell: &Cell,
        candidate: &Candidate,
    ) -> Result<std::result::Result<Option<CellSeen>, String>> {
        let name = |kind: &str| {
            let name = format!("{:03}.{kind}", cell.number);
            self.options.out.join(SETS).join(name)
        };
        files::write(&name("toml"), taskfile::to_toml(&candidate.set))?;
        let assignment = match &candidate.placed {
            Some(placed) => {
                files::write(&name("json"), placed)?;
                Some(name("json"))
            }
            None => None,
        };
        let tasks = Tasks::from(candidate.set.clone());
        let scheduling = Scheduling {
            assignment,
            ..Scheduling::of(&candidate.policy.to_string())?
        };
        let real = run::Options {
            scheduling: scheduling.clone(),
            horizon: self.options.length,
            execution: Choice::Value(Ratio::ONE),
            until: self.options.until,
            profile: Some(self.drawer.profile.clone().into()),
            ..run::Options::default()
        };
        let planned = match run::plan(&tasks, &real) {
            Ok(planned) => planned,
            Err(e) if cell.wanted == Wanted::Refused => return Ok(Err(e.cause().to_owned())),
            Err(e) => return Err(e),
        };
        if let Err(e) = planned.preflight.permit() {
            return match e.cause().contains("real-time") {
                true => Err(e),
                false => Ok(Err(e.cause().to_owned())),
            };
        }
        let simulated = self.simulate(&tasks, scheduling, cell)?;
        let mut observed = Observed::of(&candidate.set);
        let processors = self.drawer.platform.usable();
        let cpus: Vec<CpuId> = processors.iter().collect();
        let recorder = match self.options.kernel_record {
            true => Recorder::begin(&cpus, self.options.length),
            false => Recorder::off(),
        };
        let before = Usage::now(&processors);
        let ran = planned.run(&Silent, &mut observed)?;
        let (_, stolen) = Usage::now(&processors).since(&before);
        let record = recorder.end()?;
        if self.watch.stopped() {
            return Ok(Ok(None));
        }
        let around = Around {
            record: &record,
            threads: &ran.threads,
            set: &candidate.set,
            origin: ran.released_at_ns,
            observed: &observed,
        };
        let seen = compare(cell, candidate, &simulated, &ran, &around, stolen);
        Ok(Ok(Some(seen)))
    }

    fn simulate(
        &self,
        tasks: &Tasks,
        scheduling: Scheduling,
        cell: &Cell,
    ) -> Result<simulate::Simulated> {
        let options = simulate::Options {
            scheduling,
            on: On::Platform(self.drawer.platform.clone().into()),
            charged: Charged {
                profile: Some(self.drawer.profile.clone().into()),
                statistic: Some(match cell.guarantee {
                    Guarantee::Hard => self.options.statistic,
                    Guarantee::Soft => Statistic::Average,
                }),
                ..Charged::default()
            },
            horizon: Some(self.options.length),
            ..simulate::Options::default()
        };
        simulate::simulate(tasks, &options, &Silent)
    }
}

fn together(
    options: &Options,
    platform: &Platform,
    profile: &Profile,
    cells: Vec<CellSeen>,
    all: usize,
) -> Validated {
    let mut provenance = crate::provenance(&options.command);
    provenance.time = ::measure::system::now();
    provenance.machine.clone_from(&platform.description);
    provenance.kernel = ::measure::system::kernel();
    provenance.seed = Some(options.seed);
    provenance.warnings.clone_from(&profile.provenance.warnings);
    let interrupted = (cells.len() < all).then_some((cells.len() as u32, all as u32));
    Validated {
        accepted_hard: sums(&cells, Wanted::Accepted, Some(Asked::Hard)),
        accepted_soft: sums(&cells, Wanted::Accepted, Some(Asked::Soft)),
        refused: sums(&cells, Wanted::Refused, None),
        length: options.length,
        source: options.sets_of.source(),
        statistic: options.statistic,
        not_modeled: not_modeled(options, profile, &cells),
        cells,
        provenance,
        interrupted,
        results_path: options.out.join(RESULTS),
        figure: None,
    }
}

fn write(mut validated: Validated, options: &Options) -> Result<Validated> {
    if let Some(figure) = figure(FIGURE, &validated)? {
        let path = options.out.join(FIGURE);
        files::write(&path, figure.to_svg())?;
        validated.figure = Some(path);
    }
    files::write(&validated.results_path, document::pretty(&validated)?)?;
    Ok(validated)
}
