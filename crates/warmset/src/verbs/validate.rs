//! `warmset validate`: do sets keep on this machine what analysis says of them?

use crate::console::{self, Console, Format, look};
use crate::options::{JobsEnd, Printed, Seed, directory, statistics};
use crate::{Answer, command};
use app::validate::{self, Beyond, CellSeen, Did, Kernel, Options, Sets, Validated, Wanted};
use app::{Choice, Tasks};
use clap::Args as ClapArgs;
use model::table::Table;
use model::{Duration, Error, Result, Statistic};
use policy::Spec;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

const HELP: &str = "\
With the costs of this machine random sets are drawn that analysis accepts by a few percent, and sets that it clearly \
refuses, for each policy, hard and soft. Each runs for real, each job for all of its WCET by the clock of its thread. The longest response \
time of each task is compared with the bound of analysis and with the simulator, which has the same releases and costs. \
docs/validating.md says how to read it.

A job is excused where it is later than its bound by no longer than the machine stood still, as the run recorded it, while \
it or those before it were waiting; excused jobs are counted. For each job beyond its bound validation.json has what the \
kernel recorded on its processors from its release until it was done: which threads ran for how long, which interrupts, \
which timers came late. That takes root and tracefs.

With --advised each set runs under a plan that `advise` finds for it, with WCETs nearly as long as that plan bears them. With \
TASKS and --plan the tasks of a file run once under the plan of a file.

Files in DIR: validation.json; validation.svg, predicted against observed; sets/, every set with its assignment or plan, to \
be run again; validation.part while it runs.

Exit status: 0 no accepted set exceeded a bound; 1 one did; 2 it could not be done.

Examples:
  warmset measure cpmd -o out && warmset measure overheads -o out
  warmset validate -o validation --profile out/profile.toml --sets 20
  warmset validate -o validation --minutes 10 --policy p-edf,g-edf
  warmset validate -o plans --profile out/profile.toml --advised --sets 20
  warmset advise tasks.toml --profile out/profile.toml --statistic untrimmed -o plan.json
  warmset validate tasks.toml --plan plan.json --profile out/profile.toml -o validation --for 10s";

/// Options of `warmset validate`.
#[derive(ClapArgs, Debug)]
#[command(after_long_help = HELP, after_help = "Example: warmset validate -o validation --profile out/profile.toml")]
pub struct Args {
    /// With --plan: the task set that it is for, in TOML
    #[arg(requires = "plan")]
    tasks: Option<PathBuf>,
    /// Run the tasks under this plan of `warmset advise -o`, instead of random sets
    #[arg(long, value_name = "FILE", requires = "tasks", conflicts_with_all = ["policy", "sets", "minutes", "advised"])]
    plan: Option<PathBuf>,
    /// Run random sets under plans that `advise` finds for them, hard ones alone
    #[arg(long)]
    advised: bool,
    /// Directory for the results
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: PathBuf,
    /// What this machine costs: a file [default: the profile in use (`warmset profile use`)]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Policies [default: p-edf, g-edf, c-edf where clusters differ from both, p-rm, edf-fm, edf-wm
    /// and nps-f]
    #[arg(long, value_name = "NAME,…")]
    policy: Option<String>,
    /// What hard sets are charged of each overhead; soft ones are charged the average
    #[arg(long, value_name = "NAME", default_value = "untrimmed", value_parser = statistics())]
    statistic: Statistic,
    /// How many sets [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sets: Option<u32>,
    /// As many sets as can be run in so many minutes
    #[arg(long, value_name = "N", conflicts_with = "sets", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: Option<u32>,
    /// How long each set runs
    #[arg(long = "for", value_name = "TIME", default_value = "2s", allow_hyphen_values = true, value_parser = length)]
    length: Duration,
    #[command(flatten)]
    jobs: JobsEnd,
    /// Do not record what the kernel does meanwhile
    #[arg(long)]
    no_kernel_record: bool,
    #[command(flatten)]
    seed: Seed,
    /// Go on with an interrupted validation in DIR; the other options must be the same
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    printed: Printed,
}

/// What a set takes besides its run, in seconds: drawing, calibrating, simulating.
const AROUND: u64 = 1;

