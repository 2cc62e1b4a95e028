//! The whole way between the two hosts: the mobile's link, and whatever links lie behind it on the
//! fixed side, in a chain. Between two links stands a router that takes no time.
//!
//! Each link is a [`Path`] of its own, with its own outages, queues and gateways; a gateway hears of
//! its own link only. Datagrams of cross traffic cross one link and end behind it.
//!
//! After each call of a `handle_*` method the driver drains [`Route::poll_carrier`], then
//! [`Route::poll_transmit`], then reads [`Route::poll_timeout`].

use crate::path::Path;
use crate::side::Side;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use outlast_core::link::LinkState;
use outlast_core::time::Instant;
use outlast_wire::Packet;

/// The chain of links.
#[derive(Debug)]
pub(crate) struct Route {
    /// The mobile's link.
    first: Path,
    /// The links behind it, that of the fixed host last.
    further: Vec<Path>,
    /// What came out of the chain, if it has more than one link, and cross traffic.
    outbox: VecDeque<Outcoming>,
    /// When the workload's first byte came to a link.
    started: Option<Instant>,
}

/// What comes out of a link for good.
#[derive(Debug)]
pub(crate) enum Outcoming {
    /// A packet for the host of a side.
    ToHost(Side, Box<Packet>),
    /// A datagram of cross traffic.
    Crossed(Box<Packet>),
}

impl Route {
    /// The mobile's link `first`, and the links `further` on towards the fixed host.
    pub(crate) fn new(first: Path, further: Vec<Path>) -> Self {
        Self {
            first,
            further,
            outbox: VecDeque::new(),
            started: None,
        }
    }

    /// The host of `side` has sent a packet.
    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Instant, side: Side, packet: Box<Packet>) {
        // Handshakes carry no payload: the first that does is the workload's first byte.
        if self.started.is_none() && packet.header().payload_len > 0 {
            self.start(now);
        }
        match (side, self.further.last_mut()) {
            (Side::Fixed, Some(last)) => last.handle_packet(now, side, packet),
            _ => self.first.handle_packet(now, side, packet),
        }
        self.forward(now);
    }

    /// A datagram of cross traffic comes to the end at `side` of link `number`, counted from the
    /// mobile's.
    pub(crate) fn handle_cross_traffic(
        &mut self,
        now: Instant,
        number: usize,
        side: Side,
        packet: Box<Packet>,
    ) {
        if let Some(link) = self.link_mut(number) {
            link.handle_packet(now, side, packet);
        }
        self.forward(now);
    }

    /// A packet to be written over.
    #[inline]
    pub(crate) fn spare(&mut self) -> Box<Packet> {
        self.first.spare()
    }

    /// What comes out of the route now, if that is one packet and nothing else happens now: the
    /// same as [`Self::handle_timeout`] and then [`Self::poll_transmit`], in fewer steps. Otherwise
    /// nothing has changed.
    #[inline]
    pub(crate) fn take_lone_arrival(&mut self, now: Instant) -> Option<Outcoming> {
        if !self.further.is_empty() {
            return None;
        }
        let (side, packet) = self.first.take_lone_arrival(now)?;
        Some(outcoming(side, packet))
    }

    /// Time has come to `now`.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.first.handle_timeout(now);
        for link in &mut self.further {
            if link.poll_timeout() <= now {
                link.handle_timeout(now);
            }
        }
        self.forward(now);
    }

    /// The mobile's link went up or down.
    #[must_use]
    #[inline]
    pub(crate) fn poll_carrier(&mut self) -> Option<LinkState> {
        self.first.poll_carrier()
    }

    /// What comes out of the route.
    #[must_use]
    #[inline]
    pub(crate) fn poll_transmit(&mut self) -> Option<Outcoming> {
        if let Some(outcoming) = self.outbox.pop_front() {
            return Some(outcoming);
        }
        // With one link nothing is ever forwarded, and all that comes out is there.
        let (side, packet) = self.first.poll_transmit()?;
        Some(outcoming(side, packet))
    }

    /// When to call [`Self::handle_timeout`]; [`Instant::FAR_FUTURE`] if nothing is due.
    #[must_use]
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Instant {
        let further = self.further.iter().map(Path::poll_timeout);
        further.fold(self.first.poll_timeout(), Instant::min)
    }

    /// Takes back the box of a packet from [`Self::poll_transmit`].
    #[inline]
    pub(crate) fn take_back(&mut self, packet: Box<Packet>) {
        self.first.take_back(packet);
    }

    /// When the workload's first byte came to a link.
    pub(crate) fn started(&self) -> Option<Instant> {
        self.started
    }

    /// The links, that of the mobile first.
    pub(crate) fn into_links(self) -> (Path, Vec<Path>) {
        (self.first, self.further)
    }

    /// The outages of all links begin to count.
    #[cold]
    fn start(&mut self, now: Instant) {
        self.started = Some(now);
        self.first.start(now);
        for link in &mut self.further {
            link.start(now);
        }
        self.forward(now);
    }

    fn link_mut(&mut self, number: usize) -> Option<&mut Path> {
        match number.checked_sub(1) {
            None => Some(&mut self.first),
            Some(further) => self.further.get_mut(further),
        }
    }

    /// Lets what has come out of one link enter the next.
    #[inline]
    fn forward(&mut self, now: Instant) {
        if !self.further.is_empty() {
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
                while let Some((side, packet)) = self.link_mut(number).and_then(Path::poll_transmit)
                {
                    is_quiet = false;
                    self.send_on(now, number, side, packet);
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    /// A packet came out of link `number` at `side`.
    fn send_on(&mut self, now: Instant, number: usize, side: Side, packet: Box<Packet>) {
        let next = match side {
            Side::Fixed => Some(number + 1),
            Side::Mobile => number.checked_sub(1),
        };
        let next = next.filter(|_| packet.tcp().is_some());
        match next.and_then(|next| self.link_mut(next)) {
            // It leaves at one end of a link and enters at the facing end of the next.
            Some(link) => link.handle_packet(now, side.peer(), packet),
            None => self.outbox.push_back(outcoming(side, packet)),
        }
    }
}

#[inline]
fn outcoming(side: Side, packet: Box<Packet>) -> Outcoming {
    if packet.tcp().is_some() {
        Outcoming::ToHost(side, packet)
    } else {
        Outcoming::Crossed(packet)
    }
}
