//! Multithreaded tasks (003 §2): groups of tasks that share a working set, have one period, and are
//! at most as many as processors.

use crate::plan::Setup;
use model::{Bytes, Error, Result, TaskId, TaskSet};
use std::collections::BTreeMap;

/// By task its multithreaded task, and by multithreaded task its working set size in bytes, at most
/// that of the cache; zero where sizes are to be found.
pub(crate) fn groups(
    setup: &Setup<'_>,
    cache: Bytes,
    profiled: bool,
) -> Result<(Vec<u32>, Vec<u64>)> {
    let set = setup.set;
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut group_of, mut wss) = (Vec::new(), Vec::new());
    for id in set.ids() {
        let size = match set.wss(id) {
            _ if profiled => 0,
            Some(size) => size.get(),
            None => {
                return Err(refusal(set, id, "no working set size is given")
                    .remedy("add `wss = \"256KiB\"`, or write `ca-edf:wss=profiled`"));
            }
        };
        let fresh = wss.len() as u32;
        let name = set.details(id).and_then(|d| d.group.as_deref());
        let group = match name {
            Some(name) => *names.entry(name).or_insert(fresh),
            None => fresh,
        };
        group_of.push(group);
        if group == fresh {
            wss.push(size);
            continue;
        }
        if wss[group as usize] != size {
            let cause = format!(
                "the tasks of group `{}` have several working set sizes",
                name.unwrap_or_default()
            );
            return Err(refusal(set, id, &cause)
                .remedy("give each the working set size of the whole group"));
        }
    }
    if let Some((id, cause)) = misfit(set, setup.platform.usable().len()) {
        return Err(refusal(set, id, &cause)
            .remedy("make several groups of them, or give more processors or one period"));
    }
    // Only here: the tasks of one group must agree in what they are given.
    for size in &mut wss {
        *size = cache.get().min(*size);
    }
    Ok((group_of, wss))
}

/// A group of tasks that is no multithreaded task: one of its tasks, and why, as a clause.
pub(crate) fn misfit(set: &TaskSet, processors: usize) -> Option<(TaskId, String)> {
    let mut groups: BTreeMap<&str, (TaskId, usize)> = BTreeMap::new();
    for id in set.ids() {
        let Some(name) = set.details(id).and_then(|d| d.group.as_deref()) else {
            continue;
        };
        let (first, threads) = groups.entry(name).or_insert((id, 0));
        *threads += 1;
        let period = |id: TaskId| set.timings()[id.index()].period;
        if period(*first) != period(id) {
            let cause = format!(
                "the tasks of group `{name}` are one multithreaded task and have several periods, {} and {}",
                period(*first),
                period(id)
            );
            return Some((id, cause));
        }
    }
    let (name, (first, threads)) = groups.into_iter().find(|g| g.1.1 > processors)?;
    let cause = format!(
        "group `{name}` has {threads} tasks, more than there are processors, of which there are {processors}"
    );
    Some((first, cause))
}

fn refusal(set: &TaskSet, id: TaskId, cause: &str) -> Error {
    Error::new(cause).at(format!("policy `ca-edf`, {}", set.name(id)))
}
