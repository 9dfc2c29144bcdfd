//! The built-in platforms: the machines of the papers, and identical processors for studies that
//! need no hierarchy.
//!
//! Sources: 000 §4 and 002 ch. 5 (`xeon-l7455`), 003 §4 (`core-i7`), 004 Table I and §IV-A
//! (`i7-2600`), 001 Table 1 (`i486`, `pentium-90`, `pentium-133`, `pentium-pro`). What a paper does
//! not say stays unknown; what had to be assumed stands in the platform's notes. To add one: a
//! function here and a line in [`PLATFORMS`].

use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result, nearest};
use crate::platform::{Cache, CacheKind, Platform, Processor};
use crate::size::Bytes;
use crate::strategy::{Inclusion, Price, Strategy, Writing};
use crate::time::Duration;

/// A built-in platform.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// What `--platform` calls it.
    pub name: &'static str,
    /// What it is and where it is described, in one line.
    pub about: &'static str,
    make: fn() -> Platform,
}

/// Every built-in platform, besides `symmetric:m=N`. Each can be scaled: `xeon-l7455:m=8`.
pub const PLATFORMS: [Builtin; 7] = [
    Builtin {
        name: "xeon-l7455",
        about: "Intel Xeon L7455, 4 sockets of 6 cores at 2.13 GHz (000 §4, 002 ch. 5)",
        make: xeon_l7455,
    },
    Builtin {
        name: "core-i7",
        about: "Intel Core i7 of 2008, 4 cores at 2.66 GHz, hyper-threading disabled (003 §4)",
        make: core_i7,
    },
    Builtin {
        name: "i7-2600",
        about: "Intel i7-2600, 4 cores with 2 hardware threads each at 3.4 GHz (004 Table I)",
        make: i7_2600,
    },
    Builtin {
        name: "i486",
        about: "Intel 486 at 33 MHz (001 Table 1)",
        make: i486,
    },
    Builtin {
        name: "pentium-90",
        about: "Intel Pentium at 90 MHz, caches write through (001 Table 1)",
        make: pentium_90,
    },
    Builtin {
        name: "pentium-133",
        about: "Intel Pentium at 133 MHz, caches write back (001 Table 1)",
        make: pentium_133,
    },
    Builtin {
        name: "pentium-pro",
        about: "Intel Pentium Pro at 133 MHz, caches write back (001 Table 1)",
        make: pentium_pro,
    },
];

/// What `symmetric` is called in lists of names.
pub const SYMMETRIC: &str = "symmetric:m=N";

/// The names of all built-in platforms.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PLATFORMS.iter().map(|b| b.name).chain([SYMMETRIC])
}

impl Platform {
    /// The built-in platform of this name.
    ///
    /// # Errors
    /// There is none: names the nearest one and all there are. `symmetric:m=N` with an N that is no
    /// number of processors.
    pub fn builtin(name: &str) -> Result<Platform> {
        if let Some(count) = name.strip_prefix("symmetric:m=") {
            return match count.parse::<u32>() {
                Ok(m) if (1..=CpuSet::MAX_CPU + 1).contains(&m) => Ok(Platform::symmetric(m)),
                _ => Err(Error::new(format!("`{count}` is no number of processors"))
                    .at(format!("platform `{name}`"))
                    .remedy(format!(
                        "write `symmetric:m=N` with N from 1 to {}",
                        CpuSet::MAX_CPU + 1
                    ))),
            };
        }
        if let Some((name, scaled)) = scaled_from(name) {
            let platform = Platform::builtin(name)?;
            return scaled.and_then(|m| platform.scaled(m));
        }
        match PLATFORMS.iter().find(|b| b.name == name) {
            Some(builtin) => Ok((builtin.make)()),
            None => Err(unknown(
                "platform",
                name,
                names(),
                "a file such as `board.toml`",
            )),
        }
    }
}

