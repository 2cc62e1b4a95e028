//! A daemon on the eBPF path takes the same links for silent as a gateway that sees every packet: the control.

use super::*;
use bytes::Bytes;
use outlast_base::time::Duration;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, InterfaceId, LinkConfig};
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind};
use outlast_linux::tracker::TrackerConfig;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{LazyLock, Mutex, PoisonError};

const INTERFACE: InterfaceId = InterfaceId(0);
const CONNECTIONS: usize = 4;
const MSS: u32 = 1_000;
/// The kernel tells of a connection no oftener than every tenth of a second.
const BEFORE_REPETITION: Duration = Duration::from_millis(120);

/// No round trip that is timed is longer, so that no answer may take longer than the shortest silence.
const LONGEST_ROUND_TRIP: Duration = Duration::from_millis(40);

/// The tracker of all cases, since it takes long to load, and when the last one ended.
static KERNEL: LazyLock<Mutex<Option<(Tracker, Instant)>>> = LazyLock::new(|| {
    let config = TrackerConfig {
        flows: 64,
        slots: 256,
        ..TrackerConfig::default()
    };
    let tracker = Tracker::load_for_trial(&config)
        .inspect_err(|error| outlast_skip::skip(error.lack().what))
        .ok();
    Mutex::new(tracker.map(|tracker| (tracker, Instant::from_millis(1_000))))
});

/// Connections three and four share their far host; one to three are behind one peer.
fn link_of(flow: &FlowKey) -> LinkId {
    let peer = if flow.near.port() == 1_003 { 9 } else { 8 };
    LinkId {
        peer: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, peer))),
        ..LinkId::of_interface(INTERFACE)
    }
}

/// One end of a connection counts on from here.
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    near_next: u32,
    near_acked: u32,
    far_next: u32,
    /// The time of data that can be timed: sent once, and not acknowledged yet.
    timed_since: Option<Instant>,
}

/// A segment of a connection.
#[derive(Clone, Copy, Debug)]
enum Segment {
    NewData,
    OldestAgain,
    AcknowledgesNothing,
    AcknowledgesOne,
    AcknowledgesAll,
    FarData,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    pause: Duration,
    connection: usize,
    segment: Segment,
}

fn step() -> impl Strategy<Value = Step> {
    let pause = prop_oneof![
        3 => 1_u64..60,
        2 => 60_u64..400,
        1 => 400_u64..3_000,
    ];
    let segment = prop_oneof![
        4 => Just(Segment::NewData),
        6 => Just(Segment::OldestAgain),
        1 => Just(Segment::AcknowledgesNothing),
        1 => Just(Segment::AcknowledgesOne),
        1 => Just(Segment::AcknowledgesAll),
        1 => Just(Segment::FarData),
    ];
    (pause, 0..CONNECTIONS, segment).prop_map(|(pause, connection, segment)| Step {
        pause: Duration::from_millis(pause),
        connection,
        segment,
    })
}

/// A daemon's part on the eBPF path, and a gateway that sees the same packets.
struct Both<'t> {
    tracker: &'t mut Tracker,
    watch: SilenceWatch,
    /// Links that are silent by the watch. Their packets are diverted: it does not look at them.
    silent: BTreeMap<LinkId, Instant>,
    control: Gateway,
    now: Instant,
    connections: [Connection; CONNECTIONS],
}

impl<'t> Both<'t> {
    fn new(tracker: &'t mut Tracker, now: Instant) -> Self {
        // After a silence it sends no data towards the link.
        let mut control = Gateway::new(GatewayConfig {
            mechanism: PathMechanismKind::SmartLink(Level::One),
            silence: Some(SilenceConfig::default()),
            seed: 1,
            ..GatewayConfig::default()
        });
        control.add_link(now, INTERFACE, LinkConfig { rate: None });
        let mut both = Self {
            tracker,
            watch: SilenceWatch::default(),
            silent: BTreeMap::new(),
            control,
            now,
            connections: [Connection::default(); CONNECTIONS],
        };
        for connection in 0..CONNECTIONS {
            both.open(connection);
        }
        both
    }

