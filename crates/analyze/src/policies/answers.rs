//! What every test and every packing of a policy says: not only the one that decided.

use super::charged::{Case, Pieces};
use super::members::{BY_DELAYED_RESPONSE, Members};
use super::place::{self, Packing, clustered};
use super::question::Question;
use super::subject::Way;
use crate::clustered as cluster_tests;
use crate::semi::nps_f;
use crate::verdict::{Decision, Guarantee};
use crate::{registry, tardiness};
use model::Assignment;
use policy::catalog::Tests;
use serde::Serialize;

/// What a test or a packing says of the set with its overheads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The guarantee is shown.
    Yes,
    /// It is not.
    No,
    /// A precondition fails, or a limit is exceeded.
    NotApplicable,
}

/// A test or packing, and what it says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TestAnswer {
    /// Its name in the registry, or that of the packing heuristic.
    pub test: String,
    /// Yes, no, or not applicable.
    pub says: Answer,
    /// Why not, or of how many clusters it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Exact response times on every processor decided.
pub(super) const BY_RESPONSE: &str = "exact response times";
/// Every test for global fixed priorities refused.
const BY_ANY_FIXED: &str = "every test for g-fp";

fn answer(test: &str, says: Decision) -> TestAnswer {
    TestAnswer {
        test: test.to_owned(),
        says: match says {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No,
            Err(_) => Answer::NotApplicable,
        },
        detail: says.err().map(|why| why.to_string()),
    }
}

/// The tests for clusters of several processors under a policy, each with what it says of the tasks
/// on `size`.
fn tests(question: &Question<'_>, members: &Members, size: u32) -> Vec<(&'static str, Decision)> {
    match (question.tests(), question.policy.priority()) {
        (Tests::Priorities, Some(priority)) => members.global_fixed(priority, size),
        (Tests::Deadlines, _) => members.global_edf(size),
        (Tests::Utilization, _) => {
            let tasks = members.with_blocking();
            let mut tests = vec![(
                cluster_tests::BY_PACKING,
                Ok(tardiness::is_bounded(&tasks, size)),
            )];
            if question.policy.is_edf() {
                let says = tardiness::devi_anderson::is_schedulable(&tasks, size);
                tests.push((tardiness::devi_anderson::INFO.name, says));
            }
            tests
        }
        (Tests::Named(name), _) => match registry::find(name) {
            Ok(test) => vec![(
                test.name,
                test.decide_with(&members.tasks, &members.extras, size),
            )],
            Err(_) => Vec::new(),
        },
        (Tests::None | Tests::Priorities, _) => Vec::new(),
    }
}

