//! Certificates of random sets: every one verifies, none that is made false does, and both
//! verifiers agree.
//!
//! `WARMSET_CERTIFICATE_SETS=100000` for more sets; one mutation a set, five of servers, turns and quanta.

mod charged;

use analyze::policies::{self, Accounting, Certificate, Costs};
use analyze::{Guarantee, overheads, registry};
use model::assignment::{Serve, Slots, Timetable};
use model::profile::{Intervals, OverheadCurve, OverheadKind, OverheadPoint};
use model::watch::Silent;
use model::{Assignment, Bytes, CpuId, Details, Duration, Platform, Profile, TaskSet, Timing};
use num_rational::BigRational;
use policy::Spec;
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use testing::random::Random;
use testing::{NotRun, Outcome};

const POLICIES: [&str; 12] = [
    "p-edf",
    "g-edf",
    "c-edf:size=2",
    "p-rm",
    "p-fp:dm",
    "p-fp",
    "g-fp:dm",
    "g-fp",
    "g-fp:rm",
    "g-fifo",
    "edf-wm",
    "edf-fm",
];

/// Policies for tasks with deadlines equal to periods, in whole milliseconds for the last.
const RESERVED: [&str; 4] = ["nps-f", "c-nps-f:size=2", "edf-fm", "pd2"];

/// What proves a yes; BAK very seldom proves what GFB does not.
const KINDS: [&str; 13] = [
    "DEMAND",
    "RESPONSES",
    "UTILIZATION",
    "GFB",
    "GDM-DENSITY",
    "BCLI",
    "RTA",
    "GFP-RTA",
    "LOAD",
    "FFDBF",
    "BAR",
    "PD2",
    "NPS-F",
];

fn sets() -> u64 {
    std::env::var("WARMSET_CERTIFICATE_SETS").map_or(5_000, |n| n.parse().expect("a number"))
}

/// A set of few tasks, its processors, and how it is judged.
struct Trial {
    set: TaskSet,
    m: u32,
    policy: &'static str,
    guarantee: Guarantee,
    cpmd: Duration,
    /// Which of [`profiles`] is charged, if any.
    profile: Option<usize>,
    accounting: Accounting,
}

