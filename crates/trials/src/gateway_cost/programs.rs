//! What the programs in the kernel need for a packet, and their tables, by the kernel's own facility
//! for trying programs: no network, no scheduler.

use super::cost::{Cost, Memory, Pass};
use super::setting;
use crate::gateway_matrix::trial::TrialError;
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_gateway::links::Direction;
use outlast_gateway::tracking::Phase;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::tracker::{PassThrough, Tracker, TrackerConfig, TrackerError};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::Ipv4Addr;

const CELL: &str = "programs";
/// Bytes that an idle connection may take.
const MOST_PER_FLOW: f64 = 512.0;
/// Connections that are to be tracked at once.
const CONNECTIONS: u32 = 200_000;
/// SYNs of others, which are more than there is room for.
const SYNS: u32 = 400_000;
const PAYLOAD: usize = 1448;
/// Ports of connections from one address, from the first on.
const PORTS: u32 = 50_000;
const FIRST_PORT: u32 = 10_000;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Passes {
    /// Times that each packet is measured with each program, in turn.
    pub rounds: u32,
    /// Passes that are timed together.
    pub times: u32,
}

const fn passes(extent: Extent) -> Passes {
    match extent {
        Extent::Quick => Passes {
            rounds: 21,
            times: 50_000,
        },
        Extent::Full => Passes {
            rounds: 51,
            times: 100_000,
        },
    }
}

pub(super) fn method(extent: Extent) -> String {
    let Passes { rounds, times } = passes(extent);
    format!(
        "What the daemon's programs need for a packet is measured beside it, by the kernel's own \
         facility for trying programs (`BPF_PROG_TEST_RUN`): the same packet {times} times, in turn \
         with a program that does nothing, {rounds} times each; medians. Their tables are filled the \
         same way: {CONNECTIONS} handshakes, then {SYNS} SYNs of others."
    )
}

/// The programs and their tables.
#[derive(Debug)]
pub struct Programs;

impl Figure for Programs {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn title(&self) -> &'static str {
        "What the programs in the kernel need for a packet, and their tables"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        // About as long as it takes.
        let duration = Duration::from_secs(20);
        let setting = setting(CELL, duration, duration);
        vec![Job::new(CELL, &setting, 0).live(Trial::Passes(passes(extent)))]
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let cost: Option<Cost> = runs.of(CELL).first().and_then(Record::observed);
        let cost = cost.as_ref();
        let memory = cost.and_then(|cost| cost.memory);
        Part::new("Programs and tables in the kernel")
            .table(time_table(cost))
            .table(memory_table(memory))
            .claims(claims(memory))
    }
}

fn time_table(cost: Option<&Cost>) -> Table {
    let mut table = Table::new([
        Column::text("packet", "Packet"),
        Column::fixed("tracker_ns", "Tracker, ns", 0),
        Column::fixed("empty_ns", "Empty program, ns", 0),
        Column::fixed("difference_ns", "Difference, ns", 0),
    ])
    .titled("A packet's pass through a program of the kernel");
    for pass in cost.into_iter().flat_map(|cost| &cost.passes) {
        table.push([
            Shown::from(pass.packet.as_str()),
            Shown::from(pass.tracker_ns),
            Shown::from(pass.empty_ns),
            Shown::from(pass.tracker_ns - pass.empty_ns),
        ]);
    }
    table.note(
        "Code and data are in the processor's nearest cache here, which between two packets of real \
         traffic they are not: there a pass takes longer.",
    );
    for (name, why) in cost.into_iter().flat_map(|cost| &cost.missing) {
        table.note(format!("Not measured, {name}: {why}"));
    }
    table
}

