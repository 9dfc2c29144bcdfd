//! What holds of every figure: nothing is cut at its edges, arrows stay apart, looks are explained.

use model::{
    Bytes, CpuId, Delay, Duration, Instant, Load, Overhead, Platform, Profile, Resumption, TaskId,
};
use report::assignment::{self, Bar, Share};
use report::colors::{self, ColorCurve};
use report::lines::{self, Curves};
use report::scatter::{self, Samples};
use report::schedulability::{self, Crossing, Curve, Form, Swept, Unit, Words};
use report::schedule::{self, Rows};
use report::sheet::{Shape, Side};
use report::{Figure, cpmd, platform};
use trace::View;
use trace::view::{Mark, MarkKind, Moment, Piece};
use ttf_parser::Face;

const REGULAR: &[u8] = include_bytes!("../fonts/DejaVuSans-subset.ttf");
const BOLD: &[u8] = include_bytes!("../fonts/DejaVuSans-Bold-subset.ttf");

/// Width of a text in pixels, by the advances of the font that the figures name first.
fn advance(text: &str, size: f64, bold: bool) -> f64 {
    let face = Face::parse(if bold { BOLD } else { REGULAR }, 0).unwrap();
    let width = |c: char| {
        let glyph = face.glyph_index(c)?;
        face.glyph_hor_advance(glyph)
    };
    // Letters that the small font lacks are taken for wide ones.
    let units = |c: char| f64::from(width(c).unwrap_or(face.units_per_em()));
    text.chars().map(units).sum::<f64>() * size / f64::from(face.units_per_em())
}

/// A text of a figure with its box: left, right, top, bottom.
type Boxed<'a> = (&'a str, [f64; 4]);

fn boxed(shape: &Shape) -> Option<Boxed<'_>> {
    let Shape::Text {
        text,
        at,
        side,
        size,
        bold,
        upwards,
        ..
    } = shape
    else {
        return None;
    };
    let length = advance(text, *size, *bold);
    let back = match side {
        Side::Start => 0.0,
        Side::Middle => length / 2.0,
        Side::End => length,
    };
    let (x, y) = (f64::from(at.0) / 10.0, f64::from(at.1) / 10.0);
    let corners = match upwards {
        false => [
            x - back,
            x - back + length,
            y - size * 0.76,
            y + size * 0.22,
        ],
        true => [
            x - size * 0.76,
            x + size * 0.22,
            y + back - length,
            y + back,
        ],
    };
    Some((text, corners))
}

/// All texts of a figure.
fn boxes(figure: &Figure) -> Vec<Boxed<'_>> {
    figure.shapes.iter().filter_map(boxed).collect()
}

/// The texts that reach over an edge of a figure.
fn cut(figure: &Figure) -> Vec<String> {
    let over = |(text, [left, right, top, bottom]): Boxed<'_>| {
        let inside = left >= 0.0 && top >= 0.0 && right <= figure.width && bottom <= figure.height;
        (!inside).then(|| {
            format!(
                "{}: `{text}` {left:.1}..{right:.1}, {top:.1}..{bottom:.1}",
                figure.id
            )
        })
    };
    boxes(figure).into_iter().filter_map(over).collect()
}

/// The pairs of texts of a figure that lie upon each other.
fn overlaps(figure: &Figure) -> Vec<String> {
    let all = boxes(figure);
    let mut found = Vec::new();
    for (at, (a, [left, right, top, bottom])) in all.iter().enumerate() {
        for (b, other) in &all[at + 1..] {
            let apart =
                *right <= other[0] || other[1] <= *left || *bottom <= other[2] || other[3] <= *top;
            if !apart {
                found.push(format!("{}: `{a}` and `{b}`", figure.id));
            }
        }
    }
    found
}

fn texts(figure: &Figure) -> Vec<&str> {
    let text = |shape| match shape {
        &Shape::Text {
            ref text,
            halo: false,
            ..
        } => Some(text.as_str()),
        _ => None,
    };
    figure.shapes.iter().filter_map(text).collect()
}

/// W(D) up to `longest` nanoseconds.
fn weighted(longest: f64, title: &str) -> Figure {
    let curve = |policy: &str, end: f64| Curve {
        policy: policy.to_owned(),
        points: vec![(0.0, 0.9), (longest, end)],
        band: vec![(0.0, 0.85, 0.95), (longest, end - 0.05, end + 0.05)],
    };
    let curves = [
        curve("P-EDF", 0.5),
        curve("G-EDF", 0.4),
        curve("C-EDF-L2", 0.6),
    ];
    schedulability::weighted("weighted", title, &curves, None, "").unwrap()
}

