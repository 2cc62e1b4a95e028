//! Machines, and what is proposed for each.

use super::*;
use crate::setup::machine::Services;

fn interface(name: &str, kind: Kind) -> Interface {
    Interface {
        name: name.into(),
        kind,
        is_default: false,
        has_network: false,
        master: None,
        ports: Vec::new(),
    }
}

fn uplink(name: &str, kind: Kind) -> Interface {
    Interface {
        is_default: true,
        has_network: true,
        ..interface(name, kind)
    }
}

fn local(name: &str, kind: Kind) -> Interface {
    Interface {
        has_network: true,
        ..interface(name, kind)
    }
}

fn port(name: &str, kind: Kind, master: &str) -> Interface {
    Interface {
        master: Some(master.into()),
        ..interface(name, kind)
    }
}

fn bridge(name: &str, ports: &[&str]) -> Interface {
    Interface {
        ports: ports.iter().map(|&port| port.into()).collect(),
        ..local(name, Kind::Bridge)
    }
}

/// A machine with systemd and a kernel of today.
fn machine(interfaces: impl Into<Vec<Interface>>) -> Machine {
    Machine {
        kernel: "6.12.0-1-amd64".into(),
        has_kernel_types: true,
        interfaces: interfaces.into(),
        services: Services {
            systemd: true,
            ..Services::default()
        },
        ..Machine::default()
    }
}

fn laptop(interfaces: impl Into<Vec<Interface>>) -> Machine {
    let mut laptop = machine(interfaces);
    laptop.is_portable = true;
    laptop.services.network_manager = true;
    laptop
}

fn router(interfaces: impl Into<Vec<Interface>>) -> Machine {
    Machine {
        forwards: true,
        ..machine(interfaces)
    }
}

/// A proposal in one line.
fn shown(decided: Result<Proposal, Refusal>) -> String {
    let proposal = match decided {
        Ok(proposal) => proposal,
        Err(refusal) => return format!("{refusal:?}"),
    };
    let mut words = vec![format!("{:?}:", proposal.situation)];
    for gateway in &proposal.gateways {
        let end = if gateway.is_end { " end" } else { "" };
        words.push(format!(
            "hold {} ({:?}{end})",
            gateway.interface, gateway.watch
        ));
    }
    if !proposal.agent.is_empty() {
        words.push(format!("agent {}", proposal.agent.join(",")));
    }
    words.extend(proposal.hooks.iter().map(|hook| format!("{hook:?}")));
    words.join(" ")
}

#[test]
fn hosts_whose_own_link_goes_away_get_a_gateway_on_it() {
    let wifi = laptop([
        interface("eth0", Kind::Ethernet),
        uplink("wlan0", Kind::WiFi),
    ]);
    assert_eq!(
        shown(decide(&wifi, &[])),
        "EndHost: hold wlan0 (Link end) NetworkManager"
    );
    let both = laptop([uplink("eth0", Kind::Ethernet), uplink("wlan0", Kind::WiFi)]);
    assert_eq!(
        shown(decide(&both, &[])),
        "EndHost: hold eth0 (Link end) hold wlan0 (Link end) NetworkManager"
    );
    // At its dock the Wi-Fi is asleep.
    let docked = laptop([
        uplink("eth0", Kind::Ethernet),
        interface("wlan0", Kind::WiFi),
    ]);
    assert_eq!(shown(decide(&docked, &[])), shown(decide(&both, &[])));
    let mut busy = laptop([
        bridge("docker0", &["veth1"]),
        port("veth1", Kind::Virtual, "docker0"),
        local("wg0", Kind::WireGuard),
        uplink("wlan0", Kind::WiFi),
    ]);
    busy.forwards = true;
    busy.services.wireguard_tools = true;
    assert_eq!(
        shown(decide(&busy, &[])),
        "EndHost: hold wlan0 (Link) hold wg0 (Tunnel) NetworkManager WireGuard(\"wg0\")"
    );
    let sensor = machine([uplink("wwan0", Kind::Modem)]);
    assert_eq!(
        shown(decide(&sensor, &[])),
        "EndHost: hold wwan0 (Link end)"
    );
}

