//! A processor that waits for its caches: time passes by what it computes and by what its accesses
//! cost (001 §4.1 and §5.2).
//!
//! Accesses that the first cache serves are part of the computing. Any other waits the `fill` of
//! the outermost cache that missed, but for a write that no cache fetches; a changed line that makes
//! room costs the `write_back` of its cache, and a write that is written through its `word`, where
//! caches have these prices. Every access waits as if it came alone: nothing overlaps.

use crate::access::Kind;
use crate::hierarchy::{Hierarchy, Outcome, Port};
use crate::pages::Pages;
use crate::shape::Shape;
use model::strategy::{Price, Writing};
use model::{CpuId, Duration, Error, Result};

/// Picoseconds of a nanosecond.
const PICOS: u64 = 1000;

/// What time it is, by the two prices of everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// The memory system is never busy.
    Best,
    /// It always is.
    Worst,
}

/// One processor of a platform with its caches, and the time that has passed on it.
#[derive(Clone)]
pub struct Timed {
    caches: Hierarchy,
    /// For data and for instructions.
    ports: [Port; 2],
    fills: [Vec<Fill>; 2],
    left: Vec<Left>,
    /// In picoseconds, in the best and in the worst case.
    elapsed: [u64; 2],
}

/// What it costs that a cache and those before it miss.
#[derive(Clone, Copy)]
struct Fill {
    price: Price,
    /// Does it fetch a line that is written?
    allocate: bool,
}

/// What leaves a cache for the next one, and how much of it has been paid for.
#[derive(Clone)]
struct Left {
    part: usize,
    name: String,
    write_back: Option<Price>,
    word: Option<Price>,
    writes_back: bool,
    paid: (u64, u64),
}

impl Timed {
    /// A processor of a shape with empty caches, at time zero. `seed`: of random replacement.
    ///
    /// # Errors
    /// There is no such processor; a cache of its has no price `fill`.
    pub fn new(shape: &Shape, cpu: CpuId, pages: Pages, seed: u64) -> Result<Self> {
        let caches = Hierarchy::new(shape, pages, seed)?;
        let ports = [
            caches.port(cpu, Kind::Read)?,
            caches.port(cpu, Kind::Instruction)?,
        ];
        let left = shape.parts.iter().enumerate().map(|(part, found)| Left {
            part,
            name: found.name.clone(),
            write_back: found.strategy.write_back,
            word: found.strategy.word,
            writes_back: found.write == Writing::Back,
            paid: (0, 0),
        });
        Ok(Timed {
            ports,
            fills: [fills(shape, cpu, false)?, fills(shape, cpu, true)?],
            left: left.collect(),
            elapsed: [0; 2],
            caches,
        })
    }

    /// How much time has passed.
    pub fn elapsed(&self, case: Case) -> Duration {
        Duration::from_nanos(self.elapsed[case as usize] / PICOS)
    }

    /// The same in both cases.
    pub fn both(&self) -> Price {
        Price {
            optimistic: self.elapsed(Case::Best),
            pessimistic: self.elapsed(Case::Worst),
        }
    }

    /// Computes without an access for this part of a time: in picoseconds, so that parts add up.
    #[inline]
    pub fn compute(&mut self, time: Duration, parts: u64) {
        self.elapse(time.nanos().saturating_mul(PICOS) / parts.max(1), [1, 1]);
    }

    /// One access, and its waiting.
    ///
    /// # Errors
    /// There is no frame for its page.
    #[inline]
    pub fn access(&mut self, kind: Kind, address: u64, size: u32) -> Result<()> {
        let way = usize::from(kind == Kind::Instruction);
        let outcome = self.caches.access(self.ports[way], kind, address, size)?;
        if outcome.reached > 1 || outcome.missed > 0 {
            self.wait(way, kind, outcome);
        }
        Ok(())
    }

    fn wait(&mut self, way: usize, kind: Kind, outcome: Outcome) {
        let fills = &self.fills[way];
        let missed = &fills[..fills.len().min(outcome.missed as usize)];
        // A write that is not fetched anywhere waits for no line.
        let waits = kind != Kind::Write || missed.iter().any(|fill| fill.allocate);
        if let Some(price) = missed.last().filter(|_| waits).map(|fill| fill.price) {
            self.pay(price, 1);
        }
        for place in 0..self.left.len() {
            let left = &self.left[place];
            let now = self.caches.passed_on(left.part);
            let new = (now.0 - left.paid.0, now.1 - left.paid.1);
            let prices = (left.write_back, left.word);
            self.left[place].paid = now;
            for (price, times) in [(prices.0, new.0), (prices.1, new.1)] {
                if let (Some(price), 1..) = (price, times) {
                    self.pay(price, times);
                }
            }
        }
    }

    fn pay(&mut self, price: Price, times: u64) {
        self.elapse(
            PICOS * times,
            [price.optimistic.nanos(), price.pessimistic.nanos()],
        );
    }

