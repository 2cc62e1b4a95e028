//! The whole way between the two hosts: the mobile's link, and whatever links lie behind it on the
//! fixed side, in a chain. Between two links stands a router that takes no time. Lab and simulator
//! share it as they share [`Path`].
//!
//! Each link is a [`Path`] of its own, with its own outages, queues and gateways; a gateway hears of
//! its own link only. Datagrams of cross traffic cross one link and end behind it.
//!
//! Where the mobile host goes from gateway to gateway, the first link is one of several that meet at
//! a router (`roaming`).
//!
//! Where both hosts speak HIP, their packets go through that before the first link and behind the last (`hip`).
//!
//! After each call of a `handle_*` method the driver drains [`Route::poll_carrier`], then
//! [`Route::poll_transmit`] and [`Route::poll_indicator`], then reads [`Route::poll_timeout`].

mod channels;
mod hip;
mod mobile_ip;
mod roaming;

use crate::hip::HipOutcome;
use crate::path::{Load, Path, Watch};
use crate::roaming::{RoamingOutcome, RoamingSetup};
use crate::side::Side;
use crate::traffic::is_cross_traffic;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use hip::Hip;
use outlast_base::time::Instant;
use outlast_gateway::links::LinkState;
use outlast_wire::Transport;
use roaming::Roaming;

/// Empty loads that are kept.
const MAX_SPARE: usize = 1_024;

/// The chain of links, watched by a `W` each.
#[derive(Debug)]
pub struct Route<W: Watch> {
    /// The mobile's link.
    first: Path<W>,
    /// The links behind it, that of the fixed host last.
    further: Vec<Path<W>>,
    /// The links that the mobile may be on besides the first one.
    roaming: Option<Box<Roaming<W>>>,
    /// The hosts' HIP.
    hip: Option<Box<Hip<W::Load>>>,
    /// Changes of the mobile's link, of which HIP has heard.
    carrier: VecDeque<LinkState>,
    /// There is one link, and nothing else.
    is_lone: bool,
    /// Loads that were delivered, for others.
    spare: Vec<W::Load>,
    /// What came out of the chain, if it has more than one link, and cross traffic.
    outbox: VecDeque<(Side, W::Load)>,
    /// When the workload's first byte came to a link.
    started: Option<Instant>,
}

/// What is left of a route.
#[derive(Debug)]
pub struct Links<W: Watch> {
    /// The mobile's link.
    pub first: Path<W>,
    /// The links behind it.
    pub further: Vec<Path<W>>,
    /// The links of further gateways, and what else came of them.
    pub roaming: Option<(RoamingOutcome, Vec<Path<W>>)>,
    /// What came of HIP, if the hosts speak it.
    pub hip: Option<HipOutcome>,
}

impl<W: Watch> Route<W> {
    /// The mobile's link `first`, and the links `further` on towards the fixed host.
    #[must_use]
    pub fn new(first: Path<W>, further: Vec<Path<W>>) -> Self {
        Self {
            is_lone: further.is_empty(),
            first,
            further,
            roaming: None,
            hip: None,
            carrier: VecDeque::new(),
            spare: Vec::new(),
            outbox: VecDeque::new(),
            started: None,
        }
    }

    /// The mobile host, whose address is `mobile`, goes from gateway to gateway from `now` on; the first
    /// link is [`RoamingSetup::first_link`], `cells` are [`RoamingSetup::further_links`].
    pub fn roam(
        &mut self,
        now: Instant,
        setup: &RoamingSetup,
        cells: Vec<Path<W>>,
        mobile: IpAddr,
        seed: u64,
    ) {
        let roaming = Roaming::new(now, setup, &mut self.first, cells, mobile, seed);
        self.roaming = Some(Box::new(roaming));
        self.is_lone = false;
    }

    /// The host of `side` has sent a packet.
    #[inline]
    pub fn handle_packet(&mut self, now: Instant, side: Side, load: W::Load) {
        if self.started.is_none() && has_payload(&load) {
            self.start(now);
        }
        if self.is_lone {
            self.first.handle_packet(now, side, load);
        } else {
            self.handle_packet_of_chain(now, side, load);
        }
    }

    #[inline(never)]
    fn handle_packet_of_chain(&mut self, now: Instant, side: Side, load: W::Load) {
        match self.hip {
            None => self.enter_chain(now, side, load),
            Some(_) => self.seal(now, side, load),
        }
        self.forward_along(now);
    }

