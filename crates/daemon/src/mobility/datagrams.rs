//! The socket of Mobile IPv4's messages and of tunnels in UDP (RFC 3519).
//!
//! Packets of a tunnel that follow each other to the same end leave in one call, as one super-segment of UDP
//! (`UDP_SEGMENT`), which the kernel cuts as late as it can, or never where the other end is on the same machine;
//! what comes like that is read in one call, too (`UDP_GRO`). A tunnel IP in IP has nothing like it.

use anyhow::Context;
use outlast_linux::socket::{Buffer, set_buffer};
use outlast_wire::mobile_ip::{PORT, TunnelData};
use outlast_wire::{Packet, Transport};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::fd::{AsFd, BorrowedFd};
use socket2::SockRef;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// Memory for messages that nobody has taken yet, and for those that wait for the interface, in bytes.
const BUFFER: usize = 8 << 20;
/// Bytes of payload in one call: the longest packet less its headers.
const LONGEST: usize = 65_535 - 20 - 8;
/// Where the payload of a datagram without options of IP begins.
const PAYLOAD_AT: usize = 28;

/// The socket, and how the kernel takes and gives several datagrams at once.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    state: UdpSocketState,
    payload: Vec<u8>,
}

impl Datagrams {
    /// Listens at the port of registrations; what is sent bears `mark`.
    pub(super) fn open(mark: u32) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))
            .with_context(|| format!("cannot listen at UDP port {PORT}"))?;
        SockRef::from(&socket).set_mark(mark)?;
        Ok(Self::over(socket)?)
    }

    fn over(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Thousands of mobile nodes that move at once register at once.
        set_buffer(&socket, Buffer::Receive, BUFFER)?;
        set_buffer(&socket, Buffer::Send, BUFFER)?;
        Ok(Self {
            socket,
            state,
            payload: Vec::new(),
        })
    }

    pub(super) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The next datagrams of one sender, and how many bytes each but the last has; `None` if there are none.
    ///
    /// # Errors
    /// Those about an earlier datagram.
    pub(super) fn receive<'b>(
        &self,
        buffer: &'b mut [u8],
    ) -> io::Result<Option<(SocketAddr, std::slice::Chunks<'b, u8>)>> {
        let mut meta = [RecvMeta::default()];
        let received = {
            let mut buffers = [IoSliceMut::new(buffer)];
            self.state
                .recv((&self.socket).into(), &mut buffers, &mut meta)
        };
        let [
            RecvMeta {
                addr, len, stride, ..
            },
        ] = meta;
        match received {
            Ok(_) => Ok(Some((addr, buffer[..len].chunks(stride.max(1))))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The most datagrams that leave in one call.
    pub(super) fn most(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends what was gathered in one call; whether the kernel took it, or had no room.
    pub(super) fn send(&mut self, own: IpAddr, batch: &Batch) -> bool {
        let Some(first) = batch.packets.first() else {
            return true;
        };
        self.payload.clear();
        for packet in &batch.packets {
            self.payload.extend_from_slice(payload(packet));
        }
        let transmit = Transmit {
            destination: SocketAddr::new(first.header().ip.destination, destination_port(first)),
            ecn: None,
            contents: &self.payload,
            segment_size: Some(payload(first).len()),
            src_ip: Some(own),
        };
        let before = self.most();
        match self.state.try_send((&self.socket).into(), &transmit) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(error) => {
                let to = transmit.destination;
                if self.most() < before {
                    tracing::info!(
                        %to, %error,
                        "tunnelled packets leave one by one until the own address changes"
                    );
                } else {
                    tracing::debug!(%to, %error, "these tunnelled packets leave one by one");
                }
                false
            }
        }
    }

    /// Lets datagrams leave together again after the kernel has refused some.
    ///
    /// A kernel refuses what a network card cannot cut, and some kernels answer the same (`EINVAL`) for one batch that
    /// is longer than the interface's MTU. Neither need be so at another address.
    ///
    /// # Errors
    /// When the kernel does not take the socket's options.
    pub(super) fn gather_again(&mut self) -> io::Result<()> {
        if self.most() == 1 {
            self.state = UdpSocketState::new((&self.socket).into())?;
        }
        Ok(())
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Packets of a tunnel in UDP that can leave in one call: to one end, each as long as the first, the last one perhaps
/// shorter.
#[derive(Debug, Default)]
pub(super) struct Batch {
    packets: Vec<Packet>,
    length: usize,
    is_closed: bool,
}

impl Batch {
    /// Whether a packet is one of a tunnel in UDP from `own`.
    pub(super) fn is_for(packet: &Packet, own: Option<IpAddr>) -> bool {
        let Transport::Udp(udp) = packet.header().transport else {
            return false;
        };
        let is_own = own.is_some_and(|own| own.is_ipv4() && own == packet.header().ip.source);
        is_own && udp.source_port == PORT && TunnelData::parse(payload(packet)).is_ok()
    }

    /// Whether a packet can follow those that are there.
    pub(super) fn accepts(&self, packet: &Packet, most: usize) -> bool {
        let Some(first) = self.packets.first() else {
            return true;
        };
        let length = payload(packet).len();
        !self.is_closed
            && self.packets.len() < most
            && first.header().ip.destination == packet.header().ip.destination
            && destination_port(first) == destination_port(packet)
            && length <= payload(first).len()
            && self.length + length <= LONGEST
    }

    pub(super) fn push(&mut self, packet: Packet) {
        let length = payload(&packet).len();
        let first = self.packets.first();
        self.is_closed = first.is_some_and(|first| length < payload(first).len());
        self.length += length;
        self.packets.push(packet);
    }

    pub(super) fn packets(&self) -> &[Packet] {
        &self.packets
    }

    pub(super) fn clear(&mut self) {
        self.packets.clear();
        (self.length, self.is_closed) = (0, false);
    }
}

/// What a datagram that was made here carries.
fn payload(packet: &Packet) -> &[u8] {
    let bytes = packet.bytes();
    bytes
        .and_then(|bytes| bytes.get(PAYLOAD_AT..))
        .unwrap_or_default()
}

fn destination_port(packet: &Packet) -> u16 {
    match packet.header().transport {
        Transport::Udp(udp) => udp.destination_port,
        _ => PORT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_base::time::Duration;
    use outlast_linux::clock;
    use outlast_wire::{IpHeader, UdpHeader};

    const OWN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    /// Within which datagrams cross loopback, also on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(10);

    fn tunnelled(port: u16, fill: u8, length: usize) -> Packet {
        let packet = vec![fill; length];
        let data = TunnelData {
            next_header: 4,
            packet: &packet,
        };
        let udp = UdpHeader {
            source_port: PORT,
            destination_port: port,
        };
        Packet::udp_datagram(IpHeader::new(OWN, OWN), udp, &data.emit())
    }

    fn socket() -> Datagrams {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        Datagrams::over(socket).expect("a socket")
    }

    #[test]
    fn what_leaves_in_one_call_arrives_as_it_was() {
        let (mut sender, receiver) = (socket(), socket());
        let port = receiver.socket().local_addr().expect("bound").port();
        let mut batch = Batch::default();
        let packets = [(1, 1400), (2, 1400), (3, 1400), (4, 500)];
        for (fill, length) in packets {
            let packet = tunnelled(port, fill, length);
            assert!(Batch::is_for(&packet, Some(OWN)));
            assert!(batch.accepts(&packet, 64));
            batch.push(packet);
        }
        assert!(sender.send(OWN, &batch), "the kernel takes it");
        let mut got = Vec::new();
        let mut buffer = vec![0; 65_535];
        let deadline = clock::now() + PATIENCE;
        while got.len() < packets.len() {
            let Some((_, datagrams)) = receiver.receive(&mut buffer).expect("no error") else {
                assert!(clock::now() < deadline, "only {} came", got.len());
                std::thread::yield_now();
                continue;
            };
            got.extend(datagrams.map(<[u8]>::to_vec));
        }
        let sent = packets.map(|(fill, length)| payload(&tunnelled(port, fill, length)).to_vec());
        assert_eq!(got, sent);
    }

    #[test]
    fn what_the_kernel_refuses_once_is_not_refused_for_good() {
        /// More segments than any kernel cuts a datagram into (`UDP_MAX_SEGMENTS`).
        const TOO_MANY: usize = 200;
        let mut sender = socket();
        let most = sender.most();
        assert!(most > 1, "this kernel has UDP_SEGMENT");
        let mut batch = Batch::default();
        for _ in 0..TOO_MANY {
            batch.push(tunnelled(PORT, 0, 20));
        }
        assert!(!sender.send(OWN, &batch), "EINVAL");
        assert_eq!(sender.most(), 1, "nothing is gathered any more");
        sender.gather_again().expect("the same options");
        assert_eq!(sender.most(), most);
        batch.clear();
        for _ in 0..2 {
            batch.push(tunnelled(PORT, 0, 20));
        }
        assert!(sender.send(OWN, &batch), "the kernel takes it");
    }

    #[test]
    fn only_what_the_kernel_can_cut_again_is_gathered() {
        let mut batch = Batch::default();
        batch.push(tunnelled(1, 0, 1400));
        assert!(!batch.accepts(&tunnelled(2, 0, 1400), 64), "another end");
        assert!(!batch.accepts(&tunnelled(1, 0, 1401), 64), "a longer one");
        assert!(!batch.accepts(&tunnelled(1, 0, 1400), 1), "no more at once");
        batch.push(tunnelled(1, 0, 1300));
        assert!(
            !batch.accepts(&tunnelled(1, 0, 1300), 64),
            "after a shorter one"
        );
        batch.clear();
        while batch.accepts(&tunnelled(1, 0, 1400), 64) {
            batch.push(tunnelled(1, 0, 1400));
        }
        let count = batch.packets().len();
        assert_eq!(count, LONGEST / 1404, "as much as a packet can be");
        let registration = Packet::udp_datagram(
            IpHeader::new(OWN, OWN),
            UdpHeader {
                source_port: PORT,
                destination_port: PORT,
            },
            &[1, 2, 0, 0],
        );
        assert!(!Batch::is_for(&registration, Some(OWN)));
    }
}
