//! `warmset tour`: looks at this machine, measures it, judges two examples and a study with what it found, and writes
//! the report.
//!
//! Every stage leaves its files in the directory; the page is made from them at the end, whatever there is by then.
//! `warmset report DIR` makes it again.

use crate::console::{self, Console, Format};
use crate::options::{On, Printed, Seed, directory};
use crate::pages::judged::{self, Tasks};
use crate::pages::{self, studies};
use crate::{Answer, examples};
use measure::plan::{Options, Plan};
use model::watch::{Silent, Watch};
use model::{ClusterSpec, Duration, Error, Platform, Profile, Result, files, platformfile, taskfile};
use report::findings;
use serde::Serialize;
use std::path::{Path, PathBuf};
use study::{Study, presets};

const EXAMPLES: &str = "\
Examples:
  warmset tour                          takes about two minutes; real-time rights (root) make it more exact
  warmset tour -o my-board --sets 1000  more task sets in the studies
  warmset report my-board               make the page again from the files

Stages: the platform; its cache delays (a quick measurement); two examples judged with them; the weighted schedulability \
of 000, Fig. 5, and the same for this machine; the page. Ctrl-C ends the tour and reports on what is done by then.";

/// Options of `warmset tour`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Directory for everything that the tour finds
    #[arg(short, long, value_name = "DIR", default_value = "warmset-report", value_parser = directory)]
    output: PathBuf,
    /// Do not measure: use this profile, a built-in one or a file
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    on: On,
    /// Task sets for each utilization cap of a study
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    sets: u32,
    #[command(flatten)]
    seed: Seed,
    #[command(flatten)]
    printed: Printed,
}

/// What the tour found, for scripts.
#[derive(Serialize)]
struct Found {
    page: PathBuf,
    stopped: bool,
    findings: Vec<String>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    if args.on.is_given() && args.profile.is_none() {
        return Err(Error::new("this machine cannot be measured for another platform")
            .at("--platform")
            .remedy("add `--profile NAME` with what that platform costs"));
    }
    let console = Console::new()?;
    let tour = Tour {
        platform: args.on.or_this_machine()?,
        profile: args.profile.as_deref().map(Profile::find).transpose()?,
        console: &console,
        args: &args,
    };
    // What stands in the way of the last stage is said before the long ones.
    for (dir, study) in tour.studies()? {
        study.check()?;
        study::fits_in(&dir, &study)?;
    }
    files::make_dir(&args.output)?;
    let stages = tour.stages();
    console.finish();
    // What is done by now is worth a page, also when a stage failed or was stopped.
    let page = tour.page();
    let stopped = console.stopped();
    if !stopped {
        stages?;
    }
    let (path, findings) = page?;
    let found = Found {
        page: path,
        stopped,
        findings,
    };
    match args.printed.format() {
        Format::Json => console::print_json(&found)?,
        Format::Table => console::show(&closing(&found, &args.output))?,
    }
    if stopped {
        return Err(Error::new("the tour was stopped before its end")
            .remedy("the page has what was done; run it again for the rest"));
    }
    Ok(Answer::Yes)
}

/// What stands at the end: where the report is, and what to try next.
fn closing(found: &Found, dir: &Path) -> String {
    let mut text = format!(
        "\nThe report is {}: open it in a browser.\n",
        found.page.display()
    );
    if !found.stopped {
        text += "\nTry next:\n";
        let program = program();
        for (command, about) in next(dir) {
            text += &format!("  {}\n      {about}\n", command.replacen("warmset", &program, 1));
        }
    }
    text
}

/// What to type for this program: the path that it was started by, where there was one.
fn program() -> String {
    std::env::args()
        .next()
        .filter(|name| name.contains('/'))
        .unwrap_or_else(|| "warmset".to_owned())
}

/// What to try after the tour.
pub fn next(dir: &Path) -> Vec<(String, String)> {
    let dir = dir.display();
    [
        (
            format!("warmset check {dir}/tasks/control.toml --platform {dir}/platform.toml --profile {dir}/profile.toml"),
            "judges the example again; write a task set of your own like it, and judge that".to_owned(),
        ),
        (
            format!("warmset measure cpmd -o {dir}-full"),
            "measures longer, with preemptions of up to 50 ms: tighter intervals, larger maxima".to_owned(),
        ),
        (
            "warmset study list".to_owned(),
            "names the studies of the papers; `warmset study run` runs one, or one of your own".to_owned(),
        ),
        (
            format!("warmset report {dir} --figures plots --png"),
            "writes every figure as a file, for a paper".to_owned(),
        ),
    ]
    .to_vec()
}

