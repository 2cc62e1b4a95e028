//! The role `host`: descriptors, clock and timer around the pure [`Host`], beside this machine's own TCP.
//!
//! No packet passes through this process. When a link is back, one pass of a BPF iterator lists the
//! kernel's connections, and those that wait for a timeout are made to retransmit
//! ([`outlast_linux::stack`]). Where the configuration says so, programs at cgroups send the User Timeout
//! Option for those connections ([`outlast_linux::user_timeout`]). An agent that is killed leaves nothing
//! behind: iterator and programs go with its process.

mod awaited;
mod damping;
mod immediate;
mod interfaces;
mod lacking;
mod metrics;
mod operating;
mod returns;
mod settings;
mod silence;
mod status;
mod suspension;
mod user_timeout;

use crate::failure::Failure;
use crate::operations::Operations;
use crate::peers::{KernelAsker, Questions};
use anyhow::Context;
use immediate::Immediate;
use interfaces::{Interfaces, Moved, News, What};
use lacking::Lacking;
use metrics::Tally;
use outlast_base::time::Instant;
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::{Event, Host, HostConfig, Limits, Network};
use outlast_linux::clock;
use outlast_linux::lack::Lack;
use outlast_linux::monitor::{self, Change, RouteMonitor};
use outlast_linux::netlink::{InterfaceIndex, Prefix};
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::priority::{Priority, favour_current_thread};
use outlast_linux::privilege;
use outlast_linux::signal::{Hangup, Termination};
use outlast_linux::silence::MOST_PEERS;
use outlast_linux::stack::{TcpStack, Waking};
use outlast_linux::timer::{Resumption, Timer};
use outlast_linux::waker::Waker;
use returns::{Found, Return, Returns};
use settings::{Restart, Settings};
use silence::SilentPeers;
pub use status::HostStatus;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use suspension::Suspension;

#[cfg(test)]
pub(crate) use damping::DAMPING;
#[cfg(test)]
pub(crate) use user_timeout::{RULES, USER_TIMEOUT};

const MONITOR: Token = Token(0);
const TIMER: Token = Token(1);
const END: Token = Token(2);
const RELOAD: Token = Token(3);
const RESUMPTION: Token = Token(4);
const REQUESTS: Token = Token(5);
const PEERS: Token = Token(6);

/// Hosts with connections that wait on whose way neighbours are looked for, at most.
const MOST_HOSTS: usize = 1_024;

/// Requests of peers that are heard before anything else is done.
const MOST_REQUESTS: usize = 1_024;

/// Events of silent peers that are heard before anything else is done: those of all peers that may be back together.
const MOST_EVENTS: usize = MOST_PEERS;

/// What does not work without a congestion control of BPF programs.
const KEPT_WINDOWS: &str = "connections keep their windows on a new path";

/// What is read if no other file is named, and this one is there.
const USUAL_CONFIG: &str = "/etc/outlast/host.toml";

/// The configuration file, if there is one.
fn config_file(given: Option<&Path>) -> Option<PathBuf> {
    let usual = Path::new(USUAL_CONFIG);
    let file = given.or_else(|| usual.exists().then_some(usual));
    file.map(Path::to_owned)
}

/// Runs the role until it is asked to end; without any configuration file with the defaults. `control`
/// goes before the configuration file's.
pub fn run(config: Option<&Path>, control: Option<&Path>) -> Result<(), Failure> {
    let config = config_file(config);
    let settings = Settings::load(config.as_deref())?;
    let mut daemon = Daemon::start(settings, config, control)?;
    // On a busy machine the tokens of a second would be lost in the waits between wake-ups.
    if favour_current_thread() == Priority::Ordinary {
        tracing::debug!("this process may not ask the scheduler for more than its share");
    }
    privilege::keep_network_capabilities().context("cannot drop privileges")?;
    let introduction = daemon.introduction();
    let service = daemon.operations.service();
    service.ready(clock::now(), &introduction);
    daemon.run().map_err(Failure::Run)
}

/// Reads the configuration and says what would hold.
pub fn check(config: Option<&Path>) -> Result<String, Failure> {
    let config = config_file(config);
    let settings = Settings::load(config.as_deref())?;
    let file = config.map_or("no configuration file".into(), |file| {
        file.display().to_string()
    });
    let interfaces = match settings.interfaces.as_slice() {
        [] => "all".to_owned(),
        names => names.join(", "),
    };
    let option = settings.user_timeout.as_ref();
    let option = option.map_or("not sent".into(), user_timeout::UserTimeout::shown);
    let metrics = settings.metrics.as_ref();
    Ok(format!(
        "{file}: sound\n  interfaces    {interfaces}\n  mechanism     {}\n  at most       {} connections a second, {} at \
         once\n  user timeout  {option}\n  control       {}\n  metrics       {}\n",
        settings.mechanism.name(),
        settings.per_second,
        settings.burst,
        settings.control().display(),
        metrics.map_or("off".into(), ToString::to_string),
    ))
}

