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

/// How placements that `check` makes are told of.
const BY_CHECK: &str = "as `check` places the tasks";

/// Looks for a plan under a candidate.
///
/// # Errors
/// As [`analyze::policies::judge`].
pub(crate) fn consider(
    asked: &Asked<'_>,
    candidate: Candidate,
    effort: &Effort,
    pace: &Pace<'_>,
) -> Result<Looked> {
    let mut searched = Searched::default();
    let state = match &candidate {
        Candidate::Policy(spec) => policy(asked, spec, effort, &mut searched, pace)?,
        Candidate::PrioritiesOnProcessors(spec) => {
            on_processors(asked, spec, effort, &mut searched, pace)?
        }
        Candidate::GlobalPriorities(spec) => globally(asked, spec, &mut searched, pace)?,
    };
    Ok(Looked {
        candidate,
        state,
        searched,
    })
}

fn policy(
    asked: &Asked<'_>,
    spec: &Spec,
    effort: &Effort,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Result<State> {
    searched.placements += 1;
    let (first, why) = match asked.sought(spec, Limits::default())? {
        Sought::NotJudged(why) => return Ok(State::NotJudged(why)),
        Sought::Holds(assignment) => (Some(assignment), String::new()),
        Sought::Refused(why) => (None, why),
    };
    let plan = |assignment: Assignment, found_by: String| {
        State::Holds(Plan {
            spec: spec.clone(),
            assignment,
            priorities: None,
            found_by,
        })
    };
    match spec.needs()? {
        Needs::Slices { .. } if first.is_none() => {
            for fit in [Fit::Best, Fit::Worst, Fit::Next] {
                let limits = Limits {
                    slices: Some(fit),
                    ..Limits::default()
                };
                searched.placements += 1;
                if let Sought::Holds(assignment) = asked.sought(spec, limits)? {
                    return Ok(plan(assignment, format!("slices by {fit}")));
                }
            }
        }
        Needs::Clusters(_) => {
            // Given priorities are looked up in the order of the set.
            let ordered = by_own_priorities(asked, spec)?;
            let set = ordered.as_ref().map_or(asked.set, |o| &o.set);
            let here = asked.with_set(set);
            let (platform, guarantee) = (here.platform, here.guarantee);
            let places = Places::of(set, platform, spec, guarantee, &here.costs)?;
            let Some(mut places) = places.filter(|p| p.clusters().len() > 1) else {
                return Ok(match first {
                    Some(assignment) => plan(assignment, BY_CHECK.to_owned()),
                    None => State::Fails(why),
                });
            };
            let known = first.as_ref().and_then(|a| match a {
                Assignment::Clustered(c) => Some(Placement {
                    place_of: ordered
                        .as_ref()
                        .map_or_else(|| c.cluster_of.clone(), |o| o.here(&c.cluster_of)),
                    found_by: BY_CHECK.to_owned(),
                }),
                _ => None,
            });
            let found = placed(&mut places, set, known, effort, searched, pace);
            return Ok(match found {
                Some(found) => {
                    let place_of = match &ordered {
                        Some(ordered) => ordered.restored(&found.place_of),
                        None => found.place_of,
                    };
                    plan(places.assignment(place_of), found.found_by)
                }
                None => State::Fails(in_spite(&why, searched)),
            });
        }
        _ => {}
    }
    Ok(match first {
        Some(assignment) => plan(assignment, BY_CHECK.to_owned()),
        None => State::Fails(why),
    })
}

/// What breaks a policy, of which all placements were tried, or many.
fn in_spite(why: &str, searched: &Searched) -> String {
    let what = why.split("; another packing").next().unwrap_or(why);
    let what = what.replace(", by any of the heuristics", "");
    let what = what.replace(" by any of the heuristics", "");
    match searched.is_exact {
        true => format!("{what}; no other placement holds either"),
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
    let mut found: Vec<Placement> = known.into_iter().collect();
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
