//! The best that a link can do.

use crate::fixture::{Arrival, deliveries, millisecond_pipe, ms, plain, play, with_outage};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_link::{Ideal, LinkConfig, OutageProcess, PipeConfig, Way};
use proptest::prelude::*;

const FOR_EVER: Duration = Duration::from_secs(1_000_000);

/// 1.5 MB take a second at 12 Mbit/s; the round trip is 20 ms.
const SECOND_OF_BYTES: ByteCount = ByteCount(1_500_000);

#[track_caller]
fn assert_ideal(config: &LinkConfig, expected: Option<Duration>) {
    assert_eq!(
        config.ideal_time(Way::ToMobile, SECOND_OF_BYTES, FOR_EVER),
        expected
    );
}

#[test]
fn without_outages_it_is_a_round_trip_and_the_time_on_the_wire() {
    assert_ideal(&plain(millisecond_pipe()), Some(ms(1_020)));
}

#[test]
fn an_outage_in_the_middle_adds_its_length() {
    assert_ideal(&with_outage(ms(500), ms(3_000)), Some(ms(4_020)));
}

#[test]
fn an_outage_that_covers_the_first_round_trip_delays_the_beginning() {
    assert_ideal(&with_outage(ms(0), ms(300)), Some(ms(1_300)));
    assert_ideal(&with_outage(ms(10), ms(300)), Some(ms(1_310)));
}

#[test]
fn an_outage_after_the_end_does_not_matter() {
    assert_ideal(&with_outage(ms(1_020), ms(3_000)), Some(ms(1_020)));
    assert_ideal(&with_outage(ms(1_019), ms(3_000)), Some(ms(4_020)));
}

#[test]
fn periods_are_used_one_after_the_other() {
    let outages = OutageProcess::Periodic {
        first: ms(400),
        up: ms(400),
        down: ms(600),
    };
    // 380 ms of the first, 400 ms of the second, 220 ms of the third.
    assert_ideal(
        &LinkConfig {
            outages,
            ..plain(millisecond_pipe())
        },
        Some(ms(2_220)),
    );
}

#[test]
fn a_link_that_stays_down_never_is_done() {
    assert_ideal(&with_outage(ms(500), FOR_EVER * 2), None);
}

#[test]
fn the_limit_holds() {
    let config = plain(millisecond_pipe());
    let at_limit = |limit| config.ideal_time(Way::ToMobile, SECOND_OF_BYTES, limit);
    assert_eq!(at_limit(ms(1_020)), Some(ms(1_020)));
    assert_eq!(at_limit(ms(1_019)), None);
    let outages = OutageProcess::Periodic {
        first: ms(1),
        up: ms(1),
        down: ms(1_000_000),
    };
    let config = LinkConfig {
        outages,
        ..plain(millisecond_pipe())
    };
    assert_eq!(
        config.ideal_time(Way::ToMobile, SECOND_OF_BYTES, ms(60_000)),
        None
    );
}

#[test]
fn an_unlimited_rate_takes_only_the_round_trip_and_the_outage() {
    let pipe = PipeConfig {
        rate: None,
        ..millisecond_pipe()
    };
    assert_ideal(&plain(pipe), Some(ms(20)));
    let config = LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        ..with_outage(ms(15), ms(100))
    };
    assert_ideal(&config, Some(ms(115)));
    assert_eq!(config.capacity(Way::ToMobile, ms(1_000)), None);
}

#[test]
fn opportunities_count_instead_of_the_rate() {
    // A thousand opportunities a second from the start, the first of them a millisecond after it.
    let outages = OutageProcess::Deliveries {
        trace: deliveries("1\n"),
        gap: ms(1_000),
    };
    let config = LinkConfig {
        outages,
        ..plain(millisecond_pipe())
    };
    let payload = ByteCount(1_504 * 500);
    assert_eq!(
        config.ideal_time(Way::ToMobile, payload, FOR_EVER),
        Some(ms(520))
    );
    assert_eq!(
        config.capacity(Way::ToMobile, ms(520)),
        Some(ByteCount(1_504 * 520))
    );
}

#[test]
fn messages_follow_each_other() {
    let config = with_outage(ms(100), ms(900));
    let mut ideal = Ideal::new(&config, FOR_EVER);
    let message = ByteCount(15_000);
    assert_eq!(ideal.transmit(Way::ToFixed, ms(20), message), Some(ms(30)));
    assert_eq!(
        ideal.transmit(Way::ToMobile, ms(95), message),
        Some(ms(1_005))
    );
    assert_eq!(
        ideal.transmit(Way::ToFixed, ms(1_015), message),
        Some(ms(1_025))
    );
}

#[test]
fn capacity_is_the_rate_times_the_connected_time() {
    let config = with_outage(ms(100), ms(900));
    let capacity = |until| {
        config
            .capacity(Way::ToFixed, ms(until))
            .map(ByteCount::as_u64)
    };
    assert_eq!(capacity(100), Some(150_000));
    assert_eq!(capacity(600), Some(150_000));
    assert_eq!(capacity(1_100), Some(300_000));
}

proptest! {
    /// No real sender beats the ideal one, even one that has everything in the queue at once.
    #[test]
    fn nobody_is_faster(
        frames in 1..200_usize,
        seed: u64,
        up in 5..100_u64,
        down in 1..100_u64,
    ) {
        let outages = OutageProcess::Uniform { up: ms(up), down: ms(down) };
        let pipe = PipeConfig { queue: frames, ..millisecond_pipe() };
        let config = LinkConfig { outages, seed, ..plain(pipe) };
        let arrival = Arrival { at: ms(0), way: Way::ToMobile, len: 1_500 };
        let driven = play(&config, &vec![arrival; frames]);
        let out = driven.out(Way::ToMobile);
        let Some(&last) = out.last() else { return Ok(()) };
        // The real sender need not wait for a round trip first.
        let delivered = ByteCount(out.len() as u64 * 1_500);
        let ideal = Ideal::new(&config, FOR_EVER).transmit(Way::ToMobile, ms(0), delivered);
        let ideal = ideal.expect("outages end") + pipe.delay;
        prop_assert!(driven.came_out(last) >= ideal);
    }
}
