//! What makes one stack differ from another: constants, each with its source.
//!
//! One file per stack. A value that nobody published is [`Source::Assumed`], with the reason;
//! `tests/tcp/profiles.rs` lists them all.

mod aix_4_3;
mod bsd_4_3_tahoe;
mod freebsd_2_2;
mod linux_2_2;
mod linux_2_4;
mod linux_6;
pub mod measured;
mod netbsd_1997;
mod sunos_5_6;

pub use aix_4_3::AIX_4_3;
pub use bsd_4_3_tahoe::BSD_4_3_TAHOE;
pub use freebsd_2_2::FREEBSD_2_2;
pub use linux_2_2::LINUX_2_2;
pub use linux_2_4::LINUX_2_4;
pub use linux_6::LINUX_6;
pub use netbsd_1997::NETBSD_1997;
pub use sunos_5_6::SUNOS_5_6;

use crate::timer::TimerModel;
use core::fmt;
use core::ops::Deref;
use outlast_base::time::Duration;

/// Where a constant comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// Measured or stated in one of the papers, or in a book: which, and where.
    Published(&'static str),
    /// Demanded by a standard: RFC and section.
    Standard(&'static str),
    /// Read in the stack's own source or manual: file or tunable.
    Code(&'static str),
    /// Not published anywhere; the reason why this value.
    Assumed(&'static str),
}

/// A constant and where it comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cited<T> {
    /// The constant.
    pub value: T,
    /// Its source.
    pub source: Source,
}

impl<T> Deref for Cited<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

const fn published<T>(value: T, at: &'static str) -> Cited<T> {
    let source = Source::Published(at);
    Cited { value, source }
}

const fn standard<T>(value: T, at: &'static str) -> Cited<T> {
    let source = Source::Standard(at);
    Cited { value, source }
}

const fn code<T>(value: T, at: &'static str) -> Cited<T> {
    let source = Source::Code(at);
    Cited { value, source }
}

const fn assumed<T>(value: T, reason: &'static str) -> Cited<T> {
    let source = Source::Assumed(reason);
    Cited { value, source }
}

/// How round trips become a retransmission timeout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RttModel {
    /// Jacobson's estimator as BSD keeps it, in beats of the slow heartbeat: RTO = SRTT + k times
    /// the mean deviation.
    Beats {
        /// k: 2 as first published (SIGCOMM 1988), 4 later.
        deviations: u8,
        /// Bits that the estimate keeps beyond those of the gains: 2 in FreeBSD, else none.
        fraction: u8,
        /// Beats by which the RTO exceeds the latest sample at least; `None` does not compare them.
        headroom: Option<u8>,
    },
    /// Linux up to 2.2: a quarter more than SRTT plus four deviations, and more for small
    /// windows; samples and estimates are whole ticks.
    Linux22,
    /// Linux since 2.4: the deviation never counts less than the minimum RTO, and decays once
    /// per round trip; samples are in units of `unit`.
    Linux {
        /// What samples are measured in.
        unit: Duration,
    },
    /// SRTT and a thirty-second, plus four deviations but at least `floor` (Solaris).
    Solaris {
        /// Least that the deviations count.
        floor: Duration,
    },
}

/// How the timeout grows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BackOff {
    /// It doubles.
    Doubling,
    /// The unbacked timeout times `halves[n] / 2` at the n-th retransmission, the last entry for
    /// all that follow.
    Table {
        /// Multipliers in halves, from the first retransmission on.
        halves: &'static [u16],
    },
}

/// Retransmission timeout after a handshake that gave no sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandshakeRto {
    /// This timeout, whatever the handshake's back-off was.
    Exactly(Duration),
    /// What the handshake's back-off has left, and no less than this.
    AtLeast(Duration),
}

/// What ICMP errors do to a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandshakeErrors {
    /// It goes on.
    Tolerated,
    /// The active side fails at once; the passive side forgets the request, silently.
    Fatal {
        /// Only what the path says ends a request (IPv4: network or host unreachable, time
        /// exceeded, parameter problem), not a port, a protocol or a filter; with IPv6 it is the
        /// other way round.
        spares_requests: bool,
    },
}

