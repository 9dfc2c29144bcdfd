//! Certificates: what is needed to verify a verdict without this program.
//!
//! The judgment says who is where; this says why that holds, or which inequality fails, in numbers
//! that `warmset-verify` computes anew. [`format`] is the document; `docs/certificates.md` says
//! what each part of it rests on. What has no proof here is refused by name.

pub mod format;
mod reserved;
mod schedule;
mod search;
mod several;
mod single;
mod states;

pub use search::{Found, Searched};

use super::charged::{Case, Point, STEPS};
use super::costs::{Costs, Rule};
use super::question::Question;
use super::subject::{Subject, Way};
use super::urgency::Ordered;
use super::{Judgment, NOT_JUDGED, PolicyVerdict, rank};
use crate::overheads::Piece;
use crate::partition::Order as PackingOrder;
use crate::pd2;
use crate::uniprocessor::delayed;
use crate::verdict::Guarantee;
use format::{Certificate, Claim, Entry, Number, Place, Proof, Refusal, Says, With, Without};
use model::assignment::{Clustered, Slices};
use model::{
    Assignment, CpuSet, Duration, Extras, Platform, Result, Resumption, TaskId, TaskSet, Timing,
};
use num_rational::BigRational;
use policy::Spec;
use policy::catalog::{Order, Tests};

/// The most tasks that are placed one by one to show where a packing gets stuck.
const MOST_PLACED: usize = 200;

fn nanos(d: Duration) -> i128 {
    i128::from(d.nanos())
}

fn big(q: BigRational) -> Number {
    Number::from(q)
}

/// The tasks of one place with their overheads.
#[derive(Clone)]
struct Here {
    /// Places in the set as it was given, ascending.
    ids: Vec<usize>,
    tasks: Vec<Timing>,
    extras: Vec<Extras>,
    /// By task, its rank among them under fixed priorities.
    ranks: Vec<usize>,
    cpus: CpuSet,
    m: i128,
    /// By task which part of its jobs comes here, as part of a whole.
    jobs: Vec<(u64, u64)>,
    /// By task which slice of its job comes here, and what that executes.
    slices: Vec<(usize, Duration)>,
    way: Way,
}

impl Here {
    fn utilization(&self) -> BigRational {
        self.tasks.iter().map(|t| t.utilization().to_big()).sum()
    }

    /// Which part of its jobs each task has here.
    fn parts(&self) -> impl Iterator<Item = BigRational> {
        let part = |(part, whole): &(u64, u64)| BigRational::new((*part).into(), (*whole).into());
        self.jobs.iter().map(part)
    }

    fn blocked_utilization(&self) -> BigRational {
        let both = self.tasks.iter().zip(&self.extras);
        both.map(|(t, x)| t.inflated(x.blocking).utilization().to_big())
            .sum()
    }

    /// The same with deadlines counted from the latest releases.
    fn since_latest_release(&self) -> Here {
        let both = self.tasks.iter().zip(&self.extras);
        let tasks = both
            .map(|(t, x)| delayed::from_latest_release(t, x))
            .collect();
        Here {
            tasks,
            ..self.clone()
        }
    }

    fn is_delayed(&self) -> bool {
        self.extras.iter().any(|x| !x.is_none())
    }

    fn place(&self) -> Place {
        Place {
            processors: self.cpus.iter().map(|cpu| cpu.0).collect(),
            tasks: self.ids.clone(),
            inflated_ns: self.tasks.iter().map(|t| Number::from(t.wcet)).collect(),
            windows_ns: match self.way {
                Way::Slices { .. } => self.tasks.iter().map(|t| t.deadline.into()).collect(),
                _ => Vec::new(),
            },
            budgets_ns: self.slices.iter().map(|s| s.1.into()).collect(),
            slices: self.slices.iter().map(|s| s.0).collect(),
            parts: match self.way {
                Way::Turns { .. } => self.parts().map(big).collect(),
                _ => Vec::new(),
            },
            proof: None,
            refusals: Vec::new(),
        }
    }
}

