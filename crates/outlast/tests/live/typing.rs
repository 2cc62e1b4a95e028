//! Who types while answers come, over a link that goes away: all that was typed is answered at once when it is back.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::told::ToldSite;
use crate::path::{Over, at_once, wait};
use crate::support::again;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_scenario::IpVersion;
use outlast_testbed::site::{Place as Host, Site};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// A key that is held down: the answer to one is under way when the next is pressed.
const PAUSE: Duration = Duration::from_millis(25);
const KEYS_BEFORE: usize = 40;
const KEYS_AWAY: usize = 40;
/// What was under way is repeated about 0.3, 0.8, 1.8, 3.8 and 7.8 s after the link has gone: it comes back long after one repetition
/// and long before the next.
const REST: Duration = Duration::from_millis(3_600);
const AT_ONCE: Duration = Duration::from_millis(500);
/// Longer than anything takes on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// From the link's return until the mobile host has all answers, with a daemon on the gateway over that data path or without.
fn all_answered_after(over: Option<Over>) -> Option<Duration> {
    let link = ToldSite::new(over)?;
    let [mut keys, mut screen] = typewriter(&link.site);
    let press = |keys: &mut TcpStream, many: usize| {
        for _ in 0..many {
            keys.write_all(&[1; 10]).expect("it is open");
            wait(PAUSE);
        }
    };
    let answered = thread::spawn(move || {
        again(|| screen.read_exact(&mut [0; 10 * (KEYS_BEFORE + KEYS_AWAY)]))
            .expect("it is answered");
        clock::now()
    });
    press(&mut keys, KEYS_BEFORE);
    link.cut();
    link.tell_down();
    press(&mut keys, KEYS_AWAY);
    wait(REST);
    let back = link.mend();
    let answered = answered.join().expect("no panic").since(back);
    drop(keys);
    link.stop();
    Some(answered)
}

/// A connection of the mobile host's to a fixed host that answers each key: where keys go in and answers come out.
fn typewriter(site: &Site) -> [TcpStream; 2] {
    let at = Host::Fixed.address(IpVersion::V4);
    let listen = || TcpListener::bind((at, 0)).expect("a port");
    let listener = site.fixed.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody types");
        stream.set_nodelay(true).expect("a socket");
        let mut key = [0; 10];
        while again(|| stream.read_exact(&mut key)).is_ok() {
            stream.write_all(&key).expect("it is open");
        }
    });
    let connect = || TcpStream::connect(to).expect("it listens");
    let keys = site.mobile.run(connect).expect("enter");
    keys.set_nodelay(true).expect("a socket");
    keys.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let screen = keys.try_clone().expect("a descriptor");
    [keys, screen]
}

#[test]
fn who_types_while_a_link_goes_is_answered_at_once_when_it_is_back() {
    at_once::judge(AT_ONCE, all_answered_after);
}
