//! Text of the kernel's events: what is read, and which schedule is made of it.

use super::*;
use crate::check::Options;
use crate::{Checker, Event, EventKind, Header, Origin, Releases, Sink, Stage};
use model::{Details, Duration, Enforcement, Platform, Provenance, TaskSet, Timing};

mod spoiled;

/// As `/sys/kernel/tracing/trace` shows it: `lo` runs, is preempted by `hi`, waits for a disk, and
/// both sleep; 20 ms later once more. Microseconds after 100 s stand in front of each event.
fn kernel(events: &[(u64, u32, &str)]) -> String {
    let mut text = "# tracer: nop\n#\n".to_owned();
    for (us, cpu, event) in events {
        text.push_str(&format!(
            "          <idle>-0       [{cpu:03}] d..2.   {}.{:06}: {event}\n",
            100 + us / 1_000_000,
            us % 1_000_000
        ));
    }
    text
}

fn switch(from: &str, state: &str, to: &str) -> String {
    let thread = |name: &str| match name {
        "idle" => ("swapper/0".to_owned(), 0, 120),
        "hi" => ("hi".to_owned(), 11, 89),
        "lo" => ("lo".to_owned(), 12, 94),
        "irq" => ("irq/9 acpi".to_owned(), 13, 49),
        other => (other.to_owned(), 14, 120),
    };
    let (from, to) = (thread(from), thread(to));
    format!(
        "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={state} ==> next_comm={} next_pid={} next_prio={}",
        from.0, from.1, from.2, to.0, to.1, to.2
    )
}

fn waking(name: &str) -> String {
    let (pid, prio) = match name {
        "hi" => (11, 89),
        _ => (12, 94),
    };
    format!("sched_waking: comm={name} pid={pid} prio={prio} target_cpu=000")
}

fn set() -> TaskSet {
    let task = |name: &str, wcet, period, priority| {
        let details = Details {
            priority: Some(priority),
            ..Details::named(name)
        };
        let ms = Duration::from_millis;
        (Timing::implicit(ms(wcet), ms(period)), details)
    };
    TaskSet::new(vec![task("hi", 2, 10, 10), task("lo", 5, 20, 5)]).unwrap()
}

fn names() -> Vec<Named> {
    vec![Named::comm("hi"), Named::comm("lo")]
}

/// One round of both tasks, that begins at `at`.
fn round(at: u64, hi: u64) -> Vec<(u64, u32, String)> {
    vec![
        (at, 0, waking("lo")),
        (at + 3, 0, switch("idle", "R", "lo")),
        (at + hi, 0, waking("hi")),
        (at + hi + 4, 0, switch("lo", "R+", "hi")),
        (at + hi + 900, 0, switch("hi", "S", "lo")),
        (at + 2_500, 0, switch("lo", "D", "idle")),
        (at + 2_600, 0, waking("lo")),
        (at + 2_603, 0, switch("idle", "R", "lo")),
        (at + 4_000, 0, switch("lo", "S", "idle")),
    ]
}

fn text_of(rounds: &[Vec<(u64, u32, String)>]) -> String {
    let all: Vec<(u64, u32, &str)> = rounds
        .iter()
        .flatten()
        .map(|(us, cpu, event)| (*us, *cpu, event.as_str()))
        .collect();
    kernel(&all)
}

fn verdict(schedule: &Schedule, releases: Releases) -> crate::Verdict {
    let header = Header {
        origin: Origin::Real,
        provenance: Provenance::default(),
        tasks: schedule.set.clone(),
        platform: Platform::symmetric(1),
        stages: vec![Stage {
            policy: "g-fp".to_owned(),
            assignment: None,
            quantum: None,
        }],
        releases,
        enforcement: Some(Enforcement::Off),
        charges: None,
        release_on: Vec::new(),
    };
    let options = Options::for_trace(&header);
    let mut checker = Checker::new(header, options).unwrap();
    for event in &schedule.events {
        checker.record(*event);
    }
    checker.finish()
}

fn kinds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|e| e.kind).collect()
}

#[test]
fn a_schedule_of_the_kernel_is_made_of_its_events_and_keeps_the_rules() {
    let text = text_of(&[round(7, 1_000)]);
    let records = read(&text).unwrap();
    let schedule = Schedule::of(&records, &set(), &names(), false).unwrap();
    use EventKind::*;
    assert_eq!(
        kinds(&schedule.events),
        [
            Release, Start, Release, Preemption, Start, Completion, Resumption, Suspension, Idle,
            WakeUp, Resumption, Completion, Idle, End
        ]
    );
    let done: Vec<(u32, u64, u64)> = schedule
        .events
        .iter()
        .filter(|e| e.kind == Completion)
        .map(|e| (e.task.0, e.time.nanos() / 1000, e.argument / 1000))
        .collect();
    // `lo` ran from 3 to 1004, from 1900 to 2500 and from 2603 to 4000.
    assert_eq!(done, [(0, 1_900, 896), (1, 4_000, 1_001 + 600 + 1_397)]);
    assert_eq!((schedule.jobs, schedule.lost), (vec![1, 1], 0));
    let schedule = Schedule::of(&records, &set(), &names(), false).unwrap();
    let verdict = verdict(&schedule, Releases::Given);
    assert!(verdict.is_clean(), "{:?}", verdict.first);
}

