//! What needs a right or a device of this machine: real-time priority, a time-stamp counter, a view
//! of interrupts.

use machine::clock::{Clock, counter, monotonic_raw};
use machine::interrupts::Witness;
use machine::realtime::{HIGHEST, LOWEST, Raised, Watchdog, raise, raise_with_threads, sleep};
use model::Duration;
use testing::{NotRun, Outcome};

/// Policy and priority of the calling thread.
fn scheduler() -> (i32, i32) {
    sys::scheduling::get(0).unwrap()
}

/// The calling thread at the highest priority, and what it was before.
fn with_rights() -> Result<(Raised, (i32, i32)), NotRun> {
    let before = scheduler();
    let raised = raise(HIGHEST).map_err(NotRun::because)?;
    Ok((raised, before))
}

fn a_raised_thread_is_lowered_again() -> Outcome {
    let (raised, before) = with_rights()?;
    let (policy, priority) = scheduler();
    assert_eq!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO);
    assert_eq!(priority, HIGHEST.get());
    drop(raised);
    assert_eq!(scheduler(), before);
    Ok(())
}

fn a_panic_lowers_the_priority_too() -> Outcome {
    drop(with_rights()?);
    let before = scheduler();
    let result = std::panic::catch_unwind(|| {
        let _raised = raise(HIGHEST);
        panic!("on purpose");
    });
    assert!(result.is_err());
    assert_eq!(scheduler(), before);
    Ok(())
}

fn threads_of_a_raised_thread_start_without_priority() -> Outcome {
    let (_raised, _) = with_rights()?;
    let (policy, _) = std::thread::spawn(scheduler).join().unwrap();
    assert_eq!(policy, libc::SCHED_OTHER);
    Ok(())
}

fn threads_inherit_a_priority_only_where_that_was_asked_for() -> Outcome {
    std::thread::spawn(|| {
        let raised = raise_with_threads(LOWEST).map_err(NotRun::because)?;
        let theirs = std::thread::spawn(scheduler).join().unwrap();
        assert_eq!(theirs, (libc::SCHED_FIFO, LOWEST.get()));
        drop(raised);
        assert_eq!(std::thread::spawn(scheduler).join().unwrap().1, 0);
        Ok(())
    })
    .join()
    .unwrap()
}

fn a_runaway_loses_its_priority_and_who_beats_keeps_it() -> Outcome {
    let (_raised, _) = with_rights()?;
    // Longer than a hypervisor keeps a processor to itself.
    let watchdog = Watchdog::over_this_thread(Duration::from_millis(800)).unwrap();
    for _ in 0..20 {
        watchdog.beat();
        sleep(Duration::from_millis(4));
    }
    assert!(!watchdog.tripped(), "it beat in time");
    // Runs away; ends when the watchdog has seen it, or fails when it never does.
    let start = std::time::Instant::now();
    while !watchdog.tripped() && start.elapsed().as_secs() < 20 {
        std::hint::spin_loop();
    }
    assert!(watchdog.tripped());
    // The watchdog sets the flag, then lowers; it runs above this thread, on this or another
    // processor.
    while scheduler().1 != 0 && start.elapsed().as_secs() < 20 {
        std::thread::yield_now();
    }
    assert_eq!(scheduler().1, 0);
    Ok(())
}

fn stamps_on_one_processor_never_go_back() -> Outcome {
    let clock = counter().map_err(NotRun::because)?;
    let mut last = clock.stamp_on();
    for _ in 0..10_000 {
        let now = clock.stamp_on();
        assert!(now.1 != last.1 || now.0 > last.0);
        last = now;
    }
    Ok(())
}

fn a_witness_that_works_sees_ticks_and_not_everything() -> Outcome {
    let witness = Witness::new();
    if !witness.works() {
        return Err(NotRun::because("this machine does not show interrupts"));
    }
    // While it spins there are ticks, far fewer than looks. How soon the first one comes depends on
    // who else runs.
    let (mut seen, mut looks) = (0u64, 0u64);
    let (least, most) = (
        monotonic_raw() + 200_000_000,
        monotonic_raw() + 20_000_000_000,
    );
    while monotonic_raw() < least || (seen == 0 && monotonic_raw() < most) {
        witness.arm();
        for _ in 0..1000 {
            std::hint::spin_loop();
        }
        looks += 1;
        seen += u64::from(witness.interrupted());
    }
    witness.disarm();
    assert!(seen > 0, "no tick seen in {looks} looks");
    assert!(seen < looks, "every look saw an interrupt");
    Ok(())
}

testing::tests!(alone:
    a_raised_thread_is_lowered_again,
    a_panic_lowers_the_priority_too,
    threads_of_a_raised_thread_start_without_priority,
    threads_inherit_a_priority_only_where_that_was_asked_for,
    a_runaway_loses_its_priority_and_who_beats_keeps_it,
    stamps_on_one_processor_never_go_back,
    a_witness_that_works_sees_ticks_and_not_everything,
);
