//! The lab's path with a mobile host that goes from gateway to gateway.

use super::*;
use outlast_world::Handoff;

/// The mobile host goes from a slow link to a fast one, which takes five milliseconds, and is
/// followed there at once by what its old gateway has kept.
fn moving() -> Between {
    let pipe = PipeConfig {
        delay: DELAY,
        ..PipeConfig::default()
    };
    let fast = LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        ..LinkConfig::default()
    };
    let mut slow = fast.clone();
    // 1040 bytes take a second: they are being sent when the mobile host leaves.
    slow.to_mobile.rate = BitRate::from_bits_per_second(8_320);
    let setup = RoamingSetup {
        cells: vec![fast],
        home_agent: PathMechanismKind::None,
        handoffs: vec![Handoff {
            at: DOWN,
            gap: Duration::from_millis(5),
            to: 1,
            update: Duration::ZERO,
            forwards: true,
        }],
        crashes: Vec::new(),
        agents: None,
        mobile_ip: None,
    };
    let link = |config| EmulatedLink {
        config,
        gateways: [PathMechanismKind::Hold, PathMechanismKind::None].into(),
        observer: Observer { capture: None },
    };
    Between {
        links: vec![link(setup.first_link(slow))],
        roaming: Some(Roaming {
            cells: setup.further_links().map(link).collect(),
            setup,
        }),
        trace: None,
        cross_traffic: Vec::new(),
        ip: IpVersion::V4,
        seed: 1,
        status: Arc::default(),
        hip: None,
        agents: [None, None],
    }
}

/// How long after the first byte what was sent then is with the mobile host, if each timer is
/// `late`.
fn arrival(late: Duration) -> Option<Duration> {
    let mut walk = Walk::between(moving());
    walk.open();
    let started = walk.now;
    walk.send(&data(500));
    while walk.received.is_empty() && walk.now < started + 10 * OUTAGE {
        let due = walk.path.poll_timeout()?;
        walk.now = walk.now.max(due + late);
        walk.path.handle_timeout(walk.now);
        walk.collect();
    }
    let (at, side, packet) = walk.received.first()?;
    assert_eq!((*side, packet), (Side::Mobile, &data(500)));
    Some(at.since(started))
}

#[test]
fn all_of_a_handoff_happens_in_its_order_however_late_the_clock_is_looked_at() {
    let punctual = DOWN + Duration::from_millis(5) + DELAY;
    assert_eq!(arrival(Duration::ZERO), Some(punctual));
    let late = Duration::from_millis(35);
    let arrived = arrival(late).expect("the old gateway sends it on");
    assert!(
        arrived >= punctual && arrived <= punctual + late,
        "{arrived:?}"
    );
}

#[test]
fn the_link_that_is_shown_is_that_of_where_the_mobile_host_is() {
    let between = moving();
    let status = Arc::clone(&between.status);
    let mut walk = Walk::between(between);
    let shown = |walk: &Walk| {
        let shown = status.progress(walk.now, None);
        (shown.elapsed, shown.link_up, shown.outages)
    };
    walk.open();
    assert_eq!(shown(&walk), (Duration::ZERO, true, 0));
    walk.send(&data(500));
    walk.wait(DOWN);
    assert_eq!(shown(&walk), (DOWN, false, 1));
    walk.wait(Duration::from_millis(5));
    assert_eq!(shown(&walk), (DOWN + Duration::from_millis(5), true, 1));
    // The old gateway sends it on. The new one does not know the connection, keeps it for the moment
    // until the mobile host is there, and hands it over once.
    assert_eq!(status.progress(walk.now, None).injected, 2);
    walk.wait(Duration::from_millis(900));
    assert_eq!(walk.received.len(), 1);
}
