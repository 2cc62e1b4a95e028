//! Captures that are compressed with gzip or zstd, read as they come.
//!
//! Nothing is unpacked as a whole: memory is a window of each format, whatever a file claims to
//! hold. Several members or frames in a row are one file, as their programs have it.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Bytes by which a format is known.
const MAGIC_LEN: usize = 4;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A frame of zstd that holds nothing for a reader has one of sixteen numbers.
const ZSTD_SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Compressed bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// The bytes of `raw`, unpacked if they are compressed.
pub(crate) fn unpacked(mut raw: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut head = Vec::with_capacity(MAGIC_LEN);
    (&mut raw).take(MAGIC_LEN as u64).read_to_end(&mut head)?;
    let is_gzip = head.starts_with(&GZIP);
    let is_zstd = head.starts_with(&ZSTD) || head.ends_with(&ZSTD_SKIPPED);
    let whole = Cursor::new(head).chain(raw);
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(Told {
            format: "gzip",
            input: MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole)),
        }),
        (_, true) => Box::new(Told {
            format: "zstd",
            input: Frames::Between(BufReader::with_capacity(CHUNK, whole)),
        }),
        _ => Box::new(whole),
    })
}

/// A reader whose errors name the format.
struct Told<R> {
    format: &'static str,
    input: R,
}

impl<R: Read> Read for Told<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), format!("the {} data is cut off", self.format))
            }
            kind => io::Error::new(kind, format!("damaged {} data: {error}", self.format)),
        })
    }
}

/// The frames of a zstd file, one after the other. A window of more than 128 MiB is refused: only
/// `zstd --long` makes one.
enum Frames<R> {
    Between(R),
    Within(R, Box<FrameDecoder>),
    Over,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Over) {
                Self::Over => return Ok(0),
                Self::Between(mut input) => {
                    if input.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    *self = next_frame(input)?;
                }
                Self::Within(mut input, mut frame) => {
                    while frame.can_collect() == 0 && !frame.is_finished() {
                        frame
                            .decode_blocks(&mut input, BlockDecodingStrategy::UptoBlocks(1))
                            .map_err(io::Error::other)?;
                    }
                    if frame.can_collect() > 0 {
                        let read = frame.read(buffer);
                        *self = Self::Within(input, frame);
                        return read;
                    }
                    let told = frame.get_checksum_from_data();
                    if told.is_some() && told != frame.get_calculated_checksum() {
                        return Err(io::Error::other("the checksum is wrong"));
                    }
                    *self = Self::Between(input);
                }
            }
        }
    }
}

/// The next frame, or the place behind one that is to be skipped.
fn next_frame<R: BufRead>(mut input: R) -> io::Result<Frames<R>> {
    let mut frame = FrameDecoder::new();
    match frame.init(&mut input) {
        Ok(()) => Ok(Frames::Within(input, Box::new(frame))),
        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
            length,
            ..
        })) => {
            let length = u64::from(length);
            let skipped = io::copy(&mut (&mut input).take(length), &mut io::sink())?;
            match skipped == length {
                true => Ok(Frames::Between(input)),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Err(error) => Err(io::Error::other(error)),
    }
}
