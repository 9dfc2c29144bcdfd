//! What a thread of rt-app does, in order: it runs and waits, over and over. From this follow the
//! WCET and the period of a task.
//!
//! The steps of all phases form a circle, as a thread begins again after its last phase. What runs
//! between two waits is a job.

use super::{Read, Remark, get, micros, remark, value_of};
use crate::time::Duration;
use jsonc_parser::ast::{Object, ObjectProp, Value as Node};

/// Keys of threads and phases that are no events.
const ATTRIBUTES: [&str; 15] = [
    "instance",
    "loop",
    "phases",
    "policy",
    "priority",
    "cpus",
    "nodes_membind",
    "delay",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "dl-reclaim",
    "util_min",
    "util_max",
    "taskgroup",
];

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Run(Duration),
    /// Waits for a timer of this period.
    Timer(Duration),
    /// Sleeps so long; `at`: where the key stands.
    Sleep(Duration, usize),
}

/// The times of a thread.
pub(super) struct Cycle {
    /// The longest time that it runs between two waits.
    pub wcet: Duration,
    /// The time from job to job.
    pub period: Duration,
    /// Whether that is made of its run and its sleep.
    pub sleeps: bool,
    /// What it does besides and is not modeled.
    pub remarks: Vec<Remark>,
}

/// What a thread that stands at `start` does.
pub(super) fn cycle(
    name: &str,
    thread: &Object,
    start: usize,
    sleep_as_period: bool,
) -> Read<Cycle> {
    let mut reader = Steps {
        thread: name,
        steps: Vec::new(),
        remarks: Vec::new(),
    };
    reader.thread(thread, start)?;
    let Steps { steps, remarks, .. } = reader;
    let sleep = steps.iter().find_map(|step| match step {
        Step::Sleep(_, at) => Some(*at),
        _ => None,
    });
    let timer = steps.iter().any(|step| matches!(step, Step::Timer(_)));
    let sleep = match timer {
        true => sleeps_within(&steps),
        false => sleep,
    };
    match (sleep, timer) {
        (None, false) => remark(start, "it has no event `timer`"),
        (Some(at), true) => remark(
            at,
            "event `sleep`: it both sleeps and waits for a timer, so its jobs suspend themselves",
        ),
        (Some(at), false) if !sleep_as_period => remark(
            at,
            "event `sleep`: it sleeps, and without a timer alone its period depends on how long it runs (see `--sleep-as-period`)",
        ),
        (sleep, _) => {
            let (wcet, period) = jobs(&steps, start)?;
            Ok(Cycle {
                wcet,
                period,
                sleeps: sleep.is_some() && !timer,
                remarks,
            })
        }
    }
}

/// Where a thread that waits for timers sleeps with a part of a job behind it. One that sleeps and
/// has not run yet only begins its job later.
fn sleeps_within(steps: &[Step]) -> Option<usize> {
    let waits = |step: &Step| !matches!(step, Step::Run(_));
    let behind_last_wait = steps.iter().rposition(waits).map_or(0, |at| at + 1);
    // What stands behind the last wait runs before the first one of the next round.
    let runs = |steps: &[Step]| {
        let time = |step: &Step| matches!(step, Step::Run(time) if !time.is_zero());
        steps.iter().any(time)
    };
    let mut has_run = runs(&steps[behind_last_wait..]);
    for step in steps {
        match step {
            Step::Run(time) => has_run |= !time.is_zero(),
            Step::Timer(_) => has_run = false,
            Step::Sleep(_, at) if has_run => return Some(*at),
            Step::Sleep(..) => {}
        }
    }
    None
}

/// WCET and period of steps of which one waits at least; all wait for timers, or all sleep, but for
/// sleeps in front of a job.
///
/// A job that sleeps afterwards separates its successor by its own run and sleep at least, so the
/// shortest of these sums is a minimum time between jobs.
fn jobs(steps: &[Step], start: usize) -> Read<(Duration, Duration)> {
    let waits = |step: &Step| !matches!(step, Step::Run(_));
    let behind_last_wait = steps.iter().rposition(waits).map_or(0, |at| at + 1);
    let circle = steps[behind_last_wait..]
        .iter()
        .chain(&steps[..behind_last_wait]);
    let (mut run, mut wcet, mut period) = (Duration::ZERO, Duration::ZERO, None::<Duration>);
    for step in circle {
        match *step {
            Step::Run(time) => match run.checked_add(time) {
                Some(sum) => run = sum,
                None => return remark(start, "it runs for too long"),
            },
            Step::Timer(time) => {
                if period.is_some_and(|period| period != time) {
                    return remark(start, "its phases have different periods");
                }
                period = Some(time);
                wcet = wcet.max(std::mem::take(&mut run));
            }
            // Whoever does not run asks for no processor: its sleep prolongs the one before.
            Step::Sleep(..) if run.is_zero() => {}
            Step::Sleep(time, at) => {
                let Some(both) = run.checked_add(time) else {
                    return remark(at, "it sleeps for too long");
                };
                period = Some(period.map_or(both, |period| period.min(both)));
                wcet = wcet.max(std::mem::take(&mut run));
            }
        }
    }
    match period {
        Some(period) => Ok((wcet, period)),
        None => remark(start, "it only sleeps"),
    }
}

struct Steps<'t> {
    thread: &'t str,
    steps: Vec<Step>,
    remarks: Vec<Remark>,
}

