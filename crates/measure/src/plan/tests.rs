//! What a plan of measurements holds, and what cannot be measured.

use super::*;
use proptest::prelude::*;

fn xeon() -> Platform {
    Platform::builtin("xeon-l7455").unwrap()
}

#[test]
fn working_sets_are_powers_of_two_and_the_caches_own_sizes() {
    let plan = Plan::of(&Options::default(), &xeon()).unwrap();
    let kib: Vec<u64> = plan.wss.iter().map(|s| s.get() / 1024).collect();
    // 002 §5.2.2: 3 MiB and 12 MiB are the sizes of the L2 and the L3 cache.
    assert_eq!(
        kib,
        [
            4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096, 8192, 12288
        ]
    );
    assert_eq!(plan.write_ratios, [WriteRatio::DEFAULT]);
    assert_eq!(plan.max_preemption, Duration::from_millis(50));
    assert_eq!(plan.loads, [Load::Idle, Load::Load]);
}

#[test]
fn a_huge_cache_is_measured_at_its_own_size_with_fewer_samples() {
    let mut platform = xeon();
    for cache in platform.caches.iter_mut().filter(|c| c.level == 3) {
        cache.size = Some(Bytes::from_mib(260));
    }
    let cpus = platform.usable();
    let sizes = |memory| working_sets(&platform, &cpus, false, Some(Bytes::from_mib(memory)));
    assert_eq!(
        sizes(1040)[13..],
        [Bytes::from_mib(16), LARGEST, Bytes::from_mib(260)]
    );
    assert_eq!(sizes(1039).last(), Some(&LARGEST));
    assert_eq!(
        working_sets(&platform, &cpus, true, None).last(),
        Some(&Bytes::from_mib(4))
    );

    let count = |plan: &Plan| {
        let of = |size| plan.blocks().iter().filter(|b| b.wss == size).count();
        (of(Bytes::from_mib(1)), of(Bytes::from_mib(260)))
    };
    let mut plan = Plan::of(&Options::default(), &xeon()).unwrap();
    plan.wss.push(Bytes::from_mib(260));
    assert_eq!(count(&plan), (2 * 40, 2 * 4));
    plan.thin = false;
    assert_eq!(count(&plan), (2 * 40, 2 * 40));
}

#[test]
fn the_quick_plan_ends_at_twice_the_second_level() {
    let options = Options {
        quick: true,
        ..Options::default()
    };
    let plan = Plan::of(&options, &xeon()).unwrap();
    assert_eq!(plan.wss.last(), Some(&Bytes::from_mib(4)));
    assert!(plan.wss.contains(&Bytes::from_mib(3)));
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_cause() {
    let refused = |options: Options| Plan::of(&options, &xeon()).unwrap_err().to_string();
    let wss = |size: Bytes| Options {
        wss: vec![size],
        ..Options::default()
    };
    assert!(refused(wss(Bytes::new(0))).contains("cannot be measured"));
    assert!(refused(wss(Bytes::new(4097))).contains("multiples of 4KiB"));
    assert!(refused(wss(Bytes::from_mib(1 << 30))).contains("does not fit"));
    let cpus = |set: &str| Options {
        cpus: Some(set.parse().unwrap()),
        ..Options::default()
    };
    assert!(refused(cpus("99")).contains("processor 99 does not exist"));
    assert!(refused(cpus("")).contains("no processor is asked for"));
    let mut platform = xeon();
    platform.processors[3].online = false;
    platform.processors[4].usable = false;
    let with = |set: &str| Plan::of(&cpus(set), &platform).unwrap_err().to_string();
    assert!(with("3").contains("processor 3 is offline"));
    assert!(with("4").contains("processor 4 is not permitted"));
    for p in &mut platform.processors {
        p.usable = false;
    }
    let e = Plan::of(&Options::default(), &platform)
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("no processor of `xeon-l7455` may be used"),
        "{e}"
    );
    let none = Options {
        samples: Some(0),
        ..Options::default()
    };
    assert!(refused(none).contains("no samples"));
}

#[test]
fn every_round_has_every_cell_once() {
    let options = Options {
        samples: Some(75),
        ..Options::default()
    };
    let plan = Plan::of(&options, &xeon()).unwrap();
    let blocks = plan.blocks();
    let cells = plan.wss.len() * plan.loads.len();
    assert_eq!(blocks.len(), 3 * cells);
    for round in blocks.chunks(cells) {
        let mut seen: Vec<(Bytes, Load)> = round.iter().map(|b| (b.wss, b.load)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), cells);
    }
    assert!(blocks.iter().zip(0..).all(|(b, i)| b.number == i));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn the_same_seed_gives_the_same_measurement(seed in any::<u64>(), number in 0u32..1000) {
        let platform = xeon();
        let options = Options {
            seed,
            samples: Some(30),
            ..Options::default()
        };
        let plan = Plan::of(&options, &platform).unwrap();
        let again = Plan::of(&options, &platform).unwrap();
        prop_assert_eq!(plan.blocks(), again.blocks());
        let destinations = Destinations::among(&platform, &plan.cpus);
        let mut block = plan.blocks()[0];
        block.number = number;
        let (start, draws) = plan.draws(&block, &destinations);
        prop_assert_eq!((start, draws.clone()), again.draws(&block, &destinations));
        prop_assert_eq!(draws.len(), 25 * 4 + 1);
        prop_assert!(
            draws
                .iter()
                .all(|d| d.length <= plan.max_preemption && plan.cpus.contains(d.to))
        );
    }
}
