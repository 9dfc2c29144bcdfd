//! Caches that nothing is ever written in need not look at each other: their counts are the same.

use cache::{Hierarchy, Kind, Pages, Shape};
use model::Platform;
use proptest::prelude::*;

/// The caches of a platform with small ones, so that lines are replaced.
fn caches(name: &str) -> (Shape, Hierarchy) {
    let mut shape = Shape::of(&Platform::builtin(name).unwrap()).unwrap();
    for part in &mut shape.parts {
        part.sets = 4 << part.level;
        part.ways = part.ways.min(4);
    }
    let pages = Pages::as_traced(4096).unwrap();
    let caches = Hierarchy::new(&shape, pages, 1).unwrap();
    (shape, caches)
}

proptest! {
    #[test]
    fn counts_are_those_of_coherent_caches(
        platform in prop_oneof![Just("core-i7"), Just("xeon-l7455"), Just("i7-2600")],
        accesses in prop::collection::vec((0usize..4, 0u64..700, any::<bool>()), 1..2000),
    ) {
        let (shape, mut coherent) = caches(platform);
        let mut reading = caches(platform).1;
        reading.reads_only();
        for (cpu, line, instruction) in accesses {
            let kind = if instruction { Kind::Instruction } else { Kind::Read };
            let cpu = shape.cpus[cpu];
            let port = coherent.port(cpu, kind).unwrap();
            let one = coherent.access(port, kind, line * 64, 8).unwrap();
            let port = reading.port(cpu, kind).unwrap();
            prop_assert_eq!(one, reading.access(port, kind, line * 64, 8).unwrap());
        }
        for part in 0..shape.parts.len() {
            prop_assert_eq!(coherent.counts(part), reading.counts(part));
        }
        prop_assert_eq!(coherent.memory().lines_read, reading.memory().lines_read);
    }
}

#[test]
fn a_write_in_them_is_refused() {
    let (shape, mut caches) = caches("core-i7");
    caches.reads_only();
    let port = caches.port(shape.cpus[0], Kind::Write).unwrap();
    let e = caches
        .access(port, Kind::Write, 0, 8)
        .unwrap_err()
        .to_string();
    assert!(e.contains("for reading only"), "{e}");
}
