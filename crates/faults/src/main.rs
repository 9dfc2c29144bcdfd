//! Runs the command under faults, and tells what was left over.

use clap::{Args, Parser, Subcommand};
use faults::call;
use faults::fault::{Call, Fault};
use faults::outsider;
use faults::plan::{self, Plan, Trial};
use faults::record::Record;
use faults::scenario::Scenario;
use faults::trial::{Harness, Report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Faults done to runs of Warmset: signals, failing system calls, limits, full disks.
///
/// Needs root: namespaces, real-time priorities. Exit status 1: something was left over, hung,
/// panicked or broke its word. Ctrl-C keeps what was tried; the same command goes on from there.
#[derive(Parser, Debug)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Trials drawn by seed and number
    Random(Random),
    /// The n-th call of a kind fails, for n = 1, 2, 3 … until a run makes fewer
    Sweep(Sweep),
    /// Every signal to every process of a run: at its birth, and in the midst of the run
    Signals(Signals),
    /// These trials, such as `run:g-edf:programs: signal 9 engine 12500us`
    One(One),
    /// Print the trials that `random` would carry out
    Show(Show),
    /// Print the table of what was tried
    Table(Common),
}

#[derive(Args, Debug)]
struct Common {
    /// The command to be tried [default: `warmset` beside this program]
    #[arg(long, value_name = "FILE")]
    warmset: Option<PathBuf>,
    /// Where results are kept
    #[arg(long, value_name = "DIR", default_value = "target/faults")]
    keep: PathBuf,
    /// Begin no trial after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

#[derive(Args, Debug)]
struct Numbers {
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first number
    #[arg(long, default_value_t = 0)]
    number: u64,
    /// How many
    #[arg(long, default_value_t = 1)]
    count: u64,
}

#[derive(Args, Debug)]
struct Random {
    #[command(flatten)]
    numbers: Numbers,
    /// Only those that begin so, such as `run:g-edf:` or `study` [default: all]
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct Show {
    #[command(flatten)]
    numbers: Numbers,
}

#[derive(Args, Debug)]
struct Sweep {
    /// What is run [default: one run that has everything, one of each kind else]
    #[arg(long, value_name = "SCENARIO")]
    scenario: Vec<Scenario>,
    /// Kinds of calls [default: all]
    #[arg(long, value_name = "KIND", value_parser = kind)]
    call: Vec<&'static call::Kind>,
    /// From which number on
    #[arg(long, default_value_t = 1)]
    from: u32,
    /// Leave out numbers: each is so many percent larger than the one before
    #[arg(long, default_value_t = 0)]
    step: u32,
    /// All calls from the n-th on fail
    #[arg(long)]
    onwards: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct Signals {
    /// What is run
    #[arg(long, value_name = "SCENARIO", default_value = "run:g-edf:all")]
    scenario: Scenario,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct One {
    #[arg(required = true)]
    trials: Vec<Trial>,
    /// How often each
    #[arg(long, default_value_t = 1)]
    times: u32,
    #[command(flatten)]
    common: Common,
}

fn kind(name: &str) -> Result<&'static call::Kind, String> {
    call::find(name).ok_or_else(|| {
        let names: Vec<&str> = call::KINDS.iter().map(|kind| kind.name).collect();
        format!("it is none of {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = outsider::play(&words) {
        return code;
    }
    let done = match Cli::parse().verb {
        Verb::Random(args) => random(&args),
        Verb::Sweep(args) => sweep(&args),
        Verb::Signals(args) => signals(&args),
        Verb::One(args) => one(&args),
        Verb::Show(args) => {
            let plan = Plan::new(args.numbers.seed, |_| true);
            let first = args.numbers.number;
            for number in first..first + args.numbers.count {
                println!("{number}\t{}", plan.trial(number));
            }
            Ok(ExitCode::SUCCESS)
        }
        Verb::Table(common) => Record::open(&common.keep)
            .map_err(|e| format!("`{}`: {e}", common.keep.display()))
            .map(|record| {
                print!("{}", record.table());
                ExitCode::SUCCESS
            }),
    };
    done.unwrap_or_else(|why| {
        eprintln!("faults: {why}");
        ExitCode::from(2)
    })
}

/// Everything that carries out trials has these.
struct Bench {
    harness: Harness,
    record: Record,
    until: Option<Duration>,
    /// Trials since a run to which nothing was done.
    since: u32,
    /// Trials of this call of the program that went wrong.
    wrong: u32,
}

/// Why no further trial is begun.
enum Over {
    Time,
    Stopped,
    Broken(String),
}

/// After so many trials a run to which nothing is done has to be as it should be.
const BETWEEN: u32 = 20;

impl Bench {
    fn new(common: &Common) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|e| e.to_string())?;
        }
        let warmset = warmset(common.warmset.as_deref())?;
        let version = version(&warmset).map_err(|e| format!("`{}`: {e}", warmset.display()))?;
        let harness = Harness::new(&warmset, &common.keep, stop)?;
        let record =
            Record::open(harness.keep()).map_err(|e| format!("cannot keep results: {e}"))?;
        record
            .is_of(&version)
            .map_err(|e| format!("`{}`: {e}", common.keep.display()))?;
        Ok(Bench {
            harness,
            record,
            until: common.seconds.map(Duration::from_secs),
            since: 0,
            wrong: 0,
        })
    }

    /// Carries one out, unless it was before; nothing then.
    fn carry_out(&mut self, key: &str, trial: &Trial) -> Result<Option<Report>, Over> {
        if self.record.knows(key) {
            return Ok(None);
        }
        if self
            .until
            .is_some_and(|until| self.harness.elapsed() > until)
        {
            return Err(Over::Time);
        }
        let report = self.once(key, trial)?;
        self.since += 1;
        if self.since >= BETWEEN {
            self.since = 0;
            let plain = "run:g-edf:plain: none".parse().map_err(Over::Broken)?;
            self.once(&format!("after {key}"), &plain)?;
        }
        Ok(Some(report))
    }

