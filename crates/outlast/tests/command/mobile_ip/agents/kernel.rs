//! A foreign agent's tunnels in the kernel.

use super::{CORRESPONDENT, Cell, Hosts};
use crate::hip::{Sender, connect, read};
use crate::mobile_ip::kernel_tunnels::{count, has_kernel_tunnels};
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
