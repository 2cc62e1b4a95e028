//! The agents that a mobile node hears, and how it asks for more (RFC 5944, section 2.4).

use crate::transmit::{Arrival, LinkAddress, LinkId};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;
use outlast_wire::mobile_ip::{AgentAdvertisement, AgentFlags, Lifetime, solicitation};

/// As many agents as are remembered.
const MOST_AGENTS: usize = 16;
/// All routers on the link.
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 11);
const BETWEEN_FIRST: Duration = Duration::from_secs(1);
const FIRST_SOLICITATIONS: u32 = 3;
const LONGEST_BETWEEN: Duration = Duration::from_secs(60);
/// Sequence numbers below it tell that the agent was started anew.
const FIRST_AFTER_WRAP: u16 = 256;

/// An agent as its last advertisement describes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Agent {
    pub(super) address: Ipv4Addr,
    pub(super) link: LinkId,
    pub(super) node: LinkAddress,
    pub(super) registration_lifetime: Lifetime,
    pub(super) expires_at: Instant,
    heard_at: Instant,
    first_care_of: Option<Ipv4Addr>,
    flags: AgentFlags,
    sequence: u16,
    /// The network's prefix as bits, and its length.
    prefix: Option<(u32, u8)>,
}

impl Agent {
    pub(super) fn new(
        now: Instant,
        arrival: Arrival,
        address: Ipv4Addr,
        advertisement: &AgentAdvertisement,
    ) -> Self {
        let lengths = advertisement.prefix_lengths.iter();
        let mut prefixes = advertisement.routers.iter().zip(lengths);
        let prefix = prefixes.next().map(|(router, &length)| {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32)));
            (router.address.to_bits() & mask.unwrap_or(0), length)
        });
        Self {
            address,
            link: arrival.link,
            node: arrival.from,
            registration_lifetime: advertisement.registration_lifetime,
            expires_at: now + Duration::from_secs(advertisement.lifetime_s.into()),
            heard_at: now,
            first_care_of: advertisement.care_of_addresses.first().copied(),
            flags: advertisement.flags,
            sequence: advertisement.sequence,
            prefix,
        }
    }

    pub(super) fn is_home(&self, home_agent: Ipv4Addr) -> bool {
        self.address == home_agent && self.flags.has(AgentFlags::HOME_AGENT)
    }

    pub(super) const fn is_busy(&self) -> bool {
        self.flags.has(AgentFlags::BUSY)
    }

    pub(super) const fn demands_registration(&self) -> bool {
        self.flags.has(AgentFlags::REGISTRATION_REQUIRED)
    }

    /// The care-of address that a foreign agent offers.
    pub(super) fn care_of_address(&self) -> Option<Ipv4Addr> {
        let is_foreign = self.flags.has(AgentFlags::FOREIGN_AGENT);
        self.first_care_of.filter(|_| is_foreign)
    }

    /// Whether an advertisement should have come since the last one. An agent advertises itself three times in
    /// its lifetime (section 2.3): half of it without a word means that the node was elsewhere, or that one
    /// was lost.
    fn has_missed_one(&self, now: Instant) -> bool {
        now.since(self.heard_at) > self.expires_at.since(self.heard_at) / 2
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.address, self.link) == (other.address, other.link)
    }
}

/// What an advertisement says that was not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Heard {
    /// The agent was not heard before, or at least one advertisement before this one was not.
    pub(super) is_new: bool,
    /// The agent was started anew (section 2.3.2).
    pub(super) is_restarted: bool,
    /// There was no room, and another agent was forgotten.
    pub(super) is_one_forgotten: bool,
}

/// The agents that are heard, and the one that is used.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    heard: Vec<Agent>,
    current: Option<Agent>,
    solicited: u32,
    next_solicitation: Instant,
    stream: Stream,
}

impl Surroundings {
    pub(super) fn new(now: Instant, seed: u64) -> Self {
        Self {
            heard: Vec::new(),
            current: None,
            solicited: 0,
            next_solicitation: now,
            stream: Stream::new(seed, "agent solicitations"),
        }
    }

    /// An advertisement is heard.
    pub(super) fn hear(&mut self, now: Instant, agent: Agent) -> Heard {
        let mut heard = Heard {
            is_new: true,
            is_restarted: false,
            is_one_forgotten: false,
        };
        if let Some(known) = self.heard.iter_mut().find(|known| known.is_same(&agent)) {
            heard.is_new = known.expires_at <= now || known.has_missed_one(now);
            heard.is_restarted =
                agent.sequence < FIRST_AFTER_WRAP && agent.sequence < known.sequence;
            *known = agent;
        } else {
            if self.heard.len() >= MOST_AGENTS {
                let ages = self.heard.iter().enumerate();
                let oldest = ages.min_by_key(|(_, known)| known.expires_at);
                if let Some((at, _)) = oldest {
                    self.heard.swap_remove(at);
                    heard.is_one_forgotten = true;
                }
            }
            self.heard.push(agent);
        }
        if let Some(current) = &mut self.current
            && current.is_same(&agent)
        {
            *current = agent;
        }
        heard
    }

    pub(super) const fn current(&self) -> Option<Agent> {
        self.current
    }

    pub(super) const fn set_current(&mut self, agent: Option<Agent>) {
        self.current = agent;
    }

    pub(super) fn heard_from(&self, address: Ipv4Addr) -> Option<Agent> {
        let mut heard = self.heard.iter().copied();
        heard.find(|agent| agent.address == address)
    }

    /// Forgets all agents of a link.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.heard.retain(|agent| agent.link != link);
        self.current = self.current.filter(|agent| agent.link != link);
    }

    /// The agent that was heard last, but for `lost`, and whose advertisement is true.
    pub(super) fn best(&self, now: Instant, lost: Option<&Agent>) -> Option<Agent> {
        let usable = self.heard.iter().filter(|agent| {
            agent.expires_at > now
                && !agent.is_busy()
                && lost.is_none_or(|lost| !lost.is_same(agent))
        });
        usable.max_by_key(|agent| agent.heard_at).copied()
    }

    /// An agent of another prefix than `current`'s that was heard after it; both have to tell theirs.
    pub(super) fn newer_of_other_prefix(&self, now: Instant, current: &Agent) -> Option<Agent> {
        let own = current.prefix?;
        let newer = self.best(now, Some(current))?;
        let is_other = newer.prefix.is_some_and(|prefix| prefix != own);
        (is_other && newer.heard_at > current.heard_at).then_some(newer)
    }

    /// Solicitations begin anew.
    pub(super) const fn search(&mut self, now: Instant) {
        self.solicited = 0;
        self.next_solicitation = now;
    }

    pub(super) const fn next_solicitation(&self) -> Instant {
        self.next_solicitation
    }

    /// The solicitation that is due: three a second apart, then each after twice the time, up to a
    /// minute (section 2.4).
    pub(super) fn solicit(&mut self, now: Instant, source: Ipv4Addr) -> Option<Packet> {
        if self.next_solicitation > now {
            return None;
        }
        self.solicited = self.solicited.saturating_add(1);
        let doublings = self.solicited.saturating_sub(FIRST_SOLICITATIONS).min(6);
        let gap = (BETWEEN_FIRST * (1 << doublings)).min(LONGEST_BETWEEN);
        // At most one a second: chance only adds.
        let spread = 1.0 + 0.1 * self.stream.unit();
        self.next_solicitation = now + gap.mul_f64(spread);
        Some(Packet::agent_discovery(
            source,
            ALL_ROUTERS,
            &solicitation(),
        ))
    }
}