/// What a receiver reports as duplicate (RFC 2883) of a segment in order that covers stretches which
/// had come out of order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DuplicateReach {
    /// The first of them, and those that follow it without a gap.
    FirstStretch,
    /// All from the first of them to the segment's end, gaps included.
    ToTheEnd,
}

/// What applications can say of their writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriteControl {
    /// Small segments can be corked (`TCP_CORK`).
    pub cork: bool,
    /// A write can announce another one (`MSG_MORE`).
    pub more: bool,
    /// A write can end a record (`MSG_EOR`).
    pub records: bool,
    /// `TCP_NODELAY` sends what waits.
    pub no_delay_pushes: bool,
}

/// Which segments carry PSH (RFC 9293, section 3.9.1.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Push {
    /// Segments that end what has been written, whenever they are sent.
    EndOfWritten,
    /// Segments that end a write, also when sent again after more was written.
    OfSegment {
        /// The last one of each buffer of several segments, too.
        on_buffers: bool,
    },
}

/// When a connection is given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GiveUp {
    /// When the timer fires after this many retransmissions of one segment.
    Retransmissions(u8),
    /// When the time since the first retransmission has reached what this many retransmissions
    /// would take with the minimum RTO (`tcp_retries2` of Linux since 2.6.32).
    ModelledTime(u8),
    /// This long after the first retransmission.
    Elapsed(Duration),
}

/// When received data is acknowledged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DelayedAck {
    /// Every second segment, else at the latest after `delay`.
    SecondSegment {
        /// Upper limit, see also [`TimerModel::Heartbeat`].
        delay: Duration,
    },
    /// Linux: every segment while quick, then every second; the delay follows the spacing of
    /// arrivals.
    Linux {
        /// Least delay.
        min: Duration,
        /// Largest delay.
        max: Duration,
        /// Out-of-order arrivals share acknowledgements after the first three (since 4.18).
        compress: bool,
        /// Who answers within the delay is taken to go on doing so: acknowledgements wait for the
        /// next answer (pingpong mode), and that of a FIN does.
        waits_for_answers: bool,
    },
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recovery {
    /// The third duplicate retransmits one segment; then slow start.
    Tahoe,
    /// Fast recovery until the first new acknowledgement (RFC 2001).
    Reno,
    /// Fast recovery until all is acknowledged that was outstanding (RFC 6582).
    NewReno,
    /// A scoreboard; losses are found by counting SACKed segments (RFC 6675).
    Sack,
    /// A scoreboard; losses are found by time (RFC 8985).
    Rack,
}

impl Recovery {
    /// Whether a scoreboard is kept.
    #[must_use]
    pub const fn has_scoreboard(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}

/// How the congestion window comes down in recovery with a scoreboard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reduction {
    /// One segment less for every second acknowledgement (Linux 2.4).
    RateHalving,
    /// Proportional rate reduction (RFC 6937, RFC 9937).
    Proportional,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// BBR, first version.
    Bbr,
}

/// What counts for the growth of the congestion window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Growth {
    /// Each acknowledgement, however much it covers.
    PerAck {
        /// In congestion avoidance BSD adds an eighth of a segment each time.
        extra_eighth: bool,
    },
    /// Each acknowledged segment (RFC 3465).
    PerSegment,
}

/// What a zero window does while data is outstanding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ZeroWindow {
    /// The retransmission timer stops and persist mode begins, congestion window untouched.
    Obeyed,
    /// Retransmission goes on.
    Ignored,
}

/// What happens to the congestion window after idle time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IdleRestart {
    /// Nothing.
    Keep,
    /// Back to the initial window after one RTO (RFC 5681, section 4.1).
    SlowStart,
    /// Halved for each RTO, not below the initial window (RFC 2861, RFC 7661).
    Decay,
}

/// Zero-window probes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Persist {
    /// Least interval.
    pub min: Duration,
    /// Largest interval.
    pub max: Duration,
    /// A probe carries one byte of data; otherwise an old sequence number and none.
    pub carries_data: bool,
}

/// Keepalive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Keepalive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection is given up.
    pub count: u8,
}

/// The options that a stack offers in its SYN.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Offers {
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Window scale (RFC 7323).
    pub window_scale: bool,
    /// SACK (RFC 2018).
    pub sack: bool,
    /// Duplicate SACK (RFC 2883), where there is SACK.
    pub dsack: bool,
}

