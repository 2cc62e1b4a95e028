//! Drop-tail, counted in frames, without the one being sent.

use crate::fixture::{
    Arrival, Driven, Record, any_arrivals, any_clean_pipe, millisecond_pipe, ms, plain, play,
};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_link::{DropReason, LinkConfig, PipeConfig, Way};
use proptest::prelude::*;
use std::collections::VecDeque;

#[test]
fn the_frame_being_sent_does_not_count() {
    let mut driven = Driven::started(plain(millisecond_pipe()));
    let ids: Vec<_> = (0..8)
        .map(|_| driven.send(ms(0), Way::ToMobile, 1_500))
        .collect();
    let link = &driven.link;
    assert_eq!(
        link.queued(outlast_base::time::Instant::ZERO, Way::ToMobile),
        5
    );
    // One is being sent, five wait, two find no room.
    assert_eq!(driven.fate(ids[6]), Some((ms(0), DropReason::QueueFull)));
    assert_eq!(driven.fate(ids[7]), Some((ms(0), DropReason::QueueFull)));
    driven.run_until(ms(100));
    assert_eq!(driven.out(Way::ToMobile), ids[..6]);
}

#[test]
fn a_place_is_free_when_the_next_frame_begins_to_be_sent() {
    let mut driven = Driven::started(plain(millisecond_pipe()));
    for _ in 0..6 {
        driven.send(ms(0), Way::ToMobile, 1_500);
    }
    let early = driven.send(Duration::from_micros(999), Way::ToMobile, 1_500);
    let on_time = driven.send(ms(1), Way::ToMobile, 1_500);
    driven.run_until(ms(100));
    assert_eq!(
        driven.fate(early),
        Some((Duration::from_micros(999), DropReason::QueueFull))
    );
    assert_eq!(driven.came_out(on_time), ms(7 + 10));
}

#[test]
fn a_queue_of_no_frames_counts_as_one() {
    let pipe = PipeConfig {
        queue: 0,
        ..millisecond_pipe()
    };
    let mut driven = Driven::started(plain(pipe));
    let ids: Vec<_> = (0..3)
        .map(|_| driven.send(ms(0), Way::ToMobile, 1_500))
        .collect();
    driven.run_until(ms(100));
    assert_eq!(driven.out(Way::ToMobile), ids[..2]);
}

/// What became of each frame: when it came out, or `None` for no room in the queue.
type Fates = Vec<Option<Duration>>;

/// The plainest queue there is: looks at every nanosecond at which something happens.
fn reference(pipe: &PipeConfig, arrivals: &[Arrival]) -> Fates {
    let mut fates = vec![None; arrivals.len()];
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut sending: Option<(usize, Duration)> = None;
    let time_for = |id: usize| {
        pipe.rate.map_or(Duration::ZERO, |rate| {
            rate.time_for(ByteCount(arrivals[id].len))
        })
    };
    for (id, arrival) in arrivals.iter().enumerate() {
        while let Some((sent, until)) = sending.filter(|(_, until)| *until <= arrival.at) {
            fates[sent] = Some(until + pipe.delay);
            sending = queue.pop_front().map(|next| (next, until + time_for(next)));
        }
        if sending.is_none() {
            sending = Some((id, arrival.at + time_for(id)));
        } else if queue.len() < pipe.queue {
            queue.push_back(id);
        }
    }
    while let Some((sent, until)) = sending {
        fates[sent] = Some(until + pipe.delay);
        sending = queue.pop_front().map(|next| (next, until + time_for(next)));
    }
    fates
}

proptest! {
    #[test]
    fn the_pipe_is_the_reference_queue(pipe in any_clean_pipe(), arrivals in any_arrivals()) {
        let arrivals: Vec<_> =
            arrivals.into_iter().map(|arrival| Arrival { way: Way::ToFixed, ..arrival }).collect();
        let config = LinkConfig { to_fixed: pipe, ..LinkConfig::default() };
        let driven = play(&config, &arrivals);
        let mut fates: Fates = vec![None; arrivals.len()];
        for record in &driven.records {
            if let Record::Out { at, id, .. } = *record {
                fates[id] = Some(at);
            }
        }
        prop_assert_eq!(fates, reference(&pipe, &arrivals));
    }
}
