//! `m-tcp` and `m-tcp-adaptive` against plain TCP and the ideal, in virtual time.

use outlast_scenario::Scenario;
use outlast_scenario::result::RunResult;
use outlast_sim::run;
use std::path::Path;

fn result(text: &str, index: u32) -> RunResult {
    let scenario = Scenario::parse(text, "m-tcp.toml", Path::new(".")).expect("a sound scenario");
    run(&scenario, index).expect("it can be simulated").result
}

/// The paper's link with disconnections of 2.5 s between cells of 5 s.
fn cells(gateway: &str, index: u32) -> RunResult {
    let text = format!(
        "[link]\ndelay = \"2 ms\"\nqueue = 1000\n\
         [link.downlink]\nrate = \"32 kbit/s\"\n[link.uplink]\nrate = \"8 kbit/s\"\n\
         [link.outages]\nprocess = \"normal\"\nup = \"5 s\"\ndown = \"2.5 s\"\n\
         [[hops]]\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"500 kB\"\n\
         [stack]\nprofile = \"netbsd-1997\"\n\
         [outlast]\ngateway = \"{gateway}\"\n[run]\ndeadline = \"1 h\"\n"
    );
    result(&text, index)
}

/// A link of today with one outage of 10 s.
fn one_outage(gateway: &str, congestion: &str) -> RunResult {
    let text = format!(
        "[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 150\n\
         [link.outages]\nprocess = \"single\"\nstart = \"5 s\"\nlength = \"10 s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"8 MB\"\n\
         [stack]\ncongestion = \"{congestion}\"\n\
         [outlast]\ngateway = \"{gateway}\"\n[run]\ndeadline = \"100 s\"\n"
    );
    result(&text, 0)
}

/// 500 kB from fifteen hops away, of which the wired half loses 5.1 % (figure 18 of the paper).
fn lossy_wire(gateway: &str, index: u32) -> RunResult {
    let text = format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"500 us\"\nmtu = 576\nqueue = 1000\n\
         [[hops]]\nrate = \"10 Mbit/s\"\ndelay = \"40 ms\"\nqueue = 1000\n\
         [hops.downlink]\nloss = 0.051\n\
         [workload]\nkind = \"bulk\"\nbytes = \"500 kB\"\n\
         [stack]\nprofile = \"netbsd-1997\"\nreceive_buffer = \"16 KiB\"\n\
         [outlast]\ngateway = \"{gateway}\"\n[run]\ndeadline = \"1 h\"\n"
    );
    result(&text, index)
}

#[test]
fn losses_of_the_wired_half_are_repaired_once_and_sooner_than_without_a_supervisor_host() {
    let of = |gateway: &str| -> (f64, u64) {
        let runs = (0..5).map(|index| lossy_wire(gateway, index));
        runs.fold((0.0, 0), |(elapsed_s, timeouts), run| {
            assert!(run.completed && run.intact == Some(true), "{run:?}");
            let more = run.timeouts.expect("the model counts them");
            (elapsed_s + run.elapsed_s, timeouts + more)
        })
    };
    let plain = of("none");
    for gateway in ["m-tcp", "m-tcp-adaptive"] {
        let helped = of(gateway);
        assert!(helped.0 < 0.8 * plain.0, "{helped:?}, {plain:?} without");
        assert!(helped.1 * 2 < plain.1, "{helped:?}, {plain:?} without");
    }
}

#[test]
fn the_published_scheme_keeps_the_sender_of_its_time_from_timing_out() {
    for index in 0..3 {
        let [plain, helped] = ["none", "m-tcp"].map(|gateway| cells(gateway, index));
        assert!(
            helped.completed && helped.intact == Some(true),
            "{helped:?}"
        );
        let ideal = helped.ideal_s.expect("a transfer has one");
        // Headers, and a packet of 375 ms that each outage cuts.
        assert!(helped.elapsed_s < 1.1 * ideal, "{helped:?}");
        assert!(plain.elapsed_s > 2.0 * helped.elapsed_s, "{plain:?}");
        assert!(helped.timeouts < Some(5) && plain.timeouts > Some(20));
    }
}

