//! Reads values off the curves of a profile, and takes over what other tools measured: tables of
//! SchedCAT, latencies of cyclictest and rtla.

use crate::Choice;
use crate::pages::PROFILE;
use ::measure::agree::{self, Comparison};
use model::schedcat::{self, Meaning};
use model::{
    Bytes, Code, Delay, Error, Load, Profile, Provenance, Result, Statistic, files, latency,
    profilefile,
};
use policy::Spec;
use serde::Serialize;
use std::path::Path;

/// A value that was read off a curve.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `preemption (idle, write ratio 0.25)`, `release (g-edf)`.
    pub curve: String,
    /// Which number of the samples.
    pub statistic: Statistic,
    /// The value.
    #[serde(rename = "value_ns", serialize_with = "model::time::ns::serialize")]
    pub value: Delay,
    /// Outside of what was measured: a guess.
    pub extrapolated: bool,
}

/// Values that were read off the curves of a profile. JSON: as `warmset profile show --wss SIZE
/// --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Values {
    /// The platform of the profile.
    pub platform: String,
    /// Average and maximum of each curve.
    pub values: Vec<Row>,
}

/// Reads the cache delays at a working set size, and the overheads at a number of tasks.
pub fn values(profile: &Profile, wss: Option<Bytes>, tasks: Option<u32>) -> Values {
    Values {
        platform: profile.platform.clone(),
        values: rows(profile, wss, tasks),
    }
}

fn rows(profile: &Profile, wss: Option<Bytes>, tasks: Option<u32>) -> Vec<Row> {
    let both = [Statistic::Average, Statistic::Maximum];
    let mut rows = Vec::new();
    for (wss, curve) in wss
        .iter()
        .flat_map(|w| profile.cpmd.iter().map(move |c| (*w, c)))
    {
        for statistic in both {
            rows.extend(curve.at(wss, statistic).map(|r| Row {
                curve: format!(
                    "{} ({}, write ratio {})",
                    curve.resumption, curve.load, curve.write_ratio
                ),
                statistic,
                value: r.value,
                extrapolated: r.extrapolated,
            }));
        }
    }
    for (tasks, curve) in tasks
        .iter()
        .flat_map(|t| profile.overheads.iter().map(move |c| (*t, c)))
    {
        for statistic in both {
            rows.extend(curve.at(tasks, statistic).map(|r| Row {
                curve: overhead_name(curve),
                statistic,
                value: r.value,
                extrapolated: r.extrapolated,
            }));
        }
    }
    rows
}

/// The overhead of a curve; its policy, and whose code it holds, where the profile says so.
pub fn overhead_name(curve: &model::profile::OverheadCurve) -> String {
    let policy = (!curve.policy.is_empty()).then(|| curve.policy.clone());
    let code = curve.code.map(|code| match code {
        Code::Own => "the engine's code alone".to_owned(),
        Code::Kernel => "the kernel's code alone".to_owned(),
        Code::Both => "engine and kernel".to_owned(),
    });
    let more: Vec<String> = policy.into_iter().chain(code).collect();
    match more[..] {
        [] => curve.kind.name().to_owned(),
        _ => format!("{} ({})", curve.kind.name(), more.join(", ")),
    }
}

/// What a table of SchedCAT does not say. A policy is called by its name alone, as curves are.
///
/// # Errors
/// A write ratio outside of 0 to 1; no such policy.
fn meaning(asked: Meaning) -> Result<Meaning> {
    if !(0.0..=1.0).contains(&asked.write_ratio) {
        return Err(Error::new(format!("{} is not a ratio", asked.write_ratio))
            .at("`--write-ratio`")
            .remedy("give a number from 0 to 1"));
    }
    let policy = called(&asked.policy)?;
    Ok(Meaning { policy, ..asked })
}

/// The name alone of a policy; nothing for any policy.
fn called(policy: &str) -> Result<String> {
    match policy {
        "" => Ok(String::new()),
        policy => {
            let spec: Spec = policy.parse().map_err(|e: Error| e.at("--policy"))?;
            Ok(spec.info().name.to_owned())
        }
    }
}

/// The profile that something is added to.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one value is made, once")]
pub enum Into {
    /// An existing one.
    Profile(Choice<Profile>),
    /// A new one, of this platform.
    New(String),
}

