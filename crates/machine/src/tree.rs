//! Reading sysfs and procfs below a root that tests can set. What is not there, or cannot be read,
//! is `None`.

use model::CpuSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The files of a machine below a root: `/` for this one.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
}

/// More than any file of sysfs and procfs that is read here; a kernel configuration has about 0.3
/// MiB.
const MAX_FILE: u64 = 4 << 20;

impl Tree {
    /// The files below `root`.
    pub fn new(root: &Path) -> Self {
        Tree {
            root: root.to_owned(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The bytes of a file, at most 4 MiB.
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.path(path)).ok()?;
        file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The text of a file without the white space around it. Device trees end their texts with a
    /// NUL byte.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes(path)?).into_owned();
        Some(
            text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
                .to_owned(),
        )
    }

    /// A file that holds one value; `None` too where it holds something else.
    pub fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// A file that holds a list of processors. An empty file is an empty list.
    pub fn cpus(&self, path: &str) -> Option<CpuSet> {
        self.value(path)
    }

    /// The names in a directory, sorted.
    pub fn names(&self, path: &str) -> Option<Vec<String>> {
        let entries = std::fs::read_dir(self.path(path)).ok()?;
        let mut names: Vec<String> = entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        Some(names)
    }

    /// The numbers behind `prefix` in the names of a directory, ascending: 0 and 2 for `node0`,
    /// `node2`.
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .names(path)
            .unwrap_or_default()
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// The number of the file that a path leads to.
    pub fn inode(&self, path: &str) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        Some(std::fs::metadata(self.path(path)).ok()?.ino())
    }

    /// Is there such a file or directory?
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}
