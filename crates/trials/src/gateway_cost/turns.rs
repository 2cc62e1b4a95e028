//! Traffic over the lanes in turns: for some milliseconds over one, then over the next.
//!
//! The speed of a machine's processors changes from one second to the next, more so if the machine
//! is a virtual one. Within some milliseconds it hardly does: what is measured in turns as short
//! meets the same machine.

use super::bench::{BenchError, Load};
use super::row::{Connection, DatagramSockets, Lane, Row};
use outlast_base::time::{Duration, Instant};
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::netlink::{InterfaceIndex, RouteSocket};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Bytes of a turn over TCP in super-segments: 5 to 10 ms.
pub(crate) const SUPER_SEGMENTS_IN_TURN: usize = 16 << 20;
/// Bytes of a turn over TCP in packets of the link's size.
pub(crate) const PACKETS_IN_TURN: usize = 4 << 20;
/// How long a turn of datagrams is.
pub(crate) const DATAGRAM_TURN: Duration = Duration::from_millis(20);

/// Bytes that are written, and read, at a time.
const CHUNK: usize = 256 << 10;
/// Payload of a small datagram.
const SMALL: usize = 64;
/// Datagrams that are sent between two looks at the clock.
const BURST: usize = 64;

/// All orders of the lanes, in one in which each lane's turn comes as often after that of any
/// other, and never after its own.
const ORDERS: [[Lane; Lane::COUNT]; 6] = {
    let [a, b, c] = Lane::ALL;
    [
        [a, c, b],
        [c, b, a],
        [b, a, c],
        [a, b, c],
        [b, c, a],
        [c, a, b],
    ]
};

/// What went over a lane in its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Carried {
    /// Bits or datagrams.
    amount: f64,
    /// How long its turns were.
    time: Duration,
}

/// Connections over all lanes.
pub(crate) enum Traffic {
    /// Of a load that is TCP.
    Streams(Streams),
    /// Of datagrams.
    Datagrams(Datagrams),
}

/// A TCP connection over each lane, with a thread that reads from the one whose turn it is.
pub(crate) struct Streams {
    /// Bytes in a turn.
    length: usize,
    chunk: Vec<u8>,
    /// `None` once it is to end.
    writer: Option<Writer>,
    reader: Option<JoinHandle<()>>,
}

/// The fixed host's end of the connections. Dropped, it ends the reader.
struct Writer {
    outputs: [TcpStream; Lane::COUNT],
    turns: Sender<Lane>,
    /// When a turn's last byte was read.
    ends: Receiver<io::Result<Instant>>,
}

/// Sockets over each lane, and the gateway's count of what it forwards. Nobody reads it.
pub(crate) struct Datagrams {
    lanes: [DatagramLane; Lane::COUNT],
    gateway: RouteSocket,
}

struct DatagramLane {
    output: UdpSocket,
    /// Is there so that the datagrams are not refused.
    _sink: UdpSocket,
    link: InterfaceIndex,
}

impl Carried {
    /// In a second.
    ///
    /// # Errors
    /// When there was nothing at all.
    pub(crate) fn per_s(self) -> Result<f64, BenchError> {
        if self.amount > 0.0 {
            Ok(self.amount / self.time.as_secs_f64())
        } else {
            Err(io::Error::other("nothing comes through the gateway").into())
        }
    }

    /// Bits or datagrams.
    pub(crate) const fn amount(self) -> f64 {
        self.amount
    }

    fn add(&mut self, other: Self) {
        self.amount += other.amount;
        self.time += other.time;
    }
}

/// Bytes in a turn of `load`; `None` of datagrams, whose turns are as long as
/// [`DATAGRAM_TURN`].
const fn bytes_in_turn(load: Load) -> Option<usize> {
    match load {
        Load::SuperSegments => Some(SUPER_SEGMENTS_IN_TURN),
        Load::Packets => Some(PACKETS_IN_TURN),
        Load::Datagrams => None,
    }
}

impl Traffic {
    /// New connections of `load` over all lanes of `row`.
    pub(crate) fn new(row: &Row, load: Load) -> Result<Self, BenchError> {
        match bytes_in_turn(load) {
            Some(length) => Ok(Self::Streams(Streams::new(row, length)?)),
            None => Ok(Self::Datagrams(Datagrams::new(row)?)),
        }
    }

