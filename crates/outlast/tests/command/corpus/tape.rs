//! Two hosts that speak TCP, written down packet by packet as somebody beside host A captures them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A packet of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Time of its capture, in microseconds from the beginning.
    pub(crate) at: u64,
    /// True if host A sent it, beside which the capture was made.
    pub(crate) is_sent: bool,
    /// True if a tunnel that carries it speaks IPv6.
    pub(crate) is_within_v6: bool,
    /// Its bytes from the IP header on.
    pub(crate) ip: Vec<u8>,
}

/// A host of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Host {
    A,
    B,
}

pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;
pub(crate) const PUSH: u8 = 24;
pub(crate) const FIN: u8 = 17;
/// There and back, in microseconds.
pub(crate) const TRIP: u64 = 20_000;
/// The payload of a packet of a transfer, in bytes.
pub(crate) const SEGMENT: u32 = 1_000;

/// A connection between the hosts, and what they have sent so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) port: u16,
    /// The next sequence number of either.
    pub(crate) next: [u32; 2],
    pub(crate) has_stamps: bool,
}

/// A segment, as far as it is not as usual.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) from: Host,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) payload: u32,
    pub(crate) window: u16,
    /// Its timestamp and the one that it echoes, in milliseconds.
    pub(crate) stamps: Option<(u32, u32)>,
}

/// A capture in the making.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    pub(crate) packets: Vec<Packet>,
    is_v6: bool,
    /// The last identification of either host.
    identifications: [u16; 2],
    /// The last octet of host B's address.
    pub(crate) peer: u8,
}

impl Tape {
    pub(crate) fn new(is_v6: bool) -> Self {
        Self {
            packets: Vec::new(),
            is_v6,
            identifications: [1_000, 5_000],
            peer: 20,
        }
    }

    /// An empty tape of the same hosts.
    pub(crate) fn clone_empty(&self) -> Self {
        Self {
            packets: Vec::new(),
            ..*self
        }
    }

    fn addresses(&self) -> [IpAddr; 2] {
        match self.is_v6 {
            false => [
                IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)),
                IpAddr::V4(Ipv4Addr::new(198, 51, 100, self.peer)),
            ],
            true => [
                IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 10)),
                IpAddr::V6(Ipv6Addr::new(
                    0x2001,
                    0xdb8,
                    2,
                    0,
                    0,
                    0,
                    0,
                    self.peer.into(),
                )),
            ],
        }
    }

    /// Lets a host's identification counter jump: other connections of the host use it, too.
    pub(crate) fn others_send(&mut self, host: Host, packets: u16) {
        let counter = &mut self.identifications[host as usize];
        *counter = counter.wrapping_add(packets);
    }

    /// Writes down a segment that passes at `at`.
    pub(crate) fn pass(&mut self, at: u64, connection: &Connection, segment: &Segment) {
        let tcp = tcp(connection.port, segment);
        let ip = self.ip(segment.from, 6, &tcp);
        self.put(at, segment.from, ip);
    }

    /// Writes down a datagram of UDP.
    pub(crate) fn datagram(&mut self, at: u64, from: Host) {
        let udp = [&[0x13, 0x88, 0x13, 0x88, 0, 28, 0, 0][..], &[7; 20]].concat();
        let ip = self.ip(from, 17, &udp);
        self.put(at, from, ip);
    }

    fn put(&mut self, at: u64, from: Host, ip: Vec<u8>) {
        self.packets.push(Packet {
            at,
            is_sent: from == Host::A,
            is_within_v6: self.is_v6,
            ip,
        });
    }

    fn ip(&mut self, from: Host, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let counter = &mut self.identifications[from as usize];
        *counter = counter.wrapping_add(1);
        let identification = *counter;
        let mut pair = self.addresses();
        if from == Host::B {
            pair.reverse();
        }
        ip(pair, protocol, identification, payload)
    }

    /// Opens a connection at `at`.
    pub(crate) fn open(&mut self, at: u64, port: u16, has_stamps: bool) -> Connection {
        let mut connection = Connection {
            port,
            next: [100, 900],
            has_stamps,
        };
        let syn = Segment {
            flags: SYN,
            ack: 0,
            ..connection.segment(at, Host::A, 0)
        };
        self.pass(at, &connection, &syn);
        connection.next[0] += 1;
        let answer = Segment {
            flags: SYN | ACK,
            ..connection.segment(at + TRIP, Host::B, 0)
        };
        self.pass(at + TRIP, &connection, &answer);
        connection.next[1] += 1;
        let last = connection.segment(at + TRIP + 100, Host::A, 0);
        self.pass(at + TRIP + 100, &connection, &last);
        connection
    }

    /// Lets `count` segments cross from `from`, each answered, one a round trip. Returns the time after the last.
    pub(crate) fn transfer(
        &mut self,
        mut at: u64,
        connection: &mut Connection,
        from: Host,
        count: u32,
    ) -> u64 {
        for _ in 0..count {
            self.send(at, connection, from);
            let answered = at + if from == Host::A { TRIP } else { 100 };
            self.answer(answered, connection, from);
            at += TRIP + 1_000;
        }
        at
    }

    /// Lets `from` send the next segment.
    pub(crate) fn send(&mut self, at: u64, connection: &mut Connection, from: Host) {
        let data = Segment {
            flags: PUSH,
            ..connection.segment(at, from, SEGMENT)
        };
        self.pass(at, connection, &data);
        connection.next[from as usize] += SEGMENT;
    }

    /// Lets the other host acknowledge all that `sender` has sent.
    pub(crate) fn answer(&mut self, at: u64, connection: &Connection, sender: Host) {
        let answer = connection.segment(at, sender.other(), 0);
        self.pass(at, connection, &answer);
    }

    /// Lets `from` repeat its last segment, which it sent first at `at`, so many times after it, in milliseconds.
    pub(crate) fn repeat(
        &mut self,
        at: u64,
        connection: &Connection,
        from: Host,
        after: &[u64],
    ) -> u64 {
        for after in after {
            let at = at + after * 1_000;
            let again = connection.again(at, from);
            self.pass(at, connection, &again);
        }
        at + after.last().copied().unwrap_or(0) * 1_000
    }
}

