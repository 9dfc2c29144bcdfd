//! `warmset study`: compares policies over many task sets, and draws what it found.

use crate::Answer;
use crate::console::{self, Console, Format};
use crate::options::{Accounted, Charged, On, Printed, directory, new_file};
use crate::verbs::study_observe::{self, ObserveArgs};
use crate::verbs::study_range::{self, RangeArgs};
use app::charts::{self, Family, Length, plot};
use app::study::{Options, crossings, curves};
use model::table::{Look, Table};
use model::{Error, Overheads, Result};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use study::{Factor, Quantity, Results, Share};

const EXAMPLES: &str = "\
Examples:
  warmset study list
  warmset study run ospert10-fig5 -o fig5
  warmset study run bastoni11-fig6.2a --sets 20 -o light
  warmset study run my-study.toml -o mine
  warmset study run bastoni11-fig6.4a --profile board.toml --accounting paper -o with-overheads
  warmset study plot fig5 --at 500us
  warmset study run ospert10-fig5 --shard 3/16 -o share3
  warmset study merge share1 share2 share3 -o fig5
  warmset study run bastoni11-6.3-soft --dask tcp://10.0.0.1:8786 -o soft
  warmset study schema -o study.schema.json
  warmset study explore fig5 light -o explorer.html
  warmset study run bastoni11-6.3-soft --sets 20 -o soft
  warmset study observe soft
  warmset study range fig5 --of g-edf --against p-edf

A study draws many task sets for each cap U on the total utilization and asks, at each cache delay D (or working set size, \
factor on overheads, number of processors), which of them each policy keeps. S(U, D) is the share kept; W(D) weighs it by U \
and is one number for a policy and a delay. With \
`-o`, Ctrl-C keeps what was counted; the same command goes on from there. `docs/studies.md` has the format of study files.";

/// Options of `warmset study`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Show the studies that are built in
    List(ListArgs),
    /// Run a study, or go on with one that was stopped
    Run(RunArgs),
    /// Draw the results of a study
    Plot(PlotArgs),
    /// Put the shares of a study together
    Merge(MergeArgs),
    /// Print the JSON Schema of study files, for editors
    Schema(SchemaArgs),
    /// Write one page that shows any number of studies: charts, tables, where A beats B
    Explore(ExploreArgs),
    /// Hold the observations of chapter 6 of 002 against studies that were run
    Observe(ObserveArgs),
    /// Show up to which cost one policy is as good as another one
    Range(RangeArgs),
}

const PLATFORM: &str = "A built-in platform such as `xeon-l7455` or `symmetric:m=8`, or a file; caps above what it has \
                        are left out [default: what the study says]";

const PROFILE: &str = "What the scheduler costs: a built-in profile or a file, whose overheads are charged by the number of \
                       tasks; D stands for its cache delays [default: what the study says]";

#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset study list --format json")]
struct ListArgs {
    #[command(flatten)]
    printed: Printed,
}

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example: warmset study run ospert10-fig5 --sets 1000 -o fig5",
    mut_arg("platform", |platform| platform.help(PLATFORM)),
    mut_arg("profile", |profile| profile.help(PROFILE))
)]
struct RunArgs {
    /// The name of a built-in study or of a family of them, or a file such as `study.toml`
    #[arg(value_name = "STUDY")]
    study: String,
    /// Keep results here: counts as they come, then JSON, CSV and charts; of a family in a directory
    /// for each study
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    charged: Charged,
    #[command(flatten)]
    accounted: Accounted,
    /// A factor on overheads that are charged, such as `2` or `0.5` [default: what the study says]
    #[arg(long, value_name = "F", value_parser = study_observe::factor)]
    overhead_factor: Option<Factor>,
    /// Which overheads the factor is on, such as `release,scheduling`; `cpmd` are cache delays
    /// [default: what the study says, else all]
    #[arg(long, value_name = "NAMES")]
    factor_on: Option<Overheads>,
    /// Policies and tests to compare, such as `p-edf,c-edf:l2,GFB` [default: what the study says]
    #[arg(long, value_name = "NAMES")]
    policy: Option<String>,
    /// How many task sets for each cap [default: what the study says]
    #[arg(long, value_name = "N")]
    sets: Option<u32>,
    /// Add task sets to each cap until the 95 % interval of each of its shares is at most so wide,
    /// such as 0.02; `--sets` are then the most [default: what the study says]
    #[arg(long, value_name = "WIDTH")]
    until_ci: Option<f64>,
    /// Seed of all random choices: the same seed makes the same choices on any machine
    /// [default: what the study says]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many threads [default: one a processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<NonZeroUsize>,
    /// Have the workers of this scheduler of Dask judge, such as `tcp://10.0.0.1:8786`, or that of a
    /// scheduler file; it needs the Python package `warmset`
    #[arg(long, value_name = "ADDRESS", conflicts_with = "threads")]
    dask: Option<String>,
    /// Run only this share, such as `3/16`, into a directory of its own, for `warmset study merge`
    #[arg(long, value_name = "N/ALL")]
    shard: Option<Share>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example: warmset study merge share1 share2 share3 -o fig5

Exit status: 0, or 1 while shares are missing."
)]
struct MergeArgs {
    /// Directories that `warmset study run --shard -o` made
    #[arg(value_name = "DIR", required = true)]
    shares: Vec<PathBuf>,
    /// Put them together here
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: PathBuf,
    #[command(flatten)]
    printed: Printed,
}

