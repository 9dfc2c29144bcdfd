//! Draws random task sets from the field's distributions, as batch lines or as one task file.

use crate::output::Output;
use crate::{On, PROGRAM, provenance, workers};
use analyze::registry::{self, TestInfo};
use generate::{Amount, Deadlines, Fill, Generator, Method, Periods, Range, Recipe, Utilizations};
use model::taskfile::{MAX_PROCESSORS, to_batch_line, to_toml};
use model::watch::Watch;
use model::{Error, Provenance, Ratio, Result, TaskSet, Timing, exact};
use rayon::prelude::*;

/// What is drawn. [`Options::new`] has the defaults; one of `cap`, `tasks` and `until` has to be
/// given besides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Distribution of each task's utilization. Default: `uniform-medium`.
    pub utilization: Utilizations,
    /// Distribution of periods. Default: `moderate`.
    pub periods: Periods,
    /// Relative deadlines. Default: implicit.
    pub deadlines: Deadlines,
    /// Add tasks until the total utilization would exceed this.
    pub cap: Option<Ratio>,
    /// What becomes of the task that would exceed the cap. Default: it is dropped.
    pub fill: Fill,
    /// So many tasks in each set.
    pub tasks: Option<u32>,
    /// Split this total utilization among the tasks.
    pub total: Option<Ratio>,
    /// How the total is split. Default: `randfixedsum`.
    pub method: Method,
    /// The range of each utilization of a total, as LOW-HIGH.
    pub range: Option<String>,
    /// Add tasks until this test refuses the set, and drop the last one.
    pub until: Option<String>,
    /// Whose number of processors is written into each set; this machine stands for none: as many
    /// as cap, total or the set itself need.
    pub on: On,
    /// How many sets. Default: 1.
    pub sets: u64,
    /// Seed of all random choices. Default: 1.
    pub seed: u64,
    /// Number of the first set. Default: 0.
    pub first: u64,
}

impl Options {
    /// The defaults.
    ///
    /// # Errors
    /// Never: the names of the default distributions exist.
    pub fn new() -> Result<Self> {
        Ok(Options {
            utilization: "uniform-medium".parse()?,
            periods: "moderate".parse()?,
            deadlines: "implicit".parse()?,
            cap: None,
            fill: "drop".parse()?,
            tasks: None,
            total: None,
            method: "randfixedsum".parse()?,
            range: None,
            until: None,
            on: On::ThisMachine,
            sets: 1,
            seed: 1,
            first: 0,
        })
    }
}

/// Sets that can be drawn: what [`Options`] ask for, found to be possible.
pub struct Drawing<'a> {
    options: &'a Options,
    source: Source,
}

/// Looks whether the sets can be drawn.
///
/// # Errors
/// No sets; numbers beyond 2^64; nothing says how many tasks a set has; distributions or a test
/// that do not fit.
pub fn prepare(options: &Options) -> Result<Drawing<'_>> {
    if options.sets == 0 {
        return Err(Error::new("no sets were asked for")
            .at("--sets")
            .remedy("give at least 1"));
    }
    if options.first.checked_add(options.sets).is_none() {
        return Err(Error::new("the numbers of the sets run beyond 2^64")
            .at("--first")
            .remedy("start lower, or draw fewer sets"));
    }
    let source = Source {
        generator: options.recipe()?.prepare()?,
        until: options.until.as_deref().map(registry::find).transpose()?,
        m: options.processors()?,
        seed: options.seed,
    };
    Ok(Drawing { options, source })
}

/// Refuses more than one set where a task file is to hold it.
///
/// # Errors
/// Several sets.
pub fn one_set(sets: u64) -> Result<()> {
    match sets {
        0 | 1 => Ok(()),
        _ => Err(Error::new(format!(
            "a task file holds one set, and {sets} were asked for"
        ))
        .at("--sets")
        .remedy("write batch lines with `--format jsonl`")),
    }
}

impl Drawing<'_> {
    /// One set, by its number.
    ///
    /// # Errors
    /// It cannot be drawn from the distributions; the test does not apply to it.
    pub fn set(&self, number: u64) -> Result<TaskSet> {
        self.source.draw(number)
    }

    /// For how many processors a set is: as given, or as many as it needs.
    ///
    /// # Errors
    /// It needs more than there can be.
    pub fn processors(&self, set: &TaskSet) -> Result<u32> {
        self.source.processors(set)
    }

    /// The first set as a task file, with its origin in its first lines.
    ///
    /// # Errors
    /// As [`Drawing::set`].
    pub fn task_file(&self) -> Result<String> {
        let set = self.source.draw(self.options.first)?;
        let head = format!(
            "# {}, {}\n# {} processors\n\n",
            PROGRAM,
            self.options.command(self.source.m),
            self.source.processors(&set)?
        );
        Ok(head + &to_toml(&set))
    }

    /// All sets as lines of a batch; the first one also says where they come from. Ends early where
    /// the reader of `output` closed the pipe.
    ///
    /// # Errors
    /// As [`Drawing::set`]; the output cannot be written; the user stopped it.
    pub fn lines(&self, output: &mut Output<'_>, watch: &dyn Watch) -> Result<()> {
        self.options.write_lines(&self.source, output, watch)
    }
}

/// Sets are drawn on all processors so many at a time, and written in order.
const CHUNK: u64 = 4096;

impl Options {
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
            (_, Some(tasks), None) => Amount::Tasks {
                utilizations,
                tasks,
            },
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
        let needed = self
            .cap
            .or(self.total)
            .map(|u| u.num().div_ceil(u.den()).max(1));
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
        let given = m.filter(|_| self.on != On::ThisMachine);
        add("-m", given.map(|m| m.to_string()));
        add("--sets", Some(self.sets.to_string()));
        add("--first", (self.first > 0).then(|| self.first.to_string()));
        add("--seed", Some(self.seed.to_string()));
        words.join(" ")
    }

    fn write_lines(
        &self,
        source: &Source,
        output: &mut Output<'_>,
        watch: &dyn Watch,
    ) -> Result<()> {
        workers()?;
        watch.begin("drawing task sets", self.sets);
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
                if output.write(line.as_bytes())?.is_break() {
                    return Ok(());
                }
            }
            watch.advance(CHUNK.min(end - start));
            if watch.stopped() {
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

/// The first line of a file also says where its sets come from; readers of batch lines pass over
/// the key.
fn with_provenance(line: String, options: &Options, source: &Source) -> Result<String> {
    let provenance = Provenance {
        seed: Some(options.seed),
        ..provenance(&options.command(source.m))
    };
    let text = serde_json::to_string(&provenance)
        .map_err(|e| Error::new(format!("the provenance cannot be written as JSON: {e}")))?;
    Ok(format!(
        "{},\"provenance\":{text}}}",
        line.trim_end_matches('}')
    ))
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
                let total = |m: u64| {
                    exact::cmp_sum(
                        set.timings().iter().map(Timing::utilization),
                        Ratio::whole(m),
                    )
                };
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
