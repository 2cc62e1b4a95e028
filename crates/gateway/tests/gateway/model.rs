//! Arbitrary segments and outages against a reference model.
//!
//! The model is a plain list of what the gateway was shown and what became of it. Whatever
//! happens, a gateway sends nothing that it was not shown, nothing while the link is down,
//! nothing that is acknowledged; and what `hold` has taken, it delivers.

use crate::path::{LITTLE, MSS, Path};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind, SendReason, TakeReason};
use outlast_wire::{Packet, TcpFlags, TcpHeader, Transport};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// The near host sends this segment, for the first time or again.
    Data(u32),
    /// The near host sends a short one from the same place.
    ShortData(u32),
    Datagram(u32),
    NearAck(u32),
    FarAck(u32),
    FarSack(u32, u32),
    FarData(u32),
    /// Numbers that no honest host would use now.
    Spoofed(u32),
    Down,
    Up,
    /// The link reports the segment as dropped.
    Dropped(u32),
    WaitMs(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0u32..30).prop_map(Op::Data),
        1 => (0u32..30).prop_map(Op::ShortData),
        2 => (1u32..200).prop_map(Op::Datagram),
        2 => (0u32..8).prop_map(Op::NearAck),
        4 => (0u32..30).prop_map(Op::FarAck),
        2 => (0u32..30, 1u32..30).prop_map(|(ack, block)| Op::FarSack(ack, block)),
        2 => (0u32..8).prop_map(Op::FarData),
        1 => any::<u32>().prop_map(Op::Spoofed),
        3 => Just(Op::Down),
        3 => Just(Op::Up),
        3 => (0u32..30).prop_map(Op::Dropped),
        6 => (1u64..400).prop_map(Op::WaitMs),
    ]
}

fn mechanism() -> impl Strategy<Value = PathMechanismKind> {
    prop_oneof![
        4 => Just(PathMechanismKind::Hold),
        1 => Just(PathMechanismKind::RetransmissionCache),
        1 => prop_oneof![
            Just(Level::One), Just(Level::Two), Just(Level::Three), Just(Level::Four)
        ].prop_map(PathMechanismKind::SmartLink),
    ]
}

/// The longest wait of an [`Op`].
const LONGEST_WAIT: Duration = Duration::from_millis(400);

/// What the model remembers.
struct Model {
    path: Path,
    is_down: bool,
    shown_to_link: Vec<Packet>,
    shown_from_link: Vec<Packet>,
    /// First byte and length of data taken, and not sent since.
    owed: Vec<(u32, u32)>,
    owed_datagrams: Vec<(u32, Instant)>,
    /// Highest byte the near host has sent, and highest that the far host has acknowledged.
    highest: u32,
    acked: u32,
    probes: u32,
    /// Questions and ICMP errors since the link came back last.
    questions: u32,
    wakes: u32,
}

impl Model {
    fn new(mechanism: PathMechanismKind, limits: Limits) -> Self {
        let mut path = Path::with_limits(mechanism, limits);
        path.open();
        path.after_ms(1_000);
        Self::on(path)
    }

    /// A model whose gateway also learns of outages from silence.
    fn listening(mechanism: PathMechanismKind) -> Self {
        Self::on(Path::listening(mechanism, SilenceConfig::default()))
    }

    fn on(path: Path) -> Self {
        let mut model = Self {
            path,
            is_down: false,
            shown_to_link: Vec::new(),
            shown_from_link: Vec::new(),
            owed: Vec::new(),
            owed_datagrams: Vec::new(),
            highest: 0,
            acked: 0,
            probes: 0,
            questions: 0,
            wakes: 0,
        };
        // An established connection has a handshake acknowledgement that may be sent again.
        let ack = model.path.near_ack_packet(0);
        model.show(&ack);
        model
    }

