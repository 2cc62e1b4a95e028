//! What a role with a table of its own offers to those who operate it: the control socket,
//! metrics, and news for the service manager.

use crate::config::{Access, Endpoint};
use crate::control::{Answer, ControlSocket, Request};
use crate::failure::Failure;
use crate::metrics::{Asked, MetricsSocket, Reloads};
use crate::service::Service;
use outlast_base::time::Instant;
use outlast_linux::poller::{Poller, Token};
use std::io;
use std::path::Path;

/// The role's own tokens are below this one.
const FIRST: u64 = 1 << 31;
const CONTROL: Token = Token(FIRST);
const METRICS: Token = Token(FIRST + 1);
/// Clients of the control socket have tokens from here on.
const FIRST_CLIENT: u64 = 1 << 32;
/// Clients that ask for metrics have tokens from here on.
const FIRST_METRICS_CLIENT: u64 = 1 << 48;

/// What somebody asks of the role.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// By the control socket.
    Request(u64, Request),
    /// The metrics.
    Metrics(u64, Asked),
}

/// The means by which a role is operated.
#[derive(Debug)]
pub(crate) struct Operations {
    control: ControlSocket,
    metrics: Option<MetricsSocket>,
    service: Service,
    reloads: Reloads,
}

impl Operations {
    /// Listens for clients.
    pub(crate) fn open(
        now: Instant,
        control: &Path,
        metrics: Option<&Endpoint>,
        poller: &Poller,
    ) -> Result<Self, Failure> {
        let access = Access::default();
        let control = ControlSocket::open(control, &access, poller, CONTROL, FIRST_CLIENT)?;
        let metrics = metrics
            .map(|at| MetricsSocket::open(at, poller, METRICS, FIRST_METRICS_CLIENT))
            .transpose()?;
        Ok(Self {
            control,
            metrics,
            service: Service::new(now),
            reloads: Reloads::new(),
        })
    }

    /// Whether a token is that of a socket or client here.
    pub(crate) const fn owns(token: Token) -> bool {
        token.0 >= FIRST
    }

    /// A socket or a client is ready; what the client asks for.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        token: Token,
        poller: &Poller,
    ) -> io::Result<Option<Wanted>> {
        match (token, &mut self.metrics) {
            (CONTROL, _) => self.control.accept(now, poller)?,
            (METRICS, Some(metrics)) => metrics.accept(now, poller)?,
            (Token(client @ FIRST_METRICS_CLIENT..), Some(metrics)) => {
                let asked = metrics.serve(client, poller);
                return Ok(asked.map(|asked| Wanted::Metrics(client, asked)));
            }
            // A former place for metrics.
            (METRICS | Token(FIRST_METRICS_CLIENT..), None) => {}
            (Token(client), _) => {
                let request = self.control.serve(client, poller);
                return Ok(request.map(|request| Wanted::Request(client, request)));
            }
        }
        Ok(None)
    }

    /// Answers a client of the control socket.
    pub(crate) fn answer(&mut self, client: u64, answer: &Answer, poller: &Poller) {
        self.control.answer(client, answer, poller);
    }

    /// Gives a client the metrics.
    pub(crate) fn show(&mut self, client: u64, asked: Asked, text: &str, poller: &Poller) {
        if let Some(metrics) = &mut self.metrics {
            metrics.answer(client, asked, text, poller);
        }
    }

    /// Serves metrics at another place, or nowhere; if that cannot be, all stays as it was.
    pub(crate) fn move_metrics(
        &mut self,
        to: Option<&Endpoint>,
        poller: &Poller,
    ) -> Result<(), Failure> {
        match to {
            Some(to) => {
                let place = &mut self.metrics;
                MetricsSocket::move_to(place, to, poller, METRICS, FIRST_METRICS_CLIENT)?;
            }
            None => self.metrics = None,
        }
        Ok(())
    }

    /// What the service manager is told.
    pub(crate) const fn service(&mut self) -> &mut Service {
        &mut self.service
    }

    /// Reloads so far.
    pub(crate) const fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// Counts a reload.
    pub(crate) fn note_reload(&mut self, is_good: bool) {
        self.reloads.note(is_good);
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.control.poll_timeout(),
            self.metrics.as_ref().and_then(MetricsSocket::poll_timeout),
            self.service.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Sends away who has taken too long, and gives the service manager a sign of life.
    pub(crate) fn handle_timeout(&mut self, now: Instant, poller: &Poller) {
        self.service.handle_timeout(now);
        self.control.handle_timeout(now, poller);
        if let Some(metrics) = &mut self.metrics {
            metrics.handle_timeout(now, poller);
        }
    }
}
