//! Tunnels IP in IP in the kernel: programs in traffic control (`bpf/tunnels.bpf.c`) that encapsulate
//! what is routed into a device, and decapsulate what other interfaces receive (RFC 2003).
//!
//! Super-segments stay whole in both directions. Only plain packets of known tunnels are taken; all
//! others go on as if there were no programs. Nothing is pinned: programs, maps and attachments
//! are gone when the [`KernelTunnels`] is dropped, or the process ends. Before Linux 6.6 the killed
//! process leaves filters that do nothing (`crates/linux/src/traffic_control.rs`).

use crate::causes;
use crate::netlink::InterfaceIndex;
use crate::sys::bpf::Hook;
use crate::tracker::Lack;
use crate::traffic_control::{Attachment, Order, Spot, Way};
use aya::maps::{HashMap, MapData, MapError, PerCpuArray};
use aya::programs::{ProgramError, SchedClassifier};
use aya::{Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;

static OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/tunnels.bpf.o");

const ENTER: &str = "enter";
const LEAVE_ETHERNET: &str = "leave_ethernet";
const LEAVE_PLAIN: &str = "leave_plain";

const ENTRANCES: &str = "ENTRANCES";
const EXITS: &str = "EXITS";
const COUNTERS: &str = "COUNTERS";

/// `struct entrance`, `struct end` and `struct exit`.
const ENTRANCE: usize = 20;
const END: usize = 12;
const EXIT: usize = 24;
/// `enum count`.
const COUNTS: usize = 3;

/// Why tunnels are not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelTunnelError {
    /// The kernel does not take the object.
    #[error("cannot load the programs for tunnels")]
    Object(#[from] EbpfError),
    /// The kernel does not take a program.
    #[error("cannot load a program for tunnels")]
    Program(#[from] ProgramError),
    /// The kernel does not let a program be attached.
    #[error("cannot attach a program for tunnels")]
    Attach(#[source] io::Error),
    /// The kernel does not let a map be read or written.
    #[error("cannot reach the maps of the programs for tunnels")]
    Map(#[from] MapError),
}

impl KernelTunnelError {
    /// The error with its causes, in one line; of a verifier's log only the reason.
    #[must_use]
    pub fn with_causes(&self) -> String {
        causes::in_one_line(self)
    }

    /// What this machine lacks, and what would help.
    #[must_use]
    pub fn lack(&self) -> Lack {
        Lack::shown_by(self, matches!(self, Self::Attach(_)))
    }
}

/// At which side of an inner packet a mobile node's address is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MobileIs {
    /// It has sent the packet.
    Source,
    /// The packet is for it.
    Destination,
}

/// What the programs are loaded with.
#[derive(Clone, Copy, Debug)]
pub struct KernelTunnelConfig {
    /// Where the mobile node's address is when a packet enters a tunnel.
    pub entering: MobileIs,
    /// Where it is when a packet leaves a tunnel.
    pub leaving: MobileIs,
    /// Whether this host forwards packets. Then the routes of the kernel lead to tunnels' other ends,
    /// and what comes from elsewhere than these lead is left to user space.
    pub forwards: bool,
    /// Mobile nodes that there is room for, each with one tunnel in each direction.
    pub mobiles: u32,
}

/// The sending end of a mobile node's tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entrance {
    /// The encapsulator.
    pub source: Ipv4Addr,
    /// The decapsulator.
    pub destination: Ipv4Addr,
    /// Where packets leave and how many bytes they may have outside, on a host that does not forward.
    pub way: Option<(InterfaceIndex, u32)>,
    /// The outer identification of a packet is its inner one and this number.
    pub identification_offset: u16,
}

/// The receiving end of a mobile node's tunnel.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct End {
    /// The encapsulator.
    pub source: Ipv4Addr,
    /// The decapsulator.
    pub destination: Ipv4Addr,
    /// The mobile node.
    pub mobile: Ipv4Addr,
}

/// Where packets go that leave a tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// This interface, which is no Ethernet, seems to have received them.
    ReceivedBy(InterfaceIndex),
    /// Out by an Ethernet interface.
    Frame {
        /// The interface.
        interface: InterfaceIndex,
        /// Longest packet in bytes.
        mtu: u32,
        /// The frame's destination.
        to: [u8; 6],
        /// The frame's source.
        from: [u8; 6],
    },
}

/// Packets that the programs have taken. A super-segment is as many as it stands for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct KernelTunnelCounters {
    /// Packets that were encapsulated.
    pub entered: u64,
    /// Packets that were decapsulated.
    pub left: u64,
    /// Packets that were lost for want of memory.
    pub dropped: u64,
}

