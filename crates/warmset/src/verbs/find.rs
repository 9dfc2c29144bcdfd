//! `warmset color find` and `warmset color selftest`: which color has a page, and does it matter?

use crate::Answer;
use crate::console::{Console, Format, print_json, show};
use crate::options::{Printed, new_file};
use app::color::find::{self, Found, Level, Options, TestOptions};
use model::{Bytes, Result};
use partition::palette::SURE;
use partition::selftest::ACTS;
use std::fmt::Write as _;
use std::path::PathBuf;

const FIND_HELP: &str = "\
Frame numbers are believed where timing confirms them; elsewhere colors are found by timing alone. Exit status: 0 colors \
were found; 1 they could not be told apart for sure: fewer or more than the geometry promises, or too many pages without one; \
2 they cannot be found.

Examples:
  warmset color find                              the colors of the first cache that has some
  warmset color find --level 2 --sort 64MiB       and memory sorted by them";

/// Options of `warmset color find`.
#[derive(clap::Args, Debug)]
#[command(after_help = FIND_HELP)]
pub struct FindArgs {
    /// The level of the cache [default: the first one that has colors]
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// The processor whose cache it is [default: the first one]
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<u32>,
    /// Sort so much memory by color, and check it against a second sorting
    #[arg(long, value_name = "SIZE")]
    sort: Option<Bytes>,
    #[command(flatten)]
    printed: Printed,
}

const SELFTEST_HELP: &str = "\
Exit status: 0 colors act (same-colored pages drive each other out at associativity + 1, at least 1.5 times the access \
time, and mixed ones do not); 1 they do not; 2 it could not be tested.

Example: warmset color selftest --picture colors.svg";

/// Options of `warmset color selftest`.
#[derive(clap::Args, Debug)]
#[command(after_help = SELFTEST_HELP)]
pub struct SelftestArgs {
    /// Test this level only; without it, levels that have no colors are named and left out
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// The processor whose caches they are [default: the first one]
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<u32>,
    /// Pairs of walks at each number of pages
    #[arg(long, value_name = "NUMBER", default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=1000))]
    repeats: u32,
    /// Draw the curves, as SVG
    #[arg(long, value_name = "FILE", value_parser = new_file, alias = "output", short_alias = 'o')]
    picture: Option<PathBuf>,
    #[command(flatten)]
    printed: Printed,
}

/// `warmset color find`.
pub fn find(args: &FindArgs) -> Result<Answer> {
    let options = Options {
        level: args.level,
        cpu: args.cpu,
        sort: args.sort,
    };
    let console = Console::new()?;
    let found = find::find(&options, &console)?;
    match args.printed.format() {
        Format::Json => print_json(&found)?,
        Format::Table => show(&found_text(&found))?,
    }
    found.complete()?;
    Ok(if found.sure { Answer::Yes } else { Answer::No })
}

/// `warmset color selftest`.
pub fn selftest(args: &SelftestArgs) -> Result<Answer> {
    let options = TestOptions {
        level: args.level,
        cpu: args.cpu,
        repeats: args.repeats,
        picture: args.picture.clone(),
    };
    let console = Console::new()?;
    let tested = find::selftest(&options, &console)?;
    match args.printed.format() {
        Format::Json => print_json(&tested)?,
        Format::Table => show(&tested.levels.iter().map(level_text).collect::<String>())?,
    }
    tested.complete()?;
    Ok(if tested.acts() {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn found_text(found: &Found) -> String {
    let cache = &found.cache;
    // Writing into a string cannot fail.
    let mut text = format!(
        "{} of {}, {} ways: {} colors of {} each, by {}, confidence {:.3}, found in {}\n",
        cache.name(),
        cache.size,
        cache.ways,
        found.colors,
        cache.of_one_color(),
        found.how,
        found.confidence,
        found.found_in.rounded()
    );
    if !found.sure {
        let _ = writeln!(
            text,
            "not sure: the geometry promises {} colors, and at most {:.0} % of pages may be without one ({} are): the search was disturbed, or the cache is shared with others",
            cache.colors,
            100.0 * (1.0 - SURE),
            found.unplaced
        );
    }
    if let Some(sorted) = &found.sorted {
        let least = sorted.pages_by_color.iter().min().copied().unwrap_or(0);
        let most = sorted.pages_by_color.iter().max().copied().unwrap_or(0);
        let _ = writeln!(
            text,
            "{} sorted in {}: {least} to {most} pages a color, {} without one; sorted again, {} got another color once, {} for good (they were moved)",
            sorted.size,
            sorted.sorted_in.rounded(),
            sorted.without_color,
            sorted.erred,
            sorted.moved
        );
    }
    text
}

fn level_text(level: &Level) -> String {
    let (acts, curve) = match level {
        Level::NoColors { level, reason } | Level::Unsure { level, reason } => {
            return format!("L{level}: not tested: {reason}\n");
        }
        Level::Tested { acts, curve } => (*acts, curve),
    };
    let cache = &curve.cache;
    let mut text = format!(
        "{} of {}, {} ways: {} colors by {}, confidence {:.3}, found in {}\n\n  pages  one color  all colors  ratio\n",
        cache.name(),
        cache.size,
        cache.ways,
        curve.colors,
        curve.how,
        curve.confidence,
        curve.found_in.rounded()
    );
    let widest = curve.points.iter().map(|p| p.same_ns).fold(1.0, f64::max);
    for p in &curve.points {
        let bar = "#".repeat((p.same_ns / widest * 40.0).round() as usize);
        let mark = if p.pages == cache.ways + 1 {
            "<- ways + 1"
        } else {
            ""
        };
        let line = format!(
            "  {:>5}  {:>6.1} ns  {:>7.1} ns  {:>5.2}  {bar} {mark}",
            p.pages, p.same_ns, p.mixed_ns, p.ratio
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let at = curve.ratio_at(cache.ways + 1).unwrap_or(0.0);
    let verdict = if acts {
        "colors act"
    } else {
        "colors do not act"
    };
    let _ = writeln!(
        text,
        "\n{verdict}: {} pages of one color take {at:.2} times as long as of many ({ACTS} is wanted); {}",
        cache.ways + 1,
        match curve.step {
            Some(step) => format!("the ratio stays above that from {step} pages on"),
            None => "the ratio never stays above that".to_owned(),
        }
    );
    text
}
