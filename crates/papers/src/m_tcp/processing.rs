//! Figure 17, left: processing time for a packet at the supervisor host, by packet size.

use super::claim;
use super::timing::{ROUNDS, job, median_us, observed, timed};
use bytes::Bytes;
use outlast_base::time::{Duration, Instant};
use outlast_experiments::carry_out::Ran;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::moments::Moments;
use outlast_experiments::record::Runs;
use outlast_experiments::trial::{Trial, TrialError};
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, InterfaceId, LinkConfig, LinkId};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_lab::Cancel;
use outlast_report::judgement::{Claim, Measured, Published, Tolerance};
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use serde::{Deserialize, Serialize};

/// The left half of figure 17.
#[derive(Debug)]
pub struct Processing;

const CELL: &str = "processing";
const LINK: LinkId = LinkId::of_interface(InterfaceId(0));
/// Payloads in bytes, as in the figure.
const SIZES: [usize; 5] = [100, 400, 700, 1_000, 1_400];
/// Segments that are timed together: less than a window of 64 KiB.
const SEGMENTS: usize = 32;
const WAYS: [PathMechanismKind; 4] = [
    PathMechanismKind::None,
    PathMechanismKind::MTcp,
    PathMechanismKind::MTcpAdaptive,
    PathMechanismKind::Hold,
];

#[derive(Clone, Copy, Debug)]
struct ProcessingTrial;

/// Microseconds for a segment of `size` bytes of payload, for each of [`WAYS`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Row {
    size: usize,
    us: Vec<f64>,
}

/// A gateway, one connection, and where its sender is.
struct TimedConnection {
    gateway: Gateway,
    seq: u32,
    now: Instant,
}

impl TimedConnection {
    fn new(mechanism: PathMechanismKind) -> Self {
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism,
            ..GatewayConfig::default()
        });
        gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig::default());
        let mut connection = Self {
            gateway,
            seq: 1,
            now: Instant::ZERO,
        };
        // Both hosts are heard before anything is timed.
        let _ = connection.round(1);
        connection
    }

    /// Segments of `size` bytes cross and are acknowledged; how long the segments take.
    fn round(&mut self, size: usize) -> Duration {
        let first = self.seq;
        let numbers: Vec<u32> = (0..SEGMENTS as u32)
            .map(|number| first.wrapping_add(number * size as u32))
            .collect();
        let data: Vec<Bytes> = numbers
            .iter()
            .map(|&seq| segment([[10, 1, 0, 1], [10, 2, 0, 1]], (80, 4_000), (seq, 7), size))
            .collect();
        let taken = timed(|| {
            for bytes in data {
                self.cross(Direction::ToLink, bytes);
            }
        });
        for seq in numbers {
            let ack = seq.wrapping_add(size as u32);
            let bytes = segment([[10, 2, 0, 1], [10, 1, 0, 1]], (4_000, 80), (7, ack), 0);
            self.cross(Direction::FromLink, bytes);
            self.seq = ack;
        }
        taken
    }

    fn cross(&mut self, direction: Direction, bytes: Bytes) {
        self.now += Duration::from_micros(20);
        if let Ok(packet) = Packet::parse(bytes) {
            let _ = self
                .gateway
                .handle_packet(self.now, LINK, direction, &packet);
        }
        while self.gateway.poll_transmit().is_some() {}
        while self.gateway.poll_event().is_some() {}
    }
}

fn segment(
    [source, destination]: [[u8; 4]; 2],
    (source_port, destination_port): (u16, u16),
    (seq, ack): (u32, u32),
    size: usize,
) -> Bytes {
    let ip = IpHeader::new(source.into(), destination.into());
    let tcp = TcpHeader {
        source_port,
        destination_port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        window: u16::MAX,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(ip, tcp, &vec![7; size]).to_bytes()
}

impl Trial for ProcessingTrial {
    fn weight(&self, capacity: u32) -> u32 {
        capacity.max(1)
    }

    fn expected(&self) -> Option<Duration> {
        Some(Duration::from_secs(2))
    }

    fn carry_out(&self, job: &Job, _: &Moments, _: &Cancel) -> Result<Ran, TrialError> {
        let rows: Vec<Row> = SIZES
            .into_iter()
            .map(|size| {
                let mut connections = WAYS.map(TimedConnection::new);
                let mut times = WAYS.map(|_| Vec::new());
                // Side by side: what else this machine does slows all of them.
                for _ in 0..ROUNDS {
                    for (connection, times) in connections.iter_mut().zip(&mut times) {
                        times.push(connection.round(size));
                    }
                }
                let us = times.map(|times| median_us(times, SEGMENTS));
                Row {
                    size,
                    us: us.to_vec(),
                }
            })
            .collect();
        let mut result = job.live_result("none");
        result.completed = true;
        Ok(Ran::new(result).observing(&rows))
    }
}

/// Why the ratio is another one.
const FORWARDING: &str = "the paper's 31 µs are the IP layer of a kernel. Forwarding here is a look-up of the \
    connection alone, less than a tenth of a microsecond, so that the quarter of a microsecond of the mechanism \
    makes a larger ratio.";

impl Figure for Processing {
    fn name(&self) -> &'static str {
        "figure-17-left"
    }

    fn title(&self) -> &'static str {
        "Figure 17, left: processing time for a packet at the supervisor host"
    }

    fn depends_on_machine(&self) -> bool {
        true
    }

    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        vec![job(CELL).live(ProcessingTrial)]
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let rows: Vec<Row> = observed(runs, CELL).unwrap_or_default();
        let mut table = Table::new(
            [Column::quantity("size_bytes", "Payload", Unit::Bytes)]
                .into_iter()
                .chain(WAYS.map(|way| match way {
                    PathMechanismKind::None => Column::fixed("none_us", "Forwarded, µs", 2),
                    way => {
                        let name = way.info().name;
                        Column::fixed(
                            format!("{}_us", name.replace('-', "_")),
                            format!("{name}, µs"),
                            2,
                        )
                    }
                })),
        )
        .titled(self.title());
        for row in &rows {
            let times = row.us.iter().map(|&us| Cell::from(us));
            table.push([Cell::from(row.size as f64)].into_iter().chain(times));
        }
        table.note(
            "From the bytes of a data segment to the verdict, in user space and with everything in the processor's \
             caches: parsing, its checksum, its connection, the mechanism. What it takes to get a packet from the \
             kernel and back is in the trial `supervisor-cost`.",
        );
        let dearest = rows
            .iter()
            .filter_map(|row| Some(row.us.get(1)? / row.us.first()?));
        let dearest = dearest.reduce(f64::max).map(|value| Measured {
            value,
            standard_deviation: None,
            count: ROUNDS,
        });
        Part::new(self.title()).table(table).claims(vec![
            Claim {
                departure: Some(FORWARDING.into()),
                ..claim(
                    "figure 17",
                    "M-TCP takes a packet 112 µs where forwarding takes 31 µs (largest ratio over all sizes).",
                    Unit::Factor,
                    Published::AtMost(112.0 / 31.0),
                    Tolerance::Absolute(0.0),
                )
            }
            .judge(dearest),
        ])
    }
}
