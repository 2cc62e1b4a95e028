//! When a link counts as restored: the connectivity indicators of Schütz and others 2005, section 3.3.1.
//!
//! *Next hop reachable* is a conjunction. Each local condition (carrier, address, route, neighbour,
//! anything that `notify` speaks for) is lost and regained on its own; the link is restored when the
//! last lost one is regained. *End-to-end connectivity restored* needs no conjunction: a packet of
//! the peer's, or a completed Mobile IP or HIP update, shows that packets pass.
//!
//! A *symmetric* indicator occurs at both hosts: it ends a handshake between them. All others are
//! *asymmetric*: the peer learns nothing from them.
//!
//! Left out: which of several next hops a connection will take after a route has changed. The
//! stack knows that, and tells it with each connection.

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, LinkEvent, LinkId, LinkState};

/// Whether the peer receives the same indicator.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Both hosts receive it at about the same time.
    Symmetric,
    /// Only this host receives it.
    Asymmetric,
}

impl Kind {
    /// The kind of `indicator`.
    #[must_use]
    pub const fn of(indicator: Indicator) -> Self {
        match indicator {
            Indicator::MobilityUpdate => Self::Symmetric,
            _ => Self::Asymmetric,
        }
    }
}

/// A link over which packets pass again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Restored {
    /// The link.
    pub link: LinkId,
    /// Who said so last.
    pub by: Indicator,
    /// Whether the peer hears of it too.
    pub kind: Kind,
    /// How long it was away; `None` if nobody had said that it was.
    pub outage: Option<Duration>,
    /// Packets now take another path: the address, the route or the point of attachment changed.
    pub is_path_new: bool,
    /// The way to these addresses alone is another, and nobody has said that anything was away. `None`: the whole link
    /// was away, for all that it leads to.
    pub moved: Option<Network>,
}

/// Addresses with the same first bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network {
    /// Any of them.
    pub address: IpAddr,
    /// How many bits are the same: 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub length: u8,
}

impl Network {
    /// Whether `address` is one of them; one of the other family is none.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        self.common(address) >= Some(self.length)
    }

    /// The first bits that both have; `None` for addresses of two families.
    fn common(self, other: IpAddr) -> Option<u8> {
        let zeros = match (self.address, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return None,
        };
        u8::try_from(zeros).ok()
    }

    /// The least network with the addresses of both; `None` for those of two families.
    fn with(self, other: Self) -> Option<Self> {
        let common = self.common(other.address)?;
        let length = common.min(self.length).min(other.length);
        Some(Self { length, ..self })
    }
}

impl Restored {
    /// What is due after `self` and then `later` have come.
    pub(crate) fn then(self, later: Self) -> Self {
        let (Some(former), Some(moved)) = (self.moved, later.moved) else {
            // The whole link includes whatever has moved on it.
            return match (self.moved, later.moved) {
                (None, Some(_)) => self,
                _ => later,
            };
        };
        let moved = former.with(moved);
        // In doubt about the connections none starts slowly.
        let is_path_new = moved.is_some() && later.is_path_new;
        Self {
            is_path_new,
            moved,
            ..later
        }
    }
}

/// The links that are away, each with the conditions that are lost.
#[derive(Debug)]
pub(crate) struct Links {
    away: BTreeMap<LinkId, Away>,
    most: usize,
}

#[derive(Debug)]
struct Away {
    since: Instant,
    lost: Conditions,
    is_path_new: bool,
}

/// A set of indicators, one bit each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Conditions(u16);

impl Conditions {
    fn with(self, indicator: Indicator) -> Self {
        Self(self.0 | 1 << indicator as u16)
    }

    fn without(self, indicator: Indicator) -> Self {
        Self(self.0 & !(1 << indicator as u16))
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What becomes of an indicator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Heard {
    /// The link is restored.
    Restored(Restored),
    /// Nothing is to be done: it is still away, or was never known to be.
    Noted,
    /// There is no room to remember another link.
    Refused,
}

impl Links {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            away: BTreeMap::new(),
            most,
        }
    }

    pub(crate) const fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    pub(crate) fn is_away(&self, link: LinkId) -> bool {
        self.away.contains_key(&link)
    }

    /// Takes `link` for there, and says nothing of its return.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.away.remove(&link);
    }

    pub(crate) fn handle(&mut self, now: Instant, event: LinkEvent) -> Heard {
        match event.state {
            LinkState::Down => self.lose(now, event.link, event.indicator),
            LinkState::Up => self.regain(now, event.link, event.indicator),
        }
    }

    fn lose(&mut self, now: Instant, link: LinkId, indicator: Indicator) -> Heard {
        if !self.away.contains_key(&link) && self.away.len() >= self.most {
            return Heard::Refused;
        }
        let away = self.away.entry(link).or_insert(Away {
            since: now,
            lost: Conditions::default(),
            is_path_new: false,
        });
        away.lost = away.lost.with(indicator);
        away.is_path_new |= changes_path(indicator);
        Heard::Noted
    }

    fn regain(&mut self, now: Instant, link: LinkId, by: Indicator) -> Heard {
        let restored = |outage, is_path_new| {
            Heard::Restored(Restored {
                link,
                by,
                kind: Kind::of(by),
                outage,
                is_path_new: is_path_new || changes_path(by),
                moved: None,
            })
        };
        let Some(away) = self.away.get_mut(&link) else {
            // A local condition that is regained without having been lost is no news.
            return if is_explicit(by) {
                restored(None, false)
            } else {
                Heard::Noted
            };
        };
        away.lost = away.lost.without(by);
        if !is_end_to_end(by) && !away.lost.is_empty() {
            return Heard::Noted;
        }
        let heard = restored(Some(now.since(away.since)), away.is_path_new);
        self.away.remove(&link);
        heard
    }
}

