//! How long a program executes on this machine, run by run: in ordinary memory and in colors, alone
//! and disturbed; and what a task that runs it may say of its WCET.

use crate::color::alone::Own;
use crate::color::find::cache_with_colors;
use crate::{PROGRAM, provenance};
use ::measure::task::{Bench, Beside, Run, beyond};
use heap::exec::{self, Part, Plan, Start};
use model::watch::Watch;
use model::{Bytes, Duration, Error, Provenance, Result, time};
use partition::Colors;
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// What is measured. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Numbers of page colors that it is given. Default: none, ordinary memory only.
    pub colors: Vec<u16>,
    /// How many runs of each kind. Default: 20.
    pub runs: u32,
    /// How often it is moved where it is moved. Default: 5 ms.
    pub every: Duration,
    /// How much memory is sorted by color. Default: as `color exec`.
    pub memory: Option<Bytes>,
    /// The command that does it again, for the result.
    pub command: String,
}

impl Options {
    /// The defaults for a program with its arguments.
    pub fn new(program: Vec<String>) -> Self {
        Options {
            program,
            colors: Vec::new(),
            runs: 20,
            every: Duration::from_millis(5),
            memory: None,
            command: String::new(),
        }
    }
}

/// Runs of one kind. JSON: in `rows`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// In so many colors; `None`: in ordinary memory.
    pub colors: Option<u16>,
    /// What happened beside them.
    pub beside: Beside,
    /// How many.
    pub runs: usize,
    /// The shortest.
    #[serde(rename = "min_ns", with = "time::ns")]
    pub min: Duration,
    /// The median.
    #[serde(rename = "median_ns", with = "time::ns")]
    pub median: Duration,
    /// The longest.
    #[serde(rename = "max_ns", with = "time::ns")]
    pub max: Duration,
    /// How often it lost its processor in the median run.
    pub lost: u64,
    /// How often it was moved in the median run.
    pub moves: u64,
}

/// What a task may say. JSON: in `wcet`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Wcet {
    /// With so many colors; `None`: in ordinary memory.
    pub colors: Option<u16>,
    /// The longest run, with nothing or a flood beside it, that was seen with as many colors or
    /// more.
    #[serde(rename = "wcet_ns", with = "time::ns")]
    pub wcet: Duration,
    /// How many runs that is the longest of.
    pub runs: usize,
}

/// What was found. JSON: as `warmset measure task --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Times {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The processor of runs that are not moved.
    pub cpu: u32,
    /// How often it is moved where it is moved.
    #[serde(rename = "every_ns", with = "time::ns")]
    pub every: Duration,
    /// How many colors there are, where some were asked for.
    pub of_colors: Option<u16>,
    /// Was there always as much colored memory as the program asked for?
    pub is_colored: bool,
    /// What the runs took, by colors and by what was beside them.
    pub rows: Vec<Row>,
    /// By colors, what a task may say.
    pub wcet: Vec<Wcet>,
    /// What `color exec` adds to each run in colors: the median run of a program that does nothing.
    #[serde(rename = "start_ns", serialize_with = "time::ns::serialize")]
    pub start: Option<Duration>,
    /// With 95 % confidence, the part of runs of one row that takes longer than the WCET, if they
    /// are alike and do not depend on each other: of the row with the fewest runs.
    pub beyond: f64,
    /// Did the user stop it?
    pub interrupted: bool,
    /// Where it comes from.
    pub provenance: Provenance,
}

impl Times {
    /// # Errors
    /// The user stopped it: what was measured is kept.
    pub fn complete(&self) -> Result<()> {
        match self.interrupted {
            false => Ok(()),
            true => Err(Error::new("interrupted; what was measured is kept")
                .remedy("run the command again for all runs")),
        }
    }

    /// Numbers of colors with which a task may say nothing: it is slower than without.
    pub fn left_out(&self) -> Vec<u16> {
        let is_in = |colors: u16| self.wcet.iter().any(|wcet| wcet.colors == Some(colors));
        let mut out: Vec<u16> = self.rows.iter().filter_map(|row| row.colors).collect();
        out.dedup();
        out.retain(|colors| !is_in(*colors));
        out
    }

    /// The value of the key `wcet` of a task.
    pub fn key(&self) -> String {
        let text = |wcet: &Wcet| {
            let whole = wcet.wcet.nanos().div_ceil(1_000);
            format!("\"{whole}us\"")
        };
        let entry = |wcet: &Wcet| match wcet.colors {
            None => format!("shared = {}", text(wcet)),
            Some(colors) => format!("\"{colors}\" = {}", text(wcet)),
        };
        match &self.wcet[..] {
            [one] if one.colors.is_none() => text(one),
            all => {
                let all: Vec<String> = all.iter().map(entry).collect();
                format!("{{ {} }}", all.join(", "))
            }
        }
    }
}

