//! Colors of this machine, found for real: that they agree with themselves and act, that the server
//! gives out what it says, and that it notices when frames are moved. What this machine cannot show
//! is reported as ignored, with the reason.

mod running;

use model::watch::Silent;
use model::{Bytes, CpuSet, Duration, Error};
use partition::frame::{Page, pages};
use partition::ledger::Access;
use partition::protocol::{Answer, Request};
use partition::server::Server;
use partition::tile::{self, TILE_PAGES, Tile};
use partition::upkeep::{Found, Upkeep};
use partition::{Color, Colors, Geometry, Palette, finder, selftest};
use running::Running;
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use testing::{NotRun, Outcome};

/// What the finder says of a machine whose colors cannot be told apart, or not today. Every other
/// error is a defect.
const CANNOT_TELL: [&str; 3] = [
    "could not be told apart for sure",
    "cannot be told apart: reading one takes",
    "its pages have no color",
];

/// Why the finder cannot tell colors here.
///
/// # Panics
/// It failed for another reason.
fn cannot_tell(error: &Error) -> String {
    let said = error.to_string();
    assert!(
        CANNOT_TELL.iter().any(|why| said.contains(why)),
        "the finder failed: {said}"
    );
    said
}

/// The palette of the first level that has colors, or why there is none. The search has to be sure
/// where colors show without it.
fn palette() -> Result<Palette, NotRun> {
    let machine = machine::this_machine().unwrap();
    let platform = &machine.platform;
    let cpu = platform.usable().lowest().expect("a processor to run on");
    let mut why = NotRun::because("no cache of this machine has colors");
    for level in platform.data_levels() {
        let geometry = Geometry::of(platform, level, cpu);
        let Some(geometry) = geometry.ok().filter(|g| finder::colorable(g).is_ok()) else {
            continue;
        };
        let (ways, colors) = (geometry.ways as usize, usize::from(geometry.colors));
        let found = testing::colors::works(
            || testing::colors::look(ways, colors, cpu, 200).shows_colors(),
            || {
                let found = partition::find(platform, level, cpu, &Silent).and_then(Palette::sure);
                found.map_err(|e| cannot_tell(&e))
            },
        );
        match found {
            Ok(palette) => return Ok(palette),
            Err(not) => why = not,
        }
    }
    Err(why)
}

/// So often a tile gets other frames, at most.
const MOST_SWAPS: usize = 64;

testing::tests!(alone:
    colors_agree_with_themselves_and_act,
    what_is_handed_out_has_the_color_that_it_is_said_to_have,
    a_tile_whose_frames_were_moved_is_noticed_and_struck_off,
    colors_are_still_known_when_a_child_was_made,
);