impl Trial {
    fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let m = [1, 2, 2, 4][random.below(4) as usize];
        let unit = [1, 1_000, 1_000_003][random.below(3) as usize];
        let mut other = Random::new(seed ^ (1 << 40));
        let reserved = (other.below(4) == 0).then(|| RESERVED[other.below(4) as usize]);
        let unit = if reserved.is_some() { 1_000_000 } else { unit };
        let mut task = |random: &mut Random| {
            let period = random.among(4, 40);
            let deadline = match random.below(4) {
                0 => period + random.below(period),
                1 => period,
                _ => random.among(period.div_ceil(2), period),
            };
            let wcet = random.among(1, deadline.min(period).div_ceil(2));
            let ns = |n: u64| Duration::from_nanos(n * unit);
            if reserved.is_some() {
                let shorter = other.below(2) * other.below(unit);
                let wcet = Duration::from_nanos(wcet * unit - shorter);
                return Timing::implicit(wcet, ns(period));
            }
            Timing {
                wcet: ns(wcet),
                period: ns(period),
                deadline: ns(deadline),
            }
        };
        let count = random.among(1, 3 * u64::from(m));
        let tasks: Vec<Timing> = (0..count).map(|_| task(&mut random)).collect();
        let has_extras = random.below(4) == 0 && reserved.is_none();
        let has_priorities = random.below(4) == 0;
        let details = |index: usize, random: &mut Random| {
            let short = |random: &mut Random| Duration::from_nanos(random.below(2 * unit));
            let mut details = Details::named(format!("T{index}"));
            if has_extras {
                details.extras.blocking = short(random);
                details.extras.jitter = short(random);
            }
            if random.below(2) == 0 {
                details.wss = Some(Bytes::from_kib(4 << random.below(6)));
            }
            if has_priorities {
                details.priority = Some(random.below(4) as u32);
            }
            details
        };
        // Delays of whole quanta leave nothing of them.
        let cpmd = match reserved {
            Some(_) => unit / 4,
            None => 2 * unit,
        };
        let tasks: Vec<(Timing, Details)> = tasks
            .into_iter()
            .enumerate()
            .map(|(index, t)| (t, details(index, &mut random)))
            .collect();
        Trial {
            set: TaskSet::new(tasks).expect("tasks that a set can have"),
            profile: (unit >= 1_000_000 && random.below(2) == 0)
                .then_some(usize::from(!seed.is_multiple_of(3))),
            m,
            policy: match (reserved, random.below(POLICIES.len() as u64) as usize) {
                (Some("c-nps-f:size=2"), _) if m == 1 => "nps-f",
                (Some(policy), _) => policy,
                (None, index) if POLICIES[index] == "c-edf:size=2" && m == 1 => "g-edf",
                (None, index) => POLICIES[index],
            },
            guarantee: if random.below(4) == 0 || reserved == Some("edf-fm") {
                Guarantee::Soft
            } else {
                Guarantee::Hard
            },
            cpmd: Duration::from_nanos(random.below(2) * random.below(cpmd)),
            accounting: Accounting::ALL[random.below(3) as usize],
        }
    }

    fn costs<'p>(&self, profiles: &'p [Profile; 2]) -> Costs<'p> {
        Costs {
            profile: self.profile.map(|at| &profiles[at]),
            cpmd: Some(self.cpmd),
            accounting: Some(self.accounting),
            ..Costs::NONE
        }
    }

    fn certificate(&self, profiles: &[Profile; 2]) -> Certificate {
        let platform = Platform::symmetric(self.m);
        let policy = [self.policy.parse::<Spec>().expect("a policy")];
        let (set, guarantee, costs) = (&self.set, self.guarantee, self.costs(profiles));
        let judged = policies::judge(set, &platform, &policy, guarantee, &costs, &Silent);
        let mut judgment = judged.expect("it is judged");
        policies::search(set, &platform, &mut judgment, &costs).expect("its input was judged");
        policies::certify(set, &platform, &judgment, &costs).expect("its input was judged")
    }
}

/// The cache delays of a Xeon; and these with all other overheads, each with a value of its own.
fn profiles() -> [Profile; 2] {
    use OverheadKind::*;
    let caches = Profile::builtin("xeon-l7455").expect("it is built in");
    let kinds = [
        (Release, 7_001),
        (Scheduling, 5_003),
        (ContextSwitch, 3_001),
        (IpiLatency, 11_003),
        (TimerTransfer, 13_001),
        (Tick, 17_011),
    ];
    let point = |tasks, nanos| OverheadPoint {
        tasks,
        samples: 1,
        average: Some(Duration::from_nanos(nanos)),
        maximum: Some(Duration::from_nanos(3 * nanos)),
        untrimmed: None,
        intervals: Intervals::default(),
    };
    let curve = |(kind, nanos): (OverheadKind, u64)| OverheadCurve {
        kind,
        policy: String::new(),
        code: None,
        points: vec![point(1, nanos), point(20, 2 * nanos)],
    };
    let all = Profile {
        overheads: kinds.map(curve).to_vec(),
        ..caches.clone()
    };
    [caches, all]
}

/// The certificates of all sets, in the order of their seeds: made once for all tests.
fn certificates() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let profiles = profiles();
        let text = |seed| serde_json::to_string(&Trial::of(seed).certificate(&profiles)).unwrap();
        (0..sets()).into_par_iter().map(text).collect()
    })
}

/// Every seed with its certificate.
fn documents() -> impl Iterator<Item = (u64, Value)> {
    let read = |text: &String| serde_json::from_str(text).unwrap();
    (0..).zip(certificates().iter().map(read))
}

