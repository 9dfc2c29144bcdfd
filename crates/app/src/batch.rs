//! Batch files: many task sets from a file or a pipe, one answer line each (DESIGN, "Task sets").
//!
//! Lines are read as they come, answered on all processors in parallel, and written in the order
//! of the input. At the first bad line the answers of all lines before it stand; nothing behind it
//! is answered.

use crate::output::Output;
use crate::{has_room_for, workers};
use model::files::MAX_FILE;
use model::taskfile::{BatchSet, from_batch_line};
use model::watch::Watch;
use model::{Error, Result};
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Answers every line of `batch`, a file or `-` for standard input, into `output`. `answer` gives
/// one line, without its newline; `what` names the work for `watch`. Returns how many sets.
///
/// # Errors
/// The file cannot be read; a bad line, named by its number; no line at all; the output cannot be
/// written; the user stopped it. A file as output then does not appear.
pub fn run(
    what: &str,
    batch: &str,
    mut output: Output<'_>,
    watch: &dyn Watch,
    answer: impl Fn(&BatchSet) -> Result<String> + Sync,
) -> Result<u64> {
    workers()?;
    let (source, length) = open(batch)?;
    if let Some(bytes) = length {
        watch.begin(what, bytes);
    }
    let place = if batch == "-" {
        "standard input"
    } else {
        batch
    };
    has_room_for(1)?;
    let lines = std::thread::scope(|scope| {
        let (send, receive) = sync_channel(2);
        std::thread::Builder::new()
            .name("reader".to_owned())
            .spawn_scoped(scope, move || read_lines(source, &send))
            .map_err(|e| Error::io(place, "start a thread that reads", &e))?;
        answer_all(&receive, &answer, place, watch, &mut output)
    })?;
    watch.finish();
    if lines == 0 {
        return Err(Error::new("there are no task sets")
            .at(place)
            .remedy("give at least one line"));
    }
    output.finish()?;
    Ok(lines)
}

/// The batch and its length, if that is known.
fn open(batch: &str) -> Result<(Box<dyn Read + Send>, Option<u64>)> {
    if batch == "-" {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let cannot = |e: &std::io::Error| Error::io(batch, "read the file", e);
    let file = File::open(batch).map_err(|e| cannot(&e))?;
    let meta = file.metadata().map_err(|e| cannot(&e))?;
    if meta.is_dir() {
        return Err(Error::new("this is a directory")
            .at(batch)
            .remedy("name a file, not a directory"));
    }
    Ok((Box::new(file), meta.is_file().then_some(meta.len())))
}

/// Consecutive lines of the batch.
struct Chunk {
    /// The number of the first line, from 1.
    first: u64,
    lines: Vec<Vec<u8>>,
    /// What ended the reading, behind these lines.
    failure: Option<Error>,
}

/// The longest line. A set of a million tasks has room in it.
const MOST_BYTES: u64 = MAX_FILE;

/// Reads on while lines are at hand, so that a slow pipe is answered line by line and a file in
/// large pieces: of so many lines, or few long ones.
fn read_lines(source: Box<dyn Read + Send>, chunks: &SyncSender<Chunk>) {
    const MOST_LINES: usize = 4096;
    const ENOUGH_BYTES: usize = 8 << 20;
    let mut reader = BufReader::with_capacity(1 << 20, source);
    let mut first = 1;
    loop {
        let mut chunk = Chunk {
            first,
            lines: Vec::new(),
            failure: None,
        };
        let (mut at_end, mut bytes) = (false, 0);
        while chunk.lines.len() < MOST_LINES
            && bytes < ENOUGH_BYTES
            && (chunk.lines.is_empty() || !reader.buffer().is_empty())
        {
            let mut line = Vec::new();
            match reader
                .by_ref()
                .take(MOST_BYTES)
                .read_until(b'\n', &mut line)
            {
                Ok(0) => at_end = true,
                Ok(length) if length as u64 == MOST_BYTES => {
                    chunk.failure = Some(
                        Error::new(format!("the line is longer than {} MiB", MOST_BYTES >> 20))
                            .remedy("a task set has at most a million tasks"),
                    );
                    at_end = true;
                }
                Ok(length) => {
                    bytes += length;
                    chunk.lines.push(line);
                }
                Err(e) => {
                    chunk.failure = Some(Error::io("", "read the line", &e));
                    at_end = true;
                }
            }
            if at_end {
                break;
            }
        }
        first += chunk.lines.len() as u64;
        // A closed channel: the answers have ended, at an error or by the user.
        if chunks.send(chunk).is_err() || at_end {
            return;
        }
    }
}

/// Answers chunk by chunk; how many sets.
fn answer_all(
    chunks: &Receiver<Chunk>,
    answer: &(impl Fn(&BatchSet) -> Result<String> + Sync),
    place: &str,
    watch: &dyn Watch,
    output: &mut Output<'_>,
) -> Result<u64> {
    let mut sets = 0;
    for chunk in chunks {
        let mut failure = chunk.failure.map(|e| (chunk.lines.len(), e));
        let answers: Vec<Result<Option<String>>> = chunk
            .lines
            .par_iter()
            .map(|line| answer_line(line, answer))
            .collect();
        let mut text = String::new();
        for (index, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(Some(line)) => {
                    text.push_str(&line);
                    sets += 1;
                }
                Ok(None) => {}
                Err(e) => {
                    failure = Some((index, e));
                    break;
                }
            }
        }
        // A reader that closed the pipe changes nothing: the lines behind may still be bad.
        let _ = output.write(text.as_bytes())?;
        if let Some((index, e)) = failure {
            watch.finish();
            return Err(e
                .at(format!("line {}", chunk.first + index as u64))
                .at(place));
        }
        watch.advance(chunk.lines.iter().map(|l| l.len() as u64).sum());
        if watch.stopped() {
            watch.finish();
            return Err(Error::new(format!("stopped after {sets} task sets"))
                .at(place)
                .remedy(kept(output)));
        }
    }
    Ok(sets)
}

/// The answer to one line, with its newline; none for a blank one.
fn answer_line(
    line: &[u8],
    answer: impl Fn(&BatchSet) -> Result<String>,
) -> Result<Option<String>> {
    let text = std::str::from_utf8(line).map_err(|e| {
        Error::new("the line is not UTF-8 text")
            .at(format!("column {}", e.valid_up_to() + 1))
            .remedy("save the file as UTF-8")
    })?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut answer = answer(&from_batch_line(text.trim_end())?)?;
    answer.push('\n');
    Ok(Some(answer))
}

/// What becomes of the answers so far where the work is stopped.
fn kept(output: &Output<'_>) -> &'static str {
    match output {
        Output::Writer(..) => "their answers are printed; give the lines after them for the rest",
        Output::File(..) => "nothing is kept: the file appears only when it is complete",
    }
}
