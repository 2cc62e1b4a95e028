//! Security associations: sealing and opening ESP with 64-bit numbers (RFC 7402, section 3.3.6),
//! and the window against repetitions (RFC 4303, section 3.4.3).

use crate::event::Refusal;
use crate::suite::EspCipher;
use alloc::vec::Vec;
use core::fmt;
use outlast_wire::hip::{EspHeader, REPLAY_WINDOW, full_sequence};
use rand_core::CryptoRng;

/// Words of the window.
const WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// The association that this host sends under.
pub(crate) struct Outbound {
    pub(crate) spi: u32,
    cipher: EspCipher,
    /// The number of the last packet.
    pub(crate) sequence: u64,
    /// Bytes of payload sent.
    pub(crate) bytes: u64,
}

/// An association that this host receives under.
pub(crate) struct Inbound {
    pub(crate) spi: u32,
    cipher: EspCipher,
    window: Window,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbound({:#x}, {})", self.spi, self.sequence)
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbound({:#x}, {})", self.spi, self.window.highest)
    }
}

impl Outbound {
    pub(crate) const fn new(spi: u32, cipher: EspCipher) -> Self {
        Self {
            spi,
            cipher,
            sequence: 0,
            bytes: 0,
        }
    }

    /// Seals a payload; nothing once the numbers have run out.
    pub(crate) fn seal(
        &mut self,
        next: u8,
        payload: &[u8],
        random: &mut dyn CryptoRng,
    ) -> Option<Vec<u8>> {
        let sequence = self.sequence.checked_add(1)?;
        let packet = self
            .cipher
            .seal(self.spi, sequence, (next, payload), random)?;
        self.sequence = sequence;
        self.bytes += payload.len() as u64;
        Some(packet)
    }
}

impl Inbound {
    pub(crate) const fn new(spi: u32, cipher: EspCipher) -> Self {
        Self {
            spi,
            cipher,
            window: Window {
                highest: 0,
                seen: [0; WORDS],
            },
        }
    }

    /// Opens a packet: the protocol and the payload.
    pub(crate) fn open(&mut self, packet: &[u8]) -> Result<(u8, Vec<u8>), Refusal> {
        let (header, _) = EspHeader::parse(packet).map_err(|_| Refusal::Malformed)?;
        let sequence =
            full_sequence(header.sequence_low, self.window.highest).ok_or(Refusal::Repeated)?;
        if !self.window.is_new(sequence) {
            return Err(Refusal::Repeated);
        }
        let opened = self.cipher.open(sequence, packet);
        let opened = opened.ok_or(Refusal::Forged)?;
        self.window.note(sequence);
        Ok(opened)
    }
}

/// Which of the newest numbers were received.
#[derive(Debug)]
struct Window {
    highest: u64,
    /// One bit for each number modulo the window's length.
    seen: [u64; WORDS],
}

impl Window {
    fn is_new(&self, sequence: u64) -> bool {
        if sequence == 0 {
            return false;
        }
        if sequence > self.highest {
            return true;
        }
        self.highest - sequence < REPLAY_WINDOW && !self.bit(sequence)
    }

    fn bit(&self, sequence: u64) -> bool {
        let word = self.seen.get((sequence / 64) as usize % WORDS);
        word.is_some_and(|word| word >> (sequence % 64) & 1 == 1)
    }

    fn set(&mut self, sequence: u64, value: bool) {
        if let Some(word) = self.seen.get_mut((sequence / 64) as usize % WORDS) {
            *word &= !(1 << (sequence % 64));
            *word |= u64::from(value) << (sequence % 64);
        }
    }

    fn note(&mut self, sequence: u64) {
        if sequence > self.highest {
            if sequence - self.highest >= REPLAY_WINDOW {
                self.seen = [0; WORDS];
            } else {
                (self.highest + 1..sequence).for_each(|skipped| self.set(skipped, false));
            }
            self.highest = sequence;
        }
        self.set(sequence, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_takes_each_number_once() {
        let mut window = Window {
            highest: 0,
            seen: [0; WORDS],
        };
        assert!(!window.is_new(0));
        for sequence in [1, 3, 2, 2000, 1500, 977, 5000] {
            assert!(window.is_new(sequence), "{sequence}");
            window.note(sequence);
            assert!(!window.is_new(sequence), "{sequence}");
        }
        assert!(!window.is_new(5000 - REPLAY_WINDOW));
        assert!(window.is_new(5001 - REPLAY_WINDOW));
        assert!(window.is_new(4999));
    }
}
