//! What to run: a plan for a task set on a platform, how far it can be stretched, and what would
//! have to change where there is none.

mod dossier;

pub use dossier::{Dossier, verifier};

use crate::check::guarantee_of;
use crate::{Charged, On, Tasks, pages};
use ::advise::{Advice, Asked, Effort, Ended, Pace};
use analyze::Guarantee;
use analyze::policies::{Accounting, Costs};
use model::watch::Watch;
use model::{Duration, Error, Profile, Result, document, files};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How a plan is looked for. By default on this machine, without costs, among all policies, for as
/// long as it takes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The platform.
    pub on: On,
    /// What preemptions, migrations and the scheduler cost.
    pub charged: Charged,
    /// As of [`crate::check::Options`].
    pub cpmd: Option<Duration>,
    /// As of [`crate::check::Options`].
    pub accounting: Option<Accounting>,
    /// Whether a deadline may be missed; `None`: hard, unless every task is soft.
    pub guarantee: Option<Guarantee>,
    /// Only these policies, by their names, separated by commas.
    pub policies: Option<String>,
    /// So many colors are there to be given to tasks whose WCETs depend on them; `None`: their
    /// WCETs are those that stand without.
    pub colors: Option<u16>,
    /// The search ends after this time; `None`: when all was tried.
    pub budget: Option<Duration>,
    /// Write the plan to this file.
    pub plan: Option<PathBuf>,
    /// Write a page to this file.
    pub page: Option<PathBuf>,
    /// Write all evidence for the plan into a directory.
    pub dossier: Option<Dossier>,
    /// The command line, for the page.
    pub command: String,
}

/// What came of it. JSON: the advice.
#[derive(Serialize)]
pub struct Advised {
    /// The answer.
    #[serde(flatten)]
    pub advice: Advice,
    /// What was charged, where that was a profile.
    #[serde(skip)]
    pub profile: Option<Profile>,
}

impl Advised {
    /// Is there a plan?
    pub fn is_found(&self) -> bool {
        self.advice.recommendation.is_some()
    }

    /// Was the search left to end by itself, or by its budget?
    ///
    /// # Errors
    /// The user stopped it: the answer is the best until then.
    pub fn complete(&self) -> Result<()> {
        match self.advice.ended {
            Ended::Stopped => Err(Error::new("the search was stopped before all was tried")
                .remedy("what is shown is the best until then; let it run for the rest")),
            Ended::Complete | Ended::Budget => Ok(()),
        }
    }
}

/// Looks for a plan, and writes it where that is asked for and one was found, its page and its evidence.
///
/// # Errors
/// A platform, profile or policy that does not exist; a budget of zero; a file that cannot be
/// written.
pub fn advise(tasks: &Tasks, options: &Options, watch: &dyn Watch) -> Result<Advised> {
    let end = match options.budget {
        None => None,
        Some(budget) if budget.is_zero() => {
            return Err(
                Error::new("a budget of zero leaves no time to try anything")
                    .at("--budget")
                    .remedy("give a time such as `10s`"),
            );
        }
        Some(budget) => Instant::now().checked_add(std::time::Duration::from_nanos(budget.nanos())),
    };
    if let Some(dossier) = &options.dossier {
        dossier.ready().map_err(|e| e.at("--dossier"))?;
    }
    let platform = options.on.platform()?;
    let profile = options.charged.profile()?;
    let asked = Asked {
        set: &tasks.set,
        platform: &platform,
        guarantee: options
            .guarantee
            .unwrap_or_else(|| guarantee_of(&tasks.set)),
        costs: Costs {
            cpmd: options.cpmd,
            profile: profile.as_ref(),
            load: options.charged.load,
            statistic: options.charged.statistic,
            accounting: options.accounting,
        },
    };
    let search = ::advise::Options {
        policies: options.policies.clone(),
        effort: Effort::default(),
        colors: options.colors,
    };
    let over = || end.is_some_and(|end| Instant::now() >= end);
    let pace = Pace::new(watch, &over);
    let advice = ::advise::advise(&asked, &search, &pace)?;
    watch.finish();
    if let Some(file) = &options.plan {
        write_plan(file, &advice, watch)?;
    }
    if let Some(file) = &options.page {
        files::write(file, pages::advice::page(tasks, &asked, &advice, options)?)?;
    }
    if let Some(dossier) = &options.dossier {
        dossier.write(tasks, &asked, &advice, options, watch)?;
    }
    Ok(Advised { advice, profile })
}

fn write_plan(file: &Path, advice: &Advice, watch: &dyn Watch) -> Result<()> {
    match advice.plan() {
        Some(plan) => files::write(file, document::pretty(&plan)?),
        None => {
            watch.note(&format!(
                "no plan was found: {} is not written",
                file.display()
            ));
            Ok(())
        }
    }
}
