//! What the books are about, as it is said and written: grants, clients, violations, the whole of
//! it.

use crate::colors::{Color, Colors};
use crate::holder::{Access, Holder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::iter::Sum;

/// What was granted to one holder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Whom.
    pub holder: Holder,
    /// Which colors.
    pub colors: Colors,
    /// For what: exclusively, or to read beside the one holder who may write (001 §5.3).
    #[serde(default)]
    pub access: Access,
    /// The most pages that its clients may hold together; `None`: as many as there are.
    pub pages: Option<u64>,
}

/// Who is at the other end of a connection, as the kernel says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// When it began, in ticks since the machine did; 0: it has ended. With its number this tells
    /// it from any other process. Not said: to people and other programs the number is enough.
    #[serde(skip)]
    pub began: u64,
}

/// Grants and groups: what outlives a server.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rights {
    /// The grants.
    pub grants: Vec<Grant>,
    /// Processes and the groups that they joined.
    pub groups: Vec<(u32, String)>,
    /// Super colors: names that the operator gave to colors.
    #[serde(default)]
    pub names: BTreeMap<String, Colors>,
}

/// Attempts of a process to write where it may only read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Violation {
    /// Who.
    pub peer: Peer,
    /// A page of which color.
    pub color: Color,
    /// Whose color it is.
    pub owner: Option<Holder>,
    /// How often.
    pub count: u64,
}

/// How many pages of a color there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pages {
    /// That can be had.
    pub free: u64,
    /// That clients hold.
    pub held: u64,
    /// That were given back and are still mapped by somebody.
    pub returning: u64,
}

impl Pages {
    /// All together.
    pub const fn all(self) -> u64 {
        self.free + self.held + self.returning
    }
}

impl Sum for Pages {
    fn sum<I: Iterator<Item = Pages>>(pages: I) -> Pages {
        pages.fold(Pages::default(), |sum, p| Pages {
            free: sum.free + p.free,
            held: sum.held + p.held,
            returning: sum.returning + p.returning,
        })
    }
}

/// What the books say, for the operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// How many colors there are.
    pub colors: u16,
    /// The grants.
    pub grants: Vec<Grant>,
    /// Super colors: names that the operator gave to colors.
    #[serde(default)]
    pub names: BTreeMap<String, Colors>,
    /// Who is connected.
    pub clients: Vec<Client>,
    /// The pages of each color.
    pub pages: Vec<Pages>,
    /// Pages of each color that were struck off since the server began: they had moved.
    #[serde(default)]
    pub struck: Vec<u64>,
    /// Pages that were struck off because their holders had exchanged their frames: these count
    /// against what they may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<Spoiled>,
    /// Attempts to write where it was only allowed to read, the latest processes last.
    #[serde(default)]
    pub violations: Vec<Violation>,
}

/// Pages that a holder has made useless.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spoiled {
    /// Under whose grant.
    pub holder: Holder,
    /// Of which kind.
    #[serde(default)]
    pub access: Access,
    /// How many.
    pub pages: u64,
}

/// A connected client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Client {
    /// Who.
    pub peer: Peer,
    /// The colors that it may use.
    pub colors: Colors,
    /// The colors that it may only read.
    #[serde(default)]
    pub read_only: Colors,
    /// Pages that it holds.
    pub pages: u64,
    /// Of these, pages of tiles that were moved and have lost their color.
    #[serde(default)]
    pub untrue: u64,
}
