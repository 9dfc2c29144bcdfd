//! Indices of the parts of a run, each a type of its own.
//!
//! Tasks are [`model::TaskId`]s and processors [`model::CpuId`]s, as everywhere. A [`DomainId`]
//! counts the domains of one plan, and a [`Place`] the processors of one domain.

use policy::{DomainId, Place};

/// The domain of a stage, by its index among the inboxes of a run. Domains of every set of posts
/// count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct InboxId(pub u32);

/// A post, by its index among those of a run. A post is a processor of a domain in one of the sets
/// that consecutive stages use in turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PostId(pub u32);

impl InboxId {
    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The inbox of a domain of the plan whose first domain has this inbox.
    pub fn of(self, domain: DomainId) -> InboxId {
        InboxId(self.0 + domain.0)
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
