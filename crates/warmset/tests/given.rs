//! What a user gives instead of leaving it to the tool: assignments, processors, priorities,
//! blocking, jitter. End to end.

use serde_json::Value;
use tempfile::TempDir;
use testing::command::Called;
use testing::warmset;

struct Files(TempDir);

impl Files {
    fn new(set: &str) -> Self {
        let files = Files(TempDir::new().unwrap());
        files.write("set.toml", set);
        files
    }
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }
    /// Status, standard output, standard error.
    fn run(&self, arguments: &str) -> (i32, String, String) {
        let Called { status, out, err } = Called::within(warmset!(), self.0.path(), arguments);
        (status, out, err)
    }
    fn json(&self, arguments: &str) -> (i32, Value) {
        let arguments = format!("{arguments} --format json");
        let called = Called::within(warmset!(), self.0.path(), &arguments);
        (called.status, called.json())
    }
}

fn task(name: &str, wcet: &str, period: &str, more: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\nwss = \"64KiB\"\n{more}\n"
    )
}

fn four() -> String {
    task("a", "6ms", "10ms", "")
        + &task("b", "6ms", "10ms", "")
        + &task("c", "6ms", "10ms", "")
        + &task("d", "2ms", "20ms", "")
}

const CHECK: &str = "check set.toml --platform symmetric:m=4";

#[test]
fn a_given_assignment_is_judged_as_it_is() {
    let files = Files::new(&four());
    let clustered = |cluster_of: &str| {
        format!(r#"{{"kind":"clustered","clusters":["0","1","2","3"],"cluster_of":{cluster_of}}}"#)
    };
    files.write("good.json", &clustered("[2,1,0,0]"));
    files.write("bad.json", &clustered("[0,0,1,2]"));
    let (status, good) = files.json(&format!("{CHECK} --policy p-edf --assignment good.json"));
    assert_eq!(status, 0);
    let verdict = &good["policies"][0];
    assert_eq!(
        verdict["assignment"]["cluster_of"],
        serde_json::json!([2, 1, 0, 0])
    );
    assert_eq!(verdict["heuristic"], Value::Null);
    // Processor 0 has 6/10 + 2/20: WCETs may grow until it is full.
    assert_eq!(verdict["growth"]["thousandths"], 1428);
    let (status, bad) = files.json(&format!("{CHECK} --policy p-edf --assignment bad.json"));
    assert_eq!(
        (status, &bad["policies"][0]["schedulable"]),
        (1, &Value::Bool(false))
    );
    assert!(
        bad["policies"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("processors 0 are asked for 1.200 of 1"),
        "{bad}"
    );
    for (text, policy, cause) in [
        (
            clustered("[0,1,2]"),
            "p-edf",
            "it places 3 tasks, and the set has 4",
        ),
        (
            clustered("[0,1,2,7]"),
            "p-edf",
            "it puts `d` into cluster 7, and it has 4",
        ),
        (
            clustered("[0,1,2,3]"),
            "g-edf",
            "processors 0 are no cluster of `g-edf`",
        ),
        (
            clustered("[0,1,2,3]"),
            "edf-wm",
            "it is no assignment for `edf-wm`",
        ),
        (
            clustered("[0,1,2,3]").replace("\"3\"", "\"9\""),
            "p-edf",
            "it uses processor 9, and those that can be used are 0-3",
        ),
        (
            clustered("[0,1,2,3]").replace("\"3\"", "\"0\""),
            "p-edf",
            "it has processor 0 twice",
        ),
    ] {
        files.write("odd.json", &text);
        let (status, _, err) =
            files.run(&format!("{CHECK} --policy {policy} --assignment odd.json"));
        assert!(
            status == 2 && err.contains(cause),
            "{status} {cause}: {err}"
        );
    }
    for (arguments, cause) in [
        ("--assignment good.json", "--policy"),
        (
            "--assignment good.json --policy p-edf,g-edf",
            "an assignment is for one policy, and several are named",
        ),
    ] {
        let (status, _, err) = files.run(&format!("{CHECK} {arguments}"));
        assert!(status == 2 && err.contains(cause), "{status}: {err}");
    }
}

/// What `check` has found it accepts again when it is given, hard and soft, with costs and without,
/// and refuses for longer WCETs. As the policy deals them out a task with all of its jobs on one of
/// two processors takes turns all the same, and bounds of tardiness would take it for one that does
/// not.
#[test]
fn who_takes_turns_has_jobs_on_both_processors() {
    let files = Files::new(&(task("a", "3ms", "5ms", "") + &task("b", "2ms", "5ms", "")));
    for (part, whole, status) in [(0, 1, 2), (1, 1, 2), (4, 4, 2), (1, 2, 0)] {
        let turns = format!(
            r#"{{"kind":"turns","cpus":[0,1],"tasks":[
                {{"first":0,"second":1,"part":{part},"whole":{whole}}},
                {{"first":0,"second":0,"part":1,"whole":1}}]}}"#
        );
        files.write("turns.json", &turns);
        let check = "check set.toml --soft --platform symmetric:m=2 --policy edf-fm";
        let (said, _, err) = files.run(&format!("{check} --assignment turns.json"));
        assert_eq!(said, status, "{part} of {whole}: {err}");
        let named = err.contains(&format!(
            "`a` has {part} of {whole} jobs on its first processor"
        ));
        assert_eq!(named, status == 2, "{err}");
    }
}

