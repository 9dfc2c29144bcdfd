//! A job that moves among the processors of a platform, and polluters beside it, in the caches of
//! the model.

use super::{Options, Points, point};
use cache::{Hierarchy, Kind, Pages, Port, Shape, Waits};
use model::watch::Watch;
use model::{Bytes, CpuId, Load, Platform, Result, Resumption};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Bytes of a page of the model: nothing depends on it.
const PAGE: u64 = 4096;
/// What a line takes where nothing misses, in nanoseconds: its words are read and some are changed.
const LINE_NS: u64 = 16;
/// While the job is away, polluters go on in turns of so many nanoseconds.
const TURN: u64 = 10_000;
/// Walks until a working set is warm; the last of them is the one that is compared.
const WARM: usize = 3;

/// The machine with all that runs on it.
pub(super) struct Scene<'a> {
    platform: &'a Platform,
    options: &'a Options,
    caches: Hierarchy,
    line: u64,
    wss: Bytes,
    /// By processor.
    cpus: Vec<Cpu>,
    /// The job's processor, by its place.
    at: usize,
    now: u64,
    draws: ChaCha8Rng,
}

struct Cpu {
    id: CpuId,
    port: Port,
    waits: Waits,
    polluter: Option<Polluter>,
}

/// Changes line after line of its array.
struct Polluter {
    first: u64,
    lines: u64,
    next: u64,
    /// When its next access is.
    clock: u64,
}

impl<'a> Scene<'a> {
    /// # Errors
    /// A cache has no price `fill`.
    pub(super) fn new(
        platform: &'a Platform,
        shape: &Shape,
        wss: Bytes,
        load: Load,
        options: &'a Options,
    ) -> Result<Self> {
        let caches = Hierarchy::new(shape, Pages::as_traced(PAGE)?, options.seed)?;
        let largest = shape
            .parts
            .iter()
            .map(|part| part.sets as u64 * part.ways as u64 * u64::from(shape.line))
            .max()
            .unwrap_or(PAGE);
        // A quarter more than the largest cache, one behind the other, behind the working set.
        let array = (largest + largest / 4).next_multiple_of(PAGE);
        let line = u64::from(shape.line);
        let begin = wss.get().next_multiple_of(PAGE);
        let cpus = shape.cpus.iter().enumerate().map(|(place, id)| {
            Ok(Cpu {
                id: *id,
                port: caches.port(*id, Kind::Read)?,
                waits: Waits::of(shape, *id, false)
                    .map_err(|e| e.at(format!("platform `{}`", platform.name)))?,
                polluter: (load == Load::Load).then_some(Polluter {
                    first: begin + place as u64 * array,
                    lines: array / line,
                    next: 0,
                    clock: 0,
                }),
            })
        });
        let seed = options.seed ^ (wss.get() << 1) ^ u64::from(load == Load::Load);
        Ok(Scene {
            cpus: cpus.collect::<Result<_>>()?,
            platform,
            options,
            caches,
            line,
            wss,
            at: 0,
            now: 0,
            draws: ChaCha8Rng::seed_from_u64(seed),
        })
    }

    /// All samples; `None`: interrupted.
    pub(super) fn sample(mut self, watch: &dyn Watch) -> Result<Option<Points>> {
        let mut points = Vec::new();
        let mut warm = 0;
        for _ in 0..WARM {
            warm = self.walk()?;
        }
        for kind in self.platform.resumptions() {
            let mut samples = Vec::new();
            for _ in 0..self.options.samples {
                if watch.stopped() {
                    return Ok(None);
                }
                let Some(to) = self.destination(kind) else {
                    continue;
                };
                self.leave()?;
                self.resume(to);
                let after = self.walk()?;
                samples.push(after as i64 - warm as i64);
                for _ in 1..WARM {
                    warm = self.walk()?;
                }
            }
            points.extend(point(self.wss, &samples).map(|point| (kind, point)));
        }
        Ok(Some(points))
    }

    /// A random processor on which the job would resume in this way.
    fn destination(&mut self, kind: Resumption) -> Option<usize> {
        let from = self.cpus[self.at].id;
        let reached: Vec<usize> = (0..self.cpus.len())
            .filter(|to| self.platform.resumption(from, self.cpus[*to].id) == kind)
            .collect();
        match reached.len() {
            0 => None,
            count => Some(reached[self.draws.random_range(0..count)]),
        }
    }

    /// The job is away for a random time.
    fn leave(&mut self) -> Result<()> {
        let length = self
            .draws
            .random_range(0..=self.options.max_preemption.nanos());
        let end = self.now + length;
        if let Some(polluter) = &mut self.cpus[self.at].polluter {
            polluter.clock = self.now;
        }
        while self.now < end {
            self.now = end.min(self.now + TURN);
            self.pollute(None)?;
        }
        Ok(())
    }

    fn resume(&mut self, to: usize) {
        self.at = to;
    }

    /// The job walks its working set. Returns how long it takes.
    fn walk(&mut self) -> Result<u64> {
        let begin = self.now;
        for line in 0..self.wss.get() / self.line {
            self.now += LINE_NS + self.access(self.at, line * self.line)?;
            self.pollute(Some(self.at))?;
        }
        Ok(self.now - begin)
    }

    /// Polluters go on until now, but for the one on the job's processor.
    fn pollute(&mut self, job: Option<usize>) -> Result<()> {
        for place in (0..self.cpus.len()).filter(|place| Some(*place) != job) {
            while let Some(polluter) = &mut self.cpus[place].polluter
                && polluter.clock < self.now
            {
                let address = polluter.first + polluter.next * self.line;
                polluter.next = (polluter.next + 1) % polluter.lines;
                let takes = LINE_NS + self.access(place, address)?;
                if let Some(polluter) = &mut self.cpus[place].polluter {
                    polluter.clock += takes;
                }
            }
        }
        Ok(())
    }

    /// A line is read and changed. Returns how long that waits.
    fn access(&mut self, place: usize, address: u64) -> Result<u64> {
        let cpu = &self.cpus[place];
        let before = self.caches.owed().pessimistic;
        let outcome = self.caches.access(cpu.port, Kind::Modify, address, 4)?;
        let owed = self.caches.owed().pessimistic.saturating_sub(before);
        let line = cpu.waits.line(outcome).pessimistic;
        Ok(line.nanos() + owed.nanos())
    }
}
