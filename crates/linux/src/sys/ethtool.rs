//! `SIOCETHTOOL`: what a network device does for the kernel.

use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;

/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// `ETHTOOL_GSSET_INFO`, `ETHTOOL_GSTRINGS` and `ETHTOOL_GFEATURES` of `linux/ethtool.h`.
const COUNT_STRINGS: u32 = 0x37;
const GET_STRINGS: u32 = 0x1b;
const GET_FEATURES: u32 = 0x3a;
/// `ETH_SS_FEATURES`: the set of strings that names features.
const FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const STRING: usize = 32;

/// `struct ifreq` of `net/if.h`, with a pointer in its union.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u32,
    /// The rest of the union.
    rest: [u8; size_of::<libc::ifreq>() - libc::IFNAMSIZ - size_of::<*mut u32>()],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// Sets a value of the device `name` by `command`; `socket` is any one of its network namespace.
///
/// # Errors
/// `InvalidInput` when the name is too long; otherwise what the kernel answers.
pub(crate) fn set(socket: BorrowedFd<'_>, name: &str, command: u32, data: u32) -> io::Result<()> {
    // SAFETY: `struct ethtool_value` is all that the commands that set a value read and write.
    unsafe { call(socket, name, &mut [command, data]) }
}

/// Whether a feature of the device `name`, by its name for `ethtool -k`, is in use; none is that the
/// kernel does not know. `socket` is any one of its network namespace.
///
/// # Errors
/// As [`set`].
pub(crate) fn has(socket: BorrowedFd<'_>, name: &str, feature: &str) -> io::Result<bool> {
    // `struct ethtool_sset_info`: the set of strings is a bit of the third and fourth word, in the host's order.
    let mask = (1_u64 << FEATURES).to_ne_bytes();
    let [low, high] =
        [[0, 1, 2, 3], [4, 5, 6, 7]].map(|at| u32::from_ne_bytes(at.map(|at| mask[at])));
    let mut info = [COUNT_STRINGS, 0, low, high, 0];
    // SAFETY: the kernel answers with one word for each set it is asked for, which is one.
    unsafe { call(socket, name, &mut info)? };
    let count = info[4];

    // `struct ethtool_gstrings`.
    let words = count as usize * STRING / size_of::<u32>();
    let mut strings = vec![0; 3 + words];
    strings[..3].copy_from_slice(&[GET_STRINGS, FEATURES, count]);
    // SAFETY: there is room for as many strings as this kernel has; it has as many for every device.
    unsafe { call(socket, name, &mut strings)? };
    let strings: Vec<u8> = strings[3..]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let is_it = |string: &[u8]| string.split(|byte| *byte == 0).next() == Some(feature.as_bytes());
    let Some(place) = strings.chunks_exact(STRING).position(is_it) else {
        return Ok(false);
    };

    // `struct ethtool_gfeatures`: for each 32 features what is available, requested, active and fixed.
    let blocks = count.div_ceil(32);
    let mut features = vec![0; 2 + 4 * blocks as usize];
    features[..2].copy_from_slice(&[GET_FEATURES, blocks]);
    // SAFETY: the kernel writes no more blocks than it is told there is room for.
    unsafe { call(socket, name, &mut features)? };
    let active = features[2 + 4 * (place / 32) + 2];
    Ok(active & (1 << (place % 32)) != 0)
}

/// # Safety
/// `data` has room for all that the kernel reads and writes at the command that is its first word.
unsafe fn call(socket: BorrowedFd<'_>, name: &str, data: &mut [u32]) -> io::Result<()> {
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
    request.data = data.as_mut_ptr();
    // SAFETY: `request` has the size of `struct ifreq` and a name that ends with a zero byte; `data`
    // has the room that the command takes, as the caller says, and lives until the call returns.
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