/// The name in front of `:m=N`, and N: the platform of that name scaled to N processors
/// ([`Platform::scaled`]). `None` for other names, and for those that are scaled already.
pub fn scaled_from(name: &str) -> Option<(&str, Result<u32>)> {
    let (base, count) = name.split_once(":m=")?;
    (!count.contains(":m=") && base != "symmetric").then(|| {
        let m = count.parse().map_err(|_| {
            Error::new(format!("`{count}` is no number of processors"))
                .at(format!("platform `{name}`"))
                .remedy(format!("write `{base}:m=8` for eight of them"))
        });
        (base, m)
    })
}

/// Is this a path rather than a built-in name?
pub(crate) fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}

/// The error of a name that is not built in: the nearest one, all of them, and what else may be
/// given.
pub(crate) fn unknown(
    what: &str,
    written: &str,
    known: impl Iterator<Item = &'static str> + Clone,
    or: &str,
) -> Error {
    let meant = match nearest(written, known.clone()) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    let all = known
        .map(|n| format!("`{n}`"))
        .collect::<Vec<_>>()
        .join(", ");
    Error::new(format!("there is no built-in {what} `{written}`"))
        .remedy(format!("{meant}built in are {all}; {or} works too"))
}

/// What the papers do not say of the write strategy of their Intel processors of 2008 to 2011.
const BUFFERED: &str = "assumed: caches write back and fetch lines that are written, as Intel's do \
    since the Pentium Pro; lines are written back from buffers while nobody reads, so that no \
    access waits for it";

/// A cache of such a processor, by what an access waits in nanoseconds whose line comes from the
/// next level, and how much longer where another processor has changed the line.
fn buffered(fill: u64, intervention: u64) -> Strategy {
    let always = |nanos| Some(Price::always(Duration::from_nanos(nanos)));
    Strategy {
        write: Some(Writing::Back),
        allocate: Some(true),
        fill: always(fill),
        write_back: always(0),
        intervention: always(intervention),
        ..Strategy::default()
    }
}

/// Intel Xeon L7455 (000 §4; 002 ch. 5): the machine of the delay tables.
fn xeon_l7455() -> Platform {
    // Position k of 0..6 within socket s is processor 4k + s.
    let cpu = |socket: u32, position: u32| CpuId(4 * position + socket);
    let mut shape = Shape::new("xeon-l7455");
    for position in 0..6 {
        for socket in 0..4 {
            shape.processor(cpu(socket, position), position, socket);
        }
    }
    for id in 0..24 {
        shape.cache(
            1,
            CacheKind::Data,
            32,
            8,
            64,
            CpuSet::from_iter([CpuId(id)]),
        );
        shape.cache(
            1,
            CacheKind::Instruction,
            32,
            8,
            64,
            CpuSet::from_iter([CpuId(id)]),
        );
    }
    for socket in 0..4 {
        for pair in 0..3 {
            let sharers = (2 * pair..2 * pair + 2).map(|k| cpu(socket, k)).collect();
            shape.cache(2, CacheKind::Unified, 3 * 1024, 12, 64, sharers);
        }
        let sharers = (0..6).map(|k| cpu(socket, k)).collect();
        shape.cache(3, CacheKind::Unified, 12 * 1024, 12, 64, sharers);
    }
    shape.note("assumed: processor i is on socket i mod 4, as Linux numbers such machines round robin; the papers do not give the numbers");
    shape.note("assumed: processors i and i + 4 of one socket share an L2 for i mod 8 < 4, i.e. neighbors in number within the socket; the papers do not say which two form a pair");
    shape.note("uniform memory access: one node");
    for (level, fill, intervention) in [(1, 28, 28), (2, 58, 0), (3, 82, 0)] {
        shape.acts(level, buffered(fill, intervention));
    }
    shape.note(
        "assumed: a line takes 28 ns from the L2, 58 ns from the L3 and 82 ns from memory, as mean \
         delays say where a job has lost so many lines: 14.21 us for the 512 lines of the L1 \
         (L2-migration, idle, 64 KiB), 236.94 us for 4096 lines (L3-migration, idle, 256 KiB), 5.24 us \
         for 64 lines (preemption, load, 4 KiB) (002 Tables A.3 and A.4)",
    );
    shape.note(
        "assumed: a line that another processor of the socket has changed takes 28 ns more, as the \
         delay of 64 KiB above is that of lines which both L1s hold in turn; from another L2 it so \
         takes 86 ns, 58 more than in the warm walk, which is the delay of 256 KiB; from another \
         socket no more than from memory: 192.42 us for 4096 lines (memory-migration, idle, 256 \
         KiB) are less than 82 ns each",
    );
    shape.note(BUFFERED);
    shape.finish()
}

