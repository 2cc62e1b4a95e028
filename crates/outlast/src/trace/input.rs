//! The packets of several captures in the order of their times, in constant memory.

use super::compressed::unpacked;
use crate::failure::Failure;
use anyhow::Context;
use outlast_base::time::Instant;
use outlast_wire::capture::{CaptureError, CapturedPacket, Decoder, Step};
use outlast_wire::frame::{IpInFrame, IpsInFrame, NotIp, ips_in_frame, link_type::LINUX_SLL2};
use outlast_wire::outline::{Outline, OutlinedTransport};
use outlast_wire::pcapng::Direction;
use std::collections::{BTreeMap, HashMap, VecDeque};
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
    /// Packets, read or not.
    pub(crate) packets: u64,
    /// Bytes, unpacked.
    pub(crate) bytes: u64,
    /// Packets that are no IP, or not of a link type that is known.
    pub(crate) not_ip: u64,
    /// Packets that were not looked into, by what they are.
    pub(crate) unread: BTreeMap<NotIp, u64>,
    /// Packets without a time.
    pub(crate) untimed: u64,
    /// Packets that the capturing program lost, as it says itself.
    pub(crate) lost: u64,
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
    input: Box<dyn Read>,
    /// The capture file, opened again for a second reading; `None` for standard input, which is not kept.
    again: Option<File>,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// What of the buffer is not done with.
    at: usize,
    filled: usize,
    is_at_end: bool,
    next: Option<(u32, Captured)>,
    /// IP packets of a frame that holds several, after `next`.
    more: VecDeque<(u32, Captured)>,
    /// The time of its first packet, and of the last one that was given.
    first: Option<Instant>,
    last: Option<Instant>,
    /// The file that goes on where this one ended.
    successor: Option<usize>,
    source: Source,
}

/// Reads `input`, and keeps what was read in a file.
struct Keeping<R> {
    input: R,
    kept: Option<File>,
}

impl<R: Read> Read for Keeping<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if let Some(kept) = &mut self.kept {
            kept.write_all(&buffer[..read])?;
        }
        Ok(read)
    }
}

