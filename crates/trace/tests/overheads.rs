//! Overheads one by one, as a trace shows them.

mod support;

use model::{CpuId, Duration, Instant, Overhead};
use support::{header, real, tasks};
use trace::overheads::Overheads;
use trace::{Event, Sink, Statistics};

const CPU: CpuId = CpuId(0);

fn begin(ns: u64, overhead: Overhead) -> Event {
    Event::overhead_begin(Instant::from_nanos(ns), CPU, overhead, None)
}
fn end(ns: u64, overhead: Overhead) -> Event {
    Event::overhead_end(Instant::from_nanos(ns), CPU, overhead, None)
}

/// A decision with a release and a switch within it, a second release, a standstill of 500 ns in a
/// third one, and an interrupt that is on its way meanwhile.
fn events() -> Vec<Event> {
    use Overhead::{ContextSwitch, IpiLatency, Release, Scheduling};
    vec![
        begin(100, Scheduling),
        begin(110, IpiLatency),
        begin(120, Release),
        begin(130, ContextSwitch),
        end(140, ContextSwitch),
        end(150, Release),
        end(200, Scheduling),
        end(250, IpiLatency),
        begin(300, Release),
        end(350, Release),
        begin(400, Release),
        Event::standstill(Instant::from_nanos(1_000), CPU, Duration::from_nanos(500)),
        end(1_010, Release),
    ]
}

#[test]
fn what_lies_within_another_overhead_is_counted_once() {
    use Overhead::{ContextSwitch, IpiLatency, Release, Scheduling};
    let header = real(&header(tasks(&[(1, 10)]), "g-edf", &[1], &[0]));
    let mut overheads = Overheads::new(&header);
    for event in events() {
        overheads.record(event);
    }
    let all: Vec<_> = overheads
        .found()
        .drain()
        .map(|took| (took.overhead, took.length.nanos()))
        .collect();
    let expected = [
        (ContextSwitch, 10),
        (Release, 20),
        (Scheduling, 70),
        (IpiLatency, 140),
        (Release, 50),
    ];
    assert_eq!(all, expected);
    assert_eq!(overheads.found().disturbed(Release), 1);
    assert_eq!(overheads.senseless(), 0);
}

#[test]
fn statistics_tell_how_long_each_overhead_took() {
    let header = real(&header(tasks(&[(1, 10)]), "g-edf", &[1], &[0]));
    let mut statistics = Statistics::new(&header, false);
    // So often that most samples are settled when the sums are asked for.
    for round in 0..1_000 {
        for mut event in events() {
            event.time = Instant::from_nanos(event.time.nanos() + round * 2_000);
            statistics.record(event);
        }
    }
    let recorded = statistics.summary().recorded.unwrap();
    let of = |name: &str| {
        let found = recorded.overheads.iter().find(|o| o.overhead == name);
        let found = found.unwrap();
        (
            found.samples,
            found.stood_still,
            found.took.mean_ns,
            found.took.max_ns,
        )
    };
    assert_eq!(of("release"), (2_000, 1_000, 35, 50));
    assert_eq!(of("scheduling"), (1_000, 0, 70, 70));
    assert_eq!(of("ipi-latency"), (1_000, 0, 140, 140));
    assert_eq!(recorded.overheads.len(), 4);
}