    fn show(&mut self, packet: &Packet) -> Option<TakeReason> {
        self.shown_to_link.push(packet.clone());
        self.path.near_sends(packet)
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Data(n) => self.data(n * MSS, MSS),
            Op::ShortData(n) => self.data(n * MSS, 10),
            Op::Datagram(len) => {
                let packet = self.path.datagram_packet(len);
                if self.show(&packet).is_some() {
                    self.owed_datagrams.push((len, self.path.now()));
                }
            }
            Op::NearAck(n) => {
                let packet = self.path.near_ack_packet(n * MSS);
                self.show(&packet);
            }
            Op::FarAck(n) => {
                let ack = (n * MSS).min(self.highest);
                self.acked = self.acked.max(ack);
                self.hear(&self.path.far_packet_acking(ack, &[]));
            }
            Op::FarSack(n, block) => {
                let ack = (n * MSS).min(self.highest);
                self.acked = self.acked.max(ack);
                let (left, right) = (ack + MSS, ack + MSS * (1 + block));
                let blocks = [(left.min(self.highest), right.min(self.highest))];
                // What is selectively acknowledged has arrived.
                let [(left, right)] = blocks;
                self.owed
                    .retain(|(first, len)| !(*first >= left && first + len <= right));
                self.hear(&self.path.far_packet_acking(ack, &blocks));
            }
            Op::FarData(n) => {
                let packet = self.path.far_data_packet(n * MSS, MSS);
                self.hear(&packet);
            }
            Op::Spoofed(first) => {
                let len = 100;
                let packet = self.path.data_packet(first.max(200_000_000), len);
                self.show(&packet);
            }
            Op::Down => {
                self.path.down();
                self.is_down = true;
            }
            Op::Up => {
                self.path.up();
                self.is_down = false;
                (self.questions, self.wakes) = (0, 0);
            }
            Op::Dropped(n) => self.path.dropped(n * MSS, MSS),
            Op::WaitMs(ms) => self.path.after_ms(ms),
        }
        self.owed.retain(|(first, len)| first + len > self.acked);
    }

    fn hear(&mut self, packet: &Packet) {
        self.shown_from_link.push(packet.clone());
        self.path.far_sends(packet);
    }

    fn data(&mut self, first: u32, len: u32) {
        let packet = self.path.data_packet(first, len);
        self.highest = self.highest.max(first + len);
        match self.show(&packet) {
            Some(TakeReason::LinkDown | TakeReason::BehindKept | TakeReason::AwaitsShare) => {
                self.owed.push((first, len));
            }
            Some(TakeReason::JustResent | TakeReason::FullQueue | TakeReason::Freshened) | None => {
            }
            Some(
                TakeReason::AnswersProbe
                | TakeReason::Gathered
                | TakeReason::StaleEcho
                | TakeReason::Supervised,
            ) => panic!("data is taken for no such reason"),
        }
    }

    /// An ICMP error quotes what its receiver has sent and its peer has not acknowledged.
    fn check_wake(&mut self, to: Direction, packet: &Packet) -> Result<(), TestCaseError> {
        let Transport::IcmpError(error) = &packet.header().transport else {
            return Err(TestCaseError::fail("no error"));
        };
        let quoted = error.quoted.as_ref().expect("a segment");
        prop_assert_eq!(quoted.source, packet.header().ip.destination);
        let seq = quoted.seq.expect("a segment");
        match to {
            Direction::FromLink => prop_assert_eq!(seq, self.path.near_number(self.acked)),
            Direction::ToLink => {
                let mut acks = self.shown_to_link.iter().filter_map(Packet::tcp);
                prop_assert!(
                    acks.any(|tcp| tcp.ack == seq),
                    "never acknowledged: {seq:?}"
                );
            }
        }
        self.wakes += 1;
        prop_assert!(self.wakes <= 2 * 3 * 15, "too many after one return");
        Ok(())
    }

    /// A minute in which the far host does not answer: it has one turn a second then, and every other one may go to what
    /// it lacks first. So all of thirty segments have had theirs.
    fn wait_for_turns(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..150 {
            self.apply(Op::WaitMs(400));
            self.check_sent()?;
        }
        Ok(())
    }

    /// Everything that the gateway sends now was shown to it, and makes sense.
    fn check_sent(&mut self) -> Result<(), TestCaseError> {
        while let Some(transmit) = self.path.gateway.poll_transmit() {
            let onto_link = transmit.direction == Direction::ToLink;
            prop_assert!(!(self.is_down && onto_link), "sent while the link is down");
            if transmit.reason == SendReason::Unreachable {
                self.check_wake(transmit.direction, &transmit.packet)?;
                continue;
            }
            if matches!(
                transmit.reason,
                SendReason::Probe | SendReason::Question | SendReason::Overdue
            ) {
                let tcp = transmit.packet.tcp().expect("a keep-alive");
                prop_assert_eq!(tcp.flags, TcpFlags::ACK);
                prop_assert_eq!(transmit.packet.sequence_len(), 0);
                prop_assert_eq!(tcp.seq + 1, self.path.near_number(self.acked));
                if transmit.reason == SendReason::Probe {
                    self.probes += 1;
                    continue;
                }
                self.questions += 1;
                prop_assert!(self.questions <= 3, "asked too often after one return");
                continue;
            }
            if transmit.reason == SendReason::Untimed {
                let tcp = transmit.packet.tcp().expect("an acknowledgement");
                prop_assert_eq!(tcp.flags, TcpFlags::ACK);
                prop_assert_eq!(tcp.options.timestamps, None);
                let mut shown = self.shown_to_link.iter();
                prop_assert!(
                    shown.any(|packet| packet.tcp().is_some_and(|one| one.ack == tcp.ack)),
                    "never acknowledged: {:?}",
                    tcp.ack
                );
                continue;
            }
            let shown = match transmit.direction {
                Direction::ToLink => &self.shown_to_link,
                Direction::FromLink => &self.shown_from_link,
            };
            let is_known = |one: &Packet| *one == transmit.packet || is_part(&transmit.packet, one);
            prop_assert!(
                shown.iter().any(is_known),
                "never shown: {:?}",
                transmit.packet
            );
            let len = transmit.packet.header().payload_len;
            if transmit.packet.tcp().is_none() {
                // What is sent is read at the end of a wait.
                let most = Limits::default().other_age + LONGEST_WAIT;
                let now = self.path.now();
                let is_it = |owed: &(u32, Instant)| owed.0 == len && now.since(owed.1) <= most;
                let place = self.owed_datagrams.iter().position(is_it);
                prop_assert!(place.is_some(), "sent twice, out of order or too late");
                self.owed_datagrams.drain(..=place.unwrap_or(0));
            } else if len > 0 {
                let first = self.path.first_byte(&transmit.packet);
                prop_assert!(first + len > self.acked, "acknowledged: {first}+{len}");
                self.owed = self
                    .owed
                    .iter()
                    .flat_map(|owed| without(*owed, (first, len)))
                    .collect();
            }
        }
        Ok(())
    }
}

