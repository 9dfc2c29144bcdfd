//! `warmset cache multicore`: the experiments of 004 §IV in the model.

use crate::console::Console;
use crate::options::{Answered, On, Seed, draw, new_file};
use crate::{Answer, command};
use app::cache::multicore::{self, Compared, Options};
use model::table::{Look, Table};
use model::{Bytes, Duration, Result};
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  warmset cache multicore --platform i7-2600 --sets 1 --jobs 5 --hasten 20 --picture multicore.svg
  warmset cache multicore --platform i7-2600 --sets 10 --jobs 20 --hasten 10 --format json

Sets are drawn as in 004 §IV-A until GFB refuses them for G-EDF, or best fit for P-EDF. Tasks draw what they read from their array \
with replacement and write every fifth; the task of lowest priority walks 512 KiB from a random place on in each period. A job has \
as many accesses as take 0.9 of its WCET alone. S1: a super color each; S3: one for all, with the tasks' generators of random numbers \
side by side in its first lines. Factors are of S3 against S1.";

/// Options of `warmset cache multicore`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Args {
    #[command(flatten)]
    on: On,
    /// Task sets for each scheduler
    #[arg(long, value_name = "N", default_value_t = 10)]
    sets: usize,
    /// Jobs of each task
    #[arg(long, value_name = "N", default_value_t = 200)]
    jobs: u32,
    /// Divide periods and WCETs by this
    #[arg(long, value_name = "N", default_value_t = 1)]
    hasten: u64,
    /// Working set sizes [default: 32KiB,64KiB,128KiB,256KiB]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    wss: Vec<Bytes>,
    /// What an access takes that the first cache serves, with its computing
    #[arg(long, value_name = "TIME", default_value = "10ns")]
    access: Duration,
    /// In S3, give each task's generator of random numbers a line of its own
    #[arg(long)]
    apart: bool,
    #[command(flatten)]
    seed: Seed,
    /// Draw factors, misses and times by working set, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
    let usual = Options::new(args.on.choice());
    let options = Options {
        sets: args.sets,
        jobs: args.jobs,
        hasten: args.hasten,
        wss: match args.wss.is_empty() {
            true => usual.wss.clone(),
            false => args.wss.clone(),
        },
        access: args.access,
        apart: args.apart,
        seed: args.seed.seed,
        command: command::without_outputs(),
        ..usual
    };
    let console = Console::new()?;
    let seen = multicore::run(&options, &console)?;
    draw(args.picture.as_deref(), || {
        Ok(seen.figure()?.map(|figure| figure.to_svg()))
    })?;
    args.answered.give(|look| table(&seen, look), &seen)?;
    seen.complete()?;
    Ok(Answer::Yes)
}

fn table(seen: &Compared, look: Look) -> String {
    let mut text = format!(
        "periodic tasks with colored working sets on {}: {} jobs each, times divided by {}\n\n",
        seen.platform, seen.jobs, seen.hasten
    );
    let mut table = Table::new(2, 0);
    table.row([
        "scheduler",
        "working set",
        "sets",
        "tasks",
        "worst factor",
        "average factor",
        "missed, S1",
        "missed, S3",
        "total, S1",
        "total, S3",
    ]);
    for row in &seen.rows {
        let percent = |share: f64| format!("{share:.1} %");
        let time = |nanos: u64| Duration::from_nanos(nanos).rounded().to_string();
        table.row([
            row.scheduler.name().to_owned(),
            row.wss.to_string(),
            row.sets.to_string(),
            row.tasks.to_string(),
            format!("{:.3}", row.worst),
            format!("{:.3}", row.average),
            percent(row.missed_percent[0]),
            percent(row.missed_percent[1]),
            time(row.total[0]),
            time(row.total[1]),
        ]);
    }
    text += &table.text(look);
    text += "\nfactors: jobs in S3 by the same task's in S1; missed: tasks that missed a deadline at least once\n";
    text
}
