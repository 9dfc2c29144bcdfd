//! `warmset color find` and `warmset color selftest`: which color has a page, and does it matter?

use crate::Answer;
use crate::console::{Console, Format, print_json, show};
use crate::options::{Printed, new_file};
use machine::memory::Area;
use machine::settings::Settings;
use model::watch::Watch;
use model::{Bytes, CpuId, CpuSet, Duration, Error, Platform, Result, files};
use partition::frame::{Page, pages};
use partition::palette::SURE;
use partition::selftest::{self, ACTS, Curve};
use partition::{Geometry, How, Palette, finder};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

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

Example: warmset color selftest -o colors.svg";

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
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
    #[command(flatten)]
    printed: Printed,
}

/// A locked page may be moved unless this is 0.
const COMPACTION: &str = "/proc/sys/vm/compact_unevictable_allowed";

/// Keeps locked pages from moving for as long as the settings live, where that is permitted.
pub fn keep_pages(console: &Console) -> Settings {
    let mut settings = Settings::new();
    if let Err(e) = settings.write(Path::new(COMPACTION), "0") {
        console.note(&format!(
            "note: pages may be moved meanwhile, which is noticed but not prevented: {e}"
        ));
    }
    settings
}

fn processor(platform: &Platform, asked: Option<u32>) -> Result<CpuId> {
    match asked {
        Some(cpu) if platform.usable().contains(CpuId(cpu)) => Ok(CpuId(cpu)),
        Some(cpu) => Err(Error::new(format!("processor {cpu} cannot be used"))
            .at("--cpu")
            .remedy(format!("choose among {}", platform.usable()))),
        None => platform
            .usable()
            .lowest()
            .ok_or_else(|| Error::new("no processor may be used")),
    }
}

/// The level asked for, or the first one that has colors.
pub fn level_with_colors(platform: &Platform, cpu: CpuId, asked: Option<u8>) -> Result<u8> {
    if let Some(level) = asked {
        return Ok(level);
    }
    platform
        .data_levels()
        .into_iter()
        .find(|level| Geometry::of(platform, *level, cpu).is_ok_and(|g| finder::colorable(&g).is_ok()))
        .ok_or_else(|| {
            Error::new("no cache of this machine has colors")
                .remedy("`warmset color selftest` says why, level by level")
        })
}

/// The cache that is partitioned: the level asked for, or the first one that has colors.
///
/// # Errors
/// There is none, or the machine does not tell how it is made.
pub fn cache_with_colors(platform: &Platform, level: Option<u8>, cpu: Option<u32>) -> Result<Geometry> {
    let cpu = processor(platform, cpu)?;
    let cache = Geometry::of(platform, level_with_colors(platform, cpu, level)?, cpu)?;
    finder::colorable(&cache)?;
    Ok(cache)
}

/// Finds colors, however sure they are.
fn search(platform: &Platform, level: Option<u8>, cpu: Option<u32>, console: &Console) -> Result<Palette> {
    let cpu = processor(platform, cpu)?;
    let level = level_with_colors(platform, cpu, level)?;
    partition::find(platform, level, cpu, console)
}

/// Finds colors to give to programs.
///
/// # Errors
/// They cannot be found, or not be told apart for sure.
pub fn find_palette(
    platform: &Platform,
    level: Option<u8>,
    cpu: Option<u32>,
    console: &Console,
) -> Result<Palette> {
    search(platform, level, cpu, console)?.sure()
}

/// Processors whose caches are like the palette's: they may sort too.
pub fn alike(platform: &Platform, palette: &Palette) -> CpuSet {
    let like = |cpu: &CpuId| {
        Geometry::of(platform, palette.cache.level, *cpu).is_ok_and(|g| {
            (g.size, g.ways, g.colors) == (palette.cache.size, palette.cache.ways, palette.cache.colors)
        })
    };
    platform.usable().iter().filter(like).collect()
}

#[derive(Serialize)]
struct Found {
    cache: Geometry,
    colors: u16,
    how: How,
    confidence: f64,
    /// May they be given to programs?
    sure: bool,
    unplaced: usize,
    #[serde(rename = "found_in_ns", serialize_with = "model::time::ns::serialize")]
    found_in: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    sorted: Option<Sorted>,
}

#[derive(Serialize)]
struct Sorted {
    size: Bytes,
    #[serde(rename = "sorted_in_ns", serialize_with = "model::time::ns::serialize")]
    sorted_in: Duration,
    pages_by_color: Vec<usize>,
    without_color: usize,
    /// Pages that got another color later, and kept it: their frames were moved meanwhile.
    moved: usize,
    /// Pages that got another color once: a measurement erred.
    erred: usize,
}

/// `warmset color find`.
pub fn find(args: &FindArgs) -> Result<Answer> {
    let platform = machine::this_machine()?.platform;
    let console = Console::new()?;
    let settings = keep_pages(&console);
    let palette = search(&platform, args.level, args.cpu, &console)?;
    let (sorted, stopped) = match args.sort.map(|size| sort(&platform, &palette, size, &console)) {
        None => (None, false),
        Some(Ok(sorted)) => (Some(sorted), false),
        // The colors were found by then.
        Some(Err(_)) if console.stopped() => (None, true),
        Some(Err(e)) => return Err(e),
    };
    console.finish();
    drop(settings);
    let found = Found {
        cache: palette.cache.clone(),
        colors: palette.colors(),
        how: palette.how,
        confidence: palette.confidence,
        sure: palette.is_sure(),
        unplaced: palette.unplaced,
        found_in: palette.took,
        sorted,
    };
    match args.printed.format() {
        Format::Json => print_json(&found)?,
        Format::Table => show(&found_text(&found))?,
    }
    if stopped {
        return Err(
            Error::new("stopped before all memory was sorted; the colors that were found are shown")
                .remedy("run it again, or without `--sort`"),
        );
    }
    Ok(if found.sure { Answer::Yes } else { Answer::No })
}

