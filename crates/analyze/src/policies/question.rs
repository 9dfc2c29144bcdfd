//! One set under one policy at one price: finding an assignment that holds, and asking whether one still does.
//!
//! Everything that is searched (the largest cache delay, the growth of WCETs) asks here, so that it means what the verdict means.

use super::costs::{Bill, Rule};
use super::members::Members;
use super::place::{self, Found};
use super::subject::{Subject, Way};
use super::{Costs, split};
use crate::assign::{self, Site};
use crate::carries;
use crate::clustered;
use crate::overheads::{self, CacheCharge, CacheDelays, Kind, Lost, Parts, Piece, Precedence, System};
use crate::partition::affinity::{self, Allowed};
use crate::uniprocessor::{Work, delayed, edf};
use crate::verdict::{Guarantee, NotApplicable, implicit_deadlines};
use model::{
    Assignment, CpuId, CpuSet, Duration, Extras, Platform, Ratio, Result, TaskId, TaskSet, Timing, exact,
};
use policy::catalog::{Order, Tests};

/// The most tasks of which every placement is decided by the exact test of a processor.
const PLACED: NotApplicable =
    NotApplicable::Limit("1000 tasks, each placed by the exact test of a processor, many times over");
const MOST_PLACED: usize = 1_000;
/// The most tasks that are put into shares or servers.
const SHARED: NotApplicable = NotApplicable::Limit("2000 tasks, put into shares or servers many times over");
const MOST_SHARED: usize = 2_000;

/// A set, a policy, and what the platform charges for it.
pub(super) struct Question<'a> {
    pub set: &'a TaskSet,
    pub platform: &'a Platform,
    pub policy: Subject,
    pub guarantee: Guarantee,
    pub site: Site,
    pub bill: Bill,
    /// Where tasks may be; `None`: everywhere.
    pub allowed: Option<Allowed>,
    /// Why tasks cannot be where they are kept to, as a clause.
    kept_apart: Option<String>,
    /// No delays: what assignments are charged where the WCETs contain the one delay a job.
    free: CacheDelays,
    /// The assignment to judge, instead of those that heuristics find.
    pub given: Option<&'a Assignment>,
}

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

impl<'a> Question<'a> {
    /// # Errors
    /// A policy that the platform has no clusters for; a delay that the profile lacks; a task's missing working set size.
    pub fn new(
        set: &'a TaskSet,
        platform: &'a Platform,
        policy: Subject,
        guarantee: Guarantee,
        costs: &Costs<'_>,
        given: Option<&'a Assignment>,
    ) -> Result<Self> {
        let mut clusters = platform
            .clusters(policy.clusters)
            .map_err(|e| e.at(format!("policy `{policy}`")))?;
        if let Some(Assignment::Clustered(c)) = given {
            clusters.clone_from(&c.clusters);
        }
        let mut kept_apart = None;
        let allowed = match policy.way {
            // A given assignment has been held against the tasks' processors.
            _ if given.is_some() => None,
            Way::Clusters => affinity::allowed(set, platform, &clusters)?.unwrap_or_else(|why| {
                kept_apart = Some(why);
                None
            }),
            _ => {
                kept_apart = affinity::refusal(set, platform)?;
                None
            }
        };
        let bill = costs.bill(set, platform, &policy, &clusters, guarantee)?;
        Ok(Question {
            set,
            platform,
            policy,
            guarantee,
            free: CacheDelays::none(set.len()),
            site: Site::of(platform, clusters),
            bill,
            allowed,
            kept_apart,
            given,
        })
    }

    /// The tests that answer.
    pub fn tests(&self) -> Tests {
        self.policy.tests(self.guarantee)
    }

    /// Why the policy cannot be asked, as a clause.
    pub fn precondition(&self) -> Option<String> {
        let tasks = self.set.timings();
        let (implicit, most, limit) = match (self.policy.way, self.policy.priority()) {
            (Way::Clusters, None) => (false, usize::MAX, PLACED),
            (Way::Clusters, Some(_)) | (Way::Slices, _) => (false, MOST_PLACED, PLACED),
            (Way::Turns | Way::Slots { .. }, _) => (true, MOST_SHARED, SHARED),
            (Way::Quanta(_), _) => (true, usize::MAX, SHARED),
        };
        if self.tests() == Tests::None {
            if !self.policy.is_soft_only() || self.policy.info().soft == Tests::None {
                return Some(format!("no test for `{}` is known", self.policy));
            }
            let name = match self.policy.way {
                Way::Turns => "EDF-fm".to_owned(),
                _ => self.policy.to_string(),
            };
            return Some(format!(
                "{name} bounds tardiness, but does not promise that no deadline is missed; ask for soft real time"
            ));
        }
        if let (true, Err(NotApplicable::ImplicitDeadlines(task))) = (implicit, implicit_deadlines(tasks)) {
            return Some(format!(
                "it needs deadlines equal to periods, and `{}` has another",
                self.set.name(TaskId(task as u32))
            ));
        }
        if let (false, Some(quantum)) = (self.policy.is_soft_only(), self.policy.quantum())
            && let Some(id) = self.set.ids().find(|id| !self.is_in_quanta(*id, quantum))
        {
            return Some(format!(
                "its periods and phases are whole quanta of {quantum}, and those of `{}` are not",
                self.set.name(id)
            ));
        }
        if self.is_global_fixed()
            && let Some(late) = tasks.iter().position(|t| !t.has_constrained_deadline())
        {
            return Some(format!(
                "its tests need deadlines within periods, and `{}` has a longer one",
                self.set.name(TaskId(late as u32))
            ));
        }
        if let Some(why) = self.not_taken().or_else(|| self.kept_apart.clone()) {
            return Some(why);
        }
        (tasks.len() > most).then(|| limit.to_string())
    }

