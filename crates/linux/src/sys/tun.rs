//! `TUNSETIFF`, `TUNSETOFFLOAD` and `TUNSETCARRIER`: turning an open `/dev/net/tun` into a network
//! device, having it carry super-segments, and taking the carrier from it.

use rustix::fd::BorrowedFd;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl, opcode};
use std::io;

/// `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: Opcode = opcode::write::<libc::c_int>(b'T', 202);
/// `TUNSETOFFLOAD` of the same.
const TUNSETOFFLOAD: Opcode = opcode::write::<libc::c_uint>(b'T', 208);
/// Checksums may be unfinished, segments of TCP over IPv4 and IPv6 longer than a packet: `TUN_F_CSUM`,
/// `TUN_F_TSO4` and `TUN_F_TSO6` of the same.
const SUPER_SEGMENTS: usize = 0x01 | 0x02 | 0x04;
/// `TUNSETCARRIER` of the same, since Linux 5.0.
const TUNSETCARRIER: Opcode = opcode::write::<libc::c_int>(b'T', 226);
/// Raw IP packets, no link-layer header.
const IFF_TUN: libc::c_short = 0x0001;
/// Ethernet frames.
const IFF_TAP: libc::c_short = 0x0002;
/// No four bytes of packet information before each packet.
const IFF_NO_PI: libc::c_short = 0x1000;
/// A `struct virtio_net_hdr` before each packet.
const IFF_VNET_HDR: libc::c_short = 0x4000;

/// Longest name of an interface, without the closing zero.
pub(crate) const NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// `struct ifreq` of `net/if.h`, as far as `TUNSETIFF` reads it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    /// The rest of the union, whose largest member is `struct ifmap`: two `unsigned long`
    /// and eight bytes.
    rest: [u8; 2 * size_of::<libc::c_ulong>() + 8 - size_of::<libc::c_short>()],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// What a device carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Carries {
    /// IP packets.
    Packets,
    /// IP packets and super-segments of TCP, each behind a `struct virtio_net_hdr`.
    SuperSegments,
    /// Ethernet frames.
    Frames,
}

/// Makes `fd`, an open `/dev/net/tun`, the other end of a new device `name`.
///
/// # Errors
/// `InvalidInput` when the name is empty, longer than [`NAME_MAX`] or contains a zero byte;
/// otherwise what the kernel answers.
pub(crate) fn attach(fd: BorrowedFd<'_>, name: &str, carries: Carries) -> io::Result<()> {
    if name.is_empty() || name.len() > NAME_MAX || name.bytes().any(|byte| byte == 0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let kind = match carries {
        Carries::Packets => IFF_TUN,
        Carries::SuperSegments => IFF_TUN | IFF_VNET_HDR,
        Carries::Frames => IFF_TAP,
    };
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: kind | IFF_NO_PI,
        rest: [0; _],
    };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which `InterfaceRequest` matches in
    // size and layout; every byte is initialised and any bytes that come back are valid for it.
    // The kernel's write goes to the setter's own copy, which is dropped.
    unsafe { ioctl(fd, Setter::<TUNSETIFF, InterfaceRequest>::new(request))? };
    Ok(())
}

/// Has the device of `fd`, which was attached for them, hand over super-segments and unfinished checksums.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn take_super_segments(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the opcode is that of TUNSETOFFLOAD, whose argument is an integer, these flags of it.
    let setter = unsafe { IntegerSetter::<TUNSETOFFLOAD>::new_usize(SUPER_SEGMENTS) };
    // SAFETY: TUNSETOFFLOAD touches no memory of this process.
    unsafe { ioctl(fd, setter)? };
    Ok(())
}

/// Gives the device of `fd` its carrier, or takes it.
///
/// # Errors
/// When the device is switched off, or the kernel is older than 5.0.
pub(crate) fn set_carrier(fd: BorrowedFd<'_>, is_there: bool) -> io::Result<()> {
    let carrier = libc::c_int::from(is_there);
    // SAFETY: TUNSETCARRIER reads one `int` and writes nothing.
    unsafe { ioctl(fd, Setter::<TUNSETCARRIER, libc::c_int>::new(carrier))? };
    Ok(())
}