fn sort(platform: &Platform, palette: &Palette, size: Bytes, console: &Console) -> Result<Sorted> {
    let area = Area::map(size).map_err(|e| e.at("--sort"))?;
    let pages = pages(&area);
    let on = alike(platform, palette);
    let began = Instant::now();
    let first = palette.sort(&pages, &on, console)?;
    let sorted_in = Duration::from_nanos(began.elapsed().as_nanos() as u64);
    // What a second sorting says otherwise is asked a third time: was the page moved, or did one of both err?
    let second = palette.sort(&pages, &on, console)?;
    let differ: Vec<usize> = (0..pages.len())
        .filter(|p| first[*p].is_some() && second[*p].is_some() && first[*p] != second[*p])
        .collect();
    let asked: Vec<Page<'_>> = differ.iter().map(|p| pages[*p]).collect();
    let third = palette.sort(&asked, &on, console)?;
    let moved = differ
        .iter()
        .zip(&third)
        .filter(|(p, third)| second[**p] == **third)
        .count();
    let mut pages_by_color = vec![0; usize::from(palette.colors())];
    for color in first.iter().flatten() {
        pages_by_color[color.index()] += 1;
    }
    Ok(Sorted {
        size,
        sorted_in,
        pages_by_color,
        without_color: first.iter().filter(|c| c.is_none()).count(),
        moved,
        erred: differ.len() - moved,
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

/// What was seen of a level.
#[derive(Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
enum Level {
    Tested {
        acts: bool,
        #[serde(flatten)]
        curve: Curve,
    },
    NoColors {
        level: u8,
        reason: String,
    },
    /// Its colors could not be told apart for sure.
    Unsure {
        level: u8,
        reason: String,
    },
}

/// `warmset color selftest`.
pub fn selftest(args: &SelftestArgs) -> Result<Answer> {
    let platform = machine::this_machine()?.platform;
    let cpu = processor(&platform, args.cpu)?;
    let console = Console::new()?;
    let settings = keep_pages(&console);
    let levels = args.level.map_or_else(|| platform.data_levels(), |l| vec![l]);
    let mut seen = Vec::new();
    let mut stopped = false;
    for level in levels {
        let cache = match Geometry::of(&platform, level, cpu) {
            Ok(cache) => cache,
            Err(e) if args.level.is_some() => return Err(e),
            Err(e) => {
                seen.push(Level::NoColors {
                    level,
                    reason: e.to_string(),
                });
                continue;
            }
        };
        if let Err(e) = finder::colorable(&cache) {
            seen.push(Level::NoColors {
                level,
                reason: e.cause().to_owned(),
            });
            continue;
        }
        match search(&platform, Some(level), Some(cpu.0), &console) {
            Ok(palette) if !palette.is_sure() => seen.push(Level::Unsure {
                level,
                reason: palette
                    .sure()
                    .map_or_else(|e| e.cause().to_owned(), |_| String::new()),
            }),
            Ok(palette) => match selftest::curve(&palette, args.repeats as usize, &console) {
                Ok(curve) => seen.push(Level::Tested {
                    acts: curve.acts(),
                    curve,
                }),
                Err(_) if console.stopped() && !seen.is_empty() => {
                    stopped = true;
                    break;
                }
                Err(e) => return Err(e),
            },
            Err(e) if console.stopped() && seen.is_empty() => return Err(e),
            Err(_) if console.stopped() => {
                stopped = true;
                break;
            }
            Err(e) => seen.push(Level::NoColors {
                level,
                reason: e.cause().to_owned(),
            }),
        }
    }
    console.finish();
    drop(settings);
    if let Some(path) = args.output.as_ref().filter(|_| !stopped) {
        draw(path, &seen)?;
    }
    match args.printed.format() {
        Format::Json => {
            #[derive(Serialize)]
            struct Tested<'a> {
                levels: &'a [Level],
            }
            print_json(&Tested { levels: &seen })?;
        }
        Format::Table => show(&seen.iter().map(level_text).collect::<String>())?,
    }
    if stopped {
        return Err(
            Error::new("stopped before all levels were tested; those that were are shown")
                .remedy("run it again for the rest, or name one with `--level`"),
        );
    }
    // At least one cache with colors, and colors act wherever there are some.
    let tested: Vec<bool> = seen
        .iter()
        .filter_map(|l| match l {
            Level::Tested { acts, .. } => Some(*acts),
            Level::Unsure { .. } => Some(false),
            Level::NoColors { .. } => None,
        })
        .collect();
    Ok(if !tested.is_empty() && tested.iter().all(|acts| *acts) {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn draw(path: &Path, seen: &[Level]) -> Result<()> {
    let curves: Vec<report::colors::ColorCurve> = seen
        .iter()
        .filter_map(|level| match level {
            Level::Tested { curve, .. } => Some(report::colors::ColorCurve {
                cache: curve.cache.name(),
                ways: curve.cache.ways,
                colors: format!("{} colors, by {}", curve.colors, curve.how),
                points: curve
                    .points
                    .iter()
                    .map(|p| (p.pages, p.same_ns, p.mixed_ns))
                    .collect(),
            }),
            Level::NoColors { .. } | Level::Unsure { .. } => None,
        })
        .collect();
    let figure = report::colors::figure("colors", &curves)?.ok_or_else(|| {
        Error::new("there is nothing to draw: no level was tested")
            .at(path.display())
            .remedy("run it without `-o` to see why")
    })?;
    files::write(path, figure.to_svg())
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
    let verdict = if acts { "colors act" } else { "colors do not act" };
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
