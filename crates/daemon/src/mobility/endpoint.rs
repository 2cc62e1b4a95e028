//! TUN device, sockets, timer and event loop of a role with Mobile IP.

use crate::failure::Failure;
use anyhow::Context;
use bytes::Bytes;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::monitor::{Change, RouteMonitor};
use outlast_linux::netlink::{InterfaceIndex, InterfaceSettings, RouteSocket};
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::protocol::ProtocolReceiver;
use outlast_linux::raw::{RawSender, Sent};
use outlast_linux::signal::{Hangup, Termination};
use outlast_linux::timer::Timer;
use outlast_linux::tun::{MAX_PACKET, Tun, Written};
use outlast_linux::waker::Waker;
use outlast_mobility::{Transmit, Via};
use outlast_wire::mobile_ip::PORT;
use outlast_wire::{IcmpNotice, IpHeader, Packet, UdpHeader};
use rustix::net::sockopt;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;

/// Packets taken from one descriptor before the others have their turn.
const BURST: usize = 64;

const ICMP: u8 = 1;
const IPV4_IN_IP: u8 = 4;

const TUN: Token = Token(0);
const MONITOR: Token = Token(1);
const TIMER: Token = Token(2);
const END: Token = Token(3);
const RELOAD: Token = Token(4);
const DATAGRAMS: Token = Token(5);
const TUNNEL: Token = Token(6);
const ERRORS: Token = Token(7);

/// What a role does with what the loop hears.
pub(super) trait Role {
    /// Decapsulated packets go on to other hosts.
    const FORWARDS: bool;

    /// A packet that the kernel routes into the TUN device.
    fn handle_device(&mut self, now: Instant, packet: Packet);

    /// A packet that comes to the own address.
    fn handle_network(&mut self, now: Instant, packet: Packet);

    /// Addresses, routes or interfaces have changed.
    fn handle_change(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        is_link_back: bool,
    ) -> anyhow::Result<()>;

    /// Time has come to `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// The configuration is to be read again.
    fn reload(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        config: &Path,
    ) -> anyhow::Result<()>;

    /// The role ends.
    fn end(&mut self, now: Instant);

    /// What is to be done next.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// Says in the log what has happened.
    fn tell(&mut self);

    /// When to call [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
}

/// Raw sockets at the own address: what comes in tunnels, and errors about them.
struct Receivers {
    tunnel: ProtocolReceiver,
    errors: ProtocolReceiver,
}

/// What a role speaks through.
pub(super) struct Endpoint {
    tun: Tun,
    /// Longest packet of the device in bytes.
    mtu: u32,
    sender: RawSender,
    datagrams: UdpSocket,
    /// The address at which this host's end of the tunnel is; `None` while there is none.
    own: Option<Ipv4Addr>,
    receivers: Option<Receivers>,
    /// Which interfaces carry packets.
    running: BTreeMap<u32, bool>,
    monitor: RouteMonitor,
    timer: Timer,
    poller: Poller,
    waker: Waker,
    hangup: Waker,
    buffer: Box<[u8]>,
    _termination: Termination,
    _reload: Hangup,
}

impl Endpoint {
    /// Makes the device and opens the sockets; what is sent bears `mark`.
    pub(super) fn open(device: &str, mtu: u32, mark: u32) -> Result<Self, Failure> {
        let tun = Tun::create(device).map_err(|error| Failure::Capability(error.to_string()))?;
        Self::equip(tun, device, mtu, mark).map_err(Failure::Run)
    }

