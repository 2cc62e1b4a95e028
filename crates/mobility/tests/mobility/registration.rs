//! Registration, deregistration, tunnels and ARP, from end to end.

use crate::network::{
    CORRESPONDENT, HOME, Network, Node, Setup, association, foreign_address, home_address, ms,
};
use outlast_base::time::Duration;
use outlast_mobility::{Arp, Attachment, Detection, HomeEvent, HomeLimits, LinkId, NodeEvent};
use outlast_wire::mobile_ip::{Lifetime, ReplyCode};
use std::net::Ipv4Addr;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_mobile_node_is_reached_where_it_goes_and_at_home() {
    let mut network = Network::new(Setup::default());
    network.place(0, &[HOME]);
    network.run(SECOND * 3);
    assert!(network.reaches(0), "at home");
    for cell in [1, 2, 1] {
        network.place(0, &[cell]);
        assert!(!network.reaches(0), "nobody knows yet where it is");
        network.run(SECOND * 5);
        let care_of: Vec<_> = network.home.care_of_addresses(home_address(0)).collect();
        assert_eq!(care_of, [foreign_address(cell)]);
        assert!(network.reaches(0), "in cell {cell}");
        network.from_mobiles = 0;
        network.send_outgoing(0);
        network.run(SECOND);
        assert_eq!(network.from_mobiles, 1, "through the reverse tunnel");
    }
    assert!(network.foreign(1).counters().reverse_tunnelled > 0);
    network.place(0, &[HOME]);
    network.run(SECOND * 5);
    assert_eq!(network.home.away(), 0);
    assert!(network.reaches(0), "back at home");
}

#[test]
fn without_a_reverse_tunnel_packets_go_straight() {
    let mut network = Network::new(Setup {
        reverse_tunnel: false,
        ..Setup::default()
    });
    network.place(0, &[1]);
    network.run(SECOND * 3);
    assert!(network.reaches(0));
    network.send_outgoing(0);
    network.run(SECOND);
    assert_eq!(network.from_mobiles, 1);
    assert_eq!(network.foreign(1).counters().reverse_tunnelled, 0);
}

#[test]
fn an_address_of_the_own_is_enough_also_behind_a_translator() {
    for is_translated in [false, true] {
        let mut network = Network::new(Setup::default());
        let own = Ipv4Addr::new(10, 50, 0, 7);
        network.co_locate(0, Some((own, is_translated)));
        network.run(SECOND);
        assert!(matches!(
            network.mobiles[0].node.attachment(),
            Attachment::CoLocated(_)
        ));
        assert!(network.reaches(0), "translated: {is_translated}");
        network.send_outgoing(0);
        network.run(SECOND);
        assert_eq!(network.from_mobiles, 1, "translated: {is_translated}");
        let tunnelled = network.home.counters().reverse_tunnelled;
        network.run(SECOND * 250);
        let kept_alive = network.home.counters().reverse_tunnelled - tunnelled;
        assert_eq!(kept_alive > 0, is_translated, "signs of life in UDP alone");
        network.co_locate(0, None);
        network.place(0, &[HOME]);
        network.run(SECOND * 5);
        assert_eq!(network.home.away(), 0);
    }
}

#[test]
fn a_node_that_ends_tells_its_home_agent() {
    for is_translated in [false, true] {
        let mut network = Network::new(Setup::default());
        let own = Ipv4Addr::new(10, 50, 0, 7);
        network.co_locate(0, Some((own, is_translated)));
        network.run(SECOND);
        assert_eq!(network.home.away(), 1);
        network.deregister(0);
        network.run(SECOND);
        assert_eq!(network.home.away(), 0, "translated: {is_translated}");
        let left = HomeEvent::Deregistered {
            home_address: home_address(0),
            care_of_address: own,
        };
        let events = network.home_events.iter();
        assert_eq!(events.filter(|(_, event)| *event == left).count(), 1);
        assert_eq!(network.home.counters().refused, 0);
    }
}

#[test]
fn a_mobile_node_that_is_struck_off_is_not_served() {
    let mut network = Network::new(Setup {
        mobiles: 2,
        ..Setup::default()
    });
    for mobile in 0..2 {
        network.co_locate(
            mobile,
            Some((Ipv4Addr::new(10, 50, 0, 7 + mobile as u8), false)),
        );
    }
    network.run(SECOND);
    assert!(network.reaches(0) && network.reaches(1));
    let rest = [(home_address(1), vec![association(1)])];
    network.home.set_mobiles(rest.into_iter().collect());
    network.run(SECOND);
    assert!(!network.reaches(0) && network.reaches(1));
    network.run(SECOND * 300);
    assert_eq!(network.home.away(), 1, "its renewals are refused");
    assert!(network.home.counters().refused_for_authentication > 0);
}

