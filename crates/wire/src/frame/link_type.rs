//! Link types by number, as the registry has them (draft-ietf-opsawg-pcaplinktype).

/// Loopback of the BSDs: a family in the byte order of the capturing host.
pub const NULL: u16 = 0;
/// Ethernet.
pub const ETHERNET: u16 = 1;
/// Token Ring (IEEE 802.5).
pub const TOKEN_RING: u16 = 6;
/// PPP, with or without the framing of HDLC.
pub const PPP: u16 = 9;
/// FDDI.
pub const FDDI: u16 = 10;
/// ATM with the encapsulation of RFC 1483 (`DLT_ATM_RFC1483`), in files of old programs.
pub const RFC1483_OF_BSD: u16 = 11;
/// `DLT_RAW` as the BSDs and Linux number it, in files of old programs.
pub const RAW_OF_BSD: u16 = 12;
/// `DLT_RAW` as OpenBSD numbers it.
pub const RAW_OF_OPENBSD: u16 = 14;
/// PPP with the framing of HDLC, or Cisco's HDLC.
pub const PPP_HDLC: u16 = 50;
/// PPPoE without Ethernet's header.
pub const PPP_ETHER: u16 = 51;
/// ATM with the encapsulation of RFC 1483.
pub const ATM_RFC1483: u16 = 100;
/// An IPv4 or IPv6 packet and nothing else.
pub const RAW: u16 = 101;
/// Cisco's HDLC.
pub const C_HDLC: u16 = 104;
/// IEEE 802.11.
pub const IEEE802_11: u16 = 105;
/// Classical IP over ATM, as Linux captures it.
pub const ATM_CLIP: u16 = 106;
/// Frame relay.
pub const FRAME_RELAY: u16 = 107;
/// Loopback of OpenBSD: as [`NULL`], in network byte order.
pub const LOOP: u16 = 108;
/// OpenBSD's encapsulation interface, behind decryption.
pub const ENC: u16 = 109;
/// Linux' cooked mode: "any" of libpcap.
pub const LINUX_SLL: u16 = 113;
/// IEEE 802.11 behind a header of Prism cards.
pub const IEEE802_11_PRISM: u16 = 119;
/// IP over Fibre Channel.
pub const IP_OVER_FIBRE_CHANNEL: u16 = 122;
/// ATM of Solaris.
pub const SUN_ATM: u16 = 123;
/// IEEE 802.11 behind a radiotap header.
pub const IEEE802_11_RADIOTAP: u16 = 127;
/// IP over IEEE 1394, as Darwin captures it.
pub const IP_OVER_FIREWIRE: u16 = 138;
/// A number for everybody's own purposes; Darwin's packet taps, in files of its tcpdump.
pub const USER2: u16 = 149;
/// IEEE 802.11 behind a header of AVS.
pub const IEEE802_11_AVS: u16 = 163;
/// PPP behind a byte of direction, as pppd writes it.
pub const PPP_PPPD: u16 = 166;
/// Per-packet information in front of another link type.
pub const PPI: u16 = 192;
/// Records of Endace's cards.
pub const ERF: u16 = 197;
/// PPP behind a byte of direction.
pub const PPP_WITH_DIR: u16 = 204;
/// Cisco's HDLC behind a byte of direction.
pub const C_HDLC_WITH_DIR: u16 = 205;
/// Frame relay behind a byte of direction.
pub const FRAME_RELAY_WITH_DIR: u16 = 206;
/// An IPv4 packet.
pub const IPV4: u16 = 228;
/// An IPv6 packet.
pub const IPV6: u16 = 229;
/// Messages of Linux' netfilter log.
pub const NFLOG: u16 = 239;
/// Ethernet behind four bytes of Hilscher's analysers.
pub const NETANALYZER: u16 = 240;
/// Ethernet with its preamble, behind four bytes of Hilscher's analysers.
pub const NETANALYZER_TRANSPARENT: u16 = 241;
/// Darwin's packet taps.
pub const PKTAP: u16 = 258;
/// Ethernet with a preamble (IEEE 802.3br).
pub const ETHERNET_MPACKET: u16 = 274;
/// Linux' cooked mode, version 2.
pub const LINUX_SLL2: u16 = 276;

/// Names of link types that cannot be read, as far as captures have them.
const OTHERS: [(u16, &str); 46] = [
    (3, "AX25"),
    (7, "ARCNET_BSD"),
    (8, "SLIP"),
    (99, "SYMANTEC_FIREWALL"),
    (114, "LTALK"),
    (117, "PFLOG"),
    (129, "ARCNET_LINUX"),
    (140, "MTP2"),
    (141, "MTP3"),
    (142, "SCCP"),
    (143, "DOCSIS"),
    (144, "LINUX_IRDA"),
    (147, "USER0"),
    (148, "USER1"),
    (149, "USER2"),
    (150, "USER3"),
    (162, "USER15"),
    (165, "BACNET_MS_TP"),
    (169, "GPRS_LLC"),
    (177, "LINUX_LAPD"),
    (187, "BLUETOOTH_HCI_H4"),
    (189, "USB_LINUX"),
    (190, "CAN20B"),
    (195, "IEEE802_15_4_WITHFCS"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"),
    (209, "IPMB_LINUX"),
    (212, "LIN"),
    (220, "USB_LINUX_MMAPPED"),
    (224, "FC_2"),
    (226, "IPNET"),
    (227, "CAN_SOCKETCAN"),
    (230, "IEEE802_15_4_NOFCS"),
    (231, "DBUS"),
    (243, "MPEG_2_TS"),
    (247, "INFINIBAND"),
    (248, "SCTP"),
    (249, "USBPCAP"),
    (251, "BLUETOOTH_LE_LL"),
    (252, "WIRESHARK_UPPER_PDU"),
    (253, "NETLINK"),
    (254, "BLUETOOTH_LINUX_MONITOR"),
    (256, "BLUETOOTH_LE_LL_WITH_PHDR"),
    (265, "USB_2_0"),
    (266, "ATSC_ALP"),
    (271, "VSOCK"),
    (283, "IEEE802_15_4_TAP"),
];

/// The name of a link type that cannot be read, if it is known.
pub(super) fn name(number: u16) -> Option<&'static str> {
    let found = OTHERS.iter().find(|(other, _)| *other == number);
    found.map(|(_, name)| *name)
}
