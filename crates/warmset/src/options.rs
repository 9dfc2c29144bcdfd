//! Options that mean the same in every verb: one struct each, flattened where a verb takes it.

use crate::console::{Format, for_people, give, look};
use app::Choice;
use model::table::{Look, printable};
use model::{Error, Load, Result, Statistic, document, files};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// `--format`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Printed {
    /// How to print the answer [default: table]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

impl Printed {
    /// The format to print in.
    pub fn format(self) -> Format {
        self.format.unwrap_or_default()
    }

    /// Refuses a table for the answers of a batch.
    ///
    /// # Errors
    /// `--format table` was given.
    pub fn lines_only(self) -> Result<()> {
        match self.format {
            Some(Format::Table) => Err(Error::new("a batch is answered by JSON lines, not by a table")
                .at("--format")
                .remedy("leave the option out, or give `--format json`")),
            Some(Format::Json) | None => Ok(()),
        }
    }
}

/// `--format` and `--output` of a verb that gives one answer.
#[derive(clap::Args, Clone, Debug)]
pub struct Answered {
    #[command(flatten)]
    pub printed: Printed,
    /// Write the answer to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    pub output: Option<PathBuf>,
}

impl Answered {
    /// Prints or writes the answer: the table, or the document.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn give(&self, table: impl FnOnce(Look) -> String, content: &impl Serialize) -> Result<()> {
        let text = match (self.printed.format(), &self.output) {
            (Format::Table, Some(_)) => printable(&table(Look::PLAIN), Look::PLAIN),
            (Format::Table, None) => for_people(&table(look())),
            (Format::Json, _) => document::pretty(content)?,
        };
        give(&text, self.output.as_deref())
    }
}

/// `--platform` and `-m`.
#[derive(clap::Args, Clone, Debug)]
pub struct On {
    /// A built-in platform such as `xeon-l7455` or `symmetric:m=8`, or a file
    /// [default: this machine]
    #[arg(long, value_name = "NAME", conflicts_with = "processors")]
    platform: Option<String>,
    /// This many identical processors, instead of a platform
    #[arg(short = 'm', long, value_name = "M")]
    processors: Option<u32>,
}

impl On {
    /// The platform that is chosen.
    pub fn choice(&self) -> app::On {
        match (&self.platform, self.processors) {
            (Some(name), _) => app::On::Platform(Choice::Named(name.clone())),
            (None, Some(m)) => app::On::Identical(m),
            (None, None) => app::On::ThisMachine,
        }
    }

    /// The same options for another command, each with a space in front.
    pub fn words(&self) -> String {
        match (&self.platform, self.processors) {
            (Some(name), _) => format!(" --platform {name}"),
            (None, Some(m)) => format!(" -m {m}"),
            (None, None) => String::new(),
        }
    }

    /// What `--platform` was given.
    pub fn name(&self) -> Option<&str> {
        self.platform.as_deref()
    }
}

/// `--profile`, `--load` and `--statistic`: which costs are charged.
#[derive(clap::Args, Clone, Debug)]
pub struct Charged {
    /// What preemptions, migrations and the scheduler cost: a built-in profile such as
    /// `xeon-l7455`, or a file [default: nothing]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// With --profile: the delays of an idle machine, or of a machine under load
    #[arg(long, value_enum, default_value = "load", requires = "profile")]
    load: LoadArg,
    /// With --profile: which number of a delay [default: maximum; in `check --soft` average]
    #[arg(long, value_enum, requires = "profile", alias = "charge")]
    statistic: Option<StatisticArg>,
}

impl Charged {
    /// The costs that are chosen.
    pub fn choice(&self) -> app::Charged {
        app::Charged {
            profile: self.profile.clone().map(Choice::Named),
            load: self.load.into(),
            statistic: self.statistic(),
        }
    }
    /// Is a profile given?
    pub fn is_given(&self) -> bool {
        self.profile.is_some()
    }
    /// Profile and load for another command, each with a space in front. The statistic is left out:
    /// what stands for none depends on the verb.
    pub fn words(&self) -> String {
        let Some(profile) = &self.profile else {
            return String::new();
        };
        match self.load {
            LoadArg::Idle => format!(" --profile {profile} --load idle"),
            LoadArg::Load => format!(" --profile {profile}"),
        }
    }
    /// Which number of a delay, if one is given.
    pub fn statistic(&self) -> Option<Statistic> {
        self.statistic.map(Into::into)
    }
}

/// `--load`, where one is meant.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum LoadArg {
    /// Nothing else runs
    Idle,
    /// A cache polluter runs on every processor
    Load,
}

impl From<LoadArg> for Load {
    fn from(load: LoadArg) -> Self {
        match load {
            LoadArg::Idle => Load::Idle,
            LoadArg::Load => Load::Load,
        }
    }
}

/// `--statistic`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum StatisticArg {
    /// Mean of the samples, as for soft real time
    Average,
    /// Largest sample, as for hard real time
    Maximum,
}

impl From<StatisticArg> for Statistic {
    fn from(statistic: StatisticArg) -> Self {
        match statistic {
            StatisticArg::Average => Statistic::Average,
            StatisticArg::Maximum => Statistic::Maximum,
        }
    }
}

/// `--seed`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Seed {
    /// Seed of all random choices: the same seed makes the same choices on any machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Reads the name of a file that is to be written, and refuses it before any work is done.
///
/// # Errors
/// Its directory is not there: a slip must not make directories. It cannot be written.
pub fn new_file(name: &str) -> Result<PathBuf> {
    let path = PathBuf::from(name);
    files::can_be_written(&path).map(|()| path)
}

/// Reads the name of a directory that files are to be written into. It need not be there yet.
///
/// # Errors
/// It is a file.
pub fn directory(name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    match path.exists() && !path.is_dir() {
        true => Err(Error::new("this is a file").remedy("name another, or make the directory")),
        false => Ok(path.to_owned()),
    }
}
