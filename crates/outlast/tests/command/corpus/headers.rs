//! Headers in front of an IP packet in a capture: a row for each link layer and tunnel.

use super::tape::{Packet, ip};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A way to wrap packets.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) name: &'static str,
    pub(crate) link_type: u32,
    pub(crate) wrap: fn(&Packet) -> Vec<u8>,
}

const fn header(name: &'static str, link_type: u32, wrap: fn(&Packet) -> Vec<u8>) -> Header {
    Header {
        name,
        link_type,
        wrap,
    }
}

/// Every header of a link or tap that is read.
pub(crate) const READ: [Header; 67] = [
    header("Ethernet", 1, |packet| ethernet(packet, &[])),
    header("Ethernet, padded", 1, |packet| {
        [ethernet(packet, &[]), vec![0xee; 46]].concat()
    }),
    header("VLAN", 1, |packet| ethernet(packet, &hex("8100 0005"))),
    header("VLAN in VLAN", 1, |packet| {
        ethernet(packet, &hex("88a8 0005 8100 0006"))
    }),
    header("LLC/SNAP", 1, |packet| {
        let inner = llc(packet);
        let length = (inner.len() as u16).to_be_bytes();
        [&addresses(packet)[..], &length, &inner].concat()
    }),
    header("MPLS", 1, |packet| {
        let labels = hex("8847 00010040 00011140");
        [&addresses(packet)[..], &labels, &packet.ip].concat()
    }),
    header("MPLS pseudowire", 1, |packet| {
        let labels = hex("8847 00011140 00000000");
        [&addresses(packet)[..], &labels, &ethernet(packet, &[])].concat()
    }),
    header("PPPoE", 1, |packet| {
        let length = (packet.ip.len() as u16 + 2).to_be_bytes();
        let front = [&hex("8864 1100 0001")[..], &length, &ppp(packet)].concat();
        [&addresses(packet)[..], &front, &packet.ip].concat()
    }),
    header("backbone bridging", 1, |packet| {
        let front = hex("88e7 00000007");
        [&addresses(packet)[..], &front, &ethernet(packet, &[])].concat()
    }),
    header("seamless redundancy", 1, |packet| {
        ethernet(packet, &hex("892f 1234 0001"))
    }),
    header("network service header", 1, |packet| {
        let next = if is_v6(packet) { "02" } else { "01" };
        let front = hex(&format!("894f 0fc6 01{next} 000001ff {}", "00".repeat(16)));
        [&addresses(packet)[..], &front, &packet.ip].concat()
    }),
    header("loopback of the BSDs", 0, |packet| {
        [&hex("1e000000")[..], &packet.ip].concat()
    }),
    header("loopback of OpenBSD", 108, |packet| {
        [&hex("00000002")[..], &packet.ip].concat()
    }),
    header("enc of OpenBSD", 109, |packet| {
        [&hex("00000002 00001000 00000000")[..], &packet.ip].concat()
    }),
    header("raw", 101, |packet| packet.ip.clone()),
    header("raw, as of old", 12, |packet| packet.ip.clone()),
    header("raw, of OpenBSD", 14, |packet| packet.ip.clone()),
    header("PPPoE without Ethernet", 51, |packet| {
        let length = (packet.ip.len() as u16 + 2).to_be_bytes();
        let front = [&hex("1100 0001")[..], &length, &ppp(packet)].concat();
        [&front[..], &packet.ip].concat()
    }),
    header("Hilscher's analyser", 240, |packet| {
        [hex("00000000"), ethernet(packet, &[])].concat()
    }),
    header("Hilscher's analyser with a preamble", 241, |packet| {
        let front = hex("00000000 55555555555555d5");
        [front, ethernet(packet, &[])].concat()
    }),
    header("Ethernet with a preamble", 274, |packet| {
        [hex("55555555555555d5"), ethernet(packet, &[])].concat()
    }),
    header("cooked", 113, |packet| cooked(packet, &[])),
    header("cooked with VLAN", 113, |packet| {
        cooked(packet, &hex("8100 0005"))
    }),
    header("cooked 2", 276, |packet| cooked2(packet, &[])),
    header("cooked 2 with VLAN", 276, |packet| {
        cooked2(packet, &hex("8100 0005"))
    }),
    header("PPP with framing", 9, |packet| {
        [&hex("ff03")[..], &ppp(packet), &packet.ip].concat()
    }),
    header("PPP", 9, |packet| [&ppp(packet)[..], &packet.ip].concat()),
    header("PPP with a short protocol", 9, |packet| {
        [&ppp(packet)[1..], &packet.ip].concat()
    }),
    header("PPP in HDLC", 50, |packet| {
        [&hex("ff03")[..], &ppp(packet), &packet.ip].concat()
    }),
    header("Cisco's HDLC as PPP", 50, |packet| {
        [&hex("0f00")[..], &kind(packet), &packet.ip].concat()
    }),
    header("Cisco's HDLC", 104, |packet| {
        [&hex("0f00")[..], &kind(packet), &packet.ip].concat()
    }),
    header("PPP with direction", 204, |packet| {
        [&hex("00ff03")[..], &ppp(packet), &packet.ip].concat()
    }),
    header("PPP of pppd", 166, |packet| {
        [&hex("00ff03")[..], &ppp(packet), &packet.ip].concat()
    }),
    header("Cisco's HDLC with direction", 205, |packet| {
        [&hex("000f00")[..], &kind(packet), &packet.ip].concat()
    }),
    header("frame relay with direction", 206, |packet| {
        let next = if is_v6(packet) { "8e" } else { "cc" };
        [&hex(&format!("001841 03{next}"))[..], &packet.ip].concat()
    }),
    header("PPP multilink", 9, |packet| {
        [&hex("003dc0000001")[..], &ppp(packet), &packet.ip].concat()
    }),
    header("frame relay", 107, |packet| {
        let next = if is_v6(packet) { "8e" } else { "cc" };
        [&hex(&format!("1841 03{next}"))[..], &packet.ip].concat()
    }),
    header("802.11", 105, |packet| wireless(packet, "0802")),
    header("802.11 with radiotap", 127, |packet| {
        [hex("0000 0800 00000000"), wireless(packet, "0802")].concat()
    }),
    header(
        "802.11 with quality of service, a time and flags",
        127,
        |packet| {
            let front = hex("0000 1900 03000000 1122334455667788 10 0000000000000000");
            [front, wireless(packet, "8802")].concat()
        },
    ),
    header("802.11 padded by its card", 127, |packet| {
        [hex("0000 0900 02000000 20"), padded(packet)].concat()
    }),
    header("802.11 between four", 105, |packet| {
        wireless(packet, "8803")
    }),
    header("802.11, second of an aggregate", 105, |packet| {
        aggregate(&[part(&datagram(packet)), part(packet)])
    }),
    header("802.11, first of an aggregate", 127, |packet| {
        let frame = aggregate(&[part(packet), part(&datagram(packet))]);
        [hex("0000 0800 00000000"), frame].concat()
    }),
    header("802.11, behind EAPOL in an aggregate", 105, |packet| {
        let other = hex("020000000002 020000000001 000c aaaa03000000 888e 02030000");
        aggregate(&[other, part(packet)])
    }),
    header("802.11 with Prism", 119, |packet| {
        [vec![0; 144], wireless(packet, "0802")].concat()
    }),
    header("802.11 with AVS", 163, |packet| {
        [avs(), wireless(packet, "0802")].concat()
    }),
    header("802.11 with AVS in place of Prism", 119, |packet| {
        [avs(), wireless(packet, "0802")].concat()
    }),
    header("802.11 with PPI", 192, |packet| {
        [hex("00000800 69000000"), wireless(packet, "0802")].concat()
    }),
    header("FDDI", 10, |packet| {
        let front = [&hex("50")[..], &addresses(packet), &hex("aaaa03000000")].concat();
        [&front[..], &kind(packet), &packet.ip].concat()
    }),
    header("Token Ring", 6, |packet| {
        let front = [&hex("1040")[..], &addresses(packet)].concat();
        [&front[..], &llc(packet)].concat()
    }),
    header("Token Ring with a route", 6, |packet| {
        let mut front = [&hex("1040")[..], &addresses(packet)].concat();
        front[8] |= 0x80;
        [&front[..], &hex("0630 00140010"), &llc(packet)].concat()
    }),
    header("ATM with LLC", 100, llc),
    header("ATM with IP alone", 100, |packet| packet.ip.clone()),
    header("ATM, as of old", 11, llc),
    header("classical IP over ATM", 106, llc),
    header("ATM of Solaris", 123, |packet| {
        [hex("80000021"), llc(packet)].concat()
    }),
    header("FireWire", 138, |packet| {
        let front = hex("0200000000000001 0200000000000002");
        [&front[..], &kind(packet), &packet.ip].concat()
    }),
    header("Fibre Channel", 122, |packet| {
        let front = hex("1000020000000001 1000020000000002");
        [front, llc(packet)].concat()
    }),
    header("Endace's record of Ethernet", 197, |packet| {
        endace(2, &[hex("0000"), ethernet(packet, &[])].concat())
    }),
    header("Endace's record with a further header", 197, |packet| {
        let frame = [hex("0300000000000001 0000"), ethernet(packet, &[])];
        endace(0x82, &frame.concat())
    }),
    header("Endace's record of PPP", 197, |packet| {
        endace(1, &[&hex("ff03")[..], &ppp(packet), &packet.ip].concat())
    }),
    header("Endace's record of IP", 197, |packet| {
        endace(if is_v6(packet) { 23 } else { 22 }, &packet.ip)
    }),
    header("netfilter log", 239, |packet| {
        let length = (packet.ip.len() as u16 + 4).to_le_bytes();
        let front = [&hex("02000000 05000a0000000000")[..], &length, &hex("0900")].concat();
        [&front[..], &packet.ip].concat()
    }),
    header("Darwin's tap", 258, |packet| tap(1, &ethernet(packet, &[]))),
    header("Darwin's tap of a tunnel", 258, |packet| {
        tap(0, &[&hex("02000000")[..], &packet.ip].concat())
    }),
    header("Darwin's tap, as of old", 149, |packet| tap(12, &packet.ip)),
];