#[test]
fn what_was_found_holds_when_it_is_given() {
    // So many tasks of so many milliseconds every ten, on so many processors.
    for (policy, guarantee, tasks, wcet, m) in [
        ("p-edf", "--hard", 6, 4, 3),
        ("g-edf", "--soft", 4, 7, 3),
        ("c-edf:size=2", "--soft", 5, 6, 4),
        ("p-fp:dm", "--hard", 6, 4, 3),
        ("g-fp:dm", "--hard", 4, 2, 3),
        ("edf-fm", "--soft", 6, 4, 3),
        ("edf-wm", "--hard", 4, 7, 3),
        ("edf-wm", "--soft", 4, 7, 3),
        ("nps-f", "--hard", 4, 7, 4),
        ("pd2", "--hard", 4, 6, 3),
        ("ca-edf", "--soft", 4, 6, 3),
    ] {
        let set = |wcet: &str| -> String {
            let all = (0..tasks).map(|i| task(&format!("t{i}"), wcet, "10ms", ""));
            all.collect()
        };
        let files = Files::new(&set(&format!("{wcet}ms")));
        for costs in ["", "--cpmd 10us", "--profile xeon-l7455"] {
            let platform = match costs.contains("profile") {
                true if policy.starts_with("c-") => continue,
                true => "xeon-l7455".to_owned(),
                false => format!("symmetric:m={m}"),
            };
            let ask = format!(
                "check set.toml --platform {platform} --policy {policy} {guarantee} {costs}"
            );
            let (status, found) = files.json(&ask);
            assert_eq!(status, 0, "{ask}: {found}");
            files.write("answer.json", &found.to_string());
            let (status, again) = files.json(&format!("{ask} --assignment answer.json"));
            assert_eq!(status, 0, "{ask}: {again}");
            let (found, again) = (&found["policies"][0], &again["policies"][0]);
            assert_eq!(again["assignment"], found["assignment"], "{ask}");
            // Beyond its growth the assignment does not hold, whatever another one would do.
            let longer = wcet * 1_000 * (again["growth"]["thousandths"].as_u64().unwrap() + 20);
            if longer >= 10_000_000 || again["growth"]["exact"] != true {
                continue;
            }
            files.write("longer.toml", &set(&format!("{longer}ns")));
            files.write("alone.json", &found["assignment"].to_string());
            let ask = ask.replace("set.toml", "longer.toml");
            let (status, _, err) = files.run(&format!("{ask} --assignment alone.json"));
            // Reservations that are shorter than WCETs do not fit the set at all.
            let reserved = found["assignment"]["reserved_ns"][0].as_u64();
            let refused = match reserved.is_some_and(|reserved| reserved < longer) {
                true => 2,
                false => 1,
            };
            assert_eq!(status, refused, "{ask}: {err}");
        }
    }
}

