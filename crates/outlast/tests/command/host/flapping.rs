//! A link that comes and goes twenty times a second, and then stays.

use super::operating::status;
use super::{Agent, Hosts, OUTAGE, ip, pause, read_for, send};
use crate::support::{Place, again};
use outlast_base::time::Duration;
use outlast_linux::clock;
use std::io::Read;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const FLAPS: u32 = 60;
/// Each flap, without what changing the link takes.
const AWAY: Duration = Duration::from_millis(40);
/// As long as a return may be withheld, and passes because of one link are apart; and some for a busy machine.
const IN_TIME: Duration = Duration::from_millis(700);

/// From the return that lasts until the fixed host has new bytes of an upload.
fn resume(hosts: &Hosts) -> Duration {
    let listen = || TcpListener::bind("10.1.0.1:0").expect("a port");
    let listener = hosts.fixed.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| send("cubic", &hosts.mobile, to, &is_over));
        let (mut stream, _) = listener.accept().expect("the sender comes");
        read_for(&mut stream, Duration::from_secs(1));
        for _ in 0..FLAPS {
            ip(&hosts.fixed, "link set link0 down");
            pause(AWAY);
            ip(&hosts.fixed, "link set link0 up");
        }
        let back = clock::now();
        stream.set_read_timeout(Some(OUTAGE)).expect("a socket");
        // What came while the link was there for a moment is read first.
        let count = again(|| stream.read(&mut [0; 1_048_576])).expect("it goes on");
        let count = count + again(|| stream.read(&mut [0; 1024])).expect("it goes on");
        let resumed = clock::now().since(back);
        assert_ne!(count, 0, "the transfer has ended");
        is_over.store(true, Ordering::Relaxed);
        drop(stream);
        resumed
    })
}

#[test]
fn a_link_that_flaps_makes_the_host_send_no_more_than_its_bounds_and_the_last_return_counts() {
    let mut tried = Vec::new();
    // Where other tests keep the processors busy a run may be late for their sake.
    for _ in 0..3 {
        let Some(hosts) = Hosts::new() else { return };
        let place = Place::new();
        let agent = Agent::start(&place, &hosts.mobile, &[]);
        let began = clock::now();
        let resumed = resume(&hosts);
        let halves = clock::now().since(began).as_secs_f64() * 2.0;
        let told = status(&place);
        drop(agent);
        let count = |name: &str| told["counters"][name].as_f64().expect("a number");
        println!("{resumed:?} after the last return");
        assert!(count("passes") <= halves + 1.0, "{halves}: {told:#}");
        assert!(
            count("retransmissions") <= 4.0 * count("passes"),
            "{told:#}"
        );
        let damped = count("link_ups_delayed") + count("link_changes_ignored");
        assert!(damped > 0.0, "{told:#}");
        if resumed <= IN_TIME {
            return;
        }
        tried.push(resumed);
    }
    panic!("{tried:?}");
}
