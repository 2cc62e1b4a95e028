//! Keys and tokens of return routability (RFC 6275, section 5.2).

use crate::security::Between;
use core::net::Ipv6Addr;
use hmac::{Hmac, KeyInit, Mac};
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{Authentication, Covered};
use sha1::{Digest, Sha1};

/// How long a nonce makes new tokens.
const NONCE_INTERVAL: Duration = Duration::from_secs(30);
/// `MAX_NONCE_LIFETIME` (section 12), in intervals.
const NONCE_INTERVALS: u64 = 8;
/// `MAX_TOKEN_LIFETIME`.
pub(super) const TOKEN_LIFETIME: Duration = Duration::from_secs(210);
/// `MAX_RR_BINDING_LIFETIME`.
pub(super) const LONGEST_BINDING: Duration = Duration::from_secs(420);

/// Which address a token is for; the last byte that it is made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TokenKind {
    Home = 0,
    CareOf = 1,
}

/// The correspondent's secret, and the nonces that are made of it: no mobile node costs it memory
/// before its binding.
pub(super) struct Nonces {
    secret: [u8; 20],
    begun: Instant,
}

impl Nonces {
    pub(super) const fn new(now: Instant, secret: [u8; 20]) -> Self {
        Self { secret, begun: now }
    }

    fn present(&self, now: Instant) -> u64 {
        now.since(self.begun).as_secs() / NONCE_INTERVAL.as_secs()
    }

    /// A token for `address` with the present nonce, and that nonce's index.
    pub(super) fn token(&self, now: Instant, address: Ipv6Addr, kind: TokenKind) -> (u16, u64) {
        let number = self.present(now);
        // The low 16 bits name it.
        let token = keygen_token(&self.secret, address, &self.nonce(number), kind);
        (number as u16, token)
    }

    /// The token that was given to `address` with a nonce's index; `None` if that is too old.
    pub(super) fn given(
        &self,
        now: Instant,
        address: Ipv6Addr,
        kind: TokenKind,
        index: u16,
    ) -> Option<u64> {
        let present = self.present(now);
        let age = u64::from((present as u16).wrapping_sub(index));
        let number = present.checked_sub(age).filter(|_| age < NONCE_INTERVALS)?;
        let nonce = self.nonce(number);
        Some(keygen_token(&self.secret, address, &nonce, kind))
    }

    fn nonce(&self, number: u64) -> [u8; 8] {
        first_bytes(&hmac_sha1(&self.secret, &[b"nonce", &number.to_be_bytes()]))
    }
}

/// `Kbm`, by which an update to a correspondent is authenticated.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct BindingKey([u8; 20]);

impl BindingKey {
    /// The key of both tokens, or of the home token alone to end a binding.
    pub(super) fn new(home: u64, care_of: Option<u64>) -> Self {
        let mut hash = Sha1::new();
        hash.update(home.to_be_bytes());
        if let Some(care_of) = care_of {
            hash.update(care_of.to_be_bytes());
        }
        Self(hash.finalize().into())
    }

    pub(super) fn authenticator(&self, between: Between, covered: Covered<'_>) -> [u8; 12] {
        first_bytes(&hmac_sha1(&self.0, &between.parts(covered)))
    }

    /// Whether `option` was made with this key.
    pub(super) fn fits(&self, between: Between, option: &Authentication<'_>) -> bool {
        let mac = keyed(&self.0, &between.parts(option.covered));
        option.authenticator.len() == 12 && mac.verify_truncated_left(option.authenticator).is_ok()
    }
}

impl core::fmt::Debug for BindingKey {
    /// Leaves the key out.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("BindingKey")
    }
}

impl core::fmt::Debug for Nonces {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Nonces")
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

/// A number that nobody can guess without `secret`, the `count`th one.
pub(super) fn cookie(secret: &[u8; 20], count: u64) -> u64 {
    u64::from_be_bytes(first_bytes(&hmac_sha1(
        secret,
        &[b"cookie", &count.to_be_bytes()],
    )))
}

fn keygen_token(secret: &[u8; 20], address: Ipv6Addr, nonce: &[u8; 8], kind: TokenKind) -> u64 {
    let parts: [&[u8]; 3] = [&address.octets(), nonce, &[kind as u8]];
    u64::from_be_bytes(first_bytes(&hmac_sha1(secret, &parts)))
}

fn keyed(key: &[u8; 20], parts: &[&[u8]]) -> Hmac<Sha1> {
    let mac = <Hmac<Sha1> as KeyInit>::new_from_slice(key);
    let mac = mac.expect("HMAC takes keys of every length");
    parts.iter().fold(mac, Mac::chain_update)
}

fn hmac_sha1(key: &[u8; 20], parts: &[&[u8]]) -> [u8; 20] {
    keyed(key, parts).finalize().into_bytes().into()
}

/// The first `N` of 20 bytes.
fn first_bytes<const N: usize>(bytes: &[u8; 20]) -> [u8; N] {
    const { assert!(N <= 20, "an HMAC-SHA-1 has 20 bytes") };
    core::array::from_fn(|at| bytes[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);

    fn key(key: BindingKey) -> String {
        key.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Calculated by Python's `hmac` and `hashlib`.
    #[test]
    fn tokens_and_keys_are_those_of_another_implementation() {
        let secret = core::array::from_fn(|at| at as u8);
        let nonce = core::array::from_fn(|at| 0xa0 + at as u8);
        let home = keygen_token(&secret, HOME, &nonce, TokenKind::Home);
        let care_of = keygen_token(&secret, CARE_OF, &nonce, TokenKind::CareOf);
        assert_eq!(
            (home, care_of),
            (0x5605_bf88_9f81_71dd, 0xcab3_71d8_07c3_cd05)
        );
        assert_eq!(
            key(BindingKey::new(home, Some(care_of))),
            "7c874413531855ace2af931caabee1edb44421ae"
        );
        assert_eq!(
            key(BindingKey::new(home, None)),
            "49ee3785eeb8ea33f5f0240603fa22ebe5bbb33e"
        );
    }

    #[test]
    fn a_token_is_known_until_its_nonce_is_too_old() {
        let begun = Instant::from_millis(5_000);
        let nonces = Nonces::new(begun, [7; 20]);
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let (index, token) = nonces.token(at(100), HOME, TokenKind::Home);
        let given = |seconds| nonces.given(at(seconds), HOME, TokenKind::Home, index);
        assert_eq!(given(100), Some(token));
        assert_eq!(given(100 + TOKEN_LIFETIME.as_secs()), Some(token));
        assert_eq!(given(100 + 240), None, "too old");
        assert_eq!(given(100 - 30), None, "not made yet");
        // The same index, 65,536 nonces later.
        assert_ne!(given(100 + 30 * 65_536), Some(token));
        assert_ne!(
            nonces.given(at(100), CARE_OF, TokenKind::Home, index),
            Some(token)
        );
    }
}
