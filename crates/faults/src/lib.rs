//! For tests only: runs of the command to which something is done, and what is left of them.
//!
//! A [trial](plan::Trial) is a [command line](scenario) and a [fault](fault): signals to any of
//! its processes at any moment, system calls that fail, limits, full disks. After each, nothing
//! may be left: no process, no priority, no file, no socket, no setting; the status and the words
//! of the command are those that it promises, and its trace can be read.
//!
//! Nothing of the command is changed for it. Trials take place in [namespaces of their own](room),
//! descendants are found by [descent](family), system calls are failed by a [filter](filter).

pub mod call;
pub mod family;
pub mod fault;
pub mod filter;
pub mod judge;
pub mod life;
pub mod outsider;
pub mod plan;
pub mod record;
pub mod room;
pub mod scenario;
pub mod system;
pub mod trial;
pub mod turns;
pub mod watch;
