//! `warmset color experiment`: the experiments of 001 §5 and 004 §IV on this machine, with table, picture and raw samples.

use super::{color_experiment_long as long, color_experiment_multicore, color_experiment_show as show};
use crate::Answer;
use crate::console::{Console, Format, print_json, show as show_text};
use crate::options::{Printed, directory};
use app::color::find::{alike, find_palette, keep_pages};
use experiment::ground::Ground;
use experiment::short::{self, Plan, Task};
use experiment::{combined, slices};
use machine::Machine;
use model::watch::Watch;
use model::{Bytes, Error, Provenance, Result, document, files};
use report::Figure;
use serde::Serialize;
use std::path::{Path, PathBuf};

const HELP: &str = "\
With -o DIR, four files are written there: NAME.txt (the table), NAME.svg (the picture), NAME.json (the figures, and where they \
come from) and NAME.csv (every measurement, also those that were left out, with the reason).

Exit status: 0 it was measured, and of `isolation`, the answer is yes; 1 the answer of `isolation` is no; 2 it could not be \
measured; 130 it was stopped by Ctrl-C, and shows and writes what was done by then.

Example: warmset color experiment filter -o results";

const ISOLATION: &str = "\
The filter of 001 §5.2 with a working set of half of its partition, beside the flooder on the same processor: is its longest \
activation at most 1.15 times its shortest one alone, where it is at least 1.5 times that without a partition? Medians over the \
runs. Exit status: 0 yes; 1 no, or the flood does no such harm; 2 it could not be measured.

Example: warmset color experiment isolation";

/// Options of `warmset color experiment`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true, after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(clap::Subcommand, Debug)]
enum Which {
    /// Yes or no: does a partition isolate the filter from the flooder (at most 1.15 where it is at least 1.5 without)?
    #[command(after_help = ISOLATION)]
    Isolation(Short),
    /// A digital filter of 4 to 8192 coefficients beside a flooder of the cache (001 §5.2, §5.3, Fig. 4)
    Filter(Short),
    /// A discrete cosine transform likewise (001 §5.3, Fig. 5)
    Cosine(Short),
    /// A fast Fourier transform likewise (001 §5.3, Fig. 5)
    Fourier(Short),
    /// A product of matrices in time slices of 25 to 1000 us, with a flood after each (001 §5.4, Fig. 7)
    Matrix(Single),
    /// The product of matrices, interrupted by the filter 2000 to 20000 times a second (001 §5.5, Fig. 8)
    Combined(Single),
    /// Periodic tasks in colors under G-EDF and P-EDF (004 §IV, Figs. 10 to 12)
    Multicore(color_experiment_multicore::Args),
}

/// Options of the experiments on one processor.
#[derive(clap::Args, Debug)]
struct Single {
    /// Write table, picture, figures and raw samples into this directory
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    /// The level of the cache [default: the first one that has colors]
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// The processor [default: the first one]
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<u32>,
    /// How many colors are the task's
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    colors: u16,
    /// How many runs
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    #[command(flatten)]
    printed: Printed,
}

/// Options of short tasks.
#[derive(clap::Args, Debug)]
struct Short {
    #[command(flatten)]
    single: Single,
    /// Activations of each scenario in a run
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    activations: u32,
}

/// What an experiment hands to the terminal and to files.
pub struct Shown {
    /// What its files are called.
    pub name: &'static str,
    /// The table.
    pub text: String,
    /// The picture.
    pub figure: Option<Figure>,
    /// The figures, as JSON.
    pub figures: serde_json::Value,
    /// Every measurement.
    pub csv: String,
    /// What the exit status says.
    pub answer: Answer,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
    match &args.which {
        Which::Isolation(args) => single(&args.single, |ground, console| isolation(args, ground, console)),
        Which::Filter(args) => short(args, Task::Filter, "filter"),
        Which::Cosine(args) => short(args, Task::Cosine, "cosine"),
        Which::Fourier(args) => short(args, Task::Fourier, "fourier"),
        Which::Matrix(args) => single(args, |ground, console| matrix(args, ground, console)),
        Which::Combined(args) => single(args, |ground, console| combined(args, ground, console)),
        Which::Multicore(args) => color_experiment_multicore::run(args),
    }
}

