//! Keeps what is done, so that a command goes on where it was stopped.

use super::{Distribution, Options, Row, Which};
use model::{Error, Result, files};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What is done, a line each, behind a line that says of which options.
pub(super) struct Journal {
    pub(super) done: BTreeMap<Which, Row>,
    file: Option<(PathBuf, Mutex<File>)>,
}

impl Journal {
    pub(super) fn open(options: &Options, platform: &str) -> Result<Self> {
        let Some(path) = &options.journal else {
            return Ok(Journal {
                done: BTreeMap::new(),
                file: None,
            });
        };
        let head = format!(
            "{{\"sets of 003\":{{\"platform\":{platform:?},\"seed\":{},\"horizon_ns\":{}}}}}\n",
            options.seed,
            options.horizon.nanos()
        );
        let (text, done) = match path.exists() {
            false => (head, BTreeMap::new()),
            true => kept(path, &head)?,
        };
        // Written anew, so that no line that was cut off stays in the middle.
        files::write(path, &text)?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(|e| Error::io(path, "write the journal", &e))?;
        Ok(Journal {
            done,
            file: Some((path.clone(), Mutex::new(file))),
        })
    }

    pub(super) fn keep(&self, row: &Row) -> Result<()> {
        let Some((path, file)) = &self.file else {
            return Ok(());
        };
        let line = serde_json::to_string(row).map_err(|e| {
            Error::new(format!("a row is no JSON: {e}")).at(path.display().to_string())
        })? + "\n";
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .map_err(|e| Error::io(path, "write the journal", &e))
    }
}

/// The whole lines of a journal, and the rows in them.
fn kept(path: &Path, head: &str) -> Result<(String, BTreeMap<Which, Row>)> {
    let text = files::read_text(path)?;
    let Some(rows) = text.strip_prefix(head) else {
        return Err(Error::new("the journal is of other options, or is none")
            .at(path.display().to_string())
            .remedy("give the same platform, seed and `--for`, or another `--journal`"));
    };
    let mut whole = head.to_owned();
    let mut done = BTreeMap::new();
    let lines = rows.split_inclusive('\n');
    // The head is the first one; the last one may be cut off.
    for (number, line) in (2..).zip(lines.filter(|line| line.ends_with('\n'))) {
        let no_row = |e: &dyn std::fmt::Display| {
            // The parser knows this line alone, as its first.
            let e = e.to_string().replace(" at line 1 column", ", column");
            Error::new(format!("this line of the journal is no row: {e}"))
                .at(format!("{}: line {number}", path.display()))
                .remedy("remove the line, or the file")
        };
        let row: Row = serde_json::from_str(line).map_err(|e| no_row(&e))?;
        whole.push_str(line);
        let distribution: Distribution = row.distribution.parse().map_err(|e: Error| no_row(&e))?;
        done.insert((distribution, row.sequential, row.set), row);
    }
    Ok((whole, done))
}
