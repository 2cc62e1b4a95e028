//! Strangers' datagrams on the lab's link, beside the same in the simulator.

use crate::support::{assert_done, example, in_sim, run, was_late};
use outlast_scenario::result::RunResult;

const LINK: &str = "[link]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 40\n";
const DEADLINE: &str = "[run]\ndeadline = \"60 s\"\nseed = 7\n";

fn download(bytes: &str, more: &str) -> String {
    format!("{LINK}[workload]\nkind = \"bulk\"\nbytes = \"{bytes}\"\n{more}{DEADLINE}")
}

#[test]
fn strangers_send_the_very_same_packets_as_in_the_simulator() {
    // Over before the transfer is: what is sent is then a matter of the seed alone.
    let sources = "[[traffic]]\npattern = \"constant\"\nrate = \"1 Mbit/s\"\nend = \"800 ms\"\n\
         [[traffic]]\npattern = \"poisson\"\nrate = \"1 Mbit/s\"\npacket = \"300 B\"\n\
         direction = \"upload\"\nend = \"900 ms\"\n\
         [[traffic]]\npattern = \"on-off\"\nrate = \"1 Mbit/s\"\npacket = \"200 B\"\non = \"100 ms\"\n\
         off = \"50 ms\"\nbegin = \"100 ms\"\nend = \"900 ms\"\n";
    for ip in ["ipv4", "ipv6"] {
        let text = download("1200 kB", &format!("{sources}[stack]\nip = \"{ip}\"\n"));
        let Some(lab) = run(&text) else { return };
        let sim = in_sim(&text);
        assert_done(&lab.result);
        let sent = |result: &RunResult| -> Vec<u64> {
            let sources = result.traffic.iter();
            sources.map(|source| source.sent_packets).collect()
        };
        assert_eq!(sent(&lab.result), sent(&sim));
        assert!(sent(&sim).iter().all(|&packets| packets > 50), "{sim:?}");
        // The way up is all but empty: whatever goes that way arrives.
        let upload = lab.result.traffic[1];
        assert_eq!(upload.received_packets, upload.sent_packets);
        // Nothing of it came to the hosts, where it would count as delivered.
        assert_eq!(lab.result.bytes_received, Some(1_200_000));
    }
}

#[test]
fn strangers_take_their_share_as_in_the_simulator() {
    let half = "[[traffic]]\npattern = \"constant\"\nrate = \"4 Mbit/s\"\npacket = \"1 kB\"\n";
    let Some(shared) = run(&download("1 MB", half)) else {
        return;
    };
    let Some(alone) = run(&download("1 MB", "")) else {
        return;
    };
    assert!(alone.result.traffic.is_empty(), "nobody asked for it");
    let sim = in_sim(&download("1 MB", half));
    for result in [&shared.result, &alone.result, &sim] {
        assert_done(result);
    }
    // Half of the link is left: 2 s for the payload alone, in place of one.
    let took = [&shared, &alone].map(|report| report.result.elapsed_s);
    assert!(took[0] > 1.7, "{took:?}");
    assert!(took[1] < 1.5 || was_late(&alone), "{took:?}");
    let ratio = took[0] / sim.elapsed_s;
    assert!(ratio > 0.8 && (ratio < 1.6 || was_late(&shared)), "{ratio}");
}

#[test]
fn strangers_who_send_more_than_the_link_carries_lose_packets_and_go_on() {
    let flood = "[[traffic]]\npattern = \"poisson\"\nrate = \"16 Mbit/s\"\npacket = \"1 kB\"\n\
                 end = \"1 s\"\n";
    let text = download("300 kB", flood);
    let Some(lab) = run(&text) else { return };
    let sim = in_sim(&text);
    for (result, is_late) in [(&lab.result, was_late(&lab)), (&sim, false)] {
        assert_done(result);
        // Twice the link's rate for a second: it takes a second at most to carry half of it. A machine
        // that is late sends in crowds, for which the queue has less room.
        let flood = result.traffic[0];
        let share = flood.received_packets as f64 / flood.sent_packets as f64;
        let least = if is_late { 0.0 } else { 0.4 };
        assert!((least..0.56).contains(&share), "{flood:?}");
        let lost = flood.sent_packets - flood.received_packets;
        let drops = result.dropped_packets.expect("counted").queue_full;
        assert!(drops >= lost, "{drops} and {flood:?}");
        assert!(result.elapsed_s > 1.0, "it gets through afterwards");
    }
    assert_eq!(
        lab.result.traffic[0].sent_packets,
        sim.traffic[0].sent_packets
    );
}

#[test]
fn the_example_runs() {
    let text = example("strangers.toml");
    let Some(report) = run(&text) else { return };
    let (lab, sim) = (&report.result, &in_sim(&text));
    for result in [lab, sim] {
        assert_done(result);
        assert!(result.outages[0].resume_s.is_some(), "{result:?}");
        assert_eq!(result.traffic.len(), 2);
        assert!(
            result
                .traffic
                .iter()
                .all(|source| source.received_packets > 0)
        );
    }
}
