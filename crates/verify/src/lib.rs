//! Verifies certificates of `warmset check`: the whole argument of each claim, from the task set
//! to the promise, in exact arithmetic.
//!
//! Read in this order: [`certificate`] (what stands in a file), [`claim`] (what has to hold of a
//! claim), [`costs`] (WCETs with overheads), then the proofs: [`single`] (one processor), [`many`]
//! (several) and [`slots`] (reservations). `docs/certificates.md` says what each rests on. Set,
//! processors and overheads are taken as given. All else is computed anew.

#![forbid(unsafe_code)]

/// Leaves the function with a sentence, unless the condition holds.
macro_rules! require {
    ($holds:expr, $($why:tt)+) => { if !$holds { return Err(format!($($why)+)); } };
}

mod certificate;
mod claim;
mod costs;
mod many;
mod place;
mod replay;
mod single;
mod slots;

use certificate::{Certificate, Says, With};

/// What came of one claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The policy that the claim is about, and the margin, in words.
    pub about: String,
    /// What the claim says, in words: yes, no, or not shown.
    pub says: &'static str,
    /// Nothing if it is verified; else one sentence: what is wrong.
    pub wrong: Option<String>,
}

/// What came of a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// One finding a claim, in the order of the file.
    pub findings: Vec<Finding>,
    /// What has no certificate in this file, each with the reason that it gives.
    pub without: Vec<(String, String)>,
}

impl Report {
    /// Is every claim verified, and is there one?
    pub fn is_verified(&self) -> bool {
        !self.findings.is_empty() && self.findings.iter().all(|f| f.wrong.is_none())
    }
}

/// Verifies the text of a certificate.
///
/// # Errors
/// One sentence: it is no certificate that this program reads.
pub fn verify(text: &str) -> Result<Report, String> {
    let read: Certificate = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let kind = (read.document.as_str(), read.schema_version);
    require!(kind == ("warmset certificate", 1), "it is no certificate of version 1");
    let set = claim::Set::of(&read)?;
    let finding = |claim: &certificate::Claim| Finding {
        about: about(&claim.policy, &claim.with),
        says: match claim.says {
            Says::Yes => "yes, the guarantee is kept",
            Says::Refuted => "no, the guarantee cannot be kept",
            Says::NotShown => "not shown, the tests that are named refuse",
        },
        wrong: claim::verify(&set, claim).err(),
    };
    let without = read.without.iter().map(|w| (about(&w.policy, &w.with), w.why.clone()));
    Ok(Report { findings: read.claims.iter().map(finding).collect(), without: without.collect() })
}

fn about(policy: &str, with: &With) -> String {
    let wcets = with.thousandths.iter().map(|n| format!(" with WCETs of {}/1000", n.0));
    let delay = with.cpmd_ns.iter().map(|n| format!(" with a cache delay of {} ns a job", n.0));
    policy.to_owned() + &wcets.chain(delay).collect::<String>()
}
