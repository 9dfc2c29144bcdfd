//! SCHED_DEADLINE: a constant-bandwidth server for each task, and a cpuset for each cluster.
//!
//! The kernel schedules what is in one root domain by global EDF, and makes a root domain of each
//! partition of cpusets (`Documentation/scheduler/sched-deadline.rst`, §5). Its admission control
//! is no test of deadlines, and is done here as it is there (§4): so a plan that Linux would refuse
//! is refused before.

use super::carried::{Carried, Placed};
use super::shell::{body, comment, notes};
use super::{Exported, File};
use model::{CpuSet, Duration, Error, Result};

/// The kernel counts bandwidth in parts of this (`BW_SHIFT`).
const UNIT: u128 = 1 << 20;
/// Shorter budgets are refused (`DL_SCALE`).
const SHORTEST: Duration = Duration::from_nanos(1 << 10);
/// Periods outside are refused (`kernel.sched_deadline_period_min_us` and `_max_us` as they are by
/// themselves).
const PERIODS: [Duration; 2] = [Duration::from_micros(100), Duration::from_micros(1 << 22)];
/// The part of a processor that is given away (`kernel.sched_rt_runtime_us` by
/// `kernel.sched_rt_period_us` as they are by themselves).
const GIVEN: u128 = UNIT * 95 / 100;
/// What the fair server has of it from Linux 6.12 on.
const FAIR: u128 = UNIT * 5 / 100;

/// The script.
///
/// # Errors
/// Times that the kernel refuses; more bandwidth than it gives.
pub(super) fn script(carried: &Carried<'_>, reserve: u32) -> Result<Exported> {
    let mut all = Vec::new();
    let mut budgets = Vec::with_capacity(carried.tasks.len());
    for task in &carried.tasks {
        budgets.push(budget(task, reserve).map_err(|e| e.at(format!("task {}", task.name)))?);
    }
    let mut admitted = String::new();
    for (place, cpus) in carried.places.iter().enumerate() {
        let here = carried.tasks.iter().zip(&budgets);
        let here = here.filter(|(task, _)| task.place == place);
        let asked: u128 = here
            .map(|(task, budget)| bandwidth(*budget, task.period))
            .sum();
        all.extend(admit(cpus, asked)?);
        admitted += &format!(
            "# Admission control, processors {cpus}: {} of {}\n",
            share(asked),
            share(GIVEN * cpus.len() as u128)
        );
    }
    all.push(match reserve {
        0 => {
            "a job that executes for longer than its budget waits for its next period: budgets are \
              the WCETs, to the nanosecond; give room by `--reserve`"
                .to_owned()
        }
        percent => format!(
            "budgets are {percent} % longer than the WCETs: the plan holds with them if `check \
             --plan` says that all WCETs could grow by as much"
        ),
    });
    if carried.places.len() > 1 {
        all.push(
            "cpusets hold whole processes: the tasks of one process have to be in one cluster"
                .to_owned(),
        );
    }
    all.extend(notes(&carried.tasks));
    Ok(Exported {
        files: vec![File {
            name: "plan.sh".to_owned(),
            text: text(carried, &budgets, &admitted),
        }],
        notes: all,
    })
}

fn text(carried: &Carried<'_>, budgets: &[Duration], admitted: &str) -> String {
    let mut text = format!(
        "#!/bin/sh\n\
         # A plan of Warmset under {}, by SCHED_DEADLINE.\n\
         #\n\
         # NAME=THREAD gives a thread that runs (by its id, or that of a process with one thread)\n\
         # budget, deadline and period of this task. It takes root.\n\
         #\n{admitted}set -eu\n",
        comment(&carried.policy)
    );
    text += &cpusets(&carried.places);
    text += "\nplace() { # CGROUP BUDGET DEADLINE PERIOD THREAD\n    \
             [ -z \"$1\" ] || echo \"$5\" >\"$cgroups/$1/cgroup.procs\"\n    \
             chrt -R -d -T \"$2\" -D \"$3\" -P \"$4\" -p 0 \"$5\"\n}\n";
    if carried.tasks.iter().any(|task| task.command.is_some()) {
        // The shell moves itself, and becomes the program.
        text += "\nstart() { # CGROUP BUDGET DEADLINE PERIOD PROGRAM...\n    \
                 group=${1:+$cgroups/$1/cgroup.procs} budget=$2 deadline=$3 period=$4\n    shift 4\n    \
                 sh -c '[ -z \"$0\" ] || echo $$ >\"$0\"; exec \"$@\"' \"$group\" \\\n        \
                 chrt -R -d -T \"$budget\" -D \"$deadline\" -P \"$period\" 0 \"$@\" &\n}\n";
    }
    let by_name = |task: &Placed<'_>| {
        let place = carried.tasks.iter().position(|t| t.name == task.name);
        let budget = place.map_or(task.wcet, |place| budgets[place]);
        format!(
            "\"$group_{}\" {} {} {}",
            task.place,
            budget.nanos(),
            task.deadline.nanos(),
            task.period.nanos()
        )
    };
    text += &body(&carried.tasks, by_name, by_name);
    text
}

