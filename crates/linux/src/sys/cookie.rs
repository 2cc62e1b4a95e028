//! Numbers by which programs in the kernel tell network namespaces apart.

use rustix::fd::{AsFd, AsRawFd};
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;

/// That of the calling thread's network namespace (`SO_NETNS_COOKIE`, Linux 5.14).
pub(crate) fn of_network_namespace() -> io::Result<u64> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut cookie = 0_u64;
    let mut length = libc::socklen_t::try_from(size_of::<u64>()).expect("eight bytes");
    // SAFETY: `cookie` is writable for `length` bytes, the kernel writes no more than that, and both
    // pointers are valid until the call returns.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(cookie),
        _ => Err(io::Error::last_os_error()),
    }
}
