//! Files of SimSo: what is read, what is named, what is written.

use super::*;
use crate::task::TaskId;

fn file(tasks: &str) -> String {
    format!(
        r#"<?xml version="1.0" ?>
<simulation duration="20000000" cycles_per_ms="1000000" etm="acet">
  <sched overhead="0" overhead_activate="100" overhead_terminate="0" class="simso.schedulers.EDF"/>
  <caches memory_access_time="100"/>
  <processors>
    <processor name="CPU 1" id="1" cl_overhead="0" cs_overhead="0" speed="1.0"/>
    <processor name="CPU 2" id="2" cl_overhead="0" cs_overhead="0" speed="0.5"/>
  </processors>
  <tasks>{tasks}</tasks>
</simulation>"#
    )
}

const TWO: &str = r#"
    <task name="TASK 1" id="1" task_type="Periodic" abort_on_miss="yes" period="7.0" activationDate="0.5" list_activation_dates="" deadline="6.0" base_cpi="1.0" instructions="0" mix="0.5" WCET="2.000001" ACET="1.0" preemption_cost="0" et_stddev="0.5"/>
    <task name="late" id="2" task_type="Sporadic" abort_on_miss="no" period="1e1" activationDate="3" list_activation_dates="0.0, 12.0" deadline="10" base_cpi="1.0" instructions="0" mix="0.5" WCET="0.30000000000000004" ACET="0"/>
    <task name="once" id="3" task_type="APeriodic" period="5" deadline="5" WCET="1"/>"#;

