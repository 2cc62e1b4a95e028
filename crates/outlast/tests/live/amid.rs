//! `outlast run` that starts in the middle of an outage, or again after `kill -9`: it hears the near host
//! alone, keeps what that repeats, and the connection goes on when the link is back.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, MOBILE, Over, Path, Transfer, Version};
use crate::support::Place;
use outlast_base::time::{Duration, Instant};
use serde_json::Value;

const BYTES: usize = 4_000_000;
/// A connection goes on within this of the link's return, however busy the machine: its sender would try
/// by itself after several seconds.
const AT_ONCE: Duration = Duration::from_millis(1_000);

/// How the link goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outage {
    Carrier,
    /// Nobody says so.
    Silence,
}

/// What becomes of the daemon.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    None,
    Started,
    Restarted,
}

impl Outage {
    fn begin(self, path: &Path) {
        match self {
            Self::Carrier => path.cut(),
            Self::Silence => path.black_hole(),
        }
    }

    fn end(self, path: &Path) -> Instant {
        match self {
            Self::Carrier => path.mend(),
            Self::Silence => path.fill_hole(),
        }
    }
}

/// One download. `None`, with the reason, where this machine lacks something.
fn download(outage: Outage, life: Life, over: Over, version: Version) -> Option<()> {
    let place = Place::new();
    let path = Path::new()?;
    let start = || Daemon::start_over(over, &place, &path.gateway, "hold");
    let before = match life {
        Life::Restarted => Some(start()?),
        Life::None | Life::Started => None,
    };
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, MOBILE.of(version), BYTES);
    transfer.wait_for(BYTES / 4);
    outage.begin(&path);
    transfer.wait_for_backoff(2);
    before.into_iter().for_each(|daemon| drop(daemon.kill()));
    let daemon = match life {
        Life::None => None,
        Life::Started | Life::Restarted => Some(start()?),
    };
    if let Some(daemon) = &daemon {
        let keeps = |status: &Value| status["held_other_bytes"].as_u64() > Some(0);
        daemon.status_when("what the sender repeats", keeps);
    }
    let by_itself = transfer.wait_for_long_timeout();
    let up = outage.end(&path);
    if daemon.is_none() {
        transfer.assert_stalls_until(by_itself, up);
        return Some(());
    }
    let resumed = transfer.resumed(up);
    let after = resumed.since(up);
    assert!(
        resumed < by_itself && after < AT_ONCE,
        "{outage:?} {life:?} {over:?}: {after:?}"
    );
    transfer.finish();
    Some(())
}

/// All at once: what takes time is the sender's timer.
fn all(cases: &[(Outage, Life, Over, Version)]) {
    std::thread::scope(|scope| {
        for &(outage, life, over, version) in cases {
            scope.spawn(move || download(outage, life, over, version));
        }
    });
}

#[test]
fn a_daemon_that_starts_amid_an_outage_resumes_what_it_hears() {
    use Life::{Restarted, Started};
    use Outage::Carrier;
    // Without a daemon the kernel says "host unreachable" to a sender all the time: the other test has the
    // control.
    all(&[
        (Carrier, Started, Over::Ebpf, Version::V4),
        (Carrier, Restarted, Over::Ebpf, Version::V6),
        (Carrier, Started, Over::Nfqueue, Version::V6),
        (Carrier, Restarted, Over::Nfqueue, Version::V4),
    ]);
}

#[test]
fn a_daemon_that_starts_amid_a_silence_resumes_what_it_hears() {
    use Life::{None, Restarted, Started};
    use Outage::Silence;
    all(&[
        (Silence, None, Over::Ebpf, Version::V4),
        (Silence, Started, Over::Ebpf, Version::V6),
        (Silence, Restarted, Over::Ebpf, Version::V4),
        (Silence, Started, Over::Nfqueue, Version::V4),
        (Silence, Restarted, Over::Nfqueue, Version::V6),
    ]);
}
