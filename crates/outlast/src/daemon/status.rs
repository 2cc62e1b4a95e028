//! What `outlast status` shows.

use super::config::Settings;
use super::indicators::{INTERFACE, Indicators};
use super::path::QueuePath;
use outlast_core::flow::FlowKey;
use outlast_core::gateway::Gateway;
use outlast_core::link::{LinkId, LinkState};
use outlast_core::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Resumes that are remembered.
const REMEMBERED: usize = 16;

/// How a daemon is. The form only grows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Status {
    pub(crate) interface: String,
    pub(crate) mechanism: String,
    /// Whether it may acknowledge what the receiver has not.
    pub(crate) acknowledges_ahead: bool,
    pub(crate) data_path: String,
    pub(crate) running_s: f64,
    pub(crate) link: Link,
    pub(crate) peers_down: Vec<PeerDown>,
    /// Tracked connections.
    pub(crate) flows: usize,
    /// Kept for TCP connections, with what keeping costs.
    pub(crate) held_bytes: u64,
    /// Kept of everything else.
    pub(crate) held_other_bytes: u64,
    pub(crate) counters: Counters,
    /// The newest last.
    pub(crate) resumes: Vec<Resume>,
}

/// The state of the interface's link.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Link {
    /// `up` or `down`.
    pub(crate) state: String,
    /// For how long.
    pub(crate) for_s: f64,
}

/// A peer that is down while others are not.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct PeerDown {
    pub(crate) peer: IpAddr,
    pub(crate) for_s: f64,
}

/// A connection that moved again after an outage.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Resume {
    pub(crate) near: String,
    pub(crate) far: String,
    /// From link-up until something new was acknowledged.
    pub(crate) after_s: f64,
    pub(crate) ago_s: f64,
}

/// Counts since the daemon began.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Counters {
    pub(crate) packets: u64,
    pub(crate) passed_unseen: u64,
    pub(crate) super_segments_cut: u64,
    pub(crate) odd_segments: u64,
    pub(crate) taken: u64,
    pub(crate) superseded: u64,
    pub(crate) suppressed: u64,
    pub(crate) acks_resent: u64,
    pub(crate) resent: u64,
    pub(crate) rereceived: u64,
    pub(crate) unsent: u64,
    pub(crate) kicks_repeated: u64,
    pub(crate) resumes: u64,
    pub(crate) freezes: u64,
    pub(crate) resets: u64,
    pub(crate) flows_displaced: u64,
    pub(crate) fallbacks: u64,
    pub(crate) not_kept: u64,
    pub(crate) others_evicted: u64,
    pub(crate) link_events_refused: u64,
}

/// The last connections that moved again.
#[derive(Debug, Default)]
pub(super) struct Resumes {
    last: VecDeque<(Instant, FlowKey, Duration)>,
}

impl Resumes {
    pub(super) fn note(&mut self, now: Instant, flow: FlowKey, after: Duration) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back((now, flow, after));
    }
}

impl Status {
    pub(super) fn of(
        now: Instant,
        began: Instant,
        settings: &Settings,
        gateway: &Gateway,
        path: &QueuePath,
        indicators: &Indicators,
        resumes: &Resumes,
    ) -> Self {
        let link = gateway.link_state(LinkId::whole(INTERFACE));
        let peers_down = indicators.absent().map(|(peer, since)| PeerDown {
            peer,
            for_s: now.since(since).as_secs_f64(),
        });
        let resumes = resumes.last.iter().map(|(at, flow, after)| Resume {
            near: flow.near.to_string(),
            far: flow.far.to_string(),
            after_s: after.as_secs_f64(),
            ago_s: now.since(*at).as_secs_f64(),
        });
        let info = settings.mechanism.0.info();
        Self {
            interface: settings.interface.clone(),
            mechanism: info.name.into(),
            acknowledges_ahead: info.acknowledges_ahead,
            data_path: path.describe(),
            running_s: now.since(began).as_secs_f64(),
            link: Link {
                state: match indicators.state() {
                    LinkState::Up => "up".into(),
                    LinkState::Down => "down".into(),
                },
                for_s: link.map_or(0.0, |link| now.since(link.since).as_secs_f64()),
            },
            peers_down: peers_down.collect(),
            flows: gateway.flows(),
            held_bytes: gateway.held().0,
            held_other_bytes: gateway.held_other().0,
            counters: Counters::of(gateway, path),
            resumes: resumes.collect(),
        }
    }

    /// For people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<12} {value}");
        };
        line("interface", self.interface.clone());
        line("mechanism", self.mechanism.clone());
        if self.acknowledges_ahead {
            line("", "acknowledges what the receiver has not".into());
        }
        line("data path", self.data_path.clone());
        line("running", format!("{:.0} s", self.running_s));
        let Link { state, for_s } = &self.link;
        line("link", format!("{state} for {for_s:.1} s"));
        for PeerDown { peer, for_s } in &self.peers_down {
            line("peer", format!("{peer} down for {for_s:.1} s"));
        }
        line("flows", self.flows.to_string());
        let (tcp, other) = (self.held_bytes, self.held_other_bytes);
        line("held", format!("{tcp} B for TCP, {other} B of others"));
        let Counters {
            packets,
            taken,
            resent,
            acks_resent,
            resumes,
            ..
        } = self.counters;
        line(
            "counted",
            format!(
                "{packets} packets, {taken} taken, {resent} re-sent, {acks_resent} \
                 acknowledgements re-sent, {resumes} resumes"
            ),
        );
        for resume in &self.resumes {
            let Resume {
                near,
                far,
                after_s,
                ago_s,
            } = resume;
            line(
                "resumed",
                format!("{near} - {far}, {after_s:.3} s after link-up, {ago_s:.0} s ago"),
            );
        }
        text
    }
}

impl Counters {
    fn of(gateway: &Gateway, path: &QueuePath) -> Self {
        let core = gateway.counters();
        Self {
            packets: core.packets,
            passed_unseen: path.counters.unseen,
            super_segments_cut: path.counters.cut,
            odd_segments: core.odd_segments,
            taken: core.taken,
            superseded: core.superseded,
            suppressed: core.suppressed,
            acks_resent: core.acks_resent,
            resent: core.resent,
            rereceived: core.rereceived,
            unsent: path.counters.unsent,
            kicks_repeated: core.kicks_repeated,
            resumes: core.resumes,
            freezes: core.freezes,
            resets: core.resets,
            flows_displaced: core.flows_displaced,
            fallbacks: core.fallbacks,
            not_kept: core.not_kept,
            others_evicted: core.others_evicted,
            link_events_refused: core.link_events_refused,
        }
    }
}
