//! The colors of a real run: which task gets which, memory of them for working sets and stacks, and
//! what came of it (001 §5.1, 004 §IV-B).

use crate::color::find::{alike, find_palette, keep_pages, level_with_colors};
use execute::colored::{Colored, Provider, Who};
use machine::settings::Settings;
use model::watch::Watch;
use model::{Bytes, CpuSet, Error, Platform, Result, TaskId, TaskSet};
use partition::client::{Connection, Memory};
use partition::geometry::PAGE;
use partition::ledger::{Access, Holder, TileId};
use partition::plan::{self, Plan, Scheme, Supply};
use partition::protocol::Request;
use partition::resctrl::{self, Ways};
use partition::server::Server;
use partition::tile::{self, TILE, TILE_PAGES};
use partition::{Color, Colors, Geometry, Palette};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use workload::walk::{LINE, Store};

mod stated;
pub use stated::{Stated, Statement};

/// How a run gives out colors. By default by pages, as the set names them.
#[derive(Clone, Debug, Default)]
pub struct Coloring {
    /// Which task gets which colors; `None`: as the set names them, where it names some.
    pub colors: Option<Scheme>,
    /// What is given out.
    pub by: By,
    /// The level of the cache whose colors they are; `None`: the first one that has colors.
    pub level: Option<u8>,
    /// Take memory from the memory server at this socket, in colors that were granted to this
    /// process; `None`: memory is sorted for the run.
    pub server: Option<PathBuf>,
}

/// What is given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// Colors of pages.
    #[default]
    Pages,
    /// Ways of a cache, where the hardware partitions it (resctrl).
    Hardware,
}

/// What is colored, during a run.
pub struct Prepared {
    plan: Plan,
    names: BTreeMap<TaskId, String>,
    cache: String,
    provider: Arc<Threads>,
    working: BTreeMap<TaskId, Arc<Memory>>,
    palette: Option<(Palette, CpuSet)>,
    // Held until the end: memory returns with the connection.
    _server: Option<Connection>,
    _settings: Option<Settings>,
}

/// What threads get.
#[derive(Debug, Default)]
struct Threads {
    dispatchers: Mutex<Vec<Memory>>,
    workers: Mutex<BTreeMap<TaskId, Memory>>,
    hardware: Mutex<Option<Hardware>>,
}

