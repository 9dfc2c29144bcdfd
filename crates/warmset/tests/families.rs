//! Families of studies from outside: run, go on, list; the observations that are held against them;
//! competitive ranges.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use testing::schemas;

/// Few processors, so that a scenario takes a second.
const FOUR: &str = "--platform xeon-l7455:m=4 --sets 2";

fn warmset(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmset"));
    command.current_dir(dir).args(arguments.split_whitespace());
    command
}

fn answer(dir: &Path, arguments: &str) -> String {
    let out = warmset(dir, arguments).assert().success();
    String::from_utf8(out.get_output().stdout.clone()).expect("text")
}

fn json(dir: &Path, arguments: &str) -> serde_json::Value {
    let text = answer(dir, &format!("{arguments} --format json"));
    serde_json::from_str(&text).expect("one JSON document")
}

fn refusal(dir: &Path, arguments: &str) -> String {
    let out = warmset(dir, arguments).assert().code(2);
    let sentence = String::from_utf8(out.get_output().stderr.clone()).expect("text");
    let last = sentence.lines().last().unwrap_or_default().to_owned();
    assert!(!last.is_empty(), "{sentence}");
    last
}

fn profile() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("examples/overheads/profile.toml")
        .display()
        .to_string()
}

#[test]
fn a_family_runs_into_a_directory_for_each_study() {
    let dir = tempfile::tempdir().expect("a directory");
    let family = "bastoni11-6.3-soft-uniform-heavy";
    let run = json(dir.path(), &format!("study run {family} {FOUR} -o out"));
    schemas::hold("study-family", &run);
    let studies = run["studies"].as_array().expect("a list");
    assert_eq!(studies.len(), 3);
    for (study, periods) in studies.iter().zip(["short", "moderate", "long"]) {
        let name = format!("{family}-{periods}");
        assert_eq!(
            (study["study"].as_str(), &study["complete"]),
            (Some(&*name), &true.into())
        );
        let text = std::fs::read_to_string(dir.path().join("out").join(&name).join("results.json"))
            .expect("results");
        let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let title = results["title"].as_str().expect("a title");
        // It is marked as scaled, and says what it leaves out.
        assert!(title.contains("scaled to 4 processors"), "{title}");
        assert!(title.contains("no kernel overheads"), "{title}");
        let notes = results["notes"].to_string();
        for told in [
            "Not the figure itself: 002 §6.3, Fig. B.15",
            "Scaled: ",
            "worst fit",
        ] {
            assert!(notes.contains(told), "{told}: {notes}");
        }
        assert_eq!(results["accounting"], "paper");
        assert!(
            dir.path()
                .join("out")
                .join(&name)
                .join("weighted.svg")
                .exists()
        );
    }
    // Once more: all is there, and stays as it is.
    let file = dir
        .path()
        .join("out")
        .join(format!("{family}-long"))
        .join("counts.jsonl");
    let before = std::fs::read(&file).expect("counts");
    answer(dir.path(), &format!("study run {family} {FOUR} -o out"));
    assert_eq!(std::fs::read(&file).expect("counts"), before);
    // In shares, too.
    for share in ["1/2", "2/2"] {
        let into = share.replace('/', "of");
        let arguments = format!("study run {family}-long {FOUR} --shard {share} -o {into}");
        warmset(dir.path(), &arguments).assert().success();
    }
    answer(dir.path(), "study merge 1of2 2of2 -o merged");
    assert_eq!(
        std::fs::read(dir.path().join("merged/counts.jsonl")).expect("counts"),
        before
    );
    // Shares of a family are put together study by study.
    for share in ["1of2", "2of2"] {
        let into = dir.path().join(format!("family-{share}"));
        std::fs::create_dir(&into).expect("made");
        std::fs::rename(dir.path().join(share), into.join("long")).expect("moved");
    }
    let mut half = warmset(dir.path(), "study merge family-1of2 -o whole --format json");
    let half = half.assert().code(1).get_output().stdout.clone();
    let run: serde_json::Value = serde_json::from_slice(&half).expect("one JSON document");
    assert_eq!(run["studies"][0]["complete"], false);
    let run = json(dir.path(), "study merge family-1of2 family-2of2 -o whole");
    assert_eq!(run["studies"][0]["complete"], true);
    assert_eq!(
        std::fs::read(dir.path().join("whole/long/counts.jsonl")).expect("counts"),
        before
    );
}

