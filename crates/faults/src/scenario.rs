//! What is run: command lines over small task sets, every policy of the registry with every
//! feature of a run, and the other commands that change or leave something.
//!
//! A command works in an empty directory. Files that it is told to write are below [`OUT`];
//! anything else that is there afterwards was left behind.

use crate::call::Kind;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// The directory for all that the command is told to write.
pub const OUT: &str = "out";
/// The trace of a run.
pub const TRACE: &str = "out/run.wtrace";
/// Where programs from outside come in.
pub const SOCKET: &str = "door.sock";

/// What a run has besides tasks that spin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// Nothing.
    Plain,
    /// Programs that know nothing of it, with children that have left their session and
    /// environment.
    Programs,
    /// Programs whose children are deaf to SIGTERM, which takes them a second and a half to end.
    Deaf,
    /// Programs that are written for it.
    Written,
    /// A program that comes in from outside.
    Joined,
    /// Best-effort work, a thread and a program.
    Effort,
    /// Tasks released by a FIFO and a socket.
    Triggers,
    /// The kernel's record of switches.
    Witness,
    /// Policies that take turns.
    Turns,
    /// All of these together.
    All,
    /// Page colors.
    Colors,
}

impl Feature {
    /// All, with the names that stand in trials, and how often each is drawn.
    pub const ALL: [(&'static str, Feature, u32); 11] = [
        ("plain", Feature::Plain, 4),
        ("programs", Feature::Programs, 4),
        ("deaf", Feature::Deaf, 1),
        ("written", Feature::Written, 3),
        ("joined", Feature::Joined, 3),
        ("effort", Feature::Effort, 2),
        ("triggers", Feature::Triggers, 3),
        ("witness", Feature::Witness, 2),
        ("turns", Feature::Turns, 2),
        ("all", Feature::All, 3),
        ("colors", Feature::Colors, 2),
    ];

    fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, feature, _)| *feature == self);
        named.map_or("", |(name, ..)| name)
    }

    fn has(self, part: Feature) -> bool {
        match (self, part) {
            (Feature::Deaf, Feature::Programs) => true,
            (Feature::All, part) => part != Feature::Colors,
            (_, part) => self == part,
        }
    }
}

/// What is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// `warmset run` under this policy.
    Run(String, Feature),
    /// `warmset measure cpmd`, the shortest there is.
    Measure,
    /// `warmset study run`.
    Study,
    /// `warmset check --batch`.
    Check,
    /// `warmset simulate` with a trace.
    Simulate,
    /// `warmset generate`.
    Generate,
    /// `warmset color serve`, ended by Ctrl-C.
    ColorServe,
    /// `warmset color exec` with a program that has a child.
    ColorExec,
}

/// Commands besides runs, with the names that stand in trials, and how often each is drawn.
pub const OTHERS: [(&str, Scenario, u32); 7] = [
    ("measure", Scenario::Measure, 4),
    ("study", Scenario::Study, 3),
    ("check", Scenario::Check, 3),
    ("simulate", Scenario::Simulate, 1),
    ("generate", Scenario::Generate, 1),
    ("color-serve", Scenario::ColorServe, 1),
    ("color-exec", Scenario::ColorExec, 1),
];

/// A program that is started beside the command and is not its descendant: a verb of `faults`
/// with its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outsider {
    /// It joins the run through the socket, as the task of this name.
    Joins(&'static str),
    /// It asks for releases through the FIFO of this name.
    AsksFifo(&'static str),
    /// It asks for releases through the socket of this name.
    AsksSocket(&'static str),
}

/// A command line, and what it needs around it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// Words after the name of the command.
    pub words: Vec<String>,
    /// Files in its directory: name and content.
    pub files: Vec<(&'static str, String)>,
    /// Who runs beside it.
    pub outsiders: Vec<Outsider>,
    /// It does not end by itself: so many milliseconds after its start it gets Ctrl-C.
    pub ends_after_ms: Option<u64>,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scenario::Run(policy, feature) => write!(f, "run:{policy}:{}", feature.name()),
            other => {
                let named = OTHERS.iter().find(|(_, scenario, _)| scenario == other);
                f.write_str(named.map_or("", |(name, ..)| name))
            }
        }
    }
}

