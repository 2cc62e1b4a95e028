//! Metrics of the roles with Mobile IP.

use super::status::MobileIpStatus;
use crate::metrics::{Labels, Reloads};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Everything, as text.
pub(super) fn exposition(status: &MobileIpStatus, reloads: &Reloads) -> String {
    let mut registry = Registry::with_prefix("outlast");
    let info = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("role", status.role.clone()),
        ("interface", status.device.clone()),
    ];
    registry.register("build", "What runs, and where", Info::new(info.to_vec()));
    let running = ConstGauge::new(status.running_s);
    registry.register("up_seconds", "Time since the daemon began", running);
    let report = &status.report;
    match &report.place {
        Some(place) => {
            let registered = f64::from(u8::from(place.is_registered));
            registry.register(
                "mobile_ip_registered",
                "Whether this mobile node is registered where it is",
                ConstGauge::new(registered),
            );
            if let Some(last) = &place.last_move {
                registry.register(
                    "mobile_ip_last_move_seconds",
                    "How long the last registration at another place took",
                    ConstGauge::new(last.took_s),
                );
            }
        }
        None => {
            let away = report.mobiles.iter().filter(|one| !one.at.is_empty());
            registry.register(
                "mobile_ip_mobiles",
                "Mobile nodes that are away from home, or visit here",
                ConstGauge::new(away.count() as f64),
            );
        }
    }
    let counts = Family::<Labels, Counter>::default();
    for (name, count) in &report.counters {
        let labels = vec![("event", name.clone())];
        counts.get_or_create(&labels).inc_by(*count);
    }
    registry.register(
        "mobile_ip_events",
        "Messages and packets, by what became of them",
        counts,
    );
    reloads.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes everything written to it");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::status::tests::samples;
    use crate::page;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_in_the_page() {
        let mut rows = BTreeSet::new();
        let mut head = String::new();
        for sample in samples() {
            let table = crate::metrics::tests::table_of(&exposition(&sample, &Reloads::new()));
            let mut lines = table.lines().filter(|line| !line.is_empty());
            head = lines
                .by_ref()
                .take(2)
                .map(|line| format!("{line}\n"))
                .collect();
            rows.extend(lines.map(|line| format!("{line}\n")));
        }
        let rows: String = rows.into_iter().collect();
        page::assert_part("docs/mobile-ip.md", "metrics", &format!("\n{head}{rows}\n"));
    }
}
