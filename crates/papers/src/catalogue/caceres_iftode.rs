//! Entries of Cáceres and Iftode 1995.

use super::{DRAWING, Work, not_run, run};

const SIM: &str = "caceres-iftode";

pub(super) static WORK: Work = Work {
    cite: "Cáceres and Iftode 1995",
    title: "Improving the Performance of Reliable Transport Protocols in Mobile Computing Environments",
    figures: &[(None, 10)],
    tables: &[],
    entries: &[
        not_run("Figure 1", "The wireless testbed", DRAWING),
        run(
            "Figure 2",
            "Throughput of 4 MB falls by 6 % between overlapping cells, by 12 % and 31 % between others with 0 s \
             and 1 s rendezvous delay",
            SIM,
            "figure-2",
        ),
        run(
            "Figure 3",
            "The sequence number stands for about 3 s after a crossing with 1 s rendezvous \
             delay, about 1 s after one with 0 s",
            SIM,
            "figure-3",
        ),
        run(
            "Figure 4",
            "The congestion window falls to its minimum after a crossing and grows again within \
             about 1 s of the restart",
            SIM,
            "figure-4",
        ),
        run(
            "Figure 5",
            "0 s rendezvous delay: routes agree after 0.15 s, one timeout, 0.8 s of silence",
            SIM,
            "figure-5",
        ),
        run(
            "Figure 6",
            "1 s rendezvous delay: two timeouts, 2.8 s of silence",
            SIM,
            "figure-6",
        ),
        run(
            "Figure 7",
            "0 s rendezvous delay with fast retransmission: communication goes on 50 ms after \
             the hand-off, in place of 650 ms",
            SIM,
            "figure-7",
        ),
        run(
            "Figure 8",
            "1 s rendezvous delay with fast retransmission: communication goes on 50 ms after \
             the hand-off, in place of 1,650 ms",
            SIM,
            "figure-8",
        ),
        run(
            "Figure 9, without the remedy",
            "Pauses of 0.8 s and 2.8 s from the mobile host, 0.6 s and 2.6 s \
             from the stationary one",
            SIM,
            "figure-9",
        ),
        run(
            "Figure 9, with the remedy",
            "Pauses of 0.2 s and 1.2 s from the mobile host, 0.3 s and 1.3 s \
             from the stationary one",
            SIM,
            "figure-9-helped",
        ),
        run(
            "Figure 10",
            "Throughput rises from 1400 to 1490 Kbit/s with 0 s rendezvous delay, from 1100 to \
             1380 Kbit/s with 1 s",
            SIM,
            "figure-10",
        ),
        not_run(
            "Section IV-A",
            "A timer that follows a round trip of 1 ms fires several times during a hand-off",
            "no profile has a timer of that resolution",
        ),
        not_run(
            "Section IV-D",
            "A better implementation of hand-offs brings pauses to 100 ms or less",
            "an expectation of the authors, not a measurement",
        ),
        not_run(
            "Section V",
            "Bit errors of 10⁻⁶ on wireless links",
            "the authors did not measure transfers under them",
        ),
    ],
};
