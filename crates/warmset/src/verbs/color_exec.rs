//! `warmset color exec`: an unmodified program with its memory in colors, and which of its pages
//! really are.

use crate::Answer;
use crate::console::{Console, note};
use crate::options::new_file;
use app::color::alone::Sorted;
use app::color::exec::{self, Options};
use heap::exec::{Part, Plan, Ran};
use heap::inspect::Report;
use model::{Bytes, Result};
use partition::Colors;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

const HELP: &str = "\
The program gets its heap, its anonymous mappings, the upper part of its threads' stacks, and its code and data in memory of \
these colors, as far as there is memory; so do programs that it starts. At its end it is said, part by part, how many of its \
pages lie in these colors: by the frames that the kernel names, where it does (CAP_SYS_ADMIN).

Without a memory server (`warmset color serve`) the colors are found and memory is sorted first, for this run alone; where \
the colors cannot be told, it searches again, six times in all, and says so. A program that needs more than the colored memory goes on in ordinary memory; the report says how much of it, and which \
`--memory` has room for all. With `--strict` the program gets the error of its system (ENOMEM) instead, and a message. \
Programs that are statically linked or run with other rights (setuid, capabilities of their files) are refused: no library \
can be loaded into them. A process that changes its user gets ordinary memory from then on.

Options of `warmset` come before the program; all that follows its name is the program's.

Exit status: that of the program (128 + N where signal N ended it); 2 also where it could not be run.

Examples:
  warmset color exec --colors 0-3 ./decode clip.mkv
  warmset color exec --colors 0-3 --by-thread --parts heap,stacks ./control --rate 100";

/// Options of `warmset color exec`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    /// Which colors: ranges (`0-3,8`) or a bitmap (`0x10f`)
    #[arg(long, value_name = "COLORS")]
    colors: Colors,
    /// Each thread gets its own of these colors: its number modulo their number
    #[arg(long)]
    by_thread: bool,
    /// What is colored: heap, mappings, stacks, segments (code and data)
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = part, default_value = "heap,mappings,stacks,segments")]
    parts: Vec<Part>,
    /// How much of each thread's stack, from its upper end; at most 1MiB
    #[arg(long, value_name = "SIZE", default_value = "256KiB")]
    stack: Bytes,
    /// How much code and data at most
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    segments: Bytes,
    /// The memory server's socket [default: as for `serve`]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// How much memory to sort where there is no server [default: 64MiB; up to 256MiB where the
    /// program's code and data are known to need it]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Let an allocation fail (ENOMEM) where colored memory runs out, instead of going on in
    /// ordinary memory
    #[arg(long)]
    strict: bool,
    /// Do not say what was colored
    #[arg(long, short)]
    quiet: bool,
    /// Write what was colored as JSON to a file
    #[arg(long, short, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

fn part(text: &str) -> std::result::Result<Part, String> {
    match text {
        "heap" => Ok(Part::Heap),
        "mappings" => Ok(Part::Mappings),
        "stacks" => Ok(Part::Stacks),
        "segments" => Ok(Part::Segments),
        _ => Err("the parts are heap, mappings, stacks and segments".to_owned()),
    }
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
    // Before Ctrl-C is taken over.
    let program = exec::check(&args.program)?;
    // From now on Ctrl-C is the program's to heed: it needs us until it ends.
    let console = Console::new()?;
    let options = Options {
        plan: Plan {
            colors: args.colors.clone(),
            by_task: args.by_thread,
            parts: args.parts.clone(),
            stack: args.stack,
            segments: args.segments,
            strict: args.strict,
        },
        socket: args.socket.clone(),
        memory: args.memory,
        program: args.program.clone(),
        // No progress bar is seen there.
        is_told: console.room().is_none(),
    };
    let ended = exec::run(&options, &console)?;
    let ran = &ended.ran;
    if !args.quiet {
        note(&text_of(ran, program, &options.plan, ended.sorted.as_ref()));
    }
    if let Some(path) = &args.output {
        ended.write(path)?;
    }
    let status = ran
        .status
        .code()
        .unwrap_or_else(|| 128 + ran.status.signal().unwrap_or(0));
    Ok(match status {
        0 => Answer::Yes,
        status => Answer::Program(status as u8),
    })
}

fn text_of(ran: &Ran, program: &Path, plan: &Plan, own_memory: Option<&Sorted>) -> String {
    // Writing into a string cannot fail.
    let mut text = String::new();
    let (own, others) = match ran.reports.split_first() {
        Some((first, rest)) if first.process == ran.process => (Some(first), rest),
        _ => (None, &ran.reports[..]),
    };
    let _ = match own {
        Some(own) => writeln!(
            text,
            "pages of {} (process {}) in colors {}, {}:",
            own.name,
            own.process,
            plan.colors,
            how(own)
        ),
        None => writeln!(
            text,
            "{} (process {}) ended without saying what was colored",
            program.display(),
            ran.process
        ),
    };
    for row in own.iter().flat_map(|own| &own.rows) {
        let colors: Colors = row.colors.iter().copied().collect();
        let _ = writeln!(
            text,
            "  {:<22} {:>7} of {:>7}   {}",
            row.part,
            row.colored,
            row.pages,
            if row.colors.is_empty() {
                "-".to_owned()
            } else {
                format!("colors {colors}")
            }
        );
    }
    for (name, processes) in by_name(others) {
        let shares = processes.iter().map(|report| share(report));
        let (colored, pages) = shares.fold((0, 0), |sum, s| (sum.0 + s.0, sum.1 + s.1));
        let _ = match &processes[..] {
            [one] => writeln!(
                text,
                "  and of {name} (process {}): {colored} of {pages}",
                one.process
            ),
            many => writeln!(
                text,
                "  and of {name} ({} processes): {colored} of {pages}",
                many.len()
            ),
        };
    }
    if own.is_none()
        && let Some(other) = others.first()
    {
        let _ = writeln!(text, "  ({})", how(other));
    }
    if ran.ran_out {
        let _ = writeln!(text, "{}", shortage(ran, plan, own_memory));
    }
    text.trim_end().to_owned()
}

