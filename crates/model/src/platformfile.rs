//! Platforms in files: TOML that a person can write for a board that is not at hand.
//!
//! A table describes one processor or cache, or several alike: `id = "0-3"` and
//! `shared_by = ["0-1", "2-3"]` stand for four processors and two caches. An unknown key is refused
//! with its line and the nearest one.

use crate::builtin;
use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::files;
use crate::input::{Document, Table, Value, quoted};
use crate::platform::{Cache, Platform, Processor};
use crate::strategy::{
    Inclusion, Indexing, Prefetch, Price, Replacement, Strategy, Translations, Writing,
};
use crate::time::Duration;
use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;

const KEYS: [&str; 8] = [
    "version",
    "name",
    "description",
    "page_sizes",
    "notes",
    "processors",
    "caches",
    "tlb",
];
const TLB_KEYS: [&str; 3] = ["entries", "ways", "miss"];
const PROCESSOR_KEYS: [&str; 7] = [
    "id", "core", "socket", "node", "online", "usable", "capacity",
];
const CACHE_KEYS: [&str; 18] = [
    "level",
    "kind",
    "size",
    "ways",
    "line",
    "sets",
    "shared_by",
    "write",
    "allocate",
    "replacement",
    "inclusion",
    "indexing",
    "prefetch",
    "hit",
    "fill",
    "write_back",
    "intervention",
    "word",
];

/// The version of the format that this program writes and reads.
pub const VERSION: u64 = 1;

impl Platform {
    /// The platform that a user means: a built-in name, or else a file; with `:m=N` behind it the
    /// same scaled to N processors ([`Platform::scaled`]).
    ///
    /// # Errors
    /// Neither a built-in name nor a path; the file cannot be read or is no platform; N is no
    /// number of processors.
    pub fn find(name: &str) -> Result<Platform> {
        if let Some((base, m)) = builtin::scaled_from(name) {
            return Platform::find(base)?.scaled(m?);
        }
        if builtin::is_path(name) {
            let path = Path::new(name);
            return from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()));
        }
        Platform::builtin(name)
    }
}

/// Reads a platform from TOML.
///
/// # Errors
/// Anything that is not a platform of this version, with line and key.
pub fn from_toml(text: &str) -> Result<Platform> {
    let document =
        Document::parse(text).map_err(|e| e.remedy("see `docs/platforms.md` for the format"))?;
    let root = document.root();
    // The version comes first: another one may well have other keys.
    let version = root.need("version")?;
    let number = version.whole()?;
    if number != VERSION {
        return Err(version
            .error(format!("this is version {number} of the format"))
            .remedy(format!("this program reads version {VERSION}")));
    }
    root.only(&KEYS)?;
    let texts = |key: &str| -> Result<Vec<Value<'_, '_>>> {
        root.get(key).map_or(Ok(Vec::new()), |v| v.list())
    };
    let mut platform = Platform {
        name: root.need("name")?.text()?.to_owned(),
        description: match root.get("description") {
            Some(v) => v.text()?.to_owned(),
            None => String::new(),
        },
        processors: Vec::new(),
        caches: Vec::new(),
        tlb: root.get("tlb").map(|v| translations(&v)).transpose()?,
        page_sizes: texts("page_sizes")?
            .iter()
            .map(Value::parsed)
            .collect::<Result<_>>()?,
        notes: texts("notes")?
            .iter()
            .map(|v| v.text().map(str::to_owned))
            .collect::<Result<_>>()?,
    };
    platform.page_sizes.sort_unstable();
    for value in root.need("processors")?.list()? {
        processors_of(&value, &value.table()?, &mut platform.processors)?;
    }
    for value in texts("caches")? {
        caches_of(&value.table()?, &mut platform.caches)?;
    }
    let platform = platform.in_order();
    platform.check()?;
    Ok(platform)
}

fn processors_of(
    value: &Value<'_, '_>,
    table: &Table<'_, '_>,
    out: &mut Vec<Processor>,
) -> Result<()> {
    table.only(&PROCESSOR_KEYS)?;
    let id = table.need("id")?;
    let ids: CpuSet = id.list_of_processors()?;
    if ids.is_empty() {
        return Err(id
            .error("no processor is named")
            .remedy("write a number, or such as `\"0-3\"`"));
    }
    if let Some(cpu) = ids.iter().find(|cpu| out.iter().any(|p| p.id == *cpu)) {
        return Err(value
            .error(format!("processor {cpu} is described twice"))
            .remedy("describe each processor once"));
    }
    let yes = |key: &str| -> Result<bool> { table.get(key).map_or(Ok(true), |v| v.boolean()) };
    let core = small(table, "core")?;
    for cpu in ids.iter() {
        out.push(Processor {
            id: cpu,
            core: core.unwrap_or(cpu.0),
            socket: small(table, "socket")?.unwrap_or(0),
            node: small(table, "node")?.unwrap_or(0),
            online: yes("online")?,
            usable: yes("usable")?,
            capacity: small(table, "capacity")?,
        });
    }
    Ok(())
}

