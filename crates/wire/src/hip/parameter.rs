//! Parameters of the base exchange and of UPDATE (RFC 7401, section 5.2; RFC 7402, section 5.1).

use crate::hip::HipError;
use alloc::vec::Vec;

/// Parameter types.
pub mod kind {
    #![allow(missing_docs, reason = "the names are those of the RFCs")]
    pub const ESP_INFO: u16 = 65;
    pub const R1_COUNTER: u16 = 129;
    pub const LOCATOR_SET: u16 = 193;
    pub const PUZZLE: u16 = 257;
    pub const SOLUTION: u16 = 321;
    pub const SEQ: u16 = 385;
    pub const ACK: u16 = 449;
    pub const DH_GROUP_LIST: u16 = 511;
    pub const DIFFIE_HELLMAN: u16 = 513;
    pub const HIP_CIPHER: u16 = 579;
    pub const ENCRYPTED: u16 = 641;
    pub const HOST_ID: u16 = 705;
    pub const HIT_SUITE_LIST: u16 = 715;
    pub const NOTIFICATION: u16 = 832;
    pub const ECHO_REQUEST_SIGNED: u16 = 897;
    pub const REG_INFO: u16 = 930;
    pub const REG_REQUEST: u16 = 932;
    pub const REG_RESPONSE: u16 = 934;
    pub const REG_FAILED: u16 = 936;
    pub const ECHO_RESPONSE_SIGNED: u16 = 961;
    pub const TRANSPORT_FORMAT_LIST: u16 = 2049;
    pub const ESP_TRANSFORM: u16 = 4095;
    pub const HIP_MAC: u16 = 61505;
    pub const HIP_MAC_2: u16 = 61569;
    pub const HIP_SIGNATURE_2: u16 = 61633;
    pub const HIP_SIGNATURE: u16 = 61697;
    pub const ECHO_RESPONSE_UNSIGNED: u16 = 63425;
    pub const ECHO_REQUEST_UNSIGNED: u16 = 63661;
    pub const FROM: u16 = 65498;
    pub const RVS_HMAC: u16 = 65500;
    pub const VIA_RVS: u16 = 65502;

    /// The critical parameters (odd types) that a receiver of this crate understands.
    pub const CRITICAL: [u16; 23] = [
        ESP_INFO,
        R1_COUNTER,
        LOCATOR_SET,
        PUZZLE,
        SOLUTION,
        SEQ,
        ACK,
        DH_GROUP_LIST,
        DIFFIE_HELLMAN,
        HIP_CIPHER,
        ENCRYPTED,
        HOST_ID,
        HIT_SUITE_LIST,
        ECHO_REQUEST_SIGNED,
        ECHO_RESPONSE_SIGNED,
        TRANSPORT_FORMAT_LIST,
        ESP_TRANSFORM,
        HIP_MAC,
        HIP_MAC_2,
        HIP_SIGNATURE_2,
        HIP_SIGNATURE,
        ECHO_RESPONSE_UNSIGNED,
        ECHO_REQUEST_UNSIGNED,
    ];
}

/// The contents of ESP_INFO.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EspInfo {
    /// Where the keys of the security associations begin in the keying material.
    pub keymat_index: u16,
    /// The index that is replaced; zero for a new association.
    pub old_spi: u32,
    /// The index that replaces it; zero ends the association.
    pub new_spi: u32,
}

impl EspInfo {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] unless there are twelve bytes.
    pub fn parse(contents: &[u8]) -> Result<Self, HipError> {
        let Ok([_, _, a, b, c, d, e, f, g, h, i, j]) = <[u8; 12]>::try_from(contents) else {
            return Err(HipError::ParameterLength(kind::ESP_INFO));
        };
        Ok(Self {
            keymat_index: u16::from_be_bytes([a, b]),
            old_spi: u32::from_be_bytes([c, d, e, f]),
            new_spi: u32::from_be_bytes([g, h, i, j]),
        })
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.keymat_index.to_be_bytes());
        out.extend_from_slice(&self.old_spi.to_be_bytes());
        out.extend_from_slice(&self.new_spi.to_be_bytes());
    }
}

/// The contents of PUZZLE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Puzzle<'a> {
    /// Bits that have to be zero.
    pub difficulty: u8,
    /// Coded lifetime: 2^(value - 32) seconds.
    pub lifetime: u8,
    /// What the Initiator gives back.
    pub opaque: [u8; 2],
    /// The random number, as long as RHASH.
    pub i: &'a [u8],
}

impl<'a> Puzzle<'a> {
    /// Bytes before I in the contents.
    pub const I_AT: usize = 4;

    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] below four bytes.
    pub fn parse(contents: &'a [u8]) -> Result<Self, HipError> {
        match contents {
            [difficulty, lifetime, a, b, i @ ..] => Ok(Self {
                difficulty: *difficulty,
                lifetime: *lifetime,
                opaque: [*a, *b],
                i,
            }),
            _ => Err(HipError::ParameterLength(kind::PUZZLE)),
        }
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.difficulty, self.lifetime]);
        out.extend_from_slice(&self.opaque);
        out.extend_from_slice(self.i);
    }
}

/// The contents of SOLUTION.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Solution<'a> {
    /// Bits that are zero.
    pub difficulty: u8,
    /// What the Responder put into PUZZLE.
    pub opaque: [u8; 2],
    /// The Responder's random number.
    pub i: &'a [u8],
    /// The number that solves the puzzle.
    pub j: &'a [u8],
}

