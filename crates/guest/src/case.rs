//! What is tried in the guest: lines of a file, each a case.
//!
//! `NAME POLICY FOR SET [enforcement=exact] [execution=RATIO] [kill=TIME] [wss=SIZE]
//! [tolerance=TIME] [usual=TIME] [decisions=N] [cpus=SET] [change=TIME] [ring=SIZE] [waiting=N]
//! [slow=TIME] [stuck=TASK] [waits=TIME] [watchdog=TIME] [later=TIME] [triggers=N] [burst=N]
//! [gap=TIME] [peers=yes] [programs=N] [kind=WORD] [beyond=yes] [asks=yes] [maps=yes]
//! [pinned=SET/…:TIME] [lent=TIME]`: the set is `random:N:U:SEED`, N tasks of total utilization U
//! with periods from 10 ms to 60 ms, `whole:N:U:SEED`, where they are whole milliseconds;
//! `tasks:WCET/PERIOD[/DEADLINE][+PHASE],…`, each task by itself; or the name of a file of the
//! guest. Each task has a working set of that size. Decisions may be overdue by `tolerance`, those
//! of a thousand but one by `usual`; without a word by what the judge allows every case. A case
//! whose name begins with `sim-` is compared with the simulator, by so many decisions at least
//! (`decisions`). It runs on the processors `cpus` alone; once in `change`, the nice values and
//! affinities of all its threads are changed from outside. With a `ring` events come through one of
//! that size, which is to be too small: the run and its trace have to say how many are lost. No
//! more than `waiting` events may wait until they are written, and none may be lost for that; once
//! a second it takes `slow` to write them. The first job of the task `stuck`, counted from 1, never
//! comes to its end. With `waits` ordinary threads want all processors, and none may be kept from
//! its own for longer; that jobs come late then is no matter of the case. The kernel lets a thread
//! wait for `watchdog`, and the program for a third of that. The first jobs are released so much
//! `later` than the threads are there. The jobs of the first `triggers` tasks are released by
//! FIFOs, into which is written about once a period at random times, or once in `gap`; into the
//! first one `burst` bytes at once, too. With `peers` it is told how long releases take, of the
//! same set from user space and of cyclictest as well. The first `programs` tasks are programs: one
//! of several threads and processes, one that sleeps again and again, one that ends; or all of them
//! do what `kind` says (`programs::be`). With `asks` they ask for their jobs; every third one joins
//! from outside, and the one before it ends after some jobs. With `beyond` they go on beyond their
//! budgets, in time that no job needs, and have to get it. With `pinned` threads of the jobs' class
//! are behind all jobs, one for each set of processors, on which alone it may run, and none may
//! wait for longer. With `lent` a real-time thread asks for what the first program holds, so long
//! after the program for the kernel is there, and the run has to end and say so. With `maps` jobs
//! map and unmap memory all the time, so that they are preempted with what every thread of their
//! process needs to go on, and to end.

use generate::{Amount, Method, Range, Recipe};
use model::{
    Bytes, CpuSet, Details, Duration, Enforcement, Error, Ratio, Result, TaskId, TaskSet, Timing,
    Trigger,
};
use policy::Spec;

