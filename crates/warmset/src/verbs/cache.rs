//! `warmset cache`: what a platform's caches do with a recorded trace of memory accesses; what
//! misses cost, and what colors do, in the model.

use super::cache_model::{self, ColoringArgs, EstimateArgs};
use super::cache_multicore as multicore;
use super::cache_sets::{self, SetsArgs, VideosArgs};
use super::cache_tasks::{self, CombinedArgs, MatrixArgs, ShortArgs};
use crate::console::{Console, note};
use crate::options::{Answered, On, Seed, new_file};
use crate::{Answer, command};
use app::cache::short::Task;
use app::cache::{Options, Placement, Rules, Simulated, TlbSize, simulate};
use model::table::{Look, Table};
use model::{Bytes, Error, Result};
use std::fmt::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  valgrind --tool=lackey --trace-mem=yes --log-file=ls.trace ls
  warmset cache ls.trace --platform i7-2600
  valgrind --tool=lackey --trace-mem=yes --log-fd=9 ls 9>&1 >/dev/null | warmset cache - --platform core-i7
  warmset cache ls.trace.gz --platform pentium-90 --picture misses.svg
  warmset cache ls.trace --platform pentium-pro --pages free:0-7 --memory 64MiB
  warmset cache estimate --platform pentium-90
  warmset cache coloring --platform pentium-pro --picture coloring.svg
  warmset cache filter --platform pentium-90 --picture filter.svg
  warmset cache matrix --platform pentium-133 --write through --picture matrix.svg
  warmset cache sets --platform core-i7 --sets 2 --for 5s

A line of a trace is a letter (I an instruction, L a load, S a store, M both), an address in hexadecimal, a comma and a number \
of bytes; the number of the processor may stand in front, as in `1 S 1ffeff,8`. Plain or compressed by gzip, of any length.

An access counts once at each cache that it reaches, however many lines it touches, and as a miss where any of them was not \
there. docs/cache.md has the rules in full, and what cachegrind and pycachesim do instead.";

/// Options of `warmset cache`.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = EXAMPLES,
    after_help = "See `warmset cache --help` for the form of traces and examples."
)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// A trace as `valgrind --tool=lackey --trace-mem=yes` writes it; `-` is standard input
    #[arg(required = true)]
    trace: Option<String>,
    #[command(flatten)]
    on: On,
    /// Whose rules of counting: `lines` (this model's), `cachegrind` or `pycachesim`
    #[arg(long, value_name = "RULES", default_value = "lines")]
    rules: Rules,
    /// Where pages lie in memory: `as-traced`, `random`, or `plain:COLORS` or `free:COLORS`, in
    /// plain or free coloring (001 §3), such as `plain:0-3`
    #[arg(long, value_name = "WHERE", default_value = "as-traced")]
    pages: Placement,
    /// Memory that pages are placed in
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    memory: Bytes,
    /// Two buffers of page translations a processor, for instructions and data: ENTRIES:WAYS
    /// [default: as the platform describes them]
    #[arg(long, value_name = "SIZE")]
    tlb: Option<TlbSize>,
    #[command(flatten)]
    seed: Seed,
    /// Draw misses by time, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Estimate what misses cost a loop, and bound tasks in turns, by the prices of a platform
    Estimate(EstimateArgs),
    /// Compare plain and free coloring of memory
    Coloring(ColoringArgs),
    /// Run the filter of 001 §5.2 after a flooder, with and without a partition of its own
    Filter(ShortArgs),
    /// Run a discrete cosine transform likewise (001 §5.3)
    Cosine(ShortArgs),
    /// Run a fast Fourier transform likewise (001 §5.3)
    Fourier(ShortArgs),
    /// Multiply matrices in time slices, all caches flooded after each (001 §5.4)
    Matrix(MatrixArgs),
    /// Multiply matrices beside a filter that is activated at a constant rate (001 §5.5)
    Combined(CombinedArgs),
    /// Run periodic tasks with colored working sets under G-EDF and P-EDF (004 §IV)
    Multicore(multicore::Args),
    /// Run random sets of multithreaded tasks under the cache-aware scheduler and its profiler, and
    /// under G-EDF (003 §4)
    Sets(SetsArgs),
    /// Decode videos side by side under both (003 §4.3)
    Videos(VideosArgs),
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.what {
        Some(What::Estimate(args)) => return cache_model::estimate(&args),
        Some(What::Coloring(args)) => return cache_model::coloring(&args),
        Some(What::Filter(args)) => return cache_tasks::short(Task::Filter, &args),
        Some(What::Cosine(args)) => return cache_tasks::short(Task::Cosine, &args),
        Some(What::Fourier(args)) => return cache_tasks::short(Task::Fourier, &args),
        Some(What::Matrix(args)) => return cache_tasks::matrix(&args),
        Some(What::Combined(args)) => return cache_tasks::combined(&args),
        Some(What::Multicore(args)) => return multicore::run(&args),
        Some(What::Sets(args)) => return cache_sets::sets(&args),
        Some(What::Videos(args)) => return cache_sets::videos(&args),
        None => {}
    }
    // Without a subcommand it is required.
    let trace = args
        .trace
        .ok_or_else(|| Error::new("no trace is given").remedy("name a file, or `-`"))?;
    let options = Options {
        trace,
        on: args.on.choice(),
        rules: args.rules,
        pages: args.pages,
        memory: args.memory,
        tlb: args.tlb,
        seed: args.seed.seed,
        command: command::without_outputs(),
    };
    let console = Console::new()?;
    let simulated = simulate(&options, &console)?;
    if let Some(path) = &args.picture {
        simulated.draw(path)?;
        note(&format!("wrote {}", path.display()));
    }
    args.answered
        .give(|look| table(&simulated, look), &simulated)?;
    simulated.complete()?;
    Ok(Answer::Yes)
}

