//! `docs/reproduced.md`, made from the index, and the words for an entry's state.

use crate::entry::{Entry, Role, State, Step};
use crate::index::{PAPERS, all};
use std::fmt::Write as _;

impl Role {
    /// What stands before a command.
    fn words(self) -> &'static str {
        match self {
            Role::Reproduces => "reproduced by",
            Role::Measures => "measured here by",
            Role::Draws => "drawn from the paper's numbers by",
        }
    }
}

impl Entry {
    /// The commands that make it, in the paper's size, without those that only write a picture or
    /// a table of what another one made.
    pub fn commands(&self) -> Vec<&Step> {
        let is_main = |step: &&Step| !step.full.starts_with("trace ");
        self.steps.iter().filter(is_main).collect()
    }

    /// The state in a clause, with its commands: `reproduced by warmset …`. Commands stand between
    /// `quote`s.
    pub fn told(&self, quote: &str) -> String {
        let mut text = String::new();
        let mut before = None;
        for step in self.commands() {
            let words = match (&self.state, step.role) {
                (State::InPart(_), Role::Reproduces) => "in part by",
                (_, role) => role.words(),
            };
            if before == Some(words) {
                text += ", ";
            } else {
                let separator = if text.is_empty() { "" } else { "; " };
                let _ = write!(text, "{separator}{words} ");
            }
            before = Some(words);
            let _ = write!(text, "{quote}warmset {}{quote}", step.full);
        }
        let remark = self.state.remark();
        match &self.state {
            State::Tested(_) => format!("reproduced by the test {quote}{remark}{quote}"),
            State::Illustration(_) => format!("an illustration; here: {remark}"),
            _ if remark.is_empty() => text,
            _ => format!("{text}: {remark}"),
        }
    }
}

/// The documentation page.
pub fn page() -> String {
    let all = all();
    let mut text = String::from(
        "# What is reproduced\n\n\
         Every table, figure, example and numbered observation of the five papers, and how far this \
         project reproduces it. This page is made from the index in `crates/reproduce`: \
         `WARMSET_WRITE=1 cargo test -p warmset-reproduce --test page` writes it anew.\n\n\
         \x20   warmset reproduce list                       # this page on the terminal\n\
         \x20   warmset reproduce list --state in-part       # what is missing\n\
         \x20   warmset reproduce 002-fig6.4                 # runs one, the paper's values beside ours\n\
         \x20   warmset reproduce 002-fig6.4 --full -o DIR   # in full size, files kept in DIR\n\n\
         `reproduce` runs a quick size of what would take long; `--full` runs the commands below as \
         they stand: in the paper's size, where an entry says no other. In them, `out` stands for \
         the directory of `-o`; files under `examples/` are in \
         the source tree, those under `studies/` are written into that directory. The names of study \
         presets and of experiments under `warmset color experiment` are names of entries as well, \
         but for `isolation`, which asks a question of this project's. \
         Exit status: 0, 1 where a value differs from the paper's, 2 where an entry cannot be run.\n\n\
         | state | meaning |\n|---|---|\n\
         | reproduced | the commands compute what the paper shows |\n\
         | in-part | the commands compute it in part; what is missing is said |\n\
         | measured | measured on this machine, not on the paper's: values stand side by side and are \
         not compared |\n\
         | drawn | the commands show the paper's own numbers, which are built in |\n\
         | tested | a test computes it, no command shows it |\n\
         | illustration | a drawing or code: nothing to compute; what stands for it here is said |\n\n",
    );
    let _ = write!(text, "| paper |");
    for word in State::WORDS {
        let _ = write!(text, " {word} |");
    }
    text += "\n|---|";
    text += &"---|".repeat(State::WORDS.len());
    text += "\n";
    for paper in PAPERS {
        let _ = write!(text, "| {} |", paper.number);
        for word in State::WORDS {
            let is_counted = |e: &&Entry| e.paper() == paper.number && e.state.word() == word;
            let _ = write!(text, " {} |", all.iter().filter(is_counted).count());
        }
        text += "\n";
    }
    for paper in PAPERS {
        let _ = write!(text, "\n## {}\n\n{}\n\n", paper.number, paper.title);
        text += "| entry | what the paper shows | where | how far |\n|---|---|---|---|\n";
        for entry in all.iter().filter(|e| e.paper() == paper.number) {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                entry.id,
                entry.title,
                entry.place,
                entry.told("`")
            );
        }
    }
    text
}
