//! Any number of numbers of tasks, and nothing cut.

use super::*;
use crate::sheet::Shape;
use crate::svg::Figure;

const WAYS: [Resumption; 4] = [
    Resumption::Preemption,
    Resumption::Migration(2),
    Resumption::Migration(3),
    Resumption::Memory,
];

/// Three sizes and four ways, delays around a level of each size.
fn group(counts: &[u32], level: impl Fn(Bytes, u32) -> f64) -> Group {
    let mut lines = Vec::new();
    for kib in [256, 512, 1024] {
        for (place, resumption) in WAYS.into_iter().enumerate() {
            let wss = Bytes::from_kib(kib);
            let points = counts
                .iter()
                .map(|n| (*n, level(wss, *n) + place as f64 * 900.0));
            lines.push(Line {
                wss,
                resumption,
                points: points.collect(),
            });
        }
    }
    Group {
        title: "g-edf, load".to_owned(),
        lines,
    }
}

fn drawn(groups: &[Group]) -> Figure {
    let sketch = sketch("scheduled", "Largest delay", "As Fig. 4 of 000.", groups).unwrap();
    sketch.draw().unwrap()
}

/// Everything that is on the figure lies on it; texts do with all of their width.
fn nothing_is_cut(figure: &Figure) {
    let inside = |(x, y): (i32, i32)| {
        let (x, y) = (f64::from(x) / 10.0, f64::from(y) / 10.0);
        assert!((0.0..=figure.width).contains(&x), "{x} of {}", figure.width);
        assert!(
            (0.0..=figure.height).contains(&y),
            "{y} of {}",
            figure.height
        );
    };
    for shape in &figure.shapes {
        match shape {
            Shape::Line { points, .. } | Shape::Polygon { points, .. } => {
                points.iter().copied().for_each(inside);
            }
            Shape::Circle { center, .. } => inside(*center),
            Shape::Text {
                text,
                at,
                size,
                side,
                upwards: false,
                ..
            } => {
                let wide = (text_width(text, *size) * 10.0) as i32;
                let left = match side {
                    crate::sheet::Side::Start => at.0,
                    crate::sheet::Side::Middle => at.0 - wide / 2,
                    crate::sheet::Side::End => at.0 - wide,
                };
                inside((left, at.1));
                inside((left + wide, at.1));
            }
            _ => {}
        }
    }
}

fn texts(figure: &Figure) -> Vec<(String, (i32, i32))> {
    let text = |shape: &Shape| match shape {
        Shape::Text { text, at, .. } => Some((text.clone(), *at)),
        _ => None,
    };
    figure.shapes.iter().filter_map(text).collect()
}

#[test]
fn four_and_more_numbers_of_tasks_have_their_points_and_none_is_cut() {
    for counts in [
        vec![75, 100, 125, 150, 175, 200, 225, 250],
        vec![6, 12, 24, 48],
        vec![3],
        (1..=60).collect(),
        vec![2, 3, 4, 500],
    ] {
        let group = group(&counts, |wss, n| {
            wss.get() as f64 / 4.0 + f64::from(n % 7) * 90.0
        });
        let figure = drawn(&[group]);
        nothing_is_cut(&figure);
        // A marker of each line at each number: circles are those of preemptions, and one is the
        // legend's.
        let circles = figure
            .shapes
            .iter()
            .filter(|shape| matches!(shape, Shape::Circle { .. }));
        assert_eq!(circles.count(), 3 * counts.len() + 1, "{counts:?}");
        let named = texts(&figure);
        for edge in [counts.first().unwrap(), counts.iter().max().unwrap()] {
            let is_named = named.iter().any(|(text, _)| *text == edge.to_string());
            assert!(
                is_named || counts.len() > 8,
                "{edge} of {counts:?}: {named:?}"
            );
        }
        for size in ["256 KiB", "512 KiB", "1 MiB"] {
            assert_eq!(named.iter().filter(|n| n.0 == size).count(), 1, "{named:?}");
        }
    }
}

#[test]
fn names_of_sizes_keep_apart_where_their_lines_lie_upon_each_other() {
    let figure = drawn(&[group(&[4, 8, 16, 32], |_, _| 5_000.0)]);
    nothing_is_cut(&figure);
    let mut heights: Vec<i32> = texts(&figure)
        .into_iter()
        .filter(|(text, _)| text.ends_with("iB"))
        .map(|(_, at)| at.1)
        .collect();
    heights.sort_unstable();
    assert_eq!(heights.len(), 3);
    assert!(
        heights.windows(2).all(|two| two[1] - two[0] >= 110),
        "{heights:?}"
    );
}

#[test]
fn delays_below_zero_are_on_the_axes_too() {
    let figure = drawn(&[group(&[4, 8, 16, 32], |_, n| {
        -20_000.0 + f64::from(n) * 100.0
    })]);
    nothing_is_cut(&figure);
    let zero = texts(&figure).iter().any(|(text, _)| text == "0");
    assert!(zero, "zero is named");
}

#[test]
fn lines_with_gaps_and_panels_without_points_are_no_trouble() {
    let mut one = group(&[4, 8, 16, 32], |wss, _| wss.get() as f64);
    one.lines[0].points.remove(1);
    one.lines[5].points.clear();
    let empty = Group {
        title: "nothing".to_owned(),
        lines: Vec::new(),
    };
    let sketch = sketch("a", "b", "c", &[one, empty.clone()]).unwrap();
    assert_eq!(sketch.panels.len(), 1);
    assert!(sketch.panels[0].description.contains("4 numbers of tasks"));
    nothing_is_cut(&sketch.draw().unwrap());
    assert!(super::sketch("a", "b", "c", &[empty]).is_none());
}
