//! The example task sets, made for as many processors as there are.
//!
//! `examples/control.toml` and `examples/video.toml` are the two for two processors. For `m`
//! processors the first has `m` times its three tasks, and the second `m + 1` decoders (one on a
//! single processor) and one audio task, so that the same question is asked of every machine: is
//! there a scheduler for loads that do not divide among processors?

use model::{Bytes, Details, Duration, Result, TaskSet, Timing};

/// An example.
pub struct Example {
    /// Its name, also of its file.
    pub name: &'static str,
    /// The tasks.
    pub set: TaskSet,
}

/// What an example of this name is, and what it is for.
pub fn about(name: &str) -> Option<&'static str> {
    match name {
        "control" => Some(
            "A vehicle’s control loops, detectors and cameras, one of each for every processor: none of them may be late.",
        ),
        "video" => Some(
            "Video decoders, one more than there are processors and each for more than half of one, with sound: a frame may \
             be late, but only by a bounded time.",
        ),
        _ => None,
    }
}

fn task(name: String, wcet_ms: u64, period_ms: u64, wss: Bytes, soft: bool) -> (Timing, Details) {
    let timing = Timing::implicit(
        Duration::from_millis(wcet_ms),
        Duration::from_millis(period_ms),
    );
    let details = Details {
        wss: Some(wss),
        soft,
        ..Details::named(name)
    };
    (timing, details)
}

/// Control loops that must not be late: `m` times a control loop, a detector and a camera.
///
/// # Errors
/// More tasks than a set may have.
pub fn control(m: u32) -> Result<Example> {
    let tasks = (1..=m).flat_map(|n| {
        [
            task(format!("control-{n}"), 1, 5, Bytes::from_kib(32), false),
            task(format!("detect-{n}"), 22, 40, Bytes::from_kib(512), false),
            task(format!("camera-{n}"), 2, 33, Bytes::from_kib(256), false),
        ]
    });
    Ok(Example {
        name: "control",
        set: TaskSet::new(tasks.collect())?,
    })
}

/// Video that may be late by a bounded time: one decoder more than processors, and sound.
///
/// # Errors
/// More tasks than a set may have.
pub fn video(m: u32) -> Result<Example> {
    let decoders = if m > 1 { m + 1 } else { 1 };
    let mut tasks: Vec<_> = (1..=decoders)
        .map(|n| task(format!("decode-{n}"), 19, 33, Bytes::from_mib(1), true))
        .collect();
    tasks.push(task("audio".to_owned(), 1, 10, Bytes::from_kib(64), true));
    Ok(Example {
        name: "video",
        set: TaskSet::new(tasks)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::taskfile;
    use model::{Ratio, exact};
    use std::cmp::Ordering;

    #[test]
    fn the_files_are_the_sets_for_two_processors() {
        let control_file = include_str!("../../../examples/control.toml");
        let video_file = include_str!("../../../examples/video.toml");
        assert_eq!(
            taskfile::from_toml(control_file).unwrap(),
            control(2).unwrap().set
        );
        assert_eq!(
            taskfile::from_toml(video_file).unwrap(),
            video(2).unwrap().set
        );
    }

    #[test]
    fn no_set_asks_for_more_than_there_is_and_no_two_decoders_share_a_processor() {
        for m in 1..=64 {
            for example in [control(m).unwrap(), video(m).unwrap()] {
                let whole = Ratio::whole(u64::from(m));
                assert_eq!(
                    example.set.cmp_utilization(whole),
                    Ordering::Less,
                    "{} {m}",
                    example.name
                );
            }
        }
        let set = video(8).unwrap().set;
        let two = set.timings()[..2].iter().map(Timing::utilization);
        assert_eq!(exact::cmp_sum(two, Ratio::ONE), Ordering::Greater);
    }
}
