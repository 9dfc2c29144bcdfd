//! Verifies certificates of `warmset check`: the whole argument of each claim, from the task set
//! to the promise, in exact arithmetic.
//!
//! Read in this order: [`certificate`] (what stands in a file), [`claim`] (what has to hold of a
//! claim), [`costs`] (WCETs with overheads), then the proofs: [`single`] (one processor) and
//! [`many`] (several). `docs/certificates.md` says what each rests on.
//!
//! Set, processors and overheads are taken as given. All else is computed anew.

#![forbid(unsafe_code)]

mod certificate;
mod claim;
mod costs;
mod many;
mod place;
mod single;

use certificate::{Certificate, Says};

/// What came of one claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The policy that the claim is about.
    pub policy: String,
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
    /// The policies that have no certificate in this file, each with the reason that it gives.
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
    if read.document != "warmset certificate" || read.schema_version != 1 {
        return Err("it is no certificate of version 1".to_owned());
    }
    let set = claim::Set::of(&read)?;
    let finding = |claim: &certificate::Claim| Finding {
        policy: claim.policy.clone(),
        says: match claim.says {
            Says::Yes => "yes, the guarantee is kept",
            Says::Refuted => "no, the guarantee cannot be kept",
            Says::NotShown => "not shown, the tests that are named refuse",
        },
        wrong: claim::verify(&set, claim).err(),
    };
    let without = read.without.iter().map(|w| (w.policy.clone(), w.why.clone()));
    Ok(Report { findings: read.claims.iter().map(finding).collect(), without: without.collect() })
}
