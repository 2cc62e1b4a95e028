//! Entries of Brown and Singh 1997.

use super::{DRAWING, HARDWARE, NOT_MEASURED, Work, not_run, run};

const SIM: &str = "m-tcp";

const COMPRESSION: &str = "compression between supervisor host and mobile host is not built";

pub(super) static WORK: Work = Work {
    cite: "Brown and Singh 1997",
    title: "M-TCP: TCP for Mobile Cellular Networks",
    figures: &[(None, 18)],
    tables: &[(None, 1)],
    entries: &[
        not_run(
            "Figure 1",
            "Serial timeouts at the sender",
            "an example without numbers in the text",
        ),
        run(
            "Table 1",
            "Comparison of solutions for mobile TCP",
            SIM,
            "table-1",
        ),
        not_run("Figure 2", "Proposed architecture", DRAWING),
        not_run("Figure 3", "Setting up a connection", DRAWING),
        not_run("Figure 4", "How SH-TCP shrinks the window", DRAWING),
        not_run("Figure 5", "How M-TCP freezes its timer", DRAWING),
        not_run("Figure 6", "Experimental set-up", DRAWING),
        run(
            "Figure 7",
            "Transfer times over 5 hops at 32 kbit/s with normally distributed disconnections",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Figure 8",
            "Transfer times over 5 hops with exponentially distributed disconnections",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Figure 9",
            "M-TCP against the optimum for 100 kB, 500 kB and 1 MB over 5 hops",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Figure 10",
            "Transfer times over 15 hops with normally distributed disconnections",
            SIM,
            "figures-10-and-11",
        ),
        run(
            "Figure 11",
            "Transfer times over 15 hops with exponentially distributed disconnections",
            SIM,
            "figures-10-and-11",
        ),
        not_run(
            "Section 6.1",
            "Losses of 5.1 % in bursts of 6 packets and 23.8 % in bursts of 32 over 15 hops of the Internet",
            "a measurement of the Internet of 1997",
        ),
        run(
            "Figure 12",
            "12 MB with cell latencies of 5 minutes and disconnections of 1 minute: M-TCP is faster, \
             less so over 15 hops",
            SIM,
            "figure-12",
        ),
        not_run(
            "Figure 13",
            "Receives per byte at the mobile host: 1.02 with M-TCP, 1.06 with TCP",
            NOT_MEASURED,
        ),
        not_run(
            "Section 6.3",
            "Compression of headers saves 2 to 7 %",
            COMPRESSION,
        ),
        not_run(
            "Figure 14",
            "Times of compression and decompression by packet size",
            HARDWARE,
        ),
        not_run(
            "Figure 15",
            "Transfer times with compression over 5 hops",
            COMPRESSION,
        ),
        not_run(
            "Figure 16",
            "Transfer times with compression over 15 hops",
            COMPRESSION,
        ),
        not_run(
            "Figure 17, left",
            "Processing at the supervisor host: 31 µs a packet forwarded, 91 to 112 µs with M-TCP",
            HARDWARE,
        ),
        not_run(
            "Figure 17, right",
            "1 MB by the sender's buffer: the cost of M-TCP vanishes at 16 kB",
            NOT_MEASURED,
        ),
        not_run(
            "Figure 18",
            "Transfer times without slow link or disconnections over 5 and 15 hops",
            NOT_MEASURED,
        ),
        run(
            "Section 6.5",
            "Over 5 hops M-TCP takes less than a third of TCP's time",
            SIM,
            "figures-7-to-9",
        ),
        not_run(
            "Section 6.5",
            "Compression costs about 3 ms for a packet of 1,400 bytes",
            HARDWARE,
        ),
    ],
};
