//! Recorded links.

use crate::fixture::{Driven, Record, deliveries, millisecond_pipe, ms, plain};
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_link::trace::{Trace, TraceError, TraceProblem};
use outlast_link::{DropReason, LinkConfig, Outage, OutageProcess, Way};

fn followed(text: &str, gap: Duration) -> LinkConfig {
    let outages = OutageProcess::Deliveries {
        trace: deliveries(text),
        gap,
    };
    LinkConfig {
        outages,
        ..plain(millisecond_pipe())
    }
}

#[test]
fn a_connectivity_log_becomes_outages() {
    let text = "# Tuesday's train\n0 up\n1.5 down\n2 down # still\n\n4.25 up\n10 down\n";
    let Ok(Trace::States(trace)) = Trace::parse(text) else {
        panic!("a connectivity log")
    };
    let expected = [
        Outage {
            start: ms(1_500),
            end: Some(ms(4_250)),
        },
        Outage {
            start: ms(10_000),
            end: None,
        },
    ];
    assert_eq!(trace.outages(), expected);
    let outages = OutageProcess::States(trace);
    let config = LinkConfig {
        outages,
        ..plain(millisecond_pipe())
    };
    assert_eq!(config.schedule().collect::<Vec<_>>(), expected);
    assert_eq!(config.connected_time(ms(12_000)), ms(7_250));
}

#[test]
fn an_opportunity_carries_1504_bytes_and_what_is_left_serves_the_next_frame() {
    let mut driven = Driven::started(followed("5\n6\n7\n8\n100\n", ms(1_000)));
    // 752 bytes each: two in the first opportunity, the third in the second.
    let ids: Vec<_> = (0..3)
        .map(|_| driven.send(ms(0), Way::ToMobile, 752))
        .collect();
    // 3000 bytes: what is left of the second, the third, and 744 bytes of the fourth.
    let large = driven.send(ms(0), Way::ToMobile, 3_000);
    driven.run_until(ms(50));
    let out: Vec<_> = ids.iter().map(|&id| driven.came_out(id)).collect();
    assert_eq!(out, [ms(15), ms(15), ms(16)]);
    assert_eq!(driven.came_out(large), ms(18));
}

#[test]
fn an_unused_opportunity_is_gone() {
    let mut driven = Driven::started(followed("5\n5\n5\n20\n", ms(1_000)));
    let late = driven.send(ms(5), Way::ToMobile, 1_504);
    driven.run_until(ms(100));
    assert_eq!(driven.came_out(late), ms(30));
}

#[test]
fn equal_times_are_several_opportunities() {
    let mut driven = Driven::started(followed("5\n5\n5\n20\n", ms(1_000)));
    let ids: Vec<_> = (0..4)
        .map(|_| driven.send(ms(0), Way::ToMobile, 1_504))
        .collect();
    driven.run_until(ms(100));
    let out: Vec<_> = ids.iter().map(|&id| driven.came_out(id)).collect();
    assert_eq!(out, [ms(15), ms(15), ms(15), ms(30)]);
}

#[test]
fn the_trace_begins_anew_at_its_last_time() {
    let trace = deliveries("3\n10\n");
    let times: Vec<_> = (0..6).map(|number| trace.time(number)).collect();
    assert_eq!(times, [ms(3), ms(10), ms(13), ms(20), ms(23), ms(30)]);
    for (until, count) in [
        (0, 0),
        (3, 1),
        (9, 1),
        (10, 2),
        (12, 2),
        (13, 3),
        (20, 4),
        (1_000, 200),
    ] {
        assert_eq!(trace.until(ms(until)), count, "until {until} ms");
    }
    let mut driven = Driven::started(followed("3\n10\n", ms(1_000)));
    let id = driven.send(ms(1_004), Way::ToMobile, 1_504);
    driven.run_until(ms(2_000));
    assert_eq!(driven.came_out(id), ms(1_010 + 10));
}

#[test]
fn a_trace_that_begins_at_zero_has_two_opportunities_where_it_wraps() {
    let trace = deliveries("0\n10\n");
    assert_eq!(
        (0..4).map(|number| trace.time(number)).collect::<Vec<_>>(),
        [ms(0), ms(10), ms(10), ms(20)]
    );
}

#[test]
fn the_mean_rate_is_that_of_a_period() {
    assert_eq!(
        deliveries("1\n2\n3\n4\n").mean_rate(),
        BitRate::from_bits_per_second(1_504 * 8 * 1_000).expect("not zero")
    );
}

