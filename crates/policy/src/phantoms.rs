//! Phantom tasks: how often the cache-aware scheduler may leave a processor idle (003 §3.1).
//!
//! They stand for the spare utilization M − U, less what is reserved: as many of utilization 1 as
//! fit, and one of e quanta in p, where p is the period of the set that leaves least over, the longest
//! of several: so 003 Fig. 3 leaves a processor idle in four quanta in a row. (The paper's reference
//! [7] has its own choice; any keeps tardiness bounded.) What a phantom job does not use in its period
//! is lost.

use model::{Duration, Ratio, Timing, exact};

/// The largest denominator of a reserve.
pub const FINEST_RESERVE: u64 = 1_000_000;

/// The phantom tasks: how often a processor may be left idle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phantoms {
    /// Phantom tasks of utilization 1.
    whole: u64,
    /// One more of `e` quanta …
    e: u64,
    /// … in `p`.
    p: u64,
    /// The period that it is in, by number, and how many quanta of it are used.
    used: (u64, u64),
    /// The quantum that was decided last, and whether it is one of those.
    last: (u64, bool),
}

impl Phantoms {
    /// For the spare utilization of a set in whole quanta: WCETs rounded up, as the rest of a job's
    /// last quantum is nobody's, and periods rounded down. `reserve`: this part of every processor
    /// is left to what takes longer than planned; at most one, its denominator at most
    /// [`FINEST_RESERVE`].
    pub fn of(timings: &[Timing], m: u64, quantum: Duration, reserve: Ratio) -> Self {
        let quantum = quantum.nanos().max(1);
        let in_quanta = |t: &Timing| (t.wcet.nanos().div_ceil(quantum), t.period.nanos() / quantum);
        let fits = |bound: Option<Ratio>| {
            let shares = timings.iter().map(|t| {
                let (e, p) = in_quanta(t);
                // A period below the quantum leaves nothing to spare.
                Ratio::new(e, p).unwrap_or(Ratio::whole(u64::MAX))
            });
            let kept = Ratio::new(reserve.num().saturating_mul(m), reserve.den());
            bound.is_some_and(|b| exact::cmp_sum(shares.chain(kept), b).is_le())
        };
        let whole = (1..=m)
            .take_while(|w| fits(Some(Ratio::whole(m - w))))
            .count() as u64;
        let mut periods: Vec<u64> = timings
            .iter()
            .map(|t| in_quanta(t).1.clamp(1, u64::MAX / (m + 1)))
            .collect();
        periods.sort_unstable();
        periods.dedup();
        let mut best = (0, 1);
        for p in periods {
            // U ≤ M − whole − e / p: the largest such e, by bisection.
            let fits_e = |e: u64| (m - whole) * p >= e && fits(Ratio::new((m - whole) * p - e, p));
            let (mut low, mut high) = (0, p);
            while low + 1 < high {
                let middle = low + (high - low) / 2;
                if fits_e(middle) {
                    low = middle
                } else {
                    high = middle
                }
            }
            let (ours, others) = (
                u128::from(low) * u128::from(best.1),
                u128::from(best.0) * u128::from(p),
            );
            if low > 0 && ours >= others {
                best = (low, p);
            }
        }
        Phantoms {
            whole,
            e: best.0,
            p: best.1,
            used: (0, 0),
            last: (0, false),
        }
    }

    /// How many are eligible in a quantum. What was used of it in an earlier decision for the same
    /// quantum is given back: a job whose budget is used up may be chosen, and be cut short at
    /// once.
    pub fn eligible(&mut self, slot: u64) -> u64 {
        if self.last == (slot, true) {
            self.used.1 -= 1;
        }
        self.last = (slot, false);
        if self.used.0 != slot / self.p {
            self.used = (slot / self.p, 0);
        }
        self.whole + u64::from(self.used.1 < self.e)
    }

    /// This many were scheduled in that quantum; those of utilization 1 first.
    pub fn use_up(&mut self, count: u64) {
        self.last.1 = count > self.whole;
        self.used.1 += u64::from(self.last.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(timings: &[Timing], m: u64) -> Phantoms {
        Phantoms::of(timings, m, Duration::from_millis(1), Ratio::ZERO)
    }

    #[test]
    fn phantom_tasks_take_the_spare_utilization() {
        let ms = Duration::from_millis;
        // 003, Fig. 2: utilization 1.5 of 2; four phantom quanta in eight.
        let timings =
            [(1, 2), (1, 4), (1, 4), (2, 8), (2, 8)].map(|(e, p)| Timing::implicit(ms(e), ms(p)));
        let phantoms = of(&timings, 2);
        assert_eq!((phantoms.whole, phantoms.e, phantoms.p), (0, 4, 8));
        assert_eq!(of(&timings, 4).whole, 2);
        let full = [Timing::implicit(ms(2), ms(2)); 2];
        assert_eq!(of(&full, 2).eligible(0), 0);
        assert_eq!(of(&full, 1).eligible(0), 0, "overutilized");
        // What a job leaves of its last quantum is not spare: this set fills two processors.
        let us = Duration::from_micros;
        let rounded = [Timing::implicit(us(1_100), us(2_900)); 2];
        assert_eq!(of(&rounded, 2).eligible(0), 0);
    }

    /// Fig. 2 once more: of the half of a processor that is spare, a tenth of both is kept, so that
    /// three tenths are left: 2 of 8 quanta, and with an eighth of both a quarter exactly.
    #[test]
    fn a_reserve_is_left_to_nobody() {
        let ms = Duration::from_millis;
        let timings =
            [(1, 2), (1, 4), (1, 4), (2, 8), (2, 8)].map(|(e, p)| Timing::implicit(ms(e), ms(p)));
        let with = |num, den| Phantoms::of(&timings, 2, ms(1), Ratio::new(num, den).unwrap());
        for (num, den, e, p) in [(1, 10, 2, 8), (1, 8, 2, 8), (1, 7, 1, 8), (1, 4, 0, 1)] {
            let phantoms = with(num, den);
            assert_eq!(
                (phantoms.whole, phantoms.e, phantoms.p),
                (0, e, p),
                "{num}/{den}"
            );
        }
        assert_eq!(with(1, 1).eligible(0), 0);
    }
}
