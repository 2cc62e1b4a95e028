//! Packets, events and records of gateway and agents, in an order that makes a crash harmless: a
//! frozen connection is on the disk before any host or neighbour hears that it is frozen.

use super::Daemon;
use super::agents::{Driver, Place, Tokens};
use super::config::Settings;
use super::indicators::INTERFACE;
use super::path::Waiting;
use super::status::{indicator, state};
use super::{FIRST_NEIGHBOUR, NEIGHBOURS, Token, random};
use crate::failure::Failure;
use outlast_base::time::Instant;
use outlast_gateway::gateway::{DropCause, Event, Transmit};
use outlast_gateway::links::{Direction, LinkId, LinkState};
use outlast_gateway::mechanisms::path::SendReason;
use outlast_gateway::tracking::FlowKey;
use outlast_linux::clock;
use outlast_linux::poller::Poller;
use outlast_linux::raw::Sent;
use outlast_wire::Packet;
use std::io;

/// This gateway's part among its neighbours, if it is to have one.
pub(super) fn open_agents(
    now: Instant,
    settings: &Settings,
    poller: &Poller,
) -> Result<Option<Driver>, Failure> {
    let Some(agents) = &settings.agents else {
        return Ok(None);
    };
    let tokens = Tokens {
        listener: NEIGHBOURS,
        first: FIRST_NEIGHBOUR,
    };
    let ours = (settings.mark, random()?);
    Driver::open(now, agents, ours, poller, tokens).map(Some)
}

impl Daemon {
    /// Handles events and sends packets and messages, until none are left.
    pub(super) fn drain(&mut self, now: Instant) -> io::Result<()> {
        loop {
            let mut is_news = self.tell(now);
            while let Some(transmit) = self.gateway.poll_transmit() {
                self.send(now, &transmit)?;
                is_news = true;
            }
            while let Some(packet) = self.agents.as_mut().and_then(Driver::poll_packet) {
                // The host routes the packet: its destination may no longer be behind this link.
                let transmit = Transmit {
                    link: LinkId::of_interface(INTERFACE),
                    direction: Direction::FromLink,
                    packet,
                    reason: SendReason::Reset,
                };
                self.send(now, &transmit)?;
            }
            is_news |= self.with_agents(now, Driver::settle).unwrap_or_default();
            if !is_news {
                return Ok(());
            }
        }
    }

    /// Handles the gateway's events, and writes down what must outlast a crash.
    ///
    /// Call it before packets are sent. Returns whether there were events.
    pub(super) fn tell(&mut self, now: Instant) -> bool {
        let mut is_news = false;
        while let Some(event) = self.gateway.poll_event() {
            is_news = true;
            self.with_agents(now, |agents, place| {
                agents.handle_gateway_event(place, &event);
            });
            match event {
                Event::Link(event) => {
                    let peer = event.link.peer.map(tracing::field::display);
                    self.tally.note_link(&event);
                    self.outages.note_link(now, clock::unix_offset(), &event);
                    let (state, by) = (state(event.state), indicator(event.indicator));
                    tracing::info!(%state, %by, peer, "link");
                    if event.state == LinkState::Up {
                        // Before any packet for the peer: the gateway's are sent when its events are told.
                        self.remind(now, event.link);
                    }
                }
                Event::Silent { link, since } => {
                    let peer = link.peer.map(tracing::field::display);
                    let for_s = now.since(since).as_secs_f64();
                    self.outages.note_silent(link, since);
                    tracing::info!(peer, for_s, "silent");
                }
                Event::Resumed {
                    flow,
                    link,
                    after,
                    round_trip,
                } => {
                    let after_s = after.as_secs_f64();
                    tracing::debug!(near = %flow.near, far = %flow.far, after_s, "resumed");
                    self.tally.note_resume(after);
                    self.resumes.note(now, flow, after);
                    self.outages.note_resumed(flow, link, after, round_trip);
                }
                Event::Frozen { flow } => {
                    tracing::debug!(near = %flow.near, far = %flow.far, "frozen");
                }
                Event::Thawed { flow, is_reset } => {
                    tracing::debug!(near = %flow.near, far = %flow.far, is_reset, "thawed");
                }
            }
        }
        if let Some(agents) = &mut self.agents {
            agents.write_down();
        }
        is_news
    }

    /// Sends `transmits`, after the events that belong to them are handled.
    pub(super) fn tell_and_send(&mut self, now: Instant, transmits: &[Transmit]) -> io::Result<()> {
        if !transmits.is_empty() {
            self.tell(now);
        }
        for transmit in transmits {
            self.send(now, transmit)?;
        }
        Ok(())
    }

