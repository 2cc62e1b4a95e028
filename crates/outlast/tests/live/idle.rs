//! A connection that has rested for a while when an outage begins, and whose far host speaks amid it: it hears of the
//! link's return as one that was busy.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, FIXED, Over, Path, Version, at_once, wait};
use crate::support::{Place, again};
use outlast_base::time::Duration;
use outlast_linux::clock;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// By then the gateway has given back the memory of a connection that says nothing.
const IDLE: Duration = Duration::from_secs(7);
/// How long each of the answers before that takes: the last is none that goes with the acknowledgement of its question, so
/// that its timestamp is newer than that of any acknowledgement.
const BEFORE: [Duration; 2] = [Duration::ZERO, Duration::from_millis(300)];
/// From the beginning of the outage until the mobile host asks.
const QUIET: Duration = Duration::from_millis(500);
/// A question is repeated 0.2, 0.6, 1.4, 3.0 and 6.2 s after it was asked: the link comes back long after one repetition
/// and long before the next.
const REST: Duration = Duration::from_millis(4_200);
/// The round trip is less than a millisecond.
const AT_ONCE: Duration = Duration::from_millis(200);
/// Longer than anything takes on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(30);

fn ask(stream: &mut TcpStream) {
    stream.write_all(&[1; 100]).expect("it is open");
}

fn hear(stream: &mut TcpStream) {
    again(|| stream.read_exact(&mut [0; 100])).expect("it is answered");
}

/// From the link's return until the mobile host has its answer, with a daemon on the gateway over that data path or without.
fn answered_after(over: Option<Over>) -> Option<Duration> {
    let place = Place::new();
    let path = Path::new()?;
    path.introduce_gateway();
    let daemon = match over {
        Some(over) => Some(Daemon::start_over(over, &place, &path.gateway, "hold")?),
        None => None,
    };
    let listen = || TcpListener::bind((FIXED.of(Version::V4), 0)).expect("a port");
    let listener = path.fixed.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let answers = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody asks");
        let mut question = [0; 100];
        let mut before = BEFORE.into_iter();
        while again(|| stream.read_exact(&mut question)).is_ok() {
            wait(before.next().unwrap_or(Duration::ZERO));
            stream.write_all(&question).expect("it is open");
        }
    });
    let connect = || TcpStream::connect(to).expect("it listens");
    let mut stream = path.mobile.run(connect).expect("enter");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    for _ in BEFORE {
        ask(&mut stream);
        hear(&mut stream);
    }
    wait(IDLE);
    path.lose_gateway();
    wait(QUIET);
    ask(&mut stream);
    wait(REST);
    let back = path.find_gateway();
    hear(&mut stream);
    let answered = clock::now().since(back);
    drop(stream);
    answers.join().expect("it only answers");
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    Some(answered)
}

#[test]
fn who_asks_amid_an_outage_that_found_its_connection_idle_is_answered_at_once() {
    at_once::judge(AT_ONCE, answered_after);
}
