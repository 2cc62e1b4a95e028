//! Memory that is no process's and no file's: that of PCI devices, as their drivers see it, and that at an address of
//! the machine's.

use crate::sys::window::Mapping;
use rustix::fd::AsFd;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The kernel's list of PCI devices.
const DEVICES: &str = "/sys/bus/pci/devices";

/// The vendor's and the device's number of a PCI device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PciId {
    /// The vendor's.
    pub vendor: u16,
    /// The device's.
    pub device: u16,
}

/// The machine's memory by address.
const PHYSICAL: &str = "/dev/mem";

/// A range of such memory, mapped for reading and writing.
#[derive(Debug)]
pub struct Window(Mapping);

impl Window {
    /// Maps `length` bytes at `address` of the machine's memory, both multiples of a page.
    ///
    /// # Errors
    /// If the kernel refuses: it does not give its own memory away.
    pub fn physical(address: u64, length: usize) -> io::Result<Self> {
        let memory = OpenOptions::new().read(true).write(true).open(PHYSICAL)?;
        Ok(Self(Mapping::of(memory.as_fd(), address, length)?))
    }

    /// Maps a memory region (a base address register, `region` is 0 to 5) of the first device of this kind, whole. No driver
    /// may have the device.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] without such a device, or what the kernel says of it.
    pub fn open(id: PciId, region: u8) -> io::Result<Self> {
        let device = find(id)?;
        fs::write(device.join("enable"), "1")?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(device.join(format!("resource{region}")))?;
        let length = length(&file)?;
        Ok(Self(Mapping::of(file.as_fd(), 0, length)?))
    }

    /// Its length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.0.length()
    }

    /// Copies the bytes at `at`.
    ///
    /// # Panics
    /// When they do not lie inside of it.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        self.0.read(at, to);
    }

    /// Writes `bytes` at `at`.
    ///
    /// # Panics
    /// When they do not lie inside of it.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.0.write(at, bytes);
    }
}

fn length(file: &File) -> io::Result<usize> {
    usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

/// The first device of this kind, in the order of addresses.
fn find(id: PciId) -> io::Result<PathBuf> {
    let mut devices: Vec<PathBuf> = fs::read_dir(DEVICES)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    devices.sort();
    for device in devices {
        let is =
            |file: &str, number: u16| Ok::<_, io::Error>(number_in(&device.join(file))? == number);
        if is("vendor", id.vendor)? && is("device", id.device)? {
            return Ok(device);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The number in a file of sysfs, such as `0x1af4`.
fn number_in(file: &Path) -> io::Result<u16> {
    let text = fs::read_to_string(file)?;
    let digits = text.trim().trim_start_matches("0x");
    u16::from_str_radix(digits, 16)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
