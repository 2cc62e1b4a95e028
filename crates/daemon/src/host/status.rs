//! What `outlast status` shows of the role `host`.

mod immediate;
mod user_timeout;

pub(super) use immediate::ImmediateCounts;
pub(super) use user_timeout::UserTimeoutCounts;

use super::interfaces::View;
use super::lacking::Lacking;
use super::returns::{Return, Returns};
use crate::status::text::{push_line, several, time};
use crate::status::{Damped, indicator, state};
use outlast_base::time::Instant;
use outlast_gateway::links::Indicator;
use outlast_host::Counters;
use outlast_linux::immediate_retransmission::ImmediateCounters;
use outlast_linux::stack::StackCounters;
use outlast_linux::user_timeout::UserTimeoutCounters;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Interfaces and neighbours of one that are shown to people; of others only how many there are.
const SHOWN: usize = 20;
/// Returns that are shown to people.
const RETURNS: usize = 5;

/// How an agent beside a host's TCP is. The form only grows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct HostStatus {
    /// `host`.
    pub(super) role: String,
    pub(super) config: Option<String>,
    /// Where metrics are served.
    pub(super) metrics: Option<String>,
    pub(super) running_s: f64,
    /// What restarts a stalled connection: `retransmission-trigger` or `fast-retransmit`.
    #[serde(default)]
    pub(super) mechanism: String,
    /// Connections made to retransmit in a second at most.
    pub(super) per_second: u32,
    /// And at once.
    pub(super) burst: u32,
    pub(super) interfaces: Vec<Interface>,
    /// The last returns of links, the newest first.
    pub(super) returns: Vec<Returned>,
    /// Connections that wait to be made to retransmit, or whose progress is looked at.
    pub(super) pending: u64,
    /// Silent peers whose next packet counts as the return of a link.
    #[serde(default)]
    pub(super) silent_peers: u64,
    /// Whether connections start slowly on a new path.
    #[serde(default)]
    pub(super) new_path: NewPath,
    /// What does not work here, but for slow start on a new path.
    #[serde(default)]
    pub(super) lacking: Vec<Lacking>,
    /// Links whose indicators flap, by the names of their interfaces.
    #[serde(default)]
    pub(super) damped: Vec<DampedLink>,
    pub(super) counters: Counts,
    /// The Immediate Retransmission Option; absent if it is not in use.
    #[serde(default)]
    pub(super) immediate_retransmission: Option<ImmediateCounts>,
    /// The User Timeout Option; absent if it is not sent.
    pub(super) user_timeout: Option<UserTimeoutCounts>,
}

/// Whether connections that were away for less than their timeouts start slowly on a new path.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct NewPath {
    pub(super) starts_slowly: bool,
    /// By which congestion control: one that is chosen for a moment only.
    pub(super) congestion_control: Option<String>,
    /// Why they do not, although the configuration wants it.
    pub(super) lacking: Option<Lacking>,
}

impl NewPath {
    fn to_text(&self) -> String {
        match (&self.congestion_control, &self.lacking) {
            (Some(name), _) => format!("connections start slowly (by {name})"),
            (None, Some(lacking)) => lacking.to_text(),
            (None, None) => {
                "connections keep their windows (slow_start_on_new_path = false)".into()
            }
        }
    }
}

/// An interface that is watched.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Interface {
    pub(super) name: String,
    /// `up`, `down`, or `absent` if there is none of that name.
    pub(super) state: String,
    pub(super) for_s: f64,
    /// Who says so: an indicator's name.
    pub(super) by: String,
    /// Neighbours that are away.
    pub(super) peers_down: Vec<Peer>,
}

/// A neighbour that is away.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Peer {
    pub(super) peer: IpAddr,
    pub(super) for_s: f64,
    pub(super) by: String,
}

/// A link that came back.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Returned {
    pub(super) interface: String,
    /// The neighbour, if it was not the whole interface.
    pub(super) peer: Option<IpAddr>,
    pub(super) by: String,
    /// How long it was away; absent if nobody had said so.
    pub(super) away_s: Option<f64>,
    pub(super) ago_s: f64,
    /// Connections over the link; absent before they were looked through.
    pub(super) connections: Option<u32>,
    /// Those of them that had stalled.
    pub(super) stalled: Option<u32>,
}

/// A link whose indicators flap.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct DampedLink {
    pub(super) interface: String,
    #[serde(flatten)]
    pub(super) link: Damped,
}

