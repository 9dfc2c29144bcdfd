//! Tells processors, caches and what this machine permits; or a built-in platform, or one of a
//! file.

use crate::On;
use machine::{Capability, Machine, State, Tree};
use model::{Error, Platform, Result, builtin, files, platformfile};
use serde::Serialize;
use std::path::Path;

/// A platform. JSON: as `warmset platform --format json`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "one value is made, once")]
pub enum Described {
    /// This machine, with its facts and what it permits.
    Machine(Machine),
    /// A platform that is not this machine: facts and capabilities are this machine's alone.
    Platform {
        /// The platform.
        platform: Platform,
    },
}

impl Described {
    /// The platform.
    pub fn platform(&self) -> &Platform {
        match self {
            Described::Machine(machine) => &machine.platform,
            Described::Platform { platform } => platform,
        }
    }

    /// Writes a picture (`.svg`) or a description that can be edited and read again (`.toml`).
    ///
    /// # Errors
    /// A name that ends in neither; the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => report::platform::svg(self.platform()),
            Some("toml") => platformfile::to_toml(self.platform()),
            _ => {
                return Err(
                    Error::new("neither a picture nor a description by its name")
                        .at(path.display())
                        .remedy("end the name in `.svg` or `.toml`"),
                );
            }
        };
        files::write(path, text)
    }
}

/// Describes a platform, or this machine.
///
/// # Errors
/// There is no such platform; this machine does not say what it is.
pub fn describe(on: &On) -> Result<Described> {
    match on.given()? {
        Some(platform) => Ok(Described::Platform { platform }),
        None => {
            let mut machine = machine::this_machine()?;
            machine.capabilities.push(in_kernel());
            Ok(Described::Machine(machine))
        }
    }
}

/// Whether `warmset run --engine kernel` can be: what of it is missing first.
fn in_kernel() -> Capability {
    let name = "engine in the kernel";
    match kernel::support::check(&Tree::new("/".as_ref())) {
        Ok(()) => Capability {
            name,
            state: State::Yes,
            seen: "this build has it, and this kernel has sched_ext".to_owned(),
            remedy: String::new(),
        },
        Err(e) => Capability {
            name,
            state: State::No,
            seen: e.cause().to_owned(),
            remedy: e.advice().to_owned(),
        },
    }
}

/// A built-in platform by name.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// The built-in platforms. JSON: as `warmset platform --platform list --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct List {
    /// By name.
    pub platforms: Vec<Row>,
}

/// Lists the built-in platforms.
pub fn list() -> List {
    let mut platforms: Vec<Row> = builtin::PLATFORMS
        .iter()
        .map(|b| Row {
            name: b.name,
            about: b.about,
        })
        .collect();
    platforms.push(Row {
        name: builtin::SYMMETRIC,
        about: "N identical processors, no caches described",
    });
    List { platforms }
}