#[test]
fn tasks_with_a_period_are_read_exactly_and_all_else_is_named() {
    let read = from_simso(&file(TWO)).unwrap();
    let ns = |t: Duration| t.nanos();
    let times: Vec<_> = read
        .set
        .timings()
        .iter()
        .map(|t| (ns(t.wcet), ns(t.period), ns(t.deadline)))
        .collect();
    // 0.3 ms and a bit of a nanosecond: a WCET is never understated.
    assert_eq!(
        times,
        [
            (2_000_001, 7_000_000, 6_000_000),
            (300_001, 10_000_000, 10_000_000)
        ]
    );
    let phase = |task| read.set.details(TaskId(task)).unwrap().phase.nanos();
    // A sporadic task is activated by its list there, not by a date.
    assert_eq!((phase(0), phase(1)), (500_000, 0));
    insta::assert_snapshot!(read.notes.join("\n"), @r"
    line 3: the scheduler `simso.schedulers.EDF` on 2 processors is no part of a task set: say `--policy g-edf -m 2`
    line 3: `overhead_activate` of 100 cycles is left out: costs stand in profiles here
    line 2: jobs execute by the model `acet` there; here for their WCET
    line 7: a processor with a speed of its own is not modeled: WCETs are taken as they are
    line 10: task `TASK 1` loses a job at its deadline there (`abort_on_miss`); here it goes on
    line 11: task `late` has times finer than a nanosecond: its WCET is rounded up, all else down
    line 11: task `late` is released at given dates there, which are left out
    line 12: task `once` is left out: it has no period
    ");
}

#[test]
fn what_is_written_reads_back() {
    let details = |name: &str, phase, priority| Details {
        phase: Duration::from_nanos(phase),
        priority,
        ..Details::named(name)
    };
    let timing = |wcet, period, deadline| Timing {
        wcet: Duration::from_nanos(wcet),
        period: Duration::from_nanos(period),
        deadline: Duration::from_nanos(deadline),
    };
    let set = TaskSet::new(vec![
        (timing(1, 1_000_000, 999_999), details("a b", 0, Some(7))),
        (
            timing(u64::MAX / 2, u64::MAX, u64::MAX),
            details("c-1_", 12_345, Some(9)),
        ),
    ])
    .unwrap();
    let (text, notes) = to_simso(&set, Duration::from_secs(1), 2).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(text.matches("<processor ").count(), 2);
    let again = from_simso(&text).unwrap();
    assert_eq!(again.set, set);
    assert_eq!(again.notes.len(), 1, "{:?}", again.notes);
    assert!(again.notes[0].contains("`simso.schedulers.FP` on 2 processors"));
}

/// SimSo 0.8.5 loaded a file that [`to_simso`] wrote, ran it, and saved this.
#[test]
fn what_simso_saves_is_read() {
    let read = from_simso(include_str!("saved.xml")).unwrap();
    let us = Duration::from_micros;
    let timing = |wcet, period, deadline| Timing {
        wcet: us(wcet),
        period: us(period),
        deadline: us(deadline),
    };
    assert_eq!(
        read.set.timings(),
        [timing(2100, 5000, 5000), timing(3000, 8000, 7500)]
    );
    assert_eq!(read.set.details(TaskId(0)).unwrap().phase, us(500));
    assert_eq!(read.notes.len(), 1, "{:?}", read.notes);
}

#[test]
fn what_is_no_file_of_simso_is_refused_in_one_sentence() {
    let task = |keys: &str| file(&format!("<task name=\"x\" {keys}/>"));
    for (text, message) in [
        (
            "<cheddar/>".to_owned(),
            "the outermost element is `cheddar`; files of SimSo begin with `simulation`",
        ),
        ("<simulation/>".to_owned(), "there is no element `tasks`"),
        ("<simulation>".to_owned(), "this is no XML"),
        (
            "<!DOCTYPE x [<!ENTITY a \"b\">]><simulation/>".to_owned(),
            "this is no XML",
        ),
        (file(""), "there are no tasks"),
        (
            task("period=\"5\" deadline=\"5\""),
            "line 9, task `x`: `WCET` is missing",
        ),
        (
            task("period=\"5\" deadline=\"5\" WCET=\"-1\""),
            "task `x`: `WCET`: `-1` is no number of milliseconds",
        ),
        (task("period=\"5\" deadline=\"5\" WCET=\"6\""), "task `x`: "),
        (
            task("period=\"1e400\" deadline=\"5\" WCET=\"1\""),
            "task `x`: `period`: `1e400` is no number",
        ),
        (
            task("period=\"5\" deadline=\"5\" WCET=\"1\" task_type=\"Odd\""),
            "`task_type`: `Odd` is no type of tasks",
        ),
        (
            task("period=\"5\" deadline=\"5\" WCET=\"1\" task_type=\"APeriodic\""),
            "no task has a period: ",
        ),
        (
            task("period=\"5\" deadline=\"5\" WCET=\"1\" priority=\"high\""),
            "`priority`: `high` is no priority",
        ),
    ] {
        let e = from_simso(&text).unwrap_err().to_string();
        assert!(e.contains(message), "{message}: {e}");
    }
    let odd = TaskSet::new(vec![(
        Timing::implicit(Duration::from_millis(1), Duration::from_millis(2)),
        Details::named("1st"),
    )]);
    let e = to_simso(&odd.unwrap(), Duration::from_secs(1), 1).unwrap_err();
    assert!(
        e.to_string().contains("SimSo refuses the name `1st`"),
        "{e}"
    );
}

#[test]
fn decimal_numbers_are_exact() {
    for (text, ns, cut) in [
        ("0", 0, false),
        ("7.", 7_000_000, false),
        (".5", 500_000, false),
        ("1e-6", 1, false),
        ("1e-7", 0, true),
        ("0.0000019", 1, true),
        ("12.50e2", 1_250_000_000, false),
        ("0e99999", 0, false),
        ("000000000000000000000000000000001", 1_000_000, false),
        ("18446744073709.551615", u64::MAX, false),
    ] {
        let read = millis(text).unwrap();
        assert_eq!((read.down.nanos(), read.cut), (ns, cut), "{text}");
    }
    for text in [
        "",
        ".",
        "e3",
        "1e",
        "-1",
        "+1",
        "nan",
        "inf",
        "1,5",
        "18446744073709.551616",
        "1e30",
    ] {
        assert!(millis(text).is_err(), "{text}");
    }
}
