//! One candidate: a plan under it, or why there is none.

use crate::candidates::Candidate;
use crate::exact::{self, Outcome};
use crate::ground::{ByOrder, ByTests, Ground};
use crate::pack::{self, Placement};
use crate::question::Asked;
use crate::{Effort, Pace, Searched, grow, priorities};
use analyze::partition::Fit;
use analyze::policies::{Limits, Places, Sought};
use model::{Assignment, Result, TaskSet};
use policy::Spec;
use policy::catalog::Needs;

/// A policy with all that it has to be told.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plan {
    pub spec: Spec,
    pub assignment: Assignment,
    /// By task, where the priorities of the set are not those of the plan.
    pub priorities: Option<Vec<u32>>,
    pub found_by: String,
}

/// What came of a candidate.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum State {
    Holds(Plan),
    /// What breaks it, as a clause.
    Fails(String),
    /// Why it cannot be asked, as a clause.
    NotJudged(String),
    NotTried,
}

/// A candidate with what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    pub candidate: Candidate,
    pub state: State,
    pub searched: Searched,
}

/// The most tasks of which other placements in clusters of several processors are tried, whose
/// tests look at pairs of tasks.
const MOST_IN_CLUSTERS: usize = 60;

/// How placements that `check` makes are told of.
const BY_CHECK: &str = "as `check` places the tasks";

/// Asks about a candidate as `check` does. Priorities that have to be looked for are left to
/// [`deepen`].
///
/// # Errors
/// As [`analyze::policies::judge`].
pub(crate) fn ask(asked: &Asked<'_>, candidate: Candidate) -> Result<Looked> {
    let mut searched = Searched::default();
    let state = match &candidate {
        Candidate::Policy(spec) => {
            searched.placements += 1;
            match asked.sought(spec, Limits::default())? {
                Sought::NotJudged(why) => State::NotJudged(why),
                Sought::Refused(why) => State::Fails(why),
                Sought::Holds(assignment) => plan(spec, assignment, BY_CHECK.to_owned()),
            }
        }
        Candidate::PrioritiesOnProcessors(_) | Candidate::GlobalPriorities(_) => State::NotTried,
    };
    Ok(Looked {
        candidate,
        state,
        searched,
    })
}

/// Looks for a plan that `check` does not find, or for a better one.
///
/// # Errors
/// As [`analyze::policies::judge`].
pub(crate) fn deepen(
    asked: &Asked<'_>,
    looked: &mut Looked,
    effort: &Effort,
    pace: &Pace<'_>,
) -> Result<()> {
    let searched = &mut looked.searched;
    let state = match &looked.candidate {
        Candidate::PrioritiesOnProcessors(spec) => {
            Some(on_processors(asked, spec, effort, searched, pace)?)
        }
        Candidate::GlobalPriorities(spec) => Some(globally(asked, spec, searched, pace)?),
        Candidate::Policy(spec) => match (&looked.state, spec.needs()?) {
            (State::NotJudged(_) | State::NotTried, _) => None,
            (State::Fails(_), Needs::Slices { .. }) => slices(asked, spec, searched)?,
            (state, Needs::Clusters(_)) => {
                let state = state.clone();
                placements(asked, spec, &state, effort, searched, pace)?
            }
            _ => None,
        },
    };
    if let Some(state) = state {
        looked.state = state;
    }
    Ok(())
}

fn plan(spec: &Spec, assignment: Assignment, found_by: String) -> State {
    State::Holds(Plan {
        spec: spec.clone(),
        assignment,
        priorities: None,
        found_by,
    })
}

/// Slices by other fits than the first.
fn slices(asked: &Asked<'_>, spec: &Spec, searched: &mut Searched) -> Result<Option<State>> {
    for fit in [Fit::Best, Fit::Worst, Fit::Next] {
        let limits = Limits {
            slices: Some(fit),
            ..Limits::default()
        };
        searched.placements += 1;
        if let Sought::Holds(assignment) = asked.sought(spec, limits)? {
            return Ok(Some(plan(spec, assignment, format!("slices by {fit}"))));
        }
    }
    Ok(None)
}