fn memory_table(memory: Option<Memory>) -> Table {
    let mut table = Table::new([
        Column::text("what", "Table"),
        Column::quantity("places", "Places", Unit::Count),
        Column::quantity("memory_bytes", "Memory", Unit::Bytes),
        Column::fixed("place_bytes", "Bytes each", 0),
    ])
    .titled("Memory, all of it taken when the daemon starts");
    let Some(memory) = memory else { return table };
    let config = TrackerConfig::default();
    let rows = [
        ("Connections", memory.places, memory.connections),
        (
            "Handshakes under way",
            Tracker::openings_for(memory.places),
            memory.openings,
        ),
        ("Segments sent last", config.slots, memory.recorder),
    ];
    for (what, places, bytes) in rows {
        table.push([
            Shown::from(what),
            Shown::from(places),
            Shown::from(bytes),
            Shown::from(bytes as f64 / f64::from(places)),
        ]);
    }
    table.note(format!(
        "After {} handshakes {} connections were in the table, and {} of them after {} SYNs of others.",
        memory.opened, memory.tracked, memory.tracked_after, memory.syns,
    ));
    table
}

fn claims(memory: Option<Memory>) -> Vec<Judged> {
    let judged = |statement: String, unit, published, value: Option<f64>| {
        own_claim("gateway-cost", statement, unit, published).judge(value.map(|value| Measured {
            value,
            standard_deviation: None,
            count: 1,
        }))
    };
    vec![
        judged(
            "An idle connection takes at most 512 bytes of the kernel's table.".to_owned(),
            Unit::Bytes,
            Published::AtMost(MOST_PER_FLOW),
            memory.map(|memory| memory.connections as f64 / f64::from(memory.places)),
        ),
        judged(
            format!(
                "Of {CONNECTIONS} connections all are tracked at once, also after a flood of {SYNS} \
                 SYNs."
            ),
            Unit::Share,
            Published::AtLeast(1.0),
            memory.map(|memory| f64::from(memory.tracked_after) / f64::from(CONNECTIONS)),
        ),
    ]
}

/// Carries the measurements of `job` out.
///
/// # Errors
/// When the user asks for an end.
pub fn carry_out(job: &Job, passes: &Passes, cancel: &Cancel) -> Result<Ran, TrialError> {
    let began = clock::now();
    let mut cost = Cost::of_machine().map_err(|source| TrialError::Io {
        what: "count the processors",
        source,
    })?;
    let measured = time(passes, cancel).and_then(|passes| Ok((passes, fill(cancel)?)));
    match measured {
        Ok((Some(passes), Some(memory))) => {
            cost.passes = passes;
            cost.memory = Some(memory);
        }
        Ok(_) => return Err(TrialError::Site(LabError::Cancelled)),
        Err(error) => {
            let missing = ("programs".to_owned(), error.lack().what);
            cost.missing.push(missing);
        }
    }
    Ok(cost.into_ran(job, began))
}

/// One of many connections, from the near host's number on.
#[derive(Clone, Copy)]
struct Connection(u32);

