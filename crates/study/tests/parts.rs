//! The unit of work: the same bytes on any number of threads, in shares or not, killed or not, and
//! one command a directory.

mod support;

use model::watch::{Silent, Watch};
use model::{Duration, Ratio, Result};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use study::{
    Arrivals, Counts, Executor, Kept, Part, PartJudge, Share, Study, Texts, Threads, Work, merge,
    run, run_by, run_in,
};
use study::{load, run_share_in};
use support::{delays, small};
use tempfile::{TempDir, tempdir};

/// Forty-five sets: the last part of a cap is half as large as the others.
const FOUR: &str = "platform = \"symmetric:m=4\"\npolicies = [\"p-edf\", \"g-edf\", \"c-edf:size=2\"]\n\
                    caps = { from = 1, to = 4, step = 1 }\nsets = 45\n";

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

fn on(count: usize) -> Threads {
    Threads {
        count: NonZeroUsize::new(count),
    }
}

/// A directory with the whole study.
fn whole(study: &Study) -> TempDir {
    let dir = tempdir().unwrap();
    run_in(dir.path(), study, &Silent).unwrap();
    dir
}

#[test]
fn one_two_and_sixteen_threads_write_the_same_bytes() {
    let study = small(FOUR);
    let expected = files_of(whole(&study).path());
    for count in [1, 2, 16] {
        let dir = tempdir().unwrap();
        run_share_in(dir.path(), &study, &on(count), Share::WHOLE, &Silent).unwrap();
        assert_eq!(files_of(dir.path()), expected, "{count} threads");
    }
}