impl FromStr for Scenario {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, scenario, _)) = OTHERS.iter().find(|(name, ..)| *name == text) {
            return Ok(scenario.clone());
        }
        let parts: Vec<&str> = text.split(':').collect();
        let ["run", policy, feature] = parts[..] else {
            return Err(format!("`{text}` is no scenario"));
        };
        let feature = Feature::ALL.iter().find(|(name, ..)| *name == feature);
        let (_, feature, _) = feature.ok_or_else(|| format!("`{text}` has no such feature"))?;
        if policy::catalog::find(policy).is_none() {
            return Err(format!("`{policy}` is no policy"));
        }
        Ok(Scenario::Run(policy.to_owned(), *feature))
    }
}

impl Scenario {
    /// All runs: every policy with every feature that it permits, and how often each is drawn.
    pub fn runs() -> Vec<(Scenario, u32)> {
        let mut all = Vec::new();
        for info in policy::catalog::all() {
            for (_, feature, often) in Feature::ALL {
                let scenario = Scenario::Run(info.name.to_owned(), feature);
                if scenario.is_permitted() {
                    all.push((scenario, often));
                }
            }
        }
        all
    }

    /// Policies that know releases at multiples of the quantum alone refuse triggers; colors are
    /// looked for under one policy, as that takes seconds.
    fn is_permitted(&self) -> bool {
        let Scenario::Run(policy, feature) = self else {
            return true;
        };
        let quantum_driven = policy::catalog::find(policy).is_some_and(|i| i.quantum_driven);
        (!feature.has(Feature::Triggers) || !quantum_driven)
            && (*feature != Feature::Colors || policy == "g-edf")
    }

    /// Does it need the kernel's record of switches?
    pub fn needs_tracefs(&self) -> bool {
        matches!(self, Scenario::Run(_, feature) if feature.has(Feature::Witness))
    }

    /// Does it look for page colors, which takes some seconds?
    pub fn needs_colors(&self) -> bool {
        matches!(
            self,
            Scenario::Run(_, Feature::Colors) | Scenario::ColorServe | Scenario::ColorExec
        )
    }

    /// Does it take real-time priority?
    pub fn is_urgent(&self) -> bool {
        use Scenario::{Check, Generate, Simulate, Study};
        !matches!(self, Study | Check | Simulate | Generate)
    }

    /// Is there a watchdog?
    pub fn has_watchdog(&self) -> bool {
        matches!(self, Scenario::Run(..))
    }

    /// Are there processes besides the command and its watchdog?
    pub fn has_others(&self) -> bool {
        match self {
            Scenario::Run(_, feature) => {
                let all = [Feature::Programs, Feature::Written, Feature::Effort];
                all.into_iter().any(|part| feature.has(part))
            }
            Scenario::ColorServe | Scenario::ColorExec => true,
            _ => false,
        }
    }

    /// Does a program come in from outside?
    pub fn has_outsider(&self) -> bool {
        matches!(self, Scenario::Run(_, feature) if feature.has(Feature::Joined))
    }

    /// About how long it takes.
    pub fn length(&self) -> Duration {
        Duration::from_millis(match self {
            Scenario::Run(_, Feature::Deaf) => 2000,
            Scenario::Run(_, Feature::Colors) => 3000,
            Scenario::Run(_, Feature::Turns | Feature::All) => 1500,
            Scenario::Run(..) => 700,
            Scenario::Measure => 300,
            Scenario::Study | Scenario::Check | Scenario::Simulate | Scenario::Generate => 100,
            Scenario::ColorServe => 4000,
            Scenario::ColorExec => 2000,
        })
    }

