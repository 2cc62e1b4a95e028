//! Figure 14: how long compression and decompression of a packet take, by packet size and level.

use super::timing::{ROUNDS, job, median_us, observed, timed};
use outlast_base::time::Duration;
use outlast_compression::Codec;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::moments::Moments;
use outlast_experiments::present::own_claim;
use outlast_experiments::record::Runs;
use outlast_experiments::trial::{Trial, TrialError};
use outlast_lab::Cancel;
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_wire::compressed::{CompressionMessage, Tag};
use outlast_wire::pattern::{self, Content};
use outlast_wire::{IpHeader, Packet, TcpFlags, TcpHeader};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Figure 14.
#[derive(Debug)]
pub struct Times;

const CELL: &str = "codec";
/// Payloads in bytes, as in the figure.
const SIZES: [usize; 5] = [100, 400, 700, 1_000, 1_400];
/// The longest packet of an Ethernet, in bytes.
const LONGEST: u32 = 1_500;
const LEVELS: [u8; 3] = [1, 3, 9];
const CONTENTS: [(&str, Content); 2] = [("text", Content::Text), ("binary", Content::Binary)];
/// Packets that are timed together, each of another place of its stream.
const PACKETS: usize = 64;

#[derive(Clone, Copy, Debug)]
struct CodecTrial;

/// Times of one size, content and level.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Row {
    content: String,
    size: usize,
    level: u8,
    compress_us: f64,
    restore_us: f64,
    /// Bytes of the packets as they go, over what they had; with headers.
    ratio: f64,
}

impl Trial for CodecTrial {
    fn weight(&self, capacity: u32) -> u32 {
        capacity.max(1)
    }

    fn expected(&self) -> Option<Duration> {
        Some(Duration::from_secs(5))
    }

    fn carry_out(&self, job: &Job, _: &Moments, _: &Cancel) -> Result<Ran, TrialError> {
        let mut codec = Codec::new(LONGEST);
        let mut rows = Vec::new();
        for (name, content) in CONTENTS {
            for size in SIZES {
                for level in LEVELS {
                    rows.push(row(&mut codec, (name, content), size, level));
                }
            }
        }
        let mut result = job.live_result("none");
        result.completed = true;
        Ok(Ran::new(result).observing(&rows))
    }
}

fn row(codec: &mut Codec, (name, content): (&str, Content), size: usize, level: u8) -> Row {
    let packets: Vec<Packet> = (0..PACKETS)
        .map(|place| segment(content, place * size, size))
        .collect();
    let sent = |codec: &mut Codec, packet: &Packet| {
        let smaller = codec.compress(packet, level, Tag::of(0));
        smaller.unwrap_or_else(|| packet.clone())
    };
    let crossed: Vec<Packet> = packets.iter().map(|packet| sent(codec, packet)).collect();
    let (mut compressing, mut restoring) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        compressing.push(timed(|| {
            for packet in &packets {
                black_box(sent(codec, packet));
            }
        }));
        restoring.push(timed(|| {
            for packet in &crossed {
                let payload = packet.payload().unwrap_or_default();
                if let Ok(CompressionMessage::Segment(segment)) = CompressionMessage::parse(payload)
                {
                    black_box(codec.restore(packet, &segment).is_ok());
                }
            }
        }));
    }
    let bytes = |packets: &[Packet]| packets.iter().map(Packet::total_len).sum::<u32>();
    Row {
        content: name.to_owned(),
        size,
        level,
        compress_us: median_us(compressing, PACKETS),
        restore_us: median_us(restoring, PACKETS),
        ratio: f64::from(bytes(&crossed)) / f64::from(bytes(&packets)),
    }
}

fn segment(content: Content, offset: usize, size: usize) -> Packet {
    let mut payload = vec![0; size];
    pattern::fill(content.stream(1), offset as u64, &mut payload);
    let ip = IpHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    let tcp = TcpHeader {
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(ip, tcp, &payload)
}

impl Figure for Times {
    fn name(&self) -> &'static str {
        "figure-14"
    }

    fn title(&self) -> &'static str {
        "Figure 14: times of compression and decompression by packet size"
    }

    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        vec![job(CELL).live(CodecTrial)]
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let rows: Vec<Row> = observed(runs, CELL).unwrap_or_default();
        let mut table = Table::new([
            Column::text("content", "Content"),
            Column::quantity("size_bytes", "Payload", Unit::Bytes),
            Column::fixed("level", "Level", 0),
            Column::fixed("compress_us", "Compress, µs", 1),
            Column::fixed("restore_us", "Restore, µs", 1),
            Column::quantity("ratio", "Of the packet", Unit::Share),
        ])
        .titled(self.title());
        for row in &rows {
            table.push([
                Cell::from(row.content.as_str()),
                Cell::from(row.size as f64),
                Cell::from(f64::from(row.level)),
                Cell::from(row.compress_us),
                Cell::from(row.restore_us),
                Cell::from(row.ratio),
            ]);
        }
        table.note(
            "On this machine's processor; the paper's was a Pentium of 100 MHz, which took about 3 ms to compress a packet \
             of 1,400 bytes (section 6.5): times are not judged. \"Of the packet\" counts headers. \
             Text and binary are what `content` of a scenario generates.",
        );
        Part::new(self.title()).table(table).claims(claims(&rows))
    }
}

fn claims(rows: &[Row]) -> Vec<Judged> {
    let of = |level: u8| {
        let rows = rows.iter().filter(move |row| row.level == level);
        rows.map(|row| (row.compress_us, row.ratio))
    };
    let change = of(1).zip(of(9)).map(|(fast, small)| fast.1 - small.1);
    let largest = change.reduce(f64::max).map(|value| Measured {
        value,
        standard_deviation: None,
        count: ROUNDS,
    });
    vec![
        own_claim(
            "figure-14",
            "Between the levels 1 and 9 the ratio changes by at most 5 % of the packet, which is our reading of \
             \"a few percent\" in section 6.3 (largest change).",
            Unit::Share,
            Published::AtMost(0.05),
        )
        .judge(largest),
    ]
}