fn samples(longest_ns: u64, delay_ns: i64) -> Figure {
    let kept: Vec<_> = (1..=200)
        .map(|n| {
            (
                Duration::from_nanos(longest_ns * n / 200),
                Delay::from_nanos(delay_ns),
            )
        })
        .collect();
    let cell = Samples {
        resumption: Resumption::Migration(3),
        load: Load::Load,
        wss: Bytes::from_kib(64),
        lines: vec![Duration::from_nanos(90); kept.len()],
        kept,
        discarded: Vec::new(),
    };
    scatter::figure("samples", &[cell.clone(), cell])
        .unwrap()
        .unwrap()
}

fn bars() -> Vec<Bar> {
    let share = |name: &str, utilization| Share {
        name: name.to_owned(),
        utilization,
        overhead: 0.02,
        parts: vec![(Overhead::Scheduling, 0.01), (Overhead::Cpmd, 0.02)],
    };
    let long = "a-task-whose-name-is-much-longer-than-any-piece-of-a-bar-can-ever-be-in-a-figure";
    vec![
        Bar {
            processors: "0".to_owned(),
            capacity: 1,
            shares: vec![share("detect", 0.6), share("sound", 0.01), share(long, 0.5)],
        },
        Bar {
            processors: "1-3,5,7,9,11,13,15,17,19,21,23,25,27,29,31".to_owned(),
            capacity: 17,
            shares: (0..40).map(|n| share(&format!("task-{n}"), 0.1)).collect(),
        },
    ]
}

/// A schedule of `tasks` on one processor each, whose releases, deadlines and pieces alternate.
fn view(tasks: &[(&str, Duration)], until: Duration) -> View {
    let end = Instant::ZERO + until;
    let mut view = View {
        from: Instant::ZERO,
        to: end,
        processors: (0..tasks.len() as u32).map(CpuId).collect(),
        names: tasks.iter().map(|(name, _)| (*name).to_owned()).collect(),
        pieces: Vec::new(),
        marks: Vec::new(),
        moment: None,
        cut: false,
    };
    for (index, (_, period)) in tasks.iter().enumerate() {
        let (task, cpu) = (TaskId(index as u32), CpuId(index as u32));
        for job in 0..until.nanos() / period.nanos() {
            let release = Instant::from_nanos(job * period.nanos());
            let (done, deadline) = (
                Instant::from_nanos(release.nanos() + period.nanos() / 2),
                Instant::from_nanos(release.nanos() + period.nanos()),
            );
            let mark = |kind, time| Mark {
                kind,
                time,
                task,
                job,
                cpu,
            };
            view.marks.extend([
                mark(MarkKind::Release, release),
                mark(MarkKind::Deadline, deadline),
                mark(MarkKind::Completion, done),
            ]);
            view.pieces.push(Piece {
                cpu,
                job: Some((task, job)),
                overhead: None,
                from: release,
                to: done,
            });
        }
    }
    view.marks.sort_by_key(|m| (m.time, m.task, m.kind));
    view
}

/// 2 ms and 66 ms: what was drawn as a black smear.
fn smear() -> View {
    view(
        &[
            ("fast", Duration::from_millis(2)),
            ("slow", Duration::from_millis(66)),
        ],
        Duration::from_millis(528),
    )
}