/// One of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The name of its trace.
    pub name: String,
    /// The policy.
    pub policy: Spec,
    /// How long it runs.
    pub horizon: Duration,
    /// The task set, as written.
    pub set: String,
    /// What happens to overruns.
    pub enforcement: Enforcement,
    /// The part of its WCET that a job executes.
    pub execution: Ratio,
    /// The process that runs it is killed (signal 9) so long after its start, and everything must
    /// be as it was before.
    pub kill: Option<Duration>,
    /// The working set of each task; policies that ask for none need none.
    pub wss: Option<Bytes>,
    /// How long a decision may be overdue, where that is not what the judge allows every case.
    pub tolerance: Option<Duration>,
    /// The same of those of a thousand but one.
    pub usual: Option<Duration>,
    /// So many decisions at least are to be compared with the simulator's.
    pub decisions: usize,
    /// The processors that it uses; `None`: all.
    pub cpus: Option<CpuSet>,
    /// Once in so long, nice values and affinities of the run's threads are changed from outside.
    pub change: Option<Duration>,
    /// How large the ring of events is, where events are to be lost.
    pub ring: Option<Bytes>,
    /// How many events may wait until they are written; `None`: more than a case brings.
    pub waiting: Option<usize>,
    /// How long it takes to write events, once a second.
    pub slow: Option<Duration>,
    /// The task, from 0, whose first job never comes to its end.
    pub stuck: Option<usize>,
    /// For how long an ordinary thread may be kept from its processor.
    pub waits: Option<Duration>,
    /// So many tasks have triggers.
    pub triggers: u32,
    /// So many releases of the first of them are asked for at once.
    pub burst: u64,
    /// How long releases take is told, also of the same set from user space and of cyclictest.
    pub peers: bool,
    /// A release of each is asked for about once in so long; `None`: about once a period.
    pub gap: Option<Duration>,
    /// So many tasks are programs.
    pub programs: u32,
    /// All of them do this; `None`: different things in turn.
    pub kind: Option<String>,
    /// They go on beyond their budgets.
    pub beyond: bool,
    /// They ask for their jobs.
    pub asks: bool,
    /// Jobs map and unmap memory.
    pub maps: bool,
    /// The processors on which threads behind all jobs may run, and for how long they may wait.
    pub pinned: Option<(Vec<CpuSet>, Duration)>,
    /// A real-time thread asks for what the first program holds, so long after the start.
    pub lent: Option<Duration>,
    /// How long the kernel lets a thread wait, where that is not what it always does.
    pub watchdog: Option<Duration>,
    /// How long after its beginning the first jobs are released.
    pub later: Option<Duration>,
}

/// Reads a file of cases. Empty lines and those that begin with `#` say nothing.
///
/// # Errors
/// A line that is no case.
pub fn read(text: &str) -> Result<Vec<Case>> {
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(line, number)| one(line).map_err(|e| e.at(format!("line {number} of the cases"))))
        .collect()
}

fn one(line: &str) -> Result<Case> {
    let bad = || {
        Error::new(format!("`{line}` is no case"))
            .remedy("write `NAME POLICY FOR SET`, such as `a g-edf 1s random:8:2.5:1`")
    };
    let mut words = line.split_whitespace();
    let mut next = || words.next().ok_or_else(bad);
    let mut case = Case {
        name: next()?.to_owned(),
        policy: next()?.parse()?,
        horizon: next()?.parse()?,
        set: next()?.to_owned(),
        enforcement: Enforcement::Off,
        execution: "0.9".parse()?,
        kill: None,
        wss: None,
        tolerance: None,
        usual: None,
        decisions: 1,
        cpus: None,
        change: None,
        ring: None,
        waiting: None,
        slow: None,
        stuck: None,
        waits: None,
        triggers: 0,
        burst: 0,
        gap: None,
        watchdog: None,
        later: None,
        peers: false,
        programs: 0,
        kind: None,
        beyond: false,
        asks: false,
        maps: false,
        pinned: None,
        lent: None,
    };
    for word in words {
        match word.split_once('=') {
            Some(("enforcement", how)) => case.enforcement = how.parse()?,
            Some(("execution", part)) => case.execution = part.parse()?,
            Some(("kill", after)) => case.kill = Some(after.parse()?),
            Some(("wss", size)) => case.wss = Some(size.parse()?),
            Some(("tolerance", time)) => case.tolerance = Some(time.parse()?),
            Some(("usual", time)) => case.usual = Some(time.parse()?),
            Some(("stuck", task)) => {
                let task: usize = task.parse().map_err(|_| bad())?;
                case.stuck = Some(task.checked_sub(1).ok_or_else(bad)?);
            }
            Some(("later", time)) => case.later = Some(time.parse()?),
            Some(("watchdog", time)) => case.watchdog = Some(time.parse()?),
            Some(("pinned", given)) => {
                let (places, most) = given.rsplit_once(':').ok_or_else(bad)?;
                let places = places.split('/').map(str::parse);
                case.pinned = Some((places.collect::<Result<_>>()?, most.parse()?));
            }
            Some(("lent", after)) => case.lent = Some(after.parse()?),
            Some(("waits", most)) => case.waits = Some(most.parse()?),
            Some(("ring", size)) => case.ring = Some(size.parse()?),
            Some(("waiting", count)) => case.waiting = Some(count.parse().map_err(|_| bad())?),
            Some(("slow", time)) => case.slow = Some(time.parse()?),
            Some(("cpus", cpus)) => case.cpus = Some(cpus.parse()?),
            Some(("change", every)) => case.change = Some(every.parse()?),
            Some(("decisions", least)) => case.decisions = least.parse().map_err(|_| bad())?,
            Some(("triggers", tasks)) => case.triggers = tasks.parse().map_err(|_| bad())?,
            Some(("peers", "yes")) => case.peers = true,
            Some(("maps", "yes")) => case.maps = true,
            Some(("beyond", "yes")) => case.beyond = true,
            Some(("asks", "yes")) => case.asks = true,
            Some(("programs", tasks)) => case.programs = tasks.parse().map_err(|_| bad())?,
            Some(("kind", word)) => case.kind = Some(word.to_owned()),
            Some(("gap", time)) => case.gap = Some(time.parse()?),
            Some(("burst", count)) => case.burst = count.parse().map_err(|_| bad())?,
            _ => return Err(bad()),
        }
    }
    Ok(case)
}

