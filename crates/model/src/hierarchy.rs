//! What contains what on a platform: sockets, nodes, caches, cores, processors as nested groups,
//! and their tree as text.
//!
//! Groups nest by the processors behind them; parts with the same processors (an L2 of one core,
//! its L1 caches, the core) form one group. Only online processors are in it. A part that overlaps
//! another without nesting is named apart.

use crate::cpus::CpuSet;
use crate::platform::{Cache, Platform, Processor};
use crate::size::Bytes;
use std::collections::BTreeSet;
use std::fmt::Write;

mod lines;
use lines::{Lines, MAX_LINES};

/// Something that has processors behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A physical package, by number.
    Socket(u32),
    /// A NUMA node, by number; only where there are several.
    Node(u32),
    /// A cache.
    Cache(Cache),
    /// A core, by number.
    Core(u32),
    /// A processor.
    Processor(Processor),
}

/// Parts with the same processors behind them, outermost first, and what they contain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The parts: a socket before its caches, a cache before its core.
    pub parts: Vec<Part>,
    /// The processors behind them.
    pub cpus: CpuSet,
    /// What they contain, by lowest processor.
    pub children: Vec<Group>,
}

/// The nested groups of a platform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hierarchy {
    /// The outermost groups, by lowest processor.
    pub groups: Vec<Group>,
    /// Processors that are not in it because they are offline.
    pub offline: CpuSet,
    /// Parts that overlap others without nesting, with their processors.
    pub crossing: Vec<(Part, CpuSet)>,
    /// Do the processors differ in capacity? Only then is it shown.
    pub asymmetric: bool,
}

impl Part {
    /// From the outermost to the innermost, where the processors behind them do not tell.
    fn rank(&self) -> u32 {
        match self {
            Part::Socket(_) => 0,
            Part::Node(_) => 1,
            // A larger level is further out; of one level data comes before instructions.
            Part::Cache(c) => 2 + 4 * (u32::from(u8::MAX) - u32::from(c.level)) + c.kind as u32,
            Part::Core(_) => u32::MAX - 1,
            Part::Processor(_) => u32::MAX,
        }
    }
}

impl Hierarchy {
    /// The nested groups of a platform.
    pub fn of(platform: &Platform) -> Hierarchy {
        let online: CpuSet = platform
            .processors
            .iter()
            .filter(|p| p.online)
            .map(|p| p.id)
            .collect();
        let behind = |of: &dyn Fn(&Processor) -> bool| -> CpuSet {
            let members = platform.processors.iter().filter(|p| p.online && of(p));
            members.map(|p| p.id).collect()
        };
        let distinct = |key: &dyn Fn(&Processor) -> (u32, u32)| -> BTreeSet<(u32, u32)> {
            platform
                .processors
                .iter()
                .filter(|p| p.online)
                .map(key)
                .collect()
        };
        let mut parts: Vec<(Part, CpuSet)> = Vec::new();
        for (socket, _) in distinct(&|p| (p.socket, 0)) {
            parts.push((Part::Socket(socket), behind(&|p| p.socket == socket)));
        }
        let nodes = distinct(&|p| (p.node, 0));
        if nodes.len() > 1 {
            for (node, _) in nodes {
                parts.push((Part::Node(node), behind(&|p| p.node == node)));
            }
        }
        for (socket, core) in distinct(&|p| (p.socket, p.core)) {
            let cpus = behind(&|p| (p.socket, p.core) == (socket, core));
            parts.push((Part::Core(core), cpus));
        }
        for cache in &platform.caches {
            parts.push((
                Part::Cache(cache.clone()),
                cache.shared_by.intersection(&online),
            ));
        }
        for p in platform.processors.iter().filter(|p| p.online) {
            parts.push((Part::Processor(p.clone()), CpuSet::from_iter([p.id])));
        }
        parts.retain(|(_, cpus)| !cpus.is_empty());
        parts.sort_by_key(|(part, cpus)| (usize::MAX - cpus.len(), part.rank(), cpus.lowest()));

        let mut root = Group {
            parts: Vec::new(),
            cpus: online.clone(),
            children: Vec::new(),
        };
        let mut crossing = Vec::new();
        for (part, cpus) in parts {
            if let Some(part) = place(&mut root.children, part, &cpus) {
                crossing.push((part, cpus));
            }
        }
        sort(&mut root.children);
        let capacities: BTreeSet<_> = platform
            .processors
            .iter()
            .filter(|p| p.online)
            .map(|p| p.capacity)
            .collect();
        Hierarchy {
            groups: root.children,
            offline: platform
                .processors
                .iter()
                .filter(|p| !p.online)
                .map(|p| p.id)
                .collect(),
            crossing,
            asymmetric: capacities.len() > 1,
        }
    }

