//! Verdicts for many sets at many prices (`policies::Many`) are those of one question after the
//! other: of `policies::decide`, and of 002 §6.3 written down plainly.

use analyze::overheads::{self, CacheCharge, CacheDelays, Overheads, System, Way};
use analyze::partition::{Fit, Order};
use analyze::policies::{self, Accounting, Caches, Costs, MAJOR_TESTS, Manner, Many};
use analyze::uniprocessor::edf;
use analyze::{Guarantee, registry};
use model::{
    Bytes, CpuSet, Details, Duration, Load, Platform, Profile, Ratio, TaskSet, Timing, exact,
    profilefile,
};
use policy::Spec;
use testing::platforms::pairs;
use testing::random::Random;

/// Tasks with periods of 3 to 33 ms up to a total utilization of about `percent` of `m` processors;
/// `heavy` ones each take up to nine tenths of a processor.
fn draw(random: &mut Random, m: u64, percent: u64, heavy: bool) -> Vec<Timing> {
    let (mut tasks, mut total) = (Vec::new(), 0);
    let (low, high) = if heavy {
        (100_000, 900_000)
    } else {
        (5_000, 150_000)
    };
    loop {
        // In millionths.
        let share = random.among(low, high);
        total += share;
        if total > m * percent * 10_000 && !tasks.is_empty() {
            return tasks;
        }
        let period = match random.one_in(2) {
            true => random.among(3, 33) * 1_000_000,
            false => random.among(3_000_000, 33_000_000),
        };
        let wcet = (period * share / 1_000_000).max(1);
        let [wcet, period] = [wcet, period].map(Duration::from_nanos);
        tasks.push(Timing::implicit(wcet, period));
    }
}

/// The overheads of a profile: all seven, or none but cache delays, or these and what is no
/// interrupt.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    All,
    Caches,
    Own,
}

/// Overheads for any policy, and cache delays of every kind of the platform.
fn profile(platform: &Platform, of: Of) -> Profile {
    let mut text = format!("version = 1\nplatform = {:?}\n", platform.name);
    for (place, resumption) in platform.resumptions().into_iter().enumerate() {
        for load in ["load", "idle"] {
            let far = 30 * (place + 1);
            text += &format!(
                "[[cpmd]]\nresumption = \"{resumption}\"\nload = \"{load}\"\nwrite_ratio = 0.25\n\
                 points = [{{ wss = \"4KiB\", samples = 1, average = \"5us\", maximum = \"9us\" }},\n\
                 {{ wss = \"1MiB\", samples = 1, average = \"{far}us\", maximum = \"{}us\" }}]\n",
                3 * far
            );
        }
    }
    for (kind, us) in [
        ("release", 3),
        ("scheduling", 5),
        ("context-switch", 2),
        ("ipi-latency", 4),
        ("timer-transfer", 3),
        ("tick", 6),
    ] {
        let own = ["scheduling", "context-switch", "ipi-latency"].contains(&kind);
        if of == Of::Caches || of == Of::Own && !own {
            continue;
        }
        text += &format!(
            "[[overheads]]\nkind = \"{kind}\"\npoints = [\n\
             {{ tasks = 1, samples = 9, average = \"{us}us\", maximum = \"{}us\" }},\n\
             {{ tasks = 200, samples = 9, average = \"{}us\", maximum = \"{}us\" }}]\n",
            2 * us,
            2 * us,
            4 * us
        );
    }
    profilefile::from_toml(&text).unwrap()
}

fn costs(profile: Option<&Profile>, load: Load, accounting: Accounting) -> Costs<'_> {
    Costs {
        cpmd: None,
        profile,
        load,
        statistic: None,
        accounting: Some(accounting),
    }
}

/// What one question says.
fn plainly(
    tasks: &[Timing],
    platform: &Platform,
    spec: &Spec,
    guarantee: Guarantee,
    costs: &Costs<'_>,
    caches: Caches,
) -> bool {
    let mut set = TaskSet::to_judge(tasks.to_vec()).unwrap();
    let mut costs = *costs;
    match caches {
        Caches::Delay(delay) => costs.cpmd = Some(delay),
        Caches::WorkingSet(wss) => {
            let details = (0..tasks.len()).map(|number| Details {
                wss: Some(wss),
                ..Details::named(format!("t{number}"))
            });
            set = set.with_details(details.collect()).unwrap();
        }
    }
    policies::decide(&set, platform, spec, guarantee, &costs)
        .unwrap()
        .unwrap()
}

