//! The evidence for a plan in one directory: set, platform, costs with where they come from, plan,
//! certificate, what the verifier says of it, and a page in words.
//!
//! The verifier is a program of its own (`warmset-verify`), started as a process: nothing of this
//! program is between it and the certificate in the file. A second one, in Python, lies in the
//! directory.

use super::Options;
use crate::{PROGRAM, Tasks, check};
use ::advise::{Advice, Asked, Plan, Recommended};
use analyze::Guarantee;
use analyze::policies::{self, Certificate, Growth};
use model::watch::{Silent, Watch};
use model::{
    Error, Load, Profile, Provenance, Result, document, files, platformfile, profilefile, shown,
    taskfile,
};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERIFIER_IN_PYTHON: &str = include_str!("../../../../docs/verify.py");

/// Where a dossier goes, and who verifies it.
#[derive(Clone, Debug)]
pub struct Dossier {
    /// Its directory: not there yet, or empty.
    pub dir: PathBuf,
    /// The program that verifies certificates.
    pub verifier: PathBuf,
}

impl Dossier {
    /// Can it be written, and the verifier be started?
    ///
    /// # Errors
    /// It cannot.
    pub(super) fn ready(&self) -> Result<()> {
        if self.dir.exists() {
            let mut there = std::fs::read_dir(&self.dir)
                .map_err(|e| Error::io(&self.dir, "read the directory", &e))?;
            if there.next().is_some() {
                return Err(Error::new("there are files in this directory")
                    .at(self.dir.display())
                    .remedy(
                        "name one that is empty or not there: a dossier is of one plan alone",
                    ));
            }
        }
        let tried = Command::new(&self.verifier).arg("--help").output();
        let tried = tried.map_err(|e| {
            Error::new(format!("the verifier cannot be started: {e}"))
                .at(self.verifier.display())
                .remedy("install `warmset-verify` beside `warmset`, or in PATH")
        })?;
        match tried.status.success() {
            true => Ok(()),
            false => Err(Error::new("this is no verifier of certificates")
                .at(self.verifier.display())
                .remedy("install `warmset-verify` beside `warmset`, or in PATH")),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// A file cannot be written; the verifier does not accept the certificate.
    pub(super) fn write(
        &self,
        tasks: &Tasks,
        asked: &Asked<'_>,
        advice: &Advice,
        options: &Options,
        watch: &dyn Watch,
    ) -> Result<()> {
        let (Some(found), Some(plan)) = (&advice.recommendation, advice.plan()) else {
            watch.note(&format!(
                "no plan was found: {} is not written",
                self.dir.display()
            ));
            return Ok(());
        };
        files::make_dir(&self.dir)?;
        let file = |name: &str, text: &str| files::write(&self.dir.join(name), text);
        file("tasks.toml", &taskfile::to_toml(&tasks.set))?;
        file("platform.toml", &platformfile::to_toml(asked.platform))?;
        if let Some(profile) = asked.costs.profile {
            file("profile.toml", &profilefile::to_toml(profile))?;
        }
        file("plan.json", &document::pretty(&plan)?)?;
        file("advice.json", &document::pretty(advice)?)?;
        let page = crate::pages::advice::page(tasks, asked, advice, options)?;
        file("advice.html", &page)?;
        let proof = self.prove(asked, advice, &plan)?;
        let text = Words {
            asked,
            advice,
            found,
            options,
            proof: &proof,
        };
        file("dossier.md", &text.page())?;
        match proof {
            Proof::Said { status: 0, .. } | Proof::None(_) => Ok(()),
            Proof::Said { text, .. } => Err(Error::new(format!(
                "the verifier does not accept the certificate: {}",
                text.trim()
            ))
            .at(self.dir.join("certificate.json").display())
            .remedy("do not use this plan; report the directory as a defect")),
        }
    }

    /// Writes the certificate, and has it verified.
    fn prove(&self, asked: &Asked<'_>, advice: &Advice, plan: &Plan) -> Result<Proof> {
        let certificate = certificate(asked, advice, plan)?;
        if certificate.claims.is_empty() {
            let why = certificate.without.first().map(|w| w.why.clone());
            return Ok(Proof::None(why.unwrap_or_default()));
        }
        let path = self.dir.join("certificate.json");
        files::write(&path, check::certificate_text(&certificate)?)?;
        files::write(&self.dir.join("verify.py"), VERIFIER_IN_PYTHON)?;
        let ran = Command::new(&self.verifier).arg(&path).output();
        let ran = ran.map_err(|e| {
            Error::new(format!("the verifier cannot be started: {e}")).at(self.verifier.display())
        })?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let text = said(&ran.stdout) + &said(&ran.stderr);
        files::write(&self.dir.join("verified.txt"), &text)?;
        Ok(Proof::Said {
            status: ran.status.code().unwrap_or(2),
            text,
        })
    }
}

/// The certificate of a plan and its margins.
fn certificate(asked: &Asked<'_>, advice: &Advice, plan: &Plan) -> Result<Certificate> {
    let nothing = || Error::new("the plan has no assignment");
    let planned = plan.policies.first().ok_or_else(nothing)?;
    let assignment = planned.assignment.as_ref().ok_or_else(nothing)?;
    let set = advice.planned_set(asked.set)?;
    let judgment = policies::judge_assigned(
        &set,
        asked.platform,
        &planned.policy.parse()?,
        assignment,
        asked.guarantee,
        &asked.costs,
        &Silent,
    )?;
    policies::certify(&set, asked.platform, &judgment, &asked.costs)
}

/// What came of the proof.
enum Proof {
    /// The policy has none, and why.
    None(String),
    /// What the verifier said, and its exit status.
    Said { status: i32, text: String },
}

/// What the page in words is made of.
struct Words<'a> {
    asked: &'a Asked<'a>,
    advice: &'a Advice,
    found: &'a Recommended,
    options: &'a Options,
    proof: &'a Proof,
}

impl Words<'_> {
    fn page(&self) -> String {
        let mut text = format!(
            "# A plan and its evidence\n\nWritten by {PROGRAM}{}.\n",
            match self.options.command.as_str() {
                "" => String::new(),
                command => format!(" for `{}`", shown::sentence(command)),
            }
        );
        self.claim(&mut text);
        self.tasks(&mut text);
        self.costs(&mut text);
        self.margins(&mut text);
        self.verified(&mut text);
        self.not_shown(&mut text);
        self.files(&mut text);
        text
    }

