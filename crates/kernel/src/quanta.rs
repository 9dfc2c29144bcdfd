//! Policies that decide at quanta: their own state machines, in user space.
//!
//! At the beginning of each quantum the program in the kernel says what has happened up to a moment
//! ([`Seen`]); the state machines decide from that and nothing else, as the simulator lets them; and
//! the program carries it out on all processors. What happens between the moment and the next
//! quantum is known then.

use crate::intf::{Choice, MAX_CPUS, TaskPlan};
use model::{Duration, Instant, TaskId};
use policy::profiler::Estimate;
use policy::{AnyPlan, Decisions, DomainId, Event, Job, Place, Plan, Policy, Visit};

/// What has happened in a domain when a quantum begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When.
    pub now: Instant,
    /// By task, how many of its jobs have ended.
    pub ended: Vec<u64>,
    /// By task, how often the last of them missed the shared cache; `None`: that is not known.
    pub misses: Vec<Option<u64>>,
}

/// The state machines of all domains of a plan.
pub trait Machines: Send {
    /// Who runs in the quantum that begins in a domain.
    fn decide(&mut self, domain: usize, seen: &Seen) -> Choice;
    /// By task its multithreaded task, and what the policy found of its working set (003 §3.2);
    /// empty: it looked for none.
    fn profiled(&self) -> Vec<(u32, Estimate)>;
}

/// The state machines of a plan, if it decides at quanta. `slots`: by domain and place, the slot of
/// the processor; `tasks`: as the program knows them.
pub fn machines(
    plan: &AnyPlan,
    slots: Vec<Vec<u32>>,
    tasks: &[TaskPlan],
    horizon: u64,
) -> Box<dyn Machines> {
    plan.clone().visit(Make(slots, tasks.to_vec(), horizon))
}

struct Make(Vec<Vec<u32>>, Vec<TaskPlan>, u64);

impl Visit for Make {
    type Out = Box<dyn Machines>;
    fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out {
        let Make(slots, tasks, horizon) = self;
        let domains = plan.domains.into_iter().zip(slots);
        Box::new(All {
            domains: domains
                .map(|(domain, slots)| Machine {
                    policy: domain.policy,
                    seats: Seats(vec![None; slots.len()]),
                    slots,
                })
                .collect(),
            ready: vec![None; tasks.len()],
            tasks,
            horizon,
        })
    }
}

struct All<P> {
    domains: Vec<Machine<P>>,
    tasks: Vec<TaskPlan>,
    /// By task, the number of the job that its policy knows as ready.
    ready: Vec<Option<u64>>,
    horizon: u64,
}

/// One domain.
struct Machine<P> {
    policy: P,
    slots: Vec<u32>,
    seats: Seats,
}

/// By place, the task that runs there.
struct Seats(Vec<Option<TaskId>>);

impl Decisions for Seats {
    fn run(&mut self, place: Place, task: TaskId) {
        self.leave(task);
        self.0[place.index()] = Some(task);
    }
    fn idle(&mut self, place: Place) {
        self.0[place.index()] = None;
    }
    // It is asked at every quantum.
    fn wake(&mut self, _: Instant) {}
    fn push(&mut self, _: TaskId, _: DomainId, _: Instant, _: u32) {}
}

impl Seats {
    fn leave(&mut self, task: TaskId) {
        for seat in &mut self.0 {
            if *seat == Some(task) {
                *seat = None;
            }
        }
    }
}

impl<P: Policy + Send> Machines for All<P> {
    fn decide(&mut self, domain: usize, seen: &Seen) -> Choice {
        let machine = &mut self.domains[domain];
        let now = seen.now;
        let of_domain = |task: &TaskPlan| task.home[0] as usize == domain;
        for (index, ready) in self.ready.iter_mut().enumerate() {
            let Some(number) = *ready else { continue };
            if of_domain(&self.tasks[index]) && seen.ended[index] > number {
                *ready = None;
                let task = TaskId(index as u32);
                // Of a job that was followed by another one within a quantum nobody knows it.
                if let Some(misses) = seen.misses[index].filter(|_| seen.ended[index] == number + 1)
                {
                    machine.policy.counted(task, misses);
                }
                machine.policy.happen(Event::Done(task), now);
                machine.seats.leave(task);
            }
        }
        machine.policy.happen(Event::Timer, now);
        for (index, ready) in self.ready.iter_mut().enumerate() {
            let (plan, number) = (&self.tasks[index], seen.ended[index]);
            let release = plan.phase + number * plan.period;
            let due = release <= now.nanos() && release < self.horizon;
            if !of_domain(plan) || ready.is_some() || !due {
                continue;
            }
            *ready = Some(number);
            let release = Instant::from_nanos(release);
            let job = Job {
                task: TaskId(index as u32),
                number,
                release,
                deadline: release + Duration::from_nanos(plan.deadline),
                part: 0,
            };
            machine.policy.happen(Event::Ready(job), now);
        }
        machine.policy.decide(now, &mut machine.seats);
        let mut choice = Choice::default();
        for (place, slot) in machine.slots.iter().enumerate() {
            let slot = *slot as usize % MAX_CPUS;
            match machine.seats.0[place] {
                Some(task) => {
                    choice.task[slot] = u64::from(task.0);
                    choice.job[slot] = self.ready[task.index()].unwrap_or(0);
                }
                None if machine.policy.is_deliberately_idle(Place(place as u32)) => {
                    choice.deliberate |= 1 << slot;
                }
                None => {}
            }
        }
        choice
    }

