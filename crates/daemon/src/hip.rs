//! The roles `hip` and `rendezvous`: descriptors, clock and timer around the pure
//! [`Host`].
//!
//! Applications speak through a TUN device that bears the host's tag as its address; HIP and ESP go
//! through raw sockets, one pair for each address of the host. The address from which the kernel
//! would speak to the peers is the preferred one.

mod greeting;
pub mod key;
mod lsi;
mod metrics;
mod operating;
mod places;
mod settings;
mod sockets;
mod status;
mod whereabouts;

use crate::failure::Failure;
use crate::operations::Operations;
use anyhow::Context;
use greeting::Greeter;
use metrics::Tally;
use outlast_base::time::Instant;
use outlast_hip::{Event, Host, LONGER, LocalScope, Protocol};
use outlast_linux::clock;
use outlast_linux::monitor::{self, Change, RouteMonitor};
use outlast_linux::netlink::{InterfaceIndex, InterfaceSettings, Prefix, Route, RouteSocket};
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::privilege;
use outlast_linux::protocol::ip_packet;
use outlast_linux::raw::{RawSender, Sent};
use outlast_linux::signal::{Hangup, Termination};
use outlast_linux::timer::Timer;
use outlast_linux::tun::{MAX_PACKET, Tun, Written};
use outlast_linux::waker::Waker;
use outlast_wire::hip::{ESP_PROTOCOL, HIP_PROTOCOL, Hit};
use places::Places;
use rustix::rand::{GetRandomFlags, getrandom};
use settings::Settings;
use sockets::Sockets;
pub use status::HipStatus;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use whereabouts::Whereabouts;

/// Packets taken from one descriptor before the others have their turn.
const BURST: usize = 64;

/// Addresses of peers without a route that are remembered.
const MOST_UNREACHED: usize = 64;

/// The tags' prefix on the TUN device: `2001:20::/28`.
const TAG_PREFIX: u8 = 28;

const TUN: Token = Token(0);
const MONITOR: Token = Token(1);
const TIMER: Token = Token(2);
const END: Token = Token(3);
const RELOAD: Token = Token(4);
/// Receivers have tokens from here on.
const FIRST_RECEIVER: u64 = 16;

/// What a role with HIP is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A host that speaks with others.
    Host,
    /// A host that forwards for others, too.
    Rendezvous,
}

impl Kind {
    /// As `--role` calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Host => "hip",
            Self::Rendezvous => "rendezvous",
        }
    }
}

/// Runs the role until it is asked to end; `control` goes before the configuration file's.
pub fn run(kind: Kind, config: &Path, control: Option<&Path>) -> Result<(), Failure> {
    let settings = Settings::load(config)?;
    let mut daemon = Daemon::start(kind, settings, config.into(), control)?;
    privilege::keep_network_capabilities().context("cannot drop privileges")?;
    let introduction = daemon.introduction();
    let service = daemon.operations.service();
    service.ready(clock::now(), &introduction);
    daemon.run().map_err(Failure::Run)
}

/// Reads the configuration and says what would hold.
pub fn check(config: &Path) -> Result<String, Failure> {
    let settings = Settings::load(config)?;
    let hit = settings.identity()?.hit();
    Ok(format!(
        "{}: sound\n  tag    {hit}\n  device {}\n  lsi    {}\n  peers  {}\n  control {}\n  metrics {}\n",
        config.display(),
        settings.device,
        settings
            .local_scope()
            .map_or("off".into(), |scope| scope.own.to_string()),
        settings.peers.len(),
        settings.control().display(),
        settings
            .metrics
            .as_ref()
            .map_or("off".into(), ToString::to_string),
    ))
}

