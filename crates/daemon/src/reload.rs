//! Reading the configuration again, at SIGHUP or `outlast reload`: all that is new holds at once, or
//! nothing does. No packet and no connection is lost by it.

use super::config::Settings;
use super::indicators::INTERFACE;
use super::metrics::MetricsSocket;
use super::path;
use super::{Daemon, FIRST_METRICS_CLIENT, METRICS};
use crate::failure::Failure;
use outlast_base::time::Instant;
use outlast_compression::Level;

impl Daemon {
    /// Puts the configuration file in force as it is now; what has changed.
    pub(super) fn reload(&mut self, now: Instant) -> Result<Vec<&'static str>, Failure> {
        self.service.reloading(now);
        let outcome = self.try_reload(now);
        self.tally.note_reload(outcome.is_ok());
        match &outcome {
            Ok(changed) if changed.is_empty() => tracing::info!("configuration read: as before"),
            Ok(changed) => {
                tracing::info!(changed = changed.join(", "), "configuration read");
                for warning in self.settings.warnings() {
                    tracing::warn!("{warning}");
                }
            }
            Err(failure) => {
                let why = failure.to_string();
                tracing::error!("configuration not read, the former one holds: {why}");
            }
        }
        let introduction = self.introduction();
        self.service.ready(now, &introduction);
        outcome
    }

    fn try_reload(&mut self, now: Instant) -> Result<Vec<&'static str>, Failure> {
        let file = self.given.file();
        let next = self.given.settle()?;
        path::check(&next)?;
        let mut fixed = self.settings.fixed_differences(&next);
        if self.path.kernel().is_some() && self.settings.limits.flows != next.limits.flows {
            // The kernel's table has as many places as it was made with.
            fixed.push("limits.flows");
        }
        if !fixed.is_empty() {
            return Err(Failure::Usage(format!(
                "{} cannot change while the daemon runs: restart it, or take that back",
                fixed.join(", ")
            )));
        }
        let changed = self.settings.free_differences(&next);
        // What may fail comes first.
        let agents = match (&self.agents, &next.agents) {
            (Some(driver), Some(settings)) => Some(driver.prepare(settings)?),
            _ => None,
        };
        if self.settings.metrics != next.metrics {
            let (place, poller) = (&mut self.metrics, &self.poller);
            match &next.metrics {
                Some(at) => {
                    MetricsSocket::move_to(place, at, poller, METRICS, FIRST_METRICS_CLIENT)?;
                }
                None => *place = None,
            }
        }
        if let Some(agents) = agents {
            self.with_agents(now, |driver, place| driver.reload(place, agents));
        }
        self.put_in_force(now, &next)?;
        (self.settings, self.file) = (next, file);
        self.follow_mechanism(now);
        Ok(changed)
    }

    fn put_in_force(&mut self, now: Instant, next: &Settings) -> Result<(), Failure> {
        self.logging.set_level(next.log.level);
        self.gateway.set_mechanism(next.mechanism.0);
        if self.settings.limits != next.limits {
            self.gateway.set_limits(next.limits);
            self.indicators.set_most_peers(next.limits.peers);
        }
        if self.settings.rate != next.rate {
            self.gateway.set_rate(now, INTERFACE, next.rate);
            if let Some(compression) = &mut self.compression {
                compression.set_rate(next.rate, Level::of_rate(next.rate));
            }
        }
        if self.settings.shares_rate != next.shares_rate {
            self.gateway.share_rate(now, INTERFACE, next.shares_rate);
        }
        if self.settings.silence() != next.silence() {
            self.gateway.set_silence(next.silence());
        }
        if self.settings.damping != next.damping {
            self.gateway.set_damping(now, next.damping);
        }
        if self.settings.indicators != next.indicators {
            self.indicators.set_watched(now, next.indicators);
            self.take_snapshot(now)?;
        }
        self.drain(now)?;
        Ok(())
    }
}