/// What each says.
pub(super) fn all(
    question: &Question<'_>,
    case: &Case,
    pieces: Option<&Pieces>,
) -> Vec<TestAnswer> {
    let holds = pieces.is_some();
    if !question.policy.is_packed() {
        return vec![answer(by_policy(question), Ok(holds))];
    }
    let mut answers = Vec::new();
    let packings = place::packings(question);
    if question.site.clusters.len() > 1 && question.given.is_none() {
        answers.extend(packings.iter().map(|p| of_packing(question, case, *p)));
    }
    if question.site.clusters.iter().all(|c| c.len() == 1) {
        if question.site.clusters.len() == 1 || question.given.is_some() {
            answers.push(answer(by_policy(question), Ok(holds)));
        }
        return answers;
    }
    // The tests are asked about the assignment that holds, or about the first that does not.
    let first;
    let pieces = match (pieces, packings.first()) {
        (Some(pieces), _) => pieces,
        (None, Some(packing)) => {
            let Ok(assignment) = (match question.given {
                Some(given) => Ok(given.clone()),
                None => place::pack(question, case, *packing).map(|c| clustered(question, c)),
            }) else {
                return answers;
            };
            first = question.pieces(case, &assignment);
            &first
        }
        (None, None) => return answers,
    };
    let mut rows: Vec<(&'static str, Vec<Decision>)> = Vec::new();
    for (here, cpus) in pieces.by_place().iter().zip(&pieces.places) {
        if here.is_empty() {
            continue;
        }
        for (name, says) in tests(question, &question.members_of(here), cpus.len() as u32) {
            match rows.iter_mut().find(|(n, _)| *n == name) {
                Some((_, all)) => all.push(says),
                None => rows.push((name, vec![says])),
            }
        }
    }
    answers.extend(rows.into_iter().map(|(name, says)| {
        let yes = says.iter().filter(|s| **s == Ok(true)).count();
        let mut sum = answer(
            name,
            match says.iter().find(|s| s.is_err()) {
                Some(why) if yes == 0 => why.clone(),
                _ => Ok(yes == says.len()),
            },
        );
        if says.len() > 1 && sum.detail.is_none() && yes < says.len() {
            sum.detail = Some(format!("{yes} of {} clusters", says.len()));
        }
        sum
    }));
    answers
}

fn of_packing(question: &Question<'_>, case: &Case, packing: Packing) -> TestAnswer {
    let (says, detail) = match place::pack(question, case, packing) {
        Err(task) => (
            Answer::No,
            Some(format!(
                "`{}` finds no place",
                question.set.name(model::TaskId(task))
            )),
        ),
        Ok(cluster_of) => match question.holds(case, &clustered(question, cluster_of)) {
            true => (Answer::Yes, None),
            false => (
                Answer::No,
                Some("all find a place, and not all pass there".to_owned()),
            ),
        },
    };
    TestAnswer {
        test: packing.to_string(),
        says,
        detail,
    }
}

/// The test of each place that accepts it.
pub(super) fn accepting(question: &Question<'_>, pieces: &Pieces) -> Vec<Option<&'static str>> {
    let inside = pieces.by_place();
    let of_place = |(here, cpus): (&Vec<&crate::overheads::Piece>, &model::CpuSet)| {
        let size = cpus.len() as u32;
        let members = question.members_of(here);
        match question.tests() {
            _ if !question.policy.is_packed() => Some(by_policy(question)),
            Tests::Utilization => question
                .place_holds(&members, size)
                .then_some(cluster_tests::BY_PACKING),
            Tests::Deadlines => {
                let decided =
                    cluster_tests::decide_cluster_with(&members.tasks, &members.extras, size);
                decided.ok().flatten()
            }
            Tests::Priorities if size == 1 => Some(by_policy(question)),
            _ => tests(question, &members, size)
                .into_iter()
                .find(|(_, says)| *says == Ok(true))
                .map(|(name, _)| name),
        }
    };
    inside.iter().zip(&pieces.places).map(of_place).collect()
}

/// The test that decides for a policy without clusters to choose tests for.
pub(super) fn by_policy(question: &Question<'_>) -> &'static str {
    let is_delayed = !question.set.extras().is_empty();
    match question.tests() {
        // One cluster is NPS-F, whatever the policy is called.
        Tests::Named(_) if is_in_one_cluster(question) => nps_f::INFO.name,
        Tests::Named(name) => name,
        Tests::Priorities if question.is_global_fixed() => BY_ANY_FIXED,
        Tests::Priorities if is_delayed => BY_DELAYED_RESPONSE,
        Tests::Priorities => BY_RESPONSE,
        _ if !question.policy.is_edf() => cluster_tests::BY_PACKING,
        _ if is_delayed => cluster_tests::BY_DELAYED_EDF,
        _ => cluster_tests::BY_EXACT_EDF,
    }
}

/// Are there servers that no boundary between clusters holds up?
fn is_in_one_cluster(question: &Question<'_>) -> bool {
    matches!(question.policy.way, Way::Slots { .. }) && question.site.clusters.len() == 1
}

/// Which test refused, where no assignment holds.
pub(super) fn refusing(question: &Question<'_>, case: &Case) -> &'static str {
    if !question.policy.is_edf() {
        return by_policy(question);
    }
    let packing = place::packings(question).first().copied();
    let placed =
        question.given.is_some() || packing.is_some_and(|p| place::pack(question, case, p).is_ok());
    match question.guarantee {
        Guarantee::Soft => cluster_tests::BY_PACKING,
        Guarantee::Hard if !placed => cluster_tests::BY_PACKING,
        Guarantee::Hard if question.site.clusters.iter().all(|c| c.len() == 1) => {
            by_policy(question)
        }
        Guarantee::Hard => cluster_tests::BY_SUFFICIENT,
    }
}

/// Who decided an assignment that holds: the last resort among its places.
pub(super) fn deciding(
    question: &Question<'_>,
    accepted_by: &[Option<&'static str>],
) -> &'static str {
    match question.policy.priority() {
        _ if !question.policy.is_packed() => by_policy(question),
        Some(_) if !question.is_global_fixed() => by_policy(question),
        _ => cluster_tests::last_resort(accepted_by),
    }
}

/// Is it an assignment in slots, whose reserve is more than its tasks need?
pub(super) fn has_reserve(assignment: &Assignment) -> bool {
    matches!(assignment, Assignment::Slots(_))
}
