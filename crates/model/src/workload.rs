//! What jobs do when they run for real, and what releases them.

use serde::Serialize;

/// How a working set is walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Ascending addresses.
    #[default]
    Sequential,
    /// A random permutation of the words.
    Random,
    /// Each word holds the address of the next.
    Chase,
}

/// What a job does when it runs for real.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Computes without touching memory.
    Spin,
    /// Walks the working set; `write_ratio` of the words are written.
    Walk {
        /// Part of the words that are written, in [0, 1].
        write_ratio: f64,
        /// In which order.
        pattern: Pattern,
    },
    /// Computes on doubles of its own.
    Compute(Computation),
    /// Runs a program, which knows nothing of jobs: the WCET is its budget in every period.
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
        /// What becomes of it between the end of its budget and its next release.
        beyond_budget: Beyond,
        /// With which rights it runs.
        #[serde(skip_serializing_if = "Rights::is_unsaid")]
        rights: Rights,
    },
    /// Runs a program that asks for its jobs through the task library.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
        /// With which rights it runs.
        #[serde(skip_serializing_if = "Rights::is_unsaid")]
        rights: Rights,
    },
    /// A program that is started by somebody else and joins the run.
    Join,
}

/// A computation of 001 §5.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Computation {
    /// A digital filter: an output of it is a step (§5.2). 16 bytes a coefficient.
    Filter {
        /// At least one.
        coefficients: u32,
    },
    /// A discrete cosine transform (§5.3). 32 bytes a point.
    Cosine {
        /// A power of two.
        points: u32,
    },
    /// A fast Fourier transform (§5.3). 40 bytes a point.
    Fourier {
        /// A power of two.
        points: u32,
    },
    /// The product of two 64×64 matrices in submatrices of 8×8: a row of one is a step (§5.4). 96
    /// KiB.
    Matrix,
}

impl Computation {
    /// The most coefficients or points that a task may have.
    pub const MOST: u32 = 1 << 16;
}

/// With which rights a program runs that is started for a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// As whoever starts the run says for all programs.
    #[default]
    Unsaid,
    /// As the user that starts the run, without any capability.
    Drop,
    /// With all that the run has.
    Keep,
    /// As this user, by name or number, without any capability.
    User(String),
}

impl Rights {
    /// Is nothing said of them?
    pub fn is_unsaid(&self) -> bool {
        *self == Rights::Unsaid
    }
}

/// What becomes of a program that has used up its budget, until its next release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beyond {
    /// It stands still.
    #[default]
    Hold,
    /// It goes on as an ordinary program, in time that nobody else wants.
    BestEffort,
}

/// What releases the jobs of a sporadic task in a real run; its period is the least time between
/// two of them (002 §2.1.1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// Bytes in the FIFO at this path.
    Fifo(String),
    /// Datagrams to the socket at this path.
    Socket(String),
    /// A descriptor that whoever starts the run has left open for it, by its number.
    Descriptor(i32),
}
