//! Plain and free coloring side by side, in a model of a platform's caches (001 §3.1 and §3.2): a
//! task owns half of the colors alone, another program has the rest.

use crate::{On, PROGRAM, provenance};
use cache::{Coloring, Hierarchy, Kind, Memory, Pages, Shape};
use model::{Bytes, Color, Error, Provenance, Result};
use report::panel::{Entry, Layer, Panel, Sketch};
use report::style::{Ink, Look, Marker};
use report::{Figure, axis::Axis};
use serde::Serialize;
use std::collections::BTreeSet;

/// What is shown.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose caches.
    pub on: On,
    /// How much memory there is. Default: 16 times the colored cache.
    pub memory: Option<Bytes>,
    /// Bits of an address, some of which name a color in free coloring; `None`: as many as it takes.
    pub address_bits: Option<u32>,
}

/// Both colorings. JSON: as `warmset cache coloring --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// The name of the platform.
    pub platform: String,
    /// The cache that has colors.
    pub cache: String,
    /// Its colors; the task owns the first half of them.
    pub colors: u64,
    /// Page frames of the memory.
    pub frames: u64,
    /// Pages of the task: as many as its half of the cache holds.
    pub task_pages: u64,
    /// By how many bits the tags of the cache are wider in free coloring; the memory that addresses
    /// can reach is divided by two for each.
    pub tag_bits: u32,
    /// The most memory in free coloring, where the bits of an address are given: 2^(address bits -
    /// tag bits).
    #[serde(rename = "most_memory_bytes", serialize_with = "model::size::whole")]
    pub most_memory: Option<Bytes>,
    /// Without colors, with plain and with free coloring.
    pub rows: Vec<Row>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// The most memory that addresses of so many bits reach where `tag_bits` of them name a color.
///
/// # Errors
/// They are no address, or reach less than this memory.
fn reached(bits: u32, tag_bits: u32, memory: u64) -> Result<Bytes> {
    let left = bits.checked_sub(tag_bits).filter(|left| *left > 0);
    let Some(left) = left.filter(|_| bits <= 64) else {
        let cause = format!("{bits} bits are no address beside {tag_bits} of a color");
        return Err(Error::new(cause)
            .at("--address-bits")
            .remedy(format!("give {} to 64", tag_bits + 1)));
    };
    let most = Bytes::new(1_u64.checked_shl(left).unwrap_or(u64::MAX));
    if memory > most.get() {
        return Err(Error::new(format!(
            "with free coloring addresses of {bits} bits reach {most}, since {tag_bits} of them name \
             a color"
        ))
        .at("--memory")
        .remedy("give less memory, or wider addresses (`--address-bits`)"));
    }
    Ok(most)
}

/// What comes of one way to place pages.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// `none`, `plain` or `free`.
    pub coloring: &'static str,
    /// Frames that nobody but the task can have.
    pub reserved_frames: u64,
    /// Those of them that it does not use.
    pub idle_frames: u64,
    /// Misses of the task in the colored cache when it walks its pages for the first time.
    pub first_misses: u64,
    /// When it walks them again after the other program has walked twice the cache.
    pub misses_after_other: u64,
    /// Where pages lie: color and frame, of the task.
    #[serde(skip)]
    task: Vec<(u64, u64)>,
    /// Of the other program.
    #[serde(skip)]
    other: Vec<(u64, u64)>,
}

/// How pages get their places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placing {
    Anywhere,
    Colored(Coloring),
}

/// Compares both.
///
/// # Errors
/// The platform has no cache with two colors or more, or less memory than both programs need; more
/// memory than addresses reach in free coloring.
pub fn compare(options: &Options, command: &str) -> Result<Compared> {
    let platform = options.on.platform()?;
    let shape = Shape::of(&platform)?;
    let page = cache::page_of(&platform);
    let colors = shape.colors_of_addresses(page)?;
    let index = shape.colored(page).unwrap_or(0);
    let part = &shape.parts[index];
    let whole = part.sets as u64 * part.ways as u64 * u64::from(shape.line) / page;
    let frames = options
        .memory
        .map_or(16 * whole, |memory| memory.get() / page);
    let tag_bits = colors.trailing_zeros();
    let most_memory = match options.address_bits {
        None => None,
        Some(bits) => Some(reached(bits, tag_bits, frames.saturating_mul(page))?),
    };
    let scene = Scene {
        shape: &shape,
        index,
        page,
        colors,
        frames,
        task_pages: whole / 2,
        other_pages: 2 * whole,
    };
    let ways = [
        ("none", Placing::Anywhere),
        ("plain", Placing::Colored(Coloring::Plain)),
        ("free", Placing::Colored(Coloring::Free)),
    ];
    let rows = ways
        .into_iter()
        .map(|(name, placing)| scene.play(name, placing))
        .collect::<Result<_>>()
        .map_err(|e| e.at("--memory"))?;
    Ok(Compared {
        platform: platform.name,
        cache: part.name.clone(),
        colors,
        frames,
        task_pages: scene.task_pages,
        tag_bits,
        most_memory,
        rows,
        provenance: Provenance {
            source: format!("{PROGRAM}, a model of 001 §3"),
            ..provenance(command)
        },
    })
}