/// Every tunnel that is read.
pub(crate) const TUNNELS: [Header; 22] = [
    header("IP in IP", 101, |packet| {
        outer(packet, inner_protocol(packet), &packet.ip)
    }),
    header("GRE", 101, |packet| {
        outer(
            packet,
            47,
            &[&hex("0000")[..], &kind(packet), &packet.ip].concat(),
        )
    }),
    header("GRE with key and number, Ethernet", 101, |packet| {
        let front = hex("3000 6558 00000001 00000002");
        outer(packet, 47, &[front, ethernet(packet, &[])].concat())
    }),
    header("PPTP", 101, |packet| {
        let front = [
            &hex("3081 880b 0000 0001 00000002 00000003")[..],
            &ppp(packet),
        ]
        .concat();
        outer(packet, 47, &[&front[..], &packet.ip].concat())
    }),
    header("ERSPAN", 101, |packet| {
        let front = hex("1000 88be 00000002 1000000000000000");
        outer(packet, 47, &[front, ethernet(packet, &[])].concat())
    }),
    header("WCCP", 101, |packet| {
        outer(packet, 47, &[&hex("0000 883e")[..], &packet.ip].concat())
    }),
    header("WCCP, second version", 101, |packet| {
        let front = hex("0000 883e 00000000");
        outer(packet, 47, &[&front[..], &packet.ip].concat())
    }),
    header("EtherIP", 101, |packet| {
        outer(packet, 97, &[hex("3000"), ethernet(packet, &[])].concat())
    }),
    header("VXLAN", 1, |packet| {
        let vxlan = [hex("0800000000000500"), ethernet(packet, &[])].concat();
        over_udp(packet, 4_789, &vxlan)
    }),
    header("VXLAN of Linux", 1, |packet| {
        let vxlan = [hex("0800000000000500"), ethernet(packet, &[])].concat();
        over_udp(packet, 8_472, &vxlan)
    }),
    header("Geneve with options", 1, |packet| {
        let front = hex("0200 6558 00000100 0102030401020304");
        over_udp(packet, 6_081, &[front, ethernet(packet, &[])].concat())
    }),
    header("GTP-U", 1, |packet| {
        over_udp(
            packet,
            2_152,
            &[&hex("30ff 0000 00000001")[..], &packet.ip].concat(),
        )
    }),
    header("GTP-U with an extension", 1, |packet| {
        let front = hex("34ff 0000 00000001 00000085 01001000");
        over_udp(packet, 2_152, &[&front[..], &packet.ip].concat())
    }),
    header("L2TP", 1, |packet| {
        let front = [&hex("0002 0001 0002 ff03")[..], &ppp(packet)].concat();
        over_udp(packet, 1_701, &[&front[..], &packet.ip].concat())
    }),
    header("MPLS in UDP", 1, |packet| {
        over_udp(packet, 6_635, &[&hex("00011140")[..], &packet.ip].concat())
    }),
    header("TZSP", 1, |packet| {
        let front = hex("01 00 0001 0b 01 06 00 01");
        over_udp(packet, 37_008, &[front, ethernet(packet, &[])].concat())
    }),
    header("Teredo", 1, |packet| over_udp(packet, 3_544, &packet.ip)),
    header("Teredo with authentication and origin", 1, |packet| {
        let front = hex("0001 0000 0102030405060708 00 0000 3cac 3fffff01");
        over_udp(packet, 3_544, &[&front[..], &packet.ip].concat())
    }),
    header("GUE", 1, |packet| {
        let front = [0, inner_protocol(packet), 0, 0];
        over_udp(packet, 6_080, &[&front[..], &packet.ip].concat())
    }),
    header("GUE without a header", 1, |packet| {
        over_udp(packet, 6_080, &packet.ip)
    }),
    header("LISP", 1, |packet| {
        let front = hex("80123456 00000001");
        over_udp(packet, 4_341, &[&front[..], &packet.ip].concat())
    }),
    header("Mobile IP in UDP", 1, |packet| {
        let front = [4, inner_protocol(packet), 0, 0];
        over_udp(packet, 434, &[&front[..], &packet.ip].concat())
    }),
];

