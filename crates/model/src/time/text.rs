//! Times as text: what is read, and what is written.

use super::{Delay, Duration, Instant};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Units of time with their nanoseconds. `µs` (both code points of µ) is read, never written.
const UNITS: [(&str, u64); 8] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
];

/// Reads `[-]DIGITS[.DIGITS]UNIT` exactly; the sign is returned apart.
fn parse_nanos(text: &str) -> Result<(bool, u64)> {
    let bad = || {
        Error::new(format!("`{text}` is not a time"))
            .remedy("write a number with its unit, such as `4ms`, `250us` or `1.5s`")
    };
    let t = text.trim();
    let (negative, t) = match t.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, t),
    };
    let split = t
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(t.len());
    let (number, unit) = (t[..split].replace('_', ""), t[split..].trim());
    if unit.is_empty()
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        return Err(Error::new(format!("`{text}` has no unit"))
            .remedy("write `ns`, `us`, `ms`, `s`, `min` or `h` behind the number"));
    }
    let scale = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, ns)| *ns)
        .ok_or_else(bad)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(bad());
    }
    let too_long = || {
        Error::new(format!("`{text}` is too long"))
            .remedy("times must stay below 584 years (2^64 ns)")
    };
    let mut ns: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse::<u128>().map_err(|_| too_long())?
    };
    ns = ns.checked_mul(u128::from(scale)).ok_or_else(too_long)?;
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        let too_fine = || {
            Error::new(format!("`{text}` is finer than a nanosecond"))
                .remedy("times are whole nanoseconds")
        };
        let digits = u32::try_from(fraction.len())
            .ok()
            .filter(|d| *d <= 18)
            .ok_or_else(too_fine)?;
        let power = 10u128.pow(digits);
        let part = fraction.parse::<u128>().map_err(|_| bad())? * u128::from(scale);
        if !part.is_multiple_of(power) {
            return Err(too_fine());
        }
        ns += part / power;
    }
    Ok((negative, u64::try_from(ns).map_err(|_| too_long())?))
}

impl FromStr for Duration {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match parse_nanos(text)? {
            (true, ns) if ns > 0 => {
                Err(Error::new(format!("`{text}` is negative"))
                    .remedy("give a time of at least zero"))
            }
            (_, ns) => Ok(Duration(ns)),
        }
    }
}

impl FromStr for Delay {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let (negative, ns) = parse_nanos(text)?;
        let ns = i64::try_from(ns).map_err(|_| {
            Error::new(format!("`{text}` is too long")).remedy("delays must stay below 292 years")
        })?;
        Ok(Delay(if negative { -ns } else { ns }))
    }
}

/// Writes nanoseconds exactly, in the largest unit that needs at most three decimals.
fn write_nanos(f: &mut fmt::Formatter<'_>, ns: u64) -> fmt::Result {
    let (unit, scale) = match ns {
        0 => return f.pad("0ms"),
        _ if ns >= 1_000_000_000 && ns.is_multiple_of(1_000_000) => ("s", 1_000_000_000),
        _ if ns >= 1_000_000 && ns.is_multiple_of(1_000) => ("ms", 1_000_000),
        _ if ns >= 1_000 => ("us", 1_000),
        _ => ("ns", 1),
    };
    let (whole, rest) = (ns / scale, ns % scale);
    if rest == 0 {
        return f.pad(&format!("{whole}{unit}"));
    }
    let width = scale.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    f.pad(&format!("{whole}.{}{unit}", fraction.trim_end_matches('0')))
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write_nanos(f, self.0.unsigned_abs())
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{self}")
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
