//! Tunnels IP in IP with one end in the kernel and the other in user space. A kernel hands on segments as it has them:
//! without the inner checksum, and longer than the tunnel's packets.

use super::kernel_tunnels::{carries, count, has_kernel_tunnels, start_mixed};
use super::{CORRESPONDENT, HOME_ADDRESS, Hosts};
use crate::support::Place;

/// What is carried at once.
const LENGTH: usize = 4 << 20;

/// Carries bytes both ways between a home agent and a mobile node with a co-located address.
fn check(home_agent: &str, mobile_node: &str) {
    if !has_kernel_tunnels() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (agent, mobile) = start_mixed(&place, &hosts, [home_agent, mobile_node]);
    let said = || format!("{}{}", agent.said(), mobile.said());
    let (home, correspondent) = (&hosts.mobile, &hosts.correspondent);
    let down = carries(LENGTH, correspondent, home, CORRESPONDENT);
    assert!(down, "{}", said());
    let before = count(&place, "home-agent", "reverse_tunnelled");
    let up = carries(LENGTH, home, correspondent, HOME_ADDRESS.into());
    assert!(up, "{}", said());
    if home_agent == "user-space" {
        let packets = count(&place, "home-agent", "reverse_tunnelled") - before;
        let least = (LENGTH / 1440) as u64;
        assert!(packets < least, "{packets} packets: none is merged");
    }
    for (role, data_path) in [("home-agent", home_agent), ("mobile-node", mobile_node)] {
        for name in ["entered_in_kernel", "left_in_kernel"] {
            let counted = count(&place, role, name);
            assert_eq!(counted > 0, data_path == "ebpf", "{role}: {name} {counted}");
        }
    }
}

#[test]
fn a_home_agent_in_the_kernel_carries_for_a_mobile_node_in_user_space() {
    check("ebpf", "user-space");
}

#[test]
fn a_home_agent_in_user_space_carries_for_a_mobile_node_in_the_kernel() {
    check("user-space", "ebpf");
}