/// Headers behind which nobody can look, and words that name them.
pub(crate) const SEALED: [(Header, &str); 16] = [
    (
        header("USB", 220, |packet| packet.ip.clone()),
        "link type 220 (USB_LINUX_MMAPPED)",
    ),
    (
        header("no link type", 999, |packet| packet.ip.clone()),
        "link type 999",
    ),
    (
        header("encrypted 802.11", 127, |packet| {
            let mut frame = wireless(packet, "0842");
            frame[24..32].copy_from_slice(&hex("0102032003040506"));
            [hex("0000 0800 00000000"), frame].concat()
        }),
        "encrypted 802.11",
    ),
    (
        header("MACsec", 1, |packet| {
            let front = hex("88e5 2c00 00000001");
            [&addresses(packet)[..], &front, &packet.ip].concat()
        }),
        "MACsec",
    ),
    (
        header("compressed headers", 9, |packet| {
            [&hex("ff03 002d")[..], &packet.ip].concat()
        }),
        "PPP with compressed headers",
    ),
    (
        header("ESP", 101, |packet| outer(packet, 50, &packet.ip)),
        "ESP",
    ),
    (
        header("ESP in UDP", 1, |packet| {
            over_udp(packet, 4_500, &packet.ip)
        }),
        "ESP",
    ),
    (
        header("WireGuard", 1, |packet| {
            let front = hex("04000000 01020304 0000000000000000");
            over_udp(packet, 51_820, &[&front[..], &packet.ip].concat())
        }),
        "WireGuard",
    ),
    (
        header("OpenVPN", 1, |packet| {
            over_udp(
                packet,
                1_194,
                &[&hex("4800000000")[..], &packet.ip].concat(),
            )
        }),
        "OpenVPN",
    ),
    (
        header("L2TPv3", 101, |packet| outer(packet, 115, &packet.ip)),
        "L2TPv3",
    ),
    (
        header("CAPWAP", 1, |packet| over_udp(packet, 5_247, &packet.ip)),
        "CAPWAP",
    ),
    (
        header("IPComp", 101, |packet| outer(packet, 108, &packet.ip)),
        "IPComp",
    ),
    (
        header("encrypted PPP", 9, |packet| {
            [&hex("ff03 0053")[..], &packet.ip].concat()
        }),
        "encrypted PPP",
    ),
    (
        header("compressed PPP", 9, |packet| {
            [&hex("ff03 00fd")[..], &packet.ip].concat()
        }),
        "compressed PPP",
    ),
    (
        header("first of two fragments of PPP multilink", 9, |packet| {
            let front = [&hex("ff03 003d 80000001")[..], &ppp(packet)].concat();
            [&front[..], &packet.ip].concat()
        }),
        "fragments of PPP multilink",
    ),
    (
        header("encrypted PPP in L2TP", 1, |packet| {
            let front = hex("0002 0001 0002 ff03 0053");
            over_udp(packet, 1_701, &[&front[..], &packet.ip].concat())
        }),
        "encrypted PPP",
    ),
];

