//! Equal to Cachegrind: I1, D1 and LL of programs whose accesses Lackey recorded
//! (`data/cachegrind.sh` makes traces and counts).

use cache::{Pages, Rules, Shape, Simulation, trace};
use model::{Bytes, Cache, CacheKind, CpuSet, Platform, Strategy};
use std::path::Path;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// A cache from `size,ways,line`.
fn described(level: u8, kind: CacheKind, text: &str) -> Cache {
    let numbers: Vec<u32> = text.split(',').map(|n| n.parse().unwrap()).collect();
    Cache {
        level,
        kind,
        size: Some(Bytes::new(u64::from(numbers[0]))),
        ways: Some(numbers[1]),
        line: Some(numbers[2]),
        sets: None,
        shared_by: CpuSet::first(1),
        strategy: Strategy::default(),
    }
}

/// Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw, as Cachegrind prints them.
fn counted(simulation: &Simulation) -> [u64; 9] {
    let rows = simulation.rows();
    let of = |name: &str| {
        rows.iter()
            .find(|row| row.part.name == name)
            .unwrap()
            .counts
    };
    let (first, data, last) = (of("L1i"), of("L1d"), of("L2"));
    // The last level is asked for what the first ones had not.
    assert_eq!(last.accesses(), first.misses() + data.misses());
    [
        first.instructions(),
        first.instruction_misses(),
        last.instruction_misses(),
        data.reads(),
        data.read_misses(),
        last.read_misses(),
        data.writes(),
        data.write_misses(),
        last.write_misses(),
    ]
}

#[test]
fn the_counts_of_cachegrind_come_out() {
    let expected = std::fs::read_to_string(data("cachegrind.txt")).unwrap();
    let mut compared = 0;
    for line in expected.lines().filter(|line| !line.starts_with('#')) {
        let (what, counts) = line.split_once(": ").unwrap();
        let words: Vec<&str> = what.split(' ').collect();
        let mut platform = Platform::symmetric(1);
        platform.caches = vec![
            described(1, CacheKind::Instruction, words[1]),
            described(1, CacheKind::Data, words[2]),
            described(2, CacheKind::Unified, words[3]),
        ];
        let shape = Shape::of(&platform.in_order()).unwrap();
        let pages = Pages::as_traced(4096).unwrap();
        let mut simulation = Simulation::new(shape, Rules::Cachegrind, pages, 1).unwrap();
        let file = std::fs::File::open(data(&format!("{}.lackey.gz", words[0]))).unwrap();
        let mut reader = trace::Reader::new(file).unwrap();
        while let Some(access) = reader.read().unwrap() {
            simulation.access(&access).unwrap();
        }
        let counts: Vec<u64> = counts.split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(counted(&simulation)[..], counts, "{what}");
        compared += 1;
    }
    assert_eq!(compared, 12);
}
