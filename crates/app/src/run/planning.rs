//! Looks whether a run could be, and what would disturb it.

use super::engine::{self, Chosen, InKernel};
use super::known;
use super::looked::Preflight;
use super::moment::Clocks;
use super::reserve;
use super::{Carried, Options, Planned};
use crate::scheduling::Scheduling;
use crate::simulate::part_of;
use crate::{Choice, Tasks, provenance};
use ::trace::{Header, Origin, Stage};
use execute::preflight::{self, Finding, Intent};
use execute::{Rights, Triggers};
use machine::user::User;
use machine::{Machine, Tree};
use model::{CpuSet, Duration, Enforcement, Error, Provenance, Ratio, Result, TaskSet};

/// Looks whether a run could be. Where boundaries between jobs matter to a policy, and no profile
/// says what one costs, this measures it. Nothing on the machine is changed.
///
/// # Errors
/// Options that contradict each other or the set; processors that cannot be used; an assignment
/// that cannot be made or does not fit.
pub fn plan<'a>(tasks: &'a Tasks, options: &'a Options) -> Result<Planned<'a>> {
    let (how, set) = (&options.scheduling, &tasks.set);
    let begun = options.begun.unwrap_or_else(Clocks::read);
    let release_at = options.release_at.map(|m| m.reading(&begun)).transpose()?;
    let triggers = triggers(how, set).map_err(|e| e.at(&tasks.place))?;
    let machine = on(machine::this_machine()?, options.cpus.as_ref())?;
    turns(how, options.switch_every)?;
    let part = match &options.execution {
        Choice::Named(text) => part_of(text).map_err(|e| e.at("--execution"))?,
        Choice::Value(part) => *part,
    };
    let rights = rights(&options.rights)?;
    let enforcement = how.enforcement;
    let Chosen { in_kernel, finding } = engine::choose(options, set, &machine, &tasks.place)?;
    let seen = match in_kernel {
        Some(taken) => look_in_kernel(options, set, &machine, part, taken),
        None => look_from_user_space(options, tasks, &machine, part)?,
    };
    let mut findings = seen.findings;
    let of_machine = findings.len();
    findings.extend(finding);
    findings.extend(seen.of_set);
    Ok(Planned {
        header: header(set, &machine, seen.stages, enforcement, &options.command),
        set,
        options,
        begun,
        release_at,
        triggers,
        part,
        rights,
        carried: seen.carried,
        enforcement,
        early: seen.early,
        preflight: Preflight {
            findings,
            of_machine,
        },
        machine,
    })
}

/// What was seen before a run, and what it carries out.
struct Seen {
    stages: Vec<Stage>,
    carried: Carried,
    findings: Vec<Finding>,
    of_set: Vec<Finding>,
    early: Duration,
}

/// Looks at a machine and a set for the engine in user space.
///
/// # Errors
/// As [`plan`].
fn look_from_user_space(
    options: &Options,
    tasks: &Tasks,
    machine: &Machine,
    part: Ratio,
) -> Result<Seen> {
    let (how, set, platform) = (&options.scheduling, &tasks.set, &machine.platform);
    let profile = options.profile.as_ref().map(Choice::profile).transpose()?;
    let found = known::find(how, set, machine, profile.as_ref())?;
    let known = &found.known;
    let reserved = reserve::reserve(how, set, platform, &tasks.place, known)?;
    let mut plans = Vec::new();
    for (policy, stage) in how.all().zip(&reserved.stages) {
        plans.push(policy.plan(&how.setup(set, platform, stage.assignment.as_ref()))?);
    }
    let takes = known.takes(how, set.len());
    let intent = Intent {
        machine,
        tree: &Tree::new("/".as_ref()),
        cpus: &platform.in_cache_order(),
        set,
        stages: &reserved.stages,
        part,
        enforcement: how.enforcement,
        quantum: how.quantum,
        awake: options.awake,
        boundary: known.boundary(how, set.len())?,
        takes: &takes,
    };
    let findings = preflight::look(&intent);
    let early = options.early.unwrap_or_else(|| preflight::early(&intent));
    let of_set = found
        .findings
        .into_iter()
        .chain(reserved.findings)
        .collect();
    Ok(Seen {
        carried: Carried::User(plans),
        findings,
        of_set,
        early,
        stages: reserved.stages,
    })
}