/// Delays of all sizes, and the two about which the verdict flips, to the nanosecond.
fn delays(random: &mut Random, mut accepts: impl FnMut(Duration) -> bool) -> Vec<Caches> {
    let mut points: Vec<u64> = (0..3).map(|_| random.below(2_000_000)).collect();
    points.push(0);
    let (mut low, mut high) = (0, 4_000_000);
    if accepts(Duration::ZERO) {
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match accepts(Duration::from_nanos(middle)) {
                true => low = middle,
                false => high = middle,
            }
        }
        points.extend([low, high, low.saturating_sub(1), high + 1]);
    }
    let delay = |nanos: u64| Caches::Delay(Duration::from_nanos(nanos));
    points.into_iter().map(delay).collect()
}

#[test]
fn many_prices_are_decided_as_one_after_the_other() {
    let mut random = Random::new(1);
    let mut verdicts = [0; 2];
    let names = [
        "p-edf",
        "g-edf",
        "c-edf:size=2",
        "c-edf:size=4",
        "p-fp:dm",
        "g-fp:dm",
        "edf-fm",
        "edf-wm",
        "nps-f",
        "nps-f:delta=4",
        "c-nps-f:size=2",
        "pd2",
        "ca-edf",
    ];
    let platform = pairs(4, 4, None);
    let profile = profile(&platform, Of::All);
    for round in 0..12 {
        for name in names {
            let spec: Spec = name.parse().unwrap();
            for guarantee in [Guarantee::Hard, Guarantee::Soft] {
                let row = spec.info();
                let tests = match guarantee {
                    Guarantee::Hard => row.hard,
                    Guarantee::Soft => row.soft,
                };
                if tests == policy::catalog::Tests::None || (name == "pd2" && round % 2 == 0) {
                    continue;
                }
                for accounting in Accounting::ALL {
                    let profile = (round % 3 > 0).then_some(&profile);
                    let costs = costs(profile, Load::Load, accounting);
                    let percent = random.among(40, 105);
                    let mut tasks = draw(&mut random, 4, percent, round % 2 == 0);
                    if name == "pd2" {
                        for t in &mut tasks {
                            let whole = t.period.nanos().div_ceil(1_000_000) * 1_000_000;
                            *t = Timing::implicit(t.wcet, Duration::from_nanos(whole));
                        }
                    }
                    let one = |caches| plainly(&tasks, &platform, &spec, guarantee, &costs, caches);
                    let points = match profile {
                        Some(_) if random.one_in(2) => {
                            let kib = |_| Caches::WorkingSet(Bytes::from_kib(random.below(1_500)));
                            (0..5).map(kib).collect()
                        }
                        _ => delays(&mut random, |d| one(Caches::Delay(d))),
                    };
                    let many =
                        Many::new(&spec, &platform, guarantee, &costs, Manner::default()).unwrap();
                    let prices = many.prices(&points).unwrap();
                    let says = many.decide_each(&tasks, &prices).unwrap().unwrap();
                    for (point, says) in points.iter().zip(says) {
                        let expected = one(*point);
                        assert_eq!(
                            says, expected,
                            "{name} {guarantee} {accounting} {point:?}: {tasks:?}"
                        );
                        verdicts[usize::from(says)] += 1;
                    }
                }
            }
        }
    }
    assert!(verdicts.iter().all(|count| *count > 500), "{verdicts:?}");
}

