//! Exports say what the plan says, and only what Linux can carry.

use super::carried::{Carried, carried};
use super::{Class, deadline, rt_app, systemd};
use model::assignment::Clustered;
use model::{Assignment, Details, Duration, Rights, TaskSet, Timing, Workload, rtapp};
use policy::Spec;

const MS: u64 = 1_000_000;

fn timing(wcet_us: u64, period_us: u64) -> Timing {
    let us = Duration::from_micros;
    Timing::implicit(us(wcet_us), us(period_us))
}

/// Four tasks; the second and the third have the same period.
fn set() -> TaskSet {
    let task = |name: &str, wcet, period| (timing(wcet, period), Details::named(name));
    TaskSet::new(vec![
        task("slow", 10_000, 100_000),
        task("left", 2_000, 10_000),
        task("right", 3_000, 10_000),
        task("fast", 500, 5_000),
    ])
    .unwrap()
}

fn clustered(clusters: &[&str], cluster_of: &[u32]) -> Assignment {
    Assignment::Clustered(Clustered {
        clusters: clusters.iter().map(|c| c.parse().unwrap()).collect(),
        cluster_of: cluster_of.to_vec(),
    })
}

fn by<'a>(set: &'a TaskSet, policy: &str, assignment: &Assignment) -> model::Result<Carried<'a>> {
    carried(set, &policy.parse::<Spec>().unwrap(), assignment)
}

fn priorities(carried: &Carried<'_>) -> Vec<Option<u32>> {
    carried.tasks.iter().map(|t| t.priority).collect()
}

#[test]
fn priorities_follow_the_policy_on_each_place() {
    let set = set();
    let two = clustered(&["0", "1"], &[0, 0, 1, 0]);
    let rm = by(&set, "p-rm", &two).unwrap();
    assert_eq!(rm.class, Class::Fixed);
    assert_eq!(priorities(&rm), [Some(88), Some(89), Some(90), Some(90)]);
    // On all processors together ties are broken by the order of the set.
    let one = clustered(&["0-1"], &[0; 4]);
    let rm = by(&set, "g-fp:rm", &one).unwrap();
    assert_eq!(priorities(&rm), [Some(87), Some(89), Some(88), Some(90)]);
    let given = set.with_priorities(&[9, 1, 2, 9]).unwrap();
    let fp = by(&given, "p-fp", &two).unwrap();
    assert_eq!(priorities(&fp), [Some(90), Some(88), Some(90), Some(89)]);
}

#[test]
fn more_levels_than_sched_fifo_has_are_refused() {
    let many = |n: usize| TaskSet::from_timings(vec![timing(1, 10_000); n]).unwrap();
    let fits = many(98);
    let all = by(&fits, "g-fp:rm", &clustered(&["0"], &[0; 98])).unwrap();
    let mut found = priorities(&all);
    found.sort_unstable();
    assert_eq!((found[0], found[97]), (Some(1), Some(98)));
    let too_many = many(99);
    let refused = by(&too_many, "g-fp:rm", &clustered(&["0"], &[0; 99])).unwrap_err();
    assert!(refused.to_string().contains("99 tasks"), "{refused}");
}

#[test]
fn what_linux_cannot_carry_is_told_in_one_sentence() {
    let set = set();
    let one = clustered(&["0-1"], &[0; 4]);
    for info in policy::catalog::all() {
        let word = info.tried[0];
        let found = by(&set, word, &one);
        let can = ["p-edf", "c-edf", "g-edf", "p-rm", "p-fp", "g-fp"].contains(&info.name);
        assert_eq!(found.is_ok(), can, "{word}");
        if let Err(e) = found {
            assert!(
                e.cause()
                    .starts_with("no scheduling class of Linux can carry"),
                "{e}"
            );
            // Each has its own reason.
            assert!(!e.cause().contains("none decides as it does"), "{e}");
        }
    }
    let quanta = by(&set, "g-edf:quantum=1ms", &one).unwrap_err();
    assert!(quanta.cause().contains("quanta"), "{quanta}");
}

/// What the kernel answers to such calls was seen on Linux 6.18 (two processors).
#[test]
fn admission_control_is_that_of_the_kernel() {
    let admit = |tasks: &[(u64, u64)], cpus: &str, reserve| {
        let timings = tasks.iter().map(|(wcet, period)| timing(*wcet, *period));
        let set = TaskSet::from_timings(timings.collect()).unwrap();
        let place = clustered(&[cpus], &vec![0; tasks.len()]);
        let carried = by(&set, "g-edf", &place).unwrap();
        deadline::script(&carried, reserve)
            .map(|e| e.notes.iter().any(|n| n.contains("6.12 and later")))
            .map_err(|e| e.to_string())
    };
    // 0.9 + 0.89 + 0.01 were admitted, and one more hundredth was not.
    let mut tasks = vec![
        (900_000, 1_000_000),
        (890_000, 1_000_000),
        (10_000, 1_000_000),
    ];
    assert_eq!(admit(&tasks, "0-1", 0), Ok(false));
    tasks.push((10_000, 1_000_000));
    assert_eq!(admit(&tasks, "0-1", 0), Ok(true));
    tasks.push((95_000, 1_000_000));
    let refused = admit(&tasks, "0-1", 0).unwrap_err();
    assert!(
        refused.contains("ask for 1.905 processors, and it gives 1.900"),
        "{refused}"
    );
    assert!(
        admit(&[(900_000, 1_000_000)], "0", 6)
            .unwrap_err()
            .contains("it gives 0.950")
    );
    // Periods of 99 us and of 4.2 s were refused.
    for period in [99, 4_200_000] {
        let refused = admit(&[(20, period)], "0", 0).unwrap_err();
        assert!(refused.contains("refuses periods"), "{refused}");
    }
    let refused = admit(&[(1, 1_000)], "0", 0).unwrap_err();
    assert!(
        refused.contains("refuses budgets below 1.024us"),
        "{refused}"
    );
    let refused = admit(&[(99, 100)], "0-3", 5).unwrap_err();
    assert!(refused.contains("is longer than its deadline"), "{refused}");
}

