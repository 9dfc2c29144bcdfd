//! What was tried and what came of it: a line a trial in a file that grows, details of what went
//! wrong beside it, and the table at the end.

use crate::plan::Trial;
use crate::trial::Report;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file of lines.
const LINES: &str = "trials.tsv";

/// A trial that was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    /// By which it is known: `SEED/NUMBER`, or the trial itself.
    key: String,
    trial: String,
    outcome: String,
    reached: bool,
    /// Kinds of what is wrong, with what exactly.
    wrong: Vec<(String, String)>,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [key, trial, outcome, reached, _seconds, wrong @ ..] = &fields[..] else {
            return None;
        };
        let wrong = wrong.iter().filter_map(|text| {
            let (kind, text) = text.split_once(": ")?;
            Some((kind.to_owned(), text.to_owned()))
        });
        Some(Row {
            key: (*key).to_owned(),
            trial: (*trial).to_owned(),
            outcome: (*outcome).to_owned(),
            reached: *reached == "reached",
            wrong: wrong.collect(),
        })
    }
}

/// All of a directory.
#[derive(Debug)]
pub struct Record {
    dir: PathBuf,
    file: File,
    rows: Vec<Row>,
    known: BTreeSet<String>,
}

impl Record {
    /// Goes on with what is there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(dir: &Path) -> std::io::Result<Self> {
        let path = dir.join(LINES);
        let text = match std::fs::read_to_string(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            read => read.unwrap_or_default(),
        };
        // The last line may be one whose writer was killed.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let rows: Vec<Row> = whole.lines().filter_map(Row::parse).collect();
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        if whole.len() + 1 < text.len() || (whole.is_empty() && !text.is_empty()) {
            file.write_all(b"\n")?;
        }
        Ok(Record {
            dir: dir.to_owned(),
            file,
            known: rows.iter().map(|row| row.key.clone()).collect(),
            rows,
        })
    }

    /// Holds results of one build of the command only: which is written down, and asked for later.
    ///
    /// # Errors
    /// What is here is of another build, or it cannot be written down.
    pub fn is_of(&self, version: &str) -> Result<(), String> {
        let path = self.dir.join("command");
        match std::fs::read_to_string(&path) {
            Ok(before) if before == version => Ok(()),
            Ok(_) => Err(
                "the results there are of another build of the command; remove the \
                          directory, or name another one with --keep"
                    .to_owned(),
            ),
            Err(_) => std::fs::write(&path, version).map_err(|e| e.to_string()),
        }
    }

    /// Was it carried out before, and over before anything was done to it?
    pub fn was_missed(&self, key: &str) -> bool {
        self.rows.iter().any(|row| row.key == key && !row.reached)
    }

    /// Was it carried out before?
    pub fn knows(&self, key: &str) -> bool {
        self.known.contains(key)
    }

    /// Adds one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, key: &str, report: &Report) -> std::io::Result<()> {
        let plain = |text: &str| text.replace(['\t', '\n'], " ");
        let reached = if report.reached { "reached" } else { "missed" };
        let mut line = format!(
            "{key}\t{}\t{}\t{reached}\t{:.2}",
            report.trial, report.outcome, report.seconds
        );
        for (kind, text) in &report.wrong {
            // No cell is empty: it says whether it is there.
            let _ = write!(line, "\t{}: {}", plain(kind), plain(text));
        }
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        if !report.wrong.is_empty() {
            let name: String = key
                .chars()
                .map(|c| if c.is_alphanumeric() { c } else { '-' })
                .collect();
            let mut text = format!("{}\n", report.trial);
            for (kind, what) in &report.wrong {
                let _ = writeln!(text, "{kind}: {what}");
            }
            text += &report.details;
            std::fs::write(self.dir.join(format!("{name}.txt")), text)?;
        }
        self.known.insert(key.to_owned());
        self.rows.extend(Row::parse(line.trim_end_matches('\n')));
        Ok(())
    }

    /// How many trials went wrong.
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| !row.wrong.is_empty()).count()
    }

    /// How many trials of each kind came to which end, and what went wrong, by kind.
    pub fn table(&self) -> String {
        let mut outcomes: BTreeSet<&str> = BTreeSet::new();
        let mut counts: BTreeMap<String, BTreeMap<&str, u32>> = BTreeMap::new();
        let mut missed: BTreeMap<String, u32> = BTreeMap::new();
        for row in &self.rows {
            let kind = row
                .trial
                .parse::<Trial>()
                .map_or("?".to_owned(), |t| t.fault.kind());
            outcomes.insert(&row.outcome);
            *counts
                .entry(kind.clone())
                .or_default()
                .entry(&row.outcome)
                .or_default() += 1;
            *missed.entry(kind).or_default() += u32::from(!row.reached);
        }
        let mut text = format!("{:28}", "fault");
        for outcome in &outcomes {
            let _ = write!(text, " {outcome:>17}");
        }
        let _ = writeln!(text, " {:>17}", "over before it");
        for (kind, of_kind) in &counts {
            let _ = write!(text, "{kind:28}");
            for outcome in &outcomes {
                let _ = write!(text, " {:>17}", of_kind.get(outcome).unwrap_or(&0));
            }
            let _ = writeln!(text, " {:>17}", missed[kind]);
        }
        let failed = self.failures();
        let _ = writeln!(
            text,
            "\n{} trials, {failed} with something wrong",
            self.rows.len()
        );
        for ((kind, what), rows) in self.groups() {
            let _ = writeln!(text, "  {:5} {kind}: {what}", rows.len());
            for row in rows.iter().take(3) {
                let _ = writeln!(text, "          faults one '{}'   ({})", row.trial, row.key);
            }
        }
        text
    }

    /// What went wrong, by kind and by what exactly, without numbers, the most frequent first.
    fn groups(&self) -> Vec<((&str, String), Vec<&Row>)> {
        let mut groups: BTreeMap<(&str, String), Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            for (kind, what) in &row.wrong {
                groups
                    .entry((kind, without_numbers(what)))
                    .or_default()
                    .push(row);
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
        groups
    }
}

fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(trial: &str, wrong: &[(&str, &str)]) -> Report {
        let wrong = wrong
            .iter()
            .map(|(k, t)| ((*k).to_owned(), (*t).to_owned()));
        Report {
            trial: trial.parse().unwrap(),
            outcome: "ran".to_owned(),
            reached: true,
            wrong: wrong.collect(),
            seconds: 1.0,
            calls: 0,
            details: "much".to_owned(),
        }
    }

    #[test]
    fn what_was_recorded_is_known_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Record::open(dir.path()).unwrap();
        record.add("1/0", &report("study: none", &[])).unwrap();
        let left = [("file left", "/tmp/a\tb.12")];
        record
            .add("1/1", &report("run:g-edf:plain: device", &left))
            .unwrap();
        let table = record.table();
        drop(record);
        // Its writer was killed within a line.
        let path = dir.path().join(LINES);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}1/2\tstudy: no")).unwrap();
        let mut again = Record::open(dir.path()).unwrap();
        assert!(again.knows("1/0") && again.knows("1/1") && !again.knows("1/2"));
        assert_eq!(again.table(), table);
        assert!(table.contains("file left: /tmp/a b.#"), "{table}");
        assert!(dir.path().join("1-1.txt").exists() && !dir.path().join("1-0.txt").exists());
        again.add("1/2", &report("study: none", &[])).unwrap();
        assert!(again.is_of("one").is_ok() && again.is_of("one").is_ok());
        assert!(again.is_of("other").unwrap_err().contains("another build"));
        assert!(!again.was_missed("1/2"));
        assert!(Record::open(dir.path()).unwrap().knows("1/2"));
    }
}