/// Intel Core i7 of 2008 (003 §4).
fn core_i7() -> Platform {
    let mut shape = Shape::new("core-i7");
    for id in 0..4 {
        let own = CpuSet::from_iter([CpuId(id)]);
        shape.processor(CpuId(id), id, 0);
        shape.cache(1, CacheKind::Data, 32, 8, 64, own.clone());
        shape.cache(1, CacheKind::Instruction, 32, 4, 64, own.clone());
        shape.cache(2, CacheKind::Unified, 256, 8, 64, own);
    }
    shape.cache(3, CacheKind::Unified, 8 * 1024, 16, 64, CpuSet::first(4));
    // 10 cycles of 2.66 GHz until the L2 serves an access, 40 until the L3 does, and 67 ns more.
    // 75 cycles where another core has changed the line: 35 more, or 13 ns.
    for (level, fill, intervention) in [(1, 4, 13), (2, 15, 13), (3, 82, 0)] {
        shape.acts(level, buffered(fill, intervention));
    }
    shape.note(
        "assumed: an access takes 4 ns if the L2 serves it, 15 ns if the L3 does, and 82 ns from memory: \
         10 and 40 cycles, and 67 ns more, as measured on a Xeon X5650 of this architecture at the \
         same clock (7-cpu.com, Westmere); the paper does not say",
    );
    shape.note(
        "assumed: a line that another core has changed takes 13 ns more than one from the L3: 75 \
         cycles instead of 40 (Intel, Performance Analysis Guide for Core i7 and Xeon 5500)",
    );
    shape.note(BUFFERED);
    shape
        .note("hyper-threading is there and was disabled in the experiments: one processor a core");
    shape.finish()
}

/// Intel i7-2600 (004 Table I).
fn i7_2600() -> Platform {
    let mut shape = Shape::new("i7-2600");
    for id in 0..8 {
        shape.processor(CpuId(id), id % 4, 0);
    }
    for core in 0..4 {
        let siblings = CpuSet::from_iter([CpuId(core), CpuId(core + 4)]);
        shape.cache(1, CacheKind::Data, 32, 8, 64, siblings.clone());
        shape.cache(1, CacheKind::Instruction, 32, 8, 64, siblings.clone());
        shape.cache(2, CacheKind::Unified, 256, 8, 64, siblings);
    }
    shape.cache(3, CacheKind::Unified, 8 * 1024, 16, 64, CpuSet::first(8));
    shape.note(
        "assumed: processors i and i + 4 are the two threads of core i, as Linux numbers them; the paper does not give the numbers",
    );
    // 12 cycles of 3.4 GHz until the L2 serves an access, 30 until the L3 does, and 67 ns more.
    // 60 cycles where another core has changed the line: 30 more, or 9 ns.
    for (level, fill, intervention, inclusion) in [
        (1, 4, 9, None),
        (2, 9, 9, Some(Inclusion::Neither)),
        (3, 76, 0, Some(Inclusion::Inclusive)),
    ] {
        let strategy = Strategy {
            inclusion,
            ..buffered(fill, intervention)
        };
        shape.acts(level, strategy);
    }
    shape.note(
        "assumed: an access takes 4 ns if the L2 serves it, 9 ns if the L3 does, and 76 ns from memory: \
         12 and 30 cycles, as measured on a Core i7-3960X of this architecture (techreport.com, 2011), \
         and 67 ns more, as on the `core-i7`; the paper does not say",
    );
    shape.note(
        "assumed: a line that another core has changed takes 9 ns more than one from the L3: 60 \
         cycles instead of 30 (Intel, Optimization Reference Manual, Sandy Bridge)",
    );
    shape.note(BUFFERED);
    shape.note("the L2 is not inclusive, the L3 is inclusive (004 Table I)");
    shape.note("the lines of 64 bytes are from 004 §IV-A");
    shape.finish()
}

