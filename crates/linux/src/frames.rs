//! Packets and ARP on one Ethernet, past the kernel's routes and its table of neighbours.
//!
//! Whoever is sent a packet is named by his Ethernet address, and whoever has sent one is known by
//! his. What is received here goes to the kernel, too.

use crate::netlink::InterfaceIndex;
use crate::solicitation::ArpParty;
use crate::sys::ethernet;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use socket2::{Domain, SockFilter, Socket, Type};
use std::io;
use std::net::Ipv4Addr;

/// Types of Ethernet frames.
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;

/// Everybody on an Ethernet.
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// Of Ethernet and IPv4, whose addresses have six bytes and four (RFC 826).
const ARP_FORM: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
const ARP_LENGTH: usize = 28;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// Sends and receives IPv4 packets on one Ethernet.
#[derive(Debug)]
pub struct PacketLink {
    socket: Socket,
    interface: InterfaceIndex,
}

/// Sends and receives ARP on one Ethernet.
#[derive(Debug)]
pub struct ArpLink {
    socket: Socket,
    interface: InterfaceIndex,
}

/// An ARP request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Question {
    /// Who asks.
    pub asker: ArpParty,
    /// For which address.
    pub target: Ipv4Addr,
}

/// The UDP port and the kinds of ICMP messages that a [`PacketLink`] receives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wanted {
    /// Datagrams to this port.
    pub port: u16,
    /// Two types of ICMP messages.
    pub icmp: [u8; 2],
}

impl Wanted {
    /// The kernel's filter: what is no such message, or a fragment, does not wake anybody.
    fn filter(self) -> Vec<SockFilter> {
        const BYTE_AT: u16 = 0x30;
        const HALF_AT: u16 = 0x28;
        const BYTE_BEHIND: u16 = 0x50;
        const HALF_BEHIND: u16 = 0x48;
        const HEADER_LENGTH: u16 = 0xb1;
        const IS: u16 = 0x15;
        const HAS_ANY: u16 = 0x45;
        const END: u16 = 0x06;
        let [first, second] = self.icmp.map(u32::from);
        let step = |code, yes, no, value| SockFilter::new(code, yes, no, value);
        vec![
            step(HALF_AT, 0, 0, 6),
            step(HAS_ANY, 9, 0, 0x1fff),
            step(HEADER_LENGTH, 0, 0, 0),
            step(BYTE_AT, 0, 0, 9),
            step(IS, 3, 0, 1),
            step(IS, 0, 5, 17),
            step(HALF_BEHIND, 0, 0, 2),
            step(IS, 4, 3, self.port.into()),
            step(BYTE_BEHIND, 0, 0, 0),
            step(IS, 2, 0, first),
            step(IS, 1, 0, second),
            step(END, 0, 0, 0),
            step(END, 0, 0, 0x4_0000),
        ]
    }
}

/// A packet socket whose frames bear `mark`.
fn open(mark: u32) -> io::Result<Socket> {
    // Nothing arrives before it is bound and knows what it wants.
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_mark(mark)?;
    Ok(socket)
}

fn bind(socket: &Socket, interface: InterfaceIndex, protocol: u16) -> io::Result<()> {
    socket.bind(&ethernet::address(interface, protocol, [0; 6])?)
}

/// An IPv4 packet or an ARP message that came in an Ethernet frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Frame<'b> {
    /// The frame's source.
    pub from: [u8; 6],
    /// Its content, cut where the buffer ended.
    pub bytes: &'b [u8],
    /// The checksum of UDP or TCP waits for a network card, which there is none between virtual machines
    /// and containers (`TP_STATUS_CSUMNOTREADY`). The field holds the sum of the pseudo-header.
    pub lacks_checksum: bool,
}

/// What is there, if it comes from an Ethernet.
fn receive<'b>(socket: &Socket, buffer: &'b mut [u8]) -> io::Result<Option<Frame<'b>>> {
    loop {
        match ethernet::receive(socket.as_fd(), buffer) {
            Ok(received) => {
                if let Some(from) = received.from {
                    let length = received.length.min(buffer.len());
                    return Ok(Some(Frame {
                        from,
                        bytes: &buffer[..length],
                        lacks_checksum: received.lacks_checksum,
                    }));
                }
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INTR) => {}
                // The interface is down or gone: nothing comes.
                Some(Errno::AGAIN | Errno::NETDOWN | Errno::NODEV | Errno::NXIO) => {
                    return Ok(None);
                }
                _ => return Err(error),
            },
        }
    }
}

