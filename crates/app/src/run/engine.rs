//! Which engine carries out a run: the one in user space, or the one in the kernel (sched_ext).
//!
//! The one in the kernel takes what can be said as data for its program ([`kernel::plan`]), on a
//! kernel with sched_ext, in a build that has it. All else it refuses with the reason, which `auto`
//! tells before it takes the other one.

use super::known::Known;
use super::{Options, reserve};
use crate::scheduling::Scheduling;
use ::trace::Stage;
use execute::preflight::{Finding, Level};
use kernel::plan::Given;
use machine::{Machine, Tree};
use model::{Error, Platform, Result, TaskSet, Workload};
use policy::Spec;
use serde::Serialize;

/// Who carries out a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// Threads of real-time priority, from user space.
    #[default]
    User,
    /// The kernel's scheduler, by a program that is loaded into it.
    Kernel,
    /// The kernel where it can, else user space.
    Auto,
}

/// Who carries it out, as it was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// Threads of real-time priority, from user space.
    User,
    /// The kernel's scheduler.
    Kernel,
}

/// What the finding is called that says which engine it is, and why.
pub const ENGINE: &str = "engine";

/// What the engine in the kernel carries out.
pub(super) struct InKernel {
    pub stages: Vec<Stage>,
    pub findings: Vec<Finding>,
    pub carried: kernel::Carried,
}

/// What was chosen.
pub(super) struct Chosen {
    /// `None`: from user space.
    pub in_kernel: Option<InKernel>,
    /// What is said of the choice, where there was one.
    pub finding: Option<Finding>,
}

/// Chooses the engine. `place` names the set in errors.
///
/// # Errors
/// The engine in the kernel is asked for and cannot; no assignment.
pub(super) fn choose(
    options: &Options,
    set: &TaskSet,
    machine: &Machine,
    place: &str,
) -> Result<Chosen> {
    choose_with(options, set, machine, place, &Able::here())
}

/// What the machine at hand can, to be asked where it matters.
struct Able<'a> {
    /// Build, kernel and user can run the engine in the kernel.
    can: &'a dyn Fn(&Machine) -> Result<()>,
    /// The kernel takes its program.
    trial: &'a dyn Fn() -> Result<()>,
}

impl Able<'_> {
    fn here() -> Self {
        Able {
            can: &can,
            trial: &kernel::support::trial,
        }
    }
}

fn choose_with(
    options: &Options,
    set: &TaskSet,
    machine: &Machine,
    place: &str,
    able: &Able<'_>,
) -> Result<Chosen> {
    if options.engine == Engine::User {
        return Ok(Chosen {
            in_kernel: None,
            finding: None,
        });
    }
    let auto = options.engine == Engine::Auto;
    // Where the kernel is asked for by name, the run itself says what it refuses.
    let tried = |in_kernel| match auto {
        true => (able.trial)().map(|()| in_kernel),
        false => Ok(in_kernel),
    };
    let permitted = permit(options, set).and_then(|()| (able.can)(machine));
    let planned = permitted.and_then(|()| in_kernel(options, set, machine, place));
    match planned.and_then(tried) {
        Ok(in_kernel) => Ok(Chosen {
            in_kernel: Some(in_kernel),
            finding: Some(Finding::fine(
                ENGINE,
                "the kernel's scheduler carries it out (sched_ext)",
            )),
        }),
        Err(e) if auto => Ok(Chosen {
            in_kernel: None,
            finding: Some(Finding {
                level: Level::Fine,
                name: ENGINE,
                seen: one_line(&format!("it is carried out from user space: {}", e.cause())),
                remedy: e.advice().to_owned(),
            }),
        }),
        Err(e) => Err(e),
    }
}

/// What a kernel says may have several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// # Errors
/// The run is of a kind that this engine does not have.
fn permit(options: &Options, set: &TaskSet) -> Result<()> {
    let refuse = |cause: String| Err(Error::new(cause).at(PLACE).remedy(FROM_USER_SPACE));
    if let Some(what) = lacks(options, set) {
        return refuse(format!("the engine in the kernel does not know {what}"));
    }
    Ok(())
}

/// # Errors
/// This build, kernel or user cannot run the engine in the kernel.
pub(crate) fn can(machine: &Machine) -> Result<()> {
    kernel::support::check(&Tree::new("/".as_ref()))?;
    match machine.capability("BPF") {
        Some(c) if c.state == machine::State::No => Err(Error::new(format!("BPF: {}", c.seen))
            .at(PLACE)
            .remedy(c.remedy.clone())),
        _ => Ok(()),
    }
}

