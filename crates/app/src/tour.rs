//! Looks at this machine, measures it, judges two examples and a study with what it found, and
//! writes the report. A long tour also measures what scheduling costs, and runs sets for real
//! ([`long`]).
//!
//! Every stage leaves its files in the directory; the page is made from them at the end, whatever
//! there is by then. [`crate::report`] makes it again.

mod long;

use crate::pages::judged::{self, Tasks};
use crate::pages::{self, studies};
use crate::{Choice, On, examples, workers};
use measure::plan::{Options as Measured, Plan};
use model::watch::{Silent, Watch};
use model::{
    ClusterSpec, Duration, Error, Platform, Profile, Result, files, platformfile, taskfile,
};
use report::findings;
use serde::Serialize;
use std::cell::Cell;
use std::path::PathBuf;
use study::{Study, presets};

/// What a tour looks at. By default it measures this machine, into `warmset-report`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory for everything that the tour finds.
    pub output: PathBuf,
    /// Do not measure: use this profile, a built-in one or a file.
    pub profile: Option<Choice<Profile>>,
    /// The platform. Another one than this machine needs a profile.
    pub on: On,
    /// Also measure what scheduling costs here, and hold verdicts against real runs. Default: no.
    pub long: bool,
    /// Task sets for each utilization cap of a study. Default: 200.
    pub sets: u32,
    /// Seed of all random choices. Default: 1.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            output: PathBuf::from("warmset-report"),
            profile: None,
            on: On::ThisMachine,
            long: false,
            sets: 200,
            seed: 1,
        }
    }
}

/// What a tour found. JSON: as `warmset tour --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The page.
    pub page: PathBuf,
    /// The user stopped it: the page has what was done by then.
    pub stopped: bool,
    /// What was found, in sentences.
    pub findings: Vec<String>,
}

impl Found {
    /// Is the tour complete?
    ///
    /// # Errors
    /// The user stopped it.
    pub fn complete(&self) -> Result<()> {
        match self.stopped {
            true => Err(Error::new("the tour was stopped before its end")
                .remedy("the page has what was done; run it again for the rest")),
            false => Ok(()),
        }
    }
}

/// Refuses a tour that would measure this machine for another platform, and a long one that cannot
/// run tasks.
///
/// # Errors
/// Another platform, and no profile; a long tour of anything but this machine, or without the right
/// to real-time priorities.
pub fn possible(options: &Options) -> Result<()> {
    if options.long {
        long::possible(options)?;
    }
    match options.on != On::ThisMachine && options.profile.is_none() {
        true => Err(
            Error::new("this machine cannot be measured for another platform")
                .at("--platform")
                .remedy("add `--profile NAME` with what that platform costs"),
        ),
        false => Ok(()),
    }
}

/// Makes the tour; what it does is told to `watch`, stage by stage.
///
/// # Errors
/// As [`possible`]; a platform or profile that is not there; studies that cannot be run in the
/// directory; a stage that failed: the page then has what was done before.
pub fn tour(options: &Options, watch: &dyn Watch) -> Result<Found> {
    possible(options)?;
    let tour = Tour {
        platform: options.on.platform()?,
        profile: options.profile.as_ref().map(Choice::profile).transpose()?,
        watch,
        options,
        begun: Cell::new(0),
    };
    // What stands in the way of the last stage is said before the long ones.
    for (dir, study) in tour.studies()? {
        study.check()?;
        study::fits_in(&dir, &study)?;
    }
    files::make_dir(&options.output)?;
    let stages = tour.stages();
    watch.finish();
    // What is done by now is worth a page, also when a stage failed or was stopped.
    let page = tour.page();
    let stopped = watch.stopped();
    if !stopped {
        stages?;
    }
    let (path, findings) = page?;
    Ok(Found {
        page: path,
        stopped,
        findings,
    })
}

struct Tour<'a> {
    options: &'a Options,
    platform: Platform,
    /// `None`: it is measured.
    profile: Option<Profile>,
    watch: &'a dyn Watch,
    /// How many stages have begun.
    begun: Cell<u32>,
}

