//! Random machines, and sets whose working sets differ by orders of magnitude.

use model::{Bytes, Details, Duration, Load, Platform, Profile, Statistic, TaskSet, Timing};
use testing::platforms::pairs;
use testing::random::Random;
use testing::times::us;

pub const QUANTUM: Duration = Duration::from_millis(1);

/// A machine with its delays, and a set whose WCETs are still to be grown.
pub struct Case {
    pub platform: Platform,
    pub profile: Profile,
    pub load: Load,
    pub tasks: Vec<Timing>,
    pub wss: Vec<Bytes>,
    /// Priorities of the tasks' own, in a third of the sets; some tasks have none, some the same.
    pub priorities: Vec<Option<u32>>,
    pub seed: u64,
}

impl Case {
    /// `in_quanta`: periods are whole quanta. `implicit`: deadlines are periods.
    pub fn random(seed: u64, in_quanta: bool, implicit: bool) -> Self {
        let mut random = Random::new(seed);
        let m = random.among(1, 4) as u32;
        let count = random.among(2, 3 * u64::from(m) + 2);
        // All deadlines within their periods, one in eight of them beyond.
        let tightness = [0, 10, 50][random.below(3) as usize];
        let beyond = random.one_in(8);
        // Short tasks of small working sets among long ones of large ones are the worst: the first
        // pay for the last.
        let grows = random.one_in(2);
        let (mut tasks, mut wss) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let period = [2_000, 5_000, 10_000, 20_000, 40_000][random.below(5) as usize];
            let period = match (in_quanta, random.one_in(3)) {
                (_, true) => period,
                (true, _) => period + 1_000 * random.below(period / 1_000),
                (false, _) => period + random.below(period),
            };
            let wcet = period * random.among(1, 40) / 100;
            let percent = match beyond && random.one_in(2) {
                true => random.among(100, 180),
                false => random.among(100 - tightness, 100),
            };
            let deadline = if implicit {
                period
            } else {
                period * percent / 100
            };
            tasks.push(Timing {
                deadline: us(deadline),
                ..Timing::implicit(us(wcet.max(10)), us(period))
            });
            // 4 KiB to 4 MiB, every order of magnitude alike.
            let order = match grows {
                true => (period / 2_000).ilog2().min(5) as u64 * 2,
                false => random.below(11),
            };
            wss.push(Bytes::from_kib(4 << order.min(10)));
        }
        let load = match random.one_in(2) {
            true => Load::Load,
            false => Load::Idle,
        };
        let has_priorities = random.one_in(3);
        let mut priority = |_: &Timing| {
            let drawn = random.below(count) as u32;
            has_priorities.then_some(drawn).filter(|drawn| *drawn > 0)
        };
        Case {
            priorities: tasks.iter().map(&mut priority).collect(),
            platform: pairs(m, 4, None),
            profile: Profile::builtin("xeon-l7455").unwrap(),
            load,
            tasks,
            wss,
            seed,
        }
    }

    /// The most thousandths with which no WCET is beyond its deadline.
    pub fn most(&self) -> u64 {
        let of_task = |t: &Timing| t.deadline.nanos() * 1_000 / t.wcet.nanos();
        self.tasks.iter().map(of_task).min().unwrap_or(1_000)
    }

    /// The set with WCETs in so many thousandths, rounded up as the search for the edge does.
    pub fn set(&self, thousandths: u64) -> TaskSet {
        let grown = |t: &Timing| Timing {
            wcet: Duration::from_nanos((t.wcet.nanos() * thousandths).div_ceil(1_000)),
            ..*t
        };
        let tasks: Vec<Timing> = self.tasks.iter().map(grown).collect();
        self.set_of(&tasks, &[])
    }

    /// A set of these timings; phases that are missing are zero.
    pub fn set_of(&self, tasks: &[Timing], phases: &[Duration]) -> TaskSet {
        let named = |(index, (t, wss)): (usize, (&Timing, &Bytes))| {
            let details = Details {
                phase: phases.get(index).copied().unwrap_or_default(),
                wss: Some(*wss),
                priority: self.priorities[index],
                ..Details::named(format!("T{}", index + 1))
            };
            (*t, details)
        };
        let both = tasks.iter().zip(&self.wss).enumerate();
        TaskSet::new(both.map(named).collect()).unwrap()
    }

    /// What a run is charged, with the number of each curve that the verdict was charged.
    pub fn costs(&self, policy: &str, set: &TaskSet, statistic: Statistic) -> simulate::Costs {
        simulate::Costs::from_profile(
            &self.profile,
            policy,
            set,
            &self.platform,
            self.load,
            statistic,
        )
        .unwrap()
    }
}