fn caches_of(table: &Table<'_, '_>, out: &mut Vec<Cache>) -> Result<()> {
    table.only(&CACHE_KEYS)?;
    let level = table.need("level")?;
    let kind = table.need("kind")?;
    let sharers = table.need("shared_by")?;
    let cache = Cache {
        level: u8::try_from(level.whole()?)
            .ok()
            .filter(|l| (1..=9).contains(l))
            .ok_or_else(|| {
                level
                    .error("no such level")
                    .remedy("levels count from 1 to 9")
            })?,
        kind: kind.parsed()?,
        size: table.get("size").map(|v| v.parsed()).transpose()?,
        ways: small(table, "ways")?,
        line: small(table, "line")?,
        sets: small(table, "sets")?,
        shared_by: CpuSet::new(),
        strategy: strategy(table)?,
    };
    let groups = match sharers.list() {
        Ok(groups) => groups,
        Err(_) => vec![sharers],
    };
    for group in groups {
        out.push(Cache {
            shared_by: group.list_of_processors()?,
            ..cache.clone()
        });
    }
    Ok(())
}

/// How the caches of a table act and what they cost.
fn strategy(table: &Table<'_, '_>) -> Result<Strategy> {
    let allocate = table.get("allocate").map(|v| v.boolean());
    Ok(Strategy {
        write: word(table, "write")?,
        allocate: allocate.transpose()?,
        replacement: word(table, "replacement")?,
        inclusion: word(table, "inclusion")?,
        indexing: word(table, "indexing")?,
        prefetch: word(table, "prefetch")?,
        hit: price(table, "hit")?,
        fill: price(table, "fill")?,
        write_back: price(table, "write_back")?,
        intervention: price(table, "intervention")?,
        word: price(table, "word")?,
    })
}

/// The buffers of page translations. Without `ways` any page is in any place.
fn translations(value: &Value<'_, '_>) -> Result<Translations> {
    let table = value.table()?;
    table.only(&TLB_KEYS)?;
    let entries = table.need("entries")?;
    let number = small(&table, "entries")?.unwrap_or(0);
    let ways = small(&table, "ways")?.unwrap_or(number);
    Translations::new(number, ways, price(&table, "miss")?).map_err(|e| entries.place(e))
}

fn word<T: FromStr<Err = Error>>(table: &Table<'_, '_>, key: &str) -> Result<Option<T>> {
    table.get(key).map(|v| v.parsed()).transpose()
}

/// A time, or two: in the best case and in the worst.
fn price(table: &Table<'_, '_>, key: &str) -> Result<Option<Price>> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let Ok(both) = value.list() else {
        return value.parsed().map(|time| Some(Price::always(time)));
    };
    let times: Vec<Duration> = both.iter().map(|v| v.parsed()).collect::<Result<_>>()?;
    match times[..] {
        [optimistic, pessimistic] => Price::new(optimistic, pessimistic)
            .map(Some)
            .map_err(|e| value.place(e)),
        _ => Err(value
            .error(format!("{} times are no price", times.len()))
            .remedy("write one time, or the optimistic and the pessimistic one")),
    }
}

fn small(table: &Table<'_, '_>, key: &str) -> Result<Option<u32>> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    u32::try_from(value.whole()?).map(Some).map_err(|_| {
        value
            .error("the number is too large")
            .remedy("give one below 2^32")
    })
}

/// Writes a platform as TOML that [`from_toml`] reads back to an equal one; caches alike share a
/// table.
pub fn to_toml(platform: &Platform) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_platform(&mut out, platform);
    out
}

