//! Domains share no lock: while the dispatcher of one is held up within its decision, its lock in
//! hand, the others go on deciding.

mod support;

use execute::watchdog::Patience;
use execute::{Settings, kernel};
use model::watch::Silent;
use model::{Duration, Instant, TaskId};
use policy::{Decisions, Domain, DomainId, Event, Plan, Policy, Route};
use std::sync::{Arc, OnceLock};
use support::{Live, Ready, SpinFor, ms, set_of};
use trace::{EventKind, VecSink};
use workload::Work;

/// From when to when the decision was held up, in readings of the clock.
type Held = Arc<OnceLock<(u64, u64)>>;

/// One processor by earliest deadlines, whose decision is held up once.
#[derive(Clone)]
struct HeldUp {
    ready: Ready,
    /// From this moment on; nowhere else.
    from: Option<Instant>,
    held: Held,
}

/// Less than the recorder waits for events.
const HOLD: Duration = ms(150);

impl Policy for HeldUp {
    fn happen(&mut self, event: Event, _: Instant) {
        self.ready.happen(event);
    }

    fn decide(&mut self, now: Instant, out: &mut impl Decisions) {
        if self.from.is_some_and(|from| now >= from) {
            self.from = None;
            let begun = kernel::monotonic();
            std::thread::sleep(std::time::Duration::from_nanos(HOLD.nanos()));
            self.held.set((begun, kernel::monotonic())).unwrap();
        }
        let first = self.ready.jobs.iter().min_by_key(|j| (j.deadline, j.task));
        self.ready.run(first.map(|j| j.task), out);
    }
}

fn one_domain_decides_while_the_lock_of_another_is_held(live: &Live) {
    let set = set_of(&[(2, 10), (2, 10), (2, 10)]);
    let cpus = live.platform.in_cache_order();
    let held = Held::default();
    let domain = |place: usize, from: Option<Instant>| Domain {
        cpus: vec![cpus[place]],
        policy: HeldUp {
            ready: Ready::default(),
            from,
            held: Arc::clone(&held),
        },
    };
    let plan = Plan {
        domains: vec![domain(0, Some(Instant::ZERO + ms(300))), domain(1, None)],
        route: Route::Fixed([0, 1, 1].map(DomainId).into()),
    };
    let works: Vec<Box<dyn Work>> = set
        .ids()
        .map(|_| Box::new(SpinFor(ms(1))) as Box<dyn Work>)
        .collect();
    let settings = Settings {
        horizon: ms(800),
        patience: Patience {
            dispatcher: Duration::from_secs(2),
            ..Patience::default()
        },
        ..Settings::default()
    };
    let mut sink = VecSink::default();
    let outcome =
        execute::run_plan(plan, &set, works, &settings, &Silent, &mut sink, |_| ()).unwrap();
    assert_eq!(outcome.lost, 0);
    let (begun, ended) = held.get().expect("the decision was never held up");
    let (begun, ended) = (begun - outcome.origin, ended - outcome.origin);
    let done = |on: usize| {
        let within = |e: &&trace::Event| e.time.nanos() > begun && e.time.nanos() < ended;
        let of = |e: &&trace::Event| e.kind == EventKind::Completion && e.cpu() == Some(cpus[on]);
        sink.events.iter().filter(within).filter(of).count()
    };
    // Thirty jobs were due there; a machine that stops for a while may have let a few wait.
    assert_eq!(done(0), 0);
    assert!(done(1) >= 10, "only {} jobs were done meanwhile", done(1));
    // And the one that was held up goes on.
    let after = sink
        .events
        .iter()
        .filter(|e| e.task == TaskId(0) && e.kind == EventKind::Completion);
    assert!(after.filter(|e| e.time.nanos() > ended).count() > 10);
}

live_tests!(one_domain_decides_while_the_lock_of_another_is_held);
