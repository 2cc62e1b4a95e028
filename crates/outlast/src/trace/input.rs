//! The packets of several captures in the order of their times, in constant memory.

use crate::failure::Failure;
use anyhow::Context;
use outlast_base::time::Instant;
use outlast_wire::capture::{CaptureError, CapturedPacket, Decoder, Step};
use outlast_wire::outline::Outline;
use outlast_wire::pcapng::{Direction, ip_in_frame};
use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;
/// What standard input is called.
pub(crate) const PIPE: &str = "standard input";
/// Points of capture that are told apart; further ones count as the last.
const MOST_POINTS: usize = 4_096;

/// A packet of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    pub(crate) at: Instant,
    /// Where it was captured: a file and an interface.
    pub(crate) point: u32,
    pub(crate) direction: Direction,
    pub(crate) outline: Outline,
}

/// What became of a file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Packets that are no IP, or not of a link type that is known.
    pub(crate) not_ip: u64,
    /// Packets without a time.
    pub(crate) untimed: u64,
    /// Why it was not read to its end.
    pub(crate) error: Option<Damage>,
}

/// Why a file was not read to its end.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    /// Its bytes are not what they should be.
    Format(CaptureError),
    /// It could not be read.
    Read(String),
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::Read(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

/// Several captures.
pub(crate) struct Capture {
    files: Vec<Reading>,
    points: HashMap<(usize, u32, u32), u32, BuildHasherDefault<std::hash::DefaultHasher>>,
}

/// A file that is being read.
struct Reading {
    input: Input,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// What of the buffer is not done with.
    at: usize,
    filled: usize,
    is_at_end: bool,
    next: Option<(u32, Captured)>,
    source: Source,
    /// What is kept of standard input, to be read again.
    kept: Option<File>,
}

enum Input {
    File(File),
    Pipe(io::Stdin),
}

impl Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Self::File(file) => file.read(buffer),
                Self::Pipe(pipe) => pipe.lock().read(buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Capture {
    /// Opens `files`. What comes from standard input is kept if it `will_be_read_again`.
    pub(crate) fn open(files: &[PathBuf], will_be_read_again: bool) -> Result<Self, Failure> {
        let open = |path: &PathBuf| {
            let is_pipe = path.as_os_str() == "-";
            let (input, kept) = if is_pipe {
                let kept = will_be_read_again.then(tempfile::tempfile).transpose();
                let kept = kept.context("cannot keep standard input for the report")?;
                (Input::Pipe(io::stdin()), kept)
            } else {
                let refused =
                    |error| Failure::Usage(format!("cannot read {}: {error}", path.display()));
                let file = File::open(path).map_err(refused)?;
                if file.metadata().map_err(refused)?.is_dir() {
                    return Err(Failure::Usage(format!(
                        "{} is a directory; name the captures in it",
                        path.display()
                    )));
                }
                (Input::File(file), None)
            };
            let name = match is_pipe {
                true => PIPE.to_owned(),
                false => path.display().to_string(),
            };
            Ok(Reading::new(input, name, kept))
        };
        let files = files.iter().map(open).collect::<Result<_, Failure>>()?;
        let mut capture = Self {
            files,
            points: HashMap::default(),
        };
        for number in 0..capture.files.len() {
            capture.advance(number);
        }
        Ok(capture)
    }

    /// The earliest packet that was not given yet.
    pub(crate) fn next_packet(&mut self) -> Option<Captured> {
        let waiting = self.files.iter().enumerate();
        let times = waiting.filter_map(|(number, file)| Some((file.next.as_ref()?.1.at, number)));
        let (_, number) = times.min()?;
        let (_, packet) = self.files[number].next.take()?;
        self.advance(number);
        Some(packet)
    }

    fn advance(&mut self, number: usize) {
        let file = &mut self.files[number];
        file.next = file.decode();
        if let Some((interface, captured)) = &mut file.next {
            let count = self.points.len().min(MOST_POINTS) as u32;
            let key = (number, *interface, captured.point);
            captured.point = match self.points.get(&key) {
                Some(&point) => point,
                None if self.points.len() < MOST_POINTS => {
                    self.points.insert(key, count);
                    count
                }
                None => count,
            };
        }
    }

    /// What became of the files.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let files = self.files.iter();
        files.map(|file| file.source.clone()).collect()
    }

    /// Rewinds the captures to their start.
    pub(crate) fn again(self) -> Result<Self, Failure> {
        let rewind = |reading: Reading| {
            let mut file = match (reading.input, reading.kept) {
                (_, Some(kept)) => kept,
                (Input::File(file), None) => file,
                (Input::Pipe(_), None) => return Ok(None),
            };
            let rewound = file.seek(SeekFrom::Start(0));
            rewound.with_context(|| {
                format!(
                    "cannot read {} twice, as --report has to",
                    reading.source.name
                )
            })?;
            let input = Input::File(file);
            Ok(Some(Reading::new(input, reading.source.name, None)))
        };
        let files: Vec<Option<Reading>> = self
            .files
            .into_iter()
            .map(rewind)
            .collect::<Result<_, Failure>>()?;
        let mut again = Self {
            files: files.into_iter().flatten().collect(),
            points: HashMap::default(),
        };
        for number in 0..again.files.len() {
            again.advance(number);
        }
        Ok(again)
    }
}

impl Reading {
    fn new(input: Input, name: String, kept: Option<File>) -> Self {
        Self {
            input,
            decoder: Decoder::default(),
            buffer: Vec::new(),
            at: 0,
            filled: 0,
            is_at_end: false,
            next: None,
            source: Source {
                name,
                packets: 0,
                bytes: 0,
                not_ip: 0,
                untimed: 0,
                error: None,
            },
            kept,
        }
    }

    /// The next IP packet, with its interface; its point is not yet a point but what tells
    /// interfaces apart within a frame.
    fn decode(&mut self) -> Option<(u32, Captured)> {
        while self.source.error.is_none() {
            let input = self.buffer.get(self.at..self.filled).unwrap_or_default();
            let step = match self.decoder.decode(input) {
                Ok(step) => step,
                Err(error) => {
                    self.source.error = Some(Damage::Format(error));
                    break;
                }
            };
            match step {
                Step::Packet { consumed, packet } => {
                    self.source.packets += 1;
                    let captured = captured(&packet);
                    let interface = packet.interface;
                    self.at += consumed;
                    match captured {
                        Some(captured) => return Some((interface, captured)),
                        None => self.source.not_ip += 1,
                    }
                }
                Step::Passed { consumed } => {
                    if let Err(error) = self.pass(consumed) {
                        self.source.error = Some(error);
                    }
                }
                Step::Need { bytes } => match self.fill(bytes) {
                    Ok(true) => {}
                    Ok(false) => {
                        let left = self.filled - self.at;
                        let end = self.decoder.end(left);
                        self.source.error = end.err().map(Damage::Format);
                        break;
                    }
                    Err(error) => self.source.error = Some(Damage::Read(error.to_string())),
                },
            }
        }
        self.source.bytes = self.decoder.offset();
        self.source.untimed = self.decoder.untimed();
        None
    }

    /// Is done with so many bytes, of which some may not have been read.
    fn pass(&mut self, mut bytes: u64) -> Result<(), Damage> {
        loop {
            let there = (self.filled - self.at) as u64;
            let step = there.min(bytes);
            // No more than there is.
            self.at += step as usize;
            bytes -= step;
            if bytes == 0 {
                return Ok(());
            }
            let offset = self.decoder.offset() - bytes;
            match self.fill(1) {
                Ok(true) => {}
                Ok(false) => return Err(Damage::Format(CaptureError::Truncated { offset })),
                Err(error) => return Err(Damage::Read(error.to_string())),
            }
        }
    }

    /// Reads until so many bytes are there; whether they are.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        self.buffer.resize(CHUNK.max(bytes), 0);
        while self.filled < bytes && !self.is_at_end {
            let space = &mut self.buffer[self.filled..];
            let read = self.input.read(space)?;
            if let Some(kept) = &mut self.kept {
                kept.write_all(&space[..read])?;
            }
            self.filled += read;
            self.is_at_end = read == 0;
        }
        Ok(self.filled >= bytes)
    }
}

