//! What agents write they read, and nothing else.

use outlast_agents::{DecodeError, Entry, FreezeId, Kept, LONGEST_MESSAGE, Left, Message, Outcome};
use outlast_gateway::tracking::{
    Acquaintance, FlowKey, FrozenFlow, FrozenNumbers, Half, SupervisedFlow, ToldWindow,
};
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

fn id() -> impl Strategy<Value = FreezeId> {
    any::<(u64, u64)>().prop_map(|(instance, number)| FreezeId { instance, number })
}

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>()
            .prop_map(|(a, b)| (Ipv4Addr::from(a).into(), Ipv4Addr::from(b).into())),
        any::<([u8; 16], [u8; 16])>()
            .prop_map(|(a, b)| (Ipv6Addr::from(a).into(), Ipv6Addr::from(b).into())),
    ]
}

fn key() -> impl Strategy<Value = FlowKey> {
    (addresses(), any::<(u16, u16)>()).prop_map(|((near, far), ports)| FlowKey {
        near: SocketAddr::new(near, ports.0),
        far: SocketAddr::new(far, ports.1),
    })
}

fn stamps() -> impl Strategy<Value = Option<Timestamps>> {
    any::<Option<(u32, u32)>>().prop_map(|s| s.map(|(value, echo)| Timestamps { value, echo }))
}

fn numbers() -> impl Strategy<Value = FrozenNumbers> {
    (key(), any::<[u32; 3]>(), stamps()).prop_map(|(flow, [acked, until, far], stamps)| {
        FrozenNumbers {
            flow,
            acked: SeqNumber(acked),
            until: SeqNumber(until),
            far_next: SeqNumber(far),
            stamps,
        }
    })
}

fn half() -> impl Strategy<Value = Half> {
    let acquaintance = prop_oneof![
        Just(Acquaintance::None),
        Just(Acquaintance::ByPeer),
        Just(Acquaintance::Seen)
    ];
    let options = (
        any::<Option<u32>>(),
        proptest::option::of(0u8..=14),
        any::<Option<u32>>(),
    );
    (any::<[u32; 3]>(), options, acquaintance).prop_map(
        |([next, acked, largest_window], (allowed, window_scale, fin), acquaintance)| Half {
            next: SeqNumber(next),
            acked: SeqNumber(acked),
            allowed: allowed.map(SeqNumber),
            largest_window,
            window_scale,
            permits_sack: None,
            acquaintance,
            fin: fin.map(SeqNumber),
        },
    )
}

fn segment() -> impl Strategy<Value = Packet> {
    let payload = proptest::collection::vec(any::<u8>(), 0..2_000);
    (key(), any::<(u32, u32, u16)>(), stamps(), payload).prop_map(
        |(key, (seq, ack, window), timestamps, payload)| {
            let ip = IpHeader::new(key.near.ip(), key.far.ip());
            let header = TcpHeader {
                source_port: key.near.port(),
                destination_port: key.far.port(),
                seq: SeqNumber(seq),
                ack: SeqNumber(ack),
                flags: TcpFlags::ACK,
                window,
                options: TcpOptions {
                    timestamps,
                    ..TcpOptions::default()
                },
                ..TcpHeader::default()
            };
            let bytes = Packet::tcp_segment(ip, header, &payload).to_bytes();
            Packet::parse(bytes).expect("what was built can be parsed")
        },
    )
}

fn flow() -> impl Strategy<Value = FrozenFlow> {
    (half(), half(), any::<Option<u32>>(), segment()).prop_map(|(near, far, clock, segment)| {
        FrozenFlow {
            near,
            far,
            clock,
            segment,
        }
    })
}

