//! The ciphers of the ENCRYPTED parameter (RFC 7401, sections 5.2.8 and 5.2.18).

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use alloc::vec::Vec;
use rand_core::CryptoRng;

/// Length of an AES block and of an initialisation vector.
const BLOCK: usize = 16;

/// Reserved bytes before the initialisation vector.
const RESERVED: usize = 4;

/// A cipher of the parameter HIP_CIPHER.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HipCipher {
    /// Number 2, which every implementation has.
    Aes128Cbc,
    /// Number 4.
    Aes256Cbc,
}

impl HipCipher {
    /// All ciphers, the preferred ones first.
    pub const ALL: [Self; 2] = [Self::Aes128Cbc, Self::Aes256Cbc];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Aes128Cbc => 2,
            Self::Aes256Cbc => 4,
        }
    }

    /// The cipher with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|cipher| cipher.number() == number)
    }

    /// Bytes of its key.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Cbc => 16,
            Self::Aes256Cbc => 32,
        }
    }

    /// The contents of ENCRYPTED for the parameters `plain`; nothing if the key has another length.
    #[must_use]
    pub fn seal(self, key: &[u8], plain: &[u8], random: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut iv = [0; BLOCK];
        random.fill_bytes(&mut iv);
        let sealed = match self {
            Self::Aes128Cbc => cbc::Encryptor::<aes::Aes128>::new_from_slices(key, &iv)
                .ok()?
                .encrypt_padded_vec::<Pkcs7>(plain),
            Self::Aes256Cbc => cbc::Encryptor::<aes::Aes256>::new_from_slices(key, &iv)
                .ok()?
                .encrypt_padded_vec::<Pkcs7>(plain),
        };
        Some([&[0; RESERVED], &iv[..], &sealed].concat())
    }

    /// The parameters in the contents of ENCRYPTED; nothing if they were not sealed with this key.
    #[must_use]
    pub fn open(self, key: &[u8], contents: &[u8]) -> Option<Vec<u8>> {
        let (iv, sealed) = contents.get(RESERVED..)?.split_at_checked(BLOCK)?;
        match self {
            Self::Aes128Cbc => cbc::Decryptor::<aes::Aes128>::new_from_slices(key, iv)
                .ok()?
                .decrypt_padded_vec::<Pkcs7>(sealed)
                .ok(),
            Self::Aes256Cbc => cbc::Decryptor::<aes::Aes256>::new_from_slices(key, iv)
                .ok()?
                .decrypt_padded_vec::<Pkcs7>(sealed)
                .ok(),
        }
    }
}
