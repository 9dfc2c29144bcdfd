//! Who runs in a quantum under the cache-aware scheduler of 003 §3.1, from the definition.
//!
//! Processor by processor: the tardy job with the earliest deadline; else the jobs that were
//! promoted before, in the order of their promotion; else the smallest working set, which is
//! promoted until it is finished. What would push the working sets of the quantum beyond the cache
//! leaves the processor idle instead, while a phantom task is eligible. A group of tasks is one
//! multithreaded task, whose working set counts once; one that is larger than the cache counts as
//! large as the cache (003 §3.2). Equal sizes: the earlier deadline, then the lower task.
//!
//! Phantom tasks take the spare utilization M − U in whole quanta, WCETs rounded up and periods
//! down, less the part of every processor that is reserved: as many of utilization 1 as fit, and
//! one of e quanta in p, p the period of the set that leaves least over, the longest of several.

use crate::check::quanta::{Choice, Law, Slot};
use crate::state::{State, Status};
use model::{Duration, Instant, Ratio, TaskId, TaskSet, Timing, exact};

/// The cache-aware scheduler.
pub struct CacheAware {
    cache: u64,
    /// Per task, its multithreaded task; per multithreaded task, its working set size.
    group_of: Vec<usize>,
    wss: Vec<u64>,
    /// Per task, which promotion its job's was.
    promoted: Vec<Option<u64>>,
    promotions: u64,
    processors: u64,
    phantoms: Phantoms,
}

/// In which order jobs are chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// By deadline; ties as everywhere.
    Tardy(Instant, Instant),
    /// By promotion.
    Promoted(u64),
    /// By working set size, then by deadline.
    Size(u64, Instant),
}

impl CacheAware {
    /// Of a set whose tasks all have a working set size; tasks of one group are one multithreaded
    /// task. `timings` has what is reserved for the tasks as WCETs.
    pub fn new(
        set: &TaskSet,
        timings: &[Timing],
        cache: u64,
        quantum: Duration,
        processors: usize,
        reserve: Ratio,
    ) -> Self {
        let mut names: Vec<String> = Vec::new();
        let (mut group_of, mut wss) = (Vec::new(), Vec::new());
        for id in set.ids() {
            // A task without a group is a group of its own; its name cannot be one of a group's.
            let name = match set.details(id).and_then(|d| d.group.clone()) {
                Some(group) => format!("group {group}"),
                None => format!("task {}", id.0),
            };
            let place = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                // What is larger than the cache takes all of it, and no more.
                wss.push(
                    set.wss(id)
                        .map_or(0, |w| if w.get() > cache { cache } else { w.get() }),
                );
                names.len() - 1
            });
            group_of.push(place);
        }
        CacheAware {
            cache,
            promoted: vec![None; group_of.len()],
            promotions: 0,
            group_of,
            wss,
            processors: processors as u64,
            phantoms: Phantoms::of(timings, quantum, processors as u64, reserve),
        }
    }
}

impl Law for CacheAware {
    fn choose(&mut self, slot: Slot, state: &State) -> Choice {
        let mut ready: Vec<(Rank, usize)> = Vec::new();
        for (task, now) in state.tasks.iter().enumerate() {
            let is_ready = now.is_waiting() || matches!(now.status, Status::Running(_));
            let Some(job) = now.head().filter(|_| is_ready) else {
                continue;
            };
            let rank = match self.promoted[task] {
                _ if job.deadline <= slot.decided => Rank::Tardy(job.deadline, job.release),
                Some(promotion) => Rank::Promoted(promotion),
                None => Rank::Size(self.wss[self.group_of[task]], job.deadline),
            };
            ready.push((rank, task));
        }
        ready.sort_unstable();
        let phantoms = self.phantoms.eligible(slot.number);
        let mut chosen = Choice::default();
        let (mut utilized, mut seen) = (0_u64, Vec::new());
        let mut left = self.processors;
        for (rank, task) in ready {
            let group = self.group_of[task];
            let more = if seen.contains(&group) {
                0
            } else {
                self.wss[group]
            };
            if !matches!(rank, Rank::Tardy(..)) {
                // The same job is first for the next processor.
                while left > 0
                    && utilized.saturating_add(more) > self.cache
                    && chosen.idle < phantoms
                {
                    chosen.idle += 1;
                    left -= 1;
                }
            }
            if left == 0 {
                break;
            }
            if let Rank::Size(..) = rank {
                self.promotions += 1;
                self.promoted[task] = Some(self.promotions);
            }
            utilized = utilized.saturating_add(more);
            seen.push(group);
            chosen.tasks.push(task);
            left -= 1;
        }
        self.phantoms.use_up(chosen.idle);
        chosen
    }

