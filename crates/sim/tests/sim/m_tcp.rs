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

/// One transfer of 3 MB with one outage of which the supervisor host has no indicator.
fn silent_outage(gateway: &str, mobile: &str, way: &str, stack: &str, length: &str) -> RunResult {
    let text = format!(
        "[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 75\n\
         [link.outages]\nprocess = \"single\"\nstart = \"3 s\"\nlength = \"{length}\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"3 MB\"\ndirection = \"{way}\"\n\
         [stack]\n{stack}\n\
         [outlast]\ngateway = \"{gateway}\"\nmobile = \"{mobile}\"\nindicators = \"silence\"\n\
         [run]\ndeadline = \"300 s\"\n"
    );
    let run = result(&text, 0);
    assert!(run.is_complete() && run.intact == Some(true), "{run:?}");
    run
}

/// Seconds from the link's return until new bytes arrived.
fn resume_s(run: &RunResult) -> f64 {
    run.outages[0].resume_s.expect("it resumed")
}

const OBEDIENT: &str = "profile = \"netbsd-1997\"";
const CUBIC: &str = "congestion = \"cubic\"";
const BBR: &str = "congestion = \"bbr\"";

/// A sender that waits in persist mode repeats nothing by which silence would show, and the mobile has nothing to send.
#[test]
fn the_mobiles_marked_acknowledgement_ends_a_freeze_that_nothing_else_would_end_so_soon() {
    for length in ["200 ms", "3 s"] {
        let [with, without] = ["m-tcp", "none"]
            .map(|half| silent_outage("m-tcp", half, "download", OBEDIENT, length));
        let resumes = [resume_s(&with), resume_s(&without)];
        println!(
            "download, {length}: {resumes:?} s, all in {:.1} and {:.1} s",
            with.elapsed_s, without.elapsed_s
        );
        assert!(resumes[0] < 0.1, "{length}: {resumes:?}");
        assert!(resumes[1] > 1.0, "{length}: {resumes:?}");
    }
}

/// The mobile's own sender is frozen: it has no timeout, and its window is as it was.
#[test]
fn a_frozen_sender_at_the_mobile_has_no_timeout() {
    for stack in [OBEDIENT, CUBIC, BBR] {
        for gateway in ["none", "m-tcp", "m-tcp-adaptive"] {
            let [with, without] =
                ["m-tcp", "none"].map(|half| silent_outage(gateway, half, "upload", stack, "10 s"));
            let report = [&with, &without].map(|run| (resume_s(run), run.timeouts, run.elapsed_s));
            println!("upload, {stack}, {gateway}: {report:?}");
            assert_eq!(with.timeouts, Some(0), "{stack}, {gateway}: {report:?}");
            assert!(without.timeouts > Some(2), "{stack}, {gateway}: {report:?}");
            assert!(report[0].0 < 0.15, "{stack}, {gateway}: {report:?}");
            assert!(
                with.elapsed_s < without.elapsed_s,
                "{stack}, {gateway}: {report:?}"
            );
        }
    }
}

/// Nobody is there who would understand the mark, or somebody who knows without it.
#[test]
fn the_mobiles_half_harms_no_download_without_a_supervisor_host() {
    for stack in [OBEDIENT, CUBIC, BBR] {
        for gateway in ["none", "hold", "m-tcp-adaptive"] {
            for length in ["200 ms", "3 s", "10 s"] {
                let [with, without] = ["m-tcp", "none"]
                    .map(|half| silent_outage(gateway, half, "download", stack, length));
                let report = [&with, &without].map(|run| (resume_s(run), run.elapsed_s));
                println!("download, {stack}, {gateway}, {length}: {report:?}");
                assert!(
                    with.elapsed_s < 1.02 * without.elapsed_s,
                    "{stack}, {gateway}, {length}: {report:?}"
                );
            }
        }
    }
}
