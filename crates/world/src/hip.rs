//! HIP between the two hosts: what is to be simulated, and what came of it.

use crate::side::IpVersion;
use alloc::vec::Vec;
use outlast_base::time::Duration;
use outlast_hip::Counters;

/// Both hosts speak HIP, and the mobile host has another address each time that it comes back.
///
/// The setup's protocol and packet size are those of the connections inside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HipSetup {
    /// Network protocol of the hosts' addresses.
    pub ip: IpVersion,
    /// Data goes to an address that is not verified yet, as much as came from the peer (RFC 8046,
    /// section 5.6).
    pub has_credit: bool,
    /// How long after its link is back the mobile host has its new address.
    pub address_delay: Duration,
    /// Packets that wait at each host while it has no path to the other.
    pub waiting: usize,
}

/// What came of HIP.
#[derive(Clone, Debug, PartialEq)]
pub struct HipOutcome {
    /// For each readdressing how long it took, from when the mobile host had its new address until
    /// the fixed host knew that it is there.
    pub readdressings: Vec<Duration>,
    /// What the hosts counted, by [`Side::index`](crate::Side::index).
    pub hosts: [Counters; 2],
    /// Packets for an address that the mobile host had no more.
    pub strayed: u64,
}
