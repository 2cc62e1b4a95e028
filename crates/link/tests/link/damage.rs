//! Loss, duplication and reordering happen as often as asked, and touch nothing else.

use crate::fixture::{Driven, Record, millisecond_pipe, ms, plain};
use outlast_link::{DropReason, LinkConfig, PipeConfig, Way};

const FRAMES: u64 = 20_000;

/// Twenty thousand frames, one each millisecond.
fn damaged(pipe: PipeConfig) -> Driven {
    let config = LinkConfig {
        seed: 7,
        ..plain(pipe)
    };
    let mut driven = Driven::started(config);
    for at in 0..FRAMES {
        driven.send(ms(at), Way::ToMobile, 1_500);
    }
    driven.run_until(ms(FRAMES + 1_000));
    driven
}

/// Four standard deviations of a count with `probability` of each frame; the seed is fixed, so
/// this either holds always or never.
#[track_caller]
fn assert_about(count: u64, probability: f64) {
    let (count, frames) = (count as f64, FRAMES as f64);
    let expected = frames * probability;
    let spread = 4.0 * (frames * probability * (1.0 - probability)).sqrt();
    assert!(
        (count - expected).abs() <= spread,
        "{count} of {frames}, expected {expected}"
    );
}

#[test]
fn loss_is_as_frequent_as_asked_and_is_told_on_arrival() {
    let driven = damaged(PipeConfig {
        loss: 0.1,
        ..millisecond_pipe()
    });
    let counters = driven.link.counters(Way::ToMobile);
    assert_about(counters.dropped(DropReason::Loss), 0.1);
    assert_eq!(
        counters.delivered + counters.dropped(DropReason::Loss),
        FRAMES
    );
    for record in &driven.records {
        if let Record::Dropped { at, id, .. } = record {
            assert_eq!(*at, ms(*id as u64 + 11));
        }
    }
}

#[test]
fn losses_are_independent() {
    let driven = damaged(PipeConfig {
        loss: 0.2,
        ..millisecond_pipe()
    });
    let lost: Vec<_> = (0..FRAMES as usize)
        .map(|id| driven.fate_is_loss(id))
        .collect();
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
    assert_about(pairs as u64, 0.2 * 0.2);
}

#[test]
fn a_copy_comes_right_behind_its_original() {
    let driven = damaged(PipeConfig {
        duplicate: 0.05,
        ..millisecond_pipe()
    });
    let counters = driven.link.counters(Way::ToMobile);
    assert_about(counters.duplicated, 0.05);
    let out = driven.out(Way::ToMobile);
    assert_eq!(out.len() as u64, FRAMES + counters.duplicated);
    assert!(out.is_sorted());
}

#[test]
fn copies_take_no_capacity() {
    let driven = damaged(PipeConfig {
        duplicate: 1.0,
        ..millisecond_pipe()
    });
    assert_eq!(driven.came_out(19_999), ms(19_999 + 11));
    assert_eq!(driven.link.counters(Way::ToMobile).dropped_in_all(), 0);
}

#[test]
fn reordering_is_as_frequent_as_asked() {
    let driven = damaged(PipeConfig {
        reorder: 0.02,
        ..millisecond_pipe()
    });
    let counters = driven.link.counters(Way::ToMobile);
    assert_about(counters.reordered, 0.02);
    assert_eq!(counters.delivered, FRAMES);
    let out = driven.out(Way::ToMobile);
    let inversions = out.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(inversions > 300, "{inversions}");
}

#[test]
fn everything_is_lost_if_asked() {
    let driven = damaged(PipeConfig {
        loss: 1.0,
        ..millisecond_pipe()
    });
    assert_eq!(
        driven
            .link
            .counters(Way::ToMobile)
            .dropped(DropReason::Loss),
        FRAMES
    );
}

#[test]
fn senseless_probabilities_count_as_the_nearer_end() {
    let driven = damaged(PipeConfig {
        loss: f64::NAN,
        duplicate: -1.0,
        reorder: f64::NEG_INFINITY,
        ..millisecond_pipe()
    });
    assert_eq!(driven.link.counters(Way::ToMobile).delivered, FRAMES);
    assert!(driven.out(Way::ToMobile).is_sorted());
}

impl Driven {
    fn fate_is_loss(&self, id: usize) -> bool {
        // Records are in the order of frames here, so there is exactly one for each.
        matches!(
            self.records[id],
            Record::Dropped {
                reason: DropReason::Loss,
                ..
            }
        )
    }
}
