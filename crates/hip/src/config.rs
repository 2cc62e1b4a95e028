//! What a host is made with: policy, limits, times.

use crate::local_scope::LocalScope;
use crate::suite::EspSuite;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use outlast_base::time::Duration;
use outlast_wire::hip::Hit;

/// Who may open an association with this host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Admission {
    /// The configured peers.
    #[default]
    Peers,
    /// The configured peers and these hosts.
    Listed(BTreeSet<Hit>),
    /// Every host.
    Anyone,
}

/// How a peer is reached.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Peer {
    /// Its addresses, the preferred one first.
    pub addresses: Vec<IpAddr>,
    /// Addresses of its rendezvous servers (RFC 8004).
    pub rendezvous: Vec<IpAddr>,
    /// Whether this host registers there as with a rendezvous server.
    pub registers: bool,
    /// The LSI that stands for the peer here, if it is a certain one.
    pub lsi: Option<Ipv4Addr>,
}

/// When packets are sent again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retransmission {
    /// Time before the first repetition.
    pub initial: Duration,
    /// Longest time between two repetitions.
    pub longest: Duration,
    /// Transmissions of I1, and of I2, before an exchange fails.
    pub exchange_attempts: u32,
}

/// Hard caps; each has a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Associations at once.
    pub associations: usize,
    /// Packets of applications that wait for one association's path.
    pub waiting: usize,
    /// Registered clients of a rendezvous server.
    pub registrations: usize,
    /// R1 packets in one second, and packets of each kind that a rendezvous server forwards in one.
    pub r1_per_second: u32,
    /// I1 packets, or I2 packets, in one second above which the puzzle gets harder.
    pub easy_exchanges_per_second: u32,
    /// Bits of the hardest puzzle that this host solves.
    pub hardest_solved: u8,
    /// Bits of the hardest puzzle that this host poses.
    pub hardest_posed: u8,
    /// Addresses of one peer.
    pub addresses: usize,
}

/// When the keys of a security association are replaced, and from where the next ones come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rekeying {
    /// Packets sent under one key.
    pub packets: u64,
    /// Bytes sent under one key.
    pub bytes: u64,
    /// Age of keys at which the next packet has them replaced.
    pub lifetime: Duration,
    /// Whether this host offers a new Diffie-Hellman value each time it offers new keys: who learns a secret
    /// then reads what was sent with it, and no more. Otherwise it does so when the material has run out, and
    /// keeps its key pair in memory for as long, because a new value of the peer may be for use with it.
    pub has_new_secret: bool,
}

impl Default for Rekeying {
    /// After an hour of use, 2^32 packets or 2^40 bytes, each time with a new secret.
    fn default() -> Self {
        Self {
            packets: 1 << 32,
            bytes: 1 << 40,
            lifetime: Duration::from_secs(3600),
            has_new_secret: true,
        }
    }
}

/// What a host is made with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// Who may open an association.
    pub admission: Admission,
    /// When packets are sent again.
    pub retransmission: Retransmission,
    /// Hard caps.
    pub limits: Limits,
    /// When keys are replaced.
    pub rekeying: Rekeying,
    /// How data may be sealed, the preferred ones first: by default all that encrypt it.
    pub suites: Vec<EspSuite>,
    /// Unused association lifetime: one without data for so long is closed.
    pub unused_after: Duration,
    /// Credit-based authorization (RFC 8046, section 5.6): data to an unverified address, as much
    /// as came from the peer. Without it nothing goes there.
    pub has_credit: bool,
    /// Whether each TCP connection is made to move again when a readdressing is complete: the host's own
    /// TCP hears by ICMP that its back-off was in vain, or its last segment is sent again.
    pub wakes_connections: bool,
    /// Whether TCP connections that move again at once take turns until each has gone on, so that what one of them lacks
    /// waits for no window of another one.
    pub takes_turns: bool,
    /// Whether the host forwards I1 and UPDATE packets to hosts that register (RFC 8004).
    pub is_rendezvous_server: bool,
    /// Whether the host answers an I1 that names no tag, but only its address (RFC 7401, section 4.1.8).
    pub answers_opportunistic: bool,
    /// From where applications without IPv6 have addresses for hosts; `None`: they have none.
    pub local_scope: Option<LocalScope>,
    /// Where the R1 generation counter starts: greater with each start of the host.
    pub r1_counter: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admission: Admission::default(),
            retransmission: Retransmission {
                initial: Duration::from_millis(500),
                longest: Duration::from_secs(8),
                exchange_attempts: 6,
            },
            limits: Limits {
                associations: 4096,
                waiting: 64,
                registrations: 4096,
                r1_per_second: 2000,
                easy_exchanges_per_second: 50,
                hardest_solved: 24,
                hardest_posed: 20,
                addresses: 8,
            },
            rekeying: Rekeying::default(),
            suites: EspSuite::ENCRYPTING.to_vec(),
            unused_after: Duration::from_secs(15 * 60),
            has_credit: true,
            wakes_connections: true,
            takes_turns: true,
            is_rendezvous_server: false,
            answers_opportunistic: false,
            local_scope: None,
            r1_counter: 0,
        }
    }
}