/// A reason without the names of tasks.
fn reason(why: &str) -> String {
    why.split('`').step_by(2).collect::<Vec<_>>().join("…")
}

fn every_certificate_verifies() {
    let (mut yes, mut margins, mut refuted, mut missing, mut not_shown) = (0, 0, 0, 0, 0);
    let mut without: BTreeMap<String, u32> = BTreeMap::new();
    let mut reserved: BTreeMap<(&str, bool), u64> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (seed, text) in (0..).zip(certificates()) {
        let trial = Trial::of(seed);
        missing += u64::from(text.contains("\"by\":\"MISS\""));
        for kind in KINDS {
            let proof = format!("\"proof\":{{\"by\":\"{kind}\"");
            *kinds.entry(kind).or_default() += text.matches(&proof).count() as u64;
        }
        let report = verify::verify(text).unwrap_or_else(|e| panic!("{seed}: {e}: {text}"));
        for (_, why) in report.without {
            *without.entry(reason(&why)).or_default() += 1;
        }
        for finding in report.findings {
            assert_eq!(finding.wrong, None, "{seed}: {text}");
            if let Some(policy) = RESERVED.iter().find(|p| **p == trial.policy) {
                let is_yes = finding.says.starts_with("yes");
                *reserved.entry((policy, is_yes)).or_default() += 1;
            }
            match finding.says {
                _ if finding.about.contains(" with ") => margins += 1,
                says if says.starts_with("yes") => yes += 1,
                says if says.starts_with("no,") => refuted += 1,
                _ => not_shown += 1,
            }
        }
    }
    println!(
        "{yes} yes, {margins} margins, {refuted} refuted ({missing} by a schedule that misses), {not_shown} not shown; without: {without:#?}"
    );
    println!("of servers, turns and quanta, yes or not: {reserved:?}; proofs: {kinds:?}");
    for (kind, count) in kinds {
        assert!(count > 0, "no proof by {kind}");
    }
    for policy in RESERVED {
        let yes = reserved.get(&(policy, true)).copied().unwrap_or(0);
        assert!(yes > sets() / 100, "too few of {policy}");
    }
    assert!(
        yes > sets() / 4 && margins > yes && missing > sets() / 1_000 && not_shown > 0,
        "too few of some kind"
    );
}

/// All leaves of a document, by their paths.
fn leaves(value: &Value, path: &str, all: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}/{at}"), all);
            }
        }
        Value::Object(fields) => {
            for (name, item) in fields {
                leaves(item, &format!("{path}/{name}"), all);
            }
        }
        _ => all.push(path.to_owned()),
    }
}

/// The document with one leaf changed, or one item of a list left out.
fn mutated(document: &Value, random: &mut Random) -> Value {
    let mut changed = document.clone();
    let mut paths = Vec::new();
    leaves(document, "", &mut paths);
    // The ways to resume are taken as given, as the overheads are.
    paths.retain(|path| !path.contains("/ways/"));
    let path = &paths[random.below(paths.len() as u64) as usize];
    if random.below(6) == 0
        && let Some((list, at)) = path.rsplit_once('/')
        && let Some(Value::Array(items)) = changed.pointer_mut(list)
    {
        items.remove(at.parse().unwrap());
        return changed;
    }
    let leaf = changed.pointer_mut(path).unwrap();
    let words = [
        "yes",
        "refuted",
        "not-shown",
        "hard",
        "soft",
        "GFB",
        "BAK",
        "LOAD",
        "p-edf",
        "g-edf",
    ];
    *leaf = match &*leaf {
        Value::Number(n) => {
            let n = n.as_u64().unwrap();
            let other = match random.below(4) {
                0 => n.saturating_sub(1),
                1 => n + 1,
                2 => n / 2,
                _ => n.saturating_mul(2) + 1,
            };
            Value::from(other)
        }
        Value::String(_) => Value::from(words[random.below(words.len() as u64) as usize]),
        _ => Value::from(random.below(20)),
    };
    changed
}

