//! A long task of 001 in a model of a platform's caches: the product of two matrices in time
//! slices, with a flood of all caches after each (001 §5.4, Fig. 7).
//!
//! c_max is the product's processor time with floods, c_min without any, in the memory of the
//! unpartitioned case. Time slices end between any two accesses. Both are asked for twice: with all
//! delays at best and with all at worst, since a slice means another share of the work in each.

use super::lab::{Flooded, Flooder, Lab, Placed};
pub use crate::slices::SLICES;
use cache::{Case, Kind, Timed};
use model::strategy::Price;
use model::{Duration, Error, Result, time};
use serde::Serialize;
use workload::Touch;
use workload::matrix::{self, BLOCK, DOUBLES, SIDE, STEPS};
use workload::memory::Recorder;

/// 4.5 cycles of 133 MHz.
pub const STEP: Duration = Duration::from_nanos(34);
/// Words of code.
pub const CODE: u32 = 100;

/// Steps of a product.
pub const PRODUCT_STEPS: u64 = (SIDE * SIDE * SIDE) as u64;

/// Products with one time slice: processor times, and what they are of c_min in the best case and
/// in the worst.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Row {
    /// How long the product computes between two floods.
    #[serde(rename = "slice_ns", with = "time::ns")]
    pub slice: Duration,
    /// Matrices one behind the other, all colors flooded.
    pub unpartitioned: Price,
    /// Matrices and code in colors of their own, the others flooded.
    pub partitioned: Price,
    /// The same, and the flooder reads their colors.
    pub single_writer: Price,
    /// Unpartitioned, where a slice ends with the submatrix in which its time is up.
    pub whole_submatrices: Price,
    /// c_max / c_min of these four.
    pub unpredictability: Unpredictability,
}

/// c_max / c_min (001 §2.1), each with the optimistic prices and with the pessimistic ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Unpredictability {
    /// As in [`Row`].
    pub unpartitioned: [f64; 2],
    /// As in [`Row`].
    pub partitioned: [f64; 2],
    /// As in [`Row`].
    pub single_writer: [f64; 2],
    /// As in [`Row`].
    pub whole_submatrices: [f64; 2],
}

/// How it is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What c_ij := c_ij + a_ik b_kj takes where nothing misses.
    pub step: Duration,
    /// Words of code, which are executed for each element.
    pub code: u32,
    /// The time slices.
    pub slices: Vec<Duration>,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Products {
    /// How many colors a partition has.
    pub own_colors: u64,
    /// The product without interruption, in memory that lies in one piece: c_min.
    pub alone: Price,
    /// The same in the colors of a partition, which are fewer than its matrices need.
    pub alone_partitioned: Price,
    /// The longest submatrix of 8×8 without interruption.
    pub submatrix: Price,
    /// Each time slice.
    pub rows: Vec<Row>,
}

/// Runs the product with each time slice.
///
/// # Errors
/// A time slice or a step of no time; the platform has no `fill` for a cache, or too few colors.
pub fn run(lab: &Lab, plan: &Plan) -> Result<Products> {
    if plan.step.is_zero() || plan.slices.iter().any(|slice| slice.is_zero()) {
        return Err(Error::new("a time slice and a step take time")
            .at("--slices")
            .remedy("give times above zero"));
    }
    let runs = Runs {
        lab,
        step: plan.step,
        code: plan.code,
    };
    let alone = runs.alone(Memory::InOnePiece)?;
    let rows = plan.slices.iter().map(|slice| runs.row(*slice, &alone));
    Ok(Products {
        rows: rows.collect::<Result<_>>()?,
        own_colors: own_colors(lab),
        alone: alone.product,
        alone_partitioned: runs.alone(Memory::Partition)?.product,
        submatrix: alone.submatrix,
    })
}

/// How the matrices lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    InOnePiece,
    Partition,
}

/// How many colors the product has in a partition (001 §5.4): one each for a, b and the code; or
/// one for all, with c, where a color holds a page of each at once.
pub(super) fn own_colors(lab: &Lab) -> u64 {
    if lab.ways >= 4 { 1 } else { 3 }
}