#[test]
fn the_published_scheme_costs_a_sender_of_today_most_of_its_rate_and_the_adaptive_one_does_not() {
    let published = one_outage("m-tcp", "cubic");
    let ideal = published.ideal_s.expect("a transfer has one");
    assert!(published.elapsed_s > 1.5 * ideal, "{published:?}");
    for congestion in ["cubic", "bbr"] {
        let adaptive = one_outage("m-tcp-adaptive", congestion);
        assert!(adaptive.completed && adaptive.intact == Some(true));
        let ideal = adaptive.ideal_s.expect("a transfer has one");
        assert!(adaptive.elapsed_s < 1.05 * ideal, "{adaptive:?}");
        let plain = one_outage("none", congestion);
        assert!(plain.elapsed_s > 1.2 * ideal, "{plain:?}");
    }
}

/// Of the ideal, which loses nothing to outages: each cuts a packet of 375 ms, half of it on average. What remains is
/// small segments, repetitions, and time in which the link is idle.
#[test]
fn disconnections_leave_a_transfer_in_full_segments_and_the_link_busy() {
    for index in 0..3 {
        let run = many_cells(index);
        assert!(run.completed && run.intact == Some(true), "{run:?}");
        let ideal = run.ideal_s.expect("a transfer has one");
        assert!(run.elapsed_s < 1.06 * ideal, "{run:?}");
    }
}

/// The paper's 1 MB with disconnections of 4.5 s between cells of 5 s.
fn many_cells(index: u32) -> RunResult {
    let text = "[link]\ndelay = \"2 ms\"\nqueue = 1000\n\
         [link.downlink]\nrate = \"32 kbit/s\"\n[link.uplink]\nrate = \"8 kbit/s\"\n\
         [link.outages]\nprocess = \"normal\"\nup = \"5 s\"\ndown = \"4.5 s\"\n\
         [[hops]]\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n\
         [stack]\nprofile = \"netbsd-1997\"\n\
         [outlast]\ngateway = \"m-tcp\"\n[run]\ndeadline = \"1 h\"\n";
    result(text, index)
}

/// Slow start overfills the link's queue, and the sender repeats what was lost, from the hole on and at once.
#[test]
fn losses_without_an_outage_cost_a_sender_of_today_no_more_than_without_a_supervisor_host() {
    for congestion in ["cubic", "reno"] {
        let [plain, adaptive] = ["none", "m-tcp-adaptive"].map(|gateway| {
            let text = format!(
                "[link]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 75\n\
                 [workload]\nkind = \"bulk\"\nbytes = \"6 MB\"\n[stack]\ncongestion = \"{congestion}\"\n\
                 [outlast]\ngateway = \"{gateway}\"\n[run]\ndeadline = \"100 s\"\n"
            );
            result(&text, 0)
        });
        assert!(plain.retransmitted_bytes > Some(0), "{plain:?}");
        assert_eq!(adaptive.timeouts, Some(0), "{congestion}: {adaptive:?}");
        assert!(
            adaptive.elapsed_s < 1.02 * plain.elapsed_s,
            "{congestion}: {} s, {} s without",
            adaptive.elapsed_s,
            plain.elapsed_s
        );
    }
}

/// Four downloads of 2 MB over 4 Mbit/s and a queue of 30 packets.
fn four_downloads(shares_rate: bool, congestion: &str) -> RunResult {
    let text = format!(
        "[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 30\n\
         [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\n\
         [stack]\ncongestion = \"{congestion}\"\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"2 MB\"\ncount = 3\ncongestion = \"{congestion}\"\n\
         [outlast]\ngateway = \"m-tcp-adaptive\"\nshare_rate = {shares_rate}\n[run]\ndeadline = \"100 s\"\n"
    );
    result(&text, 0)
}

