//! The decisions of a policy that decides at quanta, held against those of the simulator, quantum
//! by quantum.
//!
//! The simulator gets the number of quanta that each job of the run was chosen for, so that a job
//! occupies as many there: what switches take in an emulated machine makes jobs need more of them.
//! So both know the same at each boundary, and have to choose the same jobs: at every one of them,
//! as a decision that differs changes what comes later.
//!
//! In a run a choice takes effect a moment after the boundary, and a job that ends is known to have
//! ended at the next one:
//!
//! - Between boundaries nobody decides: a job that leaves its processor before its end was chosen
//!   for all quanta up to the boundary before that.
//! - A job that ends after what the policy was told and before its choice has arrived everywhere
//!   may have been chosen or not, unless its processor has another job in that quantum. Whether it
//!   was is what the simulator says; where it says that it was not, that counts as too close to
//!   tell.
//! - Where something of another class has a processor until the next boundary, a choice never
//!   arrives there, and the trace says no more than that one was on its way. Which job it was is
//!   what the simulator says; that counts as too close to tell, too.
//!
//! Periods have to be whole quanta: no release lies between a boundary and the moment of which the
//! policy was told.

use crate::decisions::{self, CLOSE, Compared, Name};
use model::{Duration, Instant, Result};
use std::collections::{BTreeMap, BTreeSet};
use trace::{Event, EventKind, Header, Overhead};

/// A choice, as it was made: for which quantum, from 0; of which moment the policy was told; and
/// from when on it took effect.
#[derive(Clone, Copy, Debug)]
struct Boundary {
    quantum: u64,
    told: Instant,
    chosen: Instant,
}

/// A job's time on a processor.
#[derive(Clone, Copy, Debug)]
struct Stay {
    name: Name,
    cpu: u32,
    from: Instant,
    /// Until when; `None`: the trace ends before.
    to: Option<Instant>,
    completes: bool,
}

/// The boundaries that a real trace tells of.
fn boundaries(events: &[Event], quantum: Duration) -> Vec<Boundary> {
    let mut boundaries: Vec<Boundary> = Vec::new();
    let mut told = None;
    for event in events {
        if event.kind == EventKind::Quantum {
            told = Some((event.time, event.cpu()));
        }
        let ends = event.kind == EventKind::OverheadEnd
            && event.overhead_kind() == Some(Overhead::IpiLatency);
        // The first choice that arrives on that processor is that of its boundary.
        if let Some((at, _)) = told.filter(|(_, cpu)| ends && *cpu == event.cpu()) {
            boundaries.push(Boundary {
                quantum: at.nanos() / quantum.nanos(),
                told: at,
                chosen: event.time,
            });
            told = None;
        }
    }
    boundaries
}

/// Those of a simulated trace: at the multiples of the quantum, with no delay.
fn exact(until: Instant, quantum: Duration) -> Vec<Boundary> {
    let count = until.nanos() / quantum.nanos() + 1;
    (0..count)
        .map(|number| {
            let at = Instant::from_nanos(number * quantum.nanos());
            Boundary {
                quantum: number,
                told: at,
                chosen: at,
            }
        })
        .collect()
}

/// By boundary, to how many processors its choice never came: it was on its way there from the
/// boundary to the next one, at least.
fn lost(events: &[Event], boundaries: &[Boundary]) -> Vec<usize> {
    let mut lost = vec![0; boundaries.len()];
    let mut sent: BTreeMap<u32, Instant> = BTreeMap::new();
    for event in events {
        let Some(cpu) = event.cpu() else { continue };
        if event.overhead_kind() != Some(Overhead::IpiLatency) {
            continue;
        }
        if event.kind == EventKind::OverheadBegin {
            sent.entry(cpu.0).or_insert(event.time);
        } else if let Some(from) = sent.remove(&cpu.0) {
            let first = boundaries.partition_point(|b| b.chosen < from);
            let over = boundaries.partition_point(|b| b.chosen <= event.time);
            for place in lost.iter_mut().take(over.saturating_sub(1)).skip(first) {
                *place += 1;
            }
        }
    }
    lost
}

