//! `outlast top`: a live view of a daemon's links, outages and connections.

use crate::commands::notify::Whom;
use crate::failure::Failure;
use crate::top::draw::draw;
use crate::top::history::History;
use crate::top::snapshot::{Snapshot, clean};
use crate::top::view::{Next, View};
use anyhow::Context;
use outlast_base::time::{Duration, Instant};
use outlast_daemon::control::{Request, ask};
use outlast_daemon::failure::Failure as DaemonFailure;
use outlast_linux::clock;
use outlast_linux::signal::Termination;
use outlast_linux::waker::Waker;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::Value;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Connections that are asked for.
const CONNECTIONS: usize = 200;
/// The longest time that a signal waits to be heard.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    whom: Whom,

    /// Seconds between two looks at the daemon: 1 to 60.
    #[arg(long, value_name = "SECONDS", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=60))]
    every: u8,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    if is_dumb || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "outlast top wants a terminal; `outlast status --json` prints the same".into(),
        ));
    }
    let mut source = Source {
        control: arguments.whom.control()?,
        lists_flows: None,
    };
    // Without a daemon the terminal stays as it is.
    let first = source.look()?;
    let end = Waker::new()?;
    let _termination = Termination::wake(&end)?;
    let mut top = Top {
        every: Duration::from_secs(arguments.every.into()),
        began: clock::now(),
        source,
        history: History::default(),
        view: View::default(),
    };
    top.history.push(0.0, first);
    let mut screen = Screen::open()?;
    top.show(&mut screen.0, &end)
}

/// A daemon's control socket.
struct Source {
    control: PathBuf,
    /// Only gateways list connections; `None` before the first answer.
    lists_flows: Option<bool>,
}

impl Source {
    fn look(&mut self) -> Result<Snapshot, DaemonFailure> {
        let document = self.document(&self.control)?;
        self.lists_flows = Some(document.get("role").is_none());
        Ok(Snapshot::of(&document))
    }

    fn document(&self, control: &Path) -> Result<Value, DaemonFailure> {
        let flows = || ask(control, Request::Flows { limit: CONNECTIONS });
        match self.lists_flows {
            Some(true) => flows(),
            Some(false) => ask(control, Request::Status),
            None => match flows() {
                // It refuses, as it is no gateway.
                Err(DaemonFailure::Run(_)) => ask(control, Request::Status),
                answer => answer,
            },
        }
    }
}

/// The terminal as a screen, until the value is dropped. A panic gives it back before it is told.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self, Failure> {
        ratatui::try_init().map(Self).map_err(|error| {
            // It may have got half of the way.
            let _ = ratatui::try_restore();
            Failure::Run(anyhow::Error::from(error).context("cannot draw on this terminal"))
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone cannot be told.
        let _ = ratatui::try_restore();
    }
}

/// The loop's state.
struct Top {
    every: Duration,
    began: Instant,
    source: Source,
    history: History,
    view: View,
}

impl Top {
    /// Draws and hears keys until the user or a signal ends that.
    fn show(&mut self, terminal: &mut DefaultTerminal, end: &Waker) -> Result<(), Failure> {
        let mut next_look = self.began + self.every;
        loop {
            let drawn = terminal.draw(|frame| draw(frame, &self.history, &self.view));
            drawn.context("cannot draw on this terminal")?;
            loop {
                if end.reset()? {
                    return Ok(());
                }
                let now = clock::now();
                if now >= next_look {
                    next_look = now + self.every;
                    self.look(now);
                    break;
                }
                // What was read with a key before is there at once.
                let patience = next_look.since(now).min(PATIENCE);
                let has_key = event::poll(Duration::ZERO)?;
                if !has_key && is_gone_within(patience, &io::stdin())? {
                    return Ok(());
                }
                if has_key || event::poll(Duration::ZERO)? {
                    if self.hear()? == Next::Quit {
                        return Ok(());
                    }
                    break;
                }
            }
        }
    }

    /// Hears a key, or that the terminal has another size.
    fn hear(&mut self) -> io::Result<Next> {
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.view.handle_key(key),
            _ => Next::Draw,
        })
    }

    fn look(&mut self, now: Instant) {
        if self.view.is_paused {
            return;
        }
        match self.source.look() {
            Ok(snapshot) => {
                self.view.trouble = None;
                let at_s = now.since(self.began).as_secs_f64();
                self.history.push(at_s, snapshot);
            }
            Err(failure) => {
                let why = clean(&failure.to_string());
                self.view.trouble = Some(format!("{why}; asked again"));
            }
        }
    }
}

/// Waits for a key; true if the terminal was closed: who reads its keys would find their end again and again.
fn is_gone_within(patience: Duration, terminal: &io::Stdin) -> io::Result<bool> {
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: patience.subsec_nanos().into(),
    };
    let mut look = [PollFd::new(terminal, PollFlags::IN)];
    match poll(&mut look, Some(&patience)) {
        Ok(_) => Ok(look[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR)),
        // A signal came first, perhaps as the terminal has another size.
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