/// The matrices and the code in a partition. Without room for it, c has the colors of others, for
/// which it matters little: the caches of 001 do not fetch what is only written.
///
/// # Errors
/// There are no more colors than these.
pub(super) fn in_partition(lab: &Lab, memory: &mut cache::Memory) -> Result<[Placed; 2]> {
    let (own, pages) = (own_colors(lab), pages(lab));
    if own >= lab.colors {
        return Err(Error::new(format!(
            "a cache of {} colors has none beside those of the product",
            lab.colors
        ))
        .remedy("choose a platform with more colors"));
    }
    let each = pages / 3;
    let color = |page: u64| match page / each {
        _ if own == 1 => 0,
        matrix @ 0..=1 => matrix,
        _ => own + page % (lab.colors - own),
    };
    let data = lab.place(memory, (0..pages).map(color))?;
    Ok([data, lab.place(memory, [own - 1])?])
}

/// Pages of the three matrices: as many of each.
pub(super) fn pages(lab: &Lab) -> u64 {
    let bytes = (DOUBLES * size_of::<f64>()) as u64;
    (bytes / 3).div_ceil(lab.page) * 3
}

/// Products on a machine.
struct Runs<'a> {
    lab: &'a Lab,
    step: Duration,
    code: u32,
}

/// What a product takes that nobody interrupts.
struct Alone {
    product: Price,
    submatrix: Price,
}

impl Runs<'_> {
    fn placed(&self, how: Memory, what: Flooded) -> Result<([Placed; 2], Flooder)> {
        let lab = self.lab;
        let pages = pages(lab);
        let mut memory = lab.memory(pages + 1)?;
        let placed = match how {
            Memory::Partition => in_partition(lab, &mut memory)?,
            Memory::InOnePiece => [
                lab.place(&mut memory, (0..pages).map(|n| n % lab.colors))?,
                lab.place(&mut memory, [pages % lab.colors])?,
            ],
        };
        let own = own_colors(lab);
        let flooder = lab.flooder(&mut memory, |color| match color < own {
            true => what,
            false => Flooded::Written,
        })?;
        Ok((placed, flooder))
    }

    fn alone(&self, how: Memory) -> Result<Alone> {
        let (placed, _) = self.placed(how, Flooded::Spared)?;
        let mut best = self.product(&placed, None, Case::Best)?;
        best.run()?;
        let (product, longest) = best.run()?;
        // Nothing depends on time where nobody interrupts.
        let mut worst = self.product(&placed, None, Case::Worst)?;
        worst.run()?;
        let (product_worst, longest_worst) = worst.run()?;
        let price = |optimistic, pessimistic| Price {
            optimistic,
            pessimistic,
        };
        Ok(Alone {
            product: price(product, product_worst),
            submatrix: price(longest, longest_worst),
        })
    }

    fn row(&self, slice: Duration, alone: &Alone) -> Result<Row> {
        let seen = |how: Memory, what: Flooded, whole: bool| -> Result<Price> {
            let (placed, flooder) = self.placed(how, what)?;
            let ends = Ends {
                flooder,
                slice,
                whole,
            };
            let took = |case: Case| -> Result<Duration> {
                let mut product = self.product(&placed, Some(&ends), case)?;
                product.run()?;
                Ok(product.run()?.0)
            };
            Ok(Price {
                optimistic: took(Case::Best)?,
                pessimistic: took(Case::Worst)?,
            })
        };
        let unpartitioned = seen(Memory::InOnePiece, Flooded::Written, false)?;
        let partitioned = seen(Memory::Partition, Flooded::Spared, false)?;
        let single_writer = seen(Memory::Partition, Flooded::Read, false)?;
        let whole_submatrices = seen(Memory::InOnePiece, Flooded::Written, true)?;
        let over = |most: Price| super::ratios(most, alone.product);
        Ok(Row {
            slice,
            unpartitioned,
            partitioned,
            single_writer,
            whole_submatrices,
            unpredictability: Unpredictability {
                unpartitioned: over(unpartitioned),
                partitioned: over(partitioned),
                single_writer: over(single_writer),
                whole_submatrices: over(whole_submatrices),
            },
        })
    }

    fn product<'a>(
        &'a self,
        placed: &'a [Placed; 2],
        ends: Option<&'a Ends>,
        case: Case,
    ) -> Result<Product<'a>> {
        Ok(Product {
            runs: self,
            machine: self.lab.machine()?,
            placed,
            ends,
            case,
            since: Duration::ZERO,
        })
    }
}

/// How slices end.
struct Ends {
    flooder: Flooder,
    slice: Duration,
    /// With the submatrix in which their time is up?
    whole: bool,
}

/// The product under way.
struct Product<'a> {
    runs: &'a Runs<'a>,
    machine: Timed,
    /// Matrices, and code.
    placed: &'a [Placed; 2],
    ends: Option<&'a Ends>,
    /// By which prices slices end.
    case: Case,
    /// When the slice began.
    since: Duration,
}