    fn done(&mut self, task: TaskId) {
        self.promoted[task.index()] = None;
    }
}

/// Phantom tasks: what of the processors is nobody's.
struct Phantoms {
    /// Of utilization 1.
    whole: u64,
    /// Another one: quanta, and the period in which it may have them.
    part: (u64, u64),
    /// The period that it is in, by number, and what it had there.
    had: (u64, u64),
}

impl Phantoms {
    fn of(timings: &[Timing], quantum: Duration, processors: u64, reserve: Ratio) -> Self {
        let q = quantum.nanos().max(1);
        let shares: Option<Vec<Ratio>> = timings
            .iter()
            .map(|t| Ratio::new(t.wcet.nanos().div_ceil(q), t.period.nanos() / q))
            .collect();
        let none = Phantoms {
            whole: 0,
            part: (0, 1),
            had: (0, 0),
        };
        // A period below the quantum leaves nothing to spare.
        let Some(mut shares) = shares else {
            return none;
        };
        // What is reserved is asked for like a task.
        shares.extend(Ratio::new(
            reserve.num().saturating_mul(processors),
            reserve.den(),
        ));
        let fits = |num: u64, den: u64| {
            Ratio::new(num, den).is_some_and(|b| exact::cmp_sum(shares.iter().copied(), b).is_le())
        };
        let whole = (0..=processors)
            .rev()
            .find(|whole| fits(processors - whole, 1))
            .unwrap_or(0);
        let room = processors - whole;
        let spare = room as f64 - shares.iter().map(|s| s.to_f64()).sum::<f64>();
        let mut periods: Vec<u64> = timings.iter().map(|t| t.period.nanos() / q).collect();
        periods.sort_unstable();
        periods.dedup();
        let mut part = (0, 1);
        for p in periods {
            let Some(all) = room.checked_mul(p) else {
                continue;
            };
            // Floating point is near; what it may be off by is put right.
            let mut e = (spare * p as f64).clamp(0.0, p as f64) as u64;
            while e > 0 && !fits(all.saturating_sub(e), p) {
                e -= 1;
            }
            while e + 1 < p && all > e && fits(all - e - 1, p) {
                e += 1;
            }
            // Periods ascend.
            if e > 0 && u128::from(e) * u128::from(part.1) >= u128::from(part.0) * u128::from(p) {
                part = (e, p);
            }
        }
        Phantoms {
            whole,
            part,
            ..none
        }
    }

    /// How many may take a processor in this quantum.
    fn eligible(&mut self, slot: u64) -> u64 {
        let period = slot / self.part.1;
        if self.had.0 != period {
            self.had = (period, 0);
        }
        self.whole + u64::from(self.had.1 < self.part.0)
    }

    /// So many did; those of utilization 1 first.
    fn use_up(&mut self, count: u64) {
        if count > self.whole {
            self.had.1 += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 003, Fig. 2: utilization 1.5 of 2; four phantom quanta in eight.
    #[test]
    fn phantom_tasks_take_what_is_nobodys() {
        let ms = Duration::from_millis;
        let timings =
            [(1, 2), (1, 4), (1, 4), (2, 8), (2, 8)].map(|(e, p)| Timing::implicit(ms(e), ms(p)));
        let phantoms = Phantoms::of(&timings, ms(1), 2, Ratio::ZERO);
        assert_eq!((phantoms.whole, phantoms.part), (0, (4, 8)));
        assert_eq!(Phantoms::of(&timings, ms(1), 4, Ratio::ZERO).whole, 2);
        let full = [Timing::implicit(ms(2), ms(2)); 2];
        assert_eq!(Phantoms::of(&full, ms(1), 2, Ratio::ZERO).eligible(0), 0);
        assert_eq!(Phantoms::of(&full, ms(1), 1, Ratio::ZERO).eligible(0), 0);
    }
}
