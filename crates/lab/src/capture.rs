//! Capture files of both ends of the link, with comments for what a capture cannot show by
//! itself: what the link dropped, what Outlast kept and put on the path, and outages.
//!
//! Each file has what its end of the link sees. A packet is written when its fate is known, in
//! the order of the times at which packets were seen.

use crate::error::LabError;
use crate::frame::Content;
use bytes::Bytes;
use outlast_core::mechanisms::path::{SendReason, TakeReason};
use outlast_core::time::{Duration, Instant};
use outlast_link::DropReason;
use outlast_wire::pcapng::{Direction, Encoder, EnhancedPacket, Section};
use outlast_world::Side;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Packets that may wait for the disk; later ones are missing from the file, and counted.
const WRITER_QUEUE: usize = 16_384;
/// The writer hands to the system at least this many bytes at a time while there is more.
const WRITE_SIZE: usize = 256 << 10;

/// Both files.
#[derive(Debug)]
pub(crate) struct Capture {
    ends: [End; 2],
    writer: JoinHandle<Result<(), LabError>>,
    queue: SyncSender<Written>,
    missing: u64,
    /// When the first packet was seen.
    began: Option<Instant>,
}

/// One end of the link.
#[derive(Debug, Default)]
struct End {
    /// Packets since the first one whose fate is unknown.
    pending: VecDeque<Record>,
    /// What happened to the link since the last packet that was seen here.
    news: Option<String>,
}

/// A packet that was seen at one end.
#[derive(Debug)]
struct Record {
    at: Instant,
    direction: Direction,
    bytes: Bytes,
    comments: Vec<String>,
    /// The packet's number as long as its fate is unknown.
    undecided: Option<u64>,
}

/// A packet on its way to the file of one end.
#[derive(Debug)]
struct Written {
    side: Side,
    record: Record,
}

/// What there is to say of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mark {
    /// It came to the other end.
    Crossed,
    /// The link dropped it.
    Dropped(DropReason),
    /// The gateway at this end took it.
    Taken(TakeReason),
    /// The gateway at this end put it there.
    Injected(SendReason),
}

impl Capture {
    /// Creates the two files, by [`Side::index`]. Times are those of the clock plus
    /// `unix_offset`.
    pub(crate) fn create(paths: &[PathBuf; 2], unix_offset: Duration) -> Result<Self, LabError> {
        let [fixed, mobile] = paths.each_ref().map(|path| OutputFile::create(path));
        let files = [fixed?, mobile?];
        let (queue, written) = sync_channel(WRITER_QUEUE);
        let writer = thread::Builder::new()
            .name("capture".into())
            .spawn(move || write_files(&written, files, unix_offset))
            .map_err(|source| LabError::Socket {
                action: "start a thread",
                source,
            })?;
        Ok(Self {
            ends: Default::default(),
            writer,
            queue,
            missing: 0,
            began: None,
        })
    }

    /// A packet came to the link's end at `side`, from its host or from its gateway.
    pub(crate) fn sent(
        &mut self,
        at: Instant,
        side: Side,
        serial: u64,
        content: &Content,
        injected: Option<SendReason>,
    ) {
        self.push(
            side,
            Record {
                at,
                direction: Direction::Outbound,
                bytes: content.bytes(),
                comments: injected
                    .map(|reason| Mark::Injected(reason).text())
                    .into_iter()
                    .collect(),
                undecided: Some(serial),
            },
        );
    }

    /// A packet comes to `side`, out of the link or from its gateway.
    pub(crate) fn arrived(
        &mut self,
        at: Instant,
        side: Side,
        content: &Content,
        mark: Option<Mark>,
    ) {
        self.push(
            side,
            Record {
                at,
                direction: Direction::Inbound,
                bytes: content.bytes(),
                comments: mark.map(Mark::text).into_iter().collect(),
                undecided: None,
            },
        );
    }

    /// The fate of what was sent at `side` is known.
    pub(crate) fn settle(&mut self, side: Side, serial: u64, mark: Mark) {
        let pending = &mut self.ends[side.index()].pending;
        // A copy that the link made finds the original settled.
        let Some(record) = pending
            .iter_mut()
            .find(|record| record.undecided == Some(serial))
        else {
            return;
        };
        record.undecided = None;
        if mark != Mark::Crossed {
            record.comments.push(mark.text());
        }
        self.write_decided(side);
    }

