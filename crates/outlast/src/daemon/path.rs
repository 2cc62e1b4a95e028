//! The data path through user space: every packet of the interface waits in an NFQUEUE for the
//! gateway's verdict.
//!
//! It fails open: packets pass when this process is too slow or gone. Super-segments come whole
//! and are cut for the gateway; one that passes goes on whole.

use super::config::Settings;
use bytes::Bytes;
use outlast_core::gateway::Transmit;
use outlast_core::link::Direction;
use outlast_linux::netfilter::NetfilterError;
use outlast_linux::netfilter::queue::{Hook, PacketId, Queue, Ruling};
use outlast_linux::netfilter::rules::{RuleSet, Rules};
use outlast_linux::raw::{RawSender, Sent};
use outlast_wire::Packet;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::net::IpAddr;

/// Queues are tried from here on, so that several daemons share a host.
const FIRST_QUEUE: u16 = 20_300;
const QUEUES: u16 = 64;

/// What every host takes without fragmentation: IPv6's minimum (RFC 8200, section 5).
const SAFE_MTU: u32 = 1280;

/// What the data path could not do for a packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct PathCounters {
    /// Packets that passed unseen: malformed, or longer than the kernel hands over.
    pub(super) unseen: u64,
    /// Super-segments that were cut, because only a part of them passed.
    pub(super) cut: u64,
    /// Packets of the gateway for which there was no way, or no room.
    pub(super) unsent: u64,
}

/// The data path of one interface. Dropped, it lets everything pass.
#[derive(Debug)]
pub(super) struct QueuePath {
    queue: Queue,
    number: u16,
    /// In force while this lives.
    rules: Option<Rules>,
    table: String,
    interface: String,
    mark: u32,
    to_link: Option<RawSender>,
    from_link: RawSender,
    mtu: u32,
    pub(super) counters: PathCounters,
}

/// A packet that waits for its verdict.
#[derive(Debug)]
pub(super) struct Waiting {
    id: PacketId,
    pub(super) direction: Direction,
    /// As the link carries them: a super-segment towards it is several.
    pub(super) packets: Vec<Packet>,
}

/// What came out of the queue.
#[derive(Debug)]
pub(super) enum Taken {
    /// Nothing waits.
    Nothing,
    /// It was let pass: the gateway has nothing to do with it.
    Passed,
    /// The gateway is to say.
    Waiting(Waiting),
}

impl QueuePath {
    /// Takes a queue; nothing is handed to it yet.
    pub(super) fn open(settings: &Settings) -> Result<Self, NetfilterError> {
        let (queue, number) = take_queue(settings.queue)?;
        let from_link = RawSender::open(settings.mark, None).map_err(NetfilterError::Socket)?;
        Ok(Self {
            queue,
            number,
            rules: None,
            table: format!("outlast-{}", settings.interface),
            interface: settings.interface.clone(),
            mark: settings.mark,
            to_link: None,
            from_link,
            mtu: SAFE_MTU,
            counters: PathCounters::default(),
        })
    }

    /// From now on packets come.
    pub(super) fn begin(&mut self) -> Result<(), NetfilterError> {
        let rules = Rules::install(&RuleSet {
            table: &self.table,
            interface: &self.interface,
            queue: self.number,
            mark: self.mark,
        })?;
        if !rules.is_untracked() {
            tracing::warn!(
                "this kernel cannot exempt packets from connection tracking: do not translate \
                 addresses on {}",
                self.interface
            );
        }
        self.rules = Some(rules);
        Ok(())
    }

    /// The interface is there, perhaps anew, or its MTU is another.
    pub(super) fn attach(&mut self, mtu: u32, is_new: bool) -> io::Result<()> {
        self.mtu = mtu;
        if is_new || self.to_link.is_none() {
            self.to_link = Some(RawSender::open(self.mark, Some(&self.interface))?);
        }
        Ok(())
    }

    /// The interface is gone.
    pub(super) fn detach(&mut self) {
        self.to_link = None;
    }

    /// One line on what is used, and why.
    pub(super) fn describe(&self) -> String {
        format!(
            "NFQUEUE {}: every packet through user space, for this version has no eBPF path",
            self.number
        )
    }

