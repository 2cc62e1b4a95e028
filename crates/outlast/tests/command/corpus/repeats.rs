//! Retransmissions of a tape, counted from its bytes as tshark counts them (`tcp.analysis.retransmission` and
//! `out_of_order`): what ends at or before the newest byte of its host, but for keep-alives.

use super::tape::{FIN, Packet, RST, SYN};
use std::collections::HashMap;

const TCP: u8 = 6;
/// The bit of FIN alone.
const ENDS: u8 = FIN & 1;

/// Addresses and port of a host.
type End = (Vec<u8>, u16);

/// State of one direction of a connection.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// Behind the newest byte.
    next: Option<u32>,
    is_finished: bool,
}

/// Retransmissions among `packets`, each as often as it was captured.
pub(crate) fn count(packets: &[Packet]) -> u64 {
    let mut sent: HashMap<(End, End), Sent> = HashMap::new();
    let mut count = 0;
    for Packet { ip, .. } in packets {
        let (protocol, addresses, segment) = match ip[0] >> 4 {
            4 => (ip[9], ip[12..20].chunks(4), &ip[20..]),
            _ => (ip[6], ip[8..40].chunks(16), &ip[40..]),
        };
        if protocol != TCP {
            continue;
        }
        let ports = segment[..4].chunks(2);
        let ports = ports.map(|port| u16::from_be_bytes([port[0], port[1]]));
        let mut ends = addresses.map(<[u8]>::to_vec).zip(ports);
        let (from, to) = (ends.next().expect("one"), ends.next().expect("another"));
        let seq = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        let (flags, payload) = (
            segment[13],
            segment.len() - usize::from(segment[12] >> 4) * 4,
        );
        let key = (from, to);
        let back = (key.1.clone(), key.0.clone());
        let is_over = [&key, &back].map(|way| sent.get(way).is_some_and(|way| way.is_finished));
        if flags & SYN != 0 && is_over == [true; 2] {
            sent.remove(&key);
            sent.remove(&back);
        }
        let controls = u32::from(flags & SYN != 0) + u32::from(flags & ENDS != 0);
        let len = payload as u32 + controls;
        let end = seq + len;
        let way = sent.entry(key).or_default();
        way.is_finished |= flags & ENDS != 0;
        let is_keep_alive = controls == 0 && payload <= 1 && way.next == Some(end);
        if len == 0 || flags & RST != 0 || is_keep_alive {
            continue;
        }
        match way.next {
            Some(next) if end <= next => count += 1,
            _ => way.next = Some(end),
        }
    }
    count
}