/// Counts since the daemon began.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Counts {
    /// Returns of links.
    pub(super) returns: u64,
    /// Returns that came late as their links flapped.
    pub(super) link_ups_delayed: u64,
    /// Losses and returns of links that were not believed as they flapped.
    pub(super) link_changes_ignored: u64,
    /// Passes over the connections because of a return.
    pub(super) passes: u64,
    /// Returns that waited because of a pass shortly before, or were taken for one with it.
    pub(super) passes_delayed: u64,
    /// Times that a connection was made to retransmit.
    pub(super) retransmissions: u64,
    /// Times that a connection was looked at again and had made no progress.
    pub(super) retries: u64,
    /// Peers that were told to send again what they have in flight.
    pub(super) peers_woken: u64,
    /// Peers that had fallen silent while connections waited for them.
    pub(super) peers_silent: u64,
    /// Times that a connection tried whether a silent peer is back.
    pub(super) probes: u64,
    /// Acknowledgements that told peers of a return.
    pub(super) marked_acks: u64,
    /// Connections left to their timers because too many waited.
    pub(super) connections_left_out: u64,
    /// Links that found no room.
    pub(super) links_refused: u64,
    /// Actions that the kernel refused.
    pub(super) errors: u64,
    /// Times that the kernel's sockets were listed.
    pub(super) listings: u64,
    /// ICMP errors delivered to this host's own sockets.
    pub(super) icmp_errors: u64,
    /// ICMP errors that the kernel did not take.
    pub(super) icmp_errors_refused: u64,
    /// Connections told of a smaller path MTU, as their timers would have held them.
    pub(super) path_mtus_lowered: u64,
    /// Connections that start slowly, whatever they think of their timeout.
    pub(super) slow_starts: u64,
    /// Connections that went back to the initial window, as their path was new.
    pub(super) forced_slow_starts: u64,
    /// Connections that duplicate acknowledgements in their peers' names made retransmit fast.
    pub(super) fast_retransmits: u64,
    /// Duplicate acknowledgements sent to peers.
    pub(super) duplicate_acks: u64,
}

/// A metric's name, its meaning and its count.
type Count = (&'static str, &'static str, u64);

/// What the daemon knows of itself.
pub(super) struct About<'a> {
    pub(super) config: Option<String>,
    pub(super) metrics: Option<String>,
    pub(super) mechanism: &'static str,
    pub(super) per_second: u32,
    pub(super) burst: u32,
    pub(super) began: Instant,
    pub(super) interfaces: Vec<View>,
    pub(super) returns: &'a Returns,
    pub(super) pending: usize,
    pub(super) silent_peers: usize,
    pub(super) new_path: NewPath,
    pub(super) lacking: Vec<Lacking>,
    pub(super) damped: Vec<DampedLink>,
    pub(super) agent: &'a Counters,
    pub(super) stack: &'a StackCounters,
    pub(super) immediate: Option<ImmediateCounters>,
    pub(super) user_timeout: Option<UserTimeoutCounters>,
}

impl HostStatus {
    pub(super) fn of(now: Instant, about: &About<'_>) -> Self {
        let interfaces = about.interfaces.iter();
        let returns = about.returns.newest();
        Self {
            role: "host".into(),
            config: about.config.clone(),
            metrics: about.metrics.clone(),
            running_s: now.since(about.began).as_secs_f64(),
            mechanism: about.mechanism.into(),
            per_second: about.per_second,
            burst: about.burst,
            interfaces: interfaces.map(|view| Interface::of(now, view)).collect(),
            returns: returns.map(|one| Returned::of(now, one)).collect(),
            pending: about.pending as u64,
            silent_peers: about.silent_peers as u64,
            new_path: about.new_path.clone(),
            lacking: about.lacking.clone(),
            damped: about.damped.clone(),
            counters: Counts::of(about.agent, about.stack),
            immediate_retransmission: about
                .immediate
                .map(|counters| ImmediateCounts::of(counters, about.agent)),
            user_timeout: about.user_timeout.map(UserTimeoutCounts::of),
        }
    }

    /// Everything, in so many columns; in as many as it takes if there is no end to them.
    #[must_use]
    pub fn to_text(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| push_line(&mut text, columns, name, value);
        line("role", &self.role);
        line("configuration", self.config.as_deref().unwrap_or("none"));
        if let Some(metrics) = &self.metrics {
            line("metrics", metrics);
        }
        line("running", &time(self.running_s));
        if !self.mechanism.is_empty() {
            line("mechanism", &self.mechanism);
        }
        let (per_second, burst) = (self.per_second, self.burst);
        line(
            "at most",
            &format!(
                "{} a second, {burst} at once",
                several(per_second.into(), "connection")
            ),
        );
        line("new path", &self.new_path.to_text());
        for lacking in &self.lacking {
            line("lacking", &lacking.to_text());
        }
        for interface in self.interfaces.iter().take(SHOWN) {
            interface.tell(&mut line);
        }
        if let Some(more @ 1..) = self.interfaces.len().checked_sub(SHOWN) {
            line("", &format!("and {more} more, which --json shows"));
        }
        for DampedLink { interface, link } in self.damped.iter().take(SHOWN) {
            line("damped", &format!("{interface}: {}", link.to_text()));
        }
        if let Some(more @ 1..) = self.damped.len().checked_sub(SHOWN) {
            line("", &format!("and {more} more, which --json shows"));
        }
        for returned in self.returns.iter().take(RETURNS) {
            line("returned", &returned.to_text());
        }
        line("waiting", &several(self.pending, "connection"));
        if self.silent_peers > 0 {
            line("silent", &several(self.silent_peers, "peer"));
        }
        line("counted", &self.counters.to_text());
        if let Some(counts) = self.immediate_retransmission {
            line("requests", &counts.to_text());
        }
        if let Some(counts) = self.user_timeout {
            line("user timeout", &counts.to_text());
        }
        text
    }
}

