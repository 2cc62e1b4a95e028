//! The ESP suites: how a packet's payload is sealed (RFC 7402, section 5.1.2; RFC 4303, 4868, 4106).

use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, KeyInit, Nonce, Tag};
use alloc::vec::Vec;
use hmac::{Hmac, Mac};
use outlast_wire::hip::EspHeader;
use rand_core::CryptoRng;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::keymat::EspKeys;

/// Bytes of the integrity check value of every suite here.
const ICV: usize = 16;

/// An AES block, and the initialisation vector of CBC.
const BLOCK: usize = 16;

/// The initialisation vector of GCM.
const GCM_IV: usize = 8;

/// How ESP packets are sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EspSuite {
    /// Number 8, which every implementation has: AES-128-CBC with HMAC-SHA-256.
    Aes128CbcSha256,
    /// Number 9: AES-256-CBC with HMAC-SHA-256.
    Aes256CbcSha256,
    /// Number 13: AES-128-GCM with 16 bytes of check value.
    Aes128Gcm,
}

impl EspSuite {
    /// All suites, the preferred ones first.
    pub const ALL: [Self; 3] = [
        Self::Aes128Gcm,
        Self::Aes128CbcSha256,
        Self::Aes256CbcSha256,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Aes128CbcSha256 => 8,
            Self::Aes256CbcSha256 => 9,
            Self::Aes128Gcm => 13,
        }
    }

    /// The suite with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.number() == number)
    }

    /// Bytes of the encryption key (with GCM's salt) and of the authentication key.
    #[must_use]
    pub const fn key_lens(self) -> (usize, usize) {
        match self {
            Self::Aes128CbcSha256 => (16, 32),
            Self::Aes256CbcSha256 => (32, 32),
            Self::Aes128Gcm => (20, 0),
        }
    }

    /// The most bytes of payload that an ESP packet of at most `room` bytes carries.
    #[must_use]
    pub const fn payload_room(self, room: usize) -> usize {
        let (iv, align) = match self {
            Self::Aes128CbcSha256 | Self::Aes256CbcSha256 => (BLOCK, BLOCK),
            Self::Aes128Gcm => (GCM_IV, 4),
        };
        let sealed = room.saturating_sub(EspHeader::LEN + iv + ICV);
        (sealed / align * align).saturating_sub(2)
    }

    /// Seals `payload` of the protocol `next` into an ESP packet; nothing if a key has a wrong
    /// length.
    #[must_use]
    pub fn seal(
        self,
        keys: &EspKeys,
        spi: u32,
        sequence: u64,
        (next, payload): (u8, &[u8]),
        random: &mut dyn CryptoRng,
    ) -> Option<Vec<u8>> {
        let mut packet = Vec::with_capacity(payload.len() + 64);
        let header = EspHeader {
            spi,
            sequence_low: sequence as u32,
        };
        header.write(&mut packet);
        match self {
            Self::Aes128CbcSha256 | Self::Aes256CbcSha256 => {
                let mut iv = [0; BLOCK];
                random.fill_bytes(&mut iv);
                packet.extend_from_slice(&iv);
                let at = packet.len();
                append_padded(&mut packet, payload, next, BLOCK);
                let body = packet.get_mut(at..)?;
                let length = body.len();
                if self == Self::Aes128CbcSha256 {
                    cbc::Encryptor::<aes::Aes128>::new_from_slices(&keys.encryption, &iv)
                        .ok()?
                        .encrypt_padded::<NoPadding>(body, length)
                        .ok()?;
                } else {
                    cbc::Encryptor::<aes::Aes256>::new_from_slices(&keys.encryption, &iv)
                        .ok()?
                        .encrypt_padded::<NoPadding>(body, length)
                        .ok()?;
                }
                let icv = check_value(keys, &packet, sequence)?;
                packet.extend_from_slice(&icv);
            }
            Self::Aes128Gcm => {
                // The number of a packet is never used twice under one key.
                packet.extend_from_slice(&sequence.to_be_bytes());
                let at = packet.len();
                append_padded(&mut packet, payload, next, 4);
                let (gcm, nonce) = gcm(keys, sequence.to_be_bytes())?;
                let body = packet.get_mut(at..)?;
                let tag = gcm
                    .encrypt_inout_detached(&nonce, &associated(spi, sequence), body.into())
                    .ok()?;
                packet.extend_from_slice(&tag);
            }
        }
        Some(packet)
    }

    /// Opens an ESP packet with the whole number `sequence`: the next protocol and the payload.
    #[must_use]
    pub fn open(self, keys: &EspKeys, sequence: u64, packet: &[u8]) -> Option<(u8, Vec<u8>)> {
        let (sealed, icv) = packet.split_at_checked(packet.len().checked_sub(ICV)?)?;
        let (header, rest) = EspHeader::parse(sealed).ok()?;
        let mut plain = match self {
            Self::Aes128CbcSha256 | Self::Aes256CbcSha256 => {
                let expected = check_value(keys, sealed, sequence)?;
                if !bool::from(expected.ct_eq(icv)) {
                    return None;
                }
                let (iv, body) = rest.split_at_checked(BLOCK)?;
                if self == Self::Aes128CbcSha256 {
                    cbc::Decryptor::<aes::Aes128>::new_from_slices(&keys.encryption, iv)
                        .ok()?
                        .decrypt_padded_vec::<NoPadding>(body)
                        .ok()?
                } else {
                    cbc::Decryptor::<aes::Aes256>::new_from_slices(&keys.encryption, iv)
                        .ok()?
                        .decrypt_padded_vec::<NoPadding>(body)
                        .ok()?
                }
            }
            Self::Aes128Gcm => {
                let (iv, body) = rest.split_first_chunk::<GCM_IV>()?;
                let (gcm, nonce) = gcm(keys, *iv)?;
                let mut plain = body.to_vec();
                let tag = Tag::try_from(icv).ok()?;
                let associated = associated(header.spi, sequence);
                gcm.decrypt_inout_detached(&nonce, &associated, plain.as_mut_slice().into(), &tag)
                    .ok()?;
                plain
            }
        };
        let next = plain.pop()?;
        let padding = usize::from(plain.pop()?);
        let payload = plain.len().checked_sub(padding)?;
        let counts_up = plain.get(payload..)?.iter().zip(1_u8..);
        if counts_up.clone().any(|(&byte, count)| byte != count) {
            return None;
        }
        plain.truncate(payload);
        Some((next, plain))
    }
}

