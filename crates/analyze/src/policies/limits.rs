//! Which of the heuristics and tests are asked: all of them, or those of a study that is repeated.

use crate::info::TestInfo;
use crate::partition::Fit;

/// Leaves out heuristics of packing and sufficient tests for G-EDF, and bounds how large a set may
/// be. By default nothing is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// The only heuristic; `None`: all.
    pub fit: Option<Fit>,
    /// The names of the only hard tests for clusters of several processors; `None`: all.
    pub tests: Option<&'static [&'static str]>,
    /// Which processor takes a task under EDF-WM, where several could; `None`: the first.
    pub slices: Option<Fit>,
    /// The most tasks of a set about which a policy is asked; `None`: as many as one question is
    /// worth its time for.
    pub most_tasks: Option<usize>,
}

impl Limits {
    /// The heuristics that are tried, in their order.
    pub(super) fn fits(self) -> Vec<Fit> {
        match self.fit {
            Some(only) => vec![only],
            None => Fit::ALL.to_vec(),
        }
    }

    /// Is this test for G-EDF asked?
    pub(crate) fn ask(self, test: &TestInfo) -> bool {
        self.tests.is_none_or(|names| names.contains(&test.name))
    }
}
