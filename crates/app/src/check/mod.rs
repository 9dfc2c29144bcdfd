//! Decides whether a task set meets its deadlines, under which policies, and with what to spare.

pub mod batch;

use crate::{Charged, On, Tasks};
use analyze::Guarantee;
use analyze::policies::{self, Accounting, Certificate, Costs, Judgment};
use model::assignmentfile::AssignmentFile;
use model::watch::Watch;
use model::{Duration, Error, Profile, Result, TaskSet};
use policy::Spec;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How a task set is judged. By default on this machine, without costs, under all policies that
/// the platform's caches and the guarantee suggest.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The platform.
    pub on: On,
    /// What preemptions, migrations and the scheduler cost.
    pub charged: Charged,
    /// The cache delay of one preemption or migration, the same for every task; with a profile:
    /// for tasks without a working set size.
    pub cpmd: Option<Duration>,
    /// How overheads are charged; `None`: as the costs suggest.
    pub accounting: Option<Accounting>,
    /// Whether a deadline may be missed; `None`: hard, unless every task is soft.
    pub guarantee: Option<Guarantee>,
    /// The policies by their names, separated by commas.
    pub policies: Option<String>,
    /// Judge the assignment of this file, under the one policy that is named.
    pub assignment: Option<PathBuf>,
    /// Write what is needed to verify the answer by another program to this file.
    pub certificate: Option<PathBuf>,
}

/// What came of it. JSON: the judgment.
#[derive(Serialize)]
pub struct Checked {
    /// The verdicts, the best policy first.
    #[serde(flatten)]
    pub judgment: Judgment,
    /// What was charged, where that was a profile.
    #[serde(skip)]
    pub profile: Option<Profile>,
}

/// The guarantee that a set asks for: hard, unless every task is soft.
pub fn guarantee_of(set: &TaskSet) -> Guarantee {
    match set.ids().all(|t| set.details(t).is_some_and(|d| d.soft)) {
        true => Guarantee::Soft,
        false => Guarantee::Hard,
    }
}

/// Judges a task set.
///
/// # Errors
/// A platform, profile or policy that does not exist; an assignment that does not fit the set, or
/// several policies for one; the user stopped it.
pub fn check(tasks: &Tasks, options: &Options, watch: &dyn Watch) -> Result<Checked> {
    let set = &tasks.set;
    let platform = options.on.platform()?;
    let profile = options.charged.profile()?;
    let costs = Costs {
        cpmd: options.cpmd,
        profile: profile.as_ref(),
        load: options.charged.load,
        statistic: options.charged.statistic,
        accounting: options.accounting,
    };
    let guarantee = options.guarantee.unwrap_or_else(|| guarantee_of(set));
    let policies = match &options.policies {
        Some(names) => policies::read_list(names).map_err(|e| e.at("--policy"))?,
        None => policies::suggested_for(set, &platform, guarantee)?,
    };
    let mut judgment = match &options.assignment {
        None => policies::judge(set, &platform, &policies, guarantee, &costs, watch)?,
        Some(file) => {
            let policy = only_one(&policies)?;
            let file_of = AssignmentFile::read(file)?;
            let assignment = file_of.assignment(&policy.to_string(), set, Spec::for_assignment)?;
            policies::judge_assigned(
                set,
                &platform,
                policy,
                &assignment,
                guarantee,
                &costs,
                watch,
            )
            .map_err(|e| e.at(file.display()))?
        }
    };
    watch.finish();
    if let Some(path) = &options.certificate {
        policies::search(set, &platform, &mut judgment, &costs)?;
        let certificate = policies::certify(set, &platform, &judgment, &costs)?;
        write_certificate(path, &certificate, options.policies.is_some())?;
    }
    Ok(Checked { judgment, profile })
}

/// Writes a certificate. Policies that were named have to be in it; of those that were not, and of
/// margins, it says which are not.
fn write_certificate(path: &Path, certificate: &Certificate, are_named: bool) -> Result<()> {
    let mut verdicts = certificate.without.iter().filter(|w| w.with.is_given());
    if let Some(first) = verdicts.next()
        && (are_named || certificate.claims.is_empty())
    {
        return Err(Error::new(format!(
            "`{}` gets no certificate: {}",
            first.policy, first.why
        ))
        .at("--certificate")
        .remedy("name policies that have one with `--policy`: docs/certificates.md lists them"));
    }
    model::files::write(path, certificate_text(certificate)?)
}

/// A certificate as it stands in a file.
pub(crate) fn certificate_text(certificate: &Certificate) -> Result<String> {
    let text = serde_json::to_string(certificate)
        .map_err(|e| Error::new(format!("the certificate cannot be written as JSON: {e}")))?;
    Ok(model::document::plain(&text) + "\n")
}

/// The policy that an assignment is for.
fn only_one(policies: &[Spec]) -> Result<&Spec> {
    match policies {
        [policy] => Ok(policy),
        _ => Err(
            Error::new("an assignment is for one policy, and several are named")
                .at("--policy")
                .remedy("name the policy that the assignment was made for"),
        ),
    }
}
