//! The experiments of 001 §5 and 004 §IV on this machine, each with table, picture and raw samples.

mod bench;
mod long;
pub mod multicore;
mod multicore_show;
mod short;

use super::find::{alike, cache_with_colors, find_palette, keep_pages};
use crate::provenance;
use ::experiment::prepared::Prepared;
use ::experiment::short::{self as tasks, Plan, Task};
use ::experiment::{combined, slices};
use machine::Machine;
use model::watch::Watch;
use model::{Bytes, Error, Provenance, Result, document, files};
use report::Figure;
use serde::Serialize;
use short as show;
use std::path::{Path, PathBuf};

/// An experiment on one processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Does a partition isolate the filter from the flooder: at most 1.15 times as long, where it
    /// is at least 1.5 times without one (001 §5.2)?
    Isolation,
    /// A digital filter of 4 to 8192 coefficients beside a flooder of the cache (001 §5.2, §5.3,
    /// Fig. 4).
    Filter,
    /// A discrete cosine transform likewise (001 §5.3, Fig. 5).
    Cosine,
    /// A fast Fourier transform likewise (001 §5.3, Fig. 5).
    Fourier,
    /// A product of matrices in time slices of 25 to 1000 us, with a flood after each (001 §5.4,
    /// Fig. 7).
    Matrix,
    /// The product of matrices, interrupted by the filter 2000 to 20000 times a second (001 §5.5,
    /// Fig. 8).
    Combined,
}

/// How an experiment on one processor is made. By default on the first processor, ten runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Write table, picture, figures and raw samples into this directory.
    pub output: Option<PathBuf>,
    /// The level of the cache; `None`: the first one that has colors.
    pub level: Option<u8>,
    /// The processor; `None`: the first one.
    pub cpu: Option<u32>,
    /// How many colors are the task's; `None`: 4, of the product of matrices 3, one for each.
    pub colors: Option<u16>,
    /// How many runs. Default: 10.
    pub runs: u32,
    /// Activations of each scenario in a run of a short task. Default: 20.
    pub activations: u32,
    /// The command that makes it again, for provenance.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            output: None,
            level: None,
            cpu: None,
            colors: None,
            runs: 10,
            activations: 20,
            command: String::new(),
        }
    }
}

impl Options {
    fn colors_of(&self, which: Which) -> u16 {
        self.colors.unwrap_or(match which {
            Which::Matrix | Which::Combined => 3,
            _ => 4,
        })
    }
}

/// What came of an experiment. JSON: as `warmset color experiment NAME --format json`.
#[derive(Serialize)]
pub struct Shown {
    /// What its files are called.
    #[serde(rename = "experiment")]
    pub name: &'static str,
    /// The answer of [`Which::Isolation`]; `None`: the others ask nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// Where the figures come from.
    pub provenance: Provenance,
    /// The figures.
    #[serde(rename = "seen")]
    pub figures: serde_json::Value,
    /// The table.
    #[serde(skip)]
    pub text: String,
    /// The picture.
    #[serde(skip)]
    pub figure: Option<Figure>,
    /// Every measurement.
    #[serde(skip)]
    pub csv: String,
    /// Why there is not all of it: the user stopped it.
    #[serde(skip)]
    pub stopped: Option<Error>,
}

impl Shown {
    /// Is all of it there?
    ///
    /// # Errors
    /// The user stopped it.
    pub fn complete(&self) -> Result<()> {
        self.stopped.clone().map_or(Ok(()), Err)
    }
}