    /// Are the period and the phase of a task whole quanta? Otherwise no release is at the start of a quantum for ever, and a
    /// job can be late by up to a quantum.
    fn is_in_quanta(&self, id: TaskId, quantum: Duration) -> bool {
        let phase = self.set.details(id).map_or(Duration::ZERO, |d| d.phase);
        let times = [self.set.timings()[id.index()].period, phase];
        times.iter().all(|t| t.nanos().is_multiple_of(quantum.nanos()))
    }

    /// What the tests of the policy do not take of blocking and jitter, as a clause.
    fn not_taken(&self) -> Option<String> {
        let extras = self.set.extras();
        let named = |what: &str, has: fn(&Extras) -> bool| {
            let task = extras.iter().position(has)?;
            let name = self.set.name(TaskId(task as u32));
            Some(format!("it does not take {what}, and `{name}` has some"))
        };
        let jitter = || named(carries::JITTER, |x| !x.jitter.is_zero());
        if self.bill.rule.has_interrupts() && carries::has_jitter(extras) {
            // Releases interrupt jobs, and are counted a period apart.
            return jitter().map(|why| format!("with the overheads of releases {why}"));
        }
        let blocking = || named(carries::BLOCKING, |x| !x.blocking.is_zero());
        let on_several = self.site.clusters.iter().any(|c| c.len() > 1);
        match self.tests() {
            Tests::Priorities | Tests::Deadlines => None,
            Tests::Utilization if on_several => jitter(),
            Tests::Utilization => None,
            Tests::None | Tests::Named(_) => jitter().or_else(blocking),
        }
    }

    /// Fixed priorities on several processors together?
    pub fn is_global_fixed(&self) -> bool {
        self.policy.priority().is_some() && self.site.clusters.iter().any(|c| c.len() > 1)
    }

