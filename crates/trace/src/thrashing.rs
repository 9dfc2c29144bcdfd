//! How long a shared cache thrashes: the working sets of the multithreaded tasks whose jobs are on
//! processors together exceed it (003 §3.1).
//!
//! A group of tasks is one multithreaded task, whose working set counts once. The cache is the one
//! that a policy names (`cache=1MiB`), else the smallest that all usable processors share. Nothing
//! is told where neither is known, or a task has no working set size.

use crate::event::{Event, EventKind};
use crate::sink::Sink;
use model::{Bytes, Called, Platform, TaskId, TaskSet};
use serde::Serialize;
use std::collections::BTreeMap;

/// How long the cache thrashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Thrashed {
    /// Its size.
    #[serde(rename = "cache_bytes", serialize_with = "model::size::whole")]
    pub cache: Bytes,
    /// For how long, in nanoseconds.
    #[serde(rename = "thrashing_ns")]
    pub ns: u64,
}

impl Thrashed {
    /// As a line for people, of a schedule of this length.
    pub fn text(&self, horizon_ns: u64) -> String {
        let percent = 100.0 * self.ns as f64 / horizon_ns.max(1) as f64;
        format!(
            "working sets that ran together exceeded the cache of {} for {percent:.1} % of the time\n",
            self.cache
        )
    }
}

/// Adds up how long the cache thrashes.
#[derive(Clone, Debug)]
pub struct Thrashing {
    cache: u64,
    /// By task, its multithreaded task; by that, its working set and how many of its jobs are on
    /// processors.
    group_of: Vec<usize>,
    wss: Vec<u64>,
    running: Vec<u32>,
    /// By task: is its job on a processor?
    is_on: Vec<bool>,
    sum: u128,
    /// Up to when it is added up, and so far.
    now: u64,
    ns: u64,
}

impl Thrashing {
    /// Of schedules of this set under these policies.
    pub fn of<'a>(
        set: &TaskSet,
        platform: &Platform,
        policies: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let named = |policy: &str| {
            let called = policy.parse::<Called>().ok()?;
            called.value("cache")?.parse::<Bytes>().ok()
        };
        let named = policies.into_iter().find_map(named);
        let cache = named.or_else(|| platform.shared_cache()?.size)?;
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut group_of, mut wss) = (Vec::new(), Vec::new());
        for id in set.ids() {
            let size = set.wss(id)?.get();
            let group = set.details(id).and_then(|d| d.group.as_deref());
            let place = match group {
                Some(name) => *names.entry(name).or_insert(wss.len()),
                None => wss.len(),
            };
            if place == wss.len() {
                wss.push(size);
            }
            // Of several sizes in one group none is right: the largest is what is known to be used.
            wss[place] = wss[place].max(size);
            group_of.push(place);
        }
        Some(Thrashing {
            cache: cache.get(),
            running: vec![0; wss.len()],
            is_on: vec![false; group_of.len()],
            group_of,
            wss,
            sum: 0,
            now: 0,
            ns: 0,
        })
    }

    /// So far.
    pub fn told(&self) -> Thrashed {
        Thrashed {
            cache: Bytes::new(self.cache),
            ns: self.ns,
        }
    }

    fn set(&mut self, task: TaskId, on: bool) {
        let Some(is_on) = self.is_on.get_mut(task.index()) else {
            return;
        };
        if std::mem::replace(is_on, on) == on {
            return;
        }
        let group = self.group_of[task.index()];
        let size = u128::from(self.wss[group]);
        match on {
            true => {
                self.sum += if self.running[group] == 0 { size } else { 0 };
                self.running[group] += 1;
            }
            false => {
                self.running[group] -= 1;
                self.sum -= if self.running[group] == 0 { size } else { 0 };
            }
        }
    }
}

impl Sink for Thrashing {
    fn record(&mut self, event: Event) {
        // Events of a real run may be out of order by a little: time does not go back.
        let now = event.time.nanos().max(self.now);
        if self.sum > u128::from(self.cache) {
            self.ns += now - self.now;
        }
        self.now = now;
        let kind: EventKind = event.kind;
        if kind.puts_on() || kind.takes_off() {
            self.set(event.task, kind.puts_on());
        }
    }
}
