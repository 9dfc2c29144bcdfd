//! Where the experiment of 004 §IV runs: colors of this machine, and memory of them for one set
//! after the other.

use crate::color::find::{alike, find_palette};
use crate::run::colors::{self as run_colors, Prepared};
use crate::scheduling::assignment_for;
use analyze::partition::Fit;
use execute::colored::Provider;
use experiment::multicore::sets::{self, Drawn, Scheduler};
use experiment::multicore::{BEST_EFFORT, Bench, Colored, Scenario, Sizes};
use machine::threads::on_processor;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Platform, Result, TaskId, TaskSet};
use partition::client::Connection;
use partition::ledger::TileId;
use partition::palette::Checked;
use partition::plan::{self, Scheme, Supply};
use partition::{Color, Colors, Palette, tile};
use policy::{AnyPlan, Setup as Scheduled, Spec};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use workload::walk::Store;

/// Colors and memory of them.
pub struct LiveBench<'a> {
    platform: &'a Platform,
    /// The colors.
    pub palette: Palette,
    supply: Supply,
    dispatchers: usize,
    /// Tiles of each color that the set needs that needs the most.
    wanted: BTreeMap<Color, usize>,
    client: Option<Rc<RefCell<Connection>>>,
    /// Why tiles did not go back.
    stayed: Rc<RefCell<Option<Error>>>,
    level: Option<u8>,
    watch: &'a dyn Watch,
}

impl<'a> LiveBench<'a> {
    pub fn new(platform: &'a Platform, level: Option<u8>, watch: &'a dyn Watch) -> Result<Self> {
        let palette = find_palette(platform, level, None, watch)?;
        Ok(LiveBench {
            platform,
            supply: Supply {
                colors: Colors::first(palette.colors()),
                of_one: palette.cache.of_one_color(),
            },
            dispatchers: platform.usable().len(),
            palette,
            wanted: BTreeMap::new(),
            client: None,
            stayed: Rc::default(),
            level,
            watch,
        })
    }

    /// Sorts as much memory as the set needs that needs the most.
    pub fn stock(&mut self, open: &[(&Drawn, Sizes, Bytes)]) -> Result<()> {
        let (cache, sharers) = self.cache();
        for (drawn, sizes, wss) in open {
            let here = |bytes: Bytes| match sizes {
                Sizes::Paper => bytes,
                Sizes::Scaled => {
                    sets::scaled(bytes, cache, sharers, drawn.timings.len() as u64 + 1)
                }
            };
            let set = drawn.with_working_sets(here(*wss), here(BEST_EFFORT))?;
            for scenario in Scenario::ALL {
                let plan = plan::plan(&set, scenario.scheme(), &self.supply)?;
                for (color, tiles) in run_colors::wanted(&plan, &set, self.dispatchers) {
                    let most = self.wanted.entry(color).or_default();
                    *most = tiles.max(*most);
                }
            }
        }
        self.sort()
    }

    /// Sorts what is wanted, in the place of what was sorted before.
    fn sort(&mut self) -> Result<()> {
        self.client = None;
        let on = alike(self.platform, &self.palette);
        let tiles = tile::make_each(&self.palette, &self.wanted, &on, self.watch)?;
        let client = run_colors::own_server(self.palette.colors(), tiles)?;
        self.client = Some(Rc::new(RefCell::new(client)));
        Ok(())
    }

    /// Sorts anew after a shortage; where colors are no longer what they were, they are found anew
    /// first.
    fn renew(&mut self, why: &Error) -> Result<()> {
        self.watch
            .note(&format!("note: {why}: sorting memory anew"));
        if !self.check()?.broken.is_empty() {
            self.palette = find_palette(self.platform, self.level, None, self.watch)?;
        }
        self.sort()
    }

    fn give_now(&self, set: &TaskSet, scheme: Scheme) -> Result<Given> {
        let client = self
            .client
            .as_ref()
            .ok_or_else(|| Error::new("no memory was sorted: a defect of this program"))?;
        let plan = plan::plan(set, scheme, &self.supply)?;
        let prepared = run_colors::give(plan, set, self.dispatchers, &mut client.borrow_mut())?;
        Ok(Given {
            _back: Back {
                tiles: prepared.tiles(),
                client: Rc::clone(client),
                stayed: Rc::clone(&self.stayed),
            },
            prepared,
        })
    }

    /// Do colors still drive out their own?
    pub fn check(&self) -> Result<Checked> {
        let palette = &self.palette;
        on_processor(palette.cpu, "looking at colors", || Ok(palette.verify()))
    }
}

impl Bench for LiveBench<'_> {
    fn give(&mut self, set: &TaskSet, scheme: Scheme) -> Result<Box<dyn Colored>> {
        let stayed = self.stayed.borrow_mut().take();
        let given = match stayed {
            Some(e) => Err(e.at("memory of the run before")),
            None => self.give_now(set, scheme),
        };
        match given {
            Ok(given) => Ok(Box::new(given)),
            // Tiles that moved are struck off, and may be missing later.
            Err(why) => {
                self.renew(&why)?;
                Ok(Box::new(self.give_now(set, scheme)?))
            }
        }
    }
    fn plan(&self, scheduler: Scheduler, set: &TaskSet) -> Result<AnyPlan> {
        let spec: Spec = scheduler.policy().parse()?;
        let assignment =
            assignment_for(&spec, set, self.platform, Fit::Best)?.map_err(Error::new)?;
        spec.plan(&Scheduled {
            set,
            platform: self.platform,
            assignment: assignment.as_ref(),
            quantum: Duration::from_millis(1),
        })
    }
    fn cache(&self) -> (Bytes, u32) {
        let cache = &self.palette.cache;
        let usable = self.platform.usable();
        let sharers = cache
            .shared_by
            .iter()
            .filter(|cpu| usable.contains(*cpu))
            .count();
        (cache.size, sharers.max(1) as u32)
    }
}

/// Memory of a set in a scenario. Fields are dropped in this order: it is unmapped, and then goes
/// back.
struct Given {
    prepared: Prepared,
    _back: Back,
}

/// Gives tiles back to the server when it is dropped.
struct Back {
    tiles: Vec<TileId>,
    client: Rc<RefCell<Connection>>,
    stayed: Rc<RefCell<Option<Error>>>,
}

impl Colored for Given {
    fn store(&self, set: &TaskSet, task: TaskId) -> Option<Box<dyn Store>> {
        self.prepared.store(set, task)
    }
    fn provider(&self) -> Arc<dyn Provider> {
        self.prepared.provider()
    }
}

impl Drop for Back {
    fn drop(&mut self) {
        // The server hands none of them out before nobody has it mapped.
        if let Err(e) = self.client.borrow_mut().return_tiles(&self.tiles) {
            self.stayed.borrow_mut().get_or_insert(e);
        }
    }
}