/// Runs a program again and again. The kinds of runs take turns, so that what drifts meanwhile hits
/// all of them.
///
/// # Errors
/// There is no such program; it ends with an error; colors that there are not, or that cannot be
/// had; no memory for floods.
pub fn measure(options: &Options, watch: &dyn Watch) -> Result<Times> {
    let [program, arguments @ ..] = &options.program[..] else {
        return Err(Error::new("no program is named").remedy("name one, with its arguments"));
    };
    if options.runs == 0 {
        return Err(Error::new("no runs measure nothing")
            .at("--runs")
            .remedy("give at least one"));
    }
    let platform = machine::detect::this_machine()?.platform;
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let program = Program {
        path: Path::new(program),
        arguments: &arguments,
    };
    let mut numbers = options.colors.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let colored = match numbers.last() {
        None => None,
        Some(&most) => Some(Colored::new(
            &program,
            &numbers,
            most,
            options.memory,
            watch,
        )?),
    };
    let bench = Bench::new(&platform, options.every)?;
    let kinds: Vec<Option<u16>> = std::iter::once(None)
        .chain(numbers.iter().copied().map(Some))
        .collect();
    let all: Vec<(Option<u16>, Beside)> = kinds
        .iter()
        .flat_map(|colors| bench.besides().iter().map(|beside| (*colors, *beside)))
        .collect();
    let mut taken = take_turns(
        options.runs,
        &bench,
        &program,
        colored.as_ref(),
        &all,
        watch,
    )?;
    watch.finish();
    let rows: Vec<Row> = all
        .iter()
        .zip(&taken.runs)
        .filter_map(|((colors, beside), runs)| row(*colors, *beside, runs))
        .collect();
    if rows.is_empty() {
        return Err(
            Error::new("it was stopped before a run was over").remedy("run the command again")
        );
    }
    let wcet = wcets(&rows);
    let fewest = rows.iter().filter(counts).map(|row| row.runs).min();
    Ok(Times {
        program: options.program.clone(),
        cpu: bench.cpu().0,
        every: options.every,
        of_colors: colored.as_ref().map(|colored| colored.own.sorted.colors),
        is_colored: taken.is_colored,
        start: median(&mut taken.nothing),
        rows,
        wcet,
        beyond: beyond(fewest.unwrap_or(0)),
        interrupted: watch.stopped(),
        provenance: Provenance {
            source: format!("{PROGRAM}, runs of a program"),
            ..provenance(&options.command)
        },
    })
}

/// What runs in turns came to.
struct Taken {
    /// By kind.
    runs: Vec<Vec<Run>>,
    /// Of a program that does nothing, in colors.
    nothing: Vec<Duration>,
    /// Was there always as much colored memory as the program asked for?
    is_colored: bool,
}

/// So many runs of each kind, in turns, until the user stops them.
fn take_turns(
    turns: u32,
    bench: &Bench,
    program: &Program<'_>,
    colored: Option<&Colored>,
    kinds: &[(Option<u16>, Beside)],
    watch: &dyn Watch,
) -> Result<Taken> {
    let mut taken = Taken {
        runs: vec![Vec::new(); kinds.len()],
        nothing: Vec::new(),
        is_colored: true,
    };
    let nothing = Program {
        path: Path::new("true"),
        arguments: &[],
    };
    let most = kinds.iter().filter_map(|(colors, _)| *colors).max();
    watch.begin("runs of the program", u64::from(turns) * kinds.len() as u64);
    for number in 0..turns {
        for (place, (colors, beside)) in kinds.iter().enumerate() {
            if watch.stopped() {
                return Ok(taken);
            }
            let mut had_all = true;
            let run = bench.run(*beside, |tell| match (colored, colors) {
                (Some(colored), Some(colors)) => colored.run(program, *colors, tell, &mut had_all),
                _ => program.run(tell),
            })?;
            taken.is_colored &= had_all;
            // Ctrl-C ends the program as well.
            if watch.stopped() {
                return Ok(taken);
            }
            ended_well(&run.status, number)?;
            taken.runs[place].push(run);
            watch.advance(1);
        }
        if let (Some(colored), Some(most)) = (colored, most) {
            let run = bench.run(Beside::Alone, |tell| {
                colored.run(&nothing, most, tell, &mut true)
            })?;
            // Where Ctrl-C ended it, it says nothing.
            if run.status.success() {
                taken.nothing.push(run.time);
            }
        }
    }
    Ok(taken)
}

struct Program<'a> {
    path: &'a Path,
    arguments: &'a [OsString],
}

impl Program<'_> {
    /// In ordinary memory. What it prints is not shown: it would be as often as it runs.
    fn run(&self, tell: &mut dyn FnMut(u32)) -> Result<ExitStatus> {
        let failed = |e: std::io::Error| Error::io(self.path, "run the program", &e);
        let mut child = Command::new(self.path)
            .args(self.arguments)
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        tell(child.id());
        child.wait().map_err(failed)
    }
}

/// Memory in colors for all runs.
struct Colored {
    own: Own,
}

