//! `warmset reproduce`: what of the papers is reproduced, and one of it run.

use super::Cli;
use crate::Answer;
use crate::console::{self, Format, captured};
use crate::options::{Printed, directory};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use model::table::{Look, Table};
use model::{Error, Result, document, files};
use reproduce::{Answers, Entry, PAPERS, Row, State, Step, Verdict};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Every table, figure, example and numbered observation of the five papers has a name such as \
`002-fig6.4`, `000-tab1` or `002-obs6.3.1`. Its commands are run in a quick size, with --full in the \
paper's, and the paper's values are put beside ours. The names of study presets and of experiments \
under `warmset color experiment` work as well.

Exit status: 0 it was run; 1 a value differs from the paper's; 2 it could not be run, or is not \
reproduced yet.

Examples:
  warmset reproduce list --paper 002 --state in-part
  warmset reproduce 002-fig2.6 -o fig2.6
  warmset reproduce 000-fig5 --full";

/// Options of `warmset reproduce`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = HELP
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Show every table, figure, example and observation with its state
    List(ListArgs),
}

#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset reproduce list --paper 002 --state in-part")]
struct ListArgs {
    /// Only what is in this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(State::WORDS))]
    state: Option<String>,
    /// Only what this paper shows
    #[arg(long, value_name = "NUMBER", value_parser = PossibleValuesParser::new(PAPERS.map(|p| p.number)))]
    paper: Option<String>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(clap::Args, Debug)]
struct OneArgs {
    /// What to reproduce, such as `002-fig6.4`
    #[arg(value_name = "ITEM", required = true)]
    item: Option<String>,
    /// Run the full size, which may take hours: the paper's, where the entry says no other
    #[arg(long)]
    full: bool,
    /// Keep the files of the commands here, with the comparison
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    #[command(flatten)]
    printed: Printed,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match (args.action, &args.one.item) {
        (Some(Action::List(args)), _) => list(&args),
        (None, Some(item)) => one(&args.one, &reproduce::find(item)?),
        (None, None) => Err(Error::new("nothing is named").remedy("see `warmset reproduce list`")),
    }
}

/// One entry in the JSON list.
#[derive(Serialize)]
struct Item<'a> {
    id: &'a str,
    paper: &'a str,
    title: &'a str,
    place: &'a str,
    state: &'static str,
    remark: &'a str,
    commands: Vec<String>,
}

fn item(entry: &Entry) -> Item<'_> {
    Item {
        id: &entry.id,
        paper: entry.paper(),
        title: &entry.title,
        place: &entry.place,
        state: entry.state.word(),
        remark: entry.state.remark(),
        commands: entry
            .steps
            .iter()
            .map(|s| format!("warmset {}", s.full))
            .collect(),
    }
}

/// What `reproduce list --format json` prints.
#[derive(Serialize)]
struct List<'a> {
    items: Vec<Item<'a>>,
}

fn list(args: &ListArgs) -> Result<Answer> {
    let is_asked = |e: &Entry| {
        args.state
            .as_deref()
            .is_none_or(|state| e.state.word() == state)
            && args.paper.as_deref().is_none_or(|paper| e.paper() == paper)
    };
    let mut all = reproduce::all();
    all.retain(is_asked);
    match args.printed.format() {
        Format::Json => console::print_json(&List {
            items: all.iter().map(item).collect(),
        })?,
        Format::Table => {
            let mut text = String::new();
            for e in &all {
                let _ = writeln!(
                    text,
                    "{}  {} ({})\n    {}",
                    e.id,
                    e.title,
                    e.place,
                    e.told("`")
                );
            }
            console::show(&text)?;
        }
    }
    Ok(Answer::Yes)
}

/// What `--format json` prints of a comparison. Numbers are in the units that the paper uses.
#[derive(Serialize)]
struct Compared<'a> {
    id: &'a str,
    paper: &'a str,
    title: &'a str,
    place: &'a str,
    state: &'static str,
    remark: &'a str,
    note: &'a str,
    size: &'static str,
    commands: Vec<String>,
    rows: &'a [Row],
}