#[test]
fn connections_that_share_the_rate_lose_nothing_and_end_together() {
    for congestion in ["cubic", "reno", "bbr"] {
        let [plain, shared] = [false, true].map(|shares| four_downloads(shares, congestion));
        for run in [&plain, &shared] {
            assert!(run.is_complete() && run.intact == Some(true), "{run:?}");
        }
        let retransmitted = |run: &RunResult| {
            let others = run.flows.iter().map(|flow| flow.retransmitted_bytes);
            run.retransmitted_bytes.unwrap_or_default() + others.flatten().sum::<u64>()
        };
        let ends = |run: &RunResult| {
            let others = run.flows.iter().map(|flow| flow.elapsed_s);
            let all: Vec<f64> = others.chain([run.elapsed_s]).collect();
            let first = all.iter().copied().fold(f64::INFINITY, f64::min);
            (first, all.iter().copied().fold(0.0, f64::max))
        };
        let report = [&plain, &shared].map(|run| (retransmitted(run), ends(run)));
        assert_eq!(report[1].0, 0, "{congestion}: {report:?}");
        assert!(report[0].0 > 0, "{congestion}: {report:?}");
        let (first, last) = report[1].1;
        // Headers of 8 MB take half a second more than 16 s.
        assert!(
            last < 17.5 && last - first < 1.0,
            "{congestion}: {report:?}"
        );
    }
}

/// The paper's 500 kB over its link, with disconnections of 1.5 s between cells of 5 s.
fn compressed(content: &str, compression: bool, loss: &str) -> RunResult {
    let text = format!(
        "[link]\ndelay = \"2 ms\"\nqueue = 1000\nloss = {loss}\n\
         [link.downlink]\nrate = \"32 kbit/s\"\n[link.uplink]\nrate = \"8 kbit/s\"\n\
         [link.outages]\nprocess = \"normal\"\nup = \"5 s\"\ndown = \"1.5 s\"\n\
         [[hops]]\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"500 kB\"\ncontent = \"{content}\"\n\
         [stack]\nprofile = \"netbsd-1997\"\n\
         [outlast]\ngateway = \"m-tcp\"\ncompression = {compression}\n[run]\ndeadline = \"1 h\"\n"
    );
    result(&text, 0)
}

#[test]
fn payload_that_compresses_crosses_in_less_time_and_arrives_as_it_was_sent() {
    let times = |content| {
        [false, true].map(|compression| {
            let run = compressed(content, compression, "0.0");
            assert!(run.completed && run.intact == Some(true), "{run:?}");
            run.elapsed_s
        })
    };
    let (text, binary, random) = (times("text"), times("binary"), times("random"));
    let shares = [text, binary, random].map(|[plain, compressed]| compressed / plain);
    assert!(shares[0] < 0.6, "{shares:?}");
    assert!(shares[0] < shares[1] && shares[1] < 0.75, "{shares:?}");
    // Offers are on the link, too, so that outages cut other packets.
    assert!((0.95..1.06).contains(&shares[2]), "{shares:?}");
}

#[test]
fn losses_of_the_link_cost_compressed_transfers_no_data() {
    for content in ["text", "binary"] {
        let run = compressed(content, true, "0.02");
        assert!(run.completed && run.intact == Some(true), "{run:?}");
    }
}

/// A transfer of 3 MB with one outage.
#[derive(Clone, Copy, Debug)]
struct Case {
    gateway: &'static str,
    /// How the supervisor host hears of the outage.
    indicators: &'static str,
    way: &'static str,
    stack: &'static str,
    length: &'static str,
}

/// In place of a length: 100 ms after each 2 s.
const FLAPS: &str = "flaps";

/// Starts of the outage; what one transfer does hangs on where in its course it is cut.
const STARTS: u64 = 12;

/// What came of a case: medians over all starts, with the mobile's half and without it.
#[derive(Clone, Copy, Debug)]
struct Median {
    /// Seconds from the link's return until new bytes arrived.
    resume_s: f64,
    /// Seconds of the whole transfer.
    elapsed_s: f64,
    /// Those of the longest transfer, which is no median.
    longest_s: f64,
    /// Least and most timeouts of any start.
    timeouts: [u64; 2],
}