#[test]
fn tasks_stay_where_they_are_kept() {
    let set = task("free", "6ms", "10ms", "")
        + &task("kept", "5ms", "10ms", "cpus = \"0\"")
        + &task("pair", "4ms", "10ms", "cpus = \"0-1\"");
    let files = Files::new(&set);
    let (status, answer) =
        files.json("check set.toml --platform symmetric:m=2 --policy p-edf,g-edf,edf-wm");
    assert_eq!(status, 0, "{answer}");
    let of = |name: &str| {
        let policies = answer["policies"].as_array().unwrap();
        policies
            .iter()
            .find(|p| p["policy"] == name)
            .unwrap()
            .clone()
    };
    // Worst fit in decreasing utilization alone would put `free` on processor 0.
    assert_eq!(
        of("p-edf")["assignment"]["cluster_of"],
        serde_json::json!([1, 0, 0])
    );
    for policy in ["g-edf", "edf-wm"] {
        let verdict = of(policy);
        assert_eq!(verdict["decided_by"], "not judged", "{policy}");
        assert!(
            verdict["reason"].as_str().unwrap().contains("`kept`"),
            "{verdict}"
        );
    }
    let (status, _, err) = files.run("simulate set.toml -m 2 --policy g-edf --for 100ms");
    assert!(
        status == 2 && err.contains("`kept` is kept to some of them"),
        "{status}: {err}"
    );
    let (status, _, err) =
        files.run("simulate set.toml -m 2 --policy p-edf --for 100ms --trace run.wtrace");
    assert_eq!(status, 0, "{err}");
    let (_, trace) = (0, files.run("trace export run.wtrace --to csv").1);
    assert!(!trace.is_empty());
    files.write(
        "moved.json",
        r#"{"kind":"clustered","clusters":["0","1"],"cluster_of":[0,1,1]}"#,
    );
    let (status, _, err) =
        files.run("check set.toml --platform symmetric:m=2 --policy p-edf --assignment moved.json");
    assert!(
        status == 2
            && err.contains("it lets `kept` run on processors 1, and the task is kept to 0"),
        "{err}"
    );
    files.write("set.toml", &task("t", "1ms", "10ms", "cpus = \"5\""));
    let (status, _, err) = files.run("check set.toml --platform symmetric:m=2 --policy p-edf");
    assert!(
        status == 2 && err.contains("none of them can be used"),
        "{err}"
    );
}

/// Rate-monotonic order holds the set, the order of the file does not: priorities decide, in the
/// answer and in the schedule.
#[test]
fn given_priorities_rank_under_fixed_priorities() {
    let set = |slow: &str, fast: &str| {
        task("slow", "5ms", "20ms", slow) + &task("fast", "2ms", "5ms", fast)
    };
    for (slow, fast, holds) in [
        ("", "", false),
        ("priority = 10", "priority = 80", true),
        ("priority = 80", "priority = 10", false),
        ("", "priority = 1", true),
        ("priority = 7", "priority = 7", false),
    ] {
        let files = Files::new(&set(slow, fast));
        for policy in ["p-fp", "g-fp"] {
            let (status, answer) = files.json(&format!(
                "check set.toml --platform symmetric:m=1 --policy {policy}"
            ));
            assert_eq!(
                status,
                i32::from(!holds),
                "{slow} {fast} {policy}: {answer}"
            );
            let verdict = &answer["policies"][0];
            if holds {
                // Numbers of tasks are those of the file.
                assert_eq!(verdict["tasks"][1]["task"], "fast");
                assert_eq!(verdict["clusters"][0]["tasks"][1]["task"], "fast");
                assert_eq!(verdict["clusters"][0]["tasks"][1]["index"], 1);
            }
            let run =
                format!("simulate set.toml -m 1 --policy {policy} --for 200ms --trace run.wtrace");
            assert_eq!(files.run(&run).0, i32::from(!holds), "{run}");
            let (status, out, err) = files.run("trace check run.wtrace");
            assert_eq!(status, 0, "{out} {err}");
        }
    }
}