impl Case {
    /// The task set; `file` reads a file of the guest.
    ///
    /// # Errors
    /// No such set.
    pub fn tasks(&self, file: impl Fn(&str) -> Result<String>) -> Result<TaskSet> {
        let set = match self.set.split_once(':') {
            Some(("random", given)) => random(given),
            Some(("whole", given)) => whole(&random(given)?),
            Some(("tasks", given)) => listed(given),
            _ => model::taskfile::from_toml(&file(&self.set)?),
        }?;
        if self.wss.is_none() && self.triggers == 0 {
            return Ok(set);
        }
        let details = set.ids().map(|task| {
            let known = set.details(task).cloned();
            let known = known.unwrap_or_else(|| Details::named(set.name(task)));
            let triggered = task.0 < self.triggers;
            Details {
                wss: self.wss.or(known.wss),
                trigger: triggered
                    .then(|| Trigger::Fifo(self.fifo(task)))
                    .or(known.trigger.clone()),
                ..known
            }
        });
        let details = details.collect();
        set.with_details(details)
    }

    /// The FIFO that releases the jobs of a task, where `triggers` says that one does.
    pub fn fifo(&self, task: TaskId) -> String {
        format!("/out/{}.{}", self.name, task.0)
    }
}

fn listed(given: &str) -> Result<TaskSet> {
    let bad = || {
        Error::new(format!("`tasks:{given}` is no set"))
            .remedy("write `tasks:WCET/PERIOD[/DEADLINE][+PHASE],…`")
    };
    let (mut timings, mut details) = (Vec::new(), Vec::new());
    for (task, text) in given.split(',').enumerate() {
        let (times, phase) = text.split_once('+').unwrap_or((text, "0ms"));
        let times: Vec<Duration> = (times.split('/')).map(str::parse).collect::<Result<_>>()?;
        let (wcet, period, deadline) = match times[..] {
            [wcet, period] => (wcet, period, period),
            [wcet, period, deadline] => (wcet, period, deadline),
            _ => return Err(bad()),
        };
        timings.push(Timing {
            wcet,
            period,
            deadline,
        });
        details.push(Details {
            phase: phase.parse()?,
            ..Details::named(format!("T{}", task + 1))
        });
    }
    TaskSet::from_timings(timings)?.with_details(details)
}

/// The same tasks with periods, which are their deadlines, of whole milliseconds.
fn whole(set: &TaskSet) -> Result<TaskSet> {
    let timings = set.timings().iter().map(|timing| {
        let period = Duration::from_millis(timing.period.nanos() / 1_000_000);
        Timing::implicit(timing.wcet.min(period), period)
    });
    TaskSet::from_timings(timings.collect())
}

