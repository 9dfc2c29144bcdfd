//! The seven overheads of 002 §2.4 and what a job pays for each.

use model::Duration;
pub use model::Overhead as Kind;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::ops::{Index, IndexMut};

/// Something for each overhead: times ([`Parts`]) or parts of processors ([`Lost`]). Serialized as
/// a map by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Each<T>([T; Kind::ALL.len()]);

/// What one job pays for each overhead. The sum is the inflation of its WCET, exactly.
pub type Parts = Each<Duration>;
/// How many processors are lost to each overhead.
pub type Lost = Each<f64>;

impl<T> Index<Kind> for Each<T> {
    type Output = T;
    fn index(&self, kind: Kind) -> &T {
        &self.0[kind as usize]
    }
}
impl<T> IndexMut<Kind> for Each<T> {
    fn index_mut(&mut self, kind: Kind) -> &mut T {
        &mut self.0[kind as usize]
    }
}

impl<T: Copy> Each<T> {
    /// Every overhead with its value, in the order of the paper.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, T)> + '_ {
        Kind::ALL.into_iter().zip(self.0)
    }
}

impl Parts {
    /// All of it; at most [`Duration::MAX`].
    pub fn total(&self) -> Duration {
        self.0
            .iter()
            .fold(Duration::ZERO, |sum, d| sum.saturating_add(*d))
    }

    /// Pays more for one overhead.
    pub fn add(&mut self, kind: Kind, time: Duration) {
        self[kind] = self[kind].saturating_add(time);
    }

    /// Pays all of another bill, too.
    pub fn add_all(&mut self, other: &Parts) {
        for (kind, time) in other.iter() {
            self.add(kind, time);
        }
    }
}

impl Lost {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Loses `parts` of every `period`, in the part `share` of all periods.
    pub fn add(&mut self, parts: &Parts, period: Duration, share: f64) {
        let period = period.nanos().max(1) as f64;
        for (kind, time) in parts.iter() {
            self[kind] += time.nanos() as f64 / period * share;
        }
    }

    /// Loses what another place loses.
    pub fn add_all(&mut self, other: &Lost) {
        for (kind, part) in other.iter() {
            self[kind] += part;
        }
    }
}

impl<T: Copy + Serialize> Serialize for Each<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Kind::ALL.len()))?;
        for (kind, value) in self.iter() {
            map.serialize_entry(kind.name(), &value)?;
        }
        map.end()
    }
}