fn length(text: &str) -> Result<Duration> {
    let length: Duration = text.parse()?;
    match length >= Duration::from_millis(200) && length <= Duration::from_secs(3600) {
        true => Ok(length),
        false => {
            let cause = format!("runs of {length} show nothing, or take too long");
            Err(Error::new(cause).remedy("give 200ms to 1h"))
        }
    }
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let dir = args.output.clone();
    let of_minutes = |minutes: u32| {
        let each = args.length.nanos() / 1_000_000_000 + AROUND;
        u32::try_from(u64::from(minutes) * 60 / each)
            .unwrap_or(u32::MAX)
            .max(1)
    };
    let defaults = Options::default();
    let sets = args.sets.or(args.minutes.map(of_minutes));
    let options = Options {
        out: args.output,
        profile: args.profile.map(Choice::Named),
        sets_of: match (args.tasks, args.plan, args.advised) {
            (Some(tasks), Some(plan), _) => Sets::Given {
                tasks: Tasks::read(&tasks)?,
                plan,
            },
            (_, _, true) => Sets::Advised,
            _ => Sets::Drawn,
        },
        policies: args
            .policy
            .as_deref()
            .map(Spec::list)
            .transpose()?
            .unwrap_or_default(),
        statistic: args.statistic,
        sets: sets.unwrap_or(defaults.sets),
        length: args.length,
        until: args.jobs.until(defaults.until),
        kernel_record: !args.no_kernel_record,
        seed: args.seed.seed,
        resume: args.resume,
        command: command::whole(),
    };
    let console = Console::new()?;
    let validated = validate::validate(&options, &console)?;
    match args.printed.format() {
        Format::Table => console::show(&as_text(&validated))?,
        Format::Json => console::print_json(&validated)?,
    }
    validate::complete(&validated, &dir)?;
    Ok(match validated.holds() {
        true => Answer::Yes,
        false => Answer::No,
    })
}

fn as_text(validated: &Validated) -> String {
    let mut text = table(&validated.cells).text(look());
    text.push('\n');
    for sentence in validated.sentences() {
        let _ = writeln!(text, "{sentence}");
    }
    let is_accepted = |cell: &&CellSeen| cell.verdict == Wanted::Accepted;
    let accepted = || validated.cells.iter().filter(is_accepted);
    let beyond = accepted().flat_map(|cell| {
        let beyond = cell.beyond.iter().filter(|b| !b.is_excused());
        beyond.map(move |beyond| late(cell, beyond))
    });
    first(&mut text, beyond);
    text.push_str(&kernel(validated));
    let not_run = accepted().filter_map(|cell| {
        let why = cell.not_run.as_ref()?;
        let (number, policy) = (cell.number, &cell.policy);
        Some(format!("set {number:03}, {policy}: not run, {why}"))
    });
    first(&mut text, not_run);
    let figure = validated.figure.iter();
    let files: Vec<String> = std::iter::once(&validated.results_path)
        .chain(figure)
        .map(|path| path.display().to_string())
        .collect();
    let _ = writeln!(text, "Wrote {}.", files.join(", "));
    text
}

/// So many lines of a kind are shown.
const SHOWN: usize = 6;

/// The first of these lines, and how many there are more.
fn first(text: &mut String, mut lines: impl Iterator<Item = String>) {
    for line in lines.by_ref().take(SHOWN) {
        let _ = writeln!(text, "  {line}");
    }
    let more = lines.count();
    if more > 0 {
        let _ = writeln!(text, "  … and {more} more; validation.json has all");
    }
}

fn late(cell: &CellSeen, beyond: &Beyond) -> String {
    let executed = match beyond.unfinished {
        true => "it was not done at the end".to_owned(),
        false => format!(
            "it executed {} of {}",
            time(beyond.executed_ns),
            time(cell.tasks[beyond.index].wcet_ns)
        ),
    };
    let mut line = format!(
        "set {:03}, {}: job {} of {}, released at {}, took {} of at most {}; {executed}; {} stood \
         still",
        cell.number,
        cell.policy,
        beyond.job,
        cell.tasks[beyond.index].task,
        time(beyond.released_ns),
        time(beyond.response_ns),
        time(beyond.bound_ns),
        time(beyond.stood_still_ns),
    );
    if let Some(window) = &beyond.kernel {
        for did in &window.processors {
            let _ = write!(line, "\n    {}", processor(did));
        }
        if !window.whole {
            line += "\n    the kernel's record ends before: its buffer was full";
        }
    }
    if let Some(ns @ 1..) = beyond.unaccounted_ns {
        let _ = write!(
            line,
            "\n    it had a processor for {} more than its clock and interrupts say",
            time(ns)
        );
    }
    line
}

