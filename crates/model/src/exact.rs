//! Exact ratios and their comparison: a verdict never depends on rounding (DESIGN, principle 3).
//!
//! Three stages, each only for what the one before cannot decide: floating point with a bound of
//! its error, 128-bit fixed point with a bound of its error, and at last integers of any length.
//! The last one adds fractions of one denominator first and the rest as a balanced tree, so that a
//! million coprime denominators take seconds and not days.

use crate::error::{Error, Result};
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::Zero;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

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
        if den == 0 {
            None
        } else {
            Some(Ratio { num, den })
        }
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
        (u128::from(self.num) * u128::from(other.den))
            .cmp(&(u128::from(other.num) * u128::from(self.den)))
    }
}
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.num, self.den)
    }
}

impl FromStr for Ratio {
    type Err = Error;
    /// Reads `12`, `3.25` or `2/3`, exactly.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(format!("`{text}` is not a ratio"))
                .remedy("write a number of at least zero such as `12`, `3.25` or `2/3`")
        };
        let digits = |t: &str| -> Result<u64> {
            if t.is_empty() || !t.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            t.parse().map_err(|_| bad())
        };
        let t = text.trim();
        if let Some((num, den)) = t.split_once('/') {
            return Ratio::new(digits(num)?, digits(den)?).ok_or_else(bad);
        }
        let (whole, fraction) = t.split_once('.').unwrap_or((t, "0"));
        let fraction = fraction.trim_end_matches('0');
        let den = u32::try_from(fraction.len())
            .ok()
            .and_then(|places| 10_u64.checked_pow(places))
            .ok_or_else(bad)?;
        let part = if fraction.is_empty() {
            0
        } else {
            digits(fraction)?
        };
        let num = digits(whole)?
            .checked_mul(den)
            .and_then(|n| n.checked_add(part))
            .ok_or_else(bad)?;
        Ratio::new(num, den).ok_or_else(bad)
    }
}

/// The exact sum of ratios. Reduced at the end only, which is slow for many coprime denominators:
/// to compare a sum use [`cmp_sum`].
pub fn sum(ratios: impl IntoIterator<Item = Ratio>) -> BigRational {
    let (num, den) = add_all(ratios.into_iter().collect());
    BigRational::new(BigInt::from(num), BigInt::from(den))
}

/// Compares the exact sum of ratios with `bound`.
///
/// Adds in floating point first and keeps a bound of the error; only a sum within that error of the
/// bound is added exactly.
pub fn cmp_sum(ratios: impl Iterator<Item = Ratio> + Clone, bound: Ratio) -> Ordering {
    let (mut total, mut count) = (0.0_f64, 0_u64);
    for r in ratios.clone() {
        total += r.to_f64();
        count += 1;
    }
    // Each term has a relative error of at most 3 u (two conversions, one division), each addition
    // one of u; u = 2^-53.
    let error = total * (count as f64 + 8.0) * f64::EPSILON;
    let bound_f64 = bound.to_f64();
    let slack = error + bound_f64 * 4.0 * f64::EPSILON;
    if total + slack < bound_f64 {
        return Ordering::Less;
    }
    if total - slack > bound_f64 {
        return Ordering::Greater;
    }
    cmp_sum_exactly(ratios, bound)
}

/// [`cmp_sum`] for sums that floating point cannot tell from their bound.
///
/// The whole parts are added as integers. What remains of each ratio is a proper fraction, known to
/// 64 bits after the point: the sum of `n` of them lies within `n` units of the last place. Only a
/// sum that even so is undecided goes to integers of any length.
pub fn cmp_sum_exactly(ratios: impl Iterator<Item = Ratio> + Clone, bound: Ratio) -> Ordering {
    let (mut low, mut inexact) = (0_u128, 0_u128);
    for r in ratios.clone() {
        let (whole, rest) = (r.num / r.den, r.num % r.den);
        let scaled = u128::from(rest) << 64;
        let (fraction, lost) = (scaled / u128::from(r.den), scaled % u128::from(r.den));
        // Below 2^64 terms of below 2^64 each, and the fractions: 2^128 is out of reach for a set
        // of 2^63 ratios.
        match low
            .checked_add(u128::from(whole) << 64)
            .and_then(|l| l.checked_add(fraction))
        {
            Some(sum) => low = sum,
            // The sum passes 2^64, which no bound of 64 bits does.
            None => return Ordering::Greater,
        }
        inexact += u128::from(lost != 0);
    }
    let (whole, rest) = (bound.num / bound.den, bound.num % bound.den);
    let scaled = u128::from(rest) << 64;
    let bound_low = (u128::from(whole) << 64) + scaled / u128::from(bound.den);
    let bound_inexact = scaled % u128::from(bound.den) != 0;
    // sum in [low, low + inexact), bound in [bound_low, bound_low + 1), each closed where nothing
    // was lost.
    if inexact == 0 && !bound_inexact {
        return low.cmp(&bound_low);
    }
    if low.saturating_add(inexact) <= bound_low {
        return Ordering::Less;
    }
    if low > bound_low {
        return Ordering::Greater;
    }
    let (num, den) = add_all(ratios.collect());
    (num * bound.den).cmp(&(den * bound.num))
}