    /// Does it make calls of this kind?
    pub fn makes(&self, kind: &Kind) -> bool {
        match kind.name {
            "trace" => self.has_others() && self.has_watchdog(),
            "connect" => self.has_outsider() || self.needs_colors(),
            "setting" => self.needs_tracefs() || self.needs_colors(),
            "kill" => self.has_others() || self.has_outsider(),
            "priority" | "affinity" => self.is_urgent(),
            _ => true,
        }
    }

    /// May a part of a file be left where the command is killed? A run has a watchdog; the others
    /// remove such parts when they are called again.
    pub fn keeps_parts(&self) -> bool {
        !matches!(self, Scenario::Run(..))
    }

    /// The command line; `helper` is the program that is the tasks written for it.
    pub fn line(&self, helper: &Path) -> Line {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        match self {
            Scenario::Run(policy, feature) => run(policy, *feature, helper),
            Scenario::Measure => Line {
                words: words(
                    "measure cpmd -o out/measured --wss 4KiB --samples 200 --max-preemption 1ms \
                     --load idle",
                ),
                ..Line::default()
            },
            Scenario::Study => Line {
                words: words("study run ospert10-fig5 --sets 20 -o out/study"),
                ..Line::default()
            },
            Scenario::Check => Line {
                words: words("check --batch sets.jsonl --tests GFB,BAK,PEDF-WFD -o out/answers"),
                files: vec![("sets.jsonl", batch())],
                ..Line::default()
            },
            Scenario::Simulate => Line {
                words: words(
                    "simulate tasks.toml --platform symmetric:m=2 --for 60s --trace out/run.wtrace",
                ),
                files: vec![("tasks.toml", TASKS.to_owned())],
                ..Line::default()
            },
            Scenario::Generate => Line {
                words: words(
                    "generate --utilization uniform-medium --periods moderate --cap 12 -m 24 \
                     --sets 4000 --seed 1 -o out/sets.jsonl",
                ),
                ..Line::default()
            },
            Scenario::ColorServe => Line {
                words: words("color serve --size 1MiB --socket out/color.sock"),
                ends_after_ms: Some(4000),
                ..Line::default()
            },
            Scenario::ColorExec => Line {
                words: [
                    &words("color exec --colors 0-3 -- sh -c")[..],
                    &["sleep 0.2 & sleep 0.3".to_owned()],
                ]
                .concat(),
                ..Line::default()
            },
        }
    }
}

/// A set to be simulated.
const TASKS: &str = "[[task]]\nname = \"a\"\nwcet = \"2ms\"\nperiod = \"5ms\"\n\
                     [[task]]\nname = \"b\"\nwcet = \"3ms\"\nperiod = \"7ms\"\n";

/// Sets of one task each, as a batch file has them.
fn batch() -> String {
    let set = |n: u64| {
        format!(
            "{{\"id\":{n},\"m\":2,\"tasks\":[{{\"wcet\":{},\"period\":9000,\"deadline\":9000}}]}}\n",
            n + 1
        )
    };
    (0..4000).map(set).collect()
}

/// Its child has a session of its own and no environment.
const PROGRAM: &str = "env -i setsid sh -c 'while :; do :; done' & while :; do :; done";
/// Its child is deaf to SIGTERM as well.
const DEAF: &str =
    "env -i setsid sh -c 'trap \"\" TERM; while :; do :; done' & while :; do :; done";

/// The policy, with the first word that it cannot do without.
fn spec(name: &str) -> String {
    let words = policy::catalog::find(name).map_or(&[][..], |info| info.words);
    let with = words
        .iter()
        .map(|word| format!("{name}:{}", word.replace('#', "3")));
    let is_complete = |text: &String| {
        let spec = text.parse::<policy::Spec>();
        spec.is_ok_and(|spec| spec.needs().is_ok())
    };
    std::iter::once(name.to_owned())
        .chain(with)
        .find(is_complete)
        .unwrap_or(name.to_owned())
}

