//! A machine of 001 in the model: where pages of tasks lie by color, and a flooder that uses the
//! caches before a task or between its slices (001 §5.1).

use cache::{Coloring, Kind, Memory, Pages, Shape, Timed, Waits, page_of};
use model::strategy::{Replacement, Writing};
use model::{Color, CpuId, Error, Platform, Result};

/// Bytes of a word of code.
const WORD: u32 = 4;

/// A platform with a colored cache.
pub struct Lab {
    /// Its name.
    pub platform: String,
    pub(super) page: u64,
    /// Colors of its outermost cache that has some, and the pages that a color holds.
    pub(super) colors: u64,
    pub(super) ways: u64,
    shape: Shape,
    cpu: CpuId,
}

/// What a flooder does with a color.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flooded {
    /// It changes all lines.
    Written,
    /// It reads them: the color has a single writer, who is somebody else (001 §5.3).
    Read,
    /// It has no page of the color.
    Spared,
}

/// Pages of a flooder, in the order in which it uses them; does it write them?
pub(super) struct Flooder {
    pages: Vec<(u64, bool)>,
    /// As many of the first ones as it executes.
    executed: usize,
}

/// The pages of a task: by its own page number the number in memory.
pub(super) struct Placed {
    pages: Vec<u64>,
    page: u64,
}

impl Placed {
    /// Where a byte of the task lies.
    #[inline]
    pub(super) fn address(&self, offset: u64) -> u64 {
        self.pages[(offset / self.page) as usize] * self.page + offset % self.page
    }
}

impl Lab {
    /// The machine; all its caches write so, if that is given.
    ///
    /// # Errors
    /// The platform's caches cannot be modelled, or have no colors.
    pub fn of(mut platform: Platform, write: Option<Writing>) -> Result<Self> {
        if write.is_some() {
            for cache in &mut platform.caches {
                cache.strategy.write = write;
            }
        }
        let shape = Shape::of(&platform)?;
        let page = page_of(&platform);
        let colors = shape.colors(page)?;
        Ok(Lab {
            ways: shape
                .colored(page)
                .map_or(1, |at| shape.parts[at].ways as u64),
            cpu: shape.cpus[0],
            platform: platform.name,
            page,
            colors,
            shape,
        })
    }

    /// What is free, since the platform has no price for it ([`Waits::unpriced`]).
    pub fn unpriced(&self) -> Vec<String> {
        Waits::unpriced(&self.shape)
    }

    /// Its first processor, with empty caches.
    ///
    /// # Errors
    /// A cache has no price `fill`.
    pub(super) fn machine(&self) -> Result<Timed> {
        let pages = Pages::as_traced(self.page)?;
        Timed::new(&self.shape, self.cpu, pages, 1)
            .map_err(|e| e.at(format!("platform `{}`", self.platform)))
    }

    /// Memory for a flooder, and for so many pages of tasks whatever their colors.
    pub(super) fn memory(&self, pages: u64) -> Result<Memory> {
        let rows = pages + self.flooded();
        Memory::new(Coloring::Plain, rows * self.colors, self.colors)
    }

    /// Takes pages of these colors.
    ///
    /// # Errors
    /// There is no such color, or no page of it is left.
    pub(super) fn place(
        &self,
        memory: &mut Memory,
        colors: impl IntoIterator<Item = u64>,
    ) -> Result<Placed> {
        let taken = colors.into_iter().map(|n| memory.take(Color(n as u16)));
        Ok(Placed {
            pages: taken.collect::<Result<_>>()?,
            page: self.page,
        })
    }

    /// How many pages of a color a flooder has: as many as the cache holds where the line that was
    /// used least recently makes room, and twice as many otherwise.
    fn flooded(&self) -> u64 {
        let parts = self.shape.parts.iter();
        let all_lru = parts
            .filter(|part| part.ways > 1)
            .all(|part| part.replacement == Replacement::Lru);
        self.ways * if all_lru { 1 } else { 2 }
    }

    /// A flooder that does this with each color.
    ///
    /// # Errors
    /// No color is left to it, or memory has too few pages.
    pub(super) fn flooder(
        &self,
        memory: &mut Memory,
        what: impl Fn(u64) -> Flooded,
    ) -> Result<Flooder> {
        let mut pages = Vec::new();
        for _ in 0..self.flooded() {
            for color in 0..self.colors {
                match what(color) {
                    Flooded::Spared => {}
                    does => {
                        pages.push((memory.take(Color(color as u16))?, does == Flooded::Written))
                    }
                }
            }
        }
        let first = self.shape.path(self.cpu, true).first().copied();
        let executed = first.map_or(0, |first| {
            let part = &self.shape.parts[first];
            2 * part.sets as u64 * part.ways as u64 * u64::from(self.shape.line)
        });
        let executed = (executed.div_ceil(self.page) as usize).min(pages.len());
        match pages.is_empty() {
            false => Ok(Flooder { pages, executed }),
            true => {
                Err(Error::new("the tasks leave no color to others")
                    .remedy("give them fewer colors"))
            }
        }
    }

