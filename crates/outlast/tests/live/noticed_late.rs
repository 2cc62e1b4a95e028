//! A link whose loss is noticed late: what its near host has acknowledged meanwhile is lost, and told again.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::told::ToldSite;
use crate::path::{Over, at_once, wait};
use outlast_base::time::Duration;
use outlast_linux::sysctl;
use outlast_testbed::site::Place as Host;
use std::net::Shutdown;

/// From the beginning of the transfer until the link goes.
const BEFORE: Duration = Duration::from_secs(1);
/// From then until somebody says so: longer than anything is under way.
const LATE: Duration = Duration::from_millis(400);
/// What was under way is repeated about 0.4, 1.1, 2.5, 5.4 and 11 s after the link has gone: it comes back long after one repetition
/// and long before the next.
const REST: Duration = Duration::from_millis(6_200);
const AT_ONCE: Duration = Duration::from_millis(500);

/// From the link's return until the fixed host reads something new of an upload, with a daemon on the gateway over that data
/// path or without.
fn goes_on_after(over: Option<Over>) -> Option<Duration> {
    let link = ToldSite::new(over)?;
    let without_timestamps = || sysctl::write("net.ipv4.tcp_timestamps", "0");
    link.site
        .mobile
        .run(without_timestamps)
        .expect("enter")
        .expect("it is the namespace's own");
    let (upload, read) = link.transfer(Host::Mobile, Host::Fixed);
    wait(BEFORE);
    link.cut();
    wait(LATE);
    link.tell_down();
    wait(REST);
    let back = link.mend();
    let first = read.iter().find(|at| *at >= back).expect("it goes on");
    upload.shutdown(Shutdown::Both).expect("it is open");
    link.stop();
    Some(first.since(back))
}

#[test]
fn an_upload_goes_on_at_once_where_the_loss_of_its_link_was_noticed_late() {
    at_once::judge(AT_ONCE, goes_on_after);
}
