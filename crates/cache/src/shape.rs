//! The caches of a platform as the model needs them: complete, nested, of one line size.
//!
//! What a platform does not say is assumed, and the assumption is told ([`Shape::assumed`]).

use model::strategy::{Inclusion, Indexing, Prefetch, Replacement, Strategy, Writing};
use model::{Cache, CacheKind, CpuId, CpuSet, Error, Platform, Result};

/// The most bytes of a cache that can be modelled, and the most sets: what it takes to know its
/// lines is then below 1 GiB.
const LARGEST: u64 = 1 << 30;
const MOST_SETS: u64 = 1 << 22;
/// The most ways: sets of more than 16 are searched one by one.
const MOST_WAYS: u32 = 4096;

/// One cache, complete.
#[derive(Clone, Debug)]
pub struct Part {
    /// `L1d`, `L2`.
    pub name: String,
    /// 1 is nearest to the processor.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// The processors behind it, ascending.
    pub cpus: Vec<CpuId>,
    /// Sets.
    pub sets: usize,
    /// Ways.
    pub ways: usize,
    /// What becomes of a write.
    pub write: Writing,
    /// Is a line fetched that is written and not there?
    pub allocate: bool,
    /// Which line makes room.
    pub replacement: Replacement,
    /// What it holds of the lines in the caches before it.
    pub inclusion: Inclusion,
    /// Which address chooses the set.
    pub indexing: Indexing,
    /// What it fetches before it is asked.
    pub prefetch: Option<Prefetch>,
    /// What the platform says of it, prices among that.
    pub strategy: Strategy,
    /// The next cache, by its place in [`Shape::parts`]; `None`: memory.
    pub next: Option<usize>,
}

/// All caches of a platform.
#[derive(Clone, Debug)]
pub struct Shape {
    /// By level, then kind, then lowest processor.
    pub parts: Vec<Part>,
    /// Bytes of a line, in all of them.
    pub line: u32,
    /// Every processor of the platform.
    pub cpus: Vec<CpuId>,
    /// What was assumed since the platform does not say it, in sentences.
    pub assumed: Vec<String>,
}

/// Bytes of a page where a platform names none.
const USUAL_PAGE: u64 = 4096;

/// Bytes of the smallest page of a platform.
pub fn page_of(platform: &Platform) -> u64 {
    let smallest = platform.page_sizes.first();
    smallest.map_or(USUAL_PAGE, |size| size.get())
}

impl Shape {
    /// The outermost cache that has colors with pages of so many bytes, by its place in `parts`: of
    /// several of a level the one that serves the first processor, if one does.
    pub fn colored(&self, page: u64) -> Option<usize> {
        let has_colors = |part: &Part| {
            let way = part.sets as u64 * u64::from(self.line);
            part.indexing == Indexing::Physical && way > page && way.is_multiple_of(page)
        };
        let last = self.parts.iter().rposition(has_colors)?;
        let level = self.parts[last].level;
        let serves = |part: &Part| self.cpus.first().is_some_and(|cpu| part.cpus.contains(cpu));
        let of_the_first = self
            .parts
            .iter()
            .position(|part| part.level == level && has_colors(part) && serves(part));
        Some(of_the_first.unwrap_or(last))
    }

    /// How many colors that has.
    ///
    /// # Errors
    /// No cache has any.
    pub fn colors(&self, page: u64) -> Result<u64> {
        let part = self.colored(page).ok_or_else(|| {
            Error::new("no cache of the platform has colors: a way of each is at most a page")
                .remedy("choose another platform, or `--pages random`")
        })?;
        Ok(self.parts[part].sets as u64 * u64::from(self.line) / page)
    }

    /// As [`Shape::colors`], where pages are placed by their colors: those are bits of an address
    /// then.
    ///
    /// # Errors
    /// No cache has any; their number is no power of two.
    pub fn colors_of_addresses(&self, page: u64) -> Result<u64> {
        let colors = self.colors(page)?;
        if colors.is_power_of_two() {
            return Ok(colors);
        }
        let part = self.colored(page).map(|at| self.parts[at].name.as_str());
        Err(Error::new(format!(
            "the {} of the platform has {colors} colors, which no bits of an address tell",
            part.unwrap_or("cache")
        ))
        .remedy(
            "choose a platform where it has a power of two of them, or place no pages by color",
        ))
    }

    /// The caches of a platform.
    ///
    /// # Errors
    /// There are none; one lacks a size, ways or a line, or has numbers that do not fit together;
    /// lines differ; the processors of a cache are not all behind one cache of the next level; a
    /// strategy that the model cannot do.
    pub fn of(platform: &Platform) -> Result<Self> {
        let place = format!("platform `{}`", platform.name);
        Self::complete(platform).map_err(|e| e.at(place))
    }

    fn complete(platform: &Platform) -> Result<Self> {
        platform.check()?;
        let mut shape = Shape {
            parts: Vec::new(),
            line: 0,
            cpus: platform.processors.iter().map(|p| p.id).collect(),
            assumed: Vec::new(),
        };
        for cache in &platform.caches {
            let (part, line) = shape.part(cache)?;
            if shape.parts.is_empty() {
                shape.line = line;
            }
            if shape.line != line {
                return Err(Error::new(format!(
                    "the {} of processors {} has lines of {line} bytes, others of {}",
                    part.name, cache.shared_by, shape.line
                ))
                .remedy("describe caches with one size of lines: the model has no other"));
            }
            shape.parts.push(part);
        }
        if shape.parts.is_empty() {
            return Err(Error::new("no caches are described").remedy(
                "choose another platform (`warmset platform --platform list`), or add `[[caches]]`",
            ));
        }
        shape.connect()?;
        shape.assumed.sort();
        shape.assumed.dedup();
        Ok(shape)
    }

