//! Pictures in text, and what statistics add up to, of the schedules of 002.

mod support;

use model::{Duration, Instant};
use support::{at, at_wcet, header, ms, schedule, tasks};
use trace::view::{MarkKind, Moment};
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
    let (from, to) = (
        Instant::from_nanos(4_500_000),
        Instant::from_nanos(13_500_000),
    );
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
    let misses: Vec<(u32, u64)> = misses
        .map(|m| (m.task.0, m.time.nanos() / 1_000_000))
        .collect();
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

/// A busy schedule is narrowed to what can be told apart, and its moment stands above it.
#[test]
fn a_picture_about_a_moment_shows_what_is_near_it() {
    let pairs = [(2, 3), (3, 8), (1, 7), (5, 7)];
    let about = |time: u64, most: usize| {
        let moment = Moment {
            time: Instant::from_nanos(time),
            name: "priority".to_owned(),
        };
        view("g-edf", &[2], &[0; 4], &pairs, Instant::ZERO, at(24)).around(moment, most)
    };
    for most in 2..12 {
        for time in [0, 3_000_000, 9_500_000, 12_300_000, 24_000_000] {
            let near = about(time, most);
            let moment = Instant::from_nanos(time);
            assert!(near.from <= moment && moment <= near.to, "{most} at {time}");
            for cpu in &near.processors {
                let count = near.pieces.iter().filter(|p| p.cpu == *cpu).count();
                assert!(count <= most, "{count} pieces of {most} at {time}");
            }
            let within = |t: Instant| near.from <= t && t <= near.to;
            assert!(near.pieces.iter().all(|p| within(p.from) && within(p.to)));
            assert!(near.marks.iter().all(|m| within(m.time)));
        }
    }
    let all = about(9_500_000, 1000);
    assert_eq!((all.from, all.to), (Instant::ZERO, at(24)));
    insta::assert_snapshot!(about(9_500_000, 3).text(), @r"
          |8ms        |8.375ms    |8.75ms     |9.125ms    |9.5ms      |9.875ms    |10.25ms    |10.625ms
                                                          | priority
    P0    444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444
    P1    222222222222222222222222222222221111111111111111111111111111111111111111111111111111111111111111
    1 T1  T                               x                                                              T
    2 T2  x
    3 T3  T
    4 T4
    ");
    // On the right there is no room for the name.
    insta::assert_snapshot!(about(23_900_000, 1000).text(), @r"
          |0ms        |3ms        |6ms        |9ms        |12ms       |15ms       |18ms       |21ms
                                                                                                priority |
    P0    11111111222211111111222222223333444444444444444444442222333311111111222211111111....11111111....
    P1    333344444444444444444444111111112222111111112222111111114444444444444444444422222222333344444444
    1 T1  ^       T   x       T   x       T   x       T   x       T   x       T   x       T   x       T  v
    2 T2  ^                           T   x                       T       x                   T          v
    3 T3  ^   T                       x   T                       x   T                       x   T
    4 T4  ^                       T   x                       T   x                   T       x
    ");
    // What lies beyond the window is not drawn.
    assert!(about(99_000_000, 1000).moment_within().is_none());
}
