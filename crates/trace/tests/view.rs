//! Pictures in text, and what statistics add up to, of the schedules of 002.

mod support;

use model::{Duration, Instant};
use support::{at, at_wcet, header, ms, schedule, tasks};
use trace::view::MarkKind;
use trace::{Sink, Statistics, View, Viewer};

fn view(
    policy: &str,
    clusters: &[u32],
    of: &[u32],
    pairs: &[(u64, u64)],
    from: Instant,
    to: Instant,
) -> View {
    let header = header(tasks(pairs), policy, clusters, of);
    let mut viewer = Viewer::new(&header, from, to);
    for event in schedule(&header, ms(24), at_wcet(&header)) {
        viewer.record(event);
    }
    viewer.finish()
}

/// 002 Fig. 2.2 (b): under RM, T3 misses its deadline at 8.
#[test]
fn figure_2_2_b_of_the_dissertation_in_text() {
    let view = view(
        "p-rm",
        &[1],
        &[0; 3],
        &[(1, 3), (2, 5), (2, 8)],
        Instant::ZERO,
        at(12),
    );
    insta::assert_snapshot!(view.text());
}

/// 002 Fig. 2.6 (b): under G-EDF, the second job of T2 migrates from P1 to P2.
#[test]
fn figure_2_6_b_of_the_dissertation_in_text() {
    let pairs = [(2, 3), (3, 8), (1, 7), (5, 7)];
    let view = view("g-edf", &[2], &[0; 4], &pairs, Instant::ZERO, at(18));
    insta::assert_snapshot!(view.text());
}

#[test]
fn a_window_within_knows_what_ran_when_it_began() {
    let pairs = [(2, 3), (3, 8), (1, 7), (5, 7)];
    let whole = view("g-edf", &[2], &[0; 4], &pairs, Instant::ZERO, at(24));
    let (from, to) = (Instant::from_nanos(4_500_000), Instant::from_nanos(13_500_000));
    let part = view("g-edf", &[2], &[0; 4], &pairs, from, to);
    let inside = |view: &View| -> u64 {
        let pieces = view
            .pieces
            .iter()
            .map(|p| p.to.min(to).since(p.from.max(from)).nanos());
        pieces.sum()
    };
    assert_eq!(inside(&part), inside(&whole));
    let within = whole
        .marks
        .iter()
        .filter(|m| m.time >= from && m.time <= to)
        .count();
    assert_eq!(part.marks.len(), within);
}

/// 002 Fig. 2.6 (a): the miss at 18 is a miss although its job goes on after the window.
#[test]
fn a_miss_shows_before_its_job_completes() {
    let pairs = [(2, 3), (3, 8), (1, 7), (5, 7)];
    let to = Instant::from_nanos(18_500_000);
    let view = view("p-edf", &[1, 1], &[0, 0, 0, 1], &pairs, Instant::ZERO, to);
    let misses = view.marks.iter().filter(|m| m.kind == MarkKind::Miss);
    let misses: Vec<(u32, u64)> = misses.map(|m| (m.task.0, m.time.nanos() / 1_000_000)).collect();
    assert_eq!(misses, [(0, 9), (1, 16), (0, 18)]);
}

#[test]
fn statistics_of_figure_2_6_a() {
    let pairs = [(2, 3), (3, 8), (1, 7), (5, 7)];
    let header = header(tasks(&pairs), "p-edf", &[1, 1], &[0, 0, 0, 1]);
    let mut statistics = Statistics::new(&header, true);
    for event in schedule(&header, ms(24), at_wcet(&header)) {
        statistics.record(event);
    }
    let summary = statistics.summary();
    // T1 misses its deadlines at 9 and 18, T2 that at 16 (002 Fig. 2.6).
    let rows = statistics.take_rows();
    let late: Vec<(u32, u64)> = rows
        .iter()
        .filter(|r| r.completion > r.deadline)
        .map(|r| (r.task.0, r.deadline.nanos() / 1_000_000))
        .collect();
    assert_eq!(late[..3], [(0, 9), (1, 16), (0, 18)]);
    assert_eq!(rows.len() as u64, summary.jobs);
    for row in &rows {
        assert_eq!(row.executed, header.tasks.timings()[row.task.index()].wcet);
        assert!(row.completion.since(row.start) >= row.executed);
        assert_eq!(row.lost, [Duration::ZERO; 7]);
    }
    insta::assert_snapshot!(summary);
}