/// Colored memory ran out: how much was wanting, and where more comes from.
fn shortage(ran: &Ran, plan: &Plan, own_memory: Option<&Sorted>) -> String {
    let most = ran.reports.iter().map(|r| r.lacking).max().unwrap_or(0);
    // To whole MiB, upwards.
    let rounded = |size: Bytes| Bytes::from_mib(size.get().div_ceil(1 << 20));
    let lacking = rounded(Bytes::new(most.saturating_mul(4096)));
    let what = match (plan.strict, most) {
        (true, _) => "allocations failed".to_owned(),
        (false, 0) => "the rest of heap and mappings lay in ordinary memory".to_owned(),
        (false, _) => {
            format!("up to {lacking} of heap and mappings lay in ordinary memory at a time")
        }
    };
    let remedy = match own_memory {
        Some(sorted) if most > 0 => {
            let need = Bytes::new(ran.most_held.get().saturating_add(lacking.get()));
            format!(
                "`--memory {}` has room for all of it",
                sorted.enough(need, plan)
            )
        }
        Some(_) => "give more with `--memory`, or name more colors".to_owned(),
        None => {
            "start the memory server with more (`warmset color serve --size`), or name more colors"
                .to_owned()
        }
    };
    let held = rounded(ran.most_held);
    format!("colored memory ran out at {held}: {what}; {remedy}")
}

/// Reports of the same program together, in the order in which programs ended first.
fn by_name(reports: &[Report]) -> Vec<(&str, Vec<&Report>)> {
    let mut all: Vec<(&str, Vec<&Report>)> = Vec::new();
    for report in reports {
        match all.iter_mut().find(|(name, _)| *name == report.name) {
            Some((_, same)) => same.push(report),
            None => all.push((&report.name, vec![report])),
        }
    }
    all
}

fn how(report: &Report) -> &'static str {
    if report.checked {
        "by the frames of its pages"
    } else {
        "by its own account: frame numbers are withheld (they take CAP_SYS_ADMIN)"
    }
}

/// Pages that are colored, and all.
fn share(report: &Report) -> (u64, u64) {
    report
        .rows
        .iter()
        .fold((0, 0), |sum, r| (sum.0 + r.colored, sum.1 + r.pages))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heap::inspect::Row;

    fn report(process: u32, name: &str, colored: u64) -> Report {
        Report {
            process,
            name: name.to_owned(),
            checked: true,
            rows: vec![Row {
                part: "heap".to_owned(),
                pages: 10,
                colored,
                colors: [partition::Color(1)].into(),
            }],
            lacking: 0,
        }
    }

    fn told(reports: Vec<Report>) -> String {
        let ran = Ran {
            status: std::process::ExitStatus::from_raw(0),
            process: 7,
            reports,
            ran_out: false,
            most_held: Bytes::from_mib(8),
        };
        text_of(&ran, Path::new("./decode"), &plan(), None)
    }

    fn plan() -> Plan {
        Plan {
            colors: Colors::first(2),
            by_task: false,
            parts: Part::ALL.to_vec(),
            stack: Bytes::from_kib(64),
            segments: Bytes::from_kib(64),
            strict: false,
        }
    }

    #[test]
    fn a_shortage_is_told_with_the_memory_that_would_do() {
        let mut lacking = report(7, "decode", 4);
        // 24 MiB, beside 8 MiB that were colored.
        lacking.lacking = 6144;
        let ran = Ran {
            status: std::process::ExitStatus::from_raw(0),
            process: 7,
            reports: vec![lacking],
            ran_out: true,
            most_held: Bytes::from_mib(8),
        };
        // 32 MiB in two of sixteen colors are 256 MiB of all, and a quarter more.
        let sorted = Sorted {
            colors: 16,
            memory: Bytes::from_mib(64),
        };
        let text = text_of(&ran, Path::new("decode"), &plan(), Some(&sorted));
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            "colored memory ran out at 8MiB: up to 24MiB of heap and mappings lay in ordinary memory at a time; `--memory 320MiB` has room for all of it"
        );
        let text = text_of(&ran, Path::new("decode"), &plan(), None);
        assert!(
            text.contains("up to 24MiB") && text.contains("color serve --size"),
            "{text}"
        );
    }

    #[test]
    fn processes_of_one_program_are_told_together() {
        let text = told(vec![
            report(7, "decode", 9),
            report(8, "sort", 1),
            report(9, "sed", 2),
            report(10, "sort", 4),
        ]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "pages of decode (process 7) in colors 0-1, by the frames of its pages:",
                "heap                         9 of      10   colors 1",
                "and of sort (2 processes): 5 of 20",
                "and of sed (process 9): 2 of 10"
            ]
        );
    }

    #[test]
    fn a_program_that_said_nothing_is_not_taken_for_another() {
        let text = told(vec![report(8, "sort", 1)]);
        assert!(
            text.starts_with("./decode (process 7) ended without saying")
                && text.contains("of sort (process 8): 1 of 10"),
            "{text}"
        );
        assert!(!told(Vec::new()).contains("frames"));
    }
}
