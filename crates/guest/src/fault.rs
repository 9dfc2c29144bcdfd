//! Faults done to runs of the engine in the kernel, drawn at random.
//!
//! A round is one run, one fault, a look whether the machine schedules ordinary programs as before
//! (`ordinary`), and one whether the run has said what happened to it ([`Round::judge`]). Rounds
//! follow from a seed and their number alone, so that one can be
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
    /// A thread of a task, or of a program that is one, is made an ordinary one from outside.
    Reclassed,
    /// A thread of a task is confined to one processor from outside.
    Confined,
    /// Jobs that never end keep others from their processors for longer than the kernel's watchdog
    /// lets them.
    Stalls,
    /// Ordinary processes are started, many at once.
    Forks,
    /// The thread that decides at quanta fails.
    PolicyFails,
    /// Hundreds of events come at once to a task that triggers release.
    Burst,
}

/// All of them.
pub const FAULTS: [Fault; 15] = [
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
    Fault::Stalls,
    Fault::Forks,
    Fault::PolicyFails,
    Fault::Burst,
];

/// Policies that decide at events.
const AT_EVENTS: [&str; 10] = [
    "g-edf",
    "p-edf",
    "c-edf:size=2",
    "p-rm",
    "p-fp:dm",
    "g-fp:dm",
    "edf-fm",
    "edf-wm",
    "nps-f",
    "c-nps-f",
];

/// Those that decide at quanta.
const AT_QUANTA: [&str; 3] = ["pd2", "ca-edf:cache=8MiB", "g-edf:quantum=1ms"];

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
            Fault::Stalls => "stalls",
            Fault::Forks => "forks",
            Fault::PolicyFails => "policy-fails",
            Fault::Burst => "burst",
        })
    }
}

/// What becomes of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It comes to its end as if nothing had happened.
    Well,
    /// So, and says this.
    WellSaying(String),
    /// With an error that says this.
    Says(String),
    /// One of both: whether the run meets the fault is a matter of the moment.
    MaySay(String),
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
    /// How many tasks have triggers, and how many events come at once to the first of them.
    pub burst: Option<(u32, u64)>,
    /// A program of several threads and processes does the jobs of the first task, and the fault is
    /// done to one of those.
    pub program: bool,
}

impl Round {
    /// The round of this number, by this seed.
    pub fn of(seed: u64, number: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number);
        // Every fault comes up as often as every other one.
        let fault = FAULTS[(number % FAULTS.len() as u64) as usize];
        let all = AT_EVENTS.iter().chain(&AT_QUANTA).copied();
        let policies: Vec<&str> = match fault {
            // What such sets are for: nothing can partition them.
            Fault::Overloaded => vec!["g-edf", "g-fp:dm", "g-edf:quantum=1ms"],
            // A quantum is a decision of a thread, and a guest carries not so many tasks.
            Fault::Many => vec!["g-edf", "g-fp:dm", "p-edf", "c-edf:size=2"],
            // A policy of quanta gives a job that never ends no more than its share.
            Fault::Stalls => AT_EVENTS.to_vec(),
            Fault::PolicyFails => AT_QUANTA.to_vec(),
            // Tasks whose jobs two processors release in turns have no triggers.
            Fault::Burst => (AT_EVENTS.into_iter())
                .filter(|policy| *policy != "edf-fm")
                .collect(),
            _ => all.collect(),
        };
        let policy = policies[random.random_range(0..policies.len())];
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
            after: Duration::from_millis(random.random_range(60..200)),
            early: random.random_range(0..5) == 0,
            set,
            horizon: match fault {
                Fault::Stalls => Duration::from_millis(1500),
                // A processor is a while on its way, and the run is to be there when it leaves.
                Fault::Offline => Duration::from_millis(random.random_range(800..1000)),
                _ => Duration::from_millis(random.random_range(250..400)),
            },
            task: random.random_range(0..6),
            job: random.random_range(0..3),
            burst: (fault == Fault::Burst)
                .then(|| (random.random_range(1..=6), random.random_range(100..500))),
            program: fault == Fault::Reclassed && random.random_range(0..2) == 0,
        }
    }

    /// The run as a case.
    pub fn line(&self) -> String {
        let wss = match self.policy.starts_with("ca-edf") {
            true => " wss=3MiB",
            false => "",
        };
        let triggers = self.burst.map_or(String::new(), |(tasks, events)| {
            format!(" triggers={tasks} burst={events}")
        });
        format!(
            "round {} {} {}{wss}{triggers}{}",
            self.policy,
            self.horizon,
            self.set,
            if self.program { " programs=1" } else { "" }
        )
    }

    /// How long the kernel lets a thread of the run wait for a processor.
    pub fn watchdog(&self) -> Duration {
        match self.fault {
            Fault::Stalls => Duration::from_millis(400),
            _ => Duration::from_secs(30),
        }
    }

    /// The work of a task, from 0, goes wrong.
    pub fn is_wrong(&self, task: usize) -> bool {
        match self.fault {
            Fault::NeverYields | Fault::Dies | Fault::Sleeps => task == self.task,
            Fault::Stalls => true,
            _ => false,
        }
    }

    /// What becomes of the run.
    pub fn end(&self) -> End {
        let meant = if self.program { 0 } else { self.task };
        let task = format!("task T{}", meant + 1);
        let met = |says: &str| match self.early {
            true => End::MaySay(says.to_owned()),
            false => End::Says(says.to_owned()),
        };
        match self.fault {
            Fault::Killed => End::Killed,
            Fault::Sleeps
            | Fault::Overloaded
            | Fault::Many
            | Fault::Stopped
            | Fault::Forks
            | Fault::Burst => End::Well,
            Fault::NeverYields => End::WellSaying(format!("{task} is stuck")),
            Fault::Dies => End::Says(format!("{task}: its job panicked")),
            Fault::Stalls => End::Says("runnable task stall".to_owned()),
            Fault::PolicyFails => End::Says("the policy panicked".to_owned()),
            Fault::Aborted => met("sysrq"),
            Fault::Offline if self.early => End::MaySay("processor".to_owned()),
            Fault::Offline => met("going offline"),
            Fault::Reclassed => met(&format!("{task}: its thread has left")),
            // It may be confined to its own processor.
            Fault::Confined if !self.policy.starts_with("g-") => {
                End::MaySay("leaves processor".to_owned())
            }
            Fault::Confined => met("leaves processor"),
        }
    }

    /// Is that what becomes of such a run? `code`: its exit status, `None`: it was killed. `late`:
    /// the fault was done to it, as it was there. `said`: what it has said of errors. Returns a
    /// word for it.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn judge(&self, code: Option<i32>, late: bool, said: &str) -> Result<&'static str> {
        let fails = said.contains("error: ");
        match (self.end(), code) {
            (End::Killed, None) => Ok("killed"),
            (End::Killed, Some(0)) if !late => Ok("ended before"),
            (End::Well | End::MaySay(_), Some(0)) if !fails => Ok("ran"),
            (End::WellSaying(says), Some(0)) if !fails && said.contains(&says) => {
                Ok("ran, and said so")
            }
            (End::Says(says) | End::MaySay(says), Some(2)) if fails && said.contains(&says) => {
                Ok("ended, and said why")
            }
            (end, code) => Err(Error::new(format!(
                "its exit status is {code:?}, and it says `{}`, where it is to be {end:?}",
                said.trim()
            ))),
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
        )?;
        if self.program {
            write!(f, ", a program")?;
        }
        match self.burst {
            Some((tasks, events)) => write!(f, ", {events} events, {tasks} tasks with triggers"),
            None => Ok(()),
        }
    }
}

