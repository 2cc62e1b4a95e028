//! Entries of Scott and Mapp 2003.

use super::{DRAWING, RECKONED, Work, not_run, run};

const SIM: &str = "scott-mapp-sim";
/// On the running kernel.
const LAB: &str = "scott-mapp";

pub(super) static WORK: Work = Work {
    cite: "Scott and Mapp 2003",
    title: "Link Layer-Based TCP Optimisation for Disconnecting Networks",
    figures: &[(None, 14)],
    tables: &[],
    entries: &[
        run(
            "Section 1",
            "Disconnections of under 1 s, and of 1 minute, degrade TCP's performance",
            &[(SIM, "section-1")],
        ),
        not_run(
            "Sections 2, 7",
            "Losses of packets happen within microseconds, disconnections last from milliseconds to minutes",
            "a consideration, not a measurement",
        ),
        run(
            "Figure 1",
            "Trace of unaided TCP: over 1.5 s of connected time are wasted after a disconnection",
            &[(SIM, "figure-1"), (LAB, "figure-1")],
        ),
        not_run(
            "Section 2",
            "Before the link of figure 1 is back, TCP retransmits three times, each time later",
            "an example: the experiment draws its own disconnections",
        ),
        not_run(
            "Section 3",
            "A Networked Surface locates devices to within a few centimetres and a few degrees",
            "a property of the prototype",
        ),
        not_run(
            "Section 3",
            "A Networked Surface carries 5 Mbit/s and takes 200 to 500 ms to reconnect; its bit error rate is 10⁻¹⁰",
            "properties of the prototype; figure 14 is run with disconnections of 350 ms on average",
        ),
        not_run("Figure 2", "Where the smart link layer stands", DRAWING),
        not_run(
            "Section 4.1",
            "A router needs 3 kB for a connection, 3 MB for 100 nodes with 10 connections each",
            RECKONED,
        ),
        not_run(
            "Abstract, section 4.1",
            "The smart link layer keeps one packet for each connection",
            "how the levels are built, not a measurement",
        ),
        not_run("Figure 3", "Set-up with the ethertap driver", DRAWING),
        not_run("Figure 4", "The channel's two states", DRAWING),
        not_run(
            "Section 5.1",
            "Each state of the channel lasts evenly between half and one and a half of its mean",
            "what the experiments start from",
        ),
        not_run(
            "Section 5.3",
            "Transfers of 50 MB, connected for 0.5 s and disconnected for 0 to 4.5 s on average, ten availabilities \
             of 10 to 100 %, 14 trials of each level at each",
            "what the experiments start from, at full extent; a quick run has fewer trials, and in the lab smaller \
             transfers",
        ),
        run(
            "Figure 5, section 8",
            "Successful transfers by availability: all at high availability; levels 0, 1 and 2 begin \
             to fail below 50 %; level 0 never succeeds at 10 %, levels 3 and 4 always do",
            &[(SIM, "figure-5"), (LAB, "figure-5")],
        ),
        run(
            "Figure 6",
            "Mean duration by availability: levels 3 and 4 stay close to the ideal",
            &[(SIM, "figure-6"), (LAB, "figure-6")],
        ),
        run(
            "Figure 7, section 8",
            "At 80 % and 90 % availability unaided TCP takes about 100 % and 50 % longer than the \
             ideal; level 3 has a low standard deviation",
            &[(SIM, "figure-7"), (LAB, "figure-7")],
        ),
        run(
            "Figure 8",
            "Trace of level 1: TCP does not restart at once",
            &[(SIM, "figure-8"), (LAB, "figure-8")],
        ),
        run(
            "Figure 9",
            "Trace of level 2: TCP does not restart at once",
            &[(SIM, "figure-9"), (LAB, "figure-9")],
        ),
        run(
            "Figure 10",
            "Trace of level 3: TCP restarts at once",
            &[(SIM, "figure-10"), (LAB, "figure-10")],
        ),
        run(
            "Figure 11",
            "Trace of level 4: TCP restarts at once",
            &[(SIM, "figure-11"), (LAB, "figure-11")],
        ),
        run(
            "Section 5.4",
            "Re-sending five times has no effect beyond that of re-sending once",
            &[(SIM, "figure-6")],
        ),
        run(
            "Abstract, sections 5.4, 8",
            "Nearly 100 % of the channel is used at availabilities down to 10 %",
            &[(SIM, "figure-6")],
        ),
        not_run(
            "Section 6.1",
            "The Networked Surface is set to 1 Mbit/s for figures 12 and 13",
            "what the experiment starts from",
        ),
        run(
            "Figure 12",
            "Networked Surface, ten transfers of 5 MB: level 3 completes all down to 23 % \
             availability, unaided TCP is unreliable at 50 % and below",
            &[(SIM, "figure-12")],
        ),
        run(
            "Figure 13",
            "Networked Surface: unaided TCP has twice the overhead of level 3 at 65 % \
             availability; level 3 stays close to the ideal down to 20 %",
            &[(SIM, "figure-13")],
        ),
        not_run(
            "Section 6.2.2",
            "An update every 200 ms, tests of 100 s, ten for each level and availability",
            "what the experiments start from, at full extent, with messages in place of VNC",
        ),
        run(
            "Figure 14",
            "Interactive updates at half the availability: 80 % with the smart link layer, 40 % \
             without",
            &[(SIM, "figure-14"), (LAB, "figure-14")],
        ),
    ],
};