#[test]
fn deadlines_after_periods_and_own_processors_are_refused() {
    let late = Timing {
        deadline: Duration::from_nanos(30 * MS),
        ..timing(2_000, 20_000)
    };
    let set = TaskSet::from_timings(vec![late]).unwrap();
    let carried = by(&set, "p-edf", &clustered(&["0"], &[0])).unwrap();
    let refused = deadline::script(&carried, 0).unwrap_err().to_string();
    assert!(
        refused.contains("no deadline (30ms) after the period"),
        "{refused}"
    );
    let own = Details {
        cpus: Some("0".parse().unwrap()),
        ..Details::named("own")
    };
    let set = TaskSet::new(vec![(timing(1_000, 9_000), own)]).unwrap();
    let refused = by(&set, "g-edf", &clustered(&["0-1"], &[0])).unwrap_err();
    assert!(
        refused.cause().contains("kept to some of those"),
        "{refused}"
    );
    // On a place that is its own it is no restriction.
    assert!(by(&set, "p-edf", &clustered(&["0"], &[0])).is_ok());
}

#[test]
fn rt_app_gives_back_the_set_with_priorities_and_processors() {
    let set = set();
    let two = clustered(&["0", "1"], &[0, 0, 1, 0]);
    let carried = by(&set, "p-rm", &two).unwrap();
    let exported = rt_app(&carried, Duration::from_secs(3)).unwrap();
    let back = rtapp::from_rt_app(&exported.files[0].text, rtapp::Reading::default()).unwrap();
    assert!(back.notes.is_empty(), "{:?}", back.notes);
    assert_eq!(back.set.timings(), set.timings());
    for (id, task) in set.ids().zip(&carried.tasks) {
        let details = back.set.details(id).unwrap();
        assert_eq!(details.name, set.name(id));
        assert_eq!(details.priority, task.priority);
        assert_eq!(details.cpus.as_ref(), Some(&task.cpus));
    }
    let carried = by(&set, "g-edf", &clustered(&["0-1"], &[0; 4])).unwrap();
    let exported = rt_app(&carried, Duration::from_secs(3)).unwrap();
    assert!(!exported.files[0].text.contains("cpus"), "{exported:?}");
    let back = rtapp::from_rt_app(&exported.files[0].text, rtapp::Reading::default()).unwrap();
    assert_eq!(back.set.timings(), set.timings());
    let carried = by(&set, "p-edf", &two).unwrap();
    let refused = rt_app(&carried, Duration::from_secs(3)).unwrap_err();
    assert!(refused.cause().contains("makes no cpusets"), "{refused}");
}

#[test]
fn units_quote_what_systemd_would_read() {
    let program = Details {
        workload: Some(Workload::Exec {
            command: ["./decode it", "50%", "$HOME", "a \"b\" \\c"]
                .map(str::to_owned)
                .to_vec(),
            beyond_budget: model::Beyond::default(),
            rights: Rights::User("media".to_owned()),
        }),
        ..Details::named("Kamera 1/ü")
    };
    let set = TaskSet::new(vec![
        (timing(1_000, 9_000), program),
        (timing(1_000, 20_000), Details::named("log")),
    ])
    .unwrap();
    let carried = by(&set, "p-rm", &clustered(&["2"], &[0, 0])).unwrap();
    let exported = systemd::units(&carried).unwrap();
    let names: Vec<&str> = exported.files.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "Kamera\\x201\\x2f\\xc3\\xbc.service",
            "log.service.d/50-warmset-plan.conf",
            "warmset-plan.target"
        ]
    );
    let dir = std::env::current_dir().unwrap().display().to_string();
    let service = &exported.files[0].text;
    for line in [
        format!("ExecStart=\"{dir}/decode it\" \"50%%\" \"$$HOME\" \"a \\\"b\\\" \\\\c\""),
        "User=media".to_owned(),
        "CPUAffinity=2".to_owned(),
        "CPUSchedulingPolicy=fifo".to_owned(),
        "CPUSchedulingPriority=90".to_owned(),
    ] {
        assert!(service.lines().any(|l| l == line), "{line}\n{service}");
    }
    assert_eq!(
        exported.files[1].text,
        "[Service]\nCPUAffinity=2\nCPUSchedulingPolicy=fifo\nCPUSchedulingPriority=89\n"
    );
    assert!(
        exported.files[2].text.contains("Wants=Kamera\\x201"),
        "{:?}",
        exported.files[2]
    );
}
