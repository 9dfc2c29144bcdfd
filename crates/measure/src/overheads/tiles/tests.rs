//! Marks of short courses of events, and the tiles that are cut from them.

use super::*;
use Mark::*;
use Overhead::{ContextSwitch, Release, Scheduling};

const WORKER: i32 = 70;

fn cut(marks: &[(u64, Mark)]) -> Vec<Tile> {
    let mut tiler = Tiler::default();
    for (time, mark) in marks {
        tiler.add(*time, *mark);
    }
    assert_eq!(tiler.senseless(), 0);
    tiler.tiles().to_vec()
}
fn tile(kind: OverheadKind, begun: u64, own: Option<u64>, whole: u64) -> Tile {
    Tile {
        cost: Cost::Overhead(kind),
        begun,
        own,
        whole,
        disturbed: None,
    }
}

/// Two jobs are released, and one of them begins.
const RELEASES: [(u64, Mark); 18] = [
    (100, TimerEntry),
    (110, Wakes),
    (130, TimerExit),
    (150, Comes),
    (180, Own(Release)),
    (200, OwnEnd(Release)),
    (200, Own(Release)),
    (215, OwnEnd(Release)),
    (225, Own(Scheduling)),
    (260, OwnEnd(Scheduling)),
    (262, Own(ContextSwitch)),
    (280, OwnEnd(ContextSwitch)),
    (285, Sleeps),
    (290, Arms),
    (300, Leaves(WORKER)),
    (330, Begins(WORKER)),
    (400, TimerEntry),
    (420, TimerExit),
];

#[test]
fn the_tiles_of_an_episode_leave_no_gap() {
    let rearming = Tile {
        cost: Cost::Overhead(OverheadKind::TimerRearming),
        begun: 285,
        own: None,
        whole: 5,
        disturbed: None,
    };
    let mut tiles = cut(&RELEASES);
    assert_eq!(
        tiles,
        [
            rearming,
            tile(OverheadKind::Release, 100, Some(35), 115),
            tile(OverheadKind::Scheduling, 215, Some(35), 45),
            tile(OverheadKind::ContextSwitch, 260, Some(18), 70),
        ]
    );
    tiles.remove(0);
    for pair in tiles.windows(2) {
        assert_eq!(pair[0].begun + pair[0].whole, pair[1].begun);
    }
    // From the interrupt to the first instruction of the job.
    assert_eq!(tiles.iter().map(|t| t.whole).sum::<u64>(), 330 - 100);
}

#[test]
fn a_job_that_goes_on_ends_the_scheduling() {
    let tiles = cut(&[
        (100, Wakes),
        (120, Comes),
        (130, Own(Scheduling)),
        (140, OwnEnd(Scheduling)),
        (155, Leaves(WORKER)),
        // It was not told to begin anything: it asks for something else.
        (170, Begins(WORKER)),
    ]);
    assert_eq!(tiles, [tile(OverheadKind::Scheduling, 100, Some(10), 55)]);
}

#[test]
fn a_tick_is_the_timers_interrupt_without_a_dispatcher() {
    let tiles = cut(&[
        (100, TimerEntry),
        (101, Tick),
        (107, TimerExit),
        // Of something that is neither.
        (200, TimerEntry),
        (209, TimerExit),
        // A tick and a release together belong to the release.
        (300, TimerEntry),
        (301, Tick),
        (302, Wakes),
        (310, TimerExit),
        (320, Comes),
        (330, Own(Release)),
        (340, OwnEnd(Release)),
        (345, Leaves(0)),
    ]);
    let release = tile(OverheadKind::Release, 300, Some(10), 45);
    assert_eq!(tiles, [tile(OverheadKind::Tick, 100, None, 7), release]);
}