fn supervised() -> impl Strategy<Value = SupervisedFlow> {
    let window = prop_oneof![
        Just(ToldWindow::Open),
        Just(ToldWindow::Shrunk),
        any::<(u32, u32)>().prop_map(|(before, since)| ToldWindow::Recovering {
            sent_before: SeqNumber(before),
            sent_since: SeqNumber(since),
        })
    ];
    let told = any::<(Option<u32>, u32, u32, bool)>();
    (key(), half(), half(), window, told).prop_map(
        |(flow, near, far, window, (clock, echo, told, is_refuted))| SupervisedFlow {
            flow,
            near,
            far,
            clock,
            echo,
            told: SeqNumber(told),
            window,
            is_refuted,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let outcome = prop_oneof![
        Just(Outcome::Acknowledged),
        Just(Outcome::Reset),
        Just(Outcome::Refused)
    ];
    prop_oneof![
        any::<u64>().prop_map(|instance| Message::Hello { instance }),
        (id(), numbers()).prop_map(|(id, numbers)| Message::Frozen { id, numbers }),
        Just(Message::Listed),
        id().prop_map(|id| Message::Released { id }),
        id().prop_map(|id| Message::Want { id }),
        addresses().prop_map(|(mobile, _)| Message::Here { mobile }),
        supervised().prop_map(|flow| Message::Supervised(Box::new(flow))),
        (id(), flow()).prop_map(|(id, flow)| Message::Segment {
            id,
            flow: Box::new(flow)
        }),
        (id(), outcome).prop_map(|(id, outcome)| Message::Settled { id, outcome }),
        Just(Message::Alive),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let from = proptest::option::of(key().prop_map(|key| key.near));
    prop_oneof![
        (id(), from, flow()).prop_map(|(id, from, flow)| Entry::Kept(Box::new(Kept {
            id,
            from,
            flow
        }))),
        id().prop_map(Entry::Removed),
    ]
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(message in message()) {
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn every_entry_is_read_as_it_was_written(entry in entry()) {
        prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_refused(message in message(), at in any::<prop::sample::Index>()) {
        let bytes = message.encode();
        let cut = at.index(bytes.len());
        prop_assert!(Message::decode(&bytes[..cut]).is_err());
        let mut longer = bytes;
        longer.push(0);
        prop_assert!(Message::decode(&longer).is_err());
    }

    #[test]
    fn garbage_is_refused_or_means_just_what_it_says(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes.clone());
        }
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert_eq!(entry.encode(), bytes);
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_means_just_what_it_says(
        message in message(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
    ) {
        let mut bytes = message.encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(other) = Message::decode(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }
}

/// The longest one: IPv6, every option, and a window that is about to recover.
#[test]
fn a_supervised_connection_takes_few_bytes() {
    let end = |last| SocketAddr::new(Ipv6Addr::from([last; 16]).into(), 443);
    let half = Half {
        allowed: Some(SeqNumber(7)),
        window_scale: Some(14),
        acquaintance: Acquaintance::Seen,
        fin: Some(SeqNumber(8)),
        ..Half::default()
    };
    let message = Message::Supervised(Box::new(SupervisedFlow {
        flow: FlowKey {
            near: end(1),
            far: end(2),
        },
        near: half,
        far: half,
        clock: Some(1),
        echo: 2,
        told: SeqNumber(3),
        window: ToldWindow::Recovering {
            sent_before: SeqNumber(5),
            sent_since: SeqNumber(4),
        },
        is_refuted: true,
    }));
    assert_eq!(message.encode().len(), 112);
}

#[test]
fn what_no_agent_sends_is_named() {
    assert_eq!(Message::decode(&[]), Err(DecodeError::Truncated));
    assert_eq!(Message::decode(&[99]), Err(DecodeError::UnknownKind(99)));
    assert_eq!(Message::decode(&[3, 0]), Err(DecodeError::Trailing(1)));
    let mut hello = Message::Hello { instance: 1 }.encode();
    hello[1] = 2;
    assert_eq!(Message::decode(&hello), Err(DecodeError::Version(2)));
    let long = vec![8; LONGEST_MESSAGE + 1];
    assert_eq!(
        Message::decode(&long),
        Err(DecodeError::TooLong(LONGEST_MESSAGE + 1))
    );
}

#[test]
fn a_journal_ends_with_what_was_not_removed_and_what_is_over() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut draw = || {
        let tree = flow().new_tree(&mut runner).expect("no filter");
        tree.current()
    };
    let mut kept = |number| Kept {
        id: FreezeId {
            instance: 1,
            number,
        },
        from: None,
        flow: draw(),
    };
    let (first, second) = (kept(1), kept(2));
    let put = |kept: &Kept| Entry::Kept(Box::new(kept.clone()));
    let entries = [put(&first), put(&second), Entry::Removed(first.id)];
    let mut left: Left = entries.into_iter().collect();
    let is_left = |left: &Left, over: &[FreezeId]| {
        left.kept.values().eq([&second]) && left.over.iter().eq(over)
    };
    assert!(is_left(&left, &[first.id]), "{left:?}");
    assert_eq!(left.entries().collect::<Left>(), left);
    left.apply(Entry::Removed(first.id));
    assert!(is_left(&left, &[]), "{left:?}");
}
