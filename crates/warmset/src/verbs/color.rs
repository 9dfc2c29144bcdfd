//! `warmset color`: partitions caches by page colors.

use super::{color_exec, color_serve, experiment, find};
use crate::Answer;
use model::Result;

/// Options of `warmset color`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: warmset color selftest --picture colors.svg"
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Find the colors of a cache, and sort memory by them
    Find(find::FindArgs),
    /// Show whether colors act: access time against the number of pages of one color and of many
    Selftest(find::SelftestArgs),
    /// Measure what a partition is worth: the experiments of the papers, on this machine
    Experiment(experiment::Args),
    /// Run an unmodified program with its memory in colors
    Exec(color_exec::Args),
    /// Hold memory sorted by color and give it out over a socket
    Serve(color_serve::ServeArgs),
    /// Grant colors of a running server to a process, a user or a group
    Grant(color_serve::GrantArgs),
    /// Take colors back
    TakeBack(color_serve::TakeBackArgs),
    /// Put a process into a group
    Join(color_serve::JoinArgs),
    /// Give colors a name: a super color
    Name(color_serve::NameArgs),
    /// Show who has what
    List(color_serve::ListArgs),
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.what {
        What::Find(args) => find::find(&args),
        What::Selftest(args) => find::selftest(&args),
        What::Experiment(args) => experiment::run(args),
        What::Exec(args) => color_exec::run(&args),
        What::Serve(args) => color_serve::serve(args),
        What::Grant(args) => color_serve::grant(args),
        What::TakeBack(args) => color_serve::take_back(args),
        What::Join(args) => color_serve::join(args),
        What::Name(args) => color_serve::name(args),
        What::List(args) => color_serve::list(&args),
    }
}
