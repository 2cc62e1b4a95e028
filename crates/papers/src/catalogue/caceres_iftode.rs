//! Entries of Cáceres and Iftode 1995.

use super::{CITED, DRAWING, Work, not_run, run};

const SIM: &str = "caceres-iftode";
const INPUT: &str =
    "what the experiment starts from: its hand-offs are outages of the rendezvous delay and 150 ms";

pub(super) static WORK: Work = Work {
    cite: "Cáceres and Iftode 1995",
    title: "Improving the Performance of Reliable Transport Protocols in Mobile Computing Environments",
    figures: &[(None, 10)],
    tables: &[],
    entries: &[
        not_run(
            "Section I",
            "TCP takes a packet for lost whose acknowledgement is later than the average by over twice the expected \
             deviation",
            "what the profile is built from, so that it cannot confirm it",
        ),
        not_run("Figure 1", "The wireless testbed", DRAWING),
        not_run(
            "Section II",
            "WaveLAN with 2 Mbit/s, Ethernet with 10 Mbit/s",
            "what the authors had: the experiment's one link has the rate at which 1.6 Mbit/s of payload come through",
        ),
        run(
            "Figure 2",
            "Throughput of 4 MB falls by 6 % between overlapping cells, by 12 % and 31 % between others with 0 s \
             and 1 s rendezvous delay",
            &[(SIM, "figure-2")],
        ),
        not_run(
            "Section III-A",
            "A beacon comes each second, and the mobile changes its cell every 8 of them",
            "what the experiment starts from: its crossings come every 8 s",
        ),
        run(
            "Section III-A",
            "3 hand-offs in roughly 24 s with 0 s rendezvous delay, 3 in roughly 29 s with 1 s",
            &[(SIM, "figure-2")],
        ),
        run(
            "Figure 3",
            "The sequence number stands for about 3 s after two crossings with 1 s rendezvous delay, about \
             1 s after the last; 3 s are typical of 1 s, 1 s of 0 s",
            &[(SIM, "figure-3")],
        ),
        run(
            "Figure 4",
            "The congestion window stops growing at a crossing for the 3 s or 1 s of the pause, and falls to its \
             minimum",
            &[(SIM, "figure-4")],
        ),
        run(
            "Figure 5",
            "0 s rendezvous delay: one timeout, 0.8 s of silence, which the text calls a lower bound (below)",
            &[(SIM, "figure-5")],
        ),
        run(
            "Figure 6",
            "1 s rendezvous delay: two timeouts (the 2.8 s of silence stand in section IV-D)",
            &[(SIM, "figure-6")],
        ),
        run(
            "Abstract, sections I, III-C, III-E",
            "Communication halts for 0.8 s or longer after each crossing between cells that do not overlap: a \
             lower bound, which hand-offs with 0 s rendezvous delay contradict here",
            &[(SIM, "figure-5"), (SIM, "figure-6")],
        ),
        run(
            "Sections III-E, VI",
            "TCP retransmits from 650 ms to several seconds after a hand-off is complete, so that pauses are at \
             least 650 ms longer than the interruption: a lower bound, which both figures contradict here",
            &[(SIM, "figure-5"), (SIM, "figure-6")],
        ),
        not_run(
            "Section III-C",
            "The mobile's routes are right 0.05 s after a crossing with 0 s rendezvous delay, those of the old \
             station 0.15 s after",
            INPUT,
        ),
        not_run(
            "Section III-C",
            "A hand-off takes at least two exchanges of packets",
            INPUT,
        ),
        run(
            "Section III-C",
            "Up to a full transmission window is lost in each hand-off (judged is that over half of it is)",
            &[(SIM, "figure-5")],
        ),
        not_run(
            "Section III-C",
            "Hand-offs between overlapping cells lose no packets",
            "what the experiment starts from: such a hand-off is no event; encapsulation and forwarding, which cost \
             the paper 6 %, are not modelled",
        ),
        run(
            "Section III-D",
            "Slow start throttles the sender for about 1 s after communication goes on; then it has its greatest \
             throughput, 1.6 Mbit/s (given: the link's rate is chosen for it)",
            &[(SIM, "figure-4"), (SIM, "figure-2")],
        ),
        run(
            "Section III-E",
            "Pauses grow exponentially with growing rendezvous delays",
            &[(SIM, "section-3-e")],
        ),
        not_run(
            "Section III-E",
            "Users call an answer bad that takes longer than 100 to 200 ms",
            CITED,
        ),
        run(
            "Section IV-B",
            "Timers of 500 ms make the least timeout 1 s",
            &[(SIM, "figure-4")],
        ),
        run(
            "Section IV-B",
            "A timer that follows the round trip fires after 1 ms or less, several times during a hand-off (judged by the round \
             trips of figure 5's transfers)",
            &[(SIM, "section-4-b")],
        ),
        not_run(
            "Section IV-B",
            "Round trips in the testbed are well under 1 ms",
            "what the experiment starts from: 0.25 ms each way",
        ),
        not_run(
            "Section IV-B",
            "TCP has coarse timers with a resolution of 300 to 500 ms",
            "a property of stacks of its time: the profile has the testbed's 500 ms",
        ),
        run(
            "Section IV-C",
            "Without the remedy the timeout comes 650 ms after a hand-off with 0 s rendezvous delay",
            &[(SIM, "figure-5")],
        ),
        run(
            "Section IV-C",
            "Without the remedy the timeout comes 1,650 ms after a hand-off with 1 s rendezvous delay",
            &[(SIM, "figure-6")],
        ),
        run(
            "Figure 7, section VI",
            "0 s rendezvous delay with fast retransmission: communication goes on 50 ms after \
             the hand-off",
            &[(SIM, "figure-7")],
        ),
        run(
            "Figure 8, section VI",
            "1 s rendezvous delay with fast retransmission: communication goes on 50 ms after \
             the hand-off",
            &[(SIM, "figure-8")],
        ),
        run(
            "Figure 9, without the remedy",
            "Pauses of 0.8 s and 2.8 s from the mobile host, 0.6 s and 2.6 s \
             from the stationary one",
            &[(SIM, "figure-9")],
        ),
        run(
            "Figure 9, with the remedy",
            "Pauses of 0.2 s and 1.2 s from the mobile host, 0.3 s and 1.3 s \
             from the stationary one: 200 to 300 ms beyond the rendezvous",
            &[(SIM, "figure-9-helped")],
        ),
        run(
            "Section IV-D",
            "Without the remedy pauses are shorter with the sender on the stationary host, with the remedy they are \
             longer (follows from the pauses, which are judged one by one)",
            &[(SIM, "figure-9"), (SIM, "figure-9-helped")],
        ),
        run(
            "Figure 10",
            "Throughput rises from 1400 to 1490 Kbit/s with 0 s rendezvous delay, from 1100 to \
             1380 Kbit/s with 1 s",
            &[(SIM, "figure-10")],
        ),
        run(
            "Abstract, section I",
            "Fast retransmission brings pauses to 0.2 s: of figure 9's four cases that is the shortest",
            &[(SIM, "figure-9-helped")],
        ),
        run(
            "Section IV-D",
            "A better implementation of hand-offs should bring pauses to 100 ms or less after the rendezvous (an \
             expectation; the time of registration is ours)",
            &[(SIM, "figure-9-expected")],
        ),
        not_run(
            "Section V",
            "A wireless network indoors captures over 99 % of its packets",
            CITED,
        ),
        not_run(
            "Section V",
            "Bit errors of 10⁻⁶ and more on wireless links, 10⁻¹² and less on fibre",
            CITED,
        ),
    ],
};