#[test]
fn the_texts_of_trace_cmd_and_perf_say_the_same() {
    let kernel = text_of(&[round(7, 1_000)]);
    let of = |text: &str| {
        let records = read(text).unwrap();
        Schedule::of(&records, &set(), &names(), false)
            .unwrap()
            .events
    };
    // What trace-cmd's plugin makes of the fields.
    let mut short = "cpus=1\n".to_owned();
    // perf names thread and event in its own way.
    let mut perf = String::new();
    for line in kernel.lines().filter(|l| !l.starts_with('#')) {
        let (head, body) = line.split_once(": sched_").unwrap();
        let (name, fields) = body.split_once(": ").unwrap();
        let words: Vec<&str> = fields
            .split_whitespace()
            .filter(|w| *w != "==>")
            .filter_map(|w| w.split_once('=').map(|(_, value)| value))
            .collect();
        let body = match (name, &words[..]) {
            ("switch", [a, b, c, state, d, e, f]) => {
                format!("{a}:{b} [{c}] {state} ==> {d}:{e} [{f}]")
            }
            (_, [comm, pid, prio, cpu]) => format!("{comm}:{pid} [{prio}] CPU:{cpu}"),
            other => panic!("{other:?}"),
        };
        short.push_str(&format!("{head}: sched_{name}:         {body}\n"));
        let (_, rest) = head.split_once("-0").unwrap();
        perf.push_str(&format!(
            "swapper     0 {}000:       sched:sched_{name}: {fields}\n",
            rest.trim_start().replace("d..2.", "")
        ));
    }
    assert_eq!(of(&short), of(&kernel));
    assert_eq!(of(&perf), of(&kernel));
}

#[test]
fn a_job_that_goes_on_above_a_more_urgent_one_breaks_the_rule() {
    let mut events = round(7, 1_000);
    // `hi` is woken up, and the processor stays with `lo` for 1.4 ms.
    events.retain(|(us, _, _)| !(1_008..2_500).contains(us));
    events.push((2_507, 0, switch("lo", "D", "hi")));
    events.push((2_560, 0, switch("hi", "S", "idle")));
    events.retain(|(us, _, event)| !(*us == 2_507 && event.contains("idle")));
    events.sort_by_key(|(us, _, _)| *us);
    let text = text_of(&[events]);
    let records = read(&text).unwrap();
    let schedule = Schedule::of(&records, &set(), &names(), false).unwrap();
    let verdict = verdict(&schedule, Releases::Given);
    assert_eq!(verdict.violations, 1, "{:?}", verdict.first);
    assert_eq!(verdict.first[0].rule, "priority");
}

#[test]
fn threads_of_no_task_take_the_processor_only_if_they_are_more_urgent() {
    for (thread, clean) in [("irq", true), ("make", false)] {
        let events = vec![
            (0, 0, switch("idle", "R", thread)),
            (10, 0, waking("hi")),
            (3_000, 0, switch(thread, "R", "hi")),
            (3_500, 0, switch("hi", "S", "idle")),
            (4_000, 0, waking("lo")),
            (4_001, 0, switch("idle", "R", "lo")),
            (4_100, 0, switch("lo", "S", "idle")),
        ];
        let text = text_of(&[events]);
        let records = read(&text).unwrap();
        let schedule = Schedule::of(&records, &set(), &names(), false).unwrap();
        let verdict = verdict(&schedule, Releases::Given);
        assert_eq!(verdict.is_clean(), clean, "{thread}: {:?}", verdict.first);
        assert_eq!(verdict.standstills.count, u64::from(clean));
    }
}

#[test]
fn periodic_releases_are_found_from_wake_ups_that_are_late() {
    // Wake-ups of `lo` are late by 7, 2 and 5 us, those of `hi` by 9 and 4 us, and one is missing.
    let rounds = [
        round(107, 1_000),
        round(20_102, 1_000),
        round(40_105, 1_000),
    ];
    let text = text_of(&rounds);
    let records = read(&text).unwrap();
    let schedule = Schedule::of(&records, &set(), &names(), true).unwrap();
    let phase = |task| schedule.set.details(model::TaskId(task)).unwrap().phase;
    // The first wake-up is the begin of the text, and the earliest one was 5 us earlier.
    assert_eq!(phase(1), Duration::ZERO);
    assert_eq!(phase(0), Duration::from_micros(1_000));
    let found = verdict(&schedule, Releases::Periodic);
    // `hi` has a period of 10 ms and was woken up every 20 ms.
    assert!(found.violations > 0);
    assert!(
        found.first.iter().all(|v| v.rule == "release"),
        "{:?}",
        found.first
    );
    assert_eq!(found.late_releases.max_ns, 5_000);
    // Twice within a period is no such task.
    let mut events = round(0, 1_000);
    events.extend(round(5_000, 1_000));
    let text = text_of(&[events]);
    let records = read(&text).unwrap();
    let e = Schedule::of(&records, &set(), &names(), true)
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("jobs 1 and 2 of task `lo` were woken up within half a period"),
        "{e}"
    );
}

