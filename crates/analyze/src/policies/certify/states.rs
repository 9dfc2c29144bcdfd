//! Every schedule that sporadic releases on a grid can lead to, state by state: a release sequence
//! that misses a deadline, or the knowledge that there is none.
//!
//! Time goes in ticks. In every tick each task whose last release is a period ago may release a
//! job or not, and the policy runs the most urgent jobs until the next tick. Jobs execute for their
//! WCET: under policies that give each job one priority shorter executions finish no job later (Ha
//! and Liu 1994). All times of the tasks are whole ticks, so that nothing else happens between two.
//!
//! Of two states that differ only in how long idle tasks wait for their next release, the one with
//! the shorter waits leads to every schedule of the other: only that one is followed.

use super::schedule::{Model, Task};
use std::collections::HashMap;

/// The most tasks of a search.
pub(super) const TASKS: usize = 6;
/// The longest period and deadline in ticks.
pub(super) const LONGEST: u64 = 120;
/// The most jobs of one task that are released and not complete.
const PENDING: usize = 3;
/// No job has this age.
const NONE: u8 = u8::MAX;

/// What a search came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// By task the releases that lead to a miss.
    Miss(Vec<Vec<u64>>),
    /// No releases on the grid lead to a miss.
    NoMiss,
    /// There are more states than may be looked at.
    TooMany,
}

/// The first pending job has to execute for `left` more; the pending jobs were released `ages` ago,
/// the oldest first. Without any, `left` is 0 and `ages[0]` is the time until the next release may
/// come.
#[derive(Clone, Copy, Debug)]
struct Lane {
    left: u8,
    ages: [u8; PENDING],
}

const FREE: Lane = Lane {
    left: 0,
    ages: [0, NONE, NONE],
};

type Lanes = [Lane; TASKS];

/// Lanes as numbers, which are hashed and compared at once instead of byte by byte.
type Key = [u32; TASKS];

/// A state, and how it was reached: from which one, with which releases (a bit a task).
struct Node {
    lanes: Lanes,
    from: u32,
    released: u8,
    /// The next node with the same pending jobs.
    next: u32,
}

const NOWHERE: u32 = u32::MAX;

/// Where a tick leads.
enum Step {
    To(Lanes),
    Miss,
    /// More jobs are pending than are told apart.
    TooMany,
}

struct Search<'m> {
    model: &'m Model,
    nodes: Vec<Node>,
    /// For what is pending, the first node.
    known: HashMap<Key, u32>,
    /// Nodes that have not been left yet.
    open: Vec<u32>,
}

/// Searches all schedules, of at most `limit` steps from state to state. The model has at most
/// [`TASKS`] tasks with times up to [`LONGEST`]. Also: how many states were looked at.
pub(super) fn search(model: &Model, limit: usize) -> (Outcome, usize) {
    let mut search = Search {
        model,
        nodes: Vec::new(),
        known: HashMap::new(),
        open: Vec::new(),
    };
    let outcome = search.run(limit);
    (outcome, search.nodes.len())
}

impl Search<'_> {
    fn run(&mut self, limit: usize) -> Outcome {
        let count = self.model.tasks.len();
        let mut steps = 0;
        self.remember([FREE; TASKS], NOWHERE, 0);
        while let Some(from) = self.open.pop() {
            let lanes = self.nodes[from as usize].lanes;
            let may = (0..count).filter(|k| self.may_release(*k, lanes[*k]));
            let may: u8 = may.map(|k| 1_u8 << k).sum();
            // All subsets; the one with all releases comes last and is followed first.
            let mut released = 0_u8;
            loop {
                steps += 1;
                if steps > limit {
                    return Outcome::TooMany;
                }
                match self.step(lanes, released) {
                    Step::To(next) => self.remember(next, from, released),
                    Step::Miss => return Outcome::Miss(self.releases(from, released)),
                    Step::TooMany => return Outcome::TooMany,
                }
                if released == may {
                    break;
                }
                released = released.wrapping_sub(may) & may;
            }
        }
        Outcome::NoMiss
    }

    fn may_release(&self, task: usize, lane: Lane) -> bool {
        match lane.pending() {
            0 => lane.ages[0] == 0,
            pending => u64::from(lane.ages[pending - 1]) >= self.model.tasks[task].period,
        }
    }

    /// One tick with these releases.
    fn step(&self, mut lanes: Lanes, released: u8) -> Step {
        let tasks = &self.model.tasks;
        for (task, lane) in lanes.iter_mut().enumerate().take(tasks.len()) {
            if released >> task & 1 == 0 {
                continue;
            }
            let pending = lane.pending();
            if pending == PENDING {
                return Step::TooMany;
            }
            if pending == 0 {
                lane.left = tasks[task].wcet as u8;
            }
            lane.ages[pending] = 0;
        }
        let running = self.most_urgent(&lanes);
        for (task, lane) in lanes.iter_mut().enumerate().take(tasks.len()) {
            lane.pass(running >> task & 1 == 1, &tasks[task]);
            // What has to execute for longer than there is time is late whatever comes.
            let by = u64::from(lane.ages[0]) + u64::from(lane.left);
            if lane.left > 0 && by > tasks[task].deadline {
                return Step::Miss;
            }
        }
        Step::To(lanes)
    }

    /// The tasks of which a job runs, a bit each.
    fn most_urgent(&self, lanes: &Lanes) -> u8 {
        let mut all = [(0_i16, 0_i16, 0_usize); TASKS];
        let mut count = 0;
        for (task, lane) in lanes.iter().enumerate().take(self.model.tasks.len()) {
            if lane.pending() > 0 {
                let age = i16::from(lane.ages[0]);
                let urgency = match &self.model.ranks {
                    Some(ranks) => ranks[task] as i16,
                    None => self.model.tasks[task].deadline as i16 - age,
                };
                all[count] = (urgency, -age, task);
                count += 1;
            }
        }
        let all = &mut all[..count];
        all.sort_unstable();
        let first = all.iter().take(self.model.m);
        first.map(|(_, _, task)| 1_u8 << task).sum()
    }

    /// Keeps a state to be followed, unless a known one leads to all that it leads to.
    fn remember(&mut self, lanes: Lanes, from: u32, released: u8) {
        let pending: Key = lanes.map(|lane| match lane.pending() {
            0 => FREE.number(),
            _ => lane.number(),
        });
        let waits_less = |known: &Lanes| {
            let both = known.iter().zip(&lanes);
            both.filter(|(_, own)| own.pending() == 0)
                .all(|(known, own)| known.ages[0] <= own.ages[0])
        };
        let first = self.known.entry(pending).or_insert(NOWHERE);
        let mut at = *first;
        while at != NOWHERE {
            let node = &self.nodes[at as usize];
            if waits_less(&node.lanes) {
                return;
            }
            at = node.next;
        }
        let index = self.nodes.len() as u32;
        self.nodes.push(Node {
            lanes,
            from,
            released,
            next: *first,
        });
        *first = index;
        self.open.push(index);
    }

    /// By task the times of the releases on the way to a node, and of the last ones there.
    fn releases(&self, last: u32, released: u8) -> Vec<Vec<u64>> {
        let mut masks = vec![released];
        let mut at = last;
        while self.nodes[at as usize].from != NOWHERE {
            masks.push(self.nodes[at as usize].released);
            at = self.nodes[at as usize].from;
        }
        masks.reverse();
        let of = |task: usize| {
            let times = masks.iter().enumerate();
            let times = times.filter(|(_, mask)| **mask >> task & 1 == 1);
            times.map(|(tick, _)| tick as u64).collect()
        };
        (0..self.model.tasks.len()).map(of).collect()
    }
}

