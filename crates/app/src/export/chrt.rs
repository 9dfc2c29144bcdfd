//! A script of `taskset` and `chrt` lines: fixed priorities by SCHED_FIFO.

use super::carried::{Carried, Placed};
use super::shell::{body, comment, notes};
use super::{Exported, File};

/// The part of a processor that Linux leaves to real-time threads (`kernel.sched_rt_runtime_us`
/// as it is by itself; the fair server of Linux 6.12 and later keeps as much for others).
const REAL_TIME: f64 = 0.95;

/// The script.
pub(super) fn script(carried: &Carried<'_>) -> Exported {
    let mut text = format!(
        "#!/bin/sh\n\
         # A plan of Warmset under {}: fixed priorities by SCHED_FIFO.\n\
         #\n\
         # NAME=THREAD gives a thread that runs (by its id, or that of a process with one thread)\n\
         # the processors and the priority of this task. It takes root, or CAP_SYS_NICE.\n\
         #\n",
        comment(&carried.policy)
    );
    for task in &carried.tasks {
        text += &format!(
            "# {}: {} every {}, on {}\n",
            comment(&task.name),
            task.wcet,
            task.period,
            task.cpus
        );
    }
    text += "set -eu\n\n\
             place() { # CPUS PRIORITY THREAD\n    \
             taskset -p -c \"$1\" \"$3\" >/dev/null\n    \
             chrt -f -p \"$2\" \"$3\"\n}\n";
    if carried.tasks.iter().any(|task| task.command.is_some()) {
        text += "\nstart() { # CPUS PRIORITY PROGRAM...\n    \
                 cpus=$1 priority=$2\n    shift 2\n    \
                 taskset -c \"$cpus\" chrt -f \"$priority\" \"$@\" &\n}\n";
    }
    let how = |task: &Placed<'_>| format!("{} {}", task.cpus, task.priority.unwrap_or(1));
    text += &body(&carried.tasks, how, how);
    let mut all = full(carried);
    all.extend(notes(&carried.tasks));
    Exported {
        files: vec![File {
            name: "plan.sh".to_owned(),
            text,
        }],
        notes: all,
    }
}

/// What SCHED_FIFO lacks, and processors of which a plan asks more than Linux gives real-time
/// threads.
pub(super) fn full(carried: &Carried<'_>) -> Vec<String> {
    let mut notes = vec!["nothing holds a task to its WCET under SCHED_FIFO".to_owned()];
    for (place, cpus) in carried.places.iter().enumerate() {
        let here = carried.tasks.iter().filter(|task| task.place == place);
        let load: f64 = here
            .map(|task| task.wcet.nanos() as f64 / task.period.nanos() as f64)
            .sum();
        let share = load / cpus.len().max(1) as f64;
        if share > REAL_TIME {
            notes.push(format!(
                "the tasks on {cpus} ask for {:.1} % of it, and Linux stops real-time threads at 95 \
                 % (kernel.sched_rt_runtime_us; from 6.12 on its fair server)",
                share * 100.0
            ));
        }
    }
    notes
}
