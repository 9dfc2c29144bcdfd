//! `warmset study` from outside: list, run, go on, plot, and how it refuses.

use assert_cmd::Command;
use std::path::Path;

fn study(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmset"));
    command.arg("study").args(arguments.split_whitespace());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn refusal(command: &mut Command) -> String {
    let out = command
        .assert()
        .code(2)
        .stdout("")
        .get_output()
        .stderr
        .clone();
    let sentence = text(&out);
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    sentence
}

#[test]
fn the_list_shows_every_study_with_its_source() {
    let out = study("list").assert().success().get_output().stdout.clone();
    let list = text(&out);
    assert!(
        list.lines()
            .any(|l| l.starts_with("ospert10-fig5 ") && l.contains("000 §5, Fig. 5")),
        "{list}"
    );
    let json = study("list --format json")
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let rows: serde_json::Value = serde_json::from_slice(&json).expect("one JSON document");
    assert_eq!(
        rows["studies"].as_array().map(Vec::len),
        // Families stand below.
        Some(list.lines().take_while(|line| !line.is_empty()).count())
    );
}

/// 000 §5: without delay G-EDF keeps all, P-EDF somewhat more than half; G-EDF falls below that
/// near 725 us.
#[test]
fn fig_5_of_000_comes_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = study("run ospert10-fig5 --sets 20 --format json -o")
        .arg(dir.path())
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let results: serde_json::Value = serde_json::from_slice(&out).expect("one JSON document");
    let weighted = |policy: usize, delay: usize| {
        results["policies"][policy]["weighted"][delay]
            .as_f64()
            .expect("a share")
    };
    assert!(
        (0.50..0.56).contains(&weighted(0, 0)),
        "P-EDF: {}",
        weighted(0, 0)
    );
    assert_eq!(weighted(1, 0), 1.0);
    // Delays of 600 and 900 us.
    assert!(weighted(1, 6) > weighted(0, 0) && weighted(1, 9) < weighted(0, 0));
    for policy in 0..4 {
        for delay in 1..21 {
            assert!(
                weighted(policy, delay) <= weighted(1, delay),
                "G-EDF dominates in Fig. 5"
            );
        }
    }
    let svg = std::fs::read_to_string(dir.path().join("weighted.svg")).expect("a chart");
    assert!(svg.starts_with("<svg") && svg.contains("C-EDF-L3"));
    assert_eq!(
        std::fs::read_to_string(dir.path().join("results.json")).expect("results"),
        text(&out)
    );
    let csv = std::fs::read_to_string(dir.path().join("weighted.csv")).expect("a table");
    assert!(
        csv.starts_with("value,P-EDF,G-EDF,C-EDF-L2,C-EDF-L3,axis,unit,accounting,profile\n0,0.5")
            && csv.ends_with(",delay,ns,one-delay,\n"),
        "{csv}"
    );
    // Once more: everything is there, nothing changes, and the table is for people.
    let again = study("run ospert10-fig5 --sets 20 -o")
        .arg(dir.path())
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    assert!(
        text(&again).contains("G-EDF is at least as good as P-EDF without delay"),
        "{}",
        text(&again)
    );
}

#[test]
fn the_picture_of_the_readme_is_the_one_that_is_drawn() {
    let dir = tempfile::tempdir().expect("a directory");
    study("run ospert10-fig5 -o")
        .arg(dir.path())
        .assert()
        .success();
    let kept = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/img/ospert10-fig5.svg"
    );
    let drawn = dir.path().join("weighted.svg");
    assert!(
        std::fs::read(kept).expect("a picture") == std::fs::read(drawn).expect("a picture"),
        "look at it, and draw it again: warmset study run ospert10-fig5 -o fig5"
    );
}

#[test]
fn a_study_of_ones_own_runs_from_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("mine.toml");
    let body = "platform = \"symmetric:m=4\"\npolicies = [\"p-edf\", \"c-edf:size=2\", \"GFB\"]\nguarantee = \"hard\"\n\
                utilizations = \"uniform-medium\"\nperiods = \"moderate\"\ncaps = { from = 2, to = 4, step = 1 }\n\
                delays = { from = \"500us\" }\nsets = 50\n";
    std::fs::write(&file, body).expect("written");
    let out = study("run")
        .arg(&file)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    insta::assert_snapshot!(text(&out));
}

