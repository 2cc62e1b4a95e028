//! The way through user space: packets of the interface wait in an NFQUEUE for the gateway's
//! verdict - all of them, or those of some addresses.
//!
//! It fails open: packets pass when this process is too slow, stopped or gone. Only what still waits when the rules are
//! removed is lost, which is why the queue is emptied before. Where all packets come,
//! super-segments come whole and are cut for the gateway; one that passes goes on whole.

use super::sending::{LinkSender, Sender};
use super::{as_carried, completed};
use crate::config::Settings;
use crate::pledges;
use bytes::Bytes;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::Transmit;
use outlast_gateway::links::Direction;
use outlast_linux::guardian::{Guardian, Pulse};
use outlast_linux::netfilter::NetfilterError;
use outlast_linux::netfilter::queue::{Hook, PacketId, Queue, Ruling};
use outlast_linux::netfilter::rules::{AddressRange, Method, RuleSet, Rules, Scope};
use outlast_linux::raw::{RawSender, Sent};
use outlast_linux::tracker::remove_left_filters;
use outlast_wire::{IcmpNotice, Packet, Transport};
use rustix::fd::{AsFd, BorrowedFd};
use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Queues are tried from here on, so that several daemons share a host.
const FIRST_QUEUE: u16 = 20_300;
const QUEUES: u16 = 64;

/// What every host takes without fragmentation: IPv6's minimum (RFC 8200, section 5).
const SAFE_MTU: u32 = 1280;

/// How long the kernel cuts super-segments once a connection's packet length is unknown.
///
/// Connections that send super-segments show their packet length within this time.
const LEARNING: Duration = Duration::from_secs(1);

/// The protocol of neighbour discovery.
const ICMPV6: u8 = 58;

/// What the data path could not do for a packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct PathCounters {
    /// Packets that passed unseen: malformed, or longer than the kernel hands over.
    pub(crate) unseen: u64,
    /// Super-segments that were cut, because only a part of them passed.
    pub(crate) cut: u64,
    /// Packets of the gateway for which there was no way, or no room.
    pub(crate) unsent: u64,
    /// Packets of the gateway that a firewall of this host has dropped.
    pub(crate) forbidden: u64,
    /// Packets that the gateway was not shown, or that it has not sent, as they might have left in clear text.
    pub(crate) unprotected: u64,
}

/// The queue of one interface. Dropped, it lets everything pass.
#[derive(Debug)]
pub(super) struct QueuePath {
    /// Lets packets pass that this process does not take. The first field, to be dropped first.
    guardian: Guardian,
    /// The file of the connections that the guardian has to end.
    pledges: PathBuf,
    /// Shows the guardian that this process runs.
    pulse: Pulse,
    queue: Queue,
    number: u16,
    /// In force while this lives.
    rules: Option<Rules>,
    /// How rules are installed here, once that is known.
    method: Option<Method>,
    table: String,
    interface: String,
    mark: u32,
    to_link: Option<LinkSender>,
    from_link: RawSender,
    mtu: u32,
    /// Until then the kernel cuts super-segments.
    learns_until: Option<Instant>,
    identification: Cell<u16>,
    pub(super) counters: PathCounters,
}

/// A packet that waits for its verdict.
#[derive(Debug)]
pub(crate) struct Waiting {
    id: PacketId,
    pub(crate) direction: Direction,
    /// As the link carries them: a super-segment towards it is several.
    pub(crate) packets: Vec<Packet>,
    /// Whether it came as one super-segment, so that the daemon chose the packets' lengths.
    pub(crate) is_aggregate: bool,
}

/// What came out of the queue.
#[derive(Debug)]
pub(crate) enum FromQueue {
    /// Nothing waits.
    Nothing,
    /// A packet was accepted without asking the gateway.
    Passed,
    /// A packet waits for the gateway's verdict.
    Waiting(Waiting),
}

