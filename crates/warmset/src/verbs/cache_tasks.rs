//! `warmset cache filter`, `cosine`, `fourier`, `matrix` and `combined`: the tasks of 001 §5.2 to
//! §5.5 in the model.

use crate::options::{Answered, On, draw, new_file};
use crate::{Answer, command};
use app::cache::combined::{self, Beside, Combined};
use app::cache::matrix::{self, Multiplied};
use app::cache::short::{self, Activations, Ran, Rated, Task};
use model::strategy::Writing;
use model::table::{Look, Table};
use model::{Duration, Result};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

const SHORT: &str = "\
Examples:
  warmset cache filter --platform pentium-90 --picture filter.svg
  warmset cache filter --platform pentium-pro --step 100ns
  warmset cache filter --platform pentium-90 --sizes 4,64 --rates 12.5,1000,100000
  warmset cache cosine --platform pentium-pro --step 50ns --picture cosine.svg
  warmset cache fourier --platform pentium-pro --step 50ns

Each run executes its code. The filter reads two words of 4 bytes a coefficient and writes one; the transforms work on doubles. A \
platform has to give `fill` for each cache; the flooder reads and changes as many lines as the colored cache has, and executes twice \
the first level. Single writer: the flooder only reads lines of the task's colors. With `--rates` it runs in between activations, \
each of its lines takes a step besides, and what it could not use stays in the caches.";

/// Whose caches they are, and how these write.
#[derive(clap::Args, Debug)]
struct Caches {
    #[command(flatten)]
    on: On,
    /// All caches write so, whatever the platform says: `through` or `back`
    #[arg(long, value_name = "HOW")]
    write: Option<Writing>,
}

