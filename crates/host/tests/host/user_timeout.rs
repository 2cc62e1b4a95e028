//! Which user timeouts are adopted, and that no peer has more kept than its share.

use crate::stack::connection;
use outlast_base::time::Duration;
use outlast_host::control::ConnectionId;
use outlast_host::user_timeout::{Adopted, AdoptionLimits, UserTimeoutOption};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

const RTO: Duration = Duration::from_secs(1);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(peer: u8, port: u16) -> ConnectionId {
    let mut id = connection(port, 0).id;
    id.remote
        .set_ip(IpAddr::V4(Ipv4Addr::new(198, 51, 100, peer)));
    id
}

#[test]
fn the_longer_of_both_is_adopted_within_the_limits() {
    //= RFC 5482, section 3.1
    let option = UserTimeoutOption {
        advertise: seconds(300),
        at_least: seconds(100),
        at_most: seconds(3_600),
    };
    assert_eq!(option.adopt(seconds(10), RTO), seconds(300));
    assert_eq!(option.adopt(seconds(1_800), RTO), seconds(1_800));
    assert_eq!(option.adopt(seconds(9_000), RTO), seconds(3_600));
    let short = UserTimeoutOption {
        advertise: seconds(5),
        ..option
    };
    assert_eq!(short.adopt(seconds(10), RTO), seconds(100));
    assert_eq!(short.adopt(seconds(10), seconds(120)), seconds(120));
}

#[test]
fn zero_is_ignored_and_an_application_that_sets_its_own_is_left_alone() {
    //= RFC 5482, section 3.1
    let option = UserTimeoutOption::default();
    let mut adopted = Adopted::new(AdoptionLimits::default());
    let mut ask =
        |remote, is_changeable| adopted.adopt(id(1, 1), &option, remote, RTO, is_changeable);
    assert_eq!(ask(Some(Duration::ZERO), true), None);
    assert_eq!(ask(None, true), None);
    assert_eq!(ask(Some(seconds(9_000)), false), None);
    assert_eq!(ask(Some(seconds(9_000)), true), Some(seconds(9_000)));
}

proptest! {
    /// Whoever asks for whatever: no more connections are kept for long than the limits allow, and
    /// an adopted timeout never leaves the option's limits.
    #[test]
    fn peers_cannot_pin_more_than_their_share(
        requests in proptest::collection::vec((0u8..4, 0u16..30, 0u64..100_000_000, 0u8..4), 1..400),
        per_peer in 0usize..6,
        in_all in 0usize..12,
    ) {
        let option = UserTimeoutOption::default();
        let mut adopted = Adopted::new(AdoptionLimits { per_peer, in_all });
        let mut long: std::collections::BTreeSet<(u8, u16)> = std::collections::BTreeSet::new();
        for (peer, port, remote, kind) in requests {
            let id = id(peer, port);
            if kind == 0 {
                adopted.release(id);
                long.remove(&(peer, port));
            } else {
                let timeout = adopted.adopt(id, &option, Some(seconds(remote)), RTO, kind != 1);
                if let Some(timeout) = timeout {
                    prop_assert!(timeout >= option.at_least && timeout <= option.at_most);
                }
                if timeout.is_some_and(|timeout| timeout > option.advertise) {
                    long.insert((peer, port));
                } else if remote > 0 {
                    long.remove(&(peer, port));
                }
            }
            prop_assert_eq!(adopted.len(), long.len());
            prop_assert!(long.len() <= in_all);
            for peer in 0..4 {
                prop_assert!(long.iter().filter(|of| of.0 == peer).count() <= per_peer);
            }
        }
    }
}