/// A partition of cpusets for each cluster. The processors of a machine cannot all be given away:
/// where the plan has all of them, the first cluster stays in the root.
fn cpusets(places: &[CpuSet]) -> String {
    let all = places
        .iter()
        .fold(CpuSet::default(), |all, place| all.union(place));
    let mut text = "\n# Where version 2 of control groups is mounted.\n\
                    cgroups=${CGROUPS:-/sys/fs/cgroup}\n\n\
                    partition() { # NAME CPUS\n    \
                    echo +cpuset >\"$cgroups/cgroup.subtree_control\"\n    \
                    mkdir -p \"$cgroups/$1\"\n    \
                    echo \"$2\" >\"$cgroups/$1/cpuset.cpus\"\n    \
                    echo root >\"$cgroups/$1/cpuset.cpus.partition\"\n    \
                    state=$(cat \"$cgroups/$1/cpuset.cpus.partition\")\n    \
                    if [ \"$state\" != root ]; then\n        \
                    echo \"$0: the processors $2 cannot be set apart: $state\" >&2\n        \
                    exit 1\n    fi\n}\n\n"
        .to_owned();
    for (place, cpus) in places.iter().enumerate() {
        let make = format!("group_{place}=warmset-{place}\npartition warmset-{place} {cpus}\n");
        text += &match place {
            0 => format!(
                "if [ \"$(cat /sys/devices/system/cpu/online)\" = {all} ]; then\n    group_0=\nelse\n    \
                 {}\nfi\n",
                make.trim_end().replace('\n', "\n    ")
            ),
            _ => make,
        };
    }
    text
}

/// The budget of a task.
fn budget(task: &Placed<'_>, reserve: u32) -> Result<Duration> {
    let wcet = u128::from(task.wcet.nanos());
    let with_reserve = (wcet * u128::from(100 + reserve)).div_ceil(100);
    let budget = u64::try_from(with_reserve).map(Duration::from_nanos);
    let budget = budget.map_err(|_| Error::new("its budget is too long"))?;
    if task.deadline > task.period {
        return Err(Error::new(format!(
            "SCHED_DEADLINE takes no deadline ({}) after the period ({})",
            task.deadline, task.period
        ))
        .remedy("`warmset run --plan` runs it"));
    }
    if budget > task.deadline {
        return Err(Error::new(format!(
            "its budget {budget} is longer than its deadline {}",
            task.deadline
        ))
        .at("--reserve")
        .remedy("give less"));
    }
    if budget < SHORTEST {
        return Err(Error::new(format!(
            "the kernel refuses budgets below {SHORTEST}, and its is {budget}"
        ))
        .remedy("give it a longer WCET"));
    }
    if task.period < PERIODS[0] || task.period > PERIODS[1] {
        return Err(Error::new(format!(
            "the kernel refuses periods below {} and above {}, and its is {}",
            PERIODS[0], PERIODS[1], task.period
        ))
        .remedy("change kernel.sched_deadline_period_min_us or _max_us, or the period"));
    }
    Ok(budget)
}

/// The bandwidth of a server, as the kernel rounds it.
fn bandwidth(budget: Duration, period: Duration) -> u128 {
    u128::from(budget.nanos()) * UNIT / u128::from(period.nanos().max(1))
}

fn share(bandwidth: u128) -> String {
    format!("{:.3}", bandwidth as f64 / UNIT as f64)
}

/// Would the kernel take so much on these processors? What is to be said of it.
fn admit(cpus: &CpuSet, asked: u128) -> Result<Option<String>> {
    let m = cpus.len() as u128;
    let (given, with_fair) = (m * GIVEN, m * (GIVEN - FAIR));
    if asked > given {
        return Err(Error::new(format!(
            "admission control of Linux refuses the tasks on {cpus}: they ask for {} processors, \
             and it gives {}, 95 % of each",
            share(asked),
            share(given)
        ))
        .remedy(
            "plan with fewer tasks there, give a smaller --reserve, or raise \
             kernel.sched_rt_runtime_us",
        ));
    }
    Ok((asked > with_fair).then(|| {
        format!(
            "the tasks on {cpus} ask for {} processors: Linux 6.12 and later gives {} of these, as \
             5 % of each are its fair server's, and refuses the last ones",
            share(asked),
            share(with_fair)
        )
    }))
}
