//! What runs of many task sets say together: curves by policy, overhead and part of the code.

use super::by_processor::{ByProcessor, OnProcessor};
use super::curve::{Curve, Size};
use super::probe::{Added, Probe};
use super::tiles::{Cost, Disturbance, Tile};
use model::profile::{Intervals, OverheadCurve, OverheadPoint, Untrimmed};
use model::{Code, CpuId, Duration, OverheadKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// So many samples of a cost are kept of a run, the first ones. Curves compare equally many of each
/// size, and no size has so many of every set that more would be looked at.
pub const KEPT: usize = 4_000;

/// How much of a processor single tasks ask for (002 §6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Utilization {
    /// From 0.001 to 0.1.
    Light,
    /// From 0.1 to 0.4.
    Medium,
}

impl Utilization {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Utilization::Light => "light",
            Utilization::Medium => "medium",
        }
    }
}

/// Samples of one cost in one run, in nanoseconds, in the order in which they were taken.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Taken {
    /// Engine and kernel together; the engine alone where nothing is seen of the kernel.
    pub whole: Vec<u32>,
    /// The engine's part of each, by its own account; empty where it takes no part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<u32>,
    /// The processor of each; empty where it is between two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// When each began, in nanoseconds after the sample before it; the first after the first sample
    /// of the run. Empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<u64>,
    /// How many events the kernel recorded within each; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<u32>,
    /// How many there were, those beyond [`KEPT`] too.
    pub seen: u64,
    /// The largest of all.
    pub largest: u32,
}

impl Taken {
    /// Adds a sample; `at`: its processor, how long after the one before it began, and how many
    /// events were recorded within.
    fn add(&mut self, whole: u64, own: Option<u64>, at: Option<(CpuId, u64, u32)>) {
        let short = |time: u64| u32::try_from(time).unwrap_or(u32::MAX);
        let whole = short(whole);
        self.seen += 1;
        self.largest = self.largest.max(whole);
        if self.whole.len() < KEPT {
            self.whole.push(whole);
            self.own.extend(own.map(short));
            if let Some((cpu, after, events)) = at {
                self.cpus.push(cpu.0);
                self.begun.push(after);
                self.events.push(events);
            }
        }
    }
}

/// What is kept of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Its number in the plan.
    pub number: u32,
    /// Why nothing of it counts, as a clause, if it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// Its samples.
    pub costs: Vec<(Cost, Taken)>,
    /// Samples that do not count, by cause.
    pub discards: Vec<(Disturbance, u64)>,
    /// Comings of dispatchers that the kernel did not record.
    pub unseen: u64,
    /// Was the kernel's record cut off?
    pub cut: bool,
    /// From one tick of the kernel to the next, in nanoseconds, where it ticks regularly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_period: Option<u64>,
}

impl Record {
    /// Of the tiles of each processor, and the latencies of interrupts between them in nanoseconds.
    /// `events`: when events were recorded on each processor, in the order of time.
    pub fn of<'a>(
        tiles: impl Iterator<Item = (CpuId, &'a [Tile])>,
        calls: &[u32],
        events: &BTreeMap<CpuId, Vec<u64>>,
    ) -> Self {
        let mut costs: BTreeMap<Cost, Taken> = BTreeMap::new();
        let mut discards: BTreeMap<Disturbance, u64> = BTreeMap::new();
        let mut gaps = Vec::new();
        let mut all: Vec<(CpuId, &Tile)> = Vec::new();
        for (cpu, tiles) in tiles {
            all.extend(tiles.iter().map(|tile| (cpu, tile)));
            let ticks = tiles.iter().filter(|tile| tile.cost == TICK);
            let ticks: Vec<u64> = ticks.map(|tile| tile.begun).collect();
            gaps.extend(ticks.windows(2).map(|pair| pair[1].saturating_sub(pair[0])));
        }
        // Processors alike: what is kept are the first ones.
        all.sort_by_key(|(_, tile)| tile.begun);
        let first = all.first().map_or(0, |(_, tile)| tile.begun);
        let mut before: BTreeMap<Cost, u64> = BTreeMap::new();
        for (cpu, tile) in all {
            if let Some(cause) = tile.disturbed {
                *discards.entry(cause).or_default() += 1;
                continue;
            }
            let before = before.entry(tile.cost).or_insert(first);
            let after = tile.begun - std::mem::replace(before, tile.begun);
            let taken = costs.entry(tile.cost).or_default();
            let within = events.get(&cpu).map_or(0, |times| within(times, tile));
            taken.add(tile.whole, tile.own, Some((cpu, after, within)));
        }
        for call in calls {
            let latency = costs.entry(Cost::Overhead(OverheadKind::IpiLatency));
            latency.or_default().add(u64::from(*call), None, None);
        }
        Record {
            costs: costs.into_iter().collect(),
            discards: discards.into_iter().collect(),
            tick_period: most_frequent(&gaps),
            ..Record::default()
        }
    }
}