/// The sign of a sum of whole numbers and quotients, exactly: for conditions that are close.
///
/// Invariant: the fractions are proper and positive, so that the sum lies between `whole` and
/// `whole` plus their number.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    whole: i128,
    fractions: Vec<Ratio>,
}

impl ExactSum {
    /// Zero.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a whole number.
    pub fn add_whole(&mut self, n: i128) {
        self.whole = self.whole.saturating_add(n);
    }
    /// Adds `num / den`; a denominator of zero counts as one.
    pub fn add(&mut self, num: u128, den: u64) {
        let (quotient, rest) = divide(num, den);
        self.add_whole(quotient);
        self.push(rest, den);
    }
    /// Subtracts `num / den`; a denominator of zero counts as one.
    pub fn subtract(&mut self, num: u128, den: u64) {
        let (quotient, rest) = divide(num, den);
        self.add_whole(-quotient);
        if rest > 0 {
            self.add_whole(-1);
            self.push(den - rest, den);
        }
    }
    /// Adds `times · ratio`, which must stay below 2^127.
    pub fn add_scaled(&mut self, times: u128, ratio: Ratio) {
        let (quotient, rest) = scale(times, ratio);
        self.add_whole(quotient);
        self.push(rest, ratio.den);
    }
    /// Subtracts `times · ratio`, which must stay below 2^127.
    pub fn subtract_scaled(&mut self, times: u128, ratio: Ratio) {
        let (quotient, rest) = scale(times, ratio);
        self.add_whole(-quotient);
        if rest > 0 {
            self.add_whole(-1);
            self.push(ratio.den - rest, ratio.den);
        }
    }
    /// Adds another sum.
    pub fn add_sum(&mut self, other: &ExactSum) {
        self.add_whole(other.whole);
        self.fractions.extend_from_slice(&other.fractions);
    }
    fn push(&mut self, num: u64, den: u64) {
        if num > 0 {
            self.fractions.extend(Ratio::new(num, den));
        }
    }
    /// The sum compared with a whole number.
    pub fn cmp_whole(&self, n: i128) -> Ordering {
        match n.checked_sub(self.whole).map(u64::try_from) {
            // Above all that the fractions can reach.
            None if n > 0 => Ordering::Less,
            None => Ordering::Greater,
            Some(Ok(left)) if left >= self.fractions.len().max(1) as u64 => Ordering::Less,
            Some(Ok(0)) if !self.fractions.is_empty() => Ordering::Greater,
            Some(Ok(left)) => cmp_sum_exactly(self.fractions.iter().copied(), Ratio::whole(left)),
            Some(Err(_)) if n < self.whole => Ordering::Greater,
            Some(Err(_)) => Ordering::Less,
        }
    }
    /// The sum compared with zero.
    pub fn sign(&self) -> Ordering {
        self.cmp_whole(0)
    }
}

/// `times · ratio` as a whole number and the numerator of what remains.
fn scale(times: u128, ratio: Ratio) -> (i128, u64) {
    let (num, den) = (u128::from(ratio.num), u128::from(ratio.den));
    let (quotient, rest) = divide((times % den) * num, ratio.den);
    let whole = (times / den)
        .checked_mul(num)
        .and_then(|w| i128::try_from(w).ok());
    (whole.unwrap_or(i128::MAX).saturating_add(quotient), rest)
}

fn divide(num: u128, den: u64) -> (i128, u64) {
    let den = u128::from(den.max(1));
    // A remainder of a 64-bit divisor fits 64 bits; a quotient beyond 2^127 would be a sum that no
    // bound reaches.
    let rest = u64::try_from(num % den).unwrap_or(0);
    (i128::try_from(num / den).unwrap_or(i128::MAX), rest)
}

/// The exact sum as a fraction that is not reduced: numerator, denominator.
pub fn sum_unreduced(ratios: impl IntoIterator<Item = Ratio>) -> (BigUint, BigUint) {
    add_all(ratios.into_iter().collect())
}