#[derive(Debug)]
struct Hardware {
    ways: Ways,
    groups: Vec<(String, TaskId, Colors)>,
    others: Colors,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider for Threads {
    fn stack(&self, who: Who) -> Option<Memory> {
        match who {
            Who::Dispatcher => locked(&self.dispatchers).pop(),
            Who::Worker(task) => locked(&self.workers).remove(&task),
        }
    }
    fn ready(&self, workers: &[i32]) -> Result<()> {
        let mut hardware = locked(&self.hardware);
        let Some(Hardware {
            ways,
            groups,
            others,
        }) = &mut *hardware
        else {
            return Ok(());
        };
        for (name, task, own) in groups {
            let thread: Vec<i32> = workers.get(task.index()).copied().into_iter().collect();
            ways.give(name, own, &thread)?;
        }
        ways.leave_to_others(others)
    }
}

/// Gives out colors as the options and the set say; `None` where nobody asks for any.
///
/// # Errors
/// Colors cannot be found, or not as many or as much memory as are wanted; the user stopped it.
pub fn prepare(
    how: &Coloring,
    set: &TaskSet,
    platform: &Platform,
    dispatchers: usize,
    watch: &dyn Watch,
) -> Result<Option<Prepared>> {
    let names_some = set
        .ids()
        .any(|id| set.details(id).is_some_and(|d| d.colors.is_some()));
    let scheme = match how.colors {
        Some(scheme) => scheme,
        None if names_some => Scheme::Named,
        None => return Ok(None),
    };
    match how.by {
        By::Hardware => hardware(set, scheme, platform).map(Some),
        By::Pages => pages(how, set, scheme, platform, dispatchers, watch).map(Some),
    }
}

fn names(set: &TaskSet) -> BTreeMap<TaskId, String> {
    set.ids().map(|id| (id, set.name(id))).collect()
}

fn hardware(set: &TaskSet, scheme: Scheme, platform: &Platform) -> Result<Prepared> {
    let ways = Ways::open(Path::new(resctrl::ROOT)).map_err(|e| e.at("--colors-by hardware"))?;
    let cpu = platform
        .usable()
        .lowest()
        .ok_or_else(|| Error::new("no processor may be used"))?;
    let cache = Geometry::of(platform, ways.level(), cpu)?;
    let supply = Supply {
        colors: Colors::first(ways.number()),
        of_one: Bytes::new(cache.size.get() / u64::from(ways.number().max(1))),
    };
    let mut plan = plan::plan(set, scheme, &supply)?;
    let mut sets: Vec<Colors> = plan
        .tasks
        .iter()
        .map(|share| share.colors.clone())
        .collect();
    sets.push(plan.system.clone());
    let laid = resctrl::together(&sets);
    for (share, colors) in plan.tasks.iter_mut().zip(&laid) {
        share.colors = colors.clone();
    }
    let taken = laid[..plan.tasks.len()]
        .iter()
        .fold(Colors::new(), |all, c| all.union(c));
    // Nobody may be left without ways: with none for the system, it has all.
    let others = match plan.system.is_empty() {
        true => supply.colors.clone(),
        false => supply.colors.difference(&taken),
    };
    plan.system = if plan.system.is_empty() {
        Colors::new()
    } else {
        others.clone()
    };
    let groups = plan
        .tasks
        .iter()
        .map(|share| {
            (
                format!("{}", share.task.0 + 1),
                share.task,
                share.colors.clone(),
            )
        })
        .collect();
    Ok(Prepared {
        plan,
        names: names(set),
        cache: format!("{}, ways given out by the hardware", cache.name()),
        provider: Arc::new(Threads {
            hardware: Mutex::new(Some(Hardware {
                ways,
                groups,
                others,
            })),
            ..Threads::default()
        }),
        working: BTreeMap::new(),
        palette: None,
        _server: None,
        _settings: None,
    })
}

fn pages(
    how: &Coloring,
    set: &TaskSet,
    scheme: Scheme,
    platform: &Platform,
    dispatchers: usize,
    watch: &dyn Watch,
) -> Result<Prepared> {
    let settings = keep_pages(watch);
    let (plan, cache, palette, mut client) = match &how.server {
        Some(socket) => {
            let mut client = Connection::open_trusted(socket)?;
            let (colors, of) = client.colors()?;
            if colors.is_empty() {
                return Err(Error::new("no colors are granted to this process")
                    .at(socket.display())
                    .remedy("ask the operator: `warmset color grant uid:… 0-3`"));
            }
            let cache = cache_of(platform, how.level)?;
            let plan = plan::plan(
                set,
                scheme,
                &Supply {
                    colors,
                    of_one: Bytes::new(cache.size.get() / u64::from(of.max(1))),
                },
            )?;
            (
                plan,
                format!("{}, memory of {}", cache.name(), socket.display()),
                None,
                client,
            )
        }
        None => {
            let palette = find_palette(platform, how.level, None, watch)?;
            let supply = Supply {
                colors: Colors::first(palette.colors()),
                of_one: palette.cache.of_one_color(),
            };
            let plan = plan::plan(set, scheme, &supply)?;
            let on = alike(platform, &palette);
            let tiles = tile::make_each(&palette, &wanted(&plan, set, dispatchers), &on, watch)?;
            let client = own_server(palette.colors(), tiles)?;
            let cache = format!(
                "{}, {} colors of {}, by {}, confidence {:.3}",
                palette.cache.name(),
                palette.colors(),
                supply.of_one,
                palette.how,
                palette.confidence
            );
            (plan, cache, Some((palette, on)), client)
        }
    };
    let given = give(plan, set, dispatchers, &mut client)?;
    Ok(Prepared {
        cache,
        palette,
        _server: Some(client),
        _settings: Some(settings),
        ..given
    })
}

/// Memory of a plan for working sets and stacks, over a connection that is to be kept for as long
/// as what is given.
///
/// # Errors
/// There is not as much, or not in these colors.
pub fn give(
    plan: Plan,
    set: &TaskSet,
    dispatchers: usize,
    client: &mut Connection,
) -> Result<Prepared> {
    let mut given = Prepared {
        names: names(set),
        plan,
        cache: String::new(),
        provider: Arc::default(),
        working: BTreeMap::new(),
        palette: None,
        _server: None,
        _settings: None,
    };
    match fill(&mut given, set, dispatchers, client) {
        Ok(()) => Ok(given),
        Err(e) => {
            // All or nothing: what was given already goes back.
            let tiles = given.tiles();
            drop(given);
            client.return_tiles(&tiles)?;
            Err(e)
        }
    }
}

fn fill(
    given: &mut Prepared,
    set: &TaskSet,
    dispatchers: usize,
    client: &mut Connection,
) -> Result<()> {
    for share in &given.plan.tasks {
        let place = || format!("task {}", set.name(share.task));
        let size = set.wss(share.task).unwrap_or(Bytes::new(0));
        let memory = client
            .map_pages(&share.colors, size)
            .map_err(|e| e.at(place()))?;
        given.working.insert(share.task, Arc::new(memory));
        if let Some(first) = share.colors.iter().next() {
            let stack = client.map(&Colors::from_iter([first]), Bytes::new(TILE as u64));
            let stack = stack.map_err(|e| e.at(place()))?;
            locked(&given.provider.workers).insert(share.task, stack);
        }
    }
    let system: Vec<Color> = given.plan.system.iter().collect();
    let stacks_wanted = if system.is_empty() { 0 } else { dispatchers };
    for color in system.into_iter().cycle().take(stacks_wanted) {
        let stack = client.map(&Colors::from_iter([color]), Bytes::new(TILE as u64));
        let stack = stack.map_err(|e| e.at("the system"))?;
        locked(&given.provider.dispatchers).push(stack);
    }
    Ok(())
}

/// A memory server within this process, whose memory is all this process's.
///
/// # Errors
/// The system has no more sockets or threads.
pub fn own_server(colors: u16, tiles: Vec<tile::Tile>) -> Result<Connection> {
    let mut client = Arc::new(Server::new(colors, tiles)).attach()?;
    client.ask(&Request::Grant {
        holder: Holder::Pid(std::process::id()),
        colors: Colors::first(colors).into(),
        pages: None,
        access: Access::Full,
    })?;
    Ok(client)
}

fn cache_of(platform: &Platform, level: Option<u8>) -> Result<Geometry> {
    let cpu = platform
        .usable()
        .lowest()
        .ok_or_else(|| Error::new("no processor may be used"))?;
    Geometry::of(platform, level_with_colors(platform, cpu, level)?, cpu)
}

/// How many tiles of each color [`give`] takes.
pub fn wanted(plan: &Plan, set: &TaskSet, dispatchers: usize) -> BTreeMap<Color, usize> {
    let mut tiles: BTreeMap<Color, usize> = BTreeMap::new();
    for share in &plan.tasks {
        let pages = set
            .wss(share.task)
            .map_or(0, |wss| wss.get().div_ceil(PAGE as u64)) as usize;
        let each = pages
            .div_ceil(share.colors.len().max(1))
            .div_ceil(TILE_PAGES);
        for (place, color) in share.colors.iter().enumerate() {
            *tiles.entry(color).or_default() += each + usize::from(place == 0);
        }
    }
    // Stacks of dispatchers, in turn.
    let system: Vec<Color> = plan.system.iter().collect();
    let stacks = if system.is_empty() { 0 } else { dispatchers };
    for color in system.into_iter().cycle().take(stacks) {
        *tiles.entry(color).or_default() += 1;
    }
    tiles
}

impl Prepared {
    /// What threads run in.
    pub fn provider(&self) -> Arc<dyn Provider> {
        self.provider.clone()
    }