/// Whether it went out: not if the interface is down, gone or full, or the frame too long.
fn was_sent(sent: io::Result<usize>) -> io::Result<bool> {
    match sent {
        Ok(_) => Ok(true),
        Err(error) => match Errno::from_io_error(&error) {
            Some(
                Errno::NODEV
                | Errno::NXIO
                | Errno::NETDOWN
                | Errno::NOBUFS
                | Errno::AGAIN
                | Errno::MSGSIZE,
            ) => Ok(false),
            _ => Err(error),
        },
    }
}

impl PacketLink {
    /// Receives what is `wanted` at `interface`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, or when there is no such interface.
    pub fn open(interface: InterfaceIndex, mark: u32, wanted: Wanted) -> io::Result<Self> {
        let socket = open(mark)?;
        socket.attach_filter(&wanted.filter())?;
        ethernet::ask_for_checksum_state(socket.as_fd())?;
        bind(&socket, interface, IPV4)?;
        Ok(Self { socket, interface })
    }

    /// The next packet and the Ethernet address that it comes from; `None` if there is none now.
    ///
    /// # Errors
    /// When the kernel reports an error that is not the interface's state.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<Frame<'b>>> {
        receive(&self.socket, buffer)
    }

    /// Sends a packet, complete with its checksums, to an Ethernet address; whether it went out.
    ///
    /// # Errors
    /// When the kernel reports an error that is not the interface's state.
    pub fn send(&self, to: [u8; 6], packet: &[u8]) -> io::Result<bool> {
        let to = ethernet::address(self.interface, IPV4, to)?;
        was_sent(self.socket.send_to(packet, &to))
    }
}

impl ArpLink {
    /// Hears and speaks ARP at `interface`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, or when there is no such interface.
    pub fn open(interface: InterfaceIndex, mark: u32) -> io::Result<Self> {
        let socket = open(mark)?;
        bind(&socket, interface, ARP)?;
        Ok(Self { socket, interface })
    }

    /// The next request; `None` if there is none now.
    ///
    /// # Errors
    /// When the kernel reports an error that is not the interface's state.
    pub fn receive(&self) -> io::Result<Option<Question>> {
        let mut buffer = [0; ARP_LENGTH];
        loop {
            let Some(frame) = receive(&self.socket, &mut buffer)? else {
                return Ok(None);
            };
            if let Some(question) = question(frame.bytes) {
                return Ok(Some(question));
            }
        }
    }

    /// Answers a request: `party` has the address that was asked for. Whether it went out.
    ///
    /// # Errors
    /// When the kernel reports an error that is not the interface's state.
    pub fn answer(&self, asker: ArpParty, party: ArpParty) -> io::Result<bool> {
        self.send(asker.hardware, REPLY, party, asker)
    }

    /// Tells everybody that `party` has its address (RFC 5944, section 4.6: a request in which both
    /// addresses are the one that is told). Whether it went out.
    ///
    /// # Errors
    /// When the kernel reports an error that is not the interface's state.
    pub fn announce(&self, party: ArpParty) -> io::Result<bool> {
        let nobody = ArpParty {
            address: party.address,
            hardware: [0; 6],
        };
        self.send(BROADCAST, REQUEST, party, nobody)
    }

    fn send(&self, to: [u8; 6], kind: u16, from: ArpParty, target: ArpParty) -> io::Result<bool> {
        let mut frame = [0; ARP_LENGTH];
        frame[..6].copy_from_slice(&ARP_FORM);
        frame[6..8].copy_from_slice(&kind.to_be_bytes());
        frame[8..14].copy_from_slice(&from.hardware);
        frame[14..18].copy_from_slice(&from.address.octets());
        frame[18..24].copy_from_slice(&target.hardware);
        frame[24..].copy_from_slice(&target.address.octets());
        let to = ethernet::address(self.interface, ARP, to)?;
        was_sent(self.socket.send_to(&frame, &to))
    }
}

/// The request that a frame is.
fn question(frame: &[u8]) -> Option<Question> {
    let frame: &[u8; ARP_LENGTH] = frame.first_chunk()?;
    let is_request = frame[..6] == ARP_FORM && frame[6..8] == REQUEST.to_be_bytes();
    let address = |at: usize| {
        let bytes: [u8; 4] = frame[at..].first_chunk().copied()?;
        Some(Ipv4Addr::from(bytes))
    };
    is_request.then_some(Question {
        asker: ArpParty {
            hardware: *frame[8..].first_chunk()?,
            address: address(14)?,
        },
        target: address(24)?,
    })
}