/// Whether `indicator` shows by itself that packets pass.
const fn is_end_to_end(indicator: Indicator) -> bool {
    matches!(
        indicator,
        Indicator::MobilityUpdate | Indicator::FirstPacket
    )
}

/// Whether `indicator` counts although nobody has said that the link was away.
const fn is_explicit(indicator: Indicator) -> bool {
    is_end_to_end(indicator) || matches!(indicator, Indicator::Notify)
}

/// Whether packets take another path after a change that `indicator` tells of.
const fn changes_path(indicator: Indicator) -> bool {
    matches!(
        indicator,
        Indicator::Address | Indicator::Route | Indicator::MobilityUpdate
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_gateway::links::InterfaceId;

    const LINK: LinkId = LinkId::of_interface(InterfaceId(3));

    fn say(links: &mut Links, ms: u64, state: LinkState, indicator: Indicator) -> Heard {
        let event = LinkEvent {
            link: LINK,
            state,
            indicator,
        };
        links.handle(Instant::from_millis(ms), event)
    }

    #[test]
    fn the_next_hop_is_reachable_when_the_last_lost_condition_is_regained() {
        let mut links = Links::new(4);
        let lost = [Indicator::Carrier, Indicator::Address, Indicator::Neighbour];
        for (at, indicator) in lost.into_iter().enumerate() {
            say(&mut links, at as u64, LinkState::Down, indicator);
        }
        assert_eq!(
            say(&mut links, 10, LinkState::Up, Indicator::Carrier),
            Heard::Noted
        );
        assert_eq!(
            say(&mut links, 11, LinkState::Up, Indicator::Address),
            Heard::Noted
        );
        let Heard::Restored(restored) = say(&mut links, 12, LinkState::Up, Indicator::Neighbour)
        else {
            panic!("the last condition is back");
        };
        assert_eq!(restored.outage, Some(Duration::from_millis(12)));
        assert_eq!(restored.kind, Kind::Asymmetric);
        assert!(restored.is_path_new, "the address was another");
        assert!(!links.is_away(LINK));
    }

    #[test]
    fn a_packet_of_the_peer_outweighs_lost_conditions() {
        let mut links = Links::new(4);
        say(&mut links, 0, LinkState::Down, Indicator::Neighbour);
        let heard = say(&mut links, 5, LinkState::Up, Indicator::FirstPacket);
        assert!(matches!(heard, Heard::Restored(_)), "{heard:?}");
    }

    #[test]
    fn only_an_explicit_word_counts_where_nothing_was_lost() {
        let mut links = Links::new(4);
        for (indicator, counts) in [
            (Indicator::Carrier, false),
            (Indicator::Neighbour, false),
            (Indicator::Notify, true),
            (Indicator::MobilityUpdate, true),
            (Indicator::FirstPacket, true),
        ] {
            let heard = say(&mut links, 0, LinkState::Up, indicator);
            assert_eq!(matches!(heard, Heard::Restored(_)), counts, "{indicator:?}");
        }
    }

    #[test]
    fn a_network_contains_addresses_of_its_family_with_the_same_first_bits() {
        let network = |address: &str, length| Network {
            address: address.parse().expect("a literal address"),
            length,
        };
        let contains = |network: Network, address: &str| {
            network.contains(address.parse().expect("a literal address"))
        };
        assert!(contains(network("10.200.0.0", 16), "10.200.7.1"));
        assert!(!contains(network("10.200.0.0", 16), "10.201.0.1"));
        assert!(contains(network("0.0.0.0", 0), "192.0.2.1"));
        assert!(!contains(network("::", 0), "192.0.2.1"));
        assert!(contains(network("192.0.2.1", 32), "192.0.2.1"));
        assert!(!contains(network("2001:db8::1", 128), "2001:db8::2"));
        let both = network("10.1.0.0", 16).with(network("10.0.0.0", 24));
        assert_eq!(both, Some(network("10.1.0.0", 15)));
        assert_eq!(both.and_then(|both| both.with(network("::", 0))), None);
    }

    #[test]
    fn links_beyond_the_limit_are_refused() {
        let mut links = Links::new(2);
        for interface in 0..3 {
            let event = LinkEvent {
                link: LinkId::of_interface(InterfaceId(interface)),
                state: LinkState::Down,
                indicator: Indicator::Carrier,
            };
            let heard = links.handle(Instant::ZERO, event);
            assert_eq!(heard == Heard::Refused, interface == 2);
        }
    }
}
