//! Entries of Brown and Singh 1997.

use super::{CITED, DRAWING, HARDWARE, Work, not_run, run};

const SIM: &str = "m-tcp";

pub(super) static WORK: Work = Work {
    cite: "Brown and Singh 1997",
    title: "M-TCP: TCP for Mobile Cellular Networks",
    figures: &[(None, 18)],
    tables: &[(None, 1)],
    entries: &[
        not_run(
            "Section 1.1",
            "Bit errors of no more than 10⁻⁵, one or two orders fewer with error correction",
            CITED,
        ),
        not_run(
            "Section 1.1",
            "A disconnection of the Ricochet network lasts up to 1 minute",
            CITED,
        ),
        not_run(
            "Figure 1",
            "Serial timeouts at the sender: doubled up to 64 s they leave it silent for minutes, and for up to \
             1 minute after the mobile is back",
            "shown for single disconnections of up to 60 s in `m-tcp`, senders-of-today, and not judged",
        ),
        not_run(
            "Section 2.2",
            "A connection that is split between two TCPs is silent for 5 minutes and more with cells of 5 s and \
             disconnections of 0.5 to 4.5 s",
            "split connections are not built",
        ),
        not_run(
            "Section 2.2",
            "Snoop repeats after 200 ms, and recovers bursts of 2 to 6 packets",
            CITED,
        ),
        run(
            "Table 1",
            "M-TCP keeps end-to-end semantics and handles bit errors, long and frequent disconnections; fast \
             retransmission has the first alone, Snoop the first two, split connections the second (measured \
             for M-TCP and Outlast's mechanisms, not judged)",
            SIM,
            "table-1",
        ),
        not_run(
            "Section 3",
            "Of n cells under one supervisor host O(√n) hand-offs matter in a unit of time, in place of O(n)",
            "a consideration, not a measurement",
        ),
        not_run("Figure 2", "Proposed architecture", DRAWING),
        not_run("Figure 3", "Setting up a connection", DRAWING),
        not_run(
            "Section 4.3",
            "A hand-off between supervisor hosts moves no more than 500 bytes",
            "no experiment: supervisor hosts of Outlast say a connection in at most 112 bytes, which a test of \
             `crates/agents` holds",
        ),
        not_run(
            "Section 4.3",
            "A hand-off of I-TCP takes up to 1.5 s",
            CITED,
        ),
        not_run("Figure 4", "How SH-TCP shrinks the window", DRAWING),
        not_run("Figure 5", "How M-TCP freezes its timer", DRAWING),
        not_run(
            "Section 5.2",
            "A supervisor host copies each segment once more than a router",
            "a property of the authors' kernel",
        ),
        not_run("Figure 6", "Experimental set-up", DRAWING),
        not_run(
            "Section 6",
            "500 kB over 32 kbit/s take 62.5 s and meet about 12 disconnections",
            "arithmetic, and that of 64 kbit/s: at 32 kbit/s, which the experiment has, they take 125 s",
        ),
        run(
            "Figure 7",
            "500 kB and 1 MB over 5 hops at 32 kbit/s with normally distributed disconnections: M-TCP is much \
             faster than TCP and close to the optimum",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Figure 8",
            "The same with exponentially distributed disconnections: M-TCP varies slightly more",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Section 6.1",
            "Over 5 hops M-TCP's times hardly vary, TCP's do widely, and some of TCP's transfers fail (not judged)",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Figure 9",
            "M-TCP is very close to the optimum for 100 kB, 500 kB and 1 MB over 5 hops; the difference grows \
             with the size",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Figure 10",
            "500 kB and 1 MB over 15 hops with normally distributed disconnections: M-TCP is faster in most cases",
            SIM,
            "figures-10-and-11",
        ),
        run(
            "Figure 11",
            "The same with exponentially distributed disconnections",
            SIM,
            "figures-10-and-11",
        ),
        not_run(
            "Section 6.1",
            "Losses of 5.1 % in bursts of 6 packets and 23.8 % in bursts of 32 over 15 hops of the Internet",
            "a measurement of the Internet of 1997; the experiment takes the 5.1 % as given",
        ),
        run(
            "Figure 12",
            "12 MB with cell latencies of 5 minutes and disconnections of 1 minute: M-TCP is faster, \
             less so over 15 hops",
            SIM,
            "figure-12",
        ),
        run(
            "Figure 13",
            "Receives per byte at the mobile host: 1.02 with M-TCP, 1.06 with TCP",
            SIM,
            "figure-13",
        ),
        not_run(
            "Section 6.3",
            "Compression of headers saves 2 to 7 %: 3 bytes in place of 40",
            "arithmetic: the authors built none",
        ),
        run(
            "Figure 14",
            "Times of compression and decompression by packet size, 100 to 1,400 bytes (this machine's, not judged)",
            SIM,
            "figure-14",
        ),
        run(
            "Section 6.3",
            "Between gzip's levels 1 and 9 the ratio changes by a few percent, the time by up to 500 µs (which is of \
             the authors' machine, and not judged)",
            SIM,
            "figure-14",
        ),
        run(
            "Figure 15",
            "1 MB with compression over 5 hops: much faster, text more so than binaries",
            SIM,
            "figure-15",
        ),
        run(
            "Figure 16",
            "1 MB with compression over 15 hops, in packets of 512 bytes: faster by a smaller margin",
            SIM,
            "figure-16",
        ),
        run(
            "Figure 17, left",
            "Processing at the supervisor host: 31 µs a packet forwarded, 91 to 112 µs with M-TCP, 60 to 81 µs of \
             it in transport (judged by their ratio)",
            SIM,
            "figure-17-left",
        ),
        not_run(
            "Section 6.4",
            "A Pentium of 100 MHz could forward 361 Mbit/s, and handle 100 Mbit/s with M-TCP",
            HARDWARE,
        ),
        run(
            "Figure 17, right",
            "1 MB by the sender's buffer of 512 bytes to 16 kB: the cost of M-TCP vanishes at 16 kB",
            SIM,
            "figure-17-right",
        ),
        run(
            "Figure 18, 5 hops",
            "Without slow link or disconnections M-TCP tends to be slightly slower than TCP",
            SIM,
            "figure-18",
        ),
        run(
            "Figure 18, 15 hops",
            "Without slow link or disconnections M-TCP is faster for all three sizes",
            SIM,
            "figure-18",
        ),
        run(
            "Section 6.5",
            "Over 5 hops M-TCP takes less than a third of TCP's time",
            SIM,
            "figures-7-to-9",
        ),
        run(
            "Section 6.5",
            "Compression costs about 3 ms for a packet of 1,400 bytes",
            SIM,
            "figure-14",
        ),
    ],
};
