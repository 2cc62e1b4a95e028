//! Tokens for I2 packets that come to nothing (RFC 7401, sections 4.1.1 and 6.9).
//!
//! An I2 is cheap to forge up to its MAC, and the MAC can be checked only after a Diffie-Hellman agreement. Each
//! agreement takes a token, and gives it back if the I2 was honest: honest hosts cost nothing here, however many come.
//! Forged ones may cost [`RATE`] agreements in a second. The fewer tokens are left, the harder the puzzle has to be
//! that an I2 has solved, so that the last tokens are there for those who have paid most: a flood of easy solutions
//! ends where hosts that solve a harder puzzle go on.
//!
//! The signatures of R1 and NOTIFY are rationed alike ([`Checks`]): no MAC comes before them, and neither packet repeats
//! anything that only this host and the peer know.

use crate::event::Refusal;
use crate::rate::Addressed;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// Tokens of a host that nobody attacks.
const CAPACITY: u32 = 64;

/// Tokens that come back in a second.
const RATE: u32 = 25;

/// Tokens above which a puzzle of so many bits is hard enough.
const LEVELS: [(u32, u8); 5] = [(32, 0), (24, 12), (16, 14), (8, 16), (4, 18)];

/// Bits of the puzzle for the last tokens.
const HARDEST: u8 = 20;

/// Tokens that may be spent between an R1 and its I2 without the puzzle becoming too easy.
const MARGIN: u32 = 6;

/// The tokens for agreements.
#[derive(Debug)]
pub(crate) struct Effort {
    tokens: u32,
    /// The time up to which tokens have come back.
    refilled: Instant,
}

/// Bits that have to be solved while so many tokens are left.
fn bits(tokens: u32) -> u8 {
    let mut levels = LEVELS.into_iter();
    let level = levels.find(|&(above, _)| tokens > above);
    level.map_or(HARDEST, |(_, bits)| bits)
}

impl Effort {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            tokens: CAPACITY,
            refilled: now,
        }
    }

    fn refill(&mut self, now: Instant) {
        let interval = Duration::from_secs(1) / RATE;
        let missing = u64::from(CAPACITY - self.tokens);
        let earned = now.since(self.refilled).as_nanos() / interval.as_nanos();
        if u64::try_from(earned).is_ok_and(|earned| earned < missing) {
            // It is less than the capacity.
            let earned = earned as u32;
            self.tokens += earned;
            self.refilled += interval * earned;
        } else {
            self.tokens = CAPACITY;
            self.refilled = now;
        }
    }

    /// Bits of the puzzle to pose, at most `hardest`.
    pub(crate) fn posed(&mut self, now: Instant, hardest: u8) -> u8 {
        self.refill(now);
        bits(self.tokens.saturating_sub(MARGIN)).min(hardest)
    }

    /// Bits that an I2 has to have solved now, at most `hardest`.
    pub(crate) fn required(&mut self, now: Instant, hardest: u8) -> u8 {
        self.refill(now);
        bits(self.tokens).min(hardest)
    }

    /// Takes a token; false if there is none.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.tokens.checked_sub(1);
        self.tokens = left.unwrap_or(0);
        left.is_some()
    }

    /// Gives a token back.
    pub(crate) fn give_back(&mut self) {
        self.tokens = (self.tokens + 1).min(CAPACITY);
    }
}

/// Signatures that may be checked for a token: each takes a fraction of the time of an agreement.
const CHECKS: u32 = 4;

/// Wrong signatures of one address in a second after which no more are checked: fewer than tokens allow for, so that an
/// attacker with one address takes nothing from others.
const WRONG_FOR_ONE_ADDRESS: u32 = 96;

/// The tokens for signatures of packets without a MAC (RFC 7401, sections 6.8 and 6.13).
///
/// The RFC has an R1 taken from whatever address it comes, because a client of a rendezvous server answers from its own.
/// The last tokens are for the addresses that this host has sent to: somebody who cannot write these as his source takes
/// nothing from a peer that answers from there.
#[derive(Debug)]
pub(crate) struct Checks {
    effort: Effort,
    /// Checks that are left of the token that was taken last.
    left: u32,
    wrong: Addressed,
}

impl Checks {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            effort: Effort::new(now),
            left: 0,
            wrong: Addressed::default(),
        }
    }

    /// Runs a check of a signature, and of what else has to be right, if there is a token for its source; one that
    /// succeeds costs nothing.
    pub(crate) fn run<T, E: From<Refusal>>(
        &mut self,
        now: Instant,
        source: Source,
        check: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let is_plenty = self.effort.required(now, HARDEST) == 0;
        if !is_plenty && !source.is_called
            || self.wrong.count(now, source.address) >= WRONG_FOR_ONE_ADDRESS
            || self.left == 0 && !self.effort.take()
        {
            return Err(Refusal::Limit.into());
        }
        if self.left == 0 {
            self.left = CHECKS;
        }
        check().inspect_err(|_| {
            self.left -= 1;
            self.wrong.note(now, source.address);
        })
    }
}

/// Source of a packet without a MAC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) address: IpAddr,
    /// True if this host sends packets of the exchange there.
    pub(crate) is_called: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tokens_are_for_the_hardest_puzzles() {
        let now = Instant::from_millis(1_000);
        let mut effort = Effort::new(now);
        assert_eq!((effort.posed(now, 20), effort.required(now, 20)), (0, 0));
        let mut required = 0;
        for taken in 0..CAPACITY {
            let next = effort.required(now, 20);
            assert!(next >= required, "after {taken}");
            assert!(effort.posed(now, 20) >= next, "a newcomer gets in");
            required = next;
            assert!(effort.take());
        }
        assert_eq!(required, 20);
        assert_eq!(effort.required(now, 17), 17);
        assert!(!effort.take());
        let later = now + Duration::from_millis(1_039);
        assert_eq!(effort.required(later, 20), bits(RATE));
        assert_eq!(effort.tokens, RATE);
        assert_eq!(effort.required(later + Duration::from_millis(1), 20), 12);
        assert_eq!(effort.tokens, RATE + 1, "no part of an interval is lost");
        effort.required(now + Duration::from_secs(3_600), 20);
        assert_eq!(effort.tokens, CAPACITY);
        effort.give_back();
        assert_eq!(effort.tokens, CAPACITY);
    }
}
