//! Indicators that flap or lie: what they cost, and how late they make the truth.

use crate::path::{LINK, MSS, Path};
use outlast_gateway::gateway::{DampingConfig, Event, TimeoutReason};
use outlast_gateway::links::{Direction, Indicator, LinkEvent, LinkId, LinkState};
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn damping() -> Path {
    Path::damping(PathMechanismKind::Hold, DampingConfig::default())
}

/// What the gateway was made to believe since it was asked last.
fn told(path: &mut Path) -> Vec<LinkState> {
    std::iter::from_fn(|| path.gateway.poll_event())
        .filter_map(|event| match event {
            Event::Link(event) => Some(event.state),
            _ => None,
        })
        .collect()
}

fn state_of(path: &Path) -> LinkState {
    path.gateway.link_state(LINK).expect("added").state
}

/// All that was sent towards the link: packets and their bytes.
fn sent(path: &mut Path) -> (usize, u32) {
    let packets = std::iter::from_fn(|| path.gateway.poll_transmit());
    let towards = packets.filter(|transmit| transmit.direction == Direction::ToLink);
    towards.fold((0, 0), |(count, bytes), transmit| {
        (count + 1, bytes + transmit.packet.total_len())
    })
}

fn flap(path: &mut Path, times: u32, ms: u64) {
    for _ in 0..times {
        path.down();
        path.after_ms(ms / 2);
        path.up();
        path.after_ms(ms - ms / 2);
    }
}

#[test]
fn outages_once_a_second_are_told_at_once() {
    let mut path = damping();
    for _ in 0..100 {
        path.down();
        assert_eq!(state_of(&path), LinkState::Down);
        path.after_ms(500);
        path.up();
        assert_eq!(state_of(&path), LinkState::Up);
        path.after_ms(500);
    }
    assert_eq!(path.gateway.damped_links(path.now()).count(), 0);
    assert_eq!(path.gateway.counters().link_ups_delayed, 0);
}

#[test]
fn a_link_that_flaps_is_up_late_and_down_at_once() {
    let mut path = damping();
    flap(&mut path, 4, 20);
    assert_eq!(state_of(&path), LinkState::Up);
    path.down();
    assert_eq!(state_of(&path), LinkState::Down);
    path.after_ms(10);
    path.up();
    assert_eq!(
        state_of(&path),
        LinkState::Down,
        "the fifth time is too often"
    );
    let damped: Vec<_> = path.gateway.damped_links(path.now()).collect();
    assert_eq!(damped.len(), 1);
    assert_eq!(
        (damped[0].said, damped[0].told),
        (LinkState::Up, LinkState::Down)
    );
    assert!(damped[0].penalty > 4_900, "{:?}", damped[0]);
    let at = path.gateway.poll_timeout().expect("it is looked at again");
    assert_eq!(at, (damped[0].until, TimeoutReason::Damping));
    // From almost five thousand to two thousand.
    path.after_ms(2_500);
    assert_eq!(state_of(&path), LinkState::Down);
    path.after_ms(150);
    assert_eq!(state_of(&path), LinkState::Up);
    assert_eq!(path.gateway.damped_links(path.now()).count(), 0);
    assert_eq!(path.gateway.counters().link_ups_delayed, 1);
}

#[test]
fn what_comes_meanwhile_is_held_and_delivered() {
    let mut path = damping();
    flap(&mut path, 4, 20);
    path.down();
    assert_eq!(path.data(0, MSS), Some(TakeReason::LinkDown));
    path.after_ms(10);
    path.up();
    sent(&mut path);
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::LinkDown));
    path.after_ms(3_000);
    let (packets, _) = sent(&mut path);
    assert!(packets >= 2, "{packets} packets");
}

#[test]
fn who_never_stops_is_not_believed_any_more_and_packets_pass() {
    let mut path = damping();
    flap(&mut path, 225, 20);
    // It has flapped for four and a half seconds.
    assert_eq!(state_of(&path), LinkState::Up);
    told(&mut path);
    flap(&mut path, 500, 20);
    assert_eq!(told(&mut path), [], "whatever it says");
    assert_eq!(path.data(0, MSS), None);
    assert!(path.gateway.counters().link_downs_ignored >= 500);
    // But if it means it, that is believed in the end.
    path.down();
    path.after_ms(3_900);
    assert_eq!(state_of(&path), LinkState::Up);
    path.after_ms(200);
    assert_eq!(state_of(&path), LinkState::Down);
    path.up();
    assert_eq!(state_of(&path), LinkState::Up, "it is forgiven");
}

