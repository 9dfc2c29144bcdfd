//! Indices of the parts of a run, each a type of its own.
//!
//! Tasks are [`model::TaskId`]s and processors [`model::CpuId`]s, as everywhere.

/// A domain, by its index among the inboxes of a run. Domains of every set of posts count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DomainId(pub u32);

/// A processor of a domain, by its index in the domain's list; `place` in [`policy::Decisions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place(pub u32);

/// A post, by its index among those of a run. A post is a processor of a domain in one of the sets
/// that consecutive stages use in turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PostId(pub u32);

impl DomainId {
    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Place {
    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// All places of a domain with so many processors.
    pub fn all(count: usize) -> impl Iterator<Item = Place> {
        (0..count as u32).map(Place)
    }
}

impl PostId {
    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The post of a place of the domain whose first place has this post.
    pub fn of(self, place: Place) -> PostId {
        PostId(self.0 + place.0)
    }
}
