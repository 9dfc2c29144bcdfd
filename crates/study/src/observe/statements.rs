//! Observations 6.3.1 to 6.3.6 and 6.4.1 to 6.4.6 of 002, as claims about curves.
//!
//! The paper speaks of figures in words such as *most* and *almost never*. How each is read stands
//! in [`Share`] and [`Test`]; where the paper makes exceptions, they are left out of the scope. What it
//! says of figures is asked of the scenarios in them, and in a weaker form of all.

use super::claim::{Claim, Scope, Share, Test};
use super::delays::{hard_of_6_3, soft_of_6_3};
use super::principles::principles;
use crate::chapter6::{PERIODS, Section, UTILIZATIONS};
use analyze::Guarantee;
use model::{Load, Overhead};

/// A statement of the paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Its number, such as `6.3.1`.
    pub id: String,
    /// What it says.
    pub text: &'static str,
    /// What must hold for it.
    pub claims: Vec<Claim>,
    /// Why no result of a study decides it.
    pub undecidable: Option<&'static str>,
}

impl Statement {
    pub(super) fn new(id: &str, text: &'static str, claims: Vec<Claim>) -> Self {
        Statement {
            id: id.to_owned(),
            text,
            claims,
            undecidable: None,
        }
    }
}

pub(super) const HARD: &[Guarantee] = &[Guarantee::Hard];
pub(super) const SOFT: &[Guarantee] = &[Guarantee::Soft];
pub(super) const BOTH: &[Guarantee] = &[Guarantee::Hard, Guarantee::Soft];
pub(super) const ANY_LOAD: &[Load] = &[Load::Idle, Load::Load];

/// Light ones: most tasks have a low utilization.
pub(super) const LIGHT: &[&str] = &["uniform-light", "bimodal-light", "exponential-light"];

/// Along ξ (§6.4).
pub(super) const fn sizes(
    guarantees: &'static [Guarantee],
    utilizations: &'static [&'static str],
    loads: &'static [Load],
) -> Scope {
    Scope {
        section: Section::WorkingSets,
        guarantees,
        utilizations,
        periods: &PERIODS,
        loads,
    }
}

pub(super) const fn claim(text: &'static str, scope: Scope, share: Share, test: Test) -> Claim {
    Claim {
        text,
        scope,
        share,
        test,
        rests_on: &[],
    }
}

/// What takes longer where more processors share a queue (002 §5.1.2, Obs. 6.4.4): servicing a
/// release and choosing a job.
const OF_SHARED_QUEUES: &[Overhead] = &[Overhead::Release, Overhead::Scheduling];

/// All that the kernel costs: all but cache delays.
const OF_THE_KERNEL: &[Overhead] = Overhead::ALL.split_at(6).0;

/// A claim that rests on what the kernel costs.
pub(super) const fn on_overheads(claim: Claim) -> Claim {
    Claim {
        rests_on: OF_THE_KERNEL,
        ..claim
    }
}

/// A claim that rests on contention for queues that processors share.
pub(super) const fn on_shared_queues(claim: Claim) -> Claim {
    Claim {
        rests_on: OF_SHARED_QUEUES,
        ..claim
    }
}

/// The names of policies in figures.
pub(super) const EDF_WM: &str = "EDF-WM";
pub(super) const NPS_F: &str = "NPS-F-DELTA-1";
pub(super) const NPS_F_4: &str = "NPS-F-DELTA-4";
pub(super) const C_NPS_F: &str = "C-NPS-F-L3-DELTA-1";
pub(super) const C_EDF: &str = "C-EDF-L3";
pub(super) const EDF_FM: &str = "EDF-FM";
pub(super) const P_EDF: &str = "P-EDF";

use Share::{All, AlmostAll, Most};
use Test::{Above, NowhereBelow};

/// Every statement, in the order of the paper: observations, then principles.
pub fn statements() -> Vec<Statement> {
    let mut all = hard_of_6_3();
    all.extend(soft_of_6_3());
    all.extend(choices_of_6_4());
    all.extend(comparisons_of_6_4());
    all.extend(principles());
    all
}

/// All but the light uniform one, where the paper found δ = 4 competitive in an idle system.
const WITHOUT_UNIFORM_LIGHT: &[&str] = UTILIZATIONS.split_at(1).1;

