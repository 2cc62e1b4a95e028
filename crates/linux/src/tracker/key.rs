//! Under what a connection stands in the tables: `bpf/key.h`.

use outlast_gateway::tracking::FlowKey;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// `struct key`: two numbers that stand for the hosts, then ports in network order.
pub(super) const KEY: usize = 2 * 4 + PORTS;
const PORTS: usize = 2 * 2;
/// `struct hosts`: both addresses.
pub(super) const HOSTS: usize = 2 * 16;
/// `struct connection`.
const CONNECTION: usize = HOSTS + KEY;

/// Words of `struct hosts`.
const WORDS: usize = HOSTS / 4;

/// By which an index's hash is mixed: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// What makes hashes unforeseeable.
#[derive(Clone)]
pub(super) struct Secrets {
    /// Secrets for hashes of IPv6 addresses: `SECRETS`.
    of_hosts: [[u64; 1 + WORDS]; 2],
    /// Secrets for hashes of keys: `INDEX_SECRETS`.
    of_keys: [u64; 4],
}

impl Secrets {
    /// None: many hosts have the same hash.
    #[cfg(test)]
    pub(super) const NONE: Self = Self {
        of_hosts: [[0; 1 + WORDS]; 2],
        of_keys: [0; 4],
    };

    /// Secrets that nobody knows.
    ///
    /// # Errors
    /// Where the kernel has no random numbers.
    pub(super) fn draw() -> io::Result<Self> {
        let mut secrets = Self {
            of_hosts: [[0; 1 + WORDS]; 2],
            of_keys: [0; 4],
        };
        let of_hosts = secrets.of_hosts.as_flattened_mut();
        for secret in of_hosts.iter_mut().chain(&mut secrets.of_keys) {
            let mut bytes = [0; 8];
            // So few are given whole, or not at all.
            getrandom(&mut bytes, GetRandomFlags::empty())?;
            *secret = u64::from_ne_bytes(bytes);
        }
        Ok(secrets)
    }

    /// The secrets of IPv6 addresses, as `SECRETS` is in memory.
    pub(super) fn of_hosts(&self) -> &[u64] {
        self.of_hosts.as_flattened()
    }

    /// The secrets of keys, as `INDEX_SECRETS` is in memory.
    pub(super) const fn of_keys(&self) -> &[u64; 4] {
        &self.of_keys
    }

    /// The `struct key` of a connection.
    pub(super) fn key_of(&self, connection: &FlowKey) -> [u8; KEY] {
        let mut key = [0; KEY];
        let (near, far) = (connection.near, connection.far);
        match (near.ip(), far.ip()) {
            (IpAddr::V4(near), IpAddr::V4(far)) => {
                key[..4].copy_from_slice(&near.octets());
                key[4..8].copy_from_slice(&far.octets());
            }
            _ => {
                let [one, two] = self.hash(&hosts(connection));
                key[..4].copy_from_slice(&one.to_ne_bytes());
                key[4..8].copy_from_slice(&two.to_ne_bytes());
            }
        }
        key[8..10].copy_from_slice(&near.port().to_be_bytes());
        key[10..].copy_from_slice(&far.port().to_be_bytes());
        key
    }

    /// `hash_hosts`.
    fn hash(&self, hosts: &[u8; HOSTS]) -> [u32; 2] {
        let (words, _) = hosts.as_chunks::<4>();
        let word = |at: usize| u64::from(u32::from_ne_bytes(words[at]));
        self.of_hosts
            .map(|[start, secrets @ ..]: [u64; 1 + WORDS]| {
                let term = |at: usize| {
                    let (one, other) = (secrets[at], secrets[at + 1]);
                    let other = other.wrapping_add(word(at + 1));
                    one.wrapping_add(word(at)).wrapping_mul(other)
                };
                let terms = (0..WORDS).step_by(2).map(term);
                (terms.fold(start, u64::wrapping_add) >> 32) as u32
            })
    }
}