fn add_all(mut ratios: Vec<Ratio>) -> (BigUint, BigUint) {
    ratios.sort_unstable_by_key(|r| r.den);
    let merged: Vec<(u128, u64)> = ratios
        .chunk_by(|a, b| a.den == b.den)
        .flat_map(|same| {
            // A chunk keeps its sum below 2^128: at most 2^63 numerators of 64 bits.
            let num: u128 = same.iter().map(|r| u128::from(r.num)).sum();
            same.first().map(|first| reduce(num, first.den))
        })
        .collect();
    add_tree(&merged)
}

/// Divides out what numerator and denominator share.
fn reduce(num: u128, den: u64) -> (u128, u64) {
    let shared = num_integer::gcd(num, u128::from(den)).max(1);
    // It divides `den`, so it fits.
    (
        num / shared,
        u64::try_from(u128::from(den) / shared).unwrap_or(den),
    )
}

/// Adds fractions two by two, halves by halves: the long multiplications are few and balanced.
fn add_tree(fractions: &[(u128, u64)]) -> (BigUint, BigUint) {
    match fractions {
        [] => (BigUint::zero(), BigUint::from(1_u32)),
        [(num, den)] => (BigUint::from(*num), BigUint::from(*den)),
        _ => {
            let (left, right) = fractions.split_at(fractions.len() / 2);
            let ((a, b), (c, d)) = (add_tree(left), add_tree(right));
            (a * &d + c * &b, b * d)
        }
    }
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
        assert_eq!(
            cmp_sum(above.iter().copied(), Ratio::ONE),
            Ordering::Greater
        );
    }

    #[test]
    fn every_stage_agrees_with_rational_arithmetic() {
        let p = (1 << 60) - 93;
        let pieces = [
            ratio(1, 3),
            ratio(2, 7),
            ratio(p / 2, p),
            ratio(u64::MAX, 3),
            ratio(5, 1),
        ];
        for mask in 1_u32..32 {
            let chosen: Vec<Ratio> = (0..5)
                .filter(|i| mask >> i & 1 == 1)
                .map(|i| pieces[i])
                .collect();
            let exact: BigRational = chosen.iter().map(|r| r.to_big()).sum();
            assert_eq!(sum(chosen.iter().copied()), exact);
            for bound in [
                Ratio::ONE,
                ratio(13, 21),
                ratio(p - 1, p),
                ratio(u64::MAX, 3),
            ] {
                let expected = exact.cmp(&bound.to_big());
                assert_eq!(cmp_sum(chosen.iter().copied(), bound), expected);
                assert_eq!(cmp_sum_exactly(chosen.iter().copied(), bound), expected);
            }
        }
    }

    #[test]
    fn an_exact_sum_knows_its_sign() {
        let mut sum = ExactSum::new();
        sum.add(10, 3);
        sum.subtract(5, 2);
        sum.subtract(5, 6);
        assert_eq!(sum.sign(), Ordering::Equal);
        assert_eq!(sum.cmp_whole(1), Ordering::Less);
        sum.add(1, u64::MAX);
        assert_eq!(sum.sign(), Ordering::Greater);
        sum.add_whole(-7);
        assert_eq!(sum.cmp_whole(-7), Ordering::Greater);
        assert_eq!(sum.cmp_whole(-6), Ordering::Less);
        assert_eq!(sum.cmp_whole(i128::MAX), Ordering::Less);
        assert_eq!(sum.cmp_whole(i128::MIN), Ordering::Greater);
    }

    #[test]
    fn sums_beyond_128_bits_are_above_any_bound() {
        let large = [Ratio::whole(u64::MAX); 3];
        assert_eq!(
            cmp_sum_exactly(large.iter().copied(), Ratio::whole(u64::MAX)),
            Ordering::Greater
        );
    }

    #[test]
    fn ratios_are_read_exactly() {
        for (text, num, den) in [
            ("12", 12, 1),
            ("3.25", 325, 100),
            ("0.10", 1, 10),
            ("2/3", 2, 3),
            ("1.", 1, 1),
        ] {
            let read: Ratio = text.parse().unwrap();
            assert_eq!((read.num(), read.den()), (num, den), "{text}");
        }
        for text in [
            "",
            "-1",
            "1/0",
            ".5",
            "1e3",
            "nan",
            "1.2.3",
            "99999999999999999999",
            "0.1234567890123456789012",
        ] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }

    #[test]
    fn ratios_compare_without_overflow() {
        assert!(ratio(u64::MAX, u64::MAX - 1) > Ratio::ONE);
        assert_eq!(ratio(2, 4), ratio(1, 2));
    }
}