/// The certificate of a judgment.
///
/// # Errors
/// As [`super::judge`], whose input this is.
pub fn certify(
    set: &TaskSet,
    platform: &Platform,
    judgment: &Judgment,
    costs: &Costs<'_>,
) -> Result<Certificate> {
    let guarantee = judgment.guarantee;
    let mut certificate = Certificate {
        schema_version: 1,
        document: "warmset certificate",
        guarantee,
        rule: costs.rule(),
        processors: platform.usable().iter().map(|cpu| cpu.0).collect(),
        ways: match costs.rule() {
            Rule::OneDelay => Vec::new(),
            _ => ways(platform),
        },
        tasks: Entry::all(set),
        claims: Vec::new(),
        without: Vec::new(),
    };
    for verdict in &judgment.policies {
        for (with, made) in claims(set, platform, verdict, guarantee, costs)? {
            let policy = verdict.policy.clone();
            match made {
                Ok(claim) => certificate.claims.push(claim),
                Err(why) => certificate.without.push(Without { policy, with, why }),
            }
        }
    }
    Ok(certificate)
}

/// Looks for schedules that miss where sufficient tests refuse a small set, so that a verdict that
/// says neither yes nor no says more. [`certify`] shows what is found.
///
/// # Errors
/// As [`super::judge`], whose input this is.
pub fn search(
    set: &TaskSet,
    platform: &Platform,
    judgment: &mut Judgment,
    costs: &Costs<'_>,
) -> Result<()> {
    let guarantee = judgment.guarantee;
    for verdict in &mut judgment.policies {
        if verdict.decided_by == NOT_JUDGED {
            continue;
        }
        let posed = Posed::of(set, verdict)?;
        let question = posed.question(platform, guarantee, costs, None)?;
        let case = question.case(Point::GIVEN);
        posed.certifier(&question, &case).search(verdict);
    }
    judgment.advice = rank::advise(&judgment.policies);
    Ok(())
}

/// By two processors the way in which a job resumes.
fn ways(platform: &Platform) -> Vec<Vec<String>> {
    let cpus: Vec<_> = platform.usable().iter().collect();
    let way = |from, to| platform.resumption(from, to).to_string();
    let row = |from: &model::CpuId| cpus.iter().map(|to| way(*from, *to)).collect();
    cpus.iter().map(row).collect()
}

/// A verdict's question, in the order in which it was asked.
struct Posed<'s> {
    set: &'s TaskSet,
    subject: Subject,
    ordered: Option<Ordered>,
}

impl<'s> Posed<'s> {
    fn of(set: &'s TaskSet, verdict: &PolicyVerdict) -> Result<Self> {
        let spec: Spec = verdict.policy.parse()?;
        let subject = Subject::new(&spec)?;
        let ordered = Ordered::of(set, &subject, verdict.assignment.as_ref())?;
        Ok(Posed {
            set,
            subject,
            ordered,
        })
    }

    /// About the assignment of the verdict, in this order.
    fn given<'a>(&'a self, verdict: &'a PolicyVerdict) -> Option<&'a Assignment> {
        match &self.ordered {
            Some(ordered) => ordered.given.as_ref(),
            None => verdict.assignment.as_ref(),
        }
    }

    fn question<'a>(
        &'a self,
        platform: &'a Platform,
        guarantee: Guarantee,
        costs: &Costs<'_>,
        given: Option<&'a Assignment>,
    ) -> Result<Question<'a>> {
        let asked = self.ordered.as_ref().map_or(self.set, |o| &o.set);
        Question::new(
            asked,
            platform,
            self.subject.clone(),
            guarantee,
            costs,
            given,
        )
    }

    fn certifier<'a>(&'a self, question: &'a Question<'a>, case: &'a Case) -> Certifier<'a> {
        Certifier {
            question,
            case,
            order: self.ordered.as_ref().map(Ordered::order),
        }
    }
}

