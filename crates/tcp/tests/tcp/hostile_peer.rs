//! Whatever a peer sends - wrong numbers, acknowledgements of what it never got, SACK blocks of
//! nothing, windows that close and shrink, forged errors and resets - an endpoint does not panic or
//! spin, gives its application nothing but the peer's stream in order, keeps every timer within
//! bounds, and when the peer falls silent it ends or has nothing left to wait for.

use crate::common::config;
use outlast_base::time::{Duration, Instant};
use outlast_host::control::Outstanding;
use outlast_tcp::profile::{Congestion, Profile};
use outlast_tcp::{Config, Endpoint, Error, Event, State, UserTimeoutOption, WriteFlags};
use outlast_wire::tcp::{SackBlock, TcpOptions, Timestamps, UserTimeout};
use outlast_wire::{IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

const PEER: SeqNumber = SeqNumber(0xffff_f000);

/// A number near something that the endpoint knows.
#[derive(Clone, Copy, Debug)]
enum Near {
    Una(i32),
    Next(i32),
    Received(i32),
    Anywhere(u32),
}

#[derive(Clone, Debug)]
struct Forged {
    seq: Near,
    ack: Near,
    flags: u8,
    window: u16,
    len: u32,
    sack: Vec<(Near, u32)>,
    stamps: Option<(i32, i32)>,
    user_timeout: Option<u16>,
    is_of_the_stream: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Segment(Forged),
    IcmpError {
        seq: Near,
        kind: u8,
        code: u8,
    },
    Wait(u64),
    /// Goes to the next timer.
    Fire,
    Write(u32),
    WriteWith(u32, WriteFlags),
    Cork(bool),
    NoDelay(bool),
    SendBuffer(u64),
    Read(u32),
    Shutdown,
    Close,
    Retransmit,
    FastRetransmit,
    Duplicates(u8),
    Freeze,
    Thaw,
    UserTimeout(Option<u16>),
}

fn near() -> impl Strategy<Value = Near> {
    let offset = prop_oneof![
        4 => Just(0),
        3 => -3_000_i32..3_000,
        1 => -200_000_i32..200_000,
        1 => any::<i32>(),
    ];
    (0..12_u8, offset, any::<u32>()).prop_map(|(kind, offset, anywhere)| match kind {
        0..4 => Near::Una(offset),
        4..8 => Near::Next(offset),
        8..11 => Near::Received(offset),
        _ => Near::Anywhere(anywhere),
    })
}

fn sequence() -> impl Strategy<Value = Near> {
    prop_oneof![
        6 => Just(Near::Received(0)),
        3 => (-3_000_i32..20_000).prop_map(Near::Received),
        1 => near(),
    ]
}

fn segment() -> impl Strategy<Value = Step> {
    (
        sequence(),
        near(),
        prop_oneof![
            12 => Just(0x10_u8),
            2 => Just(0x18),
            2 => Just(0x11),
            1 => Just(0x14),
            1 => Just(0x02),
            1 => any::<u8>(),
        ],
        prop_oneof![
            4 => Just(60_000_u16),
            2 => Just(0),
            2 => 1_u16..3_000,
            1 => any::<u16>(),
        ],
        prop_oneof![3 => Just(0), 2 => 1_u32..1_500, 1 => 0_u32..9_000],
        prop::collection::vec((near(), prop_oneof![0_u32..5_000, any::<u32>()]), 0..4),
        prop::option::of((-2_000_i32..2_000, -2_000_i32..2_000)),
        prop::option::weighted(0.1, any::<u16>()),
        prop::bool::weighted(0.98),
    )
        .prop_map(
            |(seq, ack, flags, window, len, sack, stamps, user_timeout, is_of_the_stream)| {
                Step::Segment(Forged {
                    seq,
                    ack,
                    flags,
                    window,
                    len,
                    sack,
                    stamps,
                    user_timeout,
                    is_of_the_stream,
                })
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => segment(),
        2 => (near(), prop_oneof![3 => Just(3_u8), 1 => 3..13_u8], 0..16_u8)
            .prop_map(|(seq, kind, code)| Step::IcmpError { seq, kind, code }),
        3 => (0_u64..3_000).prop_map(Step::Wait),
        1 => (0_u64..400_000).prop_map(Step::Wait),
        5 => Just(Step::Fire),
        5 => (1_u32..100_000).prop_map(Step::Write),
        3 => (1_u32..9_000, any::<bool>(), any::<bool>()).prop_map(|(bytes, more, end_of_record)| {
            Step::WriteWith(bytes, WriteFlags { more, end_of_record })
        }),
        1 => any::<bool>().prop_map(Step::Cork),
        1 => any::<bool>().prop_map(Step::NoDelay),
        1 => (0_u64..200_000).prop_map(Step::SendBuffer),
        3 => (0_u32..100_000).prop_map(Step::Read),
        1 => Just(Step::Shutdown),
        1 => Just(Step::Close),
        1 => Just(Step::Retransmit),
        1 => Just(Step::FastRetransmit),
        1 => (0_u8..10).prop_map(Step::Duplicates),
        1 => Just(Step::Freeze),
        2 => Just(Step::Thaw),
        1 => prop::option::of(1_u16..2_000).prop_map(Step::UserTimeout),
    ]
}

#[derive(Clone, Debug)]
struct Play {
    config: Config,
    is_passive: bool,
    /// The handshake is an honest one.
    is_opened: bool,
    peer_options: (bool, Option<u8>, bool, Option<u16>),
    steps: Vec<Step>,
}

fn play() -> impl Strategy<Value = Play> {
    let one = (
        prop::sample::select(Profile::ALL.to_vec()),
        prop::option::of(prop::sample::select(vec![
            Congestion::Reno,
            Congestion::Cubic,
            Congestion::Bbr,
        ])),
        prop::option::of(any::<bool>()),
        prop::option::of(any::<bool>()),
        prop::option::of(500_u32..200_000),
        any::<u32>(),
        (any::<bool>(), any::<bool>(), any::<bool>()),
        576_u16..9_000,
    )
        .prop_map(
            |(profile, congestion, sack, stamps, buffer, iss, flags, mtu)| {
                let mut config = config(profile);
                config.congestion = congestion;
                config.sack = sack;
                config.timestamps = stamps;
                config.receive_buffer = buffer;
                config.iss.0 = iss;
                (config.nagle, config.keepalive) = (flags.0, flags.1);
                config.user_timeout_option = flags.2.then(UserTimeoutOption::default);
                config.mtu = mtu;
                config
            },
        );
    (
        one,
        any::<bool>(),
        prop::bool::weighted(0.9),
        (
            any::<bool>(),
            prop::option::of(any::<u8>()),
            any::<bool>(),
            prop::option::of(any::<u16>()),
        ),
        prop::collection::vec(step(), 1..120),
    )
        .prop_map(
            |(config, is_passive, is_opened, peer_options, steps)| Play {
                config,
                is_passive,
                is_opened,
                peer_options,
                steps,
            },
        )
}

struct Stage {
    end: Endpoint,
    config: Config,
    now: Instant,
    /// The latest timestamp that the endpoint sent.
    stamp: u32,
    events: Vec<Event>,
    lied_about_data: bool,
}

/// Segments that one event may let out: a window's worth of the smallest.
const BURST: usize = 30_000;
/// The longest timer there is: keepalive after an adopted day, an eighth late.
const LONGEST: Duration = Duration::from_secs(28 * 3_600);

impl Stage {
    fn new(play: &Play) -> Self {
        let config = play.config.clone();
        let end = if play.is_passive {
            Endpoint::listen(config.clone())
        } else {
            Endpoint::connect(Instant::ZERO, config.clone())
        };
        let mut stage = Self {
            end,
            config,
            now: Instant::ZERO,
            stamp: 0,
            events: Vec::new(),
            lied_about_data: false,
        };
        stage.drain();
        if play.is_opened {
            stage.open(play);
        }
        stage
    }

    fn open(&mut self, play: &Play) {
        let (sack, window_scale, stamps, mss) = play.peer_options;
        let options = TcpOptions {
            mss,
            window_scale,
            sack_permitted: sack,
            timestamps: stamps.then_some(Timestamps {
                value: 1,
                echo: self.stamp,
            }),
            ..TcpOptions::default()
        };
        self.now = Instant::from_millis(40);
        let flags = if play.is_passive { 0x02 } else { 0x12 };
        let ack = self.config.iss + 1;
        self.send(PEER, ack, flags, 60_000, 0, options);
        self.drain();
        if play.is_passive {
            self.now = Instant::from_millis(80);
            let echo = self.stamp;
            let options = TcpOptions {
                timestamps: stamps.then_some(Timestamps { value: 2, echo }),
                ..TcpOptions::default()
            };
            self.send(PEER + 1, ack, 0x10, 60_000, 0, options);
            self.drain();
        }
        assert_eq!(self.end.state(), State::Established);
    }

    fn send(
        &mut self,
        seq: SeqNumber,
        ack: SeqNumber,
        flags: u8,
        window: u16,
        len: u32,
        options: TcpOptions,
    ) {
        let flags = [
            TcpFlags::FIN,
            TcpFlags::SYN,
            TcpFlags::RST,
            TcpFlags::PSH,
            TcpFlags::ACK,
        ]
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| flags & (1 << bit) != 0)
        .fold(TcpFlags::default(), |all, (_, flag)| all | flag);
        let header = TcpHeader {
            source_port: self.config.remote.port(),
            destination_port: self.config.local.port(),
            seq,
            ack,
            flags,
            window,
            urgent: 0,
            options: options.fitted(),
        };
        let ip = IpHeader::new(self.config.remote.ip(), self.config.local.ip());
        // Where the number stands in the stream, as the endpoint counts it.
        let summary = self.end.summary();
        let behind = i64::from(seq.distance_from(summary.rcv_nxt));
        let offset = self.end.received().saturating_add_signed(behind);
        let stream = if self.lied_about_data {
            99
        } else {
            self.config.stream_in
        };
        let payload = ModelledPayload { stream, offset };
        let packet = Packet::modelled_tcp(ip, header, payload, len);
        self.end.handle_packet(self.now, &packet);
    }

    fn number(&self, near: Near) -> SeqNumber {
        let summary = self.end.summary();
        let at = |base: SeqNumber, offset: i32| SeqNumber(base.0.wrapping_add_signed(offset));
        match near {
            Near::Una(offset) => at(summary.snd_una, offset),
            Near::Next(offset) => at(summary.snd_nxt, offset),
            Near::Received(offset) => at(summary.rcv_nxt, offset),
            Near::Anywhere(number) => SeqNumber(number),
        }
    }

    fn forge(&mut self, forged: &Forged) {
        let seq = self.number(forged.seq);
        let ack = self.number(forged.ack);
        let mut options = TcpOptions::default();
        for &(left, len) in &forged.sack {
            let left = self.number(left);
            let right = SeqNumber(left.0.wrapping_add(len));
            options.sack.push(SackBlock { left, right });
        }
        options.timestamps = forged.stamps.map(|(value, echo)| Timestamps {
            value: (self.now.as_nanos() / 1_000_000) as u32 + value as u32 % 4_000,
            echo: self.stamp.wrapping_add_signed(echo),
        });
        options.user_timeout = forged.user_timeout.map(|bits| UserTimeout {
            minutes: bits & 1 != 0,
            value: (bits >> 1).max(1),
        });
        let before = (self.end.received(), self.end.state());
        self.lied_about_data |= !forged.is_of_the_stream && forged.len > 0;
        self.send(seq, ack, forged.flags, forged.window, forged.len, options);
        let grown = self.end.received() - before.0;
        assert!(grown <= 1 << 24, "no more than a buffer at once: {grown}");
        if before.1 == State::Closed {
            assert_eq!(self.end.state(), State::Closed);
        }
    }

    fn icmp_error(&mut self, seq: Near, kind: u8, code: u8) {
        let seq = self.number(seq);
        let packet = crate::common::icmp_error(&self.config, seq, kind, code);
        self.end.handle_packet(self.now, &packet);
    }

    fn drain(&mut self) {
        let mut sent = 0;
        while let Some(packet) = self.end.poll_transmit(self.now) {
            let tcp = packet.tcp().expect("TCP only");
            if let Some(stamps) = tcp.options.timestamps {
                self.stamp = stamps.value;
            }
            assert_eq!(tcp.options, tcp.options.clone().fitted(), "options fit");
            assert!(
                packet.total_len() <= u32::from(self.config.mtu.max(576)),
                "{} bytes",
                packet.total_len()
            );
            sent += 1;
            assert!(sent < BURST, "{sent} segments at once");
        }
        while let Some(event) = self.end.poll_event() {
            self.events.push(event);
        }
        assert!(self.end.acknowledged() <= self.end.written());
        if let Some((at, reason)) = self.end.poll_timeout() {
            assert!(at <= self.now + LONGEST, "{reason:?} at {at}");
        }
    }

    /// Goes to `until` with every timer on the way.
    fn wait(&mut self, until: Instant) {
        let mut fired = 0;
        while let Some((at, reason)) = self.end.poll_timeout().filter(|(at, _)| *at <= until) {
            let moved = at > self.now;
            self.now = self.now.max(at);
            self.end.handle_timeout(self.now);
            self.drain();
            fired = if moved { 0 } else { fired + 1 };
            assert!(
                fired < 20,
                "{reason:?} fires again and again at {}",
                self.now
            );
        }
        self.now = self.now.max(until);
    }

    fn act(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Segment(forged) => self.forge(forged),
            Step::IcmpError { seq, kind, code } => self.icmp_error(*seq, *kind, *code),
            Step::Wait(ms) => self.wait(now + Duration::from_millis(*ms)),
            Step::Fire => {
                if let Some((at, _)) = self.end.poll_timeout() {
                    self.wait(at.max(now));
                }
            }
            Step::Write(bytes) => {
                let _ = self.end.send(now, u64::from(*bytes));
            }
            Step::WriteWith(bytes, flags) => {
                let _ = self.end.send_with(now, u64::from(*bytes), *flags);
            }
            Step::Cork(on) => self.end.set_cork(now, *on),
            Step::NoDelay(on) => self.end.set_no_delay(now, *on),
            Step::SendBuffer(bytes) => self.end.set_send_buffer(now, *bytes),
            Step::Read(bytes) => {
                let _ = self.end.recv(now, u64::from(*bytes));
            }
            Step::Shutdown => self.end.shutdown(now),
            Step::Close => self.end.close(now),
            Step::Retransmit => {
                let _ = self.end.retransmit_now(now);
            }
            Step::FastRetransmit => {
                let _ = self.end.fast_retransmit_now(now);
            }
            Step::Duplicates(count) => self.end.send_duplicate_acks(now, *count),
            Step::Freeze => self.end.freeze(now),
            Step::Thaw => self.end.thaw(now, Outstanding::Lost),
            Step::UserTimeout(secs) => {
                let timeout = secs.map(|secs| Duration::from_secs(u64::from(secs)));
                self.end.set_user_timeout(timeout);
            }
        }
        self.drain();
    }

    fn failure(&self) -> Option<Error> {
        self.events.iter().find_map(|event| match event {
            Event::Failed(error) => Some(*error),
            _ => None,
        })
    }

    /// The peer is gone for good.
    fn fall_silent(&mut self) {
        self.end.thaw(self.now, Outstanding::Lost);
        self.drain();
        let mut fired = 0;
        while let Some((at, _)) = self.end.poll_timeout() {
            self.wait(at);
            fired += 1;
            assert!(fired < 5_000, "it ends some day: {:?}", self.end.summary());
        }
        let summary = self.end.summary();
        let waits = !matches!(summary.state, State::Closed | State::Listen);
        if waits {
            let trace = self.end.trace();
            assert_eq!(summary.outstanding, 0, "{summary:?} {trace:?}");
            let unsent = self.end.written() - self.end.acknowledged();
            assert_eq!(unsent, 0, "{summary:?} {trace:?}");
            assert!(!self.config.keepalive, "{summary:?}");
        }
        let last = self
            .events
            .iter()
            .filter(|event| matches!(event, Event::Failed(_)) || **event == Event::Closed);
        assert!(last.count() <= 1, "it ends once: {:?}", self.events);
    }
}

fn check(play: &Play) {
    let mut stage = Stage::new(play);
    for step in &play.steps {
        stage.act(step);
    }
    stage.fall_silent();
    if let Some(Error::WrongData { offset }) = stage.failure() {
        assert!(stage.lied_about_data, "the stream was right at {offset}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(300),
        max_shrink_time: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_peer_makes_an_endpoint_panic_spin_or_wait_for_ever(play in play()) {
        check(&play);
    }
}
