//! Several links in a row, beside the same in the simulator.

use crate::support::{assert_done, example, in_sim, run, run_lab, scenario, was_late};
use outlast_lab::Lab;

const DEADLINE: &str = "[run]\ndeadline = \"60 s\"\n";

#[test]
fn the_delays_of_the_links_add_up() {
    // 15 exchanges of a round trip each, 2 * (10 + 15 + 20) ms.
    for ip in ["ipv4", "ipv6"] {
        let text = format!(
            "[link]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n\
             [[hops]]\nrate = \"50 Mbit/s\"\ndelay = \"15 ms\"\n\
             [[hops]]\nrate = \"unlimited\"\ndelay = \"5 ms\"\n[hops.downlink]\ndelay = \"35 ms\"\n\
             [workload]\nkind = \"request-response\"\nrequests = 15\nresponse = \"500 B\"\n\
             [stack]\nip = \"{ip}\"\n{DEADLINE}"
        );
        let Some(report) = run(&text) else { return };
        let (lab, sim) = (&report.result, &in_sim(&text));
        for result in [lab, sim] {
            assert_done(result);
            assert_eq!(result.hops.len(), 2);
            assert!((result.settings.round_trip_s - 0.09).abs() < 1e-9);
            assert!(result.elapsed_s >= 15.0 * 0.09, "{} s", result.elapsed_s);
        }
        assert_eq!(lab.ideal_s, sim.ideal_s);
        let ratio = lab.elapsed_s / sim.elapsed_s;
        assert!(
            ratio > 0.98 && (ratio < 1.5 || was_late(&report)),
            "{ratio}"
        );
    }
}

#[test]
fn the_narrowest_link_sets_the_pace_and_drops() {
    let chain = |rate: &str| {
        format!(
            "[link]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n\
             [[hops]]\nrate = \"{rate}\"\ndelay = \"5 ms\"\nqueue = 10\n\
             [[hops]]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n\
             [workload]\nkind = \"bulk\"\nbytes = \"700 kB\"\n{DEADLINE}"
        )
    };
    let Some(narrow) = run(&chain("4 Mbit/s")) else {
        return;
    };
    let Some(wide) = run(&chain("40 Mbit/s")) else {
        return;
    };
    let sim = in_sim(&chain("4 Mbit/s"));
    for result in [&narrow.result, &sim] {
        assert_done(result);
        assert!(result.elapsed_s > 1.4, "{} s", result.elapsed_s);
        assert!(result.hops[0].dropped_packets.queue_full > 0, "{result:?}");
        let elsewhere = [
            result.dropped_packets.expect("counted"),
            result.hops[1].dropped_packets,
        ];
        assert!(elsewhere.iter().all(|drops| drops.queue_full == 0));
    }
    let took = [&narrow, &wide].map(|report| report.result.elapsed_s);
    assert!(took[1] < 1.4 || was_late(&wide), "{took:?}");
    let ratio = took[0] / sim.elapsed_s;
    assert!(ratio > 0.8 && (ratio < 1.6 || was_late(&narrow)), "{ratio}");
}

/// A download over three links of which the second goes away for five seconds, with a gateway at
/// its end towards the fixed host.
///
/// At 30 ms and with a short queue the retransmission timeout is between 0.23 s and 0.29 s, and
/// doubles each time: counted from link-down, the sender tries for the fourth time before 4.4 s
/// have passed, and for the fifth not before 7.1 s.
fn interrupted(mechanism: &str) -> String {
    format!(
        "[link]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n\
         [[hops]]\nrate = \"8 Mbit/s\"\ndelay = \"5 ms\"\nqueue = 8\nfixed_end = \"{mechanism}\"\n\
         [hops.outages]\nprocess = \"single\"\nstart = \"500 ms\"\nlength = \"5 s\"\n\
         [[hops]]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n{DEADLINE}"
    )
}

#[test]
fn a_gateway_at_a_hop_resumes_what_its_link_interrupts() {
    let (held, control) = std::thread::scope(|scope| {
        let held = scope.spawn(|| run(&interrupted("hold")));
        let control = scope.spawn(|| run(&interrupted("none")));
        (
            held.join().expect("no panic"),
            control.join().expect("no panic"),
        )
    });
    let (Some(held), Some(control)) = (held, control) else {
        return;
    };
    let is_late = was_late(&held);
    let (held, control) = (&held.result, &control.result);
    let sim = |mechanism| in_sim(&interrupted(mechanism));
    for (held, control) in [(held, control), (&sim("hold"), &sim("none"))] {
        assert_done(held);
        assert_done(control);
        assert!(held.outages.is_empty(), "those of [link], which has none");
        assert_eq!((held.ideal_s, held.utilisation), (None, None));
        assert!(held.hops[0].injected_packets > 0, "{held:?}");
        assert_eq!(held.injected_packets + control.injected_packets, 0);
        assert_eq!(held.hops[1].injected_packets, 0);
        assert_eq!(control.hops[0].injected_packets, 0);
        assert!(control.hops[0].dropped_packets.link_down > 0);
        // 1.03 s of sending and 5 s of outage.
        assert!(held.elapsed_s > 6.0, "{} s", held.elapsed_s);
        assert!(
            control.elapsed_s > held.elapsed_s + 0.7 || is_late,
            "{} s and {} s",
            held.elapsed_s,
            control.elapsed_s
        );
    }
    let ratio = held.elapsed_s / sim("hold").elapsed_s;
    assert!(ratio > 0.95 && (ratio < 1.4 || is_late), "{ratio}");
}

#[test]
fn strangers_cross_the_link_that_they_are_on_and_no_other() {
    let text = format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
         [[hops]]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
         [[traffic]]\npattern = \"constant\"\nrate = \"20 Mbit/s\"\nhop = 1\nend = \"500 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n{DEADLINE}"
    );
    let place = tempfile::tempdir().expect("directory");
    let lab = Lab::new(&scenario(&text), 0).expect("the lab has it");
    let Some(report) = run_lab(&lab.with_capture(place.path(), "chain")) else {
        return;
    };
    let sim = in_sim(&text);
    for result in [&report.result, &sim] {
        assert_done(result);
        let source = result.traffic[0];
        assert_eq!(source.sent_packets, sim.traffic[0].sent_packets);
        assert!(source.received_packets < source.sent_packets);
        assert_eq!(result.dropped_packets.expect("counted").queue_full, 0);
        assert!(result.hops[0].dropped_packets.queue_full > 0);
    }
    let names: Vec<_> = report
        .captures
        .iter()
        .map(|file| file.file_name())
        .collect();
    let expected = ["fixed", "mobile", "hop1.fixed", "hop1.mobile"];
    let expected = expected.map(|end| format!("chain.{end}.pcapng"));
    assert_eq!(names, expected.each_ref().map(|name| Some(name.as_ref())));
    let size = |file: usize| {
        std::fs::metadata(&report.captures[file])
            .expect("written")
            .len()
    };
    assert!((0..4).all(|file| size(file) > 1_000_000));
    // The strangers' half a second of 20 Mbit/s was seen at one link only.
    assert!(size(2) > size(0) + 1_000_000, "{} and {}", size(2), size(0));
}

#[test]
fn the_example_runs() {
    let text = example("chain.toml");
    let Some(report) = run(&text) else { return };
    for result in [&report.result, &in_sim(&text)] {
        assert_done(result);
        assert_eq!((result.hops.len(), result.traffic.len()), (2, 1));
        assert!(result.outages[0].resume_s.is_some(), "{result:?}");
    }
}
