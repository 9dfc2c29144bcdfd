//! `warmset study observe`: the observations of 002, chapter 6, held against studies that were run.

use crate::console::{self, Console, Format};
use crate::options::Printed;
use app::observe::{Observations, Options, observations};
use model::{Error, Overhead, Overheads, Ratio, Result};
use std::path::PathBuf;
use study::Factor;
use study::observe::{Answer, Answered, Answers, Decided, Evidence, Says, Share};

#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  warmset study run bastoni11-6.3-soft --sets 100 -o soft
  warmset study observe soft
  warmset study run bastoni11-6.3-soft --profile board.toml --sets 100 -o board
  warmset study observe board --factors 0,1,2,4,8
  warmset study observe board --factors 0,1,2,4,8 --factor-on release,scheduling

Each statement is answered for each platform and way to charge that the studies have: reproduced, not reproduced, from which \
factor on overheads on it holds, or what is missing to tell. `docs/observations.md` says how each is read.")]
pub(super) struct ObserveArgs {
    /// Directories of studies or of families that `warmset study run -o` made
    #[arg(value_name = "DIR", required = true)]
    studies: Vec<PathBuf>,
    /// Also run each study with overheads times these factors, in its own directory, and say from
    /// which on a statement holds
    #[arg(long, value_name = "F,F,…", value_delimiter = ',', value_parser = factor)]
    factors: Vec<Factor>,
    /// Which overheads these factors are on, such as `release,scheduling`; `cpmd` are cache delays
    /// [default: all]
    #[arg(long, value_name = "NAMES", requires = "factors")]
    factor_on: Option<Overheads>,
    /// Only these statements, such as `6.3.1` or `6.4`
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    printed: Printed,
}

/// A factor as people write it.
pub(super) fn factor(text: &str) -> Result<Factor> {
    let ratio: Ratio = text.trim().parse()?;
    Factor::try_from(ratio)
}

/// Runs the verb.
pub(super) fn run(args: ObserveArgs) -> Result<()> {
    let console = Console::new()?;
    let options = Options {
        dirs: args.studies,
        factors: args.factors,
        factor_on: args.factor_on,
    };
    let mut found = observations(&options, &console)?;
    keep(&mut found, &args.only)?;
    match args.printed.format() {
        Format::Json => console::print_json(&found),
        Format::Table => console::show(&table(&found)),
    }
}

/// Leaves the statements whose numbers begin so.
fn keep(found: &mut Observations, only: &[String]) -> Result<()> {
    if only.is_empty() {
        return Ok(());
    }
    let begins = |statement: &str, number: &String| {
        let rest = statement.strip_prefix(number.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ' ']))
    };
    let known = study::observe::statements();
    for number in only {
        if !known.iter().any(|statement| begins(&statement.id, number)) {
            return Err(Error::new(format!("there is no statement `{number}`"))
                .at("--only")
                .remedy("write `6.3.1` to `6.3.6`, `6.4.1` to `6.4.6`, `6.4.3 (1)` to `6.4.3 (8)`, or a section"));
        }
    }
    for answers in &mut found.settings {
        answers
            .statements
            .retain(|one| only.iter().any(|number| begins(&one.statement, number)));
    }
    Ok(())
}

fn table(found: &Observations) -> String {
    let mut text = String::new();
    for answers in &found.settings {
        text += &setting(answers);
    }
    text += &format!(
        "\nCurves within {} of each other count as equal. Answers hold at {:.0} % each, and so do the \
         intervals that are shown; a scenario says yes or no by wider ones.\n",
        found.slack,
        100.0 * found.confidence
    );
    let unpaired = unpaired(found);
    if unpaired > 0 {
        text += &format!(
            "(!) no paired counts: {unpaired} {} of an earlier version, and intervals take the sets of \
             both curves for different ones, which makes them wider; run again into other \
             directories for narrow ones\n",
            if unpaired == 1 {
                "study is"
            } else {
                "studies are"
            }
        );
    }
    for dir in &found.left_out {
        text += &format!("(!) left out, as it is not complete: {}\n", dir.display());
    }
    text
}

