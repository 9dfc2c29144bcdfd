//! Finds page colors, sorts memory by them, and tests whether they act.

use machine::memory::Area;
use machine::settings::Settings;
use model::watch::Watch;
use model::{Bytes, CpuId, CpuSet, Duration, Error, Platform, Result, files};
use partition::frame::{Page, pages};
use partition::selftest::{self, Curve};
use partition::{Geometry, How, Palette, finder};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Which colors are searched. By default those of the first cache that has some, on the first
/// processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The level of the cache.
    pub level: Option<u8>,
    /// The processor whose cache it is.
    pub cpu: Option<u32>,
    /// Sort so much memory by color, and check it against a second sorting.
    pub sort: Option<Bytes>,
}

/// What is tested.
#[derive(Clone, Debug)]
pub struct TestOptions {
    /// This level only; `None`: every level.
    pub level: Option<u8>,
    /// The processor whose caches they are; `None`: the first one.
    pub cpu: Option<u32>,
    /// Pairs of walks at each number of pages. Default: 15.
    pub repeats: u32,
    /// Draw the curves into this file, as SVG.
    pub picture: Option<PathBuf>,
}

impl Default for TestOptions {
    fn default() -> Self {
        TestOptions {
            level: None,
            cpu: None,
            repeats: 15,
            picture: None,
        }
    }
}

/// A locked page may be moved unless this is 0.
const COMPACTION: &str = "/proc/sys/vm/compact_unevictable_allowed";