/// The Ethernet address of a group of IPv4 (RFC 1112, section 6.4).
#[must_use]
pub const fn group(address: Ipv4Addr) -> [u8; 6] {
    let [_, a, b, c] = address.octets();
    [0x01, 0x00, 0x5e, a & 0x7f, b, c]
}

impl AsFd for PacketLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for ArpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{InterfaceSettings, Prefix, RouteSocket};
    use crate::poller::{Interest, Poller, Token};
    use crate::testing::fresh_namespace;

    const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    const AWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 5);
    const WANTED: Wanted = Wanted {
        port: 434,
        icmp: [9, 10],
    };

    fn await_readable(socket: &impl AsFd) {
        let mut poller = Poller::new().expect("epoll");
        poller
            .add(socket, Token(1), Interest::Readable)
            .expect("epoll");
        assert_eq!(poller.wait().expect("epoll").count(), 1);
    }

    /// Two interfaces of a cable, and the far one's Ethernet address.
    fn cable() -> (InterfaceIndex, InterfaceIndex, [u8; 6]) {
        let mut routes = RouteSocket::open().expect("netlink");
        routes.add_veth("near0", "far0", None).expect("a cable");
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        let mut equip = |name: &str, address: Ipv4Addr| {
            let index = routes.interface(name).expect("made");
            routes.configure(index, &up).expect("up");
            let address = address.into();
            routes
                .add_address(
                    index,
                    Prefix {
                        address,
                        length: 24,
                    },
                )
                .expect("free");
            index
        };
        let (near, far) = (equip("near0", NEAR), equip("far0", FAR));
        let hardware = routes.hardware_address("far0").expect("netlink");
        (near, far, hardware.expect("an Ethernet"))
    }

    fn datagram(port: u16) -> Vec<u8> {
        let payload = [
            &1000_u16.to_be_bytes()[..],
            &port.to_be_bytes(),
            &[0, 8, 0, 0],
        ]
        .concat();
        let packet = crate::protocol::ip_packet(FAR.into(), NEAR.into(), 17, &payload);
        packet.expect("it fits")
    }

    #[test]
    fn only_what_is_wanted_is_received_and_its_sender_is_known() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            let (near, far, hardware) = cable();
            let here = PacketLink::open(near, 0, WANTED).expect("packet sockets");
            let there = PacketLink::open(far, 0, WANTED).expect("packet sockets");
            let echo = crate::protocol::ip_packet(FAR.into(), NEAR.into(), 1, &[8, 0, 0, 0]);
            let sought = crate::protocol::ip_packet(FAR.into(), NEAR.into(), 1, &[10, 0, 0, 0]);
            let (echo, sought) = (echo.expect("it fits"), sought.expect("it fits"));
            let mut fragment = datagram(434);
            fragment[7] = 1;
            for packet in [&datagram(433), &echo, &fragment, &sought, &datagram(434)] {
                assert!(there.send(BROADCAST, packet).expect("no error"));
            }
            let mut buffer = [0; 100];
            for expected in [&sought, &datagram(434)] {
                await_readable(&here);
                let received = here.receive(&mut buffer).expect("no error");
                let frame = Frame {
                    from: hardware,
                    bytes: &expected[..],
                    lacks_checksum: false,
                };
                assert_eq!(received, Some(frame));
            }
            assert_eq!(here.receive(&mut buffer).expect("no error"), None);
        };
        namespace.run(work).expect("a namespace");
    }

    /// RFC 5944, section 3.8.2.1, has wrong checksums discarded. One that a network card was to complete is
    /// not wrong: between virtual interfaces nobody completes it.
    #[test]
    fn a_datagram_of_a_kernel_is_known_to_lack_its_checksum() {
        use outlast_wire::Packet;
        let (Some(namespace), Some(other)) = (fresh_namespace(), fresh_namespace()) else {
            return;
        };
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        let equip = |routes: &mut RouteSocket, name: &str, address: Ipv4Addr| {
            let index = routes.interface(name).expect("made");
            routes.configure(index, &up).expect("up");
            let prefix = Prefix {
                address: address.into(),
                length: 24,
            };
            routes.add_address(index, prefix).expect("free");
            index
        };
        let make = || {
            let mut routes = RouteSocket::open().expect("netlink");
            routes
                .add_veth("near0", "far0", Some(other.as_fd()))
                .expect("a cable");
            let near = equip(&mut routes, "near0", NEAR);
            PacketLink::open(near, 0, WANTED).expect("packet sockets")
        };
        let link = namespace.run(make).expect("a namespace");
        let speak = || {
            let mut routes = RouteSocket::open().expect("netlink");
            equip(&mut routes, "far0", FAR);
            let socket = std::net::UdpSocket::bind((FAR, 434)).expect("free");
            // The kernel asks for the address first, and keeps the datagram until that is answered.
            socket.send_to(b"a request", (NEAR, 434)).expect("a route");
        };
        other.run(speak).expect("a namespace");
        await_readable(&link);
        let mut buffer = [0; 100];
        let frame = link.receive(&mut buffer).expect("no error");
        let frame = frame.expect("it is readable");
        assert!(
            frame.lacks_checksum,
            "the cable offers to complete checksums"
        );
        let packet = Packet::parse(frame.bytes.to_vec().into()).expect("a packet");
        assert!(!packet.checksums_ok());
        let complete = packet.with_checksum();
        assert!(complete.checksums_ok());
        assert_eq!(complete.payload(), Some(&b"a request"[..]));
    }

    #[test]
    fn a_question_is_heard_and_answered_and_an_announcement_changes_what_a_kernel_knows() {
        let (Some(namespace), Some(other)) = (fresh_namespace(), fresh_namespace()) else {
            return;
        };
        let agent = ArpParty {
            address: AWAY,
            hardware: [2, 0, 0, 0, 0, 1],
        };
        let mobile = ArpParty {
            hardware: [2, 0, 0, 0, 0, 2],
            ..agent
        };
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        let make = || {
            let mut routes = RouteSocket::open().expect("netlink");
            routes
                .add_veth("near0", "far0", Some(other.as_fd()))
                .expect("a cable");
            let near = routes.interface("near0").expect("made");
            routes.configure(near, &up).expect("up");
            ArpLink::open(near, 0).expect("packet sockets")
        };
        let link = namespace.run(make).expect("a namespace");
        let ask = || {
            let mut routes = RouteSocket::open().expect("netlink");
            let far = routes.interface("far0").expect("made");
            routes.configure(far, &up).expect("up");
            let address = FAR.into();
            let prefix = Prefix {
                address,
                length: 24,
            };
            routes.add_address(far, prefix).expect("free");
            routes.probe_neighbour(far, AWAY.into()).expect("asked");
            far
        };
        let far = other.run(ask).expect("a namespace");
        let probe = || {
            let mut routes = RouteSocket::open().expect("netlink");
            routes.probe_neighbour(far, AWAY.into()).expect("asked");
        };
        let question = loop {
            await_readable(&link);
            // The kernel may announce its own address first.
            match link.receive().expect("no error") {
                Some(question) if question.target == AWAY => break question,
                _ => {}
            }
        };
        assert_eq!(question.asker.address, FAR);
        assert!(link.answer(question.asker, agent).expect("no error"));
        let known = || {
            other
                .run(|| {
                    let mut routes = RouteSocket::open().expect("netlink");
                    routes.neighbour_hardware(far, AWAY.into()).expect("told")
                })
                .expect("a namespace")
        };
        let await_known = |party: ArpParty| {
            let begun = crate::clock::now();
            let mut asked = begun;
            while known() != Some(party.hardware) {
                let now = crate::clock::now();
                let waited = now - begun;
                assert!(
                    waited < outlast_base::time::Duration::from_secs(10),
                    "{:?}",
                    known()
                );
                // The kernel may notice the new cable late, and forget its neighbours then.
                if now - asked > outlast_base::time::Duration::from_secs(1) {
                    asked = now;
                    other.run(probe).expect("a namespace");
                }
                if let Some(question) = link.receive().expect("no error")
                    && question.target == AWAY
                {
                    assert!(link.answer(question.asker, party).expect("no error"));
                }
                std::thread::yield_now();
            }
        };
        await_known(agent);
        // The kernel believes no second answer within a second (`locktime`).
        let begun = crate::clock::now();
        while known() != Some(mobile.hardware) {
            let waited = crate::clock::now() - begun;
            assert!(
                waited < outlast_base::time::Duration::from_secs(10),
                "{:?}",
                known()
            );
            assert!(link.announce(mobile).expect("no error"));
            std::thread::yield_now();
        }
    }

    #[test]
    fn groups_have_ethernet_addresses() {
        let all = group(Ipv4Addr::new(224, 0, 0, 1));
        assert_eq!(all, [0x01, 0, 0x5e, 0, 0, 1]);
        let high = group(Ipv4Addr::new(239, 255, 1, 2));
        assert_eq!(high, [0x01, 0, 0x5e, 0x7f, 1, 2]);
    }
}
