//! The cache-aware scheduler while it finds the working sets of its tasks: 003 §3.2 and Fig. 3.

use crate::support::{Instance, Small, UNIT, occupancy, units};
use model::watch::Silent;
use model::{CpuId, Result, TaskId};
use policy::profiler::Estimate;
use policy::{Setup, Spec};
use simulate::{Pace, Summary, Traced};
use trace::{Event, VecSink};

/// Bytes of a line, and lines of a quarter of the cache of 4 MiB.
const LINE: u64 = 64;
const QUARTER: u64 = (1 << 20) / LINE;

/// What Fig. 3 assumes of caches: a job that thrashes them misses as many lines as they have, any
/// other one a line for each of its multithreaded task's working set, its share of it.
struct AsInFigure3<'a> {
    of: &'a Instance,
    /// By task: what its job has left, and whether it thrashed.
    left: Vec<u64>,
    number: Vec<Option<u64>>,
    thrashed: Vec<bool>,
    /// By processor: the task, and when it is complete.
    running: Vec<Option<(usize, u64)>>,
    now: u64,
    finished: Vec<usize>,
}

impl<'a> AsInFigure3<'a> {
    fn new(of: &'a Instance) -> Self {
        AsInFigure3 {
            of,
            left: vec![0; of.tasks.len()],
            number: vec![None; of.tasks.len()],
            thrashed: vec![false; of.tasks.len()],
            running: Vec::new(),
            now: 0,
            finished: Vec::new(),
        }
    }

    fn thrashes(&self) -> bool {
        let mut groups: Vec<(Option<u64>, usize)> = Vec::new();
        let mut sum = 0;
        for (task, _) in self.running.iter().flatten() {
            let group = self.of.tasks[*task].group;
            let own = (group, if group.is_some() { 0 } else { *task });
            if !groups.contains(&own) {
                groups.push(own);
                sum += self.of.tasks[*task].wss;
            }
        }
        sum > 4
    }
}

impl Pace for AsInFigure3<'_> {
    const PACED: bool = true;

    fn begin(&mut self, processors: &[CpuId]) -> Result<()> {
        self.running = vec![None; processors.len()];
        Ok(())
    }

    fn start(&mut self, processor: usize, task: TaskId, number: u64, now: u64) {
        let task = task.index();
        if self.number[task].replace(number) != Some(number) {
            self.left[task] = self.of.tasks[task].wcet * UNIT;
            self.thrashed[task] = false;
        }
        self.running[processor] = Some((task, now + self.left[task]));
        self.now = now;
    }

    fn stop(&mut self, processor: usize, now: u64) {
        if let Some((task, end)) = self.running[processor].take() {
            self.left[task] = end - now;
        }
    }

    fn advance(&mut self, until: u64) -> Option<u64> {
        let ends = self.running.iter().flatten().map(|(_, end)| *end);
        let next = ends.min().map_or(until, |end| end.min(until));
        if next > self.now && self.thrashes() {
            for (task, _) in self.running.iter().flatten() {
                self.thrashed[*task] = true;
            }
        }
        self.now = next;
        for (processor, running) in self.running.iter_mut().enumerate() {
            if running.is_some_and(|(_, end)| end == next) {
                *running = None;
                self.finished.push(processor);
            }
        }
        (!self.finished.is_empty()).then_some(next)
    }

    fn finished(&mut self) -> Option<usize> {
        self.finished.pop()
    }

    fn misses(&self, task: TaskId) -> Option<u64> {
        let own = &self.of.tasks[task.index()];
        let threads = self.of.tasks.iter().filter(|t| t.group == own.group);
        let threads = own.group.map_or(1, |_| threads.count() as u64);
        Some(match self.thrashed[task.index()] {
            true => 4 * QUARTER,
            false => own.wss * QUARTER / threads,
        })
    }
}

fn figure_3() -> Instance {
    let task = |wcet, period, wss, group| Small {
        wss,
        group,
        ..crate::support::small(wcet, period, period, 0)
    };
    Instance {
        m: 2,
        tasks: vec![
            task(1, 2, 3, None),
            task(1, 4, 2, None),
            task(1, 4, 2, None),
            task(2, 8, 3, Some(1)),
            task(2, 8, 3, Some(1)),
        ],
        policy: "ca-edf:cache=4MiB,wss=profiled".to_owned(),
        assignment: None,
        horizon: 32,
    }
}

