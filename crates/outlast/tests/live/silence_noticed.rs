//! A link that goes away without anybody saying so. Both data paths notice, also where a connection has data under way
//! when another one is heard for the last time; and once the link is back, senders on either side of it go on.
//!
//! A test says so and ends on a machine that lacks what it needs.

use crate::path::told::ToldSite;
use crate::path::{Daemon, Over, at_once, skip, wait};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_linux::clock;
use outlast_scenario::IpVersion;
use outlast_testbed::site::{Cut, Neighbours, Place as Host, Site, SiteConfig};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// One way; a round trip is twice that.
const DELAY: Duration = Duration::from_millis(100);
/// From what the first connection sends until the other one sends: before the first one is answered.
const BETWEEN: Duration = Duration::from_millis(150);
/// The sender repeats 8 to 9.5 s after it has sent, and then after twice that.
const OUTAGE: Duration = Duration::from_millis(10_500);
const AT_ONCE: Duration = Duration::from_millis(700);
/// A SYN is repeated 11 and 19 s after it was sent (Linux 6.5 and later), or 7 and 15 s.
const OPENING_OUTAGE: Duration = Duration::from_secs(12);

/// From the beginning of the transfers until the link goes.
const BEFORE: Duration = Duration::from_secs(3);
/// Longer than connections without data under way keep what they have said last.
const LONG_OUTAGE: Duration = Duration::from_secs(8);

/// A connection from the fixed host to the mobile host, which sends back whatever it reads.
struct Echo(TcpStream);

impl Echo {
    fn new(site: &Site) -> Self {
        let mobile = Host::Mobile.address(IpVersion::V4);
        let listen = || TcpListener::bind((mobile, 0)).expect("a port");
        let listener = site.mobile.run(listen).expect("enter");
        let to = listener.local_addr().expect("bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody connects");
            let mut bytes = [0; 100];
            while let Ok(read @ 1..) = stream.read(&mut bytes) {
                if stream.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
        });
        let connect = || TcpStream::connect(to).expect("it listens");
        let mut echo = Self(site.fixed.run(connect).expect("enter"));
        // The round trip is known then.
        for _ in 0..5 {
            echo.say();
            echo.hear();
        }
        echo
    }

    fn say(&mut self) {
        self.0.write_all(b"?").expect("there is room");
    }

    fn hear(&mut self) {
        self.0.read_exact(&mut [0]).expect("it is sent back");
    }
}

/// From the link's return until a connection is open whose SYN went out amid a silence that another one shows.
fn opens_after(over: Option<Over>) -> Option<Duration> {
    let config = SiteConfig {
        neighbours: Neighbours::Known,
        ..config("cubic")
    };
    let place = Place::new();
    let site = Site::new(&config).inspect_err(|error| skip(error)).ok()?;
    let daemon = match over {
        Some(over) => Some(Daemon::start_over(over, &place, &site.gateway, "hold")?),
        None => None,
    };
    let mut other = Echo::new(&site);
    let mobile = Host::Mobile.address(IpVersion::V4);
    let listen = || TcpListener::bind((mobile, 0)).expect("a port");
    let listener = site.mobile.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    site.cut(Cut::BlackHole).expect("the link lives");
    other.say();
    let opened = thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let connect = || TcpStream::connect(to).expect("it listens");
            let _open = site.fixed.run(connect).expect("enter");
            clock::now()
        });
        wait(OPENING_OUTAGE);
        let back = site.mend().expect("the link lives");
        opening.join().expect("no panic").since(back)
    });
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    Some(opened)
}

#[test]
fn a_connection_opens_at_once_whose_syn_went_out_amid_a_silence() {
    at_once::judge(AT_ONCE, opens_after);
}

fn config(congestion: &str) -> SiteConfig<'_> {
    SiteConfig {
        rate: BitRate::from_bits_per_second(10_000_000).expect("not zero"),
        delay: DELAY,
        queue: 100,
        congestion,
        sack: true,
        neighbours: Neighbours::AsUsual,
    }
}

/// From the link's return until the connection goes on that has had data under way when the other one was heard last.
fn goes_on_after(over: Option<Over>, congestion: &str) -> Option<Duration> {
    let place = Place::new();
    let site = Site::new(&config(congestion))
        .inspect_err(|error| skip(error))
        .ok()?;
    let daemon = match over {
        Some(over) => Some(Daemon::start_over(over, &place, &site.gateway, "hold")?),
        None => None,
    };
    let [mut first, mut second] = [(); 2].map(|()| Echo::new(&site));
    first.say();
    wait(BETWEEN);
    second.say();
    first.hear();
    site.cut(Cut::BlackHole).expect("the link lives");
    wait(OUTAGE);
    if let Some(daemon) = &daemon {
        let status = daemon.status();
        assert_eq!(status["counters"]["silences"], 1, "{over:?}: {status:#}");
    }
    let back = site.mend().expect("the link lives");
    second.hear();
    let goes_on = clock::now().since(back);
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    Some(goes_on)
}

#[test]
fn a_connection_shows_the_silence_that_began_after_another_was_heard_cubic() {
    at_once::judge(AT_ONCE, |over| goes_on_after(over, "cubic"));
}

#[test]
fn a_connection_shows_the_silence_that_began_after_another_was_heard_bbr() {
    at_once::judge(AT_ONCE, |over| goes_on_after(over, "bbr"));
}

/// From the link's return until both go on: a transfer towards the link, of which the gateway has kept what was lost, and
/// one from beyond it, of which it has nothing.
fn both_go_on_after(over: Option<Over>, congestion: &str) -> Option<Duration> {
    let link = ToldSite::with_stack(over, true, congestion)?;
    let transfers = [
        link.transfer(Host::Fixed, Host::Mobile),
        link.transfer(Host::Mobile, Host::Fixed),
    ];
    wait(BEFORE);
    link.cut();
    wait(LONG_OUTAGE);
    let back = link.site.mend().expect("the link lives");
    let mut latest = Duration::ZERO;
    for (sender, read) in transfers {
        let first = read.iter().find(|at| *at >= back).expect("it goes on");
        latest = latest.max(first.since(back));
        sender.shutdown(Shutdown::Both).expect("it is open");
    }
    link.stop();
    Some(latest)
}

#[test]
fn senders_on_both_sides_of_a_silent_link_go_on_when_it_is_back_cubic() {
    at_once::judge(Duration::from_millis(450), |over| {
        both_go_on_after(over, "cubic")
    });
}

#[test]
fn senders_on_both_sides_of_a_silent_link_go_on_when_it_is_back_bbr() {
    at_once::judge(Duration::from_millis(900), |over| {
        both_go_on_after(over, "bbr")
    });
}
