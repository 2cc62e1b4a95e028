//! What tells the daemon that a link is away or back, between real hosts: silence, routes,
//! neighbours, and indicators that flap.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, FIXED, MOBILE, OUTER, Over, Path, Transfer, Version, connected};
use crate::support::Place;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

const BYTES: usize = 6_000_000;

fn count(status: &Value, what: &str) -> u64 {
    status["counters"][what].as_u64().expect("a counter")
}

/// A daemon with this configuration.
fn configured(
    place: &Place,
    namespace: &outlast_linux::namespace::Namespace,
    file: &str,
) -> Option<Daemon> {
    let file = place.file("outlast.toml", file);
    let file = file.to_str().expect("a path of ours");
    Daemon::start_with(place, namespace, &["--config", file])
}

fn is_none(list: &Value) -> bool {
    list.as_array().expect("a list").is_empty()
}

fn assert_resumes_after_silence(over: Over, is_upload: bool, version: Version) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let (from, to, address) = match is_upload {
        false => (&path.fixed, &path.mobile, MOBILE),
        true => (&path.mobile, &path.fixed, FIXED),
    };
    let keeper = if is_upload {
        &path.mobile
    } else {
        &path.gateway
    };
    let Some(daemon) = Daemon::start_over(over, &place, keeper, "hold") else {
        return;
    };
    let mut transfer = Transfer::start(from, to, address.of(version), BYTES);
    transfer.wait_for(BYTES / 6);
    path.black_hole();
    let is_silent = |status: &Value| !is_none(&status["silent"]);
    let status = daemon.status_when("silence", is_silent);
    assert_eq!(status["link"]["state"], "up", "{status:#}");
    assert_eq!(status["silent"].as_array().map(Vec::len), Some(1));
    let by_itself = transfer.wait_for_long_timeout();
    let back = path.fill_hole();
    transfer.assert_resumes_before(by_itself, back);
    transfer.finish();
    let status = daemon.status_when("an answer", |status| !is_silent(status));
    assert!(count(&status, "silences") >= 1, "{status:#}");
    assert!(count(&status, "probes") >= 1, "{status:#}");
    daemon.stop();
}

#[test]
fn a_download_resumes_at_once_after_an_outage_that_nobody_tells_of() {
    for over in Over::BOTH {
        assert_resumes_after_silence(over, false, Version::V4);
    }
}

#[test]
fn a_download_over_ipv6_does_too() {
    assert_resumes_after_silence(Over::Nfqueue, false, Version::V6);
}

#[test]
fn an_upload_does_too_when_the_mobile_host_is_its_own_gateway() {
    for over in Over::BOTH {
        assert_resumes_after_silence(over, true, Version::V4);
    }
}

/// The router has given the mobile host up, and would have to ask for it before it forwarded an
/// answer: here it does not ask, so that it has to be told.
fn assert_router_is_reminded(over: Over, version: Version) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start_over(over, &place, &path.mobile, "hold") else {
        return;
    };
    let to = FIXED.of(version);
    let mut transfer = Transfer::start(&path.mobile, &path.fixed, to, BYTES);
    transfer.wait_for(BYTES / 6);
    path.black_hole();
    path.give_up_mobile(version);
    let is_silent = |status: &Value| !is_none(&status["silent"]);
    daemon.status_when("silence", is_silent);
    let by_itself = transfer.wait_for_long_timeout();
    let back = path.fill_hole();
    transfer.assert_resumes_before(by_itself, back);
    path.ask_again();
    transfer.finish();
    daemon.stop();
}

#[test]
fn a_router_that_has_given_the_mobile_host_up_is_reminded_of_it() {
    for over in Over::BOTH {
        assert_router_is_reminded(over, Version::V4);
    }
}

#[test]
fn a_router_of_ipv6_is_too() {
    assert_router_is_reminded(Over::Nfqueue, Version::V6);
}

#[test]
fn a_router_is_reminded_when_somebody_says_that_it_is_back() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    // Nobody is probed.
    let file = "[indicators]\nsilence = false\n";
    let Some(daemon) = configured(&place, &path.mobile, file) else {
        return;
    };
    let Addressed { router, fixed } = Addressed::new();
    let notify = |state| {
        let said = daemon.ask(&place, &["notify", state, "--peer", &router]);
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    let mut transfer = Transfer::start(&path.mobile, &path.fixed, fixed, BYTES);
    transfer.wait_for(BYTES / 6);
    path.black_hole();
    notify("down");
    path.give_up_mobile(Version::V4);
    let known = transfer.acknowledged();
    path.fill_hole();
    notify("up");
    crate::path::until("an answer", || transfer.acknowledged() > known);
    path.ask_again();
    transfer.finish();
    daemon.stop();
}

