//! What 002 §5.1 and 003 §4.2 say about overheads, held against what was measured here. The papers
//! measured other machines and one kernel; figures of both stand side by side.

use super::curve::Point;
use super::results::{Found, Utilization};
use super::tiles::Cost;
use model::{Code, OverheadKind};
use serde::Serialize;

/// Does a statement hold here?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// This was not measured, or this machine has no such thing.
    CannotTell,
}

impl Holds {
    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            Holds::Yes => "holds",
            Holds::No => "does not hold",
            Holds::CannotTell => "cannot tell here",
        }
    }
}

/// A statement of a paper, and what was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Statement {
    /// Its name.
    pub id: &'static str,
    /// What the paper says, with its figures and its machine.
    pub says: &'static str,
    /// Where.
    pub source: &'static str,
    /// By which rule it is decided here.
    pub rule: &'static str,
    /// What was found here.
    pub here: String,
    /// Does it hold?
    pub holds: Holds,
}

/// "Far above": at least so many times as much.
const FAR: f64 = 2.0;
/// "Within 5 to 10 µs", in nanoseconds.
const WITHIN: u64 = 10_000;
/// "Similar": at most so many times as much.
const SIMILAR: f64 = 1.5;
/// "Not significantly larger": 12.2 µs against 9.8 µs were not.
const COMPARABLE: f64 = 1.25;

/// All statements, about these curves.
pub fn all(found: &[Found]) -> Vec<Statement> {
    let seen = Seen(found);
    let mut all = vec![
        seen.far_above(
            "g-edf-scheduling",
            OverheadKind::Scheduling,
            "G-EDF's scheduling overhead is far above that of P-EDF: up to 200 µs against less \
             than 30 µs on 24 processors",
            "002 §5.1.1, Fig. 5.2 (a)",
        ),
        seen.far_above(
            "g-edf-release",
            OverheadKind::Release,
            "G-EDF's release overhead is remarkably higher than P-EDF's on 24 processors",
            "002 §5.1.1, Fig. 5.2 (b)",
        ),
    ];
    for (id, kind, source) in [
        (
            "semi-scheduling",
            OverheadKind::Scheduling,
            "002 §5.1.2, Fig. 5.3 (a)",
        ),
        (
            "semi-release",
            OverheadKind::Release,
            "002 §5.1.2, Fig. 5.3 (b)",
        ),
    ] {
        all.push(seen.semi_partitioned(id, kind, source));
    }
    all.push(seen.clustered());
    all.push(seen.medium());
    all.push(seen.cache_aware());
    all
}

struct Seen<'a>(&'a [Found]);