/// Appends the payload and a trailer that fills it up to a multiple of `align`.
fn append_padded(packet: &mut Vec<u8>, payload: &[u8], next: u8, align: usize) {
    let padding = (payload.len() + 2).next_multiple_of(align) - payload.len() - 2;
    packet.extend_from_slice(payload);
    packet.extend((1..=padding).map(|count| count as u8));
    packet.extend_from_slice(&[padding as u8, next]);
}

/// The check value of the CBC suites: the upper half of the sequence number is covered, too.
fn check_value(keys: &EspKeys, sealed: &[u8], sequence: u64) -> Option<[u8; ICV]> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&keys.authentication).ok()?;
    mac.update(sealed);
    mac.update(&((sequence >> 32) as u32).to_be_bytes());
    let whole = mac.finalize().into_bytes();
    whole.first_chunk::<ICV>().copied()
}

/// What GCM authenticates beside the payload (RFC 4106, section 5).
fn associated(spi: u32, sequence: u64) -> [u8; 12] {
    let mut out = [0; 12];
    out[..4].copy_from_slice(&spi.to_be_bytes());
    out[4..].copy_from_slice(&sequence.to_be_bytes());
    out
}

/// GCM with the key, and its nonce: the salt behind the key and the packet's vector.
fn gcm(
    keys: &EspKeys,
    iv: [u8; GCM_IV],
) -> Option<(
    Aes128Gcm,
    Nonce<<Aes128Gcm as aes_gcm::aead::AeadCore>::NonceSize>,
)> {
    let (key, salt) = keys.encryption.split_at_checked(16)?;
    let mut nonce = [0; 12];
    nonce.get_mut(..4)?.copy_from_slice(salt);
    nonce.get_mut(4..)?.copy_from_slice(&iv);
    Some((Aes128Gcm::new_from_slice(key).ok()?, nonce.into()))
}
