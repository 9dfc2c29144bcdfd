//! Options that mean the same in every verb: one struct each, flattened where a verb takes it.

use crate::console::{Format, for_people, give, look, note};
use analyze::policies::Accounting;
use app::run::Until;
use app::{Choice, own};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::table::{Look, printable};
use model::{Error, Load, Profile, Result, Statistic, document, files};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

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
            Some(Format::Table) => Err(Error::new(
                "a batch is answered by JSON lines, not by a table",
            )
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

/// Writes the picture that `--picture` asks for, where there is one, as SVG.
///
/// # Errors
/// It cannot be drawn or written.
pub fn draw(file: Option<&Path>, svg: impl FnOnce() -> Result<Option<String>>) -> Result<()> {
    let Some(path) = file else { return Ok(()) };
    match svg()? {
        Some(svg) => {
            files::write(path, svg)?;
            note(&format!("wrote {}", path.display()));
        }
        None => note("there is nothing to draw"),
    }
    Ok(())
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
    /// `xeon-l7455`, a file, `this-machine` or `none` [default: on this machine the profile in use
    /// (`warmset profile use`), else nothing]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// With --profile: the delays of an idle machine, or of a machine under load
    #[arg(long, value_parser = loads(), default_value = "load", requires = "profile")]
    load: Load,
    /// With --profile: which number of a delay [default: maximum; where a soft guarantee is asked
    /// for, average]
    #[arg(long, value_parser = statistics(), requires = "profile", alias = "charge")]
    statistic: Option<Statistic>,
}

impl Charged {
    /// The costs that are chosen for a question about this platform.
    ///
    /// # Errors
    /// The profile in use on this machine cannot be read, or is another machine's.
    pub fn choice(&self, on: &app::On) -> Result<app::Charged> {
        let profile = match (&self.profile, on) {
            (None, app::On::ThisMachine) => own::in_use()?.map(Choice::Value),
            _ => self.named(),
        };
        Ok(app::Charged {
            profile,
            load: self.load,
            statistic: self.statistic(),
        })
    }
    /// The costs that are named.
    pub fn given(&self) -> app::Charged {
        app::Charged {
            profile: self.named(),
            load: self.load,
            statistic: self.statistic(),
        }
    }
    fn named(&self) -> Option<Choice<Profile>> {
        let name = self.profile.clone().filter(|name| name != own::NONE);
        name.map(Choice::Named)
    }
    /// Does the option name a profile, or none?
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
            Load::Idle => format!(" --profile {profile} --load idle"),
            Load::Load => format!(" --profile {profile}"),
        }
    }
    /// Which number of a delay, if one is given.
    pub fn statistic(&self) -> Option<Statistic> {
        self.statistic
    }
}

/// `--jobs-end`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct JobsEnd {
    /// When a job has executed for its time: after the work that takes so long alone, so that what
    /// it loses to caches and to other processors comes on top, or by the clock of its thread
    /// [default: work; in `validate` clock]
    #[arg(long, value_enum, value_name = "WHEN")]
    jobs_end: Option<End>,
}

/// The words of `--jobs-end`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum End {
    /// After as much work as takes its time alone
    Work,
    /// When its thread has executed for so long
    Clock,
}

impl JobsEnd {
    /// When jobs end; `usually`: where the option is not given.
    pub fn until(self, usually: Until) -> Until {
        match self.jobs_end {
            Some(End::Work) => Until::Work,
            Some(End::Clock) => Until::Clock,
            None => usually,
        }
    }
}

/// `--accounting`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Accounted {
    /// How overheads are charged: `one-delay` (000 §2), `paper` (as often as 002 §6.1 counts) or
    /// `warmset` (by piece, and stricter where no deadline may be missed)
    /// [default: `warmset` with --profile, else `one-delay`]
    #[arg(long, value_name = "NAME")]
    pub accounting: Option<Accounting>,
}

/// The words of `--load`.
pub fn loads() -> impl TypedValueParser<Value = Load> {
    words(Load::ALL.map(|load| {
        PossibleValue::new(load.name()).help(match load {
            Load::Idle => "Nothing else runs",
            Load::Load => "A cache polluter runs on every processor",
        })
    }))
}

/// The words of `--statistic`.
pub fn statistics() -> impl TypedValueParser<Value = Statistic> {
    words(Statistic::ALL.map(|statistic| {
        PossibleValue::new(statistic.name()).help(match statistic {
            Statistic::Average => "Mean of the samples, as for soft real time",
            Statistic::Maximum => {
                "Largest sample, as for hard real time; of overheads without outliers"
            }
            Statistic::Untrimmed => "Largest sample, outliers of overheads among them",
        })
    }))
}

/// Reads words that `model` parses.
fn words<T>(values: impl Into<PossibleValuesParser>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = Error> + Clone + Send + Sync + 'static,
{
    values.into().try_map(|word| word.parse::<T>())
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
