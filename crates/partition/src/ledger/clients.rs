//! Processes and connections: under which grants they take tiles.

use super::said::{Grant, Peer};
use super::{ClientId, Ledger, State};
use crate::colors::{Color, Colors};
use crate::holder::{Access, Holder};
use std::collections::{BTreeMap, BTreeSet};

impl Ledger {
    /// The process that has this number now began then: what was known of one before it is
    /// forgotten.
    pub fn identify(&mut self, pid: u32, began: u64) {
        if self.began.get(&pid).is_some_and(|before| *before != began) {
            self.ended(pid);
        }
        self.began.insert(pid, began);
    }

    /// When the processes began that grants and groups name.
    pub fn began(&self) -> &BTreeMap<u32, u64> {
        &self.began
    }

    /// A process joins a group.
    pub fn join(&mut self, pid: u32, group: String) {
        self.groups.entry(pid).or_default().insert(group);
    }

    /// The processes that something was granted to, or that joined a group.
    pub fn processes(&self) -> BTreeSet<u32> {
        let granted = self.grants.keys().filter_map(|(holder, _)| match holder {
            Holder::Pid(pid) => Some(*pid),
            _ => None,
        });
        let absent = self
            .absent
            .iter()
            .filter_map(|client| self.clients.get(client));
        granted
            .chain(self.groups.keys().copied())
            .chain(absent.map(|peer| peer.pid))
            .collect()
    }

    /// A process has ended: its number may be another's next time.
    pub fn ended(&mut self, pid: u32) {
        let gone =
            |client: &&ClientId| self.clients.get(client).is_some_and(|peer| peer.pid == pid);
        let gone: Vec<ClientId> = self.absent.iter().filter(gone).copied().collect();
        for client in gone {
            self.absent.remove(&client);
            self.disconnect(client);
        }
        self.groups.remove(&pid);
        self.began.remove(&pid);
        self.grants
            .retain(|(holder, _), _| *holder != Holder::Pid(pid));
        self.records
            .retain(|(holder, _), _| *holder != Holder::Pid(pid));
    }

    /// A client connects.
    pub fn connect(&mut self, peer: Peer) -> ClientId {
        self.next += 1;
        self.clients.insert(self.next, peer);
        self.next
    }

    /// Does what was granted to a holder hold for this process? Processes that grants and groups
    /// name are known by number and beginning: a connection that outlives its process speaks for no
    /// other.
    fn speaks_for(&self, peer: Peer, holder: &Holder) -> bool {
        let is_known = || peer.began != 0 && self.began.get(&peer.pid) == Some(&peer.began);
        match holder {
            Holder::Pid(pid) => *pid == peer.pid && is_known(),
            Holder::Uid(uid) => *uid == peer.uid,
            Holder::Group(name) => {
                self.groups.get(&peer.pid).is_some_and(|g| g.contains(name)) && is_known()
            }
        }
    }

    /// The grant under which a client may have a color.
    pub(super) fn grant_for(
        &self,
        client: ClientId,
        color: Color,
        access: Access,
    ) -> Option<&Grant> {
        self.grants_of(client)
            .find(|g| g.access == access && g.colors.contains(color))
    }

    fn grants_of(&self, client: ClientId) -> impl Iterator<Item = &Grant> {
        let peer = self.clients.get(&client).copied();
        self.grants
            .values()
            .filter(move |grant| peer.is_some_and(|peer| self.speaks_for(peer, &grant.holder)))
    }

    /// The colors that were granted to a client, to use or to read only.
    pub fn colors_of(&self, client: ClientId, access: Access) -> Colors {
        self.grants_of(client)
            .filter(|grant| grant.access == access)
            .fold(Colors::new(), |all, grant| all.union(&grant.colors))
    }

    /// May a client read pages of a color and not write them?
    pub fn may_only_read(&self, client: ClientId, color: Color) -> bool {
        !self.colors_of(client, Access::Full).contains(color)
            && self.colors_of(client, Access::ReadOnly).contains(color)
    }

    /// A client is gone: all that it held is returning.
    pub fn disconnect(&mut self, client: ClientId) {
        self.clients.remove(&client);
        for (_, state) in self.tiles.values_mut() {
            if let State::Held(holder, charge) = state
                && *holder == client
            {
                *state = State::Returning(charge.clone());
            }
        }
    }
}