/// Where no interrupt costs anything, quick computations tell the clear cases of policies that split
/// tasks.
#[test]
fn split_tasks_are_decided_as_one_question_after_the_other() {
    let mut random = Random::new(5);
    let names = [
        "edf-fm",
        "edf-wm",
        "nps-f",
        "nps-f:delta=4",
        "c-nps-f:size=2",
        "c-nps-f:size=4,delta=3",
    ];
    let platform = pairs(8, 4, None);
    let profiles = [Of::Caches, Of::Own].map(|of| profile(&platform, of));
    let mut verdicts = [[0; 2]; 6];
    for round in 0..500 {
        let at = round % names.len();
        let spec: Spec = names[at].parse().unwrap();
        let guarantee = match at == 0 || random.one_in(2) {
            true => Guarantee::Soft,
            false => Guarantee::Hard,
        };
        let accounting = match random.one_in(3) {
            true => Accounting::Warmset,
            false => Accounting::Paper,
        };
        let costs = costs(Some(&profiles[round % 2]), Load::Idle, accounting);
        let percent = random.among(50, 102);
        let heavy = random.one_in(2);
        let tasks = draw(&mut random, 8, percent, heavy);
        let one = |caches| plainly(&tasks, &platform, &spec, guarantee, &costs, caches);
        let points = match random.one_in(2) {
            true => {
                let kib = |_| Caches::WorkingSet(Bytes::from_kib(random.below(3_000)));
                (0..5).map(kib).collect()
            }
            false => delays(&mut random, |d| one(Caches::Delay(d))),
        };
        let many = Many::new(&spec, &platform, guarantee, &costs, Manner::default()).unwrap();
        let prices = many.prices(&points).unwrap();
        let says = many.decide_each(&tasks, &prices).unwrap().unwrap();
        for (point, says) in points.iter().zip(says) {
            let expected = one(*point);
            assert_eq!(
                says, expected,
                "{spec} {guarantee} {accounting} {point:?}: {tasks:?}"
            );
            verdicts[at][usize::from(says)] += 1;
        }
    }
    assert!(
        verdicts.iter().flatten().all(|count| *count > 30),
        "{verdicts:?}"
    );
}

/// 002 §6.3, plainly: at each placement the cluster is accounted for anew; then the five tests.
fn study_plainly(tasks: &[Timing], clusters: &[CpuSet], fit: Fit, system: &System<'_>) -> bool {
    let guarantee = system.guarantee;
    let within = |inside: &[Timing], size: u32| match (guarantee, size) {
        (Guarantee::Hard, 1) => edf::decide(inside) == Ok(true),
        _ => {
            let all = inside.iter().map(Timing::utilization);
            inside.iter().all(|t| t.wcet <= t.period)
                && exact::cmp_sum(all, Ratio::whole(u64::from(size))).is_le()
        }
    };
    let order = Order::DecreasingUtilization;
    let way = Way {
        order,
        fit,
        allowed: None,
    };
    let packed = overheads::pack_where(tasks, clusters, system, way, |_, inside, size| {
        within(inside, size)
    });
    let Ok(packed) = packed else { return false };
    if guarantee == Guarantee::Soft {
        return true;
    }
    clusters.iter().enumerate().all(|(place, cpus)| {
        let pieces = packed
            .accounted
            .pieces
            .iter()
            .filter(|p| p.place as usize == place);
        let inside: Vec<Timing> = pieces.map(|p| p.timing).collect();
        let passes = |name: &str| {
            registry::find(name)
                .unwrap()
                .decide_inflated(&inside, cpus.len() as u32)
                == Ok(true)
        };
        cpus.len() == 1 || inside.is_empty() || MAJOR_TESTS.into_iter().any(passes)
    })
}

