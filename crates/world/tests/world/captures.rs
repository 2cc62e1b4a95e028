//! What is written down of a run, and what others make of it.

use crate::support::{bulk, flow, link, outage, setup, with};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::{Counters, Way};
use outlast_tcp::profile::Profile;
use outlast_wire::Packet;
use outlast_wire::pcapng::{Block, Reader};
use outlast_wire::tcp::UserTimeout;
use outlast_world::trace::{Cause, Fate, variables_csv};
use outlast_world::{IpVersion, Outcome, Recording, Side, Stack, Workload, World};
use std::io::ErrorKind;
use std::process::Command;

fn recorded(profile: &'static Profile, ip: IpVersion) -> Outcome {
    recorded_with(PathMechanismKind::Hold, profile, ip)
}

fn recorded_with(
    mechanism: PathMechanismKind,
    profile: &'static Profile,
    ip: IpVersion,
) -> Outcome {
    let stack = Stack {
        profile,
        ..Stack::default()
    };
    recorded_stack(mechanism, stack, ip)
}

fn recorded_stack(mechanism: PathMechanismKind, stack: Stack, ip: IpVersion) -> Outcome {
    let mut link = link();
    link.outages = outage(Duration::from_millis(300), Duration::from_secs(2));
    link.to_mobile.loss = 0.01;
    let workload = bulk(600_000, Way::ToMobile);
    let mut setup = with(setup(link, workload), mechanism);
    setup.flows = vec![flow(workload, stack)];
    setup.ip = ip;
    setup.recording = Recording {
        traced_packets: Some(100_000),
        captures: true,
        variables: true,
    };
    World::new(setup).run()
}