/// The loaded programs. They and all tunnels are gone when this is dropped.
pub struct KernelTunnels {
    ebpf: Ebpf,
    /// The programs' ways to interfaces, by their names.
    ways: BTreeMap<&'static str, Way>,
    /// The device's.
    entry: Option<Attachment>,
    attached: BTreeMap<u32, Attachment>,
}

impl KernelTunnels {
    /// Loads the programs; no packet goes through them yet. What follows needs `CAP_NET_ADMIN` only.
    ///
    /// # Errors
    /// Without `CAP_BPF` and `CAP_NET_ADMIN`, or on a kernel without what they need.
    pub fn load(config: &KernelTunnelConfig) -> Result<Self, KernelTunnelError> {
        let is_source = |which| u8::from(which == MobileIs::Source);
        let mobiles = config.mobiles.max(1);
        let mut ebpf = EbpfLoader::new()
            .override_global("ENTERS_BY_SOURCE", &is_source(config.entering), true)
            .override_global("LEAVES_BY_SOURCE", &is_source(config.leaving), true)
            .override_global("FORWARDS", &u8::from(config.forwards), true)
            .map_max_entries(ENTRANCES, mobiles)
            .map_max_entries(EXITS, mobiles)
            .load(OBJECT)?;
        for name in [ENTER, LEAVE_ETHERNET, LEAVE_PLAIN] {
            let program = ebpf.program_mut(name).expect("the object has it");
            let program: &mut SchedClassifier = program.try_into()?;
            program.load()?;
        }
        let mut ways = BTreeMap::new();
        for name in [ENTER, LEAVE_ETHERNET, LEAVE_PLAIN] {
            let way = Way::of(program(&ebpf, name)?).map_err(KernelTunnelError::Attach)?;
            ways.insert(name, way);
        }
        Ok(Self {
            ebpf,
            ways,
            entry: None,
            attached: BTreeMap::new(),
        })
    }

    /// Encapsulates what the kernel sends into a device that is no Ethernet, in the network namespace of
    /// the calling thread.
    ///
    /// # Errors
    /// When there is none, on a kernel without a way to attach programs, or without `CAP_NET_ADMIN`.
    pub fn attach_device(&mut self, device: InterfaceIndex) -> Result<(), KernelTunnelError> {
        self.entry = Some(self.attach_program(ENTER, device, Hook::Egress)?);
        Ok(())
    }

    /// Decapsulates what an interface receives whose packets have so many bytes in front of the IP
    /// header: 14 or none.
    ///
    /// # Errors
    /// As [`Self::attach_device`].
    pub fn attach(
        &mut self,
        interface: InterfaceIndex,
        link_header: u32,
    ) -> Result<(), KernelTunnelError> {
        let name = match link_header {
            0 => LEAVE_PLAIN,
            _ => LEAVE_ETHERNET,
        };
        let link = self.attach_program(name, interface, Hook::Ingress)?;
        self.attached.insert(interface.0, link);
        Ok(())
    }

    /// Whether what an interface receives is decapsulated.
    #[must_use]
    pub fn is_attached(&self, interface: InterfaceIndex) -> bool {
        self.attached.contains_key(&interface.0)
    }

    /// An interface is gone.
    pub fn forget(&mut self, interface: InterfaceIndex) {
        self.attached.remove(&interface.0);
    }

    /// Behind whoever is there already: what a gateway sees of the device is not in the tunnel yet.
    fn attach_program(
        &self,
        name: &str,
        interface: InterfaceIndex,
        hook: Hook,
    ) -> Result<Attachment, KernelTunnelError> {
        let program = program(&self.ebpf, name)?;
        self.ways[name]
            .attach(program, &mut Spot::at(interface), hook, Order::Last)
            .map_err(KernelTunnelError::Attach)
    }

    /// Packets of, or for, a mobile node enter this tunnel from now on, or none.
    ///
    /// # Errors
    /// When there is no room, or the kernel does not let the map be written.
    pub fn set_entrance(
        &mut self,
        mobile: Ipv4Addr,
        entrance: Option<&Entrance>,
    ) -> Result<(), KernelTunnelError> {
        let key = mobile.octets();
        self.set(ENTRANCES, key, entrance.map(entrance_bytes))
    }

    /// Packets of this tunnel leave it in the kernel from now on, or do not.
    ///
    /// # Errors
    /// As [`Self::set_entrance`].
    pub fn set_exit(&mut self, end: &End, exit: Option<&Exit>) -> Result<(), KernelTunnelError> {
        self.set(EXITS, end_bytes(end), exit.map(exit_bytes))
    }

