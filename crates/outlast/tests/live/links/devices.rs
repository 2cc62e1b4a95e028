//! Devices above the cable, and a link that loses and reorders.

use super::bed::{Bed, Kind, UNDERLAY};
use super::{Carrier, LATER, outlasts, outlasts_within};
use crate::path::{LINK, Over};

fn over_a_device(commands: &str) {
    let commands = commands.replace("UNDERLAY", UNDERLAY).replace("LINK", LINK);
    if let Some(bed) = Bed::new(Kind::device(&commands)) {
        outlasts(&bed, Over::Ebpf, Carrier::Own);
    }
}

#[test]
fn a_cable_is_outlasted() {
    if let Some(bed) = Bed::new(Kind::cable()) {
        outlasts(&bed, Over::Ebpf, Carrier::Own);
    }
}

#[test]
fn a_virtual_lan_is_outlasted() {
    over_a_device("link add link UNDERLAY name LINK type vlan id 7\n");
}

#[test]
fn a_macvlan_is_outlasted() {
    over_a_device("link add link UNDERLAY name LINK type macvlan mode bridge\n");
}

#[test]
fn a_bridge_is_outlasted() {
    over_a_device("link add LINK type bridge\nlink set UNDERLAY master LINK\n");
}

/// A repetition may be lost, too: another timeout of the sender's.
#[test]
fn a_link_that_loses_and_reorders_is_outlasted() {
    let air = "delay 20ms 4ms 25% loss 1% rate 10mbit limit 100";
    if let Some(bed) = Bed::new(Kind::cable().with_air(air)) {
        outlasts_within(LATER, &bed, Over::Ebpf, Carrier::Own);
    }
}