struct Tour<'a> {
    args: &'a Args,
    platform: Platform,
    /// `None`: it is measured.
    profile: Option<Profile>,
    console: &'a Console,
}

impl Tour<'_> {
    fn say(&self, text: &str) {
        self.console.note(text);
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.args.output.join(name)
    }

    /// Has the user had enough?
    fn go_on(&self) -> Result<()> {
        match self.console.stopped() {
            true => Err(Error::new("stopped")),
            false => Ok(()),
        }
    }

    fn stages(&self) -> Result<()> {
        self.look()?;
        self.go_on()?;
        let profile = self.measure()?;
        self.go_on()?;
        self.judge(&profile)?;
        self.go_on()?;
        self.study(&profile)
    }

    fn look(&self) -> Result<()> {
        self.say("1/5  Looking at the machine");
        let platform = &self.platform;
        files::write(&self.dir(pages::PLATFORM), platformfile::to_toml(platform))?;
        self.say(&format!("     {}: {}", platform.description, platform.summary()));
        Ok(())
    }

    fn measure(&self) -> Result<Profile> {
        let profile = match &self.profile {
            Some(profile) => {
                self.say(&format!(
                    "2/5  Taking the cache delays of {} instead of measuring",
                    self.args.profile.as_deref().unwrap_or_default()
                ));
                files::write(&self.dir(pages::PROFILE), model::profilefile::to_toml(profile))?;
                profile.clone()
            }
            None => {
                self.say("2/5  Measuring cache delays, about a minute: better leave the machine alone");
                let options = Options {
                    out: self.args.output.clone(),
                    quick: true,
                    seed: self.args.seed.seed,
                    // A tour that was stopped goes on where it was.
                    resume: self.dir(measure::journal::NAME).exists(),
                    about: machine::this_machine()?.settings(),
                    command: format!(
                        "warmset measure cpmd --quick --seed {} -o {}",
                        self.args.seed.seed,
                        self.args.output.display()
                    ),
                    ..Options::default()
                };
                let plan = Plan::of(&options, &self.platform)?;
                let outcome = measure::cpmd::measure(&plan, &self.platform, self.console)?;
                self.console.finish();
                outcome.profile
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
        self.say("3/5  Judging two example task sets with these delays");
        let m = self.platform.usable().len() as u32;
        for example in [examples::control(m)?, examples::video(m)?] {
            let tasks = Tasks {
                name: example.name.to_owned(),
                set: example.set,
            };
            let path = self.dir(pages::TASKS).join(format!("{}.toml", tasks.name));
            files::write(&path, taskfile::to_toml(&tasks.set))?;
            let judgment = judged::judge(&tasks, &self.platform, profile, self.console)?;
            self.console.finish();
            if let Some(sentence) = judged::sentences(&judgment).first() {
                self.say(&format!("     {}: {sentence}", tasks.name));
            }
        }
        Ok(())
    }

    fn study(&self, profile: &Profile) -> Result<()> {
        self.say("4/5  Comparing policies over random task sets");
        for (dir, study) in self.studies()? {
            app::workers()?;
            let results = study::run_in(&dir, &study, self.console)?;
            self.console.finish();
            for sentence in studies::sentences(&results, &[profile]).iter().take(2) {
                self.say(&format!("     {} processors: {sentence}", results.processors));
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
                study.sets = self.args.sets;
                study.seed = self.args.seed.seed;
                (self.dir(pages::STUDIES).join(&study.name), study)
            })
            .collect())
    }

    fn page(&self) -> Result<(PathBuf, Vec<String>)> {
        self.say("5/5  Writing the report");
        // Not watched: what is done by now becomes a page, also where the tour was stopped.
        let mut made = pages::make(&pages::read(&self.args.output)?, &Silent)?;
        made.page.next = next(&self.args.output);
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
        let clusters = platform.clusters(ClusterSpec::Level(level)).unwrap_or_default();
        if clusters.len() > 1 && clusters.len() < m && clusters.iter().all(|c| c.len() == clusters[0].len()) {
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
        caps: study::Grid::<study::Cap>::new(cap(whole - 40 * step), cap(whole), cap(step))?,
        delays: study::Grid::<Duration>::new(
            Duration::ZERO,
            Duration::from_millis(5),
            Duration::from_micros(250),
        )?,
        ..paper.clone()
    })
}
