//! How the roles `hip` and `rendezvous` are operated: status, metrics, reload.

use super::settings::Settings;
use super::status::{About, HipStatus};
use super::{Daemon, metrics};
use crate::control::{Answer, Notified, Request};
use crate::failure::Failure;
use crate::operations::Wanted;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::poller::Token;
use serde_json::json;

impl Daemon {
    /// Serves one who operates this role.
    pub(super) fn hear(&mut self, now: Instant, token: Token) -> anyhow::Result<()> {
        match self.operations.serve(now, token, &self.poller)? {
            None => {}
            Some(Wanted::Metrics(client, asked)) => {
                let unix_now = clock::unix_offset() + now.since(Instant::ZERO);
                let (status, reloads) = (self.status(now), self.operations.reloads());
                let text = metrics::exposition(&status, &self.tally, reloads, unix_now);
                self.operations.show(client, asked, &text, &self.poller);
            }
            Some(Wanted::Request(client, request)) => {
                let answer = self.obey(now, request);
                self.operations.answer(client, &answer, &self.poller);
            }
        }
        Ok(())
    }

    fn obey(&mut self, now: Instant, request: Request) -> Answer {
        let refused = |why: &str| Answer::Refused(why.into());
        match request {
            Request::Status => match serde_json::to_value(self.status(now)) {
                Ok(status) => Answer::Done(status),
                Err(error) => Answer::Refused(error.to_string()),
            },
            Request::Flows { .. } => refused("only gateways list connections"),
            Request::Reload => match self.reload(now) {
                Ok(changed) => Answer::Done(json!({ "changed": changed })),
                Err(failure) => Answer::Refused(failure.to_string()),
            },
            Request::Notify { link: Some(_), .. } => {
                refused("only an agent beside a host's TCP tells its interfaces apart")
            }
            Request::Notify { peer: Some(_), .. } => {
                refused("only gateways tell their neighbours apart")
            }
            Request::Notify {
                state: Notified::Down,
                ..
            } => refused("the kernel tells this role of a link that is gone"),
            Request::Notify {
                state: Notified::Up,
                ..
            } => {
                tracing::info!("the link is said to be back");
                self.host.handle_link(now);
                Answer::Done(json!({ "state": "up" }))
            }
        }
    }

    fn status(&self, now: Instant) -> HipStatus {
        let about = About {
            role: self.kind.name(),
            device: &self.settings.device,
            config: self.config.display().to_string(),
            metrics: self.settings.metrics.as_ref().map(ToString::to_string),
            began: self.began,
            addresses: self.places.addresses(),
            lsi: self.settings.local_scope().map(|scope| scope.own),
            names: self.settings.names(),
        };
        HipStatus::of(now, &self.host, about)
    }

    /// What the service manager shows.
    pub(super) fn introduction(&self) -> String {
        let (role, device) = (self.kind.name(), &self.settings.device);
        format!("{role} on {device}: {}", self.host.hit())
    }

    /// Puts the configuration file in force as it is now; what has changed.
    pub(super) fn reload(&mut self, now: Instant) -> Result<Vec<&'static str>, Failure> {
        self.operations.service().reloading(now);
        let outcome = self.try_reload(now);
        self.operations.note_reload(outcome.is_ok());
        match &outcome {
            Ok(changed) if changed.is_empty() => tracing::info!("configuration read: as before"),
            Ok(changed) => tracing::info!(changed = changed.join(", "), "configuration read"),
            Err(failure) => {
                let why = failure.to_string();
                tracing::error!("configuration not read, the former one holds: {why}");
            }
        }
        let introduction = self.introduction();
        self.operations.service().ready(now, &introduction);
        outcome
    }

    fn try_reload(&mut self, now: Instant) -> Result<Vec<&'static str>, Failure> {
        let next = Settings::load(&self.config)?;
        let fixed = self.settings.fixed_differences(&next);
        if !fixed.is_empty() {
            return Err(Failure::Usage(format!(
                "{} cannot change while the daemon runs: restart it, or take that back",
                fixed.join(", ")
            )));
        }
        let changed = self.settings.free_differences(&next);
        // What may fail comes first.
        if self.settings.metrics != next.metrics {
            self.operations
                .move_metrics(next.metrics.as_ref(), &self.poller)?;
        }
        self.host.set_peers(next.peers());
        self.whereabouts.note();
        self.destinations = next.destinations();
        self.settings = next;
        self.relocate(now)?;
        Ok(changed)
    }
}
