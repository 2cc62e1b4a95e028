//! A stream of datagrams at a steady pace, each with its number and the time when it was sent.
//!
//! Nobody answers it, and nothing is repeated: as RTP (RFC 3550), or ESP (RFC 4303) with speech inside.

use super::arrivals::Arrival;
use super::machine::Machine;
use outlast_base::time::{Duration, Instant};
use std::net::SocketAddr;

/// Where the number and the time stand in a datagram, behind what makes it look like its protocol.
const HEADER: usize = 12;
const NUMBER: std::ops::Range<usize> = HEADER..HEADER + 8;
const SENT: std::ops::Range<usize> = HEADER + 8..HEADER + 16;

/// What the datagrams look like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dress {
    /// RTP (RFC 3550, section 5.1), version 2, with the payload type of PCMU.
    Rtp,
    /// ESP in UDP (RFC 3948): a security parameter index that is not zero, and a sequence number.
    Esp,
}

/// The end that sends.
#[derive(Debug)]
pub struct Sender {
    dress: Dress,
    to: SocketAddr,
    every: Duration,
    length: usize,
    due: Instant,
    next: u64,
}

/// The end that listens.
#[derive(Debug, Default)]
pub struct Receiver {
    /// What has come so far.
    pub arrivals: Vec<Arrival>,
}

impl Sender {
    /// Sends a datagram of `length` bytes to `to` in each period `every` from `begin` on.
    #[must_use]
    pub fn new(
        dress: Dress,
        to: SocketAddr,
        every: Duration,
        length: usize,
        begin: Instant,
    ) -> Self {
        Self {
            dress,
            to,
            every,
            length: length.max(SENT.end),
            due: begin,
            next: 0,
        }
    }

    /// How many it has sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.next
    }

    fn datagram(&self, now: Instant) -> Vec<u8> {
        let mut datagram = vec![0; self.length];
        let low = self.next as u32;
        match self.dress {
            Dress::Rtp => {
                datagram[..2].copy_from_slice(&[0x80, 0]);
                datagram[2..4].copy_from_slice(&(low as u16).to_be_bytes());
                // The clock of PCMU: 8,000 a second.
                let stamp = (now.as_nanos() / 125_000) as u32;
                datagram[4..8].copy_from_slice(&stamp.to_be_bytes());
                datagram[8..12].copy_from_slice(&0x0a0b_0c0d_u32.to_be_bytes());
            }
            Dress::Esp => {
                datagram[..4].copy_from_slice(&0x0a0b_0c0d_u32.to_be_bytes());
                datagram[4..8].copy_from_slice(&(low + 1).to_be_bytes());
            }
        }
        datagram[NUMBER].copy_from_slice(&self.next.to_be_bytes());
        datagram[SENT].copy_from_slice(&now.as_nanos().to_be_bytes());
        datagram
    }
}

impl Machine for Sender {
    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _datagram: &[u8]) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        if now < self.due {
            return None;
        }
        let datagram = self.datagram(now);
        self.due += self.every;
        self.next += 1;
        Some((self.to, datagram))
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        Some(self.due)
    }
}

impl Machine for Receiver {
    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, datagram: &[u8]) {
        let word = |range| {
            let bytes: &[u8] = datagram.get(range)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        // What is too short is somebody else's.
        if let (Some(number), Some(sent)) = (word(NUMBER), word(SENT)) {
            self.arrivals.push(Arrival {
                at: now,
                sent: Some(Instant::from_nanos(sent)),
                number: Some(number),
                bytes: datagram.len() as u64,
            });
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        None
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}
