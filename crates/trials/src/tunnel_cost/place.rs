//! Fixed host, home agent, router and one mobile host for each way, in a row of veth pairs; beside the home
//! agent another one, whose tunnels are in user space.

use super::bench::Load;
use crate::gateway_matrix::daemon::{Daemon, Duty};
use crate::gateway_matrix::programs::find;
use crate::gateway_matrix::trial::TrialError;
use crate::live::within;
use crate::mobile_ip_matrix::place::ip;
use crate::role;
use crate::streams::Connection;
use outlast_base::time::Duration;
use outlast_lab::{Cancel, LabError};
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::process::{self, ContainedProcess};
use outlast_linux::{offload, sysctl};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The fixed host's address towards each home agent.
const FIXED: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 10), Ipv4Addr::new(192, 0, 3, 10)];
const HOME_AGENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 2), Ipv4Addr::new(203, 0, 114, 2)];
/// Where the second home agent's mobile nodes are at home.
const USER_SPACE_HOME: &str = "10.51.0.0/24";
/// The router's address towards the home agent, and its care-of address.
const ROUTER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// How long a connection may carry nothing that it is given before it is held for broken.
const STALLED: Duration = Duration::from_secs(10);

/// What is between the home agent's host and a mobile host.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Nothing: packets are forwarded.
    Plain,
    /// Our tunnel to a mobile node with an address of its own, in the kernel by eBPF.
    CoLocated,
    /// Our tunnel to a foreign agent at the router, likewise.
    ForeignAgent,
    /// Our tunnel in UDP to a mobile node behind an address translator.
    Translated,
    /// A tunnel of the kernel's.
    Kernel,
    /// No tunnel, and a gateway with `hold` on the NFQUEUE path at the router.
    Nfqueue,
    /// Our tunnel to a mobile node with an address of its own, in user space.
    UserSpace,
}

impl Way {
    /// All, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Plain,
        Self::CoLocated,
        Self::ForeignAgent,
        Self::UserSpace,
        Self::Translated,
        Self::Kernel,
        Self::Nfqueue,
    ];

    /// What readers call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Plain => "plain forwarding",
            Self::CoLocated => "tunnel to a co-located address, eBPF",
            Self::ForeignAgent => "tunnel to a foreign agent, eBPF",
            Self::UserSpace => "tunnel to a co-located address, user space",
            Self::Translated => "tunnel in UDP behind a translator",
            Self::Kernel => "tunnel of the kernel's",
            Self::Nfqueue => "no tunnel, gateway on the NFQUEUE path",
        }
    }

    const fn index(self) -> u8 {
        self as u8
    }

    /// The router's interface towards the mobile host.
    fn link(self) -> String {
        format!("link{}", self.index())
    }

    const fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 51, 100 + self.index(), 1)
    }

    const fn local(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 51, 100 + self.index(), 2)
    }

    /// Which home agent is on the way.
    const fn agent(self) -> usize {
        matches!(self, Self::UserSpace) as usize
    }

    /// The mobile host's address, by which it is reached this way.
    const fn address(self) -> Ipv4Addr {
        match self {
            Self::Plain | Self::Nfqueue => self.local(),
            Self::CoLocated => Ipv4Addr::new(10, 50, 0, 5),
            Self::ForeignAgent => Ipv4Addr::new(10, 50, 0, 6),
            Self::UserSpace => Ipv4Addr::new(10, 51, 0, 5),
            Self::Translated => Ipv4Addr::new(10, 50, 0, 7),
            Self::Kernel => Ipv4Addr::new(10, 60, 0, 2),
        }
    }
}

/// Everybody, and the roles that run. They are gone when it is dropped.
pub(super) struct Tunnels<'t> {
    /// Which tunnel of the kernel's there is, or why there is none.
    pub(super) kernel: Result<&'static str, String>,
    /// Why there is no tunnel in UDP; `None` if there is one.
    pub(super) untranslated: Option<String>,
    _gateway: Daemon<'t>,
    _roles: Vec<ContainedProcess>,
    _directory: TempDir,
    hosts: Hosts,
}

struct Hosts {
    fixed: Namespace,
    agents: [Namespace; 2],
    router: Namespace,
    mobiles: Vec<Namespace>,
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "let traffic through tunnels",
        source,
    }
}

fn cable(from: &Namespace, name: &str, to: &Namespace, other: &str) -> Result<(), TrialError> {
    let other_end: OwnedFd = to.as_fd().try_clone_to_owned().map_err(io_error)?;
    within(from, || {
        let mut routes = RouteSocket::open().map_err(LabError::from)?;
        let made = routes.add_veth(name, other, Some(other_end.as_fd()));
        Ok(made.map_err(LabError::from)?)
    })
}

