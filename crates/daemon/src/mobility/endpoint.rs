//! TUN device, sockets, timer and event loop of a role with Mobile IP.

use super::access::AccessLink;
use super::carriers::{Carriers, Turn};
use super::datagrams::{Batch, Datagrams};
use super::settings::Operating;
use super::status::Report;
use super::v6::ExtensionQueue;
use crate::failure::Failure;
use crate::operations::Operations;
use anyhow::Context;
use bytes::Bytes;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::frames::Frame;
use outlast_linux::monitor::{self, Change, RouteMonitor};
use outlast_linux::netlink::{InterfaceIndex, InterfaceSettings, RouteSocket};
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::privilege;
use outlast_linux::protocol::{ProtocolReceiver, ip_packet};
use outlast_linux::raw::{RawSender, Sent};
use outlast_linux::signal::{Hangup, Termination};
use outlast_linux::timer::Timer;
use outlast_linux::tun::{SuperSegmentTun, TcpLayout, Written};
use outlast_linux::waker::Waker;
use outlast_mobility::v6::{Reassembled, Reassembly};
use outlast_mobility::{Arp, LinkAddress, LinkId, Transmit, Verdict, Via};
use outlast_wire::join::{Joined, Joiner, SuperSegment};
use outlast_wire::mobile_ip::PORT;
use outlast_wire::{IcmpNotice, IpHeader, Packet, ParseError, UdpHeader};
use rustix::net::sockopt;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

/// Packets taken from one descriptor before the others have their turn.
pub(super) const BURST: usize = 64;

/// The link on which mobile nodes are.
pub(super) const ACCESS: LinkId = LinkId(0);

/// Whom solicitations are for (RFC 1256).
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 11);
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const IPV4_IN_IP: u8 = 4;

const TUN: Token = Token(0);
const MONITOR: Token = Token(1);
const TIMER: Token = Token(2);
const END: Token = Token(3);
const RELOAD: Token = Token(4);
const DATAGRAMS: Token = Token(5);
const TUNNEL: Token = Token(6);
const ERRORS: Token = Token(7);
const LINK_PACKETS: Token = Token(8);
const LINK_ARP: Token = Token(9);
const EXTENSIONS: Token = Token(10);

/// What a role does with what the loop hears.
pub(super) trait Role {
    /// As `--role` calls it.
    const NAME: &'static str;

    /// Decapsulated packets go on to other hosts.
    const FORWARDS: bool;

    /// Whether [`Self::tell`] comes before what is to be sent: who hears of its tunnel sends super-segments at once,
    /// of whose datagrams nobody but the kernel knows the bounds.
    const TELLS_FIRST: bool = false;

    /// What it sends are packets of this host's own, from whichever of its addresses.
    const SENDS_FOR_HOST: bool = false;

    /// A packet that the kernel routes into the TUN device.
    fn handle_device(&mut self, now: Instant, packet: Packet);

    /// A packet that comes to the own address.
    fn handle_network(&mut self, now: Instant, packet: Packet);

    /// A packet of IPv6 that comes to this host with a header of Mobile IPv6, or in a tunnel. The kernel
    /// goes on with what is passed.
    fn handle_extension(&mut self, _now: Instant, _packet: Packet) -> Verdict {
        Verdict::Pass
    }

    /// A message that comes from the access link, in a frame from `from`.
    fn handle_link_packet(&mut self, _now: Instant, _from: LinkAddress, _packet: Packet) {}

    /// The access link carries packets, or does so no longer.
    fn handle_link(&mut self, _now: Instant, _is_up: bool) {}

    /// What ARP says is to change.
    fn change_arp(&mut self, arp: Arp, endpoint: &mut Endpoint) -> anyhow::Result<()> {
        endpoint.change_arp(arp)
    }

    /// Addresses, routes or interfaces have changed.
    fn handle_change(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        is_link_back: bool,
    ) -> anyhow::Result<()>;

    /// Time has come to `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// The configuration is to be read again; what has changed, and where metrics are from now on. If it
    /// fails, all stays as it was.
    fn reload(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        config: &Path,
    ) -> Result<Vec<&'static str>, Failure>;

    /// Somebody says that the link is back; whether that helps this role.
    fn handle_notice(&mut self, _now: Instant) -> bool {
        false
    }

    /// Whether the role goes on to need what it began with.
    fn keeps_privileges(&self) -> bool {
        false
    }

    /// How the role is.
    fn report(&self, now: Instant) -> Report;

    /// The role ends.
    fn end(&mut self, now: Instant);

    /// What is to be done next.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// Says in the log what has happened, and does what the kernel has to do about it.
    fn tell(&mut self) -> anyhow::Result<()>;

    /// When to call [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
}

/// Raw sockets at the own address: what comes in tunnels, and errors about them.
struct Receivers {
    /// IPv6's tunnels come with the packets that the kernel cannot read.
    tunnel: Option<ProtocolReceiver>,
    errors: ProtocolReceiver,
}