    fn equip(tun: Tun, device: &str, mtu: u32, mark: u32) -> anyhow::Result<Self> {
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
        let datagrams = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))
            .with_context(|| format!("cannot listen at UDP port {PORT}"))?;
        datagrams.set_nonblocking(true)?;
        let monitor = RouteMonitor::open().context("cannot hear of addresses")?;
        let (timer, waker, hangup) = (Timer::new()?, Waker::new()?, Waker::new()?);
        let (termination, reload) = (Termination::wake_daemon(&waker)?, Hangup::wake(&hangup)?);
        let poller = Poller::new()?;
        poller.add(&tun, TUN, Interest::Readable)?;
        poller.add(&monitor, MONITOR, Interest::Readable)?;
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&waker, END, Interest::Readable)?;
        poller.add(&hangup, RELOAD, Interest::Readable)?;
        poller.add(&datagrams, DATAGRAMS, Interest::Readable)?;
        Ok(Self {
            tun,
            mtu,
            sender,
            datagrams,
            own: None,
            receivers: None,
            running: BTreeMap::new(),
            monitor,
            timer,
            poller,
            waker,
            hangup,
            buffer: vec![0; MAX_PACKET].into_boxed_slice(),
            _termination: termination,
            _reload: reload,
        })
    }

    /// The address from which the kernel would speak to `other`, past the role's own routes.
    pub(super) fn address_towards(&self, other: Ipv4Addr) -> io::Result<Option<Ipv4Addr>> {
        match self.sender.own_address(other.into())? {
            Some(IpAddr::V4(own)) => Ok(Some(own)),
            _ => Ok(None),
        }
    }

    /// Puts this end of the tunnel at another address.
    ///
    /// An address that is gone already counts as none: the kernel tells of the next one.
    pub(super) fn settle(&mut self, own: Option<Ipv4Addr>) -> io::Result<Option<Ipv4Addr>> {
        if own == self.own {
            return Ok(own);
        }
        (self.own, self.receivers) = (None, None);
        let Some(address) = own else {
            return Ok(None);
        };
        let open = |protocol| ProtocolReceiver::open(protocol, address.into());
        let receivers = match (open(IPV4_IN_IP), open(ICMP)) {
            (Ok(tunnel), Ok(errors)) => Receivers { tunnel, errors },
            (Err(error), _) | (_, Err(error)) => {
                return match error.kind() {
                    io::ErrorKind::AddrNotAvailable => Ok(None),
                    _ => Err(error),
                };
            }
        };
        self.poller
            .add(&receivers.tunnel, TUNNEL, Interest::Readable)?;
        self.poller
            .add(&receivers.errors, ERRORS, Interest::Readable)?;
        (self.own, self.receivers) = (own, Some(receivers));
        Ok(own)
    }

    /// Drives `role` until it is asked to end.
    pub(super) fn run(&mut self, role: &mut impl Role, config: &Path) -> anyhow::Result<()> {
        self.drain(clock::now(), role)?;
        loop {
            let ready: Vec<Ready> = self.poller.wait()?.collect();
            let now = clock::now();
            for Ready { token, .. } in ready {
                match token {
                    TUN => self.take_from_device(now, role)?,
                    TUNNEL | ERRORS => self.take_packets(now, role, token)?,
                    DATAGRAMS => self.take_datagrams(now, role)?,
                    MONITOR => self.take_changes(now, role)?,
                    TIMER => self.timer.note_expiry(),
                    END if self.waker.reset()? => {
                        role.end(now);
                        return self.drain(now, role);
                    }
                    RELOAD if self.hangup.reset()? => role.reload(now, self, config)?,
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
            let Some(bytes) = self.tun.read(&mut self.buffer)? else {
                break;
            };
            // The kernel made it: what cannot be read is of another family.
            if let Ok(packet) = Packet::parse(Bytes::copy_from_slice(bytes)) {
                role.handle_device(now, packet);
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
            let receiver = match token {
                TUNNEL => &receivers.tunnel,
                _ => &receivers.errors,
            };
            let Some(bytes) = receiver.receive_whole(&mut self.buffer)? else {
                break;
            };
            match Packet::parse(Bytes::copy_from_slice(bytes)) {
                Ok(packet) => role.handle_network(now, packet),
                Err(error) => tracing::debug!(%error, "a packet cannot be read"),
            }
        }
        Ok(())
    }

    /// Messages of registration, and tunnels in UDP.
    fn take_datagrams(&mut self, now: Instant, role: &mut impl Role) -> io::Result<()> {
        for _ in 0..BURST {
            let (length, source) = match self.datagrams.recv_from(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An error about an earlier datagram, which the machines do not wait for.
                Err(error) => {
                    tracing::debug!(%error, "a datagram was not delivered");
                    continue;
                }
            };
            let (SocketAddr::V4(source), Some(own)) = (source, self.own) else {
                continue;
            };
            let ip = IpHeader::new((*source.ip()).into(), own.into());
            let udp = UdpHeader {
                source_port: source.port(),
                destination_port: PORT,
            };
            let packet = Packet::udp_datagram(ip, udp, &self.buffer[..length]);
            role.handle_network(now, packet);
        }
        Ok(())
    }

    fn take_changes(&mut self, now: Instant, role: &mut impl Role) -> anyhow::Result<()> {
        let (mut concerns, mut is_link_back) = (false, false);
        while let Some(change) = self.monitor.receive()? {
            match change {
                Change::Neighbour { .. } => {}
                Change::Interface {
                    index: InterfaceIndex(index),
                    is_running,
                    ..
                } => {
                    concerns = true;
                    let was_running = self.running.insert(index, is_running);
                    is_link_back |= is_running && was_running == Some(false);
                }
                Change::InterfaceGone {
                    index: InterfaceIndex(index),
                } => {
                    concerns = true;
                    self.running.remove(&index);
                }
                Change::Address { .. } | Change::Route { .. } | Change::Missed => concerns = true,
            }
        }
        match concerns {
            true => role.handle_change(now, self, is_link_back),
            false => Ok(()),
        }
    }

    /// Carries out what the role asks for, and arms the timer.
    fn drain(&mut self, now: Instant, role: &mut impl Role) -> anyhow::Result<()> {
        while let Some(transmit) = role.poll_transmit() {
            match transmit {
                Transmit::Packet { packet, via } => {
                    let source = packet.header().ip.source;
                    let is_own = self.own.is_some_and(|own| source == own);
                    match via {
                        Via::Local => self.deliver(&packet)?,
                        _ if is_own => self.send(now, role, &packet)?,
                        _ if role_forwards(role) => self.deliver(&packet)?,
                        _ => tracing::debug!(%source, "a packet of another address is not sent"),
                    }
                }
                // The device is point-to-point: there is no ARP.
                Transmit::Arp(_) => {}
            }
        }
        role.tell();
        let next = role.poll_timeout().map(|at| at.max(now));
        Ok(self.timer.set(next)?)
    }

    /// Hands a packet to this host's stack, which keeps it or forwards it. What the network card has
    /// put together is taken apart, or it would fit no link that it is to leave by.
    fn deliver(&self, packet: &Packet) -> io::Result<()> {
        let Ok(segments) = packet.segment_to_mtu(self.mtu) else {
            return self.write(packet);
        };
        for segment in segments {
            self.write(&segment)?;
        }
        Ok(())
    }

    fn write(&self, packet: &Packet) -> io::Result<()> {
        match self.tun.write(&packet.to_bytes())? {
            Written::Delivered | Written::NoRoom => {}
            Written::Down => tracing::debug!("the device is down"),
        }
        Ok(())
    }

    fn send(&self, now: Instant, role: &mut impl Role, packet: &Packet) -> io::Result<()> {
        let destination = packet.header().ip.destination;
        match self.sender.send(destination, &packet.to_bytes())? {
            Sent::Accepted | Sent::NoRoom => {}
            Sent::TooLong => {
                // A router on the way would say so, too.
                let mtu = self.path_mtu(destination)?;
                let notice = IcmpNotice::TooBig { mtu };
                let router = packet.header().ip.source;
                if let Ok(error) = Packet::icmp_error(router, notice, packet) {
                    role.handle_network(now, error);
                }
            }
            Sent::Unreachable => tracing::debug!(%destination, "a packet was not sent"),
        }
        Ok(())
    }

    /// What the kernel knows of the way to `destination`, in bytes.
    fn path_mtu(&self, destination: IpAddr) -> io::Result<u32> {
        let own = self.own.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let probe = UdpSocket::bind((own, 0))?;
        probe.connect((destination, PORT))?;
        Ok(sockopt::ip_mtu(&probe)?)
    }
}

const fn role_forwards<R: Role>(_: &R) -> bool {
    R::FORWARDS
}
