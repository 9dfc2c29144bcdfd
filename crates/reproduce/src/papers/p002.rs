//! 002, chapters 2 to 5 and Appendix A: schedules, assignments, overheads, cache delays.

use super::{cpmd, overheads};
use crate::entry::{Entry, State};
use crate::reading::{
    Answers, cache_line, cache_sharers, cache_size, cache_ways, missed_deadlines, misses, number,
    processors, processors_of,
};

fn illustration(id: &str, title: &str, place: &str, here: &str) -> Entry {
    Entry::new(id, title, place, State::Illustration(here.to_owned()))
}

fn reproduced(id: &str, title: &str, place: &str) -> Entry {
    Entry::new(id, title, place, State::Reproduced)
}

// Longer than other functions: one block an entry, no logic.
fn schedules() -> Vec<Entry> {
    let one = "examples/figures/one-processor.toml";
    let two = "examples/figures/two-processors.toml";
    let partition = "examples/figures/partition.json";
    vec![
        illustration(
            "002-fig2.1",
            "multiprocessors with private and with shared caches",
            "§2.1",
            "`warmset platform --picture FILE` draws such pictures of real machines",
        ),
        reproduced(
            "002-fig2.2",
            "three tasks on one processor under EDF and RM",
            "§2.2.1",
        )
        .run(&format!(
            "simulate {one} --policy p-edf -m 1 --for 15ms --trace out/edf.wtrace"
        ))
        .run(&format!(
            "simulate {one} --policy p-rm -m 1 --for 15ms --trace out/rm.wtrace"
        ))
        .run("trace export out/edf.wtrace --to svg --rows tasks --to-time 12ms -o out/edf.svg")
        .run("trace export out/rm.wtrace --to svg --rows tasks --to-time 12ms -o out/rm.svg")
        .number("EDF: deadlines missed", (0.0, 0.0), "", number(0, "/misses", 1.0))
        .number(
            "RM: T3 misses its deadline at",
            (8.0, 0.0),
            "",
            number(1, "/first_miss/deadline_ns", 1e6),
        )
        .holds("RM: it is T3 that misses it", |a| {
            Some(a.get(1, "/first_miss/task")? == "T3")
        })
        .note("A unit of the paper is 1 ms here. The schedules are drawn in out/edf.svg and out/rm.svg."),
        illustration(
            "002-fig2.3",
            "partitioned scheduling on a quad-core platform",
            "§2.2.2",
            "the policies `p-edf` and `p-rm`",
        ),
        illustration(
            "002-fig2.4",
            "global scheduling on it",
            "§2.2.2",
            "the policy `g-edf`",
        ),
        illustration(
            "002-fig2.5",
            "clustered scheduling on it",
            "§2.2.2",
            "the policy `c-edf:l2`",
        ),
        reproduced(
            "002-fig2.6",
            "four tasks on two processors under P-EDF and G-EDF",
            "§2.2.3",
        )
        .run(&format!(
            "simulate {two} --policy p-edf -m 2 --assignment {partition} --for 20ms --trace out/p-edf.wtrace"
        ))
        .run(&format!(
            "simulate {two} --policy g-edf -m 2 --for 20ms --trace out/g-edf.wtrace"
        ))
        .run("trace stats out/p-edf.wtrace --jobs out/p-edf.csv")
        .run("trace export out/g-edf.wtrace --to csv -o out/g-edf.csv")
        .run("trace export out/p-edf.wtrace --to svg --rows tasks --to-time 18500us -o out/p-edf.svg")
        .run("trace export out/g-edf.wtrace --to svg --rows tasks --to-time 18500us -o out/g-edf.svg")
        .run(&format!("check {two} -m 2 --policy p-edf"))
        .holds("P-EDF: T1 misses its deadlines at 9 and 18", |a| {
            Some(missed_deadlines(a, "p-edf.csv", "T1")? == [9.0, 18.0])
        })
        .holds("P-EDF: T2 misses its deadline at 16", |a| {
            Some(missed_deadlines(a, "p-edf.csv", "T2")? == [16.0])
        })
        .number("P-EDF: deadlines that T4 misses", (0.0, 0.0), "", misses(0, "T4"))
        .holds("no partition onto two processors exists", |a| {
            Some(a.get(6, "/policies/0/schedulable")? == false)
        })
        .number(
            "G-EDF: deadlines missed",
            (0.0, 0.0),
            "",
            number(1, "/misses", 1.0),
        )
        .holds("G-EDF: the second job of T2 migrates", |a| {
            Some(processors_of(a, "g-edf.csv", "T2", "2")?.len() == 2)
        })
        .note(
            "A unit of the paper is 1 ms here. The caption has the job migrate from P1 to P2; \
                 which processor is called P1 is a matter of ties.",
        ),
        reproduced(
            "002-fig2.7",
            "an EDF-fm schedule with the overheads of the kernel",
            "§2.4",
        )
        .run(
            "simulate examples/overheads/tasks.toml --policy edf-fm -m 2 --assignment \
                 examples/overheads/who.json --releases examples/overheads/releases.txt \
                 --release-on T4=0 --profile examples/overheads/profile.toml --for 16ms --trace out/overheads.wtrace",
        )
        .run("trace export out/overheads.wtrace --to svg --to-time 16ms -o out/overheads.svg")
        .number("jobs", (5.0, 0.0), "", number(0, "/jobs", 1.0))
        .number("deadlines missed", (0.0, 0.0), "", number(0, "/misses", 1.0))
        .holds(
            "release, scheduling, context switch and timer transfer are charged to T1",
            |a| {
                let lost = &crate::reading::task(a, 0, "T1")?["lost_ns"];
                let kinds = ["release", "scheduling", "context-switch", "timer-transfer"];
                Some(
                    kinds
                        .iter()
                        .all(|kind| lost[kind].as_u64().is_some_and(|ns| ns > 0)),
                )
            },
        )
        .holds("T4, released on the other processor, is charged an IPI", |a| {
            let lost = &crate::reading::task(a, 0, "T4")?["lost_ns"];
            Some(lost["ipi-latency"].as_u64().is_some_and(|ns| ns > 0))
        })
        .note("The paper magnifies overheads and prints no lengths; the picture is in out/overheads.svg."),
        illustration(
            "002-fig3.1",
            "the parts of the latency of an operating system",
            "§3.2",
            "docs/running.md tells how late dispatchers and jobs are in a run",
        ),
        illustration(
            "002-fig3.2",
            "a dual-kernel approach",
            "§3.2",
            "Warmset runs on one kernel, stock Linux",
        ),
    ]
}