/// Is the manner of the study, at many prices, what it is one after the other? On these processors,
/// for so many sets.
fn study_agrees(platform: &Platform, names: &[&str], rounds: u64, constrained: bool) {
    let mut random = Random::new(rounds);
    let m = platform.usable().len() as u64;
    let profile = profile(platform, Of::All);
    let mut verdicts = [0; 2];
    for round in 0..rounds {
        let name = names[(round % names.len() as u64) as usize];
        let spec: Spec = name.parse().unwrap();
        let guarantee = match random.one_in(2) {
            true => Guarantee::Hard,
            false => Guarantee::Soft,
        };
        let with_profile = random.one_in(2);
        let costs = costs(
            with_profile.then_some(&profile),
            Load::Load,
            Accounting::Paper,
        );
        let fit = match random.one_in(4) {
            true => Fit::ALL[random.below(4) as usize],
            false => Fit::Worst,
        };
        let percent = random.among(30, 105);
        let heavy = random.one_in(2);
        let mut tasks = draw(&mut random, m, percent, heavy);
        if constrained {
            for t in &mut tasks {
                let room = (t.period.nanos() - t.wcet.nanos()).min(t.period.nanos() / 2);
                let sooner = Duration::from_nanos(random.below(room + 1));
                t.deadline = t.period.saturating_sub(sooner);
            }
        }
        let many = Many::new(&spec, platform, guarantee, &costs, Manner::Study(fit)).unwrap();
        let clusters = match spec.needs().unwrap() {
            policy::catalog::Needs::Clusters(clusters) => platform.clusters(clusters).unwrap(),
            _ => vec![platform.usable()],
        };
        let read = match costs.profile {
            Some(profile) => {
                let statistic = costs.statistic_for(guarantee);
                Overheads::read(profile, spec.info().name, tasks.len() as u32, statistic).0
            }
            None => Overheads::NONE,
        };
        let one = |delay: Duration| {
            let all = vec![delay; tasks.len()];
            let delays = CacheDelays::any_way(platform, &all);
            let system = System {
                platform,
                overheads: &read,
                delays: &delays,
                guarantee,
                charge: CacheCharge::Paper,
            };
            study_plainly(&tasks, &clusters, fit, &system)
        };
        let points = delays(&mut random, &one);
        let prices = many.prices(&points).unwrap();
        let says = many.decide_each(&tasks, &prices).unwrap().unwrap();
        for (point, says) in points.iter().zip(says) {
            let Caches::Delay(delay) = *point else {
                unreachable!("delays are asked about");
            };
            assert_eq!(
                says,
                one(delay),
                "{name} {guarantee} {fit} {point:?}: {tasks:?}"
            );
            verdicts[usize::from(says)] += 1;
        }
    }
    let least = rounds as usize / 2;
    assert!(verdicts.iter().all(|count| *count > least), "{verdicts:?}");
}

#[test]
fn studies_on_few_processors_are_decided_as_one_question_after_the_other() {
    let names = ["p-edf", "g-edf", "c-edf:size=2", "c-edf:size=4"];
    study_agrees(&pairs(8, 8, None), &names, 2_400, false);
}

#[test]
fn studies_on_the_papers_machine_are_decided_as_one_question_after_the_other() {
    let platform = Platform::builtin("xeon-l7455").unwrap();
    let names = ["p-edf", "g-edf", "c-edf:l2", "c-edf:l3"];
    study_agrees(&platform, &names, 400, false);
}

#[test]
fn studies_with_constrained_deadlines_are_decided_as_one_question_after_the_other() {
    let names = ["p-edf", "g-edf", "c-edf:size=2"];
    study_agrees(&pairs(4, 4, None), &names, 600, true);
}

/// The four tests that `Many` takes for monotone are so, and the fifth is not: it may refuse with
/// shorter WCETs what it accepts with longer ones.
#[test]
fn tests_accept_with_shorter_executions_what_they_accept_with_longer_ones() {
    let mut random = Random::new(9);
    let (mut verdicts, mut anomalies) = ([[0; 2]; 5], 0);
    for round in 0..3_000 {
        let m = random.among(2, 8);
        let percent = random.among(20, 70);
        let heavy = round % 2 == 0;
        let tasks = draw(&mut random, m, percent, heavy);
        let step = random.among(1, 300_000);
        for (at, name) in MAJOR_TESTS.into_iter().enumerate() {
            let test = registry::find(name).unwrap();
            let mut refused_at = None;
            for times in 0..8 {
                let delay = Duration::from_nanos(times * step);
                let inflated: Vec<Timing> = tasks.iter().map(|t| t.inflated(delay)).collect();
                let accepts = test.decide_inflated(&inflated, m as u32) == Ok(true);
                verdicts[at][usize::from(accepts)] += 1;
                let Some(before) = refused_at.filter(|_| accepts) else {
                    refused_at = refused_at.or((!accepts).then_some(delay));
                    continue;
                };
                assert_eq!(name, "BAK", "{before} {delay} on {m}: {tasks:?}");
                anomalies += 1;
            }
        }
    }
    assert!(
        verdicts.iter().flatten().all(|count| *count > 1_000),
        "{verdicts:?}"
    );
    assert!(anomalies > 0, "BAK is monotone on all of these sets");
}