/// What the tool does not say whose output is added to a profile.
#[derive(Clone, Debug)]
pub struct Meant {
    /// Which number of the samples a table of SchedCAT holds.
    pub statistic: Option<Statistic>,
    /// For cache delays: what else ran.
    pub load: Load,
    /// For cache delays: the part of the words that are written.
    pub write_ratio: f64,
    /// For overheads: the policy; empty for any.
    pub policy: String,
}

/// Adds what another tool measured to a profile, and writes it to `output`: an overhead table of
/// SchedCAT, or latencies that cyclictest or `rtla timerlat hist` printed, which become the
/// overhead `release`. What it is, the file says. Returns what a profile has no place for, and what
/// to know of what it has.
///
/// # Errors
/// The file cannot be read, or is neither; a table without a statistic; a write ratio outside of 0
/// to 1, or no such policy; the profile cannot be read or written.
pub fn import(file: &Path, how: &Meant, into: &Into, output: &Path) -> Result<Vec<String>> {
    let text = files::read_text(file)?;
    let latencies = latency::read(&text).map_err(|e| e.at(file.display()))?;
    let source = match &latencies {
        None => format!("SchedCAT table {}", file.display()),
        Some(l) => format!(
            "{} {} ({} threads, {} samples)",
            l.tool,
            file.display(),
            l.threads,
            l.samples
        ),
    };
    let before = match into {
        Into::Profile(profile) => profile.profile()?,
        Into::New(platform) => Profile::new(
            platform.as_str(),
            Provenance {
                source: source.clone(),
                ..Provenance::default()
            },
        ),
    };
    let (mut profile, notes) = match &latencies {
        Some(latencies) => {
            let policy = called(&how.policy)?;
            let added = latency::add(&before, latencies, &policy);
            let notes = vec![latency::WARNING.to_owned()];
            (added.map_err(|e| e.at(file.display()))?, notes)
        }
        None => {
            let statistic = how.statistic.ok_or_else(|| {
                Error::new("a table of SchedCAT does not say which number of the samples it holds")
                    .at(file.display())
                    .remedy("say it: `--statistic average` or `--statistic maximum`")
            })?;
            let meaning = meaning(Meaning {
                statistic,
                load: how.load,
                write_ratio: how.write_ratio,
                policy: how.policy.clone(),
            })?;
            let (profile, skipped) =
                schedcat::import(&before, &text, &meaning).map_err(|e| e.at(file.display()))?;
            let notes = skipped
                .iter()
                .map(|c| format!("column {c} left out: a profile has no place for it"))
                .collect();
            (profile, notes)
        }
    };
    if matches!(into, Into::Profile(_)) {
        // Every source stays named: the curves of one profile may come from several.
        let known = &mut profile.provenance.source;
        if !known.split("; ").any(|s| s == source) {
            *known = match known.is_empty() {
                true => source,
                false => format!("{known}; {source}"),
            };
        }
    }
    files::write(output, profilefile::to_toml(&profile))?;
    Ok(notes)
}

/// Compares two profiles, figure by figure, within the intervals that both state. A name of a
/// directory stands for the profile that a measurement wrote there.
///
/// # Errors
/// A profile that is not there; nothing to compare.
pub fn compare(first: &str, second: &str) -> Result<Comparison> {
    let profile = |name: &str| {
        let path = Path::new(name);
        let named = match path.is_dir() {
            true => path.join(PROFILE).display().to_string(),
            false => name.to_owned(),
        };
        Choice::<Profile>::Named(named).profile()
    };
    agree::compare(&profile(first)?, &profile(second)?)
        .map_err(|e| e.at(format!("{first}, {second}")))
}

/// A table of SchedCAT.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Its text.
    pub text: String,
    /// What of the profile it has no place for.
    pub left_out: Vec<String>,
}

/// Writes a profile as an overhead table of SchedCAT: its cache delays, or with `overheads` its
/// overheads by number of tasks.
///
/// # Errors
/// The profile cannot be read, or lacks what is asked for; a write ratio outside of 0 to 1.
pub fn export(profile: &Choice<Profile>, how: Meaning, overheads: bool) -> Result<Exported> {
    let profile = profile.profile()?;
    let meaning = meaning(how)?;
    let (text, left_out) = match overheads {
        true => schedcat::export_overheads(&profile, &meaning)?,
        false => schedcat::export_cpmd(&profile, &meaning)?,
    };
    Ok(Exported { text, left_out })
}
