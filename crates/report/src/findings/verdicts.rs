//! What verdicts of policies say, in sentences.

use super::{LOADS, under};
use crate::cpmd::{curve, resumptions};
use crate::schedulability::{self, Crossing, Curve};
use crate::words::{capital, count, list, size, three, time, time_f64};
use model::{Delay, Duration, Profile, Resumption, Statistic};

/// What a policy answered for one task set.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// The policy for people: `P-EDF, worst-fit decreasing`.
    pub policy: String,
    /// Does the set pass? `None`: the test does not apply.
    pub passes: Option<bool>,
    /// Is it proven that it cannot?
    pub refuted: bool,
    /// Which test said so.
    pub test: String,
    /// Why it passes, or why not, in a sentence; may be empty.
    pub reason: String,
    /// Total utilization with the delays of this machine; `None` where it could not be inflated.
    pub inflated: Option<f64>,
    /// The largest delay of one preemption or migration at which the set still passes.
    pub largest_delay: Option<Duration>,
    /// By how much execution times may grow until that turns, or have to shrink: `+12.3 %`,
    /// `at least +5.0 %`.
    pub growth: Option<String>,
    /// What is lost to each overhead, in processors.
    pub lost: Vec<(String, f64)>,
    /// What each test or packing says, where more than one was asked; may be empty.
    pub asked: String,
}

/// Of more policies than these reasons are not told one by one.
const MANY: usize = 4;

/// Which policies keep a load, and why the others do not. `promise` is what passing means, as
/// `no deadline is missed`.
pub fn verdicts(
    verdicts: &[Verdict],
    utilization: f64,
    processors: u32,
    promise: &str,
) -> Vec<String> {
    if verdicts.is_empty() {
        return Vec::new();
    }
    let names = |wanted: Option<bool>| -> Vec<&str> {
        verdicts
            .iter()
            .filter(|v| v.passes == wanted)
            .map(|v| v.policy.as_str())
            .collect()
    };
    let (yes, no) = (names(Some(true)), names(Some(false)));
    let refuted = verdicts.iter().filter(|v| v.refuted).count();
    let set = format!(
        "The example has a total utilization of {} on {}",
        three(utilization),
        count(u64::from(processors), "processor")
    );
    let mut all = vec![match (yes.len(), no.len()) {
        (0, n) if n > 0 && refuted == n => {
            format!("{set}. Under none of the policies can it be that {promise}: that is proven.")
        }
        (0, _) => format!("{set}. Under none of the policies can it be shown that {promise}."),
        (_, 0) => format!(
            "{set}. Under every policy that applies, {promise}: {}.",
            list(&yes)
        ),
        _ => format!(
            "{set}. Under {}, {promise}; under {} that cannot be shown.",
            list(&yes),
            list(&no)
        ),
    }];
    // Of many policies the table tells.
    for v in verdicts
        .iter()
        .filter(|v| verdicts.len() <= MANY && v.passes != Some(true) && !v.reason.is_empty())
    {
        all.push(format!("{}: {}.", v.policy, v.reason.trim_end_matches('.')));
    }
    let robust = verdicts
        .iter()
        .filter(|v| v.passes == Some(true) && v.growth.is_none())
        .filter_map(|v| Some((v.largest_delay?, v)))
        .fold(
            None,
            |best: Option<(Duration, &Verdict)>, next| match best {
                Some(b) if b.0 >= next.0 => Some(b),
                _ => Some(next),
            },
        );
    if let Some((delay, v)) = robust {
        all.push(format!(
            "{} has the most room: it would pass even if every preemption or migration cost {}.",
            v.policy,
            time(Delay::from(delay))
        ));
    }
    all
}

/// Where global scheduling stops being the better choice.
fn crossing(crossing: &Crossing) -> String {
    format!(
        "Even if preemptions cost {} nothing, {} is the better choice as long as one of its preemptions or migrations costs \
         less than {}.",
        crossing.reference,
        crossing.falling,
        time_f64(crossing.at)
    )
}

/// From which working set on a machine's delays get there.
fn reached(crossing: &Crossing, profile: &Profile, place: &str) -> Option<String> {
    let reach: Vec<String> = LOADS
        .into_iter()
        .filter_map(|load| {
            let sizes = curve(profile, Resumption::Preemption, load)?;
            let from = sizes.points.iter().map(|p| p.wss).find(|wss| {
                resumptions(profile).iter().any(|kind| {
                    curve(profile, *kind, load)
                        .and_then(|c| c.at(*wss, Statistic::Average))
                        .is_some_and(|r| r.value.cost().nanos() as f64 >= crossing.at)
                })
            });
            Some(match (from, sizes.points.last()) {
                (Some(wss), _) => format!("from a working set of {} {}", size(wss), under(load)),
                (None, Some(last)) => {
                    format!("at no size up to {} {}", size(last.wss), under(load))
                }
                (None, None) => return None,
            })
        })
        .collect();
    (!reach.is_empty()).then(|| {
        format!(
            "On {place} the average delay reaches {} {}.",
            time_f64(crossing.at),
            list(&reach)
        )
    })
}

/// Whether global or partitioned scheduling is the better choice, and up to which delay (000 §5).
/// The curves are W(D); `place` names the machine of a profile.
pub fn global_or_partitioned(
    global: &Curve,
    partitioned: &Curve,
    profiles: &[&Profile],
    place: impl Fn(&str) -> String,
) -> Vec<String> {
    if let Some(found) = schedulability::crossing(global, partitioned) {
        let mut all = vec![crossing(&found)];
        all.extend(
            profiles
                .iter()
                .filter_map(|p| reached(&found, p, &place(&p.platform))),
        );
        return all;
    }
    let (Some(first), Some(level)) = (global.points.first(), partitioned.points.first()) else {
        return Vec::new();
    };
    let (g, p) = (&global.policy, &partitioned.policy);
    vec![if first.1 < level.1 {
        format!(
            "{p} is the better choice whatever the delay: it reaches {} without delay, {g} {}.",
            three(level.1),
            three(first.1)
        )
    } else {
        let last = global.points.last().map_or(0.0, |l| l.0);
        format!(
            "{g} stays the better choice for every delay up to {}, even if preemptions cost {p} nothing.",
            time_f64(last)
        )
    }]
}

/// Says that values were read beyond what was measured; `None` if none were.
pub fn extrapolated<T: AsRef<str>>(tasks: &[T]) -> Option<String> {
    (!tasks.is_empty()).then(|| {
        format!(
            "{} of {} lie{} outside of the sizes that were measured: the delays used for {} are extrapolated guesses.",
            capital(if tasks.len() == 1 { "the working set" } else { "the working sets" }),
            list(tasks),
            if tasks.len() == 1 { "s" } else { "" },
            if tasks.len() == 1 { "it" } else { "them" }
        )
    })
}