/// How many pages do not have the color that is said, or the first sorting gives, neither in a
/// sorting nor in another one: others on the machine make one err.
fn differing(
    palette: &Palette,
    pages: &[Page<'_>],
    said: impl Fn(usize) -> Option<Color>,
) -> usize {
    let on = CpuSet::from_iter([palette.cpu]);
    let sort = || palette.sort(pages, &on, &Silent).unwrap();
    let (first, second, third) = (sort(), sort(), sort());
    let differs = |page: &usize| {
        let (expected, others) = match said(*page) {
            Some(color) => (Some(color), [first[*page], second[*page]]),
            None => (first[*page], [second[*page], third[*page]]),
        };
        let other =
            |color: Option<Color>| color.is_some() && expected.is_some() && color != expected;
        others.into_iter().all(other)
    };
    (0..pages.len()).filter(differs).count()
}

fn colors_agree_with_themselves_and_act() -> Outcome {
    let palette = palette()?;
    assert_eq!(palette.colors(), palette.cache.colors);

    // Its own pages are sorted back into their colors.
    let one = CpuSet::from_iter([palette.cpu]);
    let (mut all, mut placed, mut other) = (0, 0, 0);
    for color in (0..palette.colors()).map(Color) {
        let sorted = palette
            .sort(&palette.members(color), &one, &Silent)
            .unwrap();
        all += sorted.len();
        placed += sorted.iter().flatten().count();
        other += sorted.iter().flatten().filter(|c| **c != color).count();
    }
    assert!(other * 50 <= all, "{other} of {all} are of another color");
    assert!(
        placed * 10 >= all * 8,
        "only {placed} of {all} have a color"
    );

    // Sorting again gives the same colors.
    let area = machine::memory::Area::map(Bytes::from_mib(2)).unwrap();
    let differ = differing(&palette, &pages(&area), |_| None);
    assert!(differ * 50 <= 512, "{differ} of 512 differ");

    let curve = selftest::curve(&palette, 5, &Silent).unwrap();
    // A color may have kept few pages more than there are ways.
    let beyond = curve.points.last().map_or(0.0, |p| p.ratio);
    let within = curve.ratio_at(palette.cache.ways / 2).unwrap_or(0.0);
    assert!(beyond > within, "{beyond} is not above {within}");
    Ok(())
}

fn what_is_handed_out_has_the_color_that_it_is_said_to_have() -> Outcome {
    let palette = palette()?;
    let on = CpuSet::from_iter([palette.cpu]);
    let tiles = tile::make(&palette, Bytes::from_mib(16), &on, &Silent).unwrap();
    if tiles.len() < usize::from(palette.colors()) {
        return Err(NotRun::because(format!(
            "only {} tiles could be kept together, fewer than colors",
            tiles.len()
        )));
    }
    let made: Vec<Color> = tiles.iter().map(|tile| tile.color).collect();
    let server = Running::start(palette.colors(), tiles);
    server.grant_me(&format!("0-{}", palette.colors() - 1));
    let mut checked = 0;
    for color in (0..palette.colors()).map(Color) {
        if !made.contains(&color) {
            continue;
        }
        let memory = server
            .connect()
            .map(&Colors::from_iter([color]), Bytes::from_kib(64))
            .unwrap();
        let wrong = differing(&palette, &memory.pages(), |_| Some(color));
        assert!(wrong <= 1, "{wrong} pages of color {color} have another");
        checked += 1;
    }
    // As many tiles as colors at least: they are of one color alone by no chance.
    assert!(checked > 1, "tiles of {checked} color");
    Ok(())
}

fn a_tile_whose_frames_were_moved_is_noticed_and_struck_off() -> Outcome {
    let palette = palette()?;
    let on = CpuSet::from_iter([palette.cpu]);
    let tiles = tile::make(&palette, Bytes::from_mib(8), &on, &Silent).unwrap();
    let [first, second, ..] = &tiles[..] else {
        return Err(NotRun::because("no two tiles could be kept together"));
    };
    // Frames are taken away behind the server's back: others come in their place. What is freed
    // would come back first, so ordinary memory takes it, and keeps it.
    let mut taken = Vec::new();
    let mut swap = |tile: &Tile| {
        let file = tile.open(Access::Full).unwrap();
        let others = machine::memory::Area::map(Bytes::from_mib(1)).unwrap();
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: calls with plain numbers on an open file, and on pages whose contents nobody
        // needs.
        let done = unsafe {
            libc::munlock(others.base().cast(), others.size());
            libc::madvise(others.base().cast(), others.size(), libc::MADV_DONTNEED);
            let done = libc::fallocate(file.as_raw_fd(), punch, 0, tile::TILE as libc::off_t);
            for page in 0..others.size() / 4096 {
                others
                    .base()
                    .cast::<u8>()
                    .add(page * 4096)
                    .write_volatile(1);
            }
            done
        };
        assert_eq!(done, 0);
        taken.push(others);
        std::os::unix::fs::FileExt::write_all_at(&file, &[1; tile::TILE], 0).unwrap();
    };
    // What was freed when colors were found may come back color by color: until there are several.
    let several = usize::from(palette.colors()).min(3);
    for tile in [first, second] {
        let mut colors = BTreeSet::new();
        for _ in 0..MOST_SWAPS {
            swap(tile);
            let seen = palette.sort(&tile.pages(), &on, &Silent).unwrap();
            colors = seen.into_iter().flatten().collect();
            if colors.len() >= several {
                break;
            }
        }
        if colors.len() < several {
            return Err(NotRun::because(
                "the system gives frames of one color again and again",
            ));
        }
    }
    let (number, of) = (tiles.len(), palette.colors());
    let server = Arc::new(Server::new(of, tiles));
    let (level, cpu) = (palette.cache.level, palette.cpu);
    let find = move || partition::find(&machine::this_machine()?.platform, level, cpu, &Silent);
    let upkeep = Upkeep::new(palette, on, Duration::from_secs(1), Box::new(find));
    let mut next = 0;
    let mut all = Found::default();
    // By frame numbers at once; without them, some tiles a round.
    for _ in 0..number {
        let found = server.look_again(&upkeep, &mut next, &Silent).unwrap();
        all.struck.extend(found.struck);
        all.recolored.extend(found.recolored);
        if [0, 1]
            .iter()
            .all(|id| all.struck.contains(id) || all.recolored.contains(id))
        {
            break;
        }
    }
    let gone: Vec<bool> = [0, 1].iter().map(|id| all.struck.contains(id)).collect();
    // One of them at least: what else runs may keep the pages of a tile from being placed.
    assert!(gone.iter().any(|g| *g), "{all:?}");
    let mut client = server.attach().unwrap();
    let Answer::List { summary } = client.ask(&Request::List {}).unwrap() else {
        panic!()
    };
    let pages: u64 = summary.pages.iter().map(|p| p.free).sum();
    assert_eq!(pages, ((number - all.struck.len()) * TILE_PAGES) as u64);
    assert!(
        summary.pages.len() == usize::from(of) && all.struck.len() * 10 < number.max(30),
        "{all:?} of {number}"
    );
    Ok(())
}

/// As a run does, which makes its watchdog by a fork and locks its memory afterwards: of a page
/// that parent and child both have, the parent gets a copy then, in another frame.
fn colors_are_still_known_when_a_child_was_made() -> Outcome {
    let palette = palette()?;
    let before = palette.verify().broken.len();
    // SAFETY: the child makes one system call, again and again.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: a call without arguments.
            unsafe { libc::pause() };
        }
    }
    assert!(child > 0, "{}", std::io::Error::last_os_error());
    // SAFETY: no memory changes but for where it lies; the child is this process's own.
    let locked = unsafe {
        let locked = libc::mlockall(libc::MCL_CURRENT);
        libc::munlockall();
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
        locked
    };
    if locked != 0 {
        return Err(NotRun::because("this process may not lock its memory"));
    }
    let broken = palette.verify().broken.len();
    // Whatever else runs may disturb some; without this all are broken.
    let most = before + usize::from(palette.colors()) / 4;
    assert!(
        broken <= most,
        "{broken} of {} are broken",
        palette.colors()
    );
    Ok(())
}