fn simulated(of: &Instance, horizon: u64) -> (Summary, Vec<Event>) {
    let (set, platform) = (of.set(), of.platform());
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: None,
        quantum: units(1),
    };
    let plan = of.policy.parse::<Spec>().unwrap().plan(&setup).unwrap();
    let scenario = simulate::Scenario {
        horizon: units(horizon),
        ..of.scenario()
    };
    let observer = Traced(VecSink::default());
    let pace = &mut AsInFigure3::new(of);
    let run = simulate::simulate_paced(plan, &set, &platform, &scenario, &Silent, observer, pace);
    let (summary, Traced(sink)) = run.unwrap();
    (summary, sink.events)
}

/// By multithreaded task at the end of so many quanta: T, U, V, and W with X.
fn estimates(of: &Instance, quanta: u64) -> [Estimate; 4] {
    let (summary, _) = simulated(of, quanta);
    let tasks: Vec<Estimate> = summary.profiled.iter().map(|(_, e)| *e).collect();
    assert_eq!(tasks[3], tasks[4], "one multithreaded task");
    [tasks[0], tasks[1], tasks[2], tasks[3]]
}

#[test]
fn figure_3_the_profiler_learns_while_tasks_run() {
    let of = figure_3();
    let (_, events) = simulated(&of, 32);
    let names = ["T", "U", "V", "W", "X"];
    let schedule: Vec<String> = occupancy(&events, of.m, of.horizon)
        .iter()
        .map(|cpus| {
            let mut running: Vec<&str> = cpus
                .iter()
                .flatten()
                .map(|task| names[*task as usize])
                .collect();
            running.sort_unstable();
            running.concat()
        })
        .collect();
    // T and U, V and W thrash; from 4 to 8 each is alone; from 8 on as in Fig. 2 (b).
    let learned = ["TU", "VW", "WX", "TX", "T", "U", "T", "V"];
    let as_in_figure_2 = ["UV", "T", "T", "WX", "WX", "UV", "T", "T"];
    for (quantum, running) in schedule.iter().enumerate() {
        let wanted = match quantum / 8 {
            0 => learned[quantum],
            _ => as_in_figure_2[quantum % 8],
        };
        assert_eq!(running, wanted, "quantum {quantum} of {schedule:?}");
    }
}

#[test]
fn figure_3_when_estimates_are_accurate_and_when_they_have_converged() {
    let of = figure_3();
    let quarters = |at: u64| estimates(&of, at).map(|e| e.wss.get() >> 20);
    let converged = |at: u64| estimates(&of, at).map(|e| e.converged);
    assert_eq!(quarters(4), [4; 4], "all thrashed");
    for (at, wanted) in [
        (5, [3, 4, 4, 4]),
        (6, [3, 2, 4, 4]),
        (7, [3, 2, 4, 4]),
        (8, [3, 2, 2, 4]),
        (12, [3, 2, 2, 4]),
        (13, [3, 2, 2, 3]),
        (32, [3, 2, 2, 3]),
    ] {
        assert_eq!(quarters(at), wanted, "at {at}");
    }
    for (at, wanted) in [
        (6, [false, false, false, false]),
        (7, [true, false, false, false]),
        (8, [true, false, false, false]),
        (9, [true, true, true, false]),
        (20, [true, true, true, false]),
        (21, [true, true, true, true]),
    ] {
        assert_eq!(converged(at), wanted, "at {at}");
    }
    // What thrashed was not known to, so nothing was discarded.
    let told = estimates(&of, 32);
    assert!(told.iter().all(|e| e.discarded == 0), "{told:?}");
    assert_eq!(told.map(|e| e.profiled), [16, 8, 8, 4]);
}

#[test]
fn who_cannot_count_misses_refuses_to_profile() {
    let of = figure_3();
    let (set, platform) = (of.set(), of.platform());
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: None,
        quantum: units(1),
    };
    let plan = || of.policy.parse::<Spec>().unwrap().plan(&setup).unwrap();
    let some = simulate::Costs {
        release: 1,
        ..simulate::Costs::default()
    };
    for costs in [None, Some(&some)] {
        let refused =
            simulate::simulate(plan(), &set, &platform, &of.scenario(), costs, &Silent, ());
        let e = refused.unwrap_err().to_string();
        assert!(e.contains("nothing counts them here"), "{e}");
    }
}