impl Connection {
    /// An Ethernet frame of it.
    fn frame(
        self,
        direction: Direction,
        flags: TcpFlags,
        seq: u32,
        ack: u32,
        payload: usize,
    ) -> Vec<u8> {
        let near = Ipv4Addr::from_bits(0x0a00_0000 + self.0 / PORTS);
        let near_port = u16::try_from(FIRST_PORT + self.0 % PORTS).expect("below 60,000");
        let (near, far) = ((near, near_port), (Ipv4Addr::new(198, 51, 100, 2), 443));
        let (from, to) = match direction {
            Direction::ToLink => (near, far),
            Direction::FromLink => (far, near),
        };
        let ip = IpHeader::new(from.0.into(), to.0.into());
        let tcp = TcpHeader {
            source_port: from.1,
            destination_port: to.1,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            window: 60_000,
            options: TcpOptions {
                window_scale: flags.contains(TcpFlags::SYN).then_some(7),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        ethernet(&Packet::tcp_segment(ip, tcp, &vec![7; payload]).to_bytes())
    }

    fn syn(self, tracker: &Tracker) -> Result<(), TrackerError> {
        let frame = self.frame(Direction::ToLink, TcpFlags::SYN, 100, 0, 0);
        tracker.time(Direction::ToLink, &frame, 1).map(drop)
    }

    /// Its whole handshake: the near host sends from 101 on, the far one from 501.
    fn open(self, tracker: &Tracker) -> Result<(), TrackerError> {
        let both = TcpFlags::SYN | TcpFlags::ACK;
        self.syn(tracker)?;
        let frame = self.frame(Direction::FromLink, both, 500, 101, 0);
        tracker.time(Direction::FromLink, &frame, 1)?;
        let frame = self.frame(Direction::ToLink, TcpFlags::ACK, 101, 501, 0);
        tracker.time(Direction::ToLink, &frame, 1).map(drop)
    }
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &[8, 0], packet].concat()
}

/// A UDP datagram of 64 bytes. Of what is not TCP only the protocol is looked at.
fn datagram() -> Vec<u8> {
    let mut packet = vec![0; 20 + 8 + 64];
    let length = u16::try_from(packet.len()).expect("short");
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[8] = 64;
    packet[9] = 17;
    ethernet(&packet)
}

/// The packets, in an order in which each is honest.
fn packets(connection: Connection) -> [(&'static str, Direction, Vec<u8>); 5] {
    use Direction::{FromLink, ToLink};
    let behind = 101 + PAYLOAD as u32;
    let frame = |direction, seq, ack, payload| {
        connection.frame(direction, TcpFlags::ACK, seq, ack, payload)
    };
    [
        ("UDP datagram", ToLink, datagram()),
        (
            "Data towards the link, again and again",
            ToLink,
            frame(ToLink, 101, 501, PAYLOAD),
        ),
        (
            "Acknowledgement from the link",
            FromLink,
            frame(FromLink, 501, behind, 0),
        ),
        (
            "Data from the link",
            FromLink,
            frame(FromLink, 501, behind, PAYLOAD),
        ),
        (
            "Acknowledgement towards the link",
            ToLink,
            frame(ToLink, behind, 501 + PAYLOAD as u32, 0),
        ),
    ]
}

/// How long packets are in the programs; `None` when cancelled.
fn time(passes: &Passes, cancel: &Cancel) -> Result<Option<Vec<Pass>>, TrackerError> {
    let tracker = Tracker::load(&TrackerConfig::default())?;
    let empty = PassThrough::load()?;
    let connection = Connection(0);
    connection.open(&tracker)?;
    let mut measured = Vec::new();
    for (name, direction, frame) in packets(connection) {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..passes.rounds {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            with.push(tracker.time(direction, &frame, passes.times)?);
            without.push(empty.time(&frame, passes.times)?);
        }
        let nanos = |times: Vec<Duration>| {
            let nanos = times.into_iter().map(|time| Some(time.as_nanos() as f64));
            median(nanos).map_or(f64::NAN, |median| median.value)
        };
        measured.push(Pass {
            packet: name.to_owned(),
            tracker_ns: nanos(with),
            empty_ns: nanos(without),
        });
    }
    Ok(Some(measured))
}

/// What the tables need and hold; `None` when cancelled.
fn fill(cancel: &Cancel) -> Result<Option<Memory>, TrackerError> {
    let config = TrackerConfig::default();
    let tracker = Tracker::load(&config)?;
    let memory = tracker.memory().map_err(TrackerError::Read)?;
    let established = || {
        let mut count = 0;
        tracker.flows(
            |_| true,
            |_, flow| count += u32::from(flow.is_proven && flow.tcp.phase == Phase::Established),
        );
        count
    };
    for number in 0..CONNECTIONS {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        Connection(number).open(&tracker)?;
    }
    let tracked = established();
    for number in CONNECTIONS..CONNECTIONS + SYNS {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        Connection(number).syn(&tracker)?;
    }
    Ok(Some(Memory {
        places: config.flows,
        connections: memory.connections.0,
        openings: memory.openings.0,
        recorder: memory.recorder.0,
        opened: CONNECTIONS,
        tracked,
        syns: SYNS,
        tracked_after: established(),
    }))
}
