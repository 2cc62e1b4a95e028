//! Where the IP packet starts in a captured frame.

use super::Interface;

/// `LINKTYPE_RAW`: an IPv4 or IPv6 packet and nothing else.
pub const RAW: u16 = 101;
/// `LINKTYPE_ETHERNET`.
pub const ETHERNET: u16 = 1;

/// `DLT_RAW` as the BSDs and Linux number it, in files of old programs.
const RAW_OF_BSD: u16 = 12;
/// `DLT_RAW` as OpenBSD numbers it.
const RAW_OF_OPENBSD: u16 = 14;
/// `LINKTYPE_NULL`: loopback of the BSDs, a family in the byte order of the capturing host.
const NULL: u16 = 0;
/// `LINKTYPE_LOOP`: the same in network byte order.
const LOOP: u16 = 108;
/// `LINKTYPE_LINUX_SLL`: "any" of libpcap.
pub(crate) const LINUX_SLL: u16 = 113;
/// `LINKTYPE_LINUX_SLL2`.
pub(crate) const LINUX_SLL2: u16 = 276;
const IPV4: u16 = 228;
const IPV6: u16 = 229;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
const ETHERTYPE_VLAN_SERVICE: [u8; 2] = [0x88, 0xa8];
/// Of service tags before IEEE 802.1ad.
const ETHERTYPE_VLAN_OLD: [u8; 2] = [0x91, 0x00];

/// The IP packet in `frame`, as it was captured on `interface`; `None` if the frame carries none,
/// or if its link type is not known. VLAN tags are skipped.
#[must_use]
pub fn ip_packet<'a>(interface: &Interface<'_>, frame: &'a [u8]) -> Option<&'a [u8]> {
    ip_in_frame(interface.link_type, frame)
}

/// The IP packet in `frame` of an interface whose frames are of `link_type`; as [`ip_packet`].
#[must_use]
pub fn ip_in_frame(link_type: u16, frame: &[u8]) -> Option<&[u8]> {
    match link_type {
        RAW | RAW_OF_BSD | RAW_OF_OPENBSD | IPV4 | IPV6 => Some(frame),
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
            ETHERTYPE_VLAN | ETHERTYPE_VLAN_SERVICE | ETHERTYPE_VLAN_OLD => at += 2,
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
