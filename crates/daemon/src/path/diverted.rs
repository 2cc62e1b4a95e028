//! Whose packets go through user space: nobody's, those of some peers, everybody's.

use outlast_gateway::links::LinkId;
use outlast_linux::monitor::Way;
use outlast_linux::netfilter::rules::AddressRange;
use outlast_linux::netlink::Prefix;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Links of one interface.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum Diverted {
    /// None.
    #[default]
    Nobody,
    /// The links that lead to these peers.
    Peers(BTreeSet<IpAddr>),
    /// All.
    Everybody,
}

impl Diverted {
    pub(crate) fn covers(&self, link: LinkId) -> bool {
        match (self, link.peer) {
            (Self::Nobody, _) | (Self::Peers(_), None) => false,
            (Self::Peers(peers), Some(peer)) => peers.contains(&peer),
            (Self::Everybody, _) => true,
        }
    }

    /// These with `link`; a link that is not a peer's is all of them.
    pub(crate) fn with(self, link: LinkId) -> Self {
        match (self, link.peer) {
            (Self::Everybody, _) | (_, None) => Self::Everybody,
            (Self::Nobody, Some(peer)) => Self::Peers([peer].into()),
            (Self::Peers(mut peers), Some(peer)) => {
                peers.insert(peer);
                Self::Peers(peers)
            }
        }
    }

    /// The addresses beyond the interface to which `ways` lead over these links; `ways` with the
    /// longest prefix first.
    pub(crate) fn ranges(&self, ways: &[Way]) -> Vec<AddressRange> {
        let peers = match self {
            Self::Nobody => return Vec::new(),
            Self::Everybody => return AddressRange::EVERYTHING.to_vec(),
            Self::Peers(peers) => peers,
        };
        let (mut claimed, mut found) = (Vec::new(), Vec::new());
        for way in ways {
            let whole = Interval::of(way.destination);
            for piece in whole.without(&claimed) {
                match way.gateway {
                    Some(gateway) if peers.contains(&gateway) => found.push(piece),
                    Some(_) => {}
                    None => found.extend(
                        peers
                            .range(piece.first()..=piece.last())
                            .map(|&peer| Interval::of_one(peer)),
                    ),
                }
            }
            claimed.push(whole);
            merge(&mut claimed);
        }
        merge(&mut found);
        let range = |interval: Interval| AddressRange {
            first: interval.first(),
            last: interval.last(),
        };
        found.into_iter().map(range).collect()
    }
}

impl FromIterator<LinkId> for Diverted {
    fn from_iter<L: IntoIterator<Item = LinkId>>(links: L) -> Self {
        links.into_iter().fold(Self::Nobody, Self::with)
    }
}

/// Addresses of one version of IP, as numbers, the last one included.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Interval {
    is_v6: bool,
    first: u128,
    last: u128,
}

impl Interval {
    fn of_one(address: IpAddr) -> Self {
        let (is_v6, number) = match address {
            IpAddr::V4(address) => (false, address.to_bits().into()),
            IpAddr::V6(address) => (true, address.to_bits()),
        };
        Self {
            is_v6,
            first: number,
            last: number,
        }
    }

    fn of(prefix: Prefix) -> Self {
        let one = Self::of_one(prefix.address);
        let bits = if one.is_v6 { 128 } else { 32 };
        let free = bits - u32::from(prefix.length).min(bits);
        let rest = 1_u128.checked_shl(free).map_or(u128::MAX, |n| n - 1);
        Self {
            first: one.first & !rest,
            last: one.first | rest,
            ..one
        }
    }

    fn first(self) -> IpAddr {
        self.address(self.first)
    }

    fn last(self) -> IpAddr {
        self.address(self.last)
    }

    fn address(self, number: u128) -> IpAddr {
        match self.is_v6 {
            false => Ipv4Addr::from_bits(number as u32).into(),
            true => Ipv6Addr::from_bits(number).into(),
        }
    }

    /// What is left of it; `others` are sorted and do not overlap.
    fn without(self, others: &[Self]) -> Vec<Self> {
        let mut left = Vec::new();
        let mut rest = Some(self);
        for other in others {
            let Some(now) = rest else { break };
            if other.is_v6 != now.is_v6 || other.last < now.first || other.first > now.last {
                continue;
            }
            if other.first > now.first {
                left.push(Self {
                    last: other.first - 1,
                    ..now
                });
            }
            rest = (other.last < now.last).then(|| Self {
                first: other.last + 1,
                ..now
            });
        }
        left.extend(rest);
        left
    }
}

/// Sorts, and makes one of those that overlap or touch.
fn merge(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let touches =
            next.is_v6 == last.is_v6 && (next.first <= last.last || next.first - 1 == last.last);
        if touches {
            last.last = last.last.max(next.last);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_gateway::links::InterfaceId;

    fn way(destination: &str, length: u8, gateway: Option<&str>) -> Way {
        Way {
            destination: Prefix {
                address: destination.parse().expect("literal"),
                length,
            },
            gateway: gateway.map(|gateway| gateway.parse().expect("literal")),
            table: Way::MAIN,
            metric: 0,
        }
    }

    fn diverted(peers: &[&str]) -> Diverted {
        let links = peers.iter().map(|peer| LinkId {
            interface: InterfaceId(0),
            peer: Some(peer.parse().expect("literal")),
        });
        links.collect()
    }

    #[track_caller]
    fn assert_ranges(peers: &[&str], ways: &[Way], expected: &[(&str, &str)]) {
        let found: Vec<_> = diverted(peers)
            .ranges(ways)
            .iter()
            .map(|range| (range.first.to_string(), range.last.to_string()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(first, last)| ((*first).to_owned(), (*last).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_peer_is_its_own_address_and_what_is_reached_by_way_of_it() {
        let ways = [
            way("203.0.113.64", 26, Some("198.51.100.3")),
            way("198.51.100.0", 24, None),
            way("203.0.113.0", 24, Some("198.51.100.2")),
            way("0.0.0.0", 0, Some("198.51.100.1")),
            way("2001:db8::", 64, None),
            way("::", 0, Some("2001:db8::1")),
        ];
        assert_ranges(
            &["198.51.100.2"],
            &ways,
            &[
                ("198.51.100.2", "198.51.100.2"),
                ("203.0.113.0", "203.0.113.63"),
                ("203.0.113.128", "203.0.113.255"),
            ],
        );
        assert_ranges(
            &["198.51.100.1", "198.51.100.9", "192.0.2.1"],
            &ways,
            &[
                ("0.0.0.0", "198.51.99.255"),
                ("198.51.100.1", "198.51.100.1"),
                ("198.51.100.9", "198.51.100.9"),
                ("198.51.101.0", "203.0.112.255"),
                ("203.0.114.0", "255.255.255.255"),
            ],
        );
        assert_ranges(
            &["2001:db8::1"],
            &ways,
            &[
                ("::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff"),
                ("2001:db8::1", "2001:db8::1"),
                ("2001:db8:0:1::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ],
        );
    }

    #[test]
    fn what_is_not_a_peers_is_everybodys() {
        let whole = LinkId::of_interface(InterfaceId(0));
        let all = diverted(&["192.0.2.1"]).with(whole);
        assert_eq!(all, Diverted::Everybody);
        assert_eq!(all.ranges(&[]), AddressRange::EVERYTHING);
        assert!(all.covers(whole) && !diverted(&["192.0.2.1"]).covers(whole));
        assert!(Diverted::Nobody.ranges(&[]).is_empty());
    }
}