impl Host {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl Connection {
    /// The next segment of `from`, with so much payload.
    pub(crate) fn segment(&self, at: u64, from: Host, payload: u32) -> Segment {
        let now = (at / 1_000) as u32 + 10_000;
        Segment {
            from,
            seq: self.next[from as usize],
            ack: self.next[from.other() as usize],
            flags: ACK,
            payload,
            window: 64_240,
            stamps: self.has_stamps.then_some((now, now - 20)),
        }
    }

    /// The last segment of `from` once more.
    pub(crate) fn again(&self, at: u64, from: Host) -> Segment {
        let last = self.segment(at, from, SEGMENT);
        Segment {
            seq: last.seq - SEGMENT,
            flags: PUSH,
            ..last
        }
    }
}

/// An IP packet of version 4 or 6, as its addresses are.
pub(crate) fn ip(pair: [IpAddr; 2], protocol: u8, identification: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match pair {
        [IpAddr::V4(source), IpAddr::V4(destination)] => {
            out.extend([0x45, 0]);
            out.extend((20 + payload.len() as u16).to_be_bytes());
            out.extend(identification.to_be_bytes());
            out.extend([0x40, 0, 64, protocol, 0, 0]);
            out.extend(source.octets());
            out.extend(destination.octets());
            let sum: u32 = out
                .chunks(2)
                .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
                .sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
            out[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        [IpAddr::V6(source), IpAddr::V6(destination)] => {
            out.extend([0x60, 0, 0, 0]);
            out.extend((payload.len() as u16).to_be_bytes());
            out.extend([protocol, 64]);
            out.extend(source.octets());
            out.extend(destination.octets());
        }
        pair => unreachable!("one family: {pair:?}"),
    }
    out.extend(payload);
    out
}

fn tcp(port: u16, segment: &Segment) -> Vec<u8> {
    let ports = match segment.from {
        Host::A => [port, 445],
        Host::B => [445, port],
    };
    let words = 5 + if segment.stamps.is_some() { 3 } else { 0 };
    let mut out = Vec::new();
    out.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    out.extend(segment.seq.to_be_bytes());
    out.extend(segment.ack.to_be_bytes());
    out.extend([words << 4, segment.flags]);
    out.extend(segment.window.to_be_bytes());
    out.extend([0; 4]);
    if let Some((value, echo)) = segment.stamps {
        out.extend([1, 1, 8, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    out.resize(out.len() + segment.payload as usize, b'x');
    out
}
