//! Curves of weighted schedulability with their confidence intervals, and how two of them lie.

use serde::Serialize;

/// A point of a curve.
#[derive(Clone, PartialEq, Debug)]
pub struct At {
    /// The value of the axis, in its unit.
    pub x: f64,
    /// The same as people write it.
    pub text: String,
    /// W.
    pub w: f64,
    /// The 95 % confidence interval of W.
    pub interval: (f64, f64),
}

/// A curve: one policy, ascending in x.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The policy as it is named in figures.
    pub policy: String,
    /// Its points.
    pub points: Vec<At>,
}

impl Line {
    /// The point at this value of the axis, if it is one of the curve.
    pub fn at(&self, x: f64) -> Option<&At> {
        self.points.iter().find(|at| at.x == x)
    }
}

/// A difference of two values of W with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gap {
    /// The estimate.
    pub value: f64,
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

impl Gap {
    /// `a` minus `b`: each end lies as far off as the root of the sum of the squared distances of
    /// the ends of both (Newcombe, Statistics in Medicine 17, 1998, method 10; Zou and Donner,
    /// Statistics in Medicine 27, 2008). Policies judge the same sets, so that their shares rise
    /// and fall together and the interval is wider than it need be: it errs on the side of doubt.
    pub fn between(a: &At, b: &At) -> Gap {
        Gap::of(&[(a, 1.0), (b, -1.0)])
    }

    /// The sum of values, each with its sign.
    pub fn of(terms: &[(&At, f64)]) -> Gap {
        let (mut value, mut below, mut above) = (0.0, 0.0, 0.0);
        for (at, sign) in terms {
            value += sign * at.w;
            let (down, up) = (at.w - at.interval.0, at.interval.1 - at.w);
            let (down, up) = if *sign < 0.0 { (up, down) } else { (down, up) };
            below += down * down;
            above += up * up;
        }
        Gap {
            value,
            low: value - below.sqrt(),
            high: value + above.sqrt(),
        }
    }
}

/// Where on the axis, as people write its values; both ends belong to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Stretch {
    /// The first value.
    pub from: String,
    /// The last one.
    pub to: String,
}

/// How one curve lies above another.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The mean over all points.
    pub mean: Gap,
    /// Where it is least, and how much that is.
    pub least: (String, Gap),
    /// Where it is greatest, and how much that is.
    pub most: (String, Gap),
    /// Where the first curve lies above the second for sure.
    pub above: Vec<Stretch>,
    /// Where it lies below for sure.
    pub below: Vec<Stretch>,
    /// Every point.
    pub gaps: Vec<Gap>,
}

/// `upper` minus `lower` at the values of the axis that both have; `None` where there are none.
///
/// The interval of the mean is the mean of the intervals: the points of a curve are made of the same
/// sets, so that their errors do not cancel out.
pub fn difference(upper: &Line, lower: &Line) -> Option<Difference> {
    let pairs = upper
        .points
        .iter()
        .filter_map(|a| Some((a.text.clone(), Gap::between(a, lower.at(a.x)?))));
    let pairs: Vec<(String, Gap)> = pairs.collect();
    let by_value = |a: &&(String, Gap), b: &&(String, Gap)| a.1.value.total_cmp(&b.1.value);
    let least = pairs.iter().min_by(by_value)?.clone();
    // Of several the first is told.
    let most = pairs.iter().rev().max_by(by_value)?.clone();
    let n = pairs.len() as f64;
    let mean = |of: fn(&Gap) -> f64| pairs.iter().map(|(_, gap)| of(gap)).sum::<f64>() / n;
    Some(Difference {
        mean: Gap {
            value: mean(|gap| gap.value),
            low: mean(|gap| gap.low),
            high: mean(|gap| gap.high),
        },
        least,
        most,
        above: stretches(&pairs, |gap| gap.low > 0.0),
        below: stretches(&pairs, |gap| gap.high < 0.0),
        gaps: pairs.into_iter().map(|(_, gap)| gap).collect(),
    })
}

/// The runs of points of which this is true.
fn stretches(pairs: &[(String, Gap)], is: impl Fn(&Gap) -> bool) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = Vec::new();
    let mut inside = false;
    for (text, gap) in pairs {
        match (is(gap), all.last_mut().filter(|_| inside)) {
            (true, Some(last)) => last.to.clone_from(text),
            (true, None) => all.push(Stretch {
                from: text.clone(),
                to: text.clone(),
            }),
            (false, _) => {}
        }
        inside = is(gap);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64], reach: f64) -> Line {
        let at = |(x, w): (usize, &f64)| At {
            x: x as f64,
            text: format!("{x}us"),
            w: *w,
            interval: (w - reach, w + reach),
        };
        Line {
            policy: "A".to_owned(),
            points: values.iter().enumerate().map(at).collect(),
        }
    }

    /// Newcombe (1998), table II, (a): 56/70 against 48/80, method 10: 0.0524 to 0.3339.
    #[test]
    fn the_interval_of_a_difference_is_that_of_the_literature() {
        let at = |accepted, sets| At {
            x: 0.0,
            text: String::new(),
            w: f64::from(accepted) / f64::from(sets),
            interval: crate::wilson(accepted, sets),
        };
        let gap = Gap::between(&at(56, 70), &at(48, 80));
        let close = |a: f64, b: f64| (a - b).abs() < 5e-5;
        assert!(close(gap.value, 0.2) && close(gap.low, 0.0524) && close(gap.high, 0.3339));
    }

    #[test]
    fn a_difference_says_where_which_curve_is_above() {
        let upper = line(&[0.9, 0.8, 0.5, 0.3, 0.3], 0.02);
        let lower = line(&[0.5, 0.5, 0.5, 0.5, 0.1], 0.02);
        let all = difference(&upper, &lower).unwrap();
        let stretch = |from: &str, to: &str| Stretch {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        assert_eq!(all.above, [stretch("0us", "1us"), stretch("4us", "4us")]);
        assert_eq!(all.below, [stretch("3us", "3us")]);
        assert!((all.mean.value - 0.14).abs() < 1e-12);
        assert_eq!((all.least.0.as_str(), all.most.0.as_str()), ("3us", "0us"));
        assert!(all.mean.low < all.mean.value && all.mean.value < all.mean.high);
        // Nothing in common.
        let other = Line {
            points: Vec::new(),
            ..lower
        };
        assert_eq!(difference(&upper, &other), None);
    }
}