    /// The tree as lines of text. Every online processor is in it; groups alike are folded only
    /// where the tree would be long, and then the processors of each are listed.
    pub fn to_text(&self) -> String {
        let tree = |folded| {
            let mut lines = Lines {
                text: String::new(),
                folded,
                asymmetric: self.asymmetric,
            };
            lines.children(&self.groups, "");
            lines.text
        };
        let mut text = tree(false);
        if text.lines().count() > MAX_LINES {
            text = tree(true);
        }
        for (part, cpus) in &self.crossing {
            let name = describe(part, self.asymmetric);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "across: {name} of {cpus}");
        }
        if text.contains('[') {
            text.push_str("[P…]: not for this process\n");
        }
        if !self.offline.is_empty() {
            let _ = writeln!(text, "offline: {}", self.offline);
        }
        text
    }
}

/// Puts a part, no larger than any before it, where it nests; gives it back if it nests nowhere.
fn place(groups: &mut Vec<Group>, part: Part, cpus: &CpuSet) -> Option<Part> {
    if let Some(group) = groups.iter_mut().find(|g| cpus.is_subset(&g.cpus)) {
        if group.cpus == *cpus {
            group.parts.push(part);
            return None;
        }
        return place(&mut group.children, part, cpus);
    }
    if groups.iter().any(|g| !g.cpus.intersection(cpus).is_empty()) {
        return Some(part);
    }
    groups.push(Group {
        parts: vec![part],
        cpus: cpus.clone(),
        children: Vec::new(),
    });
    None
}

fn sort(groups: &mut [Group]) {
    groups.sort_by_key(|g| g.cpus.lowest());
    for group in groups {
        sort(&mut group.children);
    }
}

impl Group {
    /// Is it a core with nothing but processors in it?
    fn is_core(&self) -> bool {
        self.parts
            .iter()
            .any(|p| matches!(p, Part::Core(_) | Part::Processor(_)))
            && self
                .children
                .iter()
                .all(|c| c.children.is_empty() && c.parts.len() == 1)
    }

    /// What it is, without the numbers of its parts, and with those of its processors relative to
    /// its lowest one: groups with the same shape differ in nothing that matters here.
    fn shape(&self) -> String {
        let base = self.cpus.lowest().map_or(0, |c| c.0);
        let mut shape = String::new();
        self.push_shape(base, &mut shape);
        shape
    }
    fn push_shape(&self, base: u32, shape: &mut String) {
        for part in &self.parts {
            match part {
                Part::Socket(_) => shape.push_str("socket "),
                Part::Node(_) => shape.push_str("node "),
                Part::Core(_) => shape.push_str("core "),
                Part::Cache(_) => shape.push_str(&describe(part, true)),
                Part::Processor(p) => {
                    let _ = write!(shape, "P{} {} {:?} ", p.id.0 - base, p.usable, p.capacity);
                }
            }
        }
        shape.push('(');
        for child in &self.children {
            child.push_shape(base, shape);
        }
        shape.push(')');
    }

    /// The processors of a core: `P0`, or `P0+P4` for SMT siblings.
    fn processors(&self) -> Vec<&Processor> {
        let own = self
            .parts
            .iter()
            .chain(self.children.iter().flat_map(|c| &c.parts));
        own.filter_map(|p| match p {
            Part::Processor(p) => Some(p),
            _ => None,
        })
        .collect()
    }
}

/// A part in a few words: `L2 3MiB 12-way`, `core 3`.
pub fn describe(part: &Part, with_line: bool) -> String {
    match part {
        Part::Socket(n) => format!("socket {n}"),
        Part::Node(n) => format!("node {n}"),
        Part::Core(n) => format!("core {n}"),
        Part::Processor(p) => format!("P{}", p.id),
        Part::Cache(c) => {
            let mut text = match c.size {
                Some(size) => format!("{} {size}", c.label()),
                None => format!("{} of unknown size", c.label()),
            };
            match (c.ways, c.sets) {
                (Some(1), _) => text.push_str(" direct-mapped"),
                (Some(_), Some(1)) => text.push_str(" fully associative"),
                (Some(ways), _) => {
                    let _ = write!(text, " {ways}-way");
                }
                (None, _) => {}
            }
            if let (true, Some(line)) = (with_line, c.line) {
                let _ = write!(text, " lines of {line} B");
            }
            text
        }
    }
}