/// Intel 486 at 33 MHz (001 Table 1).
fn i486() -> Platform {
    let mut shape = uniprocessor("i486");
    let own = CpuSet::first(1);
    shape.cache(1, CacheKind::Unified, 8, 4, 16, own.clone());
    shape.cache(2, CacheKind::Unified, 256, 1, 16, own);
    // Four transfers fill a line, of 16 bytes here and of 32 on the Pentium of 90 MHz: as many
    // cycles of the bus, of 33 MHz instead of 60.
    for (level, fill) in [(1, between(116, 291)), (2, between(364, 611))] {
        let strategy = Strategy {
            fill,
            ..writes(Writing::Through)
        };
        shape.acts(level, strategy);
    }
    shape.note("assumed: delays of misses as on the Pentium of 90 MHz in cycles of the bus, of 33 MHz instead of 60: both fill a line in four transfers; the paper prints none");
    shape.note("both caches write through; 64 page colors in the L2, one in the L1 (001 Table 1)");
    shape.note(PASSED_ON);
    shape.finish()
}

/// Intel Pentium at 90 MHz (001 Table 1).
fn pentium_90() -> Platform {
    let mut shape = pentium("pentium-90", Writing::Through, "both levels write through");
    // A line has 8 words; the optimistic delay is the one until the first word is there.
    for (level, fill) in [(1, between(64, 160)), (2, between(200, 336))] {
        let strategy = Strategy {
            fill,
            ..writes(Writing::Through)
        };
        shape.acts(level, strategy);
    }
    shape.note("delays of misses: 8 and 20 ns a word in the L1, 25 and 42 ns in the L2, where all 8 words of a line are read (001 §4.1)");
    shape.finish()
}

/// Intel Pentium at 133 MHz (001 Table 1).
fn pentium_133() -> Platform {
    let mut shape = pentium("pentium-133", Writing::Back, "both levels write back");
    shape.waits_at_133_mhz(writes(Writing::Back));
    shape.finish()
}

/// A price in nanoseconds.
const fn between(optimistic: u64, pessimistic: u64) -> Option<Price> {
    Some(Price {
        optimistic: Duration::from_nanos(optimistic),
        pessimistic: Duration::from_nanos(pessimistic),
    })
}

const PASSED_ON: &str = "assumed: a word that is written through goes through a buffer, so that no \
    access waits for it; the paper prices lines alone";

/// What 001 says of a cache: its write strategy. Lines that are written and not there are not
/// fetched (001 §5.4, of the Pentium).
fn writes(write: Writing) -> Strategy {
    Strategy {
        write: Some(write),
        allocate: Some(false),
        word: Some(Price::always(Duration::ZERO)),
        ..Strategy::default()
    }
}

fn pentium(name: &'static str, write: Writing, strategy: &str) -> Shape {
    let mut shape = uniprocessor(name);
    let own = CpuSet::first(1);
    shape.cache(1, CacheKind::Data, 8, 2, 32, own.clone());
    shape.cache(1, CacheKind::Instruction, 8, 2, 32, own.clone());
    shape.cache(2, CacheKind::Unified, 256, 1, 32, own);
    shape.note(&format!(
        "{strategy}; 64 page colors in the L2, one in the L1 (001 Table 1)"
    ));
    shape.note(PASSED_ON);
    for level in 1..=2 {
        shape.acts(level, writes(write));
    }
    shape
}

