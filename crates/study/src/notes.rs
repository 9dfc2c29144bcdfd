//! What one must know to trust the results of a study, in sentences: what is charged, what is left
//! out, what was scaled.

use crate::axis::Quantity;
use crate::charged::Judging;
use crate::definition::{Cache, Study};
use crate::grid::Factor;
use crate::judge::Candidate;
use crate::prepared::Prepared;
use crate::presets::WITHOUT;
use analyze::Guarantee;
use analyze::policies::Accounting;
use generate::Deadlines;
use model::profile::OverheadKind;
use model::{Overhead, Overheads};

impl Study {
    /// What the study shows, in one line: its own title, or else its scenario and which of the
    /// kernel's overheads are charged.
    pub(crate) fn headline(&self) -> String {
        if !self.title.is_empty() {
            return self.title.clone();
        }
        let utilizations = self.utilizations.to_string();
        // `uniform-light` reads as words; `uniform:0.1-0.4` is a range.
        let utilizations = match utilizations.contains(':') {
            true => utilizations,
            false => utilizations.replace('-', " "),
        };
        let deadlines = match self.deadlines {
            Deadlines::Implicit => String::new(),
            other => format!(", {other} deadlines"),
        };
        let guarantee = match self.guarantee {
            Guarantee::Hard => "Hard",
            Guarantee::Soft => "Soft",
        };
        let kernel = match self.charged.overheads() {
            Some(profile) => format!("kernel overheads of {}", profile.platform),
            None => WITHOUT.to_owned(),
        };
        format!(
            "{guarantee}, {utilizations}, {} periods{deadlines}, {kernel}",
            self.periods
        )
    }

    /// What is charged, and how, in one sentence that is short enough to stand within a chart.
    pub(crate) fn charges(&self) -> String {
        let accounting = self.charged.accounting();
        let how = match (accounting, self.charge) {
            (Accounting::OneDelay, 1) => "once a job".to_owned(),
            (Accounting::OneDelay, 2) => "twice a job".to_owned(),
            (Accounting::OneDelay, times) => format!("{times} times a job"),
            _ => format!("where policies preempt and migrate (accounting {accounting})"),
        };
        let told = self.told();
        let profile = |profile: &str| match (told.statistic, told.load) {
            (Some(statistic), Some(load)) => format!("{profile} ({statistic}, {load})"),
            (Some(statistic), None) => format!("{profile} ({statistic})"),
            (None, _) => profile.to_owned(),
        };
        let from = told.profile.as_deref().unwrap_or_default();
        let times = match (self.axis.quantity(), self.overhead_factor) {
            (Quantity::OverheadFactor, _) => " times f".to_owned(),
            (_, Factor::ONE) => String::new(),
            (_, factor) => format!(" times {factor}"),
        };
        let scales_caches = self.factor_on.has(Overhead::Cpmd);
        let factor = if scales_caches { times.as_str() } else { "" };
        let caches = match (self.axis.quantity(), self.cache) {
            (Quantity::Delay, _) => Some("D".to_owned()),
            (Quantity::WorkingSet, _) => {
                Some(format!("cache delays of {} for ξ{factor}", profile(from)))
            }
            (_, Cache::WorkingSet(wss)) => Some(format!(
                "cache delays of {} for ξ = {wss}{factor}",
                profile(from)
            )),
            (_, Cache::Delay(delay)) => (!delay.is_zero()).then(|| format!("D = {delay}")),
        };
        let mut charged = match caches {
            Some(caches) => vec![format!("{caches} {how}")],
            None => vec!["no cache delays".to_owned()],
        };
        if !self.overhead.is_zero() {
            charged.push(format!("{} a job besides", self.overhead));
        }
        charged.push(match self.charged.overheads() {
            Some(kernel) => {
                let of = match told.statistic {
                    Some(statistic) => format!("{} ({statistic})", kernel.platform),
                    None => kernel.platform.clone(),
                };
                let code = self.factor_on.iter().filter(|o| *o != Overhead::Cpmd);
                let code: Vec<&str> = code.map(Overhead::name).collect();
                match (times.is_empty(), code.len()) {
                    (true, _) | (_, 0) => format!("kernel overheads of {of}"),
                    (_, 6) => format!("kernel overheads of {of}{times}"),
                    _ => format!("kernel overheads of {of}, {}{times}", code.join(", ")),
                }
            }
            None => WITHOUT.to_owned(),
        });
        format!("Charged: {}.", charged.join("; "))
    }

    /// What one must know to trust the results, in sentences.
    pub(crate) fn notes(&self, prepared: &Prepared) -> Vec<String> {
        let mut notes: Vec<String> = self.left_out().into_iter().collect();
        notes.extend(self.overheads(prepared));
        notes.extend(self.scaled());
        if self.charged.judging == Some(Judging::Paper) {
            notes.push(
                "P-EDF and C-EDF are packed by worst fit in decreasing utilization alone, and hard clusters pass any of five \
                 tests: GFB, BAK, BAR, BCL, BCLI."
                    .to_owned(),
            );
        }
        if !prepared.has_delays() {
            return notes;
        }
        let accounting = self.charged.accounting();
        if accounting != Accounting::OneDelay {
            notes.push(format!(
                "Delays are charged by the accounting `{accounting}`: to policies where they preempt and migrate, to tests \
                 once a job."
            ));
        }
        let (count, charged) = match self.charge {
            1 => ("one delay".to_owned(), "is"),
            n => (format!("{n} delays"), "are"),
        };
        for policy in prepared.policies() {
            if let Some(uncovered) = policy.judge().uncovered() {
                notes.push(format!(
                    "{}: {count} a job {charged} charged, and more may occur: {uncovered}.",
                    policy.label()
                ));
            }
        }
        notes
    }