fn random(given: &str) -> Result<TaskSet> {
    let bad = || {
        Error::new(format!("`random:{given}` is no set"))
            .remedy("write `random:TASKS:UTILIZATION:SEED`")
    };
    let words: Vec<&str> = given.split(':').collect();
    let [tasks, total, seed] = words[..] else {
        return Err(bad());
    };
    let count: u32 = tasks.parse().map_err(|_| bad())?;
    let recipe = Recipe {
        amount: Amount::Total {
            method: Method::RandFixedSum,
            tasks: count,
            total: total.parse()?,
            // So many that each has to be small.
            range: Range::new(if count > 100 { 0.002 } else { 0.02 }, 0.8)?,
        },
        periods: "uniform:10ms-60ms".parse()?,
        deadlines: "implicit".parse()?,
    };
    recipe.prepare()?.draw(seed.parse().map_err(|_| bad())?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cases() {
        let text = "# a remark\n\nx g-edf 1s random:5:1.5:7 enforcement=exact execution=1.2\n\
                    y ca-edf 1s random:5:1.5:7 wss=2MiB tolerance=3ms usual=2ms decisions=70\n\
                    z p-edf 1s random:5:1.5:7 triggers=2 burst=300\n";
        let cases = read(text).unwrap();
        assert_eq!(cases.len(), 3);
        assert_eq!(cases[0].enforcement, Enforcement::Exact);
        let allowed = |case: &Case| (case.tolerance, case.usual);
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(allowed(&cases[0]), (None, None));
        assert_eq!(allowed(&cases[1]), (ms(3), ms(2)));
        assert_eq!((cases[0].decisions, cases[1].decisions), (1, 70));
        let set = cases[0].tasks(|_| unreachable!()).unwrap();
        assert_eq!(set.len(), 5);
        assert_eq!(set, cases[0].tasks(|_| unreachable!()).unwrap());
        assert_eq!(set.wss(TaskId(4)), None);
        let given = cases[1].tasks(|_| unreachable!()).unwrap();
        assert_eq!(given.timings(), set.timings());
        assert_eq!(given.wss(TaskId(4)), Some(Bytes::from_mib(2)));
        let line = "z p-edf 90s tasks:1ms/10ms,2ms/40s/1s+80s cpus=0-2 change=3ms stuck=2";
        let case = &read(line).unwrap()[0];
        let set = case.tasks(|_| unreachable!()).unwrap();
        let second = set.timings()[1];
        let seconds = Duration::from_secs;
        assert_eq!((second.period, second.deadline), (seconds(40), seconds(1)));
        assert_eq!(set.details(TaskId(1)).unwrap().phase, seconds(80));
        assert_eq!(set.timings()[0].deadline, Duration::from_millis(10));
        assert_eq!(case.cpus.as_ref().map(model::CpuSet::len), Some(3));
        assert_eq!((case.change, case.stuck), (ms(3), Some(1)));
        let given = cases[2].tasks(|_| unreachable!()).unwrap();
        let has = |task| given.details(TaskId(task)).unwrap().trigger.is_some();
        assert_eq!([0, 1, 2, 4].map(has), [true, true, false, false]);
        assert_eq!(cases[2].burst, 300);
        let line = "p g-edf 1s tasks:1ms/10ms pinned=0,3/1:100ms lent=300ms";
        let case = &read(line).unwrap()[0];
        let (places, most) = case.pinned.as_ref().unwrap();
        assert_eq!(places.iter().map(CpuSet::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((Some(*most), case.lent), (ms(100), ms(300)));
        let whole = read("w pd2 1s whole:5:1.5:7").unwrap()[0]
            .tasks(|_| unreachable!())
            .unwrap();
        let is_whole = |t: &Timing| t.period.nanos().is_multiple_of(1_000_000);
        assert!(whole.timings().iter().all(is_whole));
        assert_eq!(whole.len(), 5);
        for bad in [
            "x g-edf 1s",
            "x g-edf 1s tasks:1ms",
            "x g-edf 1s tasks:1ms/10ms stuck=0",
            "x g-edf 1s tasks:1ms/10ms+soon",
            "x g-edf 1s random:5",
            "x y 1s z",
            "x g-edf 1s z how=so",
            "x g-edf 1s random:5:1.5:7 decisions=many",
            "x g-edf 1s random:5:1.5:7 pinned=0,3",
        ] {
            let cases = read(bad).and_then(|c| c[0].tasks(|name| Err(Error::new(name))));
            assert!(cases.is_err(), "{bad}");
        }
    }
}
