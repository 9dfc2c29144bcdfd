//! `warmset cache estimate` and `coloring`: 001 §2.2 and §4.1, and §3 in the model.

use crate::console::note;
use crate::options::{Answered, On, new_file};
use crate::{Answer, command};
use app::cache::coloring::{self, Compared};
use app::cache::estimate::{self, Estimated, Task};
use model::table::{Look, Table};
use model::{Bytes, Duration, Result, files};
use std::fmt::Write;
use std::path::PathBuf;

const ESTIMATE: &str = "\
Examples:
  warmset cache estimate --platform pentium-90
  warmset cache estimate --platform pentium-90 --wcet 10.9ms --switches 100 --wss 64KiB --switch 2us

A platform has to give `fill` for each cache of data. The estimates are those of 001 §4.1: every word of a line is read, and a \
line has as many words of 4 bytes as the platform's lines have. The bound is that of 001 §2.2: whatever another task of the same \
length does, a task ends by then if its slices are as long as is said.";

/// Options of `warmset cache estimate`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = ESTIMATE)]
pub struct EstimateArgs {
    #[command(flatten)]
    on: On,
    /// What an iteration of the loop takes where nothing misses
    #[arg(long, value_name = "TIME", default_value = "150ns")]
    iteration: Duration,
    /// Words that an iteration reads
    #[arg(long, value_name = "N", default_value_t = 2)]
    words: u32,
    /// Words of code that are loaded at the start
    #[arg(long, value_name = "N", default_value_t = 100)]
    code: u32,
    /// What a task takes alone that takes turns with another one, for the bound of 001 §2.2
    #[arg(long, value_name = "TIME", requires_all = ["switches", "wss"])]
    wcet: Option<Duration>,
    /// How often it is switched to
    #[arg(long, value_name = "K", requires = "wcet")]
    switches: Option<u32>,
    /// Its working set, which others may have replaced at each switch
    #[arg(long, value_name = "SIZE", requires = "wcet")]
    wss: Option<Bytes>,
    /// What a switch takes
    #[arg(long, value_name = "TIME", requires = "wcet", default_value = "0s")]
    switch: Duration,
    #[command(flatten)]
    answered: Answered,
}

/// Runs `warmset cache estimate`.
pub fn estimate(args: &EstimateArgs) -> Result<Answer> {
    let task = match (args.wcet, args.switches, args.wss) {
        (Some(alone), Some(switches), Some(wss)) => Some(Task {
            alone,
            switches,
            wss,
            switch: args.switch,
        }),
        _ => None,
    };
    let options = estimate::Options {
        on: args.on.choice(),
        iteration: args.iteration,
        words: args.words,
        code: args.code,
        task,
    };
    let seen = estimate::estimate(&options, &command::without_outputs())?;
    args.answered.give(|look| estimates(&seen, look), &seen)?;
    Ok(Answer::Yes)
}

fn estimates(seen: &Estimated, look: Look) -> String {
    let percent = |share: f64| format!("+{:.1} %", 100.0 * share);
    let mut text = format!(
        "{}: an iteration of {} that reads {} words, {} words a line\n\n",
        seen.platform, seen.iteration, seen.words, seen.line_words
    );
    let mut table = Table::new(1, 0);
    table.row([
        "misses",
        "at best",
        "at worst",
        "longer by",
        "at worst",
        "if the next misses",
        "code",
        "TLB miss",
    ]);
    for level in &seen.levels {
        table.row([
            level.name.clone(),
            level.optimistic.to_string(),
            level.pessimistic.to_string(),
            percent(level.longer_at_best),
            percent(level.longer_at_worst),
            percent(level.next_miss_waits),
            level.code.to_string(),
            level.tlb_miss.to_string(),
        ]);
    }
    text += &table.text(look);
    if let Some(bound) = &seen.bound {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\na switch costs at most {}; with slices of {} the task ends by {}",
            bound.interference, bound.slice, bound.end
        );
    }
    text
}

const COLORING: &str = "\
Example: warmset cache coloring --platform pentium-pro --picture coloring.svg

A task owns half of the colors alone and has as many pages as its half of the cache holds; another program walks twice the cache. \
Frames are reserved if nobody but the task can have them.";

/// Options of `warmset cache coloring`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = COLORING)]
pub struct ColoringArgs {
    #[command(flatten)]
    on: On,
    /// How much memory there is [default: 16 times the colored cache]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Bits of an address, some of which name a color in free coloring: how much memory they reach
    #[arg(long, value_name = "N")]
    address_bits: Option<u32>,
    /// Draw which frames have which colors, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    answered: Answered,
}

/// Runs `warmset cache coloring`.
pub fn coloring(args: &ColoringArgs) -> Result<Answer> {
    let options = coloring::Options {
        on: args.on.choice(),
        memory: args.memory,
        address_bits: args.address_bits,
    };
    let seen = coloring::compare(&options, &command::without_outputs())?;
    if let Some(path) = &args.picture {
        files::write(path, seen.figure()?.to_svg())?;
        note(&format!("wrote {}", path.display()));
    }
    args.answered.give(|look| colorings(&seen, look), &seen)?;
    Ok(Answer::Yes)
}

fn colorings(seen: &Compared, look: Look) -> String {
    let mut text = format!(
        "{} of {}: {} colors, {} frames; a task of {} pages owns half of the colors\n\n",
        seen.cache, seen.platform, seen.colors, seen.frames, seen.task_pages
    );
    let mut table = Table::new(1, 0);
    table.row([
        "coloring",
        "frames reserved",
        "of them idle",
        "misses at first",
        "after the other",
    ]);
    for row in &seen.rows {
        table.row([
            row.coloring.to_owned(),
            row.reserved_frames.to_string(),
            row.idle_frames.to_string(),
            row.first_misses.to_string(),
            row.misses_after_other.to_string(),
        ]);
    }
    text += &table.text(look);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nfree coloring makes the cache's tags wider by {} bits, and the memory that addresses reach \
         smaller by as many",
        seen.tag_bits
    );
    let _ = match seen.most_memory {
        Some(most) => writeln!(text, ": to at most {most}"),
        None => writeln!(text),
    };
    text
}
