//! The gateway on a real interface: descriptors, clock and timer around the pure
//! [`Gateway`].
//!
//! One thread. Rules, queue and sockets end with the process, however it ends; then traffic flows
//! as if it had never been there.

pub(crate) mod config;
pub(crate) mod control;
mod indicators;
mod path;
pub(crate) mod status;

use crate::failure::Failure;
use crate::terminal;
use anyhow::Context;
use config::Settings;
use control::{Answer, ControlSocket, Notified, Request};
use indicators::{INTERFACE, Indicators};
use outlast_core::gateway::{DropCause, Event, Gateway, GatewayConfig};
use outlast_core::link::{Direction, LinkConfig, LinkState};
use outlast_core::mechanisms::path::Verdict;
use outlast_core::time::Instant;
use outlast_linux::clock;
use outlast_linux::monitor::{self, Change, RouteMonitor};
use outlast_linux::netfilter::NetfilterError;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::privilege;
use outlast_linux::raw::Sent;
use outlast_linux::signal::Termination;
use outlast_linux::timer::Timer;
use outlast_linux::waker::Waker;
use path::{QueuePath, Taken, Waiting};
use status::{Resumes, Status};
use std::io;

/// Packets taken before timers, the network's changes and clients have their turn.
const BURST: usize = 64;

const QUEUE: Token = Token(0);
const MONITOR: Token = Token(1);
const TIMER: Token = Token(2);
const END: Token = Token(3);
const CONTROL: Token = Token(4);
/// Clients of the control socket have tokens from here on.
const FIRST_CLIENT: u64 = 16;

/// Runs the gateway until the process is asked to stop.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let end = Waker::new()?;
    let _termination = Termination::wake(&end)?;
    let mut daemon = Daemon::new(settings, end)?;
    daemon.path.begin().map_err(|error| missing(&error))?;
    privilege::keep_network_capabilities().context("cannot drop privileges")?;
    terminal::say(&daemon.introduction());
    daemon.serve().context("the gateway cannot go on")?;
    terminal::say("Stopped: packets pass as if the gateway had not been there.");
    Ok(())
}

/// What this machine lacks for the data path.
fn missing(error: &NetfilterError) -> Failure {
    let text = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    match error {
        NetfilterError::QueueTaken { .. } | NetfilterError::TableTaken { .. } => {
            Failure::Usage(text)
        }
        _ => Failure::Capability(text),
    }
}

struct Daemon<'s> {
    settings: &'s Settings,
    gateway: Gateway,
    path: QueuePath,
    indicators: Indicators,
    monitor: RouteMonitor,
    route: RouteSocket,
    control: ControlSocket,
    resumes: Resumes,
    poller: Poller,
    timer: Timer,
    end: Waker,
    began: Instant,
}

