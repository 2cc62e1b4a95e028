//! TUN and TAP devices: a network interface whose other end is this process.

mod super_segments;

pub use super_segments::{FromHost, SuperSegmentTun, TcpLayout};

use crate::sys::tun::{self, Carries};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::io;

/// Where TUN devices come from.
const CONTROL: &str = "/dev/net/tun";
/// The largest packet that a TUN device can hand over.
pub const MAX_PACKET: usize = 65_535;

/// The process's end of an interface. The interface is gone when it is dropped.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
}

/// What became of a packet handed to [`Tun::write`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Written {
    /// The host's stack has it.
    Delivered,
    /// The kernel has no room at the moment; it is lost.
    NoRoom,
    /// The interface is down; it is lost.
    Down,
}

/// Why there is no TUN device. Each message says what would help.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The kernel has no TUN driver, or the device file is missing.
    #[error(
        "there is no {CONTROL}: load the driver (`sudo modprobe tun`), or give the container the \
         device (`--device {CONTROL}`)"
    )]
    NotFound,
    /// The device file may not be opened.
    #[error("not allowed to open {CONTROL}: run as root, or once `sudo chmod 0666 {CONTROL}`")]
    NotPermitted,
    /// It opens, but makes no device.
    #[error("cannot make the TUN device {name}")]
    Create {
        /// Name of the interface.
        name: String,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

impl Tun {
    /// Makes the interface `name` in the network namespace of the calling thread. It is down and
    /// has no address.
    ///
    /// Packets come and go whole, with complete checksums and no larger than the interface's
    /// MTU: no offload is on.
    ///
    /// # Errors
    /// When the driver is not there, may not be used, or the name is taken or unusable.
    pub fn create(name: &str) -> Result<Self, TunError> {
        Self::make(name, Carries::Packets)
    }

    /// Makes the Ethernet interface (TAP) `name`; what is read and written are frames.
    ///
    /// A frame goes from the destination's address to the payload's end.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_ethernet(name: &str) -> Result<Self, TunError> {
        Self::make(name, Carries::Frames)
    }

    /// Gives the interface its carrier, which it has to begin with, or takes it, as if a cable
    /// were pulled.
    ///
    /// # Errors
    /// When the interface is switched off, or the kernel is older than 5.0.
    pub fn set_carrier(&self, is_there: bool) -> io::Result<()> {
        tun::set_carrier(self.fd.as_fd(), is_there)
    }

    fn make(name: &str, carries: Carries) -> Result<Self, TunError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open(CONTROL, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => TunError::NotFound,
            Errno::ACCESS | Errno::PERM => TunError::NotPermitted,
            errno => TunError::Create {
                name: name.into(),
                source: errno.into(),
            },
        })?;
        tun::attach(fd.as_fd(), name, carries).map_err(|source| TunError::Create {
            name: name.into(),
            source,
        })?;
        Ok(Self { fd })
    }

    /// The next packet that the host sends into the interface, read into `buffer`; `None` if
    /// there is none at the moment.
    ///
    /// A packet longer than `buffer` loses its end: [`MAX_PACKET`] bytes are always enough.
    ///
    /// # Errors
    /// When the interface was taken away.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        loop {
            match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(length) => return Ok(Some(&buffer[..length])),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Hands `packet` to the host as if the interface had received it.
    ///
    /// # Errors
    /// When the packet is no IP packet, or the interface was taken away.
    pub fn write(&self, packet: &[u8]) -> io::Result<Written> {
        loop {
            match rustix::io::write(&self.fd, packet) {
                Ok(_) => return Ok(Written::Delivered),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(Written::NoRoom),
                Err(Errno::IO) => return Ok(Written::Down),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
