//! Indices of the parts of a plan, each a type of its own.
//!
//! Tasks are [`model::TaskId`]s and processors [`model::CpuId`]s, as everywhere.

/// A domain, by its index in [`Plan::domains`](crate::Plan::domains).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DomainId(pub u32);

/// A processor of a domain, by its index in [`Domain::cpus`](crate::Domain::cpus).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place(pub u32);

/// A server, by its number in [`model::assignment::Slots::server_of`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(pub u32);

impl DomainId {
    /// As an index into a slice.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Place {
    /// Stands for no place in tables.
    pub const NONE: Place = Place(crate::NONE);

    /// As an index into a slice.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All places of a domain with so many processors.
    #[inline]
    pub fn all(count: usize) -> impl Iterator<Item = Place> {
        (0..count as u32).map(Place)
    }
}

impl ServerId {
    /// Stands for no server in tables.
    pub const NONE: ServerId = ServerId(crate::NONE);

    /// As an index into a slice.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
