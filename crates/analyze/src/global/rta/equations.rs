//! The equations of RTA for one set, in numbers of three widths.

use crate::columns::{Columns, Float, max, min, round, sum};
use model::Timing;

/// Where the work of each task is clipped, from R − e_k on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clip {
    /// There.
    At,
    /// Half a unit above.
    HalfAbove,
    /// A unit above.
    UnitAbove,
}

/// The equations of one set: once in floating point that is exact, once in wide integers.
///
/// A response time R is kept as the interference R − e_k, a slack as D_k − R.
pub(super) trait Analysis {
    type Time: Copy + Default + PartialOrd;
    /// A time in units, and back.
    fn to_whole(time: Self::Time) -> u64;
    /// As [`Analysis::to_whole`].
    fn from_whole(whole: u64) -> Self::Time;
    /// What one step costs.
    fn cost(&self) -> u64;
    /// How many tasks.
    fn len(&self) -> usize;
    /// The processors.
    fn processors(&self) -> u32;
    /// No slack for any task, with room for as many times as the columns are padded to.
    fn zeros(&self) -> Vec<Self::Time>;
    /// D_k − e_k: the most interference, and the most slack.
    fn most(&self, k: usize) -> Self::Time;
    /// The difference of two times, the first of which is the larger.
    fn difference(a: Self::Time, b: Self::Time) -> Self::Time;
    /// Makes ready for [`Analysis::survey`] with task k: the E_i, which do not depend on R.
    fn begin(&mut self, k: usize, slacks: &[Self::Time]);
    /// Σ_{i≠k} min(E_i, V_i(R), clip) at R = e_k + `interference`, and by how much its terms still
    /// grow with R before their job or E_i ends; remembers that of each. Both in half units.
    fn survey(&mut self, interference: Self::Time, clip: Clip) -> (u128, u128);
    /// By how much the terms that were surveyed last grow at least while R grows by `by`, which is
    /// within D_k; in half units.
    fn growth(&mut self, by: u64) -> u128;
}

pub(super) struct Fast<'c, F> {
    m: u32,
    columns: &'c Columns<F>,
    /// D_i − e_i, padded.
    spare: Vec<F>,
    /// L − R + e_k = e_k + D_i − e_i − s_i for the task at hand, padded.
    offset: Vec<F>,
    /// E_i for the task at hand, padded; zero for the task itself.
    by_deadline: Vec<F>,
    /// By how much each term still grows, padded.
    room: Vec<F>,
    /// What is to be summed.
    term: Vec<F>,
}

impl<'c, F: Float> Fast<'c, F> {
    pub(super) fn new(columns: &'c Columns<F>, m: u32) -> Self {
        let padded = columns.wcet.len();
        let mut spare: Vec<F> = (0..padded)
            .map(|i| columns.deadline[i] - columns.wcet[i])
            .collect();
        spare[columns.n..].fill(F::default());
        Fast {
            m,
            columns,
            spare,
            offset: vec![F::default(); padded],
            by_deadline: vec![F::default(); padded],
            room: vec![F::default(); padded],
            term: vec![F::default(); padded],
        }
    }
}

impl<F: Float> Analysis for Fast<'_, F> {
    type Time = F;

    fn to_whole(time: F) -> u64 {
        time.whole()
    }
    fn from_whole(whole: u64) -> F {
        F::of(whole)
    }
    fn cost(&self) -> u64 {
        self.columns.n as u64
    }
    fn len(&self) -> usize {
        self.columns.n
    }
    fn processors(&self) -> u32 {
        self.m
    }
    fn zeros(&self) -> Vec<F> {
        vec![F::default(); self.columns.wcet.len()]
    }
    fn most(&self, k: usize) -> F {
        self.spare[k]
    }
    fn difference(a: F, b: F) -> F {
        a - b
    }

    fn begin(&mut self, k: usize, slacks: &[F]) {
        let row = Row::of(self.columns, &self.spare, slacks);
        let window = self.columns.deadline[k];
        row.offset_and_bound(
            window,
            self.columns.wcet[k],
            &mut self.offset,
            &mut self.by_deadline,
        );
        self.by_deadline[k] = F::default();
    }

    fn survey(&mut self, interference: F, clip: Clip) -> (u128, u128) {
        let row = Row::of(self.columns, &self.offset, &self.by_deadline);
        let most = match clip {
            Clip::At => interference,
            Clip::HalfAbove => interference + F::HALF,
            Clip::UnitAbove => interference + F::ONE,
        };
        row.terms_and_rooms(interference, most, &mut self.term, &mut self.room);
        (halves(&self.term), halves(&self.room))
    }

    fn growth(&mut self, by: u64) -> u128 {
        let by = F::of(by);
        for (term, room) in self.term.iter_mut().zip(&self.room) {
            *term = min(*room, by);
        }
        halves(&self.term)
    }
}

/// The sum of a column in half units.
fn halves<F: Float>(column: &[F]) -> u128 {
    // By way of 64 bits, which is an instruction.
    u128::from((2.0 * sum(column)) as u64)
}

/// The columns of one loop, all of the same length: e, p, 1/p and two of its own.
struct Row<'c, F> {
    wcet: &'c [F],
    period: &'c [F],
    inverse: &'c [F],
    first: &'c [F],
    second: &'c [F],
}