/// Makes an experiment on one processor: finds colors, measures, and writes its files where there
/// is a directory for them.
///
/// # Errors
/// The directory cannot be written; colors cannot be found for sure; it cannot be measured, or the
/// user stopped it before anything was.
pub fn run(which: Which, options: &Options, watch: &dyn Watch) -> Result<Shown> {
    let colors = options.colors_of(which);
    check_colors(which, options, colors)?;
    let runs = options.runs as usize;
    single(options, watch, |prepared| match which {
        Which::Isolation => isolation(options, colors, prepared, watch),
        Which::Filter => short_task(options, (Task::Filter, "filter"), colors, prepared, watch),
        Which::Cosine => short_task(options, (Task::Cosine, "cosine"), colors, prepared, watch),
        Which::Fourier => short_task(options, (Task::Fourier, "fourier"), colors, prepared, watch),
        Which::Matrix => matrix(&slices::run(prepared, colors, runs, watch)?),
        Which::Combined => combined(&combined::run(prepared, colors, runs, watch)?),
    })
}

/// Looks whether the cache can have so many colors for the task, before colors are searched. The
/// others are those of the flooder, the filter and what else runs.
///
/// # Errors
/// It cannot; no cache has colors.
fn check_colors(which: Which, options: &Options, colors: u16) -> Result<()> {
    let platform = machine::this_machine()?.platform;
    let number = cache_with_colors(&platform, options.level, options.cpu)?.colors;
    let most = match which {
        Which::Matrix => number.saturating_sub(1),
        _ => number / 2,
    };
    match (1..=most).contains(&colors) {
        true => Ok(()),
        false => Err(
            Error::new(format!("{colors} of {number} colors cannot be the task's"))
                .at("--colors")
                .remedy(format!("choose between 1 and {most}")),
        ),
    }
}

/// Prepares colors and memory, measures, writes.
fn single(
    options: &Options,
    watch: &dyn Watch,
    measure: impl FnOnce(&mut Prepared<'_>) -> Result<Shown>,
) -> Result<Shown> {
    let machine = machine::this_machine()?;
    let platform = &machine.platform;
    if let Some(dir) = &options.output {
        // Before anything is measured: a place that cannot be written is told at once.
        files::make_dir(dir)?;
    }
    let settings = keep_pages(watch);
    let palette = find_palette(platform, options.level, options.cpu, watch)?;
    let largest = platform
        .data_levels()
        .into_iter()
        .filter_map(|level| platform.data_cache(level, palette.cpu)?.size)
        .max()
        .unwrap_or(palette.cache.size);
    let mut prepared =
        Prepared::prepare(&palette, largest, true, &alike(platform, &palette), watch)?;
    let provenance = origin(&machine, &options.command);
    let mut shown = measure(&mut prepared)?;
    shown.provenance = provenance;
    if let Some(moved @ 1..) = prepared.pool.moved() {
        shown.provenance.warnings.push(format!(
            "{moved} pages were moved meanwhile: their colors are not those that were found"
        ));
    }
    watch.finish();
    drop(settings);
    give(&shown, options.output.as_deref(), watch)?;
    if watch.stopped() {
        shown.stopped = Some(
            Error::new("the experiment was stopped; what is shown and written was done by then")
                .remedy("run it again for the rest"),
        );
    }
    Ok(shown)
}

/// Where the figures of this machine come from.
fn origin(machine: &Machine, command: &str) -> Provenance {
    Provenance {
        machine: machine.fact("model").unwrap_or_default().to_owned(),
        kernel: machine.fact("kernel").unwrap_or_default().to_owned(),
        settings: machine.settings(),
        ..provenance(command)
    }
}

fn matrix(seen: &slices::Seen) -> Result<Shown> {
    Ok(Shown {
        name: "matrix",
        text: long::matrix_text(seen),
        figure: long::matrix_figure(seen)?,
        figures: value(seen)?,
        provenance: Provenance::default(),
        stopped: None,
        csv: long::matrix_csv(seen),
        holds: None,
    })
}

fn combined(seen: &combined::Seen) -> Result<Shown> {
    Ok(Shown {
        name: "combined",
        text: long::combined_text(seen),
        figure: long::combined_figure(seen)?,
        figures: value(seen)?,
        provenance: Provenance::default(),
        stopped: None,
        csv: long::combined_csv(seen),
        holds: None,
    })
}

/// What was seen, for a JSON document.
fn value(seen: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(seen).map_err(|e| Error::new(format!("cannot write the figures: {e}")))
}

/// The sizes of a task that its partition holds; for the filter up to twice what it holds, where the
/// partition is smaller than the working set.
fn sizes_for(task: Task, partition: Bytes) -> Result<Vec<usize>> {
    let mut sizes: Vec<usize> = tasks::SIZES
        .into_iter()
        .filter(|size| task.wss(*size) <= partition)
        .collect();
    let Some(mut largest) = sizes.last().copied() else {
        return Err(Error::new(format!("{partition} hold no task at all"))
            .at("--colors")
            .remedy("give it more"));
    };
    while task == Task::Filter && task.wss(largest) <= partition {
        largest *= 2;
        sizes.push(largest);
    }
    Ok(sizes)
}

fn partition(colors: u16, prepared: &Prepared<'_>) -> Bytes {
    Bytes::new(prepared.palette.cache.of_one_color().get() * u64::from(colors))
}

fn plan<'a>(options: &Options, task: Task, sizes: &'a [usize], colors: u16) -> Plan<'a> {
    Plan {
        task,
        sizes,
        colors,
        runs: options.runs as usize,
        activations: options.activations as usize,
    }
}

