//! What is tried: every policy that `check` judges, with the parameters that change its verdict.

use analyze::Guarantee;
use analyze::policies::{read_list, suggested};
use model::{ClusterSpec, Platform, Result, TaskSet};
use policy::Spec;
use policy::catalog::{Needs, Tests};

/// A policy to look for a plan for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Candidate {
    /// As `check` judges it, and with other placements.
    Policy(Spec),
    /// `p-fp` with priorities that are looked for on each processor.
    PrioritiesOnProcessors(Spec),
    /// `g-fp` with priorities that are looked for.
    GlobalPriorities(Spec),
}

impl Candidate {
    /// The policy.
    pub fn spec(&self) -> &Spec {
        match self {
            Candidate::Policy(spec)
            | Candidate::PrioritiesOnProcessors(spec)
            | Candidate::GlobalPriorities(spec) => spec,
        }
    }
}

/// The slots per shortest period that NPS-F is tried with beside one.
const DELTAS: [u32; 3] = [2, 3, 4];

/// All candidates, in the order in which they are tried: those that `check` suggests come first.
///
/// # Errors
/// The platform has no usable processor.
pub(crate) fn all(
    set: &TaskSet,
    platform: &Platform,
    guarantee: Guarantee,
) -> Result<Vec<Candidate>> {
    let mut specs = suggested(platform, guarantee)?;
    let m = platform.usable().len() as u32;
    if m > 1 {
        specs.extend(clusters_of_a_size(platform, m, guarantee)?);
        specs.extend(more_slots(&specs)?);
        add(&mut specs, "g-fp:rm", guarantee)?;
        add(&mut specs, "g-fifo", guarantee)?;
    }
    if set.has_priorities() {
        add(&mut specs, "p-fp", guarantee)?;
        if m > 1 {
            add(&mut specs, "g-fp", guarantee)?;
        }
    }
    let mut unique: Vec<Spec> = Vec::new();
    for spec in specs {
        let spec = spec.canonical()?;
        if !unique.contains(&spec) {
            unique.push(spec);
        }
    }
    let mut candidates: Vec<Candidate> = unique.into_iter().map(Candidate::Policy).collect();
    // The blocking that a set gives is that of its own priorities, and of none that are looked for.
    let has_blocking = set.extras().iter().any(|x| !x.blocking.is_zero());
    if !has_blocking {
        if !deadline_order_is_best(set) {
            candidates.push(Candidate::PrioritiesOnProcessors("p-fp".parse()?));
        }
        if m > 1 {
            candidates.push(Candidate::GlobalPriorities("g-fp".parse()?));
        }
    }
    Ok(candidates)
}

/// The candidates among policies that are named.
///
/// # Errors
/// An unknown policy, or one that no test knows.
pub(crate) fn named(names: &str) -> Result<Vec<Candidate>> {
    Ok(read_list(names)?
        .into_iter()
        .map(Candidate::Policy)
        .collect())
}

/// Is no order of priorities on one processor better than that of deadlines? So it is where
/// deadlines are within periods and nothing is released late (Leung, Whitehead 1982).
fn deadline_order_is_best(set: &TaskSet) -> bool {
    set.timings().iter().all(|t| t.has_constrained_deadline())
        && set.extras().iter().all(|x| x.jitter.is_zero())
}

fn add(specs: &mut Vec<Spec>, word: &str, guarantee: Guarantee) -> Result<()> {
    let spec: Spec = word.parse()?;
    if tests(&spec, guarantee) != Tests::None {
        specs.push(spec);
    }
    Ok(())
}

fn tests(spec: &Spec, guarantee: Guarantee) -> Tests {
    match guarantee {
        Guarantee::Hard => spec.info().hard,
        Guarantee::Soft => spec.info().soft,
    }
}

/// `c-edf:size=K` for the sizes that no cache level makes.
fn clusters_of_a_size(platform: &Platform, m: u32, guarantee: Guarantee) -> Result<Vec<Spec>> {
    let mut known = Vec::new();
    for level in platform.data_levels() {
        known.extend(platform.clusters(ClusterSpec::Level(level)).ok());
    }
    let mut specs = Vec::new();
    for size in (2..m).filter(|size| m.is_multiple_of(*size)) {
        let Ok(clusters) = platform.clusters(ClusterSpec::Size(size)) else {
            continue;
        };
        if !known.contains(&clusters) {
            add(&mut specs, &format!("c-edf:size={size}"), guarantee)?;
        }
    }
    Ok(specs)
}

/// The same policies in slots with more slots per shortest period.
fn more_slots(specs: &[Spec]) -> Result<Vec<Spec>> {
    let mut more = Vec::new();
    for spec in specs {
        if !matches!(spec.needs()?, Needs::Slots { .. }) {
            continue;
        }
        let name = spec.canonical()?.to_string();
        let separator = if name.contains(':') { ',' } else { ':' };
        for delta in DELTAS {
            more.push(format!("{name}{separator}delta={delta}").parse()?);
        }
    }
    Ok(more)
}
