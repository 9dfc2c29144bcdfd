//! What verbs share at the terminal: the output format, the progress bar, Ctrl-C.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use machine::stop;
use model::shown::{escaped, escaped_lines};
use model::table::{Look, printable};
use model::watch::Watch;
use model::{Error, Result, document, files};
use serde::Serialize;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How results are printed on standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
}

/// Prints text on standard output. A reader that closed the pipe has seen enough: that is no
/// failure.
///
/// On a terminal, characters that would act on it are shown escaped; a file or a pipe gets the text
/// as it is.
pub fn print(text: &str) -> Result<()> {
    if capture(text) {
        return Ok(());
    }
    if std::io::stdout().is_terminal() {
        return print_raw(&printable(text, look()));
    }
    print_raw(text)
}

/// Standard output as a writer of whole texts, each shown at once as [`print`] shows it.
pub struct Screened;

impl Write for Screened {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        if capture(&String::from_utf8_lossy(text)) {
            return Ok(text.len());
        }
        let mut out = std::io::stdout();
        let written = if out.is_terminal() {
            let shown = printable(&String::from_utf8_lossy(text), look());
            out.write_all(shown.as_bytes())
        } else {
            out.write_all(text)
        };
        written.and_then(|()| out.flush()).map(|()| text.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stdout().flush()
    }
}

thread_local! {
    /// What this thread would have printed, while [`captured`] runs.
    static CAPTURED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does the work; what it returned, and what its thread would have printed on standard output.
pub fn captured<T>(work: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.set(Some(String::new()));
    let done = work();
    (done, CAPTURED.take().unwrap_or_default())
}

/// Keeps a text for [`captured`]. False: nothing is captured, and the text is to be shown.
fn capture(text: &str) -> bool {
    CAPTURED.with_borrow_mut(|captured| match captured {
        Some(so_far) => {
            so_far.push_str(text);
            true
        }
        None => false,
    })
}

fn print_raw(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("standard output", "write", &e))
        }
        _ => Ok(()),
    }
}

/// How text is to look on standard output. `NO_COLOR` and `CLICOLOR` are heeded.
pub fn look() -> Look {
    let columns = console::Term::stdout()
        .size_checked()
        .map(|(_, columns)| columns);
    Look {
        width: columns
            .map(usize::from)
            .filter(|columns| *columns >= NARROWEST),
        color: columns.is_some() && console::colors_enabled(),
    }
}

/// A terminal that says it has fewer columns does not know how wide it is.
const NARROWEST: usize = 20;

/// The text with its long lines broken between words; what follows is indented by two columns.
pub fn fit(text: &str, look: Look) -> String {
    let Some(width) = look.width else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if console::measure_text_width(line.trim_end()) <= width {
            out.push_str(line);
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let mut used = indent;
        let mut is_first = true;
        out.push_str(&line[..indent]);
        for word in line.split_whitespace() {
            let own = console::measure_text_width(word);
            if !is_first && used + 1 + own > width {
                used = indent + 2;
                out.push('\n');
                out.push_str(&" ".repeat(used));
            } else if !is_first {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += own;
            is_first = false;
        }
        out.push('\n');
    }
    out
}

/// The text as people are shown it on standard output: nothing in it acts on the terminal, and it
/// is as wide as that is.
pub fn for_people(text: &str) -> String {
    fit(&printable(text, look()), look())
}

/// Prints text for people on standard output, as wide as the terminal is.
pub fn show(text: &str) -> Result<()> {
    print(&for_people(text))
}

/// Prints one JSON document on standard output.
pub fn print_json(content: &impl Serialize) -> Result<()> {
    print(&document::pretty(content)?)
}

/// Writes the answer of a verb into the file of `--output`, or prints it on standard output.
pub fn give(text: &str, output: Option<&Path>) -> Result<()> {
    match output {
        Some(file) => files::write(file, text),
        None => print(text),
    }
}

/// Says something on standard error, which may be closed: a remark is not worth failing for.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escaped_lines(text));
}

/// Lets a write beyond the limit on the size of files (`ulimit -f`) fail with an error instead of a
/// signal that ends the process. A handler, unlike an ignored signal, is not passed on to the
/// programs that a run starts.
///
/// # Errors
/// The handler cannot be installed.
pub fn answer_to_full_files() -> Result<()> {
    let reached = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, reached)
        .map(drop)
        .map_err(|e| Error::new(format!("cannot handle the signal of a full file: {e}")))
}

