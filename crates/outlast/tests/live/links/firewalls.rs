//! Firewalls that follow connections, and routers that translate addresses.

use super::bed::{Bed, Kind, ROUTERS};
use super::{Carrier, outlasts};
use crate::path::wiring::add_rules;
use crate::path::{LINK, Over};

/// Hosts of the router's own network may open connections, and nobody else; what belongs to none is dropped.
const STATEFUL: &str = "
table inet firewall {
    chain forward {
        type filter hook forward priority filter; policy drop;
        ct state invalid drop
        ct state established,related accept
        iifname lan0 accept
    }
    chain input {
        type filter hook input priority filter; policy drop;
        ct state invalid drop
        ct state established,related accept
        iifname lo accept
        iifname lan0 accept
    }
}
";

/// The near router's firewall, and how it translates addresses.
fn behind(rules: &str, over: Over) {
    let Some(bed) = Bed::new(Kind::cable()) else {
        return;
    };
    if add_rules(&bed.near_router, &format!("{STATEFUL}{rules}")).is_some() {
        outlasts(&bed, over, Carrier::Own);
    }
}

fn translating(how: &str) -> String {
    format!(
        "
table ip nat {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        oifname {LINK} {how}
    }}
}}
"
    )
}

#[test]
fn a_link_behind_a_stateful_firewall_that_masquerades_is_outlasted() {
    behind(&translating("masquerade"), Over::Ebpf);
}

#[test]
fn so_it_is_there_where_packets_come_to_user_space() {
    behind(&translating("masquerade"), Over::Nfqueue);
}

#[test]
fn a_link_behind_a_fixed_translation_is_outlasted() {
    behind(&translating(&format!("snat to {}", ROUTERS[0])), Over::Ebpf);
}
