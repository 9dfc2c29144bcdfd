//! Same seed, same sets: on any machine, in any order, on any number of threads.

use generate::{Amount, Fill, Method, Range, Recipe};
use model::taskfile::to_batch_line;
use model::{Ratio, Timing};
use proptest::prelude::*;

fn recipe(amount: Amount, periods: &str, deadlines: &str) -> Recipe {
    Recipe {
        amount,
        periods: periods.parse().unwrap(),
        deadlines: deadlines.parse().unwrap(),
    }
}

fn cap(utilizations: &str, cap: &str, fill: Fill) -> Amount {
    Amount::Cap {
        utilizations: utilizations.parse().unwrap(),
        cap: cap.parse().unwrap(),
        fill,
    }
}

fn total(method: Method, tasks: u32, total: &str) -> Amount {
    Amount::Total {
        method,
        tasks,
        total: total.parse().unwrap(),
        range: Range::ALL,
    }
}

/// These lines must never change: studies are repeated by seed. They were made on x86-64 Linux.
#[test]
fn sets_are_pinned() {
    let lines: Vec<String> = [
        recipe(cap("uniform-heavy", "3", Fill::Drop), "short", "implicit"),
        recipe(cap("uniform-heavy", "3", Fill::Scale), "short", "implicit"),
        recipe(
            cap("bimodal-medium", "2", Fill::Drop),
            "moderate",
            "constrained",
        ),
        recipe(
            cap("exponential-heavy", "2", Fill::Drop),
            "log-uniform:1ms-1s",
            "arbitrary",
        ),
        recipe(total(Method::UunifastDiscard, 4, "2.5"), "long", "implicit"),
        recipe(total(Method::RandFixedSum, 4, "2.5"), "rtcsa13", "implicit"),
    ]
    .iter()
    .map(|r| to_batch_line(&1.into(), 4, &r.prepare().unwrap().draw(42, 1).unwrap()).unwrap())
    .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// FNV-1a over the lines of many sets: a change anywhere shows.
#[test]
fn a_thousand_sets_are_pinned_by_their_hash() {
    let hash_of = |recipe: &Recipe| {
        let generator = recipe.prepare().unwrap();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for number in 0..1_000 {
            let line =
                to_batch_line(&number.into(), 24, &generator.draw(1, number).unwrap()).unwrap();
            for byte in line.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        format!("{hash:016x}")
    };
    let hashes: Vec<String> = [
        recipe(
            cap("uniform-medium", "12", Fill::Drop),
            "moderate",
            "implicit",
        ),
        recipe(
            cap("exponential-light", "6", Fill::Scale),
            "log-uniform:1ms-1s",
            "constrained",
        ),
        recipe(
            total(Method::UunifastDiscard, 20, "8"),
            "short",
            "arbitrary",
        ),
        recipe(total(Method::RandFixedSum, 20, "16"), "long", "implicit"),
    ]
    .iter()
    .map(hash_of)
    .collect();
    insta::assert_snapshot!(hashes.join("\n"));
}

#[test]
fn another_seed_or_number_gives_another_set() {
    let generator = recipe(
        cap("uniform-medium", "4", Fill::Drop),
        "moderate",
        "implicit",
    )
    .prepare()
    .unwrap();
    let set = |seed, number| generator.draw(seed, number).unwrap();
    assert_eq!(set(1, 1), set(1, 1));
    assert_ne!(set(1, 1), set(1, 2));
    assert_ne!(set(1, 1), set(2, 1));
}

#[test]
fn recipes_that_cannot_be_are_refused() {
    for (amount, message) in [
        (
            cap("uniform-heavy", "0.6", Fill::Drop),
            "raise the cap to at least 0.9",
        ),
        (cap("uniform-heavy", "0", Fill::Drop), "give a positive one"),
        (
            cap("uniform-heavy", "100000", Fill::Drop),
            "give at most 8192",
        ),
        (
            total(Method::RandFixedSum, 2, "2.5"),
            "cannot have a total of 2.5",
        ),
        (
            total(Method::UunifastDiscard, 2, "2.5"),
            "cannot have a total utilization of 2.5",
        ),
        (
            total(Method::UunifastDiscard, 0, "2.5"),
            "at least one task",
        ),
        (
            Amount::Total {
                method: Method::UunifastDiscard,
                tasks: 4,
                total: Ratio::ONE,
                range: Range::new(0.1, 0.5).unwrap(),
            },
            "choose `randfixedsum`",
        ),
    ] {
        let e = recipe(amount, "short", "implicit")
            .prepare()
            .unwrap_err()
            .to_string();
        assert!(e.contains(message), "{e}");
    }
    // More tasks of a microsecond than the total has room for.
    let crowd = recipe(
        total(Method::RandFixedSum, 100, "0.001"),
        "short",
        "implicit",
    );
    let e = crowd.prepare().unwrap().draw(1, 0).unwrap_err().to_string();
    assert!(e.contains("give fewer tasks"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whole microseconds, positive, WCET within the deadline, and never above the cap.
    #[test]
    fn every_set_is_sound(
        seed: u64,
        number: u64,
        which in 0..10_usize,
        periods in prop::sample::select(vec!["short", "log-uniform:100us-10ms", "choice:1ms,3ms"]),
        deadlines in prop::sample::select(vec!["implicit", "constrained", "arbitrary"]),
        hundredths in 100..2400_u64,
        scale: bool,
    ) {
        let name = generate::Utilizations::names().nth(which).unwrap();
        let bound = Ratio::new(hundredths, 100).unwrap();
        let fill = if scale { Fill::Scale } else { Fill::Drop };
        let made = recipe(
            Amount::Cap {
                utilizations: name.parse().unwrap(),
                cap: bound,
                fill,
            },
            periods,
            deadlines,
        );
        let set = made.prepare().unwrap().draw(seed, number).unwrap();
        prop_assert!(set.cmp_utilization(bound).is_le());
        for t in set.timings() {
            let whole = |d: model::Duration| d.nanos().is_multiple_of(1_000);
            prop_assert!(whole(t.wcet) && whole(t.period) && whole(t.deadline));
            prop_assert!(t.wcet <= t.deadline && t.wcet <= t.period);
            prop_assert!(deadlines != "implicit" || t.deadline == t.period);
            prop_assert!(deadlines == "arbitrary" || t.deadline <= t.period);
        }
    }

    /// A total is never exceeded and nearly reached, by either method.
    #[test]
    fn totals_are_kept(seed: u64, tasks in 2..60_u32, percent in 10..60_u64, discard: bool) {
        // UUniFast-Discard finds vectors only far from the number of tasks.
        let percent = if discard {
            percent.div_ceil(3)
        } else {
            percent
        };
        let bound = Ratio::new(u64::from(tasks) * percent, 100).unwrap();
        let method = if discard {
            Method::UunifastDiscard
        } else {
            Method::RandFixedSum
        };
        let amount = Amount::Total {
            method,
            tasks,
            total: bound,
            range: Range::ALL,
        };
        let set = recipe(amount, "short", "implicit")
            .prepare()
            .unwrap()
            .draw(seed, 0)
            .unwrap();
        prop_assert_eq!(set.len(), tasks as usize);
        prop_assert!(set.cmp_utilization(bound).is_le());
        prop_assert!(set.utilization_f64() > bound.to_f64() - 2.0 / 3000.0);
        let sound = set.timings().iter().all(|t: &Timing| t.wcet <= t.period);
        prop_assert!(sound);
    }
}
