//! A gateway between two hosts, driven segment by segment in virtual time.
//!
//! The near host sends towards the link, the far host is beyond it. Sequence numbers in tests
//! count from the first byte after each SYN, so that `data(0, 1000)` is the first kilobyte.
#![allow(dead_code, reason = "each test file uses its part")]

use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::gateway::{
    DampingConfig, DropCause, Event, Gateway, GatewayConfig, SilenceConfig,
};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::{
    Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState,
};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason, Verdict};
use outlast_wire::tcp::{Experimental, SackBlock, TcpOptions, Timestamps};
use outlast_wire::{
    IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, Transport, UdpHeader,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const LINK: LinkId = LinkId::of_interface(InterfaceId(1));
pub(crate) const MSS: u32 = 1_000;
const NEAR_ISN: u32 = u32::MAX - 2_000;
const FAR_ISN: u32 = 77;

/// What the gateway sent, as a test wants to read it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    /// A segment towards the link: first byte, length, TSval.
    Data(u32, u32, u32),
    /// A pure acknowledgement towards the link.
    Ack(u32),
    /// What the near host has, before its acknowledgement, without timestamps.
    Untimed(u32),
    /// An acknowledgement handed to the near host.
    Rereceived(u32),
    /// A question to the far host.
    Question,
    /// An ICMP error that quotes this byte of the near host's.
    WakesNear(u32),
    /// An ICMP error that quotes this byte of the far host's.
    WakesFar(u32),
    /// An ICMP error to the near host: its path takes packets of so many bytes.
    TooBig(u32),
    /// A datagram with this payload length.
    Datagram(u32),
    /// A SYN or RST towards the link.
    Control(TcpFlags),
}

/// Of IP, by which the hosts talk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Version {
    pub(crate) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The address that ends with `last`.
    pub(crate) fn address(self, last: u8) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::new(10, 0, 0, last).into(),
            Self::V6 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()).into(),
        }
    }
}

/// What stays of a connection that owes nothing: at most its newest acknowledgement each way.
pub(crate) const LITTLE: ByteCount = ByteCount(600);

pub(crate) struct Path {
    pub(crate) gateway: Gateway,
    /// Where packets cross from now on.
    pub(crate) link: LinkId,
    now: Instant,
    version: Version,
    port: u16,
    /// Last byte of the far host's address.
    far: u8,
    /// Whether the SYNs of connections that are opened permit SACK.
    permits_sack: bool,
    /// TSval of what the near host sends, in milliseconds of virtual time.
    clock: u32,
    /// Why segments of the far host were taken since the last look.
    taken: Vec<TakeReason>,
}

impl Path {
    pub(crate) fn new(mechanism: PathMechanismKind) -> Self {
        Self::with_limits(mechanism, Limits::default())
    }

    pub(crate) fn with_limits(mechanism: PathMechanismKind, limits: Limits) -> Self {
        let rate = BitRate::from_bits_per_second(10_000_000);
        Self::with_rate(mechanism, limits, rate)
    }

    /// A path as of [`Self::established`] whose gateway goes by silence, too.
    pub(crate) fn listening(mechanism: PathMechanismKind, silence: SilenceConfig) -> Self {
        Self::to_listen(mechanism, silence).settled()
    }

    /// A path as of [`Self::new`] whose gateway goes by silence, too.
    pub(crate) fn to_listen(mechanism: PathMechanismKind, silence: SilenceConfig) -> Self {
        let rate = BitRate::from_bits_per_second(10_000_000);
        let config = GatewayConfig {
            mechanism,
            silence: Some(silence),
            ..GatewayConfig::default()
        };
        Self::with_config(config, rate)
    }

    /// A path as of [`Self::established`] whose gateway damps indicators that flap.
    pub(crate) fn damping(mechanism: PathMechanismKind, damping: DampingConfig) -> Self {
        let rate = BitRate::from_bits_per_second(10_000_000);
        let config = GatewayConfig {
            mechanism,
            damping: Some(damping),
            ..GatewayConfig::default()
        };
        Self::with_config(config, rate).settled()
    }