/// Keeps locked pages from moving for as long as the settings live, where that is permitted.
pub fn keep_pages(watch: &dyn Watch) -> Settings {
    let mut settings = Settings::new();
    if let Err(e) = settings.write(Path::new(COMPACTION), "0") {
        watch.note(&format!(
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
        .find(|level| {
            Geometry::of(platform, *level, cpu).is_ok_and(|g| finder::colorable(&g).is_ok())
        })
        .ok_or_else(|| {
            Error::new("no cache of this machine has colors")
                .remedy("`warmset color selftest` says why, level by level")
        })
}

/// The cache that is partitioned: the level asked for, or the first one that has colors.
///
/// # Errors
/// There is none, or the machine does not tell how it is made.
pub fn cache_with_colors(
    platform: &Platform,
    level: Option<u8>,
    cpu: Option<u32>,
) -> Result<Geometry> {
    let cpu = processor(platform, cpu)?;
    let cache = Geometry::of(platform, level_with_colors(platform, cpu, level)?, cpu)?;
    finder::colorable(&cache)?;
    Ok(cache)
}

/// Finds colors, however sure they are.
fn search(
    platform: &Platform,
    level: Option<u8>,
    cpu: Option<u32>,
    watch: &dyn Watch,
) -> Result<Palette> {
    let cpu = processor(platform, cpu)?;
    let level = level_with_colors(platform, cpu, level)?;
    partition::find(platform, level, cpu, watch)
}

/// Finds colors to give to programs.
///
/// # Errors
/// They cannot be found, or not be told apart for sure.
pub fn find_palette(
    platform: &Platform,
    level: Option<u8>,
    cpu: Option<u32>,
    watch: &dyn Watch,
) -> Result<Palette> {
    search(platform, level, cpu, watch)?.sure()
}

/// Processors whose caches are like the palette's: they may sort too.
pub fn alike(platform: &Platform, palette: &Palette) -> CpuSet {
    let like = |cpu: &CpuId| {
        Geometry::of(platform, palette.cache.level, *cpu).is_ok_and(|g| {
            (g.size, g.ways, g.colors)
                == (palette.cache.size, palette.cache.ways, palette.cache.colors)
        })
    };
    platform.usable().iter().filter(like).collect()
}

/// Colors that were found.
#[derive(Serialize)]
pub struct Found {
    /// The cache.
    pub cache: Geometry,
    /// How many there are.
    pub colors: u16,
    /// How they were found.
    pub how: How,
    /// The part of the pages that agree with the colors, from 0 to 1.
    pub confidence: f64,
    /// Whether they may be given to programs.
    pub sure: bool,
    /// Pages that got no color.
    pub unplaced: usize,
    /// How long it took.
    #[serde(rename = "found_in_ns", serialize_with = "model::time::ns::serialize")]
    pub found_in: Duration,
    /// Memory that was sorted by them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorted: Option<Sorted>,
    /// The user stopped it before all memory was sorted.
    #[serde(skip)]
    pub stopped: bool,
}

/// Memory that was sorted by color, twice.
#[derive(Serialize)]
pub struct Sorted {
    /// How much.
    pub size: Bytes,
    /// How long the first sorting took.
    #[serde(rename = "sorted_in_ns", serialize_with = "model::time::ns::serialize")]
    pub sorted_in: Duration,
    /// By color, how many pages have it.
    pub pages_by_color: Vec<usize>,
    /// Pages without a color.
    pub without_color: usize,
    /// Pages that got another color later, and kept it: their frames were moved meanwhile.
    pub moved: usize,
    /// Pages that got another color once: a measurement erred.
    pub erred: usize,
}

impl Found {
    /// Is all memory sorted that was asked for?
    ///
    /// # Errors
    /// The user stopped it.
    pub fn complete(&self) -> Result<()> {
        match self.stopped {
            true => Err(Error::new(
                "stopped before all memory was sorted; the colors that were found are shown",
            )
            .remedy("run it again, or without `--sort`")),
            false => Ok(()),
        }
    }
}

/// Finds the colors of a cache of this machine, and sorts memory by them where that is asked for.
///
/// # Errors
/// They cannot be found; the user stopped it before they were.
pub fn find(options: &Options, watch: &dyn Watch) -> Result<Found> {
    let platform = machine::this_machine()?.platform;
    let settings = keep_pages(watch);
    let palette = search(&platform, options.level, options.cpu, watch)?;
    let (sorted, stopped) = match options
        .sort
        .map(|size| sort(&platform, &palette, size, watch))
    {
        None => (None, false),
        Some(Ok(sorted)) => (Some(sorted), false),
        // The colors were found by then.
        Some(Err(_)) if watch.stopped() => (None, true),
        Some(Err(e)) => return Err(e),
    };
    watch.finish();
    drop(settings);
    Ok(Found {
        cache: palette.cache.clone(),
        colors: palette.colors(),
        how: palette.how,
        confidence: palette.confidence,
        sure: palette.is_sure(),
        unplaced: palette.unplaced,
        found_in: palette.took,
        sorted,
        stopped,
    })
}

fn sort(platform: &Platform, palette: &Palette, size: Bytes, watch: &dyn Watch) -> Result<Sorted> {
    let area = Area::map(size).map_err(|e| e.at("--sort"))?;
    let pages = pages(&area);
    let on = alike(platform, palette);
    let began = Instant::now();
    let first = palette.sort(&pages, &on, watch)?;
    let sorted_in = Duration::from_nanos(began.elapsed().as_nanos() as u64);
    // What a second sorting says otherwise is asked a third time: was the page moved, or did one of
    // both err?
    let second = palette.sort(&pages, &on, watch)?;
    let differ: Vec<usize> = (0..pages.len())
        .filter(|p| first[*p].is_some() && second[*p].is_some() && first[*p] != second[*p])
        .collect();
    let asked: Vec<Page<'_>> = differ.iter().map(|p| pages[*p]).collect();
    let third = palette.sort(&asked, &on, watch)?;
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

/// What was seen of a level.
#[derive(Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Level {
    /// Access times were measured.
    Tested {
        /// Whether pages of one color drive each other out.
        acts: bool,
        /// The access times.
        #[serde(flatten)]
        curve: Curve,
    },
    /// The level has no colors, or none that can be found.
    NoColors {
        /// The level.
        level: u8,
        /// Why.
        reason: String,
    },
    /// Its colors could not be told apart for sure.
    Unsure {
        /// The level.
        level: u8,
        /// Why.
        reason: String,
    },
}

/// What a test saw, level by level.
#[derive(Serialize)]
pub struct Tested {
    /// By level.
    pub levels: Vec<Level>,
    /// The user stopped it before all levels were tested.
    #[serde(skip)]
    pub stopped: bool,
}

impl Tested {
    /// Do colors act? At least one cache has colors, and they act wherever there are some.
    pub fn acts(&self) -> bool {
        let tested = self.levels.iter().filter_map(|l| match l {
            Level::Tested { acts, .. } => Some(*acts),
            Level::Unsure { .. } => Some(false),
            Level::NoColors { .. } => None,
        });
        let mut any = false;
        let all = tested.inspect(|_| any = true).all(|acts| acts);
        any && all
    }

    /// Are all levels tested?
    ///
    /// # Errors
    /// The user stopped it.
    pub fn complete(&self) -> Result<()> {
        match self.stopped {
            true => Err(Error::new(
                "stopped before all levels were tested; those that were are shown",
            )
            .remedy("run it again for the rest, or name one with `--level`")),
            false => Ok(()),
        }
    }
}

/// Tests whether colors act: measures access times against the number of pages of one color and of
/// many, level by level. A picture is drawn when all levels are tested.
///
/// # Errors
/// The level that is asked for has no colors that can be found; the picture cannot be drawn; the
/// user stopped it before anything was tested.
pub fn selftest(options: &TestOptions, watch: &dyn Watch) -> Result<Tested> {
    let platform = machine::this_machine()?.platform;
    let cpu = processor(&platform, options.cpu)?;
    let settings = keep_pages(watch);
    let levels = options
        .level
        .map_or_else(|| platform.data_levels(), |l| vec![l]);
    let mut seen = Vec::new();
    let mut stopped = false;
    for level in levels {
        let cache = match Geometry::of(&platform, level, cpu) {
            Ok(cache) => cache,
            Err(e) if options.level.is_some() => return Err(e),
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
        match search(&platform, Some(level), Some(cpu.0), &watch) {
            Ok(palette) if !palette.is_sure() => seen.push(Level::Unsure {
                level,
                reason: palette
                    .sure()
                    .map_or_else(|e| e.cause().to_owned(), |_| String::new()),
            }),
            Ok(palette) => match selftest::curve(&palette, options.repeats as usize, &watch) {
                Ok(curve) => seen.push(Level::Tested {
                    acts: curve.acts(),
                    curve,
                }),
                Err(_) if watch.stopped() && !seen.is_empty() => {
                    stopped = true;
                    break;
                }
                Err(e) => return Err(e),
            },
            Err(e) if watch.stopped() && seen.is_empty() => return Err(e),
            Err(_) if watch.stopped() => {
                stopped = true;
                break;
            }
            Err(e) => seen.push(Level::NoColors {
                level,
                reason: e.cause().to_owned(),
            }),
        }
    }
    watch.finish();
    drop(settings);
    if let Some(path) = options.picture.as_ref().filter(|_| !stopped) {
        draw(path, &seen)?;
    }
    Ok(Tested {
        levels: seen,
        stopped,
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
            .remedy("run it without `--picture` to see why")
    })?;
    files::write(path, figure.to_svg())
}