impl Steps<'_> {
    fn thread(&mut self, thread: &Object, start: usize) -> Read<()> {
        // With phases the events are theirs; without, the thread is its only phase.
        let Some(phases) = get(thread, "phases") else {
            return self.phase(thread, start);
        };
        let Node::Object(keys) = &phases.value else {
            return remark(phases.range.start, "`phases` is no object");
        };
        if keys.properties.is_empty() {
            return remark(start, "it has no phase");
        }
        for property in &keys.properties {
            let (name, at) = (property.name.as_str(), property.range.start);
            let Node::Object(keys) = &property.value else {
                return remark(at, format!("phase `{name}` is no object"));
            };
            let in_phase = |why: Remark| Remark {
                text: format!("phase `{name}`: {}", why.text),
                ..why
            };
            let begin = self.steps.len();
            self.phase(keys, at).map_err(in_phase)?;
            self.repeat(keys, at, begin).map_err(in_phase)?;
        }
        Ok(())
    }

    /// Repeats the steps of a phase, from `begin` on, as its `loop` says.
    fn repeat(&mut self, keys: &Object, at: usize, begin: usize) -> Read<()> {
        let rounds = match get(keys, "loop").map(|p| value_of(&p.value)) {
            None => 1.0,
            Some(Some(rounds)) if rounds.fract() == 0.0 => rounds,
            Some(_) => return remark(at, "`loop` is no whole number"),
        };
        let phase = self.steps[begin..].to_vec();
        if phase.iter().any(|step| !matches!(step, Step::Run(_))) {
            // Twice shows what stands between two rounds; more rounds show nothing new.
            if rounds != 1.0 {
                self.steps.extend(phase);
            }
            return Ok(());
        }
        if rounds < 0.0 && !phase.is_empty() {
            return remark(at, "it runs for ever and never waits");
        }
        // A whole number; beyond the range it is too long all the same.
        let rounds = rounds.max(0.0) as u64;
        for step in &mut self.steps[begin..] {
            if let Step::Run(time) = step {
                match time.nanos().checked_mul(rounds) {
                    Some(ns) => *time = Duration::from_nanos(ns),
                    None => return remark(at, "it runs for too long"),
                }
            }
        }
        Ok(())
    }

    /// The events of a phase that begins at `start`.
    fn phase(&mut self, keys: &Object, start: usize) -> Read<()> {
        let mut timers = 0;
        let is_old = get(keys, "exec").is_some();
        for property in &keys.properties {
            let (key, at) = (property.name.as_str(), property.range.start);
            // Keys may be numbered to be unique.
            let event = key.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
            match event {
                "run" | "runtime" => self.steps.push(Step::Run(micros(property)?)),
                "timer" if timers > 0 => {
                    return remark(
                        at,
                        format!("event `{key}`: it waits for more than one timer"),
                    );
                }
                "timer" => {
                    timers += 1;
                    let period = property.value.as_object().and_then(|t| get(t, "period"));
                    match period.map(micros).transpose()? {
                        Some(period) if period.is_zero() => {
                            return remark(start, "it has no event `timer` with a period");
                        }
                        Some(period) => self.steps.push(Step::Timer(period)),
                        None => return remark(at, format!("`{key}` has no period")),
                    }
                }
                "sleep" => match micros(property)? {
                    time if time.is_zero() => {}
                    time => self.steps.push(Step::Sleep(time, at)),
                },
                // Before rt-app 1.0 a thread was one job in each period.
                "exec" => self.steps.push(Step::Run(micros(property)?)),
                "period" if is_old => match micros(property)? {
                    time if time.is_zero() => return remark(at, "its period is zero"),
                    time => self.steps.push(Step::Timer(time)),
                },
                "deadline" if is_old => {}
                "lock_order" | "resources" if is_old => self.aside(property, |_| {
                    format!(
                        "says which resources it holds (`{key}`), which are not modeled: give the longest time that others hold them as `blocking`"
                    )
                }),
                "period" | "deadline" => {
                    return remark(at, format!("`{key}` is of a format before rt-app 1.0"));
                }
                "taskgroup" => self.aside(property, |name| {
                    format!("is in task group `{name}`, which is not modeled")
                }),
                "lock" => self.aside(property, |name| {
                    format!(
                        "locks `{name}`, which is not modeled: give the longest time that others hold it as `blocking`"
                    )
                }),
                "unlock" => {}
                "resume" | "signal" | "broad" | "sem_post" => self.aside(property, |name| {
                    format!("wakes up what waits for `{name}`, which is not modeled")
                }),
                "fork" => self.aside(property, |name| {
                    format!("starts another thread `{name}`, which is not modeled")
                }),
                _ if ATTRIBUTES.contains(&key) => {}
                _ => return remark(at, format!("event `{key}` is no part of a sporadic task")),
            }
        }
        Ok(())
    }

    /// Notes once what the thread does with something of a name.
    fn aside(&mut self, property: &ObjectProp, how: impl Fn(&str) -> String) {
        let name = property
            .value
            .as_string_lit()
            .map_or("", |name| name.value.as_ref());
        let text = format!("thread `{}` {}", self.thread, how(name));
        if !self.remarks.iter().any(|r| r.text == text) {
            self.remarks.push(Remark {
                at: property.range.start,
                text,
            });
        }
    }
}
