//! The hierarchy of a platform as lines of text.

use super::{Group, Part, describe};
use crate::cpus::CpuSet;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A tree of more lines than this is folded: groups alike are drawn once, with the processors of
/// each.
pub(super) const MAX_LINES: usize = 40;

/// The lines of the tree in the making.
pub(super) struct Lines {
    pub(super) text: String,
    pub(super) folded: bool,
    pub(super) asymmetric: bool,
}

impl Lines {
    pub(super) fn children(&mut self, groups: &[Group], indent: &str) {
        let mut rest = groups;
        while let Some(first) = rest.first() {
            let shape = first.shape();
            let alike = rest.iter().take_while(|g| g.shape() == shape).count();
            let run = if alike > 1 && (first.is_core() || self.folded) {
                alike
            } else {
                1
            };
            let (these, after) = rest.split_at(run);
            let (branch, below) = if after.is_empty() {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            self.text.push_str(indent);
            self.text.push_str(branch);
            self.heading(these);
            self.text.push('\n');
            if !first.is_core() {
                self.children(&first.children, &format!("{indent}{below}"));
            }
            rest = after;
        }
    }

    /// The line of one group, or of several alike.
    fn heading(&mut self, groups: &[Group]) {
        let Some(first) = groups.first() else { return };
        if groups.len() > 1 {
            let _ = write!(self.text, "{} × ", groups.len());
        }
        let mut words: Vec<String> = Vec::new();
        for (index, part) in first.parts.iter().enumerate() {
            match part {
                Part::Processor(_) => {}
                Part::Cache(_) => words.push(describe(part, false)),
                Part::Socket(_) | Part::Node(_) | Part::Core(_) => {
                    words.push(self.numbered(groups, index, part));
                }
            }
        }
        self.text.push_str(&words.join(", "));
        if first.is_core() {
            let cores: Vec<String> = groups.iter().map(|g| self.core(g)).collect();
            let colon = if words.is_empty() { "" } else { ": " };
            let _ = write!(self.text, "{colon}{}", cores.join(", "));
            if let (true, Some(capacity)) = (
                self.asymmetric,
                first.processors().first().and_then(|p| p.capacity),
            ) {
                let _ = write!(self.text, " (capacity {capacity})");
            }
        } else if groups.len() > 1 {
            let sets: Vec<String> = groups.iter().map(|g| g.cpus.to_string()).collect();
            let _ = write!(
                self.text,
                ", of processors {}; the first:",
                sets.join(" | ")
            );
        }
    }

    /// `core 0`, or for groups alike `cores 0-3`.
    fn numbered(&self, groups: &[Group], index: usize, part: &Part) -> String {
        let number = |part: &Part| match part {
            Part::Socket(n) | Part::Node(n) | Part::Core(n) => Some(*n),
            Part::Cache(_) | Part::Processor(_) => None,
        };
        let all: BTreeSet<u32> = groups
            .iter()
            .filter_map(|g| number(g.parts.get(index)?))
            .collect();
        let name = match part {
            Part::Socket(_) => "socket",
            Part::Node(_) => "node",
            _ => "core",
        };
        let list: CpuSet = all.iter().map(|n| crate::cpus::CpuId(*n)).collect();
        let plural = if all.len() > 1 { "s" } else { "" };
        format!("{name}{plural} {list}")
    }

    pub(super) fn core(&self, group: &Group) -> String {
        let processors = group.processors();
        let names: Vec<String> = processors
            .iter()
            .map(|p| {
                if p.usable {
                    format!("P{}", p.id)
                } else {
                    format!("[P{}]", p.id)
                }
            })
            .collect();
        names.join("+")
    }
}
