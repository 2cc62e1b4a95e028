//! Strangers: those who guess, those who send again what they have seen, and those who send what
//! no host takes.
//!
//! Two gateways are shown the same connection; one of them is shown a stranger's packets, too. What
//! it keeps, sends, takes and acknowledges must be the same to the byte and the microsecond. The
//! link's rate is so high that packets of nobody cost no time on it: that they fill the link is the
//! link's affair.
//!
//! What is left to a stranger, and bounded: one who repeats a host's *newest* segment cannot be
//! told from the host. See [`a_copy_of_the_newest_segment_costs_no_more_than_a_retransmission`]. And
//! his SYN may be that of a client that has forgotten the connection: it waits for the link among what
//! belongs to no connection. So does what he sends of connections that do not exist, in the near hosts'
//! names.

use crate::path::{LINK, MSS, Path, with};
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_gateway::gateway::{GatewayConfig, SilenceConfig, Transmit};
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, Verdict};
use outlast_wire::{ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;

/// Near ports of connections that do not exist.
const FIRST_MADE_UP: u16 = 30_000;

/// What the hosts and the link do.
#[derive(Clone, Copy, Debug)]
enum Honest {
    Data(u32),
    NearAck(u32),
    FarAck(u32),
    FarData(u32),
    Down,
    Up,
    Dropped(u32),
    WaitMs(u64),
}

/// What a stranger does.
#[derive(Clone, Copy, Debug)]
enum Hostile {
    /// Guesses: the numbers are these far from what fits, which is farther than any window.
    Blind(Direction, TcpFlags, u32, u32, u32),
    /// A SYN or a RST with a guessed number.
    Control(Direction, TcpFlags, u32),
    /// Sends what it has seen, as far as that is out of date.
    Replay(Direction, usize),
    /// Knows the numbers, and writes a wrong checksum.
    Damaged(Direction, u32, u32),
    /// Knows the numbers, and sends beyond the window that was offered.
    BeyondWindow(Direction, u32),
    /// Knows the numbers, and acknowledges what was never sent.
    AcknowledgesUnsent(Direction, u32),
    /// Flags that no host sends.
    Nonsense(Direction, TcpFlags),
    /// Connections that do not exist, from one side.
    MadeUp(Direction, u16, u32, u32, u32),
}

fn honest() -> impl Strategy<Value = Honest> {
    prop_oneof![
        10 => (0u32..20).prop_map(Honest::Data),
        2 => (0u32..8).prop_map(Honest::NearAck),
        4 => (0u32..20).prop_map(Honest::FarAck),
        2 => (0u32..8).prop_map(Honest::FarData),
        3 => Just(Honest::Down),
        3 => Just(Honest::Up),
        2 => (0u32..20).prop_map(Honest::Dropped),
        6 => (1u64..500).prop_map(Honest::WaitMs),
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(ToLink), Just(FromLink)]
}

/// Far from everything that fits: no window is larger than 2^30, and those here are 2^23.
fn guess() -> impl Strategy<Value = u32> {
    (1u32 << 25)..(u32::MAX - (1 << 25))
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let flags = prop_oneof![
        Just(TcpFlags::ACK),
        Just(TcpFlags::ACK | TcpFlags::PSH),
        Just(TcpFlags::ACK | TcpFlags::FIN),
        Just(TcpFlags::RST | TcpFlags::ACK),
        Just(TcpFlags::SYN | TcpFlags::ACK),
    ];
    let control = prop_oneof![
        Just(TcpFlags::SYN),
        Just(TcpFlags::RST),
        Just(TcpFlags::RST | TcpFlags::ACK),
        Just(TcpFlags::SYN | TcpFlags::ACK),
    ];
    let nonsense = prop_oneof![
        Just(TcpFlags(0)),
        Just(TcpFlags::SYN | TcpFlags::FIN),
        Just(TcpFlags::SYN | TcpFlags::RST),
        Just(TcpFlags::FIN),
        Just(TcpFlags::PSH),
        Just(TcpFlags::FIN | TcpFlags::RST | TcpFlags::ACK),
    ];
    prop_oneof![
        3 => (direction(), flags, guess(), guess(), 0u32..1_400)
            .prop_map(|(way, flags, seq, ack, len)| Hostile::Blind(way, flags, seq, ack, len)),
        2 => (direction(), control, guess())
            .prop_map(|(way, flags, seq)| Hostile::Control(way, flags, seq)),
        4 => (direction(), any::<prop::sample::Index>())
            .prop_map(|(way, index)| Hostile::Replay(way, index.index(64))),
        3 => (direction(), 0u32..20, 0u32..1_400)
            .prop_map(|(way, n, len)| Hostile::Damaged(way, n, len)),
        1 => (direction(), 1u32..1_000).prop_map(|(way, by)| Hostile::BeyondWindow(way, by)),
        1 => (direction(), 1u32..1 << 30)
            .prop_map(|(way, by)| Hostile::AcknowledgesUnsent(way, by)),
        1 => (direction(), nonsense).prop_map(|(way, flags)| Hostile::Nonsense(way, flags)),
    ]
}

fn made_up() -> impl Strategy<Value = Hostile> {
    (
        direction(),
        0u16..20,
        any::<u32>(),
        any::<u32>(),
        0u32..1_400,
    )
        .prop_map(|(way, port, seq, ack, len)| Hostile::MadeUp(way, port, seq, ack, len))
}

fn mechanism() -> impl Strategy<Value = PathMechanismKind> {
    prop::sample::select(PathMechanismKind::ALL.to_vec())
}

/// Longer than what passes takes on a link that is so fast.
const A_MOMENT: Duration = Duration::from_micros(1);
/// So no step ever falls on a deadline, which the stranger's packets move by some nanoseconds.
const OFF_THE_BEAT: Duration = Duration::from_nanos(501);

/// Either half of a script is the hosts', the other the stranger's.
fn script(
    hostile: impl Strategy<Value = Hostile> + 'static,
) -> impl Strategy<Value = Vec<Result<Honest, Hostile>>> {
    let hostile = hostile.boxed();
    let step = prop_oneof![honest().prop_map(Ok), hostile.prop_map(Err)];
    prop::collection::vec(step, 1..150)
}

/// Two gateways that see the same connection, one of them with a stranger.
struct Twins {
    alone: Path,
    attacked: Path,
    seen: [Vec<Packet>; 2],
    /// Highest bytes that the near and the far host have sent, and had acknowledged.
    sent: [u32; 2],
    acked: [u32; 2],
    /// Bytes of the stranger's SYNs that were taken.
    strange_bytes: u64,
}

const fn index(direction: Direction) -> usize {
    match direction {
        ToLink => 0,
        FromLink => 1,
    }
}

impl Twins {
    fn new(mechanism: PathMechanismKind, silence: Option<SilenceConfig>) -> Self {
        let path = || {
            let config = GatewayConfig {
                mechanism,
                silence,
                ..GatewayConfig::default()
            };
            let rate = BitRate::from_bits_per_second(1 << 60);
            let mut path = Path::with_config(config, rate);
            path.open();
            path.after_ms(1_000);
            path
        };
        Self {
            alone: path(),
            attacked: path(),
            seen: [Vec::new(), Vec::new()],
            sent: [0; 2],
            acked: [0; 2],
            strange_bytes: 0,
        }
    }

    fn step(&mut self, step: Result<Honest, Hostile>) -> Result<(), TestCaseError> {
        match step {
            Ok(honest) => self.honest(honest)?,
            Err(hostile) => self.hostile(hostile),
        }
        self.both(|path| path.after(A_MOMENT))?;
        self.compare()
    }

    fn honest(&mut self, step: Honest) -> Result<(), TestCaseError> {
        let (direction, packet) = match step {
            Honest::Data(n) => {
                self.sent[0] = self.sent[0].max((n + 1) * MSS);
                (ToLink, self.alone.data_packet(n * MSS, MSS))
            }
            Honest::NearAck(n) => {
                self.acked[1] = self.acked[1].max((n * MSS).min(self.sent[1]));
                (ToLink, self.near_ack())
            }
            Honest::FarAck(n) => {
                self.acked[0] = self.acked[0].max((n * MSS).min(self.sent[0]));
                (FromLink, self.far_ack())
            }
            Honest::FarData(n) => {
                self.sent[1] = self.sent[1].max((n + 1) * MSS);
                let packet = self.alone.far_data_packet(n * MSS, MSS);
                let ack = self.alone.near_number(self.acked[0]);
                (FromLink, with(&packet, |tcp| tcp.ack = ack))
            }
            Honest::Down => return self.both(Path::down),
            Honest::Up => return self.both(Path::up),
            Honest::Dropped(n) => return self.both(|path| path.dropped(n * MSS, MSS)),
            Honest::WaitMs(ms) => {
                return self.both(|path| {
                    path.after_ms(ms);
                    path.after(OFF_THE_BEAT);
                });
            }
        };
        self.seen[index(direction)].push(packet.clone());
        let verdicts = [&mut self.alone, &mut self.attacked].map(|path| {
            let now = path.now();
            path.gateway.handle_packet(now, LINK, direction, &packet)
        });
        prop_assert_eq!(verdicts[0], verdicts[1]);
        Ok(())
    }

    fn both(&mut self, act: impl Fn(&mut Path)) -> Result<(), TestCaseError> {
        act(&mut self.alone);
        act(&mut self.attacked);
        Ok(())
    }

    fn near_ack(&self) -> Packet {
        let seq = self.alone.near_number(self.sent[0]);
        with(&self.alone.near_ack_packet(self.acked[1]), |tcp| {
            tcp.seq = seq;
        })
    }

    fn far_ack(&self) -> Packet {
        let seq = self.alone.far_number(self.sent[1]);
        let packet = self.alone.far_packet_acking(self.acked[0], &[]);
        with(&packet, |tcp| tcp.seq = seq)
    }

    /// What the host that sends in `direction` could send next: its newest acknowledgement.
    fn newest(&self, direction: Direction) -> Packet {
        match direction {
            ToLink => self.near_ack(),
            FromLink => self.far_ack(),
        }
    }

    fn hostile(&mut self, step: Hostile) {
        let (direction, packet) = match step {
            Hostile::Blind(direction, flags, seq, ack, len) => {
                let newest = self.newest(direction);
                let guessed = with(&newest, |tcp| {
                    (tcp.flags, tcp.seq, tcp.ack) = (flags, tcp.seq + seq, tcp.ack + ack);
                });
                let len = if flags.contains(TcpFlags::RST) {
                    0
                } else {
                    len
                };
                (direction, lengthened(&guessed, len))
            }
            Hostile::Control(direction, flags, seq) => {
                let newest = self.newest(direction);
                let guessed = with(&newest, |tcp| (tcp.flags, tcp.seq) = (flags, tcp.seq + seq));
                (direction, guessed)
            }
            Hostile::Replay(direction, place) => {
                let old = |packet: &&Packet| self.is_out_of_date(direction, packet);
                let Some(packet) = self.seen[index(direction)].iter().filter(old).nth(place) else {
                    return;
                };
                (direction, packet.clone())
            }
            Hostile::Damaged(direction, n, len) => {
                let newest = match direction {
                    ToLink => with(&self.near_ack(), |tcp| {
                        tcp.seq = self.alone.near_number(n * MSS);
                    }),
                    FromLink => self.far_ack(),
                };
                (direction, damaged(&lengthened(&newest, len)))
            }
            Hostile::BeyondWindow(direction, by) => {
                // Both hosts offer 65,535 bytes, times 128.
                let beyond = (u32::from(u16::MAX) << 7) + 1 + by;
                let newest = self.newest(direction);
                let allowed = self.acked[index(direction)];
                let seq = match direction {
                    ToLink => self.alone.near_number(allowed),
                    FromLink => self.alone.far_number(allowed),
                };
                let packet = with(&newest, |tcp| tcp.seq = seq + beyond);
                (direction, lengthened(&packet, 100))
            }
            Hostile::AcknowledgesUnsent(direction, by) => {
                let sent = match direction {
                    ToLink => self.alone.far_number(self.sent[1]),
                    FromLink => self.alone.near_number(self.sent[0]),
                };
                // With exactly the number that is next of its host's it would be believed that the connection has
                // gone on unseen: nobody but who reads along knows that number.
                let newest = self.newest(direction);
                let packet = with(&newest, |tcp| (tcp.seq, tcp.ack) = (tcp.seq + 1, sent + by));
                (direction, packet)
            }
            Hostile::Nonsense(direction, flags) => {
                let newest = self.newest(direction);
                (direction, with(&newest, |tcp| tcp.flags = flags))
            }
            Hostile::MadeUp(direction, port, seq, ack, len) => {
                let newest = self.newest(direction);
                let packet = with(&newest, |tcp| {
                    let near_port = match direction {
                        ToLink => &mut tcp.source_port,
                        FromLink => &mut tcp.destination_port,
                    };
                    *near_port = FIRST_MADE_UP + port;
                    (tcp.seq, tcp.ack) = (SeqNumber(seq), SeqNumber(ack));
                });
                (direction, lengthened(&packet, len))
            }
        };
        let now = self.attacked.now();
        let gateway = &mut self.attacked.gateway;
        let verdict = gateway.handle_packet(now, LINK, direction, &packet);
        if direction == ToLink && is_syn(&packet) && verdict != Verdict::Pass {
            self.strange_bytes += u64::from(packet.total_len());
            return;
        }
        if direction == ToLink && is_made_up(&packet) && packet.sequence_len() > 0 {
            // It may be of a connection that is older than the gateway: it waits for the link as a
            // datagram does.
            self.strange_bytes += u64::from(packet.total_len());
            return;
        }
        assert_eq!(verdict, Verdict::Pass, "{step:?}: {packet:?}");
    }

    /// Whether its host has acknowledged more since, and its peer all that is in it.
    fn is_out_of_date(&self, direction: Direction, packet: &Packet) -> bool {
        let own = index(direction);
        let tcp = packet.tcp().expect("a segment");
        let (sent, acked) = match direction {
            ToLink => (
                self.alone.near_number(self.acked[own]),
                self.alone.far_number(self.acked[1 - own]),
            ),
            FromLink => (
                self.alone.far_number(self.acked[own]),
                self.alone.near_number(self.acked[1 - own]),
            ),
        };
        tcp.ack.before(acked) && (tcp.seq + packet.sequence_len()).at_or_before(sent)
    }

    fn compare(&mut self) -> Result<(), TestCaseError> {
        let [alone, mut attacked] = [&mut self.alone, &mut self.attacked].map(sent);
        attacked.retain(|(_, packet, _)| !is_syn(packet) && !is_made_up(packet));
        prop_assert_eq!(alone, attacked);
        let [alone, attacked] = [&self.alone, &self.attacked].map(|path| path.gateway.held());
        prop_assert_eq!(alone, attacked);
        let [alone, attacked] = [&self.alone, &self.attacked].map(|path| path.gateway.held_other());
        prop_assert!(attacked.0 <= alone.0 + self.strange_bytes);
        let [alone, attacked] = [&self.alone, &self.attacked].map(|path| {
            let counters = path.gateway.counters();
            (counters.freezes, counters.resumes, counters.kicks_repeated)
        });
        prop_assert_eq!(alone, attacked);
        Ok(())
    }
}

/// Not the answer to one. The hosts send none: their connection was open before.
fn is_syn(packet: &Packet) -> bool {
    packet.tcp().is_some_and(|tcp| tcp.flags == TcpFlags::SYN)
}

/// Of a connection that does not exist.
fn is_made_up(packet: &Packet) -> bool {
    let is_made_up = |tcp: &TcpHeader| tcp.source_port >= FIRST_MADE_UP;
    packet.tcp().is_some_and(is_made_up)
}

fn sent(path: &mut Path) -> Vec<(Direction, Packet, SendReason)> {
    let all = std::iter::from_fn(|| path.gateway.poll_transmit());
    all.map(|t: Transmit| (t.direction, t.packet, t.reason))
        .collect()
}

fn lengthened(packet: &Packet, len: u32) -> Packet {
    let tcp = packet.tcp().expect("a segment").clone();
    Packet::modelled_tcp(packet.header().ip, tcp, ModelledPayload::default(), len)
}

/// Where the checksum of TCP begins in a packet of IPv4.
const CHECKSUM: usize = 20 + 16;

/// `packet` as bytes, with the last byte changed on the way.
fn damaged(packet: &Packet) -> Packet {
    let mut bytes = packet.to_bytes().to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x10;
    let mut damaged = Packet::parse(bytes.clone().into()).expect("its headers are whole");
    if damaged.has_partial_checksum() {
        // By chance, one time in 65,536, it looks as if a network card were to fill the sum in.
        // Another bit than above: the same one could make the sum right again.
        bytes[CHECKSUM] ^= 0x01;
        damaged = Packet::parse(bytes.into()).expect("its headers are whole");
    }
    assert!(!damaged.checksums_ok() && !damaged.has_partial_checksum());
    damaged
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_stranger_changes_nothing_of_what_is_done_for_a_connection(
        mechanism in mechanism(),
        steps in script(hostile()),
    ) {
        let mut twins = Twins::new(mechanism, None);
        for step in steps {
            twins.step(step)?;
        }
        twins.step(Ok(Honest::Up))?;
        twins.step(Ok(Honest::WaitMs(60_000)))?;
    }

    #[test]
    fn nor_where_silence_tells_that_the_link_is_away(
        mechanism in mechanism(),
        steps in script(hostile()),
    ) {
        let mut twins = Twins::new(mechanism, Some(SilenceConfig::default()));
        for step in steps {
            twins.step(step)?;
        }
        twins.step(Ok(Honest::Up))?;
        twins.step(Ok(Honest::WaitMs(60_000)))?;
    }

    /// Whoever makes connections up from one side of the link has nothing done for them. (With a SYN
    /// he may have that kept during an outage, like a datagram: it is one.)
    #[test]
    fn connections_that_do_not_exist_get_nothing(
        mechanism in mechanism(),
        way in direction(),
        steps in script(made_up()),
    ) {
        let mut twins = Twins::new(mechanism, None);
        for step in steps {
            match step {
                Err(Hostile::MadeUp(_, port, seq, ack, len)) => {
                    twins.step(Err(Hostile::MadeUp(way, port, seq, ack, len)))?;
                }
                other => twins.step(other)?,
            }
        }
        twins.step(Ok(Honest::Up))?;
        twins.step(Ok(Honest::WaitMs(60_000)))?;
    }
}

/// A segment that is still on its way, sent once more by whoever saw it, may be the host's own.
#[test]
fn a_copy_of_the_newest_segment_costs_no_more_than_a_retransmission() {
    for mechanism in PathMechanismKind::ALL {
        let mut path = Path::established(mechanism);
        path.down();
        let copy = path.data_packet(0, MSS);
        path.near_sends(&copy);
        path.near_sends(&copy);
        path.after_ms(1_000);
        let held = path.gateway.held();
        path.sent();
        const COPIES: usize = 1_000;
        for _ in 0..COPIES {
            path.near_sends(&copy);
        }
        let (once, now) = (held.as_u64(), path.gateway.held().as_u64());
        assert!(now <= once, "{mechanism}: {now} after {once}");
        path.after_ms(1_000);
        let answers = path.sent_with_reasons().len();
        // A zero window's probe is answered (RFC 9293, MUST-37), and a nudge comes every 250 ms.
        assert!(answers <= COPIES + 4, "{mechanism}: {answers} answers");
        path.up();
        path.after_ms(10);
        let sent = path.sent().len();
        assert!(
            sent <= 5,
            "{mechanism}: {sent} packets for one that is outstanding"
        );
    }
}
