//! Neighbours that are asked for again after their link was back.
//!
//! The kernel asks with the first retransmission. Where the far end has its carrier a moment later
//! that question is lost, and the kernel repeats it only after a second, while what is retransmitted
//! waits. So the agent asks again, more often, until the neighbour has answered.

use outlast_base::time::{Duration, Instant};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Neighbours of one link that are asked for at most: the others have the kernel's own questions.
const MOST: usize = 64;
/// When those who have not answered yet are asked for, after the link was back.
const AFTER: [Duration; 12] = [
    Duration::from_millis(30),
    Duration::from_millis(80),
    Duration::from_millis(130),
    Duration::from_millis(180),
    Duration::from_millis(240),
    Duration::from_millis(300),
    Duration::from_millis(370),
    Duration::from_millis(450),
    Duration::from_millis(550),
    Duration::from_millis(700),
    Duration::from_millis(1_300),
    Duration::from_millis(2_300),
];
/// Between two beginnings: a link that flaps is not asked over each time.
const PAUSE: Duration = Duration::from_millis(500);

/// The neighbours of one link that are awaited.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    since: Option<Instant>,
    neighbours: BTreeSet<IpAddr>,
    /// How often they were asked for.
    asked: usize,
}

impl Awaited {
    /// The link is back, and these are missed.
    pub(super) fn begin(&mut self, now: Instant, neighbours: impl Iterator<Item = IpAddr>) {
        if self.since.is_some_and(|since| now.since(since) < PAUSE) {
            return;
        }
        self.since = Some(now);
        self.asked = 0;
        self.neighbours.clear();
        for neighbour in neighbours {
            if self.neighbours.len() >= MOST {
                break;
            }
            self.neighbours.insert(neighbour);
        }
    }

    /// The link is away again.
    pub(super) fn end(&mut self) {
        self.neighbours.clear();
    }

    /// Whom to ask for now; whoever `is_known` has answered.
    pub(super) fn poll(&mut self, now: Instant, is_known: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.asked += 1;
        self.neighbours.retain(|neighbour| !is_known(*neighbour));
        self.neighbours.iter().copied().collect()
    }

    /// When to call [`Self::poll`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let after = *AFTER.get(self.asked)?;
        let since = self.since.filter(|_| !self.neighbours.is_empty());
        since.map(|since| since + after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    /// Asks whenever it is time; how often, and when last.
    fn ask_all(awaited: &mut Awaited, is_known: impl Fn(Instant) -> bool) -> (usize, Duration) {
        let (mut count, mut last) = (0, Duration::ZERO);
        while let Some(at) = awaited.poll_timeout() {
            let asked = awaited.poll(at, |_| is_known(at));
            count += asked.len();
            last = at.since(Instant::ZERO);
        }
        (count, last)
    }

    #[test]
    fn who_never_answers_is_asked_for_a_few_times_and_who_answers_no_more() {
        let mut awaited = Awaited::default();
        awaited.begin(Instant::ZERO, [neighbour(1)].into_iter());
        let (count, last) = ask_all(&mut awaited, |_| false);
        assert_eq!((count, last), (AFTER.len(), AFTER[AFTER.len() - 1]));

        let mut awaited = Awaited::default();
        awaited.begin(Instant::ZERO, [neighbour(1)].into_iter());
        let answered = Instant::ZERO + Duration::from_millis(100);
        let (count, last) = ask_all(&mut awaited, |at| at > answered);
        assert_eq!((count, last), (2, AFTER[2]));
    }

    #[test]
    fn crowds_and_flapping_links_are_bounded() {
        let mut awaited = Awaited::default();
        awaited.begin(Instant::ZERO, (0..=255).map(neighbour));
        let first = awaited.poll_timeout().expect("somebody is awaited");
        assert_eq!(awaited.poll(first, |_| false).len(), MOST);
        let soon = Instant::ZERO + PAUSE / 2;
        awaited.end();
        awaited.begin(soon, [neighbour(1)].into_iter());
        assert_eq!(awaited.poll_timeout(), None, "too soon");
        awaited.begin(Instant::ZERO + PAUSE, [neighbour(1)].into_iter());
        assert!(awaited.poll_timeout().is_some());
    }
}