impl Hosts {
    fn new(load: Load) -> Result<Self, TrialError> {
        let host = || Namespace::new().map_err(LabError::from);
        let hosts = Self {
            fixed: host()?,
            agents: [host()?, host()?],
            router: host()?,
            mobiles: Way::ALL.iter().map(|_| host()).collect::<Result<_, _>>()?,
        };
        for (number, agent) in hosts.agents.iter().enumerate() {
            cable(agent, "fixed0", &hosts.fixed, &format!("eth{number}"))?;
            cable(agent, "core0", &hosts.router, &format!("core{number}"))?;
        }
        // In the order of their numbers.
        for (index, mobile) in hosts.mobiles.iter().enumerate() {
            cable(&hosts.router, &format!("link{index}"), mobile, "eth0")?;
        }
        hosts.set_up(load)?;
        Ok(hosts)
    }

    fn mobile(&self, way: Way) -> &Namespace {
        &self.mobiles[usize::from(way.index())]
    }

    fn set_up(&self, load: Load) -> Result<(), TrialError> {
        let links = Way::ALL.map(Way::link);
        let routers_ends = links.iter().map(String::as_str).chain(["core0", "core1"]);
        equip(&self.fixed, &["eth0", "eth1"], load)?;
        equip(&self.router, &routers_ends.collect::<Vec<_>>(), load)?;
        ip(
            &self.fixed,
            &[
                "address add 192.0.2.10/24 dev eth0".to_owned(),
                "address add 192.0.3.10/24 dev eth1".to_owned(),
                "route add default via 192.0.2.1 congctl cubic".to_owned(),
                format!("route add {USER_SPACE_HOME} via 192.0.3.1 congctl cubic"),
            ],
        )?;
        for (number, agent) in self.agents.iter().enumerate() {
            equip(agent, &["fixed0", "core0"], load)?;
            let (fixed, core) = (2 + number, 113 + number);
            ip(
                agent,
                &[
                    format!("address add 192.0.{fixed}.1/24 dev fixed0"),
                    format!("address add 203.0.{core}.2/24 dev core0"),
                    format!("route add default via 203.0.{core}.1"),
                ],
            )?;
        }
        ip(
            &self.router,
            &[
                "address add 203.0.113.1/24 dev core0",
                "address add 203.0.114.1/24 dev core1",
                "route add default via 203.0.113.2",
            ],
        )?;
        for way in Way::ALL {
            let (link, gateway, local) = (way.link(), way.gateway(), way.local());
            ip(
                &self.router,
                &[format!("address add {gateway}/24 dev {link}")],
            )?;
            let mobile = self.mobile(way);
            equip(mobile, &["eth0"], load)?;
            // A visitor of a foreign agent has no address of the link's.
            if way != Way::ForeignAgent {
                let lines = [
                    format!("address add {local}/24 dev eth0"),
                    format!("route add default via {gateway} congctl cubic"),
                ];
                ip(mobile, &lines)?;
            }
        }
        for host in self.agents.iter().chain([&self.router]) {
            write(host, "net.ipv4.ip_forward", "1")?;
        }
        // Between its turns, a connection has a pause.
        for host in self.mobiles.iter().chain([&self.fixed]) {
            write(host, "net.ipv4.tcp_slow_start_after_idle", "0")?;
        }
        Ok(())
    }

    /// Makes a tunnel of the kernel's: IP in IP where there is one, else VXLAN.
    fn make_kernel_tunnel(&self) -> Result<&'static str, String> {
        let local = Way::Kernel.local();
        let kinds = [
            ("IP in IP", "type ipip"),
            ("VXLAN", "type vxlan id 7 dstport 4789"),
        ];
        let mut said = String::new();
        for (name, kind) in kinds {
            let ends = [
                (&self.agents[0], HOME_AGENTS[0], local, "10.60.0.1/24"),
                (
                    self.mobile(Way::Kernel),
                    local,
                    HOME_AGENTS[0],
                    "10.60.0.2/24",
                ),
            ];
            let made = ends.into_iter().try_for_each(|(host, own, other, inner)| {
                ip(
                    host,
                    &[
                        format!("link add kernel0 {kind} local {own} remote {other}"),
                        "link set kernel0 up".to_owned(),
                        format!("address add {inner} dev kernel0"),
                    ],
                )
            });
            let back = "route add 192.0.2.0/24 via 10.60.0.1 dev kernel0 congctl cubic";
            let made = made.and_then(|()| ip(self.mobile(Way::Kernel), &[back]));
            match made {
                Ok(()) => return Ok(name),
                Err(error) => said = format!("{said}{name}: {error}. "),
            }
        }
        Err(said)
    }
}

