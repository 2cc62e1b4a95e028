//! Messages of a known size and content, back and forth on one connection.

use super::connection::{Connection, Interrupted};
use crate::delivery::DeliveryLog;
use outlast_linux::clock;
use outlast_wire::pattern;
use std::io;

/// Sizes of the messages of one exchange, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Sizes {
    pub(super) request: u64,
    pub(super) response: u64,
}

/// One direction of a conversation: where it stands in its stream of generated content.
#[derive(Debug)]
pub(super) struct Stream {
    number: u64,
    offset: u64,
    buffer: Vec<u8>,
    expected: Vec<u8>,
}

impl Stream {
    const CHUNK: usize = 16 << 10;

    /// The requests of a conversation with `seed`.
    pub(super) fn requests(seed: u64) -> Self {
        Self::new(seed ^ 1 << 31)
    }

    /// The responses of a conversation with `seed`.
    pub(super) fn responses(seed: u64) -> Self {
        Self::new(seed)
    }

    fn new(number: u64) -> Self {
        let (buffer, expected) = (vec![0; Self::CHUNK], vec![0; Self::CHUNK]);
        Self {
            number,
            offset: 0,
            buffer,
            expected,
        }
    }

    /// Sends the next `bytes`.
    pub(super) fn send(
        &mut self,
        connection: &mut Connection<'_>,
        bytes: u64,
    ) -> Result<(), Interrupted> {
        let end = self.offset + bytes;
        while self.offset < end {
            let length = (end - self.offset).min(Self::CHUNK as u64) as usize;
            pattern::fill(self.number, self.offset, &mut self.buffer[..length]);
            connection.write_all(&self.buffer[..length])?;
            self.offset += length as u64;
        }
        Ok(())
    }

    /// Receives the next `bytes` and logs when they came; whether they are what was sent.
    pub(super) fn receive(
        &mut self,
        connection: &mut Connection<'_>,
        bytes: u64,
        log: &mut DeliveryLog,
    ) -> Result<bool, Interrupted> {
        let end = self.offset + bytes;
        let mut intact = true;
        while self.offset < end {
            intact &= self.receive_some(connection, end - self.offset, log)?;
        }
        Ok(intact)
    }

    /// Receives what there is of the next `bytes`, as [`Self::receive`] does.
    pub(super) fn receive_some(
        &mut self,
        connection: &mut Connection<'_>,
        bytes: u64,
        log: &mut DeliveryLog,
    ) -> Result<bool, Interrupted> {
        let room = bytes.min(Self::CHUNK as u64) as usize;
        let length = connection.read(&mut self.buffer[..room])?;
        if length == 0 {
            return Err(Interrupted::Failed(io::ErrorKind::UnexpectedEof.into()));
        }
        log.record(clock::now(), length as u64);
        pattern::fill(self.number, self.offset, &mut self.expected[..length]);
        self.offset += length as u64;
        Ok(self.buffer[..length] == self.expected[..length])
    }
}
