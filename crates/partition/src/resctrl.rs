//! Hardware partitions of a cache, driven by the same words as colors: the ways of a cache are
//! given out through resctrl.
//!
//! Source: the kernel's `resctrl.rst`. A group is a directory below the file system's root, with
//! `schemata` (which ways, by cache) and `tasks` (whose). The root group is everybody else; giving
//! its ways to others takes them from it. All is put back when this is dropped.

use crate::colors::{Color, Colors};
use machine::settings::Settings;
use model::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the file system is mounted.
pub const ROOT: &str = "/sys/fs/resctrl";

/// The ways of a cache, as the hardware lets them be given out.
#[derive(Debug)]
pub struct Ways {
    root: PathBuf,
    /// `L3` or `L2`.
    resource: String,
    /// How many there are.
    number: u16,
    /// The fewest that a group may have.
    least: u16,
    /// May a group's ways have gaps?
    gaps: bool,
    /// The caches, by their numbers in the schemata.
    caches: Vec<u32>,
    /// Directories made here.
    groups: Vec<PathBuf>,
    /// The root group as it was.
    changed: Settings,
}

fn read(path: &Path) -> Result<String> {
    let text =
        std::fs::read_to_string(path).map_err(|e| Error::io(path, "read the partition", &e))?;
    Ok(text.trim().to_owned())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| {
        Error::io(path, &format!("write `{text}`"), &e)
            .remedy("run as root; the kernel says more in info/last_cmd_status")
    })
}

fn number(path: &Path, radix: u32) -> Result<u32> {
    let text = read(path)?;
    u32::from_str_radix(&text, radix)
        .map_err(|_| Error::new(format!("`{text}` is no number")).at(path.display()))
}

impl Ways {
    /// What there is below a root: of the last-level cache, or else of the second level.
    ///
    /// # Errors
    /// There is no such file system, or no cache whose ways can be given out.
    pub fn open(root: &Path) -> Result<Self> {
        if !root.join("schemata").exists() {
            return Err(Error::new("this machine shows no hardware partitions of its caches")
                .at(root.display())
                .remedy("partition by page colors instead; where the processor has cache allocation, as root: `mount -t resctrl resctrl /sys/fs/resctrl`"));
        }
        let resource = ["L3", "L2"]
            .into_iter()
            .find(|name| root.join("info").join(name).join("cbm_mask").exists())
            .ok_or_else(|| {
                Error::new("the hardware partitions no cache by ways")
                    .at(root.display())
                    .remedy("partition by page colors instead")
            })?;
        let info = root.join("info").join(resource);
        let mask = number(&info.join("cbm_mask"), 16)?;
        let schemata = read(&root.join("schemata"))?;
        let caches = schemata
            .lines()
            .find_map(|line| line.trim().strip_prefix(resource)?.strip_prefix(':'))
            .unwrap_or_default()
            .split(';')
            .filter_map(|part| part.split_once('=')?.0.trim().parse().ok())
            .collect();
        Ok(Ways {
            root: root.to_owned(),
            resource: resource.to_owned(),
            number: mask.count_ones() as u16,
            least: number(&info.join("min_cbm_bits"), 10)? as u16,
            gaps: read(&info.join("sparse_masks")).is_ok_and(|t| t == "1"),
            caches,
            groups: Vec::new(),
            changed: Settings::new(),
        })
    }

    /// How many ways can be given out.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The level of the cache.
    pub fn level(&self) -> u8 {
        if self.resource == "L2" { 2 } else { 3 }
    }

    /// Gives threads these ways, under the name of a group. Who else has them is the caller's plan.
    ///
    /// # Errors
    /// Ways that are not there, too few, or with gaps where the hardware has none; the kernel
    /// refuses: no more groups.
    pub fn give(&mut self, name: &str, ways: &Colors, threads: &[i32]) -> Result<()> {
        let schemata = self.schemata(ways)?;
        let group = self.root.join(format!("warmset-{name}"));
        std::fs::create_dir(&group).map_err(|e| {
            Error::io(&group, "make a partition", &e)
                .remedy("run as root, with fewer groups: info/*/num_closids says how many")
        })?;
        self.groups.push(group.clone());
        write(&group.join("schemata"), &schemata)?;
        for thread in threads {
            // One number a write.
            write(&group.join("tasks"), &thread.to_string())?;
        }
        Ok(())
    }

    /// Leaves everybody else these ways.
    ///
    /// # Errors
    /// As [`Ways::give`].
    pub fn leave_to_others(&mut self, ways: &Colors) -> Result<()> {
        let path = self.root.join("schemata");
        let before = read(&path)?;
        let line = before
            .lines()
            .find(|line| line.trim().starts_with(&self.resource))
            .unwrap_or_default()
            .trim()
            .to_owned();
        let after = self.schemata(ways)?;
        self.changed.restore(&path, &format!("{line}\n"))?;
        write(&path, &after)
    }

