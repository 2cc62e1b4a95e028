//! Packets kept for a host on the link, where another host has its address when the link is back.
//!
//! That host answers questions for the address and drops what it is sent, so that the connection lives. The control is
//! the same without a daemon.

use crate::path::wiring::{add_rules, list_rules};
use crate::path::{Daemon, MOBILE, Over, Path, Transfer, Version, wait};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::namespace::Namespace;

const ALL: usize = 1_000_000;
const OUTAGE: Duration = Duration::from_secs(4);
/// Time in which the sender by itself repeats a few segments.
const AFTER: Duration = Duration::from_secs(4);

/// Bytes of TCP payload that the host at `address` gets from now on, which it drops.
fn listens(stranger: &Namespace) -> Option<()> {
    add_rules(
        stranger,
        "add table inet fw\n\
         add chain inet fw in { type filter hook prerouting priority raw; }\n\
         add rule inet fw in meta l4proto tcp meta length > 200 counter drop\n\
         add rule inet fw in meta l4proto tcp drop\n",
    )
}

/// Packets with data, and their bytes, that the stranger has got.
fn heard(stranger: &Namespace) -> (u64, u64) {
    let list = list_rules(stranger, "inet fw");
    let mut words = list.split_whitespace();
    let mut number_after = |word: &str| {
        words.find(|said| *said == word).expect("a counter");
        let number = words.next().and_then(|number| number.parse().ok());
        number.expect("a number")
    };
    (number_after("packets"), number_after("bytes"))
}

/// Has another host take the mobile host's address in an outage. Returns packets with data and bytes that it got.
fn another_owner(version: Version, over: Option<Over>) -> Option<(u64, u64)> {
    let place = Place::new();
    let path = Path::new()?;
    let daemon = match over {
        Some(over) => Some(Daemon::start_over(over, &place, &path.gateway, "hold")?),
        None => None,
    };
    let to = MOBILE.of(version);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, ALL);
    transfer.wait_for(ALL / 4);
    path.cut();
    let stranger = path.stranger();
    listens(&stranger)?;
    wait(OUTAGE);
    path.find_gateway();
    wait(AFTER);
    let got = heard(&stranger);
    // The mobile host has its address back, and gets all that was sent to it.
    drop(stranger);
    path.find_mobile();
    transfer.wait_for(ALL);
    transfer.finish();
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    Some(got)
}

fn gets_no_more_than_without_a_daemon(version: Version) {
    let Some((control, _)) = another_owner(version, None) else {
        return;
    };
    for over in Over::BOTH {
        let Some((packets, bytes)) = another_owner(version, Some(over)) else {
            return;
        };
        assert!(
            packets <= control + 1,
            "{over:?}: {packets} packets of {bytes} bytes; without a daemon {control}"
        );
    }
}

#[test]
fn another_owner_of_an_address_of_ipv4_gets_no_more_than_without_a_daemon() {
    gets_no_more_than_without_a_daemon(Version::V4);
}

#[test]
fn another_owner_of_an_address_of_ipv6_gets_no_more_than_without_a_daemon() {
    gets_no_more_than_without_a_daemon(Version::V6);
}
