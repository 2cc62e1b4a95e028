//! What going down and coming up do to frames.

use crate::fixture::{Driven, Record, mbit, millisecond_pipe, ms, plain, with_outage};
use outlast_base::time::{Duration, Instant};
use outlast_link::{
    DropReason, InFlight, LinkConfig, OutageProcess, RateChange, Reason, Way, WhileDown,
};

#[test]
fn frames_that_come_while_down_are_dropped() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    let during = driven.send(ms(120), Way::ToFixed, 1_500);
    driven.run_until(ms(200));
    assert_eq!(driven.fate(during), Some((ms(120), DropReason::LinkDown)));
}

#[test]
fn the_queue_and_the_frame_being_sent_are_flushed() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    // Sent from 97.5 to 98.5, 99.5, 100.5 and 101.5 ms.
    let at = Duration::from_micros(97_500);
    let ids: Vec<_> = (0..4)
        .map(|_| driven.send(at, Way::ToMobile, 1_500))
        .collect();
    driven.run_until(ms(300));
    assert_eq!(driven.out(Way::ToMobile), ids[..2]);
    assert_eq!(driven.fate(ids[2]), Some((ms(100), DropReason::Flushed)));
    assert_eq!(driven.fate(ids[3]), Some((ms(100), DropReason::Flushed)));
}

#[test]
fn frames_on_their_way_arrive_by_default() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    let id = driven.send(ms(95), Way::ToMobile, 1_500);
    driven.run_until(ms(300));
    assert_eq!(driven.came_out(id), ms(106));
}

#[test]
fn frames_on_their_way_are_lost_if_asked() {
    let config = LinkConfig {
        in_flight: InFlight::Lost,
        ..with_outage(ms(100), ms(50))
    };
    let mut driven = Driven::started(config);
    let arrived = driven.send(ms(89), Way::ToMobile, 1_500);
    let lost = driven.send(ms(90), Way::ToMobile, 1_501);
    driven.run_until(ms(300));
    assert_eq!(driven.came_out(arrived), ms(100));
    assert_eq!(driven.fate(lost), Some((ms(100), DropReason::InFlight)));
}

#[test]
fn a_frame_whose_last_bit_leaves_as_the_link_goes_down_is_on_its_way() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    let id = driven.send(ms(99), Way::ToMobile, 1_500);
    driven.run_until(ms(300));
    assert_eq!(driven.came_out(id), ms(110));
}

#[test]
fn a_frame_that_comes_as_the_link_goes_down_is_dropped() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    let id = driven.send(ms(100), Way::ToMobile, 1_500);
    assert_eq!(driven.fate(id), Some((ms(100), DropReason::LinkDown)));
}

#[test]
fn a_frame_that_comes_as_the_link_comes_up_passes() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    let id = driven.send(ms(150), Way::ToMobile, 1_500);
    driven.run_until(ms(300));
    assert_eq!(driven.came_out(id), ms(161));
}

#[test]
fn a_flushed_queue_leaves_the_transmitter_free() {
    let mut driven = Driven::started(with_outage(ms(100), ms(2)));
    for _ in 0..6 {
        driven.send(ms(99), Way::ToMobile, 15_000);
    }
    // Without the outage the six would have kept it busy until 159 ms.
    let id = driven.send(ms(102), Way::ToMobile, 1_500);
    driven.run_until(ms(300));
    assert_eq!(driven.came_out(id), ms(113));
}

#[test]
fn frames_held_for_reordering_share_the_fate_of_those_on_their_way() {
    for (in_flight, arrives) in [(InFlight::Delivered, true), (InFlight::Lost, false)] {
        let mut config = LinkConfig {
            in_flight,
            ..with_outage(ms(100), ms(50))
        };
        config.to_mobile.reorder = 1.0;
        let mut driven = Driven::started(config);
        // Due at 96 ms, and held until 106 ms.
        let id = driven.send(ms(85), Way::ToMobile, 1_500);
        driven.run_until(ms(300));
        assert_eq!(driven.fate(id).is_none(), arrives, "{in_flight:?}");
        if arrives {
            assert_eq!(driven.came_out(id), ms(106));
        }
    }
}

#[test]
fn both_ways_are_down_at_once() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    for way in Way::BOTH {
        let id = driven.send(ms(120), way, 40);
        assert_eq!(driven.fate(id), Some((ms(120), DropReason::LinkDown)));
    }
}

#[test]
fn down_is_told_before_what_it_drops() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    driven.send(Duration::from_micros(99_500), Way::ToMobile, 1_500);
    driven.run_until(ms(100));
    assert!(matches!(
        driven.records[..],
        [
            Record::Down { .. },
            Record::Dropped {
                reason: DropReason::Flushed,
                ..
            }
        ]
    ));
    assert!(!driven.link.is_up());
}

