//! The eight principles of 002 §6.4.3, as far as curves decide them.
//!
//! The paper derives them from its observations and from experience. A claim here is what of a
//! principle shows in schedulability; where nothing of it does, the statement says why.

use super::claim::{Share, Test};
use super::statements::{
    ANY_LOAD, BOTH, C_EDF, C_NPS_F, EDF_FM, EDF_WM, HARD, LIGHT, NPS_F, NPS_F_4, P_EDF, SOFT,
    Statement, claim, on_shared_queues, sizes,
};
use crate::chapter6::UTILIZATIONS;
use Share::{All, AlmostAll, Most};
use Test::{Above, FallsLess, NowhereBelow};
use model::Load;

/// From no working set, in bytes …
const NOTHING: f64 = 0.0;
/// … to a small one, and to the largest that statements look at.
const SMALL: f64 = (64 * 1024) as f64;
const LARGE: f64 = (1024 * 1024) as f64;

/// All eight, in the order of the paper.
pub(super) fn principles() -> Vec<Statement> {
    let mut all = about_migrations();
    all.extend(about_rules());
    all.extend(about_assignments());
    all
}

fn about_migrations() -> Vec<Statement> {
    let every = sizes(BOTH, &UTILIZATIONS, ANY_LOAD);
    let soft = sizes(SOFT, &UTILIZATIONS, ANY_LOAD);
    vec![
        Statement::new(
            "6.4.3 (1)",
            "avoid migrations that are not needed",
            vec![
                claim(
                    "light utilizations: EDF-WM, which comes to partitioning there, is nowhere below NPS-F in most scenarios",
                    sizes(BOTH, LIGHT, ANY_LOAD),
                    Most,
                    NowhereBelow(EDF_WM, NPS_F),
                ),
                claim(
                    "light utilizations, soft: EDF-WM is nowhere below EDF-fm in most scenarios",
                    sizes(SOFT, LIGHT, ANY_LOAD),
                    Most,
                    NowhereBelow(EDF_WM, EDF_FM),
                ),
            ],
        ),
        Statement::new(
            "6.4.3 (2)",
            "minimize the number of preemptions",
            vec![
                claim(
                    "under load NPS-F with δ = 1, which preempts less, is above δ = 4 in most scenarios, in the mean",
                    sizes(BOTH, &UTILIZATIONS, &[Load::Load]),
                    Most,
                    Above(NPS_F, NPS_F_4),
                ),
                claim(
                    "C-NPS-F, which avoids migrations through memory, is nowhere above NPS-F in almost all scenarios",
                    every,
                    AlmostAll,
                    NowhereBelow(NPS_F, C_NPS_F),
                ),
            ],
        ),
        Statement::new(
            "6.4.3 (3)",
            "minimize the number of tasks that may migrate",
            vec![
                claim(
                    "EDF-WM, which splits few tasks, is above NPS-F in most scenarios, in the mean",
                    every,
                    Most,
                    Above(EDF_WM, NPS_F),
                ),
                claim(
                    "NPS-F falls more than EDF-WM from no working set to 1 MiB in most scenarios",
                    every,
                    Most,
                    FallsLess(EDF_WM, NPS_F, (NOTHING, LARGE)),
                ),
            ],
        ),
        Statement::new(
            "6.4.3 (4)",
            "avoid pull-migrations in favor of push-migrations",
            vec![
                on_shared_queues(claim(
                    "soft: EDF-WM, which plans migrations, is above C-EDF-L3 in most scenarios, in the mean",
                    soft,
                    Most,
                    Above(EDF_WM, C_EDF),
                )),
                on_shared_queues(claim(
                    "soft: EDF-fm, which plans migrations, is above C-EDF-L3 in most scenarios, in the mean",
                    soft,
                    Most,
                    Above(EDF_FM, C_EDF),
                )),
            ],
        ),
    ]
}

fn about_rules() -> Vec<Statement> {
    let soft = sizes(SOFT, &UTILIZATIONS, ANY_LOAD);
    let stacks = Statement {
        undecidable: Some(
            "schedulability does not show it: what it takes to hand a stack over between processors is a matter of the \
             engine (`warmset run --policy nps-f`, `warmset measure overheads`)",
        ),
        ..Statement::new(
            "6.4.3 (5)",
            "migration rules should know of process stacks",
            Vec::new(),
        )
    };
    vec![
        stacks,
        Statement::new(
            "6.4.3 (6)",
            "use simple migration logic",
            vec![claim(
                "soft: EDF-fm, which migrates between jobs, falls less than NPS-F from no working set to 1 MiB in most scenarios",
                soft,
                Most,
                FallsLess(EDF_FM, NPS_F, (NOTHING, LARGE)),
            )],
        ),
    ]
}

fn about_assignments() -> Vec<Statement> {
    let every = sizes(BOTH, &UTILIZATIONS, ANY_LOAD);
    vec![
        Statement::new(
            "6.4.3 (7)",
            "know of overheads when designing heuristics of assignment",
            vec![
                claim(
                    "NPS-F is nowhere below C-NPS-F in almost all scenarios",
                    every,
                    AlmostAll,
                    NowhereBelow(NPS_F, C_NPS_F),
                ),
                claim(
                    "P-EDF, whose packing is charged as it goes, is above NPS-F in most scenarios, in the mean",
                    every,
                    Most,
                    Above(P_EDF, NPS_F),
                ),
            ],
        ),
        Statement::new(
            "6.4.3 (8)",
            "avoid assignments in two steps",
            vec![
                claim(
                    "NPS-F, whose servers are filled before it is known which of them migrate, falls more than EDF-WM from no \
                     working set to 64 KiB in most scenarios",
                    every,
                    Most,
                    FallsLess(EDF_WM, NPS_F, (NOTHING, SMALL)),
                ),
                claim(
                    "hard: EDF-WM, which assigns in one, is nowhere below P-EDF",
                    sizes(HARD, &UTILIZATIONS, ANY_LOAD),
                    All,
                    NowhereBelow(EDF_WM, P_EDF),
                ),
            ],
        ),
    ]
}
