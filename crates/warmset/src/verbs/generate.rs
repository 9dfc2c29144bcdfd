//! `warmset generate`: random task sets from the field's distributions, as batch lines or as one TOML file.

use crate::Answer;
use crate::console::Console;
use crate::options::{On, Seed, new_file};
use analyze::registry::{self, TestInfo};
use app::workers;
use generate::{Amount, Deadlines, Fill, Generator, Method, Periods, Range, Recipe, Utilizations};
use model::files::Aside;
use model::taskfile::{MAX_PROCESSORS, to_batch_line, to_toml};
use model::watch::Watch;
use model::{Error, Provenance, Ratio, Result, TaskSet, Timing, exact};
use rayon::prelude::*;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  warmset generate --utilization uniform-medium --periods moderate --cap 12 -m 24 --sets 1000 -o sets.jsonl
  warmset generate --tasks 20 --total 3.2 --method randfixedsum --periods log-uniform:1ms-1s --deadlines constrained
  warmset generate --utilization rtcsa13 --periods rtcsa13 --until GFB -m 4 -o set.toml

Distributions of utilizations (--utilization):
  uniform-light, -medium, -heavy        uniform in [0.001, 0.1], [0.1, 0.4], [0.5, 0.9]
  bimodal-light, -medium, -heavy        [0.001, 0.5) or [0.5, 0.9], the latter for 1, 3, 5 of 9 tasks
  exponential-light, -medium, -heavy    mean 0.10, 0.25, 0.50, drawn anew above 1
  rtcsa13                               uniform in [0.1, 0.7]
  uniform:LOW-HIGH, bimodal:PART, exponential:MEAN
Distributions of periods (--periods):
  short, moderate, long                 whole milliseconds in [3, 33], [10, 100], [50, 250]
  rtcsa13                               25, 50, 100 or 200 ms
  uniform:LOW-HIGH[/STEP], log-uniform:LOW-HIGH[/STEP], choice:A,B,…

The same seed gives the same sets on any machine. Set number k of a seed is the same however many are drawn.";

const PLATFORM: &str = "A built-in platform such as `xeon-l7455` or `symmetric:m=8`, or a file, whose number of processors \
                        is written into each set [default: as many as the cap or the total, rounded up; with `--tasks` \
                        alone, as the total utilization of each set, rounded up]";

/// Options of `warmset generate`.
#[derive(clap::Args, Debug)]
#[command(
    after_long_help = EXAMPLES,
    after_help = "See `warmset generate --help` for the distributions and examples.",
    mut_arg("platform", |platform| platform.help(PLATFORM))
)]
pub struct Args {
    /// Distribution of each task's utilization
    #[arg(long, value_name = "NAME", default_value = "uniform-medium")]
    utilization: Utilizations,
    /// Distribution of periods
    #[arg(long, value_name = "NAME", default_value = "moderate")]
    periods: Periods,
    /// Relative deadlines: `implicit`, `constrained[:LOW-HIGH]` or `arbitrary[:LOW-HIGH]`, as the part of the way from the
    /// WCET to the period
    #[arg(long, value_name = "KIND", default_value = "implicit")]
    deadlines: Deadlines,
    /// Add tasks until the total utilization would exceed this
    #[arg(long, value_name = "U")]
    cap: Option<Ratio>,
    /// What becomes of the task that would exceed the cap: `drop` it, or `scale` it down to what is left
    #[arg(long, value_name = "HOW", default_value = "drop", requires = "cap")]
    fill: Fill,
    /// So many tasks in each set
    #[arg(long, value_name = "N", conflicts_with = "cap")]
    tasks: Option<u32>,
    /// Split this total utilization among the tasks
    #[arg(long, value_name = "U", requires = "tasks", conflicts_with = "utilization")]
    total: Option<Ratio>,
    /// How the total is split: `randfixedsum` or `uunifast-discard`
    #[arg(long, value_name = "NAME", default_value = "randfixedsum", requires = "total")]
    method: Method,
    /// The range of each utilization of a total, LOW-HIGH; `randfixedsum` only
    #[arg(long, value_name = "RANGE", requires = "total")]
    range: Option<String>,
    /// Add tasks until this test refuses the set, and drop the last one (needs -m or --platform)
    #[arg(long, value_name = "TEST", conflicts_with_all = ["cap", "tasks"])]
    until: Option<String>,
    #[command(flatten)]
    on: On,
    /// How many sets
    #[arg(long, value_name = "N", default_value_t = 1)]
    sets: u64,
    #[command(flatten)]
    seed: Seed,
    /// Number of the first set
    #[arg(long, value_name = "K", default_value_t = 0)]
    first: u64,
    /// As batch lines (`jsonl`) or as one task file (`toml`); default: by the name of the output, else lines
    #[arg(long, value_name = "FORMAT")]
    format: Option<SetFormat>,
    /// Write to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

/// How sets are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum SetFormat {
    /// One JSON line a set.
    #[value(alias = "json")]
    Jsonl,
    /// A task file for people; one set.
    Toml,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let format = args.set_format();
    if args.sets == 0 {
        return Err(Error::new("no sets were asked for")
            .at("--sets")
            .remedy("give at least 1"));
    }
    if format == SetFormat::Toml && args.sets != 1 {
        return Err(Error::new(format!(
            "a task file holds one set, and {} were asked for",
            args.sets
        ))
        .at("--sets")
        .remedy("write batch lines with `--format jsonl`"));
    }
    if args.first.checked_add(args.sets).is_none() {
        return Err(Error::new("the numbers of the sets run beyond 2^64")
            .at("--first")
            .remedy("start lower, or draw fewer sets"));
    }
    let source = Source {
        generator: args.recipe()?.prepare()?,
        until: args.until.as_deref().map(registry::find).transpose()?,
        m: args.processors()?,
        seed: args.seed.seed,
    };
    let mut output = Output::open(args.output.clone())?;
    match format {
        SetFormat::Toml => {
            let set = source.draw(args.first)?;
            let head = format!(
                "# {}, {}\n# {} processors\n\n",
                version(),
                args.command(source.m),
                source.processors(&set)?
            );
            // A reader that closed the pipe has seen enough.
            let _ = output.write(&(head + &to_toml(&set)))?;
        }
        SetFormat::Jsonl => args.write_lines(&source, &mut output)?,
    }
    output.finish()?;
    Ok(Answer::Yes)
}