impl Lane {
    fn number(self) -> u32 {
        let [first, second, third] = self.ages;
        u32::from_le_bytes([self.left, first, second, third])
    }

    fn pending(&self) -> usize {
        match self.left {
            0 => 0,
            _ => self.ages.iter().take_while(|age| **age != NONE).count(),
        }
    }

    /// A tick passes.
    fn pass(&mut self, runs: bool, task: &Task) {
        let pending = self.pending();
        if pending == 0 {
            self.ages[0] = self.ages[0].saturating_sub(1);
            return;
        }
        for age in &mut self.ages[..pending] {
            *age += 1;
        }
        self.left -= u8::from(runs);
        if self.left > 0 {
            return;
        }
        if pending == 1 {
            let wait = task.period.saturating_sub(u64::from(self.ages[0]));
            self.ages = [wait as u8, NONE, NONE];
        } else {
            self.ages.rotate_left(1);
            self.ages[PENDING - 1] = NONE;
            self.left = task.wcet as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1_000_000;

    /// Tasks as (e, p, D) in whole units, with releases on halves of them.
    fn model(m: usize, tasks: &[(u64, u64, u64)], ranks: Option<Vec<usize>>) -> Model {
        let task = |&(wcet, period, deadline): &(u64, u64, u64)| Task {
            wcet: 2 * wcet,
            period: 2 * period,
            deadline: 2 * deadline,
        };
        let tasks = tasks.iter().map(task).collect();
        Model { tasks, ranks, m }
    }

    #[test]
    fn a_miss_that_is_found_is_one_of_the_schedule() {
        for ranks in [None, Some(vec![0, 1, 2])] {
            let set = model(2, &[(2, 10, 10), (2, 10, 10), (10, 11, 11)], ranks);
            let (Outcome::Miss(releases), _) = search(&set, LIMIT) else {
                panic!("it misses: Dhall, Liu 1978");
            };
            assert!(set.first_miss(&releases).is_some(), "{releases:?}");
        }
    }

    /// RTA as published accepts it: no release on whole units leads to a miss, one between does.
    #[test]
    fn a_release_between_two_units_is_found() {
        let tasks = [(1, 5, 5), (1, 6, 2), (1, 6, 5), (4, 5, 5)];
        let set = model(2, &tasks, None);
        assert_eq!(set.synchronous_miss(1_000), None);
        let (Outcome::Miss(releases), _) = search(&set, LIMIT) else {
            panic!("it misses");
        };
        let odd = releases.iter().flatten().filter(|time| *time % 2 == 1);
        assert!(odd.count() > 0, "{releases:?}");
        assert!(set.first_miss(&releases).is_some());
    }

    #[test]
    fn what_cannot_miss_is_known_where_the_space_is_small() {
        // Two tasks on two processors never wait.
        let set = model(2, &[(5, 5, 5), (6, 6, 6)], None);
        assert_eq!(search(&set, LIMIT).0, Outcome::NoMiss);
        // One processor that is full, under EDF and with rates that divide each other.
        let full = [(1, 2, 2), (1, 4, 4), (2, 8, 8)];
        for ranks in [None, Some(vec![0, 1, 2])] {
            assert_eq!(search(&model(1, &full, ranks), LIMIT).0, Outcome::NoMiss);
        }
        // Deadlines beyond the period: two jobs of a task wait.
        let late = model(1, &[(2, 3, 6), (2, 6, 6)], None);
        assert_eq!(search(&late, LIMIT).0, Outcome::NoMiss);
        let (outcome, states) = search(&model(2, &[(1, 9, 9); 5], None), 100);
        assert_eq!(outcome, Outcome::TooMany);
        assert!(states <= 100);
    }
}
