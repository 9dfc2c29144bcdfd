//! PDF files of figures, read back: pages, their size, and the texts that a reader finds in them.

mod pdf_reader;

use pdf_reader::{Document, Value};
use report::Figure;
use report::schedulability::{self, Crossing, Curve, Form, Swept, Unit, Utilization};
use report::sheet::{Paint, Shape};
use report::style::{Family, Ink, Print};

fn curve(policy: &str, points: &[(f64, f64)]) -> Curve {
    Curve {
        policy: policy.to_owned(),
        points: points.to_vec(),
        band: points
            .iter()
            .map(|(x, y)| (*x, y - 0.1, y + 0.05))
            .collect(),
    }
}

/// The two charts of a study in a column of 3.5 inches, with 7 points as the least text.
fn charts() -> (Vec<Figure>, f64) {
    let scale = 7.0 / 9.0;
    let form = Form {
        width: 336.0 / scale,
        ..Form::default()
    };
    let curves = [
        curve("P-EDF", &[(0.0, 0.5), (5e5, 0.4), (1e6, 0.3)]),
        curve("NPS-F-DELTA-4", &[(0.0, 0.9), (5e5, 0.45), (1e6, 0.2)]),
    ];
    let swept = Swept {
        symbol: "ξ".to_owned(),
        title: "working set size of every task".to_owned(),
        unit: Unit::Bytes,
    };
    let crossing = Crossing {
        falling: "NPS-F-DELTA-4".to_owned(),
        reference: "P-EDF".to_owned(),
        level: 0.5,
        at: 4.4e5,
    };
    let title = "Light (and short), overheads ≥ 20 µs \\ 24 processors";
    let weighted =
        schedulability::weighted_as(&form, "w", title, &swept, &curves, Some(&crossing), "Sets.");
    let of = Utilization::Of(24);
    let shares = schedulability::by_utilization_as(&form, "s", title, &of, &curves, "Sets.");
    (
        vec![weighted.expect("drawn"), shares.expect("drawn")],
        scale,
    )
}

/// The lines of text of a figure, those with paper around them twice.
fn lines(figure: &Figure) -> Vec<(&str, bool)> {
    let line = |shape| match shape {
        &Shape::Text {
            ref text,
            bold,
            halo,
            ..
        } => Some(vec![(text.as_str(), bold); 1 + usize::from(halo)]),
        _ => None,
    };
    figure.shapes.iter().filter_map(line).flatten().collect()
}

#[test]
fn a_figure_is_one_page_of_its_size_whose_texts_are_whole() {
    let (figures, scale) = charts();
    for family in [Family::Sans, Family::Serif] {
        let print = Print { scale, family };
        for figure in &figures {
            let bytes = figure.to_pdf_as(&print).expect("a file");
            let document = Document::read(&bytes);
            let [page] = &document.pages()[..] else {
                panic!("one page");
            };
            let size = page.table()["MediaBox"].numbers();
            assert_eq!(size[..3], [0.0, 0.0, 252.0], "3.5 inches");
            let height = figure.height * scale * 0.75;
            assert!((size[3] - height).abs() < 0.001, "{size:?}: {height}");

            let found = document.texts(page);
            let texts: Vec<(&str, bool)> = found
                .iter()
                .map(|line| (line.text.as_str(), line.font.ends_with("-Bold")))
                .collect();
            assert_eq!(texts, lines(figure));
            assert!(texts.iter().any(|(text, _)| *text == "NPS-F-DELTA-4"));
            let wanted = match family {
                Family::Sans => "WARMST+DejaVuSans",
                Family::Serif => "WARMST+DejaVuSerif",
            };
            for line in &found {
                assert_eq!(line.font.trim_end_matches("-Bold"), wanted);
                for (x, y) in [line.from, line.to] {
                    let inside = (0.0..=size[2]).contains(&x) && (0.0..=size[3]).contains(&y);
                    assert!(inside, "{line:?} is cut by a page of {size:?}");
                }
            }
            let info = document.info();
            assert_eq!(document.entry(&info, "Title").text(), figure.title);
            assert_eq!(document.entry(&info, "Subject").text(), figure.description);
        }
    }
}