impl<'c, F: Float> Row<'c, F> {
    fn of(columns: &'c Columns<F>, first: &'c [F], second: &'c [F]) -> Self {
        let n = columns.wcet.len();
        Row {
            wcet: &columns.wcet,
            period: &columns.period[..n],
            inverse: &columns.inverse_period[..n],
            first: &first[..n],
            second: &second[..n],
        }
    }

    /// From D_i − e_i and s_i.
    fn offset_and_bound(&self, window: F, own: F, offset: &mut [F], bound: &mut [F]) {
        let Row {
            wcet,
            period,
            inverse,
            first: spare,
            second: slack,
        } = *self;
        let n = wcet.len();
        let (offset, bound) = (&mut offset[..n], &mut bound[..n]);
        for i in 0..n {
            let jobs = round(window * inverse[i] - F::HALF);
            let rest = max(F::default(), window - slack[i] - jobs * period[i]);
            bound[i] = jobs * wcet[i] + min(wcet[i], rest);
            offset[i] = own + spare[i] - slack[i];
        }
    }

    /// min(E_i, V_i(R), `most`), and by how much it still grows, from the offsets and E_i.
    fn terms_and_rooms(&self, interference: F, most: F, term: &mut [F], room: &mut [F]) {
        let Row {
            wcet,
            period,
            inverse,
            first: offset,
            second: bound,
        } = *self;
        let n = wcet.len();
        let (term, room) = (&mut term[..n], &mut room[..n]);
        for i in 0..n {
            let window = interference + offset[i];
            let jobs = round(window * inverse[i] - F::HALF);
            let rest = window - jobs * period[i];
            let whole = jobs * wcet[i];
            term[i] = min(min(whole + min(wcet[i], rest), bound[i]), most);
            // R − e_k grows, and work while its last job executes.
            room[i] = min(whole + wcet[i], bound[i]) - term[i];
        }
    }
}

pub(super) struct Wide<'t> {
    tasks: &'t [Timing],
    m: u32,
    unit: u64,
    offset: Vec<u128>,
    by_deadline: Vec<u128>,
    room: Vec<u128>,
}

impl<'t> Wide<'t> {
    pub(super) fn new(tasks: &'t [Timing], m: u32, unit: u64) -> Self {
        Wide {
            tasks,
            m,
            unit,
            offset: vec![0; tasks.len()],
            by_deadline: vec![0; tasks.len()],
            room: vec![0; tasks.len()],
        }
    }

    /// e, p, D in units.
    fn times(&self, i: usize) -> (u64, u64, u64) {
        let t = &self.tasks[i];
        (
            t.wcet.nanos() / self.unit,
            t.period.nanos() / self.unit,
            t.deadline.nanos() / self.unit,
        )
    }
}

impl Analysis for Wide<'_> {
    type Time = u64;

    fn to_whole(time: u64) -> u64 {
        time
    }
    fn from_whole(whole: u64) -> u64 {
        whole
    }
    fn cost(&self) -> u64 {
        16 * self.tasks.len() as u64
    }
    fn len(&self) -> usize {
        self.tasks.len()
    }
    fn processors(&self) -> u32 {
        self.m
    }
    fn zeros(&self) -> Vec<u64> {
        vec![0; self.tasks.len()]
    }
    fn most(&self, k: usize) -> u64 {
        let (wcet, _, deadline) = self.times(k);
        deadline - wcet
    }
    fn difference(a: u64, b: u64) -> u64 {
        a - b
    }

    fn begin(&mut self, k: usize, slacks: &[u64]) {
        let (own, _, window) = self.times(k);
        for (i, slack) in slacks.iter().enumerate() {
            let (wcet, period, deadline) = self.times(i);
            let rest = (window % period).saturating_sub(*slack);
            self.by_deadline[i] =
                u128::from(window / period) * u128::from(wcet) + u128::from(wcet.min(rest));
            self.offset[i] = u128::from(own) + u128::from(deadline - wcet - slack);
        }
        self.by_deadline[k] = 0;
    }

    fn survey(&mut self, interference: u64, clip: Clip) -> (u128, u128) {
        let above = match clip {
            Clip::At => 0,
            Clip::HalfAbove => 1,
            Clip::UnitAbove => 2,
        };
        let most = 2 * u128::from(interference) + above;
        let (mut sum, mut rooms) = (0, 0);
        for i in 0..self.tasks.len() {
            let (work, unfinished) = self.work(i, interference);
            let term = (2 * work.min(self.by_deadline[i])).min(most);
            let room = 2 * (work + unfinished).min(self.by_deadline[i]) - term;
            sum += term;
            rooms += room;
            self.room[i] = room;
        }
        (sum, rooms)
    }

    fn growth(&mut self, by: u64) -> u128 {
        let by = 2 * u128::from(by);
        self.room.iter().map(|room| (*room).min(by)).sum()
    }
}

impl Wide<'_> {
    /// V_i, and what its last job still lacks.
    fn work(&self, i: usize, interference: u64) -> (u128, u128) {
        let (wcet, period, _) = self.times(i);
        let (wcet, period) = (u128::from(wcet), u128::from(period));
        let window = u128::from(interference) + self.offset[i];
        let rest = window % period;
        (
            (window / period) * wcet + wcet.min(rest),
            wcet.saturating_sub(rest),
        )
    }
}
