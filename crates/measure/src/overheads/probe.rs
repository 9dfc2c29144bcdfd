//! What measuring itself adds to overheads: each event that the kernel records takes some time where
//! it is recorded, and so lengthens the overhead that it falls in.
//!
//! How long an event takes is measured before the runs: the same work with the recording and
//! without it, in turn, many times ([`Probe::of`]). How many events fall into a sample is known of
//! each. Where both together come to 5 % of an overhead or more, each of its samples is shortened
//! by what its own events take, and the intervals become wider by how uncertain that is; below that
//! nothing is changed, and the part is told.
//!
//! The engine's own time stamps are not subtracted: the engine takes them in every run, measured or
//! not, so that jobs do lose what they cost.

use model::Duration;
use serde::{Deserialize, Serialize, Serializer};

/// From this part of an overhead on, what measuring adds is subtracted.
pub const MOST_PART: f64 = 0.05;
/// So many pairs at least tell how long an event takes.
pub const LEAST_PAIRS: usize = 6;

/// How long recording an event takes, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Probe {
    /// The median.
    pub event_ns: f64,
    /// The lower end of its interval.
    pub low_ns: f64,
    /// The upper end.
    pub high_ns: f64,
    /// From how many pairs of measurements, with and without.
    pub pairs: u32,
}

/// A probe as documents have it: in whole nanoseconds. Raw samples keep it as it is.
///
/// # Errors
/// Those of the serializer.
pub fn in_document<S: Serializer>(probe: &Option<Probe>, s: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Whole {
        event_ns: i64,
        low_ns: i64,
        high_ns: i64,
        pairs: u32,
    }
    let whole = probe.map(|probe| Whole {
        event_ns: probe.event_ns.round() as i64,
        low_ns: probe.low_ns.round() as i64,
        high_ns: probe.high_ns.round() as i64,
        pairs: probe.pairs,
    });
    whole.serialize(s)
}

/// What measuring adds to an overhead.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Added {
    /// How many events fall into a sample, on average.
    pub events: f64,
    /// What they take, in nanoseconds.
    #[serde(serialize_with = "model::time::ns::whole")]
    pub cost_ns: f64,
    /// The lower end of its interval.
    #[serde(serialize_with = "model::time::ns::whole")]
    pub low_ns: f64,
    /// The upper end.
    #[serde(serialize_with = "model::time::ns::whole")]
    pub high_ns: f64,
    /// Which part of the overhead as it was measured that is, on average.
    pub part: f64,
    /// Is it subtracted from the figures?
    pub subtracted: bool,
}

impl Probe {
    /// Of how much longer the same work took for each event that was recorded, pair by pair. The
    /// median, and as its interval the second least and the second largest: of six independent
    /// pairs they hold the median in 78 % of all cases, of ten in 97.9 %. `None` for fewer than
    /// [`LEAST_PAIRS`].
    pub fn of(differences: &[f64]) -> Option<Probe> {
        let n = differences.len();
        if n < LEAST_PAIRS {
            return None;
        }
        let mut sorted = differences.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        // Nothing is faster for being recorded.
        let at = |place: usize| sorted[place].max(0.0);
        Some(Probe {
            event_ns: at((n - 1) / 2).midpoint(at(n / 2)),
            low_ns: at(1),
            high_ns: at(n - 2),
            pairs: n as u32,
        })
    }

    /// How long so many events take, rounded to the nearest nanosecond.
    pub fn of_events(&self, events: u32) -> u32 {
        (f64::from(events) * self.event_ns).round() as u32
    }

    /// What it adds to samples with so many events each, in the same order; `None` without samples.
    pub fn added(&self, samples: impl Iterator<Item = (u32, u32)>) -> Option<Added> {
        let (mut count, mut events, mut whole) = (0_u64, 0_u64, 0_u64);
        for (sample, of_it) in samples {
            count += 1;
            events += u64::from(of_it);
            whole += u64::from(sample);
        }
        if count == 0 {
            return None;
        }
        let mean = events as f64 / count as f64;
        let part = events as f64 * self.event_ns / (whole as f64).max(1.0);
        Some(Added {
            events: mean,
            cost_ns: mean * self.event_ns,
            low_ns: mean * self.low_ns,
            high_ns: mean * self.high_ns,
            part,
            subtracted: part >= MOST_PART,
        })
    }

    /// For people.
    pub fn words(&self) -> String {
        let time = |ns: f64| Duration::from_nanos(ns.round() as u64).rounded();
        format!(
            "{} where it is recorded ({} to {}, {} pairs of measurements)",
            time(self.event_ns),
            time(self.low_ns),
            time(self.high_ns),
            self.pairs
        )
    }
}

impl Added {
    /// By how much figures from which it was subtracted are uncertain, in nanoseconds.
    pub fn doubt(&self) -> u64 {
        match self.subtracted {
            true => (self.cost_ns - self.low_ns)
                .max(self.high_ns - self.cost_ns)
                .ceil() as u64,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_takes_what_pairs_say_in_the_median() {
        let probe = Probe::of(&[90.0, 120.0, 100.0, 900.0, 110.0, -50.0]).unwrap();
        assert_eq!(
            probe,
            Probe {
                event_ns: 105.0,
                low_ns: 90.0,
                high_ns: 120.0,
                pairs: 6
            }
        );
        assert_eq!(Probe::of(&[-3.0; 8]).unwrap().event_ns, 0.0);
        assert_eq!(Probe::of(&[90.0; 5]), None);
    }

    #[test]
    fn little_is_told_and_much_is_subtracted() {
        let probe = Probe::of(&[90.0, 100.0, 100.0, 100.0, 100.0, 130.0, 140.0]).unwrap();
        let of = |sample: u32| probe.added([(sample, 4), (sample, 6)].into_iter()).unwrap();
        // Five events of 100 ns in 20 us, and in 5 us.
        let little = of(20_000);
        assert_eq!((little.events, little.cost_ns), (5.0, 500.0));
        assert!(!little.subtracted && (little.part - 0.025).abs() < 1e-12);
        assert_eq!(little.doubt(), 0);
        let much = of(5_000);
        assert!(much.subtracted);
        // 30 ns an event upwards, none downwards.
        assert_eq!(much.doubt(), 150);
        assert_eq!(probe.added(std::iter::empty()), None);
    }
}
