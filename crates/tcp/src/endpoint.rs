//! One end of one connection.
//!
//! RFC 9293, section 3.3.2 (states) and 3.10 (event processing). The files below hold one kind of
//! event each; the sending half's reactions are in [`crate::sender`].

mod build;
mod close;
pub(crate) mod control;
mod handshake;
mod icmp;
pub(crate) mod input;
mod prediction;
mod timeouts;
pub(crate) mod timers;

use crate::config::Config;
use crate::congestion::Context;
use crate::options::Negotiated;
use crate::outbox::Outbox;
use crate::profile::Profile;
use crate::receiver::Receiver;
use crate::sender::{Phase, Sender, WriteFlags};
use crate::timer::Clock;
use crate::user_timeout::UserTimeouts;
use core::fmt;
pub(crate) use input::Incoming;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags};
use timers::Timers;
pub(crate) use timers::{NEVER, Xmit};

/// State of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum State {
    /// LISTEN.
    Listen,
    /// SYN-SENT.
    SynSent,
    /// SYN-RECEIVED.
    SynReceived,
    /// ESTABLISHED.
    Established,
    /// FIN-WAIT-1.
    FinWait1,
    /// FIN-WAIT-2.
    FinWait2,
    /// CLOSE-WAIT.
    CloseWait,
    /// CLOSING.
    Closing,
    /// LAST-ACK.
    LastAck,
    /// TIME-WAIT.
    TimeWait,
    /// CLOSED.
    Closed,
}

impl State {
    /// The handshake is done and no end is final yet.
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed
        )
    }

    /// Data or a FIN may still be sent or retransmitted.
    pub(crate) const fn may_send(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }
}

/// Why a connection ended otherwise than by closing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Error {
    /// Too many retransmissions or probes went unanswered.
    TimedOut,
    /// The user timeout ran out.
    UserTimeout,
    /// Keepalive probes went unanswered.
    KeepaliveTimeout,
    /// The peer answered the SYN with a reset.
    Refused,
    /// An ICMP error answered the SYN.
    Unreachable,
    /// The peer reset the connection.
    Reset,
    /// This side aborted it, or closed it with data unread or still to come.
    Aborted,
    /// What arrived is not the stretch of the peer's stream that was due.
    WrongData {
        /// Offset in the stream where it should have been.
        offset: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("retransmissions went unanswered"),
            Self::UserTimeout => f.write_str("the user timeout ran out"),
            Self::KeepaliveTimeout => f.write_str("keepalive probes went unanswered"),
            Self::Refused => f.write_str("connection refused"),
            Self::Unreachable => f.write_str("an ICMP error answered the SYN"),
            Self::Reset => f.write_str("connection reset by peer"),
            Self::Aborted => f.write_str("connection aborted"),
            Self::WrongData { offset } => {
                write!(
                    f,
                    "what arrived for offset {offset} is not of the peer's stream"
                )
            }
        }
    }
}

impl core::error::Error for Error {}

/// What an endpoint tells its application.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// There was nothing to read, and now there is.
    Readable,
    /// There was no room to write, and now there is.
    Writable,
    /// The peer has sent all that it had.
    PeerClosed,
    /// The connection has ended in order.
    Closed,
    /// The connection is lost.
    Failed(Error),
}

/// Why an endpoint wants to be called.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe.
    LossProbe,
    /// What came out of order may now be judged lost.
    Reordering,
    /// Zero-window probe.
    WindowProbe,
    /// Delayed acknowledgement.
    DelayedAck,
    /// The next segment may leave.
    Pacing,
    /// Keepalive.
    Keepalive,
    /// FIN-WAIT-2 or TIME-WAIT ends.
    Linger,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Segments sent again, for whatever reason.
    pub retransmitted_segments: u64,
    /// Payload bytes in them.
    pub retransmitted_bytes: u64,
    /// Times that fast recovery began.
    pub fast_recoveries: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Recoveries that were undone because nothing was lost.
    pub undone: u64,
    /// Zero-window probes.
    pub window_probes: u64,
    /// Keepalive probes.
    pub keepalive_probes: u64,
    /// Challenge acknowledgements (RFC 5961).
    pub challenge_acks: u64,
    /// Acknowledgements sent that repeat the number and the window, not zero, of the segment
    /// before them and carry nothing (RFC 5681, section 2, as far as the sender of one knows).
    pub duplicate_acks: u64,
    /// Segments sent that offer no window at all.
    pub zero_windows: u64,
    /// Segments dropped as too old (PAWS), out of the window, or without use.
    pub discarded: u64,
}