fn choices_of_6_4() -> Vec<Statement> {
    let every = sizes(BOTH, &UTILIZATIONS, ANY_LOAD);
    vec![
        Statement::new(
            "6.4.1",
            "δ = 1 leads to higher schedulability than δ = 4 under NPS-F",
            vec![
                claim(
                    "δ = 1 is nowhere below δ = 4 in almost all scenarios, light uniform ones in an idle system aside",
                    sizes(BOTH, WITHOUT_UNIFORM_LIGHT, ANY_LOAD),
                    AlmostAll,
                    NowhereBelow(NPS_F, NPS_F_4),
                ),
                claim(
                    "under load δ = 1 is above δ = 4 in most scenarios, in the mean",
                    sizes(BOTH, &UTILIZATIONS, &[Load::Load]),
                    Most,
                    Above(NPS_F, NPS_F_4),
                ),
            ],
        ),
        Statement::new(
            "6.4.2",
            "C-NPS-F is almost never preferable to NPS-F",
            vec![claim(
                "NPS-F is nowhere below C-NPS-F in almost all scenarios, δ = 1",
                every,
                AlmostAll,
                NowhereBelow(NPS_F, C_NPS_F),
            )],
        ),
    ]
}

fn comparisons_of_6_4() -> Vec<Statement> {
    let hard = sizes(HARD, &UTILIZATIONS, ANY_LOAD);
    let soft = sizes(SOFT, &UTILIZATIONS, ANY_LOAD);
    let every = sizes(BOTH, &UTILIZATIONS, ANY_LOAD);
    let idle = sizes(SOFT, &UTILIZATIONS, &[Load::Idle]);
    vec![
        Statement::new(
            "6.4.3",
            "EDF-WM performs best for hard real time",
            vec![
                claim(
                    "EDF-WM is nowhere below P-EDF",
                    hard,
                    All,
                    NowhereBelow(EDF_WM, P_EDF),
                ),
                claim(
                    "EDF-WM is above NPS-F in most scenarios, in the mean",
                    hard,
                    Most,
                    Above(EDF_WM, NPS_F),
                ),
                claim(
                    "heavy bimodal utilizations: EDF-WM is above P-EDF, in the mean",
                    sizes(HARD, &["bimodal-heavy"], ANY_LOAD),
                    All,
                    Above(EDF_WM, P_EDF),
                ),
            ],
        ),
        Statement::new(
            "6.4.4",
            "EDF-WM outperforms C-EDF for soft real time",
            vec![
                claim(
                    "idle: EDF-WM is above C-EDF-L3 in most scenarios, in the mean",
                    idle,
                    Most,
                    Above(EDF_WM, C_EDF),
                ),
                on_shared_queues(claim(
                    "under load: EDF-WM is above C-EDF-L3 in most scenarios, in the mean",
                    sizes(SOFT, &UTILIZATIONS, &[Load::Load]),
                    Most,
                    Above(EDF_WM, C_EDF),
                )),
            ],
        ),
        Statement::new(
            "6.4.5",
            "EDF-fm usually performs better than C-EDF for soft real time",
            vec![
                claim(
                    "idle: EDF-fm is above C-EDF-L3 in most scenarios, in the mean",
                    idle,
                    Most,
                    Above(EDF_FM, C_EDF),
                ),
                claim(
                    "heavy uniform utilizations: EDF-fm is below EDF-WM, in the mean",
                    sizes(SOFT, &["uniform-heavy"], ANY_LOAD),
                    All,
                    Above(EDF_WM, EDF_FM),
                ),
            ],
        ),
        Statement::new(
            "6.4.6",
            "NPS-F is inferior to the other approaches in most scenarios",
            vec![
                claim(
                    "EDF-WM is above NPS-F in most scenarios, in the mean",
                    every,
                    Most,
                    Above(EDF_WM, NPS_F),
                ),
                claim(
                    "P-EDF is above NPS-F in most scenarios, in the mean",
                    every,
                    Most,
                    Above(P_EDF, NPS_F),
                ),
                claim(
                    "soft: C-EDF-L3 is above NPS-F in most scenarios, in the mean",
                    soft,
                    Most,
                    Above(C_EDF, NPS_F),
                ),
                claim(
                    "soft: EDF-fm is above NPS-F in most scenarios, in the mean",
                    soft,
                    Most,
                    Above(EDF_FM, NPS_F),
                ),
            ],
        ),
    ]
}
