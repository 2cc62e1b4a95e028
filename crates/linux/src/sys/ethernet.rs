//! `sockaddr_ll`: where a packet socket sends to, and who has sent what it receives.

use crate::netlink::InterfaceIndex;
use rustix::fd::{AsRawFd, BorrowedFd};
use socket2::SockAddr;
use std::io;

/// Who has sent a packet that a packet socket received, and how many bytes it has; only as many as
/// `buffer` has room for were written there. `None` for the hardware address of one that is no Ethernet.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<[u8; 6]>)> {
    let mut from = libc::sockaddr_ll {
        sll_family: 0,
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `buffer` is writable for its length, `from` for `length` bytes, and every bit pattern is
    // valid for its integer fields.
    let received = unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
            (&raw mut from).cast(),
            &raw mut length,
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let hardware = from.sll_addr.first_chunk().copied();
    Ok((received, hardware.filter(|_| from.sll_halen == 6)))
}

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
