//! Watching long work: how far it is, and whether the user wants it to stop.
//!
//! Rooms report through this trait; the command line shows a bar and turns Ctrl-C into
//! [`Watch::stopped`].

/// What long work reports to and asks. All methods may be called from any thread.
pub trait Watch: Sync {
    /// A stage of `total` equal steps begins; `what` names it for people.
    fn begin(&self, what: &str, total: u64);
    /// `steps` more steps are done.
    fn advance(&self, steps: u64);
    /// A remark for people, such as a warning; it must not disturb the bar.
    fn note(&self, text: &str);
    /// Does the user want it to end? Work then stops at the next step and keeps what it has.
    fn stopped(&self) -> bool;
    /// What was found so far can be shown, as lines that fit so many columns. Called often: the watch
    /// asks for the lines when it shows them.
    fn so_far(&self, _lines: &dyn Fn(usize) -> Vec<String>) {}
    /// The stage is over: progress that is still shown may be taken off the screen. Stages that
    /// follow one another need no call between them.
    fn finish(&self) {}
}

impl<W: Watch + ?Sized> Watch for &W {
    fn begin(&self, what: &str, total: u64) {
        (**self).begin(what, total);
    }
    fn advance(&self, steps: u64) {
        (**self).advance(steps);
    }
    fn note(&self, text: &str) {
        (**self).note(text);
    }
    fn stopped(&self) -> bool {
        (**self).stopped()
    }
    fn so_far(&self, lines: &dyn Fn(usize) -> Vec<String>) {
        (**self).so_far(lines);
    }
    fn finish(&self) {
        (**self).finish();
    }
}

/// Watches nothing and never stops: for tests and for short work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watch for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        false
    }
}
