//! Entries of a thesis on TCP over Mobile IP.

use super::{CITED, DRAWING, RECKONED, Work, not_run, run};

const TIMEOUTS: &str = "thesis-timeouts";
const HANDOFF: &str = "thesis-handoff";
const HELP: &str = "thesis-help";
const MOBILE_IP: &str = "mobile-ip";
const EXAMPLE: &str = "a trace of one connection, without numbers in the text";
const GIVEN: &str = "what the profiles are built from, so that they cannot confirm it";

pub(super) static WORK: Work = Work {
    cite: "A thesis on TCP over Mobile IP",
    title: "Retransmission timeouts, congestion control and hand-offs of Mobile IP",
    figures: &[(Some(2), 4), (Some(3), 7), (Some(4), 6), (Some(5), 6)],
    tables: &[(Some(3), 7), (Some(4), 6), (Some(5), 2)],
    entries: &[
        not_run(
            "Section 1.2",
            "83 % of all datagrams in the Internet are TCP packets",
            CITED,
        ),
        not_run(
            "Section 2.3.1",
            "Timeouts of at least 1 s, consecutive ones doubled up to 64 s",
            CITED,
        ),
        not_run(
            "Section 2.3.2",
            "99 % of all losses of segments in the Internet come from congestion",
            CITED,
        ),
        not_run(
            "Sections 2.3.2, 3.3",
            "In congestion avoidance many senders widen their window by one segment every other round trip",
            "what the model of figure 3.7 and the profiles are built from, so that they cannot confirm it",
        ),
        not_run(
            "Section 2.2.1",
            "One advertisement a second, with a lifetime of three seconds",
            CITED,
        ),
        not_run(
            "Section 3.2",
            "A timeout may not be less than two heartbeats",
            CITED,
        ),
        not_run("Figure 2.1", "Registration of Mobile IP", DRAWING),
        not_run("Figure 2.2", "A zero-window-size acknowledgement", DRAWING),
        not_run("Figure 2.3", "A time-sequence graph of tcptrace", EXAMPLE),
        not_run(
            "Figure 2.4",
            "An outstanding-data graph of tcptrace",
            EXAMPLE,
        ),
        not_run(
            "Figure 3.1",
            "Trace of a hand-off that ends in a retransmission timeout",
            EXAMPLE,
        ),
        not_run(
            "Figure 3.2",
            "A heartbeat of 500 ms lets a timeout of 1,100 ms occur 250 ms late",
            RECKONED,
        ),
        not_run(
            "Section 3.2",
            "Round trips of up to 15 ms on the campus, 50 to 200 ms on the continent, up to 1,000 ms overseas",
            "a measurement of the Internet of its time",
        ),
        not_run(
            "Section 3.2",
            "The round trip between a mobile and a server is at least tens of milliseconds",
            "an assumption: the experiments begin at 60 ms",
        ),
        not_run(
            "Section 3.2.1",
            "The servers are at most two hops from the receiver, with a round trip of 2 ms to which a host adds the \
             rest",
            "what the author had: the experiment's path has the whole round trip as its delay",
        ),
        not_run(
            "Section 3.2.1",
            "100 connections, five for each round trip and implementation, with receive buffers of 64 KB",
            "what the experiment starts from; at full extent it has 100 for each round trip and implementation",
        ),
        not_run("Figure 3.3", "Network of the timeout experiments", DRAWING),
        not_run(
            "Table 3.1",
            "Hosts of the timeout experiments",
            "a list of machines",
        ),
        run(
            "Table 3.2",
            "Timeouts of Linux 2.2 by round trips of 60 to 1,000 ms: first 193 to 1,340 ms, second 400 to 2,680 ms",
            &[(TIMEOUTS, "table-3-2")],
        ),
        run(
            "Table 3.3",
            "Timeouts of AIX 4.3: first 1,334 to 2,422 ms, second 1,505 to 2,500 ms",
            &[(TIMEOUTS, "table-3-3")],
        ),
        run(
            "Table 3.4",
            "Timeouts of FreeBSD 2.2.7: first 1,126 to 2,343 ms, second 2,000 or 3,000 ms",
            &[(TIMEOUTS, "table-3-4")],
        ),
        run(
            "Table 3.5",
            "Timeouts of SunOS 5.6: first 389 to 1,286 ms, second 799 to 2,580 ms",
            &[(TIMEOUTS, "table-3-5")],
        ),
        not_run(
            "Section 3.2.2",
            "Linux times out after 200 ms at least and has a timer of 10 ms, AIX one of 500 ms",
            GIVEN,
        ),
        not_run(
            "Section 3.2.2",
            "SunOS appears to have a timer granularity of 200 ms",
            "the profile does not follow it: table 3.5 has no jitter of that size, so that the model has a tick \
             of 10 ms; only the floor of the deviation is 200 ms",
        ),
        run(
            "Section 3.2.3",
            "Up to three seconds pass until a second timeout",
            &[(TIMEOUTS, "table-3-4")],
        ),
        not_run(
            "Section 3.3",
            "AIX widens its window in congestion avoidance once in about four round trips, in some cases",
            "the profile widens it every second round trip; when the other is the case is not known",
        ),
        not_run(
            "Figure 3.4",
            "Network of the congestion-control experiments",
            DRAWING,
        ),
        not_run(
            "Section 3.3.1",
            "Linux 2.2 at both ends, a round trip of 1 s, a receive buffer of about 18 KB or 13 segments, and a \
             first slow-start threshold above it; a whole window is dropped, once the rate has peaked or the second \
             in slow start",
            "what the experiment starts from",
        ),
        run(
            "Figure 3.5",
            "Outstanding data of table 3.6",
            &[(TIMEOUTS, "table-3-6")],
        ),
        run(
            "Table 3.6",
            "A whole window is lost at the maximum rate: 3 round trips of slow start and 12 of congestion avoidance, \
             120 segments, 75 fewer than without; 5.76 round trips are added",
            &[(TIMEOUTS, "table-3-6")],
        ),
        run(
            "Section 3.3.1",
            "In the first experiment the timeout reduces the slow-start threshold to about 9 KB (judged as the \
             window at which slow start ends)",
            &[(TIMEOUTS, "table-3-6")],
        ),
        run(
            "Figure 3.6",
            "Outstanding data of table 3.7",
            &[(TIMEOUTS, "table-3-7")],
        ),
        run(
            "Table 3.7",
            "The second window of a connection is lost in slow start: a timeout 5.49 s later, 17 round trips of congestion \
             avoidance, 124 segments; 9.46 round trips are added",
            &[(TIMEOUTS, "table-3-7")],
        ),
        run(
            "Section 3.3.1",
            "In the second experiment the timeout reduces the slow-start threshold to 3 KB, so that slow start ends \
             after one round trip",
            &[(TIMEOUTS, "table-3-7")],
        ),
        run(
            "Section 3.3.1",
            "Slow start in place of congestion avoidance would send 158 segments in place of 120, 32 % more, in \
             the first experiment, and 210 in place of 124, 70 % more, in the second (arithmetic)",
            &[(TIMEOUTS, "table-3-6"), (TIMEOUTS, "table-3-7")],
        ),
        not_run(
            "Section 3.3.1",
            "The sender of table 3.7 waits unusually long, 6 s, where 3 s are recommended before the first \
             measurement",
            "table 3.7 has 5.49 s, which is judged; the 3 s are cited from another work",
        ),
        not_run(
            "Section 3.3.2",
            "The jumps of figure 3.7 after powers of 2 are an extra round trip of slow start",
            RECKONED,
        ),
        run(
            "Figure 3.7",
            "Round trips that congestion control adds, by the receive buffer: over 20 at 64 KB, over 70 at 256 KB (judged for a \
             simulated sender)",
            &[(TIMEOUTS, "figure-3-7")],
        ),
        run(
            "Section 3.3.2",
            "Slow start in place of congestion avoidance leaves 5 lost round trips at 64 KB and 7 at \
             256 KB, 75 % and 90 % fewer (arithmetic)",
            &[(TIMEOUTS, "figure-3-7")],
        ),
        run(
            "Section 3.3.2",
            "Without any congestion control one round trip is lost at most (arithmetic)",
            &[(TIMEOUTS, "figure-3-7")],
        ),
        not_run("Section 3.3.2", "Files of the web have 4 to 64 KB", CITED),
        not_run("Figure 4.1", "Best case of eager cell switching", DRAWING),
        not_run("Figure 4.2", "Worst case of eager cell switching", DRAWING),
        not_run("Figure 4.3", "Best case of lazy cell switching", DRAWING),
        not_run("Figure 4.4", "Worst case of lazy cell switching", DRAWING),
        run(
            "Table 4.1",
            "Hand-off times beside transit and processing: eager cell switching 0 to 1,000 ms and the link's switch, \
             lazy 2,000 to 3,000 ms (arithmetic; the trial `mobile-ip-detection` measures and judges them)",
            &[(HANDOFF, "table-4-1")],
        ),
        not_run("Figure 4.5", "Network of the hand-off experiments", DRAWING),
        not_run(
            "Table 4.2",
            "Hosts of the hand-off experiments",
            "a list of machines",
        ),
        not_run(
            "Section 4.3",
            "Round trips of 60, 200, 500 and 1,000 ms, 60 ms of it between home agent and foreign agents; receive \
             buffers of 18 KB; a switch of the link in 10 ms; ten hand-offs for each combination",
            "what the experiments start from; at full extent they have 100 hand-offs for each combination",
        ),
        run(
            "Table 4.3",
            "Hand-off times in the experiments: eager 50, 550 and 1,050 ms, lazy 2,050, 2,550 and 3,050 ms. \
             The mobile slept for the time that was wanted, and then solicited (arithmetic in `thesis-handoff`; in \
             `mobile-ip` agents advertise once a second, and the mobile detects its movement)",
            &[(HANDOFF, "table-4-3"), (MOBILE_IP, "table-4-3")],
        ),
        not_run("Figure 4.6", "How idle time is counted", DRAWING),
        run(
            "Section 4.4",
            "A hand-off of 50 ms very rarely loses packets at round trips above 60 ms",
            &[(HANDOFF, "section-4-4")],
        ),
        run(
            "Section 4.4",
            "After 50 ms at a round trip of 60 ms Linux is idle for 119 ms, 2 round trips, and loses 3 in all",
            &[(HANDOFF, "table-4-4"), (HANDOFF, "section-4-4")],
        ),
        run(
            "Section 4.4",
            "After 50 ms at a round trip of 60 ms AIX is idle for 1,449 ms, 24 round trips, and loses 25 in all",
            &[(HANDOFF, "table-4-5"), (HANDOFF, "section-4-4")],
        ),
        run(
            "Section 4.4",
            "In nearly all cases a hand-off costs at least one timeout",
            &[(HANDOFF, "section-4-4")],
        ),
        run(
            "Section 4.4",
            "The number of timeouts grows with the hand-off's length (judged row by row)",
            &[(HANDOFF, "table-4-4"), (HANDOFF, "table-4-5")],
        ),
        run(
            "Section 4.4",
            "Even with short hand-offs at short round trips the sender can be idle for several round trips (judged \
             row by row)",
            &[(HANDOFF, "table-4-4"), (HANDOFF, "table-4-5")],
        ),
        run(
            "Section 4.4",
            "AIX loses 6.55 round trips after a hand-off in which it loses 2.75 (a row of table 4.5)",
            &[(HANDOFF, "table-4-5")],
        ),
        run(
            "Table 4.4",
            "After hand-offs of a Linux 2.2 server 1 to 5 timeouts, over two on average; idle for 0.33 to 51.98 \
             round trips, 0.88 to 102.82 lost in all (arithmetic: the sum with the hand-off)",
            &[
                (HANDOFF, "table-4-4"),
                (HANDOFF, "section-4-4"),
                (MOBILE_IP, "table-4-4"),
            ],
        ),
        run(
            "Section 4.4",
            "Only in a few cases has Linux fewer than two timeouts: three of the 20 rows of table 4.4 (judged row by row)",
            &[(HANDOFF, "table-4-4")],
        ),
        run(
            "Table 4.5",
            "After hand-offs of an AIX 4.3 server 0.5 to 2.8 timeouts, less than two on average; idle for 0.71 to \
             41.83 round trips, 1.29 to 92.67 lost in all (arithmetic: the sum with the hand-off)",
            &[
                (HANDOFF, "table-4-5"),
                (HANDOFF, "section-4-4"),
                (MOBILE_IP, "table-4-5"),
            ],
        ),
        run(
            "Table 4.6",
            "Lost round trips of Linux 2.2 with buffers of 16 to 128 KB: 7.94 to 140.83, well over 20 on average \
             (the numbers are arithmetic; judged are their means, by whole transfers; in `mobile-ip` shown below table 4.4)",
            &[(HANDOFF, "table-4-6"), (MOBILE_IP, "table-4-4")],
        ),
        run(
            "Section 4.5",
            "In most cases congestion control is the largest part of the lost round trips",
            &[(HANDOFF, "table-4-6")],
        ),
        not_run(
            "Section 4.6",
            "Hand-offs of up to 2.6 s (eager) and 6 s (lazy), idle times after them of 3.4 s and 6.5 s",
            CITED,
        ),
        not_run(
            "Section 4.6",
            "Round trips of about 20 ms between home agent and mobile in the experiments of Fikouras and others",
            CITED,
        ),
        not_run(
            "Section 4.6",
            "In the experiments of Fikouras and others Linux takes 2 s to change its default route, and the software for \
             Mobile IP acts in steps of 1 s, for nearly 1 s of delay",
            CITED,
        ),
        not_run(
            "Section 5.1",
            "A cached window of segments may save only one round trip",
            RECKONED,
        ),
        not_run(
            "Section 5.1",
            "A mobility-support station may serve tens of thousands of mobiles and of connections, too many to keep all \
             of their segments",
            "a consideration, not a measurement",
        ),
        not_run("Figure 5.1", "Micro-mobility and macro-mobility", DRAWING),
        run(
            "Table 5.1",
            "Retransmission caching for a Linux sender saves 14 to 56 % of the lost round trips, nothing in two of 20 \
             cases",
            &[(HELP, "table-5-1"), (MOBILE_IP, "table-5-1")],
        ),
        not_run(
            "Section 5.3.1",
            "A cached segment that is forwarded needlessly brings one duplicate acknowledgement at worst",
            "a consideration, not a measurement",
        ),
        not_run(
            "Sections 5.3.2, 5.3.4",
            "At most one segment needs to be cached for each connection",
            "how the mechanism `retransmission-cache` is built, not a measurement",
        ),
        run(
            "Section 5.3.3",
            "With retransmission caching the lost round trips can be limited to the hand-off's length (judged as the \
             numbers of table 5.1)",
            &[(HELP, "table-5-1")],
        ),
        not_run(
            "Section 5.3.4",
            "A segment other than one from a retransmission timeout, if it is forwarded, lets at most one new segment be sent",
            "a consideration, not a measurement",
        ),
        not_run(
            "Figure 5.2",
            "Where M-TCP and Freeze-TCP do not work",
            DRAWING,
        ),
        run(
            "Section 5.4.1",
            "Situations in which M-TCP and Freeze-TCP do not work occur often (a belief: judged for M-TCP and AIX)",
            &[(HELP, "section-5-4-1")],
        ),
        not_run(
            "Figure 5.3",
            "Caching a segment for a zero-window-size acknowledgement",
            DRAWING,
        ),
        not_run(
            "Figure 5.4",
            "Algorithm that caches the oldest unacknowledged segment",
            DRAWING,
        ),
        not_run("Figure 5.5", "A limitation of the scheme", DRAWING),
        run(
            "Section 5.4.1",
            "The situation of figure 5.5 is very rare (a belief: judged is that all hand-offs pass \
             without a timeout, and the notes say where that situation makes it differ)",
            &[(HELP, "section-5-4-3")],
        ),
        not_run("Figure 5.6", "Deployment at foreign agents", DRAWING),
        run(
            "Table 5.2",
            "Zero-window-size acknowledgements for an AIX sender save 19 to 75 % of the lost round trips (here by the \
             home agent, in the thesis by a host between the foreign agents and the second delayer)",
            &[(HELP, "table-5-2"), (MOBILE_IP, "table-5-2")],
        ),
        run(
            "Section 5.4.3",
            "AIX is forced into persist mode at every hand-off",
            &[(HELP, "section-5-4-3")],
        ),
        run(
            "Section 5.4.3",
            "In many cases the scheme saves over 30 % of the disconnection time, or 8 lost round trips, and more \
             than one second",
            &[(HELP, "section-5-4-3")],
        ),
        not_run(
            "Section 5.4.3",
            "AIX and SunOS obey a premature zero window, Linux ignores it",
            GIVEN,
        ),
        run(
            "Section 5.4.3",
            "For Linux the scheme changes nothing for the worse, as premature acknowledgements are discarded",
            &[(HELP, "section-5-4-4")],
        ),
        run(
            "Section 5.4.4",
            "Zero-window-size acknowledgements have no negative effects in general",
            &[(HELP, "section-5-4-4")],
        ),
    ],
};