/// Sets are drawn on all processors so many at a time, and written in order.
const CHUNK: u64 = 4096;

impl Args {
    fn set_format(&self) -> SetFormat {
        let named_toml = |path: &PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
        self.format.unwrap_or(match &self.output {
            Some(path) if named_toml(path) => SetFormat::Toml,
            _ => SetFormat::Jsonl,
        })
    }

    fn recipe(&self) -> Result<Recipe> {
        let utilizations = self.utilization;
        let amount = match (self.cap, self.tasks, self.total) {
            (Some(cap), _, _) => Amount::Cap {
                utilizations,
                cap,
                fill: self.fill,
            },
            (_, Some(tasks), Some(total)) => Amount::Total {
                method: self.method,
                tasks,
                total,
                range: self.range.as_deref().map_or(Ok(Range::ALL), str::parse)?,
            },
            (_, Some(tasks), None) => Amount::Tasks { utilizations, tasks },
            _ if self.until.is_some() => Amount::UntilRefused { utilizations },
            _ => {
                return Err(Error::new("nothing says how many tasks a set has")
                    .remedy("give `--cap U`, `--tasks N` or `--until TEST`"));
            }
        };
        Ok(Recipe {
            amount,
            periods: self.periods.clone(),
            deadlines: self.deadlines,
        })
    }

    /// As given, or as many as the total utilization needs.
    ///
    /// `None`: each set its own.
    fn processors(&self) -> Result<Option<u32>> {
        let needed = self.cap.or(self.total).map(|u| u.num().div_ceil(u.den()).max(1));
        let given = self.on.given()?.map(|p| p.usable().len() as u64);
        if self.until.is_some() && given.is_none() {
            return Err(Error::new("a test is asked with a number of processors")
                .at("--until")
                .remedy("give `-m M` or `--platform NAME`"));
        }
        given.or(needed).map(possible).transpose()
    }

    /// The command that makes the same sets again, wherever they were written to.
    fn command(&self, m: Option<u32>) -> String {
        let mut words = vec!["warmset generate".to_owned()];
        let mut add = |flag: &str, value: Option<String>| {
            words.extend(value.map(|v| format!("{flag} {v}")));
        };
        let total = self.total.filter(|_| self.tasks.is_some());
        add(
            "--utilization",
            total.is_none().then(|| self.utilization.to_string()),
        );
        add("--periods", Some(self.periods.to_string()));
        add("--deadlines", Some(self.deadlines.to_string()));
        add("--cap", self.cap.map(|u| u.to_f64().to_string()));
        add("--fill", self.cap.map(|_| self.fill.to_string()));
        add("--tasks", self.tasks.map(|n| n.to_string()));
        add("--total", total.map(|u| u.to_f64().to_string()));
        add("--method", total.map(|_| self.method.to_string()));
        add("--range", self.range.clone());
        add("--until", self.until.clone());
        let given = m.filter(|_| self.on.is_given());
        add("-m", given.map(|m| m.to_string()));
        add("--sets", Some(self.sets.to_string()));
        add("--first", (self.first > 0).then(|| self.first.to_string()));
        add("--seed", Some(self.seed.seed.to_string()));
        words.join(" ")
    }