/// How many of the events were recorded within a tile. The one that ends it is written after its
/// time was taken.
fn within(times: &[u64], tile: &Tile) -> u32 {
    let until = |end: u64| times.partition_point(|time| *time < end);
    let count = until(tile.begun.saturating_add(tile.whole)) - until(tile.begun);
    u32::try_from(count).unwrap_or(u32::MAX)
}

const TICK: Cost = Cost::Overhead(OverheadKind::Tick);
/// Gaps between ticks are counted by so many nanoseconds: interrupts come late by some of them.
const BUCKET: u64 = 100_000;
/// So many gaps tell a period.
const LEAST_GAPS: usize = 10;

/// The length around which most gaps lie, if it is that of at least a third: ticks are left out
/// while a processor is idle, and where a job is released at the same time.
fn most_frequent(gaps: &[u64]) -> Option<u64> {
    let bucket = |gap: u64| (gap + BUCKET / 2) / BUCKET;
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for gap in gaps {
        *counts.entry(bucket(*gap)).or_default() += 1;
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let near = gaps.iter().filter(|gap| bucket(**gap).abs_diff(most) <= 1);
    let near: Vec<u64> = near.copied().collect();
    if near.len() < LEAST_GAPS || 3 * near.len() < gaps.len() {
        return None;
    }
    let mean = near.iter().sum::<u64>() / near.len() as u64;
    // Clocks of ticks and of the record are the same; what is left is noise.
    Some((mean + 5_000) / 10_000 * 10_000)
}

/// Which sets a record is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Origin {
    /// The policy, as written.
    pub policy: String,
    /// Utilizations of the sets.
    pub utilization: Utilization,
    /// Are they scaled down?
    pub scaled: bool,
    /// How many tasks each set has.
    pub tasks: u32,
}

/// A curve, and what it is of.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// The policy, as written.
    pub policy: String,
    /// Utilizations of the sets.
    pub utilization: Utilization,
    /// Are they scaled down, as so many tasks ask for more than there is? Curves of such sets stand
    /// apart.
    pub scaled: bool,
    /// Which cost.
    pub cost: Cost,
    /// Whose code.
    pub code: Code,
    /// How many samples there were, those too that no size is compared by.
    pub seen: u64,
    /// The largest of all, in nanoseconds.
    pub max_ns: u64,
    /// What measuring added; none where it is not known, and of the engine's own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Added>,
    /// The same by processor; none where a cost is between two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<OnProcessor>,
    /// By number of tasks.
    pub curve: Curve,
}

