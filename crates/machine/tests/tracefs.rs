//! The kernel's record of events, read from its buffers as they are in memory.
//!
//! Not run where tracefs cannot be had.

use machine::realtime::{LOWEST, raise, switches};
use machine::tracefs::{Recording, SWITCHES, Switch, Switches, TRACEFS, Tracepoint, instance};
use model::CpuId;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testing::{NotRun, Outcome};

/// A record of the same switches as the kernel writes it as text, in buffers of its own.
struct Text(PathBuf);

impl Text {
    fn begin() -> std::io::Result<Self> {
        let dir = Path::new(TRACEFS).join(format!("instances/text-{}", std::process::id()));
        std::fs::create_dir(&dir)?;
        let text = Text(dir);
        let filter = SWITCHES.filter.unwrap();
        for (file, what) in [
            ("trace_clock", "mono"),
            ("buffer_size_kb", "4096"),
            ("events/sched/sched_switch/filter", filter),
            ("events/sched/sched_switch/enable", "1"),
        ] {
            std::fs::write(text.0.join(file), what)?;
        }
        Ok(text)
    }

    /// Processor, microsecond, who leaves, who comes.
    fn end(self) -> Vec<(u32, u64, i32, i32)> {
        std::fs::write(self.0.join("tracing_on"), "0").unwrap();
        let text = std::fs::read_to_string(self.0.join("trace")).unwrap();
        text.lines().filter_map(switch_of).collect()
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("events/sched/sched_switch/enable"), "0");
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// `  name-12 [001] d..2. 34.567890: sched_switch: … prev_pid=12 … ==> … next_pid=34 …`.
fn switch_of(line: &str) -> Option<(u32, u64, i32, i32)> {
    let (head, what) = line.split_once(": sched_switch: ")?;
    let (seconds, micros) = head.rsplit(' ').next()?.split_once('.')?;
    let cpu = head.rsplit_once('[')?.1.split_once(']')?.0;
    let (prev, next) = what.rsplit_once(" ==> ")?;
    let number = |text: &str, key: &str| -> Option<i32> {
        text.rsplit_once(key)?
            .1
            .split(' ')
            .next()?
            .trim()
            .parse()
            .ok()
    };
    let time = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    Some((
        cpu.parse().ok()?,
        time,
        number(prev, " prev_pid=")?,
        number(next, " next_pid=")?,
    ))
}

fn recording(points: &[Tracepoint]) -> Result<Recording, NotRun> {
    Recording::begin(points).map_err(NotRun::because)
}

/// Sleeps at real-time priority, so often. Its thread, and how often that has given its processor up,
/// as the kernel counts it: where a hypervisor takes the processor for a while, a sleep may be over
/// before the thread has left.
fn sleeps(often: u32) -> Result<(i32, usize), NotRun> {
    std::thread::spawn(move || {
        let raised = raise(LOWEST).map_err(NotRun::because)?;
        let before = switches().voluntary;
        for _ in 0..often {
            std::thread::sleep(Duration::from_micros(300));
        }
        let gave_up = switches().voluntary - before;
        drop(raised);
        Ok((rustix::thread::gettid().as_raw_pid(), gave_up as usize))
    })
    .join()
    .unwrap()
}

fn switches_are_those_that_the_kernel_tells_as_text() -> Outcome {
    let recording = recording(&[SWITCHES])?;
    let text = Text::begin().unwrap();
    let (thread, gave_up) = sleeps(500)?;
    let told = text.end();
    let switches = Switches::from(recording.end().unwrap());
    assert_eq!((switches.lost, switches.cut), (0, false));
    let of_thread = |prev: i32, next: i32| prev == thread || next == thread;
    let told: Vec<_> = told.into_iter().filter(|t| of_thread(t.2, t.3)).collect();
    let read: Vec<&Switch> = switches
        .all
        .iter()
        .filter(|s| of_thread(s.prev, s.next))
        .collect();
    // Who comes to an idle processor is not recorded everywhere, in either way; who leaves is.
    let leaves = told.iter().filter(|t| t.2 == thread).count();
    assert!(leaves >= gave_up && gave_up > 0, "{leaves} of {gave_up}");
    // The recording began before the text, and ended later.
    let behind = read.iter().position(|s| same(s, &told[0]));
    let read = &read[behind.unwrap()..][..told.len()];
    for (read, told) in read.iter().zip(&told) {
        assert!(same(read, told), "{read:?} {told:?}");
    }
    // The text ends at microseconds.
    assert!(read.iter().any(|s| s.time % 1_000 != 0));
    assert!(switches.all.is_sorted_by_key(|s| s.time));
    Ok(())
}

/// The two records of an event are made one after the other, and a hypervisor may come between.
fn same(read: &Switch, told: &(u32, u64, i32, i32)) -> bool {
    (read.cpu, read.prev, read.next) == (told.0, told.2, told.3)
        && (read.time / 1_000).abs_diff(told.1) <= 5_000
}

/// Several tracepoints at once, each with its fields.
fn events_of_several_tracepoints_come_in_the_order_of_time() -> Outcome {
    const WAKING: Tracepoint = Tracepoint {
        name: "sched/sched_waking",
        filter: None,
        fields: &["pid", "prio", "target_cpu"],
    };
    const EXPIRED: Tracepoint = Tracepoint {
        name: "timer/hrtimer_expire_entry",
        filter: None,
        fields: &["hrtimer", "now", "function"],
    };
    let recording = recording(&[SWITCHES, WAKING, EXPIRED])?;
    let thread = i64::from(sleeps(200)?.0);
    let recorded = recording.end().unwrap();
    assert!(recorded.all.is_sorted_by_key(|r| r.time));
    let woken: Vec<_> = recorded
        .all
        .iter()
        .filter(|r| r.point == 1 && r.values[0] == thread)
        .collect();
    assert!(woken.len() >= 200, "{}", woken.len());
    // The timer that wakes it expires before, and it leaves a processor behind. (That it comes to
    // an idle one is not recorded everywhere.)
    let mut explained = 0;
    for waking in &woken {
        let at = recorded.all.iter().position(|r| r == *waking).unwrap();
        let timer = recorded.all[..at]
            .iter()
            .rev()
            .find(|r| r.point == 2 && r.cpu == waking.cpu);
        let leaves = recorded.all[at..]
            .iter()
            .find(|r| r.point == 0 && r.values[0] == thread);
        assert!(leaves.is_none_or(|r| r.time >= waking.time));
        // `now` is of the same clock.
        let near = |r: &&machine::tracefs::Record| {
            waking.time.abs_diff(r.values[1].cast_unsigned()) < 10_000_000
        };
        explained += u32::from(timer.filter(near).is_some() && leaves.is_some());
    }
    assert!(explained >= 150, "{explained} of {}", woken.len());
    Ok(())
}

/// Nothing runs for such a recording, and what its buffers had no room for is counted.
fn what_is_read_afterwards_is_complete_until_a_buffer_is_full() -> Outcome {
    let cpus: Vec<CpuId> = machine::this_machine()
        .unwrap()
        .platform
        .usable()
        .iter()
        .collect();
    let begin = |kib| {
        let begun = Recording::begin_to_read_afterwards(&[SWITCHES], &cpus, kib);
        begun.map_err(NotRun::because)
    };
    let recording = begin(4096)?;
    let (thread, gave_up) = sleeps(200)?;
    let recorded = recording.end().unwrap();
    assert!(recorded.all.is_sorted_by_key(|r| r.time));
    assert_eq!((recorded.lost, recorded.full.len()), (0, 0));
    let leaves = recorded.all.iter();
    let leaves = leaves.filter(|r| r.values[0] == i64::from(thread)).count();
    assert!(leaves >= gave_up && gave_up > 0, "{leaves} of {gave_up}");

    let recording = begin(8)?;
    sleeps(2_000)?;
    let recorded = recording.end().unwrap();
    assert!(
        recorded.lost > 0 && !recorded.full.is_empty(),
        "{recorded:?}"
    );
    assert!(!instance().unwrap().exists());
    Ok(())
}

fn nothing_is_left_of_a_recording() -> Outcome {
    let instance = instance().unwrap();
    let recording = recording(&[SWITCHES])?;
    assert!(instance.is_dir());
    recording.end().unwrap();
    assert!(!instance.exists());
    drop(self::recording(&[SWITCHES])?);
    assert!(!instance.exists());
    Ok(())
}

fn a_tracepoint_that_the_kernel_lacks_is_named_and_nothing_left() -> Outcome {
    drop(recording(&[SWITCHES])?);
    let lacking = Tracepoint {
        name: "sched/no_such_thing",
        ..SWITCHES
    };
    assert!(!Recording::knows(&lacking) && Recording::knows(&SWITCHES));
    let e = Recording::begin(&[lacking]).unwrap_err().to_string();
    assert!(
        e.contains("no_such_thing") && e.contains("run as root"),
        "{e}"
    );
    let wrong = Tracepoint {
        fields: &["prev_comm"],
        ..SWITCHES
    };
    let e = Recording::begin(&[wrong]).unwrap_err().to_string();
    assert!(e.contains("no integer `prev_comm`"), "{e}");
    assert!(!instance().unwrap().exists());
    Ok(())
}

// One process has one recording at a time.
testing::tests!(
    first: testing::tracefs::mounted(),
    alone: switches_are_those_that_the_kernel_tells_as_text,
    events_of_several_tracepoints_come_in_the_order_of_time,
    what_is_read_afterwards_is_complete_until_a_buffer_is_full,
    nothing_is_left_of_a_recording,
    a_tracepoint_that_the_kernel_lacks_is_named_and_nothing_left,
);
