//! Names of policies: what is judged under which name, and that names read and write back.

use super::*;

#[test]
fn every_shared_level_makes_a_policy_and_no_clustering_comes_twice() {
    let names = |platform: &str| {
        suggested(&Platform::builtin(platform).unwrap(), Guarantee::Hard)
            .unwrap()
            .iter()
            .map(Spec::to_string)
            .collect::<Vec<_>>()
    };
    let xeon =
        "p-edf c-edf:l2 c-edf:l3 g-edf p-rm p-fp:dm edf-wm nps-f c-nps-f:l2 c-nps-f:l3 g-fp:dm pd2";
    assert_eq!(names("xeon-l7455").join(" "), xeon);
    let without_caches = "p-edf g-edf p-rm p-fp:dm edf-wm nps-f g-fp:dm pd2";
    assert_eq!(names("symmetric:m=8").join(" "), without_caches);
    assert_eq!(names("symmetric:m=1"), ["p-edf", "p-rm", "p-fp:dm"]);
}

/// Priorities of tasks, as of real-time threads, are what a user wants to know about.
#[test]
fn where_tasks_have_priorities_they_are_judged_as_they_are() {
    let set = |priority: &str| {
        let task = "[[task]]\nwcet = \"1ms\"\nperiod = \"9ms\"\n";
        model::taskfile::from_toml(&format!("{task}{priority}{task}")).unwrap()
    };
    let names = |priority: &str, m: u32| -> Vec<String> {
        let specs = suggested_for(&set(priority), &Platform::symmetric(m), Guarantee::Hard);
        specs.unwrap().iter().map(Spec::to_string).collect()
    };
    let ranked = "priority = 80\n";
    assert_eq!(names(ranked, 1), ["p-edf", "p-rm", "p-fp:dm", "p-fp"]);
    assert!(names(ranked, 2).ends_with(&["p-fp".to_owned(), "g-fp".to_owned()]));
    assert_eq!(names("", 1), ["p-edf", "p-rm", "p-fp:dm"]);
}

#[test]
fn a_policy_has_one_name_in_verdicts() {
    let names = |text: &str| -> Vec<String> {
        let specs = read_list(text).unwrap();
        specs.iter().map(Spec::to_string).collect()
    };
    assert_eq!(
        names("p-rm,p-fp:rm, c-nps-f,nps-f:delta=1"),
        ["p-rm", "c-nps-f:l3", "nps-f"]
    );
    assert_eq!(names("c-nps-f:delta=2,size=2,"), ["c-nps-f:size=2,delta=2"]);
    assert_eq!(names("edf-fm:fill=full"), ["edf-fm"]);
    assert_eq!(
        read_list(" ,").unwrap_err().to_string(),
        "no policy is named; give at least one, such as `p-edf`"
    );
    assert_eq!(
        read_list("pd2:quantum=2ms").unwrap_err().to_string(),
        "policy `pd2:quantum=2ms`: no test takes `quantum` into account; leave it out to have the policy judged without it"
    );
}

#[test]
fn names_of_policies_read_and_write_back() {
    for name in [
        "p-edf",
        "g-edf",
        "c-edf:l2",
        "c-edf:size=4",
        "p-rm",
        "p-fp",
        "p-fp:dm",
        "g-fp",
        "g-fp:rm",
        "edf-fm",
        "edf-fm:fill=spread",
        "edf-wm",
        "edf-wm:slice=100us",
        "nps-f",
        "nps-f:delta=3",
        "c-nps-f:l3",
        "c-nps-f:size=2,delta=4",
        "pd2",
        "ca-edf",
    ] {
        assert_eq!(read_list(name).unwrap()[0].to_string(), name);
    }
    for (name, cause) in [
        ("g-eddf", "did you mean `g-edf`?"),
        ("c-edf:x", "`x` is no parameter of it"),
        ("p-edf:l2", "`l2` is no parameter of it"),
        ("edf-wm:l2", "`l2` is no parameter of it"),
        ("edf-wm:slice=0us", "`slice` is zero"),
        ("ca-edf:l2", "`l2` is no parameter of it"),
        ("p-fp:edf", "`edf` is no parameter of it"),
        ("nps-f:delta=0", "`delta` is zero"),
        ("edf-fm:fill=half", "`fill` is `full` or `spread`"),
        ("rr", "unknown policy `rr`"),
    ] {
        let e = read_list(name).unwrap_err().to_string();
        assert!(e.contains(cause), "{e}");
    }
}
