//! Families of studies: every scenario of a section of 002, chapter 6, run by one command into one
//! directory for each.

use crate::charts::{self, plot};
use crate::study::{Options, executor, run_share_by};
use model::watch::Watch;
use model::{Error, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};
use study::families;

/// A study of a family that was run.
#[derive(Clone, Debug, Serialize)]
pub struct Done {
    /// Its name.
    pub study: String,
    /// Where its results are.
    pub directory: PathBuf,
    /// Are all parts of it there? Not where a share of them was asked for.
    pub complete: bool,
}

/// What came of a family. JSON: as `warmset study run FAMILY --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The family.
    pub family: String,
    /// Its studies.
    pub studies: Vec<Done>,
}

/// Does the name stand for several studies?
pub fn is_family(name: &str) -> bool {
    !families::members(name).is_empty()
}

/// Runs each study of a family into a directory of its own within `options.output`, or goes on with
/// those that were stopped there, and draws the charts of those that are complete.
///
/// # Errors
/// There is no such family; no directory is named; a study of it cannot be run, or was stopped:
/// those before it are complete.
pub fn run(name: &str, options: &Options, watch: &dyn Watch) -> Result<Run> {
    let names = families::members(name);
    if names.is_empty() {
        return Err(
            Error::new(format!("there is no family of studies `{name}`"))
                .remedy("`warmset study list` shows all"),
        );
    }
    let Some(into) = &options.output else {
        return Err(Error::new(format!(
            "`{name}` stands for {} studies, and their results are kept nowhere",
            names.len()
        ))
        .at("--output")
        .remedy("add `-o DIR`: each study gets a directory in it"));
    };
    let executor = executor(options, watch)?;
    let mut studies = Vec::with_capacity(names.len());
    for (at, study) in names.iter().enumerate() {
        watch.note(&format!("{} of {}: {study}", at + 1, names.len()));
        let directory = into.join(study);
        let options = Options {
            output: Some(directory.clone()),
            ..options.clone()
        };
        let results = run_share_by(&*executor, study, &options, watch);
        let results = results.map_err(|e| e.at(study))?;
        if let Some(results) = &results {
            plot(results, &charts::Options::default(), &directory)?;
        }
        studies.push(Done {
            study: study.clone(),
            directory,
            complete: results.is_some(),
        });
    }
    Ok(Run {
        family: name.to_owned(),
        studies,
    })
}

/// Puts shares of a family together: the directories of each study that any of these has. Studies of
/// which shares are missing are not complete, and may be merged again.
///
/// # Errors
/// None has a study in it; shares of a study do not belong together.
pub fn merge(shares: &[PathBuf], into: &Path) -> Result<Run> {
    let mut names: Vec<String> = Vec::new();
    for share in shares {
        for dir in below(share)? {
            let name = dir
                .file_name()
                .and_then(|name| name.to_str())
                .map(str::to_owned);
            names
                .extend(name.filter(|name| dir.join(DEFINITION).exists() && !names.contains(name)));
        }
    }
    if names.is_empty() {
        return Err(Error::new("no study is in it")
            .at(shares
                .first()
                .map_or(Path::new(""), PathBuf::as_path)
                .display())
            .remedy("name directories that `warmset study run -o` made"));
    }
    let mut studies = Vec::new();
    for study in names {
        let parts = shares.iter().map(|share| share.join(&study));
        let parts: Vec<PathBuf> = parts.filter(|dir| dir.join(DEFINITION).exists()).collect();
        let directory = into.join(&study);
        let results = study::merge(&parts, &directory).map_err(|e| e.at(&study))?;
        if let Some(results) = &results {
            plot(results, &charts::Options::default(), &directory)?;
        }
        studies.push(Done {
            study,
            directory,
            complete: results.is_some(),
        });
    }
    Ok(Run {
        family: String::new(),
        studies,
    })
}

/// Does a directory hold studies in directories, and none itself?
pub fn holds_family(dir: &Path) -> bool {
    let has = |dir: &PathBuf| dir.join(DEFINITION).exists();
    !dir.join(DEFINITION).exists() && below(dir).is_ok_and(|dirs| dirs.iter().any(has))
}

/// What a directory of a study holds.
const DEFINITION: &str = "study.toml";
const RESULTS: &str = "results.json";
/// How deep studies lie below a directory that is named: a family, a scenario, a factor.
const DEPTH: usize = 3;

/// The directories of studies at or below these, each once, in their order; studies that are not
/// complete are told apart.
///
/// # Errors
/// A directory has none; it cannot be read.
pub fn directories(named: &[PathBuf]) -> Result<Found> {
    let mut found = Found::default();
    for dir in named {
        let before = found.complete.len() + found.unfinished.len();
        collect(dir, DEPTH, &mut found)?;
        if found.complete.len() + found.unfinished.len() == before {
            return Err(Error::new("no study is in it")
                .at(dir.display())
                .remedy("name a directory that `warmset study run -o` made"));
        }
    }
    Ok(found)
}

/// Directories of studies.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Those that are complete.
    pub complete: Vec<PathBuf>,
    /// Those that are not.
    pub unfinished: Vec<PathBuf>,
}

fn collect(dir: &Path, depth: usize, found: &mut Found) -> Result<()> {
    if dir.join(DEFINITION).exists() {
        let list = match dir.join(RESULTS).exists() {
            true => &mut found.complete,
            false => &mut found.unfinished,
        };
        if !list.iter().any(|known| known == dir) {
            list.push(dir.to_owned());
        }
    }
    if depth == 0 {
        return Ok(());
    }
    below(dir)?
        .iter()
        .try_for_each(|below| collect(below, depth - 1, found))
}

/// The directories in one, by their names.
fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let io = |e: &std::io::Error| Error::io(dir, "read the directory", e);
    let mut inside: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| io(&e))? {
        let entry = entry.map_err(|e| io(&e))?;
        if entry.file_type().map_err(|e| io(&e))?.is_dir() {
            inside.push(entry.path());
        }
    }
    inside.sort();
    Ok(inside)
}