#[test]
fn nothing_is_cut_at_the_edges_of_any_figure() {
    let xeon = Platform::builtin("xeon-l7455").unwrap();
    let profile = Profile::builtin("xeon-l7455").unwrap();
    let long = "A study whose title has many more words than there is room for in a single line above the axes";
    let mut figures = vec![
        weighted(1e6, "W"),
        weighted(5e6, "W"),
        weighted(9.999e5, long),
    ];
    figures.push(weighted(9e9, "W"));
    let curve = Curve {
        policy: "G-EDF".to_owned(),
        points: vec![(1.0, 1.0), (1_000_000.0, 0.0)],
        band: Vec::new(),
    };
    let by = |m| schedulability::by_utilization("u", long, m, std::slice::from_ref(&curve), "");
    figures.extend([by(2).unwrap(), by(24).unwrap(), by(1_000_000).unwrap()]);
    figures.extend([
        samples(5_000_000, 40_000),
        samples(1_000_000, 1_000_000),
        samples(999, -7),
    ]);
    figures.extend(cpmd::figure("c", &profile, &cpmd::cache_marks(&xeon), &cpmd::FIG2).unwrap());
    figures.push(platform::figure("p", &xeon));
    figures.push(assignment::figure("a", long, &bars()).unwrap());
    let color = ColorCurve {
        cache: "L2".to_owned(),
        ways: 16,
        colors: "16 colors, by timing".to_owned(),
        points: (1..=40).map(|n| (n, 30.0, 6.0)).collect(),
    };
    figures.extend(colors::figure("colors", &[color.clone(), color]).unwrap());
    let curves = Curves {
        title: long.to_owned(),
        description: String::new(),
        x: "coefficients".to_owned(),
        y: "c_max / c_min".to_owned(),
        logarithmic: true,
        ticks: vec![
            (4.0, "4 KiB".to_owned()),
            (4096.0, "4096 KiB of memory".to_owned()),
        ],
        level: Some((1.15, "isolated".to_owned())),
        least: 1.0,
        most: None,
        curves: vec![(0, vec![(4.0, 1.0), (4096.0, 3.0)])],
    };
    figures.extend(lines::figure("l", "t", "", &["alone"], &[curves.clone(), curves]).unwrap());
    let mut schedule = smear();
    schedule.moment = Some(Moment {
        time: schedule.to,
        name: long.to_owned(),
    });
    schedule.names[1] = long.to_owned();
    for rows in [Rows::Processors, Rows::Tasks] {
        for width in [200.0, 470.0, 760.0] {
            figures.push(schedule::figure("s", long, &schedule, rows, width, long));
        }
    }
    for figure in &figures {
        assert_eq!(cut(figure), Vec::<String>::new());
    }
}

#[test]
fn a_millisecond_at_the_end_of_an_axis_is_written_as_one() {
    let figure = weighted(1e6, "W");
    let said = texts(&figure);
    assert!(
        said.contains(&"1 ms") && said.contains(&"0.2 ms"),
        "{said:?}"
    );
    assert!(!said.iter().any(|t| t.contains("1000")), "{said:?}");
}