    /// TCP over these connections, by lane; as packets of the link's size unless `load` says otherwise.
    pub(crate) fn over(
        connections: [Connection; Lane::COUNT],
        load: Load,
    ) -> Result<Self, BenchError> {
        let length = bytes_in_turn(load).unwrap_or(PACKETS_IN_TURN);
        Ok(Self::Streams(Streams::over(connections, length)?))
    }

    /// Gives each of `lanes` a turn, in one order after another, until `time` is over and each has
    /// had as many; what went over each lane.
    pub(crate) fn take_turns(
        &mut self,
        lanes: &[Lane],
        time: Duration,
        cancel: &Cancel,
    ) -> Result<[Carried; Lane::COUNT], BenchError> {
        let mut carried = [Carried::default(); Lane::COUNT];
        let end = clock::now() + time;
        for order in ORDERS.iter().cycle() {
            for &lane in order.iter().filter(|lane| lanes.contains(lane)) {
                if cancel.is_cancelled() {
                    return Err(BenchError::Cancelled);
                }
                carried[lane.index()].add(self.turn(lane)?);
            }
            if clock::now() >= end {
                break;
            }
        }
        Ok(carried)
    }

    fn turn(&mut self, lane: Lane) -> Result<Carried, BenchError> {
        match self {
            Self::Streams(streams) => Ok(streams.turn(lane)?),
            Self::Datagrams(datagrams) => datagrams.turn(lane),
        }
    }
}

impl Streams {
    fn new(row: &Row, length: usize) -> Result<Self, BenchError> {
        let [a, b, c] = Lane::ALL.map(|lane| row.connect(lane));
        let connections = [a?, b?, c?];
        Ok(Self::over(connections, length)?)
    }

    fn over(connections: [Connection; Lane::COUNT], length: usize) -> io::Result<Self> {
        let [a, b, c] = connections;
        let outputs = [a.fixed, b.fixed, c.fixed];
        let inputs = [a.mobile, b.mobile, c.mobile];
        let (turns, turns_to_read) = channel();
        let (ends_read, ends) = channel();
        let reader = thread::Builder::new()
            .name("mobile-host".to_owned())
            .spawn(move || read_turns(inputs, length, &turns_to_read, &ends_read))?;
        Ok(Self {
            length,
            chunk: vec![7; CHUNK],
            writer: Some(Writer {
                outputs,
                turns,
                ends,
            }),
            reader: Some(reader),
        })
    }

    /// From before the first byte is written until the last is read.
    fn turn(&mut self, lane: Lane) -> io::Result<Carried> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let writer = self.writer.as_mut().ok_or_else(gone)?;
        writer.turns.send(lane).map_err(|_| gone())?;
        let began = clock::now();
        let output = &mut writer.outputs[lane.index()];
        let mut left = self.length;
        while left > 0 {
            let length = left.min(CHUNK);
            output.write_all(&self.chunk[..length])?;
            left -= length;
        }
        let ended = writer.ends.recv().map_err(|_| gone())??;
        Ok(Carried {
            amount: self.length as f64 * 8.0,
            time: ended.since(began),
        })
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        // The reader, which waits for a turn or for bytes, hears that there will be none.
        drop(self.writer.take());
        if let Some(reader) = self.reader.take() {
            // If it panicked, so the turn has already failed.
            let _ = reader.join();
        }
    }
}

/// Reads `length` bytes from the connection of each lane whose turn it is. When that fails, it
/// closes all of them, so that the writer fails, too.
fn read_turns(
    mut inputs: [TcpStream; Lane::COUNT],
    length: usize,
    turns: &Receiver<Lane>,
    ends: &Sender<io::Result<Instant>>,
) {
    let mut buffer = vec![0; CHUNK];
    for lane in turns {
        let read = read_length(&mut inputs[lane.index()], length, &mut buffer);
        let failed = read.is_err();
        let told = ends.send(read.map(|()| clock::now()));
        if failed || told.is_err() {
            return;
        }
    }
}

fn read_length(input: &mut TcpStream, length: usize, buffer: &mut [u8]) -> io::Result<()> {
    let mut left = length;
    while left > 0 {
        let room = left.min(buffer.len());
        match input.read(&mut buffer[..room])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => left -= length,
        }
    }
    Ok(())
}

