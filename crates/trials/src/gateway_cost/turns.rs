//! Traffic over the lanes in turns: for some milliseconds over one, then over the next.

use super::bench::{BenchError, Load};
use super::row::{DatagramSockets, Lane, Row};
use crate::streams::{Carried, Connection, Streams};
use outlast_base::time::Duration;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::netlink::{InterfaceIndex, RouteSocket};
use rustix::io::Errno;
use std::io;
use std::net::UdpSocket;

/// Bytes of a turn over TCP in super-segments: 5 to 10 ms.
pub(crate) const SUPER_SEGMENTS_IN_TURN: usize = 16 << 20;
/// Bytes of a turn over TCP in packets of the link's size.
pub(crate) const PACKETS_IN_TURN: usize = 4 << 20;
/// How long a turn of datagrams is.
pub(crate) const DATAGRAM_TURN: Duration = Duration::from_millis(20);

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

/// Connections over all lanes.
pub(crate) enum Traffic {
    /// Of a load that is TCP.
    Streams(Streams),
    /// Of datagrams.
    Datagrams(Datagrams),
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
            Some(length) => {
                let [a, b, c] = Lane::ALL.map(|lane| row.connect(lane));
                Ok(Self::Streams(Streams::over([a?, b?, c?], length)?))
            }
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
            Self::Streams(streams) => Ok(streams.turn(lane.index())?),
            Self::Datagrams(datagrams) => datagrams.turn(lane),
        }
    }
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
    use crate::streams::{CHUNK, Connection};
    use std::collections::{BTreeMap, BTreeSet};
    use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

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
        assert!(streams.turn(0).is_err());
    }

    #[test]
    fn whoever_cancels_is_heard_between_turns() {
        let cancel = Cancel::new().expect("a descriptor");
        cancel.cancel();
        let turns = traffic(1).take_turns(&Lane::ALL, Duration::from_secs(60), &cancel);
        assert!(matches!(turns, Err(BenchError::Cancelled)));
    }
}
