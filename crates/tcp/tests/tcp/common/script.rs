//! One endpoint against a script of segments.
//!
//! `send!` gives the endpoint a segment, `recv!` takes the one that it must have sent at that
//! time, `recv_nothing!` sees that it is silent. Times are in ms. Sequence numbers count from the
//! first byte of the stream on either side: a SYN has number -1.

use super::config;
use outlast_base::time::{Duration, Instant};
use outlast_tcp::profile::{Cited, Profile};
use outlast_tcp::{Config, Endpoint, Event, TimerModel};
use outlast_wire::tcp::{SackBlock, TcpOptions, Timestamps};
use outlast_wire::{IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::collections::VecDeque;

/// Where the peer's numbers begin.
pub const PEER: SeqNumber = SeqNumber(7_000);

/// `profile` with timers that fire when they are due.
pub fn exact(profile: &'static Profile) -> &'static Profile {
    let mut profile = profile.clone();
    profile.timer = Cited {
        value: TimerModel::Exact,
        source: profile.timer.source,
    };
    Box::leak(Box::new(profile))
}

/// A segment, or what is expected of one.
#[derive(Clone, Debug, Default)]
pub struct Seg {
    pub seq: Option<i64>,
    pub ack: Option<i64>,
    pub len: u32,
    pub flags: &'static str,
    pub window: Option<u16>,
    pub sack: Option<Vec<(i64, i64)>>,
    /// TSval and TSecr, in ms of the sender's clock.
    pub stamps: Option<(u32, u32)>,
    pub options: Option<TcpOptions>,
}

/// Data.
pub fn data(seq: i64, len: u32) -> Seg {
    Seg {
        seq: Some(seq),
        len,
        ..Seg::default()
    }
}

/// A pure acknowledgement.
pub fn ack(ack: i64) -> Seg {
    Seg {
        ack: Some(ack),
        ..Seg::default()
    }
}

impl Seg {
    pub fn ack(mut self, ack: i64) -> Self {
        self.ack = Some(ack);
        self
    }

    pub fn seq(mut self, seq: i64) -> Self {
        self.seq = Some(seq);
        self
    }

    pub fn window(mut self, window: u16) -> Self {
        self.window = Some(window);
        self
    }

    pub fn sack(mut self, blocks: &[(i64, i64)]) -> Self {
        self.sack = Some(blocks.to_vec());
        self
    }

    pub fn stamps(mut self, value: u32, echo: u32) -> Self {
        self.stamps = Some((value, echo));
        self
    }

    pub fn with_len(mut self, len: u32) -> Self {
        self.len = len;
        self
    }

    pub fn flags(mut self, flags: &'static str) -> Self {
        self.flags = flags;
        self
    }
}

pub fn flags(text: &str) -> TcpFlags {
    text.chars().fold(TcpFlags::default(), |flags, letter| {
        flags
            | match letter {
                'S' => TcpFlags::SYN,
                'F' => TcpFlags::FIN,
                'R' => TcpFlags::RST,
                'P' => TcpFlags::PSH,
                'A' => TcpFlags::ACK,
                _ => panic!("unknown flag {letter}"),
            }
    })
}

pub struct Script {
    pub end: Endpoint,
    pub now: Instant,
    config: Config,
    out: VecDeque<(Instant, Packet)>,
    /// RCV.NXT of the peer, for acknowledgements that do not say.
    pub peer_seq: i64,
}

/// A configuration for scripts: the profile with exact timers, segments of 1000 bytes, and
/// neither window scale nor timestamps unless a test wants them.
pub fn script_config(profile: &'static Profile) -> Config {
    let mut config = config(exact(profile));
    config.mtu = 1_040;
    config.timestamps = Some(false);
    config.window_scale = Some(false);
    config.iss = SeqNumber(0);
    config.send_buffer = Some(u64::MAX);
    config
}

impl Script {
    /// An endpoint that connects; its SYN has not been looked at.
    pub fn connecting(config: Config) -> Self {
        let end = Endpoint::connect(Instant::ZERO, config.clone());
        let mut script = Self {
            end,
            now: Instant::ZERO,
            config,
            out: VecDeque::new(),
            peer_seq: 0,
        };
        script.collect();
        script
    }

    pub fn listening(config: Config) -> Self {
        Self {
            end: Endpoint::listen(config.clone()),
            now: Instant::ZERO,
            config,
            out: VecDeque::new(),
            peer_seq: 0,
        }
    }

    /// An endpoint that has connected at 0 ms to a peer that accepts all it offers, with a round
    /// trip of `rtt` ms and a window of 60000.
    pub fn connected(config: Config, rtt: u64) -> Self {
        let mut script = Self::connecting(config);
        let (_, syn) = script.out.pop_front().expect("a SYN");
        let offered = syn.tcp().expect("TCP").options.clone();
        script.go_to(rtt);
        let options = TcpOptions {
            mss: Some(1_000),
            window_scale: offered.window_scale.map(|_| 0),
            sack_permitted: offered.sack_permitted,
            timestamps: offered.timestamps.map(|stamps| Timestamps {
                value: 1,
                echo: stamps.value,
            }),
            ..TcpOptions::default()
        };
        let seg = Seg {
            seq: Some(-1),
            ack: Some(0),
            flags: "SA",
            window: Some(60_000),
            options: Some(options),
            ..Seg::default()
        };
        script.inject(rtt, &seg);
        let (_, handshake_ack) = script.out.pop_front().expect("an ACK");
        assert_eq!(handshake_ack.header().payload_len, 0);
        assert_eq!(script.end.poll_event(), Some(Event::Connected));
        script
    }

    fn our_seq(&self, seq: i64) -> SeqNumber {
        SeqNumber((i64::from(self.config.iss.0) + 1 + seq) as u32)
    }

    fn peer_number(&self, seq: i64) -> SeqNumber {
        SeqNumber((i64::from(PEER.0) + 1 + seq) as u32)
    }

    fn collect(&mut self) {
        while let Some(packet) = self.end.poll_transmit(self.now) {
            self.out.push_back((self.now, packet));
        }
    }

    /// Lets time go on to `ms`, with every timer that is due on the way.
    pub fn go_to(&mut self, ms: u64) {
        // Timers may have fired within this millisecond.
        let until = Instant::from_millis(ms).max(self.now);
        assert_eq!(super::ms(until), ms, "time does not go back");
        while let Some((at, _)) = self.end.poll_timeout().filter(|(at, _)| *at <= until) {
            self.now = at.max(self.now);
            self.end.handle_timeout(self.now);
            self.collect();
        }
        self.now = until;
    }

    /// The application does something.
    pub fn app<T>(&mut self, ms: u64, act: impl FnOnce(&mut Endpoint, Instant) -> T) -> T {
        self.go_to(ms);
        let result = act(&mut self.end, self.now);
        self.collect();
        result
    }

    #[track_caller]
    pub fn inject(&mut self, ms: u64, seg: &Seg) {
        self.go_to(ms);
        let packet = self.packet(seg);
        self.end.handle_packet(self.now, &packet);
        self.collect();
    }

    fn packet(&self, seg: &Seg) -> Packet {
        let seq = seg.seq.unwrap_or(self.peer_seq);
        let all_flags = match seg.flags {
            "" => TcpFlags::ACK,
            text => flags(text),
        };
        let mut options = seg.options.clone().unwrap_or_default();
        if let Some((value, echo)) = seg.stamps {
            options.timestamps = Some(Timestamps { value, echo });
        }
        for &(left, right) in seg.sack.iter().flatten() {
            options.sack.push(SackBlock {
                left: self.our_seq(left),
                right: self.our_seq(right),
            });
        }
        let header = TcpHeader {
            source_port: self.config.remote.port(),
            destination_port: self.config.local.port(),
            seq: self.peer_number(seq),
            ack: match all_flags.contains(TcpFlags::ACK) {
                true => self.our_seq(seg.ack.unwrap_or(0)),
                false => SeqNumber(0),
            },
            flags: all_flags,
            window: seg.window.unwrap_or(60_000),
            urgent: 0,
            options,
        };
        let ip = IpHeader::new(self.config.remote.ip(), self.config.local.ip());
        let payload = ModelledPayload {
            stream: self.config.stream_in,
            offset: u64::try_from(seq.max(0)).expect("not negative"),
        };
        Packet::modelled_tcp(ip, header, payload, seg.len)
    }

    /// The next packet that was sent, with its time in ms.
    pub fn next(&mut self, ms: u64) -> Option<(u64, Packet)> {
        self.go_to(ms);
        self.out
            .pop_front()
            .map(|(at, packet)| (super::ms(at), packet))
    }

    /// What is sent up to `ms`: number, length and flags of each segment.
    pub fn sent_to(&mut self, ms: u64) -> Vec<(i64, u32, String)> {
        let mut sent = Vec::new();
        while let Some((_, packet)) = self.next(ms) {
            let tcp = packet.tcp().expect("TCP");
            let seq = i64::from(tcp.seq.distance_from(self.our_seq(0)));
            let letters = [
                ('F', TcpFlags::FIN),
                ('P', TcpFlags::PSH),
                ('A', TcpFlags::ACK),
            ];
            let flags = letters.iter().filter(|(_, flag)| tcp.has(*flag));
            let flags = flags.map(|(letter, _)| *letter).collect();
            sent.push((seq, packet.header().payload_len, flags));
        }
        sent
    }

    /// Lets time go on until something is sent.
    pub fn next_sent(&mut self) -> Option<(u64, Packet)> {
        while self.out.is_empty() {
            let (due, _) = self.end.poll_timeout()?;
            self.now = due.max(self.now);
            self.end.handle_timeout(self.now);
            self.collect();
        }
        self.out
            .pop_front()
            .map(|(at, packet)| (super::ms(at), packet))
    }

    #[track_caller]
    pub fn expect(&mut self, ms: u64, seg: &Seg) {
        let Some((at, packet)) = self.next(ms) else {
            panic!("nothing was sent up to {ms} ms, expected {seg:?}");
        };
        let tcp = packet.tcp().expect("TCP");
        let found = format!(
            "at {at} ms: seq {} len {} ack {} {:?} win {} sack {:?} ts {:?}",
            i64::from(tcp.seq.distance_from(self.our_seq(0))),
            packet.header().payload_len,
            i64::from(tcp.ack.distance_from(self.peer_number(0))),
            tcp.flags,
            tcp.window,
            tcp.options.sack,
            tcp.options.timestamps
        );
        let wanted = format!("expected at {ms} ms {seg:?}, found {found}");
        assert_eq!(at, ms, "time: {wanted}");
        assert_eq!(packet.header().payload_len, seg.len, "length: {wanted}");
        if let Some(seq) = seg.seq {
            assert_eq!(tcp.seq, self.our_seq(seq), "seq: {wanted}");
        }
        if let Some(ack) = seg.ack {
            assert_eq!(tcp.ack, self.peer_number(ack), "ack: {wanted}");
        }
        if let Some(window) = seg.window {
            assert_eq!(tcp.window, window, "window: {wanted}");
        }
        if !seg.flags.is_empty() {
            assert_eq!(tcp.flags, flags(seg.flags), "flags: {wanted}");
        }
        if let Some(blocks) = &seg.sack {
            let found: Vec<_> = tcp
                .options
                .sack
                .iter()
                .map(|block| {
                    let left = block.left.distance_from(self.peer_number(0));
                    let right = block.right.distance_from(self.peer_number(0));
                    (i64::from(left), i64::from(right))
                })
                .collect();
            assert_eq!(&found, blocks, "SACK: {wanted}");
        }
    }

    #[track_caller]
    pub fn expect_nothing(&mut self, ms: u64) {
        if let Some((at, packet)) = self.next(ms) {
            panic!("silence up to {ms} ms expected, found at {at} ms: {packet:?}");
        }
    }

    /// The endpoint writes `bytes` at `ms`.
    pub fn write(&mut self, ms: u64, bytes: u64) {
        let accepted = self.app(ms, |end, now| end.send(now, bytes));
        assert_eq!(accepted, bytes);
    }

    pub fn wait(duration: Duration) -> u64 {
        duration.as_millis() as u64
    }
}

macro_rules! send {
    ($script:expr, $ms:expr, $seg:expr) => {
        $script.inject($ms, &$seg)
    };
}

macro_rules! recv {
    ($script:expr, $ms:expr, $seg:expr) => {
        $script.expect($ms, &$seg)
    };
}

macro_rules! recv_nothing {
    ($script:expr, $ms:expr) => {
        $script.expect_nothing($ms)
    };
}
