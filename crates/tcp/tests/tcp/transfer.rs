//! Whole transfers between two endpoints.

use crate::common::{Pair, config, link, ms, outage};
use outlast_base::time::{Duration, Instant};
use outlast_tcp::profile::{Congestion, LINUX_6, Profile};
use outlast_tcp::{Config, Error, State};

const BYTES: u64 = 2_000_000;

/// Writes what fits until all is written, and runs until all is received.
fn transfer(pair: &mut Pair, bytes: u64, limit: Duration) {
    let until = pair.now + limit;
    while pair.server.received() < bytes && pair.error().is_none() {
        let _ = pair.client.send(pair.now, bytes - pair.client.written());
        pair.drain();
        if !pair.step(until) {
            break;
        }
    }
}

#[test]
fn every_profile_gets_through() {
    for profile in Profile::ALL {
        let mut pair = Pair::of(profile, link());
        transfer(&mut pair, BYTES, Duration::from_secs(120));
        assert_eq!(pair.server.received(), BYTES, "{}", profile.name);
        assert_eq!(pair.error(), None, "{}", profile.name);
    }
}

#[test]
fn linux_6_fills_the_link_with_every_algorithm() {
    for congestion in [Congestion::Cubic, Congestion::Reno, Congestion::Bbr] {
        let mut client = config(&LINUX_6);
        client.congestion = Some(congestion);
        let server = client.mirrored();
        let mut pair = Pair::new(client, server, link());
        transfer(&mut pair, 10_000_000, Duration::from_secs(60));
        // 10 MB in segments of 1448 bytes with 52 of headers, at 4 Mbit/s.
        let ideal = 10_000_000.0 / 1_448.0 * 1_500.0 * 8.0 / 4e6;
        let took = pair.now.as_secs_f64();
        assert!(
            took < ideal * 1.05 + 0.2,
            "{congestion:?}: {took} s, ideal {ideal} s"
        );
        assert_eq!(pair.client.counters().timeouts, 0, "{congestion:?}");
    }
}

#[test]
fn every_profile_survives_an_outage_of_a_minute() {
    for profile in Profile::ALL {
        let mut link = link();
        link.outages = outage(2_000, 60_000);
        let mut pair = Pair::of(profile, link);
        transfer(&mut pair, BYTES, Duration::from_secs(400));
        assert_eq!(pair.server.received(), BYTES, "{}", profile.name);
        assert!(pair.client.counters().timeouts >= 4, "{}", profile.name);
        let resumed = pair
            .deliveries
            .iter()
            .map(|(at, _)| ms(*at))
            .find(|at| *at > 62_000)
            .expect("it resumes");
        assert!(resumed < 62_000 + 130_000, "{}: {resumed}", profile.name);
    }
}

#[test]
fn every_pair_of_profiles_understands_each_other() {
    for client in Profile::ALL {
        for server in Profile::ALL {
            let client = config(client);
            let server = Config {
                profile: server,
                ..client.mirrored()
            };
            let names = (client.profile.name, server.profile.name);
            let mut pair = Pair::new(client, server, link());
            transfer(&mut pair, 300_000, Duration::from_secs(60));
            assert_eq!(pair.server.received(), 300_000, "{names:?}");
            pair.client.close(pair.now);
            pair.server.close(pair.now);
            pair.drain();
            pair.run_until(pair.now + Duration::from_secs(2_000));
            assert_eq!(pair.client.state(), State::Closed, "{names:?}");
            assert_eq!(pair.server.state(), State::Closed, "{names:?}");
            assert_eq!(pair.error(), None, "{names:?}");
        }
    }
}

#[test]
fn an_outage_that_does_not_end_ends_the_connection() {
    for profile in Profile::ALL {
        let mut link = link();
        link.outages = outage(1_000, 100_000_000);
        let mut pair = Pair::of(profile, link);
        transfer(&mut pair, 100_000_000, Duration::from_secs(10_000));
        assert_eq!(pair.error(), Some(Error::TimedOut), "{}", profile.name);
        let seconds = ms(pair.now) / 1_000;
        assert!(
            (400..2_000).contains(&seconds),
            "{}: {seconds} s",
            profile.name
        );
    }
}

#[test]
fn the_same_twice() {
    let run = || {
        let mut link = link();
        link.to_mobile.loss = 0.02;
        link.to_mobile.reorder = 0.02;
        link.outages = outage(1_000, 3_000);
        let mut pair = Pair::of(&LINUX_6, link).recording();
        transfer(&mut pair, BYTES, Duration::from_secs(100));
        let sent = pair.sent.unwrap_or_default();
        sent.into_iter()
            .map(|sent| (sent.at, sent.by_client, sent.packet))
            .collect::<Vec<_>>()
    };
    assert!(run() == run(), "packet by packet");
}

#[test]
fn a_connection_takes_less_than_ten_kilobytes() {
    assert!(size_of::<outlast_tcp::Endpoint>() < 4_096);
    let pair = Pair::of(&LINUX_6, link());
    assert_eq!(pair.now, Instant::ZERO);
}