/// The task and the other program in a memory.
struct Scene<'a> {
    shape: &'a Shape,
    index: usize,
    page: u64,
    colors: u64,
    frames: u64,
    task_pages: u64,
    other_pages: u64,
}

impl Scene<'_> {
    fn play(&self, name: &'static str, placing: Placing) -> Result<Row> {
        let coloring = match placing {
            Placing::Anywhere => Coloring::Plain,
            Placing::Colored(coloring) => coloring,
        };
        let half = self.colors / 2;
        let mut memory = Memory::new(coloring, self.frames, self.colors)?;
        // Without colors the task has every color in turn, and so has the other program.
        let (own, others) = match placing {
            Placing::Anywhere => (0..self.colors, 0..self.colors),
            Placing::Colored(_) => (0..half, half..self.colors),
        };
        let mut take = |count: u64, colors: std::ops::Range<u64>| -> Result<Vec<u64>> {
            let turn: Vec<u64> = colors.collect();
            (0..count as usize)
                .map(|n| memory.take(Color(turn[n % turn.len()] as u16)))
                .collect()
        };
        let task = take(self.task_pages, own)?;
        let other = take(self.other_pages, others)?;
        let mut caches = Hierarchy::new(self.shape, Pages::as_traced(self.page)?, 1)?;
        let first_misses = self.walk(&mut caches, &task)?;
        self.walk(&mut caches, &other)?;
        let misses_after_other = self.walk(&mut caches, &task)?;
        let reserved = match placing {
            Placing::Anywhere => self.task_pages,
            Placing::Colored(Coloring::Plain) => memory.reserved(half),
            // The frames that the task has in fact; any other may be anybody's.
            Placing::Colored(Coloring::Free) => self.task_pages + memory.reserved(half),
        };
        let places = |numbers: &[u64]| -> Vec<(u64, u64)> {
            let frame = |number: u64| match coloring {
                Coloring::Plain => number,
                Coloring::Free => number / self.colors,
            };
            let place = |number: &u64| (number % self.colors, frame(*number));
            numbers.iter().map(place).collect()
        };
        Ok(Row {
            coloring: name,
            reserved_frames: reserved,
            idle_frames: reserved - self.task_pages,
            first_misses,
            misses_after_other,
            task: places(&task),
            other: places(&other),
        })
    }

    /// Reads every line of the pages. Returns the misses of the colored cache.
    fn walk(&self, caches: &mut Hierarchy, pages: &[u64]) -> Result<u64> {
        let misses = |caches: &Hierarchy| -> u64 {
            caches.counts(self.index).iter().map(|c| c.misses()).sum()
        };
        let before = misses(caches);
        let port = caches.port(self.shape.cpus[0], Kind::Read)?;
        let line = self.shape.line as usize;
        let addresses: Vec<u64> = pages
            .iter()
            .flat_map(|number| (number * self.page..(number + 1) * self.page).step_by(line))
            .collect();
        caches.load(port, &addresses)?;
        Ok(misses(caches) - before)
    }
}

/// At most so many frames that lie idle are drawn.
const MOST_IDLE: u64 = 4000;

impl Compared {
    /// Frames that are reserved for the task and not used by it, with their colors; of many some,
    /// equally far apart.
    fn idle(&self, row: &Row) -> Vec<(u64, u64)> {
        if row.idle_frames == 0 {
            return Vec::new();
        }
        let used: BTreeSet<u64> = row.task.iter().map(|place| place.1).collect();
        // An odd step meets every color.
        let step = (self.frames / MOST_IDLE) | 1;
        (0..self.frames)
            .step_by(step as usize)
            .filter(|frame| frame % self.colors < self.colors / 2 && !used.contains(frame))
            .map(|frame| (frame % self.colors, frame))
            .collect()
    }

