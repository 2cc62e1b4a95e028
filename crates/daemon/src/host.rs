//! The role `host`: descriptors, clock and timer around the pure [`Host`], beside this machine's own TCP.
//!
//! No packet passes through this process. When a link is back, one pass of a BPF iterator lists the
//! kernel's connections, and those that wait for a timeout are made to retransmit
//! ([`outlast_linux::stack`]). Where the configuration says so, programs at cgroups send the User Timeout
//! Option for those connections ([`outlast_linux::user_timeout`]). An agent that is killed leaves nothing
//! behind: iterator and programs go with its process.

mod interfaces;
mod settings;
mod user_timeout;

use crate::failure::Failure;
use crate::peers::KernelAsker;
use anyhow::Context;
use interfaces::{Back, Interfaces};
use outlast_base::time::Instant;
use outlast_gateway::link::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::{Event, Host, HostConfig, Limits, Mechanism};
use outlast_linux::clock;
use outlast_linux::monitor::{self, Change, RouteMonitor};
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::signal::{Hangup, Termination};
use outlast_linux::stack::TcpStack;
use outlast_linux::timer::Timer;
use outlast_linux::user_timeout::UserTimeouts;
use outlast_linux::waker::Waker;
use settings::Settings;
use std::path::Path;

#[cfg(test)]
pub(crate) use user_timeout::USER_TIMEOUT;

const MONITOR: Token = Token(0);
const TIMER: Token = Token(1);
const END: Token = Token(2);
const RELOAD: Token = Token(3);

/// Runs the role until it is asked to end; without `config` with the defaults.
pub fn run(config: Option<&Path>) -> Result<(), Failure> {
    let settings = Settings::load(config)?;
    let mut daemon = Daemon::start(&settings)?;
    daemon.run(config).map_err(Failure::Run)
}

/// Reads the configuration and says what would hold.
pub fn check(config: Option<&Path>) -> Result<String, Failure> {
    let settings = Settings::load(config)?;
    let file = config.map_or("no configuration file".into(), |file| {
        file.display().to_string()
    });
    let interfaces = match settings.interfaces.as_slice() {
        [] => "all".to_owned(),
        names => names.join(", "),
    };
    let option = settings.user_timeout.as_ref();
    let option = option.map_or("not sent".into(), user_timeout::UserTimeout::shown);
    let (per_second, burst) = (settings.per_second, settings.burst);
    Ok(format!(
        "{file}: sound\n  interfaces    {interfaces}\n  at most       {per_second} connections a second, \
         {burst} at once\n  user timeout  {option}\n",
    ))
}

struct Daemon {
    host: Host,
    stack: TcpStack,
    settings: Settings,
    /// The User Timeout Option, while it is sent.
    user_timeouts: Option<UserTimeouts>,
    interfaces: Interfaces,
    asker: KernelAsker,
    monitor: RouteMonitor,
    timer: Timer,
    poller: Poller,
    waker: Waker,
    hangup: Waker,
    _termination: Termination,
    _reload: Hangup,
}

impl Daemon {
    fn start(settings: &Settings) -> Result<Self, Failure> {
        let stack = TcpStack::open(0).map_err(|error| {
            Failure::Capability(format!(
                "cannot list and wake the kernel's connections: {error}; the role `host` needs root \
                 and Linux 5.18 or later with BTF (see `outlast doctor`)"
            ))
        })?;
        let option = settings.user_timeout.as_ref();
        let user_timeouts = option.map(user_timeout::UserTimeout::attach).transpose()?;
        let started = Self::equip(stack, user_timeouts, settings);
        started.map_err(Failure::Run)
    }

