//! Asking for neighbours in the name of an address that they are to know.
//!
//! A kernel that asks for the neighbour of a packet that it forwards, or that it is told to ask
//! for, asks from its link-local address (RFC 4861, section 7.2.2, leaves the choice). Who is asked
//! learns by that where the link-local address is, and nothing of the others (section 7.2.3). A
//! host whose router is one of these then has to ask in turn before it can answer anything: a round
//! trip more than by ARP, where the question comes from the address that the hosts use.
//!
//! The kernel asks three times, a second apart each, and cannot be made to ask sooner without being
//! told first that it has asked in vain; and whoever tells it anything waits for the lock that all share
//! who change something about any network of the host (`rtnl_mutex`). A question from here waits for
//! nobody.
//!
//! One whose Ethernet address is known can be asked there alone (RFC 1122, section 2.3.2.1; RFC 4861,
//! section 7.3.3), so that nobody else has to listen. A neighbour that has given the asker up knows
//! by that where it is.

use crate::netlink::InterfaceIndex;
use crate::sys::ethernet;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6};

/// `ND_NEIGHBOR_SOLICIT` (RFC 4861, section 4.3).
const SOLICITATION: u8 = 135;
/// The option that says where the source is (section 4.6.1), and its length in units of 8 bytes.
const SOURCE_LINK_LAYER_ADDRESS: [u8; 2] = [1, 1];
/// Whoever hears it knows that no router has forwarded it (section 4.3).
const HOP_LIMIT: u32 = 255;
/// Type, code, checksum, four reserved bytes, target, option.
const LENGTH: usize = 32;

/// The type of an Ethernet frame with ARP in it (RFC 826).
const ARP: u16 = 0x0806;
/// Of Ethernet and IPv4, whose addresses have six bytes and four; a request.
const ARP_REQUEST: [u8; 8] = [0, 1, 0x08, 0x00, 6, 4, 0, 1];
/// Bytes of an ARP request, with both parties' addresses of Ethernet and IPv4.
const ARP_LENGTH: usize = 28;

/// Asks on one Ethernet interface.
#[derive(Clone, Debug)]
pub struct Solicitor {
    name: String,
    index: InterfaceIndex,
    hardware: [u8; 6],
    mark: u32,
}

impl Solicitor {
    /// One for the interface `name`, which has this number and Ethernet address. Its packets bear
    /// `mark`.
    #[must_use]
    pub fn new(name: &str, index: InterfaceIndex, hardware: [u8; 6], mark: u32) -> Self {
        Self {
            name: name.into(),
            index,
            hardware,
            mark,
        }
    }

    /// Asks everybody for `neighbour`, once, in the name of `own`, an address of the interface. The
    /// answer goes to the kernel, as every answer does.
    ///
    /// Whether it was asked: not if the interface has no such address, or not yet for good, or is
    /// down.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` and `CAP_NET_ADMIN`, or when the process is out of descriptors.
    pub fn ask(&self, own: Ipv6Addr, neighbour: Ipv6Addr) -> io::Result<bool> {
        self.ask_at(solicited_node(neighbour), own, neighbour)
    }

    /// Asks only `neighbour` itself, at the Ethernet address that the kernel knows.
    ///
    /// Whether it was asked: as [`Self::ask`] tells.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn remind(&self, own: Ipv6Addr, neighbour: Ipv6Addr) -> io::Result<bool> {
        self.ask_at(neighbour, own, neighbour)
    }

    fn ask_at(&self, to: Ipv6Addr, own: Ipv6Addr, neighbour: Ipv6Addr) -> io::Result<bool> {
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        socket.set_mark(self.mark)?;
        socket.set_multicast_hops_v6(HOP_LIMIT)?;
        socket.set_unicast_hops_v6(HOP_LIMIT)?;
        socket.set_multicast_loop_v6(false)?;
        // Nothing is read.
        socket.set_recv_buffer_size(0)?;
        let asked = socket
            .bind_device(Some(self.name.as_bytes()))
            .and_then(|()| socket.bind(&self.address(own)))
            .and_then(|()| socket.send_to(&self.question(neighbour), &self.address(to)));
        was_asked(asked)
    }

    fn address(&self, address: Ipv6Addr) -> SockAddr {
        SocketAddrV6::new(address, 0, 0, self.index.0).into()
    }

    /// The kernel fills in the checksum (RFC 3542, section 3.1).
    fn question(&self, neighbour: Ipv6Addr) -> [u8; LENGTH] {
        let mut question = [0; LENGTH];
        question[0] = SOLICITATION;
        question[8..24].copy_from_slice(&neighbour.octets());
        question[24..26].copy_from_slice(&SOURCE_LINK_LAYER_ADDRESS);
        question[26..].copy_from_slice(&self.hardware);
        question
    }
}

