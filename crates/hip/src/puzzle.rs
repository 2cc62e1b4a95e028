//! The puzzle that an Initiator solves (RFC 7401, sections 4.1.2 and 6.3).

use crate::rhash::Rhash;
use alloc::vec::Vec;
use outlast_base::time::Duration;
use outlast_wire::hip::Hit;

/// Whether `j` solves the puzzle `i` of these hosts: its lowest bits of the hash are zero.
#[must_use]
pub fn is_solved(rhash: Rhash, bits: u8, i: &[u8], hosts: Hosts, j: &[u8]) -> bool {
    let hash = rhash.hash(&[i, &hosts.initiator.0, &hosts.responder.0, j]);
    let whole = usize::from(bits / 8);
    let Some((rest, zeros)) = hash.len().checked_sub(whole).map(|at| hash.split_at(at)) else {
        return false;
    };
    let mask = (1_u8 << (bits % 8)) - 1;
    zeros.iter().all(|&byte| byte == 0) && rest.last().is_none_or(|byte| byte & mask == 0)
}

/// The roles in a base exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hosts {
    /// Who sent the I1.
    pub initiator: Hit,
    /// Who answers it.
    pub responder: Hit,
}

/// A puzzle that is being solved, some attempts at a time.
#[derive(Clone, Debug)]
pub struct Solver {
    rhash: Rhash,
    bits: u8,
    i: Vec<u8>,
    hosts: Hosts,
    j: Vec<u8>,
}

impl Solver {
    /// Begins with the random number `start`, as long as the hash.
    #[must_use]
    pub const fn new(rhash: Rhash, bits: u8, i: Vec<u8>, hosts: Hosts, start: Vec<u8>) -> Self {
        Self {
            rhash,
            bits,
            i,
            hosts,
            j: start,
        }
    }

    /// Makes up to `attempts` attempts, and gives the solution if one is found.
    #[must_use]
    pub fn solve(&mut self, attempts: u32) -> Option<Vec<u8>> {
        for _ in 0..attempts {
            if is_solved(self.rhash, self.bits, &self.i, self.hosts, &self.j) {
                return Some(self.j.clone());
            }
            for byte in self.j.iter_mut().rev() {
                let (sum, overflows) = byte.overflowing_add(1);
                *byte = sum;
                if !overflows {
                    break;
                }
            }
        }
        None
    }
}

/// The time that a coded lifetime stands for: 2^(value - 32) seconds.
#[must_use]
pub fn lifetime(coded: u8) -> Duration {
    match coded.checked_sub(32) {
        Some(power) => Duration::from_secs(1 << power.min(32)),
        None => Duration::from_secs(1) / (1_u32 << (32 - coded).min(31)),
    }
}
