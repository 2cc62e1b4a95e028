//! The control of a scenario: the same without Outlast.

use crate::mechanism::Mechanism;
use crate::scenario::{Outlast, Scenario};
use crate::topology::Hop;

impl Scenario {
    /// This scenario without Outlast.
    ///
    /// Links, outages, hand-offs, workloads, stacks and seeds stay; mechanisms, the user timeout, and
    /// gateways that speak to each other or crash go.
    ///
    /// ```
    /// # use outlast_scenario::{Mechanism, Scenario};
    /// # let text = "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n[outlast]\ngateway = \"hold\"";
    /// # let scenario = Scenario::parse(text, "a.toml", std::path::Path::new("."))?;
    /// let control = scenario.without_outlast();
    /// assert_eq!(control.outlast.gateway, Mechanism::None);
    /// assert!(scenario.has_outlast() && !control.has_outlast());
    /// # Ok::<(), outlast_scenario::ScenarioError>(())
    /// ```
    #[must_use]
    pub fn without_outlast(&self) -> Self {
        let plain = |hop: &Hop| Hop {
            fixed_end: Mechanism::None,
            mobile_end: Mechanism::None,
            ..hop.clone()
        };
        Self {
            outlast: Outlast::default(),
            hops: self.hops.iter().map(plain).collect(),
            agents: None,
            crashes: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether anything of Outlast is to run in it.
    #[must_use]
    pub fn has_outlast(&self) -> bool {
        let outlast = &self.outlast;
        let places = [
            outlast.gateway,
            outlast.mobile,
            outlast.fixed,
            outlast.home_agent,
        ];
        let at_hops = self
            .hops
            .iter()
            .flat_map(|hop| [hop.fixed_end, hop.mobile_end]);
        let mut all = places.into_iter().chain(at_hops);
        all.any(|mechanism| mechanism != Mechanism::None) || outlast.user_timeout.is_some()
    }
}
