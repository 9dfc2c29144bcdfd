//! Which task gets which colors: as the set names them, as working sets need them, or by the
//! scenarios of 004 §IV-B.
//!
//! Assumes that a working set as large as its part of the cache fits there: colors are counted by
//! size alone.

use crate::colors::{Color, Colors};
use model::{Bytes, Error, Result, TaskId, TaskSet, Workload};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How colors are given to tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// To those tasks that name some, as they name them.
    Named,
    /// To those that name some, as they name them; to the others as many as their working sets
    /// need, to each its own, smallest first; those that do not fit share the rest. One color is
    /// the system's.
    Auto,
    /// Each task has a super color of its own, the system another one (004 §IV-B, S1).
    S1,
    /// Each task has a super color of its own, the system has any (S2).
    S2,
    /// All tasks have one super color, the system another one (S3).
    S3,
}

impl FromStr for Scheme {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "named" => Ok(Scheme::Named),
            "auto" => Ok(Scheme::Auto),
            "s1" => Ok(Scheme::S1),
            "s2" => Ok(Scheme::S2),
            "s3" => Ok(Scheme::S3),
            other => Err(
                Error::new(format!("`{other}` is no way to give colors to tasks"))
                    .remedy("write `named`, `auto`, `s1`, `s2` or `s3`"),
            ),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scheme::Named => "named",
            Scheme::Auto => "auto",
            Scheme::S1 => "s1",
            Scheme::S2 => "s2",
            Scheme::S3 => "s3",
        })
    }
}

/// What a task gets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Share {
    /// Which task.
    #[serde(rename = "index")]
    pub task: TaskId,
    /// Its colors.
    pub colors: Colors,
    /// Does no other task, nor the system, have one of them?
    pub exclusive: bool,
    /// Does its working set fit into its part of the cache?
    pub fits: bool,
}

/// Who gets which colors.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// By which scheme.
    pub scheme: Scheme,
    /// Tasks that walk a working set, in the order of the set.
    pub tasks: Vec<Share>,
    /// The colors of the system; none: it has any.
    pub system: Colors,
}

/// What there is to give.
#[derive(Clone, Debug)]
pub struct Supply {
    /// The colors.
    pub colors: Colors,
    /// The part of the cache that one of them is.
    pub of_one: Bytes,
}

/// Gives colors to the tasks of a set.
///
/// # Errors
/// A task names colors that are not there, or colors where the scheme names them; fewer colors than
/// super colors; no color is left for tasks that do not fit.
pub fn plan(set: &TaskSet, scheme: Scheme, supply: &Supply) -> Result<Plan> {
    let walks = |id: TaskId| {
        matches!(
            set.details(id).map(|d| &d.workload),
            Some(Some(Workload::Walk { .. }))
        )
    };
    let walkers: Vec<(TaskId, Bytes)> = set
        .ids()
        .filter(|id| walks(*id))
        .filter_map(|id| Some((id, set.wss(id)?)))
        .collect();
    let named = |id: TaskId| set.details(id).and_then(|d| d.colors.clone());
    if scheme == Scheme::Named && set.ids().all(|id| named(id).is_none()) {
        return Err(Error::new("no task of the set names colors").remedy(
            "give a task some (`colors = \"0-3\"`), or let them be chosen: `--colors auto`",
        ));
    }
    for id in set.ids() {
        let Some(colors) = named(id) else { continue };
        let place = format!("task {}", set.name(id));
        if matches!(scheme, Scheme::S1 | Scheme::S2 | Scheme::S3) {
            return Err(Error::new(format!(
                "it names colors {colors}, and `{scheme}` names them for all"
            ))
            .at(place)
            .remedy("leave its colors out, or use `--colors named` or `auto`"));
        }
        let missing = colors.difference(&supply.colors);
        if !missing.is_empty() {
            return Err(Error::new(format!("colors {missing} are not there"))
                .at(place)
                .remedy(format!("choose among {}", supply.colors)));
        }
        if set.wss(id).is_none() || !walks(id) {
            return Err(
                Error::new("it has colors and no working set here that could have them")
                    .at(place)
                    .remedy(
                        "give it `wss` and `workload = { kind = \"walk\" }`, start a program with \
                     `warmset color exec`, or leave its colors out",
                    ),
            );
        }
    }
    let (colors, system) = match scheme {
        Scheme::Named => (
            walkers.iter().map(|(id, _)| named(*id)).collect(),
            Colors::new(),
        ),
        Scheme::Auto => automatic(&walkers, named, supply)?,
        Scheme::S1 | Scheme::S2 | Scheme::S3 => scenario(walkers.len(), scheme, &supply.colors)?,
    };
    let given: Vec<(TaskId, Bytes, Colors)> = walkers
        .iter()
        .zip(colors)
        .filter_map(|((id, wss), colors): (_, Option<Colors>)| Some((*id, *wss, colors?)))
        .collect();
    let tasks = given
        .iter()
        .map(|(id, wss, colors)| {
            let others = given
                .iter()
                .filter(|(other, ..)| other != id)
                .map(|(.., c)| c);
            Share {
                task: *id,
                colors: colors.clone(),
                exclusive: others
                    .chain([&system])
                    .all(|c| colors.intersection(c).is_empty()),
                fits: wss.get() <= supply.of_one.get().saturating_mul(colors.len() as u64),
            }
        })
        .collect();
    Ok(Plan {
        scheme,
        tasks,
        system,
    })
}