#[test]
fn a_thread_that_ends_ends_what_is_periodic_and_what_was_before_is_left_out() {
    // `hi` is seen at first when it sleeps; it ends after its second job.
    let mut events = vec![(0, 0, switch("hi", "S", "make"))];
    events.extend(round(10_000, 1_000));
    events.extend([
        (21_000, 0, waking("hi")),
        (21_003, 0, switch("make", "R", "hi")),
        (21_100, 0, switch("hi", "X", "make")),
        (90_000, 0, switch("make", "R", "idle")),
    ]);
    let text = text_of(&[events]);
    let records = read(&text).unwrap();
    let given = Schedule::of(&records, &set(), &names(), false).unwrap();
    assert_eq!(given.jobs, [2, 1]);
    let found = verdict(&given, Releases::Given);
    assert!(found.is_clean(), "{:?}", found.first);
    let periodic = Schedule::of(&records, &set(), &names(), true).unwrap();
    assert_eq!(
        periodic.notes,
        ["the schedule ends at 21.1ms, where the thread of task `hi` ends"]
    );
    let found = verdict(&periodic, Releases::Periodic);
    assert!(found.is_clean(), "{:?}", found.first);
}

#[test]
fn misses_and_losses_are_told() {
    let mut events = round(0, 1_000);
    events.pop();
    // `lo` ends 10 ms after its deadline; a job of `hi` never ends.
    events.push((30_000, 0, switch("lo", "S", "idle")));
    events.push((31_000, 0, waking("hi")));
    events.push((41_000, 0, switch("idle", "R", "make")));
    let text = text_of(&[events]);
    let records = read(&text).unwrap();
    let schedule = Schedule::of(&records, &set(), &names(), false).unwrap();
    let misses: Vec<_> = schedule
        .events
        .iter()
        .filter(|e| e.kind == EventKind::DeadlineMiss)
        .map(|e| (e.task.0, e.job, e.time.nanos() / 1000))
        .collect();
    assert_eq!(misses, [(1, 0, 30_000), (0, 1, 41_000)]);
    let cut = format!(
        "{text}CPU:0 [LOST 12 EVENTS]\n{}",
        kernel(&[(50_000, 0, &switch("make", "R", "hi"))])
    );
    let records = read(&cut).unwrap();
    let schedule = Schedule::of(&records, &set(), &names(), false).unwrap();
    assert_eq!(schedule.lost, 12);
    assert!(!verdict(&schedule, Releases::Given).is_clean());
}

#[test]
fn what_does_not_read_is_refused_with_its_line() {
    let good = text_of(&[round(0, 1_000), round(20_000, 1_000)]);
    let made = |text: &str, names: &[Named]| {
        let records = read(text)?;
        Schedule::of(&records, &set(), names, false).map(|_| ())
    };
    for (text, message) in [
        ("hello\n".to_owned(), "there is no event `sched_switch`"),
        (
            good.replace("prev_prio=94", "prev_prio=low"),
            "line 6: this event `sched_switch` does not read",
        ),
        (
            good.replace("[000]", "[9000]"),
            "line 3: there is no processor 9000",
        ),
        (
            good.replace("[000]", ""),
            "line 3: the event has no processor",
        ),
        (
            good.replacen("100.000000:", "soon:", 1),
            "line 3: the event has no time",
        ),
        (
            good.lines()
                .filter(|l| !l.contains("waking"))
                .collect::<Vec<_>>()
                .join("\n"),
            "task `lo` runs without having been woken up",
        ),
        (
            good.replace("pid=12 ", "pid=99 ") + &good,
            "threads 99 and 12 both have the name of task `lo`",
        ),
        (
            good.replace("lo ", "other "),
            "no thread has the name or number that task `lo` has: `lo`",
        ),
    ] {
        let e = made(&text, &names()).unwrap_err().to_string();
        assert!(e.contains(message), "{message}: {e}");
    }
    let by_number = [Named::Pid(11), Named::Pid(12)];
    assert!(made(&good, &by_number).is_ok());
    assert_eq!(
        Named::comm("a-name-longer-than-the-kernel-keeps"),
        Named::Comm("a-name-longer-t".to_owned())
    );
}
