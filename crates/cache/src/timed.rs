//! A processor that waits for its caches: time passes by what it computes and by what its accesses
//! cost (001 §4.1 and §5.2).
//!
//! Accesses that the first cache serves are part of the computing, whatever its `hit`; any other
//! waits as [`Waits`] says, and pays what it owes.

use crate::access::Kind;
use crate::hierarchy::{Hierarchy, Port};
use crate::pages::Pages;
use crate::shape::Shape;
use crate::waits::Waits;
use model::strategy::Price;
use model::{CpuId, Duration, Result};

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
    waits: [Waits; 2],
    /// What was owed when it was last paid.
    paid: Price,
    /// In picoseconds, in the best and in the worst case.
    elapsed: [u64; 2],
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
        let waits = [false, true].map(|instructions| Waits::of(shape, cpu, instructions));
        let [data, instructions] = waits;
        Ok(Timed {
            ports,
            waits: [data?, instructions?],
            paid: caches.owed(),
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
        if outcome.fetched > 0 {
            self.pay(self.waits[way].line(outcome));
        }
        let (owed, paid) = (self.caches.owed(), self.paid);
        if owed != paid {
            self.paid = owed;
            self.pay(Price {
                optimistic: owed.optimistic.saturating_sub(paid.optimistic),
                pessimistic: owed.pessimistic.saturating_sub(paid.pessimistic),
            });
        }
        Ok(())
    }

    fn pay(&mut self, price: Price) {
        self.elapse(PICOS, [price.optimistic.nanos(), price.pessimistic.nanos()]);
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
        self.paid = self.caches.owed();
        Ok(())
    }
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
    }

    /// A single level that writes through: every write pays its word, what others write nothing.
    #[test]
    fn a_word_that_is_written_through_is_paid_where_one_level_is_all() {
        let mut platform = Platform::builtin("i486").unwrap();
        platform.caches.retain(|cache| cache.level == 1);
        platform.caches[0].strategy.word = Some(Price::always(Duration::from_nanos(7)));
        let shape = Shape::of(&platform).unwrap();
        let mut timed = Timed::new(&shape, CpuId(0), Pages::as_traced(4096).unwrap(), 1).unwrap();
        timed.access(Kind::Read, 0, 4).unwrap();
        timed
            .aside(|caches, [data, _]| caches.access(data, Kind::Write, 64, 4).map(drop))
            .unwrap();
        timed.access(Kind::Write, 0, 4).unwrap();
        timed.access(Kind::Write, 4096, 4).unwrap();
        assert_eq!(nanos(&timed), [116 + 14, 291 + 14]);
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
