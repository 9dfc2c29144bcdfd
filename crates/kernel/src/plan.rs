//! A policy's plan as data for the program in the kernel.
//!
//! What can be said so: policies that do nothing but choose the first jobs of each domain by class,
//! deadline or release, and tie ([`policy::Keys`]), on domains that a task leaves between jobs or
//! slices only; or for each processor by the server that it serves. Policies that decide at quanta
//! are decided by their own state machines ([`crate::quanta`]). Everything else is refused with the
//! reason.

use crate::intf::{
    self, ChangePlan, DomainPlan, MAX_CHANGES, MAX_CPUS, MAX_DOMAINS, MAX_LEVELS, MAX_NUMBER,
    MAX_PARTS, MAX_TASKS, NOBODY, PartPlan, TaskPlan,
};
use crate::quanta::{self, Machines};
use model::{
    Beyond, Bytes, CpuId, Duration, Enforcement, Error, Instant, Platform, Result, Resumption,
    TaskId, TaskSet,
};
use policy::plan::Turns;
use policy::{AnyPlan, KeyedChange, KeyedServers, KeyedSlice, Keys, Place, Policy, Route, Visit};

/// The longest relative deadline: the kernel ejects a scheduler under which a thread waits for a
/// processor for 30 s, and a job may wait until its deadline. Releases that are further away cost
/// nothing: until shortly before them a worker sleeps.
pub const LONGEST_DEADLINE: Duration = Duration::from_secs(20);

/// Shorter quanta are over before they are decided.
pub const SHORTEST_QUANTUM: Duration = Duration::from_micros(500);

/// What a plan for the kernel is made of.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The tasks.
    pub set: &'a TaskSet,
    /// The processors.
    pub platform: &'a Platform,
    /// What happens to overruns.
    pub enforcement: Enforcement,
    /// No job is released then or later.
    pub horizon: Duration,
}

/// What the engine in the kernel carries out.
pub struct Carried {
    /// As data. Its origin is not known, and it has no threads yet.
    pub plan: intf::Plan,
    /// Who decides at quanta; `None`: nobody, the program does.
    pub machines: Option<Box<dyn Machines>>,
    /// Where the policy finds working sets by the misses of jobs (003 §3.2), the size of a line of
    /// the cache.
    pub line: Option<Bytes>,
    /// Why it cannot be carried out where nobody counts them, if so.
    pub uncounted: Option<Error>,
}

impl Carried {
    /// A program does the jobs of this task: its WCET is its budget in every job, whatever happens
    /// to overruns of others. `beyond`: what it does when that is used up.
    pub fn give_program(&mut self, task: TaskId, set: &TaskSet, beyond: Beyond) {
        let plan = &mut self.plan.tasks[task.index()];
        plan.many = true;
        plan.beyond = beyond == Beyond::BestEffort;
        plan.budget = set.timings()[task.index()].wcet.nanos();
    }

    /// A program does the jobs of this task that asks for them. Overruns of it are those of any
    /// task.
    ///
    /// # Errors
    /// The policy decides at quanta: when a quantum begins, a program that is told of its job then
    /// still sleeps.
    pub fn give_asking_program(&mut self, task: TaskId, set: &TaskSet) -> Result<()> {
        if self.machines.is_some() {
            return Err(Error::new(
                "the engine in the kernel runs programs that ask for their jobs under policies \
                 that decide at events alone",
            )
            .at(format!("task {}", set.name(task)))
            .remedy("give another policy, or run it from user space"));
        }
        let plan = &mut self.plan.tasks[task.index()];
        plan.many = true;
        plan.asks = true;
        Ok(())
    }
}

