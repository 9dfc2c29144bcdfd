//! Prefetchers, indexing, prices and colors counted by hand; platforms that cannot be modelled.

use cache::{Access, Coloring, Counts, Hierarchy, Kind, Memory, Pages, Rules, Shape, Simulation};
use model::strategy::{Indexing, Prefetch, Price, Replacement, Writing};
use model::{Bytes, Cache, CacheKind, Color, CpuId, CpuSet, Duration, Platform, Strategy, builtin};

/// A cache of lines of 64 bytes for the first processor.
fn cache(level: u8, sets: u32, ways: u32, strategy: Strategy) -> Cache {
    Cache {
        level,
        kind: CacheKind::Unified,
        size: Some(Bytes::new(u64::from(sets * ways * 64))),
        ways: Some(ways),
        line: Some(64),
        sets: Some(sets),
        shared_by: CpuSet::first(1),
        strategy,
    }
}

fn platform(caches: Vec<Cache>) -> Platform {
    Platform {
        caches,
        ..Platform::symmetric(1)
    }
}

/// What each cache counts of accesses to these lines.
fn counted(caches: Vec<Cache>, pages: Pages, kind: Kind, lines: &[u64]) -> Vec<Counts> {
    let shape = Shape::of(&platform(caches)).unwrap();
    let mut model = Hierarchy::new(&shape, pages, 1).unwrap();
    let port = model.port(CpuId(0), kind).unwrap();
    for line in lines {
        model.access(port, kind, line * 64, 4).unwrap();
    }
    (0..shape.parts.len())
        .map(|at| model.counts(at)[0])
        .collect()
}

fn as_traced() -> Pages {
    Pages::as_traced(4096).unwrap()
}

/// A page has 64 lines; the next one is never fetched before it is asked for.
#[test]
fn the_next_line_is_there_before_it_is_asked_for() {
    let how = Strategy {
        prefetch: Some(Prefetch::NextLine),
        ..Strategy::default()
    };
    let caches = vec![cache(1, 64, 4, how), cache(2, 64, 8, Strategy::default())];
    let lines: Vec<u64> = (0..128).collect();
    let seen = counted(caches, as_traced(), Kind::Read, &lines);
    assert_eq!((seen[0].accesses(), seen[0].misses()), (128, 2));
    assert_eq!((seen[0].prefetches, seen[0].useful_prefetches), (126, 126));
    // What is fetched early counts nowhere else.
    assert_eq!((seen[1].accesses(), seen[1].misses()), (2, 2));
}

/// The third access of a stride is the first that is sure of it.
#[test]
fn a_stride_is_followed_within_a_page() {
    let how = Strategy {
        prefetch: Some(Prefetch::Stride),
        ..Strategy::default()
    };
    let lines: Vec<u64> = (0..64).step_by(4).collect();
    let seen = counted(vec![cache(1, 64, 4, how)], as_traced(), Kind::Read, &lines);
    assert_eq!((seen[0].accesses(), seen[0].misses()), (16, 3));
    assert_eq!((seen[0].prefetches, seen[0].useful_prefetches), (13, 13));
}

#[test]
fn writes_that_are_not_kept_go_on_to_the_next_level() {
    let how = |write, allocate| Strategy {
        write: Some(write),
        allocate: Some(allocate),
        ..Strategy::default()
    };
    let through = how(Writing::Through, false);
    let caches = vec![cache(1, 4, 1, through), cache(2, 8, 1, through)];
    let seen = counted(caches, as_traced(), Kind::Write, &[0, 0]);
    for level in &seen {
        let counts = (level.writes(), level.write_misses(), level.written_through);
        assert_eq!(counts, (2, 2, 2));
    }
    // The line that was changed leaves the first level for the second, which then has it changed.
    let back = how(Writing::Back, true);
    let caches = vec![cache(1, 1, 1, back), cache(2, 8, 1, back)];
    let seen = counted(caches, as_traced(), Kind::Write, &[0, 1, 8, 0]);
    assert_eq!((seen[0].misses(), seen[0].writebacks), (4, 3));
    assert_eq!((seen[1].accesses(), seen[1].misses()), (4, 4));
    // Line 0 leaves it changed; line 8 leaves it for line 0 unchanged, and comes back changed.
    assert_eq!(seen[1].writebacks, 1);
}

/// Two pages of one color in memory share the sets of a cache of two colors, unless the program's
/// address chooses the set.
#[test]
fn colors_act_where_the_address_in_memory_chooses_the_set() {
    for (indexing, misses) in [(Indexing::Physical, 3), (Indexing::Virtual, 2)] {
        let how = Strategy {
            indexing: Some(indexing),
            ..Strategy::default()
        };
        let memory = Memory::new(Coloring::Plain, 8, 2).unwrap();
        let pages = Pages::colored(4096, memory, vec![Color(0)]).unwrap();
        let seen = counted(vec![cache(1, 128, 1, how)], pages, Kind::Read, &[0, 64, 0]);
        assert_eq!(seen[0].misses(), misses, "{indexing:?}");
    }
}

/// Three times as many sets as a page has lines.
#[test]
fn pages_are_placed_by_colors_that_bits_of_an_address_tell() {
    let of = |sets| {
        let caches = vec![cache(1, sets, 1, Strategy::default())];
        Shape::of(&platform(caches)).unwrap()
    };
    assert_eq!(of(3 * 64).colors(4096).unwrap(), 3);
    let e = of(3 * 64).colors_of_addresses(4096).unwrap_err();
    assert!(
        e.to_string()
            .contains("the L1 of the platform has 3 colors"),
        "{e}"
    );
    assert_eq!(of(4 * 64).colors_of_addresses(4096).unwrap(), 4);
}