/// Are claims that verify true? By the tests of this crate, for the set that the document has now.
fn is_true(document: &Value) -> bool {
    let claims = document["claims"].as_array().unwrap();
    claims.iter().all(|claim| is_true_of(document, claim))
}

fn is_true_of(document: &Value, claim: &Value) -> bool {
    let thousandths = claim["with"]["thousandths"].as_u64().unwrap_or(1_000);
    let time = |task: &Value, key: &str| Duration::from_nanos(task[key].as_u64().unwrap_or(0));
    let scaled = |wcet: Duration| {
        let scaled = (u128::from(wcet.nanos()) * u128::from(thousandths)).div_ceil(1_000);
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    };
    let timing = |task: &Value| Timing {
        wcet: scaled(time(task, "wcet_ns")),
        period: time(task, "period_ns"),
        deadline: time(task, "deadline_ns"),
    };
    let tasks = document["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(timing)
        .collect();
    let Ok(set) = TaskSet::to_judge(tasks) else {
        return false;
    };
    let entries = document["tasks"].as_array().unwrap();
    let Ok(set) = with_extras(set, entries) else {
        return false;
    };
    let m = document["processors"].as_array().unwrap().len() as u32;
    let platform = Platform::symmetric(m);
    let spec: Spec = claim["policy"]
        .as_str()
        .unwrap()
        .parse()
        .expect("a policy that it knows");
    let guarantee = match document["guarantee"].as_str() {
        Some("soft") => Guarantee::Soft,
        _ => Guarantee::Hard,
    };
    let delay = claim["costs"]["delay_ns"].as_u64().unwrap_or(0);
    let costs = Costs {
        cpmd: Some(Duration::from_nanos(delay)),
        accounting: Some(Accounting::OneDelay),
        ..Costs::NONE
    };
    let decide = |costs| policies::decide(&set, &platform, &spec, guarantee, costs).unwrap_or(None);
    match claim["says"].as_str() {
        Some("yes") if document["rule"] != "one-delay" || charged::is_split(claim) => {
            let charged = charged::Claim {
                document,
                claim,
                tasks: set.timings(),
                is_unordered: !set.extras().is_empty(),
                guarantee,
            };
            charged.is_true(|place, tasks| place_holds(document, claim, place, tasks, guarantee))
        }
        Some("yes") => {
            decide(&costs) == Some(true)
                || servers_hold(document, claim, &set, delay)
                    .unwrap_or_else(|| places_hold(document, claim, &set, guarantee, delay))
        }
        Some("refuted") => decide(&Costs::NONE) != Some(true),
        _ => claim["places"]
            .as_array()
            .unwrap()
            .iter()
            .all(|place| is_refused(place, &set)),
    }
}

/// The tasks with the blocking, the jitter and the priorities that these entries have.
fn with_extras(set: TaskSet, entries: &[Value]) -> model::Result<TaskSet> {
    let time = |entry: &Value, key: &str| Duration::from_nanos(entry[key].as_u64().unwrap_or(0));
    let details = entries.iter().enumerate().map(|(at, entry)| {
        let mut details = Details::named(format!("T{at}"));
        details.extras.blocking = time(entry, "blocking_ns");
        details.extras.jitter = time(entry, "jitter_ns");
        details.priority = entry["priority"].as_u64().map(|p| p as u32);
        details
    });
    set.with_details(details.collect())
}

fn members(place: &Value, set: &TaskSet) -> Vec<Timing> {
    let ids = place["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .zip(place["inflated_ns"].as_array().unwrap());
    ids.map(|(id, wcet)| Timing {
        wcet: Duration::from_nanos(wcet.as_u64().unwrap()),
        ..set.timings()[id.as_u64().unwrap() as usize]
    })
    .collect()
}

/// Whether the servers of a claim hold the set, by the test of assignments; `None`: it has none.
fn servers_hold(document: &Value, claim: &Value, set: &TaskSet, delay: u64) -> Option<bool> {
    let places = claim["places"].as_array().unwrap();
    let m = document["processors"].as_array().unwrap().len() as u32;
    let platform = Platform::symmetric(m);
    let long = |t: &Timing| t.inflated(Duration::from_nanos(delay));
    let time = |value: &Value| Duration::from_nanos(value.as_u64().unwrap());
    let list = |value: &Value| value.as_array().unwrap().clone();
    let kind = places.iter().find_map(|p| p["proof"]["by"].as_str())?;
    if kind != "NPS-F" {
        return None;
    }
    // Servers of different places are different ones; each place may have a slot of its own.
    let all = places.iter().all(|place| {
        let ids = list(&place["tasks"]);
        let tasks: Vec<Timing> = ids
            .iter()
            .map(|id| long(&set.timings()[id.as_u64().unwrap() as usize]))
            .collect();
        let proof = &place["proof"];
        let turns = list(&proof["turns"]);
        let table = |cpu: &Value| Timetable {
            cpu: CpuId(cpu.as_u64().unwrap() as u32),
            turns: turns
                .iter()
                .filter(|turn| turn["cpu"] == *cpu)
                .map(|turn| Serve {
                    start: time(&turn["from_ns"]),
                    end: time(&turn["until_ns"]),
                    server: turn["server"].as_u64().unwrap() as u32,
                })
                .collect(),
        };
        let slots = Slots {
            slot: time(&proof["slot_ns"]),
            server_of: list(&proof["servers"])
                .iter()
                .map(|server| server.as_u64().unwrap() as u32)
                .collect(),
            timetables: list(&place["processors"]).iter().map(table).collect(),
        };
        let are_apart = turns.iter().enumerate().all(|(at, a)| {
            turns[..at].iter().all(|b| {
                let differ = a["server"] != b["server"] && a["cpu"] != b["cpu"];
                differ
                    || time(&a["until_ns"]) <= time(&b["from_ns"])
                    || time(&b["until_ns"]) <= time(&a["from_ns"])
            })
        });
        let are_inside = turns.iter().all(|t| time(&t["until_ns"]) <= slots.slot);
        let system = overheads::System::free(&platform);
        are_apart && are_inside && overheads::holds(&tasks, &Assignment::Slots(slots), &system)
    });
    Some(all)
}

/// Does a place by itself hold tasks that have their overheads?
fn place_holds(
    document: &Value,
    claim: &Value,
    place: &Value,
    tasks: &[Timing],
    guarantee: Guarantee,
) -> bool {
    // A cluster by itself is all processors that there are.
    let policy: Spec = match claim["policy"].as_str().unwrap() {
        clustered if clustered.starts_with("c-edf") => "g-edf".parse().unwrap(),
        policy => policy.parse().unwrap(),
    };
    let m = place["processors"].as_array().unwrap().len() as u32;
    let alone = TaskSet::to_judge(tasks.to_vec()).unwrap();
    let ids = place["tasks"].as_array().unwrap().iter();
    let entries = ids.map(|id| document["tasks"][id.as_u64().unwrap() as usize].clone());
    let alone = with_extras(alone, &entries.collect::<Vec<_>>()).unwrap();
    let platform = Platform::symmetric(m);
    let decide =
        |guarantee| policies::decide(&alone, &platform, &policy, guarantee, &Costs::NONE).unwrap();
    // What misses no deadline has no tardiness either, also where the soft test does not take it.
    let holds = [guarantee, Guarantee::Hard]
        .into_iter()
        .any(|g| decide(g) == Some(true));
    // Tests for several processors take blocking as execution, and jitter from deadlines.
    let reduced = |id: usize| {
        let t = alone.timings()[id];
        let x = alone.extras().get(id).copied().unwrap_or_default();
        Timing {
            deadline: t.deadline.saturating_sub(x.jitter),
            ..t.inflated(x.blocking)
        }
    };
    let reduced: Vec<Timing> = (0..tasks.len()).map(reduced).collect();
    holds || holds_by_definition(&place["proof"], &reduced, m)
}

/// Every place by itself, for an assignment that the heuristics do not find.
fn places_hold(
    document: &Value,
    claim: &Value,
    set: &TaskSet,
    guarantee: Guarantee,
    delay: u64,
) -> bool {
    claim["places"].as_array().unwrap().iter().all(|place| {
        let tasks: Vec<Timing> = members(place, set);
        let long_enough = tasks
            .iter()
            .zip(place["tasks"].as_array().unwrap())
            .all(|(t, id)| {
                let given = set.timings()[id.as_u64().unwrap() as usize].wcet;
                t.wcet >= given.saturating_add(Duration::from_nanos(delay))
            });
        long_enough && place_holds(document, claim, place, &tasks, guarantee)
    })
}

/// Does LOAD or FFDBF hold at every deadline, at the first 100,000 of each task? The tests of this
/// crate approximate the load, and try some speeds only.
fn holds_by_definition(proof: &Value, tasks: &[Timing], m: u32) -> bool {
    let whole = |n: u64| BigRational::from_integer(n.into());
    let part = |n: Duration, of: Duration| BigRational::new(n.nanos().into(), of.nanos().into());
    let densities = || tasks.iter().map(|t| part(t.wcet, t.deadline.min(t.period)));
    let (others, largest) = (whole(u64::from(m) - 1), densities().max().unwrap());
    let speed: Option<BigRational> = match proof["by"].as_str() {
        Some("LOAD") => None,
        Some("FFDBF") => Some(match &proof["speed"] {
            Value::String(text) => text.parse().unwrap(),
            number => whole(number.as_u64().unwrap()),
        }),
        _ => return false,
    };
    let rate = match &speed {
        Some(speed) if *speed < largest || *speed > whole(1) => return false,
        Some(_) if tasks.iter().any(|t| t.deadline > t.period) => return false,
        Some(speed) => &others + whole(1) - &others * speed,
        None => {
            let mu = &others + whole(1) - &others * &largest;
            let up = mu.ceil();
            let one = &mu - (&up - whole(1)) * &largest;
            one.max(&up - whole(1) - (&up - whole(2)) * &largest)
        }
    };
    let due = |t: u64| -> BigRational {
        let of = |task: &Timing| {
            let (e, p, d) = (
                task.wcet.nanos(),
                task.period.nanos(),
                task.deadline.nanos(),
            );
            let Some(speed) = &speed else {
                return whole(t.checked_sub(d).map_or(0, |since| (since / p + 1) * e));
            };
            let last = whole(e) - speed * whole(d.saturating_sub(t % p));
            whole(t / p * e) + last.max(whole(0))
        };
        tasks.iter().map(of).sum()
    };
    let utilization: BigRational = tasks.iter().map(|t| part(t.wcet, t.period)).sum();
    if utilization >= rate {
        return utilization == rate && tasks.iter().all(|t| t.deadline >= t.period);
    }
    // No more is due than U·t and one job of each task.
    let all: u64 = tasks.iter().map(|t| t.wcet.nanos()).sum();
    let last = (whole(all) / (&rate - utilization)).ceil();
    tasks.iter().all(|t| {
        let deadlines = (0..100_000).map(|job| t.deadline.nanos() + job * t.period.nanos());
        let mut deadlines = deadlines.take_while(|t| whole(*t) <= last);
        deadlines.all(|t| due(t) <= &rate * whole(t))
    }) && densities().all(|density| density <= whole(1))
}

/// Does no refusal of a place contradict the test that it names?
fn is_refused(place: &Value, set: &TaskSet) -> bool {
    let tasks = members(place, set);
    let m = place["processors"].as_array().unwrap().len() as u32;
    let ids = place["tasks"].as_array().unwrap().iter();
    let all = set.extras();
    let extras = ids.filter_map(|id| all.get(id.as_u64().unwrap() as usize).copied());
    let extras: Vec<_> = extras.collect();
    place["refusals"].as_array().unwrap().iter().all(|refusal| {
        match registry::find(refusal["by"].as_str().unwrap()) {
            Ok(test) => test.decide_with(&tasks, &extras, m) != Ok(true),
            // The exact tests of one processor, and what no test accepts.
            Err(_) => true,
        }
    })
}

fn no_false_certificate_verifies() {
    let (mut reserved, mut points, mut others) = ([0; 2], [0; 2], [0; 2]);
    for (seed, document) in documents() {
        let trial = Trial::of(seed);
        if document["claims"].as_array().unwrap().is_empty() {
            continue;
        }
        // Proofs of reservations have many numbers more, and those by points come seldom.
        let is_reserved = RESERVED.contains(&trial.policy);
        let text = document.to_string();
        let has_points = ["LOAD", "FFDBF", "BAR"].iter().any(|by| text.contains(by));
        let mut random = Random::new(!seed);
        for _ in 0..if is_reserved || has_points { 5 } else { 1 } {
            let changed = mutated(&document, &mut random);
            let verified = verify::verify(&changed.to_string()).is_ok_and(|r| r.is_verified());
            if verified {
                assert!(is_true(&changed), "{seed}: {changed}\nfrom {document}");
            }
            let counts = match (is_reserved, has_points) {
                (true, _) => &mut reserved,
                (false, true) => &mut points,
                (false, false) => &mut others,
            };
            counts[usize::from(verified)] += 1;
        }
    }
    let all = [
        ("servers, turns and quanta", reserved),
        ("LOAD, FFDBF and BAR", points),
        ("others", others),
    ];
    for (of, [refused, kept]) in all {
        println!("{of}: {refused} mutations are refused, {kept} are true as well");
        assert!(refused > kept && kept > 0);
    }
}

/// No WCET may be less than what its overheads make of it, whatever the proof says then: in every
/// place of every policy, by every rule.
fn no_wcet_is_stated_below_its_overheads() {
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    for (seed, document) in documents() {
        let mut paths = Vec::new();
        leaves(&document, "", &mut paths);
        paths.retain(|path| path.contains("/inflated_ns/"));
        if paths.is_empty() {
            continue;
        }
        let path = &paths[Random::new(!seed).below(paths.len() as u64) as usize];
        let claim = path.split('/').nth(2).unwrap();
        let claim: usize = claim.parse().unwrap();
        if document["claims"][claim]["says"] != "yes" {
            continue;
        }
        let mut changed = document.clone();
        let stated = changed.pointer_mut(path).unwrap();
        // The accounting rounds up to nanoseconds a few times.
        let less = stated
            .as_u64()
            .unwrap()
            .saturating_sub(charged::ROUNDING + 1);
        *stated = Value::from(less);
        let report = verify::verify(&changed.to_string()).expect("a certificate");
        let wrong = report.findings[claim].wrong.clone().unwrap_or_default();
        let is_short = wrong.contains(&format!("has {less} ns and needs"));
        assert!(is_short, "{seed}: {path} is {less}: {wrong:?}: {document}");
        let policy = document["claims"][claim]["policy"].as_str().unwrap();
        let rule = document["rule"].as_str().unwrap();
        *refused.entry(format!("{policy} {rule}")).or_default() += 1;
    }
    println!("WCETs below their overheads: {refused:?}");
    // Fifteen policies by up to four rules.
    assert!(refused.len() > 40, "{refused:?}");
}

/// Proofs by points: none can be left out, stated otherwise, or reach from elsewhere, and FFDBF has
/// no speed below a density or above that of a processor.
fn proofs_by_points_need_all_that_they_have() {
    let mut tried: BTreeMap<String, u64> = BTreeMap::new();
    for (seed, document) in documents().take(certificates().len() / 2) {
        let mut paths = Vec::new();
        leaves(&document, "", &mut paths);
        let proofs = paths
            .iter()
            .filter_map(|path| path.strip_suffix("/proof/by"));
        for proof in proofs.map(|place| format!("{place}/proof")) {
            let kind = document.pointer(&format!("{proof}/by")).unwrap();
            let (kind, lists) = match kind.as_str().unwrap() {
                "BAR" => {
                    let windows = document.pointer(&format!("{proof}/windows")).unwrap();
                    let count = windows.as_array().unwrap().len();
                    let list = |k: usize| format!("{proof}/windows/{k}");
                    ("BAR", (0..count).map(list).collect::<Vec<_>>())
                }
                kind @ ("LOAD" | "FFDBF") => (kind, vec![format!("{proof}/points")]),
                _ => continue,
            };
            let refused = |what: &str, change: &dyn Fn(&mut Value)| {
                let mut changed = document.clone();
                change(&mut changed);
                let verified = verify::verify(&changed.to_string()).is_ok_and(|r| r.is_verified());
                assert!(!verified, "{seed}: {what} of {proof}: {changed}");
            };
            for list in &lists {
                let points = document.pointer(list).unwrap().as_array().unwrap().len();
                for at in (0..points).step_by(points / 10 + 1) {
                    refused("a point left out", &|d| {
                        let points = d.pointer_mut(list).unwrap().as_array_mut().unwrap();
                        points.remove(at);
                    });
                    refused("less is due", &|d| {
                        *d.pointer_mut(&format!("{list}/{at}/1")).unwrap() = Value::from("1/7");
                    });
                    *tried.entry(kind.to_owned()).or_default() += 1;
                }
            }
            let has_points = |list: &String| document.pointer(list).unwrap()[0].is_array();
            if lists.iter().any(has_points) {
                let until = |d: &mut Value, n: u64| {
                    *d.pointer_mut(&format!("{proof}/until")).unwrap() = Value::from(n);
                };
                refused("nothing due from 0 on", &|d| until(d, 0));
                refused("a bound above the points", &|d| until(d, u64::MAX));
            }
            if kind == "FFDBF" {
                for speed in ["1/1000000007", "1000001/1000000", "0"] {
                    refused("a false speed", &|d| {
                        *d.pointer_mut(&format!("{proof}/speed")).unwrap() = Value::from(speed);
                    });
                }
            }
        }
    }
    println!("points left out, and stated otherwise: {tried:?}");
    for kind in ["LOAD", "FFDBF", "BAR"] {
        assert!(
            tried.get(kind).is_some_and(|n| *n > 0),
            "no point by {kind}"
        );
    }
}

/// The answers of docs/verify.py to documents, one a line, in one run.
fn in_python(documents: &[String]) -> Result<Vec<String>, NotRun> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify.py");
    let child = Command::new("python3")
        .args([script, "--lines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|e| NotRun::because(format!("python3 does not start: {e}")))?;
    let mut input = child.stdin.take().unwrap();
    let text = documents.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "verify.py failed");
    Ok(String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect())
}

fn both_verifiers_agree() -> Outcome {
    let mut all = Vec::new();
    for (seed, document) in documents() {
        let changed = mutated(&document, &mut Random::new(!seed));
        all.extend([document.to_string(), changed.to_string()]);
    }
    let parts: Result<Vec<_>, _> = all
        .par_chunks(all.len().div_ceil(2))
        .map(in_python)
        .collect();
    let answers = parts?.concat();
    assert_eq!(answers.len(), all.len());
    for (document, answer) in all.iter().zip(answers) {
        let ours = match verify::verify(document) {
            Ok(report) if report.is_verified() => "verified",
            Ok(_) => "not verified",
            Err(_) => "bad",
        };
        let theirs = answer.split(':').next().unwrap_or_default();
        assert_eq!(ours, theirs, "{answer}: {document}");
    }
    Ok(())
}

testing::tests!(
    every_certificate_verifies,
    no_false_certificate_verifies,
    no_wcet_is_stated_below_its_overheads,
    proofs_by_points_need_all_that_they_have,
    both_verifiers_agree
);
