//! `outlast run` on an interface with several queues, in which several processors send and receive at
//! once.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::wiring::inside;
use crate::path::{Daemon, LINK, MOBILE, Over, Path, Transfer, Version, seen};
use crate::support::Place;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::offload;
use serde_json::Value;

const QUEUES: u32 = 4;
/// So many that they share one queue of four in one of 16,384 runs.
const FLOWS: u32 = 8;
const BYTES: usize = 1_500_000;

/// How many queues of the gateway's end of the link have carried more than a hundred packets.
fn busy(path: &Path) -> usize {
    let work = || {
        let mut route = RouteSocket::open().expect("netlink");
        let link = route.interface(LINK).expect("made");
        route.sent_by_queue(link).expect("netlink")
    };
    let sent = path.gateway.run(work).expect("enter");
    assert_eq!(sent.len(), QUEUES as usize);
    sent.iter().filter(|&&packets| packets > 100).count()
}

/// Downloads of both versions of IP that share a link, and its outage; each goes on at once.
fn all_go_on(over: Over) {
    let place = Place::new();
    let Some(path) = Path::with_queues(QUEUES) else {
        return;
    };
    inside(&path.gateway, |route| {
        let link = route.interface(LINK).expect("made");
        route.count_by_queue(link).expect("several queues");
    });
    // Single packets, so that there is much to count, which are received by a processor each.
    let single = || offload::set_super_segments("eth0", false);
    path.fixed.run(single).expect("enter").expect("a veth's");
    let together = || offload::set_super_segments(LINK, true);
    path.gateway
        .run(together)
        .expect("enter")
        .expect("a veth's");
    let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
        return;
    };
    let mut transfers: Vec<Transfer> = (0..FLOWS)
        .map(|flow| {
            let version = [Version::V4, Version::V6][flow as usize % 2];
            Transfer::start(&path.fixed, &path.mobile, MOBILE.of(version), BYTES)
        })
        .collect();
    for transfer in &mut transfers {
        transfer.wait_for(BYTES / 3);
    }
    assert!(busy(&path) > 1, "one queue carries everything");
    path.cut();
    let keeps_all = |status: &Value| {
        let flows = status["flow_list"].as_array().expect("asked for");
        let keeping = flows
            .iter()
            .filter(|flow| flow["held_bytes"].as_u64() > Some(0));
        keeping.count() == FLOWS as usize
    };
    daemon.flows_when("something of each that is held", keeps_all);
    let by_themselves = seen("long timeouts of all", || {
        let all = transfers.iter().map(Transfer::long_timeout);
        all.collect::<Option<Vec<_>>>()
    });
    let up = path.mend();
    for (transfer, by_itself) in transfers.iter_mut().zip(by_themselves) {
        transfer.assert_resumes_before(by_itself, up);
    }
    for transfer in transfers {
        transfer.finish();
    }
    daemon.stop();
}

#[test]
fn connections_of_all_queues_go_on_at_once() {
    std::thread::scope(|scope| {
        let runs = Over::BOTH.map(|over| scope.spawn(move || all_go_on(over)));
        for run in runs {
            if let Err(failure) = run.join() {
                std::panic::resume_unwind(failure);
            }
        }
    });
}
