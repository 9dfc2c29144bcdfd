//! Inputs that mean the same in every verb: a task set, a platform, what things cost.

use crate::own;
use model::taskfile::MAX_PROCESSORS;
use model::{Error, Load, Platform, Profile, Result, Statistic, TaskSet, builtin, files, taskfile};
use std::path::Path;

/// A value, or the words for it as they stand on a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice<T> {
    /// A name or a text, read when it is needed.
    Named(String),
    /// The value itself.
    Value(T),
}

impl<T> From<T> for Choice<T> {
    fn from(value: T) -> Self {
        Choice::Value(value)
    }
}

impl Choice<Profile> {
    /// The profile: a built-in one, one of a file, the one in use on this machine
    /// ([`own`](crate::own)), or the value itself.
    ///
    /// # Errors
    /// There is none of this name, or the file is none.
    pub fn profile(&self) -> Result<Profile> {
        match self {
            Choice::Named(name) if name == own::NAME => own::named(),
            Choice::Named(name) => Profile::find(name),
            Choice::Value(profile) => Ok(profile.clone()),
        }
    }
}

/// A task set, and what errors and answers call it.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// The name of its file, or another name.
    pub place: String,
    /// The tasks.
    pub set: TaskSet,
}

impl Tasks {
    /// Reads a task file (TOML).
    ///
    /// # Errors
    /// The file cannot be read, or is no task file; the error names it.
    pub fn read(path: &Path) -> Result<Self> {
        let set =
            taskfile::from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()))?;
        Ok(Tasks {
            place: path.display().to_string(),
            set,
        })
    }
}

impl From<TaskSet> for Tasks {
    fn from(set: TaskSet) -> Self {
        Tasks {
            place: "the task set".to_owned(),
            set,
        }
    }
}

/// The platform that a question is about.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "an option is made once")]
pub enum On {
    /// The machine that this program runs on.
    #[default]
    ThisMachine,
    /// This many identical processors without caches.
    Identical(u32),
    /// A built-in platform such as `xeon-l7455`, a platform file, or a platform.
    Platform(Choice<Platform>),
}

impl On {
    /// The platform, where it is not this machine.
    ///
    /// # Errors
    /// There is none of this name; no processors.
    pub fn given(&self) -> Result<Option<Platform>> {
        match self {
            On::Platform(Choice::Named(name)) => platform_named(name).map(Some),
            On::Platform(Choice::Value(platform)) => Ok(Some(platform.clone())),
            On::Identical(m) => match (1..=MAX_PROCESSORS).contains(m) {
                true => Ok(Some(Platform::symmetric(*m))),
                false => Err(Error::new(format!("{m} processors"))
                    .at("-m")
                    .remedy(format!("give a number from 1 to {MAX_PROCESSORS}"))),
            },
            On::ThisMachine => Ok(None),
        }
    }

    /// The platform.
    ///
    /// # Errors
    /// As [`On::given`]; this machine does not say what it is.
    pub fn platform(&self) -> Result<Platform> {
        match self.given()? {
            Some(platform) => Ok(platform),
            None => Ok(machine::this_machine()?.platform),
        }
    }
}

/// The platform of a name: as [`Platform::find`], and this machine, also scaled: `this-machine:m=8`.
///
/// # Errors
/// There is none of this name; this machine does not say what it is.
pub(crate) fn platform_named(name: &str) -> Result<Platform> {
    match (name, builtin::scaled_from(name)) {
        (own::NAME, _) => Ok(machine::this_machine()?.platform),
        (_, Some((own::NAME, m))) => machine::this_machine()?.platform.scaled(m?),
        _ => Platform::find(name),
    }
}

/// Which costs are charged.
#[derive(Clone, Debug)]
pub struct Charged {
    /// What preemptions, migrations and the scheduler cost. Default: nothing.
    pub profile: Option<Choice<Profile>>,
    /// The delays of an idle machine, or of a machine under load. Default: under load.
    pub load: Load,
    /// Which number of a delay. Default: the maximum; for soft real time in `check` the average.
    pub statistic: Option<Statistic>,
}

impl Default for Charged {
    fn default() -> Self {
        Charged {
            profile: None,
            load: Load::Load,
            statistic: None,
        }
    }
}

impl Charged {
    /// The profile, if one is given.
    ///
    /// # Errors
    /// As [`Choice::profile`].
    pub fn profile(&self) -> Result<Option<Profile>> {
        self.profile.as_ref().map(Choice::profile).transpose()
    }
}