impl<'a> Seen<'a> {
    /// The points of a policy whose word begins so: light sets, all the code that is known.
    fn points(&self, policy: &str, kind: OverheadKind, utilization: Utilization) -> Vec<&'a Point> {
        let of = |code: Code| {
            self.0.iter().filter(move |f| {
                let name = f.policy.split(':').next().unwrap_or_default();
                name == policy
                    && f.cost == Cost::Overhead(kind)
                    && f.code == code
                    && f.utilization == utilization
            })
        };
        let is_known = of(Code::Both).next().is_some();
        let code = if is_known { Code::Both } else { Code::Own };
        of(code).flat_map(|f| &f.curve.points).collect()
    }

    /// Pairs of points of two policies with equally many tasks, ascending.
    fn pairs(&self, one: &str, other: &str, kind: OverheadKind) -> Vec<(&'a Point, &'a Point)> {
        let light = Utilization::Light;
        let (ones, others) = (
            self.points(one, kind, light),
            self.points(other, kind, light),
        );
        let mut pairs: Vec<_> = ones
            .into_iter()
            .filter_map(|a| Some((a, *others.iter().find(|b| b.tasks == a.tasks)?)))
            .collect();
        pairs.sort_by_key(|(a, _)| a.tasks);
        pairs
    }

    fn far_above(
        &self,
        id: &'static str,
        kind: OverheadKind,
        says: &'static str,
        source: &'static str,
    ) -> Statement {
        let last = self.pairs("g-edf", "p-edf", kind).pop();
        let (here, holds) = match last {
            None => not_measured("g-edf and p-edf"),
            Some((global, parted)) => {
                let ratio = global.maximum_ns as f64 / parted.maximum_ns.max(1) as f64;
                let here = format!(
                    "with {} tasks at most {} under g-edf and {} under p-edf: {ratio:.1} times",
                    global.tasks,
                    micros(global.maximum_ns),
                    micros(parted.maximum_ns)
                );
                (here, holds(ratio >= FAR))
            }
        };
        Statement {
            id,
            says,
            source,
            rule: "the largest without outliers, at the most tasks that both ran with: at least \
                   twice as much",
            here,
            holds,
        }
    }

    fn semi_partitioned(
        &self,
        id: &'static str,
        kind: OverheadKind,
        source: &'static str,
    ) -> Statement {
        let mut worst: Option<(u64, &str, u32)> = None;
        for policy in ["edf-fm", "edf-wm", "nps-f", "c-nps-f"] {
            for (semi, parted) in self.pairs(policy, "p-edf", kind) {
                let above = semi.maximum_ns.saturating_sub(parted.maximum_ns);
                if worst.is_none_or(|(most, ..)| above > most) {
                    worst = Some((above, policy, semi.tasks));
                }
            }
        }
        let (here, holds) = match worst {
            None => not_measured("p-edf and a semi-partitioned policy"),
            Some((above, policy, tasks)) => {
                let here = match above {
                    0 => "at no number of tasks above p-edf".to_owned(),
                    _ => format!(
                        "at most {} above p-edf: {policy} with {tasks} tasks",
                        micros(above)
                    ),
                };
                (here, holds(above <= WITHIN))
            }
        };
        Statement {
            id,
            says: "overheads of semi-partitioned policies are low: within 5 to 10 µs from P-EDF on \
                   24 processors",
            source,
            rule: "the largest without outliers, at every number of tasks: at most 10 µs more",
            here,
            holds,
        }
    }

    fn clustered(&self) -> Statement {
        let kind = OverheadKind::Release;
        let others = ["p-edf", "edf-fm", "edf-wm", "nps-f", "c-nps-f"];
        let least = others.iter().filter_map(|other| {
            let (clustered, other_point) = self.pairs("c-edf", other, kind).pop()?;
            Some((clustered, other_point, other))
        });
        let (here, holds) = match least.max_by_key(|(_, point, _)| point.maximum_ns) {
            None => (
                "c-edf and another policy were not both measured: it needs clusters of several \
                 processors that are not all"
                    .to_owned(),
                Holds::CannotTell,
            ),
            Some((clustered, point, other)) => {
                let here = format!(
                    "with {} tasks at most {} under c-edf, and {} under {other}",
                    clustered.tasks,
                    micros(clustered.maximum_ns),
                    micros(point.maximum_ns)
                );
                (here, holds(clustered.maximum_ns > point.maximum_ns))
            }
        };
        Statement {
            id: "c-edf-release",
            says: "C-EDF's release overhead is above P-EDF's and those of all semi-partitioned \
                   policies on 24 processors",
            source: "002 §5.1.2, Fig. 5.3 (b)",
            rule: "the largest without outliers, at the most tasks",
            here,
            holds,
        }
    }

    fn medium(&self) -> Statement {
        let mut policies: Vec<&str> = self.0.iter().map(|f| f.policy.as_str()).collect();
        policies.dedup();
        let mut most: Option<(f64, String)> = None;
        for policy in policies {
            let policy = policy.split(':').next().unwrap_or_default();
            for kind in OverheadKind::ALL {
                let light = self.points(policy, kind, Utilization::Light);
                for medium in self.points(policy, kind, Utilization::Medium) {
                    let Some(light) = light.iter().find(|p| p.tasks == medium.tasks) else {
                        continue;
                    };
                    let (a, b) = (light.average_ns.max(1), medium.average_ns.max(1));
                    let ratio = a.max(b) as f64 / a.min(b) as f64;
                    if most.as_ref().is_none_or(|(largest, _)| ratio > *largest) {
                        let what = format!(
                            "{} under {policy} with {} tasks: {} light, {} medium on average",
                            kind.words(),
                            medium.tasks,
                            micros(a),
                            micros(b)
                        );
                        most = Some((ratio, what));
                    }
                }
            }
        }
        let (here, holds) = match most {
            None => {
                not_measured("sets of light and of medium utilizations with equally many tasks")
            }
            Some((ratio, what)) => (
                format!("they differ most, {ratio:.1} times, in {what}"),
                holds(ratio <= SIMILAR),
            ),
        };
        Statement {
            id: "medium",
            says: "task sets with medium utilizations yield similar overheads as those with light \
                   ones",
            source: "002 §5.1.1",
            rule: "averages without outliers, at every number of tasks that both ran with: the \
                   larger at most 1.5 times the smaller",
            here,
            holds,
        }
    }

    fn cache_aware(&self) -> Statement {
        use OverheadKind::{ContextSwitch, Release, Scheduling, Tick};
        let mut sums = (0, 0);
        let mut tasks = None;
        for kind in [Tick, Scheduling, ContextSwitch, Release] {
            if let Some((aware, global)) = self.pairs("ca-edf", "g-edf", kind).pop() {
                sums.0 += aware.average_ns;
                sums.1 += global.average_ns;
                tasks = Some(aware.tasks);
            }
        }
        let (here, holds) = match tasks {
            None => not_measured("ca-edf and g-edf"),
            Some(tasks) => {
                let here = format!(
                    "with {tasks} tasks {} under ca-edf and {} under g-edf on average",
                    micros(sums.0),
                    micros(sums.1)
                );
                (here, holds(sums.0 as f64 <= COMPARABLE * sums.1 as f64))
            }
        };
        Statement {
            id: "ca-edf-combined",
            says: "the cache-aware scheduler's combined overheads are not significantly larger than \
                   G-EDF's: tick, scheduling, context switch and release take 12.2 µs against \
                   9.8 µs on average, on 8 processors",
            source: "003 §4.2, Table 2",
            rule: "the sum of the averages without outliers, at the most tasks: at most 1.25 times, \
                   as in the table",
            here,
            holds,
        }
    }
}

