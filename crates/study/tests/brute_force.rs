//! Brute force (002 §6.3) is an upper bound: it keeps whatever a hard test accepts, and more.

use model::watch::Silent;
use model::{Platform, Profile};
use study::{Study, file, presets, run};

fn small(policies: &str) -> Study {
    let text = format!(
        "based_on = \"bastoni11-fig6.2b\"\nname = \"small\"\nplatform = \"symmetric:m=4\"\npolicies = [{policies}]\n\
         caps = {{ from = 2, to = 3.5, step = 0.5 }}\ndelays = {{ from = \"0us\", to = \"2ms\", step = \"2ms\" }}\nsets = 6\n"
    );
    file::from_toml(&text, Platform::find, Profile::find).unwrap()
}

#[test]
fn what_a_hard_test_accepts_survives_sixty_seconds() {
    let study =
        small("\"g-edf\", \"brute-force:g-edf\", \"c-edf:size=2\", \"brute-force:c-edf:size=2\"");
    let results = run(&study, &Silent).unwrap();
    assert_eq!(
        results.policies,
        ["G-EDF", "G-EDF-BF", "C-EDF-SIZE-2", "C-EDF-SIZE-2-BF"]
    );
    assert_eq!(results.axis.texts(), ["0ms", "2ms"]);
    let (mut shown, mut survived) = (0, 0);
    for shard in &results.shards {
        for pair in shard.accepted.chunks(2) {
            for (by_test, by_force) in pair[0].iter().zip(&pair[1]) {
                assert!(
                    by_test <= by_force,
                    "cap {}: {:?}",
                    shard.cap,
                    shard.accepted
                );
                shown += by_test;
                survived += by_force;
            }
        }
    }
    assert!(
        shown > 0 && survived > shown,
        "{shown} shown, {survived} survived"
    );
}

#[test]
fn the_curves_of_the_hard_figures_are_there_on_a_coarse_grid() {
    for figure in ["6.2a", "6.2b", "6.2c", "6.3a", "6.3b", "6.3c"] {
        let study = presets::find(&format!("bastoni11-fig{figure}-bf")).unwrap();
        assert_eq!(
            study.policies,
            [
                "p-edf",
                "brute-force:g-edf",
                "brute-force:c-edf:l2",
                "brute-force:c-edf:l3"
            ]
        );
        assert_eq!(
            (
                study.caps.values().len(),
                study.axis.numbers().len(),
                study.sets
            ),
            (24, 5, 10)
        );
    }
    let e = file::from_toml(
        "based_on = \"bastoni11-fig6.2b\"\nname = \"bad\"\npolicies = [\"brute-force:edf-wm\"]\n",
        Platform::find,
        Profile::find,
    )
    .and_then(|study| run(&study, &Silent))
    .unwrap_err()
    .to_string();
    assert!(
        e.contains("brute force does not know how to split tasks"),
        "{e}"
    );
}
