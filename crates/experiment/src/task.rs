//! The short tasks of 001 §5, as this machine and the model of one run them.

use model::Bytes;
use serde::Serialize;
use workload::{cosine, filter, fourier};

/// What is activated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A digital filter of n coefficients, with words of 4 bytes (001 §5.2).
    Filter,
    /// A discrete cosine transform of n doubles (001 §5.3).
    Cosine,
    /// A fast Fourier transform of n complex points, of two doubles each (001 §5.3).
    Fourier,
}

impl Task {
    /// The word of the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Task::Filter => "filter",
            Task::Cosine => "cosine",
            Task::Fourier => "fourier",
        }
    }

    /// Bytes of a word.
    pub(crate) const fn word(self) -> u32 {
        match self {
            Task::Filter => size_of::<f32>() as u32,
            Task::Cosine | Task::Fourier => size_of::<f64>() as u32,
        }
    }

    /// Words of its data.
    pub(crate) fn words(self, size: usize) -> usize {
        match self {
            Task::Filter => filter::words(size),
            Task::Cosine => cosine::doubles(size),
            Task::Fourier => fourier::doubles(size),
        }
    }

    /// The memory that it needs at a size.
    pub fn wss(self, size: usize) -> Bytes {
        Bytes::new(u64::from(self.word()) * self.words(size) as u64)
    }
}
