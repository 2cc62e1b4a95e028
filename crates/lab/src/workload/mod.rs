//! What the two hosts do, with real sockets.

mod bulk;
mod command;
mod connection;
mod flows;
mod interactive;
mod message;
mod request_response;

use crate::delivery::DeliveryLog;
use crate::error::LabError;
use crate::host::Host;
use crate::opening::Opening;
use crate::status::Status;
use crate::stop::Stop;
use crate::tuning::{Options, Tuning, congestion};
use connection::{Interrupted, Sockets};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::socket::TcpInfo;
use outlast_scenario::{IpVersion, Scenario, Stack, Workload};
use outlast_world::Side;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

pub(crate) use flows::{FlowOutcome, Run, run_all};

/// What one connection's workload works with.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) fixed: &'a Host,
    pub(crate) mobile: &'a Host,
    pub(crate) tuning: &'a Tuning,
    pub(crate) opening: &'a Opening,
    /// Held by whoever opens a connection.
    turn: &'a Mutex<()>,
    /// Zero is the connection of `[workload]`, then [`Scenario::flows`] in order.
    number: usize,
    /// When it is opened, counted from `opening`.
    begin: Duration,
    workload: &'a Workload,
    stack: &'a Stack,
    /// Which stream of generated content is sent.
    pub(crate) seed: u64,
    /// What its sockets set themselves.
    pub(crate) user_timeout: Option<Duration>,
    pub(crate) stop: &'a Stop,
    status: &'a Status,
    /// What its receiving application has, as `status` knows it.
    received: AtomicU64,
    began: OnceLock<Instant>,
    terms: OnceLock<Terms>,
}

/// What is in force on a connection, as its kernel says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Terms {
    /// Where the fixed host listens for it, and for no other.
    pub(crate) server_port: u16,
    pub(crate) congestion: String,
    pub(crate) options: Options,
}

/// What came of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Whether it came to its end.
    pub(crate) completed: bool,
    /// Whether what arrived is what was sent; `None` if that cannot be told.
    pub(crate) intact: Option<bool>,
    /// When it came to its end, or was given up.
    pub(crate) ended: Instant,
    /// When the receiving application got new bytes; `None` if only the link can tell.
    pub(crate) deliveries: Option<DeliveryLog>,
    /// The kernel's account of the payload's sender; `None` if only its host can tell.
    pub(crate) sender: Option<SenderAccount>,
    /// Whether a host gave a connection up after its timeout.
    pub(crate) timed_out: bool,
    /// What went wrong, in words.
    pub(crate) failure: Option<String>,
    /// Updates seen by the mobile; interactive only.
    pub(crate) updates: Option<u32>,
}

/// What sending cost. Numbers that the kernel does not tell are `None`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct SenderAccount {
    pub(crate) timeouts: Option<u64>,
    pub(crate) retransmitted_bytes: Option<u64>,
}

/// Carries a connection's workload out, to its end or until it is stopped.
fn run(cx: &Context<'_>, sockets: Option<Sockets>) -> Result<Outcome, LabError> {
    let sockets = || sockets.map_or_else(|| Sockets::new(cx), Ok);
    match *cx.workload {
        Workload::Bulk { bytes, direction } => bulk::run(cx, sockets()?, bytes, direction),
        Workload::Interactive {
            interval,
            update,
            request,
            duration,
        } => {
            let sizes = message::Sizes {
                request: request.0,
                response: update.0,
            };
            interactive::run(cx, sockets()?, interval, duration, sizes)
        }
        Workload::RequestResponse {
            requests,
            request,
            response,
            think,
        } => {
            let sizes = message::Sizes {
                request: request.0,
                response: response.0,
            };
            request_response::run(cx, sockets()?, requests, think, sizes)
        }
        Workload::Command(ref commands) => command::run(cx, commands),
    }
}

/// Payload bytes that the receiving applications of all connections are to get; `None` if nobody
/// knows beforehand.
pub(crate) fn goal(scenario: &Scenario) -> Option<u64> {
    let connections = scenario.connections();
    connections
        .map(|connection| goal_of(connection.workload))
        .sum()
}

fn goal_of(workload: &Workload) -> Option<u64> {
    match workload {
        Workload::Bulk { bytes, .. } => Some(bytes.0),
        Workload::RequestResponse {
            requests, response, ..
        } => Some(response.0.saturating_mul(u64::from(*requests))),
        Workload::Interactive { .. } | Workload::Command(_) => None,
    }
}

impl Context<'_> {
    /// The address of the host of `side` under which the workload reaches it.
    pub(crate) fn address(&self, side: Side) -> IpAddr {
        match self.scenario.ip_inside() {
            IpVersion::V4 => side.ipv4().into(),
            IpVersion::V6 => side.ipv6().into(),
        }
    }

    /// The congestion control of both sockets.
    fn congestion(&self) -> &'static str {
        congestion(self.stack)
    }

    /// The mobile opens the connection.
    fn note_beginning(&self, now: Instant) {
        // Nobody opens it twice.
        let _ = self.began.set(now);
    }

    /// Its receiving application has `bytes` in all.
    fn note_received(&self, bytes: u64) {
        let before = self.received.swap(bytes, Relaxed);
        self.status.add_received(bytes.saturating_sub(before));
    }

    /// The mobile has seen an update. What is shown are those of `[workload]`.
    fn note_update(&self) {
        if self.number == 0 {
            self.status.count_update();
        }
    }

    /// The connection is there, with these.
    fn note_terms(&self, terms: Terms) {
        let _ = self.terms.set(terms);
    }

    /// Where the server listens; the kernel picks the port.
    fn server_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(Side::Fixed), 0)
    }
}

impl Outcome {
    /// A workload that ended now, before it had begun.
    fn not_begun(interrupted: &Interrupted) -> Self {
        Self {
            completed: false,
            intact: None,
            ended: clock::now(),
            deliveries: Some(DeliveryLog::default()),
            sender: Some(SenderAccount::default()),
            timed_out: interrupted.is_timeout(),
            failure: interrupted.failure(),
            updates: None,
        }
    }
}

impl SenderAccount {
    fn of(info: &TcpInfo) -> Self {
        Self {
            timeouts: info.timeouts().map(u64::from),
            retransmitted_bytes: info.retransmitted_bytes(),
        }
    }
}