fn packets(capture: &[u8]) -> Vec<(Duration, Packet)> {
    let blocks = Reader::new(capture).map(|block| block.expect("what was written can be read"));
    blocks
        .filter_map(|block| match block {
            Block::Packet(packet) => {
                let bytes = packet.data.to_vec().into();
                Some((packet.time, Packet::parse(bytes).expect("an IP packet")))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn captures_hold_every_packet_with_right_checksums_in_order() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        let outcome = recorded(Profile::ALL[7], ip);
        let captures = outcome.captures.as_ref().expect("asked for");
        for side in Side::BOTH {
            let seen = packets(&captures[side.index()]);
            assert!(seen.is_sorted_by_key(|(time, _)| *time));
            assert!(seen.iter().all(|(_, packet)| packet.checksums_ok()));
            let left = |packet: &Packet| packet.header().ip.source == side.address(ip);
            let outbound = seen.iter().filter(|(_, packet)| left(packet)).count() as u64;
            assert!(outbound > 0 && outbound < seen.len() as u64);
        }
        let total: usize = captures.iter().map(|capture| packets(capture).len()).sum();
        let counts = outcome.counts;
        let crossed: u64 = outcome.link.iter().map(|way| way.delivered).sum();
        assert_eq!(
            total as u64,
            counts.sent + counts.resent + counts.rereceived + crossed
        );
    }
}

#[test]
fn who_has_a_user_timeout_tells_the_peer() {
    // RFC 5482, section 3: in the SYN, and again in a segment behind the handshake.
    let workload = bulk(100_000, Way::ToMobile);
    let told = |user_timeout| {
        let stack = Stack {
            user_timeout,
            ..Stack::default()
        };
        let mut setup = setup(link(), workload);
        setup.flows = vec![flow(workload, stack)];
        setup.recording.captures = true;
        let outcome = World::new(setup).run();
        let captures = outcome.captures.expect("asked for");
        Side::BOTH.map(|side| {
            let seen = packets(&captures[side.index()]);
            let own = seen.iter().filter_map(|(_, packet)| {
                let is_own = packet.header().ip.source == side.address(IpVersion::V4);
                packet.tcp().filter(|_| is_own)
            });
            own.filter_map(|tcp| tcp.options.user_timeout)
                .map(UserTimeout::as_duration)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(told(None), [vec![], vec![]]);
    let patience = Duration::from_secs(600);
    for told in told(Some(patience)) {
        assert!(
            !told.is_empty() && told.iter().all(|told| *told == patience),
            "{told:?}"
        );
    }
}

#[test]
fn the_trace_tells_what_became_of_each_packet() {
    let outcome = recorded(Profile::ALL[7], IpVersion::V4);
    let trace = outcome.trace.as_ref().expect("asked for");
    let fates =
        |of: fn(&Fate) -> bool| trace.packets().iter().filter(|p| of(&p.fate)).count() as u64;
    assert_eq!(
        fates(|fate| matches!(fate, Fate::Arrived(_))),
        outcome.counts.received
    );
    assert_eq!(
        fates(|fate| matches!(fate, Fate::Taken(_))),
        outcome.counts.taken
    );
    let dropped: u64 = outcome.link.iter().map(Counters::dropped_in_all).sum();
    assert_eq!(fates(|fate| matches!(fate, Fate::Dropped(..))), dropped);
    assert_eq!(trace.carrier().len(), 2);
}

#[test]
fn variables_have_a_row_for_each_acknowledgement_and_timeout() {
    let outcome = recorded(Profile::ALL[7], IpVersion::V4);
    let rows = outcome.variables.expect("asked for");
    assert!(rows.iter().all(|row| row.side == Side::Fixed));
    let acks = rows.iter().filter(|row| row.cause == Cause::Ack);
    assert!(acks.count() > 100);
    assert!(
        rows.iter()
            .any(|row| matches!(row.cause, Cause::Timeout(_)))
    );
    assert!(
        rows.iter().any(|row| row.variables.ssthresh.is_some()),
        "something was lost"
    );
    let csv = variables_csv(&rows);
    assert_eq!(csv.lines().count(), rows.len() + 1);
    let columns = |line: &str| line.split(',').count();
    assert!(
        csv.lines().all(|line| columns(line) == 12),
        "{}",
        csv.lines().next().unwrap_or("")
    );
}

/// Lines that tshark prints of the packets in `file` that match `filter`.
fn tshark(file: &std::path::Path, filter: &str) -> Option<Vec<String>> {
    let output = Command::new("tshark")
        .args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ])
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
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn an_independent_judge_finds_the_captures_clean() {
    let directory = tempfile::tempdir().expect("a directory");
    for (ip, profile) in [(IpVersion::V4, 7), (IpVersion::V6, 7), (IpVersion::V4, 0)] {
        let outcome = recorded(Profile::ALL[profile], ip);
        let captures = outcome.captures.as_ref().expect("asked for");
        for capture in captures {
            let file = directory.path().join("capture.pcapng");
            std::fs::write(&file, capture).expect("it can be written");
            let odd =
                "_ws.malformed || tcp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\"";
            let Some(odd) = tshark(&file, odd) else {
                return;
            };
            assert!(odd.is_empty(), "{odd:?}");
            let good = "tcp.checksum.status == \"Good\"";
            let Some(good) = tshark(&file, good) else {
                return;
            };
            assert_eq!(good.len(), packets(capture).len());
        }
    }
}

#[test]
fn an_independent_judge_counts_as_many_retransmissions() {
    let directory = tempfile::tempdir().expect("a directory");
    for profile in Profile::ALL {
        let outcome = recorded_with(PathMechanismKind::None, profile, IpVersion::V4);
        let file = directory.path().join("capture.pcapng");
        let captures = outcome.captures.as_ref().expect("asked for");
        std::fs::write(&file, &captures[Side::Fixed.index()]).expect("it can be written");
        // At the sender's own end nothing comes out of order: what the judge calls so is a
        // retransmission that it takes for that by its timing.
        let again = "ip.src == 192.0.2.1 && tcp.len > 0 && (tcp.analysis.retransmission || \
                     tcp.analysis.fast_retransmission || tcp.analysis.spurious_retransmission || \
                     tcp.analysis.out_of_order)";
        let Some(again) = tshark(&file, again) else {
            return;
        };
        let counted = outcome.flows[0].sender().retransmitted_segments;
        assert!(counted > 0, "{}: 1 % is lost", profile.name);
        assert_eq!(again.len() as u64, counted, "{}", profile.name);
    }
}

/// Duplicate acknowledgements of `side` by the judge's count, from a capture at its own end.
fn judged_duplicates(directory: &std::path::Path, outcome: &Outcome, side: Side) -> Option<u64> {
    let file = directory.join("capture.pcapng");
    let captures = outcome.captures.as_ref().expect("asked for");
    std::fs::write(&file, &captures[side.index()]).expect("it can be written");
    let address = side.address(IpVersion::V4);
    let filter = format!("ip.src == {address} && tcp.analysis.duplicate_ack");
    Some(tshark(&file, &filter)?.len() as u64)
}

/// Wireshark's definition: nothing in it, number and window as in the segment before, window not
/// zero, none of SYN, FIN and RST.
#[test]
fn an_independent_judge_counts_as_many_duplicate_acknowledgements() {
    let directory = tempfile::tempdir().expect("a directory");
    for profile in Profile::ALL {
        for sack in [true, false] {
            let outcome = recorded_stack(
                PathMechanismKind::None,
                Stack {
                    profile,
                    sack: Some(sack),
                    ..Stack::default()
                },
                IpVersion::V4,
            );
            let Some(theirs) = judged_duplicates(directory.path(), &outcome, Side::Mobile) else {
                return;
            };
            let ours = outcome.flows[0].endpoints[Side::Mobile.index()].duplicate_acks;
            assert!(ours > 0, "{}: 1 % is lost", profile.name);
            assert_eq!(theirs, ours, "{}, SACK {sack}", profile.name);
        }
    }
}

/// Both hosts send data in turn, and lose some of it.
///
/// What a data segment acknowledges counts as the segment before.
#[test]
fn an_independent_judge_counts_as_many_duplicate_acknowledgements_of_both_hosts() {
    let directory = tempfile::tempdir().expect("a directory");
    for profile in Profile::ALL {
        for sack in [true, false] {
            let mut link = link();
            link.to_mobile.loss = 0.02;
            link.to_fixed.loss = 0.02;
            let workload = Workload::RequestResponse {
                requests: 12,
                request: ByteCount(60_000),
                response: ByteCount(60_000),
                think: Duration::ZERO,
            };
            let mut setup = setup(link, workload);
            let stack = Stack {
                profile,
                sack: Some(sack),
                ..Stack::default()
            };
            setup.flows = vec![flow(workload, stack)];
            setup.recording.captures = true;
            let outcome = World::new(setup).run();
            for side in Side::BOTH {
                let Some(theirs) = judged_duplicates(directory.path(), &outcome, side) else {
                    return;
                };
                let ours = outcome.flows[0].endpoints[side.index()].duplicate_acks;
                let what = format!("{}, SACK {sack}, {side:?}", profile.name);
                assert!(ours > 0, "{what}: 2 % is lost");
                assert_eq!(theirs, ours, "{what}");
            }
        }
    }
}