/// Bytes from their hexadecimal digits.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(u8::is_ascii_hexdigit)
        .map(|digit| (digit as char).to_digit(16).expect("a digit") as u8)
        .collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

fn is_v6(packet: &Packet) -> bool {
    packet.ip[0] >> 4 == 6
}

/// The Ethernet type of a packet.
fn kind(packet: &Packet) -> [u8; 2] {
    match is_v6(packet) {
        true => [0x86, 0xdd],
        false => [0x08, 0x00],
    }
}

/// The protocol of IP of a packet in another one.
fn inner_protocol(packet: &Packet) -> u8 {
    if is_v6(packet) { 41 } else { 4 }
}

/// A packet behind 802.2 and SNAP.
fn llc(packet: &Packet) -> Vec<u8> {
    [&hex("aaaa03 000000")[..], &kind(packet), &packet.ip].concat()
}

/// A header of AVS: its length is in it.
fn avs() -> Vec<u8> {
    let mut header = hex("80211001 00000040");
    header.resize(64, 0);
    header
}

/// A record of Endace's cards.
fn endace(kind: u8, frame: &[u8]) -> Vec<u8> {
    let length = (frame.len() as u16 + 16).to_be_bytes();
    let front = [
        &[0, 0, 0, 0, 0, 0, 0, 0, kind, 0][..],
        &length,
        &[0; 2],
        &length,
    ]
    .concat();
    [&front[..], frame].concat()
}