/// Reads `COUNT SEED [FIRST [TIMES]]`: how many rounds, by which seed, the number of the first, and
/// how often all of it is done: what happens once in a hundred rounds is looked for so.
///
/// # Errors
/// It says something else.
pub fn rounds(text: &str) -> Result<Vec<(u64, u64)>> {
    let bad = || {
        Error::new(format!("`{}` says nothing of faults", text.trim()))
            .remedy("write `COUNT SEED`, such as `30 1`, or `COUNT SEED FIRST TIMES`")
    };
    let words: Vec<u64> = (text.split_whitespace())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| bad())?;
    let numbers = |count, seed, first| (first..first + count).map(move |number| (seed, number));
    match words[..] {
        [count, seed] => Ok(numbers(count, seed, 0).collect()),
        [count, seed, first] => Ok(numbers(count, seed, first).collect()),
        [count, seed, first, times] => Ok((0..times)
            .flat_map(|_| numbers(count, seed, first))
            .collect()),
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
        let rounds = rounds("30 5").unwrap();
        assert_eq!(rounds.len(), 30);
        for fault in FAULTS {
            let of = |(seed, number): &&(u64, u64)| Round::of(*seed, *number).fault == fault;
            assert_eq!(rounds.iter().filter(of).count(), 2, "{fault}");
        }
        assert_eq!(super::rounds("2 5 9").unwrap(), [(5, 9), (5, 10)]);
        let twice = [(5, 9), (5, 10), (5, 9), (5, 10)];
        assert_eq!(super::rounds("2 5 9 2").unwrap(), twice);
        for bad in ["", "3", "x 1", "1 2 3 4 5"] {
            assert!(super::rounds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sets_of_rounds_can_be_drawn() {
        for number in 0..2 * FAULTS.len() as u64 {
            let round = Round::of(1, number);
            let line = round.line();
            let cases = crate::case::read(&line).unwrap();
            let set = cases[0].tasks(|_| unreachable!()).unwrap();
            assert!(set.len() > round.task, "{round}");
        }
    }
    #[test]
    fn a_run_has_to_say_what_happened_to_it() {
        let of = |fault: Fault| {
            let mut rounds = (0..1000).map(|number| Round::of(2, number));
            rounds.find(|r| r.fault == fault && !r.early).unwrap()
        };
        let (dies, stalls, killed) = (of(Fault::Dies), of(Fault::Stalls), of(Fault::Killed));
        let said = format!("error: task T{}: its job panicked; mend it", dies.task + 1);
        assert!(dies.judge(Some(2), true, &said).is_ok());
        assert!(dies.judge(Some(0), true, &said).is_err());
        assert!(dies.judge(Some(2), true, "error: something else").is_err());
        assert!(stalls.judge(Some(2), true, &said).is_err());
        assert!(killed.judge(None, true, "").is_ok());
        assert!(killed.judge(Some(0), true, "").is_err());
        assert!(killed.judge(Some(0), false, "").is_ok());
        let forks = of(Fault::Forks);
        assert!(forks.judge(Some(0), true, "").is_ok());
        assert!(forks.judge(Some(2), true, "error: x").is_err());
    }

    #[test]
    fn each_policy_that_runs_has_its_faults() {
        let drawn: std::collections::BTreeSet<_> =
            (0..400).map(|number| Round::of(1, number).policy).collect();
        assert_eq!(drawn.len(), AT_EVENTS.len() + AT_QUANTA.len());
    }
}