/// So many threads, and so many sources of interrupts, are shown of a processor.
const ENTRIES: usize = 5;

/// What had a processor while a job was late.
fn processor(did: &Did) -> String {
    let times = |times: u64| match times {
        1 => String::new(),
        n => format!(" in {n} pieces"),
    };
    let ran = did.ran.iter();
    let ran = ran.map(|ran| format!("{} {}{}", ran.name, time(ran.total_ns), times(ran.times)));
    let interrupts = did.interrupts.iter();
    let interrupts = interrupts.map(|i| match i.times {
        1 => format!("{} {}", i.name, time(i.total_ns)),
        n => format!(
            "{} {} in {n}, {} at most",
            i.name,
            time(i.total_ns),
            time(i.max_ns)
        ),
    });
    let late = match did.late_timers {
        0 => String::new(),
        n => format!(
            "; {n} timers late, by {} at most: it stood still, or interrupts were off",
            time(did.latest_ns)
        ),
    };
    format!(
        "processor {}: {}; {}{late}",
        did.cpu,
        some(ran),
        some(interrupts)
    )
}

/// The first of these, and how many there are more.
fn some(mut all: impl Iterator<Item = String>) -> String {
    let mut text: Vec<String> = all.by_ref().take(ENTRIES).collect();
    match all.count() {
        0 => {}
        n => text.push(format!("{n} more")),
    }
    match text.is_empty() {
        true => "no interrupts".to_owned(),
        false => text.join(", "),
    }
}

/// What the kernel says of all runs, and what is in no verdict.
fn kernel(validated: &Validated) -> String {
    let kernels = || {
        let ran = validated.cells.iter().filter(|c| c.not_run.is_none());
        ran.map(|cell| &cell.kernel)
    };
    let mut text = String::new();
    let sum = |of: fn(&Kernel) -> u64| kernels().map(of).sum::<u64>();
    let timers = sum(|kernel| kernel.timers);
    if timers > 0 {
        let latest = kernels().map(|kernel| kernel.latest_ns).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "The kernel's record: {} of {timers} timers fired 50 us late or later on a processor that \
             was not idle, by {} at most; {} of its events were lost.",
            sum(|kernel| kernel.late_timers),
            time(latest),
            sum(|kernel| kernel.lost),
        );
    }
    let _ = writeln!(text, "Not modeled: {}.", validated.not_modeled.join("; "));
    text
}

fn time(ns: u64) -> String {
    Duration::from_nanos(ns).rounded()
}

/// One row for each policy, guarantee and verdict.
fn table(cells: &[CellSeen]) -> Table {
    let mut rows = Table::new(3, 0);
    rows.row([
        "policy",
        "asked",
        "verdict",
        "sets",
        "jobs",
        "missed",
        "beyond",
        "excused",
        "worst part of bound",
    ]);
    let mut kinds: BTreeMap<(String, String, String), Vec<&CellSeen>> = BTreeMap::new();
    for cell in cells {
        let asked = format!("{:?}", cell.guarantee).to_lowercase();
        let verdict = format!("{:?}", cell.verdict).to_lowercase();
        let kind = (cell.policy.clone(), asked, verdict);
        kinds.entry(kind).or_default().push(cell);
    }
    for ((policy, asked, verdict), cells) in kinds {
        let ran = || cells.iter().filter(|c| c.not_run.is_none());
        let tasks = || ran().flat_map(|c| &c.tasks);
        let beyond = || ran().flat_map(|c| &c.beyond);
        let part = |t: &app::validate::TaskSeen| Some(t.observed_ns as f64 / t.bound_ns? as f64);
        let worst = tasks()
            .filter_map(part)
            .fold(None, |most: Option<f64>, part| {
                Some(most.map_or(part, |most| most.max(part)))
            });
        let missed = ran()
            .filter(|c| c.tasks.iter().any(|t| t.misses > 0))
            .count();
        rows.row([
            policy,
            asked,
            verdict,
            ran().count().to_string(),
            tasks().map(|t| t.jobs).sum::<u64>().to_string(),
            missed.to_string(),
            beyond().filter(|b| !b.is_excused()).count().to_string(),
            beyond().filter(|b| b.is_excused()).count().to_string(),
            worst.map_or("–".to_owned(), |part| format!("{:.0} %", part * 100.0)),
        ]);
    }
    rows
}
