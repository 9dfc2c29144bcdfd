//! `warmset measure cpmd --method schedule-sensitive`: cache delays in task sets that policies
//! schedule (000 §3.1). Assumes the options that both methods share.

use super::measure_overheads::length;
use crate::Answer;
use crate::console::{self, Console, Format, look};
use crate::options::Printed;
use app::measure::scheduled::{self, Scheduled};
use clap::Args as ClapArgs;
use measure::scheduled::trend::Value;
use model::table::Table;
use model::{Duration, Error, Result};
use policy::Spec;
use std::fmt::Write as _;

pub use experiment::scheduled::plan::Options;

/// Options of this method alone.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "With --method schedule-sensitive")]
pub struct Args {
    /// Policies that schedule the sets [default: p-edf, g-edf]
    #[arg(long, value_name = "NAME,…")]
    policy: Option<String>,
    /// Numbers of tasks [default: 3, 6, 12 and 24 for each processor; quick: without 24]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=500))]
    tasks: Vec<u32>,
    /// Task sets of each kind [default: 5; quick: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    sets: Option<u32>,
    /// How long each set runs [default: 10s; quick: 2s]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, value_parser = length)]
    length: Option<Duration>,
}

impl Args {
    /// None of them means anything to the synthetic method.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse(&self) -> Result<()> {
        let given = [
            ("--policy", self.policy.is_some()),
            ("--tasks", !self.tasks.is_empty()),
            ("--sets", self.sets.is_some()),
            ("--for", self.length.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((name, _)) => Err(Error::new("this is an option of the other method")
                .at(name)
                .remedy("add `--method schedule-sensitive`, or leave it out")),
        }
    }
}

/// Runs the measurement.
pub fn run(args: Args, options: Options, printed: Printed) -> Result<Answer> {
    let dir = options.out.clone();
    let options = Options {
        policies: args
            .policy
            .as_deref()
            .map(Spec::list)
            .transpose()?
            .unwrap_or_default(),
        tasks: args.tasks,
        sets: args.sets,
        length: args.length,
        ..options
    };
    let console = Console::new()?;
    let measured = scheduled::scheduled(options, &console)?;
    match printed.format() {
        Format::Table => console::show(&as_text(&measured))?,
        Format::Json => console::print_json(&measured)?,
    }
    scheduled::complete(&measured, &dir)?;
    Ok(Answer::Yes)
}

fn as_text(measured: &Scheduled) -> String {
    let outcome = &measured.outcome;
    let mut text = table(measured).text(look());
    text += "\nDelays in µs, equally many samples for each number of tasks.\n\n";
    let _ = writeln!(
        text,
        "{} of {} jobs gave a sample that counts.",
        outcome.samples, outcome.jobs
    );
    for (why, count) in &outcome.others {
        let _ = writeln!(text, "{count} jobs gave none because {}.", why.because());
    }
    for (cause, count) in &outcome.discards {
        let _ = writeln!(
            text,
            "{count} samples do not count because {}.",
            cause.because()
        );
    }
    for apart in outcome.apart.iter().take(1) {
        let _ = writeln!(
            text,
            "{} of {} runs were not done, the first: {} with {} tasks, {}.",
            outcome.apart.len(),
            outcome.runs,
            apart.policy,
            apart.tasks,
            apart.why
        );
    }
    for of in &outcome.dropped {
        let _ = writeln!(
            text,
            "Left out, as there are too few: {} with {} tasks, {}, {}, {}, write ratio {}: {} samples.",
            of.policy, of.tasks, of.wss, of.load, of.resumption, of.write_ratio, of.samples
        );
    }
    text.push('\n');
    tell_comparisons(&mut text, measured);
    for statement in &outcome.observations {
        let _ = writeln!(
            text,
            "{}: {} ({}). Here: {}.",
            statement.holds.words(),
            statement.says,
            statement.source,
            statement.here
        );
    }
    let mut files = vec![
        &measured.profile_path,
        &measured.samples_path,
        &measured.results_path,
    ];
    files.extend(&measured.figures);
    let files: Vec<String> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let _ = writeln!(text, "\nWrote {}.", files.join(", "));
    text
}

fn tell_comparisons(text: &mut String, measured: &Scheduled) {
    let outcome = &measured.outcome;
    for trend in &outcome.trends {
        let value = match trend.value {
            Value::Average => "averages",
            Value::Maximum => "largest delays",
        };
        let power: Vec<String> = trend
            .power
            .iter()
            .map(|(rise, power)| format!("{:.0} %: {power:.2}", rise * 100.0))
            .collect();
        let _ = writeln!(
            text,
            "Trend of {value} with the number of tasks: z = {:.2}, {}conclusive at 5 %; power by rise: {}.",
            trend.z,
            if trend.depends { "" } else { "not " },
            power.join(", ")
        );
    }
    for pair in &outcome.policies_compared {
        let ratio = pair.ratio.map_or("–".to_owned(), |r| format!("{r:.2}"));
        let _ = writeln!(
            text,
            "{} against {}: larger mean in {} of {} cells, in the median {ratio} times (p = {:.3}).",
            pair.b, pair.a, pair.larger, pair.cells, pair.p
        );
    }
    match &outcome.synthetic_time {
        None => text.push_str(
            "No delays of the synthetic method are in this directory to compare with: measure \
             them there with `warmset measure cpmd`.\n",
        ),
        Some(time) => {
            let all = &outcome.methods_compared;
            let agree = all.iter().filter(|m| m.agree).count();
            let _ = writeln!(
                text,
                "Against the synthetic method (measured {time}): intervals of the means overlap in \
                 {agree} of {} cells.",
                all.len()
            );
            for m in all {
                let us = |ns: i64| format!("{:.2}", ns as f64 / 1e3);
                let told = |(mean, (low, high)): (i64, (i64, i64))| {
                    format!("{} [{}, {}]", us(mean), us(low), us(high))
                };
                let _ = writeln!(
                    text,
                    "  {} {} {} write ratio {}: synthetic {}, in schedules {} µs{}",
                    m.wss,
                    m.load,
                    m.resumption,
                    m.write_ratio,
                    told(m.synthetic),
                    told(m.scheduled),
                    if m.agree { "" } else { ": they differ" }
                );
            }
        }
    }
    text.push('\n');
}

/// A row for each policy, number of tasks, load, way to resume and size.
fn table(measured: &Scheduled) -> Table {
    let mut rows = Table::new(3, 0);
    rows.row([
        "policy",
        "load",
        "resumption",
        "wss",
        "ratio",
        "tasks",
        "samples",
        "mean",
        "deviation",
        "largest",
    ]);
    for of in &measured.outcome.curves {
        for p in &of.curve.points {
            let us = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{:.2}", ns / 1e3));
            rows.row([
                of.policy.clone(),
                of.curve.load.to_string(),
                of.curve.resumption.to_string(),
                p.wss.to_string(),
                of.curve.write_ratio.to_string(),
                of.tasks.to_string(),
                p.samples.to_string(),
                us(p.average.map(|d| d.nanos() as f64)),
                us(p.deviation.map(|d| d.nanos() as f64)),
                us(p.maximum.map(|d| d.nanos() as f64)),
            ]);
        }
    }
    rows
}