#[test]
fn without_a_gateway_and_without_this_indicator_it_stalls() {
    let place = Place::new();
    for with_daemon in [false, true] {
        let Some(path) = Path::new() else { return };
        let daemon = match with_daemon {
            false => None,
            true => match configured(&place, &path.gateway, "[indicators]\nsilence = false\n") {
                Some(daemon) => Some(daemon),
                None => return,
            },
        };
        let mut transfer =
            Transfer::start(&path.fixed, &path.mobile, MOBILE.of(Version::V4), BYTES);
        transfer.wait_for(BYTES / 6);
        path.black_hole();
        let by_itself = transfer.wait_for_long_timeout();
        let back = path.fill_hole();
        transfer.assert_stalls_until(by_itself, back);
        transfer.finish();
        if let Some(daemon) = daemon {
            let status = daemon.status();
            assert_eq!(
                (count(&status, "silences"), count(&status, "probes")),
                (0, 0)
            );
            daemon.stop();
        }
    }
}

#[test]
fn a_black_hole_in_which_the_neighbour_fails_is_left_at_once_too() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.gateway, "hold") else {
        return;
    };
    path.doubt_neighbours_soon();
    // The kernel alone would ask once a second.
    path.ask_as_usual();
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    path.black_hole();
    let is_missed = |status: &Value| status["peers_down"][0]["by"] == "neighbour";
    let status = daemon.status_when("a neighbour that is missed", is_missed);
    assert_eq!(
        status["peers_down"][0]["peer"],
        to.to_string().as_str(),
        "{status:#}"
    );
    let by_itself = transfer.wait_for_long_timeout();
    let back = path.fill_hole();
    transfer.assert_resumes_before(by_itself, back);
    transfer.finish();
    daemon.stop();
}

fn assert_question_is_repeated(version: Version) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.gateway, "hold") else {
        return;
    };
    let to = MOBILE.of(version);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    path.ask_once();
    path.cut();
    let by_itself = transfer.wait_for_long_timeout();
    // What the kernel asks, and what is sent first, is lost: the other end is not quite there yet.
    path.black_hole();
    path.mend();
    let is_up = |status: &Value| status["link"]["state"] == "up";
    daemon.status_when("the link's return", is_up);
    let back = path.fill_hole();
    transfer.assert_resumes_before(by_itself, back);
    transfer.finish();
    daemon.stop();
}

#[test]
fn a_neighbour_is_asked_for_again_soon_where_the_first_question_is_lost() {
    assert_question_is_repeated(Version::V4);
}

#[test]
fn a_neighbour_of_ipv6_is_too() {
    assert_question_is_repeated(Version::V6);
}

/// How often the mobile host itself asks for its router until a download over IPv6 goes on that
/// lost its carrier.
fn questions_until_resumed(is_aided: bool) -> Option<u64> {
    let place = Place::new();
    let path = Path::new()?;
    let daemon = match is_aided {
        true => Some(Daemon::start(&place, &path.gateway, "hold")?),
        false => None,
    };
    let to = MOBILE.of(Version::V6);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    path.cut();
    transfer.wait_for_long_timeout();
    let before = path.questions_of_mobile();
    let back = path.mend();
    transfer.resumed(back);
    let asked = path.questions_of_mobile() - before;
    transfer.finish();
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    Some(asked)
}

#[test]
fn a_peer_of_ipv6_is_told_where_its_answers_go_and_need_not_ask() {
    let Some(asked) = questions_until_resumed(true) else {
        return;
    };
    assert_eq!(asked, 0);
    let control = questions_until_resumed(false).expect("as before");
    assert!(control > 0);
}

/// A router that nobody is.
const DEAD: &str = "198.51.100.9";

/// An upload that went by a dead router, and goes by a living one before its sender tries again by
/// itself if it `is_aided`, or else then.
fn resume_by_another_router(is_aided: bool) -> Option<()> {
    let place = Place::new();
    let path = Path::new()?;
    // Only the route tells.
    let file = "[indicators]\nsilence = false\nneighbour = false\n";
    let daemon = match is_aided {
        true => Some(configured(&place, &path.mobile, file)?),
        false => None,
    };
    let Addressed { router, fixed } = Addressed::new();
    let mut transfer = Transfer::start(&path.mobile, &path.fixed, fixed, BYTES);
    transfer.wait_for(BYTES / 6);
    path.pin_nobody(DEAD);
    path.route_by(DEAD);
    let by_itself = transfer.wait_for_long_timeout();
    let back = path.route_by(&router);
    match is_aided {
        true => transfer.assert_resumes_before(by_itself, back),
        false => transfer.assert_stalls_until(by_itself, back),
    }
    transfer.finish();
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    Some(())
}

/// Addresses of IPv4.
struct Addressed {
    router: String,
    fixed: std::net::IpAddr,
}

impl Addressed {
    fn new() -> Self {
        Self {
            router: OUTER.of(Version::V4).to_string(),
            fixed: FIXED.of(Version::V4),
        }
    }
}

#[test]
fn connections_are_moved_when_another_router_takes_over() {
    if resume_by_another_router(true).is_some() {
        resume_by_another_router(false).expect("as before");
    }
}