    /// How many assignments and tests of assignments may be tried in one search: fewer for more tasks.
    pub fn probes(&self) -> u64 {
        (20_000 / self.set.len().max(1) as u64).clamp(8, 400)
    }

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
        System {
            platform: self.platform,
            overheads: &self.bill.overheads,
            delays: case.cache.as_ref().unwrap_or(&self.bill.cache),
            guarantee: self.guarantee,
            charge: match (self.bill.rule, self.policy.order) {
                (Rule::OneDelay | Rule::AllOverheads, _) => CacheCharge::Twice,
                (Rule::Paper, _) => CacheCharge::Paper,
                (Rule::ByPiece, Order::Own) => CacheCharge::ByPiece(Precedence::Any),
                (Rule::ByPiece, _) if !self.set.extras().is_empty() || self.set.has_priorities() => {
                    CacheCharge::ByPiece(Precedence::Any)
                }
                (Rule::ByPiece, Order::Fixed(priority)) => CacheCharge::ByPiece(Precedence::Fixed(priority)),
                (Rule::ByPiece, Order::Deadlines) => CacheCharge::ByPiece(Precedence::Edf),
            },
        }
    }

    /// The tasks as an assignment takes them, and what it adds to them: by the rule of one delay nothing is left to add.
    pub fn books<'b>(&'b self, case: &'b Case) -> (Vec<Timing>, System<'b>) {
        match self.bill.rule {
            Rule::OneDelay => (self.inflated(case), assign::free(self.platform, &self.free)),
            Rule::ByPiece | Rule::AllOverheads | Rule::Paper => (case.tasks.clone(), self.system(case)),
        }
    }

    /// What each task needs at least, wherever it is placed: e′ = e + D, and by piece e.
    pub fn inflated(&self, case: &Case) -> Vec<Timing> {
        if self.bill.rule == Rule::ByPiece {
            return case.tasks.clone();
        }
        let both = case.tasks.iter().zip(&case.delays);
        both.map(|(t, d)| t.inflated(*d)).collect()
    }

    /// The first assignment that holds.
    pub fn find(&self, case: &Case) -> Option<Found> {
        match self.given {
            Some(given) => self.given_holds(case, given).then(|| Found {
                assignment: given.clone(),
                packing: None,
                uncovered: split::uncovered(self, given),
            }),
            None => place::find(self, case),
        }
    }

    /// Does the given assignment hold, as it is?
    fn given_holds(&self, case: &Case, given: &Assignment) -> bool {
        if matches!(given, Assignment::Clustered(_)) {
            return self.places_hold(case, given);
        }
        if let Assignment::Quanta(quanta) = given {
            return split::quanta_hold(self, case, quanta);
        }
        let (tasks, system) = self.books(case);
        overheads::holds(&tasks, given, &system)
    }

    /// Does this assignment still hold? Monotone: never with longer WCETs or delays if not with shorter ones.
    pub fn holds(&self, case: &Case, assignment: &Assignment) -> bool {
        match (assignment, self.bill.rule) {
            _ if self.given.is_some() => return self.given_holds(case, assignment),
            _ if self.policy.quantum().is_some() => return self.find(case).is_some(),
            (Assignment::Clustered(_), _) => {}
            // What becomes longer is assigned anew: budgets and reserves are part of the assignment, and leave no room.
            (_, Rule::OneDelay | Rule::ByPiece) => return self.find(case).is_some(),
            (Assignment::Slices(_), Rule::AllOverheads | Rule::Paper) => return self.find(case).is_some(),
            (_, Rule::AllOverheads | Rule::Paper) => {
                return overheads::holds(&case.tasks, assignment, &self.system(case));
            }
        }
        self.places_hold(case, assignment)
    }

    /// Does every processor or cluster hold its tasks?
    fn places_hold(&self, case: &Case, assignment: &Assignment) -> bool {
        let pieces = self.pieces(case, assignment);
        pieces.by_place().iter().zip(&pieces.places).all(|(here, cpus)| {
            let members = self.members_of(here);
            self.place_holds(&members, cpus.len() as u32)
        })
    }

    /// The tasks of one place from their pieces.
    pub fn members_of(&self, here: &[&Piece]) -> Members {
        self.members(here.iter().map(|p| (p.task.index(), p.timing)))
    }

    /// Does one processor or cluster hold these tasks, which have their overheads?
    pub fn place_holds(&self, members: &Members, size: u32) -> bool {
        match (self.tests(), self.policy.priority()) {
            (Tests::Priorities, Some(priority)) if size > 1 => members
                .global_fixed(priority, size)
                .iter()
                .any(|(_, says)| *says == Ok(true)),
            (Tests::Priorities, Some(priority)) => members.fixed(priority) == Ok(true),
            (Tests::Utilization, _) => self.is_bounded(members, size),
            (Tests::Deadlines, _) => {
                let decided = clustered::decide_cluster_with(&members.tasks, &members.extras, size);
                matches!(decided, Ok(Some(_)))
            }
            (Tests::Named(_), _) => self
                .policy
                .named_test(self.guarantee)
                .is_some_and(|test| test.decide_with(&members.tasks, &members.extras, size) == Ok(true)),
            (Tests::None | Tests::Priorities, _) => false,
        }
    }

    /// Is tardiness bounded? On one processor blocking and jitter put it off by a bounded time: sections are part of their own
    /// tasks' WCETs, and one at most begins before an interval of jobs with earlier deadlines and lasts into it.
    fn is_bounded(&self, members: &Members, size: u32) -> bool {
        let blocked;
        let tasks = match size > 1 && !members.are_plain() {
            true => {
                blocked = members.with_blocking();
                &blocked
            }
            false => &members.tasks,
        };
        tasks.iter().all(|t| t.wcet <= t.period)
            && exact::cmp_sum(
                tasks.iter().map(Timing::utilization),
                Ratio::whole(u64::from(size)),
            )
            .is_le()
    }

    /// The exact test by which a processor takes a task, with counted work. `ids` are the places in the set.
    pub fn accepts(&self, ids: &[u32], tasks: &[Timing], size: u32, work: &mut Work) -> bool {
        let all = ids.iter().map(|i| *i as usize).zip(tasks.iter().copied());
        let members = self.members(all);
        match (self.tests(), self.policy.priority()) {
            (Tests::Priorities, Some(priority)) if size == 1 => members.fixed(priority) == Ok(true),
            (Tests::Deadlines, _) if size == 1 => {
                work.lend(place::PLACEMENT_WORK, |w| match members.are_plain() {
                    true => edf::decide_within(tasks, w),
                    false => delayed::decide_edf(&members.tasks, &members.extras, w),
                }) == Ok(true)
            }
            _ => {
                // The tests of clusters count their own work; what is counted here is that they are asked.
                let size_squared = (tasks.len() * tasks.len()) as u64;
                work.spend(size_squared) && self.place_holds(&members, size)
            }
        }
    }

    /// Who lives where with which overheads.
    pub fn pieces(&self, case: &Case, assignment: &Assignment) -> Pieces {
        match self.bill.rule {
            // By each rule a delay is charged in each quantum.
            _ if matches!(assignment, Assignment::Quanta(_)) => {
                let accounted = overheads::account(&case.tasks, assignment, &self.system(case));
                Pieces {
                    pieces: accounted.pieces,
                    places: accounted.places.into_iter().map(|p| p.processors).collect(),
                    lost: None,
                }
            }
            Rule::ByPiece | Rule::AllOverheads | Rule::Paper => {
                let system = self.system(case);
                let accounted = overheads::account(&case.tasks, assignment, &system);
                let lost = matches!(assignment, Assignment::Slots(_)).then(|| accounted.lost());
                Pieces {
                    pieces: accounted.pieces,
                    places: accounted.places.into_iter().map(|p| p.processors).collect(),
                    lost,
                }
            }
            Rule::OneDelay => self.pieces_with_one_delay(case, assignment),
        }
    }

    fn pieces_with_one_delay(&self, case: &Case, assignment: &Assignment) -> Pieces {
        let alone = |cpus: &[CpuId]| cpus.iter().map(|c| std::iter::once(*c).collect()).collect();
        let piece = |index: usize, place: usize, timing: Timing, delay: Duration, jobs: (u64, u64)| {
            let mut parts = Parts::default();
            parts.add(Kind::Cpmd, delay);
            Piece {
                task: TaskId(index as u32),
                place: place as u32,
                timing,
                parts,
                jobs,
            }
        };
        let inflated = self.inflated(case);
        let whole =
            |index: usize, place: usize| piece(index, place, inflated[index], case.delays[index], (1, 1));
        let place_of = |cpus: &[CpuId], cpu: CpuId| cpus.iter().position(|c| *c == cpu).unwrap_or(0);
        let mut pieces = Vec::with_capacity(inflated.len());
        let places = match assignment {
            Assignment::Clustered(c) => {
                pieces.extend(
                    c.cluster_of
                        .iter()
                        .enumerate()
                        .map(|(i, p)| whole(i, *p as usize)),
                );
                c.clusters.clone()
            }
            Assignment::Turns(turns) => {
                for (index, turn) in turns.tasks.iter().enumerate() {
                    let rest = turn.whole.saturating_sub(turn.part);
                    let shares = [(turn.first, turn.part), (turn.second, rest)];
                    for (cpu, part) in &shares[..if turn.is_migratory() { 2 } else { 1 }] {
                        let place = place_of(&turns.cpus, *cpu);
                        let (timing, delay) = (inflated[index], case.delays[index]);
                        let jobs = if turn.is_migratory() {
                            (*part, turn.whole)
                        } else {
                            (1, 1)
                        };
                        pieces.push(piece(index, place, timing, delay, jobs));
                    }
                }
                alone(&turns.cpus)
            }
            Assignment::Slices(slices) => {
                for (index, parts) in slices.tasks.iter().enumerate() {
                    let mut left = case.delays[index];
                    for (at, slice) in parts.iter().enumerate() {
                        // The delay is spread over the slices as the execution is; the last one takes what is left.
                        let share = u128::from(case.delays[index].nanos()) * u128::from(slice.budget.nanos())
                            / u128::from(inflated[index].wcet.nanos().max(1));
                        let share = Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX));
                        let delay = if at + 1 == parts.len() {
                            left
                        } else {
                            share.min(left)
                        };
                        let delay = delay.min(slice.budget);
                        left = left.saturating_sub(delay);
                        let timing = Timing {
                            wcet: slice.budget,
                            deadline: slice.window,
                            period: inflated[index].period,
                        };
                        pieces.push(piece(
                            index,
                            place_of(&slices.cpus, slice.cpu),
                            timing,
                            delay,
                            (1, 1),
                        ));
                    }
                }
                alone(&slices.cpus)
            }
            // Accounted quantum by quantum.
            Assignment::Quanta(quanta) => {
                pieces.extend((0..inflated.len()).map(|i| whole(i, 0)));
                vec![quanta.cpus.clone()]
            }
            Assignment::Slots(slots) => {
                // A server's tasks are drawn where it is served; here each has its first place.
                for (index, server) in slots.server_of.iter().enumerate() {
                    let here = |t: &model::assignment::Timetable| t.turns.iter().any(|s| s.server == *server);
                    pieces.push(whole(index, slots.timetables.iter().position(here).unwrap_or(0)));
                }
                slots
                    .timetables
                    .iter()
                    .map(|t| std::iter::once(t.cpu).collect())
                    .collect()
            }
        };
        Pieces {
            pieces,
            places,
            lost: None,
        }
    }
}
