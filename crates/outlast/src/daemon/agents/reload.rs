//! What a reload changes among neighbours.

use super::{AgentSettings, Driver, FIRST_PAUSE, Neighbour, Place, SharedKey};
use crate::failure::Failure;
use outlast_agents::Config;
use std::net::SocketAddr;

/// Settings that can be put in force without fail.
#[derive(Debug)]
pub(in crate::daemon) struct Prepared {
    config: Config,
    key: Option<SharedKey>,
}

impl Driver {
    /// Reads what `next` names, and looks whether it can hold now.
    pub(in crate::daemon) fn prepare(&self, next: &AgentSettings) -> Result<Prepared, Failure> {
        let config = next.config(0);
        self.agents.can_reconfigure(&config).map_err(|needed| {
            Failure::Usage(format!(
                "{} cannot leave `neighbours` yet: {needed}; reload again when that is over",
                needed.neighbour
            ))
        })?;
        let key = next.listen.as_ref().map(|(_, key)| SharedKey::load(key));
        Ok(Prepared {
            config,
            key: key.transpose()?,
        })
    }

    /// Puts it in force. Sessions with neighbours that stay go on, unless other mobiles are served:
    /// then they begin anew, for that is when neighbours tell what they have frozen.
    pub(in crate::daemon) fn reload(&mut self, place: &mut Place<'_>, prepared: Prepared) {
        let Prepared { config, key } = prepared;
        let Some(sessions) = &mut self.sessions else {
            // Without neighbours there is only the patience, which nobody needs.
            return;
        };
        if let Some(key) = key {
            sessions.key = key;
        }
        let serves_others = self.agents.mobiles() != config.mobiles;
        let named = config.neighbours.clone();
        let is_gone = |neighbour: &SocketAddr| !named.contains(neighbour);
        let gone: Vec<_> = sessions
            .neighbours
            .keys()
            .copied()
            .filter(is_gone)
            .collect();
        for neighbour in gone {
            if let Some(known) = sessions.neighbours.remove(&neighbour) {
                for token in [known.session, known.dialling].into_iter().flatten() {
                    sessions.connections.remove(&token);
                }
                tracing::info!(%neighbour, "no neighbour any more");
            }
        }
        let own = sessions.own;
        for neighbour in named {
            if !sessions.neighbours.contains_key(&neighbour) {
                tracing::info!(%neighbour, "a neighbour from now on");
            }
            let dial_at = (own < neighbour).then_some(place.now);
            sessions
                .neighbours
                .entry(neighbour)
                .or_insert_with(|| Neighbour {
                    dial_at,
                    pause: FIRST_PAUSE,
                    ..Neighbour::default()
                });
        }
        let up: Vec<_> = sessions
            .neighbours
            .values()
            .filter_map(|n| n.session)
            .collect();
        if let Err(needed) = self.agents.reconfigure(config) {
            // Between preparing and this nothing else was done.
            tracing::error!("neighbours stay as they were: {needed}");
            return;
        }
        if serves_others {
            let mobiles = self.agents.mobiles().len();
            tracing::info!(mobiles, "other mobile hosts are served from now on");
            for token in up {
                self.close(place, token, "other mobile hosts are served from now on");
            }
        }
    }
}