#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  warmset study plot fig5 --at 0us --at 500us
  warmset study plot fig5 --pdf --width 3.5in --font serif --font-size 7pt --no-title -o paper")]
struct PlotArgs {
    /// A directory that `warmset study run -o` made
    #[arg(value_name = "DIR")]
    results: PathBuf,
    /// Also draw schedulability against utilization at this value of what is swept, such as `500us`
    /// or `64KiB` [default: at the first]
    #[arg(long, value_name = "VALUE")]
    at: Vec<String>,
    /// Write the charts here [default: beside the results]
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    /// Write PNG, too, at 300 pixels an inch
    #[arg(long)]
    png: bool,
    /// Write PDF, too, whose text stays text
    #[arg(long)]
    pdf: bool,
    /// Width on paper, such as `3.5in` or `89mm` [default: 470px]
    #[arg(long, value_name = "LENGTH")]
    width: Option<Length>,
    /// The fonts
    #[arg(long, value_enum, default_value_t = Font::Sans)]
    font: Font,
    /// Size of tick labels and legends, such as `8pt` [default: 9pt]
    #[arg(long, value_name = "LENGTH")]
    font_size: Option<Length>,
    /// No title above the chart
    #[arg(long)]
    no_title: bool,
    /// No confidence bands
    #[arg(long)]
    no_bands: bool,
    /// An axis by its logarithm; may be given twice
    #[arg(long, value_enum, value_name = "AXIS")]
    log: Vec<AxisName>,
}

/// A family of fonts.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Font {
    Sans,
    Serif,
}

/// An axis of a chart.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum AxisName {
    X,
    Y,
}

