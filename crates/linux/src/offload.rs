//! What a network device spares the kernel: super-segments, which pass the host as one packet, and
//! checksums.

use crate::sys::ethtool;
use rustix::fd::AsFd;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::path::Path;

/// `ETHTOOL_STSO`, `ETHTOOL_SGSO`, `ETHTOOL_SGRO` of `linux/ethtool.h`.
const SUPER_SEGMENTS: [u32; 3] = [0x1f, 0x24, 0x2c];
/// `ETHTOOL_SRXCSUM`, `ETHTOOL_STXCSUM`.
const CHECKSUMS: [u32; 2] = [0x15, 0x17];

/// Whether `interface`, of the calling thread's namespace, sends and receives super-segments: TSO,
/// GSO and GRO.
///
/// # Errors
/// When there is no such interface, when it does not let itself be told, or without
/// `CAP_NET_ADMIN`.
pub fn set_super_segments(interface: &str, on: bool) -> io::Result<()> {
    set_all(interface, &SUPER_SEGMENTS, on)
}

/// Whether `interface` checks and fills in checksums. While it does not fill them in, it sends no
/// super-segments either, whatever it was told of those.
///
/// # Errors
/// As [`set_super_segments`].
pub fn set_checksums(interface: &str, on: bool) -> io::Result<()> {
    set_all(interface, &CHECKSUMS, on)
}

/// The name of the feature for `ethtool`: to cut super-segments that are in tunnels IP in IP.
pub const TUNNEL_SEGMENTATION: &str = "tx-ipxip4-segmentation";

/// Whether `interface`, of the calling thread's namespace, cuts super-segments itself that are in tunnels IP
/// in IP over IPv4.
///
/// # Errors
/// When there is no such interface, or it does not tell.
pub fn segments_tunnels(interface: &str) -> io::Result<bool> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    ethtool::has(any.as_fd(), interface, TUNNEL_SEGMENTATION)
}

/// Whether there is a device of a bus behind `interface`, real or a virtual machine's, as far as `/sys` shows it. It
/// may show another network namespace, with another interface of that name: the Ethernet address tells.
#[must_use]
pub fn has_hardware(interface: &str, address: Option<[u8; 6]>) -> bool {
    let Some([a, b, c, d, e, f]) = address else {
        return false;
    };
    let entry = Path::new("/sys/class/net").join(interface);
    let address = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    std::fs::read_to_string(entry.join("address")).is_ok_and(|shown| shown.trim() == address)
        && entry.join("device").exists()
}

fn set_all(interface: &str, commands: &[u32], on: bool) -> io::Result<()> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    for &command in commands {
        ethtool::set(any.as_fd(), interface, command, on.into())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::RouteSocket;

    #[test]
    fn a_device_is_told_and_who_is_none_is_said_to_be_none() {
        let Some(namespace) = crate::testing::fresh_namespace() else {
            return;
        };
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            route.add_veth("one", "other", None).expect("veth");
            set_super_segments("one", false).expect("a veth can do without");
            set_super_segments("one", true).expect("and with");
            set_checksums("one", false).expect("that, too");
            set_checksums("one", true).expect("and with");
            let segments = segments_tunnels("one").expect("a veth tells");
            assert!(segments, "a veth leaves them whole");
            let loopback = segments_tunnels("lo").expect("the loopback device tells");
            assert!(!loopback, "the loopback device does not");
            assert!(segments_tunnels("nonesuch").is_err());
            assert!(!has_hardware("one", Some([2; 6])), "a veth is of no bus");
            assert!(set_super_segments("nonesuch", true).is_err());
            assert!(set_checksums("nonesuch", true).is_err());
            assert!(set_super_segments("sixteen-letters-", true).is_err());
        };
        namespace.run(work).expect("enter");
    }
}
