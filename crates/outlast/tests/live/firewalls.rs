//! A firewall on the gateway's own host that lets out only what belongs to a tracked connection: what the gateway sends again
//! passes it, as the originals did. Where a firewall drops it all the same, the status says so.
//!
//! A test says so and ends on a machine that lacks what it needs.

use crate::path::told::ToldSite;
use crate::path::wiring::add_rules;
use crate::path::{Over, at_once, wait};
use outlast_base::time::Duration;
use outlast_testbed::site::{LINK, Place as Host};
use std::net::Shutdown;

/// From the beginning of the transfer until the link goes.
const BEFORE: Duration = Duration::from_secs(2);
const OUTAGE: Duration = Duration::from_secs(8);
const AT_ONCE: Duration = Duration::from_millis(400);

/// The host's own packets leave it only as those of connections that it knows.
fn lets_out_what_is_tracked() -> String {
    "add table inet fw\n\
     add chain inet fw out { type filter hook output priority filter; policy drop; }\n\
     add rule inet fw out oif lo accept\n\
     add rule inet fw out ct state established,related accept\n\
     add rule inet fw out ct state new tcp flags syn accept\n\
     add chain inet fw through { type filter hook forward priority filter; policy drop; }\n\
     add rule inet fw through ct state established,related accept\n\
     add rule inet fw through ct state invalid drop\n\
     add rule inet fw through ct state new tcp flags syn accept\n"
        .into()
}

/// The host's own packets leave it only as those of known connections, and all bear its address on the link.
fn lets_out_what_is_tracked_and_masks() -> String {
    lets_out_what_is_tracked()
        + &format!(
            "add table ip nat\n\
             add chain ip nat out {{ type nat hook postrouting priority srcnat; }}\n\
             add rule ip nat out oifname \"{LINK}\" masquerade\n"
        )
}

/// From the link's return until the mobile host reads something new of what `from` sends, behind that firewall.
fn goes_on_after(
    over: Option<Over>,
    congestion: &str,
    from: Host,
    rules: &str,
) -> Option<Duration> {
    let link = ToldSite::with_stack(over, true, congestion)?;
    add_rules(&link.site.gateway, rules)?;
    let (sender, read) = link.transfer(from, Host::Mobile);
    wait(BEFORE);
    link.cut();
    link.tell_down();
    wait(OUTAGE);
    let back = link.mend();
    let first = read.iter().find(|at| *at >= back).expect("it goes on");
    if over.is_some() {
        let status = link.status_when("all was sent", |status| {
            status["counters"]["resent"].as_u64() > Some(0)
        });
        assert_eq!(status["counters"]["forbidden"], 0, "{status:#}");
    }
    sender.shutdown(Shutdown::Both).expect("it is open");
    link.stop();
    Some(first.since(back))
}

#[test]
fn what_a_router_sends_again_passes_its_own_firewall() {
    let rules = lets_out_what_is_tracked();
    at_once::judge(AT_ONCE, |over| {
        goes_on_after(over, "cubic", Host::Fixed, &rules)
    });
}

#[test]
fn what_a_router_sends_again_passes_its_own_firewall_bbr() {
    let rules = lets_out_what_is_tracked();
    at_once::judge(AT_ONCE, |over| {
        goes_on_after(over, "bbr", Host::Fixed, &rules)
    });
}

#[test]
fn what_a_router_sends_again_is_translated_and_passes_its_own_firewall() {
    let rules = lets_out_what_is_tracked_and_masks();
    at_once::judge(AT_ONCE, |over| {
        goes_on_after(over, "cubic", Host::Fixed, &rules)
    });
}

#[test]
fn what_a_host_sends_again_passes_its_own_firewall() {
    let rules = lets_out_what_is_tracked();
    at_once::judge(AT_ONCE, |over| {
        goes_on_after(over, "cubic", Host::Outer, &rules)
    });
}

/// A firewall that lets nothing of the host's own out towards the link, as a router may do that only forwards.
#[test]
fn a_firewall_that_drops_what_is_sent_again_is_told_of() {
    for over in Over::BOTH {
        let Some(link) = ToldSite::new(Some(over)) else {
            return;
        };
        let rules = format!(
            "add table inet fw\n\
             add chain inet fw out {{ type filter hook output priority filter; }}\n\
             add rule inet fw out oifname \"{LINK}\" meta l4proto tcp drop\n"
        );
        if add_rules(&link.site.gateway, &rules).is_none() {
            return;
        }
        let (sender, _read) = link.transfer(Host::Fixed, Host::Mobile);
        wait(BEFORE);
        link.cut();
        link.tell_down();
        wait(BEFORE);
        link.mend();
        link.status_when("the firewall is told of", |status| {
            status["counters"]["forbidden"].as_u64() > Some(0)
        });
        sender.shutdown(Shutdown::Both).expect("it is open");
        link.stop();
    }
}