impl Platform {
    /// Its counts in one line:
    /// `24 processors on 24 cores in 4 sockets; cache lines of 64 B; pages of 4KiB, 2MiB`.
    pub fn summary(&self) -> String {
        let online: Vec<_> = self.processors.iter().filter(|p| p.online).collect();
        let distinct = |key: &dyn Fn(&Processor) -> (u32, u32)| -> usize {
            online.iter().map(|p| key(p)).collect::<BTreeSet<_>>().len()
        };
        let (cores, sockets) = (
            distinct(&|p| (p.socket, p.core)),
            distinct(&|p| (p.socket, 0)),
        );
        let nodes = distinct(&|p| (p.node, 0));
        let mut parts = vec![format!(
            "{} on {} in {}",
            counted(online.len(), "processor"),
            counted(cores, "core"),
            counted(sockets, "socket")
        )];
        parts.push(counted(nodes, "NUMA node"));
        let offline: CpuSet = self
            .processors
            .iter()
            .filter(|p| !p.online)
            .map(|p| p.id)
            .collect();
        if !offline.is_empty() {
            parts.push(format!("{} offline", offline.len()));
        }
        let usable = self.usable();
        if usable.len() < online.len() {
            parts.push(match usable.is_empty() {
                true => "none of them for this process".to_owned(),
                false => format!("for this process: {usable}"),
            });
        }
        let lines: BTreeSet<u32> = self.caches.iter().filter_map(|c| c.line).collect();
        if !lines.is_empty() {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            parts.push(format!("cache lines of {} B", lines.join(" or ")));
        }
        if !self.page_sizes.is_empty() {
            let sizes: Vec<String> = self.page_sizes.iter().map(Bytes::to_string).collect();
            parts.push(format!("pages of {}", sizes.join(", ")));
        }
        parts.join("; ")
    }
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str) -> String {
        Hierarchy::of(&Platform::builtin(name).unwrap()).to_text()
    }

    #[test]
    fn the_trees_of_the_built_in_platforms() {
        let names = crate::builtin::PLATFORMS.map(|b| b.name);
        let trees: Vec<String> = names
            .iter()
            .chain(&["symmetric:m=8"])
            .map(|name| format!("{name}\n{}", tree(name)))
            .collect();
        insta::assert_snapshot!(trees.join("\n"));
    }

    /// Four sockets of eight L3 caches of eight cores with two threads: far too many lines to draw
    /// each.
    #[test]
    fn a_large_machine_is_folded_and_every_processor_still_named() {
        let mut platform = Platform::symmetric(512);
        for p in &mut platform.processors {
            let core = p.id.0 % 256;
            (p.core, p.socket) = (core % 64, core / 64);
        }
        for l3 in 0..32 {
            let cpus = (8 * l3..8 * l3 + 8)
                .flat_map(|c| [c, c + 256])
                .map(crate::CpuId)
                .collect();
            platform.caches.push(Cache {
                level: 3,
                kind: crate::CacheKind::Unified,
                size: Some(crate::Bytes::from_mib(32)),
                ways: Some(16),
                line: Some(64),
                sets: None,
                shared_by: cpus,
                strategy: crate::Strategy::default(),
            });
        }
        insta::assert_snapshot!(Hierarchy::of(&platform).to_text());
        // One cache that differs is drawn apart.
        platform.caches[5].size = Some(crate::Bytes::from_mib(16));
        insta::assert_snapshot!(
            "a_large_machine_with_one_cache_that_differs",
            Hierarchy::of(&platform).to_text()
        );
    }

    #[test]
    fn parts_that_do_not_nest_are_named_apart() {
        let mut platform = Platform::symmetric(4);
        platform.processors[3].online = false;
        for cpus in ["0-1", "1-2"] {
            platform.caches.push(Cache {
                level: 2 + u8::from(cpus == "1-2"),
                kind: crate::CacheKind::Unified,
                size: None,
                ways: None,
                line: None,
                sets: None,
                shared_by: cpus.parse().unwrap(),
                strategy: crate::Strategy::default(),
            });
        }
        let text = Hierarchy::of(&platform).to_text();
        assert!(text.contains("across: L2 of unknown size of 0-1"), "{text}");
        assert!(text.ends_with("offline: 3\n"), "{text}");
    }
}