    #[inline]
    fn elapse(&mut self, times: u64, each: [u64; 2]) {
        for (elapsed, each) in self.elapsed.iter_mut().zip(each) {
            *elapsed = elapsed.saturating_add(each.saturating_mul(times));
        }
    }

    /// Lets somebody else use the caches: no time passes here, and nothing is paid for.
    ///
    /// # Errors
    /// Those of `others`.
    pub fn aside(
        &mut self,
        others: impl FnOnce(&mut Hierarchy, [Port; 2]) -> Result<()>,
    ) -> Result<()> {
        others(&mut self.caches, self.ports)?;
        for left in &mut self.left {
            left.paid = self.caches.passed_on(left.part);
        }
        Ok(())
    }

    /// Caches that write changed lines back at no price.
    pub fn unpriced(&self) -> impl Iterator<Item = &str> {
        let free = |left: &&Left| left.writes_back && left.write_back.is_none();
        self.left.iter().filter(free).map(|left| left.name.as_str())
    }
}

fn fills(shape: &Shape, cpu: CpuId, instructions: bool) -> Result<Vec<Fill>> {
    let fill = |index: &usize| {
        let part = &shape.parts[*index];
        let price = part.strategy.fill.ok_or_else(|| {
            Error::new(format!("the {} has no price `fill`", part.name)).remedy(
                "choose `--platform pentium-90`, `pentium-133` or `pentium-pro`, or add `fill` to \
                 a platform file",
            )
        })?;
        Ok(Fill {
            price,
            allocate: part.allocate,
        })
    };
    shape.path(cpu, instructions).iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Platform;

    fn timed(platform: &str) -> Timed {
        let shape = Shape::of(&Platform::builtin(platform).unwrap()).unwrap();
        Timed::new(&shape, CpuId(0), Pages::as_traced(4096).unwrap(), 1).unwrap()
    }

    fn nanos(timed: &Timed) -> [u64; 2] {
        [Case::Best, Case::Worst].map(|case| timed.elapsed(case).nanos())
    }

    /// By hand, with the delays of 001 §4.1: 200 and 336 ns for a line from memory, 64 and 160 ns
    /// for one from the L2.
    #[test]
    fn an_access_waits_for_the_outermost_cache_that_missed() {
        let mut timed = timed("pentium-90");
        timed.access(Kind::Read, 0, 4).unwrap();
        assert_eq!(nanos(&timed), [200, 336]);
        timed.access(Kind::Read, 4, 4).unwrap();
        assert_eq!(nanos(&timed), [200, 336], "its line is there");
        // Three lines of one set of the first level, which has two ways: the first one leaves it.
        for page in 1..3 {
            timed.access(Kind::Read, page * 4096, 4).unwrap();
        }
        assert_eq!(nanos(&timed), [600, 1008]);
        timed.access(Kind::Read, 0, 4).unwrap();
        assert_eq!(nanos(&timed), [664, 1168], "the second level has it");
        timed.access(Kind::Write, 9 * 4096, 4).unwrap();
        assert_eq!(
            nanos(&timed),
            [664, 1168],
            "what is not fetched is not waited for"
        );
        timed.compute(Duration::from_nanos(25), 2);
        timed.compute(Duration::from_nanos(25), 2);
        assert_eq!(nanos(&timed), [689, 1193]);
    }

    /// 001 §5.2: to write a line back to memory takes three fills.
    #[test]
    fn a_changed_line_that_makes_room_is_paid_for_and_what_others_do_is_not() {
        let mut timed = timed("pentium-pro");
        let fill = nanos(&{
            let mut alone = timed.clone();
            alone.access(Kind::Read, 0, 4).unwrap();
            alone
        });
        // Others change all lines of the second level.
        timed
            .aside(|caches, [data, _]| {
                for line in 0..256 * 1024 / 32 {
                    caches.access(data, Kind::Modify, line * 32, 4)?;
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(nanos(&timed), [0, 0]);
        timed.access(Kind::Read, 1 << 20, 4).unwrap();
        let [best, worst] = nanos(&timed);
        // A line of the second level went to memory, and one of the first to the second.
        let first = 60;
        assert!(best >= 4 * fill[0] && best <= 4 * fill[0] + first, "{best}");
        assert!(worst > 4 * fill[1], "{worst}");
        assert_eq!(timed.unpriced().count(), 0);
    }

    #[test]
    fn caches_without_prices_are_refused() {
        let mut unpriced = Platform::builtin("i486").unwrap();
        for cache in &mut unpriced.caches {
            cache.strategy.fill = None;
        }
        let shape = Shape::of(&unpriced).unwrap();
        let pages = Pages::as_traced(4096).unwrap();
        let e = Timed::new(&shape, CpuId(0), pages, 1).err().unwrap();
        assert!(e.to_string().contains("has no price `fill`"), "{e}");
    }
}
