//! What Wireshark's analyser makes of a closed window, beside the endpoints' own account.
//!
//! The receiver's application does not read for a while, so that the window closes, is probed, and
//! opens again. The sender's end is captured; the way back takes no time.

extern crate std;

use crate::common::{Pair, config};
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_link::{LinkConfig, PipeConfig};
use outlast_tcp::profile::Profile;
use outlast_wire::pcapng::{Encoder, EnhancedPacket, Section};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::string::{String, ToString};
use std::vec::Vec;

const BYTES: u64 = 200_000;
/// The receive buffer in full segments: nothing is left over that a persist timer would send.
const BUFFER: u32 = 20;

/// A transfer during which nothing is read for 20 s.
fn pause(profile: &'static Profile) -> Pair {
    let at_once = PipeConfig {
        rate: None,
        delay: Duration::ZERO,
        ..PipeConfig::default()
    };
    // Segments do not come at one instant, or their acknowledgements would be the same.
    let one_by_one = PipeConfig {
        rate: BitRate::from_bits_per_second(10_000_000),
        ..at_once
    };
    let link = LinkConfig {
        to_mobile: one_by_one,
        to_fixed: at_once,
        ..LinkConfig::default()
    };
    let full = if profile.offers.timestamps {
        1_448
    } else {
        1_460
    };
    let mut client = config(profile);
    client.send_buffer = Some(BYTES);
    let mut server = client.mirrored();
    server.receive_buffer = Some(BUFFER * full);
    let mut pair = Pair::new(client, server, link).recording();
    pair.reads = false;
    pair.write(BYTES);
    pair.run_until(pair.now + Duration::from_secs(20));
    assert!(pair.server.received() < BYTES, "the window is closed");
    pair.reads = true;
    pair.read();
    pair.drain();
    assert!(pair.run_to(BYTES, Duration::from_secs(60)));
    pair.run_until(pair.now + Duration::from_secs(1));
    pair
}

fn write_capture(pair: &Pair, file: &Path) {
    let section = Section::of_application("outlast");
    let mut encoder = Encoder::new(&section);
    let interface = encoder.interface("server");
    for sent in pair.sent.iter().flatten() {
        let time = Duration::from_nanos(sent.at.as_nanos());
        encoder.packet(&EnhancedPacket::new(
            interface,
            time,
            &sent.packet.to_bytes(),
        ));
    }
    std::fs::write(file, encoder.take()).expect("it can be written");
}

/// How many packets in `file` match `filter`; `None` without tshark.
fn tshark(file: &Path, filter: &str) -> Option<u64> {
    let output = Command::new("tshark")
        .args(["-Y", filter, "-r"])
        .arg(file)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            outlast_skip::skip("tshark is not installed");
            return None;
        }
        output => output.expect("tshark can be started"),
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    Some(text.lines().count() as u64)
}

#[test]
fn an_independent_judge_counts_as_many_zero_windows_and_probes() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("capture.pcapng");
    for profile in Profile::ALL {
        let pair = pause(profile);
        write_capture(&pair, &file);
        let (client, server) = (pair.client.counters(), pair.server.counters());
        let from = |address: &str, what: &str| format!("ip.src == {address} && {what}");
        let checks = [
            (
                "zero windows",
                from("192.0.2.2", "tcp.analysis.zero_window"),
                server.zero_windows,
            ),
            // A probe without data, of a number that is acknowledged already, is what the judge
            // knows as a keepalive.
            (
                "probes",
                from(
                    "192.0.2.1",
                    "(tcp.analysis.zero_window_probe || tcp.analysis.keep_alive)",
                ),
                client.window_probes,
            ),
            (
                "duplicate acknowledgements",
                from("192.0.2.2", "tcp.analysis.duplicate_ack"),
                server.duplicate_acks,
            ),
            (
                "filled windows",
                from("192.0.2.1", "tcp.analysis.window_full"),
                pair.filled,
            ),
        ];
        assert!(server.zero_windows > 0, "{}", profile.name);
        assert!(client.window_probes > 0, "{}", profile.name);
        for (what, filter, ours) in checks {
            let Some(theirs) = tshark(&file, &filter) else {
                return;
            };
            assert_eq!(theirs, ours, "{}: {what}", profile.name);
        }
    }
}

#[test]
fn the_capture_is_sound() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("capture.pcapng");
    let pair = pause(Profile::ALL[7]);
    write_capture(&pair, &file);
    let Some(odd) = tshark(&file, "_ws.malformed || tcp.analysis.lost_segment") else {
        return;
    };
    assert_eq!(odd, 0);
    let packets: Vec<_> = pair.sent.iter().flatten().collect();
    assert_eq!(tshark(&file, "tcp"), Some(packets.len() as u64));
}