fn run(policy: &str, feature: Feature, helper: &Path) -> Line {
    let mut line = Line::default();
    let mut tasks = String::new();
    let mut task = |name: &str, wcet: &str, period: &str, rest: &str| {
        tasks += &format!(
            "[[task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n\
             wss = \"64KiB\"\n{rest}\n"
        );
    };
    let mut command = format!("run tasks.toml --trace {TRACE} --tolerance 10s");
    let triggers = feature.has(Feature::Triggers);
    let (fifo, socket) = match triggers {
        true => (
            "trigger = { fifo = \"a.fifo\" }",
            "trigger = { socket = \"b.sock\" }",
        ),
        false => ("", ""),
    };
    task("a", "2ms", "20ms", fifo);
    task(
        "b",
        "3ms",
        "40ms",
        &format!("workload = {{ kind = \"walk\" }}\n{socket}"),
    );
    if triggers {
        line.outsiders = vec![Outsider::AsksFifo("a.fifo"), Outsider::AsksSocket("b.sock")];
    }
    if feature.has(Feature::Programs) {
        let script = if feature == Feature::Deaf {
            DEAF
        } else {
            PROGRAM
        };
        let exec = format!("workload = {{ exec = [\"sh\", \"-c\", {script:?}] }}");
        task("c", "2ms", "40ms", &exec);
        let on = "workload = { exec = [\"sh\", \"-c\", \"while :; do :; done\"], \
                  beyond_budget = \"best-effort\" }";
        task("d", "1ms", "40ms", on);
    }
    let helper = helper.display();
    if feature.has(Feature::Written) {
        let program = format!("workload = {{ program = [\"{helper}\", \"task\"] }}");
        task("e", "2ms", "40ms", &program);
    }
    if feature.has(Feature::Joined) {
        task("f", "1ms", "40ms", "workload = { kind = \"join\" }");
        command += &format!(" --socket {SOCKET}");
        line.outsiders.push(Outsider::Joins("f"));
    }
    if feature.has(Feature::Programs) || feature.has(Feature::Written) {
        command += " --programs-to out/logs";
    }
    if feature == Feature::Colors {
        command += " --colors auto";
    }
    if feature.has(Feature::Effort) {
        tasks += "[[best_effort]]\nname = \"x\"\nworkload = { kind = \"spin\" }\n\
                  [[best_effort]]\nname = \"y\"\n\
                  workload = { exec = [\"sh\", \"-c\", \"while :; do :; done\"] }\n";
    }
    if feature.has(Feature::Witness) {
        command += " --witness";
    }
    let (policy, plain) = (spec(policy), policy);
    let then = if plain == "g-edf" { "p-edf" } else { "g-edf" };
    command += &match feature.has(Feature::Turns) {
        true => format!(" --policy {policy},{then} --switch-every 500ms --for 1100ms"),
        false => format!(" --policy {policy} --for 300ms"),
    };
    line.words = command.split(' ').map(str::to_owned).collect();
    line.files = vec![("tasks.toml", tasks)];
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_read_back_and_every_policy_has_some() {
        let runs = Scenario::runs();
        let all = runs
            .iter()
            .map(|(s, _)| s)
            .chain(OTHERS.iter().map(|(_, s, _)| s));
        for scenario in all {
            assert_eq!(scenario.to_string().parse::<Scenario>().unwrap(), *scenario);
        }
        for info in policy::catalog::all() {
            let of = format!("run:{}:", info.name);
            let features = runs.iter().filter(|(s, _)| s.to_string().starts_with(&of));
            assert!(features.count() >= 6, "{of}");
        }
    }

    #[test]
    fn what_is_no_scenario_is_refused() {
        for text in [
            "",
            "run",
            "run:g-edf",
            "run:none:plain",
            "run:g-edf:none",
            "walk",
        ] {
            assert!(text.parse::<Scenario>().is_err(), "{text}");
        }
    }
}