impl Hosts {
    /// Has the router show its own address for one mobile host's; whatever is no tunnel of it is not tracked.
    fn translate(&self) -> Result<(), TrialError> {
        let (network, link) = (Way::Translated.local(), "core0");
        // Not `sport != 434 dport != 434`: nft compares both ports at once, and either may differ then.
        let rules = format!(
            "add table ip nat\n\
             add chain ip nat received {{ type filter hook prerouting priority raw; }}\n\
             add rule ip nat received udp dport 434 accept\n\
             add rule ip nat received udp sport 434 accept\n\
             add rule ip nat received notrack\n\
             add chain ip nat out {{ type nat hook postrouting priority srcnat; }}\n\
             add rule ip nat out ip saddr {network} oifname {link} masquerade\n"
        );
        let nft = find("nft", "nftables").map_err(TrialError::Missing)?;
        let mut command = Command::new(nft);
        command.arg(rules);
        let router = self.router.as_fd().try_clone_to_owned().map_err(io_error)?;
        process::place(&mut command, None, router);
        let said = command.output().map_err(io_error)?;
        match said.status.success() {
            true => Ok(()),
            false => Err(TrialError::Program {
                what: "nft does not translate addresses",
                said: String::from_utf8_lossy(&said.stderr).trim().to_owned(),
            }),
        }
    }
}

fn write(host: &Namespace, name: &'static str, value: &'static str) -> Result<(), TrialError> {
    within(host, || {
        Ok(sysctl::write(name, value).map_err(LabError::from)?)
    })
}

fn equip(host: &Namespace, interfaces: &[&str], load: Load) -> Result<(), TrialError> {
    within(host, || {
        for interface in interfaces {
            offload::set_super_segments(interface, load != Load::Packets).map_err(io_error)?;
        }
        Ok(())
    })?;
    let up = |name: &&str| format!("link set {name} up");
    let lines: Vec<String> = interfaces.iter().chain([&"lo"]).map(up).collect();
    ip(host, &lines)
}

/// A program of `outlast run` with its configuration, and the words by which it says that it is ready.
struct Role<'h> {
    name: &'static str,
    kind: &'static str,
    host: &'h Namespace,
    configuration: String,
    words: &'static str,
}

/// A home agent, which knows those mobile nodes of `ways` that are its own.
fn home_agent<'h>(hosts: &'h Hosts, directory: &Path, ways: &[Way], number: usize) -> Role<'h> {
    let name = ["agent", "other-agent"][number];
    let control = directory.join(name).with_extension("sock");
    let key = directory.join("key");
    let (host, address) = (&hosts.agents[number], HOME_AGENTS[number]);
    let data_path = ["ebpf", "user-space"][number];
    let mobile = |way: &Way| {
        let address = way.address();
        format!("[[home_agent.mobiles]]\nhome_address = \"{address}\"\nkey = {key:?}\n")
    };
    let mobiles = ways.iter().filter(|way| way.agent() == number);
    let mobiles: String = mobiles.map(mobile).collect();
    Role {
        name,
        kind: "home-agent",
        host,
        configuration: format!(
            "[home_agent]\naddress = \"{address}\"\ncontrol = {control:?}\n\
             data_path = \"{data_path}\"\n{mobiles}"
        ),
        words: "agent begins",
    }
}

fn foreign_agent<'h>(hosts: &'h Hosts, directory: &Path) -> Role<'h> {
    let control = directory.join("foreign.sock");
    let (link, address) = (Way::ForeignAgent.link(), Way::ForeignAgent.gateway());
    Role {
        name: "foreign",
        kind: "foreign-agent",
        host: &hosts.router,
        configuration: format!(
            "[foreign_agent]\ninterface = {link:?}\naddress = \"{address}\"\n\
             care_of_address = \"{ROUTER}\"\ndata_path = \"ebpf\"\ncontrol = {control:?}\n"
        ),
        words: "agent begins",
    }
}

/// The mobile node that is reached by `way`; `None` if that is no tunnel of ours.
fn mobile_node<'h>(hosts: &'h Hosts, directory: &Path, way: Way) -> Option<Role<'h>> {
    let (name, more, words) = match way {
        Way::CoLocated => ("own", "data_path = \"ebpf\"\n", " registered"),
        Way::ForeignAgent => ("visitor", "interface = \"eth0\"\n", " registered"),
        Way::UserSpace => ("slow", "data_path = \"user-space\"\n", " registered"),
        Way::Translated => ("translated", "", "in_udp=true"),
        Way::Plain | Way::Kernel | Way::Nfqueue => return None,
    };
    let (address, agent) = (way.address(), HOME_AGENTS[way.agent()]);
    let (key, control) = (directory.join("key"), directory.join(name));
    let control = control.with_extension("sock");
    Some(Role {
        name,
        kind: "mobile-node",
        host: hosts.mobile(way),
        configuration: format!(
            "[mobile_node]\nhome_address = \"{address}\"\nhome_agent = \"{agent}\"\n\
             key = {key:?}\ntrigger = false\ncontrol = {control:?}\n{more}"
        ),
        words,
    })
}

