//! Sets until shares are known: as many as each cap needs, the same on any number of threads, in
//! shares or not, stopped or not.

mod support;

use model::Ratio;
use model::watch::Silent;
use std::num::NonZeroUsize;
use std::path::Path;
use study::{
    Results, Share, Study, Threads, load, merge, run, run_by, run_in, run_share_in, wilson,
};
use support::small;
use testing::watching::StopAfterSteps;

const TEXT: &str = "platform = \"symmetric:m=4\"\npolicies = [\"p-edf\", \"g-edf\"]\n\
                    caps = { from = 1, to = 4, step = 1 }\ndelays = [\"0us\", \"500us\"]\nuntil_ci = 0.15\n";

fn files_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap());
    let mut all: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn widest(results: &Results, cap: usize) -> f64 {
    let shard = &results.shards[cap];
    let widths = shard.accepted.iter().flatten().map(|count| {
        let (low, high) = wilson(*count, shard.sets);
        high - low
    });
    widths.fold(0.0, f64::max)
}

#[test]
fn each_cap_has_as_many_sets_as_it_needs() {
    let study = small(TEXT);
    assert_eq!(study.sets, study::enough_for(0.15).unwrap());
    let results = run(&study, &Silent).unwrap();
    for cap in 0..results.shards.len() {
        assert!(widest(&results, cap) <= 0.15, "cap {cap}");
    }
    let sets: Vec<u32> = results.shards.iter().map(|s| s.sets).collect();
    let (least, most) = (*sets.iter().min().unwrap(), *sets.iter().max().unwrap());
    assert!(least < most && results.sets == most, "{sets:?}");
    // The same sets as a study that draws so many.
    for (at, shard) in results.shards.iter().enumerate() {
        let plain = Study {
            until_ci: None,
            sets: shard.sets,
            ..study.clone()
        };
        assert_eq!(run(&plain, &Silent).unwrap().shards[at], *shard);
    }
    // 000 §5 with shares of different numbers of sets, in whole numbers.
    let common: u64 = 40 * 50 * 60 * 70 * 64;
    for policy in 0..2 {
        for point in 0..2 {
            let (mut num, mut den) = (0, 0);
            for shard in &results.shards {
                let u = u64::from(shard.cap.thousandths());
                let sets = u64::from(shard.sets);
                assert!(common.is_multiple_of(sets), "{sets}");
                num += u * (common / sets) * u64::from(shard.accepted[policy][point]);
                den += u * common;
            }
            assert_eq!(
                results.weighted_at(policy, point),
                Ratio::new(num, den).unwrap()
            );
        }
    }
}

#[test]
fn at_most_so_many_sets_are_drawn() {
    let study = small(&format!("{TEXT}sets = 110\n"));
    let results = run(&study, &Silent).unwrap();
    assert_eq!(results.sets, 100, "the largest stage of at most 110");
    assert!((0..4).any(|cap| widest(&results, cap) > 0.15));
    for (text, message) in [
        ("sets = 30\n", "sets: at most 30 sets"),
        ("until_ci = 0\n", "cannot be the width"),
    ] {
        let text = format!(
            "{}{text}",
            TEXT.replace(
                "until_ci = 0.15\n",
                match text.starts_with("until") {
                    true => "",
                    false => "until_ci = 0.15\n",
                }
            )
        );
        let text = format!("based_on = \"ospert10-fig5\"\n{text}");
        let read = study::file::from_toml(&text, model::Platform::find, model::Profile::find);
        let e = read
            .and_then(|study| run(&study, &Silent).map(drop))
            .unwrap_err();
        assert!(e.to_string().contains(message), "{e}");
    }
}

#[test]
fn threads_shares_and_stops_change_nothing() {
    let study = small(TEXT);
    let whole = tempfile::tempdir().unwrap();
    let results = run_in(whole.path(), &study, &Silent).unwrap();
    assert_eq!(load(whole.path()).unwrap(), results);
    let on = |count| Threads {
        count: NonZeroUsize::new(count),
    };
    for count in [1, 3] {
        assert_eq!(run_by(&on(count), &study, &Silent).unwrap(), results);
    }
    let stopped = tempfile::tempdir().unwrap();
    let mut stops = 0;
    // Stopped again and again, within stages and between them.
    while run_in(stopped.path(), &study, &StopAfterSteps::new(40)).is_err() {
        stops += 1;
        assert!(stops < 100);
    }
    assert!(stops > 1, "{stops}");
    assert_eq!(files_of(stopped.path()), files_of(whole.path()));
    let shares: Vec<_> = (1..=3)
        .map(|number| {
            let dir = tempfile::tempdir().unwrap();
            let share: Share = format!("{number}/3").parse().unwrap();
            run_share_in(dir.path(), &study, &on(1), share, &Silent).unwrap();
            dir
        })
        .collect();
    let dirs: Vec<_> = shares.iter().map(|dir| dir.path().to_owned()).collect();
    let merged = tempfile::tempdir().unwrap();
    assert_eq!(merge(&dirs[1..], merged.path()).unwrap(), None);
    assert_eq!(merge(&dirs, merged.path()).unwrap(), Some(results));
    assert_eq!(files_of(merged.path()), files_of(whole.path()));
}
