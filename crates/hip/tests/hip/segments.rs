//! What a host does to the TCP segments of its applications, whatever they look like: it may send the last one
//! again, with fresh timestamps and nothing else that is new.

use crate::common::{Faults, Network, address, inner};
use outlast_base::time::Duration;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TCP: u8 = 6;
const ICMPV6: u8 = 58;

/// An IPv6 header.
const HEADER: usize = 40;

/// A step of one of two hosts.
#[derive(Clone, Debug)]
enum Step {
    /// Its application sends a segment.
    Send(usize, Vec<u8>),
    /// It has another address, or none.
    Move(usize, Option<u8>),
    /// Its link is back.
    Link(usize),
    /// Time passes.
    Pass(u64),
}

/// A segment as TCP sends it, with few ports and numbers, so that they meet; with timestamps where it says so.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let fields = (0..3_u8, 0..3_u8, 0..4_u32, 0..4_u32);
    let rest = (any::<bool>(), any::<u32>(), any::<u32>(), 0..40_usize);
    let flags = prop_oneof![4 => Just(0x10_u8), 1 => any::<u8>()];
    (fields, rest, flags).prop_map(
        |((from, to, seq, ack), (has_timestamps, value, echo, length), flags)| {
            let mut segment = vec![0, from, 0, to];
            segment.extend_from_slice(&(seq * 20).to_be_bytes());
            segment.extend_from_slice(&(ack * 20).to_be_bytes());
            let words = if has_timestamps { 8 } else { 5 };
            segment.extend_from_slice(&[words << 4, flags, 1, 0, 0, 0, 0, 0]);
            if has_timestamps {
                segment.extend_from_slice(&[1, 1, 8, 10]);
                segment.extend_from_slice(&value.to_be_bytes());
                segment.extend_from_slice(&echo.to_be_bytes());
            }
            segment.resize(segment.len() + length, seq as u8);
            segment
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..70);
    prop_oneof![
        6 => (0..2_usize, plausible()).prop_map(|(host, segment)| Step::Send(host, segment)),
        2 => (0..2_usize, bytes).prop_map(|(host, bytes)| Step::Send(host, bytes)),
        2 => (0..2_usize, proptest::option::of(1..200_u8)).prop_map(|(host, at)| Step::Move(host, at)),
        1 => (0..2_usize).prop_map(Step::Link),
        3 => prop_oneof![0..60_u64, 900..4_000_u64].prop_map(Step::Pass),
    ]
}

/// A segment without what a host may change: timestamps, where they are laid out as usual or anywhere else among
/// the options, and the checksum.
fn outline(segment: &[u8]) -> Vec<u8> {
    let mut outline = segment.to_vec();
    let options_end = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    if let Some(checksum) = outline.get_mut(16..18) {
        checksum.fill(0);
    }
    let end = options_end.min(outline.len());
    if let Some(options) = outline.get_mut(20..end) {
        let mut at = 0;
        while let Some(&kind) = options.get(at) {
            let length = match (kind, options.get(at + 1)) {
                (0, _) => break,
                (1, _) => 1,
                (_, Some(&length)) if length >= 2 => usize::from(length),
                _ => break,
            };
            if let (8, 10, Some(values)) = (kind, length, options.get_mut(at + 2..at + 10)) {
                values.fill(0);
            }
            at += length;
        }
    }
    outline
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_timestamps_is_new(
        seed: u64,
        loss in 0.0..0.3,
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let mut network = Network::pair(seed);
        network.connect(0, 1);
        network.run(Duration::from_secs(1));
        network.faults = Faults { loss, ..Faults::default() };
        let mut said = [BTreeSet::new(), BTreeSet::new()];
        for step in steps {
            match step {
                Step::Send(from, segment) => {
                    let mut packet = inner(network.hit(from), network.hit(1 - from), &segment);
                    packet[6] = TCP;
                    said[from].insert(outline(&segment));
                    let now = network.now;
                    network.nodes[from].host.handle_data(now, &packet);
                    network.drain(from);
                }
                Step::Move(host, at) => {
                    let at = at.map(|at| address(&format!("198.51.{host}.{at}")));
                    network.move_to(host, at.as_slice());
                }
                Step::Link(host) => {
                    let now = network.now;
                    network.nodes[host].host.handle_link(now);
                    network.drain(host);
                }
                Step::Pass(millis) => network.run(Duration::from_millis(millis)),
            }
        }
        network.run(Duration::from_secs(10));
        for node in 0..2 {
            let own = network.hit(node);
            for (_, packet) in &network.nodes[node].delivered {
                let body = &packet[HEADER..];
                match packet[6] {
                    TCP => prop_assert!(said[1 - node].contains(&outline(body)), "{:?}", body),
                    ICMPV6 => {
                        // The error is about a segment of this host's own, which it quotes from its header on.
                        let quoted = &body[8..];
                        prop_assert_eq!(body[0], 1);
                        prop_assert_eq!(&quoted[8..24], &own.0[..]);
                        let ports = &quoted[HEADER..HEADER + 4];
                        let is_own = said[node].iter().any(|segment| segment.starts_with(ports));
                        prop_assert!(is_own, "{:?}", ports);
                    }
                    other => prop_assert!(false, "protocol {}", other),
                }
            }
        }
    }
}