impl<'s> Daemon<'s> {
    fn new(settings: &'s Settings, end: Waker) -> Result<Self, Failure> {
        let path = QueuePath::open(settings).map_err(|error| missing(&error))?;
        let netlink = "cannot learn of the network's changes";
        let monitor = RouteMonitor::open().context(netlink)?;
        let mut route = RouteSocket::open().context(netlink)?;
        if let Err(error) = route.interface(&settings.interface) {
            // It may come later, as a modem's does; a misspelt one does not.
            tracing::warn!("{error}; waiting for it");
        }
        let control = ControlSocket::open(&settings.control, FIRST_CLIENT)?;
        let poller = Poller::new()?;
        let timer = Timer::new()?;
        poller.add(&path, QUEUE, Interest::Readable)?;
        poller.add(&monitor, MONITOR, Interest::Readable)?;
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&end, END, Interest::Readable)?;
        poller.add(control.listener(), CONTROL, Interest::Readable)?;
        let began = clock::now();
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism: settings.mechanism.0,
            seed: random()?,
            ..GatewayConfig::default()
        });
        gateway.add_link(began, INTERFACE, LinkConfig::default());
        let mut daemon = Self {
            settings,
            gateway,
            path,
            indicators: Indicators::new(&settings.interface, settings.indicators),
            monitor,
            route,
            control,
            resumes: Resumes::default(),
            poller,
            timer,
            end,
            began,
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
        } = self.settings;
        let state = match self.indicators.state() {
            LinkState::Up => "up",
            LinkState::Down => "down",
        };
        format!(
            "{mechanism} on {interface} (link {state}) by {}. Control socket: {}",
            self.path.describe(),
            control.display()
        )
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.catch_up(clock::now())?;
            let next = [
                self.gateway.poll_timeout().map(|(at, _)| at),
                self.indicators.poll_timeout(),
            ];
            self.timer.set(next.into_iter().flatten().min())?;
            let ready: Vec<Ready> = self.poller.wait()?.collect();
            // The network's changes first: packets that came after them are judged by them.
            if ready.iter().any(|ready| ready.token == MONITOR) {
                self.hear_changes()?;
            }
            for Ready { token, .. } in ready {
                match token {
                    QUEUE => self.take_burst()?,
                    MONITOR => {}
                    TIMER => self.timer.note_expiry(),
                    END => {
                        if self.end.reset()? {
                            return Ok(());
                        }
                    }
                    CONTROL => self.control.accept(&self.poller)?,
                    Token(client) => self.hear_client(client)?,
                }
            }
        }
    }

    /// Lets everything happen that is due by `now`.
    fn catch_up(&mut self, now: Instant) -> io::Result<()> {
        if self.gateway.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.gateway.handle_timeout(now);
            self.drain(now)?;
        }
        while let Some(peer) = self.indicators.poll_question(now) {
            let Some(index) = self.indicators.index() else {
                break;
            };
            if let Err(error) = self.route.probe_neighbour(index, peer) {
                tracing::debug!("{error}");
            }
        }
        self.apply_link_events(now)
    }

    fn take_burst(&mut self) -> io::Result<()> {
        for _ in 0..BURST {
            match self.path.take()? {
                Taken::Nothing => return Ok(()),
                Taken::Passed => {}
                Taken::Waiting(waiting) => self.judge(&waiting)?,
            }
        }
        Ok(())
    }

    /// Asks the gateway what becomes of a packet that waits.
    fn judge(&mut self, waiting: &Waiting) -> io::Result<()> {
        let now = clock::now();
        self.catch_up(now)?;
        let direction = waiting.direction;
        let (mut passed, mut transmits) = (Vec::new(), Vec::new());
        for packet in &waiting.packets {
            let ip = packet.header().ip;
            let far = match direction {
                Direction::ToLink => ip.destination,
                Direction::FromLink => ip.source,
            };
            let link = self.indicators.link_to(far);
            if direction == Direction::FromLink {
                self.indicators.handle_arrival(link);
                self.apply_link_events(now)?;
            }
            if self.gateway.handle_packet(now, link, direction, packet) == Verdict::Pass {
                passed.push(packet.clone());
            }
            transmits.extend(std::iter::from_fn(|| self.gateway.poll_transmit()));
        }
        self.path.release(waiting, &passed)?;
        for transmit in transmits {
            self.send(now, &transmit)?;
        }
        self.drain(now)
    }

    /// Sends and tells what the gateway wants sent and told.
    fn drain(&mut self, now: Instant) -> io::Result<()> {
        while let Some(transmit) = self.gateway.poll_transmit() {
            self.send(now, &transmit)?;
        }
        while let Some(event) = self.gateway.poll_event() {
            match event {
                Event::Link(event) => {
                    let peer = event.link.peer.map(tracing::field::display);
                    tracing::info!(state = ?event.state, by = ?event.indicator, peer, "link");
                }
                Event::Resumed { flow, after } => {
                    tracing::debug!(near = %flow.near, far = %flow.far, ?after, "resumed");
                    self.resumes.note(now, flow, after);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Instant, transmit: &outlast_core::gateway::Transmit) -> io::Result<()> {
        let sent = self.path.transmit(transmit)?;
        if sent == Sent::NoRoom && transmit.direction == Direction::ToLink {
            let (link, packet) = (transmit.link, &transmit.packet);
            self.gateway
                .handle_drop(now, link, packet, DropCause::Congestion);
        }
        Ok(())
    }

    fn hear_changes(&mut self) -> io::Result<()> {
        while let Some(change) = self.monitor.receive()? {
            let now = clock::now();
            if change == Change::Missed {
                self.take_snapshot(now)?;
                continue;
            }
            let before = (self.indicators.index(), self.indicators.mtu());
            self.indicators.handle_change(now, change);
            self.follow_interface(before)?;
            self.apply_link_events(now)?;
        }
        Ok(())
    }

    fn take_snapshot(&mut self, now: Instant) -> io::Result<()> {
        let before = (self.indicators.index(), self.indicators.mtu());
        let all = monitor::snapshot().map_err(io::Error::other)?;
        self.indicators.handle_snapshot(now, all);
        self.follow_interface(before)?;
        self.apply_link_events(now)
    }

    /// Keeps the data path on the interface, which may be another one of that name.
    fn follow_interface(
        &mut self,
        (index, mtu): (Option<outlast_linux::netlink::InterfaceIndex>, u32),
    ) -> io::Result<()> {
        if self.indicators.index() == index && self.indicators.mtu() == mtu {
            return Ok(());
        }
        let is_new = self.indicators.index() != index;
        if self.indicators.index().is_none() {
            self.path.detach();
        } else if let Err(error) = self.path.attach(self.indicators.mtu(), is_new) {
            // It is gone again, as its next change will tell.
            tracing::warn!(%error, "cannot send on {}", self.settings.interface);
        }
        Ok(())
    }

    fn apply_link_events(&mut self, now: Instant) -> io::Result<()> {
        while let Some(event) = self.indicators.poll_event() {
            self.gateway.handle_link(now, event);
            self.drain(now)?;
        }
        Ok(())
    }

    fn hear_client(&mut self, client: u64) -> io::Result<()> {
        let Some(request) = self.control.hear(client) else {
            return Ok(());
        };
        let now = clock::now();
        match request {
            Request::Status => {}
            Request::Notify { state, peer } => {
                let state = match state {
                    Notified::Up => LinkState::Up,
                    Notified::Down => LinkState::Down,
                };
                self.indicators.handle_notice(now, peer, state);
                self.apply_link_events(now)?;
            }
        }
        let answer = match serde_json::to_value(self.status(now)) {
            Ok(status) => Answer::Done(status),
            Err(error) => Answer::Refused(error.to_string()),
        };
        self.control.answer(client, &answer);
        Ok(())
    }

    fn status(&self, now: Instant) -> Status {
        Status::of(
            now,
            self.began,
            self.settings,
            &self.gateway,
            &self.path,
            &self.indicators,
            &self.resumes,
        )
    }
}

/// A seed that nobody outside can know.
fn random() -> io::Result<u64> {
    let mut seed = [0; 8];
    let length = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
    debug_assert_eq!(length, seed.len(), "short reads begin at 256 bytes");
    Ok(u64::from_ne_bytes(seed))
}