    /// One cache without its neighbors, and its line.
    fn part(&mut self, cache: &Cache) -> Result<(Part, u32)> {
        let name = cache.label();
        let whose = format!("the {name} of processors {}", cache.shared_by);
        let lacks = |key: &str| {
            Error::new(format!("{whose} has no `{key}`"))
                .remedy("add it to the platform file: the model needs size, ways and line")
        };
        let line = cache.line.ok_or_else(|| lacks("line"))?;
        let ways = cache.ways.ok_or_else(|| lacks("ways"))?;
        let size = cache.size.ok_or_else(|| lacks("size"))?.get();
        if !line.is_power_of_two() || !(16..=4096).contains(&line) {
            return Err(Error::new(format!("{whose} has lines of {line} bytes"))
                .remedy("give a power of two from 16 to 4096"));
        }
        let way = u64::from(ways) * u64::from(line);
        let sets = size / way;
        let told = cache.sets.map_or(sets, u64::from);
        if size > LARGEST || ways > MOST_WAYS || sets > MOST_SETS {
            return Err(
                Error::new(format!("{whose} is larger than the model can be")).remedy(format!(
                    "describe at most 1 GiB, {MOST_SETS} sets and {MOST_WAYS} ways"
                )),
            );
        }
        if sets == 0 || size % way != 0 || told != sets {
            return Err(Error::new(format!(
                "{whose} has {size} bytes, which are not {told} sets of {ways} ways of {line} bytes"
            ))
            .remedy("correct size, ways, line or sets"));
        }
        let strategy = cache.strategy;
        let write = self.assume(&name, "write", strategy.write, Writing::Back, Writing::name);
        let part = Part {
            level: cache.level,
            kind: cache.kind,
            cpus: cache.shared_by.iter().collect(),
            sets: sets as usize,
            ways: ways as usize,
            write,
            allocate: strategy.allocate.unwrap_or(write == Writing::Back),
            replacement: self.assume(
                &name,
                "replacement",
                strategy.replacement,
                Replacement::Lru,
                Replacement::name,
            ),
            inclusion: strategy.inclusion.unwrap_or(Inclusion::Neither),
            indexing: strategy.indexing.unwrap_or(Indexing::Physical),
            prefetch: strategy.prefetch,
            strategy,
            next: None,
            name,
        };
        if part.replacement == Replacement::Plru && !(ways.is_power_of_two() && ways <= 64) {
            return Err(Error::new(format!("{whose} has {ways} ways and tree-PLRU"))
                .remedy("give a power of two up to 64 ways, or another `replacement`"));
        }
        Ok((part, line))
    }

    /// What the platform says, or the default, which is then told.
    fn assume<T: Copy>(
        &mut self,
        cache: &str,
        key: &str,
        said: Option<T>,
        usual: T,
        name: fn(T) -> &'static str,
    ) -> T {
        said.unwrap_or_else(|| {
            self.assumed.push(format!(
                "{cache}: `{key} = \"{}\"`, as the platform does not say",
                name(usual)
            ));
            usual
        })
    }

    /// Finds the next cache of each.
    fn connect(&mut self) -> Result<()> {
        for index in 0..self.parts.len() {
            let own = &self.parts[index];
            let mine: CpuSet = own.cpus.iter().copied().collect();
            let meets = |other: &Part| other.cpus.iter().any(|cpu| mine.contains(*cpu));
            let next = self.parts.iter().position(|other| {
                other.level > own.level && other.kind != CacheKind::Instruction && meets(other)
            });
            if let Some(next) = next {
                let behind = &self.parts[next];
                let all: CpuSet = behind.cpus.iter().copied().collect();
                if !mine.is_subset(&all) {
                    return Err(Error::new(format!(
                        "the {} of processors {mine} is behind the {} of processors {all} in part",
                        own.name, behind.name
                    ))
                    .remedy("let a cache serve all processors of each cache before it, or none"));
                }
                if behind.inclusion == Inclusion::Exclusive && own.write == Writing::Through {
                    return Err(Error::new(format!(
                        "the {} is exclusive and the {} before it writes through",
                        behind.name, own.name
                    ))
                    .remedy(
                        "let the inner cache write back, or the outer one be no exclusive one",
                    ));
                }
            }
            self.parts[index].next = next;
        }
        Ok(())
    }

    /// The same caches for accesses whose hits in the first one are part of their computing.
    #[must_use]
    pub fn without_hits(mut self) -> Self {
        for part in &mut self.parts {
            part.strategy.hit = None;
        }
        self
    }

    /// The caches that serve a processor's instructions, or its data, from the nearest outwards.
    pub fn path(&self, cpu: CpuId, instructions: bool) -> Vec<usize> {
        let unwanted = match instructions {
            true => CacheKind::Data,
            false => CacheKind::Instruction,
        };
        let serves = |part: &Part| part.kind != unwanted && part.cpus.contains(&cpu);
        let first = self.parts.iter().position(serves);
        std::iter::successors(first, |index| self.parts[*index].next).collect()
    }
}
