//! What `outlast status` shows of the User Timeout Option.

use crate::status::text::several;
use outlast_linux::user_timeout::UserTimeoutCounters;
use serde::{Deserialize, Serialize};

/// What the option has done since the daemon began.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub(in crate::host) struct UserTimeoutCounts {
    /// Segments that were sent with the option.
    pub(in crate::host) sent: u64,
    /// Options of peers that were read.
    pub(in crate::host) heard: u64,
    /// Times that a connection's user timeout became another one because of an option.
    pub(in crate::host) adopted: u64,
    /// Options that found a limit reached.
    pub(in crate::host) refused: u64,
    /// Options that said zero.
    pub(in crate::host) zeros: u64,
    /// Connections whose application has a user timeout of its own.
    pub(in crate::host) left_alone: u64,
    /// Segments that had no room for the option.
    pub(in crate::host) no_room: u64,
    /// Things that the kernel refused.
    pub(in crate::host) failures: u64,
    /// Sockets that were there before and were taken over.
    pub(in crate::host) taken_over: u64,
    /// Times that a connection was kept for longer because its link went away.
    pub(in crate::host) stretched: u64,
}

impl UserTimeoutCounts {
    pub(in crate::host) fn of(counters: UserTimeoutCounters) -> Self {
        // All of them: who adds one is told here that it is to be shown.
        let UserTimeoutCounters {
            sent,
            heard,
            adopted,
            refused,
            zeros,
            left_alone,
            no_room,
            failures,
            taken_over,
            stretched,
        } = counters;
        Self {
            sent,
            heard,
            adopted,
            refused,
            zeros,
            left_alone,
            no_room,
            failures,
            taken_over,
            stretched,
        }
    }

    pub(super) fn to_text(self) -> String {
        let mut text = format!(
            "{} sent and {} heard, {} adopted",
            several(self.sent, "option"),
            self.heard,
            several(self.adopted, "timeout"),
        );
        for (what, count) in [
            ("beyond a limit", self.refused),
            ("of zero", self.zeros),
            ("left alone for their applications", self.left_alone),
            ("segments without room", self.no_room),
            ("errors", self.failures),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text
    }

    /// Each count, with its name among the metrics and what it means.
    pub(in crate::host) fn each(&self) -> [(&'static str, &'static str, u64); 10] {
        [
            (
                "user_timeout_options_sent",
                "Segments that were sent with the User Timeout Option",
                self.sent,
            ),
            (
                "user_timeout_options_heard",
                "User Timeout Options of peers that were read",
                self.heard,
            ),
            (
                "user_timeout_adoptions",
                "Times that a connection's user timeout changed because of an option",
                self.adopted,
            ),
            (
                "user_timeout_refusals",
                "Options that asked for more and found a limit reached",
                self.refused,
            ),
            (
                "user_timeout_zeros",
                "Options that said zero, which is reserved",
                self.zeros,
            ),
            (
                "user_timeout_left_alone",
                "Connections whose application has a user timeout of its own",
                self.left_alone,
            ),
            (
                "user_timeout_without_room",
                "Segments that had no room for the option",
                self.no_room,
            ),
            (
                "user_timeout_errors",
                "Things of the user timeout that the kernel refused",
                self.failures,
            ),
            (
                "user_timeout_taken_over",
                "Sockets that were there before and were taken over",
                self.taken_over,
            ),
            (
                "user_timeout_longer_in_outages",
                "Times that a connection was kept for longer because its link went away",
                self.stretched,
            ),
        ]
    }
}
