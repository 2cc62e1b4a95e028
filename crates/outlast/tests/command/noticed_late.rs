//! A link whose loss is noticed late: what its near host has acknowledged meanwhile is lost, and told again.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, Over, at_once, skip, wait};
use crate::support::{Place, again};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_linux::{clock, sysctl};
use outlast_scenario::IpVersion;
use outlast_testbed::site::{Cut, Neighbours, Place as Host, Site, SiteConfig};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// From the beginning of the transfer until the link goes.
const BEFORE: Duration = Duration::from_secs(1);
/// From then until somebody says so: longer than anything is under way.
const LATE: Duration = Duration::from_millis(400);
/// What was under way is repeated about 0.4, 1.1, 2.5, 5.4 and 11 s after the link has gone: it comes back long after one repetition
/// and long before the next.
const REST: Duration = Duration::from_millis(6_200);
const AT_ONCE: Duration = Duration::from_millis(500);

/// From the link's return until the fixed host reads something new of an upload, with a daemon on the gateway over that data
/// path or without.
fn goes_on_after(over: Option<Over>) -> Option<Duration> {
    let config = SiteConfig {
        rate: BitRate::from_bits_per_second(10_000_000).expect("not zero"),
        delay: Duration::from_millis(20),
        queue: 100,
        congestion: "cubic",
        sack: true,
        neighbours: Neighbours::AsUsual,
    };
    let place = Place::new();
    let site = Site::new(&config).inspect_err(|error| skip(error)).ok()?;
    let without_timestamps = || sysctl::write("net.ipv4.tcp_timestamps", "0");
    site.mobile
        .run(without_timestamps)
        .expect("enter")
        .expect("it is the namespace's own");
    let daemon = match over {
        Some(over) => Some(Daemon::start_over(over, &place, &site.gateway, "hold")?),
        None => None,
    };
    let tell = |state| {
        if let Some(daemon) = &daemon {
            let said = daemon.ask(&place, &["notify", state]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
    };
    let (upload, read) = upload(&site);
    wait(BEFORE);
    // The mobile host does not see it: who has no carrier tries again twice a second.
    site.cut(Cut::BlackHole).expect("the link lives");
    wait(LATE);
    tell("down");
    wait(REST);
    let back = site.mend().expect("the link lives");
    tell("up");
    let first = read.iter().find(|at| *at >= back).expect("it goes on");
    upload.shutdown(Shutdown::Both).expect("it is open");
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    Some(first.since(back))
}

/// The mobile host sends to the fixed one as fast as it can: its socket, and when something was read.
fn upload(site: &Site) -> (TcpStream, Receiver<Instant>) {
    let at = Host::Fixed.address(IpVersion::V4);
    let listen = || TcpListener::bind((at, 0)).expect("a port");
    let listener = site.fixed.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let (say, read) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody sends");
        let mut buffer = vec![0; 1 << 16];
        while matches!(again(|| stream.read(&mut buffer)), Ok(1..)) {
            if say.send(clock::now()).is_err() {
                break;
            }
        }
    });
    let connect = || TcpStream::connect(to).expect("it listens");
    let upload = site.mobile.run(connect).expect("enter");
    let mut sends = upload.try_clone().expect("a descriptor");
    thread::spawn(move || while again(|| sends.write_all(&[1; 1 << 16])).is_ok() {});
    (upload, read)
}

#[test]
fn an_upload_goes_on_at_once_where_the_loss_of_its_link_was_noticed_late() {
    at_once::judge(AT_ONCE, goes_on_after);
}
