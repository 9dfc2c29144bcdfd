//! The filter of 001 §5.2 in a model of a platform's caches: what a run of it loses where a flooder
//! ran before, with and without a partition of its own (001 Fig. 4).
//!
//! A step of the filter takes a given time where nothing misses, and its misses wait as the
//! platform's `fill` says. Before a run, either the filter ran (c_min), or the flooder, which reads,
//! changes and executes twice as many lines as the colored cache has, of all colors or of those that
//! the filter has not (c_max).

use crate::{On, PROGRAM, provenance};
use cache::{Coloring, Hierarchy, Kind, Memory, Pages, Shape};
use model::strategy::Price;
use model::{Color, Duration, Error, Provenance, Result, time};
use report::Figure;
use report::lines::{self, Curves};
use serde::Serialize;
use workload::filter;

/// What is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose caches and prices.
    pub on: On,
    /// Numbers of coefficients.
    pub sizes: Vec<u32>,
    /// What a step takes where nothing misses.
    pub step: Duration,
    /// Words of code, which each run reads.
    pub code: u32,
}

/// The numbers of coefficients of 001 Fig. 4.
pub const SIZES: [u32; 12] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];

/// Bytes of a coefficient and of a sample.
const WORD: u32 = 4;

/// Runs of the filter. JSON: as `warmset cache filter --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Filtered {
    /// The name of the platform.
    pub platform: String,
    /// What a step takes where nothing misses.
    #[serde(rename = "step_ns", with = "time::ns")]
    pub step: Duration,
    /// Each number of coefficients.
    pub rows: Vec<Row>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// Runs with one number of coefficients.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Coefficients.
    pub size: u32,
    /// Where the filter ran before: c_min.
    pub alone: Price,
    /// Where the flooder ran over all colors.
    pub unpartitioned: Price,
    /// Where it ran over those that the filter has not.
    pub partitioned: Price,
    /// c_max / c_min of the latter two, in the best case and in the worst.
    pub unpredictability: Unpredictability,
}

/// c_max / c_min (001 §2.1).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Unpredictability {
    /// Without a partition, with the optimistic prices and with the pessimistic ones.
    pub unpartitioned: [f64; 2],
    /// With a partition, likewise.
    pub partitioned: [f64; 2],
}

/// Runs the filter with each number of coefficients.
///
/// # Errors
/// No coefficients; the platform has no colored cache or no `fill` for a cache; a filter that does
/// not fit into the colored cache beside a flooder.
pub fn run(options: &Options, command: &str) -> Result<Filtered> {
    if options.sizes.is_empty() || options.sizes.contains(&0) || options.step.is_zero() {
        return Err(
            Error::new("a filter has coefficients, and its steps take time")
                .at("--sizes")
                .remedy("give numbers above zero"),
        );
    }
    let platform = options.on.platform()?;
    let shape = Shape::of(&platform)?;
    let page = super::page_of(&platform);
    let colors = super::number_of_colors(&shape, page)?;
    let place = format!("platform `{}`", platform.name);
    let fill = |index: &usize| {
        let part = &shape.parts[*index];
        let fill = part.strategy.fill.ok_or_else(|| {
            Error::new(format!("the {} has no price `fill`", part.name))
                .at(&place)
                .remedy("choose `--platform pentium-90`, or add `fill` to a platform file")
        })?;
        Ok((fill, part.allocate))
    };
    let path = shape.path(shape.cpus[0], false);
    let lab = Lab {
        shape: &shape,
        ways: shape.parts[super::colored(&shape, page).unwrap_or(0)].ways as u64,
        page,
        colors,
        fills: path.iter().map(fill).collect::<Result<_>>()?,
        options,
    };
    let rows = options.sizes.iter().map(|size| lab.row(*size));
    Ok(Filtered {
        rows: rows.collect::<Result<_>>()?,
        platform: platform.name.clone(),
        step: options.step,
        provenance: Provenance {
            source: format!("{PROGRAM}, a model of 001 §5.2"),
            ..provenance(command)
        },
    })
}

/// A machine to run filters on.
struct Lab<'a> {
    shape: &'a Shape,
    ways: u64,
    page: u64,
    colors: u64,
    /// From the nearest cache outwards: what it costs that it misses and those before it, and
    /// whether it fetches a line that is written.
    fills: Vec<(Price, bool)>,
    options: &'a Options,
}

/// A filter and its flooder in memory: numbers of pages.
struct Placed {
    data: Vec<u64>,
    code: u64,
    flood: Vec<u64>,
}