/// The plan of a policy, called `name`.
///
/// # Errors
/// The policy, the set or the platform is one that this engine does not run; the reason says why.
pub fn of(name: &str, plan: &AnyPlan, given: &Given<'_>) -> Result<Carried> {
    let parts = plan.clone().visit(Parts);
    let quantum = parts.quantum.map_or(0, Duration::nanos);
    let none = Keys::none();
    let keys = match parts.domains.first().and_then(|(_, keys)| keys.as_ref()) {
        Some(keys) => keys,
        None if quantum > 0 => &none,
        None => {
            return Err(refused(
                name,
                "who runs where is not only a matter of an order of jobs",
            ));
        }
    };
    let slots = given.platform.in_cache_order();
    fits(&slots, parts.domains.len(), given)?;
    let slot = |cpu: &CpuId| slots.iter().position(|c| c == cpu).unwrap_or(0);
    let domains: Vec<DomainPlan> = (parts.domains.iter())
        .map(|(cpus, keys)| DomainPlan {
            cpus: cpus.iter().map(|cpu| 1 << slot(cpu)).sum(),
            quantum,
            ..timetable(cpus, keys.as_ref().and_then(|k| k.servers.as_ref()), &slots)
        })
        .collect();
    let turns: Vec<Turns> = match parts.route {
        Route::Fixed(domain_of) => domain_of.into_iter().map(Turns::fixed).collect(),
        Route::Alternating(turns) => turns,
    };
    can_be_carried_out(name, keys, &domains, &turns, given)?;
    let places: Vec<Vec<u32>> = (parts.domains.iter())
        .map(|(cpus, _)| cpus.iter().map(|cpu| slot(cpu) as u32).collect())
        .collect();
    let data = intf::Plan {
        origin: u64::MAX,
        horizon: given.horizon.nanos(),
        cpus: slots.iter().map(|cpu| cpu.0).collect(),
        near: slots
            .iter()
            .map(|cpu| rings(given.platform, *cpu, &slots))
            .collect(),
        domains,
        tasks: (given.set.ids())
            .map(|task| task_plan(task, keys, turns[task.index()], given))
            .collect(),
        loader: 0,
        threads: Vec::new(),
        replies: Vec::new(),
        parts: keys
            .slices
            .iter()
            .map(|slices| slices.iter().map(part).collect())
            .collect(),
    };
    let machines = (quantum > 0).then(|| quanta::machines(plan, places, &data.tasks, data.horizon));
    Ok(Carried {
        plan: data,
        machines,
        line: plan.profiler().map(policy::Profiler::line),
        uncounted: plan.needs_no_counts().err(),
    })
}

/// This engine does not run a policy, for that reason.
fn refused(name: &str, why: &str) -> Error {
    Error::new(format!(
        "the engine in the kernel cannot run `{name}`: {why}"
    ))
    .at("--engine kernel")
    .remedy("run it from user space: leave `--engine` out")
}

/// # Errors
/// The program does not decide so quickly, cannot count so far, or has no room for so much.
fn can_be_carried_out(
    name: &str,
    keys: &Keys,
    domains: &[DomainPlan],
    turns: &[Turns],
    given: &Given<'_>,
) -> Result<()> {
    let refuse = |why: String| Err(refused(name, &why));
    let quantum = domains.first().map_or(0, |domain| domain.quantum);
    if quantum > 0 && quantum < SHORTEST_QUANTUM.nanos() {
        return refuse(format!(
            "quanta of less than {SHORTEST_QUANTUM} cannot be decided from user space"
        ));
    }
    if let Some(task) = too_long(turns, given) {
        return refuse(format!(
            "the shares of {} on two processors are too fine for so long a run",
            given.set.name(task)
        ));
    }
    if let Some((task, why)) = untriggerable(turns, quantum > 0, given) {
        return Err(Error::new(format!(
            "the engine in the kernel cannot release its jobs by a trigger under `{name}`: {why}"
        ))
        .at(format!("task {}", given.set.name(task)))
        .remedy("leave the trigger out, or run the set from user space"));
    }
    let slices = keys.slices.iter().map(Vec::len).max().unwrap_or(0);
    if slices > MAX_PARTS {
        return refuse(format!(
            "a job has {slices} slices, and it has room for {MAX_PARTS}"
        ));
    }
    let changes: usize = domains.iter().map(|domain| domain.changes.len()).sum();
    if changes > MAX_CHANGES {
        return refuse(format!(
            "a slot has {changes} changes of servers, and it has room for {MAX_CHANGES}"
        ));
    }
    Ok(())
}

