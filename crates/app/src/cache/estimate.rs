//! Estimates of what cache misses cost a loop, and bounds for tasks in turns, by the prices of a
//! platform (001 §2.2, §4.1 and §4.2). No program is run and no cache simulated.

use crate::{On, PROGRAM, provenance};
use cache::Shape;
use model::strategy::Price;
use model::{Bytes, Duration, Error, Provenance, Result, time};
use serde::Serialize;

/// Bytes of a word (001 §5.2).
const WORD: u64 = 4;

/// A loop, and a task that takes turns with others.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose prices.
    pub on: On,
    /// What an iteration takes where nothing misses.
    pub iteration: Duration,
    /// Words that an iteration reads. They lie one behind the other, so that every word of a line
    /// is read.
    pub words: u32,
    /// Words of the program's code, which are loaded at its start.
    pub code: u32,
    /// A task that is switched to and fro, for the bound of 001 §2.2.
    pub task: Option<Task>,
}

/// A task that takes turns with another one.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// What it takes alone.
    pub alone: Duration,
    /// How often it is switched to.
    pub switches: u32,
    /// Its working set, which others may have replaced at each switch.
    pub wss: Bytes,
    /// What a switch takes.
    pub switch: Duration,
}

/// What misses cost. JSON: as `warmset cache estimate --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Estimated {
    /// The name of the platform.
    pub platform: String,
    /// What an iteration takes where nothing misses.
    #[serde(rename = "iteration_ns", with = "time::ns")]
    pub iteration: Duration,
    /// Words that it reads.
    pub words: u32,
    /// Words of a line.
    pub line_words: u64,
    /// If this cache misses and those before it, from the nearest outwards.
    pub levels: Vec<Missed>,
    /// The bound for a task in turns.
    pub bound: Option<Bound>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// What it costs that a cache and those before it miss.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Missed {
    /// `L1d`, `L2`.
    pub name: String,
    /// Delay of a miss in the best case: until the first word is there.
    #[serde(rename = "optimistic_ns", with = "time::ns")]
    pub optimistic: Duration,
    /// In the worst case: the whole line, on a busy memory system.
    #[serde(rename = "pessimistic_ns", with = "time::ns")]
    pub pessimistic: Duration,
    /// The share that an iteration becomes longer by, in the best case.
    pub longer_at_best: f64,
    /// In the worst case.
    pub longer_at_worst: f64,
    /// What is added to the best case where no iteration has more than one miss, and two that
    /// follow each other miss: the rest of the fill that the second one waits for.
    pub next_miss_waits: f64,
    /// What it takes to load the code, in the worst case.
    #[serde(rename = "code_ns", with = "time::ns")]
    pub code: Duration,
    /// A miss of the page translation: about two misses of the cache (001 §4.2), at worst.
    #[serde(rename = "tlb_miss_ns", with = "time::ns")]
    pub tlb_miss: Duration,
}

/// 001 §2.2: a task that is switched to k times, and loses at most I' at each of these switches
/// whatever the others do, ends after 2T + kI' + 2kS, if its slices are as long as T/k + I' + S.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bound {
    /// I': the lines of its working set, filled anew through all caches, at worst.
    #[serde(rename = "interference_ns", with = "time::ns")]
    pub interference: Duration,
    /// The slice.
    #[serde(rename = "slice_ns", with = "time::ns")]
    pub slice: Duration,
    /// When it has ended beside another task of the same length.
    #[serde(rename = "end_ns", with = "time::ns")]
    pub end: Duration,
}

/// Estimates.
///
/// # Errors
/// The platform has no caches that can be modelled, or one has no `fill`; an iteration without
/// length or words; no switches; a bound beyond 2^64 ns.
pub fn estimate(options: &Options, command: &str) -> Result<Estimated> {
    if options.iteration.is_zero() || options.words == 0 {
        return Err(Error::new("an iteration takes time and reads words")
            .at("--iteration")
            .remedy("give a time above zero, and at least one word"));
    }
    let platform = options.on.platform()?;
    let shape = Shape::of(&platform)?;
    let line_words = (u64::from(shape.line) / WORD).max(1);
    let mut levels = Vec::new();
    for index in shape.path(shape.cpus[0], false) {
        let part = &shape.parts[index];
        let fill = part.strategy.fill.ok_or_else(|| {
            Error::new(format!("the {} has no price `fill`", part.name))
                .at(format!("platform `{}`", platform.name))
                .remedy("choose `--platform pentium-90`, or add `fill` to a platform file")
        })?;
        levels.push(missed(&part.name, fill, options, line_words));
    }
    let bound = match (&options.task, levels.last()) {
        (Some(task), Some(last)) => Some(bound(task, last.pessimistic, u64::from(shape.line))?),
        _ => None,
    };
    Ok(Estimated {
        platform: platform.name,
        iteration: options.iteration,
        words: options.words,
        line_words,
        levels,
        bound,
        provenance: Provenance {
            source: format!("{PROGRAM}, estimates of 001 §4.1"),
            ..provenance(command)
        },
    })
}