/// Lines for `/etc/hosts`: the tag and the LSI of each peer with a name. Those without one are in comments.
pub fn hosts(config: &Path) -> Result<String, Failure> {
    let settings = Settings::load(config)?;
    let peers = settings.peers();
    let scope = settings.local_scope();
    let fixed = peers.iter().map(|(hit, peer)| (*hit, peer.lsi));
    let identifiers = scope.map(|scope| scope.assign(fixed)).unwrap_or_default();
    let mut text = String::new();
    for peer in &settings.peers {
        let lsi = peer.hit().and_then(|hit| identifiers.get(&hit));
        let (mark, name) = match &peer.name {
            Some(name) => ("", name.as_str()),
            None => ("# ", "has no name"),
        };
        let addresses = peer.tag.map(IpAddr::from).into_iter();
        for address in addresses.chain(lsi.map(|lsi| IpAddr::from(*lsi))) {
            text.push_str(&format!("{mark}{address}\t{name}\n"));
        }
    }
    Ok(text)
}

struct Daemon {
    kind: Kind,
    /// What is in force, and where it was read.
    settings: Settings,
    config: PathBuf,
    operations: Operations,
    tally: Tally,
    began: Instant,
    host: Host,
    tun: Tun,
    sender: RawSender,
    places: Places,
    greeter: Greeter,
    sockets: Sockets,
    /// Where something could not be sent for want of a route.
    unreached: BTreeSet<IpAddr>,
    /// Addresses of peers: the kernel is asked from where it would speak to them.
    destinations: Vec<IpAddr>,
    whereabouts: Whereabouts,
    monitor: RouteMonitor,
    timer: Timer,
    poller: Poller,
    waker: Waker,
    hangup: Waker,
    buffer: Box<[u8]>,
    _termination: Termination,
    _reload: Hangup,
}

impl Daemon {
    fn start(
        kind: Kind,
        settings: Settings,
        file: PathBuf,
        control: Option<&Path>,
    ) -> Result<Self, Failure> {
        let identity = settings.identity()?;
        let mut seed = [0; 32];
        getrandom(&mut seed, GetRandomFlags::empty())
            .map_err(|errno| Failure::Run(anyhow::Error::new(errno).context("no randomness")))?;
        let now = clock::now();
        let since_epoch = clock::unix_offset() + now.since(Instant::ZERO);
        let config = settings.host(kind == Kind::Rendezvous, since_epoch);
        let mut host = Host::new(now, config, identity, seed);
        host.set_peers(settings.peers());
        let tun = Tun::create(&settings.device)
            .map_err(|error| Failure::Capability(error.to_string()))?;
        prepare(&settings, host.hit()).map_err(Failure::Run)?;
        let control = control.map_or_else(|| settings.control(), Path::to_owned);
        let (whereabouts, known) = Whereabouts::open(&settings.device, &control);
        host.recall(known);
        let mut daemon = Self::equip((kind, settings), file, (&control, whereabouts), (host, tun))?;
        daemon.relocate(now).map_err(Failure::Run)?;
        for (peer, known) in daemon.settings.peers() {
            if known.registers {
                daemon.host.connect(now, peer);
            }
        }
        daemon.drain(now).map_err(Failure::Run)?;
        Ok(daemon)
    }

