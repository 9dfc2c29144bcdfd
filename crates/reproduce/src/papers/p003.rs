//! 003: a scheduler that knows the working sets of multithreaded tasks.

use super::overheads;
use crate::entry::{Entry, State};
use crate::reading::{Answers, co_scheduled, misses, number, task};
use std::collections::BTreeSet;

/// The share of quanta in which the working sets that run together exceed the cache of 1 MiB.
fn thrashing(a: &Answers, file: &str) -> Option<f64> {
    let quanta = co_scheduled(a, file, 8)?;
    let size = |group: &&str| match *group {
        "U" | "V" => 512,
        _ => 768,
    };
    let exceeds = |running: &&Vec<String>| {
        // W and X are one multithreaded task with one working set.
        let group = |name: &String| if name == "X" { "W" } else { group_name(name) };
        let groups: BTreeSet<&str> = running.iter().map(group).collect();
        groups.iter().map(size).sum::<u32>() > 1024
    };
    Some(quanta.iter().filter(exceeds).count() as f64 / quanta.len() as f64)
}

fn group_name(name: &str) -> &'static str {
    ["T", "U", "V", "W"]
        .into_iter()
        .find(|group| *group == name)
        .unwrap_or("T")
}

fn figure_2() -> Entry {
    let set = "examples/figures/cache.toml";
    Entry::new(
        "003-fig2",
        "five tasks on two processors with a shared cache, under G-EDF and the heuristic",
        "§3.1",
        State::Reproduced,
    )
    .run(&format!(
        "simulate {set} --policy g-edf:ties=index -m 2 --for 8ms --trace out/g-edf.wtrace"
    ))
    .run(&format!(
        "simulate {set} --policy ca-edf:cache=1MiB -m 2 --for 8ms --trace out/ca-edf.wtrace"
    ))
    .run("trace export out/g-edf.wtrace --to csv -o out/g-edf.csv")
    .run("trace export out/ca-edf.wtrace --to csv -o out/ca-edf.csv")
    .run("trace export out/g-edf.wtrace --to svg --rows tasks --to-time 8ms -o out/g-edf.svg")
    .run("trace export out/ca-edf.wtrace --to svg --rows tasks --to-time 8ms -o out/ca-edf.svg")
    .number(
        "(a) G-EDF thrashes the cache",
        (62.5, 0.0),
        "% of the time",
        |a| Some(100.0 * thrashing(a, "g-edf.csv")?),
    )
    .number(
        "(b) the heuristic thrashes the cache",
        (0.0, 0.0),
        "% of the time",
        |a| Some(100.0 * thrashing(a, "ca-edf.csv")?),
    )
    .number(
        "(b) deadlines that T misses",
        (1.0, 0.0),
        "",
        misses(1, "T"),
    )
    .number(
        "(b) the job of T that misses",
        (3.0, 0.0),
        "",
        number(1, "/first_miss/job", 1.0),
    )
    .number("(b) it is late by", (1.0, 0.0), "quanta", |a| {
        Some(task(a, 1, "T")?["tardiness"]["max_ns"].as_f64()? / 1e6)
    })
    .number(
        "(a) deadlines missed",
        (0.0, 0.0),
        "",
        number(0, "/misses", 1.0),
    )
    .note(
        "A quantum is 1 ms here. The figure's parameters follow from what the text says of every \
         quantum; equal deadlines are broken by the task alone, as in inset (a).",
    )
}

/// The entries of this paper.
pub fn entries() -> Vec<Entry> {
    let not_yet = |id: &str, title: &str, place: &str, missing: &str| {
        Entry::new(id, title, place, State::NotYet(missing.to_owned()))
    };
    let profiler = "the profiler that finds working set sizes online is not built";
    let counters = "needs counts of shared cache misses in a run";
    vec![
        Entry::new(
            "003-fig1",
            "processors that share a cache",
            "§1",
            State::Illustration(
                "`warmset platform --platform core-i7` shows the paper's machine".to_owned(),
            ),
        ),
        figure_2(),
        not_yet(
            "003-fig3",
            "the schedule of Fig. 2 while the profiler learns",
            "§3.2",
            profiler,
        ),
        not_yet(
            "003-fig4",
            "accuracy of the profiler by working set size",
            "§4.1",
            profiler,
        ),
        not_yet(
            "003-fig5",
            "decrease in the shared cache miss rate against G-EDF",
            "§4.2",
            counters,
        ),
        not_yet(
            "003-fig6",
            "decrease in the worst shared cache miss rate of a job against G-EDF",
            "§4.2",
            counters,
        ),
        not_yet(
            "003-tab1",
            "tardiness under G-EDF and the cache-aware scheduler",
            "§4.2",
            "the task sets of §4 are not generated; `warmset run --policy ca-edf` tells tardiness of \
             one set",
        ),
        overheads::table(),
        not_yet(
            "003-tab3",
            "worst execution times of video decoders under both",
            "§4.3",
            "the decoders and their film are not part of this project; `warmset run` runs programs \
             as tasks",
        ),
    ]
}
