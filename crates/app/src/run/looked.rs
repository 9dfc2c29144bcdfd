//! What was seen before a run.

use execute::preflight::{self, Finding, Level};
use model::Result;
use serde::Serialize;

/// What was seen before a run. JSON: as `warmset run --preflight --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Preflight {
    /// What was looked at: first the machine, then what concerns this set.
    #[serde(rename = "preflight")]
    pub findings: Vec<Finding>,
    /// How many of the findings are about the machine.
    #[serde(skip)]
    pub(super) of_machine: usize,
}

impl Preflight {
    /// What was seen of the machine.
    pub fn machine(&self) -> &[Finding] {
        &self.findings[..self.of_machine]
    }

    /// What was seen of this set on this machine.
    pub fn set(&self) -> &[Finding] {
        &self.findings[self.of_machine..]
    }

    /// May the run be?
    ///
    /// # Errors
    /// The first finding that forbids it.
    pub fn permit(&self) -> Result<()> {
        preflight::permit(&self.findings)
    }
}

/// How many things may disturb a run, in a line; none where nothing does. Another run is named: it
/// spoils both.
pub(super) fn disturbances(findings: &[Finding]) -> Option<String> {
    let warned = || findings.iter().filter(|f| f.level == Level::Warn);
    let things = match warned().count() {
        0 => return None,
        1 => "1 thing".to_owned(),
        n => format!("{n} things"),
    };
    let runs: Vec<&str> = warned()
        .filter(|f| f.name == execute::preflight::OTHER_RUNS)
        .filter_map(|f| f.seen.split_whitespace().nth(1))
        .collect();
    let among = match runs.as_slice() {
        [] => String::new(),
        [one] => format!(", among them another Warmset run (process {one})"),
        many => format!(
            ", among them other Warmset runs (processes {})",
            many.join(", ")
        ),
    };
    Some(format!(
        "{things} on this machine may disturb the run{among}; `warmset run … --preflight` lists them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_disturb_a_run_is_one_line_with_the_count() {
        let mut found = vec![
            Finding::fine("cpuset", "no cpuset limits this process"),
            Finding::warn("governor", "the machine does not tell it", "repeat runs"),
            Finding::warn("hypervisor", "there is one (KVM).", "`look` at the gaps"),
        ];
        assert_eq!(disturbances(&found[..1]), None);
        let said =
            "1 thing on this machine may disturb the run; `warmset run … --preflight` lists them";
        assert_eq!(disturbances(&found[..2]).as_deref(), Some(said));
        found.push(Finding::warn(
            execute::preflight::OTHER_RUNS,
            "process 71 is another Warmset run on processors 0-1",
            "wait",
        ));
        let said = disturbances(&found).unwrap();
        assert!(
            said.starts_with("3 things") && said.contains("another Warmset run (process 71);"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }
}
