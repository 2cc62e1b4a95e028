//! Random numbers that a printed seed gives again.

use crate::gateway_matrix::trial::TrialError;
use outlast_base::time::{Duration, saturating_nanos};
use std::io;

/// The environment variable that takes a printed seed back.
const VARIABLE: &str = "OUTLAST_SEED";

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

/// The seed that `OUTLAST_SEED` gives; without it, one that is drawn.
///
/// # Errors
/// When the variable is no number, or the kernel has no random numbers.
pub(super) fn seed() -> Result<u64, TrialError> {
    let error = |source| TrialError::Io {
        what: "choose a seed",
        source,
    };
    if let Ok(text) = std::env::var(VARIABLE) {
        return text
            .parse()
            .map_err(|_| error(io::Error::other(format!("{VARIABLE} is no number: {text}"))));
    }
    let mut seed = [0; 4];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::rand::getrandom(&mut seed, flags).map_err(|errno| error(errno.into()))?;
    Ok(u64::from(u32::from_ne_bytes(seed)))
}

impl Random {
    /// The generator of stream `stream` of a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    /// The next 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is above zero.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// The next 32 bits.
    pub(super) fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// A time between the two, the later one left out.
    pub(super) fn between(&mut self, [from, to]: [Duration; 2]) -> Duration {
        from + Duration::from_nanos(self.below(saturating_nanos(to - from).max(1)))
    }

    /// One of `all`, which are some.
    pub(super) fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers() {
        let of = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.next(), random.next(), random.below(10)]
        };
        assert_eq!(of(7, 1), of(7, 1));
        assert_ne!(of(7, 1), of(7, 2));
        assert_ne!(of(8, 1), of(7, 1));
    }
}
