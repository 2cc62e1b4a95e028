//! The gateway on a real interface: descriptors, clock and timer around the pure
//! [`Gateway`].
//!
//! The event loop is one thread. A second thread makes requests that the kernel may answer late.
//! A client that asks for the status cannot hold up packets. A second process, the guardian, lets
//! packets pass while this process is stopped. Rules, queue and sockets end with the process,
//! however it ends: traffic then flows as if the daemon had never been there. Connections for which something was
//! acknowledged ahead are ended with a reset to both hosts.

pub mod agents;
mod clients;
mod compressing;
pub mod config;
pub mod control;
mod divert;
pub mod failure;
pub mod hip;
pub mod host;
mod indicators;
mod keys;
mod listening;
pub mod logging;
mod metrics;
pub mod mobility;
mod operations;
mod orphans;
mod outages;
mod outbox;
#[cfg(test)]
mod page;
mod path;
mod peers;
mod pledges;
mod port;
pub mod reference;
mod reload;
mod service;
mod stall;
pub mod status;
mod tables;
#[cfg(test)]
mod testing;
mod trusted;

use crate::failure::Failure;
use agents::Driver;
use anyhow::Context;
use config::{Given, Settings};
use control::{Answer, ControlSocket, Notified, Request};
use indicators::{INTERFACE, Indication, Indicators};
use logging::Logging;
use metrics::{MetricsSocket, Tally};
use orphans::Orphans;
use outages::Outages;
use outlast_base::time::Instant;
use outlast_compression::Compression;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, Indicator, LinkConfig, LinkId, LinkState};
use outlast_gateway::mechanisms::path::Verdict;
use outlast_linux::clock;
use outlast_linux::monitor::{self, Change, RouteMonitor};
use outlast_linux::netlink::{InterfaceIndex, RouteSocket};
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::privilege;
use outlast_linux::signal::{Hangup, Termination};
use outlast_linux::timer::Timer;
use outlast_linux::waker::Waker;
use path::{DataPath, FromQueue, KernelPath, Waiting};
use peers::Asker;
use pledges::Pledges;
use service::Service;
use status::{Flow, Resumes, Status};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Most packets taken from the queue before other descriptors have their turn.
const BURST: usize = 64;

const QUEUE: Token = Token(0);
const MONITOR: Token = Token(1);
const TIMER: Token = Token(2);
const END: Token = Token(3);
const CONTROL: Token = Token(4);
const RELOAD: Token = Token(5);
const METRICS: Token = Token(6);
const SUSPICIONS: Token = Token(7);
const NEIGHBOURS: Token = Token(8);
const GUARDIAN: Token = Token(9);
/// Clients of the control socket have tokens from here on.
const FIRST_CLIENT: u64 = 1 << 32;
/// Clients that ask for metrics have tokens from here on.
const FIRST_METRICS_CLIENT: u64 = 1 << 48;
/// Connections of neighbour gateways have tokens from here on.
const FIRST_NEIGHBOUR: u64 = 1 << 56;

/// Runs the gateway until the process is asked to stop.
pub fn run(given: Given, settings: Settings, logging: Logging) -> Result<(), Failure> {
    let wakers = Wakers {
        end: Waker::new()?,
        reload: Waker::new()?,
    };
    let _termination = Termination::wake_daemon(&wakers.end)?;
    let _hangup = Hangup::wake(&wakers.reload)?;
    let mut daemon = Daemon::new(given, settings, logging, wakers)?;
    daemon.path.begin()?;
    privilege::keep_network_capabilities().context("cannot drop privileges")?;
    let introduction = daemon.introduction();
    tracing::info!("{introduction}");
    for warning in daemon.settings.warnings() {
        tracing::warn!("{warning}");
    }
    daemon.follow_port();
    daemon.service.ready(clock::now(), &introduction);
    daemon.restore_frozen(daemon.began)?;
    daemon.tell_of_orphans();
    daemon.serve().context("the gateway cannot go on")?;
    daemon.service.stopping(clock::now());
    daemon.leave_pledges();
    tracing::info!("Stopped: packets pass as if the gateway had not been there.");
    Ok(())
}

