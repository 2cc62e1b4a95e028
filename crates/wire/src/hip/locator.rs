//! LOCATOR_SET: the addresses of a mobile host (RFC 8046, section 4).

use crate::hip::{HipError, kind};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The packets that a locator is for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Traffic {
    /// HIP packets and data.
    #[default]
    Both,
    /// HIP packets.
    Signalling,
    /// Data.
    Data,
}

/// An address at which a host says that it can be reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Locator {
    /// What it is for.
    pub traffic: Traffic,
    /// Whether the host prefers it.
    pub is_preferred: bool,
    /// How long it holds in seconds; `u32::MAX` has no end.
    pub lifetime: u32,
    /// The security association that it belongs to.
    pub spi: Option<u32>,
    /// The address.
    pub address: IpAddr,
}

/// The contents of LOCATOR_SET.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LocatorSet(pub Vec<Locator>);

impl LocatorSet {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError`] for a length, a type or a lifetime that no locator has.
    pub fn parse(contents: &[u8]) -> Result<Self, HipError> {
        const LENGTH: HipError = HipError::ParameterLength(kind::LOCATOR_SET);
        const FIELD: HipError = HipError::ParameterField(kind::LOCATOR_SET);
        let mut locators = Vec::new();
        let mut rest = contents;
        while !rest.is_empty() {
            let (&[traffic, form, words, flags, a, b, c, d], after) =
                rest.split_first_chunk::<8>().ok_or(LENGTH)?;
            let (spi, after) = match (form, words) {
                (0, 4) => (None, after),
                (1, 5) => {
                    let (spi, after) = after.split_first_chunk::<4>().ok_or(LENGTH)?;
                    (Some(u32::from_be_bytes(*spi)), after)
                }
                _ => return Err(FIELD),
            };
            let (address, after) = after.split_first_chunk::<16>().ok_or(LENGTH)?;
            let lifetime = u32::from_be_bytes([a, b, c, d]);
            if lifetime == 0 {
                return Err(FIELD);
            }
            locators.push(Locator {
                traffic: match traffic {
                    0 => Traffic::Both,
                    1 => Traffic::Signalling,
                    2 => Traffic::Data,
                    _ => return Err(FIELD),
                },
                is_preferred: flags & 1 == 1,
                lifetime,
                spi,
                address: unmapped(*address),
            });
            rest = after;
        }
        Ok(Self(locators))
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        for locator in &self.0 {
            let traffic = match locator.traffic {
                Traffic::Both => 0,
                Traffic::Signalling => 1,
                Traffic::Data => 2,
            };
            let (form, words) = if locator.spi.is_some() {
                (1, 5)
            } else {
                (0, 4)
            };
            out.extend_from_slice(&[traffic, form, words, u8::from(locator.is_preferred)]);
            out.extend_from_slice(&locator.lifetime.to_be_bytes());
            if let Some(spi) = locator.spi {
                out.extend_from_slice(&spi.to_be_bytes());
            }
            out.extend_from_slice(&mapped(locator.address));
        }
    }
}

/// An address in 16 bytes: IPv4 as `::ffff:a.b.c.d`.
pub(super) fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The address in 16 bytes.
pub(super) fn unmapped(bytes: [u8; 16]) -> IpAddr {
    let address = Ipv6Addr::from(bytes);
    let as_ipv4: Option<Ipv4Addr> = address.to_ipv4_mapped();
    as_ipv4.map_or(IpAddr::V6(address), IpAddr::V4)
}
