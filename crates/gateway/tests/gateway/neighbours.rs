//! Packets kept for a host on the link go to that host, and to nobody else who has its address when the link is back.

use crate::path::{LINK, LITTLE, MSS, Path, Version};
use outlast_gateway::links::{Direction, Indicator, LinkEvent, LinkId, LinkState, Neighbour};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};

/// Segments that are outstanding or come while the link is away.
const KEPT: u32 = 14;

const MECHANISMS: [PathMechanismKind; 7] = [
    PathMechanismKind::Hold,
    PathMechanismKind::RetransmissionCache,
    PathMechanismKind::ZeroWindowAck,
    PathMechanismKind::AcknowledgeAhead,
    PathMechanismKind::MTcp,
    PathMechanismKind::MTcpAdaptive,
    PathMechanismKind::Auto,
];

/// Whoever answers for the far host's address, once somebody does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Owner {
    /// It is known at once, as it was never forgotten.
    Known,
    Same,
    Another,
}

/// The far host itself is the peer.
fn on_link(mechanism: PathMechanismKind) -> Path {
    let mut path = Path::new(mechanism);
    path.link = LinkId {
        peer: Some(Version::V4.address(1)),
        ..LINK
    };
    path.settled()
}

/// The whole link goes or comes.
fn change(path: &mut Path, state: LinkState) {
    let event = LinkEvent {
        link: LINK,
        state,
        indicator: Indicator::Carrier,
    };
    path.gateway.handle_link(path.now(), event);
}

fn neighbour(path: &mut Path, neighbour: Neighbour) {
    path.gateway
        .handle_neighbour(path.now(), path.link, neighbour);
}

/// Data that the gateway has sent towards the link since the last look: segments and bytes.
fn delivered(path: &mut Path) -> (usize, u32) {
    let sent = std::iter::from_fn(|| path.gateway.poll_transmit());
    let data: Vec<u32> = sent
        .filter(|sent| sent.direction == Direction::ToLink)
        // The byte that asks whether somebody is there is one that was acknowledged.
        .filter(|sent| sent.reason != SendReason::Probe)
        .map(|sent| match sent.packet.tcp() {
            Some(_) => sent.packet.header().payload_len,
            None => sent.packet.total_len(),
        })
        .filter(|len| *len > 0)
        .collect();
    (data.len(), data.iter().sum())
}

/// A transfer that has met an outage of ten seconds, and a link that is back.
fn back(path: &mut Path, owner: Owner) {
    for n in 0..KEPT / 2 {
        path.data(n * MSS, MSS);
    }
    change(path, LinkState::Down);
    for n in KEPT / 2..KEPT {
        path.data(n * MSS, MSS);
    }
    path.after_ms(1_000);
    path.data(0, MSS);
    path.after_ms(9_000);
    let _ = delivered(path);
    if owner != Owner::Known {
        neighbour(path, Neighbour::Unconfirmed);
    }
    change(path, LinkState::Up);
    path.after_ms(20);
    match owner {
        Owner::Known => {}
        Owner::Same => {
            assert_eq!(delivered(path), (0, 0), "nobody has answered yet");
            neighbour(path, Neighbour::Same);
        }
        Owner::Another => neighbour(path, Neighbour::Changed),
    }
    path.after_ms(5_000);
}

#[test]
fn another_owner_of_the_address_gets_nothing_of_what_was_kept() {
    for mechanism in MECHANISMS {
        let mut path = on_link(mechanism);
        back(&mut path, Owner::Another);
        assert_eq!(delivered(&mut path), (0, 0), "{mechanism:?}");
    }
    // The control: so it was.
    let mut path = on_link(PathMechanismKind::Hold);
    back(&mut path, Owner::Known);
    let (segments, bytes) = delivered(&mut path);
    assert!(segments >= 14 && bytes >= 14 * MSS, "{segments} {bytes}");
}

#[test]
fn the_same_owner_gets_it_as_soon_as_it_has_answered() {
    for mechanism in MECHANISMS {
        let outcome = |owner| {
            let mut path = on_link(mechanism);
            back(&mut path, owner);
            delivered(&mut path)
        };
        assert_eq!(outcome(Owner::Same), outcome(Owner::Known), "{mechanism:?}");
    }
}

#[test]
fn who_speaks_as_the_connection_gets_it_whatever_his_hardware_is() {
    for mechanism in MECHANISMS {
        let mut path = on_link(mechanism);
        back(&mut path, Owner::Another);
        let _ = delivered(&mut path);
        path.far_ack(0);
        path.after_ms(5_000);
        let (segments, _) = delivered(&mut path);
        assert!(segments > 0, "{mechanism:?}");
    }
}