    /// The next packet.
    pub(super) fn take(&mut self) -> io::Result<Taken> {
        let Some(queued) = self.queue.receive()? else {
            return Ok(Taken::Nothing);
        };
        let (id, lacks_checksum) = (queued.id, queued.lacks_checksum);
        let direction = match queued.hook {
            Hook::Sent => Some(Direction::ToLink),
            Hook::Received => Some(Direction::FromLink),
            Hook::Other(_) => None,
        };
        let packet = if queued.is_truncated {
            None
        } else {
            Packet::parse(Bytes::copy_from_slice(queued.bytes)).ok()
        };
        let (Some(direction), Some(packet)) = (direction, packet) else {
            self.counters.unseen += 1;
            self.queue.give(id, Ruling::Accept)?;
            return Ok(Taken::Passed);
        };
        if concerns_the_link(&packet) {
            self.queue.give(id, Ruling::Accept)?;
            return Ok(Taken::Passed);
        }
        Ok(Taken::Waiting(Waiting {
            id,
            direction,
            packets: self.as_carried(packet, direction, lacks_checksum),
        }))
    }

    /// The packets that the link carries for `packet`, with checksums: they may be kept.
    fn as_carried(
        &self,
        packet: Packet,
        direction: Direction,
        lacks_checksum: bool,
    ) -> Vec<Packet> {
        if direction == Direction::ToLink
            && packet.total_len() > self.mtu
            && let Ok(segments) = packet.segment_to_mtu(self.mtu)
        {
            return segments.collect();
        }
        if lacks_checksum && packet.total_len() <= self.mtu {
            let mut edit = packet.edit();
            edit.fill_checksums();
            return vec![edit.finish()];
        }
        vec![packet]
    }

    /// Ends a packet's wait: `passed` are those of its [`Waiting::packets`] that go on.
    pub(super) fn release(&mut self, waiting: &Waiting, passed: &[Packet]) -> io::Result<()> {
        if passed.len() == waiting.packets.len() {
            return self.queue.give(waiting.id, Ruling::Accept);
        }
        self.queue.give(waiting.id, Ruling::Drop)?;
        self.counters.cut += u64::from(!passed.is_empty());
        for packet in passed {
            if self.send(waiting.direction, packet)? != Sent::Accepted {
                self.counters.unsent += 1;
            }
        }
        Ok(())
    }

    /// Sends what the gateway wants sent; whether there was room for it.
    pub(super) fn transmit(&mut self, transmit: &Transmit) -> io::Result<Sent> {
        let sent = self.send(transmit.direction, &transmit.packet)?;
        self.counters.unsent += u64::from(sent != Sent::Accepted);
        Ok(sent)
    }

    fn send(&self, direction: Direction, packet: &Packet) -> io::Result<Sent> {
        let sender = match direction {
            Direction::ToLink => match &self.to_link {
                Some(sender) => sender,
                None => return Ok(Sent::Unreachable),
            },
            Direction::FromLink => &self.from_link,
        };
        // It was kept under another MTU, or the path beyond the link has a smaller one.
        match send_cut(sender, packet, self.mtu)? {
            Sent::TooLong => send_cut(sender, packet, SAFE_MTU),
            sent => Ok(sent),
        }
    }
}

impl AsFd for QueuePath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// Sends `packet` in pieces of at most `mtu` bytes; one that cannot be cut goes as it is.
fn send_cut(sender: &RawSender, packet: &Packet, mtu: u32) -> io::Result<Sent> {
    let destination = packet.header().ip.destination;
    let send = |packet: &Packet| sender.send(destination, &packet.to_bytes());
    let Ok(pieces) = packet.segment_to_mtu(mtu) else {
        return send(packet);
    };
    let mut worst = Sent::Accepted;
    for piece in pieces {
        let sent = send(&piece)?;
        if sent == Sent::TooLong {
            return Ok(sent);
        }
        if sent != Sent::Accepted {
            worst = sent;
        }
    }
    Ok(worst)
}

fn take_queue(wanted: Option<u16>) -> Result<(Queue, u16), NetfilterError> {
    let (first, count) = wanted.map_or((FIRST_QUEUE, QUEUES), |number| (number, 1));
    let mut number = first;
    loop {
        match Queue::take(number) {
            Ok(queue) => return Ok((queue, number)),
            Err(NetfilterError::QueueTaken { .. }) if number + 1 < first.saturating_add(count) => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a packet is about the link itself: neighbour discovery, address configuration, routing
/// protocols. It is of use now or not at all, and whether a peer is back is known from it.
fn concerns_the_link(packet: &Packet) -> bool {
    let ip = packet.header().ip;
    is_of_the_link(ip.source) || is_of_the_link(ip.destination)
}

fn is_of_the_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
                || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local()
        }
    }
}
