//! The skeleton of the program in the kernel, as `build.rs` makes it of the compiled program: its
//! maps and programs by name, and what lies in its memory as types. The layout that
//! [`intf`](crate::intf) says by hand is held against these types when the crate is compiled.

use crate::intf::{self, Choice, Ending, MAX_DOMAINS, MAX_TASKS, Plan};
use std::mem::{offset_of, size_of};

/// What is generated. It has `unsafe` of its own: the memory of the program, which libbpf maps.
#[allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

use generated::types;
pub(crate) use generated::{MainSkel, MainSkelBuilder};

const _: () = {
    assert!(size_of::<types::data_plan>() == Plan::SIZE);
    assert!(size_of::<types::task_plan>() == intf::TASK);
    assert!(size_of::<types::domain_plan>() == intf::DOMAIN);
    assert!(size_of::<types::change_plan>() == intf::CHANGE);
    assert!(size_of::<types::part_plan>() == intf::PART);
    assert!(size_of::<types::data_ending>() == Ending::SIZE);
    assert!(size_of::<types::data_losses>() == 8);
    assert!(size_of::<types::data_decisions>() == 8 * MAX_DOMAINS);
    assert!(size_of::<types::bss_choices>() == Choice::SIZE * MAX_DOMAINS);
    assert!(size_of::<types::bss_seen>() == intf::SEEN * MAX_DOMAINS);
    assert!(offset_of!(types::seen, ended) == 16);
    assert!(size_of::<types::asking>() == 16 && offset_of!(types::asking, count) == 8);

    assert!(size_of::<types::data_asked>() == intf::ASKED * MAX_TASKS);
    assert!(offset_of!(types::asked, pending) == intf::ASKED_PENDING);
    assert!(offset_of!(types::asked, events) == intf::ASKED_EVENTS);
    assert!(offset_of!(types::asked, deferred) == intf::ASKED_DEFERRED);
    assert!(offset_of!(types::asked, overrun) == intf::ASKED_OVERRUN);

    assert!(size_of::<types::data_pages>() == intf::PAGE * MAX_TASKS);
    assert!(offset_of!(types::page, done) == intf::PAGE_DONE);
    assert!(offset_of!(types::page, number) == intf::PAGE_NUMBER);
    assert!(offset_of!(types::page, release) == intf::PAGE_RELEASE);
    assert!(offset_of!(types::page, deadline) == intf::PAGE_DEADLINE);
    assert!(offset_of!(types::page, given) == intf::PAGE_GIVEN);
    assert!(offset_of!(types::page, chosen) == intf::PAGE_CHOSEN);
    assert!(offset_of!(types::page, preemptions) == intf::PAGE_PREEMPTIONS);
    assert!(offset_of!(types::page, migrations) == intf::PAGE_MIGRATIONS);
};