    fn once(&mut self, key: &str, trial: &Trial) -> Result<Report, Over> {
        let report = self.harness.carry_out(trial).map_err(|_| Over::Stopped)?;
        let kept = self.record.add(key, &report);
        kept.map_err(|e| Over::Broken(format!("cannot keep results: {e}")))?;
        self.wrong += u32::from(!report.wrong.is_empty());
        let missed = if report.reached {
            ""
        } else {
            ", over before it"
        };
        let calls = match trial.fault {
            Fault::Call(_) => format!(", {} calls", report.calls),
            _ => String::new(),
        };
        let Report {
            outcome, seconds, ..
        } = &report;
        println!("{key}\t{trial}\t{outcome}{missed}{calls}, {seconds:.1} s");
        for (kind, what) in &report.wrong {
            println!("    {kind}: {what}");
        }
        Ok(report)
    }

    fn end(self, over: Option<Over>) -> Result<ExitCode, String> {
        print!("\n{}", self.record.table());
        match over {
            Some(Over::Broken(why)) => Err(why),
            Some(Over::Stopped) => Ok(ExitCode::from(130)),
            _ if self.wrong > 0 => Ok(ExitCode::from(1)),
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}

/// The command, by default the one that was built beside this program.
fn warmset(given: Option<&Path>) -> Result<PathBuf, String> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => {
            let this = std::env::current_exe().map_err(|e| e.to_string())?;
            this.with_file_name("warmset")
        }
    };
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "there is no `{}`; build it by `cargo build -p warmset`, or name it with --warmset",
            path.display()
        )),
    }
}

/// By which a build of the command is known.
fn version(warmset: &Path) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let about = warmset.metadata()?;
    let (seconds, nanos) = (about.mtime(), about.mtime_nsec());
    Ok(format!("{} bytes of {seconds}.{nanos:09}\n", about.len()))
}

fn random(args: &Random) -> Result<ExitCode, String> {
    let mut bench = Bench::new(&args.common)?;
    let Numbers {
        seed,
        number,
        count,
    } = args.numbers;
    // What cannot be run here is drawn all the same: numbers mean the same on every machine.
    let plan = Plan::new(seed, |_| true);
    let mut over = None;
    for number in number..number + count {
        let trial = plan.trial(number);
        if !trial.to_string().starts_with(&args.only) {
            continue;
        }
        if !bench.harness.can(&trial.scenario) {
            println!("{seed}/{number}\t{trial}\tcannot be run here");
            continue;
        }
        if let Err(why) = bench.carry_out(&format!("{seed}/{number}"), &trial) {
            over = Some(why);
            break;
        }
    }
    bench.end(over)
}

fn sweep(args: &Sweep) -> Result<ExitCode, String> {
    let mut bench = Bench::new(&args.common)?;
    let parse = |text: &&str| text.parse::<Scenario>();
    let scenarios: Vec<Scenario> = match args.scenario.is_empty() {
        false => args.scenario.clone(),
        true => [
            "run:g-edf:all",
            "run:nps-f:plain",
            "measure",
            "study",
            "check",
            "simulate",
            "generate",
        ]
        .iter()
        .map(parse)
        .collect::<Result<_, _>>()?,
    };
    let mut kinds: Vec<&call::Kind> = args.call.clone();
    if kinds.is_empty() {
        kinds = call::KINDS
            .iter()
            .filter(|k| k.onwards || !args.onwards)
            .collect();
    }
    for scenario in &scenarios {
        for kind in &kinds {
            if let Err(over) = sweep_one(&mut bench, scenario, kind, args) {
                return bench.end(Some(over));
            }
        }
    }
    bench.end(None)
}

fn sweep_one(
    bench: &mut Bench,
    scenario: &Scenario,
    kind: &'static call::Kind,
    args: &Sweep,
) -> Result<(), Over> {
    let mut nth = args.from;
    loop {
        // Each error in its turn.
        let name = kind.errors[nth as usize % kind.errors.len()];
        let broken = || Over::Broken(format!("`{name}` is no error"));
        let call = Call {
            kind,
            nth,
            error: call::error(name).ok_or_else(broken)?,
            onwards: args.onwards,
        };
        let trial = Trial {
            scenario: scenario.clone(),
            fault: Fault::Call(call),
        };
        let key = trial.to_string();
        let over = match bench.carry_out(&key, &trial)? {
            Some(report) => report.calls < nth,
            None => bench.record.was_missed(&key),
        };
        if over {
            return Ok(());
        }
        nth += 1 + nth * args.step / 100;
    }
}

fn signals(args: &Signals) -> Result<ExitCode, String> {
    let mut bench = Bench::new(&args.common)?;
    for trial in plan::every_signal(&args.scenario) {
        if let Err(over) = bench.carry_out(&trial.to_string(), &trial) {
            return bench.end(Some(over));
        }
    }
    bench.end(None)
}

fn one(args: &One) -> Result<ExitCode, String> {
    let mut bench = Bench::new(&args.common)?;
    for time in 0..args.times {
        for trial in &args.trials {
            let key = format!(
                "{trial} ({} of {}, {})",
                time + 1,
                args.times,
                std::process::id()
            );
            match bench.carry_out(&key, trial) {
                Ok(None) => {}
                Ok(Some(report)) => println!("{}", report.details),
                Err(over) => return bench.end(Some(over)),
            }
        }
    }
    bench.end(None)
}