    fn enter_chain(&mut self, now: Instant, side: Side, load: W::Load) {
        match (side, self.further.last_mut()) {
            (Side::Fixed, Some(last)) => last.handle_packet(now, side, load),
            (Side::Fixed, None) => self.handle_packet_at_router(now, load),
            (Side::Mobile, _) => self.handle_packet_of_mobile(now, load),
        }
    }

    /// A datagram of cross traffic comes to the end at `side` of link `number`, counted from the
    /// mobile's. One for a link that is not there goes nowhere.
    pub fn handle_cross_traffic(&mut self, now: Instant, number: usize, side: Side, load: W::Load) {
        if let Some(link) = self.link_mut(number) {
            link.handle_packet(now, side, load);
        }
        self.forward(now);
    }

    /// A packet to be written over.
    #[inline]
    pub(crate) fn spare(&mut self) -> W::Load
    where
        W::Load: Default,
    {
        self.spare.pop().unwrap_or_default()
    }

    /// What comes out of the route now, if that is one packet and nothing else happens now: the
    /// same as [`Self::handle_timeout`] and then [`Self::poll_transmit`], in fewer steps. Otherwise
    /// nothing has changed.
    #[inline]
    pub(crate) fn take_lone_arrival(&mut self, now: Instant) -> Option<(Side, W::Load)> {
        if !self.is_lone {
            return None;
        }
        self.first.take_lone_arrival(now)
    }

