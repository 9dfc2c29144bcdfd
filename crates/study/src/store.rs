//! A study in a directory: what it is, the counts of each cap as they come, and the results at the
//! end.
//!
//! `study.toml` and `platform.toml` say which study; `caps/U.json` appears when a cap is complete;
//! `results.json`, `results.csv` and `weighted.csv` when all are. Whatever is there was written
//! whole. A study that was stopped goes on where it was; the files are the same as without the
//! stop, byte by byte.

use crate::definition::Study;
use crate::grid::Cap;
use crate::results::Results;
use crate::run::{Shard, run_shards};
use model::watch::Watch;
use model::{Error, Result, files};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const DEFINITION: &str = "study.toml";
const PLATFORM: &str = "platform.toml";
const PROFILE: &str = "profile.toml";
const CAPS: &str = "caps";

/// One cap in its file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapFile {
    cap: String,
    sets: u32,
    /// By policy, then by delay.
    accepted: Vec<Vec<u32>>,
}

fn cap_file(dir: &Path, cap: Cap) -> PathBuf {
    dir.join(CAPS).join(format!("{:09.3}.json", cap.to_f64()))
}

/// Can this study be run, or gone on with, in this directory? Nothing is written.
///
/// # Errors
/// The directory holds another study, or the same with other parameters.
pub fn fits_in(dir: &Path, study: &Study) -> Result<()> {
    for (name, text) in files_of(study) {
        match_if_there(&dir.join(name), &text)?;
    }
    Ok(())
}

/// The files that say which study a directory holds.
fn files_of(study: &Study) -> Vec<(&'static str, String)> {
    let profile = study.charged.profile.as_ref();
    let profile = profile.map(|p| (PROFILE, model::profilefile::to_toml(p)));
    let both = [
        (PLATFORM, model::platformfile::to_toml(&study.platform)),
        (DEFINITION, definition(study)),
    ];
    profile.into_iter().chain(both).collect()
}

/// Runs a study in a directory, or what of it is missing there.
///
/// # Errors
/// The study is not sound; the directory holds another study, or files that are not from one, or
/// cannot be written; stopped (complete caps are kept).
pub fn run_in(dir: &Path, study: &Study, watch: &dyn Watch) -> Result<Results> {
    let prepared = study.prepare()?;
    for (name, text) in files_of(study) {
        let path = dir.join(name);
        if !match_if_there(&path, &text)? {
            files::write(&path, text)?;
        }
    }
    let shape = (prepared.policies.len(), prepared.delays.len());
    let mut done = Vec::new();
    for cap in &prepared.caps {
        let file = cap_file(dir, *cap);
        if file.exists() {
            done.push(read_cap(&file, *cap, study.sets, shape)?);
        }
    }
    if !done.is_empty() && done.len() < prepared.caps.len() {
        watch.note(&format!(
            "{} of {} caps are there already",
            done.len(),
            prepared.caps.len()
        ));
    }
    let shards = run_shards(study, &prepared, done, watch, |shard| {
        let out = CapFile {
            cap: shard.cap.to_string(),
            sets: study.sets,
            accepted: shard.accepted.clone(),
        };
        let text = serde_json::to_string(&out)
            .map_err(|e| Error::new(format!("the counts cannot be written as JSON: {e}")))?;
        files::write(&cap_file(dir, shard.cap), text + "\n")
    })?;
    let results = Results::of(study, &prepared, shards)?;
    files::write(&dir.join("results.json"), results.to_json()?)?;
    files::write(&dir.join("results.csv"), results.to_csv())?;
    files::write(&dir.join("weighted.csv"), results.to_weighted_csv())?;
    Ok(results)
}

/// Is the file there, with this text?
fn match_if_there(path: &Path, text: &str) -> Result<bool> {
    if !path.exists() {
        return Ok(false);
    }
    if files::read_text(path)? == text {
        return Ok(true);
    }
    Err(
        Error::new("the directory holds another study, or the same with other parameters")
            .at(path.display())
            .remedy("choose another directory, or remove this one"),
    )
}

/// The results of a directory whose study is complete.
///
/// # Errors
/// No study is there, it is not complete, or a file is not from one.
pub fn load(dir: &Path) -> Result<Results> {
    let path = dir.join(DEFINITION);
    let text = files::read_text(&path)
        .map_err(|e| e.remedy("name a directory that `warmset study run -o` made"))?;
    let platform = |_: &str| read(&dir.join(PLATFORM), model::platformfile::from_toml);
    let profile = |_: &str| read(&dir.join(PROFILE), model::profilefile::from_toml);
    let study =
        crate::file::from_toml(&text, platform, profile).map_err(|e| e.at(path.display()))?;
    let prepared = study.prepare()?;
    let shape = (prepared.policies.len(), prepared.delays.len());
    let mut shards = Vec::new();
    for cap in &prepared.caps {
        let file = cap_file(dir, *cap);
        shards.push(if file.exists() {
            Some(read_cap(&file, *cap, study.sets, shape)?)
        } else {
            None
        });
    }
    let complete = shards.iter().filter(|s| s.is_some()).count();
    if complete < shards.len() {
        return Err(Error::new(format!(
            "the study is not complete: {complete} of {} caps",
            shards.len()
        ))
        .at(dir.display())
        .remedy("run `warmset study run` on it again"));
    }
    Results::of(&study, &prepared, shards)
}

fn read<T>(path: &Path, from_toml: impl Fn(&str) -> Result<T>) -> Result<T> {
    from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()))
}

/// The definition with its head; part of it is the version, because another one may draw or judge
/// otherwise.
fn definition(study: &Study) -> String {
    let provenance = study.provenance();
    format!(
        "# {}: {}\n{}",
        provenance.source,
        provenance.command,
        study.to_toml()
    )
}

fn read_cap(path: &Path, cap: Cap, sets: u32, (policies, delays): (usize, usize)) -> Result<Shard> {
    let bad = |cause: String| {
        Error::new(cause)
            .at(path.display())
            .remedy("remove the file and run the study again")
    };
    let text = files::read_text(path)?;
    let found: CapFile =
        serde_json::from_str(&text).map_err(|e| bad(format!("not the counts of a cap: {e}")))?;
    let sound = found.cap == cap.to_string()
        && found.sets == sets
        && found.accepted.len() == policies
        && found
            .accepted
            .iter()
            .all(|row| row.len() == delays && row.iter().all(|n| *n <= sets));
    if !sound {
        return Err(bad("the counts are not those of this study".to_owned()));
    }
    Ok(Shard {
        cap,
        accepted: found.accepted,
    })
}
