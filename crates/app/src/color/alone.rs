//! A program in colors without a memory server: finds the colors, sorts memory by them for one run.

use super::find::{alike, cache_with_colors, find_palette, keep_pages};
use heap::exec::{self, Plan, Ran, Start};
use machine::settings::Settings;
use model::watch::Watch;
use model::{Bytes, Error, Result};
use partition::Colors;
use partition::client::usual_socket;
use partition::server::Server;
use partition::tile;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory that was sorted for this run alone.
pub struct Sorted {
    /// How many colors there are, those of the program among them.
    pub colors: u16,
    /// How much was sorted into all of them.
    pub memory: Bytes,
}

impl Sorted {
    /// How much to sort so that the program gets so much of its own colors: more than was sorted.
    pub fn enough(&self, need: Bytes, plan: &Plan) -> Bytes {
        // In the next step where it should have been enough.
        let more = Bytes::new(self.memory.get() / STEP.get() * STEP.get() + STEP.get());
        enough(need, plan, self.colors).max(more)
    }
}

/// Runs a program with memory that is sorted for this run alone. `memory`: how much, where the user
/// says so. `is_told`: how much is sorted is a remark to `watch` where it takes long. Returns how
/// much it was as well.
///
/// # Errors
/// The colors cannot be told, or not be had; the program cannot be started.
pub fn alone(
    memory: Option<Bytes>,
    plan: &Plan,
    program: &Path,
    arguments: &[OsString],
    is_told: bool,
    watch: &dyn Watch,
) -> Result<(Ran, Sorted)> {
    let own = Own::sort(memory, plan, &plan.colors, program, is_told, watch)?;
    let ran = own.run(plan, program, arguments, Start::plain())?;
    Ok((ran, own.sorted))
}

/// Memory that is sorted by color for the runs of this process.
pub struct Own {
    // Nobody else can reach it: it has no socket.
    server: Arc<Server>,
    /// How much it is.
    pub sorted: Sorted,
    _settings: Settings,
}

impl Own {
    /// Sorts memory for runs in these colors: so much that there is enough in those of the plan.
    ///
    /// # Errors
    /// The colors cannot be told, or not be had.
    pub fn sort(
        memory: Option<Bytes>,
        plan: &Plan,
        wanted: &Colors,
        program: &Path,
        is_told: bool,
        watch: &dyn Watch,
    ) -> Result<Self> {
        let platform = machine::this_machine()?.platform;
        let cache = cache_with_colors(&platform, None, None)?;
        wanted.check(cache.colors)?;
        let memory = match memory {
            Some(memory) => memory,
            None => usual_memory(exec::known_need(program, plan)?, plan, cache.colors),
        };
        tile::allow_files(memory);
        let settings = keep_pages(watch);
        let pause = |search: u32| sleep(PAUSE * 2_u32.pow(search - 1), watch);
        let (palette, mut tiles) = again(watch, pause, || {
            let find = || find_palette(&platform, None, None, watch);
            let make = |palette: &_| {
                let on = alike(&platform, palette);
                tile::make(palette, memory, &on, watch)
            };
            found_and_sorted(memory, is_told, watch, find, make)
        })?;
        tiles.retain(|tile| wanted.contains(tile.color));
        watch.finish();
        watch.note(&format!(
            "no memory server at {}: sorted {} in colors {} for this run",
            usual_socket().display(),
            Bytes::new((tiles.len() * tile::TILE) as u64),
            wanted
        ));
        let colors = palette.colors();
        Ok(Own {
            server: Arc::new(Server::new(colors, tiles)),
            sorted: Sorted { colors, memory },
            _settings: settings,
        })
    }

    /// Runs a program in it.
    ///
    /// # Errors
    /// The colors cannot be had; the program cannot be started.
    pub fn run(
        &self,
        plan: &Plan,
        program: &Path,
        arguments: &[OsString],
        start: Start<'_>,
    ) -> Result<Ran> {
        exec::run_over(self.server.attach()?, plan, program, arguments, start)
    }
}

/// Finds colors and sorts memory by them. With `is_told` a remark to `watch` says that sorting
/// begins, where it takes long.
fn found_and_sorted<P, T>(
    memory: Bytes,
    is_told: bool,
    watch: &dyn Watch,
    find: impl FnOnce() -> Result<P>,
    make: impl FnOnce(&P) -> Result<T>,
) -> Result<(P, T)> {
    let palette = find()?;
    if memory > Bytes::from_mib(64) && is_told {
        watch.note(&format!("sorting {memory} by color for this run"));
    }
    let tiles = make(&palette)?;
    Ok((palette, tiles))
}

