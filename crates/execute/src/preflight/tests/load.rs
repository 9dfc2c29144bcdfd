//! What the tasks ask for: processor time, and intervals that can be policed.

use super::*;
use model::CpuSet;
use model::assignment::{Clustered, Serve, Slice, Slices, Slots, Timetable};

/// Each processor for itself.
fn partitioned(cluster_of: Vec<u32>) -> Assignment {
    Assignment::Clustered(Clustered {
        clusters: (0..2).map(|cpu| CpuSet::from_iter([CpuId(cpu)])).collect(),
        cluster_of,
    })
}

#[test]
fn what_does_not_fit_below_the_fair_server_is_refused_where_it_runs() {
    let fine = findings(100, None, Enforcement::Off);
    assert_eq!(
        of(&fine, "utilization"),
        [(Level::Fine, "jobs take 45.0 % of 2 processors")]
    );
    // 60 % and 30 % on one processor.
    let both = findings(100, Some(&partitioned(vec![0, 0])), Enforcement::Off);
    assert_eq!(of(&both, "utilization")[0].0, Level::Fine);
    let more = findings(110, Some(&partitioned(vec![0, 0])), Enforcement::Off);
    assert_eq!(of(&more, "utilization")[0].0, Level::Refuse);
    let refused = permit(&more).unwrap_err().to_string();
    assert!(refused.contains("99.0 % of 1 processor (0)"), "{refused}");
    let apart = findings(110, Some(&partitioned(vec![0, 1])), Enforcement::Off);
    assert!(
        of(&apart, "utilization")
            .iter()
            .all(|(level, _)| *level == Level::Fine)
    );
}

/// T1 releases a job each 10 ms, T2 each 500 us: 2100 jobs a second.
#[test]
fn what_the_engine_takes_by_the_profile_is_left_to_it() {
    let us = Duration::from_micros;
    let found = |assignment: Option<Assignment>, job: u64, always: f64, part: u64| {
        let made = Made {
            stages: vec![stage("p-edf", assignment)],
            takes: vec![Takes {
                job: us(job),
                change: us(20),
                always,
            }],
            part,
            ..Made::of(&[])
        };
        let found = made.look();
        let (level, seen) = of(&found, "utilization")[0];
        (level, seen.to_owned())
    };
    let fine = |seen: &str| (Level::Fine, seen.to_owned());
    // 2100 times 12 us on two processors, and 1 % of each.
    assert_eq!(
        found(None, 12, 0.01, 100),
        fine("jobs take 45.0 % of 2 processors, the engine 2.3 %")
    );
    // On one of them all of it. Without a profile 90 % would be below 94 %.
    let (level, seen) = found(Some(partitioned(vec![0, 0])), 60, 0.01, 100);
    assert_eq!(level, Level::Refuse);
    assert!(
        seen.starts_with("jobs take 90.0 % of 1 processor (0), the engine 13.6 %; "),
        "{seen}"
    );
    // A machine of nothing but files says that real-time threads may have all.
    assert!(seen.contains("86.4 % can be had"), "{seen}");
    // Where T2 is alone it is what leaves least, though T1 has more of its processor.
    let (level, seen) = found(Some(partitioned(vec![0, 1])), 400, 0.0, 100);
    assert_eq!(level, Level::Refuse);
    assert!(seen.contains("(1), the engine 80.0 %"), "{seen}");
    // However little the engine takes, jobs do not get more than 94 %.
    let (level, seen) = found(Some(partitioned(vec![0, 0])), 0, 0.0, 106);
    assert_eq!(level, Level::Refuse);
    assert!(seen.contains("94.0 % can be had"), "{seen}");
}

#[test]
fn servers_pay_for_their_turns_and_quanta_have_room() {
    use model::assignment::Quanta;
    let ms = Duration::from_millis;
    let serve = |start: u64, end: u64, server: u32| Serve {
        start: ms(start),
        end: ms(end),
        server,
    };
    let slots = Assignment::Slots(Slots {
        slot: ms(10),
        server_of: vec![0, 1],
        timetables: vec![
            Timetable {
                cpu: CpuId(0),
                turns: vec![serve(0, 6, 0), serve(6, 10, 1)],
            },
            Timetable {
                cpu: CpuId(1),
                turns: vec![serve(0, 4, 1)],
            },
        ],
    });
    let seen = |assignment| {
        let made = Made {
            stages: vec![stage("nps-f", Some(assignment))],
            takes: vec![Takes {
                job: Duration::ZERO,
                change: Duration::from_micros(250),
                always: 0.0,
            }],
            ..Made::of(&[])
        };
        of(&made.look(), "utilization")[0].1.to_owned()
    };
    // Two changes of 250 us in 10 ms, beside 60 % and half of 30 %.
    assert_eq!(
        seen(slots),
        "jobs take 75.0 % of 1 processor (0), the engine 5.0 %"
    );
    let quanta = Assignment::Quanta(Quanta {
        cpus: "0-1".parse().unwrap(),
        quantum: ms(1),
        reserved: vec![ms(8), Duration::from_micros(500)],
    });
    assert!(seen(quanta).ends_with(" % of 2 processors"));
}

