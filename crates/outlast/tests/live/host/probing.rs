//! An outage beyond the first hop, of which nobody tells: the agent tries the silent peer, so that an upload does not wait for
//! its own timer.

use super::operating::status;
use super::requests::{Network, REMOTE};
use super::{Agent, ip, read_for, send};
use crate::support::{Place, again};
use outlast_base::time::Duration;
use outlast_linux::clock;
use std::io::Read;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Silences, and the time from their end within which the upload goes on: a pause between two probes, and a timeout of one that
/// has brought nothing new.
const SILENCES: [(Duration, Duration); 2] = [
    (Duration::from_secs(5), Duration::from_millis(600)),
    (Duration::from_secs(90), Duration::from_millis(1_000)),
];

/// From the end of a silence until the remote host has new bytes of an upload.
fn resume(network: &Network, congestion: &str, silence: Duration) -> Duration {
    let listen = || TcpListener::bind((REMOTE, 0)).expect("a port");
    let listener = network.remote.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| send(congestion, &network.mobile, to, &is_over));
        let (mut upload, _) = listener.accept().expect("the sender comes");
        read_for(&mut upload, Duration::from_secs(2));
        // The mobile host's own carrier stays.
        ip(&network.switch, "link set far0 down");
        read_for(&mut upload, silence);
        ip(&network.switch, "link set far0 up");
        let back = clock::now();
        let patience = Some(silence * 2);
        upload.set_read_timeout(patience).expect("a socket");
        let count = again(|| upload.read(&mut [0; 1024])).expect("it goes on");
        let resumed = clock::now().since(back);
        assert_ne!(count, 0, "the transfer has ended");
        is_over.store(true, Ordering::Relaxed);
        drop(upload);
        resumed
    })
}

/// An upload with the agent and one without, for each silence; what was measured.
fn outlasts(congestion: &str) -> String {
    let mut measured = String::new();
    for (silence, at_most) in SILENCES {
        let (Some(with), Some(without)) = (Network::new(true), Network::new(true)) else {
            return measured;
        };
        let place = Place::new();
        let agent = Agent::start(&place, &with.mobile, &[]);
        let [helped, alone] = thread::scope(|scope| {
            let both = [&with, &without]
                .map(|network| scope.spawn(|| resume(network, congestion, silence)));
            both.map(|resumed| resumed.join().expect("it is measured"))
        });
        let told = status(&place);
        let counted = &told["counters"];
        let probes = &counted["probes"];
        let line = format!(
            "{silence:?}: {helped:?} with the agent and {probes} probes, {alone:?} without\n"
        );
        measured.push_str(&line);
        let log = agent.said();
        assert!(
            helped <= at_most,
            "{helped:?} after {silence:?}: {told:#}\n{log}"
        );
        // Otherwise this shows nothing.
        assert!(alone > helped * 2, "{alone:?} without, {helped:?} with it");
        assert_eq!(counted["errors"], 0, "{told:#}");
        drop(agent);
    }
    measured
}

#[test]
fn an_upload_by_cubic_goes_on_soon_after_a_silence() {
    println!("{}", outlasts("cubic"));
}

#[test]
fn an_upload_by_reno_goes_on_soon_after_a_silence() {
    println!("{}", outlasts("reno"));
}

#[test]
fn an_upload_by_bbr_goes_on_soon_after_a_silence() {
    println!("{}", outlasts("bbr"));
}
