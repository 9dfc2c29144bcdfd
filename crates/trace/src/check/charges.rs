//! What a simulation was charged for (002 §2.4): every overhead lasts as long as the head says,
//! none is left out, none is made up.
//!
//! Of simulated traces whose head has charges, exactly:
//!
//! - Work in the kernel is not interrupted: it ends when its time is over. An interrupt on its way
//!   arrives when its latency is.
//! - Whoever executes, or idles, does so only when all interrupts that have come are serviced:
//!   releases on the processor that handles them, timers that it has to program ([`Transfers`]),
//!   and ticks.
//! - A job is put on by a switch to it, and switched to by a decision for it; what is free leaves
//!   no trace.
//! - Whoever has let its job go, or was called by an inter-processor interrupt, decides before it
//!   goes on.
//! - A job that goes on reloads its working set for as long as the way says in which it went on,
//!   interrupts not counted, unless it leaves before. If it left before the time before, what it
//!   had to load then is still where it was: the longer delay counts.

use crate::check::transfers::Transfers;
use crate::event::{Event, EventKind};
use crate::header::{Charges, Header};
use crate::state::{Fault, Open, State, nth};
use model::Overhead;
use model::{CpuId, Duration, Instant, Platform, Resumption, TaskId};

/// What is known of a processor.
#[derive(Clone, Default)]
struct Processor {
    /// Releases that it has to service, as they came.
    releases: Vec<(TaskId, u64)>,
    ticks: u64,
    /// Has anything happened on it? One that no policy uses has no ticks.
    used: bool,
    /// For whom a decision has ended, and when.
    chosen: Option<(TaskId, u64, Instant)>,
    /// For whom a switch has ended, or a decision where switches are free, and when.
    ready: Option<(TaskId, u64, Instant)>,
    /// Is it to decide?
    must_choose: bool,
    /// What the job has to reload, what of it is done, and since when it goes on.
    reload: Option<Reload>,
}

#[derive(Clone, Copy)]
struct Reload {
    job: (TaskId, u64),
    whole: Duration,
    begun: Instant,
    /// Has it begun, in the trace?
    told: bool,
    /// Time that interrupts took meanwhile.
    interrupted: Duration,
}

/// The rule.
pub struct Charged {
    charges: Charges,
    platform: Platform,
    /// The columns of the cache delays.
    kinds: Vec<Resumption>,
    processors: Vec<Processor>,
    /// By task, how long the reload takes in whole that its job began, and did not finish, when it
    /// was on a processor last.
    unfinished: Vec<Duration>,
    /// May jobs, other than by their release, come to a processor as slices?
    has_slices: bool,
    transfers: Transfers,
}

impl Charged {
    /// With what the head of a trace says.
    pub fn new(charges: Charges, header: &Header, has_slices: bool, processors: usize) -> Self {
        Charged {
            unfinished: vec![Duration::ZERO; charges.cpmd.len()],
            transfers: Transfers::new(header, processors),
            charges,
            kinds: header.platform.resumptions(),
            platform: header.platform.clone(),
            processors: vec![Processor::default(); processors],
            has_slices,
        }
    }

    fn cost(&self, overhead: Overhead) -> Duration {
        let c = &self.charges;
        match overhead {
            Overhead::Release => c.release,
            Overhead::Scheduling => c.scheduling,
            Overhead::ContextSwitch => c.context_switch,
            Overhead::IpiLatency => c.ipi_latency,
            Overhead::TimerTransfer => c.timer_transfer,
            Overhead::Tick => c.tick,
            Overhead::Cpmd => Duration::ZERO,
        }
    }

    /// What a job has to reload that goes on at `to` after it ran at `from`.
    fn delay(&self, task: TaskId, from: CpuId, to: CpuId) -> Duration {
        let kind = self.platform.resumption(from, to);
        let column = self.kinds.iter().position(|k| *k == kind);
        let row = self.charges.cpmd.get(task.index());
        row.zip(column)
            .and_then(|(row, column)| row.get(column))
            .copied()
            .unwrap_or_default()
    }

