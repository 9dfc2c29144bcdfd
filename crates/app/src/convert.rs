//! Converts task sets from and for other tools' files.

use model::imported::Imported;
use model::{Duration, Error, Result, TaskSet, cheddar, files, rtapp, simso, taskfile};
use std::path::Path;
use std::str::FromStr;

/// A format of task sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Task files of this program.
    Toml,
    /// Files of rt-app (JSON).
    RtApp,
    /// Simulation files of SimSo (XML).
    SimSo,
    /// Projects of Cheddar (XML).
    Cheddar,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::Toml, Format::RtApp, Format::SimSo, Format::Cheddar];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Toml => "toml",
            Format::RtApp => "rt-app",
            Format::SimSo => "simso",
            Format::Cheddar => "cheddar",
        }
    }

    /// The format that a text looks like: one that begins as XML is told by its outermost element.
    fn of(text: &str) -> Result<Self> {
        // No TOML file begins with a brace, and every file of rt-app does, or with a comment.
        let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        if text.starts_with(['{', '/']) {
            return Ok(Format::RtApp);
        }
        if !text.starts_with('<') {
            return Ok(Format::Toml);
        }
        let is_root = |name: &str| {
            let mut tags = text.split('<').skip(1);
            let first = tags.find(|tag| !tag.starts_with(['?', '!']));
            first.is_some_and(|tag| {
                let behind = tag.strip_prefix(name);
                behind.is_some_and(|t| t.starts_with(|c: char| !c.is_alphanumeric()))
            })
        };
        match (is_root(simso::ROOT), is_root(cheddar::ROOT)) {
            (true, _) => Ok(Format::SimSo),
            (_, true) => Ok(Format::Cheddar),
            _ => Err(Error::new("this XML is of no tool that is known here")
                .remedy("give a file of SimSo (`simulation`) or of Cheddar (`cheddar`)")),
        }
    }
}

impl FromStr for Format {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Format::ALL.into_iter().find(|f| f.name() == text);
        found.ok_or_else(|| {
            Error::new(format!("`{text}` is no format")).remedy(format!(
                "choose among {}",
                Format::ALL.map(Format::name).join(", ")
            ))
        })
    }
}

/// How files are read and written. By default a task file becomes one of rt-app for 10 s, and all
/// others become task files.
#[derive(Clone, Debug)]
pub struct Options {
    /// The format to write; `None`: as above.
    pub to: Option<Format>,
    /// How long the other tool shall run the tasks; rt-app has whole seconds and gets more.
    pub duration: Duration,
    /// Of rt-app: take threads that sleep, with their run and sleep as the period.
    pub sleep_as_period: bool,
    /// Of Cheddar: how long a unit of its times is. Not needed to write: then it is the longest one
    /// that holds all times.
    pub unit: Option<Duration>,
    /// For SimSo and Cheddar: how many processors.
    pub processors: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            to: None,
            duration: Duration::from_secs(10),
            sleep_as_period: false,
            unit: None,
            processors: 1,
        }
    }
}

/// A file in the other format.
#[derive(Clone, Debug)]
pub struct Converted {
    /// Its text.
    pub text: String,
    /// What has no place in it, with the reason.
    pub notes: Vec<String>,
}

/// Turns a task set of one format into another; what it is, the file itself says.
///
/// # Errors
/// The file cannot be read, or is of none of the formats; a unit of zero, or none where times have
/// no other; what the other format cannot hold.
pub fn convert(file: &Path, options: &Options) -> Result<Converted> {
    let text = files::read_text(file)?;
    let unit = match options.unit {
        Some(unit) if unit.is_zero() => {
            return Err(Error::new("a unit of no time")
                .at("--unit")
                .remedy("give such as 1ms"));
        }
        unit => unit,
    };
    let place = |e: Error| e.at(file.display());
    let from = Format::of(&text).map_err(place)?;
    let read = match from {
        Format::Toml => taskfile::from_toml(&text).map(|set| Imported {
            set,
            notes: Vec::new(),
        }),
        Format::RtApp => {
            let how = rtapp::Reading {
                sleep_as_period: options.sleep_as_period,
            };
            rtapp::from_rt_app(&text, how)
        }
        Format::SimSo => simso::from_simso(&text),
        Format::Cheddar => {
            let unit = unit.ok_or_else(|| {
                Error::new("the times of Cheddar have no unit")
                    .remedy("say how long one is, such as `--unit 1ms`")
            });
            unit.and_then(|unit| cheddar::from_cheddar(&text, unit))
        }
    };
    let Imported { set, notes } = read.map_err(place)?;
    let mut notes: Vec<String> = notes
        .into_iter()
        .map(|note| format!("{}: {note}", file.display()))
        .collect();
    let to = options.to.unwrap_or(match from {
        Format::Toml => Format::RtApp,
        _ => Format::Toml,
    });
    let (text, more) = written(&set, to, unit, options).map_err(place)?;
    notes.extend(more);
    Ok(Converted { text, notes })
}

fn written(
    set: &TaskSet,
    to: Format,
    unit: Option<Duration>,
    options: &Options,
) -> Result<(String, Vec<String>)> {
    let processors = options.processors;
    if !(1..=taskfile::MAX_PROCESSORS).contains(&processors) {
        return Err(
            Error::new(format!("{processors} processors")).remedy(format!(
                "give a number from 1 to {}",
                taskfile::MAX_PROCESSORS
            )),
        );
    }
    match to {
        Format::Toml => Ok((taskfile::to_toml(set), Vec::new())),
        Format::RtApp => rtapp::to_rt_app(set, options.duration),
        Format::SimSo => simso::to_simso(set, options.duration, processors),
        Format::Cheddar => {
            let chosen = unit.unwrap_or_else(|| cheddar::unit_of(set));
            let (text, mut notes) = cheddar::to_cheddar(set, chosen, processors)?;
            if unit.is_none() {
                notes.push(format!("a unit of time there is {chosen}"));
            }
            Ok((text, notes))
        }
    }
}