#[test]
fn one_peers_flapping_says_nothing_of_another() {
    let mut path = damping();
    let peer = |last| LinkId {
        peer: Some(Ipv4Addr::new(192, 0, 2, last).into()),
        ..LINK
    };
    path.link = peer(1);
    flap(&mut path, 10, 20);
    assert_eq!(path.gateway.damped_links(path.now()).count(), 1);
    path.link = peer(2);
    path.down();
    path.up();
    let second = path.gateway.link_state(peer(2)).expect("added");
    assert_eq!(second.state, LinkState::Up);
    let first = path.gateway.link_state(peer(1)).expect("added");
    assert_eq!(first.state, LinkState::Down);
}

#[test]
fn who_says_again_and_again_that_a_link_is_back_is_believed_a_few_times() {
    let mut path = damping();
    path.data(0, MSS);
    path.after_ms(100);
    for _ in 0..1_000 {
        let now = path.now();
        path.gateway.handle_return(now, LINK, Indicator::Notify);
        assert_eq!(state_of(&path), LinkState::Up, "packets pass all the time");
        path.after_ms(10);
    }
    let (packets, bytes) = sent(&mut path);
    assert!((1..=30).contains(&packets), "{packets} packets");
    assert!(bytes <= 30 * (MSS + 60), "{bytes} bytes");
    // A link that is down is up.
    path.after_ms(10_000);
    path.down();
    let now = path.now();
    path.gateway.handle_return(now, LINK, Indicator::Notify);
    assert_eq!(state_of(&path), LinkState::Up);
}

#[test]
fn a_lie_of_ten_seconds_costs_some_packets_and_without_damping_a_thousand() {
    let cost = |mut path: Path| {
        path.near_ack(0);
        path.data(0, MSS);
        path.after_ms(100);
        flap(&mut path, 1_000, 10);
        path.after_ms(5_000);
        sent(&mut path)
    };
    let (packets, bytes) = cost(damping());
    assert!(packets <= 20, "{packets} packets");
    assert!(bytes <= 20 * (MSS + 60), "{bytes} bytes");
    let (control, _) = cost(Path::established(PathMechanismKind::Hold));
    assert!(control >= 500, "{control} packets");
}

#[test]
fn damping_may_be_switched_off_in_the_middle_of_it() {
    let mut path = damping();
    flap(&mut path, 10, 20);
    assert_eq!(state_of(&path), LinkState::Down);
    let now = path.now();
    path.gateway.set_damping(now, None);
    assert_eq!(state_of(&path), LinkState::Up);
    flap(&mut path, 100, 20);
    assert_eq!(state_of(&path), LinkState::Up);
}

/// What an indicator says, and for how long in milliseconds.
fn saying() -> impl Strategy<Value = (LinkState, Indicator, u64)> {
    let state = prop_oneof![Just(LinkState::Up), Just(LinkState::Down)];
    let indicator = prop_oneof![
        Just(Indicator::Carrier),
        Just(Indicator::Neighbour),
        Just(Indicator::Notify),
        Just(Indicator::Route),
    ];
    let ms = prop_oneof![6 => 0u64..30, 2 => 30u64..600, 1 => 600u64..6_000];
    (state, indicator, ms)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_indicators_say_costs_little_and_the_truth_comes_in_time(
        sayings in proptest::collection::vec(saying(), 1..400),
    ) {
        let config = DampingConfig::default();
        let mut path = damping();
        path.near_ack(0);
        path.data(0, MSS);
        let began = path.now();
        let mut since = (LinkState::Up, path.now());
        for (state, indicator, ms) in sayings {
            if since.0 != state {
                since = (state, path.now());
            }
            let event = LinkEvent { link: LINK, state, indicator };
            let now = path.now();
            path.gateway.handle_link(now, event);
            path.after_ms(ms);
            let is_late = path.now().since(since.1) > config.hold_down;
            if is_late {
                prop_assert_eq!(state_of(&path), state);
            }
            prop_assert!(path.gateway.damped_links(path.now()).count() <= 1);
        }
        let lasted = path.now().since(began).as_secs_f64();
        let told = told(&mut path);
        let ups = told.iter().filter(|state| **state == LinkState::Up).count();
        // At most as often as the penalty decays below the cut-off, and what it begins with.
        let most = 6.0 + 1.5 * lasted;
        prop_assert!((ups as f64) <= most, "{} times in {} s", ups, lasted);
        let (packets, _) = sent(&mut path);
        // A segment and an acknowledgement each time, and the segment's own repetitions.
        prop_assert!((packets as f64) <= 3.0 * most, "{} packets in {} s", packets, lasted);
        path.after_ms(4_100);
        prop_assert_eq!(state_of(&path), since.0);
    }
}