#[test]
fn the_watch_is_there_from_its_interrupt_until_it_has_gone() {
    let watch = |begun, whole| tile(OverheadKind::Watch, begun, None, whole);
    let tiles = cut(&[
        (100, TimerEntry),
        (103, WatchWakes),
        (107, TimerExit),
        (118, WatchLeaves),
        // With a tick in the same interrupt: the tick is charged on its own.
        (200, TimerEntry),
        (201, Tick),
        (203, WatchWakes),
        (207, TimerExit),
        (221, WatchLeaves),
        // It leaves to the dispatcher, which it had interrupted.
        (300, Wakes),
        (310, Comes),
        (315, TimerEntry),
        (316, WatchWakes),
        (318, TimerExit),
        (319, Preempted),
        (330, Comes),
        (340, Leaves(WORKER)),
        // It finds that the machine stood still.
        (400, TimerEntry),
        (401, WatchWakes),
        (402, TimerExit),
        (405, StoodStill(70)),
        (410, WatchLeaves),
    ]);
    let of_watch: Vec<Tile> = tiles
        .iter()
        .filter(|tile| tile.cost == Cost::Overhead(OverheadKind::Watch))
        .copied()
        .collect();
    let disturbed = |by, tile| Tile {
        disturbed: Some(by),
        ..tile
    };
    assert_eq!(
        of_watch,
        [
            watch(100, 18),
            disturbed(Disturbance::Interrupt, watch(200, 21)),
            watch(315, 15),
            disturbed(Disturbance::Standstill, watch(400, 10)),
        ]
    );
}

#[test]
fn who_finds_nothing_to_do_has_looked_or_set_a_timer_for_another_processor() {
    let looked = cut(&[(5, Wakes), (9, Comes), (12, Sleeps), (15, Leaves(WORKER))]);
    assert_eq!((looked[0].cost, looked[0].whole), (Cost::Look, 10));
    let set = cut(&[
        (5, WokenFromAfar),
        (9, Comes),
        (12, Sleeps),
        (14, Arms),
        (15, Leaves(WORKER)),
    ]);
    assert_eq!(set[0].cost, Cost::Overhead(OverheadKind::TimerRearming));
    assert_eq!(set[1], tile(OverheadKind::TimerTransfer, 9, None, 6));
}

#[test]
fn what_is_brought_from_afar_is_no_switch_of_this_processor() {
    assert_eq!(
        cut(&[(5, Own(ContextSwitch)), (9, OwnEnd(ContextSwitch))]),
        []
    );
}

#[test]
fn without_the_kernel_the_engines_own_brackets_are_left() {
    let mut tiler = Tiler::own_only();
    for (time, mark) in RELEASES {
        if matches!(mark, Own(_) | OwnEnd(_)) {
            tiler.add(time, mark);
        }
    }
    let own = |tile: &Tile| tile.own == Some(tile.whole);
    assert!(tiler.tiles().iter().all(own));
    let whole: Vec<_> = tiler.tiles().iter().map(|tile| tile.whole).collect();
    assert_eq!(whole, [35, 35, 18]);
}

#[test]
fn an_interrupt_within_disturbs_that_overhead_alone() {
    let mut marks = RELEASES.to_vec();
    marks.splice(8..8, [(220, TimerEntry), (222, Tick), (223, TimerExit)]);
    let disturbed: Vec<_> = cut(&marks).iter().map(|t| t.disturbed).collect();
    let interrupt = Some(Disturbance::Interrupt);
    assert_eq!(disturbed, [None, None, interrupt, None]);
}

#[test]
fn a_standstill_disturbs_all_that_it_overlaps() {
    let mut tiler = Tiler::default();
    for (time, mark) in RELEASES {
        tiler.add(time, mark);
    }
    // From 240 to 300.
    tiler.add(450, StoodStill(210));
    let disturbed = tiler.tiles().iter().map(|t| t.disturbed.is_some());
    assert_eq!(disturbed.collect::<Vec<_>>(), [true, false, true, true]);
}

#[test]
fn a_dispatcher_that_was_woken_and_works_has_come() {
    let mut marks = RELEASES.to_vec();
    marks.retain(|(_, mark)| *mark != Comes);
    let mut tiler = Tiler::default();
    for (time, mark) in marks {
        tiler.add(time, mark);
    }
    assert_eq!(tiler.tiles(), cut(&RELEASES));
    assert_eq!((tiler.senseless(), tiler.unseen()), (0, 1));

    // From another processor: since the waking at the latest.
    let set = cut(&[
        (5, WokenFromAfar),
        (12, Sleeps),
        (14, Arms),
        (15, Leaves(0)),
    ]);
    assert_eq!(set[1], tile(OverheadKind::TimerTransfer, 5, None, 10));
    let looked = cut(&[(5, WokenFromAfar), (15, Leaves(0))]);
    assert_eq!((looked[0].cost, looked[0].whole), (Cost::Look, 10));
}