/// 002 §6.4 on a small scale: what a working set costs stands in the profile, and ξ = 0 costs 0.
#[test]
fn working_sets_are_swept() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("mine.toml");
    let body = "platform = \"xeon-l7455\"\nprofile = \"xeon-l7455\"\naccounting = \"paper\"\n\
                policies = [\"p-edf\", \"c-edf:l3\"]\nguarantee = \"soft\"\nutilizations = \"uniform-heavy\"\n\
                periods = \"short\"\ncaps = [6, 12, 18, 24]\nworking_sets = [\"0B\", \"64KiB\", \"1MiB\", \"3MiB\"]\n\
                sets = 20\n";
    std::fs::write(&file, body).expect("written");
    let results = dir.path().join("results");
    let out = study("run")
        .arg(&file)
        .arg("-o")
        .arg(&results)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let shown = text(&out);
    assert!(
        shown.contains("profile xeon-l7455 (average, load)") && shown.contains(" 1MiB "),
        "{shown}"
    );
    let json = std::fs::read_to_string(results.join("results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&json).expect("one JSON document");
    assert_eq!(json["axis"]["name"], "working_set");
    let points = serde_json::json!([0, 65_536, 1_048_576, 3_145_728]);
    assert_eq!(json["axis"]["points"], points);
    let w = |policy: usize, at: usize| json["policies"][policy]["weighted"][at].as_f64();
    assert!(w(1, 0) > w(1, 3), "{shown}");
    let svg = std::fs::read_to_string(results.join("weighted.svg")).expect("a chart");
    assert!(
        svg.contains("working set size ξ") && svg.contains("1 MiB"),
        "{svg}"
    );
    assert!(
        results.join("schedulability-0B.svg").exists() && results.join("points.parquet").exists()
    );
    study("plot --at 1MiB --png --pdf --width 3.5in --font serif")
        .arg(&results)
        .assert()
        .success();
    assert!(results.join("schedulability-1MiB.png").exists());
    let pdf = std::fs::read(results.join("schedulability-1MiB.pdf")).expect("a page");
    let has = |text: &str| pdf.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("/MediaBox [0 0 252 "), "3.5 inches");
    assert!(has("/BaseFont /WARMST+DejaVuSerif"));
    let sentence = refusal(study("plot --at 1ms").arg(&results));
    assert!(sentence.contains("`1ms` is not a size"), "{sentence}");
    let page = dir.path().join("explorer.html");
    study("explore")
        .arg(&results)
        .arg("-o")
        .arg(&page)
        .assert()
        .success();
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("working set size of every task"));
}

#[test]
fn sets_are_added_until_shares_are_known() {
    let out = study(
        "run ospert10-fig5 --platform symmetric:m=2 --policy g-edf --until-ci 0.3 --format json",
    )
    .assert()
    .success()
    .get_output()
    .stdout
    .clone();
    let json: serde_json::Value = serde_json::from_slice(&out).expect("one JSON document");
    let sets = json["sets_by_cap"].as_array().expect("a list");
    assert!(sets.iter().all(|n| n.as_u64() == Some(40)), "{sets:?}");
    let sentence = refusal(&mut study("run ospert10-fig5 --until-ci 2"));
    assert!(
        sentence.contains("--until-ci: 2 cannot be the width"),
        "{sentence}"
    );
}

#[test]
fn the_schema_of_study_files_is_printed_or_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = study("schema")
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let schema: serde_json::Value = serde_json::from_slice(&out).expect("one JSON document");
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema["properties"]["working_sets"]["description"].is_string());
    let file = dir.path().join("study.schema.json");
    study("schema -o").arg(&file).assert().success().stdout("");
    assert_eq!(std::fs::read(file).expect("written"), out);
}

#[test]
fn charts_are_drawn_at_the_delays_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let (results, charts) = (dir.path().join("results"), dir.path().join("charts"));
    study("run ospert10-fig5 --sets 1 -o")
        .arg(&results)
        .assert()
        .success();
    study("plot --at 500us --at 2ms -o")
        .arg(&charts)
        .arg(&results)
        .assert()
        .success();
    let mut names: Vec<_> = std::fs::read_dir(&charts)
        .expect("charts")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "schedulability-2ms.svg",
            "schedulability-500us.svg",
            "weighted.svg"
        ]
    );
    let sentence = refusal(study("plot --at 550us").arg(&results));
    assert!(
        sentence.contains("the study has no delay of 550us")
            && sentence.contains("from 0ms to 2ms"),
        "{sentence}"
    );
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, body: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, body).expect("written");
        path
    };
    for (arguments, message) in [
        ("run ospert10-fig6", "did you mean `ospert10-fig5`?"),
        ("run ospert10-fig5 --sets 0", "sets: 0 sets for each cap"),
        ("run ospert10-fig5 --sets many", "invalid value 'many'"),
        ("run nowhere.toml", "nowhere.toml"),
        (
            "plot /nowhere",
            "name a directory that `warmset study run -o` made",
        ),
        ("rum", "similar"),
    ] {
        let sentence = refusal(&mut study(arguments));
        assert!(sentence.contains(message), "`{arguments}`: {sentence}");
    }
    let misspelled = write(
        "misspelled.toml",
        "based_on = \"ospert10-fig5\"\npolices = []\n",
    );
    let sentence = refusal(study("run").arg(misspelled));
    assert!(
        sentence
            .contains("misspelled.toml: line 2: unknown key `polices`; did you mean `policies`?"),
        "{sentence}"
    );
    let empty = write("empty.toml", "");
    assert!(refusal(study("run").arg(empty)).contains("the file is empty"));
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), "kept").expect("written");
    let sentence = refusal(study("run ospert10-fig5 --sets 1 -o").arg(dir.path().join("file")));
    assert!(sentence.contains("file"), "{sentence}");
    // Root may write into a directory without write permission, but nobody below /proc.
    let sentence =
        refusal(study("run ospert10-fig5 --sets 1 -o").arg(Path::new("/proc/warmset-study")));
    assert!(sentence.contains("/proc/warmset-study"), "{sentence}");
    let kept = dir.path().join("kept");
    study("run ospert10-fig5 --sets 1 -o")
        .arg(&kept)
        .assert()
        .success();
    let sentence = refusal(study("run ospert10-fig5 --sets 2 -o").arg(&kept));
    assert!(
        sentence.contains("the directory holds another study"),
        "{sentence}"
    );
}