#[test]
fn the_process_counts_from_the_start() {
    let mut driven = Driven::new(with_outage(ms(100), ms(50)));
    driven.run_until(ms(1_000));
    assert_eq!(driven.records, [], "nothing happens before the start");
    assert_eq!(driven.link.poll_timeout(), None);
    driven.link.start(Instant::from_millis(1_000));
    assert_eq!(
        driven.link.poll_timeout(),
        Some((Instant::from_millis(1_100), Reason::Down))
    );
    driven.run_until(ms(2_000));
    assert_eq!(
        driven.records,
        [Record::Down { at: ms(1_100) }, Record::Up { at: ms(1_150) }]
    );
}

#[test]
fn a_second_start_does_nothing() {
    let mut driven = Driven::started(with_outage(ms(100), ms(50)));
    driven.run_until(ms(90));
    driven.link.start(Instant::from_millis(90));
    driven.run_until(ms(1_000));
    assert_eq!(
        driven.records,
        [Record::Down { at: ms(100) }, Record::Up { at: ms(150) }]
    );
}

#[test]
fn an_outage_may_begin_at_once() {
    let mut driven = Driven::started(with_outage(ms(0), ms(50)));
    assert!(!driven.link.is_up());
    driven.run_until(ms(100));
    assert_eq!(
        driven.records,
        [Record::Down { at: ms(0) }, Record::Up { at: ms(50) }]
    );
}

#[test]
fn an_outage_of_no_length_does_not_happen() {
    let mut driven = Driven::started(with_outage(ms(100), ms(0)));
    driven.run_until(ms(1_000));
    assert_eq!(driven.records, []);
}

#[test]
fn mean_periods_of_zero_are_never_and_for_ever() {
    let never = OutageProcess::Exponential {
        up: ms(10),
        down: ms(0),
    };
    let mut driven = Driven::started(LinkConfig {
        outages: never,
        ..plain(millisecond_pipe())
    });
    driven.run_until(ms(10_000));
    assert_eq!(driven.records, []);
    let for_ever = OutageProcess::Periodic {
        first: ms(0),
        up: ms(0),
        down: ms(10),
    };
    let mut driven = Driven::started(LinkConfig {
        outages: for_ever,
        ..plain(millisecond_pipe())
    });
    driven.run_until(ms(10_000));
    assert_eq!(driven.records, [Record::Down { at: ms(0) }]);
}

fn queueing(start: Duration, length: Duration) -> LinkConfig {
    LinkConfig {
        while_down: WhileDown::Queued,
        ..with_outage(start, length)
    }
}

#[test]
fn a_queue_that_is_kept_is_sent_when_the_link_is_up() {
    let mut driven = Driven::started(queueing(ms(100), ms(50)));
    // Sent from 97.5 to 98.5 and 99.5 ms; the third is cut off and sent again whole.
    let at = Duration::from_micros(97_500);
    let ids: Vec<_> = (0..4)
        .map(|_| driven.send(at, Way::ToMobile, 1_500))
        .collect();
    let during = driven.send(ms(120), Way::ToMobile, 1_500);
    assert_eq!(
        driven.link.queued(Instant::from_millis(120), Way::ToMobile),
        3
    );
    driven.run_until(ms(300));
    assert_eq!(driven.came_out(ids[2]), ms(161));
    assert_eq!(driven.came_out(ids[3]), ms(162));
    assert_eq!(driven.came_out(during), ms(163));
}

#[test]
fn a_queue_that_is_kept_takes_no_more_than_its_length() {
    let mut driven = Driven::started(queueing(ms(100), ms(50)));
    let ids: Vec<_> = (0..7)
        .map(|_| driven.send(ms(120), Way::ToFixed, 1_500))
        .collect();
    driven.run_until(ms(300));
    assert_eq!(driven.out(Way::ToFixed), ids[..5]);
    for id in &ids[5..] {
        assert_eq!(driven.fate(*id), Some((ms(120), DropReason::QueueFull)));
    }
}

#[test]
fn a_rate_that_changes_while_down_is_that_of_what_was_kept() {
    let config = LinkConfig {
        rate_changes: vec![RateChange {
            at: ms(110),
            to_mobile: mbit(6),
            to_fixed: None,
        }],
        ..queueing(ms(100), ms(50))
    };
    let mut driven = Driven::started(config);
    let down = driven.send(ms(105), Way::ToMobile, 1_500);
    let up = driven.send(ms(105), Way::ToFixed, 1_500);
    driven.run_until(ms(300));
    assert_eq!(driven.came_out(down), ms(162));
    assert_eq!(driven.came_out(up), ms(161));
}
