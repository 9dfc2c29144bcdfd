//! Trials: what is run and what is done to it, drawn by (seed, number).
//!
//! A trial depends on seed and number alone, so that any of them can be had again: trial `n` is
//! drawn from stream `n` of the generator.

use crate::call;
use crate::fault::{Call, Fault, Limit, Signal, Target};
use crate::scenario::{OTHERS, Scenario};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A command and what is done to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// What is run.
    pub scenario: Scenario,
    /// What is done to it.
    pub fault: Fault,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.scenario, self.fault)
    }
}

impl FromStr for Trial {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (scenario, fault) = text
            .split_once(": ")
            .ok_or_else(|| format!("`{text}` is not `SCENARIO: FAULT`"))?;
        Ok(Trial {
            scenario: scenario.parse()?,
            fault: fault.parse()?,
        })
    }
}

/// Signals whose default is to end, to stop or to be ignored: all but those between the last
/// classic one and the last one of real time, of which two stand for all.
fn signal_numbers() -> Vec<i32> {
    (1..=31).chain([34, 64]).collect()
}

struct Draws(ChaCha8Rng);

impl Draws {
    /// Below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        // The bias is some 2^-50, as no end is large.
        self.0.next_u64() % end
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    /// One of `all`, each as often as its weight says.
    fn weighted<T>(&mut self, all: &[(T, u32)]) -> T
    where
        T: Clone,
    {
        let sum: u64 = all.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = self.below(sum);
        for (what, weight) in all {
            let weight = u64::from(*weight);
            if left < weight {
                return what.clone();
            }
            left -= weight;
        }
        unreachable!("the weights sum up to more than what was drawn")
    }

    /// From 1 to `most`: all orders of magnitude alike.
    fn magnitude(&mut self, most: u64) -> u64 {
        let bits = u64::from(64 - most.leading_zeros());
        let top = 1 << self.below(bits);
        (top + self.below(top)).min(most)
    }

    fn moment(&mut self, scenario: &Scenario) -> Duration {
        let length = scenario.length().as_micros() as u64;
        let micros = match self.below(2) {
            // Within a whole run.
            0 => 1_000 + self.below(length),
            // From the first millisecond on.
            _ => 1_000 + self.magnitude(length),
        };
        Duration::from_micros(micros)
    }

    /// One of the processes that the scenario has.
    fn target(&mut self, scenario: &Scenario) -> Target {
        let has = |what: bool, often: u32| if what { often } else { 0 };
        let other = Target::Other(self.below(6) as u32);
        self.weighted(&[
            (Target::Engine, 6),
            (Target::Group, 1),
            (Target::Watchdog, has(scenario.has_watchdog(), 4)),
            (other, has(scenario.has_others(), 5)),
            (Target::Outsider, has(scenario.has_outsider(), 3)),
        ])
    }

    fn signal(&mut self, number: i32, scenario: &Scenario) -> Signal {
        let to = self.target(scenario);
        let of_its_life = matches!(to, Target::Watchdog | Target::Other(_)) && self.below(2) == 0;
        let after = match of_its_life {
            // Right after its birth as well.
            true => Duration::from_micros(self.magnitude(500_000)),
            false => self.moment(scenario),
        };
        Signal {
            number,
            to,
            after,
            of_its_life,
        }
    }

    fn number(&mut self) -> i32 {
        match self.below(3) {
            0 => libc::SIGKILL,
            _ => *self.of(&signal_numbers()),
        }
    }

    fn two_signals(&mut self, scenario: &Scenario) -> Fault {
        let after = self.moment(scenario);
        // At one moment, or some microseconds apart.
        let apart = Duration::from_micros(self.below(2) * self.magnitude(20_000));
        let both = [after, after + apart].map(|after| Signal {
            number: self.number(),
            to: self.target(scenario),
            after,
            of_its_life: false,
        });
        Fault::Signals(both.into())
    }

    fn stop(&mut self, scenario: &Scenario) -> Fault {
        let stop = self.signal(libc::SIGSTOP, scenario);
        let mut signals = vec![stop];
        if self.below(4) > 0 {
            let apart = Duration::from_micros(self.magnitude(2_000_000));
            signals.push(Signal {
                number: libc::SIGCONT,
                after: stop.after + apart,
                ..stop
            });
        }
        Fault::Signals(signals)
    }

    fn call(&mut self, scenario: &Scenario) -> Fault {
        let kinds: Vec<_> = call::KINDS
            .iter()
            .filter(|kind| scenario.makes(kind))
            .collect();
        let kind = *self.of(&kinds);
        let error = *self.of(kind.errors);
        Fault::Call(Call {
            kind,
            nth: self.magnitude(u64::from(kind.most)) as u32,
            error: call::error(error).expect("every kind names errors that are known"),
            onwards: kind.onwards && self.below(4) == 0,
        })
    }