/// Variables of congestion control, for a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Trace {
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Retransmission timeout now, back-off included.
    pub rto: Duration,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Duration,
    /// SND.UNA.
    pub snd_una: SeqNumber,
    /// SND.NXT.
    pub snd_nxt: SeqNumber,
    /// Peer's window in bytes.
    pub snd_wnd: u32,
    /// Segments thought to be in the network.
    pub in_flight: u32,
    /// Recoveries that were undone so far.
    pub undone: u64,
}

/// A segment that waits for [`Endpoint::poll_transmit`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) seq: SeqNumber,
    /// Payload bytes.
    pub(crate) len: u32,
    /// Stream offset of the first of them.
    pub(crate) offset: u64,
    pub(crate) flags: TcpFlags,
    /// For resets to what is no segment of ours.
    pub(crate) ack: Option<SeqNumber>,
}

impl Out {
    /// A reset that answers a segment of no connection (RFC 9293, section 3.10.7.1).
    pub(crate) fn is_reset_reply(&self) -> bool {
        self.flags.contains(TcpFlags::RST)
            && (self.ack.is_some() || !self.flags.contains(TcpFlags::ACK))
    }
}

/// SEG.ACK and window of an acknowledgement, in one number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Told(u64);

impl Told {
    const fn new(ack: SeqNumber, window: u16) -> Self {
        Self((ack.0 as u64) << 16 | window as u64)
    }
}

/// One end of one connection.
///
/// After each `handle_*` and each call of the application side the driver drains
/// [`poll_transmit`](Self::poll_transmit), then [`poll_event`](Self::poll_event), then arms a timer
/// for [`poll_timeout`](Self::poll_timeout). Time never goes back.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) config: Config,
    pub(crate) profile: &'static Profile,
    pub(crate) clock: Clock,
    pub(crate) state: State,
    pub(crate) options: Negotiated,
    pub(crate) snd: Sender,
    pub(crate) rcv: Receiver,
    pub(crate) timers: Timers,
    pub(crate) counters: Counters,
    pub(crate) outbox: Outbox<Out>,
    events: Outbox<Event>,
    /// Of each packet, but for the identification.
    ip: IpHeader,
    /// Identification of the latest packet.
    identification: u16,
    /// Own port and the peer's.
    ports: (u16, u16),
    /// Back-off and count of zero-window probes.
    pub(crate) persist: crate::persist::Probing,
    pub(crate) user_timeouts: UserTimeouts,
    /// Unanswered keepalive probes.
    pub(crate) keepalive_probes: u8,
    pub(crate) last_heard: Instant,
    /// A `send` found the buffer full.
    pub(crate) wants_room: bool,
    /// The latest acknowledgement, as it was written.
    told: Option<Told>,
    /// Since when transmission has stood still at the wish of a mechanism.
    pub(crate) frozen_at: Option<Instant>,
    /// The next acknowledgement in the shape of a keep-alive bears the Immediate Retransmission Option.
    marks_ack: bool,
    /// It was opened by [`Endpoint::listen`].
    is_passive: bool,
    /// The application has nothing more to send.
    pub(crate) is_shut: bool,
    /// The application has gone: nobody reads any more.
    pub(crate) is_closed: bool,
    last_challenge: Option<Instant>,
    /// Last answer to a segment out of the window.
    last_rejection: Option<Instant>,
    /// A destination-unreachable came since the last progress.
    pub(crate) soft_error: bool,
}