/// Waits so long, or until the user stops it.
fn sleep(time: Duration, watch: &dyn Watch) {
    let until = Instant::now() + time;
    while !watch.stopped() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How often colors are searched before a run without a server is refused. While others use the
/// same core, no search may be sure; it is seldom so for long.
const SEARCHES: u32 = 6;
/// After the first search; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(500);

/// Searches again, a bounded number of times, where colors could not be told or memory could not be
/// sorted by them. Each time it is said why. `pause` waits after a search that failed.
fn again<T>(
    watch: &dyn Watch,
    pause: impl Fn(u32),
    mut search: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut number = 1;
    loop {
        let e = match search() {
            Err(e) if !watch.stopped() => e,
            found => return found,
        };
        if number == SEARCHES {
            let all = Error::new(format!("{}, in the last of {SEARCHES} searches", e.cause()));
            return Err(all.remedy(
                "start it when the machine is less busy, or use a memory server: \
                 `warmset color serve` finds colors once",
            ));
        }
        watch.note(&format!(
            "note: search {number} of {SEARCHES} for colors: {e}; searching again"
        ));
        pause(number);
        number += 1;
    }
}

/// How much memory is sorted where nobody says it: enough for what the program is known to need of
/// its colors, within bounds.
fn usual_memory(need: Bytes, plan: &Plan, colors: u16) -> Bytes {
    let (least, most) = (Bytes::from_mib(64), Bytes::from_mib(256));
    // What it will allocate is not known; a little is always needed.
    let need = Bytes::new(need.get().saturating_add(1 << 20));
    enough(need, plan, colors).clamp(least, most)
}

/// Memory is sorted in steps of this size where nobody says how much.
const STEP: Bytes = Bytes::from_mib(64);

/// How much to sort so that the program gets so much of its own colors: a quarter more than its
/// share, as colors get unequal shares and some pages get none.
fn enough(need: Bytes, plan: &Plan, colors: u16) -> Bytes {
    let own = plan.colors.len().max(1) as u64;
    let all = need.get().saturating_mul(u64::from(colors)) / own;
    let steps = all.saturating_add(all / 4).div_ceil(STEP.get());
    Bytes::new(steps.saturating_mul(STEP.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heap::exec::Part;
    use testing::watching::Notes;

    fn plan() -> Plan {
        Plan {
            colors: partition::Colors::first(2),
            by_task: false,
            parts: Part::ALL.to_vec(),
            stack: Bytes::from_kib(64),
            segments: Bytes::from_kib(64),
            strict: false,
        }
    }

    /// Fails so often; says the notes, how often it waited, and what came of it.
    fn searched(failures: u32) -> (Vec<String>, u32, Result<u32>) {
        let (notes, waited) = (Notes::default(), std::cell::Cell::new(0));
        let mut searches = 0;
        let found = again(
            &notes,
            |_| waited.set(waited.get() + 1),
            || {
                searches += 1;
                match searches <= failures {
                    true => Err(Error::new("30 of 32 colors were found").remedy("wait")),
                    false => Ok(searches),
                }
            },
        );
        (notes.into_inner(), waited.get(), found)
    }

    #[test]
    fn colors_that_cannot_be_told_are_searched_again_a_bounded_number_of_times() {
        let (notes, waited, found) = searched(0);
        assert_eq!((notes.len(), waited, found.unwrap()), (0, 0, 1));
        let (notes, waited, found) = searched(5);
        assert_eq!((notes.len(), waited, found.unwrap()), (5, 5, 6));
        assert!(
            notes[0].contains("search 1 of 6") && notes[4].contains("search 5 of 6"),
            "{notes:?}"
        );
        assert!(notes[0].contains("30 of 32"), "{notes:?}");
        let (notes, waited, found) = searched(6);
        assert_eq!((notes.len(), waited), (5, 5));
        let e = found.unwrap_err().to_string();
        assert!(
            e.contains("30 of 32") && e.contains("last of 6") && e.contains("color serve"),
            "{e}"
        );
    }

    /// Where the progress bar is not seen, the user has to know why a program does not begin.
    #[test]
    fn sorting_that_takes_long_is_told_before_it_begins() {
        let noted = |mib: u64, is_told: bool| {
            let notes = Notes::default();
            let find = || {
                notes.note("found");
                Ok(())
            };
            let make = |(): &()| {
                notes.note("made");
                Ok(())
            };
            found_and_sorted(Bytes::from_mib(mib), is_told, &notes, find, make).unwrap();
            notes.into_inner()
        };
        let told = "sorting 65MiB by color for this run";
        assert_eq!(noted(65, true), ["found", told, "made"]);
        // On a terminal the bar tells it. 64 MiB, the least, are sorted soon.
        assert_eq!(noted(65, false), ["found", "made"]);
        assert_eq!(noted(64, true), ["found", "made"]);
        // Nothing is sorted where no colors were found.
        let notes = Notes::default();
        let none = || Err::<(), _>(Error::new("30 of 32 colors were found"));
        let make = |(): &()| -> Result<()> { panic!("there are no colors") };
        assert!(found_and_sorted(Bytes::from_mib(65), true, &notes, none, make).is_err());
        assert!(notes.into_inner().is_empty());
    }

    #[test]
    fn memory_is_sorted_by_what_is_known_of_a_program_within_bounds() {
        let mib = Bytes::from_mib;
        // Two of 32 colors.
        assert_eq!(usual_memory(mib(0), &plan(), 32), mib(64));
        // 5 MiB and one more are 96 of all, and a quarter more.
        assert_eq!(usual_memory(mib(5), &plan(), 32), mib(128));
        assert_eq!(usual_memory(mib(100), &plan(), 32), mib(256));
        let sorted = Sorted {
            colors: 32,
            memory: mib(100),
        };
        assert_eq!(sorted.enough(mib(1), &plan()), mib(128));
    }
}
