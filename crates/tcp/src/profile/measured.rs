//! What publications measured of real stacks, to hold the profiles against.
//!
//! Nothing here shapes a profile: its constants come from where they say.

use outlast_base::time::Duration;

/// How long a stack waits when its peer has gone away, for one round trip of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    /// Round trip of the path.
    pub round_trip: Duration,
    /// From the first transmission of a segment to its retransmission.
    pub first: Duration,
    /// From that to the next one.
    pub second: Duration,
}

/// Linux 2.2: thesis, table 3.2, means of five connections.
pub static LINUX_2_2: [Timeouts; 5] = [
    row(60, 193, 400),
    row(100, 196, 400),
    row(200, 312, 640),
    row(500, 680, 1_380),
    row(1_000, 1_340, 2_680),
];

/// AIX 4.3: thesis, table 3.3, means of five connections.
pub static AIX_4_3: [Timeouts; 5] = [
    row(60, 1_334, 1_505),
    row(100, 1_780, 1_602),
    row(200, 1_860, 2_000),
    row(500, 2_422, 2_000),
    row(1_000, 2_410, 2_500),
];

/// FreeBSD 2.2.7: thesis, table 3.4, means of five connections.
pub static FREEBSD_2_2: [Timeouts; 5] = [
    row(60, 1_126, 2_000),
    row(100, 1_621, 3_000),
    row(200, 1_487, 3_000),
    row(500, 1_843, 2_000),
    row(1_000, 2_343, 2_000),
];

/// SunOS 5.6: thesis, table 3.5, means of five connections.
pub static SUNOS_5_6: [Timeouts; 5] = [
    row(60, 394, 799),
    row(100, 389, 800),
    row(200, 403, 840),
    row(500, 764, 1_430),
    row(1_000, 1_286, 2_580),
];

/// In milliseconds, as the tables are.
const fn row(round_trip: u64, first: u64, second: u64) -> Timeouts {
    Timeouts {
        round_trip: Duration::from_millis(round_trip),
        first: Duration::from_millis(first),
        second: Duration::from_millis(second),
    }
}