type Given = (Vec<Option<Colors>>, Colors);

fn automatic(
    walkers: &[(TaskId, Bytes)],
    named: impl Fn(TaskId) -> Option<Colors>,
    supply: &Supply,
) -> Result<Given> {
    let mut given: Vec<Option<Colors>> = walkers.iter().map(|(id, _)| named(*id)).collect();
    let taken = given
        .iter()
        .flatten()
        .fold(Colors::new(), |all, c| all.union(c));
    let mut free: Vec<Color> = supply.colors.difference(&taken).iter().collect();
    let none_left = || {
        Error::new("no color is left for the system and the tasks that name none")
            .remedy("let tasks name fewer colors")
    };
    let system = Colors::from_iter([free.pop().ok_or_else(none_left)?]);
    let mut open: Vec<(usize, usize)> = (0..walkers.len())
        .filter(|place| given[*place].is_none())
        .map(|place| {
            let colors = walkers[place]
                .1
                .get()
                .div_ceil(supply.of_one.get().max(1))
                .max(1);
            (usize::try_from(colors).unwrap_or(usize::MAX), place)
        })
        .collect();
    // The smallest first: so the most tasks get colors of their own.
    open.sort();
    let all_fit = open
        .iter()
        .fold(0usize, |sum, (need, _)| sum.saturating_add(*need))
        <= free.len();
    let kept = usize::from(!all_fit);
    let mut sharing = Vec::new();
    let mut next = 0;
    for (need, place) in open {
        if need <= free.len() - next - kept.min(free.len() - next) {
            given[place] = Some(free[next..next + need].iter().copied().collect());
            next += need;
        } else {
            sharing.push(place);
        }
    }
    let rest: Colors = free[next..].iter().copied().collect();
    if !sharing.is_empty() && rest.is_empty() {
        return Err(none_left());
    }
    for place in sharing {
        given[place] = Some(rest.clone());
    }
    Ok((given, system))
}

/// Super colors besides those of tasks: one of memory that names no color, which nobody is given
/// here, and one of the system (004 §IV: twelve for a set of ten tasks).
pub const SUPERS_BESIDES: usize = 2;

/// Super colors (004 §III-C, eq. 1): as many as tasks, and [`SUPERS_BESIDES`]. The last one is the
/// system's.
fn scenario(tasks: usize, scheme: Scheme, colors: &Colors) -> Result<Given> {
    let supers = tasks + SUPERS_BESIDES;
    if supers > colors.len() {
        return Err(Error::new(format!(
            "{supers} super colors are wanted, and there are {} colors",
            colors.len()
        ))
        .remedy("run fewer tasks with working sets, or use `--colors auto`"));
    }
    let of = |which: usize| -> Colors {
        let every = colors
            .iter()
            .enumerate()
            .filter(|(place, _)| place % supers == which);
        every.map(|(_, color)| color).collect()
    };
    let given = (0..tasks).map(|task| Some(of(if scheme == Scheme::S3 { 0 } else { task })));
    let system = if scheme == Scheme::S2 {
        Colors::new()
    } else {
        of(supers - 1)
    };
    Ok((given.collect(), system))
}

