//! What may change while an agent runs. Nothing that is kept is lost by it.

use super::{Agents, Config, Own};
use crate::prefix::Prefix;
use alloc::vec::Vec;
use core::net::SocketAddr;

/// Connections are being handed over to or from a neighbour that is to go. Nothing has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{connections} frozen connections are being handed over to or from {neighbour}")]
pub struct StillNeeded {
    /// The neighbour.
    pub neighbour: SocketAddr,
    /// How many connections.
    pub connections: usize,
}

impl Agents {
    /// The mobiles that are served; all of them if it is empty.
    #[must_use]
    pub fn mobiles(&self) -> &[Prefix] {
        &self.config.mobiles
    }

    /// Whether [`Self::reconfigure`] would be refused.
    ///
    /// # Errors
    /// [`StillNeeded`] if so.
    pub fn can_reconfigure(&self, next: &Config) -> Result<(), StillNeeded> {
        for neighbour in self.dropped_by(next) {
            let depends = |own: &&Own| own.is_lent_to(neighbour) || own.from == Some(neighbour);
            let connections = self.own.values().filter(depends).count();
            if connections > 0 {
                return Err(StillNeeded {
                    neighbour,
                    connections,
                });
            }
        }
        Ok(())
    }

    /// Has other neighbours, mobiles and patience from now on; the instance stays. What a neighbour
    /// that goes has frozen is none of this agent's business any more, and its channel is to be
    /// closed by the driver. Which of their frozen connections are noted for other mobiles,
    /// neighbours tell at the beginning of their next session.
    ///
    /// # Errors
    /// [`StillNeeded`] if a neighbour that is to go delivers a segment that is kept here, or has
    /// given one; nothing has changed then.
    pub fn reconfigure(&mut self, next: Config) -> Result<(), StillNeeded> {
        self.can_reconfigure(&next)?;
        for gone in self.dropped_by(&next) {
            self.neighbours.remove(&gone);
            self.awaited.retain(|(_, agent, _)| *agent != gone);
            self.moved.forget_where(|to| to == gone);
        }
        self.forget_what_is_known();
        for agent in &next.neighbours {
            self.neighbours.entry(*agent).or_default();
        }
        self.config = Config {
            instance: self.config.instance,
            ..next
        };
        Ok(())
    }

    fn dropped_by(&self, next: &Config) -> Vec<SocketAddr> {
        let named = self.neighbours.keys().copied();
        named.filter(|n| !next.neighbours.contains(n)).collect()
    }
}
