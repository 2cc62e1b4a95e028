//! Table 4.4: hand-offs of a Linux 2.2 server.

use super::handoff::{BUFFER, Departs, HandoffTable, Row, WHOLE_SEGMENTS, row};
use super::timeouts::TICK_SLACK;
use outlast_base::time::Duration;
use outlast_scenario::Profile;

/// Reason for which a hand-off of 550 ms at a round trip of 1 s cannot come out.
const NO_TIMEOUT: (Duration, Duration, Departs) = (
    Duration::from_millis(550),
    Duration::from_secs(1),
    Departs::For(
        "no timeout gives the published number: the whole pause of 0.88 s is shorter than a round trip. What is lost in a hand-off of \
         550 ms is sent again 1.34 s later (table 3.2), which leaves at least 0.76 s of idle time.",
    ),
);

/// Hand-offs of which those in the thesis cost a timeout more often.
const FELL_BETWEEN: &[(Duration, Duration, Departs)] = &[(
    Duration::from_millis(550),
    Duration::from_secs(1),
    Departs::Unexplained(
        "not explained. A window leaves in bursts, and an outage of 580 ms falls between them in four of ten trials, as it does with \
         AIX, for which the thesis has 0.5 timeouts. Tried: a path of 2 Mbit/s (0.60 timeouts), jitter by datagrams of 5 and of 9 Mbit/s \
         before the delay (0.65, 0.60), and a buffer of 13 whole segments (0.58).",
    ),
)];

const ROWS: &[Row] = &[
    row(550, 60, 2.1, 2.18, 11.35),
    row(550, 200, 2.0, 2.46, 5.21),
    row(550, 500, 1.0, 0.53, 1.63),
    row(550, 1_000, 1.0, 0.33, 0.88),
    row(1_050, 60, 3.0, 5.68, 23.18),
    row(1_050, 200, 3.0, 6.80, 12.05),
    row(1_050, 500, 2.0, 2.71, 4.81),
    row(1_050, 1_000, 1.0, 0.61, 1.66),
    row(2_050, 60, 4.0, 16.90, 51.07),
    row(2_050, 200, 3.0, 2.35, 12.60),
    row(2_050, 500, 2.0, 0.67, 4.77),
    row(2_050, 1_000, 2.0, 2.28, 4.33),
    row(2_550, 60, 4.0, 7.43, 49.93),
    row(2_550, 200, 3.8, 10.94, 23.69),
    row(2_550, 500, 2.7, 4.08, 9.18),
    row(2_550, 1_000, 2.0, 1.77, 4.32),
    row(3_050, 60, 5.0, 51.98, 102.82),
    row(3_050, 200, 4.0, 11.36, 26.61),
    row(3_050, 500, 3.0, 5.12, 11.22),
    row(3_050, 1_000, 2.0, 1.52, 4.57),
];

/// Table 4.4.
pub static TABLE: HandoffTable = table(
    BUFFER,
    &[
        NO_TIMEOUT,
        (
            Duration::from_millis(550),
            Duration::from_millis(60),
            Departs::For(
                "the hand-off ends near our second retransmission: four of ten trials just miss it and wait 13 round trips for the third, where one \
                 of ten did in the thesis (2.1 timeouts). Ten hand-offs drawn from our hundred are as far off in 10 % of the draws.",
            ),
        ),
        (
            Duration::from_millis(2050),
            Duration::from_millis(200),
            Departs::For(
                "our path has no jitter. With datagrams of 5 Mbit/s before the delay the idle time is 0.4 round trips longer, which is within the \
                 accepted range.",
            ),
        ),
        (
            Duration::from_millis(2550),
            Duration::from_millis(200),
            Departs::For(
                "two of the thesis's ten hand-offs just caught the third retransmission (3.8 timeouts), and one of twenty does here. Ten hand-offs \
                 drawn from our hundred are as far off in 7 % of the draws; with jitter, by datagrams of 5 Mbit/s before the delay, 3.5 timeouts and 7.9 \
                 idle round trips come out.",
            ),
        ),
        (
            Duration::from_millis(2550),
            Duration::from_millis(500),
            Departs::For(
                "three of the thesis's ten hand-offs just caught the second retransmission (2.7 timeouts), and one of six does here. Ten hand-offs \
                 drawn from our hundred are as far off in 10 % of the draws.",
            ),
        ),
        (
            Duration::from_millis(3050),
            Duration::from_millis(1000),
            Departs::For(
                "our path has no jitter. With datagrams of 5 Mbit/s before the delay the idle time is 0.12 round trips longer, which is within the \
                 accepted range.",
            ),
        ),
    ],
    None,
);

/// Table 4.4 with 13 whole segments of buffer.
pub static OF_WHOLE_SEGMENTS: HandoffTable = table(
    WHOLE_SEGMENTS,
    &[NO_TIMEOUT],
    Some(Departs::For(
        "the mobile has a buffer of 13 whole segments here. With the 18 KB of the thesis (page `thesis-handoff`) Linux 2.2 estimates longer \
         timeouts, at a round trip of 200 ms by a fifth, and 14 of the 20 idle times are within their ranges, where 8 are with whole segments; \
         that page has the reasons for the others.",
    )),
);

const fn table(
    buffer: u32,
    departures: &'static [(Duration, Duration, Departs)],
    otherwise: Option<Departs>,
) -> HandoffTable {
    HandoffTable {
        name: "table-4-4",
        title: "Hand-offs of a Linux 2.2 server",
        place: "table 4.4",
        profile: Profile::Linux22,
        buffer,
        rows: ROWS,
        slack: TICK_SLACK,
        after_the_shortest: Duration::from_millis(119),
        departures,
        of_timeouts: FELL_BETWEEN,
        otherwise,
    }
}
