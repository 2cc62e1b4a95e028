//! Packets of one second, counted: in all, and for each address.

use crate::event::Refusal;
use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};
use outlast_base::time::Instant;

/// Packets that are answered for one address, or one network of IPv6, in a second, at most: many hosts may share an address.
const FOR_ONE_ADDRESS: u32 = 128;

/// Counts packets of one type by the second.
#[derive(Debug, Default)]
pub(crate) struct Load {
    second: u64,
    current: u32,
    last: u32,
}

impl Load {
    /// Notes a packet.
    pub(crate) fn note(&mut self, now: Instant) {
        self.advance(now);
        self.current = self.current.saturating_add(1);
    }

    /// Packets in this second or the last one, whichever had more.
    pub(crate) fn rate(&mut self, now: Instant) -> u32 {
        self.advance(now);
        self.current.max(self.last)
    }

    /// Packets in this second.
    fn current(&mut self, now: Instant) -> u32 {
        self.advance(now);
        self.current
    }

    /// Begins the second of `now`.
    fn advance(&mut self, now: Instant) {
        let second = second(now);
        if second != self.second {
            self.last = if second == self.second + 1 {
                self.current
            } else {
                0
            };
            self.current = 0;
            self.second = second;
        }
    }
}

/// Packets of this second, by address of IPv4 or network of IPv6: anybody can write where a packet comes from, and a host
/// of IPv6 has as many addresses as it likes in its network of 64 bits.
///
/// Its user bounds the addresses: only a packet that is within another limit is noted.
#[derive(Debug, Default)]
pub(crate) struct Addressed {
    second: u64,
    packets: BTreeMap<IpAddr, u32>,
}

impl Addressed {
    /// Packets of `address` so far.
    pub(crate) fn count(&mut self, now: Instant, address: IpAddr) -> u32 {
        let second = second(now);
        if second != self.second {
            self.packets.clear();
            self.second = second;
        }
        self.packets.get(&network(address)).copied().unwrap_or(0)
    }

    /// Notes a packet of `address`.
    pub(crate) fn note(&mut self, now: Instant, address: IpAddr) {
        let count = self.count(now, address).saturating_add(1);
        self.packets.insert(network(address), count);
    }
}

/// Packets that have another one sent, to where they come from or to somebody else.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// All packets, refused ones too.
    load: Load,
    /// Packets that were not refused: what one address sends beyond its share takes nothing from others.
    admitted: Load,
    addressed: Addressed,
}

impl Answers {
    /// Counts a packet from `address`; refuses it beyond `limit` in this second, or beyond [`FOR_ONE_ADDRESS`].
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        address: IpAddr,
        limit: u32,
    ) -> Result<(), Refusal> {
        self.load.note(now);
        if self.addressed.count(now, address) >= FOR_ONE_ADDRESS
            || self.admitted.current(now) >= limit
        {
            return Err(Refusal::Limit);
        }
        self.admitted.note(now);
        self.addressed.note(now, address);
        Ok(())
    }

    /// Packets in this second or the last one, whichever had more.
    pub(crate) fn rate(&mut self, now: Instant) -> u32 {
        self.load.rate(now)
    }
}

/// The network of 64 bits of an address of IPv6; an address of IPv4 itself.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            Ipv6Addr::from_bits(network).into()
        }
    }
}

const fn second(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use outlast_base::time::Duration;

    #[test]
    fn a_network_of_ipv6_takes_the_share_of_one_address() {
        let mut answers = Answers::default();
        let now = Instant::from_millis(1_000);
        let address = |number: u128| IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8 << 96) + number));
        let one = (0..1_000).filter(|&it| answers.admit(now, address(it), 300).is_ok());
        assert_eq!(one.count(), 128);
        let other = answers.admit(now, address(1 << 64), 300);
        assert!(other.is_ok(), "another network has its own");
    }

    #[test]
    fn one_address_takes_its_share_and_all_of_them_the_limit() {
        let mut answers = Answers::default();
        let mut now = Instant::from_millis(1_000);
        let address = |number: u32| IpAddr::V4(Ipv4Addr::from(number));
        for _ in 0..2 {
            let one = (0..10_000).filter(|_| answers.admit(now, address(0), 300).is_ok());
            assert_eq!(one.count(), 128);
            let many = (1..10_000).filter(|&it| answers.admit(now, address(it), 300).is_ok());
            assert_eq!(many.count(), 300 - 128);
            assert_eq!(answers.rate(now), 19_999, "all of them count as load");
            now += Duration::from_secs(1);
        }
    }
}
