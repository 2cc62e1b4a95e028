//! What the programs are told, and asked: `struct policy` and `struct question`.

use super::{MOST_CGROUPS, UserTimeoutConfig};
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

/// `struct policy`: its bytes.
pub(super) type Bytes = [u8; 8 + 8 * MOST_CGROUPS + 7 * 4 + 4];

/// `struct policy`.
pub(super) fn bytes(
    config: &UserTimeoutConfig,
    namespace: u64,
    cgroups: &[u64],
    seed: u32,
) -> Bytes {
    let UserTimeoutConfig {
        option,
        limits,
        is_one_sided,
        ..
    } = config;
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut bytes = namespace.to_ne_bytes().to_vec();
    for place in 0..MOST_CGROUPS {
        let id = cgroups.get(place).copied().unwrap_or(0);
        bytes.extend(id.to_ne_bytes());
    }
    for number in [
        millis(option.advertise),
        millis(option.at_least),
        millis(option.at_most),
        tick_us(),
        count(limits.per_peer),
        count(limits.in_all),
        seed,
    ] {
        bytes.extend(number.to_ne_bytes());
    }
    let told = UserTimeout::rounded_up(option.advertise).to_bits();
    bytes.extend(told.to_be_bytes());
    bytes.extend([u8::from(*is_one_sided), 0]);
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
