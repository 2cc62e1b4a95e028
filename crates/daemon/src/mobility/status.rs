//! What `outlast status` shows of the roles with Mobile IP.

use crate::status::text::{push_line, several, time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Mobile nodes that are shown to people; of others only how many there are.
const SHOWN: usize = 20;

/// How a daemon is that speaks Mobile IP. The form only grows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MobileIpStatus {
    /// `home-agent`, `foreign-agent`, `mobile-node` or `correspondent`.
    pub(super) role: String,
    /// The TUN device.
    pub(super) device: String,
    /// The link on which mobile nodes, or agents, are.
    pub(super) interface: Option<String>,
    pub(super) config: String,
    /// Where metrics are served.
    pub(super) metrics: Option<String>,
    pub(super) running_s: f64,
    #[serde(flatten)]
    pub(super) report: Report,
}

/// What each role tells of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Report {
    /// A home agent's address, a foreign agent's care-of address, a mobile node's home address; none of a
    /// correspondent.
    pub(super) address: Option<IpAddr>,
    /// How packets get through tunnels IP in IP, and why so; none of Mobile IPv6.
    pub(super) data_path: Option<String>,
    /// Where a mobile node is.
    pub(super) place: Option<Place>,
    /// The home agent's mobile nodes, the foreign agent's visitors, or those that a correspondent reaches
    /// where they are.
    pub(super) mobiles: Vec<Mobile>,
    /// Counts since the daemon began.
    pub(super) counters: BTreeMap<String, u64>,
}

/// Where a mobile node is.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Place {
    /// `nowhere`, `home`, an address of its own, or an agent's care-of address.
    pub(super) at: String,
    pub(super) is_registered: bool,
    /// Whether the tunnel is in UDP.
    pub(super) in_udp: bool,
    /// The last registration at another place.
    pub(super) last_move: Option<Last>,
}

/// The last registration at another place.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Last {
    /// From the move's discovery to the reply.
    pub(super) took_s: f64,
    /// Since the reply.
    pub(super) ago_s: f64,
}

/// A mobile node of an agent's.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Mobile {
    pub(super) home_address: IpAddr,
    /// Its care-of addresses at a home agent, none while it is at home or unknown; its link-layer
    /// address at a foreign agent.
    pub(super) at: Vec<String>,
}

impl MobileIpStatus {
    /// Whether a daemon of this role answers so.
    #[must_use]
    pub fn is_of(role: &str) -> bool {
        [
            "home-agent",
            "foreign-agent",
            "mobile-node",
            "correspondent",
        ]
        .contains(&role)
    }

    /// Everything, in so many columns; in as many as it takes if there is no end to them.
    #[must_use]
    pub fn to_text(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| push_line(&mut text, columns, name, value);
        let link = self.interface.as_ref();
        let link = link.map_or_else(String::new, |name| format!(", link {name}"));
        line("role", &format!("{} on {}{link}", self.role, self.device));
        let Report {
            address,
            data_path,
            place,
            mobiles,
            counters,
        } = &self.report;
        if let Some(address) = address {
            line("address", &address.to_string());
        }
        if let Some(data_path) = data_path {
            line("data path", data_path);
        }
        line("configuration", &self.config);
        if let Some(metrics) = &self.metrics {
            line("metrics", metrics);
        }
        line("running", &time(self.running_s));
        match place {
            Some(place) => place.tell(&mut line),
            None => tell_mobiles(mobiles, &mut line),
        }
        let counted = counters.iter().filter(|(_, count)| **count > 0);
        let counted: Vec<_> = counted
            .map(|(name, count)| format!("{} {count}", name.replace('_', " ")))
            .collect();
        let counted = match &counted[..] {
            [] => "nothing".into(),
            counted => counted.join(", "),
        };
        line("counted", &counted);
        text
    }
}

impl Place {
    fn tell(&self, line: &mut dyn FnMut(&str, &str)) {
        let tunnel = if self.in_udp { ", tunnel in UDP" } else { "" };
        let state = match self.is_registered {
            true => "registered",
            false => "not registered",
        };
        line("at", &format!("{}, {state}{tunnel}", self.at));
        if let Some(Last { took_s, ago_s }) = &self.last_move {
            let ago = time(*ago_s);
            line("", &format!("registration took {took_s:.3} s, {ago} ago"));
        }
    }
}

fn tell_mobiles(mobiles: &[Mobile], line: &mut dyn FnMut(&str, &str)) {
    line("mobile nodes", &several(mobiles.len() as u64, "node"));
    for mobile in mobiles.iter().take(SHOWN) {
        let at = match &mobile.at[..] {
            [] => "no registration".into(),
            at => format!("at {}", at.join(", ")),
        };
        line("", &format!("{} {at}", mobile.home_address));
    }
    if let Some(more @ 1..) = mobiles.len().checked_sub(SHOWN) {
        line("", &format!("and {more} more, which --json shows"));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::page;

    /// A daemon of each role.
    pub(in crate::mobility) fn samples() -> Vec<MobileIpStatus> {
        serde_json::from_str(include_str!("samples.json")).expect("statuses")
    }

    #[test]
    fn its_form_can_be_read_again() {
        let value: serde_json::Value =
            serde_json::from_str(include_str!("samples.json")).expect("JSON");
        let written = serde_json::to_value(samples()).expect("JSON");
        assert_eq!(
            written, value,
            "a sample lacks a field, or has one too many"
        );
        for sample in samples() {
            assert!(MobileIpStatus::is_of(&sample.role), "{}", sample.role);
        }
    }

    #[test]
    fn what_people_see_is_in_the_page() {
        let seen: Vec<_> = samples().iter().map(|one| one.to_text(Some(100))).collect();
        let seen = seen.join("\n");
        page::assert_part(
            "docs/mobile-ip.md",
            "status",
            &format!("```text\n{seen}```\n"),
        );
    }
}