#[test]
fn what_is_too_short_to_be_policed_is_refused_with_the_number() {
    assert_eq!(
        of(&findings(50, None, Enforcement::Off), "shortest interval"),
        []
    );
    let budgets = findings(50, None, Enforcement::Exact);
    let (level, seen) = of(&budgets, "budgets")[0];
    assert!(
        level == Level::Refuse && seen.contains("the budget of T2 lasts 150us"),
        "{seen}"
    );
    let slice = |us: u64| Slice {
        cpu: CpuId(0),
        budget: Duration::from_micros(us),
        window: Duration::from_millis(5),
    };
    let slices = Assignment::Slices(Slices {
        cpus: vec![CpuId(0), CpuId(1)],
        tasks: vec![vec![slice(1000), slice(70)], vec![slice(150)]],
    });
    let slices = findings(50, Some(&slices), Enforcement::Off);
    let (level, seen) = of(&slices, "shortest interval")[0];
    assert!(
        level == Level::Refuse && seen.contains("a slice of T1 lasts 70us"),
        "{seen}"
    );
}

/// A quantum of 1 ms, where a change of jobs costs so many microseconds.
#[test]
fn what_the_dearest_changes_eat_is_warned_of_and_what_most_eat_is_refused() {
    let us = Duration::from_micros;
    let found = |boundary: Option<(u64, u64)>| {
        let made = Made {
            stages: vec![Stage {
                quantum: Some(us(1000)),
                ..stage("pd2", None)
            }],
            boundary: boundary.map(|(usual, most)| Lost {
                usual: us(usual),
                most: us(most),
            }),
            ..Made::of(&[])
        };
        let found = made.look();
        let (level, seen) = of(&found, "shortest interval")[0];
        (level, seen.to_owned())
    };
    let fine = (Level::Fine, "a quantum, 1ms".to_owned());
    assert_eq!(found(None), fine);
    assert_eq!(found(Some((500, 500))), fine);
    let (level, seen) = found(Some((500, 501)));
    assert_eq!(level, Level::Warn);
    assert!(seen.contains("more than half of it here"), "{seen}");
    let (level, seen) = found(Some((501, 4000)));
    assert_eq!(level, Level::Refuse);
    assert!(
        seen.ends_with("less than 1.002ms cannot be policed from user space"),
        "{seen}"
    );
}

/// What is said of a name, without why.
fn briefly<'a>(findings: &'a [Finding], name: &str) -> Vec<(Level, &'a str)> {
    let all = of(findings, name).into_iter();
    all.map(|(level, seen)| (level, seen.split(';').next().unwrap_or(seen)))
        .collect()
}

#[test]
fn each_of_several_policies_is_looked_at_and_named() {
    let us = Duration::from_micros;
    let turn = |start: u64, end: u64| Serve {
        start: us(start),
        end: us(end),
        server: 0,
    };
    let slots = Slots {
        slot: us(500),
        server_of: vec![0, 0],
        timetables: vec![Timetable {
            cpu: CpuId(0),
            turns: vec![turn(0, 120), turn(120, 500)],
        }],
    };
    let made = Made {
        stages: vec![
            stage("g-edf", None),
            stage("p-edf", Some(partitioned(vec![0, 0]))),
            stage("nps-f", Some(Assignment::Slots(slots))),
            Stage {
                quantum: Some(us(90)),
                ..stage("pd2", None)
            },
        ],
        part: 110,
        ..Made::of(&[])
    };
    let found = made.look();
    assert_eq!(
        briefly(&found, "utilization"),
        [
            (
                Level::Fine,
                "jobs take 49.5 % of 2 processors under `g-edf`"
            ),
            (
                Level::Refuse,
                "jobs take 99.0 % of 1 processor (0) under `p-edf`"
            ),
            (
                Level::Refuse,
                "jobs take 99.0 % of 1 processor (0) under `nps-f`"
            ),
            (Level::Fine, "jobs take 49.5 % of 2 processors under `pd2`"),
        ]
    );
    assert_eq!(
        briefly(&found, "shortest interval"),
        [
            (
                Level::Refuse,
                "a turn of server N1 lasts 120us under `nps-f`"
            ),
            (Level::Refuse, "a quantum lasts 90us under `pd2`"),
        ]
    );
}

