//! The files that captures come in.

use super::headers::Header;
use super::tape::Packet;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// A kind of file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum File {
    Pcap,
    PcapBigEndian,
    PcapNanoseconds,
    /// Records that are eight bytes longer (Kuznetzov's patch), in either byte order.
    PcapModified,
    PcapModifiedBigEndian,
    Pcapng,
    /// Simple packet blocks, which have no times.
    Untimed,
    Gzip,
    /// Two members, the second of which begins in the middle of a packet.
    GzipInTwo,
    Zstd,
    /// Two frames, and one between that is to be skipped.
    ZstdInTwo,
}

/// Beginning of all captures, in seconds since the epoch.
const EPOCH: u64 = 1_700_000_000;

/// `packets` behind `header` in a file of this kind.
pub(crate) fn write(packets: &[Packet], header: &Header, file: File) -> Vec<u8> {
    let link_type = header.link_type;
    let frames = packets.iter().map(|packet| {
        let at = EPOCH * 1_000_000 + packet.at;
        (at, packet.is_sent, (header.wrap)(packet))
    });
    match file {
        File::Pcap => pcap(link_type, frames, u32::to_le_bytes, MICROSECONDS),
        File::PcapBigEndian => pcap(link_type, frames, u32::to_be_bytes, MICROSECONDS),
        File::PcapNanoseconds => pcap(link_type, frames, u32::to_le_bytes, NANOSECONDS),
        File::PcapModified => pcap(link_type, frames, u32::to_le_bytes, MODIFIED),
        File::PcapModifiedBigEndian => pcap(link_type, frames, u32::to_be_bytes, MODIFIED),
        File::Pcapng => pcapng(link_type, frames, true),
        File::Untimed => pcapng(link_type, frames, false),
        File::Gzip => gzip(&write(packets, header, File::Pcap)),
        File::GzipInTwo => in_two(&write(packets, header, File::Pcap), gzip, &[]),
        File::Zstd => zstd(&write(packets, header, File::Pcapng)),
        File::ZstdInTwo => {
            let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
            in_two(&write(packets, header, File::Pcapng), zstd, &skipped)
        }
    }
}

/// First words of pcap files.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

fn pcap(
    link_type: u32,
    frames: impl Iterator<Item = (u64, bool, Vec<u8>)>,
    word: fn(u32) -> [u8; 4],
    magic: u32,
) -> Vec<u8> {
    // Two halves in one word, in the file's order.
    let version = match word(1) {
        [1, ..] => 0x0004_0002,
        _ => 0x0002_0004,
    };
    let mut out: Vec<u8> = [magic, version, 0, 0, 262_144, link_type]
        .into_iter()
        .flat_map(word)
        .collect();
    for (at, is_sent, frame) in frames {
        let fraction = (at % 1_000_000) as u32 * if magic == NANOSECONDS { 1_000 } else { 1 };
        let length = frame.len() as u32;
        let words = [(at / 1_000_000) as u32, fraction, length, length];
        out.extend(words.into_iter().flat_map(word));
        if magic == MODIFIED {
            // Interface 2, a protocol that nobody reads, the packet type of Linux, padding.
            out.extend(word(2));
            out.extend([0, 0, if is_sent { 4 } else { 0 }, 0]);
        }
        out.extend(frame);
    }
    out
}

fn pcapng(
    link_type: u32,
    frames: impl Iterator<Item = (u64, bool, Vec<u8>)>,
    has_times: bool,
) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    };
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let section = words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
    let mut out = block(0x0a0d_0d0a, &section);
    out.extend(block(1, &words(&[link_type, 0])));
    for (at, _, frame) in frames {
        let length = frame.len() as u32;
        let (kind, front) = match has_times {
            true => (6, vec![0, (at >> 32) as u32, at as u32, length, length]),
            false => (3, vec![length]),
        };
        out.extend(block(kind, &[words(&front), frame].concat()));
    }
    out
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Two halves, each compressed for itself, and `between` them.
fn in_two(bytes: &[u8], compress: fn(&[u8]) -> Vec<u8>, between: &[u8]) -> Vec<u8> {
    let (front, back) = bytes.split_at(bytes.len() / 2 + 5);
    [&compress(front)[..], between, &compress(back)].concat()
}
