//! Exact ratios and their comparison: a verdict never depends on rounding (DESIGN, principle 3).
//!
//! Floating point may decide what is clear; what is close is decided in integers.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;
use std::cmp::Ordering;
use std::fmt;

/// A non-negative ratio of 64-bit integers, not necessarily reduced. The denominator is never zero.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    num: u64,
    den: u64,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio { num: 0, den: 1 };
    /// One.
    pub const ONE: Ratio = Ratio { num: 1, den: 1 };

    /// `num / den`, or `None` when `den` is zero.
    pub const fn new(num: u64, den: u64) -> Option<Self> {
        if den == 0 { None } else { Some(Ratio { num, den }) }
    }
    /// A whole number.
    pub const fn whole(n: u64) -> Self {
        Ratio { num: n, den: 1 }
    }
    /// The numerator as given.
    pub const fn num(self) -> u64 {
        self.num
    }
    /// The denominator as given.
    pub const fn den(self) -> u64 {
        self.den
    }
    /// The nearest floating-point number, for people and plots.
    pub fn to_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
    /// As an arbitrary-precision rational.
    pub fn to_big(self) -> BigRational {
        BigRational::new(BigInt::from(self.num), BigInt::from(self.den))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ratio {}
impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (u128::from(self.num) * u128::from(other.den)).cmp(&(u128::from(other.num) * u128::from(self.den)))
    }
}
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.num, self.den)
    }
}

/// The exact sum of ratios.
pub fn sum(ratios: impl IntoIterator<Item = Ratio>) -> BigRational {
    ratios
        .into_iter()
        .fold(BigRational::zero(), |total, r| total + r.to_big())
}

/// Compares the exact sum of ratios with `bound`.
///
/// Adds in floating point first and keeps a bound of the error; only a sum within that error of the bound is added
/// exactly.
pub fn cmp_sum(ratios: impl Iterator<Item = Ratio> + Clone, bound: Ratio) -> Ordering {
    let (mut total, mut count) = (0.0_f64, 0_u64);
    for r in ratios.clone() {
        total += r.to_f64();
        count += 1;
    }
    // Each term has a relative error of at most 3 u (two conversions, one division), each addition one of u; u = 2^-53.
    let error = total * (count as f64 + 8.0) * f64::EPSILON;
    let bound_f64 = bound.to_f64();
    let slack = error + bound_f64 * 4.0 * f64::EPSILON;
    if total + slack < bound_f64 {
        return Ordering::Less;
    }
    if total - slack > bound_f64 {
        return Ordering::Greater;
    }
    sum(ratios).cmp(&bound.to_big())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(num: u64, den: u64) -> Ratio {
        Ratio::new(num, den).unwrap()
    }

    #[test]
    fn sums_are_compared_exactly() {
        let thirds = [ratio(1, 3); 3];
        assert_eq!(cmp_sum(thirds.iter().copied(), Ratio::ONE), Ordering::Equal);
        let p = (1 << 60) - 93;
        let near = [ratio(1, 2), ratio(p / 2, p)];
        assert_eq!(cmp_sum(near.iter().copied(), Ratio::ONE), Ordering::Less);
        let above = [ratio(1, 2), ratio(p / 2 + 1, p)];
        assert_eq!(cmp_sum(above.iter().copied(), Ratio::ONE), Ordering::Greater);
    }

    #[test]
    fn ratios_compare_without_overflow() {
        assert!(ratio(u64::MAX, u64::MAX - 1) > Ratio::ONE);
        assert_eq!(ratio(2, 4), ratio(1, 2));
    }
}