impl Receivers {
    fn open(address: IpAddr) -> io::Result<Self> {
        let open = |protocol| ProtocolReceiver::open(protocol, address);
        Ok(match address {
            IpAddr::V4(_) => Self {
                tunnel: Some(open(IPV4_IN_IP)?),
                errors: open(ICMP)?,
            },
            IpAddr::V6(_) => Self {
                tunnel: None,
                errors: open(ICMPV6)?,
            },
        })
    }

    /// The next packet with its IP header, read into `buffer`.
    fn receive(&self, token: Token, buffer: &mut [u8]) -> io::Result<Option<Bytes>> {
        let receiver = match (token, &self.tunnel) {
            (TUNNEL, Some(tunnel)) => tunnel,
            _ => &self.errors,
        };
        let address = receiver.address();
        if address.is_ipv4() {
            let received = receiver.receive_whole(buffer)?;
            return Ok(received.map(Bytes::copy_from_slice));
        }
        // IPv6 gives no headers.
        let received = receiver.receive(buffer)?;
        let packet = received.and_then(|one| ip_packet(one.source, address, ICMPV6, one.payload));
        Ok(packet.map(Bytes::from))
    }
}

/// What a role speaks through.
pub(super) struct Endpoint {
    pub(super) operations: Operations,
    pub(super) operating: Operating,
    pub(super) began: Instant,
    tun: SuperSegmentTun,
    /// Longest packet of the device in bytes.
    mtu: u32,
    sender: RawSender,
    /// IPv4's messages of registration.
    datagrams: Option<Datagrams>,
    /// Packets of a tunnel in UDP that leave together.
    batch: Batch,
    /// The address at which this host's end of the tunnel is; `None` while there is none.
    own: Option<IpAddr>,
    receivers: Option<Receivers>,
    /// Where IPv6's packets come from that the kernel cannot read.
    extensions: Option<ExtensionQueue>,
    reassembly: Reassembly,
    /// The link on which mobile nodes are, its name, and the mark of what is sent there.
    access: Option<AccessLink>,
    access_name: Option<String>,
    mark: u32,
    carriers: Carriers,
    monitor: RouteMonitor,
    timer: Timer,
    pub(super) poller: Poller,
    waker: Waker,
    hangup: Waker,
    /// What goes into the device one after another.
    joiner: Joiner,
    /// A segment that the network card has put together.
    joined: Vec<u8>,
    buffer: Box<[u8]>,
    _termination: Termination,
    _reload: Hangup,
}

impl Endpoint {
    /// Makes the device and opens the sockets of Mobile IPv4; what is sent bears `mark`.
    pub(super) fn open(operating: Operating, mark: u32) -> Result<Self, Failure> {
        let mut endpoint = Self::of_both(operating, mark)?;
        endpoint.listen().map_err(Failure::Run)?;
        Ok(endpoint)
    }

    /// Makes the device and takes the packets of Mobile IPv6; what is sent bears `mark`.
    pub(super) fn open_v6(operating: Operating, mark: u32) -> Result<Self, Failure> {
        let mut endpoint = Self::of_both(operating, mark)?;
        let device = &endpoint.operating.device;
        let extensions =
            ExtensionQueue::take(device).map_err(|error| Failure::Capability(error.to_string()))?;
        endpoint
            .poller
            .add(&extensions, EXTENSIONS, Interest::Readable)
            .map_err(anyhow::Error::new)?;
        endpoint.extensions = Some(extensions);
        Ok(endpoint)
    }

    fn of_both(operating: Operating, mark: u32) -> Result<Self, Failure> {
        let tun = SuperSegmentTun::create(&operating.device)
            .map_err(|error| Failure::Capability(error.to_string()))?;
        let poller = Poller::new().map_err(anyhow::Error::new)?;
        let began = clock::now();
        let metrics = operating.metrics.as_ref();
        let operations = Operations::open(began, &operating.control, metrics, &poller)?;
        let parts = (tun, poller, operations);
        Self::equip(parts, operating, mark).map_err(Failure::Run)
    }

