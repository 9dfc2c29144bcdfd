//! Global scheduling by priority points that an adversary moves within their windows, one time unit
//! after the other.

use super::random::Random;
use super::{Q, Task, total, whole};

/// How the adversary places the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adversary {
    /// Anywhere, anew in every time unit.
    Anywhere,
    /// As late as it may for one task, as early for all others.
    Against(usize),
    /// Early for some tasks in one time unit, late for the others.
    TakingSides,
    /// As against one task, but only from the time on at which it has been late by so much.
    Lurking(usize, i128),
    /// Always on the deadline: global EDF.
    Edf,
}

/// A simulated world: who is released when, and who runs.
pub struct World<'a> {
    pub tasks: &'a [Task],
    pub m: usize,
    /// φ and ψ by task.
    pub windows: &'a [(i128, i128)],
    /// Do jobs go by their deadline, before all others, once they are tardy?
    pub edf_once_tardy: bool,
    pub adversary: Adversary,
    /// Gaps between releases go up to this.
    pub gaps: u64,
}

struct Pending {
    task: usize,
    release: i128,
    left: i128,
}

impl World<'_> {
    /// The largest tardiness of every task among the jobs released before `horizon`.
    pub fn tardiness(&self, random: &mut Random, horizon: i128) -> Vec<i128> {
        let mut next: Vec<i128> = self
            .tasks
            .iter()
            .map(|_| random.below(1 + self.gaps))
            .collect();
        let mut pending: Vec<Pending> = Vec::new();
        let mut worst = vec![0; self.tasks.len()];
        let mut now = 0;
        while now < horizon || !pending.is_empty() {
            for (task, t) in self.tasks.iter().enumerate() {
                if next[task] == now && now < horizon {
                    pending.push(Pending {
                        task,
                        release: now,
                        left: t.e,
                    });
                    next[task] += t.p + random.below(1 + self.gaps);
                }
            }
            let sides = random.bits();
            let mut ranked: Vec<(bool, i128, u64, usize)> = pending
                .iter()
                .enumerate()
                .filter(|(i, job)| pending[..*i].iter().all(|j| j.task != job.task))
                .map(|(i, job)| {
                    let point = self.point(job, now, sides, &worst, random);
                    let is_tardy =
                        self.edf_once_tardy && now >= job.release + self.tasks[job.task].p;
                    (!is_tardy, point, random.bits(), i)
                })
                .collect();
            ranked.sort_unstable();
            for (.., i) in ranked.iter().take(self.m) {
                let job = &mut pending[*i];
                job.left -= 1;
                if job.left == 0 {
                    let late = now + 1 - job.release - self.tasks[job.task].p;
                    worst[job.task] = worst[job.task].max(late);
                }
            }
            pending.retain(|j| j.left > 0);
            now += 1;
        }
        worst
    }

    fn point(
        &self,
        job: &Pending,
        now: i128,
        sides: u64,
        worst: &[i128],
        random: &mut Random,
    ) -> i128 {
        let (before, after) = self.windows[job.task];
        let deadline = job.release + self.tasks[job.task].p;
        let (early, late) = (job.release - before, deadline + after);
        if self.edf_once_tardy && now >= deadline {
            return deadline;
        }
        match self.adversary {
            Adversary::Anywhere => early + random.below((late - early + 1) as u64),
            Adversary::Against(victim) if job.task == victim => late,
            Adversary::Lurking(victim, patience)
                if job.task == victim && worst[victim] >= patience =>
            {
                late
            }
            Adversary::TakingSides if sides >> (job.task % 64) & 1 == 1 => late,
            Adversary::Edf => deadline,
            _ => early,
        }
    }
}

/// The bound for windows, from its formula.
pub fn bounds(tasks: &[Task], m: i128, windows: &[(i128, i128)]) -> Vec<Q> {
    let allowances: Vec<i128> = (0..tasks.len())
        .map(|k| {
            let others = || (0..tasks.len()).filter(move |i| *i != k);
            let (_, after) = windows[k];
            let reach = others()
                .map(|i| after + windows[i].0 + tasks[i].p + windows[i].1)
                .max()
                .unwrap_or(0);
            let spread = others()
                .map(|i| windows[i].0)
                .max()
                .map_or(0, |b| b + after);
            let work: i128 = others()
                .map(|i| {
                    (Q::new(reach + windows[i].0, tasks[i].p).ceil().to_integer() + 1) * tasks[i].e
                })
                .sum();
            (m - 1) * spread - tasks[k].e + work
        })
        .collect();
    let lambda = (total(tasks, Task::u).ceil().to_integer() - 1).max(0) as usize;
    late(tasks, m, lambda, &allowances)
}

/// (E + V·x + A_k)/m + e_k, at least 0.
pub fn late(tasks: &[Task], m: i128, lambda: usize, allowances: &[i128]) -> Vec<Q> {
    let mut wcets: Vec<i128> = tasks.iter().map(|t| t.e).collect();
    wcets.sort_by(|a, b| b.cmp(a));
    let mut shares: Vec<Q> = tasks.iter().map(Task::u).collect();
    shares.sort_by(|a, b| b.cmp(a));
    let work: i128 = wcets.iter().take(lambda).sum();
    let heavy: Q = shares.iter().take(lambda).sum();
    let most = allowances.iter().max().copied().unwrap_or(0);
    let x = (whole(work + most) / (whole(m) - heavy)).max(whole(0));
    tasks
        .iter()
        .zip(allowances)
        .map(|(t, a)| ((whole(work + a) + heavy * x) / whole(m) + whole(t.e)).max(whole(0)))
        .collect()
}
