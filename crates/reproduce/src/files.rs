//! The input files that commands of the index name: those under `examples/`, carried along so that
//! an installed command finds them, and studies that differ from a preset in little.

use model::{Result, files};
use std::path::{Path, PathBuf};

/// Files of the source tree, by their paths in it.
const EXAMPLES: [(&str, &str); 10] = [
    (
        "examples/figures/one-processor.toml",
        include_str!("../../../examples/figures/one-processor.toml"),
    ),
    (
        "examples/figures/two-processors.toml",
        include_str!("../../../examples/figures/two-processors.toml"),
    ),
    (
        "examples/figures/partition.json",
        include_str!("../../../examples/figures/partition.json"),
    ),
    (
        "examples/figures/cache.toml",
        include_str!("../../../examples/figures/cache.toml"),
    ),
    (
        "examples/figures/profiler.toml",
        include_str!("../../../examples/figures/profiler.toml"),
    ),
    (
        "examples/figures/shared-cache.toml",
        include_str!("../../../examples/figures/shared-cache.toml"),
    ),
    (
        "examples/figures/seven-tasks.toml",
        include_str!("../../../examples/figures/seven-tasks.toml"),
    ),
    (
        "examples/overheads/tasks.toml",
        include_str!("../../../examples/overheads/tasks.toml"),
    ),
    (
        "examples/overheads/who.json",
        include_str!("../../../examples/overheads/who.json"),
    ),
    (
        "examples/overheads/profile.toml",
        include_str!("../../../examples/overheads/profile.toml"),
    ),
];

/// The release times of 002 Fig. 2.7.
const RELEASES: (&str, &str) = (
    "examples/overheads/releases.txt",
    include_str!("../../../examples/overheads/releases.txt"),
);

/// The content of a file that a command names; `None` where the word names no such file.
///
/// `studies/PRESET-PERIODS.toml` is the study `PRESET` with the periods `PERIODS`.
pub fn content(word: &str) -> Option<String> {
    let mut examples = EXAMPLES.iter().chain([&RELEASES]);
    if let Some((_, text)) = examples.find(|(path, _)| *path == word) {
        return Some((*text).to_owned());
    }
    let name = word.strip_prefix("studies/")?.strip_suffix(".toml")?;
    if name == "semi-partitioned" {
        return Some(SEMI_PARTITIONED.to_owned());
    }
    let (preset, periods) = name.rsplit_once('-')?;
    Some(format!(
        "# The study `{preset}` with other periods.\n\
         based_on = \"{preset}\"\nname = \"{name}\"\ntitle = \"As {preset}, {periods} periods, no \
         kernel overheads\"\nperiods = \"{periods}\"\n"
    ))
}

/// 002 Fig. 6.9 without its overheads and cache delays, where its curves lie apart.
const SEMI_PARTITIONED: &str = "\
# 002 Fig. 6.9, the curves without overheads: hard, uniform light utilizations, moderate periods.
name = \"semi-partitioned\"
title = \"Semi-partitioned, hard, uniform light, moderate periods, no overheads\"
platform = \"xeon-l7455\"
policies = [\"p-edf\", \"EDF-WM\", \"NPS-F\", \"C-NPS-F\"]
guarantee = \"hard\"
utilizations = \"uniform-light\"
periods = \"moderate\"
deadlines = \"implicit\"
fill = \"drop\"
caps = { from = 20, to = 24, step = 0.25 }
delays = { from = \"0us\" }
sets = 100
seed = 1
";

/// The words of a command, with files written into the directory and named there.
///
/// # Errors
/// A file cannot be written.
pub fn words_in(words: &str, dir: &Path) -> Result<Vec<String>> {
    let word = |word: &str| -> Result<String> {
        let path = match (word, word.strip_prefix("out/")) {
            ("out", _) => dir.to_owned(),
            (_, Some(rest)) => dir.join(rest),
            _ => match content(word) {
                Some(text) => written(&dir.join(word), &text)?,
                None => return Ok(word.to_owned()),
            },
        };
        Ok(path.to_string_lossy().into_owned())
    };
    words.split_whitespace().map(word).collect()
}

/// Writes a file, and the directories above it; its path.
fn written(path: &Path, text: &str) -> Result<PathBuf> {
    if let Some(parent) = path.parent() {
        files::make_dir(parent)?;
    }
    files::write(path, text)?;
    Ok(path.to_owned())
}