#[test]
fn long_gaps_are_outages() {
    let text = "500\n501\n1501\n3000\n";
    let expected =
        [(502, 1_501), (1_502, 3_000), (3_502, 4_501), (4_502, 6_000)].map(|(start, end)| Outage {
            start: ms(start),
            end: Some(ms(end)),
        });
    let config = followed(text, ms(999));
    assert_eq!(config.schedule().take(4).collect::<Vec<_>>(), expected);

    // 1000 ms are no longer than the threshold of a second, 1499 ms are.
    let config = followed(text, ms(1_000));
    assert_eq!(config.schedule().next(), Some(expected[1]));

    // The wait before the first opportunity counts from the start, and then from the wrap.
    let config = followed(text, ms(499));
    let first = Outage {
        start: ms(0),
        end: Some(ms(500)),
    };
    let wrapped = Outage {
        start: ms(3_001),
        end: Some(ms(3_500)),
    };
    let outages: Vec<_> = config.schedule().take(4).collect();
    assert_eq!((outages[0], outages[3]), (first, wrapped));

    assert_eq!(followed(text, ms(5_000)).schedule().next(), None);
}

#[test]
fn frames_do_not_wait_out_a_gap() {
    let mut driven = Driven::started(followed("5\n2000\n2001\n", ms(1_000)));
    let early = driven.send(ms(0), Way::ToMobile, 1_504);
    let waiting = driven.send(ms(0), Way::ToMobile, 1_504);
    let during = driven.send(ms(700), Way::ToMobile, 1_504);
    let after = driven.send(ms(2_000), Way::ToMobile, 1_504);
    driven.run_until(ms(2_100));
    assert_eq!(driven.came_out(early), ms(15));
    assert_eq!(driven.fate(waiting), Some((ms(6), DropReason::Flushed)));
    assert_eq!(driven.fate(during), Some((ms(700), DropReason::LinkDown)));
    assert_eq!(driven.came_out(after), ms(2_011));
    assert!(driven.records.contains(&Record::Down { at: ms(6) }));
    assert!(driven.records.contains(&Record::Up { at: ms(2_000) }));
}

#[test]
fn ways_have_opportunities_of_their_own() {
    let mut driven = Driven::started(followed("5\n9\n", ms(1_000)));
    let down = driven.send(ms(0), Way::ToMobile, 1_504);
    let up = driven.send(ms(0), Way::ToFixed, 1_504);
    driven.run_until(ms(100));
    assert_eq!(
        (driven.came_out(down), driven.came_out(up)),
        (ms(15), ms(15))
    );
}

#[track_caller]
fn assert_faulty(text: &str, line: usize, fault: &str, problem: TraceProblem) {
    let start = text.rfind(fault).expect("the fault is in the text");
    let span = start..start + fault.len();
    assert_eq!(
        Trace::parse(text),
        Err(TraceError {
            line,
            span,
            problem
        })
    );
}

#[test]
fn faulty_traces_say_where_and_why() {
    let owned = str::to_owned;
    assert_faulty("", 1, "", TraceProblem::Empty);
    assert_eq!(
        Trace::parse("# nothing\n\n").map_err(|error| error.problem),
        Err(TraceProblem::Empty)
    );
    assert_faulty(
        "0 up\n1 dwon\n",
        2,
        "1 dwon",
        TraceProblem::NotAState(owned("1 dwon")),
    );
    assert_faulty(
        "0 up\nx down\n",
        2,
        "x down",
        TraceProblem::NotAState(owned("x down")),
    );
    assert_faulty("0 up\n17\n", 2, "17", TraceProblem::NotAState(owned("17")));
    assert_faulty(
        "0 up\n3 down ok",
        2,
        "3 down ok",
        TraceProblem::NotAState(owned("3 down ok")),
    );
    assert_faulty(
        "0 up\n-1 down\n",
        2,
        "-1 down",
        TraceProblem::OutOfRange(owned("-1")),
    );
    assert_faulty(
        "0 up\nNaN down\n",
        2,
        "NaN down",
        TraceProblem::OutOfRange(owned("NaN")),
    );
    assert_faulty(
        "2 up\n  2 down\n",
        2,
        "2 down",
        TraceProblem::NotLater(owned("2 down")),
    );
    assert_faulty(
        "1\n\n 1.5\n",
        3,
        "1.5",
        TraceProblem::NotAnOpportunity(owned("1.5")),
    );
    assert_faulty(
        "1\n2 up\n",
        2,
        "2 up",
        TraceProblem::NotAnOpportunity(owned("2 up")),
    );
    assert_faulty("9\n8\n", 2, "8", TraceProblem::Earlier(owned("8")));
    assert_faulty(
        "4294967296",
        1,
        "4294967296",
        TraceProblem::OutOfRange(owned("4294967296")),
    );
    assert_faulty("0\n0", 2, "0", TraceProblem::NoDuration);
}