    fn claim(&self, text: &mut String) {
        let advice = self.advice;
        let promise = match advice.guarantee {
            Guarantee::Hard => "no job misses its deadline",
            Guarantee::Soft => "every job is late by a bounded time at most",
        };
        let _ = write!(
            text,
            "\n## What is claimed\n\nThe {} tasks below, scheduled under {} on {} processors of {} \
             as `plan.json` says: {promise}, whenever jobs are released, as long as each executes \
             for its WCET at most, comes no earlier than its period after the one before, and \
             overheads are no larger than those that are charged.\n\nDecided by {}: {}.\n",
            advice.tasks.len(),
            self.found.policy,
            advice.processors,
            shown::sentence(&advice.platform),
            self.found.verdict.decided_by,
            self.found.verdict.reason
        );
    }

    fn tasks(&self, text: &mut String) {
        *text += "\n| task | WCET | period | deadline | processors | priority |\n|---|---|---|---|---|---|\n";
        for (place, task) in self.advice.tasks.iter().enumerate() {
            let of = |cluster: &&policies::Cluster| {
                cluster.tasks.iter().any(|t| t.task.index() == place)
            };
            let places: Vec<String> = self
                .found
                .verdict
                .clusters
                .iter()
                .filter(of)
                .map(|cluster| cluster.processors.to_string())
                .collect();
            let own = self.asked.set.details(model::TaskId(place as u32));
            let priority = match &self.found.priorities {
                Some(all) => all.get(place).copied(),
                None => own.and_then(|d| d.priority),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                cell(&task.name),
                task.wcet,
                task.period,
                task.deadline,
                places.join(" and "),
                priority.map_or_else(|| "–".to_owned(), |p| p.to_string())
            );
        }
    }

    fn costs(&self, text: &mut String) {
        let _ = write!(
            text,
            "\n## What is charged, and where it comes from\n\nCharged are {}, by the rule of {}.\n",
            self.advice.costs,
            self.advice.rule.words()
        );
        match self.asked.costs.profile {
            None => *text += "\nNo costs were measured: `advise` was given no profile.\n",
            Some(profile) => *text += &provenance(profile, &self.advice.platform),
        }
    }

    fn margins(&self, text: &mut String) {
        let stretch = &self.found.stretch;
        *text +=
            "\n## How far it can be stretched\n\nEach alone, while all else stays as it is.\n\n";
        if let Some(growth) = stretch.wcets {
            let _ = writeln!(text, "- All WCETs: {}.", of_growth(growth));
        }
        if let Some(margin) = stretch.largest_cpmd {
            let _ = writeln!(
                text,
                "- The cache delay of a job, the same for every task: up to {}.",
                margin.cpmd
            );
        }
        for (what, by) in [
            ("All cache delays", stretch.delays),
            ("All costs", stretch.costs),
        ] {
            if let Some(by) = by {
                let _ = writeln!(text, "- {what}: up to {} % of those charged.", by.percent);
            }
        }
        for task in &stretch.tasks {
            let _ = writeln!(
                text,
                "- The WCET of {} alone: up to {}.",
                cell(&task.task),
                task.largest
            );
        }
    }

    fn verified(&self, text: &mut String) {
        *text += "\n## What the verifier says\n\n";
        match self.proof {
            Proof::None(why) => {
                let _ = writeln!(
                    text,
                    "**There is no certificate for this plan**: {}. Its verdict is the word of \
                     Warmset alone. `warmset advise --policy` names other policies; \
                     docs/certificates.md lists those that have one.",
                    shown::sentence(why)
                );
            }
            Proof::Said { status, text: said } => {
                let outcome = match status {
                    0 => "every claim is verified",
                    1 => "**some claim is not verified: do not use this plan**",
                    _ => "**it could not read the certificate: do not use this plan**",
                };
                let _ = writeln!(
                    text,
                    "`warmset-verify certificate.json` ended with status {status}: {outcome}.\n"
                );
                for line in said.lines() {
                    let _ = writeln!(text, "    {}", shown::sentence(line));
                }
                *text += "\nIt is a program of its own that shares no code with Warmset, and \
                          computes every inflated WCET and every step of the proof anew. \
                          `verify.py` is a second one, which needs Python alone.\n";
            }
        }
    }

