//! What makes a sample of a cache delay within a schedule, as Fig. 1 of 000 draws it: one preempted
//! job with its walks, the length of its preemption, and how it confirmed that.

use crate::sheet::{BOLD, Paint, Shape, Sheet, Side, cut, tenths, text_width, wrapped};
use crate::style::{Ink, SMALL, TEXT};
use crate::svg::Figure;
use crate::words;
use model::{Bytes, Resumption};

/// A job that was preempted once, after it had warmed its caches.
#[derive(Clone, PartialEq, Debug)]
pub struct Sampled {
    /// The policy, as people read it.
    pub policy: String,
    /// How many tasks the set had.
    pub tasks: u32,
    /// The job's working set.
    pub wss: Bytes,
    /// How it went on.
    pub resumption: Resumption,
    /// The processor that it was on, and the one on which it went on.
    pub processors: (u32, u32),
    /// Its first walk, in nanoseconds.
    pub cold_ns: u64,
    /// Its warm walk.
    pub warm_ns: u64,
    /// Its walk after the preemption.
    pub post_ns: u64,
    /// How long the engine told it that it was away.
    pub told_ns: u64,
    /// The same by its own clock.
    pub away_ns: u64,
}

const WIDTH: f64 = 620.0;
const LEFT: f64 = 16.0;
/// The upper and the lower edge of the pieces.
const TOP: f64 = 66.0;
const BOTTOM: f64 = 100.0;
/// Width of what is not drawn to scale: while the job keeps warm, and while it is away.
const TOUCH: f64 = 92.0;
const AWAY: f64 = 118.0;
/// The least width of a walk.
const LEAST: f64 = 30.0;
const LINE: f64 = 17.0;

/// A stretch of the job.
struct Piece {
    name: &'static str,
    tip: String,
    width: f64,
    /// The job is away where there is none.
    ink: Option<(Ink, f64)>,
    /// Is it drawn shorter than it was?
    broken: bool,
    /// What stands above it, line by line.
    above: Vec<String>,
    /// The moment with which it ends; some have no name.
    ends: &'static str,
}

fn nanos(ns: u64) -> String {
    words::time_f64(ns as f64)
}

/// The job's stretches; walks to one scale.
fn pieces(of: &Sampled) -> Vec<Piece> {
    let walks = [of.cold_ns, of.warm_ns, of.warm_ns, of.post_ns];
    let all: u64 = walks.iter().sum();
    let room = WIDTH - 2.0 * LEFT - TOUCH - AWAY - LEAST * walks.len() as f64;
    let width = |ns: u64| LEAST + room * ns as f64 / all.max(1) as f64;
    let walk = |name, ns: u64, tip: &str, ink, ends| Piece {
        name,
        tip: format!("{tip}: {}", nanos(ns)),
        width: width(ns),
        ink: Some(ink),
        broken: false,
        above: vec![nanos(ns)],
        ends,
    };
    let cold = (Ink::Vermilion, 0.55);
    let settles = Piece {
        tip: "one more walk, which is not timed: it settles the working set in the caches"
            .to_owned(),
        above: Vec::new(),
        ..walk("settle", of.warm_ns, "", (Ink::Gray, 0.25), "")
    };
    vec![
        walk(
            "cold",
            of.cold_ns,
            "walk through the flushed working set",
            cold,
            "t1",
        ),
        settles,
        walk("warm", of.warm_ns, "warm walk", (Ink::Green, 0.55), "t2"),
        Piece {
            name: "keeps warm",
            tip: "it touches word after word and looks at its control page".to_owned(),
            width: TOUCH,
            ink: Some((Ink::Green, 0.25)),
            broken: true,
            above: Vec::new(),
            ends: "t3",
        },
        Piece {
            name: "away",
            tip: format!("preempted for {} by its own clock", nanos(of.away_ns)),
            width: AWAY,
            ink: None,
            broken: true,
            above: vec![
                format!("told {}", nanos(of.told_ns)),
                format!("own clock {}", nanos(of.away_ns)),
            ],
            ends: "t4",
        },
        walk(
            "after",
            of.post_ns,
            "walk after the preemption",
            (Ink::Orange, 0.7),
            "t5",
        ),
    ]
}

/// What stands below the picture.
fn told(of: &Sampled) -> Vec<String> {
    let (from, to) = of.processors;
    let delay = of.post_ns as f64 - of.warm_ns as f64;
    let apart = of.told_ns.abs_diff(of.away_ns);
    vec![
        format!(
            "Walks through {}: cold, t1 − t0 = {}; warm, until t2 = {}; after the preemption, t5 − t4 = {}.",
            words::size(of.wss),
            nanos(of.cold_ns),
            nanos(of.warm_ns),
            nanos(of.post_ns)
        ),
        format!(
            "Away: the engine told {}; by the job's own clock t4 − t3 = {}, {} apart. It was on processor \
             {from} and went on on processor {to}, as told: {}.",
            nanos(of.told_ns),
            nanos(of.away_ns),
            nanos(apart),
            crate::cpmd::name(of.resumption)
        ),
        format!(
            "The sample: (t5 − t4) less the warm walk = {}.",
            words::time_f64(delay)
        ),
    ]
}