struct Daemon {
    /// What is in force, and where it was read.
    settings: Settings,
    config: Option<PathBuf>,
    operations: Operations,
    tally: Tally,
    returns: Returns,
    began: Instant,
    host: Host,
    stack: TcpStack,
    user_timeouts: user_timeout::Programs,
    immediate: Immediate,
    silent_peers: SilentPeers,
    interfaces: Interfaces,
    asker: KernelAsker,
    questions: Questions,
    monitor: RouteMonitor,
    timer: Timer,
    suspension: Suspension,
    resumption: Resumption,
    poller: Poller,
    waker: Waker,
    hangup: Waker,
    _termination: Termination,
    _reload: Hangup,
}

impl Daemon {
    fn start(
        settings: Settings,
        config: Option<PathBuf>,
        control: Option<&Path>,
    ) -> Result<Self, Failure> {
        let stack = TcpStack::open(0).map_err(|error| {
            let Lack { what, remedy } = error.lack();
            Failure::Capability(format!(
                "the role `host` can neither list nor wake this host's connections: {what}; {remedy} (see `outlast \
                 doctor`)"
            ))
        })?;
        if settings.slow_start_on_new_path
            && let Err(lack) = stack.slow_start_control()
        {
            Lacking::of(KEPT_WINDOWS, lack).warn();
        }
        let user_timeouts = user_timeout::Programs::begin(settings.user_timeout.as_ref())?;
        let immediate = Immediate::load();
        let control = control.map_or_else(|| settings.control(), Path::to_owned);
        let mut daemon = Self::equip(
            stack,
            (user_timeouts, immediate),
            settings,
            config,
            &control,
        )?;
        daemon.renew_waking()?;
        daemon.take_snapshot(clock::now()).map_err(Failure::Run)?;
        tracing::info!(
            interfaces = daemon.interfaces.names().join(", "),
            "the host agent begins"
        );
        Ok(daemon)
    }

