//! What the operator grants, names and takes back, and what of it outlives a server.

use super::said::{Grant, Rights};
use super::{Ledger, MOST_NAMES, State, shown};
use crate::colors::{Color, Colors};
use crate::holder::{Access, Holder};
use crate::selection::Selection;
use model::{Error, Result};
use std::collections::BTreeSet;

impl Ledger {
    /// The colors that an operator means.
    ///
    /// # Errors
    /// They name nothing, or colors that are not there.
    pub fn select(&self, selection: &Selection) -> Result<Colors> {
        selection.colors(self.colors, |name| self.names.get(name).cloned())
    }

    /// Gives colors a name (004 §III-C: a super color), or takes it from them. What was granted by
    /// it stays granted.
    ///
    /// # Errors
    /// A color is beyond the last; no color; there is no such name to take, or there are too many.
    pub fn name(&mut self, name: String, colors: Option<Colors>) -> Result<()> {
        let Some(colors) = colors else {
            return match self.names.remove(&name) {
                Some(_) => Ok(()),
                None => Err(Error::new(format!("no colors have the name `{name}`"))
                    .remedy("`warmset color list` shows all names")),
            };
        };
        colors.check(self.colors)?;
        if colors.is_empty() {
            return Err(Error::new("no colors are named").remedy("name some, such as `0-3`"));
        }
        if self.names.len() >= MOST_NAMES && !self.names.contains_key(&name) {
            return Err(
                Error::new(format!("there are {MOST_NAMES} names already")).remedy("remove some")
            );
        }
        self.names.insert(name, colors);
        Ok(())
    }

    /// Grants colors, in addition to what the holder has. To write: to one holder only. To read: to
    /// any number of holders, beside the one who may write (001 §5.3).
    ///
    /// # Errors
    /// A color is beyond the last, or is another's.
    pub fn grant(
        &mut self,
        holder: Holder,
        colors: &Colors,
        pages: Option<u64>,
        access: Access,
    ) -> Result<()> {
        colors.check(self.colors)?;
        if colors.is_empty() {
            return Err(Error::new("no colors are named").remedy("name some, such as `0-3`"));
        }
        if access == Access::Full {
            for other in self.exclusive().filter(|g| g.holder != holder) {
                let both = other.colors.intersection(colors);
                if !both.is_empty() {
                    return Err(
                        Error::new(format!("colors {both} are granted to {}", other.holder)).remedy(
                            "take them back first, grant them to be read only, or choose others: grants are exclusive",
                        ),
                    );
                }
            }
        }
        let grant = self
            .grants
            .entry((holder.clone(), access))
            .or_insert_with(|| Grant {
                holder,
                colors: Colors::new(),
                access,
                pages: None,
            });
        grant.colors = grant.colors.union(colors);
        if pages.is_some() {
            grant.pages = pages;
        }
        Ok(())
    }

    pub(super) fn exclusive(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values().filter(|g| g.access == Access::Full)
    }

    /// Who has a color for himself.
    pub fn owner_of(&self, color: Color) -> Option<&Holder> {
        self.exclusive()
            .find(|g| g.colors.contains(color))
            .map(|g| &g.holder)
    }

    /// Takes colors back.
    ///
    /// # Errors
    /// They were not granted to the holder, or clients still hold memory of them.
    pub fn take_back(&mut self, holder: &Holder, colors: &Colors, access: Access) -> Result<()> {
        let key = (holder.clone(), access);
        let granted = self
            .grants
            .get(&key)
            .map(|g| g.colors.clone())
            .unwrap_or_default();
        let missing = colors.difference(&granted);
        if colors.is_empty() || !missing.is_empty() {
            return Err(Error::new(format!(
                "colors {missing} are not granted to {holder}{}",
                access.suffix()
            ))
            .remedy(format!("it has {}", shown(&granted))));
        }
        let held: BTreeSet<u32> = self
            .tiles
            .values()
            .filter_map(|(color, state)| match state {
                State::Held(client, charge)
                    if colors.contains(*color)
                        && charge.access == access
                        && charge.holder.as_ref() == Some(holder) =>
                {
                    self.clients.get(client).map(|peer| peer.pid)
                }
                _ => None,
            })
            .collect();
        if let Some(pid) = held.first() {
            return Err(Error::new(format!(
                "{} memory of colors {colors}",
                match held.len() {
                    1 => format!("process {pid} holds"),
                    n => format!("process {pid} and {} more hold", n - 1),
                }
            ))
            .remedy("let them give it back, or end them"));
        }
        if access == Access::Full
            && self.tiles.values().any(|(color, state)| {
                matches!(state, State::Returning(_)) && colors.contains(*color)
            })
        {
            return Err(Error::new(format!(
                "memory of colors {colors} is still mapped by a process that inherited it"
            ))
            .remedy("end the children of the client that held it"));
        }
        if let Some(grant) = self.grants.get_mut(&key) {
            grant.colors = grant.colors.difference(colors);
            if grant.colors.is_empty() {
                self.grants.remove(&key);
                self.records.remove(&key);
            }
        }
        Ok(())
    }

    /// What outlives a server.
    pub fn rights(&self) -> Rights {
        let each = |(pid, names): (&u32, &BTreeSet<String>)| {
            names
                .iter()
                .map(|name| (*pid, name.clone()))
                .collect::<Vec<_>>()
        };
        Rights {
            grants: self.grants.values().cloned().collect(),
            groups: self.groups.iter().flat_map(each).collect(),
            names: self.names.clone(),
        }
    }

    /// Takes over the rights of a server before.
    ///
    /// # Errors
    /// They name colors that are not there now.
    pub fn restore(&mut self, rights: &Rights) -> Result<()> {
        for grant in &rights.grants {
            self.grant(
                grant.holder.clone(),
                &grant.colors,
                grant.pages,
                grant.access,
            )?;
        }
        for (pid, group) in &rights.groups {
            self.join(*pid, group.clone());
        }
        self.names.clone_from(&rights.names);
        Ok(())
    }
}
