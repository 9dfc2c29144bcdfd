//! `warmset profile`: shows what a platform costs, reads values off its curves, exchanges tables
//! with SchedCAT, and takes over latencies of cyclictest and rtla.

use super::profile_compare;
use crate::Answer;
use crate::console;
use crate::options::{Answered, loads, new_file, statistics};
use app::profile::{Into as Target, Meant, Row, overhead_name, values};
use app::{Choice, own};
use model::schedcat::Meaning;
use model::table::{Look, Table};
use model::{Bytes, CpmdCurve, CpmdPoint, Delay, Load, Profile, Result, Statistic};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

/// Options of `warmset profile`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset profile show xeon-l7455")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// What to do with a profile.
#[derive(clap::Subcommand, Debug)]
enum What {
    /// Print the curves of a profile, or read values off them
    Show(Show),
    /// Add an overhead table of SchedCAT, or latencies of cyclictest or rtla, to a profile
    Import(Import),
    /// Write a profile as an overhead table of SchedCAT
    Export(Export),
    /// Compare two measurements, figure by figure, within the intervals that each states
    Compare(profile_compare::Args),
    /// Charge this profile on this machine from now on, where no other is named
    Use(Use),
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  warmset profile show xeon-l7455
  warmset profile show xeon-l7455 --wss 300KiB
  warmset profile show ./profile.toml --tasks 40")]
struct Show {
    /// A built-in profile or a file
    profile: String,
    /// Read the cache delays at this working set size
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    wss: Option<Bytes>,
    /// Read the overheads at this number of tasks
    #[arg(long, value_name = "N")]
    tasks: Option<u32>,
    #[command(flatten)]
    answered: Answered,
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example, a profile from a table of averages and one of maxima:
  warmset profile import pmo_stat=avg.csv --statistic average --load load -o profile.toml
  warmset profile import pmo_stat=max.csv --statistic maximum --load load --into profile.toml -o both.toml
Examples, latencies as the overhead of releases:
  cyclictest -m -p 80 -t -a -h 400 -q -D 10min > latencies.txt
  warmset profile import latencies.txt --into profile.toml -o with-latencies.toml
  rtla timerlat hist -d 10m > timerlat.txt
  warmset profile import timerlat.txt --platform board -o profile.toml")]
struct Import {
    /// An overhead table of SchedCAT (comma-separated, `TASK-COUNT` or `WSS` (KiB) in the first
    /// column, times in microseconds); or what cyclictest (`-q`, `-h`, `-H`) or
    /// `rtla timerlat hist` printed
    table: PathBuf,
    #[command(flatten)]
    meaning: ImportedMeaning,
    /// The profile to add to; without it a new one is begun
    #[arg(long, value_name = "PROFILE")]
    into: Option<String>,
    /// For a new profile: the platform it was measured on
    #[arg(
        long,
        value_name = "NAME",
        default_value = "unnamed",
        conflicts_with = "into"
    )]
    platform: String,
    /// Where the profile goes
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: PathBuf,
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  warmset profile export xeon-l7455 --statistic average --load load -o pmo_stat=avg.csv
  warmset profile export ./profile.toml --statistic maximum --overheads --policy g-edf")]
struct Export {
    /// A built-in profile or a file
    profile: String,
    #[command(flatten)]
    meaning: MeaningArgs,
    /// The overheads by number of tasks instead of the cache delays
    #[arg(long)]
    overheads: bool,
    /// Write the table to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
`check`, `simulate` and `study` charge the profile in use where the question is about this machine and --profile is not \
given; `--profile none` charges nothing. It is kept in $XDG_DATA_HOME/warmset/profile.toml or \
~/.local/share/warmset/profile.toml, or in the file that $WARMSET_PROFILE names (`none`: no profile is in use).

Examples:
  warmset profile use out/profile.toml
  warmset profile use none")]
struct Use {
    /// A profile that was measured on this machine, or `none`
    profile: String,
}

/// What a file of another tool does not say.
#[derive(clap::Args, Debug)]
struct ImportedMeaning {
    /// For a table of SchedCAT, which does not say it: which number of the samples it holds
    #[arg(long, value_parser = statistics())]
    statistic: Option<Statistic>,
    #[command(flatten)]
    more: MoreMeaning,
}

/// What a table does not say.
#[derive(clap::Args, Debug)]
struct MeaningArgs {
    /// Which number of the samples the table holds
    #[arg(long, value_parser = statistics())]
    statistic: Statistic,
    #[command(flatten)]
    more: MoreMeaning,
}

/// What neither table says.
#[derive(clap::Args, Debug)]
struct MoreMeaning {
    /// For cache delays: what else ran
    #[arg(long, value_parser = loads(), default_value = "load")]
    load: Load,
    /// For cache delays: the part of the words that are written, from 0 to 1
    #[arg(long, value_name = "RATIO", default_value_t = Profile::DEFAULT_WRITE_RATIO)]
    write_ratio: f64,
    /// For overheads: the policy; any without it
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "",
        hide_default_value = true
    )]
    policy: String,
}

impl From<MeaningArgs> for Meaning {
    fn from(args: MeaningArgs) -> Self {
        Meaning {
            statistic: args.statistic,
            load: args.more.load,
            write_ratio: args.more.write_ratio,
            policy: args.more.policy,
        }
    }
}

impl From<ImportedMeaning> for Meant {
    fn from(args: ImportedMeaning) -> Self {
        Meant {
            statistic: args.statistic,
            load: args.more.load,
            write_ratio: args.more.write_ratio,
            policy: args.more.policy,
        }
    }
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.what {
        What::Show(args) => show(&args),
        What::Import(args) => import(args),
        What::Export(args) => export(args),
        What::Compare(args) => profile_compare::run(&args),
        What::Use(args) => use_profile(&args),
    }
}

