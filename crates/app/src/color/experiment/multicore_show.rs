//! How the experiment of 004 §IV is shown: Figs. 10 to 12, with the paper's figures beside them.

use super::multicore::Head;
use experiment::multicore::judge::{self, Row};
use experiment::multicore::sets::Scheduler;
use experiment::multicore::{Group, Scenario, Sizes};
use model::{Bytes, Result};
use report::Figure;
use report::lines::{Curves, figure};
use std::fmt::Write as _;

/// Percentages of tasks that missed a deadline in 004 (§IV-C, Fig. 11): by size of the working sets
/// in KiB, P-EDF in S1 and S3, G-EDF in S1 and S3. S2 is as S1 there.
const PAPER: [(u64, [f64; 4]); 4] = [
    (32, [0.0, 57.75, 0.0, 93.0]),
    (64, [0.0, 70.42, 0.0, 93.02]),
    (128, [0.0, 74.65, 18.0, 93.92]),
    (256, [54.93, 93.02, 92.0, 97.67]),
];

const S1: usize = 0;
const S2: usize = 1;
const S3: usize = 2;
const AGAIN: usize = 3;

fn paper(scheduler: Scheduler, wss: Bytes) -> Option<(f64, f64)> {
    let (_, percent) = PAPER.iter().find(|(kib, _)| Bytes::from_kib(*kib) == wss)?;
    Some(match scheduler {
        Scheduler::PEdf => (percent[0], percent[1]),
        Scheduler::GEdf => (percent[2], percent[3]),
    })
}

fn number(value: f64, decimals: usize) -> String {
    match value.is_finite() {
        true => format!("{value:.decimals$}"),
        false => "-".to_owned(),
    }
}

/// How large a working set was here.
fn own(row: &Row) -> String {
    match row.own {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least}-{most}"),
    }
}

/// The names of the columns.
fn write_columns(text: &mut String) {
    let _ = writeln!(
        text,
        "{:41} | {:<20} | {:<20} | {:<33} | total time, s\n{:<6} {:>7} {:>15} {:>4} {:>5} | {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} {:>12} | {:>7} {:>7}",
        "",
        "worst-case factor",
        "average factor",
        "tasks with misses, %",
        "",
        "in 004",
        "here",
        "sets",
        "tasks",
        "S2",
        "S3",
        "again",
        "S2",
        "S3",
        "again",
        "S1",
        "S2",
        "S3",
        "004: S1, S3",
        "S1",
        "S3"
    );
}

fn write_row(text: &mut String, row: &Row) {
    let in_paper = paper(row.scheduler, row.wss).map_or_else(String::new, |(s1, s3)| {
        format!("{}, {}", number(s1, 0), number(s3, 0))
    });
    let _ = writeln!(
        text,
        "{:<6} {:>7} {:>15} {:>4} {:>5} | {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} {:>12} | {:>7} {:>7}",
        row.scheduler.name(),
        row.wss.to_string(),
        own(row),
        row.sets,
        row.tasks,
        number(row.worst[S2], 3),
        number(row.worst[S3], 3),
        number(row.worst[AGAIN], 3),
        number(row.average[S2], 3),
        number(row.average[S3], 3),
        number(row.average[AGAIN], 3),
        number(row.missed_percent[S1], 1),
        number(row.missed_percent[S2], 1),
        number(row.missed_percent[S3], 1),
        in_paper,
        number(row.total_s[S1], 2),
        number(row.total_s[S3], 2),
    );
}

