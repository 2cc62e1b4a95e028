//! An agent with its gateway and its journal, which may crash and come back.

use outlast_agents::{Agents, Config, Entry, Event, Left, Site};
use outlast_base::time::Instant;
use outlast_gateway::gateway::{Gateway, GatewayConfig, Transmit};
use outlast_gateway::links::{InterfaceId, LinkConfig, LinkId};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_wire::Packet;
use std::net::IpAddr;

const INTERFACE: InterfaceId = InterfaceId(1);

pub(crate) fn link_to(far: IpAddr) -> LinkId {
    LinkId {
        interface: INTERFACE,
        peer: Some(far),
    }
}

/// A running agent.
pub(crate) struct Agent {
    pub(crate) gateway: Gateway,
    pub(crate) agents: Agents,
}

impl Agent {
    /// Does something with the agent, at its gateway.
    pub(crate) fn act<T>(
        &mut self,
        now: Instant,
        what: impl FnOnce(&mut Agents, &mut Site<'_>) -> T,
    ) -> T {
        let mut site = Site {
            now,
            gateway: &mut self.gateway,
            link_to: &link_to,
        };
        what(&mut self.agents, &mut site)
    }
}

/// Where an agent dies in the course of what it does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Crash {
    /// It has written down what it has frozen or taken over, and has sent nothing.
    BeforeSending,
    /// It has sent its packets, and has neither told its neighbours nor written down what is over.
    BeforeRemoval,
}

pub(crate) struct Station {
    config: Config,
    speaks: bool,
    mechanism: PathMechanismKind,
    pub(crate) agent: Option<Agent>,
    /// What is on the disk.
    pub(crate) journal: Vec<Vec<u8>>,
    /// Where it dies the next time that it could.
    pub(crate) crash: Option<Crash>,
}

/// What is to be sent and told.
#[derive(Default)]
pub(crate) struct Out {
    pub(crate) transmits: Vec<Transmit>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) events: Vec<Event>,
}

impl Out {
    pub(crate) fn is_empty(&self) -> bool {
        self.transmits.is_empty() && self.packets.is_empty() && self.events.is_empty()
    }
}

impl Station {
    pub(crate) fn new(config: Config, speaks: bool, mechanism: PathMechanismKind) -> Self {
        Self {
            config,
            speaks,
            mechanism,
            agent: None,
            journal: Vec::new(),
            crash: None,
        }
    }

    pub(crate) fn speaks(&self) -> bool {
        self.speaks
    }

    /// Starts it anew, with what it finds in its journal. `instance` is nobody else's.
    pub(crate) fn start(&mut self, now: Instant, instance: u64) {
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism: self.mechanism,
            ..GatewayConfig::default()
        });
        gateway.add_link(now, INTERFACE, LinkConfig::default());
        self.config.instance = instance;
        let mut agent = Agent {
            gateway,
            agents: Agents::new(self.config.clone()),
        };
        if self.speaks {
            let left = self.left();
            let over = left.over.iter().copied().map(Entry::Removed);
            self.journal = over.map(|entry| entry.encode()).collect();
            agent.act(now, |agents, site| agents.restore(site, left));
        }
        self.agent = Some(agent);
    }

    /// What it would find in its journal.
    pub(crate) fn left(&self) -> Left {
        let entries = self.journal.iter().map(|bytes| Entry::decode(bytes));
        let entries = entries.map(|entry| entry.expect("it was written by us"));
        entries.collect()
    }

    /// Whether it would find nothing there.
    pub(crate) fn has_nothing_left(&self) -> bool {
        self.left() == Left::default()
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        let agent = self.agent.as_ref()?;
        let gateway = agent.gateway.poll_timeout().map(|(at, _)| at);
        let agents = agent.agents.poll_timeout().map(|(at, _)| at);
        [gateway, agents].into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let Some(agent) = &mut self.agent else {
            return;
        };
        if agent
            .gateway
            .poll_timeout()
            .is_some_and(|(at, _)| at <= now)
        {
            agent.gateway.handle_timeout(now);
        }
        if agent.agents.poll_timeout().is_some_and(|(at, _)| at <= now) {
            agent.act(now, Agents::handle_timeout);
        }
    }

    /// Drains it in the order that `Agents` demands; `None` if it is not running, or dies on the
    /// way.
    pub(crate) fn drain(&mut self, now: Instant) -> Option<Out> {
        let agent = self.agent.as_mut()?;
        if self.speaks {
            while let Some(event) = agent.gateway.poll_event() {
                agent.act(now, |agents, site| {
                    agents.handle_gateway_event(site, &event);
                });
            }
        }
        let before = self.journal.len();
        self.journal
            .extend(std::iter::from_fn(|| agent.agents.poll_record()).map(|entry| entry.encode()));
        if self.crash == Some(Crash::BeforeSending) && self.journal.len() > before {
            self.agent = None;
            self.crash = None;
            return None;
        }
        let out = Out {
            transmits: std::iter::from_fn(|| agent.gateway.poll_transmit()).collect(),
            packets: std::iter::from_fn(|| agent.agents.poll_packet()).collect(),
            events: std::iter::from_fn(|| agent.agents.poll_event()).collect(),
        };
        let removals = std::iter::from_fn(|| agent.agents.poll_removal());
        let removals: Vec<_> = removals.map(|entry| entry.encode()).collect();
        if self.crash == Some(Crash::BeforeRemoval) && !removals.is_empty() {
            self.agent = None;
            self.crash = None;
        } else {
            self.journal.extend(removals);
        }
        Some(out)
    }
}
