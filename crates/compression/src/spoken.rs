//! Hosts that the mobile speaks with: only their offers are answered, and few of them.
//!
//! The table has a fixed size. A host has one place, which nobody outside can foresee, and the newest host that the
//! mobile sends a segment to takes it: a flood of offers takes no place from such a host.

use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// Places in the table.
const PLACES: usize = 1024;
/// Time for which a host is spoken with after the last segment to it.
const IDLE: Duration = Duration::from_secs(600);
/// Time between two answers to one host. An honest end repeats an offer after a second at the earliest; half of it
/// allows for a link that delays the first offer more than the second.
const BETWEEN_ANSWERS: Duration = Duration::from_millis(500);
/// Time for which an offer waits for the first segment to its host: a second later there is another offer.
const OFFER_WAITS: Duration = Duration::from_secs(1);

type Addresses = (IpAddr, IpAddr);

#[derive(Clone, Copy, Debug)]
struct Place {
    addresses: Addresses,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The mobile has sent a segment there.
    Spoken {
        at: Instant,
        answered_at: Option<Instant>,
    },
    /// An offer came from there, and no segment has gone there.
    Offered { at: Instant, nonce: u64 },
}

impl Place {
    fn is_spoken_with(&self, now: Instant) -> bool {
        matches!(self.state, State::Spoken { at, .. } if now.since(at) < IDLE)
    }
}

/// Hosts by near and far address, each in its own place.
#[derive(Debug)]
pub(crate) struct Spoken {
    /// Empty until the first segment or offer.
    places: Vec<Option<Place>>,
    /// Key of the places.
    seed: u64,
}

impl Spoken {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            places: Vec::new(),
            seed,
        }
    }

    /// A segment goes to a host. Returns the nonce of an offer that has waited for that.
    pub(crate) fn note_sent(&mut self, now: Instant, addresses: Addresses) -> Option<u64> {
        let place = self.place(addresses);
        let (answered_at, nonce) = match place.filter(|place| place.addresses == addresses) {
            Some(Place {
                state: State::Spoken { answered_at, .. },
                ..
            }) => (answered_at, None),
            Some(Place {
                state: State::Offered { at, nonce },
                ..
            }) if now.since(at) < OFFER_WAITS => (Some(now), Some(nonce)),
            _ => (None, None),
        };
        let state = State::Spoken {
            at: now,
            answered_at,
        };
        *place = Some(Place { addresses, state });
        nonce
    }

    /// An offer comes from a host. True if it is to be answered now; one from a host that nothing was sent to waits.
    pub(crate) fn note_offer(&mut self, now: Instant, addresses: Addresses, nonce: u64) -> bool {
        let place = self.place(addresses);
        match place {
            Some(known) if known.is_spoken_with(now) => {
                let State::Spoken { answered_at, .. } = &mut known.state else {
                    return false;
                };
                let is_early = answered_at.is_some_and(|at| now.since(at) < BETWEEN_ANSWERS);
                if known.addresses != addresses || is_early {
                    return false;
                }
                *answered_at = Some(now);
                true
            }
            _ => {
                let state = State::Offered { at: now, nonce };
                *place = Some(Place { addresses, state });
                false
            }
        }
    }

    fn place(&mut self, addresses: Addresses) -> &mut Option<Place> {
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        // The highest bits are mixed best.
        let place = (self.hash(addresses) >> 54) as usize % PLACES;
        &mut self.places[place]
    }

    fn hash(&self, (near, far): Addresses) -> u64 {
        let halves = [near, far].map(|address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        });
        let halves = halves
            .into_iter()
            .flat_map(|bits| [(bits >> 64) as u64, bits as u64]);
        halves.fold(self.seed, |hash, half| {
            let mixed = (hash ^ half ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
        })
    }
}