impl Product<'_> {
    /// One product: what it takes, and its longest submatrix.
    fn run(&mut self) -> Result<(Duration, Duration)> {
        let begin = self.machine.elapsed(self.case);
        let (mut submatrix, mut longest) = (begin, Duration::ZERO);
        for number in 0..STEPS {
            self.row(number)?;
            if number % BLOCK == BLOCK - 1 {
                let now = self.machine.elapsed(self.case);
                longest = longest.max(now.saturating_sub(submatrix));
                submatrix = now;
                self.look(true)?;
            }
        }
        Ok((submatrix.saturating_sub(begin), longest))
    }

    /// A row of a submatrix.
    fn row(&mut self, number: usize) -> Result<()> {
        let mut done = Ok(());
        let recorder = &mut Recorder::new(size_of::<f64>() as u32, |touch| {
            // The first error ends the product.
            if done.is_ok() {
                done = self.touch(touch);
            }
        });
        matrix::step(recorder, number);
        done
    }

    #[inline]
    fn touch(&mut self, touch: Touch) -> Result<()> {
        let [data, code] = self.placed;
        touched(&mut self.machine, touch, data, self.runs.step)?;
        if touch.write {
            // The element is done: the code of the next one follows.
            let words = self.runs.code;
            self.runs.lab.execute(&mut self.machine, code, words)?;
        }
        self.look(false)
    }

    /// Ends the slice if its time is up.
    #[inline]
    fn look(&mut self, submatrix_is_done: bool) -> Result<()> {
        let Some(ends) = self.ends else { return Ok(()) };
        let passed = self.machine.elapsed(self.case).saturating_sub(self.since);
        if passed >= ends.slice && ends.whole == submatrix_is_done {
            self.runs.lab.flood(&mut self.machine, &ends.flooder)?;
            self.since = self.machine.elapsed(self.case);
        }
        Ok(())
    }
}

/// An access of the product, and its half of a step: c_ij is written once for 2 × 64 reads.
#[inline]
pub(super) fn touched(
    machine: &mut Timed,
    touch: Touch,
    placed: &Placed,
    step: Duration,
) -> Result<()> {
    let kind = if touch.write { Kind::Write } else { Kind::Read };
    if !touch.write {
        machine.compute(step, 2);
    }
    machine.access(kind, placed.address(touch.offset), touch.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Platform;
    use model::strategy::Writing;

    fn seen(platform: &str, write: Option<Writing>, slices: &[u64]) -> Result<Products> {
        let micros = slices.iter().map(|slice| Duration::from_micros(*slice));
        let plan = Plan {
            step: STEP,
            code: CODE,
            slices: micros.collect(),
        };
        run(&Lab::of(Platform::builtin(platform)?, write)?, &plan)
    }

    /// 001 §5.4: 5.51 cycles a step and 10.9 ms for a product on the Pentium of 133 MHz; 170 us for
    /// a submatrix. The delays at best and at worst have them between.
    #[test]
    fn a_product_alone_takes_what_the_paper_says() {
        let seen = seen("pentium-133", Some(Writing::Through), &[]).unwrap();
        let micros = |price: Price| [price.optimistic, price.pessimistic].map(|d| d.nanos() / 1000);
        let [best, worst] = micros(seen.alone);
        assert!(best < 10_900 && 10_900 < worst, "{best} {worst}");
        let [best, worst] = micros(seen.submatrix);
        assert!(best < 170 && 170 < worst, "{best} {worst}");
        let [best, worst] = micros(seen.alone_partitioned);
        assert!(best > micros(seen.alone)[0] && worst > micros(seen.alone)[1]);
    }

    #[test]
    fn short_slices_lose_more_and_partitions_less() {
        let seen = seen("pentium-133", None, &[200, 1000]).unwrap();
        let [short, long] = [seen.rows[0], seen.rows[1]].map(|row| row.unpredictability);
        for case in 0..2 {
            assert!(short.unpartitioned[case] > long.unpartitioned[case]);
            assert!(short.partitioned[case] < short.single_writer[case]);
            assert!(short.single_writer[case] < short.unpartitioned[case]);
            assert!(short.whole_submatrices[case] <= short.unpartitioned[case]);
            assert!(long.unpartitioned[case] > 1.0);
        }
    }

    #[test]
    fn a_slice_of_no_time_is_refused() {
        assert!(seen("pentium-133", None, &[0]).is_err());
    }
}
