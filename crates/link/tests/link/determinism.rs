//! The same seed gives the same run, and no component's chance moves another's.

use crate::fixture::{
    Driven, LONG, Record, any_arrivals, any_clean_pipe, any_pipe, link_of, ms, play,
};
use outlast_link::{LinkConfig, OutageProcess, Way};
use proptest::prelude::*;

fn transitions(records: &[Record]) -> Vec<Record> {
    let transitions = records
        .iter()
        .filter(|record| matches!(record, Record::Up { .. } | Record::Down { .. }));
    transitions.copied().collect()
}

proptest! {
    #[test]
    fn same_seed_same_run(config in link_of(any_pipe().boxed()), arrivals in any_arrivals()) {
        let first = play(&config, &arrivals);
        prop_assert_eq!(first.records, play(&config, &arrivals).records);
    }

    #[test]
    fn damage_and_traffic_do_not_move_outages(
        config in link_of(any_clean_pipe().boxed()),
        arrivals in any_arrivals(),
        loss in 0.0..1.0_f64,
        duplicate in 0.0..1.0_f64,
    ) {
        let mut damaged = config.clone();
        damaged.to_mobile.loss = loss;
        damaged.to_fixed.duplicate = duplicate;
        let quiet = {
            let mut driven = Driven::started(config);
            driven.run_until(arrivals.last().map_or(LONG, |last| last.at + LONG));
            driven
        };
        prop_assert_eq!(
            transitions(&play(&damaged, &arrivals).records),
            transitions(&quiet.records)
        );
    }

    #[test]
    fn one_way_does_not_move_the_losses_of_the_other(
        config in link_of(any_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let downlink: Vec<_> =
            arrivals.iter().copied().filter(|arrival| arrival.way == Way::ToMobile).collect();
        let both = play(&config, &arrivals);
        let alone = play(&config, &downlink);
        let place = |id: usize| {
            arrivals[..id].iter().filter(|arrival| arrival.way == Way::ToMobile).count()
        };
        let in_both: Vec<_> = both.out(Way::ToMobile).into_iter().map(place).collect();
        prop_assert_eq!(in_both, alone.out(Way::ToMobile));
    }

    /// A driver that serves no timer between frames sees the same frames in the same order, and
    /// the same drops and transitions.
    #[test]
    fn lateness_changes_nothing_but_times(
        config in link_of(any_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let punctual = play(&config, &arrivals);
        let mut late = Driven::started(config);
        for arrival in &arrivals {
            late.send_late(arrival.at, arrival.way, arrival.len);
        }
        late.run_until(arrivals.last().map_or(LONG, |last| last.at + LONG));
        for way in Way::BOTH {
            prop_assert_eq!(punctual.out(way), late.out(way));
        }
        prop_assert_eq!(timeless(&punctual.records), timeless(&late.records));
    }
}

/// Drops and transitions by kind, without their times.
fn timeless(records: &[Record]) -> Vec<String> {
    let mut events: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Out { .. } => None,
            Record::Dropped {
                way, id, reason, ..
            } => Some(format!("{way} {id} {reason}")),
            Record::Up { .. } => Some("up".to_owned()),
            Record::Down { .. } => Some("down".to_owned()),
        })
        .collect();
    // Frames lost on the two ways at different moments may be told at one.
    events.sort();
    events
}

/// The numbers themselves are part of the contract: a recorded seed must stay good, on every
/// machine.
#[test]
fn the_first_outages_of_a_seed_stay_what_they_are() {
    let (up, down) = (ms(500), ms(4_500));
    let starts = |outages| {
        let config = LinkConfig {
            outages,
            seed: 1,
            ..LinkConfig::default()
        };
        let starts = config
            .schedule()
            .take(3)
            .map(|outage| outage.start.as_nanos());
        starts.collect::<Vec<_>>()
    };
    let uniform = starts(OutageProcess::Uniform { up, down });
    assert_eq!(uniform, [460_958_655, 4_901_780_627, 8_650_548_871]);
    let normal = starts(OutageProcess::Normal { up, down });
    assert_eq!(normal, [390_567_259, 5_727_796_999, 10_275_677_324]);
    let exponential = starts(OutageProcess::Exponential { up, down });
    assert_eq!(exponential, [274_019_179, 2_750_050_097, 4_572_877_237]);
}
