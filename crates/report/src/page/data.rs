//! What a page shows: plain data, which [`super::page`] writes down.

use crate::findings::Verdict;
use crate::svg::Figure;
use model::{Profile, Provenance};

/// Figures that belong together, with the command that makes them again.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// The figures, side by side where there is room; the caption of the first stands for all.
    pub figures: Vec<Figure>,
    /// The command; empty if there is none.
    pub command: String,
}

/// How many samples were kept and why the others were not.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Quality {
    /// Samples that count.
    pub kept: u64,
    /// Cause, as the end of a sentence after "because", and number.
    pub discarded: Vec<(String, u64)>,
    /// Blocks of samples during which a virtual machine moved, and all blocks.
    pub moved: Option<(u64, u64)>,
}

/// The cache delays of one machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Delays {
    /// Heading, such as `This machine`.
    pub title: String,
    /// Sentences, see [`crate::findings::cpmd`]; they stand below the figures.
    pub findings: Vec<String>,
    /// What was measured.
    pub profile: Profile,
    /// Figures.
    pub figures: Vec<Shown>,
    /// What became of the samples.
    pub quality: Option<Quality>,
}

/// A statement of a paper, and what was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// What the paper says, with its figures and its machine.
    pub says: String,
    /// Where.
    pub source: String,
    /// By which rule it is decided here.
    pub rule: String,
    /// What was found here.
    pub here: String,
    /// `holds`, `does not hold` or `cannot tell here`.
    pub holds: String,
}

/// Cache delays within schedules.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedules {
    /// What was measured, in a sentence.
    pub about: String,
    /// What makes a sample, and delays against the number of tasks.
    pub figures: Vec<Shown>,
    /// Observations of the paper.
    pub observed: Vec<Statement>,
    /// Where the numbers come from.
    pub provenance: Provenance,
}

/// A task set and what the policies say.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Heading.
    pub title: String,
    /// What the set is, in a sentence or two.
    pub about: String,
    /// Which policy comes first, in a sentence.
    pub answer: String,
    /// Sentences, see [`crate::findings::verdicts`].
    pub findings: Vec<String>,
    /// The tasks, and when their jobs are done under each policy.
    pub tasks: Tasks,
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    /// Pictures of assignments.
    pub figures: Vec<Shown>,
    /// The command that says it again.
    pub command: String,
}

/// The table of tasks: what each task is, and when its jobs are done under each policy.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tasks {
    /// Header of the facts: the name of the task first.
    pub facts: Vec<String>,
    /// Policies that have bounds: name, and the methods that the bounds come from.
    pub policies: Vec<(String, String)>,
    /// A row a task: its facts, then a cell for each policy.
    pub rows: Vec<Vec<String>>,
}

/// A small table of numbers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Numbers {
    /// What they are.
    pub caption: String,
    /// Its header.
    pub header: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// One study.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// Its title.
    pub title: String,
    /// Sentences.
    pub findings: Vec<String>,
    /// Figures.
    pub figures: Vec<Shown>,
    /// Where its numbers come from.
    pub provenance: Provenance,
}

/// What verdicts were worth when sets were run for real.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Sentences.
    pub findings: Vec<String>,
    /// Figures.
    pub figures: Vec<Shown>,
    /// The command that says it again.
    pub command: String,
    /// Where its numbers come from.
    pub provenance: Provenance,
}

/// A part that a page has on top: what it is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Its anchor, unlike those of the other sections.
    pub id: &'static str,
    /// Its name among the contents.
    pub name: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// Sentences, a paragraph each.
    pub says: Vec<String>,
    /// Tables.
    pub numbers: Vec<Numbers>,
    /// Figures.
    pub figures: Vec<Shown>,
    /// Sentences below them, as a list.
    pub list: Vec<String>,
}

/// All that a page can show. What is empty is left out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReportData {
    /// Its heading.
    pub title: String,
    /// One line beneath it: the machine, the day.
    pub lead: String,
    /// What somebody should know who reads nothing else: subject and answer, a few at most.
    pub answer: Vec<(String, String)>,
    /// The numbers behind it.
    pub numbers: Numbers,
    /// What could spoil the numbers.
    pub warnings: Vec<String>,
    /// What the page is about, where that is none of what follows.
    pub parts: Vec<Part>,
    /// The machine: name and value of each fact.
    pub machine: Vec<(String, String)>,
    /// The picture of its caches.
    pub hierarchy: Option<Shown>,
    /// Cache delays, of this machine first.
    pub delays: Vec<Delays>,
    /// Those within schedules.
    pub schedules: Option<Schedules>,
    /// What scheduling costs: tables.
    pub overheads: Vec<Numbers>,
    /// Predicted and observed.
    pub observed: Option<Observed>,
    /// Examples and what the policies say.
    pub judged: Vec<Judged>,
    /// Studies.
    pub studies: Vec<Study>,
    /// What to try next: command and what it does.
    pub next: Vec<(String, String)>,
    /// Where it all comes from.
    pub provenance: Vec<(String, Provenance)>,
    /// The program and its version.
    pub program: String,
}