/// True if `part` is some of what `whole` carries, as its host would have sent it.
fn is_part(part: &Packet, whole: &Packet) -> bool {
    let (Some(a), Some(b)) = (part.tcp(), whole.tcp()) else {
        return false;
    };
    let offset = a.seq.distance_from(b.seq);
    let header = TcpHeader {
        seq: b.seq,
        ..a.clone()
    };
    let end = i64::from(offset) + i64::from(part.header().payload_len);
    header == *b && offset >= 0 && end <= i64::from(whole.header().payload_len)
}

/// The rest of a segment, first byte and length, when another has gone out.
fn without((first, len): (u32, u32), (gone, gone_len): (u32, u32)) -> Vec<(u32, u32)> {
    let end = first + len;
    let before = (first, gone.clamp(first, end) - first);
    let behind_from = (gone + gone_len).clamp(first, end);
    let behind = (behind_from, end - behind_from);
    if gone >= end || gone + gone_len <= first {
        return vec![(first, len)];
    }
    [before, behind]
        .into_iter()
        .filter(|(_, len)| *len > 0)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn sends_what_it_was_shown_and_delivers_what_it_took(
        mechanism in mechanism(),
        ops in proptest::collection::vec(op(), 1..150),
    ) {
        let mut model = Model::new(mechanism, Limits::default());
        for op in ops {
            model.apply(op);
            model.check_sent()?;
        }
        model.apply(Op::Up);
        model.wait_for_turns()?;
        prop_assert_eq!(&model.owed, &[], "taken and never sent");
        // All acknowledged: nothing is kept, and nobody is kicked.
        model.acked = model.highest;
        let all = model.path.far_packet_acking(model.highest, &[]);
        model.hear(&all);
        model.check_sent()?;
        if mechanism == PathMechanismKind::Hold {
            prop_assert!(model.path.gateway.held() <= LITTLE);
        }
    }

    #[test]
    fn asks_within_its_budget_and_still_delivers_what_it_took(
        mechanism in mechanism(),
        ops in proptest::collection::vec(op(), 1..150),
    ) {
        let mut model = Model::listening(mechanism);
        let began = model.path.now();
        for op in ops {
            model.apply(op);
            model.check_sent()?;
        }
        model.apply(Op::Up);
        model.wait_for_turns()?;
        let gap = Duration::from_millis(20);
        let most = 1 + model.path.now().since(began).as_millis() / gap.as_millis();
        prop_assert!(u128::from(model.probes) <= most);
        prop_assert_eq!(&model.owed, &[], "taken and never sent");
        model.acked = model.highest;
        let all = model.path.far_packet_acking(model.highest, &[]);
        model.hear(&all);
        model.check_sent()?;
        prop_assert_eq!(model.path.gateway.silent_links().count(), 0);
        let probes = model.probes;
        model.apply(Op::WaitMs(10_000));
        model.check_sent()?;
        prop_assert_eq!(model.probes, probes, "everything is acknowledged");
    }

    #[test]
    fn stays_within_tight_caps(
        mechanism in mechanism(),
        held_per_flow in 500u64..20_000,
        held_in_all in 500u64..20_000,
        ops in proptest::collection::vec(op(), 1..150),
    ) {
        let limits = Limits {
            held_per_flow: ByteCount(held_per_flow),
            held_in_all: ByteCount(held_in_all),
            other_packets: 3,
            other_bytes: ByteCount(300),
            ..Limits::default()
        };
        let mut model = Model::new(mechanism, limits);
        for op in ops {
            model.apply(op);
            prop_assert!(model.path.gateway.held() <= limits.held_in_all);
            prop_assert!(model.path.gateway.held_other() <= limits.other_bytes);
        }
    }
}
