//! A peer's addresses, their states and the credit for those that are not verified
//! (RFC 8046, sections 5.1 and 5.6).

use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::{LocatorSet, Traffic};

/// How often the credit shrinks.
const CREDIT_AGING: Duration = Duration::from_secs(5);

/// What is known of an address (RFC 8046, section 5.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AddressState {
    /// The peer has named it; nobody has shown that the peer is there.
    Unverified,
    /// The peer has answered from there.
    Active,
    /// The peer has gone from there.
    Deprecated,
}

impl AddressState {
    /// As a status page has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Active => "active",
            Self::Deprecated => "deprecated",
        }
    }
}

/// One address of a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerAddress {
    /// The address.
    pub address: IpAddr,
    /// What is known of it.
    pub state: AddressState,
    /// When it ends.
    pub expires: Option<Instant>,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Path {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) is_verified: bool,
}

/// Bytes that may go to an unverified address.
#[derive(Clone, Copy, Debug)]
struct Credit {
    bytes: u64,
    aged: Instant,
}

impl Credit {
    /// Applies the aging that is due: seven eighths for each five seconds.
    fn age(&mut self, now: Instant) {
        while self.bytes > 0 && now.since(self.aged) >= CREDIT_AGING {
            self.bytes = self.bytes - self.bytes.div_ceil(8);
            self.aged += CREDIT_AGING;
        }
        if self.bytes == 0 {
            self.aged = now;
        }
    }
}

/// All addresses of a peer, the preferred one first.
#[derive(Clone, Debug)]
pub(crate) struct PeerAddresses {
    pub(crate) known: Vec<PeerAddress>,
    credit: Credit,
}

/// This host's address of the family of `remote`.
pub(crate) fn local_for(locals: &[IpAddr], remote: IpAddr) -> Option<IpAddr> {
    let mut locals = locals.iter().copied();
    locals.find(|local| local.is_ipv4() == remote.is_ipv4())
}

impl PeerAddresses {
    /// The address of the base exchange, and those that the configuration names.
    pub(crate) fn new(now: Instant, first: IpAddr, configured: &[IpAddr], cap: usize) -> Self {
        let address = |address, state| PeerAddress {
            address,
            state,
            expires: None,
        };
        let mut known = alloc::vec![address(first, AddressState::Active)];
        let others = configured.iter().filter(|&&other| other != first);
        known.extend(others.map(|&other| address(other, AddressState::Unverified)));
        known.truncate(cap);
        Self {
            known,
            credit: Credit {
                bytes: 0,
                aged: now,
            },
        }
    }

    fn expire(&mut self, now: Instant) {
        for address in &mut self.known {
            if address.expires.is_some_and(|at| at <= now) {
                address.state = AddressState::Deprecated;
            }
        }
    }

    /// The path for data: the first verified address, else the first unverified one.
    pub(crate) fn path(&mut self, now: Instant, locals: &[IpAddr]) -> Option<Path> {
        self.expire(now);
        let of = |state| {
            let mut known = self.known.iter().filter(move |known| known.state == state);
            known.find_map(|known| {
                Some(Path {
                    local: local_for(locals, known.address)?,
                    remote: known.address,
                    is_verified: state == AddressState::Active,
                })
            })
        };
        of(AddressState::Active).or_else(|| of(AddressState::Unverified))
    }

    /// Where data goes, and the addresses that the peer has named last, in its order.
    pub(crate) fn whereabouts(
        &mut self,
        now: Instant,
        locals: &[IpAddr],
    ) -> (Option<IpAddr>, Vec<IpAddr>) {
        let data_goes_to = self.path(now, locals).map(|path| path.remote);
        let named = self.known.iter();
        let named = named.filter(|known| known.state != AddressState::Deprecated);
        (data_goes_to, named.map(|known| known.address).collect())
    }

    /// The paths that an UPDATE is tried on in turn.
    pub(crate) fn candidates(&mut self, now: Instant, locals: &[IpAddr]) -> Vec<Path> {
        self.expire(now);
        let rank = |address: &&PeerAddress| match address.state {
            AddressState::Active => 0,
            AddressState::Unverified => 1,
            AddressState::Deprecated => 2,
        };
        let mut known: Vec<&PeerAddress> = self.known.iter().collect();
        known.sort_by_key(rank);
        let paths = known.iter().filter_map(|known| {
            Some(Path {
                local: local_for(locals, known.address)?,
                remote: known.address,
                is_verified: known.state == AddressState::Active,
            })
        });
        paths.collect()
    }