impl QueuePath {
    /// Takes a queue; nothing is handed to it yet.
    pub(super) fn open(settings: &Settings) -> Result<Self, NetfilterError> {
        let (mut queue, number) = take_queue(settings.queue)?;
        let pledges = pledges::file_of(settings);
        let pulse = Pulse::new().map_err(NetfilterError::Socket)?;
        let guardian = guardian_of(
            &pulse,
            &mut queue,
            &settings.interface,
            &pledges,
            settings.mark,
        )
        .map_err(NetfilterError::Socket)?;
        let from_link = RawSender::open(settings.mark, None).map_err(unsendable)?;
        Ok(Self {
            guardian,
            pledges,
            pulse,
            queue,
            number,
            rules: None,
            method: None,
            table: format!("outlast-{}", settings.interface),
            interface: settings.interface.clone(),
            mark: settings.mark,
            to_link: None,
            from_link,
            mtu: SAFE_MTU,
            learns_until: None,
            identification: Cell::new(1),
            counters: PathCounters::default(),
        })
    }

    pub(super) const fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    pub(super) const fn guardian(&self) -> &Guardian {
        &self.guardian
    }

    pub(super) const fn leave_guardian(&mut self) {
        self.guardian.leave();
    }

    /// Somebody has killed the guardian: there is another one.
    pub(super) fn renew_guardian(&mut self) -> io::Result<()> {
        let Self { pulse, queue, .. } = self;
        self.guardian = guardian_of(pulse, queue, &self.interface, &self.pledges, self.mark)?;
        Ok(())
    }

    /// From now on every packet comes.
    pub(super) fn take_everything(&mut self) -> Result<(), NetfilterError> {
        self.install(Scope::Everything)
    }

    /// Finds out whether rules for addresses can be installed, and how.
    pub(super) fn rehearse(&mut self) -> Result<(), NetfilterError> {
        self.install(Scope::Ranges(&[]))?;
        self.rules = None;
        Ok(())
    }

    /// From now on the packets of these addresses come, and no others.
    pub(super) fn take_only(&mut self, ranges: &[AddressRange]) -> Result<(), NetfilterError> {
        match &mut self.rules {
            Some(rules) => rules.replace(ranges),
            None => self.install(Scope::Ranges(ranges)),
        }
    }

    /// No packets come any more. Those that wait still are dropped by the kernel.
    pub(super) fn take_nothing(&mut self) {
        self.rules = None;
    }

    /// Whether super-segments come whole from now on.
    pub(super) fn take_aggregates(&self, whole: bool) -> Result<(), NetfilterError> {
        self.queue.take_aggregates(whole)
    }

    fn install(&mut self, scope: Scope<'_>) -> Result<(), NetfilterError> {
        let set = RuleSet {
            table: &self.table,
            interface: &self.interface,
            queue: self.number,
            mark: self.mark,
            scope,
        };
        // A table of the same name would be in the way.
        self.rules = None;
        let rules = match self.method {
            Some(method) => Rules::install_by(&set, method)?,
            None => Rules::install(&set)?,
        };
        if !rules.is_untracked() && self.method.is_none() {
            tracing::warn!(
                "this kernel cannot exempt packets from connection tracking: do not translate \
                 addresses on {}",
                self.interface
            );
        }
        self.method = Some(rules.method());
        self.rules = Some(rules);
        Ok(())
    }

    /// The interface is there, perhaps anew, or its MTU is another.
    pub(super) fn attach(&mut self, mtu: u32, is_new: bool) -> io::Result<()> {
        self.mtu = mtu;
        if is_new || self.to_link.is_none() {
            self.to_link = Some(LinkSender::open(self.mark, &self.interface)?);
        }
        Ok(())
    }

    /// The interface is gone.
    pub(super) fn detach(&mut self) {
        self.to_link = None;
    }

    pub(super) const fn number(&self) -> u16 {
        self.number
    }

