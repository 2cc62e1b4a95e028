//! The host agent beside a host's kernel TCP, on a thread inside its namespace.
//!
//! The emulator tells the mobile's of its link, as an indicator of a real host would. With HIP it tells both
//! hosts' of each readdressing instead. Where both hosts have one, the mobile's asks the fixed host's by
//! the Immediate Retransmission Option. An agent for fast retransmission that is alone sends its peer duplicate
//! acknowledgements.

use crate::error::LabError;
use outlast_base::time::Instant;
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::{Host, HostConfig, Mechanism};
use outlast_linux::clock;
use outlast_linux::immediate_retransmission::ImmediateRetransmission;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::stack::{StackError, TcpStack, Waking};
use outlast_linux::timer::Timer;
use outlast_linux::waker::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use crate::host::INTERFACE;

/// A change of the mobile's link, and who says so.
type News = (LinkState, Indicator);

/// The emulator's end of the line to the agent. The agent ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Teller {
    sender: Option<Sender<News>>,
    waker: Arc<Waker>,
}

/// The agent's end.
#[derive(Debug)]
pub(crate) struct Listener {
    receiver: Receiver<News>,
    waker: Arc<Waker>,
}

/// Both ends of a line.
pub(crate) fn line() -> io::Result<(Teller, Listener)> {
    let waker = Arc::new(Waker::new()?);
    let (sender, receiver) = channel();
    let teller = Teller {
        sender: Some(sender),
        waker: Arc::clone(&waker),
    };
    Ok((teller, Listener { receiver, waker }))
}

impl Teller {
    /// The mobile's link has changed.
    pub(crate) fn tell(&self, state: LinkState) {
        self.say((state, Indicator::Carrier));
    }

    /// A readdressing is complete.
    pub(crate) fn tell_update(&self) {
        self.say((LinkState::Up, Indicator::MobilityUpdate));
    }

    fn say(&self, news: News) {
        if let Some(sender) = &self.sender {
            // An agent that has failed hears nothing; its error ends the run.
            let _ = sender.send(news);
            self.waker.wake();
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.sender = None;
        self.waker.wake();
    }
}

/// An agent that is ready.
#[derive(Debug)]
pub(crate) struct Agent {
    host: Host,
    stack: TcpStack,
    link: LinkId,
    listener: Listener,
    poller: Poller,
    timer: Timer,
}

const NEWS: Token = Token(0);
const TIMER: Token = Token(1);
const REQUESTS: Token = Token(2);

impl Agent {
    /// An agent for the namespace of the calling thread. Whether it `asks` that of the other host to
    /// retransmit, and hears what that asks for.
    pub(crate) fn new(
        mechanism: Mechanism,
        listener: Listener,
        asks: bool,
    ) -> Result<Self, LabError> {
        let failed = |source| LabError::Socket {
            action: "start the host agent",
            source,
        };
        let mut stack = TcpStack::open(0).map_err(refused)?;
        let interface = RouteSocket::open()?.interface(INTERFACE)?;
        let poller = Poller::new().map_err(failed)?;
        let timer = Timer::new().map_err(failed)?;
        poller
            .add(&*listener.waker, NEWS, Interest::Readable)
            .map_err(failed)?;
        poller
            .add(&timer, TIMER, Interest::Readable)
            .map_err(failed)?;
        if asks {
            let unusable = |error| refused(StackError::Immediate(Box::new(error)));
            let mut programs = ImmediateRetransmission::load().map_err(unusable)?;
            programs.begin().map_err(unusable)?;
            poller
                .add(&programs, REQUESTS, Interest::Readable)
                .map_err(failed)?;
            stack.set_immediate(Some(programs));
        }
        // A mark on an acknowledgement, or duplicates: Cáceres and Iftode 1995, section IV.
        let duplicates = mechanism == Mechanism::FastRetransmit && !asks;
        if duplicates {
            stack.set_waking(Waking::DuplicateAcks);
        }
        let config = HostConfig {
            // A host that does not ask by the option tells peers of lost answers, and no more, as the stack has it.
            wakes_peer: true,
            forces_slow_start: false,
            ..HostConfig::new(mechanism)
        };
        Ok(Self {
            host: Host::new(clock::now(), config),
            stack,
            link: LinkId::of_interface(InterfaceId(interface.0)),
            listener,
            poller,
            timer,
        })
    }

    /// Serves until the emulator has ended.
    pub(crate) fn run(mut self) -> Result<(), LabError> {
        let failed = |source| LabError::Socket {
            action: "run the host agent",
            source,
        };
        loop {
            let due = self.host.poll_timeout().map(|(at, _)| at);
            self.timer.set(due).map_err(failed)?;
            for ready in self.poller.wait().map_err(failed)? {
                if ready.token == TIMER {
                    self.timer.note_expiry();
                }
            }
            self.listener.waker.reset().map_err(failed)?;
            loop {
                match self.listener.receiver.try_recv() {
                    Ok(news) => self.hear(clock::now(), news).map_err(refused)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
            }
            self.hear_requests(clock::now()).map_err(refused)?;
            self.catch_up(clock::now()).map_err(refused)?;
        }
    }

    fn hear(&mut self, now: Instant, (state, indicator): News) -> Result<(), StackError> {
        let event = LinkEvent {
            link: self.link,
            state,
            indicator,
        };
        self.host.handle_link(now, event, &mut self.stack);
        self.drain()
    }

    fn hear_requests(&mut self, now: Instant) -> Result<(), StackError> {
        while let Some(id) = self
            .stack
            .immediate_mut()
            .and_then(ImmediateRetransmission::poll_request)
        {
            self.host.handle_request(now, id, &mut self.stack);
        }
        self.drain()
    }

    fn catch_up(&mut self, now: Instant) -> Result<(), StackError> {
        if self.host.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.host.handle_timeout(now, &mut self.stack);
            self.drain()?;
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), StackError> {
        self.stack.flush()?;
        while let Some(event) = self.host.poll_event() {
            tracing::debug!(?event, "host agent");
        }
        Ok(())
    }
}

fn refused(error: StackError) -> LabError {
    LabError::Stack(Box::new(error))
}
