//! Where the IP packet starts in a captured frame.

use super::Interface;

/// `LINKTYPE_RAW`: an IPv4 or IPv6 packet and nothing else.
pub const RAW: u16 = 101;
/// `LINKTYPE_ETHERNET`.
pub const ETHERNET: u16 = 1;

/// `LINKTYPE_NULL`: loopback of the BSDs, a family in the byte order of the capturing host.
const NULL: u16 = 0;
/// `LINKTYPE_LOOP`: the same in network byte order.
const LOOP: u16 = 108;
/// `LINKTYPE_LINUX_SLL`: "any" of libpcap.
const LINUX_SLL: u16 = 113;
/// `LINKTYPE_LINUX_SLL2`.
const LINUX_SLL2: u16 = 276;
const IPV4: u16 = 228;
const IPV6: u16 = 229;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
const ETHERTYPE_VLAN_SERVICE: [u8; 2] = [0x88, 0xa8];

/// The IP packet in `frame`, as it was captured on `interface`; `None` if the frame carries none,
/// or if its link type is not known. VLAN tags are skipped.
#[must_use]
pub fn ip_packet<'a>(interface: &Interface<'_>, frame: &'a [u8]) -> Option<&'a [u8]> {
    match interface.link_type {
        RAW | IPV4 | IPV6 => Some(frame),
        // The packet's version tells its family.
        NULL | LOOP => frame.get(4..).filter(|packet| is_ip(packet)),
        ETHERNET => behind_ethertype(frame, 12),
        LINUX_SLL => behind_ethertype(frame, 14),
        LINUX_SLL2 => {
            let ethertype = frame.first_chunk::<2>()?;
            is_ip_ethertype(*ethertype).then(|| frame.get(20..))?
        }
        _ => None,
    }
}

/// The packet behind the type field at `at`.
fn behind_ethertype(frame: &[u8], mut at: usize) -> Option<&[u8]> {
    loop {
        let ethertype = *frame.get(at..)?.first_chunk::<2>()?;
        at += 2;
        match ethertype {
            // Two bytes of tag, then the type of what follows.
            ETHERTYPE_VLAN | ETHERTYPE_VLAN_SERVICE => at += 2,
            _ => return is_ip_ethertype(ethertype).then(|| frame.get(at..))?,
        }
    }
}

fn is_ip_ethertype(ethertype: [u8; 2]) -> bool {
    matches!(ethertype, ETHERTYPE_IPV4 | ETHERTYPE_IPV6)
}

fn is_ip(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|byte| matches!(byte >> 4, 4 | 6))
}