    /// The longest packet that the interface carries whole.
    pub(super) const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// The next packet. `longest_of` says of one that is to be cut how long its pieces may be, as far
    /// as that is known; the MTU is the most.
    pub(super) fn take(
        &mut self,
        now: Instant,
        longest_of: impl Fn(&Packet, Direction) -> Option<u32>,
    ) -> io::Result<FromQueue> {
        if self.learns_until.is_some_and(|until| now >= until) {
            self.learns_until = None;
            self.take_aggregates(true).map_err(io::Error::other)?;
        }
        let Some(queued) = self.queue.receive()? else {
            return Ok(FromQueue::Nothing);
        };
        let (id, lacks_checksum) = (queued.id, queued.lacks_checksum);
        let is_aggregate = queued.is_aggregate;
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
            return Ok(FromQueue::Passed);
        };
        if self.may_lack_protection(now, &packet, direction)? {
            self.count(Sent::Unprotected);
            self.queue.give(id, Ruling::Accept)?;
            return Ok(FromQueue::Passed);
        }
        // Only the kernel knows of what datagrams an aggregate is made.
        let is_opaque = is_aggregate && direction == Direction::ToLink && packet.tcp().is_none();
        self.counters.unseen += u64::from(is_opaque);
        if is_opaque || concerns_the_link(&packet) {
            self.queue.give(id, Ruling::Accept)?;
            return Ok(FromQueue::Passed);
        }
        let packets = match direction {
            Direction::ToLink => {
                let longest = longest_of(&packet, direction);
                if is_aggregate && longest.is_none() && self.learns_until.is_none() {
                    self.take_aggregates(false).map_err(io::Error::other)?;
                    self.learns_until = Some(now + LEARNING);
                }
                let longest = longest.map_or(self.mtu, |longest| longest.min(self.mtu));
                as_carried(packet, longest, lacks_checksum)
            }
            Direction::FromLink => vec![completed(packet, self.mtu, lacks_checksum)],
        };
        Ok(FromQueue::Waiting(Waiting {
            id,
            direction,
            packets,
            is_aggregate,
        }))
    }

    /// Ends a packet's wait: `passed` are those of its [`Waiting::packets`] that go on.
    pub(super) fn release(&mut self, waiting: &Waiting, passed: &[Packet]) -> io::Result<()> {
        if passed.len() == waiting.packets.len() {
            return self.queue.give(waiting.id, Ruling::Accept);
        }
        self.counters.cut += u64::from(!passed.is_empty());
        self.replace(waiting, passed)
    }

    /// Ends a packet's wait: `instead` goes on in its stead.
    ///
    /// One packet from the link goes on from where that one waited, before this host's filters.
    pub(super) fn replace(&mut self, waiting: &Waiting, instead: &[Packet]) -> io::Result<()> {
        if let (Direction::FromLink, [packet]) = (waiting.direction, instead) {
            return self.queue.exchange(waiting.id, &packet.to_bytes());
        }
        self.queue.give(waiting.id, Ruling::Drop)?;
        for packet in instead {
            let sent = self.send(waiting.direction, packet, None)?;
            self.count(sent);
        }
        Ok(())
    }

    /// Sends what the gateway wants sent, in pieces of at most `longest` bytes where that is known by
    /// now; whether there was room for it.
    pub(super) fn transmit(
        &mut self,
        transmit: &Transmit,
        longest: Option<u32>,
    ) -> io::Result<Sent> {
        let sent = self.send(transmit.direction, &transmit.packet, longest)?;
        self.count(sent);
        Ok(sent)
    }

    /// True if the gateway could not send packets of this connection: it is not to take them either.
    fn may_lack_protection(
        &self,
        now: Instant,
        packet: &Packet,
        direction: Direction,
    ) -> io::Result<bool> {
        let ip = packet.header().ip;
        let (near, far) = match direction {
            Direction::ToLink => (ip.source, ip.destination),
            Direction::FromLink => (ip.destination, ip.source),
        };
        self.from_link.may_lack_protection(now, near, far)
    }

    fn count(&mut self, sent: Sent) {
        match sent {
            Sent::Accepted => {}
            Sent::Forbidden => {
                if self.counters.forbidden == 0 {
                    tracing::warn!(
                        "a firewall rule of this host drops what is sent for connections: accept packets with mark {:#x} \
                         in its output chains",
                        self.mark
                    );
                }
                self.counters.forbidden += 1;
            }
            Sent::Unprotected => {
                if self.counters.unprotected == 0 {
                    tracing::warn!(
                        "policies of IPsec of this host are not sure to hold for packets with mark {:#x}: nothing is \
                         done for the connections that they are for",
                        self.mark
                    );
                }
                self.counters.unprotected += 1;
            }
            Sent::NoRoom | Sent::TooLong | Sent::Unreachable => self.counters.unsent += 1,
        }
    }

    fn send(
        &self,
        direction: Direction,
        packet: &Packet,
        longest: Option<u32>,
    ) -> io::Result<Sent> {
        let sender: &dyn Sender = match direction {
            Direction::ToLink => match &self.to_link {
                Some(sender) => sender,
                None => return Ok(Sent::Unreachable),
            },
            Direction::FromLink => &self.from_link,
        };
        // It was kept under another MTU, or the path beyond the link has a smaller one.
        let longest = longest.map_or(self.mtu, |longest| longest.min(self.mtu));
        let sent = match send_cut(sender, packet, longest)? {
            Sent::TooLong => send_cut(sender, packet, SAFE_MTU)?,
            sent => sent,
        };
        match (sent, direction) {
            (Sent::TooLong, Direction::ToLink) => self.send_too_long(sender, packet),
            _ => Ok(sent),
        }
    }

    /// Sends a packet that is longer than the MTU by now and cannot be segmented.
    ///
    /// It goes in fragments if its sender allows that. Otherwise the sender gets an ICMP error.
    fn send_too_long(&self, sender: &dyn Sender, packet: &Packet) -> io::Result<Sent> {
        if packet.total_len() <= self.mtu {
            // The kernel knows of a smaller path MTU.
            return Ok(Sent::TooLong);
        }
        let ip = packet.header().ip;
        if let Ok(fragments) = packet.fragment(self.mtu, self.identification()) {
            let mut worst = Sent::Accepted;
            for fragment in fragments {
                let sent = sender.send_packet(&fragment)?;
                if sent != Sent::Accepted {
                    worst = sent;
                }
            }
            return Ok(worst);
        }
        let Some(own) = self.from_link.own_address(ip.source)? else {
            return Ok(Sent::TooLong);
        };
        // A packet that may draw no ICMP error is dropped without one.
        if let Ok(error) = Packet::icmp_error(own, IcmpNotice::TooBig { mtu: self.mtu }, packet) {
            // Should it be lost, another packet that is too long draws another one.
            let _ = self.from_link.send(ip.source, &error.to_bytes())?;
        }
        Ok(Sent::TooLong)
    }

    /// For the fragments of a packet that has none; never zero.
    fn identification(&self) -> u16 {
        let next = self.identification.get();
        self.identification.set(next.checked_add(1).unwrap_or(1));
        next
    }
}

