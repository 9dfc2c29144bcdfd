//! The options on scheduling that `simulate` and `run` share.

use analyze::partition::Fit;
use app::scheduling::{Policies, Scheduling};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::{Duration, Enforcement};
use policy::catalog::Tests;
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

impl From<SchedulingArgs> for Scheduling {
    fn from(args: SchedulingArgs) -> Self {
        Scheduling {
            policies: args.policy,
            assignment: args.assignment,
            fit: args.fit,
            enforcement: args.enforcement,
            quantum: args.quantum,
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
        let parameters: Vec<String> = words.chain(keys.map(|key| format!("{key}=2"))).collect();
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