/// The second processor has none.
#[test]
fn accesses_that_no_cache_serves_have_no_price() {
    let how = Strategy {
        fill: Some(Price::always(Duration::from_nanos(10))),
        ..Strategy::default()
    };
    let both = Platform {
        caches: vec![cache(1, 1, 1, how)],
        ..Platform::symmetric(2)
    };
    let shape = Shape::of(&both).unwrap();
    let mut model = Simulation::new(shape, Rules::Lines, as_traced(), 1).unwrap();
    for cpu in [0, 1, 1] {
        let access = Access {
            cpu: CpuId(cpu),
            ..to_line(Kind::Read, 0)
        };
        model.access(&access).unwrap();
    }
    let waited = model.waited().unwrap();
    assert_eq!(waited.price.optimistic.nanos(), 10);
    assert_eq!(waited.unpriced, ["2 × memory without a cache"]);
}

fn to_line(kind: Kind, line: u64) -> Access {
    Access {
        cpu: CpuId(0),
        kind,
        address: 64 * line,
        size: 8,
    }
}

#[test]
fn what_accesses_wait_is_added_up_by_the_outermost_miss() {
    let price = |ns| Some(Price::always(Duration::from_nanos(ns)));
    let how = |hit, fill| Strategy {
        hit: price(hit),
        fill: price(fill),
        ..Strategy::default()
    };
    let caches = vec![cache(1, 1, 1, how(1, 10)), cache(2, 2, 1, how(5, 100))];
    let shape = Shape::of(&platform(caches)).unwrap();
    let mut model = Simulation::new(shape, Rules::Lines, as_traced(), 1).unwrap();
    // Memory, memory, the L2, the L1, memory; the changed line leaves the first level.
    for (line, kind) in [
        (0, Kind::Read),
        (1, Kind::Read),
        (0, Kind::Write),
        (0, Kind::Read),
        (2, Kind::Read),
    ] {
        model.access(&to_line(kind, line)).unwrap();
    }
    let waited = model.waited().unwrap();
    assert_eq!(waited.price.optimistic.nanos(), 3 * 100 + 10 + 1);
    assert_eq!(waited.unpriced, ["1 × `write_back` of L1"]);
    // The second level takes it.
    assert_eq!(model.memory().unwrap().lines_written, 0);
}

/// The first level has the line of the second write and passes it on; the second level lost it, and
/// fetches it: a miss there, for which the write waits, and which the chart has as well.
#[test]
fn a_write_can_miss_the_second_level_alone() {
    let price = |ns| Some(Price::always(Duration::from_nanos(ns)));
    let how = |write, hit, fill| Strategy {
        write: Some(write),
        allocate: Some(true),
        hit: price(hit),
        fill: price(fill),
        word: price(3),
        ..Strategy::default()
    };
    let caches = vec![
        cache(1, 2, 1, how(Writing::Through, 1, 10)),
        cache(2, 1, 1, how(Writing::Back, 5, 100)),
    ];
    let shape = Shape::of(&platform(caches)).unwrap();
    let mut model = Simulation::new(shape, Rules::Lines, as_traced(), 1).unwrap();
    for (line, kind) in [(0, Kind::Read), (1, Kind::Read), (0, Kind::Write)] {
        model.access(&to_line(kind, line)).unwrap();
    }
    let misses: Vec<u64> = model.rows().iter().map(|row| row.counts.misses()).collect();
    assert_eq!(misses, [2, 3]);
    let told = |part: usize| -> u64 { model.windows().misses(part).iter().sum() };
    assert_eq!([told(0), told(1)], [2, 3]);
    assert_eq!(
        model.waited().unwrap().price.optimistic.nanos(),
        3 * 100 + 3
    );
}

#[test]
fn every_built_in_platform_with_caches_can_be_modelled() {
    for builtin in builtin::PLATFORMS {
        let platform = Platform::builtin(builtin.name).unwrap();
        let shape = Shape::of(&platform).unwrap();
        assert_eq!(shape.parts.len(), platform.caches.len());
        let last = shape.path(shape.cpus[0], false).len();
        assert!(last >= 2, "{}", builtin.name);
    }
}

#[test]
fn what_cannot_be_modelled_is_told() {
    let usual = || cache(2, 8, 2, Strategy::default());
    let with = |change: &dyn Fn(&mut Cache)| {
        let mut changed = usual();
        change(&mut changed);
        let first = cache(1, 4, 2, Strategy::default());
        let told = Shape::of(&platform(vec![first, changed])).unwrap_err();
        told.to_string()
    };
    let how = |replacement| Strategy {
        replacement: Some(replacement),
        ..Strategy::default()
    };
    for (told, says) in [
        (with(&|c| c.size = None), "has no `size`"),
        (with(&|c| c.ways = None), "has no `ways`"),
        (with(&|c| c.line = None), "has no `line`"),
        (with(&|c| c.line = Some(48)), "has lines of 48 bytes"),
        (
            with(&|c| c.line = Some(32)),
            "has 1024 bytes, which are not",
        ),
        (with(&|c| c.sets = Some(9)), "which are not 9 sets"),
        (
            with(&|c| c.size = Some(Bytes::new(1 << 31))),
            "larger than the model",
        ),
        (
            with(&|c| {
                c.ways = Some(3);
                c.size = Some(Bytes::new(3 * 8 * 64));
                c.strategy = how(Replacement::Plru);
            }),
            "3 ways and tree-PLRU",
        ),
        (
            with(&|c| {
                c.line = Some(128);
                c.sets = Some(4);
            }),
            "has lines of 128 bytes, others of 64",
        ),
    ] {
        assert!(told.contains(says) && told.contains("platform `"), "{told}");
    }
    let none = Shape::of(&Platform::symmetric(2)).unwrap_err().to_string();
    assert!(none.contains("no caches are described"), "{none}");
}
