//! What to run: a search over policies, placements and priorities for a plan that keeps a
//! guarantee on a platform, with all that it costs there.
//!
//! Each verdict is one of `check`: the search asks the code that decides for it
//! (`analyze::policies`), and the plan that is recommended is judged again as `check` judges a
//! given assignment. It draws no random numbers and has no clock: whoever calls says when time is over
//! ([`Pace`]), and where it is never over the answer is the same on every machine.
//!
//! 1. Every policy that `check` judges, with the parameters that matter (`candidates`), is asked as
//!    `check` asks it.
//! 2. Where tasks are packed, other orders and fits are tried, then orders that learn from failure
//!    (`pack`), then all placements by branch and bound (`exact`). On single processors the
//!    placement is looked for under which WCETs may grow most (`grow`). Fixed priorities get
//!    Audsley's order on each processor, and several orders on all together (`priorities`).
//! 3. Each plan is judged as it is. The one under which WCETs may grow most is recommended, and
//!    stretched (`stretch`). Where there is none, the smallest changes are looked for (`changes`).

#![forbid(unsafe_code)]

mod answer;
mod candidates;
mod changes;
mod colors;
mod consider;
mod exact;
mod ground;
mod grow;
mod pace;
mod pack;
mod plan;
mod priorities;
mod question;
mod stretch;
mod words;

pub use answer::{
    Advice, Change, Considered, Factor, GivenColors, OneTask, Outcome, Recommended, Searched,
    Stretch, WayFound, What,
};
pub use colors::Way;
pub use pace::{Ended, Pace};
pub use plan::{Plan, Planned};
pub use question::Asked;

use analyze::policies::PolicyVerdict;
use candidates::Candidate;
use colors::Colored;
use consider::{Looked, State};
use model::assignmentfile::JudgedTask;
use model::watch::Silent;
use model::{Error, Ratio, Result};
use std::cmp::Reverse;

/// How much is tried for each policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Orders that learn from failure, for each fit.
    pub rounds: u32,
    /// Steps of branch and bound.
    pub steps: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            rounds: 100,
            steps: 50_000,
        }
    }
}

impl Effort {
    /// The effort for places that are single processors, or clusters, whose tests take longer.
    fn of(self, single: bool) -> Self {
        match single {
            true => self,
            false => Effort {
                rounds: self.rounds / 10,
                steps: self.steps / 25,
            },
        }
    }
}

/// What is searched. By default every policy that `check` judges.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these policies, by their names, separated by commas.
    pub policies: Option<String>,
    /// How much is tried for each.
    pub effort: Effort,
    /// So many colors are there to be given to tasks whose WCETs depend on them.
    pub colors: Option<u16>,
}

/// A candidate with the verdict of `check` on its plan.
#[derive(Clone)]
struct Judged {
    looked: Looked,
    verdict: Option<PolicyVerdict>,
    /// The colors of the plan, where WCETs depend on them.
    colored: Option<Colored>,
}

