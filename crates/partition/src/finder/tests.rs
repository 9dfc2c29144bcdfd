//! Colors found in caches in software, which are known.

use super::*;
use crate::probe::fake::Fake;
use model::watch::Silent;

fn geometry(colors: u16, ways: u32) -> Geometry {
    Geometry {
        level: 2,
        size: Bytes::new(u64::from(colors) * u64::from(ways) * PAGE as u64),
        ways,
        colors,
        sliced: false,
        shared_by: model::CpuSet::first(1),
    }
}

fn timed(fake: &mut Fake, cache: &Geometry) -> Result<Found> {
    let pages = fake.colors.len();
    by_timing(
        fake,
        &Search {
            cache,
            pages,
            late: &|| false,
            hopeful: &Cell::new(false),
            watch: &Silent,
        },
    )
}

fn check(fake: &mut Fake, found: &Found, colors: usize) {
    assert_eq!(found.members.len(), colors, "unplaced: {}", found.unplaced);
    let mut seen = Vec::new();
    for set in &found.members {
        let color = fake.colors[set[0] as usize];
        assert!(set.iter().all(|p| fake.colors[*p as usize] == color));
        assert!(!seen.contains(&color), "color {color} was found twice");
        seen.push(color);
    }
}

#[test]
fn all_colors_are_found_without_frame_numbers() {
    for (colors, ways) in [(32, 16), (16, 16), (64, 4), (2, 8)] {
        let pages = pool_pages(&geometry(colors, ways));
        let mut fake = Fake::new(pages, colors, ways as usize, 0, 5);
        let found = timed(&mut fake, &geometry(colors, ways)).unwrap();
        check(&mut fake, &found, usize::from(colors));
        assert_eq!(found.unplaced, 0);
        assert!(found.confidence > 0.999, "{}", found.confidence);
    }
}

#[test]
fn all_colors_are_found_beside_disturbances() {
    let pages = pool_pages(&geometry(32, 16));
    let mut fake = Fake::new(pages, 32, 16, 25, 9);
    let found = timed(&mut fake, &geometry(32, 16)).unwrap();
    check(&mut fake, &found, 32);
    assert!(found.confidence > 0.95, "{}", found.confidence);
}

#[test]
fn a_cache_without_colors_is_refused() {
    // Every page competes with every other, as in a cache hashed by lines; more ways than pages.
    let mut fake = Fake::new(200, 1, 400, 0, 1);
    let e = timed(&mut fake, &geometry(8, 16)).unwrap_err().to_string();
    assert!(e.contains("have no color"), "{e}");
}

#[test]
fn frame_numbers_that_lie_are_not_believed() {
    let mut fake = Fake::new(1280, 32, 16, 0, 2);
    let truth: Vec<Vec<PageId>> = (0..32)
        .map(|c| {
            (0..1280_u32)
                .filter(|p| fake.colors[*p as usize] == c)
                .collect()
        })
        .collect();
    assert_eq!(agreement(&mut fake, &truth, 16), Some(1.0));
    let lies: Vec<Vec<PageId>> = (0..32).map(|c| (c * 40..c * 40 + 40).collect()).collect();
    assert!(agreement(&mut fake, &lies, 16).unwrap() <= 0.6);
}

#[test]
fn caches_that_have_no_colors_say_why() {
    let mut cache = geometry(1, 12);
    assert!(
        colorable(&cache)
            .unwrap_err()
            .to_string()
            .contains("one color")
    );
    cache = geometry(32, 16);
    cache.sliced = true;
    assert!(
        colorable(&cache)
            .unwrap_err()
            .to_string()
            .contains("slices")
    );
    cache.sliced = false;
    cache.size = Bytes::from_mib(96);
    assert!(
        colorable(&cache)
            .unwrap_err()
            .to_string()
            .contains("too large")
    );
}