/// How many studies do not say which sets were kept.
fn unpaired(found: &Observations) -> usize {
    let statements = found
        .settings
        .iter()
        .flat_map(|answers| &answers.statements);
    let claims = statements
        .flat_map(|one| &one.factors)
        .flat_map(|at| &at.claims);
    let evidence = claims.flat_map(|claim| &claim.evidence);
    let unpaired = evidence.filter(|e| !e.paired);
    let mut all: Vec<&str> = unpaired.map(|e| e.directory.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

fn setting(answers: &Answers) -> String {
    let of = names(&answers.factors_on);
    let some = answers.factors_on.len() < Overhead::ALL.len();
    let mut text = format!(
        "{}, {}{}: {} {}\n\n",
        answers.platform,
        answers.charged,
        if some {
            format!(", factors on {of} alone")
        } else {
            String::new()
        },
        answers.studies,
        match answers.studies {
            1 => "study",
            _ => "studies",
        }
    );
    for one in &answers.statements {
        text += &format!("{:<10} {:<18} {}\n", one.statement, headline(one), one.text);
        // The factor that is answered for: 1, else the largest.
        let at = one.factors.iter().find(|at| at.factor == 1.0);
        let claims = at
            .or(one.factors.last())
            .into_iter()
            .flat_map(|at| &at.claims);
        for claim in claims.filter(|claim| !claim.evidence.is_empty()) {
            text += &told(claim);
        }
        for missing in &one.missing {
            text += &format!("{:>14} {missing}\n", "missing:");
        }
    }
    text
}

fn names(overheads: &[Overhead]) -> String {
    let names: Vec<&str> = overheads.iter().copied().map(Overhead::name).collect();
    names.join(", ")
}

fn headline(one: &Answered) -> String {
    match (one.answer, one.factor, one.not_at) {
        (Answer::FromFactor, Some(factor), Some(not)) => {
            format!("from factor {factor} on, not at {not}:")
        }
        (Answer::UpToFactor, Some(factor), Some(not)) => {
            format!("up to factor {factor}, not at {not}:")
        }
        (answer, _, _) => answer.to_string(),
    }
}

/// A claim, how many scenarios say what, and the figures at both ends.
fn told(claim: &Decided) -> String {
    let says = match claim.says {
        Says::Yes => "yes",
        Says::No => "no",
        Says::Open => "open",
    };
    let wanted = match claim.of {
        Share::All => "all",
        Share::AlmostAll => "nine of ten",
        Share::Most => "most",
    };
    let rests = match claim.rests_on {
        [] => String::new(),
        on => format!(" (rests on {})", names(on)),
    };
    let mut text = format!(
        "{says:>14} {}{rests}\n{:15}yes in {}, no in {}, open in {} of {} ({wanted} needed)",
        claim.claim, "", claim.yes, claim.no, claim.open, claim.wanted
    );
    let by_difference = |a: &&Evidence, b: &&Evidence| a.difference.total_cmp(&b.difference);
    let ends = (
        claim.evidence.iter().min_by(by_difference),
        claim.evidence.iter().max_by(by_difference),
    );
    if let (Some(least), Some(most)) = ends {
        text += &format!("; W differs by {}", figure(least));
        if least.scenario != most.scenario || least.load != most.load {
            text += &format!(" to {}", figure(most));
        }
    }
    text + "\n"
}

fn figure(evidence: &Evidence) -> String {
    let load = evidence
        .load
        .map_or_else(String::new, |load| format!(", {load}"));
    format!(
        "{:+.3} [{:+.3}, {:+.3}] ({}{load})",
        evidence.difference, evidence.interval.0, evidence.interval.1, evidence.scenario
    )
}
