//! Silent peers, as the kernel tells of them: a packet from one of them is an indicator.

use super::interfaces::{Moved, News, What};
use super::lacking::Lacking;
use super::returns::Return;
use super::{Daemon, MOST_EVENTS};
use outlast_base::time::Instant;
use outlast_gateway::links::{InterfaceId, LinkId};
use outlast_host::{Restored, Watch};
use outlast_linux::netlink::InterfaceIndex;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::silence::{PeerEvent, Silence, SilenceError};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// What does not work without the programs.
const WITHOUT: &str = "outages beyond the first hop are not noticed, and after them each connection waits for its timer";

/// The programs, and the peers whose packets they are to notice.
pub(super) struct SilentPeers {
    /// What is lacking, where they cannot be had.
    programs: Result<Silence, Lacking>,
    watched: BTreeSet<IpAddr>,
}

impl SilentPeers {
    pub(super) fn begin() -> Self {
        let programs = Silence::begin();
        let programs = programs.map_err(|error| Lacking::of(WITHOUT, error.lack()));
        if let Err(lacking) = &programs {
            lacking.warn();
        }
        Self {
            programs,
            watched: BTreeSet::new(),
        }
    }

    /// What is lacking, if anything is.
    pub(super) fn lacking(&self) -> Option<&Lacking> {
        self.programs.as_ref().err()
    }

    /// Has the poller tell of events, if there can be any.
    pub(super) fn watch(&self, poller: &Poller, token: Token) -> io::Result<()> {
        match &self.programs {
            Ok(programs) => poller.add(programs, token, Interest::Readable),
            Err(_) => Ok(()),
        }
    }

    /// Timeouts of peers that found no room.
    pub(super) fn refused(&self) -> u64 {
        let refused = self.programs.as_ref().ok().map(Silence::refused);
        let refused = refused
            .map(|count| count.inspect_err(|error| tracing::warn!("{}", error.with_causes())));
        refused.and_then(Result::ok).unwrap_or_default()
    }

    /// How many peers are silent.
    pub(super) fn count(&self) -> usize {
        self.watched.len()
    }

    fn note(&mut self, watch: Watch) -> Result<(), SilenceError> {
        let Ok(programs) = &mut self.programs else {
            return Ok(());
        };
        match watch {
            Watch::Begin(peer) => {
                self.watched.insert(peer);
                programs.remember(peer)?;
            }
            Watch::End(peer) => {
                self.watched.remove(&peer);
                programs.forget(peer)?;
            }
        }
        Ok(())
    }

    /// Notices packets while there is anybody whose packets count.
    fn settle(&mut self) -> Result<(), SilenceError> {
        let is_wanted = !self.watched.is_empty();
        self.programs
            .as_mut()
            .map_or(Ok(()), |programs| programs.watch(is_wanted))
    }
}

impl Daemon {
    /// Connections have timed out, or silent peers are heard again.
    pub(super) fn hear_peers(&mut self, now: Instant) {
        let mut events = Vec::new();
        if let Ok(programs) = &mut self.silent_peers.programs {
            events.extend(std::iter::from_fn(|| programs.poll_event()).take(MOST_EVENTS));
        }
        let mut heard = Vec::new();
        for event in events {
            match event {
                PeerEvent::TimedOut(peer) => {
                    self.host.handle_timeouts_of(now, peer, &mut self.stack);
                }
                PeerEvent::Heard(peer, index) => {
                    let interface = InterfaceId(index);
                    if self.interfaces.name_of(InterfaceIndex(index)).is_some() {
                        let peer = Some(peer);
                        heard.push(LinkId { interface, peer });
                    }
                }
            }
        }
        self.host.handle_arrivals(now, heard, &mut self.stack);
    }

    /// Notices packets of the peers that the agent takes for silent.
    pub(super) fn follow_silence(&mut self) {
        let mut outcome = Ok(());
        while let Some(watch) = self.host.poll_watch() {
            outcome = outcome.and(self.silent_peers.note(watch));
        }
        outcome = outcome.and(self.silent_peers.settle());
        if let Err(error) = outcome {
            let why = error.with_causes();
            tracing::warn!("packets of silent peers are not noticed: {why}");
        }
    }

    /// A pass was made as a silent peer was heard again.
    pub(super) fn note_first_packet(&mut self, now: Instant, restored: &Restored) {
        let index = InterfaceIndex(restored.link.interface.0);
        let name = self.interfaces.name_of(index).unwrap_or_default();
        let news = News {
            index: Some(index),
            name: name.to_owned(),
            peer: restored.link.peer,
            by: restored.by,
            what: What::Back {
                away: restored.outage,
                leads_on: false,
            },
            moved: Moved::No,
        };
        self.tally.note(&news);
        super::tell(&news);
        self.returns.add(Return {
            link: restored.link,
            interface: news.name,
            peer: news.peer,
            by: news.by,
            away: restored.outage,
            at: now,
            found: None,
        });
    }
}