#[test]
fn routers_get_a_gateway_on_each_uplink() {
    let mut modem = router([local("eth0", Kind::Ethernet), uplink("wwan0", Kind::Modem)]);
    modem.masquerades = true;
    modem.services.modem_manager = true;
    let proposal = decide(&modem, &[]).expect("a router");
    assert_eq!(proposal.notes.len(), 1, "{proposal:?}");
    assert_eq!(
        shown(Ok(proposal)),
        "Router: hold wwan0 (Link) ModemManager"
    );
    let mut openwrt = router([
        bridge("br-lan", &["lan1", "wlan0"]),
        port("lan1", Kind::Ethernet, "br-lan"),
        uplink("wan", Kind::Ethernet),
        port("wlan0", Kind::WiFi, "br-lan"),
    ]);
    openwrt.services.systemd = false;
    openwrt.services.access_points = vec!["wlan0".into()];
    assert_eq!(
        shown(decide(&openwrt, &[])),
        "Router: hold wan (Link) hold br-lan (Stations)"
    );
    openwrt.services.systemd = true;
    assert_eq!(
        shown(decide(&openwrt, &[])),
        "Router: hold wan (Link) hold br-lan (Stations) Hostapd(\"wlan0\")"
    );
    let two = router([
        local("lan0", Kind::Ethernet),
        uplink("sat0", Kind::Ethernet),
        uplink("wwan0", Kind::Modem),
    ]);
    assert_eq!(
        shown(decide(&two, &[])),
        "Router: hold sat0 (Link) hold wwan0 (Link)"
    );
}

#[test]
fn the_end_of_a_vpn_gets_a_gateway_on_the_tunnel() {
    let mut server = router([
        uplink("eth0", Kind::Ethernet),
        local("wg0", Kind::WireGuard),
    ]);
    let untold = decide(&server, &[]).expect("a server");
    assert!(untold.notes[0].contains("wireguard-tools"), "{untold:?}");
    server.services.wireguard_tools = true;
    assert_eq!(
        shown(decide(&server, &[])),
        "Tunnel: hold wg0 (Tunnel) WireGuard(\"wg0\")"
    );
    let tunnel = machine([local("tun0", Kind::Tunnel), uplink("eth0", Kind::Ethernet)]);
    assert_eq!(
        shown(decide(&tunnel, &[])),
        "Tunnel: hold tun0 (Tunnel end)"
    );
    // A module's own device, which nobody uses, is no tunnel.
    let unused = machine([
        interface("sit0", Kind::Tunnel),
        uplink("eth0", Kind::Ethernet),
    ]);
    assert_eq!(shown(decide(&unused, &[])), "Server: agent eth0");
}

#[test]
fn a_wired_server_gets_the_agent_where_its_kernel_has_what_that_needs() {
    let mut server = machine([uplink("ens3", Kind::Ethernet)]);
    assert_eq!(shown(decide(&server, &[])), "Server: agent ens3");
    server.services.network_manager = true;
    let shown_with_hook = shown(decide(&server, &[]));
    assert_eq!(shown_with_hook, "Server: agent ens3 NetworkManager");
    server.services.network_manager = false;
    server.kernel = "5.10.0-30-amd64".into();
    let old = decide(&server, &[]).expect("a server");
    assert_eq!(old.notes.len(), 1, "{old:?}");
    assert_eq!(shown(Ok(old)), "Server: hold ens3 (Link end)");
    // The host of containers forwards, and has no network behind it but theirs.
    let mut containers = router([
        bridge("docker0", &["veth1"]),
        uplink("ens3", Kind::Ethernet),
        port("veth1", Kind::Virtual, "docker0"),
    ]);
    assert_eq!(shown(decide(&containers, &[])), "Server: agent ens3");
    containers.has_kernel_types = false;
    assert_eq!(shown(decide(&containers, &[])), "Server: hold ens3 (Link)");
}

#[test]
fn containers_are_ends_unless_they_may_do_nothing() {
    let mut container = Machine {
        is_container: true,
        ..machine([uplink("eth0", Kind::Virtual)])
    };
    container.services.systemd = false;
    assert_eq!(
        shown(decide(&container, &[])),
        "EndHost: hold eth0 (Link end)"
    );
    container.is_confined = true;
    assert_eq!(
        decide(&container, &[]),
        Err(Refusal::Confined { is_container: true })
    );
}

#[test]
fn where_nothing_shows_the_link_the_user_is_asked_to_name_it() {
    let lost = machine([
        local("eth0", Kind::Ethernet),
        interface("eth1", Kind::Ethernet),
    ]);
    let there = vec!["eth0".to_owned(), "eth1".to_owned()];
    let expected = Refusal::NoUplink {
        there: there.clone(),
    };
    assert_eq!(decide(&lost, &[]), Err(expected));
    assert_eq!(
        shown(decide(&lost, &["eth1".into()])),
        "Named: hold eth1 (Link end)"
    );
    let name = "eth9".to_owned();
    let unknown = Refusal::Unknown {
        name: name.clone(),
        there,
    };
    assert_eq!(decide(&lost, &[name]), Err(unknown));
    assert_eq!(decide(&machine([]), &[]), Err(Refusal::NoInterface));
}