    fn write_lines(&self, source: &Source, output: &mut Output) -> Result<()> {
        workers()?;
        let console = Console::new()?;
        console.begin("drawing task sets", self.sets);
        let end = self.first + self.sets;
        for start in (self.first..end).step_by(CHUNK as usize) {
            let numbers = start..end.min(start + CHUNK);
            let lines = numbers
                .clone()
                .into_par_iter()
                .map(|number| {
                    let set = source.draw(number)?;
                    to_batch_line(&number.into(), source.processors(&set)?, &set)
                })
                .collect::<Result<Vec<String>>>()?;
            for (number, mut line) in numbers.zip(lines) {
                if number == self.first {
                    line = with_provenance(line, self, source)?;
                }
                line.push('\n');
                if output.write(&line)?.is_break() {
                    return Ok(());
                }
            }
            console.advance(CHUNK.min(end - start));
            if console.stopped() {
                return Err(Error::new("stopped before all sets were drawn")
                    .remedy("nothing was kept: sets are quick to draw again by their seed"));
            }
        }
        Ok(())
    }
}

/// A number of processors that sets can be for.
fn possible(m: u64) -> Result<u32> {
    u32::try_from(m)
        .ok()
        .filter(|m| (1..=MAX_PROCESSORS).contains(m))
        .ok_or_else(|| {
            Error::new(format!("{m} processors"))
                .at("-m")
                .remedy(format!("give a number from 1 to {MAX_PROCESSORS}"))
        })
}

/// The first line of a file also says where its sets come from; readers of batch lines pass over the key.
fn with_provenance(line: String, args: &Args, source: &Source) -> Result<String> {
    let provenance = Provenance {
        source: version(),
        command: args.command(source.m),
        seed: Some(args.seed.seed),
        ..Provenance::default()
    };
    let text = serde_json::to_string(&provenance)
        .map_err(|e| Error::new(format!("the provenance cannot be written as JSON: {e}")))?;
    Ok(format!("{},\"provenance\":{text}}}", line.trim_end_matches('}')))
}

fn version() -> String {
    format!("warmset {}", env!("CARGO_PKG_VERSION"))
}

/// What sets are drawn from.
struct Source {
    generator: Generator,
    until: Option<&'static TestInfo>,
    /// `None`: as many as each set needs.
    m: Option<u32>,
    seed: u64,
}

impl Source {
    /// For how many processors a set is.
    fn processors(&self, set: &TaskSet) -> Result<u32> {
        match self.m {
            Some(m) => Ok(m),
            None => {
                let total =
                    |m: u64| exact::cmp_sum(set.timings().iter().map(Timing::utilization), Ratio::whole(m));
                possible((1..).find(|m| total(*m).is_le()).unwrap_or(1))
            }
        }
    }

    fn draw(&self, number: u64) -> Result<TaskSet> {
        let Some((test, m)) = self.until.zip(self.m) else {
            return self.generator.draw(self.seed, number);
        };
        // A test that does not apply to the set would end it at any size: say so instead.
        let mut refusal = None;
        let set = self.generator.draw_until(self.seed, number, |tasks| {
            (test.run)(tasks, m).unwrap_or_else(|why| {
                refusal = Some(why);
                false
            })
        });
        match refusal {
            Some(why) => Err(Error::new(format!("{} {why}", test.name))
                .at("--until")
                .remedy("choose a test that applies to such sets")),
            None => set,
        }
    }
}

/// Where sets go: a file that appears when it is complete, or standard output.
enum Output {
    File(PathBuf, Aside),
    Standard(std::io::Stdout),
}

impl Output {
    fn open(path: Option<PathBuf>) -> Result<Self> {
        Ok(match path {
            Some(path) => Output::File(path.clone(), Aside::create(path)?),
            None => Output::Standard(std::io::stdout()),
        })
    }

    /// Writes; breaks when a reader closed the pipe, which has seen enough.
    fn write(&mut self, text: &str) -> Result<ControlFlow<()>> {
        match self {
            Output::File(path, file) => file
                .write_all(text.as_bytes())
                .map_err(|e| Error::io(path, "write the file", &e))?,
            Output::Standard(out) => match out.write_all(text.as_bytes()) {
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ControlFlow::Break(())),
                done => done.map_err(|e| Error::io("standard output", "write", &e))?,
            },
        }
        Ok(ControlFlow::Continue(()))
    }

    fn finish(self) -> Result<()> {
        match self {
            Output::File(_, file) => file.finish(),
            Output::Standard(mut out) => match out.flush() {
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                    Err(Error::io("standard output", "write", &e))
                }
                _ => Ok(()),
            },
        }
    }
}
