//! A pipe carries its rate and no more.

use crate::fixture::{
    Driven, Record, any_arrivals, any_clean_pipe, deliveries, link_of, millisecond_pipe, ms, plain,
    play,
};
use outlast_base::time::Duration;
use outlast_link::trace::OPPORTUNITY;
use outlast_link::{LinkConfig, OutageProcess, PipeConfig, Way};
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_rate_is_never_exceeded(
        config in link_of(any_clean_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let by_rate = !matches!(config.outages, OutageProcess::Deliveries { .. });
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
