//! Costs of forged and recorded packets to a home agent, a correspondent and a mobile node of Mobile IPv6. The baseline is
//! a packet that the home agent sends into a mobile node's tunnel.

#[allow(unused_imports, reason = "the tests use all of it")]
#[path = "../tests/mobility/network_v6/mod.rs"]
mod network_v6;

use divan::Bencher;
use network_v6::{
    HOME_AGENT, Network, Setup, care_of_address, correspondent_address, home_address, ms, probe,
};
use outlast_base::time::Duration;
use outlast_wire::mobile_ipv6::{
    BindingErrorStatus, BindingUpdate, Message, UpdateFlags, UpdateLifetime, add_home_address,
    encapsulate, home_address_of, mobility_packet,
};
use outlast_wire::{IcmpNotice, Packet};

fn main() {
    divan::main();
}

/// A mobile node away from home that has a binding with its correspondent.
fn network() -> Network {
    let mut network = Network::new(Setup {
        route_optimization: true,
        ..Setup::default()
    });
    network.place(0, Some(1));
    network.run(ms(100));
    assert!(network.reaches(0), "through the home agent");
    network.run(ms(300));
    assert_eq!(network.correspondent(0).bindings().count(), 1);
    network
}

/// The binding update that the mobile node has sent last to this address.
fn recorded(network: &Network, to: core::net::Ipv6Addr) -> Packet {
    let mut packets = network.posted.iter().map(|(_, packet)| packet);
    let found = packets
        .rfind(|packet| packet.header().ip.destination == to && home_address_of(packet).is_some());
    found.expect("an update").clone()
}

/// Receiver of the forged packets.
#[derive(Clone, Copy)]
enum To {
    Home,
    Mobile,
    Correspondent,
}

/// Has the receiver judge the packet again and again, with so much time between.
fn judge(bencher: Bencher<'_, '_>, network: &mut Network, to: To, packet: &Packet, step: Duration) {
    let mut now = network.now;
    let (home, mobile, far) = (
        &mut network.home,
        &mut network.mobiles[0].node,
        network.far[0].machine.as_mut().expect("it runs"),
    );
    bencher
        .with_inputs(|| packet.clone())
        .bench_local_values(|packet| {
            now += step;
            match to {
                To::Home => {
                    let _ = home.handle_packet(now, packet);
                    while home.poll_transmit().is_some() || home.poll_event().is_some() {}
                }
                To::Mobile => {
                    let _ = mobile.handle_packet(now, &packet);
                    while mobile.poll_transmit().is_some() || mobile.poll_event().is_some() {}
                }
                To::Correspondent => {
                    let _ = far.handle_packet(now, &packet);
                    while far.poll_transmit().is_some() || far.poll_event().is_some() {}
                }
            }
        });
}

/// As many packets as fit: all but the first ones are beyond the limits.
const FLOOD: Duration = Duration::ZERO;
/// Slow enough that each gets its answer.
const ALLOWED: Duration = Duration::from_millis(300);

mod home_agent {
    use super::*;

    #[divan::bench]
    fn baseline_into_the_tunnel(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let packet = probe(correspondent_address(3), home_address(0));
        let before = network.home.counters().tunnelled;
        judge(bencher, &mut network, To::Home, &packet, FLOOD);
        assert!(network.home.counters().tunnelled > before);
    }

    #[divan::bench]
    fn recorded_update(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let packet = recorded(&network, HOME_AGENT);
        judge(bencher, &mut network, To::Home, &packet, FLOOD);
    }

    #[divan::bench]
    fn recorded_update_that_is_answered(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let packet = recorded(&network, HOME_AGENT);
        judge(bencher, &mut network, To::Home, &packet, ALLOWED);
    }

    #[divan::bench]
    fn tunnel_of_a_stranger(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let inner = probe(home_address(0), correspondent_address(0));
        let outer = encapsulate(inner, care_of_address(0, 9), HOME_AGENT);
        judge(
            bencher,
            &mut network,
            To::Home,
            &outer.expect("it fits"),
            FLOOD,
        );
    }

