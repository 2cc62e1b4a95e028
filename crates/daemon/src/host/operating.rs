//! How the role `host` is operated: status, metrics, notices, reload.

use super::lacking::Lacking;
use super::settings::Settings;
use super::status::{About, HostStatus, NewPath};
use super::{Daemon, KEPT_WINDOWS, config_file, host_limits, immediate, metrics};
use crate::control::{Answer, Notified, Request};
use crate::failure::Failure;
use crate::operations::Wanted;
use crate::status;
use outlast_base::time::Instant;
use outlast_gateway::links::LinkState;
use outlast_host::Counters;
use outlast_linux::poller::Token;
use serde_json::json;
use std::net::IpAddr;

impl Daemon {
    /// Serves one who operates this role.
    pub(super) fn hear(&mut self, now: Instant, token: Token) -> anyhow::Result<()> {
        match self.operations.serve(now, token, &self.poller)? {
            None => {}
            Some(Wanted::Metrics(client, asked)) => {
                let (status, reloads) = (self.status(now), self.operations.reloads());
                let text = metrics::exposition(&status, &self.tally, reloads);
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
        match request {
            Request::Status => match serde_json::to_value(self.status(now)) {
                Ok(status) => Answer::Done(status),
                Err(error) => Answer::Refused(error.to_string()),
            },
            Request::Flows { .. } => Answer::Refused("only gateways list connections".into()),
            Request::Reload => match self.reload(now) {
                Ok(changed) => Answer::Done(json!({ "changed": changed })),
                Err(failure) => Answer::Refused(failure.to_string()),
            },
            Request::Notify { state, peer, link } => {
                self.hear_notice(now, state, peer, link.as_deref())
            }
        }
    }

    /// Somebody says what has become of a link. What holds of it then, which may be another thing:
    /// other indicators may say otherwise.
    fn hear_notice(
        &mut self,
        now: Instant,
        state: Notified,
        peer: Option<IpAddr>,
        link: Option<&str>,
    ) -> Answer {
        let said = match state {
            Notified::Up => LinkState::Up,
            Notified::Down => LinkState::Down,
        };
        match self.interfaces.handle_notice(now, link, peer, said) {
            Ok(holds) => Answer::Done(json!({ "state": status::state(holds) })),
            Err(why) => Answer::Refused(why),
        }
    }

    fn status(&self, now: Instant) -> HostStatus {
        let config = self.config.as_ref();
        HostStatus::of(
            now,
            &About {
                config: config.map(|file| file.display().to_string()),
                metrics: self.settings.metrics.as_ref().map(ToString::to_string),
                mechanism: self.settings.mechanism.name(),
                per_second: self.settings.per_second,
                burst: self.settings.burst,
                began: self.began,
                interfaces: self.interfaces.views().collect(),
                returns: &self.returns,
                pending: self.host.waiting().len(),
                silent_peers: self.silent_peers.count(),
                new_path: self.new_path(),
                lacking: self.lacking(),
                damped: self.damped(now),
                agent: &Counters {
                    // Both are peers without room.
                    links_refused: self.host.counters().links_refused + self.silent_peers.refused(),
                    ..*self.host.counters()
                },
                stack: self.stack.counters(),
                immediate: immediate::counters(&self.stack),
                user_timeout: self.user_timeouts.counters(),
            },
        )
    }

    /// Whether connections start slowly on a new path.
    fn new_path(&self) -> NewPath {
        match (
            self.settings.slow_start_on_new_path,
            self.stack.slow_start_control(),
        ) {
            (false, _) => NewPath::default(),
            (true, Ok(name)) => NewPath {
                starts_slowly: true,
                congestion_control: Some(name.to_owned()),
                lacking: None,
            },
            (true, Err(lack)) => NewPath {
                lacking: Some(Lacking::of(KEPT_WINDOWS, lack)),
                ..NewPath::default()
            },
        }
    }

    /// What does not work here, but for slow start.
    fn lacking(&self) -> Vec<Lacking> {
        let all = [self.silent_peers.lacking(), self.immediate.lacking()];
        all.into_iter().flatten().cloned().collect()
    }

    /// What the service manager shows.
    pub(super) fn introduction(&self) -> String {
        let names = self.interfaces.names();
        match names.as_slice() {
            [] => "host agent, no interface is there".into(),
            names => format!("host agent on {}", names.join(", ")),
        }
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
        let config = config_file(self.config.as_deref());
        let next = Settings::load(config.as_deref())?;
        if self.settings.moves_control(&next) {
            return Err(Failure::Usage(
                "control cannot change while the daemon runs: restart it, or take that back".into(),
            ));
        }
        let changed = self.settings.free_differences(&next);
        // What may fail comes first.
        let options = [&self.settings, &next].map(|settings| settings.user_timeout.as_ref());
        self.user_timeouts.renew(options[0], options[1])?;
        if self.settings.metrics != next.metrics {
            let moved = self
                .operations
                .move_metrics(next.metrics.as_ref(), &self.poller);
            if let Err(failure) = moved {
                self.user_timeouts.renew(options[1], options[0])?;
                return Err(failure);
            }
        }
        self.host.set_limits(now, host_limits(&next));
        if self.settings.damping != next.damping {
            let damping = next.damping.config();
            self.host.set_damping(now, damping, &mut self.stack);
        }
        self.host.set_forces_slow_start(next.slow_start_on_new_path);
        self.host.set_probing(next.probes_silent_peers);
        self.host.set_mechanism(next.mechanism.mechanism());
        if self.settings.interfaces != next.interfaces {
            self.interfaces.choose(next.interfaces.clone());
            self.take_snapshot(now)?;
            self.user_timeouts.retain_links(&self.interfaces.indices());
        }
        (self.settings, self.config) = (next, config);
        // The user timeout option has left all sockets, where it begins anew.
        self.renew_waking()?;
        Ok(changed)
    }
}