#[test]
fn a_family_is_listed_with_its_studies() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = json(dir.path(), "study list");
    let families = list["families"].as_array().expect("a list");
    let of = |name: &str| {
        let family = families.iter().find(|family| family["name"] == name);
        family.and_then(|f| f["studies"].as_array()).map(Vec::len)
    };
    assert_eq!(of("bastoni11-6.3"), Some(36));
    assert_eq!(of("bastoni11-6.3bf"), Some(18));
    assert_eq!(of("bastoni11-6.4"), Some(54));
    let text = answer(dir.path(), "study list");
    assert!(text.contains("bastoni11-6.4 "), "{text}");
    assert!(text.contains("bastoni11-fig6.6a"), "{text}");
}

#[test]
fn a_family_without_a_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let sentence = refusal(dir.path(), "study run bastoni11-6.4-soft");
    assert!(
        sentence.contains("27 studies") && sentence.contains("-o DIR"),
        "{sentence}"
    );
    let sentence = refusal(dir.path(), "study run bastoni11-6.4-sofd");
    assert!(sentence.contains("did you mean"), "{sentence}");
    std::fs::write(
        dir.path().join("based.toml"),
        "based_on = \"bastoni11-6.3\"\n",
    )
    .expect("written");
    let sentence = refusal(dir.path(), "study run based.toml");
    assert!(sentence.contains("stands for 36 studies"), "{sentence}");
}

/// Idle and load in one figure, by working set size, up to 3 MiB and drawn to 1.
#[test]
fn a_study_of_6_4_has_both_loads_and_draws_to_1_mib() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = "bastoni11-6.4-hard-uniform-heavy-moderate";
    let results = json(
        dir.path(),
        &format!("study run {name} --platform xeon-l7455:m=4 --sets 1 -o out"),
    );
    let policies: Vec<&str> = results["policies"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|p| p["policy"].as_str())
        .collect();
    assert_eq!(policies.len(), 12);
    assert!(
        policies.contains(&"EDF-WM idle") && policies.contains(&"NPS-F-DELTA-4 load"),
        "{policies:?}"
    );
    assert_eq!(results["axis"]["points"].as_array().map(Vec::len), Some(37));
    assert_eq!(results["axis"]["drawn_to"], 1048576.0);
    // ξ = 0 costs nothing, idle or not.
    let first = |policy: &str| {
        let all = results["policies"].as_array().expect("a list");
        let found = all
            .iter()
            .find(|p| p["policy"] == policy)
            .expect("a policy");
        found["weighted"][0].as_f64()
    };
    assert_eq!(first("EDF-WM idle"), first("EDF-WM load"));
    let svg = std::fs::read_to_string(dir.path().join("out/weighted.svg")).expect("a chart");
    assert!(
        svg.contains("EDF-WM idle") && !svg.contains("3 MiB"),
        "{}",
        svg.len()
    );
    let csv = std::fs::read_to_string(dir.path().join("out/weighted.csv")).expect("a table");
    assert!(csv.contains("\n3145728,"), "{csv}");
}

#[test]
fn observations_say_what_is_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    answer(
        dir.path(),
        &format!("study run bastoni11-6.3-soft-uniform-heavy {FOUR} -o out"),
    );
    let found = json(dir.path(), "study observe out");
    schemas::hold("study-observe", &found);
    let settings = found["settings"].as_array().expect("a list");
    assert_eq!(settings.len(), 1);
    assert_eq!(settings[0]["studies"], 3);
    let statements = settings[0]["statements"].as_array().expect("a list");
    assert_eq!(statements.len(), 6 + 6 + 8);
    assert!(statements.iter().all(|one| {
        one["answer"] != "cannot-tell" || one["missing"].as_array().is_some_and(|m| !m.is_empty())
    }));
    let text = answer(dir.path(), "study observe out --only 6.3.5");
    assert!(text.contains("6.3.5") && !text.contains("6.3.6"), "{text}");
    assert!(text.contains("no kernel overheads are charged"), "{text}");
    let sentence = refusal(dir.path(), "study observe out --only 7.1");
    assert!(
        sentence.contains("there is no statement `7.1`"),
        "{sentence}"
    );
    let sentence = refusal(dir.path(), "study observe out --factors 2");
    assert!(
        sentence.contains("none are charged") && sentence.contains("profile"),
        "{sentence}"
    );
    let empty = tempfile::tempdir().expect("a directory");
    let sentence = refusal(empty.path(), "study observe .");
    assert!(sentence.contains("no study is in it"), "{sentence}");
}

