//! What a frame that comes out of the link tells the host that hears it.

use super::Cut;
use outlast_base::time::Instant;
use outlast_scenario::IpVersion;

/// What a frame is, as far as it is a sign of life.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sight {
    /// ARP.
    Arp,
    /// IPv6's neighbour discovery (RFC 4861), from an address that is valid beyond the link.
    Discovery,
    /// What says nothing of a host's global IPv6 address: router and listener reports, the search
    /// for a twin of an address (RFC 4862), discovery between link-local addresses.
    Monologue,
    /// Any other packet.
    Packet(IpVersion),
    /// Not IP.
    Foreign,
}

/// When something first came out of the link at one of its ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Heard {
    arp: Option<Instant>,
    discovery: Option<Instant>,
    ipv4: Option<Instant>,
    ipv6: Option<Instant>,
}

/// Bytes of an Ethernet header, and within an IPv6 packet the places of what is looked at.
const ETHERNET: usize = 14;
const NEXT_HEADER: usize = ETHERNET + 6;
const SOURCE: usize = ETHERNET + 8;
const DESTINATION: usize = ETHERNET + 24;
const ICMP: usize = ETHERNET + 40;
const ICMPV6: u8 = 58;

impl Sight {
    pub(super) fn of(frame: &[u8]) -> Self {
        match frame.get(12..ETHERNET) {
            Some([0x08, 0x06]) => Self::Arp,
            Some([0x08, 0x00]) => Self::Packet(IpVersion::V4),
            Some([0x86, 0xdd]) => Self::of_ipv6(frame),
            _ => Self::Foreign,
        }
    }

    fn of_ipv6(frame: &[u8]) -> Self {
        let kind = match frame.get(NEXT_HEADER) {
            Some(&ICMPV6) => frame.get(ICMP).copied(),
            _ => None,
        };
        let source = frame.get(SOURCE..DESTINATION).unwrap_or(&[]);
        let is_link_local = matches!(source, [0xfe, 0x80..=0xbf, ..]);
        let is_nobody = is_link_local || source.iter().all(|&byte| byte == 0);
        match kind {
            Some(135 | 136) if !is_nobody => Self::Discovery,
            Some(133..=137) => Self::Monologue,
            _ if is_nobody || frame.get(DESTINATION) == Some(&0xff) => Self::Monologue,
            _ => Self::Packet(IpVersion::V6),
        }
    }

    /// Whether it is about who is on the link: such frames cross a link behind which a hop is gone.
    pub(super) fn is_local(self) -> bool {
        matches!(self, Self::Arp | Self::Discovery | Self::Monologue)
    }
}

impl Heard {
    pub(super) fn note(&mut self, at: Instant, sight: Sight) {
        let first = match sight {
            Sight::Arp => &mut self.arp,
            Sight::Discovery => &mut self.discovery,
            Sight::Packet(IpVersion::V4) => &mut self.ipv4,
            Sight::Packet(IpVersion::V6) => &mut self.ipv6,
            Sight::Monologue | Sight::Foreign => return,
        };
        first.get_or_insert(at);
    }

    /// When this end could know first that packets of this version get through again. After a
    /// black hole that is the first packet: neighbours have answered all the time.
    #[must_use]
    pub fn first_sign(&self, after: Cut, version: IpVersion) -> Option<Instant> {
        let (neighbour, packet) = match version {
            IpVersion::V4 => (self.arp, self.ipv4),
            IpVersion::V6 => (self.discovery, self.ipv6),
        };
        let neighbour = neighbour.filter(|_| after != Cut::BlackHole);
        neighbour.into_iter().chain(packet).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: u8 = 0x20;
    const EVERYBODY: u8 = 0xff;

    fn ipv6(source: u8, destination: u8, next: u8, kind: u8) -> Sight {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[NEXT_HEADER] = next;
        frame[SOURCE] = source;
        frame[DESTINATION] = destination;
        frame[ICMP] = kind;
        Sight::of(&frame)
    }

    #[test]
    fn a_frame_is_told_by_what_it_says() {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        assert_eq!(Sight::of(&frame), Sight::Packet(IpVersion::V4));
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(Sight::of(&frame), Sight::Arp);
        assert_eq!(Sight::of(&frame[..13]), Sight::Foreign);
        assert_eq!(ipv6(HOST, HOST, 6, 135), Sight::Packet(IpVersion::V6));
        assert_eq!(ipv6(HOST, HOST, ICMPV6, 128), Sight::Packet(IpVersion::V6));
        assert_eq!(ipv6(HOST, EVERYBODY, ICMPV6, 135), Sight::Discovery);
        assert_eq!(ipv6(HOST, HOST, ICMPV6, 136), Sight::Discovery);
        // A search for a twin, a router's solicitation, a listener's report.
        assert_eq!(ipv6(0, EVERYBODY, ICMPV6, 135), Sight::Monologue);
        assert_eq!(ipv6(HOST, EVERYBODY, ICMPV6, 133), Sight::Monologue);
        assert_eq!(ipv6(HOST, EVERYBODY, 0, 143), Sight::Monologue);
    }

    #[test]
    fn link_local_neighbours_are_not_those_that_carry_connections() {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[NEXT_HEADER] = ICMPV6;
        frame[ICMP] = 136;
        frame[SOURCE..SOURCE + 2].copy_from_slice(&[0xfe, 0x80]);
        assert_eq!(Sight::of(&frame), Sight::Monologue);
        frame[SOURCE..SOURCE + 2].copy_from_slice(&[0x20, 0x01]);
        assert_eq!(Sight::of(&frame), Sight::Discovery);
    }

    #[test]
    fn after_a_black_hole_a_neighbours_answer_says_nothing() {
        let (early, late) = (Instant::from_millis(1), Instant::from_millis(2));
        let mut heard = Heard::default();
        heard.note(early, Sight::Arp);
        heard.note(late, Sight::Packet(IpVersion::V4));
        heard.note(late, Sight::Discovery);
        let sign = |cut, version| heard.first_sign(cut, version);
        assert_eq!(sign(Cut::Neighbour, IpVersion::V4), Some(early));
        assert_eq!(sign(Cut::BlackHole, IpVersion::V4), Some(late));
        assert_eq!(sign(Cut::Carrier, IpVersion::V6), Some(late));
        assert_eq!(sign(Cut::BlackHole, IpVersion::V6), None);
    }
}