/// RFC 5944, section 4.6: silent before the request goes, proxy when it is accepted; at home the
/// mobile node's own ARP first, and the home agent's last.
#[test]
fn arp_changes_in_the_order_that_is_prescribed() {
    let mut network = Network::new(Setup {
        detection: Detection::Link,
        ..Setup::default()
    });
    network.place(0, &[HOME]);
    network.run(SECOND * 5);
    network.arps.clear();
    let address = home_address(0);
    let home = LinkId(0);
    network.place(0, &[1]);
    network.run(SECOND * 5);
    let done = |network: &Network| {
        let done = network.arps.iter();
        done.map(|(_, node, arp)| (*node, *arp)).collect::<Vec<_>>()
    };
    let of_agent = Arp::Gratuitous {
        link: home,
        address,
        owner: None,
    };
    let link = home;
    assert_eq!(
        done(&network),
        [
            (Node::Mobile(0), Arp::Silence { address }),
            (Node::Home, of_agent),
            (Node::Home, Arp::StartProxy { link, address }),
            (Node::Home, of_agent),
            (Node::Home, of_agent),
        ]
    );
    network.arps.clear();
    network.place(0, &[HOME]);
    network.run(SECOND * 5);
    let done = done(&network);
    let of_mobile = Arp::Gratuitous {
        link: home,
        address,
        owner: None,
    };
    assert_eq!(
        done[..4],
        [
            (Node::Mobile(0), Arp::Resume { address }),
            (Node::Mobile(0), of_mobile),
            (Node::Home, Arp::StopProxy { link, address }),
            done[3],
        ]
    );
    let is_its_owns =
        |(_, arp): &(Node, Arp)| matches!(arp, Arp::Gratuitous { owner: Some(_), .. });
    assert!(done[3..].iter().all(is_its_owns), "{done:?}");
    assert_eq!(done.len(), 6);
}

#[test]
fn a_refused_request_changes_no_arp() {
    let setup = Setup::default();
    let mut network = Network::new(setup).with_mobile(|config| config.home = association(9));
    network.place(0, &[1]);
    network.run(SECOND * 5);
    let of_home = network
        .arps
        .iter()
        .filter(|(_, node, _)| *node == Node::Home);
    assert_eq!(of_home.count(), 0);
    assert!(network.home.counters().refused_for_authentication > 0);
    assert!(!network.mobiles[0].node.is_registered());
}

#[test]
fn bindings_are_renewed_and_end_without_renewal() {
    let mut network = Network::new(Setup {
        lifetime: 30,
        ..Setup::default()
    });
    network.place(0, &[1]);
    network.run(SECOND * 200);
    assert!(network.reaches(0), "renewed");
    let accepted = network.home.counters().accepted;
    assert!((9..=12).contains(&accepted), "every 20 s: {accepted}");
    network.place(0, &[]);
    network.run(SECOND * 31);
    assert_eq!(network.home.away(), 0);
    assert_eq!(network.foreign(1).visitors(), 0);
    let expired = |event: &HomeEvent| matches!(event, HomeEvent::Expired { .. });
    assert!(network.home_events.iter().any(|(_, event)| expired(event)));
    let lost = |event: &NodeEvent| matches!(event, NodeEvent::Expired | NodeEvent::Detached);
    assert!(
        network.mobiles[0]
            .events
            .iter()
            .any(|(_, event)| lost(event))
    );
}

#[test]
fn simultaneous_bindings_get_a_copy_each() {
    for (most, expected) in [(4, 2), (1, 1)] {
        let mut network = Network::new(Setup {
            detection: Detection::Eager,
            limits: HomeLimits {
                bindings_per_mobile: most,
                ..HomeLimits::default()
            },
            ..Setup::default()
        })
        .with_mobile(|config| config.simultaneous_bindings = true);
        network.place(0, &[1]);
        network.run(SECOND * 5);
        network.place(0, &[1, 2]);
        network.run(SECOND * 3);
        let bindings = network.home.care_of_addresses(home_address(0)).count();
        assert_eq!(bindings, expected);
        let before = network.mobiles[0].probes;
        assert!(network.reaches(0));
        assert_eq!(network.mobiles[0].probes - before, expected as u64);
    }
}

#[test]
fn a_wrong_clock_is_set_by_the_home_agent() {
    for offset in [1_000_i64, -1_000] {
        let mut network = Network::new(Setup::default()).with_mobile(|config| {
            let ntp = crate::network::NTP.wrapping_add_signed(offset << 32);
            config.clock.set(outlast_base::time::Instant::ZERO, ntp);
        });
        network.place(0, &[1]);
        network.run(SECOND * 4);
        assert_eq!(network.home.counters().refused_for_identification, 1);
        assert_eq!(network.mobiles[0].node.counters().resynchronised, 1);
        assert!(network.reaches(0), "offset {offset} s");
    }
}