    /// What was measured nowhere, in sentences: other numbers of processors, overheads by a factor,
    /// working sets beyond those of the profile; and what caches cost.
    fn scaled(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.caps_are_shares() {
            notes.push(format!(
                "Scaled: `{}` has {} processors; others are the same sockets and caches, repeated or left out, at the same \
                 costs. Caps are shares of the processors.",
                self.platform.name,
                self.platform.usable().len()
            ));
        }
        if self.platform.is_scaled() {
            notes.push(format!(
                "Scaled: the platform `{}` is one of the same sockets and caches, repeated or left out, at the same costs.",
                self.platform.name
            ));
        }
        let Some(profile) = &self.charged.profile else {
            return notes;
        };
        let name = &profile.platform;
        let factor = match self.axis.quantity() {
            Quantity::OverheadFactor => Some("f".to_owned()),
            _ => Some(self.overhead_factor)
                .filter(|factor| *factor != Factor::ONE)
                .map(|factor| factor.to_string()),
        };
        if let Some(factor) = factor {
            // A delay that the study gives is none of the profile.
            let (what, but) = match (self.factor_on, self.has_working_sets()) {
                (Overheads::ALL, true) => ("every overhead".to_owned(), "cache delays included"),
                (Overheads::ALL, false) => ("every overhead".to_owned(), "but not D"),
                (on, _) => (on.to_string(), "no other overhead"),
            };
            notes.push(format!(
                "Scaled: {what} of the profile `{name}`, {but}, times {factor}."
            ));
        }
        if self.has_working_sets() {
            let sizes = profile.cpmd.iter().flat_map(|c| &c.points).map(|p| p.wss);
            let beyond = match (sizes.clone().min(), sizes.max()) {
                (Some(least), Some(most)) => format!(
                    "; it has sizes from {least} to {most}, below holds the delay of the least, and above the last slope goes on"
                ),
                _ => String::new(),
            };
            notes.push(format!(
                "Each kind of preemption and migration costs what the profile `{name}` ({}) says for the working set size{beyond}; \
                 no working set costs nothing.",
                match self.names_loads() {
                    true => "idle or load, as each policy says".to_owned(),
                    false => self.charged.load.to_string(),
                }
            ));
        }
        notes
    }

    /// What of the profile is charged, in sentences.
    fn overheads(&self, prepared: &Prepared) -> Vec<String> {
        let Some(profile) = &self.charged.profile else {
            return Vec::new();
        };
        let (name, accounting) = (&profile.platform, self.charged.accounting());
        let sized = self.has_working_sets();
        if self.charged.overheads().is_none() {
            let why = match (profile.overheads.is_empty(), sized) {
                (true, false) => {
                    "it has no others than cache delays, and D stands for these".to_owned()
                }
                (true, true) => "it has no others than cache delays".to_owned(),
                (false, _) => format!("the accounting `{accounting}` knows cache delays alone"),
            };
            return vec![format!(
                "No overhead of the profile `{name}` is charged: {why}."
            )];
        }
        let lacking = OverheadKind::ALL
            .into_iter()
            // The paper knows no watch.
            .filter(|kind| kind.is_charged() && *kind != OverheadKind::Watch)
            .filter(|kind| profile.overheads.iter().all(|curve| curve.kind != *kind));
        let lacking: Vec<&str> = lacking.map(OverheadKind::name).collect();
        let mut notes = vec![format!(
            "The overheads of the profile `{name}` are charged by the number of tasks of each set, beyond the numbers that were \
             measured by extrapolation{}{}.",
            match lacking.is_empty() {
                true => String::new(),
                false => format!("; it has none of these kinds: {}", lacking.join(", ")),
            },
            match sized {
                true => "",
                false => "; D stands for its cache delays",
            }
        )];
        let tests = prepared
            .policies()
            .iter()
            .filter(|p| p.judge().charges_every_job());
        let tests: Vec<&str> = tests.map(Candidate::label).collect();
        if !tests.is_empty() {
            let what = match sized {
                true => "the longest cache delay of the platform",
                false => "D",
            };
            notes.push(format!(
                "{}: tests are charged {what} alone.",
                tests.join(", ")
            ));
        }
        notes
    }

    /// What the results leave out that the figure of the paper charges, where the study is named
    /// after one.
    fn left_out(&self) -> Option<String> {
        let paper = self.source.split_once(' ')?.0;
        if !["000", "002"].contains(&paper) {
            return None;
        }
        let instead = match (self.charged.overheads(), self.overhead.is_zero()) {
            (Some(profile), _) => format!("are those of the profile `{}` here", profile.platform),
            (None, true) => "are left out here".to_owned(),
            (None, false) => format!(
                "are {} a job here, the same under every policy",
                self.overhead
            ),
        };
        Some(format!(
            "Not the figure itself: {} charges the kernel's overheads as measured, which {instead}. Curves lie elsewhere, and \
             policies may come in another order.",
            self.source
        ))
    }
}