/// What is proven by piece is what an exact test of each processor, or one of the five tests of
/// each cluster, says of its tasks with what they are charged there.
#[test]
fn proofs_by_piece_are_those_of_the_tests() {
    let platform = pairs(4, 4, None);
    let mut random = Random::new(3);
    let mut verdicts = [0; 2];
    for round in 0..400 {
        let name = ["g-edf", "c-edf:size=2", "p-edf"][round % 3];
        let spec: Spec = name.parse().unwrap();
        let costs = costs(None, Load::Load, Accounting::Warmset);
        let many = Many::new(&spec, &platform, Guarantee::Hard, &costs, Manner::default()).unwrap();
        let clusters = match spec.needs().unwrap() {
            policy::catalog::Needs::Clusters(clusters) => platform.clusters(clusters).unwrap(),
            _ => vec![platform.usable()],
        };
        let percent = random.among(20, 90);
        let heavy = random.one_in(2);
        let tasks = draw(&mut random, 4, percent, heavy);
        let of = |_| random.below(clusters.len() as u64) as u32;
        let cluster_of: Vec<u32> = (0..tasks.len()).map(of).collect();
        let delays = [0, 50, 300, 1_000, 2_500].map(Duration::from_micros);
        let prices = many.prices(&delays.map(Caches::Delay)).unwrap();
        let says = many.prove_each(&tasks, &cluster_of, &prices);
        for (delay, says) in delays.into_iter().zip(says) {
            let free = vec![delay; tasks.len()];
            let delays = CacheDelays::any_way(&platform, &free);
            let system = System {
                platform: &platform,
                overheads: &Overheads::NONE,
                delays: &delays,
                guarantee: Guarantee::Hard,
                charge: CacheCharge::ByPiece(Default::default()),
            };
            let assignment = model::Assignment::Clustered(model::assignment::Clustered {
                clusters: clusters.clone(),
                cluster_of: cluster_of.clone(),
            });
            let accounted = overheads::account(&tasks, &assignment, &system);
            let expected = clusters.iter().enumerate().all(|(place, cpus)| {
                let here = accounted
                    .pieces
                    .iter()
                    .filter(|p| p.place as usize == place);
                let inside: Vec<Timing> = here.map(|p| p.timing).collect();
                let m = cpus.len() as u32;
                let passes = |name: &str| {
                    registry::find(name).unwrap().decide_inflated(&inside, m) == Ok(true)
                };
                match m {
                    1 => edf::decide(&inside) == Ok(true),
                    _ => inside.is_empty() || MAJOR_TESTS.into_iter().any(passes),
                }
            });
            assert_eq!(says, expected, "{name} {delay}: {tasks:?}");
            verdicts[usize::from(says)] += 1;
        }
    }
    assert!(verdicts.iter().all(|count| *count > 200), "{verdicts:?}");
}

#[test]
fn a_manner_that_is_not_for_the_policy_is_refused() {
    let platform = Platform::symmetric(2);
    let study = Manner::Study(Fit::Worst);
    for (name, accounting) in [
        ("p-fp:dm", Accounting::Paper),
        ("p-edf", Accounting::Warmset),
    ] {
        let costs = costs(None, Load::Load, accounting);
        let spec = name.parse().unwrap();
        let e = Many::new(&spec, &platform, Guarantee::Soft, &costs, study)
            .err()
            .unwrap();
        assert!(e.to_string().contains("earliest deadline first"), "{e}");
    }
    let costs = costs(None, Load::Load, Accounting::Paper);
    let many = Many::new(
        &"p-edf".parse().unwrap(),
        &platform,
        Guarantee::Soft,
        &costs,
        study,
    );
    let e = many
        .unwrap()
        .prices(&[Caches::WorkingSet(Bytes::new(1))])
        .err()
        .unwrap();
    assert!(e.to_string().contains("stands in a profile"), "{e}");
}
