//! `SO_PEERCRED` and `SO_PEERGROUPS`: who connected a Unix socket.

use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;

/// A process has no more groups (`NGROUPS_MAX`).
const MOST: usize = 65_536;
/// Few processes have more.
const USUAL: usize = 32;

/// The user and the effective group. The process's number is zero where it has none in this process's
/// PID namespace: that is why `rustix`, for which there is no such number, cannot be asked.
pub(crate) fn credentials(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: libc::uid_t::MAX,
        gid: libc::gid_t::MAX,
    };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).expect("twelve bytes");
    // SAFETY: `credentials` is writable for `length` bytes, the kernel writes no more than that, and
    // every bit pattern is a valid `ucred`.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    match outcome {
        0 => Ok((credentials.uid, credentials.gid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The groups, as the kernel keeps them. Needs Linux 4.13.
pub(crate) fn groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; USUAL];
    loop {
        let room = size_of_val(&groups[..]);
        let mut length =
            libc::socklen_t::try_from(room).expect("the most groups take a quarter megabyte");
        // SAFETY: `groups` is writable for `length` bytes, the kernel writes no more than that,
        // and every bit pattern is a valid `gid_t`.
        let outcome = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let count = length as usize / size_of::<libc::gid_t>();
        if outcome == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // The kernel has said how much room it needs.
        let has_grown = count > groups.len() && count <= MOST;
        if error.raw_os_error() != Some(libc::ERANGE) || !has_grown {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}
