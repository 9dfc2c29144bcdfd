//! `warmset measure cpmd --model`: cache delays by a model of a platform's caches.

use crate::Answer;
use crate::console::{self, Console, Format};
use crate::options::Printed;
use app::measure::modelled::{self, Modelled, Options};
use model::table::{Look, Table};
use model::{Delay, Load, Result};
use std::fmt::Write;

/// Runs `warmset measure cpmd --model`.
pub fn run(options: &Options, printed: Printed) -> Result<Answer> {
    let console = Console::new()?;
    let seen = modelled::measure(options, &console)?;
    match printed.format() {
        Format::Table => console::show(&text(&seen, console::look()))?,
        Format::Json => console::print_json(&seen)?,
    }
    seen.complete()?;
    Ok(Answer::Yes)
}

fn text(seen: &Modelled, look: Look) -> String {
    let mut text = measure::summary::table(&seen.profile);
    if !seen.beside.is_empty() {
        text += "\nmean delays by the model, beside those of the built-in profile\n\n";
        let mut table = Table::new(3, 0);
        table.row(["WSS", "resumption", "load", "model", "built-in"]);
        for row in &seen.beside {
            let time = |nanos: i64| Delay::from_nanos(nanos).to_string();
            table.row([
                row.wss.to_string(),
                row.resumption.to_string(),
                match row.load {
                    Load::Idle => "idle".to_owned(),
                    Load::Load => "load".to_owned(),
                },
                time(row.model_ns),
                time(row.known_ns),
            ]);
        }
        text += &table.text(look);
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\nby a model of the caches, not measured: {}",
        seen.profile_path.display()
    );
    text
}