fn write_platform(out: &mut String, platform: &Platform) -> std::fmt::Result {
    writeln!(out, "version = {VERSION}")?;
    writeln!(out, "name = {}", quoted(&platform.name))?;
    writeln!(out, "description = {}", quoted(&platform.description))?;
    if !platform.page_sizes.is_empty() {
        let sizes: Vec<String> = platform
            .page_sizes
            .iter()
            .map(|s| format!("\"{s}\""))
            .collect();
        writeln!(out, "page_sizes = [{}]", sizes.join(", "))?;
    }
    if !platform.notes.is_empty() {
        writeln!(out, "notes = [")?;
        for note in &platform.notes {
            writeln!(out, "    {},", quoted(note))?;
        }
        writeln!(out, "]")?;
    }
    for processor in &platform.processors {
        write_processor(out, processor)?;
    }
    let mut written: Vec<&Cache> = Vec::new();
    for cache in &platform.caches {
        if written.iter().any(|w| is_alike(w, cache)) {
            continue;
        }
        written.push(cache);
        let groups: Vec<String> = platform
            .caches
            .iter()
            .filter(|c| is_alike(c, cache))
            .map(|c| format!("\"{}\"", c.shared_by))
            .collect();
        write_caches(out, cache, &groups)?;
    }
    if let Some(tlb) = &platform.tlb {
        writeln!(
            out,
            "\n[tlb]\nentries = {}\nways = {}",
            tlb.entries, tlb.ways
        )?;
        write_price(out, "miss", tlb.miss)?;
    }
    Ok(())
}

fn write_processor(out: &mut String, processor: &Processor) -> std::fmt::Result {
    writeln!(out, "\n[[processors]]")?;
    writeln!(
        out,
        "id = {}\ncore = {}\nsocket = {}",
        processor.id, processor.core, processor.socket
    )?;
    if processor.node != 0 {
        writeln!(out, "node = {}", processor.node)?;
    }
    for (key, value) in [("online", processor.online), ("usable", processor.usable)] {
        if !value {
            writeln!(out, "{key} = false")?;
        }
    }
    if let Some(capacity) = processor.capacity {
        writeln!(out, "capacity = {capacity}")?;
    }
    Ok(())
}

/// Are two caches the same but for the processors that share them?
fn is_alike(one: &Cache, other: &Cache) -> bool {
    let unshared = |cache: &Cache| Cache {
        shared_by: CpuSet::new(),
        ..cache.clone()
    };
    unshared(one) == unshared(other)
}

/// Writes caches alike as one table, with the processors that share each of them.
fn write_caches(out: &mut String, cache: &Cache, groups: &[String]) -> std::fmt::Result {
    writeln!(
        out,
        "\n[[caches]]\nlevel = {}\nkind = \"{}\"",
        cache.level,
        cache.kind.name()
    )?;
    if let Some(size) = cache.size {
        writeln!(out, "size = \"{size}\"")?;
    }
    for (key, value) in [
        ("ways", cache.ways),
        ("line", cache.line),
        ("sets", cache.sets),
    ] {
        if let Some(value) = value {
            writeln!(out, "{key} = {value}")?;
        }
    }
    write_strategy(out, &cache.strategy)?;
    match groups {
        [one] => writeln!(out, "shared_by = {one}"),
        _ => writeln!(out, "shared_by = [{}]", groups.join(", ")),
    }
}

fn write_strategy(out: &mut String, strategy: &Strategy) -> std::fmt::Result {
    for (key, word) in [
        ("write", strategy.write.map(Writing::name)),
        ("replacement", strategy.replacement.map(Replacement::name)),
        ("inclusion", strategy.inclusion.map(Inclusion::name)),
        ("indexing", strategy.indexing.map(Indexing::name)),
        ("prefetch", strategy.prefetch.map(Prefetch::name)),
    ] {
        if let Some(word) = word {
            writeln!(out, "{key} = \"{word}\"")?;
        }
    }
    if let Some(allocate) = strategy.allocate {
        writeln!(out, "allocate = {allocate}")?;
    }
    for (key, price) in strategy.prices() {
        write_price(out, key, price)?;
    }
    Ok(())
}

fn write_price(out: &mut String, key: &str, price: Option<Price>) -> std::fmt::Result {
    match price {
        Some(p) if p.optimistic == p.pessimistic => writeln!(out, "{key} = \"{}\"", p.optimistic),
        Some(p) => writeln!(out, "{key} = [\"{}\", \"{}\"]", p.optimistic, p.pessimistic),
        None => Ok(()),
    }
}

