mod lies;
mod routes;

use super::*;
use outlast_base::time::Duration;
use outlast_linux::netlink::Prefix;

const WWAN: InterfaceIndex = InterfaceIndex(5);
const PEERS: usize = 3_000;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("literal")
}

fn way(network: &str, length: u8, gateway: Option<&str>) -> Change {
    let way = Way {
        destination: Prefix {
            address: ip(network),
            length,
        },
        gateway: gateway.map(ip),
        table: Way::MAIN,
        metric: 0,
    };
    Change::Route {
        interface: WWAN,
        way,
        is_present: true,
        replaces: false,
    }
}

fn interface(is_running: bool) -> Change {
    Change::Interface {
        index: WWAN,
        name: "wwan0".into(),
        is_up: true,
        is_running,
        carrier_losses: None,
        mtu: 1430,
        hardware: Some([2, 0, 0, 0, 0, 1]),
        port_of: None,
    }
}

fn address(is_present: bool) -> Change {
    address_within(24, is_present)
}

fn address_within(length: u8, is_present: bool) -> Change {
    Change::Address {
        interface: WWAN,
        address: Prefix {
            address: ip("192.0.2.1"),
            length,
        },
        is_present,
    }
}

fn neighbour(standing: Standing) -> Change {
    Change::Neighbour {
        interface: WWAN,
        address: ip("192.0.2.9"),
        standing,
        hardware: None,
    }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// An interface that is up and has an address and routes.
fn running(watched: Watched) -> Indicators {
    let mut indicators = Indicators::new("wwan0", watched, PEERS);
    let all = vec![
        interface(true),
        address(true),
        way("0.0.0.0", 0, Some("192.0.2.254")),
        way("192.0.2.0", 24, None),
    ];
    indicators.handle_snapshot(at(0), all);
    assert!(indicators.poll_indication().is_none());
    indicators
}

/// What the gateway hears; a return is both changes.
fn events(indicators: &mut Indicators) -> Vec<(Option<IpAddr>, LinkState, Indicator)> {
    let indications = std::iter::from_fn(|| indicators.poll_indication());
    let changes = indications.flat_map(|indication| match indication {
        Indication::Changed(event) => vec![(event.link.peer, event.state, event.indicator)],
        Indication::Returned(link, by) => [LinkState::Down, LinkState::Up]
            .map(|state| (link.peer, state, by))
            .into(),
        Indication::Moved(link, _) => [LinkState::Down, LinkState::Up]
            .map(|state| (link.peer, state, Indicator::Route))
            .into(),
        Indication::Neighbour(..) => Vec::new(),
    });
    changes.collect()
}

#[test]
fn as_many_peers_may_be_away_as_the_configuration_says_and_others_are_counted() {
    let peer = |number: usize| Some(IpAddr::V4((0x0a00_0000 + number as u32).into()));
    let mut indicators = running(Watched::default());
    for number in 0..PEERS {
        indicators.handle_notice(at(1), peer(number), LinkState::Down);
    }
    assert_eq!(events(&mut indicators).len(), PEERS);
    assert_eq!(
        (indicators.absent().count(), indicators.refused()),
        (PEERS, 0)
    );
    indicators.handle_notice(at(2), peer(PEERS), LinkState::Down);
    // Of who is away already nothing is new.
    indicators.handle_notice(at(2), peer(0), LinkState::Down);
    assert_eq!(events(&mut indicators), []);
    assert_eq!(
        (indicators.absent().count(), indicators.refused()),
        (PEERS, 1)
    );
    indicators.set_most_peers(PEERS + 1);
    indicators.handle_notice(at(3), peer(PEERS), LinkState::Down);
    assert_eq!(events(&mut indicators).len(), 1);
    for number in 0..=PEERS {
        indicators.handle_notice(at(4), peer(number), LinkState::Up);
    }
    assert_eq!(events(&mut indicators).len(), PEERS + 1);
    assert_eq!(indicators.absent().count(), 0);
}

#[test]
fn lost_carrier_and_lost_addresses_take_the_link_down_until_both_are_back() {
    let mut indicators = running(Watched::default());
    indicators.handle_change(at(1), interface(false));
    let down = (None, LinkState::Down, Indicator::Carrier);
    assert_eq!(events(&mut indicators), [down]);
    indicators.handle_change(at(2), address(false));
    indicators.handle_change(at(3), interface(true));
    assert_eq!(events(&mut indicators), [], "there is no address yet");
    indicators.handle_change(at(4), address(true));
    let up = events(&mut indicators);
    assert_eq!((up[0].0, up[0].1), (None, LinkState::Up));
}

#[test]
fn an_address_whose_network_is_made_larger_or_smaller_is_not_lost() {
    let mut indicators = running(Watched::default());
    indicators.handle_change(at(1), address_within(25, true));
    indicators.handle_change(at(1), address(false));
    assert_eq!(events(&mut indicators), []);
    indicators.handle_change(at(2), address_within(25, false));
    let down = (None, LinkState::Down, Indicator::Address);
    assert_eq!(events(&mut indicators), [down]);
}

#[test]
fn an_interface_that_is_given_another_name_is_gone_and_one_that_is_given_this_name_is_there() {
    let mut indicators = running(Watched::default());
    let named = |index, name: &str| Change::Interface {
        index,
        name: name.into(),
        is_up: true,
        is_running: true,
        carrier_losses: None,
        mtu: 1430,
        hardware: Some([2, 0, 0, 0, 0, 1]),
        port_of: None,
    };
    indicators.handle_change(at(1), named(InterfaceIndex(9), "eth0"));
    assert_eq!(events(&mut indicators), [], "somebody else");
    indicators.handle_change(at(1), named(WWAN, "modem1"));
    let down = (None, LinkState::Down, Indicator::Carrier);
    assert_eq!(events(&mut indicators), [down]);
    assert_eq!(indicators.index(), None);
    assert_eq!(indicators.ways(), []);
    indicators.handle_change(at(2), named(InterfaceIndex(9), "wwan0"));
    assert_eq!(indicators.index(), Some(InterfaceIndex(9)));
}

#[test]
fn an_indicator_that_is_switched_off_says_nothing() {
    let off = Watched {
        carrier: false,
        address: false,
        route: false,
        neighbour: false,
        silence: false,
    };
    let mut indicators = running(off);
    for change in [
        interface(false),
        address(false),
        neighbour(Standing::Failed),
    ] {
        indicators.handle_change(at(1), change);
    }
    assert_eq!(events(&mut indicators), []);
}

#[test]
fn an_interface_that_was_never_given_an_address_needs_none() {
    let mut indicators = Indicators::new("wwan0", Watched::default(), PEERS);
    indicators.handle_snapshot(at(0), vec![interface(true)]);
    assert_eq!(events(&mut indicators), []);
    assert_eq!(indicators.state(), LinkState::Up);
    assert_eq!((indicators.index(), indicators.mtu()), (Some(WWAN), 1430));
}

#[test]
fn an_interface_that_is_not_there_is_down() {
    let mut indicators = Indicators::new("wwan0", Watched::default(), PEERS);
    indicators.handle_snapshot(at(0), Vec::new());
    assert_eq!(indicators.state(), LinkState::Down);
    indicators.handle_change(at(1), interface(true));
    assert_eq!(indicators.state(), LinkState::Up);
    indicators.handle_change(at(2), Change::InterfaceGone { index: WWAN });
    assert_eq!(indicators.state(), LinkState::Down);
}

#[test]
fn peers_are_found_by_the_longest_prefix() {
    let indicators = running(Watched::default());
    let peer = |far| indicators.link_to(ip(far)).peer;
    assert_eq!(peer("192.0.2.9"), Some(ip("192.0.2.9")));
    assert_eq!(peer("198.51.100.7"), Some(ip("192.0.2.254")));
    assert_eq!(peer("2001:db8::1"), None);
}

#[test]
fn a_neighbour_that_does_not_answer_is_asked_for_ever_more_rarely() {
    let mut indicators = running(Watched::default());
    let peer = Some(ip("192.0.2.9"));
    indicators.handle_change(at(0), neighbour(Standing::Failed));
    let down = (peer, LinkState::Down, Indicator::Neighbour);
    assert_eq!(events(&mut indicators), [down]);
    let (mut asked, mut now) = (0, at(0));
    while now < at(3500) {
        assert_eq!(indicators.poll_question(now, |_| false), peer);
        assert_eq!(
            indicators.poll_question(now, |_| false),
            None,
            "once at a time"
        );
        asked += 1;
        indicators.handle_change(now, neighbour(Standing::Unknown));
        indicators.handle_change(now, neighbour(Standing::Failed));
        now = indicators.poll_timeout().expect("it is asked for again");
    }
    assert!((200..400).contains(&asked), "{asked} times in an hour");
    while indicators.poll_timeout().is_some() {
        now += Duration::from_secs(15);
        let _ = indicators.poll_question(now, |_| false);
    }
    assert!(now <= at(3630), "forgotten at {now:?}");
    let up = (peer, LinkState::Up, Indicator::Neighbour);
    assert_eq!(events(&mut indicators), [up]);
}

#[test]
fn a_neighbour_that_answers_is_back() {
    let mut indicators = running(Watched::default());
    for standing in [Standing::Failed, Standing::Unknown, Standing::Present] {
        indicators.handle_change(at(1), neighbour(standing));
    }
    let peer = Some(ip("192.0.2.9"));
    let down = (peer, LinkState::Down, Indicator::Neighbour);
    let up = (peer, LinkState::Up, Indicator::Neighbour);
    assert_eq!(events(&mut indicators), [down, up]);
    assert_eq!(indicators.poll_timeout(), None);
}

#[test]
fn who_answers_for_an_address_is_told_before_its_return() {
    let found = |hardware| {
        let mut change = neighbour(Standing::Present);
        if let Change::Neighbour { hardware: at, .. } = &mut change {
            *at = Some([2, 0, 0, 0, 0, hardware]);
        }
        change
    };
    for (hardware, told) in [(1, Neighbour::Same), (2, Neighbour::Changed)] {
        let mut indicators = running(Watched::default());
        indicators.handle_change(at(1), found(1));
        assert_eq!(indicators.poll_indication(), None, "nobody to compare with");
        indicators.handle_change(at(2), neighbour(Standing::Failed));
        let down = indicators.poll_indication();
        assert!(matches!(down, Some(Indication::Changed(event)) if event.state == LinkState::Down));
        indicators.handle_change(at(3), found(hardware));
        let link = link_of(Some(ip("192.0.2.9")));
        let first = indicators.poll_indication();
        assert_eq!(first, Some(Indication::Neighbour(link, told)));
        let then = indicators.poll_indication();
        assert!(matches!(then, Some(Indication::Changed(event)) if event.state == LinkState::Up));
    }
}

#[test]
fn a_packet_from_a_silent_peer_shows_that_it_is_back() {
    let mut indicators = running(Watched::default());
    indicators.handle_change(at(0), neighbour(Standing::Failed));
    events(&mut indicators);
    indicators.handle_arrival(at(1), indicators.link_to(ip("192.0.2.9")));
    let up = (Some(ip("192.0.2.9")), LinkState::Up, Indicator::FirstPacket);
    assert_eq!(events(&mut indicators), [up]);
}

#[test]
fn who_is_said_to_be_away_is_away_until_somebody_says_otherwise() {
    let mut indicators = running(Watched::default());
    let peer = ip("192.0.2.9");
    indicators.handle_notice(at(0), Some(peer), LinkState::Down);
    indicators.handle_arrival(at(1), indicators.link_to(peer));
    indicators.handle_change(at(1), neighbour(Standing::Present));
    assert_eq!(indicators.poll_timeout(), None);
    let down = (Some(peer), LinkState::Down, Indicator::Notify);
    assert_eq!(events(&mut indicators), [down]);
    indicators.handle_notice(at(2), Some(peer), LinkState::Up);
    let up = (Some(peer), LinkState::Up, Indicator::Notify);
    assert_eq!(events(&mut indicators), [up]);
}

#[test]
fn a_link_that_was_up_all_the_time_is_kicked_by_a_notice() {
    let mut indicators = running(Watched::default());
    indicators.handle_notice(at(0), None, LinkState::Up);
    let kick = [
        (None, LinkState::Down, Indicator::Notify),
        (None, LinkState::Up, Indicator::Notify),
    ];
    assert_eq!(events(&mut indicators), kick);
    indicators.handle_notice(at(1), None, LinkState::Down);
    indicators.handle_change(at(2), interface(false));
    indicators.handle_notice(at(3), None, LinkState::Up);
    assert_eq!(events(&mut indicators), [kick[0]], "no carrier yet");
    indicators.handle_change(at(4), interface(true));
    assert_eq!(
        events(&mut indicators),
        [(None, LinkState::Up, Indicator::Carrier)]
    );
}

#[test]
fn silent_peers_are_given_another_chance_with_the_link() {
    let mut indicators = running(Watched::default());
    let peer = Some(ip("192.0.2.9"));
    indicators.handle_change(at(0), neighbour(Standing::Failed));
    indicators.handle_change(at(1), interface(false));
    events(&mut indicators);
    indicators.handle_change(at(2), neighbour(Standing::Failed));
    indicators.handle_change(at(3), interface(true));
    assert_eq!(
        events(&mut indicators),
        [
            (peer, LinkState::Up, Indicator::Carrier),
            (None, LinkState::Up, Indicator::Carrier)
        ]
    );
}

#[test]
fn a_peer_that_somebody_misses_is_asked_for_at_a_probes_pace_and_all_share_it() {
    let mut indicators = running(Watched::default());
    for last in 1..=9 {
        indicators.handle_change(
            at(0),
            Change::Neighbour {
                interface: WWAN,
                address: IpAddr::from([192, 0, 2, last]),
                standing: Standing::Failed,
                hardware: None,
            },
        );
    }
    let mut asked = [0; 10];
    let mut now = at(0);
    while now < at(10) {
        let is_missed = |link: LinkId| link.peer != Some(ip("192.0.2.9"));
        if let Some(IpAddr::V4(peer)) = indicators.poll_question(now, is_missed) {
            asked[usize::from(peer.octets()[3])] += 1;
        }
        now = indicators.poll_timeout().expect("it is asked for again");
    }
    assert!((3..=10).contains(&asked[9]), "nobody misses it: {asked:?}");
    let all: u32 = asked.iter().sum();
    assert!((450..=501).contains(&all), "{all} in ten seconds");
    assert!(
        asked[1..9].iter().all(|n| (50..=70).contains(n)),
        "{asked:?}"
    );
    // One alone is asked for more often.
    for last in 2..=9 {
        indicators.handle_arrival(now, indicators.link_to(IpAddr::from([192, 0, 2, last])));
    }
    let (mut alone, until) = (0, now + Duration::from_secs(10));
    while now < until {
        alone += u32::from(indicators.poll_question(now, |_| true).is_some());
        now = indicators.poll_timeout().expect("it is asked for again");
    }
    assert!((195..=201).contains(&alone), "{alone} in ten seconds");
}

#[test]
fn who_is_down_for_two_reasons_is_up_when_both_are_gone() {
    let mut indicators = running(Watched::default());
    let peer = ip("192.0.2.9");
    indicators.handle_change(at(0), neighbour(Standing::Failed));
    indicators.handle_notice(at(0), Some(peer), LinkState::Down);
    events(&mut indicators);
    indicators.handle_change(at(1), neighbour(Standing::Present));
    assert_eq!(events(&mut indicators), []);
    indicators.handle_notice(at(2), Some(peer), LinkState::Up);
    let up = (Some(peer), LinkState::Up, Indicator::Notify);
    assert_eq!(events(&mut indicators), [up]);
}
