//! Named random streams.
//!
//! Each component that needs chance draws from a stream of its own, made from the run's seed and
//! the component's name. Whatever one component draws, the others' numbers stay the same: more
//! loss does not move the outages. Numbers are the same on every machine; logarithms and the like
//! come from a portable library for the same reason.

use crate::time::Duration;
use core::f64::consts::TAU;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// The seed of the component `name` of the run with `seed`, for components that have streams of
/// their own: two links of one run get one each, and so do not lose the same packets.
#[must_use]
pub fn derived_seed(seed: u64, name: &str) -> u64 {
    Stream::new(seed, name).next_u64()
}

/// A stream of random numbers (PCG-XSL-RR 128/64).
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Pcg64,
}

impl Stream {
    /// The stream `name` of the run with `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        let mut state = seed ^ fnv1a(name.as_bytes());
        let mut pcg_seed = [0; 32];
        for chunk in pcg_seed.chunks_exact_mut(8) {
            chunk.copy_from_slice(&split_mix(&mut state).to_le_bytes());
        }
        Self {
            generator: Pcg64::from_seed(pcg_seed),
        }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number in `0.0..1.0`, evenly spread.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with `probability`. Certain outcomes draw nothing.
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability >= 1.0 {
            return true;
        }
        probability > 0.0 && self.unit() < probability
    }

    /// Evenly spread between half and one and a half of `mean`.
    pub fn uniform(&mut self, mean: Duration) -> Duration {
        scale(mean, 0.5 + self.unit())
    }

    /// Exponentially distributed with `mean`.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // 1 - unit is never zero, so the logarithm is finite.
        scale(mean, -libm::log(1.0 - self.unit()))
    }

    /// Normally distributed with `mean` and a standard deviation of a quarter of it.
    ///
    /// What falls beyond three standard deviations is drawn again, so the result lies between a
    /// quarter and seven quarters of `mean`, and the mean is kept because the cut is even.
    pub fn normal(&mut self, mean: Duration) -> Duration {
        loop {
            // Box and Muller's transform, the cosine half.
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
            let deviations = radius * libm::cos(TAU * self.unit());
            if libm::fabs(deviations) <= 3.0 {
                return scale(mean, 1.0 + deviations / 4.0);
            }
        }
    }
}

/// `factor` (not negative) times `duration`, to the nanosecond, saturating.
fn scale(duration: Duration, factor: f64) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a random length needs no more than 53 bits"
    )]
    let nanos = duration.as_nanos() as f64 * factor;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and the factor is not negative"
    )]
    Duration::from_nanos(libm::round(nanos) as u64)
}

/// Fowler, Noll and Vo's hash, variant 1a, 64 bits: turns a name into a number.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// One step of `SplitMix64`, which spreads neighbouring seeds over the whole range.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
