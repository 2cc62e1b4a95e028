//! `sockaddr_ll`: where a packet socket sends to, and who has sent what it receives.

use crate::netlink::InterfaceIndex;
use rustix::fd::{AsRawFd, BorrowedFd};
use socket2::SockAddr;
use std::io;

/// A packet that a packet socket has received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Length of what was written to the buffer in bytes.
    pub(crate) length: usize,
    /// The frame's source; `None` if it came by no Ethernet.
    pub(crate) from: Option<[u8; 6]>,
    /// The transport's checksum still waits for a network card to complete it.
    pub(crate) lacks_checksum: bool,
}

/// Room for the one control message that is asked for, aligned as its header.
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_LEN]);

// SAFETY: it computes a length and reads nothing.
const CONTROL_LEN: usize =
    unsafe { libc::CMSG_SPACE(size_of::<libc::tpacket_auxdata>() as libc::c_uint) } as usize;

/// Asks the kernel to say of each packet whether its checksum is complete (`PACKET_AUXDATA`).
pub(crate) fn ask_for_checksum_state(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an integer, which is readable for its length.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_AUXDATA,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives a packet of a packet socket into `buffer`.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut from = libc::sockaddr_ll {
        sll_family: 0,
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut control = ControlBuffer([0; CONTROL_LEN]);
    let mut parts = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: zeros are valid for its integers and pointers; the padding of some C libraries has no name.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    message.msg_iov = &raw mut parts;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_LEN as _;
    // SAFETY: `buffer`, `from` and `control` are writable for the lengths that `message` says, and every
    // bit pattern is valid for the integer fields of `from`.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let length = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let hardware = from.sll_addr.first_chunk().copied();
    Ok(Received {
        length,
        from: hardware.filter(|_| from.sll_halen == 6),
        lacks_checksum: lacks_checksum(&message),
    })
}

/// Reads the checksum's state out of a received message; complete if the kernel says nothing.
fn lacks_checksum(message: &libc::msghdr) -> bool {
    // SAFETY: the kernel has written `message` and its control messages, whose room still lives.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() };
    let Some(header) = header else {
        return false;
    };
    let is_auxiliary =
        header.cmsg_level == libc::SOL_PACKET && header.cmsg_type == libc::PACKET_AUXDATA;
    if !is_auxiliary {
        return false;
    }
    // SAFETY: a control message of this type carries a `tpacket_auxdata`, perhaps not aligned for it.
    let auxiliary: libc::tpacket_auxdata = unsafe {
        libc::CMSG_DATA(header)
            .cast::<libc::tpacket_auxdata>()
            .read_unaligned()
    };
    auxiliary.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0
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
