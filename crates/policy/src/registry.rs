//! The registry of policies: to add one, add its file and its line in [`policies`].
//!
//! The command line, the documentation table and the tests read it here.

use crate::Policy;
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What a policy has to be told before it can be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing: it places jobs itself.
    Nothing,
    /// An assignment of every task to one of these clusters.
    Clusters(ClusterSpec),
    /// An assignment in turns (002 §4.1).
    Turns,
    /// An assignment in slices (002 §4.2).
    Slices,
    /// An assignment in slots (002 §4.3).
    Slots {
        /// Slots per shortest period: more of them waste less and preempt more.
        delta: u32,
        /// The clusters that no server may leave; `None`: it may go everywhere.
        clusters: Option<ClusterSpec>,
    },
}

/// What is known of a policy.
#[derive(Debug)]
pub struct Info {
    /// As people write it: `c-edf`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its parameters, as a remedy may quote them; empty: none.
    pub parameters: &'static str,
    /// Parameters that are words; `#` at the end stands for digits.
    pub words: &'static [&'static str],
    /// Parameters that are `key=value`.
    pub keys: &'static [&'static str],
    /// Does it decide at quantum boundaries only, whatever its parameters?
    pub quantum_driven: bool,
    /// What has to be given besides the set and the platform.
    pub needs: fn(&Spec) -> Result<Needs>,
}

impl PartialEq for Info {
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Info {}

/// Does something with a plan, whatever policy it is of: so an engine is compiled for each kind of policy on its own.
///
/// Policies may be sent to other threads: an engine in real time runs one a domain.
pub trait Visit {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out;
}

/// Each line names the file of a policy, which has `INFO`, the type `Machine` and `plan`, and the variant that holds it.
macro_rules! policies {
    ($($module:ident => $variant:ident,)*) => {
        /// A plan of any policy.
        #[derive(Clone, Debug)]
        pub enum AnyPlan {
            $(
                #[doc = concat!("Of the policy in `", stringify!($module), ".rs`.")]
                $variant(Plan<crate::$module::Machine>),
            )*
        }

        static ALL: &[&Info] = &[$(&crate::$module::INFO),*];

        impl Spec {
            /// Builds the policy for a task set on a platform.
            ///
            /// # Errors
            /// A parameter without meaning; a set or an assignment that the policy cannot run.
            pub fn plan(&self, setup: &Setup<'_>) -> Result<AnyPlan> {
                match self.info().name {
                    $(name if name == crate::$module::INFO.name => crate::$module::plan(self, setup).map(AnyPlan::$variant),)*
                    _ => Err(self.error("the policy is not in the registry")),
                }
            }
        }

        impl AnyPlan {
            /// Hands the plan to a visitor by its own type.
            pub fn visit<V: Visit>(self, visitor: V) -> V::Out {
                match self {
                    $(AnyPlan::$variant(plan) => visitor.visit(plan),)*
                }
            }
        }
    };
}

policies! {
    p_edf => PEdf,
    g_edf => GEdf,
    c_edf => CEdf,
    p_rm => PRm,
    p_fp => PFp,
    g_fp => GFp,
    edf_fm => EdfFm,
    edf_wm => EdfWm,
    nps_f => NpsF,
    c_nps_f => CNpsF,
    pd2 => Pd2,
    ca_edf => CaEdf,
}

/// Every policy, in the order in which they are shown.
pub fn all() -> &'static [&'static Info] {
    ALL
}

/// The policy of this name.
pub fn find(name: &str) -> Option<&'static Info> {
    ALL.iter().find(|info| info.name == name).copied()
}
