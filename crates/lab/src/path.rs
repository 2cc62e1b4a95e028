//! The path between the two hosts: what hosts send becomes a load, and the workload's first byte
//! starts the outages.
//!
//! After each call of a `handle_*` method the emulator drains [`HostPath::poll_transmit`] and arms
//! a timer for [`HostPath::poll_timeout`].

use crate::frame::Content;
use crate::observer::Observer;
use bytes::Bytes;
use outlast_core::mechanisms::path::PathMechanismKind;
use outlast_core::time::Instant;
use outlast_link::LinkConfig;
use outlast_wire::Transport;
use outlast_world::Side;
use outlast_world::path::{Load, Path, PathOutcome};
use outlast_world::trace::Trace;

/// The path of bytes from and for hosts.
#[derive(Debug)]
pub(crate) struct HostPath {
    path: Path<Observer>,
    /// When the workload's first byte came to the link.
    started: Option<Instant>,
}

impl HostPath {
    /// A path at `now` with `mechanisms` (by [`Side::index`]) at its two ends.
    pub(crate) fn new(
        now: Instant,
        link: LinkConfig,
        mechanisms: [PathMechanismKind; 2],
        trace: Option<Trace>,
        observer: Observer,
    ) -> Self {
        let is_captured = observer.capture.is_some();
        Self {
            path: Path::new(now, link, mechanisms, trace, is_captured, observer),
            started: None,
        }
    }

    /// The host of `side` has sent a packet.
    pub(crate) fn handle_packet(&mut self, now: Instant, side: Side, bytes: Bytes) {
        let content = Content::of(bytes);
        if self.started.is_none() && has_payload(&content) {
            self.started = Some(now);
            self.path.watch_mut().start(now);
            self.path.start(now);
        }
        self.path.handle_packet(now, side, content);
        self.note_carrier();
    }

    /// Time has come to `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.path.handle_timeout(now);
        self.note_carrier();
    }

    /// A packet for the host of a side.
    #[must_use]
    pub(crate) fn poll_transmit(&mut self) -> Option<(Side, Bytes)> {
        let (side, content) = self.path.poll_transmit()?;
        Some((side, content.to_bytes()))
    }

    /// When to call [`Self::handle_timeout`].
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        Some(self.path.poll_timeout()).filter(|&due| due < Instant::FAR_FUTURE)
    }

    /// The kernel of a host had no room for a packet.
    pub(crate) fn refused(&mut self) {
        self.path.watch_mut().refused();
    }

    /// When the workload's first byte came to the link.
    pub(crate) fn started(&self) -> Option<Instant> {
        self.started
    }

    /// Nothing more is to come.
    pub(crate) fn finish(self) -> PathOutcome<Observer> {
        self.path.finish()
    }

    /// The observer has heard of it.
    fn note_carrier(&mut self) {
        while self.path.poll_carrier().is_some() {}
    }
}

/// Whether it may be the workload's first byte: handshakes carry none.
fn has_payload(content: &Content) -> bool {
    content.packet().is_some_and(|packet| {
        let header = packet.header();
        let transport = matches!(header.transport, Transport::Tcp(_) | Transport::Udp(_));
        transport && header.payload_len > 0
    })
}

#[cfg(test)]
mod tests;