/// Draws it.
pub fn figure(id: &str, of: &Sampled) -> Figure {
    let sheet = Sheet::default();
    let title = format!(
        "What makes a sample: a job of {} tasks under {}",
        of.tasks, of.policy
    );
    text(&sheet, &title, (LEFT - 8.0, 20.0), TEXT, true, Side::Start);
    let mut x = LEFT;
    moment(&sheet, "t0", x);
    for piece in pieces(of) {
        draw(&sheet, &piece, x);
        x += piece.width;
        if !piece.ends.is_empty() {
            moment(&sheet, piece.ends, x);
        }
    }
    let sentences = told(of);
    let mut y = BOTTOM + 40.0;
    for sentence in &sentences {
        for line in wrapped(sentence, SMALL, WIDTH - 2.0 * LEFT) {
            text(&sheet, &line, (LEFT, y), SMALL, false, Side::Start);
            y += LINE;
        }
        y += 3.0;
    }
    Figure {
        id: id.to_owned(),
        title,
        description: sentences.join(" "),
        caption:
            "One job of the trace, as Fig. 1 of 000. Walks are drawn to one scale; what is broken \
                  is drawn shorter than it was. Only jobs that went exactly so give samples."
                .to_owned(),
        width: WIDTH,
        height: y + 4.0,
        shapes: sheet.take(),
    }
}

fn text(sheet: &Sheet, text: &str, (x, y): (f64, f64), size: f64, bold: bool, side: Side) {
    let factor = if bold { BOLD } else { 1.0 };
    sheet.push(Shape::Text {
        text: cut(text, size * factor, WIDTH - LEFT),
        at: (tenths(x), tenths(y)),
        side,
        size,
        ink: Ink::Black,
        bold,
        upwards: false,
        halo: false,
    });
}

fn line(sheet: &Sheet, points: &[(f64, f64)], ink: Ink, dash: &'static str) {
    sheet.push(Shape::Line {
        points: points
            .iter()
            .map(|(x, y)| (tenths(*x), tenths(*y)))
            .collect(),
        paint: Paint { ink, opacity: 1.0 },
        width: tenths(1.0) as u32,
        dash,
    });
}

/// A moment of the job, named below it.
fn moment(sheet: &Sheet, name: &str, x: f64) {
    line(sheet, &[(x, TOP - 6.0), (x, BOTTOM + 6.0)], Ink::Black, "");
    text(sheet, name, (x, BOTTOM + 19.0), SMALL, false, Side::Middle);
}

fn draw(sheet: &Sheet, piece: &Piece, x: f64) {
    let right = x + piece.width;
    let corners = [(x, TOP), (right, TOP), (right, BOTTOM), (x, BOTTOM)];
    let places = || {
        corners
            .iter()
            .map(|(x, y)| (tenths(*x), tenths(*y)))
            .collect()
    };
    let middle = (x + right) / 2.0;
    match piece.ink {
        Some((ink, opacity)) => sheet.push(Shape::Polygon {
            points: places(),
            paint: Paint { ink, opacity },
        }),
        None => line(sheet, &[(x, BOTTOM), (right, BOTTOM)], Ink::Gray, "4 3"),
    }
    if piece.broken {
        for shift in [-2.0, 2.0] {
            let at = |x: f64, y: f64| (middle + shift + x, y);
            line(
                sheet,
                &[at(3.0, BOTTOM - 7.0), at(-3.0, BOTTOM + 4.0)],
                Ink::Black,
                "",
            );
        }
    }
    if text_width(piece.name, SMALL) + 4.0 <= piece.width {
        text(
            sheet,
            piece.name,
            (middle, (TOP + BOTTOM) / 2.0 + 4.0),
            SMALL,
            false,
            Side::Middle,
        );
    }
    for (line, above) in piece.above.iter().rev().enumerate() {
        if text_width(above, SMALL) <= piece.width {
            let y = TOP - 8.0 - 14.0 * line as f64;
            text(sheet, above, (middle, y), SMALL, false, Side::Middle);
        }
    }
    sheet.push(Shape::Tip {
        points: places(),
        text: piece.tip.clone(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled() -> Sampled {
        Sampled {
            policy: "P-EDF".to_owned(),
            tasks: 12,
            wss: Bytes::from_kib(64),
            resumption: Resumption::Memory,
            processors: (0, 1),
            cold_ns: 41_300,
            warm_ns: 2_100,
            post_ns: 9_800,
            told_ns: 3_214_000,
            away_ns: 3_215_400,
        }
    }

    #[test]
    fn a_job_is_drawn_with_its_walks_and_its_confirmation() {
        let figure = figure("sample", &sampled());
        let svg = figure.to_svg();
        for said in [
            "t0",
            "t1",
            "t2",
            "t3",
            "t4",
            "t5",
            "cold",
            "keeps warm",
            "away",
            "41.3 µs",
            "3.21 ms",
        ] {
            assert!(svg.contains(said), "{said}");
        }
        assert!(
            figure.description.contains("= 7.70 µs"),
            "{}",
            figure.description
        );
        assert!(
            figure.description.contains("1.40 µs apart"),
            "{}",
            figure.description
        );
    }

    #[test]
    fn walks_of_any_length_stay_on_the_figure_and_side_by_side() {
        for (cold, warm, post) in [
            (1, 1, 1),
            (9_000_000, 10, 20),
            (10, 9_000, 9_000_000),
            (0, 0, 0),
        ] {
            let of = Sampled {
                cold_ns: cold,
                warm_ns: warm,
                post_ns: post,
                ..sampled()
            };
            let pieces = pieces(&of);
            let wide: f64 = pieces.iter().map(|piece| piece.width).sum();
            assert!(wide <= WIDTH - 2.0 * LEFT + 0.1, "{wide}");
            assert!(pieces.iter().all(|piece| piece.width >= LEAST));
            for shape in figure("sample", &of).shapes {
                if let Shape::Text {
                    text,
                    at,
                    side,
                    size,
                    ..
                } = shape
                {
                    let half = match side {
                        Side::Middle => text_width(&text, size) / 2.0,
                        _ => 0.0,
                    };
                    let x = f64::from(at.0) / 10.0;
                    assert!(x - half >= 0.0 && x + half <= WIDTH, "{text}");
                }
            }
        }
    }
}