impl Colored {
    fn new(
        program: &Program<'_>,
        numbers: &[u16],
        most: u16,
        memory: Option<Bytes>,
        watch: &dyn Watch,
    ) -> Result<Self> {
        exec::check(program.path)?;
        let platform = machine::detect::this_machine()?.platform;
        let there = cache_with_colors(&platform, None, None)?.colors;
        if numbers.contains(&0) || most > there {
            return Err(Error::new(format!(
                "there are 1 to {there} colors to be had, not {}",
                if most > there { most } else { 0 }
            ))
            .at("--colors")
            .remedy("give numbers such as 1,2,4,8"));
        }
        // Enough for the fewest colors, of which the program needs most of all.
        let own = Own::sort(
            memory,
            &plan(numbers[0]),
            &Colors::first(most),
            program.path,
            false,
            watch,
        )?;
        Ok(Colored { own })
    }

    fn run(
        &self,
        program: &Program<'_>,
        colors: u16,
        tell: &mut dyn FnMut(u32),
        had_all: &mut bool,
    ) -> Result<ExitStatus> {
        let start = Start {
            output: Stdio::null(),
            begun: Some(tell),
        };
        let ran = self
            .own
            .run(&plan(colors), program.path, program.arguments, start)?;
        *had_all = !ran.ran_out;
        Ok(ran.status)
    }
}

/// All of a program in the first so many colors.
fn plan(colors: u16) -> Plan {
    Plan {
        colors: Colors::first(colors),
        by_task: false,
        parts: Part::ALL.to_vec(),
        stack: Bytes::from_kib(256),
        segments: Bytes::from_mib(8),
        strict: false,
    }
}

fn ended_well(status: &ExitStatus, number: u32) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    };
    Err(
        Error::new(format!("the program {how} in turn {}", number + 1))
            .remedy("run it by itself to see what it says; only runs that succeed are measured"),
    )
}

fn row(colors: Option<u16>, beside: Beside, runs: &[Run]) -> Option<Row> {
    let mut sorted = runs.to_vec();
    sorted.sort_unstable_by_key(|run| run.time);
    let middle = sorted.get(sorted.len() / 2)?;
    Some(Row {
        colors,
        beside,
        runs: sorted.len(),
        min: sorted.first()?.time,
        median: middle.time,
        max: sorted.last()?.time,
        lost: middle.lost,
        moves: middle.moves,
    })
}

/// Is a WCET taken from it? What preemptions and migrations cost is for a profile to say.
fn counts(row: &&Row) -> bool {
    matches!(row.beside, Beside::Alone | Beside::Flooded)
}

/// By number of colors the longest run beside nothing or a flood, of as many colors or more: fewer
/// are not faster, and a table that says so is refused.
fn wcets(rows: &[Row]) -> Vec<Wcet> {
    let mut all: Vec<Wcet> = Vec::new();
    for row in rows.iter().filter(counts) {
        match all.last_mut().filter(|wcet| wcet.colors == row.colors) {
            Some(wcet) => {
                wcet.wcet = wcet.wcet.max(row.max);
                wcet.runs += row.runs;
            }
            None => all.push(Wcet {
                colors: row.colors,
                wcet: row.max,
                runs: row.runs,
            }),
        }
    }
    let mut longest = Duration::ZERO;
    for wcet in all.iter_mut().rev().filter(|wcet| wcet.colors.is_some()) {
        longest = longest.max(wcet.wcet);
        wcet.wcet = longest;
    }
    // A task set refuses colors with which a task is slower than without.
    let shared = all.iter().find(|wcet| wcet.colors.is_none());
    let shared = shared.map_or(Duration::MAX, |wcet| wcet.wcet);
    all.retain(|wcet| wcet.wcet <= shared);
    all
}

fn median(times: &mut [Duration]) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(colors: Option<u16>, beside: Beside, max: u64) -> Row {
        Row {
            colors,
            beside,
            runs: 20,
            min: Duration::from_millis(1),
            median: Duration::from_millis(1),
            max: Duration::from_millis(max),
            lost: 0,
            moves: 0,
        }
    }

    /// With more colors no WCET is longer, and what preemptions and migrations cost is not in it.
    #[test]
    fn wcets_are_the_longest_runs_and_do_not_grow_with_colors() {
        let rows = [
            row_of(None, Beside::Alone, 5),
            row_of(None, Beside::Flooded, 12),
            row_of(None, Beside::Preempted, 99),
            row_of(Some(2), Beside::Alone, 8),
            row_of(Some(2), Beside::Flooded, 7),
            row_of(Some(4), Beside::Alone, 6),
            row_of(Some(4), Beside::Flooded, 9),
            row_of(Some(4), Beside::Migrated, 99),
        ];
        let found: Vec<_> = wcets(&rows)
            .into_iter()
            .map(|w| (w.colors, w.wcet.nanos() / 1_000_000, w.runs))
            .collect();
        assert_eq!(found, [(None, 12, 40), (Some(2), 9, 40), (Some(4), 9, 40)]);
    }
}
