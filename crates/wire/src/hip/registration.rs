//! Parameters of registration and rendezvous (RFC 8003, section 4; RFC 8004, section 4.2).

use crate::hip::locator::{mapped, unmapped};
use crate::hip::{HipError, kind};
use alloc::vec::Vec;
use core::net::IpAddr;

/// The contents of REG_INFO: what a server offers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RegInfo {
    /// The shortest lifetime that it grants, coded.
    pub min_lifetime: u8,
    /// The longest lifetime that it grants, coded.
    pub max_lifetime: u8,
    /// The services.
    pub types: Vec<u8>,
}

impl RegInfo {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] below two bytes.
    pub fn parse(contents: &[u8]) -> Result<Self, HipError> {
        match contents {
            [min_lifetime, max_lifetime, types @ ..] => Ok(Self {
                min_lifetime: *min_lifetime,
                max_lifetime: *max_lifetime,
                types: types.to_vec(),
            }),
            _ => Err(HipError::ParameterLength(kind::REG_INFO)),
        }
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.min_lifetime, self.max_lifetime]);
        out.extend_from_slice(&self.types);
    }
}

/// The contents of REG_REQUEST and REG_RESPONSE (a lifetime), and of REG_FAILED (a reason).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RegItems {
    /// The coded lifetime, or the reason of the failure.
    pub head: u8,
    /// The services.
    pub types: Vec<u8>,
}

impl RegItems {
    /// The service of a rendezvous server (RFC 8004, section 4.1).
    pub const RENDEZVOUS: u8 = 1;

    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] if they are empty.
    pub fn parse(contents: &[u8]) -> Result<Self, HipError> {
        match contents {
            [head, types @ ..] => Ok(Self {
                head: *head,
                types: types.to_vec(),
            }),
            [] => Err(HipError::ParameterLength(kind::REG_REQUEST)),
        }
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.head);
        out.extend_from_slice(&self.types);
    }
}

/// The address in FROM and VIA_RVS.
#[must_use]
pub fn from_address(contents: &[u8]) -> Option<IpAddr> {
    contents.first_chunk::<16>().map(|bytes| unmapped(*bytes))
}

/// Appends the contents of FROM or VIA_RVS.
pub fn write_from_address(out: &mut Vec<u8>, address: IpAddr) {
    out.extend_from_slice(&mapped(address));
}