/// Starts a study that takes long, in a directory, and returns when some of it was counted.
fn at_work(dir: &Path, sets: &str) -> std::process::Child {
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_warmset"))
        .args(["study", "run", "ospert10-fig5", "--sets", sets, "-o"])
        .arg(dir)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    while counted(dir) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child
}

/// The whole lines of counts in a directory.
fn counted(dir: &Path) -> usize {
    std::fs::read(dir.join("counts.jsonl")).map_or(0, |bytes| {
        bytes.iter().filter(|byte| **byte == b'\n').count()
    })
}

/// Ctrl-C: what was counted stays, the process says how to go on, nothing half-written is left.
#[test]
fn an_interrupt_keeps_what_was_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let child = at_work(dir.path(), "20000");
    let pid = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .expect("kill")
            .success()
    );
    let out = child.wait_with_output().expect("ended");
    assert_eq!(out.status.code(), Some(130), "{out:?}");
    let sentence = text(&out.stderr);
    assert!(
        sentence.contains("stopped after ") && sentence.contains("run it again"),
        "{sentence}"
    );
    assert!((1..93 * 2000).contains(&counted(dir.path())));
    let sentence = refusal(study("plot").arg(dir.path()));
    assert!(sentence.contains("the study is not complete"), "{sentence}");
}

/// A study that was killed goes on, and the results are those of a run without a kill.
#[test]
fn a_killed_study_goes_on_and_ends_the_same() {
    let (killed, whole) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let again = |dir: &Path| {
        let mut command = study("run ospert10-fig5 --sets 300 --threads 2 -o");
        command.arg(dir);
        command
    };
    let mut child = at_work(killed.path(), "300");
    if child.try_wait().expect("asked").is_none() {
        child.kill().expect("killed");
    }
    child.wait().expect("ended");
    again(killed.path()).assert().success();
    again(whole.path()).assert().success();
    for file in [
        "counts.jsonl",
        "results.json",
        "results.csv",
        "weighted.csv",
    ] {
        let read = |dir: &Path| std::fs::read(dir.join(file)).expect(file);
        assert!(read(killed.path()) == read(whole.path()), "{file} differs");
    }
}

#[test]
fn a_second_command_in_a_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = at_work(dir.path(), "20000");
    let sentence = refusal(study("run ospert10-fig5 --sets 20000 -o").arg(dir.path()));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(
        sentence.contains("another command works in the directory"),
        "{sentence}"
    );
}

/// Shares in directories of their own, put together, are the study.
#[test]
fn shares_are_merged() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    for number in ["1/2", "2/2"] {
        study(&format!("run ospert10-fig5 --sets 10 --shard {number} -o"))
            .arg(at(&number[..1]))
            .assert()
            .success()
            .stdout("");
    }
    study("run ospert10-fig5 --sets 10 -o")
        .arg(at("whole"))
        .assert()
        .success();
    study("merge")
        .arg(at("1"))
        .arg("-o")
        .arg(at("merged"))
        .assert()
        .code(1);
    study("merge")
        .args([at("1"), at("2")])
        .arg("-o")
        .arg(at("merged"))
        .assert()
        .success();
    for file in ["counts.jsonl", "results.json", "weighted.svg"] {
        let read = |name: &str| std::fs::read(at(name).join(file)).expect(file);
        assert!(read("merged") == read("whole"), "{file} differs");
    }
    let sentence = refusal(&mut study("run ospert10-fig5 --sets 10 --shard 1/2"));
    assert!(sentence.contains("add `-o DIR`"), "{sentence}");
}

