//! Where the figures of another measurement of the same thing would lie: intervals of 95 %, and
//! whether two such figures differ.
//!
//! **Means, and the largest that is no outlier**: the delete-a-group jackknife. Samples of one task
//! set hang together, so that sets are left out as wholes, one after the other, and the figure is
//! computed again; of how much it changes follows its standard error, and the interval is by
//! Student's t with one degree of freedom less than there are sets. For a mean this is the usual
//! interval from the means of the sets. Quartiles, which outliers are found by, are not smooth, but
//! groups that grow with the number of samples are enough for them (Shao and Wu, "A general theory
//! for jackknife variance estimation", 1989).
//!
//! **The largest of all** has no such interval: nothing bounds what has not been seen. Its lower end
//! rests on ranks alone. If two measurements are of the same thing and equally long, each of the
//! largest windows of both is equally likely from either of them. That the [`RANK`] largest are all
//! of one of them has a probability of one in 2^[`RANK`], 1.6 %: below the window of that rank the
//! largest of the other one hardly lies. The upper end is the largest itself. So two largest values
//! differ where one lies below the lower end of the other, 3 % of all cases for nothing. Windows, not
//! samples, are ranked: disturbances hit many samples in a row.

/// Windows of the largest values are counted down to this one.
pub const RANK: usize = 6;
/// So many windows at least are ranked.
const WINDOWS: usize = 40;
/// A single group is cut into so many.
pub const PARTS: usize = 10;

/// Quantiles of Student's t at 97.5 %, by degrees of freedom from one on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The quantile of Student's t at 97.5 %; for many degrees of freedom that of the normal
/// distribution.
pub fn student(freedom: usize) -> f64 {
    match STUDENT.get(freedom.saturating_sub(1)) {
        Some(quantile) => *quantile,
        // Three terms of the expansion of Cornish and Fisher.
        None => 1.960 + 2.372 / freedom as f64 + 2.823 / (freedom as f64).powi(2),
    }
}

/// The part of Student's t that lies farther from zero than `t` on either side (Abramowitz and
/// Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4), for at least one degree of
/// freedom.
pub fn beyond(t: f64, freedom: usize) -> f64 {
    let freedom = freedom.max(1);
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // The first term, and the number that its successor begins with.
    let (mut term, first) = match is_odd {
        true => (cos, 3),
        false => (1.0, 2),
    };
    let mut sum = match (is_odd, freedom) {
        (true, 1) => 0.0,
        _ => term,
    };
    for number in (first..freedom.saturating_sub(1)).step_by(2) {
        term *= (number - 1) as f64 / number as f64 * cos * cos;
        sum += term;
    }
    let within = match is_odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sin * sum),
        false => sin * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

/// The interval of a figure that was computed from all of `groups` groups of samples; `without`
/// computes it with one of them left out. `None` for fewer than two groups. Never below zero.
pub fn jackknife(figure: u64, groups: usize, without: impl Fn(usize) -> u64) -> Option<(u64, u64)> {
    if groups < 2 {
        return None;
    }
    let others: Vec<f64> = (0..groups).map(|group| without(group) as f64).collect();
    let k = groups as f64;
    let mean = others.iter().sum::<f64>() / k;
    let squares: f64 = others.iter().map(|other| (other - mean).powi(2)).sum();
    let error = ((k - 1.0) / k * squares).sqrt();
    let reach = (student(groups - 1) * error).ceil() as u64;
    Some((figure.saturating_sub(reach), figure.saturating_add(reach)))
}