impl Interface {
    fn of(now: Instant, view: &View) -> Self {
        let for_s = |since: Instant| now.since(since).as_secs_f64();
        let peer = |&(peer, since, by): &(IpAddr, Instant, Indicator)| Peer {
            peer,
            for_s: for_s(since),
            by: indicator(by).into(),
        };
        Self {
            name: view.name.clone(),
            state: view.state.map_or("absent", state).into(),
            for_s: for_s(view.since),
            by: indicator(view.by).into(),
            peers_down: view.absent.iter().map(peer).collect(),
        }
    }

    fn tell(&self, line: &mut dyn FnMut(&str, &str)) {
        let (name, state) = (&self.name, &self.state);
        let told = match state.as_str() {
            "absent" => format!("{name} is not there"),
            _ => format!("{name} {state} for {}{}", time(self.for_s), said(&self.by)),
        };
        line("interface", &told);
        for Peer { peer, for_s, by } in self.peers_down.iter().take(SHOWN) {
            line("", &format!("{peer} down for {}{}", time(*for_s), said(by)));
        }
        if let Some(more @ 1..) = self.peers_down.len().checked_sub(SHOWN) {
            line("", &format!("and {more} more, which --json shows"));
        }
    }
}

/// Who says so, if anybody does.
fn said(by: &str) -> String {
    match by {
        "assumed" => String::new(),
        by => format!(" ({by})"),
    }
}

impl Returned {
    fn of(now: Instant, one: &Return) -> Self {
        Self {
            interface: one.interface.clone(),
            peer: one.peer,
            by: indicator(one.by).into(),
            away_s: one.away.map(|away| away.as_secs_f64()),
            ago_s: now.since(one.at).as_secs_f64(),
            connections: one.found.map(|found| found.connections),
            stalled: one.found.map(|found| found.stalled),
        }
    }

    fn to_text(&self) -> String {
        let of = self
            .peer
            .map_or_else(String::new, |peer| format!("{peer} on "));
        let after = self
            .away_s
            .map_or_else(String::new, |away| format!(" after {}", time(away)));
        let (name, by, ago) = (&self.interface, &self.by, time(self.ago_s));
        let found = match (self.stalled, self.connections) {
            (Some(stalled), Some(connections)) => {
                let had = several(connections.into(), "connection");
                format!("{stalled} of {had} had stalled")
            }
            _ => "connections not looked through yet".into(),
        };
        format!("{of}{name}{after} ({by}), {ago} ago: {found}")
    }
}

impl Counts {
    fn of(agent: &Counters, stack: &StackCounters) -> Self {
        // All of them: who adds one is told here that it is to be shown.
        let Counters {
            restored,
            link_ups_delayed,
            link_changes_ignored,
            passes,
            passes_delayed,
            retransmissions,
            retries,
            peers_woken,
            peers_silent,
            probes,
            // The stack knows which of them the kernel took.
            marked_acks: _,
            // The kernel is not frozen from outside.
            frozen: _,
            thawed: _,
            // They are shown with the option.
            requests: _,
            requests_refused: _,
            slow_starts: forced_slow_starts,
            connections_left_out,
            links_refused,
            errors,
        } = *agent;
        let StackCounters {
            passes: listings,
            icmp_errors,
            icmp_errors_refused,
            path_mtus_lowered,
            slow_starts,
            fast_retransmits,
            duplicate_acks,
            marked_acks,
        } = *stack;
        Self {
            returns: restored,
            link_ups_delayed,
            link_changes_ignored,
            passes,
            passes_delayed,
            retransmissions,
            retries,
            peers_woken,
            peers_silent,
            probes,
            marked_acks,
            connections_left_out,
            links_refused,
            errors,
            listings,
            icmp_errors,
            icmp_errors_refused,
            path_mtus_lowered,
            slow_starts,
            forced_slow_starts,
            fast_retransmits,
            duplicate_acks,
        }
    }