fn holds(it_does: bool) -> Holds {
    match it_does {
        true => Holds::Yes,
        false => Holds::No,
    }
}

fn not_measured(what: &str) -> (String, Holds) {
    (format!("{what} were not both measured"), Holds::CannotTell)
}

/// For sentences: `12.3 µs`.
fn micros(nanos: u64) -> String {
    format!("{:.1} µs", nanos as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::super::curve::{Curve, Size};
    use super::*;

    fn found(policy: &str, kind: OverheadKind, utilization: Utilization, ns: u32) -> Found {
        let curve = Curve::of(&[Size {
            tasks: 8,
            sets: vec![vec![ns; 100]],
        }]);
        Found {
            policy: policy.to_owned(),
            utilization,
            scaled: false,
            cost: Cost::Overhead(kind),
            code: Code::Both,
            seen: 100,
            max_ns: u64::from(ns),
            added: None,
            processors: Vec::new(),
            curve,
        }
    }
    fn verdict(found: &[Found], id: &str) -> Holds {
        all(found).into_iter().find(|s| s.id == id).unwrap().holds
    }

    #[test]
    fn statements_are_decided_by_their_rules() {
        use OverheadKind::{Release, Scheduling};
        use Utilization::{Light, Medium};
        let mut of = vec![
            found("p-edf", Scheduling, Light, 10_000),
            found("g-edf", Scheduling, Light, 20_000),
            found("p-edf", Release, Light, 10_000),
            found("g-edf", Release, Light, 19_000),
            found("edf-wm", Release, Light, 20_000),
            found("c-edf:l2", Release, Light, 20_001),
            found("p-edf", Release, Medium, 14_000),
        ];
        assert_eq!(verdict(&of, "g-edf-scheduling"), Holds::Yes);
        assert_eq!(verdict(&of, "g-edf-release"), Holds::No);
        assert_eq!(verdict(&of, "semi-release"), Holds::Yes);
        assert_eq!(verdict(&of, "semi-scheduling"), Holds::CannotTell);
        assert_eq!(verdict(&of, "c-edf-release"), Holds::Yes);
        assert_eq!(verdict(&of, "medium"), Holds::Yes);
        of.push(found("edf-fm", Release, Light, 20_001));
        of.push(found("p-edf", Scheduling, Medium, 15_001));
        assert_eq!(verdict(&of, "semi-release"), Holds::No);
        assert_eq!(verdict(&of, "c-edf-release"), Holds::No);
        assert_eq!(verdict(&of, "medium"), Holds::No);
    }

    #[test]
    fn combined_overheads_are_sums_of_averages() {
        use OverheadKind::{ContextSwitch, Release, Scheduling};
        let light = Utilization::Light;
        let of = [
            found("g-edf", Release, light, 4_000),
            found("g-edf", Scheduling, light, 4_000),
            found("ca-edf", Release, light, 1_000),
            found("ca-edf", Scheduling, light, 9_000),
            // Nothing to compare it with.
            found("ca-edf", ContextSwitch, light, 50_000),
        ];
        assert_eq!(verdict(&of, "ca-edf-combined"), Holds::Yes);
        assert_eq!(verdict(&of[..3], "ca-edf-combined"), Holds::Yes);
        let dearer = found("ca-edf", Scheduling, light, 9_001);
        let of = [&of[..3], &[dearer]].concat();
        assert_eq!(verdict(&of, "ca-edf-combined"), Holds::No);
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        assert!(all(&[]).iter().all(|s| s.holds == Holds::CannotTell));
    }
}
