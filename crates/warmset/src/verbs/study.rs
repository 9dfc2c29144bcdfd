//! `warmset study`: compares policies over many task sets, and draws what it found.

use crate::Answer;
use crate::console::{self, Console, Format};
use crate::options::{On, Printed, directory};
use model::table::{Look, Table};
use model::watch::Watch as _;
use model::{Duration, Error, Platform, Result, files};
use report::Figure;
use report::schedulability::{self, Crossing, Curve};
use serde::Serialize;
use std::path::{Path, PathBuf};
use study::{Results, Study, file, presets};

const EXAMPLES: &str = "\
Examples:
  warmset study list
  warmset study run ospert10-fig5 -o fig5
  warmset study run bastoni11-fig6.2a --sets 20 -o light
  warmset study run my-study.toml -o mine
  warmset study plot fig5 --at 500us

A study draws many task sets for each cap U on the total utilization and asks, at each cache delay D, which of them each \
policy keeps. S(U, D) is the share kept; W(D) weighs it by U and is one number for a policy and a delay. Ctrl-C keeps the \
caps that are complete; the same command goes on from there. `docs/studies.md` has the format of study files.";

/// Options of `warmset study`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Show the studies that are built in
    List(ListArgs),
    /// Run a study, or go on with one that was stopped
    Run(RunArgs),
    /// Draw the results of a study
    Plot(PlotArgs),
}

const PLATFORM: &str = "A built-in platform such as `xeon-l7455` or `symmetric:m=8`, or a file; caps above what it has \
                        are left out [default: what the study says]";

#[derive(clap::Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    printed: Printed,
}

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example: warmset study run ospert10-fig5 --sets 1000 -o fig5",
    mut_arg("platform", |platform| platform.help(PLATFORM))
)]
struct RunArgs {
    /// The name of a built-in study, or a file such as `study.toml`
    #[arg(value_name = "STUDY")]
    study: String,
    /// Keep results here: counts as they come, then JSON, CSV and charts
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    #[command(flatten)]
    on: On,
    /// How many task sets for each cap [default: what the study says]
    #[arg(long, value_name = "N")]
    sets: Option<u32>,
    /// Seed of all random choices: the same seed makes the same choices on any machine
    /// [default: what the study says]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset study plot fig5 --at 0us --at 500us")]
struct PlotArgs {
    /// A directory that `warmset study run -o` made
    #[arg(value_name = "DIR")]
    results: PathBuf,
    /// Also draw schedulability against utilization at this delay [default: at the shortest]
    #[arg(long, value_name = "D")]
    at: Vec<Duration>,
    /// Write the charts here [default: beside the results]
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.action {
        Action::List(args) => list(&args)?,
        Action::Run(args) => run_study(&args)?,
        Action::Plot(args) => {
            let results = study::load(&args.results)?;
            let written = plot(&results, &args.at, args.output.as_ref().unwrap_or(&args.results))?;
            console::print(&lines(&written))?;
        }
    }
    Ok(Answer::Yes)
}

fn list(args: &ListArgs) -> Result<()> {
    #[derive(Serialize)]
    struct Row {
        name: String,
        title: String,
        source: &'static str,
    }
    let rows = presets::list()
        .into_iter()
        .map(|(name, title, source)| Row { name, title, source });
    match args.printed.format() {
        Format::Json => {
            #[derive(Serialize)]
            struct List {
                studies: Vec<Row>,
            }
            console::print_json(&List {
                studies: rows.collect(),
            })
        }
        Format::Table => {
            let mut text = String::new();
            for row in rows {
                text += &format!("{:18}  {} ({})\n", row.name, row.title, row.source);
            }
            console::show(&text)
        }
    }
}

fn run_study(args: &RunArgs) -> Result<()> {
    let mut study = find(&args.study)?;
    if let Some(platform) = args.on.given()? {
        let before = study.caps;
        study = study.on(platform)?;
        if study.caps != before {
            console::note(&format!(
                "caps above {} are left out: no task set above that can be scheduled",
                study.platform.usable().len()
            ));
        }
    }
    study.sets = args.sets.unwrap_or(study.sets);
    study.seed = args.seed.unwrap_or(study.seed);
    let console = Console::new()?;
    app::workers()?;
    let results = match &args.output {
        Some(dir) => study::run_in(dir, &study, &console)?,
        None => study::run(&study, &console)?,
    };
    console.finish();
    match args.printed.format() {
        Format::Json => console::print(&results.to_json()?)?,
        Format::Table => console::show(&table(&results, console::look()))?,
    }
    if let Some(dir) = &args.output {
        let written = plot(&results, &[], dir)?;
        if args.printed.format() == Format::Table {
            console::print(&format!("\n{}", lines(&written)))?;
        }
    }
    Ok(())
}

/// A study by name or from a file.
fn find(name: &str) -> Result<Study> {
    if name.contains('/') || name.ends_with(".toml") {
        let text = files::read_text(Path::new(name))?;
        return file::from_toml(&text, find_platform).map_err(|e| e.at(name));
    }
    presets::find(name)
}

/// A platform by its name in a study file.
fn find_platform(name: &str) -> Result<Platform> {
    match name {
        "this-machine" => Ok(machine::this_machine()?.platform),
        _ => Platform::find(name),
    }
}

/// W(D), or S(U) where there is only one delay, for people.
fn table(results: &Results, look: Look) -> String {
    let (head, rows): (&str, Vec<String>) = if results.delays.len() > 1 {
        ("D", results.delays.iter().map(ToString::to_string).collect())
    } else {
        ("U", results.shards.iter().map(|s| s.cap.to_string()).collect())
    };
    let curves = curves(results, results.delays.len() > 1, 0);
    let title = if results.title.is_empty() {
        &results.name
    } else {
        &results.title
    };
    let at = match results.delays[..] {
        [only] => format!(", D = {only}"),
        _ => String::new(),
    };
    let mut text = format!(
        "{title}\n{} task sets for each of {} caps{at}\n\n",
        results.sets,
        results.shards.len()
    );
    let mut shares = Table::new(0, 0);
    // All columns are at least eight wide, so that tables of several studies look alike.
    shares.row(
        std::iter::once(head)
            .chain(curves.iter().map(|c| c.policy.as_str()))
            .map(|name| format!("{name:>8}")),
    );
    for (at, row) in rows.iter().enumerate() {
        shares
            .row(std::iter::once(row.clone()).chain(curves.iter().map(|c| format!("{:.3}", c.points[at].1))));
    }
    text += &shares.text(look);
    for c in crossings(results) {
        text += &format!(
            "\n{} is at least as good as {} without delay ({:.3}) up to D = {:.0} us",
            c.falling,
            c.reference,
            c.level,
            c.at.as_micros_f64()
        );
    }
    for note in &results.notes {
        text += &format!("\n(!) {note}");
    }
    text.trim_end().to_owned() + "\n"
}

/// W(D), or S(U) at the delay of this place, as `report` draws it.
fn curves(results: &Results, weighted: bool, delay: usize) -> Vec<Curve> {
    let curves = if weighted {
        results.weighted()
    } else {
        results.by_utilization(delay)
    };
    curves
        .into_iter()
        .map(|c| Curve {
            policy: c.policy,
            points: c.points,
            band: c.band,
        })
        .collect()
}

/// Where each policy falls below what P-EDF reaches without delay (000 §5); below the first one if there is no P-EDF.
fn crossings(results: &Results) -> Vec<Crossing> {
    let curves = curves(results, true, 0);
    let reference = results.policy("P-EDF").unwrap_or(0);
    curves
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != reference)
        .filter_map(|(_, curve)| schedulability::crossing(curve, curves.get(reference)?))
        .collect()
}

