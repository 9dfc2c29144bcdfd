//! A row of the catalog: what the workspace knows of a policy, in plain data.

use crate::spec::Spec;
use model::{ClusterSpec, Duration, Platform, Result, TaskSet, Timing};

/// What a policy has to be told before it can be built, which says how its assignment is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing: it places jobs itself, on all processors.
    Nothing,
    /// An assignment of every task to one of these clusters: bin packing.
    Clusters(ClusterSpec),
    /// An assignment in turns (002 §4.1).
    Turns {
        /// Processors are filled evenly, not one after the other.
        spread: bool,
    },
    /// An assignment in slices (002 §4.2).
    Slices {
        /// No slice is shorter; `None`: 50 us, as in 002 §5.1.2.
        shortest: Option<Duration>,
    },
    /// An assignment in slots (002 §4.3).
    Slots {
        /// Slots per shortest period: more of them waste less and preempt more.
        delta: u32,
        /// The clusters that no server may leave; `None`: it may go everywhere.
        clusters: Option<ClusterSpec>,
    },
}

/// The order of fixed priorities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Priority {
    /// The shorter the period, the higher; ties by the order of the set.
    #[default]
    RateMonotonic,
    /// The shorter the deadline, the higher; ties by the order of the set.
    DeadlineMonotonic,
    /// The earlier in the set, the higher.
    Given,
}

impl Priority {
    /// The tasks' indices, highest priority first.
    pub fn order(self, tasks: &[Timing]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        match self {
            Priority::RateMonotonic => order.sort_by_key(|i| tasks[*i].period),
            Priority::DeadlineMonotonic => order.sort_by_key(|i| tasks[*i].deadline),
            Priority::Given => {}
        }
        order
    }
}

/// Which job goes before which, as far as tests and the accounting of overheads may rely on it.
///
/// It says which tasks a job can preempt, and so whose cache delays it is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The earlier absolute deadline: a task preempts those with longer relative deadlines only.
    Deadlines,
    /// The priority of the task: it preempts lower ones only.
    Fixed(Priority),
    /// The earlier release: no job preempts another.
    Releases,
    /// The policy's own: nothing is assumed, every task may preempt every other.
    Own,
}

/// Which tests answer for a guarantee. `analyze` has the tests; its suite holds the names against
/// its registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tests {
    /// None: the guarantee is not judged.
    None,
    /// Those of earliest deadline first: the exact one for one processor, all registered for
    /// `g-edf` for several.
    Deadlines,
    /// Those of fixed priorities: exact response times for one processor, those registered for
    /// `g-fp` for several.
    Priorities,
    /// No task is asked for more than a processor and no cluster for more than it has. That bounds
    /// tardiness wherever priorities stay within windows around release and deadline (Leontyev,
    /// Anderson 2010) and no processor idles while a job waits.
    Utilization,
    /// The test of this name in the registry. Where an assignment in turns, slices or slots is
    /// needed, making it is the test.
    Named(&'static str),
}

/// What is known of a policy: its row.
///
/// A row names what it has to and takes the rest from [`Info::DEFAULT`].
#[derive(Debug)]
pub struct Info {
    /// As people write it: `c-edf`. The checker finds its rule by it, and the suites see that there
    /// is one.
    pub name: &'static str,
    /// What it does, in one line of help.
    pub summary: &'static str,
    /// Its parameters, as a remedy may quote them; empty: none.
    pub parameters: &'static str,
    /// Parameters that are words; `#` at the end stands for digits.
    pub words: &'static [&'static str],
    /// Parameters that are `key=value`.
    pub keys: &'static [&'static str],
    /// The keys that no test knows: with them the policy runs and is not judged.
    pub unjudged: &'static [&'static str],
    /// The keys that change neither verdict nor assignment: both are the same without them.
    pub free: &'static [&'static str],
    /// Does it decide at quantum boundaries only, whatever its parameters?
    pub quantum_driven: bool,
    /// What has to be given besides the set and the platform.
    pub needs: fn(&Spec) -> Result<Needs>,
    /// Which job goes before which.
    pub order: fn(&Spec) -> Result<Order>,
    /// The tests that show that no deadline is missed.
    pub hard: Tests,
    /// The tests that show that tardiness is bounded.
    pub soft: Tests,
    /// The one way to write what these parameters mean, by which verdicts call the policy.
    pub canonical: fn(&Spec) -> Result<String>,
    /// Why the policy cannot run a set on so many processors, as a clause; `None`: it can, as far as
    /// the set alone tells.
    pub unfit: fn(&TaskSet, usize) -> Option<String>,
    /// What has to be given, besides, before a set can run on a platform, as a clause; `None`:
    /// nothing. Verdicts do not depend on it.
    pub lacks: fn(&Spec, &TaskSet, &Platform) -> Option<String>,
    /// What a verdict has to say of these parameters beside what the tests say.
    pub note: fn(&Spec) -> Result<Option<String>>,
    /// What is judged where nobody names a policy; `l#` stands for each cache level that makes
    /// clusters of its own.
    pub suggested: &'static [&'static str],
    /// The words by which the suites try it on any platform: with and without parameters, on
    /// clusters of given sizes.
    pub tried: &'static [&'static str],
    /// The word by which campaigns on a real machine run it; empty: its name.
    pub live: &'static str,
}

impl Info {
    /// The word by which campaigns on a real machine run it.
    pub fn live_word(&self) -> &'static str {
        match self.live {
            "" => self.name,
            word => word,
        }
    }

    /// A policy without parameters that places jobs itself, of which nothing can be shown.
    pub const DEFAULT: Info = Info {
        name: "",
        summary: "",
        parameters: "",
        words: &[],
        keys: &[],
        unjudged: &[],
        free: &[],
        quantum_driven: false,
        needs: |_| Ok(Needs::Nothing),
        order: |_| Ok(Order::Own),
        hard: Tests::None,
        soft: Tests::None,
        canonical: |spec| Ok(spec.to_string()),
        unfit: |_, _| None,
        lacks: |_, _, _| None,
        note: |_| Ok(None),
        suggested: &[],
        tried: &[],
        live: "",
    };
}

impl PartialEq for Info {
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Info {}
