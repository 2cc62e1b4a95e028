//! Reloads of the configuration, counted.

use super::Labels;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The name of the gauge that tells of the last reload.
pub(super) const LAST: &str = "config_last_reload_successful";
/// Its meaning.
pub(super) const ABOUT_LAST: &str = "Whether the configuration in force is that of the last reload";

/// Reloads of the configuration.
#[derive(Debug)]
pub(crate) struct Reloads {
    count: Family<Labels, Counter>,
    last_was_good: bool,
}

impl Reloads {
    pub(crate) fn new() -> Self {
        let count = Family::<Labels, Counter>::default();
        for result in ["success", "failure"] {
            // A rate can be taken of what begins at zero.
            let _ = count.get_or_create(&vec![("result", result.into())]);
        }
        Self {
            count,
            last_was_good: true,
        }
    }

    /// Counts a reload.
    pub(crate) fn note(&mut self, is_good: bool) {
        let result = if is_good { "success" } else { "failure" };
        let labels = vec![("result", result.into())];
        self.count.get_or_create(&labels).inc();
        self.last_was_good = is_good;
    }

    pub(super) const fn last_was_good(&self) -> bool {
        self.last_was_good
    }

    /// Registers the count.
    pub(super) fn register_count(&self, registry: &mut Registry) {
        registry.register(
            "reloads",
            "Times that the configuration was read again",
            self.count.clone(),
        );
    }

    /// Registers the count, and whether the last reload was good.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let last = ConstGauge::new(f64::from(u8::from(self.last_was_good)));
        registry.register(LAST, ABOUT_LAST, last);
        self.register_count(registry);
    }
}
