//! Hard caps: every table and buffer has one, a defined action when full, and a counter.

mod memory;
mod shares;

pub(crate) use memory::Memory;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use shares::Shares;

/// The caps of one gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Tracked flows. When full, the least recently used flow gives way: closed ones first, then
    /// those whose handshake is not complete. Established ones have seven eighths of the places, and
    /// past that the least recently used of them gives way, unless something of it was acknowledged
    /// for the far host: then a new flow passes without being tracked.
    pub flows: usize,
    /// Bytes kept for one flow. Past it the flow falls back to one kept packet.
    pub held_per_flow: ByteCount,
    /// Bytes kept for all TCP flows. Past it, or past its peer's share once half of it is used, the flow
    /// that wants more falls back to one packet: the flows with one far host keep no more than four
    /// times what is left.
    pub held_in_all: ByteCount,
    /// Packets of UDP and everything else kept for one interface, and as many handshakes; the oldest is
    /// dropped first.
    pub other_packets: usize,
    /// Bytes of UDP and everything else kept for one interface, and of handshakes; the oldest is dropped
    /// first.
    pub other_bytes: ByteCount,
    /// How old UDP and everything else may be when its link is back: what is older is dropped. Zero keeps
    /// none. See [`crate::limits::Limits::other_packets`] for what is kept meanwhile.
    pub other_age: Duration,
    /// Peers of one interface that are down at once. Past it another one's indicators are ignored.
    pub peers: usize,
    /// How long a closed flow is remembered.
    pub closed_timeout: Duration,
    /// How long a flow is remembered whose handshake is not complete.
    pub opening_timeout: Duration,
    /// How long an idle established flow is remembered (RFC 5382, REQ-5: at least 2 h 4 min).
    pub established_timeout: Duration,
}

impl Limits {
    /// How long flows are remembered: closed, opening and established ones.
    pub(crate) const fn timeouts(&self) -> [Duration; 4] {
        [
            self.closed_timeout,
            self.opening_timeout,
            self.established_timeout,
            self.established_timeout,
        ]
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 262_144,
            held_per_flow: ByteCount(16 << 20),
            held_in_all: ByteCount(256 << 20),
            other_packets: 512,
            other_bytes: ByteCount(512 << 10),
            other_age: Duration::from_millis(250),
            peers: 65_536,
            closed_timeout: Duration::from_secs(120),
            opening_timeout: Duration::from_secs(240),
            established_timeout: Duration::from_secs(7_440),
        }
    }
}

/// What is left of the memory that all flows share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    used: u64,
    cap: u64,
    /// What whoever is served now may take.
    room: u64,
}

impl Budget {
    /// A budget of which all of `cap` is left.
    #[must_use]
    pub const fn new(cap: ByteCount) -> Self {
        Self {
            used: 0,
            cap: cap.0,
            room: cap.0,
        }
    }

    /// Bytes taken.
    #[must_use]
    pub const fn used(&self) -> ByteCount {
        ByteCount(self.used)
    }

    /// Sets another cap. What was taken above it stays until it is given back.
    pub(crate) const fn set_cap(&mut self, cap: ByteCount) {
        self.cap = cap.0;
    }

    /// Whoever is served from now on may take `room` bytes, if so many are left.
    pub(crate) const fn allot(&mut self, room: u64) {
        self.room = room;
    }

    /// Takes `bytes`, or nothing and says false.
    #[must_use]
    pub(crate) const fn take(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.cap.saturating_sub(self.used) && bytes <= self.room;
        if fits {
            self.used += bytes;
            self.room -= bytes;
        }
        fits
    }

    pub(crate) const fn give_back(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used, "more given back than taken");
        self.used = self.used.saturating_sub(bytes);
        self.room = self.room.saturating_add(bytes);
    }
}