/// Curves of all that was measured; `blind`: nothing was seen of the kernel. `probe`: how long an
/// event takes that is recorded, which is subtracted where it matters.
pub fn curves(runs: &[(Origin, &Record)], blind: bool, probe: Option<&Probe>) -> Vec<Found> {
    let groups: BTreeSet<(&str, Utilization, bool)> = runs
        .iter()
        .map(|(of, _)| (of.policy.as_str(), of.utilization, of.scaled))
        .collect();
    let mut found = Vec::new();
    for (policy, utilization, scaled) in groups {
        let runs = || {
            runs.iter().filter(move |(of, record)| {
                let group = (of.policy.as_str(), of.utilization, of.scaled);
                group == (policy, utilization, scaled) && record.apart.is_none()
            })
        };
        let costs: BTreeSet<Cost> = runs()
            .flat_map(|(_, record)| record.costs.iter().map(|(cost, _)| *cost))
            .collect();
        for cost in costs {
            let taken = || {
                runs().filter_map(move |(_, record)| {
                    let (_, taken) = record.costs.iter().find(|(c, _)| *c == cost)?;
                    Some(taken)
                })
            };
            for code in Code::ALL {
                let added = probe
                    .filter(|_| code != Code::Own && !blind)
                    .and_then(|probe| {
                        let samples = taken().flat_map(|t| t.whole.iter().zip(&t.events));
                        probe.added(samples.map(|(whole, events)| (*whole, *events)))
                    });
                let subtracted = probe.filter(|_| added.is_some_and(|added| added.subtracted));
                let mut sizes: BTreeMap<u32, Size> = BTreeMap::new();
                let (mut seen, mut largest) = (0, 0);
                let mut processors = ByProcessor::default();
                for (of, record) in runs() {
                    let Some((_, taken)) = record.costs.iter().find(|(c, _)| *c == cost) else {
                        continue;
                    };
                    let mut samples = part(taken, cost, code, blind);
                    if let Some(probe) = subtracted {
                        for (sample, events) in samples.iter_mut().zip(&taken.events) {
                            *sample = sample.saturating_sub(probe.of_events(*events));
                        }
                    }
                    if samples.is_empty() {
                        continue;
                    }
                    processors.add(&samples, &taken.cpus);
                    seen += taken.seen;
                    let most = match code {
                        Code::Both => taken.largest,
                        _ => samples.iter().copied().max().unwrap_or(0),
                    };
                    largest = largest.max(u64::from(most));
                    let size = sizes.entry(of.tasks).or_insert_with(|| Size {
                        tasks: of.tasks,
                        sets: Vec::new(),
                    });
                    size.sets.push(samples);
                }
                if sizes.is_empty() {
                    continue;
                }
                let sizes: Vec<Size> = sizes.into_values().collect();
                found.push(Found {
                    policy: policy.to_owned(),
                    utilization,
                    scaled,
                    cost,
                    code,
                    seen,
                    max_ns: largest,
                    processors: processors.list(),
                    curve: Curve::of(&sizes).wider(added.map_or(0, |added| added.doubt())),
                    added,
                });
            }
        }
    }
    found
}

/// The part of samples that is of this code; none where it is not known, or all of it.
fn part(taken: &Taken, cost: Cost, code: Code, blind: bool) -> Vec<u32> {
    let both = || taken.whole.iter().zip(&taken.own);
    // An interrupt between processors begins with one program's call and ends with another's, so
    // that it is known without the kernel.
    let is_call = cost == Cost::Overhead(OverheadKind::IpiLatency);
    match code {
        Code::Both if blind && !is_call => Vec::new(),
        Code::Both => taken.whole.clone(),
        Code::Own => taken.own.clone(),
        Code::Kernel if blind => Vec::new(),
        Code::Kernel => both()
            .map(|(whole, own)| whole.saturating_sub(*own))
            .collect(),
    }
}

/// What a profile has of it: for each policy and overhead one curve of sets of light tasks, those
/// with more tasks scaled down, and for any other policy the largest of all policies. Profiles know
/// policies by their names without parameters.
pub fn for_profile(found: &[Found]) -> Vec<OverheadCurve> {
    type Points = BTreeMap<u32, OverheadPoint>;
    let mut groups: BTreeMap<(OverheadKind, Code, &str), Points> = BTreeMap::new();
    for one in found {
        let (Cost::Overhead(kind), Utilization::Light) = (one.cost, one.utilization) else {
            continue;
        };
        let name = one.policy.split(':').next().unwrap_or_default();
        for point in one.curve.upper() {
            for policy in [name, ""] {
                groups
                    .entry((kind, one.code, policy))
                    .or_default()
                    .entry(point.tasks)
                    .and_modify(|all| *all = larger(all, &point))
                    .or_insert_with(|| point.clone());
            }
        }
    }
    groups
        .into_iter()
        .map(|((kind, code, policy), points)| OverheadCurve {
            kind,
            policy: policy.to_owned(),
            code: Some(code),
            points: points.into_values().collect(),
        })
        .collect()
}

