//! How much longer a page takes that was driven out than one that is there, by which lines of it
//! are read.
//!
//!     cargo run --release -p warmset-partition --example lines [SECONDS]
//!
//! On the first level that has colors: pages against others of their color, and of another one, in
//! stretches of a second; all lines and few lines in turn, medians of every 50 ms.

use machine::clock::{Clock, Monotonic};
use model::watch::Silent;
use model::{CpuSet, Error, Result};
use partition::probe::{Judge, Lines, PageId, Timed, calibrate};
use partition::{Color, Palette, find};
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(20);
    let platform = machine::this_machine()?.platform;
    let cpu = platform
        .usable()
        .lowest()
        .ok_or_else(|| Error::new("no processor"))?;
    let found = |level| {
        find(&platform, level, cpu, &Silent)
            .and_then(Palette::sure)
            .ok()
    };
    let palette = platform
        .data_levels()
        .into_iter()
        .find_map(found)
        .ok_or_else(|| Error::new("no level has colors that are known for sure"))?;
    machine::realtime::pin(&CpuSet::from_iter([palette.cpu]))?;
    #[cfg(target_arch = "x86_64")]
    if let Ok(tsc) = machine::clock::counter() {
        return measure(tsc, &palette, seconds);
    }
    measure(Monotonic, &palette, seconds)
}

fn measure<C: Clock>(clock: C, palette: &Palette, seconds: u64) -> Result<()> {
    const BELOW: usize = 16;
    let cache = &palette.cache;
    let mut pages = Vec::new();
    let members: Vec<_> = (0..palette.colors())
        .map(|c| palette.members(Color(c)))
        .collect();
    let mut sets: Vec<Vec<PageId>> = vec![Vec::new(); members.len()];
    // Color after color, one page of each: what stands together must not drive each other out.
    for place in 0..members.iter().map(Vec::len).max().unwrap_or(0) {
        for (color, members) in members.iter().enumerate() {
            if let Some(page) = members.get(place) {
                sets[color].push(pages.len() as PageId);
                pages.push(*page);
            }
        }
    }
    let size = cache.ways as usize + 2;
    for lines in [Lines::Whole, Lines::Few] {
        let times = calibrate(clock, &pages, lines, BELOW, cache)?;
        let mut judge = Timed::new(clock, pages.clone(), times, cache);
        let mut ratios = Vec::new();
        let (end, mut turn) = (Instant::now() + Duration::from_secs(seconds), 0);
        while Instant::now() < end {
            let (mut own, mut other) = (Vec::new(), Vec::new());
            let bin = Instant::now() + Duration::from_millis(50);
            while Instant::now() < bin {
                turn += 1;
                let color = turn % sets.len();
                let Some(page) = sets[color].get(size + turn / sets.len() % 3).copied() else {
                    continue;
                };
                own.push(judge.ticks(page, &sets[color][..size]));
                let set = &sets[(color + 1 + turn / 7 % (sets.len() - 1)) % sets.len()];
                other.push(judge.ticks(page, &set[..size.min(set.len())]));
            }
            if let (Some(own), Some(other)) = (median(own), median(other)) {
                ratios.push(own as f64 / other.max(1) as f64);
            }
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| {
            ratios
                .get((ratios.len() as f64 * part) as usize)
                .copied()
                .unwrap_or(0.0)
        };
        println!(
            "{lines:?} lines: a page that was driven out takes {:.2} to {:.2} times as long, {:.2} at the median ({} x 50 ms; without the outer 2 % each)",
            at(0.02),
            at(0.98),
            at(0.5),
            ratios.len()
        );
    }
    Ok(())
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