    #[divan::bench]
    fn forged_too_big(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let inner = probe(correspondent_address(0), home_address(0));
        let outer = encapsulate(inner, HOME_AGENT, care_of_address(0, 2)).expect("it fits");
        let router = correspondent_address(9).into();
        let error = Packet::icmp_error(router, IcmpNotice::TooBig { mtu: 1_280 }, &outer);
        judge(
            bencher,
            &mut network,
            To::Home,
            &error.expect("an error"),
            FLOOD,
        );
    }
}

mod correspondent {
    use super::*;

    fn test_init() -> Packet {
        let (source, far) = (care_of_address(0, 9), correspondent_address(0));
        let message = Message::CareOfTestInit { cookie: 7 }.emit();
        mobility_packet(source, far, &message.finish(source, far))
    }

    #[divan::bench]
    fn test(bencher: Bencher<'_, '_>) {
        let mut network = network();
        judge(
            bencher,
            &mut network,
            To::Correspondent,
            &test_init(),
            FLOOD,
        );
    }

    #[divan::bench]
    fn test_that_is_answered(bencher: Bencher<'_, '_>) {
        let mut network = network();
        judge(
            bencher,
            &mut network,
            To::Correspondent,
            &test_init(),
            ALLOWED,
        );
    }

    #[divan::bench]
    fn forged_update(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let update = Message::BindingUpdate(BindingUpdate {
            sequence: 40_000,
            flags: UpdateFlags::ACKNOWLEDGE,
            lifetime: UpdateLifetime(100),
        });
        let (home, far) = (home_address(0), correspondent_address(0));
        let message = update.emit().nonce_indices(0, 0).authorize(|_| [1; 12]);
        let packet = mobility_packet(home, far, &message.finish(home, far));
        let packet = add_home_address(&packet, care_of_address(0, 9)).expect("it fits");
        judge(bencher, &mut network, To::Correspondent, &packet, FLOOD);
        let refused = network
            .correspondent(0)
            .counters()
            .refused_for_authentication;
        assert!(refused > 0);
    }

    /// Data from a home address of which no binding is known.
    #[divan::bench]
    fn unknown_home_address(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let packet = probe(home_address(7), correspondent_address(0));
        let packet = add_home_address(&packet, care_of_address(0, 9)).expect("it fits");
        judge(bencher, &mut network, To::Correspondent, &packet, FLOOD);
        assert!(network.correspondent(0).counters().dropped_strangers > 0);
    }
}

mod mobile_node {
    use super::*;

    #[divan::bench]
    fn tunnel_of_a_stranger(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let inner = probe(correspondent_address(0), home_address(0));
        let outer = encapsulate(inner, correspondent_address(9), care_of_address(0, 1));
        judge(
            bencher,
            &mut network,
            To::Mobile,
            &outer.expect("it fits"),
            FLOOD,
        );
    }

    #[divan::bench]
    fn forged_binding_error(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let (far, node) = (correspondent_address(0), care_of_address(0, 1));
        let error = Message::BindingError {
            status: BindingErrorStatus::NO_BINDING,
            home_address: home_address(0),
        };
        let packet = mobility_packet(far, node, &error.emit().finish(far, node));
        judge(bencher, &mut network, To::Mobile, &packet, FLOOD);
    }

    /// An answer to an update that was never sent.
    #[divan::bench]
    fn forged_acknowledgement(bencher: Bencher<'_, '_>) {
        let mut network = network();
        let acknowledgements = network.posted.iter().map(|(_, packet)| packet);
        let mut to_node = acknowledgements.filter(|packet| {
            packet.header().ip.source == HOME_AGENT
                && packet.header().ip.destination == care_of_address(0, 1)
        });
        let packet = to_node.next().expect("an acknowledgement").clone();
        judge(bencher, &mut network, To::Mobile, &packet, FLOOD);
    }
}
