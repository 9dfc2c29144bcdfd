//! Working sets of a program that touches as much as it is told to: `dd` reads into a buffer of a
//! given size again and again.

use measure::wss::{Ended, Found, Plan, Seen, measure};
use model::watch::Silent;
use model::{Bytes, Duration};
use testing::{NotRun, Outcome};

fn plan(words: &[&str], most: Option<u64>) -> Plan {
    Plan {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        every: Duration::from_millis(60),
        most: most.map(Duration::from_millis),
        skip: Duration::ZERO,
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

/// The rest of its memory is the same whatever the buffer, so that the difference is known to the
/// page: of the median window exactly, and of the largest one, which is what is told, but for what
/// a disturbed window may hold of the program's start.
fn a_larger_buffer_is_a_larger_working_set_by_as_much() -> Outcome {
    let small = with_buffer(64)?;
    assert!(small.windows.len() >= 3, "{small:?}");
    assert_eq!(small.ended, None, "it does not end by itself");
    assert_eq!(small.loading, 1);
    for kib in [256, 1024, 4096] {
        let large = with_buffer(kib)?;
        let wanted = Bytes::from_kib(kib - 64).get();
        for (of, slack) in [
            ((|found| found.median) as fn(Found) -> Bytes, 16),
            (|found| found.later, 64),
            (|found| found.most, 64),
        ] {
            let more = of(large.found()).get().abs_diff(of(small.found()).get());
            assert!(
                more.abs_diff(wanted) <= Bytes::from_kib(slack).get(),
                "{kib} KiB: {more} bytes more instead of {wanted}"
            );
        }
    }
    Ok(())
}

/// A shell fills 8 MiB and then becomes `dd` with a buffer of 64 KiB.
fn what_a_program_touches_while_it_is_loaded_is_left_out_on_request() -> Outcome {
    let small = with_buffer(64)?;
    let script = "x=$(head -c 8388608 /dev/zero | tr '\\0' a); i=0; \
        while [ $i -lt 8 ]; do y=$x$i; i=$((i + 1)); sleep 0.06; done; unset x y; \
        exec dd if=/dev/zero of=/dev/null bs=64K";
    let mut plan = plan(&["sh", "-c", script], Some(6000));
    let whole = measure(&plan, &Silent).map_err(NotRun::because)?;
    let of_the_shell = Bytes::from_mib(8).get();
    assert!(whole.found().most.get() >= of_the_shell, "{whole:?}");
    plan.skip = Duration::from_secs(4);
    let rest = measure(&plan, &Silent).map_err(NotRun::because)?;
    assert!(rest.loading > 1 && rest.loading < rest.windows.len());
    let apart = rest.found().most.get().abs_diff(small.found().most.get());
    assert!(apart <= Bytes::from_kib(64).get(), "{rest:?}");
    // Nothing is left where the whole of it is left out.
    plan.skip = Duration::from_secs(60);
    plan.most = Some(Duration::from_millis(200));
    let e = measure(&plan, &Silent).unwrap_err().to_string();
    assert!(
        e.contains("no window of 60ms began after the first 60s"),
        "{e}"
    );
    Ok(())
}

/// What was touched before a window does not count in it.
fn a_program_that_sleeps_touches_nothing_after_it_began() -> Outcome {
    with_buffer(64)?;
    let seen = measure(&plan(&["sleep", "0.5"], None), &Silent).map_err(NotRun::because)?;
    assert_eq!(seen.ended, Some(Ended::Status(0)));
    assert!(seen.found().most <= Bytes::from_kib(32), "{seen:?}");
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
    what_a_program_touches_while_it_is_loaded_is_left_out_on_request,
    a_program_that_sleeps_touches_nothing_after_it_began,
    what_cannot_be_measured_is_refused,
);
