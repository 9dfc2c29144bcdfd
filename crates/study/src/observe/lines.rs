//! Curves of weighted schedulability, and how two of them lie.

use crate::contrast::{Contrast, Gap, TAIL, Term};
use crate::results::Results;
use serde::Serialize;

/// The curves of a study, at the points of its axis that are looked at.
#[derive(Clone, Debug)]
pub(crate) struct Curves<'a> {
    pub results: &'a Results,
    /// Their places on the axis.
    pub points: Vec<usize>,
}

/// Where on the axis, as people write its values; both ends belong to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Stretch {
    /// The first value.
    pub from: String,
    /// The last one.
    pub to: String,
}

/// How one curve lies above another. Intervals are of 95 %.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Difference {
    /// Where it is least, and how much that is.
    pub least: (String, Gap),
    /// Where it is greatest, and how much that is.
    pub most: (String, Gap),
    /// Where the first curve lies above the second for sure.
    pub above: Vec<Stretch>,
    /// Where it lies below for sure.
    pub below: Vec<Stretch>,
}

impl<'a> Curves<'a> {
    /// The place of the point at this value of the axis, if it is one of the curves.
    pub fn at(&self, x: f64) -> Option<usize> {
        let mut points = self.points.iter();
        points
            .find(|at| self.results.axis.value(**at) == x)
            .copied()
    }

    /// A sum of values of W; each: policy, point, and what it counts.
    pub fn sum(&self, terms: &[(usize, usize, i32)]) -> Contrast<'a> {
        self.results.contrast(vec![sum(terms)])
    }

    /// `upper` minus `lower` at a point.
    pub fn gap(&self, upper: usize, lower: usize, at: usize) -> Contrast<'a> {
        self.sum(&[(upper, at, 1), (lower, at, -1)])
    }

    /// `upper` minus `lower` at each point.
    pub fn gaps(&self, upper: usize, lower: usize) -> Vec<Contrast<'a>> {
        let points = self.points.iter();
        points.map(|at| self.gap(upper, lower, *at)).collect()
    }

    /// `upper` minus `lower` in the mean over all points.
    pub fn mean(&self, upper: usize, lower: usize) -> Contrast<'a> {
        let points = self.points.iter();
        let each = points.map(|at| sum(&[(upper, *at, 1), (lower, *at, -1)]));
        self.results.contrast(each.collect())
    }

    /// How a curve lies above another by these gaps; `None` where there are none.
    pub fn difference(&self, gaps: &[Contrast<'_>]) -> Option<Difference> {
        let texts = self.points.iter().map(|at| self.results.axis.text(*at));
        difference(texts.zip(gaps.iter().map(|gap| gap.gap(TAIL))).collect())
    }
}

fn sum(terms: &[(usize, usize, i32)]) -> Vec<Term> {
    let term = |(policy, point, factor): &(usize, usize, i32)| Term {
        policy: *policy,
        point: *point,
        factor: *factor,
    };
    terms.iter().map(term).collect()
}

fn difference(pairs: Vec<(String, Gap)>) -> Option<Difference> {
    let by_value = |a: &&(String, Gap), b: &&(String, Gap)| a.1.value.total_cmp(&b.1.value);
    let least = pairs.iter().min_by(by_value)?.clone();
    // Of several the first is told.
    let most = pairs.iter().rev().max_by(by_value)?.clone();
    Some(Difference {
        least,
        most,
        above: stretches(&pairs, |gap| gap.low > 0.0),
        below: stretches(&pairs, |gap| gap.high < 0.0),
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

    #[test]
    fn a_difference_says_where_which_curve_is_above() {
        let values = [0.4, 0.3, 0.0, -0.2, 0.2];
        let gap = |(x, value): (usize, &f64)| {
            let gap = Gap {
                value: *value,
                low: value - 0.03,
                high: value + 0.03,
            };
            (format!("{x}us"), gap)
        };
        let all = difference(values.iter().enumerate().map(gap).collect()).unwrap();
        let stretch = |from: &str, to: &str| Stretch {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        assert_eq!(all.above, [stretch("0us", "1us"), stretch("4us", "4us")]);
        assert_eq!(all.below, [stretch("3us", "3us")]);
        assert_eq!((all.least.0.as_str(), all.most.0.as_str()), ("3us", "0us"));
        assert_eq!(difference(Vec::new()), None);
    }
}
