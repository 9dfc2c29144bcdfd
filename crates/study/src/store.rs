//! A study in a directory: what it is, the counts of its parts as they come, and the results at the
//! end.
//!
//! `study.toml` and `platform.toml` say which study; `counts.jsonl` gets a line when a part is
//! counted; `results.json`, `results.csv`, `weighted.csv` and `points.parquet` are there when all
//! are. A line that a kill cut off is not read, and its part is counted again. A study that was
//! stopped or killed goes on where it was; in the end the files are the same as without the stop,
//! byte by byte. `lock` is held by the one command that works in the directory.

use crate::definition::Study;
use crate::elsewhere::{Texts, line_of};
use crate::part::{Counts, Share, Work};
use crate::points;
use crate::results::Results;
use crate::run::{Executor, Threads, advance};
use model::watch::Watch;
use model::{Error, Result, files};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const DEFINITION: &str = "study.toml";
const PLATFORM: &str = "platform.toml";
const PROFILE: &str = "profile.toml";
const COUNTS: &str = "counts.jsonl";
const LOCK: &str = "lock";

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
    let texts = Texts::of(study);
    let profile = texts.profile.map(|text| (PROFILE, text));
    let both = [(PLATFORM, texts.platform), (DEFINITION, texts.study)];
    profile.into_iter().chain(both).collect()
}

/// Runs a study in a directory, or what of it is missing there.
///
/// # Errors
/// As [`run_share_in`]; stopped.
pub fn run_in(dir: &Path, study: &Study, watch: &dyn Watch) -> Result<Results> {
    let work = run_share(dir, study, &Threads::default(), Share::WHOLE, watch)?;
    Results::of(&work)
}

/// Runs a share of a study in a directory by an executor, or what of the share is missing there.
/// The results, if with it every part of the study is there.
///
/// # Errors
/// The study is not sound; another command works in the directory; it holds another study, or files
/// that are not from one, or cannot be written; stopped before the share was complete (parts that
/// were counted are kept).
pub fn run_share_in(
    dir: &Path,
    study: &Study,
    executor: &dyn Executor,
    share: Share,
    watch: &dyn Watch,
) -> Result<Option<Results>> {
    let work = run_share(dir, study, executor, share, watch)?;
    let is_complete = work.missing(Share::WHOLE).is_empty();
    if share == Share::WHOLE || is_complete {
        return Results::of(&work).map(Some);
    }
    match work.missing(share).len() {
        0 => Ok(None),
        left => Err(Error::new(format!(
            "stopped with {left} parts of the share {share} of the study `{}` left",
            study.name
        ))
        .remedy("run it again: parts that were kept are not run again")),
    }
}

fn run_share<'a>(
    dir: &Path,
    study: &'a Study,
    executor: &dyn Executor,
    share: Share,
    watch: &dyn Watch,
) -> Result<Work<'a>> {
    let mut work = Work::new(study)?;
    let _lock = lock(dir)?;
    begin(dir, study)?;
    read_counts(dir, &mut work)?;
    let (all, missing) = (work.parts().len(), work.missing(Share::WHOLE).len());
    if (1..all).contains(&missing) {
        watch.note(&format!(
            "{} of {all} parts are there already",
            all - missing
        ));
    }
    // Written anew, so that no line that was cut off stays in the middle.
    write_counts(dir, &work)?;
    let path = dir.join(COUNTS);
    let io = |e: &std::io::Error| Error::io(&path, "write the counts", e);
    let journal = OpenOptions::new().append(true).open(&path);
    let journal = Mutex::new(journal.map_err(|e| io(&e))?);
    let keep = |counts: &Counts| {
        let line = line_of(counts)? + "\n";
        let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.write_all(line.as_bytes()).map_err(|e| io(&e))
    };
    advance(&mut work, executor, share, watch, &keep)?;
    finish(dir, &work)?;
    Ok(work)
}

/// Writes the counts in their order, and the results if all are there.
fn finish(dir: &Path, work: &Work<'_>) -> Result<()> {
    write_counts(dir, work)?;
    if !work.missing(Share::WHOLE).is_empty() {
        return Ok(());
    }
    let results = Results::of(work)?;
    files::write(&dir.join("results.json"), results.to_json()?)?;
    files::write(&dir.join("results.csv"), results.to_csv())?;
    files::write(&dir.join("weighted.csv"), results.to_weighted_csv())?;
    points::write(
        &dir.join("points.parquet"),
        work.study,
        &work.prepared,
        &results,
    )
}