const PLACE: &str = "--engine kernel";
const FROM_USER_SPACE: &str = "run it from user space: leave `--engine` out";

/// What of a run only the engine in user space has; `None`: nothing.
fn lacks(options: &Options, set: &TaskSet) -> Option<&'static str> {
    let details = || set.ids().filter_map(|id| set.details(id));
    let is_any = |is: fn(&Workload) -> bool| details().any(|d| d.workload.iter().any(is));
    let asks = |w: &Workload| matches!(w, Workload::Program { .. } | Workload::Join);
    let how = &options.scheduling;
    // What is wrong with a policy is said when its plan is made.
    let decides_at_quanta =
        |policy: &Spec| (policy.quantum(how.quantum)).is_ok_and(|quantum| quantum.is_some());
    match () {
        () if !options.scheduling.then().is_empty() => Some("several policies in turn"),
        () if is_any(asks) && how.all().any(decides_at_quanta) => Some(
            "programs that ask for their jobs (`program`, `join`) under policies that decide at \
             quanta",
        ),
        () if options.witness => Some("`--witness`"),
        () if options.early.is_some() => Some("`--early`: its releases are the kernel's timers"),
        () => None,
    }
}

/// # Errors
/// No assignment; the policy or the set is one that cannot be said as data.
fn in_kernel(options: &Options, set: &TaskSet, machine: &Machine, place: &str) -> Result<InKernel> {
    let how: &Scheduling = &options.scheduling;
    let platform: &Platform = &machine.platform;
    // What a boundary costs there nobody has measured: nothing is reserved for it.
    let reserved = reserve::reserve(how, set, platform, place, &Known::Nothing)?;
    let stage = &reserved.stages[0];
    let policy = how.policy();
    let plan = policy.plan(&how.setup(set, platform, stage.assignment.as_ref()))?;
    let given = Given {
        set,
        platform,
        enforcement: how.enforcement,
        horizon: options.horizon,
    };
    let carried = kernel::plan::of(&policy.to_string(), &plan, &given)?;
    Ok(InKernel {
        stages: reserved.stages,
        findings: reserved.findings,
        carried,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::sets::set_ms;

    fn chosen(engine: Engine, change: impl FnOnce(&mut Options)) -> Result<Chosen> {
        let mut options = Options {
            engine,
            ..Options::default()
        };
        change(&mut options);
        let machine = machine::this_machine().unwrap();
        choose(&options, &set_ms(&[(1, 10)]), &machine, "t")
    }

    #[test]
    fn what_it_lacks_is_said_and_auto_takes_the_other_one() {
        let witness = |o: &mut Options| o.witness = true;
        let error = chosen(Engine::Kernel, witness).err().unwrap();
        assert!(error.cause().contains("`--witness`"), "{error}");
        assert!(!error.advice().is_empty());
        let auto = chosen(Engine::Auto, witness).unwrap();
        assert!(auto.in_kernel.is_none());
        assert!(auto.finding.unwrap().seen.contains("`--witness`"));
        let user = chosen(Engine::User, |_| {}).unwrap();
        assert!(user.in_kernel.is_none() && user.finding.is_none());
    }

    /// Chooses for a task with this workload on a machine that can.
    fn with_workload(engine: Engine, policy: &str, workload: &str) -> Result<Chosen> {
        let task = "[[task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n";
        let set = model::taskfile::from_toml(&format!("{task}workload = {workload}\n")).unwrap();
        let options = Options {
            engine,
            scheduling: Scheduling::of(policy).unwrap(),
            ..Options::default()
        };
        let able = Able {
            can: &|_| Ok(()),
            trial: &|| Ok(()),
        };
        choose_with(
            &options,
            &set,
            &machine::this_machine().unwrap(),
            "t",
            &able,
        )
    }

    #[test]
    fn programs_are_for_it_but_at_quanta_those_that_ask_for_their_jobs() {
        let exec = "{ exec = [\"/bin/true\"] }";
        let beyond = "{ exec = [\"/bin/true\"], beyond_budget = \"best-effort\" }";
        let (asks, joins) = ("{ program = [\"/bin/true\"] }", "{ kind = \"join\" }");
        for workload in [exec, beyond, asks, joins] {
            let taken = with_workload(Engine::Kernel, "g-edf", workload);
            assert!(taken.is_ok(), "{workload}");
            let taken = with_workload(Engine::Auto, "g-edf", workload).unwrap();
            assert!(taken.in_kernel.is_some(), "{workload}");
        }
        assert!(with_workload(Engine::Kernel, "pd2", exec).is_ok());
        for workload in [asks, joins] {
            for policy in ["pd2", "g-edf:quantum=1ms"] {
                let refused = with_workload(Engine::Kernel, policy, workload);
                let e = refused.err().unwrap();
                assert!(e.cause().contains("ask for their jobs"), "{e}");
                let told = with_workload(Engine::Auto, policy, workload).unwrap();
                assert!(told.in_kernel.is_none());
                assert!(told.finding.unwrap().seen.contains("ask for their jobs"));
            }
        }
    }

    /// Chooses on a machine that can, where the kernel says this of the program.
    fn tried(engine: Engine, policy: &str, trial: &dyn Fn() -> Result<()>) -> Result<Chosen> {
        let options = Options {
            engine,
            scheduling: Scheduling::of(policy).unwrap(),
            ..Options::default()
        };
        let machine = machine::this_machine().unwrap();
        let able = Able {
            can: &|_| Ok(()),
            trial,
        };
        choose_with(&options, &set_ms(&[(1, 10)]), &machine, "t", &able)
    }

    #[test]
    fn auto_loads_the_program_on_trial() {
        let refused = || Err(Error::new("cannot load it:\n R2 unbounded").remedy("see"));
        let told = tried(Engine::Auto, "g-edf", &refused).unwrap();
        assert!(told.in_kernel.is_none());
        let finding = told.finding.unwrap();
        let seen = "it is carried out from user space: cannot load it: R2 unbounded";
        assert_eq!((&*finding.seen, &*finding.remedy), (seen, "see"));
        let taken = tried(Engine::Auto, "g-edf", &|| Ok(())).unwrap();
        assert!(taken.in_kernel.is_some());
        // A run by name loads it once, and not on trial first; what cannot be said as data is not
        // loaded at all.
        let never = || -> Result<()> { panic!("it is loaded on trial") };
        assert!(tried(Engine::Kernel, "g-edf", &never).is_ok());
        let told = tried(Engine::Auto, "g-edf:quantum=100us", &never).unwrap();
        let seen = told.finding.unwrap().seen;
        assert!(seen.contains("cannot run `g-edf:quantum=100us`"), "{seen}");
    }

    #[test]
    fn policies_go_into_the_kernel_or_are_refused() {
        let machine = machine::this_machine().unwrap();
        let set = set_ms(&[(6, 10), (5, 10), (4, 10)]);
        let of = |policy: &str| {
            let options = Options {
                scheduling: Scheduling::of(policy).unwrap(),
                ..Options::default()
            };
            in_kernel(&options, &set, &machine, "t")
        };
        let error = of("g-edf:quantum=100us").err().unwrap();
        let cause = error.cause();
        assert!(
            cause.contains("cannot run `g-edf:quantum=100us`"),
            "{error}"
        );
        for policy in ["g-edf", "g-fifo", "p-rm", "edf-fm", "edf-wm", "pd2"] {
            if let Err(e) = of(policy) {
                panic!("{policy}: {e}");
            }
        }
        // The servers of NPS-F move in each of its slots.
        let carried = of("nps-f").unwrap().carried;
        assert!(carried.plan.domains.iter().any(|d| !d.changes.is_empty()));
    }

    #[test]
    fn a_build_or_kernel_that_cannot_is_an_error_with_a_remedy() {
        let can = kernel::support::check(&Tree::new("/".as_ref())).is_ok();
        match chosen(Engine::Kernel, |_| {}) {
            Ok(chosen) => assert!(can && chosen.in_kernel.is_some()),
            Err(e) => assert!(!e.advice().is_empty(), "{e}"),
        }
    }

    #[test]
    fn several_policies_are_not_for_it() {
        let several = |o: &mut Options| o.scheduling = Scheduling::of("g-edf,p-edf").unwrap();
        let error = chosen(Engine::Kernel, several).err().unwrap();
        assert!(error.cause().contains("in turn"), "{error}");
    }
}