impl Lab<'_> {
    fn row(&self, size: u32) -> Result<Row> {
        let alone = self.last_run(size, &self.place(size, true)?, false)?;
        let unpartitioned = self.last_run(size, &self.place(size, false)?, true)?;
        let partitioned = self.last_run(size, &self.place(size, true)?, true)?;
        let over = |most: Price| {
            let ratio =
                |most: Duration, least: Duration| most.nanos() as f64 / least.nanos() as f64;
            [
                ratio(most.optimistic, alone.optimistic),
                ratio(most.pessimistic, alone.pessimistic),
            ]
        };
        Ok(Row {
            size,
            alone,
            unpartitioned,
            partitioned,
            unpredictability: Unpredictability {
                unpartitioned: over(unpartitioned),
                partitioned: over(partitioned),
            },
        })
    }

    /// The filter in colors of its own, as few as it needs; the flooder in all others, or in all.
    fn place(&self, size: u32, partitioned: bool) -> Result<Placed> {
        let bytes = u64::from(WORD) * filter::doubles(size as usize) as u64;
        let pages = bytes.div_ceil(self.page) + 1;
        let own = pages.div_ceil(self.ways);
        if own >= self.colors {
            return Err(Error::new(format!(
                "a filter of {size} coefficients leaves no color to others"
            ))
            .at("--sizes")
            .remedy(format!(
                "give fewer: the cache has {} pages",
                self.colors * self.ways
            )));
        }
        let flooded = 2 * self.colors * self.ways;
        let frames = (pages + flooded).next_multiple_of(self.colors) * self.colors;
        let mut memory = Memory::new(Coloring::Plain, frames, self.colors)?;
        let color = |n: u64| Color(n as u16);
        let mut data = (0..pages)
            .map(|n| memory.take(color(n % own)))
            .collect::<Result<Vec<u64>>>()?;
        let first = if partitioned { own } else { 0 };
        let flood = (0..flooded)
            .map(|n| memory.take(color(first + n % (self.colors - first))))
            .collect::<Result<_>>()?;
        Ok(Placed {
            code: data.pop().unwrap_or(0),
            data,
            flood,
        })
    }

    /// What the fourth run takes; `after_flood`: the flooder runs before it.
    fn last_run(&self, size: u32, placed: &Placed, after_flood: bool) -> Result<Price> {
        const RUNS: u32 = 4;
        let pages = Pages::as_traced(self.page)?;
        let mut caches = Hierarchy::new(self.shape, pages, 1)?;
        let mut waited = Price::default();
        for run in 0..RUNS {
            if after_flood && run + 1 == RUNS {
                self.flood(&mut caches, &placed.flood)?;
            }
            // The newest sample lies one lower each time.
            let newest = (u64::from(size) - u64::from(run) % u64::from(size)) % u64::from(size);
            waited = self.run(&mut caches, size, newest as usize, placed)?;
        }
        let steps = self.options.step.nanos().saturating_mul(u64::from(size));
        let with = |waits: Duration| Duration::from_nanos(waits.nanos().saturating_add(steps));
        Ok(Price {
            optimistic: with(waited.optimistic),
            pessimistic: with(waited.pessimistic),
        })
    }

    /// Reads, changes and executes every line of the pages.
    fn flood(&self, caches: &mut Hierarchy, pages: &[u64]) -> Result<()> {
        let line = u64::from(self.shape.line);
        for kind in [Kind::Modify, Kind::Instruction] {
            let port = caches.port(self.shape.cpus[0], kind)?;
            for page in pages {
                for offset in (0..self.page).step_by(line as usize) {
                    caches.access(port, kind, page * self.page + offset, WORD)?;
                }
            }
        }
        Ok(())
    }

    /// One run of the filter: its code, and its data. Returns what it waited.
    fn run(
        &self,
        caches: &mut Hierarchy,
        size: u32,
        newest: usize,
        placed: &Placed,
    ) -> Result<Price> {
        let mut waited = Price::default();
        let mut access = |kind: Kind, address: u64| -> Result<()> {
            let port = caches.port(self.shape.cpus[0], kind)?;
            let missed = caches.access(port, kind, address, WORD)?.missed as usize;
            let missed = &self.fills[..missed.min(self.fills.len())];
            // A write that is not fetched anywhere waits for no line.
            let waits = kind != Kind::Write || missed.iter().any(|(_, fetches)| *fetches);
            if let Some((fill, _)) = missed.last().filter(|_| waits) {
                waited.optimistic = waited.optimistic.saturating_add(fill.optimistic);
                waited.pessimistic = waited.pessimistic.saturating_add(fill.pessimistic);
            }
            Ok(())
        };
        let line = self.shape.line / WORD;
        for word in (0..self.options.code).step_by(line as usize) {
            let offset = u64::from(word * WORD) % self.page;
            access(Kind::Instruction, placed.code * self.page + offset)?;
        }
        let mut done = Ok(());
        filter::touches(size as usize, newest, WORD, |touch| {
            let page = placed.data[(touch.offset / self.page) as usize];
            let kind = if touch.write { Kind::Write } else { Kind::Read };
            let address = page * self.page + touch.offset % self.page;
            // The first error ends the run.
            if done.is_ok() {
                done = access(kind, address);
            }
        });
        done?;
        Ok(waited)
    }
}

