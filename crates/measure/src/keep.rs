//! One profile of several measurements: cache delays and overheads are measured one after the other
//! into the same directory, and each keeps what the other found.

use model::{Error, Platform, Profile, Result, files};
use std::path::Path;

/// The profile that is there, if one is.
///
/// # Errors
/// It is no profile, or one of another machine.
pub fn there(path: &Path, platform: &Platform) -> Result<Option<Profile>> {
    if !path.exists() {
        return Ok(None);
    }
    let at = |e: Error| e.at(path.display());
    let profile = model::profilefile::from_toml(&files::read_text(path)?).map_err(at)?;
    fits(&profile, platform).map_err(|e| at(e).remedy("choose another directory"))?;
    Ok(Some(profile))
}

/// Is this profile one of the platform? Where it says which machine it was measured on, that
/// decides as well.
///
/// # Errors
/// It is of another machine.
pub fn fits(profile: &Profile, platform: &Platform) -> Result<()> {
    let measured_on = &profile.provenance.machine;
    let is_told = !measured_on.is_empty() && !platform.description.is_empty();
    if profile.platform != platform.name {
        return Err(other(&profile.platform));
    }
    if is_told && *measured_on != platform.description {
        return Err(other(measured_on));
    }
    Ok(())
}

fn other(machine: &str) -> Error {
    Error::new(format!("this is a profile of another machine, `{machine}`"))
        .remedy("measure this machine, or name the profile with `--profile`")
}

/// A profile of overheads with the cache delays of another one.
pub fn cache_delays(overheads: Profile, before: Profile) -> Profile {
    if before.cpmd.is_empty() && before.cpmd_scheduled.is_empty() {
        return overheads;
    }
    let mut joined = noted(before, &overheads, "overheads");
    joined.overheads = overheads.overheads;
    joined.tick_period = overheads.tick_period;
    joined.watch_period = overheads.watch_period;
    joined
}

/// A profile of cache delays with the overheads of another one.
pub fn overheads(cpmd: Profile, before: Profile) -> Profile {
    let cpmd = scheduled(cpmd, &before);
    if before.overheads.is_empty() {
        return cpmd;
    }
    let mut joined = noted(cpmd, &before, "overheads");
    joined.overheads = before.overheads;
    joined.tick_period = before.tick_period;
    joined.watch_period = before.watch_period;
    joined
}

/// A profile with the delays of the schedule-sensitive method that another one has.
pub fn scheduled(profile: Profile, with: &Profile) -> Profile {
    if with.cpmd_scheduled.is_empty() {
        return profile;
    }
    let mut joined = noted(profile, with, "schedule-sensitive delays");
    joined.cpmd_scheduled.clone_from(&with.cpmd_scheduled);
    joined
}

/// The first with a note of where the second comes from.
fn noted(mut joined: Profile, from: &Profile, what: &str) -> Profile {
    let provenance = &from.provenance;
    let mut told = vec![provenance.source.clone()];
    if !provenance.time.is_empty() {
        told.push(provenance.time.clone());
    }
    if !provenance.command.is_empty() {
        told.push(format!("`{}`", provenance.command));
    }
    // Where the second was joined itself it already says so.
    let told = provenance
        .settings
        .get(what)
        .cloned()
        .unwrap_or(told.join(", "));
    joined.provenance.settings.insert(what.to_owned(), told);
    for warning in &provenance.warnings {
        if !joined.provenance.warnings.contains(warning) {
            joined.provenance.warnings.push(warning.clone());
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Code, Duration, OverheadKind, Provenance};

    fn cpmd(time: &str) -> Profile {
        let xeon = Profile::builtin("xeon-l7455").unwrap();
        Profile {
            overheads: Vec::new(),
            tick_period: None,
            watch_period: None,
            provenance: Provenance {
                time: time.to_owned(),
                warnings: vec!["slow".to_owned()],
                ..Provenance::default()
            },
            ..xeon
        }
    }
    fn overhead(time: &str) -> Profile {
        let mut profile = Profile {
            cpmd: Vec::new(),
            ..cpmd(time)
        };
        profile.tick_period = Some(Duration::from_millis(4));
        profile.overheads.push(model::profile::OverheadCurve {
            kind: OverheadKind::Release,
            policy: String::new(),
            code: Some(Code::Both),
            points: Vec::new(),
        });
        profile
    }

    #[test]
    fn each_measurement_keeps_what_the_other_found() {
        let first = cache_delays(overhead("Monday"), cpmd("Sunday"));
        assert_eq!(first.provenance.time, "Sunday");
        assert_eq!(first.cpmd, cpmd("").cpmd);
        assert_eq!(first.overheads, overhead("").overheads);
        assert!(first.provenance.settings["overheads"].contains("Monday"));
        assert_eq!(first.provenance.warnings, ["slow"]);
        let again = overheads(cpmd("Tuesday"), first);
        assert_eq!(again.provenance.time, "Tuesday");
        assert!(again.provenance.settings["overheads"].contains("Monday"));
        assert_eq!(again.tick_period, Some(Duration::from_millis(4)));
    }

    #[test]
    fn where_nothing_was_there_nothing_is_noted() {
        assert_eq!(
            cache_delays(overhead("Monday"), overhead("Sunday")),
            overhead("Monday")
        );
        assert_eq!(overheads(cpmd("Monday"), cpmd("Sunday")), cpmd("Monday"));
    }

    #[test]
    fn another_machines_profile_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("profile.toml");
        let platform = Platform::symmetric(2);
        assert_eq!(there(&path, &platform).unwrap(), None);
        files::write(&path, model::profilefile::to_toml(&cpmd("Monday"))).unwrap();
        let error = there(&path, &platform).unwrap_err().to_string();
        assert!(error.contains("another machine"), "{error}");
    }
}