    /// The link went up or down: the next packet of each end says so.
    pub(crate) fn carrier(&mut self, at: Instant, up: bool) {
        let since = at.since(self.began.unwrap_or(at)).as_secs_f64();
        let way = if up { "up" } else { "down" };
        for end in &mut self.ends {
            let news = format!("the link went {way} {since:.6} s after the first packet");
            match &mut end.news {
                Some(earlier) => *earlier = format!("{earlier}; {news}"),
                None => end.news = Some(news),
            }
        }
    }

    /// Writes the rest. How many packets are missing because the disk was too slow.
    pub(crate) fn finish(mut self) -> Result<u64, LabError> {
        for side in Side::BOTH {
            for record in &mut self.ends[side.index()].pending {
                if record.undecided.take().is_some() {
                    record
                        .comments
                        .push("on its way when the capture ended".into());
                }
            }
            self.write_decided(side);
        }
        drop(self.queue);
        self.writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(self.missing)
    }

    fn push(&mut self, side: Side, mut record: Record) {
        self.began.get_or_insert(record.at);
        let end = &mut self.ends[side.index()];
        record.comments.splice(0..0, end.news.take());
        end.pending.push_back(record);
        self.write_decided(side);
    }

    fn write_decided(&mut self, side: Side) {
        let pending = &mut self.ends[side.index()].pending;
        while pending
            .front()
            .is_some_and(|record| record.undecided.is_none())
        {
            let Some(record) = pending.pop_front() else {
                return;
            };
            if self.queue.try_send(Written { side, record }).is_err() {
                self.missing += 1;
            }
        }
    }
}

impl Mark {
    fn text(self) -> String {
        match self {
            Self::Crossed => "crossed the link".into(),
            Self::Dropped(reason) => format!("dropped by the link: {reason}"),
            Self::Taken(reason) => format!("taken by Outlast: {}", taken(reason)),
            Self::Injected(reason) => format!("sent by Outlast: {}", injected(reason)),
        }
    }
}

fn taken(reason: TakeReason) -> &'static str {
    match reason {
        TakeReason::LinkDown => "the link is down",
        TakeReason::BehindKept => "it waits behind what is kept",
        TakeReason::JustResent => "the same segment has just been re-sent",
    }
}

fn injected(reason: SendReason) -> &'static str {
    match reason {
        SendReason::NewestAck => "newest acknowledgement, which the link had dropped",
        SendReason::Kept => "kept while the link was down",
        SendReason::Unacknowledged => "on the link when it went down, and not acknowledged",
        SendReason::RepeatedKick => "the flow does not move yet",
        SendReason::CachedRetransmission => "retransmission that found the mobile away",
        SendReason::WindowClosed => "acknowledges for the far host, and closes its window",
        SendReason::WindowOpened => "the far host is back: the window that it had offered is open",
        SendReason::Reset => "the far host never acknowledged what was acknowledged for it",
        SendReason::SmartLink => "the kept packet of the smart link layer",
        SendReason::Nudge => "lets the sender measure its round trip while the link is down",
    }
}

/// A file that is named when it fails.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    fn create(path: &Path) -> Result<Self, LabError> {
        let path = path.to_path_buf();
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(LabError::File { path, source }),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LabError> {
        self.file.write_all(bytes).map_err(|source| LabError::File {
            path: self.path.clone(),
            source,
        })
    }
}

/// The writer's thread.
fn write_files(
    queue: &Receiver<Written>,
    mut files: [OutputFile; 2],
    unix_offset: Duration,
) -> Result<(), LabError> {
    let mut encoders = Side::BOTH.map(|side| {
        let mut encoder = Encoder::new(&Section::of_application("outlast"));
        let interface = encoder.interface(match side {
            Side::Fixed => "link, fixed end",
            Side::Mobile => "link, mobile end",
        });
        (encoder, interface)
    });
    for Written { side, record } in queue {
        let (encoder, interface) = &mut encoders[side.index()];
        let time = unix_offset + Duration::from_nanos(record.at.as_nanos());
        let comment = (!record.comments.is_empty()).then(|| record.comments.join("; ").into());
        encoder.packet(&EnhancedPacket {
            direction: record.direction,
            comment,
            ..EnhancedPacket::new(*interface, time, &record.bytes)
        });
        if encoder.pending_len() >= WRITE_SIZE {
            files[side.index()].write(&encoder.take())?;
        }
    }
    for side in Side::BOTH {
        files[side.index()].write(&encoders[side.index()].0.take())?;
    }
    Ok(())
}
