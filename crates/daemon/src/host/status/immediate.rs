//! What `outlast status` shows of the Immediate Retransmission Option.

use crate::status::text::several;
use outlast_host::Counters;
use outlast_linux::immediate_retransmission::ImmediateCounters;
use serde::{Deserialize, Serialize};

/// What the option has done since the daemon began.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub(in crate::host) struct ImmediateCounts {
    /// Acknowledgements that were sent with the option.
    pub(in crate::host) sent: u64,
    /// Options of peers that were read.
    pub(in crate::host) heard: u64,
    /// Requests of peers that were granted.
    pub(in crate::host) granted: u64,
    /// Requests that found nothing outstanding.
    pub(in crate::host) needless: u64,
    /// Requests too soon after one of the same connection, or without room.
    pub(in crate::host) refused: u64,
    /// Things that the kernel refused.
    pub(in crate::host) failures: u64,
}

impl ImmediateCounts {
    pub(in crate::host) fn of(counters: ImmediateCounters, agent: &Counters) -> Self {
        // All of them: who adds one is told here that it is to be shown.
        let ImmediateCounters {
            sent,
            heard,
            passed_on: _,
            needless,
            too_soon,
            no_room,
            failures,
        } = counters;
        Self {
            sent,
            heard,
            granted: agent.requests,
            needless,
            refused: too_soon + no_room + agent.requests_refused,
            failures,
        }
    }

    pub(super) fn to_text(self) -> String {
        let mut text = format!(
            "{} for an immediate retransmission sent and {} heard, {} granted",
            several(self.sent, "request"),
            self.heard,
            self.granted,
        );
        for (what, count) in [
            ("with nothing outstanding", self.needless),
            ("too many", self.refused),
            ("errors", self.failures),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text
    }

    /// Each count, with its name among the metrics and what it means.
    pub(in crate::host) fn each(&self) -> [(&'static str, &'static str, u64); 6] {
        [
            (
                "immediate_retransmission_requests_sent",
                "Acknowledgements that were sent with the Immediate Retransmission Option",
                self.sent,
            ),
            (
                "immediate_retransmission_requests_heard",
                "Immediate Retransmission Options of peers that were read",
                self.heard,
            ),
            (
                "immediate_retransmission_requests_granted",
                "Requests of peers upon which a connection was looked at",
                self.granted,
            ),
            (
                "immediate_retransmission_requests_needless",
                "Requests of peers that found nothing outstanding",
                self.needless,
            ),
            (
                "immediate_retransmission_requests_refused",
                "Requests of peers too soon after one of the same connection, or without room",
                self.refused,
            ),
            (
                "immediate_retransmission_errors",
                "Things of the Immediate Retransmission Option that the kernel refused",
                self.failures,
            ),
        ]
    }
}
