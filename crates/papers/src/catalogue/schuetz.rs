//! Entries of Schuetz, Eggert, Schmid and Brunner 2005.

use super::{DRAWING, NOT_MEASURED, Work, not_run, run};

const SIM: &str = "schuetz";
/// The same with HIP.
const HIP: &str = "hip";

pub(super) static WORK: Work = Work {
    cite: "Schuetz, Eggert, Schmid and Brunner 2005",
    title: "Protocol Enhancements for Intermittently Connected Hosts",
    figures: &[(None, 13)],
    tables: &[],
    entries: &[
        not_run("Figure 1", "A car with intermittent connectivity", DRAWING),
        not_run("Figure 2", "Abort by a change of address", DRAWING),
        not_run("Figure 3", "Abort by the user timeout", DRAWING),
        not_run(
            "Figure 4",
            "Connection time that goes unused after a reconnection",
            DRAWING,
        ),
        not_run("Figure 5", "Ideal transmission", DRAWING),
        not_run("Figure 6", "Readdressing of HIP", DRAWING),
        not_run("Figure 7", "Format of the user timeout option", DRAWING),
        not_run("Figure 8", "Scenario of the experiments", DRAWING),
        not_run("Figure 9", "Emulation of the scenario", DRAWING),
        run(
            "Section 4.1",
            "25 MB take about 21 s without a disconnection",
            SIM,
            "figure-10",
        ),
        run(
            "Figure 10",
            "TCP: aborts from 130 s of disconnection, all abort beyond 143 s; over 100 s in the worst case; \
             peaks at 26, 52 and 91 s, dips at 39 and 78 s",
            SIM,
            "figure-10",
        ),
        run(
            "Figure 11",
            "With a user timeout of 15 minutes nothing aborts; long disconnections cost 105 to 140 s, \
             14 % of the bandwidth",
            SIM,
            "figure-11",
        ),
        run(
            "Figure 12",
            "With the retransmission trigger 24 to 27 s whatever the disconnection, 7.4 to 8.1 Mbit/s",
            SIM,
            "figure-12",
        ),
        run(
            "Section 4.1.3",
            "Readdressing takes 2 to 3 s in the prototype, 200 to 300 ms by rights",
            HIP,
            "figure-12",
        ),
        run(
            "Section 4.1.4",
            "Up to five times faster; within 72 to 86 % of the best case",
            SIM,
            "figure-12",
        ),
        run(
            "Figure 13, top",
            "17 s connected, 37 s and 67 s disconnected: TCP aborts, the trigger takes 640 to 650 s for 600 MB",
            SIM,
            "figure-13",
        ),
        run(
            "Figure 13, middle",
            "37 s connected: TCP takes 680 s and over 1200 s, the trigger about 10 % less and 590 s",
            SIM,
            "figure-13",
        ),
        run(
            "Figure 13, bottom",
            "67 s connected: TCP takes 595 s and 765 s, the trigger 558 s and 560 s",
            SIM,
            "figure-13",
        ),
        not_run(
            "Section 4.2",
            "TCP's next timeout comes 3 to 8 s after disconnections of 37 s, 15 to 25 s after those of 67 s",
            NOT_MEASURED,
        ),
        not_run(
            "Section 4.2",
            "The trigger gains 6 % to over 50 % in all scenarios",
            NOT_MEASURED,
        ),
    ],
};
