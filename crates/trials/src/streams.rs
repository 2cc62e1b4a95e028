//! TCP connections over several ways, which are written to and read in turns.
//!
//! The speed of a machine's processors changes from one second to the next, more so if the machine
//! is a virtual one. Within some milliseconds it hardly does: what is measured in turns as short
//! meets the same machine.

use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Bytes that are written, and read, at a time.
pub(crate) const CHUNK: usize = 256 << 10;

/// A TCP connection.
pub(crate) struct Connection {
    /// The fixed host's end.
    pub(crate) fixed: TcpStream,
    /// The mobile host's end.
    pub(crate) mobile: TcpStream,
}

/// What a way carried in its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Carried {
    /// Bits or datagrams.
    pub(crate) amount: f64,
    /// How long its turns were.
    pub(crate) time: Duration,
}

impl Carried {
    /// In a second.
    ///
    /// # Errors
    /// When there was nothing at all.
    pub(crate) fn per_s(self) -> io::Result<f64> {
        if self.amount > 0.0 {
            Ok(self.amount / self.time.as_secs_f64())
        } else {
            Err(io::Error::other("nothing comes through"))
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.amount += other.amount;
        self.time += other.time;
    }
}

/// A TCP connection over each way, with a thread that reads from the one whose turn it is.
pub(crate) struct Streams {
    /// Bytes in a turn.
    length: usize,
    chunk: Vec<u8>,
    /// `None` once it is to end.
    writer: Option<Writer>,
    reader: Option<JoinHandle<()>>,
}

/// The fixed host's end of the connections. Dropped, it ends the reader.
struct Writer {
    outputs: Vec<TcpStream>,
    turns: Sender<usize>,
    /// When a turn's last byte was read.
    ends: Receiver<io::Result<Instant>>,
}

impl Streams {
    /// Turns of `length` bytes over these connections.
    pub(crate) fn over(
        connections: impl IntoIterator<Item = Connection>,
        length: usize,
    ) -> io::Result<Self> {
        let (outputs, inputs) = connections
            .into_iter()
            .map(|one| (one.fixed, one.mobile))
            .unzip();
        let (turns, turns_to_read) = channel();
        let (ends_read, ends) = channel();
        let reader = thread::Builder::new()
            .name("mobile-host".to_owned())
            .spawn(move || read_turns(inputs, length, &turns_to_read, &ends_read))?;
        Ok(Self {
            length,
            chunk: vec![7; CHUNK],
            writer: Some(Writer {
                outputs,
                turns,
                ends,
            }),
            reader: Some(reader),
        })
    }

    /// From before the first byte is written to the connection `index` until the last is read.
    pub(crate) fn turn(&mut self, index: usize) -> io::Result<Carried> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let writer = self.writer.as_mut().ok_or_else(gone)?;
        writer.turns.send(index).map_err(|_| gone())?;
        let began = clock::now();
        let output = &mut writer.outputs[index];
        let mut left = self.length;
        while left > 0 {
            let length = left.min(CHUNK);
            output.write_all(&self.chunk[..length])?;
            left -= length;
        }
        let ended = writer.ends.recv().map_err(|_| gone())??;
        Ok(Carried {
            amount: self.length as f64 * 8.0,
            time: ended.since(began),
        })
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        // The reader, which waits for a turn or for bytes, hears that there will be none.
        drop(self.writer.take());
        if let Some(reader) = self.reader.take() {
            // If it panicked, so the turn has already failed.
            let _ = reader.join();
        }
    }
}

/// Reads `length` bytes from each connection whose turn it is. When that fails, it closes all of
/// them, so that the writer fails, too.
fn read_turns(
    mut inputs: Vec<TcpStream>,
    length: usize,
    turns: &Receiver<usize>,
    ends: &Sender<io::Result<Instant>>,
) {
    let mut buffer = vec![0; CHUNK];
    for index in turns {
        let read = read_length(&mut inputs[index], length, &mut buffer);
        let failed = read.is_err();
        let told = ends.send(read.map(|()| clock::now()));
        if failed || told.is_err() {
            return;
        }
    }
}

fn read_length(input: &mut TcpStream, length: usize, buffer: &mut [u8]) -> io::Result<()> {
    let mut left = length;
    while left > 0 {
        let room = left.min(buffer.len());
        match input.read(&mut buffer[..room])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => left -= length,
        }
    }
    Ok(())
}