/// The receive buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceiveBuffer {
    /// Bytes that can be offered at first.
    pub initial: u32,
    /// Bytes that can be offered at most; the same where the buffer does not tune itself.
    pub max: u32,
}

/// The send buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SendBuffer {
    /// So many bytes; `u64::MAX` where it never limits.
    Fixed(u64),
    /// Memory for two congestion windows.
    FollowsWindow {
        /// Bytes of memory that a full segment is taken for.
        segment: u32,
        /// Bytes of memory that a buffer takes besides its payload.
        overhead: u32,
        /// Least memory, whatever the application asks for.
        least: u64,
        /// Most that the application can ask for; it is given twice that.
        most: u64,
    },
}

/// How a large write becomes segments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Segmentation {
    /// Each leaves for itself. A part of one is sent if it is at least half the largest window
    /// (RFC 9293, section 3.8.6.2.1).
    None,
    /// They leave as buffers that are cut behind the stack. A part of a segment that the peer's
    /// window has room for goes along with a full one in the same buffer.
    Buffers {
        /// Bytes of payload that a buffer holds at most.
        most: u32,
    },
}

/// How retransmissions are recognised as needless, and undone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Undo {
    /// By timestamps (Eifel, RFC 3522 and 4015).
    pub timestamps: bool,
    /// By duplicate SACKs (RFC 3708).
    pub dsack: bool,
    /// By F-RTO (RFC 5682).
    pub frto: bool,
}

/// A stack.
#[derive(Clone, PartialEq)]
pub struct Profile {
    /// As scenario files name it.
    pub name: &'static str,
    /// What drives its timers.
    pub timer: Cited<TimerModel>,
    /// How it estimates.
    pub rtt: Cited<RttModel>,
    /// RTO before the first sample.
    pub initial_rto: Cited<Duration>,
    /// Least RTO.
    pub min_rto: Cited<Duration>,
    /// Largest RTO.
    pub max_rto: Cited<Duration>,
    /// The timer runs from when the oldest segment was sent, not from the latest progress.
    pub timer_from_head: Cited<bool>,
    /// How it backs off.
    pub back_off: Cited<BackOff>,
    /// When it gives up an established connection.
    pub give_up: Cited<GiveUp>,
    /// Retransmissions of a SYN.
    pub syn_retries: Cited<u8>,
    /// Retransmissions of a SYN before the timeout begins to double.
    pub syn_linear: Cited<u8>,
    /// Retransmissions of a SYN-ACK.
    pub syn_ack_retries: Cited<u8>,
    /// When it acknowledges.
    pub delayed_ack: Cited<DelayedAck>,
    /// Initial window in segments.
    pub initial_window: Cited<u32>,
    /// Loss recovery.
    pub recovery: Cited<Recovery>,
    /// How the window comes down in recovery, with a scoreboard.
    pub reduction: Cited<Reduction>,
    /// Tail loss probes.
    pub tail_loss_probe: Cited<bool>,
    /// What it can undo.
    pub undo: Cited<Undo>,
    /// Congestion control unless another is asked for.
    pub congestion: Cited<Congestion>,
    /// What it can do besides.
    pub congestion_choices: &'static [Congestion],
    /// What makes the window grow.
    pub growth: Cited<Growth>,
    /// After idle time.
    pub idle_restart: Cited<IdleRestart>,
    /// Zero window with data outstanding.
    pub zero_window: Cited<ZeroWindow>,
    /// Probing of a zero window.
    pub persist: Cited<Persist>,
    /// Keepalive, where the application asks for it.
    pub keepalive: Cited<Keepalive>,
    /// Options in its SYN.
    pub offers: Cited<Offers>,
    /// Period of its timestamp clock.
    pub timestamp_clock: Cited<Duration>,
    /// Its receive buffer.
    pub receive_buffer: Cited<ReceiveBuffer>,
    /// Its send buffer.
    pub send_buffer: Cited<SendBuffer>,
    /// How it cuts segments.
    pub segmentation: Cited<Segmentation>,
    /// TIME-WAIT.
    pub time_wait: Cited<Duration>,
    /// How long FIN-WAIT-2 may last once the application has closed.
    pub fin_wait_2: Cited<Duration>,
    /// Challenge acknowledgements (RFC 5961), with the least time between two.
    pub challenge_ack: Cited<Option<Duration>>,
    /// An ICMP unreachable reverts one back-off (RFC 6069).
    pub icmp_reverts_back_off: Cited<bool>,
    /// Timeout after a handshake that gave no sample.
    pub handshake_rto: Cited<HandshakeRto>,
    /// Time until a SYN that nothing but a wrong acknowledgement answered, which was reset, is sent
    /// again for the first time; `None` leaves it to its timeout.
    pub syn_after_reset: Cited<Option<Duration>>,
    /// What ICMP errors do to a handshake.
    pub icmp_in_handshake: Cited<HandshakeErrors>,
    /// What is added to the time after which a tail is probed, or what may be reordered is judged.
    pub early_timer_slack: Cited<Duration>,
    /// What is told of a segment in order that covers stretches which had come before.
    pub duplicate_reach: Cited<DuplicateReach>,
    /// A close with data that nobody has read resets the connection.
    pub unread_resets: Cited<bool>,
    /// What applications can say of their writes.
    pub write_control: Cited<WriteControl>,
    /// Which segments carry PSH.
    pub push: Cited<Push>,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Profile").field(&self.name).finish()
    }
}