#[test]
fn a_quantum_of_enforcement_that_is_too_short_is_refused() {
    let found = |enforcement: Enforcement| {
        let made = Made {
            enforcement,
            quantum: Duration::from_micros(50),
            ..Made::of(&[])
        };
        made.look()
    };
    assert_eq!(
        briefly(&found(Enforcement::PerQuantum), "budgets"),
        [(Level::Refuse, "the quantum of enforcement lasts 50us")]
    );
    // Nothing happens at its multiples.
    assert_eq!(
        briefly(&found(Enforcement::Exact), "budgets"),
        [(Level::Refuse, "the budget of T2 lasts 150us")]
    );
    assert_eq!(briefly(&found(Enforcement::Off), "budgets"), []);
}

#[test]
fn every_kind_of_assignment_is_added_up_by_processor() {
    use model::assignment::{Turn, Turns};
    let ms = Duration::from_millis;
    let cpus = vec![CpuId(0), CpuId(1)];
    let refused = |assignment: Assignment| {
        of(
            &findings(110, Some(&assignment), Enforcement::Off),
            "utilization",
        )[0]
        .1
        .to_owned()
    };
    // 0.9 times 1.1 on the one processor, nothing on the other.
    let turns = Turns {
        cpus: cpus.clone(),
        tasks: vec![Turn::fixed(CpuId(1)), Turn::fixed(CpuId(1))],
    };
    assert!(refused(Assignment::Turns(turns)).starts_with("jobs take 99.0 % of 1 processor (1);"));
    let shared = Turn {
        first: CpuId(0),
        second: CpuId(1),
        part: 1,
        whole: 2,
    };
    let turns = Turns {
        cpus: cpus.clone(),
        tasks: vec![shared, Turn::fixed(CpuId(1))],
    };
    assert_eq!(
        refused(Assignment::Turns(turns)),
        "jobs take 66.0 % of 1 processor (1)"
    );
    let slice = |cpu: u32, us: u64| Slice {
        cpu: CpuId(cpu),
        budget: Duration::from_micros(us),
        window: ms(5),
    };
    let slices = Slices {
        cpus: cpus.clone(),
        tasks: vec![vec![slice(0, 4_500), slice(1, 1_500)], vec![slice(0, 150)]],
    };
    assert_eq!(
        refused(Assignment::Slices(slices)),
        "jobs take 82.5 % of 1 processor (0)"
    );
    let serve = |start: u64, end: u64, server: u32| Serve {
        start: ms(start),
        end: ms(end),
        server,
    };
    let slots = Slots {
        slot: ms(10),
        server_of: vec![0, 1],
        timetables: vec![
            Timetable {
                cpu: CpuId(0),
                turns: vec![serve(0, 6, 0)],
            },
            Timetable {
                cpu: CpuId(1),
                turns: vec![serve(0, 4, 1), serve(6, 7, 0)],
            },
        ],
    };
    // Server 0 is served by processor 0 for six sevenths of its time.
    assert_eq!(
        refused(Assignment::Slots(slots)),
        "jobs take 56.6 % of 1 processor (0)"
    );
}

#[test]
fn dispatchers_wait_where_there_is_time_for_it() {
    let made = Made::of(&[]);
    let machine = detect(made.dir.path(), &Probes::default()).unwrap();
    let early_for = |wcet_us: u64, period_us: u64| {
        let (wcet, period) = (
            Duration::from_micros(wcet_us),
            Duration::from_micros(period_us),
        );
        early(&Intent {
            machine: &machine,
            tree: &Tree::new(made.dir.path()),
            cpus: &[CpuId(0), CpuId(1)],
            set: &TaskSet::from_timings(vec![Timing::implicit(wcet, period); 2]).unwrap(),
            stages: &[stage("g-edf", None)],
            part: Ratio::ONE,
            enforcement: Enforcement::Off,
            quantum: Duration::from_millis(1),
            awake: true,
            boundary: None,
            takes: &[],
        })
    };
    assert_eq!(early_for(5_000, 10_000), Duration::from_micros(100));
    // 90 % are taken; or 4000 releases a second would wait for 40 % of the time.
    assert_eq!(early_for(9_000, 10_000), Duration::ZERO);
    assert_eq!(early_for(250, 500), Duration::ZERO);
}