impl PlotArgs {
    fn options(&self) -> charts::Options {
        charts::Options {
            at: self.at.clone(),
            width: self.width,
            font_size: self.font_size,
            family: match self.font {
                Font::Sans => Family::Sans,
                Font::Serif => Family::Serif,
            },
            no_title: self.no_title,
            no_bands: self.no_bands,
            log_x: self.log.contains(&AxisName::X),
            log_y: self.log.contains(&AxisName::Y),
            png: self.png,
            pdf: self.pdf,
        }
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset study explore fig5 light heavy -o explorer.html")]
struct ExploreArgs {
    /// Directories that `warmset study run -o` made
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// The page, which holds everything within itself
    #[arg(short, long, value_name = "FILE", default_value = "explorer.html", value_parser = new_file)]
    output: PathBuf,
    #[command(flatten)]
    printed: Printed,
}

#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset study schema -o study.schema.json

A study file whose first line is `#:schema ./study.schema.json` is then completed and checked by editors with Taplo, such \
as Even Better TOML.")]
struct SchemaArgs {
    /// Write it here [default: standard output]
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match args.action {
        Action::List(args) => list(&args)?,
        Action::Run(args) => run_study(&args)?,
        Action::Merge(args)
            if args
                .shares
                .iter()
                .any(|dir| app::families::holds_family(dir)) =>
        {
            let run = app::families::merge(&args.shares, &args.output)?;
            show_family(&run, args.printed.format())?;
            if run.studies.iter().any(|done| !done.complete) {
                return Ok(Answer::No);
            }
        }
        Action::Merge(args) => match study::merge(&args.shares, &args.output)? {
            Some(results) => show(&results, args.printed.format(), Some(&args.output))?,
            None => {
                console::note(
                    "not all shares are there: merge the others into the same directory when they are done",
                );
                return Ok(Answer::No);
            }
        },
        Action::Schema(args) => {
            console::give(&study::schema::text()?, args.output.as_deref())?;
        }
        Action::Plot(args) => {
            let results = study::load(&args.results)?;
            let written = plot(
                &results,
                &args.options(),
                args.output.as_ref().unwrap_or(&args.results),
            )?;
            console::print(&lines(&written))?;
        }
        Action::Explore(args) => {
            let written = app::explore::make(&app::explore::Options {
                dirs: args.results,
                output: args.output,
            })?;
            match args.printed.format() {
                Format::Json => console::print_json(&written)?,
                Format::Table => console::print(&lines(&[written.page]))?,
            }
        }
        Action::Observe(args) => study_observe::run(args)?,
        Action::Range(args) => study_range::run(&args)?,
    }
    Ok(Answer::Yes)
}

fn threads(text: &str) -> Result<NonZeroUsize> {
    text.parse().map_err(|_| {
        Error::new(format!("`{text}` is no number of threads")).remedy("give 1 or more")
    })
}

fn list(args: &ListArgs) -> Result<()> {
    let list = app::study::list();
    match args.printed.format() {
        Format::Json => console::print_json(&list),
        Format::Table => {
            let mut text = String::new();
            for row in list.studies {
                text += &format!("{:28}  {} ({})\n", row.name, row.title, row.source);
            }
            text += "\nFamilies, whose studies one command runs into one directory for each:\n";
            for row in list.families {
                text += &format!("{:28}  {} ({})\n", row.name, row.title, row.source);
                text += &format!("    such as {}\n", row.studies[0]);
            }
            console::show(&text)
        }
    }
}

fn run_study(args: &RunArgs) -> Result<()> {
    let options = Options {
        on: args.on.choice(),
        charged: args.charged.given(),
        charge_own: !args.charged.is_given(),
        accounting: args.accounted.accounting,
        overhead_factor: args.overhead_factor,
        factor_on: args.factor_on,
        policies: args.policy.clone(),
        sets: args.sets,
        until_ci: args.until_ci,
        seed: args.seed,
        output: args.output.clone(),
        threads: args.threads,
        dask: args.dask.clone(),
        share: args.shard,
    };
    let console = Console::new()?;
    if app::families::is_family(&args.study) {
        let run = app::families::run(&args.study, &options, &console)?;
        return show_family(&run, args.printed.format());
    }
    match app::study::run_share(&args.study, &options, &console)? {
        Some(results) => show(&results, args.printed.format(), args.output.as_deref()),
        None => {
            console::note(
                "the share is complete: put all shares together with `warmset study merge`",
            );
            Ok(())
        }
    }
}

/// Tells where the studies of a family are.
fn show_family(run: &app::families::Run, format: Format) -> Result<()> {
    if format == Format::Json {
        return console::print_json(run);
    }
    let line = |done: &app::families::Done| match done.complete {
        true => format!("wrote {}\n", done.directory.display()),
        false => format!("wrote {}: shares are missing\n", done.directory.display()),
    };
    console::print(&run.studies.iter().map(line).collect::<String>())
}

/// Shows results, and draws them where they are kept.
fn show(results: &Results, format: Format, output: Option<&Path>) -> Result<()> {
    match format {
        Format::Json => console::print(&results.to_json()?)?,
        Format::Table => console::show(&table(results, console::look()))?,
    }
    if let Some(dir) = output {
        let written = plot(results, &charts::Options::default(), dir)?;
        if format == Format::Table {
            console::print(&format!("\n{}", lines(&written)))?;
        }
    }
    Ok(())
}

/// W, or S(U) where the axis has only one point, for people.
fn table(results: &Results, look: Look) -> String {
    let axis = &results.axis;
    let symbol = axis.quantity.symbol();
    let (head, rows): (&str, Vec<String>) = if axis.len() > 1 {
        (symbol, axis.texts())
    } else {
        (
            "U",
            results.shards.iter().map(|s| s.cap.to_string()).collect(),
        )
    };
    let curves = curves(results, axis.len() > 1, 0);
    // What one cost stands for is told where it is no axis.
    let charges = match axis.quantity {
        Quantity::Delay | Quantity::WorkingSet => String::new(),
        Quantity::OverheadFactor | Quantity::Processors => format!("{}\n", results.charges),
    };
    let at = match axis.len() {
        1 => format!(", {symbol} = {}", axis.text(0)),
        _ => String::new(),
    };
    let mut text = format!(
        "{}\n{}{at}, {}\n{charges}\n",
        results.title,
        results.sets_in_words(),
        results.charged
    );
    let mut shares = Table::new(0, 0);
    // All columns are at least eight wide, so that tables of several studies look alike.
    shares.row(
        std::iter::once(head)
            .chain(curves.iter().map(|c| c.policy.as_str()))
            .map(|name| format!("{name:>8}")),
    );
    for (at, row) in rows.iter().enumerate() {
        shares.row(
            std::iter::once(row.clone())
                .chain(curves.iter().map(|c| format!("{:.3}", c.points[at].1))),
        );
    }
    text += &shares.text(look);
    for c in crossings(results) {
        let (from, until) = match axis.quantity {
            Quantity::Delay if axis.points[0] == 0 => {
                ("without delay".to_owned(), format!("{:.0} us", c.at / 1e3))
            }
            Quantity::Delay => (
                format!("at {}", axis.text(0)),
                format!("{:.0} us", c.at / 1e3),
            ),
            Quantity::WorkingSet => (
                format!("at {symbol} = {}", axis.text(0)),
                format!("{:.0} KiB", c.at / 1024.0),
            ),
            _ => (
                format!("at {symbol} = {}", axis.text(0)),
                format!("{:.3}", c.at),
            ),
        };
        text += &format!(
            "\n{} is at least as good as {} {from} ({:.3}) up to {symbol} = {until}",
            c.falling, c.reference, c.level
        );
    }
    for note in &results.notes {
        text += &format!("\n(!) {note}");
    }
    text.trim_end().to_owned() + "\n"
}

fn lines(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|p| format!("wrote {}\n", p.display()))
        .collect()
}