impl Plan {
    /// What a task gets.
    pub fn of(&self, task: TaskId) -> Option<&Share> {
        self.tasks.iter().find(|share| share.task == task)
    }
    /// All colors that somebody gets.
    pub fn colors(&self) -> Colors {
        self.tasks
            .iter()
            .fold(self.system.clone(), |all, share| all.union(&share.colors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::taskfile;
    use proptest::prelude::*;

    fn set(tasks: &[(u64, &str)]) -> TaskSet {
        let text: String = tasks
            .iter()
            .map(|(kib, colors)| {
                let wss = if *kib > 0 {
                    format!("wss = \"{kib}KiB\"\n")
                } else {
                    String::new()
                };
                let colors = if colors.is_empty() {
                    String::new()
                } else {
                    format!("colors = \"{colors}\"\n")
                };
                format!("[[task]]\nwcet = \"1ms\"\nperiod = \"10ms\"\nworkload = {{ kind = \"walk\" }}\n{wss}{colors}")
            })
            .collect();
        taskfile::from_toml(&text).unwrap()
    }
    fn supply(colors: u16) -> Supply {
        Supply {
            colors: Colors::first(colors),
            of_one: Bytes::from_kib(64),
        }
    }
    fn shown(plan: &Plan) -> Vec<String> {
        plan.tasks
            .iter()
            .map(|s| format!("{}{}", s.colors, if s.exclusive { "!" } else { "" }))
            .collect()
    }

    #[test]
    fn working_sets_get_as_many_colors_as_they_need_and_the_rest_is_shared() {
        let p = plan(
            &set(&[(256, ""), (0, ""), (65, ""), (32, "")]),
            Scheme::Auto,
            &supply(16),
        )
        .unwrap();
        assert_eq!(shown(&p), ["3-6!", "1-2!", "0!"]);
        assert_eq!(p.system.to_string(), "15");
        // 8 colors: one is the system's, one is kept for who does not fit.
        let p = plan(
            &set(&[(256, ""), (256, ""), (128, "")]),
            Scheme::Auto,
            &supply(8),
        )
        .unwrap();
        assert_eq!(
            shown(&p),
            ["2-5!", "6", "0-1!"].map(|s| s.replace("6", "6!"))
        );
        assert!(!p.tasks[1].fits);
        let p = plan(
            &set(&[(512, ""), (512, ""), (64, "3-4")]),
            Scheme::Auto,
            &supply(8),
        )
        .unwrap();
        assert_eq!(shown(&p), ["0-2,5-6", "0-2,5-6", "3-4!"]);
    }

    #[test]
    fn named_colors_are_kept_and_others_are_left_alone() {
        let p = plan(
            &set(&[(64, "0-1"), (64, "1-2"), (64, "")]),
            Scheme::Named,
            &supply(16),
        )
        .unwrap();
        assert_eq!(shown(&p), ["0-1", "1-2"]);
        assert!(p.of(TaskId(2)).is_none() && p.system.is_empty());
    }

    /// 004 §IV-B.
    #[test]
    fn the_scenarios_of_004_are_super_colors() {
        let tasks = set(&[(64, ""), (64, ""), (64, "")]);
        // Three tasks, the heap without color (3 and 8, which nobody gets), the system.
        let p = plan(&tasks, Scheme::S1, &supply(10)).unwrap();
        assert_eq!(shown(&p), ["0,5!", "1,6!", "2,7!"]);
        assert_eq!(p.system.to_string(), "4,9");
        let p = plan(&tasks, Scheme::S2, &supply(10)).unwrap();
        assert_eq!(shown(&p), ["0,5!", "1,6!", "2,7!"]);
        assert!(p.system.is_empty());
        let p = plan(&tasks, Scheme::S3, &supply(10)).unwrap();
        assert_eq!(shown(&p), ["0,5", "0,5", "0,5"]);
        assert_eq!(p.system.to_string(), "4,9");
        assert!(p.colors().intersection(&"3,8".parse().unwrap()).is_empty());
        let e = plan(&tasks, Scheme::S1, &supply(4))
            .unwrap_err()
            .to_string();
        assert!(
            e.contains("5 super colors are wanted, and there are 4"),
            "{e}"
        );
    }

    #[test]
    fn what_cannot_be_given_is_refused() {
        for (tasks, scheme, cause) in [
            (
                set(&[(64, "20")]),
                Scheme::Named,
                "task T1: colors 20 are not there",
            ),
            (
                set(&[(64, ""), (0, "")]),
                Scheme::Named,
                "no task of the set names colors",
            ),
            (set(&[(0, "2")]), Scheme::Auto, "no working set"),
            (set(&[(64, "2")]), Scheme::S1, "`s1` names them for all"),
            (
                set(&[(64, "0-7"), (64, "")]),
                Scheme::Auto,
                "no color is left",
            ),
            (
                set(&[(64, "0-6"), (64, "")]),
                Scheme::Auto,
                "no color is left",
            ),
        ] {
            let e = plan(&tasks, scheme, &supply(8)).unwrap_err().to_string();
            assert!(e.contains(cause), "{e}");
        }
        assert!("s4".parse::<Scheme>().is_err());
    }

    proptest! {
        #[test]
        fn who_is_exclusive_is_alone_and_who_fits_fits(
            sizes in prop::collection::vec(0u64..1200, 1..12),
            colors in 3u16..40,
        ) {
            let tasks = set(&sizes.iter().map(|kib| (*kib, "")).collect::<Vec<_>>());
            let p = plan(&tasks, Scheme::Auto, &supply(colors)).unwrap();
            prop_assert_eq!(p.tasks.len(), sizes.iter().filter(|s| **s > 0).count());
            for share in &p.tasks {
                prop_assert!(
                    !share.colors.is_empty() && share.colors.intersection(&p.system).is_empty()
                );
                let holders = p
                    .tasks
                    .iter()
                    .filter(|o| !o.colors.intersection(&share.colors).is_empty())
                    .count();
                prop_assert_eq!(share.exclusive, holders == 1);
                let wss = tasks.wss(share.task).unwrap().get();
                prop_assert_eq!(share.fits, wss <= share.colors.len() as u64 * (64 << 10));
            }
            // Who does not fit although he is alone had no more to get.
            let need = |kib: &u64| kib.div_ceil(64);
            if sizes.iter().map(need).sum::<u64>() < u64::from(colors) {
                prop_assert!(p.tasks.iter().all(|s| s.exclusive && s.fits));
            }
        }
    }
}