    fn profiled(&self) -> Vec<(u32, Estimate)> {
        let profilers = self.domains.iter().filter_map(|m| m.policy.profiler());
        profilers.flat_map(policy::Profiler::estimates).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{self, Given};
    use model::{Enforcement, Platform, TaskSet, Timing};
    use policy::Setup;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Three tasks of 2 ms in 3 ms on two processors: full, and only PD² has a schedule.
    #[test]
    fn a_full_set_gets_its_quanta() {
        let set = TaskSet::from_timings(vec![Timing::implicit(ms(2), ms(3)); 3]).unwrap();
        let platform = Platform::symmetric(2);
        let setup = Setup {
            set: &set,
            platform: &platform,
            assignment: None,
            quantum: ms(1),
        };
        let policy = "pd2".parse::<policy::Spec>().unwrap().plan(&setup).unwrap();
        let given = Given {
            set: &set,
            platform: &platform,
            enforcement: Enforcement::Off,
            horizon: ms(100),
        };
        let carried = plan::of("pd2", &policy, &given).unwrap();
        assert_eq!(carried.plan.domains[0].quantum, 1_000_000);
        let mut machines = carried.machines.unwrap();
        // Jobs as the kernel would see them: one has ended when it had two quanta.
        let (mut had, mut ended) = (vec![0; 3], vec![0; 3]);
        for quantum in 0..30 {
            let seen = Seen {
                now: Instant::from_nanos(quantum * 1_000_000 + 20_000),
                ended: ended.clone(),
                misses: vec![None; 3],
            };
            let choice = machines.decide(0, &seen);
            let chosen: Vec<u64> = choice.task.into_iter().filter(|t| *t < 3).collect();
            assert_eq!(chosen.len(), 2, "quantum {quantum}");
            for (slot, task) in choice.task.iter().enumerate().filter(|(_, t)| **t < 3) {
                assert_eq!(choice.job[slot], quantum / 3, "quantum {quantum}");
                had[*task as usize] += 1;
                if had[*task as usize] % 2 == 0 {
                    ended[*task as usize] += 1;
                }
            }
        }
        assert_eq!(had, [20, 20, 20]);
    }

    /// 003 §3.2: the misses of a job, times the line, where nobody has preempted it.
    #[test]
    fn working_sets_are_found_by_what_is_seen_of_misses() {
        let set = TaskSet::from_timings(vec![Timing::implicit(ms(3), ms(10)); 2]).unwrap();
        let platform = Platform::symmetric(2);
        let policy = "ca-edf:cache=8MiB,wss=profiled";
        let setup = Setup {
            set: &set,
            platform: &platform,
            assignment: None,
            quantum: ms(1),
        };
        let policy_plan = policy
            .parse::<policy::Spec>()
            .unwrap()
            .plan(&setup)
            .unwrap();
        let given = Given {
            set: &set,
            platform: &platform,
            enforcement: Enforcement::Off,
            horizon: ms(100),
        };
        let carried = plan::of(policy, &policy_plan, &given).unwrap();
        assert!(carried.uncounted.is_some());
        let line = carried.line.unwrap();
        let mut machines = carried.machines.unwrap();
        let (mut had, mut ended) = ([0; 2], vec![0; 2]);
        for quantum in 0..60 {
            let seen = Seen {
                now: Instant::from_nanos(quantum * 1_000_000 + 20_000),
                ended: ended.clone(),
                // Nobody knows them of the second.
                misses: vec![Some(1024), None],
            };
            let choice = machines.decide(0, &seen);
            for task in choice.task.into_iter().filter(|task| *task < 2) {
                had[task as usize] += 1;
                ended[task as usize] += u64::from(had[task as usize] % 3 == 0);
            }
        }
        let profiled = machines.profiled();
        let found = profiled.iter().map(|(_, e)| (e.wss.get(), e.converged));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [(1024 * line.get(), true), (0, false)]
        );
        assert!(profiled[0].1.profiled >= 4 && profiled[1].1.profiled == 0);
    }
}
