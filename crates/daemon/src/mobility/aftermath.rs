//! What follows when a mobile node detaches or has registered elsewhere, with Mobile IPv4 and IPv6 alike.

use super::gateway::Gateway;
use super::status::Last;
use super::trigger::Trigger;
use crate::control::Notified;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::netlink::InterfaceIndex;
use std::path::PathBuf;

/// Tells the node's gateway of registrations, pulls the trigger, and remembers the last move.
pub(super) struct Aftermath {
    /// When the last registration at another place was complete, and how long it took.
    last_move: Option<(Instant, Duration)>,
    trigger: Option<Trigger>,
    /// Who is told of registrations.
    gateway: Option<Gateway>,
}

impl Aftermath {
    /// Opens the trigger, if the node wants one and the kernel allows it. `gateway` is a control socket.
    pub(super) fn new(wants_trigger: bool, gateway: Option<PathBuf>) -> Self {
        Self {
            last_move: None,
            trigger: wants_trigger.then(Trigger::open).flatten(),
            gateway: gateway.map(Gateway::at),
        }
    }

    /// The node has no place any more.
    pub(super) fn handle_detachment(&mut self) {
        if let Some(gateway) = &mut self.gateway {
            gateway.tell(Notified::Down, None);
        }
    }

    /// The node is registered at another place, after `took`; its connections leave by `interfaces`.
    pub(super) fn handle_move(
        &mut self,
        took: Duration,
        interfaces: impl Iterator<Item = InterfaceIndex>,
    ) -> anyhow::Result<()> {
        let now = clock::now();
        self.last_move = Some((now, took));
        if let Some(gateway) = &mut self.gateway {
            gateway.tell(Notified::Up, None);
        }
        match &mut self.trigger {
            Some(trigger) => trigger.pull(now, interfaces),
            None => Ok(()),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(trigger) = &mut self.trigger {
            trigger.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.trigger.as_ref().and_then(Trigger::poll_timeout)
    }

    pub(super) const fn has_trigger(&self) -> bool {
        self.trigger.is_some()
    }

    /// The last move, for the status.
    pub(super) fn last_move(&self, now: Instant) -> Option<Last> {
        self.last_move.map(|(at, took)| Last {
            took_s: took.as_secs_f64(),
            ago_s: now.since(at).as_secs_f64(),
        })
    }
}
