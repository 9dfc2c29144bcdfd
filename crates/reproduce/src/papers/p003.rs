//! 003: a scheduler that knows the working sets of multithreaded tasks.

use super::overheads;
use crate::entry::{Entry, State};
use crate::reading::{Answers, misses, number, task};
use serde_json::Value;

fn figure_2() -> Entry {
    let set = "examples/figures/cache.toml";
    let on = "--platform examples/figures/shared-cache.toml --for 8ms";
    // The part of eight quanta of a millisecond, in percent.
    let thrashing = |step| number(step, "/thrashing_ns", 8e6 / 100.0);
    Entry::new(
        "003-fig2",
        "five tasks on two processors with a shared cache, under G-EDF and the heuristic",
        "§3.1",
        State::Reproduced,
    )
    .run(&format!(
        "simulate {set} --policy g-edf:ties=index {on} --trace out/g-edf.wtrace"
    ))
    .run(&format!(
        "simulate {set} --policy ca-edf {on} --trace out/ca-edf.wtrace"
    ))
    .run("trace export out/g-edf.wtrace --to svg --rows tasks --to-time 8ms -o out/g-edf.svg")
    .run("trace export out/ca-edf.wtrace --to svg --rows tasks --to-time 8ms -o out/ca-edf.svg")
    .number(
        "(a) G-EDF thrashes the cache",
        (62.5, 0.0),
        "% of the time",
        thrashing(0),
    )
    .number(
        "(b) the heuristic thrashes the cache",
        (0.0, 0.0),
        "% of the time",
        thrashing(1),
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

/// What the profiler knows of the multithreaded task with this task.
fn profiled<'a>(a: &'a Answers, step: usize, task: &str) -> Option<&'a Value> {
    let all = a.get(step, "/profiled")?.as_array()?;
    let has = |found: &&Value| {
        let tasks = found["tasks"].as_array();
        tasks.is_some_and(|tasks| tasks.iter().any(|t| t == task))
    };
    all.iter().find(has)
}

/// Its working set, in KiB.
fn estimate(step: usize, task: &'static str) -> impl Fn(&Answers) -> Option<f64> {
    move |a| Some(profiled(a, step, task)?["wss_bytes"].as_f64()? / 1024.0)
}

/// Whether estimates of all these have converged, and of those not.
fn converged(
    step: usize,
    have: &'static [&'static str],
    have_not: &'static [&'static str],
) -> impl Fn(&Answers) -> Option<bool> {
    move |a| {
        let of = |task: &&str| profiled(a, step, task)?["converged"].as_bool();
        let all = |tasks: &[&str], are: bool| {
            let mut all = true;
            for task in tasks {
                all &= of(task)? == are;
            }
            Some(all)
        };
        Some(all(have, true)? && all(have_not, false)?)
    }
}

fn figure_3() -> Entry {
    let mut entry = Entry::new(
        "003-fig3",
        "the schedule of Fig. 2 while the profiler learns",
        "§3.2",
        State::InPart(
            "in the model V's first job does not thrash beside W, whose accesses are half as \
             dense: its second one is complete by 6, and U's by 8; under the paper's assumption, \
             that it does, all of it comes out (crates/simulate/tests/profiler.rs)"
                .to_owned(),
        ),
    );
    // Steps 0 to 5.
    for quanta in [4, 6, 8, 9, 13, 21] {
        entry = entry.run(&format!(
            "simulate examples/figures/profiler.toml --policy ca-edf:wss=profiled --cache --fresh \
             --platform examples/figures/shared-cache.toml --for {quanta}ms"
        ));
    }
    for task in ["T", "U", "W"] {
        let what = format!("estimate of {task} at 4, its jobs having thrashed");
        entry = entry.number(&what, (1024.0, 0.0), "KiB", estimate(0, task));
    }
    for (what, step, task, known) in [
        ("estimate of T after T3", 1, "T", 768.0),
        ("estimate of U after U2", 1, "U", 512.0),
        ("estimate of V after V2", 2, "V", 512.0),
        ("estimate of W and X after W2 and X2", 4, "W", 768.0),
        ("estimate of W and X after W3 and X3", 5, "W", 768.0),
    ] {
        entry = entry.number(what, (known, 0.0), "KiB", estimate(step, task));
    }
    entry
        .holds(
            "by 8 the estimates of T have converged, those of U and W not",
            converged(2, &["T"], &["U", "W"]),
        )
        .holds(
            "by 9 those of U and V, too",
            converged(3, &["T", "U", "V"], &["W"]),
        )
        .holds("by 21 all", converged(5, &["T", "U", "V", "W"], &[]))
        .note(
            "In the model of a cache: each job walks a working set of its own three times, at \
             random. Known working sets would thrash from 0 to 4, too, and never from then on.",
        )
}

