//! Best-effort work beside a run that another engine carries out.

use super::program::Employment;
use super::{Beside, Done, Efforts, There, all_are_there, no_thread};
use crate::Programs;
use crate::programs::elsewhere::Elsewhere;
use crate::programs::run::Run;
use model::{CpuId, Error, Result};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// Those that are at work.
#[derive(Debug)]
pub struct Alongside {
    threads: Vec<(String, JoinHandle<Result<Done>>)>,
}

impl Alongside {
    /// Starts all of them, and waits until programs are there and held: what is done begins with
    /// the first release. `join` makes the calling thread, and what it starts, one of those that
    /// get what jobs leave. `programs`: those of the run, where one of them is a program.
    ///
    /// # Errors
    /// One of them is a program, and nobody looks after any, or it cannot be started; no thread can
    /// be had. Then the run is told to stop, and those that are there have ended.
    pub fn start(
        beside: &Arc<dyn Beside>,
        efforts: &Efforts,
        cpus: &[CpuId],
        join: fn() -> io::Result<()>,
        programs: Option<&Programs>,
    ) -> Result<Self> {
        let mut started = Alongside {
            threads: Vec::with_capacity(efforts.len()),
        };
        let all = started.start_all(beside, efforts, cpus, join, programs);
        if let Err(e) = all {
            beside.stop().store(true, Ordering::Release);
            // The first error is told.
            let _ = started.end();
            return Err(e);
        }
        Ok(started)
    }

    fn start_all(
        &mut self,
        beside: &Arc<dyn Beside>,
        efforts: &Efforts,
        cpus: &[CpuId],
        join: fn() -> io::Result<()>,
        programs: Option<&Programs>,
    ) -> Result<()> {
        let run = programs.map(Programs::run);
        let (there, awaited) = mpsc::channel();
        for (index, (name, effort)) in efforts.take().into_iter().enumerate() {
            let (beside, cpus, own) = (Arc::clone(beside), cpus.to_vec(), name.clone());
            let (run, there) = (run.clone(), there.clone());
            let mark = |run: &Arc<Elsewhere>| format!("{}best-effort-{index}", run.board().mark());
            let mark = run.as_ref().map_or_else(String::new, mark);
            let body = move || {
                let there = There(own, there);
                join().map_err(|e| {
                    there.tell(Error::new(format!("it cannot be put behind jobs: {e}")))
                })?;
                let employment = run.as_ref().map(|run| Employment {
                    number: run.tasks() + index as u32,
                    mark: &mark,
                    run: &**run,
                    beside: &*beside,
                    cpus: &cpus,
                });
                effort.carry_out(there, &*beside, &cpus, employment.as_ref())
            };
            let thread = std::thread::Builder::new()
                .name(name.chars().take(15).collect())
                .stack_size(256 << 10)
                .spawn(body)
                .map_err(no_thread)?;
            self.threads.push((name, thread));
        }
        drop(there);
        all_are_there(&awaited)
    }

    /// Waits for the end of all of them, which comes with that of the run. What came of them, by
    /// name.
    ///
    /// # Errors
    /// Of the first that failed.
    pub fn end(self) -> Result<Vec<Done>> {
        let ended = self.threads.into_iter().map(|(name, thread)| {
            let done = thread.join();
            // Panics of work are caught; nothing else in it could.
            done.unwrap_or_else(|_| {
                Err(Error::new("its thread panicked").at(format!("best effort {name}")))
            })
        });
        // All of them, whatever the first one says.
        let ended: Vec<Result<Done>> = ended.collect();
        let mut done = ended.into_iter().collect::<Result<Vec<_>>>()?;
        done.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use workload::Work;

    #[derive(Default)]
    struct Going {
        begun: AtomicBool,
        over: AtomicBool,
    }

    impl Beside for Going {
        fn has_begun(&self) -> bool {
            self.begun.load(Ordering::Acquire)
        }
        fn is_over(&self) -> bool {
            self.over.load(Ordering::Acquire)
        }
        fn stop(&self) -> &AtomicBool {
            &self.over
        }
    }

    struct Counting(Arc<AtomicU64>);
    impl Work for Counting {
        fn job(&mut self, _: u64, _: &AtomicBool) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn counting(rounds: &Arc<AtomicU64>) -> Effort {
        Effort::Work(Box::new(Counting(rounds.clone())))
    }

    struct Panicking;
    impl Work for Panicking {
        fn job(&mut self, _: u64, _: &AtomicBool) {
            panic!("on purpose");
        }
    }

    fn start(run: &Arc<Going>, effort: Effort, join: fn() -> io::Result<()>) -> Result<Alongside> {
        let efforts = Efforts::new(vec![("e".to_owned(), effort)]);
        let cpus: Vec<CpuId> = machine::realtime::affinity().unwrap().iter().collect();
        let beside: Arc<dyn Beside> = run.clone();
        Alongside::start(&beside, &efforts, &cpus, join, None)
    }

    #[test]
    fn work_begins_with_the_run_and_ends_with_it() {
        let (run, rounds) = (Arc::new(Going::default()), Arc::new(AtomicU64::new(0)));
        let efforts = start(&run, counting(&rounds), || Ok(())).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert_eq!(rounds.load(Ordering::Acquire), 0);
        run.begun.store(true, Ordering::Release);
        while rounds.load(Ordering::Acquire) < 10 {
            std::thread::yield_now();
        }
        run.over.store(true, Ordering::Release);
        let done = efforts.end().unwrap();
        assert_eq!(done[0].rounds, rounds.load(Ordering::Acquire));
        assert_eq!((done.len(), done[0].name.as_str()), (1, "e"));
    }

    #[test]
    fn what_fails_is_said_by_name() {
        let run = Arc::new(Going::default());
        run.begun.store(true, Ordering::Release);
        let panics = Effort::Work(Box::new(Panicking));
        let error = start(&run, panics, || Ok(())).unwrap().end().unwrap_err();
        assert!(error.to_string().contains("best effort e"), "{error}");
        assert!(error.cause().contains("panicked"), "{error}");
        let refused = || Err(io::Error::other("no right"));
        let counting = counting(&Arc::default());
        let error = start(&run, counting, refused).unwrap_err();
        assert!(
            error.to_string().contains("best effort e: it cannot"),
            "{error}"
        );
        assert!(error.cause().contains("no right"), "{error}");
        assert!(run.over.load(Ordering::Acquire), "the run is told to stop");
        let program = Effort::Program {
            command: vec!["/bin/true".to_owned()],
            rights: crate::Rights::Kept,
        };
        let error = start(&run, program, || Ok(())).unwrap_err();
        assert!(error.to_string().contains("best effort e"), "{error}");
        assert!(error.cause().contains("looks after programs"), "{error}");
    }
}