    fn not_shown(&self, text: &mut String) {
        *text += "\n## What is not shown\n\n\
                  - That the WCETs are right. A program that executes for longer than its WCET is \
                  outside of the claim.\n\
                  - That overheads are never larger than those that are charged: they were measured, \
                  and the largest value seen bounds none.\n\
                  - That the system schedules as the plan says: `warmset run --trace` records what it \
                  does, and `warmset trace check` holds it to the rules of the policy.\n";
        for note in &self.found.verdict.notes {
            let _ = writeln!(text, "- {}", shown::sentence(note));
        }
        for what in &self.advice.not_tried {
            let _ = writeln!(text, "- Not tried by the search: {}", shown::sentence(what));
        }
    }

    fn files(&self, text: &mut String) {
        let has_proof = matches!(self.proof, Proof::Said { .. });
        let judged = self.judged();
        *text += "\n## The files, and how to repeat it\n\n| file | what it is |\n|---|---|\n\
                  | `tasks.toml` | the tasks as they were judged |\n\
                  | `platform.toml` | processors and caches |\n";
        if self.asked.costs.profile.is_some() {
            *text += "| `profile.toml` | the costs, with where they come from |\n";
        }
        *text += "| `plan.json` | policy, who runs where, priorities |\n\
                  | `advice.json`, `advice.html` | the whole answer of `advise`, for programs and as a page |\n";
        if has_proof {
            *text += "| `certificate.json` | what is needed to verify verdict and margins without Warmset |\n\
                      | `verified.txt` | what `warmset-verify` said of it |\n\
                      | `verify.py` | a second verifier, in Python |\n";
        }
        let _ = write!(
            text,
            "\n    warmset check tasks.toml --platform platform.toml{judged} --plan plan.json{}\n",
            if has_proof {
                " --certificate again.json"
            } else {
                ""
            }
        );
        if has_proof {
            *text +=
                "    warmset-verify certificate.json\n    python3 verify.py certificate.json\n";
        }
        *text += "    warmset run tasks.toml --plan plan.json\n";
    }

    /// The options with which `check` judges as `advise` did.
    fn judged(&self) -> String {
        let (costs, mut text) = (&self.asked.costs, String::new());
        if costs.profile.is_some() {
            text += " --profile profile.toml";
            if costs.load == Load::Idle {
                text += " --load idle";
            }
        }
        if let Some(statistic) = costs.statistic {
            text += &format!(" --statistic {statistic}");
        }
        if let Some(cpmd) = costs.cpmd {
            text += &format!(" --cpmd {cpmd}");
        }
        if let Some(accounting) = costs.accounting {
            text += &format!(" --accounting {accounting}");
        }
        text + match self.advice.guarantee {
            Guarantee::Hard => " --hard",
            Guarantee::Soft => " --soft",
        }
    }
}

/// `up to 120.2 % of those given`.
fn of_growth(growth: Growth) -> String {
    let least = if growth.exact { "" } else { "at least " };
    format!(
        "up to {least}{}.{} % of those given",
        growth.thousandths / 10,
        growth.thousandths % 10
    )
}

/// A text that stays in its cell of a table.
fn cell(text: &str) -> String {
    shown::sentence(text).replace('|', "\\|")
}

fn provenance(profile: &Profile, platform: &str) -> String {
    let Provenance {
        source,
        command,
        time,
        machine,
        kernel,
        settings,
        warnings,
        ..
    } = &profile.provenance;
    let mut text = String::from("\n| of the profile | |\n|---|---|\n");
    let facts = [
        ("platform", profile.platform.as_str()),
        ("source", source),
        ("command", command),
        ("time", time),
        ("machine", machine),
        ("kernel", kernel),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "| {name} | {} |", cell(value));
    }
    for (name, value) in settings {
        let _ = writeln!(text, "| {} | {} |", cell(name), cell(value));
    }
    if profile.platform != platform {
        let _ = write!(
            text,
            "\nThe costs were measured on {}, not on {}.\n",
            cell(&profile.platform),
            cell(platform)
        );
    }
    for warning in warnings {
        let _ = write!(
            text,
            "\nWarning of the profile: {}\n",
            shown::sentence(warning)
        );
    }
    text
}

/// The verifier: beside this program, else as PATH has it.
pub fn verifier() -> PathBuf {
    const NAME: &str = "warmset-verify";
    let beside = std::env::current_exe().ok();
    let beside = beside
        .as_deref()
        .and_then(Path::parent)
        .map(|dir| dir.join(NAME));
    beside
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from(NAME))
}
