//! Observations 6.3.1 to 6.3.6 of 002, about curves along the delay D. What the paper says of figures
//! is asked of the scenarios in them, and in a weaker form of all.

use super::claim::{Scope, Share, Test};
use super::statements::{C_EDF, HARD, P_EDF, SOFT, Statement, claim, on_overheads};
use crate::chapter6::{PERIODS, Section, UTILIZATIONS};
use Share::{All, AlmostAll, Most};
use Test::{Above, AboveBy, NotBelowAt, NowhereBelow, WithinOf};
use analyze::Guarantee;

/// Uniform and bimodal: those of §6.3.
const SIX: &[&str] = UTILIZATIONS.split_at(6).0;

/// Along D (§6.3).
const fn delays(guarantees: &'static [Guarantee], utilizations: &'static [&'static str]) -> Scope {
    Scope {
        section: Section::Delays,
        guarantees,
        utilizations,
        periods: &PERIODS,
        loads: &[],
    }
}

/// Of a scope the scenarios that Figs. 6.2 to 6.5 show: moderate periods.
const fn shown(scope: Scope) -> Scope {
    Scope {
        periods: &["moderate"],
        ..scope
    }
}

/// A noticeable gap between a test and brute force, read off Figs. 6.2 and 6.3.
const NOTICEABLE: f64 = 0.05;

pub(super) fn hard_of_6_3() -> Vec<Statement> {
    let hard = delays(HARD, SIX);
    // "High variance": uniform medium, and all bimodal ones.
    let varied = delays(
        HARD,
        &[
            "uniform-medium",
            "bimodal-light",
            "bimodal-medium",
            "bimodal-heavy",
        ],
    );
    let even = delays(HARD, &["uniform-light", "uniform-heavy"]);
    vec![
        Statement::new(
            "6.3.1",
            "G-EDF is never preferable for hard real time",
            vec![
                claim(
                    "P-EDF is nowhere below G-EDF",
                    hard,
                    All,
                    NowhereBelow(P_EDF, "G-EDF"),
                ),
                claim(
                    "P-EDF is nowhere below G-EDF by brute force, in most scenarios",
                    hard,
                    Most,
                    NowhereBelow(P_EDF, "G-EDF-BF"),
                ),
            ],
        ),
        Statement::new(
            "6.3.2",
            "pessimistic analysis strongly impacts C-EDF for hard real time",
            vec![
                claim(
                    "P-EDF is nowhere below C-EDF-L2",
                    hard,
                    All,
                    NowhereBelow(P_EDF, "C-EDF-L2"),
                ),
                claim(
                    "P-EDF is nowhere below C-EDF-L3",
                    hard,
                    All,
                    NowhereBelow(P_EDF, C_EDF),
                ),
                claim(
                    "P-EDF is nowhere below C-EDF-L2 by brute force, in most scenarios",
                    hard,
                    Most,
                    NowhereBelow(P_EDF, "C-EDF-L2-BF"),
                ),
                claim(
                    "P-EDF is nowhere below C-EDF-L3 by brute force, in most scenarios",
                    hard,
                    Most,
                    NowhereBelow(P_EDF, "C-EDF-L3-BF"),
                ),
            ],
        ),
        Statement::new(
            "6.3.3",
            "among approaches that do not partition, C-EDF-L2 is superior for hard real time",
            vec![
                claim(
                    "moderate periods: C-EDF-L2 is nowhere below C-EDF-L3",
                    shown(hard),
                    All,
                    NowhereBelow("C-EDF-L2", C_EDF),
                ),
                claim(
                    "moderate periods: C-EDF-L2 is nowhere below G-EDF",
                    shown(hard),
                    All,
                    NowhereBelow("C-EDF-L2", "G-EDF"),
                ),
                claim(
                    "C-EDF-L2 is nowhere below C-EDF-L3 in almost all scenarios",
                    hard,
                    AlmostAll,
                    NowhereBelow("C-EDF-L2", C_EDF),
                ),
                claim(
                    "C-EDF-L2 is nowhere below G-EDF in almost all scenarios",
                    hard,
                    AlmostAll,
                    NowhereBelow("C-EDF-L2", "G-EDF"),
                ),
                claim(
                    "moderate periods: by brute force C-EDF-L2 is nowhere below C-EDF-L3",
                    shown(hard),
                    All,
                    NowhereBelow("C-EDF-L2-BF", "C-EDF-L3-BF"),
                ),
                claim(
                    "moderate periods: by brute force C-EDF-L2 is nowhere below G-EDF",
                    shown(hard),
                    All,
                    NowhereBelow("C-EDF-L2-BF", "G-EDF-BF"),
                ),
            ],
        ),
        Statement::new(
            "6.3.4",
            "conservative analysis underestimates global schedulers where utilizations vary",
            vec![
                claim(
                    "uniform medium and bimodal: brute force keeps at least 0.05 more of G-EDF than tests, in the mean",
                    varied,
                    All,
                    AboveBy("G-EDF-BF", "G-EDF", NOTICEABLE),
                ),
                claim(
                    "uniform medium and bimodal: the same of C-EDF-L3",
                    varied,
                    All,
                    AboveBy("C-EDF-L3-BF", C_EDF, NOTICEABLE),
                ),
                claim(
                    "uniform light and heavy: the gap of G-EDF is below 0.05",
                    even,
                    All,
                    WithinOf("G-EDF-BF", "G-EDF", NOTICEABLE),
                ),
                claim(
                    "uniform light and heavy: the gap of C-EDF-L3 is below 0.05",
                    even,
                    All,
                    WithinOf("C-EDF-L3-BF", C_EDF, NOTICEABLE),
                ),
            ],
        ),
    ]
}

/// 200 µs, in nanoseconds.
const MIGRATION: f64 = 200_000.0;

pub(super) fn soft_of_6_3() -> Vec<Statement> {
    let soft = delays(SOFT, SIX);
    let light = shown(delays(SOFT, &["uniform-light"]));
    let heavy = shown(delays(SOFT, &["uniform-heavy", "bimodal-heavy"]));
    let inset = shown(delays(SOFT, &["bimodal-light"]));
    vec![
        Statement::new(
            "6.3.5",
            "bin packing hardly limits clusters of six for soft real time",
            vec![
                on_overheads(claim(
                    "moderate periods: C-EDF-L3 is nowhere below G-EDF",
                    shown(soft),
                    All,
                    NowhereBelow(C_EDF, "G-EDF"),
                )),
                on_overheads(claim(
                    "C-EDF-L3 is nowhere below G-EDF in most scenarios",
                    soft,
                    Most,
                    NowhereBelow(C_EDF, "G-EDF"),
                )),
                claim(
                    "uniform heavy and bimodal heavy, moderate periods: C-EDF-L2 is above P-EDF, in the mean",
                    heavy,
                    All,
                    Above("C-EDF-L2", P_EDF),
                ),
                on_overheads(claim(
                    "uniform light, moderate periods: P-EDF is above C-EDF-L3, in the mean",
                    light,
                    All,
                    Above(P_EDF, C_EDF),
                )),
                on_overheads(claim(
                    "uniform light, moderate periods: C-EDF-L2 is above G-EDF, in the mean",
                    light,
                    All,
                    Above("C-EDF-L2", "G-EDF"),
                )),
            ],
        ),
        Statement::new(
            "6.3.6",
            "C-EDF is superior to the other algorithms for soft real time",
            vec![
                on_overheads(claim(
                    "C-EDF-L3 is above G-EDF in most scenarios, in the mean",
                    soft,
                    Most,
                    Above(C_EDF, "G-EDF"),
                )),
                claim(
                    "C-EDF-L3 is above P-EDF in most scenarios, in the mean",
                    soft,
                    Most,
                    Above(C_EDF, P_EDF),
                ),
                claim(
                    "C-EDF-L3 is not below C-EDF-L2 in most scenarios",
                    soft,
                    Most,
                    NowhereBelow(C_EDF, "C-EDF-L2"),
                ),
                claim(
                    "bimodal light, moderate periods: C-EDF-L3 at 200 us is as high as P-EDF at 0",
                    inset,
                    All,
                    NotBelowAt((C_EDF, MIGRATION), (P_EDF, 0.0)),
                ),
                claim(
                    "bimodal light, moderate periods: C-EDF-L2 at 200 us is as high as P-EDF at 0",
                    inset,
                    All,
                    NotBelowAt(("C-EDF-L2", MIGRATION), (P_EDF, 0.0)),
                ),
            ],
        ),
    ]
}