#[test]
fn blocking_and_jitter_count_or_are_refused() {
    let set = |more: &str| task("fast", "2ms", "5ms", more) + &task("slow", "5ms", "20ms", "");
    let hard = |more: &str, policy: &str, m: u32| {
        let files = Files::new(&set(more));
        files.json(&format!(
            "check set.toml --platform symmetric:m={m} --policy {policy}"
        ))
    };
    for (more, policy, m, status) in [
        ("blocking = \"3ms\"", "p-edf", 1, 0),
        ("blocking = \"3001us\"", "p-edf", 1, 1),
        ("jitter = \"3ms\"", "p-edf", 1, 0),
        ("jitter = \"2ms\"\nblocking = \"1001us\"", "p-edf", 1, 1),
        ("blocking = \"3ms\"", "p-rm", 1, 0),
        ("blocking = \"3001us\"", "p-rm", 1, 1),
        ("jitter = \"1ms\"", "g-edf", 2, 0),
        ("blocking = \"2ms\"\njitter = \"1ms\"", "g-edf", 2, 0),
        ("blocking = \"2ms\"\njitter = \"1001us\"", "g-edf", 2, 1),
        ("jitter = \"1ms\"", "g-fp:dm", 2, 0),
    ] {
        let (said, answer) = hard(more, policy, m);
        assert_eq!(
            said, status,
            "{more} {policy}: {}",
            answer["policies"][0]["reason"]
        );
    }
    for (more, policy, what) in [
        (
            "jitter = \"1ms\"",
            "pd2",
            "it does not take release jitter, and `fast` has some",
        ),
        (
            "blocking = \"1ms\"",
            "edf-wm",
            "it does not take blocking, and `fast` has some",
        ),
        ("jitter = \"1ms\"", "nps-f", "release jitter"),
        ("jitter = \"1ms\"", "g-edf --soft", "release jitter"),
        ("blocking = \"1ms\"", "edf-fm --soft", "blocking"),
    ] {
        let (status, answer) = hard(more, policy, 2);
        let verdict = &answer["policies"][0];
        let reason = verdict["reason"].as_str().unwrap();
        assert!(
            status == 1 && reason.starts_with("not judged: ") && reason.contains(what),
            "{policy}: {reason}"
        );
    }
    let files = Files::new("");
    files.write(
        "sets.jsonl",
        r#"{"id":1,"m":2,"tasks":[{"wcet":2000,"period":5000,"jitter":1000},{"wcet":5000,"period":20000}]}"#,
    );
    let (status, out, _) = files.run("check --batch sets.jsonl --tests GFB,RTA,PEDF-WFD,PD2");
    assert_eq!(status, 0);
    assert_eq!(
        out.trim(),
        concat!(
            r#"{"schema_version":1,"id":1,"verdicts":{"GFB":true,"RTA":true,"PEDF-WFD":true,"PD2":null},"#,
            r#""reasons":{"PD2":"does not take release jitter"}}"#
        )
    );
}

/// Deadlines count from arrivals: a job that is released late is late for the rest, and the trace
/// says so and passes.
#[test]
fn jitter_is_simulated_and_bounded_by_the_answer() {
    let set = task("fast", "2ms", "5ms", "jitter = \"2ms\"")
        + &task(
            "slow",
            "5ms",
            "20ms",
            "deadline = \"15ms\"\njitter = \"3ms\"",
        );
    let files = Files::new(&set);
    let (status, answer) = files.json("check set.toml --platform symmetric:m=1 --policy p-edf");
    assert_eq!(status, 0, "{answer}");
    let bound = |task: usize| {
        answer["policies"][0]["tasks"][task]["response_ns"]
            .as_u64()
            .unwrap()
    };
    for how in ["random", "random --seed 7", "first", "none"] {
        let run = format!(
            "simulate set.toml -m 1 --policy p-edf --for 2s --trace run.wtrace --jitter {how}"
        );
        let (status, simulated) = files.json(&run);
        assert_eq!(status, 0, "{simulated}");
        for task in 0..2 {
            let longest = simulated["tasks"][task]["response"]["max_ns"]
                .as_u64()
                .unwrap();
            assert!(
                longest <= bound(task),
                "{how} {task}: {longest} {}",
                bound(task)
            );
            if task == 0 && how == "first" {
                // Two late, two of execution.
                assert_eq!(longest, 4_000_000);
            }
        }
        let (status, out, err) = files.run("trace check run.wtrace");
        assert_eq!(status, 0, "{how}: {out} {err}");
    }
    let (status, _, err) = files.run("simulate set.toml -m 2 --policy edf-wm --for 1s");
    assert!(
        status == 2 && err.contains("`edf-wm` does not take release jitter"),
        "{err}"
    );
    files.write("set.toml", &task("t", "1ms", "5ms", "blocking = \"1ms\""));
    let (_, _, err) = files.run("simulate set.toml -m 1 --policy p-edf --for 1s");
    assert!(err.contains("blocking is not simulated"), "{err}");
}