fn stays(events: &[Event]) -> Vec<Stay> {
    let (mut open, mut stays) = (BTreeMap::<Name, Stay>::new(), Vec::new());
    for event in events {
        let name = (event.task.0, event.job);
        let completes = event.kind == EventKind::Completion;
        if event.kind.puts_on() {
            let stay = Stay {
                name,
                cpu: event.cpu().map_or(0, |cpu| cpu.0),
                from: event.time,
                to: None,
                completes: false,
            };
            stays.extend(open.insert(name, stay));
        } else if completes || event.kind == EventKind::Preemption {
            stays.extend(open.remove(&name).map(|stay| Stay {
                to: Some(event.time),
                completes,
                ..stay
            }));
        }
    }
    stays.extend(open.into_values());
    stays
}

/// The jobs that were chosen.
struct Chosen {
    /// By boundary.
    jobs: Vec<BTreeSet<Name>>,
    /// By boundary, those that may not have been, as they ended just then.
    doubtful: BTreeSet<(usize, Name)>,
}

/// What the simulator says of that which the run does not tell.
#[derive(Default)]
struct Told {
    /// Doubtful jobs that were not chosen.
    denied: BTreeSet<(usize, Name)>,
    /// Jobs that were, and to whose processor that never came.
    granted: BTreeSet<(usize, Name)>,
}

fn chosen(events: &[Event], boundaries: &[Boundary], told: &Told) -> Chosen {
    let stays = stays(events);
    // The last choice that was in effect at a moment; `None`: it was before the first one.
    let choice_at = |at: Instant| {
        boundaries
            .partition_point(|b| b.chosen <= at)
            .checked_sub(1)
    };
    let mut begun = BTreeSet::new();
    for stay in &stays {
        begun.extend(choice_at(stay.from).map(|choice| (stay.cpu, choice, stay.name)));
    }
    let has_another = |cpu: u32, choice: usize, name: Name| {
        let of_choice = begun.range((cpu, choice, (0, 0))..=(cpu, choice, (u32::MAX, u64::MAX)));
        of_choice.into_iter().any(|(_, _, other)| *other != name)
    };
    let mut doubtful = BTreeSet::new();
    let mut jobs = vec![BTreeSet::new(); boundaries.len()];
    for stay in &stays {
        let Some(first) = choice_at(stay.from) else {
            continue;
        };
        let end = match stay.to {
            None => boundaries.len(),
            Some(to) => {
                let last = choice_at(to).unwrap_or(0);
                // What the policy was told of before the choice that comes next.
                let next = boundaries.get(last + 1);
                let is_known = next.is_none_or(|next| to < next.told);
                let is_there =
                    |choice| choice == first || !has_another(stay.cpu, choice, stay.name);
                match stay.completes {
                    false => last,
                    true if !is_known && is_there(last + 1) => {
                        doubtful.insert((last + 1, stay.name));
                        last + 2
                    }
                    true if is_there(last) => {
                        let soon = boundaries.get(last).is_some_and(|b| to < b.chosen + CLOSE);
                        if soon && first < last {
                            doubtful.insert((last, stay.name));
                        }
                        last + 1
                    }
                    true => last,
                }
            }
        };
        for choice in jobs.iter_mut().take(end).skip(first) {
            choice.insert(stay.name);
        }
    }
    for (choice, name) in &told.denied {
        jobs[*choice].remove(name);
    }
    for (choice, name) in &told.granted {
        jobs[*choice].insert(*name);
    }
    Chosen { jobs, doubtful }
}

impl Told {
    /// Believes the simulator (`wanted`) where the run says nothing, at the first such boundary.
    /// Returns whether there was one.
    fn learn(&mut self, ran: &Chosen, wanted: &[BTreeSet<Name>], lost: &[usize]) -> bool {
        for (choice, (mine, wanted)) in ran.jobs.iter().zip(wanted).enumerate() {
            let of_choice = (choice, (0, 0))..(choice + 1, (0, 0));
            // One that was denied is there no more.
            let denied = ran.doubtful.range(of_choice.clone());
            let denied = denied.filter(|(_, name)| mine.contains(name) && !wanted.contains(name));
            if let Some(first) = denied.into_iter().next() {
                return self.denied.insert(*first);
            }
            if self.granted.range(of_choice).count() < lost[choice]
                && let Some(name) = wanted.difference(mine).next()
            {
                return self.granted.insert((choice, *name));
            }
        }
        false
    }
}

