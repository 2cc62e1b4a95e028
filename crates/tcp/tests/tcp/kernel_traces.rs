//! The profile `linux-6` beside what Linux 6.18 did.
//!
//! Recorded with two network namespaces and an emulated link between their TUN devices: 40 ms
//! round trip, 4 Mbit/s, 150 packets of queue, and an outage from 5 s on. The times are those of
//! the timeouts (and loss probes) until data flowed again, in ms after the link went down; one run
//! each.
//!
//! Their number must be the same, and each within a tenth: the phase of the kernel's timer wheel
//! is not known, and moves a timeout by up to an eighth of itself. One phase serves for all.

use crate::common::{Pair, config, link, ms, outage};
use outlast_base::time::{Duration, Instant};
use outlast_tcp::profile::{Congestion, LINUX_6};

struct Recorded {
    congestion: Congestion,
    sack: bool,
    outage_ms: u64,
    timeouts_ms: &'static [u64],
}

const RECORDED: [Recorded; 6] = [
    Recorded {
        congestion: Congestion::Reno,
        sack: true,
        outage_ms: 10_000,
        timeouts_ms: &[698, 1_626, 3_486, 7_322, 14_746],
    },
    Recorded {
        congestion: Congestion::Reno,
        sack: false,
        outage_ms: 10_000,
        timeouts_ms: &[382, 1_146, 2_682, 5_918, 12_058],
    },
    Recorded {
        congestion: Congestion::Cubic,
        sack: true,
        outage_ms: 10_000,
        timeouts_ms: &[800, 1_952, 4_228, 8_832, 18_048],
    },
    // The first that gets through repairs nothing: the peer had the segment. Without SACK the
    // sender does not learn what is missing and waits for another timeout.
    Recorded {
        congestion: Congestion::Cubic,
        sack: false,
        outage_ms: 10_000,
        timeouts_ms: &[607, 1_759, 4_159, 8_767, 17_983, 39_744],
    },
    // The same with SACK: a DSACK undoes the loss, and BBR waits for an inflated timeout.
    Recorded {
        congestion: Congestion::Bbr,
        sack: true,
        outage_ms: 10_000,
        timeouts_ms: &[492, 1_036, 2_124, 4_524, 8_876, 17_580, 22_232],
    },
    Recorded {
        congestion: Congestion::Bbr,
        sack: true,
        outage_ms: 30_000,
        timeouts_ms: &[507, 1_047, 2_139, 4_375, 8_727, 17_435, 35_608, 44_867],
    },
];

#[test]
fn timeouts_and_resumption_are_the_kernels() {
    for recorded in RECORDED {
        let mut link = link();
        link.outages = outage(5_000, recorded.outage_ms);
        let mut client = config(&LINUX_6);
        client.congestion = Some(recorded.congestion);
        client.sack = Some(recorded.sack);
        // Of the eight places in the second level, the one that fits best.
        client.clock_phase = Duration::from_millis(4);
        let server = client.mirrored();
        let mut pair = Pair::new(client, server, link).recording();
        pair.write(100_000_000);
        let up = Instant::from_millis(5_000 + recorded.outage_ms);
        pair.run_until(up);
        let before = pair.server.received();
        assert!(pair.run_to(before + 1, Duration::from_secs(300)));
        let resumed = pair.now;
        let mut ours: Vec<_> = pair
            .retransmissions()
            .into_iter()
            .map(|(at, _)| at)
            // What was lost to the queue before the outage does not count.
            .filter(|at| *at > Instant::from_millis(5_050) && *at < resumed)
            .map(|at| ms(at) - 5_000)
            .collect();
        // Nor does what follows a timeout as soon as it is answered.
        let mut previous = 0;
        ours.retain(|at| {
            let pause = at - previous;
            previous = *at;
            pause > 200
        });
        let what = (recorded.congestion, recorded.sack, recorded.outage_ms);
        let theirs = recorded.timeouts_ms;
        assert_eq!(ours.len(), theirs.len(), "{what:?}: {ours:?} {theirs:?}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            let off = ours.abs_diff(*theirs) as f64 / *theirs as f64;
            assert!(off < 0.1, "{what:?}: {ours} ms, the kernel {theirs} ms");
        }
    }
}