impl Value<'_, '_> {
    /// As a set of processors: a number, or text such as `"0-3,8"`.
    fn list_of_processors(&self) -> Result<CpuSet> {
        match self.whole() {
            Ok(id) => match u32::try_from(id) {
                Ok(id) if id <= CpuSet::MAX_CPU => Ok(CpuSet::from_iter([CpuId(id)])),
                _ => Err(self
                    .error(format!("there is no processor {id}"))
                    .remedy(format!("numbers go up to {}", CpuSet::MAX_CPU))),
            },
            Err(_) => self.parsed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: &str = r#"
version = 1
name = "board"
page_sizes = ["2MiB", "4KiB"]

[[processors]]
id = "0-3"
capacity = 446

[[processors]]
id = "4,5"
capacity = 1024

[[caches]]
level = 1
kind = "data"
size = "32KiB"
shared_by = ["0", "1", 2, "3", "4", "5"]

[[caches]]
level = 2
kind = "unified"
write = "through"
allocate = false
replacement = "plru"
inclusion = "inclusive"
indexing = "virtual"
prefetch = "next-line"
hit = "5ns"
fill = ["64ns", "160ns"]
shared_by = ["0-3", "4-5"]

[tlb]
entries = 64
ways = 4
miss = ["40ns", "400ns"]
"#;

    #[test]
    fn a_board_is_described_in_a_few_lines() {
        let board = from_toml(BOARD).unwrap();
        assert_eq!((board.processors.len(), board.caches.len()), (6, 8));
        assert_eq!(board.processors[4].capacity, Some(1024));
        assert_eq!(board.data_cache(2, CpuId(5)).unwrap().size, None);
        assert_eq!(board.page_sizes[0].get(), 4096);
        let strategy = board.data_cache(2, CpuId(5)).unwrap().strategy;
        assert_eq!(strategy.write, Some(Writing::Through));
        assert_eq!(
            strategy.fill.unwrap().pessimistic,
            Duration::from_nanos(160)
        );
        let tlb = board.tlb.unwrap();
        assert_eq!((tlb.entries, tlb.ways, tlb.sets()), (64, 4, 16));
        assert_eq!(tlb.miss.unwrap().optimistic, Duration::from_nanos(40));
        assert_eq!(from_toml(&to_toml(&board)).unwrap(), board);
        // Two sets of ways that differ are two boards.
        let other = from_toml(&BOARD.replace("ways = 4\nmiss", "miss")).unwrap();
        assert_eq!(other.tlb.unwrap().ways, 64);
        assert_eq!(from_toml(&to_toml(&other)).unwrap(), other);
    }

    #[test]
    fn every_built_in_platform_writes_and_reads_back() {
        for name in builtin::PLATFORMS
            .map(|b| b.name)
            .into_iter()
            .chain(["symmetric:m=3"])
        {
            let platform = Platform::builtin(name).unwrap();
            assert_eq!(from_toml(&to_toml(&platform)).unwrap(), platform, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let head = "version = 1\nname = \"b\"\n";
        let one = "[[processors]]\nid = 0\n";
        let cache = format!("{head}{one}[[caches]]\nlevel = 1\nkind = \"data\"\nshared_by = 0\n");
        let refusals: Vec<String> = [
            "name = \"b\"".to_owned(),
            "version = 7\nname = \"b\"".to_owned(),
            head.to_owned(),
            format!("{head}processors = []"),
            format!("{head}processor = []"),
            format!("{head}[[processors]]\nid = \"0-x\""),
            format!("{head}[[processors]]\nid = 8192"),
            format!("{head}{one}{one}"),
            format!("{head}{one}corre = 1"),
            format!("{head}{one}[[caches]]\nlevel = 0\nkind = \"data\"\nshared_by = 0"),
            format!("{head}{one}[[caches]]\nlevel = 1\nkind = \"dta\"\nshared_by = 0"),
            format!("{head}{one}[[caches]]\nlevel = 1\nkind = \"data\"\nshared_by = 1"),
            format!("{head}{one}[[caches]]\nlevel = 1\nkind = \"data\"\nshared_by = \"\""),
            format!("{head}{one}[[caches]]\nlevel = 1\nkind = \"data\"\nshared_by = [0, 0]"),
            format!(
                "{head}{one}[[caches]]\nlevel = 1\nkind = \"data\"\nsize = \"0KiB\"\nshared_by = 0"
            ),
            format!("{cache}write = \"behind\""),
            format!("{cache}allocate = \"no\""),
            format!("{cache}fill = [\"64ns\", \"160ns\", \"1us\"]"),
            format!("{cache}fill = [\"160ns\", \"64ns\"]"),
            format!("{cache}[tlb]\nways = 4"),
            format!("{cache}[tlb]\nentries = 24\nways = 2"),
            format!("{cache}[tlb]\nentries = 64\nprice = \"40ns\""),
        ]
        .iter()
        .map(|text| from_toml(text).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(refusals.join("\n"));
    }
}