/// The tables.
pub fn text(head: &Head, rows: &[Row]) -> String {
    let setup = &head.setup;
    // Writing into a string cannot fail.
    let mut text = format!(
        "periodic tasks on {} processors in colors of the {} ({}, {} colors, shared by {}): {} jobs of each task, {} runs in\neach scenario; jobs take {} of their WCET alone in colors of their own",
        setup.processors,
        head.cache,
        head.size,
        head.colors,
        head.sharers,
        setup.jobs,
        setup.repetitions,
        setup.part as f64 / 1000.0
    );
    text.push_str(&match setup.hasten {
        1 => "\n".to_owned(),
        by => format!("; periods and WCETs are the paper's divided by {by}\n"),
    });
    for sizes in Sizes::ALL {
        let _ = writeln!(
            text,
            "\n{}",
            match sizes {
                Sizes::Paper => "working sets as in the paper",
                Sizes::Scaled =>
                    "working sets scaled: as large a part of what a processor has of a super color as in the paper",
            }
        );
        write_columns(&mut text);
        for row in rows.iter().filter(|r| r.sizes == sizes) {
            write_row(&mut text, row);
        }
    }
    let given_up: usize = rows.iter().flat_map(|r| r.given_up).sum();
    if given_up > 0 {
        let _ = writeln!(
            text,
            "\n{given_up} runs were given up: tasks fell behind further and further"
        );
    }
    text.push_str(
        "\nfactors: longest job (average job) of a task against its own in S1, mean over tasks and sets (004 §IV-B); again: S1 a second\ntime, which is what a factor of 1 looks like here\n004 §IV-B, Fig. 10, as its text has it: S2 is 1; at 32 and 64 KiB S3 is worse for G-EDF, at 128 and 256 KiB for P-EDF, and falls\nas working sets outgrow their colors; Fig. 11: misses as above; Fig. 12: 40 s where nothing falls behind (200 jobs of 200 ms)\n",
    );
    text
}

/// Of each scenario, what a panel shows.
type Of = fn(&Row) -> [f64; judge::SCENARIOS];

const PERCENT: &str = "%";
const LEGEND: [&str; 6] = [
    "G-EDF, S1 (of factors: again)",
    "G-EDF, S3",
    "P-EDF, S1 (of factors: again)",
    "P-EDF, S3",
    "G-EDF, S2",
    "P-EDF, S2",
];

/// The place in the legend. "Again" is drawn as S1: both are what nothing but noise makes.
fn place(scheduler: Scheduler, scenario: usize) -> usize {
    match (scheduler, scenario) {
        (Scheduler::GEdf, S3) => 1,
        (Scheduler::PEdf, S3) => 3,
        (Scheduler::GEdf, S2) => 4,
        (Scheduler::PEdf, S2) => 5,
        (Scheduler::GEdf, _) => 0,
        (Scheduler::PEdf, _) => 2,
    }
}

/// A quantity of which a panel is made for each kind of sizes.
struct Quantity {
    title: &'static str,
    y: &'static str,
    of: Of,
    scenarios: &'static [usize],
    least: f64,
}

impl Quantity {
    fn panel(&self, rows: &[Row], sizes: Sizes) -> Curves {
        let (title, of) = (self.title, self.of);
        let mine: Vec<&Row> = rows.iter().filter(|r| r.sizes == sizes).collect();
        let mut all: Vec<Bytes> = mine.iter().map(|r| r.wss).collect();
        all.sort_unstable();
        all.dedup();
        let x = |wss: Bytes| wss.get() as f64 / 1024.0;
        let mut curves = Vec::new();
        for scheduler in Scheduler::ALL {
            for scenario in self.scenarios {
                let points = mine
                    .iter()
                    .filter(|r| r.scheduler == scheduler)
                    .map(|r| (x(r.wss), of(r)[*scenario]))
                    .filter(|p| p.1.is_finite())
                    .collect();
                curves.push((place(scheduler, *scenario), points));
            }
        }
        Curves {
            title: format!(
                "{title}, {}",
                match sizes {
                    Sizes::Paper => "sizes as in 004",
                    Sizes::Scaled => "scaled sizes",
                }
            ),
            description: mine.last().map_or_else(String::new, |row| {
                format!(
                    "{title}: {} at {} in S3 under {}.",
                    number(of(row)[S3], 2),
                    row.wss,
                    row.scheduler.name()
                )
            }),
            x: "working set in 004, KiB".to_owned(),
            y: self.y.to_owned(),
            logarithmic: true,
            ticks: all
                .into_iter()
                .map(|wss| (x(wss), number(x(wss), 0)))
                .collect(),
            level: None,
            least: self.least,
            most: (self.y == PERCENT).then_some(100.0),
            curves,
        }
    }
}