fn use_profile(args: &Use) -> Result<Answer> {
    let text = match args.profile == own::NONE {
        false => {
            let path = own::take(&args.profile)?;
            format!(
                "From now on `{}` is charged on this machine where no other profile is named.\nKept in \
                 {}.\n",
                args.profile,
                path.display()
            )
        }
        true => match own::forget()? {
            Some(path) => format!(
                "No profile is in use any more. Removed {}.\n",
                path.display()
            ),
            None => "No profile was in use.\n".to_owned(),
        },
    };
    console::show(&text)?;
    Ok(Answer::Yes)
}

fn import(args: Import) -> Result<Answer> {
    let target = match args.into {
        Some(name) => Target::Profile(Choice::Named(name)),
        None => Target::New(args.platform),
    };
    let meant = args.meaning.into();
    let notes = app::profile::import(&args.table, &meant, &target, &args.output)?;
    remark(notes.into_iter());
    Ok(Answer::Yes)
}

fn export(args: Export) -> Result<Answer> {
    let profile = Choice::Named(args.profile);
    let exported = app::profile::export(&profile, args.meaning.into(), args.overheads)?;
    console::give(&exported.text, args.output.as_deref())?;
    remark(exported.left_out.iter().map(|l| format!("left out: {l}")));
    Ok(Answer::Yes)
}

/// Remarks on standard error; where that is closed they are lost, which is no failure.
fn remark(lines: impl Iterator<Item = String>) {
    use std::io::Write as _;
    for line in lines {
        let _ = writeln!(std::io::stderr(), "warmset: {line}");
    }
}

fn show(args: &Show) -> Result<Answer> {
    let profile = Choice::<Profile>::Named(args.profile.clone()).profile()?;
    if args.wss.is_some() || args.tasks.is_some() {
        let read = values(&profile, args.wss, args.tasks);
        args.answered.give(|_| rows_text(&read.values), &read)?;
    } else {
        args.answered
            .give(|look| profile_text(&profile, look), &profile)?;
    }
    Ok(Answer::Yes)
}

fn rows_text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "the profile has no such curve\n".to_owned();
    }
    let width = rows.iter().map(|r| r.curve.len()).max().unwrap_or(0);
    let mut out = String::new();
    for r in rows {
        let flag = if r.extrapolated {
            "  extrapolated: outside of what was measured"
        } else {
            ""
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:width$}  {}  {:>12}{flag}",
            r.curve,
            r.statistic,
            r.value.to_string()
        );
    }
    out
}

fn profile_text(profile: &Profile, look: Look) -> String {
    let mut out = format!("profile of {}\n", profile.platform);
    let p = &profile.provenance;
    for (name, text) in [
        ("source", &p.source),
        ("machine", &p.machine),
        ("kernel", &p.kernel),
        ("command", &p.command),
        ("time", &p.time),
    ] {
        if !text.is_empty() {
            let _ = writeln!(out, "{name:8} {text}");
        }
    }
    for warning in &p.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    let mut done: Vec<(Load, f64)> = Vec::new();
    for curve in &profile.cpmd {
        let group = (curve.load, curve.write_ratio);
        if done.contains(&group) {
            continue;
        }
        done.push(group);
        let of_group: Vec<&CpmdCurve> = profile
            .cpmd
            .iter()
            .filter(|c| (c.load, c.write_ratio) == group)
            .collect();
        let _ = writeln!(
            out,
            "\n{}, write ratio {}: average ± standard deviation, maximum, in microseconds",
            match curve.load {
                Load::Idle => "idle",
                Load::Load => "under load",
            },
            curve.write_ratio
        );
        push_group(&mut out, &of_group, look);
    }
    for curve in &profile.overheads {
        let _ = writeln!(
            out,
            "\n{}: average, maximum by number of tasks",
            overhead_name(curve)
        );
        for p in &curve.points {
            let text = |v: Option<model::Duration>| v.map_or("-".to_owned(), |v| v.to_string());
            let _ = writeln!(
                out,
                "{:>8}  {:>12}  {:>12}",
                p.tasks,
                text(p.average),
                text(p.maximum)
            );
        }
    }
    out
}

/// A table with a column for each way to resume and a row for each working set size.
fn push_group(out: &mut String, curves: &[&CpmdCurve], look: Look) {
    let sizes: BTreeSet<Bytes> = curves
        .iter()
        .flat_map(|c| c.points.iter().map(|p| p.wss))
        .collect();
    let mut table = Table::new(0, 0);
    table.row(
        std::iter::once("WSS".to_owned()).chain(curves.iter().map(|c| c.resumption.to_string())),
    );
    for wss in sizes {
        let cells = curves.iter().map(|c| {
            let point = c.points.iter().find(|p| p.wss == wss);
            point.map_or(String::new(), cell)
        });
        table.row(std::iter::once(wss.to_string()).chain(cells));
    }
    out.push_str(&table.text(look));
}

fn cell(point: &CpmdPoint) -> String {
    let micros = |d: Delay| format!("{:.2}", d.as_micros_f64());
    let mut text = point.average.map_or("-".to_owned(), micros);
    if let Some(deviation) = point.deviation {
        let _ = write!(text, " ± {:.2}", deviation.as_micros_f64());
    }
    let _ = write!(text, ", {}", point.maximum.map_or("-".to_owned(), micros));
    text
}