/// The x positions of the arrow heads of a figure, by row: up and down arrows have three corners.
fn arrows(figure: &Figure) -> Vec<(i32, i32)> {
    let head = |shape: &Shape| match shape {
        // Heads point up with their middle corner above the others, or down below them.
        Shape::Polygon { points, .. } if points.len() == 3 => {
            (points[1].1 == points[2].1).then(|| (points[0].1.max(points[1].1) / 400, points[0].0))
        }
        _ => None,
    };
    let mut all: Vec<_> = figure.shapes.iter().filter_map(head).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn arrows_of_a_schedule_stay_apart_and_a_wider_figure_has_room_for_more() {
    let smear = smear();
    for rows in [Rows::Processors, Rows::Tasks] {
        let end = schedule::readable_until(&smear, rows, 760.0).expect("264 arrows in 700 pixels");
        assert!(end > Instant::ZERO && end < smear.to);
        let short = view(
            &[
                ("fast", Duration::from_millis(2)),
                ("slow", Duration::from_millis(66)),
            ],
            end.since(Instant::ZERO),
        );
        assert_eq!(
            schedule::readable_until(&short, rows, 760.0),
            None,
            "it has room now"
        );
        let figure = schedule::figure("s", "t", &short, rows, 760.0, "");
        let places = arrows(&figure);
        assert!(places.len() > 40, "{}", places.len());
        for pair in places.windows(2).filter(|p| p[0].0 == p[1].0) {
            assert!(pair[1].1 - pair[0].1 >= 120, "12 pixels at least: {pair:?}");
        }
        let wider = schedule::readable_until(&smear, rows, 1_500.0).unwrap();
        assert!(wider > end);
        assert_eq!(schedule::readable_until(&smear, rows, 5_000.0), None);
    }
}

/// What a policy cuts into quanta is a smear of outlines without any arrow.
#[test]
fn pieces_of_a_schedule_stay_apart_too() {
    let mut quanta = view(&[("a", Duration::from_millis(2))], Duration::from_secs(1));
    quanta.marks.clear();
    let end = schedule::readable_until(&quanta, Rows::Processors, 760.0).unwrap();
    let shown = quanta.pieces.iter().filter(|p| p.to <= end).count() as f64;
    assert!((100.0..=760.0 / 4.0 + 1.0).contains(&shown), "{shown}");
}

/// The fill of each box of the legend: its ink, opacity and the lines over it.
fn looks(figure: &Figure, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = String::new();
    for shape in &figure.shapes {
        match shape {
            Shape::Polygon { paint, .. } if paint.opacity < 1.0 => {
                look = format!("{:?} {}", paint.ink, paint.opacity);
            }
            // Where a hatch line lies differs from box to box; how many there are and how they rise
            // not.
            Shape::Line { points, .. } if points.len() == 2 => {
                let rising = points[1].1 < points[0].1;
                look += if rising { "/" } else { "\\" };
            }
            Shape::Text { text, .. } => {
                if names.contains(&text.as_str()) {
                    found.push(look.clone());
                }
                look.clear();
            }
            _ => {}
        }
    }
    found
}

#[test]
fn a_legend_tells_which_look_is_which_task_on_rows_of_processors() {
    let tasks: Vec<(String, Duration)> = (0..20)
        .map(|n| (format!("job of {n}"), Duration::from_millis(100)))
        .collect();
    let tasks: Vec<(&str, Duration)> = tasks.iter().map(|(n, d)| (n.as_str(), *d)).collect();
    let view = view(&tasks, Duration::from_millis(100));
    let figure = schedule::figure("s", "t", &view, Rows::Processors, 760.0, "");
    let names: Vec<&str> = tasks.iter().map(|t| t.0).collect();
    let said = texts(&figure);
    for name in &names {
        assert!(said.contains(name), "{name}: {said:?}");
    }
    let mut looks = looks(&figure, &names);
    assert_eq!(looks.len(), 20);
    looks.sort_unstable();
    looks.dedup();
    assert_eq!(looks.len(), 20, "no two tasks look alike: {looks:?}");
    // On rows of tasks it tells processors.
    let figure = schedule::figure("s", "t", &view, Rows::Tasks, 760.0, "");
    assert!(texts(&figure).contains(&"on P7"));
    assert_eq!(cut(&figure), Vec::<String>::new());
}

#[test]
fn a_legend_of_more_tasks_than_looks_counts_the_others() {
    let tasks: Vec<String> = (0..schedule::LOOKS + 5).map(|n| format!("T{n}")).collect();
    let tasks: Vec<(&str, Duration)> = tasks
        .iter()
        .map(|n| (n.as_str(), Duration::from_millis(100)))
        .collect();
    let view = view(&tasks, Duration::from_millis(100));
    let figure = schedule::figure("s", "t", &view, Rows::Processors, 760.0, "");
    assert!(texts(&figure).contains(&"and 5 more"));
}

#[test]
fn a_remark_stands_in_the_picture_and_in_its_caption() {
    let remark =
        "Drawn from 0 ms to 4 ms only: more would lie too close. `--from` draws another part.";
    let figure = schedule::figure("s", "t", &smear(), Rows::Tasks, 470.0, remark);
    assert!(figure.caption.ends_with(remark));
    // There is no type for commands in a picture.
    assert!(texts(&figure).join(" ").contains(&remark.replace('`', "")));
}

/// The note on a crossing, the name of its level and the title, wherever the crossing lies and
/// however long the names of the policies are.
#[test]
fn no_text_of_a_chart_lies_upon_another() {
    let swept = Swept {
        symbol: "ξ".to_owned(),
        title: "working set size of every task".to_owned(),
        unit: Unit::Bytes,
    };
    let kib = 1024.0;
    for (falling, reference) in [
        ("G-EDF", "P-EDF"),
        ("C-NPS-F-L3-DELTA-4 idle", "C-NPS-F-L3-DELTA-1 idle"),
    ] {
        let curve = |policy: &str, end: f64| Curve {
            policy: policy.to_owned(),
            points: vec![
                (0.0, 1.0),
                (4.0 * kib, 0.96),
                (1000.0 * kib, 0.5),
                (1024.0 * kib, end),
            ],
            band: Vec::new(),
        };
        let curves = [curve(falling, 0.001), curve(reference, 0.3)];
        for at in [4.0, 60.0, 500.0, 1020.0] {
            for level in [0.98, 0.7, 0.3] {
                let crossing = Crossing {
                    falling: falling.to_owned(),
                    reference: reference.to_owned(),
                    level,
                    at: at * kib,
                };
                for (width, log) in [
                    (240.0, false),
                    (336.0, false),
                    (336.0, true),
                    (470.0, false),
                    (470.0, true),
                ] {
                    let form = Form {
                        width,
                        log_x: log,
                        log_y: log,
                        ..Form::default()
                    };
                    let words = Words {
                        caption: "",
                        charges: "Charged: D = 500us once a job, 64KiB; no kernel overheads.",
                    };
                    let figure = schedulability::weighted_as(
                        &form,
                        &format!("{falling} {at} {level} {width} {log}"),
                        "Hard, exponential medium, moderate periods, no kernel overheads",
                        &swept,
                        &curves,
                        Some(&crossing),
                        words,
                    )
                    .unwrap();
                    assert_eq!(overlaps(&figure), Vec::<String>::new());
                    assert_eq!(cut(&figure), Vec::<String>::new());
                    // As the axes write units.
                    let written = "Charged: D = 500 µs once a job, 64 KiB; no kernel overheads.";
                    assert!(texts(&figure).join(" ").contains(written));
                }
            }
        }
    }
}

/// The lines of a figure from point to point, each as two ends in pixels.
fn strokes(figure: &Figure) -> Vec<[f64; 4]> {
    let mut found = Vec::new();
    for shape in &figure.shapes {
        let Shape::Line { points, width, .. } = shape else {
            continue;
        };
        // Curves alone are as thick.
        if *width != 18 {
            continue;
        }
        found.extend(points.windows(2).map(|w| {
            let [(a, b), (c, d)] = [w[0], w[1]];
            [a, b, c, d].map(|tenths| f64::from(tenths) / 10.0)
        }));
    }
    found
}

/// In a study of three points, G-EDF falls steeply past P-EDF, which is level: the note finds room
/// wherever they cross.
#[test]
fn a_note_keeps_clear_of_all_curves() {
    for at in 1..20 {
        let at = f64::from(at) * 1e5;
        let curve = |policy: &str, points: [(f64, f64); 3]| Curve {
            policy: policy.to_owned(),
            points: points.to_vec(),
            band: Vec::new(),
        };
        for end in [0.5, 0.3, 0.05] {
            let curves = [
                curve("P-EDF", [(0.0, 0.55), (1e6, 0.54), (2e6, end)]),
                curve("G-EDF", [(0.0, 1.0), (at, 0.55), (2e6, end)]),
            ];
            let crossing = schedulability::crossing(&curves[1], &curves[0]);
            let id = format!("at {at}, end {end}");
            let figure = schedulability::weighted(&id, "W", &curves, crossing.as_ref(), "");
            let figure = figure.unwrap();
            let strokes = strokes(&figure);
            assert!(strokes.len() >= 4, "the curves are found");
            let is_note = |text: &str| text.contains("falls below") || text.contains("'s W(0) at");
            let notes = boxes(&figure).into_iter().filter(|b| is_note(b.0));
            let mut count = 0;
            for (text, [left, right, top, bottom]) in notes {
                count += 1;
                for [a, b, c, d] in &strokes {
                    let inside = (0..=1000).map(f64::from).find(|k| {
                        let (x, y) = (a + (c - a) * k / 1e3, b + (d - b) * k / 1e3);
                        left < x && x < right && top < y && y < bottom
                    });
                    assert_eq!(inside, None, "{id}: a curve goes through `{text}`");
                }
            }
            assert!(count >= 2, "{id}: there is a note");
        }
    }
}

/// Sizes have powers of two for ticks on either kind of axis.
#[test]
fn sizes_by_their_logarithm_have_ticks_at_powers_of_two() {
    let swept = Swept {
        symbol: "ξ".to_owned(),
        title: "working set size of every task".to_owned(),
        unit: Unit::Bytes,
    };
    let curve = Curve {
        policy: "P-EDF".to_owned(),
        points: vec![(0.0, 1.0), (16_384.0, 0.9), (1_048_576.0, 0.5)],
        band: Vec::new(),
    };
    let form = Form {
        log_x: true,
        ..Form::default()
    };
    let drawn = schedulability::weighted_as(&form, "w", "t", &swept, &[curve], None, "");
    let figure = drawn.unwrap();
    let sizes: Vec<&str> = texts(&figure)
        .into_iter()
        .filter(|text| text.ends_with("iB"))
        .collect();
    assert_eq!(
        sizes,
        [
            "16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB"
        ]
    );
}
