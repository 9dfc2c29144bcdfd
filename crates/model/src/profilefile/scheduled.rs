//! Cache delays by the schedule-sensitive method (000 §3.1) in files of profiles: curves as those of
//! the synthetic method, each with its policy and its number of tasks. Assumes that a policy, a
//! number of tasks, a way to resume, a load and a write ratio have one curve.

use super::{curve_of, list, quoted, write_cpmd_curve};
use crate::error::Result;
use crate::input::Table;
use crate::profile::ScheduledCurve;
use std::fmt::Write;

const KEYS: [&str; 6] = [
    "policy",
    "tasks",
    "resumption",
    "load",
    "write_ratio",
    "points",
];

/// All curves of a profile.
///
/// # Errors
/// A key that is not known or missing, a value that cannot be, a second curve of the same.
pub(super) fn curves_of(root: &Table<'_, '_>) -> Result<Vec<ScheduledCurve>> {
    let mut curves: Vec<ScheduledCurve> = Vec::new();
    for value in list(root, "cpmd_scheduled")? {
        let table = value.table()?;
        table.only(&KEYS)?;
        let tasks = table.need("tasks")?;
        let curve = ScheduledCurve {
            policy: table.need("policy")?.text()?.to_owned(),
            tasks: u32::try_from(tasks.whole()?).map_err(|_| {
                tasks
                    .error("too many tasks")
                    .remedy("give a number below 2^32")
            })?,
            curve: curve_of(&table)?,
        };
        if curves.iter().any(|other| is_of(other, &curve)) {
            return Err(value
                .error(format!(
                    "a second curve for a {} of {} tasks under `{}`",
                    curve.curve.resumption, curve.tasks, curve.policy
                ))
                .remedy("keep one of them"));
        }
        curves.push(curve);
    }
    Ok(curves)
}

/// Are both of the same cell?
fn is_of(a: &ScheduledCurve, b: &ScheduledCurve) -> bool {
    (&a.policy, a.tasks, a.curve.resumption, a.curve.load)
        == (&b.policy, b.tasks, b.curve.resumption, b.curve.load)
        && a.curve.write_ratio == b.curve.write_ratio
}

pub(super) fn write(out: &mut String, curves: &[ScheduledCurve]) -> std::fmt::Result {
    for curve in curves {
        writeln!(out, "\n[[cpmd_scheduled]]")?;
        writeln!(out, "policy = {}", quoted(&curve.policy))?;
        writeln!(out, "tasks = {}", curve.tasks)?;
        write_cpmd_curve(out, &curve.curve)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{from_toml, to_toml};
    use super::*;
    use crate::profile::Profile;

    fn profile() -> Profile {
        let mut profile = Profile::builtin("xeon-l7455").unwrap();
        for (policy, tasks) in [("p-edf", 6), ("p-edf", 12), ("g-edf", 6)] {
            profile.cpmd_scheduled.push(ScheduledCurve {
                policy: policy.to_owned(),
                tasks,
                curve: profile.cpmd[0].clone(),
            });
        }
        profile
    }

    #[test]
    fn what_is_written_reads_back_and_is_no_curve_of_the_other_method() {
        let profile = profile();
        let again = from_toml(&to_toml(&profile)).unwrap();
        assert_eq!(again, profile);
        assert_eq!(
            again.cpmd.len(),
            Profile::builtin("xeon-l7455").unwrap().cpmd.len()
        );
    }

    #[test]
    fn a_second_curve_of_the_same_is_refused() {
        let mut twice = profile();
        twice.cpmd_scheduled.push(twice.cpmd_scheduled[0].clone());
        let error = from_toml(&to_toml(&twice)).unwrap_err().to_string();
        assert!(error.contains("a second curve"), "{error}");
    }
}