    fn schemata(&self, ways: &Colors) -> Result<String> {
        ways.check(self.number)?;
        let gaps = !self.gaps
            && ways
                .iter()
                .zip(ways.iter().skip(1))
                .any(|(low, high)| high.0 != low.0 + 1);
        if gaps || ways.len() < usize::from(self.least) {
            return Err(Error::new(format!(
                "the hardware does not give out ways {ways} of the {} together",
                self.resource
            ))
            .remedy(format!("name at least {}, one after the other", self.least)));
        }
        let mask = ways.bitmap();
        let mask = mask.trim_start_matches("0x");
        let caches: Vec<String> = self
            .caches
            .iter()
            .map(|id| format!("{id}={mask}"))
            .collect();
        Ok(format!("{}:{}\n", self.resource, caches.join(";")))
    }
}

impl Drop for Ways {
    fn drop(&mut self) {
        for group in &self.groups {
            // Its threads return to the root group. On a tree that is not the kernel's, its files
            // are in the way.
            if std::fs::remove_dir(group).is_err() && !self.root.starts_with("/sys") {
                let _ = std::fs::remove_dir_all(group);
            }
        }
    }
}

/// The same sharing with ways that lie together: hardware gives out no others. Sets of ways keep
/// their sizes, and what shares a way before shares it after; where they overlap in part, they are
/// taken together.
pub fn together(sets: &[Colors]) -> Vec<Colors> {
    // Ways that the same sets have are alike: they are numbered anew in the order of those sets.
    let mut kinds: BTreeMap<Vec<bool>, Vec<Color>> = BTreeMap::new();
    let all = sets.iter().fold(Colors::new(), |all, set| all.union(set));
    for way in all.iter() {
        let kind = sets.iter().map(|set| !set.contains(way)).collect();
        kinds.entry(kind).or_default().push(way);
    }
    let mut next = 0;
    let mut new: BTreeMap<Color, Color> = BTreeMap::new();
    for ways in kinds.values() {
        for way in ways {
            new.insert(*way, Color(next));
            next += 1;
        }
    }
    sets.iter()
        .map(|set| {
            set.iter()
                .filter_map(|way| new.get(&way).copied())
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree as an Intel server shows it: 11 ways of two caches.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let info = dir.path().join("info/L3");
        std::fs::create_dir_all(&info).unwrap();
        std::fs::write(info.join("cbm_mask"), "7ff\n").unwrap();
        std::fs::write(info.join("min_cbm_bits"), "1\n").unwrap();
        std::fs::write(
            dir.path().join("schemata"),
            "    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n",
        )
        .unwrap();
        std::fs::write(dir.path().join("tasks"), "").unwrap();
        dir
    }
    fn colors(text: &str) -> Colors {
        text.parse().unwrap()
    }

    #[test]
    fn colors_become_ways_of_groups_and_all_is_put_back() {
        let dir = tree();
        let at = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        let mut ways = Ways::open(dir.path()).unwrap();
        assert_eq!((ways.number(), ways.level()), (11, 3));
        ways.give("camera", &colors("0-3"), &[4711]).unwrap();
        assert_eq!(at("warmset-camera/schemata"), "L3:0=f;1=f\n");
        assert_eq!(at("warmset-camera/tasks"), "4711");
        ways.leave_to_others(&colors("4-10")).unwrap();
        assert_eq!(at("schemata"), "L3:0=7f0;1=7f0\n");
        drop(ways);
        assert!(!dir.path().join("warmset-camera").exists());
        assert_eq!(at("schemata"), "L3:0=7ff;1=7ff\n");
    }

    #[test]
    fn what_the_hardware_has_not_is_refused() {
        let dir = tree();
        let mut ways = Ways::open(dir.path()).unwrap();
        for wrong in ["0,2", "9-11", ""] {
            assert!(ways.give("a", &colors(wrong), &[]).is_err(), "{wrong}");
        }
        let e = Ways::open(&dir.path().join("info"))
            .unwrap_err()
            .to_string();
        assert!(
            e.contains("no hardware partitions") && e.contains("page colors"),
            "{e}"
        );
    }

    #[test]
    fn sets_with_gaps_are_laid_together_and_share_what_they_shared() {
        let sets = ["0,4,8", "1,5", "0,4,8", "2,6"].map(colors);
        let laid: Vec<String> = together(&sets).iter().map(ToString::to_string).collect();
        assert_eq!(laid, ["0-2", "3-4", "0-2", "5-6"]);
    }
}
