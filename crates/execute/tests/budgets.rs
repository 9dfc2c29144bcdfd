//! Jobs that execute for longer than their WCET: they go on, or are cut short and leave the rest to
//! their successors.

mod support;

use execute::{Launch, Manner, Performer, Rights, Settings};
use model::{Beyond, Duration, Enforcement};
use std::sync::atomic::AtomicBool;
use support::{Live, Ran, SpinFor, ms, set_of};
use trace::{EventKind, Flags};
use workload::Work;

/// Takes as much as its WCET and a half in every fourth job, half of it otherwise.
struct Overruns(Duration);
impl Work for Overruns {
    fn job(&mut self, number: u64, stop: &AtomicBool) {
        let percent = if number.is_multiple_of(4) { 150 } else { 50 };
        SpinFor(Duration::from_nanos(self.0.nanos() * percent / 100)).job(number, stop);
    }
}

fn run(live: &Live, enforcement: Enforcement) -> Ran {
    let set = set_of(&[(8, 40), (2, 20)]);
    let works: Vec<Box<dyn Work>> = vec![Box::new(Overruns(ms(8))), Box::new(SpinFor(ms(1)))];
    let settings = Settings {
        horizon: ms(1600),
        enforcement,
        quantum: ms(4),
        ..Settings::default()
    };
    let assignment = live.assign(&"p-edf".parse().unwrap(), &set);
    let ran = live
        .run_works("p-edf", &set, assignment, works, &settings)
        .unwrap();
    ran.is_sound();
    assert_eq!(ran.statistics.tasks[0].jobs, 40);
    ran
}

/// What the completed jobs of the first task say that they executed, and whether they were cut.
fn executed(ran: &Ran) -> Vec<(bool, Duration)> {
    let done = |e: &&trace::Event| e.kind == EventKind::Completion && e.task.0 == 0;
    let of = |e: &trace::Event| (e.flags.has(Flags::CUT), Duration::from_nanos(e.argument));
    ran.events.iter().filter(done).map(of).collect()
}

fn without_enforcement_jobs_go_on(live: &Live) {
    let ran = run(live, Enforcement::Off);
    assert_eq!(ran.statistics.tasks[0].cut, 0);
    assert_eq!(
        executed(&ran)
            .iter()
            .filter(|(_, time)| *time >= ms(12))
            .count(),
        10
    );
}

fn exact_budgets_cut_jobs_short_and_their_successors_do_the_rest(live: &Live) {
    let ran = run(live, Enforcement::Exact);
    let t1 = &ran.statistics.tasks[0];
    // Every fourth job leaves half a WCET to the next, which needs all of its own budget then, or a
    // little more.
    assert!(t1.cut >= 10 && t1.cut <= 20, "{}", t1.cut);
    assert_eq!(Some(t1.cut), t1.recorded.map(|r| r.budget_exhausted));
    for (cut, time) in executed(&ran) {
        assert!(!cut || time >= ms(8), "cut after {time}");
    }
}

fn budgets_by_quanta_end_at_their_boundaries(live: &Live) {
    let ran = run(live, Enforcement::PerQuantum);
    let cut = |e: &&trace::Event| e.kind == EventKind::BudgetExhausted;
    let cuts: Vec<u64> = ran
        .events
        .iter()
        .filter(cut)
        .map(|e| e.time.nanos())
        .collect();
    assert!(cuts.len() >= 10, "{}", cuts.len());
    let late = 2 * ran.outcome.latest.nanos() + 2_000_000;
    assert!(cuts.iter().all(|t| t % 4_000_000 <= late), "{cuts:?}");
}

/// Three processes of one program that never sleep, and have 2 ms together at a time.
fn all_that_a_program_has_started_takes_turns(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("turns");
    let script = format!(
        "f() {{ i=0; while :; do i=$((i+1)); [ $((i % 50)) = 0 ] && echo $1 >> {}; done; }}; f a & f b & f c",
        file.display()
    );
    let launch = Launch {
        command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        manner: Manner::Unmodified(Beyond::Hold),
        rights: Rights::default(),
        output: None,
    };
    let settings = Settings {
        horizon: ms(3000),
        ..Settings::default()
    };
    let works = vec![Performer::Program(launch)];
    let ran = live
        .run_works("g-edf", &set_of(&[(2, 20)]), None, works, &settings)
        .unwrap();
    ran.is_sound();
    let text = std::fs::read_to_string(&file).unwrap();
    let of = |who: &str| text.lines().filter(|line| *line == who).count();
    let turns = ["a", "b", "c"].map(of);
    let all: usize = turns.iter().sum();
    assert!(turns.iter().all(|n| *n > 0 && 10 * n > all), "{turns:?}");
}

live_tests!(
    all_that_a_program_has_started_takes_turns,
    without_enforcement_jobs_go_on,
    exact_budgets_cut_jobs_short_and_their_successors_do_the_rest,
    budgets_by_quanta_end_at_their_boundaries
);
