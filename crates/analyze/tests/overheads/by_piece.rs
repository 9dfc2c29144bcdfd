//! Cache delays by piece, by hand: who is charged for whom.

use super::{delays_of, each_alone, task, us};
use analyze::Guarantee;
use analyze::overheads::{
    Accounted, CacheCharge, Overheads, Precedence, System, account, holds, longest_delay, quanta,
};
use analyze::semi::processors;
use analyze::uniprocessor::fixed_priority::Priority;
use model::assignment::{Clustered, Serve, Slice, Slices, Slots, Timetable, Turn, Turns};
use model::{Assignment, CpuId, Duration, Platform, Timing};

/// In microseconds, by task: the delay of a preemption, and what a migration costs more.
const DELAYS: [(u64, u64); 4] = [(10, 5), (100, 5), (300, 5), (50, 5)];

/// Deadlines: the second and third are equal.
fn set() -> [Timing; 4] {
    [
        task(500, 5_000),
        task(500, 10_000),
        task(500, 10_000),
        task(500, 40_000),
    ]
}

fn charged(assignment: &Assignment, m: u32, precedence: Precedence) -> (Accounted, Duration) {
    let platform = Platform::symmetric(m);
    let delays = delays_of(&platform, DELAYS.len(), &DELAYS);
    let system = System {
        platform: &platform,
        overheads: &Overheads::NONE,
        delays: &delays,
        guarantee: Guarantee::Hard,
        charge: CacheCharge::ByPiece(precedence),
    };
    (
        account(&set(), assignment, &system),
        longest_delay(&set(), assignment, &system),
    )
}

fn paid(accounted: &Accounted) -> Vec<u64> {
    let parts = accounted.parts.iter().map(|p| p.total().nanos());
    parts.map(|ns| ns / 1_000).collect()
}

fn in_clusters(sizes: &[u32], cluster_of: [u32; 4]) -> Assignment {
    let mut cpus = processors(sizes.iter().sum()).into_iter();
    let clusters = sizes
        .iter()
        .map(|size| cpus.by_ref().take(*size as usize).collect());
    Assignment::Clustered(Clustered {
        clusters: clusters.collect(),
        cluster_of: cluster_of.to_vec(),
    })
}

#[test]
fn on_one_processor_a_job_pays_for_those_that_it_can_preempt() {
    let together = in_clusters(&[1], [0; 4]);
    let (edf, longest) = charged(&together, 1, Precedence::Edf);
    assert_eq!((paid(&edf), longest), (vec![300, 50, 50, 0], us(300)));
    // The order of the set; the second preempts the third, whatever their deadlines.
    let (fixed, _) = charged(&together, 1, Precedence::Fixed(Priority::Given));
    assert_eq!(paid(&fixed), [300, 300, 50, 0]);
    let (fifo, _) = charged(&together, 1, Precedence::Releases);
    assert_eq!(paid(&fifo), [0; 4]);
    let (apart, longest) = charged(&in_clusters(&[1; 4], [0, 1, 2, 3]), 4, Precedence::Edf);
    assert_eq!((paid(&apart), longest), (vec![0; 4], us(300)));
}

#[test]
fn in_a_cluster_a_job_pays_for_any_other_or_any_lower_one_and_for_none_if_all_have_room() {
    let together = in_clusters(&[2], [0; 4]);
    assert_eq!(
        paid(&charged(&together, 2, Precedence::Edf).0),
        [305, 305, 105, 305]
    );
    let fixed = Precedence::Fixed(Priority::DeadlineMonotonic);
    assert_eq!(paid(&charged(&together, 2, fixed).0), [305, 305, 55, 0]);
    let roomy = in_clusters(&[2, 2], [0, 0, 1, 1]);
    assert_eq!(paid(&charged(&roomy, 4, Precedence::Edf).0), [0; 4]);
}

/// The first takes turns on both processors; the others are fixed, two and one.
#[test]
fn under_edf_fm_a_migratory_task_pays_for_the_fixed_ones_and_none_for_it() {
    let cpus = processors(2);
    let mut tasks = [cpus[0], cpus[0], cpus[0], cpus[1]].map(Turn::fixed);
    tasks[0] = Turn {
        first: cpus[0],
        second: cpus[1],
        part: 1,
        whole: 2,
    };
    let turns = Assignment::Turns(Turns {
        cpus,
        tasks: tasks.to_vec(),
    });
    let (accounted, longest) = charged(&turns, 2, Precedence::Edf);
    let of_first: Vec<u64> = accounted
        .pieces
        .iter()
        .filter(|p| p.task.index() == 0)
        .map(|p| p.parts.total().nanos() / 1_000)
        .collect();
    assert_eq!(of_first, [300, 50]);
    // Its jobs do not migrate while they run.
    assert_eq!(
        (paid(&accounted)[1..].to_vec(), longest),
        (vec![0, 0, 0], us(300))
    );
}