fn one_start(case: Case, half: &str, start: u64) -> RunResult {
    let Case {
        gateway,
        indicators,
        way,
        stack,
        length,
    } = case;
    let start_ms = 3_000 + 83 * start;
    let outages = match length {
        FLAPS => format!(
            "process = \"periodic\"\nup = \"2 s\"\ndown = \"100 ms\"\nstart = \"{} ms\"",
            start_ms - 1_000
        ),
        length => format!("process = \"single\"\nstart = \"{start_ms} ms\"\nlength = \"{length}\""),
    };
    let text = format!(
        "[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 75\n\
         [link.outages]\n{outages}\n\
         [workload]\nkind = \"bulk\"\nbytes = \"3 MB\"\ndirection = \"{way}\"\n\
         [stack]\n{stack}\n\
         [outlast]\ngateway = \"{gateway}\"\nmobile = \"{half}\"\nindicators = \"{indicators}\"\n\
         [run]\ndeadline = \"300 s\"\n"
    );
    let run = result(&text, 0);
    assert!(run.is_complete() && run.intact == Some(true), "{run:?}");
    run
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    f64::midpoint(all[(all.len() - 1) / 2], all[middle])
}

/// Medians with the mobile's half, and without it.
#[expect(
    clippy::print_stdout,
    reason = "--nocapture shows the table of the page"
)]
fn medians(case: Case) -> [Median; 2] {
    let both = ["m-tcp", "none"].map(|half| {
        let runs: Vec<_> = (0..STARTS)
            .map(|start| one_start(case, half, start))
            .collect();
        let timeouts = || runs.iter().filter_map(|run| run.timeouts);
        let resumes = runs.iter().filter_map(|run| run.outages[0].resume_s);
        Median {
            resume_s: median(resumes),
            elapsed_s: median(runs.iter().map(|run| run.elapsed_s)),
            longest_s: runs.iter().map(|run| run.elapsed_s).fold(0.0, f64::max),
            timeouts: [timeouts().min(), timeouts().max()].map(Option::unwrap_or_default),
        }
    });
    println!("{case:?}: with {:?}, without {:?}", both[0], both[1]);
    both
}

const OBEDIENT: &str = "profile = \"netbsd-1997\"";
const CUBIC: &str = "congestion = \"cubic\"";
const BBR: &str = "congestion = \"bbr\"";

/// A download past a supervisor host that learns of the outage by silence.
const DOWNLOAD: Case = Case {
    gateway: "m-tcp",
    indicators: "silence",
    way: "download",
    stack: OBEDIENT,
    length: "3 s",
};

/// A sender that waits in persist mode repeats nothing by which silence would show, and the mobile has nothing to send:
/// without the mark the supervisor host has to ask.
#[test]
fn the_mobiles_marked_acknowledgement_ends_a_freeze_before_a_probe_does() {
    for length in ["200 ms", "3 s"] {
        let [with, without] = medians(Case { length, ..DOWNLOAD });
        assert!(with.resume_s < 0.05, "{length}: {with:?}");
        let asked = with.resume_s + 0.02..0.2;
        assert!(asked.contains(&without.resume_s), "{length}: {without:?}");
        assert!(with.elapsed_s < without.elapsed_s, "{length}");
        // The control: nobody supervises.
        let [_, plain] = medians(Case {
            gateway: "none",
            length,
            ..DOWNLOAD
        });
        assert!(plain.resume_s > 1.0, "{length}: {plain:?}");
        assert!(without.elapsed_s < plain.elapsed_s - 1.0, "{length}");
    }
}

/// The mobile's own sender is frozen: it has no timeout, and its window is as it was.
#[test]
fn a_frozen_sender_at_the_mobile_has_no_timeout() {
    for stack in [OBEDIENT, CUBIC, BBR] {
        for gateway in ["none", "m-tcp", "m-tcp-adaptive"] {
            let case = Case {
                gateway,
                way: "upload",
                stack,
                length: "10 s",
                ..DOWNLOAD
            };
            let [with, without] = medians(case);
            assert_eq!(with.timeouts, [0, 0], "{case:?}");
            assert!(without.timeouts[0] > 2, "{case:?}: {without:?}");
            assert!(with.resume_s < 0.15, "{case:?}: {with:?}");
            assert!(with.elapsed_s < without.elapsed_s, "{case:?}");
        }
    }
}

