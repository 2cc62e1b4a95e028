//! `outlast run` on a link that comes back by a path with a smaller MTU, of which nobody tells.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, MOBILE, Over, Path, Transfer, Version, keeps_something, wait};
use crate::support::Place;
use outlast_base::time::Duration;

const BYTES: usize = 6_000_000;
const SMALLER: usize = 1_300;
/// Beside the sender's own timer it is at once.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Without a daemon nothing arrives for as long.
const NOTHING_FOR: Duration = Duration::from_secs(10);

/// A download over an outage, after which longer packets are lost; with `hold` on the gateway, or without.
fn download(over: Option<Over>, version: Version) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(wire) = path.tap() else { return };
    let daemon = match over {
        Some(over) => {
            let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
                return;
            };
            Some(daemon)
        }
        None => None,
    };
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, MOBILE.of(version), BYTES);
    transfer.wait_for(BYTES / 6);
    path.cut();
    wire.lose_longer_than(SMALLER);
    if let Some(daemon) = &daemon {
        daemon.status_when("something that is held", keeps_something);
    }
    transfer.wait_for_backoff(2);
    let up = path.mend();
    let Some(daemon) = daemon else {
        // What the mobile host had sent before may come yet.
        wait(AT_ONCE);
        let before = transfer.acknowledged();
        wait(NOTHING_FOR);
        assert_eq!(transfer.acknowledged(), before, "the control goes on");
        return;
    };
    let after = transfer.resumed(up).since(up);
    assert!(after < AT_ONCE, "{after:?}");
    transfer.finish();
    let status = daemon.status();
    let told = status["counters"]["path_mtus_lowered"].as_u64();
    assert!(told > Some(0), "{status:#}");
    daemon.stop();
}

#[test]
fn a_download_fills_a_path_that_takes_less_than_before() {
    // All at once: what takes time is the sender's timer.
    std::thread::scope(|scope| {
        for (over, version) in [
            (None, Version::V4),
            (Some(Over::Ebpf), Version::V4),
            (Some(Over::Nfqueue), Version::V6),
        ] {
            scope.spawn(move || download(over, version));
        }
    });
}