/// A task whose jobs are done by a thread of the engine.
fn task_plan(task: TaskId, keys: &Keys, turns: Turns, given: &Given<'_>) -> TaskPlan {
    let index = task.index();
    let timing = given.set.timings()[index];
    let slices = keys.slices.get(index).map_or(0, Vec::len);
    TaskPlan {
        phase: phase(given.set, index).nanos(),
        period: timing.period.nanos(),
        deadline: timing.deadline.nanos(),
        budget: match given.enforcement {
            Enforcement::Off => 0,
            _ => timing.wcet.nanos(),
        },
        part: turns.part,
        whole: turns.whole,
        home: match turns.first == turns.second {
            true => [turns.first.0, NOBODY],
            false => [turns.first.0, turns.second.0],
        },
        tie: keys.tie.get(index).copied().unwrap_or(task.0),
        keyed: keys.by.into(),
        class: keys.class.get(index).copied().unwrap_or(0),
        server: keys.servers.as_ref().map_or(0, |s| s.server_of[index].0),
        triggered: is_triggered(given.set, task),
        many: false,
        beyond: false,
        asks: false,
        parts: slices as u32,
    }
}

/// The servers of a domain of these processors.
fn timetable(cpus: &[CpuId], servers: Option<&KeyedServers>, slots: &[CpuId]) -> DomainPlan {
    let Some(servers) = servers else {
        return DomainPlan::default();
    };
    let slot = |place: Place| {
        let cpu = cpus.get(place.index());
        slots.iter().position(|slot| Some(slot) == cpu).unwrap_or(0) as u32
    };
    let change = |change: &KeyedChange| ChangePlan {
        offset: change.offset.nanos(),
        slot: slot(change.place),
        server: change.server.map_or(NOBODY, |server| server.0),
    };
    DomainPlan {
        cpus: 0,
        quantum: 0,
        period: servers.period.nanos(),
        changes: servers.changes.iter().map(change).collect(),
    }
}

fn part(slice: &KeyedSlice) -> PartPlan {
    PartPlan {
        budget: slice.budget.nanos(),
        released: slice.released.nanos(),
        due: slice.due.nanos(),
        domain: slice.domain.0,
        tie: slice.tie,
    }
}

/// What a plan of any policy is made of.
struct Told {
    domains: Vec<(Vec<CpuId>, Option<Keys>)>,
    route: Route,
    /// How long a quantum is, where it decides at quanta.
    quantum: Option<Duration>,
}

struct Parts;

impl Visit for Parts {
    type Out = Told;
    fn visit<P: Policy + Send + 'static>(self, plan: policy::Plan<P>) -> Told {
        let first = plan.domains.first().map(|domain| &domain.policy);
        // The first quantum after time zero begins when the first one ends.
        let boundary = first
            .filter(|policy| policy.is_quantum_driven())
            .and_then(|policy| policy.boundary(Instant::from_nanos(1)));
        Told {
            quantum: boundary.map(|at| at.since(Instant::ZERO)),
            domains: (plan.domains.into_iter())
                .map(|domain| (domain.cpus, domain.policy.keys()))
                .collect(),
            route: plan.route,
        }
    }
}

/// # Errors
/// More than the program has room for; what it cannot do.
fn fits(slots: &[CpuId], domains: usize, given: &Given<'_>) -> Result<()> {
    let set = given.set;
    let too_many = |what: &str, count: usize, most: usize| {
        Err(Error::new(format!(
            "the engine in the kernel has room for {most} {what}, and there are {count}"
        ))
        .at("--engine kernel")
        .remedy("run it from user space: leave `--engine` out"))
    };
    let named = slots.iter().map(|cpu| cpu.index() + 1).max().unwrap_or(0);
    match () {
        () if slots.len() > MAX_CPUS => too_many("processors", slots.len(), MAX_CPUS),
        () if named > MAX_NUMBER => too_many("numbers of processors", named, MAX_NUMBER),
        () if domains > MAX_DOMAINS => too_many("scheduling domains", domains, MAX_DOMAINS),
        () if set.len() > MAX_TASKS => too_many("tasks", set.len(), MAX_TASKS),
        () => Ok(()),
    }?;
    if given.enforcement == Enforcement::PerQuantum {
        return Err(Error::new(
            "the engine in the kernel cuts jobs short at once, and not at quanta",
        )
        .at("--enforcement quantum")
        .remedy("give `--enforcement exact`"));
    }
    for task in set.ids() {
        let timing = set.timings()[task.index()];
        let refuse = |why: &str, remedy: &str| {
            Err(Error::new(format!("the engine in the kernel {why}"))
                .at(format!("task {}", set.name(task)))
                .remedy(remedy))
        };
        if timing.deadline > LONGEST_DEADLINE {
            return refuse(
                "runs relative deadlines of 20 s at most: the kernel ejects schedulers that let a \
                 job wait for 30 s",
                "give it a shorter deadline, or run the set from user space",
            );
        }
    }
    Ok(())
}

