//! Working sets of a program that touches as much as it is told to: `dd` reads into a buffer of a
//! given size again and again.

use measure::wss::{Ended, Plan, Seen, measure};
use model::watch::Silent;
use model::{Bytes, Duration};
use testing::{NotRun, Outcome};

fn plan(words: &[&str], most: Option<u64>) -> Plan {
    Plan {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        every: Duration::from_millis(60),
        most: most.map(Duration::from_millis),
    }
}

/// What a program with a buffer of so many KiB touches.
fn with_buffer(kib: u64) -> Result<Seen, NotRun> {
    if !std::path::Path::new("/proc/self/clear_refs").exists() {
        return Err(NotRun::because("this kernel has no /proc/PID/clear_refs"));
    }
    let block = format!("bs={kib}K");
    let words = ["dd", "if=/dev/zero", "of=/dev/null", &block];
    measure(&plan(&words, Some(600)), &Silent).map_err(NotRun::because)
}

fn median(seen: &Seen) -> u64 {
    let mut sizes: Vec<u64> = seen.windows[1..]
        .iter()
        .map(|pages| pages.own.get())
        .collect();
    sizes.sort_unstable();
    sizes[sizes.len() / 2]
}

/// The rest of its memory is the same whatever the buffer, so that the difference is known to the
/// page.
fn a_larger_buffer_is_a_larger_working_set_by_as_much() -> Outcome {
    let small = with_buffer(64)?;
    assert!(small.windows.len() >= 3, "{small:?}");
    assert_eq!(small.ended, None, "it does not end by itself");
    for kib in [256, 1024, 4096] {
        let large = with_buffer(kib)?;
        let more = median(&large).abs_diff(median(&small));
        let wanted = Bytes::from_kib(kib - 64).get();
        let slack = Bytes::from_kib(16).get();
        assert!(
            more.abs_diff(wanted) <= slack,
            "{kib} KiB: {more} bytes more instead of {wanted}"
        );
    }
    Ok(())
}

/// What was touched before a window does not count in it.
fn a_program_that_sleeps_touches_nothing_after_it_began() -> Outcome {
    with_buffer(64)?;
    let seen = measure(&plan(&["sleep", "0.5"], None), &Silent).map_err(NotRun::because)?;
    assert_eq!(seen.ended, Some(Ended::Status(0)));
    assert!(median(&seen) <= Bytes::from_kib(32).get(), "{seen:?}");
    Ok(())
}

fn what_cannot_be_measured_is_refused() -> Outcome {
    for (words, cause) in [
        (&["/no/such/program"][..], "cannot start it"),
        (&[], "no program is named"),
        (&["true"], "ended before a window"),
    ] {
        let e = measure(&plan(words, None), &Silent)
            .unwrap_err()
            .to_string();
        assert!(e.contains(cause), "{e}");
    }
    Ok(())
}

testing::tests!(
    a_larger_buffer_is_a_larger_working_set_by_as_much,
    a_program_that_sleeps_touches_nothing_after_it_began,
    what_cannot_be_measured_is_refused,
);