impl Datagrams {
    fn new(row: &Row) -> Result<Self, BenchError> {
        let mut gateway = row.gateway().run(RouteSocket::open)??;
        let [a, b, c] = Lane::ALL.map(|lane| DatagramLane::new(row, &mut gateway, lane));
        let lanes = [a?, b?, c?];
        Ok(Self { lanes, gateway })
    }

    /// What the gateway forwards while as much is sent as can be.
    fn turn(&mut self, lane: Lane) -> Result<Carried, BenchError> {
        let lane = &self.lanes[lane.index()];
        let before = self.gateway.statistics(lane.link)?.sent_packets;
        let began = clock::now();
        let end = began + DATAGRAM_TURN;
        while clock::now() < end {
            lane.send_burst()?;
        }
        let after = self.gateway.statistics(lane.link)?.sent_packets;
        let ended = clock::now();
        Ok(Carried {
            amount: after.saturating_sub(before) as f64,
            time: ended.since(began),
        })
    }
}

impl DatagramLane {
    fn new(row: &Row, gateway: &mut RouteSocket, lane: Lane) -> Result<Self, BenchError> {
        let DatagramSockets { fixed, mobile } = row.datagram_sockets(lane)?;
        Ok(Self {
            output: fixed,
            _sink: mobile,
            link: gateway.interface(&lane.link())?,
        })
    }

    fn send_burst(&self) -> io::Result<()> {
        for _ in 0..BURST {
            if let Err(error) = self.output.send(&[7; SMALL]) {
                // A full queue is part of the measurement.
                if Errno::from_io_error(&error) != Some(Errno::NOBUFS) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::net::{Ipv4Addr, Shutdown, TcpListener};

    #[test]
    fn each_order_of_the_lanes_comes_once() {
        let different: BTreeSet<_> = ORDERS.into_iter().collect();
        assert_eq!(different.len(), 6);
        for order in ORDERS {
            assert_eq!(BTreeSet::from(order), BTreeSet::from(Lane::ALL));
        }
    }

    #[test]
    fn each_lane_follows_each_other_as_often() {
        let turns = ORDERS.as_flattened();
        let mut count = BTreeMap::new();
        for pair in turns.iter().zip(turns.iter().cycle().skip(1)) {
            *count.entry(pair).or_insert(0) += 1;
        }
        assert_eq!(count.len(), 6);
        assert!(count.iter().all(|((a, b), &times)| a != b && times == 3));
    }

    fn connection() -> Connection {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let to = listener.local_addr().expect("bound");
        Connection {
            fixed: TcpStream::connect(to).expect("listens"),
            mobile: listener.accept().expect("connected").0,
        }
    }

    fn traffic(length: usize) -> Traffic {
        let connections = Lane::ALL.map(|_| connection());
        Traffic::Streams(Streams::over(connections, length).expect("a thread"))
    }

    #[test]
    fn lanes_that_take_part_have_as_many_turns_and_the_others_none() {
        let length = CHUNK + 1;
        let cancel = Cancel::new().expect("a descriptor");
        let [first, second, third] = Lane::ALL;
        let carried = traffic(length)
            .take_turns(&[first, third], Duration::from_millis(20), &cancel)
            .expect("loopback carries it");
        let amounts = carried.map(|carried| carried.amount);
        assert!(amounts[first.index()] >= length as f64 * 8.0);
        assert_eq!(amounts[first.index()], amounts[third.index()]);
        assert_eq!(carried[second.index()], Carried::default());
        assert!(carried[second.index()].per_s().is_err());
    }

    #[test]
    fn a_reader_that_fails_ends_the_turns() {
        let connections = Lane::ALL.map(|_| connection());
        for connection in &connections {
            let end = connection.mobile.shutdown(Shutdown::Read);
            end.expect("connected");
        }
        let mut streams = Streams::over(connections, 16 << 20).expect("a thread");
        assert!(streams.turn(Lane::ALL[0]).is_err());
    }

    #[test]
    fn whoever_cancels_is_heard_between_turns() {
        let cancel = Cancel::new().expect("a descriptor");
        cancel.cancel();
        let turns = traffic(1).take_turns(&Lane::ALL, Duration::from_secs(60), &cancel);
        assert!(matches!(turns, Err(BenchError::Cancelled)));
    }
}
