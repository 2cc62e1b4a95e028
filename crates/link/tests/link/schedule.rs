//! The schedule that a configuration foretells is what a link does, and has the law asked for.

use crate::fixture::{Driven, Record, any_outages, any_pipe, link_of, ms};
use outlast_base::time::Duration;
use outlast_link::{LinkConfig, Outage, OutageProcess};
use proptest::prelude::*;

fn of(outages: OutageProcess, seed: u64) -> LinkConfig {
    LinkConfig {
        outages,
        seed,
        ..LinkConfig::default()
    }
}

proptest! {
    #[test]
    fn a_running_link_has_the_foretold_outages(config in link_of(any_pipe().boxed())) {
        let until = Duration::from_secs(20);
        let mut driven = Driven::started(config.clone());
        driven.run_until(until);
        let mut lived: Vec<Outage> = Vec::new();
        for record in driven.records {
            match record {
                Record::Down { at } => lived.push(Outage { start: at, end: None }),
                Record::Up { at } => lived.last_mut().expect("down comes first").end = Some(at),
                _ => {}
            }
        }
        let foretold: Vec<_> = config
            .schedule()
            .take_while(|outage| outage.start <= until)
            .map(|outage| Outage { end: outage.end.filter(|&end| end <= until), ..outage })
            .collect();
        prop_assert_eq!(lived, foretold);
    }

    #[test]
    fn outages_are_apart_and_in_order(process in any_outages(), seed: u64) {
        let config = of(process, seed);
        let mut before = None;
        for outage in config.schedule().take(500) {
            prop_assert!(before.is_none_or(|before| outage.start >= before));
            prop_assert!(outage.end.is_none_or(|end| end > outage.start));
            before = outage.end;
        }
    }

    #[test]
    fn connected_and_disconnected_time_add_up(
        process in any_outages(),
        seed: u64,
        until in 0..20_000_u64,
    ) {
        let (config, until) = (of(process, seed), ms(until));
        let down: Duration = config
            .outages_until(until)
            .iter()
            .map(|outage| outage.end.map_or(until, |end| end.min(until)) - outage.start)
            .sum();
        prop_assert_eq!(config.connected_time(until) + down, until);
    }
}

/// Connected and disconnected times of the first outages of seed 3, in seconds.
fn periods(process: OutageProcess, count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut end = Duration::ZERO;
    let mut periods = (Vec::new(), Vec::new());
    for outage in of(process, 3).schedule().take(count) {
        periods.0.push((outage.start - end).as_secs_f64());
        end = outage.end.expect("these processes end their outages");
        periods.1.push((end - outage.start).as_secs_f64());
    }
    periods
}

fn mean_and_deviation(sample: &[f64]) -> (f64, f64) {
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    let variance = sample
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    (mean, (variance / sample.len() as f64).sqrt())
}

/// Checks mean, standard deviation and bounds of both kinds of period, all relative to the mean.
#[track_caller]
fn assert_law(make: fn(Duration, Duration) -> OutageProcess, deviation: f64, low: f64, high: f64) {
    let (up, down) = periods(make(ms(500), ms(4_500)), 20_000);
    for (sample, mean) in [(up, 0.5), (down, 4.5)] {
        let (sample_mean, sample_deviation) = mean_and_deviation(&sample);
        assert!(
            (sample_mean / mean - 1.0).abs() < 0.03,
            "mean {sample_mean} of {mean}"
        );
        assert!(
            (sample_deviation / mean - deviation).abs() < 0.03,
            "{sample_deviation}"
        );
        assert!(
            sample
                .iter()
                .all(|value| (low..=high).contains(&(value / mean)))
        );
    }
}

#[test]
fn uniform_periods_lie_between_half_and_one_and_a_half_of_their_mean() {
    assert_law(
        |up, down| OutageProcess::Uniform { up, down },
        1.0 / 12_f64.sqrt(),
        0.5,
        1.5,
    );
}

#[test]
fn normal_periods_deviate_by_a_quarter() {
    assert_law(
        |up, down| OutageProcess::Normal { up, down },
        0.25,
        0.25,
        1.75,
    );
}

#[test]
fn exponential_periods_deviate_by_their_mean() {
    assert_law(
        |up, down| OutageProcess::Exponential { up, down },
        1.0,
        0.0,
        20.0,
    );
}

#[test]
fn periodic_periods_are_exact() {
    let outages = |first, up| {
        let down = ms(4_500);
        let process = OutageProcess::Periodic { first, up, down };
        of(process, 9).outages_until(ms(10_000))
    };
    let expected = |start, end| Outage {
        start: ms(start),
        end: Some(ms(end)),
    };
    let from_the_start = [expected(500, 5_000), expected(5_500, 10_000)];
    assert_eq!(outages(ms(500), ms(500)), from_the_start);
    let later = [expected(2_000, 6_500), expected(7_000, 11_500)];
    assert_eq!(outages(ms(2_000), ms(500)), later);
    let at_once = [expected(0, 4_500), expected(5_000, 9_500)];
    assert_eq!(outages(ms(0), ms(500))[..2], at_once);
    let stays_down = Outage {
        start: ms(2_000),
        end: None,
    };
    assert_eq!(outages(ms(2_000), ms(0)), [stays_down]);
}

#[test]
fn seeds_differ() {
    let process = OutageProcess::Uniform {
        up: ms(500),
        down: ms(4_500),
    };
    let mut starts: Vec<_> = (0..100)
        .map(|seed| {
            of(process.clone(), seed)
                .schedule()
                .next()
                .expect("endless")
                .start
        })
        .collect();
    starts.sort();
    starts.dedup();
    assert_eq!(starts.len(), 100);
}