/// How the answer is shown.
#[derive(clap::Args, Debug)]
struct Shown {
    /// Draw the ratios of the table as curves, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

impl Shown {
    /// Writes the picture, where one is asked for and there is one, and gives the answer.
    fn give<T: Serialize>(
        &self,
        seen: &T,
        picture: Option<String>,
        table: impl FnOnce(&T, Look) -> String,
    ) -> Result<Answer> {
        draw(self.picture.as_deref(), || Ok(picture))?;
        self.answered.give(|look| table(seen, look), seen)?;
        Ok(Answer::Yes)
    }
}

/// What was given, or what is usual.
fn given_or<T: Clone>(given: &[T], usual: Vec<T>) -> Vec<T> {
    match given {
        [] => usual,
        _ => given.to_vec(),
    }
}

/// Options of `warmset cache filter`, `cosine` and `fourier`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = SHORT)]
pub struct ShortArgs {
    #[command(flatten)]
    caches: Caches,
    /// Numbers of coefficients or points [default: 4 to 8192 as in 001 Fig. 4, 16 to 4096]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    sizes: Vec<u32>,
    /// What a coefficient of the filter, or an access of a transform, takes where nothing misses
    /// [default: 150ns, 75ns]
    #[arg(long, value_name = "TIME")]
    step: Option<Duration>,
    /// Words of code that each run executes
    #[arg(long, value_name = "N", default_value_t = 100)]
    code: u32,
    /// Besides, activations at so many Hz with the flooder as a task of low priority, such as
    /// 12.5,1000,100000 (001 §5.1)
    #[arg(long, value_name = "HZ,…", value_delimiter = ',')]
    rates: Vec<f64>,
    #[command(flatten)]
    shown: Shown,
}

/// Runs `warmset cache filter`, `cosine` and `fourier`.
pub fn short(task: Task, args: &ShortArgs) -> Result<Answer> {
    let options = short::Options {
        task,
        on: args.caches.on.choice(),
        write: args.caches.write,
        sizes: args.sizes.clone(),
        step: args.step.unwrap_or(task.usual_step()),
        code: args.code,
        rates: args.rates.clone(),
    };
    let seen = short::run(&options, &command::without_outputs())?;
    let picture = seen.figure()?.map(|figure| figure.to_svg());
    args.shown.give(&seen, picture, shorts)
}

fn shorts(seen: &Ran, look: Look) -> String {
    let mut text = format!(
        "{} on {}, steps of {}: c_max / c_min after a flooder, at best and at worst\n\n",
        seen.task.name(),
        seen.platform,
        seen.step
    );
    let mut table = Table::new(0, 0);
    table.row([
        "size",
        "c_min",
        "unpartitioned",
        "at worst",
        "single writer",
        "at worst",
        "partitioned",
        "at worst",
    ]);
    for row in &seen.rows {
        let of = &row.unpredictability;
        let mut cells = vec![row.size.to_string(), row.alone.optimistic.rounded()];
        cells.extend(ratios([of.unpartitioned, of.single_writer, of.partitioned]));
        table.row(cells);
    }
    text += &table.text(look);
    text += &at_rates(seen, look);
    text + &free(&seen.unpriced)
}

/// What activations lose at each rate.
fn at_rates(seen: &Ran, look: Look) -> String {
    let Some(first) = seen.rows.first().filter(|row| !row.rates.is_empty()) else {
        return String::new();
    };
    let table = |what: &str, of: fn(&Rated) -> Option<Activations>| {
        let mut table = Table::new(0, 0);
        let rates = first.rates.iter().map(|rated| format!("{} Hz", rated.rate));
        table.row(std::iter::once("size".to_owned()).chain(rates));
        for row in &seen.rows {
            let cells = row.rates.iter().map(|rated| match of(rated) {
                Some(of) => match of.worst {
                    Some(worst) => format!("{:.3} ({:.0} %)", of.most, worst * 100.0),
                    None => format!("{:.3}", of.most),
                },
                None => "takes longer".to_owned(),
            });
            table.row(std::iter::once(row.size.to_string()).chain(cells));
        }
        format!(
            "\n{what}, at a rate: c_max / c_min at best, and how many lose the most\n\n{}",
            table.text(look)
        )
    };
    table("unpartitioned", |rated| rated.unpartitioned[0])
        + &table("partitioned", |rated| rated.partitioned[0])
}

/// The cells of pairs of ratios.
fn ratios<const N: usize>(pairs: [[f64; 2]; N]) -> impl Iterator<Item = String> {
    pairs
        .into_iter()
        .flatten()
        .map(|ratio| format!("{ratio:.3}"))
}

/// What has no price.
fn free(unpriced: &[String]) -> String {
    match unpriced {
        [] => String::new(),
        free => format!(
            "\nwithout a price, so that it costs nothing here: {}\n",
            free.join(", ")
        ),
    }
}

const MATRIX: &str = "\
Examples:
  warmset cache matrix --platform pentium-133 --write through --picture matrix.svg
  warmset cache matrix --platform pentium-pro --slices 25us,200us

A product of two 64x64 matrices of doubles in submatrices of 8x8, b by columns. Unpartitioned its pages have one color after the \
other; in a partition a, b and the code have one color each, or all have one where a color holds four pages. A slice ends between \
two accesses; with whole submatrices, when the one is done in which its time is up.";

/// Options of `warmset cache matrix`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = MATRIX)]
pub struct MatrixArgs {
    #[command(flatten)]
    caches: Caches,
    /// Time slices [default: 25us to 1ms, as in 001 Fig. 7]
    #[arg(long, value_name = "TIME,…", value_delimiter = ',')]
    slices: Vec<Duration>,
    /// What a step of the product takes where nothing misses
    #[arg(long, value_name = "TIME", default_value = "34ns")]
    step: Duration,
    /// Words of code that each element executes
    #[arg(long, value_name = "N", default_value_t = 100)]
    code: u32,
    #[command(flatten)]
    shown: Shown,
}

/// Runs `warmset cache matrix`.
pub fn matrix(args: &MatrixArgs) -> Result<Answer> {
    let usual = matrix::Options::new(args.caches.on.choice());
    let options = matrix::Options {
        write: args.caches.write,
        step: args.step,
        code: args.code,
        slices: given_or(&args.slices, usual.slices),
        on: usual.on,
    };
    let seen = matrix::run(&options, &command::without_outputs())?;
    let picture = seen.figure()?.map(|figure| figure.to_svg());
    args.shown.give(&seen, picture, products)
}

fn products(seen: &Multiplied, look: Look) -> String {
    let cycles = |time: Duration| {
        let steps = Multiplied::PRODUCT_STEPS as f64;
        let step = time.nanos() as f64 / steps;
        format!("{} ({step:.1} ns a step)", time.rounded())
    };
    let mut text = format!("a product of 64x64 matrices on {}\n\n", seen.platform);
    let rows = [
        ("alone", seen.alone),
        ("alone in its partition", seen.alone_partitioned),
        ("longest submatrix", seen.submatrix),
    ];
    for (what, price) in rows {
        // Writing to a string cannot fail.
        let _ = match what {
            "longest submatrix" => writeln!(
                text,
                "{what}: {} at best, {} at worst",
                price.optimistic.rounded(),
                price.pessimistic.rounded()
            ),
            _ => writeln!(
                text,
                "{what}: {} at best, {} at worst",
                cycles(price.optimistic),
                cycles(price.pessimistic)
            ),
        };
    }
    let _ = writeln!(
        text,
        "\nc_max / c_min in time slices, all caches flooded after each; \
         colors of the partition: {}\n",
        seen.own_colors
    );
    let mut table = Table::new(0, 0);
    table.row([
        "slice",
        "unpartitioned",
        "at worst",
        "single writer",
        "at worst",
        "partitioned",
        "at worst",
        "whole submatrices",
        "at worst",
    ]);
    for row in &seen.rows {
        let of = &row.unpredictability;
        let mut cells = vec![row.slice.to_string()];
        cells.extend(ratios([
            of.unpartitioned,
            of.single_writer,
            of.partitioned,
            of.whole_submatrices,
        ]));
        table.row(cells);
    }
    text += &table.text(look);
    text + &free(&seen.unpriced)
}

const COMBINED: &str = "\
Example: warmset cache combined --platform pentium-133 --write through --picture combined.svg

In every period the filter is served first, then the product of matrices has the rest. Partitioned, the filter has colors of its \
own; unpartitioned, those of the two matrices. Where the filter leaves the product no time, there is no ratio.";

/// Options of `warmset cache combined`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = COMBINED)]
pub struct CombinedArgs {
    #[command(flatten)]
    caches: Caches,
    /// Activations of the filter in a second [default: 2000 to 20000, as in 001 Fig. 8]
    #[arg(long, value_name = "HZ,…", value_delimiter = ',')]
    rates: Vec<u32>,
    /// Coefficients of the filter, of 8 bytes
    #[arg(long, value_name = "N", default_value_t = 512)]
    coefficients: u32,
    /// What an interruption takes without the filter, there and back
    #[arg(long, value_name = "TIME", default_value = "4us")]
    switch: Duration,
    /// What a step of the product, and a coefficient of the filter, take where nothing misses
    #[arg(long, value_name = "TIME", default_value = "34ns")]
    step: Duration,
    /// Words of code that each element of the product, and each activation, execute
    #[arg(long, value_name = "N", default_value_t = 100)]
    code: u32,
    #[command(flatten)]
    shown: Shown,
}

/// Runs `warmset cache combined`.
pub fn combined(args: &CombinedArgs) -> Result<Answer> {
    let usual = combined::Options::new(args.caches.on.choice());
    let options = combined::Options {
        write: args.caches.write,
        step: args.step,
        code: args.code,
        coefficients: args.coefficients,
        switch: args.switch,
        rates: given_or(&args.rates, usual.rates),
        on: usual.on,
    };
    let seen = combined::run(&options, &command::without_outputs())?;
    let picture = seen.figure()?.map(|figure| figure.to_svg());
    args.shown.give(&seen, picture, pairs)
}

fn pairs(seen: &Combined, look: Look) -> String {
    let mut text = format!(
        "a product of 64x64 matrices beside a filter of {} coefficients on {}: real time of a product\n\n",
        seen.coefficients, seen.platform
    );
    let mut table = Table::new(0, 0);
    table.row([
        "rate, Hz",
        "partitioned",
        "unpartitioned",
        "ratio",
        "at worst",
        "filter",
        "unpartitioned",
    ]);
    for row in &seen.rows {
        let time = |beside: &Beside| {
            beside
                .product
                .map_or_else(|| "no time left".to_owned(), |product| product.rounded())
        };
        let ratio = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |r| format!("{r:.3}"));
        table.row([
            row.rate.to_string(),
            time(&row.partitioned[0]),
            time(&row.unpartitioned[0]),
            ratio(row.ratio[0]),
            ratio(row.ratio[1]),
            row.partitioned[0].filter.rounded(),
            row.unpartitioned[0].filter.rounded(),
        ]);
    }
    text += &table.text(look);
    text += "\ntimes at best\n";
    text + &free(&seen.unpriced)
}