/// The same studies with all overheads times a factor, each in its own directory.
#[test]
fn factors_are_run_beside_each_study_and_answered_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = "bastoni11-6.3-soft-uniform-light-moderate";
    let profile = profile();
    answer(
        dir.path(),
        &format!("study run {name} --platform xeon-l7455:m=4 --sets 1 --profile {profile} -o out"),
    );
    let found = json(dir.path(), "study observe out --factors 0,1,8");
    schemas::hold("study-observe", &found);
    let one = &found["settings"][0];
    assert_eq!(
        (&one["studies"], &one["kernel_overheads"]),
        (&3.into(), &true.into())
    );
    let statement = &one["statements"][4];
    assert_eq!(statement["statement"], "6.3.5");
    let factors: Vec<f64> = statement["factors"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|at| at["factor"].as_f64())
        .collect();
    assert_eq!(factors, [0.0, 1.0, 8.0]);
    for factor in ["0", "8"] {
        let nested: PathBuf = dir
            .path()
            .join("out")
            .join(format!("overheads-times-{factor}"));
        assert!(nested.join("results.json").exists());
    }
    // The same for what contention for queues costs alone, into directories of its own.
    let queues = json(
        dir.path(),
        "study observe out --factors 8 --factor-on release,scheduling",
    );
    let settings = queues["settings"].as_array().expect("a list");
    let on: Vec<usize> = settings
        .iter()
        .filter_map(|one| one["factors_on"].as_array().map(Vec::len))
        .collect();
    assert_eq!(on, [7, 2]);
    assert!(
        dir.path()
            .join("out/release+scheduling-times-8/results.json")
            .exists()
    );
    let sentence = refusal(
        dir.path(),
        "study observe out --factors 8 --factor-on paging",
    );
    assert!(
        sentence.contains("there is no overhead `paging`"),
        "{sentence}"
    );
    // Without overheads a policy keeps at least as many sets as with eight times of them.
    let kept = |path: &str| {
        let text = std::fs::read_to_string(dir.path().join(path)).expect("results");
        let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        results["policies"][1]["weighted"][0]
            .as_f64()
            .expect("a share")
    };
    let (none, eight) = (
        kept("out/overheads-times-0/results.json"),
        kept("out/overheads-times-8/results.json"),
    );
    assert!(none >= kept("out/results.json") && kept("out/results.json") >= eight);
    assert!(none > eight, "{none} {eight}");
}

/// 000 §5: G-EDF keeps up with P-EDF's W(0) up to about 725 µs; here 740 with 1,000 sets a cap.
#[test]
fn the_range_of_fig_5_of_000_is_found_for_any_pair() {
    let dir = tempfile::tempdir().expect("a directory");
    answer(dir.path(), "study run ospert10-fig5 --sets 30 -o fig5");
    let found = json(
        dir.path(),
        "study range fig5 --of g-edf --against P-EDF --profile xeon-l7455",
    );
    let first = &found["ranges"][0];
    let value = |key: &str| first[key]["value"].as_f64().expect("a delay");
    assert!((650e3..850e3).contains(&value("up_to")), "{first}");
    assert!(
        value("surely") < value("up_to") && value("up_to") < value("at_most"),
        "{first}"
    );
    assert_eq!(found["ranges"].as_array().map(Vec::len), Some(21));
    // A heavier price of the other one leaves more room.
    let reach = |at: usize| match found["ranges"][at]["up_to"]["reach"].as_str() {
        Some("up-to") => found["ranges"][at]["up_to"]["value"]
            .as_f64()
            .expect("a delay"),
        _ => f64::INFINITY,
    };
    assert!((1..21).all(|at| reach(at) >= reach(at - 1)));
    // §5: "G-EDF is preferable" for working sets below 1 MiB, as delays are below 725 µs there.
    let sizes = found["working_sets"].as_array().expect("a list");
    let of = |resumption: &str, load: &str| {
        let found = sizes.iter().find(|s| {
            s["resumption"] == resumption && s["load"] == load && s["statistic"] == "average"
        });
        found.and_then(|s| s["wss"].as_str().map(str::to_owned))
    };
    assert_eq!(of("memory-migration", "load"), Some("512KiB".to_owned()));
    let text = answer(dir.path(), "study range fig5 --of g-edf --against p-edf");
    assert!(text.contains("G-EDF keeps up with P-EDF"), "{text}");
    let sentence = refusal(dir.path(), "study range fig5 --of g-edf --against p-fp");
    assert!(
        sentence.contains("no policy `p-fp`") && sentence.contains("C-EDF-L2"),
        "{sentence}"
    );
}