const SETS: &str = "cache sets --platform core-i7";

/// The largest of a value over all distributions, in percent.
fn most(key: &'static str, value: &'static str) -> impl Fn(&Answers) -> Option<f64> {
    move |a| {
        let rows = a.get(0, "/changes")?.as_array()?;
        let values = rows.iter().map(|row| row[key][value].as_f64());
        let all: Option<Vec<f64>> = values.collect();
        Some(100.0 * all?.into_iter().fold(0.0, f64::max))
    }
}

fn figure_4() -> Entry {
    let part = |key: &str| number(0, &format!("/accuracy/0/{key}"), 0.01);
    Entry::new(
        "003-fig4",
        "accuracy of the profiler by working set size",
        "§4.1",
        State::InPart(
            "in the paper's size (docs/cache.md) 90 % and 68 % of the estimates are so near: \
             working sets above 4 MiB, of which two thrash together, are found less exactly here"
                .to_owned(),
        ),
    )
    .run_sized(
        &format!("{SETS} --sets 1 --for 3s"),
        &format!("{SETS} --journal out/sets.jsonl"),
    )
    .at_least(
        "random patterns: estimates that are off by less than 10 %",
        91.0,
        "%",
        part("within_10_percent"),
    )
    .at_least(
        "random patterns: estimates that are off by less than 5 %",
        78.0,
        "%",
        part("within_5_percent"),
    )
    .holds("sequential patterns: estimates are close to zero", |a| {
        let rows = a.get(0, "/accuracy")?.as_array()?;
        let all = rows.iter().find(|row| row["pattern"] == "sequential")?;
        Some(all["mean_ratio"].as_f64()? < 0.1)
    })
    .note(
        "In a model of the paper's machine. What the prefetcher fetches counts as no miss here \
         either.",
    )
}

/// How many tasks have another rate, over all distributions.
fn all_tasks(a: &Answers, key: &str, value: &str) -> Option<f64> {
    let rows = a.get(0, "/changes")?.as_array()?;
    let of = |row: &Value| Some(row["mtts"].as_f64()? * row[key][value].as_f64()?);
    rows.iter().map(of).sum()
}

fn miss_rates(id: &str, title: &str, state: State) -> Entry {
    Entry::new(id, title, "§4.2", state)
        .run_sized(
            &format!("{SETS} --pattern random --sets 1 --for 3s"),
            &format!("{SETS} --pattern random --journal out/sets.jsonl"),
        )
        .note(
            "In a model of the paper's machine; rates that differ by no more than 0.01 count as \
             the same. At most: in the distribution with most of them.",
        )
}

fn figure_5() -> Entry {
    miss_rates(
        "003-fig5",
        "decrease in the shared cache miss rate against G-EDF",
        State::InPart(
            "in the paper's size (docs/cache.md) at most 46 % have a lower rate and 32 % a higher \
             one, most of which are in sets with several working sets that fill the cache"
                .to_owned(),
        ),
    )
    .number(
        "tasks whose rate is lower, at most",
        (33.20, 5.0),
        "%",
        most("average", "better"),
    )
    .at_most(
        "tasks whose rate is higher, at most",
        9.22,
        "%",
        most("average", "worse"),
    )
    .holds("rates are lower more often than higher", |a| {
        Some(all_tasks(a, "average", "better")? > all_tasks(a, "average", "worse")?)
    })
}

fn figure_6() -> Entry {
    miss_rates(
        "003-fig6",
        "decrease in the worst shared cache miss rate of a job against G-EDF",
        State::InPart(
            "here a task's worst job is no better than under G-EDF for most: some run while \
             working sets are not found yet, and where all of a set are, it is better for 44 % of \
             the tasks and worse for 17 % (docs/cache.md)"
                .to_owned(),
        ),
    )
    .unprinted(
        "tasks whose rate is lower, at most",
        "%",
        most("worst", "better"),
    )
    .unprinted(
        "tasks whose rate is higher, at most",
        "%",
        most("worst", "worse"),
    )
    .holds(
        "the rate is lower for the majority in every distribution",
        |a| {
            let rows = a.get(0, "/changes")?.as_array()?;
            let better = rows.iter().map(|row| row["worst"]["better"].as_f64());
            let all: Option<Vec<f64>> = better.collect();
            Some(all?.iter().all(|part| *part > 0.5))
        },
    )
}