/// Everybody on an Ethernet.
const BROADCAST: [u8; 6] = [0xff; 6];

/// Asks by ARP.
#[derive(Debug)]
pub struct ArpSolicitor {
    /// Kept: the kernel takes some milliseconds to close one.
    socket: Socket,
}

/// One who speaks ARP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ArpParty {
    /// IP address.
    pub address: Ipv4Addr,
    /// Ethernet address.
    pub hardware: [u8; 6],
}

impl ArpSolicitor {
    /// One in the network namespace of the calling thread, whose frames bear `mark`; `None` where the
    /// kernel has no packet sockets.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` and `CAP_NET_ADMIN`.
    pub fn open(mark: u32) -> io::Result<Option<Self>> {
        // Nothing is received: it listens to no protocol.
        let socket = match Socket::new(Domain::PACKET, Type::DGRAM, None) {
            Ok(socket) => socket,
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => return Ok(None),
            Err(error) => return Err(error),
        };
        socket.set_nonblocking(true)?;
        socket.set_mark(mark)?;
        Ok(Some(Self { socket }))
    }

    /// Asks everybody for `neighbour`, once, in the name of `own`, an address of the interface. The
    /// answer goes to the kernel, which heeds it if it has asked itself, whenever that was. Whether it
    /// was asked: not if the interface is down or gone.
    ///
    /// # Errors
    /// What else the system says.
    pub fn ask(
        &self,
        interface: InterfaceIndex,
        own: ArpParty,
        neighbour: Ipv4Addr,
    ) -> io::Result<bool> {
        self.ask_at(BROADCAST, interface, own, neighbour)
    }

    /// Asks only `neighbour` itself, at the Ethernet address that is given.
    ///
    /// Whether it was asked: as [`Self::ask`] tells.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn remind(
        &self,
        interface: InterfaceIndex,
        own: ArpParty,
        neighbour: ArpParty,
    ) -> io::Result<bool> {
        self.ask_at(neighbour.hardware, interface, own, neighbour.address)
    }

    fn ask_at(
        &self,
        to: [u8; 6],
        interface: InterfaceIndex,
        own: ArpParty,
        neighbour: Ipv4Addr,
    ) -> io::Result<bool> {
        let to = ethernet::address(interface, ARP, to)?;
        let mut question = [0; ARP_LENGTH];
        question[..8].copy_from_slice(&ARP_REQUEST);
        question[8..14].copy_from_slice(&own.hardware);
        question[14..18].copy_from_slice(&own.address.octets());
        // Its Ethernet address is what is asked for.
        question[24..].copy_from_slice(&neighbour.octets());
        was_asked(self.socket.send_to(&question, &to))
    }
}

/// Whether it was, as far as that is not the asker's fault.
fn was_asked(asked: io::Result<usize>) -> io::Result<bool> {
    match asked {
        Ok(_) => Ok(true),
        Err(error) => match Errno::from_io_error(&error) {
            Some(
                Errno::ADDRNOTAVAIL
                | Errno::NODEV
                | Errno::NXIO
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::HOSTUNREACH
                | Errno::NOBUFS
                | Errno::AGAIN,
            ) => Ok(false),
            _ => Err(error),
        },
    }
}