    fn limit(&mut self) -> Fault {
        let (_, limit) = *self.of(&Limit::ALL);
        Fault::Limit(
            limit,
            match limit {
                Limit::Descriptors => 3 + self.below(40),
                Limit::FileSize => self.magnitude(1 << 16),
                Limit::AddressSpace => (4 << 20) + self.magnitude(512 << 20),
                Limit::Stack => (64 << 10) + self.magnitude(4 << 20),
            },
        )
    }

    fn fault(&mut self, scenario: &Scenario) -> Fault {
        match self.below(100) {
            0..=29 => {
                let number = *self.of(&signal_numbers());
                Fault::Signals(vec![self.signal(number, scenario)])
            }
            30..=49 => self.two_signals(scenario),
            50..=57 => self.stop(scenario),
            58..=91 => self.call(scenario),
            92..=96 => self.limit(),
            97..=98 => Fault::Disk(4096 * self.magnitude(64)),
            _ => Fault::Device,
        }
    }
}

/// What may be drawn on this machine.
#[derive(Debug)]
pub struct Plan {
    seed: u64,
    scenarios: Vec<(Scenario, u32)>,
}

impl Plan {
    /// Trials of all scenarios for which `can` holds.
    pub fn new(seed: u64, can: impl Fn(&Scenario) -> bool) -> Self {
        let runs = Scenario::runs();
        let others = runs.len() as u32 / 4;
        // One run of ten is another command.
        let others = OTHERS.map(|(_, scenario, often)| (scenario, often * others / 3));
        let mut scenarios: Vec<_> = runs.into_iter().chain(others).collect();
        scenarios.retain(|(scenario, _)| can(scenario));
        Plan { seed, scenarios }
    }

    /// The scenarios, each with how often it is drawn.
    pub fn scenarios(&self) -> &[(Scenario, u32)] {
        &self.scenarios
    }

    /// The trial of this number.
    pub fn trial(&self, number: u64) -> Trial {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(number);
        let mut draws = Draws(rng);
        let scenario = draws.weighted(&self.scenarios);
        let fault = draws.fault(&scenario);
        Trial { scenario, fault }
    }
}

/// Every signal to every process that a scenario has: at its birth, and in the midst.
pub fn every_signal(scenario: &Scenario) -> Vec<Trial> {
    let mut targets = vec![Target::Engine, Target::Group];
    if scenario.has_watchdog() {
        targets.push(Target::Watchdog);
    }
    if scenario.has_others() {
        targets.extend((0..4).map(Target::Other));
    }
    if scenario.has_outsider() {
        targets.push(Target::Outsider);
    }
    let early = Duration::from_millis(1);
    let moments = [(early, true), (scenario.length() / 2, false)];
    let mut all = Vec::new();
    for number in signal_numbers() {
        for to in &targets {
            for (after, of_its_life) in moments {
                let signal = Signal {
                    number,
                    to: *to,
                    after,
                    of_its_life,
                };
                all.push(Trial {
                    scenario: scenario.clone(),
                    fault: Fault::Signals(vec![signal]),
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_trial_depends_on_seed_and_number_alone_and_is_read_back() {
        let (one, other) = (Plan::new(7, |_| true), Plan::new(7, |_| true));
        for number in 0..2000 {
            let trial = one.trial(number);
            assert_eq!(trial, other.trial(number));
            assert_eq!(
                trial.to_string().parse::<Trial>().unwrap(),
                trial,
                "{trial}"
            );
        }
        assert_ne!(one.trial(1), Plan::new(8, |_| true).trial(1));
    }

    #[test]
    fn every_signal_goes_to_every_process() {
        let run = every_signal(&"run:g-edf:all".parse().unwrap());
        assert_eq!(run.len(), 33 * 8 * 2);
        assert_eq!(every_signal(&Scenario::Study).len(), 33 * 2 * 2);
        for trial in run {
            assert_eq!(trial.to_string().parse::<Trial>().unwrap(), trial);
        }
    }

    #[test]
    fn everything_is_drawn_sometime() {
        let plan = Plan::new(1, |_| true);
        let trials: Vec<Trial> = (0..10_000).map(|n| plan.trial(n)).collect();
        let scenarios: BTreeSet<String> = trials.iter().map(|t| t.scenario.to_string()).collect();
        for (scenario, often) in plan.scenarios() {
            assert!(
                *often == 0 || scenarios.contains(&scenario.to_string()),
                "{scenario}"
            );
        }
        let signals = |fault: &Fault| match fault {
            Fault::Signals(signals) => signals.clone(),
            _ => Vec::new(),
        };
        let sent: BTreeSet<i32> = trials
            .iter()
            .flat_map(|t| signals(&t.fault))
            .map(|s| s.number)
            .collect();
        assert_eq!(sent, signal_numbers().into_iter().collect());
        let kinds: BTreeSet<String> = trials.iter().map(|t| t.fault.kind()).collect();
        for kind in call::KINDS {
            assert!(kinds.contains(&format!("call: {}", kind.name)), "{kind:?}");
        }
        for kind in ["one signal", "two signals", "stop", "limit", "disk full"] {
            assert!(kinds.contains(kind), "{kind}");
        }
    }
}