/// Intel Pentium Pro at 133 MHz (001 Table 1).
fn pentium_pro() -> Platform {
    let mut shape = uniprocessor("pentium-pro");
    let own = CpuSet::first(1);
    shape.cache(1, CacheKind::Data, 8, 2, 32, own.clone());
    shape.cache(1, CacheKind::Instruction, 8, 4, 32, own.clone());
    shape.cache(2, CacheKind::Unified, 256, 4, 32, own);
    shape.waits_at_133_mhz(Strategy {
        write: Some(Writing::Back),
        ..Strategy::default()
    });
    shape.note("both levels write back; 16 page colors in the L2, one in the L1 (001 Table 1)");
    shape.note("assumed: of the two L1 caches the one for instructions has 4 ways and the one for data 2; the table says `4-way + 2-way` without saying which");
    shape.finish()
}

/// One processor, with pages of 4 KiB: what all machines of 001 have in common.
fn uniprocessor(name: &'static str) -> Shape {
    let mut shape = Shape::new(name);
    shape.processor(CpuId(0), 0, 0);
    shape.platform.page_sizes = vec![Bytes::from_kib(4)];
    shape.note("assumed: one processor; the paper speaks of none besides");
    shape
}

/// A platform in the making.
struct Shape {
    platform: Platform,
}

impl Shape {
    /// Delays of the machines of 133 MHz, for which 001 prints none: those of the Pentium of 90 MHz
    /// in cycles of a bus of 66 MHz instead of 60. Both levels act so besides.
    fn waits_at_133_mhz(&mut self, acts: Strategy) {
        let prices = [
            (1, between(58, 144), between(58, 144)),
            (2, between(180, 302), between(540, 906)),
        ];
        for (level, fill, write_back) in prices {
            let strategy = Strategy {
                fill,
                write_back,
                ..acts
            };
            self.acts(level, strategy);
        }
        self.note("writing a line back to memory takes 3 times as long as filling it (001 §5.2)");
        self.note("assumed: delays of misses as on the Pentium of 90 MHz in cycles of the bus, of 66 MHz instead of 60; a line is written back to the second level as fast as it is filled from there");
    }

    fn new(name: &'static str) -> Self {
        let about = PLATFORMS
            .iter()
            .find(|b| b.name == name)
            .map_or("", |b| b.about);
        Shape {
            platform: Platform {
                name: name.to_owned(),
                description: about.to_owned(),
                processors: Vec::new(),
                caches: Vec::new(),
                tlb: None,
                page_sizes: Vec::new(),
                notes: Vec::new(),
            },
        }
    }

    fn processor(&mut self, id: CpuId, core: u32, socket: u32) {
        self.platform.processors.push(Processor {
            id,
            core,
            socket,
            node: 0,
            online: true,
            usable: true,
            capacity: None,
        });
    }

    /// A cache of `kib` KiB; its number of sets follows from the rest.
    fn cache(
        &mut self,
        level: u8,
        kind: CacheKind,
        kib: u32,
        ways: u32,
        line: u32,
        shared_by: CpuSet,
    ) {
        self.platform.caches.push(Cache {
            level,
            kind,
            size: Some(Bytes::from_kib(u64::from(kib))),
            ways: Some(ways),
            line: Some(line),
            sets: Some(kib * 1024 / (ways * line)),
            shared_by,
            strategy: Strategy::default(),
        });
    }

    /// How the caches of a level act.
    fn acts(&mut self, level: u8, strategy: Strategy) {
        let caches = self.platform.caches.iter_mut();
        for cache in caches.filter(|c| c.level == level) {
            cache.strategy = strategy;
        }
    }

    fn note(&mut self, text: &str) {
        self.platform.notes.push(text.to_owned());
    }