    /// Everything that was given, before a run takes stacks away.
    pub fn tiles(&self) -> Vec<TileId> {
        let dispatchers = locked(&self.provider.dispatchers);
        let workers = locked(&self.provider.workers);
        self.working
            .values()
            .map(Arc::as_ref)
            .chain(dispatchers.iter())
            .chain(workers.values())
            .flat_map(|memory| memory.tiles().to_vec())
            .collect()
    }

    /// The memory of a task's working set, if it has colors.
    pub fn store(&self, set: &TaskSet, task: TaskId) -> Option<Box<dyn Store>> {
        let memory = self.working.get(&task)?;
        let lines = set.wss(task)?.get().div_ceil(LINE);
        Some(Box::new(Colored::new(
            Arc::clone(memory),
            usize::try_from(lines).unwrap_or(usize::MAX),
        )))
    }

    /// What was colored, checked against the real colors of the pages where they can be asked.
    ///
    /// # Errors
    /// Pages cannot be asked; the user stopped it.
    pub fn statement(&self, set: &TaskSet, watch: &dyn Watch) -> Result<Statement> {
        let mut tasks = Vec::new();
        for share in &self.plan.tasks {
            let (mut asked, mut moved) = (None, None);
            if let (Some((palette, on)), Some(memory)) =
                (&self.palette, self.working.get(&share.task))
            {
                let seen = palette.sort(&memory.pages(), on, watch)?;
                asked = Some(seen.iter().flatten().count());
                let other = |(page, color): &(usize, &Option<Color>)| {
                    color.is_some_and(|color| memory.color_of(*page) != Some(color))
                };
                moved = Some(seen.iter().enumerate().filter(other).count());
            }
            tasks.push(Stated {
                task: self.names.get(&share.task).cloned().unwrap_or_default(),
                share: share.clone(),
                wss: set.wss(share.task).unwrap_or(Bytes::new(0)),
                asked,
                moved,
            });
        }
        watch.finish();
        Ok(Statement {
            scheme: self.plan.scheme,
            cache: self.cache.clone(),
            tasks,
            system: self.plan.system.clone(),
            not_colored: if self.palette.is_some() || !self.working.is_empty() {
                "code, globals and heap of this process, and the kernel"
            } else {
                "the kernel's own accesses in no task's name"
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "[[task]]\nname = \"A\"\nwcet = \"1ms\"\nperiod = \"10ms\"\nwss = \"128KiB\"\ncolors = \"0\"\nworkload = { kind = \"walk\" }\n";

    /// Six tiles of each of two colors, and two tasks of 128 KiB in color 0.
    fn shared_out(second: &str) -> (Connection, TaskSet, Plan) {
        let tiles = (0..12)
            .map(|i| tile::Tile::fresh(Color(i % 2)).unwrap())
            .collect();
        let client = own_server(2, tiles).unwrap();
        let text = format!(
            "{A}[[task]]\nname = \"B\"\nwcet = \"1ms\"\nperiod = \"10ms\"\nwss = \"{second}\"\ncolors = \"0\"\nworkload = {{ kind = \"walk\" }}\n"
        );
        let set = model::taskfile::from_toml(&text).unwrap();
        let supply = Supply {
            colors: Colors::first(2),
            of_one: Bytes::from_kib(32),
        };
        let plan = plan::plan(&set, Scheme::Named, &supply).unwrap();
        (client, set, plan)
    }

    fn free(client: &mut Connection) -> u64 {
        match client.ask(&Request::List {}).unwrap() {
            partition::protocol::Answer::List { summary } => {
                summary.pages.iter().map(|p| p.free).sum()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_given_before_a_shortage_goes_back() {
        let (mut client, set, plan) = shared_out("1MiB");
        let e = give(plan, &set, 1, &mut client).err().unwrap().to_string();
        assert!(e.contains("task B") && e.contains("wanted"), "{e}");
        assert_eq!(free(&mut client), 12 * TILE_PAGES as u64);
    }

    #[test]
    fn as_much_is_wanted_as_is_given() {
        let (mut client, set, plan) = shared_out("128KiB");
        let wanted = wanted(&plan, &set, 1);
        assert_eq!(wanted, BTreeMap::from([(Color(0), 6)]));
        let given = give(plan, &set, 1, &mut client).unwrap();
        assert_eq!(given.tiles().len(), 6);
        assert_eq!(free(&mut client), 6 * TILE_PAGES as u64);
    }
}