/// Starts home agent, foreign agent and the mobile nodes of `ways`, one after another, until these are registered.
fn start_roles(
    hosts: &Hosts,
    ways: &[Way],
    directory: &Path,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Vec<ContainedProcess>, TrialError> {
    let agents = [
        home_agent(hosts, directory, ways, 0),
        home_agent(hosts, directory, ways, 1),
        foreign_agent(hosts, directory),
    ];
    let nodes = ways.iter().copied();
    let nodes = nodes.filter_map(|way| mobile_node(hosts, directory, way));
    let mut processes = Vec::new();
    for role in agents.into_iter().chain(nodes) {
        let file = directory.join(role.name).with_extension("toml");
        fs::write(&file, role.configuration).map_err(io_error)?;
        let (process, said) = role::run(outlast, role.kind, role.host, &file)?;
        processes.push(process);
        role::await_words(&said, role.words, cancel)?;
    }
    Ok(processes)
}

impl<'t> Tunnels<'t> {
    /// Starts all, until all mobile nodes are registered.
    pub(super) fn start(
        load: Load,
        outlast: &'t Path,
        cancel: &Cancel,
    ) -> Result<Self, TrialError> {
        let hosts = Hosts::new(load)?;
        let untranslated = match hosts.translate() {
            Ok(()) => None,
            Err(why @ (TrialError::Missing(_) | TrialError::Program { .. })) => {
                Some(why.to_string())
            }
            Err(error) => return Err(error),
        };
        let mut tunnels = vec![Way::CoLocated, Way::ForeignAgent, Way::UserSpace];
        if untranslated.is_none() {
            tunnels.push(Way::Translated);
        }
        let directory = TempDir::new().map_err(io_error)?;
        let at = |name: &str| directory.path().join(name);
        let key = at("key");
        let mut command = Command::new(outlast);
        let made = command.args(["mobile-ip", "key"]).arg(&key).output();
        let made = made.map_err(io_error)?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr);
            return Err(TrialError::Daemon(said.trim().to_owned()));
        }
        let roles = start_roles(&hosts, &tunnels, directory.path(), outlast, cancel)?;
        let gateway = Daemon::start_on(
            &Way::Nfqueue.link(),
            Duty::Hold,
            &hosts.router,
            outlast,
            at("gateway.sock"),
            &["--data-path", "nfqueue"],
        )?;
        Ok(Self {
            kernel: hosts.make_kernel_tunnel(),
            untranslated,
            _gateway: gateway,
            _roles: roles,
            _directory: directory,
            hosts,
        })
    }

    /// The ways that there are here.
    pub(super) fn ways(&self) -> Vec<Way> {
        let is_there = |way: &Way| match way {
            Way::Kernel => self.kernel.is_ok(),
            Way::Translated => self.untranslated.is_none(),
            _ => true,
        };
        Way::ALL.into_iter().filter(is_there).collect()
    }

    /// A new TCP connection, either end of which fails when it has stalled.
    pub(super) fn connect(&self, way: Way) -> Result<Connection, TrialError> {
        let listen = || TcpListener::bind((way.address(), 0)).map_err(io_error);
        let listener = within(self.hosts.mobile(way), listen)?;
        let to = listener.local_addr().map_err(io_error)?;
        let connected = || connected(to).map_err(io_error);
        let fixed = TcpStream::from(within(&self.hosts.fixed, connected)?);
        // Or the end of a turn waits for an acknowledgement.
        fixed.set_nodelay(true).map_err(io_error)?;
        let (mobile, _) = listener.accept().map_err(io_error)?;
        mobile.set_read_timeout(Some(STALLED)).map_err(io_error)?;
        Ok(Connection { fixed, mobile })
    }

    /// Sockets for datagrams: the fixed host's end and the mobile host's, each of which sends to the other.
    pub(super) fn datagrams(&self, way: Way) -> Result<[UdpSocket; 2], TrialError> {
        let bind = |address: Ipv4Addr| {
            move || {
                let socket = UdpSocket::bind((address, 0)).map_err(io_error)?;
                socket.set_read_timeout(Some(STALLED)).map_err(io_error)?;
                Ok(socket)
            }
        };
        let mobile = within(self.hosts.mobile(way), bind(way.address()))?;
        let fixed = within(&self.hosts.fixed, bind(FIXED[way.agent()]))?;
        for (from, to) in [(&mobile, &fixed), (&fixed, &mobile)] {
            let connected = to.local_addr().and_then(|to| from.connect(to));
            connected.map_err(io_error)?;
        }
        Ok([fixed, mobile])
    }
}

fn connected(to: SocketAddr) -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(STALLED))?;
    let SocketAddr::V4(to) = to else {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    };
    connect(&socket, &SocketAddrV4::new(*to.ip(), to.port()))?;
    Ok(socket)
}
