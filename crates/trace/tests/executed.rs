//! What jobs of a real run say that they executed, against what the trace shows.

mod support;

use model::{CpuId, Details, Duration, Instant, TaskId, TaskSet, Timing};
use support::{check, header, ms, real};
use trace::{Event, Header};

/// T1 and T2 on one processor, where T2 is preempted once and says that it executed for `said`.
fn preempted(real: &Header, said: Duration, stood: Option<Duration>) -> trace::Verdict {
    let (cpu, at) = (CpuId(0), |us: u64| {
        Instant::ZERO + Duration::from_micros(us)
    });
    let (one, two) = (TaskId(0), TaskId(1));
    let switch = |from: u64, to: u64, task, job| {
        let (kind, job) = (trace::Overhead::ContextSwitch, Some((task, job)));
        [
            Event::overhead_begin(at(from), cpu, kind, job),
            Event::overhead_end(at(to), cpu, kind, job),
        ]
    };
    let mut events = vec![Event::release(at(0), cpu, two, 0, at(40_000))];
    events.extend(switch(0, 50, two, 0));
    events.push(Event::start(at(50), cpu, two, 0));
    events.push(Event::release(at(5_000), cpu, one, 0, at(25_000)));
    events.push(Event::preemption(at(5_000), cpu, two, 0));
    events.extend(switch(5_000, 5_030, one, 0));
    events.push(Event::start(at(5_030), cpu, one, 0));
    events.extend(stood.map(|length| Event::standstill(at(15_000), cpu, length)));
    events.push(Event::completion(at(15_000), cpu, one, 0, ms(9)));
    events.extend(switch(15_000, 15_020, two, 0));
    events.push(Event::resumption(at(15_020), cpu, cpu, two, 0));
    events.push(Event::completion(at(17_020), cpu, two, 0, said));
    events.push(Event::idle(at(17_020), cpu));
    events.push(Event::end(at(20_000)));
    check(real, &events)
}

/// What a job says that it executed may exceed what is shown by what the record leaves room for,
/// each with its reason, and by no more.
#[test]
fn in_a_real_run_a_job_executes_for_no_longer_than_the_trace_leaves_room_for() {
    let details = |name: &str, phase: u64| Details {
        phase: ms(phase),
        ..Details::named(name.to_owned())
    };
    let set = TaskSet::new(vec![
        (Timing::implicit(ms(10), ms(20)), details("T1", 5)),
        (Timing::implicit(ms(20), ms(40)), details("T2", 0)),
    ]);
    let real = real(&header(set.unwrap(), "p-edf", &[1], &[0, 0]));
    // Shown: 4,950 us before the preemption and 2,000 us after it. Room: the switches to it, 50 us
    // and 20 us, 30 us with nobody shown, twice the tolerance of 1 ms (when it was taken off, and
    // when the other one left), and a thousandth of what it says.
    let shown = 6_950;
    let room = 50 + 20 + 30 + 2_000;
    let us = Duration::from_micros;
    let fine = preempted(&real, us(shown + room), None);
    assert_eq!(fine.first, []);
    assert_eq!(fine.unseen.max_ns, room * 1_000);
    let rules = |said: u64, stood| -> Vec<&'static str> {
        let verdict = preempted(&real, us(said), stood);
        verdict.first.iter().map(|v| v.rule).collect()
    };
    let slewed = (shown + room) / 1_000 + 1;
    assert_eq!(rules(shown + room + slewed, None), ["execution"]);
    // While its processor stood still the clock of its thread may have gone on.
    assert_eq!(
        rules(shown + room + slewed + 3_000, Some(us(3_000))),
        [""; 0]
    );
    assert_eq!(
        rules(shown + room + slewed + 3_010, Some(us(3_000))),
        ["execution"]
    );
    // A job that was never taken off has no room but the switch to it.
    assert_eq!(rules(0, None), [""; 0]);
}