    fn to_text(self) -> String {
        let mut text = format!(
            "{}, {} over the connections, {} brought forward by {}",
            several(self.returns, "return"),
            several(self.passes, "pass"),
            several(self.retransmissions, "retransmission"),
            several(self.icmp_errors, "ICMP error"),
        );
        for (what, count) in [
            (
                "ICMP errors that the kernel did not take",
                self.icmp_errors_refused,
            ),
            (
                "connections left to their timers",
                self.connections_left_out,
            ),
            ("links that found no room", self.links_refused),
            ("errors", self.errors),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text
    }

    /// Each count, with its name among the metrics and what it means.
    pub(super) fn each(&self) -> impl Iterator<Item = Count> {
        let of_agent = self.of_agent().into_iter();
        of_agent.chain(self.of_peers()).chain(self.of_stack())
    }

    fn of_agent(&self) -> [Count; 12] {
        [
            ("host_returns", "Returns of links", self.returns),
            (
                "host_link_ups_delayed",
                "Returns that came late as their links flapped",
                self.link_ups_delayed,
            ),
            (
                "host_link_changes_ignored",
                "Losses and returns of links that were not believed as they flapped",
                self.link_changes_ignored,
            ),
            (
                "host_passes",
                "Passes over the connections because of a return",
                self.passes,
            ),
            (
                "host_passes_delayed",
                "Returns that waited because of a pass shortly before",
                self.passes_delayed,
            ),
            (
                "host_retransmissions",
                "Times that a connection was made to retransmit",
                self.retransmissions,
            ),
            (
                "host_retries",
                "Times that a connection was looked at again and had made no progress",
                self.retries,
            ),
            (
                "host_marked_acks",
                "Acknowledgements marked as a reconnection, with m-tcp",
                self.marked_acks,
            ),
            (
                "host_forced_slow_starts",
                "Connections that went back to the initial window, as their path was new",
                self.forced_slow_starts,
            ),
            (
                "host_connections_left_out",
                "Connections left to their timers because too many waited",
                self.connections_left_out,
            ),
            (
                "host_links_refused",
                "Links that found no room",
                self.links_refused,
            ),
            (
                "host_errors",
                "Actions that the kernel refused",
                self.errors,
            ),
        ]
    }

    fn of_peers(&self) -> [Count; 3] {
        [
            (
                "host_peers_woken",
                "Peers that were told to send again what they have in flight",
                self.peers_woken,
            ),
            (
                "host_peers_silent",
                "Times that a peer had fallen silent while a connection waited for it",
                self.peers_silent,
            ),
            (
                "host_probes",
                "Times that a connection tried whether a silent peer is back",
                self.probes,
            ),
        ]
    }

    fn of_stack(&self) -> [Count; 7] {
        [
            (
                "host_listings",
                "Times that the kernel's sockets were listed",
                self.listings,
            ),
            (
                "host_icmp_errors",
                "ICMP errors delivered to this host's own sockets",
                self.icmp_errors,
            ),
            (
                "host_icmp_errors_refused",
                "ICMP errors that the kernel did not take",
                self.icmp_errors_refused,
            ),
            (
                "host_path_mtus_lowered",
                "Connections told of a smaller path MTU, to send again what is in flight",
                self.path_mtus_lowered,
            ),
            (
                "host_slow_starts",
                "Connections that were kept from getting their former window back",
                self.slow_starts,
            ),
            (
                "host_fast_retransmits",
                "Connections that three duplicate acknowledgements made retransmit fast",
                self.fast_retransmits,
            ),
            (
                "host_duplicate_acks",
                "Duplicate acknowledgements sent to peers",
                self.duplicate_acks,
            ),
        ]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::page;
    use serde_json::Value;

    /// An agent on a laptop whose wireless link was away.
    pub(in crate::host) fn sample() -> HostStatus {
        serde_json::from_str(include_str!("sample.json")).expect("a status")
    }

    #[test]
    fn its_form_can_be_read_again() {
        let value: Value = serde_json::from_str(include_str!("sample.json")).expect("JSON");
        let written = serde_json::to_value(sample()).expect("JSON");
        assert_eq!(
            written, value,
            "the sample lacks a field, or has one too many"
        );
    }

    #[test]
    fn what_people_see_is_in_the_page() {
        let seen = sample().to_text(Some(100));
        page::assert_part("docs/host.md", "status", &format!("```text\n{seen}```\n"));
    }

    #[test]
    fn of_very_many_interfaces_some_are_shown() {
        let mut status = sample();
        let one = status.interfaces[0].clone();
        status.interfaces = vec![one; SHOWN + 3];
        let text = status.to_text(None);
        assert_eq!(text.matches("interface ").count(), SHOWN, "{text}");
        assert!(text.contains("and 3 more, which --json shows"), "{text}");
    }
}