fn captured(packet: &CapturedPacket<'_>) -> Option<Captured> {
    const LINUX_SLL2: u16 = 276;
    let ip = ip_in_frame(packet.link_type, packet.data)?;
    let framing = packet.data.len() - ip.len();
    let original_len = (packet.original_len as usize).saturating_sub(framing);
    let outline = Outline::of(ip, original_len)?;
    // Frames of "any" tell which interface they were seen on.
    let within = match (packet.link_type, packet.data.get(4..8)) {
        (LINUX_SLL2, Some(&[a, b, c, d])) => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    };
    Some(Captured {
        at: Instant::ZERO + packet.time,
        point: within,
        direction: packet.direction,
        outline,
    })
}

/// Whether every file was read to its end.
pub(crate) fn judge(sources: &[Source]) -> Result<(), Failure> {
    let damaged = sources.iter().filter_map(|source| {
        let error = source.error.as_ref()?;
        let read = match source.packets {
            0 => String::new(),
            1 => " (1 packet before it was read)".to_owned(),
            packets => format!(" ({packets} packets before it were read)"),
        };
        Some(format!("{}: {error}{read}", source.name))
    });
    let messages: Vec<String> = damaged.collect();
    match messages.is_empty() {
        true => Ok(()),
        false => Err(Failure::Usage(messages.join("\nerror: "))),
    }
}
