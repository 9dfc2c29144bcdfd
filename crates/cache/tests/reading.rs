//! Caches that nothing is ever written in need not look at each other: their counts are the same.

use cache::{Hierarchy, Kind, Pages, Shape};
use model::Platform;
use model::strategy::Prefetch;
use proptest::prelude::*;

/// The caches of a platform with small ones, so that lines are replaced.
fn caches(name: &str) -> (Shape, Hierarchy) {
    looking_ahead(name, &[])
}

/// The same with prefetchers in the caches of some levels.
fn looking_ahead(name: &str, ahead: &[(u8, Prefetch)]) -> (Shape, Hierarchy) {
    let mut shape = Shape::of(&Platform::builtin(name).unwrap()).unwrap();
    for part in &mut shape.parts {
        part.sets = 4 << part.level;
        part.ways = part.ways.min(4);
        if let Some((_, how)) = ahead.iter().find(|(level, _)| *level == part.level) {
            part.prefetch = Some(*how);
        }
    }
    let pages = Pages::as_traced(4096).unwrap();
    let caches = Hierarchy::new(&shape, pages, 1).unwrap();
    (shape, caches)
}

proptest! {
    #[test]
    fn counts_are_those_of_coherent_caches(
        platform in prop_oneof![Just("core-i7"), Just("xeon-l7455"), Just("i7-2600")],
        ahead in prop::collection::vec(
            (1u8..4, prop_oneof![Just(Prefetch::NextLine), Just(Prefetch::Stride)]),
            0..3,
        ),
        walks in prop::collection::vec(
            (0usize..4, 0u64..700, 0u64..4, 1u64..20, any::<bool>()),
            1..400,
        ),
    ) {
        let (shape, mut coherent) = looking_ahead(platform, &ahead);
        let mut reading = looking_ahead(platform, &ahead).1;
        reading.reads_only();
        let lines = walks.into_iter().flat_map(|(cpu, first, stride, count, instruction)| {
            (0..count).map(move |n| (cpu, first + n * stride, instruction))
        });
        for (cpu, line, instruction) in lines {
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

proptest! {
    /// A list of addresses is read as the same reads one by one, whether lines that leave were
    /// changed or not, and whatever the other processors have.
    #[test]
    fn a_list_is_read_as_its_reads_one_by_one(
        platform in prop_oneof![Just("core-i7"), Just("pentium-pro"), Just("i7-2600")],
        writes in any::<bool>(),
        promised in any::<bool>(),
        parts in prop::collection::vec(
            (
                0usize..4,
                prop::collection::vec((0u64..700, any::<bool>()), 0..40),
                prop::collection::vec(0u64..44_800, 0..300),
            ),
            1..6,
        ),
    ) {
        let (shape, mut listed) = caches(platform);
        let mut single = caches(platform).1;
        if promised && !writes {
            listed.reads_only();
        }
        for (cpu, before, list) in parts {
            let cpu = shape.cpus[cpu % shape.cpus.len()];
            let port = listed.port(cpu, Kind::Read).unwrap();
            for (line, write) in before {
                let kind = if write && writes { Kind::Write } else { Kind::Read };
                for caches in [&mut listed, &mut single] {
                    caches.access(port, kind, line * 64, 8).unwrap();
                }
            }
            listed.load(port, &list).unwrap();
            for address in list {
                single.access(port, Kind::Read, address, 1).unwrap();
            }
        }
        for part in 0..shape.parts.len() {
            prop_assert_eq!(listed.counts(part), single.counts(part));
        }
        prop_assert_eq!(listed.memory(), single.memory());
        prop_assert_eq!(listed.accesses(), single.accesses());
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

#[test]
fn an_access_tells_that_another_processor_gave_it_a_changed_line() {
    let (shape, mut caches) = caches("core-i7");
    let [first, other] = [0, 1].map(|cpu| caches.port(shape.cpus[cpu], Kind::Read).unwrap());
    let mut given = |port, kind| caches.access(port, kind, 64, 8).unwrap().given;
    assert!(!given(first, Kind::Write), "nobody had it");
    assert!(given(other, Kind::Read), "the first one had changed it");
    assert!(!given(other, Kind::Read), "it has it now");
    assert!(!given(first, Kind::Read), "both share it");
    assert!(!given(other, Kind::Write), "nobody had changed it since");
    assert!(given(first, Kind::Modify));
}
