//! What an agent writes down, so that it knows after a crash what it has frozen.
//!
//! A journal is a sequence of entries in the order of [`Agents::poll_record`](crate::Agents) and
//! [`Agents::poll_removal`](crate::Agents). How entries are told from each other and from what a
//! crash has left half written is the driver's matter.

use crate::codec::{DecodeError, Reader, Writer};
use crate::message::FreezeId;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::SocketAddr;
use outlast_gateway::tracking::FrozenFlow;

/// A frozen connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kept {
    /// The freeze, as the agent has named it that began it.
    pub id: FreezeId,
    /// Whom it was taken over from; nobody, if it was frozen here.
    pub from: Option<SocketAddr>,
    /// The connection, with its segment.
    pub flow: FrozenFlow,
}

/// One entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Entry {
    /// From now on this is kept; in place of what was kept under the same name.
    Kept(Box<Kept>),
    /// No longer: it is over. It is said once more when every neighbour has heard that, or is lost: an
    /// agent that is started before that, and keeps nothing of it, would seem to have lost it.
    Removed(FreezeId),
}

/// What a journal says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Left {
    /// What is kept.
    pub kept: BTreeMap<FreezeId, Kept>,
    /// What is over, of which neighbours are still to hear.
    pub over: BTreeSet<FreezeId>,
}

const KEPT: u8 = 1;
const REMOVED: u8 = 2;

impl Entry {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Self::Kept(kept) => {
                let Kept { id, from, flow } = &**kept;
                out.u8(KEPT);
                out.id(*id);
                out.u8(u8::from(from.is_some()));
                if let Some(from) = from {
                    out.socket(*from);
                }
                out.flow(flow);
            }
            Self::Removed(id) => {
                out.u8(REMOVED);
                out.id(*id);
            }
        }
        out.finish()
    }

    /// The entry that `bytes` are.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that [`Self::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::new(bytes);
        let entry = match input.u8()? {
            KEPT => {
                let id = input.id()?;
                let from = match input.is_present()? {
                    true => Some(input.socket()?),
                    false => None,
                };
                let flow = input.flow()?;
                Self::Kept(Box::new(Kept { id, from, flow }))
            }
            REMOVED => Self::Removed(input.id()?),
            other => return Err(DecodeError::UnknownKind(other)),
        };
        input.end()?;
        Ok(entry)
    }
}

impl Left {
    /// What it says with one more entry.
    pub fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Kept(kept) => {
                self.over.remove(&kept.id);
                self.kept.insert(kept.id, *kept);
            }
            Entry::Removed(id) => {
                self.kept.remove(&id);
                if !self.over.remove(&id) {
                    self.over.insert(id);
                }
            }
        }
    }

    /// The entries of a journal that says this.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let over = self.over.iter().copied().map(Entry::Removed);
        let kept = self.kept.values().cloned();
        over.chain(kept.map(|kept| Entry::Kept(Box::new(kept))))
    }
}

impl FromIterator<Entry> for Left {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut left = Self::default();
        for entry in entries {
            left.apply(entry);
        }
        left
    }
}