/// Puts the counts of directories of one study together in another one. Parts that are in several
/// count once. The results, if every part is there.
///
/// # Errors
/// A directory holds no study or another one, or is worked in; the same sets were counted
/// differently; the directory cannot be written.
pub fn merge(dirs: &[PathBuf], into: &Path) -> Result<Option<Results>> {
    let first = dirs.first().ok_or_else(|| {
        Error::new("no directory is named").remedy("name those of the shares of a study")
    })?;
    let study = read_study(first)?;
    let mut work = Work::new(&study)?;
    let _lock = lock(into)?;
    begin(into, &study)?;
    read_counts(into, &mut work)?;
    for dir in dirs {
        for (name, text) in files_of(&study) {
            let same = match_if_there(&dir.join(name), &text)
                .map_err(|e| e.remedy("merge the shares of one study with the same parameters"))?;
            if !same {
                return Err(Error::new(format!("there is no `{name}`"))
                    .at(dir.display())
                    .remedy("name directories that `warmset study run -o` made"));
            }
        }
        read_counts(dir, &mut work)?;
    }
    finish(into, &work)?;
    match work.missing(Share::WHOLE).is_empty() {
        true => Results::of(&work).map(Some),
        false => Ok(None),
    }
}

/// Takes the directory for this command, as long as the file is open. The system frees it when the
/// process ends, however it ends.
fn lock(dir: &Path) -> Result<File> {
    files::make_dir(dir)?;
    let path = dir.join(LOCK);
    let io = |e: &std::io::Error| Error::io(&path, "lock the directory", e);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|e| io(&e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::new("another command works in the directory")
            .at(dir.display())
            .remedy("wait for it, or choose another directory")),
        Err(TryLockError::Error(e)) => Err(io(&e)),
    }
}

/// Writes which study the directory holds, where it is not there.
fn begin(dir: &Path, study: &Study) -> Result<()> {
    fits_in(dir, study)?;
    for (name, text) in files_of(study) {
        let path = dir.join(name);
        if !path.exists() {
            files::write(&path, text)?;
        }
    }
    Ok(())
}

fn write_counts(dir: &Path, work: &Work<'_>) -> Result<()> {
    let mut aside = files::Aside::create(dir.join(COUNTS))?;
    for counts in work.done() {
        aside
            .write_all((line_of(&counts)? + "\n").as_bytes())
            .map_err(|e| Error::io(dir.join(COUNTS), "write the counts", &e))?;
    }
    aside.finish()
}

/// Takes the counts of a directory that has some. What comes behind the last whole line was cut
/// off.
fn read_counts(dir: &Path, work: &mut Work<'_>) -> Result<()> {
    let path = dir.join(COUNTS);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(&path, "read the counts", &e)),
    };
    let end = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    for (at, line) in bytes[..end].split_inclusive(|b| *b == b'\n').enumerate() {
        let bad = |e: Error| {
            e.at(format!("line {}", at + 1))
                .at(path.display())
                .remedy("remove the file and run the study again")
        };
        let counts: Counts = serde_json::from_slice(line)
            .map_err(|e| bad(Error::new(format!("not the counts of a part: {e}"))))?;
        work.put(counts).map_err(bad)?;
    }
    Ok(())
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

/// The study of a directory.
fn read_study(dir: &Path) -> Result<Study> {
    let path = dir.join(DEFINITION);
    let text = files::read_text(&path)
        .map_err(|e| e.remedy("name a directory that `warmset study run -o` made"))?;
    let platform = |_: &str| read(&dir.join(PLATFORM), model::platformfile::from_toml);
    let profile = |_: &str| read(&dir.join(PROFILE), model::profilefile::from_toml);
    crate::file::from_toml(&text, platform, profile).map_err(|e| e.at(path.display()))
}

/// The results of a directory whose study is complete.
///
/// # Errors
/// No study is there, it is not complete, or a file is not from one.
pub fn load(dir: &Path) -> Result<Results> {
    load_whole(dir).map(|(_, results)| results)
}

/// The same with the study itself.
///
/// # Errors
/// As [`load`].
pub fn load_whole(dir: &Path) -> Result<(Study, Results)> {
    let study = read_study(dir)?;
    let mut work = Work::new(&study)?;
    read_counts(dir, &mut work)?;
    let (all, missing) = (work.parts().len(), work.missing(Share::WHOLE).len());
    if missing > 0 {
        return Err(Error::new(format!(
            "the study is not complete: {} of {all} parts",
            all - missing
        ))
        .at(dir.display())
        .remedy("run `warmset study run` on it again"));
    }
    let results = Results::of(&work)?;
    drop(work);
    Ok((study, results))
}

fn read<T>(path: &Path, from_toml: impl Fn(&str) -> Result<T>) -> Result<T> {
    from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()))
}

/// The definition with its head; part of it is the version, because another one may draw or judge
/// otherwise.
pub(crate) fn definition(study: &Study) -> String {
    let provenance = study.provenance();
    format!(
        "# {}: {}\n{}",
        provenance.source,
        provenance.command,
        study.to_toml()
    )
}