impl AsFd for QueuePath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// Sends `packet` in pieces of at most `mtu` bytes; one that cannot be cut goes as it is.
fn send_cut(sender: &dyn Sender, packet: &Packet, mtu: u32) -> io::Result<Sent> {
    let Ok(pieces) = packet.segment_to_mtu(mtu) else {
        return sender.send_packet(packet);
    };
    let mut worst = Sent::Accepted;
    for piece in pieces {
        let sent = sender.send_packet(&piece)?;
        if sent == Sent::TooLong {
            return Ok(sent);
        }
        if sent != Sent::Accepted {
            worst = sent;
        }
    }
    Ok(worst)
}

fn guardian_of(
    pulse: &Pulse,
    queue: &mut Queue,
    interface: &str,
    pledges: &Path,
    mark: u32,
) -> io::Result<Guardian> {
    Guardian::fork(pulse, queue, |aftermath| {
        // They do nothing; and the interface may be gone.
        let _ = remove_left_filters(interface);
        pledges::settle(pledges, mark, aftermath);
    })
}

/// The error for a raw socket that cannot be opened.
fn unsendable(error: io::Error) -> NetfilterError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => NetfilterError::NotPermitted {
            request: "open a raw socket",
            capability: "CAP_NET_RAW",
        },
        _ => NetfilterError::Socket(error),
    }
}

