//! Of placements on single processors the one under which WCETs may grow most.
//!
//! Tests of single processors are sustainable, so that bisection finds how far one placement holds.
//! Then exact search looks for one that holds with more, by bisection again: where each of its
//! searches ends, no placement bears more.

use crate::consider::BY_EXACT_SEARCH;
use crate::exact::{self, Outcome};
use crate::ground::ByTests;
use crate::pack::{self, Placement};
use crate::{Effort, Pace, Searched};
use analyze::policies::Places;
use model::TaskSet;

/// Thousandths of the WCETs as they are.
pub(crate) const WHOLE: u64 = 1_000;

/// No WCET grows beyond this.
const CEILING: u64 = 1_000 * WHOLE;

/// The placement that bears the largest growth, of those that are given and those that exact search
/// finds; `None`: none is given.
pub(crate) fn best(
    places: &mut Places<'_>,
    set: &TaskSet,
    found: Vec<Placement>,
    effort: &Effort,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Option<Placement> {
    let ceiling = ceiling(places, set);
    let mut best: Option<(u64, Placement)> = None;
    for placement in found {
        // One that holds no further than the best is not measured.
        let from = best.as_ref().map_or(WHOLE, |(growth, _)| growth + 1);
        if !holds(places, &placement.place_of, from, searched) {
            if best.is_none() {
                // Found with the WCETs as they are.
                best = Some((WHOLE, placement));
            }
            continue;
        }
        let growth = reach(places, &placement.place_of, (from, ceiling), searched);
        best = Some((growth, placement));
        if !pace.goes_on() {
            break;
        }
    }
    let (mut growth, mut placement) = best?;
    let mut proven = true;
    // What may be found at most.
    let mut high = ceiling;
    while growth < high {
        if !pace.goes_on() {
            proven = false;
            break;
        }
        let middle = growth + (high - growth).div_ceil(2);
        places.grow(middle);
        let outcome = {
            let ground = ByTests::of(places);
            let order = pack::heaviest_first(&ground, set);
            exact::search(&ground, &order, effort.steps / 8, searched, &|| {
                pace.goes_on()
            })
        };
        match outcome {
            Outcome::Found(place_of) => {
                growth = reach(places, &place_of, (middle, high), searched);
                placement = Placement {
                    place_of,
                    found_by: BY_EXACT_SEARCH.to_owned(),
                };
            }
            Outcome::None { .. } => high = middle - 1,
            Outcome::Limit => {
                proven = false;
                high = middle - 1;
            }
        }
    }
    places.grow(WHOLE);
    searched.is_exact = proven;
    Some(placement)
}

/// Beyond this growth a job alone is too long, or all tasks ask for more than there is.
fn ceiling(places: &mut Places<'_>, set: &TaskSet) -> u64 {
    places.grow(WHOLE);
    let room = |t: &model::Timing| {
        let most = u128::from(t.deadline.max(t.period).nanos()) * u128::from(WHOLE);
        u64::try_from(most / u128::from(t.wcet.nanos().max(1))).unwrap_or(CEILING)
    };
    let by_task = set.timings().iter().map(room).min().unwrap_or(WHOLE);
    let m: usize = places.clusters().iter().map(|c| c.len()).sum();
    let by_all = (m as f64 / set.utilization_f64().max(1e-9) * WHOLE as f64).ceil() as u64;
    by_task.min(by_all.saturating_add(1)).clamp(WHOLE, CEILING)
}

/// The largest growth in a range at whose begin a placement holds.
fn reach(
    places: &mut Places<'_>,
    place_of: &[u32],
    (mut low, mut high): (u64, u64),
    searched: &mut Searched,
) -> u64 {
    high = high.max(low);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match holds(places, place_of, middle, searched) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    low
}

/// Does a placement hold with WCETs in these thousandths?
fn holds(
    places: &mut Places<'_>,
    place_of: &[u32],
    thousandths: u64,
    searched: &mut Searched,
) -> bool {
    places.grow(thousandths);
    let count = places.clusters().len();
    let mut inside: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (task, place) in place_of.iter().enumerate() {
        inside[*place as usize].push(task as u32);
    }
    inside.iter().enumerate().all(|(place, tasks)| {
        searched.tests += 1;
        places.holds(place, tasks)
    })
}
