//! Whether a claim by a rule of more than one delay, or of tasks in parts, is true: the assignment that it states is
//! charged anew, by the accounting of this crate, and each place tested with what is stated.

use analyze::overheads::{self, CacheCharge, CacheDelays, Overheads, Precedence, System};
use analyze::uniprocessor::edf;
use analyze::uniprocessor::fixed_priority::Priority;
use analyze::{Guarantee, pd2};
use model::assignment::{Clustered, Quanta, Serve, Slice, Slices, Slots, Timetable, Turn, Turns};
use model::{Assignment, CpuId, CpuSet, Duration, Platform, Timing};
use num_rational::BigRational;
use serde_json::Value;

/// The accounting rounds up to nanoseconds a few times, the verifiers not at all.
pub const ROUNDING: u64 = 3;

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn time(value: &Value) -> Duration {
    Duration::from_nanos(value.as_u64().unwrap_or(0))
}

fn index(value: &Value) -> usize {
    value.as_u64().expect("a whole number") as usize
}

fn fraction(value: &Value) -> BigRational {
    match value.as_str() {
        Some(text) => text.parse().expect("a fraction"),
        None => BigRational::from_integer(value.as_u64().expect("a number").into()),
    }
}

/// Does the policy run tasks in slices, in turns or in quanta? Its assignments are judged as they
/// are: heuristics find only some of them.
pub fn is_split(claim: &Value) -> bool {
    let policy = claim["policy"].as_str().expect("a policy");
    ["edf-wm", "edf-fm", "pd2"].contains(&policy.split(':').next().expect("a first part"))
}

/// A claim of yes, and what it is about.
pub struct Claim<'a> {
    pub document: &'a Value,
    pub claim: &'a Value,
    /// The tasks, with WCETs at the margin.
    pub tasks: &'a [Timing],
    /// Have some blocking or jitter?
    pub is_unordered: bool,
    pub guarantee: Guarantee,
}

