//! What the iterator writes of each connection: `struct record` of `bpf/sockets.bpf.c`.

use super::acknowledgement::{Acknowledgements, Progress, SACK_BLOCKS};
use super::stage;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::InterfaceId;
use outlast_host::control::{Connection, ConnectionId, Stage, Via};
use outlast_wire::SeqNumber;
use outlast_wire::tcp::{SackBlock, Timestamps};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    local: SocketAddr,
    remote: SocketAddr,
    stage: Stage,
    pub(super) retransmits: u8,
    pub(super) backoff: u8,
    interface: u32,
    snd_una: u32,
    snd_nxt: u32,
    rcv_nxt: u32,
    /// The smoothed round trip.
    pub(super) srtt_us: u32,
    user_timeout_ms: u32,
    min_rtt_us: u32,
    /// What its packets may be long.
    pub(super) path_mtu: u32,
    /// Its next timeout, with all doublings.
    pub(super) rto: Duration,
    /// When it last sent data.
    since_sent: Duration,
    since_heard: Duration,
    /// When data last came.
    since_received: Duration,
    /// Bytes of data in the peer's full segments, as far as they were seen.
    pub(super) receive_mss: u32,
    pub(super) has_timestamps: bool,
    /// Whether selective acknowledgements were agreed on.
    pub(super) has_sack: bool,
    /// Whether a timeout that is taken for spurious brings the former window back.
    pub(super) restores_window: bool,
    /// Whether the kernel sets its window by a threshold; BBR and others set it themselves.
    pub(super) has_threshold: bool,
    /// What the kernel calls the socket.
    pub(super) cookie: u64,
    /// Segments that are outstanding.
    pub(super) packets_out: u32,
    /// Whether something that was retransmitted does not count as lost any more.
    pub(super) has_forgotten: bool,
    pub(super) acknowledgements: Acknowledgements,
}

impl Record {
    /// Bytes of one on the wire between the kernel and this process.
    pub(super) const SIZE: usize = 160;

