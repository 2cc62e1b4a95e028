//! Entries of Brown and Singh 1997.

use super::{CITED, DRAWING, RECKONED, Work, not_run, run};

const SIM: &str = "m-tcp";

pub(super) static WORK: Work = Work {
    cite: "Brown and Singh 1997",
    title: "M-TCP: TCP for Mobile Cellular Networks",
    figures: &[(None, 18)],
    tables: &[(None, 1)],
    entries: &[
        not_run(
            "Section 1",
            "Cells measure tens of meters in buildings and up to a mile outside",
            "a property of networks of its time",
        ),
        not_run(
            "Section 1.1",
            "Bit errors of no more than 10⁻⁵, one or two orders fewer with error correction",
            CITED,
        ),
        not_run(
            "Section 1.1",
            "Disconnections last several seconds, in the Ricochet network up to 1 minute",
            CITED,
        ),
        run(
            "Figure 1, section 1.1",
            "Serial timeouts at the sender: doubled up to 64 s they leave it silent for minutes, and for up to 1 \
             minute after the mobile is back (judged for single disconnections of 1 to 64 s)",
            &[(SIM, "senders-of-today")],
        ),
        run(
            "Section 2.2",
            "A connection that is split between two TCPs is silent for 5 minutes and more with cells of 5 s and \
             disconnections of 0.5 to 4.5 s (judged for the half from the base station to the mobile)",
            &[(SIM, "section-2-2")],
        ),
        not_run(
            "Section 2.2",
            "The timers of TCP have a granularity of no less than 500 ms",
            "what the profile of NetBSD is built from",
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
            &[(SIM, "table-1")],
        ),
        not_run(
            "Section 3",
            "Of n cells under one supervisor host O(√n) hand-offs matter in a unit of time, in place of O(n)",
            "a consideration, not a measurement",
        ),
        not_run("Figure 2", "Proposed architecture", DRAWING),
        not_run("Figure 3", "Setting up a connection", DRAWING),
        not_run(
            "Section 4.1",
            "After 12 retransmissions of a segment a sender gives up",
            "what the profile is built from, so that it cannot confirm it",
        ),
        not_run(
            "Section 4.2",
            "Persist packets go to the mobile after 5 s, then at intervals that double up to 60 s",
            "built as published (`crates/gateway`, the wireless half of `m-tcp`), so that it could not confirm it",
        ),
        run(
            "Section 4.3",
            "A hand-off between supervisor hosts moves no more than 500 bytes (judged for the message of Outlast's agents)",
            &[(SIM, "section-4-3")],
        ),
        not_run(
            "Section 4.3",
            "A hand-off of I-TCP takes up to 1.5 s",
            CITED,
        ),
        run(
            "Section 4.3",
            "Disconnections degrade no connection, however long they are, as those of 1 minute in the Ricochet network \
             (judged by being faster than TCP alone)",
            &[(SIM, "figure-12")],
        ),
        not_run("Figure 4", "How SH-TCP shrinks the window", DRAWING),
        not_run("Figure 5", "How M-TCP freezes its timer", DRAWING),
        not_run(
            "Section 5.2",
            "A supervisor host copies each segment once more than a router",
            "a property of the authors' kernel",
        ),
        not_run(
            "Section 5.3.2",
            "The sender's timeout is the sum of the supervisor host's timeouts towards the sender and the mobile",
            "an assumption, by which `m-tcp` sets its timer, so that it could not confirm it",
        ),
        not_run(
            "Section 5.3.2",
            "The wintimer is the supervisor host's timeout towards the mobile, from the arrival of each new segment \
             on",
            "how `m-tcp` sets it, with 200 ms more for a delayed acknowledgement, so that it could not confirm it",
        ),
        not_run("Figure 6", "Experimental set-up", DRAWING),
        not_run(
            "Section 6",
            "The wireless link has 32 kbit/s towards the mobile and 8 kbit/s back",
            "what the experiment starts from",
        ),
        not_run(
            "Section 6",
            "Disconnections of 0.5 to 4.5 s are 10 % to almost 50 % of a cell latency of 5 s",
            "arithmetic: they are 10 % to 90 % of the cell latency, and 9 % to 47 % of both together; the \
             experiment has lengths of 0.5 to 4.5 s",
        ),
        not_run(
            "Section 6",
            "500 kB over 32 kbit/s take 62.5 s and meet about 12 disconnections",
            "arithmetic, and that of 64 kbit/s: at 32 kbit/s, which the experiment has, they take 125 s",
        ),
        not_run(
            "Section 6, footnote 4",
            "A car at 60 km/h crosses a cell of 100 m in 6 s",
            RECKONED,
        ),
        not_run(
            "Section 6.1",
            "Each test is repeated 10 times, and has intervals of 95 %",
            "what the experiment starts from, at full extent",
        ),
        run(
            "Figure 7",
            "500 kB and 1 MB over 5 hops at 32 kbit/s with normally distributed disconnections: M-TCP is much \
             faster than TCP and close to the optimum",
            &[
                (SIM, "figures-7-to-9"),
                (SIM, "figures-7-to-12-by-detection"),
            ],
        ),
        run(
            "Figure 8",
            "The same with exponentially distributed disconnections: M-TCP varies slightly more (judged: that it varies more, \
             not by how much)",
            &[
                (SIM, "figures-7-to-9"),
                (SIM, "section-6-1"),
                (SIM, "figures-7-to-12-by-detection"),
            ],
        ),
        run(
            "Section 6.1",
            "Over 5 hops M-TCP's times hardly vary, TCP's do widely (judged: that TCP's vary more), and some of TCP's \
             transfers fail",
            &[(SIM, "figures-7-to-9"), (SIM, "section-6-1")],
        ),
        run(
            "Figure 9",
            "M-TCP is very close to the optimum for 100 kB, 500 kB and 1 MB over 5 hops; the difference grows \
             with the size",
            &[(SIM, "figures-7-to-9"), (SIM, "section-6-1")],
        ),
        run(
            "Figure 10",
            "500 kB and 1 MB over 15 hops with normally distributed disconnections: M-TCP is faster in most cases",
            &[
                (SIM, "figures-10-and-11"),
                (SIM, "figures-7-to-12-by-detection"),
            ],
        ),
        run(
            "Figure 11",
            "The same with exponentially distributed disconnections",
            &[
                (SIM, "figures-10-and-11"),
                (SIM, "figures-7-to-12-by-detection"),
            ],
        ),
        run(
            "Section 6.1",
            "Over 15 hops both vary a great deal more than over 5, M-TCP much less than TCP in most cases (judged: that they \
             vary more, and less, not by how much)",
            &[(SIM, "section-6-1")],
        ),
        not_run(
            "Section 6.1",
            "Losses of 5.1 % in bursts of 6 packets and 23.8 % in bursts of 32 on the Internet, of packets that host \
             FH1 sent at night",
            "a measurement of the Internet of 1997; the experiment takes the 5.1 % as given over 15 hops, which is an \
             inference: the text does not say that FH1 is the far sender",
        ),
        run(
            "Figure 12",
            "12 MB with cell latencies of 5 minutes and disconnections of 1 minute: M-TCP is faster, \
             less so over 15 hops",
            &[(SIM, "figure-12"), (SIM, "figures-7-to-12-by-detection")],
        ),
        run(
            "Figure 13",
            "Receives per byte at the mobile host, 1.02 with M-TCP and 1.06 with TCP for instance; M-TCP generally \
             sends fewer duplicates (section 6.2)",
            &[(SIM, "figure-13")],
        ),
        not_run(
            "Section 6.3",
            "Compression of headers saves 2 to 7 %: 3 bytes in place of 40",
            "arithmetic: the authors built none",
        ),
        run(
            "Figure 14",
            "Times of compression and decompression by packet size, 100 to 1,400 bytes (hardware: shown for this machine)",
            &[(SIM, "figure-14")],
        ),
        run(
            "Section 6.3",
            "Between gzip's levels 1 and 9 the ratio changes by a few percent, the time by up to 500 µs (hardware: \
             the authors' machine)",
            &[(SIM, "figure-14")],
        ),
        not_run(
            "Section 6.3",
            "Compression at level 3 of gzip",
            "a choice of the authors: figures 15 and 16 are run at level 6, and figure 14 has the levels 1, 3 and 9",
        ),
        not_run(
            "Section 6.3",
            "Packets of figure 15 have 1,460 bytes before compression",
            "what the experiment starts from: 1,500 bytes with headers, of which timestamps leave 1,448",
        ),
        run(
            "Figure 15",
            "1 MB with compression over 5 hops: much faster, text more so than binaries",
            &[(SIM, "figure-15")],
        ),
        run(
            "Figure 16",
            "1 MB with compression over 15 hops, in packets of 512 bytes: faster by a smaller margin",
            &[(SIM, "figure-16")],
        ),
        run(
            "Figure 17, left",
            "Processing at the supervisor host: 31 µs a packet forwarded, 91 to 112 µs with M-TCP, 60 to 81 µs of \
             it in transport (judged by their ratio)",
            &[(SIM, "figure-17-left")],
        ),
        run(
            "Section 6.4",
            "Forwarding takes a steady 31 µs for all sizes of packets (hardware: a column of the table shows this machine's)",
            &[(SIM, "figure-17-left")],
        ),
        not_run(
            "Section 6.4",
            "A router that takes 31 µs for a packet of 1,400 bytes could forward 361 Mbit/s",
            RECKONED,
        ),
        not_run(
            "Section 6.4",
            "A gateway (a Pentium) could handle 100 Mbit/s with M-TCP",
            "the trial `supervisor-cost` judges it, on this machine",
        ),
        not_run(
            "Section 7",
            "A Pentium of 100 MHz handles numerous M-TCP connections at once with little loss of performance",
            "a conclusion from section 6.4 for the authors' machine: nothing is measured",
        ),
        not_run(
            "Section 6.4",
            "Each test of the sender's buffer is repeated 50 times",
            "what the experiment starts from, at full extent",
        ),
        run(
            "Figure 17, right",
            "1 MB by the sender's buffer of 512 bytes to 16 kB (here from 1,024 bytes on): the cost of M-TCP \
             vanishes at 16 kB (the 81 µs of processing are given; what they cost is a column of the table)",
            &[(SIM, "figure-17-right")],
        ),
        run(
            "Figure 18, 5 hops",
            "Without slow link or disconnections M-TCP tends to be slightly slower than TCP (the 81 µs of \
             processing are the paper's: given)",
            &[(SIM, "figure-18")],
        ),
        run(
            "Figure 18, 15 hops",
            "Without slow link or disconnections M-TCP is faster for all three sizes",
            &[(SIM, "figure-18")],
        ),
        run(
            "Section 6.5",
            "Over 5 hops M-TCP takes less than a third of TCP's time",
            &[(SIM, "figures-7-to-9")],
        ),
        run(
            "Section 6.5",
            "Over 15 hops M-TCP gains less than over 5",
            &[(SIM, "figures-10-and-11"), (SIM, "figure-12")],
        ),
        run(
            "Section 6.5",
            "Compression costs about 3 ms for a packet of 1,400 bytes (hardware: the authors' machine)",
            &[(SIM, "figure-14")],
        ),
    ],
};
