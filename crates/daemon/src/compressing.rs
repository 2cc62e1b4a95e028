//! Compression on the link: behind the gateway on the way out, in front of it on the way in.

use super::Daemon;
use super::config::Settings;
use super::indicators::INTERFACE;
use super::path::Waiting;
use super::random;
use outlast_base::time::Instant;
use outlast_compression::{Arrival, Compression, Config, Level};
use outlast_gateway::gateway::Transmit;
use outlast_gateway::links::{Direction, LinkId};
use outlast_gateway::mechanisms::path::SendReason;
use outlast_wire::Packet;
use std::borrow::Cow;
use std::io;

/// This end of the link, if payload is compressed on it.
pub(super) fn open(settings: &Settings) -> io::Result<Option<Compression>> {
    let Some(part) = settings.compression else {
        return Ok(None);
    };
    Ok(Some(Compression::new(Config {
        part,
        level: Level::of_rate(settings.rate),
        rate: settings.rate,
        // Until the interface is found.
        longest: 0,
        seed: random()?,
        ..Config::default()
    })))
}

impl Daemon {
    /// The packets of `waiting` as they were before the link, and whether they are others than have come.
    pub(super) fn restored<'a>(
        &mut self,
        now: Instant,
        waiting: &'a Waiting,
    ) -> (Cow<'a, [Packet]>, bool) {
        let packets = Cow::Borrowed(waiting.packets.as_slice());
        let Some(compression) = &mut self.compression else {
            return (packets, false);
        };
        if waiting.direction == Direction::ToLink {
            return (packets, false);
        }
        let mut others = Vec::new();
        let mut is_changed = false;
        for packet in &waiting.packets {
            match compression.handle_from_link(now, packet) {
                Arrival::Unchanged => others.push(packet.clone()),
                Arrival::Restored(restored) => {
                    is_changed = true;
                    others.push(restored);
                }
                Arrival::Consumed => is_changed = true,
            }
        }
        match is_changed {
            true => (Cow::Owned(others), true),
            false => (packets, false),
        }
    }

    /// Compresses what goes towards the link; whether anything has changed.
    pub(super) fn compress(&mut self, now: Instant, packets: &mut [Packet]) -> bool {
        let Some(compression) = &mut self.compression else {
            return false;
        };
        let mut is_changed = false;
        for packet in packets {
            if let Some(smaller) = compression.handle_to_link(now, packet) {
                *packet = smaller;
                is_changed = true;
            }
        }
        self.follow_gain();
        is_changed
    }

    /// What goes in the stead of a packet of the gateway's; `None`: it goes as it is.
    pub(super) fn compressed(
        &mut self,
        now: Instant,
        transmit: &Transmit,
        longest: Option<u32>,
    ) -> Option<Transmit> {
        let compression = self.compression.as_mut()?;
        let mtu = self.indicators.mtu();
        // What is longer is cut first: its pieces go as they are.
        let fits = transmit.packet.total_len() <= longest.map_or(mtu, |longest| longest.min(mtu));
        if transmit.direction == Direction::FromLink || !fits {
            return None;
        }
        let packet = compression.handle_to_link(now, &transmit.packet);
        self.follow_gain();
        let packet = packet?;
        Some(Transmit {
            packet,
            link: transmit.link,
            direction: transmit.direction,
            reason: transmit.reason,
        })
    }

    /// Tells the gateway how much faster the link is as it carries fewer bytes.
    fn follow_gain(&mut self) {
        if let Some(rate) = self.compression.as_mut().and_then(Compression::poll_rate) {
            self.gateway.adjust_rate(INTERFACE, rate);
        }
    }

    /// Sends offers to the other end of the link, and answers.
    pub(super) fn send_between(&mut self) -> io::Result<()> {
        while let Some(packet) = self
            .compression
            .as_mut()
            .and_then(Compression::poll_transmit)
        {
            let transmit = Transmit {
                link: LinkId::of_interface(INTERFACE),
                direction: Direction::ToLink,
                packet,
                reason: SendReason::Compression,
            };
            // An offer that finds no room is made again.
            let _ = self.path.transmit(&transmit, None)?;
        }
        Ok(())
    }
}