/// The protocol of PPP of a packet.
fn ppp(packet: &Packet) -> [u8; 2] {
    match is_v6(packet) {
        true => [0, 0x57],
        false => [0, 0x21],
    }
}

/// Destination and source.
fn addresses(packet: &Packet) -> Vec<u8> {
    match packet.is_sent {
        true => hex("020000000002 020000000001"),
        false => hex("020000000001 020000000002"),
    }
}

/// A frame with these tags.
fn ethernet(packet: &Packet, tags: &[u8]) -> Vec<u8> {
    [&addresses(packet)[..], tags, &kind(packet), &packet.ip].concat()
}

fn cooked(packet: &Packet, tags: &[u8]) -> Vec<u8> {
    let way = if packet.is_sent { "0004" } else { "0000" };
    let front = hex(&format!("{way} 0001 0006 0200000000010000"));
    [&front[..], tags, &kind(packet), &packet.ip].concat()
}

fn cooked2(packet: &Packet, tags: &[u8]) -> Vec<u8> {
    let way = if packet.is_sent { "04" } else { "00" };
    let rest = hex(&format!("0000 00000003 0001 {way} 06 0200000000010000"));
    // The first tag's type stands in front, and the rest of it behind.
    let all = [tags, &kind(packet)].concat();
    [&all[..2], &rest, &all[2..], &packet.ip].concat()
}

