//! The sentences of an answer.

use crate::answer::{Considered, Outcome, Stretch, WayFound};
use crate::colors::{Colored, Way};
use analyze::policies::{Growth, PolicyVerdict};
use model::Assignment;

/// `3.4 %`, or `at least 3.4 %`.
fn percent(growth: Growth) -> String {
    let tenths = growth.thousandths.saturating_sub(1_000);
    let least = if growth.exact { "" } else { "at least " };
    format!("{least}{}.{} %", tenths / 10, tenths % 10)
}

/// How much WCETs may grow, as a clause.
fn room(growth: Option<Growth>) -> String {
    match growth {
        Some(g) if g.thousandths > 1_000 => format!("all WCETs could grow by {}", percent(g)),
        _ => "WCETs could not grow by a thousandth".to_owned(),
    }
}

/// What a plan does with tasks, as a clause.
fn manner(verdict: &PolicyVerdict) -> String {
    match &verdict.assignment {
        Some(Assignment::Clustered(c)) if c.clusters.iter().all(|c| c.len() == 1) => {
            "each task stays on one processor".to_owned()
        }
        Some(Assignment::Clustered(c)) if c.clusters.len() > 1 => {
            format!("each task stays in one of {} clusters", c.clusters.len())
        }
        Some(Assignment::Clustered(_)) | None => "tasks run on any processor".to_owned(),
        Some(Assignment::Turns(t)) => {
            let migratory = t.tasks.iter().filter(|t| t.is_migratory()).count();
            format!("jobs of {migratory} of the tasks take turns on two processors")
        }
        Some(Assignment::Slices(s)) => {
            let split = s.tasks.iter().filter(|s| s.len() > 1).count();
            format!("jobs of {split} of the tasks go through several processors in slices")
        }
        Some(Assignment::Slots(_)) => "tasks run in servers that take turns in slots".to_owned(),
        Some(Assignment::Quanta(_)) => "tasks run in reserved quanta".to_owned(),
    }
}

/// Why the first of the policies is recommended. They are sorted.
pub(crate) fn recommend(verdict: &PolicyVerdict, policies: &[Considered]) -> String {
    let name = &verdict.policy;
    let mut text = format!(
        "{name}: {}, and {} before this plan fails",
        manner(verdict),
        room(verdict.growth)
    );
    let others: Vec<&Considered> = policies
        .iter()
        .filter(|p| p.outcome == Outcome::Holds)
        .skip(1)
        .collect();
    let Some(second) = others.first() else {
        return text + "; no plan was found under any other policy";
    };
    let (best, next) = (verdict.growth, second.growth);
    text += &match (best, next) {
        (_, None) => format!("; {} holds too, and was not measured", second.policy),
        (Some(a), Some(b)) if a.thousandths > b.thousandths => match b.thousandths {
            0..=1_000 => format!("; the next, {}, bears no growth", second.policy),
            _ => format!("; the next, {}, bears {}", second.policy, percent(b)),
        },
        _ if verdict.cpmd_covered && second.lost > lost(verdict) => format!(
            "; {} bears as much and loses more to overheads",
            second.policy
        ),
        _ => format!(
            "; {} does as well, and what moves tasks over fewer processors comes first",
            second.policy
        ),
    };
    text
}

/// What overheads take, in processors.
pub(crate) fn lost(verdict: &PolicyVerdict) -> Option<f64> {
    // Rounded so that sums in another order stay equal.
    let with = verdict.inflated_utilization?;
    Some(((with - verdict.utilization) * 1e9).round() / 1e9)
}

/// The task that may grow least, as a sentence.
pub(crate) fn tightest(stretch: &Stretch) -> Option<String> {
    let task = stretch.tasks.first()?;
    let tenths = task.thousandths.saturating_sub(1_000);
    Some(format!(
        "alone, `{}` may grow least: from {} to {} ({}.{} %)",
        task.task,
        task.wcet.rounded(),
        task.largest.rounded(),
        tenths / 10,
        tenths % 10
    ))
}

/// What came of the colors, in a sentence.
pub(crate) fn colors(best: Option<&Colored>, supply: u16, used: u16, ways: &[WayFound]) -> String {
    let Some(best) = best else {
        return format!("no plan was found with {supply} colors");
    };
    let mut text = match best.way {
        Way::ByProcessor => format!(
            "{used} of {supply} colors are given: each processor has its own, which its tasks share"
        ),
        Way::ByTask => format!("{used} of {supply} colors are given: each task has its own"),
        Way::Shared => "no colors are given: all share the cache".to_owned(),
    };
    for other in ways.iter().filter(|other| other.way != best.way) {
        let what = match other.way {
            Way::ByProcessor => "with colors by processor",
            Way::ByTask => "with colors by task",
            Way::Shared => "with a shared cache",
        };
        text += &format!("; {what} {} ({})", room(other.growth), other.policy);
    }
    text
}
