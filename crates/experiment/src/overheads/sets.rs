//! The task sets whose overheads are measured (002 §5.1.1): uniform utilizations, moderate periods,
//! jobs that read and write a working set.

use generate::{Amount, Deadlines, Recipe, Utilizations};
use model::{Bytes, Details, Duration, Error, Pattern, Result, TaskSet, Timing, Workload};

/// The part of the processors that a set may ask for as it was drawn.
pub const MOST: f64 = 0.9;
/// The part that a set asks for whose utilizations are scaled down. It has more tasks than any
/// other, and the engine needs the more of the processors the more tasks there are.
pub const SCALED: f64 = 0.7;
/// No WCET is scaled to less.
pub const SHORTEST: Duration = Duration::from_micros(10);
/// The working set of each task.
pub const WSS: Bytes = Bytes::from_kib(64);
/// The part of its accesses that write.
pub const WRITES: f64 = 0.25;

/// A set, and whether its utilizations are those that were drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The set.
    pub set: TaskSet,
    /// Were utilizations scaled down, as together they asked for more than [`MOST`]?
    pub scaled: bool,
}

/// The set of this number: so many tasks with utilizations of this distribution.
///
/// # Errors
/// No tasks, or more than a set may have.
pub fn draw(
    tasks: u32,
    utilizations: Utilizations,
    processors: u32,
    seed: u64,
    number: u64,
) -> Result<Drawn> {
    let recipe = Recipe {
        amount: Amount::Tasks {
            utilizations,
            tasks,
        },
        periods: "moderate".parse()?,
        deadlines: Deadlines::Implicit,
    };
    let drawn = recipe.prepare()?.draw(seed, number)?;
    let asked: f64 = drawn.timings().iter().map(utilization).sum();
    let scaled = asked > MOST * f64::from(processors);
    let factor = match scaled {
        true => SCALED * f64::from(processors) / asked,
        false => 1.0,
    };
    let task = |(index, timing): (usize, &Timing)| {
        let wcet = Duration::from_nanos((timing.wcet.nanos() as f64 * factor) as u64);
        let timing = Timing {
            wcet: wcet.max(SHORTEST.min(timing.wcet)),
            ..*timing
        };
        let details = Details {
            wss: Some(WSS),
            workload: Some(Workload::Walk {
                write_ratio: WRITES,
                pattern: Pattern::Random,
            }),
            ..Details::named(format!("t{index}"))
        };
        (timing, details)
    };
    let set = TaskSet::new(drawn.timings().iter().enumerate().map(task).collect())
        .map_err(|e| Error::new(format!("a set of {tasks} tasks cannot be made: {e}")))?;
    Ok(Drawn { set, scaled })
}

fn utilization(timing: &Timing) -> f64 {
    timing.utilization().to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(set: &TaskSet) -> f64 {
        set.timings().iter().map(utilization).sum()
    }

    #[test]
    fn sets_that_fit_are_left_as_they_were_drawn_and_others_are_scaled() {
        let light: Utilizations = "uniform-light".parse().unwrap();
        let few = draw(10, light, 2, 1, 0).unwrap();
        assert!(!few.scaled && few.set.len() == 10 && total(&few.set) <= MOST * 2.0);
        let many = draw(350, light, 2, 1, 0).unwrap();
        assert!(many.scaled && many.set.len() == 350);
        assert!((total(&many.set) - SCALED * 2.0).abs() < 0.02);
        let shortest = many.set.timings().iter().map(|t| t.wcet).min().unwrap();
        assert!(shortest > Duration::ZERO);
        assert!(many.set.timings().iter().all(|t| t.wcet <= t.deadline));
        assert_eq!(many.set.wss(model::TaskId(3)), Some(WSS));
        // By seed and number alone.
        let again = draw(350, light, 2, 1, 0).unwrap();
        assert_eq!(again.set.timings(), many.set.timings());
        let other = draw(350, light, 2, 1, 1).unwrap();
        assert_ne!(other.set.timings(), many.set.timings());
    }
}