/// The interval of the largest of all samples, which stand in the order in which they were taken,
/// by group; `None` where there are too few for [`RANK`] windows.
pub fn largest<T: Ord + Copy>(groups: &[&[T]]) -> Option<(T, T)> {
    let each = WINDOWS.div_ceil(groups.len().max(1));
    let windows = groups.iter().flat_map(|group| {
        let length = group.len().div_ceil(each).max(1);
        group
            .chunks(length)
            .filter_map(|window| window.iter().max())
    });
    let mut windows: Vec<T> = windows.copied().collect();
    windows.sort_unstable_by(|a, b| b.cmp(a));
    // The largest must not be among few by the shortness of the measurement.
    let lower = windows
        .get(RANK - 1)
        .filter(|_| windows.len() >= 2 * RANK)?;
    Some((*lower, windows[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn the_distribution_is_that_of_student() {
        for (freedom, quantile) in (1..).zip(STUDENT) {
            let p = beyond(quantile, freedom);
            assert!((p - 0.05).abs() < 2e-4, "{freedom}: {p}");
        }
        for freedom in [31, 60, 200] {
            let p = beyond(student(freedom), freedom);
            assert!((p - 0.05).abs() < 2e-4, "{freedom}: {p}");
        }
        assert_eq!(beyond(0.0, 4), 1.0);
        // Cauchy's distribution: a half lies beyond one.
        assert!((beyond(1.0, 1) - 0.5).abs() < 1e-12);
        // 26.7.4 by hand: ν = 2, t / √(2 + t²).
        assert!((1.0 - beyond(3.0, 2) - 3.0 / 11_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn of_a_mean_it_is_the_interval_of_the_means_of_groups() {
        let means = [10_000_u64, 12_000, 17_000];
        let all: u64 = means.iter().sum();
        let (low, high) = jackknife(all / 3, 3, |group| (all - means[group]) / 2).unwrap();
        // Deviation 3605.6, over the root of three 2081.7, times 4.303.
        assert!((high - 13_000).abs_diff(8_957) <= 2, "{high}");
        assert_eq!(13_000 - low, high - 13_000);
        assert_eq!(jackknife(5, 1, |_| 5), None);
        assert_eq!(jackknife(5, 4, |_| 5), Some((5, 5)));
        assert_eq!(jackknife(1, 2, |group| 100 * group as u64).unwrap().0, 0);
    }

    #[test]
    fn the_lower_end_of_the_largest_is_the_window_of_its_rank() {
        let rising: Vec<u32> = (0..4_000).collect();
        // Forty windows of a hundred; the sixth from above ends at 3499.
        assert_eq!(largest(&[&rising]), Some((3_499, 3_999)));
        assert_eq!(largest(&[&rising[..11]]), None);
        assert_eq!(largest::<u32>(&[]), None);
    }

    /// Largest values of equally long measurements of one thing lie below each other's lower ends
    /// in 3 % of all cases.
    #[test]
    fn largest_values_of_the_same_differ_as_seldom_as_is_said() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut draw = || -> Vec<u32> {
            (0..1_000)
                .map(|_| (1_000.0 / rng.random_range(1e-6..1.0_f64)) as u32)
                .collect()
        };
        let differ = |a: &(u32, u32), b: &(u32, u32)| a.1 < b.0 || b.1 < a.0;
        let apart = (0..400)
            .filter(|_| {
                let (a, b) = (draw(), draw());
                differ(&largest(&[&a]).unwrap(), &largest(&[&b]).unwrap())
            })
            .count();
        assert!((2..=26).contains(&apart), "{apart} of 400");
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_figure(
            figure in 0u64..1 << 40,
            others in prop::collection::vec(0u64..1 << 40, 2..12),
        ) {
            let (low, high) = jackknife(figure, others.len(), |group| others[group]).unwrap();
            prop_assert!(low <= figure && figure <= high);
        }

        #[test]
        fn the_largest_is_its_upper_end(
            groups in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..60), 1..5)
        ) {
            let groups: Vec<&[u32]> = groups.iter().map(Vec::as_slice).collect();
            let most = groups.concat().into_iter().max();
            if let Some((low, high)) = largest(&groups) {
                prop_assert_eq!(Some(high), most);
                prop_assert!(low <= high);
            }
        }
    }
}
