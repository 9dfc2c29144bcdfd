//! The end of a run: threads put away, what came of it added up.

use super::Engine;
use crate::engine::{Ending, Maker, Outcome};
use crate::programs::ends::ProgramEnd;
use crate::stage::Tally;
use crate::threads::host::ThreadTeam;
use model::{Duration, Error, Instant, Result, TaskId};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use trace::Sink;

/// How long threads have to come back.
const GRACE: std::time::Duration = std::time::Duration::from_millis(1500);
/// How long the end of a run may take, in which each kind of threads has its [`GRACE`].
const END: Duration = Duration::from_secs(15);

impl<M: Maker> Engine<M> {
    /// Lets all threads end, and puts those away that do not.
    pub(super) fn dismiss(&mut self) -> (Vec<TaskId>, Vec<ProgramEnd>) {
        let board = self.team.host.board.clone();
        board.ends(END);
        self.team.end();
        wait_for(&self.team, self.dispatchers.iter().map(|(_, d)| d));
        // Nobody decides any more, or the watchdog has lowered who does.
        board.lower_all();
        self.team.host.stop.store(true, Ordering::Release);
        wait_for(&self.team, &self.sentinels);
        wait_for(&self.team, self.standstills.iter().chain(&self.slack));
        wait_for(&self.team, self.efforts.threads());
        if let Some(listener) = &self.listener {
            listener.stop();
            wait_for(&self.team, std::iter::once(&listener.thread));
        }
        for worker in self
            .team
            .host
            .workers
            .iter()
            .filter(|w| w.program().is_none())
        {
            worker.open();
            worker.wake();
        }
        wait_for(&self.team, self.workers.iter().flatten());
        let mut stuck = Vec::new();
        for (task, thread) in self.workers.iter().enumerate() {
            if thread.as_ref().is_some_and(|t| !t.is_finished()) {
                // Not stopped: it may hold a lock that others need, that of the memory allocator
                // above all. It gets what nobody else wants, until it comes back or the process
                // ends. It fails where the thread ends after all.
                let _ = self.team.host.workers[task].thread().idle();
                stuck.push(TaskId(task as u32));
            }
        }
        let programs = self.keeper.end(&*self.team);
        board.unsupervised();
        (stuck, programs)
    }

    /// After everything: threads put away, the rest of the events handed on.
    pub(in crate::engine) fn end<S: Sink>(
        mut self,
        ended: Result<Ending>,
        sink: &mut S,
    ) -> Result<Outcome> {
        let now = self.team.now();
        let (stuck, programs) = self.dismiss();
        // What went wrong since the last look.
        let ended = ended.and_then(|ending| {
            self.team
                .fault()
                .map_or(Ok(ending), |fault| Err(fault.clone()))
        });
        let Some(mut collector) = self.collector.take() else {
            return Err(Error::new("the run has ended before"));
        };
        if !self.dispatchers.iter().all(|(_, d)| d.is_finished()) {
            // Somebody is still in a domain: what it has written so far is all there is.
            collector.collect(now, sink);
            return ended.and(Err(Error::new("a dispatcher did not come back")));
        }
        let kept = self.kept();
        let mut all = std::mem::take(&mut self.past);
        for (_, stage) in &self.stages {
            all.add(stage.tally(), kept);
        }
        let Tally {
            decisions,
            mut steps,
            mut thoughts,
            mut calls,
            mut latencies,
            end,
            profiled,
        } = all;
        // The last stage that has ruled: one that was only made ready knows of nothing.
        let ruling = self.team.ruling();
        if let Some((_, stage)) = self.stages.iter().rfind(|(number, _)| *number <= ruling) {
            stage.show_unfinished(&self.team, end);
        }
        let lost = collector.finish(end, sink);
        let lateness = self.team.host.posts.iter().map(|p| p.lateness());
        for samples in [&mut steps, &mut latencies, &mut thoughts, &mut calls] {
            samples.sort_unstable();
        }
        ended.map(|ending| Outcome {
            ending,
            end,
            origin: self.team.timeline().map_or(0, |t| t.reading(Instant::ZERO)),
            lost,
            decisions,
            steps,
            thoughts,
            calls,
            latencies,
            latest: Duration::from_nanos(lateness.clone().map(|l| l.0).max().unwrap_or(0)),
            gaps: lateness.map(|l| l.1).sum(),
            stuck,
            programs,
            triggers: self.team.triggered(),
            best_effort: self.efforts.done(),
            profiled,
            switches: None,
            watches: self
                .team
                .host
                .watches
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            dispatchers: self
                .team
                .posts
                .iter()
                .zip(&self.team.host.posts)
                .map(|(post, words)| (post.cpu, words.dispatcher()))
                .collect(),
            threads: self
                .team
                .host
                .workers
                .iter()
                .map(|w| w.thread().0)
                .collect(),
        })
    }
}

/// Waits until threads have come back, or for [`GRACE`]; that whoever waits gets to run is told to
/// the watchdog.
fn wait_for<'a>(team: &ThreadTeam, threads: impl IntoIterator<Item = &'a JoinHandle<()>> + Clone) {
    let until = std::time::Instant::now() + GRACE;
    while !threads.clone().into_iter().all(JoinHandle::is_finished)
        && std::time::Instant::now() < until
    {
        team.host.board.ordinary();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