/// Looks for a plan, and says how far it can be stretched; or for what would have to change.
///
/// # Errors
/// As [`analyze::policies::judge`], but for the end by the watch: that is an answer
/// ([`Advice::ended`]).
pub fn advise(asked: &Asked<'_>, options: &Options, pace: &Pace<'_>) -> Result<Advice> {
    let candidates = match &options.policies {
        Some(names) => candidates::named(names)?,
        None => candidates::all(asked.set, asked.platform, asked.guarantee)?,
    };
    let mut ways = Vec::new();
    let mut judged = match colors_of(asked, options)? {
        Some(supply) => {
            let (judged, found) = colors::look(asked, &candidates, supply, options, pace)?;
            ways = found;
            judged
        }
        None => {
            let mut judged = look(asked, candidates, &options.effort, pace)?;
            judge(asked, &mut judged, pace)?;
            judged
        }
    };
    sort(&mut judged);
    let mut policies: Vec<Considered> = judged.iter().map(considered).collect();
    let mut not_tried = left_out(&judged);
    if asked.set.depends_on_colors() && options.colors.is_none() {
        not_tried.push("colors: WCETs depend on them, and none were given to give away".to_owned());
    }
    // With the colors of the plan, and the WCETs that tasks have with them.
    let colored = judged.first().and_then(|one| one.colored.as_ref());
    let colored = colored
        .map(|c| asked.set.with_colors(&c.colors))
        .transpose()?;
    let given = options
        .colors
        .map(|supply| given_colors(asked, supply, &judged, ways));
    let whole = asked;
    let asked = &whole.with_set(colored.as_ref().unwrap_or(whole.set));
    let mut recommendation = None;
    let mut changes = Vec::new();
    match judged.first().and_then(plan_of) {
        Some(plan) => {
            let verdict = judged.first().and_then(|j| j.verdict.clone());
            let found = recommend(asked, plan, verdict, &policies, pace)?;
            let found = Recommended {
                colors: policies.first().and_then(|p| p.colors.clone()),
                ..found
            };
            if let Some(first) = policies.first_mut() {
                first.growth = found.verdict.growth;
                first.largest_cpmd = found.verdict.largest_cpmd;
            }
            if found.stretch.tasks.len() < asked.set.len() {
                not_tried.push(format!(
                    "how far each task alone may grow: asked of {} of the {} tasks",
                    found.stretch.tasks.len(),
                    asked.set.len()
                ));
            }
            recommendation = Some(found);
        }
        None => {
            let specs: Vec<_> = judged
                .iter()
                .filter(|j| matches!(j.looked.state, State::Fails(_)))
                .filter(|j| matches!(j.looked.candidate, Candidate::Policy(_)))
                .map(|j| j.looked.candidate.spec().clone())
                .collect();
            if pace.goes_on() {
                let steps = specs.len() + asked.set.len();
                pace.begin("Looking for changes", steps as u64);
                let found = changes::find(asked, &specs, pace)?;
                changes = found.changes;
                not_tried.extend(found.not_tried);
            } else {
                not_tried.push("changes that would help".to_owned());
            }
        }
    }
    let costs = &asked.costs;
    Ok(Advice {
        guarantee: asked.guarantee,
        platform: asked.platform.name.clone(),
        processors: asked.platform.usable().len(),
        tasks: JudgedTask::all(asked.set),
        utilization: asked.set.utilization_f64(),
        rule: costs.rule(),
        accounting: costs.accounting(),
        costs: costs.describe(asked.guarantee),
        answer: answer(asked, recommendation.as_ref(), &changes, pace),
        recommendation,
        policies,
        changes,
        colors: given,
        not_tried,
        ended: pace.ended(),
    })
}

/// How many colors there are to give, where that matters.
fn colors_of(asked: &Asked<'_>, options: &Options) -> Result<Option<u16>> {
    match (options.colors, asked.set.depends_on_colors()) {
        (None, _) => Ok(None),
        (Some(0), _) => Err(Error::new("there are no colors to give")
            .at("--colors")
            .remedy("give how many there are, or leave it out")),
        (Some(_), false) => Err(Error::new("no WCET of the set depends on colors")
            .at("--colors")
            .remedy(
                "give some task its WCET by colors, such as `wcet = { \"2\" = \"9ms\", \"4\" = \
                 \"6ms\" }`, or leave it out",
            )),
        (Some(supply), true) => Ok(Some(supply)),
    }
}

/// What came of the colors, and of each way to give them. The plans are sorted.
fn given_colors(
    asked: &Asked<'_>,
    supply: u16,
    judged: &[Judged],
    mut ways: Vec<WayFound>,
) -> GivenColors {
    let best = judged.first().and_then(|one| one.colored.as_ref());
    // That of the plan goes before another one that bears as much.
    ways.sort_by_key(|found| best.is_none_or(|best| best.way != found.way));
    let used = best.map_or(0, |colored| {
        let all = colored.colors.iter().flatten();
        let highest = all.filter_map(model::Colors::highest).max();
        highest.map_or(0, |color| color.0 + 1)
    });
    let name = |id: &model::TaskId| asked.set.name(*id);
    let table = |id: &model::TaskId| asked.set.details(*id).and_then(|d| d.wcets.as_ref());
    let unknown = asked
        .set
        .ids()
        .filter(|id| table(id).is_some_and(|wcets| wcets.shared().is_none()));
    let without = asked.set.ids().filter(|id| table(id).is_none());
    GivenColors {
        supply,
        used,
        words: words::colors(best, supply, used, &ways),
        ways,
        shared_unknown: unknown.map(|id| name(&id)).collect(),
        without: without.map(|id| name(&id)).collect(),
    }
}

