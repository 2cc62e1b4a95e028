//! Outages in the status: what each was, and what was saved at its end.

use super::indicator;
use super::text::{several, soon, time};
use crate::outages::{Outage, Stage};
use outlast_base::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// An outage of a link. The form only grows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Saved {
    /// The neighbour whose link it was; `null`: that of the whole interface.
    pub(crate) peer: Option<IpAddr>,
    /// Date and time (RFC 3339, UTC).
    pub(crate) start: String,
    /// So far, if it is not over; `null` if nobody knows when it began.
    pub(crate) length_s: Option<f64>,
    /// The indicator that said so.
    pub(crate) by: String,
    /// `down`, `settling` for two seconds after link-up, or `over`.
    pub(crate) stage: String,
    /// Since its beginning.
    pub(crate) ago_s: f64,
    /// Connections that resumed.
    pub(crate) resumed: u64,
    /// Time from link-up that the slowest of them took.
    pub(crate) slowest_s: Option<f64>,
    /// The longest time that one of them would have taken by itself, about.
    pub(crate) without_s: Option<f64>,
    /// Time that was saved for all of them together, about.
    pub(crate) saved_s: f64,
    /// The first of the connections that resumed.
    pub(crate) connections: Vec<Moved>,
    /// Connections that were not helped.
    pub(crate) not_helped_in_all: u64,
    /// The first of them.
    pub(crate) not_helped: Vec<Left>,
}

/// A connection that resumed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Moved {
    pub(crate) near: String,
    pub(crate) far: String,
    /// From link-up until something new was acknowledged.
    pub(crate) after_s: f64,
    /// Time from link-up until something new would have been acknowledged without the gateway, in seconds, about.
    pub(crate) without_s: Option<f64>,
}

/// A connection that was not helped.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Left {
    /// Both ends.
    pub(crate) flow: String,
    pub(crate) why: String,
}

impl Saved {
    /// An outage as it is at `now`.
    pub(crate) fn of(now: Instant, outage: &Outage) -> Self {
        let has_moved = outage.resumed > 0;
        let seconds = |time: Duration| time.as_secs_f64();
        let length = match outage.stage {
            Stage::Down => Some(now.since(outage.began)),
            _ => outage.length(),
        };
        let moved = outage.named.iter().map(|one| Moved {
            near: one.flow.near.to_string(),
            far: one.flow.far.to_string(),
            after_s: seconds(one.after),
            without_s: one.without.map(seconds),
        });
        let left = outage.left.iter().map(|(flow, why)| Left {
            flow: format!("{} - {}", flow.near, flow.far),
            why: why.to_text().into(),
        });
        Self {
            peer: outage.link.peer,
            start: date(outage.began_unix),
            length_s: length.map(seconds),
            by: indicator(outage.by).into(),
            stage: match outage.stage {
                Stage::Down => "down".into(),
                Stage::Back(_) | Stage::Settling(_) => "settling".into(),
                Stage::Over(_) => "over".into(),
            },
            ago_s: seconds(now.since(outage.began)),
            resumed: outage.resumed,
            slowest_s: has_moved.then(|| seconds(outage.slowest)),
            without_s: (outage.without > Duration::ZERO).then(|| seconds(outage.without)),
            saved_s: seconds(outage.saved),
            connections: moved.collect(),
            not_helped_in_all: outage.not_helped,
            not_helped: left.collect(),
        }
    }

    /// An earlier daemon's record as it is at `now`.
    pub(crate) fn at(&self, now: Instant, unix_offset: Duration) -> Self {
        let since_1970 = unix_offset + now.since(Instant::ZERO);
        let start = self.start.parse::<jiff::Timestamp>().ok();
        let start_s = start.map(|start| start.as_millisecond() as f64 / 1_000.0);
        let ago_s = start_s.map(|start_s| (since_1970.as_secs_f64() - start_s).max(0.0));
        Self {
            ago_s: ago_s.unwrap_or(self.ago_s),
            ..self.clone()
        }
    }

    /// True for a record that is closed.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == "over"
    }

    /// The outage in one sentence.
    pub(crate) fn to_text(&self) -> String {
        match self.stage.as_str() {
            "down" => format!("{} so far", self.extent()),
            _ => format!("{}: {}", self.extent(), self.outcome()),
        }
    }

    /// The outage in one sentence that also says how long ago it began.
    pub(crate) fn to_text_ago(&self) -> String {
        match self.stage.as_str() {
            "down" => self.to_text(),
            _ => {
                let ago = time(self.ago_s);
                format!("{}, {ago} ago: {}", self.extent(), self.outcome())
            }
        }
    }

    /// The peer, the outage's length, and the indicator that told of it.
    fn extent(&self) -> String {
        let of = self
            .peer
            .map_or_else(String::new, |peer| format!("{peer}, "));
        let length = self.length_s.map_or_else(|| "length unknown".into(), time);
        format!("{of}{length} ({})", self.by)
    }

    /// The connections' fates.
    fn outcome(&self) -> String {
        let mut parts = Vec::new();
        if self.resumed > 0 {
            let mut resumed = format!("{} resumed", several(self.resumed, "connection"));
            if let Some(slowest_s) = self.slowest_s {
                resumed += &match soon(slowest_s) {
                    short if short.starts_with("under") => format!(" in {short}"),
                    within => format!(" within {within}"),
                };
            }
            if let Some(without_s) = self.without_s {
                resumed += &format!(", without outlast about {}", soon(without_s));
            }
            parts.push(resumed);
        }
        if self.not_helped_in_all > 0 {
            let mut left = format!(
                "{} not helped",
                several(self.not_helped_in_all, "connection")
            );
            if let Some(Left { flow, why }) = self.not_helped.first() {
                left += &format!(" ({flow}: {why})");
            }
            parts.push(left);
        }
        match parts.is_empty() {
            true => "no connection waited".into(),
            false => parts.join("; "),
        }
    }
}

/// The date so long after the beginning of 1970; nothing if the wall clock is out of its mind.
fn date(since_1970: Duration) -> String {
    let millis = i64::try_from(since_1970.as_millis()).ok();
    millis
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .map_or_else(String::new, |at| at.to_string())
}
