//! What a run is charged for: the seven overheads of 002 §2.4, read from a profile for one set,
//! platform and policy.

use crate::scenario::LONGEST;
use model::profile::{Code, OverheadKind};
use model::{
    Bytes, Duration, Error, Load, Platform, Profile, Result, Resumption, Statistic, TaskSet,
};
use trace::Charges;

/// The costs of one run. All times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// Servicing the interrupt that releases a job.
    pub release: u64,
    /// Choosing the next job.
    pub scheduling: u64,
    /// Switching to it.
    pub context_switch: u64,
    /// From sending an inter-processor interrupt to its service.
    pub ipi_latency: u64,
    /// Programming a timer for another processor.
    pub timer_transfer: u64,
    /// Servicing the periodic tick; none if zero.
    pub tick: u64,
    /// The time from tick to tick; `None`: the quantum of the scenario. Not zero.
    pub tick_period: Option<u64>,
    /// Cache delay by task and way to resume: a preemption first, then as
    /// [`Summary::kinds`](crate::Summary::kinds). Empty: none.
    pub cpmd: Vec<Vec<u64>>,
    /// What the profile does not say, and so is free here; in sentences.
    pub missing: Vec<String>,
}

impl Costs {
    /// Reads the costs of a set under a policy (by its name without parameters) from a profile.
    ///
    /// A task without a working set size has no cache delay. An overhead is read from the curve of
    /// the policy, else from the curve of any policy.
    ///
    /// # Errors
    /// A way to resume that the platform has and for which the profile has no cache delay.
    pub fn from_profile(
        profile: &Profile,
        policy: &str,
        set: &TaskSet,
        platform: &Platform,
        load: Load,
        statistic: Statistic,
    ) -> Result<Self> {
        let (mut missing, mut unknown) = (Vec::new(), Vec::new());
        let tasks = u32::try_from(set.len()).unwrap_or(u32::MAX);
        let mut overhead = |kind: OverheadKind| {
            let curve = profile.overhead_curve(kind, policy);
            let reading = curve.and_then(|c| Some((c.code, c.at(tasks, statistic)?)));
            match reading {
                Some((code, reading)) => {
                    if code == Some(Code::Own) {
                        missing.push(format!(
                            "the {} overhead of `{}` is the engine's part alone: the kernel's was \
                             not measured",
                            kind.name(),
                            profile.platform
                        ));
                    }
                    if reading.extrapolated {
                        missing.push(format!(
                            "the {} overhead of `{}` is extrapolated to {tasks} tasks",
                            kind.name(),
                            profile.platform
                        ));
                    }
                    reading.value.cost().nanos().min(LONGEST)
                }
                None => {
                    unknown.push(kind.name());
                    0
                }
            }
        };
        let mut costs = Costs {
            release: overhead(OverheadKind::Release),
            scheduling: overhead(OverheadKind::Scheduling),
            context_switch: overhead(OverheadKind::ContextSwitch),
            ipi_latency: overhead(OverheadKind::IpiLatency),
            timer_transfer: overhead(OverheadKind::TimerTransfer),
            tick: overhead(OverheadKind::Tick),
            tick_period: profile
                .tick_period
                .map(|period| period.nanos().clamp(1, LONGEST)),
            ..Costs::default()
        };
        let ticks = profile.tick_period.unwrap_or(Profile::DEFAULT_TICK_PERIOD);
        if let Some(watch) = profile.watch_in_tick(policy, tasks, statistic, ticks) {
            costs.tick_period = Some(ticks.nanos().clamp(1, LONGEST));
            costs.tick = (costs.tick + watch.value.cost().nanos().min(LONGEST)).min(LONGEST);
        }
        if !unknown.is_empty() {
            missing.push(format!(
                "the profile of `{}` has no overhead of these kinds under {policy}, and none is charged: {}",
                profile.platform,
                unknown.join(", ")
            ));
        }
        costs.missing = missing;
        let kinds = platform.resumptions();
        for id in set.ids() {
            let of_kind = |kind: &Resumption| match set.wss(id) {
                Some(wss) => cpmd(profile, *kind, load, wss, statistic),
                None => Ok(0),
            };
            costs
                .cpmd
                .push(kinds.iter().map(of_kind).collect::<Result<_>>()?);
        }
        if set.ids().all(|id| set.wss(id).is_none()) {
            costs.cpmd.clear();
            costs
                .missing
                .push("no task has a working set size: no cache delay is charged".to_owned());
        }
        Ok(costs)
    }

    /// The time from tick to tick where the quantum of the scenario is this.
    pub fn ticks_apart(&self, quantum: Duration) -> u64 {
        self.tick_period.unwrap_or(quantum.nanos()).max(1)
    }

    /// What the head of a trace says of them, where the quantum of the scenario is this.
    pub fn charges(&self, quantum: Duration) -> Charges {
        let time = Duration::from_nanos;
        let tick_period = time(self.ticks_apart(quantum));
        Charges {
            release: time(self.release),
            scheduling: time(self.scheduling),
            context_switch: time(self.context_switch),
            ipi_latency: time(self.ipi_latency),
            timer_transfer: time(self.timer_transfer),
            tick: time(self.tick),
            tick_period,
            cpmd: self
                .cpmd
                .iter()
                .map(|row| row.iter().copied().map(time).collect())
                .collect(),
        }
    }

    /// No work in the kernel takes longer, from when it begins to when the job goes on.
    pub(crate) fn longest(&self) -> u64 {
        [
            self.release,
            self.scheduling,
            self.context_switch,
            self.timer_transfer,
            self.tick,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Is nothing charged?
    pub fn are_free(&self) -> bool {
        self.release
            | self.scheduling
            | self.context_switch
            | self.ipi_latency
            | self.timer_transfer
            | self.tick
            == 0
            && self.cpmd.iter().flatten().all(|ns| *ns == 0)
    }

    /// Does it fit the processors and the set?
    ///
    /// # Errors
    /// Rows or columns of the cache delays are missing.
    pub(crate) fn check(&self, set: &TaskSet, platform: &Platform) -> Result<()> {
        let kinds = platform.resumptions().len();
        if self.cpmd.is_empty()
            || (self.cpmd.len() == set.len() && self.cpmd.iter().all(|row| row.len() >= kinds))
        {
            return Ok(());
        }
        Err(
            Error::new("the cache delays do not fit the set and the platform")
                .remedy("read the costs for this set and platform"),
        )
    }
}

fn cpmd(
    profile: &Profile,
    kind: Resumption,
    load: Load,
    wss: Bytes,
    statistic: Statistic,
) -> Result<u64> {
    let reading = profile.worst_cpmd(&[kind], load, wss, statistic)?;
    Ok(reading.value.cost().nanos().min(LONGEST))
}