/// Figs. 10 to 12: the paper's sizes on the left, scaled ones on the right, misses in the paper
/// beside.
pub fn picture(head: &Head, rows: &[Row]) -> Result<Option<Figure>> {
    let lowest = |of: Of| {
        let values = rows.iter().flat_map(of).filter(|v| v.is_finite());
        (values.fold(1.0, f64::min) * 100.0).floor() / 100.0
    };
    let quantity = |title, y, of, scenarios, least| Quantity {
        title,
        y,
        of,
        scenarios,
        least,
    };
    let shown: [Quantity; 4] = [
        quantity(
            "Worst-case scaling factor",
            "longest job / longest job in S1",
            |r| r.worst,
            &[AGAIN, S2, S3],
            lowest(|r| r.worst),
        ),
        quantity(
            "Average scaling factor",
            "average job / average job in S1",
            |r| r.average,
            &[AGAIN, S2, S3],
            lowest(|r| r.average),
        ),
        quantity(
            "Tasks that missed a deadline",
            PERCENT,
            |r| r.missed_percent,
            &[S1, S3],
            0.0,
        ),
        quantity("Total time", "s", |r| r.total_s, &[S1, S3], 0.0),
    ];
    let mut panels = Vec::new();
    for quantity in &shown {
        for sizes in Sizes::ALL {
            panels.push(quantity.panel(rows, sizes));
        }
    }
    panels.push(of_paper());
    figure(
        "experiment-multicore",
        "Periodic tasks in colors under G-EDF and P-EDF",
        &format!(
            "After 004, Figs. 10 to 12, on {} processors. In panels of factors, S1 is S1 a second time: what is not due to colors.",
            head.setup.processors
        ),
        &LEGEND,
        &panels,
    )
}

/// Fig. 11 as the paper has it.
fn of_paper() -> Curves {
    let of = |column: usize| -> Vec<(f64, f64)> {
        PAPER
            .iter()
            .map(|(kib, percent)| (*kib as f64, percent[column]))
            .collect()
    };
    Curves {
        title: "Tasks that missed a deadline, in 004 (Fig. 11)".to_owned(),
        description:
            "The paper's figures: in S1 none up to 64 KiB, in S3 more than half from 32 KiB on."
                .to_owned(),
        x: "working set, KiB".to_owned(),
        y: PERCENT.to_owned(),
        logarithmic: true,
        ticks: PAPER
            .iter()
            .map(|(kib, _)| (*kib as f64, kib.to_string()))
            .collect(),
        level: None,
        least: 0.0,
        most: Some(100.0),
        curves: vec![(2, of(0)), (3, of(1)), (0, of(2)), (1, of(3))],
    }
}

/// Task by task, run by run.
pub fn csv(groups: &[Group]) -> String {
    let mut text = "scheduler,set,sizes,wss_in_004_kib,scenario,repetition,task,best_effort,wss_kib,period_us,wcet_us,accesses,jobs,worst_us,average_us,missed,total_s,finished\n".to_owned();
    for group in groups {
        for run in &group.runs {
            for (place, (task, seen)) in group.tasks.iter().zip(&run.seen.tasks).enumerate() {
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{},{},{},{},{},{:.3},{:.3},{},{:.3},{}",
                    group.scheduler.policy(),
                    group.set,
                    match group.sizes {
                        Sizes::Paper => "paper",
                        Sizes::Scaled => "scaled",
                    },
                    group.wss.get() / 1024,
                    match run.scenario {
                        Scenario::Again => "S1-again",
                        other => other.name(),
                    },
                    run.repetition,
                    place + 1,
                    u8::from(task.best_effort),
                    task.wss.get() / 1024,
                    task.period.nanos() / 1000,
                    task.wcet.nanos() / 1000,
                    task.accesses,
                    seen.jobs,
                    seen.worst.nanos() as f64 / 1e3,
                    seen.average_ns() / 1e3,
                    seen.missed,
                    run.seen.total.nanos() as f64 / 1e9,
                    u8::from(run.seen.finished),
                );
            }
        }
    }
    text
}