#[test]
fn a_lifetime_that_is_too_long_is_shortened() {
    let mut network = Network::new(Setup {
        lifetime: 10_000,
        ..Setup::default()
    });
    network.place(0, &[1]);
    network.run(SECOND * 3);
    assert!(network.reaches(0));
    // The agents say how long at most, and the mobile node keeps to it: nobody has to refuse.
    assert_eq!(network.mobiles[0].node.counters().refused, 0);
    network.run(SECOND * 1_300);
    assert!(network.home.counters().accepted >= 2, "renewed at 1,200 s");
}

#[test]
fn a_restarted_foreign_agent_is_noticed_by_its_number() {
    let mut network = Network::new(Setup::default());
    network.place(0, &[1]);
    network.run(SECOND * 20);
    network.start_foreign(1);
    assert!(!network.reaches(0), "the agent has forgotten its visitors");
    network.run(SECOND * 2);
    assert!(network.reaches(0));
}

/// RFC 5944, section 3.6.3: not under a second, each time twice as long, at most the lifetime.
#[test]
fn a_silent_home_agent_is_asked_again_less_and_less_often() {
    let mut network = Network::new(Setup {
        lifetime: 60,
        ..Setup::default()
    });
    network.is_home_cut_off = true;
    network.place(0, &[1]);
    network.run(SECOND * 62);
    let counters = *network.mobiles[0].node.counters();
    // At 0, 1, 3, 7, 15 and 31 s, give or take what the foreign agent says of it.
    assert!((5..=7).contains(&counters.requests), "{counters:?}");
    assert!(network.foreign(1).counters().timed_out > 0);
    assert_eq!(counters.put_off, 0);
    network.is_home_cut_off = false;
    network.run(SECOND * 60);
    assert!(network.reaches(0), "no later than after one lifetime");
}

#[test]
fn what_is_too_big_for_the_tunnel_is_turned_round() {
    use outlast_wire::{IcmpNotice, IpHeader, Packet, TcpHeader, Transport};
    let mut network = Network::new(Setup::default());
    network.place(0, &[1]);
    network.run(SECOND * 3);
    let ip = IpHeader::new(CORRESPONDENT.into(), home_address(0).into());
    let big = Packet::tcp_segment(ip, TcpHeader::default(), &[1; 1_400]);
    network.replay(big.clone());
    // A router on the way complains of what was in the tunnel.
    let arrival = outlast_mobility::Arrival {
        link: LinkId(1_000),
        from: outlast_mobility::LinkAddress([0; 6]),
    };
    let mut home = core::mem::replace(&mut network.home, fresh());
    let _ = home.handle_packet(network.now, arrival, big.clone());
    let Some(outlast_mobility::Transmit::Packet { packet: outer, .. }) = home.poll_transmit()
    else {
        panic!("it is tunnelled");
    };
    let router = Ipv4Addr::new(10, 9, 9, 9);
    let error = Packet::icmp_error(router.into(), IcmpNotice::TooBig { mtu: 1_400 }, &outer);
    let _ = home.handle_packet(network.now, arrival, error.expect("an error"));
    let mut told = Vec::new();
    let _ = home.handle_packet(network.now, arrival, big);
    while let Some(outlast_mobility::Transmit::Packet { packet, .. }) = home.poll_transmit() {
        told.push(packet);
    }
    // The first is the router's complaint turned round, the second the answer to the next packet.
    assert_eq!(told.len(), 2, "{told:?}");
    for packet in told {
        assert_eq!(packet.header().ip.destination, CORRESPONDENT);
        let Transport::IcmpError(about) = &packet.header().transport else {
            panic!("{packet:?}");
        };
        assert_eq!(about.mtu, Some(1_380));
    }
}

fn fresh() -> outlast_mobility::HomeAgent {
    Network::new(Setup::default()).home
}

#[test]
fn requests_are_not_more_than_one_a_second_on_average() {
    // Two cells, each heard alone for half a second, and a node that is eager.
    let mut network = Network::new(Setup {
        detection: Detection::Link,
        ..Setup::default()
    });
    for turn in 0..200 {
        network.place(0, &[1 + turn % 2]);
        network.run(ms(500));
    }
    let counters = network.mobiles[0].node.counters();
    assert!(counters.requests <= 103, "{counters:?}");
    assert!(counters.put_off > 0, "{counters:?}");
}

#[test]
fn registration_codes_have_names() {
    assert_eq!(
        ReplyCode::HOME_IDENTIFICATION.to_string(),
        "133 (registration identification mismatch)"
    );
    assert_eq!(Lifetime(3).duration(), Some(SECOND * 3));
}
