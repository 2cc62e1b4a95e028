//! When which machine wants to be called: a tournament tree over one deadline for each.
//!
//! Setting a deadline costs a comparison for each level up to where nothing changes, asking for
//! the earliest costs nothing. At one instant machines have their turn in the order of their
//! numbers.
//!
//! A deadline here may be too early: most timers are put off by each packet, and are looked at when
//! the deadline comes that was noted first.

use alloc::vec;
use alloc::vec::Vec;
use outlast_base::time::Instant;

/// The deadlines of machines that are numbered from zero.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// The winner of nodes `2 n` and `2 n + 1` at `n`, the root at 1, the machines from `leaves` on.
    tree: Vec<Instant>,
    leaves: usize,
}

impl Agenda {
    pub(crate) fn new(machines: usize) -> Self {
        let leaves = machines.next_power_of_two();
        let tree = vec![Instant::FAR_FUTURE; 2 * leaves];
        Self { tree, leaves }
    }

    /// Machine `number` wants to be called at `at`, or not at all.
    #[inline]
    pub(crate) fn set(&mut self, number: usize, at: Option<Instant>) {
        let mut node = self.leaves + number;
        let mut winner = at.unwrap_or(Instant::FAR_FUTURE);
        while self.tree[node] != winner {
            self.tree[node] = winner;
            if node == 1 {
                return;
            }
            winner = winner.min(self.tree[node ^ 1]);
            node /= 2;
        }
    }

    /// Machine `number` wants to be asked at `at` at the latest.
    #[inline]
    pub(crate) fn bring_forward(&mut self, number: usize, at: Instant) {
        if at < self.tree[self.leaves + number] {
            self.set(number, Some(at));
        }
    }

    /// The earliest deadline; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub(crate) fn earliest(&self) -> Instant {
        self.tree[1]
    }

    /// The first machine that is due by `now`.
    #[inline]
    pub(crate) fn first_due(&self, now: Instant) -> Option<usize> {
        if self.tree[1] > now {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.tree[node] > now);
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_base::random::Stream;

    #[test]
    fn the_earliest_is_that_of_a_linear_search() {
        let mut random = Stream::new(1, "agenda");
        for machines in [1, 2, 3, 5, 8, 13] {
            let mut agenda = Agenda::new(machines);
            let mut plain = vec![None; machines];
            for _ in 0..500 {
                let number = (random.next_u64() % machines as u64) as usize;
                let at = random
                    .chance(0.8)
                    .then(|| Instant::from_nanos(random.next_u64() % 50));
                agenda.set(number, at);
                plain[number] = at;
                let earliest = plain.iter().flatten().min().copied();
                assert_eq!(agenda.earliest(), earliest.unwrap_or(Instant::FAR_FUTURE));
                let now = Instant::from_nanos(random.next_u64() % 50);
                let first = plain.iter().position(|at| at.is_some_and(|at| at <= now));
                assert_eq!(agenda.first_due(now), first);
            }
        }
    }
}
