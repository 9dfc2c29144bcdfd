//! Distributions of periods: those of 002 §6.2.1, that of 004 §IV-A, uniform, log-uniform and a
//! choice.
//!
//! A name is written `short`, `moderate`, `long`, or with times of one's own: `uniform:5ms-20ms`,
//! `log-uniform:1ms-1s`, `choice:25ms,50ms`. A step may follow, `uniform:5ms-20ms/500us`; without
//! one it is a millisecond where both ends are whole milliseconds ("all periods were chosen to be
//! integral", 002 §6.2.1), and a microsecond otherwise. Log-uniform with a granularity is that of
//! Emberson, Stafford and Davis (WATERS 2010).

use crate::random::Random;
use crate::text::{after, unknown};
use model::{Duration, Error, Result};
use std::fmt;
use std::str::FromStr;

/// From what a task's period is drawn.
#[derive(Clone, PartialEq, Debug)]
pub enum Periods {
    /// Each multiple of the step in the range is equally likely.
    Uniform(Span),
    /// The logarithm is uniform; rounded down to a multiple of the step.
    LogUniform(Span),
    /// Each of these is equally likely.
    Choice(Vec<Duration>),
}

/// A range of periods.
///
/// Invariant: 0 < step ≤ low ≤ high, all whole microseconds, both ends multiples of the step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    low: Duration,
    high: Duration,
    step: Duration,
}

/// The longest period that can be drawn.
const LONGEST: Duration = Duration::from_secs(86_400);
const MICROSECOND: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

impl Span {
    /// A range whose ends are multiples of `step`.
    ///
    /// # Errors
    /// The invariant does not hold, or the upper end is above a day.
    pub fn new(low: Duration, high: Duration, step: Duration) -> Result<Self> {
        let text = || format!("`{low}-{high}/{step}`");
        for (what, value) in [("lower end", low), ("upper end", high), ("step", step)] {
            check(value).map_err(|e| e.at(format!("the {what} of {}", text())))?;
        }
        if low > high {
            return Err(Error::new(format!("{} is no range of periods", text()))
                .remedy("put the shorter one first"));
        }
        if !low.nanos().is_multiple_of(step.nanos()) || !high.nanos().is_multiple_of(step.nanos()) {
            return Err(Error::new(format!(
                "the ends of {} are no multiples of the step",
                text()
            ))
            .remedy("choose a step that divides both ends"));
        }
        Ok(Span { low, high, step })
    }
    /// The shortest period.
    pub const fn low(self) -> Duration {
        self.low
    }
    /// The longest period.
    pub const fn high(self) -> Duration {
        self.high
    }
    /// Every period is a multiple of it.
    pub const fn step(self) -> Duration {
        self.step
    }
    /// The step that is taken where none is given.
    fn default_step(low: Duration, high: Duration) -> Duration {
        let whole = |d: Duration| d.nanos().is_multiple_of(MILLISECOND.nanos());
        if whole(low) && whole(high) {
            MILLISECOND
        } else {
            MICROSECOND
        }
    }
}

fn check(value: Duration) -> Result<()> {
    if value.is_zero() {
        return Err(Error::new("a period cannot be zero").remedy("give a positive time"));
    }
    if !value.nanos().is_multiple_of(MICROSECOND.nanos()) {
        return Err(
            Error::new(format!("{value} is not a whole number of microseconds"))
                .remedy("task sets are generated in whole microseconds: round it"),
        );
    }
    if value > LONGEST {
        return Err(Error::new(format!("{value} is longer than a day"))
            .remedy("periods are drawn up to 86400s"));
    }
    Ok(())
}

const fn millis(low: u64, high: u64) -> Span {
    Span {
        low: Duration::from_millis(low),
        high: Duration::from_millis(high),
        step: MILLISECOND,
    }
}

/// The names, with what they stand for (002 §6.2.1).
const NAMED: [(&str, Span); 3] = [
    ("short", millis(3, 33)),
    ("moderate", millis(10, 100)),
    ("long", millis(50, 250)),
];
/// The periods of 004 §IV-A, in milliseconds.
const RTCSA13: (&str, [u64; 4]) = ("rtcsa13", [25, 50, 100, 200]);

fn rtcsa13() -> Periods {
    Periods::Choice(RTCSA13.1.map(Duration::from_millis).to_vec())
}