/// The last is cut into two slices with windows of 20 ms; the first and second are where its second
/// slice is, the third where its first is.
#[test]
fn under_edf_wm_a_later_slice_pays_its_migration_and_is_paid_for_with_it() {
    let cpus = processors(2);
    let (all, half) = (us(500), us(250));
    let slice = |cpu: CpuId, budget, window| Slice {
        cpu,
        budget,
        window,
    };
    let slices = Assignment::Slices(Slices {
        tasks: vec![
            vec![slice(cpus[1], all, us(5_000))],
            vec![slice(cpus[1], all, us(10_000))],
            vec![slice(cpus[0], all, us(10_000))],
            vec![
                slice(cpus[0], half, us(20_000)),
                slice(cpus[1], half, us(20_000)),
            ],
        ],
        cpus,
    });
    let (accounted, longest) = charged(&slices, 2, Precedence::Edf);
    assert_eq!(
        (paid(&accounted), longest),
        (vec![100, 55, 50, 55], us(300))
    );
}

/// Two servers on one processor, half and half: each turn begins with the longest delay of its
/// tasks.
#[test]
fn a_server_pays_a_delay_a_turn_and_its_tasks_pay_for_each_other() {
    let at = |start, end, server| Serve {
        start: us(start),
        end: us(end),
        server,
    };
    let slots = Assignment::Slots(Slots {
        slot: us(1_000),
        server_of: vec![0, 0, 1, 1],
        timetables: vec![Timetable {
            cpu: CpuId(0),
            turns: vec![at(0, 500, 0), at(500, 1_000, 1)],
        }],
    });
    let (accounted, longest) = charged(&slots, 1, Precedence::Edf);
    assert_eq!((paid(&accounted), longest), (vec![100, 0, 50, 0], us(300)));
    let lost: f64 = accounted.lost().total();
    // Turns: (100 + 300) us of every millisecond; jobs: 100 us of 5 ms and 50 us of 10 ms.
    assert!((lost - (0.4 + 0.02 + 0.005)).abs() < 1e-9, "{lost}");
}

/// Quanta of a millisecond with 0.3 ms lost in all but the first: 2.5 ms take 1 + ⌈1.5 / 0.7⌉ of
/// them.
#[test]
fn a_job_in_quanta_pays_its_own_delay_in_every_quantum_but_the_first() {
    let platform = Platform::symmetric(1);
    let delays = delays_of(&platform, 4, &[(300, 0), (300, 0), (1_000, 0), (1_000, 0)]);
    let system = System {
        platform: &platform,
        overheads: &Overheads::NONE,
        delays: &delays,
        guarantee: Guarantee::Hard,
        charge: CacheCharge::ByPiece(Precedence::Edf),
    };
    let set = [
        task(2_500, 9_000),
        task(1_000, 9_000),
        task(1_000, 9_000),
        task(1_001, 9_000),
    ];
    let all = each_alone(1).remove(0);
    let accounted = quanta::account(&set, &all, us(1_000), &system);
    let inflated: Vec<Duration> = accounted.inflated.iter().map(|t| t.wcet).collect();
    // No quantum is left of a delay that fills it.
    assert_eq!(inflated, [us(3_400), us(1_000), us(1_000), Duration::MAX]);
}

/// A job in slices has to end before its successor comes, also where its deadline is later.
#[test]
fn slices_that_end_after_the_next_release_do_not_hold() {
    let platform = Platform::symmetric(2);
    let tasks = [Timing {
        deadline: us(14_000),
        ..task(2_000, 10_000)
    }];
    let delays = delays_of(&platform, 1, &DELAYS[..1]);
    let system = System {
        platform: &platform,
        overheads: &Overheads::NONE,
        delays: &delays,
        guarantee: Guarantee::Hard,
        charge: CacheCharge::ByPiece(Precedence::Edf),
    };
    for (window, expected) in [(us(5_000), true), (us(7_000), false)] {
        let cpus = processors(2);
        let slice = |cpu: &CpuId| Slice {
            cpu: *cpu,
            budget: us(1_000),
            window,
        };
        let slices = Assignment::Slices(Slices {
            tasks: vec![cpus.iter().map(slice).collect()],
            cpus,
        });
        assert_eq!(holds(&tasks, &slices, &system), expected, "{window}");
    }
}