/// The larger of each value.
fn larger(a: &OverheadPoint, b: &OverheadPoint) -> OverheadPoint {
    OverheadPoint {
        tasks: a.tasks,
        samples: a.samples + b.samples,
        average: a.average.max(b.average),
        maximum: a.maximum.max(b.maximum),
        untrimmed: match (a.untrimmed, b.untrimmed) {
            (Some(a), Some(b)) => Some(Untrimmed {
                outliers: a.outliers + b.outliers,
                average: a.average.max(b.average),
                maximum: a.maximum.max(b.maximum),
            }),
            (one, other) => one.or(other),
        },
        intervals: {
            let (a, b) = (&a.intervals, &b.intervals);
            Intervals {
                groups: a.groups.min(b.groups),
                average: later(a.average, b.average),
                maximum: later(a.maximum, b.maximum),
                untrimmed_average: later(a.untrimmed_average, b.untrimmed_average),
                untrimmed_maximum: later(a.untrimmed_maximum, b.untrimmed_maximum),
            }
        },
    }
}

/// The interval of the larger of two figures; none where one of them has none.
fn later(
    a: Option<(Duration, Duration)>,
    b: Option<(Duration, Duration)>,
) -> Option<(Duration, Duration)> {
    let ((low, high), (other_low, other_high)) = (a?, b?);
    Some((low.max(other_low), high.max(other_high)))
}

