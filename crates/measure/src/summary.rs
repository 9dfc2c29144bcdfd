//! What a measurement found, for people: a short table and sentences about what does not count.

use crate::cpmd::Outcome;
use model::{Bytes, CpmdPoint, Delay, Duration, Load, Profile, Resumption};

/// A table of working set sizes by kinds of resumption: mean with its interval and maximum, idle
/// and under load.
pub fn table(profile: &Profile) -> String {
    let mut text = String::new();
    let mut ratios: Vec<f64> = profile.cpmd.iter().map(|c| c.write_ratio).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.dedup();
    for ratio in &ratios {
        if ratios.len() > 1 {
            text += &format!("write ratio {ratio}\n");
        }
        text += &table_of(profile, *ratio);
    }
    text
}

fn table_of(profile: &Profile, ratio: f64) -> String {
    let mut sizes: Vec<Bytes> = Vec::new();
    let mut kinds: Vec<Resumption> = Vec::new();
    for curve in profile.cpmd.iter().filter(|c| c.write_ratio == ratio) {
        sizes.extend(curve.points.iter().map(|p| p.wss));
        kinds.push(curve.resumption);
    }
    sizes.sort_unstable();
    sizes.dedup();
    kinds.sort_unstable();
    kinds.dedup();
    let mut rows = vec![
        [
            "WSS",
            "resumption",
            "idle mean",
            "idle max",
            "load mean",
            "load max",
        ]
        .map(str::to_owned),
    ];
    for wss in sizes {
        for kind in &kinds {
            let point = |load: Load| -> Option<&CpmdPoint> {
                profile
                    .cpmd
                    .iter()
                    .find(|c| c.write_ratio == ratio && c.resumption == *kind && c.load == load)?
                    .points
                    .iter()
                    .find(|p| p.wss == wss)
            };
            let (idle, load) = (point(Load::Idle), point(Load::Load));
            if idle.is_none() && load.is_none() {
                continue;
            }
            rows.push([
                wss.to_string(),
                kind.to_string(),
                mean(idle),
                maximum(idle),
                mean(load),
                maximum(load),
            ]);
        }
    }
    align(&rows)
}

fn mean(point: Option<&CpmdPoint>) -> String {
    let Some((point, average)) = point.and_then(|p| p.average.map(|a| (p, a))) else {
        return "–".to_owned();
    };
    match point.average_interval {
        Some((low, high)) => {
            let half = high.nanos().saturating_sub(low.nanos()).max(0) / 2;
            let digits = digits_of(average);
            format!("{} ± {:.digits$}", micros(average), half as f64 / 1e3)
        }
        None => micros(average),
    }
}

fn maximum(point: Option<&CpmdPoint>) -> String {
    point
        .and_then(|p| p.maximum)
        .map_or_else(|| "–".to_owned(), micros)
}

/// Microseconds with as many digits as mean something.
fn micros(delay: Delay) -> String {
    format!("{:.*}", digits_of(delay), delay.as_micros_f64())
}

fn digits_of(delay: Delay) -> usize {
    match delay.nanos().unsigned_abs() {
        0..10_000 => 2,
        10_000..100_000 => 1,
        _ => 0,
    }
}

/// The first two columns to the left, numbers to the right; microseconds said once.
fn align(rows: &[[String; 6]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::from("delays in us, means ± half of their 95 % interval\n");
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(i, (cell, width))| match i {
                1 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// What does not count, and why; what was kept apart; what it cost; what could spoil the numbers.
pub fn sentences(outcome: &Outcome) -> Vec<String> {
    let mut all = Vec::new();
    let gone: u64 = outcome.discards.values().sum();
    if gone == 0 {
        all.push(format!("All {} samples count.", outcome.samples));
    } else {
        all.push(format!(
            "{} of {} samples count; {} discarded:",
            outcome.samples - gone,
            outcome.samples,
            if gone == 1 {
                "one was".to_owned()
            } else {
                format!("{gone} were")
            },
        ));
        all.extend(
            outcome
                .discards
                .iter()
                .map(|(cause, count)| format!("  {count} because {}.", cause.because())),
        );
    }
    let mut times: Vec<u64> = outcome
        .blocks
        .iter()
        .flat_map(|b| b.before.iter().chain(&b.after))
        .map(|t| t.time.nanos())
        .collect();
    times.sort_unstable();
    if let (Some(low), Some(high)) = (times.first(), times.last()) {
        all.push(format!(
            "A cache line took between {} and {} from one processor to another.",
            Duration::from_nanos(*low),
            Duration::from_nanos(*high)
        ));
    }
    all.push(format!(
        "It took {:.2} times what the walks and preemptions themselves take.",
        outcome.cost_ratio
    ));
    all.extend(
        outcome
            .profile
            .provenance
            .warnings
            .iter()
            .map(|w| format!("Warning: {w}.")),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{self, tests::sample};
    use crate::samples::Discard;
    use model::{Provenance, Resumption};

    fn outcome() -> Outcome {
        let mut samples: Vec<_> = (0..60)
            .map(|d| sample(Resumption::Preemption, Load::Idle, 100 + d % 7))
            .collect();
        samples
            .extend((0..60).map(|d| sample(Resumption::Migration(3), Load::Idle, 12_000 + 10 * d)));
        samples.extend(
            (0..60).map(|d| sample(Resumption::Migration(3), Load::Load, 152_000 + 100 * d)),
        );
        samples[0].discarded = Some(Discard::Interrupted);
        samples[70].discarded = Some(Discard::Moved);
        let mut profile = Profile::new("test", Provenance::default());
        profile.provenance.warnings.push("it was a test".to_owned());
        profile.cpmd = results::curves(&samples, 1);
        Outcome {
            profile,
            profile_path: "profile.toml".into(),
            samples_path: "samples.parquet".into(),
            samples: samples.len() as u64,
            discards: results::discards(&samples),
            blocks: Vec::new(),
            cost_ratio: 1.034,
            interrupted: None,
        }
    }

    #[test]
    fn the_table_has_means_with_their_intervals_and_maxima() {
        insta::assert_snapshot!(table(&outcome().profile), @r"
        delays in us, means ± half of their 95 % interval
          WSS  resumption      idle mean  idle max  load mean  load max
        16KiB  preemption    0.10 ± 0.00      0.11          –         –
        16KiB  L3-migration   12.3 ± 0.0      12.6    155 ± 0       158
        ");
    }

    #[test]
    fn the_sentences_count_what_was_discarded() {
        insta::assert_snapshot!(sentences(&outcome()).join("\n"), @r"
        178 of 180 samples count; 2 were discarded:
          1 because an interrupt took more than a hundredth of a walk.
          1 because the virtual machine moved while they were taken.
        It took 1.03 times what the walks and preemptions themselves take.
        Warning: it was a test.
        ");
    }
}