/// The share of a task on a processor, from the first policy of an answer of `check`.
fn share(task: &'static str, processor: usize) -> impl Fn(&Answers) -> Option<f64> {
    move |a| {
        let tasks = a
            .get(0, &format!("/policies/0/clusters/{processor}/tasks"))?
            .as_array()?;
        tasks.iter().find(|t| t["task"] == task)?["utilization"].as_f64()
    }
}

/// A number of the assignment in an answer of `check`.
fn assigned(pointer: &str, scale: f64) -> impl Fn(&Answers) -> Option<f64> + use<> {
    number(0, &format!("/policies/0/assignment{pointer}"), scale)
}

const SEVEN: &str = "check examples/figures/seven-tasks.toml -m 3";

fn edf_fm(id: &str, title: &str) -> Entry {
    reproduced(id, title, "§4.1")
        .run(&format!("{SEVEN} --soft --policy edf-fm"))
        .number(
            "utilization of the set",
            (2.88, 0.005),
            "",
            number(0, "/utilization", 1.0),
        )
        .number("share of T3 on P1", (2.0 / 20.0, 1e-6), "", share("T3", 0))
        .number("share of T3 on P2", (7.0 / 20.0, 1e-6), "", share("T3", 1))
        .number("share of T5 on P2", (5.0 / 20.0, 1e-6), "", share("T5", 1))
        .number("share of T5 on P3", (3.0 / 20.0, 1e-6), "", share("T5", 2))
        .number("of nine jobs of T3, run on P1", (2.0, 0.0), "", |a| {
            Some(9.0 * assigned("/tasks/2/part", 1.0)(a)? / assigned("/tasks/2/whole", 1.0)(a)?)
        })
}

fn edf_wm(id: &str, title: &str) -> Entry {
    let mut entry = reproduced(id, title, "§4.2").run(&format!("{SEVEN} --policy edf-wm"));
    for (slice, (processor, budget)) in [(3, 0.5), (2, 0.43), (1, 0.07)].into_iter().enumerate() {
        let at = |key: &str| format!("/tasks/6/{slice}/{key}");
        let cpu = assigned(&at("cpu"), 1.0);
        entry = entry
            .number(
                &format!("slice {} of T7", slice + 1),
                (budget, 0.005),
                "",
                assigned(&at("budget_ns"), 1e6),
            )
            .number(
                &format!("processor of slice {}", slice + 1),
                (f64::from(processor), 0.0),
                "",
                move |a| Some(cpu(a)? + 1.0),
            )
            .number(
                &format!("window of slice {}", slice + 1),
                (1.0, 0.0),
                "",
                assigned(&at("window_ns"), 1e6),
            );
    }
    entry.note("A unit of the paper is 1 ms here; its first processor is processor 0.")
}

/// How long a server is served in a slot, in milliseconds.
fn served(server: u64) -> impl Fn(&Answers) -> Option<f64> {
    move |a| {
        let timetables = a.get(0, "/policies/0/assignment/timetables")?.as_array()?;
        let turns = timetables
            .iter()
            .filter_map(|t| t["turns"].as_array())
            .flatten();
        let own = turns.filter(|turn| turn["server"] == server);
        let length =
            |turn: &serde_json::Value| Some(turn["end_ns"].as_f64()? - turn["start_ns"].as_f64()?);
        let all: Option<Vec<f64>> = own.map(length).collect();
        Some(all?.iter().sum::<f64>() / 1e6)
    }
}

