//! `sockaddr_ll`: where a packet socket sends to.

use crate::netlink::InterfaceIndex;
use socket2::SockAddr;
use std::io;

/// Who has this Ethernet address on `interface`, and what is sent to him.
pub(crate) fn address(
    interface: InterfaceIndex,
    protocol: u16,
    hardware: [u8; 6],
) -> io::Result<SockAddr> {
    let index = i32::try_from(interface.0).map_err(io::Error::other)?;
    let fill = |storage: *mut socket2::SockAddrStorage, length: *mut libc::socklen_t| {
        let mut to = [0; 8];
        to[..hardware.len()].copy_from_slice(&hardware);
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::sa_family_t,
            sll_protocol: protocol.to_be(),
            sll_ifindex: index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: hardware.len() as u8,
            sll_addr: to,
        };
        // SAFETY: `storage` is aligned and large enough for every kind of address, and both
        // pointers are valid for writes.
        unsafe {
            storage.cast::<libc::sockaddr_ll>().write(address);
            length.write(size_of::<libc::sockaddr_ll>() as libc::socklen_t);
        }
        Ok(())
    };
    // SAFETY: what is written is a whole `sockaddr_ll`, whose family says so, and its length.
    let ((), address) = unsafe { SockAddr::try_init(fill) }?;
    Ok(address)
}