fn table_1() -> Entry {
    let of = |policy: usize, key: &str| number(0, &format!("/tardiness/{policy}/{key}"), 1e6);
    Entry::new(
        "003-tab1",
        "tardiness under G-EDF and the cache-aware scheduler",
        "§4.2",
        State::InPart(
            "nothing but the schedule makes jobs late in the model: by distribution, in the \
             paper's size (docs/cache.md), 0 to 0.06 ms under G-EDF, 295 ms at most, and 0.09 to \
             37.6 ms under the cache-aware scheduler, 1.94 s at most"
                .to_owned(),
        ),
    )
    .run_sized(
        &format!("{SETS} --pattern random --sets 1 --for 3s"),
        &format!("{SETS} --pattern random --journal out/sets.jsonl"),
    )
    .number("G-EDF, mean", (0.0, 0.005), "ms", of(0, "mean_ns"))
    .number("G-EDF, longest", (18.76, 5.0), "ms", of(0, "max_ns"))
    .number("cache-aware, mean", (12.26, 4.0), "ms", of(1, "mean_ns"))
    .number(
        "cache-aware, longest",
        (1037.69, 250.0),
        "ms",
        of(1, "max_ns"),
    )
    .at_most(
        "cache-aware, mean, against the smallest period",
        20.0,
        "ms",
        of(1, "mean_ns"),
    )
    .holds("the cache-aware scheduler is later than G-EDF", move |a| {
        Some(of(1, "mean_ns")(a)? > of(0, "mean_ns")(a)?)
    })
    .note(
        "In a model of the paper's machine, without overheads and without other work: nothing is \
         late but by the schedule.",
    )
}

fn table_3() -> Entry {
    let mut entry = Entry::new(
        "003-tab3",
        "worst execution times of video decoders under both",
        "§4.3",
        State::InPart(
            "in a model, without the decoders and their film: three working sets fit into the \
             cache, so that one of four processors has to idle; 9 videos leave it 0.93 of its time \
             by their WCETs, 10 leave 0.59 and thrash, and 12 ask for more than there is"
                .to_owned(),
        ),
    )
    .run_sized(
        "cache videos --platform core-i7 --for 2s",
        "cache videos --platform core-i7 --for 60s",
    );
    for (row, videos, plain, aware) in [
        (0, "1 video", 14.004, 13.771),
        (1, "6 videos", 14.947, 13.935),
        (2, "12 videos", 14.956, 13.972),
    ] {
        let of = |key: &str| number(0, &format!("/rows/{row}/{key}"), 1e6);
        entry = entry
            .elsewhere(&format!("G-EDF, {videos}"), plain, "ms", of("g_edf_ns"))
            .elsewhere(
                &format!("cache-aware, {videos}"),
                aware,
                "ms",
                of("ca_edf_ns"),
            );
    }
    let at = |a: &Answers, row: usize, key: &str| a.number(0, &format!("/rows/{row}/{key}"));
    entry
        .holds("the cache-aware scheduler keeps it flat from 1 to 6 videos", move |a| {
            let (one, six) = (at(a, 0, "ca_edf_ns")?, at(a, 1, "ca_edf_ns")?);
            Some((six / one - 1.0).abs() < 0.02)
        })
        .holds("with 6 videos it is below G-EDF's by 6 % and more", move |a| {
            Some(at(a, 1, "ca_edf_ns")? < 0.94 * at(a, 1, "g_edf_ns")?)
        })
        .note(
            "In a model of the paper's machine: no film is decoded, each frame is walked twice at \
             random. Every miss waits as if it came alone, so that thrashing costs more than there.",
        )
}

/// The profiler's examples in the text: numbers of misses that are given, not counted.
fn examples() -> [Entry; 2] {
    let tested = |id: &str, title: &str, by: &str| {
        Entry::new(id, title, "§3.2", State::Tested(by.to_owned()))
    };
    [
        tested(
            "003-ex3.2.1",
            "the estimate of 144,448 bytes from three jobs, one of which is discarded",
            "crates/policy/src/profiler.rs",
        ),
        tested(
            "003-ex3.2.2",
            "bootstrapping, quantum by quantum, if every job that thrashes has an estimate of 1 \
             MiB (003-fig3 has the same in a model of a cache)",
            "crates/simulate/tests/profiler.rs",
        ),
    ]
}

/// The entries of this paper.
pub fn entries() -> Vec<Entry> {
    let [two_tasks, bootstrapping] = examples();
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
        two_tasks,
        bootstrapping,
        figure_3(),
        figure_4(),
        figure_5(),
        figure_6(),
        table_1(),
        overheads::table(),
        table_3(),
    ]
}
