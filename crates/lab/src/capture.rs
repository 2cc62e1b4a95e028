//! Capture files of both ends of the link, on a thread of their own.

use crate::error::LabError;
use outlast_base::time::Duration;
use outlast_wire::pcapng::{Encoder, EnhancedPacket, InterfaceId, Section};
use outlast_world::Side;
use outlast_world::path::Seen;
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
    writer: JoinHandle<Result<(), LabError>>,
    queue: SyncSender<(Side, Seen)>,
    missing: u64,
}

impl Capture {
    /// Creates the two files of the link that they call `link`, by [`Side::index`]. Times are those
    /// of the clock plus `unix_offset`.
    pub(crate) fn create(
        link: &str,
        paths: &[PathBuf; 2],
        unix_offset: Duration,
    ) -> Result<Self, LabError> {
        let [fixed, mobile] = paths.each_ref().map(|path| OutputFile::create(path));
        let files = [fixed?, mobile?];
        let (queue, written) = sync_channel(WRITER_QUEUE);
        let encoders = Side::BOTH.map(|side| {
            let mut encoder = Encoder::new(&Section::of_application("outlast"));
            let interface = encoder.interface(&format!("{link}, {side} end"));
            (encoder, interface)
        });
        let writer = thread::Builder::new()
            .name("capture".into())
            .spawn(move || write_files(&written, files, encoders, unix_offset))
            .map_err(|source| LabError::Socket {
                action: "start a thread",
                source,
            })?;
        Ok(Self {
            writer,
            queue,
            missing: 0,
        })
    }

    /// Writes what the end at `side` saw.
    pub(crate) fn write(&mut self, side: Side, seen: Seen) {
        if self.queue.try_send((side, seen)).is_err() {
            self.missing += 1;
        }
    }

    /// Waits for the rest. How many packets are missing because the disk was too slow.
    pub(crate) fn finish(self) -> Result<u64, LabError> {
        drop(self.queue);
        self.writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(self.missing)
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
    queue: &Receiver<(Side, Seen)>,
    mut files: [OutputFile; 2],
    mut encoders: [(Encoder, InterfaceId); 2],
    unix_offset: Duration,
) -> Result<(), LabError> {
    for (side, seen) in queue {
        let (encoder, interface) = &mut encoders[side.index()];
        let time = unix_offset + Duration::from_nanos(seen.at.as_nanos());
        encoder.packet(&EnhancedPacket {
            direction: seen.direction,
            comment: seen.comment.map(Into::into),
            ..EnhancedPacket::new(*interface, time, &seen.bytes)
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