/// The descriptors by which signals wake the event loop.
struct Wakers {
    end: Waker,
    reload: Waker,
}

struct Daemon {
    /// The arguments of the command line.
    given: Given,
    /// The settings in force.
    settings: Settings,
    /// The configuration file, if one was read.
    file: Option<PathBuf>,
    logging: Logging,
    service: Service,
    gateway: Gateway,
    path: DataPath,
    /// This end of the link, if payload is compressed on it.
    compression: Option<Compression>,
    /// The protocol with neighbour gateways and its journal, if `[agents]` asks for one.
    agents: Option<Driver>,
    /// The file of connections acknowledged ahead, which the guardian resets if this process dies.
    pledges: Pledges,
    /// Connections that an earlier process acknowledged ahead and did not end.
    orphans: Orphans,
    indicators: Indicators,
    /// The bridge, bond or switch that takes every packet of the interface, if there is one.
    port_of: Option<(InterfaceIndex, String)>,
    monitor: RouteMonitor,
    control: ControlSocket,
    metrics: Option<MetricsSocket>,
    tally: Tally,
    resumes: Resumes,
    outages: Outages,
    poller: Poller,
    timer: Timer,
    wakers: Wakers,
    began: Instant,
    asker: Asker,
}

impl Daemon {
    fn new(
        given: Given,
        settings: Settings,
        logging: Logging,
        wakers: Wakers,
    ) -> Result<Self, Failure> {
        let path = DataPath::open(&settings)?;
        let netlink = "cannot watch the network's changes";
        let monitor = RouteMonitor::open().context(netlink)?;
        let index = RouteSocket::open().and_then(|mut route| route.interface(&settings.interface));
        if let Err(error) = index {
            // A modem's interface may appear later; a misspelt name never does.
            tracing::warn!("{error}; waiting for it");
        }
        let poller = Poller::new()?;
        let (at, access) = (&settings.control, &settings.access);
        let control = ControlSocket::open(at, access, &poller, CONTROL, FIRST_CLIENT)?;
        let timer = Timer::new()?;
        poller.add(&path, QUEUE, Interest::Readable)?;
        poller.add(path.guardian(), GUARDIAN, Interest::Readable)?;
        if let Some(kernel) = path.kernel() {
            poller.add(kernel, SUSPICIONS, Interest::Readable)?;
        }
        poller.add(&monitor, MONITOR, Interest::Readable)?;
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&wakers.end, END, Interest::Readable)?;
        poller.add(&wakers.reload, RELOAD, Interest::Readable)?;
        let metrics = settings.metrics.as_ref();
        let metrics = metrics
            .map(|at| MetricsSocket::open(at, &poller, METRICS, FIRST_METRICS_CLIENT))
            .transpose()?;
        let began = clock::now();
        let begun = Pledges::begin(&settings);
        let (pledges, left) = begun.map_err(|error| Failure::Usage(error.to_string()))?;
        let agents = outbox::open_agents(began, &settings, &poller)?;
        let gateway = gateway_of(began, &settings)?;
        let compression = compressing::open(&settings)?;
        let (name, peers) = (&settings.interface, settings.limits.peers);
        let indicators = Indicators::new(name, settings.indicators, peers);
        let mut daemon = Self {
            file: given.file(),
            given,
            logging,
            service: Service::new(began),
            gateway,
            path,
            compression,
            agents,
            pledges,
            orphans: Orphans::new(began, left),
            indicators,
            port_of: None,
            monitor,
            control,
            metrics,
            tally: Tally::new(),
            resumes: Resumes::default(),
            outages: Outages::open(&settings.interface),
            poller,
            timer,
            wakers,
            began,
            asker: Asker::open(settings.mark)?,
            settings,
        };
        daemon.take_snapshot(began)?;
        Ok(daemon)
    }

    fn introduction(&self) -> String {
        let Settings {
            interface,
            mechanism,
            control,
            ..
        } = &self.settings;
        let state = match self.indicators.state() {
            LinkState::Up => "up",
            LinkState::Down => "down",
        };
        format!(
            "{mechanism} on {interface} (link {state}) by {}. Control socket: {}",
            self.path.describe(*mechanism),
            control.display()
        )
    }

    /// Serves whoever is ready, until the process is asked to stop.
    ///
    /// One wake-up, from the end of one wait to the beginning of the next:
    ///
    /// 1. The clock is read. All that the wake-up does has that time; a deadline that passes meanwhile ends
    ///    the next wait.
    /// 2. Network changes are heard, and the gateway learns of links that went or came. On the eBPF path the packets
    ///    of a link that went are diverted to user space before that.
    /// 3. Every other descriptor that is ready is served: a burst of packets, before each of which what is due is done,
    ///    as in step 5; suspicions of the kernel's programs; a guardian that was killed; the timer, for deadlines of
    ///    clients and of the service manager; signals; neighbour gateways; clients.
    /// 4. If the guardian let packets pass without the gateway, because this process stood still, the gateway learns what
    ///    it missed, and the clock is read once more.
    /// 5. What is due is done: the gateway's deadlines, those of agents and orphans, and questions for peers, before which
    ///    network changes are heard. Records of outages are closed.
    /// 6. On the eBPF path, links on which one-sided connections wait for an answer are diverted to user space, and links
    ///    for which nothing is left to do are left to the kernel at the next look, 50 ms after a change, later every two seconds:
    ///    all that waits in the queue is judged, the rules change, and what came meanwhile is judged, too. A second after
    ///    the last link the rules go, and the gateway forgets all.
    /// 7. The timer is set to the next deadline of all.
    ///
    /// A signal to end is obeyed at once: the rest of its wake-up is not done.
    ///
    /// The loop begins with step 4, so that a daemon that has just begun does what is due before it waits.
    fn serve(&mut self) -> io::Result<()> {
        let mut now = clock::now();
        loop {
            now = self.notice_stall(now)?;
            self.handle_due(now)?;
            self.account_outages(now);
            self.settle_path(now)?;
            self.timer.set(self.next_deadline())?;
            let ready: Vec<Ready> = self.poller.wait()?.collect();
            now = clock::now();
            // Network changes come first, so that later packets meet the new link states.
            if ready.iter().any(|ready| ready.token == MONITOR) {
                self.hear_changes(now)?;
            }
            for Ready { token, .. } in ready {
                match token {
                    QUEUE => {
                        self.take_burst(now)?;
                    }
                    SUSPICIONS => self.hear_suspicions(now)?,
                    GUARDIAN => self.renew_guardian()?,
                    MONITOR => {}
                    TIMER => self.handle_clients_due(now),
                    END => {
                        if self.wakers.end.reset()? {
                            return Ok(());
                        }
                    }
                    RELOAD => {
                        self.wakers.reload.reset()?;
                        // The outcome is in the log; no client waits for an answer.
                        let _ = self.reload(now);
                    }
                    CONTROL => self.control.accept(now, &self.poller)?,
                    METRICS => {
                        if let Some(metrics) = &mut self.metrics {
                            metrics.accept(now, &self.poller)?;
                        }
                    }
                    NEIGHBOURS | Token(FIRST_NEIGHBOUR..) => self.hear_neighbours(now, token)?,
                    Token(client @ FIRST_METRICS_CLIENT..) => self.show_metrics(now, client),
                    Token(client) => self.hear_client(now, client)?,
                }
            }
        }
    }

    /// The earliest deadline of all parts; `None` if no part has one.
    fn next_deadline(&self) -> Option<Instant> {
        let next = [
            self.gateway.poll_timeout().map(|(at, _)| at),
            self.path.kernel().and_then(KernelPath::poll_timeout),
            self.indicators.poll_timeout(),
            self.asker.poll_timeout(),
            self.agents.as_ref().and_then(Driver::poll_timeout),
            self.orphans.poll_timeout(),
            self.outages.poll_timeout(),
            self.service.poll_timeout(),
            self.control.poll_timeout(),
            self.metrics.as_ref().and_then(MetricsSocket::poll_timeout),
        ];
        next.into_iter().flatten().min()
    }

    /// Does what is due by `now` for gateway, agents, orphans and peers, and tells the gateway of links that went or came.
    fn handle_due(&mut self, now: Instant) -> io::Result<()> {
        if self.gateway.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.gateway.handle_timeout(now);
            self.drain(now)?;
        }
        if self
            .agents
            .as_ref()
            .and_then(Driver::poll_timeout)
            .is_some_and(|at| at <= now)
        {
            self.with_agents(now, Driver::handle_timeout);
            self.drain(now)?;
        }
        self.ask_for_orphans(now)?;
        self.ask_for_peers(now)?;
        self.apply_link_events(now)
    }

    /// Judges up to [`BURST`] waiting packets. Returns whether more may wait.
    ///
    /// Stops if this process stood still meanwhile: the loop then takes the packets back from the guardian first.
    fn take_burst(&mut self, now: Instant) -> io::Result<bool> {
        for _ in 0..BURST {
            self.path.pulse().beat();
            if self.path.pulse().is_stalled() {
                return Ok(true);
            }
            let longest_of = |packet: &outlast_wire::Packet, direction| {
                self.gateway.longest_packet(packet, direction)
            };
            match self.path.take(now, longest_of)? {
                FromQueue::Nothing => return Ok(false),
                FromQueue::Passed => {}
                FromQueue::Waiting(waiting) => self.judge(now, &waiting)?,
            }
        }
        Ok(true)
    }

    /// Has the gateway judge a waiting packet, then releases it and sends what is due.
    fn judge(&mut self, now: Instant, waiting: &Waiting) -> io::Result<()> {
        self.handle_due(now)?;
        let direction = waiting.direction;
        if self.is_of_neighbours(waiting) {
            return self.path.release(waiting, &waiting.packets);
        }
        if self.ends_orphan(now, waiting)? {
            return Ok(());
        }
        let (mut passed, mut transmits) = (Vec::new(), Vec::new());
        let (arrived, mut is_changed) = self.restored(now, waiting);
        for packet in arrived.iter() {
            let ip = packet.header().ip;
            let far = match direction {
                Direction::ToLink => ip.destination,
                Direction::FromLink => ip.source,
            };
            let link = self.indicators.link_to(far);
            if direction == Direction::FromLink {
                self.indicators.handle_arrival(now, link);
                self.apply_link_events(now)?;
                self.with_agents(now, |agents, place| {
                    agents.handle_packet_of(place, far, packet);
                });
            }
            self.introduce(now, link, direction, packet);
            let verdict = self.gateway.handle_packet(now, link, direction, packet);
            if direction == Direction::ToLink && !waiting.is_aggregate {
                self.gateway.note_length(packet);
            }
            let (from, to, bytes) = (ip.source, ip.destination, packet.total_len());
            tracing::trace!(?direction, %from, %to, bytes, ?verdict, "packet");
            self.follow_pledge(packet, direction);
            if verdict == Verdict::Pass {
                passed.push(packet.clone());
            }
            transmits.extend(std::iter::from_fn(|| self.gateway.poll_transmit()));
        }
        // Data that the far host lacks goes out before the near host hears the acknowledgement. If
        // the near host is this very host, it would at once fill the link's queue with new data.
        let (first, rest): (Vec<_>, Vec<_>) = transmits.into_iter().partition(|transmit| {
            direction == Direction::FromLink && transmit.direction == Direction::ToLink
        });
        self.tell_and_send(now, &first)?;
        if direction == Direction::ToLink {
            is_changed |= self.compress(now, &mut passed);
        }
        match is_changed {
            true => self.path.replace(waiting, &passed)?,
            false => self.path.release(waiting, &passed)?,
        }
        self.send_between()?;
        self.tell_and_send(now, &rest)?;
        self.drain(now)
    }

    fn hear_changes(&mut self, now: Instant) -> io::Result<()> {
        let mut has_changed = false;
        while let Some(change) = self.monitor.receive()? {
            if change == Change::Missed {
                self.take_snapshot(now)?;
                continue;
            }
            let before = (self.indicators.index(), self.indicators.mtu());
            self.greet_again(now, &change);
            self.indicators.handle_change(now, change);
            self.follow_interface(before)?;
            if self.indicators.index().is_some() && self.indicators.index() != before.0 {
                // An older interface may have taken this name, with addresses and routes.
                self.take_snapshot(now)?;
            }
            self.apply_link_events(now)?;
            has_changed = true;
        }
        self.follow_port();
        // Route changes arrive in batches; each batch is judged as a whole.
        if has_changed {
            self.follow_routes(now);
            self.indicators.judge_routes(now);
            self.apply_link_events(now)?;
        }
        Ok(())
    }

    fn take_snapshot(&mut self, now: Instant) -> io::Result<()> {
        let before = (self.indicators.index(), self.indicators.mtu());
        let all = monitor::snapshot().map_err(io::Error::other)?;
        self.indicators.handle_snapshot(now, all);
        self.follow_interface(before)?;
        self.follow_routes(now);
        self.apply_link_events(now)
    }

    /// Attaches the data path anew after a new index or MTU; detaches it from a lost interface.
    fn follow_interface(&mut self, (index, mtu): (Option<InterfaceIndex>, u32)) -> io::Result<()> {
        if self.indicators.index() == index && self.indicators.mtu() == mtu {
            return Ok(());
        }
        let is_new = self.indicators.index() != index;
        if let Some(compression) = &mut self.compression {
            compression.set_longest(self.indicators.mtu());
        }
        if self.indicators.index().is_none() {
            self.path.detach();
        } else if let Err(error) = self.path.attach(self.indicators.mtu(), is_new) {
            // The interface is gone again; the monitor's next change says so.
            tracing::warn!(%error, "cannot send on {}", self.settings.interface);
        }
        Ok(())
    }

    fn apply_link_events(&mut self, now: Instant) -> io::Result<()> {
        while let Some(indication) = self.indicators.poll_indication() {
            match indication {
                Indication::Changed(event) => {
                    if event.state == LinkState::Down {
                        self.divert(now, event.link);
                    } else if event.indicator == Indicator::Route {
                        // Only now does `link_to` map connections to this link again.
                        self.take_over_missed(now, event.link);
                    } else if let Some(kernel) = self.path.kernel_mut() {
                        kernel.look_soon(now);
                    }
                    if event.state == LinkState::Up {
                        self.orphans.hurry(now);
                    }
                    if event.state == LinkState::Up && event.link.peer.is_none() {
                        self.greet_peers(now);
                    }
                    if event.state == LinkState::Up {
                        self.doubt_neighbours(now, event.link);
                    }
                    self.gateway.handle_link(now, event);
                    if event.state == LinkState::Up {
                        self.note_arrival(now, event.link);
                    }
                }
                Indication::Neighbour(link, neighbour) => {
                    self.gateway.handle_neighbour(now, link, neighbour);
                }
                Indication::Returned(link, by) => {
                    self.take_over_missed(now, link);
                    self.doubt_neighbours(now, link);
                    self.gateway.handle_return(now, link, by);
                    self.note_arrival(now, link);
                }
                Indication::Moved(link, _) => {
                    self.take_over_missed(now, link);
                    self.gateway.handle_return(now, link, Indicator::Route);
                    self.note_arrival(now, link);
                }
            }
            self.drain(now)?;
        }
        Ok(())
    }

    fn hear_client(&mut self, now: Instant, client: u64) -> io::Result<()> {
        let Some(request) = self.control.serve(client, &self.poller) else {
            return Ok(());
        };
        let mut flows = None;
        match request {
            Request::Status => {}
            Request::Flows { limit } => {
                if let Some(kernel) = self.path.kernel_mut() {
                    kernel.list(now);
                }
                let mechanism = self.settings.mechanism.0.info().name;
                let passing = self.passing_flows();
                let told = Flow::largest(now, &self.gateway, passing, mechanism, limit);
                flows = Some(told);
            }
            Request::Reload => {
                let answer = self.reload(now).map_or_else(
                    |failure| Answer::Refused(failure.to_string()),
                    |changed| {
                        let warnings = self.settings.warnings();
                        Answer::Done(
                            serde_json::json!({ "changed": changed, "warnings": warnings }),
                        )
                    },
                );
                self.control.answer(client, &answer, &self.poller);
                return Ok(());
            }
            Request::Notify {
                link: Some(link), ..
            } if link != self.settings.interface => {
                let own = &self.settings.interface;
                let why = format!("this gateway's interface is {own}");
                self.control
                    .answer(client, &Answer::Refused(why), &self.poller);
                return Ok(());
            }
            Request::Notify { state, peer, .. } => {
                let answer = self.hear_notice(now, state, peer)?;
                self.control.answer(client, &answer, &self.poller);
                return Ok(());
            }
        }
        let mut status = self.status(now);
        status.flow_list = flows;
        let answer = match serde_json::to_value(status) {
            Ok(status) => Answer::Done(status),
            Err(error) => Answer::Refused(error.to_string()),
        };
        self.control.answer(client, &answer, &self.poller);
        Ok(())
    }

    /// Handles `outlast notify`, and answers with the link state that holds afterwards.
    ///
    /// That state may differ from `notified`: another indicator disagrees, or the link is damped.
    fn hear_notice(
        &mut self,
        now: Instant,
        notified: Notified,
        peer: Option<IpAddr>,
    ) -> io::Result<Answer> {
        let said = match notified {
            Notified::Up => LinkState::Up,
            Notified::Down => LinkState::Down,
        };
        self.indicators.handle_notice(now, peer, said);
        self.apply_link_events(now)?;
        let link = LinkId {
            peer,
            ..LinkId::of_interface(INTERFACE)
        };
        let holds = self
            .gateway
            .link_state(link)
            .map_or(said, |told| told.state);
        let holds = status::state(holds);
        Ok(Answer::Done(serde_json::json!({ "state": holds })))
    }

    fn show_metrics(&mut self, now: Instant, client: u64) {
        let Some(mut metrics) = self.metrics.take() else {
            return;
        };
        if let Some(asked) = metrics.serve(client, &self.poller) {
            let status = self.status(now);
            let text = metrics::exposition(&status, &self.tally);
            metrics.answer(client, asked, &text, &self.poller);
        }
        self.metrics = Some(metrics);
    }

    /// Handles the deadlines of service manager and clients; the timer has fired.
    fn handle_clients_due(&mut self, now: Instant) {
        self.timer.note_expiry();
        self.service.handle_timeout(now);
        self.control.handle_timeout(now, &self.poller);
        if let Some(metrics) = &mut self.metrics {
            metrics.handle_timeout(now, &self.poller);
        }
    }

    fn status(&mut self, now: Instant) -> Status {
        if let Some(kernel) = self.path.kernel_mut() {
            kernel.recount(now);
        }
        Status::of(now, self)
    }
}

/// A gateway with one link.
fn gateway_of(began: Instant, settings: &Settings) -> io::Result<Gateway> {
    let mut gateway = Gateway::new(GatewayConfig {
        mechanism: settings.mechanism.0,
        limits: settings.limits,
        seed: random()?,
        silence: settings.silence(),
        damping: settings.damping,
    });
    let link = LinkConfig {
        rate: settings.rate,
    };
    gateway.add_link(began, INTERFACE, link);
    gateway.share_rate(began, INTERFACE, settings.shares_rate);
    Ok(gateway)
}

/// Draws a number that nobody outside can guess.
fn random() -> io::Result<u64> {
    let mut seed = [0; 8];
    let length = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
    debug_assert_eq!(length, seed.len(), "short reads begin at 256 bytes");
    Ok(u64::from_ne_bytes(seed))
}
