//! `mechanism = "m-tcp"` at the mobile host, behind a supervisor host that nothing else tells of the mobile's return.
//!
//! Only the mobile host loses its carrier. The supervisor host has neither neighbour table nor silence to go by, so that
//! its mobile's marked acknowledgement is all that it hears. `--nocapture` shows the times.

use super::operating::status_when;
use super::{Agent, ip};
use crate::path::{Daemon, FIXED, LINK, MOBILE, OUTER, Path, Transfer, Version, connected, wait};
use crate::support::Place;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::socket::{TcpInfo, set_congestion_control};
use std::net::TcpStream;
use std::thread;

const BYTES: usize = 3_000_000;
/// The link is away for at least so long.
const OUTAGE: Duration = Duration::from_secs(2);
/// When it comes back, the sender would wait for at least so long.
const REST: Duration = Duration::from_millis(1_500);
/// The round trip is less than a millisecond; the machine may have much else to do, as eight tests run at once.
const SOON: Duration = Duration::from_millis(1_200);

/// A supervisor host without an indicator of its own.
const DEAF: &str = "[indicators]\nneighbour = false\nsilence = false\n";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Download,
    Upload,
}

/// One transfer through one outage.
#[derive(Clone, Copy, Debug)]
struct Case {
    mechanism: &'static str,
    way: Way,
    /// Whether the mobile host has its half.
    has_half: bool,
    /// What the supervisor host is configured with besides.
    indicators: &'static str,
}

/// What came of it, from the link's return on.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Until new bytes arrived.
    resumed: Duration,
    /// Until the sender would have tried by itself.
    by_itself: Duration,
}

fn next_try(out: &TcpStream) -> Option<Instant> {
    let now = clock::now();
    let rest = TcpInfo::of(out)
        .expect("a TCP socket")
        .until_next_timeout()?;
    Some(now + rest)
}

fn seen(case: Case) -> Option<Seen> {
    let (place, mobile_place) = (Place::new(), Place::new());
    let path = Path::new()?;
    let text = format!("mechanism = \"{}\"\n{}", case.mechanism, case.indicators);
    let daemon = supervisor(&place, &path, &text)?;
    mobile_place.file("host.toml", "[host]\nmechanism = \"m-tcp\"\n");
    let agent = case
        .has_half
        .then(|| Agent::start(&mobile_place, &path.mobile, &["--config", "host.toml"]));
    let (out, input) = match case.way {
        Way::Download => connected(&path.fixed, &path.mobile, MOBILE.of(Version::V4)),
        Way::Upload => connected(&path.mobile, &path.fixed, FIXED.of(Version::V4)),
    };
    set_congestion_control(&out, "reno").expect("every Linux has it");
    let sender = out.try_clone().expect("descriptor");
    let mut transfer = Transfer::over(out, input, BYTES);
    transfer.wait_for(BYTES / 6);
    // The agent speaks to its own kernel there.
    ip(&path.mobile, "link set lo up");
    // A kernel that asks for its neighbour in vain takes the back-off back by itself.
    let router = OUTER.of(Version::V4);
    ip(
        &path.mobile,
        &format!("neigh change {router} dev {LINK} nud permanent"),
    );
    path.lose_mobile();
    let end = clock::now() + OUTAGE;
    let by_itself = loop {
        if let Some(at) = next_try(&sender).filter(|&at| at >= clock::now() + REST)
            && clock::now() >= end
        {
            break at;
        }
        wait(Duration::from_millis(5));
    };
    let up = path.find_mobile();
    let resumed = transfer.resumed(up).since(up);
    if agent.is_some() {
        let told = |status: &serde_json::Value| status["counters"]["marked_acks"] != 0;
        let status = status_when(&mobile_place, told);
        assert_eq!(status["counters"]["errors"], 0, "{status:#}");
    }
    if case.mechanism == "m-tcp" {
        // As published it lets a sender on Linux send one segment in a timeout.
        daemon.stop();
        transfer.finish();
    } else {
        transfer.finish();
        daemon.stop();
    }
    drop(agent);
    Some(Seen {
        resumed,
        by_itself: by_itself.since(up),
    })
}

fn supervisor(place: &Place, path: &Path, text: &str) -> Option<Daemon> {
    let file = place.file("supervisor.toml", text);
    let file = file.to_str().expect("a path of ours");
    Daemon::start_with(
        place,
        &path.gateway,
        &["--role", "supervisor", "--config", file],
    )
}

/// With the mobile's half, and the same without it.
#[expect(clippy::print_stdout, reason = "--nocapture shows the times")]
fn both(case: Case) -> Option<[Seen; 2]> {
    let cases = [true, false].map(|has_half| Case { has_half, ..case });
    let [with, without] = thread::scope(|scope| {
        let running = cases.map(|case| scope.spawn(move || seen(case)));
        running.map(|one| one.join().expect("it is measured"))
    });
    let both = [with?, without?];
    println!("{case:?}: with {:?}, without {:?}", both[0], both[1]);
    Some(both)
}

/// Has every run with the mobile's half go on soon. The control is to show the stall in one of three tries: it is over
/// early where its sender's timer happens to be.
fn judge(case: Case, is_stall: impl Fn(Seen) -> bool) {
    let mut tried = Vec::new();
    for _ in 0..3 {
        let Some([with, without]) = both(case) else {
            return;
        };
        let is_soon = with.resumed < SOON && with.resumed < with.by_itself;
        assert!(is_soon, "{case:?}: {with:?}, {without:?} without");
        if is_stall(without) {
            return;
        }
        tried.push(without);
    }
    panic!("{case:?}: {tried:?} without the mobile's half");
}

#[test]
fn a_marked_acknowledgement_tells_a_supervisor_host_that_nobody_else_tells() {
    let case = Case {
        mechanism: "m-tcp-adaptive",
        way: Way::Download,
        has_half: true,
        indicators: DEAF,
    };
    judge(case, |without| {
        without.resumed > SOON && without.resumed + Duration::from_millis(100) > without.by_itself
    });
}

#[test]
fn a_marked_acknowledgement_ends_the_freeze_of_the_published_supervisor_host() {
    let case = Case {
        mechanism: "m-tcp",
        way: Way::Download,
        has_half: true,
        indicators: DEAF,
    };
    judge(case, |without| without.resumed > SOON);
}

#[test]
fn an_upload_goes_on_at_once_with_the_mobiles_half() {
    let case = Case {
        mechanism: "m-tcp-adaptive",
        way: Way::Upload,
        has_half: true,
        indicators: DEAF,
    };
    judge(case, |without| without.resumed > SOON);
}
