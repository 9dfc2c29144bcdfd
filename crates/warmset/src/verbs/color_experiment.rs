//! `warmset color experiment`: the experiments of 001 §5 on this machine, with table, picture and raw samples.

use super::color_find::{alike, find_palette, keep_pages};
use super::{color_experiment_long as long, color_experiment_show as show};
use crate::Answer;
use crate::console::{Console, Format, print, print_json};
use experiment::ground::Ground;
use experiment::short::{self, Task};
use experiment::{combined, slices};
use model::{Bytes, Error, Provenance, Result, files};
use report::Figure;
use serde::Serialize;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Experiments:
  filter     a digital filter of 4 to 8192 coefficients beside a flooder of the cache (001 §5.2, §5.3, Fig. 4)
  cosine     a discrete cosine transform likewise (001 §5.3, Fig. 5)
  fourier    a fast Fourier transform likewise (001 §5.3, Fig. 5)
  matrix     a product of matrices in time slices of 25 to 1000 us, with a flood after each (001 §5.4, Fig. 7)
  combined   the product of matrices, interrupted by the filter 2000 to 20000 times a second (001 §5.5, Fig. 8)

With -o DIR, four files are written there: NAME.txt, NAME.svg, NAME.json (the figures, and where they come from) and
NAME.csv (every measurement, also those that were left out, with the reason).

Exit status of filter, cosine and fourier, at the working set that is nearest to half of the partition: 0 the partition
isolates (at most 1.15 where it is at least 1.5 without); 1 it does not, or the flood does no such harm; 2 it could not be
measured. Of matrix and combined: 0, or 2 where it could not be measured.

Example: warmset color experiment filter -o results";

/// Options of `warmset color experiment`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    /// Which one
    #[arg(value_enum, value_name = "NAME", hide_possible_values = true)]
    name: Name,
    /// Write table, picture, figures and raw samples into this directory
    #[arg(short, long, value_name = "DIR")]
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
    /// Activations of each scenario in a run, of a short task
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    activations: u32,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Name {
    Filter,
    Cosine,
    Fourier,
    Matrix,
    Combined,
}

/// What an experiment hands to the terminal and to files.
struct Shown {
    name: &'static str,
    text: String,
    figure: Option<Figure>,
    figures: serde_json::Value,
    csv: String,
    answer: Answer,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<Answer> {
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
    let ground = Ground::prepare(&palette, largest, true, &alike(platform, &palette), &console)?;
    let mut provenance = Provenance {
        machine: machine.fact("model").unwrap_or_default().to_owned(),
        kernel: machine.fact("kernel").unwrap_or_default().to_owned(),
        settings: machine.settings(),
        ..super::scheduling::provenance()
    };
    let shown = measure(args, ground, &console, &mut provenance)?;
    console.finish();
    drop(settings);
    if let Some(dir) = &args.output {
        write(dir, &shown, &provenance)?;
    }
    match args.format {
        Format::Json => print_json(&Document::of(&shown, &provenance))?,
        Format::Table => print(&shown.text)?,
    }
    Ok(shown.answer)
}

fn measure(
    args: &Args,
    mut ground: Ground<'_>,
    console: &Console,
    provenance: &mut Provenance,
) -> Result<Shown> {
    let runs = args.runs as usize;
    let shown = match args.name {
        Name::Filter => short_task(args, &mut ground, Task::Filter, "filter", console)?,
        Name::Cosine => short_task(args, &mut ground, Task::Cosine, "cosine", console)?,
        Name::Fourier => short_task(args, &mut ground, Task::Fourier, "fourier", console)?,
        Name::Matrix => {
            let seen = slices::run(&mut ground, args.colors, runs, console)?;
            Shown {
                name: "matrix",
                text: long::matrix_text(&seen),
                figure: long::matrix_figure(&seen)?,
                figures: value(&seen)?,
                csv: long::matrix_csv(&seen),
                answer: Answer::Yes,
            }
        }
        Name::Combined => {
            let seen = combined::run(&ground, args.colors, runs, console)?;
            Shown {
                name: "combined",
                text: long::combined_text(&seen),
                figure: long::combined_figure(&seen)?,
                figures: value(&seen)?,
                csv: long::combined_csv(&seen),
                answer: Answer::Yes,
            }
        }
    };
    if let Some(moved @ 1..) = ground.pool.moved() {
        provenance.warnings.push(format!(
            "{moved} pages were moved meanwhile: their colors are not those that were found"
        ));
    }
    Ok(shown)
}

fn value(seen: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(seen).map_err(|e| Error::new(format!("cannot write the figures: {e}")))
}

fn short_task(
    args: &Args,
    ground: &mut Ground<'_>,
    task: Task,
    name: &'static str,
    console: &Console,
) -> Result<Shown> {
    let most = Bytes::new(ground.palette.cache.of_one_color().get() * u64::from(args.colors));
    let sizes: Vec<usize> = short::SIZES
        .into_iter()
        .filter(|size| task.wss(*size) <= most)
        .collect();
    if sizes.is_empty() {
        return Err(Error::new(format!("{} colors hold no task at all", args.colors))
            .at("--colors")
            .remedy("give it more"));
    }
    let plan = short::Plan {
        task,
        sizes: &sizes,
        colors: args.colors,
        runs: args.runs as usize,
        activations: args.activations as usize,
    };
    let seen = short::run(ground, &plan, console)?;
    Ok(Shown {
        name,
        text: show::short_text(&seen),
        figure: show::short_figure(&seen)?,
        figures: value(&seen)?,
        csv: show::short_csv(&seen),
        answer: match show::isolates(&seen) {
            true => Answer::Yes,
            false => Answer::No,
        },
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

fn write(dir: &Path, shown: &Shown, provenance: &Provenance) -> Result<()> {
    let file = |ending: &str| dir.join(format!("{}.{ending}", shown.name));
    let document = serde_json::to_string_pretty(&Document::of(shown, provenance))
        .map_err(|e| Error::new(format!("cannot write the figures: {e}")))?;
    files::write(&file("json"), document + "\n")?;
    files::write(&file("csv"), format!("# {}\n{}", provenance.command, shown.csv))?;
    files::write(&file("txt"), &shown.text)?;
    if let Some(figure) = &shown.figure {
        files::write(&file("svg"), figure.to_svg())?;
    }
    Ok(())
}
