//! The key `lsi`: from where applications without IPv6 have addresses for hosts.

use outlast_hip::LocalScope;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// Lengths of a prefix with room for peers.
const LENGTHS: std::ops::RangeInclusive<u8> = 8..=30;

/// This host's own LSI and the prefix that it lies in, or nothing.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(super) struct Lsi(Option<(Ipv4Addr, u8)>);

impl Default for Lsi {
    /// In the prefix for benchmarks of networks (RFC 2544): no host of the Internet has an address there.
    fn default() -> Self {
        Self(Some((Ipv4Addr::new(198, 18, 0, 1), 15)))
    }
}

impl TryFrom<String> for Lsi {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let parsed = text.split_once('/').and_then(|(own, length)| {
            let length = length.parse().ok().filter(|it| LENGTHS.contains(it))?;
            Some((own.parse::<Ipv4Addr>().ok()?, length))
        });
        // It is no peer's either, so it is judged as that of a neighbour.
        let is_usable = |&(own, length): &(Ipv4Addr, u8)| {
            let neighbour = Ipv4Addr::from_bits(own.to_bits() ^ 1);
            scope(neighbour, length, 0).has_room_at(own)
        };
        parsed.filter(is_usable).map(|it| Self(Some(it))).ok_or_else(|| {
            format!(
                "{text:?} is not this host's address with the length of its prefix, 8 to 30, such as \
                 \"198.18.0.1/15\", and not \"off\""
            )
        })
    }
}

const fn scope(own: Ipv4Addr, prefix_length: u8, mtu: u32) -> LocalScope {
    LocalScope {
        own,
        prefix_length,
        mtu,
    }
}

impl Lsi {
    /// As the protocol has it, for tags with packets of this length.
    pub(super) fn scope(self, mtu: u32) -> Option<LocalScope> {
        let (own, length) = self.0?;
        Some(scope(own, length, mtu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_its_prefix_is_read() {
        let read = |text: &str| Lsi::try_from(text.to_owned());
        assert_eq!(read("198.18.0.1/15"), Ok(Lsi::default()));
        assert_eq!(read("off"), Ok(Lsi(None)));
        let own = Ipv4Addr::new(10, 77, 0, 2);
        assert_eq!(read("10.77.0.2/29"), Ok(Lsi(Some((own, 29)))));
        for wrong in [
            "",
            "on",
            "10.77.0.2",
            "10.77.0.2/31",
            "10.77.0.2/7",
            "10.77.0.0/29",
            "10.77.0.7/29",
            "::1/64",
            "10.77.0.2/ 29",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