    fn equip(
        stack: TcpStack,
        (user_timeouts, immediate): (user_timeout::Programs, Immediate),
        settings: Settings,
        config: Option<PathBuf>,
        control: &Path,
    ) -> Result<Self, Failure> {
        let monitor = RouteMonitor::open().context("cannot hear of links")?;
        let (timer, waker, hangup) = (Timer::new()?, Waker::new()?, Waker::new()?);
        let (termination, reload) = (Termination::wake_daemon(&waker)?, Hangup::wake(&hangup)?);
        let poller = Poller::new()?;
        poller.add(&monitor, MONITOR, Interest::Readable)?;
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&waker, END, Interest::Readable)?;
        poller.add(&hangup, RELOAD, Interest::Readable)?;
        let resumption = Resumption::new()?;
        poller.add(&resumption, RESUMPTION, Interest::Readable)?;
        immediate.watch(&poller, REQUESTS)?;
        let silent_peers = SilentPeers::begin();
        silent_peers.watch(&poller, PEERS)?;
        let now = clock::now();
        let operations = Operations::open(now, control, settings.metrics.as_ref(), &poller)?;
        Ok(Self {
            config,
            operations,
            tally: Tally::new(),
            returns: Returns::default(),
            began: now,
            host: Host::new(now, host_config(&settings)),
            stack,
            user_timeouts,
            immediate,
            silent_peers,
            interfaces: Interfaces::new(settings.interfaces.clone()),
            settings,
            asker: KernelAsker::default(),
            questions: Questions::open(0).context("cannot ask for neighbours")?,
            monitor,
            timer,
            suspension: Suspension::new(clock::suspended()),
            resumption,
            poller,
            waker,
            hangup,
            _termination: termination,
            _reload: reload,
        })
    }

    fn run(&mut self) -> anyhow::Result<()> {
        loop {
            self.arm()?;
            let ready: Vec<Ready> = self.poller.wait()?.collect();
            let now = clock::now();
            if let Some(slept) = self.suspension.note(clock::suspended()) {
                tracing::info!(slept_s = slept.as_secs_f64(), "the machine was suspended");
                self.interfaces.handle_suspension(slept);
            }
            for Ready { token, .. } in ready {
                match token {
                    MONITOR => self.take_changes(now)?,
                    TIMER => {
                        self.timer.note_expiry();
                        self.operations.handle_timeout(now, &self.poller);
                    }
                    END if self.waker.reset()? => {
                        self.end(now);
                        return Ok(());
                    }
                    RELOAD if self.hangup.reset()? => {
                        // Told in the log; there is nobody else to tell.
                        let _ = self.reload(now);
                    }
                    RESUMPTION => {
                        // The clocks say whether the machine was suspended.
                        self.resumption.reset()?;
                    }
                    REQUESTS => self.hear_requests(now),
                    PEERS => self.hear_peers(now),
                    token if Operations::owns(token) => self.hear(now, token)?,
                    _ => {}
                }
            }
            for (interface, neighbour) in self.interfaces.questions(now) {
                self.asker.ask(interface, neighbour);
            }
            self.interfaces.ask_again(now, &self.questions);
            self.follow(now)?;
            self.host.handle_timeout(now, &mut self.stack);
            self.follow_silence();
            self.drain(now)?;
        }
    }

    /// Wakes peers as the configuration says from now on.
    fn renew_waking(&mut self) -> Result<(), Failure> {
        let else_hears = self.user_timeouts.is_sent();
        let wanted = self.settings.immediate_retransmission;
        self.immediate.set(wanted, &mut self.stack, else_hears)?;
        let waking = match (self.settings.wakes_peers, self.settings.mechanism) {
            (true, Restart::RetransmissionTrigger) => Waking::PathMtu,
            (true, Restart::FastRetransmit) => Waking::DuplicateAcks,
            (false, _) | (_, Restart::MTcp) => Waking::Request,
        };
        self.stack.set_waking(waking);
        Ok(())
    }

    /// Peers ask for an immediate retransmission.
    fn hear_requests(&mut self, now: Instant) {
        let mut requests = Vec::new();
        if let Some(programs) = self.stack.immediate_mut() {
            requests.extend(std::iter::from_fn(|| programs.poll_request()).take(MOST_REQUESTS));
        }
        for id in requests {
            self.host.handle_request(now, id, &mut self.stack);
        }
    }

    fn arm(&mut self) -> std::io::Result<()> {
        let host = self.host.poll_timeout().map(|(at, _)| at);
        let next = [
            host,
            self.interfaces.poll_timeout(),
            self.operations.poll_timeout(),
        ];
        self.timer.set(next.into_iter().flatten().min())
    }

    fn take_changes(&mut self, now: Instant) -> anyhow::Result<()> {
        while let Some(change) = self.monitor.receive()? {
            if change == Change::Missed || self.interfaces.handle_change(now, &change) {
                self.take_snapshot(now)?;
            }
        }
        // Routes come in crowds, and are judged together.
        self.interfaces.judge_routes(now);
        Ok(())
    }

    fn take_snapshot(&mut self, now: Instant) -> anyhow::Result<()> {
        let all = monitor::snapshot().context("cannot ask for links")?;
        self.interfaces.handle_snapshot(now, &all);
        Ok(())
    }

    /// Follows the links: the agent hears of those that are back.
    fn follow(&mut self, now: Instant) -> anyhow::Result<()> {
        while let Some(news) = self.interfaces.poll_news() {
            self.tally.note(&news);
            tell(&news);
            if let Some(index) = news.index {
                let is_away = matches!(news.what, What::Away);
                self.user_timeouts.note_link(index, news.peer, is_away);
            }
            if let (Some(index), What::Away, peer) = (news.index, news.what, news.peer) {
                let link = LinkId {
                    interface: InterfaceId(index.0),
                    peer,
                };
                let event = LinkEvent {
                    link,
                    state: LinkState::Down,
                    indicator: Indicator::Notify,
                };
                self.host.handle_link(now, event, &mut self.stack);
            }
            self.forget_absence(&news);
            let (Some(index), What::Back { away, leads_on }) = (news.index, news.what) else {
                continue;
            };
            let is_moved = matches!(news.moved, Moved::To(_));
            let link = LinkId {
                interface: InterfaceId(index.0),
                // The kernel does not tell which connections go by way of a router; what has moved tells it.
                peer: news.peer.filter(|_| !leads_on || is_moved),
            };
            self.returns.add(Return {
                link,
                interface: news.name,
                peer: news.peer,
                by: news.by,
                away,
                at: now,
                found: None,
            });
            // The conditions of a link are joined already: what is left is that it is back.
            let event = LinkEvent {
                link,
                state: LinkState::Up,
                indicator: Indicator::Notify,
            };
            let (host, stack) = (&mut self.host, &mut self.stack);
            match news.moved {
                Moved::No => host.handle_link(now, event, stack),
                Moved::All => host.handle_return_by_new_path(now, event, stack),
                Moved::To(Prefix { address, length }) => {
                    let to = Network { address, length };
                    host.handle_moved_route(now, link, to, stack);
                }
            }
            self.drain(now)?;
        }
        Ok(())
    }

    /// The agent has heard that a neighbour was away, and is to hear of its return only as that of the whole link.
    fn forget_absence(&mut self, news: &News) {
        let is_meant = matches!(
            news.what,
            What::Reachable | What::Back { leads_on: true, .. }
        );
        if let (true, Some(index), Some(peer)) = (is_meant, news.index, news.peer) {
            self.host.forget_absence(LinkId {
                interface: InterfaceId(index.0),
                peer: Some(peer),
            });
        }
    }

    /// Sends what the agent has decided, and tells what it has seen.
    fn drain(&mut self, now: Instant) -> anyhow::Result<()> {
        self.stack.flush().context("cannot wake a connection")?;
        // Hundreds of peers may be back at once.
        let (mut whole, mut peers) = (Looked::default(), Looked::default());
        let mut passed = BTreeSet::new();
        while let Some(event) = self.host.poll_event() {
            match event {
                Event::Pass {
                    restored,
                    connections,
                    stalled,
                } => {
                    if restored.by == Indicator::FirstPacket {
                        self.note_first_packet(now, &restored);
                    }
                    let index = InterfaceIndex(restored.link.interface.0);
                    passed.insert(index);
                    let of = restored.link.peer.map_or(&mut whole, |_| &mut peers);
                    of.add(connections, stalled);
                    let found = Found {
                        connections,
                        stalled,
                    };
                    self.returns.note(restored.link, found);
                }
                Event::ListFailed(error) => {
                    tracing::warn!("the connections could not be listed: {error}");
                }
            }
        }
        whole.tell("looked through the connections");
        peers.tell("looked through the connections with peers that are back");
        for index in passed {
            let hosts = self.host.waiting().map(|id| id.remote.ip());
            self.interfaces
                .await_neighbours(now, index, hosts.take(MOST_HOSTS));
        }
        Ok(())
    }

    fn end(&mut self, now: Instant) {
        self.operations.service().stopping(now);
        self.immediate.end(&mut self.stack, false);
        self.user_timeouts.end();
        let (agent, stack) = (self.host.counters(), self.stack.counters());
        tracing::info!(
            returns = agent.restored,
            passes = agent.passes,
            retransmissions = agent.retransmissions,
            retries = agent.retries,
            icmp_errors = stack.icmp_errors,
            icmp_errors_refused = stack.icmp_errors_refused,
            "the host agent ends"
        );
    }
}

