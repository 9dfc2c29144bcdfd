//! The catalog of policies: one row a policy, which the whole workspace reads.
//!
//! To add a policy, write its file in `catalog/` and its line in [`policies`]. The row ([`Info`])
//! stands in that file, next to the state machine: it says in plain data how the assignment is
//! made, which tests answer, how overheads are accounted, and by which words the suites try the
//! policy. Whoever reads a row stands above this crate: `analyze` makes assignments and verdicts of
//! it, `study` sweeps it, the command line lists it. The checker finds its own rule by the name of
//! the policy.

mod row;

pub use row::{Info, Needs, Order, Priority, Tests};

use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use crate::{Policy, Profiler};
use model::Result;

/// Does something with a plan, whatever policy it is of: so an engine is compiled for each kind of
/// policy on its own.
///
/// Policies may be sent to other threads: an engine in real time runs one a domain.
pub trait Visit {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out;
}

/// Each line names the file of a policy in `catalog/`, which has `INFO`, the type `Machine` and
/// `plan`.
macro_rules! policies {
    ($($module:ident,)*) => {
        $(mod $module;)*

        /// A plan of any policy: the variant is the name of its file.
        #[allow(non_camel_case_types, reason = "variants are named as the files")]
        #[derive(Clone, Debug)]
        pub enum AnyPlan {
            $(
                #[doc = concat!("Of the policy in `catalog/", stringify!($module), ".rs`.")]
                $module(Plan<$module::Machine>),
            )*
        }

        static ALL: &[&Info] = &[$(&$module::INFO),*];

        impl Spec {
            /// Builds the policy for a task set on a platform.
            ///
            /// # Errors
            /// A parameter without meaning; a set or an assignment that the policy cannot run.
            pub fn plan(&self, setup: &Setup<'_>) -> Result<AnyPlan> {
                match self.info().name {
                    $(name if name == $module::INFO.name => {
                        $module::plan(self, setup).map(AnyPlan::$module)
                    })*
                    _ => Err(self.error("the policy is not in the catalog")),
                }
            }
        }

        impl AnyPlan {
            /// As [`Plan::needs_no_counts`].
            ///
            /// # Errors
            /// The policy finds working sets by the misses of jobs.
            pub fn needs_no_counts(&self) -> Result<()> {
                match self {
                    $(AnyPlan::$module(plan) => plan.needs_no_counts(),)*
                }
            }

            /// As [`Plan::profiler`].
            pub fn profiler(&self) -> Option<&Profiler> {
                match self {
                    $(AnyPlan::$module(plan) => plan.profiler(),)*
                }
            }

            /// Hands the plan to a visitor by its own type.
            pub fn visit<V: Visit>(self, visitor: V) -> V::Out {
                match self {
                    $(AnyPlan::$module(plan) => visitor.visit(plan),)*
                }
            }
        }
    };
}

policies! {
    p_edf,
    c_edf,
    g_edf,
    p_rm,
    p_fp,
    edf_fm,
    edf_wm,
    nps_f,
    c_nps_f,
    g_fp,
    pd2,
    ca_edf,
    g_fifo,
}

/// Every policy, in the order in which they are shown and suggested.
pub fn all() -> &'static [&'static Info] {
    ALL
}

/// The policy of this name.
pub fn find(name: &str) -> Option<&'static Info> {
    ALL.iter().find(|info| info.name == name).copied()
}

/// Every word by which the suites try a policy ([`Info::tried`]).
pub fn tried() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|info| info.tried).copied()
}
