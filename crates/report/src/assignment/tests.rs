//! Pictures of assignments say what is in them.

use super::*;

#[test]
fn the_description_names_every_bar() {
    let bars = [
        Bar {
            processors: "0".to_owned(),
            capacity: 1,
            shares: vec![Share {
                name: "camera".to_owned(),
                utilization: 0.5,
                overhead: 0.1,
                parts: Vec::new(),
            }],
        },
        Bar {
            processors: "2-5".to_owned(),
            capacity: 4,
            shares: Vec::new(),
        },
    ];
    let figure = figure("a", "P-EDF", &bars).unwrap();
    assert_eq!(
        figure.description,
        "Processor 0 runs camera, 60 % full. Processors 2–5 run nothing, 0 % full."
    );
}

#[test]
fn a_piece_too_narrow_for_its_name_is_named_below_and_where_one_points() {
    let share = |name: &str, utilization| Share {
        name: name.to_owned(),
        utilization,
        overhead: 0.001,
        parts: Vec::new(),
    };
    let bar = Bar {
        processors: "0".to_owned(),
        capacity: 1,
        shares: vec![share("detect", 0.6), share("sound-output", 0.02)],
    };
    let figure = figure("a", "P-EDF", &[bar]).unwrap();
    let texts = |wanted: &str| {
        let said = |s: &&Shape| matches!(s, Shape::Text { text, .. } if text == wanted);
        figure.shapes.iter().filter(said).count()
    };
    assert_eq!(texts("detect"), 1);
    assert_eq!(texts("narrow, from the left: sound-output"), 1);
    let svg = figure.to_svg();
    for tip in [
        "<title>detect: utilization 0.600, and 0.00100 of overheads</title>",
        "<title>sound-output: utilization 0.0200, and 0.00100 of overheads</title>",
    ] {
        assert!(svg.contains(tip), "{tip}");
    }
    assert!(figure.caption.contains("too narrow"), "{}", figure.caption);
}

#[test]
fn a_machine_with_hundreds_of_processors_stays_a_picture() {
    let bars: Vec<Bar> = (0..400)
        .map(|p| Bar {
            processors: p.to_string(),
            capacity: 1,
            shares: Vec::new(),
        })
        .collect();
    let figure = figure("a", "P-EDF", &bars).unwrap();
    assert!(figure.height < 1_700.0 && figure.caption.contains("The first 48 of 400 bars"));
}

#[test]
fn the_strip_below_a_piece_divides_its_overheads_as_they_are_told() {
    let share = |name: &str, parts: &[(Overhead, f64)]| Share {
        name: name.to_owned(),
        utilization: 0.3,
        overhead: 0.06,
        parts: parts.to_vec(),
    };
    let bar = Bar {
        processors: "0".to_owned(),
        capacity: 1,
        shares: vec![
            share(
                "camera",
                &[(Overhead::Scheduling, 0.03), (Overhead::Cpmd, 0.09)],
            ),
            share("sound", &[(Overhead::Tick, 0.004)]),
        ],
    };
    let without = Bar {
        shares: vec![share("camera", &[])],
        ..bar.clone()
    };
    let plain = figure("a", "P-EDF", &[without]).unwrap();
    let figure = figure("a", "P-EDF", &[bar]).unwrap();
    assert!(figure.height > plain.height && !plain.caption.contains("strip"));
    assert!(figure.caption.contains("strip"), "{}", figure.caption);
    let svg = figure.to_svg();
    for told in [
        "; of its inflated WCET scheduling 3.0 % and cache delay 9.0 %</title>",
        "<title>camera: cache delay is 9.0 % of its inflated WCET</title>",
        "<title>sound: tick is 0.4 % of its inflated WCET</title>",
        ">scheduling<",
        ">cache delay<",
        ">tick<",
    ] {
        assert!(svg.contains(told), "{told}: {svg}");
    }
    // What nobody is charged is not in the legend.
    assert!(!svg.contains(">release<"));
    // A quarter of the strip below the camera, three quarters, and all of it below the sound.
    let widths = |ink: Ink| -> Vec<i32> {
        let wide = figure.shapes.iter().filter_map(|shape| match shape {
            Shape::Polygon { points, paint } if paint.ink == ink => {
                let x = || points.iter().map(|p| p.0);
                Some(x().max()? - x().min()?)
            }
            _ => None,
        });
        wide.collect()
    };
    let (own, tick) = (widths(Ink::Gray), widths(Ink::Green));
    let (scheduling, sound) = (*own.iter().max().unwrap(), *tick.iter().max().unwrap());
    assert!((4 * scheduling - sound).abs() <= 8, "{own:?} {tick:?}");
    // All of it lies on the figure.
    let places = figure.shapes.iter().flat_map(|shape| match shape {
        Shape::Polygon { points, .. } | Shape::Tip { points, .. } => points.clone(),
        _ => Vec::new(),
    });
    for (x, y) in places {
        assert!((0..=(figure.width * 10.0) as i32).contains(&x), "{x}");
        assert!((0..=(figure.height * 10.0) as i32).contains(&y), "{y}");
    }
}

#[test]
fn a_legend_of_all_overheads_breaks_its_lines_above_the_bars() {
    let parts = Overhead::ALL.into_iter().map(|kind| (kind, 0.01)).collect();
    let bar = Bar {
        processors: "0".to_owned(),
        capacity: 1,
        shares: vec![Share {
            name: "camera".to_owned(),
            utilization: 0.5,
            overhead: 0.04,
            parts,
        }],
    };
    let figure = figure("a", "P-EDF", &[bar]).unwrap();
    let texts = figure.shapes.iter().filter_map(|shape| match shape {
        Shape::Text { text, at, .. } => Some((text.as_str(), *at)),
        _ => None,
    });
    let (mut lowest, mut bar_at) = (0, 0);
    for (text, (x, y)) in texts {
        let right = f64::from(x) / 10.0 + text_width(text, SMALL);
        match Overhead::ALL
            .into_iter()
            .any(|kind| parts::name(kind) == text)
        {
            true => {
                lowest = lowest.max(y);
                assert!(right <= figure.width, "{text}");
            }
            false if text == "camera" => bar_at = y,
            false => {}
        }
    }
    assert!(lowest > 340 && lowest + 100 < bar_at, "{lowest} {bar_at}");
}