impl Claim<'_> {
    /// Is each place charged what it has to be, and does it hold that?
    pub fn is_true(&self, holds: impl Fn(&Value, &[Timing]) -> bool) -> bool {
        let policy = self.claim["policy"].as_str().expect("a policy");
        let base = policy.split(':').next().expect("a first part");
        let places = list(&self.claim["places"]);
        match base {
            "nps-f" | "c-nps-f" => return places.iter().all(|place| self.is_served(place)),
            "pd2" => return self.is_in_quanta(&places[0]),
            _ => {}
        }
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        if matches!(policy, "p-fp" | "g-fp") {
            // Larger ones first, those without one last; the order of the set for the rest.
            order.sort_by_key(|task| {
                let own = &self.document["tasks"][*task]["priority"];
                std::cmp::Reverse(own.as_u64())
            });
        }
        let assignment = match base {
            "edf-wm" => self.slices(places),
            "edf-fm" => self.turns(places),
            _ => self.clusters(places, &order),
        };
        let charged = self.charged(&order, &assignment);
        let is_enough = |piece: &overheads::Piece| {
            let here = &charged.places[piece.place as usize].processors;
            let is_there = |place: &&Value| self.cpus(place).iter().all(|c| here.contains(*c));
            let place = places.iter().find(is_there).expect("a place");
            let at = list(&place["tasks"]).iter();
            let task = order[piece.task.index()];
            let at = at.clone().position(|t| index(t) == task);
            let stated = time(&place["inflated_ns"][at.expect("the task")]).nanos();
            stated.saturating_add(ROUNDING) >= piece.timing.wcet.nanos()
        };
        let is_held = |place: &Value| {
            let tasks = self.stated(place);
            match base {
                "edf-wm" => edf::decide(&tasks) == Ok(true),
                "edf-fm" => is_bounded(place, &tasks),
                _ => holds(place, &tasks),
            }
        };
        let is_whole = |task: usize| {
            let Assignment::Slices(slices) = &assignment else {
                return true;
            };
            let (t, slices) = (&self.tasks[task], &slices.tasks[task]);
            let sum =
                |of: fn(&Slice) -> Duration| slices.iter().map(|s| of(s).nanos()).sum::<u64>();
            let delay = time(&self.claim["costs"]["delay_ns"]).nanos();
            let end = match slices.len() {
                1 => t.deadline,
                _ => t.deadline.min(t.period),
            };
            sum(|s| s.budget) >= t.wcet.nanos() + delay && sum(|s| s.window) <= end.nanos()
        };
        (0..self.tasks.len()).all(is_whole)
            && charged.pieces.iter().all(is_enough)
            && places.iter().all(is_held)
    }

    /// The processors of a place, by their positions in the document.
    fn cpus(&self, place: &Value) -> Vec<CpuId> {
        let known = list(&self.document["processors"]);
        let at = |cpu: &Value| known.iter().position(|k| k == cpu).expect("a processor") as u32;
        list(&place["processors"])
            .iter()
            .map(|cpu| CpuId(at(cpu)))
            .collect()
    }

    /// Its tasks as they are stated there.
    fn stated(&self, place: &Value) -> Vec<Timing> {
        let both = list(&place["tasks"])
            .iter()
            .zip(list(&place["inflated_ns"]));
        let with = |(at, (id, wcet)): (usize, (&Value, &Value))| {
            let given = self.tasks[index(id)];
            let window = list(&place["windows_ns"])
                .get(at)
                .map_or(given.deadline, time);
            Timing {
                wcet: time(wcet),
                deadline: window,
                ..given
            }
        };
        both.enumerate().map(with).collect()
    }

    /// What some of the tasks are charged in an assignment of theirs.
    fn charged(&self, ids: &[usize], assignment: &Assignment) -> overheads::Accounted {
        self.with_system(ids, |tasks, system| {
            overheads::account(tasks, assignment, system)
        })
    }

    fn with_system<T>(&self, ids: &[usize], ask: impl Fn(&[Timing], &System<'_>) -> T) -> T {
        let costs = &self.claim["costs"];
        let platform = Platform::symmetric(list(&self.document["processors"]).len() as u32);
        let column = |way: &str| {
            list(&costs["ways"])
                .iter()
                .position(|w| w.as_str() == Some(way))
        };
        let delays = CacheDelays::of(&platform, ids.len(), |task, way| {
            let row = &costs["delays_ns"][ids[task.index()]];
            Ok(column(&way.to_string()).map_or(Duration::ZERO, |at| time(&row[at])))
        });
        let fixed = match self.claim["policy"].as_str().expect("a policy") {
            "p-rm" | "p-fp:rm" | "g-fp:rm" => Some(Priority::RateMonotonic),
            "p-fp:dm" | "g-fp:dm" => Some(Priority::DeadlineMonotonic),
            "p-fp" | "g-fp" => Some(Priority::Given),
            _ => None,
        };
        let system = System {
            platform: &platform,
            overheads: &Overheads {
                release: time(&costs["release_ns"]),
                scheduling: time(&costs["scheduling_ns"]),
                context_switch: time(&costs["context_switch_ns"]),
                ipi_latency: time(&costs["ipi_latency_ns"]),
                timer_transfer: time(&costs["timer_transfer_ns"]),
                tick: time(&costs["tick_ns"]),
                tick_period: time(&costs["tick_period_ns"]),
            },
            delays: &delays.expect("delays"),
            guarantee: self.guarantee,
            charge: match (self.document["rule"].as_str().expect("a rule"), fixed) {
                ("one-delay", _) => CacheCharge::OneDelay(time(&costs["delay_ns"])),
                ("all-overheads", _) => CacheCharge::Twice,
                ("paper", _) => CacheCharge::Paper,
                _ if self.is_unordered => CacheCharge::ByPiece(Precedence::Any),
                _ if self.claim["policy"] == "g-fifo" => CacheCharge::ByPiece(Precedence::Releases),
                (_, Some(priority)) => CacheCharge::ByPiece(Precedence::Fixed(priority)),
                (_, None) => CacheCharge::ByPiece(Precedence::Edf),
            },
        };
        let tasks: Vec<Timing> = ids.iter().map(|id| self.tasks[*id]).collect();
        ask(&tasks, &system)
    }

    /// Of tasks in this order.
    fn clusters(&self, places: &[Value], order: &[usize]) -> Assignment {
        let of = |task: usize| {
            let has = |place: &Value| list(&place["tasks"]).iter().any(|t| index(t) == task);
            places.iter().position(has).expect("a place of the task") as u32
        };
        Assignment::Clustered(Clustered {
            clusters: places
                .iter()
                .map(|p| self.cpus(p).into_iter().collect())
                .collect(),
            cluster_of: order.iter().copied().map(of).collect(),
        })
    }

    /// The places that have a task, each with its position there.
    fn places_of(places: &[Value], task: usize) -> Vec<(&Value, usize)> {
        let at = |place: &Value| list(&place["tasks"]).iter().position(|t| index(t) == task);
        places
            .iter()
            .filter_map(|place| Some((place, at(place)?)))
            .collect()
    }

    fn slices(&self, places: &[Value]) -> Assignment {
        let of = |task: usize| {
            let mut here = Self::places_of(places, task);
            here.sort_by_key(|(place, at)| index(&place["slices"][*at]));
            let slice = |(place, at): (&Value, usize)| Slice {
                cpu: self.cpus(place)[0],
                budget: time(&place["budgets_ns"][at]),
                window: time(&place["windows_ns"][at]),
            };
            here.into_iter().map(slice).collect()
        };
        Assignment::Slices(Slices {
            cpus: places.iter().flat_map(|place| self.cpus(place)).collect(),
            tasks: (0..self.tasks.len()).map(of).collect(),
        })
    }

    fn turns(&self, places: &[Value]) -> Assignment {
        let of = |task: usize| {
            let here = Self::places_of(places, task);
            let part = fraction(&here[0].0["parts"][here[0].1]);
            let whole = |n: &num_bigint::BigInt| u64::try_from(n).expect("a part of some jobs");
            Turn {
                first: self.cpus(here[0].0)[0],
                second: self.cpus(here[here.len() - 1].0)[0],
                part: whole(part.numer()),
                whole: whole(part.denom()),
            }
        };
        Assignment::Turns(Turns {
            cpus: places.iter().flat_map(|place| self.cpus(place)).collect(),
            tasks: (0..self.tasks.len()).map(of).collect(),
        })
    }

    fn is_served(&self, place: &Value) -> bool {
        let ids: Vec<usize> = list(&place["tasks"]).iter().map(index).collect();
        let proof = &place["proof"];
        let turns = list(&proof["turns"]);
        let table = |cpu: &Value| {
            let own = turns.iter().filter(|turn| turn["cpu"] == *cpu);
            let serve = |turn: &Value| Serve {
                start: time(&turn["from_ns"]),
                end: time(&turn["until_ns"]),
                server: index(&turn["server"]) as u32,
            };
            let alone = serde_json::json!({ "processors": [cpu] });
            Timetable {
                cpu: self.cpus(&alone)[0],
                turns: own.map(serve).collect(),
            }
        };
        let slots = Assignment::Slots(Slots {
            slot: time(&proof["slot_ns"]),
            server_of: list(&proof["servers"])
                .iter()
                .map(|s| index(s) as u32)
                .collect(),
            timetables: list(&place["processors"]).iter().map(table).collect(),
        });
        let are_apart = turns.iter().enumerate().all(|(at, a)| {
            turns[..at].iter().all(|b| {
                let differ = a["server"] != b["server"] && a["cpu"] != b["cpu"];
                differ
                    || time(&a["until_ns"]) <= time(&b["from_ns"])
                    || time(&b["until_ns"]) <= time(&a["from_ns"])
            })
        });
        let slot = time(&proof["slot_ns"]);
        let are_inside = turns.iter().all(|turn| time(&turn["until_ns"]) <= slot);
        let holds = |tasks: &[Timing], system: &System<'_>| overheads::holds(tasks, &slots, system);
        are_apart && are_inside && self.with_system(&ids, holds)
    }

    fn is_in_quanta(&self, place: &Value) -> bool {
        let quantum = Duration::from_millis(1);
        let tasks = self.stated(place);
        let assignment = Assignment::Quanta(Quanta {
            cpus: self.cpus(place).into_iter().collect::<CpuSet>(),
            quantum,
            reserved: tasks.iter().map(|t| t.wcet).collect(),
        });
        let all: Vec<usize> = (0..tasks.len()).collect();
        let shorter = |t: &Timing| Timing {
            wcet: t.wcet.saturating_sub(Duration::from_nanos(ROUNDING)),
            ..*t
        };
        let shorter: Vec<Timing> = self.tasks.iter().map(shorter).collect();
        let rounded = Claim {
            tasks: &shorter,
            ..*self
        };
        let charged = rounded.charged(&all, &assignment);
        let is_enough = |(t, needed): (&Timing, &Timing)| {
            let quanta = needed.wcet.nanos().div_ceil(quantum.nanos());
            t.wcet.nanos() >= quanta.saturating_mul(quantum.nanos())
        };
        let m = list(&self.document["processors"]).len() as u32;
        tasks.iter().zip(&charged.inflated).all(is_enough)
            && pd2::is_schedulable_with(&tasks, m, quantum) == Ok(true)
    }
}

/// Σ of the parts, and of all of the tasks that run elsewhere, too.
fn is_bounded(place: &Value, tasks: &[Timing]) -> bool {
    let one = BigRational::from_integer(1.into());
    let parts: Vec<BigRational> = list(&place["parts"]).iter().map(fraction).collect();
    let whole = |t: &Timing| BigRational::new(t.wcet.nanos().into(), t.period.nanos().into());
    let both = || tasks.iter().zip(&parts);
    let all: BigRational = both().map(|(t, part)| whole(t) * part).sum();
    let first: BigRational = both()
        .filter(|(_, p)| **p < one)
        .map(|(t, _)| whole(t))
        .sum();
    all <= one && first <= one
}