/// A claim, or why there is none.
type Made = std::result::Result<Claim, String>;

/// What is claimed of one policy: its verdict, and its margins, each with the point that it is
/// about.
fn claims(
    set: &TaskSet,
    platform: &Platform,
    verdict: &PolicyVerdict,
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> Result<Vec<(With, Made)>> {
    let nothing = |why: String| Ok(vec![(With::default(), Err(why))]);
    if verdict.decided_by == NOT_JUDGED {
        return nothing(verdict.reason.clone());
    }
    let posed = Posed::of(set, verdict)?;
    let is_in_quanta = matches!(posed.subject.way, Way::Quanta(_));
    if is_in_quanta && posed.subject.tests(guarantee) != Tests::Named(pd2::INFO.name) {
        return nothing("there are no certificates for its test".to_owned());
    }
    let given = posed.given(verdict);
    let question = posed.question(platform, guarantee, costs, given)?;
    let case = question.case(Point::GIVEN);
    let made = posed.certifier(&question, &case).claim(verdict);
    let mut all = vec![(With::default(), made)];
    let anew = posed.question(platform, guarantee, costs, None)?;
    for (with, point) in margins(verdict, question.bill.is_free()) {
        let case = question.case(point);
        // The assignment of the verdict if it holds that far, else the one that margins found.
        let found = question.find(&case).or_else(|| anew.find(&case));
        let certifier = posed.certifier(&question, &case);
        let made = match found {
            Some(found) => certifier.yes(&verdict.policy, &with, &found.assignment),
            None => Err("no assignment is found at the margin".to_owned()),
        };
        all.push((with, made));
    }
    Ok(all)
}

/// The points at which a verdict says that the set holds, besides the one that it is about.
fn margins(verdict: &PolicyVerdict, is_free: bool) -> Vec<(With, Point)> {
    let growth = verdict.growth.filter(|g| g.thousandths != STEPS).map(|g| {
        let with = With {
            thousandths: Some(g.thousandths),
            cpmd_ns: None,
        };
        let point = Point {
            thousandths: g.thousandths,
            ..Point::GIVEN
        };
        (with, point)
    });
    let longest = verdict.largest_cpmd.map(|margin| margin.cpmd);
    let delay = longest
        .filter(|cpmd| !(cpmd.is_zero() && is_free))
        .map(|cpmd| {
            let with = With {
                thousandths: None,
                cpmd_ns: Some(cpmd.into()),
            };
            let point = Point {
                cpmd: Some(cpmd),
                ..Point::GIVEN
            };
            (with, point)
        });
    growth.into_iter().chain(delay).collect()
}

/// One set under one policy.
struct Certifier<'a> {
    question: &'a Question<'a>,
    case: &'a Case,
    /// By place in the question, the task of the set as it was given; `None`: the same.
    order: Option<&'a [TaskId]>,
}

