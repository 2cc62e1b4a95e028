//! A foreign agent's tunnels in the kernel.

use super::{CORRESPONDENT, CareOf, Cell, HOME_ADDRESS, Hosts, configure};
use crate::hip::{Sender, connect, read};
use crate::mobile_ip::kernel_tunnels::{carries, choose_in, count, has_kernel_tunnels};
use crate::support::Place;
use std::sync::atomic::Ordering;

#[test]
fn foreign_agents_carry_packets_of_their_visitors_in_the_kernel_while_they_are_there() {
    if !has_kernel_tunnels() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    hosts.move_to(Cell::A, false);
    let daemons = hosts.start(&place, "eager");
    daemons.mobile.await_lines(&Cell::A.registered(), 1);
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.mobile, CORRESPONDENT, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 400_000), "{}", daemons.said());
    let counted = |agent: &str, name: &str| count(&place, agent, name);
    for agent in ["home-agent", "a"] {
        for name in ["entered_in_kernel", "left_in_kernel"] {
            assert!(counted(agent, name) > 0, "{agent}: {name}");
        }
    }
    let left = counted("a", "left_in_kernel");
    assert!(counted("a", "delivered") >= left, "of {left}");
    assert_eq!(counted("b", "left_in_kernel"), 0);

    hosts.move_to(Cell::B, false);
    daemons.mobile.await_lines(&Cell::B.registered(), 1);
    let left = counted("a", "left_in_kernel");
    assert!(read(&mut stream, &mut at, 400_000), "{}", daemons.said());
    assert!(counted("b", "left_in_kernel") > 0, "where it is now");
    assert_eq!(counted("a", "left_in_kernel"), left, "where it was");
    sender.is_over.store(true, Ordering::Relaxed);
}

/// A download and an upload of 4 MiB, with the home agent's end and the foreign agent's end of the tunnel in different
/// places.
fn check_mixed(home_agent: &str, foreign_agent: &str) {
    if !has_kernel_tunnels() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    hosts.move_to(Cell::A, false);
    configure(&place, "eager");
    choose_in(&place, "home-agent.toml", "home-agent", home_agent);
    for file in ["a.toml", "b.toml"] {
        choose_in(&place, file, "foreign-agent", foreign_agent);
    }
    let daemons = hosts.start_configured(&place, CareOf::ForeignAgent);
    daemons.mobile.await_lines(&Cell::A.registered(), 1);
    let (home, correspondent) = (&hosts.mobile, &hosts.correspondent);
    let before = count(&place, "a", "delivered");
    let down = carries(4 << 20, correspondent, home, CORRESPONDENT);
    assert!(down, "{}", daemons.said());
    if foreign_agent == "user-space" {
        let packets = count(&place, "a", "delivered") - before;
        assert!(packets < (4 << 20) / 1440, "{packets}: none is merged");
    }
    let up = carries(4 << 20, home, correspondent, HOME_ADDRESS.into());
    assert!(up, "{}", daemons.said());
    for (agent, data_path) in [("home-agent", home_agent), ("a", foreign_agent)] {
        for name in ["entered_in_kernel", "left_in_kernel"] {
            let counted = count(&place, agent, name);
            let is_in_kernel = data_path == "ebpf";
            assert_eq!(counted > 0, is_in_kernel, "{agent}: {name} {counted}");
        }
    }
}

#[test]
fn a_home_agent_in_the_kernel_carries_for_a_foreign_agent_in_user_space() {
    check_mixed("ebpf", "user-space");
}

#[test]
fn a_home_agent_in_user_space_carries_for_a_foreign_agent_in_the_kernel() {
    check_mixed("user-space", "ebpf");
}