    /// The picture: which frames have which colors, in plain and in free coloring.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Figure> {
        let panels = self.rows.iter().skip(1).map(|row| {
            let points = |places: &[(u64, u64)]| -> Vec<(f64, f64)> {
                let places = places.iter();
                places
                    .map(|(color, frame)| (*frame as f64, *color as f64))
                    .collect()
            };
            let cloud = |ink, places: &[(u64, u64)]| Layer::Cloud {
                ink,
                points: points(places),
                crosses: false,
            };
            Panel {
                title: format!("{} coloring", row.coloring),
                description: format!(
                    "The task uses {} of {} frames; {} more are kept from all others.",
                    self.task_pages, self.frames, row.idle_frames
                ),
                x: Axis::linear("page frame", 0.0..self.frames as f64, report::words::plain),
                y: Axis::linear("color", -1.0..self.colors as f64, report::words::plain),
                layers: vec![
                    cloud(Ink::Gray, &self.idle(row)),
                    cloud(Ink::Sky, &row.other),
                    cloud(Ink::Vermilion, &row.task),
                ],
            }
        });
        Sketch {
            id: "coloring".to_owned(),
            title: format!(
                "Half of the colors of the {} of {} for one task",
                self.cache, self.platform
            ),
            description: String::new(),
            caption:
                "A dot a page: of the task, which owns the lower half of the colors, of another \
                      program, and of nobody, since only the task may have it."
                    .to_owned(),
            remark: String::new(),
            columns: 2,
            panel: (420.0, 320.0),
            legend: [
                (Ink::Vermilion, "the task"),
                (Ink::Sky, "another program"),
                (Ink::Gray, "reserved and idle"),
            ]
            .map(|(ink, name)| Entry {
                look: Look {
                    ink,
                    dash: "",
                    marker: Marker::Circle,
                },
                name: name.to_owned(),
            })
            .into(),
            panels: panels.collect(),
        }
        .draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;

    /// 001 §3.2: the same misses as plain coloring, and no memory reserved.
    #[test]
    fn free_coloring_separates_as_plain_coloring_does_and_reserves_nothing() {
        for platform in ["i486", "pentium-133", "pentium-pro"] {
            let options = Options {
                on: On::Platform(Choice::Named(platform.to_owned())),
                memory: None,
                address_bits: None,
            };
            let seen = compare(&options, "").unwrap();
            let [none, plain, free] = &seen.rows[..] else {
                panic!("{seen:?}")
            };
            // 256 KiB are 64 pages of 4 KiB; memory is 16 times that.
            assert_eq!((seen.frames, seen.task_pages), (1024, 32));
            assert_eq!((plain.reserved_frames, plain.idle_frames), (512, 480));
            assert_eq!((seen.idle(plain).len(), seen.idle(free).len()), (480, 0));
            assert_eq!(free.idle_frames, 0);
            assert_eq!(plain.first_misses, free.first_misses);
            assert_eq!((plain.misses_after_other, free.misses_after_other), (0, 0));
            assert_eq!(none.misses_after_other, none.first_misses, "{platform}");
            let frames: BTreeSet<u64> = free
                .task
                .iter()
                .chain(&free.other)
                .map(|place| place.1)
                .collect();
            assert_eq!(frames.len() as u64, 32 + 128);
            assert!(seen.figure().unwrap().to_svg().contains("free coloring"));
        }
    }

    /// Where several caches of the level have colors, those count that the programs run behind.
    #[test]
    fn colors_separate_where_there_are_several_colored_caches() {
        let options = Options {
            on: On::Platform(Choice::Named("xeon-l7455".to_owned())),
            memory: None,
            address_bits: None,
        };
        let seen = compare(&options, "").unwrap();
        let [none, plain, free] = &seen.rows[..] else {
            panic!("{seen:?}")
        };
        // Half of 12 MiB in lines of 64 bytes.
        assert_eq!(plain.first_misses, 6 << 14);
        assert_eq!(free.first_misses, plain.first_misses);
        assert_eq!((plain.misses_after_other, free.misses_after_other), (0, 0));
        assert_eq!(none.misses_after_other, none.first_misses);
    }

    fn of_the_pentium_pro(memory: Bytes, address_bits: impl Into<Option<u32>>) -> Result<Compared> {
        let options = Options {
            on: On::Platform(Choice::Named("pentium-pro".to_owned())),
            memory: Some(memory),
            address_bits: address_bits.into(),
        };
        compare(&options, "")
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let told = of_the_pentium_pro(Bytes::from_kib(512), None).unwrap_err();
        assert!(told.to_string().contains("no frame of color"), "{told}");
    }

    /// 001 §3.2: 16 colors have four bits of an address, so that of 26 bits 22 say where in memory.
    #[test]
    fn addresses_that_name_colors_reach_less_memory() {
        let four = Bytes::from_mib(4);
        let most = |bits: Option<u32>| of_the_pentium_pro(four, bits).unwrap().most_memory;
        assert_eq!((most(None), most(Some(26))), (None, Some(four)));
        for (memory, bits, cause) in [
            (Bytes::from_mib(8), 26, "addresses of 26 bits reach 4MiB"),
            (four, 4, "no address beside 4"),
            (four, 65, "no address beside 4"),
        ] {
            let told = of_the_pentium_pro(memory, bits).unwrap_err().to_string();
            assert!(told.contains(cause), "{told}");
        }
    }
}