    fn equip(
        (tun, poller, operations): (SuperSegmentTun, Poller, Operations),
        operating: Operating,
        mark: u32,
    ) -> anyhow::Result<Self> {
        let (device, mtu) = (&*operating.device, operating.mtu);
        let mut routes = RouteSocket::open()?;
        let up = InterfaceSettings {
            up: Some(true),
            multicast: Some(false),
            mtu: Some(mtu),
            ..InterfaceSettings::default()
        };
        let index = routes.interface(device)?;
        routes.configure(index, &up)?;
        let sender = RawSender::open(mark, None).context("cannot send into tunnels")?;
        let monitor = RouteMonitor::open().context("cannot hear of addresses")?;
        let (timer, waker, hangup) = (Timer::new()?, Waker::new()?, Waker::new()?);
        let (termination, reload) = (Termination::wake_daemon(&waker)?, Hangup::wake(&hangup)?);
        poller.add(&tun, TUN, Interest::Readable)?;
        poller.add(&monitor, MONITOR, Interest::Readable)?;
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&waker, END, Interest::Readable)?;
        poller.add(&hangup, RELOAD, Interest::Readable)?;
        Ok(Self {
            operations,
            operating,
            began: clock::now(),
            tun,
            mtu,
            sender,
            datagrams: None,
            batch: Batch::default(),
            own: None,
            receivers: None,
            extensions: None,
            reassembly: Reassembly::default(),
            access: None,
            access_name: None,
            mark,
            carriers: Carriers::of(monitor::interfaces()?),
            monitor,
            timer,
            poller,
            waker,
            hangup,
            joiner: Joiner::default(),
            joined: Vec::new(),
            buffer: vec![0; SuperSegmentTun::BUFFER].into_boxed_slice(),
            _termination: termination,
            _reload: reload,
        })
    }

    fn listen(&mut self) -> anyhow::Result<()> {
        // The kernel takes every error about a tunnel for true; the machines know which packets were sent.
        self.sender.ignore_path_mtu()?;
        let datagrams = Datagrams::open(self.mark)?;
        self.poller.add(&datagrams, DATAGRAMS, Interest::Readable)?;
        self.datagrams = Some(datagrams);
        Ok(())
    }

    /// Uses an interface as the access link: at once, or when it is there.
    pub(super) fn use_access(&mut self, name: &str) -> anyhow::Result<()> {
        self.access_name = Some(name.into());
        let link =
            AccessLink::open(name, self.mark).with_context(|| format!("interface = \"{name}\""))?;
        // The group of all who solicit; a card may drop what nobody has joined.
        let datagrams = self.datagrams.as_ref();
        let joined = datagrams.map(|datagrams| {
            socket2::SockRef::from(datagrams.socket()).join_multicast_v4_n(
                &ALL_ROUTERS,
                &socket2::InterfaceIndexOrAddress::Index(link.index.0),
            )
        });
        if let Some(Err(error)) = joined
            && error.kind() != io::ErrorKind::AddrInUse
        {
            tracing::debug!(%error, "solicitations may not be heard");
        }
        self.poller
            .add(&link.packets, LINK_PACKETS, Interest::Readable)?;
        self.poller.add(&link.arp, LINK_ARP, Interest::Readable)?;
        self.access = Some(link);
        Ok(())
    }

    /// The numbers of this host's interfaces.
    pub(super) fn interfaces(&self) -> BTreeSet<u32> {
        self.carriers.indices().collect()
    }

    /// The access link's interface, its Ethernet address, and its longest packet in bytes.
    pub(super) fn access_frame(&self) -> Option<(InterfaceIndex, [u8; 6], u32)> {
        self.access.as_ref().map(AccessLink::frame)
    }

    /// The access link's interface.
    pub(super) fn access(&self) -> Option<InterfaceIndex> {
        self.access.as_ref().map(|link| link.index)
    }

    /// Says or answers something by ARP on the access link.
    pub(super) fn change_arp(&mut self, arp: Arp) -> anyhow::Result<()> {
        match &mut self.access {
            Some(link) => Ok(link.change_arp(arp)?),
            // The device is point-to-point: there is no ARP.
            None => Ok(()),
        }
    }

    /// The address from which the kernel would speak to `other`, past the role's own routes, once it takes packets
    /// for that address.
    pub(super) fn address_towards(&self, other: IpAddr) -> anyhow::Result<Option<IpAddr>> {
        address_towards(&self.sender, other)
    }

    /// Puts this end of the tunnel at another address.
    ///
    /// An address that is gone already counts as none: the kernel tells of the next one.
    pub(super) fn settle(&mut self, own: Option<IpAddr>) -> io::Result<Option<IpAddr>> {
        if own == self.own {
            return Ok(own);
        }
        (self.own, self.receivers) = (None, None);
        let Some(address) = own else {
            return Ok(None);
        };
        let opened = Receivers::open(address);
        let receivers = match opened {
            Ok(receivers) => receivers,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::AddrNotAvailable => Ok(None),
                    _ => Err(error),
                };
            }
        };
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.gather_again()?;
        }
        if let Some(tunnel) = &receivers.tunnel {
            self.poller.add(tunnel, TUNNEL, Interest::Readable)?;
        }
        self.poller
            .add(&receivers.errors, ERRORS, Interest::Readable)?;
        (self.own, self.receivers) = (own, Some(receivers));
        Ok(own)
    }

    /// Drives `role` until it is asked to end.
    pub(super) fn run(&mut self, role: &mut impl Role, config: &Path) -> anyhow::Result<()> {
        self.drain(clock::now(), role)?;
        if !role.keeps_privileges() {
            privilege::keep_network_capabilities().context("cannot drop privileges")?;
        }
        let introduction = self.introduction(role);
        let service = self.operations.service();
        service.ready(clock::now(), &introduction);
        loop {
            let ready: Vec<Ready> = self.poller.wait()?.collect();
            let now = clock::now();
            for Ready { token, .. } in ready {
                match token {
                    TUN => self.take_from_device(now, role)?,
                    TUNNEL | ERRORS => self.take_packets(now, role, token)?,
                    DATAGRAMS => self.take_datagrams(now, role)?,
                    LINK_PACKETS => self.take_link_packets(now, role)?,
                    EXTENSIONS => self.take_extensions(now, role)?,
                    LINK_ARP => {
                        if let Some(link) = &self.access {
                            link.answer_arp()?;
                        }
                    }
                    MONITOR => self.take_changes(now, role)?,
                    TIMER => {
                        self.timer.note_expiry();
                        self.operations.handle_timeout(now, &self.poller);
                    }
                    END if self.waker.reset()? => {
                        self.operations.service().stopping(now);
                        role.end(now);
                        return self.drain(now, role);
                    }
                    RELOAD if self.hangup.reset()? => {
                        // Told in the log; there is nobody else to tell.
                        let _ = self.reload(now, role, config);
                    }
                    token if Operations::owns(token) => self.hear(now, role, config, token)?,
                    _ => {}
                }
            }
            role.handle_timeout(now);
            self.drain(now, role)?;
        }
    }

    /// Packets of applications, or of other hosts that this one forwards.
    fn take_from_device(&mut self, now: Instant, role: &mut impl Role) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(read) = self.tun.read(&mut self.buffer)? else {
                break;
            };
            // The kernel made it: what cannot be read is of another family.
            let Ok(packet) = Packet::parse(Bytes::copy_from_slice(read.bytes)) else {
                continue;
            };
            let segments = read.segment_size.map(|size| packet.segment_by(size));
            match segments {
                Some(Ok(segments)) => segments.for_each(|one| role.handle_device(now, one)),
                Some(Err(error)) => tracing::debug!(%error, "a super-segment cannot be cut"),
                None if read.lacks_checksum => role.handle_device(now, packet.with_checksum()),
                None => role.handle_device(now, packet),
            }
        }
        Ok(())
    }

    /// Packets in tunnels, and errors about them.
    fn take_packets(&mut self, now: Instant, role: &mut impl Role, token: Token) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(receivers) = &self.receivers else {
                break;
            };
            let Some(bytes) = receivers.receive(token, &mut self.buffer)? else {
                break;
            };
            match Packet::parse(bytes) {
                Ok(packet) => role.handle_network(now, packet),
                Err(error) => tracing::debug!(%error, "a packet cannot be read"),
            }
        }
        Ok(())
    }

    /// Packets of Mobile IPv6.
    fn take_extensions(&mut self, now: Instant, role: &mut impl Role) -> io::Result<()> {
        let Some(extensions) = &mut self.extensions else {
            return Ok(());
        };
        let reassembly = &mut self.reassembly;
        let mut others = Vec::new();
        for _ in 0..BURST {
            let handle = |packet| match reassembly.handle_packet(now, packet) {
                Reassembled::Other(packet) => role.handle_extension(now, packet),
                Reassembled::Kept => Verdict::Taken,
                Reassembled::Whole(packet) => {
                    if role.handle_extension(now, packet.clone()) == Verdict::Pass {
                        others.push(packet);
                    }
                    Verdict::Taken
                }
            };
            if !extensions.handle_next(handle)? {
                break;
            }
        }
        // Of a tunnel of the kernel's.
        others
            .into_iter()
            .try_for_each(|packet| self.deliver(packet))
    }

    /// Messages on the access link.
    fn take_link_packets(&mut self, now: Instant, role: &mut impl Role) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(link) = &self.access else {
                break;
            };
            let Some(frame) = link.packets.receive(&mut self.buffer)? else {
                break;
            };
            match packet_of(&frame) {
                Ok(packet) => role.handle_link_packet(now, LinkAddress(frame.from), packet),
                Err(error) => tracing::debug!(%error, "a packet cannot be read"),
            }
        }
        Ok(())
    }

    /// The interface that is, or was, the access link has changed.
    fn note_access(
        &mut self,
        now: Instant,
        role: &mut impl Role,
        (index, mtu): (InterfaceIndex, u32),
        turn: Option<Turn>,
    ) -> anyhow::Result<()> {
        let Some(name) = self.access_name.clone() else {
            return Ok(());
        };
        let is_known = self.access.as_ref().is_some_and(|link| link.index == index);
        if !is_known {
            self.access = None;
            self.use_access(&name)?;
        }
        if let Some(link) = &mut self.access {
            link.set_mtu(mtu);
        }
        if matches!(turn, Some(Turn::Interrupted | Turn::Down)) {
            role.handle_link(now, false);
        }
        if matches!(turn, Some(Turn::Interrupted | Turn::Back | Turn::First)) {
            role.handle_link(now, true);
        }
        Ok(())
    }

    /// Messages of registration, and tunnels in UDP.
    fn take_datagrams(&mut self, now: Instant, role: &mut impl Role) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(datagrams) = &self.datagrams else {
                break;
            };
            let (source, received) = match datagrams.receive(&mut self.buffer) {
                Ok(Some(received)) => received,
                Ok(None) => break,
                // An error about an earlier datagram, which the machines do not wait for.
                Err(error) => {
                    tracing::debug!(%error, "a datagram was not delivered");
                    continue;
                }
            };
            let (SocketAddr::V4(source), Some(own)) = (source, self.own) else {
                continue;
            };
            let ip = IpHeader::new((*source.ip()).into(), own);
            let udp = UdpHeader {
                source_port: source.port(),
                destination_port: PORT,
            };
            for payload in received {
                let packet = Packet::udp_datagram(ip, udp, payload);
                role.handle_network(now, packet);
            }
        }
        Ok(())
    }

    fn take_changes(&mut self, now: Instant, role: &mut impl Role) -> anyhow::Result<()> {
        let (mut concerns, mut is_link_back) = (false, false);
        while let Some(change) = self.monitor.receive()? {
            match change {
                Change::Neighbour { .. } => {}
                Change::Interface {
                    index,
                    is_running,
                    carrier_losses,
                    name,
                    mtu,
                    ..
                } => {
                    concerns = true;
                    let turn = self.carriers.note(index, is_running, carrier_losses);
                    if self.access_name.as_ref() == Some(&name) {
                        self.note_access(now, role, (index, mtu), turn)?;
                    }
                    is_link_back |= matches!(turn, Some(Turn::Back | Turn::Interrupted));
                }
                Change::InterfaceGone { index } => {
                    concerns = true;
                    self.carriers.forget(index);
                    if self.access() == Some(index) {
                        self.access = None;
                        role.handle_link(now, false);
                    }
                }
                Change::Address { .. }
                | Change::Local { .. }
                | Change::Route { .. }
                | Change::Missed => concerns = true,
            }
        }
        match concerns {
            true => role.handle_change(now, self, is_link_back),
            false => Ok(()),
        }
    }

    /// Carries out what the role asks for, and arms the timer.
    fn drain<R: Role>(&mut self, now: Instant, role: &mut R) -> anyhow::Result<()> {
        if R::TELLS_FIRST {
            role.tell()?;
        }
        loop {
            while let Some(transmit) = role.poll_transmit() {
                match transmit {
                    Transmit::Packet { packet, via } => self.transmit(now, role, packet, via)?,
                    Transmit::Arp(arp) => {
                        self.deliver_joined()?;
                        role.change_arp(arp, self)?;
                    }
                }
            }
            if self.batch.packets().is_empty() {
                break;
            }
            // What does not fit is answered.
            self.send_batch(now, role)?;
        }
        self.deliver_joined()?;
        role.tell()?;
        let next = [role.poll_timeout(), self.operations.poll_timeout()];
        let next = next.into_iter().flatten().min();
        Ok(self.timer.set(next.map(|at| at.max(now)))?)
    }

    fn transmit(
        &mut self,
        now: Instant,
        role: &mut impl Role,
        packet: Packet,
        via: Via,
    ) -> io::Result<()> {
        let (source, destination) = (packet.header().ip.source, packet.header().ip.destination);
        let is_own = self.own.is_some_and(|own| source == own);
        match (via, &self.access) {
            (Via::Local, _) => self.deliver(packet),
            (Via::Neighbour(_, to), Some(link)) => link.send(to, &packet),
            (Via::Link(_), Some(link)) => link.send_to_all(&packet),
            (Via::Route, Some(link)) if destination.is_multicast() => link.send_to_all(&packet),
            _ if is_own || role_is_source(role) => self.send(now, role, packet),
            _ if role_forwards(role) => self.deliver(packet),
            _ => {
                tracing::debug!(%source, "a packet of another address is not sent");
                Ok(())
            }
        }
    }

    /// Hands a packet to this host's stack, which keeps it or forwards it, together with those that
    /// follow it.
    fn deliver(&mut self, packet: Packet) -> io::Result<()> {
        let Self { tun, mtu, .. } = self;
        if packet.total_len() <= *mtu {
            return self.joiner.push(packet, |joined| write(tun, joined));
        }
        self.joiner.finish(|joined| write(tun, joined))?;
        if let Some(segment) = packet.as_super_segment(*mtu, &mut self.joined) {
            return write(tun, Joined::SuperSegment(segment));
        }
        // The network card has put it together, and it would fit no link that it is to leave by.
        let Ok(segments) = packet.segment_to_mtu(*mtu) else {
            return write(tun, Joined::Packet(packet));
        };
        for segment in segments {
            write(tun, Joined::Packet(segment))?;
        }
        Ok(())
    }

    /// Nothing more goes into the device for now.
    fn deliver_joined(&mut self) -> io::Result<()> {
        let tun = &self.tun;
        self.joiner.finish(|joined| write(tun, joined))
    }

    /// Sends a packet of this host's, if it is one of a tunnel in UDP together with those that follow it.
    fn send(&mut self, now: Instant, role: &mut impl Role, packet: Packet) -> io::Result<()> {
        let most = self.datagrams.as_ref().map_or(1, Datagrams::most);
        if most == 1 || !Batch::is_for(&packet, self.own) {
            self.send_batch(now, role)?;
            return self.send_alone(now, role, &packet);
        }
        if !self.batch.accepts(&packet, most) {
            self.send_batch(now, role)?;
        }
        self.batch.push(packet);
        Ok(())
    }

    /// Sends what was gathered.
    fn send_batch(&mut self, now: Instant, role: &mut impl Role) -> io::Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        let sent = match (&mut self.datagrams, self.own) {
            (Some(datagrams), Some(own)) if batch.packets().len() > 1 => {
                datagrams.send(own, &batch)
            }
            _ => false,
        };
        if !sent {
            for packet in batch.packets() {
                self.send_alone(now, role, packet)?;
            }
        }
        // Its memory is used again.
        batch.clear();
        self.batch = batch;
        Ok(())
    }

    fn send_alone(&self, now: Instant, role: &mut impl Role, packet: &Packet) -> io::Result<()> {
        let destination = packet.header().ip.destination;
        match self.sender.send(destination, &packet.to_bytes())? {
            Sent::Accepted | Sent::NoRoom => {}
            Sent::TooLong => {
                // The address has gone meanwhile: the packet met another way's device.
                let Some(mtu) = self.path_mtu(destination)? else {
                    tracing::debug!(%destination, "a packet was not sent");
                    return Ok(());
                };
                // A router on the way would say so, too.
                let notice = IcmpNotice::TooBig { mtu };
                let router = packet.header().ip.source;
                if let Ok(error) = Packet::icmp_error(router, notice, packet) {
                    role.handle_network(now, error);
                }
            }
            Sent::Unreachable | Sent::Forbidden | Sent::Unprotected => {
                tracing::debug!(%destination, "a packet was not sent");
            }
        }
        Ok(())
    }

    /// What the kernel knows of the way to `destination`, in bytes; `None` if there is none from the own address.
    fn path_mtu(&self, destination: IpAddr) -> io::Result<Option<u32>> {
        let unspecified = match destination {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        path_mtu(self.own.unwrap_or(unspecified), destination)
    }
}

