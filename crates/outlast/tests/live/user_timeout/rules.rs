//! `[[host.user_timeout.rules]]`: other timeouts for some connections, and longer ones in an outage.

use super::hosts::{Agent, CLIENT, Hosts, SERVER};
use super::{Cgroup, SYN, SYN_ACK, exchange, shell_connects, timeout_of, told};
use crate::path::until;
use crate::support::Place;
use std::net::{TcpListener, TcpStream};

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().expect("bound").port()
}

#[test]
fn the_first_rule_that_is_about_a_connection_holds() {
    let Some(hosts) = Hosts::new() else { return };
    let Some(cgroup) = Cgroup::new("rules") else {
        return;
    };
    let place = Place::new();
    let [by_port, by_interface, none] = [(); 3].map(|()| hosts.listen(false));
    let by_peer = hosts.listen(true);
    let table = format!(
        "advertise = \"10 min\"\n\
         [[host.user_timeout.rules]]\nport = {}\nadvertise = \"20 min\"\n\
         [[host.user_timeout.rules]]\npeer = \"fd00::/64\"\nadvertise = \"30 min\"\n\
         [[host.user_timeout.rules]]\nport = {interface}\ninterface = \"link01\"\nadvertise = \"1 h\"\n\
         [[host.user_timeout.rules]]\nport = {interface}\ninterface = \"link0\"\nadvertise = \"40 min\"\n\
         [[host.user_timeout.rules]]\npeer = \"10.2.0.0/16\"\nadvertise = \"2 h\"\n\
         [[host.user_timeout.rules]]\ncgroup = \"{}\"\nadvertise = \"50 min\"\n",
        port_of(&by_port),
        cgroup.0.display(),
        interface = port_of(&by_interface),
    );
    let client = Agent::start(&place, &hosts.ends[CLIENT], "c", &table);
    let port = port_of(&by_port);
    let table = format!(
        "advertise = \"3 min\"\n\
         [[host.user_timeout.rules]]\nport = {port}\nadvertise = \"4 min\"\n"
    );
    let server = Agent::start(&place, &hosts.ends[SERVER], "s", &table);
    let (Some(_client), Some(_server)) = (client, server) else {
        return;
    };
    for (listener, own, peers) in [
        (&by_port, 1_200_u32, 240_u32),
        (&by_peer, 1_800, 180),
        (&by_interface, 2_400, 180),
        (&none, 600, 180),
    ] {
        hosts.forget();
        let sockets = hosts.connect(listener);
        exchange(&sockets);
        exchange(&sockets);
        assert_eq!(timeout_of(&sockets[CLIENT]), f64::from(own));
        // The connection before ends meanwhile.
        let seen = hosts.seen();
        let wish = |end, flags| told(&seen, end).into_iter().find(|one| one.0 == flags);
        assert_eq!(wish(CLIENT, SYN), Some((SYN, Some(own.into()))), "{seen:?}");
        assert_eq!(
            wish(SERVER, SYN_ACK),
            Some((SYN_ACK, Some(u64::from(peers)))),
            "{seen:?}"
        );
        // The server adopts the longer wish of the client's.
        assert_eq!(timeout_of(&sockets[SERVER]), f64::from(own));
    }
    for (cgroup, expected) in [(None, 600), (Some(&cgroup), 3_000)] {
        hosts.forget();
        shell_connects(&hosts, &none, cgroup);
        let told = told(&hosts.seen(), CLIENT);
        let syn = told.iter().find(|(flags, _)| *flags == SYN);
        assert_eq!(syn, Some(&(SYN, Some(expected))));
    }
}

#[test]
fn connections_are_kept_for_longer_while_their_link_is_away() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let [short, long] = [(); 2].map(|()| hosts.listen(false));
    let table = format!(
        "advertise = \"10 min\"\nin_outage = \"3 h\"\n\
         [[host.user_timeout.rules]]\nport = {}\nadvertise = \"5 min\"\nin_outage = \"6 min\"\n",
        port_of(&short),
    );
    let Some(client) = Agent::start(&place, &hosts.ends[CLIENT], "c", &table) else {
        return;
    };
    let both = [&short, &long].map(|listener| hosts.connect(listener));
    both.iter().for_each(exchange);
    let own = hosts.connect(&long);
    rustix::net::sockopt::set_tcp_user_timeout(&own[CLIENT], 7_000).expect("a TCP socket");
    let timeouts = || both.each_ref().map(|sockets| timeout_of(&sockets[CLIENT]));
    assert_eq!(timeouts(), [300.0, 600.0]);
    let notify = |state: &str| {
        let arguments = ["notify", state, "--control", "c.sock", "--link", "link0"];
        let said = place.run(arguments);
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    notify("down");
    until("the timeouts are longer", || {
        timeouts() == [360.0, 10_800.0]
    });
    assert_eq!(timeout_of(&own[CLIENT]), 7.0, "its application's own");
    // The configuration may change meanwhile.
    client.reload(&table.replace("in_outage = \"3 h\"", "in_outage = \"4 h\""));
    until("the timeouts are still longer", || {
        timeouts() == [360.0, 14_400.0]
    });
    notify("up");
    until("the timeouts are as before", || {
        timeouts() == [300.0, 600.0]
    });
    both.iter().for_each(exchange);
    assert_eq!(timeouts(), [300.0, 600.0]);
    // An agent that ends in an outage leaves every socket to the kernel's own limits.
    notify("down");
    until("the timeouts are longer", || {
        timeouts() == [360.0, 14_400.0]
    });
    client.end();
    assert_eq!(timeouts(), [0.0, 0.0]);
    let sockets: [&[TcpStream; 2]; 2] = both.each_ref();
    sockets.into_iter().for_each(exchange);
}
