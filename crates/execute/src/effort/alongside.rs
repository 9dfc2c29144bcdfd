//! Best-effort work beside a run that another engine carries out.

use super::{Beside, Done, Effort, Efforts, work_on};
use model::{CpuId, Error, Result};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Those that are at work.
#[derive(Debug)]
pub struct Alongside {
    threads: Vec<(String, JoinHandle<Result<Done>>)>,
}

impl Alongside {
    /// Starts all of them; they wait for the first release. `join` makes the calling thread one of
    /// those that get what jobs leave.
    ///
    /// # Errors
    /// One of them is a program; no thread can be had. Those that are there end with the run.
    pub fn start(
        beside: &Arc<dyn Beside>,
        efforts: &Efforts,
        cpus: &[CpuId],
        join: fn() -> Result<()>,
    ) -> Result<Self> {
        let mut threads = Vec::with_capacity(efforts.len());
        for (name, effort) in efforts.take() {
            let Effort::Work(work) = effort else {
                return Err(
                    Error::new("this engine runs no programs as best-effort work")
                        .at(format!("best effort {name}"))
                        .remedy("run the set from user space"),
                );
            };
            let (beside, cpus, own) = (Arc::clone(beside), cpus.to_vec(), name.clone());
            let body = move || {
                join()?;
                let (executed, rounds) = work_on(&*beside, work, &cpus)?;
                Ok(Done {
                    name: own,
                    executed,
                    rounds,
                    ended: None,
                })
            };
            let thread = std::thread::Builder::new()
                .name(name.chars().take(15).collect())
                .stack_size(256 << 10)
                .spawn(body)
                .map_err(|e| {
                    Error::new(format!("cannot start a thread for best-effort work: {e}"))
                })?;
            threads.push((name, thread));
        }
        Ok(Alongside { threads })
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
            done.unwrap_or_else(|_| Err(Error::new("its thread panicked")))
                .map_err(|e| e.at(format!("best effort {name}")))
        });
        let mut done = ended.collect::<Result<Vec<_>>>()?;
        done.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use workload::Work;

    #[derive(Default)]
    struct Run {
        begun: AtomicBool,
        over: AtomicBool,
    }

    impl Beside for Run {
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

    struct Panicking;
    impl Work for Panicking {
        fn job(&mut self, _: u64, _: &AtomicBool) {
            panic!("on purpose");
        }
    }

    fn start(run: &Arc<Run>, work: Box<dyn Work>, join: fn() -> Result<()>) -> Result<Alongside> {
        let efforts = Efforts::new(vec![("e".to_owned(), Effort::Work(work))]);
        let cpus: Vec<CpuId> = machine::realtime::affinity().unwrap().iter().collect();
        let beside: Arc<dyn Beside> = run.clone();
        Alongside::start(&beside, &efforts, &cpus, join)
    }

    #[test]
    fn work_begins_with_the_run_and_ends_with_it() {
        let (run, rounds) = (Arc::new(Run::default()), Arc::new(AtomicU64::new(0)));
        let efforts = start(&run, Box::new(Counting(rounds.clone())), || Ok(())).unwrap();
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
        let run = Arc::new(Run::default());
        run.begun.store(true, Ordering::Release);
        let error = start(&run, Box::new(Panicking), || Ok(()))
            .unwrap()
            .end()
            .unwrap_err();
        assert!(error.to_string().contains("best effort e"), "{error}");
        assert!(error.cause().contains("panicked"), "{error}");
        let refused = || Err(Error::new("no right"));
        let counting = Box::new(Counting(Arc::default()));
        let error = start(&run, counting, refused).unwrap().end().unwrap_err();
        assert!(error.to_string().contains("no right"), "{error}");
    }
}