/// Looks at a machine and a set for the engine in the kernel.
fn look_in_kernel(
    options: &Options,
    set: &TaskSet,
    machine: &Machine,
    part: Ratio,
    taken: InKernel,
) -> Seen {
    let how = &options.scheduling;
    let intent = Intent {
        machine,
        tree: &Tree::new("/".as_ref()),
        cpus: &machine.platform.in_cache_order(),
        set,
        stages: &taken.stages,
        part,
        enforcement: how.enforcement,
        quantum: how.quantum,
        awake: options.awake,
        boundary: None,
        takes: &[],
    };
    Seen {
        findings: preflight::look_in_kernel(&intent),
        of_set: taken.findings,
        early: Duration::ZERO,
        carried: Carried::Kernel(Box::new(taken.carried)),
        stages: taken.stages,
    }
}

/// # Errors
/// No such user.
fn rights(asked: &model::Rights) -> Result<Rights> {
    Ok(match asked {
        model::Rights::User(name) => Rights::Of(User::find(name).map_err(|e| e.at("--user"))?),
        model::Rights::Keep => Rights::Kept,
        model::Rights::Unsaid | model::Rights::Drop => Rights::Dropped,
    })
}

/// # Errors
/// Several policies without a time for each, or a time for one alone.
fn turns(how: &Scheduling, switch_every: Option<Duration>) -> Result<()> {
    match (how.then().is_empty(), switch_every) {
        (false, None) => Err(Error::new(
            "several policies are given, and not how long each of them rules",
        )
        .at("--policy")
        .remedy("add such as `--switch-every 5s`, or give one policy")),
        (true, Some(_)) => Err(Error::new("there is only one policy, nothing to switch to")
            .at("--switch-every")
            .remedy("give several, such as `--policy g-edf,p-edf`")),
        _ => Ok(()),
    }
}

/// What releases the tasks that have a trigger; what is not there yet is made by the run.
fn triggers(how: &Scheduling, set: &TaskSet) -> Result<Triggers> {
    let triggered = set
        .ids()
        .find(|id| set.details(*id).is_some_and(|d| d.trigger.is_some()));
    let by_quanta = |spec: &&policy::Spec| spec.info().quantum_driven;
    if let (Some(task), Some(spec)) = (triggered, how.all().find(by_quanta)) {
        return Err(Error::new(format!(
            "`{spec}` takes releases at multiples of the quantum alone, and a trigger may come at \
             any time"
        ))
        .at(format!("task {}", set.name(task)))
        .remedy("choose another policy, or leave the trigger out"));
    }
    Triggers::open(set)
}

/// The machine with only these processors to use.
fn on(mut machine: Machine, cpus: Option<&CpuSet>) -> Result<Machine> {
    if let Some(cpus) = cpus {
        let usable = machine.platform.usable();
        if cpus.is_empty() || !cpus.is_subset(&usable) {
            return Err(
                Error::new(format!("not all of the processors `{cpus}` can be used"))
                    .at("--cpus")
                    .remedy(format!("choose among {usable}")),
            );
        }
        for processor in &mut machine.platform.processors {
            processor.usable &= cpus.contains(processor.id);
        }
    }
    Ok(machine)
}

fn header(
    set: &TaskSet,
    machine: &Machine,
    stages: Vec<Stage>,
    enforcement: Enforcement,
    command: &str,
) -> Header {
    let provenance = Provenance {
        machine: machine.fact("model").unwrap_or_default().to_owned(),
        kernel: machine.fact("kernel").unwrap_or_default().to_owned(),
        settings: machine.settings(),
        ..provenance(command)
    };
    Header {
        origin: Origin::Real,
        enforcement: Some(enforcement),
        stages: stages.clone(),
        ..Header::simulated(
            set.clone(),
            machine.platform.clone(),
            stages[0].clone(),
            provenance,
        )
    }
}
