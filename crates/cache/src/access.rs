//! Accesses to memory, as programs make them and as other tools record them.

use model::CpuId;

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Fetches an instruction.
    Instruction,
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Reads data and writes it in one instruction: counts as a read, and its line is changed.
    Modify,
}

/// One access.
///
/// Invariant of those that [`trace`](crate::trace) reads: `size` is 1 or more, and the last byte
/// has an address below 2^64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// The processor that makes it.
    pub cpu: CpuId,
    /// What it does.
    pub kind: Kind,
    /// Address of its first byte.
    pub address: u64,
    /// Bytes.
    pub size: u32,
}

impl Kind {
    /// Does it change memory?
    pub const fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::Modify)
    }

    /// Among which accesses it counts: 0 instructions, 1 reads, 2 writes.
    pub(crate) const fn column(self) -> usize {
        match self {
            Kind::Instruction => 0,
            Kind::Read | Kind::Modify => 1,
            Kind::Write => 2,
        }
    }
}