/// Nobody is there who would understand the mark.
#[test]
fn the_mobiles_half_harms_no_download_without_a_supervisor_host() {
    for stack in [OBEDIENT, CUBIC, BBR] {
        for gateway in ["none", "hold"] {
            for length in ["200 ms", "3 s", "10 s"] {
                let case = Case {
                    gateway,
                    stack,
                    length,
                    ..DOWNLOAD
                };
                let [with, without] = medians(case);
                assert!(with.elapsed_s < 1.02 * without.elapsed_s, "{case:?}");
            }
        }
    }
}

/// Both ends of the link hear of its return, and the supervisor host has sent again what the mark asks for.
#[test]
fn a_mark_costs_nothing_where_the_supervisor_host_hears_of_the_link_itself() {
    for length in ["3 s", "10 s"] {
        let case = Case {
            gateway: "m-tcp-adaptive",
            indicators: "link",
            stack: CUBIC,
            length,
            ..DOWNLOAD
        };
        let [with, without] = medians(case);
        assert!(with.elapsed_s < 1.05 * without.elapsed_s, "{case:?}");
    }
}

/// New bytes come sooner by the mark, but CUBIC may have more timeouts after it: what that may cost it.
#[test]
fn what_the_mark_costs_cubic_is_bounded() {
    for (length, most) in [("3 s", 1.1), (FLAPS, 0.95)] {
        let case = Case {
            gateway: "m-tcp-adaptive",
            stack: CUBIC,
            length,
            ..DOWNLOAD
        };
        let [with, without] = medians(case);
        assert!(with.elapsed_s < most * without.elapsed_s, "{case:?}");
        assert!(
            with.longest_s < 1.5 * without.longest_s,
            "{case:?}: {with:?}"
        );
    }
}

/// An outage amid a recovery: the mobile may have taken repetitions that the sender made itself, and then drops what is
/// sent again with an older timestamp (PAWS). Of a lone acknowledgement that the outage takes nobody hears.
#[test]
fn an_outage_amid_a_recovery_costs_no_timeout_after_the_return() {
    let run_of = |side: &str, gateway: &str, way: &str, congestion: &str, start_ms: u64| {
        let text = format!(
            "[link]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 75\n\
             [link.outages]\nprocess = \"single\"\nstart = \"{start_ms} ms\"\nlength = \"10 s\"\n\
             [workload]\nkind = \"bulk\"\nbytes = \"6 MB\"\ndirection = \"{way}\"\n\
             [stack]\ncongestion = \"{congestion}\"\n\
             [outlast]\n{side} = \"{gateway}\"\n[run]\ndeadline = \"100 s\"\n"
        );
        let run = result(&text, 0);
        assert!(run.is_complete() && run.intact == Some(true), "{run:?}");
        run.outages[0].resume_s.expect("it was complete")
    };
    for (side, way) in [("gateway", "download"), ("mobile", "upload")] {
        for congestion in ["cubic", "reno"] {
            let worst = |gateway| {
                let starts = (0..20).map(|n| 1_300 + 37 * n);
                let resumes = starts.map(|at| run_of(side, gateway, way, congestion, at));
                resumes.fold(0.0, f64::max)
            };
            let [plain, helped] = ["none", "m-tcp-adaptive"].map(worst);
            assert!(plain > 1.0, "{way}, {congestion}: {plain} s without");
            assert!(helped < 0.5, "{way}, {congestion}: {helped} s");
        }
    }
}

/// What [the page of `m-tcp`](../../../../docs/m-tcp.md) says of senders of today beside the published one.
#[test]
fn the_adaptive_supervisor_host_with_the_mobiles_half_and_without_it() {
    for stack in [OBEDIENT, CUBIC, BBR] {
        for length in ["200 ms", "3 s", "10 s"] {
            let case = Case {
                gateway: "m-tcp-adaptive",
                stack,
                length,
                ..DOWNLOAD
            };
            let [with, without] = medians(case);
            assert!(with.resume_s < 0.1, "{case:?}: {with:?}");
            assert!(with.resume_s <= without.resume_s, "{case:?}");
            if stack == CUBIC {
                // None waits for a backed-off timeout.
                for all in [with, without] {
                    assert!(all.longest_s < 1.1 * all.elapsed_s, "{case:?}: {all:?}");
                }
            }
        }
    }
}
