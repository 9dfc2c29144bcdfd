//! What a long tour does besides: overheads measured on this machine, and sets that are run for
//! real. It goes on where it was stopped: what is complete in its directory is kept.

use super::{Options, Tour};
use crate::{Choice, On, measure as measuring, pages, validate};
use ::experiment::overheads::{campaign, plan};
use measure::keep;
use model::{Error, Profile, Result};

/// Refuses a long tour that could not run tasks.
///
/// # Errors
/// Another platform, or a profile; no right to real-time priorities.
pub fn possible(options: &Options) -> Result<()> {
    let given = match (&options.profile, &options.on) {
        (Some(_), _) => "--profile",
        (None, On::ThisMachine) => {
            return match execute::preflight::lacks_rights(&machine::this_machine()?) {
                true => Err(Error::new(
                    "a long tour runs tasks in real time, which this process has no right to",
                )
                .at("--long")
                .remedy("run it as root, or leave `--long` out")),
                false => Ok(()),
            };
        }
        (None, _) => "--platform",
    };
    Err(
        Error::new("a long tour measures this machine and runs tasks on it")
            .at(given)
            .remedy(format!("leave `{given}` out, or `--long`")),
    )
}

impl Tour<'_> {
    /// Are cache delays in the directory, all of them?
    pub(super) fn has_delays(&self) -> bool {
        let is_there = |name| self.dir(name).exists();
        is_there(pages::PROFILE)
            && is_there(pages::SAMPLES)
            && !is_there(measure::cpmd::blocks::NAME)
    }

    /// The profile in the directory.
    ///
    /// # Errors
    /// It is another machine's, or none.
    pub(super) fn own_profile(&self) -> Result<Profile> {
        let path = self.dir(pages::PROFILE);
        let profile = keep::there(&path, &self.platform)?;
        profile.ok_or_else(|| {
            Error::new("the profile is gone")
                .at(path.display())
                .remedy("begin the tour again")
        })
    }

    /// Says that a file of an earlier tour is kept.
    pub(super) fn kept(&self, name: &str) {
        let path = self.dir(name);
        self.say(&format!(
            "     kept from {}; remove that to do it anew",
            path.display()
        ));
    }

    /// Measures what scheduling costs, into the same profile.
    pub(super) fn measure_overheads(&self) -> Result<Profile> {
        let is_there = |name| self.dir(name).exists();
        let is_open = is_there(campaign::JOURNAL);
        let results = measuring::overheads::RESULTS;
        if is_there(results) && !is_open {
            self.begin("Overheads were measured before");
            self.kept(results);
            return self.own_profile();
        }
        self.begin("Measuring what scheduling costs, about three minutes");
        let options = plan::Options {
            out: self.options.output.clone(),
            quick: true,
            seed: self.options.seed,
            resume: is_open,
            command: format!(
                "warmset measure overheads --quick --seed {} -o {}",
                self.options.seed,
                self.options.output.display()
            ),
            ..plan::Options::default()
        };
        let measured = measuring::overheads::overheads(options, self.watch)?;
        for statement in &measured.outcome.statements {
            self.say(&format!(
                "     {}: {}",
                statement.holds.words(),
                statement.says
            ));
        }
        self.own_profile()
    }

    /// Runs sets for real, and compares what is seen with what was said of them.
    pub(super) fn validate(&self, profile: &Profile) -> Result<()> {
        let out = self.dir(pages::VALIDATION);
        let is_open = out.join(validate::JOURNAL).exists();
        let results = out.join(validate::RESULTS);
        let validated = match validate::read(&out)? {
            Some(validated) if !is_open => {
                self.begin("Sets were run for real before");
                self.say(&format!(
                    "     kept from {}; remove that to do it anew",
                    results.display()
                ));
                validated
            }
            _ => {
                self.begin("Running 20 sets for real, about a minute");
                let options = validate::Options {
                    command: format!(
                        "warmset validate --seed {} --profile {} -o {}",
                        self.options.seed,
                        self.dir(pages::PROFILE).display(),
                        out.display()
                    ),
                    profile: Some(Choice::Value(profile.clone())),
                    seed: self.options.seed,
                    resume: is_open,
                    out,
                    ..validate::Options::default()
                };
                validate::validate(&options, self.watch)?
            }
        };
        self.say(&format!("     {}", validated.headline()));
        Ok(())
    }
}
