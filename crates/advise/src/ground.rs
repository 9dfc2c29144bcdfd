//! Processors and clusters that tasks are placed on, as packing and exact search see them.

use crate::priorities;
use analyze::policies::Places;

/// Places with a test each.
pub(crate) trait Ground {
    /// How many tasks there are.
    fn tasks(&self) -> usize;
    /// How many processors each place has.
    fn sizes(&self) -> &[u32];
    /// May a task be in a place?
    fn may(&self, task: u32, place: usize) -> bool;
    /// Does a place hold these tasks, in ascending order, and no others?
    fn holds(&self, place: usize, tasks: &[u32]) -> bool;
    /// The utilization that each task has at least.
    fn utilizations(&self) -> &[f64];
    /// Does what holds hold without any of its tasks?
    fn is_monotone(&self) -> bool;

    /// By place, the first one that is like it: where an empty place refuses, those like it do.
    fn kinds(&self) -> Vec<usize> {
        let count = self.sizes().len();
        if !self.is_monotone() {
            // Clusters differ in how jobs resume within them.
            return (0..count).collect();
        }
        let row = |place: usize| -> Vec<bool> {
            (0..self.tasks() as u32)
                .map(|task| self.may(task, place))
                .collect()
        };
        let rows: Vec<Vec<bool>> = (0..count).map(row).collect();
        let first = |place: usize| (0..place).find(|p| rows[*p] == rows[place]);
        (0..count)
            .map(|place| first(place).unwrap_or(place))
            .collect()
    }
}

/// Each place by the tests of its policy.
pub(crate) struct ByTests<'p, 'a> {
    pub places: &'p Places<'a>,
    sizes: Vec<u32>,
    utilizations: Vec<f64>,
}

impl<'p, 'a> ByTests<'p, 'a> {
    pub fn of(places: &'p Places<'a>) -> Self {
        let least = places.least();
        ByTests {
            sizes: places.clusters().iter().map(|c| c.len() as u32).collect(),
            utilizations: least.iter().map(|t| t.utilization().to_f64()).collect(),
            places,
        }
    }
}

impl Ground for ByTests<'_, '_> {
    fn tasks(&self) -> usize {
        self.utilizations.len()
    }
    fn sizes(&self) -> &[u32] {
        &self.sizes
    }
    fn may(&self, task: u32, place: usize) -> bool {
        self.places.may(task, place)
    }
    fn holds(&self, place: usize, tasks: &[u32]) -> bool {
        self.places.holds(place, tasks)
    }
    fn utilizations(&self) -> &[f64] {
        &self.utilizations
    }
    fn is_monotone(&self) -> bool {
        self.places.are_single()
    }
}

/// Each processor by whether some order of fixed priorities holds its tasks.
pub(crate) struct ByOrder<'p, 'a>(pub ByTests<'p, 'a>);

impl Ground for ByOrder<'_, '_> {
    fn tasks(&self) -> usize {
        self.0.tasks()
    }
    fn sizes(&self) -> &[u32] {
        self.0.sizes()
    }
    fn may(&self, task: u32, place: usize) -> bool {
        self.0.may(task, place)
    }
    fn holds(&self, place: usize, tasks: &[u32]) -> bool {
        priorities::audsley(self.0.places, place, tasks).is_some()
    }
    fn utilizations(&self) -> &[f64] {
        self.0.utilizations()
    }
    fn is_monotone(&self) -> bool {
        self.0.is_monotone()
    }
}