    fn finish(self) -> Platform {
        self.platform.in_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{ClusterSpec, Resumption};

    #[test]
    fn every_built_in_platform_is_sound() {
        for builtin in PLATFORMS {
            let platform = Platform::builtin(builtin.name).unwrap();
            assert_eq!(platform.name, builtin.name);
            platform.check().unwrap();
            for cache in &platform.caches {
                let parts = [cache.ways, cache.line, cache.sets].map(|n| u64::from(n.unwrap()));
                let size = cache.size.unwrap().get();
                assert_eq!(
                    parts.iter().product::<u64>(),
                    size,
                    "{}: {cache:?}",
                    builtin.name
                );
            }
        }
    }

    /// 000 §4: four sockets of six cores; an L3 a socket, an L2 a pair.
    #[test]
    fn the_xeon_has_the_clusters_of_the_paper() {
        let xeon = Platform::builtin("xeon-l7455").unwrap();
        let sizes = |spec| -> Vec<usize> {
            xeon.clusters(spec)
                .unwrap()
                .iter()
                .map(CpuSet::len)
                .collect()
        };
        assert_eq!(sizes(ClusterSpec::Level(1)), vec![1; 24]);
        assert_eq!(sizes(ClusterSpec::Level(2)), vec![2; 12]);
        assert_eq!(sizes(ClusterSpec::Level(3)), vec![6; 4]);
        assert_eq!(
            xeon.resumptions(),
            [
                Resumption::Preemption,
                Resumption::Migration(2),
                Resumption::Migration(3),
                Resumption::Memory
            ]
        );
        assert_eq!(
            xeon.resumption(CpuId(1), CpuId(5)),
            Resumption::Migration(2)
        );
        assert_eq!(
            xeon.resumption(CpuId(1), CpuId(9)),
            Resumption::Migration(3)
        );
        assert_eq!(xeon.resumption(CpuId(1), CpuId(2)), Resumption::Memory);
    }

    #[test]
    fn the_shared_cache_is_the_outermost_that_serves_everybody() {
        let shared = |name: &str| -> Option<(u8, u64)> {
            let platform = Platform::builtin(name).unwrap();
            let cache = platform.shared_cache()?;
            Some((cache.level, cache.size?.get() >> 10))
        };
        assert_eq!(shared("core-i7"), Some((3, 8192)));
        // One processor: what lies before the last cache is its own as well.
        assert_eq!(shared("pentium-133"), Some((2, 256)));
        // An L3 for each socket.
        assert_eq!(shared("xeon-l7455"), None);
        assert_eq!(shared("symmetric:m=4"), None);
    }

    /// 001 Table 1: the number of colors is size / ways / page size.
    #[test]
    fn the_machines_of_1996_have_the_colors_of_the_table() {
        for (name, colors) in [
            ("i486", 64),
            ("pentium-90", 64),
            ("pentium-133", 64),
            ("pentium-pro", 16),
        ] {
            let platform = Platform::builtin(name).unwrap();
            let l2 = platform.data_cache(2, CpuId(0)).unwrap();
            let way = l2.size.unwrap().get() / u64::from(l2.ways.unwrap());
            assert_eq!(way / platform.page_sizes[0].get(), colors, "{name}");
        }
    }

    /// Each cache says what becomes of a write, and what a fill takes; where it writes back or has
    /// others beside it, that has a price, too.
    #[test]
    fn every_built_in_cache_says_what_it_does_with_writes_and_what_that_takes() {
        for builtin in PLATFORMS {
            let platform = Platform::builtin(builtin.name).unwrap();
            for cache in &platform.caches {
                let how = cache.strategy;
                let whose = format!("{}: {}", builtin.name, cache.label());
                assert!(how.write.is_some() && how.fill.is_some(), "{whose}");
                if how.write == Some(Writing::Back) {
                    assert!(how.write_back.is_some(), "{whose}");
                }
                if platform.processors.len() > 1 {
                    assert!(how.intervention.is_some(), "{whose}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_the_list() {
        let refusals: Vec<String> = ["xeon-l7445", "symmetric:m=0", "symmetric:m=many", "toaster"]
            .iter()
            .map(|name| Platform::builtin(name).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(refusals.join("\n"));
    }
}
