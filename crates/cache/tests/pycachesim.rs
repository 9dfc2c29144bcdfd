//! Equal to pycachesim: random and recorded traces, through three levels with every write strategy
//! that it has (`data/pycachesim.py` makes the counts).

use cache::{Access, Kind, Pages, Rules, Shape, Simulation, trace};
use model::strategy::{Replacement, Writing};
use model::{Bytes, Cache, CacheKind, CpuId, CpuSet, Platform, Strategy};
use std::path::Path;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// The generator of `data/pycachesim.py`.
fn random(count: u64, span: u64, seed: u64) -> Vec<Access> {
    let mut x = seed;
    let mut next = || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let kind = match x >> 20 & 3 {
            0 => Kind::Write,
            _ => Kind::Read,
        };
        Access {
            cpu: CpuId(0),
            kind,
            address: (x >> 33) % span,
            size: 1 << (x >> 28 & 3),
        }
    };
    (0..count).map(|_| next()).collect()
}

/// Accesses to data of a recorded trace.
fn recorded(name: &str) -> Vec<Access> {
    let file = std::fs::File::open(data(&format!("{name}.lackey.gz"))).unwrap();
    let mut reader = trace::Reader::new(file).unwrap();
    let mut accesses = Vec::new();
    while let Some(access) = reader.read().unwrap() {
        accesses.extend((access.kind != Kind::Instruction).then_some(access));
    }
    accesses
}

fn accesses(name: &str) -> Vec<Access> {
    match name.split(':').collect::<Vec<_>>()[..] {
        ["random", count, span] => {
            let seed = if span == "16384" { 1 } else { 2 };
            random(count.parse().unwrap(), span.parse().unwrap(), seed)
        }
        _ => recorded(name),
    }
}

/// A level from `sets,ways,back,allocate`.
fn described(level: u8, replacement: Replacement, text: &str) -> Cache {
    let numbers: Vec<u32> = text.split(',').map(|n| n.parse().unwrap()).collect();
    Cache {
        level,
        kind: CacheKind::Unified,
        size: Some(Bytes::new(u64::from(numbers[0] * numbers[1] * 64))),
        ways: Some(numbers[1]),
        line: Some(64),
        sets: Some(numbers[0]),
        shared_by: CpuSet::first(1),
        strategy: Strategy {
            write: Some(match numbers[2] {
                1 => Writing::Back,
                _ => Writing::Through,
            }),
            allocate: Some(numbers[3] == 1),
            replacement: Some(replacement),
            ..Strategy::default()
        },
    }
}

#[test]
fn the_counts_of_pycachesim_come_out() {
    let expected = std::fs::read_to_string(data("pycachesim.txt")).unwrap();
    let mut known: Option<(String, Vec<Access>)> = None;
    let mut compared = 0;
    for line in expected.lines().filter(|line| !line.starts_with('#')) {
        let (what, counts) = line.split_once(": ").unwrap();
        let words: Vec<&str> = what.split(' ').collect();
        let replacement = words[1].to_lowercase().parse().unwrap();
        let mut platform = Platform::symmetric(1);
        platform.caches = (1..)
            .zip(&words[2..])
            .map(|(level, text)| described(level, replacement, text))
            .collect();
        let shape = Shape::of(&platform).unwrap();
        let pages = Pages::as_traced(4096).unwrap();
        let mut simulation = Simulation::new(shape, Rules::Pycachesim, pages, 1).unwrap();
        if known.as_ref().is_none_or(|(name, _)| name != words[0]) {
            known = Some((words[0].to_owned(), accesses(words[0])));
        }
        for access in &known.as_ref().unwrap().1 {
            simulation.access(access).unwrap();
        }
        let ours: Vec<String> = simulation
            .rows()
            .iter()
            .map(|row| {
                let c = row.counts;
                format!(
                    "{},{},{},{},{}",
                    c.reads(),
                    c.writes(),
                    c.hits(),
                    c.misses(),
                    c.writebacks
                )
            })
            .collect();
        assert_eq!(ours.join(" "), counts, "{what}");
        compared += 1;
    }
    assert_eq!(compared, 112);
}
