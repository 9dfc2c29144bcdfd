//! The catalog of policies for people: what `warmset policies` shows and what stands in
//! `docs/policies.md`.

use policy::Spec;
use policy::catalog::{self, Info, Needs, Order, Tests};
use serde::Serialize;

/// A policy for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Listed {
    /// As people write it.
    pub policy: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Its parameters, with examples; empty: none.
    pub parameters: &'static str,
    /// How its assignment is made.
    pub assignment: &'static str,
    /// The tests that show that no deadline is missed; `None`: none is known.
    pub hard: Option<String>,
    /// The tests that show that tardiness is bounded.
    pub soft: Option<String>,
    /// How overheads are charged.
    pub accounting: &'static str,
    /// The word by which campaigns on a real machine run it.
    pub live: &'static str,
}

/// Every policy of the catalog.
pub fn listed() -> Vec<Listed> {
    catalog::all().iter().map(|info| of(info)).collect()
}

fn of(info: &'static Info) -> Listed {
    let bare = info.name.parse::<Spec>();
    // A policy that has to be told its clusters packs tasks into them.
    let needs = bare.as_ref().ok().and_then(|spec| spec.needs().ok());
    let order = bare.as_ref().ok().and_then(|spec| spec.order().ok());
    let assignment = match needs {
        Some(Needs::Nothing) if info.quantum_driven => "reserved quanta",
        Some(Needs::Nothing) => "none",
        Some(Needs::Clusters(model::ClusterSpec::Partitioned)) => "tasks on processors",
        Some(Needs::Clusters(_)) | None => "tasks in clusters",
        Some(Needs::Turns { .. }) => "turns on two processors",
        Some(Needs::Slices { .. }) => "slices in windows",
        Some(Needs::Slots { .. }) => "servers in slots",
    };
    let accounting = match (needs, order) {
        _ if info.quantum_driven => "a delay in every quantum",
        (Some(Needs::Turns { .. } | Needs::Slices { .. } | Needs::Slots { .. }), _) => {
            "by processor and part"
        }
        (_, Some(Order::Own)) => "every task may preempt every other",
        (_, Some(Order::Releases)) => "no task preempts another",
        (_, Some(Order::Fixed(_))) => "a task preempts lower priorities",
        _ => "a task preempts longer deadlines",
    };
    Listed {
        policy: info.name,
        summary: info.summary,
        parameters: info.parameters,
        assignment,
        hard: words(info.hard),
        soft: words(info.soft),
        accounting,
        live: info.live_word(),
    }
}

fn words(tests: Tests) -> Option<String> {
    Some(match tests {
        Tests::None => return None,
        Tests::Deadlines => "exact EDF; tests for `g-edf`".to_owned(),
        Tests::Priorities => "exact response times; tests for `g-fp`".to_owned(),
        Tests::Utilization => "utilization".to_owned(),
        Tests::Named(name) => name.to_owned(),
    })
}

/// The table of `docs/policies.md`, in Markdown.
pub fn markdown() -> String {
    let mut table = String::from(
        "| policy | what it does | parameters | assignment | hard | soft | cache delays by piece |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in listed() {
        table += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} |\n",
            row.policy,
            row.summary,
            row.parameters,
            row.assignment,
            row.hard.as_deref().unwrap_or("–"),
            row.soft.as_deref().unwrap_or("–"),
            row.accounting,
        );
    }
    table
}