/// A frame of 802.11 with this frame control.
fn wireless(packet: &Packet, control: &str) -> Vec<u8> {
    let control = hex(control);
    let addresses = hex("020000000002 020000000001 020000000003");
    let mut frame = [&control[..], &[0, 0], &addresses, &[0x10, 0]].concat();
    if control[1] & 3 == 3 {
        frame.extend(hex("020000000004"));
    }
    if control[0] & 0x80 != 0 {
        frame.extend([0, 0]);
    }
    frame.extend(hex("aaaa03 000000"));
    [&frame[..], &kind(packet), &packet.ip].concat()
}

/// A frame with quality of service whose header is padded to four bytes.
fn padded(packet: &Packet) -> Vec<u8> {
    let mut frame = wireless(packet, "8802");
    frame.splice(26..26, [0, 0]);
    frame
}

/// A frame of an aggregate: addresses, length, LLC.
fn part(packet: &Packet) -> Vec<u8> {
    let inner = llc(packet);
    let length = (inner.len() as u16).to_be_bytes();
    [&addresses(packet)[..], &length, &inner].concat()
}

/// An aggregate of frames, each padded to four bytes but for the last one.
fn aggregate(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = hex("8802 0000 020000000002 020000000001 020000000003 1000 8000");
    let start = frame.len();
    for part in parts {
        let padded = start + (frame.len() - start).next_multiple_of(4);
        frame.resize(padded, 0);
        frame.extend(part);
    }
    frame
}

/// A datagram between the same hosts.
fn datagram(packet: &Packet) -> Packet {
    let payload = hex("c350 0035 000d 0000 6f74686572");
    Packet {
        ip: outer(packet, 17, &payload),
        ..packet.clone()
    }
}

/// A header of Darwin's packet taps, and a frame of this link type behind.
fn tap(link_type: u32, frame: &[u8]) -> Vec<u8> {
    let mut front = [0; 108];
    front[0..4].copy_from_slice(&108_u32.to_le_bytes());
    front[4..8].copy_from_slice(&1_u32.to_le_bytes());
    front[8..12].copy_from_slice(&link_type.to_le_bytes());
    [&front[..], frame].concat()
}

/// An outer IP packet between the tunnel's ends, of the version that the tunnel speaks.
fn outer(packet: &Packet, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut ends = match packet.is_within_v6 {
        false => [
            IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)),
            IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2)),
        ],
        true => [
            IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1)),
            IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 2)),
        ],
    };
    if !packet.is_sent {
        ends.reverse();
    }
    ip(ends, protocol, 1, payload)
}

/// A frame with a datagram to this port.
fn over_udp(packet: &Packet, port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16 + 8).to_be_bytes();
    let front = [&hex("c350")[..], &port.to_be_bytes(), &length, &[0, 0]].concat();
    let ip = outer(packet, 17, &[&front[..], payload].concat());
    let outer = Packet {
        ip,
        ..packet.clone()
    };
    ethernet(&outer, &[])
}