fn nps_f(id: &str, title: &str) -> Entry {
    let mut entry = reproduced(id, title, "§4.3")
        .run(&format!("{SEVEN} --policy nps-f:delta=5"))
        .number("time slot", (0.6, 0.0), "", assigned("/slot_ns", 1e6));
    for (server, length) in [0.55, 0.52, 0.50, 0.22].into_iter().enumerate() {
        // The paper cuts 0.225 to 0.22.
        entry = entry.number(
            &format!("requirement of server N{}", server + 1),
            (length, 0.0051),
            "",
            served(server as u64),
        );
    }
    entry
        .holds("T1, T2; T3, T4; T5, T6 and T7 have a server each", |a| {
            let servers = a.get(0, "/policies/0/assignment/server_of")?;
            Some(*servers == serde_json::json!([0, 0, 1, 1, 2, 2, 3]))
        })
        .note("A unit of the paper is 1 ms here.")
}

fn overheads() -> Vec<Entry> {
    let mut all = vec![xeon()];
    all.extend(overheads::figures());
    all
}

fn xeon() -> Entry {
    Entry::new(
        "002-fig5.1",
        "the caches of the Intel Xeon L7455",
        "ch. 5",
        State::Drawn,
    )
    .run("platform --platform xeon-l7455")
    .number("processors", (24.0, 0.0), "", |a| processors(a, 0))
    .number("L1", (32.0, 0.0), "KiB", |a| cache_size(a, 0, 1))
    .number("L1, ways", (8.0, 0.0), "", |a| cache_ways(a, 0, 1))
    .number("L2", (3.0, 0.0), "MiB", |a| {
        Some(cache_size(a, 0, 2)? / 1024.0)
    })
    .number("L2, ways", (12.0, 0.0), "", |a| cache_ways(a, 0, 2))
    .number("processors that share an L2", (2.0, 0.0), "", |a| {
        cache_sharers(a, 0, 2)
    })
    .number("L3", (12.0, 0.0), "MiB", |a| {
        Some(cache_size(a, 0, 3)? / 1024.0)
    })
    .number("L3, ways", (12.0, 0.0), "", |a| cache_ways(a, 0, 3))
    .number("processors that share an L3", (6.0, 0.0), "", |a| {
        cache_sharers(a, 0, 3)
    })
    .number("line", (64.0, 0.0), "B", |a| cache_line(a, 0, 3))
}

fn delays() -> Vec<Entry> {
    let mut all = vec![
        illustration(
            "002-fig5.4",
            "how one sample of a cache delay is taken",
            "§5.2.1",
            "`warmset measure cpmd` takes its samples so (docs/measuring.md)",
        ),
        cpmd::figure(
            "002-fig5.5",
            "§5.2.2",
            "worst-case cache delay by working set size, under load and idle",
            &[1, 2],
        ),
        cpmd::figure(
            "002-fig5.6",
            "§5.2.2",
            "average cache delay by working set size, under load and idle",
            &[3, 4],
        ),
        cpmd::scatter(
            "002-fig5.7",
            "§5.2.2",
            "samples of preemptions and L3-migrations by preemption length, under load",
        ),
        cpmd::scatter(
            "002-fig5.8",
            "§5.2.2",
            "samples of L2- and memory-migrations by preemption length, under load",
        ),
        Entry::new(
            "002-fig5.9",
            "worst-case cache delay by number of tasks, by the schedule-sensitive method",
            "§5.2.2",
            State::Measured(cpmd::SCHEDULED_DIFFERS.to_owned()),
        )
        .run_sized(cpmd::SCHEDULED_QUICK, cpmd::SCHEDULED),
    ];
    all.extend(cpmd::observations(|n| format!("002-obs5.2.{n}"), "§5.2.2"));
    all.extend((1..=4).map(|n| cpmd::table(&format!("002-tabA.{n}"), n)));
    all.push(cpmd::modelled(
        "002-tabA.3-model",
        3,
        "--samples 2 --wss 4KiB",
        "the model has a tenth to a fifth less than the paper from 64 KB on: nobody shares the \
         bandwidth of its buses (docs/measuring.md)",
    ));
    all.push(cpmd::modelled(
        "002-tabA.4-model",
        4,
        "--samples 4 --wss 4KiB,64KiB,256KiB",
        "preemptions cost nothing in a model without an operating system, small working sets a \
         third more than in the paper, and sets above 1 MiB more, of which its caches hold less \
         (docs/measuring.md)",
    ));
    all
}

/// The entries of these chapters.
pub fn entries() -> Vec<Entry> {
    let mut all = schedules();
    all.extend([
        edf_fm(
            "002-ex4.1.1",
            "the shares of EDF-fm for seven tasks on three processors",
        ),
        edf_fm("002-fig4.1", "the assignment of Example 4.1.1 under EDF-fm"),
        edf_wm("002-ex4.2.1", "the slices of EDF-WM for the same tasks"),
        edf_wm("002-fig4.2", "the assignment of Example 4.2.1 under EDF-WM"),
        nps_f("002-ex4.3.1", "the servers of NPS-F for the same tasks"),
        nps_f("002-fig4.3", "the assignment of Example 4.3.1 under NPS-F"),
    ]);
    all.extend(overheads());
    all.extend(delays());
    all
}
