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
const MOST_POINTS: u32 = 4_096;

/// A packet of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    pub(crate) at: Instant,
    /// Where it was captured: a file, or several that follow each other, and an interface.
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
    next_point: u32,
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
    /// The time of its first packet, and of the last one that was given.
    first: Option<Instant>,
    last: Option<Instant>,
    /// The file that goes on where this one ended.
    successor: Option<usize>,
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
            next_point: 0,
        };
        for file in &mut capture.files {
            file.begin();
        }
        Ok(capture)
    }

    /// The earliest packet that was not given yet.
    pub(crate) fn next_packet(&mut self) -> Option<Captured> {
        let waiting = self.files.iter().enumerate();
        // Of packets of one time those of the file that began first: it may go on in another.
        let times = waiting
            .filter_map(|(number, file)| Some((file.next.as_ref()?.1.at, file.first, number)));
        let (_, _, number) = times.min()?;
        let (interface, mut packet) = self.files[number].next.take()?;
        packet.point = self.point((number, interface, packet.point));
        let file = &mut self.files[number];
        file.last = Some(packet.at);
        file.next = file.decode();
        Some(packet)
    }

    /// The point of an interface of a file.
    fn point(&mut self, key: (usize, u32, u32)) -> u32 {
        if let Some(&point) = self.points.get(&key) {
            return point;
        }
        let (file, interface, within) = key;
        let continued = self.predecessor(file).and_then(|earlier| {
            // It has no more packets, so that nobody asks for it again.
            let point = self.points.remove(&(earlier, interface, within))?;
            self.files[earlier].successor = Some(file);
            Some(point)
        });
        let point = continued.unwrap_or_else(|| {
            let point = self.next_point;
            self.next_point = (point + 1).min(MOST_POINTS);
            point
        });
        if self.points.len() < MOST_POINTS as usize {
            self.points.insert(key, point);
        }
        point
    }

    /// The file that file `number` goes on from, as those of a ring buffer do: it is over, and only the digits of their
    /// names differ.
    fn predecessor(&self, number: usize) -> Option<usize> {
        let name = &self.files[number].source.name;
        let earlier = self.files.iter().enumerate().filter(|(other, file)| {
            let is_over = file.next.is_none() && file.last.is_some();
            let is_free = file.successor.is_none_or(|successor| successor == number);
            *other != number
                && is_over
                && is_free
                && without_digits(&file.source.name).eq(without_digits(name))
        });
        let likeness = |(_, file): &(usize, &Reading)| {
            let pairs = file.source.name.bytes().zip(name.bytes());
            (pairs.take_while(|(a, b)| a == b).count(), file.last)
        };
        earlier.max_by_key(likeness).map(|(other, _)| other)
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
            next_point: 0,
        };
        for file in &mut again.files {
            file.begin();
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
            first: None,
            last: None,
            successor: None,
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

    /// Reads the first packet.
    fn begin(&mut self) {
        self.next = self.decode();
        self.first = self.next.as_ref().map(|(_, packet)| packet.at);
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

fn without_digits(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|byte| !byte.is_ascii_digit())
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