/// Simulates what ran: each job takes as many quanta as it was chosen for.
fn simulated(
    header: &Header,
    events: &[Event],
    quantum: Duration,
    ran: &Chosen,
) -> Result<Vec<Event>> {
    let mut quanta: BTreeMap<Name, u64> = BTreeMap::new();
    for name in ran.jobs.iter().flatten() {
        *quanta.entry(*name).or_default() += 1;
    }
    let mut executed: Vec<Vec<u64>> = vec![Vec::new(); header.tasks.len()];
    let mut completions: Vec<Name> = (events.iter())
        .filter(|event| event.kind == EventKind::Completion)
        .map(|event| (event.task.0, event.job))
        .collect();
    completions.sort_unstable();
    for name in completions {
        // It ends within its last quantum, wherever it does so.
        let count = quanta.get(&name).copied().unwrap_or(1).max(1);
        executed[name.0 as usize].push(count * quantum.nanos() - quantum.nanos() / 2);
    }
    decisions::simulated_with(header, events, executed)
}

/// Holds the first choices of a run against those of the simulator. A boundary that the run has
/// passed over ends the comparison: the one after it is made up for nothing.
///
/// # Errors
/// The trace does not say what it needs.
pub fn compare(
    header: &Header,
    real: &[Event],
    quantum: Duration,
    most: usize,
) -> Result<Compared> {
    let mine = boundaries(real, quantum);
    let lost = lost(real, &mine);
    let mut told = Told::default();
    let (ran, wanted) = loop {
        let ran = chosen(real, &mine, &told);
        let events = simulated(header, real, quantum, &ran)?;
        let end = events.last().map_or(Instant::ZERO, |event| event.time);
        let wanted = chosen(&events, &exact(end, quantum), &Told::default()).jobs;
        // One after the other: each changes what comes later.
        if !told.learn(&ran, &wanted, &lost) {
            break (ran.jobs, wanted);
        }
    };
    let all = told.denied.iter().chain(&told.granted);
    let mut compared = Compared {
        what: "quanta",
        close: all.filter(|(choice, _)| *choice < most).count(),
        ..Compared::default()
    };
    // The last quantum is not over.
    let whole = mine.len().min(wanted.len()).saturating_sub(1);
    for (number, boundary) in mine.iter().enumerate().take(whole.min(most)) {
        if boundary.quantum != number as u64 {
            break;
        }
        compared.decisions += 1;
        compared.jobs += 1;
        if ran[number] == wanted[number] {
            continue;
        }
        let name = |(task, job): &Name| format!("{}/{}", task + 1, job + 1);
        let names = |of: &BTreeSet<Name>| of.iter().map(name).collect::<Vec<_>>().join(" ");
        compared.different.push(format!(
            "quantum {number}: tasks/jobs {} in the run, {} in the simulator",
            names(&ran[number]),
            names(&wanted[number])
        ));
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuId, Platform, Provenance, TaskId, TaskSet, Timing};
    use simulate::Scenario;
    use trace::Stage;

    const QUANTUM: Duration = Duration::from_millis(1);

    fn us(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    /// Three tasks on two processors by PD², as a run would tell of them: everything 30 us late,
    /// with the choices.
    fn run() -> (Header, Vec<Event>) {
        let ms = Duration::from_millis;
        let timings = [(2, 3), (3, 5), (2, 6)].map(|(e, p)| Timing::implicit(ms(e), ms(p)));
        let set = TaskSet::from_timings(timings.to_vec()).unwrap();
        let stage = Stage {
            policy: "pd2".to_owned(),
            assignment: None,
            quantum: Some(QUANTUM),
        };
        let header = Header::simulated(set, Platform::symmetric(2), stage, Provenance::default());
        let scenario = Scenario {
            horizon: ms(60),
            ..Scenario::default()
        };
        let mut events = Vec::new();
        let mut next = 0;
        for mut event in decisions::events_of(&header, &scenario).unwrap() {
            if event.kind == EventKind::Quantum {
                continue;
            }
            // Jobs end 100 us before the boundary.
            match event.kind {
                EventKind::Completion => event.time = us(event.time.nanos() / 1000 - 100),
                _ => event.time = event.time + Duration::from_micros(30),
            }
            events.push(event);
        }
        while next < 60 {
            let (told, cpu) = (us(next * 1000 + 10), CpuId(0));
            events.push(Event::overhead_begin(told, cpu, Overhead::IpiLatency, None));
            events.push(Event::quantum(told, cpu));
            let chosen = us(next * 1000 + 20);
            events.push(Event::overhead_end(chosen, cpu, Overhead::IpiLatency, None));
            next += 1;
        }
        events.sort_by_key(|event| event.time);
        (header, events)
    }

    #[test]
    fn a_run_that_chooses_as_the_simulator_does_is_the_same() {
        let (header, events) = run();
        let compared = compare(&header, &events, QUANTUM, 500).unwrap();
        assert_eq!(compared.different, Vec::<String>::new());
        assert!(compared.decisions >= 55, "{compared:?}");
        // Boundaries behind one that was passed over are not compared.
        let passed = us(20_010);
        let events: Vec<Event> = (events.into_iter())
            .filter(|e| e.kind != EventKind::Quantum || e.time != passed)
            .collect();
        let compared = compare(&header, &events, QUANTUM, 500).unwrap();
        assert_eq!(compared.decisions, 20);
    }

    #[test]
    fn a_job_that_runs_in_the_place_of_another_is_found() {
        let (header, mut events) = run();
        // From here on both have each other's names.
        for event in events.iter_mut().filter(|event| event.time > us(15_000)) {
            event.task = match event.task {
                TaskId(0) => TaskId(2),
                TaskId(2) => TaskId(0),
                other => other,
            };
        }
        let compared = compare(&header, &events, QUANTUM, 500).unwrap();
        assert!(!compared.different.is_empty());
    }

    #[test]
    fn a_choice_that_never_came_to_its_processor_is_what_the_simulator_says() {
        let (header, mut events) = run();
        let begun = events.iter().find(|event| {
            let of_job = |e: &&Event| (e.task, e.job) == (event.task, event.job);
            let ends = |e: &Event| e.kind == EventKind::Completion;
            let end = events.iter().filter(of_job).find(|e| ends(e));
            event.kind == EventKind::Start
                && event.time > us(10_000)
                && end.is_some_and(|end| end.time.since(event.time) > QUANTUM)
        });
        let begun = *begun.expect("a job that begins with a whole quantum");
        // Its processor is another's for that quantum.
        let boundary = begun.time.nanos() / QUANTUM.nanos();
        let (sent, over) = (us(boundary * 1000 + 20), us(boundary * 1000 + 1020));
        for event in events.iter_mut().filter(|event| **event == begun) {
            event.time = over + Duration::from_micros(10);
        }
        let compared = |events: &[Event]| {
            let mut events = events.to_vec();
            events.sort_by_key(|event| event.time);
            compare(&header, &events, QUANTUM, 500).unwrap()
        };
        assert!(!compared(&events).different.is_empty());
        let (cpu, way) = (begun.cpu().unwrap(), Overhead::IpiLatency);
        events.push(Event::overhead_begin(sent, cpu, way, None));
        events.push(Event::overhead_end(over, cpu, way, None));
        let compared = compared(&events);
        assert_eq!(compared.different, Vec::<String>::new());
        assert_eq!(compared.close, 1);
    }

    #[test]
    fn a_job_that_ends_before_its_choice_takes_effect_may_have_been_chosen() {
        let (cpu, task) = (CpuId(0), TaskId(0));
        let choice = |at: u64| {
            [
                Event::quantum(us(at), cpu),
                Event::overhead_end(us(at + 50), cpu, Overhead::IpiLatency, None),
            ]
        };
        let mut events = Vec::new();
        events.extend(choice(0));
        events.push(Event::start(us(60), cpu, task, 0));
        events.extend(choice(1000));
        let ended = Event::completion(us(1020), cpu, task, 0, Duration::from_micros(960));
        events.insert(4, ended);
        events.extend(choice(2000));
        let of = |events: &[Event], denied: &BTreeSet<(usize, Name)>| {
            let told = Told {
                denied: denied.clone(),
                ..Told::default()
            };
            chosen(events, &boundaries(events, QUANTUM), &told)
        };
        let none = BTreeSet::new();
        let all = of(&events, &none);
        let job = (0, 0);
        assert_eq!(
            all.jobs,
            [
                BTreeSet::from([job]),
                BTreeSet::from([job]),
                BTreeSet::new()
            ]
        );
        assert_eq!(all.doubtful, BTreeSet::from([(1, job)]));
        assert!(of(&events, &all.doubtful).jobs[1].is_empty());
        // Another job in its place says that it was not.
        events.insert(6, Event::start(us(1060), cpu, TaskId(1), 0));
        assert_eq!(of(&events, &none).jobs[1], BTreeSet::from([(1, 0)]));
    }
}