impl Tour<'_> {
    fn say(&self, text: &str) {
        self.watch.note(text);
    }

    /// Says which stage begins.
    fn begin(&self, text: &str) {
        self.begun.set(self.begun.get() + 1);
        let all = match self.options.long {
            true => 7,
            false => 5,
        };
        self.say(&format!("{}/{all}  {text}", self.begun.get()));
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.options.output.join(name)
    }

    /// Has the user had enough?
    fn go_on(&self) -> Result<()> {
        match self.watch.stopped() {
            true => Err(Error::new("stopped")),
            false => Ok(()),
        }
    }

    fn stages(&self) -> Result<()> {
        self.look()?;
        self.go_on()?;
        let mut profile = self.measure()?;
        self.go_on()?;
        if self.options.long {
            profile = self.measure_overheads()?;
            self.go_on()?;
        }
        self.judge(&profile)?;
        self.go_on()?;
        self.study(&profile)?;
        if self.options.long {
            self.go_on()?;
            self.validate(&profile)?;
        }
        Ok(())
    }

    fn look(&self) -> Result<()> {
        self.begin("Looking at the machine");
        let platform = &self.platform;
        files::write(&self.dir(pages::PLATFORM), platformfile::to_toml(platform))?;
        self.say(&format!(
            "     {}: {}",
            platform.description,
            platform.summary()
        ));
        Ok(())
    }

    fn measure(&self) -> Result<Profile> {
        let profile = match &self.profile {
            Some(profile) => {
                self.begin(&format!(
                    "Taking the cache delays of {} instead of measuring",
                    match &self.options.profile {
                        Some(Choice::Named(name)) => name,
                        _ => &profile.platform,
                    }
                ));
                files::write(
                    &self.dir(pages::PROFILE),
                    model::profilefile::to_toml(profile),
                )?;
                profile.clone()
            }
            None if self.options.long && self.has_delays() => {
                self.begin("Cache delays were measured before");
                self.kept(pages::PROFILE);
                self.own_profile()?
            }
            None => {
                self.begin(
                    "Measuring cache delays, about a minute: better leave the machine alone",
                );
                let options = Measured {
                    out: self.options.output.clone(),
                    quick: true,
                    seed: self.options.seed,
                    // A tour that was stopped goes on where it was.
                    resume: self.dir(measure::cpmd::blocks::NAME).exists(),
                    about: machine::this_machine()?.settings(),
                    command: format!(
                        "warmset measure cpmd --quick --seed {} -o {}",
                        self.options.seed,
                        self.options.output.display()
                    ),
                    ..Measured::default()
                };
                let plan = Plan::of(&options, &self.platform)?;
                crate::measure::delays(plan, false, &self.platform, self.watch)?.profile
            }
        };
        for sentence in findings::cpmd(&profile, &pages::place(&profile.platform))
            .iter()
            .take(2)
        {
            self.say(&format!("     {sentence}"));
        }
        Ok(profile)
    }

    fn judge(&self, profile: &Profile) -> Result<()> {
        self.begin("Judging two example task sets with these delays");
        let m = self.platform.usable().len() as u32;
        for example in [examples::control(m)?, examples::video(m)?] {
            let tasks = Tasks {
                name: example.name.to_owned(),
                set: example.set,
            };
            let path = self.dir(pages::TASKS).join(format!("{}.toml", tasks.name));
            files::write(&path, taskfile::to_toml(&tasks.set))?;
            let judgment = judged::judge(&tasks, &self.platform, profile, self.watch)?;
            self.watch.finish();
            if let Some(sentence) = judged::sentences(&judgment).first() {
                self.say(&format!("     {}: {sentence}", tasks.name));
            }
        }
        Ok(())
    }

    fn study(&self, profile: &Profile) -> Result<()> {
        self.begin("Comparing policies over random task sets");
        for (dir, study) in self.studies()? {
            workers()?;
            let results = study::run_in(&dir, &study, self.watch)?;
            self.watch.finish();
            for sentence in studies::sentences(&results, &[profile]).iter().take(2) {
                self.say(&format!(
                    "     {} processors: {sentence}",
                    results.processors
                ));
            }
            self.go_on()?;
        }
        Ok(())
    }

    /// The studies of the tour, each with its directory.
    fn studies(&self) -> Result<Vec<(PathBuf, Study)>> {
        let mut all = vec![presets::find("ospert10-fig5")?];
        if self.platform.usable().len() > 1 {
            all.push(here(&all[0], &self.platform)?);
        }
        Ok(all
            .into_iter()
            .map(|mut study| {
                study.sets = self.options.sets;
                study.seed = self.options.seed;
                (self.dir(pages::STUDIES).join(&study.name), study)
            })
            .collect())
    }

    fn page(&self) -> Result<(PathBuf, Vec<String>)> {
        // Where a stage failed it is the last one all the same.
        self.begun.set(if self.options.long { 6 } else { 4 });
        self.begin("Writing the report");
        // Not watched: what is done by now becomes a page, also where the tour was stopped.
        let mut made = pages::make(&pages::read(&self.options.output)?, &Silent)?;
        made.page.next = pages::next(&self.options.output);
        let path = self.dir("index.html");
        files::write(&path, report::page::page(&made.page))?;
        Ok((path, made.findings))
    }
}

/// The study of the paper on this machine's processors, with the clusters that its caches suggest.
fn here(paper: &Study, platform: &Platform) -> Result<Study> {
    let m = platform.usable().len();
    let mut policies = vec!["p-edf".to_owned(), "g-edf".to_owned()];
    for level in platform.data_levels() {
        // Only levels whose clusters lie between one processor and all say something new.
        let clusters = platform
            .clusters(ClusterSpec::Level(level))
            .unwrap_or_default();
        if clusters.len() > 1
            && clusters.len() < m
            && clusters.iter().all(|c| c.len() == clusters[0].len())
        {
            policies.push(format!("c-edf:l{level}"));
        }
    }
    let cap = study::Cap::from_thousandths;
    // From about one processor on, as in the paper, to all of them.
    let (whole, step) = (m as u32 * 1000, (m as u32 - 1) * 1000 / 40);
    Ok(Study {
        name: format!("this-machine-{m}"),
        title: format!("The same task sets on the {m} processors of this machine"),
        source: "as 000 §5, Fig. 5".to_owned(),
        platform: platform.clone(),
        policies,
        caps: study::Grid::new(cap(whole - 40 * step), cap(whole), cap(step))?,
        axis: study::Axis::Delays(study::Grid::new(
            Duration::ZERO,
            Duration::from_millis(5),
            Duration::from_micros(250),
        )?),
        ..paper.clone()
    })
}
