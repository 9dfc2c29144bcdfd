//! Faults done to runs of the engine in the kernel, drawn at random.
//!
//! A round is one run, one fault, and a look whether the machine schedules ordinary programs as
//! before (`ordinary`). Rounds follow from a seed and their number alone, so that one can be
//! repeated.

use model::{Duration, Error, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt;

/// What is done to a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The process that has loaded the program gets signal 9.
    Killed,
    /// The kernel is told to unload every scheduler (system request `S`).
    Aborted,
    /// A job never comes to its end, and heeds no stop.
    NeverYields,
    /// A task's thread ends within a job.
    Dies,
    /// A job sleeps now and then.
    Sleeps,
    /// A processor goes offline, and comes back.
    Offline,
    /// The set needs twice what its processors have.
    Overloaded,
    /// The set has 200 tasks.
    Many,
    /// The process that has loaded the program is stopped for a while (signals 19 and 18).
    Stopped,
    /// A thread of a task is made an ordinary one from outside.
    Reclassed,
    /// A thread of a task is confined to one processor from outside.
    Confined,
}

/// All of them.
pub const FAULTS: [Fault; 11] = [
    Fault::Killed,
    Fault::Aborted,
    Fault::NeverYields,
    Fault::Dies,
    Fault::Sleeps,
    Fault::Offline,
    Fault::Overloaded,
    Fault::Many,
    Fault::Stopped,
    Fault::Reclassed,
    Fault::Confined,
];

/// Policies that runs have.
const POLICIES: [&str; 6] = [
    "g-edf",
    "p-edf",
    "c-edf:size=2",
    "edf-fm",
    "edf-wm",
    "nps-f",
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Killed => "killed",
            Fault::Aborted => "aborted",
            Fault::NeverYields => "never-yields",
            Fault::Dies => "dies",
            Fault::Sleeps => "sleeps",
            Fault::Offline => "offline",
            Fault::Overloaded => "overloaded",
            Fault::Many => "many",
            Fault::Stopped => "stopped",
            Fault::Reclassed => "reclassed",
            Fault::Confined => "confined",
        })
    }
}

/// What becomes of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It comes to its end as if nothing had happened.
    Well,
    /// So, or with an error that says what went wrong: whether the run meets the fault is a matter of the moment.
    Either,
    /// It is killed.
    Killed,
}

/// One run and one fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// Its number, from 0.
    pub number: u64,
    /// What is done.
    pub fault: Fault,
    /// The policy of the run.
    pub policy: &'static str,
    /// So long after the start of the process, or after the kernel has let the program schedule,
    /// where the fault comes from outside.
    pub after: Duration,
    /// After the start of the process: the program may be on its way into the kernel.
    pub early: bool,
    /// The set, as a case has it.
    pub set: String,
    /// How long the run lasts.
    pub horizon: Duration,
    /// The task that is meant, of those that there are.
    pub task: usize,
    /// The job that is meant, from 0.
    pub job: u64,
}

impl Round {
    /// The round of this number, by this seed.
    pub fn of(seed: u64, number: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number);
        // Every fault comes up as often as every other one.
        let fault = FAULTS[(number % FAULTS.len() as u64) as usize];
        let policy = match fault {
            // What such sets are for: nothing can partition them.
            Fault::Overloaded | Fault::Many => "g-edf",
            _ => POLICIES[random.random_range(0..POLICIES.len())],
        };
        let seed = random.random_range(1..10_000);
        let set = match fault {
            Fault::Overloaded => format!("random:12:3.9:{seed}"),
            Fault::Many => format!("random:200:2.4:{seed}"),
            _ => format!("random:6:2.0:{seed}"),
        };
        Round {
            number,
            fault,
            policy,
            after: Duration::from_millis(random.random_range(1..300)),
            early: random.random_range(0..5) == 0,
            set,
            horizon: Duration::from_millis(random.random_range(250..400)),
            task: random.random_range(0..6),
            job: random.random_range(0..3),
        }
    }

    /// What becomes of the run.
    pub fn end(&self) -> End {
        match self.fault {
            Fault::Killed => End::Killed,
            Fault::Sleeps | Fault::Overloaded | Fault::Many | Fault::NeverYields => End::Well,
            Fault::Dies
            | Fault::Aborted
            | Fault::Offline
            | Fault::Stopped
            | Fault::Reclassed
            | Fault::Confined => End::Either,
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} after {}{}, task {}, job {}",
            self.fault,
            self.policy,
            self.set,
            self.after,
            if self.early { " of loading" } else { "" },
            self.task,
            self.job
        )
    }
}

/// Reads `COUNT SEED [FIRST]`: how many rounds, by which seed, and the number of the first.
///
/// # Errors
/// It says something else.
pub fn rounds(text: &str) -> Result<Vec<(u64, u64)>> {
    let bad = || {
        Error::new(format!("`{}` says nothing of faults", text.trim()))
            .remedy("write `COUNT SEED`, such as `30 1`")
    };
    let words: Vec<u64> = (text.split_whitespace())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| bad())?;
    match words[..] {
        [count, seed] => Ok((0..count).map(|number| (seed, number)).collect()),
        [count, seed, first] => Ok((first..first + count).map(|n| (seed, n)).collect()),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_from_seed_and_number() {
        assert_eq!(Round::of(3, 17), Round::of(3, 17));
        assert_ne!(Round::of(3, 17).set, Round::of(4, 17).set);
        let rounds = rounds("22 5").unwrap();
        assert_eq!(rounds.len(), 22);
        for fault in FAULTS {
            let of = |(seed, number): &&(u64, u64)| Round::of(*seed, *number).fault == fault;
            assert_eq!(rounds.iter().filter(of).count(), 2, "{fault}");
        }
        assert_eq!(super::rounds("2 5 9").unwrap(), [(5, 9), (5, 10)]);
        for bad in ["", "3", "x 1", "1 2 3 4"] {
            assert!(super::rounds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sets_of_rounds_can_be_drawn() {
        for number in 0..2 * FAULTS.len() as u64 {
            let round = Round::of(1, number);
            let line = format!("x {} {} {}", round.policy, round.horizon, round.set);
            let cases = crate::case::read(&line).unwrap();
            let set = cases[0].tasks(|_| unreachable!()).unwrap();
            assert!(set.len() > round.task, "{round}");
        }
    }
}