    pub(crate) fn with_rate(
        mechanism: PathMechanismKind,
        limits: Limits,
        rate: Option<BitRate>,
    ) -> Self {
        let config = GatewayConfig {
            mechanism,
            limits,
            seed: 1,
            ..GatewayConfig::default()
        };
        Self::with_config(config, rate)
    }

    pub(crate) fn with_config(config: GatewayConfig, rate: Option<BitRate>) -> Self {
        let mut gateway = Gateway::new(config);
        gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig { rate });
        Self {
            gateway,
            link: LINK,
            now: Instant::ZERO,
            version: Version::V4,
            port: 5_000,
            far: 1,
            permits_sack: true,
            clock: 0,
            taken: Vec::new(),
        }
    }

    /// A path with an established connection, long quiet, whose round trip over the link takes
    /// 40 ms. The near host's timestamps count from now.
    pub(crate) fn established(mechanism: PathMechanismKind) -> Self {
        Self::new(mechanism).settled()
    }

    /// Packets from now on are of this version.
    pub(crate) const fn over(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Connections that are opened from now on do not acknowledge selectively.
    pub(crate) const fn without_sack(mut self) -> Self {
        self.permits_sack = false;
        self
    }

    /// One segment was answered after 40 ms, then the link went; `kept` segments and `away_ms` later it is back, and
    /// what was kept has gone out.
    pub(crate) fn back_again(mut self, kept: u32, away_ms: u64) -> Self {
        self.data(0, MSS);
        self.after_ms(40);
        self.far_ack(MSS);
        self.down();
        for n in 1..=kept {
            self.data(n * MSS, MSS);
        }
        self.after_ms(away_ms);
        self.up();
        self.after_ms(40);
        self
    }

    /// With a connection as of [`Self::established`].
    pub(crate) fn settled(mut self) -> Self {
        self.open();
        self.after_ms(2_000);
        self.clock = 0;
        self
    }

    pub(crate) fn open(&mut self) {
        self.open_with(Some(7));
    }

    /// The near host does not offer to scale windows.
    pub(crate) fn open_unscaled(&mut self) {
        self.open_with(None);
    }

    fn open_with(&mut self, window_scale: Option<u8>) {
        let mut syn = TcpHeader {
            flags: TcpFlags::SYN,
            ..self.near_header(SeqNumber(NEAR_ISN), 0)
        };
        syn.options.window_scale = window_scale;
        syn.options.sack_permitted = self.permits_sack;
        let syn = TcpHeader {
            ack: SeqNumber(0),
            ..syn
        };
        assert_eq!(self.near_sends(&self.near_packet(syn, 0)), None);
        self.after_ms(40);
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        let mut syn_ack = TcpHeader {
            flags,
            seq: SeqNumber(FAR_ISN),
            ack: SeqNumber(NEAR_ISN) + 1,
            ..self.far_header()
        };
        syn_ack.options.sack_permitted = self.permits_sack;
        self.far_sends(&self.far_packet(syn_ack, 0));
        assert_eq!(self.near_ack(0), None);
    }

    /// Makes every later packet one of the connection from `port`.
    pub(crate) fn use_port(&mut self, port: u16) {
        self.port = port;
    }

    /// Makes every later packet one to or from the far host `last`.
    pub(crate) fn use_far_host(&mut self, last: u8) {
        self.far = last;
    }

    /// Time passes up to `until`, and nothing is due before.
    pub(crate) fn at(&mut self, until: Instant) {
        let passed = until.since(self.now);
        self.after(passed);
        self.clock += u32::try_from(passed.as_millis()).expect("tests are short");
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Lets time pass; deadlines on the way are met.
    pub(crate) fn after_ms(&mut self, ms: u64) {
        self.after(Duration::from_millis(ms));
        self.clock += u32::try_from(ms).expect("tests are short");
    }

    /// Lets time pass that the hosts' clocks do not notice; deadlines on the way are met.
    pub(crate) fn after(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some((at, _)) = self.gateway.poll_timeout()
            && at <= until
        {
            self.now = self.now.max(at);
            self.gateway.handle_timeout(self.now);
        }
        self.now = until;
    }

    pub(crate) fn down(&mut self) {
        self.change(LinkState::Down);
    }

    pub(crate) fn up(&mut self) {
        self.change(LinkState::Up);
    }

    pub(crate) fn change(&mut self, state: LinkState) {
        let event = LinkEvent {
            link: self.link,
            state,
            indicator: Indicator::Carrier,
        };
        self.gateway.handle_link(self.now, event);
    }

    /// The near host sends `len` bytes from `first` on; tells why the gateway took them, if so.
    pub(crate) fn data(&mut self, first: u32, len: u32) -> Option<TakeReason> {
        let packet = self.data_packet(first, len);
        self.near_sends(&packet)
    }

    pub(crate) fn data_packet(&self, first: u32, len: u32) -> Packet {
        self.near_packet(self.near_header(near_seq(first), 0), len)
    }

    /// The near host acknowledges all before `ack` of the far host's data.
    pub(crate) fn near_ack(&mut self, ack: u32) -> Option<TakeReason> {
        self.near_sends(&self.near_ack_packet(ack))
    }

    /// The near host acknowledges all before `ack`, with a SACK block.
    ///
    /// The block is the first byte and the byte behind the last.
    pub(crate) fn near_sack(&mut self, ack: u32, (left, right): (u32, u32)) -> Option<TakeReason> {
        let mut header = self.near_header(SeqNumber(NEAR_ISN) + 1, ack);
        header.options.sack.push(SackBlock {
            left: self.far_number(left),
            right: self.far_number(right),
        });
        self.near_sends(&self.near_packet(header, 0))
    }

    pub(crate) fn near_ack_packet(&self, ack: u32) -> Packet {
        self.near_packet(self.near_header(SeqNumber(NEAR_ISN) + 1, ack), 0)
    }

    /// The far host acknowledges all before `ack` of the near host's data.
    pub(crate) fn far_ack(&mut self, ack: u32) {
        self.far_sack(ack, &[]);
    }

    /// The far host acknowledges all before `ack`, with SACK blocks.
    ///
    /// Each block is the first byte and the byte behind the last.
    pub(crate) fn far_sack(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        self.far_sends(&self.far_packet_acking(ack, blocks));
    }

    /// The far host acknowledges all before `ack`; it has sent `sent` bytes itself.
    pub(crate) fn far_ack_after(&mut self, sent: u32, ack: u32) {
        let header = TcpHeader {
            seq: SeqNumber(FAR_ISN) + 1 + sent,
            ack: near_seq(ack),
            ..self.far_header()
        };
        self.far_sends(&self.far_packet(header, 0));
    }

    /// The far host acknowledges all before `ack`, and marks that as a reconnection.
    pub(crate) fn far_marked_ack(&mut self, ack: u32) {
        self.far_marked_ack_at(0, ack);
    }

    /// The far host marks an acknowledgement of all before `ack` as a reconnection. Its sequence number is `seq` bytes
    /// beyond that of a keep-alive.
    pub(crate) fn far_marked_ack_at(&mut self, seq: u32, ack: u32) {
        let mut header = TcpHeader {
            seq: self.far_header().seq - 1 + seq,
            ack: near_seq(ack),
            ..self.far_header()
        };
        header.options.experimental = Some(Experimental::immediate_retransmission());
        self.far_sends(&self.far_packet(header, 0));
    }

    /// The far host sends its first byte on, `len` bytes and what `flags` say, with the mark of a reconnection.
    pub(crate) fn far_marked_data(&mut self, ack: u32, len: u32, flags: TcpFlags) {
        let mut header = TcpHeader {
            ack: near_seq(ack),
            flags: TcpFlags::ACK | flags,
            ..self.far_header()
        };
        header.options.experimental = Some(Experimental::immediate_retransmission());
        self.far_sends(&self.far_packet(header, len));
    }

    /// The far host acknowledges all before `ack`, and echoes a near timestamp.
    pub(crate) fn far_ack_echoing(&mut self, ack: u32, echo: u32) {
        self.far_data_echoing(ack, echo, 0);
    }

    /// The far host sends its first `len` bytes, and echoes a near timestamp.
    pub(crate) fn far_data_echoing(&mut self, ack: u32, echo: u32, len: u32) {
        let mut header = TcpHeader {
            ack: near_seq(ack),
            ..self.far_header()
        };
        header.options.timestamps = Some(Timestamps { value: 1, echo });
        self.far_sends(&self.far_packet(header, len));
    }

    pub(crate) fn far_packet_acking(&self, ack: u32, blocks: &[(u32, u32)]) -> Packet {
        let mut header = TcpHeader {
            ack: near_seq(ack),
            ..self.far_header()
        };
        for &(left, right) in blocks {
            let block = SackBlock {
                left: near_seq(left),
                right: near_seq(right),
            };
            header.options.sack.push(block);
        }
        self.far_packet(header, 0)
    }

    /// The sequence number of the near host's byte.
    pub(crate) fn near_number(&self, byte: u32) -> SeqNumber {
        near_seq(byte)
    }

    /// The sequence number of the far host's byte.
    pub(crate) fn far_number(&self, byte: u32) -> SeqNumber {
        SeqNumber(FAR_ISN) + 1 + byte
    }

    /// Where a segment of the near host begins.
    pub(crate) fn first_byte(&self, packet: &Packet) -> u32 {
        (packet.tcp().expect("a segment").seq - NEAR_ISN - 1).0
    }

    /// The far host sends `len` bytes from `first` on.
    pub(crate) fn far_data(&mut self, first: u32, len: u32) {
        self.far_sends(&self.far_data_packet(first, len));
    }

    pub(crate) fn far_data_packet(&self, first: u32, len: u32) -> Packet {
        let header = TcpHeader {
            seq: SeqNumber(FAR_ISN) + 1 + first,
            ..self.far_header()
        };
        self.far_packet(header, len)
    }

    pub(crate) fn rst(&mut self, at: u32) -> Option<TakeReason> {
        let flags = TcpFlags::RST | TcpFlags::ACK;
        let header = TcpHeader {
            flags,
            ..self.near_header(near_seq(at), 0)
        };
        self.near_sends(&self.near_packet(header, 0))
    }

    pub(crate) fn syn(&mut self) -> Option<TakeReason> {
        let syn = self.syn_packet();
        self.near_sends(&syn)
    }

    pub(crate) fn syn_packet(&self) -> Packet {
        let header = TcpHeader {
            flags: TcpFlags::SYN,
            ack: SeqNumber(0),
            ..self.near_header(SeqNumber(NEAR_ISN), 0)
        };
        self.near_packet(header, 0)
    }

    /// The near host's answer to a SYN.
    pub(crate) fn syn_ack(&mut self) -> Option<TakeReason> {
        let header = TcpHeader {
            flags: TcpFlags::SYN | TcpFlags::ACK,
            ..self.near_header(SeqNumber(NEAR_ISN), 0)
        };
        self.near_sends(&self.near_packet(header, 0))
    }

    pub(crate) fn far_syn(&mut self) {
        let header = TcpHeader {
            flags: TcpFlags::SYN,
            seq: SeqNumber(FAR_ISN),
            ack: SeqNumber(0),
            ..self.far_header()
        };
        self.far_sends(&self.far_packet(header, 0));
    }

    /// The far host's answer to a SYN.
    pub(crate) fn far_syn_ack(&mut self) {
        let header = TcpHeader {
            flags: TcpFlags::SYN | TcpFlags::ACK,
            seq: SeqNumber(FAR_ISN),
            ..self.far_header()
        };
        self.far_sends(&self.far_packet(header, 0));
    }

    /// The far host refuses.
    pub(crate) fn far_rst(&mut self) {
        let header = TcpHeader {
            flags: TcpFlags::RST | TcpFlags::ACK,
            ..self.far_header()
        };
        self.far_sends(&self.far_packet(header, 0));
    }

    pub(crate) fn datagram(&mut self, len: u32) -> Option<TakeReason> {
        self.near_sends(&self.datagram_packet(len))
    }

    pub(crate) fn datagram_packet(&self, len: u32) -> Packet {
        let payload = vec![0; len as usize];
        let udp = UdpHeader {
            source_port: 9,
            destination_port: 9_999,
        };
        Packet::udp_datagram(self.ip(2, self.far), udp, &payload)
    }

    /// The link reports that it dropped these bytes, which had been put on it.
    pub(crate) fn dropped(&mut self, first: u32, len: u32) {
        let packet = self.data_packet(first, len);
        self.drop_packet(&packet);
    }

    /// The link reports that it dropped this packet, which had been put on it.
    pub(crate) fn drop_packet(&mut self, packet: &Packet) {
        self.gateway
            .handle_drop(self.now, self.link, packet, DropCause::Outage);
    }

    pub(crate) fn near_sends(&mut self, packet: &Packet) -> Option<TakeReason> {
        match self
            .gateway
            .handle_packet(self.now, self.link, Direction::ToLink, packet)
        {
            Verdict::Pass => None,
            Verdict::Taken(reason) => Some(reason),
        }
    }

    pub(crate) fn far_sends(&mut self, packet: &Packet) {
        let verdict = self
            .gateway
            .handle_packet(self.now, self.link, Direction::FromLink, packet);
        if let Verdict::Taken(reason) = verdict {
            self.taken.push(reason);
        }
        // Or goes on with another acknowledgement, or echo.
        let is_own_answer = matches!(
            verdict,
            Verdict::Taken(
                TakeReason::AnswersProbe
                    | TakeReason::Gathered
                    | TakeReason::Freshened
                    | TakeReason::Supervised
            )
        );
        assert!(
            verdict == Verdict::Pass || is_own_answer,
            "what has crossed the link is passed on but for answers to probes"
        );
    }

    /// Why segments of the far host were taken since the last call.
    pub(crate) fn taken(&mut self) -> Vec<TakeReason> {
        std::mem::take(&mut self.taken)
    }

    /// Everything that the gateway has sent since the last call, but for questions.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        let all = self.sent_with_questions().into_iter();
        all.filter(|sent| *sent != Sent::Question).collect()
    }

    /// Everything that the gateway has sent since the last call, but for questions and errors to the far host.
    pub(crate) fn told(&mut self) -> Vec<Sent> {
        let all = self.sent().into_iter();
        all.filter(|sent| !matches!(sent, Sent::WakesFar(_)))
            .collect()
    }

    /// Everything that the gateway has sent since the last call.
    pub(crate) fn sent_with_questions(&mut self) -> Vec<Sent> {
        self.sent_with_reasons()
            .into_iter()
            .map(|(sent, _)| sent)
            .collect()
    }

    /// The near host's clock, in milliseconds.
    pub(crate) fn clock(&self) -> u32 {
        self.clock
    }

    /// The timestamps that segments echo which the gateway has given to the near host since the last call, and why.
    pub(crate) fn heard_echoes(&mut self) -> Vec<(u32, SendReason)> {
        let sent = std::iter::from_fn(|| self.gateway.poll_transmit());
        let heard = sent.filter(|transmit| transmit.direction == Direction::FromLink);
        let echo = heard.filter_map(|transmit| {
            let stamps = transmit.packet.tcp()?.options.timestamps?;
            Some((stamps.echo, transmit.reason))
        });
        echo.collect()
    }

    /// The timestamps that segments echo which the gateway has sent to the far host since the last call.
    pub(crate) fn echoes_told(&mut self) -> Vec<u32> {
        let sent = std::iter::from_fn(|| self.gateway.poll_transmit());
        let told = sent.filter(|transmit| transmit.direction == Direction::ToLink);
        told.filter_map(|transmit| Some(transmit.packet.tcp()?.options.timestamps?.echo))
            .collect()
    }

    /// The near host's ports of all segments that the gateway has sent since the last call.
    pub(crate) fn sent_ports(&mut self) -> Vec<u16> {
        std::iter::from_fn(|| self.gateway.poll_transmit())
            .filter(|transmit| transmit.reason != SendReason::Question)
            .filter_map(|transmit| transmit.packet.tcp().map(|tcp| tcp.source_port))
            .collect()
    }

    pub(crate) fn sent_with_reasons(&mut self) -> Vec<(Sent, SendReason)> {
        std::iter::from_fn(|| self.gateway.poll_transmit())
            .map(|transmit| {
                let sent = match transmit.reason {
                    SendReason::Question => Sent::Question,
                    _ => read(&transmit.packet, transmit.direction),
                };
                let sent = match (sent, transmit.reason) {
                    (Sent::Ack(ack), SendReason::Untimed) => Sent::Untimed(ack),
                    (sent, _) => sent,
                };
                (sent, transmit.reason)
            })
            .collect()
    }

    pub(crate) fn resumed_after(&mut self) -> Option<Duration> {
        std::iter::from_fn(|| self.gateway.poll_event()).find_map(|event| match event {
            Event::Resumed { after, .. } => Some(after),
            _ => None,
        })
    }

    fn near_header(&self, seq: SeqNumber, ack: u32) -> TcpHeader {
        let timestamps = Some(Timestamps {
            value: self.clock,
            echo: 0,
        });
        TcpHeader {
            source_port: self.port,
            destination_port: 80,
            seq,
            ack: SeqNumber(FAR_ISN) + 1 + ack,
            flags: TcpFlags::ACK,
            window: u16::MAX,
            options: TcpOptions {
                timestamps,
                window_scale: Some(7),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        }
    }

    fn far_header(&self) -> TcpHeader {
        TcpHeader {
            source_port: 80,
            destination_port: self.port,
            seq: SeqNumber(FAR_ISN) + 1,
            ack: near_seq(0),
            flags: TcpFlags::ACK,
            window: u16::MAX,
            options: TcpOptions {
                window_scale: Some(7),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        }
    }

    fn ip(&self, source: u8, destination: u8) -> IpHeader {
        ip_over(self.version, source, destination)
    }

    fn near_packet(&self, header: TcpHeader, payload_len: u32) -> Packet {
        Packet::modelled_tcp(
            self.ip(2, self.far),
            header,
            ModelledPayload::default(),
            payload_len,
        )
    }

    fn far_packet(&self, header: TcpHeader, payload_len: u32) -> Packet {
        Packet::modelled_tcp(
            self.ip(self.far, 2),
            header,
            ModelledPayload::default(),
            payload_len,
        )
    }
}

/// A segment whose TCP header is another one.
pub(crate) fn with(packet: &Packet, change: impl FnOnce(&mut TcpHeader)) -> Packet {
    let mut tcp = packet.tcp().expect("a segment").clone();
    change(&mut tcp);
    let header = packet.header();
    Packet::modelled_tcp(
        header.ip,
        tcp,
        ModelledPayload::default(),
        header.payload_len,
    )
}

fn near_seq(byte: u32) -> SeqNumber {
    SeqNumber(NEAR_ISN) + 1 + byte
}

pub(crate) fn ip(source: u8, destination: u8) -> IpHeader {
    ip_over(Version::V4, source, destination)
}

fn ip_over(version: Version, source: u8, destination: u8) -> IpHeader {
    IpHeader {
        source: version.address(source),
        destination: version.address(destination),
        hop_limit: 64,
        traffic_class: 0,
        identification: 0,
    }
}

fn read(packet: &Packet, direction: Direction) -> Sent {
    if let Transport::IcmpError(error) = &packet.header().transport {
        if let Some(mtu) = error.mtu {
            return Sent::TooBig(mtu);
        }
        let seq = error
            .quoted
            .and_then(|quoted| quoted.seq)
            .expect("a segment");
        return match direction {
            Direction::FromLink => Sent::WakesNear((seq - NEAR_ISN - 1).0),
            Direction::ToLink => Sent::WakesFar((seq - FAR_ISN - 1).0),
        };
    }
    let Some(tcp) = packet.tcp() else {
        return Sent::Datagram(packet.header().payload_len);
    };
    if tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
        return Sent::Control(tcp.flags);
    }
    let len = packet.header().payload_len;
    match direction {
        Direction::FromLink => Sent::Rereceived((tcp.ack - NEAR_ISN - 1).0),
        Direction::ToLink if len == 0 => Sent::Ack((tcp.ack - FAR_ISN - 1).0),
        Direction::ToLink => {
            let stamp = tcp
                .options
                .timestamps
                .map_or(0, |timestamps| timestamps.value);
            Sent::Data((tcp.seq - NEAR_ISN - 1).0, len, stamp)
        }
    }
}