impl Capture {
    /// Opens `files`. What comes from standard input is kept if it `will_be_read_again`.
    pub(crate) fn open(files: &[PathBuf], will_be_read_again: bool) -> Result<Self, Failure> {
        let open = |path: &PathBuf| {
            if path.as_os_str() == "-" {
                let kept = will_be_read_again.then(tempfile::tempfile).transpose();
                let kept = kept.context("cannot keep standard input for the report")?;
                let again = kept.as_ref().map(File::try_clone).transpose();
                let again = again.context("cannot keep standard input for the report")?;
                let input = Keeping {
                    input: io::stdin(),
                    kept,
                };
                return Ok(Reading::new(input, again, PIPE.to_owned()));
            }
            let refused =
                |error| Failure::Usage(format!("cannot read {}: {error}", path.display()));
            let file = File::open(path).map_err(refused)?;
            if file.metadata().map_err(refused)?.is_dir() {
                return Err(Failure::Usage(format!(
                    "{} is a directory; name the captures in it",
                    path.display()
                )));
            }
            let again = file.try_clone().map_err(refused)?;
            Ok(Reading::new(file, Some(again), path.display().to_string()))
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
            // Its decoder must not read on meanwhile.
            drop(reading.input);
            let Some(mut file) = reading.again else {
                return Ok(None);
            };
            let rewound = file.seek(SeekFrom::Start(0));
            rewound.with_context(|| {
                format!(
                    "cannot read {} twice, as --report has to",
                    reading.source.name
                )
            })?;
            Ok(Some(Reading::new(file, None, reading.source.name)))
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
    fn new(input: impl Read + 'static, again: Option<File>, name: String) -> Self {
        let (input, error) = match unpacked(input) {
            Ok(input) => (input, None),
            Err(error) => {
                let nothing: Box<dyn Read> = Box::new(io::empty());
                (nothing, Some(Damage::Read(error.to_string())))
            }
        };
        Self {
            input,
            again,
            decoder: Decoder::default(),
            buffer: Vec::new(),
            at: 0,
            filled: 0,
            is_at_end: false,
            next: None,
            more: VecDeque::new(),
            first: None,
            last: None,
            successor: None,
            source: Source {
                name,
                packets: 0,
                bytes: 0,
                not_ip: 0,
                unread: BTreeMap::new(),
                untimed: 0,
                lost: 0,
                error,
            },
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
        if let Some(next) = self.more.pop_front() {
            return Some(next);
        }
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
                    let (interface, before) = (packet.interface, self.more.len());
                    for ip in ips_of(&packet) {
                        match ip.and_then(|ip| captured(&packet, ip)) {
                            Ok(captured) => {
                                if let OutlinedTransport::Sealed(name) = captured.outline.transport
                                {
                                    self.source.count_unread(NotIp::Sealed(name));
                                }
                                self.more.push_back((interface, captured));
                            }
                            Err(why) => self.source.count_unread(why),
                        }
                    }
                    self.at += consumed;
                    self.source.not_ip += u64::from(self.more.len() == before);
                    if let Some(next) = self.more.pop_front() {
                        return Some(next);
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
        self.source.packets += self.source.untimed;
        self.source.lost = self.decoder.lost();
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
            let read = match self.input.read(space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            self.filled += read;
            self.is_at_end = read == 0;
        }
        Ok(self.filled >= bytes)
    }
}

impl Source {
    fn count_unread(&mut self, what: NotIp) {
        *self.unread.entry(what).or_default() += 1;
    }

    /// Packets that may hold TCP and were not read, with what they are.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = (u64, String)> {
        let untimed =
            (self.untimed > 0).then(|| (self.untimed, "packets without times".to_owned()));
        let hidden = self.unread.iter().filter(|(what, _)| what.may_hide_tcp());
        let hidden = hidden.map(|(what, count)| (*count, format!("packets of {what}")));
        hidden.chain(untimed)
    }
}

fn ips_of<'a>(packet: &CapturedPacket<'a>) -> IpsInFrame<'a> {
    ips_in_frame(packet.link_type, packet.data, packet.original_len as usize)
}

fn captured(packet: &CapturedPacket<'_>, ip: IpInFrame<'_>) -> Result<Captured, NotIp> {
    let outline = Outline::of(ip.bytes, ip.original_len).ok_or(NotIp::Other)?;
    // Frames of "any" tell which interface they were seen on.
    let within = match (packet.link_type, packet.data.get(4..8)) {
        (LINUX_SLL2, Some(&[a, b, c, d])) => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    };
    Ok(Captured {
        at: Instant::ZERO + packet.time,
        point: within,
        direction: packet.direction,
        outline,
    })
}

fn without_digits(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|byte| !byte.is_ascii_digit())
}

/// Checks that every file was read to its end, and that there was something to judge in them:
/// `segments` of TCP, or IP packets of which none hides TCP.
pub(crate) fn judge(sources: &[Source], segments: u64) -> Result<(), Failure> {
    let damaged = sources.iter().filter_map(|source| {
        let error = source.error.as_ref()?;
        let read = match source.packets {
            0 => String::new(),
            1 => " (1 packet before it was read)".to_owned(),
            packets => format!(" ({packets} packets before it were read)"),
        };
        Some(format!("{}: {error}{read}", source.name))
    });
    let mut messages: Vec<String> = damaged.collect();
    if messages.is_empty() && segments == 0 {
        messages = sources.iter().filter_map(unjudged).collect();
    }
    match messages.is_empty() {
        true => Ok(()),
        false => Err(Failure::Usage(messages.join("\nerror: "))),
    }
}

/// Why there is nothing to judge in a file without TCP; `None` if it was read and has none.
fn unjudged(source: &Source) -> Option<String> {
    let name = &source.name;
    let hidden: Vec<String> = source
        .hidden()
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !hidden.is_empty() {
        let hidden = hidden.join(", ");
        return Some(format!("{name}: nothing could be read: {hidden}"));
    }
    match source.packets {
        0 => Some(format!("{name}: no packet is in it")),
        packets if packets == source.not_ip => {
            Some(format!("{name}: none of its {packets} packets is IP"))
        }
        _ => None,
    }
}