    fn equip(
        (kind, settings): (Kind, Settings),
        config: PathBuf,
        (control, whereabouts): (&Path, Whereabouts),
        (host, tun): (Host, Tun),
    ) -> Result<Self, Failure> {
        let sender = RawSender::open(0, None).context("cannot send HIP and ESP")?;
        let monitor = RouteMonitor::open().context("cannot hear of addresses")?;
        let (timer, waker, hangup) = (Timer::new()?, Waker::new()?, Waker::new()?);
        let (termination, reload) = (Termination::wake_daemon(&waker)?, Hangup::wake(&hangup)?);
        let poller = Poller::new()?;
        poller.add(&tun, TUN, Interest::Readable)?;
        poller.add(&monitor, MONITOR, Interest::Readable)?;
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&waker, END, Interest::Readable)?;
        poller.add(&hangup, RELOAD, Interest::Readable)?;
        let began = clock::now();
        let operations = Operations::open(began, control, settings.metrics.as_ref(), &poller)?;
        tracing::info!(tag = %host.hit(), device = settings.device, "HIP begins");
        Ok(Self {
            kind,
            config,
            operations,
            tally: Tally::new(),
            began,
            destinations: settings.destinations(),
            sockets: Sockets::open(settings.local_scope().is_some()),
            settings,
            host,
            tun,
            sender,
            places: Places::default(),
            greeter: Greeter::open().context("cannot ask for routers")?,
            unreached: BTreeSet::new(),
            whereabouts,
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

    fn run(&mut self) -> anyhow::Result<()> {
        loop {
            let mut ready: Vec<Ready> = self.poller.wait()?.collect();
            // Signatures take time, and data does not wait for them.
            ready.sort_by_key(|ready| self.protocol(ready.token) == Some(Protocol::Hip));
            for Ready { token, .. } in ready {
                // What was told before this turn may have taken long.
                let now = clock::now();
                match token {
                    TUN => self.take_data()?,
                    MONITOR => self.take_changes(now)?,
                    TIMER => {
                        self.timer.note_expiry();
                        self.operations.handle_timeout(now, &self.poller);
                    }
                    END if self.waker.reset()? => return self.end(now),
                    RELOAD if self.hangup.reset()? => {
                        // Told in the log; there is nobody else to tell.
                        let _ = self.reload(now);
                    }
                    token if Operations::owns(token) => self.hear(now, token)?,
                    Token(number) => self.take_packets(number)?,
                }
                self.put_out(clock::now())?;
            }
            let now = clock::now();
            self.host.handle_timeout(now);
            self.drain(now)?;
        }
    }

    /// What a descriptor receives, if it receives packets of other hosts.
    fn protocol(&self, Token(number): Token) -> Option<Protocol> {
        let number = number.checked_sub(FIRST_RECEIVER)?;
        let (protocol, _) = self.places.receiver(number)?;
        Some(protocol)
    }

    /// Packets of applications.
    ///
    /// The clock is read for each packet, once the packet is there: timestamps of TCP that the host reads in it are
    /// never from the future then.
    fn take_data(&mut self) -> io::Result<()> {
        for _ in 0..BURST {
            match self.tun.read(&mut self.buffer)? {
                Some(packet) => self.host.handle_data(clock::now(), packet),
                None => break,
            }
        }
        Ok(())
    }

    /// Packets of other hosts, with the time at which each of them is there, as in [`Self::take_data`].
    fn take_packets(&mut self, number: u64) -> io::Result<()> {
        let Some((protocol, receiver)) = number
            .checked_sub(FIRST_RECEIVER)
            .and_then(|number| self.places.receiver(number))
        else {
            return Ok(());
        };
        let burst = match protocol {
            Protocol::Hip => 1,
            Protocol::Esp => BURST,
        };
        for _ in 0..burst {
            let Some(received) = receiver.receive(&mut self.buffer)? else {
                break;
            };
            let path = (received.source, received.destination);
            self.host
                .handle_packet(clock::now(), path, protocol, received.payload);
        }
        Ok(())
    }

    /// Addresses, routes and interfaces have changed.
    fn take_changes(&mut self, now: Instant) -> anyhow::Result<()> {
        let mut concerns = false;
        let mut is_back = false;
        while let Some(change) = self.monitor.receive()? {
            match change {
                Change::Neighbour { .. } => {}
                Change::Interface {
                    index, is_running, ..
                } => {
                    concerns = true;
                    is_back |= self.places.note_interface(index, is_running);
                }
                Change::InterfaceGone { .. }
                | Change::Address { .. }
                | Change::Local { .. }
                | Change::Route { .. }
                | Change::Missed => concerns = true,
            }
        }
        if !concerns || self.relocate(now)? {
            return Ok(());
        }
        if is_back {
            tracing::info!("the link is back");
            self.host.handle_link(now);
        } else if !self.unreached.is_empty() {
            self.host
                .handle_route(now, &std::mem::take(&mut self.unreached));
        }
        Ok(())
    }

    /// Looks which addresses this host has now, and tells the host; whether they have changed.
    fn relocate(&mut self, now: Instant) -> anyhow::Result<bool> {
        let views = self.host.views().flat_map(|view| view.addresses);
        let last = self.host.whereabouts().flat_map(|(_, addresses)| addresses);
        let known: Vec<IpAddr> = views.map(|known| known.address).chain(last).collect();
        let others = self.destinations.iter().chain(&known).copied();
        let surroundings = monitor::snapshot()?;
        let scope = self.settings.local_scope();
        let own = own_addresses(&surroundings, (&self.sender, scope), others)?;
        self.greeter.greet(&surroundings, &own);
        if !self.places.settle(&own, &self.poller, FIRST_RECEIVER)? {
            return Ok(false);
        }
        tracing::info!(addresses = ?self.places.addresses(), "this host is elsewhere");
        self.host.handle_addresses(now, &self.places.addresses());
        Ok(true)
    }

    /// Sends, delivers and tells all that the host has, and arms the timer.
    fn drain(&mut self, now: Instant) -> anyhow::Result<()> {
        self.put_out(now)?;
        self.whereabouts.keep(now, &self.host);
        let next = [
            self.host.poll_timeout().map(|(at, _)| at),
            self.operations.poll_timeout(),
            self.whereabouts.poll_timeout(),
        ];
        let next = next.into_iter().flatten().min();
        Ok(self.timer.set(next.map(|at| at.max(now)))?)
    }

    /// Sends, delivers and tells all that the host has.
    fn put_out(&mut self, now: Instant) -> anyhow::Result<()> {
        while let Some(packet) = self.host.poll_transmit() {
            let protocol = match packet.protocol {
                Protocol::Hip => HIP_PROTOCOL,
                Protocol::Esp => ESP_PROTOCOL,
            };
            let (source, destination) = (packet.source, packet.destination);
            let Some(bytes) = ip_packet(source, destination, protocol, &packet.payload) else {
                continue;
            };
            // What is lost here is lost as on any link: both protocols repeat.
            match self.sender.send(destination, &bytes)? {
                Sent::Accepted | Sent::NoRoom => {}
                Sent::Unreachable if self.unreached.len() < MOST_UNREACHED => {
                    self.unreached.insert(destination);
                }
                sent => tracing::debug!(%destination, ?sent, "a packet was not sent"),
            }
        }
        let sockets = &mut self.sockets;
        while let Some(packet) = self
            .host
            .poll_delivery_for(now, |asked| sockets.family_of(asked))
        {
            match self.tun.write(&packet)? {
                Written::Delivered | Written::NoRoom => {}
                Written::Down => tracing::debug!("the device is down"),
            }
        }
        while let Some(event) = self.host.poll_event() {
            if let Event::Readdressed { took, .. } = &event {
                self.tally.note_readdressing(*took);
            }
            self.whereabouts.note();
            tell(&event);
        }
        Ok(())
    }

    /// Tells the peers that this host goes.
    fn end(&mut self, now: Instant) -> anyhow::Result<()> {
        self.operations.service().stopping(now);
        self.whereabouts.write(now, &self.host);
        let peers: Vec<Hit> = self.host.views().map(|view| view.peer).collect();
        for peer in peers {
            self.host.close(now, peer);
        }
        self.drain(now)?;
        tracing::info!("HIP ends");
        Ok(())
    }
}

/// This host's addresses: first those from which the kernel would speak to `others`, then the
/// rest, but for those of a family in which it reaches none of them. An address counts once the kernel takes
/// packets for it: before, the answer of a neighbour or of a peer would be lost.
fn own_addresses(
    surroundings: &[Change],
    (sender, scope): (&RawSender, Option<LocalScope>),
    others: impl Iterator<Item = IpAddr>,
) -> anyhow::Result<Vec<IpAddr>> {
    let (mut present, mut taken) = (Vec::new(), BTreeSet::new());
    for change in surroundings {
        match change {
            Change::Address {
                address,
                is_present: true,
                ..
            } => present.push(address.address),
            Change::Local {
                address,
                is_present: true,
            } => {
                taken.insert(*address);
            }
            _ => {}
        }
    }
    let mut own: Vec<IpAddr> = Vec::new();
    let (mut wanted, mut reached) = ([false; 2], [false; 2]);
    for other in others {
        let family = usize::from(other.is_ipv6());
        wanted[family] = true;
        let source = sender.own_address(other)?;
        let source = source.filter(|source| is_place(*source, scope));
        reached[family] |= source.is_some();
        let source = source.filter(|source| taken.contains(source) && !own.contains(source));
        own.extend(source);
    }
    for address in present {
        let family = usize::from(address.is_ipv6());
        let is_usable = (reached[family] || !wanted[family]) && !address.is_loopback();
        if is_usable
            && taken.contains(&address)
            && is_place(address, scope)
            && !own.contains(&address)
        {
            own.push(address);
        }
    }
    Ok(own)
}

/// Whether an address says where a host is: tags and LSIs do not.
fn is_place(address: IpAddr, scope: Option<LocalScope>) -> bool {
    match address {
        IpAddr::V6(address) => Hit::from(address).suite().is_none(),
        IpAddr::V4(address) => !scope.is_some_and(|scope| scope.contains(address)),
    }
}

/// Gives the TUN device its addresses and switches it on.
fn prepare(settings: &Settings, hit: Hit) -> anyhow::Result<()> {
    let mut routes = RouteSocket::open()?;
    let device = routes.interface(&settings.device)?;
    let up = InterfaceSettings {
        up: Some(true),
        multicast: Some(false),
        mtu: Some(settings.mtu),
        ..InterfaceSettings::default()
    };
    routes.configure(device, &up)?;
    let prefix = Prefix {
        address: hit.address().into(),
        length: TAG_PREFIX,
    };
    routes.add_address(device, prefix)?;
    if let Some(scope) = settings.local_scope() {
        prepare_local_scope(&mut routes, device, scope)?;
    }
    Ok(())
}

/// Gives the TUN device this host's LSI, and the route to those of peers packets that still fit as IPv6.
fn prepare_local_scope(
    routes: &mut RouteSocket,
    device: InterfaceIndex,
    scope: LocalScope,
) -> anyhow::Result<()> {
    let prefix = Prefix {
        address: scope.own.into(),
        length: scope.prefix_length,
    };
    routes.add_address(device, prefix)?;
    let address = prefix.network().context("the prefix of lsi is too long")?;
    let route = Route {
        destination: Prefix { address, ..prefix },
        interface: device,
        gateway: None,
        congestion_control: None,
    };
    routes.replace_route_with_mtu(&route, scope.mtu - LONGER)?;
    Ok(())
}

fn tell(event: &Event) {
    match event {
        Event::Established { peer } => tracing::info!(%peer, "association established"),
        Event::Failed { peer, failure } => tracing::warn!(%peer, "no association: {failure}"),
        Event::Readdressed {
            peer,
            address,
            took,
        } => {
            let took_ms = took.as_secs_f64() * 1e3;
            tracing::info!(%peer, %address, took_ms, "readdressed");
        }
        Event::Rekeyed { peer } => tracing::info!(%peer, "new keys for data"),
        Event::RekeyingFailed { peer } => {
            tracing::warn!(%peer, "no answer to the offer of new keys for data: the old ones stay");
        }
        Event::Closed { peer } => tracing::info!(%peer, "association closed"),
        Event::Registered { server } => tracing::info!(%server, "registered"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::LateAddress;

    /// The kernel gives a new address of IPv6 to programs before it takes packets for it.
    #[test]
    fn an_address_counts_while_the_kernel_takes_packets_for_it() {
        let Some(late) = LateAddress::new() else {
            return;
        };
        late.through_its_states(|address, is_taken| {
            let sender = RawSender::open(0, None).expect("a socket");
            let surroundings = monitor::snapshot().expect("netlink");
            let own = own_addresses(&surroundings, (&sender, None), std::iter::empty());
            assert_eq!(own.expect("netlink").contains(&address), is_taken);
        });
    }
}
