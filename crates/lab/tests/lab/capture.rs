//! Captures and traces tell what happened to each packet.

use crate::support::{run_lab, scenario};
use bytes::Bytes;
use outlast_lab::trace::{Fate, Origin, TracedPacket};
use outlast_lab::{Lab, RunReport, Side};
use outlast_link::{DropReason, Way};
use outlast_wire::Packet;
use outlast_wire::pcapng::{Block, Direction, Reader};
use std::fs;
use std::time::Duration;

/// A packet of a capture file.
struct Captured {
    packet: Packet,
    direction: Direction,
    comment: String,
}

fn read(file: &std::path::Path) -> Vec<Captured> {
    let bytes = fs::read(file).expect("written");
    let mut last = None;
    let packets = Reader::new(&bytes).map(|block| block.expect("well-formed"));
    let packets = packets.filter_map(|block| match block {
        Block::Packet(packet) => {
            assert!(last <= Some(packet.time), "in the order of time");
            last = Some(packet.time);
            Some(Captured {
                packet: Packet::parse(Bytes::copy_from_slice(packet.data)).expect("an IP packet"),
                direction: packet.direction,
                comment: packet.comment.unwrap_or_default().into_owned(),
            })
        }
        Block::Section(_) | Block::Interface(_) => None,
    });
    packets.collect()
}

/// A run in which something was on the link when it went down.
///
/// A machine that stands still for a round trip just then lets the link run empty. Such a run is
/// repeated, but only if the link was late by that much.
fn run_until_it_flushes(lab: &Lab) -> Option<RunReport> {
    let round_trip = Duration::from_millis(20);
    for _ in 0..5 {
        let report = run_lab(lab)?;
        let drops = report.result.dropped_packets.expect("counted");
        if drops.flushed > 0 {
            return Some(report);
        }
        assert!(
            report.effort.worst_delay >= round_trip,
            "nothing was on the link when it went down: {drops:?}, {:?}",
            report.effort
        );
    }
    panic!("the machine stood still in each of five runs")
}

