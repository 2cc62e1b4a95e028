//! What routes say.

use super::*;

/// Another interface.
const ETH: InterfaceIndex = InterfaceIndex(2);

fn route(interface: InterfaceIndex, text: &str, gateway: Option<&str>, metric: u32) -> Change {
    let (address, length) = text.split_once('/').expect("literal");
    Change::Route {
        interface,
        way: Way {
            destination: Prefix {
                address: ip(address),
                length: length.parse().expect("literal"),
            },
            gateway: gateway.map(ip),
            table: Way::MAIN,
            metric,
        },
        is_present: true,
        replaces: false,
    }
}

fn gone(mut change: Change) -> Change {
    if let Change::Route { is_present, .. } = &mut change {
        *is_present = false;
    }
    change
}

fn replacing(mut change: Change) -> Change {
    if let Change::Route { replaces, .. } = &mut change {
        *replaces = true;
    }
    change
}

fn default_by(gateway: &str) -> Change {
    route(WWAN, "0.0.0.0/0", Some(gateway), 0)
}

fn hear(indicators: &mut Indicators, changes: impl IntoIterator<Item = Change>) {
    for change in changes {
        indicators.handle_change(at(1), change);
    }
    indicators.judge_routes(at(1));
}

const ROUTER: &str = "192.0.2.254";

fn said(peer: Option<&str>, state: LinkState) -> (Option<IpAddr>, LinkState, Indicator) {
    (peer.map(ip), state, Indicator::Route)
}

#[test]
fn a_router_is_down_while_no_route_leads_to_it_and_its_neighbours_are_not() {
    let mut indicators = running(Watched::default());
    hear(&mut indicators, [gone(default_by(ROUTER))]);
    let down = said(Some(ROUTER), LinkState::Down);
    assert_eq!(events(&mut indicators), [down]);
    assert_eq!(indicators.state(), LinkState::Up);
    let absent: Vec<_> = indicators.absent().collect();
    assert_eq!(absent, [(ip(ROUTER), at(1), Indicator::Route)]);
    // Nobody asks for it, and what it sends does not bring the route back.
    assert_eq!(indicators.poll_timeout(), None);
    let link = LinkId {
        interface: INTERFACE,
        peer: Some(ip(ROUTER)),
    };
    indicators.handle_arrival(at(2), link);
    assert_eq!(events(&mut indicators), []);
    hear(&mut indicators, [default_by(ROUTER)]);
    let up = said(Some(ROUTER), LinkState::Up);
    assert_eq!(events(&mut indicators), [up]);
}

#[test]
fn another_router_on_the_link_takes_over_and_connections_are_moved() {
    let mut indicators = running(Watched::default());
    let back = |peer| [LinkState::Down, LinkState::Up].map(|state| said(Some(peer), state));
    const OTHER: &str = "192.0.2.253";
    hear(&mut indicators, [replacing(default_by(OTHER))]);
    // Who went by way of the one goes by the other now.
    let both = [back(ROUTER), back(OTHER)].concat();
    assert_eq!(events(&mut indicators), both);
    let far = ip("198.51.100.7");
    assert_eq!(indicators.link_to(far).peer, Some(ip(OTHER)));
    // One that comes later does as well.
    hear(&mut indicators, [gone(default_by(OTHER))]);
    assert_eq!(
        events(&mut indicators),
        [said(Some(OTHER), LinkState::Down)]
    );
    hear(&mut indicators, [default_by(ROUTER)]);
    let up = [said(Some(OTHER), LinkState::Up)];
    let all = [&up[..], &back(ROUTER)].concat();
    assert_eq!(events(&mut indicators), all);
}

#[test]
fn a_second_route_by_way_of_a_router_keeps_it_up() {
    let mut indicators = running(Watched::default());
    let more = route(WWAN, "203.0.113.0/24", Some(ROUTER), 0);
    hear(&mut indicators, [more]);
    hear(&mut indicators, [gone(default_by(ROUTER))]);
    assert_eq!(events(&mut indicators), []);
}

#[test]
fn an_interface_without_any_route_has_no_link() {
    let mut indicators = running(Watched::default());
    let connected = || route(WWAN, "192.0.2.0/24", None, 0);
    hear(
        &mut indicators,
        [gone(default_by(ROUTER)), gone(connected())],
    );
    let told = events(&mut indicators);
    assert_eq!(told[0], said(None, LinkState::Down));
    assert_eq!(indicators.state(), LinkState::Down);
    hear(&mut indicators, [connected(), default_by(ROUTER)]);
    let told = events(&mut indicators);
    assert!(told.contains(&said(None, LinkState::Up)), "{told:?}");
    assert!(
        told.contains(&said(Some(ROUTER), LinkState::Up)),
        "{told:?}"
    );
}