impl Periods {
    /// Every name that is known.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        NAMED.iter().map(|(name, _)| *name).chain([RTCSA13.0])
    }

    /// The longest period that can be drawn.
    pub fn longest(&self) -> Duration {
        match self {
            Periods::Uniform(span) | Periods::LogUniform(span) => span.high,
            Periods::Choice(periods) => periods.iter().copied().max().unwrap_or_default(),
        }
    }

    /// Draws a period: whole microseconds, never zero.
    pub(crate) fn draw(&self, random: &mut Random) -> Duration {
        match self {
            Periods::Uniform(span) => {
                let steps = (span.high.nanos() - span.low.nanos()) / span.step.nanos();
                Duration::from_nanos(span.low.nanos() + random.below(steps + 1) * span.step.nanos())
            }
            Periods::LogUniform(span) => {
                // The upper end is one step beyond, so that rounding down gives the last step its
                // full share.
                let low = libm::log(span.low.nanos() as f64);
                let high = libm::log((span.high.nanos() + span.step.nanos()) as f64);
                let ns = libm::exp(random.between(low, high)) as u64;
                let down = ns - ns % span.step.nanos();
                Duration::from_nanos(down.clamp(span.low.nanos(), span.high.nanos()))
            }
            Periods::Choice(periods) => periods
                .get(random.below(periods.len() as u64) as usize)
                .copied()
                .unwrap_or(MILLISECOND),
        }
    }
}

impl FromStr for Periods {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some((_, span)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(Periods::Uniform(*span));
        }
        if text == RTCSA13.0 {
            return Ok(rtcsa13());
        }
        if let Some(span) = after(text, "uniform") {
            return span_of(span).map(Periods::Uniform);
        }
        if let Some(span) = after(text, "log-uniform") {
            return span_of(span).map(Periods::LogUniform);
        }
        if let Some(list) = after(text, "choice") {
            let periods = list
                .split(',')
                .map(|p| p.parse().and_then(|p| check(p).map(|()| p)))
                .collect::<Result<Vec<Duration>>>()?;
            return Ok(Periods::Choice(periods));
        }
        Err(unknown(
            "distribution of periods",
            text,
            Self::names(),
            "`uniform:5ms-20ms`, `log-uniform:1ms-1s` or `choice:25ms,50ms`",
        ))
    }
}

/// Reads `LOW-HIGH[/STEP]`.
fn span_of(text: &str) -> Result<Span> {
    let (ends, step) = match text.split_once('/') {
        Some((ends, step)) => (ends, Some(step.parse()?)),
        None => (text, None),
    };
    let (low, high) = ends.split_once('-').ok_or_else(|| {
        Error::new(format!("`{text}` is no range of periods")).remedy(
            "write LOW-HIGH with units, such as `5ms-20ms`, and a step behind a slash if need be",
        )
    })?;
    let (low, high) = (low.parse()?, high.parse()?);
    Span::new(
        low,
        high,
        step.unwrap_or_else(|| Span::default_step(low, high)),
    )
}

impl fmt::Display for Periods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span_text = |name: &str, s: &Span| {
            let step = match s.step {
                step if step == Span::default_step(s.low, s.high) => String::new(),
                step => format!("/{step}"),
            };
            format!("{name}:{}-{}{step}", s.low, s.high)
        };
        match self {
            Periods::Uniform(span) => match NAMED.iter().find(|(_, named)| named == span) {
                Some((name, _)) => f.pad(name),
                None => f.pad(&span_text("uniform", span)),
            },
            Periods::LogUniform(span) => f.pad(&span_text("log-uniform", span)),
            choice if *choice == rtcsa13() => f.pad(RTCSA13.0),
            Periods::Choice(periods) => f.pad(&format!(
                "choice:{}",
                periods
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(",")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_periods_are_those_of_the_papers() {
        for (name, low, high) in [("short", 3, 33), ("moderate", 10, 100), ("long", 50, 250)] {
            let Periods::Uniform(span) = name.parse().unwrap() else {
                panic!("{name}")
            };
            assert_eq!(span, millis(low, high), "{name}");
        }
        assert_eq!("rtcsa13".parse::<Periods>().unwrap().to_string(), "rtcsa13");
        assert_eq!(
            "choice:25ms,50ms,100ms,200ms".parse::<Periods>().unwrap(),
            rtcsa13()
        );
    }

    #[test]
    fn names_and_times_read_and_write() {
        for text in [
            "short",
            "uniform:5ms-20ms",
            "uniform:5ms-20ms/2.5ms",
            "uniform:500us-20ms",
            "log-uniform:1ms-1s",
            "choice:1ms,7ms",
        ] {
            assert_eq!(text.parse::<Periods>().unwrap().to_string(), text);
        }
        for (text, message) in [
            ("shorts", "did you mean `short`?"),
            ("uniform:5ms", "write LOW-HIGH"),
            ("uniform:5-20ms", "has no unit"),
            ("uniform:20ms-5ms", "put the shorter one first"),
            ("uniform:0ms-5ms", "cannot be zero"),
            ("uniform:5ms-20ms/3ms", "a step that divides both ends"),
            ("uniform:5ms-20ms/0ms", "cannot be zero"),
            ("uniform:100ns-20ms", "whole number of microseconds"),
            ("log-uniform:1ms-100000s", "longer than a day"),
            ("choice:", "is not a time"),
            ("choice:1ms,0ms", "cannot be zero"),
        ] {
            let e = text.parse::<Periods>().unwrap_err().to_string();
            assert!(e.contains(message), "{text}: {e}");
        }
    }
}