/// What runs with Dask is tried in Python (`crates/python/tests/test_dask.py`).
#[test]
fn without_python_dask_is_refused_with_what_to_do() {
    let mut command = study("run ospert10-fig5 --sets 1 --dask tcp://127.0.0.1:1");
    let sentence = refusal(command.env("WARMSET_PYTHON", "/nowhere/python3"));
    assert!(
        sentence.contains("--dask: /nowhere/python3: cannot start Python"),
        "{sentence}"
    );
    assert!(
        sentence.contains("with the package `warmset`"),
        "{sentence}"
    );
    let both = "run ospert10-fig5 --dask tcp://127.0.0.1:1 --threads 2";
    let sentence = refusal(&mut study(both));
    assert!(sentence.contains("--threads"), "{sentence}");
}

/// Charts named after figures of 002 leave out what these charge: the terminal, the results and the
/// charts say so.
#[test]
fn a_study_that_leaves_overheads_out_is_marked() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = study("run bastoni11-fig6.4a --sets 1 -o")
        .arg(dir.path())
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let out = text(&out);
    assert!(
        out.starts_with("Soft, uniform light, moderate periods, no kernel overheads"),
        "{out}"
    );
    let note = "Not the figure itself: 002 §6.3, Fig. 6.4 charges the kernel's overheads as measured, which are left out here.";
    assert!(out.contains(note), "{out}");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect(name);
    assert!(read("results.json").contains(note));
    for chart in ["weighted.svg", "schedulability-0ms.svg"] {
        let svg = read(chart);
        assert!(
            svg.contains("kernel overheads") && svg.contains("Not the figure itself"),
            "{chart}"
        );
        // Also where it is seen, and not only in the description.
        let seen = &svg[svg.find("</desc>").expect("a description")..];
        assert!(
            seen.contains("Charged: D once a job; no kernel overheads."),
            "{chart}"
        );
    }
}

/// The costs of a study are chosen as those of `check`, and told in every result.
#[test]
fn profile_accounting_and_policies_are_chosen_as_in_check() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("board.toml");
    let point = |tasks: u32| {
        format!("{{ tasks = {tasks}, samples = 9, average = \"90us\", maximum = \"300us\" }}")
    };
    let text = format!(
        "version = 1\nplatform = \"board\"\n[[overheads]]\nkind = \"scheduling\"\npoints = [{}, {}]\n",
        point(1),
        point(1000)
    );
    std::fs::write(&profile, text).expect("written");
    let results = dir.path().join("results");
    let run = |accounting: &str| {
        let mut command =
            study("run ospert10-fig5 --sets 1 -m 2 --policy p-edf,g-edf,GFB --statistic maximum");
        command
            .args(["--accounting", accounting, "--profile"])
            .arg(&profile);
        command.arg("-o").arg(&results);
        command
    };
    let out = text_of(&mut run("paper"));
    assert!(
        out.starts_with("Soft, uniform heavy, short periods, kernel overheads of board\n"),
        "{out}"
    );
    assert!(
        out.contains("accounting paper, profile board (maximum)"),
        "{out}"
    );
    assert!(out.contains("GFB: tests are charged D alone."), "{out}");
    let read = |name: &str| std::fs::read_to_string(results.join(name)).expect(name);
    let json: serde_json::Value = serde_json::from_str(&read("results.json")).expect("JSON");
    assert_eq!(
        (&json["accounting"], &json["profile"], &json["statistic"]),
        (&"paper".into(), &"board".into(), &"maximum".into())
    );
    assert!(
        read("results.csv")
            .lines()
            .skip(1)
            .all(|line| line.ends_with(",paper,board"))
    );
    let picture = read("weighted.svg");
    assert!(picture.contains("accounting `paper`") && picture.contains("profile `board`"));
    assert!(read("profile.toml").contains("scheduling"));
    // The same command goes on; another accounting is another study.
    assert_eq!(text_of(&mut run("paper")), out);
    // A note on what is left out stands before the sentence.
    let other = run("warmset").assert().code(2);
    let said = String::from_utf8_lossy(&other.get_output().stderr);
    let sentence = said.lines().last().unwrap_or_default();
    assert!(
        sentence.contains("the directory holds another study"),
        "{said}"
    );
    let sentence = refusal(&mut run("twice"));
    assert!(
        sentence.contains("write `one-delay`, `paper` or `warmset`"),
        "{sentence}"
    );
}

fn text_of(command: &mut Command) -> String {
    text(&command.assert().success().get_output().stdout)
}
