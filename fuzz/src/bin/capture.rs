//! Any bytes as a capture of either format, given whole and in pieces; the outlines of its packets,
//! and a diagnosis of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_base::time::Instant;
use outlast_diagnosis::{Diagnosis, Limits};
use outlast_wire::capture::{Decoder, Step};
use outlast_wire::frame::{ip_in_frame, ips_in_frame};
use outlast_wire::outline::Outline;

/// Small, so that tables are full soon.
const LIMITS: Limits = Limits {
    connections: 4,
    paths: 40,
    silences: 4,
};

/// What is read when `chunk` bytes come at a time: time, length, bytes done with.
fn read(
    file: &[u8],
    chunk: usize,
    mut see: impl FnMut(Instant, Option<Outline>),
) -> Vec<(u128, usize)> {
    let mut decoder = Decoder::default();
    let (mut at, mut until) = (0, 0);
    let mut packets = Vec::new();
    loop {
        match decoder.decode(&file[at..until]) {
            Ok(Step::Packet { consumed, packet }) => {
                assert!(consumed > 0, "a packet has a header");
                at += consumed;
                packets.push((packet.time.as_nanos(), packet.data.len()));
                let ip = ip_in_frame(packet.link_type, packet.data);
                match ip {
                    Ok(ip) => assert!(ip.len() <= packet.data.len(), "a part of the frame"),
                    Err(why) => assert!(!why.to_string().is_empty(), "each reason has a name"),
                }
                let mut all =
                    ips_in_frame(packet.link_type, packet.data, packet.original_len as usize);
                if let (Ok(ip), Some(first)) = (ip, all.next()) {
                    assert_eq!(first.map(|first| first.bytes), Ok(ip), "the first of them");
                }
                assert!(
                    all.count() <= packet.data.len(),
                    "each takes some of the frame"
                );
                let outline = ip
                    .ok()
                    .and_then(|ip| Outline::of(ip, packet.original_len as usize));
                see(Instant::ZERO + packet.time, outline);
            }
            Ok(Step::Passed { consumed }) => {
                let end = at as u64 + consumed;
                if end > file.len() as u64 {
                    return packets;
                }
                at = end as usize;
                until = until.max(at);
            }
            Ok(Step::Need { bytes }) => {
                assert!(bytes > until - at, "more than there is");
                if until == file.len() {
                    return packets;
                }
                until = until.saturating_add(chunk).min(file.len());
            }
            Err(_) => return packets,
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut diagnosis = Diagnosis::new(LIMITS);
    let whole = read(data, usize::MAX, |at, outline| {
        if let Some(outline) = outline {
            diagnosis.handle_packet(at, 0, Default::default(), &outline);
        }
    });
    assert_eq!(whole, read(data, 61, |_, _| {}));
    let findings = diagnosis.finish();
    assert!(findings.outages.len() <= LIMITS.silences);
    for outage in findings.outages {
        assert!(
            outage
                .end
                .is_none_or(|end| outage.start <= end && outage.end_earliest <= end)
        );
        assert!(outage.start_earliest <= outage.start && outage.start <= outage.start_latest);
        assert!(
            outage
                .flows
                .iter()
                .all(|flow| flow.wasted.least <= flow.wasted.most)
        );
    }
});
