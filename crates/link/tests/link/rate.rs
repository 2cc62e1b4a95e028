//! A pipe carries its rate and no more.

use crate::fixture::{
    Driven, Record, any_arrivals, any_clean_pipe, deliveries, link_of, mbit, millisecond_pipe, ms,
    plain, play,
};
use outlast_base::time::Duration;
use outlast_link::trace::OPPORTUNITY;
use outlast_link::{Ideal, LinkConfig, OutageProcess, PipeConfig, RateChange, Way};
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_rate_is_never_exceeded(
        config in link_of(any_clean_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let by_rate = !matches!(config.outages, OutageProcess::Deliveries { .. });
        let config = LinkConfig { rate_changes: Vec::new(), ..config };
        let driven = play(&config, &arrivals);
        for way in Way::BOTH {
            let mut before = None;
            for record in &driven.records {
                let Record::Out { at, way: out, id } = *record else { continue };
                let (true, true, Some(rate)) = (out == way, by_rate, config.pipe(way).rate) else {
                    continue;
                };
                let needed = rate.time_for(outlast_base::units::ByteCount(arrivals[id].len));
                let earliest = before.unwrap_or(arrivals[id].at + config.pipe(way).delay) + needed;
                prop_assert!(at >= earliest, "frame {} at {:?}, not {:?}", id, at, earliest);
                before = Some(at);
            }
        }
    }

    #[test]
    fn opportunities_are_never_overspent(
        config in link_of(any_clean_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let OutageProcess::Deliveries { trace, .. } = &config.outages else { return Ok(()) };
        let driven = play(&config, &arrivals);
        for way in Way::BOTH {
            let mut total = 0;
            for record in &driven.records {
                let Record::Out { at, way: out, id } = *record else { continue };
                if out == way {
                    total += arrivals[id].len;
                    let opportunities = trace.until(at - config.pipe(way).delay);
                    prop_assert!(total <= opportunities * OPPORTUNITY.as_u64());
                }
            }
        }
    }

    #[test]
    fn a_busy_pipe_carries_its_whole_rate(frames in 1..500_usize, len in 20..9_000_u64) {
        let pipe = PipeConfig { queue: 500, ..millisecond_pipe() };
        let mut driven = Driven::started(plain(pipe));
        for _ in 0..frames {
            driven.send(ms(0), Way::ToFixed, len);
        }
        driven.run_until(ms(60_000));
        let rate = pipe.rate.expect("the fixture's pipe has a rate");
        let each = rate.time_for(outlast_base::units::ByteCount(len));
        let expected = each * u32::try_from(frames).expect("a few hundred") + pipe.delay;
        prop_assert_eq!(driven.came_out(frames - 1), expected);
    }
}

#[test]
fn a_late_driver_costs_no_capacity() {
    let pipe = PipeConfig {
        queue: 100,
        ..millisecond_pipe()
    };
    let mut driven = Driven::started(plain(pipe));
    for _ in 0..100 {
        driven.send_late(ms(0), Way::ToMobile, 1_500);
    }
    // The driver sleeps through all hundred frames, then sends another.
    let id = driven.send_late(ms(100), Way::ToMobile, 1_500);
    driven.run_until(ms(1_000));
    assert_eq!(driven.came_out(id), ms(111));
}

#[test]
fn an_unlimited_pipe_only_delays() {
    let pipe = PipeConfig {
        rate: None,
        queue: 1,
        ..millisecond_pipe()
    };
    let mut driven = Driven::started(plain(pipe));
    let ids: Vec<_> = (0..50)
        .map(|_| driven.send(ms(3), Way::ToMobile, 65_535))
        .collect();
    driven.run_until(ms(100));
    assert!(ids.iter().all(|&id| driven.came_out(id) == ms(13)));
}

#[test]
fn an_unlimited_pipe_without_delay_is_a_wire() {
    let pipe = PipeConfig {
        rate: None,
        delay: Duration::ZERO,
        ..millisecond_pipe()
    };
    let mut driven = Driven::started(plain(pipe));
    let id = driven.send(ms(3), Way::ToMobile, 1_500);
    assert_eq!(driven.came_out(id), ms(3));
}

#[test]
fn ways_do_not_share_their_rate() {
    let mut driven = Driven::started(plain(millisecond_pipe()));
    let down = driven.send(ms(0), Way::ToMobile, 1_500);
    let up = driven.send(ms(0), Way::ToFixed, 1_500);
    driven.run_until(ms(100));
    assert_eq!(
        (driven.came_out(down), driven.came_out(up)),
        (ms(11), ms(11))
    );
}

#[test]
fn before_the_start_a_trace_is_not_followed() {
    let trace = deliveries("400\n401\n402\n");
    let outages = OutageProcess::Deliveries {
        trace,
        gap: ms(1_000),
    };
    let mut driven = Driven::new(LinkConfig {
        outages,
        ..plain(millisecond_pipe())
    });
    let before = driven.send(ms(0), Way::ToMobile, 1_500);
    driven.run_until(ms(50));
    assert_eq!(driven.came_out(before), ms(11));
    driven
        .link
        .start(outlast_base::time::Instant::from_millis(50));
    let after = driven.send(ms(60), Way::ToMobile, 1_500);
    driven.run_until(ms(1_000));
    assert_eq!(driven.came_out(after), ms(50 + 400 + 10));
}

/// To 24 Mbit/s downwards and 6 Mbit/s upwards after 12 ms: 1500 bytes take 0.5 and 2 ms.
fn changing() -> LinkConfig {
    LinkConfig {
        rate_changes: vec![RateChange {
            at: ms(12),
            to_mobile: mbit(24),
            to_fixed: mbit(6),
        }],
        ..plain(millisecond_pipe())
    }
}

#[test]
fn what_waits_is_sent_at_the_new_rate() {
    let mut driven = Driven::started(changing());
    let at = Duration::from_micros(10_500);
    for way in Way::BOTH {
        for _ in 0..4 {
            driven.send(at, way, 1_500);
        }
    }
    driven.run_until(ms(100));
    // The first two have begun by 12 ms.
    let half = |halves: u64| Duration::from_micros(500 * halves);
    let down: Vec<_> = [0, 1, 2, 3].map(|id| driven.came_out(id)).into();
    assert_eq!(down, [43, 45, 46, 47].map(half));
    let up: Vec<_> = [4, 5, 6, 7].map(|id| driven.came_out(id)).into();
    assert_eq!(up, [43, 45, 49, 53].map(half));
}

#[test]
fn capacity_and_ideal_follow_the_rates() {
    let config = LinkConfig {
        outages: OutageProcess::Single {
            start: ms(4),
            length: ms(4),
        },
        ..changing()
    };
    // 8 ms at 12 Mbit/s, then 8 ms at 24 and at 6 Mbit/s.
    let capacity = |way| config.capacity(way, ms(20)).map(|bytes| bytes.0);
    assert_eq!(capacity(Way::ToMobile), Some(12_000 + 24_000));
    assert_eq!(capacity(Way::ToFixed), Some(12_000 + 6_000));
    for way in Way::BOTH {
        let bytes = config.capacity(way, ms(20)).expect("the rate is limited");
        let mut ideal = Ideal::new(&config, ms(1_000));
        assert_eq!(ideal.transmit(way, Duration::ZERO, bytes), Some(ms(20)));
    }
}

proptest! {
    #[test]
    fn the_ideal_is_through_when_the_capacity_is_reached(
        config in link_of(any_clean_pipe().boxed()),
        millis in 1..5_000_u64,
    ) {
        let by_rate = !matches!(config.outages, OutageProcess::Deliveries { .. });
        for way in Way::BOTH {
            let mut ideal = Ideal::new(&config, ms(20_000));
            let Some(bytes) = config.capacity(way, ms(millis)).filter(|_| by_rate) else { continue };
            let through = ideal.clone().transmit(way, Duration::ZERO, bytes);
            // Less than a byte a change is cut off.
            let slack = ms(1);
            prop_assert!(through.is_some_and(|through| through <= ms(millis) + slack));
            let more = outlast_base::units::ByteCount(bytes.0 + 10);
            let later = ideal.transmit(way, Duration::ZERO, more);
            prop_assert!(later.is_none_or(|later| later + slack >= ms(millis)));
        }
    }
}
