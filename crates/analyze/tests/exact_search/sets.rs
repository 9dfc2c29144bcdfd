//! Small random sets, most of them at the edge of what some test accepts.

use crate::reference::random::Random;
use crate::search::Task;
use analyze::semi::{self, edf_wm, nps_f};
use analyze::{Guarantee, TestInfo, pd2, registry};
use model::assignment::{Slices, Slots};
use model::{CpuId, Duration, Timing};

/// A set in whole units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    /// How many processors.
    pub processors: u32,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

impl Set {
    /// As the tests want it, with units of `unit` nanoseconds.
    pub fn timings(&self, unit: u64) -> Vec<Timing> {
        let time = |units: u8| Duration::from_nanos(u64::from(units) * unit);
        let timing = |t: &Task| Timing {
            wcet: time(t.wcet),
            period: time(t.period),
            deadline: time(t.deadline),
        };
        self.tasks.iter().map(timing).collect()
    }
}

/// The set of this number. A task grows by a unit at a time as long as a test that is drawn
/// accepts.
pub fn at_the_edge(seed: u64) -> Set {
    let mut r = Random::new(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let processors = [1, 2, 2, 2, 3][r.below(5) as usize];
    let count = match processors {
        1 => 2 + r.below(3),
        2 => 3 + r.below(2),
        _ => 4,
    };
    let longest = if count == 4 { 6 } else { 8 };
    let kind = r.below(20);
    let tasks = (0..count)
        .map(|_| {
            let period = 2 + r.below(longest - 1) as u8;
            let deadline = match kind {
                0..=9 => period,
                10..=16 => 1 + r.below(u64::from(period)) as u8,
                _ => 1 + r.below(2 * u64::from(period)) as u8,
            };
            Task {
                wcet: 1,
                period,
                deadline,
            }
        })
        .collect();
    let mut set = Set { processors, tasks };
    let tests: Vec<&TestInfo> = registry::ALL
        .iter()
        .filter(|t| t.guarantee == Guarantee::Hard && t.name != "PD2")
        .collect();
    let test = tests[r.below(tests.len() as u64) as usize];
    if test.name == edf_wm::INFO.name {
        // A task is cut where none fits whole: all are heavy.
        for task in &mut set.tasks {
            task.wcet = (task.period.min(task.deadline) * 5 / 8).max(1);
        }
    }
    let mut refused = 0;
    while refused < 6 {
        let task = r.below(count as u64) as usize;
        let mut larger = set.clone();
        larger.tasks[task].wcet += 1;
        let grown = larger.tasks[task];
        if grown.wcet <= grown.period.min(grown.deadline) && accepts(test, &larger) {
            set = larger;
        } else {
            refused += 1;
        }
    }
    set
}

fn accepts(test: &TestInfo, set: &Set) -> bool {
    if test.name == edf_wm::INFO.name {
        return slices(set).is_some();
    }
    if test.name == nps_f::INFO.name {
        return slots(set, &[semi::processors(set.processors)]).is_some();
    }
    (test.run)(&set.timings(1_000), set.processors) == Ok(true)
}

/// The assignment of EDF-WM with slices as short as a unit, which is a nanosecond.
pub fn slices(set: &Set) -> Option<Slices> {
    let settings = edf_wm::Settings {
        shortest: Duration::from_nanos(1),
        ..edf_wm::Settings::default()
    };
    edf_wm::assign(
        &set.timings(1),
        &semi::processors(set.processors),
        &settings,
    )
    .ok()
}

/// The assignment of NPS-F with reserves as short as a unit, which is a nanosecond, for deadlines
/// equal to periods.
pub fn slots(set: &Set, clusters: &[Vec<CpuId>]) -> Option<Slots> {
    let settings = nps_f::Settings {
        shortest: Duration::from_nanos(1),
        turn: Duration::from_nanos(1),
        ..nps_f::Settings::default()
    };
    let is_implicit = set.tasks.iter().all(|t| t.deadline == t.period);
    let assign = || nps_f::assign(&set.timings(1), clusters, &settings).ok();
    is_implicit.then(assign).flatten()
}

/// A set with deadlines equal to periods whose tasks grow by units as long as PD2 accepts it with
/// quanta of a unit; in every eighth one grows once more, whatever the test says.
pub fn in_quanta(seed: u64) -> Set {
    let mut r = Random::new(seed ^ 0x9d2_0007);
    let processors = 2 + r.below(2) as u32;
    let tasks = (0..4)
        .map(|_| {
            let period = 2 + r.below(6) as u8;
            let wcet = match r.below(2) {
                0 => 1,
                _ => (period / 2).max(1),
            };
            Task {
                wcet,
                period,
                deadline: period,
            }
        })
        .collect();
    let mut set = Set { processors, tasks };
    let mut refused = 0;
    while refused < 8 {
        let mut larger = set.clone();
        let task = &mut larger.tasks[r.below(4) as usize];
        task.wcet += 1;
        if task.wcet <= task.period && (seed.is_multiple_of(8) && refused == 7 || quanta(&larger)) {
            set = larger;
        }
        refused += 1;
    }
    set
}

/// Does PD2 accept a set, with quanta of a unit?
pub fn quanta(set: &Set) -> bool {
    let unit = Duration::from_micros(1);
    pd2::is_schedulable_with(&set.timings(1_000), set.processors, unit) == Ok(true)
}

/// A set of three tasks with deadlines equal to periods that fills two processors, nearly or
/// wholly.
pub fn nearly_full(seed: u64) -> Set {
    let mut r = Random::new(seed ^ 0x00f7_11ed);
    loop {
        let tasks: Vec<Task> = (0..3)
            .map(|_| {
                let period = 2 + r.below(4) as u8;
                let wcet = 1 + r.below(u64::from(period)) as u8;
                Task {
                    wcet,
                    period,
                    deadline: period,
                }
            })
            .collect();
        let utilization: f64 = tasks
            .iter()
            .map(|t| f64::from(t.wcet) / f64::from(t.period))
            .sum();
        if (1.5..=2.0 + 1e-9).contains(&utilization) {
            return Set {
                processors: 2,
                tasks,
            };
        }
    }
}
