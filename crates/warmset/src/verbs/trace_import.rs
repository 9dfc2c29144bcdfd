//! `warmset trace import`: what Linux itself scheduled, as a trace.

use crate::Answer;
use crate::console::{Format, print_json, show};
use crate::options::{On, Printed, new_file};
use app::Tasks;
use app::scheduling::Scheduling;
use app::trace::import::{Options, Released, import};
use model::Result;
use std::path::PathBuf;

const HELP: &str = "\
A thread is a task if it has the name of the task (the kernel keeps 15 bytes of it), or as --thread says. A job is \
released when the thread is woken up and done when it sleeps. --policy says whose rules `trace check` holds it to: g-fp or \
p-fp (with `priority`, and `cpus` where threads are pinned) for SCHED_FIFO, g-edf for SCHED_DEADLINE.

Examples:
  trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup ./system
  trace-cmd report > sched.txt
  warmset trace import sched.txt tasks.toml --policy g-fp -o system.wtrace
  warmset trace check system.wtrace

  perf sched record ./system
  perf script -F comm,pid,cpu,time,event,trace --ns > sched.txt
  warmset trace import sched.txt tasks.toml --thread camera=4711 --releases periodic -o system.wtrace";

#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    /// The text of /sys/kernel/tracing/trace, `trace-cmd report` or `perf script`
    file: PathBuf,
    /// The tasks (TOML) that were running
    tasks: PathBuf,
    #[command(flatten)]
    on: On,
    /// The policy whose rules the threads should have kept, such as `g-fp`, `p-fp` or `g-edf`
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// Who runs where, instead of what the tool would assign: an answer of
    /// `warmset check --format json`, or one assignment as JSON
    #[arg(long, value_name = "FILE")]
    assignment: Option<PathBuf>,
    /// Which thread a task is, by name or by number; may be given for each task
    #[arg(long, value_name = "TASK=THREAD")]
    thread: Vec<String>,
    /// When jobs are released: when their threads are woken up, or at multiples of their periods,
    /// of which wake-ups are late by a while
    #[arg(long, value_enum, default_value_t = Releases::WakeUps)]
    releases: Releases,
    /// The trace that is written
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: PathBuf,
    #[command(flatten)]
    printed: Printed,
}

/// The words of `--releases`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Releases {
    /// When threads are woken up, without any promise
    WakeUps,
    /// At multiples of the periods
    Periodic,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let tasks = Tasks::read(&args.tasks)?;
    let mut scheduling = Scheduling::of(&args.policy).map_err(|e| e.at("--policy"))?;
    scheduling.assignment = args.assignment;
    let options = Options {
        command: format!(
            "warmset trace import {} {}{} --policy {}",
            args.file.display(),
            args.tasks.display(),
            args.on.words(),
            args.policy
        ),
        file: args.file,
        on: args.on.choice(),
        scheduling,
        threads: args.thread,
        released: match args.releases {
            Releases::WakeUps => Released::WakeUps,
            Releases::Periodic => Released::Periodic,
        },
        output: args.output,
    };
    let imported = import(&tasks, &options)?;
    match args.printed.format() {
        Format::Table => show(&imported.text())?,
        Format::Json => print_json(&imported)?,
    }
    Ok(Answer::Yes)
}
