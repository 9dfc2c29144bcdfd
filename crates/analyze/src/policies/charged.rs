//! What a question is charged at a point: the tasks there, and who lives where with which
//! overheads.

use super::costs::Rule;
use super::question::Question;
use crate::overheads::{self, CacheCharge, CacheDelays, Lost, Piece, Precedence, System};
use model::{Assignment, CpuSet, Duration, Timing};
use policy::catalog::{Order, Priority};
use std::borrow::Cow;

/// WCETs and delays to ask about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// WCETs in thousandths of those given, rounded up.
    pub thousandths: u64,
    /// The cache delay of every task, whatever it does; `None`: as the bill says.
    pub cpmd: Option<Duration>,
}

impl Point {
    /// The set as it is.
    pub const GIVEN: Point = Point {
        thousandths: STEPS,
        cpmd: None,
    };
}

/// Steps of a factor of one.
pub(super) const STEPS: u64 = 1_000;

/// The tasks at a point.
pub(super) struct Case {
    /// Without overheads.
    pub tasks: Vec<Timing>,
    /// The delay of each under [`Rule::OneDelay`].
    pub delays: Vec<Duration>,
    cache: Option<CacheDelays>,
}

/// Who lives where, with overheads.
pub(super) struct Pieces {
    pub pieces: Vec<Piece>,
    pub places: Vec<CpuSet>,
    /// What is lost to each overhead; `None` where it is what the pieces say.
    lost: Option<Lost>,
}

impl Pieces {
    /// The pieces of every place, in the order of the set.
    pub fn by_place(&self) -> Vec<Vec<&Piece>> {
        let mut inside: Vec<Vec<&Piece>> = vec![Vec::new(); self.places.len()];
        for piece in &self.pieces {
            inside[piece.place as usize].push(piece);
        }
        inside
    }

    /// What is lost to each overhead, in processors.
    pub fn lost(&self) -> Lost {
        self.lost.unwrap_or_else(|| {
            let mut lost = Lost::default();
            for piece in &self.pieces {
                let part = piece.jobs.0 as f64 / piece.jobs.1.max(1) as f64;
                lost.add(&piece.parts, piece.timing.period, part);
            }
            lost
        })
    }
}

impl Question<'_> {
    /// The set at a point.
    pub fn case(&self, point: Point) -> Case {
        let scale = |t: &Timing| {
            let wcet = u128::from(t.wcet.nanos()) * u128::from(point.thousandths);
            let wcet = u64::try_from(wcet.div_ceil(u128::from(STEPS))).unwrap_or(u64::MAX);
            Timing {
                wcet: Duration::from_nanos(wcet),
                ..*t
            }
        };
        let delays = match point.cpmd {
            Some(d) => vec![d; self.set.len()],
            None => self.bill.delays.clone(),
        };
        Case {
            tasks: self.set.timings().iter().map(scale).collect(),
            cache: point.cpmd.map(|_| self.bill.cache.instead(&delays)),
            delays,
        }
    }

    /// All that accounting by assignment has to know.
    pub fn system<'b>(&'b self, case: &'b Case) -> System<'b> {
        // All are the same by that rule.
        let bound = case.delays.first().copied().unwrap_or_default();
        System {
            platform: self.platform,
            overheads: &self.bill.overheads,
            delays: case.cache.as_ref().unwrap_or(&self.bill.cache),
            guarantee: self.guarantee,
            charge: match self.bill.rule {
                Rule::OneDelay => CacheCharge::OneDelay(bound),
                Rule::AllOverheads => CacheCharge::Twice,
                Rule::Paper => CacheCharge::Paper,
                Rule::ByPiece => CacheCharge::ByPiece(self.precedence()),
            },
        }
    }

    /// Which jobs can preempt which.
    fn precedence(&self) -> Precedence {
        // The order that tests and packing take for that of given priorities is that of the set.
        let is_other = || self.set.has_priorities() && !self.set.ranks().is_sorted();
        match self.policy.order {
            _ if !self.set.extras().is_empty() => Precedence::Any,
            Order::Fixed(Priority::Given) if is_other() => Precedence::Any,
            Order::Fixed(priority) => Precedence::Fixed(priority),
            Order::Deadlines => Precedence::Edf,
            Order::Releases => Precedence::Releases,
            Order::Own => Precedence::Any,
        }
    }

    /// The tasks for which an assignment is made, and what it adds to them.
    pub fn books<'b>(&'b self, case: &'b Case) -> (Cow<'b, [Timing]>, System<'b>) {
        self.system(case).books(&case.tasks)
    }

    /// What each task needs at least, wherever it is placed: e′ = e + D, and by piece e.
    pub fn inflated(&self, case: &Case) -> Vec<Timing> {
        if self.bill.rule == Rule::ByPiece {
            return case.tasks.clone();
        }
        let both = case.tasks.iter().zip(&case.delays);
        both.map(|(t, d)| t.inflated(*d)).collect()
    }

    /// Who lives where with which overheads.
    pub fn pieces(&self, case: &Case, assignment: &Assignment) -> Pieces {
        let accounted = overheads::account(&case.tasks, assignment, &self.system(case));
        // What servers lose with their turns is in no piece.
        let lost = match (assignment, self.bill.rule) {
            (Assignment::Slots(_), Rule::ByPiece | Rule::AllOverheads | Rule::Paper) => {
                Some(accounted.lost())
            }
            _ => None,
        };
        Pieces {
            pieces: accounted.pieces,
            places: accounted.places.into_iter().map(|p| p.processors).collect(),
            lost,
        }
    }
}