    /// Replaces the set by what the peer says, and gives the address that needs a test: the first one that this host
    /// has a family for, unless it is active.
    pub(crate) fn replace(
        &mut self,
        now: Instant,
        set: &LocatorSet,
        locals: &[IpAddr],
        cap: usize,
    ) -> Option<IpAddr> {
        let mut locators: Vec<_> = set.0.iter().collect();
        locators.retain(|locator| is_unicast(locator.address));
        locators.sort_by_key(|locator| (!locator.is_preferred, locator.traffic != Traffic::Both));
        locators.truncate(cap);
        let old = core::mem::take(&mut self.known);
        for locator in &locators {
            if self
                .known
                .iter()
                .any(|known| known.address == locator.address)
            {
                continue;
            }
            let was_active = old
                .iter()
                .any(|old| old.address == locator.address && old.state == AddressState::Active);
            let lifetime = Duration::from_secs(u64::from(locator.lifetime));
            self.known.push(PeerAddress {
                address: locator.address,
                state: if was_active {
                    AddressState::Active
                } else {
                    AddressState::Unverified
                },
                expires: (locator.lifetime != u32::MAX).then(|| now + lifetime),
            });
        }
        for old in old {
            if self.known.len() < cap && !self.known.iter().any(|new| new.address == old.address) {
                self.known.push(PeerAddress {
                    state: AddressState::Deprecated,
                    ..old
                });
            }
        }
        let mut usable = self.known.iter().filter(|known| {
            known.state != AddressState::Deprecated && local_for(locals, known.address).is_some()
        });
        let first = usable
            .next()
            .filter(|first| first.state == AddressState::Unverified);
        first.map(|first| first.address)
    }

    /// Notes that the peer has answered a test of `address`.
    pub(crate) fn verify(&mut self, address: IpAddr) {
        for known in &mut self.known {
            if known.address == address && known.state == AddressState::Unverified {
                known.state = AddressState::Active;
            }
        }
    }

    /// Notes authentic data of the peer.
    pub(crate) fn earn(&mut self, now: Instant, bytes: usize) {
        self.credit.age(now);
        self.credit.bytes = self.credit.bytes.saturating_add(bytes as u64);
    }

    /// Whether the credit has room for so many bytes.
    pub(crate) fn affords(&mut self, now: Instant, bytes: usize) -> bool {
        self.credit.age(now);
        self.credit.bytes >= bytes as u64
    }

    /// Takes the credit for a packet to an unverified address.
    pub(crate) fn spend(&mut self, now: Instant, bytes: usize) -> bool {
        self.credit.age(now);
        let left = self.credit.bytes.checked_sub(bytes as u64);
        if let Some(left) = left {
            self.credit.bytes = left;
        }
        left.is_some()
    }
}

/// Whether a host can be at this address.
fn is_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    let is_elsewhere = !address.is_unspecified() && !address.is_loopback();
    is_elsewhere && !address.is_multicast() && !is_broadcast
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_shrinks_by_an_eighth_each_five_seconds() {
        let start = Instant::from_millis(1_000);
        let mut peer = PeerAddresses::new(start, [192, 0, 2, 1].into(), &[], 8);
        peer.earn(start, 8_000);
        assert!(!peer.spend(start, 8_001));
        assert!(peer.spend(start, 4_000));
        let later = start + Duration::from_secs(10);
        assert!(!peer.spend(later, 3_063));
        assert!(peer.spend(later, 3_062));
        assert!(!peer.spend(later, 1));
    }

    #[test]
    fn a_deprecated_address_needs_a_new_test() {
        let now = Instant::ZERO;
        let (a, b): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let own: [IpAddr; 1] = [[192, 0, 2, 9].into()];
        let mut peer = PeerAddresses::new(now, a, &[], 8);
        let set = |address| {
            LocatorSet(alloc::vec![outlast_wire::hip::Locator {
                traffic: Traffic::Both,
                is_preferred: true,
                lifetime: u32::MAX,
                spi: Some(1),
                address,
            }])
        };
        assert_eq!(peer.replace(now, &set(a), &own, 8), None);
        assert_eq!(peer.replace(now, &set(b), &own, 8), Some(b));
        peer.verify(b);
        assert_eq!(peer.replace(now, &set(a), &own, 8), Some(a));
        let path = peer.path(now, &[[192, 0, 2, 9].into()]).unwrap();
        assert!(path.remote == a && !path.is_verified);
    }
}
