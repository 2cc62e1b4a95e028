//! Numbers that nobody can guess who has not heard them: nonces of offers, tags of agreements, and keys of tables.

use core::net::IpAddr;
use hmac::{Hmac, KeyInit, Mac};
use outlast_wire::compressed::Tag;
use sha2::Sha256;

/// Draws nonces and tags, each by a key that no other end has.
#[derive(Debug)]
pub(crate) struct Secret {
    key: [u8; 8],
    /// Nonces drawn so far.
    drawn: u64,
}

impl Secret {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            key: seed.to_be_bytes(),
            drawn: 0,
        }
    }

    /// The nonce of the next offer.
    pub(crate) fn next_nonce(&mut self) -> u64 {
        self.drawn += 1;
        self.number(b"nonce", [&self.drawn.to_be_bytes(), &[]])
    }

    /// Key of the places in a table of hosts.
    pub(crate) fn places(&self) -> u64 {
        self.number(b"places", [&[], &[]])
    }

    /// The tag of a pair of addresses: the same for as long as this end lives, so that a forged offer leaves nothing behind.
    pub(crate) fn tag(&self, (near, far): (IpAddr, IpAddr)) -> Tag {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let number = self.number(b"tag", [&octets(near), &octets(far)]);
        Tag::of((number >> 32) as u32)
    }

    fn number(&self, purpose: &[u8], parts: [&[u8]; 2]) -> u64 {
        let mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of every length");
        let mac = parts
            .iter()
            .fold(mac.chain_update(purpose), Mac::chain_update);
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        bytes
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}