/// What passes have found, for the log.
#[derive(Debug, Default)]
struct Looked {
    returns: u32,
    connections: u32,
    stalled: u32,
}

impl Looked {
    fn add(&mut self, connections: u32, stalled: u32) {
        self.returns += 1;
        self.connections = self.connections.saturating_add(connections);
        self.stalled = self.stalled.saturating_add(stalled);
    }

    fn tell(&self, what: &str) {
        let &Self {
            returns,
            connections,
            stalled,
        } = self;
        if returns > 0 {
            tracing::info!(returns, connections, stalled, "{what}");
        }
    }
}

/// Logs a change of a link; of single neighbours, of which a server has many, at level `debug`.
fn tell(news: &News) {
    let (interface, by) = (&news.name, crate::status::indicator(news.by));
    match (news.what, news.peer) {
        (What::Away, None) => tracing::info!(interface, by, "the link is away"),
        (What::Away, Some(peer)) => {
            tracing::debug!(interface, %peer, by, "a neighbour is away");
        }
        (What::Reachable, peer) => {
            tracing::debug!(interface, ?peer, by, "a neighbour would be back");
        }
        (What::Back { away, .. }, None) => {
            let away_ms = away.map(|away| away.as_secs_f64() * 1e3);
            tracing::info!(interface, by, away_ms, "the link is back");
        }
        (What::Back { away, leads_on }, Some(peer)) => {
            let away_ms = away.map(|away| away.as_secs_f64() * 1e3);
            match leads_on {
                true => tracing::info!(interface, %peer, by, away_ms, "a router is back"),
                false => tracing::debug!(interface, %peer, by, away_ms, "a neighbour is back"),
            }
        }
    }
}

fn host_config(settings: &Settings) -> HostConfig {
    HostConfig {
        // The stack knows which peers it can wake, and how.
        wakes_peer: true,
        forces_slow_start: settings.slow_start_on_new_path,
        probes_silent_peers: settings.probes_silent_peers,
        damping: settings.damping.config(),
        limits: host_limits(settings),
        ..HostConfig::new(settings.mechanism.mechanism())
    }
}

fn host_limits(settings: &Settings) -> Limits {
    Limits {
        per_second: settings.per_second,
        burst: settings.burst,
        ..Limits::default()
    }
}