/// The first task of which the program could not tell the turns: it counts jobs times shares in 64
/// bits.
fn too_long(turns: &[Turns], given: &Given<'_>) -> Option<TaskId> {
    let most = |task: &TaskId| {
        let period = given.set.timings()[task.index()].period.nanos().max(1);
        let jobs = given.horizon.nanos() / period + 2;
        let turns = turns[task.index()];
        jobs.checked_mul(turns.whole.saturating_mul(2)).is_none()
    };
    given.set.ids().find(most)
}

fn is_triggered(set: &TaskSet, task: TaskId) -> bool {
    set.details(task).is_some_and(|d| d.trigger.is_some())
}

/// The first task with a trigger that cannot release its jobs, and why.
fn untriggerable(
    turns: &[Turns],
    quanta: bool,
    given: &Given<'_>,
) -> Option<(TaskId, &'static str)> {
    let triggered = |task: &TaskId| is_triggered(given.set, *task);
    let why = |task: TaskId| match turns[task.index()] {
        _ if quanta => Some((task, "it takes releases at quanta alone")),
        // Either of them releases its own share, and knows nothing of the other.
        t if t.first != t.second => Some((task, "two processors release its jobs in turns")),
        _ => None,
    };
    given.set.ids().filter(triggered).find_map(why)
}

fn phase(set: &TaskSet, index: usize) -> Duration {
    let details = set.details(TaskId(index as u32));
    details.map_or(Duration::ZERO, |details| details.phase)
}