#[test]
fn a_job_that_is_brought_while_the_dispatcher_is_on_its_way_is_no_work_of_it() {
    let tiles = cut(&[
        (5, WokenFromAfar),
        (6, Own(ContextSwitch)),
        (8, OwnEnd(ContextSwitch)),
        (10, Comes),
        (12, Own(Scheduling)),
        (14, OwnEnd(Scheduling)),
        (16, Leaves(0)),
    ]);
    assert_eq!(tiles, [tile(OverheadKind::Scheduling, 10, Some(2), 6)]);
}

#[test]
fn a_waking_in_time_wakes_nobody_later_and_one_too_late_does() {
    let until = |missed: &[(u64, Mark)]| {
        let mut tiler = Tiler::default();
        let begin = [(5, Wakes), (7, Comes), (10, Sleeps)];
        for (time, mark) in begin.iter().chain(missed) {
            tiler.add(*time, *mark);
        }
        tiler.add(40, Leaves(0));
        tiler.add(70, Sleeps);
        tiler.senseless()
    };
    // It did not sleep, and asked again: who is at work at 70 was not woken.
    assert_eq!(until(&[(12, WokenFromAfar), (30, Sleeps)]), 1);
    assert_eq!(until(&[(12, WokenFromAfar)]), 0);
    assert_eq!(until(&[]), 1);
}

#[test]
fn a_dispatcher_that_is_preempted_comes_back_and_what_it_did_meanwhile_does_not_count() {
    let mut marks = RELEASES.to_vec();
    // While it decides.
    marks.splice(9..9, [(240, Preempted), (250, Comes)]);
    let tiles = cut(&marks);
    let mut expected = cut(&RELEASES);
    expected[2].disturbed = Some(Disturbance::Preemption);
    assert_eq!(tiles, expected);
}

#[test]
fn a_job_that_is_brought_while_the_dispatcher_leaves_is_no_work_of_it() {
    let tiles = cut(&[
        (5, Wakes),
        (8, Comes),
        (9, Own(ContextSwitch)),
        (10, Sleeps),
        (12, Leaves(0)),
        (13, OwnEnd(ContextSwitch)),
    ]);
    assert_eq!((tiles.len(), tiles[0].cost), (1, Cost::Look));
}

#[test]
fn what_a_dispatcher_does_before_it_is_known_is_no_loss() {
    // Its thread begins as an ordinary one.
    assert_eq!(cut(&[(1, Sleeps), (2, Arms), (3, Leaves(0))]), []);
}

#[test]
fn what_delays_a_dispatcher_on_its_way_disturbs_what_it_does_first() {
    let mut marks = RELEASES.to_vec();
    // Real-time threads were stopped before it could come.
    marks.splice(3..3, [(145, StoodStill(10))]);
    let mut expected = cut(&RELEASES);
    expected[1].disturbed = Some(Disturbance::Standstill);
    assert_eq!(cut(&marks), expected);
    marks.splice(3..4, [(140, TimerEntry), (142, TimerExit)]);
    expected[1].disturbed = Some(Disturbance::Interrupt);
    assert_eq!(cut(&marks), expected);
}

#[test]
fn lost_marks_are_noticed() {
    let begin = [(1, Comes), (2, Leaves(0))];
    for marks in [
        &[(3, Leaves(0))][..],
        &[(3, TimerExit)],
        &[(3, OwnEnd(Release))],
        &[(3, Own(Release)), (4, OwnEnd(Scheduling))],
        &[(3, Comes), (4, Comes)],
        &[(3, Sleeps)],
    ] {
        let mut tiler = Tiler::default();
        for (time, mark) in begin.iter().chain(marks) {
            tiler.add(*time, *mark);
        }
        assert_eq!(tiler.senseless(), 1, "{marks:?}");
    }
}
