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

    /// Draws processors and caches, as SVG.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn draw(&self, path: &Path) -> Result<()> {
        files::write(path, report::platform::svg(self.platform()))
    }

    /// Writes a description that can be edited and read again (`.toml`), or a picture (`.svg`).
    ///
    /// # Errors
    /// A name that ends in neither; the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => self.draw(path),
            Some("toml") => files::write(path, platformfile::to_toml(self.platform())),
            _ => Err(Error::new("no description by its name")
                .at(path.display())
                .remedy("end the name in `.toml`; a picture is drawn by `--picture`")),
        }
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
            let lacks = kernel::support::lacks(&Tree::new("/".as_ref()));
            let in_kernel = in_kernel(lacks, &machine, kernel::support::trial);
            machine.capabilities.push(in_kernel);
            Ok(Described::Machine(machine))
        }
    }
}

/// Whether `warmset run --engine kernel` can be: all that is missing, and how to get it. Where
/// nothing is, the program is loaded on trial.
fn in_kernel(
    mut lacks: Vec<Error>,
    machine: &Machine,
    trial: impl Fn() -> Result<()>,
) -> Capability {
    let refused = |c: &&Capability| c.state == State::No;
    if let Some(bpf) = machine.capability("BPF").filter(refused) {
        lacks.push(Error::new(format!("BPF: {}", bpf.seen)).remedy(bpf.remedy.clone()));
    }
    if lacks.is_empty() {
        lacks.extend(trial().err());
    }
    let told = |what: fn(&Error) -> &str| lacks.iter().map(what).collect::<Vec<_>>().join("; ");
    Capability {
        name: "engine in the kernel",
        state: match lacks.is_empty() {
            true => State::Yes,
            false => State::No,
        },
        seen: match lacks.is_empty() {
            true => "this build has it, and this kernel takes its program".to_owned(),
            false => told(Error::cause),
        },
        remedy: told(Error::advice),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_the_engine_in_the_kernel_lacks_is_told_with_remedies() {
        let mut machine = machine::this_machine().unwrap();
        machine.capabilities.retain(|c| c.name != "BPF");
        let lack = |what: &str| Error::new(what.to_owned()).remedy(format!("get {what}"));
        let never = || -> Result<()> { panic!("it is loaded on trial") };
        let told = in_kernel(vec![lack("a build"), lack("a kernel")], &machine, never);
        assert_eq!(told.state, State::No);
        assert_eq!(told.seen, "a build; a kernel");
        assert_eq!(told.remedy, "get a build; get a kernel");
        let refused = in_kernel(Vec::new(), &machine, || Err(lack("a verifier")));
        assert_eq!(refused.state, State::No);
        assert_eq!(refused.seen, "a verifier");
        let well = in_kernel(Vec::new(), &machine, || Ok(()));
        assert_eq!((well.state, &*well.remedy), (State::Yes, ""));
        // No right to it is among what is told.
        machine.capabilities.push(Capability {
            name: "BPF",
            state: State::No,
            seen: "a program is refused".to_owned(),
            remedy: "run as root".to_owned(),
        });
        let told = in_kernel(vec![lack("a build")], &machine, never);
        assert_eq!(told.seen, "a build; BPF: a program is refused");
        assert_eq!(told.remedy, "get a build; run as root");
    }
}