#[test]
fn whoever_it_is_is_asked_at_once_and_with_no_data() {
    let mut path = on_link(PathMechanismKind::Hold);
    back(&mut path, Owner::Another);
    let probes: Vec<_> = std::iter::from_fn(|| path.gateway.poll_transmit())
        .filter(|sent| sent.reason == SendReason::Probe)
        .collect();
    // One has the address asked for, and one asks whoever has answered.
    assert_eq!(probes.len(), 2);
    for probe in probes {
        assert!(probe.packet.header().payload_len <= 1);
    }
}

#[test]
fn another_connection_that_speaks_releases_its_own_alone() {
    let mut path = on_link(PathMechanismKind::Hold);
    path.use_port(6_000);
    path.open();
    path.use_port(5_000);
    back(&mut path, Owner::Another);
    let _ = delivered(&mut path);
    path.use_port(6_000);
    path.far_ack(0);
    path.after_ms(5_000);
    assert_eq!(delivered(&mut path), (0, 0));
}

#[test]
fn a_reset_of_the_new_owner_releases_nothing() {
    let mut path = on_link(PathMechanismKind::Hold);
    back(&mut path, Owner::Another);
    let _ = delivered(&mut path);
    path.far_rst();
    path.after_ms(5_000);
    assert_eq!(delivered(&mut path), (0, 0));
}

#[test]
fn what_the_sender_repeats_itself_passes_and_stays_kept() {
    let mut path = on_link(PathMechanismKind::Hold);
    back(&mut path, Owner::Another);
    let _ = delivered(&mut path);
    assert_eq!(path.data(0, MSS), None);
    assert_eq!(delivered(&mut path), (0, 0));
    path.far_ack(MSS);
    path.after_ms(1_000);
    let (segments, _) = delivered(&mut path);
    assert!(segments >= 13, "{segments}");
}

#[test]
fn a_changed_owner_stays_a_stranger_through_further_outages() {
    let mut path = on_link(PathMechanismKind::Hold);
    back(&mut path, Owner::Another);
    for _ in 0..3 {
        change(&mut path, LinkState::Down);
        path.after_ms(2_000);
        neighbour(&mut path, Neighbour::Unconfirmed);
        change(&mut path, LinkState::Up);
        // The stranger is the one that the kernel knew last.
        neighbour(&mut path, Neighbour::Same);
        path.after_ms(2_000);
    }
    assert_eq!(delivered(&mut path), (0, 0));
}

#[test]
fn a_change_while_the_link_is_up_keeps_nothing_from_who_goes_on() {
    let mut path = on_link(PathMechanismKind::Hold);
    for n in 0..20 {
        if n == 10 {
            neighbour(&mut path, Neighbour::Changed);
        }
        assert_eq!(path.data(n * MSS, MSS), None, "{n}");
        path.after_ms(20);
        path.far_ack((n + 1) * MSS);
        path.after_ms(20);
    }
    assert_eq!(delivered(&mut path), (0, 0));
    assert!(path.gateway.held() <= LITTLE);
}

#[test]
fn a_host_beyond_a_router_is_the_same_whoever_the_router_is() {
    let mut path = Path::new(PathMechanismKind::Hold);
    path.link = LinkId {
        peer: Some(Version::V4.address(254)),
        ..LINK
    };
    let mut path = path.settled();
    back(&mut path, Owner::Another);
    let (segments, bytes) = delivered(&mut path);
    assert!(segments >= 14 && bytes >= 14 * MSS, "{segments} {bytes}");
}

#[test]
fn datagrams_wait_for_their_owner_too_and_another_gets_none() {
    for (owner, expected) in [(Owner::Known, 1), (Owner::Same, 1), (Owner::Another, 0)] {
        let mut path = on_link(PathMechanismKind::Hold);
        change(&mut path, LinkState::Down);
        assert_eq!(path.datagram(100), Some(TakeReason::LinkDown));
        path.after_ms(100);
        if owner != Owner::Known {
            neighbour(&mut path, Neighbour::Unconfirmed);
        }
        change(&mut path, LinkState::Up);
        path.after_ms(20);
        match owner {
            Owner::Known => {}
            Owner::Same => {
                assert_eq!(delivered(&mut path), (0, 0));
                neighbour(&mut path, Neighbour::Same);
            }
            Owner::Another => neighbour(&mut path, Neighbour::Changed),
        }
        path.after_ms(100);
        assert_eq!(delivered(&mut path).0, expected, "{owner:?}");
        // What is fresh is for whoever has the address now.
        assert_eq!(path.datagram(100), None);
    }
}