fn missed(name: &str, fill: Price, options: &Options, line_words: u64) -> Missed {
    let length = options.iteration.nanos() as f64;
    let word = |time: Duration| time.nanos() as f64 / line_words as f64;
    let longer = |time: Duration| f64::from(options.words) * word(time) / length;
    let rest = fill.pessimistic.saturating_sub(options.iteration);
    let lines = u64::from(options.code).div_ceil(line_words);
    let times = |n: u64| Duration::from_nanos(fill.pessimistic.nanos().saturating_mul(n));
    Missed {
        name: name.to_owned(),
        optimistic: fill.optimistic,
        pessimistic: fill.pessimistic,
        longer_at_best: longer(fill.optimistic),
        longer_at_worst: longer(fill.pessimistic),
        next_miss_waits: word(rest) / length,
        code: times(lines),
        tlb_miss: times(2),
    }
}

fn bound(task: &Task, fill: Duration, line: u64) -> Result<Bound> {
    if task.switches == 0 {
        return Err(Error::new("a task that is never switched to does not run")
            .at("--switches")
            .remedy("give at least 1"));
    }
    let k = u64::from(task.switches);
    let lines = task.wss.get().div_ceil(line);
    let sum = || {
        let interference = fill.nanos().checked_mul(lines)?;
        let switch = task.switch.nanos();
        let each = task.alone.nanos().div_ceil(k);
        let slice = each.checked_add(interference)?.checked_add(switch)?;
        let end = task
            .alone
            .nanos()
            .checked_mul(2)?
            .checked_add(interference.checked_mul(k)?)?
            .checked_add(switch.checked_mul(2 * k)?)?;
        Some([interference, slice, end].map(Duration::from_nanos))
    };
    let [interference, slice, end] = sum().ok_or_else(|| {
        Error::new("the bound is beyond 2^64 ns").remedy("give fewer switches or a smaller set")
    })?;
    Ok(Bound {
        interference,
        slice,
        end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;
    use model::Platform;

    fn options() -> Options {
        Options {
            on: On::Platform(Choice::Named("pentium-90".to_owned())),
            iteration: Duration::from_nanos(150),
            words: 2,
            code: 100,
            task: None,
        }
    }

    /// 001 §4.1: 2 × 8/150, 2 × 20/150, about 12 % with at most one miss an iteration; 2 × 25/150,
    /// and (336 − 150)/8/150 on top; 2 us (4 us) for a program of 100 words, here by whole lines.
    #[test]
    fn the_estimates_of_the_paper_come_out() {
        let seen = estimate(&options(), "").unwrap();
        let near = |ours: f64, paper: f64| assert!((ours - paper).abs() < 1e-9, "{ours} {paper}");
        let [first, second] = &seen.levels[..] else {
            panic!("{seen:?}")
        };
        near(first.longer_at_best, 16.0 / 150.0);
        near(first.longer_at_worst, 40.0 / 150.0);
        near(first.next_miss_waits, 10.0 / 8.0 / 150.0);
        near(second.longer_at_best, 50.0 / 150.0);
        near(second.next_miss_waits, 186.0 / 8.0 / 150.0);
        assert_eq!(first.code, Duration::from_nanos(13 * 160));
        assert_eq!(second.code, Duration::from_nanos(13 * 336));
    }

    /// 001 §2.2 with T = 1 ms, k = 10, a set of 320 bytes and S = 2 us: I' = 10 × 336 ns.
    #[test]
    fn the_bound_of_tasks_in_turns() {
        let mut options = options();
        options.task = Some(Task {
            alone: Duration::from_millis(1),
            switches: 10,
            wss: Bytes::new(320),
            switch: Duration::from_micros(2),
        });
        let bound = estimate(&options, "").unwrap().bound.unwrap();
        assert_eq!(bound.interference.nanos(), 3360);
        assert_eq!(bound.slice.nanos(), 100_000 + 3360 + 2000);
        assert_eq!(bound.end.nanos(), 2_000_000 + 33_600 + 40_000);
    }

    #[test]
    fn prices_that_lack_are_named() {
        let mut options = options();
        let mut unpriced = Platform::builtin("i486").unwrap();
        for cache in &mut unpriced.caches {
            cache.strategy.fill = None;
        }
        options.on = On::Platform(Choice::Value(unpriced));
        let told = estimate(&options, "").unwrap_err().to_string();
        assert!(told.contains("the L1 has no price `fill`"), "{told}");
        options.words = 0;
        estimate(&options, "").unwrap_err();
    }
}