/// Sets of slots around a processor that widen: behind its nearest shared cache, and so on, each
/// once. What is around the last one is all.
fn rings(platform: &Platform, from: CpuId, slots: &[CpuId]) -> Vec<u64> {
    let mut rings: Vec<u64> = Vec::new();
    for level in platform.data_levels() {
        let within = |to: &CpuId| match platform.resumption(from, *to) {
            Resumption::Preemption => true,
            Resumption::Migration(nearest) => nearest <= level,
            _ => false,
        };
        let inside = slots.iter().enumerate().filter(|(_, to)| within(to));
        let ring = inside.map(|(slot, _)| 1 << slot).sum();
        if rings.last() != Some(&ring) {
            rings.push(ring);
        }
    }
    rings.truncate(MAX_LEVELS);
    rings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intf::Keyed;
    use analyze::assign::{self, How};
    use model::{Details, Timing, Trigger};
    use policy::Setup;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Tasks of these WCETs and periods; some have a trigger.
    fn tasks(given: &[(u64, u64, bool)]) -> TaskSet {
        let task = |(index, (wcet, period, triggered)): (usize, &(u64, u64, bool))| {
            let details = Details {
                trigger: triggered.then_some(Trigger::Descriptor(3)),
                ..Details::named(format!("t{index}"))
            };
            (Timing::implicit(ms(*wcet), ms(*period)), details)
        };
        TaskSet::new(given.iter().enumerate().map(task).collect()).unwrap()
    }

    /// The plan of a policy for tasks on two processors.
    fn planned(policy: &str, set: &TaskSet) -> Result<intf::Plan> {
        let platform = Platform::symmetric(2);
        let spec: policy::Spec = policy.parse()?;
        let made = assign::assign(&spec, set, &platform, &How::default())?;
        let assignment = made.unwrap();
        let plan = spec.plan(&Setup {
            set,
            platform: &platform,
            assignment: assignment.as_ref(),
            quantum: ms(1),
        })?;
        let given = Given {
            set,
            platform: &platform,
            enforcement: Enforcement::Off,
            horizon: Duration::from_secs(1000),
        };
        of(policy, &plan, &given).map(|carried| carried.plan)
    }

    /// A task of 1 ms with this period, relative deadline and phase, in seconds.
    fn far(period: u64, deadline: u64, phase: u64) -> TaskSet {
        let timing = Timing {
            wcet: ms(1),
            period: Duration::from_secs(period),
            deadline: Duration::from_secs(deadline),
        };
        let details = Details {
            phase: Duration::from_secs(phase),
            ..Details::named("far")
        };
        TaskSet::new(vec![(timing, details)]).unwrap()
    }

    #[test]
    fn long_deadlines_are_refused_and_long_periods_are_not() {
        let task = planned("g-edf", &far(40, 20, 80)).unwrap().tasks[0];
        let seconds = [task.period, task.deadline, task.phase].map(|ns| ns / 1_000_000_000);
        assert_eq!(seconds, [40, 20, 80]);
        let refused = planned("g-edf", &far(40, 21, 0)).unwrap_err();
        let limit = "relative deadlines of 20 s at most";
        assert_eq!(refused.place(), "task far");
        assert!(refused.cause().contains(limit), "{refused}");
    }

    #[test]
    fn a_program_has_its_wcet_as_its_budget() {
        let set = tasks(&[(2, 10, false), (3, 20, false)]);
        let plan = planned("g-edf", &set).unwrap();
        let mut carried = Carried {
            plan,
            machines: None,
            line: None,
            uncounted: None,
        };
        carried.give_program(TaskId(1), &set, Beyond::Hold);
        let of = |task: &intf::TaskPlan| (task.many, task.beyond, task.budget / 1_000_000);
        let given = |carried: &Carried| carried.plan.tasks.iter().map(of).collect::<Vec<_>>();
        assert_eq!(given(&carried), [(false, false, 0), (true, false, 3)]);
        carried.give_program(TaskId(0), &set, Beyond::BestEffort);
        assert!(given(&carried)[0].1 && !given(&carried)[1].1);
        // Overruns of a program that asks for its jobs are those of any task.
        let plan = planned("g-edf", &set).unwrap();
        let mut carried = Carried {
            plan,
            machines: None,
            line: None,
            uncounted: None,
        };
        carried.give_asking_program(TaskId(0), &set).unwrap();
        let task = &carried.plan.tasks[0];
        assert!(task.many && task.asks && !task.beyond && task.budget == 0);
    }

    #[test]
    fn what_orders_jobs_is_part_of_the_plan() {
        let set = tasks(&[(2, 10, false), (3, 20, false)]);
        for (policy, keyed, ties) in [
            ("g-edf", Keyed::Deadline, [1, 0]),
            ("g-fp:rm", Keyed::Priority, [0, 1]),
            ("g-fifo", Keyed::Release, [0, 1]),
        ] {
            let tasks = planned(policy, &set).unwrap().tasks;
            assert!(tasks.iter().all(|task| task.keyed == keyed), "{policy}");
            assert_eq!([tasks[0].tie, tasks[1].tie], ties, "{policy}");
        }
    }

    #[test]
    fn triggers_are_part_of_the_plan_where_one_domain_releases_a_task() {
        let set = tasks(&[(3, 10, true), (3, 10, false), (3, 10, false)]);
        for policy in ["g-edf", "g-fifo", "edf-wm", "nps-f"] {
            let tasks = planned(policy, &set).unwrap().tasks;
            let triggered: Vec<bool> = tasks.iter().map(|task| task.triggered).collect();
            assert_eq!(triggered, [true, false, false], "{policy}");
        }
        // One of three tasks is split by EDF-fm.
        let all = tasks(&[(6, 10, true), (6, 10, true), (6, 10, true)]);
        let error = planned("edf-fm", &all).unwrap_err();
        assert!(error.cause().contains("in turns"), "{error}");
        let error = planned("pd2", &set).unwrap_err();
        assert!(error.cause().contains("quanta"), "{error}");
        for error in [planned("edf-fm", &all), planned("pd2", &set)] {
            let error = error.unwrap_err();
            assert!(error.place().starts_with("task t"), "{error}");
            assert!(!error.advice().is_empty());
        }
    }
}
