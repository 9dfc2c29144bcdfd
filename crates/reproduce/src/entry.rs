//! An entry of the index: one block a table, figure, example or observation.

use crate::reading::Answers;

/// How far an entry is reproduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// The commands compute what the paper shows.
    Reproduced,
    /// The commands compute it in part; the text says what is missing.
    InPart(String),
    /// The commands measure on this machine what the paper measured on another one. The text says
    /// what differs from the paper's method; it may be empty.
    Measured(String),
    /// The commands show the paper's own numbers, which are built in.
    Drawn,
    /// A test of this project computes it; no command shows it. The text names the test.
    Tested(String),
    /// The paper explains with a drawing or with code: there is nothing to compute. The text says
    /// what stands for it here.
    Illustration(String),
}

impl State {
    /// Every word that [`State::word`] can give.
    pub const WORDS: [&str; 6] = [
        "reproduced",
        "in-part",
        "measured",
        "drawn",
        "tested",
        "illustration",
    ];

    /// The state in one word, as `--state` takes it.
    pub fn word(&self) -> &'static str {
        match self {
            State::Reproduced => "reproduced",
            State::InPart(_) => "in-part",
            State::Measured(_) => "measured",
            State::Drawn => "drawn",
            State::Tested(_) => "tested",
            State::Illustration(_) => "illustration",
        }
    }

    /// The text of the state; empty where it has none.
    pub fn remark(&self) -> &str {
        match self {
            State::Reproduced | State::Drawn => "",
            State::InPart(text)
            | State::Measured(text)
            | State::Tested(text)
            | State::Illustration(text) => text,
        }
    }
}

/// What a command does for an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It computes what the paper shows.
    Reproduces,
    /// It measures the same on this machine.
    Measures,
    /// It shows the paper's numbers, which are built in.
    Draws,
}

/// One command of an entry.
///
/// Words that are names of [`crate::files`] stand for these files; the word `out`, and words that
/// begin with `out/`, for the directory that the results go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it does for the entry.
    pub role: Role,
    /// The words after `warmset` in the quick size; `None`: run with `--full` only.
    pub quick: Option<String>,
    /// The words after `warmset` in full size: the paper's, or what the entry says; the same as
    /// `quick` where that is the whole.
    pub full: String,
}

impl Step {
    /// The words after `warmset`; `None` where the step is left out in the quick size.
    pub fn words(&self, is_full: bool) -> Option<&str> {
        if is_full {
            Some(&self.full)
        } else {
            self.quick.as_deref()
        }
    }

    /// Whether the quick size is smaller than the paper's.
    pub fn is_cut(&self) -> bool {
        self.quick.as_deref() != Some(&self.full)
    }
}

/// A value as we computed it.
#[derive(Clone, PartialEq, Debug)]
pub enum Ours {
    /// A number in the unit of the value.
    Number(f64),
    /// Whether what the paper says holds here.
    Holds(bool),
}

/// A value as the paper gives it.
#[derive(Clone, PartialEq, Debug)]
pub enum PaperValue {
    /// A number that ours has to come near to: at most `within` away.
    Number {
        /// The paper's number, in the unit of the value.
        value: f64,
        /// The largest difference that still agrees, in the same unit.
        within: f64,
    },
    /// A bound from above ("at most"): ours may not exceed it.
    AtMost(f64),
    /// A bound from below ("over"): ours may not stay below it.
    AtLeast(f64),
    /// A number that was measured on the paper's machine: shown beside ours, not compared.
    Elsewhere(f64),
    /// The paper says that this holds.
    Holds,
    /// The paper prints no number: it is in a picture only.
    NotPrinted,
}

/// Reads our value from the answers of the steps; `None` where they do not hold it.
pub type Reading = Box<dyn Fn(&Answers) -> Option<Ours> + Send + Sync>;

/// One value of an entry: the paper's, and how ours is read.
pub struct Value {
    /// What it is.
    pub what: String,
    /// Where in the paper it stands; empty: where the entry is.
    pub place: String,
    /// The paper's value.
    pub paper: PaperValue,
    /// The unit of both; empty for shares, counts and statements.
    pub unit: &'static str,
    /// How ours is read.
    pub ours: Reading,
}

/// A table, figure, example or observation of a paper.
pub struct Entry {
    /// Its name: the paper's number, a hyphen, and `figN`, `tabN`, `exN`, `obsN` or `secN`.
    pub id: String,
    /// One line: what the paper shows.
    pub title: String,
    /// The section it belongs to, such as `§6.3`.
    pub place: String,
    /// How far it is reproduced.
    pub state: State,
    /// The commands, in the order in which they are run.
    pub steps: Vec<Step>,
    /// What is compared.
    pub values: Vec<Value>,
    /// What a reader of the comparison has to know; may be empty.
    pub note: String,
}