/// What the kernel knows of the way from `own` to `destination`, in bytes; `None` if there is none.
pub(super) fn path_mtu(own: IpAddr, destination: IpAddr) -> io::Result<Option<u32>> {
    let probe = match UdpSocket::bind((own, 0)) {
        // It may be gone before the kernel has told of that.
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => return Ok(None),
        probe => probe?,
    };
    if let Err(error) = probe.connect((destination, PORT)) {
        tracing::debug!(%destination, %error, "there is no way");
        return Ok(None);
    }
    let mtu = match destination {
        IpAddr::V4(_) => sockopt::ip_mtu(&probe)?,
        IpAddr::V6(_) => sockopt::ipv6_mtu(&probe)?,
    };
    Ok(Some(mtu))
}

/// The address from which the kernel would speak to `other`. One of IPv6 counts once the kernel takes packets for it:
/// an answer that came before would be lost, and be asked for again a second later.
fn address_towards(sender: &RawSender, other: IpAddr) -> anyhow::Result<Option<IpAddr>> {
    Ok(match sender.own_address(other)? {
        Some(own) if own.is_ipv6() && !monitor::takes(own)? => None,
        own => own,
    })
}

fn write(tun: &SuperSegmentTun, joined: Joined<'_>) -> io::Result<()> {
    let written = match joined {
        Joined::Packet(packet) => tun.write(&packet.to_bytes())?,
        Joined::SuperSegment(SuperSegment {
            bytes,
            transport_at,
            payload_at,
            segment_size,
        }) => {
            let layout = TcpLayout {
                transport_at,
                payload_at,
                segment_size,
            };
            tun.write_super_segment(bytes, layout)?
        }
    };
    match written {
        Written::Delivered | Written::NoRoom => {}
        Written::Down => tracing::debug!("the device is down"),
    }
    Ok(())
}

