//! Colors of this machine, found for real. Skips with a reason where the machine cannot show them.

use model::watch::Silent;
use model::{Bytes, CpuSet};
use partition::frame::pages;
use partition::{Color, finder, selftest};

/// The palette of the first level that has colors, or why there is none.
fn palette() -> Option<partition::Palette> {
    let machine = machine::this_machine().unwrap();
    let cpu = machine.platform.usable().lowest()?;
    for level in machine.platform.data_levels() {
        let Ok(cache) = partition::Geometry::of(&machine.platform, level, cpu) else {
            continue;
        };
        if finder::colorable(&cache).is_err() {
            continue;
        }
        match partition::find(&machine.platform, level, cpu, &Silent) {
            Ok(palette) => return Some(palette),
            Err(e) => eprintln!("skipped: {e}"),
        }
    }
    eprintln!("skipped: no level of this machine shows colors");
    None
}

#[test]
fn colors_are_found_agree_with_themselves_and_act() {
    let Some(palette) = palette() else { return };
    if palette.confidence < 0.9 {
        eprintln!(
            "skipped: the machine is too busy, confidence {}",
            palette.confidence
        );
        return;
    }
    assert_eq!(palette.colors(), palette.cache.colors);

    // Its own pages are sorted back into their colors.
    let one = CpuSet::from_iter([palette.cpu]);
    for color in [0, palette.colors() - 1].map(Color) {
        let sorted = palette.sort(&palette.members(color), &one, &Silent).unwrap();
        let other = sorted.iter().flatten().filter(|c| **c != color).count();
        assert!(
            other * 20 <= sorted.len(),
            "{other} of {} are of another color",
            sorted.len()
        );
    }

    // Sorting twice gives the same colors.
    let area = machine::memory::Area::map(Bytes::from_mib(2)).unwrap();
    let first = palette.sort(&pages(&area), &one, &Silent).unwrap();
    let second = palette.sort(&pages(&area), &one, &Silent).unwrap();
    let differ = first
        .iter()
        .zip(&second)
        .filter(|(a, b)| a.is_some() && b.is_some() && a != b)
        .count();
    assert!(differ * 50 <= first.len(), "{differ} of {} differ", first.len());

    let curve = selftest::curve(&palette, 5, &Silent).unwrap();
    let beyond = curve.ratio_at(palette.cache.ways + 4).unwrap_or(0.0);
    let within = curve.ratio_at(palette.cache.ways / 2).unwrap_or(0.0);
    assert!(beyond > within, "{beyond} is not above {within}");
}
