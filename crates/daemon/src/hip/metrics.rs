//! Metrics of the roles `hip` and `rendezvous`.

use super::status::{Association, HipStatus};
use crate::metrics::{Labels, Reloads};
use outlast_base::time::Duration;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

/// What `outlast_hip_readdressing_seconds` tells apart, in seconds: three round trips on a local
/// network, on the Internet, on a satellite's link; then repetitions.
const READDRESSING_SECONDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

type Seconds = Gauge<f64, AtomicU64>;

/// What is counted for the metrics alone.
#[derive(Debug)]
pub(super) struct Tally {
    readdressings: Histogram,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            readdressings: Histogram::new(READDRESSING_SECONDS),
        }
    }

    pub(super) fn note_readdressing(&self, took: Duration) {
        self.readdressings.observe(took.as_secs_f64());
    }
}

/// Everything, as text; `unix_now` is the time since 1970.
pub(super) fn exposition(
    status: &HipStatus,
    tally: &Tally,
    reloads: &Reloads,
    unix_now: Duration,
) -> String {
    let mut registry = Registry::with_prefix("outlast");
    let info = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("role", status.role.clone()),
        ("interface", status.device.clone()),
    ];
    registry.register("build", "What runs, and where", Info::new(info.to_vec()));
    let running = ConstGauge::new(status.running_s);
    registry.register("up_seconds", "Time since the daemon began", running);
    register_associations(&mut registry, status);
    register_readdressings(&mut registry, status, unix_now);
    registry.register(
        "hip_readdressing_seconds",
        "Time from a readdressing's first packet to its end",
        tally.readdressings.clone(),
    );
    register_rendezvous(&mut registry, status);
    let refused = Family::<Labels, Counter>::default();
    for (reason, count) in &status.refused {
        let labels = vec![("reason", reason.clone())];
        refused.get_or_create(&labels).inc_by(*count);
    }
    registry.register("hip_refused", "Packets dropped, and why", refused);
    registry.register(
        "hip_r1_sent",
        "Answers to first packets of an exchange",
        ConstCounter::new(status.counters.r1_sent),
    );
    registry.register(
        "hip_agreements",
        "Diffie-Hellman agreements computed for third packets of an exchange",
        ConstCounter::new(status.counters.agreements),
    );
    reloads.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes everything written to it");
    text
}

fn of_peer(association: &Association) -> Labels {
    vec![("peer", association.peer.to_string())]
}

/// What is counted of each association; its counts begin anew with a base exchange.
fn register_associations(registry: &mut Registry, status: &HipStatus) {
    let states = Family::<Labels, Gauge>::default();
    let waiting = Family::<Labels, Gauge>::default();
    for association in &status.associations {
        let state = vec![("state", association.state.clone())];
        states.get_or_create(&state).inc();
        let count = i64::try_from(association.waiting).unwrap_or(i64::MAX);
        waiting.get_or_create(&of_peer(association)).set(count);
    }
    registry.register("hip_associations", "Associations, by their state", states);
    registry.register(
        "hip_waiting",
        "Packets that wait for a path to a peer",
        waiting,
    );
    type Part = fn(&Association) -> u64;
    let parts: [(&str, &str, Part); 7] = [
        (
            "hip_sent_packets",
            "Applications' packets that went to a peer",
            |association| association.sent_packets,
        ),
        ("hip_sent_bytes", "Bytes of these packets", |association| {
            association.sent_bytes
        }),
        (
            "hip_received_packets",
            "Packets of a peer for applications",
            |association| association.received_packets,
        ),
        (
            "hip_received_bytes",
            "Bytes of these packets",
            |association| association.received_bytes,
        ),
        (
            "hip_readdressings",
            "Readdressings with a peer that are complete",
            |association| association.readdressings,
        ),
        (
            "hip_rekeyings",
            "Times that keys for data were replaced with a peer",
            |association| association.rekeyings,
        ),
        (
            "hip_failed_rekeyings",
            "Offers of new keys that a peer did not answer",
            |association| association.failed_rekeyings,
        ),
    ];
    for (name, help, part) in parts {
        let family = Family::<Labels, Counter>::default();
        for association in &status.associations {
            let count = family.get_or_create(&of_peer(association));
            count.inc_by(part(association));
        }
        registry.register(name, help, family);
    }
}

fn register_readdressings(registry: &mut Registry, status: &HipStatus, unix_now: Duration) {
    let took = Family::<Labels, Seconds>::default();
    let ended = Family::<Labels, Seconds>::default();
    for association in &status.associations {
        if let Some(last) = &association.last_readdressing {
            let labels = of_peer(association);
            took.get_or_create(&labels).set(last.took_s);
            let at = unix_now.as_secs_f64() - last.ago_s;
            ended.get_or_create(&labels).set(at);
        }
    }
    registry.register(
        "hip_last_readdressing_seconds",
        "How long the last readdressing with a peer took",
        took,
    );
    registry.register(
        "hip_last_readdressing_timestamp_seconds",
        "When the last readdressing with a peer was complete, since 1970",
        ended,
    );
}

fn register_rendezvous(registry: &mut Registry, status: &HipStatus) {
    let registered = Family::<Labels, Seconds>::default();
    for association in &status.associations {
        if let Some(left) = association.registered_for_s {
            registered.get_or_create(&of_peer(association)).set(left);
        }
    }
    registry.register(
        "hip_registered_seconds",
        "For how long this host is registered with a rendezvous server",
        registered,
    );
    let clients = status.registrations.len() as f64;
    registry.register(
        "hip_registrations",
        "Hosts that are registered at this rendezvous server",
        ConstGauge::new(clients),
    );
    registry.register(
        "hip_forwarded",
        "Packets forwarded to registered hosts",
        ConstCounter::new(status.counters.forwarded),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hip::status::tests::sample;
    use crate::page;

    #[test]
    fn every_metric_is_in_the_page() {
        let tally = Tally::new();
        tally.note_readdressing(Duration::from_millis(46));
        let unix_now = Duration::from_secs(1_790_000_000);
        let text = exposition(&sample(), &tally, &Reloads::new(), unix_now);
        let table = crate::metrics::tests::table_of(&text);
        page::assert_part("docs/hip.md", "metrics", &table);
    }
}
