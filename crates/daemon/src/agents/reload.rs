//! What a reload changes among neighbours.

use super::{AgentSettings, Driver, FIRST_PAUSE, Neighbour, Place, Sessions, SharedKey};
use crate::failure::Failure;
use outlast_agents::Config;
use outlast_base::time::Instant;
use std::net::SocketAddr;

/// Settings that can be put in force without fail.
#[derive(Debug)]
pub(crate) struct Prepared {
    config: Config,
    key: Option<SharedKey>,
}

impl Driver {
    /// Reads what `next` names, and looks whether it can hold now.
    pub(crate) fn prepare(&self, next: &AgentSettings) -> Result<Prepared, Failure> {
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
    pub(crate) fn reload(&mut self, place: &mut Place<'_>, prepared: Prepared) {
        let Prepared { config, key } = prepared;
        let Some(sessions) = &mut self.sessions else {
            // Without neighbours there is only the patience, which nobody needs.
            return;
        };
        if let Some(key) = key
            && key.0 != sessions.key.0
        {
            sessions.take_key(key, place.now);
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

impl Sessions {
    /// Has another key from now on. Connections that have no session yet have begun with the former
    /// one, and end; those that this side has made are made anew.
    fn take_key(&mut self, key: SharedKey, now: Instant) {
        self.key = key;
        self.connections.retain(|_, connection| connection.is_up());
        for known in self.neighbours.values_mut() {
            if known.dialling.take().is_some() {
                known.dial_at = Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::noise::Noise;
    use super::super::tests::{Surroundings, on_a_loopback};
    use super::super::{Driver, key};
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::path::Path;

    const OURS: &str = "127.0.0.1:7348";
    const THEIRS: &str = "127.0.0.2:7348";

    fn settings(key: &Path, journal: &Path) -> AgentSettings {
        AgentSettings::between(OURS, &[THEIRS], key, journal)
    }

    /// Whether a neighbour gets a session that has asked for it by a key before a reload, which makes
    /// that the former one, or leaves it.
    fn gets_a_session(is_changed: bool) -> bool {
        let place = tempfile::tempdir().expect("a place");
        let [former, next] = ["former.key", "next.key"].map(|name| place.path().join(name));
        for path in [&former, &next] {
            assert!(key::make(path).is_ok());
        }
        let journal = place.path().join("journal");
        let mut around = Surroundings::new();
        let mut driver = around.open(&settings(&former, &journal));
        let mut site = around.place();
        // Who has connected, and whether there is a session.
        let sessions = |driver: &Driver| {
            let sessions = driver.sessions.as_ref().expect("it listens");
            let is_up = sessions.neighbours.values().any(|n| n.session.is_some());
            (sessions.connections.keys().next().copied(), is_up)
        };
        let key = SharedKey::load(&former).expect("made");
        let mut noise = Noise::dial(&key, THEIRS.parse().expect("literal")).expect("a side");
        let mut stream = TcpStream::connect(OURS).expect("it listens");
        stream
            .write_all(&std::mem::take(&mut noise.out))
            .expect("room");
        driver.accept(&mut site);
        let (token, _) = sessions(&driver);
        let token = token.expect("it was accepted");
        driver.serve(&mut site, token);
        let mut answer = [0; 256];
        let length = stream.read(&mut answer).expect("it answers");
        noise.receive(&answer[..length]).expect("it has the key");
        let named = if is_changed { &next } else { &former };
        let Ok(prepared) = driver.prepare(&settings(named, &journal)) else {
            panic!("it is a key")
        };
        driver.reload(&mut site, prepared);
        // With this the session is there, if anybody listens still.
        drop(stream.write_all(&noise.out));
        driver.serve(&mut site, token);
        sessions(&driver).1
    }

    #[test]
    fn a_key_that_a_reload_has_replaced_opens_no_session_any_more() {
        on_a_loopback(|| {
            assert!(gets_a_session(false));
            assert!(!gets_a_session(true));
        });
    }
}
