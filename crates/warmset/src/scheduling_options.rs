//! The options on scheduling that `simulate` and `run` share.

use analyze::partition::Fit;
use app::Tasks;
use app::planned::PlanFile;
use app::scheduling::{Policies, Scheduling};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::{Duration, Enforcement, Result};
use policy::catalog::{Info, Tests};
use std::path::PathBuf;

/// The options that both have.
#[derive(clap::Args, Debug)]
pub struct SchedulingArgs {
    /// The policy, such as `g-edf`, `c-edf:l3` or `p-rm`; in a real run several that take turns:
    /// `g-edf,c-edf:l3`
    #[arg(long, value_name = "POLICY", default_value = "g-edf")]
    policy: Policies,
    /// Who runs where, instead of what the tool would assign: an answer of
    /// `warmset check --format json`, or one assignment as JSON
    #[arg(long, value_name = "FILE")]
    assignment: Option<PathBuf>,
    /// Policy, who runs where and priorities as this plan of `warmset advise -o` has them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy", "assignment"])]
    plan: Option<PathBuf>,
    /// How tasks are partitioned, where the policy needs it: `wfd`, `ffd`, `bfd`, `nfd`
    #[arg(long, value_name = "FIT", default_value = "wfd")]
    fit: Fit,
    /// What happens to jobs that execute for longer than their WCET
    #[arg(long, value_name = "HOW", value_parser = enforcement(), default_value_t = Enforcement::Off)]
    enforcement: Enforcement,
    /// Length of a quantum, where something happens at quanta
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        default_value = "1ms"
    )]
    quantum: Duration,
}

/// The words for what happens to overruns, with what they mean for `--help`.
fn enforcement() -> impl TypedValueParser<Value = Enforcement> {
    let words = Enforcement::ALL.map(|(word, _, meaning)| PossibleValue::new(word).help(meaning));
    PossibleValuesParser::new(words).try_map(|word| word.parse::<Enforcement>())
}

impl SchedulingArgs {
    /// Is a plan given, which is for one set of tasks?
    pub fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// The options, and the tasks as the plan has them, where one is given.
    ///
    /// # Errors
    /// A plan that cannot be read, is none, or is for other tasks.
    pub fn planned(self, tasks: Tasks) -> Result<(Scheduling, Tasks)> {
        let Some(path) = &self.plan else {
            return Ok((self.scheduling(), tasks));
        };
        let plan = PlanFile::read(path)?;
        let scheduling = Scheduling {
            policies: plan.policy()?.parse()?,
            assignment: Some(path.clone()),
            ..self.scheduling()
        };
        Ok((scheduling, plan.tasks(tasks)?))
    }

    /// The options without a plan.
    pub fn scheduling(&self) -> Scheduling {
        Scheduling {
            policies: self.policy.clone(),
            assignment: self.assignment.clone(),
            fit: self.fit,
            enforcement: self.enforcement,
            quantum: self.quantum,
        }
    }
}

/// The policies, for `--help`.
pub fn policies() -> String {
    let mut policies = String::from("Policies, with parameters after a colon:\n");
    for info in policy::catalog::all() {
        policies.push_str(&format!("    {:10} {}\n", info.name, info.summary));
    }
    policies
}

/// What may stand behind a key, as the summary of the parameters has it.
fn example(info: &Info, key: &str) -> &'static str {
    let text = info.parameters;
    let after = text
        .find(&format!("{key}="))
        .map(|at| &text[at + key.len() + 1..]);
    let value = after.and_then(|rest| rest.split(['`', ',', ' ']).next());
    value.unwrap_or("VALUE")
}

/// The policies that are judged, with those of their parameters that tests know, for `--help`.
pub fn judged() -> String {
    let mut judged = String::from("Policies that are judged, with parameters after a colon:\n");
    for info in policy::catalog::all() {
        let hard = match (info.hard, info.soft) {
            (Tests::None, Tests::None) => continue,
            (Tests::None, _) => " (soft only)",
            _ => "",
        };
        let keys = info.keys.iter().filter(|key| !info.unjudged.contains(key));
        let words = info.words.iter().map(|word| word.replace('#', "2"));
        let keys = keys.map(|key| format!("{key}={}", example(info, key)));
        let parameters: Vec<String> = words.chain(keys).collect();
        let parameters = match parameters.is_empty() {
            true => String::new(),
            false => format!(" (:{})", parameters.join(", :")),
        };
        judged.push_str(&format!(
            "    {:8} {}{hard}{parameters}\n",
            info.name, info.summary
        ));
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_in_the_help_of_check_can_be_written_so() {
        let mut asked = 0;
        for line in judged().lines().filter(|line| line.contains("(:")) {
            let name = line.split_whitespace().next().unwrap();
            let (_, parameters) = line.split_once("(:").unwrap();
            for parameter in parameters.trim_end_matches(')').split(", :") {
                let policy = format!("{name}:{parameter}");
                assert!(policy.parse::<policy::Spec>().is_ok(), "{policy}");
                asked += 1;
            }
        }
        assert!(asked > 8, "{asked}");
    }
}
