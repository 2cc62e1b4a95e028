//! Whole transfers between two endpoints.

mod common;

use common::{Pair, link, ms};
use outlast_core::time::Duration;
use outlast_tcp::profile::Profile;

#[test]
fn every_profile_fills_the_link() {
    for profile in Profile::ALL {
        let mut pair = Pair::of(profile, link());
        pair.client.send(pair.now, 2_000_000);
        let mut left = 2_000_000 - pair.client.acknowledged();
        let limit = pair.now + Duration::from_secs(120);
        while pair.server.received() < 2_000_000 && pair.step(limit) {
            left = left.min(2_000_000 - pair.server.received());
            let want = 2_000_000 - written(&pair);
            if want > 0 {
                let _ = pair.client.send(pair.now, want);
            }
        }
        println!(
            "{}: {} bytes at {} ms, {:?} {:?}",
            profile.name,
            pair.server.received(),
            ms(pair.now),
            pair.error(),
            pair.client.counters()
        );
        assert_eq!(pair.server.received(), 2_000_000, "{}", profile.name);
    }
}

fn written(pair: &Pair) -> u64 {
    pair.client.written()
}
