//! What theory says of W, whatever sets are drawn: where it is 1, and where it never rises.

mod support;

use model::watch::Silent;
use model::{Duration, Platform, Ratio, profilefile};
use study::{Accounting, Charged, Results, Study, run};
use support::small;

/// W of a policy never rises along the axis, and falls at last: else nothing would be tried.
fn falls(results: &Results, policy: usize) {
    let name = &results.policies[policy];
    let w: Vec<Ratio> = (0..results.axis.len())
        .map(|at| results.weighted_at(policy, at))
        .collect();
    let rises = w.windows(2).position(|pair| pair[1] > pair[0]);
    assert_eq!(rises, None, "{name}: {w:?}");
    assert!(w[w.len() - 1] < w[0], "{name}: {w:?}");
}

/// PD2 is optimal in whole quanta (here 3 of 4 ms, or 6 of 8), and G-EDF bounds tardiness up to all
/// processors: no set is lost, of which partitioning loses those that need a fifth processor.
#[test]
fn optimal_policies_keep_every_set_without_overheads() {
    let study = small(
        "platform = \"symmetric:m=4\"\nguarantee = \"soft\"\npolicies = [\"pd2\", \"g-edf\", \"p-edf\"]\n\
         utilizations = \"uniform:0.75-0.7501\"\nperiods = \"choice:4ms,8ms\"\ncaps = [1, 2, 3, 3.5, 4]\n\
         delays = [\"0us\", \"1us\", \"2ms\"]\nsets = 20\n",
    );
    let results = run(&study, &Silent).unwrap();
    let at = |policy: &str| results.weighted_at(results.policy(policy).unwrap(), 0);
    assert_eq!((at("PD2"), at("G-EDF")), (Ratio::ONE, Ratio::ONE));
    assert!(at("P-EDF") < Ratio::ONE);
    for policy in ["PD2", "G-EDF"] {
        falls(&results, results.policy(policy).unwrap());
    }
}

/// What holds with longer executions holds with shorter ones by utilization, by the exact test of
/// bounded tardiness, and by GFB, BCL, BCLI and BAR. (BAK and packing have anomalies.)
#[test]
fn w_never_rises_with_delays_where_shorter_executions_keep_what_longer_ones_do() {
    for (guarantee, policies) in [
        ("soft", "\"g-edf\", \"pd2\", \"DA\""),
        ("hard", "\"GFB\", \"BCL\", \"BCLI\", \"BAR\""),
    ] {
        for utilizations in ["uniform-light", "bimodal-medium"] {
            let study = small(&format!(
                "platform = \"symmetric:m=4\"\nguarantee = \"{guarantee}\"\npolicies = [{policies}]\n\
                 utilizations = \"{utilizations}\"\nperiods = \"short\"\ncaps = [1, 2, 3, 4]\nsets = 10\n\
                 delays = {{ from = \"0us\", to = \"2ms\", step = \"50us\" }}\n"
            ));
            let results = run(&study, &Silent).unwrap();
            (0..results.policies.len()).for_each(|policy| falls(&results, policy));
        }
    }
}

/// The same along a factor on all overheads, for G-EDF, which packs nothing.
#[test]
fn w_never_rises_with_overheads() {
    let point = |tasks: u32| {
        let time = Duration::from_micros(4 + u64::from(tasks));
        format!("{{ tasks = {tasks}, samples = 9, average = \"{time}\", maximum = \"{time}\" }}")
    };
    let curve = |kind: &str| {
        format!(
            "[[overheads]]\nkind = \"{kind}\"\npoints = [{}, {}]\n",
            point(1),
            point(100)
        )
    };
    let kinds = ["release", "scheduling", "context-switch", "tick"].map(curve);
    let text = format!("version = 1\nplatform = \"made-up\"\n{}", kinds.concat());
    let study = Study {
        platform: Platform::symmetric(4),
        ..small(
            "platform = \"symmetric:m=4\"\nguarantee = \"soft\"\npolicies = [\"g-edf\"]\ncaps = [1, 2, 3, 4]\nsets = 10\n\
             overhead_factors = { from = 0, to = 4, step = 0.25 }\ndelay = \"20us\"\n",
        )
    }
    .charging(Charged {
        profile: Some(profilefile::from_toml(&text).unwrap()),
        accounting: Some(Accounting::Paper),
        ..Charged::default()
    });
    falls(&run(&study, &Silent).unwrap(), 0);
}