    pub(super) fn send(&mut self, now: Instant, transmit: &Transmit) -> io::Result<()> {
        let reason = transmit.reason;
        if matches!(reason, SendReason::WindowClosed | SendReason::WindowOpened) {
            // The record is written before any host hears of the acknowledgement.
            self.write_pledge(&transmit.packet, transmit.direction);
        }
        if transmit.reason == SendReason::Probe {
            self.remind_with_probe(now, transmit.link);
        }
        let longest = self
            .gateway
            .longest_packet(&transmit.packet, transmit.direction);
        let smaller = self.compressed(now, transmit, longest);
        let sent = match &smaller {
            Some(smaller) => self.path.transmit(smaller, longest)?,
            None => self.path.transmit(transmit, longest)?,
        };
        self.send_between()?;
        if sent == Sent::NoRoom && transmit.direction == Direction::ToLink {
            let (link, packet) = (transmit.link, &transmit.packet);
            self.gateway
                .handle_drop(now, link, packet, DropCause::Congestion);
        }
        Ok(())
    }

    /// Writes down the pledge of the packet's connection, as the packet leaves it.
    ///
    /// With agents nothing is written here: their journal has what is frozen.
    fn write_pledge(&mut self, packet: &Packet, direction: Direction) {
        if self.agents.is_none()
            && let Some(key) = FlowKey::of_tcp(packet.header(), direction)
        {
            self.pledges.note(key, self.gateway.pledge(&key));
        }
    }

    /// Updates the pledge of a crossing packet's connection, if one is written down.
    pub(super) fn follow_pledge(&mut self, packet: &Packet, direction: Direction) {
        if !self.pledges.is_empty()
            && FlowKey::of_tcp(packet.header(), direction).is_some_and(|key| self.pledges.has(&key))
        {
            self.write_pledge(packet, direction);
        }
    }

    /// Leaves connections acknowledged ahead to the guardian, which ends them, at the daemon's end.
    pub(super) fn leave_pledges(&mut self) {
        let keys: Vec<_> = self.pledges.keys().copied().collect();
        for key in keys.into_iter().filter(|key| !self.orphans.has(key)) {
            self.pledges.note(key, self.gateway.pledge(&key));
        }
        if !self.pledges.is_empty() {
            self.path.leave_guardian();
        }
    }

    pub(super) fn tell_of_orphans(&self) {
        let connections = self.orphans.len();
        if connections > 0 {
            tracing::warn!(
                connections,
                "the last daemon left connections that it had acknowledged ahead: they are reset"
            );
        }
    }

    /// Goes on with the connections that an earlier process left frozen, or resets them.
    pub(super) fn restore_frozen(&mut self, now: Instant) -> io::Result<()> {
        let restored = self.with_agents(now, Driver::restore).unwrap_or_default();
        if restored > 0 {
            tracing::warn!(connections = restored, "frozen when the last daemon ended");
        }
        self.drain(now)
    }

    /// Tells the agents that a peer is there, which may be a mobile host.
    pub(super) fn note_arrival(&mut self, now: Instant, link: LinkId) {
        if let Some(peer) = link.peer {
            self.with_agents(now, |agents, place| agents.handle_arrival(place, peer));
        }
    }

    /// Serves a neighbour gateway that connects or sends.
    pub(super) fn hear_neighbours(&mut self, now: Instant, token: Token) -> io::Result<()> {
        self.with_agents(now, |agents, place| match token {
            NEIGHBOURS => agents.accept(place),
            Token(connection) => agents.serve(place, connection),
        });
        self.drain(now)
    }

    /// Whether all waiting packets belong to sessions between neighbour gateways.
    pub(super) fn is_of_neighbours(&self, waiting: &Waiting) -> bool {
        let is_own = |agents: &Driver| waiting.packets.iter().all(|packet| agents.is_own(packet));
        self.agents.as_ref().is_some_and(is_own)
    }

    pub(super) fn with_agents<T>(
        &mut self,
        now: Instant,
        what: impl FnOnce(&mut Driver, &mut Place<'_>) -> T,
    ) -> Option<T> {
        let agents = self.agents.as_mut()?;
        let mut place = Place {
            now,
            gateway: &mut self.gateway,
            indicators: &self.indicators,
            poller: &self.poller,
        };
        Some(what(agents, &mut place))
    }
}