impl Filtered {
    /// c_max / c_min over numbers of coefficients, as 001 Fig. 4.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Option<Figure>> {
        let curve = |of: fn(&Row) -> f64| -> Vec<(f64, f64)> {
            let rows = self.rows.iter();
            rows.map(|row| (f64::from(row.size), of(row))).collect()
        };
        let ticks = self.rows.iter().step_by(2);
        let ticks = ticks.map(|row| (f64::from(row.size), row.size.to_string()));
        let curves = Curves {
            title: self.platform.clone(),
            description: "What a run after the flooder takes, by what one after another takes."
                .to_owned(),
            x: "coefficients".to_owned(),
            y: "c_max / c_min".to_owned(),
            logarithmic: true,
            ticks: ticks.collect(),
            level: None,
            least: 1.0,
            most: None,
            curves: vec![
                (0, curve(|row| row.unpredictability.unpartitioned[0])),
                (1, curve(|row| row.unpredictability.unpartitioned[1])),
                (2, curve(|row| row.unpredictability.partitioned[0])),
                (3, curve(|row| row.unpredictability.partitioned[1])),
            ],
        };
        let legend = [
            "unpartitioned, at best",
            "unpartitioned, at worst",
            "partitioned, at best",
            "partitioned, at worst",
        ];
        let caption = "A model of the caches, with the delays of 001 §4.1.";
        lines::figure(
            "filter",
            "A filter after a flooder",
            caption,
            &legend,
            &[curves],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;

    fn seen(sizes: &[u32]) -> Vec<Row> {
        let options = Options {
            on: On::Platform(Choice::Named("pentium-90".to_owned())),
            sizes: sizes.to_vec(),
            step: Duration::from_nanos(150),
            code: 100,
        };
        run(&options, "").unwrap().rows
    }

    /// By hand, for 256 coefficients of 4 bytes in lines of 8 words: 64 lines of data and 13 of
    /// code; alone nothing misses, with a partition the L1 misses all, without both do.
    #[test]
    fn each_line_is_missed_once_after_a_flood() {
        let row = seen(&[256])[0];
        let lines = 64 + 13;
        let steps = 256 * 150;
        assert_eq!(row.alone.optimistic.nanos(), steps);
        assert_eq!(row.partitioned.optimistic.nanos(), steps + lines * 64);
        assert_eq!(row.partitioned.pessimistic.nanos(), steps + lines * 160);
        assert_eq!(row.unpartitioned.optimistic.nanos(), steps + lines * 200);
        assert_eq!(row.unpartitioned.pessimistic.nanos(), steps + lines * 336);
    }

    /// 001 §5.2: about 35 % unpartitioned where the filter fills the first level, small problems
    /// suffer more, and beyond 1024 coefficients the first level misses anyway.
    #[test]
    fn the_shape_of_figure_4() {
        let rows = seen(&SIZES);
        let at = |size| rows.iter().find(|row| row.size == size).unwrap();
        let least = |size: u32| at(size).unpredictability.unpartitioned[0];
        assert!((least(1024) - 1.35).abs() < 0.01, "{}", least(1024));
        for pair in rows.windows(2) {
            let [small, large] = [pair[0], pair[1]].map(|row| row.unpredictability);
            assert!(small.unpartitioned[0] > large.unpartitioned[0]);
            assert!(large.partitioned[0] < large.unpartitioned[0]);
        }
        let large = at(8192);
        assert!(large.alone.optimistic.nanos() > 8192 * 150);
        assert!(large.unpredictability.partitioned[0] < 1.001);
    }
}