/// The queue that is wanted, or else the first one that is free.
fn take_queue(wanted: Option<u16>) -> Result<(Queue, u16), NetfilterError> {
    let first = wanted.unwrap_or(FIRST_QUEUE);
    let more = wanted.map_or(QUEUES - 1, |_| 0);
    let take = |number| Queue::take(number).map(|queue| (queue, number));
    (1..=more).fold(take(first), |taken, beyond| match taken {
        Err(NetfilterError::QueueTaken { .. }) => take(first + beyond),
        other => other,
    })
}

/// Whether a packet is about the link itself: neighbour discovery, address configuration, routing.
///
/// Such a packet is of no use later, and it shows whether a peer is back.
fn concerns_the_link(packet: &Packet) -> bool {
    let ip = packet.header().ip;
    is_of_the_link(ip.source) || is_of_the_link(ip.destination) || is_discovery(packet)
}

/// Whether it is neighbour discovery (RFC 4861), also between addresses that are valid beyond the link:
/// the kernel is to learn from an answer that the peer is there, not the gateway from a packet.
fn is_discovery(packet: &Packet) -> bool {
    let header = packet.header();
    let is_icmp = header.transport
        == Transport::Other {
            protocol: ICMPV6,
            fragment: false,
        };
    is_icmp
        && header.ip.hop_limit == u8::MAX
        && header.ip.source.is_ipv6()
        && matches!(packet.payload(), Some([133..=137, ..]))
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

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_linux::namespace::Namespace;

    const HOST: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    fn icmp(hop_limit: u8, kind: u8) -> Packet {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 24, ICMPV6, hop_limit];
        bytes.extend([HOST, HOST].concat());
        bytes.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(HOST);
        Packet::parse(bytes.into()).expect("a packet")
    }

    /// The number of a queue that was taken, or of the one that could not be.
    fn number(wanted: Option<u16>, held: &mut Vec<Queue>) -> Result<u16, NetfilterError> {
        let (queue, number) = take_queue(wanted)?;
        held.push(queue);
        Ok(number)
    }

    #[test]
    fn of_queues_that_are_taken_the_next_one_is_taken_but_where_one_was_asked_for() {
        let namespace = match Namespace::new() {
            Ok(namespace) => namespace,
            Err(error) => return outlast_skip::skip(error),
        };
        let try_queues = || {
            let mut held = Vec::new();
            let highest = Some(u16::MAX);
            match number(highest, &mut held) {
                Ok(number) => assert_eq!(number, u16::MAX),
                Err(error) => return outlast_skip::skip(error),
            }
            let again = number(highest, &mut held);
            let is_told = matches!(again, Err(NetfilterError::QueueTaken { number: u16::MAX }));
            assert!(is_told, "{again:?}");
            for expected in FIRST_QUEUE..FIRST_QUEUE + QUEUES {
                let taken = number(None, &mut held);
                assert_eq!(taken.expect("one is free"), expected);
            }
            let beyond = number(None, &mut held);
            let last = FIRST_QUEUE + QUEUES - 1;
            let is_told =
                matches!(beyond, Err(NetfilterError::QueueTaken { number }) if number == last);
            assert!(is_told, "{beyond:?}");
        };
        namespace.run(try_queues).expect("enter");
    }

    #[test]
    fn the_kernel_hears_who_answers_whatever_addresses_they_use() {
        assert!(concerns_the_link(&icmp(255, 136)));
        assert!(concerns_the_link(&icmp(255, 135)));
        // An echo; and what a router has forwarded, so that it is nobody's on the link.
        assert!(!concerns_the_link(&icmp(255, 129)));
        assert!(!concerns_the_link(&icmp(254, 136)));
    }
}