impl Profile {
    /// Every profile.
    pub const ALL: [&'static Self; 8] = [
        &BSD_4_3_TAHOE,
        &NETBSD_1997,
        &FREEBSD_2_2,
        &SUNOS_5_6,
        &AIX_4_3,
        &LINUX_2_2,
        &LINUX_2_4,
        &LINUX_6,
    ];

    /// The profile that scenario files call `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|profile| profile.name == name)
    }

    /// What each constant is and where it comes from, for documentation and its test.
    #[must_use]
    pub fn sources(&self) -> [(&'static str, Source); 40] {
        [
            ("timer", self.timer.source),
            ("rtt", self.rtt.source),
            ("initial RTO", self.initial_rto.source),
            ("minimum RTO", self.min_rto.source),
            ("maximum RTO", self.max_rto.source),
            ("timer from head", self.timer_from_head.source),
            ("back-off", self.back_off.source),
            ("give up", self.give_up.source),
            ("SYN retries", self.syn_retries.source),
            ("SYN linear timeouts", self.syn_linear.source),
            ("SYN-ACK retries", self.syn_ack_retries.source),
            ("delayed ACK", self.delayed_ack.source),
            ("initial window", self.initial_window.source),
            ("recovery", self.recovery.source),
            ("reduction", self.reduction.source),
            ("tail loss probe", self.tail_loss_probe.source),
            ("undo", self.undo.source),
            ("congestion control", self.congestion.source),
            ("growth", self.growth.source),
            ("idle restart", self.idle_restart.source),
            ("zero window", self.zero_window.source),
            ("persist", self.persist.source),
            ("keepalive", self.keepalive.source),
            ("options", self.offers.source),
            ("timestamp clock", self.timestamp_clock.source),
            ("receive buffer", self.receive_buffer.source),
            ("send buffer", self.send_buffer.source),
            ("segmentation", self.segmentation.source),
            ("TIME-WAIT", self.time_wait.source),
            ("FIN-WAIT-2", self.fin_wait_2.source),
            ("challenge ACK", self.challenge_ack.source),
            ("ICMP", self.icmp_reverts_back_off.source),
            ("RTO after the handshake", self.handshake_rto.source),
            ("SYN after a reset", self.syn_after_reset.source),
            ("ICMP in the handshake", self.icmp_in_handshake.source),
            ("slack of early timers", self.early_timer_slack.source),
            ("reach of duplicates", self.duplicate_reach.source),
            ("close with unread data", self.unread_resets.source),
            ("control of writes", self.write_control.source),
            ("PSH", self.push.source),
        ]
    }
}

/// Multipliers of the BSD stacks: 1, 2, 4, ... 64 and 64 from there on, in halves, from the first
/// retransmission on.
const BSD_BACK_OFF: &[u16] = &[4, 8, 16, 32, 64, 128];