fn table(s: &Simulated, look: Look) -> String {
    let mut text = format!(
        "{} accesses of {} in the caches of {}, rules `{}`{}\n\n",
        s.accesses,
        s.trace,
        s.platform,
        s.rules,
        if s.interrupted { ", interrupted" } else { "" },
    );
    text += &levels(s).text(look);
    let others = others(s);
    if !others.is_empty() {
        text.push('\n');
        text += &others;
    }
    text += &colors(s, look);
    for assumed in &s.assumed {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "assumed: {assumed}");
    }
    text
}

/// The caches, a row for each processor; columns that would be zero everywhere are left out.
fn levels(s: &Simulated) -> Table {
    type Column = (&'static str, fn(&app::cache::Level) -> u64, bool);
    let columns: [Column; 13] = [
        ("accesses", |l| l.accesses, true),
        ("hits", |l| l.hits, true),
        ("misses", |l| l.misses, true),
        ("of instr.", |l| l.instruction_misses, false),
        ("of reads", |l| l.read_misses, false),
        ("of writes", |l| l.write_misses, false),
        ("written back", |l| l.writebacks, true),
        ("through", |l| l.written_through, false),
        ("invalidated", |l| l.invalidations, false),
        ("given", |l| l.interventions, false),
        ("upgraded", |l| l.upgrades, false),
        ("prefetched", |l| l.prefetches, false),
        ("of use", |l| l.useful_prefetches, false),
    ];
    let shown: Vec<&Column> = columns
        .iter()
        .filter(|(_, of, always)| *always || s.levels.iter().any(|l| of(l) > 0))
        .collect();
    let mut table = Table::new(1, 0);
    let head = shown.iter().map(|(name, ..)| (*name).to_owned());
    let start = ["cache".to_owned(), "cpu".to_owned(), "missed".to_owned()];
    table.row(start.into_iter().chain(head));
    for level in &s.levels {
        let start = [
            level.name.clone(),
            level.cpu.to_string(),
            share(level.misses, level.accesses),
        ];
        let counts = shown.iter().map(|(_, of, _)| of(level).to_string());
        table.row(start.into_iter().chain(counts));
    }
    table
}

/// A part of a whole in percent.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "–".to_owned(),
        whole => format!("{:.2} %", 100.0 * part as f64 / whole as f64),
    }
}

/// Memory, buffers of translations and prices, in lines.
fn others(s: &Simulated) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if let Some(memory) = &s.memory {
        let _ = writeln!(
            text,
            "memory: {} lines read, {} written, {} writes through",
            memory.lines_read, memory.lines_written, memory.written_through
        );
    }
    for tlb in &s.tlbs {
        let _ = writeln!(
            text,
            "{} of {}: {} pages looked up, {} misses ({})",
            tlb.name,
            tlb.cpu,
            tlb.accesses,
            tlb.misses,
            share(tlb.misses, tlb.accesses)
        );
    }
    if let Some(waited) = &s.waited {
        let _ = writeln!(
            text,
            "waited for caches: {} to {}",
            waited.optimistic, waited.pessimistic
        );
        for unpriced in &waited.unpriced {
            let _ = writeln!(text, "without a price: {unpriced}");
        }
    }
    text
}

/// So many colors are shown at most.
const MOST_COLORS: usize = 16;

/// The colors with most misses.
fn colors(s: &Simulated, look: Look) -> String {
    let Some(colors) = &s.colors else {
        return String::new();
    };
    let mut used: Vec<(usize, u64, u64)> = (0..)
        .zip(colors.accesses.iter().zip(&colors.misses))
        .map(|(color, (accesses, misses))| (color, *accesses, *misses))
        .filter(|(_, accesses, _)| *accesses > 0)
        .collect();
    used.sort_by_key(|(color, _, misses)| (std::cmp::Reverse(*misses), *color));
    let all: u64 = colors.misses.iter().sum();
    let mut table = Table::new(0, 2);
    table.row(["color", "accesses", "misses", "of all misses"]);
    for (color, accesses, misses) in used.iter().take(MOST_COLORS) {
        table.row([
            color.to_string(),
            accesses.to_string(),
            misses.to_string(),
            share(*misses, all),
        ]);
    }
    let more = used.len().saturating_sub(MOST_COLORS);
    let rest = match more {
        0 => String::new(),
        more => format!("  {more} more colors: `--format json` has all\n"),
    };
    format!(
        "\n{} of {} page colors of the {} were touched; those with most misses:\n{}{rest}",
        used.len(),
        colors.accesses.len(),
        colors.cache,
        table.text(look)
    )
}