/// The journal of a process that was killed is any prefix of the lines, the last of them cut off
/// anywhere.
#[test]
fn a_study_that_was_killed_at_any_byte_ends_the_same() {
    let study = small(FOUR);
    let expected = whole(&study);
    let journal = std::fs::read(expected.path().join("counts.jsonl")).unwrap();
    for at in (0..=journal.len()).step_by(journal.len() / 13) {
        let dir = tempdir().unwrap();
        for name in ["study.toml", "platform.toml"] {
            std::fs::copy(expected.path().join(name), dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("counts.jsonl"), &journal[..at]).unwrap();
        run_in(dir.path(), &study, &Silent).unwrap();
        assert_eq!(
            files_of(dir.path()),
            files_of(expected.path()),
            "killed at byte {at}"
        );
    }
}

/// Keeps which parts are asked for.
#[derive(Default)]
struct Recorder(Mutex<Vec<Part>>);

impl Executor for Recorder {
    fn run(
        &self,
        work: &Work<'_>,
        parts: &[Part],
        keep: &(dyn Fn(Counts) -> Result<()> + Sync),
        _: &dyn Watch,
    ) -> Result<()> {
        self.0.lock().unwrap().extend(parts);
        parts.iter().try_for_each(|part| keep(work.judge(*part)?))
    }
}

#[test]
fn what_was_counted_is_not_counted_again() {
    let study = small(FOUR);
    let dir = whole(&study);
    let path = dir.path().join("counts.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = journal.lines().collect();
    lines.remove(7);
    // Doubled lines, as of shares that overlap, count once.
    let doubled = lines[0];
    lines.push(doubled);
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let recorder = Recorder::default();
    let results = run_share_in(dir.path(), &study, &recorder, Share::WHOLE, &Silent).unwrap();
    let asked = recorder.0.into_inner().unwrap();
    assert_eq!(
        asked,
        [Part {
            cap: 2_000,
            first: 20,
            sets: 10
        }]
    );
    assert_eq!(results.unwrap(), run(&study, &Silent).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), journal);
}

#[test]
fn shares_that_are_merged_are_the_whole() {
    let study = small(FOUR);
    let expected = whole(&study);
    let shares: Vec<TempDir> = (1..=3)
        .map(|number| {
            let dir = tempdir().unwrap();
            let share = format!("{number}/3").parse().unwrap();
            let results = run_share_in(dir.path(), &study, &on(1), share, &Silent).unwrap();
            assert_eq!(results, None);
            assert!(load(dir.path()).is_err());
            dir
        })
        .collect();
    let dirs: Vec<_> = shares.iter().map(|dir| dir.path().to_owned()).collect();
    let merged = tempdir().unwrap();
    assert_eq!(merge(&dirs[..2], merged.path()).unwrap(), None);
    // Twice the same share, and those that are there already.
    let results = merge(&[&dirs[1..], &dirs[2..]].concat(), merged.path()).unwrap();
    assert_eq!(results.unwrap(), run(&study, &Silent).unwrap());
    assert_eq!(files_of(merged.path()), files_of(expected.path()));
    for bad in ["0/3", "4/3", "3", "1/0", "a/b"] {
        assert!(bad.parse::<Share>().is_err(), "{bad}");
    }
}

#[test]
fn shares_of_different_studies_or_counts_are_not_merged() {
    let study = small(FOUR);
    let other = Study {
        seed: 2,
        ..study.clone()
    };
    let (one, two, into) = (whole(&study), whole(&other), tempdir().unwrap());
    let dirs = [one.path().to_owned(), two.path().to_owned()];
    let e = merge(&dirs, into.path()).unwrap_err().to_string();
    assert!(e.contains("another study"), "{e}");
    let damaged = whole(&study);
    let path = damaged.path().join("counts.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("3ff", "1ff", 1)).unwrap();
    let dirs = [one.path().to_owned(), damaged.path().to_owned()];
    let e = merge(&dirs, tempdir().unwrap().path())
        .unwrap_err()
        .to_string();
    assert!(e.contains("differ") && e.contains("line "), "{e}");
}

/// As versions wrote it that kept no pairs: how many sets, not which.
fn in_numbers(journal: &str) -> String {
    let line = |line: &str| {
        let counts: Counts = serde_json::from_str(line).unwrap();
        let old = Counts {
            kept: Kept::Numbers(counts.kept.numbers()),
            ..counts
        };
        serde_json::to_string(&old).unwrap() + "\n"
    };
    journal.lines().map(line).collect()
}

#[test]
fn counts_of_versions_without_pairs_are_read_and_know_less() {
    let study = small(FOUR);
    let (dir, expected) = (whole(&study), run(&study, &Silent).unwrap());
    let path = dir.path().join("counts.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    let old = in_numbers(&journal);
    assert!(old.starts_with("{\"part\":{\"cap\":1000,\"first\":0,\"sets\":10},\"accepted\":[["));
    std::fs::write(&path, &old).unwrap();
    let results = load(dir.path()).unwrap();
    assert!(expected.has_pairs() && !results.has_pairs());
    let accepted = |r: &study::Results| {
        r.shards
            .iter()
            .map(|s| s.accepted.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(accepted(&results), accepted(&expected));
    // What is there is not judged again, and stays.
    let recorder = Recorder::default();
    run_share_in(dir.path(), &study, &recorder, Share::WHOLE, &Silent).unwrap();
    assert_eq!(recorder.0.into_inner().unwrap(), []);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), old);
    // Together with counts that know more, in any order, these stay.
    let new = whole(&study);
    for dirs in [[&dir, &new], [&new, &dir]] {
        let dirs = dirs.map(|dir| dir.path().to_owned());
        let merged = tempdir().unwrap();
        assert_eq!(
            merge(&dirs, merged.path()).unwrap(),
            Some(run(&study, &Silent).unwrap())
        );
        assert_eq!(files_of(merged.path()), files_of(new.path()));
    }
    // Those that contradict each other are refused.
    std::fs::write(&path, old.replacen("[10,", "[9,", 1)).unwrap();
    let dirs = [&new, &dir].map(|dir| dir.path().to_owned());
    let e = merge(&dirs, tempdir().unwrap().path())
        .unwrap_err()
        .to_string();
    assert!(e.contains("differ"), "{e}");
}

/// A word for each point and policy where each is a number of sets today: no more room than that.
#[test]
fn pairs_take_hardly_more_room_than_numbers() {
    let study = small(
        "policies = [\"p-edf\", \"g-edf\", \"c-edf:l2\", \"c-edf:l3\"]\ncaps = { from = 1, to = 24, step = 1 }\n\
         sets = 20\n",
    );
    let journal = std::fs::read_to_string(whole(&study).path().join("counts.jsonl")).unwrap();
    let (now, before) = (journal.len(), in_numbers(&journal).len());
    assert!(now < before + before / 10, "{now} bytes, {before} before");
}

/// Runs a second command in the directory while the first one is at work.
struct Intruder<'a>(&'a Path, &'a Study);

impl Executor for Intruder<'_> {
    fn run(
        &self,
        work: &Work<'_>,
        parts: &[Part],
        keep: &(dyn Fn(Counts) -> Result<()> + Sync),
        watch: &dyn Watch,
    ) -> Result<()> {
        let e = run_in(self.0, self.1, &Silent).unwrap_err().to_string();
        assert!(e.contains("another command works in the directory"), "{e}");
        on(1).run(work, parts, keep, watch)
    }
}

#[test]
fn the_second_of_two_commands_in_a_directory_is_refused() {
    let study = small(FOUR);
    let dir = tempdir().unwrap();
    let executor = Intruder(dir.path(), &study);
    run_share_in(dir.path(), &study, &executor, Share::WHOLE, &Silent).unwrap();
    assert_eq!(files_of(dir.path()), files_of(whole(&study).path()));
}

/// W(D) of soft G-EDF from the generated sets, by 000 §5 in whole numbers: a set is kept if each
/// e + D is at most p and Σ (e + D) / p is at most m.
#[test]
fn weighted_schedulability_is_the_same_when_it_is_computed_slowly() {
    let study = small(&FOUR.replace("sets = 45", "sets = 12"));
    let results = run_by(&on(2), &study, &Silent).unwrap();
    let g_edf = results.policy("G-EDF").unwrap();
    for (d, delay) in delays(&results).into_iter().enumerate() {
        let (mut kept_weight, mut weight) = (0, 0);
        for cap in study.caps.values() {
            let generator = study.recipe(cap).prepare().unwrap();
            for index in 0..study.sets {
                let number = Study::set_number(cap, index);
                let set = generator.draw(study.seed, number).unwrap();
                let u = u64::from(cap.thousandths());
                weight += u;
                kept_weight += u * u64::from(fits(set.timings(), delay, 4));
            }
        }
        let expected = Ratio::new(kept_weight, weight).unwrap();
        assert_eq!(results.weighted_at(g_edf, d), expected, "D = {delay}");
    }
    assert_eq!(results.weighted_at(g_edf, 0), Ratio::ONE);
    let last = results.axis.len() - 1;
    assert!(results.weighted_at(g_edf, last) < Ratio::ONE);
}

/// Periods here are whole milliseconds of at most 33: their least common multiple is exact.
fn fits(tasks: &[model::Timing], delay: Duration, m: u128) -> bool {
    let gcd = |mut a: u128, mut b: u128| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let (mut common, mut sum) = (1u128, 0u128);
    for task in tasks {
        let (e, p) = (
            u128::from((task.wcet + delay).nanos()),
            u128::from(task.period.nanos()),
        );
        if e > p {
            return false;
        }
        let next = common / gcd(common, p) * p;
        sum = sum * (next / common) + e * (next / p);
        common = next;
    }
    sum <= m * common
}

/// Judges parts from texts as another process would, and brings their counts back late, out of
/// order and twice.
struct Unreliable(PartJudge);

impl Executor for Unreliable {
    fn run(
        &self,
        work: &Work<'_>,
        parts: &[Part],
        keep: &(dyn Fn(Counts) -> Result<()> + Sync),
        watch: &dyn Watch,
    ) -> Result<()> {
        let arrivals = Arrivals::new(work, parts, keep, watch);
        let lines: Vec<String> = parts
            .iter()
            .map(|part| self.0.judge(*part))
            .collect::<Result<_>>()?;
        let odd = lines.iter().skip(1).step_by(2).rev();
        odd.chain(&lines).try_for_each(|line| arrivals.take(line))?;
        assert_eq!(arrivals.left(), 0);
        arrivals.take(&lines.join("\n"))
    }
}

#[test]
fn parts_that_come_back_out_of_order_and_twice_change_no_byte() {
    let in_stages = FOUR.replace("sets = 45", "sets = 120\nuntil_ci = 0.2");
    for study in [FOUR, &in_stages] {
        let study = small(study);
        let expected = whole(&study);
        let texts = serde_json::to_string(&Texts::of(&study)).unwrap();
        let there = PartJudge::new(&serde_json::from_str(&texts).unwrap()).unwrap();
        let dir = tempdir().unwrap();
        let counter = Counter::default();
        run_share_in(
            dir.path(),
            &study,
            &Unreliable(there),
            Share::WHOLE,
            &counter,
        )
        .unwrap();
        assert_eq!(files_of(dir.path()), files_of(expected.path()));
        let (steps, total) = counter.0.into_inner().unwrap();
        assert_eq!(steps, total, "each set is one step");
    }
}

/// Counts the steps of the watch, and sums the totals of its stages.
#[derive(Default)]
struct Counter(Mutex<(u64, u64)>);

impl Watch for Counter {
    fn begin(&self, _: &str, total: u64) {
        self.0.lock().unwrap().1 += total;
    }
    fn advance(&self, steps: u64) {
        self.0.lock().unwrap().0 += steps;
    }
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        false
    }
}

#[test]
fn what_is_no_answer_is_refused_before_it_is_kept() {
    let study = small(FOUR);
    let work = Work::new(&study).unwrap();
    let parts = work.parts();
    let (asked, other) = (parts[0], parts[1]);
    let keep = |_: Counts| panic!("nothing is kept");
    let arrivals = Arrivals::new(&work, &[asked], &keep, &Silent);
    let there = PartJudge::new(&Texts::of(&study)).unwrap();
    let refused = |line: &str| arrivals.take(line).unwrap_err().cause().to_owned();
    assert!(refused("{}").contains("not the counts of a part"));
    assert!(refused(&there.judge(other).unwrap()).contains("nobody asked for"));
    let too_many = there
        .judge(asked)
        .unwrap()
        .replace("\"kept\":[", "\"kept\":[\"0\",");
    assert!(refused(&too_many).contains("not those of this study"));
    assert_eq!(arrivals.left(), 1);
}

#[test]
fn texts_of_another_version_are_refused() {
    let study = small(FOUR);
    let texts = Texts::of(&study);
    assert_eq!(texts.study().unwrap(), study);
    let version = env!("CARGO_PKG_VERSION");
    let other = Texts {
        study: texts.study.replace(version, "0.0.1"),
        ..texts
    };
    let refused = PartJudge::new(&other).err().expect("refused");
    assert!(refused.cause().contains("another version"), "{refused}");
}
