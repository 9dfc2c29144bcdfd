//! `warmset study range`: up to which cost of its own one policy is as good as another at its cost.

use crate::console::{self, Format};
use crate::options::Printed;
use app::range::{Found, Options, find};
use model::table::{Look, Table};
use model::{Bytes, Duration, Profile, Result};
use std::path::PathBuf;
use study::Quantity;
use study::ranges::{Reach, Sized};

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example: warmset study range fig5 --of g-edf --against p-edf --profile xeon-l7455

A policy whose migrations cost x and another one whose preemptions cost y compare by W(x) and W(y): for each y the largest x up \
to which the first keeps up (000 §5)."
)]
pub(super) struct RangeArgs {
    /// A directory that `warmset study run -o` made
    #[arg(value_name = "DIR")]
    results: PathBuf,
    /// The policy, as charts name it, such as `G-EDF`
    #[arg(long, value_name = "POLICY")]
    of: String,
    /// The one that it is held against, such as `P-EDF`
    #[arg(long, value_name = "POLICY")]
    against: String,
    /// Also show up to which working set sizes cache delays lie within the range: a built-in profile or
    /// a file
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    #[command(flatten)]
    printed: Printed,
}

/// Runs the verb.
pub(super) fn run(args: &RangeArgs) -> Result<()> {
    let profile = args.profile.as_deref().map(Profile::find).transpose()?;
    let found = find(&Options {
        dir: args.results.clone(),
        of: args.of.clone(),
        against: args.against.clone(),
        profile,
    })?;
    match args.printed.format() {
        Format::Json => console::print_json(&found),
        Format::Table => console::show(&table(&found, console::look())),
    }
}

fn table(found: &Found, look: Look) -> String {
    let (ranges, axis) = (&found.ranges, &found.axis);
    let symbol = axis.quantity.symbol();
    let mut text = format!(
        "{}\n{} sets for each cap, {}\n{} keeps up with {} at {symbol} up to {symbol} of its own\n\n",
        found.title, found.sets, found.charged, ranges.of, ranges.against
    );
    let mut rows = Table::new(0, 0);
    rows.row([symbol, "W", "up to", "for sure", "at most"].map(|name| format!("{name:>9}")));
    for range in &ranges.ranges {
        let reach = |reach| shown(reach, axis.quantity);
        rows.row([
            range.against_text.clone(),
            format!("{:.3}", range.level),
            reach(range.up_to),
            reach(range.surely),
            reach(range.at_most),
        ]);
    }
    text += &rows.text(look);
    for (where_, stretches) in [("above", &ranges.above), ("below", &ranges.below)] {
        for stretch in stretches {
            text += &format!(
                "\nat the same {symbol}, {} is {where_} for sure from {} to {}",
                ranges.of, stretch.from, stretch.to
            );
        }
    }
    if let (Some(profile), Some(first)) = (&found.sized_by, ranges.first()) {
        text += &format!(
            "\n\ncache delays of profile {profile} within the first range ({}):\n",
            shown(first.up_to, axis.quantity)
        );
        let mut rows = Table::new(4, 0);
        for sized in &found.working_sets {
            rows.row([
                sized.resumption.to_string(),
                sized.load.to_string(),
                sized.statistic.to_string(),
                size(sized),
            ]);
        }
        text += &rows.text(look);
    }
    for note in &found.notes {
        text += &format!("\n(!) {note}");
    }
    text.trim_end().to_owned() + "\n"
}

fn size(sized: &Sized) -> String {
    match (sized.wss, sized.is_largest) {
        (None, _) => "not for the smallest working set".to_owned(),
        (Some(wss), false) => format!("working sets up to {wss}"),
        (Some(wss), true) => format!("working sets up to {wss}, the largest measured"),
    }
}

fn shown(reach: Reach, quantity: Quantity) -> String {
    match (reach, quantity) {
        (Reach::Nowhere, _) => "nowhere".to_owned(),
        (Reach::ToTheEnd, _) => "the end".to_owned(),
        (Reach::UpTo(x), Quantity::Delay) => {
            let whole = Duration::from_micros((x / 1e3).round() as u64);
            whole.to_string()
        }
        (Reach::UpTo(x), Quantity::WorkingSet) => {
            Bytes::from_kib((x / 1024.0).floor() as u64).to_string()
        }
        (Reach::UpTo(x), Quantity::OverheadFactor | Quantity::Processors) => format!("{x:.2}"),
    }
}
