//! Entries of a thesis on TCP over Mobile IP.

use super::{DRAWING, Work, not_run, run};

const TIMEOUTS: &str = "thesis-timeouts";
const HANDOFF: &str = "thesis-handoff";
const HELP: &str = "thesis-help";
const CITED: &str = "cited from another work";

pub(super) static WORK: Work = Work {
    cite: "A thesis on TCP over Mobile IP, 2001",
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
            "Section 2.3.2",
            "99 % of all losses of segments in the Internet come from congestion",
            CITED,
        ),
        not_run("Figure 2.1", "Registration of Mobile IP", DRAWING),
        not_run("Figure 2.2", "A zero-window-size acknowledgement", DRAWING),
        not_run("Figure 2.3", "A time-sequence graph of tcptrace", DRAWING),
        not_run(
            "Figure 2.4",
            "An outstanding-data graph of tcptrace",
            DRAWING,
        ),
        not_run(
            "Figure 3.1",
            "Trace of a hand-off that ends in a retransmission timeout",
            "an example without numbers in the text",
        ),
        not_run(
            "Figure 3.2",
            "A heartbeat timer fires up to one tick early or late",
            DRAWING,
        ),
        not_run("Figure 3.3", "Network of the timeout experiments", DRAWING),
        not_run(
            "Table 3.1",
            "Hosts of the timeout experiments",
            "a list of machines",
        ),
        run(
            "Table 3.2",
            "First and second retransmission timeouts of Linux 2.2 by round-trip time",
            TIMEOUTS,
            "table-3-2",
        ),
        run(
            "Table 3.3",
            "First and second retransmission timeouts of AIX 4.3",
            TIMEOUTS,
            "table-3-3",
        ),
        run(
            "Table 3.4",
            "First and second retransmission timeouts of FreeBSD 2.2.7",
            TIMEOUTS,
            "table-3-4",
        ),
        run(
            "Table 3.5",
            "First and second retransmission timeouts of SunOS 5.6",
            TIMEOUTS,
            "table-3-5",
        ),
        not_run(
            "Figure 3.4",
            "Network of the congestion-control experiments",
            DRAWING,
        ),
        run(
            "Figure 3.5",
            "Outstanding data of table 3.6",
            TIMEOUTS,
            "table-3-6",
        ),
        run(
            "Table 3.6",
            "A whole window is lost at the maximum rate: 15 round trips of recovery, 120 segments",
            TIMEOUTS,
            "table-3-6",
        ),
        run(
            "Figure 3.6",
            "Outstanding data of table 3.7",
            TIMEOUTS,
            "table-3-7",
        ),
        run(
            "Table 3.7",
            "The second window of a connection is lost in slow start",
            TIMEOUTS,
            "table-3-7",
        ),
        not_run(
            "Section 3.3.1",
            "Slow start in place of congestion avoidance would send 158 segments in place of \
             120, 32 % more, in the first experiment, and 70 % more in the second",
            "no profile bypasses congestion avoidance",
        ),
        run(
            "Figure 3.7",
            "Round trips that congestion control adds, by the receive buffer",
            TIMEOUTS,
            "figure-3-7",
        ),
        not_run(
            "Section 3.3.2",
            "Slow start in place of congestion avoidance leaves 5 lost round trips at 64 KB and 7 at \
             256 KB, 75 % and 90 % fewer",
            "no profile bypasses congestion avoidance",
        ),
        not_run("Figure 4.1", "Best case of eager cell switching", DRAWING),
        not_run("Figure 4.2", "Worst case of eager cell switching", DRAWING),
        not_run("Figure 4.3", "Best case of lazy cell switching", DRAWING),
        not_run("Figure 4.4", "Worst case of lazy cell switching", DRAWING),
        run(
            "Table 4.1",
            "Hand-off times of eager and lazy cell switching (arithmetic)",
            HANDOFF,
            "table-4-1",
        ),
        not_run("Figure 4.5", "Network of the hand-off experiments", DRAWING),
        not_run(
            "Table 4.2",
            "Hosts of the hand-off experiments",
            "a list of machines",
        ),
        run(
            "Table 4.3",
            "Hand-off times in the experiments (arithmetic)",
            HANDOFF,
            "table-4-3",
        ),
        not_run("Figure 4.6", "How idle time is counted", DRAWING),
        run(
            "Table 4.4",
            "Idle time and lost round trips after hand-offs of a Linux 2.2 server",
            HANDOFF,
            "table-4-4",
        ),
        run(
            "Table 4.5",
            "Idle time and lost round trips after hand-offs of an AIX 4.3 server",
            HANDOFF,
            "table-4-5",
        ),
        run(
            "Table 4.6",
            "Lost round trips of Linux 2.2 with buffers of 16 to 128 KB",
            HANDOFF,
            "table-4-6",
        ),
        not_run("Figure 5.1", "Micro-mobility and macro-mobility", DRAWING),
        run(
            "Table 5.1",
            "Retransmission caching for a Linux sender saves 14 to 56 % of the lost round trips",
            HELP,
            "table-5-1",
        ),
        not_run(
            "Figure 5.2",
            "Where M-TCP and Freeze-TCP do not work",
            DRAWING,
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
        not_run("Figure 5.6", "Deployment at foreign agents", DRAWING),
        run(
            "Table 5.2",
            "Zero-window-size acknowledgements for an AIX sender save 19 to 75 % of the lost round trips",
            HELP,
            "table-5-2",
        ),
        not_run(
            "Section 5.4.3",
            "In many cases the scheme saves over 30 % of the disconnection time, or 8 lost round trips",
            "follows from table 5.2 and is not judged by itself",
        ),
        not_run(
            "Section 5.4.3",
            "AIX and SunOS obey a premature zero window, Linux ignores it",
            "only the AIX profile is run against zero-window-size acknowledgements",
        ),
    ],
};