impl Certifier<'_> {
    fn claim(&self, verdict: &PolicyVerdict) -> Made {
        if verdict.schedulable {
            let assignment = self.question.given.ok_or("the verdict has no assignment")?;
            return self.yes(&verdict.policy, &With::default(), assignment);
        }
        let mut claim = Claim {
            policy: verdict.policy.clone(),
            says: Says::Refuted,
            with: With::default(),
            costs: None,
            places: Vec::new(),
            stuck: None,
            refutation: None,
        };
        if verdict.refuted {
            let searched = verdict.searched.as_ref().and_then(|s| s.miss.clone());
            let refutation = searched.or_else(|| self.refutation());
            claim.refutation = Some(refutation.ok_or("no short refutation is known")?);
        } else if let (Way::Quanta(quantum), None) = (self.question.policy.way, self.question.given)
        {
            claim.says = Says::NotShown;
            claim.costs = Some(self.costs());
            claim.places = vec![self.without_quanta(quantum)];
        } else if !self.question.policy.is_packed() {
            return Err("what splitting tasks does not find has no certificate".to_owned());
        } else {
            claim.says = Says::NotShown;
            claim.costs = Some(self.costs());
            (claim.places, claim.stuck) = self.refused()?;
        }
        Ok(claim)
    }

    /// The claim that an assignment holds.
    fn yes(&self, policy: &str, with: &With, assignment: &Assignment) -> Made {
        let place = |here: &Here| {
            let proof = Some(self.proof(here)?);
            Ok(Place {
                proof,
                ..here.place()
            })
        };
        let places = match assignment {
            Assignment::Slots(slots) => self.served(slots),
            Assignment::Quanta(quanta) => vec![self.in_quanta(quanta)],
            _ => {
                let places = self.places(assignment);
                let places = places.iter().map(place);
                places.collect::<std::result::Result<_, String>>()?
            }
        };
        Ok(Claim {
            policy: policy.to_owned(),
            says: Says::Yes,
            with: with.clone(),
            costs: Some(self.costs()),
            places,
            stuck: None,
            refutation: None,
        })
    }

    /// Which task of the set as it was given.
    fn original(&self, index: usize) -> usize {
        self.order.map_or(index, |order| order[index].index())
    }

    fn is_fixed(&self) -> bool {
        matches!(self.question.policy.order, Order::Fixed(_))
    }

    fn costs(&self) -> format::Costs {
        let bill = &self.question.bill;
        let system = self.question.system(self.case);
        let is_in_quanta = matches!(self.question.policy.way, Way::Quanta(_));
        if bill.rule == Rule::OneDelay && !is_in_quanta {
            let delay = self.case.delays.first().copied().unwrap_or_default();
            return format::Costs::One {
                delay_ns: delay.into(),
            };
        }
        let kinds: Vec<Resumption> = system.delays.kinds().to_vec();
        let mut delays_ns = vec![Vec::new(); self.question.set.len()];
        for id in self.question.set.ids() {
            let row = kinds
                .iter()
                .map(|kind| system.delays.delay(id, *kind).into());
            delays_ns[self.original(id.index())] = row.collect();
        }
        let o = &bill.overheads;
        format::Costs::All {
            ways: kinds.iter().map(Resumption::to_string).collect(),
            delays_ns,
            release_ns: o.release.into(),
            scheduling_ns: o.scheduling.into(),
            context_switch_ns: o.context_switch.into(),
            ipi_latency_ns: o.ipi_latency.into(),
            tick_ns: o.tick.into(),
            tick_period_ns: o.tick_period.into(),
            timer_transfer_ns: o.timer_transfer.into(),
        }
    }

    /// The places of an assignment that have tasks.
    fn places(&self, assignment: &Assignment) -> Vec<Here> {
        let pieces = self.question.pieces(self.case, assignment);
        let inside = pieces.by_place();
        let both = inside.iter().zip(&pieces.places);
        both.filter(|(here, _)| !here.is_empty())
            .map(|(here, cpus)| {
                let tasks = here.iter().map(|p| (p.task.index(), p.timing)).collect();
                let mut place = self.here(tasks, cpus.clone());
                let jobs_of = |id: &usize| {
                    let own = here.iter().find(|p| self.original(p.task.index()) == *id);
                    own.map_or((1, 1), |piece| piece.jobs)
                };
                place.jobs = place.ids.iter().map(jobs_of).collect();
                if let Assignment::Slices(slices) = assignment {
                    let mut own: Vec<_> =
                        here.iter().map(|p| self.slice(slices, p, cpus)).collect();
                    own.sort_unstable_by_key(|(id, _)| *id);
                    place.slices = own.into_iter().map(|(_, slice)| slice).collect();
                }
                place
            })
            .collect()
    }

    /// The task of a piece, which of its slices is on these processors, and what it executes.
    fn slice(&self, slices: &Slices, piece: &Piece, cpus: &CpuSet) -> (usize, (usize, Duration)) {
        let all = &slices.tasks[piece.task.index()];
        let at = all.iter().position(|slice| cpus.contains(slice.cpu));
        let budget = at.map_or(Duration::ZERO, |at| all[at].budget);
        (self.original(piece.task.index()), (at.unwrap_or(0), budget))
    }

    /// A place with these tasks, by their indices in the question, ascending.
    fn here(&self, tasks: Vec<(usize, Timing)>, cpus: CpuSet) -> Here {
        let timings: Vec<Timing> = tasks.iter().map(|(_, t)| *t).collect();
        let mut ranks = vec![0; tasks.len()];
        if let Order::Fixed(priority) = self.question.policy.order {
            for (rank, at) in priority.order(&timings).into_iter().enumerate() {
                ranks[at] = rank;
            }
        }
        let all = self.question.set.extras();
        let extras = |index: usize| all.get(index).copied().unwrap_or_default();
        let mut rows: Vec<(usize, Timing, Extras, usize)> = tasks
            .iter()
            .zip(ranks)
            .map(|((index, t), rank)| (self.original(*index), *t, extras(*index), rank))
            .collect();
        rows.sort_unstable_by_key(|row| row.0);
        Here {
            ids: rows.iter().map(|row| row.0).collect(),
            tasks: rows.iter().map(|row| row.1).collect(),
            extras: rows.iter().map(|row| row.2).collect(),
            ranks: rows.iter().map(|row| row.3).collect(),
            m: cpus.len() as i128,
            cpus,
            jobs: vec![(1, 1); rows.len()],
            slices: Vec::new(),
            way: self.question.policy.way,
        }
    }

    fn proof(&self, here: &Here) -> std::result::Result<Proof, String> {
        let without = |test: &str| format!("there is no certificate for {test}");
        match self.question.policy.way {
            Way::Slices { .. } => return single::demand_proof(here),
            Way::Turns { .. } => return Ok(single::utilization_proof(here)),
            _ => {}
        }
        match (self.question.tests(), here.m) {
            (Tests::Utilization, _) => Ok(single::utilization_proof(here)),
            (Tests::Deadlines, 1) => single::demand_proof(here),
            (Tests::Priorities, 1) => single::response_proof(here),
            (Tests::Deadlines, _) => {
                several::edf_proof(here).ok_or_else(|| without("a long LOAD, FFDBF, BAR or RTA"))
            }
            (Tests::Priorities, _) => {
                several::fixed_proof(here).ok_or_else(|| without("a long GFP-RTA"))
            }
            (Tests::Named(_) | Tests::None, _) => Err(without("its test")),
        }
    }

    /// Why no schedule keeps the guarantee, for the tasks as they were given.
    fn refutation(&self) -> Option<Refusal> {
        let tasks = self.question.set.timings().iter().copied().enumerate();
        let all = self.here(tasks.collect(), self.question.platform.usable());
        self.overload(&all).or_else(|| match self.is_fixed() {
            true => single::late(&all),
            false => single::too_much(&all),
        })
    }

    /// A task that asks for more than there is, or all of them together.
    fn overload(&self, here: &Here) -> Option<Refusal> {
        let hard = self.question.guarantee == Guarantee::Hard;
        let late = |t: &Timing| t.wcet > t.period || (hard && t.wcet > t.deadline);
        if let Some(at) = here.tasks.iter().position(late) {
            return Some(Refusal::Task {
                index: here.ids[at],
            });
        }
        let m = BigRational::from_integer(here.m.into());
        (here.utilization() > m).then_some(Refusal::Utilization)
    }

    /// Why tests do not accept a place: empty where nothing short is known.
    fn refusals(&self, here: &Here) -> Vec<Refusal> {
        let mut all: Vec<Refusal> = self.overload(here).into_iter().collect();
        if !all.is_empty() {
            return all;
        }
        match (self.question.tests(), here.m) {
            (Tests::Deadlines, 1) => all.extend(single::too_much(here)),
            (Tests::Priorities, 1) => all.extend(single::late(here)),
            (Tests::Deadlines, _) => all.extend(several::refusals(here, false)),
            (Tests::Priorities, _) => all.extend(several::refusals(here, true)),
            _ => {}
        }
        all
    }

    /// The places that are refused, and the task that none of them takes, if it is about one.
    fn refused(&self) -> std::result::Result<(Vec<Place>, Option<usize>), String> {
        const NOTHING: &str = "there is no certificate for what its tests refuse";
        let clusters = &self.question.site.clusters;
        let with_refusals = |here: Here| {
            let refusals = self.refusals(&here);
            Place {
                refusals,
                ..here.place()
            }
        };
        let whole = match self.question.given {
            Some(given) => Some(given.clone()),
            None if clusters.len() == 1 => Some(clustered(
                clusters.clone(),
                vec![0; self.question.set.len()],
            )),
            None => None,
        };
        if let Some(assignment) = whole {
            let places = self.places(&assignment).into_iter().map(with_refusals);
            let refused: Vec<Place> = places.filter(|p| !p.refusals.is_empty()).collect();
            return match refused.is_empty() {
                true => Err(NOTHING.to_owned()),
                false => Ok((refused, None)),
            };
        }
        let (stuck, tried) = self.place_one_by_one()?;
        let places: Vec<Place> = tried.into_iter().map(with_refusals).collect();
        match places.iter().any(|p| p.refusals.is_empty()) {
            true => Err(NOTHING.to_owned()),
            false => Ok((places, Some(self.original(stuck)))),
        }
    }

    /// First fit in decreasing utilization, each place tested with its overheads, as the judgment
    /// tried it among others: the task that no place takes, and each place with that task.
    fn place_one_by_one(&self) -> std::result::Result<(usize, Vec<Here>), String> {
        // In the order in which the judgment placed them: with what one delay adds.
        let (tasks, _) = self.question.books(self.case);
        if tasks.len() > MOST_PLACED {
            return Err("more than 200 tasks are not placed again for a certificate".to_owned());
        }
        let order = match &self.question.allowed {
            Some(allowed) => allowed.placement(&tasks),
            None => {
                let mut order = Vec::new();
                PackingOrder::DecreasingUtilization.sort(&tasks, &mut order);
                order
            }
        };
        let clusters = &self.question.site.clusters;
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); clusters.len()];
        for task in order {
            let mut tried = Vec::new();
            let allowed = self.question.allowed.as_ref();
            for (at, cpus) in clusters.iter().enumerate() {
                if allowed.is_some_and(|a| !a.may(task, at)) {
                    continue;
                }
                let mut inside = members[at].clone();
                inside.push(task as usize);
                inside.sort_unstable();
                let with = self.alone_in(&inside, cpus);
                let all = self.question.members(with.iter().copied());
                if self.question.place_holds(&all, cpus.len() as u32) {
                    members[at] = inside;
                    tried.clear();
                    break;
                }
                tried.push(self.here(with, cpus.clone()));
            }
            if !tried.is_empty() {
                return Ok((task as usize, tried));
            }
        }
        Err("every task finds a place by a packing that the judgment did not try".to_owned())
    }

    /// These tasks with their overheads in a place of their own.
    fn alone_in(&self, inside: &[usize], cpus: &CpuSet) -> Vec<(usize, Timing)> {
        let elsewhere = |task: usize| u32::from(inside.binary_search(&task).is_err());
        let cluster_of = (0..self.case.tasks.len()).map(elsewhere).collect();
        let assignment = clustered(vec![cpus.clone(), CpuSet::new()], cluster_of);
        let pieces = self.question.pieces(self.case, &assignment);
        let here = pieces.pieces.iter().filter(|p| p.place == 0);
        here.map(|p| (p.task.index(), p.timing)).collect()
    }
}

fn clustered(clusters: Vec<CpuSet>, cluster_of: Vec<u32>) -> Assignment {
    Assignment::Clustered(Clustered {
        clusters,
        cluster_of,
    })
}
