//! `warmset color`: partitions caches by page colors.

use super::color_find;
use crate::Answer;
use model::Result;

/// Options of `warmset color`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Find the colors of a cache, and sort memory by them
    Find(color_find::FindArgs),
    /// Show whether colors act: access time against the number of pages of one color and of many
    Selftest(color_find::SelftestArgs),
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.what {
        What::Find(args) => color_find::find(&args),
        What::Selftest(args) => color_find::selftest(&args),
    }
}