/// Looks at every candidate: first as `check` does, then further.
fn look(
    asked: &Asked<'_>,
    candidates: Vec<Candidate>,
    effort: &Effort,
    pace: &Pace<'_>,
) -> Result<Vec<Judged>> {
    pace.begin("Looking for plans", 2 * candidates.len() as u64);
    let mut all = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let looked = match pace.goes_on() {
            true => consider::ask(asked, candidate)?,
            false => Looked {
                candidate,
                state: State::NotTried,
                searched: Searched::default(),
            },
        };
        all.push(Judged {
            looked,
            verdict: None,
            colored: None,
        });
        pace.step();
    }
    for one in &mut all {
        if pace.goes_on() {
            consider::deepen(asked, &mut one.looked, effort, pace)?;
        }
        pace.step();
    }
    Ok(all)
}

/// Has each plan judged as `check` judges a given assignment.
fn judge(asked: &Asked<'_>, all: &mut [Judged], pace: &Pace<'_>) -> Result<()> {
    let plans = all.iter().filter(|j| plan_of(j).is_some()).count();
    pace.begin("Judging plans", plans as u64);
    for one in all {
        let Some(plan) = plan_of(one).cloned() else {
            continue;
        };
        pace.step();
        if !pace.goes_on() {
            return Ok(());
        }
        match judge_plan(asked, &plan, &pace::Within(pace)) {
            Ok(verdict) if !verdict.schedulable => {
                let why = format!(
                    "`check` refuses the plan that was found: {}",
                    verdict.reason
                );
                one.looked.state = State::Fails(why);
            }
            Ok(verdict) => one.verdict = Some(verdict),
            // It ended in the midst of it.
            Err(_) if !pace.goes_on() => return Ok(()),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn judge_plan(
    asked: &Asked<'_>,
    plan: &consider::Plan,
    watch: &dyn model::watch::Watch,
) -> Result<PolicyVerdict> {
    match &plan.priorities {
        Some(priorities) => {
            let set = asked.set.with_priorities(priorities)?;
            asked
                .with_set(&set)
                .judge(&plan.spec, &plan.assignment, watch)
        }
        None => asked.judge(&plan.spec, &plan.assignment, watch),
    }
}

fn plan_of(one: &Judged) -> Option<&consider::Plan> {
    match &one.looked.state {
        State::Holds(plan) => Some(plan),
        State::Fails(_) | State::NotJudged(_) | State::NotTried => None,
    }
}

/// The best first: what holds; what was judged; what all is charged of; by growth, then by what is
/// lost to overheads. Equal ones keep the order of candidates, in which tasks that stay on one
/// processor come before those that move.
fn sort(all: &mut [Judged]) {
    let state = |one: &Judged| match &one.looked.state {
        State::Holds(_) => 0,
        State::Fails(_) => 1,
        State::NotJudged(_) => 2,
        State::NotTried => 3,
    };
    let key = |one: &Judged| {
        let verdict = one.verdict.as_ref();
        let growth = verdict.and_then(|v| v.growth).map_or(0, |g| g.thousandths);
        let covered = verdict.is_some_and(|v| v.cpmd_covered);
        (state(one), verdict.is_none(), !covered, Reverse(growth))
    };
    let lost = |one: &Judged| {
        let lost = one.verdict.as_ref().and_then(words::lost);
        lost.unwrap_or(f64::INFINITY)
    };
    all.sort_by(|a, b| key(a).cmp(&key(b)).then(lost(a).total_cmp(&lost(b))));
}

fn considered(one: &Judged) -> Considered {
    let verdict = one.verdict.as_ref();
    let plan = plan_of(one);
    let (outcome, reason) = match &one.looked.state {
        State::Holds(_) => {
            let reason = verdict.map_or("not measured: the search ended before", |v| &v.reason);
            (Outcome::Holds, reason.to_owned())
        }
        State::Fails(why) => (Outcome::Fails, why.clone()),
        State::NotJudged(why) => (Outcome::NotJudged, why.clone()),
        State::NotTried => (
            Outcome::NotTried,
            "not tried: the search ended before".to_owned(),
        ),
    };
    Considered {
        policy: one.looked.candidate.spec().to_string(),
        outcome,
        reason,
        found_by: plan.map_or_else(String::new, |p| p.found_by.clone()),
        growth: verdict.and_then(|v| v.growth),
        largest_cpmd: verdict.and_then(|v| v.largest_cpmd),
        lost: verdict.and_then(words::lost),
        searched: one.looked.searched,
        assignment: plan.map(|p| p.assignment.clone()),
        priorities: plan.and_then(|p| p.priorities.clone()),
        colors: one.colored.as_ref().map(|c| c.colors.clone()),
    }
}

/// The plan with the verdict of `check` on it.
fn recommend(
    asked: &Asked<'_>,
    plan: &consider::Plan,
    verdict: Option<PolicyVerdict>,
    policies: &[Considered],
    pace: &Pace<'_>,
) -> Result<Recommended> {
    let verdict = match verdict {
        Some(verdict) => verdict,
        // Whatever the time: no plan is recommended that `check` has not said yes to.
        None => judge_plan(asked, plan, &Silent)?,
    };
    if !verdict.schedulable {
        return Err(Error::new(format!(
            "`check` refuses the plan under `{}` that was found: {}",
            plan.spec, verdict.reason
        ))
        .remedy("this is a fault of the search; name other policies with `--policy`"));
    }
    pace.begin("Stretching the plan", asked.set.len() as u64);
    let set = match &plan.priorities {
        Some(priorities) => asked.set.with_priorities(priorities)?,
        None => asked.set.clone(),
    };
    let stretch = stretch::stretch(&asked.with_set(&set), plan, &verdict, pace)?;
    let mut reason = words::recommend(&verdict, policies);
    if let Some(tightest) = words::tightest(&stretch) {
        reason += &format!("; {tightest}");
    }
    Ok(Recommended {
        policy: plan.spec.to_string(),
        reason,
        found_by: plan.found_by.clone(),
        priorities: plan.priorities.clone(),
        colors: None,
        verdict,
        stretch,
    })
}

/// What was not tried, with counts.
fn left_out(all: &[Judged]) -> Vec<String> {
    let mut left = Vec::new();
    let untried: Vec<String> = all
        .iter()
        .filter(|j| matches!(j.looked.state, State::NotTried))
        .map(|j| j.looked.candidate.spec().to_string())
        .collect();
    if !untried.is_empty() {
        left.push(format!(
            "{} of the {} policies: {}",
            untried.len(),
            all.len(),
            untried.join(", ")
        ));
    }
    let unmeasured = all
        .iter()
        .filter(|j| plan_of(j).is_some() && j.verdict.is_none())
        .count();
    if unmeasured > 0 {
        left.push(format!(
            "how far {unmeasured} of the plans can be stretched"
        ));
    }
    for one in all.iter().filter(|j| !j.looked.searched.is_exact) {
        let (spec, searched) = (one.looked.candidate.spec(), &one.looked.searched);
        if searched.orders > 0 && plan_of(one).is_none() {
            left.push(format!(
                "{spec}: heuristic, {} orders of priorities tried, another may hold",
                searched.orders
            ));
        } else if searched.tests > 0 {
            let what = match plan_of(one) {
                Some(_) => "a placement that bears more may exist",
                None => "a placement that holds may exist",
            };
            left.push(format!(
                "{spec}: heuristic, {} placements and {} tests of places tried; {what}",
                searched.placements, searched.tests
            ));
        }
    }
    left
}

/// The first sentence of the answer.
fn answer(
    asked: &Asked<'_>,
    recommendation: Option<&Recommended>,
    changes: &[Change],
    pace: &Pace<'_>,
) -> String {
    if let Some(found) = recommendation {
        return format!("run it under {}", found.reason);
    }
    let m = asked.platform.usable().len();
    let mut text = match asked.set.cmp_utilization(Ratio::whole(m as u64)) {
        std::cmp::Ordering::Greater => format!(
            "no policy can hold this set: it asks for {:.3} of {m} processors",
            asked.set.utilization_f64()
        ),
        _ => match pace.ended() {
            Ended::Complete => "no plan was found under any policy".to_owned(),
            _ => "no plan was found in the time that was given".to_owned(),
        },
    };
    if let Some(first) = changes.first() {
        text += &format!("; it would hold with {}", first.words);
    }
    text
}