    fn set<const KEY: usize, const VALUE: usize>(
        &mut self,
        name: &str,
        key: [u8; KEY],
        value: Option<[u8; VALUE]>,
    ) -> Result<(), KernelTunnelError> {
        let map = self.ebpf.map_mut(name).expect("the object has it");
        let mut map: HashMap<&mut MapData, [u8; KEY], [u8; VALUE]> = HashMap::try_from(map)?;
        match value {
            Some(value) => map.insert(key, value, 0)?,
            None => match map.remove(&key) {
                Ok(()) | Err(MapError::KeyNotFound) => {}
                Err(MapError::SyscallError(error))
                    if error.io_error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            },
        }
        Ok(())
    }

    /// Counts so far.
    ///
    /// # Errors
    /// When the kernel does not let them be read.
    pub fn counters(&self) -> Result<KernelTunnelCounters, KernelTunnelError> {
        let map = self.ebpf.map(COUNTERS).expect("the object has it");
        let counts: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
        let mut sums = [0; COUNTS];
        for (place, sum) in (0..).zip(&mut sums) {
            *sum = counts.get(&place, 0)?.iter().sum();
        }
        let [entered, left, dropped] = sums;
        Ok(KernelTunnelCounters {
            entered,
            left,
            dropped,
        })
    }
}

impl fmt::Debug for KernelTunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelTunnels")
            .field("attached", &self.attached)
            .finish_non_exhaustive()
    }
}

/// The descriptor of a loaded program.
fn program<'e>(ebpf: &'e Ebpf, name: &str) -> Result<BorrowedFd<'e>, ProgramError> {
    let program = ebpf.program(name).expect("the object has it");
    Ok(<&SchedClassifier>::try_from(program)?.fd()?.as_fd())
}

fn entrance_bytes(entrance: &Entrance) -> [u8; ENTRANCE] {
    let (interface, mtu) = entrance.way.map_or((0, 0), |(one, mtu)| (one.0, mtu));
    let mut bytes = [0; ENTRANCE];
    bytes[..4].copy_from_slice(&entrance.source.octets());
    bytes[4..8].copy_from_slice(&entrance.destination.octets());
    bytes[8..12].copy_from_slice(&interface.to_ne_bytes());
    bytes[12..16].copy_from_slice(&mtu.to_ne_bytes());
    bytes[16..].copy_from_slice(&u32::from(entrance.identification_offset).to_ne_bytes());
    bytes
}

fn end_bytes(end: &End) -> [u8; END] {
    let mut bytes = [0; END];
    let addresses = [end.source, end.destination, end.mobile];
    for (field, address) in bytes.chunks_exact_mut(4).zip(addresses) {
        field.copy_from_slice(&address.octets());
    }
    bytes
}

