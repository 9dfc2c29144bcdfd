//! A team without threads: how posts are laid out, and that no finished job is overlooked.

use super::*;
use std::sync::atomic::fence;
use std::time::Duration;

/// A host that nobody listens to.
struct Deaf;

impl Host for Deaf {
    type Task = ();
    fn now(&self) -> Instant {
        Instant::ZERO
    }
    fn now_after(&self, before: Instant) -> Instant {
        before
    }
    fn call(&self, _: PostId) {}
    fn expect_decisions(&self, _: impl Iterator<Item = PostId>) {}
    fn wake_all(&self) {}
}

const OLD: InboxId = InboxId(0);
const NEW: InboxId = InboxId(1);

/// Two stages of one domain each, on one processor, which take turns with two sets of posts; so
/// many tasks.
fn team(tasks: usize) -> Team<Deaf> {
    let (posts, inboxes) = lay_out(&[vec![vec![CpuId(0)]]], 2, tasks);
    let names = (0..tasks).map(|n| format!("T{n}")).collect();
    Team::new(Deaf, names, posts, inboxes, vec![false; tasks])
}

fn finished(team: &Team<Deaf>, domain: InboxId) -> Vec<u32> {
    let mut all = Vec::new();
    team.take_finished(domain, &mut all);
    let mut all: Vec<u32> = all.iter().map(|task| task.0).collect();
    all.sort_unstable();
    all
}

#[test]
fn posts_are_laid_out_by_set_and_domain_and_slots_by_processor() {
    let plans = [
        vec![vec![CpuId(3), CpuId(1)]],
        vec![vec![CpuId(1)], vec![CpuId(3)]],
    ];
    let (posts, inboxes) = lay_out::<()>(&plans, 5, 1);
    let found: Vec<_> = posts
        .iter()
        .map(|p| (p.cpu.0, p.domain.0, p.set, p.slot))
        .collect();
    assert_eq!(
        found,
        [(3, 0, 0, 0), (1, 0, 0, 1), (1, 1, 1, 1), (3, 2, 1, 0)]
    );
    let leaders: Vec<u32> = inboxes.iter().map(|inbox| inbox.leader.0).collect();
    assert_eq!(leaders, [0, 2, 3]);
    // A run of one stage has one set.
    assert_eq!(lay_out::<()>(&plans[..1], 1, 1).0.len(), 2);
}

#[test]
fn who_has_finished_while_another_stage_took_over_is_on_its_list() {
    let team = team(3);
    team.tell_finished(TaskId(0));
    team.tell_finished(TaskId(2));
    team.move_reports_to(TaskId(0), NEW);
    team.pass_on(OLD);
    assert_eq!(
        (finished(&team, OLD), finished(&team, NEW)),
        (vec![2], vec![0])
    );
    // From now on they are found where they are.
    for task in (0..3).map(TaskId) {
        team.tell_finished(task);
        team.tell_finished(task);
    }
    assert_eq!(
        (finished(&team, OLD), finished(&team, NEW)),
        (vec![1, 2], vec![0])
    );
}

/// A worker that finishes after the last look of a stage and before the next one has its task.
#[test]
fn who_finishes_within_a_handover_is_seen_ever_after() {
    let team = team(1);
    let handover = move |team: &Team<Deaf>| {
        team.tell_finished(TaskId(0));
        team.move_reports_to(TaskId(0), NEW);
    };
    assert!(team.end_stage(Instant::ZERO, Box::new(handover)));
    team.leave_stage(0);
    assert_eq!((team.ruling(), team.is_over()), (1, false));
    assert_eq!(finished(&team, NEW), [0]);
    team.tell_finished(TaskId(0));
    assert_eq!(finished(&team, NEW), [0]);
}

/// The supervisor was late: nobody is left to hand over, and it learns of that.
#[test]
fn no_stage_follows_one_that_all_have_left() {
    let team = team(1);
    team.leave_stage(0);
    assert!(team.is_over());
    let handover = |_: &Team<Deaf>| unreachable!("nobody hands over");
    assert!(!team.end_stage(Instant::ZERO, Box::new(handover)));
    assert_eq!((team.ruling(), team.is_ending_stage()), (0, false));
}

/// Workers finish as fast as they are seen to, while two stages take over from each other again and
/// again: when that is over nobody is overlooked.
#[test]
fn nobody_is_overlooked_whoever_takes_over() {
    const TASKS: usize = 3;
    const ROUNDS: u32 = 150;
    let team = &team(TASKS);
    let [seen, done]: [&[AtomicU32]; 2] = [
        &[const { AtomicU32::new(0) }; TASKS],
        &[const { AtomicU32::new(0) }; TASKS],
    ];
    let over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for task in (0..TASKS as u32).map(TaskId) {
            scope.spawn(move || {
                let mut job = 0;
                while !over.load(Ordering::Relaxed) {
                    if seen[task.index()].load(Ordering::Acquire) == job {
                        job += 1;
                        done[task.index()].store(job, Ordering::Release);
                        fence(Ordering::SeqCst);
                        team.tell_finished(task);
                    }
                }
            });
        }
        let look = |task: usize| {
            let done = done[task].load(Ordering::Acquire);
            seen[task].store(done, Ordering::Release);
        };
        let look_at_list = |domain: InboxId| {
            for task in finished(team, domain) {
                look(task as usize);
            }
        };
        let (mut domain, mut other, mut overlooked) = (OLD, NEW, None);
        for round in 0..ROUNDS {
            for _ in 0..50 {
                look_at_list(domain);
                for task in 0..TASKS {
                    team.move_reports_to(TaskId(task as u32), other);
                    look(task);
                }
                team.pass_on(domain);
                std::mem::swap(&mut domain, &mut other);
            }
            // From here on nobody looks but at the list.
            let until = std::time::Instant::now() + Duration::from_secs(10);
            let goals = [0, 1, 2].map(|task: usize| seen[task].load(Ordering::Relaxed) + 3);
            let reached = |task: usize| seen[task].load(Ordering::Relaxed) >= goals[task];
            while !(0..TASKS).all(reached) && overlooked.is_none() {
                look_at_list(domain);
                overlooked = (std::time::Instant::now() > until).then_some(round);
                std::thread::yield_now();
            }
            if overlooked.is_some() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(overlooked, None, "in this round");
    });
}