#[test]
fn a_router_is_down_while_no_route_leads_to_it() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.mobile, "hold") else {
        return;
    };
    let Addressed { router, .. } = Addressed::new();
    path.unroute(&router);
    let is_down = |status: &Value| !is_none(&status["peers_down"]);
    let status = daemon.status_when("a router that is down", is_down);
    assert_eq!(
        status["peers_down"][0]["peer"],
        router.as_str(),
        "{status:#}"
    );
    assert_eq!(status["peers_down"][0]["by"], "route", "{status:#}");
    assert_eq!(status["link"]["state"], "up", "{status:#}");
    path.route_by(&router);
    daemon.status_when("a router that is up", |status| !is_down(status));
    daemon.stop();
}

/// An idle connection from the fixed host to the mobile one, of which a word was said.
fn idle(path: &Path) -> (TcpStream, TcpStream) {
    let to = MOBILE.of(Version::V4);
    let (mut near, mut far) = connected(&path.fixed, &path.mobile, to);
    near.write_all(b"word").expect("write");
    let mut word = [0; 4];
    far.read_exact(&mut word).expect("read");
    far.write_all(&word).expect("write");
    near.read_exact(&mut word).expect("read");
    (near, far)
}

/// What the gateway has sent by itself.
fn sent(status: &Value) -> u64 {
    ["resent", "acks_resent", "rereceived", "probes"]
        .iter()
        .map(|what| count(status, what))
        .sum()
}

/// A penalty that lasts, so that links that flap are damped however slowly a busy machine lets them.
const SLOW_DAMPING: &str = "[damping]\nhalf_life = \"10 s\"\nhold_down = \"10 s\"\n";

/// What the daemon says after its carrier has flapped a hundred times, with one idle connection.
fn after_a_flapping_carrier(file: &str) -> Option<Value> {
    let place = Place::new();
    let path = Path::new()?;
    let daemon = configured(&place, &path.gateway, file)?;
    let connection = idle(&path);
    path.flap(100);
    let is_up = |status: &Value| status["link"]["state"] == "up";
    let status = daemon.status_when("a link that is up", is_up);
    drop(connection);
    daemon.stop();
    Some(status)
}

#[test]
fn a_flapping_carrier_is_damped_unless_that_is_switched_off() {
    let Some(damped) = after_a_flapping_carrier(SLOW_DAMPING) else {
        return;
    };
    assert!(count(&damped, "link_ups_delayed") >= 1, "{damped:#}");
    assert!(sent(&damped) <= 40, "{damped:#}");
    let control = after_a_flapping_carrier("[damping]\nenabled = false\n").expect("as before");
    assert_eq!(count(&control, "link_ups_delayed"), 0, "{control:#}");
}

#[test]
fn a_hook_that_flaps_is_damped_for_its_peer_and_believed_in_the_end() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    // However long it takes to tell it so often.
    let Some(daemon) = configured(&place, &path.gateway, SLOW_DAMPING) else {
        return;
    };
    let connection = idle(&path);
    let peer = MOBILE.of(Version::V4).to_string();
    for _ in 0..8 {
        for state in ["down", "up"] {
            let said = daemon.ask(&place, &["notify", state, "--peer", &peer]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
    }
    let status = daemon.status();
    let damped = &status["damped"][0];
    assert_eq!(damped["peer"], peer.as_str(), "{status:#}");
    assert_eq!(
        (&damped["said"], &damped["told"]),
        (&"up".into(), &"down".into())
    );
    let shown = daemon.ask(&place, &["status"]);
    assert!(shown.out.contains("damped"), "{shown:?}");
    assert!(shown.out.contains("although said to be up"), "{shown:?}");
    let is_calm = |status: &Value| is_none(&status["damped"]);
    let status = daemon.status_when("an end of the damping", is_calm);
    assert!(is_none(&status["peers_down"]), "{status:#}");
    assert!(sent(&status) <= 40, "{status:#}");
    drop(connection);
    daemon.stop();
}

#[test]
fn a_peer_is_not_told_apart_where_too_many_ways_lead_through_the_interface() {
    const MANY: u32 = 2_100;
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let over = Over::Ebpf;
    let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
        return;
    };
    let peer = MOBILE.of(Version::V4);
    let diverted = || {
        let said = daemon.ask(&place, &["notify", "down", "--peer", &peer.to_string()]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let is_down = |status: &Value| !is_none(&status["peers_down"]);
        let status = daemon.status_when("a peer that is down", is_down);
        let said = daemon.ask(&place, &["notify", "up", "--peer", &peer.to_string()]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let is_calm = |status: &Value| status["data_path"] == "eBPF: packets stay in the kernel";
        daemon.status_when("an end of it", is_calm);
        status["data_path"].as_str().expect("a text").to_owned()
    };
    assert_eq!(
        diverted(),
        "eBPF: packets of one peer go through user space for now"
    );
    path.route_many_by(peer, MANY);
    assert_eq!(diverted(), "eBPF: packets go through user space for now");
    daemon.stop();
}