impl<'a> Solution<'a> {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] below four bytes, or if I and J differ in length.
    pub fn parse(contents: &'a [u8]) -> Result<Self, HipError> {
        match contents {
            [difficulty, _, a, b, numbers @ ..] if numbers.len() % 2 == 0 => {
                let (i, j) = numbers.split_at(numbers.len() / 2);
                Ok(Self {
                    difficulty: *difficulty,
                    opaque: [*a, *b],
                    i,
                    j,
                })
            }
            _ => Err(HipError::ParameterLength(kind::SOLUTION)),
        }
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.difficulty, 0]);
        out.extend_from_slice(&self.opaque);
        out.extend_from_slice(self.i);
        out.extend_from_slice(self.j);
    }
}

/// The contents of DIFFIE_HELLMAN.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DiffieHellman<'a> {
    /// The group's number.
    pub group: u8,
    /// The public value.
    pub value: &'a [u8],
}

impl<'a> DiffieHellman<'a> {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] if the value's length differs from the declared one.
    pub fn parse(contents: &'a [u8]) -> Result<Self, HipError> {
        match contents {
            [group, a, b, value @ ..]
                if value.len() == usize::from(u16::from_be_bytes([*a, *b])) =>
            {
                Ok(Self {
                    group: *group,
                    value,
                })
            }
            _ => Err(HipError::ParameterLength(kind::DIFFIE_HELLMAN)),
        }
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.group);
        let length = u16::try_from(self.value.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(self.value);
    }
}

/// The contents of HOST_ID.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostId<'a> {
    /// The algorithm of the host identity.
    pub algorithm: u16,
    /// The encoded public key.
    pub identity: &'a [u8],
    /// The type of the domain identifier.
    pub domain_type: u8,
    /// The domain identifier.
    pub domain: &'a [u8],
}

impl<'a> HostId<'a> {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] if the declared lengths do not add up.
    pub fn parse(contents: &'a [u8]) -> Result<Self, HipError> {
        const LENGTH: HipError = HipError::ParameterLength(kind::HOST_ID);
        let (&[a, b, c, d, e, f], rest) = contents.split_first_chunk().ok_or(LENGTH)?;
        let domain_field = u16::from_be_bytes([c, d]);
        let (identity, domain) = rest
            .split_at_checked(usize::from(u16::from_be_bytes([a, b])))
            .ok_or(LENGTH)?;
        if domain.len() != usize::from(domain_field & 0x0fff) {
            return Err(LENGTH);
        }
        Ok(Self {
            algorithm: u16::from_be_bytes([e, f]),
            identity,
            domain_type: (domain_field >> 12) as u8,
            domain,
        })
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        let length = u16::try_from(self.identity.len()).unwrap_or(u16::MAX);
        let domain = u16::try_from(self.domain.len()).unwrap_or(u16::MAX) & 0x0fff;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&(u16::from(self.domain_type & 0x0f) << 12 | domain).to_be_bytes());
        out.extend_from_slice(&self.algorithm.to_be_bytes());
        out.extend_from_slice(self.identity);
        out.extend_from_slice(self.domain);
    }
}

/// The contents of HIP_SIGNATURE and HIP_SIGNATURE_2.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Signature<'a> {
    /// The algorithm of the host identity.
    pub algorithm: u16,
    /// The signature.
    pub signature: &'a [u8],
}

impl<'a> Signature<'a> {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] below two bytes.
    pub fn parse(contents: &'a [u8]) -> Result<Self, HipError> {
        match contents {
            [a, b, signature @ ..] => Ok(Self {
                algorithm: u16::from_be_bytes([*a, *b]),
                signature,
            }),
            _ => Err(HipError::ParameterLength(kind::HIP_SIGNATURE)),
        }
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.algorithm.to_be_bytes());
        out.extend_from_slice(self.signature);
    }
}

/// The contents of NOTIFICATION.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Notification<'a> {
    /// What is notified.
    pub notice: u16,
    /// What belongs to it.
    pub data: &'a [u8],
}

impl<'a> Notification<'a> {
    /// Reads the contents of the parameter.
    ///
    /// # Errors
    /// [`HipError::ParameterLength`] below four bytes.
    pub fn parse(contents: &'a [u8]) -> Result<Self, HipError> {
        match contents {
            [_, _, a, b, data @ ..] => Ok(Self {
                notice: u16::from_be_bytes([*a, *b]),
                data,
            }),
            _ => Err(HipError::ParameterLength(kind::NOTIFICATION)),
        }
    }

    /// Appends the contents of the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.notice.to_be_bytes());
        out.extend_from_slice(self.data);
    }
}

/// The elements of a parameter that lists 16-bit numbers; nothing for an odd length.
#[must_use]
pub fn u16_list(contents: &[u8]) -> Option<Vec<u16>> {
    let (pairs, rest) = contents.as_chunks();
    let numbers = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    rest.is_empty().then(|| numbers.collect())
}

/// The elements of a parameter that lists 32-bit numbers; nothing for another length.
#[must_use]
pub fn u32_list(contents: &[u8]) -> Option<Vec<u32>> {
    let (fours, rest) = contents.as_chunks();
    let numbers = fours.iter().map(|four| u32::from_be_bytes(*four));
    rest.is_empty().then(|| numbers.collect())
}
