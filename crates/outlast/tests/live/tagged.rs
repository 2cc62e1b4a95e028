//! `outlast run` on an interface that carries virtual LANs, too: frames with tags are nobody's business
//! of the daemon's and pass as they are - except for a tag that only gives a priority, whose frame is
//! like any other.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::wire::{Way, Wire};
use crate::path::wiring::{inside, switch};
use crate::path::{Daemon, FIXED, LINK, MOBILE, Over, Path, Transfer, Version, skip, until};
use crate::support::Place;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::tun::Tun;
use outlast_wire::{IpHeader, Packet, TcpFlags, TcpHeader};
use serde_json::Value;

const BYTES: usize = 4_000_000;

/// Behind the gateway's end of the link: somebody who hears what it receives with a tag, and sends
/// what has one.
struct Lodger(Tun);

impl Lodger {
    /// `None`, with the reason, where this machine does not allow it.
    fn new(path: &Path) -> Option<Self> {
        let made = path.gateway.run(|| {
            let mut route = RouteSocket::open().expect("netlink");
            let link = route.interface(LINK).expect("made");
            route.add_macvlan("lodging", link)
        });
        if let Err(error) = made.expect("enter") {
            skip(format!("{error}: no macvlan"));
            return None;
        }
        let tap = path.gateway.run(|| Tun::create_ethernet("lodger"));
        let tap = tap.expect("enter").inspect_err(|error| skip(error));
        let tap = tap.ok()?;
        inside(&path.gateway, |route| {
            route.add_bridge("hall").expect("bridge");
            let hall = route.interface("hall").expect("made");
            for port in ["lodging", "lodger"] {
                let index = route.interface(port).expect("made");
                route.attach(index, hall).expect("port");
            }
            for name in ["hall", "lodging", "lodger"] {
                switch(route, name, true);
            }
        });
        Some(Self(tap))
    }

    /// Whether it hears `frame`, among others.
    fn hears(&self, frame: &[u8]) -> bool {
        let mut buffer = vec![0; 1 << 16];
        while let Some(heard) = self.0.read(&mut buffer).expect("its interface") {
            if heard == frame {
                return true;
            }
        }
        false
    }
}

/// To everybody, in a frame with these tags: the beginning of a connection between the two hosts.
/// `number` tells the frames apart.
fn frame(tags: &[[u8; 4]], number: u16) -> Vec<u8> {
    let ip = IpHeader {
        identification: number,
        ..IpHeader::new(MOBILE.of(Version::V4), FIXED.of(Version::V4))
    };
    let syn = TcpHeader {
        source_port: 80,
        destination_port: number,
        flags: TcpFlags::SYN,
        ..TcpHeader::default()
    };
    let packet = Packet::tcp_segment(ip, syn, b"").to_bytes();
    [
        &[0xff; 6],
        &LODGERS[..],
        &tags.concat(),
        &[8, 0],
        &packet,
        &[0; 6],
    ]
    .concat()
}

/// Where frames with tags come from.
const LODGERS: [u8; 6] = [2, 0, 0, 0, 0, 9];
const CUSTOMER: [u8; 4] = [0x81, 0, 0x20, 10];
const SERVICE: [u8; 4] = [0x88, 0xa8, 0, 20];

/// All that can be in front of a packet.
const TAGS: [&[[u8; 4]]; 3] = [&[CUSTOMER], &[SERVICE], &[SERVICE, CUSTOMER]];

/// Frames with tags pass in both directions, to the last byte.
#[track_caller]
fn pass(wire: &Wire, lodger: &Lodger, number: u16) {
    for tags in TAGS {
        let frame = frame(tags, number);
        until("a frame that comes through", || {
            wire.inject(Way::ToGateway, &frame);
            lodger.hears(&frame)
        });
        until("a frame that goes through", || {
            lodger.0.write(&frame).expect("its interface");
            wire.log(Way::ToMobile).tagged.contains(&frame)
        });
    }
}

#[test]
fn virtual_lans_pass_whatever_is_held_for_others() {
    for over in Over::BOTH {
        let place = Place::new();
        let Some(path) = Path::new() else { return };
        let Some(wire) = path.tap() else { return };
        let Some(lodger) = Lodger::new(&path) else {
            return;
        };
        let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
            continue;
        };
        let to = MOBILE.of(Version::V4);
        let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
        transfer.wait_for(BYTES / 4);
        pass(&wire, &lodger, 1);
        // As far as the daemon knows the link is down. For the others it is not.
        let notify = |state: &str| {
            let said = daemon.ask(&place, &["notify", state]);
            assert_eq!(said.code, Some(0), "{said:?}");
        };
        notify("down");
        let keeps = |status: &Value| status["held_bytes"].as_u64() > Some(0);
        daemon.status_when("something that is held", keeps);
        pass(&wire, &lodger, 2);
        notify("up");
        transfer.wait_for(BYTES / 2);
        // And without any carrier nothing passes, and nobody is harmed.
        path.cut();
        daemon.status_when("something that is held", keeps);
        for tags in TAGS {
            let frame = frame(tags, 3);
            lodger.0.write(&frame).expect("its interface");
            wire.inject(Way::ToGateway, &frame);
        }
        let by_itself = transfer.wait_for_long_timeout();
        let up = path.mend();
        transfer.assert_resumes_before(by_itself, up);
        pass(&wire, &lodger, 4);
        transfer.finish();
        // What the daemon has sent has no tags.
        let log = wire.log(Way::ToMobile);
        assert_eq!(log.wrong, None);
        let of_ours = |frame: &Vec<u8>| frame[6..12] == LODGERS;
        assert!(log.tagged.iter().all(of_ours), "{log:x?}");
        daemon.stop();
    }
}

#[test]
fn what_is_tagged_says_nothing_of_a_connection_with_the_same_addresses() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(wire) = path.tap() else { return };
    let Some(lodger) = Lodger::new(&path) else {
        return;
    };
    let Some(daemon) = Daemon::start_over(Over::Ebpf, &place, &path.gateway, "hold") else {
        return;
    };
    let seen = |status: &Value| {
        ["tracked", "odd_segments"].map(|name| status["kernel"][name].as_u64().expect("a count"))
    };
    let before = seen(&daemon.status());
    pass(&wire, &lodger, 1);
    assert_eq!(seen(&daemon.status()), before);
    // The same without a tag is seen.
    let untagged = frame(&[], 1);
    let is_seen = |status: &Value| seen(status) != before;
    until("a frame without a tag", || {
        wire.inject(Way::ToGateway, &untagged);
        is_seen(&daemon.status())
    });
    daemon.stop();
}

#[test]
fn frames_with_a_priority_are_like_any_other() {
    for (over, version) in [
        (Over::Ebpf, Version::V4),
        (Over::Ebpf, Version::V6),
        (Over::Nfqueue, Version::V4),
    ] {
        let place = Place::new();
        let Some(path) = Path::new() else { return };
        let Some(wire) = path.tap() else { return };
        wire.give_priority(true);
        let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
            continue;
        };
        let to = MOBILE.of(version);
        let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
        transfer.wait_for(BYTES / 4);
        path.cut();
        let keeps = |status: &Value| status["held_bytes"].as_u64() > Some(0);
        daemon.status_when("something that is held", keeps);
        let by_itself = transfer.wait_for_long_timeout();
        let up = path.mend();
        transfer.assert_resumes_before(by_itself, up);
        transfer.finish();
        daemon.stop();
    }
}