    /// The flooder runs: it executes lines until the first cache of instructions holds no other,
    /// then it reads and changes every line of its pages (001 §5.1: "all available cache lines are
    /// accessed and modified"). No time passes for the task.
    pub(super) fn flood(&self, machine: &mut Timed, flooder: &Flooder) -> Result<()> {
        let line = u64::from(self.shape.line);
        machine.aside(|caches, [data, code]| {
            let executed = &flooder.pages[..flooder.executed];
            for (page, _) in executed {
                for offset in (0..self.page).step_by(line as usize) {
                    caches.access(code, Kind::Instruction, page * self.page + offset, WORD)?;
                }
            }
            for (page, writes) in &flooder.pages {
                let kind = if *writes { Kind::Modify } else { Kind::Read };
                for offset in (0..self.page).step_by(line as usize) {
                    caches.access(data, kind, page * self.page + offset, WORD)?;
                }
            }
            Ok(())
        })
    }

    /// How many lines the flooder uses until it begins again.
    pub(super) fn lines(&self, flooder: &Flooder) -> u64 {
        let pages = flooder.executed + flooder.pages.len();
        pages as u64 * (self.page / u64::from(self.shape.line))
    }

    /// The flooder uses one of its lines, in the order of [`Lab::flood`], and time passes.
    pub(super) fn flood_line(
        &self,
        machine: &mut Timed,
        flooder: &Flooder,
        number: u64,
    ) -> Result<()> {
        let lines = self.page / u64::from(self.shape.line);
        let place = (number / lines) as usize;
        let (page, kind) = match place.checked_sub(flooder.executed) {
            None => (flooder.pages[place].0, Kind::Instruction),
            Some(place) => match flooder.pages[place] {
                (page, true) => (page, Kind::Modify),
                (page, false) => (page, Kind::Read),
            },
        };
        let offset = number % lines * u64::from(self.shape.line);
        machine.access(kind, page * self.page + offset, WORD)
    }

    /// The task executes so many words of code.
    pub(super) fn execute(&self, machine: &mut Timed, code: &Placed, words: u32) -> Result<()> {
        for word in (0..words).step_by((self.shape.line / WORD).max(1) as usize) {
            let offset = u64::from(word * WORD) % self.page;
            machine.access(Kind::Instruction, code.address(offset), WORD)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(platform: &str) -> Lab {
        Lab::of(Platform::builtin(platform).unwrap(), None).unwrap()
    }

    /// What is spared stays in the second level, what is flooded leaves both, and lines that others
    /// changed cost a write-back that lines they read do not.
    #[test]
    fn a_flood_takes_the_colors_that_it_may_have() {
        let lab = lab("pentium-pro");
        let again = |what: Flooded| {
            let mut memory = lab.memory(1).unwrap();
            let own = lab.place(&mut memory, [3]).unwrap();
            let flooder = lab
                .flooder(&mut memory, |color| match color {
                    3 => what,
                    _ => Flooded::Written,
                })
                .unwrap();
            let mut machine = lab.machine().unwrap();
            let read = |machine: &mut Timed| {
                let before = machine.both().optimistic;
                machine.access(Kind::Read, own.address(40), 4).unwrap();
                machine.both().optimistic.saturating_sub(before).nanos()
            };
            read(&mut machine);
            assert_eq!(read(&mut machine), 0);
            lab.flood(&mut machine, &flooder).unwrap();
            read(&mut machine)
        };
        // One line from the second level or from memory; the one that makes room in the first level
        // was changed.
        assert_eq!(again(Flooded::Spared), 58 + 58);
        assert_eq!(again(Flooded::Read), 180 + 58);
        assert_eq!(again(Flooded::Written), 180 + 58 + 540);
    }

    #[test]
    fn tasks_in_all_colors_leave_no_flooder() {
        let lab = lab("pentium-90");
        let mut memory = lab.memory(1).unwrap();
        assert!(lab.flooder(&mut memory, |_| Flooded::Spared).is_err());
    }
}
