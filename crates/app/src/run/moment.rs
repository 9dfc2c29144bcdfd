//! The moment at which a real run releases all tasks: `+2s`, or a time of the clock on the wall.

use execute::clock::{Monotonic, Timestamps};
use jiff::Timestamp;
use model::{Duration, Error, Result};
use std::str::FromStr;

/// As it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// So long after the command was given.
    In(Duration),
    /// At a time of `CLOCK_REALTIME`.
    At(Timestamp),
}

impl FromStr for Moment {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(format!("`{text}` is no moment")).remedy(
                "write `+2s`, a time with its zone such as `2026-03-01T12:00:00.5Z`, or seconds since 1970 such as `@1772366400.5`",
            )
        };
        if let Some(after) = text.strip_prefix('+') {
            return after.parse().map(Moment::In);
        }
        if let Some(seconds) = text.strip_prefix('@') {
            let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
            let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
            if whole.is_empty() || part.len() > 9 || !digits(whole) || !digits(part) {
                return Err(bad());
            }
            let (whole, part) = (whole.parse(), format!("{part:0<9}").parse());
            let (Ok(whole), Ok(part)) = (whole, part) else {
                return Err(bad());
            };
            return Timestamp::new(whole, part)
                .map(Moment::At)
                .map_err(|_| bad());
        }
        text.parse().map(Moment::At).map_err(|_| bad())
    }
}

/// Both clocks, read together.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    wall: Timestamp,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    monotonic: u64,
}

impl Clocks {
    /// Reads them.
    pub fn read() -> Self {
        Clocks {
            wall: Timestamp::now(),
            monotonic: Monotonic.read(),
        }
    }

    /// What the clock on the wall shows at a reading of the other one.
    pub fn wall_at(&self, reading: u64) -> Timestamp {
        let nanos = self.wall.as_nanosecond() + i128::from(reading) - i128::from(self.monotonic);
        Timestamp::from_nanosecond(nanos).unwrap_or(self.wall)
    }
}

impl Moment {
    /// Its reading of `CLOCK_MONOTONIC`, where these clocks are those of the command's beginning.
    ///
    /// # Errors
    /// It is past.
    pub fn reading(self, begun: &Clocks) -> Result<u64> {
        let ahead = match self {
            Moment::In(after) => i128::from(after.nanos()),
            Moment::At(at) => at.as_nanosecond() - begun.wall.as_nanosecond(),
        };
        match u64::try_from(ahead) {
            Ok(ahead) if ahead > 0 => Ok(begun.monotonic.saturating_add(ahead)),
            _ => Err(Error::new(format!(
                "the moment of release, {}, is past",
                match self {
                    Moment::In(after) => format!("+{after}"),
                    Moment::At(at) => at.to_string(),
                }
            ))
            .at("--release-at")
            .remedy(format!("it is {} now: give a later one", begun.wall))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks() -> Clocks {
        Clocks {
            wall: "2026-03-01T12:00:00Z".parse().unwrap(),
            monotonic: 5_000_000_000,
        }
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        for (text, reading) in [
            ("+2s", 7_000_000_000),
            ("+250us", 5_000_250_000),
            ("2026-03-01T12:00:01.5Z", 6_500_000_000),
            ("2026-03-01T14:00:02+02:00", 7_000_000_000),
            ("@1772366400.25", 5_250_000_000),
            ("@1772366401", 6_000_000_000),
        ] {
            let moment: Moment = text.parse().unwrap();
            assert_eq!(moment.reading(&clocks()).unwrap(), reading, "{text}");
        }
        assert_eq!(
            clocks().wall_at(5_500_000_000).to_string(),
            "2026-03-01T12:00:00.5Z"
        );
    }

    #[test]
    fn what_is_past_or_no_moment_is_refused() {
        for text in ["+0s", "2026-03-01T12:00:00Z", "2026-03-01T11:59:59Z", "@1"] {
            let moment: Moment = text.parse().unwrap();
            let e = moment.reading(&clocks()).unwrap_err().to_string();
            assert!(e.starts_with("--release-at: the moment of release"), "{e}");
            assert!(
                e.ends_with("it is 2026-03-01T12:00:00Z now: give a later one"),
                "{e}"
            );
        }
        for text in [
            "",
            "2s",
            "+",
            "+2",
            "noon",
            "@",
            "@-1",
            "@1.0000000001",
            "2026-03-01",
            "12:00:00",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
