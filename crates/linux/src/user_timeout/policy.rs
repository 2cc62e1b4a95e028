//! What the programs are told, and asked: `struct policy` and `struct question`.

use super::{MOST_CGROUPS, MOST_RULES, UserTimeoutConfig};
use crate::cgroup::Cgroup;
use crate::netlink::Prefix;
use crate::ticks;
use outlast_base::time::Duration;
use outlast_wire::tcp::UserTimeout;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use std::net::IpAddr;

/// Bytes of an Ethernet header, and what aligns what follows.
const BEFORE_QUESTION: usize = 14;

/// A secret, so that nobody can choose addresses that share a counter with another's.
pub(super) fn draw_seed() -> io::Result<u32> {
    let mut seed = [0; 4];
    // So few are given whole, or not at all.
    getrandom(&mut seed, GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(seed))
}

/// Bytes of `struct rule`.
const RULE: usize = 8 + 2 * 8 + 2 * 16 + 2 * 4 + 2 + 2 + 4;

/// `struct policy`: its bytes.
pub(super) type Bytes = [u8; 8 + 8 * MOST_CGROUPS + RULE * (MOST_RULES + 1) + 6 * 4 + 4 + 4];

/// Which connections a rule holds for, as `struct rule` has it.
#[derive(Debug, Default)]
pub(super) struct Selector {
    cgroup: u64,
    interface: [u8; 16],
    peer: u128,
    mask: u128,
    port: u16,
}

impl Selector {
    /// That of `of`, whose cgroup is `cgroup`.
    pub(super) fn new(of: &super::UserTimeoutRule, cgroup: Option<&Cgroup>) -> Self {
        let mut interface = [0; 16];
        let name = of.interface.as_deref().unwrap_or_default().as_bytes();
        for (place, byte) in interface.iter_mut().zip(name) {
            *place = *byte;
        }
        let (peer, mask) = of.peer.map_or((0, 0), network);
        Self {
            cgroup: cgroup.map_or(0, Cgroup::id),
            interface,
            peer,
            mask,
            port: of.port.unwrap_or(0),
        }
    }
}

/// A network and its mask, of IPv4 as IPv6 writes it.
fn network(prefix: Prefix) -> (u128, u128) {
    let (address, length) = match prefix.address.to_canonical() {
        IpAddr::V4(address) => (address.to_ipv6_mapped(), 96 + u32::from(prefix.length)),
        IpAddr::V6(address) => (address, prefix.length.into()),
    };
    let mask = !u128::MAX.checked_shr(length).unwrap_or(0);
    (address.to_bits() & mask, mask)
}

/// An address as the programs have it, of IPv4 as IPv6 writes it.
pub(super) fn address(address: IpAddr) -> [u8; 16] {
    let prefix = Prefix {
        address,
        length: if address.is_ipv4() { 32 } else { 128 },
    };
    network(prefix).0.to_be_bytes()
}

/// `struct rule`.
fn rule(
    bytes: &mut Vec<u8>,
    selector: &Selector,
    advertise: Duration,
    in_outage: Option<Duration>,
) {
    bytes.extend(selector.cgroup.to_ne_bytes());
    bytes.extend(selector.interface);
    bytes.extend(selector.peer.to_be_bytes());
    bytes.extend(selector.mask.to_be_bytes());
    bytes.extend(millis(advertise).to_ne_bytes());
    bytes.extend(in_outage.map_or(0, millis).to_ne_bytes());
    bytes.extend(selector.port.to_ne_bytes());
    bytes.extend(UserTimeout::rounded_up(advertise).to_bits().to_be_bytes());
    bytes.extend([0; 4]);
}

/// `struct policy`.
pub(super) fn bytes(
    config: &UserTimeoutConfig,
    namespace: u64,
    cgroups: &[u64],
    selectors: &[Selector],
    seed: u32,
) -> Bytes {
    let UserTimeoutConfig {
        option,
        limits,
        is_one_sided,
        in_outage,
        rules,
        ..
    } = config;
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut bytes = namespace.to_ne_bytes().to_vec();
    for place in 0..MOST_CGROUPS {
        let id = cgroups.get(place).copied().unwrap_or(0);
        bytes.extend(id.to_ne_bytes());
    }
    let all = Selector::default();
    let spare = (&all, option.advertise, *in_outage);
    let own = selectors.iter().zip(rules);
    let own = own.map(|(selector, rule)| (selector, rule.advertise, rule.in_outage));
    // Those that are not used are as good as the last one.
    let places = own.chain(std::iter::repeat(spare)).take(MOST_RULES + 1);
    for (selector, advertise, in_outage) in places {
        rule(&mut bytes, selector, advertise, in_outage);
    }
    for number in [
        millis(option.at_least),
        millis(option.at_most),
        tick_us(),
        count(limits.per_peer),
        count(limits.in_all),
        seed,
    ] {
        bytes.extend(number.to_ne_bytes());
    }
    let rule_count = u8::try_from(rules.len()).unwrap_or(u8::MAX);
    bytes.extend([u8::from(*is_one_sided), rule_count, 0, 0]);
    // The structure is as long as its longest member aligns.
    bytes.resize(size_of::<Bytes>(), 0);
    Bytes::try_from(bytes).expect("so many are written")
}

/// `struct question`.
pub(super) fn question(peer: IpAddr, remote: Duration, rto: Duration, is_kept: bool) -> Vec<u8> {
    let mut bytes = vec![0; BEFORE_QUESTION];
    bytes.extend([u8::from(is_kept), 0]);
    let network: [u8; 8] = match peer.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0]
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, g, h, ..] = address.octets();
            [a, b, c, d, e, f, g, h]
        }
    };
    bytes.extend(network);
    bytes.extend(millis(remote).to_ne_bytes());
    bytes.extend(millis(rto).to_ne_bytes());
    bytes
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// The length of a tick: by ticks the kernel counts its timeouts.
fn tick_us() -> u32 {
    u32::try_from(ticks::length().as_micros()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_both_versions_are_told_apart() {
        let of = |text: &str, length| {
            let address = text.parse().expect("literal");
            network(Prefix { address, length })
        };
        let (peer, mask) = of("10.1.2.3", 8);
        assert_eq!(peer, 0xffff_0a00_0000);
        assert_eq!(mask, u128::MAX << 24);
        assert_eq!(of("0.0.0.0", 0), (0xffff_0000_0000, u128::MAX << 32));
        assert_eq!(of("2001:db8::1", 32).0, 0x2001_0db8 << 96);
        assert_eq!(of("::", 0), (0, 0));
        assert_eq!(of("::1", 128), (1, u128::MAX));
    }
}