/// The time between two ticks that most runs saw.
pub fn tick_period(records: &[&Record]) -> Option<Duration> {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    for period in records.iter().filter_map(|record| record.tick_period) {
        *seen.entry(period).or_default() += 1;
    }
    let most = seen.into_iter().max_by_key(|(_, count)| *count)?;
    Some(Duration::from_nanos(most.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: Cost = Cost::Overhead(OverheadKind::Release);
    const IPI: Cost = Cost::Overhead(OverheadKind::IpiLatency);

    fn tile(cost: Cost, begun: u64, whole: u64, own: Option<u64>) -> Tile {
        Tile {
            cost,
            begun,
            own,
            whole,
            disturbed: None,
        }
    }
    fn origin(policy: &str, tasks: u32, scaled: bool) -> Origin {
        Origin {
            policy: policy.to_owned(),
            utilization: Utilization::Light,
            scaled,
            tasks,
        }
    }
    /// A run in which a release takes 30 ns, 20 of them in the engine.
    fn record(whole: u64) -> Record {
        let tiles = vec![tile(RELEASE, 0, whole, Some(20)); 120];
        Record::of(
            [(CpuId(0), &tiles[..])].into_iter(),
            &[7; 100],
            &BTreeMap::new(),
        )
    }

    #[test]
    fn samples_are_counted_by_cost_and_by_why_they_do_not_count() {
        let mut tiles = vec![tile(RELEASE, 0, 9, Some(4)); KEPT + 1];
        tiles[KEPT].whole = 99;
        tiles[3].disturbed = Some(Disturbance::Interrupt);
        let record = Record::of(
            [(CpuId(0), &tiles[..]), (CpuId(1), &tiles[..2])].into_iter(),
            &[5],
            &BTreeMap::new(),
        );
        assert_eq!(record.discards, [(Disturbance::Interrupt, 1)]);
        let (cost, release) = &record.costs[0];
        assert_eq!(
            (*cost, release.seen, release.largest),
            (RELEASE, KEPT as u64 + 2, 99)
        );
        assert_eq!((release.whole.len(), release.own.len()), (KEPT, KEPT));
        assert_eq!(record.costs[1].0, IPI);
    }

    #[test]
    fn a_record_is_the_same_after_it_was_kept() {
        let record = Record {
            apart: Some("events were lost".to_owned()),
            discards: vec![(Disturbance::Standstill, 2)],
            tick_period: Some(4_000_000),
            ..record(30)
        };
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(
            serde_json::from_str::<Record>(&line).unwrap(),
            record,
            "{line}"
        );
    }

    #[test]
    fn the_period_of_ticks_is_that_of_most() {
        let ticks = |times: &[u64]| -> Vec<Tile> {
            let times = times.iter().map(|us| us * 1_000);
            times.map(|begun| tile(TICK, begun, 2_000, None)).collect()
        };
        let mut times: Vec<u64> = (0..40).map(|n| n * 4_000 + n % 7).collect();
        times.remove(20);
        let regular = ticks(&times);
        let record = Record::of(
            [(CpuId(0), &regular[..])].into_iter(),
            &[],
            &BTreeMap::new(),
        );
        assert_eq!(record.tick_period, Some(4_000_000));
        let others: Vec<u64> = (0..40).map(|n| n * n * 1_000).collect();
        let irregular = ticks(&others);
        assert_eq!(
            Record::of(
                [(CpuId(0), &irregular[..])].into_iter(),
                &[],
                &BTreeMap::new()
            )
            .tick_period,
            None
        );
        assert_eq!(tick_period(&[&record]), Some(Duration::from_millis(4)));
        assert_eq!(tick_period(&[]), None);
    }

    /// Releases that take 2000 to 2100 ns by themselves and longer by 100 ns for each event that is
    /// recorded within; beside them ticks of 20 us, which hardly change.
    fn probed(run: u64) -> (Record, u64) {
        let (mut tiles, mut times, mut sum) = (Vec::new(), Vec::new(), 0);
        for n in 0..200 {
            let (begun, events) = (n * 100_000, 2 + (n + run) % 5);
            let alone = 2_000 + (n * 37 + run * 11) % 101;
            sum += alone;
            times.extend((0..events).map(|event| begun + event * 10));
            // The one that ends it is written later.
            times.push(begun + alone + 100 * events);
            tiles.push(tile(RELEASE, begun, alone + 100 * events, Some(700)));
            tiles.push(tile(TICK, begun + 50_000, 20_000, None));
            times.push(begun + 50_000);
        }
        let events = BTreeMap::from([(CpuId(0), times)]);
        let record = Record::of([(CpuId(0), &tiles[..])].into_iter(), &[5; 100], &events);
        (record, sum / 200)
    }

    #[test]
    fn what_measuring_adds_is_found_and_taken_away_again() {
        let probe = Probe::of(&[98.0, 99.0, 100.0, 100.0, 100.0, 101.0, 130.0]).unwrap();
        let (records, alone): (Vec<_>, Vec<u64>) = (0..3).map(probed).unzip();
        let runs: Vec<_> = records
            .iter()
            .map(|record| (origin("p-edf", 4, false), record))
            .collect();
        let of = |probe, cost, code| {
            let found = curves(&runs, false, probe);
            let one = found.iter().find(|f| f.cost == cost && f.code == code);
            one.unwrap().clone()
        };
        let with = of(None, RELEASE, Code::Both);
        let without = of(Some(&probe), RELEASE, Code::Both);
        let mean = alone.iter().sum::<u64>() / 3;
        let (before, after) = (&with.curve.points[0], &without.curve.points[0]);
        assert!(
            before.average_ns.abs_diff(mean + 400) <= 2,
            "{before:?} {mean}"
        );
        assert!(after.average_ns.abs_diff(mean) <= 2, "{after:?} {mean}");
        assert_eq!(after.maximum_ns, 2_100);
        let added = without.added.unwrap();
        assert!(added.subtracted && added.events == 4.0 && (added.part - 0.163).abs() < 0.002);
        // It is uncertain by one nanosecond an event.
        assert_eq!(added.doubt(), 4);
        // An event in twenty microseconds is told, and stays.
        let tick = of(Some(&probe), TICK, Code::Both);
        let added = tick.added.unwrap();
        assert!(
            !added.subtracted && added.events == 1.0 && added.part < 0.006,
            "{added:?}"
        );
        assert_eq!(tick.curve.points[0].average_ns, 20_000);
        // The engine's own part has no such events, and calls say nothing of theirs.
        assert_eq!(of(Some(&probe), RELEASE, Code::Own).added, None);
        assert_eq!(of(Some(&probe), IPI, Code::Both).added, None);
    }

    #[test]
    fn own_and_kernel_add_up_to_both() {
        let record = record(30);
        let found = curves(&[(origin("p-edf", 4, false), &record)], false, None);
        let largest = |cost, code| {
            let one = found.iter().find(|f| f.cost == cost && f.code == code);
            one.map(|f| f.curve.points[0].maximum_ns)
        };
        assert_eq!(largest(RELEASE, Code::Both), Some(30));
        assert_eq!(largest(RELEASE, Code::Own), Some(20));
        assert_eq!(largest(RELEASE, Code::Kernel), Some(10));
        assert_eq!(largest(IPI, Code::Both), Some(7));
        assert_eq!(largest(IPI, Code::Own), None);
        let blind = curves(&[(origin("p-edf", 4, false), &record)], true, None);
        let codes: Vec<_> = blind.iter().map(|f| (f.cost, f.code)).collect();
        assert_eq!(codes, [(RELEASE, Code::Own), (IPI, Code::Both)]);
    }

    /// Each processor has its own samples, sets and sizes together; an interrupt has none.
    #[test]
    fn processors_are_told_apart() {
        let slow = vec![tile(RELEASE, 0, 50, Some(20)); 60];
        let fast = || tile(RELEASE, 9, 30, Some(10));
        let taken = |fast: &[Tile]| {
            let tiles = [(CpuId(3), &slow[..]), (CpuId(1), fast)];
            Record::of(tiles.into_iter(), &[7; 100], &BTreeMap::new())
        };
        let (few, more) = (taken(&[fast()]), taken(&[fast()]));
        let runs = [
            (origin("p-edf", 4, false), &few),
            (origin("p-edf", 8, false), &more),
        ];
        let found = curves(&runs, false, None);
        let of = |cost, code| {
            let one = found.iter().find(|f| f.cost == cost && f.code == code);
            let processors = one.unwrap().processors.iter();
            let told = processors.map(|on| (on.cpu, on.samples, on.average_ns, on.maximum_ns));
            told.collect::<Vec<_>>()
        };
        assert_eq!(of(RELEASE, Code::Both), [(1, 2, 30, 30), (3, 120, 50, 50)]);
        assert_eq!(of(RELEASE, Code::Own), [(1, 2, 10, 10), (3, 120, 20, 20)]);
        assert_eq!(of(IPI, Code::Both), []);
        let both = taken(&[fast(), tile(RELEASE, 9, 33, Some(10))]);
        let found = curves(&[(origin("p-edf", 4, false), &both)], false, None);
        let release = found.iter().find(|f| f.code == Code::Both).unwrap();
        let first = release.processors[0];
        assert_eq!((first.average_ns, first.maximum_ns), (31, 33));
    }

    #[test]
    fn what_does_not_count_is_left_out() {
        let apart = Record {
            apart: Some("events were lost".to_owned()),
            ..record(30)
        };
        assert_eq!(
            curves(&[(origin("p-edf", 4, false), &apart)], false, None),
            []
        );
    }

    #[test]
    fn a_profile_has_timer_rearming_apart() {
        let rearming = Cost::Overhead(OverheadKind::TimerRearming);
        let mut tiles = vec![tile(RELEASE, 0, 90, Some(20)); 120];
        tiles.extend(vec![tile(rearming, 0, 8, None); 120]);
        let both = Record::of([(CpuId(0), &tiles[..])].into_iter(), &[], &BTreeMap::new());
        let all = for_profile(&curves(&[(origin("p-edf", 4, false), &both)], false, None));
        let mut profile = model::Profile::new("test", model::Provenance::default());
        profile.overheads = all;
        let most = |kind| {
            let curve = profile.overhead_curve(kind, "p-edf").unwrap();
            curve
                .at(4, model::Statistic::Maximum)
                .unwrap()
                .value
                .nanos()
        };
        assert_eq!(most(OverheadKind::TimerRearming), 8);
        assert_eq!(most(OverheadKind::Release), 90);
    }

    #[test]
    fn a_profile_has_a_curve_for_any_other_policy_that_none_exceeds() {
        let (cheap, dear, more) = (record(30), record(50), record(80));
        let runs = [
            (origin("p-edf", 4, false), &cheap),
            (origin("g-edf", 4, false), &dear),
            (origin("g-edf", 100, true), &more),
        ];
        let all = for_profile(&curves(&runs, false, None));
        let at = |policy: &str, tasks: u32| {
            let mut curves = all.iter();
            let of = |c: &&OverheadCurve| {
                (c.kind, c.code, c.policy.as_str())
                    == (OverheadKind::Release, Some(Code::Both), policy)
            };
            let curve = curves.find(of).unwrap();
            curve
                .at(tasks, model::Statistic::Maximum)
                .unwrap()
                .value
                .nanos()
        };
        assert_eq!(
            (at("p-edf", 4), at("g-edf", 4), at("g-edf", 100)),
            (30, 50, 80)
        );
        assert_eq!((at("", 4), at("", 100)), (50, 80));
    }
}
