//! The registry of verbs: to add one, add its file here, a variant of [`Verb`] and a line in
//! [`run`].

mod advise;
mod advise_table;
mod cache;
mod cache_model;
mod cache_multicore;
mod cache_sets;
mod cache_tasks;
mod check;
mod check_table;
mod color;
mod color_exec;
mod color_serve;
mod completions;
mod convert;
mod experiment;
mod find;
mod generate;
mod manual;
mod measure;
mod measure_model;
mod measure_overheads;
mod measure_scheduled;
mod measure_task;
mod measure_wss;
mod plan;
mod platform;
mod policies;
mod profile;
mod profile_compare;
mod report;
mod reproduce;
mod run;
mod run_live;
mod run_show;
mod schema;
mod simulate;
mod simulate_show;
mod study;
mod study_observe;
mod study_range;
mod tour;
mod trace;
mod trace_export;
mod trace_import;
mod validate;

use crate::Answer;
use model::Result;
use std::io::Write as _;

/// Measures what losing a warm cache costs on this machine, and decides with it which scheduler
/// keeps which load.
#[derive(clap::Parser, Debug)]
#[command(
    name = "warmset",
    version,
    max_term_width = 110,
    arg_required_else_help = true,
    after_help = "Example: warmset tour"
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

/// What the tool can do.
#[derive(clap::Subcommand, Debug)]
#[allow(clippy::large_enum_variant, reason = "one value is made, once")]
pub enum Verb {
    /// Measure, judge an example with it, and write a report: the first thing to run
    Tour(tour::Args),
    /// Show processors, caches and what this machine permits
    Platform(platform::Args),
    /// Show what a platform costs; import and export tables of SchedCAT
    Profile(profile::Args),
    /// Measure cache delays of this machine, and what the scheduler costs on it
    Measure(measure::Args),
    /// Decide whether task sets meet their deadlines
    Check(check::Args),
    /// Find a plan for a task set: policy, placement, priorities, and how far it can be stretched
    Advise(advise::Args),
    /// Export a plan for systems that schedule by themselves: chrt, systemd, SCHED_DEADLINE, rt-app
    Plan(plan::Args),
    /// Draw random task sets
    Generate(generate::Args),
    /// Turn files of rt-app, SimSo and Cheddar into task sets, and task sets into such files
    Convert(convert::Args),
    /// List the policies: what each does, which tests answer for it
    Policies(policies::Args),
    /// Run a task set in virtual time under a policy
    Simulate(simulate::Args),
    /// Run a task set for real under a policy
    Run(run::Args),
    /// Run sets for real and compare them with what analysis and simulation say
    Validate(validate::Args),
    /// Compare policies over many task sets
    Study(study::Args),
    /// Show what of the papers is reproduced, or run one of it and compare
    Reproduce(reproduce::Args),
    /// Make the page and its figures again from files
    Report(report::Args),
    /// Partition caches by page colors: find them, prove that they act, give memory out by color
    Color(color::Args),
    /// Send a recorded trace of memory accesses through the caches of a platform
    Cache(cache::Args),
    /// Check, add up or export a recorded schedule
    Trace(trace::Args),
    /// Print the JSON Schema of a document, or write all schemas
    Schema(schema::Args),
    /// Print what a shell needs to complete this command line
    Completions(completions::Args),
    /// Write the manual pages of all verbs
    Manual(manual::Args),
}

/// Does it.
pub fn run(verb: Verb) -> Result<Answer> {
    // Those that may change settings of the machine find it as it was before others did.
    if matches!(
        verb,
        Verb::Tour(_) | Verb::Measure(_) | Verb::Run(_) | Verb::Validate(_) | Verb::Color(_)
    ) {
        for line in app::restore_settings() {
            // A closed standard error leaves nowhere to say it.
            let _ = writeln!(std::io::stderr(), "warmset: {line}");
        }
    }
    match verb {
        Verb::Tour(args) => tour::run(args),
        Verb::Platform(args) => platform::run(args),
        Verb::Profile(args) => profile::run(args),
        Verb::Measure(args) => measure::run(args),
        Verb::Check(args) => check::run(args),
        Verb::Advise(args) => advise::run(args),
        Verb::Plan(args) => plan::run(args),
        Verb::Generate(args) => generate::run(args),
        Verb::Convert(args) => convert::run(args),
        Verb::Policies(args) => policies::run(args),
        Verb::Simulate(args) => simulate::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Validate(args) => validate::run(args),
        Verb::Study(args) => study::run(args),
        Verb::Reproduce(args) => reproduce::run(args),
        Verb::Report(args) => report::run(args),
        Verb::Color(args) => color::run(args),
        Verb::Cache(args) => cache::run(args),
        Verb::Trace(args) => trace::run(args),
        Verb::Schema(args) => schema::run(args),
        Verb::Completions(args) => completions::run(args),
        Verb::Manual(args) => manual::run(args),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    /// The README says so.
    #[test]
    fn every_command_answers_help_with_an_example() {
        fn without(command: &mut clap::Command, path: &str, found: &mut Vec<String>) -> usize {
            let help = command.render_long_help().to_string();
            if !help.contains("Example") && !help.contains(&format!("    {path} ")) {
                found.push(path.to_owned());
            }
            let below = command.get_subcommands_mut();
            let below = below.filter(|c| c.get_name() != "help");
            let asked = below.map(|c| without(c, &format!("{path} {}", c.get_name()), found));
            1 + asked.sum::<usize>()
        }
        let mut found = Vec::new();
        let asked = without(&mut Cli::command(), "warmset", &mut found);
        assert!(asked > 60, "{asked}");
        assert!(found.is_empty(), "without an example: {found:?}");
    }
}