fn exit_bytes(exit: &Exit) -> [u8; EXIT] {
    let mut bytes = [0; EXIT];
    match *exit {
        Exit::ReceivedBy(interface) => bytes[..4].copy_from_slice(&interface.0.to_ne_bytes()),
        Exit::Frame {
            interface,
            mtu,
            to,
            from,
        } => {
            bytes[..4].copy_from_slice(&interface.0.to_ne_bytes());
            bytes[4..8].copy_from_slice(&1_u32.to_ne_bytes());
            bytes[8..12].copy_from_slice(&mtu.to_ne_bytes());
            bytes[12..18].copy_from_slice(&to);
            bytes[18..].copy_from_slice(&from);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fresh_namespace;

    const LOOPBACK: InterfaceIndex = InterfaceIndex(1);
    const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 5);

    fn tunnel() -> (Entrance, End) {
        let (source, destination) = (Ipv4Addr::new(10, 9, 0, 2), Ipv4Addr::new(10, 1, 0, 7));
        let entrance = Entrance {
            source,
            destination,
            way: None,
            identification_offset: 7,
        };
        let end = End {
            source: destination,
            destination: source,
            mobile: MOBILE,
        };
        (entrance, end)
    }

    #[test]
    fn the_kernel_takes_the_programs_and_tunnels_come_and_go() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let config = KernelTunnelConfig {
            entering: MobileIs::Destination,
            leaving: MobileIs::Source,
            forwards: true,
            mobiles: 1,
        };
        let work = || -> Result<KernelTunnelCounters, KernelTunnelError> {
            let mut tunnels = KernelTunnels::load(&config)?;
            tunnels.attach_device(LOOPBACK)?;
            tunnels.attach(LOOPBACK, 14)?;
            assert!(tunnels.is_attached(LOOPBACK));
            let (entrance, end) = tunnel();
            let exit = Exit::ReceivedBy(LOOPBACK);
            // A mobile node that moves has room again, and one that is unknown is removed without harm.
            for _ in 0..2 {
                tunnels.set_entrance(MOBILE, Some(&entrance))?;
                tunnels.set_exit(&end, Some(&exit))?;
                let other = End {
                    mobile: Ipv4Addr::LOCALHOST,
                    ..end
                };
                let refused = tunnels.set_exit(&other, Some(&exit));
                assert!(refused.is_err(), "there is room for one");
                for _ in 0..2 {
                    tunnels.set_entrance(MOBILE, None)?;
                    tunnels.set_exit(&end, None)?;
                }
            }
            tunnels.forget(LOOPBACK);
            assert!(!tunnels.is_attached(LOOPBACK));
            tunnels.counters()
        };
        match namespace.run(work).expect("enter") {
            Ok(counters) => assert_eq!(counters, KernelTunnelCounters::default()),
            Err(KernelTunnelError::Program(ProgramError::LoadError {
                io_error,
                verifier_log,
            })) if io_error.raw_os_error() != Some(libc::EPERM) => {
                panic!("{io_error}: {verifier_log}")
            }
            Err(error) => outlast_skip::skip(error.lack().what),
        }
    }

    /// By the outer identification user space knows errors about packets that it has not seen.
    #[test]
    fn the_outer_identification_differs_from_the_inner_one_by_the_tunnels_number() {
        use crate::netlink::{InterfaceSettings, Prefix, Route, RouteSocket};
        use crate::poller::{Interest, Poller, Token};
        use crate::protocol::{ProtocolReceiver, ip_packet};
        use crate::raw::{RawSender, Sent};
        use crate::tun::Tun;
        let (Some(namespace), Some(other)) = (fresh_namespace(), fresh_namespace()) else {
            return;
        };
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        let (entrance, _) = tunnel();
        let (near, far) = (Ipv4Addr::new(10, 9, 0, 2), Ipv4Addr::new(10, 9, 0, 7));
        let entrance = Entrance {
            source: near,
            destination: far,
            identification_offset: 0xfff0,
            ..entrance
        };
        let config = KernelTunnelConfig {
            entering: MobileIs::Destination,
            leaving: MobileIs::Source,
            forwards: false,
            mobiles: 1,
        };
        let equip = |routes: &mut RouteSocket, name: &str, address: Ipv4Addr| {
            let index = routes.interface(name).expect("made");
            routes.configure(index, &up).expect("up");
            let address = address.into();
            let prefix = Prefix {
                address,
                length: 24,
            };
            routes.add_address(index, prefix).expect("free");
            index
        };
        let begin = || -> Result<(KernelTunnels, Tun), KernelTunnelError> {
            let mut routes = RouteSocket::open().expect("netlink");
            let end = other.as_fd();
            routes
                .add_veth("near0", "far0", Some(end))
                .expect("a cable");
            let cable = equip(&mut routes, "near0", near);
            let device = Tun::create("mobiles0").expect("TUN devices");
            let index = routes.interface("mobiles0").expect("made");
            routes.configure(index, &up).expect("up");
            let way = Route {
                destination: Prefix::of_host(MOBILE.into()),
                interface: index,
                gateway: None,
                congestion_control: None,
            };
            routes.add_route(&way).expect("free");
            let mut tunnels = KernelTunnels::load(&config)?;
            tunnels.attach_device(index)?;
            let entrance = Entrance {
                way: Some((cable, 1500)),
                ..entrance
            };
            tunnels.set_entrance(MOBILE, Some(&entrance))?;
            Ok((tunnels, device))
        };
        let begun = match namespace.run(begin).expect("enter") {
            Ok(begun) => begun,
            Err(error) => return outlast_skip::skip(error.lack().what),
        };
        let listen = || {
            let mut routes = RouteSocket::open().expect("netlink");
            equip(&mut routes, "far0", far);
            ProtocolReceiver::open(4, far.into()).expect("raw sockets")
        };
        let receiver = other.run(listen).expect("enter");
        let send = || {
            let source = Ipv4Addr::new(192, 0, 2, 1);
            let packet = ip_packet(source.into(), MOBILE.into(), 200, b"payload");
            let mut packet = packet.expect("one family");
            packet[4..7].copy_from_slice(&[0x12, 0x34, 0x40]);
            let sender = RawSender::open(0, None).expect("raw sockets");
            let sent = sender.send(MOBILE.into(), &packet).expect("sent");
            assert_eq!(sent, Sent::Accepted);
        };
        namespace.run(send).expect("enter");
        let mut poller = Poller::new().expect("epoll");
        poller
            .add(&receiver, Token(1), Interest::Readable)
            .expect("epoll");
        assert_eq!(poller.wait().expect("epoll").count(), 1);
        let mut buffer = [0; 100];
        let outer = receiver.receive_whole(&mut buffer).expect("no error");
        let outer = outer.expect("it is readable");
        let [inner, outside] = [24, 4].map(|at| u16::from_be_bytes([outer[at], outer[at + 1]]));
        assert_eq!(inner, 0x1234);
        assert_eq!(outside, 0x1224, "the sum wraps");
        drop(begun);
    }
}
