//! A policy made ready for one task set on one platform: its scheduling domains, and which jobs go
//! to which.

use crate::cluster::{Cluster, Rank};
use crate::ids::DomainId;
use crate::place::Nearness;
use crate::{Policy, Profiler};
use model::assignment::Clustered;
use model::{
    Assignment, CpuId, CpuSet, Duration, Error, Platform, Result, TaskId, TaskSet, Timing,
};

/// What a policy is built from.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The tasks.
    pub set: &'a TaskSet,
    /// The processors that are scheduled and the caches that they share.
    pub platform: &'a Platform,
    /// Where tasks go, for the policies that need to be told ([`Needs`](crate::catalog::Needs)).
    pub assignment: Option<&'a Assignment>,
    /// The quantum of the quantum-driven policies.
    pub quantum: Duration,
}

/// Processors that are scheduled together, and the state machine that does it.
#[derive(Clone, Debug)]
pub struct Domain<P> {
    /// The processors, by place.
    pub cpus: Vec<CpuId>,
    /// Who decides.
    pub policy: P,
}

/// Where the jobs of tasks become ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// By task, the domain of all its jobs.
    Fixed(Vec<DomainId>),
    /// By task, the two domains that take turns (002 §4.1).
    Alternating(Vec<Turns>),
}

/// How the jobs of one task are dealt out to two domains: of the first k jobs, ⌈k · part / whole⌉
/// go to the first.
///
/// Any `whole` jobs in a row hold exactly `part` jobs of the first domain. Any q jobs in a row hold
/// at most q·f + 1 of either domain, f its part of the jobs: the tardiness bound of EDF-fm needs
/// that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turns {
    /// The first domain.
    pub first: DomainId,
    /// The second domain; the same for a task that does not migrate.
    pub second: DomainId,
    /// Jobs in the first domain …
    pub part: u64,
    /// … out of this many; not zero.
    pub whole: u64,
}

impl Turns {
    /// All jobs in one domain.
    pub const fn fixed(domain: DomainId) -> Self {
        Turns {
            first: domain,
            second: domain,
            part: 1,
            whole: 1,
        }
    }

    /// The domain of job `number`, from 0.
    #[inline]
    pub fn domain(&self, number: u64) -> DomainId {
        if self.first == self.second {
            return self.first;
        }
        let dealt =
            |jobs: u64| (u128::from(jobs) * u128::from(self.part)).div_ceil(u128::from(self.whole));
        if dealt(number.saturating_add(1)) > dealt(number) {
            self.first
        } else {
            self.second
        }
    }
}

impl Route {
    /// The domain in which job `number` (from 0) of a task becomes ready.
    #[inline]
    pub fn home(&self, task: TaskId, number: u64) -> DomainId {
        match self {
            Route::Fixed(domain_of) => domain_of[task.index()],
            Route::Alternating(turns) => turns[task.index()].domain(number),
        }
    }
}

/// A policy for one task set on one platform.
#[derive(Clone, Debug)]
pub struct Plan<P> {
    /// Disjoint sets of processors, each on its own.
    pub domains: Vec<Domain<P>>,
    /// Where jobs become ready.
    pub route: Route,
}

impl<P: Policy> Plan<P> {
    /// What finds working sets by the misses of jobs, where something does.
    pub fn profiler(&self) -> Option<&Profiler> {
        self.domains.iter().find_map(|d| d.policy.profiler())
    }

    /// Refuses a policy that finds working sets by the misses of jobs, for engines that do not count
    /// them.
    ///
    /// # Errors
    /// The policy is one.
    pub fn needs_no_counts(&self) -> Result<()> {
        match self.profiler().is_some() {
            true => Err(Error::new(
                "the policy finds working sets by counting misses, and nothing counts them here",
            )
            .at("`wss=profiled`")
            .remedy(
                "use `warmset simulate --cache`, run tasks that are threads, or give `wss` in the \
                 tasks instead",
            )),
            false => Ok(()),
        }
    }
}

