//! How long are colors true? Finds those of the first cache that has some, and asks them again: at
//! once, minute by minute, and while other memory is filled and given back. Frames that moved are
//! counted where the system tells them.
//!
//! `cargo run --release -p warmset-partition --example lasting -- MINUTES GIB`

use model::watch::Silent;
use model::{Bytes, CpuSet, Error, Result};
use partition::frame::FrameNumbers;
use partition::{Color, Geometry, Palette, finder};
use std::time::{Duration, Instant};

fn frames(palette: &Palette) -> Vec<Option<u64>> {
    let pages = (0..palette.colors()).flat_map(|c| palette.members(Color(c)));
    FrameNumbers::of_this_process()
        .map_or_else(Vec::new, |numbers| numbers.of(&pages.collect::<Vec<_>>()))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse::<u64>().ok());
    let minutes = arguments.next().unwrap_or(2);
    let gib = arguments.next().unwrap_or(1);
    let platform = machine::this_machine()?.platform;
    let cpu = platform
        .usable()
        .lowest()
        .ok_or_else(|| Error::new("no processor to run on"))?;
    let level = platform
        .data_levels()
        .into_iter()
        .find(|level| {
            Geometry::of(&platform, *level, cpu).is_ok_and(|g| finder::colorable(&g).is_ok())
        })
        .ok_or_else(|| Error::new("no cache of this machine has colors"))?;
    let palette = partition::find(&platform, level, cpu, &Silent)?.sure()?;
    machine::realtime::pin(&CpuSet::from_iter([cpu]))?;
    let first = frames(&palette);
    let began = Instant::now();
    let ask = |when: &str| {
        let checked = palette.verify();
        let moved = frames(&palette)
            .iter()
            .zip(&first)
            .filter(|(a, b)| a != b)
            .count();
        println!(
            "{:>6.1} s, {when}: {} of {} colors failed once, {} for good; {moved} of {} frames moved",
            began.elapsed().as_secs_f64(),
            checked.once,
            checked.asked,
            checked.broken.len(),
            first.len()
        );
    };
    for _ in 0..20 {
        ask("at once");
    }
    for _ in 0..minutes * 6 {
        std::thread::sleep(Duration::from_secs(10));
        ask("idle");
    }
    for _ in 0..3 {
        let area = machine::memory::Area::map(Bytes::from_mib(1024 * gib))?;
        ask("other memory filled");
        drop(area);
        ask("and given back");
    }
    Ok(())
}
