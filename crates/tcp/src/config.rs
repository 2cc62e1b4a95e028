//! What one endpoint is to be.

use crate::profile::{Congestion, LINUX_6, Profile};
use core::net::SocketAddr;
use outlast_base::time::Duration;
use outlast_host::user_timeout::UserTimeoutOption;
use outlast_wire::SeqNumber;

/// Least segment that may be asked for (Linux: `TCP_MIN_MSS`).
const LEAST_MSS: u16 = 88;

/// Settings of one endpoint. `None` leaves to the profile what the profile knows.
#[derive(Clone, Debug)]
pub struct Config {
    /// The stack to be like.
    pub profile: &'static Profile,
    /// Own address and port.
    pub local: SocketAddr,
    /// The peer's address and port; of the same family.
    pub remote: SocketAddr,
    /// Stream that is sent.
    pub stream_out: u64,
    /// Stream that is expected.
    pub stream_in: u64,
    /// Initial sequence number.
    pub iss: SeqNumber,
    /// Largest packet in bytes, IP header included; at least 576.
    pub mtu: u16,
    /// Payload of a segment at most, options included (`TCP_MAXSEG`); it is announced, too. Linux
    /// heeds it only before the handshake, and takes no less than 88.
    pub max_segment: Option<u16>,
    /// Congestion control; one that the profile has not is replaced by its own.
    pub congestion: Option<Congestion>,
    /// Whether SACK is offered and accepted.
    pub sack: Option<bool>,
    /// Whether timestamps are offered and accepted.
    pub timestamps: Option<bool>,
    /// Whether window scaling is offered and accepted.
    pub window_scale: Option<bool>,
    /// Retransmissions before the connection is given up.
    pub retries: Option<u8>,
    /// User timeout that the application has set (RFC 9293, section 3.9.1.2).
    pub user_timeout: Option<Duration>,
    /// The user timeout option (RFC 5482); `None` neither sends nor heeds it.
    pub user_timeout_option: Option<UserTimeoutOption>,
    /// Least and largest retransmission timeout, in place of the profile's.
    pub rto_bounds: Option<(Duration, Duration)>,
    /// Bytes that may wait to be sent or acknowledged.
    pub send_buffer: Option<u64>,
    /// Bytes that may wait to be read; such a buffer does not tune itself.
    pub receive_buffer: Option<u32>,
    /// Whether small segments wait (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Whether idle connections are probed.
    pub keepalive: bool,
    /// What the host's tick counter shows when the driver's clock is zero: where its heartbeat or
    /// timer wheel stands.
    pub clock_phase: Duration,
    /// Added to the timestamps that are sent.
    pub timestamp_offset: u32,
}

impl Config {
    /// Linux 6 with its defaults.
    #[must_use]
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            profile: &LINUX_6,
            local,
            remote,
            stream_out: 1,
            stream_in: 2,
            iss: SeqNumber(1_000),
            mtu: 1_500,
            max_segment: None,
            congestion: None,
            sack: None,
            timestamps: None,
            window_scale: None,
            retries: None,
            user_timeout: None,
            user_timeout_option: None,
            rto_bounds: None,
            send_buffer: None,
            receive_buffer: None,
            nagle: true,
            keepalive: false,
            clock_phase: Duration::ZERO,
            timestamp_offset: 0,
        }
    }

    /// The configuration of the other end of the connection.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
            stream_out: self.stream_in,
            stream_in: self.stream_out,
            iss: SeqNumber(self.iss.0.wrapping_add(0x4000_0000)),
            ..self.clone()
        }
    }

    pub(crate) fn congestion(&self) -> Congestion {
        match self.congestion {
            Some(wish) if self.profile.congestion_choices.contains(&wish) => wish,
            _ => *self.profile.congestion,
        }
    }

    /// Bytes of IP and TCP header without options.
    pub(crate) fn header_len(&self) -> u32 {
        if self.local.is_ipv4() { 40 } else { 60 }
    }

    /// The MSS to announce (RFC 9293, section 3.7.1).
    pub(crate) fn announced_mss(&self) -> u16 {
        let mss = u32::from(self.mtu.max(576)) - self.header_len();
        // Below the MTU, hence sixteen bits.
        let mss = mss as u16;
        self.max_segment
            .map_or(mss, |most| mss.min(most.max(LEAST_MSS)))
    }
}