impl Entry {
    /// An entry without commands and values.
    pub(crate) fn new(id: &str, title: &str, place: &str, state: State) -> Self {
        Entry {
            id: id.to_owned(),
            title: title.to_owned(),
            place: place.to_owned(),
            state,
            steps: Vec::new(),
            values: Vec::new(),
            note: String::new(),
        }
    }

    /// The three digits of its paper.
    pub fn paper(&self) -> &str {
        self.id.split('-').next().unwrap_or_default()
    }

    fn step(mut self, quick: Option<String>, full: String) -> Self {
        let role = match self.state {
            State::Measured(_) => Role::Measures,
            State::Drawn => Role::Draws,
            _ => Role::Reproduces,
        };
        self.steps.push(Step { role, quick, full });
        self
    }

    /// Adds a command that is quick as a whole.
    pub(crate) fn run(self, words: &str) -> Self {
        self.step(Some(words.to_owned()), words.to_owned())
    }

    /// Adds a command with a quick size and the full size.
    pub(crate) fn run_sized(self, quick: &str, full: &str) -> Self {
        self.step(Some(quick.to_owned()), full.to_owned())
    }

    /// Adds a command that is left out in the quick size.
    pub(crate) fn run_full(self, words: &str) -> Self {
        self.step(None, words.to_owned())
    }

    /// Says what the command that was added last does, where the state does not say it.
    pub(crate) fn which(mut self, role: Role) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.role = role;
        }
        self
    }

    fn value(
        mut self,
        what: &str,
        paper: PaperValue,
        unit: &'static str,
        ours: impl Fn(&Answers) -> Option<Ours> + Send + Sync + 'static,
    ) -> Self {
        self.values.push(Value {
            what: what.to_owned(),
            place: String::new(),
            paper,
            unit,
            ours: Box::new(ours),
        });
        self
    }

    /// Adds a number of the paper that ours has to come near to.
    pub(crate) fn number(
        self,
        what: &str,
        (value, within): (f64, f64),
        unit: &'static str,
        ours: impl Fn(&Answers) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.value(what, PaperValue::Number { value, within }, unit, move |a| {
            ours(a).map(Ours::Number)
        })
    }

    /// Adds a number that the paper gives as a bound from above.
    pub(crate) fn at_most(
        self,
        what: &str,
        bound: f64,
        unit: &'static str,
        ours: impl Fn(&Answers) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.value(what, PaperValue::AtMost(bound), unit, move |a| {
            ours(a).map(Ours::Number)
        })
    }

    /// Adds a number that the paper gives as a bound from below.
    pub(crate) fn at_least(
        self,
        what: &str,
        bound: f64,
        unit: &'static str,
        ours: impl Fn(&Answers) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.value(what, PaperValue::AtLeast(bound), unit, move |a| {
            ours(a).map(Ours::Number)
        })
    }

    /// Adds a number that the paper measured on its machine.
    pub(crate) fn elsewhere(
        self,
        what: &str,
        value: f64,
        unit: &'static str,
        ours: impl Fn(&Answers) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.value(what, PaperValue::Elsewhere(value), unit, move |a| {
            ours(a).map(Ours::Number)
        })
    }

    /// Adds a statement of the paper.
    pub(crate) fn holds(
        self,
        what: &str,
        ours: impl Fn(&Answers) -> Option<bool> + Send + Sync + 'static,
    ) -> Self {
        self.value(what, PaperValue::Holds, "", move |a| {
            ours(a).map(Ours::Holds)
        })
    }

    /// Adds a number that the paper shows in a picture only.
    pub(crate) fn unprinted(
        self,
        what: &str,
        unit: &'static str,
        ours: impl Fn(&Answers) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.value(what, PaperValue::NotPrinted, unit, move |a| {
            ours(a).map(Ours::Number)
        })
    }

    /// Says where in the paper the value stands that was added last.
    pub(crate) fn at(mut self, place: &str) -> Self {
        if let Some(value) = self.values.last_mut() {
            place.clone_into(&mut value.place);
        }
        self
    }

    /// Says what a reader of the comparison has to know.
    pub(crate) fn note(mut self, text: &str) -> Self {
        text.clone_into(&mut self.note);
        self
    }

    /// Whether some command is smaller in the quick size.
    pub fn is_cut(&self) -> bool {
        self.steps.iter().any(Step::is_cut)
    }
}