impl Endpoint {
    fn new(config: Config, state: State) -> Self {
        let profile = config.profile;
        let buffer = match config.receive_buffer {
            Some(bytes) => bytes,
            None => profile.receive_buffer.max,
        };
        let ip = IpHeader::new(config.local.ip(), config.remote.ip());
        Self {
            profile,
            clock: Clock::new(*profile.timer, config.clock_phase),
            state,
            options: Negotiated::offer(&config, buffer),
            snd: Sender::new(&config),
            rcv: Receiver::new(&config),
            timers: Timers::default(),
            counters: Counters::default(),
            outbox: Outbox::default(),
            events: Outbox::default(),
            ip,
            identification: 0,
            ports: (config.local.port(), config.remote.port()),
            persist: crate::persist::Probing::default(),
            user_timeouts: UserTimeouts::new(config.user_timeout_option, config.user_timeout),
            keepalive_probes: 0,
            last_heard: Instant::ZERO,
            wants_room: false,
            told: None,
            frozen_at: None,
            marks_ack: false,
            is_passive: state == State::Listen,
            is_shut: false,
            is_closed: false,
            last_challenge: None,
            last_rejection: None,
            soft_error: false,
            config,
        }
    }

    /// Opens actively: a SYN waits to be sent.
    #[must_use]
    pub fn connect(now: Instant, config: Config) -> Self {
        let mut endpoint = Self::new(config, State::SynSent);
        endpoint.last_heard = now;
        endpoint.send_syn(now);
        endpoint
    }

    /// Opens passively for one connection, from the configured peer.
    #[must_use]
    pub fn listen(config: Config) -> Self {
        Self::new(config, State::Listen)
    }

    /// The next segment to send.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let mut packet = Packet::default();
        self.poll_transmit_into(now, &mut packet).then_some(packet)
    }

    /// Whether a segment waits for [`poll_transmit`](Self::poll_transmit).
    #[inline]
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The next segment to send, in the place of a packet that is not needed any more; tells
    /// whether there was one.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let Some(&out) = self.outbox.first() else {
            return false;
        };
        self.outbox.drop_first();
        self.build(now, out, packet);
        true
    }

    /// What has happened.
    #[inline]
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The application writes `bytes` more bytes of its stream. Returns how many fit in the send
    /// buffer; none after [`shutdown`](Self::shutdown) or [`close`](Self::close).
    pub fn send(&mut self, now: Instant, bytes: u64) -> u64 {
        self.send_with(now, bytes, WriteFlags::default())
    }

    /// Whether the application may still write.
    pub(crate) fn may_write(&self) -> bool {
        !self.is_shut && !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// The application reads at most `max` bytes. Returns how many there were.
    #[inline]
    #[must_use]
    pub fn recv(&mut self, now: Instant, max: u64) -> u64 {
        let bytes = self.rcv.read(max);
        if bytes > 0 && self.state.is_synchronized() && self.state != State::TimeWait {
            self.after_read(now);
        }
        bytes
    }

    /// Bytes that arrived in order so far, read or not.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.rcv.in_order()
    }

    /// Bytes that the peer has acknowledged so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.snd.acknowledged
    }

    /// Bytes that the application has written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.snd.written
    }

    /// State of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The profile in use.
    #[must_use]
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Variables of congestion control.
    #[must_use]
    pub fn trace(&self) -> Trace {
        let ssthresh = self.snd.window.ssthresh;
        Trace {
            cwnd: self.snd.window.cwnd,
            ssthresh: (ssthresh < crate::congestion::INFINITE).then_some(ssthresh),
            rto: self.snd.rto.current(),
            srtt: Duration::from_micros(self.snd.rto.srtt_us(&self.clock)),
            snd_una: self.snd.snd_una,
            snd_nxt: self.snd.snd_nxt,
            snd_wnd: self.snd.snd_wnd,
            in_flight: self.snd.queue.in_flight(),
            undone: self.counters.undone,
        }
    }

    /// Whether fast recovery or recovery from a timeout is under way.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.snd.phase >= Phase::Recovery || self.snd.recover.is_some()
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    #[inline]
    pub(crate) fn context(&self, now: Instant) -> Context {
        Context {
            now,
            ticks: self.clock.ticks(now),
            tick: self.clock.period(),
            per_second: self.clock.ticks_per_second(),
            snd_una: self.snd.snd_una,
            snd_nxt: self.snd.snd_nxt,
        }
    }

    /// The connection is lost.
    pub(crate) fn fail(&mut self, error: Error) {
        if self.state == State::Closed {
            return;
        }
        self.end();
        self.emit(Event::Failed(error));
    }

    /// Nothing is left but what waits to be sent.
    pub(crate) fn end(&mut self) {
        self.state = State::Closed;
        self.timers = Timers::default();
        self.snd.queue.clear();
    }
}