/// Draws the charts of a study into a directory.
fn plot(results: &Results, at: &[Duration], dir: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let mut write = |mut figure: Figure| {
        // A file has no caption beside it.
        for note in &results.notes {
            figure.description += " ";
            figure.description += note;
        }
        let path = dir.join(format!("{}.svg", figure.id));
        files::write(&path, figure.to_svg())?;
        written.push(path);
        Ok::<(), Error>(())
    };
    let caption = format!(
        "{}. {} task sets for each of {} caps on the total utilization. {}, {}.",
        results.title,
        results.sets,
        results.shards.len(),
        results.provenance.source,
        results.provenance.command
    );
    let caption = [&results.notes[..], &[caption]].concat().join(" ");
    if results.delays.len() > 1 {
        let all = crossings(results);
        let marked = all.iter().find(|c| c.falling == "G-EDF").or(all.first());
        write(schedulability::weighted(
            "weighted",
            &results.title,
            &curves(results, true, 0),
            marked,
            &caption,
        )?)?;
    }
    let shortest = [results.delays.first().copied().unwrap_or_default()];
    for delay in if at.is_empty() { &shortest[..] } else { at } {
        let place = results.delays.iter().position(|d| d == delay).ok_or_else(|| {
            Error::new(format!("the study has no delay of {delay}"))
                .at("--at")
                .remedy(match (results.delays.first(), results.delays.last()) {
                    (Some(first), Some(last)) => {
                        format!("it has {} from {first} to {last}", results.delays.len())
                    }
                    _ => "run it with more delays".to_owned(),
                })
        })?;
        write(schedulability::by_utilization(
            &format!("schedulability-{delay}"),
            &format!("{}, at D = {}", results.title, report::words::duration(*delay)),
            results.processors,
            &curves(results, false, place),
            &caption,
        )?)?;
    }
    Ok(written)
}

fn lines(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| format!("wrote {}\n", p.display())).collect()
}
