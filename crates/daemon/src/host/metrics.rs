//! Metrics of the role `host`.

use super::interfaces::{News, What};
use super::status::{HostStatus, ImmediateCounts, UserTimeoutCounts};
use crate::metrics::{Labels, Reloads};
use crate::status::indicator;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// What `outlast_host_outage_seconds` tells apart, in seconds: less than a retransmission timeout, a
/// tunnel, a journey underground.
const OUTAGE_SECONDS: [f64; 9] = [0.2, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 3600.0];

/// What is counted for the metrics alone.
#[derive(Debug)]
pub(super) struct Tally {
    outages: Histogram,
    link_changes: Family<Labels, Counter>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            outages: Histogram::new(OUTAGE_SECONDS),
            link_changes: Family::default(),
        }
    }

    /// Counts a change of a link.
    pub(super) fn note(&self, news: &News) {
        let scope = match news.peer {
            Some(_) => "peer",
            None => "interface",
        };
        let state = match news.what {
            What::Away => "down",
            What::Back { .. } => "up",
            // Nothing passes yet.
            What::Reachable => return,
        };
        let labels = vec![
            ("interface", news.name.clone()),
            ("scope", scope.into()),
            ("state", state.into()),
            ("indicator", indicator(news.by).into()),
        ];
        self.link_changes.get_or_create(&labels).inc();
        if let What::Back {
            away: Some(away), ..
        } = news.what
        {
            self.outages.observe(away.as_secs_f64());
        }
    }
}

/// Everything, as text.
pub(super) fn exposition(status: &HostStatus, tally: &Tally, reloads: &Reloads) -> String {
    let mut registry = Registry::with_prefix("outlast");
    let info = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("role", status.role.clone()),
    ];
    registry.register("build", "What runs", Info::new(info.to_vec()));
    let running = ConstGauge::new(status.running_s);
    registry.register("up_seconds", "Time since the daemon began", running);
    register_interfaces(&mut registry, status);
    registry.register(
        "link_changes",
        "Changes of links, and who told of them",
        tally.link_changes.clone(),
    );
    registry.register(
        "host_outage_seconds",
        "How long links and neighbours were away",
        tally.outages.clone(),
    );
    registry.register(
        "host_pending",
        "Connections that wait to be made to retransmit, or whose progress is looked at",
        ConstGauge::new(status.pending as f64),
    );
    registry.register(
        "host_silent_peers",
        "Silent peers whose next packet counts as the return of a link",
        ConstGauge::new(status.silent_peers as f64),
    );
    for (name, help, count) in status.counters.each() {
        registry.register(name, help, ConstCounter::new(count));
    }
    let requests = status.immediate_retransmission.iter();
    for (name, help, count) in requests.flat_map(ImmediateCounts::each) {
        registry.register(name, help, ConstCounter::new(count));
    }
    let options = status.user_timeout.iter();
    for (name, help, count) in options.flat_map(UserTimeoutCounts::each) {
        registry.register(name, help, ConstCounter::new(count));
    }
    reloads.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes everything written to it");
    text
}

fn register_interfaces(registry: &mut Registry, status: &HostStatus) {
    let up = Family::<Labels, Gauge>::default();
    let peers = Family::<Labels, Gauge>::default();
    for interface in &status.interfaces {
        let labels = vec![("interface", interface.name.clone())];
        let is_up = interface.state == "up";
        up.get_or_create(&labels).set(is_up.into());
        let count = i64::try_from(interface.peers_down.len()).unwrap_or(i64::MAX);
        peers.get_or_create(&labels).set(count);
    }
    registry.register("link_up", "Whether packets pass a link", up);
    registry.register(
        "peers_down",
        "Neighbours on an interface that are away",
        peers,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::interfaces::Moved;
    use crate::host::status::tests::sample;
    use crate::page;
    use outlast_base::time::Duration;
    use outlast_gateway::links::Indicator;

    #[test]
    fn every_metric_is_in_the_page() {
        let tally = Tally::new();
        tally.note(&News {
            index: None,
            name: "wlan0".into(),
            peer: None,
            by: Indicator::Carrier,
            what: What::Back {
                away: Some(Duration::from_millis(14_250)),
                leads_on: true,
            },
            moved: Moved::No,
        });
        let text = exposition(&sample(), &tally, &Reloads::new());
        let table = crate::metrics::tests::table_of(&text);
        page::assert_part("docs/host.md", "metrics", &table);
    }
}
