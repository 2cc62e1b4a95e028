//! `SIOCETHTOOL`: what a network device does for the kernel.

use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;

/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ifreq` of `net/if.h`, with a pointer in its union.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    data: *mut Value,
    /// The rest of the union.
    rest: [u8; size_of::<libc::ifreq>() - libc::IFNAMSIZ - size_of::<*mut Value>()],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// Sets a value of the device `name` by `command`; `socket` is any one of its network namespace.
///
/// # Errors
/// `InvalidInput` when the name is too long; otherwise what the kernel answers.
pub(crate) fn set(socket: BorrowedFd<'_>, name: &str, command: u32, data: u32) -> io::Result<()> {
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        data: std::ptr::null_mut(),
        rest: [0; _],
    };
    // The last byte stays zero.
    let room = &mut request.name[..libc::IFNAMSIZ - 1];
    let room = room
        .get_mut(..name.len())
        .ok_or(io::ErrorKind::InvalidInput)?;
    room.copy_from_slice(name.as_bytes());
    let mut value = Value { command, data };
    request.data = &raw mut value;
    // SAFETY: `request` has the size of `struct ifreq` and a name that ends with a zero byte;
    // `data` points to a `struct ethtool_value`, all that the commands that set a value read and
    // write, which lives until the call returns.
    let result = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            SIOCETHTOOL as _,
            std::ptr::from_mut(&mut request),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
