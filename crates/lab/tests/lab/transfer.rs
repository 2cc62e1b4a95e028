//! Bulk transfers over a link that stays up, or loses packets.

use crate::support::run;
use outlast_base::time::Duration;
use outlast_lab::RunReport;

fn assert_arrived(report: &RunReport, bytes: u64) {
    let result = &report.result;
    assert!(result.completed, "{:?}", result.error);
    assert_eq!(result.intact, Some(true));
    assert_eq!(result.bytes_received, Some(bytes));
    assert!(result.error.is_none() && !result.user_timeout_abort);
    assert!(result.elapsed_s > 0.0);
}

/// A lateness of the link beyond this may make a sender time out.
const TOLERABLE: Duration = Duration::from_millis(50);

/// A short download or upload over 20 Mbit/s and 10 ms.
fn transfer(direction: &str, ip: &str) -> Option<RunReport> {
    run(&format!(
        "[link]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nqueue = 100\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\ndirection = \"{direction}\"\n\
         [stack]\nip = \"{ip}\"\n[run]\ndeadline = \"2 min\"\n"
    ))
}

#[test]
fn transfers_arrive_intact_both_ways_on_ipv4_and_ipv6() {
    for direction in ["download", "upload"] {
        for ip in ["ipv4", "ipv6"] {
            let Some(report) = transfer(direction, ip) else {
                return;
            };
            assert_arrived(&report, 1_000_000);
            // Nothing is lost, and nothing late unless the machine is.
            let drops = report.result.dropped_packets.expect("counted");
            assert_eq!((drops.loss, drops.link_down, drops.flushed), (0, 0, 0));
            let timeouts = report.result.timeouts.expect("counted");
            let is_late = report.effort.worst_delay > TOLERABLE;
            assert!(timeouts == 0 || is_late, "{direction} {ip}: {timeouts}");
            assert_eq!(report.result.injected_packets, 0);
            assert!(report.result.outages.is_empty());
            // No faster than the link, which carries headers too.
            assert!(
                report.result.elapsed_s >= 1e6 * 8.0 / 20e6,
                "{}",
                report.result.elapsed_s
            );
        }
    }
}

#[test]
fn transfers_arrive_intact_over_a_link_that_loses_doubles_and_reorders() {
    let report = run("[link]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n\
         loss = 0.01\nduplicate = 0.02\nreorder = 0.02\n\
         [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"3 min\"\n");
    let Some(report) = report else { return };
    assert_arrived(&report, 2_000_000);
    assert!(
        report
            .result
            .dropped_packets
            .is_some_and(|drops| drops.loss > 0)
    );
    assert!(
        report
            .result
            .retransmitted_bytes
            .is_some_and(|bytes| bytes > 0)
    );
    assert!(report.link[0].duplicated > 0 && report.link[0].reordered > 0);
}

#[test]
fn the_settings_of_the_stack_are_in_force_and_recorded() {
    let report = run(
        "[link]\nrate = \"20 Mbit/s\"\ndelay = \"2 ms\"\nmtu = 1400\n\
         [workload]\nkind = \"bulk\"\nbytes = \"200 kB\"\n\
         [stack]\ncongestion = \"reno\"\nsack = false\ntimestamps = false\nretries = 9\n",
    );
    let Some(report) = report else { return };
    assert_arrived(&report, 200_000);
    let tcp = &report.result.settings.tcp;
    assert_eq!(
        (tcp.congestion.as_str(), tcp.sack, tcp.timestamps),
        ("reno", false, false)
    );
    for (name, value) in [
        ("tcp_sack", "0"),
        ("tcp_timestamps", "0"),
        ("tcp_retries2", "9"),
    ] {
        let setting = (format!("net.ipv4.{name}"), value.to_owned());
        assert!(report.kernel_settings.contains(&setting), "{setting:?}");
    }
}