impl Secrets {
    /// `hash_key`.
    pub(super) fn index_hash(&self, key: &[u8; KEY]) -> u32 {
        let (words, _) = key.as_chunks::<4>();
        let [near, far, ports] = [0, 1, 2].map(|at| u64::from(u32::from_ne_bytes(words[at])));
        let [one, two, three, four] = self.of_keys;
        let hosts = one.wrapping_add(near).wrapping_mul(two.wrapping_add(far));
        let ports = three.wrapping_add(ports).wrapping_mul(four);
        let sum = hosts.wrapping_add(ports);
        ((sum ^ (sum >> 32)).wrapping_mul(MULTIPLIER) >> 32) as u32
    }
}

/// The `struct hosts` of a connection.
pub(super) fn hosts(connection: &FlowKey) -> [u8; HOSTS] {
    let address = |socket: SocketAddr| match socket.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut hosts = [0; HOSTS];
    hosts[..16].copy_from_slice(&address(connection.near));
    hosts[16..].copy_from_slice(&address(connection.far));
    hosts
}

/// Reads a `struct connection`; `None` if it is shorter than one.
pub(super) fn connection(bytes: &[u8]) -> Option<FlowKey> {
    let (hosts, key) = bytes.get(..CONNECTION)?.split_first_chunk()?;
    Some(named(hosts, key.first_chunk()?))
}

/// The connection of these hosts that has this key.
pub(super) fn named(hosts: &[u8; HOSTS], key: &[u8; KEY]) -> FlowKey {
    let [.., near_one, near_two, far_one, far_two] = *key;
    let socket = |address: &[u8], port| {
        let mut octets = [0; 16];
        octets.copy_from_slice(address);
        let address = Ipv6Addr::from(octets).to_canonical();
        SocketAddr::new(address, u16::from_be_bytes(port))
    };
    FlowKey {
        near: socket(&hosts[..16], [near_one, near_two]),
        far: socket(&hosts[16..], [far_one, far_two]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Room, SLOTS};
    use super::*;

    fn key(near: &str, far: &str) -> FlowKey {
        FlowKey {
            near: near.parse().expect("literal"),
            far: far.parse().expect("literal"),
        }
    }

    #[test]
    fn a_connection_is_known_by_its_hosts_and_its_key() {
        let secrets = Secrets::draw().expect("random numbers");
        for connection in [
            key("192.0.2.1:80", "198.51.100.2:4000"),
            key("[2001:db8::1]:80", "[2001:db8::2]:4000"),
        ] {
            let (hosts, key) = (hosts(&connection), secrets.key_of(&connection));
            assert_eq!(named(&hosts, &key), connection);
            let bytes = [&hosts[..], &key].concat();
            assert_eq!(self::connection(&bytes), Some(connection));
            assert_eq!(self::connection(&bytes[1..]), None);
        }
    }

    #[test]
    fn each_word_of_an_address_tells_in_both_hashes() {
        let secrets = Secrets::draw().expect("random numbers");
        let [one, two] = secrets.hash(&[7; HOSTS]);
        for place in 0..HOSTS {
            let mut other = [7; HOSTS];
            other[place] = 8;
            let [other_one, other_two] = secrets.hash(&other);
            // Each once in 2^32 draws by chance; both never.
            assert!(one != other_one || two != other_two, "byte {place}");
        }
        let others = Secrets::draw().expect("random numbers");
        assert_ne!(others.hash(&[7; HOSTS]), [one, two]);
    }

    #[test]
    fn ports_that_follow_on_one_another_fill_all_buckets_alike() {
        let ports = 10_000..60_000_u16;
        let room = Room::for_flows(ports.len() as u32);
        let mut secret = 1_u64;
        for round in 0..120 {
            // Any numbers that are always the same.
            let of_keys = [(); 4].map(|()| {
                secret = secret.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (secret ^ (secret >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            });
            let secrets = Secrets {
                of_keys,
                ..Secrets::NONE
            };
            let mut buckets = vec![0; room.buckets as usize];
            let mut without_slot = 0;
            for port in ports.clone() {
                let near = SocketAddr::from(([192, 0, 2, 1], port));
                let far = SocketAddr::from(([198, 51, 100, 2], 443));
                let hash = secrets.index_hash(&secrets.key_of(&FlowKey { near, far }));
                let taken = &mut buckets[(hash & room.bucket_mask()) as usize];
                if *taken == SLOTS {
                    without_slot += 1;
                } else {
                    *taken += 1;
                }
            }
            assert_eq!(without_slot, 0, "round {round}");
        }
    }
}