#[test]
fn both_ends_see_what_passes_them_and_what_became_of_it() {
    let scenario = scenario(
        "name = \"tunnel\"\n[link]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 40\n\
         [link.outages]\nprocess = \"single\"\nstart = \"400 ms\"\nlength = \"600 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"2 min\"\n",
    );
    let place = tempfile::tempdir().expect("directory");
    let lab = Lab::new(&scenario, 0).expect("the lab has it");
    let lab = lab
        .with_capture(place.path(), "run")
        .with_trace(Lab::TRACED_PACKETS);
    let Some(report) = run_until_it_flushes(&lab) else {
        return;
    };
    // That the machine is late harms nothing here.
    let is_harmless = |warning: &String| warning.starts_with("this machine is busy");
    assert!(
        report.warnings.iter().all(is_harmless),
        "{:?}",
        report.warnings
    );
    let result = &report.result;
    assert!(
        result.completed && result.intact == Some(true),
        "{:?}",
        result.error
    );

    let [fixed, mobile] = &report.captures[..] else {
        panic!("two files, not {:?}", report.captures)
    };
    let [fixed, mobile] = [fixed, mobile].map(|file| read(file));
    let count = |packets: &[Captured], direction, text: &str| {
        let matching = packets.iter().filter(|p| p.direction == direction);
        matching.filter(|p| p.comment.contains(text)).count() as u64
    };
    let drops = result.dropped_packets.expect("counted");
    let flushed = "dropped by the link: flushed when the link went down";
    let seen = [&fixed, &mobile].map(|packets| count(packets, Direction::Outbound, flushed));
    assert_eq!(seen[0] + seen[1], drops.flushed);
    for packets in [&fixed, &mobile] {
        assert!(
            packets
                .iter()
                .all(|captured| captured.packet.checksums_ok())
        );
        assert!(
            packets
                .iter()
                .any(|captured| captured.comment.contains("the link went up"))
        );
    }
    let resent = count(&fixed, Direction::Outbound, "sent by Outlast")
        + count(&mobile, Direction::Outbound, "sent by Outlast");
    let counts = report.counts;
    assert_eq!(resent, counts.resent);
    // What a gateway hands to its own host does not cross the link; whether it does is a matter of
    // which acknowledgements were on their way.
    assert_eq!(result.injected_packets, counts.resent + counts.rereceived);
    // What leaves the link at an end is what that end's capture has as received.
    let received = [&mobile, &fixed].map(|packets| {
        let inbound = |text| count(packets, Direction::Inbound, text);
        inbound("") - inbound("sent by Outlast")
    });
    assert_eq!(received, report.link.map(|way| way.delivered));

    let trace = report.trace.as_ref().expect("asked for");
    assert_eq!(trace.omitted(), 0);
    assert_eq!(
        trace
            .carrier()
            .iter()
            .map(|change| change.up)
            .collect::<Vec<_>>(),
        [false, true]
    );
    let traced = |way, test: &dyn Fn(Fate, Origin) -> bool| {
        let packets = trace.packets().iter().filter(|packet| packet.way == way);
        packets
            .filter(|packet| test(packet.fate, packet.origin))
            .count() as u64
    };
    let flushed = |fate, _| matches!(fate, Fate::Dropped(_, DropReason::Flushed));
    assert_eq!(
        Way::BOTH
            .map(|way| traced(way, &flushed))
            .iter()
            .sum::<u64>(),
        drops.flushed
    );
    let resent = |_, origin: Origin| origin.is_injected();
    assert_eq!(
        Way::BOTH
            .map(|way| traced(way, &resent))
            .iter()
            .sum::<u64>(),
        result.injected_packets
    );
    let handed = |packet: &&TracedPacket| matches!(packet.origin, Origin::Rereceived(_));
    let (handed, crossing): (Vec<_>, Vec<_>) = trace.packets().iter().partition(handed);
    assert_eq!(handed.len() as u64, counts.rereceived);
    assert!(
        crossing
            .iter()
            .all(|packet| packet.side() == Side::reached_by(packet.way).peer())
    );
    let started = report.started.expect("bytes were sent");
    let first = trace
        .packets()
        .iter()
        .find(|p| p.segment.is_some_and(|s| s.payload_len > 0));
    assert_eq!(first.map(|packet| packet.at), Some(started));
}

#[test]
fn both_hosts_tell_each_other_of_the_user_timeout() {
    let scenario = scenario(
        "[link]\nrate = \"8 Mbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"200 kB\"\n\
         [outlast]\nuser_timeout = \"40 s\"\n[run]\ndeadline = \"2 min\"\n",
    );
    let place = tempfile::tempdir().expect("directory");
    let lab = Lab::new(&scenario, 0).expect("the lab has it");
    let Some(report) = run_lab(&lab.with_capture(place.path(), "run")) else {
        return;
    };
    let is_untold = |warning: &&String| warning.contains("do not tell each other");
    if let Some(warning) = report.warnings.iter().find(is_untold) {
        return crate::support::skip(warning);
    }
    crate::support::assert_done(&report.result);
    let [own, _] = &report.captures[..] else {
        panic!("two files: {:?}", report.captures)
    };
    let packets = read(own);
    for direction in [Direction::Outbound, Direction::Inbound] {
        let sent = packets
            .iter()
            .filter(|captured| captured.direction == direction);
        let told = sent.filter_map(|captured| {
            let option = captured.packet.tcp()?.options.user_timeout?;
            Some(option.as_duration().as_secs())
        });
        let told: Vec<_> = told.collect();
        // The SYN, what comes after it, and no more than a window's worth of packets.
        assert!((2..=20).contains(&told.len()), "{direction:?}: {told:?}");
        assert!(told.iter().all(|told| *told == 40), "{told:?}");
    }
}