/// Each processor for itself, in this order: the domains of policies that split tasks.
pub(crate) fn each_alone(cpus: &[CpuId]) -> Vec<CpuSet> {
    cpus.iter().map(|c| [*c].into_iter().collect()).collect()
}

/// Tables are kept per task in every domain: more entries than this are refused.
pub(crate) const MAX_ENTRIES: usize = 1 << 25;

impl Setup<'_> {
    /// One domain for each of these sets of processors, in cache order, with the policy that `make`
    /// gives it.
    ///
    /// # Errors
    /// So many domains and tasks that their tables would not fit.
    pub fn domains<P>(
        &self,
        clusters: &[CpuSet],
        mut make: impl FnMut(usize, &[CpuId]) -> Result<P>,
    ) -> Result<Vec<Domain<P>>> {
        if clusters.len().saturating_mul(self.set.len()) > MAX_ENTRIES {
            return Err(Error::new(format!(
                "{} scheduling domains of {} tasks are too many",
                clusters.len(),
                self.set.len()
            ))
            .remedy(format!(
                "give fewer: domains times tasks may be at most {MAX_ENTRIES}"
            )));
        }
        let order = self.platform.in_cache_order();
        clusters
            .iter()
            .enumerate()
            .map(|(index, cluster)| {
                let inside = order.iter().copied().filter(|c| cluster.contains(*c));
                let cpus: Vec<CpuId> = inside.collect();
                if cpus.len() != cluster.len() || cpus.is_empty() {
                    return Err(Error::new(format!(
                        "the assignment uses the processors {cluster}, of which `{}` does not have all",
                        self.platform.name
                    ))
                    .remedy("make the assignment for the platform that is scheduled"));
                }
                Ok(Domain {
                    policy: make(index, &cpus)?,
                    cpus,
                })
            })
            .collect()
    }

    /// One cluster of all usable processors.
    ///
    /// # Errors
    /// No usable processor; an assignment of another kind.
    pub fn global<R: Rank + Clone>(
        &self,
        rank: &R,
        quantum: Option<Duration>,
    ) -> Result<Plan<Cluster<R>>> {
        let usable = self.platform.usable();
        match self.assignment {
            None => {}
            Some(Assignment::Clustered(c)) if c.clusters == [usable] => {}
            Some(_) => {
                return Err(Error::new(
                    "the policy schedules all tasks on all processors, and the assignment says who runs where",
                )
                .remedy("give no assignment, or a policy that it is for"));
            }
        }
        self.clustered(
            &Clustered {
                clusters: self.platform.clusters(model::ClusterSpec::Global)?,
                cluster_of: vec![0; self.set.len()],
            },
            rank,
            quantum,
        )
    }

    /// The clusters of an assignment, each scheduled by rank.
    ///
    /// # Errors
    /// The assignment is not one of this set on this platform.
    pub fn clustered<R: Rank + Clone>(
        &self,
        assignment: &Clustered,
        rank: &R,
        quantum: Option<Duration>,
    ) -> Result<Plan<Cluster<R>>> {
        let tasks = self.set.len();
        let clusters = assignment.clusters.len();
        if assignment.cluster_of.len() != tasks
            || assignment
                .cluster_of
                .iter()
                .any(|c| *c as usize >= clusters)
        {
            return Err(Error::new(format!(
                "the assignment of {} tasks to {clusters} clusters does not fit a set of {tasks} tasks",
                assignment.cluster_of.len()
            ))
            .remedy("make the assignment for this set"));
        }
        let domains = self.domains(&assignment.clusters, |_, cpus| {
            let near = Nearness::of(self.platform, cpus);
            Ok(Cluster::new(rank.clone(), near, cpus.len(), tasks, quantum))
        })?;
        Ok(Plan {
            domains,
            route: Route::Fixed(assignment.cluster_of.iter().map(|c| DomainId(*c)).collect()),
        })
    }

    /// The timings from which a policy in quanta of this length is built, on all usable processors:
    /// those of the set, or with the times that the assignment reserves as WCETs.
    ///
    /// # Errors
    /// The assignment is of another kind, or is not one of this set, platform and quantum.
    pub fn in_quanta(&self, policy: &str, quantum: Duration) -> Result<Vec<Timing>> {
        let usable = self.platform.usable();
        let refuse = |cause: String, remedy: &str| Err(Error::new(cause).remedy(remedy));
        match self.assignment {
            None => Ok(self.set.timings().to_vec()),
            Some(Assignment::Clustered(c))
                if c.clusters.as_slice() == std::slice::from_ref(&usable) =>
            {
                Ok(self.set.timings().to_vec())
            }
            Some(Assignment::Quanta(quanta)) => {
                if quanta.quantum != quantum {
                    return refuse(
                        format!(
                            "the assignment reserves quanta of {}, and `{policy}` has quanta of {quantum}",
                            quanta.quantum
                        ),
                        "give the same `--quantum`",
                    );
                }
                if quanta.cpus != usable {
                    return refuse(
                        format!(
                            "the assignment is for the processors {}, and `{policy}` has {usable}",
                            quanta.cpus
                        ),
                        "make the assignment for the platform that is scheduled",
                    );
                }
                quanta.timings(self.set)
            }
            Some(_) => refuse(
                format!("`{policy}` takes reserved quanta, and the assignment says who runs where"),
                "give an assignment of the kind `quanta`, or none",
            ),
        }
    }

    /// The given assignment to clusters, of which each is one processor where `partitioned`.
    ///
    /// # Errors
    /// None was given, or one of another kind.
    pub fn clusters_given(&self, policy: &str, partitioned: bool) -> Result<&Clustered> {
        match self.assignment {
            Some(Assignment::Clustered(c))
                if !partitioned || c.clusters.iter().all(|s| s.len() == 1) =>
            {
                Ok(c)
            }
            _ => Err(Error::new(format!(
                "`{policy}` needs an assignment of tasks to {}",
                if partitioned {
                    "processors"
                } else {
                    "clusters"
                }
            ))
            .remedy("partition the set first")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_dealt_out_by_their_shares() {
        // 002, Example 4.1.1: of any nine jobs of T3 in a row, two run on P1 and seven on P2.
        let turns = Turns {
            first: DomainId(0),
            second: DomainId(1),
            part: 2,
            whole: 9,
        };
        let dealt: Vec<u32> = (0..27).map(|k| turns.domain(k).0).collect();
        assert_eq!(dealt[0], 0);
        for nine in dealt.windows(9) {
            assert_eq!(nine.iter().filter(|d| **d == 0).count(), 2);
        }
        let third = DomainId(3);
        assert_eq!(Turns::fixed(third).domain(u64::MAX), third);
        assert!(turns.domain(u64::MAX).0 <= 1);
    }

    /// The precondition of the tardiness bound of EDF-fm, on both processors, for every share up to
    /// twelfths and every q jobs in a row of three rounds.
    #[test]
    fn of_any_jobs_in_a_row_each_processor_gets_at_most_its_share_and_one() {
        for whole in 1..=12_u64 {
            for part in 0..=whole {
                let turns = Turns {
                    first: DomainId(0),
                    second: DomainId(1),
                    part,
                    whole,
                };
                let dealt: Vec<u32> = (0..3 * whole).map(|k| turns.domain(k).0).collect();
                for (domain, share) in [(0, part), (1, whole - part)] {
                    for from in 0..dealt.len() {
                        let mut count = 0;
                        for (q, to) in (1..).zip(&dealt[from..]) {
                            count += u64::from(*to == domain);
                            assert!(
                                count * whole <= q * share + whole,
                                "{part} of {whole}: {count} of {q} jobs on {domain}"
                            );
                        }
                    }
                }
            }
        }
    }
}
