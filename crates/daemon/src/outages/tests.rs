use super::*;
use crate::indicators::INTERFACE;
use outlast_gateway::gateway::GatewayConfig;
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::PathMechanismKind;

const LINK: LinkId = LinkId::of_interface(INTERFACE);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn event(state: LinkState, indicator: Indicator) -> LinkEvent {
    LinkEvent {
        link: LINK,
        state,
        indicator,
    }
}

fn flow(port: u16) -> FlowKey {
    FlowKey {
        near: ([192, 0, 2, 1], port).into(),
        far: ([198, 51, 100, 1], 443).into(),
    }
}

/// A gateway that tracks nothing.
fn gateway() -> Gateway {
    Gateway::new(GatewayConfig {
        mechanism: PathMechanismKind::Hold,
        limits: Limits::default(),
        seed: 1,
        silence: None,
        damping: None,
    })
}

/// Tells of outages that are closed by `now`.
fn closed(outages: &mut Outages, now: Instant) -> Vec<String> {
    let mut told = Vec::new();
    outages.handle_timeout(now, &gateway(), |one| {
        told.push(Saved::of(now, one).to_text());
    });
    told
}

/// Five seconds without a carrier, from ten seconds on.
fn outage() -> Outages {
    let mut outages = Outages::default();
    outages.note_link(
        at(10_000),
        Duration::ZERO,
        &event(LinkState::Down, Indicator::Carrier),
    );
    outages.note_link(
        at(15_000),
        Duration::ZERO,
        &event(LinkState::Up, Indicator::Carrier),
    );
    outages
}

#[test]
fn what_an_outage_saved_is_told_two_seconds_after_it() {
    let mut outages = outage();
    let round_trip = Some(Duration::from_millis(50));
    outages.note_resumed(flow(1), LINK, Duration::from_micros(400), round_trip);
    outages.note_resumed(flow(2), LINK, Duration::from_millis(31), round_trip);
    let none: [String; 0] = [];
    assert_eq!(closed(&mut outages, at(15_000)), none);
    assert_eq!(outages.poll_timeout(), Some(at(17_000)));
    let told = "5.0 s (carrier): 2 connections resumed within 31 ms, without outlast about 2.8 s";
    assert_eq!(closed(&mut outages, at(17_000)), [told]);
    assert!(outages.is_behind, "the journal is to be written");
    outages.keep(at(17_000), Duration::ZERO);
    assert_eq!(outages.poll_timeout(), None);
    let saved = outages
        .records
        .iter()
        .map(|one| one.saved)
        .sum::<Duration>();
    assert_eq!(saved, Duration::from_micros(2 * 2_800_000 - 31_400));
}

#[test]
fn without_connections_nothing_was_saved() {
    let mut outages = outage();
    closed(&mut outages, at(15_000));
    let told = "5.0 s (carrier): no connection waited";
    assert_eq!(closed(&mut outages, at(17_000)), [told]);
}

#[test]
fn a_silence_begins_where_data_was_not_answered() {
    let mut outages = Outages::default();
    outages.note_silent(LINK, at(9_000));
    outages.note_link(
        at(10_000),
        Duration::ZERO,
        &event(LinkState::Down, Indicator::Silence),
    );
    outages.note_link(
        at(15_000),
        Duration::ZERO,
        &event(LinkState::Up, Indicator::FirstPacket),
    );
    let lengths: Vec<_> = outages.records.iter().map(Outage::length).collect();
    assert_eq!(lengths, [Some(Duration::from_secs(6))]);
}

/// Nobody says that a suspicion was dropped because the last connection behind the link has gone.
#[test]
fn a_suspicion_of_long_ago_begins_no_outage() {
    let mut outages = Outages::default();
    outages.note_silent(LINK, at(1_000));
    outages.note_silent(LINK, at(9_000_000));
    let down = event(LinkState::Down, Indicator::Silence);
    outages.note_link(at(9_001_000), Duration::ZERO, &down);
    assert_eq!(outages.records[0].began, at(9_000_000));
    let mut outages = Outages::default();
    outages.note_silent(LINK, at(1_000));
    let down = event(LinkState::Down, Indicator::Route);
    outages.note_link(at(9_001_000), Duration::ZERO, &down);
    assert_eq!(outages.records[0].began, at(9_001_000));
}