const fn role_is_source<R: Role>(_: &R) -> bool {
    R::SENDS_FOR_HOST
}

/// The packet of a frame, with the checksum that was left to a network card.
fn packet_of(frame: &Frame<'_>) -> Result<Packet, ParseError> {
    let packet = Packet::parse(Bytes::copy_from_slice(frame.bytes))?;
    Ok(match frame.lacks_checksum {
        true => packet.with_checksum(),
        false => packet,
    })
}

const fn role_forwards<R: Role>(_: &R) -> bool {
    R::FORWARDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LateAddress, fresh_namespace, namespace_with_loopback};
    use outlast_base::time::Duration;
    use outlast_linux::frames::{PacketLink, Wanted};
    use outlast_linux::netlink::Prefix;
    use outlast_mobility::{
        Advertising, Algorithm, Arrival, ForeignAgent, ForeignAgentConfig, ForeignLimits,
        HomeAgent, HomeAgentConfig, HomeLimits, NtpClock, ReverseTunnels, SecurityAssociation,
    };
    use outlast_wire::mobile_ip::{
        Lifetime, RegistrationReply, RegistrationRequest, ReplyCode, RequestFlags, SecuredPair,
    };
    use rustix::fd::AsFd;
    use std::collections::BTreeMap;

    const AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    /// A foreign agent on link 0.
    fn agent() -> ForeignAgent {
        let config = ForeignAgentConfig {
            care_of_address: AGENT,
            link: LinkId(0),
            advertising: Advertising {
                address: AGENT,
                ..Advertising::default()
            },
            longest_lifetime: Lifetime(300),
            demands_registration: false,
            reverse_tunnels: ReverseTunnels::Offered,
            mobiles: BTreeMap::new(),
            home_agents: BTreeMap::new(),
            request_timeout: Duration::from_secs(7),
            limits: ForeignLimits::default(),
            seed: 1,
        };
        ForeignAgent::new(Instant::ZERO, config)
    }

    /// A request's bytes, whose checksum has the pseudo-header alone: a network card was to complete it.
    fn unfinished_request() -> Vec<u8> {
        let request = RegistrationRequest {
            flags: RequestFlags::default(),
            lifetime: Lifetime(301),
            home_address: Ipv4Addr::new(198, 51, 100, 5),
            home_agent: Ipv4Addr::new(203, 0, 113, 1),
            care_of_address: AGENT,
            identification: 5,
        };
        let ip = IpHeader::new(request.home_address.into(), AGENT.into());
        let udp = UdpHeader {
            source_port: PORT,
            destination_port: PORT,
        };
        let packet = Packet::udp_datagram(ip, udp, &request.emit().finish());
        let mut bytes = packet.to_bytes().to_vec();
        let length = bytes.len() as u32 - 20;
        let words = bytes[12..20].chunks(2);
        let addresses = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = addresses.sum::<u32>() + 17 + length;
        let folded = (sum & 0xffff) + (sum >> 16);
        bytes[26..28].copy_from_slice(&(folded as u16).to_be_bytes());
        bytes
    }

    /// The agent answers a request whose checksum the kernel says is incomplete (`PACKET_AUXDATA`): between virtual
    /// interfaces nobody completes it. Without the kernel's word it is damaged, and gets no answer.
    #[test]
    fn an_agent_answers_a_request_whose_checksum_was_left_to_a_network_card() {
        let bytes = unfinished_request();
        for lacks_checksum in [true, false] {
            let from = [2, 0, 0, 0, 0, 5];
            let frame = Frame {
                from,
                bytes: &bytes,
                lacks_checksum,
            };
            let packet = packet_of(&frame).expect("a packet");
            let mut agent = agent();
            let arrival = Arrival {
                link: LinkId(0),
                from: LinkAddress(from),
            };
            let _ = agent.handle_packet(Instant::ZERO, arrival, packet);
            let answer = agent.poll_transmit();
            assert_eq!(answer.is_some(), lacks_checksum, "{answer:?}");
            if let Some(Transmit::Packet { packet, via }) = answer {
                assert_eq!(via, Via::Neighbour(LinkId(0), LinkAddress(from)));
                assert!(packet.checksums_ok());
                let reply = RegistrationReply::parse(packet.payload().expect("bytes"));
                let (reply, _) = reply.expect("a reply");
                assert_eq!(reply.code, ReplyCode::FOREIGN_LIFETIME);
            }
        }
    }

    /// A home agent accepts a request that a mobile node's kernel has sent over a virtual cable: its checksum was left
    /// to a network card, and the kernel says so. Without the kernel's word it is damaged.
    #[test]
    fn a_home_agent_accepts_a_request_that_crossed_a_virtual_cable() {
        let (Some(near), Some(far)) = (fresh_namespace(), fresh_namespace()) else {
            return;
        };
        let link = near.run(|| {
            let mut routes = RouteSocket::open().expect("netlink");
            let cable = routes.add_veth("home0", "mobile0", Some(far.as_fd()));
            cable.expect("a cable");
            let wanted = Wanted {
                port: PORT,
                icmp: [9, 10],
            };
            PacketLink::open(equip(&mut routes, "home0", HOME_AGENT), 0, wanted).expect("sockets")
        });
        let link = link.expect("a namespace");
        let speak = || {
            equip(
                &mut RouteSocket::open().expect("netlink"),
                "mobile0",
                MOBILE,
            );
            let socket = UdpSocket::bind((MOBILE, PORT)).expect("free");
            socket
                .send_to(&signed_request(), (HOME_AGENT, PORT))
                .expect("a route");
        };
        far.run(speak).expect("a namespace");
        let mut poller = Poller::new().expect("epoll");
        poller
            .add(&link, TUN, Interest::Readable)
            .expect("a descriptor");
        assert_eq!(poller.wait().expect("epoll").count(), 1);
        let mut buffer = [0; 200];
        let frame = link.receive(&mut buffer).expect("no error");
        let frame = frame.expect("it is readable");
        let believed = Frame {
            lacks_checksum: false,
            ..frame
        };
        let arrival = Arrival {
            link: LinkId(0),
            from: LinkAddress(frame.from),
        };
        for (frame, is_accepted) in [(&frame, true), (&believed, false)] {
            let mut agent = home_agent();
            let packet = packet_of(frame).expect("a packet");
            let _ = agent.handle_packet(Instant::ZERO, arrival, packet);
            let sent = core::iter::from_fn(|| agent.poll_transmit());
            let replies: Vec<ReplyCode> = sent
                .filter_map(|transmit| match transmit {
                    Transmit::Packet { packet, .. } => {
                        let reply = RegistrationReply::parse(packet.payload()?).ok()?;
                        Some(reply.0.code)
                    }
                    Transmit::Arp(_) => None,
                })
                .collect();
            let expected = is_accepted.then_some(ReplyCode::ACCEPTED);
            assert_eq!(replies, Vec::from_iter(expected));
        }
    }

    fn equip(routes: &mut RouteSocket, name: &str, address: Ipv4Addr) -> InterfaceIndex {
        let index = routes.interface(name).expect("made");
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        routes.configure(index, &up).expect("up");
        let prefix = Prefix {
            address: address.into(),
            length: 24,
        };
        routes.add_address(index, prefix).expect("free");
        index
    }

    const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);

    /// A home agent on link 0, of a mobile node with a key.
    fn home_agent() -> HomeAgent {
        let key: Vec<u8> = (0..16).collect();
        let key = SecurityAssociation::new(256, Algorithm::HmacMd5, &key).expect("a free index");
        let config = HomeAgentConfig {
            address: HOME_AGENT,
            link: LinkId(0),
            mobiles: BTreeMap::from([(MOBILE, vec![key])]),
            foreign_agents: BTreeMap::new(),
            longest_lifetime: Lifetime(600),
            replay_tolerance: Duration::from_secs(7),
            reverse_tunnels: ReverseTunnels::Offered,
            udp_tunnels: None,
            advertising: None,
            limits: HomeLimits::default(),
            clock: NtpClock::new(Instant::ZERO, 0xe800_0000_0000_0000),
            seed: 1,
        };
        HomeAgent::new(Instant::ZERO, config)
    }

    /// A request under the mobile node's key, with an authenticator that Python's `hmac` has made.
    fn signed_request() -> Vec<u8> {
        const AUTHENTICATOR: u128 = 0x6b9e_d6c9_08aa_a1f7_1e46_ed2c_0a1f_f7a5;
        let request = RegistrationRequest {
            flags: RequestFlags::REVERSE_TUNNEL,
            lifetime: Lifetime(300),
            home_address: MOBILE,
            home_agent: HOME_AGENT,
            care_of_address: Ipv4Addr::new(10, 2, 0, 1),
            identification: 0xe800_0000_1234_5678,
        };
        let pair = SecuredPair::MobileHome;
        let message = request.emit();
        let message = message.authenticate(pair, 256, 16, |_| AUTHENTICATOR.to_be_bytes());
        message.finish()
    }

    /// The kernel tells of an address that is gone later than packets meet that.
    #[test]
    fn an_address_that_is_gone_has_no_path_and_no_error() {
        let Some(namespace) = namespace_with_loopback() else {
            return;
        };
        let gone = Ipv4Addr::new(192, 0, 2, 7).into();
        let other = Ipv4Addr::LOCALHOST.into();
        let path = |own, other| {
            let ask = || path_mtu(own, other).expect("no error");
            namespace.run(ask).expect("enter")
        };
        assert_eq!(path(gone, other), None);
        assert_eq!(path(other, gone), None);
        // As long as a packet of IPv4 can be; the device takes a byte more.
        assert_eq!(path(other, other), Some(65_535));
    }

    /// Linux lets programs use a new address of IPv6 before it takes packets for it.
    #[test]
    fn a_care_of_address_counts_while_the_kernel_takes_packets_for_it() {
        let Some(late) = LateAddress::new() else {
            return;
        };
        let agent = "2001:db8:1::1".parse().expect("literal");
        late.through_its_states(|address, is_taken| {
            let sender = RawSender::open(0, None).expect("a socket");
            let chosen = sender.own_address(agent).expect("a socket");
            assert_eq!(chosen, Some(address), "the kernel would use it");
            let own = address_towards(&sender, agent).expect("netlink");
            assert_eq!(own, is_taken.then_some(address));
        });
    }
}