/// The group of all who may have this address (RFC 4291, section 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(
        0xff02,
        0,
        0,
        0,
        0,
        1,
        0xff00 | u16::from(a),
        u16::from_be_bytes([b, c]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::{Change, RouteMonitor, Standing};
    use crate::netlink::{InterfaceSettings, Prefix, RouteSocket};
    use crate::poller::{Interest, Poller, Token};
    use crate::testing::fresh_namespace;
    use rustix::fd::AsFd;
    use std::net::IpAddr;

    const MARK: u32 = 0x6f75;
    const OWN: Ipv6Addr = address(1);
    const NEIGHBOUR: Ipv6Addr = address(2);

    const fn address(host: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, host)
    }

    /// In the calling thread's namespace: makes `name` ready, without the search for twins.
    fn equip(name: &str, own: Ipv6Addr) -> InterfaceIndex {
        crate::sysctl::write(&format!("net.ipv6.conf.{name}.accept_dad"), "0").expect("sysctl");
        give(name, own.into(), 64)
    }

    /// Switches `name` on, with an address in a network of this prefix length.
    fn give(name: &str, address: IpAddr, length: u8) -> InterfaceIndex {
        let mut route = RouteSocket::open().expect("netlink");
        let index = route.interface(name).expect("made");
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        route.configure(index, &up).expect("up");
        let prefix = Prefix { address, length };
        route.add_address(index, prefix).expect("address");
        index
    }

    /// Waits for a change of this kind.
    fn await_change(monitor: &mut RouteMonitor, mut is_awaited: impl FnMut(&Change) -> bool) {
        let mut poller = Poller::new().expect("epoll");
        poller
            .add(&*monitor, Token(0), Interest::Readable)
            .expect("add");
        loop {
            while let Some(change) = monitor.receive().expect("netlink") {
                if is_awaited(&change) {
                    return;
                }
            }
            assert!(poller.wait().expect("epoll").count() > 0);
        }
    }

    /// Addresses that the asked neighbour's kernel learns, up to the `last` one.
    fn learnt(monitor: &mut RouteMonitor, last: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
        let mut learnt = Vec::new();
        await_change(monitor, |change| match change {
            Change::Neighbour {
                address,
                standing: Standing::Present,
                ..
            } => {
                learnt.push(*address);
                last(*address)
            }
            _ => false,
        });
        learnt
    }

    #[test]
    fn who_is_asked_learns_where_the_asking_address_is_and_from_the_kernel_alone_does_not() {
        let (Some(near), Some(far)) = (fresh_namespace(), fresh_namespace()) else {
            return;
        };
        if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
            outlast_skip::skip("this kernel has no IPv6");
            return;
        }
        let there = || {
            let mut route = RouteSocket::open().expect("netlink");
            route
                .add_veth("near0", "far0", Some(far.as_fd()))
                .expect("veth");
        };
        near.run(there).expect("enter");
        let mut heard = far
            .run(|| {
                equip("far0", NEIGHBOUR);
                RouteMonitor::open().expect("netlink")
            })
            .expect("enter");
        let by_kernel = || {
            let index = equip("near0", OWN);
            let mut route = RouteSocket::open().expect("netlink");
            route
                .probe_neighbour_now(index, NEIGHBOUR.into())
                .expect("ask");
            index
        };
        let index = near.run(by_kernel).expect("enter");
        let is_link_local =
            |address| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        let control = learnt(&mut heard, is_link_local);
        assert!(!control.contains(&OWN.into()), "{control:?}");
        let ask = || {
            let mut route = RouteSocket::open().expect("netlink");
            let hardware = route.hardware_address("near0").expect("ask");
            let hardware = hardware.expect("veth is an Ethernet");
            let solicitor = Solicitor::new("near0", index, hardware, MARK);
            assert!(
                !solicitor.ask(address(9), NEIGHBOUR).expect("ask"),
                "nobody's"
            );
            assert!(solicitor.ask(OWN, NEIGHBOUR).expect("ask"));
        };
        near.run(ask).expect("enter");
        learnt(&mut heard, |address| address == IpAddr::from(OWN));
    }

    const OWN_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const NEIGHBOUR_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    /// In the calling thread's namespace: an end of a cable with an address of IPv4. Its number and its
    /// Ethernet address.
    fn equip_v4(name: &str, own: Ipv4Addr) -> (InterfaceIndex, [u8; 6]) {
        let index = give(name, own.into(), 24);
        let mut route = RouteSocket::open().expect("netlink");
        let hardware = route.hardware_address(name).expect("ask");
        (index, hardware.expect("veth is an Ethernet"))
    }

    #[test]
    fn who_is_reminded_by_arp_learns_where_the_asking_address_is() {
        let (Some(near), Some(far)) = (fresh_namespace(), fresh_namespace()) else {
            return;
        };
        let there = || {
            let mut route = RouteSocket::open().expect("netlink");
            let end = route.add_veth("near0", "far0", Some(far.as_fd()));
            end.expect("veth");
        };
        near.run(there).expect("enter");
        let at_far = || (equip_v4("far0", NEIGHBOUR_V4), RouteMonitor::open());
        let ((far_index, far_hardware), heard) = far.run(at_far).expect("enter");
        let known_at_far = || {
            let mut route = RouteSocket::open().expect("netlink");
            let known = route.neighbour_hardware(far_index, OWN_V4.into());
            known.expect("netlink")
        };
        assert_eq!(far.run(known_at_far).expect("enter"), None);
        let remind = || {
            let (index, hardware) = equip_v4("near0", OWN_V4);
            let solicitor = ArpSolicitor::open(MARK).expect("a socket");
            let solicitor = solicitor.expect("this kernel has packet sockets");
            let party = |address, hardware| ArpParty { address, hardware };
            let neighbour = party(NEIGHBOUR_V4, far_hardware);
            let asked = solicitor.remind(index, party(OWN_V4, hardware), neighbour);
            assert!(asked.expect("ask"));
            hardware
        };
        let hardware = near.run(remind).expect("enter");
        let mut heard = heard.expect("netlink");
        learnt(&mut heard, |address| address == IpAddr::from(OWN_V4));
        assert_eq!(far.run(known_at_far).expect("enter"), Some(hardware));
    }

    #[test]
    fn who_is_asked_for_by_arp_is_known_to_a_kernel_that_has_asked_in_vain() {
        let (Some(near), Some(far)) = (fresh_namespace(), fresh_namespace()) else {
            return;
        };
        let begin = || {
            let mut route = RouteSocket::open().expect("netlink");
            let end = route.add_veth("near0", "far0", Some(far.as_fd()));
            end.expect("veth");
            let (index, hardware) = equip_v4("near0", OWN_V4);
            // It asks once, in vain as there is no carrier yet, and again in ten minutes only.
            crate::sysctl::write("net.ipv4.neigh.near0.retrans_time_ms", "600000").expect("sysctl");
            let heard = RouteMonitor::open().expect("netlink");
            let asked = route.probe_neighbour(index, NEIGHBOUR_V4.into());
            asked.expect("it is up");
            (index, hardware, heard)
        };
        let (index, hardware, mut heard) = near.run(begin).expect("enter");
        far.run(|| equip_v4("far0", NEIGHBOUR_V4)).expect("enter");
        await_change(&mut heard, |change| {
            matches!(
                change,
                Change::Interface {
                    is_running: true,
                    ..
                }
            )
        });
        let ask = || {
            let solicitor = ArpSolicitor::open(MARK).expect("a socket");
            let solicitor = solicitor.expect("this kernel has packet sockets");
            let own = ArpParty {
                address: OWN_V4,
                hardware,
            };
            let asked = solicitor.ask(index, own, NEIGHBOUR_V4);
            assert!(asked.expect("ask"));
        };
        near.run(ask).expect("enter");
        learnt(&mut heard, |address| address == IpAddr::from(NEIGHBOUR_V4));
    }

    #[test]
    fn the_group_is_made_of_the_last_three_bytes() {
        let address = "2001:db8::102:f3ff:fe45:6789".parse().expect("literal");
        assert_eq!(solicited_node(address).to_string(), "ff02::1:ff45:6789");
    }
}