/// The exit status of work that was stopped by Ctrl-C (130) or SIGTERM (143), as shells have it.
pub fn stopped_status() -> Option<u8> {
    stop::signal().map(|signal| 128 + signal as u8)
}

/// A progress bar on standard error with the time left, and Ctrl-C as a wish to stop.
///
/// The first Ctrl-C asks the work to stop and keep what it has; the second one ends the process
/// ([`stop`]).
pub struct Console {
    all: MultiProgress,
    bar: Mutex<ProgressBar>,
    /// Lines above the bar.
    panel: Mutex<Option<ProgressBar>>,
    /// When what was found so far is shown next.
    next: Mutex<Instant>,
}

/// The time between two looks at what was found so far.
const EVERY: Duration = Duration::from_secs(1);

impl Console {
    /// Takes over SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn new() -> Result<Self> {
        stop::take_over()?;
        Ok(Console {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)),
            bar: Mutex::new(ProgressBar::hidden()),
            panel: Mutex::new(None),
            next: Mutex::new(Instant::now() + EVERY),
        })
    }

    fn bar(&self) -> ProgressBar {
        self.bar
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Lines and columns that a panel may take; `None` where standard error is not a terminal.
    pub fn room(&self) -> Option<(usize, usize)> {
        let (lines, columns) = console::Term::stderr().size_checked()?;
        // One line for the bar and one for what comes after; a full line would make some terminals
        // begin a new one.
        Some((
            usize::from(lines).saturating_sub(2),
            usize::from(columns).saturating_sub(1),
        ))
    }

    /// Shows these lines above the bar, in the place of those shown before. They have to fit
    /// [`Console::room`].
    pub fn show(&self, lines: &[String]) {
        let mut panel = self.panel.lock().unwrap_or_else(PoisonError::into_inner);
        let panel = panel.get_or_insert_with(|| {
            let panel = self.all.insert(0, ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                panel.set_style(style);
            }
            panel
        });
        panel.set_message(printable(&lines.join("\n"), panel_look()));
    }
}

/// A panel is drawn on a terminal only.
fn panel_look() -> Look {
    Look {
        width: None,
        color: console::colors_enabled_stderr(),
    }
}

impl Watch for Console {
    /// Takes the bar and the panel off the screen. Nothing else of the terminal was changed: not
    /// even the cursor is hidden.
    fn finish(&self) {
        self.bar().finish_and_clear();
        if let Some(panel) = self
            .panel
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            panel.finish_and_clear();
        }
    }
    fn begin(&self, what: &str, total: u64) {
        self.finish();
        let bar = self.all.add(ProgressBar::new(total));
        if let Ok(style) =
            ProgressStyle::with_template("{msg:28} {wide_bar} {percent:>3} %  {eta:>4} left")
        {
            bar.set_style(style);
        }
        bar.set_message(escaped(what).into_owned());
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }
    fn advance(&self, steps: u64) {
        self.bar().inc(steps);
    }
    fn note(&self, text: &str) {
        // Standard error may be closed; a remark is not worth failing for.
        self.all.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{}", escaped_lines(text));
        });
    }
    fn so_far(&self, lines: &dyn Fn(usize) -> Vec<String>) {
        // Who finds it locked lets the other one show.
        let Ok(mut next) = self.next.try_lock() else {
            return;
        };
        let now = Instant::now();
        if now < *next {
            return;
        }
        *next = now + EVERY;
        let Some((room, columns)) = self.room() else {
            return;
        };
        let lines = lines(columns);
        if (1..=room).contains(&lines.len()) {
            self.show(&lines);
        }
    }
    fn stopped(&self) -> bool {
        stop::signal().is_some()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_colors_do_not_count() {
        let look = |width| Look {
            width: Some(width),
            color: true,
        };
        let text = "  one two three four\nshort\n";
        assert_eq!(
            fit(text, look(12)),
            "  one two\n    three\n    four\nshort\n"
        );
        assert_eq!(fit(text, look(20)), text);
        let painted = "\x1b[31mone\x1b[0m two\n";
        assert_eq!(fit(painted, look(7)), painted);
        assert_eq!(fit(text, Look::PLAIN), text);
    }
}
