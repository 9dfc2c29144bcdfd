//! The search of certificates for a schedule that misses, against the search here, which shares
//! nothing with it.

use crate::search::{Rule, Search, Task};
use crate::sets::{self, Set};
use crate::{LIMIT, by_priority, in_ticks};
use analyze::Guarantee;
use analyze::policies::{self, Costs, SearchFound};
use analyze::uniprocessor::fixed_priority::Priority;
use model::watch::Silent;
use model::{Platform, TaskSet};

/// What certificates find for a set under a policy; `None`: its tests say yes or no.
fn found(set: &Set, policy: &str) -> Option<SearchFound> {
    let tasks = TaskSet::to_judge(set.timings(1_000)).expect("a set to judge");
    let platform = Platform::symmetric(set.processors);
    let specs = [policy.parse().expect("a policy")];
    let (hard, free) = (Guarantee::Hard, Costs::NONE);
    let judged = policies::judge(&tasks, &platform, &specs, hard, &free, &Silent);
    let mut judgment = judged.expect("it is judged");
    policies::search(&tasks, &platform, &mut judgment, &free).expect("its input was judged");
    let verdict = &judgment.policies[0];
    let searched = verdict.searched.as_ref()?;
    assert_eq!(verdict.refuted, searched.found == SearchFound::DoesMiss);
    Some(searched.found)
}

/// With one task more on one processor than its WCETs allow, most sets are refused.
fn refused(seed: u64) -> Set {
    let mut set = sets::at_the_edge(seed);
    let index = seed as usize % set.tasks.len();
    let task: &mut Task = &mut set.tasks[index];
    task.wcet = (task.wcet + 1).min(task.period.min(task.deadline));
    set
}

#[test]
fn what_certificates_find_is_true() {
    let mut search = Search::default();
    let (mut miss, mut none) = (0, 0);
    for seed in 0..3_000 {
        let set = refused(seed);
        if set.processors == 1 {
            continue;
        }
        let sorted = by_priority(&set.tasks, Priority::DeadlineMonotonic);
        let policies = [
            ("g-edf", Rule::Edf, &set.tasks),
            ("g-fp:dm", Rule::FixedPriority, &sorted),
        ];
        for (policy, rule, tasks) in policies {
            let Some(found) = found(&set, policy) else {
                continue;
            };
            let supply = [set.processors as u8];
            let truth = search.explore(&in_ticks(tasks, 2), &supply, rule, true, LIMIT);
            let Some(truth) = truth else { continue };
            match found {
                SearchFound::DoesMiss => {
                    assert!(truth.late, "{policy} is said to miss: {set:?}");
                    miss += 1;
                }
                // Here equal deadlines are decided in every way, there as the policy does.
                SearchFound::CannotMiss if rule == Rule::FixedPriority => {
                    assert!(!truth.late, "{policy} is said not to miss: {set:?}");
                    none += 1;
                }
                SearchFound::CannotMiss | SearchFound::NotDecided => {}
            }
        }
    }
    println!("{miss} miss, {none} cannot under fixed priorities");
    assert!(miss > 100 && none > 20, "{miss} miss, {none} cannot");
}