fn short_task(
    options: &Options,
    (task, name): (Task, &'static str),
    colors: u16,
    prepared: &mut Prepared<'_>,
    watch: &dyn Watch,
) -> Result<Shown> {
    let sizes = sizes_for(task, partition(colors, prepared))?;
    let seen = tasks::run(prepared, &plan(options, task, &sizes, colors), watch)?;
    shown(&seen, name, show::short_text(&seen), None)
}

/// The question whether a partition isolates.
fn isolation(
    options: &Options,
    colors: u16,
    prepared: &mut Prepared<'_>,
    watch: &dyn Watch,
) -> Result<Shown> {
    let partition = partition(colors, prepared);
    let mut sizes = sizes_for(Task::Filter, partition)?;
    let half = partition.get() / 2;
    sizes.sort_by_key(|size| Task::Filter.wss(*size).get().abs_diff(half));
    let plan = plan(options, Task::Filter, &sizes[..1], colors);
    let seen = tasks::run(prepared, &plan, watch)?;
    let text = show::isolation_text(&seen);
    shown(&seen, "isolation", text, Some(show::isolates(&seen)))
}

fn shown(
    seen: &tasks::Seen,
    name: &'static str,
    text: String,
    holds: Option<bool>,
) -> Result<Shown> {
    Ok(Shown {
        name,
        text,
        figure: match seen.rows.len() {
            // A single size makes no curve.
            1 => None,
            _ => show::short_figure(seen)?,
        },
        figures: value(seen)?,
        provenance: Provenance::default(),
        stopped: None,
        csv: show::short_csv(seen),
        holds,
    })
}

/// Tells the warnings, and writes the files where there is a directory for them.
///
/// # Errors
/// A file cannot be written.
fn give(shown: &Shown, dir: Option<&Path>, watch: &dyn Watch) -> Result<()> {
    for warning in &shown.provenance.warnings {
        watch.note(&format!("note: {warning}"));
    }
    dir.map_or(Ok(()), |dir| write(dir, shown))
}

fn write(dir: &Path, shown: &Shown) -> Result<()> {
    let file = |ending: &str| dir.join(format!("{}.{ending}", shown.name));
    files::write(&file("json"), document::pretty(shown)?)?;
    // Where it comes from stands in the JSON beside it: the first line of CSV is its header.
    files::write(&file("csv"), &shown.csv)?;
    files::write(&file("txt"), &shown.text)?;
    if let Some(figure) = &shown.figure {
        files::write(&file("svg"), figure.to_svg())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::experiment::slices::{Laid, MATRICES};
    use model::Duration;
    use partition::Colors;
    use serde_json::Value;

    /// The document, which is as its schema says.
    pub fn held(shown: &Shown) -> Value {
        let text = document::pretty(shown).unwrap();
        let document = serde_json::from_str(&text).unwrap();
        testing::schemas::hold("color-experiment", &document);
        document
    }

    fn short_seen(task: Task) -> tasks::Seen {
        let row = |size, wss, unpartitioned| tasks::Row {
            size,
            wss: Bytes::from_kib(wss),
            min_ns: 70_123.6,
            whole_ns: f64::NAN,
            unpredictability: [1.0, unpartitioned, 1.1, 1.1, 1.2, 1.0, 1.1, f64::NAN],
            typical: [1.0; 8],
            interrupted: 1,
            disturbed: 2,
            held: 3,
            emptied: 4,
            counted: 5,
        };
        tasks::Seen {
            task,
            data: Colors::first(4),
            rest: Colors::first(1),
            partition: Bytes::from_kib(128),
            runs: 10,
            activations: 20,
            flood_lasts: Duration::from_micros(900),
            flood_large: Bytes::from_mib(2),
            witnessed: true,
            rows: vec![row(4096, 32, 1.3), row(8192, 64, 1.7)],
            samples: Vec::new(),
        }
    }

    #[test]
    fn documents_of_short_tasks_are_as_their_schema_says() {
        for (task, name) in [
            (Task::Filter, "filter"),
            (Task::Cosine, "cosine"),
            (Task::Fourier, "fourier"),
        ] {
            let seen = short_seen(task);
            let shown = shown(&seen, name, show::short_text(&seen), None).unwrap();
            let document = held(&shown);
            assert_eq!(document["experiment"], name);
            assert_eq!(document["seen"]["rows"][0]["min_ns"], 70_124);
            assert_eq!(document["seen"]["rows"][0]["whole_ns"], Value::Null);
            assert_eq!(document.get("holds"), None);
        }
    }

    #[test]
    fn the_document_of_isolation_has_its_answer() {
        let seen = short_seen(Task::Filter);
        let holds = show::isolates(&seen);
        let shown = shown(&seen, "isolation", String::new(), Some(holds)).unwrap();
        assert_eq!(held(&shown)["holds"], true);
    }

    #[test]
    fn documents_of_products_are_as_their_schema_says() {
        let laid = Laid {
            matrices: [const { Colors::new() }; MATRICES],
            partition: Bytes::from_kib(96),
            product_ns: 72_000.4,
            rows: vec![slices::Row {
                slice: Duration::from_micros(25),
                unpredictability: [1.0, 1.7, 1.2, f64::NAN],
                typical: [1.0, 1.6, 1.1, 1.1],
                an_interruption_ns: [-0.7, 9_000.2, 2_000.0, 2_100.0],
            }],
            samples: Vec::new(),
        };
        let seen = slices::Seen {
            rest: Colors::first(1),
            products: 152,
            runs: 10,
            again: 3,
            witnessed: true,
            layouts: vec![laid],
        };
        let document = held(&matrix(&seen).unwrap());
        let row = &document["seen"]["layouts"][0]["rows"][0];
        assert_eq!(row["slice_ns"], 25_000);
        assert_eq!(row["an_interruption_ns"][0], -1);

        let row = combined::Row {
            rate: 5e3,
            paper_rate: 50.5,
            partitioned_ns: 72_000.6,
            unpartitioned_ns: f64::NAN,
            filter_partitioned_ns: 6_000.0,
            filter_unpartitioned_ns: 8_000.0,
        };
        let seen = long::tests::combined_seen(vec![row], vec![row]);
        let document = held(&combined(&seen).unwrap());
        let row = &document["seen"]["rows"][0];
        assert_eq!(row["partitioned_ns"], 72_001);
        assert_eq!(row["unpartitioned_ns"], Value::Null);
    }
}
