//! How the roles with Mobile IP are operated: status, metrics, reload.

use super::endpoint::{Endpoint, Role};
use super::metrics;
use super::status::MobileIpStatus;
use crate::control::{Answer, Notified, Request};
use crate::failure::Failure;
use crate::operations::Wanted;
use outlast_base::time::Instant;
use outlast_linux::poller::Token;
use serde_json::json;
use std::path::Path;

impl Endpoint {
    /// Serves one who operates this role.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        role: &mut impl Role,
        config: &Path,
        token: Token,
    ) -> anyhow::Result<()> {
        match self.operations.serve(now, token, &self.poller)? {
            None => {}
            Some(Wanted::Metrics(client, asked)) => {
                let status = self.status(now, role, config);
                let text = metrics::exposition(&status, self.operations.reloads());
                self.operations.show(client, asked, &text, &self.poller);
            }
            Some(Wanted::Request(client, request)) => {
                let answer = self.obey(now, role, config, request);
                self.operations.answer(client, &answer, &self.poller);
            }
        }
        Ok(())
    }

    fn obey(
        &mut self,
        now: Instant,
        role: &mut impl Role,
        config: &Path,
        request: Request,
    ) -> Answer {
        let refused = |why: &str| Answer::Refused(why.into());
        match request {
            Request::Status => match serde_json::to_value(self.status(now, role, config)) {
                Ok(status) => Answer::Done(status),
                Err(error) => Answer::Refused(error.to_string()),
            },
            Request::Flows { .. } => refused("only gateways list connections"),
            Request::Reload => match self.reload(now, role, config) {
                Ok(changed) => Answer::Done(json!({ "changed": changed })),
                Err(failure) => Answer::Refused(failure.to_string()),
            },
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
            } => match role.handle_notice(now) {
                true => Answer::Done(json!({ "state": "up" })),
                false => refused("only mobile nodes have a link that comes back"),
            },
        }
    }

    fn status<R: Role>(&self, now: Instant, role: &R, config: &Path) -> MobileIpStatus {
        MobileIpStatus {
            role: R::NAME.into(),
            device: self.operating.device.clone(),
            interface: self.operating.interface.clone(),
            config: config.display().to_string(),
            metrics: self.operating.metrics.as_ref().map(ToString::to_string),
            running_s: now.since(self.began).as_secs_f64(),
            report: role.report(now),
        }
    }

    /// What the service manager shows.
    pub(super) fn introduction<R: Role>(&self, _role: &R) -> String {
        format!("{} on {}", R::NAME, self.operating.device)
    }

    /// Puts the configuration file in force as it is now; what has changed.
    pub(super) fn reload(
        &mut self,
        now: Instant,
        role: &mut impl Role,
        config: &Path,
    ) -> Result<Vec<&'static str>, Failure> {
        self.operations.service().reloading(now);
        let outcome = role.reload(now, self, config);
        self.operations.note_reload(outcome.is_ok());
        match &outcome {
            // A file with a key may be another one under the same name.
            Ok(changed) => tracing::info!(
                changed = changed.join(", "),
                "the configuration and the keys were read again"
            ),
            Err(failure) => tracing::error!("nothing has changed: {failure}"),
        }
        let introduction = self.introduction(role);
        self.operations.service().ready(now, &introduction);
        outcome
    }

    /// Serves metrics where the configuration says now. What may fail comes first.
    pub(super) fn move_metrics(
        &mut self,
        to: Option<&crate::config::Endpoint>,
    ) -> Result<(), Failure> {
        if self.operating.metrics.as_ref() != to {
            self.operations.move_metrics(to, &self.poller)?;
            self.operating.metrics = to.cloned();
        }
        Ok(())
    }
}

/// The error that says which keys cannot change.
pub(super) fn fixed(keys: &[&str]) -> Result<(), Failure> {
    match keys {
        [] => Ok(()),
        keys => Err(Failure::Usage(format!(
            "{} cannot change while the daemon runs: restart it, or take that back",
            keys.join(", ")
        ))),
    }
}