    /// Time has come to `now`.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.roaming.is_some() {
            self.wake_roaming(now);
        }
        self.first.handle_timeout(now);
        for link in &mut self.further {
            if link.poll_timeout() <= now {
                link.handle_timeout(now);
            }
        }
        if let Some(hip) = &mut self.hip
            && hip.poll_timeout() <= now
        {
            hip.handle_timeout(now);
        }
        self.forward(now);
    }

    /// Whether [`Self::poll_carrier`], [`Self::poll_indicator`] or [`Self::poll_transmit`] has something.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        let of_cells = |roaming: &Roaming<W>| roaming.has_news();
        let of_hip = |hip: &Hip<W::Load>| hip.has_indicator();
        !self.outbox.is_empty()
            || !self.carrier.is_empty()
            || self.hip.as_deref().is_some_and(of_hip)
            || self.first.has_news()
            || self.roaming.as_deref().is_some_and(of_cells)
    }

    /// The mobile's link went up or down.
    #[must_use]
    #[inline]
    pub fn poll_carrier(&mut self) -> Option<LinkState> {
        match (&self.hip, &self.roaming) {
            (Some(_), _) => self.carrier.pop_front(),
            (None, None) => self.first.poll_carrier(),
            (None, Some(_)) => self.poll_carrier_of_cells(),
        }
    }

    /// What comes out of the route for good, and at which end: a packet for the host of that side,
    /// or a datagram of cross traffic.
    #[must_use]
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<(Side, W::Load)> {
        // With one link nothing is ever forwarded, and all that comes out is there.
        self.outbox
            .pop_front()
            .or_else(|| self.first.poll_transmit())
    }

    /// When to call [`Self::handle_timeout`]; [`Instant::FAR_FUTURE`] if nothing is due.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        let first = self.first.poll_timeout();
        if self.is_lone {
            return first;
        }
        let roaming = self.roaming.as_ref();
        let roaming = roaming.map(|roaming| roaming.poll_timeout(self.started));
        let hip = self.hip.as_deref().map(Hip::poll_timeout);
        let further = self.further.iter().map(Path::poll_timeout);
        further.chain(roaming).chain(hip).fold(first, Instant::min)
    }

    /// Takes back a load from [`Self::poll_transmit`].
    #[inline]
    pub(crate) fn take_back(&mut self, load: W::Load) {
        // Copies that a link makes are loads of their own.
        if self.spare.len() < MAX_SPARE {
            self.spare.push(load);
        }
    }

    /// The mobile's link.
    #[must_use]
    pub fn first(&self) -> &Path<W> {
        &self.first
    }

    /// When the workload's first byte came to a link.
    #[must_use]
    pub fn started(&self) -> Option<Instant> {
        self.started
    }

    /// Whether the link that the mobile is on is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        match &self.roaming {
            None => self.first.is_up(),
            Some(roaming) => roaming.is_up(&self.first),
        }
    }

    /// How often the mobile was cut off so far.
    #[must_use]
    pub fn outages(&self) -> u64 {
        match &self.roaming {
            None => self.first.outages(),
            Some(roaming) => roaming.handoffs_begun.max(self.first.outages()),
        }
    }

    /// Packets that gateways of the mobile's have put on the path so far.
    #[must_use]
    pub fn injected(&self) -> u64 {
        let roaming = self.roaming.as_ref();
        self.first.counts().injected() + roaming.map_or(0, |roaming| roaming.injected())
    }

    /// Its links.
    #[must_use]
    pub fn into_links(self) -> Links<W> {
        let roaming = self.roaming.map(|roaming| roaming.finish(&self.first));
        Links {
            first: self.first,
            further: self.further,
            roaming,
            hip: self.hip.map(|hip| hip.finish()),
        }
    }

    /// The outages of all links begin to count.
    #[cold]
    fn start(&mut self, now: Instant) {
        self.started = Some(now);
        self.first.start(now);
        for link in &mut self.further {
            link.start(now);
        }
        if self.roaming.is_some() {
            self.start_roaming(now);
        }
        self.forward(now);
    }

    fn link_mut(&mut self, number: usize) -> Option<&mut Path<W>> {
        match number.checked_sub(1) {
            None => Some(&mut self.first),
            Some(further) => self.further.get_mut(further),
        }
    }

    /// Lets what has come out of one link enter the next.
    fn forward(&mut self, now: Instant) {
        if !self.is_lone {
            self.forward_along(now);
        }
    }

    fn forward_along(&mut self, now: Instant) {
        // What enters a link may come out of it at once, and what a gateway sends back may have to
        // go the other way: this goes on until nothing moves.
        loop {
            let mut is_quiet = true;
            for link in &mut self.further {
                // Only the mobile's link is waited for.
                while link.poll_carrier().is_some() {}
            }
            for number in 0..=self.further.len() {
                while let Some((side, load)) = self.link_mut(number).and_then(Path::poll_transmit) {
                    is_quiet = false;
                    self.leave_link(now, number, side, load);
                }
            }
            if self.roaming.is_some() {
                is_quiet &= !self.forward_from_cells(now);
            }
            if self.hip.is_some() {
                self.note_carrier_for_hip(now);
                is_quiet &= !self.act_for_hip(now);
            }
            if is_quiet {
                break;
            }
        }
        if self.roaming.is_some() {
            self.send_messages(now);
        }
    }

    /// A packet came out of link `number`; the first one may be the link of a gateway with an agent.
    fn leave_link(&mut self, now: Instant, number: usize, side: Side, load: W::Load) {
        let load = match number == 0 && self.roaming.is_some() {
            true => self.leave_cell(now, 0, side, load),
            false => Some(load),
        };
        if let Some(load) = load {
            self.send_on(now, number, side, load);
        }
    }

    /// A packet from link `number` goes on at `side`.
    fn send_on(&mut self, now: Instant, number: usize, side: Side, load: W::Load) {
        let is_at_router = number == 0 && side == Side::Fixed && self.roaming.is_some();
        if !is_at_router || self.passes_router(now, &load) {
            self.send_beyond(now, number, side, load);
        }
    }

    fn send_beyond(&mut self, now: Instant, number: usize, side: Side, load: W::Load) {
        let next = match side {
            Side::Fixed => Some(number + 1),
            Side::Mobile => number.checked_sub(1),
        };
        let next = next.filter(|_| goes_on(&load));
        if next == Some(0) {
            self.handle_packet_at_router(now, load);
            return;
        }
        match next.and_then(|next| self.link_mut(next)) {
            // It leaves at one end of a link and enters at the facing end of the next.
            Some(link) => link.handle_packet(now, side.peer(), load),
            None => self.leave_route(now, side, load),
        }
    }
}

/// Whether it may be the workload's first byte: handshakes carry no payload.
#[must_use]
pub fn has_payload(load: &impl Load) -> bool {
    load.packet().is_some_and(|packet| {
        let header = packet.header();
        let transport = matches!(header.transport, Transport::Tcp(_) | Transport::Udp(_));
        transport && header.payload_len > 0
    })
}

/// Whether it is a host's, and goes on to the next link.
fn goes_on(load: &impl Load) -> bool {
    let packet = load.packet();
    packet.is_none_or(|packet| packet.tcp().is_some() || !is_cross_traffic(packet))
}