/// A page in one weight brings one font.
#[test]
fn fonts_that_nobody_uses_stay_out() {
    let (figures, _) = charts();
    let mut figure = figures.into_iter().next().expect("a figure");
    figure
        .shapes
        .retain(|shape| !matches!(shape, Shape::Text { bold: true, .. }));
    let bytes = figure.to_pdf().expect("a file");
    let document = Document::read(&bytes);
    let resources = document.entry(&document.pages()[0], "Resources");
    let fonts = document.entry(&resources, "Font");
    assert_eq!(fonts.table().keys().collect::<Vec<_>>(), ["R"]);
}

/// Lines keep their dashes, and bands and dots are as light as in the other formats.
#[test]
fn shapes_are_drawn_as_they_are_described() {
    let paint = |ink, opacity| Paint { ink, opacity };
    let shapes = vec![
        Shape::Line {
            points: vec![(0, 0), (1_000, 2_000)],
            paint: paint(Ink::Blue, 1.0),
            width: 15,
            dash: "6 2.5",
        },
        Shape::Polygon {
            points: vec![(0, 0), (100, 0), (100, 100)],
            paint: paint(Ink::Vermilion, 0.18),
        },
        Shape::Circle {
            center: (50, 50),
            radius: 30,
            paint: paint(Ink::Orange, 1.0),
            outline: Some(10),
        },
        Shape::Dots {
            crosses: false,
            points: vec![(10, 10), (20, 20)],
            radius: 9,
            paint: paint(Ink::Purple, 0.4),
        },
        Shape::Tip {
            points: vec![(0, 0), (9, 9), (9, 0)],
            text: "not on paper".to_owned(),
        },
    ];
    let figure = Figure {
        id: "one".to_owned(),
        title: "One figure".to_owned(),
        description: "Shapes.".to_owned(),
        caption: String::new(),
        width: 400.0,
        height: 200.0,
        shapes,
    };
    let bytes = figure.to_pdf().expect("a file");
    let document = Document::read(&bytes);
    let page = &document.pages()[0];
    assert_eq!(page.table()["MediaBox"].numbers(), [0.0, 0.0, 300.0, 150.0]);
    let operators = document.operators(page);
    let of = |name: &str| -> Vec<&Vec<Value>> {
        let same = operators.iter().filter(|(operator, _)| operator == name);
        same.map(|(_, operands)| operands).collect()
    };
    assert_eq!(of("d")[0][0].numbers(), [60.0, 25.0]);
    let widths: Vec<f64> = of("w").iter().map(|w| w[0].number()).collect();
    assert_eq!(widths, [15.0, 10.0, 18.0], "line, ring, dots");
    // Line, ring and dots; the area; the ring.
    assert_eq!(["S", "f", "c"].map(|name| of(name).len()), [3, 1, 4]);
    let resources = document.entry(page, "Resources");
    let states = document.entry(&resources, "ExtGState");
    let opacities: Vec<f64> = of("gs")
        .iter()
        .map(|name| {
            let state = document.entry(&states, name[0].name());
            let both = ["CA", "ca"].map(|key| state.table()[key].number());
            assert_eq!(both[0], both[1]);
            (both[0] * 100.0).round()
        })
        .collect();
    assert_eq!(opacities, [100.0, 18.0, 100.0, 40.0]);
    assert_eq!(document.texts(page).len(), 0);
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    let (figures, scale) = charts();
    for family in [Family::Sans, Family::Serif] {
        let print = Print { scale, family };
        for figure in &figures {
            assert!(figure.to_pdf_as(&print) == figure.to_pdf_as(&print));
        }
    }
}

#[test]
fn sizes_that_make_no_page_are_refused() {
    let (figures, _) = charts();
    for scale in [0.0, -1.0, f64::NAN, 1e-3, 1e4] {
        let print = Print {
            scale,
            ..Print::default()
        };
        let error = figures[0]
            .to_pdf_as(&print)
            .expect_err("no page")
            .to_string();
        assert!(error.contains("cannot be made"), "{error}");
    }
}