    fn equip(
        stack: TcpStack,
        user_timeouts: Option<UserTimeouts>,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let monitor = RouteMonitor::open().context("cannot hear of links")?;
        let (timer, waker, hangup) = (Timer::new()?, Waker::new()?, Waker::new()?);
        let (termination, reload) = (Termination::wake_daemon(&waker)?, Hangup::wake(&hangup)?);
        let poller = Poller::new()?;
        poller.add(&monitor, MONITOR, Interest::Readable)?;
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&waker, END, Interest::Readable)?;
        poller.add(&hangup, RELOAD, Interest::Readable)?;
        let now = clock::now();
        let mut daemon = Self {
            host: Host::new(now, host_config(settings)),
            stack,
            settings: settings.clone(),
            user_timeouts,
            interfaces: Interfaces::new(settings.interfaces.clone()),
            asker: KernelAsker::default(),
            monitor,
            timer,
            poller,
            waker,
            hangup,
            _termination: termination,
            _reload: reload,
        };
        daemon.take_snapshot(now)?;
        tracing::info!(
            interfaces = daemon.interfaces.names().join(", "),
            "the host agent begins"
        );
        Ok(daemon)
    }

    fn run(&mut self, config: Option<&Path>) -> anyhow::Result<()> {
        loop {
            self.arm()?;
            let ready: Vec<Ready> = self.poller.wait()?.collect();
            let now = clock::now();
            for Ready { token, .. } in ready {
                match token {
                    MONITOR => self.take_changes(now)?,
                    TIMER => self.timer.note_expiry(),
                    END if self.waker.reset()? => return self.end(),
                    RELOAD if self.hangup.reset()? => self.reload(config, now)?,
                    _ => {}
                }
            }
            for (interface, neighbour) in self.interfaces.questions(now) {
                self.asker.ask(interface, neighbour);
            }
            self.follow(now)?;
            self.host.handle_timeout(now, &mut self.stack);
            self.drain()?;
        }
    }

    fn arm(&mut self) -> std::io::Result<()> {
        let host = self.host.poll_timeout().map(|(at, _)| at);
        let questions = self.interfaces.poll_timeout();
        self.timer.set(host.into_iter().chain(questions).min())
    }

    fn take_changes(&mut self, now: Instant) -> anyhow::Result<()> {
        while let Some(change) = self.monitor.receive()? {
            if change == Change::Missed || self.interfaces.handle_change(now, &change) {
                self.take_snapshot(now)?;
            }
        }
        // Routes come in crowds, and are judged together.
        self.interfaces.settle_routes(now);
        Ok(())
    }

    fn take_snapshot(&mut self, now: Instant) -> anyhow::Result<()> {
        let all = monitor::snapshot().context("cannot ask for links")?;
        self.interfaces.handle_snapshot(now, &all);
        Ok(())
    }

    /// Tells the agent of the links that are back.
    fn follow(&mut self, now: Instant) -> anyhow::Result<()> {
        while let Some(back) = self.interfaces.poll_back() {
            let Back {
                index, name, by, ..
            } = &back;
            let away_ms = back.away.map(|away| away.as_secs_f64() * 1e3);
            tracing::info!(interface = name, ?by, away_ms, "the link is back");
            // The conditions of a link are joined already: what is left is that it is back.
            let event = LinkEvent {
                link: LinkId::of_interface(InterfaceId(index.0)),
                state: LinkState::Up,
                indicator: Indicator::Notify,
            };
            self.host.handle_link(now, event, &mut self.stack);
            self.drain()?;
        }
        Ok(())
    }

    /// Sends what the agent has decided, and tells what it has seen.
    fn drain(&mut self) -> anyhow::Result<()> {
        self.stack.flush().context("cannot wake a connection")?;
        while let Some(event) = self.host.poll_event() {
            match event {
                Event::Pass {
                    connections,
                    stalled,
                    ..
                } => tracing::info!(connections, stalled, "looked through the connections"),
                Event::ListFailed(error) => {
                    tracing::warn!("the connections could not be listed: {error}");
                }
            }
        }
        Ok(())
    }

    fn reload(&mut self, config: Option<&Path>, now: Instant) -> anyhow::Result<()> {
        let loaded = Settings::load(config).and_then(|settings| {
            self.renew_user_timeouts(&settings)?;
            Ok(settings)
        });
        match loaded {
            Ok(settings) => {
                self.host = Host::new(now, host_config(&settings));
                self.interfaces = Interfaces::new(settings.interfaces.clone());
                self.settings = settings;
                self.take_snapshot(now)?;
                tracing::info!("the configuration was read again");
            }
            Err(failure) => tracing::error!("nothing has changed: {failure}"),
        }
        Ok(())
    }

    /// Has the option sent as `settings` say from now on; where that cannot be, as before.
    fn renew_user_timeouts(&mut self, settings: &Settings) -> Result<(), Failure> {
        if settings.user_timeout == self.settings.user_timeout {
            return Ok(());
        }
        // Two at a time would take each other's timeouts for the applications'.
        self.end_user_timeouts();
        let attach = |settings: &Settings| {
            let option = settings.user_timeout.as_ref();
            option.map(user_timeout::UserTimeout::attach).transpose()
        };
        let attached = attach(settings);
        let (attached, result) = match attached {
            Ok(attached) => (Ok(attached), Ok(())),
            Err(failure) => (attach(&self.settings), Err(failure)),
        };
        self.user_timeouts = attached?;
        result
    }

    /// Ends the option, and leaves the sockets to the kernel's own limits.
    fn end_user_timeouts(&mut self) {
        let Some(timeouts) = self.user_timeouts.take() else {
            return;
        };
        match timeouts.counters() {
            Ok(counts) => tracing::info!(
                sent = counts.sent,
                heard = counts.heard,
                adopted = counts.adopted,
                refused = counts.refused,
                zeros = counts.zeros,
                left_alone = counts.left_alone,
                no_room = counts.no_room,
                failures = counts.failures,
                "the user timeout option ends"
            ),
            Err(error) => tracing::warn!("{error}"),
        }
        if let Err(error) = timeouts.give_back() {
            tracing::warn!("connections keep the user timeouts that they have: {error}");
        }
    }

    fn end(&mut self) -> anyhow::Result<()> {
        self.end_user_timeouts();
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
        Ok(())
    }
}

fn host_config(settings: &Settings) -> HostConfig {
    HostConfig {
        // The kernel offers neither to an agent.
        wakes_peer: false,
        forces_slow_start: false,
        limits: Limits {
            per_second: settings.per_second,
            burst: settings.burst,
            ..Limits::default()
        },
        ..HostConfig::new(Mechanism::RetransmissionTrigger)
    }
}
