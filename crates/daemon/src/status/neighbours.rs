//! What `outlast status` shows of neighbours and of what is frozen.

use crate::agents::Driver;
use outlast_agents::Session;
use outlast_base::time::{Instant, saturating_nanos};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// This gateway's part among its neighbours.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Agents {
    pub(crate) neighbours: Vec<Neighbour>,
    /// Connections that are frozen here.
    pub(crate) frozen: u64,
    /// Whether all that is frozen is on the disk.
    pub(crate) is_journal_sound: bool,
    /// Segments given to neighbours.
    pub(crate) lent: u64,
    /// Segments taken over from neighbours.
    pub(crate) taken_over: u64,
    /// Segments that neighbours have had acknowledged.
    pub(crate) settled: u64,
    /// Segments that were refused, here or by neighbours.
    pub(crate) refused: u64,
    /// Connections reset because a neighbour was lost.
    pub(crate) reset: u64,
    /// Frozen connections of neighbours of which no note was taken.
    pub(crate) not_noted: u64,
    /// Sessions that were ended because the neighbour did not read what was said to it.
    #[serde(default)]
    pub(crate) unread: u64,
    /// Connections to this gateway of which no session has come.
    #[serde(default)]
    pub(crate) strangers: u64,
    /// The last mobile whose supervised connections came here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_move: Option<Move>,
}

/// The supervised connections of one mobile, taken over from one neighbour.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Move {
    pub(crate) mobile: IpAddr,
    pub(crate) from: SocketAddr,
    pub(crate) connections: u64,
    /// From the mobile's arrival until the last of them was handed over, in microseconds.
    pub(crate) took_us: u64,
}

/// A neighbour.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Neighbour {
    pub(crate) address: SocketAddr,
    /// `up` or `down`.
    pub(crate) session: String,
    /// Connections that it says to be frozen there.
    pub(crate) frozen: u64,
    /// In how many milliseconds it counts as lost, unless it comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lost_in_ms: Option<u64>,
    /// How often a session was tried in vain since the last one.
    #[serde(default)]
    pub(crate) failures: u64,
    /// What was wrong the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_failure: Option<String>,
}

impl Agents {
    pub(super) fn of(now: Instant, driver: &Driver) -> Self {
        let agents = driver.agents();
        let counters = agents.counters();
        let failures = |neighbour| driver.failures(neighbour).cloned().unwrap_or_default();
        let neighbours = agents.neighbours().map(|neighbour| Neighbour {
            failures: failures(neighbour.agent).count,
            last_failure: failures(neighbour.agent).last,
            address: neighbour.agent,
            session: match neighbour.session {
                Session::Up => "up".into(),
                Session::Down => "down".into(),
            },
            frozen: neighbour.frozen as u64,
            lost_in_ms: neighbour.lost_at.map(|at| at.nanos_since(now) / 1_000_000),
        });
        Self {
            neighbours: neighbours.collect(),
            frozen: agents.frozen().count() as u64,
            is_journal_sound: !driver.is_store_broken(),
            lent: counters.lent,
            taken_over: counters.taken_over,
            settled: counters.settled,
            refused: counters.refused,
            reset: counters.reset,
            not_noted: counters.not_noted,
            unread: counters.unread,
            strangers: driver.strangers(),
            last_move: agents.last_move().map(|one| Move {
                mobile: one.mobile,
                from: one.from,
                connections: one.connections,
                took_us: saturating_nanos(one.took) / 1_000,
            }),
        }
    }

    /// Each counter with its name and what is counted.
    pub(crate) const fn counters(&self) -> [(&'static str, &'static str, u64); 8] {
        [
            ("agents_lent", "Segments given to neighbours", self.lent),
            (
                "agents_taken_over",
                "Segments taken over from neighbours",
                self.taken_over,
            ),
            (
                "agents_settled",
                "Segments that neighbours have had acknowledged",
                self.settled,
            ),
            (
                "agents_refused",
                "Segments that were refused, here or by neighbours",
                self.refused,
            ),
            (
                "agents_reset",
                "Connections reset because a neighbour was lost",
                self.reset,
            ),
            (
                "agents_not_noted",
                "Frozen connections of neighbours of which no note was taken",
                self.not_noted,
            ),
            (
                "agents_unread",
                "Sessions ended because the neighbour did not read what was said to it",
                self.unread,
            ),
            (
                "agents_strangers",
                "Connections to this gateway of which no session has come",
                self.strangers,
            ),
        ]
    }

    /// Lines for people, each with its name.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines: Vec<_> = self
            .neighbours
            .iter()
            .map(|neighbour| {
                let Neighbour {
                    address,
                    session,
                    frozen,
                    lost_in_ms,
                    failures,
                    last_failure,
                } = neighbour;
                let lost = lost_in_ms.map_or_else(String::new, |ms| {
                    format!(", lost in {:.1} s", ms as f64 / 1e3)
                });
                let failed = last_failure.as_ref().map_or_else(String::new, |why| {
                    format!("; tried {failures} times: {why}")
                });
                (
                    "neighbour",
                    format!("{address} {session}, {frozen} frozen there{lost}{failed}"),
                )
            })
            .collect();
        lines.extend(self.last_move.as_ref().map(|one| {
            let ms = one.took_us as f64 / 1e3;
            let (connections, mobile, from) = (one.connections, one.mobile, one.from);
            (
                "last move",
                format!("{connections} of {mobile} from {from} in {ms:.1} ms"),
            )
        }));
        let journal = match self.is_journal_sound {
            true => "",
            false => "; THE JOURNAL CANNOT BE WRITTEN",
        };
        lines.push((
            "frozen",
            format!(
                "{} here; {} lent, {} taken over, {} settled, {} refused, {} reset{journal}",
                self.frozen, self.lent, self.taken_over, self.settled, self.refused, self.reset
            ),
        ));
        lines
    }
}
