//! Frames stay in order unless the link is told to reorder, and then within bounds.

use crate::fixture::{Driven, any_arrivals, any_pipe, link_of, millisecond_pipe, ms, plain, play};
use outlast_link::{PipeConfig, REORDER_DEPTH, Way};
use proptest::prelude::*;

proptest! {
    #[test]
    fn order_is_kept_without_reordering(
        config in link_of(any_pipe().prop_map(|pipe| PipeConfig { reorder: 0.0, ..pipe }).boxed()),
        arrivals in any_arrivals(),
    ) {
        let driven = play(&config, &arrivals);
        for way in Way::BOTH {
            prop_assert!(driven.out(way).is_sorted());
        }
    }

    /// However different their holding times are.
    #[test]
    fn frames_that_are_all_held_back_keep_their_order(
        config in link_of(any_pipe()
            .prop_map(|pipe| PipeConfig { reorder: 1.0, duplicate: 0.0, ..pipe })
            .boxed()),
        arrivals in any_arrivals(),
    ) {
        let driven = play(&config, &arrivals);
        for way in Way::BOTH {
            prop_assert!(driven.out(way).is_sorted());
        }
    }

    #[test]
    fn no_frame_is_overtaken_by_more_than_the_depth(
        config in link_of(any_pipe().prop_map(|pipe| PipeConfig { duplicate: 0.0, ..pipe }).boxed()),
        arrivals in any_arrivals(),
    ) {
        let driven = play(&config, &arrivals);
        for way in Way::BOTH {
            let out = driven.out(way);
            for (place, id) in out.iter().enumerate() {
                let overtakers = out[..place].iter().filter(|before| *before > id).count();
                prop_assert!(overtakers <= usize::from(REORDER_DEPTH), "{id} in {out:?}");
            }
        }
    }
}

/// A link that has held back its frame number `held` and no other, found by trying seeds.
fn link_that_held_only(held: usize) -> Driven {
    const FRAMES: usize = 10;
    let pipe = PipeConfig {
        reorder: 0.1,
        queue: FRAMES,
        ..millisecond_pipe()
    };
    for seed in 0..10_000 {
        let mut config = plain(pipe);
        config.seed = seed;
        let mut driven = Driven::started(config);
        for _ in 0..FRAMES {
            driven.send(ms(0), Way::ToMobile, 1_500);
        }
        driven.run_until(ms(1_000));
        let counters = driven.link.counters(Way::ToMobile);
        let order = driven.out(Way::ToMobile);
        let moved = (0..FRAMES).find(|&id| order[id] != id);
        if counters.reordered == 1 && moved == Some(held) {
            return driven;
        }
    }
    panic!("no seed below 10000 holds back frame {held} alone");
}

#[test]
fn a_held_frame_comes_out_behind_its_third_follower() {
    let driven = link_that_held_only(2);
    assert_eq!(driven.out(Way::ToMobile), [0, 1, 3, 4, 5, 2, 6, 7, 8, 9]);
    assert_eq!(driven.came_out(2), driven.came_out(5));
}

#[test]
fn a_held_frame_without_followers_comes_out_after_the_hold() {
    let mut config = plain(PipeConfig {
        reorder: 1.0,
        ..millisecond_pipe()
    });
    config.to_mobile.delay = ms(20);
    let mut driven = Driven::started(config);
    let id = driven.send(ms(0), Way::ToMobile, 1_500);
    driven.run_until(ms(1_000));
    assert_eq!(driven.came_out(id), ms(1 + 20 + 10));
}

#[test]
fn a_slow_pipe_holds_for_four_sending_times() {
    let mut config = plain(PipeConfig {
        reorder: 1.0,
        ..millisecond_pipe()
    });
    config.to_mobile.rate = crate::fixture::mbit(1);
    let mut driven = Driven::started(config);
    let id = driven.send(ms(0), Way::ToMobile, 1_500);
    driven.run_until(ms(1_000));
    assert_eq!(driven.came_out(id), ms(12 + 10 + 48));
}
