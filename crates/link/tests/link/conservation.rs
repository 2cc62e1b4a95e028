//! Every frame comes out or is dropped, exactly once.

use crate::fixture::{Record, any_arrivals, any_clean_pipe, any_pipe, link_of, play};
use outlast_link::{DropReason, LinkConfig, Way};
use proptest::prelude::*;

proptest! {
    #[test]
    fn each_frame_comes_out_or_is_dropped_once(
        config in link_of(any_clean_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let mut driven = play(&config, &arrivals);
        let waiting = driven.waiting();
        let mut seen = vec![0; arrivals.len()];
        for record in &driven.records {
            if let Record::Out { id, .. } | Record::Dropped { id, .. } = record {
                seen[*id] += 1;
            }
        }
        prop_assert!(seen.iter().all(|&times| times <= 1), "{seen:?}");
        let unseen = seen.iter().filter(|&&times| times == 0).count();
        prop_assert_eq!(unseen, waiting, "{:?}", seen);
    }

    #[test]
    fn counters_balance_whatever_happens(
        config in link_of(any_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let mut driven = play(&config, &arrivals);
        let waiting = driven.waiting() as u64;
        let mut missing = 0;
        for way in Way::BOTH {
            let counters = driven.link.counters(way);
            let accepted = arrivals.iter().filter(|arrival| arrival.way == way).count() as u64;
            prop_assert_eq!(counters.accepted, accepted);
            missing += counters.accepted + counters.duplicated;
            missing -= counters.delivered + counters.dropped_in_all();
            prop_assert_eq!(counters.delivered, driven.out(way).len() as u64);
            for reason in DropReason::ALL {
                let dropped = driven.records.iter().filter(|record| matches!(
                    record,
                    Record::Dropped { way: w, reason: r, .. } if *w == way && *r == reason
                ));
                prop_assert_eq!(counters.dropped(reason), dropped.count() as u64);
            }
        }
        prop_assert_eq!(missing, waiting);
    }

    #[test]
    fn nothing_is_dropped_without_a_cause(
        config in link_of(any_clean_pipe().boxed()),
        arrivals in any_arrivals(),
    ) {
        let roomy = LinkConfig { outages: Default::default(), ..config };
        let wide = |mut pipe: outlast_link::PipeConfig| { pipe.queue = arrivals.len(); pipe };
        let roomy = LinkConfig {
            to_mobile: wide(roomy.to_mobile),
            to_fixed: wide(roomy.to_fixed),
            ..roomy
        };
        let driven = play(&roomy, &arrivals);
        let out = driven.out(Way::ToMobile).len() + driven.out(Way::ToFixed).len();
        prop_assert_eq!(out, arrivals.len());
    }
}