/// Prepares the ground, measures, shows.
fn single(args: &Single, measure: impl FnOnce(&mut Ground<'_>, &Console) -> Result<Shown>) -> Result<Answer> {
    let machine = machine::this_machine()?;
    let platform = &machine.platform;
    let console = Console::new()?;
    if let Some(dir) = &args.output {
        // Before anything is measured: a place that cannot be written is told at once.
        files::make_dir(dir)?;
    }
    let settings = keep_pages(&console);
    let palette = find_palette(platform, args.level, args.cpu, &console)?;
    let largest = platform
        .data_levels()
        .into_iter()
        .filter_map(|level| platform.data_cache(level, palette.cpu)?.size)
        .max()
        .unwrap_or(palette.cache.size);
    let mut ground = Ground::prepare(&palette, largest, true, &alike(platform, &palette), &console)?;
    let mut provenance = provenance(&machine);
    let shown = measure(&mut ground, &console)?;
    if let Some(moved @ 1..) = ground.pool.moved() {
        provenance.warnings.push(format!(
            "{moved} pages were moved meanwhile: their colors are not those that were found"
        ));
    }
    console.finish();
    drop(settings);
    give(
        &shown,
        &provenance,
        args.output.as_deref(),
        args.printed.format(),
        &console,
    )?;
    if console.stopped() {
        return Err(
            Error::new("the experiment was stopped; what is shown and written was done by then")
                .remedy("run it again for the rest"),
        );
    }
    Ok(shown.answer)
}

/// Where the figures of this machine come from.
pub fn provenance(machine: &Machine) -> Provenance {
    Provenance {
        machine: machine.fact("model").unwrap_or_default().to_owned(),
        kernel: machine.fact("kernel").unwrap_or_default().to_owned(),
        settings: machine.settings(),
        ..app::provenance(&crate::command::without_outputs())
    }
}

fn matrix(args: &Single, ground: &mut Ground<'_>, console: &Console) -> Result<Shown> {
    let seen = slices::run(ground, args.colors, args.runs as usize, console)?;
    Ok(Shown {
        name: "matrix",
        text: long::matrix_text(&seen),
        figure: long::matrix_figure(&seen)?,
        figures: value(&seen)?,
        csv: long::matrix_csv(&seen),
        answer: Answer::Yes,
    })
}

fn combined(args: &Single, ground: &mut Ground<'_>, console: &Console) -> Result<Shown> {
    let seen = combined::run(ground, args.colors, args.runs as usize, console)?;
    Ok(Shown {
        name: "combined",
        text: long::combined_text(&seen),
        figure: long::combined_figure(&seen)?,
        figures: value(&seen)?,
        csv: long::combined_csv(&seen),
        answer: Answer::Yes,
    })
}

/// What was seen, for a JSON document.
pub fn value(seen: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(seen).map_err(|e| Error::new(format!("cannot write the figures: {e}")))
}

/// The sizes of a task that its partition holds.
fn sizes_within(task: Task, partition: Bytes) -> Result<Vec<usize>> {
    let sizes: Vec<usize> = short::SIZES
        .into_iter()
        .filter(|size| task.wss(*size) <= partition)
        .collect();
    match sizes.is_empty() {
        false => Ok(sizes),
        true => Err(Error::new(format!("{partition} hold no task at all"))
            .at("--colors")
            .remedy("give it more")),
    }
}

fn partition(args: &Short, ground: &Ground<'_>) -> Bytes {
    Bytes::new(ground.palette.cache.of_one_color().get() * u64::from(args.single.colors))
}

fn plan<'a>(args: &Short, task: Task, sizes: &'a [usize]) -> Plan<'a> {
    Plan {
        task,
        sizes,
        colors: args.single.colors,
        runs: args.single.runs as usize,
        activations: args.activations as usize,
    }
}

fn short(args: &Short, task: Task, name: &'static str) -> Result<Answer> {
    single(&args.single, |ground, console| {
        let sizes = sizes_within(task, partition(args, ground))?;
        let seen = short::run(ground, &plan(args, task, &sizes), console)?;
        shown(&seen, name, show::short_text(&seen), Answer::Yes)
    })
}

/// The question whether a partition isolates.
fn isolation(args: &Short, ground: &mut Ground<'_>, console: &Console) -> Result<Shown> {
    let half = partition(args, ground).get() / 2;
    let mut sizes = sizes_within(Task::Filter, partition(args, ground))?;
    sizes.sort_by_key(|size| Task::Filter.wss(*size).get().abs_diff(half));
    let seen = short::run(ground, &plan(args, Task::Filter, &sizes[..1]), console)?;
    let text = show::isolation_text(&seen);
    let answer = match show::isolates(&seen) {
        true => Answer::Yes,
        false => Answer::No,
    };
    shown(&seen, "isolation", text, answer)
}

fn shown(seen: &short::Seen, name: &'static str, text: String, answer: Answer) -> Result<Shown> {
    Ok(Shown {
        name,
        text,
        figure: match seen.rows.len() {
            // A single size makes no curve.
            1 => None,
            _ => show::short_figure(seen)?,
        },
        figures: value(seen)?,
        csv: show::short_csv(seen),
        answer,
    })
}

#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    provenance: &'a Provenance,
    seen: &'a serde_json::Value,
}

impl<'a> Document<'a> {
    fn of(shown: &'a Shown, provenance: &'a Provenance) -> Self {
        Document {
            experiment: shown.name,
            provenance,
            seen: &shown.figures,
        }
    }
}

/// Prints it, and writes its files where there is a directory for them.
///
/// # Errors
/// A file cannot be written.
pub fn give(
    shown: &Shown,
    provenance: &Provenance,
    dir: Option<&Path>,
    format: Format,
    console: &Console,
) -> Result<()> {
    for warning in &provenance.warnings {
        console.note(&format!("note: {warning}"));
    }
    if let Some(dir) = dir {
        write(dir, shown, provenance)?;
    }
    match format {
        Format::Json => print_json(&Document::of(shown, provenance)),
        Format::Table => show_text(&shown.text),
    }
}

fn write(dir: &Path, shown: &Shown, provenance: &Provenance) -> Result<()> {
    let file = |ending: &str| dir.join(format!("{}.{ending}", shown.name));
    files::write(&file("json"), document::pretty(&Document::of(shown, provenance))?)?;
    // Where it comes from stands in the JSON beside it: the first line of CSV is its header.
    files::write(&file("csv"), &shown.csv)?;
    files::write(&file("txt"), &shown.text)?;
    if let Some(figure) = &shown.figure {
        files::write(&file("svg"), figure.to_svg())?;
    }
    Ok(())
}