#[test]
fn records_of_links_that_are_still_away_stay() {
    let peer = |last| LinkId {
        peer: Some([198, 51, 100, last].into()),
        ..LINK
    };
    let mut outages = outage();
    closed(&mut outages, at(15_000));
    closed(&mut outages, at(17_000));
    for last in 0..REMEMBERED as u8 {
        let down = LinkEvent {
            link: peer(last),
            ..event(LinkState::Down, Indicator::Neighbour)
        };
        outages.note_link(at(20_000), Duration::ZERO, &down);
    }
    let down = |one: &Outage| one.stage == Stage::Down;
    assert_eq!(
        outages.records.iter().filter(|one| down(one)).count(),
        REMEMBERED
    );
}

#[test]
fn the_journal_is_written_at_once_and_then_no_more_often_than_every_five_seconds() {
    let mut outages = outage();
    closed(&mut outages, at(15_000));
    closed(&mut outages, at(17_000));
    outages.may_write_at = at(20_000);
    outages.keep(at(17_000), Duration::ZERO);
    assert_eq!(outages.poll_timeout(), Some(at(20_000)));
    outages.keep(at(20_000), Duration::ZERO);
    assert_eq!(outages.poll_timeout(), None);
}

#[test]
fn an_outage_of_which_nobody_told_has_no_length() {
    let mut outages = Outages::default();
    outages.note_link(
        at(10_000),
        Duration::ZERO,
        &event(LinkState::Down, Indicator::Route),
    );
    outages.note_link(
        at(10_000),
        Duration::ZERO,
        &event(LinkState::Up, Indicator::Route),
    );
    outages.note_resumed(flow(1), LINK, Duration::ZERO, None);
    let told = outages.records.iter().map(|one| Saved::of(at(10_000), one));
    let told: Vec<_> = told.map(|one| one.to_text()).collect();
    let said = "length unknown (route): 1 connection resumed in under 0.1 ms";
    assert_eq!(told, [said]);
}

#[test]
fn of_very_many_outages_the_last_are_remembered() {
    let mut outages = Outages::default();
    for second in 0..100 {
        let now = at(10_000 + second * 10_000);
        outages.note_link(
            now,
            Duration::ZERO,
            &event(LinkState::Down, Indicator::Carrier),
        );
        outages.note_link(
            now + Duration::from_secs(1),
            Duration::ZERO,
            &event(LinkState::Up, Indicator::Carrier),
        );
        for port in 0..100 {
            outages.note_resumed(flow(port), LINK, Duration::ZERO, None);
        }
    }
    assert_eq!(outages.records.len(), REMEMBERED);
    let most = |of: fn(&Outage) -> usize| outages.records.iter().map(of).max();
    assert_eq!(most(|one| one.named.len()), Some(NAMED));
    assert_eq!(most(|one| one.moved.len()), Some(100));
}

#[test]
fn records_of_an_earlier_daemon_come_first_and_age() {
    let mut earlier = Outages::default();
    let then = Duration::from_secs(1_000);
    earlier.note_link(
        at(10_000),
        then,
        &event(LinkState::Down, Indicator::Carrier),
    );
    let earlier = Saved::of(at(20_000), &earlier.records[0]);
    let mut outages = Outages {
        earlier: VecDeque::from(vec![earlier; REMEMBERED]),
        ..outage()
    };
    let told: Vec<_> = outages
        .told(at(60_000), Duration::from_secs(2_000))
        .collect();
    // Begun 1,010 s after 1970, and it is 2,060 s after that.
    assert_eq!(told[0].ago_s, 1_050.0);
    assert_eq!(told.last().map(|one| one.ago_s), Some(50.0));
    outages.note_link(
        at(70_000),
        Duration::ZERO,
        &event(LinkState::Down, Indicator::Carrier),
    );
    assert_eq!(outages.told(at(70_000), Duration::ZERO).count(), REMEMBERED);
}