    fn flow(connection: usize) -> FlowKey {
        let port = 1_000 + u16::try_from(connection).expect("few");
        let far = if connection < 2 { 1 } else { 2 };
        FlowKey {
            near: SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), port),
            far: SocketAddr::new(Ipv4Addr::new(198, 51, 100, far).into(), 443),
        }
    }

    fn open(&mut self, connection: usize) {
        let (to, from) = (Direction::ToLink, Direction::FromLink);
        self.now += Duration::from_millis(1);
        self.cross(connection, to, TcpFlags::SYN, (0, 0), 0);
        self.now += Duration::from_millis(30);
        self.cross(connection, from, TcpFlags::SYN | TcpFlags::ACK, (0, 1), 0);
        self.connections[connection] = Connection {
            near_next: 1,
            near_acked: 1,
            far_next: 1,
            timed_since: None,
        };
        self.cross(connection, to, TcpFlags::ACK, (1, 1), 0);
    }

    fn cross(
        &mut self,
        connection: usize,
        direction: Direction,
        flags: TcpFlags,
        (seq, ack): (u32, u32),
        payload: u32,
    ) {
        let FlowKey { near, far } = Self::flow(connection);
        let (from, to) = match direction {
            Direction::ToLink => (near, far),
            Direction::FromLink => (far, near),
        };
        let header = TcpHeader {
            source_port: from.port(),
            destination_port: to.port(),
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            window: 60_000,
            ..TcpHeader::default()
        };
        let ip = IpHeader::new(from.ip(), to.ip());
        let payload = vec![7; usize::try_from(payload).expect("short")];
        let bytes = Packet::tcp_segment(ip, header, &payload).to_bytes();
        let frame = [&[2; 12][..], &[8, 0], &bytes].concat();
        let ran = self.tracker.try_out(self.now, direction, &frame, 0);
        ran.expect("it runs");
        let packet = Packet::parse(Bytes::from(bytes.to_vec())).expect("sound");
        let link = link_of(&Self::flow(connection));
        let _ = self
            .control
            .handle_packet(self.now, link, direction, &packet);
        while let Some(transmit) = self.control.poll_transmit() {
            let is_data = transmit.packet.sequence_len() > 0;
            let is_data = is_data && transmit.direction == Direction::ToLink;
            assert!(!is_data, "{transmit:?}");
        }
        if direction == Direction::FromLink {
            self.silent.remove(&link);
        }
        self.look();
    }

    /// Looks for silent links, as the daemon does when the kernel has told of a connection.
    fn look(&mut self) {
        while let Some(flow) = self.tracker.poll_suspicion() {
            self.watch.note(self.now, flow);
        }
        // How long the search takes is the machine's matter.
        self.watch.may_search_at = Instant::ZERO;
        let silent = &self.silent;
        let of_interest = |flow: &FlowKey| {
            let link = link_of(flow);
            (!silent.contains_key(&link)).then_some(link)
        };
        let config = SilenceConfig::default();
        let found = self
            .watch
            .find(self.now, self.tracker, &config, of_interest);
        for found in found {
            self.watch.remember(&found);
            self.silent.insert(found.link, found.since);
        }
    }

    fn take(&mut self, step: &Step) {
        let (to, from) = (Direction::ToLink, Direction::FromLink);
        let at = step.connection;
        let is_repetition = matches!(step.segment, Segment::OldestAgain);
        self.now += step.pause
            + if is_repetition {
                BEFORE_REPETITION
            } else {
                Duration::ZERO
            };
        let now = self.now;
        let connection = &mut self.connections[at];
        let known = *connection;
        // After a silence the gateway forgets what it has timed, and the kernel's programs do not.
        let is_late = |since| now.since(since) > LONGEST_ROUND_TRIP;
        let segment = match step.segment {
            Segment::AcknowledgesOne | Segment::AcknowledgesAll
                if known.timed_since.is_some_and(is_late) =>
            {
                Segment::AcknowledgesNothing
            }
            segment => segment,
        };
        match segment {
            Segment::NewData => {
                connection.near_next += MSS;
                connection.timed_since.get_or_insert(now);
                self.cross(
                    at,
                    to,
                    TcpFlags::ACK,
                    (known.near_next, known.far_next),
                    MSS,
                );
            }
            Segment::OldestAgain | Segment::AcknowledgesOne
                if known.near_next == known.near_acked => {}
            Segment::OldestAgain => {
                connection.timed_since = None;
                self.cross(
                    at,
                    to,
                    TcpFlags::ACK,
                    (known.near_acked, known.far_next),
                    MSS,
                );
            }
            Segment::AcknowledgesNothing => {
                self.cross(
                    at,
                    from,
                    TcpFlags::ACK,
                    (known.far_next, known.near_acked),
                    0,
                );
            }
            Segment::AcknowledgesOne => {
                connection.near_acked += MSS;
                let ack = connection.near_acked;
                self.cross(at, from, TcpFlags::ACK, (known.far_next, ack), 0);
            }
            Segment::AcknowledgesAll => {
                connection.near_acked = known.near_next;
                connection.timed_since = None;
                self.cross(
                    at,
                    from,
                    TcpFlags::ACK,
                    (known.far_next, known.near_next),
                    0,
                );
            }
            Segment::FarData => {
                connection.far_next += MSS;
                let numbers = (known.far_next, known.near_acked);
                self.cross(at, from, TcpFlags::ACK, numbers, MSS);
            }
        }
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let silent = self.control.silent_links();
        let control: BTreeMap<_, _> = silent.map(|silent| (silent.link, silent.since)).collect();
        prop_assert_eq!(&self.silent, &control);
        Ok(())
    }
}

impl Drop for Both<'_> {
    fn drop(&mut self) {
        for connection in 0..CONNECTIONS {
            let forgotten = self.tracker.forget(&Self::flow(connection));
            forgotten.expect("writable");
        }
    }
}

proptest! {
    #[test]
    fn the_same_packets_show_the_same_silence(
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut kernel = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((tracker, began)) = &mut *kernel else { return Ok(()) };
        let mut both = Both::new(tracker, *began);
        for step in steps {
            // The next case is not to begin before this one has ended, however it ends.
            *began = both.now + step.pause + Duration::from_secs(1);
            both.take(&step);
            both.compare()?;
        }
    }
}

/// A connection that has data under way when another one is heard for the last time shows the silence behind it.
#[test]
fn a_connection_whose_debt_is_older_than_the_last_word_of_another_shows_the_silence() {
    let mut kernel = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((tracker, began)) = &mut *kernel else {
        return;
    };
    let mut both = Both::new(tracker, *began);
    let step = |pause, connection, segment| Step {
        pause: Duration::from_millis(pause),
        connection,
        segment,
    };
    both.take(&step(1, 0, Segment::NewData));
    both.take(&step(50, 1, Segment::FarData));
    let heard = both.now;
    both.take(&step(100, 0, Segment::OldestAgain));
    assert!(both.silent.len() == 1, "its own answer is overdue");
    assert_eq!(both.silent.values().next(), Some(&heard));
    both.compare().expect("the same");
    *began = both.now + Duration::from_secs(1);
}