fn one(args: &OneArgs, entry: &Entry) -> Result<Answer> {
    let scratch;
    let dir = match &args.output {
        Some(dir) => dir.as_path(),
        None => {
            scratch =
                tempfile::tempdir().map_err(|e| Error::io(std::env::temp_dir(), "write", &e))?;
            scratch.path()
        }
    };
    files::make_dir(dir)?;
    let dir = std::path::absolute(dir).map_err(|e| Error::io(dir, "find", &e))?;
    let mut answers = Answers {
        documents: Vec::new(),
        dir: dir.clone(),
    };
    for step in &entry.steps {
        let document = match step.words(args.full) {
            Some(words) => step_of(words, &dir)?,
            None => None,
        };
        answers.documents.push(document);
    }
    let rows = reproduce::compare(entry, &answers);
    let words = |step: &Step| {
        step.words(args.full)
            .map(|words| format!("warmset {words}"))
    };
    let compared = Compared {
        id: &entry.id,
        paper: entry.paper(),
        title: &entry.title,
        place: &entry.place,
        state: entry.state.word(),
        remark: entry.state.remark(),
        note: &entry.note,
        size: if args.full || !entry.is_cut() {
            "full"
        } else {
            "quick"
        },
        commands: entry.steps.iter().filter_map(words).collect(),
        rows: &rows,
    };
    if args.output.is_some() {
        files::write(
            &dir.join(format!("{}.json", entry.id)),
            document::pretty(&compared)?,
        )?;
        files::write(
            &dir.join(format!("{}.txt", entry.id)),
            text(&compared, entry, Look::PLAIN),
        )?;
    }
    match args.printed.format() {
        Format::Json => console::print_json(&compared)?,
        Format::Table => console::show(&text(&compared, entry, console::look()))?,
    }
    Ok(
        match rows.iter().any(|row| row.verdict == Verdict::Differs) {
            true => Answer::No,
            false => Answer::Yes,
        },
    )
}

/// Runs one command through the code of its verb; its JSON document, if it prints one.
fn step_of(words: &str, dir: &Path) -> Result<Option<serde_json::Value>> {
    let place = |e: Error| e.at(format!("`warmset {words}`"));
    let cli = parsed(words, dir).map_err(place)?;
    let (answer, printed) = captured(|| super::run(cli.verb));
    answer.map_err(place)?;
    if console::stopped_status().is_some() {
        return Err(place(Error::new("it was stopped").remedy("run it again")));
    }
    match prints_document(words) {
        true => serde_json::from_str(&printed)
            .map(Some)
            .map_err(|e| place(Error::new(format!("its answer is no JSON document: {e}")))),
        false => Ok(None),
    }
}

/// Whether the command takes `--format json`.
fn prints_document(words: &str) -> bool {
    !words.starts_with("trace export")
}

/// The command, with its files in the directory.
fn parsed(words: &str, dir: &Path) -> Result<Cli> {
    let mut all = vec!["warmset".to_owned()];
    all.extend(reproduce::files::words_in(words, dir)?);
    if prints_document(words) {
        all.extend(["--format", "json"].map(str::to_owned));
    }
    Cli::try_parse_from(all).map_err(|e| {
        let text = e.render().to_string();
        Error::new(
            text.lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: "),
        )
    })
}

/// A number with as many decimals as it has, at most three.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The comparison for people.
fn text(compared: &Compared<'_>, entry: &Entry, look: Look) -> String {
    let mut text = format!(
        "{}: {} ({} {})\n",
        compared.id, compared.title, compared.paper, compared.place
    );
    if compared.commands.is_empty() {
        let _ = writeln!(text, "{}", entry.told("`"));
        return text;
    }
    let _ = match compared.remark {
        "" => writeln!(text, "{}", compared.state),
        remark => writeln!(text, "{}: {remark}", compared.state),
    };
    for command in &compared.commands {
        let _ = writeln!(text, "  {command}");
    }
    if compared.size == "quick" {
        text += "a quick size; `--full` runs the paper's\n";
    }
    if !compared.rows.is_empty() {
        text += "\n";
        text += &table(compared.rows).text(look);
    }
    if !compared.note.is_empty() {
        let _ = write!(text, "\n{}\n", compared.note);
    }
    text
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(1, 0);
    table.row(["what", "paper", "ours", "unit", "verdict"]);
    for row in rows {
        let ours = match (row.ours, row.holds) {
            (Some(value), _) => number(value),
            (None, Some(true)) => "yes".to_owned(),
            (None, Some(false)) => "no".to_owned(),
            (None, None) => "-".to_owned(),
        };
        let paper = match (row.paper, row.holds, row.verdict) {
            (Some(value), ..) => match row.bound {
                Some(bound) => format!("{} {}", bound.words(), number(value)),
                None => number(value),
            },
            (None, Some(_), _) => "yes".to_owned(),
            _ => "-".to_owned(),
        };
        let verdict = match row.within {
            Some(within) if within >= 0.001 && row.verdict != Verdict::NotRun => {
                format!("{} (within {})", row.verdict.words(), number(within))
            }
            _ => row.verdict.words().to_owned(),
        };
        table.row([row.what.clone(), paper, ours, row.unit.to_owned(), verdict]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_index_parses_in_both_sizes() {
        let dir = tempfile::tempdir().unwrap();
        for entry in reproduce::all() {
            for step in &entry.steps {
                for words in [step.words(false), step.words(true)].into_iter().flatten() {
                    if let Err(e) = parsed(words, dir.path()) {
                        panic!("{}: {words}: {e}", entry.id);
                    }
                }
            }
        }
    }

    #[test]
    fn every_study_preset_is_in_the_index() {
        for (name, ..) in study::presets::list() {
            assert!(reproduce::find(&name).is_ok(), "{name}");
        }
    }
}