#[test]
fn a_default_route_without_a_router_is_the_links() {
    let mut indicators = Indicators::new("wwan0", Watched::default(), PEERS);
    let modem = || route(WWAN, "0.0.0.0/0", None, 0);
    let peer = route(WWAN, "10.64.64.64/32", None, 0);
    indicators.handle_snapshot(at(0), vec![interface(true), address(true), peer, modem()]);
    hear(&mut indicators, [gone(modem())]);
    assert_eq!(events(&mut indicators), [said(None, LinkState::Down)]);
    hear(&mut indicators, [modem()]);
    assert_eq!(events(&mut indicators), [said(None, LinkState::Up)]);
}

#[test]
fn a_default_route_that_was_second_to_another_interfaces_is_back_when_it_is_first() {
    let mut indicators = running(Watched::default());
    hear(
        &mut indicators,
        [
            gone(default_by(ROUTER)),
            route(WWAN, "0.0.0.0/0", Some(ROUTER), 700),
        ],
    );
    assert_eq!(events(&mut indicators), []);
    let cable = || route(ETH, "0.0.0.0/0", Some("203.0.113.1"), 100);
    hear(&mut indicators, [cable()]);
    assert_eq!(
        events(&mut indicators),
        [],
        "who crosses all the same may pass"
    );
    hear(&mut indicators, [gone(cable())]);
    let [down, up] = [LinkState::Down, LinkState::Up].map(|state| said(Some(ROUTER), state));
    assert_eq!(events(&mut indicators), [down, up]);
}

#[test]
fn a_route_that_another_interface_takes_over_is_lost() {
    let mut indicators = running(Watched::default());
    let taken = replacing(route(ETH, "0.0.0.0/0", Some("203.0.113.1"), 0));
    hear(&mut indicators, [taken]);
    assert_eq!(
        events(&mut indicators),
        [said(Some(ROUTER), LinkState::Down)]
    );
}

#[test]
fn routes_that_the_kernel_removes_without_a_word_are_missed() {
    let mut indicators = running(Watched::default());
    let off = Change::Interface {
        index: WWAN,
        name: "wwan0".into(),
        is_up: false,
        is_running: false,
        carrier_losses: None,
        mtu: 1430,
        hardware: Some([2, 0, 0, 0, 0, 1]),
        port_of: None,
    };
    hear(&mut indicators, [off]);
    events(&mut indicators);
    hear(&mut indicators, [interface(true)]);
    assert_eq!(indicators.state(), LinkState::Down, "no route is back yet");
    hear(
        &mut indicators,
        [route(WWAN, "192.0.2.0/24", None, 0), default_by(ROUTER)],
    );
    assert_eq!(indicators.state(), LinkState::Up);
}

#[test]
fn the_same_routes_told_anew_say_nothing() {
    let mut indicators = running(Watched::default());
    let all = || {
        vec![
            interface(true),
            address(true),
            default_by(ROUTER),
            route(WWAN, "192.0.2.0/24", None, 0),
        ]
    };
    indicators.handle_snapshot(at(1), all());
    assert_eq!(events(&mut indicators), []);
    // Missed changes are seen in the next snapshot.
    let mut without = all();
    without.remove(2);
    indicators.handle_snapshot(at(2), without);
    assert_eq!(
        events(&mut indicators),
        [said(Some(ROUTER), LinkState::Down)]
    );
}

#[test]
fn routes_of_other_tables_lead_through_the_interface_too() {
    let mut indicators = running(Watched::default());
    let ruled = Change::Route {
        interface: WWAN,
        way: Way {
            destination: Prefix {
                address: ip("0.0.0.0"),
                length: 0,
            },
            gateway: Some(ip(ROUTER)),
            table: 100,
            metric: 0,
        },
        is_present: true,
        replaces: false,
    };
    hear(&mut indicators, [ruled, gone(default_by(ROUTER))]);
    assert_eq!(events(&mut indicators), []);
    let far = ip("198.51.100.7");
    assert_eq!(indicators.link_to(far).peer, Some(ip(ROUTER)));
}
