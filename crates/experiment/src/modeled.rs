//! The experiments of 001 §5 in a model of a platform's caches ([`lab::Lab`]): short tasks
//! ([`short`]), at rates of activation ([`rates`]), a long one ([`matrix`]), and both at once
//! ([`combined`]). Nothing is measured:
//! jobs wait for their misses as the platform's prices say.

pub mod combined;
pub mod lab;
pub mod matrix;
pub mod rates;
pub mod short;

use cache::{Case, Timed};
use model::Duration;
use model::strategy::Price;

/// How much time has passed between two states of a machine.
fn between(before: &Timed, after: &Timed) -> Price {
    let passed = |case: Case| after.elapsed(case).saturating_sub(before.elapsed(case));
    Price {
        optimistic: passed(Case::Best),
        pessimistic: passed(Case::Worst),
    }
}

/// How many times as long one takes as the other, in the best case and in the worst.
fn ratios(most: Price, least: Price) -> [f64; 2] {
    let ratio = |most: Duration, least: Duration| most.nanos() as f64 / least.nanos() as f64;
    [
        ratio(most.optimistic, least.optimistic),
        ratio(most.pessimistic, least.pessimistic),
    ]
}