    /// The record in `bytes`, of [`Self::SIZE`]; `None` for a state or family that is none. The kernel
    /// counts in ticks of that length.
    pub(super) fn read(bytes: &[u8], tick: Duration) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let family = half(36)?;
        let address = |at: usize| -> Option<IpAddr> {
            let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
            match i32::from(family) {
                libc::AF_INET => {
                    let [a, b, c, d, ..] = octets;
                    Some(Ipv4Addr::new(a, b, c, d).into())
                }
                // IPv4 over a socket of IPv6 is IPv4 on the wire.
                libc::AF_INET6 => Some(Ipv6Addr::from(octets).to_canonical()),
                _ => None,
            }
        };
        let has_timestamps = *bytes.get(67)? != 0;
        Some(Self {
            local: SocketAddr::new(address(0)?, half(32)?),
            remote: SocketAddr::new(address(16)?, half(34)?),
            stage: stage(*bytes.get(38)?)?,
            retransmits: *bytes.get(39)?,
            interface: word(40)?,
            snd_una: word(44)?,
            snd_nxt: word(48)?,
            rcv_nxt: word(52)?,
            srtt_us: word(56)?,
            user_timeout_ms: word(60)?,
            backoff: *bytes.get(64)?,
            min_rtt_us: word(68)?,
            path_mtu: word(72)?,
            rto: tick * word(76)?,
            since_sent: tick * word(80)?,
            since_heard: tick * word(84)?,
            has_sack: *bytes.get(65)? != 0,
            restores_window: *bytes.get(66)? != 0,
            has_timestamps,
            cookie: long(88)?,
            since_received: tick * word(96)?,
            receive_mss: word(100)?,
            packets_out: word(104)?,
            has_threshold: *bytes.get(125)? != 0,
            has_forgotten: *bytes.get(126)? != 0,
            acknowledgements: acknowledgements(bytes, has_timestamps)?,
        })
    }

    /// What has been acknowledged in both directions.
    pub(super) const fn progress(&self) -> Progress {
        Progress {
            snd_una: SeqNumber(self.snd_una),
            snd_nxt: SeqNumber(self.snd_nxt),
            rcv_nxt: SeqNumber(self.rcv_nxt),
        }
    }

    /// What the peer's full packets are long, with their headers.
    pub(super) fn peer_mtu(&self) -> u32 {
        const TCP_HEADER: u32 = 20;
        const TIMESTAMPS: u32 = 12;
        let ip = if self.remote.is_ipv4() { 20 } else { 40 };
        let options = if self.has_timestamps { TIMESTAMPS } else { 0 };
        self.receive_mss + options + TCP_HEADER + ip
    }

    /// Retransmission timeouts since the last progress.
    fn timeouts(&self) -> u32 {
        let unheard = self.since_heard.saturating_sub(self.since_sent);
        timeouts(self.retransmits, self.backoff, unheard)
    }

    /// The connection, as a pass at `now` found it.
    pub(super) fn connection(&self, now: Instant) -> Connection {
        let ago = |time: Duration| Instant::ZERO + now.since(Instant::ZERO).saturating_sub(time);
        let min_rtt_us = match self.min_rtt_us {
            // There was no sample yet.
            u32::MAX => self.srtt_us,
            least => least,
        };
        let user_timeout = Duration::from_millis(self.user_timeout_ms.into());
        Connection {
            id: ConnectionId {
                local: self.local,
                remote: self.remote,
            },
            // A socket whose route is gone may leave by any interface.
            via: (self.interface != 0).then_some(Via {
                interface: InterfaceId(self.interface),
                next_hop: None,
            }),
            stage: self.stage,
            snd_una: SeqNumber(self.snd_una),
            snd_nxt: SeqNumber(self.snd_nxt),
            rcv_nxt: SeqNumber(self.rcv_nxt),
            timeouts: self.timeouts(),
            min_rtt: Duration::from_micros(min_rtt_us.into()),
            heard_at: ago(self.since_heard),
            sent_at: ago(self.since_sent),
            received_at: ago(self.since_received),
            user_timeout: (!user_timeout.is_zero()).then_some(user_timeout),
            is_frozen: false,
        }
    }
}

/// Timeouts of a connection that has sent something so long after it last heard anything. The kernel counts them in
/// eight bits: after the 256th in a row it has had none, but its timeout is still doubled.
fn timeouts(retransmits: u8, backoff: u8, unheard: Duration) -> u32 {
    /// A connection that has heard nothing for longer has had timeouts.
    const LONG: Duration = Duration::from_secs(10);
    match retransmits {
        0 if backoff > 0 && unheard >= LONG => u32::from(u8::MAX) + 1,
        count => count.into(),
    }
}

/// What acknowledgements say, of a record.
fn acknowledgements(bytes: &[u8], has_timestamps: bool) -> Option<Acknowledgements> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let window = |at: usize| Some(u16::try_from(word(at)?).unwrap_or(u16::MAX));
    let clock = Timestamps {
        value: word(116)?,
        echo: word(120)?,
    };
    let none = SackBlock {
        left: SeqNumber(0),
        right: SeqNumber(0),
    };
    let mut sack = [none; SACK_BLOCKS];
    for (block, at) in sack.iter_mut().zip((128..).step_by(8)) {
        block.left = SeqNumber(word(at)?);
        block.right = SeqNumber(word(at + 4)?);
    }
    Some(Acknowledgements {
        peer_window: window(108)?,
        own_window: window(112)?,
        timestamps: has_timestamps.then_some(clock),
        sack,
        sack_count: usize::from(*bytes.get(124)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_has_begun_anew_is_no_progress() {
        let (minute, moment) = (Duration::from_secs(60), Duration::from_millis(1));
        assert_eq!(timeouts(3, 3, minute), 3);
        assert_eq!(timeouts(0, 2, minute), 256);
        assert_eq!(timeouts(0, 0, minute), 0, "its first timeout is to come");
        assert_eq!(timeouts(0, 2, moment), 0, "it was acknowledged");
    }
}