    /// An event is about to change the state; `open` is the innermost overhead on its processor, or
    /// the interrupt that is the first to arrive there.
    pub fn event(&mut self, event: &Event, state: &State, faults: &mut Vec<Fault>) {
        let Some(cpu) = event.cpu() else { return };
        let now = event.time;
        self.processors[cpu.index()].used = true;
        if !self.charges.timer_transfer.is_zero() {
            self.transfers.event(event, cpu, state, faults);
        }
        match event.kind {
            EventKind::Release if !self.charges.release.is_zero() => {
                self.processors[cpu.index()]
                    .releases
                    .push((event.task, event.job));
            }
            EventKind::OverheadBegin => {
                let open = state.processors[cpu.index()].overheads.last();
                let within = open.filter(|o| o.overhead != Overhead::Cpmd);
                if let (Some(open), Some(begins)) = (within, event.overhead_kind())
                    && begins.occupies_processor()
                {
                    faults.push(Fault {
                        rule: "overhead",
                        text: format!(
                            "{begins} begins on {cpu:?} while {} is not over",
                            open.overhead
                        ),
                    });
                }
                self.begin(event, cpu, faults);
            }
            EventKind::OverheadEnd => {
                if let Some(overhead) = event.overhead_kind() {
                    let on = &state.processors[cpu.index()];
                    let open = match overhead.occupies_processor() {
                        true => on.overheads.last().filter(|o| o.overhead == overhead),
                        false => on.interrupts.front(),
                    };
                    if let Some(open) = open.copied() {
                        self.end(event, cpu, open, faults);
                    }
                }
            }
            EventKind::Start | EventKind::Resumption | EventKind::Migration => {
                self.put_on(event, cpu, faults);
            }
            EventKind::Preemption | EventKind::Completion | EventKind::Suspension => {
                self.processors[cpu.index()].must_choose = !self.charges.scheduling.is_zero();
                let reload = self.processors[cpu.index()].reload.take();
                if let Some(unfinished) = self.unfinished.get_mut(event.task.index()) {
                    *unfinished = Duration::ZERO;
                }
                let Some(reload) = reload.filter(|r| !r.whole.is_zero() || r.told) else {
                    return;
                };
                let done = now.since(reload.begun).saturating_sub(reload.interrupted);
                if let Some(unfinished) = self.unfinished.get_mut(event.task.index())
                    && done < reload.whole
                {
                    *unfinished = reload.whole;
                }
                // One that leaves before it has reloaded anything began to, all the same.
                if !reload.told
                    || done > reload.whole
                    || event.kind != EventKind::Preemption && done < reload.whole
                {
                    faults.push(reloaded(&reload, done));
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, cpu: CpuId, faults: &mut Vec<Fault>) {
        let Some(overhead) = event.overhead_kind() else {
            return;
        };
        let processor = &mut self.processors[cpu.index()];
        match overhead {
            Overhead::Release => {
                // By task: of several that wait, the oldest is serviced, wherever it came.
                match processor
                    .releases
                    .iter()
                    .position(|(task, _)| *task == event.task)
                {
                    Some(at) => {
                        processor.releases.remove(at);
                    }
                    None if self.has_slices => {}
                    None => faults.push(Fault {
                        rule: "overhead",
                        text: format!(
                            "{cpu:?} services a release that did not come, or a second time"
                        ),
                    }),
                }
            }
            Overhead::TimerTransfer => self.transfers.begin(event.task, cpu, faults),
            Overhead::Tick => processor.ticks += 1,
            Overhead::Scheduling => processor.must_choose = false,
            Overhead::ContextSwitch => {
                let explained =
                    processor.chosen.take() == Some((event.task, event.job, event.time));
                if !explained && !self.charges.scheduling.is_zero() {
                    faults.push(Fault {
                        rule: "overhead",
                        text: format!("{cpu:?} switches, and has not just decided to"),
                    });
                }
            }
            Overhead::Cpmd => match &mut processor.reload {
                Some(reload)
                    if !reload.told && reload.begun == event.time && !reload.whole.is_zero() =>
                {
                    reload.told = true;
                }
                _ => faults.push(Fault {
                    rule: "overhead",
                    text: format!("a cache delay begins on {cpu:?} that nothing explains"),
                }),
            },
            _ => {}
        }
    }

    fn end(&mut self, event: &Event, cpu: CpuId, open: Open, faults: &mut Vec<Fault>) {
        let lasted = event.time.since(open.since);
        let overhead = open.overhead;
        let whole = self.cost(overhead);
        let processor = &mut self.processors[cpu.index()];
        if overhead == Overhead::Cpmd {
            // How long it lasted is judged when the job executes or leaves.
            return;
        }
        if lasted != whole {
            faults.push(Fault {
                rule: "overhead",
                text: format!("it lasted {lasted}, and is charged as {whole}"),
            });
        }
        if !overhead.occupies_processor() {
            // One that hands a slice over is serviced as its release.
            processor.must_choose |= !self.charges.scheduling.is_zero() && !self.has_slices;
            return;
        }
        if overhead == Overhead::Scheduling {
            processor.chosen = open.job.map(|(task, job)| (task, job, event.time));
        }
        if let Some(reload) = &mut processor.reload {
            reload.interrupted = reload.interrupted.saturating_add(lasted);
        }
        let switches = match self.charges.context_switch.is_zero() {
            true => Overhead::Scheduling,
            false => Overhead::ContextSwitch,
        };
        if overhead == switches {
            processor.ready = open.job.map(|(task, job)| (task, job, event.time));
        }
    }

    fn put_on(&mut self, event: &Event, cpu: CpuId, faults: &mut Vec<Fault>) {
        let explained = (event.task, event.job, event.time);
        let free = self.charges.context_switch.is_zero() && self.charges.scheduling.is_zero();
        let whole = match event.kind {
            EventKind::Start => Duration::ZERO,
            EventKind::Resumption => self.delay(event.task, cpu, cpu),
            _ => {
                let from = CpuId(u32::try_from(event.argument).unwrap_or(u32::MAX));
                self.delay(event.task, from, cpu)
            }
        };
        let unfinished = self.unfinished.get(event.task.index());
        let whole = match (event.kind, unfinished) {
            (EventKind::Start, _) | (_, None) => whole,
            (_, Some(unfinished)) => whole.max(*unfinished),
        };
        let processor = &mut self.processors[cpu.index()];
        processor.reload = Some(Reload {
            job: (event.task, event.job),
            whole,
            begun: event.time,
            told: false,
            interrupted: Duration::ZERO,
        });
        if !free && processor.ready.take() != Some(explained) {
            faults.push(Fault {
                rule: "overhead",
                text: "it is put on, and no switch to it has just ended".to_owned(),
            });
        }
    }

    /// Overheads that go on beyond what is charged for them end between `from` and `to`.
    fn end_in_time(&self, from: Instant, to: Instant, state: &State, faults: &mut Vec<Fault>) {
        for (cpu, on) in state.processors.iter().enumerate() {
            let kernel = on.overheads.iter().filter(|o| o.overhead != Overhead::Cpmd);
            for open in kernel.chain(&on.interrupts) {
                let whole = self.cost(open.overhead);
                let ends = open.since.checked_add(whole);
                // Said once: when time goes past the moment.
                if ends.is_some_and(|ends| from <= ends && ends < to) {
                    faults.push(Fault {
                        rule: "overhead",
                        text: format!(
                            "{} on P{cpu} is charged as {whole}, and goes on",
                            open.overhead
                        ),
                    });
                }
            }
        }
    }

    /// Everything holds still from `from` to `to`, a later moment.
    pub fn hold(&mut self, from: Instant, to: Instant, state: &State, faults: &mut Vec<Fault>) {
        self.end_in_time(from, to, state, faults);
        let period = self.charges.tick_period.nanos();
        let due = match self.charges.tick.is_zero() {
            // All that came before `to`: whoever holds still until then takes none in.
            false => (to.nanos() - 1).checked_div(period).unwrap_or(0),
            true => 0,
        };
        for (cpu, processor) in self.processors.iter_mut().enumerate() {
            let on = &state.processors[cpu];
            let cpu = CpuId(cpu as u32);
            if !processor.used || on.overheads.iter().any(|o| o.overhead != Overhead::Cpmd) {
                continue;
            }
            // It executes, reloads or idles.
            if let Some((task, job)) = processor.releases.first().copied() {
                processor.releases.clear();
                faults.push(Fault {
                    rule: "overhead",
                    text: format!(
                        "{cpu:?} goes on although the release of job {} of task {} is not serviced",
                        nth(job),
                        task.0 + 1
                    ),
                });
            }
            if let Some(task) = self.transfers.missing(cpu) {
                faults.push(Fault {
                    rule: "overhead",
                    text: format!(
                        "{cpu:?} goes on although it has programmed no timer for task {}",
                        task.0 + 1
                    ),
                });
            }
            if std::mem::take(&mut processor.must_choose) {
                faults.push(Fault {
                    rule: "overhead",
                    text: format!("{cpu:?} goes on without having decided what to run"),
                });
            }
            if processor.ticks != due {
                let ticks = std::mem::replace(&mut processor.ticks, due);
                faults.push(Fault {
                    rule: "overhead",
                    text: format!("{cpu:?} has serviced {ticks} ticks, and {due} were due"),
                });
            }
            let Some(reload) = &mut processor.reload else {
                continue;
            };
            let reloading = on.overheads.iter().any(|o| o.overhead == Overhead::Cpmd);
            let done = |at: Instant| at.since(reload.begun).saturating_sub(reload.interrupted);
            // Where it executes, it has reloaded all; and it reloads no longer than that.
            let (done, kept) = match reloading {
                false => {
                    let done = done(from);
                    (
                        done,
                        done == reload.whole || (reload.whole.is_zero() && !reload.told),
                    )
                }
                true => (done(to), done(to) <= reload.whole),
            };
            if on.running.is_some() && !kept {
                faults.push(reloaded(reload, done));
            }
            if !reloading || !kept {
                // From now on it only executes.
                processor.reload = None;
            }
        }
    }
}

fn reloaded(reload: &Reload, done: Duration) -> Fault {
    Fault {
        rule: "overhead",
        text: format!(
            "job {} of task {} has reloaded its working set for {done}, and is charged {}",
            nth(reload.job.1),
            reload.job.0.0 + 1,
            reload.whole
        ),
    }
}
