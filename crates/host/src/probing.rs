//! Probes: one connection of a silent peer sends its oldest segment again, to find out whether packets pass.
//!
//! Each connection's own timer doubles with each timeout (RFC 6298, section 5.5), so that after a silence it waits for up to
//! as long again. One probe stands for all connections with its peer: an answer is the peer's first packet, and wakes the
//! others.
//!
//! | silence of the peer | pause |
//! |---|---|
//! | up to 32 s | [`SHORTEST_PAUSE`] |
//! | up to 64 min | a [`SHARE`]th of the silence: 735 packets in the first hour |
//! | longer | [`LONGEST_PAUSE`] |
//!
//! No pause is shorter than a round trip, and all peers together are probed [`MOST_PER_ROUND`] times in a [`ROUND`] at
//! most. A retransmission by a connection's own timer counts as a probe.
//!
//! Limit: probes add to congestion that lets nothing through until a peer counts as silent.

use crate::control::{Connection, ConnectionId, Stage};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// The pause between two probes of a peer that has not been silent for long.
pub(crate) const SHORTEST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause between two probes of a peer.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The silence lasts this many pauses.
const SHARE: u32 = 128;

/// Least time between two passes that probe peers.
const ROUND: Duration = Duration::from_millis(250);

/// Probes of all peers in one pass.
const MOST_PER_ROUND: usize = 64;

/// The next probe of each silent peer.
#[derive(Debug)]
pub(crate) struct Probes {
    /// A peer that is not there is due.
    at: BTreeMap<IpAddr, Instant>,
    next_round: Instant,
}

/// Connections with one peer, as a pass shows them.
struct Candidates {
    /// The connection that has sent nothing for longest: one whose way a router has forgotten does not stand for the others twice.
    longest_quiet: ConnectionId,
    quiet_since: Instant,
    /// The last transmission of any of them.
    newest: Instant,
    /// The longest of their round trips.
    round_trip: Duration,
}

/// The pause after a probe of a peer that has been silent for that long.
fn pause(silence: Duration, round_trip: Duration) -> Duration {
    let share = (silence / SHARE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    share.max(round_trip)
}

impl Probes {
    pub(crate) const fn new() -> Self {
        Self {
            at: BTreeMap::new(),
            next_round: Instant::ZERO,
        }
    }

    /// The time when the first of the `silent` peers is due.
    pub(crate) fn due(&self, silent: &BTreeMap<IpAddr, Instant>) -> Option<Instant> {
        let at = |peer| self.at.get(peer).copied().unwrap_or(Instant::ZERO);
        let first = silent.keys().map(at).min()?;
        Some(first.max(self.next_round))
    }

    /// The connections of `silent` peers, which were heard last at those times, that probe them now, among all that were
    /// `found`. `may_probe` rules out those for which packets cannot pass, or that something else sees to.
    pub(crate) fn choose(
        &mut self,
        now: Instant,
        silent: &BTreeMap<IpAddr, Instant>,
        found: &[Connection],
        may_probe: impl Fn(&Connection) -> bool,
    ) -> Vec<ConnectionId> {
        self.at.retain(|peer, _| silent.contains_key(peer));
        if self.next_round > now {
            return Vec::new();
        }
        let is_due = |peer: &IpAddr| self.at.get(peer).is_none_or(|&at| at <= now);
        let due = silent.iter().filter(|(peer, _)| is_due(peer));
        let mut due: Vec<(IpAddr, Instant)> = due.map(|(&peer, &since)| (peer, since)).collect();
        if due.is_empty() {
            return Vec::new();
        }
        // Where there are too many, those that have waited for longest come first.
        due.sort_by_key(|(peer, _)| self.at.get(peer).copied());
        let candidates = candidates(found, silent, may_probe);
        let mut chosen = Vec::new();
        for (peer, since) in due {
            let Some(best) = candidates.get(&peer) else {
                self.at.insert(peer, now + SHORTEST_PAUSE);
                continue;
            };
            let pause = pause(now.since(since), best.round_trip);
            if best.newest + pause > now {
                self.at.insert(peer, best.newest + pause);
            } else if chosen.len() < MOST_PER_ROUND {
                self.at.insert(peer, now + pause);
                chosen.push(best.longest_quiet);
                self.next_round = now + ROUND;
            }
        }
        chosen
    }
}

/// The connections that may probe each of the `silent` peers.
fn candidates(
    found: &[Connection],
    silent: &BTreeMap<IpAddr, Instant>,
    may_probe: impl Fn(&Connection) -> bool,
) -> BTreeMap<IpAddr, Candidates> {
    let mut all = BTreeMap::<IpAddr, Candidates>::new();
    let waits = |one: &&Connection| one.is_outstanding() && one.timeouts > 0;
    for connection in found.iter().filter(waits) {
        let peer = connection.id.remote.ip();
        // An error about a SYN would end the attempt.
        let is_open = connection.stage != Stage::Opening;
        if !is_open || !silent.contains_key(&peer) || !may_probe(connection) {
            continue;
        }
        let best = all.entry(peer).or_insert(Candidates {
            longest_quiet: connection.id,
            quiet_since: connection.sent_at,
            newest: connection.sent_at,
            round_trip: Duration::ZERO,
        });
        if connection.sent_at < best.quiet_since {
            best.longest_quiet = connection.id;
            best.quiet_since = connection.sent_at;
        }
        best.newest = best.newest.max(connection.sent_at);
        let round_trip = connection.min_rtt + connection.min_rtt / 4;
        best.round_trip = best.round_trip.max(round_trip);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets into a silence that lasts from its first probe for `length`.
    fn packets(length: Duration) -> u32 {
        let (mut at, mut count) = (Duration::ZERO, 0);
        while at < length {
            at += pause(at, Duration::ZERO);
            count += 1;
        }
        count
    }

    #[test]
    fn a_dead_path_costs_a_bounded_number_of_packets() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(packets(minutes(1)), 209);
        assert_eq!(packets(minutes(15)), 557);
        assert_eq!(packets(minutes(60)), 735);
        let day = packets(minutes(24 * 60)) - packets(minutes(23 * 60));
        assert_eq!(day, 120, "two a minute");
    }

    #[test]
    fn no_pause_is_shorter_than_a_round_trip() {
        let satellite = Duration::from_millis(900);
        assert_eq!(pause(Duration::from_secs(3), satellite), satellite);
    }
}
