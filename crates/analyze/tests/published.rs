//! Examples of the papers that the tests come from.

use analyze::{Decision, Guarantee, registry};
use model::Timing;
use testing::sets::task_ms as task;

fn answer(name: &str, tasks: &[Timing], m: u32) -> Decision {
    (registry::find(name).unwrap().run)(tasks, m)
}

/// Bertogna, Cirinei, Lipari, ECRTS 2005, §3.3: GFB accepts a set that BAK does not.
#[test]
fn gfb_accepts_a_set_that_bak_does_not() {
    let set = [task(49, 100, 100), task(49, 100, 100), task(2, 100, 50)];
    assert_eq!(answer("GFB", &set, 2), Ok(true));
    assert_eq!(answer("BAK", &set, 2), Ok(false));
}

/// Dhall, Liu 1978: m light tasks of short periods and one heavy task miss under rate-monotonic
/// priorities and under EDF.
#[test]
fn no_test_accepts_the_set_of_dhall_and_liu() {
    let mut set = vec![task(2, 1_000, 1_000); 4];
    set.push(task(1_000, 1_001, 1_001));
    for test in registry::ALL {
        let is_global = test.policy == "g-edf" || test.policy.starts_with("g-fp");
        if is_global && test.guarantee == Guarantee::Hard {
            assert_ne!(answer(test.name, &set, 4), Ok(true), "{}", test.name);
        }
    }
}