/// Other placements of a policy that packs tasks.
fn placements(
    asked: &Asked<'_>,
    spec: &Spec,
    state: &State,
    effort: &Effort,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Result<Option<State>> {
    // Given priorities are looked up in the order of the set.
    let ordered = by_own_priorities(asked, spec)?;
    let set = ordered.as_ref().map_or(asked.set, |o| &o.set);
    let here = asked.with_set(set);
    let places = Places::of(set, here.platform, spec, here.guarantee, &here.costs)?;
    let Some(mut places) = places.filter(|p| p.clusters().len() > 1) else {
        return Ok(None);
    };
    let known = match state {
        State::Holds(plan) => match &plan.assignment {
            Assignment::Clustered(c) => Some(Placement {
                place_of: match &ordered {
                    Some(ordered) => ordered.here(&c.cluster_of),
                    None => c.cluster_of.clone(),
                },
                found_by: plan.found_by.clone(),
            }),
            _ => None,
        },
        _ => None,
    };
    let found = placed(&mut places, set, known, effort, searched, pace);
    Ok(Some(match (found, state) {
        (Some(found), _) => {
            let place_of = match &ordered {
                Some(ordered) => ordered.restored(&found.place_of),
                None => found.place_of,
            };
            plan(spec, places.assignment(place_of), found.found_by)
        }
        (None, State::Fails(why)) => State::Fails(in_spite(why, searched)),
        (None, state) => state.clone(),
    }))
}

/// What breaks a policy, of which all placements were tried, or many.
fn in_spite(why: &str, searched: &Searched) -> String {
    let what = why.split("; another packing").next().unwrap_or(why);
    let what = what.replace(", by any of the heuristics", "");
    let what = what.replace(" by any of the heuristics", "");
    match searched.is_exact {
        true => format!("{what}; no other placement holds either"),
        false if searched.placements <= 1 => why.to_owned(),
        false => format!(
            "{what}; {} other packings fail too, another may hold",
            searched.placements
        ),
    }
}

/// A placement that holds: of single processors the one under which WCETs may grow most, as far as
/// that is found.
fn placed(
    places: &mut Places<'_>,
    set: &TaskSet,
    known: Option<Placement>,
    effort: &Effort,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Option<Placement> {
    let single = places.are_single();
    let effort = &effort.of(single);
    let mut found: Vec<Placement> = known.into_iter().collect();
    if !single && set.len() > MOST_IN_CLUSTERS {
        return found.into_iter().next();
    }
    if found.is_empty() || single {
        let ground = ByTests::of(places);
        for more in pack::all(&ground, set, searched) {
            if !found.iter().any(|p| p.place_of == more.place_of) {
                found.push(more);
            }
        }
    }
    if found.is_empty() {
        let ground = ByTests::of(places);
        found.extend(search(&ground, set, effort, searched, pace));
    }
    if !single {
        return found.into_iter().next();
    }
    grow::best(places, set, found, effort, searched, pace)
}

/// A placement by orders that learn, and then by exact search.
fn search(
    ground: &dyn Ground,
    set: &TaskSet,
    effort: &Effort,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Option<Placement> {
    let goes_on = || pace.goes_on();
    if let Some(found) = pack::learn(ground, set, effort.rounds, searched, &goes_on) {
        return Some(found);
    }
    let order = pack::heaviest_first(ground, set);
    match exact::search(ground, &order, effort.steps, searched, &goes_on) {
        Outcome::Found(place_of) => Some(Placement {
            place_of,
            found_by: BY_EXACT_SEARCH.to_owned(),
        }),
        Outcome::None { proven } => {
            searched.is_exact = proven;
            None
        }
        Outcome::Limit => None,
    }
}

/// How placements of exact search are told of.
pub(crate) const BY_EXACT_SEARCH: &str = "branch and bound over placements";

fn on_processors(
    asked: &Asked<'_>,
    spec: &Spec,
    effort: &Effort,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Result<State> {
    // With priorities of its own, as the plan will have, so that costs are charged as they will be.
    let set = asked.set.with_priorities(&vec![1; asked.set.len()])?;
    let here = asked.with_set(&set);
    let places = Places::of(&set, here.platform, spec, here.guarantee, &here.costs)?;
    let Some(places) = places else {
        return Ok(match here.sought(spec, Limits::default())? {
            Sought::NotJudged(why) | Sought::Refused(why) => State::NotJudged(why),
            Sought::Holds(_) => State::NotJudged("it places no tasks".to_owned()),
        });
    };
    let ground = ByOrder(ByTests::of(&places));
    let found = pack::all(&ground, &set, searched).into_iter().next();
    let found = found.or_else(|| search(&ground, &set, effort, searched, pace));
    let Some(found) = found else {
        let why = "no placement was found in which each processor has an order of priorities";
        return Ok(State::Fails(match searched.is_exact {
            true => "no placement has an order of priorities on each processor".to_owned(),
            false => why.to_owned(),
        }));
    };
    let mut orders = Vec::new();
    for place in 0..places.clusters().len() {
        let here = |task: &u32| found.place_of[*task as usize] == place as u32;
        let tasks: Vec<u32> = (0..set.len() as u32).filter(here).collect();
        orders.extend(priorities::audsley(&places, place, &tasks));
    }
    Ok(State::Holds(Plan {
        spec: spec.clone(),
        priorities: Some(priorities::of_orders(set.len(), &orders)),
        found_by: format!("{}; priorities by Audsley's order", found.found_by),
        assignment: places.assignment(found.place_of),
    }))
}

fn globally(
    asked: &Asked<'_>,
    spec: &Spec,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Result<State> {
    if let Sought::NotJudged(why) = asked.sought(spec, Limits::default())? {
        return Ok(State::NotJudged(why));
    }
    let Some((priorities, found_by)) = priorities::global(asked, spec, searched, pace)? else {
        return Ok(State::Fails(match searched.is_exact {
            true => format!(
                "no test shows it under any of the {} orders of priorities",
                searched.orders
            ),
            false => format!(
                "no test shows it under the {} orders of priorities that were tried",
                searched.orders
            ),
        }));
    };
    let set = asked.set.with_priorities(&priorities)?;
    let assignment = asked.with_set(&set).seek(spec)?;
    Ok(match assignment {
        Some(assignment) => State::Holds(Plan {
            spec: spec.clone(),
            assignment,
            priorities: Some(priorities),
            found_by,
        }),
        None => State::Fails("no test shows it under these priorities".to_owned()),
    })
}

/// A set in the order of its own priorities, for a policy that takes them.
struct Own {
    set: TaskSet,
    order: Vec<model::TaskId>,
}

fn by_own_priorities(asked: &Asked<'_>, spec: &Spec) -> Result<Option<Own>> {
    use policy::catalog::{Order, Priority};
    if spec.order()? != Order::Fixed(Priority::Given) || !asked.set.has_priorities() {
        return Ok(None);
    }
    let order = asked.set.by_priority();
    let set = asked.set.reordered(&order)?;
    Ok(Some(Own { set, order }))
}

impl Own {
    /// By task of the set in order, its place.
    fn here(&self, place_of: &[u32]) -> Vec<u32> {
        self.order.iter().map(|id| place_of[id.index()]).collect()
    }

    /// By task of the set as it was, its place.
    fn restored(&self, place_of: &[u32]) -> Vec<u32> {
        let mut restored = vec![0; place_of.len()];
        for (id, place) in self.order.iter().zip(place_of) {
            restored[id.index()] = *place;
        }
        restored
    }
}
